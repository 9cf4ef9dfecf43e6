// The machine that run_distributed simulates, one program at a time: its state and the interfaces of its parts.
//
// distributed.cc takes turns and walks the warps through their code; machine_registers.cc has the ops that need no
// other warp, machine_memory.cc global memory, machine_combine.cc reductions, scans and what goes through scratch;
// machine_shared.cc has handles of shared memory, mbarriers and async_copy, machine_bulk.cc tma_load and tma_store,
// machine_tensor.cc wgmma. happens_before.h says what orders all that.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "compiler/analysis/axis_info.h"
#include "compiler/interp/machine/distributed.h"
#include "compiler/interp/machine/mbarrier.h"
#include "compiler/interp/machine/shared_memory.h"
#include "compiler/interp/machine/warp_code.h"
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

/// What a wgmma makes, in one warp. The registers are its until the wgmma_wait that takes them.
struct Product {
  const ir::Op* op = nullptr;
  uint32_t number = 0;     // among the warp's wgmma
  bool continued = false;  // another wgmma adds to it
  Elements out;
};

/// A tile in registers that a wgmma reads until it is waited for.
struct Held {
  const ir::Op* op = nullptr;
  uint32_t number = 0;
};

/// What an asynchronous engine still has to do, at some moment before somebody waits for it.
struct Transfer {
  uint32_t agent = 0, epoch = 0;
  bool in_order = false;  // after the agent's earlier ones
  std::function<Status()> perform;
};

struct Warp {
  int number = 0;    // in its block; from num_warps on: the one thread of a further region
  size_t block = 0;  // of its program
  int id = 0;        // among all warps of the program
  size_t at = 0;     // the next step
  bool waits = false, ended = false;
  const Mbarrier* awaits = nullptr;  // for this parity
  int64_t parity = 0;
  int64_t steps = 0;
  std::unordered_map<const ir::Value*, Elements> values;
  std::unordered_map<const ir::Op*, __int128> induction;
  std::unordered_map<const ir::Op*, int64_t> stores;  // how often this warp came by each store
  Tuple partial;                                      // of the reduce or scan that is under way
  Tuple prefix;                                       // of the scan: what comes before a thread's elements in a row

  Knowledge knows;
  uint32_t groups = 0, products = 0, bulk_stores = 0;  // async_copy groups ended, wgmma and tma_store started
  std::unordered_map<const ir::Value*, std::shared_ptr<Product>> in_flight;
  std::unordered_map<const ir::Value*, Held> held;

  Elements& of(const ir::Value* v) { return values[v]; }
};

/// A value as it moves from one name to another.
struct Moved {
  Elements elements;
  std::shared_ptr<Product> in_flight;
  Held held;
};

class Machine {
 public:
  Machine(const ir::Module& module, std::array<int32_t, 3> grid, const Memory& memory,
          const DistributedOptions& options);

  Status run_program(std::array<int32_t, 3> id, std::span<const uint64_t> args);

 private:
  template <class... Args>
  Diagnostic fail(const ir::Op* op, ErrorKind kind, fmt::format_string<Args...> f, Args&&... args) const {
    return in_program(op, error_at(op ? op->range : SourceRange{}, kind, f, std::forward<Args>(args)...));
  }

  // --- distributed.cc

  /// Adds what it takes to run into the error again: the program and the seed; the op, where the error is ours.
  Diagnostic in_program(const ir::Op* op, Diagnostic d) const;
  Status schedule();
  bool can_step(const Warp& w) const;
  /// Lets those warps on that all wait at the barrier that they share; false where there are none.
  bool release();
  bool release_block(size_t block);
  bool release_cluster();
  void pass_barrier(std::span<Warp* const> warps);
  /// Nobody can go on.
  Status deadlock() const;
  Status step(Warp& warp);
  /// Checks what must hold when the last warp of a block has ended.
  Status end_block(size_t block);
  /// The one thread that runs a further region of warp_specialize begins; it has the scalars and handles of `from`.
  void start_role(Warp& from, const WarpStep& step);
  /// Lanes of the warp are synchronised: a new epoch separates its later accesses from its earlier ones.
  void sync_lanes(Warp& warp);
  void advance(Warp& warp) { ++warp.knows.seen[agents_.of(warp.id, Engine::kThreads)]; }
  Status check_end();
  __int128 bound(Warp& warp, const ir::Op& op, int i);
  void pass(Warp& warp, const ir::Op& from, size_t first, std::span<ir::Value* const> to);

