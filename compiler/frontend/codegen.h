// One kernel being lowered: the module under construction, the stack of inlined functions and their names.
//
// Statements append to the builder's block. Structured control flow is made region by region; names that differ after
// the regions are merged through results. A function's `return` inside a runtime branch turns what follows into a
// guarded region.
#pragma once
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>

#include "compiler/frontend/builtins.h"
#include "compiler/frontend/promotion.h"
#include "compiler/frontend/value.h"
#include "compiler/ir/builder.h"
#include "support/diag.h"

namespace kiln::frontend {

/// For who asks a pointer for what the tensor has.
inline constexpr const char* kOnlyPointer =
    "help: a kernel gets a tensor as a pointer to its first element: pass its sizes and strides as arguments";

/// A name of a function, and how it came to its value.
struct Binding {
  enum class State { kLive, kOneBranch, kLoopOnly };
  Value value;
  SourceRange at;                   // where it was bound last
  bool declared_constexpr = false;  // `x: tl.constexpr = …`, or a constexpr parameter
  State state = State::kLive;
  SourceRange why = {};  // the statement after which it vanished
};
using Env = std::map<std::string, Binding, std::less<>>;

/// Whether control has left the function: known at compile time, or an i1 of the program. A constexpr function may also
/// leave a loop or its iteration.
struct Flow {
  enum class Kind { kFalls, kReturned, kMaybe, kBroke, kContinues };
  Kind kind = Kind::kFalls;
  ir::Value* returned = nullptr;  // kMaybe; null when nothing follows that would ask
};

/// Where each name of a function is read: decides which names must survive a branch or a loop.
struct NameUses {
  std::map<std::string, std::vector<uint32_t>, std::less<>> reads;  // offsets, ascending
  bool any(std::string_view name, uint32_t from, uint32_t to = UINT32_MAX) const;
};

/// One function being compiled: the kernel, or a helper inlined into it.
struct Frame {
  FunctionPtr function;
  SourceRange call_site;  // empty for the kernel
  Env env;
  Flow flow;
  std::optional<Value> result;  // of `return`, when flow is not kFalls
  SourceRange result_at;
  const NameUses* uses = nullptr;
  std::vector<uint32_t> loop_starts;  // offsets of the loops around the current statement
  int runtime_loops = 0;
  std::vector<Value> arguments;  // for the detection of recursion
};

class Codegen {
 public:
  explicit Codegen(ir::Module& m, const Options& options);

  Result<Value> run_kernel(const JitFunction& function, std::span<const ArgSpec> args);

  // --- diagnostics ------------------------------------------------------------------------------------------------
  template <class... T>
  Diagnostic fail(SourceRange range, ErrorKind kind, fmt::format_string<T...> f, T&&... args) {
    return placed(range, kind, fmt::format(f, std::forward<T>(args)...));
  }
  /// At the place, with the calls that lead there; inside the standard library, at the user's call.
  Diagnostic placed(SourceRange range, ErrorKind kind, std::string message);
  /// Of what Triton warns of too, in its words; nothing for code of the standard library itself.
  template <class... T>
  void warn(SourceRange range, fmt::format_string<T...> f, T&&... args) {
    if (options.on_warning && !is_library(*frame().function))
      options.on_warning({fmt::format(f, std::forward<T>(args)...), place_of(range)});
  }

  // --- expressions (expr.cc, call.cc) --------------------------------------------------------------------------------
  Result<Value> expr(const ast::Expr& e);
  Result<Value> call(const Value& callee, std::vector<Arg> positional,
                     std::vector<std::pair<std::string, Arg>> keywords, SourceRange range, SourceRange callee_range);
  Result<Value> inline_call(const FunctionPtr& function, std::vector<Arg> positional,
                            std::vector<std::pair<std::string, Arg>> keywords, SourceRange range);
  Result<Value> attribute(const Arg& of, std::string_view name, SourceRange range, SourceRange name_range);
  Result<Value> binary(ast::BinaryOp op, const Arg& a, const Arg& b, SourceRange range);
  Result<Value> compare(ast::CompareOp op, const Arg& a, const Arg& b, SourceRange range);
  Result<Value> compare_tuples(ast::CompareOp op, const Arg& a, const Arg& c, SourceRange range);
  Result<Value> unary(ast::UnaryOp op, const Arg& a, SourceRange range);

