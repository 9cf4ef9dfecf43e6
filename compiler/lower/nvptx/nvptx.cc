#include "compiler/lower/nvptx/nvptx.h"

#include <fmt/format.h>
#include <llvm/IR/InlineAsm.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/IntrinsicsNVPTX.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <unordered_map>

#include "compiler/analysis/joined_values.h"
#include "compiler/analysis/layout_ops.h"
#include "compiler/lower/nvptx/lowering.h"
#include "compiler/lower/nvptx/ranges.h"
#include "compiler/lower/shared/elementwise.h"
#include "compiler/lower/shared/line_info.h"
#include "compiler/lower/shared/llvm_version.h"
#include "compiler/lower/shared/math.h"
#include "support/diag.h"
#include "support/ptx_name.h"

namespace kiln::lower {

using ir::AttrName;
using ir::OpKind;
using llvm::BasicBlock;
using llvm::Value;

// --- what the op families share

llvm::Type* Lowering::type_of(const ir::Type& type) { return element_type(type, context(), target); }

void Lowering::barrier() {
  switch (partition) {
    case Partition::kAll:
      b.CreateIntrinsic(llvm::Intrinsic::nvvm_barrier_cta_sync_aligned_all, {b.getInt32(kEveryonesBarrier)});
      return;
    case Partition::kOwn:
      named_barrier(b.getInt32(kOwnBarrier), source.num_warps);
      return;
    case Partition::kOneThread:
      return;
  }
}

Value* Lowering::barrier_any(Value* condition) {
  if (partition == Partition::kOneThread) return condition;
  const std::string number = partition == Partition::kAll
                                 ? fmt::format("{}", kEveryonesBarrier)
                                 : fmt::format("{}, {}", kOwnBarrier, source.num_warps * kLanes);
  const std::string text = fmt::format(
      "{{ .reg .pred p, q; setp.ne.u32 p, $1, 0; bar.red.or.pred q, {}, p; selp.u32 $0, 1, 0, q; }}", number);
  auto* type = llvm::FunctionType::get(b.getInt32Ty(), {b.getInt32Ty()}, false);
  llvm::CallInst* call = b.CreateCall(type, llvm::InlineAsm::get(type, text, "=r,r,~{memory}", /*hasSideEffects=*/true),
                                      {b.CreateZExt(condition, b.getInt32Ty())});
  call->addFnAttr(llvm::Attribute::Convergent);
  return b.CreateICmpNE(call, b.getInt32(0));
}

void Lowering::group_barrier(int warps) {
  if (warps == source.num_warps) return barrier();
  if (warps == 1) {
    b.CreateIntrinsic(llvm::Intrinsic::nvvm_bar_warp_sync, {b.getInt32(~0u)});
    return;
  }
  named_barrier(b.CreateAdd(group(warps), b.getInt32(kFirstGroupBarrier)), warps);
}

void Lowering::named_barrier(Value* number, int warps) {
  b.CreateIntrinsic(llvm::Intrinsic::nvvm_barrier_cta_sync_aligned_count,
                    {number, b.getInt32(static_cast<uint32_t>(warps * kLanes))});
}

Value* Lowering::group(int warps) {
  return b.CreateLShr(thread.uniform_warp(), b.getInt32(static_cast<uint32_t>(layout::log2_exact(warps))));
}

Value* Lowering::leader(int warps) {
  if (partition == Partition::kOneThread) return nullptr;
  Value* own = thread.thread();
  if (warps && warps < source.num_warps) own = b.CreateAnd(own, b.getInt32(static_cast<uint32_t>(warps * kLanes - 1)));
  return b.CreateICmpEQ(own, b.getInt32(0));
}

Value* Lowering::initializer() {
  if (partition != Partition::kAll || launch.extra_warps == 0) return leader();
  return b.CreateICmpEQ(thread.thread(), b.getInt32(static_cast<uint32_t>(source.num_warps * kLanes)));
}

llvm::GlobalVariable* Lowering::shared_memory() {
  llvm::GlobalVariable* memory = module.getNamedGlobal("kiln_shared");
  if (!memory) {
    auto* type = llvm::ArrayType::get(b.getInt8Ty(), 0);
    memory = new llvm::GlobalVariable(module, type, false, llvm::GlobalValue::ExternalLinkage, nullptr, "kiln_shared",
                                      nullptr, llvm::GlobalValue::NotThreadLocal, 3);
    // The swizzles of TMA and wgmma count from addresses that are multiples of 1024.
    memory->setAlignment(llvm::Align(launch.tensor_maps.empty() && !launch.uses_wgmma ? 16 : 1024));
  }
  return memory;
}

Value* Lowering::shared(Value* offset, int64_t constant) {
  Value* address = b.CreateInBoundsGEP(b.getInt8Ty(), shared_memory(), b.CreateZExt(offset, b.getInt64Ty()));
  return b.CreateInBoundsGEP(b.getInt8Ty(), address, b.getInt64(static_cast<uint64_t>(constant)));
}

int num_registers(const ir::Type& type) { return type.is_tile() ? type.layout->num_registers() : 1; }

int element_bytes(const ir::Type& type) { return type.pointer ? 8 : size_of(type.dtype); }

llvm::Type* memory_type(llvm::Type* type) {
  return type->isIntegerTy(1) ? llvm::Type::getInt8Ty(type->getContext()) : type;
}

Value* to_memory(llvm::IRBuilderBase& b, Value* v) {
  return v->getType()->isIntegerTy(1) ? b.CreateZExt(v, b.getInt8Ty()) : v;
}

Value* from_memory(llvm::IRBuilderBase& b, Value* v, llvm::Type* type) {
  return type->isIntegerTy(1) ? b.CreateICmpNE(v, b.getInt8(0)) : v;
}

namespace {

class KernelLowering {
 public:
  KernelLowering(Lowering& l, LineInfo* lines) : l_(l), b_(l.b), lines_(lines) {}

