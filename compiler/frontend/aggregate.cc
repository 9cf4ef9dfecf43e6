#include "compiler/frontend/aggregate.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/frontend/codegen.h"
#include "compiler/parse/parser.h"

namespace kiln::frontend {

size_t AggregateClass::index(std::string_view field) const {
  return static_cast<size_t>(std::ranges::find(fields, field, &Field::name) - fields.begin());
}

bool marks_aggregate(std::string_view path) {
  return path == "triton.language.core._aggregate" || path == "triton.language._aggregate" ||
         path == "triton.aggregate" || path == "triton.language.core.aggregate";
}

bool is_hidden_parameter(std::string_view name) {
  return name == "_semantic" || name == "_generator" || name == "_builder";
}

std::shared_ptr<AggregateClass> aggregate_of(const ast::ClassDef& c) {
  auto out = std::make_shared<AggregateClass>();
  out->name = c.name;
  for (const ast::StmtPtr& s : c.body) {
    const auto* a = ast::dyn_as<ast::AnnAssign>(s.get());
    const auto* field = a ? ast::dyn_as<ast::Name>(a->target.get()) : nullptr;
    if (field) out->fields.push_back({field->id, a->annotation.get()});
  }
  return out;
}

void make_member(JitFunction& f, const AggregateClass& of, bool jit) {
  f.class_name = of.name;
  f.in_aggregate = true;
  f.plain = false;
  f.constexpr_function = !jit;
}

void make_constructor(JitFunction& f, std::shared_ptr<const AggregateClass> of) {
  make_member(f, *of, false);
  f.class_name.clear();
  f.bound_name = of->name;
  f.interpret = {};
  f.aggregate = std::move(of);
}

Result<JitFunction> implicit_constructor(const AggregateClass& c, const ast::ClassDef& def) {
  std::string text(static_cast<size_t>(std::max(place_of(def.range).line, 1) - 1), '\n'), parameters, body;
  for (const AggregateClass::Field& f : c.fields) {
    parameters += ", " + f.name;
    body += fmt::format("    self.{0} = {0}\n", f.name);
  }
  text += fmt::format("def {}(self{}):\n{}    pass\n", c.name, parameters, body);
  KILN_TRY(auto module, parse::parse_module(SourceText::make(def.range.text->file_name(), std::move(text))));
  JitFunction f;
  f.def = ast::dyn_as<ast::FunctionDef>(module->body.at(0).get());
  f.module = std::move(module);
  return f;
}

namespace {

/// By the order of ast::BinaryOp and ast::CompareOp.
constexpr std::string_view kOperators[] = {"__add__", "__sub__",    "__mul__",    "__truediv__", "__floordiv__",
                                           "__mod__", "__pow__",    "__matmul__", "__and__",     "__or__",
                                           "__xor__", "__lshift__", "__rshift__"};
constexpr std::string_view kComparisons[] = {"__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__"};

/// What an annotation asks for, where it is one that is known here; nullptr: nothing is checked.
bool (*check_of(const Value& annotation))(const Value&) {
  const Builtin* b = annotation.builtin();
  const std::string_view n = b ? b->name : std::string_view();
  if (n == "tensor") return [](const Value& v) { return v.tensor() != nullptr; };
  if (n == "tuple") return [](const Value& v) { return v.as_tuple() != nullptr; };
  if (n == "tensor_descriptor" || n == "tensor_descriptor_base")
    return [](const Value& v) { return v.descriptor() != nullptr; };
  return nullptr;
}

}  // namespace

Result<Value> Codegen::construct(const FunctionPtr& constructor, std::vector<Arg> positional,
                                 std::vector<std::pair<std::string, Arg>> keywords, SourceRange range) {
  const AggregateClass& of = *constructor->aggregate;
  AggregateValue empty{constructor->aggregate, std::vector<Value>(of.fields.size()),
                       std::vector<bool>(of.fields.size())};
  positional.insert(positional.begin(), {Value(std::make_shared<const AggregateValue>(std::move(empty))), range});
  std::optional<Value> self;
  KILN_TRY(Value nothing, inlined(constructor, std::move(positional), std::move(keywords), range, &self));
  const AggregateValue* made = self ? self->aggregate() : nullptr;
  if (!nothing.is_none() || !made || made->of != constructor->aggregate)
    return fail(range, ErrorKind::kType, "the constructor of {} ends with another value than its object", of.name);
  for (size_t i = 0; i < of.fields.size(); ++i)
    if (!made->given[i])
      return with_note(fail(range, ErrorKind::kType, "the constructor of {} gives its field {} no value", of.name,
                            of.fields[i].name),
                       "defined here", constructor->def->name_range);
  return Value(std::make_shared<const AggregateValue>(AggregateValue{made->of, made->parts}));
}

Status Codegen::set_field(const ast::Attribute& target, Value value, SourceRange value_range) {
  const auto* name = ast::dyn_as<ast::Name>(target.base.get());
  const JitFunction& f = *frame().function;
  const auto binding = name ? frame().env.find(name->id) : frame().env.end();
  const AggregateValue* self = binding == frame().env.end() ? nullptr : binding->second.value.aggregate();
  const bool constructs = f.aggregate && !f.def->params.empty() && name && name->id == f.def->params[0].name && self &&
                          !self->given.empty();
  if (!constructs)
    return with_note(
        fail(target.range, ErrorKind::kUnsupported, "a field of an object is set by its constructor alone"),
        "help: make another object: Class(…)");
  const size_t i = self->of->index(target.name);
  if (i == self->of->fields.size())
    return with_note(fail(target.name_range, ErrorKind::kName, "{} has no field {}", self->of->name, target.name),
                     fmt::format("help: fields are annotated in the class: `{}: tl.tensor`", target.name));
  if (Result<Value> wanted = expr(*self->of->fields[i].annotation); wanted.ok()) {
    const FunctionPtr* other = wanted->function();
    const auto check = check_of(*wanted);
    const bool fits = other && (*other)->aggregate ? value.aggregate() && value.aggregate()->of == (*other)->aggregate
                                                   : !check || check(value);
    if (!fits)
      return fail(value_range, ErrorKind::kType, "the field {} of {} is a {}, got {}", target.name, self->of->name,
                  self->of->fields[i].annotation->range.str(), describe(value));
  }
  AggregateValue changed = *self;
  changed.parts[i] = std::move(value);
  changed.given[i] = true;
  binding->second.value = Value(std::make_shared<const AggregateValue>(std::move(changed)));
  return {};
}

std::optional<Value> Codegen::member_of(const Arg& object, std::string_view name) {
  const AggregateValue* a = object.value.aggregate();
  const FunctionPtr* constructor = object.value.function();
  const AggregateClass* of = a ? a->of.get() : constructor ? (*constructor)->aggregate.get() : nullptr;
  if (!of) return std::nullopt;
  if (const size_t i = of->index(name); a && i < of->fields.size()) {
    if (!a->given.empty() && !a->given[i]) return std::nullopt;
    return a->parts[i];
  }
  const auto it = of->members.find(name);
  if (it == of->members.end()) return std::nullopt;
  FunctionPtr function = it->second.function;
  if (!a || it->second.is_static) return Value(std::move(function));
  return Value(
      std::make_shared<const MethodValue>(MethodValue{std::string(name), nullptr, std::move(function), object}));
}

Result<std::optional<Value>> Codegen::call_member(const Arg& object, std::string_view name, std::vector<Arg> args,
                                                  SourceRange range) {
  const std::optional<Value> method = object.value.aggregate() ? member_of(object, name) : std::nullopt;
  if (!method) return std::optional<Value>();
  KILN_TRY(Value out, call(*method, std::move(args), {}, range, range));
  return std::optional<Value>(std::move(out));
}

Result<std::optional<Value>> Codegen::operate(ast::BinaryOp op, const Arg& a, const Arg& c, SourceRange range) {
  return call_member(a, kOperators[static_cast<size_t>(op)], {c}, range);
}

Result<std::optional<Value>> Codegen::operate(ast::CompareOp op, const Arg& a, const Arg& c, SourceRange range) {
  const auto i = static_cast<size_t>(op);
  return i < std::size(kComparisons) ? call_member(a, kComparisons[i], {c}, range) : std::optional<Value>();
}

}  // namespace kiln::frontend
