// Work on a device's memory that the runtime itself needs (random numbers, conversions, strided copies), as C++
// functions with the signature of host kernels, so that the cpu device spreads them over its threads like any kernel.
#pragma once
#include <cstdint>
#include <span>

#include "kiln/device.h"
#include "runtime/device/backend.h"

namespace kiln::runtime {

/// Elements that one program of a native function handles.
inline constexpr int64_t kNativeBlock = 1 << 14;

/// Runs `entry` over ceil(elements / kNativeBlock) programs on a cpu device and waits.
Status run_native(Backend& cpu, HostEntry entry, const char* name, std::span<const uint64_t> slots, int64_t elements);

}  // namespace kiln::runtime
