// %counters, %roofline and %occupancy at a made-up prompt without a GPU.
#include <gtest/gtest.h>

#include <filesystem>

#include "repl/views/static_table.h"
#include "support/files.h"
#include "tests/unit/profiler/cupti/cupti_or_skip.h"
#include "tests/unit/repl/run_prompt.h"

namespace kiln::repl {
namespace {

constexpr const char* kKernel = R"(
import torch, triton, triton.language as tl
@triton.jit
def scale(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i, mask=i < n) * 3, mask=i < n)

x = torch.rand(1000)
y = torch.empty_like(x)
)";

TEST(CountersMagic, WithoutAGpuItIsAPreview) {
  CUPTI_OR_SKIP();
  Said s = run(std::string(kKernel) + "%counters scale[(1,)](x, y, 1000, BLOCK=1024)\nprint(y.abs().sum() > 1e6)\n");
  EXPECT_EQ(s.code, 0) << s.err;
  EXPECT_NE(s.out.find("9 metrics of GH100 (sm_90a; %target chooses another): 1 pass"), std::string::npos) << s.out;
  EXPECT_NE(s.out.find("nothing was run: cpu has no hardware counters"), std::string::npos) << s.out;
  EXPECT_NE(s.out.find("sm__warps_active.avg.pct_of_peak_sustained_active"), std::string::npos) << s.out;
}

TEST(CountersMagic, TakesBundlesMetricsAndTheTargetsChip) {
  CUPTI_OR_SKIP();
  Said s = run("%target sm_80\n%counters f(x), bundle=stalls dram__bytes_read.sum dram__bytes.sum.per_second\n");
  EXPECT_EQ(s.code, 0) << s.err;
  EXPECT_NE(s.out.find("24 metrics of GA100 (sm_80, by %target)"), std::string::npos) << s.out;
  EXPECT_NE(s.out.find("has no counter for: wgmma"), std::string::npos) << s.out;
  EXPECT_NE(s.out.find("kernel replay"), std::string::npos) << s.out;

  s = run("%counters f(x) bundle=nothing\n");
  EXPECT_NE(s.err.find("there is no bundle 'nothing'; there are default, advice, memory"), std::string::npos) << s.err;
  s = run("%counters f(x) dram__bytes_raed.sum\n");
  EXPECT_NE(s.err.find("GH100 has no metric 'dram__bytes_raed.sum'"), std::string::npos) << s.err;
  EXPECT_NE(s.err.find("did you mean 'dram__bytes_read'"), std::string::npos) << s.err;
  s = run("%counters --lst\n");
  EXPECT_NE(s.err.find("did you mean '--list'?"), std::string::npos) << s.err;
  s = run("%counters bundle=memory\n");
  EXPECT_NE(s.err.find("needs a statement"), std::string::npos) << s.err;
}

TEST(CountersMagic, ListsBaseMetrics) {
  CUPTI_OR_SKIP();
  Said s = run("%counters --list dram__bytes\n");
  EXPECT_EQ(s.code, 0) << s.err;
  EXPECT_NE(s.out.find("# of bytes read from DRAM"), std::string::npos) << s.out;
  EXPECT_NE(s.out.find("3 base metrics of GH100"), std::string::npos) << s.out;
  EXPECT_EQ(s.out.find("l1tex__t_bytes "), std::string::npos);
}

TEST(RooflineMagic, WorksOnTheCpu) {
  const std::filesystem::path file = std::filesystem::temp_directory_path() / "kiln_roofline_test.svg";
  std::filesystem::remove(file);
  Said s = run(std::string(kKernel) +
               "a = torch.rand(300000)\nscale[(1,)](x, y, 1000, BLOCK=1024)\n"
               "%roofline torch.exp(a) * 2 + 1, scale[(1,)](x, y, 1000, BLOCK=1024) budget=300ms --svg " +
               file.string() + "\n");
  EXPECT_EQ(s.code, 0) << s.err;
  EXPECT_NE(s.out.find("memory"), std::string::npos) << s.out;
  EXPECT_NE(s.out.find("multiply-adds in registers"), std::string::npos) << s.out;
  EXPECT_NE(s.out.find("FLOP/byte"), std::string::npos) << s.out;
  auto svg = read_file(file.string());
  ASSERT_TRUE(svg.ok());
  EXPECT_TRUE(svg->starts_with("<svg"));
  EXPECT_NE(svg->find("roofline of cpu"), std::string::npos);
  std::filesystem::remove(file);
}

TEST(RooflineMagic, SaysWhatIsWrong) {
  Said s = run(std::string(kKernel) + "%roofline scale[(1,)](x, y, 1000, BLOCK=1024) budget=200ms --svg /tmp/no.svg\n");
  EXPECT_NE(s.err.find("nothing to draw"), std::string::npos) << s.out << s.err;
  s = run("%roofline 1 cache=warm\n");
  EXPECT_NE(s.err.find("cache= is cold or hot"), std::string::npos) << s.err;
  s = run("x = torch.rand(100000)\n%roofline torch.exp(x) --measured budget=200ms\n");
  EXPECT_NE((s.out + s.err).find("cpu has no counters"), std::string::npos) << s.out << s.err;
}

TEST(OccupancyMagic, HasARowPerNumberOfWarps) {
  Said s = run(std::string(kKernel) + "%occupancy scale\n");
  if (s.err.find("registers are unknown") != std::string::npos) GTEST_SKIP() << s.err;
  EXPECT_EQ(s.code, 0) << s.err;
  for (const char* part : {"fewer registers", "less shared memory", "4 *", "1024", "no gain"})
    EXPECT_NE(s.out.find(part), std::string::npos) << part << " in\n" << s.out;
  s = run(std::string(kKernel) + "%occupancy scale registers=128 shared=100000\n");
  EXPECT_NE(s.out.find("as given, not as compiled"), std::string::npos) << s.out << s.err;
  EXPECT_NE(s.out.find("→"), std::string::npos) << s.out;
  s = run(std::string(kKernel) + "%occupancy scale registers=many\n");
  EXPECT_NE(s.err.find("registers= is a whole number from 0, got many"), std::string::npos) << s.err;
  s = run(std::string(kKernel) + "%occupancy scale --achieved\n");
  EXPECT_NE(s.out.find("achieved occupancy is unknown"), std::string::npos) << s.out << s.err;
}

TEST(OccupancyTable, SaysHowManyClustersFitAtOnce) {
  KernelInfo info;
  info.target = "sm_90a", info.registers = 80, info.num_warps = 12, info.shared_bytes = 100'000;
  auto notes = [&](int multiprocessors) {
    auto table = occupancy_table(info, multiprocessors);
    EXPECT_TRUE(table.ok());
    std::string text;
    for (const std::string& note : table->notes()) text += note + "\n";
    return text;
  };
  EXPECT_EQ(notes(132).find("clusters"), std::string::npos);
  info.num_ctas = 8;
  EXPECT_NE(notes(132).find("clusters of 8 blocks: 132 SMs hold at most 33 at once"), std::string::npos) << notes(132);
  EXPECT_NE(notes(0).find("S SMs hold at most S × 2 / 8 at once"), std::string::npos) << notes(0);
}

}  // namespace
}  // namespace kiln::repl
