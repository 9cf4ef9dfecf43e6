// Results that are put together of computed parts: planned for a GPU, carried out on the cpu device.
#include "tests/unit/fusion/plan_fixture.h"

namespace kiln::fusion::testing {
namespace {

class StorePartsTest : public PlanTest {
 protected:
  /// where(i < 1, parts[0], where(i < 2, parts[1], …)) along a dimension in which each part has one element.
  int stacked(const std::vector<int>& parts, size_t dim, size_t rank) {
    ExprAttributes counts, along, take;
    counts.shape = {static_cast<int64_t>(parts.size())};
    counts.dtype = DType::kI32;
    along.shape.assign(rank, 1);
    along.shape[dim] = counts.shape[0];
    take.axes = {static_cast<int>(dim)};
    take.any_outside = true;
    const int i = op(ExprOp::kReshape, {op(ExprOp::kIota, {}, counts)}, along);
    int out = -1;
    for (size_t k = parts.size(); k-- > 0;) {
      const int place = k == 0 ? i : op(ExprOp::kSub, {i, integer(static_cast<int64_t>(k))});
      const int here = op(ExprOp::kTake, {parts[k], place}, take);
      const int end = integer(static_cast<int64_t>(k) + 1);
      out = out < 0 ? here : op(ExprOp::kWhere, {op(ExprOp::kLt, {i, end}), here, out});
    }
    return out;
  }

  static int stores(const Plan& made) {
    int count = 0;
    for (const Group& g : made.groups)
      for (size_t at = g.source.find("tl.store("); at != std::string::npos; at = g.source.find("tl.store(", at + 1))
        ++count;
    return count;
  }

  int integer(int64_t v) {
    p.graph.nodes.push_back(scalar(v));
    p.tensors.resize(p.graph.nodes.size());
    p.elements.resize(p.graph.nodes.size());
    return static_cast<int>(p.graph.nodes.size()) - 1;
  }

  /// So many that are dear, of the same two tensors.
  std::vector<int> parts(int count, const Shape& shape, DType dtype) {
    const int x = tensor(dtype, shape, "x"), y = tensor(dtype, shape, "y");
    std::vector<int> out;
    int value = op(ExprOp::kSigmoid, {op(ExprOp::kMul, {x, y})});
    for (int k = 0; k < count; ++k) {
      value = op(ExprOp::kTanh, {op(ExprOp::kGelu, {op(ExprOp::kAdd, {op(ExprOp::kMul, {value, x}), y})})});
      out.push_back(value);
    }
    return out;
  }
};

TEST_F(StorePartsTest, EachIsStoredWhereItBelongs) {
  for (const auto& [count, dtype, is_one] : {std::tuple<int, DType, bool>{2, DType::kF32, true},
                                             {3, DType::kF32, true},
                                             {8, DType::kBF16, true},
                                             {9, DType::kF32, false}}) {  // far apart
    p = {};
    const std::vector<int> columns = parts(count, {80001, 1}, dtype);
    const Plan made = check({stacked(columns, 1, 2)}, Variant::kFused, hopper_machine(), 0.5);
    if (is_one) {
      EXPECT_EQ(made.groups.size(), 1u) << plan_text(made);
      EXPECT_GE(stores(made), count) << made.groups[0].source;
    }
  }
}

TEST_F(StorePartsTest, PlanesLieOneBehindTheOther) {
  const std::vector<int> planes = parts(5, {40, 1, 53, 57}, DType::kF32);
  const Plan made = check({stacked(planes, 1, 4)}, Variant::kFused, hopper_machine(), 0.5);
  EXPECT_EQ(made.groups.size(), 1u) << plan_text(made);
  EXPECT_GE(stores(made), 5) << made.groups[0].source;
}

TEST_F(StorePartsTest, WhatOthersReadHasMemoryOfItsOwn) {
  const std::vector<int> columns = parts(3, {80001, 1}, DType::kF32);
  const int whole = stacked(columns, 1, 2);
  check({whole, columns[1]}, Variant::kFused, hopper_machine(), 0.5);
  check({op(ExprOp::kSqrt, {whole}), whole}, Variant::kFused, hopper_machine(), 0.5);
  check({axis(ExprOp::kSum, whole, {0}), whole}, Variant::kFused, hopper_machine(), 0.5);
}

}  // namespace
}  // namespace kiln::fusion::testing