  // --- machine_registers.cc

  Status execute(Warp& warp, const ir::Op& op);
  Status dot(Warp& warp, const ir::Op& op);
  void fill(Warp& warp, const ir::Op& op, uint64_t bits);
  /// Number of the tile's element that a warp's element i is.
  static int64_t element(const Warp& warp, const ir::Type& type, size_t i);
  /// Of several threads and registers that hold an element, one acts; of a scalar, the first thread.
  bool acts(const Warp& warp, const ir::Type& type, const layout::FreeBits& free, size_t i) const;
  static layout::FreeBits free_bits(const ir::Type& type);
  void elementwise(Warp& warp, const ir::Op& op, size_t n);
  void take_registers(Warp& warp, const ir::Op& op);
  void convert_own(Warp& warp, const ir::Op& op);
  Status print_values(Warp& warp, const ir::Op& op);
  Status check_assert(Warp& warp, const ir::Op& op);
  /// Single-threaded ops run in the first warp of a region.
  bool leads(const Warp& warp) const { return warp.number == 0 || is_alone(warp); }
  /// The one thread of a further region.
  bool is_alone(const Warp& warp) const { return warp.number >= module_.num_warps; }
  /// Those that groups of warps do for themselves: in the first warp of each.
  bool leads(const Warp& warp, const ir::Op& op) const {
    return is_alone(warp) || warp.number % ir::joined_warps(op, module_.num_warps) == 0;
  }

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
  Tuple half(Warp& warp, const ir::Op& op, const Tuple& parts, const layout::ReducePlan::Halving& step);
  static Tuple from_lane(const Tuple& t, uint32_t mask);
  void reduce_own(Warp& warp, const ir::Op& op);
  /// A scalar result is in every lane; the first speaks for the warp.
  void give_partial(Warp& warp, const ir::Op& op);
  void scan_own(Warp& warp, const ir::Op& op, const layout::ScanStep& s);
  void take_prefix(Warp& warp, const ir::Op& op, const layout::ScanStep& s);
  void join_prefix(Warp& warp, const ir::Op& op, const layout::ScanStep& s, const Tuple& source);
  void take_scanned(Warp& warp, const ir::Op& op, const layout::ScanStep& s, const Tuple& source);
  std::vector<int64_t> shares(const ir::Op& op, int64_t elements) const;
  Status put(SharedMemory::Access& access, size_t lane, int64_t at, int bytes, uint64_t bits);
  Status get(SharedMemory::Access& access, size_t lane, int64_t at, int bytes, uint64_t& bits);
  Status write_shared(Warp& warp, const ir::Op& op, int part);
  Status read_shared(Warp& warp, const ir::Op& op, int part);
  Status read_converted(Warp& warp, const ir::Op& op);
  Status write_whole(Warp& warp, const ir::Op& op);  // of a gather op: operand 0, in row-major order
  Status read_gathered(Warp& warp, const ir::Op& op);
  Status write_scattered(Warp& warp, const ir::Op& op);
  Status read_whole(Warp& warp, const ir::Op& op);  // of a scatter: the result, in row-major order
  Status write_counts(Warp& warp, const ir::Op& op);
  Status read_places(Warp& warp, const ir::Op& op);
  Status read_reduced(Warp& warp, const ir::Op& op);

  // --- machine_shared.cc

