// %stats and %diff: the elements of tensors, and the code of kernels and of variants side by side.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>

#include "profiler/lines/disassemble.h"
#include "repl/magics/compile_code.h"
#include "repl/magics/compile_stages.h"
#include "repl/magics/kernel_target.h"
#include "repl/magics/magics.h"
#include "repl/magics/static_expression.h"
#include "repl/modules/torch/tolerance.h"
#include "repl/views/lines_view.h"
#include "repl/views/static_table.h"
#include "repl/views/tensor_figures.h"
#include "repl/views/text_diff.h"
#include "support/diag.h"

namespace kiln::repl {

namespace {

// In columns: two sides of 80.
constexpr int kWidthWithoutTerminal = 160;

int side_by_side_width(const MagicContext& context) {
  const int columns = context.style().width;
  return columns > 0 ? columns : kWidthWithoutTerminal;
}

Stop stop_of(MagicContext& context) {
  return [&session = context.session] { return session.is_interrupted(); };
}

/// "NAME=VALUE" → the value; nullopt when the word is no such option.
std::optional<std::string> option_in(const std::string& word, std::string_view name) {
  if (!word.starts_with(name) || word.size() <= name.size() || word[name.size()] != '=') return std::nullopt;
  return word.substr(name.size() + 1);
}

Result<int64_t> positive(const std::string& text, std::string_view what) {
  int64_t n = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (code != std::errc{} || end != text.data() + text.size() || n < 1)
    return error(ErrorKind::kValue, "{} is a number from 1 on, got '{}'", what, text);
  return n;
}

// --- tensors ---------------------------------------------------------------------------------------------------------

struct TensorOperands {
  std::vector<std::string> expressions;
  std::optional<double> rtol, atol;
  DiffOptions options;
};

Result<TensorOperands> tensor_operands(MagicContext& context, const std::vector<std::string>& parts) {
  TensorOperands out;
  for (const std::string& part : parts) {
    KILN_TRY(std::vector<std::string> words, split_outside_brackets(part, Between::kBlanks));
    std::string expression;
    for (const std::string& word : words) {
      if (auto rtol = option_in(word, "rtol")) {
        KILN_TRY(out.rtol, amount_of(context.session, *rtol, "rtol="));
      } else if (auto atol = option_in(word, "atol")) {
        KILN_TRY(out.atol, amount_of(context.session, *atol, "atol="));
      } else if (auto tile = option_in(word, "tile")) {
        const size_t times = std::min(tile->find('x'), tile->size());
        KILN_TRY(out.options.tile_rows, positive(tile->substr(0, times), "tile="));
        // One number is a square.
        out.options.tile_columns = out.options.tile_rows;
        if (times < tile->size()) {
          KILN_TRY(out.options.tile_columns, positive(tile->substr(times + 1), "tile="));
        }
      } else if (word == "--stage") {
        return error(ErrorKind::kValue, "--stage is for kernels; '{}' is none", parts[0]);
      } else {
        expression += (expression.empty() ? "" : " ") + word;
      }
    }
    if (!expression.empty()) out.expressions.push_back(std::move(expression));
  }
  return out;
}

Status diff_tensors(MagicContext& context, const std::vector<std::string>& parts) {
  KILN_TRY(TensorOperands o, tensor_operands(context, parts));
  if (o.expressions.size() == 1) {
    // "a b"
    KILN_TRY(std::vector<std::string> words, split_outside_brackets(o.expressions[0], Between::kBlanks));
    if (words.size() == 2) o.expressions = std::move(words);
  }
  if (o.expressions.size() != 2)
    return with_note(error(ErrorKind::kValue, "%diff compares two, got {}", o.expressions.size()), "help: %diff A, B");
  KILN_TRY(Tensor got, context.session.tensor(o.expressions[0]));
  KILN_TRY(Tensor wanted, context.session.tensor(o.expressions[1]));
  const script::Tolerance s = script::tolerance_of(got.dtype()), t = script::tolerance_of(wanted.dtype());
  o.options.rtol = o.rtol.value_or(std::max(s.rtol, t.rtol));
  o.options.atol = o.atol.value_or(std::max(s.atol, t.atol));
  o.options.columns = context.style().width;
  KILN_TRY(TensorDiff d, tensor_diff(got, wanted, o.options, stop_of(context)));
  context.print(diff_table(d));
  if (d.differing) context.print(decade_table(d), "errors");
  context.output(heat_map(d));
  return {};
}

// --- kernels ---------------------------------------------------------------------------------------------------------

struct KernelSide {
  ShowRequest request;
  std::string label;
};

/// "NAME BLOCK=64 target=sm_80"; without a name the one of `other`.
Result<KernelSide> kernel_side(MagicContext& context, std::vector<std::string> words, const ShowRequest* other) {
  KernelSide out;
  out.label = fmt::format("{}", fmt::join(words, " "));
  if (other && words[0].find('=') != std::string::npos) {
    out.request.kernel = other->kernel;
    out.label = other->kernel.name() + " " + out.label;
  } else {
    KILN_TRY(out.request.kernel, context.session.kernel(words[0]));
    words.erase(words.begin());
  }
  for (const std::string& word : words) {
    if (auto target = option_in(word, "target"))
      out.request.target = *target;
    else
      out.request.overrides += (out.request.overrides.empty() ? "" : " ") + word;
  }
  if (out.request.target.empty()) {
    const std::string launched = launched_target(out.request.kernel);
    // As it was launched, unless %target says otherwise.
    out.request.target = !context.target.empty() ? context.target : launched;
    if (out.request.target.empty()) {
      KILN_TRY(Device device, context.session.device());
      out.request.target = device.info().target;
    }
  }
  out.label += " (" + out.request.target + ")";
  return out;
}

Result<std::string> stage_text(const ShowRequest& request, const std::string& stage) {
  if (stage != "sass") {
    KILN_TRY(Shown shown, show_stage(request, stage));
    return shown.text;
  }
  KILN_TRY(ShownCode shown, show_code(request));
  if (shown.cubin.empty()) return error(ErrorKind::kDevice, "there is no machine code to show: {}", kNoLinker);
  KILN_TRY(profiler::LineTable machine, profiler::disassemble(shown.cubin, shown.kernel));
  return sass_listing(machine, SourceLines(shown.sources));
}

Status diff_kernels(MagicContext& context, const std::vector<std::string>& parts) {
  std::string stage;
  std::vector<std::vector<std::string>> sides;
  for (const std::string& part : parts) {
    KILN_TRY(std::vector<std::string> words, split_outside_brackets(part, Between::kBlanks));
    for (size_t i = 0; i < words.size();) {
      if (words[i] != "--stage") {
        ++i;
        continue;
      }
      if (i + 1 == words.size())
        return error(ErrorKind::kSyntax, "--stage needs one: ir, layout, llvm, ptx, sass or asm");
      stage = words[i + 1];
      words.erase(words.begin() + static_cast<ptrdiff_t>(i), words.begin() + static_cast<ptrdiff_t>(i) + 2);
    }
    if (!words.empty()) sides.push_back(std::move(words));
  }
  // Two kernels without a comma.
  if (sides.size() == 1 && sides[0].size() == 2) sides = {{sides[0][0]}, {sides[0][1]}};
  if (sides.size() != 2)
    return with_note(error(ErrorKind::kValue, "%diff compares two kernels, got {}", sides.size()),
                     "help: %diff KERNEL num_warps=4, num_warps=8, or %diff KERNEL, target=host");
  KILN_TRY(KernelSide left, kernel_side(context, sides[0], nullptr));
  KILN_TRY(KernelSide right, kernel_side(context, sides[1], &left.request));
  const bool gpu = is_gpu_target(left.request.target) && is_gpu_target(right.request.target);
  if (stage.empty()) stage = gpu ? "ptx" : "ir";
  KILN_TRY(const std::string a, stage_text(left.request, stage));
  KILN_TRY(const std::string b, stage_text(right.request, stage));
  if (gpu) {
    report::Table table = static_table();
    for (const KernelSide* side : {&left, &right}) {
      KILN_TRY(auto info, show_info(side->request));
      add_static_row(table, side->label, info.first);
      if (!info.second.empty()) table.add_note(side->label + ": " + info.second);
    }
    context.print(table);
  }
  // Registers are numbered as they come: one more instruction would change all below it.
  const TextDiff diff = text_diff(a, b, without_numbers);
  if (diff.changed == 0) {
    context.output(
        fmt::format("the {} of both is the same, {} lines (numbers of registers aside)\n", stage, diff.rows.size()));
    return {};
  }
  context.output(
      fmt::format("{}: {} of {} lines differ (numbers of registers aside)\n", stage, diff.changed, diff.rows.size()));
  context.output(side_by_side(diff, {left.label, right.label, side_by_side_width(context), 3, context.color}));
  return {};
}

// --- variants of an expression ---------------------------------------------------------------------------------------

/// "EXPRESSION variant=NAME"; without an expression the one of the other side.
struct VariantSide {
  std::string expression, variant;
};

Result<VariantSide> variant_side(const std::string& part) {
  VariantSide side;
  KILN_TRY(std::vector<std::string> words, split_outside_brackets(part, Between::kBlanks));
  for (const std::string& word : words) {
    if (auto variant = option_in(word, "variant"))
      side.variant = *variant;
    else
      side.expression += (side.expression.empty() ? "" : " ") + word;
  }
  if (side.variant.empty()) side.variant = name(ExprVariant::kFused);
  return side;
}

Result<std::string> variant_source(MagicContext& context, const VariantSide& side) {
  KILN_TRY(const ExprVariant variant, expr_variant_of(side.variant));
  KILN_TRY(std::optional<Expr> expr, context.session.expression(side.expression));
  if (!expr) return error(ErrorKind::kType, "variant= is of tensor expressions; '{}' gives no tensor", side.expression);
  KILN_TRY(const ExprPlan p, plan(*expr, variant, context.session.tensor_names()));
  std::string text;
  for (const ExprGroup& g : p.groups)
    text += g.source.empty() ? fmt::format("# {}: a product by the library\n", g.name)
                             : g.source + (g.source.ends_with('\n') ? "" : "\n");
  return text;
}

Status diff_variants(MagicContext& context, const std::vector<std::string>& parts) {
  if (parts.size() != 2)
    return with_note(error(ErrorKind::kValue, "%diff compares two variants, got {}", parts.size()),
                     "help: %diff EXPRESSION variant=fused, variant=unfused");
  KILN_TRY(VariantSide left, variant_side(parts[0]));
  KILN_TRY(VariantSide right, variant_side(parts[1]));
  if (right.expression.empty()) right.expression = left.expression;
  KILN_TRY(const std::string a, variant_source(context, left));
  KILN_TRY(const std::string b, variant_source(context, right));
  const TextDiff diff = text_diff(a, b, [](std::string_view line) { return std::string(line); });
  if (diff.changed == 0) {
    context.output(fmt::format("the source of both is the same, {} lines\n", diff.rows.size()));
    return {};
  }
  context.output(fmt::format("source: {} of {} lines differ\n", diff.changed, diff.rows.size()));
  // No numbers to leave aside: sources name what they use.
  auto label = [](const VariantSide& side) { return fmt::format("{} ({})", side.expression, side.variant); };
  context.output(side_by_side(diff, {label(left), label(right), side_by_side_width(context), 3, context.color}));
  return {};
}

bool names_a_variant(const std::string& part) {
  return std::ranges::any_of(parts_of(part, Between::kBlanks).words(),
                             [](std::string_view w) { return w.starts_with("variant="); });
}

}  // namespace

Status magic_stats(MagicContext& context, std::string_view arguments) {
  KILN_TRY(Tensor tensor, context.session.tensor(std::string(arguments)));
  KILN_TRY(TensorFigures figures, tensor_figures(tensor, stop_of(context)));
  report::Table counts = count_table(figures);
  counts.set_title(
      fmt::format("{}[{}] {}", name(tensor.dtype()), fmt::join(tensor.shape(), ", "), tensor.device().name()));
  context.print(counts);
  if (figures.finite() == 0) return {};
  context.print(value_table(figures), "quantiles");
  context.print(bin_table(figures), "histogram");
  return {};
}

Status magic_diff(MagicContext& context, std::string_view arguments) {
  KILN_TRY(std::vector<std::string> parts, split_outside_brackets(arguments, Between::kCommas));
  if (parts.empty()) return error(ErrorKind::kSyntax, "%diff needs two tensors or kernels");
  KILN_TRY(std::vector<std::string> words, split_outside_brackets(parts[0], Between::kBlanks));
  // variant= decides before anything is evaluated.
  if (std::ranges::any_of(parts, names_a_variant)) return diff_variants(context, parts);
  if (context.session.kernel(words[0]).ok()) return diff_kernels(context, parts);
  return diff_tensors(context, parts);
}

}  // namespace kiln::repl
