#include "repl/magics/why_kernel.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <set>

#include "repl/magics/compile_stages.h"
#include "repl/magics/kernel_target.h"
#include "repl/magics/magic_arguments.h"
#include "repl/magics/magics.h"
#include "support/diag.h"

namespace kiln::repl {

namespace {

using report::Align;

report::Table remark_table(const std::vector<ShownRemark>& remarks) {
  std::set<std::string> files;
  for (const ShownRemark& r : remarks) files.insert(r.place.file);
  report::Table table(
      {{"line", ""}, {"kind", "", Align::kLeft}, {"remark", "", Align::kLeft}, {"pass", "", Align::kLeft}});
  for (const ShownRemark& r : remarks) {
    report::Cell line = report::Cell::of(int64_t{r.place.line});
    if (files.size() > 1) line = fmt::format("{}:{}", r.place.file, r.place.line);  // of a helper elsewhere
    table.add_row({std::move(line), r.kind, r.text, r.pass});
  }
  return table;
}

}  // namespace

bool names_kernel(MagicContext& context, std::string_view text) {
  const std::string_view first = text.substr(0, text.find(' '));
  auto in_name = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.'; };
  return !first.empty() && std::ranges::all_of(first, in_name) && context.session.kernel(std::string(first)).ok();
}

Status why_kernel(MagicContext& context, std::string_view text) {
  KILN_TRY(const MagicArguments a, parse_magic_arguments(text, magic_options("why"), {.other_names = true}));
  if (a.expressions.size() != 1) return error(ErrorKind::kValue, "%why takes one kernel, got {}", a.expressions.size());
  if (a.has("--variant"))
    return error(ErrorKind::kValue, "--variant is for expressions; {} is a kernel", a.expressions[0]);
  KILN_TRY(Kernel kernel, context.session.kernel(a.expressions[0]));
  std::string target = a.text("target");
  const std::string pass = a.text("pass");
  if (target.empty()) {
    KILN_TRY(target, gpu_target_of(context, kernel));
  } else if (!is_gpu_target(target)) {
    return error(ErrorKind::kValue, "target= is a GPU target, as {} is, not '{}'", kDefaultGpuTarget, target);
  }
  KILN_TRY(ShownRemarks shown, show_remarks({kernel, other_values(a, magic_options("why")), target}));
  if (!pass.empty()) std::erase_if(shown.remarks, [&](const ShownRemark& r) { return r.pass != pass; });
  if (shown.remarks.empty() && shown.problem.ok()) {
    context.output(fmt::format("no pass has a remark on {} for {}\n", kernel.name(), target));
    return {};
  }
  report::Table table = remark_table(shown.remarks);
  table.add_note(fmt::format("compiled for {}, not run", target));
  if (!shown.assumptions.empty()) table.add_note(shown.assumptions);
  if (!shown.remarks.empty()) context.print(table);
  return shown.problem;
}

}  // namespace kiln::repl
