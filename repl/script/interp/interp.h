// The interpreter of the host language: walks the syntax tree with names already resolved. Errors inside it are thrown
// as ScriptError (a script may catch them); what leaves a Session is a Diagnostic.
#pragma once
#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "compiler/ast/ast.h"
#include "repl/script/interp/call.h"
#include "repl/script/interp/host.h"
#include "repl/script/interp/scope.h"
#include "repl/script/value/value.h"

namespace kiln::script {

/// A raised exception on its way. `exception` is an Instance; `diagnostic` is how it reads when nobody catches it.
struct ScriptError {
  Diagnostic diagnostic;
  Value exception;
};

/// A function that the script defined, by def or lambda.
class Function : public Object {
 public:
  static constexpr KindOf<Function> kKind = Kind::kFunction;
  Function() : Object(kKind) {}
  Value call(Interp& in, CallArgs& args) override;
  std::optional<Value> attribute(Interp& in, std::string_view name) override;
  void set_attribute(Interp& in, std::string_view name, Value value) override;
  std::string repr(Interp&) override;

  std::string name;
  std::shared_ptr<const Program> program;
  const Code* code = nullptr;
  const ast::FunctionDef* def = nullptr;  // null for a lambda
  const std::vector<ast::Param>* params = nullptr;
  const ast::Expr* body = nullptr;  // of a lambda
  std::vector<Value> defaults;      // one per parameter, missing where there is none
  std::vector<Ref<Cell>> free;
  Table fields;  // attributes that the script set
  Elsewhere elsewhere = nullptr;
  /// The class whose body defined it, which holds it: for super().
  std::shared_ptr<TypeObject* const> owner;
};

/// The variables of one running function.
struct Frame {
  explicit Frame(const Program& p, const Code& c);
  ~Frame() {
    if (!heap_) std::destroy_n(slots, count_);
  }
  Frame(const Frame&) = delete;
  Frame& operator=(const Frame&) = delete;
  /// Turns the slots that inner functions share into cells; once, after the arguments are in.
  void make_cells();
  /// The cells of this frame that a function made in it shares.
  std::vector<Ref<Cell>> captured(const Code& inner) const;

  const Program& program;
  const Code& code;
  Value* slots;
  const std::vector<Ref<Cell>>* free = nullptr;
  const Function* function = nullptr;
  Value result;

 private:
  static constexpr size_t kInline = 16;
  const size_t count_;  // of the slots, which alone are made of what there is room for
  alignas(Value) std::byte inline_[kInline * sizeof(Value)];
  std::unique_ptr<Value[]> heap_;
};

/// The place of a state() in every interpreter, given as the program starts.
size_t register_state();
template <class T>
inline const size_t kStateSlot = register_state();

/// What is shown of a program as it runs.
enum class Shown : uint8_t {
  kNothing,
  kAssigned,  // at a prompt: what Host::assigned says
  kLast,      // that, and the value of the last statement
};

enum class Flow : uint8_t { kNormal, kBreak, kContinue, kReturn };

class Interp {
 public:
  explicit Interp(std::unique_ptr<Host> host = std::make_unique<Host>());
  ~Interp();
  Interp(const Interp&) = delete;
  Interp& operator=(const Interp&) = delete;

  // --- running (interp_stmt.cc, interp_expr.cc, interp_call.cc) ---
  void run(std::shared_ptr<const Program> program, Shown shown);
  Value evaluate(const std::shared_ptr<const Program>& program, const ast::Expr& e);
  /// Gives the targets of the assignment this value in place of its own.
  void assign_value(const std::shared_ptr<const Program>& program, const ast::Assign& s, const Value& v);
  /// The parts of `base[grid](args)`, each evaluated, without the launch.
  void evaluate_launch(const std::shared_ptr<const Program>& program, const ast::Call& e, Value& base, Value& grid,
                       CallArgs& args);
  Value eval(const ast::Expr& e, Frame& f);
  Flow exec(const ast::Body& body, Frame& f);
  Value call(const Value& callee, CallArgs& args);
  /// A call without keywords.
  Value call(const Value& callee, std::initializer_list<Value> args);
  Value call_function(const Function& fn, CallArgs& args);
  /// The function that a def of a text makes, without its decorators and without the text having run; missing for one
  /// that is made of the variables of another function.
  Value function_of(const std::shared_ptr<const Program>& program, const ast::FunctionDef& def);

