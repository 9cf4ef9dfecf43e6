// Objects → callable code: RuntimeDyld over one mapping that is freed with the HostCode.
#include <llvm/DebugInfo/DWARF/DWARFContext.h>
#include <llvm/ExecutionEngine/RTDyldMemoryManager.h>
#include <llvm/ExecutionEngine/RuntimeDyld.h>
#include <llvm/Object/ObjectFile.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

#include "compiler/codegen/host.h"
#include "compiler/codegen/host_hooks.h"
#include "compiler/codegen/llvm_errors.h"
#include "compiler/compile.h"
#include "support/diag.h"

namespace kiln {

namespace {

using codegen::HostLog;

/// One mapping for all sections, so that they are in reach of each other; code becomes executable in finalizeMemory.
class Mapping : public llvm::RuntimeDyld::MemoryManager {
 public:
  ~Mapping() override {
    if (base_) munmap(base_, size_);
  }

  bool needsToReserveAllocationSpace() override { return true; }
  void reserveAllocationSpace(uintptr_t code, llvm::Align code_align, uintptr_t constants, llvm::Align constants_align,
                              uintptr_t data, llvm::Align data_align) override {
    const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    auto pages = [&](uintptr_t bytes, llvm::Align align) { return (bytes + align.value() + page - 1) / page * page; };
    parts_[kCode].size = pages(code, code_align);
    parts_[kConstants].size = pages(constants, constants_align);
    parts_[kData].size = pages(data, data_align);
    size_ = parts_[kCode].size + parts_[kConstants].size + parts_[kData].size;
    void* base = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    uint8_t* at = nullptr;
    if (base == MAP_FAILED) {
      // The loader ends the process when a section gets no memory: it gets some that nobody executes.
      unmapped_ = std::make_unique<uint8_t[]>(size_ + page);
      at = unmapped_.get() + page - reinterpret_cast<uintptr_t>(unmapped_.get()) % page;
    } else {
      at = base_ = static_cast<uint8_t*>(base);
    }
    for (Part& part : parts_) {
      part.begin = part.next = at;
      at += part.size;
    }
  }

  uint8_t* allocateCodeSection(uintptr_t size, unsigned align, unsigned, llvm::StringRef) override {
    return take(parts_[kCode], size, align);
  }
  uint8_t* allocateDataSection(uintptr_t size, unsigned align, unsigned, llvm::StringRef, bool read_only) override {
    return take(parts_[read_only ? kConstants : kData], size, align);
  }
  // Generated code never unwinds.
  void registerEHFrames(uint8_t*, uint64_t, size_t) override {}
  void deregisterEHFrames() override {}

  bool finalizeMemory(std::string* message) override {
    if (!base_ || exhausted_ || mprotect(parts_[kCode].begin, parts_[kCode].size, PROT_READ | PROT_EXEC) != 0 ||
        mprotect(parts_[kConstants].begin, parts_[kConstants].size, PROT_READ) != 0) {
      if (message) *message = exhausted_ ? "the object's sections do not fit" : std::strerror(errno);
      return true;
    }
    __builtin___clear_cache(reinterpret_cast<char*>(parts_[kCode].begin),
                            reinterpret_cast<char*>(parts_[kCode].begin + parts_[kCode].size));
    return false;
  }

  bool mapped() const { return base_ != nullptr; }

 private:
  enum { kCode, kConstants, kData };
  struct Part {
    uint8_t* begin = nullptr;
    uint8_t* next = nullptr;
    size_t size = 0;
  };

  uint8_t* take(Part& part, uintptr_t size, unsigned align) {
    if (!part.begin) return nullptr;
    const uintptr_t mask = (align ? align : 1) - 1;
    auto* at = reinterpret_cast<uint8_t*>((reinterpret_cast<uintptr_t>(part.next) + mask) & ~mask);
    if (at + size > part.begin + part.size) {
      exhausted_ = true;
      return nullptr;
    }
    part.next = at + size;
    return at;
  }

  uint8_t* base_ = nullptr;
  std::unique_ptr<uint8_t[]> unmapped_;  // where there was no mapping to be had
  size_t size_ = 0;
  bool exhausted_ = false;
  Part parts_[3];
};

class Resolver : public llvm::LegacyJITSymbolResolver {
 public:
  explicit Resolver(HostLog* log) : log_(log) {}

