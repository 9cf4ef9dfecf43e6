// Values that go into tensors that are there: what is read is the old elements, wherever they are written.
#include "kiln/graph.h"
#include "tests/unit/runtime/expr/expr_test_util.h"

namespace kiln {
namespace {

bool same_memory(const Tensor& a, const Tensor& b) { return a.address() == b.address(); }

Tensor tensor_of(const std::vector<double>& values, const Shape& shape) {
  std::vector<float> floats(values.begin(), values.end());
  return *Tensor::from_host(cpu(), DType::kF32, shape, floats.data(), floats.size() * sizeof(float));
}

TEST(ExprStore, ReadsBeforeItWrites) {
  const uint64_t seed = fresh_seed();
  const Shape shape = {64, 65};
  const Tensor a = random_tensor(shape, seed), b = random_tensor(shape, seed + 1);
  const std::vector<double> was_a = numbers(a), was_b = numbers(b);
  // In place, and crosswise: each reads what the other overwrites.
  const Expr twice = op(ExprOp::kMul, {a, Expr::scalar(int64_t{2})});
  const ExprStore crosswise[] = {{op(ExprOp::kAdd, {twice, b}), a}, {op(ExprOp::kSub, {b, a}), b}};
  ASSERT_TRUE(run_into(crosswise).ok());
  const std::vector<double> now_a = numbers(a), now_b = numbers(b);
  for (size_t i = 0; i < was_a.size(); ++i) {
    EXPECT_EQ(static_cast<float>(now_a[i]), static_cast<float>(2 * was_a[i]) + static_cast<float>(was_b[i]));
    EXPECT_EQ(static_cast<float>(now_b[i]), static_cast<float>(was_b[i]) - static_cast<float>(was_a[i]));
  }
}

TEST(ExprStore, KeepsWhatIsReadElsewhere) {
  // Each element goes where another one is still to be read.
  const Tensor a = tensor_of({1, 2, 3, 4, 5, 6, 7, 8, 9}, {3, 3});
  const Expr turned = op(ExprOp::kPermute, {a}, along({1, 0}));
  const ExprStore sum[] = {{op(ExprOp::kAdd, {turned, Expr::scalar(int64_t{10})}), a}};
  ASSERT_TRUE(run_into(sum).ok());
  EXPECT_EQ(numbers(a), (std::vector<double>{11, 14, 17, 12, 15, 18, 13, 16, 19}));
  // A view alone is a copy.
  const ExprStore view[] = {{op(ExprOp::kPermute, {a}, along({1, 0})), a}};
  ASSERT_TRUE(run_into(view).ok());
  EXPECT_EQ(numbers(a), (std::vector<double>{11, 12, 13, 14, 15, 16, 17, 18, 19}));
  // Rows are read as wholes.
  const Expr mean = op(ExprOp::kMean, {a}, along({1}, true));
  const ExprStore centred[] = {{op(ExprOp::kSub, {a, mean}), a}};
  ASSERT_TRUE(run_into(centred).ok());
  EXPECT_EQ(numbers(a), (std::vector<double>{-1, 0, 1, -1, 0, 1, -1, 0, 1}));
}

Tensor places_of(const std::vector<int64_t>& values, const Shape& shape) {
  return *Tensor::from_host(cpu(), DType::kI64, shape, values.data(), values.size() * sizeof(int64_t));
}

/// Rows of `values` to rows of a tensor that is `columns` wide; below 0 they stay out.
Expr put_rows(const Expr& values, const std::vector<int64_t>& rows, int64_t columns, bool adds) {
  const Expr row(places_of(rows, {static_cast<int64_t>(rows.size()), 1}));
  const Expr start = op(ExprOp::kMul, {row, Expr::scalar(columns)});
  const Expr place = op(ExprOp::kAdd, {start, Expr::iota(cpu(), columns, DType::kI64)});
  ExprAttributes a;
  a.adds = adds;
  return op(ExprOp::kPut, {values, place, op(ExprOp::kGe, {row, Expr::scalar(int64_t{0})})}, a);
}

TEST(ExprStore, TakesWhatWasComputedBefore) {
  // A conversion that was run has let go of its operand: a gradient of looked-up rows, of which a sum runs first.
  const Tensor a = random_tensor({300, 31}, 5), to = *Tensor::zeros(cpu(), DType::kF16, Shape{300, 31});
  ExprAttributes half;
  half.dtype = DType::kF16;
  const Expr converted = op(ExprOp::kCast, {op(ExprOp::kMul, {a, Expr::scalar(int64_t{2})})}, half);
  ASSERT_TRUE(run(converted).ok());
  const ExprStore store[] = {{converted, to}};
  ASSERT_TRUE(run_into(store).ok());
  EXPECT_EQ(numbers(to), numbers(run(converted)));
}

TEST(ExprPut, StoresAndAddsWhatIsComputed) {
  const uint64_t seed = fresh_seed();
  for (const auto& [columns, rows] :
       {std::pair<int64_t, std::vector<int64_t>>{1, {2, 0, -1}}, {37, {4, 1, -1, 0}}, {300, {3, 2, 5, -1, 0, 1, 4}}}) {
    const auto count = static_cast<int64_t>(rows.size());
    const Tensor x = random_tensor({count, columns}, seed), scale = random_tensor({count, 1}, seed + 1);
    const Tensor to = random_tensor({8, columns}, seed + 2), sums = random_tensor({8, columns}, seed + 3);
    std::vector<double> stored = numbers(to), added = numbers(sums);
    const std::vector<double> xs = numbers(x), scales = numbers(scale);
    ASSERT_TRUE(run_put(put_rows(op(ExprOp::kMul, {x, scale}), rows, columns, false), to).ok());
    std::vector<int64_t> same = rows;  // the last one goes where the first does, too
    same.back() = rows.front();
    ASSERT_TRUE(run_put(put_rows(op(ExprOp::kMul, {x, scale}), same, columns, true), sums).ok());
    for (size_t i = 0; i < rows.size(); ++i)
      for (size_t c = 0; c < static_cast<size_t>(columns); ++c) {
        const size_t from = i * static_cast<size_t>(columns) + c;
        const auto value = static_cast<double>(static_cast<float>(xs[from]) * static_cast<float>(scales[i]));
        auto place = [&](int64_t row) { return static_cast<size_t>(row * columns) + c; };
        if (rows[i] >= 0) stored[place(rows[i])] = value;
        if (same[i] >= 0) added[place(same[i])] += value;
      }
    EXPECT_EQ(numbers(to), stored) << columns << " columns";
    const std::vector<double> found = numbers(sums);
    for (size_t i = 0; i < added.size(); ++i) EXPECT_NEAR(found[i], added[i], 1e-5) << columns << " columns, " << i;
  }
}

TEST(ExprPut, AddsEachElementWhereNothingTellsThemApart) {
  const Tensor to = tensor_of({1, 2, 3}, {3});
  ExprAttributes a;
  a.adds = true;
  auto as_shape = [](const Expr& e, Shape shape) {
    ExprAttributes expanded;
    expanded.shape = std::move(shape);
    return op(ExprOp::kExpand, {e}, std::move(expanded));
  };
  // One value, for one place, 60 times: along a dimension, and along two.
  for (const Shape& shape : {Shape{60}, Shape{4, 15}}) {
    const Expr one(tensor_of({0.5}, Shape(shape.size(), 1))), place(places_of({1}, Shape(shape.size(), 1)));
    const Expr there = op(ExprOp::kGe, {place, Expr::scalar(int64_t{0})});
    ASSERT_TRUE(run_put(op(ExprOp::kPut, {as_shape(one, shape), place, there}, a), to).ok());
  }
  EXPECT_EQ(numbers(to), (std::vector<double>{1, 62, 3}));
}

TEST(ExprPut, ReadsBeforeItWrites) {
  // Rows change places with themselves in the tensor.
  const Tensor a = tensor_of({1, 2, 3, 4, 5, 6}, {3, 2});
  ASSERT_TRUE(run_put(put_rows(Expr(a), {2, 0, 1}, 2, false), a).ok());
  EXPECT_EQ(numbers(a), (std::vector<double>{3, 4, 5, 6, 1, 2}));
  const Expr twice = op(ExprOp::kMul, {Expr(a), Expr::scalar(int64_t{2})});
  ASSERT_TRUE(run_put(put_rows(twice, {1, 2, 0}, 2, false), a).ok());
  EXPECT_EQ(numbers(a), (std::vector<double>{2, 4, 6, 8, 10, 12}));
}

TEST(ExprPut, IsRefusedElsewhere) {
  const Tensor a = tensor_of({1, 2, 3, 4}, {2, 2});
  const Expr put = put_rows(Expr(a), {1, 0}, 2, false);
  EXPECT_EQ(run(put).error().message, "a put is run by run_put(), into a tensor");
  EXPECT_EQ(run_put(put, *Tensor::empty(cpu(), DType::kF64, Shape{2, 2})).error().message,
            "run_put() takes a put of float64 on the tensor's device");
  EXPECT_FALSE(run_put(Expr(), a).ok());
  const Expr places = op(ExprOp::kAdd, {Expr(a), Expr(a)});
  EXPECT_EQ(apply(ExprOp::kPut, {Expr(a), places, places}).error().message,
            "put takes a tensor, a tensor of integers and one of bools, got float32, float32 and float32");
}

TEST(ExprStore, CountsLeaves) {
  const Tensor a = random_tensor({8, 8}, 1), b = random_tensor({8, 8}, 2);
  const Expr left(a), right(a), sum = op(ExprOp::kAdd, {op(ExprOp::kMul, {left, right}), b});
  const Expr exprs[] = {sum, op(ExprOp::kExp, {left})};
  EXPECT_EQ(count_leaves(exprs, a.storage().get(), 9), 2);
  EXPECT_EQ(count_leaves(exprs, a.storage().get(), 1), 1);
  EXPECT_EQ(count_leaves(exprs, b.storage().get(), 9), 1);
}

/// Running sums down matrices of few columns are scanned in parts, whose ends tiles have to meet.
TEST(ExprPlan, ScansColumnsInParts) {
  for (const Shape& shape : {Shape{16384, 16}, {5000, 7}, {100000, 3}, {20000, 200}, {70001, 1}, {1025, 65}}) {
    const Tensor x = *Tensor::empty(cpu(), DType::kI64, shape);
    auto made = plan_for(op(ExprOp::kCumSum, {x}, along({0})), "sm_90a");
    ASSERT_TRUE(made.ok()) << made.error().message;
    if (shape[0] == 16384) {
      EXPECT_EQ(made->plan.groups.size(), 2u) << "totals of parts, and the parts";
    }
  }
}

/// sum += x * 3; scale = sum - x, in place, of the first tuple of (x, sum, scale).
std::vector<ExprStore> updates_of(const std::vector<Tensor>& first) {
  const Expr x(first[0]), sum = op(ExprOp::kAdd, {Expr(first[1]), op(ExprOp::kMul, {x, Expr::scalar(3.25)})});
  return {{sum, first[1]}, {op(ExprOp::kSub, {sum, x}), first[2]}};
}

TEST(ExprStore, RunsTheSameOfManyTensors) {
  const uint64_t seed = fresh_seed();
  std::vector<std::vector<Tensor>> tuples;
  std::vector<std::vector<double>> x, sum;
  for (const Shape& shape :
       {Shape{70, 81}, Shape{81}, Shape{5, 7, 9}, Shape{4096}, Shape{1}, Shape{}, Shape{33, 1031}}) {
    const uint64_t n = seed + 2 * tuples.size();
    tuples.push_back({random_tensor(shape, n), random_tensor(shape, n + 1), random_tensor(shape, n)});
    x.push_back(numbers(tuples.back()[0]));
    sum.push_back(numbers(tuples.back()[1]));
  }
  const std::vector<ExprStore> stores = updates_of(tuples[0]);
  const auto done = run_each_into(stores, tuples);
  ASSERT_TRUE(done.ok()) << done.error().message;
  ASSERT_TRUE(*done);
  EXPECT_TRUE(same_memory(*stores[0].value.tensor(), tuples[0][1]));
  for (size_t t = 0; t < tuples.size(); ++t) {
    const std::vector<double> sums = numbers(tuples[t][1]), scales = numbers(tuples[t][2]);
    for (size_t i = 0; i < x[t].size(); ++i) {
      ASSERT_NEAR(sums[i], sum[t][i] + 3.25 * x[t][i], 1e-5) << t << " " << i;
      ASSERT_NEAR(scales[i], sums[i] - x[t][i], 1e-5) << t << " " << i;
    }
    EXPECT_EQ(numbers(tuples[t][0]), x[t]);
  }
}

/// As an optimizer whose step's number is a tensor: each replay reads what it is then.
TEST(ExprStore, RunsTheSameOfManyTensorsInAGraph) {
  std::vector<std::vector<Tensor>> tuples;
  std::vector<std::vector<double>> x;
  for (const Shape& shape : {Shape{70, 81}, Shape{5, 7, 9}, Shape{1}, Shape{33, 1031}}) {
    tuples.push_back({random_tensor(shape, tuples.size()), *Tensor::zeros(cpu(), DType::kF32, shape)});
    x.push_back(numbers(tuples.back()[0]));
  }
  const Tensor factor = *Tensor::full(cpu(), DType::kF32, {}, 2.0);
  auto run = [&]() -> Status {
    const Expr sum = op(ExprOp::kAdd, {tuples[0][1], op(ExprOp::kMul, {tuples[0][0], factor})});
    const ExprStore store = {sum, tuples[0][1]};
    const auto done = run_each_into({&store, 1}, tuples);
    EXPECT_TRUE(done.ok() && *done);
    return done.ok() ? Status() : Status(done.error());
  };
  ASSERT_TRUE(run().ok());
  const auto graph = Graph::capture(cpu(), run);
  ASSERT_TRUE(graph.ok()) << graph.error().message;
  EXPECT_EQ(graph->size(), 1);
  double expected = 2;
  for (const double f : {3.0, 5.0}) {
    ASSERT_TRUE(factor.fill(f).ok());
    ASSERT_TRUE(graph->launch().ok());
    expected += f;
    for (size_t t = 0; t < tuples.size(); ++t) {
      const std::vector<double> sums = numbers(tuples[t][1]);
      for (size_t i = 0; i < sums.size(); ++i) ASSERT_NEAR(sums[i], expected * x[t][i], 1e-4) << t << " " << i;
    }
  }
  // What is written is read as the factor of all others.
  const Tensor sum = *Tensor::zeros(cpu(), DType::kF32, Shape{1});
  const Tensor of_sum = *sum.view({});
  const std::vector<std::vector<Tensor>> aliased = {{tuples[0][0], tuples[0][1]}, {tuples[2][0], sum}};
  const ExprStore store = {op(ExprOp::kMul, {aliased[0][0], of_sum}), aliased[0][1]};
  const auto refused = run_each_into({&store, 1}, aliased);
  EXPECT_TRUE(refused.ok() && !*refused);
}

TEST(ExprStore, LeavesAloneWhatIsNotTheSameOfManyTensors) {
  const auto tuple = [](const Shape& shape) {
    return std::vector<Tensor>{random_tensor(shape, 1), random_tensor(shape, 2), random_tensor(shape, 3)};
  };
  auto is_refused = [](const std::vector<ExprStore>& stores, const std::vector<std::vector<Tensor>>& tuples) {
    std::vector<std::vector<double>> before;
    for (const auto& t : tuples)
      for (const Tensor& each : t) before.push_back(numbers(each));
    const auto done = run_each_into(stores, tuples);
    EXPECT_TRUE(done.ok());
    size_t i = 0;
    for (const auto& t : tuples)
      for (const Tensor& each : t) EXPECT_EQ(numbers(each), before[i++]);
    return done.ok() && !*done && !stores[0].value.tensor();
  };
  const std::vector<Tensor> first = tuple({4, 6});
  // A sum, a view that moves elements, and an operand of another shape are no computation on elements.
  const Expr mean = op(ExprOp::kMean, {first[0]}, along({1}, true));
  EXPECT_TRUE(is_refused({{op(ExprOp::kSub, {Expr(first[1]), mean}), first[1]}}, {first, tuple({5, 5})}));
  const std::vector<Tensor> square = tuple({5, 5});
  EXPECT_TRUE(is_refused({{op(ExprOp::kAdd, {op(ExprOp::kPermute, {square[0]}, along({1, 0})), square[1]}), square[1]}},
                         {square, tuple({5, 5})}));
  EXPECT_TRUE(is_refused({{op(ExprOp::kMul, {Expr(first[1]), random_tensor({6}, 9)}), first[1]}}, {first, tuple({5})}));
  // Tensors of another dtype or order, a tensor that is no part of the tuples, and memory that tuples share.
  std::vector<Tensor> other = tuple({3});
  other[0] = random_tensor({3}, 4, DType::kF16);
  EXPECT_TRUE(is_refused(updates_of(first), {first, other}));
  std::vector<Tensor> turned = tuple({4, 6});
  const int64_t shape[] = {4, 6}, strides[] = {1, 4};
  turned[0] = *turned[0].as_strided(shape, strides, 0);
  EXPECT_TRUE(is_refused(updates_of(first), {first, turned}));
  EXPECT_TRUE(
      is_refused({{op(ExprOp::kAdd, {Expr(first[1]), random_tensor({4, 6}, 5)}), first[1]}}, {first, tuple({2})}));
  std::vector<Tensor> shared = tuple({4, 6});
  shared[2] = first[2];
  EXPECT_TRUE(is_refused(updates_of(first), {first, shared}));
  shared = tuple({4, 6});
  shared[0] = first[1];
  EXPECT_TRUE(is_refused(updates_of(first), {first, shared}));
}

}  // namespace
}  // namespace kiln
