#include "repl/session/tune_launch.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <random>
#include <type_traits>

#include "compiler/parse/parser.h"
#include "profiler/compare/comparison.h"
#include "profiler/tune/output_check.h"
#include "profiler/tune/records.h"
#include "repl/modules/torch/tensor_object.h"
#include "repl/modules/triton/autotuner.h"
#include "repl/modules/triton/options.h"
#include "repl/modules/triton/session_records.h"
#include "repl/script/interp/interp.h"
#include "runtime/launch/args.h"
#include "support/diag.h"

namespace kiln::script {

namespace {

constexpr int64_t kLeastTuned = 8;     // powers of two below are flags and counts rather than sizes
constexpr size_t kMostByDefault = 64;  // configurations when nobody named axes
constexpr size_t kMostConfigurations = 4096;
constexpr double kCompare_s = 3;  // most, for the winner against the present configuration

const LaunchOption* tuned_option(std::string_view name) {
  const LaunchOption* o = find_launch_option(name);
  return o && o->is_tuned() ? o : nullptr;
}

std::string tuned_options() {
  std::string out;
  for (const LaunchOption& o : kLaunchOptions)
    if (o.is_tuned()) out += (out.empty() ? "" : ", ") + std::string(o.name);
  return out;
}

struct Axis {
  std::string name;
  std::vector<Value> values;
};

/// One choice for each axis, in their order.
using Choice = std::vector<Value>;

class LaunchTuner {
 public:
  /// `part`: the configurations of a part; null: all of them.
  LaunchTuner(Session& session, const TuneRequest& request, const std::vector<size_t>* part = nullptr)
      : in_(session.interp()), session_(session), request_(request), part_(part) {}

  Result<std::vector<std::string>> configurations() {
    KILN_CHECK_OK(prepare());
    std::vector<std::string> labels;
    for (const profiler::TuneCandidate& c : candidates_) labels.push_back(c.config);
    return labels;
  }

  Result<TuneOutcome> run() {
    KILN_CHECK_OK(prepare());
    keep_part();
    KILN_TRY(profiler::TuneOptions options, tune_options());
    KILN_TRY(out_.result, profiler::tune(out_.device, candidates_, options));
    // What was pressed has been heard; the rest is printing.
    if (out_.result.interrupted) session_.forget_interrupt();
    if (finish_) KILN_CHECK_OK(finish_());
    if (check_) KILN_CHECK_OK(check_->restore());
    if (part_) return std::move(out_);
    if (out_.result.best < 0) return nothing_found();
    if (!out_.result.unchecked.empty()) out_.notes.push_back("accesses were not checked: " + out_.result.unchecked);
    KILN_CHECK_OK(caught([&] { hand_over(); }));
    return std::move(out_);
  }

 private:
  Status prepare() {
    return caught([&] {
      read_launch();
      make_candidates();
    });
  }

  /// Leaves those of the part and the launch as it stands, which comes first: the others are checked against it.
  void keep_part() {
    for (size_t i = 0; i < candidates_.size(); ++i) out_.numbers.push_back(i);
    if (!part_) return;
    const auto present = static_cast<size_t>(out_.present);
    out_.numbers = {present};
    for (size_t i : *part_)
      if (i != present) out_.numbers.push_back(i);
    auto keep = [&](auto& all) {
      std::remove_reference_t<decltype(all)> kept;
      for (size_t i : out_.numbers) kept.push_back(std::move(all[i]));
      all = std::move(kept);
    };
    keep(candidates_), keep(chosen_), keep(out_.configs);
    out_.present = 0;
  }

  // --- the launch ---