  Status block(const ir::Block& block) {
    for (const ir::Op* op : block) {
      if (ir::is_terminator(op)) break;
      if (lines_) lines_->at(b_, op->range);
      KILN_CHECK_OK(emit(*op));
    }
    return {};
  }

 private:
  Status emit(const ir::Op& op) {
    switch (op.kind) {
      case OpKind::kConstant:
        return all_registers(op, emit_constant(op, l_.context(), l_.target));
      case OpKind::kProgramId:
        return all_registers(op, program_number(op));
      case OpKind::kNumPrograms:
        return all_registers(op, num_programs(op));
      case OpKind::kCtaRank:
        return all_registers(op, cta_rank());
      case OpKind::kArange:
        return arange(op);
      case OpKind::kSplat:
        return all_registers(op, l_.of(op.operand(0))[0]);
      case OpKind::kExpandDims:
      case OpKind::kBroadcast:
      case OpKind::kReshape:
      case OpKind::kTrans:
      case OpKind::kJoin:
      case OpKind::kSplit:
        return shape_op(op);
#define KILN_MEMORY_OP(e, ...) \
  case OpKind::k##e:           \
    return lower<OpKind::k##e>(l_, op);
#define KILN_ACROSS_OP KILN_MEMORY_OP
#define KILN_EFFECT_OP KILN_MEMORY_OP
#define KILN_ASM_OP KILN_MEMORY_OP
#define KILN_MACHINE_OP KILN_MEMORY_OP
#define KILN_ROLES_OP(...)
#include "compiler/ir/ops.def"
      case OpKind::kMakeDescriptor:  // its tensor map is a parameter, unless the kernel makes it
        return make_tensor_maps(l_, op);
      case OpKind::kWarpSpecialize:
        return warp_specialize(op);
      case OpKind::kDescriptorLoad:
      case OpKind::kDescriptorStore:
        return error_at(op.range, ErrorKind::kUnsupported, "{} is not supported on {}", ir::info(op.kind).mnemonic,
                        l_.target.name);
      case OpKind::kFor:
        return for_loop(op);
      case OpKind::kWhile:
        return while_loop(op);
      case OpKind::kIf:
        return if_op(op);
#define KILN_TERMINATOR_OP(e, ...) case OpKind::k##e:
#include "compiler/ir/ops.def"
        KILN_UNREACHABLE("terminators are lowered with their block");
      case OpKind::kHint:
        return l_.values[op.result()] = l_.of(op.operand(0)), Status{};
      case OpKind::kCmp:
      case OpKind::kSelect:
      case OpKind::kCast:
      case OpKind::kBitcast:
      case OpKind::kIntToPtr:
      case OpKind::kPtrToInt:
      case OpKind::kAddPtr:
#define KILN_MIXED_OP(...)
#define KILN_ELEMENTWISE_OP(e, ...) case OpKind::k##e:
#include "compiler/ir/ops.def"
        return elementwise(op);
    }
    KILN_UNREACHABLE("{}", ir::print(op));
  }

  Status all_registers(const ir::Op& op, Value* v) {
    l_.values[op.result()].assign(static_cast<size_t>(num_registers(op.result()->type)), v);
    return {};
  }

