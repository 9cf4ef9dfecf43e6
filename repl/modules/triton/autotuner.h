// @triton.autotune: a kernel that is launched with the fastest of its configurations, found at the first launch of each
// key.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "profiler/tune/tune.h"
#include "repl/modules/triton/kernel.h"
#include "repl/modules/triton/options.h"

namespace kiln::script {

struct AutotunerOptions {
  std::vector<Ref<ConfigObject>> configs;
  std::vector<std::string> key, reset_to_zero, restore_value;
  Value early_prune, perf_model, top_k, pre_hook, do_bench;
  double warmup_ms = 25, rep_ms = 100;
  bool use_records = true;
};

/// The launch's arguments by name.
Ref<Dict> named_args(Launchable& k, const CallArgs& args);
void copy_args(const CallArgs& from, CallArgs& to);
/// Runs what may throw a ScriptError and gives it as a Status.
Status caught(const std::function<void()>& run);

class Autotuner : public Launchable {
 public:
  static inline const KindOf<Autotuner> kKind{"Autotuner"};
  Autotuner(Ref<Launchable> k, AutotunerOptions o) : Launchable(kKind), inner_(std::move(k)), options_(std::move(o)) {}

  void launch(Interp& in, const Value& grid, CallArgs& args) override;
  Value warmup(Interp& in, const Value& grid, CallArgs& args) override;
  profiler::TuneCandidate resolve(Interp& in, const Value& grid, CallArgs& args) override;
  KernelObject& innermost() override { return inner_->innermost(); }
  std::optional<Value> attribute(Interp& in, std::string_view name) override;
  void attribute_names(std::vector<std::string>& out) const override;

  const Ref<Launchable>& inner() const { return inner_; }

  /// Its configurations as they would be launched, after prune_configs_by. They refer to `in` and `args`.
  struct Field {
    std::vector<Ref<ConfigObject>> configs;
    std::vector<profiler::TuneCandidate> candidates;
    std::function<Status()> finish;  // leaves the tensors as the decorator's options say
  };
  Field field(Interp& in, const Value& grid, const CallArgs& args);
  /// The configuration in use for such arguments, else the first.
  Ref<ConfigObject> present(Interp& in, const CallArgs& args);
  /// Launches with such arguments use it from now on.
  void adopt(Interp& in, const CallArgs& args, Ref<ConfigObject> config);
  /// What further its findings depend on.
  std::vector<std::string> record_lines(Interp& in, const CallArgs& args);

 private:
  struct Chosen {
    Value key;
    Ref<ConfigObject> config;
  };
  Value key_of(Interp& in, const CallArgs& args);
  void apply(Interp& in, const ConfigObject& config, CallArgs& args);
  void run_hook(Interp& in, const ConfigObject& config, const CallArgs& args);
  std::vector<Ref<ConfigObject>> pruned(Interp& in, const CallArgs& args);
  Ref<ConfigObject> choose(Interp& in, const Value& grid, const CallArgs& args);
  Ref<ConfigObject> tune(Interp& in, const Value& grid, const CallArgs& args);
  Result<double> bench(Interp& in, const profiler::TuneCandidate& candidate);

  Ref<Launchable> inner_;
  AutotunerOptions options_;
  std::map<std::string, Chosen> cache_;  // by the key's repr
  Ref<ConfigObject> best_;
};

}  // namespace kiln::script
