// Whether the comparison can be trusted on this device: a kernel against itself, and against one that is 2 % longer.
#include <fmt/format.h>

#include <cmath>

#include "bench/bench.h"
#include "kiln/kernel.h"
#include "profiler/compare/pairs.h"
#include "support/diag.h"

namespace kiln::bench {

namespace {

// A chain of dependent operations: its time is its number of rounds, and nothing else on the device matters to it.
constexpr const char* kSpin = R"(
import triton
import triton.language as tl

@triton.jit
def spin(out, rounds, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(out + i)
    for _ in range(rounds):
        x = x * 0.999 + 0.5
    tl.store(out + i, x)
)";

// A hundred against themselves: five false verdicts are what 95 % leave.
constexpr int kSame = 100, kPlanted = 50;
constexpr double kLonger = 0.02;

struct Spinner {
  Kernel kernel;
  Tensor out;
  Device device;

  // Odd, so that every number of rounds is the same specialisation.
  profiler::Launchable of(int64_t rounds) const {
    std::vector<std::optional<Arg>> args = {out, rounds | 1, int64_t{128}};
    return {fmt::format("{} rounds", rounds | 1), device, [kernel = kernel, args] {
              return kernel.launch({1, 1, 1}, args);
            }};
  }
};

Result<double> median_us(const profiler::Launchable& what) {
  profiler::MeasureOptions options;
  // Short, for it only sets the number of rounds.
  options.min_total_s = 0.01;
  options.timeout_s = 3;
  KILN_TRY(profiler::Measurement m, profiler::measure(what, options));
  return m.us.median;
}

struct Counts {
  int faster = 0, slower = 0, same = 0, undecided = 0;
  std::vector<double> speedups, pairs;

  void add(const profiler::Decision& d) {
    switch (d.verdict) {
      case profiler::Verdict::kFaster:
        ++faster;
        break;
      case profiler::Verdict::kSlower:
        ++slower;
        break;
      case profiler::Verdict::kSame:
        ++same;
        break;
      case profiler::Verdict::kUndecided:
        ++undecided;
        break;
    }
    speedups.push_back(d.speedup());
    pairs.push_back(d.pairs);
  }
};

Result<Counts> contests(const Context& context, const profiler::Timer& timer, const profiler::Launchable& base,
                        const profiler::Launchable& other, int count) {
  Counts counts;
  for (int i = 0; i < count; ++i) {
    const profiler::SampleTaker takers[] = {timer.taker(base, profiler::Cache::kCold),
                                            timer.taker(other, profiler::Cache::kCold)};
    profiler::PairOptions options;
    options.timeout_s = context.timeout_s;
    options.seed = static_cast<uint64_t>(i) + 1;
    KILN_TRY(profiler::Pairs pairs, profiler::run_pairs(takers, 0, options, profiler::steady_seconds));
    KILN_CHECK_OK(std::move(pairs.rows[1].problem));
    counts.add(pairs.rows[1].decision);
    // Of the second of the two; the first is the baseline.
  }
  return counts;
}

}  // namespace

Status bench_honesty(const Context& context) {
  const int64_t shape[] = {128};
  Spinner spinner;
  spinner.device = context.device;
  KILN_TRY(spinner.kernel, Kernel::from_source(kSpin, "spin.py"));
  KILN_TRY(spinner.out, Tensor::zeros(context.device, DType::kF32, shape));
  // What a round takes, from two lengths; then as many as a short kernel has.
  // Far apart, so that the launch itself falls out of the difference.
  constexpr int64_t kFew = 1001, kMany = 20001;
  KILN_CHECK_OK(spinner.of(kFew).launch());
  KILN_TRY(double few, median_us(spinner.of(kFew)));
  KILN_TRY(double many, median_us(spinner.of(kMany)));
  const double round_us = (many - few) / static_cast<double>(kMany - kFew);
  if (!(round_us > 0)) return error(ErrorKind::kDevice, "{} rounds take no longer than {}", kMany, kFew);
  // 40 us is a short kernel of a GPU; a host's threads need longer than they take to start.
  const double target_us = context.device.is_cuda() ? 40 : 1000;
  const auto rounds = static_cast<int64_t>(std::max(1000.0, (target_us - few) / round_us + kFew));
  KILN_TRY(double base_us, median_us(spinner.of(rounds)));
  const auto longer = rounds + static_cast<int64_t>(std::llround(kLonger * base_us / round_us));

  KILN_TRY(profiler::Timer timer, profiler::Timer::make(context.device));
  KILN_TRY(Counts same, contests(context, timer, spinner.of(rounds), spinner.of(rounds), kSame));
  KILN_TRY(Counts planted, contests(context, timer, spinner.of(rounds), spinner.of(longer), kPlanted));

  using report::Align;
  using report::Cell;
  report::Table table({{"honesty", "", Align::kLeft, "name"},
                       {"runs", ""},
                       {"FASTER", ""},
                       {"SAME", ""},
                       {"SLOWER", ""},
                       {"UNDECIDED", ""},
                       {"speed-up", "", Align::kRight, "speedup"},
                       {"pairs", ""}});
  auto row = [&](const char* what, const Counts& c, int runs) {
    table.add_row({what, Cell::of(int64_t{runs}), Cell::of(int64_t{c.faster}), Cell::of(int64_t{c.same}),
                   Cell::of(int64_t{c.slower}), Cell::of(int64_t{c.undecided}),
                   Cell::of(profiler::median(c.speedups), 4), Cell::of(profiler::median(c.pairs), 0)});
  };
  row("a kernel against itself", same, kSame);
  row("2 % longer", planted, kPlanted);
  table.add_note(fmt::format("{}: kernels of {:.1f} us; {}; speed-up and pairs are medians", context.device.name(),
                             base_us, timer.method()));
  context.show(table);
  for (const auto& [what, c, runs] : {std::tuple("same", &same, kSame), std::tuple("planted", &planted, kPlanted)})
    context.add_json(fmt::format(
        R"({{"group":"honesty","name":"{}","runs":{},"faster":{},"same":{},"slower":{},"undecided":{},"speedup":{},"us":{}}})",
        what, runs, c->faster, c->same, c->slower, c->undecided, profiler::median(c->speedups), base_us));
  constexpr double kAllowed = 0.05;
  // The share that an interval of 95 % may miss.
  if (same.faster + same.slower > kAllowed * kSame)
    context.wrong(fmt::format("honesty: a kernel was called faster or slower than itself {} times in {}",
                              same.faster + same.slower, kSame));
  if (planted.slower < (1 - kAllowed) * kPlanted)
    context.wrong(fmt::format("honesty: 2 % were found {} times in {}", planted.slower, kPlanted));
  return {};
}

}  // namespace kiln::bench