  // --- statements (stmt.cc, control.cc)
  // --------------------------------------------------------------------------------
  /// Statements that run one after the other; they may come from several blocks.
  using Statements = std::vector<const ast::Stmt*>;
  /// `tail`: nothing of the function follows them.
  Status body(std::span<const ast::Stmt* const> statements, bool tail);

  // --- Python at compile time (host.cc) ------------------------------------------------------------------------------
  /// Whether the function is one that runs at compile time as in Python.
  bool computing();
  /// The expression in a frame of `context`, a constexpr function.
  Result<Value> compute(const FunctionPtr& context, const ast::Expr& e);
  /// A call, and an attribute, in such a frame.
  Result<Value> compute_call(const FunctionPtr& context, const Value& callee, std::vector<Arg> positional,
                             std::vector<std::pair<std::string, Arg>> keywords);
  Result<Value> compute_attribute(const FunctionPtr& context, Value base, std::string_view name);
  /// A compile-time value as a condition.
  Result<bool> constant_truth(const Value& v, SourceRange range);
  /// An error for what an import binds that is not followed: nothing may depend on it.
  Status is_known(const Value& v, SourceRange range);

  // --- values (semantic.cc) ------------------------------------------------------------------------------------------
  /// A tensor, or the strong tensor that a Python scalar becomes; an error for anything else.
  Result<ir::Value*> tensor(const Arg& a);
  /// A constant of that element type; the value must be a bool, int or float.
  ir::Value* constant(const ast::Constant& c, DType dtype);
  Result<ir::Value*> cast(ir::Value* v, ir::Type to_scalar, SourceRange range,
                          std::optional<ir::Rounding> rounding = std::nullopt);
  /// `v != 0` for anything but i1; of a pointer, that it is not null.
  Result<ir::Value*> truth(ir::Value* v, SourceRange range);
  struct Pair {
    ir::Value *a, *b;
  };
  /// Triton's implicit conversions of a binary operation: promotion, then broadcasting.
  Result<Pair> promote_operands(const Arg& a, const Arg& b, std::string_view what, SourceRange range,
                                Promotion how = Promotion::kArithmetic, bool allow_left_pointer = false,
                                bool allow_right_pointer = false);
  /// Both to their common shape, rank padded on the left.
  Result<Pair> broadcast_pair(ir::Value* a, ir::Value* b, SourceRange range);
  /// To exactly `shape`: same rank, or a scalar.
  Result<ir::Value*> broadcast_to(ir::Value* v, const ir::Shape& shape, std::string_view what, SourceRange range);
  /// The scalar in a tile of one element.
  ir::Value* only_element(ir::Value* v);
  /// bf16 → f32, everything else unchanged.
  ir::Value* widen_bf16(ir::Value* v);
  ir::Value* expand(ir::Value* v, int axis) { return b.expand_dims(v, axis); }
  Status check_shape(const ir::Shape& shape, SourceRange range);

  // --- compile-time arguments
  // -----------------------------------------------------------------------------------------
  Diagnostic not_constexpr(const BoundArgs& a, int i, const Value& got, std::string_view wanted);
  Result<ast::Int> const_int(const BoundArgs& a, int i);
  Result<bool> const_bool(const BoundArgs& a, int i);
  Result<std::string> const_text(const BoundArgs& a, int i);
  Result<ir::Type> dtype_arg(const BoundArgs& a, int i);
  Result<ir::Shape> shape_arg(const BoundArgs& a, int i);
  /// A constexpr axis of `v`, negative ones counted from the end.
  Result<int> axis_arg(const BoundArgs& a, int i, int rank);
  Result<std::vector<int64_t>> ints_arg(const BoundArgs& a, int i);

  ir::Module& module;
  ir::Builder b;
  const Options& options;
  /// Whether + - and * of ints are checked (the options debug and sanitize_overflow), where they stand now.
  bool sanitizes = true;

  /// Sets the range of new ops while it lives.
  class RangeScope {
   public:
    RangeScope(Codegen& g, SourceRange range) : g_(g), old_(g.b.range()) {
      // The standard library's ops belong to the line of the user's that called it.
      if (!is_library(*g.frame().function)) g.b.set_range(range);
    }
    ~RangeScope() { g_.b.set_range(old_); }
    RangeScope(const RangeScope&) = delete;
    RangeScope& operator=(const RangeScope&) = delete;

   private:
    Codegen& g_;
    SourceRange old_;
  };

  Frame& frame() { return frames_.back(); }

