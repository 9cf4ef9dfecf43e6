// @triton.autotune and @triton.heuristics.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>

#include "repl/script/tensor_object.h"
#include "repl/script/triton_kernel.h"

namespace kiln::script {

std::optional<Value> ConfigObject::attribute(Interp&, std::string_view name) {
  if (name == "kwargs") return Value(kwargs);
  if (name == "num_warps") return Value::integer(num_warps);
  if (name == "num_stages") return Value::integer(num_stages);
  if (name == "num_ctas") return Value::integer(num_ctas);
  if (name == "pre_hook") return pre_hook.missing() ? Value::none() : pre_hook;
  if (name == "all_kwargs") {
    auto o = make<Opaque>("all_kwargs");
    o->on_call = [all = all_kwargs()](Interp&, CallArgs&) -> Value { return all; };
    return Value(o);
  }
  return std::nullopt;
}

void ConfigObject::attribute_names(std::vector<std::string>& out) const {
  out.insert(out.end(), {"kwargs", "num_warps", "num_stages", "num_ctas", "pre_hook", "all_kwargs"});
}

std::string ConfigObject::repr(Interp& in) {
  std::string out;
  for (const auto& e : kwargs->table.entries())
    if (!e.key.missing()) out += in.str(e.key) + ": " + in.str(e.value) + ", ";
  return out + fmt::format("num_warps: {}, num_ctas: {}, num_stages: {}", num_warps, num_ctas, num_stages);
}

Ref<Dict> ConfigObject::all_kwargs() const {
  auto d = make<Dict>();
  for (const auto& e : kwargs->table.entries())
    if (!e.key.missing()) d->table.set(e.key.get<Str>()->text, e.value);
  d->table.set("num_warps", Value::integer(num_warps));
  d->table.set("num_ctas", Value::integer(num_ctas));
  d->table.set("num_stages", Value::integer(num_stages));
  return d;
}

namespace {

Launchable& inner_of(Interp& in, const Value& v, std::string_view decorator) {
  Launchable* l = launchable(v);
  if (!l)
    in.fail(with_note(error(ErrorKind::kType, "{} goes around a kernel, got '{}'", decorator, in.type_name(v)),
                      "help: put @triton.jit below it"));
  return *l;
}

/// The launch's arguments by name.
Ref<Dict> named_args(Launchable& k, const CallArgs& args) {
  auto dict = make<Dict>();
  auto params = k.innermost().kernel.params();
  for (size_t i = 0; i < std::min(params.size(), args.args.size()); ++i) dict->table.set(params[i].name, args.args[i]);
  for (const KeywordArg& a : args.keywords) dict->table.set(a.name, a.value);
  return dict;
}

void copy_args(const CallArgs& from, CallArgs& to) {
  to.site = from.site;
  for (const Value& v : from.args) to.args.push_back(v);
  for (const KeywordArg& k : from.keywords) to.keywords.push_back(k);
}

// --- heuristics
// -----------------------------------------------------------------------------------------------------------

class Heuristics : public Launchable {
 public:
  static constexpr Kind kKind = Kind::kHeuristics;
  Heuristics(Ref<Launchable> k, Ref<Dict> v) : Launchable(kKind), inner_(std::move(k)), values_(std::move(v)) {}
  void launch(Interp& in, const Value& grid, CallArgs& args) override {
    add_values(in, args);
    inner_->launch(in, grid, args);
  }
  Value warmup(Interp& in, const Value& grid, CallArgs& args) override {
    add_values(in, args);
    return inner_->warmup(in, grid, args);
  }
  KernelObject& innermost() override { return inner_->innermost(); }
  std::optional<Value> attribute(Interp& in, std::string_view name) override {
    if (name == "fn") return Value(inner_);
    return inner_->attribute(in, name);
  }

 private:
  void add_values(Interp& in, CallArgs& args) {
    SourceRange site = in.where();
    for (const auto& e : values_->table.entries()) {
      if (e.key.missing()) continue;
      const std::string& name = e.key.get<Str>()->text;
      Value v = in.call(e.value, {named_args(*inner_, args)});
      auto* given =
          std::find_if(args.keywords.begin(), args.keywords.end(), [&](const KeywordArg& k) { return k.name == name; });
      if (given != args.keywords.end())
        given->value = std::move(v);
      else
        args.keywords.push_back({name, std::move(v), e.key});
    }
    in.set_where(site);
  }

