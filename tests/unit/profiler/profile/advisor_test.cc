// Each rule on a timeline that fires it, and on one that is nearly the same and does not.
#include "profiler/profile/advisor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "made_timeline.h"
#include "profiler/profile/advisor_facts.h"
#include "support/files.h"
#include "support/text_width.h"

namespace kiln::profiler {
namespace {

using trace::Step;

/// A timeline with what is known beside it.
struct Seen {
  Timeline timeline;
  std::vector<KernelFigures> counters = {};
  std::vector<KernelSource> sources = {};

  std::vector<Finding> findings() const { return advise(timeline, {counters, sources}); }
};

struct Case {
  const char* rule;
  Seen (*fires)();
  Seen (*does_not)();
  std::vector<const char*> says;  // texts of the finding's numbers, evidence and advice
};

Seen small_launches(int n, double us) {
  TimelineMaker m;
  for (int i = 0; i < n; ++i)
    m.statement(
        4, [&] { m.launch("tiny", {.us = us}); }, "y = y + 1");
  return {m.finish()};
}

Seen two_kernels(double first_us, double second_us) {
  TimelineMaker m;
  for (int i = 0; i < 4; ++i) {
    // Two statements, so that each kernel has its own line.
    m.statement(2, [&] { m.launch("big", {.us = first_us}); });
    m.statement(3, [&] { m.launch("small", {.us = second_us}); });
    // A third kernel that takes its share: no kernel has all the time.
    m.launch("other", {.us = 30});
  }
  return {m.finish()};
}

Seen steps(double first_compiles_us) {
  TimelineMaker m;
  for (int i = 0; i < 5; ++i)
    m.span(Step::kRange, "train", [&] {
      m.statement(6, [&] {
        // Only the first turn compiles.
        if (i == 0 && first_compiles_us > 0)
          m.span(Step::kCompile, "f_kernel", [&] {
            // Nine tenths lie in phases, the rest in none.
            m.span(Step::kPhase, "llvm", {}, first_compiles_us * 0.7);
            m.span(Step::kPhase, "ptxas", {}, first_compiles_us * 0.2);
          });
        m.launch("f_kernel", {.us = 50});
      });
      m.synchronize();
    });
  return {m.finish()};
}

Seen range_that_prepares(double us) {
  TimelineMaker m;
  m.span(Step::kRange, "encode", [&] {
    m.span(Step::kOperation, "tokenize", {}, us);
    m.launch("k", {.us = 100});
    m.synchronize();
  });
  return {m.finish()};
}

Seen library_launch(const char* asks) {
  TimelineMaker m;
  m.statement(9, [&] {
    m.span(Step::kLibrary, "cublas", [&] {
      ApiCall c;
      c.name = asks, c.start = m.now, c.thread = m.thread, c.correlation = 9999;
      m.spend(1);
      c.end = m.now;
      m.t.calls.push_back(c);
      m.launch("sm90_gemm");
    });
  });
  return {m.finish()};
}

Seen loop_with_waits(int launches_per_wait, double us) {
  TimelineMaker m;
  // With more work for each wait the wait costs little.
  for (int i = 0; i < 40; ++i) {
    for (int k = 0; k < launches_per_wait; ++k) m.statement(7, [&] { m.launch("step_kernel", {.us = us}); });
    m.statement(
        8, [&] { m.synchronize(); }, "torch.cuda.synchronize()");
  }
  return {m.finish()};
}

Seen bias_copy(Step by) {
  TimelineMaker m;
  m.statement(5, [&] {
    m.span(by, "", [&] { m.copy("DtoD", 1 << 20); });
    m.launch("gemm");
  });
  // The maker's copies are the script's own: this one is whose span it is in.
  for (Span& s : m.t.spans)
    if (s.step == Step::kCopy && by != Step::kCopy) s.step = Step::kOperation;
  return {m.finish()};
}

Seen loop_with_copies(int copies) {
  TimelineMaker m;
  for (int i = 0; i < 10; ++i) {
    m.statement(7, [&] { m.launch("step_kernel", {.us = 100}); });
    // The number of copies decides: a single one is no habit.
    if (i < copies)
      m.statement(
          8, [&] { m.copy("DtoH", 4); }, "loss.item()");
  }
  return {m.finish()};
}

Seen overhead_in_gap(const char* kind) {
  TimelineMaker m;
  m.launch("a");
  m.spend(10);
  m.overhead(kind, 100);
  m.launch("a");
  return {m.finish()};
}

Seen runs(double wobble) {
  TimelineMaker m;
  for (int i = 0; i < 20; ++i) {
    // Every second run is longer, so the spread is the wobble.
    m.launch("wobbly", {.us = 100 + (i % 2 ? wobble : 0)});
    m.launch("sized", {.us = 100.0 + 30 * (i % 2), .grid = {1024u << (i % 2), 1, 1}});  // two sizes are no spread
  }
  return {m.finish()};
}

KernelFigures figure(std::optional<double> KernelFigures::*which, double value) {
  KernelFigures f;
  f.*which = value;
  return f;
}

KernelSource source(bool has_dot, const char* memory_line = "", const char* shared_line = "") {
  KernelSource s;
  s.has_dot = has_dot, s.memory_line = memory_line, s.shared_line = shared_line;
  return s;
}

KernelFigures traffic(double percent, double read, double written) {
  KernelFigures f;
  f.dram_percent = percent, f.dram_read_bytes = read, f.dram_write_bytes = written;
  return f;
}

Seen counted(KernelFigures figures, KernelSource source = {}) {
  TimelineMaker m;
  m.statement(3, [&] { m.launch("k", {.us = 200}); });
  // The same name in both, as a report joins them.
  figures.kernel = source.kernel = "k";
  return {m.finish(), {figures}, {source}};
}

Seen with_resources(int registers, int64_t shared, double tensor_percent = 0) {
  TimelineMaker m;
  m.statement(3, [&] { m.launch("k", {.us = 200, .registers = registers, .dynamic_shared = shared}); });
  KernelFigures figures;
  figures.kernel = "k", figures.tensor_percent = tensor_percent, figures.achieved_occupancy = 22.2;
  return {m.finish(), {figures}};
}

KernelFigures conflicts(double n) {
  // The duration and the clock turn a number of conflicts into a share of the cycles.
  KernelFigures f;
  f.bank_conflicts = n, f.us = 100, f.sm_mhz = 1700;
  return f;
}

Seen narrow_kernels(uint32_t blocks, bool second_stream) {
  TimelineMaker m;
  for (int i = 0; i < 20; ++i)
    // In turns between two streams, or all on one.
    m.launch("narrow", {.us = 40, .stream = second_stream && i % 2 ? 13u : 7u, .grid = {blocks, 1, 1}});
  return {m.finish()};
}

const std::vector<Case>& cases() {
  static const std::vector<Case> kCases = {
      // For each rule what fires it, what nearly does, and what must be said.
      {"overhead-bound",
       [] { return small_launches(100, 0.5); },
       [] { return small_launches(100, 20); },
       {"100 launches, each with", "GPU busy", "/home/user/train.py:4 `y = y + 1`", "CUDA graph"}},
      {"gpu-bound",
       [] { return small_launches(100, 200); },
       [] { return small_launches(5, 1); },
       {"GPU busy 9", "tiny", "%roofline"}},
      {"hotspot",
       [] { return two_kernels(90, 30); },
       [] { return two_kernels(30, 31); },
       {"big takes 60 %", "train.py:2"}},
      {"short-launches",
       [] { return small_launches(200, 3); },
       [] { return small_launches(200, 30); },
       {"200 launches of tiny, 3.0 us each; a launch takes 2.0 us of CPU time while profiled", "train.py:4"}},
      {"cold-start",
       [] { return steps(20'000); },
       [] { return steps(0); },
       {"the first run took 18.0 ms, the median of the other 4", "llvm 14.0 ms, ptxas 4.00 ms", "train.py:6",
        "f_kernel"}},
      {"slow-begin",
       [] { return range_that_prepares(5000); },
       [] { return range_that_prepares(50); },
       {"before the first launch", "range \"encode\"", "tokenize 5.00 ms"}},
      {"occupancy-query",
       [] { return library_launch("cuOccupancyMaxActiveBlocksPerMultiprocessor"); },
       [] { return library_launch("cuFuncGetAttribute"); },
       {"sm90_gemm", "train.py:9"}},
      {"unneeded-sync",
       [] { return loop_with_waits(1, 5); },
       [] { return loop_with_waits(10, 50); },
       {"40 waits", "/home/user/train.py:8 `torch.cuda.synchronize()`", "after the loop"}},
      {"library-copy",
       [] { return bias_copy(Step::kLibrary); },
       [] { return bias_copy(Step::kCopy); },
       {"1 copies on the device, 1.05 MB", "a library's call", "train.py:5", "epilogue"}},
      {"copies-in-loop",
       [] { return loop_with_copies(10); },
       [] { return loop_with_copies(1); },
       {"10 copies to the host, 4 B each", "train.py:8 `loss.item()`", "keep it on the device"}},
      {"profilers-gap",
       [] { return overhead_in_gap("activity buffer request"); },
       [] { return overhead_in_gap("lazy loading"); },
       {"1 times the GPU was idle", "activity buffer request"}},
      {"spread",
       [] { return runs(40); },
       [] { return runs(2); },
       {"20 runs of wobbly from 100.0 to 140.0 us, median 120.0 us", "grid 1024 x 1 x 1"}},
      {"low-tensor-use",
       [] { return counted(figure(&KernelFigures::tensor_percent, 3.5), source(true)); },
       [] { return counted(figure(&KernelFigures::tensor_percent, 3.5), source(false)); },
       {"the tensor pipe of k works 3.5 % of the cycles", "train.py:3"}},
      {"occupancy-limit",
       [] { return with_resources(160, 0); },
       [] { return with_resources(40, 0); },
       {"3 blocks of 128 threads", "18.8 % of its warps, limited by registers", "one more block needs 128 registers",
        "it has 160", "achieved 22.2 %"}},
      {"memory-bound",
       [] { return counted(traffic(91, 8e6, 4e6)); },
       [] { return counted(figure(&KernelFigures::dram_percent, 40)); },
       {"91 % of its peak rate", "8.00 MB read", "train.py:3"}},
      {"bank-conflicts",
       [] { return counted(conflicts(4e6), source(false, "k.py:9", "k.py:12")); },
       [] { return counted(conflicts(4e4)); },
       {"4,000,000 extra cycles", "18 % of the SMs' cycles", "most for shared memory at k.py:12"}},
      {"uncoalesced",
       [] { return counted(figure(&KernelFigures::sectors_per_request, 32), source(false, "k.py:9")); },
       [] { return counted(figure(&KernelFigures::sectors_per_request, 16)); },
       {"touches 32.0 sectors", "most for memory at k.py:9"}},
      {"one-stream",
       [] { return narrow_kernels(16, false); },
       [] { return narrow_kernels(16, true); },
       {"19 kernels with fewer blocks than half of the 132 SMs", "stream 7"}},
  };
  return kCases;
}

std::vector<Finding> of_rule(const std::vector<Finding>& all, const std::string& rule) {
  std::vector<Finding> found;
  std::copy_if(all.begin(), all.end(), std::back_inserter(found), [&](const Finding& f) { return f.rule == rule; });
  return found;
}

TEST(Advisor, EachRuleFires) {
  for (const Case& c : cases()) {
    SCOPED_TRACE(c.rule);
    auto all = c.fires().findings();
    auto found = of_rule(all, c.rule);
    // One of its rule, however many others there are.
    ASSERT_EQ(found.size(), 1u) << findings_text(all);
    const std::string text = findings_text(found);
    for (const char* part : c.says) EXPECT_NE(text.find(part), std::string::npos) << part << " is not in\n" << text;
    // A finding without an advice helps nobody.
    EXPECT_FALSE(found[0].what.empty());
    EXPECT_FALSE(found[0].evidence.empty());
    EXPECT_FALSE(found[0].advice.empty());
  }
}

TEST(Advisor, FindingsFitATerminal) {
  for (const Case& c : cases()) {
    const auto found = c.fires().findings();
    for (const bool color : {false, true}) {
      const std::string text = findings_text(found, {.color = color, .width = 60});
      // Line by line.
      for (size_t at = 0; at < text.size(); at = text.find('\n', at) + 1) {
        const std::string line = text.substr(at, text.find('\n', at) - at);
        // Colours take no room; one word may be longer.
        const size_t words = line.find(' ', line.find_first_not_of(" !-"));
        if (!color && words != std::string::npos) {
          EXPECT_LE(text_width(line), 60) << line;
        }
      }
      EXPECT_EQ(text.find("\033[33m") != std::string::npos, color && text.find("! ") != std::string::npos);
    }
  }
}

TEST(Advisor, EachRuleKeepsQuiet) {
  for (const Case& c : cases()) {
    SCOPED_TRACE(c.rule);
    auto found = of_rule(c.does_not().findings(), c.rule);
    EXPECT_TRUE(found.empty()) << findings_text(found);
  }
}

TEST(Advisor, EachRuleHasItsCaseAndItsPlaceInTheDocs) {
  std::set<std::string> tested;
  for (const Case& c : cases()) tested.insert(c.rule);
  auto docs = read_file(KILN_SOURCE_DIR "/docs/advisor.md");
  ASSERT_TRUE(docs.ok());
  for (const AdvisorRule& rule : advisor_rules()) {
    EXPECT_TRUE(tested.contains(std::string(rule.name))) << rule.name;
    EXPECT_NE(docs->find("\n## " + std::string(rule.name) + "\n"), std::string::npos) << rule.name;
  }
  // No rule without its case, no case without its rule.
  EXPECT_EQ(tested.size(), advisor_rules().size());
}

TEST(Advisor, OccupancyByRegistersAndSharedMemoryAndNotWhereTensorCoresAreBusy) {
  auto found = of_rule(with_resources(32, 100 << 10).findings(), "occupancy-limit");
  ASSERT_EQ(found.size(), 1u);
  // 3 blocks on an SM of 228 KB, each with 1 KB of the system's.
  EXPECT_NE(found[0].what.find("one more block needs 76,800 bytes"), std::string::npos) << found[0].what;
  EXPECT_TRUE(of_rule(with_resources(32, 100 << 10, 80).findings(), "occupancy-limit").empty());
}

TEST(Advisor, WhatAProfileRepeatsIsNoLoop) {
  // %profile runs its statement three times: one copy in each is the statement's result.
  auto profiled = [](int copies_each) {
    TimelineMaker m;
    for (int i = 0; i < 3; ++i)
      m.span(Step::kRange, "step", [&] {
        m.statement(1, [&] {
          // Copies within one run repeat; those of three runs do not.
          for (int k = 0; k < copies_each; ++k) m.launch("k", {.us = 100}), m.copy("DtoH", 64);
        });
      });
    // The statement of %profile itself.
    for (Span& s : m.t.spans)
      if (s.step == Step::kStatement) s.file = "<%profile>";
    return advise(m.finish());
  };
  EXPECT_TRUE(of_rule(profiled(1), "copies-in-loop").empty());
  EXPECT_EQ(of_rule(profiled(3), "copies-in-loop").size(), 1u);
}

TEST(Advisor, GraphNodesPayNoLaunch) {
  TimelineMaker m;
  for (int i = 0; i < 10; ++i) m.graph(60, 2);
  EXPECT_TRUE(of_rule(advise(m.finish()), "short-launches").empty());
}

TEST(Advisor, UnprofiledCostOfALaunchIsPreferred) {
  Seen seen = small_launches(100, 3);
  // As it takes without CUPTI beside it.
  seen.timeline.plain_call_us = 1.25;
  auto found = of_rule(seen.findings(), "short-launches");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_NE(found[0].what.find("a launch takes 1.2 us of CPU time, 125 us together"), std::string::npos)
      << found[0].what;
}

TEST(Advisor, ColdStartWithoutALoopNamesThePhases) {
  TimelineMaker m;
  m.statement(2, [&] {
    m.span(Step::kCompile, "gelu", [&] { m.span(Step::kPhase, "llvm", {}, 9000); });
    m.span(Step::kLoad, "gelu", {}, 700);
    m.overhead("lazy loading", 150);
    m.launch("gelu");
  });
  // The largest first.
  auto found = of_rule(advise(m.finish()), "cold-start");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_NE(found[0].what.find("llvm 9.00 ms, module load 700 us, lazy loading 150 us"), std::string::npos)
      << found[0].what;
  EXPECT_EQ(found[0].evidence, "/home/user/train.py:2 (kernels: gelu)");
}

TEST(Advisor, TheDriverAsOurAssemblerIsToldOnce) {
  TimelineMaker m;
  m.statement(2, [&] {
    m.span(Step::kCompile, "gelu", [&] {
      m.span(
          Step::kPhase, "cubin", [&] { m.overhead("driver compiler", 9000); }, 1000);
    });
    m.launch("gelu");
  });
  // The driver's own record lies within the phase and must not be counted again.
  auto found = of_rule(advise(m.finish()), "cold-start");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_NE(found[0].what.find(": cubin 10.0 ms"), std::string::npos) << found[0].what;
  EXPECT_EQ(found[0].what.find("driver compiler"), std::string::npos) << found[0].what;
}

TEST(Advisor, TheStartOfADeviceIsAPhaseOfAColdStart) {
  TimelineMaker m;
  m.statement(2, [&] {
    m.span(Step::kOperation, "zeros", [&] { m.span(Step::kContext, "cuda:0", {}, 120'000); });
    m.span(Step::kCompile, "gelu", [&] { m.span(Step::kPhase, "toolchain", {}, 6000); });
    m.launch("gelu");
  });
  auto found = of_rule(advise(m.finish()), "cold-start");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_NE(found[0].what.find("device start 120 ms, toolchain 6.00 ms"), std::string::npos) << found[0].what;
  // All of it has a name.
  EXPECT_EQ(found[0].what.find("in no phase"), std::string::npos) << found[0].what;
}

TEST(Advisor, WhatStartsOnceIsNoOverheadAndHidesNoLoop) {
  TimelineMaker m;
  m.span(Step::kOperation, "zeros", {}, 500'000);  // the driver's context
  for (int i = 0; i < 20; ++i) m.launch("big", {.us = 100});
  EXPECT_TRUE(of_rule(advise(m.finish()), "overhead-bound").empty());

  TimelineMaker loop;
  loop.span(Step::kOperation, "zeros", {}, 500'000);
  for (int i = 0; i < 50; ++i) loop.statement(8, [&] { loop.launch("k"), loop.synchronize(); });
  EXPECT_EQ(of_rule(advise(loop.finish()), "unneeded-sync").size(), 1u);
}

TEST(Advisor, AColdStartSaysWhatLiesInNoPhase) {
  TimelineMaker m;
  m.span(Step::kCompile, "k", [&] {
    m.span(Step::kPhase, "llvm", {}, 5000);
    m.spend(20'000);
  });
  auto found = of_rule(advise(m.finish()), "cold-start");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_NE(found[0].what.find("llvm 5.00 ms, in no phase 20.0 ms"), std::string::npos) << found[0].what;
}

TEST(Advisor, AnEmptyTimelineHasNoFindings) {
  EXPECT_TRUE(advise(Timeline{}).empty());
  EXPECT_EQ(findings_text({}), "findings: nothing stands out\n");
  EXPECT_EQ(findings_table({}).notes(), std::vector<std::string>{"nothing stands out"});
}

TEST(Advisor, WithoutTheGpusSideItNamesOnlyWhatTheHostShows) {
  Seen seen = loop_with_copies(10);
  seen.timeline.work.clear(), seen.timeline.calls.clear(), seen.timeline.waits.clear();
  std::set<std::string> rules;
  for (const Finding& f : seen.findings()) rules.insert(f.rule);
  // What the statements themselves show.
  EXPECT_EQ(rules, std::set<std::string>{"copies-in-loop"});
}

TEST(Advisor, WarningsComeFirst) {
  auto all = made_gpu_timeline(50);
  auto findings = advise(all);
  ASSERT_GT(findings.size(), 2u);
  EXPECT_TRUE(
      std::is_sorted(findings.begin(), findings.end(), [](auto& a, auto& b) { return a.severity > b.severity; }));
}

TEST(Advisor, CoverCountsTimeOnce) {
  Cover c({{10, 20}, {15, 30}, {30, 31}, {50, 50}, {60, 70}});
  // Overlapping and touching spans count once.
  EXPECT_EQ(c.total(), 31);
  EXPECT_EQ(c.within(0, 100), 31);
  // Two of the first cover and five of the second.
  EXPECT_EQ(c.within(29, 65), 7);
  EXPECT_EQ(c.within(31, 60), 0);
  EXPECT_EQ(c.within(20, 10), 0);
  // Outside, the next one; inside, the place itself.
  EXPECT_EQ(c.next_start(31), 60);
  EXPECT_EQ(c.next_start(60), 60);
  EXPECT_EQ(c.next_start(61), 0);
}

}  // namespace
}  // namespace kiln::profiler
