// Profiles a statement of the script: the shared part of %profile, %dispatch, %trace and %report.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "kiln/result.h"
#include "profiler/profile/schedule.h"
#include "profiler/profile/timeline.h"
#include "profiler/session/session.h"
#include "repl/magics/magics.h"

namespace kiln::repl {

struct ProfileRunOptions {
  profiler::Schedule schedule;
  profiler::SessionOptions session;
  /// Also times the driver's calls of `active` further runs with no profiler attached (Timeline::plain_call_us,
  /// plain_graph_us). They come before the profile, or behind it when there is no warm-up, so that a cold start is seen
  /// as it is.
  bool plain_calls = true;
  std::function<void()> before_run = {};  // each run of the schedule; empty: nobody asks
};

struct ProfileCycles {
  std::vector<profiler::Timeline> timelines;  // one per cycle
  /// Ctrl-C, when it came after something was kept: the last timeline ends there, and says so.
  Status interrupted = {};
};

/// Runs the statement by the schedule; every kept run is enclosed in a range kStepRange. What it assigns or gives is
/// computed. A statement that fails gives its own error; kValue: the schedule keeps nothing, or a profile is being
/// taken already.
Result<ProfileCycles> profile_cycles(script::Session& session, const std::string& statement,
                                     const ProfileRunOptions& options = {});

/// The last cycle of it; kInterrupted also when something was kept.
Result<profiler::Timeline> profile_statement(MagicContext& context, const std::string& statement,
                                             const ProfileRunOptions& options = {});

/// Microseconds of CPU time, medians with no profiler attached to the driver; -1: there were none.
struct PlainCalls {
  double launch_us = -1;  // the driver's own launches
  double graph_us = -1;   // launches of graphs
};
Result<PlainCalls> plain_calls(const Device& device, const std::function<Status()>& run, int64_t runs);

}  // namespace kiln::repl
