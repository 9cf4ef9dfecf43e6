#include "repl/script/value/complex.h"

#include <fmt/format.h>

#include <cmath>

#include "repl/script/builtins/builtins.h"
#include "repl/script/interp/interp.h"
#include "repl/script/value/text.h"

namespace kiln::script {

namespace {

using Number = std::complex<double>;

/// Without C's repair of infinities, as Python.
Number product(Number a, Number b) {
  return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}

/// By the larger part of the divisor, which is not squared (Smith's method).
Number quotient(Number a, Number b) {
  if (std::fabs(b.real()) >= std::fabs(b.imag())) {
    const double r = b.imag() / b.real(), d = b.real() + b.imag() * r;
    return {(a.real() + a.imag() * r) / d, (a.imag() - a.real() * r) / d};
  }
  if (std::isnan(b.real()) || std::isnan(b.imag())) return {NAN, NAN};
  const double r = b.real() / b.imag(), d = b.real() * r + b.imag();
  return {(a.real() * r + a.imag()) / d, (a.imag() * r - a.real()) / d};
}

constexpr double kMostFactors = 100;  // a power of more is made by logarithms, as in Python

Number power(Interp& in, Number a, Number b) {
  if (b == 0.0) return 1;
  if (a == 0.0) {
    if (b.imag() != 0 || b.real() < 0)
      in.fail_as("ZeroDivisionError", "0.0 cannot be raised to a negative or complex power");
    return 0;
  }
  if (b.imag() == 0 && b.real() == std::floor(b.real()) && std::fabs(b.real()) <= kMostFactors) {
    Number out = 1, factor = a;
    for (auto n = static_cast<int>(std::fabs(b.real())); n > 0; n >>= 1, factor = product(factor, factor))
      if (n & 1) out = product(out, factor);
    return b.real() > 0 ? out : quotient(1, out);
  }
  const double length = std::hypot(a.real(), a.imag()), angle = std::atan2(a.imag(), a.real());
  double size = std::pow(length, b.real()), turn = angle * b.real();
  if (b.imag() != 0) {
    size *= std::exp(-angle * b.imag());
    turn += b.imag() * std::log(length);
  }
  return {size * std::cos(turn), size * std::sin(turn)};
}

/// A float as a part of a complex number: 1 and not 1.0.
std::string part(double v) {
  std::string text = ast::float_repr(v);
  if (text.ends_with(".0")) text.resize(text.size() - 2);
  return text;
}

Value conjugate(Interp&, NativeArgs& a) { return make<ComplexNumber>(std::conj(a.self->get<ComplexNumber>()->value)); }

constexpr NativeDef kMethods[] = {{"conjugate()", conjugate, "the number with the other sign of its imaginary part"}};

Number argument(Interp& in, const Value& v, std::string_view which) {
  if (auto z = complex_of(v)) return *z;
  if (v.get<Str>())
    in.fail(ErrorKind::kUnsupported, "complex() of a text is not supported: give it the two parts as floats");
  if (auto f = in.find_attribute(v, "__complex__")) {
    const Value made = in.call(*f, {});
    if (auto z = complex_of(made)) return *z;
  }
  return in.to_double(v, which);
}

Value make_complex(Interp& in, NativeArgs& a) {
  const Number x = a[0].missing() ? 0 : argument(in, a[0], "complex()'s real part");
  if (a[1].missing()) return make<ComplexNumber>(x);
  const Number y = argument(in, a[1], "complex()'s imaginary part");
  if (!a[0].get<ComplexNumber>() && !a[1].get<ComplexNumber>())  // the sign of a zero stays
    return make<ComplexNumber>(Number(x.real(), y.real()));
  return make<ComplexNumber>(Number(x.real() - y.imag(), x.imag() + y.real()));
}

Value imaginary(Interp& in, NativeArgs& a) { return make<ComplexNumber>(Number(0, in.to_double(a[0], "a number"))); }

}  // namespace

std::optional<Number> complex_of(const Value& v) {
  if (auto* z = v.get<ComplexNumber>()) return z->value;
  if (v.is_float()) return v.real();
  if (v.small_int_or_bool()) return static_cast<double>(v.integer());
  if (auto* w = v.get<WideInt>()) return static_cast<double>(w->value);
  return std::nullopt;
}

std::string complex_repr(Number z) {
  if (z.real() == 0 && !std::signbit(z.real())) return part(z.imag()) + "j";
  const std::string imag = part(z.imag());
  return "(" + part(z.real()) + (imag.starts_with('-') ? "" : "+") + imag + "j)";
}

std::string ComplexNumber::repr(Interp&) { return complex_repr(value); }

std::optional<Value> ComplexNumber::attribute(Interp&, std::string_view name) {
  if (name == "real") return Value::real(value.real());
  if (name == "imag") return Value::real(value.imag());
  return std::nullopt;
}

void ComplexNumber::attribute_names(std::vector<std::string>& out) const { out.insert(out.end(), {"real", "imag"}); }

std::optional<Value> ComplexNumber::binary(Interp& in, ast::BinaryOp op, const Value& other, bool reflected) {
  const auto given_number = complex_of(other);
  if (!given_number) return std::nullopt;
  const Number a = reflected ? *given_number : value, b = reflected ? value : *given_number;
  using enum ast::BinaryOp;
  if (op == kDiv && b == 0.0) in.fail_as("ZeroDivisionError", "complex division by zero");
  std::optional<Number> out;
  if (op == kAdd) out = a + b;
  if (op == kSub) out = a - b;
  if (op == kMul) out = product(a, b);
  if (op == kDiv) out = quotient(a, b);
  if (op == kPow) out = power(in, a, b);
  if (!out) return std::nullopt;
  return Value(make<ComplexNumber>(*out));
}

std::optional<Value> ComplexNumber::unary(Interp&, ast::UnaryOp op) {
  if (op == ast::UnaryOp::kNegate) return Value(make<ComplexNumber>(-value));
  if (op == ast::UnaryOp::kPlus) return Value(this);
  return std::nullopt;
}

std::optional<Value> ComplexNumber::compare(Interp&, ast::CompareOp op, const Value& other) {
  if (op != ast::CompareOp::kEq && op != ast::CompareOp::kNe) return std::nullopt;
  const auto b = complex_of(other);
  return Value::boolean((b && value == *b) == (op == ast::CompareOp::kEq));
}

std::optional<std::string> ComplexNumber::format(Interp& in, std::string_view spec) {
  if (spec.empty()) return complex_repr(value);
  if (spec.find_first_of("<>=^%0") == 0 || spec.ends_with('%'))
    in.fail(ErrorKind::kUnsupported, "the format '{}' of a complex number is not supported", spec);
  const std::string imag = in.take(format_constant(value.imag(), spec));
  return in.take(format_constant(value.real(), spec)) + (imag.starts_with('-') || imag.starts_with('+') ? "" : "+") +
         imag + "j";
}

std::optional<uint64_t> ComplexNumber::hash(Interp& in) {
  // Equal numbers have one hash in a table, whatever their types.
  const uint64_t real = in.hash(Value::real(value.real()));
  return value.imag() == 0 ? real : real + 1000003 * in.hash(Value::real(value.imag()));
}

void install_complex(Interp& in) {
  in.add_methods({ComplexNumber::kKind, kMethods});
  static constexpr NativeDef kComplex = {"complex(real=, imag=)", make_complex, "a complex number from its parts"};
  static constexpr NativeDef kImaginary = {"__imaginary__(x)", imaginary, "the literal `2j`"};
  const Ref<TypeObject>& type = in.type_of(ComplexNumber::kKind);
  type->constructor = make<Native>(kComplex);
  in.add_builtin("complex", type);
  in.add_builtin("__imaginary__", make<Native>(kImaginary));
}

}  // namespace kiln::script
