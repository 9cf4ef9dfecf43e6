// The arithmetic of AxisInfo: what facts say together, and of constants. For axis_info.cc alone.
#pragma once
#include <optional>

#include "compiler/analysis/axis_info.h"

namespace kiln::analysis::axis_facts {

/// What divides 0, and the cap of every fact.
constexpr int64_t kMost = int64_t{1} << 40;
constexpr int64_t kMostStep = 64;  // beyond it no two elements share anything
/// Guesses: a usual step of which nothing is known, and an unknown number that nothing divides.
constexpr double kFar = 1e12, kUnknownNumber = 1024;

/// The largest power of two that divides n.
int64_t divisor_of(int64_t n);
/// Powers of two: their greatest common divisor is the smaller.
int64_t times(int64_t a, int64_t b);
int dims(const AxisInfo& info);
AxisInfo unknown(const ir::Type& type);
int64_t size_along(const ir::Type& type, int d);
AxisInfo constant_info(const ir::Type& type, int64_t value);
/// What divides every element, seen along any dimension.
int64_t element_divisor(const AxisInfo& info);
/// What divides the elements at multiples of `step` along d.
int64_t divisor_at(const AxisInfo& info, int d, int64_t step);
/// The facts of `from` along a dimension.
void copy_along(AxisInfo& info, int d, const AxisInfo& from, size_t source);
/// The usual step of x * n. It is known of one n for all of x, or where neither changes.
double usual_product(const AxisInfo& x, const AxisInfo& n, int d);
/// x % n goes on as x does, unless n is known to be less than what x counts in a run.
double usual_remainder(const AxisInfo& x, const AxisInfo& n, int d);
AxisInfo join(const AxisInfo& a, const AxisInfo& b);
/// Whether `value` fits the type; constants that wrapped are not followed.
bool fits(const ir::Type& type, int64_t value);
std::optional<int64_t> fold(ir::OpKind kind, const ir::Type& type, int64_t a, int64_t b);

}  // namespace kiln::analysis::axis_facts
