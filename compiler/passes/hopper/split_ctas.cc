#include "compiler/passes/hopper/split_ctas.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <numeric>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "compiler/analysis/pointer_origins.h"
#include "compiler/layout/tensor_core.h"
#include "compiler/passes/util/rewrite.h"
#include "support/diag.h"

namespace kiln::passes {

using ir::AttrName;
using ir::Op;
using ir::OpKind;
using ir::Value;
using layout::kGroupRows;
using layout::kGroupWarps;

namespace {

/// Dimensions of tiles and descriptors, in classes that are split together or not at all.
class Dimensions {
 public:
  void add(const Value* v) {
    if (!v->type.is_tile() && v->type.form != ir::Form::kDescriptor) return;
    first_.emplace(v, parent_.size());
    values_.push_back(v);
    for (int d = 0; d < v->type.shape.rank; ++d) {
      parent_.push_back(parent_.size());
      whole_.push_back(v->type.shape[d] == 1);
      parted_.push_back(false);
    }
  }

  void join(const Value* a, int dim_a, const Value* b, int dim_b) {
    const size_t x = root(a, dim_a), y = root(b, dim_b);
    if (x == y) return;
    parent_[y] = x;
    whole_[x] = whole_[x] || whole_[y];
  }
  void join(const Value* a, const Value* b) {
    if (!first_.contains(a) || !first_.contains(b)) return;
    for (int d = 0; d < a->type.shape.rank; ++d) join(a, d, b, d);
  }
  void keep_whole(const Value* v, int dim) { whole_[root(v, dim)] = true; }
  void keep_whole(const Value* v) {
    for (int d = 0; first_.contains(v) && d < v->type.shape.rank; ++d) keep_whole(v, d);
  }

  /// The dimension of `v` that is split, or -1.
  int parted(const Value* v) {
    for (int d = 0; first_.contains(v) && d < v->type.shape.rank; ++d)
      if (parted_[root(v, d)]) return d;
    return -1;
  }

  /// Splits the class of that dimension into `parts`; false when a member may not be, or has another split dimension.
  bool part(const Value* v, int dim, int parts) {
    const size_t chosen = root(v, dim);
    if (parted_[chosen]) return true;
    if (whole_[chosen]) return false;
    for (const Value* other : values_) {
      int count = 0;
      for (int d = 0; d < other->type.shape.rank; ++d) {
        const size_t r = root(other, d);
        if (r == chosen && other->type.shape[d] < parts) return false;
        count += r == chosen || parted_[r];
      }
      if (count > 1) return false;
    }
    parted_[chosen] = true;
    return true;
  }

  const std::vector<const Value*>& values() const { return values_; }

 private:
  size_t root(const Value* v, int dim) {
    size_t i = first_.at(v) + static_cast<size_t>(dim);
    while (parent_[i] != i) i = parent_[i] = parent_[parent_[i]];
    return i;
  }

  std::unordered_map<const Value*, size_t> first_;
  std::vector<const Value*> values_;  // in the order of the text
  std::vector<size_t> parent_;
  std::vector<bool> whole_, parted_;  // of a class, at its root
};

class Splitter {
 public:
  explicit Splitter(ir::Module& module) : module_(module), parts_(module.num_ctas) {}

  Status run() {
    for (const Value* v : module_.body()->args) dims_.add(v);
    ir::walk(module_.body(), [&](Op* op) {
      for (const Value* r : op->results) dims_.add(r);
      for (const ir::Block* region : op->regions)
        for (const Value* arg : region->args) dims_.add(arg);
    });
    Status status;
    ir::walk(module_.body(), [&](Op* op) {
      if (status.ok()) status = relate(*op);
    });
    KILN_CHECK_OK(status);
    choose();
    ir::walk(module_.body(), [&](Op* op) {
      if (status.ok()) status = check(*op);
    });
    KILN_CHECK_OK(status);
    rewrite();
    return {};
  }

