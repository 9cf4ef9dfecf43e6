// From a specialisation to loaded code: the one bridge from the runtime to compiler/compile.h.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "compiler/compile.h"
#include "kiln/kernel.h"
#include "runtime/device/device.h"
#include "runtime/jit/cache.h"
#include "runtime/jit/closure.h"
#include "runtime/jit/loaded_code.h"

namespace kiln::runtime {

/// The compiler as the runtime needs it; tests substitute their own.
struct Compiler {
  std::function<Result<CompiledKernel>(const frontend::JitFunction&, std::span<const frontend::ArgSpec>,
                                       const CompileOptions&)>
      compile;
  std::function<Result<std::shared_ptr<HostCode>>(const CompiledKernel&)> load_host_object;
  std::function<std::string(std::string_view target, const Assembler* assembler)> fingerprint;
};

/// One specialisation to compile.
struct JitRequest {
  const frontend::JitFunction* function = nullptr;
  const Closure* closure = nullptr;
  std::span<const frontend::ArgSpec> args;
  frontend::Options options;
  std::string target;
  const Assembler* assembler = nullptr;  // of the device, where the code is for it
  bool guard_accesses = false;           // such code is not kept on disk
  bool line_info = true;                 // GPU: the code leads back to lines of the source
};

/// `kernel` for a backend, without the entry of host code. Views into `kernel`, which must outlive it.
KernelImage image_of(const CompiledKernel& kernel);

/// Compiles, with the disk cache before it. Thread-safe.
class Jit {
 public:
  explicit Jit(Compiler compiler, std::function<void(const std::string&)> warn);

  Result<CompiledKernel> compile(const JitRequest& request);
  /// Makes `kernel` launchable on the device and completes what is known of it.
  Result<std::shared_ptr<LoadedKernel>> load(CompiledKernel& kernel, const Closure& closure, DeviceImpl& device);
  /// What is kept of code that was loaded; GPUs' is listed by loaded_code() as long as the caller keeps it.
  std::shared_ptr<const LoadedCode> remember(KernelInfo&& kernel, const Closure& closure);
  std::vector<std::shared_ptr<const LoadedCode>> loaded_code();
  /// The compiler's name for itself when it compiles for `target` and assembles with `assembler`; asked for once.
  std::string fingerprint(const std::string& target, const Assembler* assembler);

 private:
  std::string cache_key(const JitRequest& request);

  Compiler compiler_;
  std::function<void(const std::string&)> warn_;
  DiskCache cache_;
  std::mutex mutex_;
  std::map<std::pair<std::string, const Assembler*>, std::string> fingerprints_;
  std::vector<std::weak_ptr<const LoadedCode>> loaded_;
};

}  // namespace kiln::runtime