  llvm::JITSymbol findSymbol(const std::string& name) override {
    if (name == codegen::kHostLogName) return symbol(log_);
    for (const codegen::HostSymbol& s : codegen::host_symbols())
      if (name == s.name) return symbol(s.address);
    return nullptr;
  }
  llvm::JITSymbol findSymbolInLogicalDylib(const std::string&) override { return nullptr; }

 private:
  static llvm::JITSymbol symbol(void* address) {
    return {static_cast<uint64_t>(reinterpret_cast<uintptr_t>(address)), llvm::JITSymbolFlags::Exported};
  }
  HostLog* log_;
};

class LoadedHostCode : public HostCode {
 public:
  HostEntry entry() const override { return entry_; }
  Status take_failure() override {
    if (auto text = log_.take_failure()) return error(ErrorKind::kLaunch, "{}", *text);
    return {};
  }

  Status load(const CompiledKernel& kernel) {
    codegen::UsesLlvm scope;
    llvm::MemoryBufferRef bytes(kernel.object, kernel.name);
    auto object = llvm::object::ObjectFile::createObjectFile(bytes);
    if (!object) return broken(kernel, llvm::toString(object.takeError()));
    Resolver resolver(&log_);
    llvm::RuntimeDyld linker(mapping_, resolver);
    object_ = kernel.object;
    linker.loadObject(**object);
    if (!mapping_.mapped()) return error(ErrorKind::kMemory, "no memory for the code of '{}'", kernel.name);
    linker.resolveRelocations();
    if (linker.hasError()) return broken(kernel, linker.getErrorString().str());
    std::string message;
    if (mapping_.finalizeMemory(&message))
      return error(ErrorKind::kMemory, "the code of '{}' cannot be made executable: {}", kernel.name, message);
    entry_ = reinterpret_cast<HostEntry>(linker.getSymbol(codegen::kHostEntryName).getAddress());
    if (!entry_) return broken(kernel, "it has no entry");
    return {};
  }

  // Read from the object only when it is asked for: after a fault.
  Place place_at(uintptr_t address) const override {
    codegen::UsesLlvm scope;
    auto object = llvm::object::ObjectFile::createObjectFile(llvm::MemoryBufferRef(object_, "kernel"));
    if (!object) return llvm::consumeError(object.takeError()), Place();
    for (const llvm::object::SymbolRef& symbol : (*object)->symbols()) {
      auto name = symbol.getName();
      if (!name || *name != codegen::kHostEntryName) {
        if (!name) llvm::consumeError(name.takeError());
        continue;
      }
      auto offset = symbol.getAddress();
      auto section = symbol.getSection();
      if (!offset || !section) {
        llvm::consumeError(offset.takeError()), llvm::consumeError(section.takeError());
        break;
      }
      const uintptr_t begin = reinterpret_cast<uintptr_t>(entry_) - *offset;
      if (address < begin || address >= begin + (*section)->getSize()) break;
      const auto found = llvm::DWARFContext::create(**object)->getLineInfoForAddress(
          {address - begin, (*section)->getIndex()}, {llvm::DILineInfoSpecifier::FileLineInfoKind::RelativeFilePath});
      if (!found) break;
      const int column = static_cast<int>(found->Column);
      return {found->FileName, static_cast<int>(found->Line), column, column + 1, {}};
    }
    return {};
  }

 private:
  static Diagnostic broken(const CompiledKernel& kernel, const std::string& why) {
    return error(ErrorKind::kInternal, "the object of host kernel '{}' cannot be loaded: {}", kernel.name, why);
  }

  Mapping mapping_;
  std::string object_;
  HostLog log_;
  HostEntry entry_ = nullptr;
};

}  // namespace

Result<std::shared_ptr<HostCode>> load_host_object(const CompiledKernel& kernel) {
  auto code = std::make_shared<LoadedHostCode>();
  KILN_CHECK_OK(code->load(kernel));
  return std::shared_ptr<HostCode>(std::move(code));
}

}  // namespace kiln
