// Python that runs while a kernel is compiled: in constexpr functions, and for the globals of a file that calls make.
// Nothing here depends on files, the environment or the clock; what would need them is not known, which is an error.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "compiler/frontend/codegen.h"
#include "support/environment.h"

namespace kiln::frontend {

namespace {

using Values = std::vector<Value>;

constexpr std::string_view kLoader = "importlib.loader";  // of every spec

std::optional<double> number(const Value& v) {
  if (const auto* d = v.constant_as<double>()) return *d;
  if (const auto* i = v.constant_as<ast::Int>()) return static_cast<double>(*i);
  if (const auto* b = v.constant_as<bool>()) return *b ? 1.0 : 0.0;
  return std::nullopt;
}

const std::string* text(const Value& v) { return v.constant_as<std::string>(); }

// A result that Python has an exception for is not known.
std::optional<Value> finite(double v) {
  return std::isfinite(v) ? std::optional<Value>(Value(ast::Constant(v))) : std::nullopt;
}

std::optional<Value> whole(double v) {
  return std::isfinite(v) && std::abs(v) < 0x1p62 ? std::optional<Value>(Value::integer(static_cast<ast::Int>(v)))
                                                  : std::nullopt;
}

using Unary = double (*)(double);
const std::map<std::string_view, Unary>& unary_functions() {
  static const std::map<std::string_view, Unary> table = {
      {"math.sqrt", [](double x) { return std::sqrt(x); }},   {"math.exp", [](double x) { return std::exp(x); }},
      {"math.log2", [](double x) { return std::log2(x); }},   {"math.log10", [](double x) { return std::log10(x); }},
      {"math.log1p", [](double x) { return std::log1p(x); }}, {"math.expm1", [](double x) { return std::expm1(x); }},
      {"math.sin", [](double x) { return std::sin(x); }},     {"math.cos", [](double x) { return std::cos(x); }},
      {"math.tan", [](double x) { return std::tan(x); }},     {"math.tanh", [](double x) { return std::tanh(x); }},
      {"math.erf", [](double x) { return std::erf(x); }},     {"math.fabs", [](double x) { return std::abs(x); }},
  };
  return table;
}

std::optional<Value> math_function(std::string_view path, const Values& a) {
  std::vector<double> x;
  for (const Value& v : a) {
    const std::optional<double> n = number(v);
    if (!n) return std::nullopt;
    x.push_back(*n);
  }
  if (auto it = unary_functions().find(path); it != unary_functions().end() && x.size() == 1)
    return finite(it->second(x[0]));
  if (path == "math.log" && x.size() == 1) return finite(std::log(x[0]));
  if (path == "math.log" && x.size() == 2) return finite(std::log(x[0]) / std::log(x[1]));
  if (path == "math.pow" && x.size() == 2) return finite(std::pow(x[0], x[1]));
  if (path == "math.ceil" && x.size() == 1) return a[0].constant_as<ast::Int>() ? a[0] : whole(std::ceil(x[0]));
  if (path == "math.floor" && x.size() == 1) return a[0].constant_as<ast::Int>() ? a[0] : whole(std::floor(x[0]));
  if (path == "math.isnan" && x.size() == 1) return Value::boolean(std::isnan(x[0]));
  if (path == "math.isinf" && x.size() == 1) return Value::boolean(std::isinf(x[0]));
  return std::nullopt;
}

// importlib finds the modules of Triton; a spec is the module itself here.
std::optional<Value> import_function(std::string_view path, const Values& a) {
  if (path == "importlib.util.module_from_spec" && a.size() == 1 && a[0].module()) return a[0];
  if (path == fmt::format("{}.exec_module", kLoader) && a.size() == 1 && a[0].module()) return Value();
  const std::string* name = a.size() == 1 ? text(a[0]) : nullptr;
  if (!name || !name->starts_with("triton")) return std::nullopt;
  if (path != "importlib.util.find_spec" && path != "importlib.import_module") return std::nullopt;
  if (is_known_module(*name)) return Value(ModulePath{*name});
  // Triton 2 had it; of other modules it is not known here whether there is one.
  const bool gone = *name == "triton.language.libdevice";
  return gone && path == "importlib.util.find_spec" ? std::optional<Value>(Value()) : std::nullopt;
}

// `version.parse("3.4.0")` of released versions: their numbers, which compare as the versions do.
std::optional<Value> version_function(std::string_view path, const Values& a) {
  constexpr std::string_view kFunctions[] = {"packaging.version.parse", "packaging.version.Version",
                                             "pkg_resources.parse_version", "distutils.version.LooseVersion",
                                             "distutils.version.StrictVersion"};
  const std::string* version = a.size() == 1 ? text(a[0]) : nullptr;
  if (!version || std::ranges::find(kFunctions, path) == std::end(kFunctions)) return std::nullopt;
  std::vector<ast::Int> numbers(1);
  for (const char c : *version) {
    constexpr ast::Int kMost = 1'000'000'000;  // a date is a version too
    if (c == '.')
      numbers.push_back(0);
    else if (c >= '0' && c <= '9' && numbers.back() < kMost)
      numbers.back() = 10 * numbers.back() + (c - '0');
    else
      return std::nullopt;
  }
  constexpr size_t kNumbers = 3;  // 3.4 is 3.4.0
  while (numbers.size() > kNumbers && numbers.back() == 0) numbers.pop_back();
  numbers.resize(std::max(numbers.size(), kNumbers));
  Values items;
  for (const ast::Int n : numbers) items.push_back(Value::integer(n));
  return Value::tuple(std::move(items));
}

// `os.environ.get("NAME", "default")` of a variable that is not set is the default. What a variable has that is set is
// not known: code in a cache would outlive it.
std::optional<Value> os_function(std::string_view path, const Values& a) {
  const std::string* name = !a.empty() ? text(a[0]) : nullptr;
  if (!name || a.size() > 2 || (path != "os.environ.get" && path != "os.getenv")) return std::nullopt;
  if (environment(name->c_str())) return std::nullopt;
  return a.size() == 2 ? a[1] : Value();
}

std::optional<Value> python_function(Codegen& g, std::string_view path, const Values& a, SourceRange range) {
  const TupleValue* items = a.empty() ? nullptr : a[0].as_tuple();
  if ((path == "builtins.any" || path == "builtins.all") && a.size() == 1 && items) {
    const bool any = path == "builtins.any";
    for (const Value& v : items->items) {
      if (!v.constant()) return std::nullopt;
      if (ast::truth(*v.constant()) == any) return Value::boolean(any);
    }
    return Value::boolean(!any);
  }
  if (path == "builtins.sum" && a.size() == 1 && items) {
    Value sum = Value::integer(0);
    for (const Value& v : items->items) {
      Result<Value> next = g.binary(ast::BinaryOp::kAdd, {sum, range}, {v, range}, range);
      if (!next.ok()) return std::nullopt;
      sum = *std::move(next);
    }
    return sum;
  }
  if (path == "builtins.abs" && a.size() == 1) {
    if (const auto* i = a[0].constant_as<ast::Int>()) return Value::integer(*i < 0 ? -*i : *i);
    if (const auto* d = a[0].constant_as<double>()) return Value(ast::Constant(std::abs(*d)));
  }
  if (path == "builtins.pow" && a.size() == 2) {
    Result<Value> power = g.binary(ast::BinaryOp::kPow, {a[0], range}, {a[1], range}, range);
    return power.ok() ? std::optional<Value>(*std::move(power)) : std::nullopt;
  }
  if (path == "builtins.round" && a.size() == 1) {
    if (a[0].constant_as<ast::Int>()) return a[0];
    if (const auto* d = a[0].constant_as<double>()) return whole(std::nearbyint(*d));
  }
  if (path == "builtins.enumerate" && a.size() == 1 && items) {
    Values out;
    for (size_t i = 0; i < items->items.size(); ++i)
      out.push_back(Value::tuple({Value::integer(static_cast<ast::Int>(i)), items->items[i]}));
    return Value::tuple(std::move(out));
  }
  if (path == "builtins.zip" && !a.empty()) {
    Values out;
    for (size_t i = 0;; ++i) {
      Values row;
      for (const Value& v : a) {
        if (!v.as_tuple()) return std::nullopt;
        if (i < v.as_tuple()->items.size()) row.push_back(v.as_tuple()->items[i]);
      }
      if (row.size() < a.size()) return Value::tuple(std::move(out));
      out.push_back(Value::tuple(std::move(row)));
    }
  }
  return std::nullopt;
}

// '{} {name}'.format(…), of fields without a format of their own.
std::optional<std::string> formatted(const std::string& form, const Values& a,
                                     const std::vector<std::pair<std::string, Arg>>& keywords) {
  std::string out;
  size_t next = 0;
  for (size_t i = 0; i < form.size(); ++i) {
    const char c = form[i];
    if ((c == '{' || c == '}') && i + 1 < form.size() && form[i + 1] == c) {
      out += c;
      ++i;
      continue;
    }
    if (c == '}') return std::nullopt;
    if (c != '{') {
      out += c;
      continue;
    }
    const size_t end = form.find('}', i);
    if (end == std::string::npos) return std::nullopt;
    const std::string field = form.substr(i + 1, end - i - 1);
    i = end;
    const Value* v = nullptr;
    if (field.empty() && next < a.size()) v = &a[next++];
    if (field.size() == 1 && field[0] >= '0' && field[0] <= '9' && static_cast<size_t>(field[0] - '0') < a.size())
      v = &a[static_cast<size_t>(field[0] - '0')];
    for (const auto& [name, arg] : keywords)
      if (name == field) v = &arg.value;
    if (!v || !v->constant()) return std::nullopt;
    out += to_text(*v);
  }
  return out;
}

std::string replaced(std::string s, const std::string& from, const std::string& by) {
  for (size_t at = 0; !from.empty() && (at = s.find(from, at)) != std::string::npos; at += by.size())
    s.replace(at, from.size(), by);
  return s;
}

std::string stripped(const std::string& s, std::string_view which) {
  constexpr std::string_view kBlank = " \t\n\r\v\f";
  const size_t first = which == "rstrip" ? 0 : std::min(s.find_first_not_of(kBlank), s.size());
  const size_t last = which == "lstrip" ? s.size() : s.find_last_not_of(kBlank) + 1;
  return last > first ? s.substr(first, last - first) : std::string();
}

std::optional<Value> text_method(std::string_view name, const std::string& s, const Values& a,
                                 const std::vector<std::pair<std::string, Arg>>& keywords) {
  if (name == "format") {
    std::optional<std::string> out = formatted(s, a, keywords);
    return out ? std::optional<Value>(Value::text(*std::move(out))) : std::nullopt;
  }
  if (!keywords.empty()) return std::nullopt;
  const std::string* x = a.empty() ? nullptr : text(a[0]);
  if (name == "join" && a.size() == 1 && a[0].as_tuple()) {
    std::string out;
    for (const Value& v : a[0].as_tuple()->items) {
      if (!text(v)) return std::nullopt;
      out += (&v == a[0].as_tuple()->items.data() ? "" : s) + *text(v);
    }
    return Value::text(std::move(out));
  }
  if (name == "split" && a.size() == 1 && x && !x->empty()) {
    Values out;
    for (size_t at = 0, end = 0; end != std::string::npos; at = end + x->size()) {
      end = s.find(*x, at);
      out.push_back(Value::text(s.substr(at, end == std::string::npos ? end : end - at)));
    }
    return Value::tuple(std::move(out));
  }
  if (name == "replace" && a.size() == 2 && x && text(a[1])) return Value::text(replaced(s, *x, *text(a[1])));
  if (name == "startswith" && a.size() == 1 && x) return Value::boolean(s.starts_with(*x));
  if (name == "endswith" && a.size() == 1 && x) return Value::boolean(s.ends_with(*x));
  if ((name == "strip" || name == "lstrip" || name == "rstrip") && a.empty()) return Value::text(stripped(s, name));
  if ((name == "lower" || name == "upper") && a.empty()) {
    std::string out = s;
    for (char& c : out) {
      if (static_cast<unsigned char>(c) >= 0x80) return std::nullopt;
      if (name == "lower" && c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
      if (name == "upper" && c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
    }
    return Value::text(std::move(out));
  }
  return std::nullopt;
}

// A number equals a float or a bool of its value, as Python's == has it.
bool equal(const Value& a, const Value& b) {
  if (const std::optional<double> x = number(a), y = number(b); x && y) return *x == *y;
  return same(a, b);
}

std::optional<Value> tuple_method(std::string_view name, const TupleValue& t, const Values& a) {
  if (a.size() != 1) return std::nullopt;
  if (name == "count")
    return Value::integer(std::ranges::count_if(t.items, [&](const Value& v) { return equal(v, a[0]); }));
  const auto at = std::ranges::find_if(t.items, [&](const Value& v) { return equal(v, a[0]); });
  if (name == "index" && at != t.items.end()) return Value::integer(at - t.items.begin());
  return std::nullopt;
}

std::optional<Value> dict_method(std::string_view name, const TupleValue& d, const Values& a) {
  if (name == "get" && (a.size() == 1 || a.size() == 2)) {
    if (const Value* found = d.find(a[0])) return *found;
    return a.size() == 2 ? a[1] : Value();
  }
  if (!a.empty()) return std::nullopt;
  if (name == "keys") return Value::tuple(d.keys);
  if (name == "values") return Value::tuple(d.items);
  Values pairs;
  for (size_t i = 0; i < d.items.size(); ++i) pairs.push_back(Value::tuple({d.keys[i], d.items[i]}));
  return name == "items" ? std::optional<Value>(Value::tuple(std::move(pairs))) : std::nullopt;
}

constexpr std::string_view kTupleMethods[] = {"count", "index"};
constexpr std::string_view kDictMethods[] = {"get", "items", "keys", "values"};
constexpr std::string_view kTextMethods[] = {"format", "join",   "split",  "replace", "startswith", "endswith",
                                             "strip",  "lstrip", "rstrip", "lower",   "upper"};

}  // namespace

bool is_reading_method(std::string_view name) {
  auto one_of = [&](const auto& names) { return std::ranges::find(names, name) != std::end(names); };
  return one_of(kTextMethods) || one_of(kTupleMethods) || one_of(kDictMethods) || name == "copy";
}

bool Codegen::computing() { return frame().function->constexpr_function; }

std::optional<Value> Codegen::host_name(std::string_view id) {
  for (std::string_view known : {"any", "all", "sum", "abs", "pow", "round", "enumerate", "zip"})
    if (computing() && id == known) return Value(ModulePath{fmt::format("builtins.{}", id)});
  return std::nullopt;
}

std::optional<Value> Codegen::host_attribute(const Arg& base, std::string_view name) {
  // Functions of math compute with constants in kernels too.
  if (const ModulePath* m = base.value.module(); m && m->path == "math")
    return Value(ModulePath{fmt::format("math.{}", name)});
  if (!computing()) return std::nullopt;
  if (const ModulePath* m = base.value.module()) {
    if (name == "loader" && is_known_module(m->path)) return Value(ModulePath{std::string(kLoader)});
    // What a module has that is not followed is known by its path alone: for the functions here to ask for.
    if (!is_known_module(m->path) || m->path == "math") return Value(ModulePath{fmt::format("{}.{}", m->path, name)});
  }
  auto one_of = [&](const auto& names) { return std::ranges::find(names, name) != std::end(names); };
  const bool has = text(base.value)        ? one_of(kTextMethods)
                   : base.value.as_dict()  ? one_of(kDictMethods)
                   : base.value.as_tuple() ? one_of(kTupleMethods) && !one_of(base.value.as_tuple()->fields)
                                           : false;
  if (!has) return std::nullopt;
  return Value(std::make_shared<const MethodValue>(MethodValue{std::string(name), nullptr, nullptr, base, true}));
}

Result<Value> Codegen::host_call(std::string_view name, const Arg* self, const std::vector<Arg>& positional,
                                 const std::vector<std::pair<std::string, Arg>>& keywords, SourceRange range) {
  Values a;
  for (const Arg& p : positional) a.push_back(p.value);
  std::optional<Value> out;
  if (self && text(self->value))
    out = text_method(name, *text(self->value), a, keywords);
  else if (!keywords.empty())
    out = std::nullopt;
  else if (self && self->value.as_dict())
    out = dict_method(name, *self->value.as_dict(), a);
  else if (self)
    out = tuple_method(name, *self->value.as_tuple(), a);
  else if (name.starts_with("math."))
    out = math_function(name, a);
  else if (name.starts_with("numpy."))  // of numbers they are those of math
    out = math_function(fmt::format("math.{}", name.substr(6)), a);
  else if (name.starts_with("importlib."))
    out = import_function(name, a);
  else if (name.starts_with("os."))
    out = os_function(name, a);
  else if (name.starts_with("builtins."))
    out = python_function(*this, name, a, range);
  else
    out = version_function(name, a);
  if (!out) {
    Diagnostic d = fail(range, ErrorKind::kUnsupported, "{} cannot be computed while a kernel is compiled", name);
    const Builtin* row =
        name.starts_with("math.") ? find_builtin(name.substr(5), kInLanguage | kInMath | kInLibdevice) : nullptr;
    return row ? with_note(std::move(d), fmt::format("help: of a tensor it is {}", row->display_name())) : d;
  }
  if (const std::string* s = text(*out)) KILN_CHECK_OK(spend(s->size(), range));
  if (const TupleValue* t = out->as_tuple()) KILN_CHECK_OK(spend(t->items.size() * sizeof(Value), range));
  return *std::move(out);
}

Status Codegen::is_known(const Value& v, SourceRange range) {
  const ModulePath* m = v.module();
  if (!m || is_known_module(m->path) || m->path == kLoader) return {};
  return with_note(fail(range, ErrorKind::kName, "the value of {} is not known", m->path),
                   "help: a kernel is compiled without running the files that it imports; name the value in this file, "
                   "or pass it as a tl.constexpr parameter");
}

Result<bool> Codegen::constant_truth(const Value& v, SourceRange range) {
  if (v.constant()) return ast::truth(*v.constant());
  if (v.as_tuple()) return !v.as_tuple()->items.empty();
  if (v.as_dict()) return !v.as_dict()->items.empty();
  KILN_CHECK_OK(is_known(v, range));
  return true;
}

Result<std::vector<Value>> Codegen::items_of(const Arg& a) {
  if (const TupleValue* t = a.value.as_tuple()) return t->items;
  if (const TupleValue* d = a.value.as_dict()) return d->keys;
  const RangeValue* r = a.value.range();
  const ast::Int* start = r ? r->start.value.constant_as<ast::Int>() : nullptr;
  const ast::Int* end = r ? r->end.value.constant_as<ast::Int>() : nullptr;
  const ast::Int* by = r ? r->step.value.constant_as<ast::Int>() : nullptr;
  if (start && end && by && *by != 0 && (computing() || r->is_static)) {
    std::vector<Value> out;
    for (ast::Int i = *start; *by > 0 ? i < *end : i > *end; i += *by) {
      KILN_CHECK_OK(step(a.range));
      KILN_CHECK_OK(spend(sizeof(Value), a.range));
      out.push_back(Value::integer(i));
    }
    return out;
  }
  const auto is_ascii = [](char c) { return static_cast<unsigned char>(c) < 0x80; };
  if (const std::string* s = text(a.value); s && computing() && std::ranges::all_of(*s, is_ascii)) {
    KILN_CHECK_OK(spend(s->size() * sizeof(Value), a.range));
    std::vector<Value> out;
    for (char c : *s) out.push_back(Value::text(std::string(1, c)));
    return out;
  }
  return fail(a.range, ErrorKind::kType, "only tuples and {} are gone through here, got {}",
              computing() ? "constexpr ranges" : "tl.static_range of constexprs", describe(a.value));
}

Result<Value> Codegen::dict(const ast::Dict& e) {
  Values keys, items;
  for (size_t i = 0; i < e.keys.size(); ++i) {
    if (!e.keys[i])
      return fail(e.values[i]->range, ErrorKind::kUnsupported, "** in a dict is not supported in kernels");
    KILN_TRY(Value key, expr(*e.keys[i]));
    KILN_TRY(Value item, expr(*e.values[i]));
    const auto at = std::ranges::find_if(keys, [&](const Value& k) { return same(k, key); });
    if (at != keys.end()) {
      items[static_cast<size_t>(at - keys.begin())] = std::move(item);
      continue;
    }
    keys.push_back(std::move(key));
    items.push_back(std::move(item));
  }
  KILN_CHECK_OK(spend(2 * items.size() * sizeof(Value), e.range));
  return Value::dict(std::move(keys), std::move(items));
}

Result<Value> Codegen::comprehension(const ast::Comprehension& e) {
  using Form = ast::Comprehension::Form;
  if (e.clauses.size() != 1 || (e.form != Form::kList && (e.form != Form::kGenerator || !computing())))
    return with_note(fail(e.range, ErrorKind::kUnsupported, "this comprehension is not supported in kernels"),
                     "help: [… for x in items] goes through one tuple");
  const ast::ForClause& clause = e.clauses[0];
  KILN_TRY(Value iterable, expr(*clause.iterable));
  KILN_TRY(Values items, items_of({std::move(iterable), clause.iterable->range}));
  const Env outer = frame().env;  // the names of a comprehension end with it
  Values out;
  for (Value& item : items) {
    KILN_CHECK_OK(step(e.range));
    KILN_CHECK_OK(assign(*clause.target, std::move(item), clause.iterable->range, true));
    bool taken = true;
    for (const ast::ExprPtr& c : clause.conditions) {
      KILN_TRY(Value condition, expr(*c));
      if (condition.tensor())
        return fail(c->range, ErrorKind::kType, "the condition of a comprehension is a constexpr, got {}",
                    describe(condition));
      KILN_TRY(bool holds, constant_truth(condition, c->range));
      taken = taken && holds;
    }
    if (!taken) continue;
    KILN_TRY(out.emplace_back(), expr(*e.element));
  }
  frame().env = outer;
  return Value::tuple(std::move(out));
}

Result<Value> Codegen::compute(const FunctionPtr& context, const ast::Expr& e) {
  Frame f;
  f.function = context;
  f.uses = &uses_of(*context->def);
  frames_.push_back(std::move(f));
  return expr(e);
}

std::optional<Global> compute(const FunctionPtr& context, const ast::Expr& e) {
  ir::Module scratch("globals");
  const Options options;
  Codegen g(scratch, options);
  Result<Value> value = g.compute(context, e);
  if (!value.ok() || value->tensor()) return std::nullopt;
  if (const Builtin* b = value->builtin()) {
    std::string path = path_of(*b);
    return path.empty() ? std::nullopt : std::optional<Global>(ModulePath{std::move(path)});
  }
  if (const ModulePath* m = value->module(); m && !is_known_module(m->path)) return std::nullopt;
  return to_global(*value);
}

namespace {

/// A frame of no function of the user's, for values that are computed on their own.
FunctionPtr no_function() {
  static const ast::FunctionDef def{SourceRange{}};
  auto f = std::make_shared<JitFunction>();
  f->def = &def;
  f->constexpr_function = true;
  return f;
}

}  // namespace

Result<Global> compute_call(const Global& callee, std::span<const Global> positional,
                            std::span<const std::pair<std::string, Global>> keywords) {
  ir::Module scratch("call");
  const Options options;
  Codegen g(scratch, options);
  std::vector<Arg> args;
  std::vector<std::pair<std::string, Arg>> named;
  for (const Global& a : positional) args.push_back({from_global(a), {}});
  for (const auto& [name, a] : keywords) named.emplace_back(name, Arg{from_global(a), {}});
  KILN_TRY(Value v, g.compute_call(no_function(), from_global(callee), std::move(args), std::move(named)));
  if (std::optional<Global> out = to_global(v)) return *std::move(out);
  return error(ErrorKind::kType, "{} is not known while a kernel is compiled", describe(v));
}

Result<Value> Codegen::compute_call(const FunctionPtr& context, const Value& callee, std::vector<Arg> positional,
                                    std::vector<std::pair<std::string, Arg>> keywords) {
  Frame f;
  f.function = context;
  f.uses = &uses_of(*context->def);
  frames_.push_back(std::move(f));
  return call(callee, std::move(positional), std::move(keywords), {}, {});
}

namespace {

std::optional<Value> attribute_value(const Global& base, std::string_view name) {
  ir::Module scratch("attribute");
  const Options options;
  Codegen g(scratch, options);
  Result<Value> v = g.compute_attribute(no_function(), from_global(base), name);
  return v.ok() ? std::optional<Value>(*std::move(v)) : std::nullopt;
}

}  // namespace

Result<Value> Codegen::compute_attribute(const FunctionPtr& context, Value base, std::string_view name) {
  Frame f;
  f.function = context;
  f.uses = &uses_of(*context->def);
  frames_.push_back(std::move(f));
  return attribute({std::move(base), {}}, name, {}, {});
}

std::optional<Global> attribute_of(const Global& base, std::string_view name) {
  std::optional<Value> v = attribute_value(base, name);
  if (!v) return std::nullopt;
  if (const Builtin* b = v->builtin()) return Global(ModulePath{path_of(*b)});
  return v->method() ? std::nullopt : to_global(*v);
}

std::optional<Global> predicate_of(const Global& base, std::string_view name) {
  std::optional<Value> v = attribute_value(base, name);
  const MethodValue* m = v ? v->method() : nullptr;
  return m && !m->builtin && !m->function && !m->of_host ? to_global(m->self.value) : std::nullopt;
}

}  // namespace kiln::frontend
