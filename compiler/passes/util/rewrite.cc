#include "compiler/passes/util/rewrite.h"

#include <algorithm>
#include <unordered_set>

#include "compiler/interp/eval.h"

namespace kiln::passes {

using ir::Op;
using ir::OpKind;
using ir::Value;

std::optional<uint64_t> constant_of(const Value* v) {
  if (!v->op || v->op->kind != ir::OpKind::kConstant) return std::nullopt;
  return interp::constant_bits(*v->op);
}

Value* make_constant(ir::Builder& b, const ir::Type& type, uint64_t bits) {
  if (!type.is_float())
    return b.constant_int(type, type.pointer ? static_cast<int64_t>(bits) : interp::int_value(type.dtype, bits));
  if (is_nan_bits(type.dtype, bits) && bits != nan_bits(type.dtype)) return nullptr;
  const double value = float_from_bits(type.dtype, bits);
  // An infinity of f8e5m2 is no constant: numbers become fp8 by casts, which saturate.
  if (value == value && float_to_bits(type.dtype, value) != bits) return nullptr;
  return b.constant_float(type, value);
}

bool has_op(ir::Module& module, ir::OpKind kind) {
  bool found = false;
  ir::walk(module.body(), [&](const ir::Op* op) { found |= op->kind == kind; });
  return found;
}

void replace(Op* op, Value* value) {
  if (value->name.empty()) value->name = op->result()->name;
  ir::replace_all_uses(op->result(), value);
  op->erase();
}

std::vector<Value*> copies_of(const Copies& copies, std::span<Value* const> values) {
  std::vector<Value*> out(values.begin(), values.end());
  for (Value*& v : out)
    if (const auto known = copies.find(v); known != copies.end()) v = known->second;
  return out;
}

void erase_result(Op* op, int index) {
  op->results.erase(op->results.begin() + index);
  for (size_t i = static_cast<size_t>(index); i < op->results.size(); ++i)
    op->results[i]->index = static_cast<uint32_t>(i);
}

void inline_block(ir::Block* from, Op* before) {
  while (from->first != from->last) {
    Op* op = from->first;
    op->unlink();
    before->parent->insert_before(before, op);
  }
}

bool encloses(const Op* op, const ir::Block* block) {
  for (; block && block->parent; block = block->parent->parent)
    if (block->parent == op) return true;
  return false;
}

bool is_inside(const ir::Block* inner, const ir::Block* outer) {
  while (inner && inner != outer) inner = inner->parent ? inner->parent->parent : nullptr;
  return inner == outer;
}

std::optional<unsigned __int128> trip_count(const Op* loop) {
  const DType t = loop->operand(0)->type.dtype;
  __int128 bound[3];
  for (int i = 0; i < 3; ++i) {
    const auto bits = constant_of(loop->operand(i));
    if (!bits) return std::nullopt;
    bound[i] = is_signed(t) ? static_cast<__int128>(interp::int_value(t, *bits)) : static_cast<__int128>(*bits);
  }
  if (bound[2] <= 0) return std::nullopt;
  if (bound[1] <= bound[0]) return 0;
  return static_cast<unsigned __int128>((bound[1] - bound[0] + bound[2] - 1) / bound[2]);
}

int loops_around(const ir::Block* block) {
  int loops = 0;
  for (const Op* op = block->parent; op; op = op->parent->parent)
    loops += op->kind == ir::OpKind::kFor || op->kind == ir::OpKind::kWhile;
  return loops;
}

bool may_follow(const Op& other, const Op& op) {
  for (const Op* a = &op; a; a = a->parent->parent)
    for (const Op* o = &other; o; o = o->parent->parent)
      if (a->parent == o->parent) {
        const bool is_loop = a->kind == OpKind::kFor || a->kind == OpKind::kWhile;
        return is_in_loop(a->parent) || (a == o ? is_loop : a->is_before(o));
      }
  return false;
}

bool waits_for_others(const Op* op) {
  return op->kind == OpKind::kWhile && ir::any_nested(op, [](const Op* inner) {
           return inner->kind == OpKind::kAtomicRmw || inner->kind == OpKind::kAtomicCas ||
                  inner->kind == OpKind::kAsmEffect ||
                  (inner->kind == OpKind::kLoad && inner->flag(ir::AttrName::kVolatile));
         });
}

std::vector<const Op*> waiting_loops(ir::Module& module) {
  std::vector<const Op*> waits;
  ir::walk(module.body(), [&](const Op* op) {
    if (waits_for_others(op)) waits.push_back(op);
  });
  return waits;
}

const Op* wait_before(const Op& load, const std::vector<const Op*>& waits) {
  const auto at = std::ranges::find_if(waits, [&](const Op* wait) { return may_follow(load, *wait); });
  return at == waits.end() ? nullptr : *at;
}

std::vector<const Value*> carried_on(const ir::Use& use) {
  const Op* op = use.op;
  if (ir::is_pure(op) && ir::is_elementwise(op)) return {op->results.begin(), op->results.end()};
  if (op->kind == OpKind::kFor && use.index >= 3)
    return {op->region()->args[use.index - 2], op->results[use.index - 3]};
  if (op->kind != OpKind::kYield || !op->parent->parent) return {};
  const Op* around = op->parent->parent;
  if (around->kind == OpKind::kIf) return {around->results[use.index]};
  if (around->kind != OpKind::kFor) return {};
  return {around->results[use.index], around->region()->args[use.index + 1]};
}

bool ends_in(const Value* v, const std::function<bool(const ir::Use&)>& is_end) {
  constexpr size_t kSum = 2;  // the operand of a dot
  std::unordered_set<const Value*> seen;
  std::vector<const Value*> work = {v};
  while (!work.empty()) {
    const Value* next = work.back();
    work.pop_back();
    if (!seen.insert(next).second) continue;
    if (next->type.shape != v->type.shape) return false;
    for (const ir::Use& use : next->uses) {
      std::vector<const Value*> on = carried_on(use);
      if (use.op->kind == OpKind::kDot && use.index == kSum) on = {use.op->result()};
      if (on.empty() && !is_end(use)) return false;
      work.insert(work.end(), on.begin(), on.end());
    }
  }
  return true;
}

bool changes_memory(const Op* op) {
  return ir::any_nested(op, [](const Op* inner) {
    if (!ir::writes_memory(inner) || inner->kind == ir::OpKind::kPrefetch) return false;
    return ir::has_trait(inner->kind, 'X') ||
           std::any_of(inner->operands.begin(), inner->operands.end(), [](const Value* v) { return v->type.pointer; });
  });
}

}  // namespace kiln::passes
