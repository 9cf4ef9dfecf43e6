#include "repl/magics/progress.h"

#include <fmt/format.h>

#include "profiler/measure/timer.h"
#include "profiler/report/table.h"
#include "repl/magics/contenders.h"
#include "support/text_width.h"

namespace kiln::repl {

namespace {

constexpr double kRedraw_s = 0.1;
constexpr int kBar = 10, kLongest = 32;  // columns

/// The beginning of a text, so that the figures behind it are on the screen too.
std::string beginning(std::string_view text) {
  if (text_width(text) <= kLongest) return std::string(text);
  return std::string(beginning_of_width(text, kLongest - 1)) + "…";
}

}  // namespace

std::string time_left(double elapsed_s, double left_s) {
  if (left_s < 0) return {};
  const double all = elapsed_s + left_s;
  const int full = all > 0 ? static_cast<int>(kBar * elapsed_s / all) : 0;
  std::string bar;
  for (int i = 0; i < kBar; ++i) bar += i < full ? "█" : "░";
  return fmt::format("{} {:.1f} s left", bar, left_s);
}

Progress::Progress(const script::Session& session)
    : session_(session), is_shown_(shows_progress(session)), start_s_(profiler::steady_seconds()) {}

void Progress::show(std::string_view what, double left_s, std::string_view best) {
  if (!is_shown_) return;
  const double now = profiler::steady_seconds();
  if (drawn_s_ >= 0 && now - drawn_s_ < kRedraw_s && what == what_) return;
  what_ = what;
  drawn_s_ = now;
  std::string line = beginning(what);
  if (!best.empty()) line += fmt::format(", best so far {}", best);
  if (const std::string left = time_left(now - start_s_, left_s); !left.empty()) line += "  " + left;
  tell_progress(session_, line);
}

void Progress::show_share(std::string_view what, double share, std::string_view best) {
  const double elapsed = profiler::steady_seconds() - start_s_;
  show(what, share > 0 && elapsed > kRedraw_s ? elapsed / share * (1 - share) : -1, best);
}

void Progress::clear() {
  if (drawn_s_ >= 0) tell_progress(session_, "");
  drawn_s_ = -1;
}

std::function<void(const profiler::MeasureProgress&)> Progress::of_samples(std::string what, double then_s) {
  if (!is_shown_) return {};
  return [this, what = std::move(what), then_s](const profiler::MeasureProgress& p) {
    show(what, p.left_s + then_s, p.least_us > 0 ? report::human_time(p.least_us) : std::string());
  };
}

}  // namespace kiln::repl
