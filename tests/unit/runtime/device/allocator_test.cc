#include "runtime/device/allocator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "runtime/host/host_backend.h"
#include "support/diag.h"

namespace kiln::runtime {
namespace {

constexpr int64_t kMiB = 1 << 20;

struct FakeStream : StreamImpl {
  explicit FakeStream(Backend& b) : StreamImpl(b) {}
  Status synchronize() override { return {}; }
  Status wait(const EventImpl&) override { return {}; }
  bool is_idle() override { return true; }
  using StreamImpl::set_capturing;
};

struct FakeEvent : EventImpl {
  explicit FakeEvent(std::shared_ptr<bool> d) : done(std::move(d)) {}
  Status synchronize() override {
    *done = true;
    return {};
  }
  bool is_done() override { return *done; }
  std::shared_ptr<bool> done;
};

// Memory that is only numbers, with a limit, so that exhaustion is exact.
struct FakeBackend : Backend {
  explicit FakeBackend(int64_t limit) : capacity(limit), stream(*this) {}
  DeviceInfo info() override { return {}; }
  int capability() const override { return 0; }
  Result<DeviceAddress> reserve(int64_t bytes) override {
    ++reserves;
    if (used + bytes > capacity) return error(ErrorKind::kMemory, "full");
    used += bytes;
    DeviceAddress address = next;
    next += static_cast<uint64_t>(bytes) + (1 << 30);  // never adjacent
    taken[address] = bytes;
    return address;
  }
  void release(DeviceAddress address, int64_t bytes) override {
    ASSERT_EQ(taken.at(address), bytes);
    taken.erase(address);
    used -= bytes;
  }
  Result<std::shared_ptr<void>> shared_memory(int64_t) override { return std::shared_ptr<void>(); }
  int64_t free_bytes() override { return capacity - used; }
  Result<std::unique_ptr<StreamImpl>> new_stream() override {
    return std::unique_ptr<StreamImpl>(new FakeStream(*this));
  }
  Result<std::unique_ptr<StreamImpl>> stream_of(void*) override { return error(ErrorKind::kUnsupported, "none"); }
  StreamImpl& default_stream() override { return stream; }
  Result<void*> native_stream(StreamImpl&) override { return nullptr; }
  Result<std::unique_ptr<EventImpl>> record(StreamImpl&) override {
    events.push_back(std::make_shared<bool>(false));
    return std::unique_ptr<EventImpl>(new FakeEvent(events.back()));
  }
  Result<double> elapsed_ms(const EventImpl&, EventImpl&) override { return 0.0; }
  Status synchronize() override { return {}; }
  Status copy_in(DeviceAddress, const void*, size_t, StreamImpl&, CopyReturns) override { return {}; }
  Status copy_out(void*, DeviceAddress, size_t, StreamImpl&, CopyReturns) override { return {}; }
  Status copy(DeviceAddress, DeviceAddress, size_t, StreamImpl&) override { return {}; }
  Status fill(DeviceAddress, uint64_t, int, int64_t, StreamImpl&) override { return {}; }
  const Assembler* assembler() override { return nullptr; }
  Result<std::shared_ptr<LoadedKernel>> load(const KernelImage&) override { return std::shared_ptr<LoadedKernel>(); }
  Status launch(const LoadedKernel&, const Grid&, const uint64_t*, StreamImpl&, double) override { return {}; }
  Status call(std::function<Status()> work, StreamImpl&) override { return work(); }
  Status begin_capture(StreamImpl&) override { return {}; }
  Result<std::unique_ptr<CapturedWork>> end_capture(StreamImpl&) override { return std::unique_ptr<CapturedWork>(); }

