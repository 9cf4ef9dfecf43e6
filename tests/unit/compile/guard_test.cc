// Guarded kernels for every target: a product through descriptors, rows, atomics. What guards find is tested in
// tests/unit/runtime/launch/check_test.cc and on a GPU.
#include <gtest/gtest.h>

#include "compiler/compile.h"
#include "compiler/parse/parser.h"

namespace kiln {
namespace {

constexpr const char* kProduct = R"(
@triton.jit
def k(a, b, c, m, n, kk, BLOCK: tl.constexpr):
    da = tl.make_tensor_descriptor(a, [m, kk], [kk, 1], [128, 64])
    db = tl.make_tensor_descriptor(b, [kk, n], [n, 1], [64, 128])
    dc = tl.make_tensor_descriptor(c, [m, n], [n, 1], [128, 128])
    acc = tl.zeros([128, 128], tl.float32)
    row = tl.program_id(0) * 128
    col = tl.program_id(1) * 128
    for i in range(0, kk, 64):
        acc = tl.dot(da.load([row, i]), db.load([i, col]), acc)
    dc.store([row, col], acc.to(tl.float16))
)";
constexpr const char* kRows = R"(
@triton.jit
def k(a, b, c, m, n, kk, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(a + tl.program_id(0) * n + i, mask=i < n, other=-1.0).to(tl.float32)
    tl.device_assert(i >= 0, "never")
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(c + tl.program_id(0) * n + i, e / tl.sum(e, axis=0), mask=i < n)
    tl.atomic_add(b, tl.sum(e, axis=0).to(tl.float16))
)";
constexpr const char* kPlainProduct = R"(
@triton.jit
def k(a, b, c, m, n, kk, BLOCK: tl.constexpr):
    r = tl.program_id(0) * 64 + tl.arange(0, 64)
    s = tl.program_id(1) * 64 + tl.arange(0, 64)
    t = tl.arange(0, 32)
    pa = a + r[:, None] * kk + t[None, :]
    pb = b + t[:, None] * n + s[None, :]
    acc = tl.zeros([64, 64], tl.float32)
    for i in range(0, kk, 32):
        acc = tl.dot(tl.load(pa), tl.load(pb), acc)
        pa += 32
        pb += 32 * n
    tl.store(c + r[:, None] * n + s[None, :], acc.to(tl.float16))
)";
constexpr const char* kWait = R"(
@triton.jit
def k(a, b, c, m, n, kk, BLOCK: tl.constexpr):
    p = a
    if m > 3:
        p = b
    while tl.load(p + n) == 0:
        n += 1
    tl.store(c, tl.load(p))
)";

TEST(Guards, KernelsCompileForEveryTarget) {
  struct {
    const char* source;
    size_t guards;
  } cases[] = {{kProduct, 3}, {kRows, 4}, {kPlainProduct, 3}, {kWait, 5}};
  for (const auto& c : cases)
    for (const char* target : {"host", "sm_80", "sm_90a"}) {
      SCOPED_TRACE(std::string(target) + c.source);
      auto module = parse::parse_module(
          SourceText::make("k.py", std::string("import triton\nimport triton.language as tl\n") + c.source));
      ASSERT_TRUE(module.ok()) << render(module.error());
      auto function = frontend::jit_functions(*module)->at(0);
      std::pair<std::string, frontend::Global> block{"BLOCK", ast::Constant(ast::Int{1024})};
      auto args = frontend::parse_signature(*function, "*fp16:16, *fp16:16, *fp16:16, i32:16, i32:16, i32:16",
                                            std::span(&block, 1));
      ASSERT_TRUE(args.ok()) << render(args.error());
      CompileOptions options;
      options.target = target;
      options.want_cubin = false;
      options.verify_each = true;
      options.guard_accesses = true;
      auto kernel = compile(*function, *args, options);
      ASSERT_TRUE(kernel.ok()) << render(kernel.error());
      ASSERT_TRUE(kernel->guards);
      EXPECT_EQ(kernel->guards->guards.size(), c.guards);
      EXPECT_EQ(kernel->guards->pointers, (std::vector<int>{0, 1, 2}));
      EXPECT_TRUE(kernel->guards->unknown.empty());
      // Two ends for each pointer, and the report.
      EXPECT_EQ(kernel->params.size(), 6u + 2 * 3 + 1);
      EXPECT_TRUE(kernel->tensor_maps.empty());
      EXPECT_EQ(kernel->ptx.find("__assertfail"), std::string::npos);
    }
}

}  // namespace
}  // namespace kiln
