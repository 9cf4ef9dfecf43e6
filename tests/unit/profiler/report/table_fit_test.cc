// Tables in the width of a terminal.
#include <gtest/gtest.h>

#include <algorithm>

#include "profiler/report/table.h"

namespace kiln::report {
namespace {

int widest_line(const std::string& text) {
  int widest = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t end = text.find('\n', at);
    widest = std::max(widest, display_width(text.substr(at, end - at)));
    at = end + 1;
  }
  return widest;
}

Table wide(int rows, const std::string& name = "variant number") {
  Table t({{"variant", "", Align::kLeft},
           {"bytes", "", Align::kRight, "", false, -1},
           {"cold", "us", Align::kRight, "", false, 1},
           {"hot", "us"},
           {"launch", "us"},
           {"verdict", "", Align::kLeft, "", false, 1}});
  for (int i = 0; i < rows; ++i)
    t.add_row({name + " " + std::to_string(i), Cell::shown("101 MB", int64_t{101000000}), Cell::of(186.25, 1),
               Cell::of(181.0, 1), Cell::of(2.1, 1), i ? "FASTER 1.17x" : "baseline"});
  t.add_note("a note of many words that is longer than the terminal is wide");
  return t;
}

TEST(TableFit, StaysAsItIsWhereItFits) { EXPECT_EQ(to_text(wide(2), {.width = 120}), to_text(wide(2))); }

TEST(TableFit, ContinuesBelowWithTheLessImportantColumns) {
  EXPECT_EQ(to_text(wide(2), {.width = 44}),
            "                   cold    hot\n"
            "variant              us     us  verdict\n"
            "variant number 0  186.2  181.0  baseline\n"
            "variant number 1  186.2  181.0  FASTER 1.17x\n"
            "\n"
            "variant            bytes  launch us\n"
            "variant number 0  101 MB        2.1\n"
            "variant number 1  101 MB        2.1\n"
            "a note of many words that is longer than the\n"
            "terminal is wide\n");
}

TEST(TableFit, RowsThatSayNothingBelowAreLeftOut) {
  Table t({{"what", "", Align::kLeft},
           {"state", "", Align::kLeft},
           {"found", "", Align::kLeft},
           {"cost", "", Align::kLeft}});
  t.add_row({"GPU", "missing", "no CUDA driver: libcuda.so.1", "kernels run on the CPU"});
  t.add_row({"CPU", "ok", "a processor with a long name", ""});
  EXPECT_EQ(to_text(t, {.width = 48}),
            "what  state    found\n"
            "GPU   missing  no CUDA driver: libcuda.so.1\n"
            "CPU   ok       a processor with a long name\n"
            "\n"
            "what  cost\n"
            "GPU   kernels run on the CPU\n");
}

TEST(TableFit, WrappedSourceStaysIndented) {
  Table t({{"line", ""}, {"source", "", Align::kLeft}});
  t.add_row({Cell::of(int64_t{3}), "    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)"});
  EXPECT_EQ(to_text(t, {.width = 40}),
            "line  source\n"
            "   3      i = tl.program_id(0) * BLOCK +\n"
            "          tl.arange(0, BLOCK)\n");
}

TEST(TableFit, BreaksAsFewHeadsAsPossible) {
  Table t({{"kernel", "", Align::kLeft}, {"spills", "B"}, {"shared", "B"}, {"PTX instructions", ""}});
  t.add_row({"matmul_add_gelu_kernel", Cell::of(int64_t{0}), Cell::of(int64_t{65536}), Cell::of(int64_t{1998})});
  EXPECT_EQ(to_text(t, {.width = 58}),
            "                                                     PTX\n"
            "kernel                  spills B  shared B  instructions\n"
            "matmul_add_gelu_kernel         0     65536          1998\n");
}

TEST(TableFit, LongTablesSayWhatIsLeftOut) {
  const std::string text = to_text(wide(30), {.width = 44, .whole = "print(_.to_text())"});
  EXPECT_NE(text.find("left out at 44 columns: bytes, hot us,"), std::string::npos) << text;
  EXPECT_NE(text.find("print(_.to_text())"), std::string::npos);
  EXPECT_EQ(text.find("101 MB"), std::string::npos);
}

TEST(TableFit, WrapsTextsAtBlanks) {
  Table t({{"name", "", Align::kLeft}, {"meaning", "", Align::kLeft}});
  t.add_row({"KILN_X", "what it means in words of which a terminal takes only some"});
  EXPECT_EQ(to_text(t, {.width = 30}),
            "name    meaning\n"
            "KILN_X  what it means in words\n"
            "        of which a terminal\n"
            "        takes only some\n");
}

TEST(TableFit, AColumnOfTimesHasOneUnit) {
  Table t({{"cold", "us"}, {"whole", "", Align::kRight, "whole_us"}, {"roof", "us"}});
  for (double us : {950.0, 5900.0, 12000.0})
    t.add_row({Cell::of(us, 1), Cell::shown(human_time(us), us), Cell::shown("5 mem", us)});
  EXPECT_EQ(to_text(t, {.width = 80}),
            "cold ms  whole ms  roof us\n"
            "  0.950     0.950    5 mem\n"
            "   5.90      5.90    5 mem\n"
            "   12.0      12.0    5 mem\n");
  EXPECT_NE(to_text(t).find("5900.0  5.90 ms"), std::string::npos) << to_text(t);
}

TEST(TableFit, ALongTableRatherBreaksWordsThanLeavesOutAColumn) {
  Table t({{"name", "", Align::kLeft},
           {"value", "", Align::kLeft},
           {"default", "", Align::kLeft},
           {"meaning", "", Align::kLeft}});
  for (int i = 0; i < 30; ++i) t.add_row({"variable", "", "", "as " + std::string(40, 'w')});
  const std::string text = to_text(t, {.width = 60});
  EXPECT_LE(widest_line(text), 60) << text;
  EXPECT_EQ(std::count(text.begin(), text.end(), 'w'), 30 * 40) << text;
  EXPECT_EQ(text.find("left out"), std::string::npos) << text;
}

TEST(TableFit, NoTerminalIsTooNarrow) {
  for (int width : {1, 2, 20, 21, 33, 79, 80, 160}) {
    const std::string text = to_text(wide(3), {.width = width});
    EXPECT_LE(widest_line(text), std::max(width, 34)) << text;
    EXPECT_NE(text.find("FASTER"), std::string::npos);
  }
  // A name without a blank is cut, as it is only there to tell the rows apart.
  const std::string text = to_text(wide(3, std::string(60, 'x')), {.width = 60});
  EXPECT_LE(widest_line(text), 60) << text;
  EXPECT_NE(text.find("xxx…"), std::string::npos) << text;
  EXPECT_EQ(to_text(Table({{"only", "", Align::kLeft}}), {.width = 1}), "only\n");
}

}  // namespace
}  // namespace kiln::report
