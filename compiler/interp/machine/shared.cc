#include <fmt/format.h>

#include <algorithm>

#include "compiler/analysis/shared_memory.h"
#include "compiler/interp/element.h"
#include "compiler/interp/eval.h"
#include "compiler/interp/machine/machine.h"

namespace kiln::interp {

using ir::AttrName;
using ir::Form;
using ir::Op;
using ir::OpKind;

void Machine::place_handles() {
  shared_bytes_ = module_.shared_bytes;
  auto each = [&](auto&& visit) {
    walk(module_.body(), [&](const Op* op) {
      if (op->kind == OpKind::kSharedAlloc) visit(op, op->result()->type);
    });
  };
  agents_.own_warps = module_.num_warps;
  for (const Op* op : *module_.body())
    if (op->kind == OpKind::kWarpSpecialize) agents_.lone_threads = static_cast<int>(op->regions.size()) - 1;
  agents_.blocks = module_.num_ctas;
  each([&](const Op* op, const ir::Type& type) {
    if (!op->has(AttrName::kSharedOffset)) return;
    places_[op] = op->int_attr(AttrName::kSharedOffset);
    shared_bytes_ = std::max(shared_bytes_, places_[op] + analysis::shared_bytes(type));
  });
  each([&](const Op* op, const ir::Type& type) {
    // Modules of tests may not have been through allocate_shared: their allocations are placed behind the others.
    if (!places_.contains(op)) {
      const int64_t unit = analysis::shared_alignment(type);
      places_[op] = (shared_bytes_ + unit - 1) / unit * unit;
      shared_bytes_ = places_[op] + analysis::shared_bytes(type);
    }
    for (int i = 0; type.form == Form::kBarrier && i < type.copies; ++i)
      if (barrier_numbers_.emplace(places_[op] + i * analysis::kBarrierBytes, agents_.barriers).second)
        ++agents_.barriers;
  });
}

Accessor Machine::threads(const Warp& warp, const Op& op) const {
  const uint32_t agent = agents_.of(warp.id, Engine::kThreads);
  return {&op, agent, warp.knows.seen[agent] - 1, warp.id, &warp.knows, &agents_};
}

const std::vector<uint32_t>& Machine::offsets_of(const ir::Type& handle) {
  std::vector<uint32_t>& offsets = offsets_[handle.layout];
  if (offsets.empty()) {
    offsets.resize(static_cast<size_t>(handle.shape.numel()));
    for (auto at = static_cast<uint32_t>(handle.layout->size(layout::In::kOffset)); at-- > 0;)
      offsets[layout::index_of(handle.shape.span(), handle.layout->apply(layout::In::kOffset, at))] = at;
  }
  return offsets;
}

Status Machine::shared_view(Warp& warp, const Op& op) {
  const ir::Type& type = op.operand(0)->type;
  const int64_t copy = int_value(DType::kI32, warp.of(op.operand(1))[0]);
  if (copy < 0 || copy >= type.copies)
    return fail(&op, ErrorKind::kInternal, "copy {} of {} in shared memory", copy, type.copies);
  warp.of(op.result())
      .assign(1, warp.of(op.operand(0))[0] + static_cast<uint64_t>(copy * analysis::shared_stride(type)));
  return {};
}

Status Machine::shared_load(Warp& warp, const Op& op) {
  const ir::Type& type = op.result()->type;
  const std::vector<uint32_t>& offsets = offsets_of(op.operand(0)->type);
  const auto base = static_cast<int64_t>(warp.of(op.operand(0))[0]);
  const int bytes = bytes_of(type);
  SharedMemory::Access access(shared_[warp.block], threads(warp, op));
  Elements out(share_of(type));
  for (size_t i = 0; i < out.size(); ++i) {
    const int64_t at = base + int64_t{offsets[static_cast<size_t>(element(warp, type, i))]} * bytes;
    if (std::string wrong = access.read(kSomeLane, at, bytes, out[i]); !wrong.empty())
      return fail(&op, ErrorKind::kInternal, "{}", wrong);
  }
  warp.of(op.result()) = std::move(out);
  return {};
}

Status Machine::shared_store(Warp& warp, const Op& op) {
  const ir::Type& type = op.operand(1)->type;
  const std::vector<uint32_t>& offsets = offsets_of(op.operand(0)->type);
  const auto base = static_cast<int64_t>(warp.of(op.operand(0))[0]);
  const Elements& value = warp.of(op.operand(1));
  const layout::FreeBits free = free_bits(type);
  const int bytes = bytes_of(type);
  SharedMemory::Access access(shared_[warp.block], threads(warp, op));
  for (size_t i = 0; i < value.size(); ++i) {
    if (!acts(warp, type, free, i)) continue;
    const int64_t at = base + int64_t{offsets[static_cast<size_t>(element(warp, type, i))]} * bytes;
    if (std::string wrong = access.write(kSomeLane, at, bytes, value[i]); !wrong.empty())
      return fail(&op, ErrorKind::kInternal, "{}", wrong);
  }
  return {};
}

Status Machine::async_copy(Warp& warp, const Op& op) {
  KILN_CHECK_OK(check_vectors(warp, op));
  const ir::Type& type = op.operand(1)->type;
  const std::vector<uint32_t>& offsets = offsets_of(op.operand(0)->type);
  const auto base = static_cast<int64_t>(warp.of(op.operand(0))[0]);
  const Elements& pointers = warp.of(op.operand(1));
  const Elements* mask = op.operands.size() > 2 ? &warp.of(op.operand(2)) : nullptr;
  const layout::FreeBits free = free_bits(type);
  const int bytes = size_of(type.dtype);
  struct Copy {
    int lane;
    int64_t element, at;
    uint64_t address;
    bool on;
  };
  // Addresses and masks are read now, memory when the transfer is performed: at any time before the wait, as the
  // scheduler decides.
  std::vector<Copy> copies;
  for (size_t i = 0; i < pointers.size(); ++i) {
    if (!acts(warp, type, free, i)) continue;
    const int64_t e = element(warp, type, i);
    copies.push_back({static_cast<int>(i % kLanes), e, base + int64_t{offsets[static_cast<size_t>(e)]} * bytes,
                      pointers[i], !mask || (*mask)[i]});
  }
  Transfer transfer;
  transfer.agent = agents_.of(warp.id, Engine::kCopies);
  transfer.epoch = warp.groups;
  transfer.perform = [this, &op, bytes, copies = std::move(copies), number = warp.id, block = warp.block,
                      epoch = transfer.epoch, agent = transfer.agent, knows = warp.knows]() -> Status {
    SharedMemory::Access access(shared_[block], {&op, agent, epoch, number, &knows, &agents_});
    const DType dtype = op.operand(1)->type.dtype;
    for (const Copy& c : copies) {
      uint64_t bits = 0;
      if (c.on) {
        if (std::string wrong = access_fault(op, memory_, c.address, c.element); !wrong.empty())
          return fail(&op, ErrorKind::kLaunch, "{}", wrong);
        KILN_CHECK_OK(check_bulk_stored(op, c.address, bytes));
        bits = Memory::read(c.address, dtype);
      }
      if (std::string wrong = access.write(c.lane, c.at, bytes, bits); !wrong.empty())
        return fail(&op, ErrorKind::kInternal, "{}", wrong);
    }
    return {};
  };
  transfers_.push_back(std::move(transfer));
  advance(warp);
  return {};
}

Status Machine::async_wait(Warp& warp, const Op& op) {
  // Groups complete in order, so waiting for one waits for all before it.
  const int64_t done = warp.groups - op.int_attr(AttrName::kCount);
  const uint32_t agent = agents_.of(warp.id, Engine::kCopies);
  if (done <= int64_t{warp.knows.seen[agent]}) return {};
  KILN_CHECK_OK(perform_until(agent, static_cast<uint32_t>(done)));
  warp.knows.seen[agent] = static_cast<uint32_t>(done);
  return {};
}

void Machine::fence_async(Warp& warp) {
  for (Engine engine : {Engine::kThreads, Engine::kCopies}) {
    const uint32_t agent = agents_.of(warp.id, engine);
    warp.knows.fenced[agent] = warp.knows.seen[agent];
  }
  advance(warp);
}

Status Machine::mbarrier_init(Warp& warp, const Op& op) {
  if (!leads(warp)) return {};
  const auto base = static_cast<int64_t>(warp.of(op.operand(0))[0]);
  std::map<int64_t, Mbarrier>& mbarriers = mbarriers_[warp.block];
  if (op.int_attr(AttrName::kCount) < 1)
    return fail(&op, ErrorKind::kInternal, "an mbarrier of {} arrivals", op.int_attr(AttrName::kCount));
  const Accessor who = threads(warp, op);
  SharedMemory::Access access(shared_[warp.block], who);
  for (int i = 0; i < op.operand(0)->type.copies; ++i) {
    const int64_t at = base + i * analysis::kBarrierBytes;
    if (auto there = mbarriers.find(at); there != mbarriers.end())
      return fail(&op, ErrorKind::kInternal, "the mbarrier at byte {} is initialised again while it is in use: {}", at,
                  there->second.describe());
    if (std::string wrong = access.take_for_barrier(0, at, analysis::kBarrierBytes); !wrong.empty())
      return fail(&op, ErrorKind::kInternal, "{}", wrong);
    mbarriers.emplace(at, Mbarrier(op.int_attr(AttrName::kCount), agents_.loads_of(warp.block, barrier_numbers_.at(at)),
                                   who.stamp(0), agents_.count()));
  }
  return {};
}

Result<Mbarrier*> Machine::mbarrier_of(Warp& warp, const Op& op, int index, int lane, size_t block) {
  const auto at = static_cast<int64_t>(warp.of(op.operand(index))[0]);
  auto found = mbarriers_[block].find(at);
  if (found == mbarriers_[block].end() || !threads(warp, op).follows(found->second.init(), lane))
    return fail(&op, ErrorKind::kInternal, "{} uses the mbarrier at byte {}{}, and {}", agents_.name_warp(warp.id), at,
                block == warp.block ? "" : fmt::format(" of block {}", block),
                found == mbarriers_[block].end() ? "nothing has initialised it"
                                                 : "nothing orders that with its mbarrier_init: a race");
  return &found->second;
}

Status Machine::mbarrier_arrive(Warp& warp, const Op& op) {
  for (size_t block = 0; block < shared_.size(); ++block) {
    if (block != warp.block && !op.flag(AttrName::kCluster)) continue;
    if (block != warp.block) KILN_CHECK_OK(reach(warp, op, block));
    auto barrier = mbarrier_of(warp, op, 0, is_alone(warp) ? 0 : kWholeWarp, block);
    KILN_CHECK_OK(barrier);
    sync_lanes(warp);
    if (std::string wrong = (*barrier)->arrive(warp.knows); !wrong.empty())
      return fail(&op, ErrorKind::kInternal, "{}", wrong);
  }
  advance(warp);
  return {};
}

Status Machine::reach(const Warp& warp, const Op& op, size_t block) {
  if (ended_[block])
    return fail(&op, ErrorKind::kInternal, "{} reaches into block {}, which has ended", agents_.name_warp(warp.id),
                block);
  const uint32_t agent = agents_.of(warp.id, Engine::kThreads);
  reached_[block][agent] = {&op, agent, warp.knows.seen[agent] - 1, kWholeWarp};
  return {};
}

Status Machine::mbarrier_expect(Warp& warp, const Op& op) {
  if (!leads(warp)) return {};
  auto barrier = mbarrier_of(warp, op, 0, 0, warp.block);
  KILN_CHECK_OK(barrier);
  // One thread arrives: it knows nothing of what other lanes did since they were synchronised.
  Knowledge knows = warp.knows;
  const uint32_t own = agents_.of(warp.id, Engine::kThreads);
  if (!is_alone(warp)) knows.seen[own] = knows.synced[own];
  if (std::string wrong = (*barrier)->arrive(knows, op.int_attr(AttrName::kBytes)); !wrong.empty())
    return fail(&op, ErrorKind::kInternal, "{}", wrong);
  advance(warp);
  return {};
}

Result<bool> Machine::mbarrier_wait(Warp& warp, const Op& op) {
  auto barrier = mbarrier_of(warp, op, 0, is_alone(warp) ? 0 : kWholeWarp, warp.block);
  KILN_CHECK_OK(barrier);
  const int64_t parity = int_value(DType::kI32, warp.of(op.operand(1))[0]);
  if (parity != 0 && parity != 1) return fail(&op, ErrorKind::kInternal, "a wait for the parity {}", parity);
  const bool passes = (*barrier)->passed(parity);
  warp.awaits = passes ? nullptr : *barrier;
  warp.parity = parity;
  if (passes) warp.knows.join((*barrier)->ended());
  return passes;
}

}  // namespace kiln::interp
