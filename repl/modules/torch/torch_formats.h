#pragma once
// Orders of dimensions in memory by torch's names, and others of its constants.
#include "repl/modules/torch/tensor_object.h"

namespace kiln::script {

/// torch.strided, memory formats, functions in place by the names of methods.
void add_constants(Interp& in, ModuleObject& m);

/// torch.strided
Value strided_layout(Interp& in);

/// The tensor in a memory format (None: as it is), which is itself where it has that one. Of a tensor with a gradient
/// channels_last asks for nothing: what is computed is row-major.
Value in_memory_format(Interp& in, const Value& tensor, const Value& format);

/// Whether the tensor's elements lie as the format says; None: in row-major order.
bool has_memory_format(Interp& in, const Value& tensor, const Value& format);

}  // namespace kiln::script
