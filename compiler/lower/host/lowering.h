// The state of one host lowering, and its steps over several files. Private to lower/host.
//
//   host.cc          the entry function, the loop over programs, scalars, scratch buffers
//   block.cc         walks blocks: control flow, scans
//   effects.cc       scalar accesses, atomics, print, assert
//   dot.cc           matrix products
//   group.cc         collects tile ops into fused loops and decides what is stored in scratch
//   loop.cc          emits one fused loop nest, with reductions
//   value.cc         emits one chunk of lanes of a value
//   memory.cc        loads and stores of a chunk
//   alias.cc         run-time conditions: masks all true, accesses that do not alias
#pragma once
#include <llvm/IR/Module.h>

#include <functional>
#include <set>
#include <span>
#include <unordered_map>
#include <unordered_set>

#include "compiler/lower/host/lanes.h"
#include "compiler/lower/shared/line_info.h"
#include "compiler/target/target.h"

namespace kiln::lower::host {

/// Bytes in memory of an element, and of a whole tile.
inline int element_bytes(const ir::Type& type) { return type.pointer ? 8 : size_of(type.dtype); }
inline int64_t bytes_of(const ir::Type& type) { return type.shape.numel() * element_bytes(type); }

/// A piece of a thread's scratch: one tile, row-major, elements as in memory.
struct Buffer {
  int64_t offset = 0;
  int64_t bytes = 0;
};

/// The purpose of a fused loop.
struct Root {
  enum class Kind : uint8_t { kStore, kKeep, kReduce };
  Kind kind;
  const ir::Op* op = nullptr;        // store, reduce
  const ir::Value* value = nullptr;  // keep: written to `buffer`
  Buffer buffer{};
};

/// The tile ops that some roots need, in the order in which they were reached from the roots (users first).
struct Slice {
  std::vector<const ir::Value*> values;
  std::set<std::pair<const ir::Value*, bool>> visited;
  std::vector<const ir::Op*> loads;
  std::vector<const ir::Value*> keep_first;  // costly values that are read at other positions than the loop's own
  bool needs_open_reduce = false;
  int heavy = 0;   // ops that are not recomputed for nothing
  int widest = 1;  // bytes of the widest element computed
};

struct Group {
  ir::Shape shape;
  int axis = -1;  // reductions along another axis than the last; else -1
  std::vector<Root> roots;
  int first_store_epoch = -1;
};

/// Emission of loops that count from 0 with carried values; one trip makes no loop.
struct Loop {
  llvm::Value* iv = nullptr;  // i32: 0, step, …
  llvm::BasicBlock* body = nullptr;
  llvm::PHINode* iv_phi = nullptr;
  llvm::SmallVector<llvm::PHINode*, 4> phis;
  llvm::SmallVector<llvm::Value*, 4> carried;  // at the top of the body; after end_loop: the last values
  int64_t count = 0, step = 0;
};

struct Product;
struct ProductOperand;

class Lowering {
 public:
  Lowering(const ir::Module& source, llvm::LLVMContext& context);
  Status run();
  std::unique_ptr<llvm::Module> module;
  int64_t scratch_bytes() const { return scratch_end_; }

 private:
  using V = llvm::Value*;

  // --- host.cc
  void begin_entry();
  V scalar(const ir::Value* v);
  void set_scalar(const ir::Value* v, V value);
  V param(size_t i);
  V hook(const char* name, llvm::Type* result, std::span<V const> args);
  /// Leaves the entry when the launch is to end (support/stop.h).
  void poll_stop();
  Buffer allocate(int64_t bytes);
  void release(Buffer buffer);
  V address(Buffer buffer);
  Buffer keep_buffer(const ir::Value* v);  // allocates for v in this scope, and v is there from now on
  llvm::Type* element(const ir::Type& type);
  llvm::Type* memory_type(const ir::Type& type);  // of an element in memory: an integer for halves and bools
  V to_memory(V value, const ir::Type& type);
  V from_memory(V value, const ir::Type& type);
  V pointer(V integer) { return b.CreateIntToPtr(integer, b.getPtrTy(0)); }
  V stack(llvm::Type* type, unsigned count);
  llvm::BasicBlock* block(const char* name) { return llvm::BasicBlock::Create(b.getContext(), name, entry_); }
  Loop begin_loop(int64_t count, int64_t step, std::span<V const> carried);
  void end_loop(Loop& loop, std::span<V const> next);
  /// `then` runs when the condition holds; the builder is left behind it.
  void when(V condition, const std::function<void()>& then);
  void push_scope() { scopes_.emplace_back(); }
  void pop_scope();
  /// Gives back the buffers of this scope whose values nothing needs any more.
  void release_unneeded();

