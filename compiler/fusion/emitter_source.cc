// What stands around the lines of a kernel: its parameters, the functions that it calls, and its text.
#include <fmt/format.h>

#include <algorithm>

#include "compiler/fusion/emitter.h"
#include "support/diag.h"

namespace kiln::fusion {

namespace {

struct Helper {
  std::string_view name;
  bool libdevice;
  std::string_view text;
};
constexpr Helper kHelpers[] = {
#define KILN_HELPER(name, libdevice, text) {name, libdevice, text},
#include "compiler/fusion/helpers.def"
#undef KILN_HELPER
};

constexpr std::string_view kReserved[] = {
    "and",    "as",    "assert",   "break", "class",  "continue",  "def",   "del",    "elif", "else",
    "except", "False", "finally",  "for",   "from",   "global",    "if",    "import", "in",   "is",
    "lambda", "None",  "nonlocal", "not",   "or",     "pass",      "raise", "return", "True", "try",
    "while",  "with",  "yield",    "tl",    "triton", "libdevice", "range", "min",    "max",  "float",
    "int",    "bool",  "len",      "sum",   "abs",    "print",     "tuple", "list",   "str"};

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

/// Whether the text of a row of expr_op.def calls the function `name` itself, rather than one whose name ends so.
bool calls(std::string_view text, std::string_view name) {
  for (size_t p = text.find(name); p != std::string_view::npos; p = text.find(name, p + 1)) {
    const bool starts = p == 0 || (!is_word(text[p - 1]) && text[p - 1] != '.');
    const size_t end = p + name.size();
    if (starts && (end == text.size() || !is_word(text[end]))) return true;
  }
  return false;
}

}  // namespace

Names::Names() {
  for (std::string_view word : kReserved) taken_.emplace(word);
  for (const Helper& h : kHelpers) taken_.emplace(h.name);
}

std::string Names::fresh(std::string_view hint) {
  std::string name;
  for (char c : hint) name += is_word(c) ? c : '_';
  if (name.empty() || std::isdigit(static_cast<unsigned char>(name[0]))) name = "t" + name;
  std::string out = name;
  for (int i = 1; !taken_.insert(out).second; ++i) out = fmt::format("{}{}", name, i);
  return out;
}

std::string Emitter::size(int64_t value, const std::string& hint) {
  if (value == known_size.first) return known_size.second;
  for (const auto& [name, v] : sizes_)
    if (v == value) return name;
  sizes_.emplace_back(names.fresh(hint), value);
  return sizes_.back().first;
}

std::string Emitter::dimension(int64_t value, const std::string& hint) {
  sizes_.emplace_back(names.fresh(hint), value);
  return sizes_.back().first;
}

std::string Emitter::constant(int64_t value, const std::string& hint) {
  constants_.emplace_back(names.fresh(hint), value);
  return constants_.back().first;
}

std::string Emitter::pointer(int node, int64_t offset, bool output) {
  for (const Pointer& p : pointers_)
    if (p.node == node && p.offset == offset && p.output == output) return p.name;
  const DagNode& n = dag_.nodes[at(node)];
  const std::string hint = !n.name.empty() ? n.name : output ? "out" : n.kind == DagKind::kLeaf ? "x" : "t";
  pointers_.push_back({node, offset, output, names.fresh(hint + "_ptr")});
  return pointers_.back().name;
}

std::string Emitter::pointer_to_value(int value, int64_t offset, const std::string& hint) {
  values_.emplace_back(names.fresh(hint + "_ptr"), TensorArg{value, offset});
  return values_.back().first;
}

std::vector<Argument> Emitter::arguments() const {
  std::vector<Argument> out;
  for (bool output : {false, true})
    for (const Pointer& p : pointers_)
      if (p.output == output) out.push_back({p.name, TensorArg{value_of_[at(p.node)], p.offset}, false});
  for (const auto& [name, value] : values_) out.push_back({name, value, false});
  for (const auto& [name, v] : sizes_) {
    const int64_t f = factor(v);
    out.push_back({f > 1 ? fmt::format("{}_by_{}", name, f) : name, v / f, false});
  }
  for (const Scalar& s : scalars_) {
    Argument a{s.name, {}, false, s.node, s.type};
    std::visit([&](auto v) { a.value = v; }, s.number);
    out.push_back(std::move(a));
  }
  for (const auto& [name, v] : constants_) out.push_back({name, v, true});
  return out;
}

int64_t Emitter::factor(int64_t size) const {
  if (!factors_sizes || size == 0 || size % 16 == 0) return 1;
  return size % 8 == 0 ? 8 : size % 4 == 0 ? 4 : size % 2 == 0 ? 2 : 1;
}

std::vector<std::string> Emitter::prologue() const {
  std::vector<std::string> out;
  for (const auto& [name, v] : sizes_)
    if (const int64_t f = factor(v); f > 1) out.push_back(fmt::format("    {0} = {0}_by_{1} * {1}", name, f));
  return out;
}

std::vector<std::string> Emitter::unspecialized() const {
  std::vector<std::string> out;
  for (const Scalar& s : scalars_)
    if (is_int(s.type) && !s.is_stride) out.push_back(s.name);
  return out;
}

bool Emitter::uses_libdevice() const {
  return libdevice_ || std::any_of(functions_.begin(), functions_.end(), [](const auto& f) { return f->libdevice; });
}

std::vector<std::string> Emitter::functions() const {
  std::vector<std::string> out;
  auto add = [&](std::string_view text) {
    const size_t begin = text.find_first_not_of('\n'), end = text.find_last_not_of(" \n");
    if (begin != std::string_view::npos) out.emplace_back(text.substr(begin, end + 1 - begin));
  };
  for (const Helper& h : kHelpers)
    if (helpers_.contains(h.name)) add(h.text);
  for (const auto& f : functions_) add(f->text);
  return out;
}

void Emitter::use_helper(std::string_view name) {
  for (const Helper& h : kHelpers)
    if (h.name == name) {
      helpers_.emplace(name);
      libdevice_ = libdevice_ || h.libdevice;
      return;
    }
  KILN_UNREACHABLE("no helper {}", name);
}

void Emitter::use_pattern(std::string_view pattern) {
  if (pattern.find("libdevice.") != std::string_view::npos) libdevice_ = true;
  for (const Helper& h : kHelpers)
    if (calls(pattern, h.name)) use_helper(h.name);
}

std::string broken(const std::string& text) {
  const size_t indent = text.find('(') + 1, first = text.find_first_not_of(' ');
  std::string out, word;
  size_t column = 0;
  for (size_t i = 0; i <= text.size(); ++i) {
    if (i < text.size() && !(text[i] == ' ' && i > first + 4 && text[i - 1] == ',')) {
      word += text[i];
      continue;
    }
    if (column > 0 && column + word.size() > 119) {
      out.pop_back();
      out += "\n" + std::string(indent, ' ');
      column = indent;
    }
    out += word;
    column += word.size() + 1;
    if (i < text.size()) out += ' ';
    word.clear();
  }
  return out;
}

std::string function_text(const std::string& name, std::span<const Argument> parameters,
                          std::span<const std::string> unspecialized, const std::string& body) {
  std::string decorator = "@triton.jit", list;
  for (const std::string& each : unspecialized) list += fmt::format("{}\"{}\"", list.empty() ? "" : ", ", each);
  if (!list.empty()) decorator += fmt::format("(do_not_specialize=[{}])", list);
  std::string head;
  for (const Argument& a : parameters) {
    // A float argument is float32 anyway.
    const bool typed = a.scalar >= 0 && a.dtype != DType::kF32;
    head += (head.empty() ? "" : ", ") + a.name +
            (a.is_constexpr ? ": tl.constexpr"
             : typed        ? fmt::format(": tl.{}", info(a.dtype).triton)
                            : "");
  }
  return decorator + "\n" + broken("def " + name + "(" + head + "):") + body;
}

void write_source(const Emitter& e, const std::string& comment, Group& group) {
  if (group.precedes_product) group.body += "\n    tl.extra.cuda.gdc_wait()";
  for (const std::string& l : e.prologue()) group.body += "\n" + l;
  for (const std::string& l : e.lines()) group.body += "\n" + l;
  group.comment = comment;
  group.unspecialized = e.unspecialized();
  group.arguments = e.arguments();
  group.libdevice = e.uses_libdevice();
  group.functions = e.functions();
  group.functions.push_back(function_text(group.kernel, group.arguments, group.unspecialized, group.body));
  group.source = source_of(group);
}

std::string source_of(const Group& group) {
  std::string out = group.comment + imports(group.libdevice);
  for (const std::string& f : group.functions) out += "\n\n" + f + "\n";
  return out;
}

bool is_helper(std::string_view name) {
  return std::ranges::any_of(kHelpers, [&](const Helper& h) { return h.name == name; });
}

std::string imports(bool libdevice) {
  const std::string out = "import triton\nimport triton.language as tl\n";
  return libdevice ? out + "from triton.language.extra import libdevice\n" : out;
}

}  // namespace kiln::fusion
