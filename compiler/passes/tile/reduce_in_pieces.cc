#include "compiler/passes/tile/reduce_in_pieces.h"

#include <algorithm>
#include <bit>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "compiler/ir/builder.h"
#include "compiler/passes/util/rewrite.h"

namespace kiln::passes {

namespace {

using ir::Block;
using ir::Op;
using ir::OpKind;
using ir::Type;
using ir::Value;

/// Loaded elements of a thread beyond which one reduction is a loop: its registers do not hold more.
constexpr int64_t kMostHeld = 256;
/// Elements that a thread has of a piece, of each load.
constexpr int64_t kOfPiece = 32;

/// What a reduction's operands are computed from that varies along its dimension.
class Slice {
 public:
  explicit Slice(Op* reduce) : reduce_(reduce), axis_(static_cast<int>(reduce->int_attr(ir::AttrName::kAxis))) {}

  Op* reduce() const { return reduce_; }
  int64_t length() const { return reduce_->operand(0)->type.shape[axis_]; }
  bool has(const Op* op) const { return along_.contains(op); }
  int64_t loads() const {
    return std::ranges::count_if(along_, [](const auto& each) { return each.first->kind == OpKind::kLoad; });
  }

  /// Whether all of it can be computed again for a piece, at the reduction.
  bool found() {
    for (const Block* b : reduce_->regions)
      for (const Op* op : *b)
        if (!ir::is_terminator(op) && op->kind != OpKind::kConstant && !(ir::is_elementwise(op) && ir::is_pure(op)))
          return false;
    return std::ranges::all_of(reduce_->operands, [&](const Value* v) { return add(v, axis_); }) && loads() > 0;
  }

  /// Whether uses elsewhere need no value of it whole; `taken`: slices of other reductions.
  bool is_used_by(const std::vector<Slice>& taken) const {
    return std::ranges::all_of(along_, [&](const auto& each) {
      return std::ranges::all_of(each.first->result()->uses, [&](const ir::Use& use) {
        return std::ranges::any_of(taken, [&](const Slice& s) { return s.reduce_ == use.op || s.has(use.op); }) ||
               is_unused(use.op);
      });
    });
  }

  void rewrite(ir::Module& module, int64_t piece) const {
    ir::Builder b(module);
    b.set_before(reduce_);
    b.set_range(reduce_->range);
    const Type index = ir::scalar_type(DType::kI32);
    const std::vector<Value*> first = operands_at(b, b.constant_int(index, 0), piece);
    Op* loop =
        b.for_loop(b.constant_int(index, piece), b.constant_int(index, length()), b.constant_int(index, piece), first);
    b.set_to_end(loop->region());
    std::vector<Value*> both(loop->region()->args.begin() + 1, loop->region()->args.end());
    const std::vector<Value*> next = operands_at(b, loop->region()->args[0], piece);
    both.insert(both.end(), next.begin(), next.end());
    b.yield(combined(b, both));
    for (size_t i = 0; i < reduce_->operands.size(); ++i) reduce_->set_operand(static_cast<int>(i), loop->results[i]);
  }

 private:
  /// Takes in what makes `v`, whose dimension `dim` is the reduction's.
  bool add(const Value* v, int dim) {
    const Op* op = v->op;
    if (!op || op->parent != reduce_->parent || op->results.size() != 1 || !op->regions.empty()) return false;
    if (const auto [known, is_new] = along_.try_emplace(op, dim); !is_new) return known->second == dim;
    switch (op->kind) {
      case OpKind::kConstant:
      case OpKind::kSplat:
      case OpKind::kArange:
        return true;
      case OpKind::kExpandDims: {
        const auto at = static_cast<int>(op->int_attr(ir::AttrName::kAxis));
        return at != dim && add(op->operand(0), at < dim ? dim - 1 : dim);
      }
      case OpKind::kBroadcast:
        return op->operand(0)->type.shape[dim] == 1 || add(op->operand(0), dim);
      case OpKind::kLoad:
        if (op->flag(ir::AttrName::kVolatile) || changes_until_reduced(op)) return false;
        break;
      default:
        if (!ir::is_elementwise(op) || !ir::is_pure(op)) return false;
    }
    return std::ranges::all_of(op->operands, [&](const Value* o) { return add(o, dim); });
  }

