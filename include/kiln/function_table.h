// Kernels from functions that the caller has taken apart already: the text of each function by itself, and what its
// names mean. For hosts that know more of a function than its file says, as Python does, where a name may be an import,
// an alias, a variable of an enclosing function, or computed.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "kiln/dtype.h"
#include "kiln/image.h"
#include "kiln/kernel.h"
#include "kiln/result.h"

namespace kiln {

namespace runtime {
struct FunctionTableImpl;
}

/// One function of a FunctionTable.
enum class FunctionId : int {};
/// A module: of triton by its path ("triton.language.math"), or one of the caller's, whose members are bound by
/// bind_member() under the same path.
struct ModuleName {
  std::string path;
};
/// The type of pointers to `element`.
struct PointerType {
  DType element{};
};
struct TupleValue;

/// What a name means to a kernel, and the value of a constexpr: None, a number, a string, a type, a module, a function,
/// or a tuple of these.
using NameValue = std::variant<std::monostate, bool, int64_t, uint64_t, double, std::string, DType, PointerType,
                               ModuleName, FunctionId, std::shared_ptr<const TupleValue>>;
struct TupleValue {
  std::vector<NameValue> items;
  std::vector<std::string> fields = {};  // of a NamedTuple, a name for each item
};

/// One argument of a compilation: a type, a constexpr, or a tuple of such.
struct ImageArgument {
  std::string type = {};  // "*fp16:16", "i32", "tensordesc<fp16[128, 64]>"; empty: `value` or `items`
  NameValue value = {};
  bool is_tuple = false;
  std::vector<ImageArgument> items = {};
  std::vector<std::string> fields = {};
};

class FunctionTable {
 public:
  FunctionTable();

  /// A function under @triton.jit. `text` begins with its `def` (decorators may stand before it), which is in `line` of
  /// `file`: errors, line tables and profilers name that place. The text of a class of `NamedTuple` gives the function
  /// that makes one: its parameters are the fields; that of a class under `_aggregate` gives its constructor.
  Result<FunctionId> add(std::string_view text, std::string file, int line = 1);

  /// Computes a constexpr function. It is called from the thread that compiles.
  using Evaluate = std::function<Result<NameValue>(std::span<const NameValue> positional,
                                                   std::span<const std::pair<std::string, NameValue>> keywords)>;
  /// A constexpr function that the caller computes. Equal texts of `identity` promise equal results for equal
  /// arguments: they are part of the keys of caches.
  FunctionId add_evaluated(std::string name, std::string_view identity, Evaluate evaluate);

  /// The names that a function takes from outside, and the chains of attributes that begin with one: "BLOCK", "tl",
  /// "tl.load", "helpers", "helpers.norm". Names that are bound to nothing are an error where the kernel needs them.
  std::vector<std::string> names(FunctionId function) const;
  void bind(FunctionId function, std::string_view name, const NameValue& value);
  /// A name that the host has and kernels do not see, for errors: its type as Python names it, and whether the function
  /// captured it.
  void hide(FunctionId function, std::string_view name, std::string type, bool captured);
  /// The value of a parameter's default; without it, the text of the default is evaluated.
  void bind_default(FunctionId function, std::string_view parameter, const NameValue& value);
  /// What a module of the caller's has under a name.
  void bind_member(std::string_view module, std::string_view name, const NameValue& value);

  /// A type, constexpr or tuple for each parameter, in order; the parameters of the code follow from them in the same
  /// order. The signature and the constexprs of `request` are not looked at.
  Result<Image> compile(const Runtime& runtime, FunctionId kernel, std::span<const ImageArgument> arguments,
                        const ImageRequest& request) const;
  /// The function as a kernel that is launched with arguments. It shares the table, which must not change any more.
  Kernel kernel(FunctionId function) const;

  /// Whether a path of triton means something to Kiln: "triton.language.load". Others must be added as functions.
  static bool knows(std::string_view path);

 private:
  std::shared_ptr<runtime::FunctionTableImpl> impl_;
};

}  // namespace kiln
