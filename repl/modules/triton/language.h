// What the host sees of triton.language: dtypes, constexpr, and names that only mean something inside kernels.
#pragma once
#include "repl/script/builtins/builtins.h"

namespace kiln::script {

/// A member of triton.language as a value: `exp = tl.exp` for a kernel to use.
class KernelMember : public Object {
 public:
  static inline const KindOf<KernelMember> kKind{"builtin"};
  explicit KernelMember(std::string p) : Object(kKind), path(std::move(p)) {}
  Value call(Interp& in, CallArgs&) override;
  std::string repr(Interp&) override { return "<" + path + ">"; }
  /// "tl.load(pointer, mask=None, …)"; the path alone where the compiler knows no more.
  std::string signature() const;
  struct Parameter {
    std::string name, initial;  // its default as code; empty: none
    bool takes_rest = false;    // *name
  };
  /// Of a call in a kernel.
  std::vector<Parameter> parameters() const;
  /// What the argument of that name may be, as code, where that is a closed set: 'acquire', 'release'…
  std::vector<std::string> words_of(std::string_view parameter) const;
  /// What it does, in a sentence; empty: nobody wrote one.
  std::string_view help() const;
  const std::string path;
};

/// tl.constexpr(value): a global constant that kernels may see. On the host it counts as the value itself.
class ConstexprObject : public Object {
 public:
  static inline const KindOf<ConstexprObject> kKind{"constexpr"};
  explicit ConstexprObject(Value v) : Object(kKind), value(std::move(v)) {}
  std::optional<Value> attribute(Interp& in, std::string_view name) override;
  std::string repr(Interp& in) override { return "constexpr[" + in.repr(value) + "]"; }
  std::string str(Interp& in) override { return in.str(value); }
  bool truth(Interp& in) override { return in.truth(value); }
  std::optional<Value> binary(Interp& in, ast::BinaryOp op, const Value& other, bool reflected) override;
  std::optional<Value> unary(Interp& in, ast::UnaryOp op) override { return in.unary(op, value); }
  std::optional<Value> compare(Interp& in, ast::CompareOp op, const Value& other) override;
  std::optional<std::string> format(Interp& in, std::string_view spec) override { return in.format(value, spec); }
  const Value value;
};

}  // namespace kiln::script
