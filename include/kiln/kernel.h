// Kernels: @triton.jit functions, specialised, compiled and cached at launch.
#pragma once
#include <array>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "kiln/device.h"
#include "kiln/kernel_info.h"
#include "kiln/launch_options.h"
#include "kiln/tensor.h"
#include "kiln/tensor_descriptor.h"

namespace kiln {

namespace frontend {
struct JitFunction;
}
namespace runtime {
class KernelImpl;
}

class Kernel;

/// A function of the language as an argument, by its path: "triton.language.sigmoid".
struct LanguageFunction {
  std::string path;
  bool operator==(const LanguageFunction&) const = default;
};

struct ArgTuple;

/// One argument of a launch, as Triton's host side would take it. `monostate` is None; uint64_t is for integers of 2^63
/// and above. A `const Tensor*` is a tensor that the caller keeps until the call returns: nothing is copied.
using Arg =
    std::variant<std::monostate, bool, int64_t, double, std::string, DType, Tensor, Kernel, uint64_t, const Tensor*,
                 std::shared_ptr<const TensorDescriptor>, LanguageFunction, std::shared_ptr<const ArgTuple>>;
/// A tuple as an argument: each item is as an argument of its own, and may be a tuple.
struct ArgTuple {
  std::vector<Arg> items;
  std::vector<std::string> fields = {};  // of a NamedTuple, a name for each item
};

struct ParamDesc {
  std::string name;
  bool is_constexpr = false;
  bool has_default = false;
};

/// A jit function. Copies share the compiled specialisations.
class Kernel {
 public:
  Kernel() = default;
  explicit Kernel(std::shared_ptr<runtime::KernelImpl> impl) : impl_(std::move(impl)) {}

  /// Parses a file's text and takes the jit function `name` of it ("" when there is only one).
  static Result<Kernel> from_source(std::string text, std::string file_name, std::string_view name = {});
  /// From the frontend's own function: what the script interpreter uses.
  static Kernel from_function(std::shared_ptr<const frontend::JitFunction> function);

  explicit operator bool() const { return impl_ != nullptr; }
  const std::string& name() const;
  std::span<const ParamDesc> params() const;

  /// Launches over grid = {x, y, z} programs. `args` has one entry per parameter, in order; nullopt takes the default.
  /// The device is that of the tensor arguments, else options.device. A grid with a 0 launches nothing.
  Status launch(std::array<int64_t, 3> grid, std::span<const std::optional<Arg>> args,
                const LaunchOptions& options = {}) const;

  /// Compiles for those arguments without launching; `target` other than "" overrides the device's ("sm_90a" on a
  /// laptop).
  Result<KernelInfo> compile(std::span<const std::optional<Arg>> args, const LaunchOptions& options = {},
                             std::string_view target = {}) const;

  /// What the compiler made of the code that was launched last; null when none was.
  std::shared_ptr<const KernelInfo> launched() const;
  /// Whether that is `info`: costs less than to ask for it.
  bool was_launched_as(const KernelInfo* info) const;

  runtime::KernelImpl* impl() const { return impl_.get(); }
  bool operator==(const Kernel& o) const { return impl_ == o.impl_; }

 private:
  std::shared_ptr<runtime::KernelImpl> impl_;
};

}  // namespace kiln