 private:
  /// What the kernel sees of an argument, with the runtime parameters that it consists of.
  Value argument(const ast::Param& param, const ArgSpec& spec, const std::string& name);
  /// The descriptor behind a parameter that the host made one for.
  Value host_descriptor(const ast::Param& param, const ArgSpec& spec, const std::string& name);
  Result<Value> name(std::string_view id, SourceRange range);
  Result<Value> global(std::string_view id, SourceRange range);
  Diagnostic unknown_name(std::string_view id, SourceRange range);
  Result<Value> bool_op(const ast::BoolOp& e);
  Result<Value> comparison(const ast::Compare& e);
  /// What `and` or `or` makes of values of the running program.
  Result<Value> joined(std::span<const Arg> values, bool is_and, SourceRange range);
  Result<Value> if_exp(const ast::IfExp& e);
  Result<Value> subscript(const ast::Subscript& e);
  Result<Value> index_tuple(const TupleValue& tuple, const ast::Expr& index, SourceRange range);
  Result<Value> index_tensor(ir::Value* v, const ast::Expr& index, SourceRange range);
  Result<Value> joined_str(const ast::JoinedStr& e);
  Result<Value> comprehension(const ast::Comprehension& e);
  Result<Value> dict(const ast::Dict& e);
  Result<std::vector<Value>> items_of(const Arg& a);
  std::optional<Value> host_name(std::string_view id);
  std::optional<Value> host_attribute(const Arg& base, std::string_view name);
  Result<Value> host_call(std::string_view name, const Arg* self, const std::vector<Arg>& positional,
                          const std::vector<std::pair<std::string, Arg>>& keywords, SourceRange range);
  Result<Value> call_expr(const ast::Call& e);
  Result<Value> binary_tensor(ast::BinaryOp op, const Arg& a, const Arg& b, SourceRange range);
  /// `a op b`, with an assertion that ints did not overflow where these are sanitized.
  ir::Value* sanitized(ir::OpKind kind, const Pair& p);
  Result<Value> type_attribute(const ir::Type& t, std::string_view name, SourceRange range, SourceRange name_range);
  Result<Value> descriptor_attribute(const Value& base, const DescriptorValue& descriptor, std::string_view name,
                                     SourceRange range, SourceRange name_range);
  Result<Value> block_pointer_attribute(const Value& base, std::string_view name, SourceRange range,
                                        SourceRange name_range);
  Result<Value> tensor_attribute(const Arg& base, std::string_view name, SourceRange range, SourceRange name_range);
  Result<std::vector<Arg>> bind_function(const FunctionPtr& function, std::vector<Arg> positional,
                                         std::vector<std::pair<std::string, Arg>> keywords, SourceRange range);
  /// `self`: what the first parameter holds at the end.
  Result<Value> inlined(const FunctionPtr& function, std::vector<Arg> positional,
                        std::vector<std::pair<std::string, Arg>> keywords, SourceRange range,
                        std::optional<Value>* self = nullptr);
  // Objects of aggregates (aggregate.cc).
  Result<Value> construct(const FunctionPtr& constructor, std::vector<Arg> positional,
                          std::vector<std::pair<std::string, Arg>> keywords, SourceRange range);
  Status set_field(const ast::Attribute& target, Value value, SourceRange value_range);
  /// What an object, or its class, has under a name.
  std::optional<Value> member_of(const Arg& object, std::string_view name);
  /// What the object's method of that name gives; nullopt: it has none.
  Result<std::optional<Value>> call_member(const Arg& object, std::string_view name, std::vector<Arg> args,
                                           SourceRange range);
  Result<std::optional<Value>> operate(ast::BinaryOp op, const Arg& a, const Arg& c, SourceRange range);
  Result<std::optional<Value>> operate(ast::CompareOp op, const Arg& a, const Arg& c, SourceRange range);
  /// A constexpr function that is not computed here, as JitFunction::interpret has it; else the error `own`.
  Result<Value> interpreted(const FunctionPtr& function, const std::vector<Arg>& positional,
                            const std::vector<std::pair<std::string, Arg>>& keywords, SourceRange range,
                            Diagnostic own);
  bool is_constexpr_annotation(const ast::Expr* annotation, const JitFunction& function);
  const NameUses& uses_of(const ast::FunctionDef& def);
  Result<Global> evaluated_argument(const ast::FunctionDef& def, const Arg& arg);
  Result<Value> evaluate_call(const JitFunction& function, const std::vector<Arg>& positional,
                              const std::vector<std::pair<std::string, Arg>>& keywords, SourceRange range);

