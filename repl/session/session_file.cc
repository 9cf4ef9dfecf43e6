#include "repl/session/session_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "repl/modules/torch/tensor_object.h"
#include "repl/modules/triton/kernel.h"
#include "repl/script/interp/interp.h"
#include "repl/script/value/bytes.h"
#include "repl/script/value/classes.h"
#include "repl/session/guarded.h"
#include "repl/session/session_table.h"
#include "runtime/files/safetensors.h"
#include "support/diag.h"

namespace kiln::script {

namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kMetadataName = "kiln.session";
constexpr int kDeepest = 100;  // containers in one another

/// Modules whose members may have got names of their own: from triton import cdiv.
constexpr std::string_view kUsualModules[] = {
    "triton", "triton.language", "torch",    "torch.nn.functional", "math", "time", "os", "sys", "random", "functools",
    "json",   "operator",        "itertools"};

/// Why a value cannot be saved.
struct Refused {
  std::string reason;
};

/// What a file's values other than tensors may have: the format's headers end at 100 MB, in which quotes take two
/// bytes.
constexpr size_t kMostText = size_t{40} << 20;

std::string json_of(const std::string& text) { return Json(text).dump(-1, ' ', false, Json::error_handler_t::replace); }

/// Where a class or function can be had again: a module and its name there. Empty: of the session itself, or nowhere.
struct Origin {
  std::string module, member;
};

Origin origin_of(Interp& in, const Value& v) {
  Origin out;
  if (auto* type = v.get<TypeObject>()) {
    const Value* module = type->members.find("__module__");
    if (auto* text = module ? module->get<Str>() : nullptr) out.module = text->text;
    out.member = type->name;
  } else if (auto* f = v.get<Function>()) {
    out.module = f->program->globals->module;
    out.member = f->name;
  }
  if (out.module.empty() || out.module == "__main__") return {};
  const Ref<ModuleObject> module = in.import_module(out.module);
  const std::optional<Value> there = module ? in.find_attribute(module, out.member) : std::nullopt;
  return there && there->same(v) ? out : Origin{};
}

bool is_enum(TypeObject& type) { return type.find("__members__") != nullptr && type.find("_member_list") != nullptr; }

/// Made by a call of collections.namedtuple.
bool is_named_tuple(TypeObject& type) {
  return !type.def && type.base_kind == Kind::kTuple && type.members.find("_fields") &&
         type.members.find("_field_defaults");
}

/// Where a class of the session is found again: its variable, perhaps with classes around it, "Outer.Inner"; empty:
/// nowhere.
std::string path_of_class(Session& session, TypeObject& type) {
  Interp& in = session.interp();
  const Value wanted(&type);
  if (is_named_tuple(type)) {
    const Globals::Slot* usual = in.globals().find(type.name);
    if (usual && !usual->value.missing() && usual->value.same(wanted)) return type.name;
    for (const Globals::Slot& slot : in.globals().slots())
      if (!slot.value.missing() && slot.value.same(wanted) && !slot.name.starts_with('_')) return slot.name;
    return {};
  }
  const std::string path = type.qualified_name.empty() ? type.name : type.qualified_name;
  const std::string root = path.substr(0, path.find('.'));
  const Globals::Slot* slot = in.globals().find(root);
  if (!slot || slot->value.missing() || !slot->value.get<TypeObject>() || !session.source_of(root).ok()) return {};
  const Value found = look_up(in, path);
  return !found.missing() && found.same(wanted) ? path : std::string();
}

/// Writes values as JSON. What JSON has not is an object with one key: {"tuple": […]}, {"tensor": "x"}.
class Writer {
 public:
  explicit Writer(Session& session) : session_(session), in_(session.interp()) {}

  /// Appends a value to `text`. Throws Refused. `path` names the value's tensors.
  void value(const Value& v, const std::string& path, int depth = 0) {
    in_.check_interrupt();
    if (depth > kDeepest) throw Refused{"it is nested too deep, or holds itself"};
    if (text.size() > kMostText)
      throw Refused{fmt::format("values other than tensors have more than the {} MB of a file", kMostText >> 20)};
    if (v.is_none()) return add("null");
    if (v.is_bool()) return add(v.boolean() ? "true" : "false");
    if (v.is_small_int()) return add(fmt::format("{}", v.integer()));
    if (v.is_float()) return real(v.real());
    if (v.is_dtype()) return wrapped("dtype", [&] { add(json_of(std::string(name(v.dtype())))); });
    if (auto* o = v.object(); o && o->own_type()) return instance(v, **o->own_type(), path, depth);
    plain(v, path, depth);
  }

