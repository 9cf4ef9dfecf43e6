#include "compiler/interp/machine/machine.h"

#include <fmt/format.h>

#include <cstdio>

#include "compiler/analysis/layout_ops.h"
#include "compiler/interp/element.h"
#include "compiler/interp/eval.h"
#include "compiler/interp/machine/warp_dot.h"

namespace kiln::interp {

using ir::AttrName;
using ir::Op;
using ir::OpKind;

Status Machine::execute(Warp& warp, const Op& op) {
  if (has_scalar_meaning(op.kind)) {
    elementwise(warp, op, share_of(op.result()->type));
    return {};
  }
  switch (op.kind) {
    case OpKind::kConstant:
      fill(warp, op, constant_bits(op));
      return {};
    case OpKind::kProgramId:
      fill(warp, op, static_cast<uint32_t>(program_[static_cast<size_t>(op.int_attr(AttrName::kAxis))]));
      return {};
    case OpKind::kNumPrograms:
      fill(warp, op, static_cast<uint32_t>(grid_[static_cast<size_t>(op.int_attr(AttrName::kAxis))]));
      return {};
    case OpKind::kSplat:
      fill(warp, op, warp.of(op.operand(0))[0]);
      return {};
    case OpKind::kCtaRank:
      fill(warp, op, warp.block);
      return {};
    case OpKind::kArange: {
      Elements& out = warp.of(op.result());
      out.resize(share_of(op.result()->type));
      for (size_t i = 0; i < out.size(); ++i)
        out[i] = static_cast<uint32_t>(op.int_attr(AttrName::kStart) + element(warp, op.result()->type, i));
      return {};
    }
    case OpKind::kExpandDims:
    case OpKind::kReshape:
    case OpKind::kBroadcast:
    case OpKind::kTrans:
    case OpKind::kJoin:
    case OpKind::kSplit:
      take_registers(warp, op);
      return {};
    case OpKind::kConvertLayout:
      convert_own(warp, op);
      return {};
    case OpKind::kDot:
      return dot(warp, op);
    case OpKind::kLoad:
      return load(warp, op);
    case OpKind::kStore:
      return store(warp, op);
    case OpKind::kAtomicRmw:
    case OpKind::kAtomicCas:
      return atomic(warp, op);
    case OpKind::kPrint:
      return print_values(warp, op);
    case OpKind::kAssert:
      return check_assert(warp, op);
    case OpKind::kPrefetch:
    case OpKind::kAssume:
    case OpKind::kGdcWait:  // what was launched before has ended
    case OpKind::kGdcLaunchDependents:
      return {};
    case OpKind::kMakeDescriptor:
      make_descriptor(warp, op);
      return {};
    case OpKind::kSharedAlloc:
      warp.of(op.result()).assign(1, static_cast<uint64_t>(places_.at(&op)));
      return {};
    case OpKind::kSharedView:
      return shared_view(warp, op);
    case OpKind::kSharedTrans:
      warp.of(op.result()) = warp.of(op.operand(0));
      return {};
    case OpKind::kSharedLoad:
      return shared_load(warp, op);
    case OpKind::kSharedStore:
      return shared_store(warp, op);
    case OpKind::kAsyncCopy:
      return async_copy(warp, op);
    case OpKind::kAsyncCommit:
      ++warp.groups;
      return {};
    case OpKind::kAsyncWait:
      return async_wait(warp, op);
    case OpKind::kMbarrierInit:
      return mbarrier_init(warp, op);
    case OpKind::kMbarrierExpect:
      return mbarrier_expect(warp, op);
    case OpKind::kMbarrierArrive:
      return mbarrier_arrive(warp, op);
    case OpKind::kTmaLoad:
      return tma_load(warp, op);
    case OpKind::kTmaStore:
      return tma_store(warp, op);
    case OpKind::kTmaStoreWait:
      return tma_store_wait(warp, op);
    case OpKind::kFenceAsync:
      fence_async(warp);
      return {};
    case OpKind::kWgmma:
      return wgmma(warp, op);
    case OpKind::kWgmmaWait:
      return wgmma_wait(warp, op);
    case OpKind::kInlineAsm:
    case OpKind::kAsmEffect:
      return error_at(op.range, ErrorKind::kUnsupported, "the interpreter runs no inline assembly");
#define KILN_ELEMENTWISE_OP(e, ...) case OpKind::k##e:
#include "compiler/ir/ops.def"
      break;  // done above
    // Steps of their own (warp_code.h), or gone before.
    case OpKind::kReduce:
    case OpKind::kScan:
    case OpKind::kBucketPlace:
    case OpKind::kScatter:
#define KILN_GATHER_OP(e, ...) case OpKind::k##e:
#define KILN_ACROSS_OP(...)
#include "compiler/ir/ops.def"
    case OpKind::kBarrier:
    case OpKind::kClusterBarrier:
    case OpKind::kMbarrierWait:
    case OpKind::kDescriptorLoad:
    case OpKind::kDescriptorStore:
#define KILN_CONTROL_OP(e, ...) case OpKind::k##e:
#define KILN_TERMINATOR_OP(e, ...) case OpKind::k##e:
#define KILN_ROLES_OP(e, ...) case OpKind::k##e:
#define KILN_MACHINE_OP(...)
#include "compiler/ir/ops.def"
      break;
  }
  KILN_UNREACHABLE("{} in the distributed interpreter", ir::info(op.kind).mnemonic);
}

Status Machine::dot(Warp& warp, const Op& op) {
  Elements out;
  std::string wrong =
      warp_dot(op, warp.number, warp.of(op.operand(0)), warp.of(op.operand(1)), warp.of(op.operand(2)), out);
  if (!wrong.empty()) return fail(&op, ErrorKind::kInternal, "{}", wrong);
  warp.of(op.result()) = std::move(out);
  return {};
}

void Machine::fill(Warp& warp, const Op& op, uint64_t bits) {
  warp.of(op.result()).assign(share_of(op.result()->type), bits);
}

int64_t Machine::element(const Warp& warp, const ir::Type& type, size_t i) {
  if (type.is_scalar()) return 0;
  return static_cast<int64_t>(layout::index_at(*type.layout, static_cast<uint32_t>(i / kLanes),
                                               static_cast<uint32_t>(i % kLanes), static_cast<uint32_t>(warp.number)));
}

// Of all copies of an element, the one with all free bits 0 acts, as in the lowering.
bool Machine::acts(const Warp& warp, const ir::Type& type, const layout::FreeBits& free, size_t i) const {
  if (type.is_scalar()) return leads(warp);
  return !(i / kLanes & free.reg) && !(i % kLanes & free.lane) && !(static_cast<uint32_t>(warp.number) & free.warp);
}
layout::FreeBits Machine::free_bits(const ir::Type& type) {
  return type.is_scalar() ? layout::FreeBits{} : layout::free_variables(*type.layout);
}

void Machine::elementwise(Warp& warp, const Op& op, size_t n) {
  const uint64_t* in[3] = {};
  for (size_t i = 0; i < op.operands.size(); ++i) in[i] = warp.of(op.operands[i]).data();
  Elements& out = warp.of(op.result());
  out.resize(n);
  eval_lanes(op, std::span<const uint64_t* const>(in, op.operands.size()), static_cast<int64_t>(n), out.data());
}

void Machine::take_registers(Warp& warp, const Op& op) {
  for (size_t r = 0; r < op.results.size(); ++r) {
    auto sources = analysis::source_registers(op, static_cast<int>(r));
    KILN_ASSERT(!sources.empty(), "{}", ir::print(op));
    Elements out;
    for (const analysis::OperandRegister& s : sources) {
      const Elements& in = warp.of(op.operand(s.operand));
      auto begin = in.begin() + static_cast<std::ptrdiff_t>(static_cast<size_t>(s.reg) * kLanes);
      out.insert(out.end(), begin, begin + kLanes);
    }
    warp.of(op.results[r]) = std::move(out);
  }
}

void Machine::convert_own(Warp& warp, const Op& op) {
  const auto& plan = std::get<layout::ConvertPlan>(code_.plans.at(&op));
  const Elements& in = warp.of(op.operand(0));
  Elements out(share_of(op.result()->type));
  uint32_t w = static_cast<uint32_t>(warp.number);
  for (size_t i = 0; i < out.size(); ++i) {
    uint32_t r = static_cast<uint32_t>(i / kLanes), l = static_cast<uint32_t>(i % kLanes), from = l;
    if (plan.kind == layout::ConvertKind::kShuffle) {
      // The receiver's view of a shuffle: the slot in which its element arrives, the lane that it asks, and the
      // register that this lane sends in that slot.
      uint32_t slot = plan.take.apply(r, l, w);
      from = plan.ask.apply(slot, l, w);
      r = plan.send.apply(slot, from, w);
    } else {
      r = plan.source.apply(r, l, w);
    }
    out[i] = in[r * kLanes + from];
  }
  warp.of(op.result()) = std::move(out);
}

Status Machine::print_values(Warp& warp, const Op& op) {
  const std::string program = fmt::format("pid ({}, {}, {})", program_[0], program_[1], program_[2]);
  const std::string& text = op.text_attr(AttrName::kText);
  auto emit = [&](const std::string& line) {
    if (options_.on_print)
      options_.on_print(line);
    else
      std::fputs((line + "\n").c_str(), stdout);
  };
  if (op.operands.empty() && leads(warp)) emit(fmt::format("{} {}", program, text));
  for (size_t k = 0; k < op.operands.size(); ++k) {
    const ir::Type& type = op.operands[k]->type;
    const Elements& elements = warp.of(op.operands[k]);
    const layout::FreeBits free = free_bits(type);
    for (size_t i = 0; i < elements.size(); ++i)
      if (acts(warp, type, free, i))
        emit(fmt::format("{} idx {} {}{}{}", program,
                         type.is_tile() ? index_text(type.shape, element(warp, type, i)) : "()", text,
                         op.operands.size() > 1 ? fmt::format("(operand {}) ", k) : "",
                         element_text(type, elements[i], op.flag(AttrName::kHex))));
  }
  return {};
}

Status Machine::check_assert(Warp& warp, const Op& op) {
  const ir::Type& type = op.operand(0)->type;
  const Elements& condition = warp.of(op.operand(0));
  const Elements* mask = op.operands.size() > 1 ? &warp.of(op.operand(1)) : nullptr;
  for (size_t i = 0; i < condition.size(); ++i)
    if (!condition[i] && (!mask || (*mask)[i]))
      return fail(&op, ErrorKind::kMismatch, "assertion failed: {}{}", op.text_attr(AttrName::kText),
                  type.is_tile() ? " at element " + index_text(type.shape, element(warp, type, i)) : "");
  return {};
}

}  // namespace kiln::interp
