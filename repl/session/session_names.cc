// What the prompt asks about names: completion, previews, descriptions. Runs nothing of a script that a call would.
#include <algorithm>

#include "repl/modules/results/table_object.h"
#include "repl/modules/torch/tensor_object.h"
#include "repl/modules/triton/kernel.h"
#include "repl/modules/triton/language.h"
#include "repl/session/describe.h"
#include "repl/session/guarded.h"
#include "repl/session/session.h"

namespace kiln::script {

Value look_up(Interp& in, std::string_view path) {
  size_t dot = path.find('.');
  Globals::Slot* slot = in.globals().find(path.substr(0, dot));
  if (!slot) return {};
  Value v = slot->value.missing() ? slot->builtin : slot->value;
  while (dot != std::string_view::npos && !v.missing()) {
    path.remove_prefix(dot + 1);
    dot = path.find('.');
    std::optional<Value> next;
    // An attribute that can only be had after a launch, say, has nothing to show yet.
    if (!guarded(in, [&] { next = in.find_attribute(v, path.substr(0, dot)); }).ok() || !next) return {};
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

namespace {

/// "f(a, *b, c=(1, 2), **rest)" → a, c.
std::vector<std::string> names_in_signature(std::string_view signature) {
  std::vector<std::string> names;
  const size_t open = signature.find('(');
  if (open == std::string_view::npos) return names;
  int depth = 0;
  std::string name;
  bool in_name = true;
  for (char c : signature.substr(open + 1)) {
    if (depth == 0 && (c == ',' || c == ')')) {
      if (!name.empty() && name[0] != '*' && name != "/") names.push_back(name);
      name.clear();
      in_name = true;
      if (c == ')') break;
      continue;
    }
    if (c == '(' || c == '[' || c == '{') ++depth;
    if (c == ')' || c == ']' || c == '}') --depth;
    if (c == '=' || c == ':') in_name = false;
    if (in_name && c != ' ') name += c;
  }
  return names;
}

}  // namespace

std::vector<std::string> Session::parameters(std::string_view path) const {
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
  if (KernelObject* k = innermost_kernel(v)) {
    std::vector<std::string> names;
    for (const ParamDesc& p : k->kernel.params()) names.push_back(p.name);
    return names;
  }
  if (auto* n = v.get<Native>()) return names_in_signature(n->def.signature);
  std::vector<std::string> names;
  if (auto* f = v.get<Function>())
    for (size_t i = bound; i < f->params->size(); ++i) names.push_back((*f->params)[i].name);
  return names;
}

std::vector<std::string> Session::keys(std::string_view path) const {
  constexpr size_t kMost = 1000;
  std::vector<std::string> keys;
  const Value v = look_up(*interp_, path);
  if (auto* table = v.get<TableObject>()) return table->keys();
  auto* dict = v.get<Dict>();
  if (!dict) return keys;
  for (const Table::Entry& entry : dict->table.entries()) {
    if (auto* text = entry.key.get<Str>()) keys.push_back(text->text);
    if (keys.size() == kMost) break;
  }
  return keys;
}

bool Session::computed_tensor(std::string_view path) const {
  auto* t = look_up(*interp_, path).get<TensorObject>();
  return t && !t->is_pending();
}

std::vector<std::string> Session::kernel_names() const {
  std::vector<std::string> names;
  for (const auto& slot : interp_->globals().slots())
    if (innermost_kernel(slot.value)) names.push_back(slot.name);
  std::sort(names.begin(), names.end());
  return names;
}

Result<std::string> Session::source_of(std::string expression) const {
  Value v = look_up(*interp_, expression);
  if (v.missing()) return error(ErrorKind::kName, "there is no '{}'", expression);
  if (KernelObject* k = innermost_kernel(v)) return k->source();
  auto* f = v.get<Function>();
  if (f && f->def) return std::string(f->def->full_range.str());
  if (f) return std::string(f->body->range.str());
  return error(ErrorKind::kType, "'{}' has no source in this session: it is '{}'", expression, interp_->type_name(v));
}

}  // namespace kiln::script