  /// The blocks of a program are neighbours along x.
  Value* program_number(const ir::Op& op) {
    Value* block = grid_register(op, llvm::Intrinsic::nvvm_read_ptx_sreg_ctaid_x);
    return in_programs(op, block);
  }
  Value* num_programs(const ir::Op& op) {
    Value* blocks = grid_register(op, llvm::Intrinsic::nvvm_read_ptx_sreg_nctaid_x);
    return in_programs(op, blocks);
  }
  Value* in_programs(const ir::Op& op, Value* blocks) {
    if (l_.source.num_ctas == 1 || op.int_attr(AttrName::kAxis) != 0) return blocks;
    return b_.CreateLShr(blocks, b_.getInt32(static_cast<uint32_t>(layout::log2_exact(l_.source.num_ctas))));
  }
  Value* cta_rank() {
    if (l_.source.num_ctas == 1) return b_.getInt32(0);
    return l_.thread.cta_rank();
  }

  /// %ctaid or %nctaid of the op's axis; the ranges let LLVM see that index arithmetic cannot be negative.
  Value* grid_register(const ir::Op& op, llvm::Intrinsic::ID x) {
    const auto axis = static_cast<unsigned>(op.int_attr(AttrName::kAxis));
    static_assert(llvm::Intrinsic::nvvm_read_ptx_sreg_ctaid_z == llvm::Intrinsic::nvvm_read_ptx_sreg_ctaid_x + 2);
    static_assert(llvm::Intrinsic::nvvm_read_ptx_sreg_nctaid_z == llvm::Intrinsic::nvvm_read_ptx_sreg_nctaid_x + 2);
    llvm::CallInst* v = b_.CreateIntrinsic(static_cast<llvm::Intrinsic::ID>(x + axis), {});
    const uint64_t limit = axis == 0 ? 0x80000000u : 0x10000u;
    v->addRangeRetAttr(llvm::ConstantRange(llvm::APInt(32, 0), llvm::APInt(32, limit)));
    return v;
  }

  Status arange(const ir::Op& op) {
    const layout::LinearLayout& layout = *op.result()->type.layout;
    auto bases = [&](layout::In in) {
      std::vector<uint32_t> v;
      for (const layout::Coord& c : layout.bases(in)) v.push_back(static_cast<uint32_t>(c[0]));
      return v;
    };
    const layout::XorMap map{bases(layout::In::kRegister), bases(layout::In::kLane), bases(layout::In::kWarp)};
    Value* share = l_.thread.share(map);
    const int64_t start = op.int_attr(AttrName::kStart);
    Registers out;
    for (int r = 0; r < layout.num_registers(); ++r) {
      Value* number = join_share(b_, share, map.thread_bits(), map.of_register(static_cast<uint32_t>(r)));
      if (start != 0) number = b_.CreateNSWAdd(number, b_.getInt32(static_cast<uint32_t>(start)));
      out.push_back(number);
    }
    l_.values[op.result()] = std::move(out);
    return {};
  }

  Status shape_op(const ir::Op& op) {
    for (size_t i = 0; i < op.results.size(); ++i) {
      Registers out;
      for (const analysis::OperandRegister& from : analysis::source_registers(op, static_cast<int>(i)))
        out.push_back(l_.of(op.operand(from.operand))[static_cast<size_t>(from.reg)]);
      l_.values[op.results[i]] = std::move(out);
    }
    return {};
  }

  /// Registers that are computed together: two in one instruction (packed half arithmetic, conversions that make a
  /// pair); and several of the functions that branch to a slow path, behind one branch, so that they overlap.
  size_t together(const ir::Op& op) const {
    constexpr size_t kBehindOneBranch = 8;
    const ir::Type& result = op.result()->type;
    const auto n = static_cast<size_t>(num_registers(result));
    if (result.pointer || n < 2) return 1;
    if (op.kind == OpKind::kSin || op.kind == OpKind::kCos || (op.kind == OpKind::kPow && result.dtype == DType::kF32))
      return std::min(n, kBehindOneBranch);
    return in_pairs(op) ? 2 : 1;
  }

  bool in_pairs(const ir::Op& op) const {
    const ir::Type& result = op.result()->type;
    switch (op.kind) {
      case OpKind::kAdd:
      case OpKind::kSub:
      case OpKind::kMul:
      case OpKind::kFma:
      case OpKind::kMin:
      case OpKind::kMax:
      case OpKind::kNeg:
      case OpKind::kAbs:
        return result.dtype == DType::kF16 || (result.dtype == DType::kBF16 && l_.target.has(target::kBf16Arith));
      case OpKind::kCast: {
        const DType from = op.operand(0)->type.dtype;
        return (from == DType::kF32 && is_half(result.dtype)) || is_fp8(result.dtype) || is_fp8(from);
      }
      default:
        return false;
    }
  }