  void read_launch() {
    std::string text = request_.launch;
    const bool bare = text.find_first_of("[(") == std::string::npos;
    if (bare) text = known_launch(text);
    auto module = in_.take(parse::parse_module(SourceText::make("<%tune>", text)));
    const auto* statement = module->body.size() == 1 ? ast::dyn_as<ast::ExprStmt>(module->body[0].get()) : nullptr;
    const auto* call = statement ? ast::dyn_as<ast::Call>(statement->value.get()) : nullptr;
    if (!call || !ast::dyn_as<ast::Subscript>(call->callee.get()))
      in_.fail(with_note(error(ErrorKind::kSyntax, "%tune takes a launch, got '{}'", text),
                         "help: %tune kernel[grid](x, y, n, BLOCK=1024)"));
    program_ = in_.take(resolve(std::move(module), in_.globals()));
    Value base;
    in_.evaluate_launch(program_, *call, base, grid_, args_);
    base_ = Ref<Launchable>(launchable(base));
    if (!base_)
      in_.fail(ErrorKind::kType, "'{}' is no kernel but '{}'",
               ast::dyn_as<ast::Subscript>(call->callee.get())->base->range.str(), in_.type_name(base));
    autotuner_ = base.get<Autotuner>();
    out_.kernel = base_->innermost().kernel.name();
    out_.device = torch_state(in_).device();
    auto look = [&](const Value& v) {
      if (auto* t = v.get<TensorObject>()) out_.device = t->device();
    };
    for (const Value& v : args_.args) look(v);
    for (const KeywordArg& k : args_.keywords) look(k.value);
  }

  std::string known_launch(const std::string& name) {
    Globals::Slot* slot = in_.globals().find(name);
    if (!slot || slot->value.missing())
      in_.fail(with_note(error(ErrorKind::kName, "there is no kernel '{}'", name),
                         "help: %tune kernel[grid](x, y, n, BLOCK=1024)"));
    if (!launchable(slot->value))
      in_.fail(ErrorKind::kType, "'{}' is no kernel but '{}'", name, in_.type_name(slot->value));
    if (auto text = session_.last_launch(name)) return *text;
    in_.fail(with_note(error(ErrorKind::kValue, "no launch of {} outside of functions is known yet", name),
                       fmt::format("help: launch it, or write the launch: %tune {}[grid](…)", name)));
  }

  // --- configurations ---

  void make_candidates() {
    if (autotuner_ && request_.axes.empty()) {
      Autotuner::Field field = autotuner_->field(in_, grid_, args_);
      candidates_ = std::move(field.candidates);
      chosen_ = std::move(field.configs);
      finish_ = std::move(field.finish);
      const Ref<ConfigObject> now = autotuner_->present(in_, args_);
      auto at = std::find_if(chosen_.begin(), chosen_.end(), [&](const auto& c) { return c.get() == now.get(); });
      out_.present = at == chosen_.end() ? 0 : static_cast<int>(at - chosen_.begin());
      for (const auto& c : chosen_) out_.configs.push_back(as_text(*c));
      return;
    }
    if (autotuner_) {
      // The axes say what varies; the rest stays as the autotuner has it.
      Ref<Dict> now = autotuner_->present(in_, args_)->all_kwargs(in_);
      for (const auto& e : now->table.live()) override_argument(args_, e.key.get<Str>()->text, e.value);
      base_ = autotuner_->inner();
      kept_.push_back(now);
      autotuner_ = nullptr;
    }
    profiler::TuneCandidate present = resolved(args_);
    std::vector<Axis> axes;
    for (const TuneAxis& a : request_.axes) axes.push_back(given_axis(a));
    if (axes.empty()) axes = default_axes(present);
    std::vector<Choice> choices = product(axes, present);
    for (size_t i = 0; i < choices.size(); ++i) add(axes, choices[i], i == 0 ? &present : nullptr);
  }

  profiler::TuneCandidate resolved(const CallArgs& args) {
    CallArgs copy;
    copy_args(args, copy);
    return base_->resolve(in_, grid_, copy);
  }

  /// `name` must outlive the arguments.
  void override_argument(CallArgs& args, std::string_view name, const Value& value) {
    for (KeywordArg& k : args.keywords)
      if (k.name == name) {
        k.value = value;
        return;
      }
    auto params = base_->innermost().kernel.params();
    for (size_t i = 0; i < std::min(params.size(), args.args.size()); ++i)
      if (params[i].name == name) {
        args.args[i] = value;
        return;
      }
    args.keywords.push_back({name, value, {}});
  }

