// A case: one kernel with its inputs, its float64 reference, its tolerance and its cost model. The tests, the
// benchmarks and the demo all use these.
#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kiln/kernel.h"

namespace kiln::kernels {

using Shape = std::vector<int64_t>;

/// "8192x8192".
std::string to_string(const Shape& shape);

/// The kernels' source texts, and the handles made from them: each function is parsed once for one Sources.
class Sources {
 public:
  /// `folder` is a folder of kernels/; ErrorKind::kName when there is no such kernel.
  Result<Kernel> kernel(std::string_view folder, std::string_view function);
  /// Text of kernels/FOLDER/kernel.py; empty when there is none.
  static std::string_view text(std::string_view folder);

 private:
  std::map<std::pair<std::string, std::string>, Kernel> loaded_;
};

struct Launch {
  Kernel kernel;
  std::array<int64_t, 3> grid = {1, 1, 1};
  std::vector<std::optional<Arg>> args;
  LaunchOptions options;

  Status run() const { return kernel.launch(grid, args, options); }
};

/// kFused: the case's own kernel. kUnfused: one kernel per operation, with a tensor in memory between each two.
enum class Variant { kFused, kUnfused };
std::string_view name(Variant variant);

/// What to make of a case. `for_gpu` chooses block sizes and warps as on a GPU, wherever the tensors are: for compiling
/// on a machine without one.
struct Request {
  Device device;
  DType dtype = DType::kF32;
  Shape shape = {};
  uint64_t seed = 0;
  Variant variant = Variant::kFused;
  bool for_gpu = device.is_cuda();
};

/// A case made ready to run on a device.
struct Problem {
  Device device;
  DType dtype = DType::kF32;
  Shape shape;
  uint64_t seed = 0;
  bool for_gpu = false;
  std::vector<Tensor> inputs =
      {};  // the first `sliced_inputs` share dimension 0 with the outputs; the others are whole
  int sliced_inputs = 0;
  std::vector<Tensor> outputs = {};   // dimension 0 as in `shape`
  std::vector<Launch> launches = {};  // in order; they keep the intermediate tensors alive
  double bytes = 0;                   // read and written by these launches, each tensor once per launch
  double flops = 0;                   // nominal, of the mathematics

  /// Queues every launch.
  Status run() const;
};

/// Rows [first, first + count) of a problem in float64: `inputs` are the sliced ones, then the whole ones.
struct Rows {
  int64_t first = 0, count = 0;
  int64_t row_size = 1;  // elements per row
  uint64_t seed = 0;
  std::vector<std::vector<double>> inputs;
};

struct Case {
  std::string_view name;
  std::string_view formula;
  std::string_view folder;    // of the fused kernel's text
  std::string_view function;  // the fused kernel
  std::array<DType, 2> dtypes = {DType::kF32, DType::kBF16};
  std::vector<Shape> (*gpu_sizes)() = nullptr;  // real ones, for the demo and the benchmarks
  std::vector<Shape> (*host_sizes)() = nullptr;
  std::vector<Shape> (*test_sizes)() = nullptr;  // odd ones
  Result<Problem> (*make)(Sources& sources, const Request& request) = nullptr;
  /// One vector per output, from the inputs as stored (already rounded to the dtype).
  std::vector<std::vector<double>> (*reference)(const Rows& rows) = nullptr;
  /// Largest |got - want| / max(1, |want|) that is right for a result computed in f32 and rounded once to `dtype`.
  double (*tolerance)(DType dtype) = nullptr;
};

/// Every case, in the order in which tables show them.
std::span<const Case* const> all_cases();
const Case* find_case(std::string_view name);

/// How far a problem's outputs are from the reference.
struct Check {
  double error = 0;      // max of |got - want| / max(1, |want|); infinite when a NaN appears in one of them only
  double tolerance = 0;  // eight times wider for the unfused variant, which rounds after every operation
  int64_t elements = 0;  // compared
  std::string worst;     // "output 0, row 17, column 3: got 0.5, expected 0.25"

  bool ok() const { return error <= tolerance; }
};

/// Compares whole rows, about `most_elements` elements at most: the first, the last, and evenly spread ones between.
Result<Check> check(const Case& which, const Problem& problem, Variant variant,
                    int64_t most_elements = int64_t{1} << 22);

// --- for the cases themselves
// -------------------------------------------------------------------------------------------

/// Elements per program of a pointwise kernel, and its warps.
struct PointwiseConfig {
  int64_t block;
  int num_warps;
};
PointwiseConfig pointwise_config(bool gpu, DType dtype);

/// The block that holds a row of `n` columns, and its warps, for a kernel that reads so many vectors (weights) beside a
/// row. `wide`: a row of halves that fills a GPU's registers, for which the wide kernels are made.
struct RowConfig {
  int64_t block;
  int num_warps;
  bool wide = false;
};
RowConfig row_config(bool gpu, int64_t n, DType dtype, int vectors);

int64_t cdiv(int64_t a, int64_t b);

/// The problem of a request, without tensors yet.
Problem empty_problem(const Request& request);

/// A launch over a one-dimensional grid.
Launch launch(Kernel kernel, int64_t programs, std::vector<std::optional<Arg>> args, int num_warps);

/// Builds the launches of an unfused variant: each call adds one kernel of kernels/ops and the bytes it moves.
class OpChain {
 public:
  OpChain(Sources& sources, Problem& problem) : sources_(sources), problem_(problem) {}

  /// kernel(x…, out, scalars…, n, BLOCK) over all elements of `out`.
  Status pointwise(std::string_view op, std::span<const Tensor> inputs, const Tensor& out,
                   std::span<const double> scalars = {});
  /// kernel(x, out, n_cols, BLOCK), one program per row of x.
  Status reduce_rows(std::string_view op, const Tensor& x, const Tensor& out);
  /// kernel(x, vector, out, n_cols, BLOCK), one program per row; `vector` has an element per row or per column.
  Status with_vector(std::string_view op, const Tensor& x, const Tensor& vector, const Tensor& out);

 private:
  Status add(std::string_view op, int64_t programs, std::vector<std::optional<Arg>> args, int num_warps);

  Sources& sources_;
  Problem& problem_;
};

}  // namespace kiln::kernels
