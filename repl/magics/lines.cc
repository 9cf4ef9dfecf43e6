// %lines and %sass: machine code and stall reasons by source line.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "repl/magics/compile_code.h"
#include "repl/magics/kernel_target.h"
#include "repl/magics/lines_run.h"
#include "repl/magics/magics.h"
#include "repl/magics/statement_arguments.h"
#include "repl/views/lines_view.h"
#include "repl/views/static_table.h"
#include "support/diag.h"
#include "support/launch_options.h"

namespace kiln::repl {

namespace {

using profiler::LineProfile;
using profiler::SampledFunction;
using report::Cell;

constexpr size_t kTopLines = 8, kTopInstructions = 24;
constexpr double kWorthShowing = 0.01;  // of all samples: kernels below it are only named

struct LinesArguments {
  std::string what;  // a statement, or a kernel's name with NAME=VALUE
  size_t top = kTopLines;
  SampleOptions sample;
  bool verbose = false;
};

Result<int64_t> number_of(std::string_view name, std::string_view text, int64_t least, int64_t most) {
  int64_t value = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failed != std::errc{} || end != text.data() + text.size() || value < least || value > most)
    return error(ErrorKind::kValue, "{} must be an integer from {} to {}, not '{}'", name, least, most, text);
  return value;
}

/// Options stand behind the statement, which may have any text of its own.
Result<LinesArguments> parse(std::string_view text) {
  KILN_TRY(const MagicArguments arguments, parse_statement_arguments(text, magic_options("lines")));
  LinesArguments out;
  out.what = arguments.expressions[0];
  out.verbose = arguments.has("-v");
  if (const std::string* top = arguments.find("top")) {
    KILN_TRY(int64_t rows, number_of("top", *top, 1, 1'000'000));
    out.top = static_cast<size_t>(rows);
  }
  if (const std::string* runs = arguments.find("runs")) {
    KILN_TRY(int64_t count, number_of("runs", *runs, 1, 1'000'000));
    out.sample.runs = static_cast<int>(count);
  }
  if (const std::string* period = arguments.find("period")) {
    KILN_TRY(int64_t cycles, number_of("period", *period, 32, int64_t{1} << 31));
    if (cycles & (cycles - 1))
      return error(ErrorKind::kValue, "period is a power of two of cycles, from 32 to {}, not {}", int64_t{1} << 31,
                   cycles);
    while (cycles >> out.sample.period_log2 > 1) ++out.sample.period_log2;
  }
  return out;
}

/// "name A=1 B=2" → the name and the rest; nullopt for any other text.
std::optional<std::pair<std::string, std::string>> kernel_and_overrides(const std::string& text) {
  const size_t end = std::min(text.find(' '), text.size());
  std::string name = text.substr(0, end), rest = text.substr(end);
  const auto is_name = [](char c) { return c == '_' || c == '.' || std::isalnum(static_cast<unsigned char>(c)); };
  if (name.empty() || !std::all_of(name.begin(), name.end(), is_name)) return std::nullopt;
  for (size_t at = 0; (at = rest.find_first_not_of(' ', at)) != rest.npos;) {
    const size_t stop = std::min(rest.find(' ', at), rest.size());
    const size_t equals = rest.find('=', at);
    if (equals == rest.npos || equals == at || equals + 1 >= stop) return std::nullopt;
    at = stop;
  }
  return std::pair(std::move(name), rest.empty() ? rest : rest.substr(1));
}

std::string run_text(int runs) { return runs == 1 ? "1 run" : fmt::format("{} runs", runs); }

// --- without samples -----------------------------------------------------------------------------------------------

Status show_static(MagicContext& context, const ShowRequest& request, const std::string& why) {
  KILN_TRY(ShownCode shown, show_code(request));
  StaticLines lines;
  lines.ptx = profiler::ptx_lines(shown.ptx);
  std::string missing = kNoLinker;
  if (!shown.cubin.empty()) {
    missing.clear();
    auto machine = machine_lines(shown.cubin, shown.kernel, &missing);
    if (machine.ok())
      lines.machine = *std::move(machine);
    else
      missing = machine.error().message;
  }
  const SourceLines sources(std::move(shown.sources));
  report::Table table = static_lines_table(lines, sources);
  table.set_title(fmt::format("{} for {}: instructions by line, not sampled", shown.kernel, shown.target));
  table.add_note(why);
  if (!missing.empty()) table.add_note(missing);
  if (!shown.assumptions.empty()) table.add_note(shown.assumptions);
  context.print(table);
  return {};
}

/// What an expression's kernels look like, without running them.
Status show_static_expression(MagicContext& context, const Expr& expr, const std::string& target,
                              const std::string& why) {
  KILN_TRY(ExprPlan shape, plan(expr, ExprVariant::kFused, context.session.tensor_names()));
  for (const ExprGroup& group : shape.groups) {
    if (group.source.empty()) continue;
    KILN_TRY(Kernel kernel, Kernel::from_source(group.source, "<" + group.name + ">", group.kernel));
    std::string overrides;
    for (const LaunchOption& o : kLaunchOptions) overrides += (overrides.empty() ? "" : " ") + o.text(group);
    for (const auto& [name, value] : group.constants) overrides += fmt::format(" {}={}", name, value);
    KILN_CHECK_OK(show_static(context, {kernel, overrides, target}, why));
  }
  return {};
}

// --- with samples --------------------------------------------------------------------------------------------------

struct Shown {
  const SampledFunction* samples = nullptr;
  SampledCode code;
};

void print_kernel(MagicContext& context, const LinesArguments& arguments, const Shown& shown, int64_t all) {
  const SampledFunction& f = *shown.samples;
  const SourceLines sources(shown.code.code->sources);
  const LineProfile profile = profiler::line_profile(f, shown.code.machine);
  report::Table hot = hot_lines_table(profile, sources, arguments.top);
  const std::string name = fmt::format("{}: {:.1f} % of the samples", f.name,
                                       100.0 * static_cast<double>(profile.counts.total()) / static_cast<double>(all));
  hot.set_title(name + ", hottest lines first");
  const std::vector<profiler::Stall> reasons = profile.counts.by_weight();
  if (!reasons.empty() && !profiler::what_helps(reasons[0]).empty())
    hot.add_note(
        fmt::format("it mostly {}; remedy: {}", profiler::in_words(reasons[0]), profiler::what_helps(reasons[0])));
  context.print(hot, "hot");
  report::Table source = annotated_source_table(profile, sources);
  source.set_title(f.name + ", in the order of the source");
  context.print(source, "source");
  if (!arguments.verbose) return;
  report::Table instructions = hot_instructions_table(f, shown.code.machine, sources, kTopInstructions);
  instructions.set_title(f.name + ", the hottest instructions");
  if (!shown.code.machine.code.empty() && shown.code.machine.code[0].text.empty())
    instructions.add_note("the instructions' text needs nvdisasm (CUDA_HOME, /usr/local/cuda, PATH)");
  context.print(instructions, "instructions");
}

Status show_samples(MagicContext& context, const LinesArguments& arguments, const Device& device,
                    const std::string& statement) {
  KILN_TRY(auto run, statement_runner(context.session, statement, "<%lines>"));
  KILN_TRY(Samples samples, sample_statement(device, run, arguments.sample));
  const profiler::SampleRun& r = samples.run;
  int64_t all = 0;
  for (const SampledFunction& f : r.functions) all += profiler::total_samples(f);
  report::Table table({{"kernel", "", report::Align::kLeft},
                       {"samples", ""},
                       {"share", "%"},
                       {"nothing issued", "%"},
                       {"what its warps do", "", report::Align::kLeft, "doing"}});
  table.set_title(fmt::format("{} samples in {}, one every {} cycles of each SM", all, run_text(samples.runs),
                              int64_t{1} << r.period_log2));
  std::vector<Shown> worth;
  for (const SampledFunction& f : r.functions) {
    profiler::StallCounts counts;
    for (const profiler::SampledPc& s : f.pcs) counts.add(s.counts);
    const auto n = static_cast<double>(counts.total());
    if (n == 0) continue;
    table.add_row({f.name, Cell::of(counts.total()), Cell::of(100 * n / static_cast<double>(all), 1),
                   Cell::of(100 * static_cast<double>(counts.total_idle()) / n, 1), profiler::describe(counts)});
    Shown shown{&f, find_code(device, f)};
    if (!shown.code.unknown.empty())
      table.add_note(fmt::format("{}: {}", f.name, shown.code.unknown));
    else if (n >= kWorthShowing * static_cast<double>(all))
      worth.push_back(std::move(shown));
  }
  if (all == 0)
    table.add_note("nothing was sampled: the statement launches no kernel, or too short ones for the period");
  if (r.dropped)
    table.add_note(
        fmt::format("{} of {} samples were dropped by the GPU: a longer period= keeps them", r.dropped, r.total));
  if (r.elsewhere) table.add_note(fmt::format("{} more samples are of the driver's own kernels", r.elsewhere));
  table.add_note(
      "sampled by CUPTI in separate runs: these are no timings; \"nothing issued\" is the share in whose "
      "cycle the scheduler had no warp to issue from");
  context.print(table);
  for (const Shown& shown : worth) print_kernel(context, arguments, shown, all);
  return {};
}

}  // namespace