  bool changes_until_reduced(const Op* load) const {
    for (const Op* op = load->next; op != reduce_; op = op->next)
      if (changes_memory(op)) return true;
    return false;
  }

  static bool is_unused(const Op* op) {
    return ir::is_pure(op) && std::ranges::all_of(op->results, [](const Value* r) { return r->uses.empty(); });
  }

  /// The type of an op's result for a piece.
  Type type_of(const Op* op, int64_t piece) const {
    Type t = op->result()->type;
    t.shape[along_.at(op)] = static_cast<int32_t>(piece);
    return t;
  }

  /// The reduction's operands, of the columns from `start` on.
  std::vector<Value*> operands_at(ir::Builder& b, Value* start, int64_t piece) const {
    std::unordered_map<const Value*, Value*> copies;
    auto copy_of = [&](Value* v) {
      const auto known = copies.find(v);
      return known == copies.end() ? v : known->second;
    };
    for (const Op* op = reduce_->parent->first; op != reduce_; op = op->next) {
      if (!has(op)) continue;
      const Type type = type_of(op, piece);
      b.set_range(op->range);
      Value* copy = nullptr;
      if (op->kind == OpKind::kArange) {
        const auto from = static_cast<int>(op->int_attr(ir::AttrName::kStart));
        copy = b.binary(OpKind::kAdd, b.splat(start, type.shape), b.arange(from, from + static_cast<int>(piece)));
      } else {
        std::vector<Value*> operands;
        for (Value* o : op->operands) operands.push_back(copy_of(o));
        copy = b.create(op->kind, operands, std::span(&type, 1), op->attrs)->result();
      }
      copy->name = op->result()->name;
      copies[op->result()] = copy;
    }
    std::vector<Value*> out;
    for (Value* v : reduce_->operands) out.push_back(copy_of(v));
    return out;
  }

  /// What the reduction's region makes of two pieces, element by element.
  std::vector<Value*> combined(ir::Builder& b, const std::vector<Value*>& both) const {
    const Block* region = reduce_->region();
    std::unordered_map<const Value*, Value*> copies;
    for (size_t i = 0; i < both.size(); ++i) copies[region->args[i]] = both[i];
    std::vector<Value*> out;
    for (const Op* op : *region) {
      std::vector<Value*> operands;
      for (const Value* o : op->operands) operands.push_back(copies.at(o));
      if (ir::is_terminator(op)) return operands;
      Type type = op->result()->type;
      type.shape = both[0]->type.shape;
      copies[op->result()] = b.create(op->kind, operands, std::span(&type, 1), op->attrs)->result();
    }
    return out;
  }

  Op* reduce_;
  int axis_;
  std::unordered_map<const Op*, int> along_;  // and the dimension of its result that is the reduction's
};

}  // namespace

Status reduce_in_pieces(ir::Module& module, const target::Target&, Remarks* remarks) {
  const int64_t threads = int64_t{32} * module.num_warps;
  std::vector<Slice> taken;
  ir::walk(module.body(), [&](Op* op) {
    if (op->kind != OpKind::kReduce) return;
    Slice slice(op);
    const int64_t each = op->operand(0)->type.shape.numel() / threads;
    if (each > kOfPiece && slice.found() && each * slice.loads() > kMostHeld) taken.push_back(std::move(slice));
  });
  // Reductions that share values are taken together or not at all.
  auto is_alone = [&](const Slice& s) { return !s.is_used_by(taken); };
  for (auto s = std::ranges::find_if(taken, is_alone); s != taken.end(); s = std::ranges::find_if(taken, is_alone))
    taken.erase(s);
  for (const Slice& s : taken) {
    const int64_t each = s.reduce()->operand(0)->type.shape.numel() / threads;
    const int64_t pieces = std::min(s.length(), each / kOfPiece);
    remark(remarks, s.reduce()->range, Reason::kReducedInPieces, each, pieces);
    s.rewrite(module, s.length() / pieces);
  }
  return {};
}

}  // namespace kiln::passes
