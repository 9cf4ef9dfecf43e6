// The happens-before relation of one program: vector clocks over its agents.
//
// An agent is a warp's threads, one of the asynchronous engines of a warp, or the bulk loads of
// one mbarrier. Its accesses carry its epoch. What an agent knows of another is an epoch: it comes after all accesses
// of smaller epochs. A warp's own epoch advances whenever it releases something (a barrier, an arrival, a transfer that
// it starts), which distinguishes later accesses from earlier ones.
#pragma once
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "compiler/ir/ir.h"

namespace kiln::interp {

using Clock = std::vector<uint32_t>;  // by agent

/// What an agent comes after.
struct Knowledge {
  Clock seen;    // accesses, by whichever threads of an agent's warp
  Clock fenced;  // of these, the threads' writes to shared memory that a fence_async has handed to the async proxy
  Clock synced;  // accesses of all lanes of its own warp: a barrier or an arrival was between

  explicit Knowledge(size_t agents = 0) : seen(agents), fenced(agents), synced(agents) {}
  /// What another agent has released: lanes of one's own warp are not synchronised by that.
  void join(const Knowledge& other) {
    auto take = [](Clock& into, const Clock& from) {
      for (size_t i = 0; i < into.size(); ++i) into[i] = std::max(into[i], from[i]);
    };
    take(seen, other.seen);
    take(fenced, other.fenced);
  }
};

/// The lane of an access that all lanes make as one, and of one that any lane may make for another (ldmatrix).
inline constexpr int kWholeWarp = -1, kSomeLane = -2;

/// An access that was made.
struct Stamp {
  const ir::Op* op = nullptr;
  uint32_t agent = 0, epoch = 0;
  int lane = kWholeWarp;
  bool operator==(const Stamp&) const = default;
};

enum class Engine : uint8_t {
  kThreads,   // the warp itself
  kCopies,    // its async_copy; the epoch is the group
  kProducts,  // its wgmma, in order
  kStores,    // its tma_store, in order
};
inline constexpr uint32_t kNumEngines = 4;

/// Numbers the agents of a program of so many blocks: of each warp its engines, then the loads of each mbarrier.
struct Agents {
  int barriers = 0;      // mbarriers of a block
  int own_warps = 0;     // of a block
  int lone_threads = 0;  // of a block, of the further regions of warp_specialize: each counts as a warp
  int blocks = 1;

  int warps_per_block() const { return own_warps + lone_threads; }
  int warps() const { return blocks * warps_per_block(); }
  int warp_of(size_t block, int number) const { return static_cast<int>(block) * warps_per_block() + number; }
  size_t count() const { return static_cast<size_t>(warps()) * kNumEngines + static_cast<size_t>(blocks * barriers); }
  uint32_t of(int warp, Engine engine) const {
    return static_cast<uint32_t>(warp) * kNumEngines + static_cast<uint32_t>(engine);
  }
  uint32_t loads_of(size_t block, int barrier) const {
    return static_cast<uint32_t>(warps()) * kNumEngines +
           static_cast<uint32_t>(block) * static_cast<uint32_t>(barriers) + static_cast<uint32_t>(barrier);
  }
  /// The warp that an agent is a part of; -1 for loads.
  int home(uint32_t agent) const {
    const uint32_t warp = agent / kNumEngines;
    return warp < static_cast<uint32_t>(warps()) ? static_cast<int>(warp) : -1;
  }
  /// Whether the agent's accesses to shared memory need no fence_async to be seen by the async proxy.
  bool in_async_proxy(uint32_t agent) const {
    if (home(agent) < 0) return true;
    const auto engine = static_cast<Engine>(agent % kNumEngines);
    return engine == Engine::kProducts || engine == Engine::kStores;
  }
  std::string name_warp(int warp) const;
  /// "warp 2 lane 5", "the wgmma of warp 2", …
  std::string name(uint32_t agent, int lane) const;
};

/// One op of one agent as it touches memory.
struct Accessor {
  const ir::Op* op = nullptr;
  uint32_t agent = 0, epoch = 0;
  int warp = 0;  // that runs or started the op
  const Knowledge* knows = nullptr;
  const Agents* agents = nullptr;

  Stamp stamp(int lane) const { return {op, agent, epoch, lane}; }
  /// Whether the access that was made comes before what `lane` of this op does.
  bool follows(const Stamp& made, int lane) const;
  /// Whether this op, in the async proxy, may see what was written.
  bool sees_in_async_proxy(const Stamp& made) const {
    return agents->in_async_proxy(made.agent) || knows->fenced[made.agent] > made.epoch;
  }
};

}  // namespace kiln::interp
