#include "compiler/lower/host/host.h"

#include <llvm/IR/IntrinsicsX86.h>
#include <llvm/IR/MDBuilder.h>
#include <llvm/TargetParser/Host.h>
#include <llvm/TargetParser/Triple.h>

#include <algorithm>

#include "compiler/lower/host/lowering.h"
#include "compiler/lower/host/plan.h"
#include "compiler/lower/shared/elementwise.h"
#include "support/diag.h"

namespace kiln::lower {

HostLowered::HostLowered() = default;
HostLowered::HostLowered(HostLowered&&) noexcept = default;
HostLowered::~HostLowered() = default;

Result<HostLowered> lower_host(const ir::Module& module, llvm::LLVMContext& context) {
  KILN_ASSERT(module.stage == ir::Stage::kTile, "the host takes tile IR");
  host::Lowering lowering(module, context);
  KILN_CHECK_OK(lowering.run());
  HostLowered result;
  result.module = std::move(lowering.module);
  result.scratch_bytes = lowering.scratch_bytes();
  return result;
}

namespace host {

using ir::AttrName;
using ir::OpKind;

size_t Chunk::intern(Index index) {
  for (size_t i = 0; i < indices.size(); ++i)
    if (indices[i].shape == index.shape && indices[i].at == index.at && indices[i].linear == index.linear) return i;
  indices.push_back(std::move(index));
  return indices.size() - 1;
}

Lowering::Lowering(const ir::Module& source, llvm::LLVMContext& context)
    : module(std::make_unique<llvm::Module>(source.name, context)),
      source_(source),
      target_(*target::find("host")),
      b(context) {
  auto features = llvm::sys::getHostCPUFeatures();
  const bool avx512 = features.lookup("avx512f") && features.lookup("avx512bw") && features.lookup("avx512vl");
  native_bytes_ = avx512 ? 64 : features.lookup("avx2") ? 32 : 16;
  native_masks_ = features.lookup("avx2");
}

Status Lowering::run() {
  begin_entry();
  llvm::BasicBlock* program = block("program");
  exit_ = block("exit");
  b.SetInsertPoint(program);
  auto* p = b.CreatePHI(b.getInt64Ty(), 2, "p");
  V x = b.CreateSExt(grid_[0], b.getInt64Ty()), y = b.CreateSExt(grid_[1], b.getInt64Ty());
  V rows = b.CreateUDiv(p, x);
  program_[0] = b.CreateTrunc(b.CreateURem(p, x), b.getInt32Ty(), "x");
  program_[1] = b.CreateTrunc(b.CreateURem(rows, y), b.getInt32Ty(), "y");
  program_[2] = b.CreateTrunc(b.CreateUDiv(rows, y), b.getInt32Ty(), "z");
  poll_stop();
  push_scope();
  KILN_CHECK_OK(run_block(*source_.body()));
  flush();
  pop_scope();
  V next = b.CreateAdd(p, b.getInt64(1));
  p->addIncoming(entry_->getArg(2), prologue_);
  p->addIncoming(next, b.GetInsertBlock());
  b.CreateCondBr(b.CreateICmpSLT(next, entry_->getArg(3)), program, exit_);
  b.SetInsertPoint(prologue_);
  b.CreateCondBr(b.CreateICmpSLT(entry_->getArg(2), entry_->getArg(3)), program, exit_);
  b.SetInsertPoint(exit_);
  // Stores around the caches are not ordered with what tells other threads that the share is done.
  if (streams_ && llvm::Triple(llvm::sys::getProcessTriple()).isX86())
    b.CreateIntrinsic(b.getVoidTy(), llvm::Intrinsic::x86_sse_sfence, {});
  b.CreateRetVoid();
  lines_->finish();
  return {};
}

void Lowering::begin_entry() {
  llvm::Type *ptr = b.getPtrTy(), *i64 = b.getInt64Ty(), *i32 = b.getInt32Ty();
  auto* type = llvm::FunctionType::get(b.getVoidTy(), {ptr, ptr, i64, i64, ptr}, false);
  entry_ = llvm::Function::Create(type, llvm::GlobalValue::ExternalLinkage, "kiln_entry", *module);
  entry_->addFnAttr(llvm::Attribute::NoUnwind);
  // A kernel may be given null. LLVM would take its accesses as never done, and with them leave out all stores on the
  // way there; so they fault, and are told like other wild ones. (NVPTX's are in address space 1, where null is
  // defined.)
  entry_->addFnAttr(llvm::Attribute::NullPointerIsValid);
  entry_->addFnAttr("stackrealign");  // else spilled vectors would straddle cache lines
  entry_->addParamAttr(4, llvm::Attribute::NoAlias);
  lines_.emplace(*module, *entry_, source_, llvm::DICompileUnit::LineTablesOnly);
  prologue_ = block("entry");
  b.SetInsertPoint(prologue_);
  args_ = entry_->getArg(0);
  scratch_ = entry_->getArg(4);
  for (unsigned i = 0; i < 3; ++i)
    grid_[i] = b.CreateLoad(i32, b.CreateConstInBoundsGEP1_64(i32, entry_->getArg(1), i));
  for (size_t i = 0; i < source_.body()->args.size(); ++i) {
    const ir::Type& param = source_.body()->args[i]->type;
    V slot = b.CreateConstInBoundsGEP1_64(i64, args_, i);
    params_.push_back(from_memory(b.CreateLoad(memory_type(param), slot), param));
  }
  programs_ = b.getInt64(1);
  for (V extent : grid_) programs_ = b.CreateMul(programs_, b.CreateSExt(extent, i64));
}

// --- scalars

Lowering::V Lowering::scalar(const ir::Value* v) {
  if (auto it = scalars_.find(v); it != scalars_.end()) return it->second;
  if (v->block == source_.body()) return params_[v->index];
  KILN_ASSERT(v->op, "a scalar argument without a value");
  const ir::Op& op = *v->op;
  if (op.kind == OpKind::kReduce) {
    flush();
    return scalars_.at(v);
  }
  V value = nullptr;
  if (op.kind == OpKind::kConstant) {
    value = emit_constant(op, b.getContext(), target_);
  } else if (op.kind == OpKind::kProgramId) {
    value = program_[op.int_attr(AttrName::kAxis)];
  } else if (op.kind == OpKind::kNumPrograms) {
    value = grid_[op.int_attr(AttrName::kAxis)];
  } else if (op.operand(0)->type.is_tile()) {  // a reshape of one element
    keep(op.operand(0));
    std::vector<int64_t> origin(op.operand(0)->type.shape.rank, 0);
    value = element_at(op.operand(0), origin);
  } else {
    KILN_ASSERT(ir::is_pure(&op), "{} was not emitted in its place", ir::print(op));
    std::vector<V> operands;
    for (const ir::Value* operand : op.operands) operands.push_back(scalar(operand));
    lines_->at(b, op.range);
    value = emit_elementwise(b, op, operands, target_);
  }
  set_scalar(v, value);
  return value;
}

void Lowering::set_scalar(const ir::Value* v, V value) {
  scalars_[v] = value;
  scopes_.back().scalars.push_back(v);
}

Lowering::V Lowering::hook(const char* name, llvm::Type* result, std::span<V const> args) {
  std::vector<llvm::Type*> types;
  for (V a : args) types.push_back(a->getType());
  auto callee = module->getOrInsertFunction(name, llvm::FunctionType::get(result, types, false));
  auto* call = b.CreateCall(callee, llvm::ArrayRef(args.data(), args.size()));
  call->setDoesNotThrow();
  return call;
}

void Lowering::poll_stop() {
  auto* word = b.CreateLoad(b.getInt32Ty(), module->getOrInsertGlobal("kiln_stop_word", b.getInt32Ty()));
  word->setVolatile(true);
  llvm::BasicBlock *asked = block("asked"), *on = block("on");
  auto* rarely = llvm::MDBuilder(b.getContext()).createUnlikelyBranchWeights();
  b.CreateCondBr(b.CreateIsNotNull(word), asked, on, rarely);
  b.SetInsertPoint(asked);
  b.CreateCondBr(b.CreateIsNotNull(hook("kiln_hook_stop", b.getInt32Ty(), {})), exit_, on);
  b.SetInsertPoint(on);
}

// --- scratch

Buffer Lowering::allocate(int64_t bytes) {
  bytes = (bytes + 63) / 64 * 64;
  for (auto it = free_.begin(); it != free_.end(); ++it)
    if (it->bytes == bytes) {
      Buffer found = *it;
      free_.erase(it);
      return found;
    }
  Buffer fresh{scratch_end_, bytes};
  scratch_end_ += bytes;
  return fresh;
}

void Lowering::release(Buffer buffer) { free_.push_back(buffer); }

Lowering::V Lowering::address(Buffer buffer) {
  return b.CreateConstInBoundsGEP1_64(b.getInt8Ty(), scratch_, static_cast<uint64_t>(buffer.offset));
}

Buffer Lowering::keep_buffer(const ir::Value* v) {
  Buffer buffer = allocate(bytes_of(v->type));
  buffers_[v] = buffer;
  scopes_.back().buffers.push_back(v);
  return buffer;
}

void Lowering::pop_scope() {
  for (const ir::Value* v : scopes_.back().scalars) scalars_.erase(v);
  for (const ir::Value* v : scopes_.back().buffers) {
    release(buffers_.at(v));
    buffers_.erase(v);
  }
  for (const ir::Value* v : scopes_.back().borrowed) buffers_.erase(v);
  scopes_.pop_back();
}

void Lowering::release_unneeded() {
  if (hold_) return;
  needed_.clear();
  std::erase_if(scopes_.back().buffers, [&](const ir::Value* v) {
    if (needed(v)) return false;
    release(buffers_.at(v));
    buffers_.erase(v);
    return true;
  });
}

// --- elements

llvm::Type* Lowering::element(const ir::Type& type) { return element_type(type, b.getContext(), target_); }

llvm::Type* Lowering::memory_type(const ir::Type& type) {
  if (type.pointer) return b.getInt64Ty();
  if (type.is_float() && bits(type.dtype) >= 32) return element(type);
  return b.getIntNTy(static_cast<unsigned>(size_of(type.dtype)) * 8);
}

Lowering::V Lowering::to_memory(V value, const ir::Type& type) {
  llvm::Type* to = value->getType()->getWithNewType(memory_type(type));
  if (value->getType() == to) return value;
  return type.is_bool() ? b.CreateZExt(value, to) : b.CreateBitCast(value, to);
}

Lowering::V Lowering::from_memory(V value, const ir::Type& type) {
  llvm::Type* to = value->getType()->getWithNewType(element(type));
  if (value->getType() == to) return value;
  return type.is_bool() ? b.CreateIsNotNull(value) : b.CreateBitCast(value, to);
}

Lowering::V Lowering::stack(llvm::Type* type, unsigned count) {
  llvm::IRBuilder<> at_entry(prologue_, prologue_->begin());
  return at_entry.CreateAlloca(type, at_entry.getInt32(count));
}

// --- loops

Loop Lowering::begin_loop(int64_t count, int64_t step, std::span<V const> carried) {
  Loop loop;
  loop.count = count;
  loop.step = step;
  loop.carried.assign(carried.begin(), carried.end());
  if (count == step) {
    loop.iv = b.getInt32(0);
    return loop;
  }
  llvm::BasicBlock* before = b.GetInsertBlock();
  loop.body = block("loop");
  b.CreateBr(loop.body);
  b.SetInsertPoint(loop.body);
  loop.iv = loop.iv_phi = b.CreatePHI(b.getInt32Ty(), 2);
  loop.iv_phi->addIncoming(b.getInt32(0), before);
  for (V& value : loop.carried) {
    auto* phi = b.CreatePHI(value->getType(), 2);
    phi->addIncoming(value, before);
    loop.phis.push_back(phi);
    value = phi;
  }
  return loop;
}

void Lowering::end_loop(Loop& loop, std::span<V const> next) {
  loop.carried.assign(next.begin(), next.end());
  if (!loop.body) return;
  V iv = b.CreateAdd(loop.iv, b.getInt32(static_cast<uint32_t>(loop.step)), "", /*HasNUW=*/true, /*HasNSW=*/true);
  llvm::BasicBlock* latch = b.GetInsertBlock();
  loop.iv_phi->addIncoming(iv, latch);
  for (size_t i = 0; i < loop.phis.size(); ++i) loop.phis[i]->addIncoming(next[i], latch);
  llvm::BasicBlock* after = block("after");
  b.CreateCondBr(b.CreateICmpEQ(iv, b.getInt32(static_cast<uint32_t>(loop.count))), after, loop.body);
  b.SetInsertPoint(after);
}

void Lowering::when(V condition, const std::function<void()>& then) {
  llvm::BasicBlock *yes = block("then"), *after = block("after");
  b.CreateCondBr(condition, yes, after);
  b.SetInsertPoint(yes);
  then();
  b.CreateBr(after);
  b.SetInsertPoint(after);
}

}  // namespace host
}  // namespace kiln::lower
