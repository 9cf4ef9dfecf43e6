// The dispatch budget: what each run of a statement costs the CPU on its way from the script's line to the device, step
// by step, against what the device works for it.
#pragma once
#include <string>
#include <vector>

#include "profiler/profile/timeline.h"
#include "profiler/report/table.h"

namespace kiln::profiler {

/// Microseconds per run, medians over the runs; negative: not known.
struct DispatchStep {
  std::string name, what;
  double us = 0;     // of the step alone, without the steps within it
  double calls = 0;  // per run, on average
};

struct Dispatch {
  std::vector<DispatchStep> steps;  // in the order of the way down; waits last
  double cpu_us = 0;                // of the steps, but for waits
  double wait_us = 0;
  double work_us = 0;   // of cpu_us: kernels on the CPU
  double launches = 0;  // per run: of kernels, graphs and libraries
  int64_t runs = 0;
};
/// Of a timeline of the host alone, taken with trace::kSteps and trace::kStatements; its runs are ranges kStepRange.
/// Only the thread of the runs counts.
Dispatch dispatch_of(const Timeline& timeline);

/// One way to do the same work.
struct DispatchWay {
  std::string name;        // "as it is", "as one CUDA graph", "unfused"
  double cpu_us = -1;      // per run, of the call alone, nothing watched
  double elapsed_us = -1;  // per run of many in a row, with the wait for the last
  std::string problem;     // why there are no figures
};

struct DispatchReport {
  Dispatch dispatch;
  bool on_gpu = true;             // false: the CPU does the work itself
  double gpu_us = -1;             // per run: some work ran on the device
  double launch_start_us = -1;    // from the driver's call until the kernel starts, on an idle stream
  std::string no_gpu;             // why the two are not known
  std::vector<DispatchWay> ways;  // the first is the statement as it is
};
/// "CPU-bound: …" or "GPU-bound: …", with the numbers that say so; on the CPU how much of a run is dispatch.
std::string dispatch_verdict(const DispatchReport& report);
report::Table dispatch_table(const DispatchReport& report);
/// The ways side by side.
report::Table dispatch_ways_table(const DispatchReport& report);

}  // namespace kiln::profiler
