// The implementations that builtins.def names. Each gets the call's bound arguments in the order of its row.
#pragma once
#include "compiler/frontend/codegen.h"

namespace kiln::frontend::impl {

using Impl = Result<Value>(Codegen& g, const BoundArgs& a);

// builtin_core.cc: programs, constants, types, hints, checks
Impl program_id, num_programs, arange, full, zeros, constexpr_value, to_tensor, cast_value, pointer_type, dtype_class,
    not_constructible, make_tuple, debug_barrier, gdc_wait, gdc_launch_dependents, hint, assume, static_assert_,
    static_print, device_print, device_assert, range, static_range, length, python_min_max, python_float, python_int,
    python_bool, python_str, is_instance, host_cdiv, next_power_of_2;
// builtin_memory.cc
Impl load, store, atomic_rmw, atomic_cas;
// builtin_math.cc
Impl arithmetic, logical, min_max, clamp, where, fma, fdiv, div_rn, umulhi, absolute, fmod, power;
Result<Value> math_unary(Codegen& g, const BoundArgs& a, ir::OpKind kind);
template <ir::OpKind kKind>
Result<Value> math_op(Codegen& g, const BoundArgs& a) {
  return math_unary(g, a, kKind);
}
// builtin_matrix.cc: products and tensor descriptors
Impl dot, make_tensor_descriptor, descriptor_load, descriptor_store;
// builtin_block_pointer.cc
Impl make_block_ptr, advance;
/// The text of argument `i`, which must be one of `allowed`; empty for None.
Result<std::string> one_of(Codegen& g, const BoundArgs& a, int i, std::initializer_list<std::string_view> allowed);
// builtin_shape.cc: shapes, reductions and scans
Impl expand_dims, broadcast, broadcast_to, reshape, trans, permute, join, split, reduce, associative_scan;

/// A tuple or list of integers (argument `i`), each a constexpr or a scalar of the running program, as scalars of
/// `dtype`.
Result<std::vector<ir::Value*>> scalars_arg(Codegen& g, const BoundArgs& a, int i, DType dtype);

/// The elements of a block in memory: a tile of pointers, and where the dimensions that argument `boundary_check` names
/// are inside of the tensor (null: everywhere).
struct BlockAccess {
  ir::Value* pointers = nullptr;
  ir::Value* mask = nullptr;
};
Result<BlockAccess> access_block(Codegen& g, const BoundArgs& a, const BlockPointerValue& pointer, int boundary_check);

}  // namespace kiln::frontend::impl
