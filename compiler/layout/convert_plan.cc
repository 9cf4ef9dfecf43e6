#include "compiler/layout/convert_plan.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <optional>

#include "compiler/layout/algebra.h"
#include "compiler/layout/shared_forms.h"
#include "support/diag.h"

namespace kiln::layout {

namespace {

constexpr int kBankBytes = 4, kBanks = 32, kRowBytes = kBankBytes * kBanks, kMaxAccessBytes = 16;
/// Rough cycles of the two barriers and the address arithmetic of a trip through shared memory.
constexpr int kSharedTripCost = 30;

/// The bits of `spread` that `mask` selects, packed.
uint32_t extract(uint32_t spread, uint32_t mask) {
  uint32_t r = 0;
  for (int i = 0; mask; mask &= mask - 1, ++i)
    if (spread & (mask & -mask)) r |= uint32_t{1} << i;
  return r;
}

/// Where each input bit of the wanted layout finds its share of the element: register, lane and warp of the holder,
/// linear.
struct Pull {
  struct Holder {
    uint32_t reg, lane, warp;
  };
  std::vector<Holder> reg, lane, warp;  // per bit of the wanted layout's groups
};

/// A linear pull map that stays in the own thread where it can, else in the own warp; nothing when `from` lacks
/// elements.
std::optional<Pull> pull_map(const LinearLayout& from, const LinearLayout& to) {
  auto regs = index_bases(from, In::kRegister), lanes = index_bases(from, In::kLane),
       warps = index_bases(from, In::kWarp);
  std::vector<uint64_t> columns = regs;
  Span in_thread(columns);
  columns.insert(columns.end(), lanes.begin(), lanes.end());
  Span in_warp(columns);
  columns.insert(columns.end(), warps.begin(), warps.end());
  Span everywhere(columns);
  // `own`: what the asking thread's own lane or warp bit holds in `from`; it comes before anything asked of another.
  auto find = [&](uint64_t element, uint64_t own, uint32_t own_lane, uint32_t own_warp) -> std::optional<Pull::Holder> {
    auto combination = in_thread.express(element ^ own);
    if (!combination && own_lane == 0) combination = in_warp.express(element ^ own);
    if (!combination) {
      own_lane = own_warp = 0;
      combination = everywhere.express(element);
    }
    if (!combination) return std::nullopt;
    uint64_t lane_and_warp = *combination >> regs.size(), lane_values = (uint64_t{1} << lanes.size()) - 1;
    return Pull::Holder{static_cast<uint32_t>(*combination & ((uint64_t{1} << regs.size()) - 1)),
                        static_cast<uint32_t>(lane_and_warp & lane_values) ^ own_lane,
                        static_cast<uint32_t>(lane_and_warp >> lanes.size()) ^ own_warp};
  };
  Pull pull;
  auto add = [&](std::vector<Pull::Holder>& list, std::optional<Pull::Holder> holder) {
    if (holder) list.push_back(*holder);
    return holder.has_value();
  };
  auto to_lanes = index_bases(to, In::kLane), to_warps = index_bases(to, In::kWarp);
  bool ok = true;
  for (uint64_t basis : index_bases(to, In::kRegister)) ok = ok && add(pull.reg, find(basis, 0, 0, 0));
  for (size_t i = 0; i < to_lanes.size(); ++i) ok = ok && add(pull.lane, find(to_lanes[i], lanes[i], 1u << i, 0));
  for (size_t i = 0; i < to_warps.size(); ++i) ok = ok && add(pull.warp, find(to_warps[i], warps[i], 0, 1u << i));
  if (!ok) return std::nullopt;
  return pull;
}

bool stays_in_warp(const Pull& pull) {
  auto leaves = [](const Pull::Holder& h) { return h.warp != 0; };
  for (size_t i = 0; i < pull.warp.size(); ++i)
    if (pull.warp[i].warp != 1u << i) return false;
  return std::none_of(pull.reg.begin(), pull.reg.end(), leaves) &&
         std::none_of(pull.lane.begin(), pull.lane.end(), leaves);
}

bool stays_in_thread(const Pull& pull) {
  auto leaves = [](const Pull::Holder& h) { return h.lane != 0; };
  for (size_t i = 0; i < pull.lane.size(); ++i)
    if (pull.lane[i].lane != 1u << i) return false;
  return stays_in_warp(pull) && std::none_of(pull.reg.begin(), pull.reg.end(), leaves) &&
         std::none_of(pull.warp.begin(), pull.warp.end(), leaves);
}

XorMap register_source(const Pull& pull) {
  XorMap source;
  for (const auto& h : pull.reg) source.reg.push_back(h.reg);
  for (const auto& h : pull.lane) source.lane.push_back(h.reg);
  for (const auto& h : pull.warp) source.warp.push_back(h.reg);
  return source;
}

/// A linear map given on a basis of 2^bits, asked for on unit vectors.
class LinearMap {
 public:
  void define(uint64_t x, uint32_t y) {
    if (span_.contains(x)) return;
    span_.insert(x);
    values_.push_back(y);
  }
  uint32_t operator()(uint64_t x) const {
    auto combination = span_.express(x);
    KILN_ASSERT(combination);
    uint32_t y = 0;
    for (size_t i = 0; i < values_.size(); ++i)
      if (*combination >> i & 1) y ^= values_[i];
    return y;
  }

