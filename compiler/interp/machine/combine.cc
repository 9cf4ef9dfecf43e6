#include "compiler/interp/machine/machine.h"

#include <numeric>

#include "compiler/interp/eval.h"

namespace kiln::interp {

using ir::AttrName;
using ir::Op;
using ir::OpKind;
using ir::Value;

const layout::ReducePlan& Machine::reduce_plan(const Op& op) const {
  return std::get<layout::ReducePlan>(code_.plans.at(&op));
}
const layout::ScanPlan& Machine::scan_plan(const Op& op) const {
  return std::get<layout::ScanPlan>(code_.plans.at(&op));
}

void Machine::combine_block(Warp& warp, const ir::Block& b, size_t n) {
  for (const Op* op : b) {
    if (op->kind == OpKind::kConstant) {
      warp.of(op->result()).assign(n, constant_bits(*op));
    } else if (op->kind == OpKind::kIf) {
      // Both branches run for all elements and the condition selects, as for a SIMD machine. Combine regions are pure,
      // so this only costs time.
      combine_block(warp, *op->region(0), n);
      combine_block(warp, *op->region(1), n);
      const Elements condition = warp.of(op->operand(0));
      for (size_t r = 0; r < op->results.size(); ++r) {
        const Elements yes = warp.of(op->region(0)->terminator()->operands[r]);
        const Elements no = warp.of(op->region(1)->terminator()->operands[r]);
        Elements& out = warp.of(op->results[r]);
        out.resize(n);
        for (size_t i = 0; i < n; ++i) out[i] = condition[i] ? yes[i] : no[i];
      }
    } else if (!ir::is_terminator(op)) {
      elementwise(warp, *op, n);
    }
  }
}

Tuple Machine::combine(Warp& warp, const Op& op, const Tuple& a, const Tuple& b) {
  const ir::Block& region = *op.region();
  for (size_t i = 0; i < a.size(); ++i) {
    warp.of(region.args[i]) = a[i];
    warp.of(region.args[a.size() + i]) = b[i];
  }
  combine_block(warp, region, a[0].size());
  Tuple out;
  for (const Value* v : region.terminator()->operands) out.push_back(warp.of(v));
  return out;
}

// The butterfly step of a warp reduction: each lane takes the value of the lane whose number differs in `mask`.
Tuple Machine::from_lane(const Tuple& t, uint32_t mask) {
  Tuple r = t;
  for (size_t k = 0; k < t.size(); ++k)
    for (size_t i = 0; i < t[k].size(); ++i) r[k][i] = t[k][i ^ mask];
  return r;
}

// Of parts whose numbers differ in step.part each lane keeps one, combined with its partner's.
Tuple Machine::half(Warp& warp, const Op& op, const Tuple& parts, const layout::ReducePlan::Halving& step) {
  Tuple mine(parts.size()), theirs(parts.size());
  const size_t count = parts[0].size() / kLanes;
  for (size_t t = 0; t < parts.size(); ++t)
    for (size_t i = 0; i < count; ++i) {
      if (i & step.part) continue;
      for (size_t l = 0; l < kLanes; ++l) {
        const size_t part = l & step.lane_mask ? i | step.part : i;
        mine[t].push_back(parts[t][part * kLanes + l]);
        theirs[t].push_back(parts[t][part * kLanes + (l ^ step.lane_mask)]);
      }
    }
  return combine(warp, op, mine, theirs);
}

void Machine::reduce_own(Warp& warp, const Op& op) {
  const layout::ReducePlan& plan = reduce_plan(op);
  Tuple partial(op.operands.size());
  const Op* product = ir::contracted_product(op);
  for (size_t i = 0; i < plan.registers.size(); ++i) {
    auto begin_of = [&](size_t k) { return static_cast<size_t>(plan.registers[i][k]) * kLanes; };
    auto registers = [&](size_t k) {
      Tuple r;
      for (const Value* v : op.operands) {
        auto begin = warp.of(v).begin() + static_cast<std::ptrdiff_t>(begin_of(k));
        r.emplace_back(begin, begin + kLanes);
      }
      return r;
    };
    Tuple sum = registers(0);
    for (size_t k = 1; k < plan.registers[i].size(); ++k)
      if (product)
        eval_fma(*product, &warp.of(product->operand(0))[begin_of(k)], &warp.of(product->operand(1))[begin_of(k)],
                 sum[0].data(), kLanes, sum[0].data());
      else
        sum = combine(warp, op, sum, registers(k));
    for (size_t t = 0; t < sum.size(); ++t) partial[t].insert(partial[t].end(), sum[t].begin(), sum[t].end());
  }
  for (const layout::ReducePlan::Halving& step : plan.halvings) partial = half(warp, op, partial, step);
  for (uint32_t mask : plan.lane_masks) partial = combine(warp, op, partial, from_lane(partial, mask));
  warp.partial = std::move(partial);
  if (!plan.crosses_warps) give_partial(warp, op);
}

void Machine::give_partial(Warp& warp, const Op& op) {
  for (size_t t = 0; t < op.results.size(); ++t) {
    warp.of(op.results[t]) = warp.partial[t];
    // A scalar is kept once per warp: all lanes have the same value.
    if (op.results[t]->type.is_scalar()) warp.of(op.results[t]).resize(1);
  }
}

void Machine::take_prefix(Warp& warp, const Op& op, const layout::ScanStep& s) {
  const uint32_t w = static_cast<uint32_t>(warp.number);
  const Tuple old = warp.partial;
  Tuple prefix = warp.prefix;
  for (Elements& elements : prefix)
    for (size_t i = 0; i < elements.size(); ++i)
      elements[i] = elements[((i / kLanes & ~size_t{s.sources.reg_mask}) | s.sources.reg_value) * kLanes + i % kLanes];
  warp.partial = combine(warp, op, prefix, old);
  for (size_t t = 0; t < old.size(); ++t)
    for (size_t i = 0; i < old[t].size(); ++i) {
      const uint32_t r = static_cast<uint32_t>(i / kLanes), l = static_cast<uint32_t>(i % kLanes);
      if ((r & s.sources.reg_mask) == s.sources.reg_value || s.without.has(r, l, w)) warp.partial[t][i] = old[t][i];
    }
  warp.prefix.clear();
  give_partial(warp, op);
}

void Machine::join_prefix(Warp& warp, const Op& op, const layout::ScanStep& s, const Tuple& source) {
  if (warp.prefix.empty()) warp.prefix = source;  // where nobody has one
  const Tuple both = combine(warp, op, source, warp.prefix);
  for (size_t t = 0; t < source.size(); ++t)
    for (size_t i = 0; i < source[t].size(); ++i) {
      const uint32_t r = static_cast<uint32_t>(i / kLanes), l = static_cast<uint32_t>(i % kLanes),
                     w = static_cast<uint32_t>(warp.number);
      if (s.active.has(r, l, w)) warp.prefix[t][i] = s.without.has(r, l, w) ? source[t][i] : both[t][i];
    }
}

void Machine::scan_own(Warp& warp, const Op& op, const layout::ScanStep& s) {
  if (s.reach == layout::ScanReach::kPrefix) return take_prefix(warp, op, s);
  Tuple source = warp.partial;
  for (size_t t = 0; t < source.size(); ++t)
    for (size_t i = 0; i < source[t].size(); ++i) {
      size_t r = (i / kLanes & ~size_t{s.sources.reg_mask}) | s.sources.reg_value;
      size_t l = (i % kLanes & ~size_t{s.sources.lane_mask}) | s.sources.lane_value;
      source[t][i] = warp.partial[t][r * kLanes + l];
    }
  take_scanned(warp, op, s, source);
}

void Machine::take_scanned(Warp& warp, const Op& op, const layout::ScanStep& s, const Tuple& source) {
  if (s.joins_prefix) join_prefix(warp, op, s, source);
  Tuple sum = combine(warp, op, source, warp.partial);
  for (size_t t = 0; t < sum.size(); ++t)
    for (size_t i = 0; i < sum[t].size(); ++i)
      if (s.active.has(static_cast<uint32_t>(i / kLanes), static_cast<uint32_t>(i % kLanes),
                       static_cast<uint32_t>(warp.number)))
        warp.partial[t][i] = sum[t][i];
  give_partial(warp, op);
}

std::vector<int64_t> Machine::shares(const Op& op, int64_t elements) const {
  std::vector<int> bytes;
  for (const Value* v : op.operands) bytes.push_back(bytes_of(v->type));
  std::vector<int64_t> r = layout::scratch_shares(elements, bytes);
  for (int64_t& at : r) at += op.int_attr(AttrName::kSharedOffset);
  return r;
}

Status Machine::put(SharedMemory::Access& access, size_t lane, int64_t at, int bytes, uint64_t bits) {
  std::string wrong = access.write(static_cast<int>(lane), at, bytes, bits);
  if (!wrong.empty()) return fail(access.who().op, ErrorKind::kInternal, "{}", wrong);
  return {};
}

Status Machine::get(SharedMemory::Access& access, size_t lane, int64_t at, int bytes, uint64_t& bits) {
  std::string wrong = access.read(static_cast<int>(lane), at, bytes, bits, true);
  if (!wrong.empty()) return fail(access.who().op, ErrorKind::kInternal, "{}", wrong);
  return {};
}

Status Machine::write_shared(Warp& warp, const Op& op, int part) {
  const uint32_t w = static_cast<uint32_t>(warp.number);
  if (ir::is_gather(op.kind)) return write_whole(warp, op);
  if (op.kind == OpKind::kScatter) return write_scattered(warp, op);
  if (op.kind == OpKind::kBucketPlace) return write_counts(warp, op);
  SharedMemory::Access access(shared_[warp.block], threads(warp, op));
  if (op.kind == OpKind::kConvertLayout) {
    const auto& plan = std::get<layout::ConvertPlan>(code_.plans.at(&op)).write;
    if (w & plan.warp_mask) return {};
    const Elements& in = warp.of(op.operand(0));
    const int bytes = bytes_of(op.operand(0)->type);
    for (uint32_t l = 0; l < kLanes; ++l) {
      if (l & plan.lane_mask) continue;
      for (const auto& group : plan.groups)
        for (size_t k = 0; k < group.size(); ++k) {
          int64_t at = plan.offset.apply(static_cast<uint32_t>(group[0]), l, w) + static_cast<int64_t>(k);
          KILN_CHECK_OK(put(access, l, op.int_attr(AttrName::kSharedOffset) + at * bytes, bytes,
                            in[static_cast<size_t>(group[k]) * kLanes + l]));
        }
    }
    return {};
  }
  const bool reduce = op.kind == OpKind::kReduce;
  std::vector<int64_t> base = shares(op, reduce ? reduce_plan(op).scratch_elements : scan_plan(op).scratch_elements);
  for (size_t t = 0; t < op.operands.size(); ++t) {
    const int bytes = bytes_of(op.operands[t]->type);
    for (size_t i = 0; i < warp.partial[t].size(); ++i) {
      const uint32_t r = static_cast<uint32_t>(i / kLanes), l = static_cast<uint32_t>(i % kLanes);
      int64_t at = 0;
      if (reduce) {
        const layout::ReducePlan& plan = reduce_plan(op);
        if ((l & plan.write_lane_mask) || (w & plan.write_warp_mask)) continue;
        at = plan.write.apply(r, l, w);
      } else {
        const layout::ScanStep& s = scan_plan(op).steps[static_cast<size_t>(part)];
        if (!s.writers.has(r, l, w)) continue;
        at = s.first_element + s.offset.apply(r, l, w);
      }
      KILN_CHECK_OK(put(access, l, base[t] + at * bytes, bytes, warp.partial[t][i]));
    }
  }
  return {};
}

Status Machine::read_shared(Warp& warp, const Op& op, int part) {
  if (op.kind == OpKind::kConvertLayout) return read_converted(warp, op);
  if (op.kind == OpKind::kReduce) return read_reduced(warp, op);
  if (ir::is_gather(op.kind)) return read_gathered(warp, op);
  if (op.kind == OpKind::kScatter) return read_whole(warp, op);
  if (op.kind == OpKind::kBucketPlace) return read_places(warp, op);
  if (op.kind != OpKind::kScan) {  // an atomic, which one thread per element performed
    Elements& out = warp.of(op.result());
    for (size_t i = 0; i < out.size(); ++i)
      out[i] = atomics_[{&op, warp.block}][static_cast<size_t>(element(warp, op.result()->type, i))];
    return {};
  }
  const layout::ScanStep& s = scan_plan(op).steps[static_cast<size_t>(part)];
  std::vector<int64_t> base = shares(op, scan_plan(op).scratch_elements);
  const uint32_t w = static_cast<uint32_t>(warp.number);
  SharedMemory::Access access(shared_[warp.block], threads(warp, op));
  Tuple source = warp.partial;
  for (size_t t = 0; t < source.size(); ++t) {
    const int bytes = bytes_of(op.operands[t]->type);
    for (size_t i = 0; i < source[t].size(); ++i) {
      const uint32_t r = static_cast<uint32_t>(i / kLanes), l = static_cast<uint32_t>(i % kLanes);
      if (!s.active.has(r, l, w)) continue;
      KILN_CHECK_OK(get(access, l, base[t] + (s.first_element + s.offset.apply(r, l, w)) * bytes, bytes, source[t][i]));
    }
  }
  take_scanned(warp, op, s, source);
  return {};
}

Status Machine::write_whole(Warp& warp, const Op& op) {
  SharedMemory::Access access(shared_[warp.block], threads(warp, op));
  const ir::Type& type = op.operand(0)->type;
  const Elements& in = warp.of(op.operand(0));
  const layout::FreeBits copies = free_bits(type);
  const int bytes = bytes_of(type);
  for (size_t i = 0; i < in.size(); ++i)
    if (acts(warp, type, copies, i))
      KILN_CHECK_OK(
          put(access, i % kLanes, op.int_attr(AttrName::kSharedOffset) + element(warp, type, i) * bytes, bytes, in[i]));
  return {};
}

Status Machine::read_gathered(Warp& warp, const Op& op) {
  SharedMemory::Access access(shared_[warp.block], threads(warp, op));
  const int bytes = bytes_of(op.operand(0)->type);
  Elements out(share_of(op.result()->type));
  std::vector<uint64_t> others(op.operands.size() - 1);
  for (size_t i = 0; i < out.size(); ++i) {
    for (size_t k = 0; k < others.size(); ++k) {
      const Value* operand = op.operands[k + 1];
      others[k] = warp.of(operand)[operand->type.is_scalar() ? 0 : i];
    }
    const int64_t from = source_element(op, element(warp, op.result()->type, i), others);
    KILN_CHECK_OK(get(access, i % kLanes, op.int_attr(AttrName::kSharedOffset) + from * bytes, bytes, out[i]));
  }
  warp.of(op.result()) = std::move(out);
  return {};
}

Status Machine::write_scattered(Warp& warp, const Op& op) {
  SharedMemory::Access access(shared_[warp.block], threads(warp, op));
  const ir::Type& type = op.operand(0)->type;
  const Elements &in = warp.of(op.operand(0)), &index = warp.of(op.operand(1));
  const layout::FreeBits copies = free_bits(type);
  const int bytes = bytes_of(type);
  for (size_t i = 0; i < in.size(); ++i) {
    if (!acts(warp, type, copies, i)) continue;
    const int64_t to = target_element(op, element(warp, type, i), index[i]);
    if (to >= 0)
      KILN_CHECK_OK(put(access, i % kLanes, op.int_attr(AttrName::kSharedOffset) + to * bytes, bytes, in[i]));
  }
  return {};
}

Status Machine::read_whole(Warp& warp, const Op& op) {
  SharedMemory::Access access(shared_[warp.block], threads(warp, op));
  const ir::Type& type = op.result()->type;
  const int bytes = bytes_of(type);
  Elements out(share_of(type));
  for (size_t i = 0; i < out.size(); ++i)
    KILN_CHECK_OK(
        get(access, i % kLanes, op.int_attr(AttrName::kSharedOffset) + element(warp, type, i) * bytes, bytes, out[i]));
  warp.of(op.result()) = std::move(out);
  return {};
}

// Each warp counts its stretch in a row of its own. A lane takes every 32nd counter, as when the lowering clears them.
Status Machine::write_counts(Warp& warp, const Op& op) {
  const Elements& digits = warp.of(op.operand(0));
  const auto bins = static_cast<size_t>(op.int_attr(AttrName::kBins));
  const size_t lanes =
      std::min(digits.size(), static_cast<size_t>(op.operand(0)->type.shape[0]));  // the others: copies
  std::vector<uint64_t> counts(bins);
  for (size_t i = 0; i < digits.size(); ++i)
    if (i % kLanes < lanes && digits[i] < bins) ++counts[digits[i]];
  SharedMemory::Access access(shared_[warp.block], threads(warp, op));
  for (size_t bin = 0; bin < bins; ++bin)
    KILN_CHECK_OK(put(
        access, bin % kLanes,
        op.int_attr(AttrName::kSharedOffset) + static_cast<int64_t>(static_cast<size_t>(warp.number) * bins + bin) * 4,
        4, counts[bin]));
  return {};
}

// The lowering sums the rows in place, behind more barriers; here all rows are read.
Status Machine::read_places(Warp& warp, const Op& op) {
  SharedMemory::Access access(shared_[warp.block], threads(warp, op));
  const ir::Type &type = op.operand(0)->type, &counts_type = op.result(1)->type;
  const auto bins = static_cast<size_t>(op.int_attr(AttrName::kBins));
  // Warps beyond the vector's stretches are copies of others, and so are lanes.
  const auto stretches = static_cast<size_t>(
      std::clamp<int64_t>(type.shape[0] / static_cast<int64_t>(kLanes), 1, type.layout->size(layout::In::kWarp)));
  const size_t lanes = std::min(kLanes, static_cast<size_t>(type.shape[0]));
  const size_t own = static_cast<size_t>(warp.number) % stretches;
  Elements counts(bins), begins(bins), next(bins);  // of all, and where this warp's elements go
  for (size_t row = 0; row < stretches; ++row)
    for (size_t bin = 0; bin < bins; ++bin) {
      uint64_t count = 0;
      KILN_CHECK_OK(get(access, bin % kLanes,
                        op.int_attr(AttrName::kSharedOffset) + static_cast<int64_t>(row * bins + bin) * 4, 4, count));
      counts[bin] += count;
      if (row < own) next[bin] += count;
    }
  std::exclusive_scan(counts.begin(), counts.end(), begins.begin(), uint64_t{0});
  for (size_t bin = 0; bin < bins; ++bin) next[bin] += begins[bin];
  const Elements& digits = warp.of(op.operand(0));
  Elements places(digits.size());
  for (size_t i = 0; i < digits.size(); ++i) {
    const size_t lane = i % kLanes;
    places[i] = lane >= lanes       ? places[i - lane + lane % lanes]
                : digits[i] >= bins ? element_mask(32)
                                    : next[digits[i]]++;
  }
  auto shared_out = [&](const Elements& of_bins) {
    Elements out(share_of(counts_type));
    for (size_t i = 0; i < out.size(); ++i) out[i] = of_bins[static_cast<size_t>(element(warp, counts_type, i))];
    return out;
  };
  warp.of(op.result(1)) = shared_out(counts);
  warp.of(op.result(2)) = shared_out(begins);
  warp.of(op.result(0)) = std::move(places);
  return {};
}

Status Machine::read_converted(Warp& warp, const Op& op) {
  const auto& plan = std::get<layout::ConvertPlan>(code_.plans.at(&op));
  const int bytes = bytes_of(op.operand(0)->type);
  SharedMemory::Access access(shared_[warp.block], threads(warp, op));
  Elements out(share_of(op.result()->type));
  for (uint32_t l = 0; l < kLanes; ++l)
    for (const auto& group : plan.read.groups)
      for (size_t k = 0; k < group.size(); ++k) {
        int64_t at = plan.read.offset.apply(static_cast<uint32_t>(group[0]), l, static_cast<uint32_t>(warp.number)) +
                     static_cast<int64_t>(k);
        KILN_CHECK_OK(get(access, l, op.int_attr(AttrName::kSharedOffset) + at * bytes, bytes,
                          out[static_cast<size_t>(group[k]) * kLanes + l]));
      }
  for (size_t r = 0; r < plan.copy_of.size(); ++r)
    for (size_t l = 0; l < kLanes; ++l) out[r * kLanes + l] = out[static_cast<size_t>(plan.copy_of[r]) * kLanes + l];
  warp.of(op.result()) = std::move(out);
  return {};
}

Status Machine::read_reduced(Warp& warp, const Op& op) {
  const layout::ReducePlan& plan = reduce_plan(op);
  std::vector<int64_t> base = shares(op, plan.scratch_elements);
  SharedMemory::Access access(shared_[warp.block], threads(warp, op));
  Tuple sum;
  for (size_t k = 0; k < plan.serial.size(); ++k) {
    Tuple next(warp.partial.size(), Elements(plan.registers.size() * kLanes));
    for (size_t t = 0; t < next.size(); ++t) {
      const int bytes = bytes_of(op.operands[t]->type);
      for (size_t i = 0; i < next[t].size(); ++i) {
        const uint32_t l = static_cast<uint32_t>(i % kLanes);
        int64_t at =
            plan.read.apply(static_cast<uint32_t>(i / kLanes), l, static_cast<uint32_t>(warp.number)) ^ plan.serial[k];
        KILN_CHECK_OK(get(access, l, base[t] + at * bytes, bytes, next[t][i]));
      }
    }
    sum = k == 0 ? std::move(next) : combine(warp, op, sum, next);
  }
  for (uint32_t mask : plan.shared_lane_masks) sum = combine(warp, op, sum, from_lane(sum, mask));
  warp.partial = std::move(sum);
  give_partial(warp, op);
  return {};
}

}  // namespace kiln::interp
