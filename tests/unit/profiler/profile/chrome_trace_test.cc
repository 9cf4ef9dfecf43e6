// Checks what is written against the Trace Event Format, as viewers read it.
#include "profiler/profile/chrome_trace.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "made_timeline.h"
#include "profiler/profile/lanes.h"
#include "support/files.h"

namespace kiln::profiler {
namespace {

using nlohmann::json;
using trace::Step;
using LaneId = std::pair<int64_t, int64_t>;  // process, thread

/// Nanoseconds of a time that is written in microseconds.
int64_t ns(const json& us) { return std::llround(us.get<double>() * 1e3); }

json parse(const Timeline& t) { return json::parse(chrome_trace(t)); }

std::vector<json> events(const json& trace, std::string_view phase, std::string_view category = "") {
  std::vector<json> found;
  for (const json& e : trace["traceEvents"])
    if (e["ph"] == phase && (category.empty() || e["cat"] == category)) found.push_back(e);
  return found;
}

/// Everything that must hold for any trace.
void check_format(const json& trace) {
  const std::map<std::string, std::vector<std::string>> needed = {
      {"M", {"pid", "tid", "name", "args"}},
      {"X", {"pid", "tid", "ts", "dur", "cat", "name"}},
      {"C", {"pid", "ts", "name", "args"}},
      {"i", {"pid", "tid", "ts", "name", "s"}},
      {"s", {"pid", "tid", "ts", "cat", "name", "id"}},
      {"f", {"pid", "tid", "ts", "cat", "name", "id", "bp"}},
  };
  std::map<LaneId, std::vector<std::pair<int64_t, int64_t>>> open;
  std::map<LaneId, int64_t> last;
  std::set<LaneId> named;
  std::map<int64_t, LaneId> arrow_start, arrow_end;
  std::map<int64_t, int64_t> process_of_thread;
  std::map<std::string, int64_t> last_count;
  for (const json& e : trace["traceEvents"]) {
    const std::string phase = e["ph"];
    ASSERT_TRUE(needed.contains(phase)) << e;
    for (const std::string& field : needed.at(phase)) ASSERT_TRUE(e.contains(field)) << field << " of " << e;
    const LaneId lane{e["pid"], e["tid"]};
    if (phase == "M") {
      const char* value = e["args"].contains("name") ? "name" : e["args"].contains("labels") ? "labels" : nullptr;
      if (value)
        EXPECT_NE(e["args"][value], "") << e;
      else
        EXPECT_TRUE(e["args"]["sort_index"].is_number_integer()) << e;
      if (e["name"] != "thread_name") continue;
      EXPECT_TRUE(named.insert(lane).second) << "named twice: " << e;
      EXPECT_TRUE(process_of_thread.try_emplace(lane.second, lane.first).second) << "one number, two threads: " << e;
      continue;
    }
    const int64_t at = ns(e["ts"]);
    EXPECT_GE(at, 0) << e;
    if (phase == "C") {
      EXPECT_TRUE(e["args"]["bytes"].is_number_integer()) << e;
      EXPECT_GE(at, last_count[e["name"]]) << e;
      last_count[e["name"]] = at;
      continue;
    }
    EXPECT_TRUE(named.contains(lane)) << "no name for the lane of " << e;
    auto [previous, first] = last.try_emplace(lane, at);
    EXPECT_GE(at, previous->second) << "back in time: " << e;
    previous->second = at;
    if (phase == "X") {
      auto& stack = open[lane];
      while (!stack.empty() && stack.back().second <= at) stack.pop_back();
      const int64_t end = at + ns(e["dur"]);
      ASSERT_GE(end, at) << e;
      EXPECT_TRUE(stack.empty() || stack.back().second >= end) << "overlaps partly: " << e;
      stack.push_back({at, end});
    }
    if (phase == "s" || phase == "f") {
      // The end belongs to the slice that was written before it, which begins at the same time.
      ASSERT_FALSE(open[lane].empty()) << "an arrow's end on no slice: " << e;
      EXPECT_EQ(open[lane].back().first, at) << e;
      auto& ends = phase == "s" ? arrow_start : arrow_end;
      EXPECT_TRUE(ends.try_emplace(e["id"].get<int64_t>(), lane).second) << "two arrows of one id: " << e;
    }
    if (phase == "f") {
      EXPECT_EQ(e["bp"], "e");
    }
  }
  ASSERT_EQ(arrow_start.size(), arrow_end.size());
  for (const auto& [id, lane] : arrow_start) EXPECT_TRUE(arrow_end.contains(id)) << "an arrow without an end: " << id;
}

TEST(ChromeTrace, IsOfTheFormat) {
  Timeline t = made_gpu_timeline(10);
  json trace = parse(t);
  check_format(trace);
  EXPECT_EQ(events(trace, "X").size(),
            t.spans.size() + t.calls.size() + t.work.size() + t.waits.size() + t.overheads.size());
}

TEST(ChromeTrace, EveryKernelHasAnArrowFromItsCall) {
  Timeline t = made_gpu_timeline(10);
  json trace = parse(t);
  std::map<int64_t, json> from, to;  // the slices of each arrow's ends, by its id
  json before;
  for (const json& e : trace["traceEvents"]) {
    if (e["ph"] == "X") before = e;
    if (e["ph"] == "s") from[e["id"]] = before;
    if (e["ph"] == "f") to[e["id"]] = before;
  }
  ASSERT_EQ(to.size(), t.work.size());
  for (const auto& [id, slice] : to) {
    const json& call = from.at(id);
    EXPECT_EQ(call["cat"], "driver");
    EXPECT_EQ(call["args"]["correlation"], slice["args"]["correlation"]);
  }
  // The nodes of a graph all come from its launch.
  auto nodes = std::count_if(from.begin(), from.end(), [](auto& f) { return f.second["name"] == "cuGraphLaunch"; });
  EXPECT_EQ(nodes, 10 * 5);
}

TEST(ChromeTrace, KernelsCarryTheirResources) {
  TimelineMaker m;
  m.statement(7, [&] { m.launch("matmul", {.grid = {64, 2, 1}, .registers = 128, .dynamic_shared = 100 << 10}); });
  json kernel = events(parse(m.finish()), "X", "kernel").at(0);
  const json& args = kernel["args"];
  EXPECT_EQ(kernel["name"], "matmul");
  EXPECT_EQ(args["grid"], "64 x 2 x 1");
  EXPECT_EQ(args["block"], "128 x 1 x 1");
  EXPECT_EQ(args["registers per thread"], 128);
  EXPECT_EQ(args["dynamic shared bytes"], 100 << 10);
  EXPECT_EQ(args["occupancy limited by"], "shared");
  EXPECT_EQ(args["theoretical occupancy %"], 12.5);  // 2 blocks of 4 warps, of 64
  EXPECT_EQ(args["line"], "/home/user/train.py:7");
}

TEST(ChromeTrace, AFirstLaunchShowsWhatItWaitedFor) {
  TimelineMaker m;
  m.statement(3, [&] {
    m.span(Step::kContext, "cuda:0", {}, 120'000);
    m.span(Step::kLaunch, "add", [&] {
      m.span(Step::kCompile, "add", [&] {
        for (const char* phase : {"toolchain", "disk cache", "frontend", "llvm", "cubin", "disk cache, store"})
          m.span(Step::kPhase, phase, {}, 1000);
      });
      m.span(Step::kLoad, "add", {}, 200);
    });
    m.launch("add");
  });
  json trace = parse(m.finish());
  check_format(trace);
  std::map<std::string, json> slices;
  for (const json& e : events(trace, "X")) slices.try_emplace(e["name"], e);
  auto is_inside = [&](const std::string& inner, const std::string& outer) {
    ASSERT_TRUE(slices.contains(inner) && slices.contains(outer)) << inner << " in " << outer;
    const json &i = slices[inner], &o = slices[outer];
    EXPECT_EQ(i["tid"], o["tid"]);
    EXPECT_GE(i["ts"], o["ts"]);
    EXPECT_LE(ns(i["ts"]) + ns(i["dur"]), ns(o["ts"]) + ns(o["dur"]));
  };
  for (const char* phase : {"toolchain", "disk cache", "frontend", "llvm", "cubin", "disk cache, store"})
    is_inside(phase, "compile add");
  is_inside("compile add", "launch add");
  is_inside("module load add", "launch add");
  is_inside("device start cuda:0", "train.py:3");
}

TEST(ChromeTrace, TimesKeepTheirNanoseconds) {
  TimelineMaker m;
  m.now += 1'234'567;
  m.statement(1, [&] { m.now += 1; });
  std::string text = chrome_trace(m.finish());
  EXPECT_NE(text.find("\"ts\":1234.567,\"dur\":1.001,"), std::string::npos) << text;
}

TEST(ChromeTrace, KernelsAtOnceOnAStreamGetLanesOfTheirOwn) {
  Timeline t;
  t.device = "cuda:0", t.start = 1000, t.end = 9000;
  for (auto [start, end] : {std::pair<Ns, Ns>{2000, 4000}, {3000, 5000}, {3500, 3600}, {5000, 6000}}) {
    Work w;
    w.name = "k", w.start = start, w.end = end, w.stream = 7;
    t.work.push_back(w);
  }
  auto all = lanes(t);
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[0].name, "stream 7");
  EXPECT_EQ(all[1].name, "stream 7 (2)");
  EXPECT_EQ(all[0].slices.size(), 2u);  // a kernel may begin as another one ends
  EXPECT_EQ(all[1].slices.size(), 1u);
  EXPECT_EQ(all[2].slices.size(), 1u) << "a kernel inside the time of another is beside it, not part of it";
  check_format(parse(t));
}

TEST(ChromeTrace, HostSlicesThatOverlapPartlyKeepTheirTimes) {
  Timeline t;
  t.device = "cuda:0", t.start = 1000, t.end = 9000;
  t.spans.resize(2);
  t.spans[0].start = 2000, t.spans[0].end = 4000, t.spans[1].start = 3000, t.spans[1].end = 5000;
  t.spans[0].thread = t.spans[1].thread = 5;
  t.calls.resize(1);
  t.calls[0].name = "cuLaunchKernel", t.calls[0].start = 2500, t.calls[0].end = 2600, t.calls[0].thread = 5;
  json trace = parse(t);
  check_format(trace);
  EXPECT_EQ(events(trace, "X").size(), 3u);
  auto all = lanes(t);
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].slices[1].depth, 1) << "the call lies inside the first span";
}