  // --- operations on values (operators.cc, sequences.cc) ---
  Value binary(ast::BinaryOp op, const Value& a, const Value& b);
  Value unary(ast::UnaryOp op, const Value& a);
  Value compare(ast::CompareOp op, const Value& a, const Value& b);
  bool equal(const Value& a, const Value& b);
  /// a < b, as sort() needs it.
  bool less(const Value& a, const Value& b);
  bool truth(const Value& v);
  uint64_t hash(const Value& v);
  Value attribute(const Value& base, std::string_view name);
  std::optional<Value> find_attribute(const Value& base, std::string_view name);
  void set_attribute(const Value& base, std::string_view name, Value value);
  Value item(const Value& base, const Value& index);
  void set_item(const Value& base, const Value& index, Value value);
  int64_t length(const Value& v);
  /// The exception whose handler runs; missing outside of one.
  Value handled() const { return handled_.empty() ? Value() : handled_.back(); }
  /// What an operator's method gives for operands that it does not take.
  const Value& not_implemented() const { return not_implemented_; }
  /// `...`, of which there is one.
  const Value& ellipsis() const { return ellipsis_; }
  Ref<IteratorObject> iterator(const Value& v);
  /// Calls `visit(Value)` for each; it returns false to stop.
  template <class Visit>
  void for_each(const Value& v, Visit&& visit);
  std::vector<Value> to_vector(const Value& v);
  std::vector<Value> copied(const std::vector<Value>& items);
  /// Of a class that derives from a list or a tuple and says itself what it gives.
  static bool has_own_iterator(const Value& v);
  /// A MemoryError where `count` is more than one operation may make.
  void check_items(size_t count);

  // --- text (format.cc) ---
  std::string repr(const Value& v);
  std::string str(const Value& v);
  std::string format(const Value& v, std::string_view spec);
  /// `bytes`: the text is of bytes, whose %s takes bytes.
  std::string percent_format(const std::string& text, const Value& args, bool bytes = false);

  // --- conversions that natives need ---
  int64_t to_int(const Value& v, std::string_view what);  // an int, or an error that names `what`
  double to_double(const Value& v, std::string_view what);
  const std::string& to_text(const Value& v, std::string_view what);
  /// start, stop, step and count of a slice over `length` items.
  struct SliceSpan {
    int64_t start, step, count;
  };
  SliceSpan slice_span(const SliceObject& s, int64_t length);
  int64_t index_in(const Value& index, int64_t length, std::string_view what);

  // --- types and modules (types.cc) ---
  /// Valid while this interpreter lives: what a kernel's lookup of globals holds.
  std::weak_ptr<Interp*> self() const { return self_; }
  const Ref<TypeObject>& type_of(Kind k) const { return types_[static_cast<size_t>(k)]; }
  Ref<TypeObject> type_of(const Value& v) const;
  std::string type_name(const Value& v) const;
  bool is_instance(const Value& v, const Value& type);
  /// The type of the tuples that have that Tuple::class_name.
  Ref<TypeObject> add_tuple_type(std::string_view class_name, Value constructor);
  Native* method(Kind kind, std::string_view name) const;
  void method_names(Kind kind, std::vector<std::string>& out) const;
  void add_methods(const MethodTable& table);
  /// What can be imported: the rows of these tables, and what the finder makes.
  void add_modules(std::span<const ModuleDef> table) { module_tables_.push_back(table); }
  void set_module_finder(ModuleFinder find) { find_module_ = find; }
  void set_source_finder(SourceFinder find) { find_source_ = find; }
  void set_module_help(ModuleHelp help) { module_help_ = help; }
  /// Null when there is no such module.
  Ref<ModuleObject> import_module(std::string_view path);
  /// The same, and a ModuleNotFoundError where there is none.
  Ref<ModuleObject> required_module(const std::string& path);
  /// Runs a module's text, as it is now, among the variables that it has.
  Value reload_module(const Value& module);
  /// Whether the module comes with Kiln, written in C++.
  bool is_library_module(std::string_view path) const;
  void add_builtins(std::span<const NativeDef> defs);
  void add_builtin(std::string_view name, Value v) { globals_[globals_.index(name)].builtin = std::move(v); }
  /// What a class statement makes, and type() with three arguments.
  Ref<TypeObject> make_class(std::string name, const std::vector<Value>& bases, const Table& members,
                             std::vector<KeywordArg> keywords);
  Ref<TypeObject> exception_type(std::string_view name) const;
  Ref<TypeObject> add_exception(std::string name, std::string_view base, std::optional<ErrorKind> kind = std::nullopt);