  /// Gives every shared_alloc its place: allocate_shared's, or one behind all that has been placed.
  void place_handles();
  /// The op as its warp's threads run it now.
  Accessor threads(const Warp& warp, const ir::Op& op) const;
  /// The offset in elements of each element of a handle's tile.
  const std::vector<uint32_t>& offsets_of(const ir::Type& handle);
  Status shared_view(Warp& warp, const ir::Op& op);
  Status shared_load(Warp& warp, const ir::Op& op);
  Status shared_store(Warp& warp, const ir::Op& op);
  Status async_copy(Warp& warp, const ir::Op& op);
  Status async_wait(Warp& warp, const ir::Op& op);
  Status mbarrier_init(Warp& warp, const ir::Op& op);
  /// The mbarrier of operand `index` in a block of the program, as `lane` finds it.
  Result<Mbarrier*> mbarrier_of(Warp& warp, const ir::Op& op, int index, int lane, size_t block);
  /// Notes that the warp arrives in another block, which must outlive that.
  Status reach(const Warp& warp, const ir::Op& op, size_t block);
  Status mbarrier_arrive(Warp& warp, const ir::Op& op);
  Status mbarrier_expect(Warp& warp, const ir::Op& op);
  /// Whether the warp may go on.
  Result<bool> mbarrier_wait(Warp& warp, const ir::Op& op);
  void fence_async(Warp& warp);

  // --- machine_bulk.cc

  void make_descriptor(Warp& warp, const ir::Op& op);
  struct Box;
  Result<Box> box_of(Warp& warp, const ir::Op& op, int descriptor, int block, size_t first_offset);
  Status tma_load(Warp& warp, const ir::Op& op);
  Status load_into(Warp& warp, const ir::Op& op, const Box& box, size_t block);
  Status tma_store(Warp& warp, const ir::Op& op);
  Status tma_store_wait(Warp& warp, const ir::Op& op);
  /// No access of the program is ordered with what its tma_store write to global memory.
  Status check_bulk_stored(const ir::Op& op, uint64_t address, int64_t bytes) const;
  /// Does one of the transfers that are on their way.
  Status perform_any();
  /// Does all of an agent's transfers of epochs below `epoch`.
  Status perform_until(uint32_t agent, uint32_t epoch);

  // --- machine_tensor.cc

  Status wgmma(Warp& warp, const ir::Op& op);
  Status multiply(const Warp& warp, const ir::Op& op, const Accessor& who, int64_t a_at, const Elements& a_tile,
                  int64_t b_at, Elements& out);
  Status wgmma_wait(Warp& warp, const ir::Op& op);
  /// No operand is in the hands of a wgmma, and the results are new values.
  Status check_in_flight(Warp& warp, const ir::Op& op);
  /// Values move with what is in flight.
  static Moved take(Warp& warp, const ir::Value* from);
  static void give(Warp& warp, const ir::Value* to, Moved value);

  const ir::Module& module_;
  WarpCode code_;
  analysis::AxisAnalysis axis_;
  const Memory& memory_;
  const DistributedOptions& options_;
  std::array<int32_t, 3> grid_, program_{};
  std::mt19937_64 random_;
  size_t dropped_ = ~size_t{0};
  Agents agents_;
  std::unordered_map<const ir::Op*, int64_t> places_;  // of shared_alloc
  int64_t shared_bytes_ = 0;                           // with what has been placed here
  std::map<int64_t, int> barrier_numbers_;             // by place
  std::unordered_map<const layout::LinearLayout*, std::vector<uint32_t>> offsets_;
  std::vector<SharedMemory> shared_;                    // by block
  std::vector<std::map<int64_t, Mbarrier>> mbarriers_;  // by block and place, once initialised
  std::vector<std::map<uint32_t, Stamp>> reached_;      // by block and agent of another: how it last arrived there
  std::vector<bool> ended_;                             // blocks
  std::vector<Transfer> transfers_;
  std::map<uint64_t, std::pair<uint64_t, const ir::Op*>> bulk_stored_;  // begin → end of what tma_store write
  std::vector<Knowledge> whole_;  // by block: at the last barrier of all its warps
  uint64_t reluctance_ = 1;       // of the asynchronous engines, another one in each program
  std::vector<Warp> warps_;
  std::map<std::pair<const ir::Op*, size_t>, Elements> atomics_;  // by op and block, what the last round got
  /// By op, block and round: which elements each store has done.
  std::map<std::tuple<const ir::Op*, size_t, int64_t>, std::vector<bool>> stored_;
};

}  // namespace kiln::interp
