// What the elements of a tensor are like, and how two tensors differ: figures for %stats and %diff, a piece of the
// tensor at a time, so that a tensor that fills a GPU needs no second one on the host.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "kiln/tensor.h"
#include "profiler/report/table.h"

namespace kiln::repl {

/// Asked between pieces; true ends the work with kInterrupted.
using Stop = std::function<bool()>;

inline constexpr double kQuantiles[] = {0.01, 0.25, 0.5, 0.75, 0.99};

struct TensorFigures {
  int64_t count = 0, nan = 0, positive_inf = 0, negative_inf = 0, zeros = 0;
  // Of those that are finite; NaN where there is none.
  double min = 0, max = 0, mean = 0, std = 0;  // std: with n - 1, as torch's
  std::vector<double> quantiles;               // as kQuantiles
  int64_t sampled = 0;                         // elements that the quantiles are of
  std::vector<int64_t> bins;                   // equal widths from min to max
  int64_t finite() const { return count - nan - positive_inf - negative_inf; }
};
Result<TensorFigures> tensor_figures(const Tensor& tensor, const Stop& stop);

/// Counts and moments; quantiles; and a row per bin with a bar.
report::Table count_table(const TensorFigures& figures);
report::Table value_table(const TensorFigures& figures);
report::Table bin_table(const TensorFigures& figures);

struct DiffOptions {
  double rtol = 0, atol = 0;
  int64_t tile_rows = 0, tile_columns = 0;  // of the heat map; 0: so that it fits
  int columns = 0;                          // of the terminal; 0: unknown
};

struct TensorDiff {
  DiffOptions options;
  std::vector<int64_t> shape;
  int64_t count = 0, differing = 0, bad = 0;  // bad: further off than the tolerance, or NaN or inf on one side alone
  int64_t first_bad = -1, worst = -1;         // row-major
  double first_got = 0, first_wanted = 0, worst_got = 0, worst_wanted = 0;
  double max_abs = 0, max_rel = 0, sum_abs = 0;  // where both are finite
  std::vector<int64_t> decades;                  // of |error|: 0, below 1e-12, …, from 1e12 on, and none (NaN, inf)
  // Bad elements by tile of the last two dimensions, the others on top of one another; a vector is one row.
  int64_t tile_rows = 1, tile_columns = 1, map_rows = 0, map_columns = 0;
  std::vector<int64_t> map_bad, map_count;
};
/// kType when the shapes differ.
Result<TensorDiff> tensor_diff(const Tensor& got, const Tensor& wanted, DiffOptions options, const Stop& stop);

report::Table diff_table(const TensorDiff& diff);
report::Table decade_table(const TensorDiff& diff);
/// A character per tile, and what they mean; empty when no element is bad. A map that is wider than the terminal goes
/// on below.
std::string heat_map(const TensorDiff& diff);

}  // namespace kiln::repl