  /// What a module keeps in this interpreter, out of reach of scripts: T(Interp&), made when first asked for.
  template <class T>
  T& state() {
    std::shared_ptr<void>& held = states_[kStateSlot<T>];
    if (!held) held = std::make_shared<T>(*this);
    return *static_cast<T*>(held.get());
  }

  // --- errors ---
  /// Throws: an error of that kind at the expression being evaluated, with the call stack as notes.
  template <class... Args>
  [[noreturn]] void fail(ErrorKind kind, fmt::format_string<Args...> f, Args&&... args) {
    fail(Diagnostic{kind, fmt::format(f, std::forward<Args>(args)...), {}, {}});
  }
  /// As above, as an exception of that class.
  template <class... Args>
  [[noreturn]] void fail_as(std::string_view type, fmt::format_string<Args...> f, Args&&... args) {
    fail_as_type(type, fmt::format(f, std::forward<Args>(args)...), {});
  }
  /// `argument` is what a script that catches it sees as its text, when that is not the message; empty: none.
  [[noreturn]] void fail_as_type(std::string_view type, std::string message, std::string help,
                                 std::optional<std::string> argument = std::nullopt);
  /// A KeyError whose argument is the key; `message` has a {} for it.
  [[noreturn]] void fail_key(const Value& key, std::string_view message);
  /// From a layer below: keeps its place and says where the script was. An exception of the class `type`, or of that of
  /// its kind.
  [[noreturn]] void fail(Diagnostic d, std::string_view type = {});
  [[noreturn]] void raise(Value exception, SourceRange where);
  /// An exception that was caught, with the place where it was raised first; `named`: by its name, which is told too.
  [[noreturn]] void raise_again(const Value& exception, SourceRange where, bool named);
  /// The exceptions that led to this one, as notes.
  void add_causes(ScriptError& error);
  /// The exception that is being handled becomes what another one says it came from.
  void set_context(Instance& exception);
  template <class T>
  T take(Result<T> r) {
    if (!r.ok()) fail(std::move(r.error()));
    return *std::move(r);
  }
  void check(Status s) {
    if (!s.ok()) fail(std::move(s.error()));
  }
  /// Meets Ctrl-C. It costs a load: loops over values call it for each.
  void check_interrupt() {
    if (interrupted.load(std::memory_order_relaxed)) stop_interrupted();
  }
  /// Calls work(first, last) for pieces of `count` elements of plain memory and meets Ctrl-C between them.
  template <class Work>
  void in_pieces(size_t count, Work&& work) {
    constexpr size_t kPiece = size_t{1} << 18;
    for (size_t first = 0; first < count; first += kPiece) {
      check_interrupt();
      work(first, std::min(first + kPiece, count));
    }
  }
  /// Ctrl-C has been met: what runs next runs, unless it is to stop the statement (stops_statement).
  void take_interrupt();
  /// Before the next statement.
  void forget_interrupt();
  /// While one lives, a `finally` or `__exit__` runs that a statement which is to be stopped has still to do.
  class Cleanup {
   public:
    explicit Cleanup(Interp& in);
    ~Cleanup();
    Cleanup(const Cleanup&) = delete;
    Cleanup& operator=(const Cleanup&) = delete;

