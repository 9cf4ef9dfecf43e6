#include "repl/views/contest_value.h"

#include <cmath>

namespace kiln::repl {

namespace {

using script::Value;

Value number(double v) { return std::isfinite(v) && v >= 0 ? Value::real(v) : Value::none(); }

Value list(const std::vector<double>& numbers) {
  auto l = script::make<script::List>();
  for (double v : numbers) l->items.push_back(Value::real(v));
  return l;
}

}  // namespace

Value contest_value(const profiler::Contest& contest) {
  auto rows = script::make<script::List>();
  for (size_t i = 0; i < contest.rows.size(); ++i) {
    const profiler::ContestRow& row = contest.rows[i];
    auto d = script::make<script::Dict>();
    auto set = [&](std::string_view key, Value v) { d->table.set(key, std::move(v)); };
    set("name", Value::str(row.name));
    set("problem", row.problem.ok() ? Value::none() : Value::str(row.problem.error().message));
    set("bytes", number(row.facts.bytes));
    set("flop", number(row.facts.flop));
    const bool measured = row.is_measured();
    set("us", measured ? number(row.us().median) : Value::none());
    set("launch_us", number(row.call_us()));
    set("error", row.check.known() ? number(row.check.max_rel) : Value::none());
    set("right", row.check.known() ? Value::boolean(row.check.ok()) : Value::none());
    const profiler::Decision& decision = row.decision;
    if (decision.pairs > 0) {
      set("verdict", Value::str(std::string(name(decision.verdict))));
      set("speedup", Value::real(decision.speedup()));
      const profiler::Interval interval = decision.speedup_95();
      set("interval", script::make<script::Tuple>(std::vector<Value>{number(interval.low), number(interval.high)}));
      set("pairs", Value::integer(decision.pairs));
    } else {
      set("verdict", i == contest.baseline && row.problem.ok() ? Value::str("baseline") : Value::none());
      for (std::string_view key : {"speedup", "interval", "pairs"}) set(key, Value::none());
    }
    std::vector<double> us;
    for (const profiler::Sample& s : row.samples) us.push_back(s.us);
    set("samples", list(us));
    set("other_samples", list(row.other_us));
    set("graph_samples", list(row.graph_us));
    rows->items.push_back(d);
  }
  return rows;
}

}  // namespace kiln::repl