TEST(ChromeTrace, OddNamesComeBack) {
  TimelineMaker m;
  const std::string odd = "a\"b\\c\nd\te</script><!--\x01 \xC3\xA9 \xF0\x9F\x94\xA5 <int>";
  m.launch(odd);
  m.launch("bad \xFF\xC3( \xED\xA0\x80 end");
  m.launch("");
  Timeline t = m.finish();
  json trace = parse(t);
  check_format(trace);
  auto kernels = events(trace, "X", "kernel");
  EXPECT_EQ(kernels.at(0)["name"], odd);
  const std::string bad = "\xEF\xBF\xBD";
  EXPECT_EQ(kernels.at(1)["name"], "bad " + bad + bad + "( " + bad + bad + bad + " end");
  EXPECT_EQ(chrome_trace(t).find("</script"), std::string::npos) << "it may stand in a page";
}

TEST(ChromeTrace, MemoryIsCountedFromTheStart) {
  TimelineMaker m;
  m.spend(5);
  m.memory(2048, true), m.memory(512);
  m.spend(1);
  m.memory(-512);
  auto counts = events(parse(m.finish()), "C");
  std::vector<int64_t> tensors, reserve;
  for (const json& c : counts) (c["name"] == "tensors on cuda:0" ? tensors : reserve).push_back(c["args"]["bytes"]);
  EXPECT_EQ(tensors, (std::vector<int64_t>{0, 512, 0}));
  EXPECT_EQ(reserve, (std::vector<int64_t>{0, 2048}));
}

