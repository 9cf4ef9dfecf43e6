#include "support/stop.h"

#include "kiln/interrupt.h"

namespace kiln {
namespace {

// The word counts the pieces of work that have a deadline; this bit is Ctrl-C.
constexpr uint32_t kInterruptBit = 1u << 31;

thread_local Stop* current = nullptr;
std::atomic<int> listeners{0};

}  // namespace

std::atomic<uint32_t> stop_word{0};
std::atomic<int> hung_devices{0};

void request_interrupt() { stop_word.fetch_or(kInterruptBit); }
void clear_interrupt() { stop_word.fetch_and(~kInterruptBit); }
bool interrupt_requested() { return (stop_word.load(std::memory_order_relaxed) & kInterruptBit) != 0; }

Stop::Stop(double timeout_s) : has_deadline_(timeout_s > 0) {
  if (!has_deadline_) return;
  constexpr double kLongest = 1e9;  // s, which a clock's nanoseconds still hold
  deadline_ = std::chrono::steady_clock::now() +
              std::chrono::nanoseconds(static_cast<int64_t>((timeout_s < kLongest ? timeout_s : kLongest) * 1e9));
  stop_word.fetch_add(1);
}

Stop::~Stop() {
  if (has_deadline_) stop_word.fetch_sub(1);
}

bool Stop::wanted() {
  if (cause() != StopCause::kNone) return true;
  StopCause cause = StopCause::kNone;
  if (interrupt_requested())
    cause = StopCause::kInterrupt;
  else if (has_deadline_ && std::chrono::steady_clock::now() >= deadline_)
    cause = StopCause::kTimeout;
  if (cause == StopCause::kNone) return false;
  StopCause none = StopCause::kNone;
  cause_.compare_exchange_strong(none, cause);
  return true;
}

StopScope::StopScope(Stop* stop) : outer_(current) { current = stop; }
StopScope::~StopScope() { current = outer_; }

InterruptListener::InterruptListener() { ++listeners; }
InterruptListener::~InterruptListener() { --listeners; }
bool InterruptListener::any() { return listeners.load(std::memory_order_relaxed) > 0; }

bool stop_is_wanted() { return current && current->wanted(); }

}  // namespace kiln
