// ---- PASS… [target=NAME] [roles=per_operand]
//     the passes of that target's pipeline (host when not named), each verified; per_operand: of warps, other roles
//     than those of the pipeline (tests/unit/passes/roles.h)
#include <sstream>

#include "compiler/passes/pass.h"
#include "support/diag.h"
#include "tests/golden/golden.h"
#include "tests/unit/passes/roles.h"

namespace kiln {
namespace {

std::string run_passes(const golden::Input& in) {
  auto module = ir::parse_module(SourceText::make(in.file, in.text));
  if (!module) return render(module.error());
  std::vector<std::string> names;
  std::string target_name = "host", word;
  bool per_operand = false;
  for (std::istringstream words(in.command); words >> word;)
    if (word.starts_with("target="))
      target_name = word.substr(7);
    else if (word == "roles=per_operand")
      per_operand = true;
    else
      names.push_back(word);
  const target::Target* target = target::find(target_name);
  if (!target) return "unknown target " + target_name;
  std::vector<passes::Pass> chosen;
  for (const std::string& name : names) {
    const passes::Pass* found = nullptr;
    for (const passes::Pass& p : passes::pipeline(target->kind))
      if (p.name == name) found = &p;
    if (!found) return "unknown pass " + name;
    chosen.push_back(*found);
  }
  passes::RunOptions options;
  options.verify_each = true;
  // What stands before in the pipeline is taken to have run.
  passes::Context context{*target};
  passes::Properties given = 0;
  for (const passes::Pass& p : chosen) {
    context.holds |= p.needs & ~given;
    given |= p.gives;
  }
  context.guard_accesses = context.launch_pdl = true;
  if (per_operand) context.roles = passes::kProducerPerOperand;
  const Status s = passes::run(chosen, **module, context, options);
  return s.ok() ? ir::print(**module) : render(s.error());
}

const bool kRegistered = golden::register_folder("passes", run_passes);

}  // namespace
}  // namespace kiln
