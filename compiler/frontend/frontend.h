// AST + signature → typed tile IR. One kernel function per call; device functions are inlined, constexprs resolved.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "compiler/ast/ast.h"
#include "compiler/ir/ir.h"
#include "kiln/code_warning.h"
#include "kiln/launch_options.h"

namespace kiln::frontend {

struct JitFunction;
struct GlobalTuple;
struct AggregateClass;

/// A path of a known module, as an import binds it: "triton", "triton.language", "triton.language.math", "torch"…
struct ModulePath {
  std::string path;
  bool operator==(const ModulePath&) const = default;
};

/// A type of pointers as a value: tl.pointer_type(tl.float32).
struct PointerTo {
  DType element{};
  bool operator==(const PointerTo&) const = default;
};

/// What a kernel may see from outside: constexpr values, types, other jit functions, modules and tuples of these.
/// A member of a known module is looked up by the frontend itself (its builtins table).
using Global = std::variant<ast::Constant, DType, std::shared_ptr<const JitFunction>, ModulePath,
                            std::shared_ptr<const GlobalTuple>, PointerTo>;
struct GlobalTuple {
  std::vector<Global> items;
  std::vector<std::string> fields = {};  // of a NamedTuple, a name for each item
  bool is_dict = false;
  std::vector<Global> keys = {};  // of a dict, whose values the items are
};

/// A variable of the host that kernels do not see, for errors that name it.
struct HiddenName {
  std::string type;       // as Python names it: "int", "torch.Tensor"
  bool captured = false;  // of the function around the kernel, not of the module
  bool builtin = false;   // Python's own
  bool unknown = false;   // captured, of a function that has not run
};

/// Computes a constexpr function as Python does, beyond what the frontend itself computes. An error of kind
/// kUnsupported says nothing that the frontend's own does not say better.
using Interpret =
    std::function<Result<Global>(const std::shared_ptr<const JitFunction>& function, std::span<const Global> positional,
                                 std::span<const std::pair<std::string, Global>> keywords)>;

/// A function under @triton.jit (or @triton.constexpr_function, or that such a one may call), with the names that its
/// module gives it.
struct JitFunction {
  std::shared_ptr<const ast::Module> module;  // keeps def and the source alive
  const ast::FunctionDef* def = nullptr;
  bool constexpr_function = false;
  bool plain = false;         // no decorator: constexpr functions call it, kernels do not see it
  bool gluon = false;         // under @gluon.jit: known by name, and refused (check_language)
  bool named_tuple = false;   // of a NamedTuple class: the names of its result are the parameters'
  bool in_aggregate = false;  // a method of a class under @_aggregate, or its constructor
  std::shared_ptr<const AggregateClass> aggregate = {};  // of the constructor: what it makes
  std::string class_name = {};                           // of the class that holds it, as ReLU of ReLU.forward
  std::string bound_name = {};                           // as f of f = triton.jit(g)
  const ast::FunctionDef* around = nullptr;              // the function that makes it, as make of make.kernel
  std::vector<std::string> do_not_specialize;            // parameter names
  /// Module-level names, asked for when the kernel is compiled (so functions may be defined in any order).
  std::function<std::optional<Global>(std::string_view)> lookup;
  /// Makes a quick look whether a name still has the value that it has now: true only if so. Empty: there is none.
  std::function<std::function<bool()>(std::string_view)> watch = {};
  /// What else the host has of that name.
  std::function<std::optional<HiddenName>(std::string_view)> hidden = {};
  /// The same for the names of a file that was imported as a module (`from . import helpers`), by its path.
  std::function<std::optional<Global>(std::string_view path, std::string_view name)> member = {};
  /// The values of parameters' defaults, where the host has evaluated them; else their texts are.
  std::function<std::optional<Global>(std::string_view parameter)> default_of = {};
  /// A constexpr function that the host computes, in any language: `def` is then its name alone, and its text says what
  /// the result follows from beside the arguments (it is part of the keys of caches).
  std::function<Result<Global>(std::span<const Global> positional,
                               std::span<const std::pair<std::string, Global>> keywords)>
      evaluate = {};
  /// Of a constexpr function: asked where the frontend cannot compute it. Empty: nobody is.
  Interpret interpret = {};

