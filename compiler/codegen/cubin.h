// PTX → machine code: by the device's own assembler, else nvJitLink (in process) or ptxas, whichever is found.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/target/target.h"
#include "kiln/result.h"
#include "support/assembler.h"
#include "support/roomy_code.h"

namespace kiln::codegen {

struct Cubin {
  std::string image;         // empty: no assembler was found, the driver compiles the PTX when it loads it
  std::string assembler;     // "nvJitLink 13.0", "ptxas V13.0.88", "driver 580.159.04", or empty
  int registers = -1;        // per thread; -1 unknown
  int64_t spill_bytes = -1;  // bytes of spill stores and loads of one thread; -1 unknown
  int64_t stack_bytes = -1;  // local memory of one thread; -1 unknown
  /// Remarks of the assembler that matter; C7510 to C7519 report that it serialises wgmma, which costs a kernel
  /// most of its speed.
  std::vector<std::string> messages;
  std::optional<RoomyCode> roomy;  // of link_for_occupancy, where `image` has fewer registers for more blocks of an SM
};

/// What the assembler's settings follow from, of a module with one kernel.
struct KernelFacts {
  int threads = 0;                // of a block
  int64_t shared_bytes = 0;       // of a block
  bool shares_registers = false;  // it has setmaxnreg
  bool limits_registers = false;  // it has .minnctapersm or .maxnreg already
  bool products = false;          // on tensor cores
  bool elementwise = false;       // no loops, and each thread computes for itself
  bool waits = false;             // for what other programs tell: a loop reads the same places until they change
};

/// Assembles one PTX module for `target`: by ptxas where it is found and the module shares out registers (setmaxnreg),
/// else by `device` where one is given that reads the target's PTX, else by nvJitLink or ptxas. kInternal: the
/// assembler rejects it (its log is in the message).
Result<Cubin> link_cubin(std::string_view ptx, const target::Target& target, const Assembler* device = nullptr,
                         bool shares_registers = false);

/// As link_cubin. A kernel that spills although a thread may have twice the registers that it got is assembled with all
/// of them (.maxnreg); so is, at once, one that holds far more values than a thread has registers. When a kernel's
/// registers keep an SM under half of its threads, and under the blocks that the shared memory of each allows, the
/// assembler is asked for fewer of them (.minnctapersm), and for not so few when that spills; what spills is not kept:
/// it likes instruction-level parallelism better than the threads that hide memory latency, for linking above all. A
/// kernel without loops or reductions that got half as many registers again as its values need is asked for no more
/// than they need, and for half of an SM's threads, the fewer registers first. One that waits for other programs is
/// asked for all the blocks that its shared memory allows: more of them wait at once. One whose block has an SM for
/// itself with all the threads that a block may have is asked for half of the registers, so that another block runs
/// while it waits at a barrier. `ptx` is changed to what was linked. What was linked without such a request is
/// Cubin::roomy.
Result<Cubin> link_for_occupancy(std::string& ptx, const target::Target& target, const KernelFacts& facts,
                                 const Assembler* device = nullptr);

/// What link_cubin asks for most modules, with its version: part of cache keys. Empty when there is nothing to ask.
std::string assembler_name(const target::Target& target, const Assembler* device = nullptr);
/// The same without a device: nvJitLink or ptxas.
std::string toolkit_assembler_name();

/// Registers per thread of the largest kernel in a cubin, read from its ELF sections; -1 when it is not a cubin.
int registers_of_cubin(std::string_view image);

}  // namespace kiln::codegen
