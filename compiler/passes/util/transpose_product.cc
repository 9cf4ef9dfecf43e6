#include "compiler/passes/util/transpose_product.h"

#include <algorithm>
#include <array>

#include "compiler/ir/builder.h"
#include "support/diag.h"

namespace kiln::passes {

namespace {

using ir::Op;
using ir::OpKind;
using ir::Value;

constexpr std::array<int64_t, 2> kSwapped = {1, 0};

/// Carries iteration value `index` of the loop transposed: inside it is only wanted so, and `next` is what follows it.
void carry_transposed(ir::Builder& b, Op* loop, size_t index, Value* wanted, Value* next) {
  ir::Block* body = loop->region();
  Value *arg = body->args[index + 1], *result = loop->results[index];
  const int init = static_cast<int>(index) + 3;
  b.set_before(loop);
  loop->set_operand(init, b.trans(loop->operand(init), kSwapped));
  body->terminator()->set_operand(static_cast<int>(index), next);
  Op* inside = wanted->op;
  arg->type = result->type = next->type;
  ir::replace_all_uses(wanted, arg);
  inside->erase();
  b.set_after(loop);
  const std::vector<ir::Use> uses = result->uses;
  Value* outside = b.trans(result, kSwapped);
  for (const ir::Use& use : uses) use.op->set_operand(static_cast<int>(use.index), outside);
}

}  // namespace

Op* transpose_product(ir::Module& module, Op* dot) {
  KILN_ASSERT(dot->result()->type.shape.rank == 2, "{}", ir::print(*dot));
  ir::Builder b(module);
  b.set_before(dot);
  b.set_range(dot->range);
  Value *a = b.trans(dot->operand(0), kSwapped), *right = b.trans(dot->operand(1), kSwapped),
        *sum = b.trans(dot->operand(2), kSwapped);
  Value* product = b.create1(OpKind::kDot, {right, a, sum}, sum->type);
  product->op->attrs = dot->attrs;
  Value *carried = dot->operand(2), *result = b.trans(product, kSwapped);
  ir::replace_all_uses(dot->result(), result);
  dot->erase();

  Op* loop = carried->block ? carried->block->parent : nullptr;
  if (!loop || loop->kind != OpKind::kFor || loop != product->op->parent->parent || carried->uses.size() != 1)
    return product->op;
  const auto& args = loop->region()->args;
  const auto index = static_cast<size_t>(std::find(args.begin(), args.end(), carried) - args.begin()) - 1;
  const Op* yield = loop->region()->terminator();
  if (yield->operands[index] != result || result->uses.size() != 1) return product->op;
  carry_transposed(b, loop, index, sum, product);
  result->op->erase();
  return product->op;
}

}  // namespace kiln::passes
