// Expressions on a real GPU: every variant, and its graph, against float64.
#include "kiln/expr.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <random>

#include "kiln/expr_program.h"
#include "kiln/graph.h"
#include "kiln/interop.h"
#include "support/diag.h"
#include "tests/gpu/gpu_test_util.h"

namespace kiln::runtime {
namespace {

using Shape = std::vector<int64_t>;

uint64_t fresh_seed() {
  uint64_t seed = std::random_device{}();
  std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
  return seed;
}

Expr op(ExprOp which, std::initializer_list<Expr> operands, ExprAttributes attributes = {}) {
  auto e = apply(which, operands, std::move(attributes));
  KILN_ASSERT(e.ok(), "{}", e.ok() ? "" : e.error().message);
  return *e;
}

ExprAttributes along(int axis, bool keepdim = false) {
  ExprAttributes a;
  a.axes = {axis};
  a.keepdim = keepdim;
  return a;
}

// Says each variant's kernels and error; a library that is absent is no failure.
void check_variants(const char* what, const Expr& expr) {
  auto expected = reference(expr);
  ASSERT_TRUE(expected.ok()) << what << ": " << expected.error().message;
  auto all = variants(expr);
  ASSERT_TRUE(all.ok()) << what << ": " << all.error().message;
  std::optional<ExprError> allowed;
  for (const VariantPlan& v : *all) {
    if (!v.problem.ok() && v.problem.error().kind == ErrorKind::kDevice) {
      std::printf("%s %s: %s\n", what, v.name.c_str(), v.problem.error().message.c_str());
      continue;
    }
    ASSERT_TRUE(v.problem.ok()) << what << " " << v.name << ": " << v.problem.error().message;
    for (bool as_graph : {false, true}) {
      ASSERT_OK(v.poison());
      if (as_graph) {
        auto graph = v.graph();
        ASSERT_TRUE(graph.ok()) << what << " " << v.name << ": " << graph.error().message;
        ASSERT_OK(graph->launch());
      } else {
        ASSERT_OK(v.launch());
      }
      auto error = compare(*expected, *v.output(), allowed ? &*allowed : nullptr);
      ASSERT_TRUE(error.ok()) << error.error().message;
      EXPECT_TRUE(error->ok()) << what << " " << v.name << (as_graph ? " graph" : "") << ": element "
                               << error->first_bad << " is " << error->got << ", not " << error->expected;
      if (!as_graph)
        std::printf("%s %s: %zu kernels, max rel %.2e of %.2e\n", what, v.name.c_str(), v.kernels.size(),
                    error->max_rel, error->tolerance);
      if (!allowed) allowed = *error;
    }
  }
}

Expr gelu_layer(const Device& device, int64_t m, int64_t k, int64_t n, DType dtype, uint64_t seed, ExprOp activation) {
  Tensor x = *randn(device, dtype, Shape{m, k}, seed), w = *randn(device, dtype, Shape{k, n}, seed + 1),
         b = *randn(device, dtype, Shape{n}, seed + 2);
  return op(activation, {op(ExprOp::kAdd, {op(ExprOp::kMatMul, {x, w}), b})});
}

TEST(GpuExpr, PlacesAndRunningSumsAgreeWithFloat64) {
  GPU_OR_SKIP(device);
  const uint64_t seed = fresh_seed();
  for (DType dtype : {DType::kF32, DType::kBF16, DType::kF64})
    for (const Shape& shape : {Shape{255, 1000}, Shape{7, 40001}, Shape{1250, 33}, Shape{1, 75007}, Shape{3, 1}}) {
      const Tensor x = *randn(device, dtype, shape, seed);
      const Expr chain = op(ExprOp::kAdd, {op(ExprOp::kMul, {x, Expr::scalar(0.75)}), Expr::scalar(0.0625)});
      const std::string of =
          std::string(name(dtype)) + " [" + std::to_string(shape[0]) + ", " + std::to_string(shape[1]) + "]";
      for (int axis : {0, 1}) {
        const std::string what = of + " along " + std::to_string(axis);
        check_variants(("argmax " + what).c_str(), op(ExprOp::kArgMax, {chain}, along(axis)));
        check_variants(("argmin of a tensor " + what).c_str(), op(ExprOp::kArgMin, {x}, along(axis, true)));
        check_variants(("cumsum " + what).c_str(), op(ExprOp::kMul, {op(ExprOp::kCumSum, {chain}, along(axis)), x}));
      }
      check_variants(("cumprod " + of).c_str(), op(ExprOp::kCumProd, {op(ExprOp::kTanh, {x})}, along(1)));
    }
  const Tensor whole = *randint(device, DType::kI32, Shape{129, 5000}, -9, 9, seed);
  check_variants("argmax of integers", op(ExprOp::kArgMax, {whole}, along(1)));
  check_variants("cumsum of integers", op(ExprOp::kCumSum, {whole}, along(1)));
  check_variants("cumprod of integers", op(ExprOp::kCumProd, {whole}, along(0)));
}

TEST(GpuExpr, ScansOfScansAndOfManyColumnsAgree) {
  GPU_OR_SKIP(device);
  const uint64_t seed = fresh_seed();
  // Columns in loops that load ahead, a few in many parts, and rows of which parts look back, all of odd sizes.
  for (const Shape& shape : {Shape{2001, 203}, Shape{5001, 199}, Shape{150001, 3}, Shape{3, 1500001}})
    for (DType dtype : {DType::kF32, DType::kBF16, DType::kI64}) {
      const Tensor x =
          dtype == DType::kI64 ? *randint(device, dtype, shape, -9, 9, seed) : *randn(device, dtype, shape, seed);
      const int axis = shape[0] > shape[1] ? 0 : 1;
      const std::string of =
          std::string(name(dtype)) + " [" + std::to_string(shape[0]) + ", " + std::to_string(shape[1]) + "]";
      const Expr peaks = op(ExprOp::kCumMax, {x}, along(axis));
      check_variants(("cumsum down " + of).c_str(), op(ExprOp::kCumSum, {x}, along(axis)));
      check_variants(("cumsum of cummax down " + of).c_str(), op(ExprOp::kCumSum, {peaks}, along(axis)));
    }
}

/// Rows and columns whose parts look back, and rows that programs have whole: in runs of 16 bytes, which begin before a
/// row and end behind it. Between chains, so that what they read beside the rows is in runs, too; the unfused variant
/// of a chain has the scan alone. The float64 reference takes 0.1 us an element on the host, so shapes are as small as
/// the kernels' rules allow: more rows than multiprocessors, or more columns than a program has whole.
TEST(GpuExpr, ScansOfRowsThatBeginAnywhereAgree) {
  GPU_OR_SKIP(device);
  const uint64_t seed = fresh_seed();
  for (const Shape& shape :
       {Shape{301, 1027}, Shape{134, 5001}, Shape{7, 9003}, Shape{3, 70001}, Shape{17, 33335}, Shape{20, 17008},
        Shape{5001, 135}, Shape{2, 3001, 133}, Shape{20001, 37}, Shape{2001, 333}, Shape{3, 1100, 45}})
    for (DType dtype : {DType::kF32, DType::kBF16, DType::kF64, DType::kI64, DType::kI32, DType::kU8}) {
      const bool floats = dtype == DType::kF32 || dtype == DType::kBF16 || dtype == DType::kF64;
      const Tensor x = floats ? *randn(device, dtype, shape, seed) : *randint(device, dtype, shape, 0, 9, seed);
      std::string of = std::string(name(dtype));
      for (int64_t d : shape) of += " " + std::to_string(d);
      const int last = static_cast<int>(shape.size()) - 1;
      const Tensor row = *randn(device, floats ? dtype : DType::kF32, Shape{shape[last]}, seed + 1);
      for (int axis : {last - 1, last}) {
        const std::string what = of + " along " + std::to_string(axis);
        if (floats) {
          const Expr chain = op(ExprOp::kMul, {op(ExprOp::kTanh, {x}), row});
          check_variants(("chain " + what).c_str(), op(ExprOp::kMul, {op(ExprOp::kCumSum, {chain}, along(axis)), x}));
        } else {
          check_variants(("cumsum " + what).c_str(), op(ExprOp::kCumSum, {x}, along(axis)));
        }
        // Totals of a word, of two, and of less than one.
        if (dtype == DType::kF32 || dtype == DType::kI64 || dtype == DType::kU8)
          check_variants(("cummax " + what).c_str(), op(ExprOp::kCumMax, {x}, along(axis)));
      }
    }
  // Many parts have fewer threads.
  for (DType dtype : {DType::kF32, DType::kBF16}) {
    const Tensor x = *randn(device, dtype, Shape{425, 9001}, seed);
    check_variants(("cumsum " + std::string(name(dtype)) + " 425 9001").c_str(), op(ExprOp::kCumSum, {x}, along(1)));
  }
}

/// Parts of a long row tell each other their totals in the caller's workspace, whatever was there before.
TEST(GpuExpr, ProgramsScanLongRowsInAnyWorkspace) {
  GPU_OR_SKIP(device);
  const Tensor x = *randint(device, DType::kI32, Shape{6000007}, -9, 9, fresh_seed());
  const Expr inputs[] = {x}, outputs[] = {op(ExprOp::kCumSum, {inputs[0]}, along(0))};
  const auto program = ExprProgram::make(inputs, outputs);
  ASSERT_TRUE(program.ok()) << program.error().message;
  ASSERT_EQ(program->buffer_bytes().size(), 1u) << "the result alone is the caller's to allocate";
  ASSERT_GT(program->workspace_bytes(), 0) << "it is to be so long that its parts look back";
  const Tensor want = *run(outputs[0]);
  for (int byte : {0, 1, 255}) {
    const Tensor out = *Tensor::empty(device, want.dtype(), want.shape());
    const int64_t bytes = program->workspace_bytes();
    const Tensor workspace = *Tensor::full(device, DType::kU8, std::span(&bytes, 1), byte);
    for (int again = 0; again < 2; ++again) {
      const uint64_t in = x.address(), to = out.address();
      const Status status = program->launch({&in, 1}, {&to, 1}, workspace.address());
      ASSERT_TRUE(status.ok()) << status.error().message;
      EXPECT_TRUE(*out.to_bytes() == *want.to_bytes()) << "workspace of " << byte;
    }
  }
}

/// No launch clears the words in which they do: not the next on its stream, nor one on another, nor a graph's replay.
TEST(GpuExpr, RunningSumsOfLongRowsFollowEachOther) {
  GPU_OR_SKIP(device);
  const uint64_t seed = fresh_seed();
  const Device cpu = *open_device("cpu");
  for (DType dtype : {DType::kF32, DType::kI32, DType::kI64, DType::kU8, DType::kBF16}) {
    const int64_t n = 8'400'001;
    std::vector<Tensor> inputs;
    std::vector<std::vector<std::byte>> want;
    for (uint64_t i = 0; i < 3; ++i) {
      // Of so few ones that the sums are exact in halves.
      std::mt19937 random(static_cast<uint32_t>(seed + i));
      std::vector<float> ones(static_cast<size_t>(n));
      for (int k = 0; k < 128; ++k) ones[random() % ones.size()] = 1;
      const Tensor host = *Tensor::from_host(cpu, DType::kF32, Shape{n}, ones.data(), ones.size() * 4)->to(dtype);
      want.push_back(*run(op(ExprOp::kCumSum, {host}, along(0)))->to_bytes());
      inputs.push_back(*host.to(device));
    }
    auto sums = [&](size_t i) { return run(op(ExprOp::kCumSum, {inputs[i]}, along(0))); };
    auto expect = [&](size_t i, const Tensor& got, const char* where) {
      EXPECT_TRUE(*got.to_bytes() == want[i]) << where << ", " << name(dtype) << ", input " << i;
    };
    for (size_t i : {0, 1, 2, 1}) expect(i, *sums(i), "one after the other");
    const Stream side = *device.new_stream();
    std::vector<Tensor> here, there;
    for (size_t i : {0, 1, 2}) {
      here.push_back(*sums(i));
      StreamGuard guard(side);
      there.push_back(*sums(2 - i));
    }
    ASSERT_OK(device.synchronize());
    for (size_t i : {0, 1, 2}) expect(i, here[i], "beside a stream"), expect(2 - i, there[i], "on a stream");
    Tensor of_graph;
    const auto graph = Graph::capture(device, [&]() -> Status {
      KILN_TRY(of_graph, sums(1));
      return {};
    });
    ASSERT_TRUE(graph.ok()) << graph.error().message;
    for (int again = 0; again < 3; ++again) {
      ASSERT_OK(graph->launch());
      const Tensor between = *sums(2);
      expect(1, of_graph, "in a graph"), expect(2, between, "behind a graph");
    }
  }
}

TEST(GpuExpr, LayersAgreeWithFloat64) {
  GPU_OR_SKIP(device);
  const uint64_t seed = fresh_seed();
  check_variants("gelu bf16", gelu_layer(device, 512, 1024, 768, DType::kBF16, seed, ExprOp::kGelu));
  check_variants("gelu f16 odd", gelu_layer(device, 333, 257, 129, DType::kF16, seed, ExprOp::kGelu));
  check_variants("tanh gelu bf16", gelu_layer(device, 1024, 512, 640, DType::kBF16, seed, ExprOp::kGeluTanh));
  check_variants("relu f32", gelu_layer(device, 200, 300, 136, DType::kF32, seed, ExprOp::kRelu));
  check_variants("gelu bf16 4096", gelu_layer(device, 4096, 4096, 4096, DType::kBF16, seed, ExprOp::kGelu));
}

/// Rows that begin within sectors: two blocks of a cluster share each tile's columns.
TEST(GpuExpr, ProductsOfClustersAgreeWithFloat64) {
  GPU_OR_SKIP(device);
  const uint64_t seed = fresh_seed();
  struct Case {
    DType dtype;
    Shape x, w;
  };
  int clusters = 0;
  for (const Case& c :
       {Case{DType::kBF16, {2040, 1000}, {1000, 2056}}, Case{DType::kF16, {3000, 344}, {344, 2056}},
        Case{DType::kBF16, {3, 776, 648}, {3, 648, 1288}}, Case{DType::kI8, {2032, 1040}, {1040, 2064}}}) {
    const Tensor x = c.dtype == DType::kI8 ? *randint(device, c.dtype, c.x, -9, 9, seed)
                                           : *randn(device, c.dtype, c.x, seed),
                 w = c.dtype == DType::kI8 ? *randint(device, c.dtype, c.w, -9, 9, seed)
                                           : *randn(device, c.dtype, c.w, seed);
    Shape result = c.x;
    result.back() = c.w.back();
    const Tensor residual = *randn(device, DType::kBF16, result, seed + 1),
                 b = *randn(device, DType::kF32, Shape{result.back()}, seed + 2);
    const Expr product = op(ExprOp::kMatMul, {x, w});
    const std::string what = std::string(name(c.dtype)) + " clusters of " + std::to_string(result.back());
    auto planned = plan(product);
    ASSERT_TRUE(planned.ok()) << render(planned.error());
    clusters += static_cast<int>(std::ranges::count(planned->groups, 2, &ExprGroup::num_ctas));
    check_variants(what.c_str(), product);
    check_variants((what + " with an epilogue").c_str(),
                   op(ExprOp::kAdd, {op(ExprOp::kTanh, {op(ExprOp::kAdd, {product, b})}), residual}));
  }
  EXPECT_GE(clusters, 2);
}

/// Tiles of 64 rows with a second sum, whose products stay in flight, and of two blocks that share one side.
TEST(GpuExpr, TilesOfTwoSumsAgreeWithFloat64) {
  GPU_OR_SKIP(device);
  const uint64_t seed = fresh_seed();
  for (const auto& [m, k, n] : {std::tuple<int64_t, int64_t, int64_t>{714, 72, 1728},
                                {285, 72, 4352},
                                {624, 136, 3520},
                                {991, 72, 2240},
                                {902, 520, 1680},
                                {766, 264, 1752}}) {
    const Tensor x = *randn(device, DType::kBF16, Shape{m, k}, seed),
                 w = *randn(device, DType::kBF16, Shape{k, n}, seed + 1),
                 b = *randn(device, DType::kBF16, Shape{n}, seed + 2);
    const Expr product = op(ExprOp::kMatMul, {x, w});
    const std::string what = "columns in two sums, " + std::to_string(m) + " rows";
    check_variants(what.c_str(), product);
    check_variants((what + " with an epilogue").c_str(), op(ExprOp::kGelu, {op(ExprOp::kAdd, {product, b})}));
  }
}

/// A gate and what it gates share a kernel: in tiles with and without a second sum, of clusters, of a batch, of few
/// tiles with a long k.
TEST(GpuExpr, GatesAgreeWithFloat64) {
  GPU_OR_SKIP(device);
  const uint64_t seed = fresh_seed();
  struct Case {
    DType dtype;
    Shape x, w;
  };
  for (const Case& c : {Case{DType::kBF16, {408, 648}, {648, 2680}}, Case{DType::kF16, {1601, 64}, {64, 1288}},
                        Case{DType::kBF16, {2040, 1000}, {1000, 2056}}, Case{DType::kBF16, {5, 404, 72}, {5, 72, 1000}},
                        Case{DType::kBF16, {200, 1024}, {1024, 4096}}, Case{DType::kBF16, {130, 2056}, {2056, 264}},
                        Case{DType::kF16, {33, 2104}, {2104, 1032}}, Case{DType::kBF16, {7, 2056}, {2056, 2104}}}) {
    const Tensor x = *randn(device, c.dtype, c.x, seed), gate = *randn(device, c.dtype, c.w, seed + 1),
                 value = *randn(device, c.dtype, c.w, seed + 2);
    check_variants(
        (std::string(name(c.dtype)) + " gates of " + std::to_string(c.w.back())).c_str(),
        op(ExprOp::kMul, {op(ExprOp::kSilu, {op(ExprOp::kMatMul, {x, gate})}), op(ExprOp::kMatMul, {x, value})}));
  }
}

TEST(GpuExpr, RowsAndChainsAgreeWithFloat64) {
  GPU_OR_SKIP(device);
  const uint64_t seed = fresh_seed();
  for (DType dtype : {DType::kF32, DType::kBF16})
    for (Shape shape : {Shape{67, 1000}, Shape{512, 8192}, Shape{8, 40001}}) {
      Tensor x = *randn(device, dtype, shape, seed), scale = *randn(device, dtype, Shape{shape[1]}, seed + 1);
      const Expr chain = op(
          ExprOp::kMul, {op(ExprOp::kTanh, {op(ExprOp::kAdd, {op(ExprOp::kMul, {x, scale}), Expr::scalar(0.5)})}), x});
      check_variants("chain", chain);
      check_variants("softmax", op(ExprOp::kSoftmax, {chain}, along(1)));
      check_variants("layer_norm", op(ExprOp::kLayerNorm, {chain, scale, scale}, along(1)));
      check_variants("rms_norm", op(ExprOp::kRmsNorm, {chain, scale}, along(1)));
      check_variants("mean of columns", op(ExprOp::kMean, {chain}, along(0)));
      check_variants("minus its mean", op(ExprOp::kSub, {chain, op(ExprOp::kMean, {chain}, along(1, true))}));
    }
}

/// Parts with means of their own, of lengths that they divide or not; large values that are computed again.
TEST(GpuExpr, VariancesAgreeWithFloat64) {
  GPU_OR_SKIP(device);
  const uint64_t seed = fresh_seed();
  for (auto [shape, axis] : {std::pair{Shape{23578, 64}, 0}, std::pair{Shape{3, 100003}, 1},
                             std::pair{Shape{640, 24}, 0}, std::pair{Shape{2003, 1000}, 0}}) {
    const Expr x(*randn(device, DType::kF32, shape, seed));
    const Expr moved = op(ExprOp::kAdd, {x, Expr::scalar(20.0)});
    check_variants("variance", op(ExprOp::kVar, {x}, along(axis)));
    check_variants("variance of a sum", op(ExprOp::kVar, {moved}, along(axis)));
  }
  const Expr u(*randn(device, DType::kF32, Shape{81, 200000}, seed)),
      c(*randn(device, DType::kF32, u.shape(), seed + 1));
  const Expr y = op(ExprOp::kAdd, {u, op(ExprOp::kMul, {op(ExprOp::kSub, {c, u}), Expr::scalar(7.5)})});
  check_variants("rescaled", op(ExprOp::kDiv, {y, op(ExprOp::kSqrt, {op(ExprOp::kVar, {y}, along(1, true))})}));
}

/// Parts of columns are added up by whichever program of those with the same columns ends last, in one order.
TEST(GpuExpr, ColumnsInPartsAgreeWithFloat64) {
  GPU_OR_SKIP(device);
  const uint64_t seed = fresh_seed();
  ExprAttributes turned;
  turned.axes = {1, 0};
  for (DType dtype : {DType::kF32, DType::kBF16})
    for (const Shape& shape : {Shape{2142, 512}, Shape{1027, 131}, Shape{9001, 37}, Shape{701, 4097}}) {
      const Tensor x = *randn(device, dtype, shape, seed);
      const std::string of = "[" + std::to_string(shape[0]) + ", " + std::to_string(shape[1]) + "]";
      const Expr e = op(ExprOp::kExp, {x}), t = op(ExprOp::kPermute, {e}, turned);
      const Expr sum = op(ExprOp::kSum, {e}, along(0)), half = op(ExprOp::kMul, {sum, Expr::scalar(0.5)});
      check_variants(("halved sums of columns " + of).c_str(), half);
      check_variants(("sums of transposed rows " + of).c_str(), op(ExprOp::kSum, {t}, along(1)));
      check_variants(("maxima of columns " + of).c_str(), op(ExprOp::kMax, {e}, along(0)));
      check_variants(("variances of columns " + of).c_str(), op(ExprOp::kVar, {e}, along(0)));
      Expr q = t;
      for (int axis : {1, 0, 1, 0}) q = op(ExprOp::kDiv, {q, op(ExprOp::kSum, {q}, along(axis, true))});
      check_variants(("balanced " + of).c_str(), op(ExprOp::kPermute, {q}, turned));
      const Tensor first = *run(half);
      for (int again = 0; again < 20; ++again) {
        const Tensor next =
            *run(op(ExprOp::kMul, {op(ExprOp::kSum, {op(ExprOp::kExp, {x})}, along(0)), Expr::scalar(0.5)}));
        ASSERT_TRUE(*first.to_bytes() == *next.to_bytes()) << of << ": one order of additions";
      }
    }
}

/// Kernels of a plan begin early, in memory and with counters that the kernels before them use as well: what one of
/// them does too soon shows as other bits. Each time the same plan is run, whose results are compared without another
/// one: a comparison in the plan would change its last kernel, and with it the order of its sums.
TEST(GpuExpr, EarlyLaunchesReuseMemoryInOrder) {
  GPU_OR_SKIP(device);
  const uint64_t seed = fresh_seed();
  ExprAttributes turned;
  turned.axes = {1, 0};
  for (const Shape& shape : {Shape{2142, 512}, Shape{1027, 131}, Shape{9001, 37}, Shape{701, 4097}, Shape{333, 1001}})
    for (bool back : {false, true}) {
      const Tensor x = *randn(device, DType::kF32, shape, seed);
      auto balanced = [&] {
        Expr q = op(ExprOp::kPermute, {op(ExprOp::kExp, {x})}, turned);
        for (int axis : {1, 0, 1, 0, 1, 0}) q = op(ExprOp::kDiv, {q, op(ExprOp::kSum, {q}, along(axis, true))});
        q = op(ExprOp::kMul, {q, Expr::scalar(static_cast<double>(shape[0]))});
        return back ? op(ExprOp::kPermute, {q}, turned) : q;
      };
      const std::string of =
          "balanced [" + std::to_string(shape[0]) + ", " + std::to_string(shape[1]) + "]" + (back ? " turned" : "");
      check_variants(of.c_str(), balanced());
      constexpr int kTimes = 50;
      std::vector<Tensor> results;  // of launches that nobody waits for in between
      for (int time = 0; time < kTimes; ++time) results.push_back(*run(balanced()));
      const auto first = *results[0].to_bytes();
      for (int time = 1; time < kTimes; ++time) ASSERT_TRUE(first == *results[time].to_bytes()) << of << ": " << time;
    }
}

/// Of a layer with a norm before it: each gradient is a plan with the forward in it.
TEST(GpuExpr, GradientsAgreeWithFloat64) {
  GPU_OR_SKIP(device);
  const uint64_t seed = fresh_seed();
  for (DType dtype : {DType::kF32, DType::kBF16}) {
    const Expr x(*randn(device, dtype, Shape{333, 256}, seed)), w(*randn(device, dtype, Shape{256, 200}, seed + 1)),
        b(*randn(device, dtype, Shape{200}, seed + 2)), scale(*randn(device, dtype, Shape{256}, seed + 3));
    const Expr normal = op(ExprOp::kRmsNorm, {x, scale}, along(1));
    const Expr scores = op(ExprOp::kAdd, {op(ExprOp::kMatMul, {normal, w}), b});
    const Expr y = op(ExprOp::kMul, {op(ExprOp::kSoftmax, {scores}, along(1)), op(ExprOp::kGelu, {scores})});
    const Expr inputs[] = {x, w, b, scale};
    auto found = gradients(op(ExprOp::kSum, {y}), inputs);
    ASSERT_TRUE(found.ok()) << found.error().message;
    for (const Expr& g : *found) check_variants("gradient", g);
  }
}

TEST(GpuExpr, ScatterAddAgreesWithFloat64) {
  GPU_OR_SKIP(device);
  const uint64_t seed = fresh_seed();
  struct Case {
    Shape values, places, result;
    int axis;
  };
  const Case cases[] = {{{3000, 40}, {3000, 1}, {77, 40}, 0},     {{5, 2000}, {5, 2000}, {5, 300}, 1},
                        {{2, 900, 3}, {900, 1}, {2, 50, 3}, 1},   {{4, 512, 1000}, {4, 512, 1}, {9000, 1, 1000}, 0},
                        {{200000}, {200000}, {100000}, 0},        {{4000}, {4000}, {3}, 0},
                        {{8, 64, 1024}, {64, 1}, {8, 7, 1024}, 1}};
  for (DType dtype : {DType::kF32, DType::kBF16, DType::kF64})
    for (const Case& c : cases) {
      const Tensor values = *randn(device, dtype, c.values, seed);
      const Tensor places = *randint(device, DType::kI64, c.places, 0, c.result[static_cast<size_t>(c.axis)], seed);
      ExprAttributes a = along(c.axis);
      a.shape = c.result;
      const Expr e = op(ExprOp::kScatterAdd, {op(ExprOp::kMul, {values, Expr::scalar(0.75)}), places}, a);
      const auto expected = reference(e);
      ASSERT_TRUE(expected.ok()) << expected.error().message;
      const auto result = run(e);
      ASSERT_TRUE(result.ok()) << result.error().message;
      const auto error = compare(*expected, *result);
      ASSERT_TRUE(error.ok()) << error.error().message;
      EXPECT_TRUE(error->ok()) << name(dtype) << " element " << error->first_bad << " is " << error->got << ", not "
                               << error->expected;
    }
}

TEST(GpuExpr, RunsDoNotWaitAndFindTheirPlans) {
  GPU_OR_SKIP(device);
  Tensor x = *randn(device, DType::kF32, Shape{1 << 20}, 1), y = *randn(device, DType::kF32, Shape{1 << 20}, 2);
  auto expression = [&](const Tensor& t) { return op(ExprOp::kExp, {op(ExprOp::kMul, {t, Expr::scalar(0.5)})}); };
  ASSERT_TRUE(run(expression(x)).ok());
  const ExprCacheStats before = expr_cache_stats(device);
  Tensor result = *run(expression(y));
  EXPECT_EQ(expr_cache_stats(device).planned, before.planned);
  EXPECT_NEAR(result.to_doubles()->at(77), std::exp(0.5 * y.to_doubles()->at(77)), 1e-5);
}

}  // namespace
}  // namespace kiln::runtime
