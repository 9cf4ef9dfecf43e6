// The order of a tensor's elements in memory, which copies, conversions and *_like tensors keep as torch's do:
// x.T.half() is a transposed view of a row-major tensor too.
#pragma once
#include <functional>
#include <vector>

#include "kiln/tensor.h"
#include "repl/script/interp/interp.h"

namespace kiln::script {

/// Whether the elements fill their memory without gaps or overlaps, whatever the order of the dimensions.
bool is_dense(const Tensor& t);

/// The dimensions of a dense tensor, outermost in memory first, and the permutation that undoes one.
std::vector<int> memory_order(const Tensor& t);
std::vector<int> inverse(const std::vector<int>& order);

/// A tensor of t's shape from `make`, which gets what it is to copy. Of a dense t that is its elements in the order of
/// their memory, in one dimension, and the result has t's strides; of any other t it is t itself.
Tensor in_memory_order(Interp& in, const Tensor& t, const std::function<Result<Tensor>(const Tensor&)>& make);

}  // namespace kiln::script
