#include "repl/modules/triton/constexpr_interp.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <fstream>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "compiler/ast/walk.h"
#include "compiler/frontend/builtins.h"
#include "repl/modules/modules.h"
#include "repl/modules/triton/kernel_globals.h"
#include "repl/script/builtins/builtins.h"
#include "repl/script/interp/interp.h"
#include "support/diag.h"

namespace kiln::script {

namespace {

using frontend::FunctionPtr;
using frontend::Global;
using frontend::GlobalTuple;

constexpr std::chrono::seconds kLongest{10};
constexpr size_t kMostBytes = size_t{1} << 30;
/// Of tuples in tuples that a function returns.
constexpr int kDeepest = 32;

/// Modules that compute, and change nothing outside of the interpreter.
constexpr std::string_view kComputing[] = {
    "__future__", "_re",       "abc",      "bisect",    "collections", "collections.abc",  "copy",     "dataclasses",
    "enum",       "functools", "heapq",    "itertools", "math",        "numbers",          "operator", "re",
    "statistics", "string",    "textwrap", "types",     "typing",      "typing_extensions"};

FunctionPtr unowned(const FunctionPtr& f) { return FunctionPtr(FunctionPtr{}, f.get()); }

bool computes(std::string_view module) { return std::ranges::find(kComputing, module) != std::end(kComputing); }

std::string help_without_module(std::string_view, bool in_general) {
  return in_general ? "help: constexpr functions run while a kernel is compiled, and import only modules that compute: "
                      "math, functools, itertools, re…"
                    : "";
}

std::optional<ModuleSource> source_of(Interp&, std::string_view path) {
  return computes(path) ? library_source(path) : std::nullopt;
}

/// What the frontend knows and scripts have no value for: types, functions of Triton, kernels, classes of constants.
class Known : public Object {
 public:
  static inline const KindOf<Known> kKind{"builtin"};
  explicit Known(Global g) : Object(kKind), global(std::move(g)) {}
  std::optional<Value> attribute(Interp& in, std::string_view name) override;
  Value call(Interp& in, CallArgs& args) override;
  std::string repr(Interp&) override { return "<" + text() + ">"; }
  std::string str(Interp&) override { return text(); }
  std::optional<Value> compare(Interp& in, ast::CompareOp op, const Value& other) override;
  std::optional<uint64_t> hash(Interp&) override { return std::hash<std::string>{}(text()); }
  std::string text() const { return frontend::to_text(frontend::from_global(global)); }

  const Global global;
};

/// A NamedTuple, or the constants of a class.
class Fields : public Tuple {
 public:
  Fields(std::vector<Value> v, std::vector<std::string> n) : Tuple(std::move(v)), names(std::move(n)) {}
  std::optional<Value> attribute(Interp& in, std::string_view name) override {
    const auto at = std::ranges::find(names, name);
    return at == names.end() ? Tuple::attribute(in, name) : items[static_cast<size_t>(at - names.begin())];
  }
  const std::vector<std::string> names;
};

class ConstexprInterp {
 public:
  ConstexprInterp() {
    for (const auto& table : module_tables())
      for (const ModuleDef& m : table)
        if (computes(m.path)) modules_.push_back(m);
    install_builtins(in_);
    in_.add_modules(modules_);
    in_.set_source_finder(source_of);
    in_.set_module_help(help_without_module);
    in_.output = [](std::string_view text) { std::fwrite(text.data(), 1, text.size(), stderr); };
  }

  Result<Global> call(const FunctionPtr& function, std::span<const Global> positional,
                      std::span<const std::pair<std::string, Global>> keywords) {
    // Recursive: a name that the function reads may be of a value that another one makes.
    const std::lock_guard one_at_a_time(mutex_);
    const bool outermost = depth_ == 0;
    const Depth deeper(depth_);
    std::optional<Limits> limits;
    if (outermost) limits.emplace(in_);
    try {
      const Value callee = function_of(function);
      if (callee.missing()) return error(ErrorKind::kUnsupported, "{} cannot run on its own", function->def->name);
      CallArgs args;
      for (const Global& g : positional) args.args.push_back(value_of(g));
      for (const auto& [name, g] : keywords) args.keywords.push_back({name, value_of(g), {}});
      const Value result = in_.call(callee, args);
      if (std::optional<Global> g = global_of(result)) return *std::move(g);
      return error(ErrorKind::kType, "{} returns a value of type {}, which kernels do not have", function->def->name,
                   in_.type_name(result));
    } catch (const ScriptError& e) {
      if (limits) {  // of a call within another the interrupt comes again, and ends that too
        in_.forget_interrupt();
        if (const std::string broken = limits->broken(); !broken.empty())
          return error(ErrorKind::kValue, "{} {}", function->def->name, broken);
      }
      Diagnostic d = e.diagnostic;
      // The frontend says where the function was called.
      std::erase_if(d.notes, [](const Note& n) { return n.place.line == 0 && n.message.starts_with("in "); });
      const std::string type = in_.type_name(e.exception);
      if (type == "NameError") {
        d.kind = ErrorKind::kName;
        return with_note(std::move(d), "help: a constexpr function sees of its file what is known without running it");
      }
      return d;
    } catch (const std::bad_alloc&) {
      return error(ErrorKind::kMemory, "{} needs more memory than there is", function->def->name);
    }
  }

