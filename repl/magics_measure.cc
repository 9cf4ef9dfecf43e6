// %time and %bench.
#include <fmt/format.h>

#include "profiler/measure.h"
#include "repl/magics.h"
#include "support/diag.h"

namespace kiln::repl {

using report::Align;
using report::Cell;
using report::Table;

Status magic_time(MagicContext& context, std::string_view arguments) {
  double start = profiler::steady_seconds();
  KILN_CHECK_OK(context.session.run(std::string(arguments), "<%time>", script::Mode::kInteractive));
  double returned = profiler::steady_seconds();
  KILN_TRY(Device device, context.session.device());
  KILN_CHECK_OK(device.synchronize());
  double done = profiler::steady_seconds();
  Table table({{"wall", "", Align::kRight, "wall_us"},
               {"statement", "", Align::kRight, "statement_us"},
               {"wait for the device", "", Align::kRight, "wait_us"}});
  auto cell = [](double seconds) {
    Cell c = report::human_time(seconds * 1e6);
    c.number = seconds * 1e6;
    return c;
  };
  table.add_row({cell(done - start), cell(returned - start), cell(done - returned)});
  context.print(table);
  return {};
}

Status magic_bench(MagicContext& context, std::string_view arguments) {
  KILN_TRY(std::function<Status()> call, context.session.prepare(std::string(arguments), "<%bench>"));
  KILN_TRY(Device device, context.session.device());
  // Once outside of any clock: compiles, and reports an error before anything is measured.
  KILN_CHECK_OK(call());
  KILN_CHECK_OK(device.synchronize());
  profiler::Launchable what{std::string(arguments), device, call};
  KILN_TRY(profiler::Timer timer, profiler::Timer::make(device));
  Table table({{"cache", "", Align::kLeft},
               {"min", "us"},
               {"q1", "us"},
               {"median", "us"},
               {"q3", "us"},
               {"±", "%", Align::kRight, "spread"},
               {"n", ""},
               {"discarded", ""},
               {"flags", "", Align::kLeft}});
  for (profiler::Cache cache : {profiler::Cache::kCold, profiler::Cache::kHot}) {
    profiler::MeasureOptions options;
    options.cache = cache;
    options.timeout_s = 5;
    KILN_TRY(profiler::Measurement m,
             profiler::measure_samples(timer.sampler(what, cache), options, profiler::steady_seconds));
    auto us = [](double v) { return Cell::of(v, v < 100 ? 2 : 1); };
    table.add_row({std::string(name(cache)), us(m.us.min), us(m.us.q1), us(m.us.median), us(m.us.q3),
                   Cell::of(m.us.spread() * 100, 2), Cell::of(int64_t{m.us.n}), Cell::of(int64_t{m.discarded}),
                   profiler::flag_names(m.flags)});
  }
  table.add_note(fmt::format("{}, {}; ± is half the interquartile range over the median", device.name(),
                             device.is_cuda() ? "time between device events" : "steady clock around call and wait"));
  context.print(table);
  return {};
}

}  // namespace kiln::repl
