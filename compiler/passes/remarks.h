// What passes say about their decisions on a user's kernel, as LLVM's optimization remarks do: "no wgmma: M of the tile
// is 32; it needs 64", at the place of the dot. Collected when asked for; the sentences are remarks.def.
#pragma once
#include <concepts>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "compiler/ir/ir.h"
#include "support/source.h"

namespace kiln::passes {

enum class RemarkKind : uint8_t { kPassed, kMissed, kAnalysis };

enum class Reason : uint8_t {
#define KILN_REMARK(NAME, KIND, PASS, TEXT) k##NAME,
#include "compiler/passes/remarks.def"
};

/// A row of remarks.def.
struct RemarkRow {
  std::string_view name;  // "FewRows"
  RemarkKind kind;
  std::string_view pass, text;
};
std::span<const RemarkRow> remark_rows();
inline const RemarkRow& row_of(Reason reason) { return remark_rows()[static_cast<size_t>(reason)]; }
/// "passed", "missed", "analysis".
std::string_view name(RemarkKind kind);

/// A reason with the values of its sentence: what a test that refuses hands to the one who knows the place.
struct Cause {
  Reason reason{};
  std::vector<std::string> values;
};
inline std::string text_of_value(std::string_view value) { return std::string(value); }
inline std::string text_of_value(std::integral auto value) { return std::to_string(value); }
template <class... T>
Cause because(Reason reason, const T&... values) {
  return {reason, {text_of_value(values)...}};
}

/// An operand that a remark names, and where it comes from.
struct RemarkOperand {
  std::string_view name;
  SourceRange range = {};
};
/// Operand 0 or 1 of a dot, at the op that makes it, behind what only turns it.
RemarkOperand dot_operand(const ir::Op& dot, int index);

struct Remark {
  Reason reason{};
  Place place, operand_place;  // line 0: none
  std::string operand;         // "B", or empty
  std::string text;
};

/// The remarks of one compilation, in the order in which passes made them; of equal ones at one place the first.
class Remarks {
 public:
  void add(const Cause& cause, SourceRange place, const RemarkOperand& operand = {});
  const std::vector<Remark>& all() const { return all_; }
  /// The same, by file and line; of one line in the order of the passes.
  std::vector<Remark> by_place() const;

 private:
  std::vector<Remark> all_;
};

/// Adds to `remarks`; does nothing when nobody asks (null).
template <class... T>
void remark(Remarks* remarks, SourceRange place, Reason reason, const T&... values) {
  if (remarks) remarks->add(because(reason, values...), place);
}
template <class... T>
void remark_operand(Remarks* remarks, SourceRange place, const RemarkOperand& operand, Reason reason,
                    const T&... values) {
  if (remarks) remarks->add(because(reason, values...), place, operand);
}

/// "file.py:12:9: remark: missed: no wgmma: M of the tile is 32; it needs 64 [select_wgmma/FewRows]".
std::string to_string(const Remark& remark);

}  // namespace kiln::passes
