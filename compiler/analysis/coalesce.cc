#include "compiler/analysis/coalesce.h"

#include <algorithm>
#include <array>
#include <bit>

#include "compiler/layout/algebra.h"
#include "compiler/layout/reduce_plan.h"

namespace kiln::analysis {

using layout::In;
using layout::LinearLayout;

namespace {

constexpr int kLanes = 32;
constexpr int64_t kSectorBytes = 32, kLineBytes = 128, kAccessBytes = 16;
// From H200's figures per SM and cycle: 21 bytes of memory, 128 of L1 and of shared memory.
constexpr double kCyclesPerSector = 1.5, kCyclesPerRepeatedSector = 0.25, kCyclesPerRepeatedLine = 0.5,
                 kCyclesPerInstruction = 1.0;
/// Of each further time that a store writes to a line. Chosen, not measured: by it what is multiplied outside of loops
/// is stored by rows. Of published kernels that is fla_kkt, at 1.04 of Triton on an H200, 1.01 before.
constexpr double kCyclesPerRequest = 1.0;
// Four warps at a time; a division by a number is a multiplication and a few steps, any other a loop's worth of them.
constexpr double kCyclesPerOperation = 0.25, kDivisionByConstant = 5, kDivision = 24;
constexpr double kSharedBytesPerCycle = 128, kCyclesOfBarriers = 100;

}  // namespace

LinearLayout blocked_layout(const ir::Shape& shape, std::span<const int> order, int64_t width, int num_warps,
                            bool warps_outermost, int most_lanes) {
  std::array<int32_t, ir::kMaxRank> per_thread{}, lanes{}, warps{};
  per_thread.fill(1), lanes.fill(1), warps.fill(1);
  size_t rank = shape.rank;
  auto at = [&](auto& list, int d) -> int32_t& { return list[static_cast<size_t>(d)]; };
  at(per_thread, order[0]) = static_cast<int32_t>(std::min<int64_t>(width, shape[order[0]]));
  auto fill = [&](auto& list, int count, bool outermost) {
    for (size_t i = 0; i < rank; ++i) {
      int d = order[outermost ? rank - 1 - i : i];
      int32_t left = shape[d] / at(per_thread, d) / at(lanes, d) / at(warps, d);
      int32_t n = std::clamp(static_cast<int32_t>(count), 1, std::max(1, left));
      at(list, d) *= n;
      count /= n;
    }
    at(list, order[0]) *= count;  // what is left over holds copies
  };
  // The rest goes to other dimensions first.
  at(lanes, order[0]) = std::min({most_lanes, kLanes, shape[order[0]] / at(per_thread, order[0])});
  int count = kLanes / at(lanes, order[0]);
  for (size_t i = 1; i < rank; ++i) {
    at(lanes, order[i]) = std::min(count, shape[order[i]]);
    count /= at(lanes, order[i]);
  }
  at(lanes, order[0]) *= count;
  fill(warps, num_warps, warps_outermost);
  return layout::blocked(shape.span(), {per_thread.data(), rank}, {lanes.data(), rank}, {warps.data(), rank}, order);
}

std::vector<LinearLayout> coalesced_layouts(const AxisAnalysis& axis, const ir::Op* access, int num_warps,
                                            int64_t least_width, int most_lanes) {
  const ir::Value* pointer = access->operand(0);
  const ir::Shape& shape = pointer->type.shape;
  std::array<int, ir::kMaxRank> order = axis.order_of(pointer);
  int64_t share = std::max<int64_t>(1, shape.numel() / (kLanes * num_warps));
  int64_t width = 1;
  if (moves_vectors(access)) width = std::min(axis.alignment_width(pointer, mask_of(access), order[0]), share);
  const int64_t neighbours = axis.of(pointer).contiguity[static_cast<size_t>(order[0])];
  width = std::max(width, std::min({least_width, share, neighbours}));
  std::span<const int> dims{order.data(), shape.rank};
  if (width > 1) most_lanes = kLanes;
  std::vector<LinearLayout> result = {blocked_layout(shape, dims, width, num_warps, true, most_lanes)};
  if (shape.rank > 1) result.push_back(blocked_layout(shape, dims, width, num_warps, false, most_lanes));
  return result;
}

double access_cost(const AxisAnalysis& axis, const ir::Op* access, const LinearLayout& layout, bool streams) {
  const ir::Value* pointer = access->operand(0);
  const AxisInfo& info = axis.of(pointer);
  int64_t size = size_of(pointer->type.dtype);
  int width = axis.vector_width(access, layout);

  const auto &registers = layout.bases(In::kRegister), &lanes = layout.bases(In::kLane),
             &warps = layout.bases(In::kWarp);
  layout::Span moved;
  for (const layout::Coord& basis : registers) moved.insert(axis.first_loaded(access, basis));
  const layout::FreeBits free = layout::free_variables(layout);
  double instructions = static_cast<double>(int64_t{1} << moved.rank()) / width;
  // Copies load again, but store once. A thread's copies, and its elements at one address, are loaded once.
  for (size_t i = 0; i < warps.size(); ++i)
    if (!ir::writes_memory(access) || !(free.warp >> i & 1)) instructions *= 2;

  // How many sectors or lines of so many bytes there are, and how often one is asked for again. Where an element lies,
  // as far as axis info knows: neighbours of a contiguous group share them, equal addresses are one. All of it is
  // dropping of index bits, so they are counted as ranks.
  struct Asked {
    double distinct, again;
  };
  auto asked = [&](int64_t bytes) {
    std::array<uint64_t, ir::kMaxRank> kept{};
    for (int d = 0; d < layout.rank(); ++d) {
      // A run of addresses in which each comes `constancy` times is that many times as long, and one with steps
      // shorter.
      const auto neighbours = static_cast<uint64_t>(std::max<int64_t>(1, bytes / (size * info.step[d])));
      const int64_t repeated =
          std::min(info.run[d], info.constancy[d] * static_cast<int64_t>(std::bit_floor(neighbours)));
      // What changes seldom is not counted on: it may be where the numbers are small.
      const double apart = info.usual_step[d] * static_cast<double>(size);
      const auto usual = apart <= 0 || apart > static_cast<double>(bytes)
                             ? uint64_t{1}
                             : std::bit_floor(static_cast<uint64_t>(static_cast<double>(bytes) / apart));
      const int64_t together = std::max({info.constancy[d], std::clamp<int64_t>(bytes / size, 1, info.contiguity[d]),
                                         repeated, std::min(kUsualRun, static_cast<int64_t>(usual))});
      kept[static_cast<size_t>(d)] = ~static_cast<uint64_t>(together - 1);
    }
    layout::Span all, one;
    auto add = [&](const layout::Coord& basis, bool in_one) {
      layout::Coord r;
      for (int d = 0; d < layout.rank(); ++d)
        r[d] = static_cast<int32_t>(static_cast<uint64_t>(basis[d]) & kept[static_cast<size_t>(d)]);
      const auto place = layout::index_of(layout.shape(), r);
      all.insert(place);
      if (in_one) one.insert(place);
    };
    for (size_t i = 0; i < registers.size(); ++i) add(registers[i], int64_t{1} << i < width);
    for (const layout::Coord& basis : lanes) add(basis, true);
    for (const layout::Coord& basis : warps) add(basis, false);
    const double distinct = static_cast<double>(int64_t{1} << all.rank());
    return Asked{distinct, std::max(0.0, instructions * static_cast<double>(int64_t{1} << one.rank()) - distinct)};
  };
  const Asked sectors = asked(kSectorBytes);
  // The first-level cache gives a sector again to loads, of a line or two in each cycle; each store of a part of one
  // goes to the second level.
  double again = (ir::writes_memory(access) ? kCyclesPerSector : kCyclesPerRepeatedSector) * sectors.again;
  if (streams && access->kind == ir::OpKind::kStore)
    again += kCyclesPerRequest * asked(kLineBytes).again;
  else if (streams && !ir::writes_memory(access))
    again = std::max(again, kCyclesPerRepeatedLine * asked(kLineBytes).again);
  return kCyclesPerSector * sectors.distinct + again + kCyclesPerInstruction * instructions;
}

double arithmetic_cost(const AxisAnalysis& axis, const ir::Op* op, const LinearLayout& layout) {
  const bool divides = op->kind == ir::OpKind::kDiv || op->kind == ir::OpKind::kRem;
  const bool by_constant = divides && axis.of(op->operand(1)).constant.has_value();
  layout::Span computed;
  for (const layout::Coord& basis : layout.bases(In::kRegister)) computed.insert(axis.first_equal(op->result(), basis));
  const double warps = static_cast<double>(int64_t{1} << layout.bases(In::kWarp).size());
  const double instructions = divides ? (by_constant ? kDivisionByConstant : kDivision) : 1;
  return warps * static_cast<double>(int64_t{1} << computed.rank()) * instructions * kCyclesPerOperation;
}

namespace {

/// Instructions that bring an element to another lane.
double words_of(DType dtype) { return std::max(1, size_of(dtype) / 4); }

}  // namespace

double reduction_cost(const ir::Op& reduce, const LinearLayout& layout, int num_warps) {
  const auto axis = static_cast<int>(reduce.int_attr(ir::AttrName::kAxis));
  auto goes_along = [&](const layout::Coord& basis) { return basis[axis] != 0; };
  const auto &registers = layout.bases(In::kRegister), &lanes = layout.bases(In::kLane);
  const auto steps = static_cast<double>(std::ranges::count_if(lanes, goes_along));
  const auto kept = std::ranges::count_if(registers, [&](const layout::Coord& b) { return !goes_along(b); });
  double values = 0, words = 0;  // of a step
  for (const ir::Value* result : reduce.results) values += 1, words += words_of(result->type.dtype);
  const double each = num_warps * static_cast<double>(int64_t{1} << kept) * steps;
  double cost = each * (words * kCyclesPerInstruction + values * kCyclesPerOperation);
  if (std::ranges::any_of(layout.bases(In::kWarp), goes_along)) {
    const ir::Type& result = reduce.result()->type;
    cost += conversion_cost(num_warps * result.shape.numel() * size_of(result.dtype));
  }
  return cost;
}

double scan_cost(const ir::Op& scan, const LinearLayout& layout, int num_warps) {
  if (!layout::has_unit_bases(layout)) return 0;
  const layout::ScanPlan plan = layout::plan_scan(layout, static_cast<int>(scan.int_attr(ir::AttrName::kAxis)),
                                                  scan.flag(ir::AttrName::kReverse));
  const int registers = layout.bits(In::kRegister);
  const auto results = static_cast<double>(scan.results.size());
  // Of what comes before, only what the joint reads is brought.
  const auto& args = scan.region()->args;
  const auto read =
      static_cast<double>(std::count_if(args.begin(), args.begin() + static_cast<std::ptrdiff_t>(scan.results.size()),
                                        [](const ir::Value* v) { return !v->uses.empty(); }));
  double cost = 0;
  for (const layout::ScanStep& step : plan.steps) {
    if (step.reach == layout::ScanReach::kPrefix) {
      cost += results * num_warps * (1 << registers) * kCyclesPerOperation;
      continue;
    }
    // A thread adds what it brought to all registers that take part, and brings it once.
    const double added = 1 << (registers - std::popcount(step.active.reg_mask));
    const double brought = 1 << (registers - std::popcount(step.active.reg_mask | step.sources.reg_mask));
    cost += results * num_warps * added * kCyclesPerOperation;
    if (step.reach == layout::ScanReach::kShuffle)
      cost += read * num_warps * brought * words_of(scan.result()->type.dtype) * kCyclesPerInstruction;
    if (step.reach == layout::ScanReach::kShared)
      cost +=
          read * conversion_cost(static_cast<int64_t>(num_warps * added) * kLanes * size_of(scan.result()->type.dtype));
  }
  return cost;
}

double conversion_cost(int64_t bytes) {
  return 2 * static_cast<double>(bytes) / kSharedBytesPerCycle + kCyclesOfBarriers;
}

}  // namespace kiln::analysis
