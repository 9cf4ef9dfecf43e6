// Stores around the caches: a grid that writes more than they hold, of which only some programs run.
#include <gtest/gtest.h>

#include <random>

#include "tests/unit/lower/harness/host_harness.h"

namespace kiln::test {
namespace {

constexpr const char* kTwice = R"(kernel @twice(%x: *f32, %out: *f32, %n: i32) {
  %pid = program_id {axis = 0} : i32
  %size = constant 1024 : i32
  %start = mul %pid, %size : i32
  %starts = splat %start : i32[1024]
  %r = arange {start = 0, end = 1024} : i32[1024]
  %o = add %starts, %r : i32[1024]
  %nn = splat %n : i32[1024]
  %m = cmp %o, %nn {predicate = "lt"} : i1[1024]
  %xs = splat %x : *f32[1024]
  %px = addptr %xs, %o : *f32[1024]
  %a = load %px, %m : f32[1024]
  %b = add %a, %a : f32[1024]
  %os = splat %out : *f32[1024]
  %po = addptr %os, %o : *f32[1024]
  store %po, %b, %m
  return
}
)";

TEST(HostStream, WritesTheSameWhereverTheOutputStarts) {
  auto module = ir::parse_module(SourceText::make("t.ir", kTwice));
  ASSERT_TRUE(module.ok());
  auto kernel = compile_host(**module, true);
  ASSERT_TRUE(kernel.ok());
  EXPECT_NE(kernel->llvm.find("!nontemporal"), std::string::npos);

  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  constexpr int kPrograms = 4, kElements = kPrograms * 1024;
  std::vector<float> x(kElements), out(kElements + 64);
  for (float& v : x) v = static_cast<float>(random() % 2000) - 1000;
  for (const int32_t grid : {kPrograms, 100000})  // 16 KiB and 400 MB written by the whole grid
    for (const int n : {kElements, kElements - 300})
      for (const int offset : {0, 1, 8, 16, 19}) {
        std::fill(out.begin(), out.end(), -7.0f);
        float* first = out.data() + 16 + offset;
        kernel->run({reinterpret_cast<uint64_t>(x.data()), reinterpret_cast<uint64_t>(first), static_cast<uint64_t>(n)},
                    {grid, 1, 1}, 0, kPrograms);
        for (int i = -16; i < kElements + 20; ++i) {
          const bool inside = i >= 0 && i < n;
          ASSERT_EQ(first[i], inside ? 2 * x[static_cast<size_t>(i)] : -7.0f)
              << grid << " " << n << " " << offset << " at " << i;
        }
      }
}

}  // namespace
}  // namespace kiln::test
