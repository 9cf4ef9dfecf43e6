#include "compiler/analysis/axis_facts.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace kiln::analysis::axis_facts {

using ir::OpKind;

int64_t divisor_of(int64_t n) {
  return n == 0 ? kMost : std::min<int64_t>(kMost, int64_t{1} << std::countr_zero(static_cast<uint64_t>(n)));
}

int64_t times(int64_t a, int64_t b) { return a >= kMost / b ? kMost : a * b; }

int dims(const AxisInfo& info) { return std::max(1, info.rank); }

AxisInfo unknown(const ir::Type& type) {
  AxisInfo info;
  info.rank = type.shape.rank;
  info.contiguity.fill(1);
  info.divisibility.fill(1);
  info.constancy.fill(1);
  info.prefix.fill(1);
  info.run.fill(1);
  info.step.fill(1);
  info.usual_step.fill(kFar);
  return info;
}

int64_t size_along(const ir::Type& type, int d) { return type.shape.rank ? type.shape[d] : 1; }

AxisInfo constant_info(const ir::Type& type, int64_t value) {
  AxisInfo info = unknown(type);
  for (int d = 0; d < dims(info); ++d) {
    info.divisibility[d] = divisor_of(value);
    info.constancy[d] = info.prefix[d] = size_along(type, d);
    info.usual_step[d] = 0;
  }
  info.constant = value;
  info.non_negative = value >= 0;
  return info;
}

int64_t element_divisor(const AxisInfo& info) {
  int64_t best = 1;
  for (int d = 0; d < dims(info); ++d)
    if (info.contiguity[d] == 1) best = std::max(best, info.divisibility[d]);
  return best;
}

int64_t divisor_at(const AxisInfo& info, int d, int64_t step) {
  return step >= info.contiguity[d] ? info.divisibility[d] : std::min(info.divisibility[d], step);
}

void copy_along(AxisInfo& info, int d, const AxisInfo& from, size_t source) {
  info.contiguity[d] = from.contiguity[source];
  info.divisibility[d] = from.divisibility[source];
  info.constancy[d] = from.constancy[source];
  info.prefix[d] = from.prefix[source];
  info.run[d] = from.run[source];
  info.step[d] = from.step[source];
  info.usual_step[d] = from.usual_step[source];
}

double usual_product(const AxisInfo& x, const AxisInfo& n, int d) {
  if (x.usual_step[d] == 0 || n.usual_step[d] != 0) return x.usual_step[d] == 0 && n.usual_step[d] == 0 ? 0 : kFar;
  const double number = n.constant ? std::abs(static_cast<double>(*n.constant))
                                   : kUnknownNumber * static_cast<double>(element_divisor(n));
  return std::min(kFar, x.usual_step[d] * number);
}

double usual_remainder(const AxisInfo& x, const AxisInfo& n, int d) {
  const bool wraps = n.constant && static_cast<double>(*n.constant) < x.usual_step[d] * kLeastRun;
  return n.usual_step[d] != 0 || wraps ? kFar : x.usual_step[d];
}

AxisInfo join(const AxisInfo& a, const AxisInfo& b) {
  AxisInfo r = a;
  for (int d = 0; d < dims(a); ++d) {
    r.contiguity[d] = std::min(a.contiguity[d], b.contiguity[d]);
    r.constancy[d] = std::min(a.constancy[d], b.constancy[d]);
    r.prefix[d] = std::min(a.prefix[d], b.prefix[d]);
    r.run[d] = std::min(a.run[d], b.run[d]);
    r.step[d] = std::max(a.step[d], b.step[d]);
    if (a.usual_step[d] != b.usual_step[d]) r.usual_step[d] = kFar;
    r.divisibility[d] = std::min(divisor_at(a, d, r.contiguity[d]), divisor_at(b, d, r.contiguity[d]));
  }
  if (a.constant != b.constant) r.constant.reset();
  r.non_negative = a.non_negative && b.non_negative;
  return r;
}

bool fits(const ir::Type& type, int64_t value) {
  int bits = type.element_bits();
  if (type.pointer || bits >= 64) return true;
  int64_t high = int64_t{1} << (is_signed(type.dtype) ? bits - 1 : bits);
  return value < high && value >= (is_signed(type.dtype) ? -high : 0);
}

std::optional<int64_t> fold(OpKind kind, const ir::Type& type, int64_t a, int64_t b) {
  int64_t r = 0;
  bool bad = false;
  if (kind == OpKind::kAdd)
    bad = __builtin_add_overflow(a, b, &r);
  else if (kind == OpKind::kSub)
    bad = __builtin_sub_overflow(a, b, &r);
  else if (kind == OpKind::kMul)
    bad = __builtin_mul_overflow(a, b, &r);
  else if (kind == OpKind::kDiv && b > 0)
    r = a / b;
  else if (kind == OpKind::kRem && b > 0)
    r = a % b;
  else if (kind == OpKind::kMin)
    r = std::min(a, b);
  else if (kind == OpKind::kMax)
    r = std::max(a, b);
  else
    return std::nullopt;
  if (bad || !fits(type, r)) return std::nullopt;
  return r;
}

}  // namespace kiln::analysis::axis_facts