  Value value_of(const Global& g);
  std::optional<Global> global_of(const Value& v, int depth = 0);

 private:
  /// Interrupts the interpreter when a call takes too long, or too much memory.
  class Limits {
   public:
    explicit Limits(Interp& in) : thread_([this, &in] { watch(in); }) {}
    ~Limits() {
      {
        const std::lock_guard lock(mutex_);
        ended_ = true;
      }
      done_.notify_one();
      thread_.join();
    }
    Limits(const Limits&) = delete;
    Limits& operator=(const Limits&) = delete;
    /// What was too much; empty: nothing.
    std::string broken() const {
      if (too_long_) return fmt::format("has not returned after {} seconds", kLongest.count());
      return too_large_ ? fmt::format("needs more than {} MiB", kMostBytes >> 20) : "";
    }

   private:
    void watch(Interp& in) {
      constexpr std::chrono::milliseconds kLook{20};
      const auto end = std::chrono::steady_clock::now() + kLongest;
      const size_t before = resident_bytes();
      std::unique_lock lock(mutex_);
      while (!done_.wait_for(lock, kLook, [this] { return ended_; })) {
        too_long_ = std::chrono::steady_clock::now() > end;
        too_large_ = resident_bytes() > before + kMostBytes;
        if (!too_long_ && !too_large_) continue;
        in.stops_statement = true;
        in.interrupted = true;
        return;
      }
    }
    static size_t resident_bytes() {
      std::ifstream file("/proc/self/statm");
      size_t all = 0, resident = 0;
      file >> all >> resident;
      return resident * static_cast<size_t>(sysconf(_SC_PAGESIZE));
    }

    std::mutex mutex_;
    std::condition_variable done_;
    bool ended_ = false;
    std::atomic<bool> too_long_{false}, too_large_{false};
    std::thread thread_;
  };

  struct Depth {
    explicit Depth(int& depth) : depth_(++depth) {}
    ~Depth() { --depth_; }
    Depth(const Depth&) = delete;
    Depth& operator=(const Depth&) = delete;
    int& depth_;
  };

  /// A file with its names resolved, as one of its functions sees them.
  struct Text {
    Globals globals;
    std::shared_ptr<const Program> program;
  };

  Value function_of(const FunctionPtr& f) {
    if (auto it = functions_.find(f->def); it != functions_.end()) return it->second.value;
    if (!f->module || f->evaluate) return {};
    Result<Text*> text = text_of(*f);
    if (!text.ok()) return {};
    // Defaults are evaluated as it is made; the other names may be of functions that call it.
    std::set<std::string, std::less<>> defaults, body;
    for (const ast::Param& p : f->def->params) ast::walk(p.default_value.get(), names_into(defaults));
    ast::walk(
        f->def->body, [](const ast::Stmt&) {}, names_into(body));
    give_names(*f, defaults, (*text)->globals);
    Value made = in_.function_of((*text)->program, *f->def);
    if (made.missing()) return {};
    functions_[f->def] = {unowned(f), made};
    give_names(*f, body, (*text)->globals);
    return made;
  }

  static ast::OnExpr names_into(std::set<std::string, std::less<>>& read) {
    return [&read](const ast::Expr& e) {
      if (const auto* n = ast::dyn_as<ast::Name>(&e)) read.insert(n->id);
    };
  }
  void give_names(const frontend::JitFunction& f, const std::set<std::string, std::less<>>& read, Globals& globals) {
    for (const std::string& name : read) {
      Globals::Slot* slot = globals.find(name);
      if (!slot || !slot->value.missing()) continue;
      const std::optional<Global> g = f.lookup ? f.lookup(name) : std::nullopt;
      // By name: what the value is made of may add others.
      if (Value v = g ? value_of(*g) : Value(); !v.missing()) globals[globals.index(name)].value = std::move(v);
    }
  }

  Result<Text*> text_of(const frontend::JitFunction& f) {
    // Of functions within functions each has names of its own.
    auto& held = texts_[{f.module.get(), f.around}];
    if (held) return held.get();
    auto text = std::make_unique<Text>();
    text->globals.module = "__main__";
    for (const auto& slot : in_.globals().slots())
      if (!slot.builtin.missing()) text->globals[text->globals.index(slot.name)].builtin = slot.builtin;
    KILN_TRY(text->program, resolve(f.module, text->globals));
    held = std::move(text);
    return held.get();
  }

  struct Made {
    FunctionPtr function;  // which does not own its file: that owns this interpreter
    Value value;
  };