  Status elementwise(const ir::Op& op) {
    if (reader_that_rounds(op, l_)) return {};  // computed with that
    if (const ir::Op* division = division_for(op, l_)) {
      Registers out = rounded_quotients(l_, *division, op);
      l_.values[op.result()] = std::move(out);
      return {};
    }
    if (is_exact_in_bulk(op, l_)) {
      Registers out = exact_in_bulk(l_, op);
      l_.values[op.result()] = std::move(out);
      return {};
    }
    const auto n = static_cast<size_t>(num_registers(op.result()->type));
    const size_t step = together(op);
    KILN_ASSERT(n % step == 0, "{} registers by {}", n, step);
    Registers out(n);
    std::vector<Value*> operands(op.operands.size());
    // Numbers of which neighbours are known to be equal, as rows and masks often are, are computed once.
    const ir::Type& type = op.result()->type;
    const bool may_repeat = type.is_tile() && type.layout && !type.is_float();
    std::unordered_map<uint64_t, size_t> first;
    for (size_t r = 0; r < n; r += step) {
      if (may_repeat && step == 1) {
        const layout::Coord place = type.layout->apply(static_cast<uint32_t>(r), 0, 0);
        const auto [it, is_new] = first.try_emplace(l_.axis.first_equal(op.result(), place), r);
        if (!is_new) {
          out[r] = out[it->second];
          continue;
        }
      }
      for (size_t k = 0; k < operands.size(); ++k) {
        const Registers& from = l_.of(op.operands[k]);
        operands[k] = from[r];
        if (step == 1) continue;
        operands[k] =
            llvm::PoisonValue::get(llvm::FixedVectorType::get(from[r]->getType(), static_cast<unsigned>(step)));
        for (size_t i = 0; i < step; ++i) operands[k] = b_.CreateInsertElement(operands[k], from[r + i], uint64_t{i});
      }
      const bool trig = op.kind == OpKind::kSin || op.kind == OpKind::kCos;
      Value* v =
          trig && has_math(type.dtype) ? sin_or_cos(op, r, operands[0]) : emit_elementwise(b_, op, operands, l_.target);
      if (auto* comparison = llvm::dyn_cast<llvm::ICmpInst>(v))
        if (const std::optional<bool> known = ranges_.compare(*comparison)) {
          comparison->eraseFromParent();
          v = b_.getInt1(*known);
        }
      if (step == 1) out[r] = v;
      for (size_t i = 0; step > 1 && i < step; ++i) out[r + i] = b_.CreateExtractElement(v, uint64_t{i});
    }
    l_.values[op.result()] = std::move(out);
    return {};
  }

  static bool has_math(DType t) { return t == DType::kF32 || t == DType::kF64; }

  /// Of the registers from `r` on. A sine and a cosine of the same number in one block, as of a rotation, reduce it
  /// once.
  Value* sin_or_cos(const ir::Op& op, size_t r, Value* x) {
    const ir::Value* of = op.operand(0);
    const auto [known, is_new] = sines_.try_emplace({of, op.parent, r});
    if (is_new) {
      auto wanted = [&](OpKind kind) {
        return std::ranges::any_of(
            of->uses, [&](const ir::Use& use) { return use.op->kind == kind && use.op->parent == op.parent; });
      };
      const SinCosOptions options = {
          .sine = wanted(OpKind::kSin), .cosine = wanted(OpKind::kCos), .may_be_large = may_be_large(*of)};
      known->second = emit_sin_cos(b_, x, options, l_.target);
    }
    return op.kind == OpKind::kSin ? known->second.sine : known->second.cosine;
  }

  /// Whether there can be numbers beyond those of float16.
  static bool may_be_large(const ir::Value& x) {
    if (!x.op || x.op->kind != OpKind::kCast) return true;
    const DType from = x.op->operand(0)->type.dtype;
    return !(from == DType::kF16 || size_of(from) == 1 || (is_int(from) && size_of(from) == 2));
  }

  // --- control flow

  BasicBlock* new_block(const char* name) { return BasicBlock::Create(l_.context(), name, l_.function); }

  using Phis = std::vector<std::vector<llvm::PHINode*>>;

