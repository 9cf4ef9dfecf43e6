#include "profiler/report/table.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>

#include <nlohmann/json.hpp>

namespace kiln::report {
namespace {

Table sample() {
  Table t({{"kernel", "", Align::kLeft}, {"time", "us"}, {"note", "", Align::kLeft}});
  t.add_row({"add", Cell::of(12.345678, 1), "a, \"b\" | c"});
  t.add_row({"softmax ±", Cell::unknown("no GPU"), ""});
  t.add_note("measured cold");
  return t;
}

TEST(Table, Text) {
  EXPECT_EQ(to_text(sample()),
            "kernel     time us  note\n"
            "add           12.3  a, \"b\" | c\n"
            "softmax ±        –\n"
            "measured cold\n"
            "– time: no GPU\n");
}

TEST(Table, ColourOnlyWhenAskedFor) {
  EXPECT_EQ(to_text(sample()).find('\033'), std::string::npos);
  EXPECT_NE(to_text(sample(), {.color = true}).find('\033'), std::string::npos);
}

TEST(Table, Csv) {
  EXPECT_EQ(to_csv(sample()),
            "kernel,time (us),note\n"
            "add,12.345678,\"a, \"\"b\"\" | c\"\n"
            "softmax ±,,\n");
}

TEST(Table, Markdown) {
  EXPECT_EQ(to_markdown(sample()),
            "| kernel | time us | note |\n"
            "|---|--:|---|\n"
            "| add | 12.3 | a, \"b\" \\| c |\n"
            "| softmax ± | – |  |\n"
            "\nmeasured cold\n"
            "\n– time: no GPU\n");
}

TEST(Table, LinesInsideACell) {
  Table t({{"name", "", Align::kLeft}, {"note", "", Align::kLeft}});
  t.add_row({"one\ntwo", "a\rb"});
  t.add_row({"x\r\ny\n", "c"});
  EXPECT_EQ(to_csv(t), "name,note\n\"one\ntwo\",\"a\rb\"\n\"x\r\ny\n\",c\n");
  EXPECT_EQ(to_markdown(t), "| name | note |\n|---|---|\n| one<br>two | a<br>b |\n| x<br>y<br> | c |\n");
}

TEST(Table, Json) {
  auto doc = nlohmann::json::parse(to_json(sample()));
  EXPECT_EQ(doc["rows"][0]["kernel"], "add");
  EXPECT_DOUBLE_EQ(doc["rows"][0]["time"], 12.345678);
  EXPECT_TRUE(doc["rows"][1]["time"].is_null());
  EXPECT_EQ(doc["units"]["time"], "us");
  EXPECT_EQ(doc["notes"].size(), 2u);
}

TEST(Table, JsonKeepsIntegersAndHasNoDashes) {
  Table t({{"kernel", "", Align::kLeft}, {"warps", ""}, {"bytes", ""}, {"speed-up", "", Align::kRight, "speedup"}});
  t.add_row({"", Cell::of(int64_t{4}), Cell::shown("4.10 kB", int64_t{4096}), Cell::none()});
  t.add_row({"add", Cell::of(4.0, 0), Cell("by text"), Cell("")});
  const std::string json = to_json(t);
  EXPECT_NE(json.find(R"({"kernel":"","warps":4,"bytes":4096,"speedup":null})"), std::string::npos) << json;
  EXPECT_NE(json.find(R"({"kernel":"add","warps":4.0,"bytes":"by text","speedup":null})"), std::string::npos) << json;
  EXPECT_EQ(json.find("notes"), std::string::npos) << json;
  EXPECT_NE(to_text(t).find("–"), std::string::npos);
}

TEST(Table, AReasonOfSeveralColumnsIsToldOnce) {
  Table t({{"kernel", "", Align::kLeft}, {"registers", ""}, {"spills", "B"}, {"time", "us"}});
  t.add_row({"a", Cell::unknown("no ptxas"), Cell::unknown("no ptxas"), Cell::unknown("no GPU")});
  t.add_row({"b", Cell::unknown("no ptxas"), Cell::unknown("no ptxas"), Cell::unknown("no ptxas")});
  EXPECT_EQ(t.notes(), (std::vector<std::string>{"– registers, spills, time: no ptxas", "– time: no GPU"}));
}

TEST(Table, NotFiniteIsUnknown) {
  EXPECT_TRUE(Cell::of(std::nan(""), 2).is_unknown);
  EXPECT_TRUE(Cell::of(1.0 / 0.0, 2).is_unknown);
}

TEST(Table, Formats) {
  EXPECT_EQ(parse_format("md"), Format::kMarkdown);
  EXPECT_EQ(parse_format("html"), std::nullopt);
}

// https://no-color.org: set and not empty.
TEST(WantsColor, AsNoColorSays) {
  const int terminal = posix_openpt(O_RDWR | O_NOCTTY);
  ASSERT_GE(terminal, 0);
  setenv("TERM", "xterm", 1);
  unsetenv("NO_COLOR");
  EXPECT_TRUE(wants_color(terminal));
  setenv("NO_COLOR", "", 1);
  EXPECT_TRUE(wants_color(terminal));
  setenv("NO_COLOR", "0", 1);
  EXPECT_FALSE(wants_color(terminal));
  unsetenv("NO_COLOR");
  close(terminal);
}

TEST(Table, HumanNumbers) {
  EXPECT_EQ(human_bytes(999), "999 B");
  EXPECT_EQ(human_bytes(268435456), "268 MB");
  EXPECT_EQ(human_bytes(3221225472.0), "3.22 GB");
  EXPECT_EQ(human_time(186.24), "186 us");
  EXPECT_EQ(human_time(1864.2), "1.86 ms");
  EXPECT_EQ(human_time(2.5e6), "2.50 s");
}

}  // namespace
}  // namespace kiln::report
