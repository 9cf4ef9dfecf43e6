// Values of the host language. A Value is 16 bytes: small things inside, everything else a counted Object.
// One thread only: the counts are not atomic.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "compiler/ast/constant.h"
#include "kiln/dtype.h"
#include "kiln/result.h"

namespace kiln::ast {
struct ClassDef;
}

namespace kiln::script {

class Interp;
class Object;
class TypeObject;
struct CallArgs;
struct Program;

/// The kinds of the language itself; those of modules follow them, registered by their classes as the program starts.
enum class Kind : uint16_t {
#define KILN_SCRIPT_TYPE(e, name) k##e,
#include "repl/script/value/types.def"
#undef KILN_SCRIPT_TYPE
};
Kind register_kind(std::string_view name);
size_t count_kinds();
/// As type() shows it.
std::string_view kind_name(Kind k);

/// The kind of one class alone, its `kKind`. get<T>() asks for just this type, so that no two classes can share a kind
/// and be mistaken for each other.
template <class T>
struct KindOf {
  constexpr KindOf(Kind k) : value(k) {}
  explicit KindOf(std::string_view name) : value(register_kind(name)) {}
  constexpr operator Kind() const { return value; }
  Kind value;
};

/// A counted pointer to an Object.
template <class T>
class Ref {
 public:
  Ref() = default;
  explicit Ref(T* p) : p_(p) {
    if (p_) p_->retain();
  }
  Ref(const Ref& o) : Ref(o.p_) {}
  Ref(Ref&& o) noexcept : p_(std::exchange(o.p_, nullptr)) {}
  template <class U>
  Ref(const Ref<U>& o) : Ref(o.get()) {}
  ~Ref() {
    if (p_) p_->release();
  }
  Ref& operator=(Ref o) noexcept {
    std::swap(p_, o.p_);
    return *this;
  }
  T* get() const { return p_; }
  T* operator->() const { return p_; }
  T& operator*() const { return *p_; }
  explicit operator bool() const { return p_ != nullptr; }

 private:
  T* p_ = nullptr;
};

template <class T, class... Args>
Ref<T> make(Args&&... args) {
  return Ref<T>(new T(std::forward<Args>(args)...));
}

class Value {
 public:
  /// The missing value: an unset variable, an argument that was not given.
  Value() : tag_(Tag::kMissing), i_(0) {}
  Value(const Value& o) : tag_(o.tag_), i_(o.i_) {
    if (tag_ == Tag::kObject) retain();
  }
  Value(Value&& o) noexcept : tag_(std::exchange(o.tag_, Tag::kMissing)), i_(o.i_) {}
  template <class T>
  Value(const Ref<T>& r) : tag_(Tag::kObject), o_(r.get()) {
    retain();
  }
  explicit Value(Object* o) : tag_(Tag::kObject), o_(o) { retain(); }
  ~Value() {
    if (tag_ == Tag::kObject) release();
  }
  Value& operator=(const Value& o) {
    Value copy(o);
    swap(copy);
    return *this;
  }
  Value& operator=(Value&& o) noexcept {
    Value moved(std::move(o));
    swap(moved);
    return *this;
  }
  void swap(Value& o) noexcept {
    std::swap(tag_, o.tag_);
    std::swap(i_, o.i_);
  }

  static Value none() {
    Value v;
    v.tag_ = Tag::kNone;
    return v;
  }
  static Value boolean(bool b) {
    Value v;
    v.tag_ = Tag::kBool;
    v.i_ = b;
    return v;
  }
  static Value integer(int64_t i) {
    Value v;
    v.tag_ = Tag::kInt;
    v.i_ = i;
    return v;
  }
  static Value real(double d) {
    Value v;
    v.tag_ = Tag::kFloat;
    v.f_ = d;
    return v;
  }
  static Value dtype(DType t) {
    Value v;
    v.tag_ = Tag::kDType;
    v.i_ = static_cast<int64_t>(t);
    return v;
  }
  static Value str(std::string s);
  static Value of(const ast::Constant& c);
  /// An int of any size that Kiln has: within 64 bits it is held inside.
  static Value wide(ast::Int i);

