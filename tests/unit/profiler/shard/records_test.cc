#include "profiler/shard/records.h"

#include <gtest/gtest.h>
#include <set>
#include <tuple>

#include <cmath>
#include <fstream>

#include "profiler/shard/merge.h"
#include "support/files.h"
#include "support/process.h"

namespace kiln::profiler {
namespace {

ShardRecord point(size_t number, size_t total, double us, std::string device = "GPU") {
  ShardRecord r;
  r.list = "abc";
  r.number = number, r.total = total;
  r.expression = "f(\"x\")", r.options = "cache=hot";
  r.at = {{"n", std::to_string(number)}, {"dtype", "bf16"}};
  r.device = std::move(device), r.driver = "580", r.version = "1", r.time = "2026-01-01T00:00:00Z", r.shard = "0/1";
  SweepCell base, other;
  base.variant = "f", base.is_baseline = true, base.us = us, base.spread = 0.25, base.q1_us = us - 1,
  base.q3_us = us + 1, base.bytes = 64;
  other.variant = "g", other.us = us / 2;
  other.decision.verdict = Verdict::kFaster, other.decision.pairs = 12, other.decision.effect = std::log(2);
  other.decision.interval_95 = {0.5, 0.75};
  r.cells = {base, other};
  return r;
}

ShardRecord configuration(size_t number, double us, double now_us, std::string problem = "") {
  ShardRecord r = point(number, 4, us);
  r.kind = ShardedKind::kTune;
  r.at = {{"configuration", "BLOCK: " + std::to_string(number)}};
  r.cells.resize(1);
  r.cells[0].variant = "Config(" + std::to_string(number) + ")";
  r.cells[0].is_baseline = number == 0;
  r.cells[0].problem = std::move(problem);
  if (number == 0) return r;
  SweepCell now;
  now.variant = "Config(0)", now.is_baseline = true, now.us = now_us;
  r.cells.push_back(now);
  return r;
}

std::string notes_of(const report::Table& table) {
  std::string out;
  for (const std::string& note : table.notes()) out += note + "\n";
  return out;
}

void append_text(const std::string& path, std::string_view text) { std::ofstream(path, std::ios::app) << text; }

TEST(ShardRecords, ALineHoldsAllOfOne) {
  const std::string line = to_line(point(3, 8, 10));
  EXPECT_EQ(line.find('\n'), line.size() - 1);
  const auto read = parse_line(line);
  ASSERT_TRUE(read);
  EXPECT_EQ(to_line(*read), line);
  EXPECT_EQ(read->at, (std::vector<std::pair<std::string, std::string>>{{"n", "3"}, {"dtype", "bf16"}}));
  EXPECT_EQ(read->cells[1].decision.verdict, Verdict::kFaster);
  EXPECT_EQ(read->cells[1].decision.interval_95.high, 0.75);
  EXPECT_TRUE(std::isnan(read->cells[1].q1_us));
  // No part of a line is one.
  for (size_t size = 0; size + 1 < line.size(); ++size) EXPECT_FALSE(parse_line(line.substr(0, size))) << size;
  for (const char* text : {"{}", "[1]", "null", "{\"kiln_shard\":2}"}) EXPECT_FALSE(parse_line(text)) << text;
  std::string beyond = line;
  beyond.replace(beyond.find("\"number\":3"), 10, "\"number\":8");
  EXPECT_FALSE(parse_line(beyond));
}

TEST(ShardRecords, AListIsAllThatResultsDependOn) {
  const ShardedList list{ShardedKind::kSweep, "text", "f(n)", "cache=hot", {"n=1", "n=2"}};
  auto differs = [&](auto change) {
    ShardedList other = list;
    change(other);
    EXPECT_NE(other.id(), list.id());
  };
  differs([](ShardedList& l) { l.kind = ShardedKind::kTune; });
  differs([](ShardedList& l) { l.program = "texts"; });
  differs([](ShardedList& l) { l.expression = "g(n)"; });
  differs([](ShardedList& l) { l.options = ""; });
  differs([](ShardedList& l) { l.items = {"n=1", "n=3"}; });
  differs([](ShardedList& l) { l.items = {"n=1n=2"}; });
  differs([](ShardedList& l) { l.program = "", l.expression = "textf(n)"; });
  EXPECT_EQ(ShardedList(list).id(), list.id());
}

TEST(ShardRecords, WhatAFileHoldsStaysThere) {
  const ScratchFolder folder;
  const std::string out = folder.path + "/new/folder";
  EXPECT_TRUE(read_shards(out)->records.empty());
  {
    auto file = ShardFile::open(out, {0, 2});
    ASSERT_TRUE(file.ok()) << render(file.error());
    ASSERT_TRUE(file->append(point(0, 3, 1)).ok());
    // Read while it is open: what was appended is there.
    EXPECT_EQ(read_shards(out)->records.size(), 1u);
  }
  auto again = ShardFile::open(out, {0, 2});
  ASSERT_TRUE(again.ok());
  ASSERT_TRUE(again->append(point(2, 3, 1)).ok());
  auto other = ShardFile::open(out, {1, 2});
  ASSERT_TRUE(other.ok());
  ASSERT_TRUE(other->append(point(1, 3, 1)).ok());
  ASSERT_TRUE(write_file_atomic(out + "/notes.txt", "not of ours\n").ok());
  const auto read = read_shards(out);
  EXPECT_EQ(read->files, 2u);
  EXPECT_EQ(read->torn, 0u);
  std::set<std::tuple<std::string, size_t, std::string>> keys;
  for (const ShardRecord& r : read->records) keys.emplace(r.list, r.number, r.device);
  EXPECT_EQ(keys, (std::set<std::tuple<std::string, size_t, std::string>>{
                      {"abc", 0, "GPU"}, {"abc", 1, "GPU"}, {"abc", 2, "GPU"}}));
}

TEST(ShardRecords, ALineThatWasCutIsNoneAndSpoilsNoOther) {
  const ScratchFolder folder;
  const std::string path = folder.path + "/shard-0-of-1.jsonl", line = to_line(point(1, 3, 1));
  append_text(path, to_line(point(0, 3, 1)));
  for (const size_t size : {size_t{1}, line.size() / 2, line.size() - 1}) {
    // A process died here; the last of these cuts only the end of the line.
    append_text(path, line.substr(0, size));
    const auto read = read_shards(folder.path);
    EXPECT_EQ(read->records.size(), 1u) << size;
    EXPECT_EQ(read->torn, 1u);
    auto file = ShardFile::open(folder.path, {0, 1});
    ASSERT_TRUE(file.ok());
    ASSERT_TRUE(file->append(point(2, 3, 1)).ok());
    EXPECT_EQ(read_shards(folder.path)->records.back().number, 2u);
    ASSERT_TRUE(write_file_atomic(path, to_line(point(0, 3, 1))).ok());
  }
}

TEST(ShardRecords, AShardHasOneProcess) {
  const ScratchFolder folder;
  {
    auto first = ShardFile::open(folder.path, {1, 2});
    ASSERT_TRUE(first.ok());
    const auto second = ShardFile::open(folder.path, {1, 2});
    ASSERT_FALSE(second.ok());
    EXPECT_EQ(second.error().message, "another process is measuring shard 1/2 into " + folder.path);
    EXPECT_TRUE(ShardFile::open(folder.path, {0, 2}).ok());
  }
  EXPECT_TRUE(ShardFile::open(folder.path, {1, 2}).ok());
  EXPECT_EQ(ShardFile::open("/dev/null/x", {0, 1}).error().kind, ErrorKind::kIo);
}

TEST(MergeShards, NumbersRunThroughAndDevicesStayApart) {
  ShardRecords all;
  all.records = {point(2, 6, 1), point(0, 6, 1), point(1, 6, 1, "other GPU"), point(5, 6, 1)};
  const auto lists = merge_shards(all);
  ASSERT_EQ(lists.size(), 2u);
  EXPECT_EQ(lists[0].records[0].number, 0u);
  EXPECT_EQ(lists[0].records[2].number, 5u);
  EXPECT_EQ(lists[0].missing, (std::vector<size_t>{1, 3, 4}));
  EXPECT_EQ(missing_note(lists[0]), "3 of 6 missing: 1, 3, 4");
  EXPECT_EQ(lists[1].missing, (std::vector<size_t>{0, 2, 3, 4, 5}));
  EXPECT_EQ(missing_note(lists[1]), "5 of 6 missing: 0, 2–5");
  const report::Table table = merged_table(lists[0]);
  EXPECT_EQ(table.title(), "sweep f(\"x\") cache=hot on GPU");
  EXPECT_EQ(table.rows().size(), 6u);  // three points of two contenders
  EXPECT_EQ(merged_table(lists[1]).title(), "sweep f(\"x\") cache=hot on other GPU");
}

TEST(MergeShards, OfOneNumberTheLastCounts) {
  ShardRecords all;
  all.records = {point(0, 1, 5), point(0, 1, 7), point(0, 1, 6)};
  all.records[1].time = "2026-01-02T00:00:00Z";
  const auto lists = merge_shards(all);
  ASSERT_EQ(lists[0].records.size(), 1u);
  EXPECT_EQ(lists[0].records[0].cells[0].us, 7);
  EXPECT_EQ(missing_note(lists[0]), "all 1 are there");
}

TEST(MergeShards, TheBestIsByTheRatioToWhatWasTimedBesideIt) {
  ShardRecords all;
  // The second shard's GPU is slower: 12 us there are more than twice as fast, 9 us on the first are less.
  all.records = {configuration(0, 10, 0), configuration(1, 9, 10), configuration(2, 12, 30),
                 configuration(3, 0, 10, "failed: no")};
  auto lists = merge_shards(all);
  ASSERT_EQ(lists.size(), 1u);
  ASSERT_NE(lists[0].best(), nullptr);
  EXPECT_EQ(lists[0].best()->number, 2u);
  report::Table table = merged_table(lists[0]);
  EXPECT_EQ(table.rows()[0][1].text, "BLOCK: 2");
  EXPECT_EQ(table.rows()[2][1].text, "BLOCK: 0 (now)");
  EXPECT_EQ(table.rows()[3][5].text, "failed: no");
  EXPECT_EQ(notes_of(table), "best: Config(2), 2.50 times as fast as the launch as it stands\n");
  // Where one has no ratio, times decide.
  all.records[2].cells.resize(1);
  EXPECT_EQ(merge_shards(all)[0].best()->number, 1u);
  all.records = {configuration(3, 0, 10, "failed: no")};
  lists = merge_shards(all);
  EXPECT_EQ(lists[0].best(), nullptr);
  EXPECT_EQ(notes_of(merged_table(lists[0])), "");
}

TEST(MergeShards, VersionsAndDriversAreNamed) {
  ShardRecords all;
  all.records = {point(0, 2, 1), point(1, 2, 1)};
  all.records[1].version = "2", all.records[1].driver = "590";
  const std::string notes = notes_of(merged_table(merge_shards(all)[0]));
  EXPECT_NE(notes.find("measured by several versions: 1, 2\nmeasured with several drivers: 580, 590\n"),
            std::string::npos)
      << notes;
}

}  // namespace
}  // namespace kiln::profiler