  Ref<Launchable> inner_;
  Ref<Dict> values_;
};

Value heuristics(Interp& in, NativeArgs& a) {
  auto* values = a[0].get<Dict>();
  if (!values)
    in.fail(ErrorKind::kType, "@triton.heuristics needs a dict from parameter names to functions, got '{}'",
            in.type_name(a[0]));
  for (const auto& e : values->table.entries())
    if (!e.key.missing()) in.to_text(e.key, "a parameter's name");
  auto o = make<Opaque>("triton.heuristics(…)");
  o->on_call = [values = Ref<Dict>(values)](Interp& interp, CallArgs& args) -> Value {
    if (args.args.size() != 1) interp.fail(ErrorKind::kType, "@triton.heuristics(…) decorates one kernel");
    return make<Heuristics>(Ref<Launchable>(&inner_of(interp, args.args[0], "@triton.heuristics")), values);
  };
  return o;
}

// --- autotune
// -------------------------------------------------------------------------------------------------------------

struct TunerOptions {
  std::vector<Ref<ConfigObject>> configs;
  std::vector<std::string> key, reset_to_zero, restore_value;
  Value early_prune, perf_model, top_k, pre_hook;
  double warmup_ms = 25, rep_ms = 100;
};

class Autotuner : public Launchable {
 public:
  static constexpr Kind kKind = Kind::kAutotuner;
  Autotuner(Ref<Launchable> k, TunerOptions o) : Launchable(kKind), inner_(std::move(k)), options_(std::move(o)) {}

  void launch(Interp& in, const Value& grid, CallArgs& args) override {
    SourceRange site = in.where();
    Ref<ConfigObject> config = choose(in, grid, args);
    in.set_where(site);
    if (!config->pre_hook.missing() && !config->pre_hook.is_none()) run_hook(in, *config, args);
    apply(in, *config, args);
    in.set_where(site);
    inner_->launch(in, grid, args);
  }
  Value warmup(Interp& in, const Value& grid, CallArgs& args) override {
    // Each configuration would be compiled by its first launch; the first one stands for them.
    apply(in, options_.configs.size() == 1 || best_.get() == nullptr ? *options_.configs[0] : *best_, args);
    return inner_->warmup(in, grid, args);
  }
  KernelObject& innermost() override { return inner_->innermost(); }
  std::optional<Value> attribute(Interp& in, std::string_view name) override {
    if (name == "fn") return Value(inner_);
    if (name == "best_config") {
      if (!best_)
        in.fail_as("AttributeError", "the kernel {} has not been tuned yet: launch it first",
                   innermost().kernel.name());
      return Value(best_);
    }
    if (name == "configs") {
      auto list = make<List>();
      for (const auto& c : options_.configs) list->items.push_back(c);
      return Value(list);
    }
    if (name == "cache") {
      auto dict = make<Dict>();
      for (const auto& [key, config] : cache_) dict->table.set(key, config);
      return Value(dict);
    }
    return inner_->attribute(in, name);
  }

 private:
  struct Candidate {
    Ref<ConfigObject> config;
    std::vector<double> ms;
  };

  std::string cache_key(Interp& in, const CallArgs& args) {
    Ref<Dict> named = named_args(*inner_, args);
    std::string key;
    for (const std::string& k : options_.key) {
      Value* v = named->table.find(k);
      key += (v ? v->get<TensorObject>() ? v->get<TensorObject>()->summary() : in.repr(*v) : "-") + "|";
    }
    for (const auto& e : named->table.entries())
      if (auto* t = e.key.missing() ? nullptr : e.value.get<TensorObject>())
        key += fmt::format("{},", kiln::name(t->tensor.dtype()));
    return key;
  }

