// torch.profiler: profile, schedule, record_function; and torch.cuda.nvtx. The same names stand at the prompt.
#include <fmt/format.h>
#include <sys/stat.h>

#include "profiler/cupti/nvtx.h"
#include "repl/modules/modules.h"
#include "repl/modules/profiler/profile_object.h"
#include "repl/modules/torch/tensor_object.h"
#include "repl/script/builtins/builtins.h"

namespace kiln::script {

namespace {

using profiler::Schedule;

class ScheduleObject : public Object {
 public:
  static inline const KindOf<ScheduleObject> kKind{"torch.profiler.schedule"};
  explicit ScheduleObject(Schedule s) : Object(kKind), schedule(s) {}
  std::string repr(Interp&) override {
    return fmt::format("schedule(wait={}, warmup={}, active={}, repeat={}, skip_first={})", schedule.wait,
                       schedule.warmup, schedule.active, schedule.repeat, schedule.skip_first);
  }
  const Schedule schedule;
};

int64_t count(Interp& in, const Value& v, std::string_view what, int64_t least, int64_t otherwise) {
  if (v.missing()) return otherwise;
  const int64_t n = in.to_int(v, what);
  if (n < least) in.fail(ErrorKind::kValue, "{} is {} or more, got {}", what, least, n);
  return n;
}

/// (wait, warmup, active, repeat, skip_first)
Value schedule(Interp& in, NativeArgs& a) {
  Schedule s;
  s.wait = count(in, a[0], "wait", 0, 0), s.warmup = count(in, a[1], "warmup", 0, 0);
  s.active = count(in, a[2], "active", 1, 1), s.repeat = count(in, a[3], "repeat", 0, 0);
  s.skip_first = count(in, a[4], "skip_first", 0, 0);
  return make<ScheduleObject>(s);
}

constexpr std::string_view kCpuActivity = "ProfilerActivity.CPU", kCudaActivity = "ProfilerActivity.CUDA";

bool wants_device(Interp& in, const Value& activities) {
  if (activities.missing() || activities.is_none()) return true;
  bool device = false;
  for (const Value& v : in.to_vector(activities)) {
    const std::string text = in.str(v);
    if (text != kCpuActivity && text != kCudaActivity)
      in.fail(ErrorKind::kValue, "activities are ProfilerActivity.CPU and ProfilerActivity.CUDA, got {}", in.repr(v));
    device = device || text == kCudaActivity;
  }
  return device;
}

/// Arguments of torch's that Kiln takes and cannot follow, with what would: said at the call, so that nobody waits for
/// an effect.
struct Unheeded {
  size_t place;
  const char *name, *instead;
};
constexpr Unheeded kUnheeded[] = {
    {10, "with_flops", "record_function(name, flop=) declares them, %counters and %roofline --measured count them"},
    {11, "with_modules", "there are no modules here: record_function(name) names a range"},
    {12, "experimental_config", "%counters reads hardware counters"},
    {13, "execution_trace_observer", "export_chrome_trace(path) has all that was seen"},
    {14, "acc_events", "each cycle is separate: on_trace_ready= gets them all"},
};

void tell_unheeded(Interp& in, const NativeArgs& a) {
  for (const Unheeded& u : kUnheeded)
    if (const Value& v = a[u.place]; !v.missing() && !v.is_none() && in.truth(v))
      in.print(fmt::format("# profile({}=) has no effect: {}\n", u.name, u.instead));
}

/// (activities, schedule, on_trace_ready, record_shapes, wait, warmup, active, repeat, profile_memory, with_stack, …)
Value profile(Interp& in, NativeArgs& a) {
  ProfileSettings settings;
  auto is_set = [&](const Value& v) { return !v.missing() && in.truth(v); };
  settings.session.device_work = wants_device(in, a[0]);
  if (!a[15].missing() && !a[15].is_none()) settings.session.device_work = in.truth(a[15]);
  if (is_set(a[3])) settings.session.details |= trace::kShapes;
  settings.view.ops.by_shape = is_set(a[3]);
  settings.view.memory = is_set(a[8]);
  settings.view.ops.lines = is_set(a[9]);
  tell_unheeded(in, a);
  const bool named = !a[4].missing() || !a[5].missing() || !a[6].missing() || !a[7].missing();
  if (!a[1].missing() && !a[1].is_none()) {
    auto* given = a[1].get<ScheduleObject>();
    if (!given)
      in.fail(ErrorKind::kType, "schedule= is made by schedule(wait=, warmup=, active=), got '{}'", in.type_name(a[1]));
    if (named) in.fail(ErrorKind::kValue, "schedule= already sets wait=, warmup=, active= and repeat=");
    settings.schedule = given->schedule;
  } else if (named) {
    Schedule s;
    s.wait = count(in, a[4], "wait", 0, 0), s.warmup = count(in, a[5], "warmup", 0, 0);
    s.active = count(in, a[6], "active", 1, 1), s.repeat = count(in, a[7], "repeat", 0, 1);
    settings.schedule = s;
  }
  if (!a[2].missing() && !a[2].is_none()) settings.on_ready = a[2];
  return make<ProfileObject>(std::move(settings));
}

// --- ranges ----------------------------------------------------------------------------------------------------------

/// One that is open.
struct OpenRange {
  std::string name;
  int64_t start_ns = 0;  // 0: nobody watched
  double flop = 0, bytes = 0;
  std::string operands = {};  // of the products that flop counts: "bf16"
};

void push(std::vector<OpenRange>& open, OpenRange range) {
  profiler::nvtx::push(range.name);
  if (trace::on(trace::kSpans)) range.start_ns = trace::now_ns();
  open.push_back(std::move(range));
}

void pop(std::vector<OpenRange>& open) {
  OpenRange range = std::move(open.back());
  open.pop_back();
  if (range.start_ns != 0 && trace::on(trace::kSpans)) {
    trace::Event event;
    event.step = trace::Step::kRange;
    event.name = std::move(range.name);
    event.start_ns = range.start_ns;
    event.end_ns = trace::now_ns();
    event.flop = range.flop;
    event.bytes = static_cast<int64_t>(range.bytes);
    event.detail = std::move(range.operands);
    trace::add(std::move(event));
  }
  profiler::nvtx::pop();
}

/// record_function("name"): a context, and a decorator of functions.
class RangeObject : public Object {
 public:
  static inline const KindOf<RangeObject> kKind{"record_function"};
  explicit RangeObject(OpenRange range) : Object(kKind), range_(std::move(range)) {}
  std::string repr(Interp&) override { return fmt::format("record_function('{}')", range_.name); }
  Value call(Interp& in, CallArgs& args) override;
  void enter() { push(open_, range_); }
  void leave() {
    if (!open_.empty()) pop(open_);
  }

