// A value depends on its operations alone: not on how many elements there are, on what is computed in between, or on
// whether a kernel or the host computes it.
#include <fmt/format.h>

#include <cmath>
#include <cstdlib>

#include "compiler/fusion/graph.h"
#include "tests/unit/runtime/expr/expr_test_util.h"

namespace kiln {
namespace {

constexpr DType kDTypes[] = {DType::kF32,  DType::kF32, DType::kF16, DType::kBF16, DType::kF16,
                             DType::kBF16, DType::kF64, DType::kI8,  DType::kU8,   DType::kI16,
                             DType::kI32,  DType::kI64, DType::kI1,  DType::kU16,  DType::kU32};
constexpr double kNumbers[] = {0.1, 300.0, -3.0, 2.5, 1e5, -0.7, 0.0, 1.0, 1.0 / 3, 7.0, 65504.0, -1e-3};
constexpr int64_t kIntegers[] = {1, 2, 3, -1, 7, 100, 300, -129, 1000003};

/// One step of a program: an operation on earlier values.
struct Step {
  ExprOp op;
  std::vector<int> operands;  // values; negative: number -1 - i
  ExprAttributes attributes;
};

struct Program {
  std::vector<std::pair<DType, std::vector<double>>> inputs;
  std::vector<std::variant<bool, int64_t, double>> numbers;
  std::vector<Step> steps;
  Shape shape;
};

class Writer {
 public:
  Writer(uint64_t seed, Shape shape, bool reduces) : random_(seed), reduces_(reduces) { p_.shape = std::move(shape); }

  Program write(int steps) {
    for (int i = 0; i < 3; ++i) input();
    for (int tries = 0; static_cast<int>(p_.steps.size()) < steps && tries < 20 * steps; ++tries) step();
    return std::move(p_);
  }

 private:
  template <class T, size_t N>
  const T& any(const T (&list)[N]) {
    return list[random_() % N];
  }

  void input() {
    const DType t = any(kDTypes);
    std::vector<double> v(static_cast<size_t>(fusion::numel(p_.shape)));
    std::normal_distribution<double> normal(0, is_float(t) ? 3 : 60);
    for (double& x : v) x = is_float(t) ? normal(random_) : std::trunc(normal(random_));
    if (is_float(t) && random_() % 3 == 0) {
      const double odd[] = {NAN, INFINITY, -INFINITY, -0.0, 65504, 3e9, 1e-40, -3e38, 0.5};
      for (double o : odd) v[random_() % v.size()] = o;
    }
    p_.inputs.emplace_back(t, v);
    made_.push_back(*Tensor::zeros(cpu(), t, p_.shape));
  }

  int number() {
    if (random_() % 2)
      p_.numbers.emplace_back(any(kNumbers));
    else
      p_.numbers.emplace_back(any(kIntegers));
    return -static_cast<int>(p_.numbers.size());
  }

  int value() {  // rather a late one
    const auto n = made_.size();
    return static_cast<int>(random_() % 2 ? n - 1 - random_() % std::min<size_t>(n, 3) : random_() % n);
  }

