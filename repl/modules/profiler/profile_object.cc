#include "repl/modules/profiler/profile_object.h"

#include <algorithm>

#include "profiler/profile/chrome_trace.h"
#include "profiler/profile/intervals.h"
#include "profiler/profile/stacks.h"
#include "repl/modules/torch/torch_state.h"
#include "repl/script/builtins/builtins.h"

namespace kiln::script {

using profiler::ProfileSession;
using profiler::StepAction;

StepAction ProfileObject::action() const {
  return settings_.schedule ? settings_.schedule->at(step_) : StepAction::kActive;
}

void ProfileObject::enter(Interp& in) {
  if (state_ == State::kInside) in.fail(ErrorKind::kValue, "this profile is already running");
  step_ = 0;
  timeline_.reset();
  state_ = State::kInside;
  try {
    begin_step(in);
  } catch (ScriptError&) {
    state_ = State::kEnded;
    throw;
  }
}

void ProfileObject::begin_step(Interp& in) {
  const StepAction now = action();
  // While it waits nothing is attached, so that these steps run at full speed.
  if (now == StepAction::kWait) return;
  if (warming_ && now == StepAction::kActive) {
    // A session of its own for the warm-up: attaching is what warms up most.
    in.take(session_->stop());  // what the warm-up did is forgotten
    session_.reset();
  }
  warming_ = now == StepAction::kWarmup;
  if (!session_) {
    auto started = ProfileSession::start(torch_state(in).device(), settings_.session);
    if (!started.ok()) {
      // Kept for timeline(), which is asked after the block has failed.
      problem_ = started.error().message;
      in.fail(std::move(started.error()));
    }
    session_ = *std::move(started);
  }
  step_start_ = warming_ ? 0 : trace::now_ns();
}

void ProfileObject::end_step() {
  // A warm-up has no range of its own.
  if (step_start_ == 0) return;
  trace::Event event;
  event.step = trace::Step::kRange;
  event.name = profiler::kStepRange;
  event.start_ns = step_start_;
  event.end_ns = trace::now_ns();
  trace::add(std::move(event));
  step_start_ = 0;
}

Status ProfileObject::stop() {
  auto seen = session_->stop();
  session_.reset();
  warming_ = false;
  if (!seen.ok()) {
    problem_ = seen.error().message;
    return std::move(seen.error());
  }
  timeline_ = *std::move(seen);
  return {};
}

void ProfileObject::ready(Interp& in) {
  if (!settings_.on_ready.missing() && !settings_.on_ready.is_none()) in.call(settings_.on_ready, {Value(this)});
}

void ProfileObject::step(Interp& in) {
  if (state_ != State::kInside) in.fail(ErrorKind::kValue, "step() belongs into the profile's `with` block");
  end_step();
  const bool ends = settings_.schedule && settings_.schedule->ends_cycle(step_);
  ++step_;
  if (ends) {
    // Before on_ready, whose own work belongs to no step.
    in.check(stop());
    ready(in);
  }
  begin_step(in);
}

void ProfileObject::leave(Interp& in, const std::string& raised) {
  const bool failed = !raised.empty();
  end_step();
  state_ = State::kEnded;
  if (!session_) return;
  if (warming_) {
    // The block ended before anything was kept.
    Status stopped = [&]() -> Status {
      auto seen = session_->stop();
      return seen.ok() ? Status{} : Status(std::move(seen.error()));
    }();
    session_.reset();
    warming_ = false;
    if (!failed) in.check(std::move(stopped));
    return;
  }
  Status stopped = stop();
  if (failed) {
    // What was seen until then is worth showing, with the reason why it ends.
    if (timeline_) timeline_->unknown.push_back(profiler::cut_short(raised));
    return;
  }
  in.check(std::move(stopped));
  ready(in);
}

const profiler::Timeline& ProfileObject::timeline(Interp& in) const {
  if (timeline_) return *timeline_;
  if (!problem_.empty()) in.fail(ErrorKind::kValue, "there is no profile: {}", problem_);
  switch (state_) {
    case State::kNew:
      in.fail(ErrorKind::kValue, "nothing is profiled yet: it is of a block, `with profile() as p:`");
    case State::kInside:
      in.fail(ErrorKind::kValue, "the profile is still running: its tables are available after its `with` block");
    case State::kEnded:
      break;
  }
  const profiler::Schedule schedule = settings_.schedule.value_or(profiler::Schedule{});
  in.fail(ErrorKind::kValue,
          "nothing was kept: the schedule keeps steps from the {}th on, and the block made {} (p.step() ends one)",
          schedule.skip_first + schedule.wait + schedule.warmup + 1, step_ + 1);
}

std::string ProfileObject::tables(Interp& in, const profiler::ProfileView& view) const {
  std::string out;
  for (const profiler::NamedTable& t : profiler::profile_tables(timeline(in), view))
    out += (out.empty() ? "" : "\n") + report::to_text(t.table);
  return out;
}

namespace {

ProfileObject& self_of(const NativeArgs& a) { return *a.self->get<ProfileObject>(); }

Value enter(Interp& in, NativeArgs& a) {
  self_of(a).enter(in);
  return *a.self;
}
Value leave(Interp& in, NativeArgs& a) {
  const std::vector<Value>& about = a[0].get<Tuple>()->items;
  // The exception goes on: profiles swallow nothing.
  const bool raised = !about.empty() && !about[0].is_none();
  self_of(a).leave(in, raised ? in.str(in.attribute(about[0], "__name__")) : "");
  return Value::boolean(false);
}
Value start(Interp& in, NativeArgs& a) {
  self_of(a).enter(in);
  return Value::none();
}
Value stop(Interp& in, NativeArgs& a) {
  self_of(a).leave(in, "");
  return Value::none();
}
Value step(Interp& in, NativeArgs& a) {
  self_of(a).step(in);
  return Value::none();
}

/// (sort_by, row_limit, …)
profiler::ProfileView view_of(Interp& in, const ProfileObject& profile, const NativeArgs& a) {
  profiler::ProfileView view = profile.view();
  if (!a[0].missing() && !a[0].is_none()) view.ops.sort = in.take(profiler::parse_op_sort(in.to_text(a[0], "sort_by")));
  if (!a[1].missing() && !a[1].is_none()) {
    const int64_t rows = in.to_int(a[1], "row_limit");
    view.ops.rows = rows < 0 ? 0 : rows;  // torch's -1: all
  }
  return view;
}
Value table(Interp& in, NativeArgs& a) {
  profiler::ProfileView view = view_of(in, self_of(a), a);
  auto set = [&](bool& flag, const Value& v) {
    if (!v.missing() && !v.is_none()) flag = in.truth(v);
  };
  set(view.ops.by_shape, a[2]), set(view.ops.lines, a[3]);
  set(view.memory, a[4]), set(view.streams, a[5]);
  return Value::str(self_of(a).tables(in, view));
}
Value key_averages(Interp& in, NativeArgs& a) {
  const int64_t stack = a[1].missing() || a[1].is_none() ? 0 : in.to_int(a[1], "group_by_stack_n");
  return key_averages_of(in, Ref<ProfileObject>(&self_of(a)), !a[0].missing() && in.truth(a[0]),
                         std::max<int64_t>(stack, 0));
}
Value export_chrome_trace(Interp& in, NativeArgs& a) {
  in.check(profiler::write_chrome_trace(self_of(a).timeline(in), in.to_text(a[0], "the trace's path")));
  return Value::none();
}

/// (path, metric)
Value export_stacks(Interp& in, NativeArgs& a) {
  const std::string metric = a[1].missing() ? "self_cpu_time_total" : in.to_text(a[1], "metric");
  const bool device = metric == "self_cuda_time_total" || metric == "self_device_time_total";
  if (!device && metric != "self_cpu_time_total")
    in.fail(ErrorKind::kValue, "metric is self_cpu_time_total or self_cuda_time_total, got '{}'", metric);
  in.check(profiler::write_stacks(self_of(a).timeline(in), device, in.to_text(a[0], "the file's path")));
  return Value::none();
}

Value record(std::initializer_list<std::pair<std::string_view, Value>> members, std::string name) {
  auto o = make<Opaque>(std::move(name));
  for (const auto& [key, value] : members) o->members.set(key, value);
  return o;
}

/// Spans and work as plain records, by their start.
Value events(Interp& in, NativeArgs& a) {
  const profiler::Timeline& t = self_of(a).timeline(in);
  struct Event {
    profiler::Ns start;
    Value value;
  };
  std::vector<Event> all;
  auto add = [&](const std::string& name, std::string_view kind, const std::string& device, profiler::Ns start,
                 profiler::Ns end, int64_t where) {
    all.push_back({start, record({{"name", Value::str(name)},
                                  {"kind", Value::str(std::string(kind))},
                                  {"device", Value::str(device)},
                                  {"start_us", Value::real(profiler::us(start - t.start))},
                                  {"duration_us", Value::real(profiler::us(end - start))},
                                  {"lane", Value::integer(where)}},
                                 "event " + name)});
  };
  for (const profiler::Span& s : t.spans)
    add(s.name.empty() ? std::string(trace::name(s.step)) : s.name, trace::name(s.step), "cpu", s.start, s.end,
        s.thread);
  for (const profiler::ApiCall& c : t.calls) add(c.name, "driver call", "cpu", c.start, c.end, c.thread);
  // On the CPU kernels are spans already.
  if (t.is_cuda())
    for (const profiler::Work& w : t.work)
      if (!w.is_lost())
        add(w.name,
            w.kind == profiler::WorkKind::kKernel ? "kernel"
            : w.kind == profiler::WorkKind::kCopy ? "copy"
                                                  : "fill",
            t.device, w.start, w.end, w.stream);
  std::stable_sort(all.begin(), all.end(), [](const Event& x, const Event& y) { return x.start < y.start; });
  auto list = make<List>();
  for (Event& e : all) list->items.push_back(std::move(e.value));
  return list;
}

constexpr NativeDef kMethods[] = {
    {"__enter__()", enter, ""},
    {"__exit__(*args)", leave, ""},
    {"start()", start, "begins the profile; `with` does it"},
    {"stop()", stop, "ends the profile"},
    {"step()", step, "one step of the schedule ends, the next begins"},
    {"table(sort_by=None, row_limit=20, shapes=None, lines=None, memory=None, streams=None)", table,
     "the tables as text; defaults are those of profile()"},
    {"key_averages(group_by_input_shape=False, group_by_stack_n=0)", key_averages, "the rows, and .table(sort_by=…)"},
    {"export_chrome_trace(path)", export_chrome_trace, "a file for ui.perfetto.dev"},
    {"export_stacks(path, metric='self_cpu_time_total')", export_stacks,
     "lines of the script and what they called, one line per stack, for flame graphs"},
    {"events()", events, "recorded events: name, kind, device, start_us, duration_us, lane"},
};

}  // namespace

std::optional<Value> ProfileObject::attribute(Interp&, std::string_view name) {
  if (name == "step_num") return Value::integer(step_);
  return std::nullopt;
}

void ProfileObject::attribute_names(std::vector<std::string>& out) const { out.emplace_back("step_num"); }

std::string ProfileObject::repr(Interp& in) {
  if (timeline_) return tables(in, settings_.view);
  return state_ == State::kInside ? "<profile: running>" : "<profile: empty>";
}

// --- key_averages() --------------------------------------------------------------------------------------------------

namespace {

/// A list of rows that also has .table().
class KeyAverages : public Object {
 public:
  static inline const KindOf<KeyAverages> kKind{"torch.autograd.profiler_util.EventList"};
  KeyAverages(Ref<List> r, Ref<ProfileObject> p, profiler::OpsOptions o)
      : Object(kKind), rows(std::move(r)), profile(std::move(p)), options(std::move(o)) {}
  std::optional<int64_t> length(Interp& in) override { return rows->length(in); }
  Value item(Interp& in, const Value& index) override { return rows->item(in, index); }
  Value iterate(Interp& in) override { return rows->iterate(in); }
  std::string repr(Interp& in) override { return in.str(in.call(in.attribute(Value(this), "table"), {})); }