   private:
    Interp& in_;
    const bool waits_;  // the interrupt, for the end of it
  };
  /// A RecursionError when little is left of the stack, or of what calls may take of a stack without a limit.
  void check_stack();
  SourceRange where() const { return where_; }
  void set_where(SourceRange r) { where_ = r; }

  Globals& globals() { return globals_; }
  /// Those of the text whose function runs.
  Globals& current_globals() { return calls_.empty() ? globals_ : *calls_.back().program->globals; }
  Host& host() { return *host_; }
  void print(std::string_view text) {
    if (output) output(text);
  }

  // --- what the session sets ---
  std::function<void(std::string_view)> output, error_output;
  const Native* running = nullptr;  // the native function that is called, for its name in messages
  std::atomic<bool> interrupted{false};
  std::atomic<bool> stops_statement{false};  // the interrupt stays: where a script catches it, it comes again
  std::vector<std::string> argv;
  std::optional<int> exit_code;  // of the SystemExit that ended a script
  /// What a SystemExit says: None is 0, an int itself, anything else is written to stderr and 1.
  int exit_status(const Value& exception);

 private:
  friend class Function;
  friend class Generator;
  friend class FunctionGenerator;
  struct Call {
    const Function* function;  // null: the text of a module that is being imported
    SourceRange site;
    const Program* program;
  };
  /// Leaves a call as the scope does.
  struct Entered {
    Entered(Interp& i, Call call) : in(i), site(call.site) { in.calls_.push_back(call); }
    ~Entered() {
      in.calls_.pop_back();
      in.where_ = site;
    }
    Entered(const Entered&) = delete;
    Entered& operator=(const Entered&) = delete;
    Interp& in;
    SourceRange site;
  };

  Flow exec_one(const ast::Stmt& s, Frame& f);
  Flow exec_for(const ast::For& s, Frame& f);
  Flow exec_try(const ast::Try& s, Frame& f);
  Flow exec_with(const ast::With& s, Frame& f);
  void exec_import(const ast::Import& s, Frame& f);
  std::string absolute_path(const ast::Import& s, const Globals& from);
  Value imported(const Ref<ModuleObject>& m, const ast::Import::Alias& a);
  Ref<ModuleObject> import_source(std::string_view path);
  void run_module(const Program& program);
  void exec_assert(const ast::Assert& s, Frame& f);
  void exec_raise(const ast::Raise& s, Frame& f);
  static void keep_report(const Value& exception, Diagnostic report);
  /// The body of the first case that matches, whose names are bound; null: none does.
  const ast::Body* chosen_case(const ast::Match& s, Frame& f);
  void exec_del(const ast::Expr& target, Frame& f);
  void exec_class(const ast::ClassDef& s, Frame& f);
  void exec_augmented(const ast::AugAssign& s, Frame& f);
  Value combine(const ast::AugAssign& s, const Value& old, const Value& right);
  const ast::Try::Handler* handler_of(const ast::Try& s, ScriptError& error, Frame& f);
  /// The name of a handler's exception has no value behind the handler.
  void forget_name(const ast::Try::Handler& h, Frame& f);
  Value enter_context(const ast::With::Item& item, std::vector<Value>& exits, Frame& f);
  bool leave_contexts(std::vector<Value>& exits, const Value& exception);
  void define_function(const ast::FunctionDef& s, Frame& f);
  Value make_function(const Code& code, const std::vector<ast::Param>& params, Frame& f, std::string name);
  void assign(const ast::Expr& target, Value v, Frame& f);
  /// Tells the host what the prompt has assigned.
  void announce(const ast::Stmt& s, Frame& f);
  /// `a, b = x, y` without the tuple between; false where it is not of this form.
  bool assign_each(const ast::Expr& target, const ast::Expr& value, Frame& f);
  void unpack(const std::vector<ast::ExprPtr>& targets, const Value& v, const ast::Expr& whole, Frame& f);
  void store(const void* node, Value v, Frame& f);
  Value load(const void* node, std::string_view name, SourceRange range, Frame& f);