  std::string text;
  std::vector<runtime::NamedTensor> tensors;
  bool holds_instances = false;  // of classes: what holds them is read after the classes

 private:
  void add(std::string_view piece) { text += piece; }
  template <class Body>
  void wrapped(std::string_view kind, Body&& body) {
    text += fmt::format("{{\"{}\":", kind);
    body();
    text += '}';
  }
  void real(double v) {
    if (std::isfinite(v)) return add(Json(v).dump());
    wrapped("float", [&] { add(std::isnan(v) ? "\"nan\"" : v > 0 ? "\"inf\"" : "\"-inf\""); });
  }
  template <class Range, class Each>
  void array(const Range& elements, Each&& each) {
    text += '[';
    bool is_first = true;
    for (const auto& element : elements) {
      if (!std::exchange(is_first, false)) text += ',';
      each(element);
    }
    text += ']';
  }
  void items(const std::vector<Value>& values, const std::string& path, int depth) {
    array(values, [&, i = 0](const Value& v) mutable {
      value(v, v.object() ? fmt::format("{}.{}", path, i) : path, depth + 1);
      ++i;
    });
  }
  void keys(const Table& table, const std::string& path, int depth) {
    array(table.live(), [&](const Table::Entry& e) { value(e.key, path, depth + 1); });
  }
  void pairs(const Table& table, const std::string& path, int depth) {
    array(table.live(), [&](const Table::Entry& e) {
      text += '[';
      const size_t begin = text.size();
      value(e.key, path, depth + 1);
      const auto* name = e.key.get<Str>();
      const std::string shown = name ? name->text : text.substr(begin);
      text += ',';
      value(e.value, path + "." + shown, depth + 1);
      text += ']';
    });
  }

  void plain(const Value& v, const std::string& path, int depth) {
    if (auto* s = v.get<Str>()) return add(json_of(s->text));
    if (auto* i = v.get<WideInt>()) return wrapped("int", [&] { add(json_of(in_.repr(Value(i)))); });
    if (auto* t = v.get<Tuple>(); t && (t->class_name.empty() || t->class_name == "torch.Size"))
      return wrapped(t->class_name.empty() ? "tuple" : "size", [&] { items(t->items, path, depth); });
    if (auto* l = v.get<List>()) return items(l->items, path, depth);
    if (auto* b = v.get<Bytes>()) return wrapped("bytes", [&] { add(json_of(hex_of(b->data))); });
    if (auto* r = v.get<Range>())
      return wrapped("range", [&] { add(fmt::format("[{},{},{}]", r->start, r->stop, r->step)); });
    if (auto* s = any_set(v))
      return wrapped(v.get<FrozenSet>() ? "frozenset" : "set", [&] { keys(s->table, path, depth); });
    if (auto* d = v.get<Dict>()) return wrapped("dict", [&] { pairs(d->table, path, depth); });
    if (v.get<TensorObject>()) return tensor(v, path);
    if (auto* t = v.get<TableObject>()) return wrapped("table", [&] { table(*t, path, depth); });
    if (auto* n = v.get<Native>()) {
      const Globals::Slot* slot = in_.globals().find(n->name);
      if (slot && !slot->builtin.missing() && slot->builtin.same(v))
        return wrapped("builtin", [&] { add(json_of(n->name)); });
    }
    if (auto* t = v.get<TypeObject>()) return wrapped("class", [&] { class_name(*t); });
    throw Refused{fmt::format("values of type '{}' are not saved", in_.type_name(v))};
  }