 private:
  template <class... Args>
  Diagnostic refuse(const Op& op, fmt::format_string<Args...> f, Args&&... args) const {
    return with_note(error_at(op.range, ErrorKind::kUnsupported, "num_ctas = {}: {}", parts_,
                              fmt::format(f, std::forward<Args>(args)...)),
                     "help: launch it with num_ctas=1");
  }

  static bool is_store(const Op& op) { return op.kind == OpKind::kStore || op.kind == OpKind::kDescriptorStore; }

  Status relate(const Op& op) {
    switch (op.kind) {
      case OpKind::kAtomicRmw:
      case OpKind::kAtomicCas:
      case OpKind::kAsmEffect:
      case OpKind::kBarrier:
      case OpKind::kPrint:
        return refuse(op, "{} needs all threads of a program in one CTA", ir::info(op.kind).mnemonic);
      case OpKind::kExpandDims:
        expand(op.operand(0), op.result(), static_cast<int>(op.int_attr(AttrName::kAxis)));
        return {};
      case OpKind::kBroadcast:
        for (int d = 0; d < op.result()->type.shape.rank; ++d)
          if (op.operand(0)->type.shape[d] == op.result()->type.shape[d]) dims_.join(op.operand(0), d, op.result(), d);
        return {};
      case OpKind::kTrans: {
        const auto& order = std::get<std::vector<int64_t>>(*op.find(AttrName::kOrder));
        for (int d = 0; d < op.result()->type.shape.rank; ++d)
          dims_.join(op.operand(0), static_cast<int>(order[static_cast<size_t>(d)]), op.result(), d);
        return {};
      }
      case OpKind::kReshape:
        dims_.keep_whole(op.operand(0));
        dims_.keep_whole(op.result());
        return {};
      case OpKind::kJoin:
      case OpKind::kSplit: {
        const bool joins = op.kind == OpKind::kJoin;
        const Value* pairs = joins ? op.result() : op.operand(0);
        dims_.keep_whole(pairs, pairs->type.shape.rank - 1);
        for (const Value* half : joins ? op.operands : op.results)
          for (int d = 0; d < half->type.shape.rank; ++d) dims_.join(half, d, pairs, d);
        return {};
      }
      case OpKind::kReduce:
      case OpKind::kScan: {
        const int axis = static_cast<int>(op.int_attr(AttrName::kAxis));
        for (size_t i = 0; i < op.operands.size(); ++i) {
          dims_.keep_whole(op.operands[i], axis);
          dims_.join(op.operands[0], op.operands[i]);
          if (op.kind == OpKind::kScan)
            dims_.join(op.operands[i], op.results[i]);
          else if (op.results[i]->type.is_tile())
            expand(op.results[i], op.operands[i], axis);
        }
        return {};
      }
      case OpKind::kDot:
        dot(op);
        return {};
      case OpKind::kDescriptorLoad:
        block(op.operand(0), op.result());
        return {};
      case OpKind::kDescriptorStore:
        if (op.has(AttrName::kRmw)) return refuse(op, "atomic_add needs all threads of a program in one CTA");
        block(op.operand(0), op.operand(1));
        return {};
      case OpKind::kFor:
        for (size_t i = 0; i < op.results.size(); ++i) {
          dims_.join(op.results[i], op.operands[i + 3]);
          dims_.join(op.results[i], op.region()->args[i + 1]);
          dims_.join(op.results[i], op.region()->terminator()->operands[i]);
        }
        return {};
      case OpKind::kWhile: {
        const ir::Block *before = op.region(0), *after = op.region(1);
        for (size_t i = 0; i < before->args.size(); ++i) {
          dims_.join(before->args[i], op.operands[i]);
          dims_.join(before->args[i], after->terminator()->operands[i]);
        }
        for (size_t i = 0; i < op.results.size(); ++i) {
          dims_.join(op.results[i], after->args[i]);
          dims_.join(op.results[i], before->terminator()->operands[i + 1]);
        }
        return {};
      }
      case OpKind::kIf:
        for (size_t i = 0; i < op.results.size(); ++i)
          for (const ir::Block* region : op.regions) dims_.join(op.results[i], region->terminator()->operands[i]);
        return {};
      default:
        if (ir::is_elementwise(&op) || op.kind == OpKind::kAssert) elementwise(op);
        // Any element may depend on any other one.
        for (const auto* values : {&op.operands, &op.results})
          for (const Value* v : *values)
            if (ir::is_across(op.kind)) dims_.keep_whole(v);
        return {};  // nothing relates the dimensions of the others' tiles
    }
  }