  Status statement(const ast::Stmt& s);
  Status assign(const ast::Expr& target, Value value, SourceRange value_range, bool declared_constexpr);
  Status bind(std::string_view id, Value value, SourceRange at, bool declared_constexpr);
  /// What a plain assignment keeps: numbers become tensors, everything else stays.
  Result<Value> strip_constexpr(const Value& value, SourceRange range);
  bool enters_scopes(const ast::With& s);
  Status with_stmt(const ast::With& s);
  Status annotated(const ast::AnnAssign& s);
  Status local_import(const ast::Import& s);
  Status return_stmt(const ast::Return& s);
  /// `rest`: statements that follow and belong to the branch that goes on.
  Status if_stmt(const ast::If& s, ir::Value* condition, std::span<const ast::Stmt* const> rest, bool tail);
  Status for_stmt(const ast::For& s);
  Status runtime_for(const ast::For& s, const RangeValue& range);
  /// After an iteration at compile time; ends what `break` and `continue` began.
  bool leaves_loop();
  Status items_for(const ast::For& s, const Value& iterable);
  Status static_for(const ast::For& s, const RangeValue& range);
  Status while_stmt(const ast::While& s);
  Status constexpr_while(const ast::While& s);
  /// The statements, run only where the function has not returned yet.
  Status guarded(std::span<const ast::Stmt* const> rest, bool tail);
  Status too_deep(SourceRange range);
  struct Depth {
    explicit Depth(int& count) : count_(count) { ++count_; }
    ~Depth() { --count_; }
    int& count_;
  };
  Result<ir::Value*> scalar_condition(const Arg& a, std::string_view what);

  /// The names, flow and result at one point of the function.
  struct Snapshot {
    Env env;
    Flow flow;
    std::optional<Value> result;
    SourceRange result_at;
  };
  Snapshot snapshot();
  void restore(Snapshot s);
  /// Joins the ends of the two regions of an `if`, adds its results, and leaves the builder after it.
  Status merge(ir::Op* branch, ir::Block* after, Snapshot then_end, Snapshot else_end, SourceRange where,
               uint32_t live_from, bool tail);
  struct Merge;
  bool is_live(std::string_view id, uint32_t from);

  struct Carried;
  /// The names that a loop may change, with region arguments in their place.
  Result<std::vector<Carried>> carry(const ast::Stmt& loop, std::span<const ast::StmtPtr> statements,
                                     std::string_view target, std::span<ir::Block* const> blocks);
  /// Carried Python numbers that the body has changed.
  std::set<std::string, std::less<>> changed_numbers(const std::vector<Carried>& carried);
  /// Turns those of the names that hold Python numbers into tensors; whether there was one.
  Result<bool> materialize(const std::set<std::string, std::less<>>& names);
  Status finish_loop(ir::Op* loop, std::vector<Carried>& carried, int first_arg, const Env& before,
                     std::vector<ir::Value*>& yields, SourceRange where);
  Status step(SourceRange range);
  /// Counts what texts and tuples take that are made while the kernel is compiled.
  Status spend(size_t bytes, SourceRange range);

  const ast::Expr* unused_ = nullptr;  // the statement that is compiled, where it is an expression
  std::deque<Frame> frames_;           // references to frames stay valid
  std::unordered_map<const ast::FunctionDef*, NameUses> uses_;
  std::map<std::pair<const JitFunction*, std::string>, Value> globals_;
  static constexpr int64_t kMaxSteps = 200'000;
  int64_t steps_ = 0;
  size_t constexpr_bytes_ = 0;
  int branch_depth_ = 0;  // regions of `if` around the current statement
};

/// Whether it is a method of strings that is computed at compile time (host.cc).
bool is_reading_method(std::string_view name);
/// What an expression of a file is worth, computed as by a constexpr function; nullopt: not without running the file.
std::optional<Global> compute(const FunctionPtr& context, const ast::Expr& e);
/// Every FunctionDef, statement and expression that reads a name, by offset.
NameUses collect_uses(const ast::FunctionDef& def);
/// Names that the statements may bind, nested ones included.
std::set<std::string, std::less<>> assigned_names(std::span<const ast::StmtPtr> statements);
/// Pointers to the statements, in order.
std::vector<const ast::Stmt*> pointers(const ast::Body& body);
/// Every path through the statements meets a return.
bool surely_returns(std::span<const ast::StmtPtr> statements);
/// Offset one past the statement, its nested blocks included.
uint32_t end_of(const ast::Stmt& s);

}  // namespace kiln::frontend