  void apply(Interp& in, const ConfigObject& config, CallArgs& args) {
    auto params = innermost().kernel.params();
    for (const auto& e : config.kwargs->table.entries()) {
      if (e.key.missing()) continue;
      const std::string& name = e.key.get<Str>()->text;
      bool by_name =
          std::any_of(args.keywords.begin(), args.keywords.end(), [&](const KeywordArg& k) { return k.name == name; });
      bool by_place = false;
      for (size_t i = 0; i < std::min(params.size(), args.args.size()); ++i) by_place |= params[i].name == name;
      if (by_name || by_place)
        in.fail(with_note(error(ErrorKind::kValue,
                                "the parameter '{}' is chosen by the autotuner and also given in the launch", name),
                          "help: leave it out of the launch"));
      args.keywords.push_back({name, e.value, e.key});
    }
    for (auto [name, value] : {std::pair<std::string_view, int64_t>{"num_warps", config.num_warps},
                               {"num_stages", config.num_stages},
                               {"num_ctas", config.num_ctas}}) {
      if (std::any_of(args.keywords.begin(), args.keywords.end(),
                      [&, n = name](const KeywordArg& k) { return k.name == n; }))
        in.fail(
            with_note(error(ErrorKind::kValue, "'{}' is chosen by the autotuner and also given in the launch", name),
                      "help: leave it out of the launch"));
      args.keywords.push_back({name, Value::integer(value), {}});
    }
  }

  void run_hook(Interp& in, const ConfigObject& config, const CallArgs& args) {
    Ref<Dict> all = named_args(*inner_, args);
    Ref<Dict> extra = config.all_kwargs();
    for (const auto& e : extra->table.entries())
      if (!e.key.missing()) all->table.set(e.key.get<Str>()->text, e.value);
    in.call(config.pre_hook, {all});
  }