  /// A phi per register of each value, at the end of the current block; they become the values' registers.
  template <class Range>
  Phis make_phis(const Range& values) {
    Phis phis;
    for (const ir::Value* v : values) {
      phis.emplace_back();
      Registers& registers = l_.values[v];
      registers.clear();
      for (int r = 0; r < num_registers(v->type); ++r) {
        phis.back().push_back(b_.CreatePHI(l_.type_of(v->type), 2));
        registers.push_back(phis.back().back());
      }
    }
    return phis;
  }

  template <class Range>
  void add_incoming(const Phis& phis, const Range& values, BasicBlock* from) {
    size_t i = 0;
    for (const ir::Value* v : values) {
      const Registers& registers = l_.of(v);
      for (size_t r = 0; r < registers.size(); ++r) phis[i][r]->addIncoming(registers[r], from);
      ++i;
    }
  }

  std::span<ir::Value* const> from(const std::vector<ir::Value*>& v, size_t first) {
    return std::span(v).subspan(first);
  }

  /// Whether the bounds are constants, and so far from the end of their type that the last step stays within it.
  static bool has_constant_count(const Value* lb, const Value* ub, const Value* step, bool sign) {
    const auto *first = llvm::dyn_cast<llvm::ConstantInt>(lb), *end = llvm::dyn_cast<llvm::ConstantInt>(ub),
               *by = llvm::dyn_cast<llvm::ConstantInt>(step);
    if (!first || !end || !by) return false;
    bool wraps = false;
    if (sign)
      (void)end->getValue().sadd_ov(by->getValue(), wraps);
    else
      (void)end->getValue().uadd_ov(by->getValue(), wraps);
    return !wraps;
  }

  /// Whether a number of 64 bits is at most one of 32: what is extended, or the least of such and others.
  static bool is_at_most_32_bits(const Value* v) {
    if (const auto* wide = llvm::dyn_cast<llvm::CastInst>(v))
      return llvm::isa<llvm::SExtInst, llvm::ZExtInst>(wide) && wide->getSrcTy()->getScalarSizeInBits() <= 32;
    if (const auto* constant = llvm::dyn_cast<llvm::ConstantInt>(v)) return constant->getValue().isSignedIntN(33);
    const auto* least = llvm::dyn_cast<llvm::MinMaxIntrinsic>(v);
    return least && least->getIntrinsicID() == llvm::Intrinsic::smin &&
           (is_at_most_32_bits(least->getLHS()) || is_at_most_32_bits(least->getRHS()));
  }

  /// Whether the step behind a signed counter's last iteration stays within 64 bits.
  static bool ends_within_64_bits(const Value* ub, const Value* step) {
    const auto* by = llvm::dyn_cast<llvm::ConstantInt>(step);
    return by && by->getBitWidth() == 64 &&
           (by->isOne() || (by->getValue().isSignedIntN(33) && is_at_most_32_bits(ub)));
  }

  /// if (lb < ub) do { body } while (ub - iv > step): the difference cannot overflow where iv + step could.
  Status for_loop(const ir::Op& op) {
    const ir::Block& body = *op.region();
    Value *lb = l_.of(op.operand(0))[0], *ub = l_.of(op.operand(1))[0], *step = l_.of(op.operand(2))[0];
    const bool sign = is_signed(op.operand(0)->type.dtype);
    BasicBlock *before = b_.GetInsertBlock(), *loop = new_block("loop"), *exit = new_block("exit");
    b_.CreateCondBr(sign ? b_.CreateICmpSLT(lb, ub) : b_.CreateICmpULT(lb, ub), loop, exit);

    b_.SetInsertPoint(loop);
    llvm::PHINode* iv = b_.CreatePHI(lb->getType(), 2);
    iv->addIncoming(lb, before);
    l_.values[body.args[0]] = {iv};
    const auto inits = from(op.operands, 3);
    Phis carried = make_phis(from(body.args, 1));
    add_incoming(carried, inits, before);
    const bool is_counted = has_constant_count(lb, ub, step, sign);
    if (is_counted) {
      auto constant = [](const Value* v) { return llvm::cast<llvm::ConstantInt>(v)->getValue(); };
      ranges_.add_counter(iv, constant(lb), constant(ub), constant(step));
    }
    KILN_CHECK_OK(block(body));
    const auto& yielded = body.terminator()->operands;
    // Where it would wrap around there is no next iteration, and nobody reads it. LLVM has a counter's sign by that:
    // remainders of counters by powers of two are masks. Of narrow ones it would make wide ones, which take registers.
    const bool is_bound = is_counted || lb->getType()->isIntegerTy(64);
    Value* next = b_.CreateAdd(iv, step, "", /*HasNUW=*/is_bound && !sign, /*HasNSW=*/is_bound && sign);
    // What is left is compared where the next one might wrap around. Of constants ptxas then counts no iterations, and
    // does not unroll: a chain of loads and stores waits for each of them.
    // Of 64 bits what is left is a second counter of two registers.
    const bool compares_next = is_counted || (sign && ends_within_64_bits(ub, step));
    Value* more = !compares_next ? b_.CreateICmpUGT(b_.CreateSub(ub, iv), step)
                  : sign         ? b_.CreateICmpSLT(next, ub)
                                 : b_.CreateICmpULT(next, ub);
    BasicBlock* latch = b_.GetInsertBlock();
    llvm::BranchInst* branch = b_.CreateCondBr(more, loop, exit);
    if (is_counted && multiplies_by_warp_groups(body)) keep_as_loop(branch);
    iv->addIncoming(next, latch);
    add_incoming(carried, yielded, latch);

    b_.SetInsertPoint(exit);
    Phis results = make_phis(op.results);
    add_incoming(results, inits, before);
    add_incoming(results, yielded, latch);
    return {};
  }

