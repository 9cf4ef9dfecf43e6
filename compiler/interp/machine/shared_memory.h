// One program's shared memory; each byte records its last accesses, and unordered ones are a race.
//
// Bytes with one history share a State, so that an access to a whole tile decides a few times and not for each byte.
#pragma once
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "compiler/interp/machine/happens_before.h"

namespace kiln::interp {

class SharedMemory {
 public:
  explicit SharedMemory(int64_t bytes) : values_(static_cast<size_t>(bytes)), history_(static_cast<size_t>(bytes)) {}

  /// The accesses that one op makes at one moment. Each gives "" or what is wrong: outside of the program's shared
  /// memory, a race, bytes of an mbarrier; in the async proxy also what no fence_async has handed over.
  class Access {
   public:
    Access(SharedMemory& memory, const Accessor& who);
    const Accessor& who() const { return who_; }
    std::string write(int lane, int64_t at, int bytes, uint64_t bits);
    /// Also wrong: bytes that nothing wrote; with `own` those that another op wrote last.
    std::string read(int lane, int64_t at, int bytes, uint64_t& bits, bool own = false);
    /// An mbarrier lies here from now on.
    std::string take_for_barrier(int lane, int64_t at, int bytes);

   private:
    enum class Kind : uint8_t { kRead, kReadOwn, kWrite };
    std::string outside(int lane, int64_t at, int bytes, std::string_view verb) const;
    std::string touch(Kind kind, int lane, int64_t at, uint32_t& history);
    std::string decide(Kind kind, int lane, int64_t at, uint32_t before, uint32_t& after);
    std::string race(int lane, std::string_view verb, const Stamp& other, std::string_view other_verb,
                     int64_t at) const;

    SharedMemory& memory_;
    const Accessor who_;
    uint64_t last_key_ = ~uint64_t{0};
    uint32_t last_after_ = 0;
    std::unordered_map<uint64_t, uint32_t> known_;  // (history before, kind, lane) → history after
  };

 private:
  struct State {
    Stamp written;               // op == nullptr: nothing wrote it
    std::vector<Stamp> readers;  // since then, those that no later reader follows; one at most of each agent
    bool barrier = false;
  };

  uint32_t add(State state) {
    states_.push_back(std::move(state));
    return static_cast<uint32_t>(states_.size() - 1);
  }
  /// Drops the states that no byte has any more.
  void compact();

  std::vector<uint8_t> values_;
  std::vector<uint32_t> history_;  // of each byte, a number in states_
  std::vector<State> states_{State{}};
  size_t compact_at_ = 1 << 16;
};

}  // namespace kiln::interp
