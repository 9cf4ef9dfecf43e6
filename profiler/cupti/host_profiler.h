// CUPTI's host side of counters: what a chip can count, and in how many passes. It needs no GPU.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kiln/result.h"
#include "profiler/cupti/library.h"

namespace kiln::profiler::cupti {

/// A metric of a chip, before its roll-up: "dram__bytes_read" of "dram__bytes_read.sum".
struct BaseMetric {
  enum class Kind : uint8_t { kCounter, kRatio, kThroughput } kind = Kind::kCounter;
  std::string name;
};
std::string_view name(BaseMetric::Kind kind);

#if KILN_HAS_CUPTI

/// One chip, and the metrics that were asked of it.
class HostProfiler {
 public:
  /// `availability`: of the device at hand, empty without one. kValue for a chip that this CUPTI does not know, with
  /// those that it does.
  static Result<HostProfiler> make(const std::shared_ptr<const Library>& library, const std::string& chip,
                                   std::span<const uint8_t> availability = {});
  static Result<std::vector<std::string>> chips(const Library& library);

  ~HostProfiler();
  HostProfiler(HostProfiler&& other) noexcept;
  HostProfiler& operator=(HostProfiler&&) = delete;

  /// By kind, then by name.
  Result<std::vector<BaseMetric>> base_metrics() const;
  /// What may follow a base metric: ".sum", ".avg.per_second", …
  Result<std::vector<std::string>> roll_ups(const BaseMetric& metric) const;
  /// One sentence of NVIDIA's; empty when it has none.
  std::string description(const std::string& metric) const;
  /// Whether the chip has that metric, roll-up included.
  bool has(const std::string& metric) const;

  /// kName names a metric that the chip lacks, with the nearest one or the roll-ups that there are.
  Status add(std::span<const std::string> metrics);
  /// What a device is set up with to count what was added.
  Result<std::vector<uint8_t>> config_image() const;
  Result<int> passes(std::vector<uint8_t>& config_image) const;
  /// The values of one range of decoded counters, in the order of `metrics`.
  Result<std::vector<double>> values(std::span<const uint8_t> counters, size_t range,
                                     std::span<const std::string> metrics) const;

  const std::string& chip() const { return chip_; }

 private:
  HostProfiler(std::shared_ptr<const Library> library, std::string chip)
      : library_(std::move(library)), chip_(std::move(chip)) {}
  Diagnostic unknown_metric(const std::string& metric) const;

  std::shared_ptr<const Library> library_;
  std::string chip_;
  std::vector<uint8_t> availability_;
  CUpti_Profiler_Host_Object* object_ = nullptr;
};

#endif

}  // namespace kiln::profiler::cupti
