#include "runtime/device/allocator.h"

#include <fmt/format.h>

#include <algorithm>

#include "support/diag.h"
#include "support/trace.h"

namespace kiln::runtime {
namespace {

constexpr int64_t kMiB = 1 << 20;
constexpr int64_t kGranule = 512;      // block sizes are multiples of it
constexpr int64_t kSmallLimit = kMiB;  // blocks up to this come from small segments
constexpr int64_t kSmallSegment = 2 * kMiB;
constexpr int64_t kMediumLimit = 10 * kMiB;  // blocks up to this share a segment
constexpr int64_t kMediumSegment = 20 * kMiB;
constexpr size_t kMostKept = 16;  // freed blocks that are not joined with their neighbours yet

int64_t round_up(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

// Segments are larger than small blocks, because taking memory from the driver is slow and synchronises the device. The
// limits are those of PyTorch's caching allocator.
int64_t segment_bytes(int64_t block_bytes) {
  if (block_bytes <= kSmallLimit) return kSmallSegment;
  return block_bytes <= kMediumLimit ? kMediumSegment : round_up(block_bytes, 2 * kMiB);
}

// A rest smaller than this stays with the block: it would only splinter the segment.
int64_t smallest_rest(bool small) { return small ? kGranule : kMiB; }

void add(std::vector<StreamImpl*>& streams, StreamImpl* stream) {
  if (std::ranges::find(streams, stream) == streams.end()) streams.push_back(stream);
}

}  // namespace

std::string format_bytes(int64_t bytes) {
  static constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  double value = static_cast<double>(bytes);
  size_t unit = 0;
  while (value >= 1024 && unit + 1 < std::size(kUnits)) value /= 1024, ++unit;
  return unit == 0 ? fmt::format("{} B", bytes) : fmt::format("{:.{}f} {}", value, value < 10 ? 2 : 1, kUnits[unit]);
}

Allocator::Allocator(Backend& backend, std::string device_name)
    : backend_(backend), device_name_(std::move(device_name)) {}

Allocator::~Allocator() {
  pending_.clear();
  for (Block* block : blocks_) {
    if (!block->previous) {
      int64_t bytes = 0;
      for (Block* b = block; b; b = b->next) bytes += b->bytes;
      backend_.release(block->address, bytes);
      trace::add_memory(trace::Step::kReserve, device_name_, -bytes);
    }
  }
  for (Block* block : blocks_) delete block;
}

Result<Block*> Allocator::allocate(int64_t bytes, StreamImpl& stream) {
  KILN_ASSERT(bytes >= 0, "allocate({})", bytes);
  std::lock_guard lock(mutex_);
  auto out_of_memory = [&](int64_t cached) {
    int64_t free = backend_.free_bytes();
    return error(ErrorKind::kMemory,
                 "out of memory on {}: asked for {}, {} free, {} in use by tensors, {} were cached and given back",
                 device_name_, format_bytes(bytes), free < 0 ? "unknown" : format_bytes(free),
                 format_bytes(stats_.allocated), format_bytes(cached));
  };
  if (bytes > INT64_MAX / 2) return out_of_memory(0);
  int64_t size = round_up(std::max<int64_t>(bytes, 1), kGranule);
  bool small = size <= kSmallLimit;
  if (!pending_.empty()) collect_pending(false);
  Block* block = small ? take_kept(size, stream.order()) : nullptr;
  if (!block) block = take_cached(size, small, stream.order());
  if (!block && !kept_.empty()) {
    pool_kept();
    block = take_cached(size, small, stream.order());
  }
  if (!block) {
    int64_t reserve = segment_bytes(size), given_back = 0;
    Result<DeviceAddress> address = backend_.reserve(reserve);
    if (!address.ok() && address.error().kind == ErrorKind::kMemory) {
      // Events that are still pending may free exactly what is asked for.
      collect_pending(true);
      block = take_cached(size, small, stream.order());
      if (!block) {
        given_back = release_cached();
        address = backend_.reserve(reserve);
        // A segment is larger than the block that it is for: at the end of memory the block alone may still fit.
        if (!address.ok() && reserve > size && address.error().kind == ErrorKind::kMemory) {
          reserve = size;
          address = backend_.reserve(reserve);
        }
      }
    }
    if (!block) {
      if (!address.ok()) {
        if (address.error().kind != ErrorKind::kMemory) return std::move(address.error());
        return out_of_memory(given_back);
      }
      block = new Block;
      block->address = *address;
      block->bytes = reserve;
      block->small = small;
      block->order = stream.order();
      blocks_.insert(block);
      stats_.reserved += reserve;
      trace::add_memory(trace::Step::kReserve, device_name_, reserve);
      ++stats_.segments;
    }
  }
  if (block->bytes != size) split(block, size);
  block->in_use = true;
  stats_.allocated += block->bytes;
  stats_.peak = std::max(stats_.peak, stats_.allocated);
  return block;
}

void Allocator::free(Block* block) {
  std::lock_guard lock(mutex_);
  KILN_ASSERT(block->in_use, "block freed twice");
  stats_.allocated -= block->bytes;
  if (const auto graph = graphs_.find(block->order); graph != graphs_.end()) {
    // Where the work of other streams is part of the graph, nothing tells when it is done.
    if (block->other_streams.empty())
      keep(block);
    else
      graph->second.held.push_back(block);
    return;
  }
  // Launches on the default stream do not say what they use.
  StreamImpl& main = backend_.default_stream();
  auto& others = block->other_streams;
  if (block->order != main.id()) add(others, &main);
  Pending freed{block, {}};
  record_ends(freed);
  if (freed.events.empty() && others.empty())
    keep(block);
  else
    pending_.push_back(std::move(freed));
}

// An event in a stream that records a graph would be part of the graph, and tell nothing of the work before it. The
// graph holds what its own work uses, so that the event after the capture ends will do.
void Allocator::record_ends(Pending& freed) {
  std::erase_if(freed.block->other_streams, [&](StreamImpl* stream) {
    if (stream->is_capturing()) return false;
    // A device that no longer answers gives no event; its memory is never used again either.
    if (auto event = backend_.record(*stream); event.ok()) freed.events.push_back(std::move(*event));
    return true;
  });
}

void Allocator::used_on(Block* block, StreamImpl& stream) {
  std::lock_guard lock(mutex_);
  if (stream.id() != block->order && stream.order() != block->order) add(block->other_streams, &stream);
}

bool Allocator::is_of(const Block* block, uint64_t order) {
  std::lock_guard lock(mutex_);
  return block->order == order;
}

bool Allocator::is_used_elsewhere(const Block* block, const StreamImpl& stream) {
  std::lock_guard lock(mutex_);
  const auto is_another = [&](const StreamImpl* other) { return other != &stream; };
  const auto graph = graphs_.find(block->order);
  const bool elsewhere =
      graph == graphs_.end() ? block->order != stream.id() : std::ranges::any_of(graph->second.launched_on, is_another);
  return elsewhere || std::ranges::any_of(block->other_streams, is_another);
}

bool Allocator::knows(const StreamImpl& stream) {
  std::lock_guard lock(mutex_);
  const auto has = [&](const std::vector<StreamImpl*>& streams) {
    return std::ranges::find(streams, &stream) != streams.end();
  };
  return std::ranges::any_of(blocks_,
                             [&](const Block* b) { return b->order == stream.id() || has(b->other_streams); }) ||
         std::ranges::any_of(graphs_, [&](const auto& graph) { return has(graph.second.launched_on); });
}

void Allocator::stream_closed(const StreamImpl& stream) {
  std::lock_guard lock(mutex_);
  pool_kept();
  // Cached blocks of a closed stream would never be reused; the default stream takes them over.
  uint64_t heir = backend_.default_stream().id();
  for (Block* block : blocks_) {
    std::erase(block->other_streams, &stream);
    if (block->order != stream.id()) continue;
    bool pooled = !block->in_use && pool(*block).erase(block);
    block->order = heir;
    if (pooled) pool(*block).insert(block);
  }
  for (auto& [order, graph] : graphs_) std::erase(graph.launched_on, &stream);
  pools_.erase({stream.id(), false});
  pools_.erase({stream.id(), true});
}

void Allocator::open_graph(uint64_t order) {
  std::lock_guard lock(mutex_);
  graphs_[order];
}

void Allocator::graph_launched(uint64_t order, StreamImpl& stream) {
  std::lock_guard lock(mutex_);
  add(graphs_.at(order).launched_on, &stream);
}

void Allocator::close_graph(uint64_t order) {
  std::lock_guard lock(mutex_);
  pool_kept();
  const GraphMemory graph = std::move(graphs_.at(order));
  graphs_.erase(order);
  StreamImpl& heir = backend_.default_stream();
  std::vector<Block*> freed = graph.held;
  for (Block* block : blocks_) {
    if (block->order != order) continue;
    if (!block->in_use) freed.push_back(block);
    block->order = heir.id();
    for (StreamImpl* stream : graph.launched_on)
      if (stream != &heir) add(block->other_streams, stream);
  }
  pools_.erase({order, false});
  pools_.erase({order, true});
  for (Block* block : freed) {
    block->in_use = true;  // until collect_pending() finds that nobody uses it
    pending_.push_back({block, {}});
  }
  collect_pending(false);
}

void Allocator::trim() {
  std::lock_guard lock(mutex_);
  collect_pending(true);
  pool_kept();
  release_cached();
}

MemoryStats Allocator::stats() const {
  std::lock_guard lock(mutex_);
  return stats_;
}

void Allocator::keep(Block* block) {
  // Of large ones the best fit is wanted, for which all have to be in their pools.
  if (!block->small) return make_free(block);
  block->in_use = false;
  kept_.push_back(block);
  if (kept_.size() <= kMostKept) return;
  make_free(kept_.front());
  kept_.erase(kept_.begin());
}

Block* Allocator::take_kept(int64_t bytes, uint64_t order) {
  const auto found = std::ranges::find_if(kept_.rbegin(), kept_.rend(),
                                          [&](const Block* b) { return b->bytes == bytes && b->order == order; });
  if (found == kept_.rend()) return nullptr;
  Block* block = *found;
  kept_.erase(std::next(found).base());
  return block;
}

void Allocator::pool_kept() {
  for (Block* block : kept_) make_free(block);
  kept_.clear();
}

// Adjacent free blocks are merged, so that a segment does not fragment.
void Allocator::make_free(Block* block) {
  block->in_use = false;
  if (block->next && !block->next->in_use && pool(*block->next).erase(block->next)) absorb_next(block);
  if (Block* left = block->previous; left && !left->in_use && pool(*left).erase(left)) {
    absorb_next(left);
    block = left;
  }
  pool(*block).insert(block);
}

void Allocator::collect_pending(bool wait) {
  for (auto it = pending_.begin(); it != pending_.end();) {
    record_ends(*it);
    bool done = it->block->other_streams.empty() && std::all_of(it->events.begin(), it->events.end(), [&](auto& event) {
                  if (wait) (void)event->synchronize().ok();  // a fault is reported by the stream's own synchronize
                  return event->is_done();
                });
    if (!done) {
      ++it;
      continue;
    }
    make_free(it->block);
    it = pending_.erase(it);
  }
}

Block* Allocator::take_cached(int64_t bytes, bool small, uint64_t order) {
  auto found = pools_.find({order, small});
  if (found == pools_.end()) return nullptr;
  Block key;
  key.bytes = bytes;
  auto it = found->second.lower_bound(&key);
  if (it == found->second.end()) return nullptr;
  Block* block = *it;
  // A segment of its own is not spent on a block of a fraction of its size.
  if (!small && bytes <= kMediumLimit && block->bytes > 4 * kMediumSegment) return nullptr;
  found->second.erase(it);
  return block;
}

void Allocator::split(Block* block, int64_t bytes) {
  if (block->bytes - bytes < smallest_rest(block->small)) return;
  Block* rest = new Block;
  rest->address = block->address + static_cast<uint64_t>(bytes);
  rest->bytes = block->bytes - bytes;
  rest->small = block->small;
  rest->order = block->order;
  rest->previous = block;
  rest->next = block->next;
  if (rest->next) rest->next->previous = rest;
  block->next = rest;
  block->bytes = bytes;
  blocks_.insert(rest);
  pool(*rest).insert(rest);
}

void Allocator::absorb_next(Block* block) {
  Block* next = block->next;
  block->bytes += next->bytes;
  block->next = next->next;
  if (block->next) block->next->previous = block;
  blocks_.erase(next);
  delete next;
}

int64_t Allocator::release_cached() {
  int64_t released = 0;
  for (auto& [key, blocks] : pools_) {
    if (graphs_.contains(key.first)) continue;  // a launch writes there
    for (auto it = blocks.begin(); it != blocks.end();) {
      Block* block = *it;
      // Only whole segments can be returned to the backend.
      if (block->previous || block->next) {
        ++it;
        continue;
      }
      backend_.release(block->address, block->bytes);
      trace::add_memory(trace::Step::kReserve, device_name_, -block->bytes);
      released += block->bytes;
      --stats_.segments;
      it = blocks.erase(it);
      blocks_.erase(block);
      delete block;
    }
  }
  stats_.reserved -= released;
  return released;
}

}  // namespace kiln::runtime
