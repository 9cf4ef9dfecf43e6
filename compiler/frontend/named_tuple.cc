#include "compiler/frontend/named_tuple.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "compiler/parse/parser.h"

namespace kiln::frontend {

namespace {

bool derives_from_named_tuple(const ast::ClassDef& c) {
  return std::ranges::any_of(c.bases, [](const ast::ExprPtr& base) {
    if (const auto* n = ast::dyn_as<ast::Name>(base.get())) return n->id == "NamedTuple";
    const auto* a = ast::dyn_as<ast::Attribute>(base.get());
    return a && a->name == "NamedTuple";
  });
}

}  // namespace

Result<JitFunction> named_tuple(const std::string& name, const std::vector<NamedTupleField>& fields,
                                const std::string& file, int line) {
  std::string text(static_cast<size_t>(std::max(line, 1) - 1), '\n'), parameters, items;
  for (const NamedTupleField& f : fields) {
    parameters += (parameters.empty() ? "" : ", ") + f.name;
    if (!f.default_text.empty()) parameters += "=" + f.default_text;
    items += f.name + ", ";
  }
  // The text is part of the keys of caches: a function that gives a tuple without names has another one.
  text += fmt::format("def {}({}):\n    \"\"\"A NamedTuple.\"\"\"\n    return ({})\n", name, parameters, items);
  KILN_TRY(auto module, parse::parse_module(SourceText::make(file, std::move(text))));
  JitFunction f;
  f.def = ast::dyn_as<ast::FunctionDef>(module->body.at(0).get());
  f.module = std::move(module);
  f.named_tuple = true;
  return f;
}

Result<std::optional<JitFunction>> named_tuple(const ast::ClassDef& c) {
  if (!derives_from_named_tuple(c)) return std::optional<JitFunction>();
  std::vector<NamedTupleField> fields;
  for (const ast::StmtPtr& s : c.body) {
    const auto* a = ast::dyn_as<ast::AnnAssign>(s.get());
    const auto* field = a ? ast::dyn_as<ast::Name>(a->target.get()) : nullptr;
    if (field) fields.push_back({field->id, a->value ? std::string(a->value->range.str()) : std::string()});
  }
  KILN_TRY(JitFunction f, named_tuple(c.name, fields, c.range.text->file_name(), place_of(c.range).line));
  return std::optional<JitFunction>(std::move(f));
}

const std::string* text_of(const ast::Expr& e) {
  const auto* c = ast::dyn_as<ast::ConstantExpr>(&e);
  return c ? std::get_if<std::string>(&c->value) : nullptr;
}

std::vector<NamedTupleField> named_tuple_fields(const ast::Expr& names) {
  std::vector<NamedTupleField> fields;
  if (const std::vector<ast::ExprPtr>* items = ast::items_of(&names)) {
    for (const ast::ExprPtr& item : *items) {
      const std::string* name = text_of(*item);
      if (!name) return {};
      fields.push_back({*name, ""});
    }
  } else if (const std::string* text = text_of(names)) {
    std::string name;
    for (const char c : *text + " ") {
      if (c != ' ' && c != ',')
        name += c;
      else if (!name.empty())
        fields.push_back({std::exchange(name, {}), ""});
    }
  }
  return fields;
}

}  // namespace kiln::frontend
