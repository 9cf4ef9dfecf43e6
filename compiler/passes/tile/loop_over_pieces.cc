#include "compiler/passes/tile/loop_over_pieces.h"

#include <algorithm>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "compiler/analysis/pointer_origins.h"
#include "compiler/ir/builder.h"
#include "compiler/passes/util/rewrite.h"

namespace kiln::passes {

namespace {

using ir::Block;
using ir::Op;
using ir::OpKind;
using ir::Type;
using ir::Value;

/// Loaded elements of a thread beyond which what they are for is a loop, since its registers do not hold more; and of a
/// program, from which on they fill an SM's. Softmaxes on an H200: 500 x 32000 take 52 us held in 4 warps and 73 by
/// pieces, 1000 x 50257 in 8, 16 and 32 warps 260, 176 and 208 held and 230, 164 and 155 by pieces.
constexpr int64_t kMostOfThread = 256;
/// Elements that a thread has of a piece, of each load. Its loads are under way together, which hides their latency
/// better than more pieces do: log-sums of 1086 x 50257 and 895 x 65024, two programs of 1024 threads on an SM, take 57
/// and 51 us by pieces of 32, 80 and 56 by 16, 78 and 60 by 8.
constexpr int64_t kOfPiece = 32;

/// What the operands of a reduction or a store, the slice's end, are computed from that varies along a dimension.
class Slice {
 public:
  explicit Slice(Op* end) : end_(end), dim_(dim_of(*end)) {}

  Op* end() const { return end_; }
  int64_t length() const { return shape()[dim_]; }
  int64_t elements() const { return shape().numel(); }
  bool has(const Op* op) const { return along_.contains(op); }
  int64_t loads() const { return std::ranges::count_if(along_, is_load); }

  /// Whether all of it can be computed again for a piece, at its end.
  bool found() {
    if (dim_ < 0) return false;
    for (const Block* b : end_->regions)
      for (const Op* op : *b)
        if (!ir::is_terminator(op) && op->kind != OpKind::kConstant && !(ir::is_elementwise(op) && ir::is_pure(op)))
          return false;
    return std::ranges::all_of(end_->operands, [&](const Value* v) { return add(v, dim_); }) && loads() > 0 &&
           !stores_what_it_loads();
  }

  /// Whether uses elsewhere need nothing whole that is loaded, or computed from that; `taken`: slices of other ends.
  bool is_used_by(const std::vector<Slice>& taken) const {
    std::unordered_set<const Op*> loaded;
    for (const Op* op = end_->parent->first; op != end_; op = op->next) {
      auto is_loaded = [&](const Value* v) { return v->op && loaded.contains(v->op); };
      if (!has(op) || (op->kind != OpKind::kLoad && std::ranges::none_of(op->operands, is_loaded))) continue;
      loaded.insert(op);
      for (const ir::Use& use : op->result()->uses)
        if (!is_unused(use.op) &&
            std::ranges::none_of(taken, [&](const Slice& s) { return s.end_ == use.op || s.has(use.op); }))
          return false;
    }
    return true;
  }

  void rewrite(ir::Module& module, int64_t piece) const {
    ir::Builder b(module);
    b.set_before(end_);
    b.set_range(end_->range);
    const Type index = ir::scalar_type(DType::kI32);
    auto number = [&](int64_t v) { return b.constant_int(index, v); };
    if (end_->kind == OpKind::kStore) {
      Op* loop = b.for_loop(number(0), number(length()), number(piece), {});
      b.set_to_end(loop->region());
      b.create(end_->kind, operands_at(b, loop->region()->args[0], piece), {}, end_->attrs);
      b.yield({});
      end_->erase();
      return;
    }
    const std::vector<Value*> first = operands_at(b, number(0), piece);
    Op* loop = b.for_loop(number(piece), number(length()), number(piece), first);
    b.set_to_end(loop->region());
    std::vector<Value*> both(loop->region()->args.begin() + 1, loop->region()->args.end());
    const std::vector<Value*> next = operands_at(b, loop->region()->args[0], piece);
    both.insert(both.end(), next.begin(), next.end());
    b.yield(combined(b, both));
    end_->remove(ir::AttrName::kContract);
    for (size_t i = 0; i < end_->operands.size(); ++i) end_->set_operand(static_cast<int>(i), loop->results[i]);
  }

 private:
  using Along = std::pair<const Op* const, int>;

  static bool is_load(const Along& each) { return each.first->kind == OpKind::kLoad; }
  const ir::Shape& shape() const { return end_->operand(0)->type.shape; }

  /// The dimension that pieces are of: the reduction's, or a store's longest; -1: there is none.
  static int dim_of(const Op& end) {
    if (end.kind == OpKind::kReduce) return static_cast<int>(end.int_attr(ir::AttrName::kAxis));
    const ir::Shape& shape = end.operand(0)->type.shape;
    int longest = -1;
    for (int d = 0; d < shape.rank; ++d)
      if (longest < 0 || shape[d] > shape[longest]) longest = d;
    return longest;
  }

  /// Whether a piece's store might change what the next one loads: through the same parameter, or through another one
  /// for which a launch gives the same tensor, unless each element is stored where it was loaded.
  bool stores_what_it_loads() const {
    return end_->kind == OpKind::kStore && std::ranges::any_of(along_, [&](const Along& each) {
             if (!is_load(each)) return false;
             const Value *from = each.first->operand(0), *to = end_->operand(0);
             return analysis::pointer_origins(from).meets(analysis::pointer_origins(to)) || !have_same_places(from, to);
           });
  }

