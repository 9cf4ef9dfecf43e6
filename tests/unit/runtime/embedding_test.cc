// A program as docs/embedding.md has it: include/kiln and the standard library are all it needs.
#include <gtest/gtest.h>
#include <kiln/kernel.h>
#include <kiln/runtime.h>

#include <cmath>

namespace {

constexpr const char* kSource = R"(
import triton
import triton.language as tl

@triton.jit
def scaled_add(x, y, out, n, scale, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    tl.store(out + i, tl.load(x + i, mask=mask) * scale + tl.load(y + i, mask=mask), mask=mask)
)";

kiln::Result<std::vector<double>> scaled_add(int64_t n) {
  const kiln::Runtime runtime;
  KILN_TRY(kiln::Device device, runtime.open_default());  // the first GPU, else the CPU
  KILN_TRY(kiln::Kernel kernel, kiln::Kernel::from_source(kSource, "scaled_add.py"));
  const int64_t shape[] = {n};
  KILN_TRY(kiln::Tensor x, kiln::randn(device, kiln::DType::kF32, shape, 1));
  KILN_TRY(kiln::Tensor y, kiln::randn(device, kiln::DType::kF32, shape, 2));
  KILN_TRY(kiln::Tensor out, kiln::Tensor::empty(device, kiln::DType::kF32, shape));
  const int64_t block = 1024;
  const std::optional<kiln::Arg> args[] = {x, y, out, n, 0.5, block};
  KILN_CHECK_OK(kernel.launch({(n + block - 1) / block, 1, 1}, args));
  return out.to_doubles();  // waits for the device
}

TEST(Embedding, AKernelIsCompiledAndLaunched) {
  const kiln::Runtime runtime;
  auto cpu = *runtime.open("cpu");
  for (int64_t n : {int64_t{1}, int64_t{1000}, int64_t{4096}, int64_t{100'003}}) {
    auto got = scaled_add(n);
    ASSERT_TRUE(got.ok()) << kiln::render(got.error());
    const int64_t shape[] = {n};
    auto x = *kiln::randn(cpu, kiln::DType::kF32, shape, 1)->to_doubles(),
         y = *kiln::randn(cpu, kiln::DType::kF32, shape, 2)->to_doubles();
    ASSERT_EQ(got->size(), x.size());
    for (size_t i = 0; i < x.size(); ++i)
      ASSERT_EQ((*got)[i], std::fma(static_cast<float>(x[i]), 0.5f, static_cast<float>(y[i]))) << i;
  }
}

TEST(Embedding, ErrorsAreValuesWithAPlace) {
  auto missing = kiln::Kernel::from_source(kSource, "scaled_add.py", "scaled_ad");
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().kind, kiln::ErrorKind::kName);
  EXPECT_EQ(kiln::render(missing.error()),
            "error: 'scaled_add.py' has no jit function 'scaled_ad'\n  help: did you mean 'scaled_add'?\n");
  auto syntax = kiln::Kernel::from_source("@triton.jit\ndef f(x:\n    pass\n", "broken.py");
  ASSERT_FALSE(syntax.ok());
  EXPECT_EQ(syntax.error().kind, kiln::ErrorKind::kSyntax);
  EXPECT_EQ(syntax.error().place.file, "broken.py");
  EXPECT_GT(syntax.error().place.line, 0);
  auto none = kiln::Kernel::from_source("x = 1\n", "empty.py");
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().message, "'empty.py' has no function under @triton.jit");
}

TEST(Embedding, GlobalsOfTheFileReachTheKernel) {
  const kiln::Runtime runtime;
  auto cpu = *runtime.open("cpu");
  auto kernel = kiln::Kernel::from_source(
      "import triton\nimport triton.language as tl\nFACTOR: tl.constexpr = 7\n@triton.jit\ndef helper(a):\n    return "
      "a * FACTOR\n"
      "@triton.jit\ndef f(out, a):\n    tl.store(out, helper(a))\n",
      "globals.py", "f");
  ASSERT_TRUE(kernel.ok()) << kiln::render(kernel.error());
  const int64_t shape[] = {1};
  kiln::Tensor out = *kiln::Tensor::zeros(cpu, kiln::DType::kI32, shape);
  const std::optional<kiln::Arg> args[] = {out, int64_t{6}};
  auto status = kernel->launch({1, 1, 1}, args);
  ASSERT_TRUE(status.ok()) << kiln::render(status.error());
  EXPECT_EQ(out.to_doubles()->at(0), 42);
}

}  // namespace
