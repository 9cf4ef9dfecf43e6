// Hardware counters of kernels, from CUPTI's Range Profiler: each launch is a range of its own, and a kernel whose
// counters do not fit one pass is run again with its memory as it was (kernel replay). Never together with an activity
// profile: times are longer while counters are read.
#pragma once
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kiln/device.h"
#include "kiln/result.h"
#include "profiler/cupti/metrics.h"
#include "profiler/profile/counters.h"

namespace kiln::profiler::cupti {

/// The chips whose counters can be asked about here, with or without a GPU.
Result<std::vector<std::string>> chips();
/// The chip of a GPU, as CUPTI calls it ("GH100"); kUnsupported on the CPU.
Result<std::string> chip_of(const Device& device);
/// The chip of a compile target ("sm_90a"); kUnsupported when it has none.
Result<std::string> chip_of_target(std::string_view target);

/// What metrics cost on a chip. Needs no GPU.
struct CounterPreview {
  std::string chip;
  int metrics = 0;
  int passes = 0;
};
/// kValue for a chip that CUPTI does not know, kName for a metric that the chip lacks.
Result<CounterPreview> preview(const std::string& chip, std::span<const std::string> metrics);

/// Our metrics under the names that a chip has for them; missing ones are left out and listed.
struct Resolved {
  std::vector<const Metric*> metrics;
  std::vector<std::string> names;  // by metric
  std::vector<const Metric*> missing;
};
Result<Resolved> resolve(const std::string& chip, std::span<const Metric* const> metrics);

struct MetricDescription {
  std::string name, kind, description;  // "dram__bytes_read", "counter", NVIDIA's own sentence
};
/// The base metrics of a chip whose name contains `filter`.
Result<std::vector<MetricDescription>> list_metrics(const std::string& chip, std::string_view filter);

/// Names the kernels that are launched in this process while it lives, in their order: what ranges do not know. A graph
/// counts once, as "CUDA graph".
class LaunchNames {
 public:
  /// kDevice: another profiler is attached, or no CUPTI.
  static Result<std::unique_ptr<LaunchNames>> start();
  virtual ~LaunchNames() = default;
  virtual std::vector<std::string> names() const = 0;
};

struct CollectOptions {
  int max_launches = 1024;  // more are dropped and counted
};

struct Collected {
  std::string chip;
  int passes = 0;
  std::vector<std::string> metrics;
  std::vector<KernelCounters> launches;  // in their order
  int64_t dropped = 0;                   // launches beyond max_launches
  double setup_s = 0, run_s = 0;         // of wall time: before `run`, and within it
};
/// Counts the launches of `run` on the device, and waits for it. kDevice names the obstacle: permission,
/// another profiler, DCGM, a virtual or sliced GPU; nothing ran then. kUnsupported: `run` launches a graph, which fails
/// while counters are read.
Result<Collected> collect(const Device& device, std::span<const std::string> metrics, const CollectOptions& options,
                          const std::function<Status()>& run);

}  // namespace kiln::profiler::cupti
