// Who assembles: the device's own assembler where it serves, the toolkit's otherwise.
#include "compiler/codegen/cubin.h"

#include <gtest/gtest.h>

#include "support/diag.h"

namespace kiln::codegen {
namespace {

class FakeAssembler : public Assembler {
 public:
  explicit FakeAssembler(int ptx_version) : ptx_version_(ptx_version) {}
  std::string name() const override { return "fake 1"; }
  int ptx_version() const override { return ptx_version_; }
  Result<Assembled> assemble(std::string_view ptx) const override {
    if (ptx.find("foo") != std::string_view::npos) return error(ErrorKind::kInternal, "fake rejects foo");
    return Assembled{"image",
                     "ptxas info    : (C7510) serialised\n"
                     "ptxas info    : Function properties for helper\n"
                     "ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
                     "ptxas info    : Function properties for f\n"
                     "ptxas         .     24 bytes stack frame, 24 bytes spill stores, 8 bytes spill loads\n"};
  }

 private:
  int ptx_version_;
};

constexpr const char* kPtx = R"(
.version 8.3
.target sm_90a
.address_size 64
.visible .entry f() .reqntid 128 .minnctapersm 1
{
  BODY
  ret;
}
)";
std::string kernel(const std::string& body) {
  std::string text = kPtx;
  return text.replace(text.find("BODY"), 4, body);
}
const target::Target& hopper() { return *target::find("sm_90a"); }

TEST(Cubin, TheDevicesAssemblerIsAskedFirst) {
  const FakeAssembler device(90);
  EXPECT_EQ(assembler_name(hopper(), &device), "fake 1");
  auto cubin = link_cubin(kernel(""), hopper(), &device);
  ASSERT_TRUE(cubin.ok()) << render(cubin.error());
  EXPECT_EQ(cubin->assembler, "fake 1");
  EXPECT_EQ(cubin->image, "image");
  EXPECT_EQ(cubin->spill_bytes, 32) << "of all functions";
  ASSERT_EQ(cubin->messages.size(), 1u);
  EXPECT_NE(cubin->messages[0].find("C7510"), std::string::npos);
  EXPECT_EQ(link_cubin("foo", hopper(), &device).error().message, "fake rejects foo");
}

TEST(Cubin, AnAssemblerThatIsTooOldIsNotAsked) {
  const FakeAssembler device(hopper().ptx - 1);
  EXPECT_EQ(assembler_name(hopper(), &device), toolkit_assembler_name());
  auto cubin = link_cubin(kernel(""), hopper(), &device);
  ASSERT_TRUE(cubin.ok()) << render(cubin.error());
  EXPECT_EQ(cubin->assembler, toolkit_assembler_name());
}

TEST(Cubin, WordsInTheTextAreNoFacts) {
  const FakeAssembler device(90);
  auto cubin = link_cubin(kernel("// print(\"setmaxnreg\")"), hopper(), &device);
  ASSERT_TRUE(cubin.ok()) << render(cubin.error());
  EXPECT_EQ(cubin->assembler, "fake 1");
}

TEST(Cubin, SharesOfRegistersNeedPtxas) {
  const FakeAssembler device(90);
  auto cubin = link_cubin(kernel("setmaxnreg.dec.sync.aligned.u32 40;"), hopper(), &device, true);
  ASSERT_TRUE(cubin.ok()) << render(cubin.error());
  if (cubin->assembler == "fake 1") GTEST_SKIP() << "there is no ptxas here";
  EXPECT_TRUE(cubin->assembler.starts_with("ptxas")) << cubin->assembler;
  EXPECT_TRUE(cubin->messages.empty()) << cubin->messages[0];
}

}  // namespace
}  // namespace kiln::codegen