  static bool multiplies_by_warp_groups(const ir::Block& body) {
    for (const ir::Op* op : body)
      if (op->kind == OpKind::kWgmma) return true;
    return false;
  }

  /// `.pragma "nounroll"`: ptxas writes out up to about twenty iterations that it can count. One of products of warp
  /// groups keeps the tensor cores busy already, and where many of them hold their sums at once it takes 20 times as
  /// long (scattermoe with 21 iterations: 1.4 s in place of 0.07) and more registers, up to spilling.
  void keep_as_loop(llvm::BranchInst* latch) {
    llvm::LLVMContext& context = l_.context();
    llvm::Metadata* off = llvm::MDNode::get(context, llvm::MDString::get(context, "llvm.loop.unroll.disable"));
    llvm::MDNode* loop = llvm::MDNode::getDistinct(context, {nullptr, off});
    loop->replaceOperandWith(0, loop);
    latch->setMetadata(llvm::LLVMContext::MD_loop, loop);
  }

  Status while_loop(const ir::Op& op) {
    const ir::Block &test = *op.region(0), &body = *op.region(1);
    BasicBlock *before = b_.GetInsertBlock(), *head = new_block("while"), *again = new_block("do"),
               *exit = new_block("done");
    b_.CreateBr(head);
    b_.SetInsertPoint(head);
    Phis carried = make_phis(test.args);
    add_incoming(carried, op.operands, before);
    KILN_CHECK_OK(block(test));
    const ir::Op& condition = *test.terminator();
    const auto passed = from(condition.operands, 1);
    b_.CreateCondBr(branch_condition(op, condition.operand(0)), again, exit);
    for (size_t i = 0; i < passed.size(); ++i) {
      Registers registers = l_.of(passed[i]);
      l_.values[body.args[i]] = registers;
      l_.values[op.results[i]] = std::move(registers);
    }
    b_.SetInsertPoint(again);
    KILN_CHECK_OK(block(body));
    BasicBlock* latch = b_.GetInsertBlock();
    b_.CreateBr(head);
    add_incoming(carried, body.terminator()->operands, latch);
    b_.SetInsertPoint(exit);
    return {};
  }

  /// What a branch goes by. A scalar is the same in all threads, which the assembler does not see where shuffles or
  /// shared memory made it: it then tests at every shuffle behind the branch whether the warp came apart, and keeps a
  /// second copy of them for that.
  Value* branch_condition(const ir::Op& branch, const ir::Value* condition) {
    auto crosses_lanes = [](const ir::Op* op) {
      return op->kind == OpKind::kReduce || op->kind == OpKind::kScan || op->kind == OpKind::kConvertLayout;
    };
    Value* c = l_.of(condition)[0];
    if (l_.partition == Partition::kOneThread || !ir::any_nested(&branch, crosses_lanes) ||
        is_plainly_uniform(condition))
      return c;
    return b_.CreateIntrinsic(llvm::Intrinsic::nvvm_vote_any_sync, {}, {b_.getInt32(~0U), c});
  }