  std::recursive_mutex mutex_;
  int depth_ = 0;  // of calls within calls
  std::vector<ModuleDef> modules_;
  Interp in_;
  std::map<std::pair<const ast::Module*, const ast::FunctionDef*>, std::unique_ptr<Text>> texts_;
  std::map<const ast::FunctionDef*, Made> functions_;
};

Value held(const Global& g) {
  if (const auto* c = std::get_if<ast::Constant>(&g)) return Value::of(*c);
  return make<Known>(g);
}

std::optional<Value> Known::attribute(Interp& in, std::string_view name) {
  std::optional<Global> found = frontend::attribute_of(global, name);
  if (found) return held(*found);
  // A predicate of a type, called without arguments.
  if (std::optional<Global> answer = frontend::predicate_of(global, name)) {
    auto predicate = make<Opaque>(std::string(name));
    predicate->on_call = [answer = *std::move(answer)](Interp&, CallArgs&) { return held(answer); };
    return Value(predicate);
  }
  return Object::attribute(in, name);
}

Value Known::call(Interp& in, CallArgs& args) {
  std::vector<Global> positional;
  std::vector<std::pair<std::string, Global>> keywords;
  auto add = [&](const Value& v) -> Global {
    if (const auto c = v.constant()) return *c;
    if (auto* k = v.get<Known>()) return k->global;
    in.fail(ErrorKind::kType, "{} cannot take a value of type {} while a kernel is compiled", text(), in.type_name(v));
  };
  for (const Value& v : args.args) positional.push_back(add(v));
  for (const KeywordArg& k : args.keywords) keywords.emplace_back(std::string(k.name), add(k.value));
  const Result<Global> result = frontend::compute_call(global, positional, keywords);
  if (!result.ok()) in.fail(result.error().kind, "{}", result.error().message);
  return held(*result);
}

std::optional<Value> Known::compare(Interp&, ast::CompareOp op, const Value& other) {
  if (op != ast::CompareOp::kEq && op != ast::CompareOp::kNe) return std::nullopt;
  auto* k = other.get<Known>();
  const bool equal = k && frontend::same(frontend::from_global(global), frontend::from_global(k->global));
  return Value::boolean(equal == (op == ast::CompareOp::kEq));
}

Value ConstexprInterp::value_of(const Global& g) {
  if (const auto* c = std::get_if<ast::Constant>(&g)) return Value::of(*c);
  if (const auto* f = std::get_if<FunctionPtr>(&g)) {
    const bool runs = (*f)->constexpr_function && !(*f)->named_tuple;
    return runs ? function_of(*f) : Value(make<Known>(Global(unowned(*f))));
  }
  if (const auto* m = std::get_if<frontend::ModulePath>(&g)) {
    if (frontend::is_known_module(m->path) && m->path != "math") return make<Known>(g);
    if (const Ref<ModuleObject> module = in_.import_module(m->path)) return module;
    // Of `from functools import reduce`; what else a path names is Triton's, or not known here.
    const size_t dot = m->path.rfind('.');
    const Ref<ModuleObject> parent =
        dot == std::string::npos ? Ref<ModuleObject>() : in_.import_module(m->path.substr(0, dot));
    if (parent) return in_.find_attribute(parent, m->path.substr(dot + 1)).value_or(Value());
    return frontend::resolve_path(m->path) ? Value(make<Known>(g)) : Value();
  }
  const auto* tuple = std::get_if<std::shared_ptr<const GlobalTuple>>(&g);
  if (!tuple) return make<Known>(g);
  std::vector<Value> items;
  for (const Global& item : (*tuple)->items) items.push_back(value_of(item));
  if (!(*tuple)->is_dict)
    return (*tuple)->fields.empty() ? Value(make<Tuple>(std::move(items)))
                                    : Value(make<Fields>(std::move(items), (*tuple)->fields));
  auto dict = make<Dict>();
  for (size_t i = 0; i < items.size(); ++i) dict->table.set(in_, value_of((*tuple)->keys[i]), std::move(items[i]));
  return dict;
}

std::optional<Global> ConstexprInterp::global_of(const Value& v, int depth) {
  if (v.missing() || depth > kDeepest) return std::nullopt;
  if (const auto c = v.constant()) return Global(*c);
  if (v.is_dtype()) return Global(v.dtype());
  if (auto* k = v.get<Known>()) return k->global;
  if (auto* m = v.get<ModuleObject>()) return Global(frontend::ModulePath{m->path});
  if (auto* f = v.get<Function>()) {
    const auto it = functions_.find(f->def);
    return f->def && it != functions_.end() ? std::optional<Global>(it->second.function) : std::nullopt;
  }
  if (!is_collection(v)) return std::nullopt;
  auto* named = dynamic_cast<Fields*>(v.object());
  return collected(
      in_, v, [&](const Value& item) { return global_of(item, depth + 1); },
      named ? named->names : std::vector<std::string>());
}

}  // namespace

frontend::Interpret interpret_constexpr() {
  // Made with the first call: most files need none.
  auto made = std::make_shared<std::unique_ptr<ConstexprInterp>>();
  return [made](const FunctionPtr& function, std::span<const Global> positional,
                std::span<const std::pair<std::string, Global>> keywords) {
    if (!*made) *made = std::make_unique<ConstexprInterp>();
    return (*made)->call(function, positional, keywords);
  };
}

}  // namespace kiln::script
