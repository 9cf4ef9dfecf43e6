// Distributed tile IR → LLVM IR for NVPTX: each thread has its registers of every tile, given by the tile's layout.
#pragma once
#include <memory>

#include "compiler/ir/ir.h"
#include "compiler/lower/shared/launch_plan.h"
#include "compiler/target/target.h"
#include "kiln/launch_options.h"

namespace llvm {
class LLVMContext;
class Module;
}  // namespace llvm

namespace kiln::lower {

struct NvptxOptions {
  bool line_info = true;          // .loc directives: PTX and SASS lines lead back to the kernel's source
  CodeOptions launch = {};        // what the code is compiled for beside the module
  int most_blocks = kMostBlocks;  // of plan_launch
};

/// One kernel function with module.name, blocks of num_warps*32 threads and those of plan_launch, dynamic shared memory
/// of shared_bytes, and plan_launch's tensor maps as parameters after the kernel's own.
/// kUnsupported: as plan_launch; an atomic that the target does not have; a wgmma whose layouts no instruction takes.
/// The module must be in the distributed stage and verified.
Result<std::unique_ptr<llvm::Module>> lower_nvptx(const ir::Module& module, const target::Target& target,
                                                  llvm::LLVMContext& context, const NvptxOptions& options = {});

}  // namespace kiln::lower