  /// Whether a scalar follows from parameters, the program's number, counts of loops and what lies at such addresses
  /// alone. What loops and branches join does where all that they join does.
  static bool is_plainly_uniform(const ir::Value* scalar) {
    std::set<const ir::Value*> seen;
    std::vector<const ir::Value*> work = {scalar};
    while (!work.empty()) {
      const ir::Value* v = work.back();
      work.pop_back();
      if (!seen.insert(v).second) continue;
      if (v->type.is_tile()) return false;
      const auto joined = analysis::joined_values(v);
      work.insert(work.end(), joined.begin(), joined.end());
      if (!joined.empty() || !v->op) continue;
      if (v->op->kind != OpKind::kLoad && (!ir::is_pure(v->op) || !v->op->regions.empty())) return false;
      work.insert(work.end(), v->op->operands.begin(), v->op->operands.end());
    }
    return true;
  }

  Status if_op(const ir::Op& op) {
    BasicBlock *then = new_block("then"), *otherwise = new_block("else"), *join = new_block("endif");
    b_.CreateCondBr(branch_condition(op, op.operand(0)), then, otherwise);
    BasicBlock* ends[2];
    for (int i = 0; i < 2; ++i) {
      b_.SetInsertPoint(i == 0 ? then : otherwise);
      KILN_CHECK_OK(block(*op.region(i)));
      ends[i] = b_.GetInsertBlock();
      b_.CreateBr(join);
    }
    b_.SetInsertPoint(join);
    Phis results = make_phis(op.results);
    for (int i = 0; i < 2; ++i) add_incoming(results, op.region(i)->terminator()->operands, ends[i]);
    return {};
  }

  /// The roles part by the warp's number, which is uniform: each further region has one thread of a warp of its own.
  /// The extra warps end with their region.
  Status warp_specialize(const ir::Op& op) {
    const RegisterShares& registers = l_.launch.registers;
    Value* warp = l_.thread.uniform_warp();
    auto number = [&](size_t v) { return b_.getInt32(static_cast<uint32_t>(v)); };
    const auto own_warps = static_cast<size_t>(l_.source.num_warps);
    BasicBlock *own = new_block("own"), *extra = new_block("extra");
    b_.CreateCondBr(b_.CreateICmpULT(warp, number(own_warps)), own, extra);

    b_.SetInsertPoint(extra);
    const std::span<ir::Block* const> roles = std::span(op.regions).subspan(1);
    Value *everyone = b_.getInt32(kEveryonesBarrier),
          *count = number((own_warps + static_cast<size_t>(l_.launch.extra_warps)) * kLanes);
    if (l_.own_wait) {
      // The first has initialised the mbarriers and waits for nothing; the others wait for that.
      auto join = [&](llvm::Intrinsic::ID how) { b_.CreateIntrinsic(how, {everyone, count}); };
      Value* first = roles.size() == 1 ? nullptr : b_.CreateICmpEQ(warp, number(own_warps));
      b_.CreateIntrinsic(llvm::Intrinsic::nvvm_bar_warp_sync, {b_.getInt32(~0u)});
      l_.when(first, [&] { join(llvm::Intrinsic::nvvm_barrier_cta_arrive_aligned_count); });
      if (first) l_.when(b_.CreateNot(first), [&] { join(llvm::Intrinsic::nvvm_barrier_cta_sync_aligned_count); });
    }
    if (registers.extra)
      b_.CreateIntrinsic(llvm::Intrinsic::nvvm_setmaxnreg_dec_sync_aligned_u32,
                         {b_.getInt32(static_cast<uint32_t>(registers.extra))});
    l_.partition = Partition::kOneThread;
    for (size_t i = 0; i < roles.size(); ++i) {
      BasicBlock *elect = new_block("elect"), *alone = new_block("alone"), *next = new_block("next_role");
      b_.CreateCondBr(b_.CreateICmpEQ(warp, number(own_warps + i)), elect, next);
      b_.SetInsertPoint(elect);
      Value* elected = b_.CreateIntrinsic(llvm::Intrinsic::nvvm_elect_sync, {b_.getInt32(~0u)});
      b_.CreateCondBr(b_.CreateExtractValue(elected, 1), alone, next);
      b_.SetInsertPoint(alone);
      KILN_CHECK_OK(block(*roles[i]));
      b_.CreateBr(next);
      b_.SetInsertPoint(next);
    }
    b_.CreateRetVoid();

    b_.SetInsertPoint(own);
    if (l_.own_wait) b_.CreateIntrinsic(llvm::Intrinsic::nvvm_barrier_cta_sync_aligned_count, {everyone, count});
    if (registers.own)
      b_.CreateIntrinsic(llvm::Intrinsic::nvvm_setmaxnreg_inc_sync_aligned_u32,
                         {b_.getInt32(static_cast<uint32_t>(registers.own))});
    l_.partition = Partition::kOwn;
    return block(*op.region(0));
  }

