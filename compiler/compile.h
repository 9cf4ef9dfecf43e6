// Compiles a jit function to code for a target in one call; the result as plain data.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/frontend/frontend.h"
#include "compiler/passes/remarks.h"
#include "compiler/passes/tile/guard_accesses.h"
#include "kiln/kernel_info.h"
#include "support/assembler.h"
#include "support/roomy_code.h"
#include "support/tensor_map.h"

namespace kiln {

struct CompileOptions {
  std::string target = "host";  // a row of target/arch.def
  frontend::Options frontend;
  bool want_cubin = true;  // GPU: assemble the PTX when something is there that does
  /// GPU: asked first, where it reads the target's PTX; else nvJitLink or ptxas, whichever is found.
  const Assembler* assembler = nullptr;
  bool want_asm = false;  // host: fill `text` with assembly
  bool line_info = true;  // GPU: the code leads back to lines of the source
  /// Called with (stage, text) after each stage: "ir", "ir:<pass>", "layout", "llvm", "ptx", "asm". Null: no text is
  /// made.
  std::function<void(std::string_view stage, const std::string& text)> on_stage;
  /// Gets what passes say of their decisions, also when a later step fails. Null: nothing is collected.
  passes::Remarks* remarks = nullptr;
  bool verify_each = false;
  /// Bounds-checks every access: CompiledKernel::guards says how such a kernel is launched.
  bool guard_accesses = false;
};

/// One runtime parameter as it is passed: slot i of the argument buffer, 8 bytes each.
struct KernelParam {
  std::string name;
  ir::Type type;
  bool written = false;  // a pointer that stores or atomics may reach
};

/// What was compiled. Plain data: it can be written to the kernel cache and read back.
struct CompiledKernel : KernelInfo {
  std::vector<KernelParam> params;  // constexprs are gone
  /// GPU: hidden parameters after `params`, which the launcher encodes: 128 bytes each.
  std::vector<TensorMapRecipe> tensor_maps;
  std::optional<RoomyCode> roomy;                 // GPU: for launches of few blocks
  std::optional<passes::GuardedAccesses> guards;  // when asked for; not kept on disk
};

Result<CompiledKernel> compile(const frontend::JitFunction& function, std::span<const frontend::ArgSpec> args,
                               const CompileOptions& options);

/// The same from IR: for tests that start in the middle, and for the differential fuzzer. IR of the distributed stage
/// goes to code generation as it is.
Result<CompiledKernel> compile_ir(std::unique_ptr<ir::Module> module, const CompileOptions& options);

/// Entry of a host kernel: runs programs [first, last) of the grid, numbered x fastest. `args` has a slot of 8 bytes
/// per parameter (integers and floats in the low bytes); `scratch` has scratch_bytes, 64-byte aligned, for this thread
/// alone.
using HostEntry = void (*)(const uint64_t* args, const int32_t* grid, int64_t first, int64_t last, void* scratch);

/// Host code in memory; the entry is valid while this lives.
class HostCode {
 public:
  virtual ~HostCode() = default;
  virtual HostEntry entry() const = 0;
  /// kLaunch: the first device assertion that failed since the last call, with its program. Ask after a launch has
  /// finished.
  virtual Status take_failure() = 0;
  /// Where in the source the instruction at this address came from, without the line's text; line 0 when it is none of
  /// this code.
  virtual Place place_at(uintptr_t address) const = 0;
};
Result<std::shared_ptr<HostCode>> load_host_object(const CompiledKernel& kernel);

/// Names the compiler, LLVM, and the host CPU or the assembler (`device`: CompileOptions::assembler): part of every
/// cache key.
std::string compiler_fingerprint(std::string_view target, const Assembler* device = nullptr);

/// Of the LLVM inside, and the CPU as it sees it: for reports of bugs.
std::string llvm_version();
std::string host_cpu();

}  // namespace kiln