  /// Its fields, and what it holds as a list, dict, str… of the language.
  void instance(const Value& v, TypeObject& type, const std::string& path, int depth) {
    // An enum's members are the class's own.
    for (const Table::Entry& e : type.members.live())
      if (auto* name = e.key.get<Str>(); name && e.value.same(v))
        return wrapped("member", [&] {
          text += '[';
          class_name(type);
          text += "," + json_of(name->text) + "]";
        });
    Dict* fields = fields_of(v);
    if (!fields) throw Refused{fmt::format("values of type '{}' are not saved", type.name)};
    // Flags together are no member by themselves, and yet one object.
    if (const Value* bits = is_enum(type) ? fields->table.find("_value_") : nullptr)
      return wrapped("enum", [&] {
        text += '[';
        class_name(type);
        text += ',';
        value(*bits, path, depth + 1);
        text += ']';
      });
    wrapped("instance", [&] {
      text += '[';
      class_name(type);
      text += ',';
      pairs(fields->table, path, depth);
      text += ',';
      if (auto* d = v.get<Dict>())
        pairs(d->table, path, depth);
      else if (auto* l = v.get<List>())
        items(l->items, path, depth);
      else if (auto* t = v.get<Tuple>())
        items(t->items, path, depth);
      else if (auto* set = any_set(v))
        keys(set->table, path, depth);
      else if (auto* s = v.get<Str>())
        add(json_of(s->text));
      else if (auto* i = v.get<WideInt>())
        value(Value::wide(i->value), path, depth);
      else
        text += "null";
      text += ']';
    });
  }

  /// ["module", "name"], or ["", "name"] of a class that a variable has.
  void class_name(TypeObject& type) {
    const Origin origin = origin_of(in_, Value(&type));
    const Globals::Slot* slot = in_.globals().find(type.name);
    holds_instances = true;
    if (!origin.module.empty()) return add(fmt::format("[{},{}]", json_of(origin.module), json_of(origin.member)));
    if (slot && !slot->builtin.missing() && slot->builtin.same(Value(&type)))
      return add(fmt::format("[\"builtins\",{}]", json_of(type.name)));
    const std::string name = path_of_class(session_, type);
    if (name.empty()) throw Refused{fmt::format("its class '{}' is not saved", type.name)};
    add(fmt::format("[\"\",{}]", json_of(name)));
  }

  void table(const TableObject& t, const std::string& path, int depth) {
    const Json json = table_to_json(t, [&](const Value& detail) -> std::optional<Json> {
      const size_t begin = text.size();
      try {
        value(detail, path, depth + 1);
      } catch (const Refused&) {
        text.resize(begin);
        return std::nullopt;
      }
      Json out = Json::parse(text.substr(begin));
      text.resize(begin);
      return out;
    });
    add(json.dump(-1, ' ', false, Json::error_handler_t::replace));
  }

  void tensor(const Value& v, const std::string& path) {
    auto found = session_.tensor_of(v);
    if (!found.ok()) throw Refused{found.error().message};
    std::string name = path;
    auto taken = [&] { return std::any_of(tensors.begin(), tensors.end(), [&](auto& t) { return t.name == name; }); };
    for (int i = 2; taken(); ++i) name = fmt::format("{}#{}", path, i);
    tensors.push_back({name, **found});
    wrapped("tensor", [&] { add(json_of(name)); });
  }

  Session& session_;
  Interp& in_;
};

/// Without the indentation of an `if` around a definition, whose range leaves out that of its first line.
std::string dedented(std::string_view text) {
  std::string_view rest = text.substr(std::min(text.find('\n'), text.size()));
  size_t least = SIZE_MAX;
  for (size_t at = 0; at < rest.size();) {
    const size_t begin = at + 1, end = std::min(rest.find('\n', begin), rest.size());
    const size_t content = rest.find_first_not_of(' ', begin);
    if (begin < end && content < end) least = std::min(least, content - begin);
    at = end;
  }
  // A body is deeper than its `def` by one level at least; only decorators and the `def` itself show by how much.
  const std::string_view head = text.substr(0, text.find('\n'));
  if (least == SIZE_MAX || !head.starts_with('@') || least == 0) return std::string(text);
  std::string out(head);
  for (size_t at = 0; at < rest.size();) {
    const size_t begin = at + 1, end = std::min(rest.find('\n', begin), rest.size());
    std::string_view line = rest.substr(begin, end - begin);
    line.remove_prefix(std::min(least, line.size()));
    out += "\n" + std::string(line);
    at = end;
  }
  return out;
}

std::string source_of_function(const Function& f, const std::string& name) {
  if (!f.free.empty()) throw Refused{"it uses variables of the function around it"};
  if (f.def) {
    if (f.def->name != name) throw Refused{fmt::format("it is another name of '{}'", f.def->name)};
    return dedented(f.def->full_range.str()) + "\n";
  }
  std::string params;
  for (const ast::Param& p : *f.params) params += (params.empty() ? " " : ", ") + std::string(p.range.str());
  return fmt::format("{} = lambda{}: {}\n", name, params, f.body->range.str());
}

class SessionWriter {
 public:
  explicit SessionWriter(Session& session) : session_(session), in_(session.interp()), writer_(session) {}