  Lowering& l_;
  Ranges ranges_;
  llvm::IRBuilder<>& b_;
  std::map<std::tuple<const ir::Value*, const ir::Block*, size_t>, SinCos> sines_;
  LineInfo* lines_;
};

/// Parameters as PTX passes them, i1 as a byte; behind them the tensor maps.
llvm::Function* make_kernel(const ir::Module& source, const target::Target& target, const LaunchPlan& plan,
                            const CodeOptions& launch, llvm::Module& module) {
  std::vector<llvm::Type*> types;
  for (const ir::Value* p : source.body()->args)
    types.push_back(memory_type(element_type(p->type, module.getContext(), target)));
  const size_t own_params = types.size();
  types.resize(own_params + plan.tensor_maps.size(), llvm::PointerType::get(module.getContext(), 0));
  auto* type = llvm::FunctionType::get(llvm::Type::getVoidTy(module.getContext()), types, false);
  auto* fn = llvm::Function::Create(type, llvm::GlobalValue::ExternalLinkage, ptx_name(source.name), module);
  fn->setCallingConv(llvm::CallingConv::PTX_Kernel);
  fn->addFnAttr(llvm::Attribute::NoUnwind);
  fn->addFnAttr("nvvm.reqntid", fmt::format("{}", (source.num_warps + plan.extra_warps) * kLanes));
  if (source.num_ctas > 1) fn->addFnAttr("nvvm.cluster_dim", fmt::format("{},1,1", source.num_ctas));
  // All registers of an SM: accumulators need them, and setmaxnreg shares them out. PTX takes one of the two
  // directives.
  if (launch.maxnreg > 0)
    fn->addFnAttr("nvvm.maxnreg", fmt::format("{}", launch.maxnreg));
  else if (plan.uses_wgmma)
    fn->addFnAttr("nvvm.minctasm", fmt::format("{}", plan.registers.blocks));
  auto* map_type = llvm::ArrayType::get(llvm::Type::getInt8Ty(module.getContext()), 128);
  for (auto i = static_cast<unsigned>(own_params); i < types.size(); ++i) {
    fn->addParamAttr(i, llvm::Attribute::getWithByValType(module.getContext(), map_type));
    fn->addParamAttr(i, llvm::Attribute::getWithAlignment(module.getContext(), llvm::Align(64)));
  }
  mark_grid_constants(*fn, own_params);
  for (unsigned i = 0; i < own_params; ++i) {
    fn->addParamAttr(i, llvm::Attribute::NoUndef);
    if (!types[i]->isPointerTy()) continue;
    const auto bytes = static_cast<uint64_t>(source.params[i].divisibility);
    if (bytes > 1)
      fn->addParamAttr(i, llvm::Attribute::getWithAlignment(module.getContext(), llvm::Align(bytes & -bytes)));
  }
  return fn;
}

}  // namespace

Result<std::unique_ptr<llvm::Module>> lower_nvptx(const ir::Module& source, const target::Target& target,
                                                  llvm::LLVMContext& context, const NvptxOptions& options) {
  KILN_ASSERT(source.stage == ir::Stage::kDistributed && target.is_cuda());
  auto module = std::make_unique<llvm::Module>(source.name, context);
  module->setTargetTriple(llvm::Triple("nvptx64-nvidia-cuda"));
  KILN_TRY(const LaunchPlan plan, plan_launch(source, target, options.most_blocks));
  llvm::Function* fn = make_kernel(source, target, plan, options.launch, *module);
  BasicBlock* entry = BasicBlock::Create(context, "entry", fn);
  BasicBlock* body = BasicBlock::Create(context, "body", fn);
  Lowering l(source, target, plan, *module, fn, entry, body);
  std::optional<LineInfo> lines;
  if (options.line_info) lines.emplace(*module, *fn, source, llvm::DICompileUnit::DebugDirectivesOnly);
  for (unsigned i = 0; i < source.params.size(); ++i) {
    const ir::Value* param = source.body()->args[i];
    fn->getArg(i)->setName(source.params[i].name);
    l.values[param] = {from_memory(l.b, fn->getArg(i), l.type_of(param->type))};
  }
  prefetch_tensor_maps(l);
  take_device_maps(l);
  KernelLowering lowering(l, lines ? &*lines : nullptr);
  KILN_CHECK_OK(lowering.block(*source.body()));
  return_device_maps(l);
  l.b.CreateRetVoid();
  llvm::IRBuilder<>(entry).CreateBr(body);
  if (lines) lines->finish();
  return module;
}

}  // namespace kiln::lower
