// One fused loop nest: over rows with lanes along the last dimension, or over the elements of a reduction's result.
#include <algorithm>

#include "compiler/lower/host/lowering.h"
#include "compiler/lower/host/plan.h"
#include "compiler/lower/shared/elementwise.h"
#include "support/diag.h"

namespace kiln::lower::host {

using ir::OpKind;

// Vectors wider than the hardware's are independent instructions side by side, as unrolling would give; long bodies
// have registers for two copies.
unsigned Lowering::width_of(const Group& group, const Slice& slice) const {
  int bytes = std::max(slice.widest, 2);
  for (const Root& root : group.roots)
    for (const ir::Value* v : needs_of(root))
      if (!v->type.pointer && !v->type.is_bool()) bytes = std::max(bytes, element_bytes(v->type));
  // Halves are computed as floats, so their vectors are two already.
  const int halves = bytes < 4 ? 2 : 1;
  const int unroll = std::max(1, (slice.heavy <= 10 ? 4 : 2) / halves);
  return std::min(64u, native_bytes_ / static_cast<unsigned>(bytes) * static_cast<unsigned>(unroll));
}

void Lowering::emit_loops(const Group& group, unsigned width) {
  if (group.axis >= 0)
    emit_columns(group, width);
  else
    emit_rows(group, width);
}

// --- reductions

namespace {

llvm::Constant* identity_of(const ir::Op& op, llvm::Type* type) {
  const ir::Type& element = op.result()->type;
  if (element.is_float()) {
    const bool propagates = op.find_word<ir::Nan>() == ir::Nan::kPropagate;
    if (!type->isFloatingPointTy()) return nullptr;
    if (op.kind == OpKind::kAdd) return llvm::ConstantFP::getNegativeZero(type);
    if (op.kind == OpKind::kMul) return llvm::ConstantFP::get(type, 1.0);
    if (op.kind == OpKind::kMax && propagates) return llvm::ConstantFP::getInfinity(type, /*Negative=*/true);
    if (op.kind == OpKind::kMin && propagates) return llvm::ConstantFP::getInfinity(type);
    if (op.kind == OpKind::kMax || op.kind == OpKind::kMin) return llvm::ConstantFP::getNaN(type);
    return nullptr;
  }
  const unsigned width = type->getScalarSizeInBits();
  const bool sign = !element.pointer && is_signed(element.dtype);
  if (op.kind == OpKind::kAdd || op.kind == OpKind::kOr || op.kind == OpKind::kXor)
    return llvm::Constant::getNullValue(type);
  if (op.kind == OpKind::kMul) return llvm::ConstantInt::get(type, 1);
  if (op.kind == OpKind::kAnd) return llvm::Constant::getAllOnesValue(type);
  if (op.kind == OpKind::kMax)
    return llvm::ConstantInt::get(type, sign ? llvm::APInt::getSignedMinValue(width) : llvm::APInt::getZero(width));
  if (op.kind == OpKind::kMin)
    return llvm::ConstantInt::get(type, sign ? llvm::APInt::getSignedMaxValue(width) : llvm::APInt::getMaxValue(width));
  return nullptr;
}

}  // namespace

Lowering::Accumulator Lowering::accumulator(const ir::Op& op) {
  Accumulator acc{&op, is_commutative(*op.region()), {}};
  if (!acc.commutative) return acc;
  for (size_t i = 0; i < op.operands.size(); ++i) {
    V identity = identity_of(*op.region()->last->operands[i]->op, element(op.operands[i]->type));
    if (!identity) return {&op, true, {}};
    acc.identity.push_back(identity);
  }
  return acc;
}

std::vector<Lowering::V> Lowering::combine(const Accumulator& acc, std::span<V const> left, std::span<V const> right) {
  std::vector<V> args(left.begin(), left.end());
  args.insert(args.end(), right.begin(), right.end());
  return emit_combine(b, *acc.op->region(), args, target_);
}

// Neighbours first, which keeps the order; a commutative combine takes halves, which are cheaper to come by.
std::vector<Lowering::V> Lowering::across_lanes(const Accumulator& acc, std::span<V const> vectors) {
  std::vector<V> level(vectors.begin(), vectors.end());
  while (auto* type = llvm::dyn_cast<llvm::FixedVectorType>(level[0]->getType())) {
    const int half = static_cast<int>(type->getNumElements() / 2);
    std::vector<int> low, high;
    for (int i = 0; i < half; ++i) {
      low.push_back(acc.commutative ? i : 2 * i);
      high.push_back(acc.commutative ? half + i : 2 * i + 1);
    }
    std::vector<V> left, right;
    for (V v : level) {
      left.push_back(half == 1 ? b.CreateExtractElement(v, uint64_t{0}) : b.CreateShuffleVector(v, low));
      right.push_back(half == 1 ? b.CreateExtractElement(v, uint64_t{1}) : b.CreateShuffleVector(v, high));
    }
    level = combine(acc, left, right);
  }
  return level;
}

std::vector<Lowering::V> Lowering::start_values(const Group& group, unsigned width, bool lanes_of_result) {
  std::vector<V> start;
  for (const Root& root : group.roots) {
    if (root.kind != Root::Kind::kReduce) continue;
    Accumulator acc = accumulator(*root.op);
    for (size_t i = 0; i < root.op->operands.size(); ++i) {
      llvm::Type* type = element(root.op->operands[i]->type);
      V value = acc.identity.empty() ? llvm::Constant::getNullValue(type) : acc.identity[i];
      const bool lanes = width > 1 && (acc.commutative || lanes_of_result);
      start.push_back(lanes ? b.CreateVectorSplat(width, value) : value);
    }
  }
  return start;
}

void Lowering::finish_reduce(const ir::Op& op, std::span<V const> values, Lanes position, unsigned width) {
  for (size_t i = 0; i < op.results.size(); ++i) {
    const ir::Value* result = op.results[i];
    if (result->type.is_scalar()) {
      set_scalar(result, values[i]);
      continue;
    }
    Chunk chunk(width);
    const size_t index = chunk.intern(index_at(result->type.shape, position, width));
    write_buffer(chunk, result->type, buffers_.at(result), width == 1 ? uniform(values[i]) : vector(values[i]), index);
  }
}

unsigned Lowering::accumulating_lanes(const Group& group, int64_t row) const {
  bool floats = false, ordered = false;
  for (const Root& r : group.roots) {
    if (r.kind != Root::Kind::kReduce) continue;
    floats = floats || r.op->operands[0]->type.is_float();
    ordered = ordered || !is_commutative(*r.op->region());
  }
  return floats && !ordered ? static_cast<unsigned>(std::min<int64_t>({row, native_bytes_, 64})) : 1;
}

// --- loop nests

void Lowering::emit_body(const Group& group, Chunk& chunk, size_t index, V first, std::vector<V>* carried) {
  const bool columns = group.axis >= 0;
  struct Write {
    const Root* root;
    Lanes ptr, value;
    std::optional<Lanes> mask;
    size_t index;
  };
  std::vector<Write> writes;
  size_t slot = 0;
  for (const Root& root : group.roots) {
    if (root.kind == Root::Kind::kReduce) {
      const Accumulator acc = accumulator(*root.op);
      const size_t n = root.op->operands.size();
      auto lanes_of = [&](const ir::Value* v) { return vectorize(emit(chunk, v, index), v->type, chunk.width); };
      if (const ir::Op* product = ir::contracted_product(*root.op); product && !is_stored(product->result())) {
        V x = lanes_of(product->operand(0)), y = lanes_of(product->operand(1)), &sum = (*carried)[slot++];
        sum = b.CreateIntrinsic(llvm::Intrinsic::fma, {sum->getType()}, {x, y, sum});
        continue;
      }
      std::vector<V> elements;
      for (const ir::Value* v : root.op->operands) elements.push_back(lanes_of(v));
      if (!acc.commutative && !columns) elements = across_lanes(acc, elements);
      std::vector<V> next = combine(acc, std::span(*carried).subspan(slot, n), elements);
      for (size_t i = 0; i < n; ++i)
        (*carried)[slot + i] = acc.identity.empty() ? b.CreateSelect(first, elements[i], next[i]) : next[i];
      slot += n;
      continue;
    }
    if (root.kind == Root::Kind::kStore) {
      Lanes ptr = emit(chunk, root.op->operand(0), index), value = emit(chunk, root.op->operand(1), index);
      writes.push_back({&root, ptr, value, emit_mask(chunk, *root.op, 2, index), index});
      continue;
    }
    size_t own = index;
    if (root.value->type.shape != group.shape)
      own = chunk.intern(index_at(root.value->type.shape, linear_of(chunk, index), chunk.width));
    writes.push_back({&root, {}, emit(chunk, root.value, own), std::nullopt, own});
  }
  for (const Write& w : writes) {
    if (w.root->kind == Root::Kind::kStore)
      emit_store(chunk, *w.root->op, w.ptr, w.value, w.mask);
    else
      write_buffer(chunk, w.root->value->type, w.root->buffer, w.value, w.index);
  }
}

void Lowering::emit_rows(const Group& group, unsigned width) {
  const ir::Shape& shape = group.shape;
  const int64_t numel = shape.numel(), last = shape[shape.rank - 1];
  const bool reduces =
      std::any_of(group.roots.begin(), group.roots.end(), [](const Root& r) { return r.kind == Root::Kind::kReduce; });
  const bool flat = !reduces && last < width;
  const int64_t row = flat ? numel : last, rows = numel / row;
  // How a sum of floats is added up must not depend on what else the loop does: element i goes to accumulator i modulo
  // their number, in as many vectors as the body's width makes of them.
  const unsigned lanes = accumulating_lanes(group, row);
  width = static_cast<unsigned>(std::min<int64_t>(lanes > 1 ? std::min(width, lanes) : width, row));
  const unsigned copies = std::max(1u, lanes / width);

  Loop outer = begin_loop(rows, 1, {});
  const std::vector<V> start = start_values(group, width, false);
  std::vector<V> starts;
  for (unsigned c = 0; c < copies; ++c) starts.insert(starts.end(), start.begin(), start.end());
  Loop inner = begin_loop(row, width * copies, starts);
  std::vector<V> next(inner.carried.begin(), inner.carried.end());
  for (unsigned c = 0; c < copies; ++c) {
    V column = c == 0 ? inner.iv : b.CreateAdd(inner.iv, b.getInt32(c * width));
    V position = b.CreateAdd(b.CreateMul(outer.iv, b.getInt32(static_cast<uint32_t>(row))), column);
    Lanes linear = width == 1 ? uniform(position) : contiguous(position);
    Index index;
    if (flat) {
      index = index_at(shape, linear, width);
    } else {
      index.shape = shape;
      index.linear = linear;
      int64_t stride = rows;
      for (int d = 0; d + 1 < shape.rank; ++d) {
        stride /= shape[d];
        index.at.push_back(coordinate(uniform(outer.iv), stride, shape[d], rows, width));
      }
      index.at.push_back(width == 1 ? uniform(column) : contiguous(column));
    }
    Chunk chunk(width);
    const size_t at = chunk.intern(std::move(index));
    const auto own = next.begin() + static_cast<std::ptrdiff_t>(c * start.size());
    std::vector<V> carried(own, own + static_cast<std::ptrdiff_t>(start.size()));
    emit_body(group, chunk, at, b.CreateICmpEQ(inner.iv, b.getInt32(0)), &carried);
    std::copy(carried.begin(), carried.end(), own);
  }
  end_loop(inner, next);
  size_t slot = 0;
  for (const Root& root : group.roots) {
    if (root.kind != Root::Kind::kReduce) continue;
    const Accumulator acc = accumulator(*root.op);
    const size_t n = root.op->operands.size();
    std::vector<std::vector<V>> parts;
    for (unsigned c = 0; c < copies; ++c) {
      const auto first = inner.carried.begin() + static_cast<std::ptrdiff_t>(c * start.size() + slot);
      parts.emplace_back(first, first + static_cast<std::ptrdiff_t>(n));
    }
    // Halves, as across_lanes() goes on.
    for (; parts.size() > 1; parts.resize(parts.size() / 2))
      for (size_t c = 0; c < parts.size() / 2; ++c) parts[c] = combine(acc, parts[c], parts[c + parts.size() / 2]);
    finish_reduce(*root.op, across_lanes(acc, parts[0]), uniform(outer.iv), 1);
    slot += n;
  }
  end_loop(outer, {});
}

void Lowering::emit_columns(const Group& group, unsigned width) {
  const ir::Shape& shape = group.shape;
  const ir::Shape rest = without_axis(shape, group.axis);
  width = static_cast<unsigned>(std::min<int64_t>(width, rest.numel()));

  Loop outer = begin_loop(rest.numel(), width, {});
  const Lanes position = width == 1 ? uniform(outer.iv) : contiguous(outer.iv);
  Index result = index_at(rest, position, width);
  Loop inner = begin_loop(shape[group.axis], 1, start_values(group, width, true));
  llvm::SmallVector<Lanes, ir::kMaxRank> at(result.at.begin(), result.at.end());
  at.insert(at.begin() + group.axis, uniform(inner.iv));
  Chunk chunk(width);
  const size_t index = chunk.intern(index_from(shape, std::move(at)));
  std::vector<V> carried(inner.carried.begin(), inner.carried.end());
  emit_body(group, chunk, index, b.CreateICmpEQ(inner.iv, b.getInt32(0)), &carried);
  end_loop(inner, carried);
  size_t slot = 0;
  for (const Root& root : group.roots) {
    if (root.kind != Root::Kind::kReduce) continue;
    const size_t n = root.op->operands.size();
    finish_reduce(*root.op, std::span<V const>(inner.carried.data() + slot, n), position, width);
    slot += n;
  }
  end_loop(outer, {});
}

}  // namespace kiln::lower::host
