// Gradients of scripts: what torch.func is made of, and changes in place that gradients see.
#pragma once
#include "repl/modules/torch/tensor_object.h"

namespace kiln::script {

/// `to` with values at row-major positions, a vector of int64 beside it, of which the last counts where there are
/// several for one: an expression.
Expr with_put(Interp& in, const Expr& to, const Tensor& places, const Expr& values);
/// The same with values added.
Expr with_added(Interp& in, const Expr& to, const Tensor& places, const Expr& values);
/// `to` with values from starts on, by steps, in each dimension; they have the shape of that part.
Expr with_part(Interp& in, const Expr& to, const Shape& starts, const Shape& steps, const Expr& values);

/// Natives of torch._kiln.
std::span<const NativeDef> grad_functions();
std::span<const NativeDef> update_functions();
void install_grad(Interp& in);

}  // namespace kiln::script
