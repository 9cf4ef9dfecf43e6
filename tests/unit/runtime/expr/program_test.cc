// Expressions on the caller's memory.
#include "kiln/expr_program.h"

#include <thread>

#include "kiln/interop.h"
#include "tests/unit/runtime/expr/expr_test_util.h"

namespace kiln {
namespace {

/// Memory that the test owns, as the caller's tensors are.
struct Memory {
  explicit Memory(int64_t bytes) : words(static_cast<size_t>(bytes / 8 + 8)) {}
  uint64_t address() { return (reinterpret_cast<uint64_t>(words.data()) + 15) / 16 * 16; }
  std::vector<uint64_t> words;
};

std::vector<float> launched(const ExprProgram& program, std::span<const Tensor> inputs, size_t output = 0) {
  std::vector<uint64_t> in, out;
  for (const Tensor& t : inputs) in.push_back(t.address());
  std::vector<Memory> buffers;
  for (int64_t bytes : program.buffer_bytes()) buffers.emplace_back(bytes);
  for (Memory& m : buffers) out.push_back(m.address());
  Memory workspace(program.workspace_bytes());
  const Status status = program.launch(in, out, workspace.address());
  KILN_ASSERT(status.ok(), "{}", status.ok() ? "" : status.error().message);
  const ExprProgram::Output& o = program.outputs()[output];
  int64_t elements = 1;
  for (int64_t n : o.shape) elements *= n;
  const auto* first = reinterpret_cast<const float*>(out[static_cast<size_t>(o.buffer)]) + o.offset;
  return {first, first + elements};
}

std::vector<float> floats(const Result<Tensor>& t) {
  const std::vector<double> values = numbers(t);
  return {values.begin(), values.end()};
}

TEST(ExprProgram, RunsOnOtherMemoryOfTheSameLayout) {
  const Tensor x = random_tensor({33, 70}, 1), w = random_tensor({70, 20}, 2), b = random_tensor({20}, 3);
  auto layer = [](const Expr& rows, const Expr& weight, const Expr& bias) {
    return op(ExprOp::kSoftmax, {op(ExprOp::kAdd, {op(ExprOp::kMatMul, {rows, weight}), bias})}, along({1}));
  };
  const Expr inputs[] = {x, w, b}, outputs[] = {layer(inputs[0], inputs[1], inputs[2])};
  const auto program = ExprProgram::make(inputs, outputs);
  ASSERT_TRUE(program.ok()) << program.error().message;
  EXPECT_GE(program->kernels(), 1);
  EXPECT_NE(program->plan().text.find("matmul"), std::string::npos);
  for (uint64_t seed : {1, 10, 20}) {
    const Tensor other[] = {random_tensor({33, 70}, seed), random_tensor({70, 20}, seed + 1),
                            random_tensor({20}, seed + 2)};
    EXPECT_EQ(launched(*program, other), floats(run(layer(other[0], other[1], other[2]))));
  }
}

TEST(ExprProgram, SharesOperationsAndKeepsNumbers) {
  const Tensor x = random_tensor({8, 64}, 1), y = random_tensor({8, 64}, 2);
  const Expr inputs[] = {x, y};
  const Expr both = op(ExprOp::kMul, {inputs[0], Expr::scalar(3.25)});
  const Expr outputs[] = {op(ExprOp::kAdd, {both, inputs[1]}), op(ExprOp::kSum, {both}, along({1})), both};
  const auto program = ExprProgram::make(inputs, outputs);
  ASSERT_TRUE(program.ok()) << program.error().message;
  ASSERT_EQ(program->outputs().size(), 3u);
  const Tensor given[] = {y, x};  // the other way around
  for (size_t i = 0; i < 3; ++i) {
    const Expr again = op(ExprOp::kMul, {y, Expr::scalar(3.25)});
    const Expr want = i == 0 ? op(ExprOp::kAdd, {again, x}) : i == 1 ? op(ExprOp::kSum, {again}, along({1})) : again;
    EXPECT_EQ(launched(*program, given, i), floats(run(want))) << i;
  }
}

TEST(ExprProgram, ResultsAreMemoryOfTheirOwn) {
  const Tensor x = random_tensor({8, 16}, 1);
  const Expr inputs[] = {x};
  const Expr all = op(ExprOp::kExp, {inputs[0]});
  ExprAttributes first, same;
  first.shape = {1, 16}, first.starts = {0, 0};
  same.dtype = DType::kF32;
  const Expr outputs[] = {op(ExprOp::kCast, {op(ExprOp::kSlice, {all}, first)}, same), all};
  const auto program = ExprProgram::make(inputs, outputs);
  ASSERT_TRUE(program.ok()) << program.error().message;
  ASSERT_EQ(program->outputs().size(), 2u);
  EXPECT_NE(program->outputs()[0].buffer, program->outputs()[1].buffer);
  EXPECT_EQ(program->buffer_bytes()[static_cast<size_t>(program->outputs()[0].buffer)], 16 * 4);
}

TEST(ExprProgram, SaysWhatMayBeOverwritten) {
  const Tensor x = random_tensor({32, 64}, 1), y = random_tensor({32, 64}, 2), row = random_tensor({64}, 3);
  const Expr inputs[] = {x, y, row};
  const Expr &a = inputs[0], &b = inputs[1];
  auto over = [&](std::vector<Expr> outputs) {
    const auto program = ExprProgram::make(inputs, outputs);
    KILN_ASSERT(program.ok(), "{}", program.ok() ? "" : program.error().message);
    std::vector<std::vector<int>> found;
    for (const ExprProgram::Output& o : program->outputs()) found.push_back(o.may_overwrite);
    return found;
  };
  using Found = std::vector<std::vector<int>>;
  ExprAttributes turn, half;
  turn.axes = {1, 0};
  half.dtype = DType::kF16;
  const Expr turned = op(ExprOp::kReshape, {op(ExprOp::kPermute, {a}, turn)}, [] {
    ExprAttributes shape;
    shape.shape = {32, 64};
    return shape;
  }());
  EXPECT_EQ(over({op(ExprOp::kAdd, {a, b})}), (Found{{0, 1}}));
  const Expr sum = op(ExprOp::kAdd, {a, Expr::scalar(1.5)});
  EXPECT_EQ(over({sum, op(ExprOp::kMul, {sum, b})}), (Found{{0}, {0, 1}}));    // b is read behind the first store
  EXPECT_EQ(over({op(ExprOp::kAdd, {turned, b})})[0], (std::vector<int>{1}));  // a is read elsewhere
  EXPECT_EQ(over({op(ExprOp::kAdd, {op(ExprOp::kCast, {a}, half), b})}).size(), 1u);
  EXPECT_EQ(over({op(ExprOp::kSoftmax, {a}, along({1}))})[0], (std::vector<int>{}));  // of rows it is not known
}

TEST(ExprProgram, RunsOnSeveralThreads) {
  const Tensor x = random_tensor({64, 64}, 1);
  const Expr inputs[] = {x},
             outputs[] = {op(ExprOp::kMatMul, {op(ExprOp::kExp, {inputs[0]}), op(ExprOp::kTanh, {inputs[0]})})};
  const auto program = ExprProgram::make(inputs, outputs);
  ASSERT_TRUE(program.ok()) << program.error().message;
  const std::vector<float> want = floats(run(outputs[0]));
  std::vector<std::jthread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      for (int k = 0; k < 20; ++k) EXPECT_EQ(launched(*program, {&x, 1}), want);
    });
}

