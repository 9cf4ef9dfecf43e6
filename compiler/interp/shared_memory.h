// One program's shared memory, byte by byte with who touched it last: what no barrier orders is a race.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "compiler/ir/ir.h"

namespace kiln::interp {

/// A thread of the program and the op that it runs.
struct Accessor {
  const ir::Op* op = nullptr;
  int warp = 0, lane = 0;
};

class SharedMemory {
 public:
  explicit SharedMemory(int64_t bytes) : cells_(static_cast<size_t>(bytes)) {}

  /// All threads passed a barrier: what came before is ordered with what follows.
  void barrier() { ++epoch_; }

  /// "" or what is wrong: outside of the module's shared memory, or a race with an access since the last barrier.
  std::string write(const Accessor& who, int64_t at, int bytes, uint64_t bits);
  /// As write; also wrong: bytes that no op, or another op, wrote last.
  std::string read(const Accessor& who, int64_t at, int bytes, uint64_t& bits);

 private:
  struct Touch {
    Accessor who;
    int64_t epoch = -1;
  };
  struct Cell {
    uint8_t value = 0;
    Touch written, read, read_by_other;  // two readers: so that one's own read does not hide another's
  };

  std::string outside(const Accessor& who, int64_t at, int bytes, std::string_view verb) const;
  std::string race(const Accessor& who, std::string_view verb, const Touch& other, std::string_view other_verb,
                   int64_t at) const;
  bool conflicts(const Accessor& who, const Touch& other) const;

  std::vector<Cell> cells_;
  int64_t epoch_ = 0;
};

}  // namespace kiln::interp