  std::vector<Ref<ConfigObject>> pruned(Interp& in, const CallArgs& args) {
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
    size_t keep = options_.top_k.is_float() || top <= 1
                      ? static_cast<size_t>(std::ceil(top * static_cast<double>(options_.configs.size())))
                      : static_cast<size_t>(top);
    if (configs.size() <= keep) return configs;
    std::vector<std::pair<double, Ref<ConfigObject>>> ranked;
    for (const auto& c : configs) {
      CallArgs call;
      for (const auto& dict : {named, c->all_kwargs()})
        for (const auto& e : dict->table.entries())
          if (!e.key.missing()) call.keywords.push_back({e.key.get<Str>()->text, e.value, e.key});
      ranked.emplace_back(in.to_double(in.call(options_.perf_model, call), "the result of perf_model"), c);
    }
    std::stable_sort(ranked.begin(), ranked.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    configs.clear();
    for (size_t i = 0; i < keep; ++i) configs.push_back(ranked[i].second);
    return configs;
  }

  Ref<ConfigObject> choose(Interp& in, const Value& grid, const CallArgs& args) {
    if (options_.configs.size() == 1) return best_ = options_.configs[0];
    std::string key = cache_key(in, args);
    auto it = cache_.find(key);
    if (it == cache_.end()) it = cache_.emplace(key, tune(in, grid, args)).first;
    return best_ = it->second;
  }

  /// Times the candidates in turns, so that a clock that drifts hits all of them alike; the least median wins.
  Ref<ConfigObject> tune(Interp& in, const Value& grid, const CallArgs& args) {
    std::vector<Candidate> candidates;
    std::string failures;
    Ref<Dict> named = named_args(*inner_, args);
    Device device = in.device();
    std::vector<std::pair<Tensor, Tensor>> saved;
    auto tensor_named = [&](const std::string& name) -> const Tensor* {
      Value* v = named->table.find(name);
      auto* t = v ? v->get<TensorObject>() : nullptr;
      return t ? &t->tensor : nullptr;
    };
    for (const auto& e : named->table.entries())
      if (auto* t = e.key.missing() ? nullptr : e.value.get<TensorObject>()) device = t->tensor.device();
    for (const std::string& name : options_.restore_value)
      if (const Tensor* t = tensor_named(name)) {
        Tensor copy = in.take(Tensor::empty(t->device(), t->dtype(), t->shape()));
        in.check(copy.copy_from(*t));
        saved.emplace_back(*t, copy);
      }
    auto before = [&](const ConfigObject& c) {
      for (const std::string& name : options_.reset_to_zero)
        if (const Tensor* t = tensor_named(name)) in.check(t->fill(0));
      if (!options_.pre_hook.missing() && !options_.pre_hook.is_none()) in.call(options_.pre_hook, {named});
      if (!c.pre_hook.missing() && !c.pre_hook.is_none()) run_hook(in, c, args);
    };
    auto restore = [&] {
      for (const auto& [to, from] : saved) in.check(to.copy_from(from));
    };
    auto run = [&](const ConfigObject& c) {
      CallArgs copy;
      copy_args(args, copy);
      apply(in, c, copy);
      inner_->launch(in, grid, copy);
    };
    for (const auto& c : pruned(in, args)) {
      in.check_interrupt();
      try {
        before(*c);
        run(*c);
        in.check(device.synchronize());
        candidates.push_back({c, {}});
      } catch (ScriptError& e) {
        if (e.diagnostic.kind == ErrorKind::kInterrupted) throw;
        failures += (failures.empty() ? "" : "; ") + c->repr(in) + ": " + e.diagnostic.message;
      }
      restore();
    }
    if (candidates.empty())
      in.fail(with_note(
          error(ErrorKind::kLaunch, "no configuration of the kernel {} works here", innermost().kernel.name()),
          failures));
    double spent = 0, budget = options_.rep_ms * static_cast<double>(candidates.size());
    double warmed = 0;  // the first turns warm caches and clocks up and are not counted
    for (int round = 0; round < kMaxRounds && (round < kMinRounds || spent < budget); ++round) {
      bool warming = round == 0 || (warmed < options_.warmup_ms && round < kMaxWarmup);
      for (Candidate& c : candidates) {
        in.check_interrupt();
        before(*c.config);
        Event start = in.take(device.record());
        run(*c.config);
        Event stop = in.take(device.record());
        double ms = in.take(device.elapsed_ms(start, stop));
        (warming ? warmed : spent) += ms;
        if (!warming) c.ms.push_back(ms);
        restore();
      }
    }
    auto median = [](Candidate& c) {
      std::nth_element(c.ms.begin(), c.ms.begin() + static_cast<ptrdiff_t>(c.ms.size() / 2), c.ms.end());
      return c.ms[c.ms.size() / 2];
    };
    auto best = std::min_element(candidates.begin(), candidates.end(),
                                 [&](Candidate& a, Candidate& b) { return median(a) < median(b); });
    const char* print = std::getenv("TRITON_PRINT_AUTOTUNING");
    if (print && std::string_view(print) == "1")
      in.print(fmt::format("autotuning {}: best of {} configurations is {} ({:.4f} ms)\n", innermost().kernel.name(),
                           candidates.size(), best->config->repr(in), median(*best)));
    for (const std::string& name : options_.reset_to_zero)
      if (const Tensor* t = tensor_named(name)) in.check(t->fill(0));
    return best->config;
  }

  static constexpr int kMaxWarmup = 10, kMinRounds = 14, kMaxRounds = 60;
  Ref<Launchable> inner_;
  TunerOptions options_;
  std::map<std::string, Ref<ConfigObject>> cache_;
  Ref<ConfigObject> best_;
};

std::vector<std::string> names(Interp& in, const Value& v, std::string_view what) {
  std::vector<std::string> out;
  if (v.missing() || v.is_none()) return out;
  for (const Value& name : in.to_vector(v)) out.push_back(in.to_text(name, what));
  return out;
}

/// (configs, key, prune_configs_by, reset_to_zero, restore_value, pre_hook, post_hook, warmup, rep, …)
Value autotune(Interp& in, NativeArgs& a) {
  TunerOptions o;
  for (const Value& v : in.to_vector(a[0])) {
    auto* c = v.get<ConfigObject>();
    if (!c) in.fail(ErrorKind::kType, "autotune's configs must be triton.Config(…), got '{}'", in.type_name(v));
    o.configs.emplace_back(c);
  }
  if (o.configs.empty()) {
    auto c = make<ConfigObject>();
    c->kwargs = make<Dict>();
    o.configs.push_back(c);
  }
  o.key = names(in, a[1], "autotune's key");
  if (!a[2].missing() && !a[2].is_none()) {
    auto* prune = a[2].get<Dict>();
    if (!prune) in.fail(ErrorKind::kType, "prune_configs_by must be a dict, got '{}'", in.type_name(a[2]));
    auto find = [&](std::string_view k) {
      Value* v = prune->table.find(k);
      return v ? *v : Value();
    };
    o.early_prune = find("early_config_prune");
    o.perf_model = find("perf_model");
    o.top_k = find("top_k");
  }
  o.reset_to_zero = names(in, a[3], "reset_to_zero");
  o.restore_value = names(in, a[4], "restore_value");
  o.pre_hook = a[5];
  if (!a[6].missing() && !a[6].is_none())
    in.fail(ErrorKind::kUnsupported, "autotune's post_hook is not supported: use pre_hook or restore_value");
  if (!a[7].missing() && !a[7].is_none()) o.warmup_ms = in.to_double(a[7], "warmup");
  if (!a[8].missing() && !a[8].is_none()) o.rep_ms = in.to_double(a[8], "rep");
  auto decorator = make<Opaque>("triton.autotune(…)");
  decorator->on_call = [o](Interp& interp, CallArgs& args) -> Value {
    if (args.args.size() != 1) interp.fail(ErrorKind::kType, "@triton.autotune(…) decorates one kernel");
    Launchable& inner = inner_of(interp, args.args[0], "@triton.autotune");
    std::vector<std::string> params;
    for (const ParamDesc& p : inner.innermost().kernel.params()) params.push_back(p.name);
    auto known = [&](const std::string& name, std::string_view what) {
      if (std::find(params.begin(), params.end(), name) != params.end()) return;
      std::string near = nearest_name(name, params);
      Diagnostic d = error(ErrorKind::kName, "{} of autotune names '{}', which is no parameter of {}", what, name,
                           inner.innermost().kernel.name());
      interp.fail(near.empty() ? std::move(d) : with_note(std::move(d), fmt::format("help: did you mean '{}'?", near)));
    };
    for (const std::string& k : o.key) known(k, "the key");
    for (const std::string& k : o.reset_to_zero) known(k, "reset_to_zero");
    for (const std::string& k : o.restore_value) known(k, "restore_value");
    for (const auto& c : o.configs)
      for (const auto& e : c->kwargs->table.entries())
        if (!e.key.missing()) known(e.key.get<Str>()->text, "a Config");
    return make<Autotuner>(Ref<Launchable>(&inner), o);
  };
  return decorator;
}

Value config(Interp& in, NativeArgs& a) {
  auto c = make<ConfigObject>();
  auto* kwargs = a[0].get<Dict>();
  if (!kwargs) in.fail(ErrorKind::kType, "triton.Config needs a dict of parameters, got '{}'", in.type_name(a[0]));
  c->kwargs = Ref<Dict>(kwargs);
  for (const auto& e : kwargs->table.entries())
    if (!e.key.missing()) in.to_text(e.key, "a key of triton.Config");
  if (!a[1].missing()) c->num_warps = in.to_int(a[1], "num_warps");
  if (!a[2].missing()) c->num_stages = in.to_int(a[2], "num_stages");
  if (!a[3].missing()) c->num_ctas = in.to_int(a[3], "num_ctas");
  if (!a[4].missing() && !a[4].is_none())
    in.fail(ErrorKind::kUnsupported, "maxnreg is not supported yet: leave it out");
  c->pre_hook = a[5];
  return c;
}

constexpr NativeDef kTuning[] = {
    {"autotune(configs, key, prune_configs_by=None, reset_to_zero=None, restore_value=None, pre_hook=None, "
     "post_hook=None, warmup=None, rep=None, use_cuda_graph=False, do_bench=None, "
     "cache_results=False)",
     autotune, "times the configurations at the first launch of each key and keeps the fastest"},
    {"heuristics(values)", heuristics, "computes parameters from the others at each launch"},
    {"Config(kwargs, num_warps=4, num_stages=3, num_ctas=1, maxnreg=None, pre_hook=None, ir_override=None)", config,
     "one configuration for autotune"},
};

}  // namespace

void install_tuning(ModuleObject& triton) { add_functions(triton, kTuning); }

}  // namespace kiln::script
