#include "repl/session/describe.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "profiler/report/table.h"
#include "repl/modules/torch/tensor_object.h"
#include "repl/modules/triton/kernel.h"
#include "repl/modules/triton/language.h"
#include "repl/script/builtins/builtins.h"
#include "support/text.h"
#include "support/text_width.h"

namespace kiln::script {

namespace {

constexpr int kSummaryWidth = 60;  // cells

std::string one_line(std::string text) {
  if (size_t end = text.find('\n'); end != std::string::npos) text = text.substr(0, end) + " …";
  if (text_width(text) > kSummaryWidth) text = std::string(beginning_of_width(text, kSummaryWidth - 1)) + "…";
  return text;
}

std::string signature_of(const Function& f, size_t without = 0) {
  using Kind = ast::Param::Kind;
  std::vector<std::string_view> parts;
  bool named_only = false;
  for (size_t i = without; i < f.params->size(); ++i) {
    const ast::Param& p = (*f.params)[i];
    // A lone star where keyword-only parameters begin without *args.
    if (p.kind == Kind::kKeywordOnly && !named_only) parts.push_back("*");
    named_only = named_only || p.kind == Kind::kKeywordOnly || p.kind == Kind::kArgs;
    parts.push_back(p.range.str());
    if (p.positional_only && (i + 1 == f.params->size() || !(*f.params)[i + 1].positional_only)) parts.push_back("/");
  }
  return fmt::format("{}({})", f.name, fmt::join(parts, ", "));
}

/// Each line of a docstring behind two blanks, without the indentation that they share.
std::string indented(std::string_view doc) {
  std::vector<std::string_view> lines;
  size_t shared = std::string_view::npos;
  for (size_t at = 0; at <= doc.size();) {
    const size_t end = std::min(doc.find('\n', at), doc.size());
    lines.push_back(doc.substr(at, end - at));
    const size_t lead = lines.back().find_first_not_of(' ');
    // The first line stands behind the quotes, and has no indentation to share (PEP 257).
    if (lines.size() > 1 && lead != std::string_view::npos) shared = std::min(shared, lead);
    at = end + 1;
  }
  while (!lines.empty() && trimmed(lines.back()).empty()) lines.pop_back();
  std::string out;
  for (size_t i = 0; i < lines.size(); ++i) {
    const std::string_view line = i == 0 ? trimmed(lines[i]) : lines[i].substr(std::min(shared, lines[i].size()));
    if (!line.empty()) out += "  ";
    out += line;
    out += '\n';
  }
  return out;
}

std::string doc_of(Interp& in, Function& f) {
  auto doc = f.attribute(in, "__doc__");
  auto* text = doc ? doc->get<Str>() : nullptr;
  return text && !trimmed(text->text).empty() ? indented(text->text) : std::string();
}

std::string where_of(const Function& f) {
  if (!f.def) return {};
  const Place place = place_of(f.def->name_range);
  return place.line > 0 ? fmt::format(", line {} of {}", place.line, place.file) : std::string();
}

std::string describe_native(const Native& n) {
  // A path that does not say more than the name needs no line.
  std::string out = std::string(n.def.signature) + "\n";
  const std::string_view name = n.def.signature.substr(0, n.def.signature.find('('));
  if (!n.def.help.empty() && n.def.help != name) out += indented(n.def.help);
  return out;
}

/// "torch.softmax(input, dim, dtype=None)" from the method's "softmax(dim, dtype=None)".
std::string signature_of(Interp& in, const MethodFunction& f) {
  const Native* method = in.method(TensorObject::kKind, f.method);
  if (!method) return "torch." + f.method + "()";
  const std::string_view form = method->def.signature, parameters = form.substr(form.find('(') + 1);
  return fmt::format("torch.{}(input{}{}", f.method, parameters.starts_with(')') ? "" : ", ", parameters);
}

std::string doc_of(TypeObject& t) {
  const Value* doc = t.find("__doc__");
  auto* text = doc ? doc->get<Str>() : nullptr;
  return text && !trimmed(text->text).empty() ? indented(text->text) : std::string();
}

std::string describe_class(Interp& in, TypeObject& t) {
  std::string out;
  if (auto* made = t.constructor.get<Native>()) {
    out = describe_native(*made);
  } else {
    const Value* init = t.find("__init__");
    auto* f = init ? init->get<Function>() : nullptr;
    // Without self.
    const std::string form = f ? signature_of(*f, 1) : std::string("()");
    out = t.name + form.substr(form.find('(')) + "\n";
    if (f) out += doc_of(in, *f);
  }
  out += doc_of(t);
  out += "class";
  for (const Ref<TypeObject>& base : t.bases) out += (&base == &t.bases[0] ? " of base " : ", ") + base->name;
  return out + "\n";
}

std::string describe_module(const ModuleObject& m) {
  constexpr size_t kMostShown = 12;
  std::vector<std::string> names;
  m.attribute_names(names);
  // What begins with an underscore is the module's own.
  std::erase_if(names, [](const std::string& n) { return n.empty() || n[0] == '_'; });
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  std::string shown;
  for (size_t i = 0; i < std::min(names.size(), kMostShown); ++i) shown += (i ? ", " : "") + names[i];
  if (names.size() > kMostShown) shown += ", …";
  return fmt::format("module {}\n  {} names: {}\n", m.path, names.size(), shown);
}

std::string describe_tensor(const TensorObject& t) {
  std::string out = t.description();
  const double bytes = static_cast<double>(t.numel()) * size_of(t.dtype());
  out += fmt::format("\n  {} elements, {}", t.numel(), report::human_bytes(bytes));
  // Not computed for this: a description of what is pending must not launch it.
  const Expr held = t.expr();
  if (const Tensor* tensor = held.tensor())
    out += tensor->is_contiguous() ? ", contiguous" : fmt::format(", strides ({})", fmt::join(tensor->strides(), ", "));
  return out + "\ntorch.Tensor\n";
}

}  // namespace

std::string summary_of(Interp& in, const Value& v) {
  if (auto* t = v.get<TensorObject>()) return t->description();
  if (auto* k = v.get<KernelObject>()) return k->signature();
  if (auto* f = v.get<Function>()) return signature_of(*f);
  if (auto* m = v.get<KernelMember>()) return m->signature();
  if (auto* m = v.get<MethodFunction>()) return signature_of(in, *m);
  return one_line(in.repr(v));
}

std::string describe_value(Interp& in, const Value& value) {
  Value v = value;
  const bool is_bound = v.get<BoundMethod>() != nullptr;
  // A method is described as the function that it is bound to, without self.
  if (is_bound) v = v.get<BoundMethod>()->function;
  if (auto* n = v.get<Native>()) return describe_native(*n);
  if (auto* f = v.get<MethodFunction>()) {
    const Native* method = in.method(TensorObject::kKind, f->method);
    return signature_of(in, *f) + "\n" + (method ? indented(method->def.help) : "");
  }
  if (auto* t = v.get<TypeObject>()) return describe_class(in, *t);
  if (auto* m = v.get<ModuleObject>()) return describe_module(*m);
  if (auto* t = v.get<TensorObject>()) return describe_tensor(*t);
  if (auto* m = v.get<KernelMember>())
    return fmt::format("{}\n{}of the kernel language: docs/language.md\n", m->signature(), indented(m->help()));
  if (KernelObject* k = innermost_kernel(v))
    return fmt::format("{}\n{}{}{}\n", k->signature(), doc_of(in, *k->function), in.type_name(v),
                       where_of(*k->function));
  if (auto* f = v.get<Function>())
    return fmt::format("{}\n{}{}{}\n", signature_of(*f, is_bound ? 1 : 0), doc_of(in, *f),
                       is_bound ? "method" : "function", where_of(*f));
  std::string out = one_line(in.repr(v)) + "\n";
  if (auto* instance = v.get<Instance>()) out += doc_of(*instance->type);
  out += in.type_name(v);
  // A text's length is seen in its representation.
  if (!v.get<Str>() && v.object())
    if (auto length = v.object()->length(in)) out += fmt::format(", {} item{}", *length, *length == 1 ? "" : "s");
  return out + "\n";
}

namespace {

Value help(Interp& in, NativeArgs& a) {
  in.output(describe_value(in, a[0]));
  return Value::none();
}
constexpr NativeDef kHelp[] = {{"help(value)", help, "prints what a value is: its form, docstring, shape"}};

}  // namespace

void add_help(Interp& in) { in.add_builtins(kHelp); }

}  // namespace kiln::script
