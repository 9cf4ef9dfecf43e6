// Matrix products: every contender on the same operands, interleaved. To join, add a row to gemm_contenders().
#pragma once
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bench/bench.h"
#include "compiler/target/matmul_tile.h"
#include "kernels/case.h"
#include "kiln/tensor.h"

namespace kiln::bench {

/// A kind of product: "tf32" and "f32" have the same operands and are two kinds.
struct GemmType {
  std::string_view name;
  DType operand, out;
  bool tf32 = false, fast_accumulation = false;
  bool b_transposed = false;  // b is the view w.t() of a row-major w [n, k]: all that the hardware takes of 8 bits
  bool bias_gelu = false;     // the result is gelu(a · b + bias), in the tanh form
};
std::span<const GemmType> gemm_types();

/// a [m, k] · b [k, n] → out [m, n], random normals, on the device's default stream. bias [n] where the type has one.
struct GemmProblem {
  Device device;
  GemmType type;
  GemmShape shape;
  Tensor a, b, out, bias;

  ProductSize size() const {
    return {.m = shape.m,
            .n = shape.n,
            .k = shape.k,
            .operand_bytes = size_of(type.operand),
            .result_bytes = size_of(type.out)};
  }
};

/// Random normals (small integers for i8), row-major.
Result<Tensor> random_matrix(const Device& device, DType dtype, int64_t rows, int64_t columns, uint64_t seed);

/// A contender's answer to a problem.
struct PreparedGemm {
  std::function<Status()> enqueue;  // queues one product into problem.out and does not wait
  std::string note = {};            // "algorithm 3 of 8": printed under the table
};

struct GemmContender {
  std::string_view name;
  bool ours;    // Kiln's own; the others are peers
  bool on_gpu;  // of a peer: else it is for the CPU
  /// Does all that is not the product itself (compiling, choosing). kUnsupported or kDevice: it sits this one out, and
  /// the reason is printed.
  std::function<Result<PreparedGemm>(const GemmProblem& problem)> prepare;
};
std::span<const GemmContender> gemm_contenders();  // gemm_contenders.cc
/// The persistent kernel with the tile that `text` says: "MxNxK:STAGES:WARPS", then ":SPLITS", ":BLOCKS", ":GROUP" and
/// ":pdl" where they are not 1, 1, 8 and off. The contender's name is `text`, which must outlive it.
Result<GemmContender> tile_contender(std::string_view text);

/// Launches of our own kernels with a tile. kUnsupported for what they cannot do; tiles that do not fit fail when they
/// are compiled.
Result<kernels::Launch> persistent_launch(const GemmProblem& problem, const MatmulTile& tile);
Result<kernels::Launch> pointer_launch(const GemmProblem& problem, const MatmulTile& tile);

/// Tunes each of our kernels for a problem over variations of the tile table, for `seconds` each, and adds a row for
/// each to `table`, which has the columns of tune_table(). `check` tells whether problem.out is right: what the table's
/// own choice gives must be, and every other tile must give the same.
report::Table tune_table(const Context& context, std::string_view type);  // gemm_tune.cc
Status tune_gemm(const Context& context, const GemmProblem& problem, const std::function<Status()>& check,
                 report::Table& table);

}  // namespace kiln::bench
