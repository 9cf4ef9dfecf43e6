// torch.cuda, which scripts also use on the cpu: the device, its streams, events and graphs.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "repl/modules/modules.h"
#include "repl/modules/torch/stream_object.h"
#include "repl/modules/torch/tensor_object.h"
#include "repl/script/builtins/builtins.h"

namespace kiln::script {

std::optional<Value> StreamObject::attribute(Interp&, std::string_view name) {
  if (name == "device") return Value(make<DeviceObject>(device));
  if (name == "stream_id") return Value::integer(static_cast<int64_t>(stream.id()));
  return std::nullopt;
}

void StreamObject::attribute_names(std::vector<std::string>& out) const {
  out.insert(out.end(), {"device", "stream_id"});
}

std::optional<Value> StreamObject::compare(Interp&, ast::CompareOp op, const Value& other) {
  auto* s = other.get<StreamObject>();
  if (op != ast::CompareOp::kEq && op != ast::CompareOp::kNe) return std::nullopt;
  // Handles differ; the stream behind them counts.
  const bool same = s && s->stream.impl() == stream.impl();
  return Value::boolean(same == (op == ast::CompareOp::kEq));
}

std::string StreamObject::repr(Interp&) {
  const bool is_default = stream.impl() == device.default_stream().impl();
  return fmt::format("<torch.cuda.Stream device={} id={}{}>", device.name(), stream.id(),
                     is_default ? " (default)" : "");
}

std::string EventObject::repr(Interp&) {
  return fmt::format("<torch.cuda.Event device={}{}>", device.name(),
                     !event.impl()     ? " not recorded"
                     : event.is_done() ? " done"
                                       : "");
}

std::string GraphObject::repr(Interp&) {
  return fmt::format("<torch.cuda.CUDAGraph device={} {}>", device.name(),
                     capture ? "being captured"
                     : graph ? fmt::format("of {} launches, copies and fills", graph.size())
                             : std::string("not captured"));
}

namespace {

// --- the device

// Asked by scripts that choose where to run: the session's device decides.
Value cuda_available(Interp& in, NativeArgs&) { return Value::boolean(torch_state(in).device().is_cuda()); }
Value synchronize(Interp& in, NativeArgs&) {
  // What was only planned is work of the script, too.
  torch_state(in).pending()->run_all(in);
  in.check(torch_state(in).device().synchronize());
  return Value::none();
}
Value current_device(Interp& in, NativeArgs&) {
  return *make<DeviceObject>(torch_state(in).device())->attribute(in, "index");
}
Value device_count(Interp&, NativeArgs&) {
  std::vector<std::string> all = Device::list();
  return Value::integer(
      std::count_if(all.begin(), all.end(), [](const std::string& n) { return n.rfind("cuda", 0) == 0; }));
}
Value device_name(Interp& in, NativeArgs& a) { return Value::str(described_device(in, a[0]).info().name); }
Value nothing(Interp&, NativeArgs&) { return Value::none(); }
Value capability(Interp& in, NativeArgs& a) {
  const Device device = described_device(in, a[0]);
  std::string target = device.info().target;
  int number = 0;
  // "sm_90a": capability and a suffix.
  if (target.starts_with("sm_")) std::from_chars(target.data() + 3, target.data() + target.size(), number);
  if (!number) in.fail(ErrorKind::kDevice, "'{}' has no compute capability", device.name());
  return make<Tuple>(std::vector<Value>{Value::integer(number / 10), Value::integer(number % 10)});
}
MemoryStats memory(Interp& in, const Value& device) { return device_of(in, device).memory(); }
Value memory_allocated(Interp& in, NativeArgs& a) { return Value::integer(memory(in, a[0]).allocated); }
Value max_memory_allocated(Interp& in, NativeArgs& a) { return Value::integer(memory(in, a[0]).peak); }
Value memory_reserved(Interp& in, NativeArgs& a) { return Value::integer(memory(in, a[0]).reserved); }

// --- streams and events

StreamObject& stream_in(Interp& in, const Value& v, std::string_view what) {
  auto* s = v.get<StreamObject>();
  if (!s) in.fail(ErrorKind::kType, "{} needs a stream, got '{}'", what, in.type_name(v));
  return *s;
}
EventObject& event_in(Interp& in, const Value& v, std::string_view what) {
  auto* e = v.get<EventObject>();
  if (!e) in.fail(ErrorKind::kType, "{} needs an event, got '{}'", what, in.type_name(v));
  return *e;
}
const Event& recorded(Interp& in, const EventObject& e, std::string_view what) {
  if (!e.event.impl())
    in.fail(with_note(error(ErrorKind::kValue, "{}: the event was not recorded yet", what), "help: event.record()"));
  return e.event;
}
const Stream none_or_stream(Interp& in, const Value& v, std::string_view what) {
  return given(v) ? stream_in(in, v, what).stream : Stream();
}

Value new_stream(Interp& in, NativeArgs& a) {
  Device device = device_of(in, a[0]);
  Stream made = in.take(device.new_stream());
  return make<StreamObject>(std::move(device), std::move(made));
}
Value current_stream(Interp& in, NativeArgs& a) {
  Device device = device_of(in, a[0]);
  return make<StreamObject>(device, device.current_stream());
}
Value default_stream(Interp& in, NativeArgs& a) {
  Device device = device_of(in, a[0]);
  return make<StreamObject>(device, device.default_stream());
}
Value set_stream(Interp& in, NativeArgs& a) {
  // Without an end: the stream stays until another one is set.
  if (given(a[0])) torch_state(in).enter_stream(stream_in(in, a[0], "set_stream()").stream, false);
  return Value::none();
}
/// The stream is its own context.
Value stream_context(Interp& in, NativeArgs& a) {
  if (!given(a[0])) return make<StreamObject>(torch_state(in).device(), torch_state(in).device().current_stream());
  stream_in(in, a[0], "stream()");
  return a[0];
}
Value new_event(Interp& in, NativeArgs&) { return make<EventObject>(torch_state(in).device()); }

StreamObject& this_stream(NativeArgs& a) { return *a.self->get<StreamObject>(); }
EventObject& this_event(NativeArgs& a) { return *a.self->get<EventObject>(); }

Value enter_stream(Interp& in, NativeArgs& a) {
  torch_state(in).enter_stream(this_stream(a).stream, true);
  return *a.self;
}
Value leave(Interp& in, NativeArgs&) {
  torch_state(in).leave_stream();
  return Value::boolean(false);
}
Value wait_for_stream(Interp& in, NativeArgs& a) {
  // The stream's work is all that was written before, also what is not launched yet.
  torch_state(in).pending()->run_all(in);
  in.check(this_stream(a).stream.synchronize());
  return Value::none();
}
Value query_stream(Interp&, NativeArgs& a) { return Value::boolean(this_stream(a).stream.is_idle()); }
Value wait_event(Interp& in, NativeArgs& a) {
  in.check(this_stream(a).stream.wait(recorded(in, event_in(in, a[0], "wait_event()"), "wait_event()")));
  return Value::none();
}
Value wait_stream(Interp& in, NativeArgs& a) {
  StreamObject& other = stream_in(in, a[0], "wait_stream()");
  torch_state(in).pending()->run_all(in);  // what was written before is what is waited for
  in.check(this_stream(a).stream.wait(in.take(other.device.record(other.stream))));
  return Value::none();
}
Value record(Interp& in, EventObject& event, const Stream& stream) {
  // An event stands behind what was written before it.
  torch_state(in).pending()->run_all(in);
  event.event = in.take(event.device.record(stream));
  return Value::none();
}
Value record_event(Interp& in, NativeArgs& a) {
  StreamObject& stream = this_stream(a);
  Value out = given(a[0]) ? a[0] : Value(make<EventObject>(stream.device));
  record(in, event_in(in, out, "record_event()"), stream.stream);
  return out;
}

Value record_on(Interp& in, NativeArgs& a) { return record(in, this_event(a), none_or_stream(in, a[0], "record()")); }
Value wait_for_event(Interp& in, NativeArgs& a) {
  // An event that was not recorded has nothing to wait for, as in CUDA.
  if (this_event(a).event.impl()) in.check(this_event(a).event.synchronize());
  return Value::none();
}
Value query_event(Interp&, NativeArgs& a) { return Value::boolean(this_event(a).event.is_done()); }
Value let_wait(Interp& in, NativeArgs& a) {
  const EventObject& e = this_event(a);
  const Stream stream = given(a[0]) ? stream_in(in, a[0], "wait()").stream : e.device.current_stream();
  in.check(stream.wait(recorded(in, e, "wait()")));
  return Value::none();
}
Value elapsed_time(Interp& in, NativeArgs& a) {
  const EventObject& e = this_event(a);
  const EventObject& end = event_in(in, a[0], "elapsed_time()");
  return Value::real(
      in.take(e.device.elapsed_ms(recorded(in, e, "elapsed_time()"), recorded(in, end, "elapsed_time()"))));
}

// --- graphs

GraphObject& this_graph(NativeArgs& a) { return *a.self->get<GraphObject>(); }

Value new_graph(Interp& in, NativeArgs&) { return make<GraphObject>(torch_state(in).device()); }
/// Pending expressions of before are computed before; those of the capture are recorded where it ends.
void begin_capture(Interp& in, GraphObject& g, const Stream& stream) {
  if (g.capture) in.fail(ErrorKind::kValue, "the graph is being captured already");
  torch_state(in).pending()->run_all(in);
  g.graph.reset();
  g.capture.emplace(in.take(GraphCapture::begin(g.device, stream)));
  torch_state(in).always_lazy = true;  // kernels for small tensors too: what the host computes cannot be recorded
  torch_state(in).captures = true;
}
void drop_capture(Interp& in, GraphObject& g) {
  g.capture.reset();
  torch_state(in).always_lazy = torch_state(in).captures = false;
}
void end_capture(Interp& in, GraphObject& g) {
  if (!g.capture) in.fail(ErrorKind::kValue, "the graph is not being captured");
  struct Drop {
    Interp& in;
    GraphObject& graph;
    // Also when the capture fails: later work must not be recorded.
    ~Drop() { drop_capture(in, graph); }
  } drop{in, g};
  torch_state(in).pending()->run_all(in);
  g.graph = in.take(g.capture->end());
}
Value capture_begin(Interp& in, NativeArgs& a) {
  begin_capture(in, this_graph(a), {});
  return Value::none();
}
Value capture_end(Interp& in, NativeArgs& a) {
  end_capture(in, this_graph(a));
  return Value::none();
}
Value is_capturing(Interp& in, NativeArgs&) { return Value::boolean(torch_state(in).captures); }
Value replay(Interp& in, NativeArgs& a) {
  GraphObject& g = this_graph(a);
  if (!g.graph)
    in.fail(with_note(error(ErrorKind::kValue, "replay(): the graph was not captured yet"),
                      "help: with torch.cuda.graph(g): …"));
  // Pending work comes before the replay, as it was written before.
  torch_state(in).pending()->run_all(in);
  in.check(g.graph.launch());
  return Value::none();
}
Value reset(Interp&, NativeArgs& a) {
  this_graph(a).graph.reset();
  return Value::none();
}
Value graph_context(Interp& in, NativeArgs& a) {
  auto* g = a[0].get<GraphObject>();
  if (!g)
    in.fail(with_note(error(ErrorKind::kType, "graph() needs a CUDAGraph, got '{}'", in.type_name(a[0])),
                      "help: g = torch.cuda.CUDAGraph()"));
  return make<GraphContext>(Ref<GraphObject>(g), none_or_stream(in, a[2], "graph()"));
}
Value enter_graph(Interp& in, NativeArgs& a) {
  auto* context = a.self->get<GraphContext>();
  begin_capture(in, *context->graph, context->stream);
  return Value(context->graph);
}
Value leave_graph(Interp& in, NativeArgs& a) {
  GraphObject& g = *a.self->get<GraphContext>()->graph;
  const bool failed = !a[0].get<Tuple>()->items.empty() && !a[0].get<Tuple>()->items[0].is_none();
  if (failed)
    drop_capture(in, g);  // what was recorded is thrown away, and the error goes on
  else
    end_capture(in, g);
  return Value::boolean(false);
}

constexpr NativeDef kGraphMethods[] = {
    {"capture_begin()", capture_begin, "work is recorded from here on, and not run"},
    {"capture_end()", capture_end, "ends the capture"},
    {"replay()", replay, "launches the recorded work on the current stream, without waiting"},
    {"reset()", reset, "frees its memory"},
};
constexpr NativeDef kGraphContextMethods[] = {
    {"__enter__()", enter_graph, "work is recorded from here on, and not run"},
    {"__exit__(*args)", leave_graph, "ends the capture"},
};
constexpr NativeDef kStreamMethods[] = {
    {"__enter__()", enter_stream, "makes it the current stream"},
    {"__exit__(*args)", leave, "back to the stream before"},
    {"query()", query_stream, "is all its work done?"},
    {"record_event(event=None)", record_event, "an event after its current work"},
    {"synchronize()", wait_for_stream, "waits for all its work"},
    {"wait_event(event)", wait_event, "its later work starts after the event"},
    {"wait_stream(stream)", wait_stream, "its later work starts after the present work of the other"},
};
constexpr NativeDef kEventMethods[] = {
    {"elapsed_time(end_event)", elapsed_time, "milliseconds between two recorded events, on the device's clock"},
    {"query()", query_event, "is the work before it done?"},
    {"record(stream=None)", record_on, "records the stream's position"},
    {"synchronize()", wait_for_event, "waits for the work before it"},
    {"wait(stream=None)", let_wait, "the stream's later work starts after it"},
};
constexpr NativeDef kCuda[] = {
    {"CUDAGraph()", new_graph, "work recorded once and run again with one call"},
    {"current_device()", current_device, "the number of the session's GPU"},
    {"current_stream(device=None)", current_stream, "the current stream"},
    {"default_stream(device=None)", default_stream, "the default stream"},
    {"device_count()", device_count, "how many GPUs there are"},
    {"empty_cache()", nothing, "accepted: the allocator reuses memory by itself"},
    {"Event(enable_timing=False, blocking=False, interprocess=False)", new_event,
     "a point in a stream, to be recorded"},
    {"get_device_capability(device=None)", capability, "(major, minor)"},
    {"get_device_name(device=None)", device_name, "the device's name"},
    {"graph(cuda_graph, pool=None, stream=None)", graph_context, "with graph(g): work is recorded for g"},
    {"is_available()", cuda_available, "does the session run on a GPU?"},
    {"is_current_stream_capturing()", is_capturing, "is work recorded for a graph?"},
    {"max_memory_allocated(device=None)", max_memory_allocated, "the most bytes that tensors had at once"},
    {"memory_allocated(device=None)", memory_allocated, "bytes of tensors on the device"},
    {"memory_reserved(device=None)", memory_reserved, "bytes that the allocator holds for tensors"},
    {"set_device(device)", nothing, "accepted: choose the session's device with --device"},
    {"set_stream(stream)", set_stream, "makes a stream the current one"},
    {"Stream(device=None, priority=0)", new_stream, "a queue of work, concurrent with other streams"},
    {"stream(stream)", stream_context, "with stream(s): work goes to s"},
    {"synchronize(device=None)", synchronize, "waits for the device"},
};

void fill_cuda(Interp& in, ModuleObject& m) {
  in.add_methods({StreamObject::kKind, kStreamMethods});
  in.add_methods({EventObject::kKind, kEventMethods});
  in.add_methods({GraphObject::kKind, kGraphMethods});
  in.add_methods({GraphContext::kKind, kGraphContextMethods});
  add_functions(m, kCuda);
  m.texts = {library_module("torch._cuda")};
  m.members.set("OutOfMemoryError", in.exception_type("MemoryError"));
  m.members.set("nvtx", in.import_module("torch.cuda.nvtx"));
}

constexpr ModuleDef kCudaModules[] = {{"torch.cpu", fill_cuda}, {"torch.cuda", fill_cuda}};

}  // namespace

std::span<const ModuleDef> torch_cuda_modules() { return kCudaModules; }

}  // namespace kiln::script
