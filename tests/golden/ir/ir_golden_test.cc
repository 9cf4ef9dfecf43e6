// ---- print      parses, verifies and prints; bad_*.txt show the diagnostic
#include "compiler/ir/ir.h"
#include "tests/golden/golden.h"

namespace kiln {
namespace {

std::string print_again(const golden::Input& in) {
  if (in.command != "print") return "unknown command " + in.command;
  auto module = ir::parse_module(SourceText::make(in.file, in.text));
  if (!module) return render(module.error());
  const Status s = ir::verify(**module);
  return s.ok() ? ir::print(**module) : render(s.error());
}

const bool kRegistered = golden::register_folder("ir", print_again);

}  // namespace
}  // namespace kiln