TEST(ChromeTrace, WhatIsNotKnownIsSaid) {
  TimelineMaker m;
  m.launch("lost");
  m.t.work[0].start = m.t.work[0].end = 0;
  m.t.unknown.push_back({"kernels", "no permission"});
  m.t.dropped = 12;
  json trace = parse(m.finish());
  check_format(trace);
  std::set<std::string> said;
  for (const json& e : events(trace, "i")) said.insert(e["name"]);
  EXPECT_EQ(said,
            (std::set<std::string>{"not known: kernels", "12 records lost", "1 kernels and copies without times"}));
  EXPECT_TRUE(events(trace, "X", "kernel").empty()) << "no times are made up";
  EXPECT_EQ(trace["otherData"]["dropped_records"], 12);
  EXPECT_EQ(trace["otherData"]["unknown"][0], "kernels: no permission");
}

TEST(ChromeTrace, TheProfilersOverheadHasItsOwnProcess) {
  TimelineMaker m;
  m.overhead("activity buffer request", 5);
  m.overhead("lazy loading", 5);
  json trace = parse(m.finish());
  std::map<std::string, json> process;
  for (const json& e : events(trace, "M"))
    if (e["name"] == "process_name") process[e["args"]["name"]] = e["pid"];
  auto overheads = events(trace, "X", "overhead");
  ASSERT_EQ(overheads.size(), 2u);
  EXPECT_EQ(overheads[0]["pid"], process.at("host"));
  EXPECT_EQ(overheads[0]["name"], "lazy loading");
  EXPECT_EQ(overheads[1]["pid"], process.at("profiler"));
}

