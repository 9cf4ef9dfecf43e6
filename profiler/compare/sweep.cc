#include "profiler/compare/sweep.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

namespace kiln::profiler {

namespace {

using report::Align;
using report::Cell;

std::optional<double> number_in(const std::string& text) {
  double v = 0;
  auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), v);
  if (code != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return v;
}

// The axis that runs to the right: the first with more than one value.
struct MainAxis {
  size_t index = 0;
  bool numeric = true;
  std::vector<std::string> values;  // distinct, in order of appearance

  double x_of(const std::string& value) const {
    // Words lie at 0, 1, 2, … in the order in which they came.
    if (numeric) return *number_in(value);
    return static_cast<double>(std::find(values.begin(), values.end(), value) - values.begin());
  }
};

std::vector<std::string> distinct_values(const Sweep& sweep, size_t axis) {
  std::vector<std::string> values;
  for (const SweepPoint& p : sweep.points)
    if (std::find(values.begin(), values.end(), p.values[axis]) == values.end()) values.push_back(p.values[axis]);
  return values;
}

MainAxis main_axis(const Sweep& sweep) {
  MainAxis m;
  for (size_t i = 0; i < sweep.axes.size(); ++i) {
    m.index = i;
    m.values = distinct_values(sweep, i);
    if (m.values.size() > 1) break;
  }
  // One point in all: any axis will do.
  if (m.values.size() <= 1 && !sweep.axes.empty()) m.index = 0, m.values = distinct_values(sweep, 0);
  m.numeric = std::all_of(m.values.begin(), m.values.end(), [](const auto& v) { return number_in(v).has_value(); });
  return m;
}

// "BLOCK=256, dtype=bf16": what tells one line of a variant from its others.
std::string other_values(const Sweep& sweep, const SweepPoint& point, const MainAxis& axis) {
  std::string out;
  for (size_t i = 0; i < sweep.axes.size(); ++i)
    if (i != axis.index && distinct_values(sweep, i).size() > 1)
      out += fmt::format("{}{}={}", out.empty() ? "" : ", ", sweep.axes[i], point.values[i]);
  return out;
}

bool all_know_bytes(const Sweep& sweep) {
  bool any = false;
  for (const SweepPoint& p : sweep.points)
    for (const SweepCell& c : p.cells) {
      if (c.us > 0 && c.bytes <= 0) return false;
      any = any || c.us > 0;
    }
  return any;
}

double gb_per_s(const SweepCell& c) { return c.bytes / c.us / 1e3; }

/// 0.0123, 1.57, 353, 1360: no exponent where people write sizes.
std::string three_digits(double x) {
  // The negation catches a NaN, too.
  if (!(std::abs(x) >= 1000 && std::abs(x) < 1e15)) return fmt::format("{:.3g}", x);
  const double step = std::pow(10, std::floor(std::log10(std::abs(x))) - 2);
  return fmt::format("{:.0f}", std::round(x / step) * step);
}

std::string verdict_text(const SweepCell& c) {
  if (c.decision.pairs > 0) return std::string(name(c.decision.verdict));
  return c.is_baseline ? "baseline" : c.us > 0 ? "" : "failed";
}

}  // namespace

