// What an expression of a kernel evaluates to while it is compiled: a compile-time constant, a value of the IR, or one
// of the things that only exist at compile time (types, functions, modules, tuples, ranges, descriptors, block
// pointers).
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "compiler/frontend/frontend.h"

namespace kiln::frontend {

struct Builtin;
struct TupleValue;
struct ConstexprTypeValue;
struct MethodValue;
struct RangeValue;
struct DescriptorValue;
struct BlockPointerValue;
struct AggregateValue;

using FunctionPtr = std::shared_ptr<const JitFunction>;

/// A type used as a value: `tl.float32`, `ptr.dtype.element_ty`, `x.type`.
struct TypeValue {
  ir::Type type;
};

struct Value {
  std::variant<ast::Constant, ir::Value*, TypeValue, std::shared_ptr<const TupleValue>, FunctionPtr, const Builtin*,
               ModulePath, std::shared_ptr<const MethodValue>, std::shared_ptr<const RangeValue>,
               std::shared_ptr<const DescriptorValue>, std::shared_ptr<const BlockPointerValue>,
               std::shared_ptr<const ConstexprTypeValue>, std::shared_ptr<const AggregateValue>>
      data;

  Value() : data(ast::Constant(ast::None{})) {}
  Value(ast::Constant c) : data(std::move(c)) {}
  Value(ir::Value* v) : data(v) {}
  Value(TypeValue t) : data(t) {}
  Value(FunctionPtr f) : data(std::move(f)) {}
  Value(const Builtin* b) : data(b) {}
  Value(ModulePath p) : data(std::move(p)) {}
  Value(std::shared_ptr<const TupleValue> t) : data(std::move(t)) {}
  Value(std::shared_ptr<const MethodValue> m) : data(std::move(m)) {}
  Value(std::shared_ptr<const RangeValue> r) : data(std::move(r)) {}
  Value(std::shared_ptr<const DescriptorValue> d) : data(std::move(d)) {}
  Value(std::shared_ptr<const BlockPointerValue> b) : data(std::move(b)) {}
  Value(std::shared_ptr<const ConstexprTypeValue> t) : data(std::move(t)) {}
  Value(std::shared_ptr<const AggregateValue> a) : data(std::move(a)) {}

  static Value boolean(bool v) { return Value(ast::Constant(v)); }
  static Value integer(ast::Int v) { return Value(ast::Constant(v)); }
  static Value text(std::string v) { return Value(ast::Constant(std::move(v))); }
  static Value tuple(std::vector<Value> items, std::vector<std::string> fields = {});
  static Value dict(std::vector<Value> keys, std::vector<Value> items);
  static Value type_of_constexpr(Value v);

  const ast::Constant* constant() const { return std::get_if<ast::Constant>(&data); }
  /// The alternative of a constant, or nullptr.
  template <class T>
  const T* constant_as() const {
    const ast::Constant* c = constant();
    return c ? std::get_if<T>(c) : nullptr;
  }
  bool is_none() const { return constant_as<ast::None>() != nullptr; }
  /// A bool, int or float constant.
  bool is_number() const;
  ir::Value* tensor() const {
    auto* p = std::get_if<ir::Value*>(&data);
    return p ? *p : nullptr;
  }
  const TypeValue* type() const { return std::get_if<TypeValue>(&data); }
  const TupleValue* as_tuple() const;
  /// A dict of a constexpr function, or of the file; kernels have none.
  const TupleValue* as_dict() const;
  const FunctionPtr* function() const { return std::get_if<FunctionPtr>(&data); }
  const Builtin* builtin() const {
    auto* p = std::get_if<const Builtin*>(&data);
    return p ? *p : nullptr;
  }
  const ModulePath* module() const { return std::get_if<ModulePath>(&data); }
  const MethodValue* method() const {
    auto* p = std::get_if<std::shared_ptr<const MethodValue>>(&data);
    return p ? p->get() : nullptr;
  }
  const RangeValue* range() const {
    auto* p = std::get_if<std::shared_ptr<const RangeValue>>(&data);
    return p ? p->get() : nullptr;
  }
  const DescriptorValue* descriptor() const {
    auto* p = std::get_if<std::shared_ptr<const DescriptorValue>>(&data);
    return p ? p->get() : nullptr;
  }
  const BlockPointerValue* block_pointer() const {
    auto* p = std::get_if<std::shared_ptr<const BlockPointerValue>>(&data);
    return p ? p->get() : nullptr;
  }
  /// An object of a class under @_aggregate (aggregate.h).
  const AggregateValue* aggregate() const {
    auto* p = std::get_if<std::shared_ptr<const AggregateValue>>(&data);
    return p ? p->get() : nullptr;
  }
  const ConstexprTypeValue* constexpr_type() const {
    auto* p = std::get_if<std::shared_ptr<const ConstexprTypeValue>>(&data);
    return p ? p->get() : nullptr;
  }
};

/// A value with the place of the expression that gave it.
struct Arg {
  Value value;
  SourceRange range;
};

struct TupleValue {
  std::vector<Value> items;
  std::vector<std::string> fields = {};  // of a NamedTuple
  bool is_dict = false;
  std::vector<Value> keys = {};  // of a dict, whose values the items are
  int depth = 1;                 // how many tuples are within one another