  /// All dimensions of `small` but `axis` are those of `large`.
  void expand(const Value* small, const Value* large, int axis) {
    for (int d = 0; d < large->type.shape.rank; ++d)
      if (d != axis) dims_.join(small, d - (d > axis), large, d);
  }

  /// A block may lack leading dimensions of 1.
  void block(const Value* descriptor, const Value* tile) {
    const int dropped = ir::dropped_dims(descriptor->type.shape, tile->type.shape);
    for (int d = 0; d < tile->type.shape.rank; ++d) dims_.join(descriptor, d + dropped, tile, d);
  }

  void elementwise(const Op& op) {
    const Value* first = nullptr;
    for (const auto* values : {&op.operands, &op.results})
      for (const Value* v : *values) {
        if (!v->type.is_tile()) continue;
        if (first) dims_.join(first, v);
        first = v;
      }
  }

  void dot(const Op& op) {
    const Value *a = op.operand(0), *b = op.operand(1);
    const int row = op.result()->type.shape.rank - 2, column = row + 1;
    dims_.join(op.operand(2), op.result());
    dims_.keep_whole(a, column);
    dims_.keep_whole(b, row);
    for (int batch = 0; batch < row; ++batch) {
      dims_.join(a, batch, op.result(), batch);
      dims_.join(b, batch, op.result(), batch);
    }
    dims_.join(a, row, op.result(), row);
    dims_.join(b, column, op.result(), column);
  }

  /// Products first. Of each its longer side, but rows only where each warp group keeps as many as a wgmma has: of the
  /// rest, a product's columns lose nothing.
  void choose() {
    std::vector<const Value*> wanted;
    ir::walk(module_.body(), [&](Op* op) {
      if (op->kind == OpKind::kDot) wanted.push_back(op->result());
    });
    ir::walk(module_.body(), [&](Op* op) {
      if (is_store(*op)) wanted.push_back(op->operand(1));
    });
    for (const Value* v : wanted) {
      if (!v->type.is_tile() || dims_.parted(v) >= 0) continue;
      std::vector<int> order(static_cast<size_t>(v->type.shape.rank));
      std::iota(order.begin(), order.end(), 0);
      auto extent = [&](int d) {
        const bool few = v->op && v->op->kind == OpKind::kDot && d == v->type.shape.rank - 2 &&
                         v->type.shape[d] < parts_ * kGroupRows * (module_.num_warps / kGroupWarps);
        return few ? 0 : v->type.shape[d];
      };
      std::stable_sort(order.begin(), order.end(), [&](int x, int y) { return extent(x) > extent(y); });
      std::any_of(order.begin(), order.end(), [&](int d) { return dims_.part(v, d, parts_); });
    }
  }

  /// What a block writes no other one writes too, or reads.
  Status check(const Op& op) {
    if (is_store(op) && dims_.parted(op.operand(1)) < 0)
      return refuse(op, "every CTA would store the same values: no dimension of this {} can be split across them",
                    ir::to_string(op.operand(1)->type));
    if (op.kind != OpKind::kLoad && op.kind != OpKind::kDescriptorLoad) return {};
    const analysis::PointerOrigins origins = analysis::pointer_origins(op.operand(0));
    if (!stores_) collect_stores();
    for (const auto& [store, stored] : *stores_) {
      if (!origins.meets(stored)) continue;
      const bool own_share =
          op.operand(0) == store->operand(0) && op.kind == OpKind::kLoad && dims_.parted(op.operand(0)) >= 0;
      if (!own_share)
        return refuse(op,
                      "another CTA may write the memory that this reads, since the kernel also stores to that tensor");
    }
    return {};
  }

