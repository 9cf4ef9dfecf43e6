// What the prompt asks about names: completion, previews, descriptions. Runs nothing of a script that a call would.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "compiler/ast/walk.h"
#include "compiler/parse/parser.h"
#include "repl/modules/modules.h"
#include "repl/modules/results/table_object.h"
#include "repl/modules/torch/tensor_object.h"
#include "repl/modules/triton/kernel.h"
#include "repl/modules/triton/language.h"
#include "repl/session/describe.h"
#include "repl/session/guarded.h"
#include "repl/session/session.h"
#include "support/text.h"

namespace kiln::script {

namespace {

/// The value of an index that is written as a literal: a string without escapes, or an int. Missing for anything else.
Value literal_index(std::string_view text) {
  if (text.size() >= 2 && (text[0] == '\'' || text[0] == '"') && text.find(text[0], 1) == text.size() - 1 &&
      text.find('\\') == std::string_view::npos)
    return Value::str(std::string(text.substr(1, text.size() - 2)));
  int64_t n = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), n);
  return code == std::errc{} && end == text.data() + text.size() ? Value::integer(n) : Value();
}

/// Of containers that are no class of a script.
Value item_of(Interp& in, const Value& base, const Value& index) {
  if (auto* dict = base.get<Dict>()) {
    const Value* found = dict->table.find(in, index);
    return found ? *found : Value();
  }
  if (!base.get<List>() && !base.get<Tuple>() && !base.get<TableObject>() && !base.get<RowObject>()) return {};
  Value out;
  const Status done = guarded(in, [&] { out = in.item(base, index); });
  return done.ok() ? out : Value();
}

}  // namespace

Value look_up(Interp& in, std::string_view path) {
  const size_t first = path.find_first_of(".[");
  Globals::Slot* slot = in.globals().find(path.substr(0, first));
  if (!slot) return {};
  Value v = slot->value.missing() ? slot->builtin : slot->value;
  path.remove_prefix(std::min(first, path.size()));
  while (!path.empty() && !v.missing()) {
    if (path[0] == '[') {
      // A string may have a bracket in it.
      const bool is_string = path.size() > 1 && (path[1] == '\'' || path[1] == '"');
      const size_t end = path.find(']', is_string ? path.find(path[1], 2) : 1);
      if (end == std::string_view::npos) return {};
      const Value index = literal_index(trimmed(path.substr(1, end - 1)));
      if (index.missing()) return {};
      v = item_of(in, v, index);
      path.remove_prefix(end + 1);
      continue;
    }
    if (path[0] != '.') return {};
    path.remove_prefix(1);
    const std::string_view name = path.substr(0, path.find_first_of(".["));
    path.remove_prefix(name.size());
    std::optional<Value> next;
    // An attribute that can only be had after a launch, say, has nothing to show yet.
    if (!guarded(in, [&] { next = in.find_attribute(v, name); }).ok() || !next) return {};
    v = *next;
  }
  return v;
}

