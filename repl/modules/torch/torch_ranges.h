// Numbers in order: torch.arange, linspace and eye.
#pragma once
#include "repl/modules/torch/tensor_object.h"

namespace kiln::script {

/// The tensor with what requires_grad= says, where it is given.
Value grad_flag(Interp& in, Value tensor, const Value& flag);

/// Whether a tensor of numbers is part of what is made of it: on a GPU, where nothing need be copied then, and which
/// can be recorded for a graph.
bool counts_lazily(Interp& in, const Device& device);

std::span<const NativeDef> range_functions();

}  // namespace kiln::script
