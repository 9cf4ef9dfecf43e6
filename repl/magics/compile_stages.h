// A kernel's stages for the prompt: as it was launched last, or for values that were given.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "kiln/kernel.h"
#include "kiln/result.h"

namespace kiln::repl {

/// How a kernel is to be compiled for being looked at.
struct ShowRequest {
  Kernel kernel;
  /// "BLOCK=1024 signature=*fp32,*fp32,i32 num_warps=8"; empty: as the kernel was launched last, or assumed when it was
  /// never launched.
  std::string overrides;
  std::string target;
};

struct Shown {
  std::string text;         // the stage that was asked for
  std::string assumptions;  // what was assumed, for a kernel that was never launched; else empty
};

/// `stage` as `kiln compile --emit` names it: ast, ir, ir:PASS, layout, llvm, ptx, cubin, asm.
Result<Shown> show_stage(const ShowRequest& request, std::string_view stage);

/// Registers, spills and shared memory of the kernel compiled for request.target.
Result<std::pair<KernelInfo, std::string>> show_info(const ShowRequest& request);

/// A remark of a pass (docs/remarks.md).
struct ShownRemark {
  std::string kind, pass, reason, operand, text;
  Place place;
};
struct ShownRemarks {
  std::vector<ShownRemark> remarks;  // by place
  std::string assumptions;
  Status problem;  // that ended the compilation behind them
};
Result<ShownRemarks> show_remarks(const ShowRequest& request);

/// The target that the kernel was launched for last; empty when it never was.
std::string launched_target(const Kernel& kernel);

/// Each once, in the order of the pipelines.
std::vector<std::string_view> pass_names();
std::vector<std::string_view> target_names();
/// One line: what a block and an SM of it have.
std::string target_summary(std::string_view name);
/// Whether there is a target of that name, and it is a GPU.
bool is_gpu_target(std::string_view name);

}  // namespace kiln::repl
