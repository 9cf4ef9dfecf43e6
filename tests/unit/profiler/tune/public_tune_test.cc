#include "kiln/tune.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "tests/unit/open_device.h"

namespace kiln {
namespace {

constexpr const char* kSource = R"(
import triton
import triton.language as tl

@triton.jit
def twice(x, o, n, BLOCK: tl.constexpr, LESS: tl.constexpr = 0):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = i < n - LESS
    tl.store(o + i, 2 * tl.load(x + i, mask=m), mask=m)
)";
constexpr int64_t kN = 4000;

class PublicTune : public testing::Test {
 protected:
  void SetUp() override {
    char folder[] = "/tmp/kiln_tune_XXXXXX";
    root_ = mkdtemp(folder);
    setenv("KILN_CACHE_DIR", root_.c_str(), 1);
    Device cpu = *open_device("cpu");
    const int64_t shape[] = {kN};
    x = *Tensor::full(cpu, DType::kF32, shape, 1.5);
    o = *Tensor::full(cpu, DType::kF32, shape, 0);
    kernel = *Kernel::from_source(kSource, "twice.py");
    options.budget_s = 60;  // busy machines spend it
    options.cold_cache = false;
    options.compared = {o};
  }
  void TearDown() override {
    unsetenv("KILN_CACHE_DIR");
    std::filesystem::remove_all(root_);
  }
  Result<Tuning> run(const std::vector<TuningConfig>& configs) {
    const std::vector<std::optional<Arg>> args = {x, o, kN, std::nullopt, std::nullopt};
    auto grid = [](const TuningConfig& c) {
      return std::array<int64_t, 3>{(kN - 1) / c.constants[0].second + 1, 1, 1};
    };
    return tune(kernel, grid, args, configs, options);
  }

  std::string root_;
  Tensor x, o;
  Kernel kernel;
  TuningOptions options;
};

TEST_F(PublicTune, FindsOneThatIsRightAndKeepsIt) {
  const std::vector<TuningConfig> configs = {{{{"BLOCK", 64}}},
                                             {{{"BLOCK", 512}, {"LESS", 1}}},
                                             {{{"BLOCK", 1024}}},
                                             {{{"BLOCK", 48}}},
                                             {{{"BLOCK", 256}, {"LESS", -kN}}}};
  auto found = run(configs);
  ASSERT_TRUE(found.ok()) << render(found.error());
  EXPECT_TRUE(found->best == 0 || found->best == 2);
  ASSERT_EQ(found->rows.size(), 5u);
  EXPECT_GT(found->rows[0].us, 0);
  EXPECT_NE(found->rows[1].problem.find("instead of 3"), std::string::npos) << found->rows[1].problem;
  EXPECT_NE(found->rows[3].problem.find("power of two"), std::string::npos) << found->rows[3].problem;
  EXPECT_NE(found->rows[4].problem.find("which has 4000 elements"), std::string::npos) << found->rows[4].problem;
  EXPECT_EQ(*o.to_doubles(), std::vector<double>(kN, 0)) << "tensors that are compared are as they were";
  EXPECT_FALSE(found->from_records);
  auto again = run(configs);
  ASSERT_TRUE(again.ok()) << render(again.error());
  EXPECT_TRUE(again->from_records);
  EXPECT_EQ(again->best, found->best);
}

TEST_F(PublicTune, ErrorsNameWhatIsWrong) {
  EXPECT_EQ(run({}).error().kind, ErrorKind::kValue);
  auto name = run({{{{"BLOK", 64}}}});
  ASSERT_FALSE(name.ok());
  EXPECT_EQ(name.error().message, "the kernel 'twice' has no constexpr 'BLOK'");
  auto none = run({{{{"BLOCK", 48}}}, {{{"BLOCK", 3}}}});
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().kind, ErrorKind::kLaunch);
  EXPECT_EQ(none.error().notes.size(), 2u);
  options.should_stop = [] { return true; };
  EXPECT_EQ(run({{{{"BLOCK", 64}}}}).error().kind, ErrorKind::kInterrupted);
}

}  // namespace
}  // namespace kiln
