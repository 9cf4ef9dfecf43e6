// Arguments of calls, and native functions: rows of a table whose signature text binds, checks and documents them.
#pragma once
#include <cstddef>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/ast/ast.h"
#include "repl/script/value/value.h"

namespace kiln::script {

/// A few values without an allocation. Only those that are there are made: calls have fewer than there is room for.
template <class T, size_t N>
class SmallVector {
 public:
  SmallVector() = default;
  ~SmallVector() {
    if (size_ <= N) std::destroy_n(room(), size_);
  }
  SmallVector(const SmallVector&) = delete;
  SmallVector& operator=(const SmallVector&) = delete;
  void push_back(T v) {
    if (size_ < N) {
      new (room() + size_++) T(std::move(v));
      return;
    }
    if (size_ == N) {
      rest_.reserve(2 * N);
      for (size_t i = 0; i < N; ++i) rest_.push_back(std::move(room()[i]));
      std::destroy_n(room(), N);
    }
    rest_.push_back(std::move(v));
    ++size_;
  }
  /// Of a vector that is empty: so many values as T() makes them.
  void fill(size_t count) {
    if (count > N) {
      rest_.resize(count);
    } else {
      std::uninitialized_value_construct_n(room(), count);
    }
    size_ = count;
  }
  void insert_front(T v) {
    push_back(T());
    for (size_t i = size_ - 1; i > 0; --i) (*this)[i] = std::move((*this)[i - 1]);
    (*this)[0] = std::move(v);
  }
  T take_front() {
    T first = std::move((*this)[0]);
    for (size_t i = 1; i < size_; ++i) (*this)[i - 1] = std::move((*this)[i]);
    if (size_ > N)
      rest_.pop_back();
    else
      std::destroy_at(room() + size_ - 1);
    if (--size_ == N && !rest_.empty()) {
      for (size_t i = 0; i < N; ++i) new (room() + i) T(std::move(rest_[i]));
      rest_.clear();
    }
    return first;
  }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T* begin() { return size_ > N ? rest_.data() : room(); }
  T* end() { return begin() + size_; }
  const T* begin() const { return const_cast<SmallVector*>(this)->begin(); }
  const T* end() const { return begin() + size_; }
  T& operator[](size_t i) { return begin()[i]; }
  const T& operator[](size_t i) const { return begin()[i]; }

 private:
  T* room() { return reinterpret_cast<T*>(inline_); }

  alignas(T) std::byte inline_[N * sizeof(T)];
  std::vector<T> rest_;  // all of them once there are more than N
  size_t size_ = 0;
};

struct KeywordArg {
  std::string_view name;  // in the source text, or in `key`
  Value value;
  Value key;  // keeps the name of a ** argument alive
};

struct CallArgs {
  SmallVector<Value, 8> args;
  SmallVector<KeywordArg, 6> keywords;
  const ast::Call* site = nullptr;  // the expression that calls; null for calls that the interpreter makes itself
};

/// What a native function sees: one value per parameter of its signature, missing where none was given.
/// `*rest` parameters hold a Tuple, `**rest` ones a Dict. Methods have their object in `self`.
struct NativeArgs {
  std::span<Value> slots;
  const Value* self = nullptr;
  Value& operator[](size_t i) const { return slots[i]; }
};

using NativeFunction = Value (*)(Interp&, NativeArgs&);

/// "sorted(iterable, key=None, reverse=False)": a parameter with '=' may be left out; after '*' or '*name' they are
/// given by name only.
struct NativeDef {
  std::string_view signature;
  NativeFunction function;
  std::string_view help;
  /// Makes what lives while the arguments of a call by name are evaluated; null for most.
  std::shared_ptr<void> (*around_arguments)(Interp&) = nullptr;
};

class Native : public Object {
 public:
  static constexpr KindOf<Native> kKind = Kind::kNative;
  /// With a receiver: a method of such values, which a call of its own takes as the first argument.
  explicit Native(const NativeDef& def, std::optional<Kind> receiver = std::nullopt);
  struct Parameter {
    std::string_view name;
    std::string_view initial;  // as the signature writes it
    bool optional = false;
    bool keyword_only = false;
    enum class Rest : uint8_t { kNo, kArgs, kKeywords } rest = Rest::kNo;
  };
  std::span<const Parameter> parameters() const { return params_; }
  Value call(Interp& in, CallArgs& args) override;
  /// As a method of `self`, which is of the receiver's kind.
  Value call_on(Interp& in, const Value* self, CallArgs& args);
  /// Calls the function with bound arguments; running out of memory is an error like others.
  Value run(Interp& in, NativeArgs& args) const;
  std::optional<Value> attribute(Interp& in, std::string_view name) override;
  std::string repr(Interp&) override;

  const NativeDef& def;
  const std::optional<Kind> receiver;
  std::string name;
  Elsewhere elsewhere = nullptr;

 private:
  std::vector<Parameter> params_;
  size_t positional_ = 0;
  int rest_args_ = -1, rest_keywords_ = -1;
};

/// The methods of one kind of value.
struct MethodTable {
  Kind kind;
  std::span<const NativeDef> methods;
};

}  // namespace kiln::script
