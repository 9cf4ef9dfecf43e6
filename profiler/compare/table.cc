// A contest as a table.
#include <algorithm>
#include <cmath>

#include <fmt/ranges.h>

#include "profiler/compare/compare.h"
#include "support/diag.h"

namespace kiln::profiler {

using report::Align;
using report::Cell;
using report::Table;

namespace {

// Three digits at least: 5.03, 186.2, 12034.
int digits_of(double us) { return us < 10 ? 2 : us < 1000 ? 1 : 0; }

Cell us_cell(double us) { return Cell::of(us, digits_of(us)); }

Cell model_cell(double value, const char* unit, const char* what) {
  if (value < 0) return Cell::unknown(fmt::format("the model of {} is not known; give {}=N", what, what));
  std::string text = report::human_bytes(value);  // "101 MB": the same prefixes serve operations
  text.pop_back();
  return Cell::shown(text + unit, static_cast<int64_t>(value));
}

std::string flag_text(const ContestRow& row) { return flag_names(row.flags); }

bool is_wrong(const ContestRow& row) { return row.check.known() && !row.check.ok(); }

Cell verdict_cell(const Contest& c, size_t i) {
  const ContestRow& row = c.rows[i];
  if (is_wrong(row)) return "WRONG";
  if (!row.problem.ok() && row.decision.pairs == 0) return "failed";
  if (i == c.baseline) return "baseline";
  const Decision& d = row.decision;
  if (d.pairs == 0) return Cell::unknown("stopped before there were pairs");
  std::string text = fmt::format("{} {:.2f}x", name(d.verdict), d.speedup());
  if (d.verdict == Verdict::kUndecided) {
    if (d.cycles_disagree)
      text += " (cycles disagree)";
    else if (d.needed > 0)
      text += fmt::format(" (n≈{})", d.needed);
  }
  return text;
}

Cell error_cell(const ContestRow& row, bool is_reference) {
  if (is_reference) return "reference";
  if (!row.check.known()) return Cell::unknown(row.check.unknown);
  return Cell::shown(row.check.text(), row.check.max_rel);
}

}  // namespace

Table contest_table(const Contest& c) {
  const bool cold = c.cache == Cache::kCold;
  const bool gpu = c.target != "host";
  std::vector<report::Column> heads = {{"variant", "", Align::kLeft},
                                       {"kernels", "", Align::kRight, "", false, -1},
                                       {"bytes", "", Align::kRight, "", false, -1},
                                       {"FLOP", "", Align::kRight, "", false, -1},
                                       {cold ? "cold" : "hot", "us", Align::kRight, "", false, 1},
                                       {"±", "%", Align::kRight, "spread", false, 1},
                                       {cold ? "hot" : "cold", "us"},
                                       {"launch", "us"},
                                       {"graph", "us"},
                                       {"roof", "%"}};
  if (gpu)
    heads.insert(heads.end(), {{"occ", "%", Align::kRight, "occupancy"},
                               {"limit", "", Align::kLeft, "limiter"},
                               {"regs", "", Align::kRight, "registers"},
                               {"spills", "B"}});
  heads.insert(heads.end(), {{"error", "", Align::kLeft, "", false, 1},
                             {"speed-up", "", Align::kRight, "speedup", true},
                             {"verdict", "", Align::kLeft, "", false, 2}});
  Table table(std::move(heads));
  bool has_graph = false;
  for (size_t i = 0; i < c.rows.size(); ++i) {
    const ContestRow& row = c.rows[i];
    const Facts& f = row.facts;
    const bool failed = !row.problem.ok() && !row.is_measured();
    const std::string no_sample = failed ? "" : "not measured";
    auto blank = [&](const std::string& why) { return failed || why.empty() ? Cell::none() : Cell::unknown(why); };
    Summary us = row.us();
    auto median_of = [&](const std::vector<double>& v, const std::string& why) {
      return v.empty() ? blank(why) : us_cell(median(v));
    };
    std::vector<Cell> cells = {
        row.name,
        row.launches >= 0   ? Cell::of(row.launches)
        : f.kernels.empty() ? blank("not counted")
                            : Cell::of(static_cast<int64_t>(f.kernels.size())),
        failed ? Cell::none() : model_cell(f.bytes, "B", "bytes"),
        f.flop > 0 ? model_cell(f.flop, "", "flop") : Cell::none(),
        us.n > 0 ? us_cell(us.median) : blank(no_sample),
        us.n > 1 ? Cell::of(us.spread() * 100, 1) : blank(""),
        median_of(row.other_us, ""),
        row.call_us() >= 0 ? us_cell(row.call_us()) : blank(gpu ? "" : "the work is done within the call"),
        median_of(row.graph_us, row.no_graph),
        row.roof ? Cell::of(row.roof->share * 100, 0) : blank(row.no_roof)};
    if (row.roof) cells.back().text += row.roof->bound == "memory" ? " mem" : " math";
    has_graph = has_graph || !row.graph_us.empty();
    if (gpu) {
      const bool known = f.registers >= 0;
      cells.insert(cells.end(), {f.occupancy >= 0 ? Cell::of(f.occupancy * 100, 0) : Cell::none(),
                                 f.limiter.empty() ? Cell::none() : Cell(f.limiter),
                                 known ? Cell::of(int64_t{f.registers}) : Cell::none(),
                                 f.spill_bytes >= 0 ? Cell::of(f.spill_bytes) : Cell::none()});
    }
    cells.push_back(failed ? Cell::none() : error_cell(row, i == c.baseline && c.reference == row.name));
    cells.push_back(row.decision.pairs > 0 ? Cell::of(row.decision.speedup(), 4) : Cell::none());
    cells.push_back(verdict_cell(c, i));
    table.add_row(std::move(cells));
  }
  for (size_t i = 0; i < c.rows.size(); ++i) {
    const ContestRow& row = c.rows[i];
    if (!row.problem.ok()) table.add_note(fmt::format("{}: {}", row.name, row.problem.error().message));
    if (!row.facts.note.empty()) table.add_note(fmt::format("{}: {}", row.name, row.facts.note));
    if (is_wrong(row))
      table.add_note(fmt::format("{}: its result is wrong (against {}, tolerance {:.1e}), so its time is meaningless",
                                 row.name, c.reference, row.check.tolerance));
    if (std::string flags = flag_text(row); !flags.empty()) table.add_note(fmt::format("{}: {}", row.name, flags));
  }
  if (c.interrupted) table.add_note("interrupted: verdicts use the pairs until then");
  if (!c.cut.empty())
    table.add_note(c.cut);
  else if (c.timed_out)
    table.add_note("the budget ended before every row was decided; raise it with budget=SECONDS");
  table.add_note(fmt::format("{} ({}){}{}; ± is half the interquartile range", c.device, c.hardware,
                             c.method.empty() ? "" : ", ", c.method));
  if (has_graph) table.add_note(fmt::format("graph: one of many replays back to back, hot caches"));
  std::string ceilings;
  for (const auto* ceiling : {&c.memory, &c.math})
    if (*ceiling)
      ceilings += fmt::format("{}{:.4g} {} ({})", ceilings.empty() ? "" : ", ",
                              (*ceiling)->per_us / (ceiling == &c.memory ? 1e3 : 1e6),
                              ceiling == &c.memory ? "GB/s" : "TFLOP/s", (*ceiling)->what);
  if (!ceilings.empty()) table.add_note("roof: of the ceilings measured here: " + ceilings);
  if (gpu) table.add_note("clock throttled by: " + c.throttle);
  return table;
}

Table contest_details(const Contest& c) {
  Table table({{"variant", "", Align::kLeft},
               {"n", ""},
               {"min", "us"},
               {"q1", "us"},
               {"median", "us"},
               {"q3", "us"},
               {"clock", "MHz"},
               {"speed-up", "", Align::kRight, "speedup"},
               {"95 %", "", Align::kRight, "interval"},
               {"in cycles", "", Align::kRight, "cycles"},
               {"floor", "%"},
               {"pairs", ""},
               {"max abs", "", Align::kRight, "max_abs"},
               {"max rel", "", Align::kRight, "max_rel"},
               {"checked", "%"},
               {"kernels", "", Align::kLeft}});
  for (size_t i = 0; i < c.rows.size(); ++i) {
    const ContestRow& row = c.rows[i];
    // The baseline is not compared with itself.
    const bool held = row.problem.ok() && row.check.known() && !(i == c.baseline && c.reference == row.name);
    auto off = [&](double v) { return held ? Cell::shown(fmt::format("{:.1e}", v), v) : Cell::none(); };
    const double checked = held && row.check.total > 0
                               ? 100.0 * static_cast<double>(row.check.checked) / static_cast<double>(row.check.total)
                               : 0;
    Summary us = row.us();
    const Decision& d = row.decision;
    const bool judged = d.pairs > 0;
    Interval interval = d.speedup_95();
    auto time = [&](double v) { return us.n > 0 ? us_cell(v) : Cell::none(); };
    table.add_row({row.name, Cell::of(int64_t{us.n}), time(us.min), time(us.q1), time(us.median), time(us.q3),
                   row.sm_mhz() > 0 ? Cell::of(row.sm_mhz(), 0) : Cell::none(),
                   judged ? Cell::of(d.speedup(), 4) : Cell(""),
                   !judged                        ? Cell("")
                   : std::isfinite(interval.high) ? Cell(fmt::format("{:.4f}–{:.4f}", interval.low, interval.high))
                                                  : Cell::unknown("too few pairs"),
                   d.cycles_effect ? Cell::of(std::exp(*d.cycles_effect), 4)
                   : judged        ? Cell::none()
                                   : Cell(""),
                   judged ? Cell::of(d.floor * 100, 2) : Cell(""), Cell::of(int64_t{d.pairs}), off(row.check.max_abs),
                   off(row.check.max_rel), held ? Cell::of(checked, 0) : Cell::none(),
                   fmt::format("{}", fmt::join(row.facts.kernels, ", "))});
  }
  table.add_note("floor: effect of the baseline against itself; smaller effects get no verdict");
  return table;
}

Table changes_table(const Changes& changes) {
  Table table({{"variant", "", Align::kLeft},
               {"old", "us"},
               {"new", "us"},
               {"speed-up", "", Align::kRight, "speedup"},
               {"95 %", "", Align::kRight, "interval"},
               {"verdict", "", Align::kLeft}});
  auto time = [](double us) { return us > 0 ? us_cell(us) : Cell::none(); };
  for (const Change& c : changes.rows) {
    const bool judged = c.note.empty();
    table.add_row({c.name, time(c.old_us), time(c.new_us), judged ? Cell::of(c.speedup, 3) : Cell::none(),
                   judged ? Cell(fmt::format("{:.3f}–{:.3f}", c.speedup_95.low, c.speedup_95.high)) : Cell::none(),
                   c.wrong  ? Cell("WRONG")
                   : judged ? Cell(std::string(name(c.verdict)))
                            : Cell(c.note)});
  }
  for (const std::string& note : changes.notes) table.add_note(note);
  return table;
}

}  // namespace kiln::profiler