  Axis given_axis(const TuneAxis& axis) {
    auto params = base_->innermost().kernel.params();
    auto param = std::find_if(params.begin(), params.end(), [&](const ParamDesc& p) { return p.name == axis.name; });
    if (param == params.end() && !tuned_option(axis.name)) {
      std::vector<std::string> names;
      for (const LaunchOption& o : kLaunchOptions)
        if (o.is_tuned()) names.emplace_back(o.name);
      for (const ParamDesc& p : params)
        if (p.is_constexpr) names.push_back(p.name);
      const std::string near = nearest_name(axis.name, names);
      Diagnostic d = error(ErrorKind::kName, "the kernel {} has no parameter '{}'", out_.kernel, axis.name);
      in_.fail(with_note(std::move(d), near.empty() ? fmt::format("help: tuned can be {}", fmt::join(names, ", "))
                                                    : fmt::format("help: did you mean '{}'?", near)));
    }
    if (param != params.end() && !param->is_constexpr && !tuned_option(axis.name))
      in_.fail(with_note(
          error(ErrorKind::kValue, "'{}' of {} is an argument of the launch, not a constexpr", axis.name, out_.kernel),
          fmt::format("help: tuning varies constexprs and {}; %sweep varies the others", tuned_options())));
    auto module = in_.take(parse::parse_module(SourceText::make("<%tune>", axis.values)));
    const auto* statement = module->body.size() == 1 ? ast::dyn_as<ast::ExprStmt>(module->body[0].get()) : nullptr;
    if (!statement) in_.fail(ErrorKind::kSyntax, "the values of '{}' are no expression: {}", axis.name, axis.values);
    const SourceRange site = in_.where();
    auto program = in_.take(resolve(std::move(module), in_.globals()));
    const Value v = in_.evaluate(program, *statement->value);
    in_.set_where(site);
    Axis out{axis.name, {}};
    for (Value& value : v.get<List>() || v.get<Tuple>() || v.get<Range>() ? in_.to_vector(v) : std::vector<Value>{v}) {
      if (const LaunchOption* o = tuned_option(axis.name)) {
        CodeOptions checked;
        set_option(in_, *o, value, checked);
      }
      const bool again =
          std::any_of(out.values.begin(), out.values.end(), [&](const Value& o) { return in_.equal(o, value); });
      if (!again) out.values.push_back(std::move(value));
    }
    if (out.values.empty()) in_.fail(ErrorKind::kValue, "'{}' has no values to try", axis.name);
    return out;
  }

  std::vector<Axis> default_axes(const profiler::TuneCandidate& present) {
    std::vector<Axis> axes;
    auto params = base_->innermost().kernel.params();
    std::vector<size_t> sizes;
    for (size_t i = 0; i < params.size() && i < present.args.size(); ++i) {
      const auto* v = present.args[i] ? std::get_if<int64_t>(&*present.args[i]) : nullptr;
      if (params[i].is_constexpr && v && *v >= kLeastTuned && std::has_single_bit(static_cast<uint64_t>(*v)))
        sizes.push_back(i);
    }
    const int steps = sizes.size() > 1 ? 1 : 2;
    for (size_t i : sizes) {
      Axis axis{params[i].name, {}};
      const int64_t v = std::get<int64_t>(*present.args[i]);
      for (int step = -steps; step <= steps; ++step) {
        const int64_t other = step < 0 ? v >> -step : v << step;
        if (other >= kLeastTuned) axis.values.push_back(Value::integer(other));
      }
      axes.push_back(std::move(axis));
    }
    auto option = [&](std::string name, std::initializer_list<int64_t> values) {
      Axis axis{std::move(name), {}};
      for (int64_t v : values) axis.values.push_back(Value::integer(v));
      axes.push_back(std::move(axis));
    };
    if (out_.device.is_cuda()) {  // the CPU has neither
      option("num_warps", {2, 4, 8, 16});
      const Result<KernelInfo> info = present.kernel.compile(present.args, present.options);
      if (info.ok() && info->has_dot) option("num_stages", {2, 3, 4, 5});
    }
    if (axes.empty())
      in_.fail(with_note(error(ErrorKind::kValue, "nothing to vary: no constexpr of {} is a power of two from {}",
                               out_.kernel, kLeastTuned),
                         fmt::format("help: say what to try: %tune {}[grid](…) NAME=[…]", out_.kernel)));
    return axes;
  }

