// Samples of where the warps of a GPU are and what they wait for, from CUPTI's PC sampling.
#pragma once
#include <memory>

#include "kiln/device.h"
#include "kiln/result.h"
#include "profiler/lines/line_profile.h"

namespace kiln::profiler::cupti {

struct SamplingOptions {
  int period_log2 = 0;  // a sample every 2^n cycles of each SM, n from 5 to 31; 0: as CUPTI chooses for the device
};

/// Attached to a device while it lives. Kernels run side by side as ever; each is slowed somewhat.
class PcSampler {
 public:
  /// kDevice says why the device cannot be sampled: no CUPTI, no permission, another profiler attached, a virtual GPU.
  /// kUnsupported: it is no GPU.
  static Result<std::unique_ptr<PcSampler>> attach(const Device& device, const SamplingOptions& options = {});
  virtual ~PcSampler() = default;

  /// Samples what is launched from now on. The device is idle.
  virtual Status start() = 0;
  /// Waits for the device and stops. kDevice, with what helps, when the GPU's buffer overflowed.
  virtual Status stop() = 0;
  /// Taken so far, dropped ones among them.
  virtual int64_t samples() const = 0;
  /// Detaches, and gives all samples between starts and stops. Once.
  virtual Result<SampleRun> finish() = 0;
};

}  // namespace kiln::profiler::cupti