  Value eval_call(const ast::Call& e, Frame& f);
  void gather(const ast::Call& e, CallArgs& out, Frame& f);
  Value eval_comprehension(const ast::Comprehension& e, Frame& f);
  template <class Visit>
  void run_clauses(const ast::Comprehension& e, size_t clause, Frame& f, Visit&& visit);
  Value eval_compare(const ast::Compare& e, Frame& f);
  Value eval_joined(const ast::JoinedStr& e, Frame& f);
  Value eval_slice(const ast::Slice& e, Frame& f);
  void eval_items(const std::vector<ast::ExprPtr>& items, std::vector<Value>& out, Frame& f);
  Value eval_dict(const ast::Dict& e, Frame& f);
  void bind(const Function& fn, CallArgs& args, Frame& frame);
  [[noreturn]] void fail_binding(const Function& fn, const CallArgs& args);
  [[noreturn]] void stop_interrupted();
  std::vector<Note> stack_notes() const;
  /// The place of an error: in what the user wrote, not in a module of Kiln's own that it called.
  SourceRange blamed() const;
  void make_types();

  Globals globals_;
  Value not_implemented_, ellipsis_;
  SourceRange where_;
  std::vector<Call> calls_;
  std::vector<Ref<TypeObject>> types_;
  Ref<TypeObject> generator_type_;  // of the iterators that are generators
  std::vector<std::unordered_map<std::string, Ref<Native>, TextHash, std::equal_to<>>> methods_;
  std::unordered_map<std::string, Ref<TypeObject>> exceptions_;
  std::unordered_map<std::string_view, Ref<TypeObject>> tuple_types_;
  std::unordered_map<std::string, Ref<ModuleObject>, TextHash, std::equal_to<>> modules_;
  std::vector<std::shared_ptr<void>> states_;  // by kStateSlot of their type
  std::vector<Value> handled_;                 // exceptions whose handler is running: what a bare raise raises again
  uintptr_t stack_limit_ = 0;                  // calls end above this address…
  unsigned long stack_thread_ = 0;             // …of this thread's stack
  std::shared_ptr<Interp*> self_;
  const std::unique_ptr<Host> host_;
  std::vector<std::span<const ModuleDef>> module_tables_;
  ModuleFinder find_module_ = nullptr;
  SourceFinder find_source_ = nullptr;
  ModuleHelp module_help_ = nullptr;
  std::vector<std::unique_ptr<Globals>> module_globals_;  // of the modules that are texts
};

template <class Visit>
void Interp::for_each(const Value& v, Visit&& visit) {
  const bool own = has_own_iterator(v);
  if (auto* list = own ? nullptr : v.get<List>()) {
    for (size_t i = 0; i < list->items.size(); ++i) {
      check_interrupt();
      Value item = list->items[i];
      if (!visit(std::move(item))) return;
    }
    return;
  }
  if (auto* tuple = own ? nullptr : v.get<Tuple>()) {
    for (const Value& item : tuple->items) {
      check_interrupt();
      if (!visit(Value(item))) return;
    }
    return;
  }
  if (auto* range = v.get<Range>()) {
    int64_t n = range->count();
    for (int64_t i = 0; i < n; ++i) {
      check_interrupt();  // costs no memory, so it may be a long loop: sum(range(10**12))
      if (!visit(Value::integer(range->start + i * range->step))) return;
    }
    return;
  }
  Ref<IteratorObject> it = iterator(v);
  for (Value item; it->next(*this, item);) {
    check_interrupt();
    if (!visit(std::move(item))) return;
  }
}

}  // namespace kiln::script