  /// Throws ScriptError for Ctrl-C.
  void add(const std::string& name, const Value& v) {
    const size_t tensors = writer_.tensors.size(), begin = writer_.text.size();
    try {
      writer_.text += writer_.text.empty() ? "[{" : ",{";
      row(name, v);
      writer_.text += fmt::format(",\"name\":{}}}", json_of(name));
    } catch (const Refused& refused) {
      writer_.tensors.resize(tensors);  // of a container that is left out
      writer_.text.resize(begin);
      report_.left_out.emplace_back(name, refused.reason);
    }
  }

  Result<SessionFileReport> write(const std::string& path) && {
    report_.tensors = static_cast<int>(writer_.tensors.size());
    std::string text = writer_.text.empty() ? "[]" : std::move(writer_.text) + "]";
    KILN_CHECK_OK(runtime::save_safetensors({std::move(writer_.tensors), {{kMetadataName, std::move(text)}}}, path));
    return std::move(report_);
  }

 private:
  void row(const std::string& name, const Value& v) {
    if (auto* m = v.get<ModuleObject>()) return imported({m->path, {}});
    if (KernelObject* k = innermost_kernel(v)) {
      std::string source = source_of_function(*k->function, name);
      if (!source.starts_with('@')) throw Refused{"it was made by a call, not by a decorator"};
      return definition(source);
    }
    if (const Origin origin = origin_of(in_, v); !origin.module.empty()) return imported(origin);
    if (auto* f = v.get<Function>()) return function_definition(*f, name);
    // Of several names of a class one defines it.
    if (auto* type = v.get<TypeObject>(); type && !type->of_kind && type->constructor.missing()) {
      const std::string path = path_of_class(session_, *type);
      if (path == name && is_named_tuple(*type)) return named_tuple(*type);
      if (path.empty() || path == name) return class_definition(*type, name);
    }
    if (const auto origin = member(v)) return imported(*origin);
    writer_.text += "\"value\":";
    writer_.holds_instances = false;
    writer_.value(v, name);
    if (writer_.holds_instances) writer_.text += ",\"late\":true";
    ++report_.values;
  }
  void imported(const Origin& origin) {
    writer_.text += "\"module\":" + json_of(origin.module);
    if (!origin.member.empty()) writer_.text += ",\"member\":" + json_of(origin.member);
    ++report_.imports;
  }
  void definition(const std::string& source) {
    writer_.text += "\"source\":" + json_of(source);
    ++report_.definitions;
  }
  void named_tuple(TypeObject& type) {
    const Table& defaults = type.members.find("_field_defaults")->get<Dict>()->table;
    writer_.text += "\"value\":{\"namedtuple\":[" + json_of(type.name) + ",";
    writer_.holds_instances = false;
    writer_.value(*type.members.find("_fields"), type.name);
    std::vector<Value> last;
    for (const Table::Entry& e : defaults.live()) last.push_back(e.value);
    writer_.text += ",";
    writer_.value(make<List>(std::move(last)), type.name);
    writer_.text += "]}";
    if (writer_.holds_instances) writer_.text += ",\"late\":true";
    ++report_.definitions;
  }
  /// Its source, and what its attributes are by now.
  void class_definition(TypeObject& type, const std::string& name) {
    const std::string source = source_of_class(type, name);
    std::set<std::string> of_body;
    for (const ast::StmtPtr& s : type.def->body) {
      if (const auto* a = ast::dyn_as<ast::Assign>(s.get()))
        for (const ast::ExprPtr& target : a->targets)
          if (const auto* n = ast::dyn_as<ast::Name>(target.get())) of_body.insert(n->id);
      if (const auto* f = ast::dyn_as<ast::FunctionDef>(s.get())) of_body.insert(f->name);
      if (const auto* c = ast::dyn_as<ast::ClassDef>(s.get())) of_body.insert(c->name);
    }
    // The source makes methods and the like, decorators make theirs; what a list has got by now nothing makes again.
    const auto is_told = [&](const std::string& member, const Value& v) {
      const bool holds = v.get<List>() || v.get<Dict>() || v.get<Tuple>() || any_set(v) || fields_of(v);
      return type.def->decorators.empty() && (holds || !of_body.contains(member));
    };
    if (!is_enum(type) && !type.find("_field_defaults")) attributes(name, type.members, is_told);
    definition(source);
  }
  void function_definition(const Function& f, const std::string& name) {
    const std::string source = source_of_function(f, name);
    attributes(name, f.fields, [](const std::string&, const Value&) { return true; });
    definition(source);
  }
  /// `is_told`: of one that cannot be saved.
  void attributes(const std::string& name, const Table& members,
                  const std::function<bool(const std::string&, const Value&)>& is_told) {
    std::string pairs;
    for (const Table::Entry& e : members.live()) {
      const auto* member = e.key.get<Str>();
      if (!member || member->text.starts_with("__")) continue;
      const size_t begin = writer_.text.size(), tensors = writer_.tensors.size();
      std::string reason;
      writer_.holds_instances = false;
      try {
        writer_.value(e.value, name + "." + member->text);
        if (writer_.holds_instances) reason = "classes and instances in attributes are not saved";
      } catch (const Refused& refused) {
        reason = refused.reason;
      }
      if (reason.empty())
        pairs += fmt::format("{}[{},{}]", pairs.empty() ? "" : ",", json_of(member->text),
                             std::string_view(writer_.text).substr(begin));
      else
        writer_.tensors.resize(tensors);
      writer_.text.resize(begin);
      if (!reason.empty() && is_told(member->text, e.value))
        report_.left_out.emplace_back(name + "." + member->text, reason);
    }
    if (!pairs.empty()) writer_.text += "\"attributes\":[" + pairs + "],";
  }
  std::string source_of_class(const TypeObject& type, const std::string& name) {
    if (type.name != name) throw Refused{fmt::format("it is another name of '{}'", type.name)};
    if (!type.qualified_name.empty() && type.qualified_name != name)
      throw Refused{"it was defined inside of a function or a class"};
    auto source = session_.source_of(name);
    if (!source.ok()) throw Refused{"it was made by a call, not by a class statement"};
    return dedented(*source) + "\n";
  }

