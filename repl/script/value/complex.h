// Python's complex numbers.
#pragma once
#include <complex>

#include "repl/script/value/value.h"

namespace kiln::script {

class ComplexNumber : public Object {
 public:
  static inline const KindOf<ComplexNumber> kKind{"complex"};
  explicit ComplexNumber(std::complex<double> v) : Object(kKind), value(v) {}
  std::optional<Value> attribute(Interp& in, std::string_view name) override;
  void attribute_names(std::vector<std::string>& out) const override;
  std::string repr(Interp&) override;
  bool truth(Interp&) override { return value != 0.0; }
  std::optional<Value> binary(Interp& in, ast::BinaryOp op, const Value& other, bool reflected) override;
  std::optional<Value> unary(Interp& in, ast::UnaryOp op) override;
  std::optional<Value> compare(Interp& in, ast::CompareOp op, const Value& other) override;
  std::optional<std::string> format(Interp& in, std::string_view spec) override;
  std::optional<uint64_t> hash(Interp& in) override;
  const std::complex<double> value;
};

/// The number that a real or complex one is; nullopt for other values.
std::optional<std::complex<double>> complex_of(const Value& v);
/// "(1+2j)", as Python writes it.
std::string complex_repr(std::complex<double> z);

}  // namespace kiln::script
