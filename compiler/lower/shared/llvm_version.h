// What LLVM 21 and 22 name differently. What 21 has no name for is in compiler/lower/nvptx/intrinsics.cc, and what it
// selects badly in compiler/codegen/llvm_21.cc. To go with support of LLVM 21.
#pragma once

#include <llvm/BinaryFormat/Dwarf.h>
#include <llvm/Config/llvm-config.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/DebugInfoMetadata.h>
#include <llvm/IR/Function.h>
#include <llvm/IR/IntrinsicsNVPTX.h>
#include <llvm/IR/Module.h>

#include <cstddef>

namespace kiln::lower {

#if LLVM_VERSION_MAJOR >= 22
// Of f32 by their type argument; LLVM 21's have none, so ask llvm::Intrinsic::isOverloaded.
inline constexpr llvm::Intrinsic::ID kEx2Approx = llvm::Intrinsic::nvvm_ex2_approx;
inline constexpr llvm::Intrinsic::ID kEx2ApproxFtz = llvm::Intrinsic::nvvm_ex2_approx_ftz;
using SourceLanguage = llvm::DISourceLanguageName;

/// The parameters from `first` on, passed by value, are read where they lie: else from copies in local memory.
inline void mark_grid_constants(llvm::Function& kernel, size_t first) {
  for (auto i = static_cast<unsigned>(first); i < kernel.arg_size(); ++i)
    kernel.addParamAttr(i, llvm::Attribute::get(kernel.getContext(), "nvvm.grid_constant"));
}
#else
inline constexpr llvm::Intrinsic::ID kEx2Approx = llvm::Intrinsic::nvvm_ex2_approx_f;
inline constexpr llvm::Intrinsic::ID kEx2ApproxFtz = llvm::Intrinsic::nvvm_ex2_approx_ftz_f;
using SourceLanguage = unsigned;

inline void mark_grid_constants(llvm::Function& kernel, size_t first) {
  if (first == kernel.arg_size()) return;
  llvm::LLVMContext& context = kernel.getContext();
  llvm::SmallVector<llvm::Metadata*, 8> numbers;  // from one; in one list, since only one is read
  for (size_t i = first; i < kernel.arg_size(); ++i)
    numbers.push_back(llvm::ConstantAsMetadata::get(llvm::ConstantInt::get(llvm::Type::getInt32Ty(context), i + 1)));
  llvm::Metadata* row[] = {llvm::ValueAsMetadata::get(&kernel), llvm::MDString::get(context, "grid_constant"),
                           llvm::MDNode::get(context, numbers)};
  kernel.getParent()->getOrInsertNamedMetadata("nvvm.annotations")->addOperand(llvm::MDNode::get(context, row));
}
#endif

}  // namespace kiln::lower
