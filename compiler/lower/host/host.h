// Tile IR → LLVM IR loops for the host CPU, with the ABI of HostEntry (compiler/compile.h). See docs/host.md.
#pragma once
#include <memory>

#include "compiler/ir/ir.h"

namespace llvm {
class LLVMContext;
class Module;
}  // namespace llvm

namespace kiln::lower {

/// An attribute of the entry of kernels with products of matrices: their loops take all registers for sums, and LLVM's
/// own order of instructions is the better one.
inline constexpr const char* kProductsAttribute = "kiln-products";

struct HostLowered {
  std::unique_ptr<llvm::Module> module;  // defines kiln_entry; needs the symbols of codegen/host_hooks.h
  int64_t scratch_bytes = 0;             // of one thread, 64-byte aligned
  HostLowered();
  HostLowered(HostLowered&&) noexcept;
  ~HostLowered();
};

/// `module` is a verified tile-stage module. kUnsupported names an op that the host does not run.
Result<HostLowered> lower_host(const ir::Module& module, llvm::LLVMContext& context);

}  // namespace kiln::lower
