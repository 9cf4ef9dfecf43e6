#include "repl/modules/triton/autotuner.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "profiler/tune/records.h"
#include "repl/modules/torch/tensor_object.h"
#include "repl/modules/triton/launch_state.h"
#include "repl/modules/triton/session_records.h"
#include "support/diag.h"
#include "support/environment.h"

namespace kiln::script {

Ref<Dict> named_args(Launchable& k, const CallArgs& args) {
  auto dict = make<Dict>();
  auto params = k.innermost().kernel.params();
  // Parameters of the kernel by place, then by name, as Triton gives them to hooks.
  for (size_t i = 0; i < std::min(params.size(), args.args.size()); ++i) dict->table.set(params[i].name, args.args[i]);
  for (const KeywordArg& a : args.keywords) dict->table.set(a.name, a.value);
  return dict;
}

void copy_args(const CallArgs& from, CallArgs& to) {
  to.site = from.site;
  for (const Value& v : from.args) to.args.push_back(v);
  for (const KeywordArg& k : from.keywords) to.keywords.push_back(k);
}

Status caught(const std::function<void()>& run) {
  try {
    run();
  } catch (ScriptError& e) {
    return std::move(e.diagnostic);
  }
  return {};
}

void Autotuner::launch(Interp& in, const Value& grid, CallArgs& args) {
  SourceRange site = in.where();
  Ref<ConfigObject> config = choose(in, grid, args);
  // Choosing may have run code of the script: hooks and grids.
  in.set_where(site);
  if (!config->pre_hook.missing() && !config->pre_hook.is_none()) run_hook(in, *config, args);
  apply(in, *config, args);
  in.set_where(site);
  inner_->launch(in, grid, args);
}

Value Autotuner::warmup(Interp& in, const Value& grid, CallArgs& args) {
  // Each configuration would be compiled by its first launch; the first one stands for them.
  apply(in, options_.configs.size() == 1 || best_.get() == nullptr ? *options_.configs[0] : *best_, args);
  return inner_->warmup(in, grid, args);
}

profiler::TuneCandidate Autotuner::resolve(Interp& in, const Value& grid, CallArgs& args) {
  apply(in, *present(in, args), args);
  return inner_->resolve(in, grid, args);
}

std::optional<Value> Autotuner::attribute(Interp& in, std::string_view name) {
  if (name == "fn") return Value(inner_);
  if (name == "best_config") {
    if (!best_)
      in.fail_as("AttributeError", "the kernel {} has not been tuned yet: launch it first", innermost().kernel.name());
    return Value(best_);
  }
  if (name == "configs") {
    auto list = make<List>();
    for (const auto& c : options_.configs) list->items.push_back(c);
    return Value(list);
  }
  if (name == "cache") {
    auto dict = make<Dict>();
    for (const auto& [text, chosen] : cache_) dict->table.set(in, chosen.key, chosen.config);
    return Value(dict);
  }
  return inner_->attribute(in, name);
}

void Autotuner::attribute_names(std::vector<std::string>& out) const {
  out.insert(out.end(), {"best_config", "configs", "cache", "fn"});
}

/// As Triton's: the values of the key's parameters, then the dtype of each tensor.
Value Autotuner::key_of(Interp& in, const CallArgs& args) {
  Ref<Dict> named = named_args(*inner_, args);
  std::vector<Value> items;
  for (const std::string& k : options_.key) {
    Value* v = named->table.find(k);
    if (!v) continue;
    auto* t = v->get<TensorObject>();
    // A tensor as a part of the key by its shape and dtype: its address differs in each launch.
    items.push_back(t ? Value::str(t->summary()) : *v);
  }
  for (const ParamDesc& p : innermost().kernel.params())
    if (Value* v = named->table.find(p.name))
      if (auto* t = v->get<TensorObject>()) items.push_back(Value::str(in.str(Value::dtype(t->dtype()))));
  return make<Tuple>(std::move(items));
}

void Autotuner::apply(Interp& in, const ConfigObject& config, CallArgs& args) {
  auto params = innermost().kernel.params();
  for (const auto& e : config.kwargs->table.live()) {
    const std::string& name = in.to_text(e.key, "a parameter's name");
    bool by_name =
        std::any_of(args.keywords.begin(), args.keywords.end(), [&](const KeywordArg& k) { return k.name == name; });
    bool by_place = false;
    for (size_t i = 0; i < std::min(params.size(), args.args.size()); ++i) by_place |= params[i].name == name;
    if (by_name || by_place)
      in.fail(with_note(
          error(ErrorKind::kValue, "the parameter '{}' is chosen by the autotuner and also given in the launch", name),
          "help: leave it out of the launch"));
    args.keywords.push_back({name, e.value, e.key});
  }
  for (const LaunchOption& o : kLaunchOptions) {
    if (!o.is_tuned()) continue;
    const bool given = std::ranges::find(args.keywords, o.name, &KeywordArg::name) != args.keywords.end();
    // An option that may be None and stayed so is left to the launch.
    const bool chosen = !o.takes_none() || o.get(config.options) != o.get({});
    if (given && !chosen) continue;
    if (given)
      in.fail(
          with_note(error(ErrorKind::kValue, "'{}' is chosen by the autotuner and also given in the launch", o.name),
                    "help: leave it out of the launch"));
    if (chosen) args.keywords.push_back({o.name, option_value(o, config.options), {}});
  }
}

void Autotuner::run_hook(Interp& in, const ConfigObject& config, const CallArgs& args) {
  Ref<Dict> all = named_args(*inner_, args);
  Ref<Dict> extra = config.all_kwargs(in);
  for (const auto& e : extra->table.live()) all->table.set(e.key.get<Str>()->text, e.value);
  in.call(config.pre_hook, {all});
}

std::vector<Ref<ConfigObject>> Autotuner::pruned(Interp& in, const CallArgs& args) {
  std::vector<Ref<ConfigObject>> configs = options_.configs;
  Ref<Dict> named = named_args(*inner_, args);
  if (!options_.early_prune.missing() && !options_.early_prune.is_none()) {
    auto list = make<List>();
    for (const auto& c : configs) list->items.push_back(c);
    CallArgs call;
    call.args.push_back(list);
    call.args.push_back(named);
    for (const KeywordArg& k : args.keywords) call.keywords.push_back(k);
    configs.clear();
    for (const Value& v : in.to_vector(in.call(options_.early_prune, call))) {
      auto* c = v.get<ConfigObject>();
      if (!c) in.fail(ErrorKind::kType, "early_config_prune must give configurations, got '{}'", in.type_name(v));
      configs.emplace_back(c);
    }
    if (configs.empty())
      in.fail(ErrorKind::kValue, "early_config_prune left no configuration of {}", innermost().kernel.name());
  }
  if (options_.perf_model.missing() || options_.perf_model.is_none()) return configs;
  double top = options_.top_k.missing() || options_.top_k.is_none() ? 1.0 : in.to_double(options_.top_k, "top_k");
  // Triton: a float, or 1 and less, is a share of all configurations.
  size_t keep = options_.top_k.is_float() || top <= 1
                    ? static_cast<size_t>(std::ceil(top * static_cast<double>(options_.configs.size())))
                    : static_cast<size_t>(top);
  if (configs.size() <= keep) return configs;
  std::vector<std::pair<double, Ref<ConfigObject>>> ranked;
  for (const auto& c : configs) {
    CallArgs call;
    for (const auto& dict : {named, c->all_kwargs(in)})
      for (const auto& e : dict->table.live())
        call.keywords.push_back({in.to_text(e.key, "a parameter's name"), e.value, e.key});
    ranked.emplace_back(in.to_double(in.call(options_.perf_model, call), "the result of perf_model"), c);
  }
  std::stable_sort(ranked.begin(), ranked.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  configs.clear();
  for (size_t i = 0; i < keep; ++i) configs.push_back(ranked[i].second);
  return configs;
}

Ref<ConfigObject> Autotuner::present(Interp& in, const CallArgs& args) {
  auto it = cache_.find(in.repr(key_of(in, args)));
  // Asked for without tuning: the first one stands for what a launch would choose.
  return it == cache_.end() ? options_.configs[0] : it->second.config;
}

void Autotuner::adopt(Interp& in, const CallArgs& args, Ref<ConfigObject> config) {
  Value key = key_of(in, args);
  std::string text = in.repr(key);
  cache_[std::move(text)] = {std::move(key), config};
  best_ = std::move(config);
}

std::vector<std::string> Autotuner::record_lines(Interp& in, const CallArgs& args) {
  return {"key " + in.repr(key_of(in, args))};
}

Ref<ConfigObject> Autotuner::choose(Interp& in, const Value& grid, const CallArgs& args) {
  // Nothing to choose, as in Triton.
  if (options_.configs.size() == 1) return best_ = options_.configs[0];
  auto it = cache_.find(in.repr(key_of(in, args)));
  if (it != cache_.end()) return best_ = it->second.config;
  adopt(in, args, tune(in, grid, args));
  return best_;
}

Autotuner::Field Autotuner::field(Interp& in, const Value& grid, const CallArgs& args) {
  Ref<Dict> named = named_args(*inner_, args);
  auto tensors_named = [&](const std::vector<std::string>& names) {
    std::vector<Tensor> out;
    for (const std::string& name : names) {
      Value* v = named->table.find(name);
      if (auto* t = v ? v->get<TensorObject>() : nullptr) out.push_back(t->tensor(in));
    }
    return out;
  };
  std::vector<std::pair<Tensor, Tensor>> saved;
  for (const Tensor& t : tensors_named(options_.restore_value)) {
    // A copy of each, since a configuration that is tried must find what the last one found.
    Tensor copy = in.take(Tensor::empty(t.device(), t.dtype(), t.shape()));
    in.check(copy.copy_from(t));
    saved.emplace_back(t, copy);
  }
  auto reset = [saved, zeroed = tensors_named(options_.reset_to_zero)]() -> Status {
    for (const auto& [to, from] : saved) KILN_CHECK_OK(to.copy_from(from));
    for (const Tensor& t : zeroed) KILN_CHECK_OK(t.fill(0));
    return {};
  };
  Field out;
  out.configs = pruned(in, args);
  out.finish = reset;
  const bool has_hook = !options_.pre_hook.missing() && !options_.pre_hook.is_none();
  for (const Ref<ConfigObject>& c : out.configs) {
    profiler::TuneCandidate candidate;
    Status resolved = caught([&] {
      CallArgs copy;
      copy_args(args, copy);
      apply(in, *c, copy);
      candidate = inner_->resolve(in, grid, copy);
    });
    // What the launch itself gets wrong is wrong for every configuration.
    if (!resolved.ok() && resolved.error().kind == ErrorKind::kInterrupted) in.fail(std::move(resolved.error()));
    if (!resolved.ok()) candidate.problem = resolved.error().message;
    candidate.config = c->repr(in);
    const bool own_hook = !c->pre_hook.missing() && !c->pre_hook.is_none();
    if (has_hook || own_hook || !saved.empty() || !options_.reset_to_zero.empty())
      // Called before each sample: what it holds by reference lives as long as the tuning.
      candidate.prepare = [this, &in, &args, c, reset, named, has_hook, own_hook]() -> Status {
        KILN_CHECK_OK(reset());
        return caught([&] {
          if (has_hook) in.call(options_.pre_hook, {named});
          if (own_hook) run_hook(in, *c, args);
        });
      };
    out.candidates.push_back(std::move(candidate));
  }
  return out;
}

/// do_bench(kernel_call, quantiles=(0.5, 0.2, 0.8)) gives milliseconds.
Result<double> Autotuner::bench(Interp& in, const profiler::TuneCandidate& candidate) {
  double us = 0;
  KILN_CHECK_OK(caught([&] {
    auto kernel_call = make<Opaque>("kernel_call");
    kernel_call->on_call = [&candidate](Interp& interp, CallArgs&) -> Value {
      if (candidate.prepare) interp.check(candidate.prepare());
      interp.check(candidate.launch());
      return Value::none();
    };
    CallArgs call;
    call.args.push_back(kernel_call);
    call.keywords.push_back(
        {"quantiles", make<Tuple>(std::vector<Value>{Value::real(0.5), Value::real(0.2), Value::real(0.8)}), {}});
    Value ms = in.call(options_.do_bench, call);
    // do_bench may give a number, or one for each quantile, the median first.
    if (auto* list = ms.get<List>(); list && !list->items.empty()) ms = Value(list->items[0]);
    if (auto* tuple = ms.get<Tuple>(); tuple && !tuple->items.empty()) ms = Value(tuple->items[0]);
    us = in.to_double(ms, "the result of do_bench") * 1e3;
  }));
  return us;
}

Ref<ConfigObject> Autotuner::tune(Interp& in, const Value& grid, const CallArgs& args) {
  const SourceRange site = in.where();
  Field f = field(in, grid, args);
  const bool has_bench = !options_.do_bench.missing() && !options_.do_bench.is_none();
  profiler::TuneOptions options;
  options.warm_up_s = options_.warmup_ms / 1e3;
  options.measure_s = (options_.warmup_ms + options_.rep_ms) / 1e3 * static_cast<double>(f.candidates.size());
  options.check_accesses = launch_state(in).access_checks != AccessChecks::kOff;
  options.should_stop = [&in] { return in.interrupted.load(std::memory_order_relaxed); };
  if (has_bench) options.bench = [this, &in](const profiler::TuneCandidate& c) { return bench(in, c); };
  Device device = torch_state(in).device();
  Ref<Dict> named = named_args(*inner_, args);
  for (const auto& e : named->table.live())
    if (auto* t = e.key.missing() ? nullptr : e.value.get<TensorObject>()) device = t->device();
  if (options_.use_records && !has_bench) {
    options.records = &tune_records(in);
    // Triton's key alone says what a result holds for; the grid may follow from the configuration.
    options.records_per_grid = false;
    options.record_key = profiler::record_key(innermost().kernel, device, record_lines(in, args));
  }
  profiler::TuneResult result = in.take(profiler::tune(device, f.candidates, options));
  in.check(f.finish());
  in.set_where(site);
  if (result.interrupted) {
    // What is known by now serves the launches to come.
    if (result.best >= 0) adopt(in, args, f.configs[static_cast<size_t>(result.best)]);
    // A hook or do_bench may have met it, and taken it, before the tuning did.
    in.fail(error(ErrorKind::kInterrupted, "interrupted"));
  }
  if (result.best < 0) {
    std::string failures;
    for (const profiler::TuneRow& r : result.rows)
      failures += (failures.empty() ? "" : "; ") + r.config + ": " + r.reason;
    in.fail(
        with_note(error(ErrorKind::kLaunch, "no configuration of the kernel {} works here", innermost().kernel.name()),
                  failures));
  }
  const Ref<ConfigObject>& best = f.configs[static_cast<size_t>(result.best)];
  if (environment("TRITON_PRINT_AUTOTUNING") == "1")
    in.print(
        fmt::format("Triton autotuning for function {},\nwith key as {},\nfinished after {:.2f}s,\n"
                    "best config selected: {};\n",
                    innermost().kernel.name(), in.repr(key_of(in, args)), result.total_s, best->repr(in)));
  return best;
}

}  // namespace kiln::script
