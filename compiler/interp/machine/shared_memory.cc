#include "compiler/interp/machine/shared_memory.h"

#include <fmt/format.h>

#include <algorithm>

namespace kiln::interp {

SharedMemory::Access::Access(SharedMemory& memory, const Accessor& who) : memory_(memory), who_(who) {
  if (memory.states_.size() > memory.compact_at_) memory.compact();
}

// Bytes share their access histories: history_ holds the number of a state, and bytes with equal histories have the
// same number. States that no byte refers to any more are dropped here, with growing intervals so that the cost stays
// linear in the number of accesses.
void SharedMemory::compact() {
  std::vector<State> kept{State{}};
  std::vector<uint32_t> number(states_.size(), 0);
  for (uint32_t& h : history_) {
    if (h != 0 && number[h] == 0) {
      number[h] = static_cast<uint32_t>(kept.size());
      kept.push_back(std::move(states_[h]));
    }
    h = number[h];
  }
  states_ = std::move(kept);
  compact_at_ = std::max<size_t>(1 << 16, 2 * states_.size());
}

std::string SharedMemory::Access::outside(int lane, int64_t at, int bytes, std::string_view verb) const {
  const auto size = static_cast<int64_t>(memory_.values_.size());
  if (at >= 0 && at + bytes <= size) return "";
  return fmt::format("{} {} shared memory at byte {} of {}", who_.agents->name(who_.agent, lane), verb, at, size);
}

std::string SharedMemory::Access::race(int lane, std::string_view verb, const Stamp& other, std::string_view other_verb,
                                       int64_t at) const {
  return fmt::format("race at byte {} of shared memory: {} {} it, and nothing orders that with {}, which {} it in: {}",
                     at, who_.agents->name(who_.agent, lane), verb, who_.agents->name(other.agent, other.lane),
                     other_verb, ir::print(*other.op));
}

std::string SharedMemory::Access::decide(Kind kind, int lane, int64_t at, uint32_t before, uint32_t& after) {
  // The rules of a data race: a read must follow the last write, a write must follow the last write and every read
  // since. `follows` is the happens-before order of the vector clocks.
  const State& state = memory_.states_[before];
  const bool writes = kind == Kind::kWrite, wrote = state.written.op != nullptr;
  const std::string_view verb = writes ? "writes" : "reads";
  auto name = [&] { return who_.agents->name(who_.agent, lane); };
  if (state.barrier) return fmt::format("{} {} byte {} of shared memory, where an mbarrier is", name(), verb, at);
  if (wrote && !who_.follows(state.written, lane)) return race(lane, verb, state.written, "wrote", at);
  if (wrote && who_.agents->in_async_proxy(who_.agent) && !who_.sees_in_async_proxy(state.written))
    return fmt::format(
        "{} {} byte {} of shared memory in the async proxy, and {}, which wrote it, ran no fence_async after: {}",
        name(), verb, at, who_.agents->name(state.written.agent, state.written.lane), ir::print(*state.written.op));
  State next;
  if (writes) {
    for (const Stamp& reader : state.readers)
      if (!who_.follows(reader, lane)) return race(lane, verb, reader, "read", at);
    next.written = who_.stamp(lane);
  } else {
    if (!wrote) return fmt::format("{} reads byte {} of shared memory, which nothing wrote", name(), at);
    if (kind == Kind::kReadOwn && state.written.op != who_.op)
      return fmt::format("{} reads byte {} of shared memory, which another op wrote: {}", name(), at,
                         ir::print(*state.written.op));
    next.written = state.written;
    Stamp own = who_.stamp(lane);
    for (const Stamp& reader : state.readers) {
      // Of one agent only the latest read is kept. Readers that this one follows are dropped: a later write that
      // follows this read follows those too.
      if (reader.agent == own.agent) {
        own.epoch = std::max(own.epoch, reader.epoch);
        if (own.lane != reader.lane) own.lane = kSomeLane;
      } else if (!who_.follows(reader, lane)) {
        next.readers.push_back(reader);
      }
    }
    next.readers.push_back(own);
    if (next.readers == state.readers) {
      after = before;
      return "";
    }
  }
  after = memory_.add(std::move(next));
  return "";
}

std::string SharedMemory::Access::touch(Kind kind, int lane, int64_t at, uint32_t& history) {
  // A transition depends on the old state, the kind of access and the lane only. Most accesses of a warp repeat the
  // previous one on neighbouring bytes, so the last transition is checked before the table.
  const uint64_t key =
      uint64_t{history} << 8 | static_cast<uint64_t>(kind) << 6 | static_cast<uint64_t>(lane - kSomeLane);
  if (key != last_key_) {
    auto known = known_.find(key);
    if (known == known_.end()) {
      uint32_t after = 0;
      if (std::string wrong = decide(kind, lane, at, history, after); !wrong.empty()) return wrong;
      known = known_.emplace(key, after).first;
    }
    last_key_ = key;
    last_after_ = known->second;
  }
  history = last_after_;
  return "";
}

std::string SharedMemory::Access::write(int lane, int64_t at, int bytes, uint64_t bits) {
  if (std::string wrong = outside(lane, at, bytes, "writes"); !wrong.empty()) return wrong;
  for (auto b = static_cast<size_t>(at); b < static_cast<size_t>(at + bytes); ++b, bits >>= 8) {
    if (std::string wrong = touch(Kind::kWrite, lane, static_cast<int64_t>(b), memory_.history_[b]); !wrong.empty())
      return wrong;
    memory_.values_[b] = static_cast<uint8_t>(bits);
  }
  return "";
}

std::string SharedMemory::Access::read(int lane, int64_t at, int bytes, uint64_t& bits, bool own) {
  if (std::string wrong = outside(lane, at, bytes, "reads"); !wrong.empty()) return wrong;
  bits = 0;
  const Kind kind = own ? Kind::kReadOwn : Kind::kRead;
  for (auto b = static_cast<size_t>(at); b < static_cast<size_t>(at + bytes); ++b) {
    if (std::string wrong = touch(kind, lane, static_cast<int64_t>(b), memory_.history_[b]); !wrong.empty())
      return wrong;
    bits |= static_cast<uint64_t>(memory_.values_[b]) << (8 * (b - static_cast<size_t>(at)));
  }
  return "";
}

// The bytes of an mbarrier are marked, so that ordinary accesses to them are reported.
std::string SharedMemory::Access::take_for_barrier(int lane, int64_t at, int bytes) {
  if (std::string wrong = write(lane, at, bytes, 0); !wrong.empty()) return wrong;
  State state;
  state.written = who_.stamp(lane);
  state.barrier = true;
  const uint32_t taken = memory_.add(std::move(state));
  for (int64_t b = at; b < at + bytes; ++b) memory_.history_[static_cast<size_t>(b)] = taken;
  return "";
}

}  // namespace kiln::interp
