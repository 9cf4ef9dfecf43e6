#include "compiler/passes/remarks.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "support/diag.h"

namespace kiln::passes {

namespace {

constexpr RemarkRow kRemarkRows[] = {
#define KILN_REMARK(NAME, KIND, PASS, TEXT) {#NAME, RemarkKind::KIND, PASS, TEXT},
#include "compiler/passes/remarks.def"
};

constexpr std::string_view kOperandSlot = "{operand}", kValueSlot = "{}";

/// "B", with its line where that is another than the remark's.
std::string named(std::string_view operand, const Place& at, const Place& remark) {
  if (at.line == 0 || (at.line == remark.line && at.file == remark.file)) return std::string(operand);
  if (at.file == remark.file) return fmt::format("{} (line {})", operand, at.line);
  return fmt::format("{} ({}:{})", operand, at.file, at.line);
}

std::string filled(std::string_view text, const std::string& operand, std::span<const std::string> values) {
  std::string out;
  while (!text.empty()) {
    if (text.starts_with(kOperandSlot)) {
      out += operand;
      text.remove_prefix(kOperandSlot.size());
    } else if (text.starts_with(kValueSlot)) {
      KILN_ASSERT(!values.empty(), "a remark lacks a value: {}", text);
      out += values.front();
      values = values.subspan(1);
      text.remove_prefix(kValueSlot.size());
    } else {
      out += text.front();
      text.remove_prefix(1);
    }
  }
  KILN_ASSERT(values.empty(), "a remark has a value too many: {}", out);
  return out;
}

}  // namespace

std::span<const RemarkRow> remark_rows() { return kRemarkRows; }

std::string_view name(RemarkKind kind) {
  switch (kind) {
    case RemarkKind::kPassed:
      return "passed";
    case RemarkKind::kMissed:
      return "missed";
    case RemarkKind::kAnalysis:
      return "analysis";
  }
  KILN_UNREACHABLE("kind of remark");
}

RemarkOperand dot_operand(const ir::Op& dot, int index) {
  const ir::Value* v = dot.operand(index);
  while (v->op && (v->op->kind == ir::OpKind::kTrans || v->op->kind == ir::OpKind::kConvertLayout))
    v = v->op->operand(0);
  return {index == 0 ? "A" : "B", v->op ? v->op->range : SourceRange{}};
}

void Remarks::add(const Cause& cause, SourceRange place, const RemarkOperand& operand) {
  Remark r;
  r.reason = cause.reason;
  r.place = place_of(place);
  if (operand.range.text) r.operand_place = place_of(operand.range);
  r.operand = operand.name;
  r.text = filled(row_of(cause.reason).text, named(operand.name, r.operand_place, r.place), cause.values);
  // A loop that was unrolled says the same of each copy.
  const bool is_known = std::any_of(all_.begin(), all_.end(), [&](const Remark& o) {
    return o.reason == r.reason && o.place.line == r.place.line && o.place.column == r.place.column &&
           o.place.file == r.place.file && o.text == r.text;
  });
  if (!is_known) all_.push_back(std::move(r));
}

std::vector<Remark> Remarks::by_place() const {
  std::vector<Remark> sorted = all_;
  std::stable_sort(sorted.begin(), sorted.end(), [](const Remark& a, const Remark& b) {
    // Not by column: sums that took in a product stand at the statement, the product itself at its call.
    return std::tie(a.place.file, a.place.line) < std::tie(b.place.file, b.place.line);
  });
  return sorted;
}

std::string to_string(const Remark& remark) {
  const RemarkRow& row = row_of(remark.reason);
  const std::string place = remark.place.line == 0
                                ? remark.place.file
                                : fmt::format("{}:{}:{}", remark.place.file, remark.place.line, remark.place.column);
  return fmt::format("{}{}remark: {}: {} [{}/{}]", place, place.empty() ? "" : ": ", name(row.kind), remark.text,
                     row.pass, row.name);
}

}  // namespace kiln::passes
