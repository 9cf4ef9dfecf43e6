#if KILN_HAS_CUDA

#include "runtime/cuda/roomy_kernel.h"

#include "support/trace.h"

namespace kiln::runtime {

namespace {

/// A module may be loaded while a stream of the caller's is captured, in whatever mode.
class CapturesGoOn {
 public:
  explicit CapturesGoOn(const Driver& driver) : driver_(driver) { exchange(); }
  ~CapturesGoOn() { exchange(); }
  CapturesGoOn(const CapturesGoOn&) = delete;
  CapturesGoOn& operator=(const CapturesGoOn&) = delete;

 private:
  void exchange() { driver_.cuThreadExchangeStreamCaptureMode(&mode_); }
  const Driver& driver_;
  CUstreamCaptureMode mode_ = CU_STREAM_CAPTURE_MODE_RELAXED;
};

}  // namespace

RoomyKernel::RoomyKernel(const KernelImage& image, int sms)
    : room_(static_cast<uint32_t>(sms) * static_cast<uint32_t>(image.roomy->blocks_per_sm)) {
  static_cast<KernelInfo&>(image_) = roomy_info(image, *image.roomy);
  image_.ptx.clear();  // its own code's
  image_.num_params = image.num_params;
}

Result<const LoadedKernel*> RoomyKernel::load(Backend& backend, const Driver& driver) {
  if (tried_.load(std::memory_order_acquire)) return loaded_.get();
  std::lock_guard lock(mutex_);
  if (tried_.load(std::memory_order_relaxed)) return loaded_.get();
  trace::Scope span(trace::kSpans, trace::Step::kLoad, image_.name);
  const CapturesGoOn scope(driver);
  auto loaded = backend.load(image_);
  image_ = {};
  if (loaded.ok()) loaded_ = *loaded;
  tried_.store(true, std::memory_order_release);
  if (!loaded.ok()) return std::move(loaded.error());
  return loaded_.get();
}

}  // namespace kiln::runtime

#endif
