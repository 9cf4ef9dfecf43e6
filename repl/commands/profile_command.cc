#include "repl/commands/profile_command.h"

#include <unistd.h>

#include <algorithm>

#include "profiler/profile/advisor.h"
#include "profiler/profile/tables.h"
#include "profiler/session/session.h"
#include "repl/commands/profile_files.h"
#include "repl/shell/errors.h"
#include "repl/shell/files.h"
#include "repl/shell/shell.h"

namespace kiln::repl {

namespace {

Result<profiler::ProfileView> view_of(const ProfileArgs& args) {
  profiler::ProfileView view;
  if (!args.sort.empty()) {
    KILN_TRY(view.ops.sort, profiler::parse_op_sort(args.sort));
  }
  view.ops.rows = args.rows, view.ops.by_shape = args.shapes, view.ops.lines = args.lines;
  view.memory = args.memory, view.streams = args.streams;
  return view;
}

/// Statements are no rows of the tables unless they are asked for, and parsing the script is none.
bool is_empty(const profiler::Timeline& t, bool lines) {
  auto hidden = [&](const profiler::Span& s) {
    return (s.step == trace::Step::kStatement && !lines) || s.step == trace::Step::kPhase;
  };
  return t.calls.empty() && t.work.empty() && t.memory.empty() && std::all_of(t.spans.begin(), t.spans.end(), hidden);
}

void print(const ProfileResult& r, report::Format format, bool lines) {
  const report::TextStyle style = report::style_of(STDOUT_FILENO);
  if (format == report::Format::kText && is_empty(r.timeline, lines)) {
    put(stdout, "\nnothing was seen: no kernel, no operation on tensors, no copy\n");
    return;
  }
  for (const profiler::NamedTable& t : r.tables) {
    // JSON has one document a line; other formats have a blank line between tables.
    if (format != report::Format::kJson) put(stdout, "\n");
    put(stdout, report::format(t.table, format, style));
  }
  if (format == report::Format::kText)
    put(stdout, "\n" + profiler::findings_text(r.findings, style));
  else
    put(stdout, report::format(profiler::findings_table(r.findings), format));
}

}  // namespace

int profile_command(Options options) {
  const ProfileArgs args = options.profile;
  auto refuse = [&](const Diagnostic& d, int code) {
    print_error(d, options.json);
    return code;
  };
  const ProfileFiles files{args.html, args.trace, args.json, args.csv};
  auto view = view_of(args);
  if (!view.ok()) return refuse(view.error(), kExitUsage);
  auto text = read_text(args.file);
  if (!text.ok()) return refuse(text.error(), kExitUsage);
  // Before the script runs, which may take hours.
  if (Status s = files.check(); !s.ok()) return refuse(s.error(), kExitUsage);

  options.args.insert(options.args.begin(), args.file);
  Shell shell(options, nullptr);
  if (Status s = shell.open_device(); !s.ok()) return refuse(s.error(), kExitError);
  auto device = shell.session().device();
  if (!device.ok()) return refuse(device.error(), kExitError);
  profiler::SessionOptions session;
  if (args.shapes) session.details |= trace::kShapes;
  // A trace shows steps one by one, which tables only add up.
  if (!args.trace.empty() || !args.html.empty()) session.details |= trace::kSteps | trace::kShapes;
  auto profile = profiler::ProfileSession::start(*device, session);
  if (!profile.ok()) return refuse(profile.error(), kExitError);
  const int code = shell.run_program(*text, args.file);
  // Also after an error of the script, which says itself what failed.
  auto timeline = (*profile)->stop();
  if (!timeline.ok()) return refuse(timeline.error(), code ? code : kExitError);
  if (auto kind = shell.ended_by())
    timeline->unknown.push_back(
        profiler::cut_short(*kind == ErrorKind::kInterrupted ? "Ctrl-C" : "the error that ended the script"));

  ProfileResult result{args.file, *timeline, profiler::profile_tables(*timeline, *view), profiler::advise(*timeline)};
  add_roofline(*device, view->ops, result);
  print(result,
        options.json    ? report::Format::kJson
        : args.markdown ? report::Format::kMarkdown
                        : report::Format::kText,
        args.lines);
  // The script's own exit code goes first.
  if (Status s = write_files(files, result); !s.ok()) return refuse(s.error(), code ? code : kExitError);
  return code;
}

}  // namespace kiln::repl
