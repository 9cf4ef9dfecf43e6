// The line on a terminal that says how far a command is.
#pragma once
#include <string>
#include <string_view>

#include "profiler/measure/measure.h"
#include "repl/session/session.h"

namespace kiln::repl {

/// "██████░░░░ 6.1 s left"; empty where nothing is known of what is left (negative seconds).
std::string time_left(double elapsed_s, double left_s);

/// One line that is rewritten while work goes on, on a terminal or where the session is asked for it: what is done, the
/// best so far, how long the rest may take. It is gone when the object is.
class Progress {
 public:
  explicit Progress(const script::Session& session);
  ~Progress() { clear(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// Seconds from now on; negative: not known. Calls in quick succession draw one line.
  void show(std::string_view what, double left_s = -1, std::string_view best = {});
  /// A part of work of which `share` (0 to 1) is done: what is left takes as long as what is done, each by its share.
  void show_share(std::string_view what, double share, std::string_view best = {});
  void clear();
  /// What a measurement calls: `what` with its best sample, and further seconds for what comes behind it.
  std::function<void(const profiler::MeasureProgress&)> of_samples(std::string what, double then_s = 0);

 private:
  const script::Session& session_;
  const bool is_shown_;
  const double start_s_;
  double drawn_s_ = -1;  // negative: no line is there
  std::string what_;
};

}  // namespace kiln::repl
