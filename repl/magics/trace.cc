// %trace and %report.
#include <fmt/format.h>

#include <vector>

#include "profiler/profile/advisor.h"
#include "profiler/profile/chrome_trace.h"
#include "profiler/profile/html.h"
#include "profiler/profile/tables.h"
#include "repl/commands/profile_files.h"
#include "repl/magics/hardware_look.h"
#include "repl/magics/line_parts.h"
#include "repl/magics/magics.h"
#include "repl/magics/profile_run.h"
#include "repl/magics/statement_arguments.h"
#include "support/diag.h"
#include "support/files.h"
#include "support/text.h"

namespace kiln::repl {

namespace {

/// Everything that a trace can show, dispatch steps and shapes too.
Result<ProfileRunOptions> run_options(const MagicArguments& arguments) {
  ProfileRunOptions run;
  run.session.details |= trace::kSteps | trace::kShapes;
  struct Row {
    const char* name;
    int64_t* value;
    int64_t least;
  };
  for (const Row& r : {Row{"wait", &run.schedule.wait, 0}, Row{"warmup", &run.schedule.warmup, 0},
                       Row{"active", &run.schedule.active, 1}})
    if (const std::string* text = arguments.find(r.name)) {
      KILN_TRY(*r.value, count_of(*text, std::string(r.name) + "=", r.least));
    }
  return run;
}

Status take_profile(MagicContext& context, const MagicArguments& arguments, std::span<const MagicOption> options) {
  KILN_TRY(ProfileRunOptions run, run_options(arguments));
  KILN_TRY(Declared declared, declared_by(context.session, arguments));
  const std::string& statement = arguments.expressions[0];
  auto cycles = profile_cycles(context.session, statement, run);
  if (!cycles.ok()) return explain_statement(std::move(cycles.error()), statement, options);
  TakenProfile taken{statement, std::move(cycles->timelines.back()), {}, {}, {}, {}};
  taken.ops.flop = declared.flop, taken.ops.bytes = declared.bytes, taken.ops.product = declared.product;
  if (cycles->interrupted.ok() && arguments.has("counters")) KILN_CHECK_OK(add_hardware_look(context, {}, taken));
  context.last_profile = std::make_shared<TakenProfile>(std::move(taken));
  return {};
}

/// "STATEMENT > FILE.json" in its two parts; the file is empty where the statement ends in no such thing: `a > b` is a
/// comparison.
std::pair<std::string_view, std::string_view> split_redirection(std::string_view text) {
  constexpr std::string_view kExtension = ".json";
  const size_t arrow = text.rfind('>');
  if (arrow == std::string_view::npos) return {text, {}};
  std::string_view file = trimmed(text.substr(arrow + 1));
  if (file.size() > 2 && (file.front() == '"' || file.front() == '\'') && file.back() == file.front())
    file = file.substr(1, file.size() - 2);
  else if (file.find_first_of(" \t") != std::string_view::npos)
    return {text, {}};
  if (!file.ends_with(kExtension)) return {text, {}};
  return {trimmed(text.substr(0, arrow)), file};
}

Result<ProfileResult> result_of(MagicContext& context, const TakenProfile& profile) {
  profiler::ProfileView view;
  view.ops = profile.ops;
  view.memory = !profile.timeline.memory.empty();
  view.streams = true;
  view.ops.rows = 0;
  ProfileResult result{profile.statement, profile.timeline, profiler::profile_tables(profile.timeline, view),
                       profiler::advise(profile.timeline, {profile.figures, profile.sources})};
  result.tables.insert(result.tables.end(), profile.more.begin(), profile.more.end());
  KILN_TRY(Device device, context.session.device());
  add_roofline(device, view.ops, result);
  return result;
}

}  // namespace

Status magic_trace(MagicContext& context, std::string_view text) {
  const auto [rest, redirected] = split_redirection(text);
  KILN_TRY(MagicArguments arguments, parse_statement_arguments(rest, magic_options("trace")));
  if (!redirected.empty() && arguments.has("--out")) return error(ErrorKind::kSyntax, "the file is given twice");
  const std::string file = redirected.empty() ? arguments.text("--out") : std::string(redirected);
  if (file.empty())
    return with_note(error(ErrorKind::kSyntax, "%trace writes a file, and none is given"),
                     "help: %trace STATEMENT > FILE.json, or --out FILE");
  KILN_CHECK_OK(check_writable(file));
  KILN_CHECK_OK(take_profile(context, arguments, magic_options("trace")));
  const profiler::Timeline& t = context.last_profile->timeline;
  KILN_CHECK_OK(profiler::write_chrome_trace(t, file));
  context.say(
      fmt::format("{}: {} host spans, {} calls of the driver, {} kernels and copies; open it in ui.perfetto.dev\n",
                  file, t.spans.size(), t.calls.size(), t.work.size()));
  for (const profiler::Unknown& u : t.unknown) context.say(fmt::format("not known: {}: {}\n", u.what, u.why));
  return {};
}

Status magic_report(MagicContext& context, std::string_view text) {
  const std::vector<std::string_view> words = parts_of(text, Between::kBlanks).words();
  const std::string file(words.empty() ? std::string_view{} : unquoted(words[0]));
  const std::string_view rest = words.size() < 2 ? std::string_view{} : text.substr(words[1].data() - text.data());
  if (!file.ends_with(".html"))
    return with_note(error(ErrorKind::kSyntax, "'{}' is no FILE.html", file), "help: %report FILE.html [STATEMENT]");
  KILN_CHECK_OK(check_writable(file));
  if (!rest.empty()) {
    KILN_TRY(MagicArguments arguments, parse_statement_arguments(rest, magic_options("report")));
    KILN_CHECK_OK(take_profile(context, arguments, magic_options("report")));
  }
  if (!context.last_profile)
    return with_note(error(ErrorKind::kValue, "there is no profile yet"),
                     "help: %report FILE.html STATEMENT takes one");
  KILN_TRY(const ProfileResult result, result_of(context, *context.last_profile));
  KILN_CHECK_OK(profiler::write_html_report(result.timeline, page_of(result), file));
  context.say(fmt::format("{}: {} finding{} about {}\n", file, result.findings.size(),
                          result.findings.size() == 1 ? "" : "s", result.title));
  return {};
}

}  // namespace kiln::repl