std::vector<std::string> Session::complete(std::string_view word) const {
  size_t dot = word.rfind('.');
  std::vector<std::string> names;
  std::string head;
  if (dot == std::string_view::npos) {
    for (const auto& slot : interp_->globals().slots())
      if (!slot.value.missing() || !slot.builtin.missing()) names.push_back(slot.name);
  } else {
    head = word.substr(0, dot + 1);
    Value base = look_up(*interp_, word.substr(0, dot));
    if (base.missing()) return {};
    interp_->method_names(base.kind(), names);
    if (auto* o = base.object()) o->attribute_names(names);
  }
  std::string_view start = dot == std::string_view::npos ? word : word.substr(dot + 1);
  std::vector<std::string> out;
  for (const std::string& n : names)
    if (n.rfind(start, 0) == 0 && (n[0] != '_' || !start.empty())) out.push_back(head + n);
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

Result<std::string> Session::describe(std::string expression) const {
  Value v = look_up(*interp_, expression);
  // Not a name, but perhaps a short expression, such as `x[0]`.
  if (v.missing()) {
    KILN_TRY(v, value_of(*interp_, std::move(expression)));
  }
  std::string text;
  KILN_CHECK_OK(guarded(*interp_, [&] { text = describe_value(*interp_, v); }));
  return text;
}

std::string Session::preview(std::string_view expression) const {
  const Value v = look_up(*interp_, expression);
  if (v.missing()) return {};
  const bool is_callable = v.get<Function>() || v.get<BoundMethod>() || v.get<Native>() || v.get<TypeObject>() ||
                           v.get<KernelObject>() || v.get<KernelMember>() || v.get<MethodFunction>();
  const bool is_safe = v.get<TensorObject>() || v.get<Str>() || v.get<ModuleObject>() || !v.object();
  std::string text;
  const Status described = guarded(*interp_, [&] {
    if (is_callable)
      text = describe_value(*interp_, v);
    else if (is_safe)
      text = fmt::format("{} · {}", interp_->type_name(v), summary_of(*interp_, v));
    else
      text = interp_->type_name(v);
  });
  return described.ok() ? text.substr(0, text.find('\n')) : std::string();
}

std::vector<std::string> Session::modules(std::string_view typed) const { return importable(*interp_, typed); }

std::vector<std::string> Session::names_of_module(std::string_view path) const {
  std::vector<std::string> names;
  // A module's text may be wrong.
  const Status done = guarded(*interp_, [&] { names = importable_names(*interp_, path); });
  return done.ok() ? names : std::vector<std::string>();
}

namespace {

using Parameter = Session::Parameter;

std::vector<Parameter> parameters_of(const Native& n) {
  std::vector<Parameter> out;
  for (const Native::Parameter& p : n.parameters())
    if (p.rest == Native::Parameter::Rest::kNo)
      out.push_back({std::string(p.name), !p.keyword_only, true, std::string(p.initial)});
  return out;
}

std::vector<Parameter> parameters_of(const Function& f, size_t bound) {
  std::vector<Parameter> out;
  for (size_t i = bound; i < f.params->size(); ++i) {
    const ast::Param& p = (*f.params)[i];
    if (p.kind == ast::Param::Kind::kPlain || p.kind == ast::Param::Kind::kKeywordOnly)
      out.push_back({p.name, p.kind == ast::Param::Kind::kPlain, !p.positional_only,
                     p.default_value ? std::string(p.default_value->range.str()) : ""});
  }
  return out;
}

/// What the last `name[…](…)` gave for a parameter, as code.
std::string launched_with(const std::string& launch, std::string_view parameter) {
  auto module = parse::parse_module(SourceText::make("<launch>", launch));
  const auto* only =
      module.ok() && (*module)->body.size() == 1 ? ast::dyn_as<ast::ExprStmt>((*module)->body[0].get()) : nullptr;
  const auto* call = only ? ast::dyn_as<ast::Call>(only->value.get()) : nullptr;
  if (call)
    for (const ast::Keyword& k : call->keywords)
      if (k.name == parameter) return std::string(k.value->range.str());
  return {};
}

}  // namespace

std::vector<Session::Parameter> Session::parameters(std::string_view path) const {
  Value v = look_up(*interp_, path);
  size_t bound = 0;  // parameters that the call does not give
  if (auto* t = v.get<TypeObject>()) {
    if (const Value* made = t->find("__init__"); made && t->constructor.missing())
      v = *made, bound = 1;
    else
      v = t->constructor;
  }
  if (auto* m = v.get<BoundMethod>()) {
    v = m->function;
    bound = v.get<Function>() ? 1 : 0;
  }
  if (KernelObject* k = innermost_kernel(v)) return parameters_of(*k->function, 0);
  if (auto* f = v.get<Function>()) return parameters_of(*f, bound);
  if (auto* n = v.get<Native>()) return parameters_of(*n);
  std::vector<Parameter> out;
  if (auto* f = v.get<MethodFunction>()) {  // torch.softmax(input, …) is input.softmax(…)
    const Native* method = interp_->method(TensorObject::kKind, f->method);
    if (!method) return {};
    out = parameters_of(*method);
    out.insert(out.begin(), {"input", true, true, ""});
    return out;
  }
  if (auto* m = v.get<KernelMember>())
    for (const KernelMember::Parameter& p : m->parameters())
      if (!p.takes_rest) out.push_back({p.name, true, true, p.initial});
  return out;
}

std::vector<std::string> Session::argument_values(std::string_view path, std::string_view parameter) const {
  const Value found = look_up(*interp_, path);
  if (auto* m = found.get<KernelMember>())
    if (std::vector<std::string> words = m->words_of(parameter); !words.empty()) return words;
  std::vector<std::string> out;
  for (const Parameter& p : parameters(path))
    if (p.name == parameter) {
      if (p.initial == "True" || p.initial == "False") return {"True", "False"};
      if (!p.initial.empty() && p.initial != "None") out.push_back(p.initial);
    }
  if (const auto launch = last_launch(path))
    if (std::string given = launched_with(*launch, parameter); !given.empty() && (out.empty() || given != out[0]))
      out.push_back(std::move(given));
  return out;
}

std::vector<Session::Key> Session::keys(std::string_view path) const {
  constexpr size_t kMost = 1000;
  std::vector<Key> keys;
  const Value v = look_up(*interp_, path);
  auto* row = v.get<RowObject>();
  if (auto* table = row ? row->table.get() : v.get<TableObject>()) {
    for (std::string& key : table->keys()) keys.push_back({std::move(key), true});
    return keys;
  }
  auto* dict = v.get<Dict>();
  if (!dict) return keys;
  for (const Table::Entry& entry : dict->table.entries()) {
    if (entry.key.missing()) continue;  // removed
    if (auto* text = entry.key.get<Str>())
      keys.push_back({text->text, true});
    else if (!entry.key.object())
      keys.push_back({interp_->repr(entry.key), false});
    if (keys.size() == kMost) break;
  }
  return keys;
}

bool Session::is_kernel(std::string_view path) const { return innermost_kernel(look_up(*interp_, path)) != nullptr; }
bool Session::is_of_kernels(std::string_view path) const {
  return look_up(*interp_, path).get<KernelMember>() != nullptr;
}

bool Session::computed_tensor(std::string_view path) const {
  const Value found = look_up(*interp_, path);
  auto* t = found.get<TensorObject>();
  return t && !t->is_pending();
}

std::vector<std::string> Session::kernel_names() const {
  std::vector<std::string> names;
  for (const auto& slot : interp_->globals().slots())
    if (innermost_kernel(slot.value)) names.push_back(slot.name);
  std::sort(names.begin(), names.end());
  return names;
}

namespace {

/// A class statement with its decorators, up to the end of its body.
std::string source_of_class(const ast::ClassDef& def) {
  const std::string_view text = def.range.text->text();
  size_t begin = def.range.begin, end = def.range.end;
  if (!def.decorators.empty()) begin = text.rfind('@', def.decorators[0]->range.begin);
  auto reach = [&](SourceRange range) { end = std::max<size_t>(end, range.end); };
  ast::walk(
      def.body,
      [&](const ast::Stmt& s) {
        reach(s.range);
        if (const auto* f = ast::dyn_as<ast::FunctionDef>(&s)) reach(f->full_range);
      },
      [&](const ast::Expr& e) { reach(e.range); });
  return std::string(text.substr(begin, end - begin));
}

}  // namespace

Result<std::string> Session::source_of(std::string expression) const {
  Value v = look_up(*interp_, expression);
  if (v.missing()) return error(ErrorKind::kName, "there is no '{}'", expression);
  if (auto* m = v.get<BoundMethod>()) v = m->function;
  if (KernelObject* k = innermost_kernel(v)) return k->source();
  if (auto* f = v.get<Function>()) return std::string(f->def ? f->def->full_range.str() : f->body->range.str());
  auto* instance = v.get<Instance>();
  const TypeObject* type = instance ? instance->type.get() : v.get<TypeObject>();
  if (type && type->def) return source_of_class(*type->def);
  return error(ErrorKind::kType, "'{}' has no source in this session: it is '{}'", expression, interp_->type_name(v));
}

}  // namespace kiln::script
