// What a device can do at most, measured on it: the ceilings of a roofline. Each is measured at its first use and kept
// with the device for the life of the process. kInterrupted: Ctrl-C came first.
#pragma once
#include <string>

#include "kiln/device.h"
#include "kiln/dtype.h"
#include "kiln/result.h"

namespace kiln::profiler {

/// A rate with the name of what reached it.
struct Ceiling {
  double per_us = 0;  // bytes or floating-point operations per microsecond
  std::string what;   // "copy of 1.07 GB", "cublaslt-best bf16 8192x8192x8192"
};

/// Bytes read plus written by the device's copy.
Result<Ceiling> copy_ceiling(const Device& device);
/// Operations (a multiplication and an addition are two) of the vendor's library on large matrices of that type. An
/// error says that there is no library, or that it does not multiply the type.
Result<Ceiling> product_ceiling(const Device& device, DType operand);

/// f32 multiply-adds outside of matrix products, two operations each, by a kernel of ours.
Result<Ceiling> vector_ceiling(const Device& device);
/// Bytes read from the L2 by every multiprocessor, past the L1, from a buffer that lies in it whole. kUnsupported on
/// the CPU, where no cache is shared that way.
Result<Ceiling> l2_ceiling(const Device& device);

/// The share of the time that the ceilings alone would take, 0 to 1 and above when a ceiling was beaten, and which of
/// them it is ("memory", "math"). `math` may be null: bytes alone count.
struct Roofline {
  double share = 0;
  std::string bound;
};
Roofline roofline(double us, double bytes, double flop, const Ceiling& memory, const Ceiling* math);

}  // namespace kiln::profiler
