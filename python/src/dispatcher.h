// Arguments of a launch, as Python gives them: what each is, its slot, and its part of the specialisation's key.
#pragma once
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kiln/dtype.h"
#include "kiln/launch_options.h"
#include "python/src/inline_vector.h"
#include "python/src/object.h"

namespace kiln::python {

/// A parameter of a kernel that Python launches.
struct DispatchParam {
  Ref name;  // interned
  bool is_constexpr = false;
  bool specialize = true;
  bool is_annotated = false;  // `n: tl.int64` fixes the type
  DType annotation{};
  Ref default_value;  // empty: none
};

/// What stands in the key in front of a value.
enum class DispatchTag : uint8_t {
  kNone,
  kFalse,
  kTrue,
  kInt,
  kDouble,
  kText,
  kObject,
  kTuple,
  kItems,
  kScalar,
  kPointer
};

/// One launch's arguments, bound.
class DispatchArguments {
 public:
  DispatchArguments(std::string_view kernel, PyObject* objects) : kernel_(kernel), objects_(objects) {}

  void add(const DispatchParam& param, PyObject* object);
  /// The options, the device and what the kernel's names meant end the key.
  void finish(const CodeOptions& options, uint32_t generation);

  std::string_view key() const {
    const std::span<const char> bytes = key_;
    return {bytes.data(), bytes.size()};
  }
  std::span<const uint64_t> slots() const { return slots_; }
  /// -1: the CPU. Only with has_tensor().
  int device() const { return device_; }
  /// Arrays that may not be written to: the parameter and its slot.
  struct ReadOnly {
    const DispatchParam* param;
    size_t slot;
  };
  std::span<const ReadOnly> read_only() const { return read_only_; }
  bool has_tensor() const { return first_ != nullptr; }
  void set_device(int device) { device_ = device; }
  /// add()s an argument and gives what the compiler is told of it: ("type", text), ("constexpr", value), or ("tuple",
  /// these of its items, names or None).
  Ref described(const DispatchParam& param, PyObject* object);
  /// add()s an argument and gives what a checked launch is told of it: ("tensor", object, dtype, address), ("value",
  /// object), or ("tuple", these of its items, names or None).
  Ref told(const DispatchParam& param, PyObject* object);

 private:
  void constant(const DispatchParam& param, PyObject* object);
  /// What stands for an object in the key.
  void identity(const DispatchParam& param, PyObject* object);
  void named_fields(const DispatchParam& param, PyObject* tuple);
  /// A tuple of tensors, numbers and constants: each is as an argument of its own.
  void items(const DispatchParam& param, PyObject* tuple);
  /// ("tuple", what `each` says of its items, names of fields).
  template <class Each>
  Ref tuple_of(PyObject* object, const Each& each);
  void integer(const DispatchParam& param, PyObject* object);
  void annotated(const DispatchParam& param, PyObject* object);
  void scalar(DType dtype, uint64_t slot, bool divisible);
  void pointer(const DispatchParam& param, DType dtype, uint64_t address, int device, bool read_only = false);
  void foreign(const DispatchParam& param, PyObject* object);
  /// False: nothing was done.
  bool numpy_array(const DispatchParam& param, PyObject* object);
  void torch_tensor(const DispatchParam& param, PyObject* object);
  void array(const DispatchParam& param, PyObject* object, PyObject* interface_name, bool is_cuda);
  void dlpack(const DispatchParam& param, PyObject* object);
  [[noreturn]] void refuse(const DispatchParam& param, PyObject* type, const std::string& problem) const;
  /// Of a tensor that is not where the first one is. By itself, or each tensor would pay for its texts' frame.
  [[noreturn, gnu::noinline]] void refuse_device(const DispatchParam& param, int device) const;

  void tag(DispatchTag t) { key_.push_back(static_cast<char>(t)); }
  /// All that the code depends on of an argument at run time.
  void specialized(DispatchTag t, DType dtype, bool divisible) {
    const char part[] = {static_cast<char>(t), static_cast<char>(dtype), static_cast<char>(divisible)};
    raw(part, sizeof part);
  }
  void raw(const void* bytes, size_t n) { std::memcpy(key_.extend(n), bytes, n); }
  template <class T>
  void raw(const T& v) {
    raw(&v, sizeof v);
  }

  std::string_view kernel_;
  PyObject* objects_;  // dict: equal objects of constexprs to one of them, which stays alive
  // Of a kernel with fewer arguments than this, a launch allocates nothing.
  InlineVector<char, 512> key_;
  InlineVector<uint64_t, 64> slots_;
  std::vector<ReadOnly> read_only_;
  int device_ = -1;
  const DispatchParam* first_ = nullptr;  // of the arguments that are tensors
  PyObject* value_ = nullptr;             // of a constexpr
  DType dtype_{};
  bool is_pointer_ = false, divisible_ = false;
  bool in_tuple_ = false;
};

}  // namespace kiln::python
