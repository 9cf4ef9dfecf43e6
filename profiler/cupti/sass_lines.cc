#include "profiler/cupti/sass_lines.h"

#include <cstdlib>
#include <memory>

#include "profiler/cupti/library.h"
#include "support/diag.h"
#include "support/ptx_name.h"

namespace kiln::profiler::cupti {

#if KILN_HAS_CUPTI

namespace {

Result<std::shared_ptr<const Library>> library_for_lines() {
  KILN_TRY(std::shared_ptr<const Library> library, Library::open());
  KILN_CHECK_OK(library->need(Group::kLines));
  return library;
}

}  // namespace

Result<LineTable> cubin_lines(std::string_view cubin, const std::string& function) {
  KILN_TRY(std::shared_ptr<const Library> library, library_for_lines());
  const std::optional<uint64_t> bytes = code_bytes(cubin, function);
  if (!bytes) return error(ErrorKind::kValue, "the cubin has no function '{}'", function);
  LineTable table;
  table.function = function;
  const std::string symbol = ptx_name(function);
  for (uint64_t pc = 0; pc < *bytes; pc += kInstructionBytes) {
    CUpti_GetSassToSourceCorrelationParams p = {};
    p.size = CUpti_GetSassToSourceCorrelationParamsSize;
    p.cubin = cubin.data(), p.cubinSize = cubin.size();
    p.functionName = symbol.c_str();
    p.pcOffset = pc;
    const CUptiResult code = library->cuptiGetSassToSourceCorrelation(&p);
    // CUPTI allocates both names by malloc, also where it fails.
    std::unique_ptr<char, void (*)(void*)> file(p.fileName, std::free), folder(p.dirName, std::free);
    if (code != CUPTI_SUCCESS) return library->failure(code, "cuptiGetSassToSourceCorrelation(cubin, function, pc)");
    Instruction i;
    i.pc = pc;
    if (file && p.lineNumber > 0) {
      std::string path = folder && *folder ? std::string(folder.get()) + "/" : std::string();
      i.file = table.file(path + file.get());
      i.line = static_cast<int>(p.lineNumber);
    }
    table.code.push_back(std::move(i));
  }
  return table;
}

Result<uint64_t> cubin_checksum(std::string_view cubin) {
  KILN_TRY(std::shared_ptr<const Library> library, library_for_lines());
  CUpti_GetCubinCrcParams p = {};
  p.size = CUpti_GetCubinCrcParamsSize;
  p.cubin = cubin.data(), p.cubinSize = cubin.size();
  KILN_CUPTI_TRY(library, cuptiGetCubinCrc(&p));
  return p.cubinCrc;
}

#else

Result<LineTable> cubin_lines(std::string_view, const std::string&) { return built_without(); }
Result<uint64_t> cubin_checksum(std::string_view) { return built_without(); }

#endif

}  // namespace kiln::profiler::cupti
