// The state of one kernel's lowering to NVPTX, and the lowerings of op families. Internal to lower/nvptx*.cc.
#pragma once
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/MDBuilder.h>
#include <llvm/IR/Module.h>

#include <unordered_map>
#include <vector>

#include "compiler/analysis/axis_info.h"
#include "compiler/ir/ir.h"
#include "compiler/layout/convert_plan.h"
#include "compiler/lower/nvptx/thread.h"
#include "compiler/lower/shared/launch_plan.h"
#include "compiler/target/target.h"

namespace kiln::lower {

/// This thread's registers of a tile, in the order of the layout's register bits; one for a scalar.
using Registers = std::vector<llvm::Value*>;

/// Which threads of a block run the code that is being emitted.
enum class Partition : uint8_t {
  kAll,        // before warp_specialize, and in kernels without
  kOwn,        // the kernel's own warps: warp_specialize's first region, and what comes after it
  kOneThread,  // one of its further regions
};

struct Lowering {
  Lowering(const ir::Module& ir_module, const target::Target& t, const LaunchPlan& plan, llvm::Module& llvm_module,
           llvm::Function* fn, llvm::BasicBlock* entry, llvm::BasicBlock* body)
      : source(ir_module),
        target(t),
        launch(plan),
        module(llvm_module),
        function(fn),
        b(body),
        thread(entry, ir_module.num_warps, plan.extra_warps),
        axis(ir_module) {}

  const ir::Module& source;
  const target::Target& target;
  const LaunchPlan& launch;
  Partition partition = Partition::kAll;
  bool own_wait = false;             // when the roles part, the own warps wait for the extra ones
  llvm::Value* map_place = nullptr;  // i32, in the first warp: which of the places of tensor maps the program has
  llvm::Module& module;
  llvm::Function* function;
  llvm::IRBuilder<> b;
  ThreadCode thread;
  analysis::AxisAnalysis axis;
  std::unordered_map<const ir::Value*, Registers> values;

  llvm::LLVMContext& context() { return module.getContext(); }
  const Registers& of(const ir::Value* v) const { return values.at(v); }
  llvm::Type* type_of(const ir::Type& type);

  /// Joins the threads of the partition.
  void barrier();
  /// The same, and whether the condition holds in any of them.
  llvm::Value* barrier_any(llvm::Value* condition);
  /// Joins the threads of each group of so many of the kernel's own warps.
  void group_barrier(int warps);
  /// The number of this thread's group.
  llvm::Value* group(int warps);
  /// True in the one thread of the partition that issues bulk copies, or in one of each group of so many warps; null
  /// where there is but one thread.
  llvm::Value* leader(int warps = 0);
  /// True in the one thread that initialises barriers: ahead of the roles the one that becomes the first further
  /// region.
  llvm::Value* initializer();
  /// The kernel's dynamic shared memory.
  llvm::GlobalVariable* shared_memory();
  /// The address of a byte of the kernel's dynamic shared memory; `offset` is i32.
  llvm::Value* shared(llvm::Value* offset, int64_t constant);
  llvm::Value* load_shared(llvm::Value* address, llvm::Type* type, int lanes);
  /// Runs `fn` in threads where `condition` holds; null: in all.
  /// `rarely`: the threads that do go out of the way of the others.
  template <class Fn>
  void when(llvm::Value* condition, Fn&& fn, bool rarely = false) {
    if (!condition) return fn();
    llvm::BasicBlock* then = llvm::BasicBlock::Create(context(), "", function);
    llvm::BasicBlock* next = llvm::BasicBlock::Create(context(), "", function);
    b.CreateCondBr(condition, then, next, rarely ? llvm::MDBuilder(context()).createUnlikelyBranchWeights() : nullptr);
    b.SetInsertPoint(then);
    fn();
    b.CreateBr(next);
    b.SetInsertPoint(next);
  }