report::Table sweep_table(const Sweep& sweep) {
  std::vector<report::Column> columns;
  for (const std::string& axis : sweep.axes) columns.push_back({axis, ""});
  columns.insert(columns.end(), {{"variant", "", Align::kLeft},
                                 {"time", "us"},
                                 {"±", "%", Align::kRight, "spread"},
                                 {"rate", "GB/s"},
                                 {"math", "TFLOP/s"},
                                 {"speed-up", "", Align::kRight, "speedup"},
                                 {"verdict", "", Align::kLeft}});
  report::Table table(std::move(columns));
  for (const SweepPoint& p : sweep.points)
    for (const SweepCell& c : p.cells) {
      std::vector<Cell> cells;
      for (const std::string& v : p.values) cells.emplace_back(v);
      const bool measured = c.us > 0;
      const double tflops = c.flop / c.us / 1e6;
      cells.insert(cells.end(),
                   {c.variant, measured ? Cell::of(c.us, c.us < 10 ? 2 : 1) : Cell::none(),
                    measured ? Cell::of(c.spread * 100, 1) : Cell::none(),
                    measured && c.bytes > 0 ? Cell::of(gb_per_s(c), gb_per_s(c) < 100 ? 1 : 0) : Cell::none(),
                    measured && c.flop > 0 ? Cell::of(tflops, tflops < 10 ? 3 : 1) : Cell::none(),
                    c.decision.pairs > 0 ? Cell::of(c.decision.speedup(), 3) : Cell(""), verdict_text(c)});
      table.add_row(std::move(cells));
      if (!c.problem.empty())
        table.add_note(fmt::format("{} at {}: {}", c.variant, fmt::join(p.values, ", "), c.problem));
    }
  if (sweep.interrupted) table.add_note("interrupted: the points until then");
  return table;
}

namespace {

/// What a plot shows of each cell.
enum class Shown { kTime, kRate, kSpeedup };

/// Rates compare only where all move the same bytes; variants of an expression do not, and the question about those is
/// where they win.
Shown shown_by(const Sweep& sweep) {
  bool same_bytes = true, baselines = true;
  for (const SweepPoint& p : sweep.points) {
    double bytes = 0;
    bool baseline = false;
    for (const SweepCell& c : p.cells) {
      baseline = baseline || (c.is_baseline && c.us > 0);
      if (c.us <= 0) continue;
      if (bytes > 0 && c.bytes != bytes) same_bytes = false;
      bytes = c.bytes;
    }
    baselines = baselines && baseline;
  }
  if (!same_bytes && baselines) return Shown::kSpeedup;
  return same_bytes && all_know_bytes(sweep) ? Shown::kRate : Shown::kTime;
}

/// With the quartiles of the samples, or the interval of the speed-up.
report::PlotPoint shown_point(Shown shown, const SweepCell& c, const SweepPoint& p, double x) {
  switch (shown) {
    case Shown::kTime:
      return {x, c.us, c.q1_us, c.q3_us};
    case Shown::kRate:
      // A long time is a low rate: the quartiles change sides.
      return {x, gb_per_s(c), gb_per_s(c) * c.us / c.q3_us, gb_per_s(c) * c.us / c.q1_us};
    case Shown::kSpeedup:
      if (c.decision.pairs > 0) {
        const Interval range = c.decision.speedup_95();
        return {x, c.decision.speedup(), range.low, range.high};
      }
      for (const SweepCell& base : p.cells)
        if (base.is_baseline) return {x, base.us / c.us};
  }
  return {x, NAN};
}

std::string bars_of(Shown shown) {
  return shown == Shown::kSpeedup ? "95 % interval of the ratio" : "quartiles of the samples";
}

std::string y_label_of(Shown shown, const Sweep& sweep) {
  switch (shown) {
    case Shown::kTime:
      return "us";
    case Shown::kRate:
      return "GB/s";
    case Shown::kSpeedup:
      for (const SweepCell& c : sweep.points[0].cells)
        if (c.is_baseline) return "times as fast as " + c.variant;
  }
  return "";
}

}  // namespace

