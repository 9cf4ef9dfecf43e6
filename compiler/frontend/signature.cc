// "*fp32:16, i32, constexpr" → how each parameter is bound.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>

#include "compiler/frontend/value.h"
#include "support/diag.h"
#include "support/tensor_map.h"

namespace kiln::frontend {

namespace {

std::string_view trim(std::string_view s) {
  while (!s.empty() && (s.front() == ' ' || s.front() == '\t')) s.remove_prefix(1);
  while (!s.empty() && (s.back() == ' ' || s.back() == '\t')) s.remove_suffix(1);
  return s;
}

std::vector<std::string_view> split(std::string_view text, char by) {
  std::vector<std::string_view> out;
  if (trim(text).empty()) return out;
  size_t begin = 0;
  int depth = 0;  // of brackets
  for (size_t at = 0; at <= text.size(); ++at) {
    const char c = at < text.size() ? text[at] : by;
    depth += c == '<' || c == '[' || c == '(' ? 1 : c == '>' || c == ']' || c == ')' ? -1 : 0;
    if (c != by || (depth > 0 && at < text.size())) continue;
    out.push_back(trim(text.substr(begin, at - begin)));
    begin = at + 1;
  }
  return out;
}

std::optional<ast::Constant> number(std::string_view s) {
  int64_t i = 0;
  if (auto [end, error] = std::from_chars(s.data(), s.data() + s.size(), i);
      error == std::errc() && end == s.data() + s.size())
    return ast::Constant(ast::Int{i});
  std::string text(s);
  char* end = nullptr;
  double d = std::strtod(text.c_str(), &end);
  bool numeric = !text.empty() && (text[0] == '-' || text[0] == '.' || (text[0] >= '0' && text[0] <= '9'));
  if (numeric && !*end) return ast::Constant(d);
  if (s == "True" || s == "False") return ast::Constant(s == "True");
  if (s == "None") return ast::Constant(ast::None{});
  return std::nullopt;
}

/// "tensordesc<fp16[128, 64]>", with ":16" where rows of the tensor are multiples of 16 bytes, or with ":nan" where its
/// loads find NaN outside of the tensor.
Result<ArgSpec> parse_descriptor(const ast::Param& param, std::string_view entry, SourceRange where) {
  auto wrong = [&] {
    return with_note(
        error_at(where, ErrorKind::kType, "'{}' is no tensor descriptor for the parameter {}", entry, param.name),
        "help: write tensordesc<fp16[128, 64]>: an element type and a block of powers of two, whose last "
        "dimension has at least 16 bytes");
  };
  constexpr std::string_view kName = "tensordesc<", kWholeRows = ":16", kNanOutside = ":nan";
  ArgSpec spec;
  spec.nan_outside = entry.ends_with(kNanOutside);
  if (spec.nan_outside) entry.remove_suffix(kNanOutside.size());
  if (entry.ends_with(kWholeRows)) {
    entry.remove_suffix(kWholeRows.size());
    spec.divisibility = kTensorMapAlignment;
  }
  if (!entry.ends_with("]>")) return wrong();
  const std::string_view inner = entry.substr(kName.size(), entry.size() - kName.size() - 2);
  const size_t bracket = inner.find('[');
  if (bracket == std::string_view::npos) return wrong();
  const std::optional<DType> dtype = parse_dtype(trim(inner.substr(0, bracket)));
  for (std::string_view size : split(inner.substr(bracket + 1), ',')) {
    const std::optional<ast::Constant> n = number(size);
    const auto* value = n ? std::get_if<ast::Int>(&*n) : nullptr;
    if (!value || *value < 1 || *value > ir::kMaxNumel || (*value & (*value - 1)) != 0) return wrong();
    spec.block.push_back(static_cast<int32_t>(*value));
  }
  if (!dtype || spec.block.empty() || spec.block.size() > 5 ||
      spec.block.back() * size_of(*dtype) < kTensorMapAlignment)
    return wrong();
  if (spec.nan_outside && !is_float(*dtype))
    return error_at(where, ErrorKind::kType, "a descriptor padded with NaN is of floats, and '{}' of {} is not", entry,
                    param.name);
  spec.type = ir::pointer_type(*dtype);
  return spec;
}

Result<ArgSpec> parse_entry(const ast::Param& param, std::string_view entry, SourceRange where);

/// "(*fp32:16, i32, 2)", or "(i32,)".
Result<ArgSpec> parse_tuple(const ast::Param& param, std::string_view entry, SourceRange where) {
  if (!entry.ends_with(')'))
    return error_at(where, ErrorKind::kType, "the tuple '{}' of the parameter {} does not end", entry, param.name);
  ArgSpec spec;
  spec.is_tuple = true;
  std::vector<std::string_view> items = split(entry.substr(1, entry.size() - 2), ',');
  if (!items.empty() && items.back().empty()) items.pop_back();
  for (std::string_view item : items) {
    KILN_TRY(spec.items.emplace_back(), parse_entry(param, item, where));
  }
  return spec;
}

Result<ArgSpec> parse_entry(const ast::Param& param, std::string_view entry, SourceRange where) {
  if (entry.starts_with("tensordesc<")) return parse_descriptor(param, entry, where);
  if (entry.starts_with('(')) return parse_tuple(param, entry, where);
  ArgSpec spec;
  size_t colon = entry.find(':');
  std::string_view type = trim(entry.substr(0, colon));
  if (colon == std::string_view::npos) {
    if (std::optional<ast::Constant> c = number(type)) {
      spec.is_constexpr = true;
      spec.value = *c;
      return spec;
    }
  }
  bool pointer = type.starts_with('*');
  std::string_view element = pointer ? type.substr(1) : type;
  spec.is_const = pointer && element.starts_with('k');
  if (spec.is_const) element.remove_prefix(1);
  std::optional<DType> dtype = parse_dtype(element);
  if (!dtype) {
    std::vector<std::string> names = {"constexpr", "fp16", "fp32", "fp64", "bf16"};
    for (const DTypeInfo& t : kDTypes) names.emplace_back(t.name);
    Diagnostic d =
        error_at(where, ErrorKind::kType, "unknown type '{}' for the parameter {} in the signature", type, param.name);
    std::string near = nearest_name(element, names);
    return with_note(std::move(d), near.empty()
                                       ? "help: types are i1 … i64, u8 … u64, fp16, bf16, fp32, fp64, "
                                         "fp8e4nv, fp8e5, fp8e4b15; * makes a pointer, :16 says divisible by 16"
                                       : fmt::format("help: did you mean {}{}?", pointer ? "*" : "", near));
  }
  spec.type = pointer ? ir::pointer_type(*dtype) : ir::scalar_type(*dtype);
  if (colon == std::string_view::npos) return spec;
  std::string_view hint = trim(entry.substr(colon + 1));
  // As in Triton: a value of 1 becomes a constant.
  if (hint == "1" && !pointer && is_int(*dtype)) {
    spec.is_constexpr = true;
    spec.value = ast::Constant(ast::Int{1});
    return spec;
  }
  const bool finer = !pointer && (hint == "8" || hint == "4");  // as launches tell sizes and strides apart
  if ((hint != "16" && !finer) || (!pointer && !is_int(*dtype)))
    return error_at(where, ErrorKind::kValue, "the hint ':{}' of the parameter {} must be :16{}", hint, param.name,
                    pointer ? "" : ", :8, :4 or :1, on an integer");
  spec.divisibility = hint == "16" ? 16 : hint == "8" ? 8 : 4;
  return spec;
}

}  // namespace

Result<ArgSpec> parse_argument_type(const ast::Param& param, std::string_view entry) {
  return parse_entry(param, trim(entry), param.range);
}

Result<std::vector<ArgSpec>> parse_signature(const JitFunction& function, std::string_view signature,
                                             std::span<const std::pair<std::string, Global>> constexprs) {
  const ast::FunctionDef& def = *function.def;
  for (const auto& [name, value] : constexprs) {
    bool known = std::any_of(def.params.begin(), def.params.end(), [&](const ast::Param& p) { return p.name == name; });
    if (known) continue;
    std::vector<std::string> names;
    for (const ast::Param& p : def.params) names.push_back(p.name);
    Diagnostic d = error_at(def.name_range, ErrorKind::kName, "{} has no parameter {}", def.name, name);
    std::string near = nearest_name(name, names);
    return near.empty() ? d : with_note(std::move(d), fmt::format("help: did you mean {}?", near));
  }
  std::vector<std::string_view> entries = split(signature, ',');
  size_t next = 0;
  std::vector<ArgSpec> out;
  for (const ast::Param& p : def.params) {
    auto given = std::find_if(constexprs.begin(), constexprs.end(), [&](const auto& c) { return c.first == p.name; });
    if (given != constexprs.end()) {
      if (next < entries.size() && entries[next] == "constexpr") ++next;
      ArgSpec spec;
      spec.is_constexpr = true;
      spec.value = given->second;
      out.push_back(std::move(spec));
      continue;
    }
    bool by_default = p.default_value && (next >= entries.size() || entries[next] == "constexpr" || is_constexpr(p));
    if (by_default) {
      if (next < entries.size() && entries[next] == "constexpr") ++next;
      const auto* c = ast::dyn_as<ast::ConstantExpr>(p.default_value.get());
      const std::optional<Global> known = !c && function.default_of ? function.default_of(p.name) : std::nullopt;
      if (!c && !known)
        return error_at(p.range, ErrorKind::kValue,
                        "the default of {} is not a plain constant, so its value must be given as a constexpr", p.name);
      ArgSpec spec;
      spec.is_constexpr = true;
      spec.value = c ? Global(c->value) : *known;
      out.push_back(std::move(spec));
      continue;
    }
    if (next >= entries.size())
      return error_at(p.range, ErrorKind::kType, "the signature '{}' has no type for the parameter {}", signature,
                      p.name);
    if (entries[next] == "constexpr") {
      // A signature that leaves out a type puts `constexpr` at a parameter that is none.
      if (!is_constexpr(p) && entries.size() < def.params.size())
        return error_at(p.range, ErrorKind::kType,
                        "the signature '{}' has {} entries, and {} has {} parameters: it gives {} no type", signature,
                        entries.size(), def.name, def.params.size(), p.name);
      return with_note(error_at(p.range, ErrorKind::kType, "the constexpr {} has no value", p.name),
                       fmt::format("help: give {}=… as a constexpr", p.name));
    }
    if (is_constexpr(p) && !number(entries[next]))
      return with_note(
          error_at(p.range, ErrorKind::kType, "{} is a tl.constexpr parameter, so it needs a value, not the type '{}'",
                   p.name, entries[next]),
          fmt::format("help: give {}=… as a constexpr", p.name));
    KILN_TRY(ArgSpec spec, parse_entry(p, entries[next++], p.range));
    out.push_back(std::move(spec));
  }
  if (next < entries.size())
    return error_at(def.name_range, ErrorKind::kType,
                    "the signature has {} type(s) more than {} has parameters, from '{}'", entries.size() - next,
                    def.name, entries[next]);
  return out;
}

}  // namespace kiln::frontend
