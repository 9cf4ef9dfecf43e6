#include "support/trace.h"

#include <unistd.h>

#include <ctime>
#include <memory>
#include <mutex>
#include <new>
#include <utility>

namespace kiln::trace {

namespace internal {
std::atomic<uint32_t> wanted{0};
}

namespace {

std::atomic<int64_t> started_ns{0};

struct ThreadEvents {
  std::mutex mutex;  // of its thread and of stop(): nearly never contended
  std::vector<Event> events;
};

struct Registry {
  std::mutex mutex;
  std::vector<std::shared_ptr<ThreadEvents>> threads;
  bool running = false;
};

Registry& registry() {
  static auto* r = new Registry;  // threads may end after our statics
  return *r;
}

ThreadEvents& mine() {
  thread_local std::shared_ptr<ThreadEvents> events = [] {
    auto made = std::make_shared<ThreadEvents>();
    std::lock_guard lock(registry().mutex);
    registry().threads.push_back(made);
    return made;
  }();
  return *events;
}

uint32_t thread_id() {
  thread_local const auto id = static_cast<uint32_t>(gettid());
  return id;
}

}  // namespace

std::string_view name(Step step) {
  switch (step) {
#define KILN_STEP(id, text, meaning) \
  case Step::k##id:                  \
    return text;
#include "support/trace_step.def"
#undef KILN_STEP
  }
  return {};
}

int64_t now_ns() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
}

void add(Event event) {
  event.thread = thread_id();
  ThreadEvents& events = mine();
  std::lock_guard lock(events.mutex);
  events.events.push_back(std::move(event));
}

void add_memory(Step step, std::string_view device, int64_t bytes) {
  if (!on(kMemory)) return;
  Event event;
  event.step = step, event.name = device, event.bytes = bytes;
  event.start_ns = event.end_ns = now_ns();
  add(std::move(event));
}

void Scope::begin(Step step, std::string_view name, int64_t bytes, uint64_t stream) {
  Event* event = new (&storage_.event) Event;
  event->step = step;
  event->name = name;
  event->bytes = bytes;
  event->stream = stream;
  on_ = true;
  event->start_ns = now_ns();
}

void Scope::end() {
  storage_.event.end_ns = now_ns();
  // What began before start(), or ends after stop(), belongs to no profile.
  if (internal::wanted.load(std::memory_order_relaxed) && storage_.event.start_ns >= started_ns.load())
    add(std::move(storage_.event));
  storage_.event.~Event();
}

bool start(uint32_t details) {
  std::lock_guard lock(registry().mutex);
  if (std::exchange(registry().running, true)) return false;
  started_ns.store(now_ns());
  internal::wanted.store(details);
  return true;
}

std::vector<Event> stop() {
  internal::wanted.store(0);
  std::lock_guard lock(registry().mutex);
  std::vector<Event> all;
  for (const auto& thread : registry().threads) {
    std::lock_guard own(thread->mutex);
    all.insert(all.end(), std::make_move_iterator(thread->events.begin()),
               std::make_move_iterator(thread->events.end()));
    thread->events.clear();
  }
  std::erase_if(registry().threads, [](const auto& thread) { return thread.use_count() == 1; });
  registry().running = false;
  return all;
}

}  // namespace kiln::trace
