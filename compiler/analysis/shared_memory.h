// How handles of shared memory are laid out in a program's bytes; allocate_shared places them, lowerings and the
// interpreter address them.
#pragma once
#include <cstdint>

#include "compiler/ir/type.h"

namespace kiln::analysis {

/// Swizzle patterns repeat every 1024 bytes and count from an address that is a multiple of it.
inline constexpr int64_t kSharedTileAlignment = 1024;
/// Of vectors, which have none: a row of banks, which TMA asks for too.
inline constexpr int64_t kSharedVectorAlignment = 128;
inline constexpr int64_t kBarrierBytes = 8;

inline int64_t shared_alignment(const ir::Type& type) {
  if (type.form == ir::Form::kBarrier) return kBarrierBytes;
  return type.shape.rank < 2 ? kSharedVectorAlignment : kSharedTileAlignment;
}
/// Bytes from one copy of a shared tile or barrier to the next.
inline int64_t shared_stride(const ir::Type& type) {
  if (type.form == ir::Form::kBarrier) return kBarrierBytes;
  const int64_t bytes = type.shape.numel() * size_of(type.dtype), alignment = shared_alignment(type);
  return (bytes + alignment - 1) / alignment * alignment;
}
inline int64_t shared_bytes(const ir::Type& type) { return shared_stride(type) * type.copies; }

}  // namespace kiln::analysis
