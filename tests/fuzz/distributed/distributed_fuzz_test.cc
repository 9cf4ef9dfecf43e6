// The CUDA pipeline keeps the meaning: tile IR in the interpreter against distributed IR on the machine that the
// distributed interpreter plays, warps in random order.
#include <gtest/gtest.h>

#include "compiler/interp/machine/distributed.h"
#include "compiler/passes/pass.h"
#include "support/diag.h"
#include "tests/fuzz/generator.h"

namespace kiln::fuzz {
namespace {

/// Sums in another order; everything else is the same definition.
double tolerance(const Approximation& a, DType) {
  return a.op == ir::OpKind::kReduce || a.op == ir::OpKind::kScan ? 2.0 * static_cast<double>(a.terms) : 0;
}

class DistributedFuzz : public testing::TestWithParam<const char*> {};

TEST_P(DistributedFuzz, AgreesWithTheTileStage) {
  const target::Target& target = *target::find(GetParam());
  for_each_seed(150, [&](uint64_t seed) {
    GeneratorOptions shapes;
    shapes.max_numel = seed & 1 ? 256 : 2048;  // one or several elements for each of up to 256 threads
    shapes.dots = true;
    shapes.reread = shapes.barriers = seed & 2;
    const Program p = generate(seed, shapes);
    const std::string from = ir::print(*p.module);
    auto m = ir::clone(*p.module);
    std::unique_ptr<ir::Module> tile;  // as the tile passes leave it
    passes::RunOptions options;
    options.verify_each = true;
    options.after_pass = [&](std::string_view, const ir::Module& now) {
      if (now.stage == ir::Stage::kTile) tile = ir::clone(now);
    };
    const Status ran = passes::run(passes::pipeline(target.kind), *m, target, options);
    ASSERT_TRUE(ran.ok()) << render(ran.error()) << ir::print(*m) << from;
    ASSERT_EQ(m->stage, ir::Stage::kDistributed);
    auto expected = interpret(p, *tile);
    ASSERT_TRUE(expected.ok()) << render(expected.error()) << from;
    auto got = run_on_host_memory(p, [&](std::span<const uint64_t> slots, std::vector<Buffer>& buffers) {
      interp::Memory memory;
      for (Buffer& b : buffers) memory.allow(b.bytes.data(), b.bytes.size());
      interp::DistributedOptions distributed;
      distributed.seed = seed | 1;
      return interp::run_distributed(*m, p.grid, slots, memory, distributed);
    });
    ASSERT_TRUE(got.ok()) << render(got.error()) << ir::print(*m) << from;
    ASSERT_EQ(compare(*expected, *got, tolerance), "") << ir::print(*m) << from;
  });
}

INSTANTIATE_TEST_SUITE_P(Targets, DistributedFuzz, testing::Values("sm_80", "sm_90a"));

}  // namespace
}  // namespace kiln::fuzz