  Value present_value(const std::string& name, const profiler::TuneCandidate& present) {
    if (const LaunchOption* o = tuned_option(name)) return option_value(*o, present.options);
    for (const KeywordArg& k : args_.keywords)
      if (k.name == name) return k.value;
    auto params = base_->innermost().kernel.params();
    for (size_t i = 0; i < params.size(); ++i) {
      if (params[i].name != name) continue;
      if (i < args_.args.size()) return args_.args[i];
      const auto& defaults = base_->innermost().function->defaults;
      if (i < defaults.size() && !defaults[i].missing()) return defaults[i];
    }
    return Value::none();  // a heuristic computes it
  }

  /// All choices, the present one first.
  std::vector<Choice> product(const std::vector<Axis>& axes, const profiler::TuneCandidate& present) {
    size_t count = 1;
    for (const Axis& a : axes) {
      count *= a.values.size();
      if (count > kMostConfigurations)
        in_.fail(ErrorKind::kValue, "these are more than {} configurations: leave out values", kMostConfigurations);
    }
    std::vector<Choice> all(1);
    for (const Axis& a : axes) all.front().push_back(present_value(a.name, present));
    for (size_t n = 0; n < count; ++n) {
      Choice choice;
      for (size_t rest = n, i = axes.size(); i-- > 0; rest /= axes[i].values.size())
        choice.insert(choice.begin(), axes[i].values[rest % axes[i].values.size()]);
      bool is_present = true;
      for (size_t i = 0; i < axes.size(); ++i) is_present &= in_.equal(choice[i], all.front()[i]);
      if (!is_present) all.push_back(std::move(choice));
    }
    if (request_.axes.empty() && all.size() > kMostByDefault) {
      out_.notes.push_back(fmt::format("{} of {} configurations, chosen at random; name axes to choose yourself",
                                       kMostByDefault, all.size()));
      std::mt19937_64 random(1);
      std::shuffle(all.begin() + 1, all.end(), random);
      all.resize(kMostByDefault);
    }
    return all;
  }

  /// `present`: the candidate, when it has been resolved.
  void add(const std::vector<Axis>& axes, const Choice& choice, const profiler::TuneCandidate* present) {
    profiler::TuneCandidate candidate;
    auto config = make<ConfigObject>();
    config->kwargs = make<Dict>();
    std::string label;
    CallArgs args;
    copy_args(args_, args);
    for (size_t i = 0; i < axes.size(); ++i) {
      label += fmt::format("{}{}: {}", label.empty() ? "" : ", ", axes[i].name, in_.repr(choice[i]));
      if (!present) override_argument(args, axes[i].name, choice[i]);
      if (!tuned_option(axes[i].name)) config->kwargs->table.set(axes[i].name, choice[i]);
    }
    if (present) {
      candidate = *present;
    } else {
      Status made = caught([&] { candidate = base_->resolve(in_, grid_, args); });
      if (!made.ok() && made.error().kind == ErrorKind::kInterrupted) in_.fail(std::move(made.error()));
      if (!made.ok()) candidate.problem = made.error().message;
    }
    candidate.config = std::move(label);
    config->options = candidate.options;
    out_.configs.push_back(as_text(*config));
    chosen_.push_back(std::move(config));
    candidates_.push_back(std::move(candidate));
  }

  std::string as_text(const ConfigObject& c) {
    return fmt::format("triton.Config({}, {})", in_.repr(Value(c.kwargs)), config_arguments(c.options));
  }

  // --- running ---

