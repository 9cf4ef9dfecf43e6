// Numbers in order: torch.arange, linspace and eye; and what functions that make tensors have in common.
#pragma once
#include "repl/modules/torch/tensor_object.h"

namespace kiln::script {

/// The tensor with what requires_grad= says, where it is given.
Value grad_flag(Interp& in, Value tensor, const Value& flag);

/// Whether a tensor of numbers is part of what is made of it: on a GPU, where nothing need be copied then, and which
/// can be recorded for a graph.
bool counts_lazily(Interp& in, const Device& device);

/// make(), whose argument `at` is pin_memory=.
template <Value (*make)(Interp&, NativeArgs&), size_t at>
Value pinned(Interp& in, NativeArgs& a) {
  const bool pins = given(a[at]) && in.truth(a[at]);
  Value tensor = make(in, a);
  CallArgs none;
  return pins ? in.call(in.attribute(tensor, "pin_memory"), none) : tensor;
}

std::span<const NativeDef> range_functions();

}  // namespace kiln::script
