#include "repl/commands/demo.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>

#include "kernels/case.h"
#include "profiler/compare/comparison.h"
#include "profiler/measure/copy.h"
#include "profiler/measure/measure.h"
#include "profiler/report/table.h"
#include "repl/magics/kernel_target.h"
#include "repl/shell/files.h"
#include "repl/views/static_table.h"
#include "support/diag.h"

namespace kiln::repl {

namespace {

using kernels::Case;
using kernels::Problem;
using kernels::Variant;
using report::Align;
using report::Cell;
using report::Table;

constexpr uint64_t kSeed = 20261121;
constexpr const char* kStaticTarget = kDefaultGpuTarget;

struct Printer {
  bool json;
  void table(const Table& t) const {
    put(stdout, json ? report::to_json(t) : report::to_text(t, report::style_of(STDOUT_FILENO)) + "\n");
    std::fflush(stdout);
  }
  // What is being done: on stderr, and only where somebody looks.
  void progress(const std::string& what) const {
    if (isatty(STDERR_FILENO)) put(stderr, "\r\033[K" + what);
  }
  void end_progress() const { progress(""); }
};

Result<std::vector<const Case*>> chosen_cases(const std::vector<std::string>& names) {
  std::vector<const Case*> cases;
  std::vector<std::string> known;
  for (const Case* c : kernels::all_cases()) known.emplace_back(c->name);
  for (const std::string& n : names) {
    const Case* c = kernels::find_case(n);
    if (!c) return error(ErrorKind::kName, "there is no kernel '{}'; there are {}", n, fmt::join(known, ", "));
    cases.push_back(c);
  }
  return cases;
}

struct DemoSetting {
  const Case* which;
  DType dtype;
  kernels::Shape shape;
};

std::vector<DemoSetting> demo_settings(const std::vector<const Case*>& cases, bool gpu) {
  std::vector<DemoSetting> out;
  for (const Case* c : cases) {
    std::vector<kernels::Shape> shapes = gpu ? c->gpu_sizes() : c->host_sizes();
    // Kernels over rows are shown for bf16 alone, to keep the table short.
    bool rows = shapes[0].size() > 1;
    if (!gpu) {
      out.push_back({c, DType::kF32, shapes[0]});
      continue;
    }
    for (DType t : c->dtypes)
      if (!rows || t == DType::kBF16)
        for (const auto& s : shapes) out.push_back({c, t, s});
  }
  return out;
}

profiler::Launchable launchable(const std::string& name, const std::shared_ptr<Problem>& p) {
  return {name, p->device, [p] { return p->run(); }};
}

double gb_per_s(double bytes, double us) { return bytes / us / 1e3; }

// Runs once and compares with float64; `wrong` is set when the error is above the tolerance.
Result<kernels::Check> run_and_check(const Case& c, const Problem& p, Variant variant) {
  KILN_CHECK_OK(p.run());
  KILN_CHECK_OK(p.device.synchronize());
  return kernels::check(c, p, variant, int64_t{1} << 20);
}

Result<bool> measure_setting(const DemoSetting& s, const Device& device, kernels::Sources& sources, double copy_gb_s,
                             double timeout_s, Table& table) {
  const Case& c = *s.which;
  bool right = true;
  std::shared_ptr<Problem> problems[2];
  kernels::Check checks[2];
  for (Variant v : {Variant::kFused, Variant::kUnfused}) {
    size_t i = static_cast<size_t>(v);
    KILN_TRY(Problem p, c.make(sources, {device, s.dtype, s.shape, kSeed, v}));
    problems[i] = std::make_shared<Problem>(std::move(p));
    KILN_TRY(checks[i], run_and_check(c, *problems[i], v));
    if (!checks[i].ok()) {
      right = false;
      table.add_note(fmt::format("{} {} {}: error {:.2g} is above {:.2g} ({})", c.name,
                                 s.dtype == DType::kF32 ? "f32" : name(s.dtype), name(v), checks[i].error,
                                 checks[i].tolerance, checks[i].worst));
    }
  }
  profiler::CompareOptions options;
  options.timeout_s = timeout_s;
  options.max_pairs = 30;
  // The baseline against itself would double the time of a demo.
  options.control = false;
  KILN_TRY(profiler::Comparison r,
           profiler::compare(launchable("fused", problems[0]), launchable("unfused", problems[1]), options));
  for (Variant v : {Variant::kFused, Variant::kUnfused}) {
    size_t i = static_cast<size_t>(v);
    const Problem& p = *problems[i];
    const profiler::Summary& us = v == Variant::kFused ? r.a_us : r.b_us;
    double rate = gb_per_s(p.bytes, us.median);
    const Cell speedup =
        v == Variant::kFused
            ? Cell::shown(fmt::format("{:.2f} ({:.2f}–{:.2f})", r.speedup, r.speedup_95.low, r.speedup_95.high),
                          r.speedup)
            : Cell::of(1.0, 2);
    const Cell error =
        Cell::shown(fmt::format("{:.1e}{}", checks[i].error, checks[i].ok() ? "" : " WRONG"), checks[i].error);
    const Cell bytes = Cell::shown(report::human_bytes(p.bytes), static_cast<int64_t>(p.bytes));
    const Cell time = Cell::shown(report::human_time(us.median), us.median);
    table.add_row({std::string(c.name), std::string(name(s.dtype)), kernels::to_string(s.shape), std::string(name(v)),
                   Cell::of(static_cast<int64_t>(p.launches.size())), bytes, time, Cell::of(us.spread() * 100, 1),
                   Cell::of(int64_t{us.n}), Cell::of(rate, rate < 100 ? 1 : 0), Cell::of(rate / copy_gb_s * 100, 0),
                   error, speedup});
  }
  return right;
}

// The fused kernels as a GPU of kStaticTarget would get them, with the sizes and warps they have there.
Status static_figures(const std::vector<const Case*>& cases, const Device& device, const Printer& out) {
  Table table = static_table();
  table.set_title(fmt::format("the same kernels compiled for {}, not run", kStaticTarget));
  KILN_TRY(Device cpu, device.runtime().open("cpu"));
  kernels::Sources sources;
  for (const DemoSetting& s : demo_settings(cases, true)) {
    // One row, or one block, of the real size decides the code.
    kernels::Shape small = s.shape;
    // Compiled for the CPU's memory: the arguments of a launch need tensors, and nothing runs.
    small[0] = small.size() > 1 ? 1 : 1 << 14;
    KILN_TRY(Problem p, s.which->make(sources, {cpu, s.dtype, small, kSeed, Variant::kFused, true}));
    const kernels::Launch& l = p.launches[0];
    KILN_TRY(KernelInfo info, l.kernel.compile(l.args, l.options, kStaticTarget));
    add_static_row(table, fmt::format("{} {} {}", s.which->name, name(s.dtype), kernels::to_string(s.shape)), info);
  }
  out.table(table);
  return {};
}

}  // namespace

Result<int> demo_command(const DemoArgs& args, const Device& device, bool json) {
  Printer out{json};
  KILN_TRY(std::vector<const Case*> cases, chosen_cases(args.kernels));
  if (args.kernels.empty()) return expressions_demo(args, device, json);
  DeviceInfo info = device.info();

  constexpr int64_t kCopyBytesGpu = int64_t{1} << 30, kCopyBytesCpu = int64_t{1} << 28;
  int64_t copy_bytes = device.is_cuda() ? kCopyBytesGpu : kCopyBytesCpu;
  out.progress("measuring copy");
  KILN_TRY(profiler::Launchable copy, profiler::copy_launchable(device, copy_bytes));
  profiler::MeasureOptions copy_options;
  copy_options.timeout_s = std::min(5.0, args.timeout_s);
  copy_options.max_noise = 0.01;
  KILN_TRY(profiler::Measurement copied, profiler::measure(copy, copy_options));
  double copy_gb_s = gb_per_s(2.0 * static_cast<double>(copy_bytes), copied.us.median);
  // Its gigabytes are free again for the kernels.
  copy = {};

  Table table({{"kernel", "", Align::kLeft},
               {"type", "", Align::kLeft},
               {"size", "", Align::kLeft},
               {"variant", "", Align::kLeft},
               {"kernels", ""},
               {"bytes", ""},
               {"time", "", Align::kRight, "time_us"},
               {"±", "%", Align::kRight, "spread"},
               {"n", ""},
               {"rate", "GB/s"},
               {"of copy", "%"},
               {"error", ""},
               {"speed-up", "", Align::kRight, "speedup"}});
  table.set_title(
      fmt::format("{} ({}): fused against one kernel per operation; copy {:.4g} GB/s read and written (±{:.1f} %)",
                  device.name(), info.name, copy_gb_s, copied.us.spread() * 100));
  kernels::Sources sources;
  bool all_right = true;
  for (const DemoSetting& s : demo_settings(cases, device.is_cuda())) {
    out.progress(fmt::format("{} {} {}", s.which->name, name(s.dtype), kernels::to_string(s.shape)));
    KILN_TRY(bool right, measure_setting(s, device, sources, copy_gb_s, args.timeout_s, table));
    all_right = all_right && right;
  }
  table.add_note(fmt::format(
      "cold caches, medians of interleaved pairs ({}); ± half the interquartile range; speed-up with its 95 % interval",
      device.is_cuda() ? "device events" : "steady clock"));
  table.add_note("error: largest |got - float64| / max(1, |float64|) over a sample of rows");
  out.end_progress();
  out.table(table);
  KILN_CHECK_OK(static_figures(cases, device, out));
  return all_right ? kExitOk : kExitMismatch;
}

}  // namespace kiln::repl
