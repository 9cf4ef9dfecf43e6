// Random valid programs in tile IR with the memory they run on: the fuel of property tests and of every differential
// test.
//
// A program is deterministic and free of races: programs of the grid write disjoint parts of outputs and never read
// them (unless options.reread); integer divisors are never zero; addresses stay inside of their buffers; loops end. So
// every executor must leave the same bytes in the outputs, but for
// - NaNs: any NaN equals any other (floats are bitcast to other types only where they are no NaN), and
// - outputs that hold the result of one approximate op, which say of which.
// The pass fuse_fma changes roundings: compare executors with the interpreter on the module as it is after the tile
// passes.
#pragma once
#include <array>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "compiler/ir/ir.h"

namespace kiln::fuzz {

struct GeneratorOptions {
  int max_statements = 40;    // ops that are chosen; each brings a few more
  int max_numel = 256;        // of a tile
  bool approximate = true;    // math functions, f32 division, sums of floats; each goes to an output of its own
  bool control_flow = true;   // for, while, if
  bool atomics = true;        // integer atomics on outputs; old values are not used
  bool dots = false;          // of small integers in every type, so that all sums are exact
  bool reread = false;        // loads of what the same program stored, and stores over it
  bool barriers = false;      // around those, as a GPU needs them; and elsewhere
  std::vector<DType> dtypes;  // empty: all
};

/// One approximate result: what made it, and from how many terms.
struct Approximation {
  ir::OpKind op;
  int64_t terms = 1;
};

struct Buffer {
  DType dtype;
  std::vector<std::byte> bytes;  // as they are before the run; row-major elements, 16-byte aligned
  bool output = false;
  std::optional<Approximation> approximation;

  int64_t count() const { return static_cast<int64_t>(bytes.size()) / size_of(dtype); }
};

/// A parameter of the kernel is a buffer's address, or a scalar's bits.
struct Param {
  int buffer = -1;  // index into buffers, or
  uint64_t scalar = 0;
};

struct Program {
  uint64_t seed = 0;
  std::unique_ptr<ir::Module> module;
  std::array<int32_t, 3> grid{1, 1, 1};
  std::vector<Buffer> buffers;
  std::vector<Param> params;  // one per parameter, in order
};

/// The same seed and options give the same program.
Program generate(uint64_t seed, const GeneratorOptions& options = {});

/// The argument slots of a run on `buffers` (copies of program.buffers in memory of the executor): addresses and
/// scalars.
std::vector<uint64_t> argument_slots(const Program& program, const std::function<uint64_t(int buffer)>& address);

/// Runs `module` (program.module or what a pass made of it) in the interpreter; gives the buffers after the run.
Result<std::vector<Buffer>> interpret(const Program& program, const ir::Module& module);

/// The copies of program.buffers that a run works on, and its argument slots; `execute` runs the kernel in this
/// process.
Result<std::vector<Buffer>> run_on_host_memory(
    const Program& program,
    const std::function<Status(std::span<const uint64_t> slots, std::vector<Buffer>&)>& execute);

/// How far two approximate results may be apart, in units of the last place of the larger.
using Tolerance = std::function<double(const Approximation&, DType)>;

/// "" when the outputs are equal, or the first difference. Without a tolerance approximate outputs must be equal too.
std::string compare(const std::vector<Buffer>& expected, const std::vector<Buffer>& got,
                    const Tolerance& tolerance = nullptr);

/// For approximate ops that follow docs/math.md on both sides: 8 units, or more for sums in another order, whose bound
/// grows with the number of terms; halves round once more.
double ulp_tolerance(const Approximation& a, DType dtype);

/// Runs `check` on KILN_FUZZ_SEED alone, or on KILN_FUZZ_COUNT (default `count`) random seeds until one fails. A
/// failure, an exception too, is reported with the seed.
void for_each_seed(int count, const std::function<void(uint64_t seed)>& check);

}  // namespace kiln::fuzz
