// The tables of a profile on timelines made by hand: golden text, sums that add up exactly, and declared unknowns.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <sstream>

#include "made_timeline.h"
#include "profiler/profile/graph_nodes.h"
#include "profiler/profile/intervals.h"
#include "profiler/profile/latency.h"
#include "profiler/profile/memory.h"
#include "profiler/profile/ops.h"
#include "profiler/profile/stacks.h"
#include "profiler/profile/streams.h"
#include "profiler/profile/tables.h"

namespace kiln::profiler {
namespace {

using trace::Step;

Span span(Step step, std::string name, Ns start, Ns end, uint32_t thread = 1) {
  Span s;
  s.step = step, s.name = std::move(name), s.start = start, s.end = end, s.thread = thread;
  return s;
}

Timeline gpu(Ns end) {
  Timeline t;
  t.device = "cuda:0", t.hardware = "NVIDIA H200", t.target = "sm_90a", t.start = 0, t.end = end;
  return t;
}

/// A launch: the call and its kernel.
void launch(Timeline& t, uint32_t id, std::string name, Ns call, Ns call_end, Ns start, Ns end, uint32_t stream = 7) {
  ApiCall c;
  c.name = "cuLaunchKernel", c.start = call, c.end = call_end, c.thread = 1, c.correlation = id;
  t.calls.push_back(c);
  Work w;
  w.name = std::move(name), w.correlation = id, w.stream = stream, w.start = start, w.end = end;
  // The pieces of a launch: in the call, in the command buffer, at the GPU.
  w.queued = call + 500, w.submitted = call + 800;
  w.grid = {98, 1, 1}, w.block = {128, 1, 1}, w.cluster = {1, 1, 1};
  w.registers = 40, w.static_shared = 0, w.dynamic_shared = 49152, w.local_bytes = 0;
  t.work.push_back(w);
}

/// Two steps of a launch each; the second kernel waits for the first.
Timeline two_steps() {
  Timeline t = gpu(40000);
  t.spans = {span(Step::kRange, "step", 0, 5000), span(Step::kLaunch, "add", 1000, 4000),
             span(Step::kRange, "step", 6000, 10000), span(Step::kLaunch, "add", 7000, 9000)};
  // The second begins while the first still runs, and is queued behind it.
  launch(t, 1, "add", 1500, 3500, 6000, 16000);
  launch(t, 2, "add", 7500, 8500, 17000, 27000);
  join(t);
  return t;
}

TEST(Ops, GoldenText) {
  const Timeline t = two_steps();
  OpsOptions o;
  // Declared for the operation that launches, and so for each of its kernels.
  o.flop = 2e6;
  const Ops all = ops(t, o);
  EXPECT_EQ(
      report::to_text(ops_table(t, all, o)),
      "ranges and operations\n"
      "name            kind         calls  self CPU     %      CPU  self GPU      %      GPU  CPU/call  GPU/call"
      "  math TFLOP/s\n"
      "step            range            2   4.00 us  44.4  9.00 us   0.00 us    0.0  20.0 us   4.50 us   10.0 us"
      "         0.200\n"
      "add             launch           2   2.00 us  22.2  5.00 us   20.0 us  100.0  20.0 us   2.50 us   10.0 us\n"
      "cuLaunchKernel  driver call      2   3.00 us  33.3  3.00 us   0.00 us    0.0  0.00 us   1.50 us   0.00 us\n"
      "self: without the rows inside it; GPU: time of the work it launched, wherever it ran; rates: as declared, over "
      "that "
      "time\n");
  EXPECT_EQ(report::to_text(work_table(t, all, o)),
            "kernels, copies and fills\n"
            "kernel  calls    total      %     mean      min   median      max  grid  block  regs  static B  dynamic B"
            "  local B  occupancy %  limited by  math TFLOP/s\n"
            "add         2  20.0 us  100.0  10.0 us  10.0 us  10.0 us  10.0 us    98    128    40         0      49152"
            "        0         25.0  shared             0.200\n"
            "local: spills and stack per thread; occupancy: theoretical; times: from start to end on the GPU\n");
  EXPECT_EQ(totals_line(t, all.totals),
            "GPU busy 50.0 % of 40.0 us · CPU total 9.00 us · GPU total 20.0 us · 2 kernels in 2 launches · 0 records "
            "dropped");
}

/// Wide characters take two cells each.
TEST(Ops, LongNamesAreCutToTheirWidth) {
  Timeline t = gpu(40000);
  std::string wide, narrow;
  for (int i = 0; i < 40; ++i) wide += "核", narrow += "é";
  launch(t, 1, wide, 1500, 3500, 6000, 16000);
  launch(t, 2, narrow + narrow, 7500, 8500, 17000, 27000);
  launch(t, 3, narrow, 8600, 8700, 28000, 29000);
  join(t);
  const report::Table table = work_table(t, ops(t, {}), {});
  std::vector<std::string> names;
  for (const auto& row : table.rows()) names.push_back(row[0].text);
  std::ranges::sort(names);
  EXPECT_EQ(names, (std::vector<std::string>{narrow, (narrow + narrow).substr(0, 2 * 59) + "…",
                                             wide.substr(0, 3 * 29) + "…"}));
}

TEST(Ops, BusyIsTheUnionOfWhatRan) {
  Timeline t = gpu(20000);
  launch(t, 1, "a", 0, 100, 1000, 11000, 7);
  launch(t, 2, "b", 100, 200, 6000, 16000, 8);
  join(t);
  const Totals totals = ops(t).totals;
  // 10 us each, 5 of which both were running.
  EXPECT_EQ(totals.device, 20000);
  EXPECT_EQ(totals.busy, 15000);
  EXPECT_DOUBLE_EQ(totals.busy_fraction(), 0.75);
}

TEST(Ops, ARangeThatContainsItselfCountsOnce) {
  Timeline t = gpu(1000);
  t.spans = {span(Step::kRange, "f", 0, 100), span(Step::kRange, "f", 10, 60), span(Step::kRange, "f", 20, 30)};
  launch(t, 1, "k", 22, 28, 100, 200);
  join(t);
  const Ops all = ops(t);
  const auto f = std::find_if(all.ops.begin(), all.ops.end(), [](const OpRow& r) { return r.name == "f"; });
  EXPECT_EQ(f->calls, 3);
  // The outermost one: those within it are parts of it.
  EXPECT_EQ(f->cpu, 100);
  EXPECT_EQ(f->self_cpu, 94);  // without the driver's call
  EXPECT_EQ(f->device, 100);
}

TEST(Ops, AGpuThatCannotBeSeenIsUnknown) {
  Timeline t = gpu(1000);
  t.spans = {span(Step::kRange, "step", 0, 100)};
  t.unknown = {{"the GPU's side", "no libcupti.so"}};
  join(t);
  const Ops all = ops(t);
  const std::string text = report::to_text(ops_table(t, all));
  // A dash for what is not known, and the reason below the table.
  EXPECT_NE(text.find("– self GPU: no libcupti.so\n"), std::string::npos) << text;
  EXPECT_NE(totals_line(t, all.totals).find("GPU busy: unknown (no libcupti.so)"), std::string::npos);
  EXPECT_NE(report::to_json(totals_table(t, all)).find("\"figure\":\"GPU busy\",\"value\":null"), std::string::npos);
}

TEST(Ops, LostTimesAreNotZero) {
  Timeline t = gpu(1000);
  // Zeros, as CUPTI gives them for records whose times it has lost.
  launch(t, 1, "k", 0, 10, 0, 0);
  join(t);
  const Ops all = ops(t);
  EXPECT_EQ(all.totals.lost, 1);
  EXPECT_NE(report::to_text(work_table(t, all)).find(": the profiler lost the times"), std::string::npos);
}

TEST(Ops, UnknownColumnsToSortByListWhatThereIs) {
  EXPECT_EQ(*parse_op_sort("cuda_time_total"), OpSort::kDevice);
  EXPECT_EQ(*parse_op_sort("self_cpu"), OpSort::kSelfCpu);
  auto bad = parse_op_sort("self_cpuu");
  ASSERT_FALSE(bad.ok());
  EXPECT_NE(bad.error().message.find("self_cpu, cpu, self_gpu, gpu, calls, average, self_memory, memory, name"),
            std::string::npos);
  // The nearest name is told.
  EXPECT_EQ(bad.error().notes[0].message, "help: did you mean 'self_cpu'?");
}

// Spans that nest at random on several threads, calls and work in them: whatever is a row and whatever is not, nothing
// is lost and nothing counts twice.
TEST(Ops, SelfTimesAddUpToTheTotals) {
  constexpr Step kSteps[] = {Step::kRange,  Step::kStatement, Step::kOperation, Step::kLaunch,
                             Step::kDriver, Step::kKey,       Step::kWait,      Step::kPlan};
  // Thirty random trees; the seed stands in a failure.
  for (uint32_t seed = 0; seed < 30; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    auto below = [&](int64_t n) { return static_cast<int64_t>(random() % static_cast<uint64_t>(n)); };
    Timeline t = gpu(1'000'000);
    uint32_t correlation = 0;
    Ns work_total = 0;
    // Spans that follow each other with gaps, each with others inside of it.
    auto fill = [&](auto& self, uint32_t thread, Ns start, Ns end, int depth) -> void {
      for (Ns at = start + below(50); at + 2 < end;) {
        const Ns until = std::min(end, at + 1 + below(end - at));
        // At the latest beyond a depth of five.
        if (below(4) == 0 || depth > 5) {
          ApiCall c;
          c.name = below(2) ? "cuLaunchKernel" : "cuMemcpyAsync", c.start = at, c.end = until, c.thread = thread;
          c.correlation = ++correlation;
          t.calls.push_back(c);
          for (int64_t n = below(3); n > 0; --n) {
            Work w;
            // A tenth of the work has no call to belong to.
            w.name = below(2) ? "k" : "l", w.correlation = below(10) ? correlation : 0;
            w.start = 1 + below(500'000), w.end = w.start + below(1000), w.stream = static_cast<uint32_t>(below(3));
            work_total += w.end - w.start;
            t.work.push_back(w);
          }
        } else {
          t.spans.push_back(span(kSteps[below(std::size(kSteps))], std::string(1, static_cast<char>('a' + below(3))),
                                 at, until, thread));
          self(self, thread, at, until, depth + 1);
        }
        at = until + below(100);
      }
    };
    for (uint32_t thread = 1; thread <= 3; ++thread) fill(fill, thread, 0, 100'000, 0);
    join(t);
    // Statements are rows only where lines were asked for.
    for (bool lines : {false, true}) {
      OpsOptions o;
      o.lines = lines;
      const Ops all = ops(t, o);
      Ns self_cpu = 0, self_device = 0, work = 0;
      for (const OpRow& r : all.ops) {
        EXPECT_GE(r.self_cpu, 0) << r.name;
        EXPECT_GE(r.cpu, r.self_cpu) << r.name;
        EXPECT_GE(r.device, r.self_device) << r.name;
        self_cpu += r.self_cpu, self_device += r.self_device;
      }
      for (const WorkRow& r : all.work) work += r.total;
      EXPECT_EQ(self_cpu, all.totals.cpu);
      // What no row is responsible for is told apart, and together it is all.
      EXPECT_EQ(self_device + all.totals.unattributed, all.totals.device);
      EXPECT_EQ(all.totals.device, work_total);
      EXPECT_EQ(work, work_total);
      // The outermost rows, counted by hand.
      Ns roots = 0;
      auto is_row = [&](const Span& s) {
        return s.step != Step::kDriver && s.step != Step::kKey && s.step != Step::kPlan &&
               (lines || s.step != Step::kStatement);
      };
      auto has_row_around = [&](int i) {
        for (; i >= 0; i = t.spans[static_cast<size_t>(i)].parent)
          if (is_row(t.spans[static_cast<size_t>(i)])) return true;
        return false;
      };
      for (const Span& s : t.spans)
        if (is_row(s) && !has_row_around(s.parent)) roots += s.duration();
      for (const ApiCall& c : t.calls)
        if (!has_row_around(c.span)) roots += c.end - c.start;
      EXPECT_EQ(all.totals.cpu, roots);
    }
  }
}

TEST(Latency, PiecesOfIdleAndQueuedLaunches) {
  Timeline t = two_steps();
  t.plain_call_us = 0.9;
  const Latency l = latency(t);
  EXPECT_EQ(l.idle, 1);
  EXPECT_EQ(l.queued, 1);
  // Idle: the GPU had nothing to do when the launch came; queued: it had.
  EXPECT_EQ(l.of(LaunchPiece::kCall).idle, std::vector<double>{2});
  EXPECT_EQ(l.of(LaunchPiece::kPrepare).queued, std::vector<double>{0.5});
  EXPECT_EQ(l.of(LaunchPiece::kBatching).queued, std::vector<double>{0.3});
  EXPECT_EQ(l.of(LaunchPiece::kFrontEnd).queued, std::vector<double>{8.7});
  EXPECT_EQ(l.of(LaunchPiece::kLaunchStart).idle, std::vector<double>{4.5});
  EXPECT_EQ(l.of(LaunchPiece::kExecution).queued, std::vector<double>{10});
  EXPECT_EQ(l.of(LaunchPiece::kGap).queued, std::vector<double>{1});
  const std::string text = report::to_text(latency_table(t, l));
  // The cost without a profiler first, where it was measured.
  EXPECT_NE(text.find("CPU call: 0.90 us (1.50 us while profiled), median"), std::string::npos) << text;
}

TEST(Latency, TimesThatCuptiDidNotGiveAreUnknown) {
  Timeline t = two_steps();
  for (Work& w : t.work) w.queued = w.submitted = 0;
  const std::string text = report::to_text(latency_table(t, latency(t)));
  EXPECT_NE(text.find("CUPTI gave no times of the command buffer"), std::string::npos) << text;
}

TEST(Latency, FirstLaunchesStandApart) {
  Timeline t = gpu(100000);
  t.spans = {span(Step::kLaunch, "add", 10, 20010), span(Step::kCompile, "add", 100, 9000),
             span(Step::kLoad, "add", 9000, 12000)};
  launch(t, 1, "add", 13000, 19000, 21000, 22000);
  launch(t, 2, "add", 30000, 31000, 32000, 33000);
  t.overheads.push_back({"lazy loading", 14000, 18000, 1, -1});
  join(t);
  const Latency l = latency(t);
  EXPECT_EQ(l.idle, 1);
  ASSERT_EQ(l.first.size(), 1u);
  // From the span's beginning to its end, of which compiling, loading and the driver's loading are parts.
  EXPECT_DOUBLE_EQ(l.first[0].whole, 20);
  EXPECT_DOUBLE_EQ(l.first[0].compile, 8.9);
  EXPECT_DOUBLE_EQ(l.first[0].load, 3);
  EXPECT_DOUBLE_EQ(l.first[0].lazy_load, 4);
  EXPECT_NEAR(l.first[0].rest(), 4.1, 1e-9);
}

TEST(Latency, TheCompileOfAFirstLaunchHasItsPhases) {
  Timeline t = gpu(100000);
  t.spans = {span(Step::kLaunch, "add", 10, 20010), span(Step::kCompile, "add", 100, 10100),
             span(Step::kPhase, "llvm", 200, 2200), span(Step::kPhase, "toolchain", 2200, 9000)};
  launch(t, 1, "add", 13000, 19000, 21000, 22000);
  join(t);
  const Latency l = latency(t);
  ASSERT_EQ(l.first.size(), 1u);
  EXPECT_DOUBLE_EQ(l.first[0].compile, 10);
  EXPECT_EQ(first_launches_table(l).notes().at(0),
            // The phases by their length, the rest last.
            "compile of add: toolchain 6.80 us, llvm 2.00 us, everything else 1.20 us");
}

TEST(Latency, OverheadsThatOverlapDisturbALaunchOnce) {
  Timeline t = gpu(1'000'000);
  for (uint32_t i = 0; i < 100; ++i) {
    const Ns at = 1000 + Ns{i} * 5000;
    launch(t, i + 1, "add", at, at + 2000, at + 3000, at + 4000);
  }
  // Ten lie in calls, two of them in the same one; one spans several calls; one lies in none.
  for (int i = 0; i < 9; ++i)
    t.overheads.push_back({"command buffer full", 1000 + i * 5000 + 500, 1000 + i * 5000 + 900, 1, -1});
  t.overheads.push_back({"command buffer full", 1600, 1700, 1, -1});
  t.overheads.push_back({"activity buffer request", 400'000, 412'500, 2, -1});
  t.overheads.push_back({"profiler resources", 3500, 3600, 1, -1});
  join(t);
  const Latency l = latency(t);
  // By launches and not by overheads: two in one call disturb one launch.
  const std::vector<std::pair<std::string, int64_t>> expected = {{"activity buffer request", 3},
                                                                 {"command buffer full", 9}};
  EXPECT_EQ(l.disturbed, expected);
}

TEST(Latency, AGraphIsOneCallAndManyKernels) {
  Timeline t = gpu(100000);
  for (uint32_t i = 0; i < 3; ++i) {
    Work w;
    w.name = "node", w.correlation = 5, w.graph = 9, w.graph_node = i, w.stream = 7;
    w.start = 10000 + 3000 * i, w.end = w.start + 2000;
    t.work.push_back(w);
  }
  ApiCall c;
  c.name = "cuGraphLaunch", c.start = 1000, c.end = 3000, c.thread = 1, c.correlation = 5;
  t.calls.push_back(c);
  join(t);
  const Latency l = latency(t);
  // A graph is neither an idle nor a queued launch.
  EXPECT_EQ(l.idle + l.queued, 0);
  ASSERT_EQ(l.graphs.size(), 1u);
  EXPECT_EQ(l.graphs[0].nodes, 3);
  EXPECT_DOUBLE_EQ(l.graphs[0].call, 2);
  // From the call's end to the first node's start; the whole; the sum of the nodes; the gaps between them.
  EXPECT_DOUBLE_EQ(l.graphs[0].launch_start, 9);
  EXPECT_DOUBLE_EQ(l.graphs[0].makespan, 8);
  EXPECT_DOUBLE_EQ(l.graphs[0].work, 6);
  EXPECT_DOUBLE_EQ(l.graphs[0].node_gap, 1);
  EXPECT_NE(report::to_text(graphs_table(l)).find("without a profiler: not measured"), std::string::npos);
  t.plain_graph_us = 1.07;
  EXPECT_NE(report::to_text(graphs_table(latency(t))).find("CPU call: 1.07 us with no profiler attached"),
            std::string::npos);
}

TEST(GraphNodes, EachOverAllLaunches) {
  Timeline t = gpu(100000);
  // Two launches of a graph: a, behind it b and c at once, then d.
  const struct {
    const char* name;
    uint64_t node;
    Ns start, end;
  } kNodes[] = {{"a", 70, 0, 1000}, {"b", 72, 1500, 4500}, {"c", 71, 2000, 4000}, {"d", 73, 5000, 6000}};
  for (uint32_t launch = 0; launch < 2; ++launch)
    for (const auto& n : kNodes) {
      Work w;
      w.name = n.name, w.correlation = 5 + launch, w.graph = 9, w.graph_node = n.node, w.stream = 7;
      w.start = 10000 + 20000 * launch + n.start, w.end = 10000 + 20000 * launch + n.end + 100 * launch;
      t.work.push_back(w);
    }
  // A node whose times were lost is left out.
  Work lost;
  lost.name = "lost", lost.graph = 9, lost.graph_node = 74;
  t.work.push_back(lost);
  join(t);
  const auto nodes = graph_nodes(t);
  ASSERT_EQ(nodes.size(), 4u);
  const char* const kOrder[] = {"a", "b", "c", "d"};
  for (size_t i = 0; i < nodes.size(); ++i) {
    EXPECT_EQ(nodes[i].name, kOrder[i]);
    EXPECT_EQ(nodes[i].launches, 2);
    EXPECT_EQ(nodes[i].is_first, i == 0);
  }
  EXPECT_DOUBLE_EQ(nodes[1].start, 1.5);
  EXPECT_DOUBLE_EQ(nodes[1].execution, 3.05);
  EXPECT_DOUBLE_EQ(nodes[1].gap, 0.45);
  // c begins before b has ended: the gap is negative.
  EXPECT_DOUBLE_EQ(nodes[2].gap, -2.55);
  EXPECT_DOUBLE_EQ(nodes[3].gap, 0.45);
  const std::string text = report::to_text(graph_nodes_table(nodes, 0));
  EXPECT_NE(text.find("a negative gap"), std::string::npos) << text;
  EXPECT_NE(report::to_text(graph_nodes_table(nodes, 3)).find("1 more node: rows=0 shows all"), std::string::npos);
  EXPECT_TRUE(graph_nodes(gpu(1000)).empty());
}

TEST(Latency, DependentLaunchesMayBeginEarly) {
  Timeline t = gpu(100000);
  launch(t, 1, "a", 0, 1000, 2000, 8000);
  launch(t, 2, "b", 1000, 2000, 7000, 9000);
  join(t);
  const Latency l = latency(t);
  EXPECT_EQ(l.early(), 1);
  // No gap at all rather than one of less than nothing.
  EXPECT_TRUE(l.of(LaunchPiece::kGap).queued.empty());
  EXPECT_EQ(l.of(LaunchPiece::kOverlap).queued, std::vector<double>{1.0});
  const std::string text = report::to_text(latency_table(t, l));
  EXPECT_NE(text.find("overlap with the one ahead"), std::string::npos) << text;
  EXPECT_NE(text.find("1 launch began before the previous kernel had ended"), std::string::npos) << text;
  EXPECT_NE(text.find("no gap: they began before the previous work had ended"), std::string::npos) << text;
}

TEST(Latency, NoOverlapIsNoRow) {
  Timeline t = gpu(100000);
  launch(t, 1, "a", 0, 1000, 2000, 8000);
  launch(t, 2, "b", 1000, 2000, 9000, 9500);
  join(t);
  const Latency l = latency(t);
  EXPECT_EQ(l.early(), 0);
  EXPECT_EQ(report::to_text(latency_table(t, l)).find("overlap"), std::string::npos);
}

TEST(MemoryTable, PeakLiveAndLines) {
  Timeline t = gpu(1000);
  t.spans = {span(Step::kStatement, "y = x + 1", 0, 100), span(Step::kOperation, "add", 10, 90)};
  t.spans[0].file = "a.py", t.spans[0].line = 3;
  auto change = [&](Ns at, int64_t bytes, bool reserve) {
    MemoryChange m;
    // Until join() the field of the span has the thread.
    m.at = at, m.device = "cuda:0", m.bytes = bytes, m.reserve = reserve, m.span = 1;  // the thread, until join()
    t.memory.push_back(m);
  };
  change(20, 2'000'000, true), change(21, 1000, false), change(30, 500, false), change(95, -500, false);
  change(200, -400, false);
  join(t);
  const Memory m = memory(t);
  ASSERT_EQ(m.devices.size(), 1u);
  EXPECT_EQ(m.devices[0].peak, 1500);
  // The innermost statement that was running.
  EXPECT_EQ(m.devices[0].peak_line, "a.py:3 y = x + 1");
  EXPECT_EQ(m.devices[0].live, 600);
  EXPECT_EQ(m.devices[0].reserve_taken, 2'000'000);
  ASSERT_EQ(m.rows.size(), 3u);
  EXPECT_EQ(m.rows[0].operation, "add");
  EXPECT_EQ(m.rows[0].allocated, 1500);
  EXPECT_EQ(m.rows[1].line, "a.py:3 y = x + 1");
  EXPECT_EQ(m.rows[1].freed, 500);
}

TEST(StreamsTable, WhatRanAtOnce) {
  Timeline t = gpu(100);
  launch(t, 1, "a", 0, 1, 10, 50, 7);
  launch(t, 2, "b", 1, 2, 30, 60, 8);
  Work copy;
  copy.kind = WorkKind::kCopy, copy.name = "copy HtoD", copy.stream = 9, copy.start = 40, copy.end = 80;
  t.work.push_back(copy);
  join(t);
  const Streams s = streams(t);
  ASSERT_EQ(s.rows.size(), 3u);
  // From 10 to 80 something ran.
  EXPECT_EQ(s.overlap.any, 70);
  EXPECT_EQ(s.overlap.kernels, 20);
  EXPECT_EQ(s.overlap.copy_and_kernel, 20);
  EXPECT_EQ(s.overlap.copies, 0);
  EXPECT_EQ(s.rows[0].busy, 40);
}

/// Cells of a line of CSV; quotes may hold commas.
size_t csv_cells(std::string_view line) {
  size_t cells = 1;
  bool quoted = false;
  for (char c : line) {
    if (c == '"') quoted = !quoted;
    cells += c == ',' && !quoted;
  }
  return cells;
}

TEST(Tables, EveryFormatHasEveryRowOfEveryTable) {
  Timeline first = gpu(100'000);
  first.spans = {span(Step::kLaunch, "add", 10, 20'010), span(Step::kCompile, "add", 100, 9000)};
  launch(first, 1, "add", 13'000, 19'000, 21'000, 22'000);
  launch(first, 2, "add", 30'000, 31'000, 32'000, 33'000);
  join(first);
  ProfileView view;
  view.memory = view.streams = true;
  view.ops.rows = 0, view.ops.by_shape = true, view.ops.stack = 2;
  std::set<std::string> names;
  std::vector<NamedTable> tables = profile_tables(made_gpu_timeline(6), view);
  for (NamedTable& named : profile_tables(first, view)) tables.push_back(std::move(named));
  for (const NamedTable& named : tables) {
    SCOPED_TRACE(named.name);
    // The device without allocations has no such tables.
    if (named.table.rows().empty() && named.name.starts_with("memory")) continue;  // the second allocates nothing
    names.insert(named.name);
    const report::Table& table = named.table;
    ASSERT_FALSE(table.rows().empty());
    const size_t rows = table.rows().size(), columns = table.columns().size();

    const nlohmann::json doc = nlohmann::json::parse(report::format(table, report::Format::kJson));
    EXPECT_EQ(doc["rows"].size(), rows);
    for (const auto& row : doc["rows"]) EXPECT_EQ(row.size(), columns) << row;

    std::istringstream csv(report::format(table, report::Format::kCsv)), text, markdown;
    std::string line;
    size_t lines = 0;
    while (std::getline(csv, line)) {
      if (line.starts_with("#")) continue;
      EXPECT_EQ(csv_cells(line), columns) << line;
      ++lines;
    }
    // And the line of the names.
    EXPECT_EQ(lines, rows + 1);

    markdown.str(report::format(table, report::Format::kMarkdown));
    lines = 0;
    while (std::getline(markdown, line)) {
      if (!line.starts_with("|")) continue;
      // A bar on each side.
      EXPECT_EQ(static_cast<size_t>(std::count(line.begin(), line.end(), '|')), columns + 1) << line;
      ++lines;
    }
    EXPECT_EQ(lines, rows + 2);  // and the head with its rule

    text.str(report::format(table, report::Format::kText));
    lines = 0;
    while (std::getline(text, line)) ++lines;
    EXPECT_EQ(lines, rows + 1 + (table.title().empty() ? 0 : 1) + table.notes().size());
  }
  EXPECT_EQ(names, (std::set<std::string>{"operations", "kernels", "latency", "first_launches", "graph_nodes", "graphs",
                                          "memory", "memory_totals", "streams", "totals"}));
}

TEST(Tables, RowsByStackAndTheirMemory) {
  Timeline t = gpu(1000);
  t.spans = {span(Step::kStatement, "step()", 0, 200), span(Step::kStatement, "y = x + 1", 10, 100),
             span(Step::kOperation, "add", 10, 90), span(Step::kStatement, "z = x + 2", 110, 190),
             span(Step::kOperation, "add", 120, 180)};
  for (Span& s : t.spans)
    if (s.step == Step::kStatement) s.file = "a.py", s.line = static_cast<int>(s.start) + 1;
  MemoryChange m;
  m.at = 30, m.device = "cuda:0", m.bytes = 512, m.span = 1;  // the thread, until join()
  t.memory.push_back(m);
  join(t);
  // The same operation is one row until stacks are asked for.
  EXPECT_EQ(ops(t).ops.size(), 1u);
  OpsOptions options;
  options.stack = 2, options.memory = true, options.sort = OpSort::kSelfMemory;
  const Ops apart = ops(t, options);
  ASSERT_EQ(apart.ops.size(), 2u);
  EXPECT_EQ(apart.ops[0].stack, "a.py:11 ← a.py:1");
  EXPECT_EQ(apart.ops[0].self_memory, 512);
  EXPECT_EQ(apart.ops[1].stack, "a.py:111 ← a.py:1");
  EXPECT_EQ(apart.ops[1].memory, 0);
  const std::string text = report::to_text(ops_table(t, apart, options));
  EXPECT_NE(text.find("a.py:11 ← a.py:1"), std::string::npos) << text;
  EXPECT_NE(text.find("512 B"), std::string::npos) << text;
  EXPECT_EQ(*parse_op_sort("self_cpu_memory_usage"), OpSort::kSelfMemory);
}

TEST(Stacks, AreFoldedWithTheirOwnTime) {
  Timeline t = gpu(100'000);
  t.spans = {span(Step::kStatement, "y = f(x; 1)", 0, 50'000), span(Step::kOperation, "add", 10'000, 40'000)};
  t.spans[0].file = "a.py", t.spans[0].line = 3;
  launch(t, 1, "add_kernel", 20'000, 25'000, 30'000, 90'000);
  join(t);
  EXPECT_EQ(folded_stacks(t, false),
            // A semicolon parts the frames of a stack, so it must not stand in one.
            "a.py:3 y = f(x, 1) 20\na.py:3 y = f(x, 1);add 25\na.py:3 y = f(x, 1);add;cuLaunchKernel 5\n");
  EXPECT_EQ(folded_stacks(t, true), "a.py:3 y = f(x, 1);add;add_kernel 60\n");
}

TEST(WorkTable, ClustersHaveTheirColumnAndTheirLimit) {
  Timeline t = gpu(100'000);
  t.target = "sm_90a", t.multiprocessors = 132;
  launch(t, 1, "gemm", 1000, 2000, 3000, 9000);
  Work& w = t.work[0];
  w.grid = {64, 2, 1}, w.block = {384, 1, 1}, w.cluster = {2, 1, 1};
  w.registers = 168, w.static_shared = 0, w.dynamic_shared = 200'000;
  join(t);
  const Ops all = ops(t);
  const std::string text = report::to_text(work_table(t, all));
  EXPECT_NE(text.find("cluster"), std::string::npos) << text;
  EXPECT_EQ(text.find("achieved"), std::string::npos) << text;
  OpsOptions counted;
  counted.achieved = {{"gemm", 17.25}};
  EXPECT_NE(report::to_text(work_table(t, all, counted)).find("achieved: by counters"), std::string::npos);
  EXPECT_EQ(work_table(t, all, counted).rows()[0].back().text, "17.2");
  // By registers and shared memory of both blocks together.
  EXPECT_NE(text.find("gemm: at most 66 clusters of 2 blocks at once, by what 132 SMs hold"), std::string::npos)
      << text;
}

TEST(Tables, AnEmptyTimelineHasTables) {
  // A table without rows is still a table in every format.
  for (const char* device : {"cuda:0", "cpu"}) {
    Timeline t;
    t.device = device;
    ProfileView view;
    view.memory = view.streams = true;
    for (const NamedTable& table : profile_tables(t, view))
      EXPECT_NE(report::to_json(table.table).find("rows"), std::string::npos) << table.name;
  }
}

TEST(Intervals, UnionOfRanges) {
  EXPECT_EQ(union_of({}), 0);
  // Touching and empty spans.
  EXPECT_EQ(union_of({{5, 10}, {0, 3}, {8, 12}, {8, 9}, {20, 20}}), 10);
  EXPECT_EQ(union_of({{-5, 5}, {-10, -6}}), 14);
}

}  // namespace
}  // namespace kiln::profiler
