// The machine that run_distributed plays, one program at a time: its state, and what its parts offer one another.
//
// distributed.cc takes turns and walks the warps through their code; machine_registers.cc has the ops that need no
// other warp, machine_memory.cc global memory, machine_combine.cc reductions, scans and what goes through scratch.
#pragma once
#include <fmt/format.h>

#include <map>
#include <random>
#include <string>
#include <unordered_map>
#include <vector>

#include "compiler/analysis/axis_info.h"
#include "compiler/interp/distributed.h"
#include "compiler/interp/shared_memory.h"
#include "compiler/interp/warp_code.h"
#include "compiler/layout/algebra.h"
#include "support/diag.h"

namespace kiln::interp {

inline constexpr size_t kLanes = 32;

/// A warp's share of a tile: element reg * 32 + lane. A scalar is one element: the same in every thread.
using Elements = std::vector<uint64_t>;
using Tuple = std::vector<Elements>;

inline size_t share_of(const ir::Type& t) {
  return t.is_scalar() ? 1 : static_cast<size_t>(t.layout->num_registers()) * kLanes;
}

inline int bytes_of(const ir::Type& t) { return t.pointer ? 8 : size_of(t.dtype); }

struct Warp {
  int number = 0;
  size_t at = 0;  // the next step
  bool waits = false, ended = false;
  int64_t steps = 0;
  std::unordered_map<const ir::Value*, Elements> values;
  std::unordered_map<const ir::Op*, __int128> induction;
  std::unordered_map<const ir::Op*, int64_t> stores;  // how often this warp came by each store
  Tuple partial;                                      // of the reduce or scan that is under way

  Elements& of(const ir::Value* v) { return values[v]; }
};

class Machine {
 public:
  Machine(const ir::Module& module, std::array<int32_t, 3> grid, const Memory& memory,
          const DistributedOptions& options);

  Status run_program(std::array<int32_t, 3> id, std::span<const uint64_t> args);

 private:
  template <class... Args>
  Diagnostic fail(const ir::Op* op, ErrorKind kind, fmt::format_string<Args...> f, Args&&... args) const {
    Diagnostic d =
        error_at(op ? op->range : SourceRange{}, kind, "{} in program ({}, {}, {}), seed {}",
                 fmt::format(f, std::forward<Args>(args)...), program_[0], program_[1], program_[2], options_.seed);
    return op && kind == ErrorKind::kInternal ? with_note(std::move(d), "in: " + ir::print(*op)) : d;
  }

  // --- distributed.cc

  Status schedule();
  /// Every warp that has not ended waits: at one barrier all of them, or never again.
  Status release();
  Status step(Warp& warp);
  __int128 bound(Warp& warp, const ir::Op& op, int i);
  void pass(Warp& warp, const ir::Op& from, size_t first, std::span<ir::Value* const> to);

  // --- machine_registers.cc

  Status execute(Warp& warp, const ir::Op& op);
  Status dot(Warp& warp, const ir::Op& op);
  void fill(Warp& warp, const ir::Op& op, uint64_t bits);
  /// Number of the tile's element that a warp's element i is.
  static int64_t element(const Warp& warp, const ir::Type& type, size_t i);
  /// Of several threads and registers that hold an element, one acts; of a scalar, the first thread.
  static bool acts(const Warp& warp, const ir::Type& type, const layout::FreeBits& free, size_t i);
  static layout::FreeBits free_bits(const ir::Type& type);
  void elementwise(Warp& warp, const ir::Op& op, size_t n);
  void take_registers(Warp& warp, const ir::Op& op);
  void convert_own(Warp& warp, const ir::Op& op);
  Status print_values(Warp& warp, const ir::Op& op);
  Status check_assert(Warp& warp, const ir::Op& op);

  // --- machine_memory.cc

  /// What a lowering makes of axis info: registers that one access moves have neighbouring, aligned addresses and one
  /// mask.
  Status check_vectors(Warp& warp, const ir::Op& op);
  Status load(Warp& warp, const ir::Op& op);
  Status store(Warp& warp, const ir::Op& op);
  Status check_stores() const;
  Status atomic(Warp& warp, const ir::Op& op);

  // --- machine_combine.cc

  const layout::ReducePlan& reduce_plan(const ir::Op& op) const;
  const layout::ScanPlan& scan_plan(const ir::Op& op) const;
  /// As in the tile interpreter: the region's scalars hold n elements each; both branches of an `if` are pure.
  void combine_block(Warp& warp, const ir::Block& b, size_t n);
  Tuple combine(Warp& warp, const ir::Op& op, const Tuple& a, const Tuple& b);
  static Tuple from_lane(const Tuple& t, uint32_t mask);
  void reduce_own(Warp& warp, const ir::Op& op);
  /// A scalar result is in every lane; the first speaks for the warp.
  void give_partial(Warp& warp, const ir::Op& op);
  void scan_own(Warp& warp, const ir::Op& op, const layout::ScanStep& s);
  void take_scanned(Warp& warp, const ir::Op& op, const layout::ScanStep& s, const Tuple& source);
  std::vector<int64_t> shares(const ir::Op& op, int64_t elements) const;
  Status put(Warp& warp, const ir::Op& op, size_t lane, int64_t at, int bytes, uint64_t bits);
  Status get(Warp& warp, const ir::Op& op, size_t lane, int64_t at, int bytes, uint64_t& bits);
  Status write_shared(Warp& warp, const ir::Op& op, int part);
  Status read_shared(Warp& warp, const ir::Op& op, int part);
  Status read_converted(Warp& warp, const ir::Op& op);
  Status read_reduced(Warp& warp, const ir::Op& op);

  const ir::Module& module_;
  WarpCode code_;
  analysis::AxisAnalysis axis_;
  const Memory& memory_;
  const DistributedOptions& options_;
  std::array<int32_t, 3> grid_, program_{};
  std::mt19937_64 random_;
  size_t dropped_ = ~size_t{0};
  SharedMemory shared_{0};
  std::vector<Warp> warps_;
  std::unordered_map<const ir::Op*, Elements> atomics_;                    // per element, what the last round got
  std::map<std::pair<const ir::Op*, int64_t>, std::vector<bool>> stored_;  // which elements each store has done
};

}  // namespace kiln::interp