  /// Of what a module has under some name.
  std::optional<Origin> member(const Value& v) {
    if (!v.object() || v.get<TensorObject>() || v.get<Str>()) return std::nullopt;
    if (modules_.empty()) {
      for (std::string_view path : kUsualModules)
        if (auto m = in_.import_module(path)) modules_.push_back(m);
      for (const Globals::Slot& slot : in_.globals().slots())
        if (auto* m = slot.value.missing() ? nullptr : slot.value.get<ModuleObject>()) modules_.emplace_back(m);
    }
    for (const Ref<ModuleObject>& m : modules_)
      for (const Table::Entry& e : m->members.live())
        if (e.value.same(v)) return Origin{m->path, e.key.get<Str>()->text};
    return std::nullopt;
  }

  Session& session_;
  Interp& in_;
  Writer writer_;
  std::vector<Ref<ModuleObject>> modules_;
  SessionFileReport report_;
};

// --- reading ---------------------------------------------------------------------------------------------------------

/// Why a row of a file cannot be read.
struct Damaged {
  std::string reason;
};

class Reader {
 public:
  Reader(Interp& in, std::vector<runtime::NamedTensor> tensors) : in_(in) {
    for (runtime::NamedTensor& t : tensors) tensors_.emplace(std::move(t.name), wrap(std::move(t.tensor)));
  }

