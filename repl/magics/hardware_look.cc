#include "repl/magics/hardware_look.h"

#include <fmt/format.h>

#include <algorithm>

#include "profiler/cupti/range_profiler.h"
#include "repl/views/counters_view.h"
#include "repl/views/lines_view.h"
#include "support/diag.h"
#include "support/text.h"

namespace kiln::repl {

namespace {

namespace cupti = profiler::cupti;
using profiler::KernelSource;
using profiler::LineProfile;
using profiler::Stall;

constexpr double kTells = 0.02;  // of a kernel's samples: what waits less is no line to name

/// "train.py:12 `x = tl.load(p)`": the line with the most samples of these stalls; empty: hardly any.
std::string line_that_waits(const LineProfile& profile, const SourceLines& sources,
                            std::initializer_list<Stall> stalls) {
  const profiler::LineSamples* most = nullptr;
  int64_t waits = 0;
  for (const profiler::LineSamples& line : profile.lines) {
    int64_t n = 0;
    for (Stall s : stalls) n += line.counts.all[static_cast<size_t>(s)];
    if (n > waits) waits = n, most = &line;
  }
  if (!most || most->file < 0) return {};
  if (static_cast<double>(waits) < kTells * static_cast<double>(profile.counts.total())) return {};
  const std::string& file = profile.files[static_cast<size_t>(most->file)];
  const std::string_view text = trimmed(sources.line(file, most->line));
  const std::string_view base = std::string_view(file).substr(file.rfind('/') + 1);
  return text.empty() ? fmt::format("{}:{}", base, most->line) : fmt::format("{}:{} `{}`", base, most->line, text);
}

report::Table not_counted(const CountersAsked& asked, const Diagnostic& why) { return uncounted_table(asked, {}, why); }

/// Lines that stand before what they announce; a table in another format has them as its notes.
void announce(const MagicContext& context, const std::string& text) {
  if (context.format == report::Format::kText) context.output("# " + text + "\n");
}

}  // namespace

std::vector<KernelSource> kernel_sources(const Device& device, const profiler::SampleRun& samples) {
  std::vector<KernelSource> sources;
  for (const auto& code : runtime::loaded_code(device)) {
    auto found = std::find_if(sources.begin(), sources.end(), [&](const auto& s) { return s.kernel == code->name; });
    if (found == sources.end()) found = sources.insert(sources.end(), {code->name, false, {}, {}});
    found->has_dot = code->has_dot;  // the latest of that name
  }
  for (const profiler::SampledFunction& f : samples.functions) {
    auto found = std::find_if(sources.begin(), sources.end(), [&](const auto& s) { return s.kernel == f.name; });
    if (found == sources.end()) continue;
    const SampledCode code = find_code(device, f);
    if (!code.unknown.empty()) continue;
    const LineProfile profile = profiler::line_profile(f, code.machine);
    const SourceLines texts(code.code->sources);
    found->memory_line = line_that_waits(profile, texts, {Stall::kLongScoreboard, Stall::kLgThrottle});
    found->shared_line = line_that_waits(profile, texts, {Stall::kShortScoreboard, Stall::kMioThrottle});
  }
  return sources;
}

Result<HardwareLook> look_at_hardware(MagicContext& context, const std::string& statement,
                                      const std::vector<std::string>& bundles) {
  KILN_TRY(Device device, context.session.device());
  const std::vector<std::string> wanted = bundles.empty() ? std::vector<std::string>{"advice"} : bundles;
  HardwareLook look;
  look.counters.set_title("counters");
  for (const std::string& name : wanted) {
    KILN_TRY([[maybe_unused]] auto known, cupti::bundle(name));
  }
  auto chip = cupti::chip_of(device);
  auto asked = chip.ok() ? counters_asked(*chip, wanted, {}) : Result<CountersAsked>(chip.error());
  auto cost = asked.ok() ? cupti::preview(*chip, asked->names) : Result<cupti::CounterPreview>(asked.error());
  if (!cost.ok()) {
    look.counters = not_counted({}, cost.error());
    look.counters.set_title("counters");
    return look;
  }
  announce(
      context,
      fmt::format("counters: {} of {} in {} of each launch (kernel replay, one run of the statement), then samples "
                  "of program counters for half a second (several runs)",
                  counted_text(asked->names.size(), "metric"), *chip,
                  counted_text(static_cast<size_t>(cost->passes), "pass")));
  KILN_TRY(auto run, statement_runner(context.session, statement, "<%profile>"));
  auto collected = cupti::collect(device, asked->names, {}, run);
  if (!collected.ok()) {
    const ErrorKind kind = collected.error().kind;
    if (kind != ErrorKind::kDevice && kind != ErrorKind::kUnsupported) return std::move(collected.error());
    look.counters = not_counted(*asked, collected.error());
    look.counters.set_title("counters");
    return look;
  }
  look.counters = counters_table(*asked, *collected, device.name());
  look.counters.set_title("counters");
  std::vector<std::optional<cupti::MetricId>> ids;
  for (const cupti::Metric* m : asked->known) ids.push_back(m ? std::optional(m->id) : std::nullopt);
  look.figures = cupti::figures(collected->launches, ids);
  auto samples = sample_statement(device, run, {});
  if (!samples.ok() && samples.error().kind != ErrorKind::kDevice) return std::move(samples.error());
  if (!samples.ok())
    look.counters.add_note("findings name no line of a kernel: " + samples.error().message);
  else
    look.counters.add_note(fmt::format("the lines in the findings are of {} samples of program counters, of {} more",
                                       samples->run.total, counted_text(static_cast<size_t>(samples->runs), "run")));
  look.sources = kernel_sources(device, samples.ok() ? samples->run : profiler::SampleRun{});
  return look;
}

Status add_hardware_look(MagicContext& context, const std::vector<std::string>& bundles, TakenProfile& profile) {
  KILN_TRY(HardwareLook look, look_at_hardware(context, profile.statement, bundles));
  for (const profiler::KernelFigures& f : look.figures)
    if (f.achieved_occupancy) profile.ops.achieved.emplace_back(f.kernel, *f.achieved_occupancy);
  profile.figures = std::move(look.figures), profile.sources = std::move(look.sources);
  profile.more.push_back({"counters", std::move(look.counters)});
  return {};
}

}  // namespace kiln::repl
