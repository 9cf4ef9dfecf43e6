// Walks blocks in program order: control flow, scalar memory accesses, and effects that go element by element.
#include <algorithm>
#include <limits>

#include "compiler/lower/host/lowering.h"
#include "compiler/lower/host/plan.h"
#include "compiler/lower/shared/elementwise.h"
#include "compiler/lower/shared/float_convert.h"
#include "support/diag.h"

namespace kiln::lower::host {

using ir::AttrName;
using ir::OpKind;

namespace {
constexpr int kAllEpochs = std::numeric_limits<int>::max();

}  // namespace

Status Lowering::run_block(const ir::Block& block) {
  for (const ir::Op* op : block)
    if (!ir::is_terminator(op)) KILN_CHECK_OK(run_op(*op));
  return {};
}

Status Lowering::run_op(const ir::Op& op) {
  const bool tiles = std::any_of(op.operands.begin(), op.operands.end(), [](auto* v) { return v->type.is_tile(); });
  switch (op.kind) {
    case OpKind::kFor:
      return run_for(op);
    case OpKind::kWhile:
      return run_while(op);
    case OpKind::kIf:
      return run_if(op);
    case OpKind::kCtaRank:
      return error_at(op.range, ErrorKind::kUnsupported, "the host runs whole programs, without cta_rank");
    case OpKind::kInlineAsm:
    case OpKind::kAsmEffect:
      return with_note(error_at(op.range, ErrorKind::kUnsupported, "inline assembly is PTX, which the CPU cannot run"),
                       "help: on a GPU the kernel compiles");
    case OpKind::kBarrier:
    case OpKind::kPrefetch:  // the processor's own runs ahead of rows
    case OpKind::kAssume:
    case OpKind::kGdcWait:
    case OpKind::kGdcLaunchDependents:
      done_.insert(&op);
      return {};
#define KILN_ACROSS_OP(e, ...) \
  case OpKind::k##e:           \
    return run<OpKind::k##e>(op);
#include "compiler/ir/ops.def"
    case OpKind::kLoad:
      if (!tiles || op.flag(AttrName::kVolatile)) return run_elements(op);
      pending_loads_.push_back(&op);
      load_epoch_[&op] = store_epoch_;
      return {};
    case OpKind::kStore:
      if (!tiles) return run_elements(op);
      add_root({Root::Kind::kStore, &op, nullptr, {}},
               std::vector<const ir::Value*>(op.operands.begin(), op.operands.end()), op.operand(0)->type.shape);
      return {};
    default:
      return ir::is_pure(&op) ? Status{} : run_elements(op);
  }
}

template <>
Status Lowering::run<OpKind::kReduce>(const ir::Op& op) {
  const int axis = static_cast<int>(op.int_attr(AttrName::kAxis)), rank = op.operand(0)->type.shape.rank;
  const int64_t last = op.operand(0)->type.shape[rank - 1];
  // A short last dimension is better walked one element at a time, with lanes along the others.
  const bool columns = axis != rank - 1 || (last < native_bytes_ / 4 && op.operand(0)->type.shape.numel() > last);
  add_root({Root::Kind::kReduce, &op, nullptr, {}},
           std::vector<const ir::Value*>(op.operands.begin(), op.operands.end()), op.operand(0)->type.shape,
           columns ? axis : -1);
  return {};
}

template <>
Status Lowering::run<OpKind::kConvertLayout>(const ir::Op& op) {
  return error_at(op.range, ErrorKind::kUnsupported, "the host runs tile IR, without convert_layout");
}

void Lowering::settle_before(const ir::Op& op) {
  flush();
  const bool writes = ir::any_nested(&op, [](const ir::Op* inner) { return ir::writes_memory(inner); });
  if (writes) keep_needed_loads({}, kAllEpochs);
  std::unordered_set<const ir::Op*> inside;
  std::vector<const ir::Value*> used;
  for (const ir::Block* region : op.regions)
    ir::walk(const_cast<ir::Block*>(region), [&](ir::Op* inner) {
      inside.insert(inner);
      used.insert(used.end(), inner->operands.begin(), inner->operands.end());
    });
  // In the order of their uses: code must not depend on where values lie in memory.
  std::unordered_set<const ir::Value*> seen;
  for (const ir::Value* v : used) {
    if (!v->type.is_tile() || !v->op || inside.contains(v->op) || !seen.insert(v).second) continue;
    needed_.clear();
    if (!is_stored(v) && needed(v) && !cheap(v)) keep(v);
  }
  if (writes) store_epoch_ += 1;
}

std::vector<Buffer> Lowering::keep_carried(const ir::Op& user, std::span<ir::Value* const> values) {
  std::vector<Buffer> buffers(values.size());
  for (size_t i = 0; i < values.size(); ++i)
    if (values[i]->type.is_tile()) buffers[i] = allocate(bytes_of(values[i]->type));
  store_yields(user, values, buffers, {});
  return buffers;
}

// Writes values to buffers. Some of the values may be, or may be computed from, the tiles that the buffers hold now
// (`carried`): a loop that reads them at its own position writes only after its reads; any other reader is kept first.
void Lowering::store_yields(const ir::Op& user, std::span<ir::Value* const> values, std::span<const Buffer> into,
                            std::span<ir::Value* const> carried) {
  hold_ = true;
  flush();
  // A product that was added in place lies in the buffer of what was carried.
  auto lies_in = [&](const ir::Value* v, const Buffer& buffer) {
    auto stored = buffers_.find(v);
    return buffer.bytes && stored != buffers_.end() && stored->second.offset == buffer.offset;
  };
  auto is_carried = [&](const ir::Value* v) {
    return std::find(carried.begin(), carried.end(), v) != carried.end() ||
           std::any_of(into.begin(), into.end(), [&](const Buffer& buffer) { return lies_in(v, buffer); });
  };
  for (const ir::Value* v : values) {
    if (v->type.is_scalar()) continue;
    Slice slice;
    collect(v, true, &slice);
    bool unsafe = !slice.keep_first.empty();
    auto check = [&](const ir::Value* read, bool same_position) {
      if (is_carried(read)) unsafe |= !same_position || read->type.shape != v->type.shape;
    };
    if (is_carried(v)) check(v, true);
    for (const auto& [inner, same_position] : slice.visited)
      for (const ir::Value* operand : inner->op->operands)
        check(operand, same_position && (!is_index_op(inner->op->kind) || keeps_order(*inner->op)));
    if (unsafe && !is_stored(v)) keep(v);
  }
  done_.insert(&user);  // from here on it is no reason to keep a value elsewhere too
  std::vector<size_t> order;
  for (size_t i = 0; i < values.size(); ++i)
    if (values[i]->type.is_tile() && !lies_in(values[i], into[i])) order.push_back(i);
  auto by_shape = [&](size_t i, size_t k) {
    return std::ranges::lexicographical_compare(values[i]->type.shape.span(), values[k]->type.shape.span());
  };
  std::stable_sort(order.begin(), order.end(), by_shape);
  for (size_t i : order) {
    const ir::Value* needs[] = {values[i]};
    add_root({Root::Kind::kKeep, nullptr, values[i], into[i]}, needs, values[i]->type.shape);
  }
  flush();
  hold_ = false;
}

Status Lowering::run_for(const ir::Op& op) {
  settle_before(op);
  const ir::Block& body = *op.region();
  V begin = scalar(op.operand(0)), end = scalar(op.operand(1)), step = scalar(op.operand(2));
  const bool is_signed_iv = is_signed(op.operand(0)->type.dtype);
  std::span<ir::Value* const> inits(op.operands.begin() + 3, op.operands.end());
  std::vector<V> initial;
  for (const ir::Value* v : inits) initial.push_back(v->type.is_scalar() ? scalar(v) : nullptr);
  std::vector<Buffer> buffers = keep_carried(op, inits);
  if (!llvm::isa<llvm::ConstantInt>(step)) {
    V zero = llvm::ConstantInt::get(step->getType(), 0);
    when(is_signed_iv ? b.CreateICmpSLE(step, zero) : b.CreateICmpEQ(step, zero),
         [&] { fail_program("a loop step that is not positive", Index{}); });
  } else if (llvm::cast<llvm::ConstantInt>(step)->isZero() ||
             (is_signed_iv && llvm::cast<llvm::ConstantInt>(step)->isNegative())) {
    return error_at(op.range, ErrorKind::kValue, "a loop step must be positive on the host");
  }

  llvm::BasicBlock *before = b.GetInsertBlock(), *loop = block("for"), *after = block("for.end");
  b.CreateCondBr(is_signed_iv ? b.CreateICmpSLT(begin, end) : b.CreateICmpULT(begin, end), loop, after);
  b.SetInsertPoint(loop);
  push_scope();
  auto* iv = b.CreatePHI(begin->getType(), 2);
  iv->addIncoming(begin, before);
  set_scalar(body.args[0], iv);
  std::vector<llvm::PHINode*> phis(inits.size());
  for (size_t i = 0; i < inits.size(); ++i) {
    const ir::Value* arg = body.args[i + 1];
    if (inits[i]->type.is_tile()) {
      buffers_[arg] = buffers[i];
      continue;
    }
    phis[i] = b.CreatePHI(initial[i]->getType(), 2);
    phis[i]->addIncoming(initial[i], before);
    set_scalar(arg, phis[i]);
  }
  if (may_run_long(op)) poll_stop();
  KILN_CHECK_OK(run_block(body));
  flush();
  const ir::Op& yield = *body.last;
  std::vector<V> next;
  for (const ir::Value* v : yield.operands) next.push_back(v->type.is_scalar() ? scalar(v) : nullptr);
  // Everything the yield needs of loads is read before the buffers change; its values count as used up.
  store_yields(yield, yield.operands, buffers, std::span(body.args).subspan(1));
  for (size_t i = 1; i < body.args.size(); ++i) buffers_.erase(body.args[i]);
  pop_scope();
  // end - iv > step, as unsigned numbers: iv + step cannot pass the end unseen.
  V more = b.CreateICmpUGT(b.CreateSub(end, iv), step);
  llvm::BasicBlock* latch = b.GetInsertBlock();
  iv->addIncoming(b.CreateAdd(iv, step), latch);
  for (size_t i = 0; i < phis.size(); ++i)
    if (phis[i]) phis[i]->addIncoming(next[i], latch);
  b.CreateCondBr(more, loop, after);
  b.SetInsertPoint(after);
  for (size_t i = 0; i < op.results.size(); ++i) {
    const ir::Value* result = op.results[i];
    if (result->type.is_tile()) {
      buffers_[result] = buffers[i];
      scopes_.back().buffers.push_back(result);
      continue;
    }
    auto* phi = b.CreatePHI(initial[i]->getType(), 2);
    phi->addIncoming(initial[i], before);
    phi->addIncoming(next[i], latch);
    set_scalar(result, phi);
  }
  release_unneeded();
  return {};
}

Status Lowering::run_while(const ir::Op& op) {
  settle_before(op);
  const ir::Block &head = *op.region(0), &body = *op.region(1);
  std::vector<V> initial;
  for (const ir::Value* v : op.operands) initial.push_back(v->type.is_scalar() ? scalar(v) : nullptr);
  std::vector<Buffer> heads = keep_carried(op, op.operands);
  std::vector<Buffer> passed(op.results.size());
  for (size_t i = 0; i < passed.size(); ++i)
    if (op.results[i]->type.is_tile()) passed[i] = allocate(bytes_of(op.results[i]->type));

  llvm::BasicBlock *before = b.GetInsertBlock(), *loop = block("while"), *then = block("while.body"),
                   *after = block("while.end");
  b.CreateBr(loop);
  b.SetInsertPoint(loop);
  push_scope();
  std::vector<llvm::PHINode*> phis(op.operands.size());
  for (size_t i = 0; i < phis.size(); ++i) {
    if (!initial[i]) {
      buffers_[head.args[i]] = heads[i];
      continue;
    }
    phis[i] = b.CreatePHI(initial[i]->getType(), 2);
    phis[i]->addIncoming(initial[i], before);
    set_scalar(head.args[i], phis[i]);
  }
  KILN_CHECK_OK(run_block(head));
  flush();
  const ir::Op& condition = *head.last;
  V more = scalar(condition.operand(0));
  std::span<ir::Value* const> values(condition.operands.begin() + 1, condition.operands.end());
  std::vector<V> passed_scalars;
  for (const ir::Value* v : values) passed_scalars.push_back(v->type.is_scalar() ? scalar(v) : nullptr);
  store_yields(condition, values, passed, {});
  for (const ir::Value* arg : head.args) buffers_.erase(arg);
  pop_scope();
  b.CreateCondBr(more, then, after);

  b.SetInsertPoint(then);
  poll_stop();
  push_scope();
  for (size_t i = 0; i < passed.size(); ++i) {
    if (passed_scalars[i])
      set_scalar(body.args[i], passed_scalars[i]);
    else
      buffers_[body.args[i]] = passed[i];
  }
  KILN_CHECK_OK(run_block(body));
  flush();
  const ir::Op& yield = *body.last;
  std::vector<V> next;
  for (const ir::Value* v : yield.operands) next.push_back(v->type.is_scalar() ? scalar(v) : nullptr);
  store_yields(yield, yield.operands, heads, {});
  for (const ir::Value* arg : body.args) buffers_.erase(arg);
  pop_scope();
  for (size_t i = 0; i < phis.size(); ++i)
    if (phis[i]) phis[i]->addIncoming(next[i], b.GetInsertBlock());
  b.CreateBr(loop);

  b.SetInsertPoint(after);
  for (Buffer buffer : heads)
    if (buffer.bytes) release(buffer);
  for (size_t i = 0; i < op.results.size(); ++i) {
    if (passed_scalars[i]) {
      set_scalar(op.results[i], passed_scalars[i]);
    } else {
      buffers_[op.results[i]] = passed[i];
      scopes_.back().buffers.push_back(op.results[i]);
    }
  }
  release_unneeded();
  return {};
}

Status Lowering::run_if(const ir::Op& op) {
  settle_before(op);
  V condition = scalar(op.operand(0));
  done_.insert(&op);
  std::vector<Buffer> buffers(op.results.size());
  for (size_t i = 0; i < buffers.size(); ++i)
    if (op.results[i]->type.is_tile()) buffers[i] = keep_buffer(op.results[i]);
  llvm::BasicBlock *branches[2] = {block("if"), block("else")}, *after = block("if.end");
  b.CreateCondBr(condition, branches[0], branches[1]);
  std::vector<V> values[2];
  llvm::BasicBlock* ends[2];
  for (int side = 0; side < 2; ++side) {
    b.SetInsertPoint(branches[side]);
    push_scope();
    KILN_CHECK_OK(run_block(*op.region(side)));
    flush();
    const ir::Op& yield = *op.region(side)->last;
    for (const ir::Value* v : yield.operands) values[side].push_back(v->type.is_scalar() ? scalar(v) : nullptr);
    store_yields(yield, yield.operands, buffers, {});
    pop_scope();
    ends[side] = b.GetInsertBlock();
    b.CreateBr(after);
  }
  b.SetInsertPoint(after);
  for (size_t i = 0; i < op.results.size(); ++i) {
    if (!values[0][i]) continue;
    auto* phi = b.CreatePHI(values[0][i]->getType(), 2);
    for (int side = 0; side < 2; ++side) phi->addIncoming(values[side][i], ends[side]);
    set_scalar(op.results[i], phi);
  }
  release_unneeded();
  return {};
}

void Lowering::begin_stored(const ir::Op& op) {
  flush();
  hold_ = true;
  for (const ir::Value* v : op.operands) keep(v);
}

void Lowering::end_stored(const ir::Op& op) {
  done_.insert(&op);
  hold_ = false;
  release_unneeded();
}

// Rows of lanes along the other dimensions, the scanned one step by step; the operands are read from scratch.
template <>
Status Lowering::run<OpKind::kScan>(const ir::Op& op) {
  begin_stored(op);
  const ir::Shape& shape = op.operand(0)->type.shape;
  const int axis = static_cast<int>(op.int_attr(AttrName::kAxis));
  const bool reverse = op.flag(AttrName::kReverse);
  const ir::Shape rest = without_axis(shape, axis);
  const size_t n = op.operands.size();
  std::vector<Buffer> into;
  for (const ir::Value* result : op.results) into.push_back(keep_buffer(result));
  const auto width = static_cast<unsigned>(std::min<int64_t>(native_bytes_ / 4, rest.numel()));
  Loop outer = begin_loop(rest.numel(), width, {});
  Index position = index_at(rest, width == 1 ? uniform(outer.iv) : contiguous(outer.iv), width);
  auto at = [&](V k) {
    llvm::SmallVector<Lanes, ir::kMaxRank> coordinates(position.at.begin(), position.at.end());
    coordinates.insert(coordinates.begin() + axis,
                       uniform(reverse ? b.CreateSub(b.getInt32(static_cast<uint32_t>(shape[axis] - 1)), k) : k));
    return index_from(shape, std::move(coordinates));
  };
  std::vector<V> sums;
  Accumulator acc{&op, false, {}};
  for (const ir::Value* v : op.operands) {
    llvm::Type* type = element(v->type);
    sums.push_back(llvm::Constant::getNullValue(width == 1 ? type : llvm::FixedVectorType::get(type, width)));
  }
  Loop inner = begin_loop(shape[axis], 1, sums);
  Chunk chunk(width);
  const size_t index = chunk.intern(at(inner.iv));
  std::vector<V> elements;
  for (const ir::Value* v : op.operands) elements.push_back(vectorize(emit(chunk, v, index), v->type, width));
  V first = b.CreateICmpEQ(inner.iv, b.getInt32(0));
  std::vector<V> next = combine(acc, inner.carried, elements);
  for (size_t i = 0; i < n; ++i) {
    next[i] = b.CreateSelect(first, elements[i], next[i]);
    write_buffer(chunk, op.results[i]->type, into[i], width == 1 ? uniform(next[i]) : vector(next[i]), index);
  }
  end_loop(inner, next);
  end_loop(outer, {});
  end_stored(op);
  return {};
}

// Both operands are read from scratch: lanes of the result along its rows, each with an index of its own.
template <>
Status Lowering::run<OpKind::kGather>(const ir::Op& op) {
  begin_stored(op);
  const ir::Type &from = op.operand(0)->type, &index_type = op.operand(1)->type, &to = op.result()->type;
  const auto axis = static_cast<size_t>(op.int_attr(AttrName::kAxis));
  const Buffer into = keep_buffer(op.result());
  const auto width = static_cast<unsigned>(std::min<int64_t>(native_bytes_ / 4, to.shape.numel()));
  Loop loop = begin_loop(to.shape.numel(), width, {});
  Chunk chunk(width);
  const size_t at = chunk.intern(index_at(to.shape, width == 1 ? uniform(loop.iv) : contiguous(loop.iv), width));
  V index = vectorize(emit(chunk, op.operand(1), at), index_type, width);
  V wide = b.CreateIntCast(index, index->getType()->getWithNewBitWidth(64), is_signed(index_type.dtype));
  // Negative ones count as large.
  V last = llvm::ConstantInt::get(wide->getType(), static_cast<uint64_t>(from.shape[static_cast<int>(axis)] - 1));
  V along = b.CreateTrunc(b.CreateBinaryIntrinsic(llvm::Intrinsic::umin, wide, last),
                          wide->getType()->getWithNewBitWidth(32));
  llvm::SmallVector<Lanes, ir::kMaxRank> place(chunk.indices[at].at.begin(), chunk.indices[at].at.end());
  place[axis] = width == 1 ? uniform(along) : vector(along);
  Lanes element = emit(chunk, op.operand(0), chunk.intern(index_from(from.shape, std::move(place))));
  write_buffer(chunk, to, into, element, at);
  end_loop(loop, {});
  end_stored(op);
  return {};
}

// One element after the other.
template <>
Status Lowering::run<OpKind::kScatter>(const ir::Op& op) {
  begin_stored(op);
  const ir::Type &type = op.result()->type, &index_type = op.operand(1)->type;
  const auto axis = static_cast<int>(op.int_attr(AttrName::kAxis));
  const Buffer into = keep_buffer(op.result());
  Loop loop = begin_loop(type.shape.numel(), 1, {});
  Chunk chunk(1);
  const size_t at = chunk.intern(index_at(type.shape, uniform(loop.iv), 1));
  V index = vectorize(emit(chunk, op.operand(1), at), index_type, 1);
  V wide = b.CreateIntCast(index, b.getInt64Ty(), is_signed(index_type.dtype));
  V value = vectorize(emit(chunk, op.operand(0), at), type, 1);
  when(b.CreateICmpULT(wide, b.getInt64(static_cast<uint64_t>(type.shape[axis]))), [&] {
    llvm::SmallVector<Lanes, ir::kMaxRank> place(chunk.indices[at].at.begin(), chunk.indices[at].at.end());
    place[static_cast<size_t>(axis)] = uniform(b.CreateTrunc(wide, b.getInt32Ty()));
    Chunk there(1);
    const size_t target = there.intern(index_from(type.shape, std::move(place)));
    write_buffer(there, type, into, uniform(value), target);
  });
  end_loop(loop, {});
  end_stored(op);
  return {};
}

// A loop that counts, one that sums, and one that gives out the places.
template <>
Status Lowering::run<OpKind::kBucketPlace>(const ir::Op& op) {
  begin_stored(op);
  const ir::Type &type = op.operand(0)->type, &counts_type = op.result(1)->type;
  const int64_t bins = counts_type.shape[0];
  const Buffer places = keep_buffer(op.result(0)), counts = keep_buffer(op.result(1)),
               begins = keep_buffer(op.result(2)), next = allocate(bytes_of(counts_type));
  const llvm::Align align(4);
  llvm::Type* i32 = b.getInt32Ty();
  auto at = [&](Buffer buffer, V bin) {
    return b.CreateInBoundsGEP(i32, address(buffer), b.CreateZExt(bin, b.getInt64Ty()));
  };
  auto take_one = [&](Buffer buffer, V bin) {  // the counter's value, before it is counted up
    V place = at(buffer, bin);
    V old = b.CreateAlignedLoad(i32, place, align);
    b.CreateAlignedStore(b.CreateAdd(old, b.getInt32(1)), place, align);
    return old;
  };
  auto each_digit = [&](auto&& fn) {
    Loop loop = begin_loop(type.shape.numel(), 1, {});
    Chunk chunk(1);
    const size_t index = chunk.intern(index_at(type.shape, uniform(loop.iv), 1));
    V digit = vectorize(emit(chunk, op.operand(0), index), type, 1);
    fn(chunk, index, digit, b.CreateICmpULT(digit, b.getInt32(static_cast<uint32_t>(bins))));
    end_loop(loop, {});
  };
  b.CreateMemSet(address(counts), b.getInt8(0), static_cast<uint64_t>(bytes_of(counts_type)), align);
  each_digit([&](Chunk&, size_t, V digit, V counted) { when(counted, [&] { take_one(counts, digit); }); });
  V zero[] = {b.getInt32(0)};
  Loop sums = begin_loop(bins, 1, zero);
  for (Buffer buffer : {begins, next}) b.CreateAlignedStore(sums.carried[0], at(buffer, sums.iv), align);
  V sum[] = {b.CreateAdd(sums.carried[0], b.CreateAlignedLoad(i32, at(counts, sums.iv), align))};
  end_loop(sums, sum);
  each_digit([&](Chunk& chunk, size_t index, V digit, V counted) {
    write_buffer(chunk, type, places, uniform(b.getInt32(~0u)), index);
    when(counted, [&] { write_buffer(chunk, type, places, uniform(take_one(next, digit)), index); });
  });
  release(next);
  end_stored(op);
  return {};
}

}  // namespace kiln::lower::host