  /// As its class, function or file names it.
  const std::string& own_name() const { return bound_name.empty() ? def->name : bound_name; }
  /// As it is named from outside of a class or a function.
  std::string name() const {
    return (around ? around->name + "." : "") + (class_name.empty() ? "" : class_name + ".") + own_name();
  }
};

/// The file that an import names (`pkg.utils`, `.utils`), seen from the file that imports it; null: not followed.
using LoadModule =
    std::function<std::shared_ptr<const ast::Module>(const std::string& name, const std::string& importing_file)>;

/// The jit functions of a file, with imports, other jit functions and simple module-level constants
/// (`N = 3`, `N: tl.constexpr = 3`, `N = tl.constexpr(3)`) as their globals, and what it imports from files that `load`
/// finds. Runs nothing but the constexpr functions that a value is made by, those that `interpret` is for with it.
Result<std::vector<std::shared_ptr<const JitFunction>>> jit_functions(const std::shared_ptr<const ast::Module>& module,
                                                                      LoadModule load = {}, Interpret interpret = {});

/// For who interprets constexpr functions: what a builtin of the language gives for constants, what an attribute of
/// such a value is (of a type, a module, a tuple), and the answer of a type's predicate (`is_fp16`).
Result<Global> compute_call(const Global& callee, std::span<const Global> positional,
                            std::span<const std::pair<std::string, Global>> keywords);
std::optional<Global> attribute_of(const Global& base, std::string_view name);
std::optional<Global> predicate_of(const Global& base, std::string_view name);

/// An error for a function under @gluon.jit. Gluon is another language: layouts, shared memory, barriers and
/// instructions of one GPU, all of which Kiln chooses itself.
Status check_language(const JitFunction& function);

/// How one parameter is bound: a runtime value of a type, or a constexpr.
struct ArgSpec {
  bool is_constexpr = false;
  Global value;           // constexpr: its value
  ir::Type type;          // runtime: a scalar or a pointer
  int divisibility = 1;   // runtime: 16 when the launcher checked it, of an integer also 8 or 4
  bool is_const = false;  // a pointer that the kernel does not write through: "*kfp32", or annotated as tl.const
  /// A tensor descriptor made by the host, when not empty: its block. `type` is then a pointer to the elements, and the
  /// kernel gets descriptor_params(rank) runtime parameters for it: the base, the sizes (i32), and the strides but the
  /// last (i64, in elements). The launcher has checked that base and strides are multiples of 16 bytes; a divisibility
  /// of 16 says the same of a row's size, which TMA stores need.
  std::vector<int32_t> block = {};
  bool nan_outside = false;  // of such a descriptor: loads find NaN outside of the tensor
  /// A tuple, when set: of runtime values and constexprs, each as above, with the names of a NamedTuple or none.
  bool is_tuple = false;
  std::vector<ArgSpec> items = {};
  std::vector<std::string> fields = {};
};
inline int descriptor_params(int rank) { return 2 * rank; }

struct Options : CodeOptions {
  /// The compute capability × 10 of the GPU that is compiled for; 0 where that is no GPU. What tl.target_info tells.
  int capability = 0;
  bool drops_fp8e4b15 = false;  // of what Triton calls a GPU where products of fp8e4b15 are deprecated
  /// Refuses what Triton refuses though Kiln has a meaning for it, for callers whose users then hear Triton's error:
  /// tiles as arguments of functions under jit(noinline=True), atomics on blocks of types that TMA does not reduce.
  bool as_triton = false;
  /// What tl.dot takes for an input_precision that a call does not give, before its allow_tf32; empty: tf32.
  std::string dot_precision = {};
  /// Gets each line of tl.static_print; null: standard error.
  std::function<void(const std::string&)> on_static_print = {};
  /// Gets what Triton warns of, possibly several times for one place; null: it is not told.
  std::function<void(const CodeWarning&)> on_warning = {};
};

/// With what the environment says beside: TRITON_F32_DEFAULT is the dot_precision.
Options options_of(const CodeOptions& code);

/// Whether a parameter is annotated as tl.constexpr.
bool is_constexpr(const ast::Param& param);

/// `args` has one entry per parameter of the function. The module is in the tile stage, verified.
Result<std::unique_ptr<ir::Module>> lower_kernel(const JitFunction& function, std::span<const ArgSpec> args,
                                                 const Options& options);

/// "*fp32:16, i32, (i32, i32), tensordesc<fp16[128, 64]>" → specs (a `:16` sets divisibility); "constexpr" entries are
/// taken from `constexprs` by name.
Result<std::vector<ArgSpec>> parse_signature(const JitFunction& function, std::string_view signature,
                                             std::span<const std::pair<std::string, Global>> constexprs);
/// One entry of it: "*fp32:16". Errors name the parameter.
Result<ArgSpec> parse_argument_type(const ast::Param& param, std::string_view entry);

}  // namespace kiln::frontend
