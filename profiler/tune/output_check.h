// Whether two launches leave the same numbers in the tensors they were given: so that a configuration that is fast
// because it is wrong never wins.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "kiln/tensor.h"

namespace kiln::profiler {

/// Holds the tensors as they were, and what the reference left in them.
class OutputCheck {
 public:
  /// Keeps copies of `tensors` on their device. kMemory when there is no room for them.
  static Result<OutputCheck> make(std::vector<Tensor> tensors);

  /// Takes the result of `launch` as the reference. Finds the elements that it writes without reading: later they hold
  /// NaN, or integers that it does not write, before each launch, so that a configuration that leaves some of it out is
  /// found. Runs `launch` once, and once more for each tensor of floats. Integers may be indices: they are tried only
  /// where `guarded` is given, a launch that fails with kLaunch instead of reaching outside of a tensor. Both wait
  /// until their work is done.
  Status take_reference(const std::function<Status()>& launch, const std::function<Status()>& guarded = nullptr);
  bool has_reference() const { return !wanted_.empty(); }

  /// Runs `launch` on the tensors as they were; "" when it leaves what the reference did, else the worst difference:
  /// "tensor 2 at 17: 0.5 instead of 1.5". Integers must be equal; floats may differ as by another order of summation.
  Result<std::string> differs(const std::function<Status()>& launch);

  /// Puts back what was there at first.
  Status restore();

 private:
  std::vector<Tensor> tensors_, saved_;
  std::vector<std::vector<std::byte>> wanted_;
  std::vector<std::optional<Tensor>> poisoned_;  // as saved, but for the elements that are written and not read
};

/// The difference that output checks allow at an element `want` of a tensor whose largest finite magnitude is
/// `largest`.
double allowed_difference(DType dtype, double want, double largest);

}  // namespace kiln::profiler
