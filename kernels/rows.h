// Shared parts of the row-wise cases: softmax and the norms.
#pragma once
#include <vector>

#include "kernels/case.h"

namespace kiln::kernels {

/// Rows x columns: real sizes of a GPU and of a CPU (long rows, many short ones, very long ones), and odd ones.
std::vector<Shape> row_gpu_sizes();
std::vector<Shape> row_host_sizes();
std::vector<Shape> row_test_sizes();

/// A reference's first output: `fn(x, y)` writes the row y from the row x of the first input, both `row_size` elements.
template <class Fn>
std::vector<double> each_row(const Rows& rows, Fn&& fn) {
  std::vector<double> out(rows.inputs[0].size());
  for (int64_t r = 0; r < rows.count; ++r)
    fn(rows.inputs[0].data() + r * rows.row_size, out.data() + r * rows.row_size);
  return out;
}

/// The mean of fn(x[c]) over a row.
template <class Fn>
double row_mean(const double* x, int64_t n, Fn&& fn) {
  double sum = 0;
  for (int64_t c = 0; c < n; ++c) sum += fn(x[c]) / static_cast<double>(n);
  return sum;
}

}  // namespace kiln::kernels