 private:
  Span span_;
  std::vector<uint32_t> values_;
};

/// Fills the shuffle steps; false when no choice of slots lets each lane send one register per slot.
///
/// With r the wanted register and l the lane, the holder is (Srr r + Srl l, Slr r + Sll l). In slot j lane l receives
/// register r = j + phi l, and phi is chosen so that whoever is asked knows from its own lane which register to send.
bool plan_shuffle(const LinearLayout& to, const Pull& pull, ConvertPlan& plan) {
  uint32_t all = static_cast<uint32_t>(to.num_registers()) - 1;
  uint32_t copies = 0;
  for (size_t i = 0; i < pull.reg.size(); ++i)
    if (to.bases(In::kRegister)[i] == Coord{}) copies |= 1u << i;
  uint32_t used = all & ~copies;  // slots are these bits of the register index, packed

  auto s_lane = [&](uint64_t r, uint64_t l) {
    uint32_t x = 0;
    for (size_t i = 0; i < pull.reg.size(); ++i) x ^= r >> i & 1 ? pull.reg[i].lane : 0;
    for (size_t i = 0; i < pull.lane.size(); ++i) x ^= l >> i & 1 ? pull.lane[i].lane : 0;
    return x;
  };
  auto s_reg = [&](uint64_t r, uint64_t l) {
    uint32_t x = 0;
    for (size_t i = 0; i < pull.reg.size(); ++i) x ^= r >> i & 1 ? pull.reg[i].reg : 0;
    for (size_t i = 0; i < pull.lane.size(); ++i) x ^= l >> i & 1 ? pull.lane[i].reg : 0;
    return x;
  };

  size_t lane_bits = pull.lane.size();
  BitMatrix sll;
  for (size_t i = 0; i < lane_bits; ++i) sll.columns.push_back(s_lane(0, uint64_t{1} << i));
  Span reached(sll.columns);
  BitMatrix asked_registers;  // Srl on the kernel of Sll
  std::vector<uint64_t> kernel_lanes = kernel(sll);
  for (uint64_t n : kernel_lanes) asked_registers.columns.push_back(s_reg(0, n));
  LinearMap phi;
  Span distinct;
  for (size_t i = 0; i < kernel_lanes.size(); ++i) {
    if (!distinct.insert(asked_registers.columns[i])) continue;
    // These lanes would ask one holder for different registers: spread them over slots that have different holders.
    uint32_t free_bit = 0;
    for (uint32_t bit = 1; bit <= used && !free_bit; bit <<= 1)
      if ((used & bit) && reached.insert(s_lane(bit, 0))) free_bit = bit;
    if (!free_bit) return false;
    phi.define(kernel_lanes[i], free_bit);
  }
  for (uint64_t k : kernel(asked_registers)) {
    uint64_t n = 0;
    for (size_t i = 0; i < kernel_lanes.size(); ++i) n ^= k >> i & 1 ? kernel_lanes[i] : 0;
    phi.define(n, 0);
  }
  for (size_t i = 0; i < lane_bits; ++i) phi.define(uint64_t{1} << i, 0);

  LinearMap sent;  // Q: what the asked lane's number says about the register to send
  for (size_t i = 0; i < lane_bits; ++i) {
    uint64_t l = uint64_t{1} << i;
    sent.define(s_lane(phi(l), l), s_reg(phi(l), l));
  }
  for (size_t i = 0; i < lane_bits; ++i) sent.define(uint64_t{1} << i, 0);
  for (size_t i = 0; i < lane_bits; ++i) {
    uint64_t l = uint64_t{1} << i;
    if (sent(s_lane(phi(l), l)) != s_reg(phi(l), l)) return false;
  }

  plan.num_slots = 1 << std::popcount(used);
  plan.send = plan.ask = plan.take = {};
  for (uint32_t bit = 1; bit <= used; bit <<= 1) {
    if (!(used & bit)) continue;
    plan.send.reg.push_back(s_reg(bit, 0) ^ sent(s_lane(bit, 0)));
    plan.ask.reg.push_back(s_lane(bit, 0));
  }
  for (size_t i = 0; i < pull.reg.size(); ++i) plan.take.reg.push_back(extract(1u << i & used, used));
  for (size_t i = 0; i < lane_bits; ++i) {
    uint64_t l = uint64_t{1} << i;
    plan.send.lane.push_back(sent(l));
    plan.ask.lane.push_back(s_lane(phi(l), l));
    plan.take.lane.push_back(extract(phi(l), used));
  }
  for (const Pull::Holder& h : pull.warp) {
    plan.send.warp.push_back(h.reg ^ sent(h.lane));
    plan.ask.warp.push_back(h.lane);
    plan.take.warp.push_back(0);
  }
  return true;
}

/// The scratch as a list of element indices, one per offset bit.
using Offsets = std::vector<uint64_t>;

/// One side's access pattern for a choice of offset bits.
SharedAccess side_access(const LinearLayout& layout, const Offsets& offsets, int element_bytes) {
  SharedAccess access;
  Span span(offsets);
  auto offsets_of = [&](In in) {
    std::vector<uint32_t> r;
    for (uint64_t basis : index_bases(layout, in)) r.push_back(static_cast<uint32_t>(*span.express(basis)));
    return r;
  };
  access.offset = {offsets_of(In::kRegister), offsets_of(In::kLane), offsets_of(In::kWarp)};

  FreeBits free = free_variables(layout);
  std::vector<std::pair<uint32_t, int>> registers;  // offset, register; copies left out
  uint32_t num_registers = static_cast<uint32_t>(layout.num_registers());
  for (uint32_t r = 0; r < num_registers; ++r)
    if (!(r & free.reg)) registers.emplace_back(access.offset.of_register(r), static_cast<int>(r));
  std::sort(registers.begin(), registers.end());
  Span held(std::vector<uint64_t>(access.offset.reg.begin(), access.offset.reg.end()));
  // The thread's own share must leave the low bits alone, or neighbours in a register would not be neighbours in
  // memory.
  while (2 * access.vector * element_bytes <= kMaxAccessBytes && held.contains(static_cast<uint64_t>(access.vector)) &&
         !(access.offset.thread_bits() & static_cast<uint32_t>(access.vector)))
    access.vector *= 2;
  for (size_t i = 0; i < registers.size(); i += static_cast<size_t>(access.vector)) {
    std::vector<int>& group = access.groups.emplace_back();
    for (int k = 0; k < access.vector; ++k) group.push_back(registers[i + static_cast<size_t>(k)].second);
  }
  std::vector<uint32_t> lane_bytes;
  for (uint32_t o : access.offset.lane) lane_bytes.push_back(o * static_cast<uint32_t>(element_bytes));
  int bytes = access.vector * element_bytes;
  access.wavefronts = bank_wavefronts(lane_bytes, bytes);
  access.ideal_wavefronts = std::max(1, bytes * 32 / kRowBytes);
  return access;
}

/// The lanes that are served together when each access moves what a thread holds of the vector: fewer, the wider it is.
std::vector<uint64_t> lanes_served_together(const LinearLayout& layout, const std::vector<uint64_t>& vector_bits,
                                            int element_bytes) {
  Span registers(index_bases(layout, In::kRegister));
  int bytes = element_bytes;
  for (uint64_t x : vector_bits) bytes *= registers.contains(x) ? 2 : 1;
  auto lanes = index_bases(layout, In::kLane);
  int apart = bytes > kBankBytes ? log2_exact(bytes / kBankBytes) : 0;
  lanes.resize(lanes.size() - std::min(lanes.size(), static_cast<size_t>(apart)));
  return lanes;
}

/// The elements that a row of 16 bytes of a matrix of ldmatrix has, and the three bits of the number of its row
/// (plan_matrix_access), when the tile is read by it.
struct MatrixRows {
  std::vector<uint64_t> along, rows;
};

/// As rows along the registers' elements and, of 16-bit elements, across them.
std::vector<MatrixRows> matrix_rows(const LinearLayout& tile, int element_bytes) {
  const auto registers = index_bases(tile, In::kRegister), lanes = index_bases(tile, In::kLane);
  const auto per_word = static_cast<size_t>(log2_exact(std::max(1, kBankBytes / element_bytes)));
  std::vector<MatrixRows> r;
  if (element_bytes > kBankBytes || lanes.size() != 5 || registers.size() < per_word) return r;
  MatrixRows& straight = r.emplace_back();
  straight.along.assign(registers.begin(), registers.begin() + static_cast<std::ptrdiff_t>(per_word));
  straight.along.insert(straight.along.end(), {lanes[0], lanes[1]});
  straight.rows = {lanes[2], lanes[3], lanes[4]};
  if (element_bytes == 2) r.push_back({{lanes[2], lanes[3], lanes[4]}, {registers[0], lanes[0], lanes[1]}});
  std::erase_if(r, [](const MatrixRows& m) {
    Span apart(m.along);
    return apart.rank() != static_cast<int>(m.along.size()) ||
           !std::ranges::all_of(m.rows, [&](uint64_t x) { return apart.insert(x); });
  });
  return r;
}

/// Offset bits for a vector space V, so that the lanes of both sides that are served together fall into different banks
/// where that is possible: V lowest, then bank bits, then segment bits that are independent of either side's lanes
/// modulo V. `a`, `b`: those lanes.
Offsets swizzled_offsets(const LinearLayout& from, const std::vector<uint64_t>& a, const std::vector<uint64_t>& b,
                         const std::vector<uint64_t>& vector_bits, int element_bytes) {
  int bits = index_bits(from), v = static_cast<int>(vector_bits.size());
  int vector_bytes = element_bytes << v;
  int bank_bits = std::min(bits - v, log2_exact(kRowBytes) - log2_exact(vector_bytes));
  Span u(vector_bits), w(vector_bits);
  for (uint64_t x : a) u.insert(x);
  for (uint64_t x : b) w.insert(x);

  // Segment bits: first what neither side's lanes reach, then sums of one lane of each that the other side lacks.
  int segments = bits - v - bank_bits;
  std::vector<uint64_t> segment;
  Span taken_u = u, taken_w = w, both(vector_bits);
  for (uint64_t x : a) both.insert(x);
  for (uint64_t x : b) both.insert(x);
  auto try_segment = [&](uint64_t x) {
    if (static_cast<int>(segment.size()) == segments || taken_u.contains(x) || taken_w.contains(x)) return;
    taken_u.insert(x);
    taken_w.insert(x);
    segment.push_back(x);
  };
  for (In in : {In::kWarp, In::kRegister, In::kLane})
    for (uint64_t x : index_bases(from, in))
      if (!both.contains(x)) {
        both.insert(x);
        try_segment(x);
      }
  std::vector<uint64_t> only_a, only_b;
  for (uint64_t x : a)
    if (!w.contains(x)) only_a.push_back(x);
  for (uint64_t x : b)
    if (!u.contains(x)) only_b.push_back(x);
  for (size_t i = 0; i < only_a.size() && i < only_b.size(); ++i) try_segment(only_a[i] ^ only_b[i]);
  for (uint64_t x : only_a)
    for (uint64_t y : only_b) try_segment(x ^ y);

  // Banks: a complement of vector and segment bits, from the lanes first so that addresses of a warp run on.
  Offsets offsets = vector_bits;
  Span used(vector_bits);
  for (uint64_t x : segment) used.insert(x);
  std::vector<uint64_t> rest;
  auto take = [&](uint64_t x) {
    if (used.insert(x)) rest.push_back(x);
  };
  for (uint64_t x : a) take(x);
  for (uint64_t x : b) take(x);
  for (In in : {In::kLane, In::kRegister, In::kWarp})
    for (uint64_t x : index_bases(from, in)) take(x);
  // What of it does not fit the bank bits goes above the segments.
  size_t banks = std::min(rest.size(), static_cast<size_t>(bank_bits));
  offsets.insert(offsets.end(), rest.begin(), rest.begin() + static_cast<std::ptrdiff_t>(banks));
  offsets.insert(offsets.end(), segment.begin(), segment.end());
  offsets.insert(offsets.end(), rest.begin() + static_cast<std::ptrdiff_t>(banks), rest.end());
  KILN_ASSERT(static_cast<int>(offsets.size()) == bits);
  return offsets;
}

LinearLayout scratch_layout(const LinearLayout& tile, const Offsets& offsets) {
  LinearLayout r(tile.shape());
  for (uint64_t index : offsets) r.push(In::kOffset, coord_of(tile.shape(), index));
  return r;
}

/// Bank cycles of reading a tile by ldmatrix: a matrix is 8 rows of 16 bytes.
std::optional<int> matrix_cost(const LinearLayout& tile, const LinearLayout& scratch, int element_bytes) {
  const auto access = plan_matrix_access(tile, scratch, element_bytes);
  if (!access) return std::nullopt;
  const std::vector<uint32_t>& lanes = access->address.lane;
  const int one = bank_wavefronts({lanes[0], lanes[1], lanes[2], 0, 0}, kMaxAccessBytes) / 4;
  return std::max(1, one) * access->matrices * static_cast<int>(access->groups.size());
}

int side_cost(const SharedAccess& access) { return access.wavefronts * static_cast<int>(access.groups.size()); }

/// A processor does two instructions of arithmetic in each cycle in which it does one of shared memory.
int arithmetic_cycles(int instructions) { return (instructions + 1) / 2; }

/// Cycles of taking small elements out of words, or putting them together, unless accesses move words as registers hold
/// them: 32 bits of neighbouring registers.
int packing_cost(const SharedAccess& access, int element_bytes) {
  const auto per_word = static_cast<size_t>(kBankBytes / std::min(kBankBytes, element_bytes));
  if (per_word == 1) return 0;
  const auto is_word = [&](const std::vector<int>& group) {
    for (size_t i = 0; i < group.size(); ++i) {
      const size_t first = i / per_word * per_word;
      if (group[first] % static_cast<int>(per_word) || group[i] != group[first] + static_cast<int>(i - first))
        return false;
    }
    return group.size() % per_word == 0;
  };
  if (std::ranges::all_of(access.groups, is_word)) return 0;
  return arithmetic_cycles(static_cast<int>(access.groups.size() * access.groups[0].size() / per_word));
}

/// Cycles of the shuffles, and of choosing by lane which register is sent and which one is taken.
int shuffle_cost(const ConvertPlan& plan, int element_bytes) {
  const auto choices = [](const XorMap& map) { return (1 << std::popcount(map.thread_bits())) - 1; };
  const int words = plan.num_slots * std::max(1, element_bytes / kBankBytes);
  const int packing = element_bytes < kBankBytes ? words : 0;
  return words + arithmetic_cycles(words * (choices(plan.send) + choices(plan.take)) + packing);
}

/// Gives the cycles that it takes.
int plan_shared(const LinearLayout& from, const LinearLayout& to, int element_bytes, ConvertPlan& plan) {
  // Vectors from what both sides hold in registers; or, when that is little, from what one side holds besides.
  auto from_registers = index_bases(from, In::kRegister), to_registers = index_bases(to, In::kRegister);
  size_t most = static_cast<size_t>(log2_exact(kMaxAccessBytes / element_bytes));
  std::vector<uint64_t> common = intersect(from_registers, to_registers);
  // In the order of the registers that are read: what reads them, as mma.sync or a wide store does, wants neighbours.
  // Of more bits than fit, of halves the first registers, which are a fragment; else neighbouring elements.
  const auto by_register = [&](uint64_t x) {
    return std::pair(std::ranges::find(to_registers, x) - to_registers.begin(), x);
  };
  if (element_bytes < kBankBytes)
    std::ranges::sort(common, {}, by_register);
  else
    std::ranges::sort(common);
  if (common.size() > most) common.resize(most);
  std::ranges::sort(common, {}, by_register);
  struct Candidate {
    std::vector<uint64_t> vector_bits;
    std::vector<uint64_t> rows;  // of matrices, when these shall read
  };
  std::vector<Candidate> candidates = {{common, {}}};
  for (const auto* side : {&from_registers, &to_registers}) {
    std::vector<uint64_t> more = common;
    Span span(more);
    for (uint64_t x : *side)
      if (more.size() < most && span.insert(x)) more.push_back(x);
    if (more.size() > common.size()) candidates.push_back({more, {}});
  }
  for (const MatrixRows& m : matrix_rows(to, element_bytes)) candidates.push_back({m.along, m.rows});
  std::pair<int, size_t> best;  // cycles, then instructions
  for (const auto& [vector_bits, rows] : candidates) {
    const auto written = lanes_served_together(from, vector_bits, element_bytes);
    const Offsets offsets =
        swizzled_offsets(from, written, rows.empty() ? lanes_served_together(to, vector_bits, element_bytes) : rows,
                         vector_bits, element_bytes);
    SharedAccess write = side_access(from, offsets, element_bytes), read = side_access(to, offsets, element_bytes);
    LinearLayout scratch = scratch_layout(from, offsets);
    int reading = side_cost(read) + packing_cost(read, element_bytes);
    size_t instructions = read.groups.size();
    if (const auto by_matrices = matrix_cost(to, scratch, element_bytes); by_matrices && *by_matrices <= reading) {
      reading = *by_matrices;
      instructions = std::max<size_t>(1, instructions / 8);
    }
    std::pair cost(side_cost(write) + packing_cost(write, element_bytes) + reading, write.groups.size() + instructions);
    if (best.first && cost >= best) continue;
    best = cost;
    plan.scratch = std::move(scratch);
    plan.write = std::move(write);
    plan.read = std::move(read);
  }
  FreeBits from_free = free_variables(from), to_free = free_variables(to);
  plan.write.lane_mask = from_free.lane;
  plan.write.warp_mask = from_free.warp;
  plan.scratch_bytes = num_elements(from) * element_bytes;
  plan.copy_of.resize(static_cast<size_t>(to.num_registers()));
  for (uint32_t r = 0; r < plan.copy_of.size(); ++r) {
    uint32_t original = r & ~to_free.reg;
    // A free bit may repeat a sum of lower bits rather than nothing.
    for (uint32_t rest = r & to_free.reg; rest; rest &= rest - 1) {
      uint32_t target = plan.read.offset.of_register(rest & -rest);
      for (uint32_t k = 0; k < plan.copy_of.size(); ++k)
        if (!(k & to_free.reg) && plan.read.offset.of_register(k) == target) {
          original ^= k;
          break;
        }
    }
    plan.copy_of[r] = static_cast<int>(original);
  }
  return best.first;
}

}  // namespace

std::string_view name(ConvertKind kind) {
  switch (kind) {
    case ConvertKind::kRegisters:
      return "registers";
    case ConvertKind::kShuffle:
      return "shuffle";
    case ConvertKind::kShared:
      return "shared";
  }
  KILN_UNREACHABLE();
}

bool ConvertPlan::is_identity() const {
  if (kind != ConvertKind::kRegisters || !source.is_uniform() || from_registers != to_registers) return false;
  for (uint32_t r = 0; r < static_cast<uint32_t>(to_registers); ++r)
    if (source.of_register(r) != r) return false;
  return true;
}

int bank_wavefronts(const std::vector<uint32_t>& lane_offsets, int access_bytes) {
  int unit = std::max(access_bytes, kBankBytes);
  int groups_log2 = log2_exact(unit / kBankBytes);  // 2^this groups of lanes, one after another
  size_t lanes = lane_offsets.size() > static_cast<size_t>(groups_log2)
                     ? lane_offsets.size() - static_cast<size_t>(groups_log2)
                     : 0;
  Span units, banks;
  for (size_t i = 0; i < lanes; ++i) {
    uint32_t at = lane_offsets[i] / static_cast<uint32_t>(unit);
    units.insert(at);
    banks.insert(at & static_cast<uint32_t>(kRowBytes / unit - 1));
  }
  return 1 << (groups_log2 + units.rank() - banks.rank());
}

ConvertPlan plan_convert(const LinearLayout& from, const LinearLayout& to, int element_bytes) {
  KILN_ASSERT(std::equal(from.shape().begin(), from.shape().end(), to.shape().begin(), to.shape().end()));
  KILN_ASSERT(from.bits(In::kLane) == to.bits(In::kLane) && from.bits(In::kWarp) == to.bits(In::kWarp));
  ConvertPlan plan;
  plan.from_registers = from.num_registers();
  plan.to_registers = to.num_registers();
  auto found = pull_map(from, to);
  KILN_ASSERT(found, "the operand's layout does not hold every element");
  const Pull& pull = *found;
  if (stays_in_thread(pull)) {
    plan.kind = ConvertKind::kRegisters;
    plan.source = register_source(pull);
    return plan;
  }
  const int best = plan_shared(from, to, element_bytes, plan);
  plan.kind = ConvertKind::kShared;
  if (!stays_in_warp(pull) || !plan_shuffle(to, pull, plan)) return plan;
  if (shuffle_cost(plan, element_bytes) > best + kSharedTripCost) return plan;
  plan.kind = ConvertKind::kShuffle;
  plan.write = plan.read = {};
  plan.scratch.reset();
  plan.copy_of.clear();
  plan.scratch_bytes = 0;
  return plan;
}

SharedAccess plan_shared_access(const LinearLayout& tile, const LinearLayout& shared, int element_bytes) {
  SharedAccess access = side_access(tile, index_bases(shared, In::kOffset), element_bytes);
  const FreeBits free = free_variables(tile);
  access.lane_mask = free.lane;
  access.warp_mask = free.warp;
  return access;
}

std::vector<int> match_registers(const LinearLayout& held, const LinearLayout& wanted) {
  auto pull = pull_map(held, wanted);
  if (!pull || !stays_in_thread(*pull)) return {};
  XorMap source = register_source(*pull);
  if (!source.is_uniform()) return {};
  std::vector<int> r(static_cast<size_t>(wanted.num_registers()));
  for (uint32_t i = 0; i < r.size(); ++i) r[i] = static_cast<int>(source.of_register(i));
  return r;
}

}  // namespace kiln::layout
