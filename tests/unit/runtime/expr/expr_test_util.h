// Random tensors and expressions in few words.
#pragma once
#include <gtest/gtest.h>

#include <cstdio>
#include <random>

#include "kiln/expr.h"
#include "support/diag.h"
#include "tests/unit/open_device.h"

namespace kiln {

using Shape = std::vector<int64_t>;

inline uint64_t fresh_seed() {
  uint64_t seed = std::random_device{}();
  std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
  return seed;
}
inline Device cpu() { return *open_device("cpu"); }
inline Tensor random_tensor(const Shape& shape, uint64_t seed, DType dtype = DType::kF32) {
  return *randn(cpu(), dtype, shape, seed);
}
inline Expr op(ExprOp which, std::initializer_list<Expr> operands, ExprAttributes attributes = {}) {
  auto e = apply(which, operands, std::move(attributes));
  KILN_ASSERT(e.ok(), "{}", e.ok() ? "" : e.error().message);
  return *e;
}
inline ExprAttributes along(std::vector<int> axes, bool keepdim = false) {
  ExprAttributes a;
  a.axes = std::move(axes);
  a.keepdim = keepdim;
  return a;
}
inline std::vector<double> numbers(const Result<Tensor>& t) {
  KILN_ASSERT(t.ok(), "{}", t.ok() ? "" : t.error().message);
  return *t->to_doubles();
}

}  // namespace kiln