  /// What a dict has under a key; null: nothing.
  const Value* find(const Value& key) const;
};

/// The type of a constexpr, which has its value: `x.type == tl.constexpr_type(4)`.
struct ConstexprTypeValue {
  Value value;
};

/// `x.sum`: a function with its first argument; or, with neither function, a predicate (`dtype.is_fp16`) with its
/// answer.
struct MethodValue {
  std::string name;
  const Builtin* builtin = nullptr;
  FunctionPtr function;
  Arg self;
  bool of_host = false;  // of a string: frontend/host.cc has it
};

/// range(…), tl.range(…) or tl.static_range(…), as `for` takes it.
struct RangeValue {
  bool is_static = false;
  Arg start, end, step;
  std::vector<std::pair<ir::AttrName, ir::Attr>> attrs;
};

/// A tensor descriptor: what it is made of, which branches and loops carry, and its handle in the IR where that is
/// made.
struct DescriptorValue {
  ir::Type type;  // of the handle
  /// A scalar pointer; then the size of each dimension (i32), then the strides (i64), of which the last is the
  /// number 1.
  std::vector<Value> parts;
  bool nan_outside = false;  // what loads find outside of the tensor: NaN instead of 0
  ir::Value* handle = nullptr;

  std::vector<Value> shape() const { return {parts.begin() + 1, parts.begin() + 1 + type.shape.rank}; }
  std::vector<Value> strides() const { return {parts.begin() + 1 + type.shape.rank, parts.end()}; }
};

/// A block pointer: a tensor in memory, and where in it a block of `block` elements begins.
struct BlockPointerValue {
  ir::Shape block;
  /// A scalar pointer; then for each dimension its size and its stride (int64), and its offset (int32).
  std::vector<Value> parts;

  ir::Value* base() const { return parts[0].tensor(); }
  ir::Value* size(int d) const { return part(0, d); }
  ir::Value* stride(int d) const { return part(1, d); }
  ir::Value* offset(int d) const { return part(2, d); }

 private:
  ir::Value* part(int kind, int d) const {
    return parts[1 + static_cast<size_t>(kind) * block.rank + static_cast<size_t>(d)].tensor();
  }
};

/// The values that a tuple, a descriptor, a block pointer or an object is made of; nullptr for anything else.
const std::vector<Value>* parts_of(const Value& value);
/// The same tuple, descriptor, block pointer or object, of other values.
Value with_parts(const Value& like, std::vector<Value> parts);
/// Both are made of parts, as many and for the same purpose.
bool same_kind_of_parts(const Value& a, const Value& b);

/// A path of Triton's becomes what it leads to.
Value from_global(const Global& global);
/// nullopt for what exists in the running program only, or in the frontend.
std::optional<Global> to_global(const Value& value);

/// A type in Triton's words: "float32[128, 64]", "*float16[64]", "int32".
std::string describe(const ir::Type& type);
/// A value's kind for an error message: "float32[128]", "the constexpr 3", "a tuple of 2", "the function f".
std::string describe(const Value& value);
/// Python's str() of a compile-time value: what static_print and f-strings show.
std::string to_text(const Value& value);
/// Same compile-time value, or the same value of the IR.
bool same(const Value& a, const Value& b);

}  // namespace kiln::frontend