  int64_t capacity, used = 0;
  int reserves = 0;
  DeviceAddress next = 1 << 20;
  std::map<DeviceAddress, int64_t> taken;
  std::vector<std::shared_ptr<bool>> events;
  FakeStream stream;
};

TEST(Allocator, ReusesAFreedBlockAtOnce) {
  FakeBackend backend(1000 * kMiB);
  Allocator allocator(backend, "cuda:0");
  Block* a = *allocator.allocate(100'000, backend.stream);
  DeviceAddress address = a->address;
  // Rounded up to 512 bytes, so that every block's address is aligned.
  EXPECT_EQ(a->bytes, 100'352);
  allocator.free(a);
  Block* b = *allocator.allocate(100'000, backend.stream);
  EXPECT_EQ(b->address, address);
  EXPECT_EQ(backend.reserves, 1);
  allocator.free(b);
  EXPECT_EQ(allocator.stats().allocated, 0);
  // A small block takes a segment of 2 MiB, of which it uses a part.
  EXPECT_EQ(allocator.stats().reserved, 2 * kMiB);
  EXPECT_EQ(allocator.stats().peak, 100'352);
  allocator.trim();
  EXPECT_EQ(allocator.stats().reserved, 0);
  EXPECT_EQ(backend.used, 0);
}

TEST(Allocator, SmallBlocksShareASegmentAndMergeAgain) {
  FakeBackend backend(1000 * kMiB);
  Allocator allocator(backend, "cuda:0");
  std::vector<Block*> blocks;
  for (int i = 0; i < 4; ++i) blocks.push_back(*allocator.allocate(512 * 1024, backend.stream));
  EXPECT_EQ(backend.reserves, 1);
  // In an order in which each free block gets its neighbours at another time.
  for (int i : {2, 0, 3, 1}) allocator.free(blocks[static_cast<size_t>(i)]);
  // Merged into the whole segment, which can therefore serve its largest size and be given back.
  Block* large = *allocator.allocate(kMiB, backend.stream);
  EXPECT_EQ(backend.reserves, 1);
  allocator.free(large);
  allocator.trim();
  EXPECT_EQ(backend.used, 0);
}

TEST(Allocator, TheLastOfItsSizeThatWasFreedIsTakenAsItIs) {
  FakeBackend backend(1000 * kMiB);
  Allocator allocator(backend, "cuda:0");
  auto side = *backend.new_stream();
  Block* first = *allocator.allocate(4096, backend.stream);
  Block* second = *allocator.allocate(4096, backend.stream);
  Block* other = *allocator.allocate(1024, backend.stream);
  for (Block* b : {first, second, other}) allocator.free(b);
  EXPECT_EQ(*allocator.allocate(4096, backend.stream), second);
  EXPECT_EQ(*allocator.allocate(1000, backend.stream), other);
  EXPECT_NE((*allocator.allocate(4096, *side))->address, first->address) << "another stream's order";
  EXPECT_EQ(*allocator.allocate(4096, backend.stream), first);
  // Of many that were freed the oldest are joined again, and the rest when nothing else will do.
  std::vector<Block*> blocks;
  const int reserves = backend.reserves;
  for (int i = 0; i < 100; ++i) blocks.push_back(*allocator.allocate(8192, backend.stream));
  for (Block* b : blocks) allocator.free(b);
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(allocator.allocate(400 * 1024, backend.stream).ok());
  EXPECT_EQ(backend.reserves, reserves);
}

TEST(Allocator, OutOfMemoryGivesTheCacheBackFirst) {
  FakeBackend backend(100 * kMiB);
  Allocator allocator(backend, "cuda:0");
  allocator.free(*allocator.allocate(60 * kMiB, backend.stream));
  // It fits only when the cached 60 MiB are gone.
  auto second = allocator.allocate(80 * kMiB, backend.stream);
  ASSERT_TRUE(second.ok()) << second.error().message;
  auto third = allocator.allocate(50 * kMiB, backend.stream);
  ASSERT_FALSE(third.ok());
  EXPECT_EQ(third.error().kind, ErrorKind::kMemory);
  EXPECT_EQ(third.error().message,
            "out of memory on cuda:0: asked for 50.0 MiB, 20.0 MiB free, 80.0 MiB in use by tensors, 0 B were cached "
            "and given back");
  allocator.free(*second);
  EXPECT_TRUE(allocator.allocate(50 * kMiB, backend.stream).ok()) << "usable after the error";
}

TEST(Allocator, HugeRequestIsRefusedNotOverflowed) {
  FakeBackend backend(100 * kMiB);
  Allocator allocator(backend, "cpu");
  // Rounding these up would overflow.
  for (int64_t bytes : {INT64_MAX, INT64_MAX - 1, INT64_MAX / 2 - 1}) {
    auto block = allocator.allocate(bytes, backend.stream);
    ASSERT_FALSE(block.ok());
    EXPECT_EQ(block.error().kind, ErrorKind::kMemory);
  }
}

TEST(Allocator, ExactFitWhenASegmentIsTooMuch) {
  FakeBackend backend(5 * kMiB);
  Allocator allocator(backend, "cuda:0");
  EXPECT_TRUE(allocator.allocate(4 * kMiB, backend.stream).ok()) << "a 20 MiB segment does not fit, 4 MiB do";
}

TEST(Allocator, OtherStreamsHoldABlockUntilTheirEvents) {
  FakeBackend backend(1000 * kMiB);
  Allocator allocator(backend, "cuda:0");
  auto side = *backend.new_stream();
  Block* a = *allocator.allocate(3 * kMiB, backend.stream);
  DeviceAddress address = a->address;
  allocator.used_on(a, *side);
  // Twice on the same stream needs one event.
  allocator.used_on(a, *side);
  allocator.free(a);
  ASSERT_EQ(backend.events.size(), 1u) << "one event per stream";
  Block* b = *allocator.allocate(3 * kMiB, backend.stream);
  EXPECT_NE(b->address, address) << "the side stream may still read it";
  *backend.events[0] = true;
  Block* c = *allocator.allocate(3 * kMiB, backend.stream);
  EXPECT_EQ(c->address, address);
}

TEST(Allocator, OutOfMemoryWaitsForPendingBlocks) {
  FakeBackend backend(100 * kMiB);
  Allocator allocator(backend, "cuda:0");
  auto side = *backend.new_stream();
  Block* a = *allocator.allocate(90 * kMiB, backend.stream);
  allocator.used_on(a, *side);
  allocator.free(a);
  // The event is waited for rather than the request refused.
  EXPECT_TRUE(allocator.allocate(90 * kMiB, backend.stream).ok());
}

TEST(Allocator, BlocksOfAClosedStreamAreReused) {
  FakeBackend backend(1000 * kMiB);
  Allocator allocator(backend, "cuda:0");
  auto side = *backend.new_stream();
  Block* a = *allocator.allocate(30 * kMiB, *side);
  DeviceAddress address = a->address;
  allocator.free(a);
  ASSERT_EQ(backend.events.size(), 1u) << "the default stream may work on it without having said so";
  // The side stream is done, yet the block is its own until it is closed.
  *backend.events[0] = true;
  Block* other = *allocator.allocate(30 * kMiB, backend.stream);
  EXPECT_NE(other->address, address) << "streams do not share blocks";
  allocator.stream_closed(*side);
  EXPECT_EQ((*allocator.allocate(30 * kMiB, backend.stream))->address, address);
}

TEST(Allocator, AGraphUsesItsOwnMemoryAgain) {
  FakeBackend backend(1000 * kMiB);
  Allocator allocator(backend, "cuda:0");
  FakeStream captured(backend), side(backend);
  allocator.free(*allocator.allocate(30 * kMiB, captured));
  *backend.events.at(0) = true;
  captured.set_capturing(true);
  const uint64_t order = captured.order();
  allocator.open_graph(order);
  Block* a = *allocator.allocate(30 * kMiB, captured);
  const DeviceAddress address = a->address;
  EXPECT_EQ(backend.reserves, 2) << "not what the stream had before";
  EXPECT_TRUE(allocator.is_of(a, order));
  allocator.free(a);
  EXPECT_EQ(backend.events.size(), 1u) << "work on other streams is no part of it";
  Block* b = *allocator.allocate(30 * kMiB, captured);
  EXPECT_EQ(b->address, address);
  // What a stream beside the captured one uses is not used again.
  Block* c = *allocator.allocate(30 * kMiB, captured);
  const DeviceAddress beside = c->address;
  allocator.used_on(c, side);
  allocator.free(c);
  EXPECT_NE((*allocator.allocate(30 * kMiB, captured))->address, beside);
  captured.set_capturing(false);
  allocator.free(b);
  allocator.trim();
  EXPECT_EQ(allocator.stats().reserved, 90 * kMiB) << "a replay writes there again";
  EXPECT_NE((*allocator.allocate(30 * kMiB, captured))->address, address);
  allocator.graph_launched(order, captured);
  EXPECT_TRUE(allocator.knows(captured));
  allocator.close_graph(order);
  allocator.trim();  // waits for the last launch
  EXPECT_EQ(allocator.stats().reserved, 60 * kMiB);
}

TEST(Allocator, AGraphsMemoryIsReusedOnceItsLaunchesArePassed) {
  FakeBackend backend(1000 * kMiB);
  Allocator allocator(backend, "cuda:0");
  FakeStream captured(backend);
  captured.set_capturing(true);
  const uint64_t order = captured.order();
  allocator.open_graph(order);
  Block *freed = *allocator.allocate(30 * kMiB, captured), *kept = *allocator.allocate(30 * kMiB, captured);
  const DeviceAddress first = freed->address, second = kept->address;
  allocator.free(freed);
  captured.set_capturing(false);
  allocator.graph_launched(order, captured);
  allocator.close_graph(order);
  EXPECT_NE((*allocator.allocate(30 * kMiB, backend.stream))->address, first) << "a launch may still run";
  allocator.free(kept);
  for (auto& done : backend.events) *done = true;
  const DeviceAddress reused[] = {(*allocator.allocate(30 * kMiB, backend.stream))->address,
                                  (*allocator.allocate(30 * kMiB, backend.stream))->address};
  EXPECT_EQ(std::set(std::begin(reused), std::end(reused)), (std::set{first, second}));
}

// Random allocations and frees: blocks in use never overlap, lie inside what was reserved, and everything merges back.
TEST(Allocator, RandomUse) {
  uint64_t seed = std::random_device{}();
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  FakeBackend backend(600 * kMiB);
  {
    Allocator allocator(backend, "cuda:0");
    auto side = *backend.new_stream();
    std::map<DeviceAddress, Block*> live;
    int failures = 0;
    for (int step = 0; step < 4000; ++step) {
      if (live.empty() || random() % 5 < 3) {
        // Sizes of all magnitudes, up to 64 MiB.
        int64_t bytes = static_cast<int64_t>(random() % (1ull << (random() % 27)));
        auto block = allocator.allocate(bytes, random() % 4 ? backend.stream : *side);
        if (!block.ok()) {
          ++failures;
          continue;
        }
        ASSERT_GE((*block)->bytes, bytes);
        ASSERT_EQ((*block)->address % 512, 0u);
        // Neither over the block behind nor over the one before.
        auto after = live.lower_bound((*block)->address);
        if (after != live.end()) {
          ASSERT_LE((*block)->address + static_cast<uint64_t>((*block)->bytes), after->first);
        }
        if (after != live.begin()) {
          auto before = std::prev(after);
          ASSERT_LE(before->first + static_cast<uint64_t>(before->second->bytes), (*block)->address);
        }
        auto segment = std::prev(backend.taken.upper_bound((*block)->address));
        ASSERT_LE((*block)->address + static_cast<uint64_t>((*block)->bytes),
                  segment->first + static_cast<uint64_t>(segment->second));
        live[(*block)->address] = *block;
      } else {
        auto it = std::next(live.begin(), static_cast<long>(random() % live.size()));
        if (random() % 8 == 0) allocator.used_on(it->second, *side);
        allocator.free(it->second);
        live.erase(it);
        // Events end some time later, in any order.
        for (auto& done : backend.events) *done = *done || random() % 3 == 0;
      }
    }
    for (auto& [address, block] : live) allocator.free(block);
    allocator.trim();
    EXPECT_EQ(allocator.stats().allocated, 0);
    EXPECT_EQ(allocator.stats().reserved, 0);
    EXPECT_EQ(backend.used, 0);
    // Memory was short at times, and not always.
    EXPECT_LT(failures, 3000);
  }
}

TEST(Allocator, FormatsBytes) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(1023), "1023 B");
  EXPECT_EQ(format_bytes(1536), "1.50 KiB");
  EXPECT_EQ(format_bytes(int64_t{140} << 30), "140.0 GiB");
}

}  // namespace
}  // namespace kiln::runtime
