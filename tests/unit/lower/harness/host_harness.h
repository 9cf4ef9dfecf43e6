// Runs one tile IR kernel on the interpreter and on the host JIT with the same random arguments, and compares all
// memory.
#pragma once
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "compiler/compile.h"
#include "compiler/ir/ir.h"

namespace kiln::test {

/// How close floats must be: |host - oracle| ≤ absolute + relative·|oracle|, and both NaN or neither. 0, 0: equal bits
/// (any NaN equals any NaN).
struct Tolerance {
  double relative = 0, absolute = 0;
};

struct HostCase {
  std::array<int32_t, 3> grid{1, 1, 1};
  std::map<std::string, int64_t> scalars;  // integer parameters by name; others are random small numbers
  std::map<std::string, double> floats;    // float parameters by name; others are random
  /// Pointer parameters by name that share the buffer of another, some elements further: {"y", {"x", 3}}.
  std::map<std::string, std::pair<std::string, int64_t>> aliases;
  int64_t elements = 5000;  // of each buffer
  Tolerance tolerance;
  bool in_order_chunks = false;  // runs the grid in two calls of the entry
};

/// Fails the current test with the place of the first difference. `seed` 0 takes a fresh one, which is printed on
/// failure.
void expect_same(const std::string& ir_text, const HostCase& c = {}, uint64_t seed = 0);
/// The same for a module; `what` is printed on failure.
void expect_same(const ir::Module& module, const HostCase& c, uint64_t seed, const std::string& what);

/// lower_host → emit_object → load_host_object, with the LLVM IR verified in between.
struct HostKernel {
  std::shared_ptr<HostCode> code;
  std::vector<std::byte> scratch;
  std::string llvm;
  void run(const std::vector<uint64_t>& args, std::array<int32_t, 3> grid);
  void run(const std::vector<uint64_t>& args, std::array<int32_t, 3> grid, int64_t first, int64_t last);
};
Result<HostKernel> compile_host(const ir::Module& module, bool want_llvm = false);

}  // namespace kiln::test