Status magic_lines(MagicContext& context, std::string_view text) {
  KILN_TRY(LinesArguments arguments, parse(text));
  KILN_TRY(Device device, context.session.device());
  const bool gpu = device.is_cuda();
  const std::string not_here = fmt::format("nothing was sampled: {} has no program counters to sample", device.name());
  if (auto parts = kernel_and_overrides(arguments.what)) {
    if (auto kernel = context.session.kernel(parts->first); kernel.ok()) {
      std::optional<std::string> launch = context.session.last_launch(parts->first);
      if (gpu && launch && parts->second.empty() && context.target.empty())
        return show_samples(context, arguments, device, *launch);
      KILN_TRY(std::string target, gpu_target_of(context, *kernel));
      return show_static(context, {*kernel, parts->second, target},
                         gpu ? "nothing was sampled: give a statement that launches it" : not_here);
    }
  }
  if (gpu && context.target.empty()) return show_samples(context, arguments, device, arguments.what);
  const std::string why = gpu ? fmt::format("nothing was sampled: %target is {}; %target {} samples again",
                                            context.target, device.info().target)
                              : not_here;
  // Kernels that the statement launches are shown as it launches them.
  KILN_TRY(auto run, statement_runner(context.session, arguments.what, "<%lines>"));
  KILN_TRY(std::vector<script::Launched> launched, context.session.launches_of(run));
  std::vector<std::string> names;
  for (const script::Launched& l : launched)
    if (std::find(names.begin(), names.end(), l.info.name) == names.end()) names.push_back(l.info.name);
  bool shown = false;
  for (const std::string& name : names) {
    auto kernel = context.session.kernel(name);
    if (!kernel.ok()) continue;
    KILN_TRY(std::string target, gpu_target_of(context, *kernel));
    KILN_CHECK_OK(show_static(context, {*kernel, {}, target}, why));
    shown = true;
  }
  if (shown) return {};
  KILN_TRY(std::optional<Expr> expr, context.session.expression(arguments.what));
  if (!expr)
    return error(ErrorKind::kValue, "'{}' launches no kernel of the script and gives no tensor expression",
                 arguments.what);
  return show_static_expression(context, *expr, context.target.empty() ? kDefaultGpuTarget : context.target, why);
}