TEST(ChromeTrace, KernelsOfTheCpuAreOnTheirThread) {
  TimelineMaker m;
  m.t.device = "cpu", m.t.target = "host";
  m.statement(4, [&] { m.span(Step::kLaunch, "add", [&] { m.span(Step::kHostKernel, "add", {}, 20); }); });
  Timeline t = m.finish();
  ASSERT_EQ(t.work.size(), 1u);
  json trace = parse(t);
  check_format(trace);
  EXPECT_EQ(events(trace, "X").size(), 3u) << "a kernel is drawn once";
}

TEST(ChromeTrace, AnEmptyTimelineIsATrace) {
  json trace = parse(Timeline{});
  check_format(trace);
  EXPECT_TRUE(events(trace, "X").empty());
}

TEST(ChromeTrace, WritesTheSameBytesEachTime) {
  EXPECT_EQ(chrome_trace(made_gpu_timeline(3)), chrome_trace(made_gpu_timeline(3)));
}

class ChromeTraceFile : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/kiln_trace_XXXXXX";
    folder_ = mkdtemp(name);
  }
  std::string folder_;
};

TEST_F(ChromeTraceFile, IsTheText) {
  Timeline t = made_gpu_timeline(2000);  // several pieces
  ASSERT_TRUE(write_chrome_trace(t, folder_ + "/t.json").ok());
  EXPECT_EQ(*read_file(folder_ + "/t.json"), chrome_trace(t));
  EXPECT_EQ(list_files(folder_)->size(), 1u);
}

TEST_F(ChromeTraceFile, WhatCannotBeWrittenIsAnError) {
  Status written = write_chrome_trace(made_gpu_timeline(1), folder_ + "/no/t.json");
  ASSERT_FALSE(written.ok());
  EXPECT_EQ(written.error().message, "cannot write '" + folder_ + "/no/t.json': No such file or directory");
  written = write_chrome_trace(made_gpu_timeline(2000), "/dev/full");
  ASSERT_FALSE(written.ok());
  EXPECT_EQ(written.error().message, "cannot write '/dev/full': No space left on device");
}

}  // namespace
}  // namespace kiln::profiler