  /// Throws Damaged, and ScriptError for a key that cannot be one.
  Value value(const Json& j, int depth = 0) {
    if (depth > kDeepest) throw Damaged{"a value is nested too deep"};
    if (j.is_null()) return Value::none();
    if (j.is_boolean()) return Value::boolean(j.get<bool>());
    if (j.is_number_unsigned() && j.get<uint64_t>() > INT64_MAX) throw Damaged{"a number is too large"};
    if (j.is_number_integer()) return Value::integer(j.get<int64_t>());
    if (j.is_number_float()) return Value::real(j.get<double>());
    if (j.is_string()) return Value::str(j.get<std::string>());
    if (j.is_array()) return make<List>(items(j, depth));
    if (j.size() != 1) throw Damaged{"a value has no kind"};
    const std::string& kind = j.begin().key();
    const Json& body = j.begin().value();
    if (kind == "tuple") return make<Tuple>(items(body, depth));
    if (kind == "size") return make<Tuple>(items(body, depth), "torch.Size");
    if (kind == "set") {
      auto set = make<Set>();
      for (Value& v : items(body, depth)) set->table.set(in_, std::move(v), Value::none());
      return set;
    }
    if (kind == "frozenset") {
      auto set = make<FrozenSet>();
      for (Value& v : items(body, depth)) set->table.set(in_, std::move(v), Value::none());
      return set;
    }
    if (kind == "dict") {
      auto dict = make<Dict>();
      pairs(body, depth, dict->table);
      return dict;
    }
    if (kind == "range") {
      std::vector<Value> v = items(body, depth);
      if (v.size() != 3 || !v[0].is_small_int() || !v[1].is_small_int() || !v[2].is_small_int() || v[2].integer() == 0)
        throw Damaged{"a range needs three numbers"};
      return make<Range>(v[0].integer(), v[1].integer(), v[2].integer());
    }
    const std::string text = body.is_string() ? body.get<std::string>() : "";
    if (kind == "float")
      return Value::real(text == "inf"    ? INFINITY
                         : text == "-inf" ? -INFINITY
                                          : std::numeric_limits<double>::quiet_NaN());
    if (kind == "dtype") {
      if (auto dtype = parse_dtype(text)) return Value::dtype(*dtype);
      throw Damaged{fmt::format("there is no dtype '{}'", text)};
    }
    if (kind == "builtin") {
      const Globals::Slot* slot = in_.globals().find(text);
      if (!slot || slot->builtin.missing()) throw Damaged{fmt::format("there is no function '{}'", text)};
      return slot->builtin;
    }
    if (kind == "int") return wide(text);
    if (kind == "bytes") {
      auto data = bytes_of_hex(text);
      if (!data || hex_of(*data) != text) throw Damaged{"bytes are damaged"};
      return make<Bytes>(*std::move(data));
    }
    if (kind == "tensor") {
      if (auto it = tensors_.find(text); it != tensors_.end()) return it->second;
      throw Damaged{fmt::format("there is no tensor '{}'", text)};
    }
    if (kind == "class") return class_of(body);
    if (kind == "member") {
      if (list(body).size() != 2 || !body[1].is_string()) throw Damaged{"a member of a class is damaged"};
      return in_.attribute(class_of(body[0]), body[1].get<std::string>());
    }
    if (kind == "enum") {
      if (list(body).size() != 2) throw Damaged{"a member of a class is damaged"};
      return in_.call(class_of(body[0]), {value(body[1], depth + 1)});
    }
    if (kind == "namedtuple") return named_tuple(body, depth);
    if (kind == "instance") return instance(body, depth);
    if (kind == "table") {
      if (auto table = table_from_json(body, [&](const Json& detail) { return value(detail, depth + 1); }))
        return table;
      throw Damaged{"a table is damaged"};
    }
    throw Damaged{fmt::format("there are no values of kind '{}'", kind)};
  }

  std::vector<std::pair<std::string, Value>> attributes(const Json& j) {
    std::vector<std::pair<std::string, Value>> out;
    for (const Json& pair : list(j)) {
      if (list(pair).size() != 2 || !pair[0].is_string()) throw Damaged{"an attribute has no name"};
      out.emplace_back(pair[0].get<std::string>(), value(pair[1]));
    }
    return out;
  }

