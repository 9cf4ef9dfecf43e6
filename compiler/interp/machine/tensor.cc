#include <algorithm>
#include <ranges>
#include <set>

#include "compiler/interp/dot.h"
#include "compiler/interp/machine/machine.h"
#include "support/float_bits.h"

namespace kiln::interp {

using ir::AttrName;
using ir::Op;
using ir::OpKind;
using ir::Value;

namespace {

constexpr int kGroupWarps = 4;
constexpr int64_t kGroupRows = 64;
/// How wgmma reads f32 operands.
constexpr auto kPrecision = ir::Precision::kTf32;

/// Numbers from a set in ascending order, and back.
struct Indices {
  std::vector<int64_t> all;
  explicit Indices(const std::set<int64_t>& set) : all(set.begin(), set.end()) {}
  size_t of(int64_t x) const { return static_cast<size_t>(std::lower_bound(all.begin(), all.end(), x) - all.begin()); }
  bool has(int64_t x) const { return std::binary_search(all.begin(), all.end(), x); }
};

}  // namespace

Moved Machine::take(Warp& warp, const Value* from) {
  Moved m{warp.of(from), nullptr, {}};
  if (auto p = warp.in_flight.find(from); p != warp.in_flight.end()) m.in_flight = p->second;
  if (auto h = warp.held.find(from); h != warp.held.end()) m.held = h->second;
  return m;
}

void Machine::give(Warp& warp, const Value* to, Moved value) {
  warp.of(to) = std::move(value.elements);
  warp.in_flight.erase(to);
  warp.held.erase(to);
  if (value.in_flight) warp.in_flight[to] = std::move(value.in_flight);
  if (value.held.op) warp.held[to] = value.held;
}

Status Machine::check_in_flight(Warp& warp, const Op& op) {
  if (warp.in_flight.empty() && warp.held.empty()) return {};
  const uint32_t done = warp.knows.seen[agents_.of(warp.id, Engine::kProducts)];
  for (size_t i = 0; i < op.operands.size() && op.kind != OpKind::kWgmmaWait; ++i) {
    auto product = warp.in_flight.find(op.operands[i]);
    if (product != warp.in_flight.end() && (op.kind != OpKind::kWgmma || i != 2))
      return fail(&op, ErrorKind::kInternal, "{} touches the result of a wgmma before the wgmma_wait that takes it: {}",
                  agents_.name_warp(warp.id), ir::print(*product->second->op));
    auto held = warp.held.find(op.operands[i]);
    if (held != warp.held.end() && held->second.number >= done && (op.kind != OpKind::kWgmma || i != 0))
      return fail(&op, ErrorKind::kInternal, "{} touches an operand of a wgmma before its wgmma_wait: {}",
                  agents_.name_warp(warp.id), ir::print(*held->second.op));
  }
  for (const Value* v : op.results) {
    warp.in_flight.erase(v);
    warp.held.erase(v);
  }
  return {};
}

Status Machine::wgmma(Warp& warp, const Op& op) {
  if (module_.num_warps % kGroupWarps != 0)
    return fail(&op, ErrorKind::kInternal, "wgmma takes groups of {} warps, and there are {}", kGroupWarps,
                module_.num_warps);
  const Value *a = op.operand(0), *c = op.operand(2);
  auto product = std::make_shared<Product>();
  product->op = &op;
  product->number = warp.products++;
  std::shared_ptr<Product> before;
  if (auto p = warp.in_flight.find(c); p != warp.in_flight.end()) {
    before = p->second;
    if (before->continued)
      return fail(&op, ErrorKind::kInternal, "two wgmma add to one result that is in flight: {}",
                  ir::print(*before->op));
    before->continued = true;
  }
  const auto hold = [&](const Value* v) {
    if (v->type.is_tile() && !(v->is_result() && v->op->kind == OpKind::kConstant))
      warp.held[v] = {&op, product->number};
  };
  hold(a);
  if (!before) hold(c);
  Transfer transfer;
  transfer.agent = agents_.of(warp.id, Engine::kProducts);
  transfer.epoch = product->number;
  transfer.in_order = true;
  transfer.perform = [this, &op, &warp, product, before, knows = warp.knows, agent = transfer.agent,
                      a_at = a->type.is_tile() ? 0 : static_cast<int64_t>(warp.of(a)[0]),
                      a_tile = a->type.is_tile() ? warp.of(a) : Elements{},
                      b_at = static_cast<int64_t>(warp.of(op.operand(1))[0]),
                      start = before ? Elements{} : warp.of(c)]() -> Status {
    product->out = before ? before->out : start;
    return multiply(warp, op, {&op, agent, product->number, warp.id, &knows, &agents_}, a_at, a_tile, b_at,
                    product->out);
  };
  transfers_.push_back(std::move(transfer));
  warp.of(op.result()).assign(share_of(op.result()->type), 0);
  warp.in_flight[op.result()] = std::move(product);
  advance(warp);
  return {};
}

Status Machine::multiply(const Warp& warp, const Op& op, const Accessor& who, int64_t a_at, const Elements& a_tile,
                         int64_t b_at, Elements& out) {
  const ir::Type &a = op.operand(0)->type, &b = op.operand(1)->type, &c = op.result()->type;
  const int64_t depth = a.shape[1], width = c.shape[1];
  std::set<int64_t> row_set, column_set;
  std::vector<int64_t> elements(out.size());
  for (size_t i = 0; i < out.size(); ++i) {
    elements[i] = element(warp, c, i);
    row_set.insert(elements[i] / width);
    column_set.insert(elements[i] % width);
  }
  const Indices rows(row_set), columns(column_set);
  ir::Type a_part = a, b_part = b, c_part = c;
  a_part.shape[0] = c_part.shape[0] = static_cast<int32_t>(rows.all.size());
  b_part.shape[1] = c_part.shape[1] = static_cast<int32_t>(columns.all.size());
  const size_t n = columns.all.size(), k = static_cast<size_t>(depth);
  Elements left(rows.all.size() * k), right(k * n), sum(rows.all.size() * n);
  SharedMemory::Access access(shared_[warp.block], who);
  auto read = [&](const ir::Type& handle, int64_t base, int64_t e, uint64_t& bits) -> Status {
    const int bytes = bytes_of(handle);
    std::string wrong =
        access.read(kWholeWarp, base + int64_t{offsets_of(handle)[static_cast<size_t>(e)]} * bytes, bytes, bits);
    if (!wrong.empty()) return fail(&op, ErrorKind::kInternal, "{}", wrong);
    return {};
  };

  if (a.is_tile()) {
    std::vector<bool> found(left.size());
    for (size_t i = 0; i < a_tile.size(); ++i) {
      const int64_t e = element(warp, a, i);
      if (!rows.has(e / depth)) continue;
      const size_t at = rows.of(e / depth) * k + static_cast<size_t>(e % depth);
      left[at] = a_tile[i];
      found[at] = true;
    }
    if (std::find(found.begin(), found.end(), false) != found.end())
      return fail(&op, ErrorKind::kInternal, "{} does not hold the rows of a that its share of the result needs",
                  agents_.name_warp(warp.id));
  } else {
    // The four warps read their rows as one.
    std::set<int64_t> slices;
    for (const int64_t row : rows.all) slices.insert(row / kGroupRows);
    for (const int64_t slice : slices)
      for (int64_t row = slice * kGroupRows; row < std::min<int64_t>((slice + 1) * kGroupRows, a.shape[0]); ++row)
        for (int64_t t = 0; t < depth; ++t) {
          uint64_t bits = 0;
          KILN_CHECK_OK(read(a, a_at, row * depth + t, bits));
          if (rows.has(row)) left[rows.of(row) * k + static_cast<size_t>(t)] = bits;
        }
  }
  for (size_t t = 0; t < k; ++t)
    for (size_t j = 0; j < n; ++j)
      KILN_CHECK_OK(read(b, b_at, static_cast<int64_t>(t) * width + columns.all[j], right[t * n + j]));

  // Hardware leaves out what is beyond the limits: there both operands are 0, and the results are anything.
  const auto limit = static_cast<size_t>(op.int_or(AttrName::kDepth, depth));
  for (size_t t = limit; t < k; ++t) {
    const bool zero_left = std::ranges::all_of(std::views::iota(size_t{0}, rows.all.size()),
                                               [&](size_t i) { return left[i * k + t] == 0; });
    const bool zero_right =
        std::all_of(right.begin() + static_cast<std::ptrdiff_t>(t * n),
                    right.begin() + static_cast<std::ptrdiff_t>((t + 1) * n), [](uint64_t bits) { return bits == 0; });
    if (!zero_left || !zero_right)
      return fail(&op, ErrorKind::kInternal, "a product limited to a depth of {} has more than zeros at {}", limit, t);
  }

  auto place = [&](size_t i) { return rows.of(elements[i] / width) * n + columns.of(elements[i] % width); };
  for (size_t i = 0; i < out.size(); ++i) sum[place(i)] = out[i];
  eval_dot(a_part, b_part, c_part, kPrecision, left, right, sum, sum);
  const int64_t kept = op.int_or(AttrName::kColumns, width);
  for (size_t i = 0; i < out.size(); ++i)
    out[i] = elements[i] % width < kept ? sum[place(i)] : is_float(c.dtype) ? nan_bits(c.dtype) : ~uint64_t{0};
  return {};
}

Status Machine::wgmma_wait(Warp& warp, const Op& op) {
  const uint32_t agent = agents_.of(warp.id, Engine::kProducts);
  uint32_t& seen = warp.knows.seen[agent];
  if (const int64_t done = warp.products - op.int_attr(AttrName::kCount); done > int64_t{seen}) {
    KILN_CHECK_OK(perform_until(agent, static_cast<uint32_t>(done)));
    seen = static_cast<uint32_t>(done);
  }
  std::vector<Moved> values;
  for (const Value* v : op.operands) {
    Moved m = take(warp, v);
    if (m.in_flight && m.in_flight->continued)
      return fail(&op, ErrorKind::kInternal, "{} takes the result of a wgmma that another goes on with: {}",
                  agents_.name_warp(warp.id), ir::print(*m.in_flight->op));
    if (m.in_flight && m.in_flight->number < seen) {
      m.elements = m.in_flight->out;
      m.in_flight = nullptr;
    }
    if (m.held.op && m.held.number < seen) m.held = {};
    values.push_back(std::move(m));
  }
  for (size_t i = 0; i < values.size(); ++i) give(warp, op.results[i], std::move(values[i]));
  return {};
}

}  // namespace kiln::interp
