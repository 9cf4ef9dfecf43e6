// What host threads do while someone watches: spans of CLOCK_MONOTONIC, kept per thread. While nobody does, a Scope is
// one relaxed load. Any layer may report; only the profiler starts, stops and reads.
#pragma once
#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kiln::trace {

enum class Step : uint8_t {
#define KILN_STEP(id, name, meaning) k##id,
#include "support/trace_step.def"
#undef KILN_STEP
};
std::string_view name(Step step);

/// What is to be reported. kSteps is apart because it takes the clock several times per launch.
enum Detail : uint32_t {
  kSpans = 1,       // ranges, operations, launches, copies, waits, compilations
  kStatements = 2,  // of scripts, with their lines
  kSteps = 4,       // within a launch
  kShapes = 8,      // `detail` of operations and launches: "f32[4096, 4096], bf16[64]"
  kMemory = 16,
};

struct Event {
  Step step = Step::kRange;
  std::string name;    // of the range, function, kernel, phase, device
  std::string detail;  // shapes
  std::string file;    // of a statement
  int line = 0;
  int64_t start_ns = 0, end_ns = 0;
  uint32_t thread = 0;                // gettid()
  int64_t bytes = 0;                  // that it moves: of a copy, a fill, or declared of a range
  double flop = 0;                    // declared of a range; 0: not declared
  uint64_t stream = 0;                // StreamImpl::id(); 0: none
  std::array<uint32_t, 3> grid = {};  // of a kernel on the CPU
};

namespace internal {
extern std::atomic<uint32_t> wanted;
}

inline bool on(Detail detail) { return internal::wanted.load(std::memory_order_relaxed) & detail; }

/// Nanoseconds of CLOCK_MONOTONIC.
int64_t now_ns();

/// Adds a finished event of the calling thread; its thread is filled in.
void add(Event event);
/// What has no duration: memory taken (bytes > 0) or given back on a device.
void add_memory(Step step, std::string_view device, int64_t bytes);

/// Reports the time from its making to its end.
class Scope {
 public:
  Scope(Detail detail, Step step, std::string_view name = {}, int64_t bytes = 0, uint64_t stream = 0) {
    if (on(detail)) begin(step, name, bytes, stream);
  }
  ~Scope() {
    if (on_) end();
  }
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;
  /// The event to fill in; null while nobody watches.
  Event* event() { return on_ ? &storage_.event : nullptr; }

 private:
  void begin(Step step, std::string_view name, int64_t bytes, uint64_t stream);
  void end();

  bool on_ = false;
  union Storage {  // an Event is made only when it is wanted
    Storage() {}
    ~Storage() {}
    Event event;
  } storage_;
};

/// Starts to keep events of those kinds; false when someone else watches already.
bool start(uint32_t details);
/// Ends it. The events of each thread in the order in which they ended.
std::vector<Event> stop();

}  // namespace kiln::trace
