#include "compiler/layout/reduce_plan.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <utility>

#include "compiler/layout/algebra.h"
#include "support/diag.h"

namespace kiln::layout {

namespace {

constexpr int64_t kShareAlignment = 16;

/// Input bits of one group whose basis runs along `axis`.
uint32_t bits_along(const LinearLayout& layout, In in, int axis) {
  uint32_t mask = 0;
  for (size_t i = 0; i < layout.bases(in).size(); ++i)
    if (layout.bases(in)[i][axis] != 0) mask |= uint32_t{1} << i;
  return mask;
}

std::vector<uint32_t> single_bits(uint32_t mask) {
  std::vector<uint32_t> r;
  for (; mask; mask &= mask - 1) r.push_back(mask & -mask);
  return r;
}

std::vector<uint32_t> narrow(const std::vector<uint64_t>& bases) { return {bases.begin(), bases.end()}; }

/// Turns steps between lanes into halvings while a thread has several parts. What lies far apart is halved first, so
/// that neighbours remain in one thread, which stores them at once.
void halve(ReducePlan& plan) {
  std::vector<uint32_t>& parts = plan.write.reg;
  while (!parts.empty() && !plan.lane_masks.empty()) {
    const auto furthest = std::ranges::max_element(parts);
    const uint32_t lane = plan.lane_masks.front();
    plan.halvings.push_back({lane, uint32_t{1} << (furthest - parts.begin())});
    plan.write.lane[static_cast<size_t>(std::countr_zero(lane))] = *furthest;
    plan.write_lane_mask &= ~lane;
    parts.erase(furthest);
    plan.lane_masks.erase(plan.lane_masks.begin());
  }
}

}  // namespace

ReducePlan plan_reduce(const LinearLayout& operand, int axis, bool halves) {
  KILN_ASSERT(has_unit_bases(operand));
  ReducePlan plan(slice(operand, axis));
  FreeBits free = free_variables(operand);
  uint32_t along_reg = bits_along(operand, In::kRegister, axis), along_lane = bits_along(operand, In::kLane, axis),
           along_warp = bits_along(operand, In::kWarp, axis);

  // Result registers are the operand's register bits that neither run along the axis nor are copies, packed in order.
  uint32_t kept = (static_cast<uint32_t>(operand.num_registers()) - 1) & ~along_reg & ~free.reg;
  KILN_ASSERT(std::popcount(kept) == plan.result.bits(In::kRegister));
  plan.registers.resize(static_cast<size_t>(plan.result.num_registers()));
  for (uint32_t r = 0; r < static_cast<uint32_t>(operand.num_registers()); ++r) {
    if (r & free.reg) continue;
    uint32_t to = 0;
    int bit = 0;
    for (uint32_t k : single_bits(kept)) to |= (r & k ? 1u : 0u) << bit++;
    plan.registers[to].push_back(static_cast<int>(r));
  }
  for (auto& group : plan.registers)
    std::sort(group.begin(), group.end(), [&](int a, int b) {
      return operand.apply(In::kRegister, static_cast<uint32_t>(a))[axis] <
             operand.apply(In::kRegister, static_cast<uint32_t>(b))[axis];
    });

  // Lanes that are near along the axis first.
  plan.lane_masks = single_bits(along_lane);
  auto along = [&](uint32_t mask) { return operand.apply(In::kLane, mask)[axis]; };
  std::sort(plan.lane_masks.begin(), plan.lane_masks.end(),
            [&](uint32_t a, uint32_t b) { return along(a) < along(b); });

  plan.crosses_warps = along_warp != 0;
  if (!plan.crosses_warps) return plan;

  // Scratch: one copy of the result per partial of the axis' warp bits ("slot"), slots outermost.
  uint32_t elements = static_cast<uint32_t>(num_elements(plan.result));
  std::vector<uint32_t> slots;  // warp bits along the axis, near ones first
  slots = single_bits(along_warp);
  std::sort(slots.begin(), slots.end(), [&](uint32_t a, uint32_t b) {
    return operand.apply(In::kWarp, a)[axis] < operand.apply(In::kWarp, b)[axis];
  });
  plan.scratch_elements = int64_t{elements} << slots.size();
  plan.write = {narrow(index_bases(plan.result, In::kRegister)), narrow(index_bases(plan.result, In::kLane)),
                narrow(index_bases(plan.result, In::kWarp))};
  plan.read = plan.write;
  for (size_t s = 0; s < slots.size(); ++s)
    plan.write.warp[static_cast<size_t>(std::countr_zero(slots[s]))] = elements << s;
  plan.write_lane_mask = along_lane | free.lane;
  plan.write_warp_mask = free.warp;

  // Lanes that hold copies of the result share the reading of the slots; what they cannot share is read one after
  // another.
  std::vector<uint32_t> helpers = single_bits(plan.write_lane_mask);
  size_t shared = std::min(helpers.size(), slots.size()), serial_bits = slots.size() - shared;
  for (uint32_t k = 0; k < uint32_t{1} << serial_bits; ++k) plan.serial.push_back(k * elements);
  for (size_t i = 0; i < shared; ++i) {
    plan.read.lane[static_cast<size_t>(std::countr_zero(helpers[i]))] = elements << (serial_bits + i);
    plan.shared_lane_masks.push_back(helpers[i]);
  }
  if (halves) halve(plan);
  return plan;
}

namespace {

/// A thread's elements in a row, one after the other: each takes in the one before it. `bits`: of registers, in the
/// order of the axis.
void add_elements_in_a_row(ScanPlan& plan, const std::vector<uint32_t>& bits, bool reverse) {
  const uint32_t all = std::accumulate(bits.begin(), bits.end(), 0U);
  auto register_of = [&](uint32_t element) {
    uint32_t r = 0;
    for (size_t i = 0; i < bits.size(); ++i) r |= element >> i & 1 ? bits[i] : 0;
    return reverse ? all & ~r : r;
  };
  for (uint32_t element = 1; element < uint32_t{1} << bits.size(); ++element) {
    ScanStep step;
    step.active.reg_mask = step.sources.reg_mask = all;
    step.active.reg_value = register_of(element);
    step.sources.reg_value = register_of(element - 1);
    plan.steps.push_back(step);
  }
}

/// Replaces, in a run of steps between threads, what each would add to all of a thread's elements in a row.
void join_prefixes(ScanPlan& plan) {
  constexpr int kFewestBits = 2;  // of the number of such elements
  std::vector<ScanStep> steps;
  Positions without;  // of the run so far: threads that nothing comes before
  auto end_run = [&] {
    if (!steps.empty() && steps.back().joins_prefix) {
      ScanStep last;
      last.reach = ScanReach::kPrefix;
      last.sources.reg_mask = steps.back().active.reg_mask, last.sources.reg_value = steps.back().active.reg_value;
      last.without = without;
      steps.push_back(last);
    }
    without = {};
  };
  for (ScanStep& step : plan.steps) {
    const bool goes_far = step.active.reg_mask == 0 && std::popcount(step.sources.reg_mask) >= kFewestBits;
    if (!goes_far) end_run();
    steps.push_back(step);
    if (!goes_far) continue;
    ScanStep& own = steps.back();
    own.joins_prefix = true;
    own.without = without;
    // The positions of `active` are those at which one bit has its further value.
    without.lane_mask |= own.active.lane_mask, without.lane_value |= ~own.active.lane_value & own.active.lane_mask;
    without.warp_mask |= own.active.warp_mask, without.warp_value |= ~own.active.warp_value & own.active.warp_mask;
    own.active.reg_mask |= own.sources.reg_mask, own.active.reg_value |= own.sources.reg_value;
  }
  end_run();
  plan.steps = std::move(steps);
}

}  // namespace

ScanPlan plan_scan(const LinearLayout& operand, int axis, bool reverse) {
  KILN_ASSERT(has_unit_bases(operand));
  ScanPlan plan;
  FreeBits free = free_variables(operand);
  auto shape = operand.shape();
  // Axis bit b as a bit of the element index: the dimensions after the axis lie below it.
  int below = 0;
  for (int d = axis + 1; d < operand.rank(); ++d) below += log2_exact(shape[static_cast<size_t>(d)]);

  std::vector<uint32_t> own;  // the registers' bits of steps so far that lie within threads
  Positions lower;            // the positions with all axis bits below the step's at the far end
  for (int b = 0; b < log2_exact(shape[static_cast<size_t>(axis)]); ++b) {
    ScanStep step;
    step.active = {};
    step.sources = lower;
    auto add_bit = [](Positions& p, In in, uint32_t bit, bool value) {
      uint32_t& mask = in == In::kRegister ? p.reg_mask : in == In::kLane ? p.lane_mask : p.warp_mask;
      uint32_t& want = in == In::kRegister ? p.reg_value : in == In::kLane ? p.lane_value : p.warp_value;
      mask |= bit;
      if (value) want |= bit;
    };
    for (In in : {In::kRegister, In::kLane, In::kWarp}) {
      auto bases = operand.bases(in);
      for (size_t i = 0; i < bases.size(); ++i) {
        if (bases[i][axis] != 1 << b) continue;
        // Forward: elements with the bit set take in the last element of the half before them.
        add_bit(step.active, in, uint32_t{1} << i, !reverse);
        add_bit(step.sources, in, uint32_t{1} << i, reverse);
        add_bit(lower, in, uint32_t{1} << i, !reverse);
      }
    }
    if (lower.lane_mask == 0 && lower.warp_mask == 0 && step.active.lane_mask == 0 && step.active.warp_mask == 0) {
      own.push_back(step.active.reg_mask);
      continue;
    }
    add_elements_in_a_row(plan, std::exchange(own, {}), reverse);
    step.reach = step.sources.warp_mask   ? ScanReach::kShared
                 : step.sources.lane_mask ? ScanReach::kShuffle
                                          : ScanReach::kRegisters;
    if (step.reach == ScanReach::kShared) {
      step.writers = step.sources;
      step.writers.reg_mask |= free.reg;
      step.writers.lane_mask |= free.lane;
      step.writers.warp_mask |= free.warp;
      // Sources differ only above this axis bit and in other dimensions: pack those bits of the element index.
      auto packed = [&](In in) {
        std::vector<uint32_t> r;
        for (uint64_t basis : index_bases(operand, in)) {
          uint32_t i = static_cast<uint32_t>(basis), low = i & ((uint32_t{1} << below) - 1);
          uint32_t high = i >> (below + b + 1) << below;
          r.push_back(low | high);
        }
        return r;
      };
      step.offset = {packed(In::kRegister), packed(In::kLane), packed(In::kWarp)};
      step.first_element = plan.scratch_elements;
      plan.scratch_elements += num_elements(operand) >> (b + 1);
    }
    plan.steps.push_back(std::move(step));
  }
  add_elements_in_a_row(plan, own, reverse);
  join_prefixes(plan);
  return plan;
}

std::vector<int64_t> scratch_shares(int64_t scratch_elements, std::span<const int> element_bytes) {
  std::vector<int64_t> r = {0};
  for (int bytes : element_bytes)
    r.push_back((r.back() + scratch_elements * bytes + kShareAlignment - 1) / kShareAlignment * kShareAlignment);
  return r;
}

}  // namespace kiln::layout
