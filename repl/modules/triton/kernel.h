// Kernels as values of the host language: @triton.jit functions, and the wrappers @triton.autotune and
// @triton.heuristics around them, which stack.
#pragma once
#include <array>
#include <memory>
#include <string>
#include <unordered_set>
#include <vector>

#include "kiln/kernel.h"
#include "profiler/tune/tune.h"
#include "repl/script/builtins/builtins.h"
#include "repl/script/interp/interp.h"
#include "support/launch_options.h"

namespace kiln::script {

class KernelObject;

/// What can stand in `kernel[grid](…)`.
class Launchable : public Object {
 public:
  using Object::Object;
  std::optional<Value> call_at(Interp& in, const Value& grid, CallArgs& args) override {
    return launched(in, grid, args);
  }
  /// `kernel[grid]` alone: something to call later.
  Value item(Interp& in, const Value& grid) override;
  Value call(Interp& in, CallArgs& args) override;
  virtual void launch(Interp& in, const Value& grid, CallArgs& args) = 0;
  /// Launches, and gives an object with the figures of the code that ran, as Triton does.
  Value launched(Interp& in, const Value& grid, CallArgs& args);
  /// Compiles for those arguments without launching: the object of a compiled kernel.
  virtual Value warmup(Interp& in, const Value& grid, CallArgs& args) = 0;
  /// What launch() would run, without running it; it holds its tensors itself.
  virtual profiler::TuneCandidate resolve(Interp& in, const Value& grid, CallArgs& args) = 0;
  virtual KernelObject& innermost() = 0;
};

class KernelObject : public Launchable {
 public:
  static inline const KindOf<KernelObject> kKind{"JITFunction"};
  KernelObject(Kernel k, Ref<Function> f, std::shared_ptr<const frontend::JitFunction> jit_function);
  void launch(Interp& in, const Value& grid, CallArgs& args) override;
  Value warmup(Interp& in, const Value& grid, CallArgs& args) override;
  profiler::TuneCandidate resolve(Interp& in, const Value& grid, CallArgs& args) override;
  KernelObject& innermost() override { return *this; }
  /// The object of what was launched last; None where that was guarded code.
  Value launched_code();
  /// f(x, y): an expression that calls it on the elements of tensors.
  Value call(Interp& in, CallArgs& args) override;
  std::optional<Value> attribute(Interp& in, std::string_view name) override;
  void attribute_names(std::vector<std::string>& out) const override;
  std::string repr(Interp&) override { return fmt::format("<kernel {}>", signature()); }
  /// "add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr)"
  std::string signature() const;
  std::string source() const;

  const Kernel kernel;
  const Ref<Function> function;
  const std::shared_ptr<const frontend::JitFunction> kernel_function;

 private:
  struct Bound {
    SmallVector<const Value*, 16> values;  // per parameter; null: the default
    LaunchOptions options;
    bool check = false;  // check=True
  };
  void bind(Interp& in, CallArgs& args, Bound& out) const;
  /// A keyword of a launch: the parameter of that name, or the number of parameters, and the option, or null.
  struct KnownKeyword {
    std::string name;
    size_t parameter;
    const LaunchOption* option;
  };
  const KnownKeyword& known_keyword(size_t at, std::string_view name) const;
  /// `depth` tuples are around the value.
  Arg argument(Interp& in, size_t param, const Value& value, int depth) const;
  void convert(Interp& in, const Bound& bound, std::vector<std::optional<Arg>>& out) const;
  std::array<int64_t, 3> grid_of(Interp& in, const Value& grid, const Bound& bound) const;
  Ref<Dict> named(const Bound& bound) const;

  std::vector<Value> names_;                         // the parameters' names as strings
  mutable std::vector<KnownKeyword> keywords_;       // of the launch before: most launches repeat them, in their order
  Table named_;                                      // of each name None: what a grid function gets, but for the values
  std::vector<std::optional<Arg>> scratch_;          // of the launch going on; nothing a script runs can be between
  bool checked_ = false;                             // the last launch ran guarded code
  std::unordered_set<size_t> forms_;                 // of launches that were checked as the first of theirs
  Value launched_;                                   // the object of the code that was launched last
  std::shared_ptr<const KernelInfo> launched_info_;  // of launched_
};

/// One of an autotuner's configurations.
class ConfigObject : public Object {
 public:
  static inline const KindOf<ConfigObject> kKind{"Config"};
  ConfigObject() : Object(kKind) {}
  std::optional<Value> attribute(Interp& in, std::string_view name) override;
  void attribute_names(std::vector<std::string>& out) const override;
  std::string repr(Interp& in) override;
  /// kwargs and launch options together.
  Ref<Dict> all_kwargs(Interp& in) const;

  Ref<Dict> kwargs;
  CodeOptions options;
  Value pre_hook;
};

/// The kernel at the bottom of a stack of wrappers, or nullptr.
KernelObject* innermost_kernel(const Value& v);
Launchable* launchable(const Value& v);

void install_kernels(ModuleObject& triton);  // jit
void install_tuning(ModuleObject& triton);   // autotune, heuristics, Config
void install_kernel_methods(Interp& in);
void install_tuning_methods(Interp& in);
/// run and warmup, of all that can be launched.
std::span<const NativeDef> launch_methods();
void fill_testing(Interp& in, ModuleObject& m);
/// What to write so that a device's caches have nothing else.
int64_t bytes_over_caches(const DeviceInfo& info);
/// How often to fill a GPU's caches before a timed run, so that it is queued before the last of them has ended. Else
/// the CPU's time for its launches is in its sample.
int fills_ahead(double queue_ms, double fill_ms);
/// Milliseconds of each of the runs that `rep` ms allow, cache filling included, after a warm-up; at least five.
std::vector<double> bench_samples(Interp& in, const std::function<void()>& run, double warmup_ms, double rep_ms);

/// A function that kernels may call at compile time, as @triton.constexpr_function and @tl.constexpr make it.
Value constexpr_function_of(Interp& in, const Value& function);

}  // namespace kiln::script
