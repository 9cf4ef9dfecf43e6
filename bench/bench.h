// The benchmarks behind `./dev bench`: each figure is a ratio of two things measured side by side in one run.
#pragma once
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kiln/device.h"
#include "profiler/compare/comparison.h"
#include "profiler/measure/measure.h"
#include "profiler/measure/timer.h"
#include "profiler/report/table.h"

namespace kiln::bench {

/// One side of a figure.
struct Side {
  std::string name;
  profiler::Summary us;
  double bytes = 0;  // moved per run; 0: not a matter of bandwidth

  double gb_per_s() const { return bytes > 0 && us.median > 0 ? bytes / us.median / 1e3 : 0; }
};

/// What a ratio has to reach, or what a time may not exceed.
struct Goal {
  enum class Kind { kNone, kRatioAtLeast, kMicrosecondsAtMost, kExtraMicrosecondsAtMost } kind = Kind::kNone;
  double value = 0;
};

/// `ratio` is of rates when both sides have bytes, else the peer's time over ours: above 1, ours is better.
struct Figure {
  std::string group, name, size;
  Side ours;
  std::optional<Side> peer;
  double ratio = 0;
  profiler::Interval ratio_95;
  Goal goal = {};
  std::string note = {};
  std::optional<double> extra_us = {};  // ours over the peer's, round by round; without it, that of the medians

  /// Whether the goal is met; nullopt when there is none.
  std::optional<bool> met() const;
  std::string goal_text() const;
};

struct GemmShape {
  int64_t m = 0, n = 0, k = 0;
};
/// "4096x4096x14336" as M, N, K.
std::optional<GemmShape> parse_gemm_shape(std::string_view text);

/// What of the group gemm to run; empty lists mean the usual.
struct GemmOptions {
  std::vector<GemmShape> shapes;
  std::vector<std::string> types, contenders;
  std::vector<std::string> tiles;  // instead of our own contenders: the persistent kernel with these
  double seconds = 3;              // for each shape and type, once in bursts and once sustained
  bool sustained = true;
  bool tune = false;  // instead: our own kernels over variations of their tile
};

/// How many products of the group terrain, and from which seed.
struct TerrainOptions {
  uint64_t seed = 1;
  int count = 200;
  double seconds = 1500;                // no draw begins later
  bool configurations = false;          // measure every one that the planner knows
  std::vector<std::string> draws = {};  // instead of random ones: as the tables print them
};

struct Context {
  Device device;
  double timeout_s = 10;  // of each comparison
  std::string kiln_binary;
  std::function<void(Figure)> add;
  std::function<void(const std::string&)> skip;   // says why a figure is missing
  std::function<void(const std::string&)> wrong;  // a failed or wrong contender: no figure, and the run fails
  // For groups whose rows are not pairs: a table now, and a line for the JSON file.
  std::function<void(const report::Table&)> show;
  std::function<void(const std::string& line)> add_json;
  GemmOptions gemm = {};
  TerrainOptions terrain = {};
};

/// Interleaved pairs of ours against a peer (cold caches), with bytes where bandwidth is meant.
Result<Figure> compare_sides(const Context& context, const profiler::Launchable& ours, double our_bytes,
                             const profiler::Launchable& peer, double peer_bytes);

/// Puts a peer beside a figure of times; the interval of their ratio is of the quartiles.
void set_peer(Figure& figure, Side peer);

/// A figure of times alone.
Figure time_figure(std::string group, std::string name, std::span<const double> us, Goal goal, std::string note = {});

struct Group {
  std::string_view name, what;
  Status (*run)(const Context& context);
};
std::span<const Group> groups();

Status bench_compile(const Context& context);  // latency.cc
Status bench_startup(const Context& context);
Status bench_launch(const Context& context);
Status bench_expressions(const Context& context);  // expressions.cc
Status bench_pointwise(const Context& context);    // bandwidth.cc
Status bench_rows(const Context& context);
Status bench_fusion(const Context& context);
Status bench_gemm(const Context& context);          // gemm.cc
Status bench_terrain(const Context& context);       // terrain.cc
Status bench_honesty(const Context& context);       // honesty.cc
Status bench_profile(const Context& context);       // profile.cc
Status bench_kernel_times(const Context& context);  // kernel_times.cc

}  // namespace kiln::bench