 private:
  static const Json& list(const Json& j) {
    if (!j.is_array()) throw Damaged{"a list is missing"};
    return j;
  }
  static const Json& list(Json&&) = delete;
  Value class_of(const Json& j) {
    if (list(j).size() != 2 || !j[0].is_string() || !j[1].is_string()) throw Damaged{"a class has no name"};
    const std::string module = j[0].get<std::string>(), name = j[1].get<std::string>();
    std::optional<Value> found;
    if (module.empty() || module == "builtins") {
      if (const Globals::Slot* slot = in_.globals().find(name); slot && !module.empty()) found = slot->builtin;
      if (module.empty()) found = look_up(in_, name);
      if (found && found->missing()) found.reset();
    } else if (const Ref<ModuleObject> m = in_.import_module(module)) {
      found = in_.find_attribute(m, name);
    }
    if (!found || !found->get<TypeObject>())
      throw Damaged{fmt::format("there is no class '{}{}{}'", module, module.empty() ? "" : ".", name)};
    return *found;
  }
  /// Without its __new__ and __init__.
  Value instance(const Json& j, int depth) {
    if (list(j).size() != 3) throw Damaged{"an instance is damaged"};
    const Value type = class_of(j[0]);
    const auto base = type.get<TypeObject>()->base_kind;
    CallArgs args;
    if (base == Kind::kTuple)
      args.args.push_back(make<List>(items(j[2], depth)));
    else if (base == Kind::kStr || base == Kind::kInt)
      args.args.push_back(value(j[2], depth + 1));
    const Value made = new_instance(in_, Ref<TypeObject>(type.get<TypeObject>()), args);
    pairs(j[1], depth, fields_of(made)->table);
    if (auto* d = made.get<Dict>())
      pairs(j[2], depth, d->table);
    else if (auto* l = made.get<List>())
      l->items = items(j[2], depth);
    else if (auto* s = any_set(made))
      for (Value& v : items(j[2], depth)) s->table.set(in_, std::move(v), Value::none());
    return made;
  }
  Value named_tuple(const Json& j, int depth) {
    if (list(j).size() != 3) throw Damaged{"a named tuple is damaged"};
    CallArgs args;
    for (const Json& given : {j[0], j[1]}) args.args.push_back(value(given, depth + 1));
    args.keywords.push_back({"defaults", value(j[2], depth + 1), {}});
    args.keywords.push_back({"rename", Value::boolean(true), {}});  // gives names as they came of it
    return in_.call(in_.attribute(Value(in_.import_module("collections")), "namedtuple"), args);
  }
  void pairs(const Json& j, int depth, Table& to) {
    for (const Json& pair : list(j)) {
      if (list(pair).size() != 2) throw Damaged{"an entry of a dict is no pair"};
      Value key = value(pair[0], depth + 1);
      to.set(in_, std::move(key), value(pair[1], depth + 1));
    }
  }
  std::vector<Value> items(const Json& j, int depth) {
    std::vector<Value> out;
    for (const Json& item : list(j)) out.push_back(value(item, depth + 1));
    return out;
  }
  static Value wide(std::string_view text) {
    const bool negative = text.starts_with('-');
    if (text.size() == static_cast<size_t>(negative)) throw Damaged{fmt::format("'{}' is no number", text)};
    ast::Int n = 0;
    for (char c : text.substr(negative))
      if (c < '0' || c > '9' || __builtin_mul_overflow(n, 10, &n) || __builtin_add_overflow(n, c - '0', &n))
        throw Damaged{fmt::format("'{}' is no number", text)};
    return Value::wide(negative ? -n : n);
  }

