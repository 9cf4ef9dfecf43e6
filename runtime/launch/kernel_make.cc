// Making kernels for the real compiler. Apart from kernel.cc, so that programs with a compiler of their own link
// without it.
#include "compiler/parse/parser.h"
#include "kiln/kernel.h"
#include "runtime/jit/jit.h"
#include "runtime/launch/kernel_impl.h"
#include "support/diag.h"
#include "support/log.h"
#include "support/trace.h"

namespace kiln {
namespace runtime {

Compiler default_compiler() {
  return {[](const frontend::JitFunction& function, std::span<const frontend::ArgSpec> args,
             const CompileOptions& options) { return kiln::compile(function, args, options); },
          [](const CompiledKernel& kernel) { return kiln::load_host_object(kernel); },
          [](std::string_view target, const Assembler* assembler) {
            return kiln::compiler_fingerprint(target, assembler);
          }};
}

Jit& Jit::instance() {
  // Never destroyed: kernels may be launched by other objects' destructors at exit.
  static Jit* jit = new Jit(default_compiler(), [](const std::string& text) { write_log(LogLevel::kWarning, text); });
  return *jit;
}

std::vector<std::shared_ptr<const LoadedCode>> loaded_code() { return Jit::instance().loaded_code(); }

}  // namespace runtime

using namespace runtime;

Result<Kernel> Kernel::from_source(std::string text, std::string file_name, std::string_view name) {
  auto parsed = [&] {
    trace::Scope phase(trace::kSpans, trace::Step::kPhase, "parse");
    return parse::parse_module(SourceText::make(std::move(file_name), std::move(text)));
  };
  KILN_TRY(auto module, parsed());
  KILN_TRY(auto functions, frontend::jit_functions(module));
  std::vector<std::string> names;
  std::shared_ptr<const frontend::JitFunction> found;
  for (const auto& function : functions) {
    if (function->constexpr_function) continue;
    names.push_back(function->def->name);
    if (name.empty() || function->def->name == name) found = function;
  }
  const std::string& file = module->source->file_name();
  if (names.empty()) return error(ErrorKind::kName, "'{}' has no function under @triton.jit", file);
  if (name.empty() && names.size() > 1)
    return error(ErrorKind::kName, "'{}' has {} jit functions; name one of {}", file, names.size(),
                 fmt::join(names, ", "));
  if (!found) {
    std::string near = nearest_name(name, names);
    Diagnostic d = error(ErrorKind::kName, "'{}' has no jit function '{}'", file, name);
    return near.empty() ? with_note(std::move(d), fmt::format("help: it has {}", fmt::join(names, ", ")))
                        : with_note(std::move(d), fmt::format("help: did you mean '{}'?", near));
  }
  return Kernel(std::make_shared<KernelImpl>(found, true, Jit::instance()));
}

Kernel Kernel::from_function(std::shared_ptr<const frontend::JitFunction> function) {
  return Kernel(std::make_shared<KernelImpl>(std::move(function), false, Jit::instance()));
}

}  // namespace kiln
