// The table of every function that a kernel may call by a name of triton, triton.language or one of its submodules.
// builtins.def has the rows; the standard library (stdlib/*.py) has those written in the language itself.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "compiler/frontend/value.h"

namespace kiln::frontend {

class Codegen;

/// The arguments of one call, in the order of the builtin's parameters; missing ones hold their defaults.
struct BoundArgs {
  const Builtin* builtin = nullptr;
  SourceRange range;  // of the whole call
  std::vector<Arg> args;
  std::vector<bool> given;

  const Value& operator[](int i) const { return args[i].value; }
  SourceRange at(int i) const { return args[i].range.text ? args[i].range : range; }
  bool has(int i) const { return given[i] && !args[i].value.is_none(); }
  /// The parameter's name, for messages.
  std::string_view name(int i) const;
};

using BuiltinFn = Result<Value> (*)(Codegen&, const BoundArgs&);

/// Which names reach a builtin.
enum Exposure : unsigned {
  kInLanguage = 1,        // L: triton.language (also .core and .standard)
  kInMath = 2,            // M: triton.language.math
  kInLibdevice = 4,       // D: triton.language.extra.libdevice and .extra.cuda.libdevice
  kIsMethod = 8,          // S: x.name(…) on a tensor
  kInTriton = 16,         // T: triton itself
  kIsPython = 32,         // P: a Python builtin, visible with no import
  kInRandom = 64,         // R: triton.language.random
  kInCuda = 128,          // C: triton.language.extra.cuda
  kOfDescriptor = 256,    // B: d.name(…) on a tensor descriptor
  kOfBlockPointer = 512,  // K: p.name(…) on a block pointer
  kInStandard = 1024,     // N: triton.language.standard alone
  kInInductor = 2048,     // I: torch._inductor.runtime.triton_helpers
  kInKiln = 4096,         // X: triton.language.extra.kiln
  kInTargetInfo = 8192,   // A: triton.language.target_info
  kInProfiler = 16384,    // O: triton.profiler.language
};

struct Builtin {
  std::string_view name;
  std::string_view where;   // letters of Exposure
  std::string_view params;  // "x, axis=None, *shape"
  BuiltinFn fn;             // nullptr: in the standard library (params is then its file)

  unsigned exposure() const;
  bool in_library() const { return fn == nullptr; }
  /// "tl.load", "libdevice.tanh", "range".
  std::string display_name() const;
};

std::span<const Builtin> builtins();
/// The row of that name that has one of the exposures.
const Builtin* find_builtin(std::string_view name, unsigned exposure);
/// Names with one of the exposures, for "did you mean".
std::vector<std::string> builtin_names(unsigned exposure);

/// One parameter of a builtin, taken from the text of its row.
struct BuiltinParam {
  std::string_view name;
  bool variadic = false;
  bool required = true;
  ast::Constant default_value;
};
std::vector<BuiltinParam> parse_params(std::string_view params);

/// Binds positional and keyword arguments; the error names the one that is unknown, missing, repeated or too many.
Result<BoundArgs> bind_builtin(Codegen& g, const Builtin& builtin, std::vector<Arg> positional,
                               std::vector<std::pair<std::string, Arg>> keywords, SourceRange range);

/// What a known module has under `name`: a builtin, a dtype, a submodule or a standard-library function.
/// nullopt: no such member. `path` is canonical ("triton.language").
std::optional<Value> module_member(std::string_view path, std::string_view name);
/// A path as an import binds it, resolved as far as it is known: a module, or a module's member.
std::optional<Value> resolve_path(std::string_view path);
bool is_known_module(std::string_view path);

/// The Triton whose language this is: `triton.__version__`.
inline constexpr std::string_view kTritonVersion = "3.6.0";
/// Where Triton has it ("triton.language.exp"); empty for what is no member of a module.
std::string path_of(const Builtin& builtin);
std::vector<std::string> member_names(std::string_view path);

/// The standard library's function, parsed once per process.
FunctionPtr library_function(const Builtin& builtin);
/// True when the function comes from the standard library: errors in it are shown at the user's call.
bool is_library(const JitFunction& function);

}  // namespace kiln::frontend
