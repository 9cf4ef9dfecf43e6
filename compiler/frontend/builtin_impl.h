// The implementations that builtins.def names. Each gets the call's bound arguments in the order of its row.
#pragma once
#include "compiler/frontend/codegen.h"

namespace kiln::frontend::impl {

using Impl = Result<Value>(Codegen& g, const BoundArgs& a);

#define KILN_BUILTIN(name, where, params, fn) Impl fn;
#include "compiler/frontend/builtins.def"

Result<Value> math_unary(Codegen& g, const BoundArgs& a, ir::OpKind kind);
template <ir::OpKind kKind>
Result<Value> math_op(Codegen& g, const BoundArgs& a) {
  return math_unary(g, a, kKind);
}
/// Which of `words` argument `i` names, among those that may stand on an op of that mnemonic; nullopt for None and ''.
Result<std::optional<size_t>> word_index(Codegen& g, const BoundArgs& a, int i, std::span<const ir::Word> words,
                                         std::string_view mnemonic);
template <ir::WordSet E>
Result<std::optional<E>> word_arg(Codegen& g, const BoundArgs& a, int i, std::string_view mnemonic = {}) {
  KILN_TRY(const std::optional<size_t> index, word_index(g, a, i, ir::kWords<E>, mnemonic));
  return index ? std::optional(static_cast<E>(*index)) : std::nullopt;
}

/// The value with one more dimension, of one element.
Result<ir::Value*> with_axis(Codegen& g, ir::Value* v, int axis, SourceRange range);

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

/// How an atomic is ordered among other accesses, and for whom.
struct Ordering {
  ir::Sem sem;
  ir::Scope scope;
};
/// The read-modify-write that the builtin names, of `v` into `p`; gives the old value.
Result<ir::Value*> emit_rmw(Codegen& g, const BoundArgs& a, const Ordering& order, ir::Value* p, ir::Value* v,
                            ir::Value* mask);

}  // namespace kiln::frontend::impl