  void step() {
    static constexpr ExprOp kOps[] = {
        ExprOp::kAdd,     ExprOp::kSub,       ExprOp::kMul,     ExprOp::kDiv,        ExprOp::kAdd,
        ExprOp::kMul,     ExprOp::kSub,       ExprOp::kDiv,     ExprOp::kCast,       ExprOp::kCast,
        ExprOp::kCast,    ExprOp::kFloorDiv,  ExprOp::kMod,     ExprOp::kPow,        ExprOp::kNeg,
        ExprOp::kAbs,     ExprOp::kMaximum,   ExprOp::kMinimum, ExprOp::kClamp,      ExprOp::kEq,
        ExprOp::kNe,      ExprOp::kLt,        ExprOp::kGe,      ExprOp::kWhere,      ExprOp::kBitAnd,
        ExprOp::kBitXor,  ExprOp::kShl,       ExprOp::kShr,     ExprOp::kIsNan,      ExprOp::kExp,
        ExprOp::kLog,     ExprOp::kSqrt,      ExprOp::kRsqrt,   ExprOp::kReciprocal, ExprOp::kTanh,
        ExprOp::kSigmoid, ExprOp::kSilu,      ExprOp::kGelu,    ExprOp::kRelu,       ExprOp::kFloor,
        ExprOp::kRound,   ExprOp::kTrunc,     ExprOp::kSin,     ExprOp::kErf,        ExprOp::kExp2,
        ExprOp::kLog1p,   ExprOp::kLogicalOr, ExprOp::kBitNot,  ExprOp::kGeluTanh,   ExprOp::kRandomWord};
    static constexpr ExprOp kReductions[] = {ExprOp::kSum,     ExprOp::kMean, ExprOp::kMax,   ExprOp::kSoftmax,
                                             ExprOp::kRmsNorm, ExprOp::kVar,  ExprOp::kCumSum};
    Step s{reduces_ && random_() % 5 == 0 ? any(kReductions) : any(kOps), {}, {}};
    const ExprKind kind = info(s.op).kind;
    if (kind != ExprKind::kPointwise) {
      s.attributes.axes = {static_cast<int>(p_.shape.size()) - 1};
      s.attributes.keepdim = true;
      s.attributes.eps = 1e-5;
    }
    if (s.op == ExprOp::kCast) s.attributes.dtype = any(kDTypes);
    const int arity = info(s.op).arity < 0 ? 1 : info(s.op).arity;
    for (int i = 0; i < arity; ++i) s.operands.push_back(i > 0 && random_() % 2 ? number() : value());
    if (s.op == ExprOp::kSub && random_() % 4 == 0 && s.operands[1] < 0) std::swap(s.operands[0], s.operands[1]);
    std::vector<Expr> operands;
    for (int o : s.operands)
      operands.push_back(o < 0 ? Expr::scalar(p_.numbers[static_cast<size_t>(-1 - o)]) : made_[static_cast<size_t>(o)]);
    auto e = apply(s.op, operands, s.attributes);
    if (!e.ok()) return;  // refused, as torch refuses it
    p_.steps.push_back(std::move(s));
    made_.push_back(*e);
  }

