// What a profile costs: launches under it and after it, and a million records from CUPTI to a trace.
#include "profiler/session/session.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "bench/bench.h"
#include "kernels/case.h"
#include "profiler/cupti/decode.h"
#include "profiler/profile/advisor.h"
#include "profiler/profile/chrome_trace.h"
#include "profiler/profile/tables.h"
#include "repl/session/session.h"
#include "support/diag.h"

namespace kiln::bench {

namespace {

using profiler::ProfileSession;
using profiler::Timeline;

constexpr int64_t kN = 4096, kBlock = 1024;

// Microseconds per launch of 10,000, one number per batch that fits the stream's queue; the waits between are not
// timed.
Result<std::vector<double>> per_launch(const Device& device, const std::function<Status()>& call) {
  // 5 batches of warming up, from -5 to -1.
  constexpr int kBatch = 200, kBatches = 50;
  std::vector<double> us;
  for (int b = -5; b < kBatches; ++b) {
    double start = profiler::steady_seconds();
    for (int i = 0; i < kBatch; ++i) KILN_CHECK_OK(call());
    double spent = profiler::steady_seconds() - start;
    KILN_CHECK_OK(device.synchronize());
    if (b >= 0) us.push_back(spent / kBatch * 1e6);
  }
  return us;
}

void append(std::vector<double>& to, const std::vector<double>& more) { to.insert(to.end(), more.begin(), more.end()); }

Figure against(std::string name, std::span<const double> ours, std::string what, std::span<const double> peer,
               Goal goal, std::string note) {
  Figure f = time_figure("profile", std::move(name), ours, goal);
  set_peer(f, {std::move(what), profiler::summarize(peer)});
  f.note = fmt::format("{:+.2f} µs; {}", f.ours.us.median - f.peer->us.median, note);
  return f;
}

// One way to launch: never profiled, then profiled and not in turns.
Status overhead_of(const Context& context, const std::string& what, const std::function<Status()>& call) {
  std::vector<double> never, again, under, after;
  for (int round = 0; round < 7; ++round) {  // the first makes the CPU's clock and caches what they stay
    // Four rounds before the first profile, two halves of which are compared: what two equal sides differ by.
    KILN_TRY(std::vector<double> us, per_launch(context.device, call));
    if (round > 0) append(round <= 3 ? never : again, us);
  }
  size_t records = 0;
  for (int round = 0; round < 3; ++round) {
    KILN_TRY(auto session, ProfileSession::start(context.device));
    KILN_TRY(std::vector<double> us, per_launch(context.device, call));
    append(under, us);
    KILN_TRY(Timeline t, session->stop());
    // A record that CUPTI could not give makes the figure of another workload.
    for (const auto& u : t.unknown) context.wrong(fmt::format("profile: not seen: {}: {}", u.what, u.why));
    records = t.work.size() + t.calls.size() + t.spans.size();
    KILN_TRY(us, per_launch(context.device, call));
    append(after, us);
  }
  auto at_most = [](double us) { return Goal{Goal::Kind::kExtraMicrosecondsAtMost, us}; };
  context.add(against(what + ", never profiled", again, "the same", never, {}, "what two equal sides differ by"));
  context.add(against(what + ", under a profile", under, "never profiled", never, at_most(2),
                      // 5 batches of warming up are under the profile too, hence 55.
                      fmt::format("{} records of {} launches", records, 55 * 200)));
  context.add(against(what + ", after a profile", after, "never profiled", never, at_most(0.2), "CUPTI is detached"));
  return {};
}

Status overheads(const Context& context) {
  const int64_t shape[] = {kN};
  const std::string text(kernels::Sources::text("vector_add"));
  KILN_TRY(Kernel kernel, Kernel::from_source(text, "kernels/vector_add/kernel.py", "add_kernel"));
  KILN_TRY(Tensor x, Tensor::zeros(context.device, DType::kF32, shape));
  KILN_TRY(Tensor out, Tensor::zeros(context.device, DType::kF32, shape));
  std::vector<std::optional<Arg>> args = {x, x, out, kN, kBlock};
  KILN_CHECK_OK(overhead_of(context, "C++ Kernel::launch", [&] { return kernel.launch({kN / kBlock, 1, 1}, args); }));
  script::Session session({.output = {}, .argv = {"bench"}, .device = context.device});
  KILN_CHECK_OK(session.run(text + fmt::format("\nimport torch\nx = torch.zeros({0})\nout = torch.zeros({0})\n"
                                               "grid = ({1},)\n",
                                               kN, kN / kBlock),
                            "bench.py"));
  KILN_TRY(std::function<Status()> call,
           session.prepare(fmt::format("add_kernel[grid](x, x, out, {}, BLOCK={})", kN, kBlock), "bench.py"));
  return overhead_of(context, "script kernel[grid](…)", call);
}

constexpr size_t kLaunches = 500'000;  // a call and a kernel each

// A million records: each launch has one of the call and one of the kernel.
Status export_of(const Context& context, const std::string& what, const Timeline& t) {
  const std::string path =
      (std::filesystem::temp_directory_path() / fmt::format("kiln_bench_{}.json", getpid())).string();
  double start = profiler::steady_seconds();
  Status written = profiler::write_chrome_trace(t, path);
  double us = (profiler::steady_seconds() - start) * 1e6;
  std::error_code failed;
  auto size = std::filesystem::file_size(path, failed);
  std::filesystem::remove(path, failed);
  KILN_CHECK_OK(written);
  const double times[] = {us};
  context.add(time_figure("profile", what + ", to a trace", times, {Goal::Kind::kMicrosecondsAtMost, 5e6},
                          fmt::format("{:.0f} MB", static_cast<double>(size) / 1e6)));
  return {};
}

#if KILN_HAS_CUPTI

template <class Record>
void put(std::vector<uint8_t>& buffer, const Record& r) {
  size_t at = buffer.size();
  buffer.resize(at + sizeof r);
  std::memcpy(&buffer[at], &r, sizeof r);
}

// The records of that many launches, made by hand, through CUPTI's own reader and the join: no GPU is needed.
Status made_records(const Context& context) {
  auto library = profiler::cupti::Library::open();
  if (!library.ok()) {
    context.skip("profile, records made by hand: " + library.error().message);
    return {};
  }
  profiler::cupti::Decoder decoder(**library);
  std::vector<trace::Event> events;
  std::vector<uint8_t> buffer;
  double decode_s = 0;
  auto decode = [&] {
    double start = profiler::steady_seconds();
    decoder.read(buffer.data(), buffer.size());
    decode_s += profiler::steady_seconds() - start;
    buffer.clear();
  };
  for (uint32_t i = 0; i < kLaunches; ++i) {
    // 5 us apart, which no two calls overlap.
    const uint64_t at = 1'000'000 + uint64_t{i} * 5000;
    CUpti_ActivityAPI call = {};
    call.kind = CUPTI_ACTIVITY_KIND_DRIVER, call.cbid = CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel;
    call.start = at, call.end = at + 3000, call.threadId = 1, call.correlationId = i + 1;
    CUpti_ActivityKernel10 kernel = {};
    kernel.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, kernel.name = "add_kernel";
    kernel.queued = at + 1500, kernel.submitted = at + 2500, kernel.start = at + 4000, kernel.end = at + 6000;
    kernel.correlationId = i + 1, kernel.gridX = 4, kernel.blockX = 128, kernel.registersPerThread = 24;
    put(buffer, call), put(buffer, kernel);
    // About the size of CUPTI's own buffers.
    if (buffer.size() > (size_t{4} << 20)) decode();
    trace::Event e;
    e.step = trace::Step::kLaunch, e.name = "add_kernel", e.thread = 1;
    // Around the driver's call, as a launch's span is.
    e.start_ns = static_cast<int64_t>(at) - 500, e.end_ns = static_cast<int64_t>(at) + 3500;
    events.push_back(std::move(e));
  }
  decode();
  constexpr uint64_t kOverheads = 10'000;
  for (uint64_t i = 0; i < kOverheads; ++i) {
    CUpti_ActivityOverhead3 o = {};
    o.kind = CUPTI_ACTIVITY_KIND_OVERHEAD, o.overheadKind = CUPTI_ACTIVITY_OVERHEAD_COMMAND_BUFFER_FULL;
    o.objectKind = CUPTI_ACTIVITY_OBJECT_THREAD, o.objectId.pt.threadId = 1;
    // Spread over the whole time, each within a call.
    o.start = 1'000'000 + i * (kLaunches / kOverheads) * 5000 + 1000, o.end = o.start + 500;
    put(buffer, o);
  }
  decode();
  Timeline t;
  t.device = "cuda:0", t.end = int64_t{1'000'000} + int64_t{kLaunches} * 5000;
  double start = profiler::steady_seconds();
  decoder.finish(t.end, t);
  profiler::add_events(t, std::move(events));
  profiler::join(t);
  const double decoded[] = {decode_s * 1e6}, joined[] = {(profiler::steady_seconds() - start) * 1e6};
  const std::string what = fmt::format("{} records made by hand", 2 * kLaunches);
  context.add(time_figure("profile", what + ", decoded", decoded, {}));
  context.add(time_figure("profile", what + ", joined", joined, {}));
  start = profiler::steady_seconds();
  const size_t tables = profiler::profile_tables(t).size(), findings = profiler::advise(t).size();
  const double told[] = {(profiler::steady_seconds() - start) * 1e6};
  context.add(time_figure("profile", what + ", to tables", told, {Goal::Kind::kMicrosecondsAtMost, 5e6},
                          fmt::format("{} tables and {} findings, with {} overheads", tables, findings, kOverheads)));
  return export_of(context, what, t);
}

#else

Status made_records(const Context& context) {
  context.skip("profile, records made by hand: " + profiler::cupti::built_without().message);
  return {};
}

#endif

Status real_records(const Context& context) {
  const int64_t shape[] = {kN};
  KILN_TRY(Kernel kernel, Kernel::from_source(std::string(kernels::Sources::text("vector_add")),
                                              "kernels/vector_add/kernel.py", "add_kernel"));
  KILN_TRY(Tensor x, Tensor::zeros(context.device, DType::kF32, shape));
  std::vector<std::optional<Arg>> args = {x, x, x, kN, kBlock};
  KILN_CHECK_OK(kernel.launch({kN / kBlock, 1, 1}, args));
  KILN_TRY(auto session, ProfileSession::start(context.device));
  for (size_t i = 0; i < kLaunches; ++i) KILN_CHECK_OK(kernel.launch({kN / kBlock, 1, 1}, args));
  KILN_CHECK_OK(context.device.synchronize());
  double start = profiler::steady_seconds();
  // Stopping flushes CUPTI's buffers, and joins.
  KILN_TRY(Timeline t, session->stop());
  const double stopped[] = {(profiler::steady_seconds() - start) * 1e6};
  for (const auto& u : t.unknown) context.wrong(fmt::format("profile: not seen: {}: {}", u.what, u.why));
  const std::string what = fmt::format("{} records of a GPU", t.work.size() + t.calls.size());
  context.add(time_figure(
      "profile", what + ", stop", stopped, {},
      fmt::format("flushed, decoded, joined with {} spans of the host; {} dropped", t.spans.size(), t.dropped)));
  return export_of(context, what, t);
}

}  // namespace

Status bench_profile(const Context& context) {
  KILN_CHECK_OK(overheads(context));
  KILN_CHECK_OK(made_records(context));
  if (context.device.is_cuda()) KILN_CHECK_OK(real_records(context));
  return {};
}

}  // namespace kiln::bench
