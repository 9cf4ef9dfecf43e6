// The prompt's % commands: one table feeds dispatch, %help and completion.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "kiln/expr.h"
#include "kiln/result.h"
#include "profiler/profile/advisor.h"
#include "profiler/profile/tables.h"
#include "profiler/profile/timeline.h"
#include "profiler/report/table.h"
#include "repl/magics/contenders.h"
#include "repl/session/session.h"
#include "support/text_width.h"

namespace kiln::repl {

/// A kernel of an expression's plan as the user edited it: another row of its comparison.
struct ExpressionEdit {
  ExprVariant variant = ExprVariant::kFused;
  size_t group = 0;
  ExprGroup as;
  std::string name;
};

/// The profile that was taken last, with the statement that it is of, and what was said and seen of it besides.
struct TakenProfile {
  std::string statement;
  profiler::Timeline timeline;
  profiler::OpsOptions ops;
  std::vector<profiler::KernelFigures> figures;
  std::vector<profiler::KernelSource> sources;
  std::vector<profiler::NamedTable> more;  // "counters"
};

/// What the running command gives as its value: repl/modules/results/table_object.h.
struct MagicYield {
  std::vector<report::NamedTable> tables;  // printed ones; the first is the one to index
  script::Value details;                   // a list with a dict for each row of the first table, beside its columns
  script::Value fields;                    // a dict: what is of the whole table
  script::Value value;                     // of an assigned command without a table, in place of its text
};

/// What magics see and may change.
struct MagicContext {
  script::Session& session;
  std::function<void(std::string_view)> output;
  report::Format format = report::Format::kText;
  bool color = false;
  std::function<int()> columns = {};  // of the terminal; empty, or 0: tables are as wide as they are
  ExpandVariants variants = {};       // of expressions: what %compare and %sweep make of one
  std::string target = {};  // set by %target: what kernels are compiled for when they are shown; empty: the device's
  std::map<std::string, std::vector<ExpressionEdit>> edits = {};  // by the expression's text
  std::shared_ptr<const TakenProfile> last_profile = {};          // null: none yet
  // As %set has them (settings.h).
  std::string color_choice = "auto";
  int width = 0;            // of tables; 0: the terminal's
  bool may_page = true;     // long output goes to a pager, at a prompt on a terminal
  std::string budget = {};  // of a measurement that names none; empty: the command's own

  std::vector<std::string> history = {};  // entries of this session, oldest first
  /// Runs a program, % commands included, in the session. Set by the shell.
  std::function<Status(const std::string& text, const std::string& file)> run_program = {};
  int run_depth = 0;                                // of %run within %run
  bool may_run_shell = true;                        // ! and %sh
  std::string last_folder = {};                     // before the last %cd; empty: none
  std::map<std::string, std::string> timings = {};  // of launches, by kernel: what %bench found last

  bool is_assigned = false;  // r = %name …: tables are not printed
  MagicYield yield = {};

  /// By the setting `color`; auto: as the stream is.
  bool wants_color(int fd) const {
    return color_choice == "always" || (color_choice == "auto" && report::wants_color(fd));
  }
  report::TextStyle style() const { return {color, width > 0 ? width : columns ? columns() : 0, "print(_.to_text())"}; }
  /// Prints lines of words, broken at blanks where the terminal is narrower. Names of files and the like may hold
  /// anything, so what a terminal would act on is escaped.
  void say(std::string_view text) const { output(wrap_lines(printable(text), style().width)); }
  /// Prints a table, which becomes a part of the command's value; the name is for those behind the first.
  void print(const report::Table& table, std::string name = {});
};

/// While one lives, what commands print goes elsewhere.
class Redirected {
 public:
  Redirected(MagicContext& context, std::function<void(std::string_view)> to)
      : context_(context), before_(std::exchange(context.output, std::move(to))) {}
  ~Redirected() { context_.output = std::move(before_); }
  Redirected(const Redirected&) = delete;
  Redirected& operator=(const Redirected&) = delete;
  /// Past the redirection.
  void print(std::string_view text) const { before_(text); }

 private:
  MagicContext& context_;
  std::function<void(std::string_view)> before_;
};

struct Magic {
  std::string_view name;      // without the %
  std::string_view synopsis;  // what follows the name
  std::string_view help;      // one line
  Status (*run)(MagicContext& context, std::string_view arguments);
};

std::span<const Magic> magics();

/// What `%help NAME` prints: synopsis, options with their values and defaults, examples.
std::string describe_magic(const Magic& magic);
/// The same as a table, for the other formats: a row for the command, each option and each example.
report::Table magic_table(const Magic& magic);

/// Runs "%name arguments" (with or without the %). kName, with the nearest one, when there is no such magic.
Status run_magic(MagicContext& context, std::string_view line);

/// What became of a command, and its value: missing where it printed no table. With `is_assigned` nothing is printed,
/// and without a table the value is the text, or None. An error may come with a value, of what was done before it.
struct MagicResult {
  Status status;
  script::Value value;
  std::string text = {};  // what was not printed, for `is_assigned`
};
MagicResult run_magic_for_value(MagicContext& context, std::string_view line, bool is_assigned);

// --- handlers, by file
// -------------------------------------------------------------------------------------------------
Status magic_time(MagicContext&, std::string_view);  // measure.cc
Status magic_bench(MagicContext&, std::string_view);
Status magic_compare(MagicContext&, std::string_view);   // compare.cc
Status magic_counters(MagicContext&, std::string_view);  // counters.cc
Status magic_roofline(MagicContext&, std::string_view);  // roofline.cc
Status magic_sweep(MagicContext&, std::string_view);     // sweep.cc
Status magic_tune(MagicContext&, std::string_view);      // tune.cc
Status magic_profile(MagicContext&, std::string_view);   // profile.cc
Status magic_dispatch(MagicContext&, std::string_view);  // dispatch.cc
Status magic_source(MagicContext&, std::string_view);    // fusion.cc
Status magic_plan(MagicContext&, std::string_view);
Status magic_why(MagicContext&, std::string_view);
Status magic_edit(MagicContext&, std::string_view);
Status magic_check(MagicContext&, std::string_view);  // check.cc
Status magic_trace(MagicContext&, std::string_view);  // trace.cc
Status magic_report(MagicContext&, std::string_view);
Status magic_ast(MagicContext&, std::string_view);  // kernel.cc
Status magic_ir(MagicContext&, std::string_view);
Status magic_layout(MagicContext&, std::string_view);
Status magic_llvm(MagicContext&, std::string_view);
Status magic_ptx(MagicContext&, std::string_view);
Status magic_asm(MagicContext&, std::string_view);
Status magic_cubin(MagicContext&, std::string_view);
Status magic_static(MagicContext&, std::string_view);
Status magic_occupancy(MagicContext&, std::string_view);
Status magic_target(MagicContext&, std::string_view);
Status magic_run(MagicContext&, std::string_view);  // run.cc
Status magic_history(MagicContext&, std::string_view);
Status magic_save(MagicContext&, std::string_view);
Status magic_load(MagicContext&, std::string_view);
Status magic_cd(MagicContext&, std::string_view);
Status magic_sh(MagicContext&, std::string_view);     // shell_command.cc
Status magic_set(MagicContext&, std::string_view);    // settings.cc
Status magic_stats(MagicContext&, std::string_view);  // diff.cc
Status magic_diff(MagicContext&, std::string_view);
Status magic_lines(MagicContext&, std::string_view);  // lines.cc
Status magic_sass(MagicContext&, std::string_view);

}  // namespace kiln::repl
