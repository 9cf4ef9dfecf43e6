// %lines and %sass at a made-up prompt without a GPU, and their tables from samples made by hand.
#include <gtest/gtest.h>

#include "repl/views/lines_view.h"
#include "tests/unit/repl/run_prompt.h"

namespace kiln::repl {
namespace {

using profiler::Stall;

// --- tables --------------------------------------------------------------------------------------------------------

constexpr const char* kText =
    "@triton.jit\ndef add(x, y, o, BLOCK: tl.constexpr):\n    i = tl.arange(0, BLOCK)\n    # both\n    a = tl.load(x + "
    "i)\n    b = tl.load(y + i)\n    tl.store(o + i, a + b)\n";

SourceLines sources() {
  return SourceLines({SourceText::make("add.py", kText), SourceText::make("lib/help.py", "def f(x):\n    return x\n")});
}

profiler::LineTable machine() {
  profiler::LineTable t;
  t.function = "add";
  t.files = {"add.py", "lib/help.py"};
  t.code = {{0x00, 0, 3, "S2R R0, SR_TID.X", ""},
            {0x10, 0, 5, "LDG.E R4, desc[UR4][R2.64]", ""},
            {0x20, 0, 6, "LDG.E R5, desc[UR4][R6.64]", ""},
            {0x30, 1, 2, "MOV R8, R4", ""},
            {0x40, 0, 7, "FADD R4, R4, R5", ".L_x_0"},
            {0x50, 0, 7, "@P0 STG.E desc[UR4][R8.64], R4", ""},
            {0x60, -1, 0, "NOP", ""}};
  return t;
}

profiler::SampledFunction samples() {
  auto at = [](uint64_t pc, Stall stall, int64_t n, int64_t idle) {
    profiler::SampledPc s;
    s.pc = pc;
    s.counts.all[static_cast<size_t>(stall)] = n, s.counts.idle[static_cast<size_t>(stall)] = idle;
    return s;
  };
  profiler::SampledFunction f;
  f.name = "add";
  f.pcs = {at(0x00, Stall::kSelected, 4, 0), at(0x40, Stall::kLongScoreboard, 80, 60),
           at(0x50, Stall::kLgThrottle, 16, 9)};
  return f;
}

TEST(LinesView, HottestLinesFirst) {
  report::Table t = hot_lines_table(profiler::line_profile(samples(), machine()), sources(), 1);
  EXPECT_EQ(
      report::to_csv(t),
      "line,samples,share (%),nothing_issued (%),doing,source\n"
      "7,96,96,71.875,\"waits for global or local memory 83%, waits for the queue of global or local accesses 17%\","
      "\"    tl.store(o + i, a + b)\"\n");
  ASSERT_EQ(t.notes().size(), 1u);
  EXPECT_EQ(t.notes()[0], "top=2 shows all 2 lines");
}

TEST(LinesView, TheSourceWithItsSharesAndTheLinesBetween) {
  report::Table t = annotated_source_table(profiler::line_profile(samples(), machine()), sources());
  std::vector<std::string> lines;
  for (const auto& row : t.rows()) lines.push_back(row[0].text + " " + row[1].text + " " + row[3].text);
  EXPECT_EQ(lines, (std::vector<std::string>{"3 4.0 1", "4  ", "5  1", "6  1", "7 96.0 2", "help.py:2  1"}));
  EXPECT_EQ(t.rows()[1][4].text, "    # both");
  EXPECT_EQ(t.rows()[4][2].text, "████████████");
}

TEST(LinesView, HotInstructionsInTheOrderOfTheCode) {
  report::Table t = hot_instructions_table(samples(), machine(), sources(), 2);
  ASSERT_EQ(t.rows().size(), 2u);
  EXPECT_EQ(t.rows()[0][0].text, "0040");
  EXPECT_EQ(t.rows()[0][4].text, "FADD R4, R4, R5");
  EXPECT_EQ(t.rows()[1][3].text, "7");
}

TEST(LinesView, StaticLinesCountWhatThereIs) {
  report::Table t = static_lines_table({{}, machine()}, sources());
  ASSERT_EQ(t.rows().size(), 5u);
  EXPECT_EQ(t.rows()[3][1].text, "2");
  EXPECT_EQ(t.rows()[3][3].text, "1 FADD, 1 STG.E");
  EXPECT_EQ(t.notes().size(), 1u);
  report::Table ptx_only = static_lines_table({machine(), {}}, sources());
  EXPECT_EQ(ptx_only.columns().size(), 4u) << "no column for machine code that nothing read";
  EXPECT_TRUE(static_lines_table({}, sources()).rows().empty());
}

TEST(LinesView, SassHasTheLineBesideIt) {
  EXPECT_EQ(sass_listing(machine(), sources()),
            "  0000  S2R R0, SR_TID.X                   3 |     i = tl.arange(0, BLOCK)\n"
            "  0010  LDG.E R4, desc[UR4][R2.64]         5 |     a = tl.load(x + i)\n"
            "  0020  LDG.E R5, desc[UR4][R6.64]         6 |     b = tl.load(y + i)\n"
            "  0030  MOV R8, R4                      help.py:2 |     return x\n"
            ".L_x_0:\n"
            "  0040  FADD R4, R4, R5                    7 |     tl.store(o + i, a + b)\n"
            "  0050  @P0 STG.E desc[UR4][R8.64], R4     7\n"
            "  0060  NOP\n");
}

// --- the prompt ----------------------------------------------------------------------------------------------------

constexpr const char* kSetup = R"(import torch, triton
import triton.language as tl

@triton.jit
def add(x, y, o, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(x + i, mask=i < n)
    b = tl.load(y + i, mask=i < n)
    tl.store(o + i, a + b, mask=i < n)

x = torch.ones(1000)
o = torch.empty(1000)
)";

bool has(const Said& said, std::string_view part) { return said.out.find(part) != std::string::npos; }

TEST(LinesMagic, WithoutAGpuShowsInstructionsByLine) {
  for (const char* what : {"add[(1,)](x, x, o, 1000, BLOCK=1024)", "add", "add BLOCK=512 num_warps=8"}) {
    SCOPED_TRACE(what);
    Said s = run(std::string(kSetup) + "%lines " + what + " top=3\n");
    EXPECT_EQ(s.code, 0) << s.err;
    EXPECT_TRUE(has(s, "add for sm_90a: instructions by line, not sampled")) << s.out;
    EXPECT_TRUE(has(s, "nothing was sampled: cpu has no program counters to sample")) << s.out;
    EXPECT_TRUE(has(s, "    tl.store(o + i, a + b, mask=i < n)")) << s.out;
  }
  Said target = run(std::string(kSetup) + "%target sm_80\n%lines add\n");
  EXPECT_TRUE(has(target, "add for sm_80")) << target.out << target.err;
}

TEST(LinesMagic, KernelsOfExpressionsHaveTheirSource) {
  Said s = run("x = randn(100, 100)\n%lines exp(x) * 2\n");
  EXPECT_EQ(s.code, 0) << s.err;
  EXPECT_TRUE(has(s, "tl.exp(")) << s.out;
  EXPECT_TRUE(has(s, "nothing was sampled")) << s.out;
}

TEST(LinesMagic, ErrorsSayWhatWouldWork) {
  EXPECT_NE(run("%lines\n").err.find("%lines needs STATEMENT|KERNEL"), std::string::npos);
  EXPECT_NE(run("%lines top=3\n").err.find("a statement is missing"), std::string::npos);
  EXPECT_NE(run("%lines x top=0\n").err.find("top must be an integer from 1"), std::string::npos);
  EXPECT_NE(run("%lines x period=1000\n").err.find("period is a power of two of cycles"), std::string::npos);
  EXPECT_NE(run("%lines 1 + 1\n").err.find("launches no kernel"), std::string::npos);
  EXPECT_NE(run("%sass 1 + 1\n").err.find("%sass shows a kernel by its name"), std::string::npos);
}

TEST(SassMagic, ShowsInstructionsOrSaysWhatIsMissing) {
  Said s = run(std::string(kSetup) + "%sass add BLOCK=512\n");
  if (s.code != 0) {
    EXPECT_NE(s.err.find("neither nvJitLink nor ptxas was found"), std::string::npos) << s.err;
    GTEST_SKIP() << s.err;
  }
  EXPECT_TRUE(has(s, "a = tl.load(x + i, mask=i < n)")) << s.out;
  EXPECT_TRUE(has(s, "LDG.E") || has(s, "nvdisasm was not found")) << s.out;
}

}  // namespace
}  // namespace kiln::repl
