// @triton.autotune and @triton.heuristics.
#include <fmt/format.h>

#include <algorithm>

#include "repl/modules/triton/autotuner.h"
#include "repl/modules/triton/options.h"
#include "support/diag.h"

namespace kiln::script {

std::optional<Value> ConfigObject::attribute(Interp& in, std::string_view name) {
  if (name == "kwargs") return Value(kwargs);
  if (const LaunchOption* o = find_launch_option(name); o && o->is_tuned()) return option_value(*o, options);
  if (name == "pre_hook") return pre_hook.missing() ? Value::none() : pre_hook;
  if (name == "all_kwargs") {
    auto o = make<Opaque>("all_kwargs");
    o->on_call = [all = all_kwargs(in)](Interp&, CallArgs&) -> Value { return all; };
    return Value(o);
  }
  return std::nullopt;
}

void ConfigObject::attribute_names(std::vector<std::string>& out) const {
  out.insert(out.end(), {"kwargs", "pre_hook", "all_kwargs"});
  for (const LaunchOption& o : kLaunchOptions)
    if (o.is_tuned()) out.emplace_back(o.name);
}

std::string ConfigObject::repr(Interp& in) {
  std::string out;
  for (const auto& e : kwargs->table.live()) out += in.str(e.key) + ": " + in.str(e.value) + ", ";
  return out + tuned_text(options);
}

Ref<Dict> ConfigObject::all_kwargs(Interp& in) const {
  auto d = make<Dict>();
  for (const auto& e : kwargs->table.live()) d->table.set(in.to_text(e.key, "a key of triton.Config"), e.value);
  for (const LaunchOption& o : kLaunchOptions)
    if (o.is_tuned()) d->table.set(std::string(o.name), option_value(o, options));
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

// --- heuristics
// -----------------------------------------------------------------------------------------------------------

class Heuristics : public Launchable {
 public:
  static inline const KindOf<Heuristics> kKind{"Heuristics"};
  Heuristics(Ref<Launchable> k, Ref<Dict> v) : Launchable(kKind), inner_(std::move(k)), values_(std::move(v)) {}
  void launch(Interp& in, const Value& grid, CallArgs& args) override {
    add_values(in, args);
    inner_->launch(in, grid, args);
  }
  Value warmup(Interp& in, const Value& grid, CallArgs& args) override {
    add_values(in, args);
    return inner_->warmup(in, grid, args);
  }
  profiler::TuneCandidate resolve(Interp& in, const Value& grid, CallArgs& args) override {
    add_values(in, args);
    return inner_->resolve(in, grid, args);
  }
  KernelObject& innermost() override { return inner_->innermost(); }
  std::optional<Value> attribute(Interp& in, std::string_view name) override {
    if (name == "fn") return Value(inner_);
    return inner_->attribute(in, name);
  }

 private:
  void add_values(Interp& in, CallArgs& args) {
    SourceRange site = in.where();
    for (const auto& e : values_->table.live()) {
      const std::string& name = in.to_text(e.key, "a parameter's name");
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
  for (const auto& e : values->table.live()) in.to_text(e.key, "a parameter's name");
  auto o = make<Opaque>("triton.heuristics(…)");
  o->on_call = [values = Ref<Dict>(values)](Interp& interp, CallArgs& args) -> Value {
    if (args.args.size() != 1) interp.fail(ErrorKind::kType, "@triton.heuristics(…) decorates one kernel");
    return make<Heuristics>(Ref<Launchable>(&inner_of(interp, args.args[0], "@triton.heuristics")), values);
  };
  return o;
}

// --- autotune
// -------------------------------------------------------------------------------------------------------------

std::vector<std::string> names(Interp& in, const Value& v, std::string_view what) {
  std::vector<std::string> out;
  if (v.missing() || v.is_none()) return out;
  for (const Value& name : in.to_vector(v)) out.push_back(in.to_text(name, what));
  return out;
}

/// (configs, key, prune_configs_by, reset_to_zero, restore_value, pre_hook, post_hook, warmup, rep, …)
Value autotune(Interp& in, NativeArgs& a) {
  AutotunerOptions o;
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
  // Times are the device's own behind a queue of other work, so that a graph would show the same: nothing to choose.
  if (!a[9].missing()) in.truth(a[9]);
  o.do_bench = a[10];
  if (!a[11].missing() && !a[11].is_none()) o.use_records = in.truth(a[11]);
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
      for (const auto& e : c->kwargs->table.live()) known(interp.to_text(e.key, "a key of triton.Config"), "a Config");
    return make<Autotuner>(Ref<Launchable>(&inner), o);
  };
  return decorator;
}

Value config(Interp& in, NativeArgs& a) {
  auto c = make<ConfigObject>();
  auto* kwargs = a[0].get<Dict>();
  if (!kwargs) in.fail(ErrorKind::kType, "triton.Config needs a dict of parameters, got '{}'", in.type_name(a[0]));
  c->kwargs = Ref<Dict>(kwargs);
  for (const auto& e : kwargs->table.live()) in.to_text(e.key, "a key of triton.Config");
  size_t next = 1;
  for (const LaunchOption& o : kLaunchOptions) {
    if (!o.is_tuned()) continue;
    if (const Value& v = a[next++]; !v.missing()) set_option(in, o, v, c->options);
  }
  c->pre_hook = a[next];
  return c;
}

constexpr NativeDef kTuning[] = {
    {"autotune(configs, key, prune_configs_by=None, reset_to_zero=None, restore_value=None, pre_hook=None, "
     "post_hook=None, warmup=None, rep=None, use_cuda_graph=False, do_bench=None, "
     "cache_results=None)",
     autotune, "times the configurations at the first launch of each key and keeps the fastest"},
    {"heuristics(values)", heuristics, "computes parameters from the others at each launch"},
};

const std::string& config_signature() {
  static const std::string kSignature = [] {
    std::string text = "Config(kwargs";
    for (const LaunchOption& o : kLaunchOptions)
      if (o.is_tuned()) text += fmt::format(", {}={}", o.name, o.python_default);
    return text + ", pre_hook=None, ir_override=None)";
  }();
  return kSignature;
}

}  // namespace

void install_tuning_methods(Interp& in) {
  in.add_methods({Autotuner::kKind, launch_methods()});
  in.add_methods({Heuristics::kKind, launch_methods()});
}

void install_tuning(ModuleObject& triton) {
  static const NativeDef kConfig[] = {{config_signature(), config, "one configuration for autotune"}};
  add_functions(triton, kTuning);
  add_functions(triton, kConfig);
}

}  // namespace kiln::script
