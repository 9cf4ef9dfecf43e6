// The caching allocator of a device: memory is taken from the backend in segments, handed out in blocks and kept for
// reuse.
//
// Invariants: the blocks of a segment tile it in address order; a free block is in exactly one pool, ordered by size,
// and no neighbour of it is in one; or it is among the few small ones that were freed last, which the next allocation
// of its size takes as it is. A freed block is reused at once by the stream that it was allocated for (that stream's
// order makes it safe); a block that other streams used waits until the events recorded on them at free() have passed.
//
// What is allocated while a stream captures a graph is used in the order of the graph (StreamImpl::order()), from
// segments that are the graph's alone: a block that the capture frees is used again by the same capture, and by nothing
// else while the graph can be launched. Then its blocks become the default stream's, once the launches have passed.
#pragma once
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include "runtime/device/backend.h"

namespace kiln::runtime {

class Allocator;

/// A piece of device memory in use, or free in the cache.
struct Block {
  DeviceAddress address = 0;
  int64_t bytes = 0;

 private:
  friend class Allocator;
  uint64_t order = 0;  // the stream's or the graph's that it is used in
  bool in_use = false;
  bool small = false;                          // of a small segment
  Block *previous = nullptr, *next = nullptr;  // neighbours in the segment
  std::vector<StreamImpl*> other_streams;
};

class Allocator {
 public:
  explicit Allocator(Backend& backend, std::string device_name);
  ~Allocator();
  Allocator(const Allocator&) = delete;
  Allocator& operator=(const Allocator&) = delete;

  /// At least `bytes` (0 counts as 1), aligned to 512. When the device has no more, cached segments are released and
  /// it is tried again; then kMemory: how much was asked for, is free, is in use and was cached.
  Result<Block*> allocate(int64_t bytes, StreamImpl& stream);
  /// Never fails and does not wait.
  void free(Block* block);
  /// `stream` uses the block too: after free() it is not reused before that stream's work up to then is done.
  void used_on(Block* block, StreamImpl& stream);
  /// Whether another stream than that one may still work on it.
  bool is_used_elsewhere(const Block* block, const StreamImpl& stream);
  /// Whether it was allocated in that order.
  bool is_of(const Block* block, uint64_t order);
  /// Whether a block was allocated for the stream, or is in use and was used on it, or by a graph that was launched on
  /// it.
  bool knows(const StreamImpl& stream);
  /// The stream ends (its work is done): its free blocks become the default stream's.
  void stream_closed(const StreamImpl& stream);
  /// A graph of that order is captured: its memory is its own until close_graph().
  void open_graph(uint64_t order);
  /// The graph works on its memory on that stream.
  void graph_launched(uint64_t order, StreamImpl& stream);
  /// It is launched no more. Tensors of it that are in use stay.
  void close_graph(uint64_t order);
  /// Gives every wholly free segment back to the device; waits for events of blocks that other streams used.
  void trim();
  MemoryStats stats() const;

 private:
  struct BySize {
    bool operator()(const Block* a, const Block* b) const {
      return a->bytes != b->bytes ? a->bytes < b->bytes : a->address < b->address;
    }
  };
  using Pool = std::set<Block*, BySize>;
  /// A freed block that other streams may still work on: their events, but for those that `block->other_streams` still
  /// names, which record a graph.
  struct Pending {
    Block* block;
    std::vector<std::unique_ptr<EventImpl>> events;
  };

  /// What a graph that can be launched has.
  struct GraphMemory {
    std::vector<StreamImpl*> launched_on;
    std::vector<Block*> held;  // freed, but other streams use them
  };

  Pool& pool(const Block& block) { return pools_[{block.order, block.small}]; }
  void record_ends(Pending& freed);
  void make_free(Block* block);
  /// Among the small ones that were freed last, of which the oldest goes to its pool.
  void keep(Block* block);
  Block* take_kept(int64_t bytes, uint64_t order);
  void pool_kept();
  void collect_pending(bool wait);
  Block* take_cached(int64_t bytes, bool small, uint64_t order);
  void split(Block* block, int64_t bytes);
  void absorb_next(Block* block);
  int64_t release_cached();

  Backend& backend_;
  std::string device_name_;
  mutable std::mutex mutex_;
  std::map<std::pair<uint64_t, bool>, Pool> pools_;  // by (order, small)
  std::map<uint64_t, GraphMemory> graphs_;           // by their order
  std::list<Pending> pending_;
  std::vector<Block*> kept_;  // the last one last
  std::set<Block*> blocks_;   // every block, for the destructor
  MemoryStats stats_;
};

/// "512 B", "1.50 MiB", "12.0 GiB".
std::string format_bytes(int64_t bytes);

}  // namespace kiln::runtime
