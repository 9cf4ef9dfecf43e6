#include "repl/session/session_file.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "repl/modules/torch/tensor_object.h"
#include "repl/modules/triton/kernel.h"
#include "repl/script/interp/interp.h"
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
    "triton", "triton.language", "torch", "torch.nn.functional", "math", "time", "os", "sys", "random", "functools"};

/// Why a value cannot be saved.
struct Refused {
  std::string reason;
};

/// Turns values into JSON. What JSON has not is an object with one key: {"tuple": […]}, {"tensor": "x"}.
class Writer {
 public:
  explicit Writer(Session& session) : session_(session) {}

  /// Throws Refused. `path` names the value's tensors.
  Json value(const Value& v, const std::string& path, int depth = 0) {
    if (depth > kDeepest) throw Refused{"it is nested too deep, or holds itself"};
    if (v.is_none()) return nullptr;
    if (v.is_bool()) return v.boolean();
    if (v.is_small_int()) return v.integer();
    if (v.is_float()) return real(v.real());
    if (v.is_dtype()) return {{"dtype", name(v.dtype())}};
    if (auto* s = v.get<Str>()) return s->text;
    if (auto* i = v.get<WideInt>()) return {{"int", session_.interp().repr(Value(i))}};
    if (auto* t = v.get<Tuple>()) {
      if (t->class_name.empty()) return {{"tuple", items(t->items, path, depth)}};
      if (t->class_name == "torch.Size") return {{"size", items(t->items, path, depth)}};
    }
    if (auto* l = v.get<List>()) return items(l->items, path, depth);
    if (auto* r = v.get<Range>()) return {{"range", {r->start, r->stop, r->step}}};
    if (auto* s = any_set(v)) {
      Json out = Json::array();
      for (const Table::Entry& e : s->table.live()) out.push_back(value(e.key, path, depth + 1));
      return {{v.get<FrozenSet>() ? "frozenset" : "set", std::move(out)}};
    }
    if (auto* d = v.get<Dict>()) {
      Json out = Json::array();
      for (const Table::Entry& e : d->table.live()) {
        Json key = value(e.key, path, depth + 1);
        const std::string shown = key.is_string() ? key.get<std::string>() : key.dump(-1, ' ', false, kReplace);
        out.push_back({std::move(key), value(e.value, path + "." + shown, depth + 1)});
      }
      return {{"dict", std::move(out)}};
    }
    if (v.get<TensorObject>()) return tensor(v, path);
    if (auto* t = v.get<TableObject>())
      return {{"table", table_to_json(*t, [&](const Value& detail) -> std::optional<Json> {
                 try {
                   return value(detail, path, depth + 1);
                 } catch (const Refused&) {
                   return std::nullopt;
                 }
               })}};
    throw Refused{fmt::format("values of type '{}' are not saved", session_.interp().type_name(v))};
  }

  std::vector<runtime::NamedTensor> tensors;
  static constexpr auto kReplace = Json::error_handler_t::replace;

 private:
  static Json real(double v) {
    if (std::isfinite(v)) return v;
    return {{"float", std::isnan(v) ? "nan" : v > 0 ? "inf" : "-inf"}};
  }
  Json items(const std::vector<Value>& values, const std::string& path, int depth) {
    Json out = Json::array();
    for (size_t i = 0; i < values.size(); ++i)
      out.push_back(value(values[i], fmt::format("{}.{}", path, i), depth + 1));
    return out;
  }
  Json tensor(const Value& v, const std::string& path) {
    auto found = session_.tensor_of(v);
    if (!found.ok()) throw Refused{found.error().message};
    std::string name = path;
    auto taken = [&] { return std::any_of(tensors.begin(), tensors.end(), [&](auto& t) { return t.name == name; }); };
    for (int i = 2; taken(); ++i) name = fmt::format("{}#{}", path, i);
    tensors.push_back({name, **found});
    return {{"tensor", name}};
  }

  Session& session_;
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

  void add(const std::string& name, const Value& v) {
    const size_t tensors = writer_.tensors.size();
    try {
      Json row = row_of(name, v);
      row["name"] = name;
      rows_.push_back(std::move(row));
    } catch (const Refused& refused) {
      writer_.tensors.resize(tensors);  // of a container that is left out
      report_.left_out.emplace_back(name, refused.reason);
    }
  }

