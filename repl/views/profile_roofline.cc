#include "repl/views/profile_roofline.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "profiler/profile/intervals.h"
#include "profiler/profile/schedule.h"
#include "runtime/jit/loaded_code.h"
#include "support/diag.h"

namespace kiln::repl {

namespace {

using profiler::RooflineChart;
using profiler::RoofPoint;
using profiler::Timeline;
using trace::Step;

struct OperandName {
  std::string_view ptx;
  DType dtype;
};
// As a product's instruction names them: ".f32.bf16.bf16" has its result first.
constexpr OperandName kOperands[] = {
    {"bf16", DType::kBF16}, {"tf32", DType::kF32}, {"e4m3", DType::kF8E4M3}, {"e5m2", DType::kF8E5M2},
    {"s8", DType::kI8},     {"u8", DType::kU8},    {"f16", DType::kF16},     {"f64", DType::kF64},
};

/// What multiplies in a range: its kernels' operands, or that a library does, which does not tell.
struct Products {
  std::optional<DType> dtype;
  bool is_library = false;
};

Products products_of(const Device& device, const Timeline& t, std::string_view range) {
  // The innermost range of that name, at any depth above the kernel.
  std::set<std::string> kernels;
  Products found;
  auto is_in = [&](int span) {
    for (; span >= 0; span = t.spans[static_cast<size_t>(span)].parent)
      if (const profiler::Span& s = t.spans[static_cast<size_t>(span)]; s.step == Step::kRange && s.name == range)
        return true;
    return false;
  };
  for (const profiler::Work& w : t.work)
    if (w.kind == profiler::WorkKind::kKernel && is_in(w.span)) kernels.insert(w.name);
  for (size_t i = 0; i < t.spans.size(); ++i)
    if (t.spans[i].step == Step::kLibrary && is_in(static_cast<int>(i))) found.is_library = true;
  // Names of kernels lead to their PTX, as long as they are loaded.
  for (const auto& code : runtime::loaded_code(device))
    if (kernels.contains(code->name))
      if (auto dtype = product_in_ptx(code->ptx)) found.dtype = dtype;
  return found;
}

}  // namespace

std::optional<DType> product_in_ptx(std::string_view ptx) {
  for (std::string_view instruction : {"wgmma.mma_async", "mma.sync"}) {
    const size_t at = ptx.find(instruction);
    if (at == std::string_view::npos) continue;
    std::string_view words = ptx.substr(at, ptx.find_first_of(" \t\n{", at) - at);
    // The first type names the result; the operands follow.
    for (bool result = true; !words.empty();) {
      const size_t end = std::min(words.find('.'), words.size());
      const std::string_view word = words.substr(0, end);
      words.remove_prefix(std::min(end + 1, words.size()));
      const auto* found =
          std::find_if(std::begin(kOperands), std::end(kOperands), [&](const OperandName& o) { return o.ptx == word; });
      if (!result && found != std::end(kOperands)) return found->dtype;
      if (found != std::end(kOperands) || word == "f32" || word == "s32") result = false;
    }
  }
  return std::nullopt;
}

std::vector<RoofPoint> declared_points(const Device& device, const Timeline& timeline,
                                       const profiler::OpsOptions& options) {
  std::vector<RoofPoint> points;
  profiler::OpsOptions each = options;
  // One point for each range: rows by shape or line would divide it.
  each.by_shape = each.lines = false, each.stack = 0;
  const profiler::Ops rows = profiler::ops(timeline, each);
  for (const profiler::OpRow& r : rows.ops) {
    if (r.kind != trace::name(Step::kRange) || (r.flop < 0 && r.bytes < 0) || r.calls == 0) continue;
    const auto calls = static_cast<double>(r.calls);
    RoofPoint& p = points.emplace_back();
    p.name = r.name;
    p.us = profiler::us(r.device) / calls;
    p.bytes = r.bytes < 0 ? -1 : r.bytes / calls, p.flop = r.flop < 0 ? -1 : r.flop / calls;
    p.bytes_from = p.flop_from = profiler::Source::kDeclared;
    if (p.us <= 0) {
      const std::string why = profiler::why_no_device_work(timeline);
      p.problem = why.empty() ? "no kernel is known to have run in it" : why;
    }
    const bool is_step = r.name == profiler::kStepRange;
    // What %profile's own options declare holds for the step, not for a range of that name.
    const std::string declared = is_step ? std::string() : r.operands;
    if (!declared.empty()) p.product = parse_dtype(declared);
    if (is_step && options.product) p.product = options.product;
    if (p.product || p.flop <= 0) continue;
    const Products products = products_of(device, timeline, r.name);
    p.product = products.dtype;
    if (!p.product && products.is_library && p.problem.empty())
      // The kernel of a library cannot be asked for its types.
      p.problem = "a library multiplies in it, and dtype= does not say what";
  }
  return points;
}

RooflineChart chart_of(const Device& device, std::vector<RoofPoint> points, std::string_view cache,
                       const std::function<void(std::string_view)>& progress) {
  RooflineChart chart;
  chart.device = device.name(), chart.hardware = device.info().name, chart.cache = cache;
  chart.points = std::move(points);
  if (!std::ranges::any_of(chart.points, [](const RoofPoint& p) { return p.bytes >= 0 || p.flop >= 0; })) return chart;
  // Ctrl-C ends all of them, each of which takes seconds on a CPU; those that are known already stay.
  bool interrupted = false;
  auto keep = [&](Result<profiler::Ceiling> ceiling, std::string_view what) -> std::optional<profiler::Ceiling> {
    if (ceiling.ok()) return *ceiling;
    if (ceiling.error().kind == ErrorKind::kInterrupted)
      interrupted = true;
    else
      chart.notes.push_back(fmt::format("no ceiling of {}: {}", what, ceiling.error().message));
    return std::nullopt;
  };
  auto say = [&](std::string_view what) {
    if (progress) progress(what);
  };
  say("the ceiling of memory");
  chart.memory = keep(profiler::copy_ceiling(device), "memory");
  say("the ceiling of f32 math");
  chart.vector = keep(profiler::vector_ceiling(device), "f32 math");
  if (device.is_cuda()) {
    say("the ceiling of the L2");
    chart.l2 = keep(profiler::l2_ceiling(device), "the L2");
  }
  std::set<DType> asked;
  for (const RoofPoint& p : chart.points)
    if (p.product && asked.insert(*p.product).second) {
      say("the ceiling of products");
      if (auto ceiling = keep(profiler::product_ceiling(device, *p.product), "products"))
        chart.products[*p.product] = *ceiling;
    }
  if (interrupted) chart.notes.emplace_back("interrupted: not all ceilings were measured");
  return chart;
}

}  // namespace kiln::repl
