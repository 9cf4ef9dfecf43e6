#include "support/trace.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <iterator>
#include <memory>
#include <mutex>
#include <new>
#include <span>
#include <utility>

namespace kiln::trace {

namespace internal {
std::atomic<uint32_t> wanted{0};
}

namespace {

std::atomic<int64_t> started_ns{0};

// Some 700 KB of events, in memory that is there before anything is recorded: growing a vector, and the first touch of
// its pages, would cost each launch more than its span does.
class Chunk {
 public:
  static constexpr size_t kEvents = 4096;

  Chunk() {
    void* memory = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    events_ = static_cast<Event*>(memory);
  }
  ~Chunk() {
    clear();
    munmap(events_, kBytes);
  }
  Chunk(const Chunk&) = delete;
  Chunk& operator=(const Chunk&) = delete;

  bool is_full() const { return size_ == kEvents; }
  void add(Event&& event) { new (events_ + size_++) Event(std::move(event)); }
  std::span<Event> events() { return {events_, size_}; }
  void clear() {
    std::destroy_n(events_, size_);
    size_ = 0;
  }

 private:
  static constexpr size_t kBytes = kEvents * sizeof(Event);
  Event* events_ = nullptr;
  size_t size_ = 0;
};

struct ThreadEvents {
  std::mutex mutex;  // of its thread and of stop(): nearly never contended
  std::vector<std::unique_ptr<Chunk>> chunks;
};

// Made by the first start() and kept for the next, so that 30,000 events need no memory of the system while someone
// watches.
constexpr size_t kSpareChunks = 8;

struct Registry {
  std::mutex mutex;
  std::vector<std::shared_ptr<ThreadEvents>> threads;
  std::vector<std::unique_ptr<Chunk>> spare;
  bool running = false;
};

Registry& registry() {
  static auto* r = new Registry;  // threads may end after our statics
  return *r;
}

std::unique_ptr<Chunk> take_chunk() {
  {
    std::lock_guard lock(registry().mutex);
    if (!registry().spare.empty()) {
      auto chunk = std::move(registry().spare.back());
      registry().spare.pop_back();
      return chunk;
    }
  }
  return std::make_unique<Chunk>();
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
  if (std::lock_guard lock(events.mutex); !events.chunks.empty() && !events.chunks.back()->is_full()) {
    events.chunks.back()->add(std::move(event));
    return;
  }
  // stop() locks the registry and then our lock, so ours must be free here; no other thread adds to it.
  std::unique_ptr<Chunk> chunk = take_chunk();
  std::lock_guard lock(events.mutex);
  chunk->add(std::move(event));
  events.chunks.push_back(std::move(chunk));
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
  while (registry().spare.size() < kSpareChunks) registry().spare.push_back(std::make_unique<Chunk>());
  started_ns.store(now_ns());
  internal::wanted.store(details);
  return true;
}

std::vector<Event> stop() {
  internal::wanted.store(0);
  std::lock_guard lock(registry().mutex);
  std::vector<Event> all;
  size_t count = 0;
  for (const auto& thread : registry().threads) {
    std::lock_guard own(thread->mutex);
    for (const auto& chunk : thread->chunks) count += chunk->events().size();
  }
  all.reserve(count);
  for (const auto& thread : registry().threads) {
    std::lock_guard own(thread->mutex);
    for (const auto& chunk : thread->chunks)
      std::move(chunk->events().begin(), chunk->events().end(), std::back_inserter(all));
    for (auto& chunk : thread->chunks) {
      chunk->clear();
      if (registry().spare.size() < kSpareChunks) registry().spare.push_back(std::move(chunk));
    }
    thread->chunks.clear();
  }
  std::erase_if(registry().threads, [](const auto& thread) { return thread.use_count() == 1; });
  registry().running = false;
  return all;
}

}  // namespace kiln::trace
