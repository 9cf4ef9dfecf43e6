#include "made_timeline.h"

namespace kiln::profiler {

using trace::Step;

TimelineMaker::TimelineMaker() {
  t.device = "cuda:0", t.hardware = "NVIDIA H200", t.target = "sm_90a", t.driver = "580.00", t.multiprocessors = 132;
  t.start = now;
}

void TimelineMaker::span(Step step, std::string name, const std::function<void()>& body, double us) {
  Span s;
  s.step = step, s.name = std::move(name), s.start = now, s.thread = thread;
  spend(us / 2);
  if (body) body();
  spend(us / 2);
  s.end = now;
  t.spans.push_back(std::move(s));
}

void TimelineMaker::statement(int line, const std::function<void()>& body, std::string text) {
  span(Step::kStatement, std::move(text), body, 1);
  t.spans.back().file = "/home/user/train.py", t.spans.back().line = line;
}

uint32_t TimelineMaker::call(std::string name, double us) {
  ApiCall c;
  c.name = std::move(name), c.start = now, c.thread = thread, c.correlation = ++correlation_;
  spend(us);
  c.end = now;
  t.calls.push_back(std::move(c));
  return correlation_;
}

Work& TimelineMaker::work(WorkKind kind, std::string name, double us, uint32_t stream, uint32_t correlation) {
  Work w;
  w.kind = kind, w.name = std::move(name), w.correlation = correlation, w.stream = stream, w.context = 1;
  w.queued = now - 300, w.submitted = now - 200;
  w.start = std::max(free_[stream] + 500, now + 2500);
  w.end = w.start + static_cast<Ns>(us * 1e3);
  free_[stream] = w.end;
  t.work.push_back(std::move(w));
  return t.work.back();
}

void TimelineMaker::launch(const std::string& name, const MadeLaunch& l) {
  span(Step::kLaunch, name, [&] {
    span(Step::kKey, "");
    span(Step::kLookup, "");
    span(Step::kDriver, "", [&] {
      Work& w = work(WorkKind::kKernel, name, l.us, l.stream, call(l.call, 2));
      w.grid = l.grid, w.block = l.block, w.registers = l.registers;
      w.static_shared = 0, w.dynamic_shared = l.dynamic_shared, w.local_bytes = 0;
    });
  });
}

void TimelineMaker::graph(int nodes, double us_each, uint32_t stream) {
  span(Step::kGraphLaunch, "graph", [&] {
    uint32_t correlation = call("cuGraphLaunch", 4);
    for (int i = 0; i < nodes; ++i) {
      Work& w = work(WorkKind::kKernel, "layer_" + std::to_string(i % 3), us_each, stream, correlation);
      w.graph = 3, w.graph_node = (uint64_t{3} << 32) + static_cast<uint64_t>(i);
      w.grid = {132, 1, 1}, w.block = {256, 1, 1}, w.registers = 64, w.static_shared = 1024, w.dynamic_shared = 0;
    }
  });
}

void TimelineMaker::copy(const std::string& kind, int64_t bytes, uint32_t stream) {
  const bool in = kind == "HtoD", out = kind == "DtoH";
  span(in    ? Step::kCopyIn
       : out ? Step::kCopyOut
             : Step::kCopy,
       "", [&] {
         uint32_t correlation = call(in    ? "cuMemcpyHtoDAsync_v2"
                                     : out ? "cuMemcpyDtoHAsync_v2"
                                           : "cuMemcpyDtoDAsync_v2",
                                     3);
         Work& w = work(WorkKind::kCopy, "copy " + kind, 1 + double(bytes) / 50e3, stream, correlation);
         w.bytes = bytes;
         if (in || out) synchronize(stream);
       });
  t.spans.back().bytes = bytes;
}

void TimelineMaker::synchronize(uint32_t stream) {
  span(Step::kWait, "stream", [&] {
    Wait w;
    w.kind = "stream", w.stream = stream, w.context = 1, w.start = now + 100;
    now = std::max(now, free_[stream]);
    w.end = now + 900;
    ApiCall c;
    c.name = "cuStreamSynchronize", c.start = w.start - 100, c.end = w.end + 100, c.thread = thread;
    c.correlation = w.correlation = ++correlation_;
    now = c.end;
    t.calls.push_back(std::move(c));
    t.waits.push_back(std::move(w));
  });
}

void TimelineMaker::overhead(std::string kind, double us) {
  Overhead o;
  o.kind = std::move(kind), o.start = now, o.thread = thread;
  spend(us);
  o.end = now;
  t.overheads.push_back(std::move(o));
}

void TimelineMaker::memory(int64_t bytes, bool reserve) {
  MemoryChange m;
  m.at = now, m.device = t.device, m.bytes = bytes, m.reserve = reserve;
  m.span = static_cast<int>(thread);  // as add_events leaves it
  t.memory.push_back(std::move(m));
}

Timeline TimelineMaker::finish() {
  for (const auto& [stream, free] : free_) now = std::max(now, free);
  spend(1);
  t.end = now;
  join(t);
  return std::move(t);
}

Timeline made_gpu_timeline(int steps) {
  TimelineMaker m;
  m.statement(3, [&] {
    m.memory(64 << 20, true), m.memory(8 << 20);
    m.copy("HtoD", 8 << 20);
  });
  m.statement(5, [&] {
    m.span(Step::kLaunch, "add_kernel", [&] {
      m.span(Step::kCompile, "add_kernel", [&] {
        for (const char* phase : {"parse", "frontend", "passes", "llvm", "ptxas"})
          m.span(Step::kPhase, phase, {}, phase[0] == 'p' ? 300 : 9000);
        m.span(Step::kLoad, "add_kernel", {}, 400);
      });
    });
    m.overhead("lazy loading", 120);
    m.launch("add_kernel");
  });
  for (int i = 0; i < steps; ++i)
    m.span(Step::kRange, "step", [&] {
      m.statement(8, [&] { m.launch("add_kernel"), m.launch("mul_kernel", {.us = 12, .stream = 13}); });
      m.statement(9, [&] { m.graph(5, 3); });
      m.statement(10, [&] {
        m.memory(1 << 20);
        m.copy("DtoD", 1 << 20);
      });
      if (i % 4 == 3) m.statement(11, [&] { m.copy("DtoH", 4096), m.memory(-(4 << 20)); });
      if (i % 4 == 1) m.statement(12, [&] { m.synchronize(13); });
      if (i == 2) m.overhead("activity buffer request", 40);
    });
  m.t.unknown.push_back({"achieved occupancy", "counters were not asked for"});
  return m.finish();
}

}  // namespace kiln::profiler