  bool missing() const { return tag_ == Tag::kMissing; }
  bool is_none() const { return tag_ == Tag::kNone; }
  bool is_bool() const { return tag_ == Tag::kBool; }
  bool is_small_int() const { return tag_ == Tag::kInt; }
  bool is_float() const { return tag_ == Tag::kFloat; }
  bool is_dtype() const { return tag_ == Tag::kDType; }
  bool is_object() const { return tag_ == Tag::kObject; }
  bool small_int_or_bool() const { return tag_ == Tag::kInt || tag_ == Tag::kBool; }
  bool boolean() const { return i_ != 0; }
  int64_t integer() const { return i_; }
  double real() const { return f_; }
  DType dtype() const { return static_cast<DType>(i_); }
  Object* object() const { return tag_ == Tag::kObject ? o_ : nullptr; }
  Kind kind() const;  // not for a missing value
  /// The object as a T, or nullptr when it is another kind.
  template <class T>
  T* get() const;
  /// The scalar as a constant: None, bool, int, float, str; nullopt for other kinds.
  std::optional<ast::Constant> constant() const;
  bool same(const Value& o) const {
    return tag_ == o.tag_ && (tag_ == Tag::kNone || tag_ == Tag::kMissing || i_ == o.i_);
  }

 private:
  enum class Tag : uint8_t { kMissing, kNone, kBool, kInt, kFloat, kDType, kObject };
  void retain() const;
  void release() const;

  Tag tag_;
  union {
    int64_t i_;
    double f_;
    Object* o_;
  };
};

/// An argument that was given and is not None.
inline bool given(const Value& v) { return !v.missing() && !v.is_none(); }

/// What every object can be asked for. The defaults say, as Python does, that the type does not support it.
class Object {
 public:
  explicit Object(Kind k) : kind_(k) {}
  virtual ~Object() = default;
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;

  Kind kind() const { return kind_; }
  void retain() { ++refs_; }
  void release() {
    if (--refs_ == 0) destroy();
  }

  /// An attribute of the object itself; the methods of its kind are found elsewhere.
  virtual std::optional<Value> attribute(Interp&, std::string_view name);
  virtual void set_attribute(Interp& in, std::string_view name, Value value);
  virtual void attribute_names(std::vector<std::string>& out) const;
  virtual Value call(Interp& in, CallArgs& args);
  /// `object[index](args)`: a launch when the object is a kernel, else nullopt.
  virtual std::optional<Value> call_at(Interp& in, const Value& index, CallArgs& args);
  virtual Value item(Interp& in, const Value& index);
  virtual void set_item(Interp& in, const Value& index, Value value);
  virtual void delete_item(Interp& in, const Value& index);
  virtual std::optional<int64_t> length(Interp& in);
  /// An IteratorObject; missing when it cannot be iterated.
  virtual Value iterate(Interp& in);
  virtual std::string repr(Interp& in);
  virtual std::string str(Interp& in) { return repr(in); }
  virtual bool truth(Interp& in);
  /// `this op other`, or `other op this` when `reflected`; nullopt when it knows no such operation.
  virtual std::optional<Value> binary(Interp& in, ast::BinaryOp op, const Value& other, bool reflected);
  /// `this op= other`: what the target becomes, this object itself where it can change; nullopt: as `this op other`.
  virtual std::optional<Value> in_place(Interp& in, ast::BinaryOp op, const Value& other);
  /// `self[index] op= right()` in one step; false, with nothing evaluated, where the item is read, changed and set.
  virtual bool change_item(Interp& in, const Value& index, ast::BinaryOp op, const std::function<Value()>& right);
  virtual std::optional<Value> unary(Interp& in, ast::UnaryOp op);
  virtual std::optional<Value> compare(Interp& in, ast::CompareOp op, const Value& other);
  virtual std::optional<bool> contains(Interp& in, const Value& item);
  virtual std::optional<std::string> format(Interp& in, std::string_view spec);
  /// Of objects that are keys by what they are and not by which they are.
  virtual std::optional<uint64_t> hash(Interp& in);
  /// Of instances of a class that a script defined: that class.
  virtual const Ref<TypeObject>* own_type() const { return nullptr; }
  /// At the prompt a call that gives it shows nothing.
  virtual bool is_quiet() const { return false; }

 private:
  /// Deletes without recursing as deep as what it holds is nested.
  void destroy();