TEST(ExprProgram, SaysWhatIsWrong) {
  const Tensor x = random_tensor({4, 8}, 1), y = random_tensor({4, 8}, 2);
  const Expr a = x, b = y;
  auto problem = [](std::vector<Expr> inputs, std::vector<Expr> outputs, ExprVariant variant = ExprVariant::kFused) {
    auto made = ExprProgram::make(inputs, outputs, variant);
    EXPECT_FALSE(made.ok());
    return made.ok() ? std::string() : made.error().message;
  };
  const Expr sum = op(ExprOp::kAdd, {a, b});
  EXPECT_EQ(problem({a}, {sum}), "a tensor of the expressions is not among the inputs");
  EXPECT_EQ(problem({a, b, a}, {sum}), "an input is given twice");
  EXPECT_EQ(problem({a, sum}, {sum}), "an input of a program is a tensor");
  EXPECT_EQ(problem({a}, {}), "a program needs an output");
  EXPECT_EQ(problem({a}, {Expr::scalar(1.0)}), "only an expression with a tensor in it can be run");
  EXPECT_EQ(problem({a}, {a}), "output 0 is a view of an input: there is nothing to compute");
  EXPECT_EQ(problem({a, b}, {sum}, ExprVariant::kOpenBlas),
            "a program has kernels of Kiln's alone, no product of openblas");
  const Expr none = random_tensor({0, 8}, 3);
  EXPECT_EQ(problem({none}, {op(ExprOp::kExp, {none})}), "input of a tensor without elements has no kernel");
  const auto program = ExprProgram::make(std::vector<Expr>{a, b}, std::vector<Expr>{sum});
  ASSERT_TRUE(program.ok());
  EXPECT_EQ(program->launch({}, {}, 0).error().message, "a program got 0 inputs and 0 buffers, and has 2 and 1");
}

}  // namespace
}  // namespace kiln