  /// Whether two addresses are computed alike from the bases of two tensors.
  static bool have_same_places(const Value* a, const Value* b) {
    std::set<std::pair<const Value*, const Value*>> seen;
    std::vector<std::pair<const Value*, const Value*>> work = {{a, b}};
    while (!work.empty()) {
      const auto [p, q] = work.back();
      work.pop_back();
      if (p == q || !seen.insert({p, q}).second) continue;
      if (!p->op && !q->op && p->type.pointer && q->type.pointer && p->block == q->block && !p->block->parent) continue;
      if (!p->op || !q->op || p->op->kind != q->op->kind || p->op->attrs != q->op->attrs ||
          p->op->operands.size() != q->op->operands.size() || !ir::is_pure(p->op) || !p->op->regions.empty())
        return false;
      for (size_t i = 0; i < p->op->operands.size(); ++i) work.emplace_back(p->op->operands[i], q->op->operands[i]);
    }
    return true;
  }

  /// Takes in what makes `v`, whose dimension `dim` is the slice's.
  bool add(const Value* v, int dim) {
    const Op* op = v->op;
    if (!op || op->parent != end_->parent || op->results.size() != 1 || !op->regions.empty()) return false;
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
        if (op->flag(ir::AttrName::kVolatile) || changes_until_end(*op)) return false;
        break;
      default:
        if (!ir::is_elementwise(op) || !ir::is_pure(op)) return false;
    }
    return std::ranges::all_of(op->operands, [&](const Value* o) { return add(o, dim); });
  }

  /// Also by a store through another parameter, for which a launch may give the same tensor: what is done in place.
  bool changes_until_end(const Op& load) const {
    for (const Op* op = load.next; op != end_; op = op->next)
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

  /// The end's operands, of the columns from `start` on.
  std::vector<Value*> operands_at(ir::Builder& b, Value* start, int64_t piece) const {
    Copies copies;
    for (const Op* op = end_->parent->first; op != end_; op = op->next) {
      if (!has(op)) continue;
      const Type type = type_of(op, piece);
      b.set_range(op->range);
      Value* copy = nullptr;
      if (op->kind == OpKind::kArange) {
        const auto from = static_cast<int>(op->int_attr(ir::AttrName::kStart));
        copy = b.binary(OpKind::kAdd, b.splat(start, type.shape), b.arange(from, from + static_cast<int>(piece)));
      } else {
        copy = b.create(op->kind, copies_of(copies, op->operands), std::span(&type, 1), op->attrs)->result();
      }
      copy->name = op->result()->name;
      copies[op->result()] = copy;
    }
    return copies_of(copies, end_->operands);
  }

  /// What the reduction's region makes of two pieces, element by element.
  std::vector<Value*> combined(ir::Builder& b, const std::vector<Value*>& both) const {
    const Block* region = end_->region();
    // The next piece's products are added to the sums as they are made.
    if (const Op* product = both.back()->op; ir::contracted_product(*end_))
      return {b.create1(OpKind::kFma, {product->operand(0), product->operand(1), both[0]}, both[0]->type)};
    Copies copies;
    for (size_t i = 0; i < both.size(); ++i) copies[region->args[i]] = both[i];
    for (const Op* op : *region) {
      if (ir::is_terminator(op)) break;
      Type type = op->result()->type;
      type.shape = both[0]->type.shape;
      copies[op->result()] =
          b.create(op->kind, copies_of(copies, op->operands), std::span(&type, 1), op->attrs)->result();
    }
    return copies_of(copies, region->terminator()->operands);
  }

  Op* end_;
  int dim_;
  std::unordered_map<const Op*, int> along_;  // and the dimension of its result that is the slice's
};

}  // namespace

Status loop_over_pieces(ir::Module& module, const target::Target& target, Remarks* remarks) {
  const int64_t threads = int64_t{32} * module.num_warps;
  auto is_too_much = [&](int64_t held) { return held > kMostOfThread || held * threads >= target.registers_per_sm; };
  std::vector<Slice> taken;
  ir::walk(module.body(), [&](Op* op) {
    if (op->kind != OpKind::kReduce && op->kind != OpKind::kStore) return;
    Slice slice(op);
    const int64_t each = slice.elements() / threads;
    if (each > kOfPiece && slice.found() && is_too_much(each * slice.loads())) taken.push_back(std::move(slice));
  });
  // Those that share values are taken together or not at all.
  auto is_alone = [&](const Slice& s) { return !s.is_used_by(taken); };
  for (auto s = std::ranges::find_if(taken, is_alone); s != taken.end(); s = std::ranges::find_if(taken, is_alone))
    taken.erase(s);
  for (const Slice& s : taken) {
    const int64_t each = s.elements() / threads, pieces = std::min(s.length(), each / kOfPiece);
    remark(remarks, s.end()->range, Reason::kInPieces, s.end()->kind == OpKind::kStore ? "stored" : "reduced", each,
           pieces);
    s.rewrite(module, s.length() / pieces);
  }
  return {};
}

}  // namespace kiln::passes
