// %tune.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>

#include "profiler/measure/stats.h"
#include "profiler/tune/records.h"
#include "repl/editor/terminal.h"
#include "repl/magics/contenders.h"
#include "repl/magics/magic_arguments.h"
#include "repl/magics/magics.h"
#include "repl/magics/progress.h"
#include "repl/magics/tune_arguments.h"
#include "repl/modules/triton/session_records.h"
#include "repl/session/tune_launch.h"
#include "support/diag.h"
#include "support/files.h"

namespace kiln::repl {

namespace {

using profiler::TuneRow;
using profiler::TuneState;
using report::Align;
using report::Cell;
using report::Table;

constexpr size_t kShownRows = 10;
constexpr const char* kUsage =
    "help: %tune KERNEL[GRID](…) NAME=[…] budget=10s check=on|off|NAMES bounds=on|off cache=cold|hot -v --json FILE";

Result<TuneArguments> parse_arguments(std::string_view text) {
  auto parse = [&]() -> Result<TuneArguments> {
    KILN_TRY(MagicArguments given,
             parse_magic_arguments(text, magic_options("tune"), {.other_names = true, .needs_expression = false}));
    return read_tune_arguments(given);
  };
  auto parsed = parse();
  // An error about a value says enough; others are about the form of the line.
  if (parsed.ok() || parsed.error().kind == ErrorKind::kValue) return parsed;
  return with_note(std::move(parsed.error()), kUsage);
}

/// One line that is rewritten on a terminal; elsewhere a line for each phase.
class ProgressLine {
 public:
  explicit ProgressLine(const script::Session& session) : session_(session), is_shown_(shows_progress(session)) {}
  ~ProgressLine() { clear(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  void show(const profiler::TuneProgress& p, std::span<const profiler::TuneCandidate> candidates) {
    if (!is_shown_) {
      if (last_ != p.phase) std::fprintf(stderr, "%s %d configurations\n", std::string(name(p.phase)).c_str(), p.total);
      last_ = p.phase;
      return;
    }
    // Ten times a second: drawing costs the CPU that compiles.
    if (last_ == p.phase && p.elapsed_s - shown_s_ < kRedraw_s) return;
    last_ = p.phase;
    shown_s_ = p.elapsed_s;
    std::string line;
    if (p.phase == profiler::TunePhase::kMeasuring)
      line = fmt::format("measuring: {} of {} left", p.done, p.total);
    else
      line = fmt::format("{}: {} of {}", name(p.phase), p.done, p.total);
    if (p.best >= 0)
      line += fmt::format(", best so far {} ({})", report::human_time(p.best_us),
                          candidates[static_cast<size_t>(p.best)].config);
    if (p.left_s > 0) line += "  " + time_left(p.elapsed_s, p.left_s);
    line += " (Ctrl-C keeps the best)";
    tell_progress(session_, line);
    drawn_ = true;
  }
  void clear() {
    if (drawn_) tell_progress(session_, "");
    drawn_ = false;
  }

 private:
  static constexpr double kRedraw_s = 0.1;
  const script::Session& session_;
  bool is_shown_, drawn_ = false;
  std::optional<profiler::TunePhase> last_;
  double shown_s_ = 0;
};

Cell or_unknown(bool known, Cell cell, const char* why) { return known ? std::move(cell) : Cell::unknown(why); }

Table rows_table(const script::TuneOutcome& o, bool verbose) {
  const profiler::TuneResult& r = o.result;
  const bool gpu = o.device.is_cuda();
  std::vector<report::Column> columns = {{"configuration", "", Align::kLeft, "config"},
                                         {"median", "us"},
                                         {"±", "%", Align::kRight, "spread"},
                                         {"samples", ""},
                                         {"against now", "x", Align::kRight, "speedup"}};
  if (gpu) columns.insert(columns.end(), {{"registers", ""}, {"spills", "B"}, {"shared", "B"}, {"occupancy", "%"}});
  columns.push_back({"compiled", "ms"});
  if (verbose) columns.insert(columns.end(), {{"state", "", Align::kLeft}, {"why", "", Align::kLeft}});
  Table table(std::move(columns));
  table.set_title(fmt::format("{} on {}", o.kernel, o.device.name()));

  std::vector<size_t> order(r.rows.size());
  std::iota(order.begin(), order.end(), size_t{0});
  auto rank = [&](size_t i) {
    const TuneRow& row = r.rows[i];
    const bool measured = row.state == TuneState::kMeasured;
    // The best, then what was measured (those that came farthest first), then the rest by state.
    return std::tuple(static_cast<int>(i) != r.best, !measured, measured ? -row.rung : static_cast<int>(row.state),
                      row.median_us());
  };
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return rank(a) < rank(b); });
  const double now = r.rows[static_cast<size_t>(o.present)].median_us();
  size_t shown = 0;
  for (size_t i : order) {
    const TuneRow& row = r.rows[i];
    const bool measured = row.state == TuneState::kMeasured, is_present = static_cast<int>(i) == o.present;
    // The launch as it stands is shown wherever it comes.
    if (!verbose && (!measured || (shown >= kShownRows && !is_present))) continue;
    ++shown;
    const double us = row.median_us();
    auto figure = [&](bool has, double v, int digits) { return has ? Cell::of(v, digits) : Cell(""); };
    std::vector<Cell> cells = {row.config + (is_present ? " (now)" : ""), figure(measured, us, us < 100 ? 2 : 1),
                               figure(measured, profiler::summarize(row.us).spread() * 100, 1),
                               measured ? Cell::of(static_cast<int64_t>(row.us.size())) : Cell(""),
                               // Above 1: faster than the launch as it stands.
                               figure(measured && now > 0, now / us, 2)};
    if (gpu) {
      constexpr const char* kWhy = "it did not compile, or there is no linker to tell";
      cells.push_back(or_unknown(row.registers >= 0, Cell::of(int64_t{row.registers}), kWhy));
      cells.push_back(or_unknown(row.spill_bytes >= 0, Cell::of(row.spill_bytes), kWhy));
      cells.push_back(or_unknown(row.registers >= 0, Cell::of(row.shared_bytes), kWhy));
      cells.push_back(or_unknown(row.occupancy >= 0, Cell::of(row.occupancy * 100, 1), kWhy));
    }
    cells.push_back(figure(row.compile_ms > 0, row.compile_ms, 0));
    if (verbose) {
      cells.push_back(std::string(name(row.state)));
      cells.push_back(row.reason);
    }
    table.add_row(std::move(cells));
  }
  return table;
}

/// "3 failed: the size of tl.arange must be a power of two, got 48; …", for each state but measured.
void add_state_notes(Table& table, const script::TuneOutcome& o) {
  constexpr size_t kMostReasons = 2;
  for (TuneState state : {TuneState::kPruned, TuneState::kFailed, TuneState::kWrong, TuneState::kSkipped}) {
    std::map<std::string, int> reasons;
    for (const TuneRow& row : o.result.rows)
      if (row.state == state) ++reasons[row.reason];
    if (reasons.empty()) continue;
    std::string text;
    size_t n = 0;
    for (const auto& [reason, count] : reasons) {
      if (n++ == kMostReasons) {
        text += "; … (-v shows all)";
        break;
      }
      text += (text.empty() ? "" : "; ") + reason + (count > 1 ? fmt::format(" ({} times)", count) : "");
    }
    table.add_note(fmt::format("{} {}: {}", o.result.count(state), name(state), text));
  }
}

std::string verdict_text(const script::TuneOutcome& o) {
  const std::string now = o.result.rows[static_cast<size_t>(o.present)].config;
  // With nothing to compare there is no verdict.
  if (o.result.best == o.present) return fmt::format("the launch as it stands ({}) is the best of these", now);
  if (!o.against) return "";
  const profiler::Comparison& c = *o.against;
  return fmt::format("{} {:.2f}x [{:.2f}, {:.2f}] than the launch as it stands ({}), over {} pairs in turns",
                     name(c.verdict), c.speedup, c.speedup_95.low, c.speedup_95.high, now, c.pairs);
}

std::string outcome_json(const script::TuneOutcome& o) {
  using nlohmann::ordered_json;
  ordered_json j = ordered_json::parse(to_json(o.result));
  j["kernel"] = o.kernel;
  j["device"] = o.device.info().name;
  j["present"] = o.present;
  for (size_t i = 0; i < o.configs.size(); ++i) j["configurations"][i]["source"] = o.configs[i];
  if (o.against)
    j["against_present"] = {{"verdict", name(o.against->verdict)},
                            {"speedup", o.against->speedup},
                            {"speedup_95", {o.against->speedup_95.low, o.against->speedup_95.high}},
                            {"pairs", o.against->pairs}};
  return j.dump(1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

Status forget(MagicContext& context, const std::string& launch) {
  // "kernel[grid](…)": records are kept by the kernel's name.
  const std::string kernel = launch.substr(0, launch.find_first_of("[("));
  KILN_TRY(int count, script::tune_records(context.session.interp()).forget(kernel));
  context.output(fmt::format("{} tuning record{} removed\n", count, count == 1 ? "" : "s"));
  return {};
}

}  // namespace

Status magic_tune(MagicContext& context, std::string_view arguments) {
  const editor::QuietKeys quiet;  // keys that are typed ahead would stand in the progress
  KILN_TRY(TuneArguments a, parse_arguments(arguments));
  if (a.forget) return forget(context, a.request.launch);
  ProgressLine progress(context.session);
  a.request.on_progress = [&](const profiler::TuneProgress& p, std::span<const profiler::TuneCandidate> candidates) {
    progress.show(p, candidates);
  };
  auto tuned = script::tune_launch(context.session, a.request);
  progress.clear();
  if (!tuned.ok()) return std::move(tuned.error());
  const script::TuneOutcome& o = *tuned;
  Table table = rows_table(o, a.verbose);
  if (!a.verbose) add_state_notes(table, o);
  for (const std::string& note : o.notes) table.add_note(note);
  const profiler::TuneResult& r = o.result;
  if (r.from_records)
    table.add_note(fmt::format("found by an earlier run; %tune --forget {} removes it", o.kernel));
  else
    table.add_note(fmt::format("{:.1f} s: {:.1f} s compiling, {:.1f} s measuring{}", r.total_s, r.compile_s,
                               r.measure_s, r.interrupted ? ", stopped by Ctrl-C" : ""));
  if (std::string verdict = verdict_text(o); !verdict.empty()) table.add_note(verdict);
  table.add_note("best: " + o.configs[static_cast<size_t>(r.best)]);
  context.print(table);
  context.yield.fields = o.value;
  if (!a.json_file.empty()) KILN_CHECK_OK(write_file_atomic(a.json_file, outcome_json(o)));
  return {};
}

}  // namespace kiln::repl
