// Makes timelines as a session on a GPU gives them: a thread that runs a script, and streams that run what it queues.
#pragma once
#include <functional>
#include <map>
#include <string>

#include "profiler/profile/timeline.h"

namespace kiln::profiler {

/// The defaults are those of a small element-wise kernel on an H200.
struct MadeLaunch {
  double us = 5;  // that the kernel runs
  uint32_t stream = 7;
  std::array<uint32_t, 3> grid = {1024, 1, 1}, block = {128, 1, 1};
  int registers = 32;
  int64_t dynamic_shared = 0;
  std::string call = "cuLaunchKernelEx";
};

class TimelineMaker {
 public:
  TimelineMaker();

  Timeline t;
  Ns now = 1'000'000'000;
  uint32_t thread = 4711;

  void spend(double us) { now += static_cast<Ns>(us * 1e3); }
  /// A span around what `body` does.
  void span(trace::Step step, std::string name, const std::function<void()>& body = {}, double us = 0.2);
  void statement(int line, const std::function<void()>& body, std::string text = "");
  /// Its index in no order: join() sorts.
  void launch(const std::string& name, const MadeLaunch& launch = {});
  void graph(int nodes, double us_each, uint32_t stream = 7);
  /// "HtoD", "DtoH" or "DtoD"; the host waits for the first two.
  void copy(const std::string& kind, int64_t bytes, uint32_t stream = 7);
  void synchronize(uint32_t stream = 7);
  void overhead(std::string kind, double us);
  void memory(int64_t bytes, bool reserve = false);
  /// Joined; the maker is done.
  Timeline finish();

 private:
  uint32_t call(std::string name, double us);
  Work& work(WorkKind kind, std::string name, double us, uint32_t stream, uint32_t correlation);

  std::map<uint32_t, Ns> free_;  // of each stream
  uint32_t correlation_ = 0;
};

/// A training loop in small: a cold start, a graph, copies both ways, two streams, syncs, memory, overheads.
Timeline made_gpu_timeline(int steps);

}  // namespace kiln::profiler