  uint32_t refs_ = 0;
  Kind kind_;
};

inline void Value::retain() const { o_->retain(); }
inline void Value::release() const { o_->release(); }
inline Kind Value::kind() const {
  return tag_ == Tag::kObject ? o_->kind() : static_cast<Kind>(static_cast<int>(tag_) - 1);
}
template <class T>
T* Value::get() const {
  static_assert(std::is_same_v<std::remove_cv_t<decltype(T::kKind)>, KindOf<T>>, "the kind of another class");
  return tag_ == Tag::kObject && o_->kind() == T::kKind ? static_cast<T*>(o_) : nullptr;
}

// --- the objects of the language itself ------------------------------------------------------------------------------

class WideInt : public Object {
 public:
  static constexpr KindOf<WideInt> kKind = Kind::kInt;
  explicit WideInt(ast::Int v) : Object(kKind), value(v) {}
  std::string repr(Interp&) override { return ast::to_string(value); }
  bool truth(Interp&) override { return value != 0; }
  /// Into 64 bits: a number of a class of its own does.
  bool fits() const { return value >= INT64_MIN && value <= INT64_MAX; }
  const ast::Int value;
};

class Str : public Object {
 public:
  static constexpr KindOf<Str> kKind = Kind::kStr;
  explicit Str(std::string s) : Object(kKind), text(std::move(s)) {}
  std::optional<int64_t> length(Interp&) override;
  Value item(Interp& in, const Value& index) override;
  Value iterate(Interp& in) override;
  std::string repr(Interp&) override;
  std::string str(Interp&) override { return text; }
  bool truth(Interp&) override { return !text.empty(); }
  std::optional<bool> contains(Interp& in, const Value& item) override;
  const std::string text;  // UTF-8; positions count characters
};

class Tuple : public Object {
 public:
  static constexpr KindOf<Tuple> kKind = Kind::kTuple;
  explicit Tuple(std::vector<Value> v, std::string_view called = {})
      : Object(kKind), items(std::move(v)), class_name(called) {}
  std::optional<int64_t> length(Interp&) override { return static_cast<int64_t>(items.size()); }
  Value item(Interp& in, const Value& index) override;
  Value iterate(Interp& in) override;
  std::string repr(Interp& in) override;
  bool truth(Interp&) override { return !items.empty(); }
  std::optional<bool> contains(Interp& in, const Value& item) override;
  std::vector<Value> items;
  /// Of a subclass that differs from a tuple in how it prints, "torch.Size"; a constant. Else empty.
  const std::string_view class_name;
};

class List : public Object {
 public:
  static constexpr KindOf<List> kKind = Kind::kList;
  explicit List(std::vector<Value> v = {}) : Object(kKind), items(std::move(v)) {}
  std::optional<int64_t> length(Interp&) override { return static_cast<int64_t>(items.size()); }
  Value item(Interp& in, const Value& index) override;
  void set_item(Interp& in, const Value& index, Value value) override;
  void delete_item(Interp& in, const Value& index) override;
  Value iterate(Interp& in) override;
  std::string repr(Interp& in) override;
  bool truth(Interp&) override { return !items.empty(); }
  std::optional<bool> contains(Interp& in, const Value& item) override;
  std::optional<Value> in_place(Interp& in, ast::BinaryOp op, const Value& other) override;
  std::vector<Value> items;
};

/// Insertion-ordered hash table; a Set is one without values.
class Table {
 public:
  struct Entry {
    Value key, value;  // key missing: removed
    uint64_t hash = 0;
  };
  Value* find(Interp& in, const Value& key);
  Value* find(std::string_view key);
  void set(Interp& in, Value key, Value value);
  void set(std::string_view key, Value value);
  bool erase(Interp& in, const Value& key);
  bool erase(std::string_view key);
  void clear();
  size_t size() const { return live_; }
  /// Those that are there, in order: a copy, as what is done for each may run a script's code, which may change the
  /// table.
  std::vector<Entry> live() const;
  /// In order; those with a missing key are gone.
  const std::vector<Entry>& entries() const { return entries_; }
  std::vector<Entry>& entries() { return entries_; }

 private:
  template <class Equal>
  size_t find_index(uint64_t hash, Equal&& equal) const;
  size_t find_index(Interp& in, const Value& key) const;
  void insert(Entry e);
  void drop(size_t index);
  void rebuild();