 private:
  OpenRange range_;
  std::vector<OpenRange> open_;  // entered and not left: the same object may be entered again
};

RangeObject& range_of(const NativeArgs& a) { return *a.self->get<RangeObject>(); }
Value enter_range(Interp&, NativeArgs& a) {
  range_of(a).enter();
  return *a.self;
}
Value leave_range(Interp&, NativeArgs& a) {
  range_of(a).leave();
  return Value::boolean(false);
}
constexpr NativeDef kRangeMethods[] = {{"__enter__()", enter_range, ""}, {"__exit__(*args)", leave_range, ""}};

Value RangeObject::call(Interp& in, CallArgs& args) {
  if (args.args.size() != 1 || !args.keywords.empty())
    in.fail(ErrorKind::kType, "record_function('{}') decorates one function", range_.name);
  auto wrapped = make<Opaque>(in.str(args.args[0]));
  const Ref<RangeObject> self(this);
  wrapped->on_call = [self, function = args.args[0]](Interp& interp, CallArgs& call) -> Value {
    self->enter();
    struct Leave {
      RangeObject& range;
      ~Leave() { range.leave(); }
    } leave{*self};
    return interp.call(function, call);
  };
  return wrapped;
}

double declared(Interp& in, const Value& v, std::string_view what) {
  if (v.missing() || v.is_none()) return 0;
  const double n = in.to_double(v, what);
  if (!(n >= 0) || n > 1e18) in.fail(ErrorKind::kValue, "{} is from 0 to 1e18, got {}", what, in.repr(v));
  return n;
}

/// (name, args, flop, bytes, dtype)
Value record_function(Interp& in, NativeArgs& a) {
  OpenRange range;
  range.name = in.to_text(a[0], "the range's name");
  range.flop = declared(in, a[2], "flop"), range.bytes = declared(in, a[3], "bytes");
  if (!a[4].missing() && !a[4].is_none()) range.operands = std::string(info(dtype_of(in, a[4], DType::kF32)).name);
  return make<RangeObject>(std::move(range));
}

/// (dir_name, worker_name): called with a profile, writes its trace there.
Value tensorboard_trace_handler(Interp& in, NativeArgs& a) {
  auto handler = make<Opaque>("trace handler");
  const std::string folder = in.to_text(a[0], "dir_name");
  const std::string worker = a[1].missing() || a[1].is_none() ? "kiln" : in.to_text(a[1], "worker_name");
  handler->on_call = [folder, worker, n = 0](Interp& interp, CallArgs& args) mutable -> Value {
    if (args.args.size() != 1) interp.fail(ErrorKind::kType, "a trace handler is called with the profile");
    mkdir(folder.c_str(), 0777);  // when it cannot be made, writing the file says why
    const Value path = Value::str(fmt::format("{}/{}.{}.pt.trace.json", folder, worker, n++));
    return interp.call(interp.attribute(args.args[0], "export_chrome_trace"), {path});
  };
  return handler;
}

constexpr NativeDef kProfiler[] = {
    {"profile(*, activities=None, schedule=None, on_trace_ready=None, record_shapes=False, wait=0, warmup=0, active=1, "
     "repeat=1, profile_memory=False, with_stack=False, with_flops=False, with_modules=False, "
     "experimental_config=None, execution_trace_observer=None, acc_events=False, use_cuda=None)",
     profile, "a profile of the block: `with profile() as p:`, then p.table() or print(p)"},
    {"record_function(name, args=None, flop=None, bytes=None, dtype=None)", record_function,
     "a named range in a profile: `with record_function('name'):`, or @record_function('name')"},
    {"schedule(*, wait, warmup, active, repeat=0, skip_first=0)", schedule, "which steps a profile keeps"},
    {"tensorboard_trace_handler(dir_name, worker_name=None, use_gzip=False)", tensorboard_trace_handler,
     "for on_trace_ready=: writes each cycle's trace into a folder"},
};

void fill_profiler(Interp& in, ModuleObject& m) {
  install_profile_methods(in);
  in.add_methods({RangeObject::kKind, kRangeMethods});
  add_functions(m, kProfiler);
  auto activity = make<Opaque>("class ProfilerActivity");
  activity->members.set("CPU", Value::str(std::string(kCpuActivity)));
  activity->members.set("CUDA", Value::str(std::string(kCudaActivity)));
  m.members.set("ProfilerActivity", activity);
}

// --- torch.cuda.nvtx -------------------------------------------------------------------------------------------------

void fill_nvtx(Interp&, ModuleObject& m) {
  auto open = std::make_shared<std::vector<OpenRange>>();
  auto add = [&](std::string_view name, const auto& run) {
    auto o = make<Opaque>("built-in function " + std::string(name));
    o->on_call = run;
    m.members.set(name, o);
  };
  add("range_push", [open](Interp& in, CallArgs& args) -> Value {
    if (args.args.size() != 1) in.fail(ErrorKind::kType, "range_push() takes the range's name");
    push(*open, {in.to_text(args.args[0], "the range's name")});
    return Value::integer(static_cast<int64_t>(open->size()) - 1);
  });
  add("range_pop", [open](Interp& in, CallArgs&) -> Value {
    if (open->empty()) in.fail(ErrorKind::kValue, "range_pop() without a range_push()");
    pop(*open);
    return Value::integer(static_cast<int64_t>(open->size()));
  });
  add("range", [](Interp& in, CallArgs& args) -> Value {
    if (args.args.size() != 1) in.fail(ErrorKind::kType, "range() takes the range's name");
    return make<RangeObject>(OpenRange{in.to_text(args.args[0], "the range's name")});
  });
}

constexpr ModuleDef kModules[] = {
    {"torch.profiler", fill_profiler}, {"torch.autograd.profiler", fill_profiler}, {"torch.cuda.nvtx", fill_nvtx}};

}  // namespace

std::span<const ModuleDef> profiler_modules() { return kModules; }

}  // namespace kiln::script
