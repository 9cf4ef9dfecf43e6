// LLVM IR for this machine's CPU → optimised → a relocatable object. Loading it: host_load.cc (load_host_object of
// compile.h).
#pragma once
#include <string>

#include "kiln/result.h"

namespace llvm {
class Module;
}

namespace kiln::codegen {

/// Name of the function that a host kernel's module defines, of type HostEntry.
inline constexpr const char* kHostEntryName = "kiln_entry";
/// Address of this HostCode's log; hooks that generated code calls take it first (host_hooks.h).
inline constexpr const char* kHostLogName = "kiln_host_log";
/// The word that kernels poll between programs and in loops (support/stop.h).
inline constexpr const char* kHostStopWord = "kiln_stop_word";

struct HostObject {
  std::string object;    // for CompiledKernel::object
  std::string assembly;  // when asked for
};

/// Optimises `module` in place for this CPU with all its features and emits it. The module may then be printed too.
/// kInternal: LLVM cannot select something. May be called from several threads, each with its own LLVMContext.
Result<HostObject> emit_object(llvm::Module& module, bool want_assembly = false);

/// "x86-64 znver3 +avx2+fma…": what an object was compiled for, as part of a cache key.
std::string host_cpu_description();

/// "22.1.8".
std::string llvm_version();

}  // namespace kiln::codegen
