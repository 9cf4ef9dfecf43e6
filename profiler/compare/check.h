// Checks a contender's result, before its time is of any use.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "kiln/dtype.h"
#include "kiln/result.h"
#include "kiln/tensor.h"

namespace kiln::profiler {

/// Some elements of a tensor in row-major order: all of them, or of a large one the first and the last.
struct Values {
  DType dtype = DType::kF32;
  std::vector<int64_t> shape;
  int64_t total = 0;
  int64_t head = 0;  // the first `head` of `data` are elements [0, head), the rest the last ones
  std::vector<double> data;

  /// Row-major index in the tensor of data[i].
  int64_t index(size_t i) const;
};

inline constexpr int64_t kMostChecked = int64_t{1} << 24;

/// Waits for the device.
Result<Values> values_of(const Tensor& tensor, int64_t most = kMostChecked);

struct ResultCheck {
  std::string unknown;     // why nothing was checked; empty: the rest is valid
  double max_abs = 0;      // |got − want|
  double max_rel = 0;      // |got − want| / max(|want|, root mean square of want)
  double tolerance = 0;    // what max_rel may be
  int64_t nans = 0;        // elements that are NaN where none should be
  int64_t first_bad = -1;  // row-major index of the first element above the tolerance, or NaN
  int64_t checked = 0, total = 0;

  bool known() const { return unknown.empty(); }
  bool ok() const { return first_bad < 0; }
  /// "2.1e-3 ok", "0.31 WRONG", "NaN at 5".
  std::string text() const;
};

/// How far two right results of that type may lie apart, as max_rel: sums in another order, rounded once more.
double default_tolerance(DType dtype);

/// Both of one shape, else `unknown` says so with both. NaN equals NaN, and infinity itself.
ResultCheck check_values(const Values& got, const Values& want, double tolerance);

}  // namespace kiln::profiler
