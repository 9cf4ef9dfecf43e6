// How handles of shared memory are laid out in a program's bytes; allocate_shared places them, lowerings and the
// interpreter address them.
#pragma once
#include <cstdint>

#include "compiler/ir/type.h"

namespace kiln::analysis {

/// Swizzle patterns repeat every 1024 bytes and count from an address that is a multiple of it.
inline constexpr int64_t kSharedTileAlignment = 1024;
inline constexpr int64_t kBarrierBytes = 8;

/// Bytes from one copy of a shared tile or barrier to the next.
inline int64_t shared_stride(const ir::Type& type) {
  if (type.form == ir::Form::kBarrier) return kBarrierBytes;
  const int64_t bytes = type.shape.numel() * size_of(type.dtype);
  return (bytes + kSharedTileAlignment - 1) / kSharedTileAlignment * kSharedTileAlignment;
}
inline int64_t shared_bytes(const ir::Type& type) { return shared_stride(type) * type.copies; }
inline int64_t shared_alignment(const ir::Type& type) {
  return type.form == ir::Form::kBarrier ? kBarrierBytes : kSharedTileAlignment;
}

}  // namespace kiln::analysis
