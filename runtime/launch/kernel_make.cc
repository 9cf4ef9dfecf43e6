// Making kernels of source texts and functions.
#include <fmt/format.h>

#include "compiler/parse/parser.h"
#include "kiln/kernel.h"
#include "runtime/launch/kernel_impl.h"
#include "support/diag.h"
#include "support/trace.h"

namespace kiln {
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
  return Kernel(std::make_shared<KernelImpl>(found, true));
}

Kernel Kernel::from_function(std::shared_ptr<const frontend::JitFunction> function) {
  return Kernel(std::make_shared<KernelImpl>(std::move(function), false));
}

}  // namespace kiln