  std::mt19937_64 random_;
  const bool reduces_;
  Program p_;
  std::vector<Expr> made_;
};

std::vector<Expr> leaves(const Program& p, int64_t copies) {
  std::vector<Expr> out;
  for (const auto& [dtype, values] : p.inputs) {
    std::vector<double> all;
    for (int64_t i = 0; i < copies; ++i) all.insert(all.end(), values.begin(), values.end());
    Shape shape = p.shape;
    shape[0] *= copies;
    const Tensor wide = *Tensor::from_host(cpu(), DType::kF64, shape, all.data(), all.size() * sizeof(double));
    out.emplace_back(*wide.to(dtype));
  }
  return out;
}

enum class How { kLazy, kLazyOfMany, kUnfused, kEachByKernel, kSomeByKernel, kHost };

/// The last value, computed in one of the ways.
Tensor carried_out(const Program& p, How how, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<Expr> all = leaves(p, how == How::kLazyOfMany ? 4096 / fusion::numel(p.shape) + 2 : 1);
  for (const Step& s : p.steps) {
    std::vector<Expr> operands;
    for (int o : s.operands)
      operands.push_back(o < 0 ? Expr::scalar(p.numbers[static_cast<size_t>(-1 - o)]) : all[static_cast<size_t>(o)]);
    auto e = apply(s.op, operands, s.attributes);
    KILN_ASSERT(e.ok(), "{}", e.error().message);
    if (how == How::kHost) {
      all.emplace_back(*run_on_host(*e));
      continue;
    }
    // What is printed is computed, and is a tensor from then on.
    if (how == How::kEachByKernel || (how == How::kSomeByKernel && random() % 2)) {
      auto t = run(*e);
      KILN_ASSERT(t.ok(), "{}", t.error().message);
    }
    all.push_back(*e);
  }
  auto t = run(all.back(), how == How::kUnfused ? ExprVariant::kUnfused : ExprVariant::kFused);
  KILN_ASSERT(t.ok(), "{}", t.error().message);
  return *t;
}

/// Element by element, the copies beyond the first among them; a NaN is any other, but 0 is not -0.
void expect_same(const Tensor& want, const Tensor& got, const std::string& what) {
  ASSERT_EQ(want.dtype(), got.dtype());
  if (want.dtype() == DType::kI64) {  // beyond what doubles hold
    const auto a = *want.to_bytes(), b = *got.to_bytes();
    for (size_t i = 0; i < b.size(); ++i) ASSERT_EQ(a[i % a.size()], b[i]) << what << ": element " << i / 8;
    return;
  }
  const std::vector<double> a = *want.to_doubles(), b = *got.to_doubles();
  for (size_t i = 0; i < b.size(); ++i) {
    const double x = a[i % a.size()], y = b[i];
    if (std::isnan(x) && std::isnan(y)) continue;
    ASSERT_TRUE(x == y && std::signbit(x) == std::signbit(y))
        << what << ": element " << i << " is " << fmt::format("{} and {}", x, y);
  }
}

std::string text_of(const Program& p) {
  std::string out;
  int n = 0;
  for (const auto& [dtype, values] : p.inputs) out += fmt::format("v{} = {}\n", n++, name(dtype));
  for (const Step& s : p.steps) {
    out += fmt::format("v{} = {}", n++, name(s.op));
    for (int o : s.operands)
      out += o >= 0 ? fmt::format(" v{}", o)
                    : std::visit([](auto v) { return fmt::format(" {}", v); }, p.numbers[static_cast<size_t>(-1 - o)]);
    out += s.attributes.dtype ? fmt::format(" to {}\n", name(*s.attributes.dtype)) : "\n";
  }
  return out;
}

uint64_t first_seed() {
  const char* given = std::getenv("KILN_FUZZ_SEED");
  return given ? std::strtoull(given, nullptr, 10) : fresh_seed() % 1000000;
}
int rounds(int usual) {
  const char* given = std::getenv("KILN_FUZZ_COUNT");
  return given ? std::atoi(given) : usual;
}

TEST(ExprValues, OfElementsAreTheSameHoweverTheyAreComputed) {
  const uint64_t first = first_seed();
  for (int i = 0; i < rounds(16) && !HasFailure(); ++i) {
    const uint64_t seed = first + static_cast<uint64_t>(i);
    const Program p = Writer(seed, {67}, false).write(9);
    SCOPED_TRACE(fmt::format("KILN_FUZZ_SEED={}\n{}", seed, text_of(p)));
    const Tensor want = carried_out(p, How::kHost, seed);
    expect_same(want, carried_out(p, How::kLazy, seed), "fused");
    expect_same(want, carried_out(p, How::kUnfused, seed), "unfused");
    expect_same(want, carried_out(p, How::kSomeByKernel, seed), "some of it computed on the way");
    expect_same(want, carried_out(p, How::kLazyOfMany, seed), "of many elements");
  }
}

TEST(ExprValues, OfRowsAreTheSameWhatEverIsComputedOnTheWay) {
  const uint64_t first = first_seed();
  for (int i = 0; i < rounds(10) && !HasFailure(); ++i) {
    const uint64_t seed = first + static_cast<uint64_t>(i);
    const Program p = Writer(seed, {5, 33 + static_cast<int64_t>(seed % 400)}, true).write(8);
    SCOPED_TRACE(fmt::format("KILN_FUZZ_SEED={}\n{}", seed, text_of(p)));
    const Tensor want = carried_out(p, How::kEachByKernel, seed);
    expect_same(want, carried_out(p, How::kLazy, seed), "fused");
    expect_same(want, carried_out(p, How::kSomeByKernel, seed), "some of it computed on the way");
  }
}

// The product at a helper's end must not become part of an fma.
TEST(ExprValues, OfFunctionsThatAreAddedAreTheSame) {
  const Tensor x = random_tensor({5, 413}, fresh_seed(), DType::kF64);
  for (ExprOp which : {ExprOp::kGelu, ExprOp::kGeluTanh, ExprOp::kSilu, ExprOp::kSigmoid, ExprOp::kTanh}) {
    auto added = [&](bool prints) {
      const Expr y = op(which, {x});
      if (prints) {
        EXPECT_TRUE(run(y).ok());
      }
      return *run(op(ExprOp::kSub, {y, Expr::scalar(3.0)}));
    };
    expect_same(added(true), added(false), std::string(name(which)));
  }
}

TEST(ExprValues, OfProductsAreTheSameWhatEverIsComputedOnTheWay) {
  const uint64_t seed = fresh_seed();
  for (DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
    const Tensor x = random_tensor({70, 48}, seed, dtype), w = random_tensor({48, 33}, seed + 1, dtype),
                 b = random_tensor({33}, seed + 2, dtype);
    auto layer = [&](bool prints) {
      std::vector<Expr> made = {op(ExprOp::kMul, {x, Expr::scalar(0.1)})};
      auto then = [&](ExprOp which, std::initializer_list<Expr> operands) {
        if (prints) {
          EXPECT_TRUE(run(made.back()).ok());
        }
        made.push_back(op(which, operands));
      };
      then(ExprOp::kMatMul, {made.back(), w});
      then(ExprOp::kMul, {made.back(), Expr::scalar(1.7)});
      then(ExprOp::kAdd, {made.back(), b});
      then(ExprOp::kGelu, {made.back()});
      return *run(made.back());
    };
    expect_same(layer(true), layer(false), std::string(name(dtype)));
  }
}

// Beyond the integers of its type a float has no value in C++, and x86 and CUDA differ: it saturates.
TEST(ExprValues, FloatsBecomeIntegersOneWay) {
  const double v[] = {300, -1, -129, 200, 3e9, -3e9, 5e9, 1e20, -1e20, INFINITY, -INFINITY, NAN, -0.9, 70000, -70000};
  struct Row {
    DType to;
    std::vector<double> want;
  };
  const Row rows[] = {
      {DType::kI8, {44, -1, 127, -56, -1, 0, -1, -1, 0, -1, 0, 0, 0, 112, -112}},
      {DType::kU8, {44, 255, 127, 200, 0, 0, 0, 255, 0, 255, 0, 0, 0, 112, 144}},
      {DType::kI16, {300, -1, -129, 200, -1, 0, -1, -1, 0, -1, 0, 0, 0, 4464, -4464}},
      {DType::kI32,
       {300, -1, -129, 200, 0x1p31 - 1, -0x1p31, 0x1p31 - 1, 0x1p31 - 1, -0x1p31, 0x1p31 - 1, -0x1p31, 0, 0, 70000,
        -70000}},
      {DType::kI64, {300, -1, -129, 200, 3e9, -3e9, 5e9, 0x1p63, -0x1p63, 0x1p63, -0x1p63, 0, 0, 70000, -70000}},
      {DType::kI1, {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}},
  };
  for (const Row& row : rows)
    for (int64_t copies : {1, 400}) {
      std::vector<double> all;
      for (int64_t i = 0; i < copies; ++i) all.insert(all.end(), std::begin(v), std::end(v));
      const auto n = static_cast<int64_t>(all.size());
      for (DType from : {DType::kF64, DType::kF32}) {
        const Tensor x = *Tensor::from_host(cpu(), DType::kF64, Shape{n}, all.data(), all.size() * 8)->to(from);
        ExprAttributes as;
        as.dtype = row.to;
        const Tensor results[] = {*x.to(row.to), *run(op(ExprOp::kCast, {x}, as)),
                                  *run_on_host(op(ExprOp::kCast, {x}, as))};
        for (const Tensor& t : results) {
          const std::vector<double> got = *t.to_doubles();
          for (size_t i = 0; i < got.size(); ++i)
            ASSERT_EQ(got[i], row.want[i % std::size(v)])
                << name(from) << " " << v[i % std::size(v)] << " to " << name(row.to);
        }
      }
    }
}

// The numbers of the issue: a product with 0.1 is rounded as float32 arithmetic rounds it.
TEST(ExprValues, NumbersAreOfTheTypeThatComputes) {
  const Tensor x = random_tensor({1024}, fresh_seed()), h = *x.to(DType::kF16);
  const std::vector<double> in = *x.to_doubles(), halves = *h.to_doubles(),
                            out = numbers(run_on_host(op(ExprOp::kMul, {x, Expr::scalar(0.1)}))),
                            compared = numbers(run_on_host(op(ExprOp::kLe, {h, Expr::scalar(0.1)})));
  double rounded = 0;
  std::byte bits[2];
  from_double(DType::kF16, 0.1, bits);
  rounded = to_double(DType::kF16, bits);
  for (size_t i = 0; i < in.size(); ++i) {
    EXPECT_EQ(out[i], static_cast<float>(in[i]) * 0.1f);
    EXPECT_EQ(compared[i] != 0, halves[i] <= rounded) << "a comparison is one in the tensor's dtype";
  }
}

// With KILN_EXACT=0 halves stay float32 within a kernel, but not where they are converted, reduced or stored.
TEST(ExprValues, HalvesMayKeepTheirDigitsWithinAKernel) {
  const uint64_t seed = fresh_seed();
  const Tensor x = random_tensor({5000}, seed, DType::kBF16), y = random_tensor({5000}, seed + 1, DType::kBF16);
  const std::vector<double> a = *x.to_doubles(), b = *y.to_doubles();
  auto sums = [&] { return numbers(run(op(ExprOp::kAdd, {op(ExprOp::kMul, {x, Expr::scalar(0.7)}), y}))); };
  auto half = [](double v) {
    std::byte bits[2];
    from_double(DType::kBF16, v, bits);
    return to_double(DType::kBF16, bits);
  };
  const std::vector<double> exact = sums();
  ExprAttributes single;
  single.dtype = DType::kF32;
  const Tensor w = *Tensor::full(cpu(), DType::kF16, Shape{5000}, 300);
  setenv("KILN_EXACT", "0", 1);
  const std::vector<double> loose = sums(),
                            large =
                                numbers(run(op(ExprOp::kCast, {op(ExprOp::kMul, {w, Expr::scalar(300.0)})}, single))),
                            total = numbers(run(op(ExprOp::kSum, {op(ExprOp::kMul, {w, Expr::scalar(300.0)})})));
  const Expr chain = op(ExprOp::kAdd, {op(ExprOp::kMul, {x, Expr::scalar(0.7)}), y});
  auto expected = reference(chain);
  auto error = compare(*expected, *run(chain));
  unsetenv("KILN_EXACT");
  EXPECT_TRUE(error->ok());
  int apart = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const float product = static_cast<float>(a[i]) * 0.7f;
    EXPECT_EQ(exact[i], half(static_cast<float>(half(product)) + static_cast<float>(b[i])));
    const double fused = a[i] * static_cast<double>(0.7f) + b[i];
    EXPECT_EQ(loose[i], half(static_cast<float>(fused))) << "rounded to bfloat16 once";
    apart += exact[i] != loose[i];
  }
  EXPECT_GT(apart, 100);
  EXPECT_EQ(large[0], INFINITY);
  EXPECT_EQ(total[0], INFINITY);
}

TEST(ExprValues, GeluOfInfinitiesIsAsInPyTorch) {
  // -inf * Phi(-inf) is no number, in each type and however many elements there are.
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16, DType::kF64})
    for (const ExprOp kind : {ExprOp::kGelu, ExprOp::kGeluTanh})
      for (const size_t n : {size_t{4}, size_t{5000}}) {
        std::vector<double> x(n, -INFINITY);
        x[0] = INFINITY, x[1] = NAN, x[2] = -30000;
        ExprAttributes as;
        as.dtype = dtype;
        const Tensor input =
            *Tensor::from_host(cpu(), DType::kF64, Shape{static_cast<int64_t>(n)}, x.data(), 8 * x.size());
        const std::vector<double> y = numbers(run(op(kind, {op(ExprOp::kCast, {input}, as)})));
        EXPECT_EQ(y[0], INFINITY);
        EXPECT_TRUE(std::isnan(y[1]) && std::isnan(y[3]) && std::isnan(y.back())) << name(dtype) << " of " << n;
        EXPECT_NEAR(y[2], 0, 1e-10) << name(dtype);
      }
}

}  // namespace
}  // namespace kiln