  // --- block.cc
  Status run_block(const ir::Block& block);
  Status run_op(const ir::Op& op);
  Status run_for(const ir::Op& op);
  Status run_while(const ir::Op& op);
  Status run_if(const ir::Op& op);
  /// One for each op across elements (ops.def), in the file of its family.
  template <ir::OpKind kKind>
  Status run(const ir::Op& op);
  /// Around an op that reads its operands from scratch, where they are from now on.
  void begin_stored(const ir::Op& op);
  void end_stored(const ir::Op& op);
  /// Makes what nested regions, or later ops, need of pending tiles available before `op` runs.
  void settle_before(const ir::Op& op);
  std::vector<Buffer> keep_carried(const ir::Op& user, std::span<ir::Value* const> values);
  void store_yields(const ir::Op& user, std::span<ir::Value* const> values, std::span<const Buffer> into,
                    std::span<ir::Value* const> carried);

  // --- dot.cc
  /// Where the result goes: the buffer of c when that is this scope's and nothing needs c any more.
  Buffer accumulate_in_place(const ir::Op& op);
  Buffer convert_tile(ProductOperand& tile, DType to);
  void emit_product(const Product& whole);
  void pack_panel(const Product& p, V first_k, V first_column);
  void multiply_block(const Product& p, int64_t rows, V a, V from_b, V c_in, V c_out);
  V element_address(DType dtype, V base, V index);
  V load_number(DType dtype, DType as, V at, unsigned lanes);
  void store_number(DType dtype, V at, V value);

  // --- effects.cc
  Status run_elements(const ir::Op& op);
  void element_effect(const ir::Op& op, Chunk& chunk, size_t index);
  V atomic(const ir::Op& op, V address, std::span<V const> values);
  V float_update(ir::Rmw rmw, DType dtype, V old, V value);
  void print_element(const ir::Op& op, size_t operand, Chunk& chunk, size_t index);
  void fail_program(const char* text, const Index& at);
  V program_slots();
  V index_slots(const Index& index);

  // --- group.cc
  void add_root(Root root, std::span<const ir::Value* const> needs, const ir::Shape& shape, int axis = -1);
  void keep(const ir::Value* v);
  void flush();
  void emit_group(Group& group);
  void collect(const ir::Value* v, bool same_position, Slice* slice);
  bool depends_on_open(const ir::Value* scalar_value);
  Slice slice_of(const Group& group);
  std::vector<const ir::Value*> needs_of(const Root& root) const;
  bool is_stored(const ir::Value* v) const { return buffers_.contains(v); }
  bool cheap(const ir::Value* v) const;
  bool needed(const ir::Value* v);
  bool done(const ir::Op* op) { return done_.contains(op); }
  /// Keeps the pending loads that something later needs and that at most `last_epoch` stores precede.
  void keep_needed_loads(const std::unordered_set<const ir::Op*>& except, int last_epoch);
  void prepare_scalars(const Slice& slice);
  void emit_versions(Group& group, const Slice& slice);
  /// When the store should bypass the caches in a loop of chunks of `width`; null for never.
  V gains_from_streaming(const ir::Op& store, unsigned width);

  // --- loop.cc
  struct Accumulator {
    const ir::Op* op;
    bool commutative;
    std::vector<V> identity;  // of each operand; empty: the first element starts
  };
  unsigned width_of(const Group& group, const Slice& slice) const;
  /// Accumulators of a row's reductions of floats; 1 where there are none.
  unsigned accumulating_lanes(const Group& group, int64_t row) const;
  void emit_loops(const Group& group, unsigned width);
  void emit_rows(const Group& group, unsigned width);
  void emit_columns(const Group& group, unsigned width);
  std::vector<V> combine(const Accumulator& acc, std::span<V const> left, std::span<V const> right);
  std::vector<V> across_lanes(const Accumulator& acc, std::span<V const> vectors);
  Accumulator accumulator(const ir::Op& op);
  std::vector<V> start_values(const Group& group, unsigned width, bool lanes_of_result);
  /// One chunk of every root: first all values, then all writes. `carried` are the accumulators, replaced by the next
  /// ones.
  void emit_body(const Group& group, Chunk& chunk, size_t index, V first, std::vector<V>* carried);
  void finish_reduce(const ir::Op& op, std::span<V const> values, Lanes position, unsigned width);
  Index index_at(const ir::Shape& shape, Lanes linear, unsigned width);
  Index index_from(const ir::Shape& shape, llvm::SmallVector<Lanes, ir::kMaxRank> at);

