#include "compiler/ast/annotation.h"

#include <algorithm>
#include <cctype>

namespace kiln::ast {

namespace {

/// Whether an annotation is this name of triton.language, or a string that says so.
bool is_language_name(const Expr& annotation, std::string_view name) {
  if (const auto* plain = dyn_as<Name>(&annotation)) return plain->id == name;
  if (const auto* member = dyn_as<Attribute>(&annotation)) return member->name == name;
  const auto* quoted = dyn_as<ConstantExpr>(&annotation);
  const auto* text = quoted ? std::get_if<std::string>(&quoted->value) : nullptr;
  auto in_path = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.'; };
  return text && (*text == name || text->ends_with(std::string(".") + std::string(name))) &&
         std::all_of(text->begin(), text->end(), in_path);
}

}  // namespace

bool is_constexpr_annotation(const Expr& annotation) { return is_language_name(annotation, "constexpr"); }
bool is_const_annotation(const Expr& annotation) { return is_language_name(annotation, "const"); }

}  // namespace kiln::ast
