#include "compiler/ast/annotation.h"

#include <algorithm>
#include <cctype>

namespace kiln::ast {

bool is_constexpr_annotation(const Expr& annotation) {
  if (const auto* name = dyn_as<Name>(&annotation)) return name->id == "constexpr";
  if (const auto* member = dyn_as<Attribute>(&annotation)) return member->name == "constexpr";
  const auto* quoted = dyn_as<ConstantExpr>(&annotation);
  const auto* text = quoted ? std::get_if<std::string>(&quoted->value) : nullptr;
  auto in_path = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.'; };
  return text && (*text == "constexpr" || text->ends_with(".constexpr")) &&
         std::all_of(text->begin(), text->end(), in_path);
}

}  // namespace kiln::ast
