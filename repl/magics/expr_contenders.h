// The variants of a tensor expression as contenders: what %compare, %bench and %sweep make of one.
#pragma once
#include <optional>
#include <string>

#include "kiln/expr.h"
#include "profiler/tune/tune.h"
#include "repl/magics/contenders.h"
#include "repl/magics/magics.h"

namespace kiln::repl {

struct VariantOptions {
  std::span<const ExpressionEdit> edits = {};
  double tuning_s = 5;              // for each kernel, where there is no record of an earlier run; 0: no tuned variant
  std::function<bool()> stop = {};  // asked while tuning
  profiler::TuneRecords* records = nullptr;
  std::function<void(std::string_view)> progress = {};
};

/// Every variant of the expression, the fused one also tuned, then the user's edits. Results are compared with
/// float64 on the host (rows of large ones), each judged by the error of the unfused variant. The baseline is the
/// library's product, or the unfused variant where there is no product; when neither can run, the first that can.
Result<ContenderSet> variant_contenders(const Expr& expr, std::span<const ExprName> names,
                                        const VariantOptions& options = {});

/// The fused variant with each kernel in the fastest of its configurations, by the autotuner and its records; nullopt
/// when the planner knows no others, or its own choice is the fastest.
Result<std::optional<VariantPlan>> tuned_variant(const VariantPlan& fused, const Device& device,
                                                 const VariantOptions& options = {});

/// The fused variant alone; nullopt when the text gives no tensor that is computed here.
Result<std::optional<profiler::Contender>> fused_contender(script::Session& session, const std::string& text);

/// ExpandVariants of a session: nullopt when the text gives no tensor that is computed here.
Result<std::optional<ContenderSet>> expression_contenders(
    script::Session& session, const std::string& text,
    const std::map<std::string, std::vector<ExpressionEdit>>& edits = {});

}  // namespace kiln::repl
