#include "compiler/interp/machine/machine.h"

#include <algorithm>

#include "compiler/interp/element.h"

namespace kiln::interp {

using ir::AttrName;
using ir::Op;
using ir::OpKind;
using ir::Value;

Status Machine::check_vectors(Warp& warp, const Op& op) {
  const size_t width = static_cast<size_t>(axis_.vector_width(&op));
  if (width == 1) return {};
  const Value* pointer = analysis::pointer_of(&op);
  const ir::Type& type = pointer->type;
  const Elements& pointers = warp.of(pointer);
  const Value* mask = analysis::mask_of(&op);
  const uint64_t size = static_cast<uint64_t>(size_of(type.dtype));
  const bool ends_within = axis_.may_end_within_vector(&op);
  auto on = [&](size_t i) { return !mask || warp.of(mask)[i]; };
  for (size_t i = 0; i < pointers.size(); ++i) {
    // The registers of one access and the lane's pointer to the first of them. The NVPTX lowering reads that pointer
    // only, so the others must be its neighbours, with the same mask or, where it may end within them, none behind the
    // first that is off.
    const size_t r = i / kLanes, first = r / width * width * kLanes + i % kLanes;
    const bool neighbours =
        pointers[i] == pointers[first] + (r % width) * size && pointers[first] % (width * size) == 0;
    const bool follows = ends_within ? !on(i) || i == first || on(i - kLanes) : on(i) == on(first);
    if (!follows || (on(i) && !neighbours))
      return fail(&op, ErrorKind::kInternal,
                  "axis info promises {} elements at a time, and element {} is not one of them", width,
                  index_text(type.shape, element(warp, type, i)));
  }
  return {};
}

Status Machine::load(Warp& warp, const Op& op) {
  KILN_CHECK_OK(check_vectors(warp, op));
  const Elements& pointers = warp.of(op.operand(0));
  const Elements* mask = op.operands.size() > 1 ? &warp.of(op.operand(1)) : nullptr;
  const Elements* other = op.operands.size() > 2 ? &warp.of(op.operand(2)) : nullptr;
  Elements out(pointers.size());
  for (size_t i = 0; i < pointers.size(); ++i) {
    if (mask && !(*mask)[i]) {
      out[i] = other ? (*other)[i] : 0;
      continue;
    }
    if (std::string wrong = access_fault(op, memory_, pointers[i], element(warp, op.operand(0)->type, i));
        !wrong.empty())
      return fail(&op, ErrorKind::kLaunch, "{}", wrong);
    KILN_CHECK_OK(check_bulk_stored(op, pointers[i], size_of(op.result()->type.dtype)));
    out[i] = Memory::read(pointers[i], op.result()->type.dtype);
  }
  warp.of(op.result()) = std::move(out);
  return {};
}

Status Machine::store(Warp& warp, const Op& op) {
  KILN_CHECK_OK(check_vectors(warp, op));
  const ir::Type& type = op.operand(0)->type;
  const Elements &pointers = warp.of(op.operand(0)), &value = warp.of(op.operand(1));
  const Elements* mask = op.operands.size() > 2 ? &warp.of(op.operand(2)) : nullptr;
  const layout::FreeBits free = free_bits(type);
  // Keyed by the number of times that the warp has executed the store, so that each iteration of a loop is checked by
  // itself.
  std::vector<bool>& written = stored_[{&op, warp.block, warp.stores[&op]++}];
  written.resize(static_cast<size_t>(type.shape.numel()));
  for (size_t i = 0; i < pointers.size(); ++i) {
    if (!acts(warp, type, free, i)) continue;
    int64_t e = element(warp, type, i);
    if (written[static_cast<size_t>(e)])
      return fail(&op, ErrorKind::kInternal, "element {} is stored twice, by warp {} lane {} the second time",
                  index_text(type.shape, e), warp.number, i % kLanes);
    written[static_cast<size_t>(e)] = true;
    if (mask && !(*mask)[i]) continue;
    if (std::string wrong = access_fault(op, memory_, pointers[i], e); !wrong.empty())
      return fail(&op, ErrorKind::kLaunch, "{}", wrong);
    KILN_CHECK_OK(check_bulk_stored(op, pointers[i], size_of(op.operand(1)->type.dtype)));
    Memory::write(pointers[i], op.operand(1)->type.dtype, value[i]);
  }
  return {};
}

// Every element must be stored by some thread: a layout or a free mask that loses one is a bug of the lowering's plans.
Status Machine::check_stores() const {
  for (const auto& [key, written] : stored_) {
    const Op* store = std::get<0>(key);
    auto missing = std::find(written.begin(), written.end(), false);
    if (missing != written.end())
      return fail(store, ErrorKind::kInternal, "nobody stores element {}",
                  index_text(store->operand(0)->type.shape, missing - written.begin()));
  }
  return {};
}

Status Machine::atomic(Warp& warp, const Op& op) {
  KILN_CHECK_OK(check_vectors(warp, op));
  const ir::Type& type = op.operand(0)->type;
  const layout::FreeBits free = free_bits(type);
  const bool cas = op.kind == OpKind::kAtomicCas;
  const Elements &pointers = warp.of(op.operand(0)), &first = warp.of(op.operand(1));
  const Elements* mask = !cas && op.operands.size() > 2 ? &warp.of(op.operand(2)) : nullptr;
  Elements out(pointers.size());
  const ir::Type& result = op.result()->type;
  Elements& got = atomics_[{&op, warp.block}];
  got.resize(static_cast<size_t>(type.shape.numel()));
  for (size_t i = 0; i < pointers.size(); ++i) {
    if (!acts(warp, type, free, i)) continue;
    got[static_cast<size_t>(element(warp, type, i))] = 0;
    if (mask && !(*mask)[i]) continue;
    if (std::string wrong = access_fault(op, memory_, pointers[i], element(warp, type, i)); !wrong.empty())
      return fail(&op, ErrorKind::kLaunch, "{}", wrong);
    out[i] = Memory::read(pointers[i], result.dtype);
    got[static_cast<size_t>(element(warp, type, i))] = out[i];
    uint64_t next = cas ? (out[i] == first[i] ? warp.of(op.operand(2))[i] : out[i])
                        : combine_rmw(op.word<ir::Rmw>(), result, out[i], first[i]);
    Memory::write(pointers[i], result.dtype, next);
  }
  warp.of(op.result()) = std::move(out);
  return {};
}

}  // namespace kiln::interp
