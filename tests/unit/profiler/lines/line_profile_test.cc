#include "profiler/lines/line_profile.h"

#include <gtest/gtest.h>

#include <set>

namespace kiln::profiler {
namespace {

StallCounts counts(std::initializer_list<std::pair<Stall, int64_t>> all, int64_t idle_of_first = 0) {
  StallCounts c;
  for (auto [stall, n] : all) c.all[static_cast<size_t>(stall)] = n;
  if (all.size()) c.idle[static_cast<size_t>(all.begin()->first)] = idle_of_first;
  return c;
}

// x = load, y = load, store(x + y), and a branch to itself behind the end.
LineTable table() {
  LineTable t;
  t.function = "add";
  t.files = {"add.py", "help.py"};
  t.code = {{0, 0, 8, "LDG", ""},    {16, 0, 9, "LDG", ""},  {32, 1, 3, "FMUL", ""},
            {48, 0, 10, "FADD", ""}, {64, 0, 10, "STG", ""}, {80, -1, 0, "BRA", ""}};
  return t;
}

TEST(LineProfile, SumsSamplesByLine) {
  SampledFunction f;
  f.name = "add";
  f.pcs = {{0, counts({{Stall::kSelected, 5}})},
           {32, counts({{Stall::kMathPipe, 10}}, 7)},
           {48, counts({{Stall::kLongScoreboard, 70}, {Stall::kSelected, 5}}, 60)},
           {64, counts({{Stall::kLgThrottle, 8}})},
           {80, counts({{Stall::kDrain, 2}}, 2)}};
  LineProfile p = line_profile(f, table());
  EXPECT_EQ(p.counts.total(), 100);
  EXPECT_EQ(p.counts.total_idle(), 69);
  EXPECT_EQ(p.unplaced, 2);
  ASSERT_EQ(p.lines.size(), 5u);
  EXPECT_EQ(p.lines[0].file, -1);
  EXPECT_EQ(p.lines[1].line, 8);
  EXPECT_EQ(p.lines[2].line, 9) << "code without samples";
  EXPECT_EQ(p.lines[2].counts.total(), 0);
  EXPECT_EQ(p.lines[2].instructions, 1);
  EXPECT_EQ(p.lines[3].line, 10);
  EXPECT_EQ(p.lines[3].counts.total(), 83);
  EXPECT_EQ(p.lines[3].instructions, 2);
  EXPECT_EQ(p.lines[3].hottest, 48u);
  EXPECT_DOUBLE_EQ(p.share(p.lines[3]), 0.83);
  EXPECT_EQ(p.lines[4].file, 1);
  auto hot = hottest_first(p);
  ASSERT_EQ(hot.size(), 4u);
  EXPECT_EQ(hot[0]->line, 10);
  EXPECT_EQ(hot[1]->file, 1);
  EXPECT_EQ(hot[2]->line, 8);
  int64_t sum = 0;
  for (const LineSamples& l : p.lines) sum += l.counts.total();
  EXPECT_EQ(sum, p.counts.total());
}

TEST(LineProfile, OfNothingIsEmpty) {
  LineProfile p = line_profile({}, {});
  EXPECT_TRUE(p.lines.empty());
  EXPECT_TRUE(hottest_first(p).empty());
  p = line_profile({}, table());
  EXPECT_EQ(p.lines.size(), 4u);
  EXPECT_EQ(p.share(p.lines[0]), 0);
  EXPECT_EQ(describe(p.counts), "");
}

// Samples at instructions that the table does not have (another cubin, say) are counted and placed nowhere.
TEST(LineProfile, UnknownInstructionsAreNotLost) {
  SampledFunction f;
  f.pcs = {{4096, counts({{Stall::kWait, 3}})}};
  LineProfile p = line_profile(f, table());
  EXPECT_EQ(p.unplaced, 3);
  EXPECT_EQ(p.counts.total(), 3);
  EXPECT_EQ(hottest_first(p)[0]->file, -1);
}

TEST(LineProfile, ReasonsInWords) {
  StallCounts c = counts({{Stall::kLongScoreboard, 60}, {Stall::kSelected, 30}, {Stall::kWait, 6}, {Stall::kDrain, 4}});
  EXPECT_EQ(describe(c), "waits for global or local memory 60%, waits for a fixed-latency dependency 6%, issues 30%");
  EXPECT_EQ(c.by_weight().front(), Stall::kLongScoreboard);
  EXPECT_EQ(c.by_weight().back(), Stall::kSelected);
}

TEST(LineProfile, ReadsCuptisNames) {
  auto wait = parse_stall_counter("smsp__pcsamp_warps_issue_stalled_wait");
  ASSERT_TRUE(wait);
  EXPECT_EQ(wait->stall, Stall::kWait);
  EXPECT_FALSE(wait->idle);
  auto idle = parse_stall_counter("smsp__pcsamp_warps_issue_stalled_long_scoreboard_not_issued");
  ASSERT_TRUE(idle);
  EXPECT_EQ(idle->stall, Stall::kLongScoreboard);
  EXPECT_TRUE(idle->idle);
  auto later = parse_stall_counter("smsp__pcsamp_warps_issue_stalled_of_a_later_chip");
  ASSERT_TRUE(later);
  EXPECT_EQ(later->stall, Stall::kOther);
  EXPECT_FALSE(parse_stall_counter("smsp__pcsamp_samples_data_dropped"));
  EXPECT_FALSE(parse_stall_counter("smsp__pcsamp_sample_count"));
  // Every reason of an H200.
  for (const char* name :
       {"barrier", "branch_resolving", "dispatch_stall", "drain", "imc_miss", "lg_throttle", "long_scoreboard",
        "math_pipe_throttle", "membar", "mio_throttle", "misc", "no_instructions", "not_selected", "selected",
        "short_scoreboard", "sleeping", "tex_throttle", "wait", "warpgroup_arrive"}) {
    auto counter = parse_stall_counter(std::string("smsp__pcsamp_warps_issue_stalled_") + name);
    ASSERT_TRUE(counter) << name;
    EXPECT_NE(counter->stall, Stall::kOther) << name;
  }
}

TEST(LineProfile, EveryReasonHasAnOwnName) {
  std::set<std::string_view> names;
  for (size_t i = 0; i < kNumStalls; ++i) {
    const auto stall = static_cast<Stall>(i);
    EXPECT_TRUE(names.insert(name(stall)).second) << name(stall);
    EXPECT_FALSE(in_words(stall).empty());
  }
}

}  // namespace
}  // namespace kiln::profiler
