// Latencies: compilation, start-up, and the CPU time of a launch.
#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <random>

#include "bench/bench.h"
#include "bench/launch/launch_bench.h"
#include "kernels/matmul_persistent/matmul.h"
#include "repl/session/session.h"
#include "support/diag.h"

namespace kiln::bench {

namespace {

constexpr int64_t kN = 4096, kBlock = 1024;

struct AddArgs {
  Tensor x, y, out;
  std::vector<std::optional<Arg>> args;
};

Result<AddArgs> add_args(const Device& device) {
  const int64_t shape[] = {kN};
  AddArgs a;
  KILN_TRY(a.x, Tensor::zeros(device, DType::kF32, shape));
  KILN_TRY(a.y, Tensor::zeros(device, DType::kF32, shape));
  KILN_TRY(a.out, Tensor::zeros(device, DType::kF32, shape));
  a.args = {a.x, a.y, a.out, kN, kBlock};
  return a;
}

// Milliseconds of each phase of several compilations, in the order of the phases.
using Phases = std::vector<std::pair<std::string, std::vector<double>>>;

void add_phases(Phases& phases, const KernelInfo& info) {
  for (const auto& [name, ms] : info.phases) {
    auto it = std::find_if(phases.begin(), phases.end(), [&](const auto& p) { return p.first == name; });
    if (it == phases.end()) it = phases.insert(it, {name, {}});
    it->second.push_back(ms);
  }
}

// "frontend 0.21, lower 0.30, llvm 1.9, cubin 11.2": medians of those that take 0.05 ms and more.
std::string phases_text(const Phases& phases) {
  std::string text;
  for (const auto& [name, ms] : phases)
    if (double median = profiler::summarize(ms).median; median >= 0.05)
      text += fmt::format("{}{} {:.2f}", text.empty() ? "" : ", ", name, median);
  return text + " ms";
}

// Microseconds from text to code that is loaded on the device.
// With a target of another device: to its cubin.
Result<double> text_to_loaded(const AddArgs& a, std::string text, std::string_view target = {},
                              Phases* phases = nullptr) {
  double start = profiler::steady_seconds();
  KILN_TRY(Kernel kernel, Kernel::from_source(std::move(text), "kernels/vector_add/kernel.py", "add_kernel"));
  KILN_TRY(KernelInfo info, kernel.compile(a.args, {}, target));
  double us = (profiler::steady_seconds() - start) * 1e6;
  if (phases) add_phases(*phases, info);
  return us;
}

// A text that no earlier run can have left in a cache.
std::string never_seen(const std::string& text) {
  static int count = 0;
  return fmt::format("{}\n\nUNIQUE = \"{} {} {}\"\n", text, getpid(), profiler::steady_seconds(), ++count);
}

// A kernel whose body differs as well, because a cache key need not hold what the kernel does not use.
std::string new_kernel(const std::string& text) {
  std::string changed = never_seen(text);
  constexpr std::string_view kFrom = "x + y";
  size_t at = changed.rfind(kFrom);  // the docstring has it too
  uint64_t salt = static_cast<uint64_t>(profiler::steady_seconds() * 1e9);
  changed.replace(at, kFrom.size(), fmt::format("x + y * {}.0", salt % 1000000007 + 2));
  return changed;
}

// The persistent product of Hopper, from text to loaded code. Its group of tiles is a constant of the code, and new.
Status bench_matmul_compile(const Context& context, const kernels::MatmulEpilogue& epilogue, std::string what) {
  constexpr int kRuns = 10;
  constexpr int64_t kSize = 4096;  // more tiles than places: the kernel whose programs stay, which has groups
  const int64_t shape[] = {kSize, kSize};
  KILN_TRY(Tensor a, Tensor::zeros(context.device, DType::kBF16, shape));
  KILN_TRY(Tensor out, Tensor::zeros(context.device, DType::kBF16, shape));
  std::random_device seed;
  std::vector<double> cold;
  Phases phases;
  for (int i = 0; i < kRuns; ++i) {
    kernels::Sources sources;
    MatmulTile tile{128, 256, 64, 3, 8};
    tile.group_m = static_cast<int>(seed() >> 12) + 1;
    const double start = profiler::steady_seconds();
    KILN_TRY(kernels::Launch launch, kernels::matmul_launch(sources, a, a, out, epilogue, tile));
    KILN_TRY(KernelInfo info, launch.kernel.compile(launch.args, launch.options));
    cold.push_back((profiler::steady_seconds() - start) * 1e6);
    add_phases(phases, info);
  }
  context.add(
      time_figure("compile", std::move(what), cold, {Goal::Kind::kMicrosecondsAtMost, 200000}, phases_text(phases)));
  return {};
}

Result<double> spawn_us(const std::string& binary, const std::vector<std::string>& arguments) {
  std::vector<char*> argv = {const_cast<char*>(binary.c_str())};
  for (const std::string& a : arguments) argv.push_back(const_cast<char*>(a.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  pid_t child = 0;
  double start = profiler::steady_seconds();
  int failed = posix_spawn(&child, binary.c_str(), &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failed) return error(ErrorKind::kIo, "cannot run {}: {}", binary, std::strerror(failed));
  int status = 0;
  waitpid(child, &status, 0);
  double us = (profiler::steady_seconds() - start) * 1e6;
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
    return error(ErrorKind::kIo, "{} {} failed", binary, fmt::join(arguments, " "));
  return us;
}

}  // namespace

Status bench_compile(const Context& context) {
  std::string text(kernels::Sources::text("vector_add"));
  KILN_TRY(AddArgs a, add_args(context.device));
  std::vector<double> first, cold, cached;
  Phases phases;
  KILN_TRY(first.emplace_back(), text_to_loaded(a, new_kernel(text)));
  for (int i = 0; i < 30; ++i) {
    KILN_TRY(cold.emplace_back(), text_to_loaded(a, new_kernel(text), {}, &phases));
  }
  KILN_TRY([[maybe_unused]] double primed, text_to_loaded(a, text));
  for (int i = 0; i < 100; ++i) {
    KILN_TRY(cached.emplace_back(), text_to_loaded(a, text));
  }
  std::string what = context.device.is_cuda() ? "add, text to loaded cubin" : "add, text to loaded object";
  context.add(time_figure("compile", what + ", first of the process", first, {}));
  Goal cold_goal;
  if (context.device.is_cuda()) cold_goal = {Goal::Kind::kMicrosecondsAtMost, 15000};
  context.add(time_figure("compile", what + ", cold", cold, cold_goal, phases_text(phases)));
  context.add(time_figure("compile", what + ", cached on disk", cached, {Goal::Kind::kMicrosecondsAtMost, 500}));
  if (context.device.is_cuda()) {
    if (context.device.info().target != "sm_90a") return {};
    KILN_CHECK_OK(bench_matmul_compile(context, {}, "product, 128x256x64 bf16, cold"));
    const int64_t columns[] = {4096};
    KILN_TRY(Tensor bias, Tensor::zeros(context.device, DType::kBF16, columns));
    return bench_matmul_compile(context, {bias, "gelu_tanh"}, "product + bias + GELU, 128x256x64 bf16, cold");
  }
  std::vector<double> cubin;
  Phases cubin_phases;
  for (int i = 0; i < 20; ++i) {
    KILN_TRY(cubin.emplace_back(), text_to_loaded(a, new_kernel(text), "sm_90a", &cubin_phases));
  }
  context.add(time_figure("compile", "add, text to sm_90a cubin, cold, not loaded", cubin,
                          {Goal::Kind::kMicrosecondsAtMost, 15000}, phases_text(cubin_phases)));
  return {};
}

Status bench_startup(const Context& context) {
  if (access(context.kiln_binary.c_str(), X_OK) != 0) {
    context.skip(fmt::format("startup: there is no {}", context.kiln_binary));
    return {};
  }
  std::vector<double> us;
  for (int i = 0; i < 30; ++i) {
    KILN_TRY(us.emplace_back(), spawn_us(context.kiln_binary, {"-c", "print(1)"}));
  }
  context.add(time_figure("startup", "kiln -c 'print(1)'", us, {Goal::Kind::kMicrosecondsAtMost, 50000}));
  return {};
}

Status bench_launch(const Context& context) {
  std::string text(kernels::Sources::text("vector_add"));
  // Batches that fit the stream's queue; the wait between them is not timed.
  constexpr int kBatch = 200, kBatches = 50;
  auto per_call = [&](const std::function<Status()>& call) -> Result<std::vector<double>> {
    std::vector<double> us;
    for (int b = -5; b < kBatches; ++b) {
      double start = profiler::steady_seconds();
      for (int i = 0; i < kBatch; ++i) KILN_CHECK_OK(call());
      double spent = profiler::steady_seconds() - start;
      KILN_CHECK_OK(context.device.synchronize());
      if (b >= 0) us.push_back(spent / kBatch * 1e6);
    }
    return us;
  };
  auto to_us = [](std::vector<double> ns) {
    for (double& t : ns) t /= 1000;
    return profiler::summarize(ns);
  };
  KILN_CHECK_OK(measure_launches([&](const LaunchCost& c) {
    bool gpu = c.device != "cpu";
    if (gpu != context.device.is_cuda()) return;
    Figure f;
    f.group = "launch";
    f.name = fmt::format("{}, {} arguments", c.api, c.slots);
    f.ours = {"kiln", to_us(c.kiln_ns)};
    set_peer(f, {c.what, to_us(c.raw_ns)});
    if (gpu) f.goal = {Goal::Kind::kExtraMicrosecondsAtMost, c.api.starts_with("C++") ? 0.15 : 0.1};
    f.extra_us = c.extra_ns / 1000;
    f.note =
        fmt::format("{:+.0f} ns over the {}, round by round; the interval is of the quartiles", c.extra_ns, c.what);
    context.add(std::move(f));
  }));

  script::Session session({.output = {}, .argv = {"bench"}, .device = context.device});
  std::string setup =
      text +
      fmt::format("\nimport torch\nx = torch.zeros({0})\ny = torch.zeros({0})\nout = torch.zeros({0})\ngrid = ({1},)\n",
                  kN, kN / kBlock);
  KILN_CHECK_OK(session.run(setup, "bench.py"));
  KILN_TRY(std::function<Status()> call,
           session.prepare(fmt::format("add_kernel[grid](x, y, out, {}, BLOCK={})", kN, kBlock), "bench.py"));
  KILN_TRY(std::vector<double> script, per_call(call));
  Goal goal = {};
  if (context.device.is_cuda()) goal = {Goal::Kind::kMicrosecondsAtMost, 4};
  context.add(time_figure("launch", "script kernel[grid](…), 5 arguments", script, goal));
  return {};
}

}  // namespace kiln::bench
