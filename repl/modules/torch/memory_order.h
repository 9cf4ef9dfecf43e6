// The order of a tensor's elements in memory, which copies, conversions and *_like tensors keep as torch's do:
// x.T.half() is a transposed view of a row-major tensor too.
#pragma once
#include <functional>

#include "kiln/tensor.h"
#include "repl/script/interp/interp.h"

namespace kiln::script {

/// Whether the elements fill their memory without gaps or overlaps, whatever the order of the dimensions.
bool is_dense(const Tensor& t);

/// A tensor of t's shape from `make`, which gets what it is to copy. Of a dense t that is its elements in the order of
/// their memory, in one dimension, and the result has t's strides; of any other t it is t itself.
Tensor in_memory_order(Interp& in, const Tensor& t, const std::function<Result<Tensor>(const Tensor&)>& make);

}  // namespace kiln::script