  Result<SessionFileReport> write(const std::string& path) && {
    report_.tensors = static_cast<int>(writer_.tensors.size());
    std::string text = Json(rows_).dump(-1, ' ', false, Writer::kReplace);
    KILN_CHECK_OK(runtime::save_safetensors({std::move(writer_.tensors), {{kMetadataName, std::move(text)}}}, path));
    return std::move(report_);
  }

 private:
  Json row_of(const std::string& name, const Value& v) {
    if (auto* m = v.get<ModuleObject>()) return ++report_.imports, Json{{"module", m->path}};
    if (KernelObject* k = innermost_kernel(v)) {
      std::string source = source_of_function(*k->function, name);
      if (!source.starts_with('@')) throw Refused{"it was made by a call, not by a decorator"};
      return ++report_.definitions, Json{{"source", std::move(source)}};
    }
    if (auto* f = v.get<Function>()) {
      std::string source = source_of_function(*f, name);
      return ++report_.definitions, Json{{"source", std::move(source)}};
    }
    if (auto row = member(v)) return ++report_.imports, *std::move(row);
    Json value = writer_.value(v, name);
    return ++report_.values, Json{{"value", std::move(value)}};
  }

  /// Of what a module has under some name.
  std::optional<Json> member(const Value& v) {
    if (!v.object() || v.get<TensorObject>() || v.get<Str>()) return std::nullopt;
    if (modules_.empty()) {
      for (std::string_view path : kUsualModules)
        if (auto m = in_.import_module(path)) modules_.push_back(m);
      for (const Globals::Slot& slot : in_.globals().slots())
        if (auto* m = slot.value.missing() ? nullptr : slot.value.get<ModuleObject>()) modules_.emplace_back(m);
    }
    for (const Ref<ModuleObject>& m : modules_)
      for (const Table::Entry& e : m->members.live())
        if (e.value.same(v)) return Json{{"module", m->path}, {"member", e.key.get<Str>()->text}};
    return std::nullopt;
  }

  Session& session_;
  Interp& in_;
  Writer writer_;
  std::vector<Json> rows_;
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
      for (const Json& pair : list(body)) {
        if (list(pair).size() != 2) throw Damaged{"an entry of a dict is no pair"};
        Value key = value(pair[0], depth + 1);
        dict->table.set(in_, std::move(key), value(pair[1], depth + 1));
      }
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
    if (kind == "int") return wide(text);
    if (kind == "tensor") {
      if (auto it = tensors_.find(text); it != tensors_.end()) return it->second;
      throw Damaged{fmt::format("there is no tensor '{}'", text)};
    }
    if (kind == "table") {
      if (auto table = table_from_json(body, [&](const Json& detail) { return value(detail, depth + 1); }))
        return table;
      throw Damaged{"a table is damaged"};
    }
    throw Damaged{fmt::format("there are no values of kind '{}'", kind)};
  }

 private:
  static const Json& list(const Json& j) {
    if (!j.is_array()) throw Damaged{"a list is missing"};
    return j;
  }
  static const Json& list(Json&&) = delete;
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
  } else if (!module.empty()) {
    auto found = in.import_module(module);
    if (!found) return error(ErrorKind::kName, "there is no module '{}'", module);
    Value v = found;
    if (const std::string member = text_field(row, "member"); !member.empty()) {
      const Value* held = found->members.find(member);
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
  for (const auto& [name, v] : variables) writer.add(name, v);
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
  // Functions look at other variables when they are defined: at defaults and decorators.
  for (const char* kind : {"module", "value", "source"})
    for (const Json& row : rows) {
      if (!row.is_object() || !row.contains(kind)) continue;
      const std::string name = text_field(row, "name");
      if (interrupted()) return error(ErrorKind::kInterrupted, "interrupted");
      std::string problem;
      try {
        if (Status s = load_row(session, reader, row, path, report); !s.ok()) problem = s.error().message;
      } catch (const Damaged& d) {
        problem = d.reason;
      } catch (const ScriptError& e) {
        problem = e.diagnostic.message;
      }
      if (!problem.empty()) report.left_out.emplace_back(name, std::move(problem));
    }
  return report;
}

}  // namespace kiln::script