  Result<profiler::TuneOptions> tune_options() {
    profiler::TuneOptions o;
    o.budget_s = request_.budget_s;
    o.cache = request_.cache;
    o.check_accesses = request_.check_accesses;
    o.should_stop = [this] { return in_.interrupted.load(std::memory_order_relaxed); };
    if (request_.on_progress)
      o.on_progress = [this](const profiler::TuneProgress& p) { request_.on_progress(p, candidates_); };
    const profiler::TuneCandidate& first = candidates_[static_cast<size_t>(out_.present)];
    auto params = base_->innermost().kernel.params();
    std::vector<std::string> names;
    std::vector<Tensor> outputs;
    for (size_t i = 0; i < params.size() && i < first.args.size(); ++i) {
      const Arg* arg = first.args[i] ? &*first.args[i] : nullptr;
      if (arg && std::holds_alternative<std::shared_ptr<const ArgTuple>>(*arg)) {
        runtime::each_tensor(*arg, [&](const Tensor& t) {
          if (request_.outputs.empty()) outputs.push_back(t);
        });
      } else if (const auto* t = arg ? std::get_if<Tensor>(arg) : nullptr) {
        names.push_back(params[i].name);
        const auto& wanted = request_.outputs;
        if (wanted.empty() || std::find(wanted.begin(), wanted.end(), params[i].name) != wanted.end())
          outputs.push_back(*t);
      }
    }
    for (const std::string& wanted : request_.outputs)
      if (std::find(names.begin(), names.end(), wanted) == names.end())
        return with_note(error(ErrorKind::kName, "check names '{}', which is no tensor of the launch", wanted),
                         fmt::format("help: its tensors are {}", fmt::join(names, ", ")));
    if (request_.check && !outputs.empty()) {
      auto made = profiler::OutputCheck::make(std::move(outputs));
      if (made.ok())
        o.check = &check_.emplace(std::move(*made));
      else
        out_.notes.push_back("outputs were not compared: " + made.error().message);
    }
    o.before_launches = request_.before_launches;
    if (!part_) o.confirm = [this](const profiler::TuneResult& r) { return compare(r); };
    // A part's times are ratios to the launch as it stands, timed beside them: those of another day would not be.
    if (!first.kernel || part_) return o;
    o.records = &tune_records(in_);
    std::vector<std::string> lines = profiler::argument_lines(first);
    if (autotuner_) {
      KILN_CHECK_OK(caught([&] { lines = autotuner_->record_lines(in_, args_); }));
      o.records_per_grid = false;
    }
    if (request_.cache == profiler::Cache::kHot) lines.push_back("hot caches");
    o.record_key = profiler::record_key(first.kernel, out_.device, lines);
    return o;
  }

  Result<TuneOutcome> nothing_found() {
    if (out_.result.interrupted)
      return error(ErrorKind::kInterrupted, "tuning of {} was stopped before anything was measured", out_.kernel);
    Diagnostic d = error(ErrorKind::kLaunch, "no configuration of the kernel {} works here", out_.kernel);
    std::vector<std::string> reasons;
    for (const profiler::TuneRow& r : out_.result.rows)
      if (!r.reason.empty() && std::find(reasons.begin(), reasons.end(), r.reason) == reasons.end() &&
          reasons.size() < 3) {
        reasons.push_back(r.reason);
        d = with_note(std::move(d), fmt::format("{}: {}", r.config, r.reason));
      }
    return d;
  }

  /// The best one against the launch as it stands.
  Result<std::optional<profiler::InTurns>> compare(const profiler::TuneResult& r) {
    const auto present = static_cast<size_t>(out_.present);
    if (r.best == out_.present || !candidates_[present].problem.empty() ||
        r.rows[present].state == profiler::TuneState::kFailed)
      return std::optional<profiler::InTurns>();
    KILN_TRY(profiler::Timer timer, profiler::Timer::make(out_.device));
    auto sampler = [&](int i) -> profiler::Sampler {
      const profiler::TuneCandidate& c = candidates_[static_cast<size_t>(i)];
      profiler::Sampler timed = timer.sampler({c.config, out_.device, [&c] { return c.launch(); }}, request_.cache);
      return [this, &c, timed]() -> Result<double> {
        if (in_.interrupted.load(std::memory_order_relaxed)) return error(ErrorKind::kInterrupted, "interrupted");
        if (c.prepare) KILN_CHECK_OK(c.prepare());
        return timed();
      };
    };
    profiler::CompareOptions options;
    options.cache = request_.cache;
    options.timeout_s = std::min(kCompare_s, request_.budget_s);
    auto compared =
        profiler::compare_samples(sampler(r.best), sampler(out_.present), options, profiler::steady_seconds);
    if (!compared.ok() && compared.error().kind == ErrorKind::kInterrupted) {
      session_.forget_interrupt();
      return std::optional<profiler::InTurns>();
    }
    if (!compared.ok()) return std::move(compared.error());
    if (compared->verdict == profiler::Verdict::kSlower) {
      out_.notes.push_back(
          fmt::format("{} was the fastest by itself, and SLOWER {:.2f}x in turns with the launch as it "
                      "stands, over {} pairs: its time is that of the turns",
                      r.rows[static_cast<size_t>(r.best)].config, compared->speedup, compared->pairs));
      return std::optional<profiler::InTurns>({r.best, out_.present, compared->a_us.median, compared->b_us.median});
    }
    out_.against = *compared;
    return std::optional<profiler::InTurns>();
  }