  // --- value.cc
  Lanes emit(Chunk& chunk, const ir::Value* v, size_t index);
  Lanes emit_op(Chunk& chunk, const ir::Value* v, size_t index);
  Lanes emit_elements(Chunk& chunk, const ir::Op& op, size_t index);
  size_t operand_index(Chunk& chunk, const ir::Op& op, size_t index);
  V vectorize(Lanes lanes, const ir::Type& type, unsigned width);
  V vectorize(Lanes lanes, llvm::Type* scalar, int64_t step, unsigned width);
  Lanes coordinate(Lanes linear, int64_t stride, int64_t size, int64_t total, unsigned width);
  Lanes add(Lanes x, Lanes y, unsigned width);
  Lanes scale(Lanes x, int64_t factor, unsigned width);
  Lanes linear_of(Chunk& chunk, size_t index);
  Lanes read_buffer(Chunk& chunk, const ir::Value* v, Buffer buffer, size_t index);
  void write_buffer(Chunk& chunk, const ir::Type& type, Buffer buffer, Lanes value, size_t index);
  V element_at(const ir::Value* v, std::span<const int64_t> at);

  // --- memory.cc
  Lanes emit_load(Chunk& chunk, const ir::Op& op, size_t index);
  void emit_store(Chunk& chunk, const ir::Op& op, Lanes ptr, Lanes value, std::optional<Lanes> mask);
  std::optional<Lanes> emit_mask(Chunk& chunk, const ir::Op& op, int operand, size_t index);
  unsigned stream_align(const ir::Type& type, unsigned width) const;
  void prefetch(V at, unsigned bytes);
  Lanes load_lanes(unsigned width, const ir::Type& type, Lanes ptr, std::optional<Lanes> mask, Lanes other,
                   bool is_volatile);
  void store_lanes(unsigned width, const ir::Type& type, Lanes ptr, Lanes value, std::optional<Lanes> mask);
  V load_some(V at, V mask, V other, unsigned width, const ir::Type& type);
  void store_some(V at, V mask, V value, unsigned width, const ir::Type& type);
  V pointer_vector(Lanes ptr, const ir::Type& pointee, unsigned width);
  V mask_bits(V mask);
  /// if (condition) yes() else no(), and a phi of what they give (null: nothing).
  V choose(V condition, const std::function<V()>& yes, const std::function<V()>& no);
  V all_lanes(V mask) {
    return b.CreateICmpEQ(mask_bits(mask), llvm::Constant::getAllOnesValue(mask_bits(mask)->getType()));
  }
  bool masks_natively(const ir::Type& type) const;

  // --- alias.cc
  V all_true(const ir::Value* mask);
  std::optional<std::pair<V, V>> range_of(const ir::Value* v, V* exact);
  std::vector<V> corners_of(const ir::Value* v);
  V do_not_interfere(const ir::Op& one, const ir::Op& other);

  const ir::Module& source_;
  const target::Target& target_;
  llvm::IRBuilder<> b;
  std::optional<LineInfo> lines_;  // of what may fault: accesses and divisions
  llvm::Function* entry_ = nullptr;
  llvm::BasicBlock* prologue_ = nullptr;  // stack slots and parameters; ends before the loop over programs
  llvm::BasicBlock* exit_ = nullptr;
  V args_ = nullptr, scratch_ = nullptr, programs_ = nullptr, program_slots_ = nullptr, index_slots_ = nullptr,
    lane_slots_ = nullptr, mask_slots_ = nullptr;
  V program_[3] = {}, grid_[3] = {};
  std::vector<V> params_;
  unsigned native_bytes_ = 16;
  bool native_masks_ = false;

  struct Scope {
    std::vector<const ir::Value*> scalars, buffers;
    std::vector<const ir::Value*> borrowed;  // in buffers that belong to the loop around
  };
  std::vector<Scope> scopes_;
  std::unordered_map<const ir::Value*, V> scalars_;
  std::unordered_map<const ir::Value*, Buffer> buffers_;
  std::vector<Buffer> free_;
  int64_t scratch_end_ = 0;

  bool hold_ = false;  // no buffer may be released: values without a user in the IR are still read

  std::optional<Group> open_;
  std::unordered_set<const ir::Op*> done_;
  std::unordered_map<const ir::Value*, bool> needed_;  // memo, cleared whenever something is done
  std::vector<const ir::Op*> pending_loads_;
  std::unordered_map<const ir::Op*, int> load_epoch_;  // stores that came before it
  int store_epoch_ = 0;

  std::unordered_set<const ir::Value*> assumed_true_;  // masks, in the version of a loop being emitted
  std::unordered_map<const ir::Op*, V> stream_;        // when stores of the loop being emitted go around the caches
  bool prefetch_ = false;                              // loads of the loop being emitted prefetch the next lines
  bool streams_ = false;                               // some store may go around the caches
};

#define KILN_ACROSS_OP(e, ...) \
  template <>                  \
  Status Lowering::run<ir::OpKind::k##e>(const ir::Op& op);
#include "compiler/ir/ops.def"

}  // namespace kiln::lower::host