  Interp& in_;
  std::map<std::string, Value> tensors_;
};

std::string text_field(const Json& row, const char* key) {
  const auto it = row.find(key);
  return it != row.end() && it->is_string() ? it->get<std::string>() : std::string();
}

/// One row of a file into its variable. Throws Damaged and ScriptError.
Status load_row(Session& session, Reader& reader, const Json& row, const std::string& path, SessionFileReport& report) {
  Interp& in = session.interp();
  const std::string name = text_field(row, "name"), module = text_field(row, "module");
  if (name.empty()) throw Damaged{"it has no name"};
  if (const std::string source = text_field(row, "source"); !source.empty()) {
    KILN_CHECK_OK(session.run(source, path + ":" + name, Mode::kFile));
    ++report.definitions;
    if (const auto attributes = row.find("attributes"); attributes != row.end()) {
      const Value made = look_up(in, name);
      for (const auto& [member, value] : reader.attributes(*attributes)) in.set_attribute(made, member, value);
    }
  } else if (!module.empty()) {
    auto found = in.import_module(module);
    if (!found) return error(ErrorKind::kName, "there is no module '{}'", module);
    Value v = found;
    if (const std::string member = text_field(row, "member"); !member.empty()) {
      const std::optional<Value> held = in.find_attribute(found, member);
      if (!held) return error(ErrorKind::kName, "the module {} has no '{}'", module, member);
      v = *held;
    }
    session.set_variable(name, std::move(v));
    ++report.imports;
  } else {
    const auto value = row.find("value");
    if (value == row.end()) throw Damaged{"it has no value"};
    session.set_variable(name, reader.value(*value));
    ++report.values;
  }
  return {};
}

}  // namespace

Result<SessionFileReport> save_session(Session& session, const std::string& path) {
  if (::access(path.c_str(), F_OK) == 0) {
    // A slip must not replace somebody's weights or source.
    auto before = runtime::load_safetensors_metadata(path);
    if (!before.ok() || before->empty() || before->front().first != kMetadataName)
      return error(ErrorKind::kValue, "{}: the file is there and is no session; give another name or remove it", path);
  }
  SessionWriter writer(session);
  // A copy: computing a tensor may run code that makes a name.
  std::vector<std::pair<std::string, Value>> variables;
  for (const Globals::Slot& slot : session.interp().globals().slots())
    if (!slot.value.missing() && !slot.name.starts_with('_')) variables.emplace_back(slot.name, slot.value);
  KILN_CHECK_OK(guarded(session.interp(), [&] {
    for (const auto& [name, v] : variables) writer.add(name, v);
  }));
  return std::move(writer).write(path);
}

Result<SessionFileReport> load_session(Session& session, const std::string& path) {
  KILN_TRY(Device device, session.device());
  // The header first: a file that is none is not read as a whole.
  KILN_TRY(auto metadata, runtime::load_safetensors_metadata(path));
  if (metadata.empty() || metadata.front().first != kMetadataName)
    return with_note(error(ErrorKind::kValue, "{}: it holds tensors, but no session", path),
                     "help: torch.load(FILE) gives them as a dict");
  KILN_TRY(runtime::Safetensors file, runtime::load_safetensors(device, path));
  const Json rows = Json::parse(file.metadata.front().second, nullptr, /*allow_exceptions=*/false);
  if (!rows.is_array()) return error(ErrorKind::kIo, "{}: its session is damaged", path);
  SessionFileReport report;
  report.tensors = static_cast<int>(file.tensors.size());
  Reader reader(session.interp(), std::move(file.tensors));
  const auto interrupted = session.interrupt_watch();
  auto load = [&](const Json& row) {
    std::string problem;
    try {
      if (Status s = load_row(session, reader, row, path, report); !s.ok()) problem = s.error().message;
    } catch (const Damaged& d) {
      problem = d.reason;
    } catch (const ScriptError& e) {
      problem = e.diagnostic.message;
    }
    return problem;
  };
  // Functions and classes look at other variables when they are defined, at defaults, decorators and bases; instances
  // need their classes, and named tuples the instances in their defaults. What fails the first time may have needed a
  // later one.
  std::vector<const Json*> again;
  const auto is_late = [](const Json& row) { return row.contains("late"); };
  for (const auto& [kind, late] : {std::pair("module", false), {"value", false}, {"source", false}, {"value", true}})
    for (const Json& row : rows) {
      if (!row.is_object() || !row.contains(kind) || is_late(row) != late) continue;
      if (interrupted()) return error(ErrorKind::kInterrupted, "interrupted");
      const std::string problem = load(row);
      if (problem.empty()) continue;
      if (std::string_view(kind) == "source" || late)
        again.push_back(&row);
      else
        report.left_out.emplace_back(text_field(row, "name"), problem);
    }
  for (const Json* row : again)
    if (std::string problem = load(*row); !problem.empty())
      report.left_out.emplace_back(text_field(*row, "name"), std::move(problem));
  return report;
}

}  // namespace kiln::script