report::Plot sweep_plot(const Sweep& sweep) {
  report::Plot plot;
  if (sweep.axes.empty() || sweep.points.empty()) return plot;
  const MainAxis axis = main_axis(sweep);
  const Shown shown = shown_by(sweep);
  plot.x_label = sweep.axes[axis.index];
  plot.y_label = y_label_of(shown, sweep);
  plot.bars = bars_of(shown);
  if (!axis.numeric) plot.x_names = axis.values;
  std::vector<double> xs, ys;
  for (const SweepPoint& p : sweep.points)
    for (const SweepCell& c : p.cells) {
      if (c.us <= 0) continue;
      const std::string others = other_values(sweep, p, axis);
      const std::string line_name = others.empty() ? c.variant : fmt::format("{} ({})", c.variant, others);
      auto line =
          std::find_if(plot.lines.begin(), plot.lines.end(), [&](const auto& l) { return l.name == line_name; });
      if (line == plot.lines.end()) line = plot.lines.insert(plot.lines.end(), {line_name, {}});
      line->points.push_back(shown_point(shown, c, p, axis.x_of(p.values[axis.index])));
      xs.push_back(line->points.back().x), ys.push_back(line->points.back().y);
    }
  for (report::PlotLine& l : plot.lines) std::ranges::stable_sort(l.points, {}, &report::PlotPoint::x);
  plot.x_log = axis.numeric && report::wants_log(xs);
  // Rates and ratios are compared by length, which a logarithmic axis would hide.
  plot.y_log = shown == Shown::kTime && report::wants_log(ys);
  return plot;
}

std::vector<std::string> crossovers(const Sweep& sweep) {
  std::vector<std::string> out;
  if (sweep.axes.empty() || sweep.points.empty()) return out;
  const MainAxis axis = main_axis(sweep);
  const std::string& x_name = sweep.axes[axis.index];
  // Of one variant along one line: where it was decided, in order of x.
  struct Seen {
    double x;
    std::string text;
    double effect;
    bool faster;
  };
  struct Line {
    std::string variant, others, baseline;
    std::vector<Seen> seen;
    size_t points = 0;
  };
  std::vector<Line> lines;
  for (const SweepPoint& p : sweep.points) {
    std::string baseline;
    for (const SweepCell& c : p.cells)
      if (c.is_baseline) baseline = c.variant;
    for (const SweepCell& c : p.cells) {
      // What was not judged has no side, and makes no crossing.
      if (c.decision.pairs == 0) continue;
      const std::string others = other_values(sweep, p, axis);
      auto line = std::find_if(lines.begin(), lines.end(), [&](const Line& l) {
        return l.variant == c.variant && l.others == others && l.baseline == baseline;
      });
      if (line == lines.end()) line = lines.insert(lines.end(), {c.variant, others, baseline, {}, 0});
      ++line->points;
      if (c.decision.verdict != Verdict::kFaster && c.decision.verdict != Verdict::kSlower) continue;
      line->seen.push_back({axis.x_of(p.values[axis.index]), p.values[axis.index], c.decision.effect,
                            c.decision.verdict == Verdict::kFaster});
    }
  }
  for (Line& l : lines) {
    std::sort(l.seen.begin(), l.seen.end(), [](const Seen& a, const Seen& b) { return a.x < b.x; });
    const std::string where = l.others.empty() ? "" : fmt::format(" ({})", l.others);
    bool crossed = false;
    for (size_t i = 1; i < l.seen.size(); ++i) {
      const Seen &a = l.seen[i - 1], &b = l.seen[i];
      if (a.faster == b.faster) continue;
      crossed = true;
      std::string near;
      if (axis.numeric) {
        // The effect is the logarithm of a ratio: where it is 0, on a straight line over log x.
        const bool log = a.x > 0;
        const double share = a.effect / (a.effect - b.effect);
        const double x =
            log ? std::exp(std::log(a.x) + share * (std::log(b.x) - std::log(a.x))) : a.x + share * (b.x - a.x);
        near = fmt::format(", and they cross near {}", three_digits(x));
      }
      out.push_back(fmt::format("{}{} is {} than {} at {} = {} and {} at {}{}", l.variant, where,
                                a.faster ? "faster" : "slower", l.baseline, x_name, a.text,
                                b.faster ? "faster" : "slower", b.text, near));
    }
    if (crossed || l.seen.empty() || l.points < 2) continue;
    out.push_back(fmt::format("{}{} is {} than {} at {} of {} points, and nowhere {}: no crossing", l.variant, where,
                              l.seen[0].faster ? "faster" : "slower", l.baseline, l.seen.size(), l.points,
                              l.seen[0].faster ? "slower" : "faster"));
  }
  return out;
}

}  // namespace kiln::profiler
