// Random programs: the host JIT leaves the same memory as the interpreter. KILN_FUZZ_SEED=n repeats one program,
// KILN_FUZZ_COUNT=n runs more.
#include <gtest/gtest.h>

#include "compiler/passes/pass.h"
#include "compiler/target/target.h"
#include "tests/fuzz/generator.h"
#include "tests/unit/lower/harness/host_harness.h"

namespace kiln {
namespace {

void run_program(const fuzz::Program& program, const ir::Module& module) {
  auto expected = fuzz::interpret(program, module);
  ASSERT_TRUE(expected.ok()) << render(expected.error()) << ir::print(module);
  auto kernel = test::compile_host(module);
  ASSERT_TRUE(kernel.ok()) << render(kernel.error()) << ir::print(module);
  std::vector<fuzz::Buffer> got = program.buffers;
  // Some room behind and in front: a stray access shows up as a difference, not as a fault.
  std::vector<uint64_t> slots = fuzz::argument_slots(
      program, [&](int i) { return reinterpret_cast<uint64_t>(got[static_cast<size_t>(i)].bytes.data()); });
  kernel->run(slots, program.grid);
  const std::string difference = fuzz::compare(*expected, got, fuzz::ulp_tolerance);
  EXPECT_EQ(difference, "") << ir::print(module);
}

TEST(HostFuzz, SameAsTheInterpreter) {
  fuzz::GeneratorOptions options;
  options.dots = true;
  fuzz::for_each_seed(60, [&](uint64_t seed) {
    for (bool reread : {false, true}) {
      options.reread = reread;
      fuzz::Program program = fuzz::generate(seed, options);
      run_program(program, *program.module);
    }
  });
}

TEST(HostFuzz, SameAfterTheHostPasses) {
  const target::Target& host = *target::find("host");
  fuzz::GeneratorOptions options;
  options.dots = true;
  fuzz::for_each_seed(30, [&](uint64_t seed) {
    fuzz::Program program = fuzz::generate(seed, options);
    std::unique_ptr<ir::Module> module = ir::clone(*program.module);
    Status passed = passes::run(passes::pipeline(host.kind), *module, host, {});
    ASSERT_TRUE(passed.ok()) << render(passed.error());
    run_program(program, *module);
  });
}

}  // namespace
}  // namespace kiln
