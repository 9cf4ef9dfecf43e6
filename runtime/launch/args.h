// Triton's specialisation at launch: each argument becomes a tag (its type, and what the code may assume of it), the
// value of a constexpr, or a slot of 8 bytes for a runtime value. Tags and constexpr values together are the key of the
// specialisation.
#pragma once
#include <array>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/frontend/frontend.h"
#include "kiln/kernel.h"
#include "support/hash.h"

namespace kiln::runtime {

class Backend;

/// Makes the handle of a jit function among the defaults.
using MakeKernel = std::function<Kernel(std::shared_ptr<const frontend::JitFunction>)>;

/// A parameter of a jit function, as a launch needs it.
struct ParamInfo {
  std::string name;
  bool is_constexpr = false;
  bool specialize = true;           // false under do_not_specialize
  std::optional<DType> annotation;  // `n: tl.int64`
  std::optional<Arg> default_value;
  Diagnostic default_error;  // why there is no default_value, when the default is more than a constant
  bool has_default = false;
};

/// How a parameter takes its argument. A byte, so that a launch finds those of all parameters side by side.
enum class ParamRule : uint8_t {
  kPlain,          // Triton's specialisation
  kUnspecialized,  // under do_not_specialize: by type alone
  kAnnotated,      // the annotation fixes the type
  kConstexpr,
};
std::vector<ParamRule> rules_of(std::span<const ParamInfo> params);

/// Reads the parameters of a function; defaults that are constants, dtypes or jit functions are evaluated.
std::vector<ParamInfo> read_params(const frontend::JitFunction& function, const MakeKernel& make_kernel);

/// The bytes of a specialisation key; grown on the heap only past the inline size.
class SpecKey {
 public:
  void byte(uint8_t v) { bytes(&v, 1); }
  void word(uint64_t v) { bytes(&v, 8); }
  void bytes(const void* data, size_t n) {
    if (size_ + n <= kInline && large_.empty()) {
      std::memcpy(inline_ + size_, data, n);
      size_ += n;
    } else {
      spill(data, n);
    }
  }
  std::string_view view() const { return large_.empty() ? std::string_view(inline_, size_) : std::string_view(large_); }

 private:
  static constexpr size_t kInline = 512;
  void spill(const void* data, size_t n);
  char inline_[kInline];
  size_t size_ = 0;
  std::string large_;
};

/// The tensor that an argument holds or points to (an empty handle when it points to none); nullptr for other kinds.
const Tensor* tensor_in(const Arg& arg);

/// fn(tensor) for the tensors of an argument, which are several in a tuple; their handles may be empty.
template <class Fn>
void each_tensor(const Arg& arg, const Fn& fn) {
  if (const auto* tuple = std::get_if<std::shared_ptr<const ArgTuple>>(&arg)) {
    if (*tuple)
      for (const Arg& item : (*tuple)->items) each_tensor(item, fn);
  } else if (const Tensor* tensor = tensor_in(arg)) {
    fn(*tensor);
  }
}
template <class Fn>
void each_tensor(const std::optional<Arg>& arg, const Fn& fn) {
  if (arg) each_tensor(*arg, fn);
}

/// Launches with more slots than this take the general path.
inline constexpr int kMostFastSlots = 96;

/// What one launch's arguments come to.
struct BoundArgs {
  SpecKey key;
  int num_slots = 0;
  const uint64_t* slots() const { return many_slots.empty() ? inline_slots : many_slots.data(); }
  void slot(uint64_t v) {
    if (num_slots < kInline)
      inline_slots[num_slots++] = v;
    else
      slot_on_heap(v);
  }
  const Tensor* first_tensor = nullptr;       // gives the device
  std::vector<int>* slot_of_param = nullptr;  // where to note the next slot in front of each parameter; null: nowhere

  static constexpr int kInline = kMostFastSlots;
  uint64_t inline_slots[kInline];
  std::vector<uint64_t> many_slots;

 private:
  void slot_on_heap(uint64_t v);
};

/// Binds `args` (one entry per parameter; nullopt takes the default). Errors name the kernel and the parameter.
Status bind_args(std::string_view kernel, std::span<const ParamInfo> params, std::span<const std::optional<Arg>> args,
                 BoundArgs& out);

/// What besides the arguments selects the code: they end every key.
struct KeyEnd {
  const Backend* backend = nullptr;  // of the device
  const CodeOptions* options = nullptr;
};
void append(const KeyEnd& end, SpecKey& key);

/// One key of a kernel, taken apart so that a launch can compare its arguments with it quickly. A step per parameter.
class KeySteps {
 public:
  KeySteps() = default;
  KeySteps(std::span<const ParamRule> rules, const KeyEnd& end, std::string_view key);

  /// The guess of a launch: true when the arguments and `end` give exactly the key; `slots` are filled then. False says
  /// nothing about the arguments: bind_args finds out. Only for a key with a tensor (else what the device is must be
  /// looked up) and with at most kMostFastSlots slots.
  bool match(std::span<const ParamInfo> params, std::span<const ParamRule> rules,
             std::span<const std::optional<Arg>> args, const KeyEnd& end, uint64_t* slots) const;

 private:
  enum class Kind : uint8_t { kTensor, kInt, kFloat, kFixedInt, kOther };
  struct Step {
    Kind kind = Kind::kOther;
    DType dtype = DType::kI32;
    uint8_t mask = 0;        // the bits of an address or integer that tell its divisibility
    uint8_t low_bits = 0;    // what they are compared with
    bool divisible = false;  // whether they are that, as the key says
    uint32_t at = 0;         // in the key
    int64_t value = 0;       // of kFixedInt
  };
  /// Any kind; the next slot, or null when it does not match.
  uint64_t* match_other(const ParamInfo& param, ParamRule rule, const std::optional<Arg>& given, const Step& step,
                        uint64_t* slots) const;

  const Backend* backend_ = nullptr;
  CodeOptions options_;
  std::vector<Step> steps_;
  std::string key_;
};

/// The frontend's description of the same arguments; `bind_args` has accepted them.
std::vector<frontend::ArgSpec> arg_specs(std::span<const ParamInfo> params, std::span<const std::optional<Arg>> args);

}  // namespace kiln::runtime