  std::vector<Entry> entries_;
  std::vector<uint32_t> slots_;  // open addressing into entries_ + 1; empty while there are few entries
  size_t live_ = 0;
  uint32_t changes_ = 0;  // of its keys
};

class Dict : public Object {
 public:
  static constexpr KindOf<Dict> kKind = Kind::kDict;
  Dict() : Object(kKind) {}
  std::optional<int64_t> length(Interp&) override { return static_cast<int64_t>(table.size()); }
  Value item(Interp& in, const Value& index) override;
  void set_item(Interp& in, const Value& index, Value value) override;
  void delete_item(Interp& in, const Value& index) override;
  Value iterate(Interp& in) override;
  std::string repr(Interp& in) override;
  bool truth(Interp&) override { return table.size() != 0; }
  std::optional<bool> contains(Interp& in, const Value& item) override;
  std::optional<Value> in_place(Interp& in, ast::BinaryOp op, const Value& other) override;
  Table table;
};

class Set : public Object {
 public:
  static constexpr KindOf<Set> kKind = Kind::kSet;
  explicit Set(Kind kind = kKind) : Object(kind) {}
  std::optional<int64_t> length(Interp&) override { return static_cast<int64_t>(table.size()); }
  Value iterate(Interp& in) override;
  std::string repr(Interp& in) override;
  bool truth(Interp&) override { return table.size() != 0; }
  std::optional<bool> contains(Interp& in, const Value& item) override;
  std::optional<Value> in_place(Interp& in, ast::BinaryOp op, const Value& other) override;
  Table table;
};

/// A set that nothing changes once it is made: it can be a key.
class FrozenSet : public Set {
 public:
  static inline const KindOf<FrozenSet> kKind{"frozenset"};
  FrozenSet() : Set(kKind) {}
  std::string repr(Interp& in) override;
  std::optional<uint64_t> hash(Interp& in) override;
  std::optional<Value> in_place(Interp&, ast::BinaryOp, const Value&) override { return std::nullopt; }
};
/// The elements of either kind of set; null for other values.
Set* any_set(const Value& v);

class SliceObject : public Object {
 public:
  static constexpr KindOf<SliceObject> kKind = Kind::kSlice;
  SliceObject(Value lo, Value hi, Value by)
      : Object(kKind), lower(std::move(lo)), upper(std::move(hi)), step(std::move(by)) {}
  std::optional<Value> attribute(Interp&, std::string_view name) override;
  std::string repr(Interp& in) override;
  const Value lower, upper, step;
};

class Range : public Object {
 public:
  static constexpr KindOf<Range> kKind = Kind::kRange;
  Range(int64_t from, int64_t to, int64_t by) : Object(kKind), start(from), stop(to), step(by) {}
  int64_t count() const;
  std::optional<Value> attribute(Interp&, std::string_view name) override;
  std::optional<int64_t> length(Interp&) override { return count(); }
  Value item(Interp& in, const Value& index) override;
  Value iterate(Interp& in) override;
  std::string repr(Interp&) override;
  bool truth(Interp&) override { return count() != 0; }
  std::optional<bool> contains(Interp& in, const Value& item) override;
  const int64_t start, stop, step;
};

class EllipsisObject : public Object {
 public:
  static constexpr KindOf<EllipsisObject> kKind = Kind::kEllipsis;
  EllipsisObject() : Object(kKind) {}
  std::string repr(Interp&) override { return "Ellipsis"; }
};

/// A variable that an inner function shares with the function around it.
class Cell : public Object {
 public:
  static constexpr KindOf<Cell> kKind = Kind::kCell;
  Cell() : Object(kKind) {}
  Value value;
};

class IteratorObject : public Object {
 public:
  static constexpr KindOf<IteratorObject> kKind = Kind::kIterator;
  IteratorObject() : Object(kKind) {}
  /// The next value, or false at the end.
  virtual bool next(Interp& in, Value& out) = 0;
  Value iterate(Interp&) override { return Value(this); }
  /// Generators have a type of their own, with send(), throw() and close().
  virtual bool is_generator() const { return false; }
};

/// A class: the language's own types, exceptions, and those that scripts define.
class TypeObject : public Object {
 public:
  static constexpr KindOf<TypeObject> kKind = Kind::kType;
  explicit TypeObject(std::string n) : Object(kKind), name(std::move(n)) {}
  ~TypeObject() override { *self = nullptr; }
  std::optional<Value> attribute(Interp& in, std::string_view name) override;
  void set_attribute(Interp& in, std::string_view name, Value value) override;
  void attribute_names(std::vector<std::string>& out) const override;
  Value call(Interp& in, CallArgs& args) override;
  std::string repr(Interp&) override;
  Value item(Interp& in, const Value& index) override;
  Value iterate(Interp& in) override;
  std::optional<int64_t> length(Interp& in) override;
  std::optional<bool> contains(Interp& in, const Value& item) override;
  std::optional<Value> binary(Interp& in, ast::BinaryOp op, const Value& other, bool reflected) override;
  /// An attribute of the class or of the nearest base that has it.
  Value* find(std::string_view attribute);
  bool derives_from(const TypeObject* base) const;
  /// Of the type as a module names it: "__main__.Config".
  std::string full_name();