  void collect_stores() {
    stores_.emplace();
    ir::walk(module_.body(), [&](Op* op) {
      if (is_store(*op)) stores_->emplace_back(op, analysis::pointer_origins(op->operand(0)));
    });
  }

  void rewrite() {
    ir::Builder b(module_);
    b.set_before(module_.body()->first);
    rank_ = b.cta_rank();
    std::vector<Op*> ops;
    ir::walk(module_.body(), [&](Op* op) { ops.push_back(op); });
    for (Op* op : ops) move_share(*op);
    for (const Value* v : dims_.values())
      if (const int d = dims_.parted(v); d >= 0) {
        auto& shape = const_cast<Value*>(v)->type.shape;
        shape.dims[static_cast<size_t>(d)] /= parts_;
      }
  }

  /// Where the op's tile starts moves with the rank. Types change after all ops have been visited.
  void move_share(Op& op) {
    ir::Builder b(module_);
    b.set_range(op.range);
    if (op.kind == OpKind::kArange && dims_.parted(op.result()) == 0) {
      const int64_t share = op.result()->type.shape[0] / parts_;
      op.set(AttrName::kEnd, op.int_attr(AttrName::kStart) + share);
      b.set_after(&op);
      const ir::Shape shape = {static_cast<int>(share)};
      Value* start = b.splat(first_of(b, share), shape);
      Value* moved = b.create1(OpKind::kAdd, {op.result(), start}, start->type);
      ir::replace_all_uses(op.result(), moved);
      moved->op->set_operand(0, op.result());
    } else if (op.kind == OpKind::kDescriptorLoad || op.kind == OpKind::kDescriptorStore) {
      const int d = dims_.parted(op.operand(0));
      if (d < 0) return;
      const int offset = d + (op.kind == OpKind::kDescriptorLoad ? 1 : 2);
      b.set_before(&op);
      op.set_operand(offset,
                     b.binary(OpKind::kAdd, op.operand(offset), first_of(b, op.operand(0)->type.shape[d] / parts_)));
    }
  }

  Value* first_of(ir::Builder& b, int64_t share) {
    return b.binary(OpKind::kMul, rank_, b.constant_int(ir::scalar_type(DType::kI32), share));
  }

  ir::Module& module_;
  const int parts_;
  Dimensions dims_;
  Value* rank_ = nullptr;
  std::optional<std::vector<std::pair<const Op*, analysis::PointerOrigins>>> stores_;
};

}  // namespace

Status split_ctas(ir::Module& module, const target::Target& target) {
  if (module.num_ctas == 1) return {};
  const SourceRange range = module.body()->first ? module.body()->first->range : SourceRange{};
  if (!target.has(target::kTma))
    return with_note(
        error_at(range, ErrorKind::kUnsupported, "num_ctas = {}: {} has no clusters of blocks", module.num_ctas,
                 target.name),
        fmt::format("help: launch it with num_ctas=1, or compile for {}", target::example_with(target::kTma)));
  if (module.num_ctas > kMostCtas || !std::has_single_bit(static_cast<unsigned>(module.num_ctas)))
    return error_at(range, ErrorKind::kUnsupported, "num_ctas = {}: a program runs on 1, 2, 4 or {} blocks",
                    module.num_ctas, kMostCtas);
  if (has_op(module, OpKind::kCtaRank)) return {};  // it was written for one block
  return Splitter(module).run();
}

}  // namespace kiln::passes
