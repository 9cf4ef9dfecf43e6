// Emits one chunk of lanes of a value: forms that avoid vectors where lanes are equal or count up.
#include <bit>
#include <numeric>

#include "compiler/lower/host/lowering.h"
#include "compiler/lower/host/plan.h"
#include "compiler/lower/shared/elementwise.h"
#include "support/diag.h"

namespace kiln::lower::host {

using ir::AttrName;
using ir::OpKind;

namespace {

llvm::Constant* iota(llvm::Type* scalar, int64_t step, unsigned width) {
  std::vector<llvm::Constant*> lanes;
  for (unsigned i = 0; i < width; ++i) lanes.push_back(llvm::ConstantInt::getSigned(scalar, i * step));
  return llvm::ConstantVector::get(lanes);
}

int64_t step_of(const ir::Type& type) { return type.pointer ? size_of(type.dtype) : 1; }

}  // namespace

Lanes Lowering::emit(Chunk& chunk, const ir::Value* v, size_t index) {
  if (v->type.is_scalar()) return uniform(scalar(v));
  if (auto it = chunk.values.find({v, index}); it != chunk.values.end()) return it->second;
  auto stored = buffers_.find(v);
  Lanes lanes = stored != buffers_.end() ? read_buffer(chunk, v, stored->second, index) : emit_op(chunk, v, index);
  chunk.values[{v, index}] = lanes;
  return lanes;
}

Lanes Lowering::emit_op(Chunk& chunk, const ir::Value* v, size_t index) {
  KILN_ASSERT(v->op, "a tile argument without a buffer");
  const ir::Op& op = *v->op;
  switch (op.kind) {
    case OpKind::kConstant:
      return uniform(emit_constant(op, b.getContext(), target_));
    case OpKind::kArange: {
      V start = b.getInt32(static_cast<uint32_t>(op.int_attr(AttrName::kStart)));
      return add(chunk.indices[index].at[0], uniform(start), chunk.width);
    }
    case OpKind::kSplat:
    case OpKind::kExpandDims:
    case OpKind::kBroadcast:
    case OpKind::kReshape:
    case OpKind::kTrans:
      if (op.operand(0)->type.is_scalar()) return uniform(scalar(op.operand(0)));
      return emit(chunk, op.operand(0), operand_index(chunk, op, index));
    case OpKind::kSplit: {
      const Index at = chunk.indices[index];
      llvm::SmallVector<Lanes, ir::kMaxRank> inner(at.at.begin(), at.at.end());
      inner.push_back(uniform(b.getInt32(v->index)));
      return emit(chunk, op.operand(0), chunk.intern(index_from(op.operand(0)->type.shape, std::move(inner))));
    }
    case OpKind::kJoin: {
      const Index at = chunk.indices[index];
      const Lanes side = at.at.back();
      llvm::SmallVector<Lanes, ir::kMaxRank> inner(at.at.begin(), at.at.end() - 1);
      const size_t operand = chunk.intern(index_from(op.operand(0)->type.shape, std::move(inner)));
      V halves[2];
      const bool scalars = op.operand(0)->type.is_scalar();
      for (int i = 0; i < 2; ++i) {
        Lanes half = scalars ? uniform(scalar(op.operand(i))) : emit(chunk, op.operand(i), operand);
        halves[i] = vectorize(half, v->type, chunk.width);
      }
      V second = vectorize(side, b.getInt32Ty(), 1, chunk.width);
      V picked =
          b.CreateSelect(b.CreateICmpEQ(second, llvm::Constant::getNullValue(second->getType())), halves[0], halves[1]);
      return chunk.width == 1 ? uniform(picked) : vector(picked);
    }
    case OpKind::kLoad:
      return emit_load(chunk, op, index);
#define KILN_ELEMENTWISE_OP(e, ...) case OpKind::k##e:
#include "compiler/ir/ops.def"
      return emit_elements(chunk, op, index);
    case OpKind::kProgramId:
    case OpKind::kNumPrograms:
    case OpKind::kCtaRank:
    case OpKind::kStore:
    case OpKind::kPrefetch:
    case OpKind::kAtomicRmw:
    case OpKind::kAtomicCas:
#define KILN_INDEX_OP(...)
#define KILN_SHAPE_OP(...)
#define KILN_MEMORY_OP(...)
#define KILN_ELEMENTWISE_OP(...)
#define KILN_OP(e, ...) case OpKind::k##e:
#include "compiler/ir/ops.def"
      break;
  }
  KILN_UNREACHABLE("{} has no lanes", ir::print(op));
}

size_t Lowering::operand_index(Chunk& chunk, const ir::Op& op, size_t index) {
  const ir::Shape& shape = op.operand(0)->type.shape;
  if (op.kind == OpKind::kReshape) return chunk.intern(index_at(shape, linear_of(chunk, index), chunk.width));
  const Index at = chunk.indices[index];
  Index inner;
  inner.shape = shape;
  if (keeps_order(op)) inner.linear = at.linear;
  if (op.kind == OpKind::kExpandDims) {
    inner.at = at.at;
    inner.at.erase(inner.at.begin() + op.int_attr(AttrName::kAxis));
  } else if (op.kind == OpKind::kBroadcast) {
    for (int d = 0; d < shape.rank; ++d) inner.at.push_back(shape[d] == 1 ? uniform(b.getInt32(0)) : at.at[d]);
  } else {
    inner.at.resize(shape.rank);
    const auto& order = std::get<std::vector<int64_t>>(*op.find(AttrName::kOrder));
    for (size_t d = 0; d < order.size(); ++d) inner.at[static_cast<size_t>(order[d])] = at.at[d];
  }
  return chunk.intern(std::move(inner));
}

// Contiguous lanes stay contiguous under uniform offsets and widening: a chunk of offsets is taken not to wrap, as
// Triton's axis analysis does.
Lanes Lowering::emit_elements(Chunk& chunk, const ir::Op& op, size_t index) {
  std::vector<Lanes> operands;
  bool all_uniform = true, any_vector = false;
  for (const ir::Value* operand : op.operands) {
    operands.push_back(emit(chunk, operand, index));
    all_uniform &= operands.back().is_uniform();
    any_vector |= operands.back().form == Lanes::Form::kVector;
  }
  lines_->at(b, op.range);
  auto on_scalars = [&] {
    std::vector<V> values;
    for (const Lanes& lanes : operands) values.push_back(lanes.value);
    return emit_elementwise(b, op, values, target_);
  };
  if (all_uniform) return uniform(on_scalars());
  if (!any_vector) {
    const ir::Type& type = op.result()->type;
    const bool first_counts = operands[0].is_contiguous();
    const bool both = operands.size() > 1 && first_counts && operands[1].is_contiguous();
    bool counts = op.kind == OpKind::kHint;
    if ((op.kind == OpKind::kAdd || op.kind == OpKind::kSub) && !type.is_bool())
      counts = !both && (op.kind == OpKind::kAdd || first_counts);
    if (op.kind == OpKind::kAddPtr) counts = !both;
    if (op.kind == OpKind::kCast) {
      const ir::Type& from = op.operand(0)->type;
      counts = type.is_int() && !type.is_bool() && bits(type.dtype) >= bits(from.dtype);
    }
    if (counts) return contiguous(on_scalars());
  }
  std::vector<V> values;
  for (size_t i = 0; i < operands.size(); ++i)
    values.push_back(vectorize(operands[i], op.operands[i]->type, chunk.width));
  return vector(emit_elementwise(b, op, values, target_));
}

// --- forms

Lowering::V Lowering::vectorize(Lanes lanes, const ir::Type& type, unsigned width) {
  return vectorize(lanes, element(type), step_of(type), width);
}

Lowering::V Lowering::vectorize(Lanes lanes, llvm::Type* scalar, int64_t step, unsigned width) {
  if (width == 1 || lanes.form == Lanes::Form::kVector) return lanes.value;
  V all = b.CreateVectorSplat(width, lanes.value);
  return lanes.is_uniform() ? all : b.CreateAdd(all, iota(scalar, step, width));
}

Lanes Lowering::add(Lanes x, Lanes y, unsigned width) {
  if (x.is_uniform() && y.is_uniform()) return uniform(b.CreateAdd(x.value, y.value));
  if (x.is_uniform() && y.is_contiguous()) std::swap(x, y);
  if (x.is_contiguous() && y.is_uniform()) return contiguous(b.CreateAdd(x.value, y.value));
  return vector(b.CreateAdd(vectorize(x, b.getInt32Ty(), 1, width), vectorize(y, b.getInt32Ty(), 1, width)));
}

Lanes Lowering::scale(Lanes x, int64_t factor, unsigned width) {
  if (factor == 1) return x;
  if (x.is_uniform()) return uniform(b.CreateMul(x.value, b.getInt32(static_cast<uint32_t>(factor))));
  V lanes = vectorize(x, b.getInt32Ty(), 1, width);
  return vector(b.CreateMul(lanes, llvm::ConstantInt::getSigned(lanes->getType(), factor)));
}

// (linear / stride) % size, of a position in a tile of `total` elements.
Lanes Lowering::coordinate(Lanes linear, int64_t stride, int64_t size, int64_t total, unsigned width) {
  if (size == 1) return uniform(b.getInt32(0));
  auto reduce = [&](V v) {
    if (stride > 1)
      v = b.CreateLShr(v, llvm::ConstantInt::get(v->getType(), std::countr_zero(static_cast<uint64_t>(stride))));
    if (stride * size < total)
      v = b.CreateAnd(v, llvm::ConstantInt::get(v->getType(), static_cast<uint64_t>(size - 1)));
    return v;
  };
  if (linear.is_uniform()) return uniform(reduce(linear.value));
  if (linear.form == Lanes::Form::kVector) return vector(reduce(linear.value));
  // Contiguous from a multiple of the width.
  if (stride >= width) return uniform(reduce(linear.value));
  if (stride == 1 && size >= width) return contiguous(reduce(linear.value));
  return vector(reduce(vectorize(linear, b.getInt32Ty(), 1, width)));
}

Index Lowering::index_at(const ir::Shape& shape, Lanes linear, unsigned width) {
  Index index;
  index.shape = shape;
  index.linear = linear;
  int64_t stride = shape.numel();
  for (int d = 0; d < shape.rank; ++d) {
    stride /= shape[d];
    index.at.push_back(coordinate(linear, stride, shape[d], shape.numel(), width));
  }
  return index;
}

Index Lowering::index_from(const ir::Shape& shape, llvm::SmallVector<Lanes, ir::kMaxRank> at) {
  Index index;
  index.shape = shape;
  index.at = std::move(at);
  return index;
}

Lanes Lowering::linear_of(Chunk& chunk, size_t index) {
  if (chunk.indices[index].linear) return *chunk.indices[index].linear;
  const Index at = chunk.indices[index];
  Lanes sum = uniform(b.getInt32(0));
  int64_t stride = 1;
  for (int d = at.shape.rank - 1; d >= 0; --d) {
    if (at.shape[d] > 1) sum = add(sum, scale(at.at[d], stride, chunk.width), chunk.width);
    stride *= at.shape[d];
  }
  chunk.indices[index].linear = sum;
  return sum;
}

Lowering::V Lowering::element_at(const ir::Value* v, std::span<const int64_t> at) {
  Chunk chunk(1);
  Index index;
  index.shape = v->type.shape;
  for (int64_t x : at) index.at.push_back(uniform(b.getInt32(static_cast<uint32_t>(x))));
  return emit(chunk, v, chunk.intern(std::move(index))).value;
}

// --- scratch

Lanes Lowering::read_buffer(Chunk& chunk, const ir::Value* v, Buffer buffer, size_t index) {
  const Lanes linear = linear_of(chunk, index);
  llvm::Type* type = memory_type(v->type);
  const auto bytes = static_cast<uint64_t>(element_bytes(v->type));
  if (linear.form == Lanes::Form::kVector) {
    V addresses = b.CreateGEP(type, address(buffer), linear.value);
    auto* lanes = llvm::FixedVectorType::get(type, chunk.width);
    return vector(from_memory(b.CreateMaskedGather(lanes, addresses, llvm::Align(bytes)), v->type));
  }
  V at = b.CreateInBoundsGEP(type, address(buffer), linear.value);
  if (linear.is_uniform()) return uniform(from_memory(b.CreateAlignedLoad(type, at, llvm::Align(bytes)), v->type));
  llvm::Align align(std::min<uint64_t>(64, bytes * chunk.width));
  V loaded = b.CreateAlignedLoad(llvm::FixedVectorType::get(type, chunk.width), at, align);
  return vector(from_memory(loaded, v->type));
}

void Lowering::write_buffer(Chunk& chunk, const ir::Type& type, Buffer buffer, Lanes value, size_t index) {
  const Lanes linear = linear_of(chunk, index);
  const auto bytes = static_cast<uint64_t>(element_bytes(type));
  V memory = to_memory(vectorize(value, type, chunk.width), type);
  if (linear.form == Lanes::Form::kVector) {
    b.CreateMaskedScatter(memory, b.CreateGEP(memory_type(type), address(buffer), linear.value), llvm::Align(bytes));
    return;
  }
  V at = b.CreateInBoundsGEP(memory_type(type), address(buffer), linear.value);
  KILN_ASSERT(chunk.width == 1 || linear.is_contiguous(), "lanes written to one element");
  b.CreateAlignedStore(memory, at, llvm::Align(std::min<uint64_t>(64, bytes * chunk.width)));
}

}  // namespace kiln::lower::host