Status magic_sass(MagicContext& context, std::string_view arguments) {
  const std::string text(arguments);
  auto parts = kernel_and_overrides(text);
  if (!parts) return error(ErrorKind::kValue, "%sass shows a kernel by its name, with NAME=VALUE behind it");
  KILN_TRY(Kernel kernel, context.session.kernel(parts->first));
  KILN_TRY(std::string target, gpu_target_of(context, kernel));
  KILN_TRY(ShownCode shown, show_code({kernel, parts->second, target}));
  if (!shown.assumptions.empty()) context.output("# " + shown.assumptions + "\n");
  if (shown.cubin.empty()) return error(ErrorKind::kDevice, "there is no machine code to show: {}", kNoLinker);
  std::string missing;
  KILN_TRY(profiler::LineTable machine, machine_lines(shown.cubin, shown.kernel, &missing));
  const SourceLines sources(shown.sources);
  if (missing.empty()) {
    context.output(sass_listing(machine, sources));
    return {};
  }
  report::Table table = static_lines_table({profiler::ptx_lines(shown.ptx), std::move(machine)}, sources);
  table.set_title(fmt::format("{} for {}: instructions by line", shown.kernel, target));
  table.add_note(missing);
  context.print(table);
  return {};
}

}  // namespace kiln::repl
