// Runtimes with the real compiler. Apart from jit.cc, so that programs with a compiler of their own link without it.
#include "runtime/device/runtime.h"
#include "runtime/jit/jit.h"
#include "support/log.h"

namespace kiln {
namespace runtime {
namespace {

Compiler real_compiler() {
  return {[](const frontend::JitFunction& function, std::span<const frontend::ArgSpec> args,
             const CompileOptions& options) { return kiln::compile(function, args, options); },
          [](const CompiledKernel& kernel) { return kiln::load_host_object(kernel); },
          [](std::string_view target, const Assembler* assembler) {
            return kiln::compiler_fingerprint(target, assembler);
          }};
}

}  // namespace
}  // namespace runtime

Runtime::Runtime()
    : Runtime(runtime::make_runtime(std::make_unique<runtime::Jit>(
          runtime::real_compiler(), [](const std::string& text) { write_log(LogLevel::kWarning, text); }))) {}

}  // namespace kiln
