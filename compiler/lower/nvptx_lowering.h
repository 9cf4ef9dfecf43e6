// The state of one kernel's lowering to NVPTX, and the lowerings of op families. Internal to lower/nvptx*.cc.
#pragma once
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include <unordered_map>
#include <vector>

#include "compiler/analysis/axis_info.h"
#include "compiler/ir/ir.h"
#include "compiler/lower/nvptx_thread.h"
#include "compiler/target/target.h"

namespace kiln::lower {

/// This thread's registers of a tile, in the order of the layout's register bits; one for a scalar.
using Registers = std::vector<llvm::Value*>;

struct Lowering {
  Lowering(const ir::Module& ir_module, const target::Target& t, llvm::Module& llvm_module, llvm::Function* fn,
           llvm::BasicBlock* entry, llvm::BasicBlock* body)
      : source(ir_module),
        target(t),
        module(llvm_module),
        function(fn),
        b(body),
        thread(entry, ir_module.num_warps),
        axis(ir_module) {}

  const ir::Module& source;
  const target::Target& target;
  llvm::Module& module;
  llvm::Function* function;
  llvm::IRBuilder<> b;
  ThreadCode thread;
  analysis::AxisAnalysis axis;
  std::unordered_map<const ir::Value*, Registers> values;

  llvm::LLVMContext& context() { return module.getContext(); }
  const Registers& of(const ir::Value* v) const { return values.at(v); }
  llvm::Type* type_of(const ir::Type& type);

  /// __syncthreads.
  void barrier();
  /// The address of a byte of the kernel's dynamic shared memory; `offset` is i32.
  llvm::Value* shared(llvm::Value* offset, int64_t constant);
  llvm::Value* load_shared(llvm::Value* address, llvm::Type* type, int lanes);
  /// Runs `fn` in threads where `condition` holds; null: in all.
  template <class Fn>
  void when(llvm::Value* condition, Fn&& fn) {
    if (!condition) return fn();
    llvm::BasicBlock* then = llvm::BasicBlock::Create(context(), "", function);
    llvm::BasicBlock* next = llvm::BasicBlock::Create(context(), "", function);
    b.CreateCondBr(condition, then, next);
    b.SetInsertPoint(then);
    fn();
    b.CreateBr(next);
    b.SetInsertPoint(next);
  }
};

int num_registers(const ir::Type& type);
/// Bytes of an element in memory: pointers 8, i1 1.
int element_bytes(const ir::Type& type);
/// An element as memory holds it (i1 becomes i8), and back.
llvm::Value* to_memory(llvm::IRBuilderBase& b, llvm::Value* v);
llvm::Value* from_memory(llvm::IRBuilderBase& b, llvm::Value* v, llvm::Type* type);
llvm::Type* memory_type(llvm::Type* type);

// Each defines the values of the op's results.
void lower_load(Lowering& l, const ir::Op& op);
void lower_store(Lowering& l, const ir::Op& op);
Status lower_atomic_rmw(Lowering& l, const ir::Op& op);
Status lower_atomic_cas(Lowering& l, const ir::Op& op);
Status lower_dot(Lowering& l, const ir::Op& op);
void lower_convert_layout(Lowering& l, const ir::Op& op);
void lower_reduce(Lowering& l, const ir::Op& op);
void lower_scan(Lowering& l, const ir::Op& op);
void lower_print(Lowering& l, const ir::Op& op);
void lower_assert(Lowering& l, const ir::Op& op);

}  // namespace kiln::lower