 private:
  void named_barrier(llvm::Value* number, int warps);
};

/// The address handle + map.apply(r, lane, warp)·scale in shared memory, with what no bit of the thread's share meets
/// as the access's own offset.
llvm::Value* place_of(Lowering& l, llvm::Value* handle, const layout::XorMap& map, uint32_t r, uint32_t scale);

/// Writes a tile to shared memory at a handle (a byte offset), where its elements lie by layout `shared`, by the
/// accesses planned for that or by stmatrix.
void write_shared(Lowering& l, llvm::Value* handle, const Registers& from, const ir::Type& tile,
                  const layout::LinearLayout& shared, const layout::SharedAccess& access);
/// One access of those that read_shared() makes without ldmatrix: the registers of `group`.
void read_group(Lowering& l, llvm::Value* handle, const ir::Type& tile, const layout::SharedAccess& access,
                const std::vector<int>& group, Registers& to);
/// Whether a dot that sums in registers reads this shared_load's tile itself, as it multiplies: of many elements along
/// k they would fill the registers (passes/distributed/read_operands.h).
bool is_read_by_dot(const ir::Op& load);
/// Reads a tile, likewise or by ldmatrix.
Registers read_shared(Lowering& l, llvm::Value* handle, const ir::Type& tile, const layout::LinearLayout& shared,
                      const layout::SharedAccess& access);

int num_registers(const ir::Type& type);
/// Bytes of an element in memory: pointers 8, i1 1.
int element_bytes(const ir::Type& type);
/// An element as memory holds it (i1 becomes i8), and back.
llvm::Value* to_memory(llvm::IRBuilderBase& b, llvm::Value* v);
llvm::Value* from_memory(llvm::IRBuilderBase& b, llvm::Value* v, llvm::Type* type);
llvm::Type* memory_type(llvm::Type* type);
/// The L2 cache policy of an access, as the operand of its cache_hint; null where its
/// eviction policy says nothing. It depends on nothing, so that LLVM makes one of each for a kernel.
llvm::Value* l2_policy(llvm::IRBuilderBase& b, const ir::Op& op);

/// "{$4, $5}": so many operands of inline assembly, in braces.
std::string operand_list(size_t first, size_t count);

/// Defines the values of the op's results. Each op of these classes of ops.def has one, in the file of its family.
template <ir::OpKind kKind>
Status lower(Lowering& l, const ir::Op& op);
#define KILN_MEMORY_OP(e, ...) \
  template <>                  \
  Status lower<ir::OpKind::k##e>(Lowering & l, const ir::Op& op);
#define KILN_ACROSS_OP KILN_MEMORY_OP
#define KILN_EFFECT_OP KILN_MEMORY_OP
#define KILN_ASM_OP KILN_MEMORY_OP
#define KILN_MACHINE_OP KILN_MEMORY_OP
#define KILN_ROLES_OP(...)
#include "compiler/ir/ops.def"

/// Whether a thread's elements of a correctly rounded f32 division or square root are computed together, and their
/// registers (division.cc). As math.h's sin, it leaves `l.b` at the end of a new block.
bool is_exact_in_bulk(const ir::Op& op, const Lowering& l);
Registers exact_in_bulk(Lowering& l, const ir::Op& op);

/// The op that alone reads the quotients of such a division and rounds them to halves or to whole numbers, where few
/// divisors divide many numbers: the two are computed together, where the reader stands. Null if there is none.
const ir::Op* reader_that_rounds(const ir::Op& division, const Lowering& l);
/// The division whose reader this is, or null.
const ir::Op* division_for(const ir::Op& reader, const Lowering& l);
/// The reader's registers; leaves `l.b` at the end of a new block.
Registers rounded_quotients(Lowering& l, const ir::Op& division, const ir::Op& reader);

/// Fetches the maps themselves, which the first copies would wait for.
void prefetch_tensor_maps(Lowering& l);

// Tensor maps that the kernel makes (device_maps.cc).

/// At the kernel's start and end: a place in global memory for the program's own.
void take_device_maps(Lowering& l);
void return_device_maps(Lowering& l);
/// The maps of a make_descriptor, where it stands.
Status make_tensor_maps(Lowering& l, const ir::Op& op);
/// The address of a map, in the threads that take_device_maps() gave a place.
llvm::Value* device_map(Lowering& l, int number);

}  // namespace kiln::lower
