#include <algorithm>

#include "compiler/interp/element.h"
#include "compiler/interp/eval.h"
#include "compiler/interp/machine/machine.h"
#include "compiler/interp/tensor_block.h"
#include "support/tensor_map.h"

namespace kiln::interp {

using ir::AttrName;
using ir::Op;
using ir::Value;

namespace {

constexpr uint64_t kSharedAlignment = 128;  // of what the tensor memory accelerator reads and writes
constexpr uint64_t kOutside = 0;

}  // namespace

/// A block of a tensor in global memory and the same tile in shared memory.
struct Machine::Box {
  int64_t at = 0;  // in shared memory
  DType dtype{};
  const std::vector<uint32_t>* offsets = nullptr;  // in shared memory, of each element
  size_t first = 0;                                // which element of the tile is the first of addresses
  std::vector<uint64_t> addresses;                 // of each element; kOutside of the tensor
  int64_t bytes() const { return static_cast<int64_t>(addresses.size()) * size_of(dtype); }
  int64_t place(size_t i) const { return at + int64_t{(*offsets)[first + i]} * size_of(dtype); }

  /// Of `parts` equal shares of the rows, the one with that number.
  void keep_part(size_t number, size_t parts) {
    const size_t size = addresses.size() / parts;
    first = number * size;
    addresses = {addresses.begin() + static_cast<std::ptrdiff_t>(first),
                 addresses.begin() + static_cast<std::ptrdiff_t>(first + size)};
  }
};

void Machine::make_descriptor(Warp& warp, const Op& op) {
  Elements out;
  for (const Value* v : op.operands) out.push_back(warp.of(v)[0]);
  warp.of(op.result()) = std::move(out);
}

Result<Machine::Box> Machine::box_of(Warp& warp, const Op& op, int descriptor, int block, size_t first_offset) {
  std::vector<uint64_t> start;
  for (size_t i = first_offset; i < op.operands.size(); ++i) start.push_back(warp.of(op.operands[i])[0]);
  const TensorBlock tensor(op.operand(descriptor)->type, warp.of(op.operand(descriptor)), start);
  const size_t last = tensor.shape.rank - 1u;
  Box box;
  box.at = static_cast<int64_t>(warp.of(op.operand(block))[0]);
  box.dtype = op.operand(descriptor)->type.dtype;
  box.offsets = &offsets_of(op.operand(block)->type);
  bool aligned = tensor.base % kTensorMapAlignment == 0 && static_cast<uint64_t>(box.at) % kSharedAlignment == 0;
  for (size_t d = 0; d < last; ++d)
    aligned = aligned && tensor.stride[d] * tensor.element_bytes % kTensorMapAlignment == 0;
  if (!aligned)
    return fail(&op, ErrorKind::kInternal,
                "a bulk copy needs a base and strides of {} bytes and a place in shared memory of {}",
                kTensorMapAlignment, kSharedAlignment);
  if (op.operand(block)->type.shape.rank == 1 && start[last] * tensor.element_bytes % kTensorMapAlignment != 0)
    return fail(&op, ErrorKind::kInternal, "a bulk copy of one row begins at a multiple of {} bytes, not at element {}",
                kTensorMapAlignment, start[last]);
  if (tensor.stride[last] != 1)
    return fail(&op, ErrorKind::kInternal, "the last stride of a descriptor is 1, not {}", tensor.stride[last]);
  if (op.kind == ir::OpKind::kTmaStore && tensor.size[last] * tensor.element_bytes % kTensorMapAlignment)
    return fail(&op, ErrorKind::kInternal, "a copy out writes units of {} bytes, past the end of rows of {}",
                kTensorMapAlignment, tensor.size[last] * tensor.element_bytes);
  box.addresses = tensor.addresses();
  for (size_t i = 0; i < box.addresses.size(); ++i) {
    if (box.addresses[i] == kOutside) continue;
    std::string wrong = access_fault(op, memory_, box.addresses[i], static_cast<int64_t>(i));
    if (!wrong.empty()) return fail(&op, ErrorKind::kLaunch, "{}", wrong);
  }
  return box;
}

Status Machine::tma_load(Warp& warp, const Op& op) {
  if (!leads(warp)) return {};
  auto box = box_of(warp, op, 2, 0, 3);
  KILN_CHECK_OK(box);
  const bool to_all = op.flag(AttrName::kCluster);
  if (to_all) box->keep_part(warp.block, shared_.size());
  for (const uint64_t address : box->addresses)
    if (address != kOutside) KILN_CHECK_OK(check_bulk_stored(op, address, size_of(box->dtype)));
  for (size_t block = 0; block < shared_.size(); ++block)
    if (to_all || block == warp.block) KILN_CHECK_OK(load_into(warp, op, *box, block));
  advance(warp);
  return {};
}

Status Machine::load_into(Warp& warp, const Op& op, const Box& box, size_t block) {
  auto barrier = mbarrier_of(warp, op, 1, 0, block);
  KILN_CHECK_OK(barrier);
  // Another block announces what comes to it when it gets there.
  if (std::string wrong = (*barrier)->start_load(box.bytes(), /*announced=*/block == warp.block); !wrong.empty())
    return fail(&op, ErrorKind::kInternal, "{}", wrong);
  Transfer transfer;
  transfer.agent = (*barrier)->loads();
  transfer.epoch = (*barrier)->phase();
  transfer.perform = [this, &op, box, block, to = *barrier, number = warp.id, epoch = transfer.epoch,
                      agent = transfer.agent, knows = warp.knows]() -> Status {
    if (ended_[block])
      return fail(&op, ErrorKind::kInternal, "a tma_load writes into block {}, which has ended", block);
    SharedMemory::Access access(shared_[block], {&op, agent, epoch, number, &knows, &agents_});
    for (size_t i = 0; i < box.addresses.size(); ++i) {
      const uint64_t bits = box.addresses[i] == kOutside ? 0 : Memory::read(box.addresses[i], box.dtype);
      if (std::string wrong = access.write(0, box.place(i), size_of(box.dtype), bits); !wrong.empty())
        return fail(&op, ErrorKind::kInternal, "{}", wrong);
    }
    to->land(box.bytes());
    return {};
  };
  transfers_.push_back(std::move(transfer));
  return {};
}

Status Machine::tma_store(Warp& warp, const Op& op) {
  if (!leads(warp, op)) return {};
  auto box = box_of(warp, op, 0, 1, 2);
  KILN_CHECK_OK(box);
  if (const int joined = ir::joined_warps(op, module_.num_warps); joined < module_.num_warps)
    box->keep_part(static_cast<size_t>(warp.number / joined), static_cast<size_t>(module_.num_warps / joined));
  const auto element_bytes = static_cast<uint64_t>(size_of(box->dtype));
  // Rows of neighbours in global memory, as one range each.
  for (size_t i = 0, next; i < box->addresses.size(); i = next) {
    next = i + 1;
    if (box->addresses[i] == kOutside) continue;
    while (next < box->addresses.size() && box->addresses[next] == box->addresses[next - 1] + element_bytes) ++next;
    const uint64_t begin = box->addresses[i], end = box->addresses[next - 1] + element_bytes;
    KILN_CHECK_OK(check_bulk_stored(op, begin, static_cast<int64_t>(end - begin)));
    bulk_stored_[begin] = {end, &op};
  }
  Transfer transfer;
  transfer.agent = agents_.of(warp.id, Engine::kStores);
  transfer.epoch = warp.bulk_stores++;
  transfer.perform = [this, &op, box = std::move(*box), number = warp.id, block = warp.block, epoch = transfer.epoch,
                      agent = transfer.agent, knows = warp.knows]() -> Status {
    SharedMemory::Access access(shared_[block], {&op, agent, epoch, number, &knows, &agents_});
    for (size_t i = 0; i < box.addresses.size(); ++i) {
      uint64_t bits = 0;
      if (std::string wrong = access.read(0, box.place(i), size_of(box.dtype), bits); !wrong.empty())
        return fail(&op, ErrorKind::kInternal, "{}", wrong);
      if (box.addresses[i] == kOutside) continue;
      if (const auto rmw = op.find_word<ir::Rmw>())
        bits = combine_rmw(*rmw, ir::scalar_type(box.dtype), Memory::read(box.addresses[i], box.dtype), bits);
      Memory::write(box.addresses[i], box.dtype, bits);
    }
    return {};
  };
  transfers_.push_back(std::move(transfer));
  advance(warp);
  return {};
}

Status Machine::tma_store_wait(Warp& warp, const Op& op) {
  if (!leads(warp, op)) return {};
  const int64_t done = warp.bulk_stores - op.int_attr(AttrName::kCount);
  const uint32_t agent = agents_.of(warp.id, Engine::kStores);
  if (done <= int64_t{warp.knows.seen[agent]}) return {};
  KILN_CHECK_OK(perform_until(agent, static_cast<uint32_t>(done)));
  warp.knows.seen[agent] = static_cast<uint32_t>(done);
  return {};
}

Status Machine::check_bulk_stored(const Op& op, uint64_t address, int64_t bytes) const {
  if (bulk_stored_.empty()) return {};
  auto after = bulk_stored_.lower_bound(address + static_cast<uint64_t>(bytes));
  if (after == bulk_stored_.begin() || std::prev(after)->second.first <= address) return {};
  // Sums are the same in any order.
  if (op.kind == ir::OpKind::kTmaStore && op.has(AttrName::kRmw) &&
      std::prev(after)->second.second->has(AttrName::kRmw))
    return {};
  return fail(&op, ErrorKind::kInternal,
              "race in global memory: a tma_store of this program writes byte {:#x} too, at any time until its end: {}",
              std::max(address, std::prev(after)->first), ir::print(*std::prev(after)->second.second));
}

Status Machine::perform_any() {
  const size_t chosen = random_() % transfers_.size();
  auto at = transfers_.begin() + static_cast<std::ptrdiff_t>(chosen);
  if (at->in_order)
    at = std::find_if(transfers_.begin(), transfers_.end(), [&](const Transfer& t) { return t.agent == at->agent; });
  const std::function<Status()> perform = std::move(at->perform);
  transfers_.erase(at);
  return perform();
}

Status Machine::perform_until(uint32_t agent, uint32_t epoch) {
  for (size_t i = 0; i < transfers_.size();) {
    if (transfers_[i].agent != agent || transfers_[i].epoch >= epoch) {
      ++i;
      continue;
    }
    const std::function<Status()> perform = std::move(transfers_[i].perform);
    transfers_.erase(transfers_.begin() + static_cast<std::ptrdiff_t>(i));
    KILN_CHECK_OK(perform());
  }
  return {};
}

}  // namespace kiln::interp
