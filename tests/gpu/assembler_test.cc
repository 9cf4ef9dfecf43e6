// The driver's assembler on a real GPU: it says of code what the toolkit's says, the second time too.
#include "compiler/codegen/cubin.h"
#include "kernels/matmul_persistent/matmul.h"
#include "tests/gpu/gpu_test_util.h"

namespace kiln::runtime {
namespace {

using Shape = std::vector<int64_t>;

Result<std::string> product_ptx(const Device& device) {
  kernels::Sources sources;
  KILN_TRY(Tensor a, Tensor::zeros(device, DType::kBF16, Shape{512, 512}));
  KILN_TRY(Tensor out, Tensor::zeros(device, DType::kBF16, Shape{512, 512}));
  KILN_TRY(kernels::Launch launch, kernels::matmul_launch(sources, a, a, out, {}, MatmulTile{128, 128, 64, 3, 8}));
  KILN_TRY(KernelInfo info, launch.kernel.compile(launch.args, launch.options, "sm_90a"));
  return info.ptx;
}

TEST(GpuAssembler, SaysWhatTheToolkitSays) {
  GPU_OR_SKIP(device);
  if (device.info().target != "sm_90a") GTEST_SKIP() << "the code is for Hopper";
  const target::Target& target = *target::find("sm_90a");
  const Assembler* assembler = device.impl()->backend().assembler();
  auto made = product_ptx(device);
  ASSERT_TRUE(made.ok()) << made.error().message;
  std::string ptx = *made;
  for (int time = 0; time < 2; ++time) {
    SCOPED_TRACE(time);
    auto ours = codegen::link_cubin(ptx, target, assembler);
    ASSERT_TRUE(ours.ok()) << ours.error().message;
    EXPECT_EQ(ours->assembler, assembler->name());
    EXPECT_GT(ours->registers, 0);
    EXPECT_EQ(ours->spill_bytes, 0);
    EXPECT_TRUE(ours->messages.empty()) << ours->messages.front();
    if (codegen::toolkit_assembler_name().empty()) continue;
    auto theirs = codegen::link_cubin(ptx, target);
    ASSERT_TRUE(theirs.ok()) << theirs.error().message;
    printf("%s: %d registers; %s: %d\n", ours->assembler.c_str(), ours->registers, theirs->assembler.c_str(),
           theirs->registers);
  }
  // Without its fence the assembler repairs the code, and says so.
  constexpr std::string_view kFence = "wgmma.fence.sync.aligned;";
  const size_t at = ptx.find(kFence);
  ASSERT_NE(at, std::string::npos);
  ptx.erase(at, kFence.size());
  for (int time = 0; time < 2; ++time) {
    SCOPED_TRACE(time);
    auto repaired = codegen::link_cubin(ptx, target, assembler);
    ASSERT_TRUE(repaired.ok()) << repaired.error().message;
    ASSERT_EQ(repaired->messages.size(), 1u);
    EXPECT_NE(repaired->messages[0].find("(C75"), std::string::npos) << repaired->messages[0];
  }
  auto refused =
      codegen::link_cubin(".version 8.4\n.target sm_90a\n.address_size 64\n.entry f() { foo; }\n", target, assembler);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message.find("foo"), std::string::npos) << refused.error().message;
}

}  // namespace
}  // namespace kiln::runtime
