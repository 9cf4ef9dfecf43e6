// Looking up elements of tensors, and putting them.
#pragma once
#include "repl/modules/torch/tensor_object.h"

namespace kiln::script {

/// Integers that say where to look along a dimension.
struct Looked {
  size_t dim;
  Expr places;
};

/// x with tensors of places for some of its dimensions, as torch arranges the result: their common shape stands where
/// the dimensions were, or first when they were not side by side.
Value looked_up(Interp& in, const Value& from, std::vector<Looked> looked);

/// The value as places on that device: an error unless it is a tensor of int32 or int64.
Value places_in(Interp& in, const Value& v, const Device& device);
/// An IndexError for a place outside of a dimension. Only on the CPU: a GPU would have to be waited for.
void check_places(Interp& in, const Value& places, int64_t size, int64_t dim, bool from_end,
                  std::string_view exception = "IndexError");

/// For each dimension, where the elements are that are not 0. On the host.
std::vector<Tensor> places_of_nonzero(Interp& in, const Tensor& t);

enum class Combine : uint8_t { kSet, kAdd, kMultiply, kLeast, kGreatest };
/// Elements of a tensor: row-major positions, each of `run` elements side by side.
struct Runs {
  std::vector<int64_t> first;
  int64_t run = 1;
};
/// Stores values at these elements of `to`, in their order. On the host.
void put_elements(Interp& in, const Tensor& to, const Runs& places, const Tensor& values, Combine how);
/// Combines the elements that tensors of places name with values, which are expanded to them. On the host.
void add_items(Interp& in, TensorObject& t, const Value& index, const Tensor& values, Combine how);

}  // namespace kiln::script
