// A participant of a comparison: a launch with the facts known about it. Callers make these
// (the variants of an expression, statements of a script); profiler/compare/compare.h measures them.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "kiln/device.h"
#include "kiln/dtype.h"
#include "kiln/kernel.h"
#include "kiln/result.h"
#include "kiln/tensor.h"

namespace kiln::profiler {

/// What is known without a clock. What is unknown is empty, or negative.
struct Facts {
  std::vector<std::string> kernels;  // names in the order of their launches, library calls included
  double bytes = -1;                 // read plus written by one launch, by the model
  double flop = -1;                  // by the model
  std::optional<DType> product;      // operands of its matrix products: selects the peak that `flop` is compared with
  int registers = -1;                // the most of any of its kernels
  int64_t spill_bytes = -1;          // the sum over its kernels
  double occupancy = -1;             // theoretical, 0 to 1, the least of any of its kernels
  std::string limiter;               // of that kernel
  std::function<Status()> graph;     // launches the same work as one CUDA graph; empty: there is none
  std::string note;                  // printed under the table with the name ("gelu_tanh, not erf")
};

/// Counts one more kernel in: its name, its registers and spills, its occupancy when that is the least.
void add_kernel(Facts& facts, const KernelInfo& info);

struct Contender {
  std::string name;
  Device device;
  /// Puts its work once on the device's default stream; neither waits nor allocates. Compiled when it arrives here.
  std::function<Status()> launch;
  /// What the last launch computed; empty when there is nothing to check.
  std::function<Result<Tensor>()> output;
  /// Overwrites the memory that `output` shows, so that a launch which writes nothing is found out; may be empty.
  std::function<Status()> poison;
  /// It ran once when it was made and took that long; `output` is that run's. 0: not known, or no longer.
  double ran_s = 0;
  Facts facts;
  /// Why it cannot take part: it keeps its row with this reason, and the others are measured without it.
  Status problem;
};

}  // namespace kiln::profiler