  const std::string name;
  std::string qualified_name;  // with what is around the class: "Outer.Inner"; empty: the name
  std::vector<Ref<TypeObject>> bases;
  std::vector<TypeObject*> order;  // where an attribute is looked for after the class itself; `bases` keep them alive
  std::vector<std::weak_ptr<TypeObject*>> derived;  // classes that name it as a base, as far as they are still there
  Table members;
  std::optional<Kind> base_kind;                  // of a class that derives from dict, list, tuple, str, int or set
  std::vector<std::string> abstract;              // methods that a class must define before it has instances
  std::optional<std::vector<std::string>> slots;  // where every class of the order has __slots__: all their names
  Value constructor;                              // native types: what a call runs
  std::optional<Kind> of_kind;                    // native types: the kind of their instances
  std::optional<ErrorKind> error;                 // exceptions: the kind that an uncaught one is reported as
  const ast::ClassDef* def = nullptr;             // of a class statement
  std::shared_ptr<const Program> program;         // that holds it
  /// For those that must not keep the class: null once it is gone.
  const std::shared_ptr<TypeObject*> self = std::make_shared<TypeObject*>(this);
};

class Instance : public Object {
 public:
  static constexpr KindOf<Instance> kKind = Kind::kInstance;
  explicit Instance(Ref<TypeObject> t) : Object(kKind), type(std::move(t)) {}
  const Ref<TypeObject>* own_type() const override { return &type; }
  std::optional<Value> attribute(Interp& in, std::string_view name) override;
  void set_attribute(Interp& in, std::string_view name, Value value) override;
  void attribute_names(std::vector<std::string>& out) const override;
  Value call(Interp& in, CallArgs& args) override;
  Value item(Interp& in, const Value& index) override;
  void set_item(Interp& in, const Value& index, Value value) override;
  void delete_item(Interp& in, const Value& index) override;
  std::optional<int64_t> length(Interp& in) override;
  Value iterate(Interp& in) override;
  std::string repr(Interp& in) override;
  std::string str(Interp& in) override;
  bool truth(Interp& in) override;
  std::optional<std::string> format(Interp& in, std::string_view spec) override;
  std::optional<uint64_t> hash(Interp& in) override;
  std::optional<Value> binary(Interp& in, ast::BinaryOp op, const Value& other, bool reflected) override;
  std::optional<Value> in_place(Interp& in, ast::BinaryOp op, const Value& other) override;
  std::optional<Value> unary(Interp& in, ast::UnaryOp op) override;
  std::optional<Value> compare(Interp& in, ast::CompareOp op, const Value& other) override;
  std::optional<bool> contains(Interp& in, const Value& item) override;

  Ref<TypeObject> type;                 // another one where a script sets __class__
  const Ref<Dict> dict = make<Dict>();  // __dict__
  Table& fields = dict->table;
  /// Of an exception that was caught: as it would have been reported, and the arguments that its message is made of.
  struct Caught {
    Diagnostic report;
    Value args;
  };
  std::unique_ptr<const Caught> caught;
};

/// Asked before a function runs, with the receiver of a native method: what the call gives, or nullopt for the function
/// itself to run.
using Elsewhere = std::optional<Value> (*)(Interp&, std::string_view name, const Value* self, CallArgs&);

class BoundMethod : public Object {
 public:
  static constexpr KindOf<BoundMethod> kKind = Kind::kBoundMethod;
  BoundMethod(Value s, Value f) : Object(kKind), self(std::move(s)), function(std::move(f)) {}
  Value call(Interp& in, CallArgs& args) override;
  std::optional<Value> attribute(Interp& in, std::string_view name) override;
  std::string repr(Interp& in) override;
  const Value self, function;
};

class ModuleObject : public Object {
 public:
  static constexpr KindOf<ModuleObject> kKind = Kind::kModule;
  explicit ModuleObject(std::string p) : Object(kKind), path(std::move(p)) {}
  std::optional<Value> attribute(Interp& in, std::string_view name) override;
  void set_attribute(Interp& in, std::string_view name, Value value) override;
  void attribute_names(std::vector<std::string>& out) const override;
  std::string repr(Interp&) override;
  const std::string path;  // "triton.language"
  Table members;
  /// Modules that are texts, whose names it has too: imported when one of them is first asked for.
  struct Text {
    std::string path;
    std::vector<std::string> names;
    Value (*prepare)(Interp&, const Value&) = nullptr;  // what a name's value becomes, where it is set
  };
  std::vector<Text> texts;
};

}  // namespace kiln::script
