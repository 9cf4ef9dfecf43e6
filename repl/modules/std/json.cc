// json, and _kiln.
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "repl/modules/std/std.h"
#include "repl/script/value/bytes.h"
#include "support/files.h"

namespace kiln::script {

namespace {

std::string quoted(const std::string& text, bool ascii) {
  return nlohmann::json(text).dump(-1, ' ', ascii, nlohmann::json::error_handler_t::replace);
}

struct Writer {
  Interp& in;
  std::string indent = {};  // of one level
  bool pretty = false, sort = false, ascii = true, skip_keys = false, allow_nan = true;
  std::string comma, colon;
  Value otherwise = {};  // what makes a value of one that JSON does not have
  std::string out = {};
  std::vector<const Object*> open = {};  // the containers around what is written

  /// A container that holds itself has no end.
  struct Within {
    Within(Writer& w, const Object* of) : writer(w) {
      if (std::find(w.open.begin(), w.open.end(), of) != w.open.end())
        w.in.fail(ErrorKind::kValue, "Circular reference detected");
      w.open.push_back(of);
    }
    ~Within() { writer.open.pop_back(); }
    Within(const Within&) = delete;
    Within& operator=(const Within&) = delete;
    Writer& writer;
  };

  void line(int depth) {
    if (!pretty) return;
    out += '\n';
    for (int i = 0; i < depth; ++i) out += indent;
  }
  void write(const Value& v, int depth) {
    in.check_stack();
    in.check_interrupt();
    if (v.is_none()) {
      out += "null";
    } else if (v.is_bool()) {
      out += v.boolean() ? "true" : "false";
    } else if (v.is_float()) {
      if (!allow_nan && !std::isfinite(v.real()))
        in.fail(ErrorKind::kValue, "Out of range float values are not JSON compliant: {}", in.repr(v));
      // No JSON, but what Python writes.
      out += std::isnan(v.real())   ? "NaN"
             : std::isinf(v.real()) ? (v.real() > 0 ? "Infinity" : "-Infinity")
                                    : ast::float_repr(v.real());
    } else if (v.is_small_int()) {
      out += std::to_string(v.integer());
    } else if (auto* wide = v.get<WideInt>()) {
      out += ast::to_string(wide->value);
    } else if (auto* text = v.get<Str>()) {
      out += quoted(text->text, ascii);
    } else if (auto* dict = v.get<Dict>()) {
      const Within within(*this, v.object());
      object(*dict, depth);
    } else if (v.get<List>() || v.get<Tuple>()) {
      const Within within(*this, v.object());
      array(in.to_vector(v), depth);
    } else if (!otherwise.missing() && !otherwise.is_none()) {
      // A function that gives its argument back ends with the stack.
      write(in.call(otherwise, {v}), depth);
    } else {
      in.fail(ErrorKind::kType, "Object of type {} is not JSON serializable", in.type_name(v));
    }
  }
  void array(const std::vector<Value>& items, int depth) {
    if (items.empty()) {
      out += "[]";
      return;
    }
    out += '[';
    for (size_t i = 0; i < items.size(); ++i) {
      if (i) out += comma;
      line(depth + 1);
      write(items[i], depth + 1);
    }
    line(depth);
    out += ']';
  }
  void object(Dict& dict, int depth) {
    std::vector<Table::Entry> entries = dict.table.live();
    if (entries.empty()) {
      out += "{}";
      return;
    }
    if (sort) {
      std::vector<Value> keys;
      for (const auto& e : entries) keys.push_back(e.key);
      sort_values(in, keys, Value(), false);
      entries.clear();
      // Sorted are keys; a value may have no order.
      for (const Value& k : keys)
        if (Value* found = dict.table.find(in, k)) entries.push_back({k, *found, 0});
    }
    out += '{';
    bool first = true;
    for (const auto& e : entries) {
      const bool plain =
          e.key.get<Str>() || e.key.is_none() || e.key.is_bool() || e.key.is_float() || e.key.kind() == Kind::kInt;
      if (!plain && skip_keys) continue;
      if (!first) out += comma;
      first = false;
      line(depth + 1);
      if (e.key.get<Str>()) {
        write(e.key, depth + 1);
      } else if (plain) {
        out += '"';
        write(e.key, depth + 1);
        out += '"';
      } else {
        in.fail(ErrorKind::kType, "keys must be str, int, float, bool or None, not {}", in.type_name(e.key));
      }
      out += colon;
      write(e.value, depth + 1);
    }
    line(depth);
    out += '}';
  }
};

std::string to_json(Interp& in, const Value& v, const NativeArgs& a, size_t options) {
  auto given = [&](size_t i) { return !a[options + i].missing() && !a[options + i].is_none(); };
  if (given(5)) {  // its own class says how, given the other options
    constexpr std::pair<std::string_view, size_t> kOptions[] = {{"indent", 0},       {"sort_keys", 1},  {"default", 2},
                                                                {"ensure_ascii", 3}, {"separators", 4}, {"skipkeys", 6},
                                                                {"allow_nan", 7}};
    CallArgs own;
    for (const auto& [name, i] : kOptions)
      if (!a[options + i].missing()) own.keywords.push_back({name, a[options + i], {}});
    const Value encoder = in.call(a[options + 5], own);
    return in.to_text(in.call(in.attribute(encoder, "encode"), {v}), "what encode() gives");
  }
  Writer w{.in = in, .comma = ", ", .colon = ": "};
  if (given(0)) {
    // With line breaks no blank follows a comma, as in Python.
    w.pretty = true;
    w.comma = ",";
    if (auto* text = a[options].get<Str>()) {
      w.indent = text->text;
    } else {
      const int64_t n = in.to_int(a[options], "indent");
      if (n > 100) in.fail(ErrorKind::kValue, "indent is at most 100, got {}", n);
      w.indent = std::string(static_cast<size_t>(std::max<int64_t>(n, 0)), ' ');
    }
  }
  w.sort = given(1) && in.truth(a[options + 1]);
  if (given(2)) w.otherwise = a[options + 2];
  if (!a[options + 3].missing()) w.ascii = in.truth(a[options + 3]);
  if (given(4)) {
    const std::vector<Value> two = in.to_vector(a[options + 4]);
    if (two.size() != 2) in.fail(ErrorKind::kValue, "separators are two texts");
    w.comma = in.to_text(two[0], "a separator");
    w.colon = in.to_text(two[1], "a separator");
  }
  w.skip_keys = given(6) && in.truth(a[options + 6]);
  w.allow_nan = a[options + 7].missing() || in.truth(a[options + 7]);
  w.write(v, 0);
  return std::move(w.out);
}

Value dumps(Interp& in, NativeArgs& a) { return Value::str(to_json(in, a[0], a, 1)); }
Value dump(Interp& in, NativeArgs& a) {
  in.call(in.attribute(a[1], "write"), {Value::str(to_json(in, a[0], a, 2))});
  return Value::none();
}
Value read(Interp& in, const Value& v, NativeArgs& a, std::string_view what) {
  auto hook = [&](size_t i) { return a[i].missing() || a[i].is_none() ? Value() : a[i]; };
  const JsonHooks hooks{hook(1), hook(2), hook(3), hook(4), hook(5)};
  const std::string* bytes = byte_data(v);
  return parse_json(in, bytes ? decode_bytes(in, *bytes, "utf-8", "strict") : in.to_text(v, what), hooks);
}
Value loads(Interp& in, NativeArgs& a) { return read(in, a[0], a, "loads()'s argument"); }
Value load(Interp& in, NativeArgs& a) {
  return read(in, in.call(in.attribute(a[0], "read"), {}), a, "what read() gives");
}

constexpr NativeDef kJson[] = {
    {"dump(obj, fp, *, indent=None, sort_keys=False, default=None, ensure_ascii=True, separators=None, cls=None, "
     "skipkeys=False, allow_nan=True)",
     dump, "writes a value to a file"},
    {"dumps(obj, *, indent=None, sort_keys=False, default=None, ensure_ascii=True, separators=None, cls=None, "
     "skipkeys=False, allow_nan=True)",
     dumps, "a value as text"},
    {"load(fp, *, object_hook=None, parse_float=None, parse_int=None, parse_constant=None, object_pairs_hook=None)",
     load, "the value that a file holds"},
    {"loads(text, *, object_hook=None, parse_float=None, parse_int=None, parse_constant=None, object_pairs_hook=None)",
     loads, "the value that a text is"},
};

// --- _kiln
// ------------------------------------------------------------------------------------------------------------

const Function& function_argument(Interp& in, const Value& v) {
  auto* f = v.get<Function>();
  if (!f) in.fail(ErrorKind::kType, "{} is not a function that a script defines", in.repr(v));
  return *f;
}

std::string_view parameter_kind(const ast::Param& p) {
  switch (p.kind) {
    case ast::Param::Kind::kPlain:
      return p.positional_only ? "POSITIONAL_ONLY" : "POSITIONAL_OR_KEYWORD";
    case ast::Param::Kind::kArgs:
      return "VAR_POSITIONAL";
    case ast::Param::Kind::kKwargs:
      return "VAR_KEYWORD";
    case ast::Param::Kind::kKeywordOnly:
      return "KEYWORD_ONLY";
  }
  KILN_UNREACHABLE("parameter kind");
}

Value parameters(Interp& in, NativeArgs& a) {
  const Function& f = function_argument(in, a[0]);
  const Value annotations = in.attribute(a[0], "__annotations__");
  std::vector<Value> out;
  for (size_t i = 0; i < f.params->size(); ++i) {
    const ast::Param& p = (*f.params)[i];
    // A tuple of one or none, so that None may be a default.
    std::vector<Value> value;
    if (!f.defaults[i].missing()) value.push_back(f.defaults[i]);
    Value* annotation = annotations.get<Dict>()->table.find(p.name);
    out.push_back(
        make<Tuple>(std::vector<Value>{Value::str(p.name), Value::str(std::string(parameter_kind(p))),
                                       make<Tuple>(std::move(value)), annotation ? *annotation : Value::none()}));
  }
  return make<List>(std::move(out));
}

Value source(Interp& in, NativeArgs& a) {
  const Function& f = function_argument(in, a[0]);
  // Decorators stand in front of the function.
  const SourceRange range = f.def ? f.def->full_range : f.body->range;
  const size_t line = range.text->line_of(range.begin);
  std::string text(range.str());
  if (f.def) text += "\n";
  return make<Tuple>(std::vector<Value>{Value::str(std::move(text)), Value::str(range.text->file_name()),
                                        Value::integer(static_cast<int64_t>(line))});
}

Value yields(Interp& in, NativeArgs& a) {
  const Function& f = function_argument(in, a[0]);
  return Value::boolean(f.def && f.def->is_generator);
}

Value import_by_name(Interp& in, NativeArgs& a) {
  const std::string path = in.to_text(a[0], "import_module()'s name");
  if (path.empty()) in.fail(ErrorKind::kValue, "import_module() needs the name of a module");
  return in.required_module(path);
}

Value reload(Interp& in, NativeArgs& a) { return in.reload_module(a[0]); }

constexpr NativeDef kKiln[] = {
    {"create_private(path)", create_private, "makes an empty file of this user alone"},
    {"import_module(name)", import_by_name, "the module of that name"},
    {"parameters(function)", parameters, "(name, kind, (default,) or (), annotation) of each"},
    {"reload(module)", reload, "runs a module's text anew"},
    {"source(function)", source, "(text, file, line)"},
    {"yields(function)", yields, "does a call of it give a generator?"},
};

}  // namespace

void fill_json(Interp& in, ModuleObject& m) {
  add_functions(m, kJson);
  // Caught by its own name, and as the ValueError that it is.
  m.members.set("JSONDecodeError", in.add_exception("JSONDecodeError", "ValueError"));
}
void fill_kiln(Interp&, ModuleObject& m) { add_functions(m, kKiln); }

}  // namespace kiln::script
