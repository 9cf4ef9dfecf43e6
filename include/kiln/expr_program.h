// Expressions planned, compiled and bound once, to be run on the caller's memory again and again: what a framework with
// tensors and an allocator of its own runs.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "kiln/expr.h"

namespace kiln {

namespace runtime {
struct ProgramImpl;
}

class ExprProgram {
 public:
  ExprProgram() = default;
  /// Compiles `outputs`, which share operations, as kernels of `inputs`: leaves, each with memory of its own, of which
  /// shape, strides and the address's alignment (up to 16 bytes) count. The program holds no memory of theirs, and
  /// keeps the numbers of the expressions. Kernels are compiled on several threads.
  ///
  /// kUnsupported: an expression with a tensor of no elements, which has no kernel, or a variant of a library's.
  /// kValue: an output that is a view of an input, a leaf that is not among the inputs, or an input twice.
  static Result<ExprProgram> make(std::span<const Expr> inputs, std::span<const Expr> outputs,
                                  ExprVariant variant = ExprVariant::kFused);

  explicit operator bool() const { return impl_ != nullptr; }

  /// Memory that the caller allocates for results, at least so large and aligned to 16 bytes.
  std::span<const int64_t> buffer_bytes() const;
  /// Where an output is: a strided view of a buffer, most often all of it and row-major. Outputs may share one.
  struct Output {
    int buffer = 0;
    DType dtype = DType::kF32;
    std::vector<int64_t> shape, strides;
    int64_t offset = 0;  // in elements
    /// Inputs in whose memory it may be written instead: row-major, of its dtype and size, and read no more when an
    /// element is written. No two results in one input.
    std::vector<int> may_overwrite = {};
  };
  std::span<const Output> outputs() const;
  /// For what lives between kernels; aligned to 16 bytes, and free again when the launch is done. 0: none.
  int64_t workspace_bytes() const;
  const Device& device() const;
  /// Kernels of one launch.
  int kernels() const;
  ExprPlan plan() const;

  /// One address for each input, as aligned as that of make(), and for each buffer. Results may not overlap inputs, but
  /// for `may_overwrite`. Neither waits nor allocates on a GPU; on the CPU it is done when this returns. Any number of
  /// threads at once.
  Status launch(std::span<const uint64_t> inputs, std::span<const uint64_t> buffers, uint64_t workspace,
                const Stream& stream = {}) const;

 private:
  std::shared_ptr<const runtime::ProgramImpl> impl_;
};

}  // namespace kiln