  // --- what the script gets ---

  void hand_over() {
    const profiler::TuneResult& r = out_.result;
    const auto best = static_cast<size_t>(r.best);
    if (autotuner_) autotuner_->adopt(in_, args_, chosen_[best]);
    auto dict = [](std::initializer_list<std::pair<std::string_view, Value>> members) {
      auto d = make<Dict>();
      for (const auto& [key, value] : members) d->table.set(key, value);
      return d;
    };
    auto known = [](bool is_known, Value v) { return is_known ? std::move(v) : Value::none(); };
    auto rows = make<List>();
    for (size_t i = 0; i < r.rows.size(); ++i) {
      const profiler::TuneRow& row = r.rows[i];
      std::vector<Value> samples;
      for (double us : row.us) samples.push_back(Value::real(us));
      rows->items.push_back(dict({{"config", Value(chosen_[i])},
                                  {"state", Value::str(std::string(name(row.state)))},
                                  {"reason", known(!row.reason.empty(), Value::str(row.reason))},
                                  {"us", known(!row.us.empty(), Value::real(row.median_us()))},
                                  {"samples_us", make<List>(std::move(samples))},
                                  {"registers", known(row.registers >= 0, Value::integer(row.registers))},
                                  {"spill_bytes", known(row.spill_bytes >= 0, Value::integer(row.spill_bytes))},
                                  {"shared_bytes", known(row.shared_bytes >= 0, Value::integer(row.shared_bytes))},
                                  {"occupancy", known(row.occupancy >= 0, Value::real(row.occupancy))}}));
    }
    Ref<Dict> out =
        dict({{"kernel", Value::str(out_.kernel)},
              {"best", Value(chosen_[best])},
              {"us", Value::real(r.rows[best].median_us())},
              {"speedup", known(out_.against.has_value(), Value::real(out_.against ? out_.against->speedup : 0))},
              {"rows", Value(rows)}});
    out_.value = Value(out);
  }

  Interp& in_;
  Session& session_;
  const TuneRequest& request_;
  const std::vector<size_t>* part_;
  std::shared_ptr<const Program> program_;  // its text holds the keywords' names
  Ref<Launchable> base_;
  Autotuner* autotuner_ = nullptr;  // base_, when it chooses by itself
  Value grid_;
  CallArgs args_;
  std::vector<Ref<Dict>> kept_;  // hold names that args_ refers to
  std::vector<profiler::TuneCandidate> candidates_;
  std::vector<Ref<ConfigObject>> chosen_;
  std::function<Status()> finish_;
  std::optional<profiler::OutputCheck> check_;
  TuneOutcome out_;
};

}  // namespace

Result<TuneOutcome> tune_launch(Session& session, const TuneRequest& request) {
  Result<TuneOutcome> out = LaunchTuner(session, request).run();
  session.interp().set_where({});  // the text is gone
  return out;
}

Result<std::vector<std::string>> tune_configurations(Session& session, const TuneRequest& request) {
  auto out = LaunchTuner(session, request).configurations();
  session.interp().set_where({});
  return out;
}

Result<TuneOutcome> tune_part(Session& session, const TuneRequest& request, const std::vector<size_t>& numbers) {
  Result<TuneOutcome> out = LaunchTuner(session, request, &numbers).run();
  session.interp().set_where({});
  return out;
}

}  // namespace kiln::script
