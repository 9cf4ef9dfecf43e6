// Random programs on a real GPU leave the same memory as the interpreter, for Hopper's code and for the older road.
// KILN_FUZZ_SEED=n repeats one program, KILN_FUZZ_COUNT=n runs more.
#include "tests/fuzz/generator.h"

#include <gtest/gtest.h>

#include "compiler/compile.h"
#include "compiler/passes/pass.h"
#include "kiln/tensor.h"
#include "runtime/jit/jit.h"
#include "tests/gpu/gpu_test_util.h"

namespace kiln::runtime {
namespace {

double tolerance_of(const fuzz::Approximation& a, DType dtype) {
  if (a.op == ir::OpKind::kExp) return 64;  // ex2.approx(x·log2e): 2 + |x|/2 ulp, and |x| < 104
  return fuzz::ulp_tolerance(a, dtype);
}

Result<std::vector<fuzz::Buffer>> run_on_gpu(const Device& device, const fuzz::Program& program,
                                             const CompiledKernel& code) {
  KILN_TRY(auto kernel, device.impl()->backend().load(image_of(code)));
  std::vector<Tensor> tensors;
  for (const fuzz::Buffer& b : program.buffers) {
    const int64_t bytes = static_cast<int64_t>(b.bytes.size());
    KILN_TRY(Tensor t, Tensor::from_host(device, DType::kU8, std::span(&bytes, 1), b.bytes.data(), b.bytes.size()));
    tensors.push_back(t);
  }
  std::vector<uint64_t> slots =
      fuzz::argument_slots(program, [&](int i) { return tensors[static_cast<size_t>(i)].address(); });
  Grid grid;
  for (size_t d = 0; d < 3; ++d) grid[d] = static_cast<uint32_t>(program.grid[d]);
  KILN_CHECK_OK(
      device.impl()->backend().launch(*kernel, grid, slots.data(), device.impl()->backend().default_stream()));
  KILN_CHECK_OK(device.synchronize());
  std::vector<fuzz::Buffer> out = program.buffers;
  for (size_t i = 0; i < out.size(); ++i) {
    KILN_TRY(std::vector<std::byte> bytes, tensors[i].to_bytes());
    out[i].bytes = std::move(bytes);
  }
  return out;
}

void fuzz_target(const std::string& target, int count) {
  GPU_OR_SKIP(device);
  fuzz::for_each_seed(count, [&](uint64_t seed) {
    SCOPED_TRACE(target);
    fuzz::GeneratorOptions options;
    options.dots = true;
    options.max_numel = seed % 3 == 0 ? 4096 : 256;
    fuzz::Program program = fuzz::generate(seed, options);
    std::unique_ptr<ir::Module> tile = ir::clone(*program.module);
    // fuse_fma changes roundings, so the interpreter runs what the tile passes made.
    ASSERT_OK(passes::run(passes::pipeline(target::Kind::kHost), *tile, *target::find("host"), {}));
    auto expected = fuzz::interpret(program, *tile);
    ASSERT_TRUE(expected.ok()) << render(expected.error());
    CompileOptions compile_options;
    compile_options.target = target;
    auto code = compile_ir(ir::clone(*program.module), compile_options);
    ASSERT_TRUE(code.ok()) << render(code.error()) << ir::print(*tile);
    auto got = run_on_gpu(device, program, *code);
    ASSERT_TRUE(got.ok()) << render(got.error()) << ir::print(*tile);
    const std::string difference = fuzz::compare(*expected, *got, tolerance_of);
    ASSERT_EQ(difference, "") << ir::print(*tile);
  });
}

TEST(CudaFuzz, HopperCodeSameAsTheInterpreter) { fuzz_target("sm_90a", 200); }
TEST(CudaFuzz, AmpereCodeSameAsTheInterpreter) { fuzz_target("sm_80", 100); }

}  // namespace
}  // namespace kiln::runtime
