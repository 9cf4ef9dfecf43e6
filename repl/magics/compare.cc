// %compare.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "profiler/compare/compare.h"
#include "profiler/measure/timer.h"
#include "repl/editor/terminal.h"
#include "repl/magics/compare.h"
#include "repl/magics/magic_arguments.h"
#include "repl/magics/magics.h"
#include "repl/magics/settings.h"
#include "repl/shell/files.h"
#include "repl/views/contest_value.h"
#include "support/diag.h"
#include "support/files.h"
#include "support/text_width.h"

namespace kiln::repl {

namespace {

Result<size_t> baseline_of(const std::string& text, const std::vector<std::string>& names) {
  if (!text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; })) {
    const size_t number = text.size() < 6 ? std::stoul(text) : 0;
    if (number >= 1 && number <= names.size()) return number - 1;
    return error(ErrorKind::kValue, "base= counts from 1 to {}, got {}", names.size(), text);
  }
  std::vector<size_t> found;
  for (size_t i = 0; i < names.size(); ++i) {
    if (names[i] == text) return i;
    if (names[i].find(text) != std::string::npos) found.push_back(i);
  }
  if (found.size() == 1) return found[0];
  return error(ErrorKind::kName, "base={} names {} of the contenders: {}", text, found.empty() ? "none" : "several",
               fmt::join(names, " | "));
}

}  // namespace

Status compare_expressions(MagicContext& context, std::string_view text, const std::vector<std::string>& row_names) {
  const editor::QuietKeys quiet;  // keys that are typed ahead would stand in the progress
  KILN_TRY(MagicArguments arguments, parse_magic_arguments(text, magic_options("compare")));
  add_budget(context, arguments);
  const double start = profiler::steady_seconds();
  const auto stopped = context.session.interrupt_watch();
  KILN_TRY(ContenderSet set, make_contenders(context.session, context.variants, arguments));
  for (size_t i = 0; i < row_names.size(); ++i) set.contenders[i].name = row_names[i];
  if (set.contenders.size() == 1) {
    KILN_CHECK_OK(std::move(set.contenders[0].problem));
    return with_note(error(ErrorKind::kValue, "'{}' has no variants, so there is nothing to compare it with",
                           arguments.expressions[0]),
                     "help: %compare A, B compares two launches or calls; %bench measures one");
  }
  KILN_TRY(profiler::ContestOptions options, contest_options(context.session, arguments));
  options.stop = stopped;
  // A CPU's samples are long, and their verdicts seldom change after some seconds.
  constexpr double kHostSeconds = 10, kHostAnswer = 28;
  if (!arguments.has("budget") && !arguments.has("pairs") && !set.contenders[set.baseline].device.is_cuda()) {
    options.timeout_s = kHostSeconds;
    options.due_s = std::max(kHostAnswer - (profiler::steady_seconds() - start), 1.0);
    if (options.progress && !context.session.on_progress)
      options.announce = [](const std::string& what) { put(stderr, fmt::format("\r\033[K{}\n", printable(what))); };
  }
  options.check = set.check;
  options.reference = set.reference;
  options.baseline = set.baseline;
  if (const std::string* base = arguments.find("base")) {
    std::vector<std::string> names;
    for (const profiler::Contender& c : set.contenders) names.push_back(c.name);
    KILN_TRY(options.baseline, baseline_of(*base, names));
  }
  auto contest = profiler::run_contest(std::move(set.contenders), options);
  if (options.progress) options.progress("");
  if (!contest.ok()) return std::move(contest.error());
  context.session.forget_interrupt();
  context.print(profiler::contest_table(*contest));
  if (arguments.has("-v")) context.print(profiler::contest_details(*contest), "details");
  context.yield.details = contest_value(*contest);
  if (const std::string* file = arguments.find("--json"))
    KILN_CHECK_OK(write_file_atomic(*file, profiler::contest_json(*contest)));
  if (std::vector<std::string> wrong = contest->wrong(); !wrong.empty())
    return error(ErrorKind::kMismatch, "{} of {} contenders give a wrong result: {}", wrong.size(),
                 contest->rows.size(), fmt::join(wrong, " | "));
  return {};
}

Status magic_compare(MagicContext& context, std::string_view text) { return compare_expressions(context, text); }

}  // namespace kiln::repl
