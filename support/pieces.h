// Long copies outside of launches, which Ctrl-C ends.
#pragma once
#include <algorithm>
#include <cstddef>

#include "kiln/interrupt.h"
#include "kiln/result.h"

namespace kiln {

/// Calls work(first, last), which gives a Status, for pieces of so many bytes: until one fails, or with kInterrupted
/// until Ctrl-C comes.
template <class Work>
Status in_pieces_of(size_t bytes, Work&& work) {
  constexpr size_t kPiece = size_t{32} << 20;  // some 10 ms where the memory is touched for the first time
  for (size_t first = 0; first < bytes; first += kPiece) {
    if (interrupt_requested()) return Diagnostic{ErrorKind::kInterrupted, "interrupted", {}, {}};
    if (Status s = work(first, std::min(first + kPiece, bytes)); !s.ok()) return s;
  }
  return {};
}

}  // namespace kiln