  const Ref<List> rows;
  const Ref<ProfileObject> profile;
  const profiler::OpsOptions options;
};

Value averages_table(Interp& in, NativeArgs& a) {
  const KeyAverages& averages = *a.self->get<KeyAverages>();
  profiler::ProfileView view = view_of(in, *averages.profile, a);
  view.ops.by_shape = averages.options.by_shape;
  view.ops.stack = averages.options.stack;
  view.ops.memory = view.memory;
  const profiler::Timeline& t = averages.profile->timeline(in);
  // torch's tables have these columns or not by what was profiled.
  const profiler::Ops ops = profiler::ops(t, view.ops);
  std::string out = a[5].missing() || a[5].is_none() ? "" : in.to_text(a[5], "header") + "\n";
  out += report::to_text(profiler::ops_table(t, ops, view.ops));
  if (!ops.work.empty()) out += "\n" + report::to_text(profiler::work_table(t, ops, view.ops));
  return Value::str(out + "\n" + profiler::totals_line(t, ops.totals));
}

constexpr NativeDef kAveragesMethods[] = {
    {"table(sort_by=None, row_limit=100, max_src_column_width=75, max_name_column_width=55, "
     "max_shapes_column_width=80, header=None)",
     averages_table, "operations and kernels as text"},
};

}  // namespace

Value key_averages_of(Interp& in, Ref<ProfileObject> profile, bool by_shape, int64_t stack) {
  const profiler::Timeline& t = profile->timeline(in);
  profiler::OpsOptions options;
  options.by_shape = by_shape, options.stack = stack;
  auto rows = make<List>();
  auto time = [](profiler::Ns ns) { return Value::real(profiler::us(ns)); };
  const profiler::Ops all = profiler::ops(t, options);
  for (const profiler::OpRow& r : all.ops) {
    const auto calls = static_cast<double>(std::max<int64_t>(r.calls, 1));
    rows->items.push_back(record({{"key", Value::str(r.name)},
                                  {"kind", Value::str(r.kind)},
                                  {"count", Value::integer(r.calls)},
                                  {"cpu_time_total", time(r.cpu)},
                                  {"self_cpu_time_total", time(r.self_cpu)},
                                  {"device_time_total", time(r.device)},
                                  {"self_device_time_total", time(r.self_device)},
                                  {"cuda_time_total", time(r.device)},
                                  {"self_cuda_time_total", time(r.self_device)},
                                  {"cpu_time", Value::real(profiler::us(r.cpu) / calls)},
                                  {"cuda_time", Value::real(profiler::us(r.device) / calls)},
                                  {"input_shapes", Value::str(r.shapes)},
                                  {"stack", Value::str(r.stack)},
                                  {"memory_usage", Value::integer(r.memory)},
                                  {"self_memory_usage", Value::integer(r.self_memory)}},
                                 "average of " + r.name));
  }
  return make<KeyAverages>(std::move(rows), std::move(profile), std::move(options));
}

void install_profile_methods(Interp& in) {
  in.add_methods({ProfileObject::kKind, kMethods});
  in.add_methods({KeyAverages::kKind, kAveragesMethods});
}

}  // namespace kiln::script
