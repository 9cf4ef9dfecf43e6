// math, os, sys and random; and the tables of all modules put together.
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <utility>

#include "repl/modules/modules.h"
#include "repl/modules/std/std.h"
#include "repl/script/builtins/builtins.h"
#include "repl/script/interp/loaded_modules.h"
#include "repl/script/value/classes.h"
#include "support/environment.h"

namespace kiln::script {

namespace {

// --- math
// ---------------------------------------------------------------------------------------------------------------

template <double (*F)(double)>
Value real_function(Interp& in, NativeArgs& a) {
  double x = in.to_double(a[0], "the argument"), y = F(x);
  // NaN of a number that is none: the C library sets no exception that could be caught.
  if (std::isnan(y) && !std::isnan(x))
    in.fail(ErrorKind::kValue, "{} is outside of the function's domain", ast::float_repr(x));
  if (std::isinf(y) && std::isfinite(x))
    in.fail_as("OverflowError", "the result for {} is infinite or too large for a float", ast::float_repr(x));
  return Value::real(y);
}
double floor_of(double x) { return std::floor(x); }
double ceil_of(double x) { return std::ceil(x); }
double trunc_of(double x) { return std::trunc(x); }
template <double (*F)(double)>
Value whole_function(Interp& in, NativeArgs& a) {
  const char* special_name = F == ceil_of ? "__ceil__" : F == floor_of ? "__floor__" : "__trunc__";
  // A class may round itself.
  if (auto* o = a[0].object(); o && o->own_type())
    if (auto v = special(in, o, special_name, {})) return *v;
  if (a[0].kind() == Kind::kInt || a[0].kind() == Kind::kBool) return in.unary(ast::UnaryOp::kPlus, a[0]);
  double x = F(in.to_double(a[0], "the argument"));
  if (std::isnan(x)) in.fail(ErrorKind::kValue, "nan cannot be an int");
  if (std::isinf(x)) in.fail_as("OverflowError", "{} cannot be an int", ast::float_repr(x));
  if (std::fabs(x) >= 0x1p126)
    in.fail(ErrorKind::kValue, "{} does not fit into Kiln's ints of 128 bits", ast::float_repr(x));
  return Value::wide(static_cast<ast::Int>(x));
}
double sqrt_of(double x) { return std::sqrt(x); }
double exp_of(double x) { return std::exp(x); }
double log2_of(double x) { return std::log2(x); }
double log10_of(double x) { return std::log10(x); }
double log1p_of(double x) { return std::log1p(x); }
double expm1_of(double x) { return std::expm1(x); }
double exp2_of(double x) { return std::exp2(x); }
double sin_of(double x) { return std::sin(x); }
double cos_of(double x) { return std::cos(x); }
double tan_of(double x) { return std::tan(x); }
double asin_of(double x) { return std::asin(x); }
double acos_of(double x) { return std::acos(x); }
double atan_of(double x) { return std::atan(x); }
double sinh_of(double x) { return std::sinh(x); }
double cosh_of(double x) { return std::cosh(x); }
double tanh_of(double x) { return std::tanh(x); }
double erf_of(double x) { return std::erf(x); }
double fabs_of(double x) { return std::fabs(x); }

Value log(Interp& in, NativeArgs& a) {
  double x = in.to_double(a[0], "log()'s argument");
  if (x <= 0) in.fail(ErrorKind::kValue, "log() of {}: it needs a positive number", in.repr(a[0]));
  if (a[1].missing()) return Value::real(std::log(x));
  double base = in.to_double(a[1], "log()'s base");
  if (base <= 0 || base == 1) in.fail(ErrorKind::kValue, "log()'s base must be positive and not 1");
  return Value::real(base == 2 ? std::log2(x) : base == 10 ? std::log10(x) : std::log(x) / std::log(base));
}
Value math_pow(Interp& in, NativeArgs& a) {
  const double x = in.to_double(a[0], "pow()'s base"), y = in.to_double(a[1], "pow()'s exponent");
  const double r = std::pow(x, y);
  // What infinities and NaNs give is no error.
  if (std::isfinite(x) && std::isfinite(y)) {
    if (std::isnan(r)) in.fail(ErrorKind::kValue, "pow({}, {}) is not a real number", in.repr(a[0]), in.repr(a[1]));
    if (std::isinf(r) && x == 0)
      in.fail(ErrorKind::kValue, "pow({}, {}) divides by zero", in.repr(a[0]), in.repr(a[1]));
    if (std::isinf(r))
      in.fail_as("OverflowError", "pow({}, {}) is too large for a float", in.repr(a[0]), in.repr(a[1]));
  }
  return Value::real(r);
}
Value atan2(Interp& in, NativeArgs& a) {
  return Value::real(std::atan2(in.to_double(a[0], "y"), in.to_double(a[1], "x")));
}
Value fmod(Interp& in, NativeArgs& a) {
  const double x = in.to_double(a[0], "fmod()'s argument"), y = in.to_double(a[1], "fmod()'s divisor");
  if (y == 0) in.fail(ErrorKind::kValue, "fmod() by zero");
  if (std::isinf(x) && !std::isnan(y)) in.fail(ErrorKind::kValue, "fmod() of {}", ast::float_repr(x));
  return Value::real(std::fmod(x, y));
}
Value remainder(Interp& in, NativeArgs& a) {
  const double x = in.to_double(a[0], "remainder()'s argument"), y = in.to_double(a[1], "remainder()'s divisor");
  if (y == 0) in.fail(ErrorKind::kValue, "remainder() by zero");
  if (std::isinf(x) && !std::isnan(y)) in.fail(ErrorKind::kValue, "remainder() of {}", ast::float_repr(x));
  return Value::real(std::remainder(x, y));
}
Value nextafter(Interp& in, NativeArgs& a) {
  return Value::real(std::nextafter(in.to_double(a[0], "x"), in.to_double(a[1], "y")));
}
Value ulp(Interp& in, NativeArgs& a) {
  const double x = std::fabs(in.to_double(a[0], "ulp()'s argument"));
  if (!std::isfinite(x)) return Value::real(x);
  // Of the largest float downwards: there is none above.
  const double above = std::nextafter(x, INFINITY);
  return Value::real(std::isinf(above) ? x - std::nextafter(x, 0) : above - x);
}
Value hypot(Interp& in, NativeArgs& a) {
  double r = 0;
  for (const Value& v : a[0].get<Tuple>()->items) r = std::hypot(r, in.to_double(v, "a coordinate"));
  return Value::real(r);
}
Value copysign(Interp& in, NativeArgs& a) {
  return Value::real(std::copysign(in.to_double(a[0], "x"), in.to_double(a[1], "y")));
}
Value isnan(Interp& in, NativeArgs& a) { return Value::boolean(std::isnan(in.to_double(a[0], "isnan()'s argument"))); }
Value isinf(Interp& in, NativeArgs& a) { return Value::boolean(std::isinf(in.to_double(a[0], "isinf()'s argument"))); }
Value isfinite(Interp& in, NativeArgs& a) {
  return Value::boolean(std::isfinite(in.to_double(a[0], "isfinite()'s argument")));
}
Value isclose(Interp& in, NativeArgs& a) {
  double x = in.to_double(a[0], "a"), y = in.to_double(a[1], "b");
  double rel = a[2].missing() ? 1e-9 : in.to_double(a[2], "rel_tol"),
         abs = a[3].missing() ? 0 : in.to_double(a[3], "abs_tol");
  // Equal infinities are close; two NaNs are not.
  return Value::boolean(x == y || (std::isfinite(x) && std::isfinite(y) &&
                                   std::fabs(x - y) <= std::max(rel * std::max(std::fabs(x), std::fabs(y)), abs)));
}
using Magnitude = unsigned __int128;

/// An int without its sign, which the least one could not lose as an int.
Magnitude magnitude(Interp& in, const Value& v, std::string_view what) {
  ast::Int n = 0;
  if (auto* wide = v.get<WideInt>())
    n = wide->value;
  else
    n = in.to_int(v, what);
  return n < 0 ? 0 - static_cast<Magnitude>(n) : static_cast<Magnitude>(n);
}
Magnitude common_divisor(Magnitude a, Magnitude b) {
  while (b != 0) a = std::exchange(b, a % b);
  return a;
}
Value from_magnitude(Interp& in, Magnitude m, const char* name) {
  if (m >> 127) in.fail(ErrorKind::kValue, "{}() needs more than 128 bits, which Kiln's integers have", name);
  return Value::wide(static_cast<ast::Int>(m));
}
Value gcd(Interp& in, NativeArgs& a) {
  Magnitude g = 0;
  for (const Value& v : a[0].get<Tuple>()->items) g = common_divisor(g, magnitude(in, v, "gcd()'s argument"));
  return from_magnitude(in, g, "gcd");
}
Value lcm(Interp& in, NativeArgs& a) {
  Magnitude m = 1;
  for (const Value& v : a[0].get<Tuple>()->items) {
    const Magnitude n = magnitude(in, v, "lcm()'s argument");
    if (n == 0) return Value::integer(0);
    if (__builtin_mul_overflow(m / common_divisor(m, n), n, &m)) m = ~Magnitude{0};
    from_magnitude(in, m, "lcm");
  }
  return from_magnitude(in, m, "lcm");
}
Value isqrt(Interp& in, NativeArgs& a) {
  const int64_t n = in.to_int(a[0], "isqrt()'s argument");
  if (n < 0) in.fail(ErrorKind::kValue, "isqrt() of {}: it needs an int that is not negative", n);
  auto r = static_cast<int64_t>(std::sqrt(static_cast<double>(n)));
  // The float's root may be off by one in both directions.
  while (ast::Int{r} * r > n) --r;
  while (ast::Int{r + 1} * (r + 1) <= n) ++r;
  return Value::integer(r);
}
/// n * (n - 1) * … of k factors, over those of k! where `chosen`.
Value arrangements(Interp& in, const Value& of, const Value& many, const char* name, bool chosen) {
  const int64_t n = in.to_int(of, name);
  int64_t k = many.missing() || many.is_none() ? n : in.to_int(many, name);
  if (n < 0 || k < 0) in.fail(ErrorKind::kValue, "{}() needs ints that are not negative", name);
  if (k > n) return Value::integer(0);
  // The shorter of both products, as C(n, k) is C(n, n - k).
  if (chosen) k = std::min(k, n - k);
  ast::Int r = 1;
  for (int64_t i = 0; i < k; ++i) {
    if (__builtin_mul_overflow(r, ast::Int{n - i}, &r))
      in.fail(ErrorKind::kValue, "{}() needs more than 128 bits, which Kiln's integers have", name);
    // Whole at each step: the product of i + 1 numbers in a row divides by (i + 1)!.
    if (chosen) r /= i + 1;
  }
  return Value::wide(r);
}
Value comb(Interp& in, NativeArgs& a) { return arrangements(in, a[0], a[1], "comb", true); }
Value perm(Interp& in, NativeArgs& a) { return arrangements(in, a[0], a[1], "perm", false); }
Value factorial(Interp& in, NativeArgs& a) { return arrangements(in, a[0], Value(), "factorial", false); }
/// Neumaier's sum: the error of each addition is kept.
Value fsum(Interp& in, NativeArgs& a) {
  double sum = 0, lost = 0;
  in.for_each(a[0], [&](const Value& v) {
    const double x = in.to_double(v, "an element"), t = sum + x;
    lost += std::fabs(sum) >= std::fabs(x) ? sum - t + x : x - t + sum;
    sum = t;
    return true;
  });
  // With an infinity among the elements, what was lost is NaN.
  return Value::real(std::isfinite(lost) ? sum + lost : sum);
}
Value degrees(Interp& in, NativeArgs& a) { return Value::real(in.to_double(a[0], "x") * (180 / M_PI)); }
Value radians(Interp& in, NativeArgs& a) { return Value::real(in.to_double(a[0], "x") * (M_PI / 180)); }
Value dist(Interp& in, NativeArgs& a) {
  const std::vector<Value> p = in.to_vector(a[0]), q = in.to_vector(a[1]);
  if (p.size() != q.size()) in.fail(ErrorKind::kValue, "dist() needs points of the same dimension");
  double r = 0;
  // hypot() scales, so that squares of large differences do not overflow.
  for (size_t i = 0; i < p.size(); ++i) r = std::hypot(r, in.to_double(p[i], "p") - in.to_double(q[i], "q"));
  return Value::real(r);
}
Value pair_of(double x, const Value& second) { return make<Tuple>(std::vector<Value>{Value::real(x), second}); }
Value frexp(Interp& in, NativeArgs& a) {
  int exponent = 0;
  const double m = std::frexp(in.to_double(a[0], "x"), &exponent);
  return pair_of(m, Value::integer(exponent));
}
Value ldexp(Interp& in, NativeArgs& a) {
  const double x = in.to_double(a[0], "x");
  // Beyond this every float is 0 or infinite; the library's exponent is an int.
  const auto* wide = a[1].get<WideInt>();
  const ast::Int given = wide ? wide->value : ast::Int{in.to_int(a[1], "the exponent")};
  const double r = std::ldexp(x, static_cast<int>(std::clamp<ast::Int>(given, -5000, 5000)));
  if (std::isinf(r) && std::isfinite(x))
    in.fail_as("OverflowError", "ldexp({}, {}) is too large for a float", in.repr(a[0]), in.repr(a[1]));
  return Value::real(r);
}
Value modf(Interp& in, NativeArgs& a) {
  double whole = 0;
  const double part = std::modf(in.to_double(a[0], "x"), &whole);
  return pair_of(part, Value::real(whole));
}
double gamma_of(double x) { return std::tgamma(x); }
double lgamma_of(double x) { return std::lgamma(x); }
double erfc_of(double x) { return std::erfc(x); }
double cbrt_of(double x) { return std::cbrt(x); }
double asinh_of(double x) { return std::asinh(x); }
double acosh_of(double x) { return std::acosh(x); }
double atanh_of(double x) { return std::atanh(x); }

Value prod(Interp& in, NativeArgs& a) {
  Value total = a[1].missing() ? Value::integer(1) : a[1];
  in.for_each(a[0], [&](const Value& v) {
    total = in.binary(ast::BinaryOp::kMul, total, v);
    return true;
  });
  return total;
}

constexpr NativeDef kMath[] = {
    {"acos(x)", real_function<acos_of>, ""},
    {"acosh(x)", real_function<acosh_of>, ""},
    {"asin(x)", real_function<asin_of>, ""},
    {"asinh(x)", real_function<asinh_of>, ""},
    {"atan(x)", real_function<atan_of>, ""},
    {"atan2(y, x)", atan2, ""},
    {"atanh(x)", real_function<atanh_of>, ""},
    {"cbrt(x)", real_function<cbrt_of>, ""},
    {"ceil(x)", whole_function<ceil_of>, "the least int not below"},
    {"comb(n, k)", comb, "how many ways there are to choose k of n"},
    {"copysign(x, y)", copysign, ""},
    {"cos(x)", real_function<cos_of>, ""},
    {"cosh(x)", real_function<cosh_of>, ""},
    {"degrees(x)", degrees, "radians as degrees"},
    {"dist(p, q)", dist, "between two points"},
    {"erf(x)", real_function<erf_of>, ""},
    {"erfc(x)", real_function<erfc_of>, ""},
    {"exp(x)", real_function<exp_of>, ""},
    {"exp2(x)", real_function<exp2_of>, ""},
    {"expm1(x)", real_function<expm1_of>, ""},
    {"fabs(x)", real_function<fabs_of>, ""},
    {"factorial(n)", factorial, ""},
    {"floor(x)", whole_function<floor_of>, "the largest int not above"},
    {"fmod(x, y)", fmod, ""},
    {"frexp(x)", frexp, "mantissa and exponent"},
    {"fsum(iterable)", fsum, "a sum whose rounding errors are kept"},
    {"gamma(x)", real_function<gamma_of>, ""},
    {"gcd(*ints)", gcd, ""},
    {"hypot(*coordinates)", hypot, "the root of the sum of squares"},
    {"isclose(a, b, *, rel_tol=1e-9, abs_tol=0.0)", isclose, ""},
    {"isfinite(x)", isfinite, ""},
    {"isinf(x)", isinf, ""},
    {"isnan(x)", isnan, ""},
    {"isqrt(n)", isqrt, "the whole part of the square root"},
    {"lcm(*ints)", lcm, ""},
    {"ldexp(x, i)", ldexp, "x * 2**i"},
    {"lgamma(x)", real_function<lgamma_of>, ""},
    {"log(x, base=)", log, "natural, or to a base"},
    {"log10(x)", real_function<log10_of>, ""},
    {"log1p(x)", real_function<log1p_of>, ""},
    {"log2(x)", real_function<log2_of>, ""},
    {"modf(x)", modf, "the part behind the point, and the part before it"},
    {"nextafter(x, y)", nextafter, "the float behind x on the way to y"},
    {"perm(n, k=None)", perm, "how many ordered ways there are to choose k of n"},
    {"pow(x, y)", math_pow, ""},
    {"prod(iterable, start=1)", prod, ""},
    {"radians(x)", radians, "degrees as radians"},
    {"remainder(x, y)", remainder, "x less the nearest multiple of y"},
    {"sin(x)", real_function<sin_of>, ""},
    {"sinh(x)", real_function<sinh_of>, ""},
    {"sqrt(x)", real_function<sqrt_of>, ""},
    {"tan(x)", real_function<tan_of>, ""},
    {"tanh(x)", real_function<tanh_of>, ""},
    {"trunc(x)", whole_function<trunc_of>, "the int towards zero"},
    {"ulp(x)", ulp, "the value of the last bit of a float"},
};

void fill_math(Interp&, ModuleObject& m) {
  add_functions(m, kMath);
  m.members.set("pi", Value::real(M_PI));
  m.members.set("e", Value::real(M_E));
  m.members.set("tau", Value::real(2 * M_PI));
  m.members.set("inf", Value::real(INFINITY));
  m.members.set("nan", Value::real(NAN));
}

// --- os and sys
// ---------------------------------------------------------------------------------------------------------

Value getenv(Interp& in, NativeArgs& a) {
  const auto v = environment(in.to_text(a[0], "the variable's name").c_str());
  return v ? Value::str(*v) : a[1].missing() ? Value::none() : a[1];
}

Value environment_copy(Interp& in, NativeArgs& a);
Value environment_keys(Interp& in, NativeArgs& a);
Value environment_values(Interp& in, NativeArgs& a);
Value environment_items(Interp& in, NativeArgs& a);
Value pop_environment(Interp& in, NativeArgs& a);
Value default_environment(Interp& in, NativeArgs& a);
Value update_environment(Interp& in, NativeArgs& a);

/// os.environ: a dict of strings. Its changes reach Kiln, the programs that it starts and, as long as the process has
/// one thread, the libraries that it opens (support/environment.h).
class Environment : public Object {
 public:
  static inline const KindOf<Environment> kKind{"os._Environ"};
  Environment() : Object(kKind) {}
  std::optional<Value> attribute(Interp&, std::string_view name) override {
    static constexpr NativeDef kFunctions[] = {
        {"copy()", environment_copy, "a dict of the variables"},
        {"get(key, default=None)", getenv, "an environment variable, or the default"},
        {"items()", environment_items, "names and values"},
        {"keys()", environment_keys, "the names"},
        {"pop(key, default=)", pop_environment, "unsets a variable and returns its value"},
        {"setdefault(key, default)", default_environment, "a variable's value, which is set if it was not"},
        {"update(values)", update_environment, "sets all variables of a dict"},
        {"values()", environment_values, "the values"}};
    for (const NativeDef& d : kFunctions)
      if (d.signature.starts_with(name) && d.signature[name.size()] == '(') return Value(make<Native>(d));
    return std::nullopt;
  }
  Value item(Interp& in, const Value& index) override {
    const auto v = environment(in.to_text(index, "the variable's name").c_str());
    if (!v) in.fail_key(index, "there is no environment variable {}");
    return Value::str(*v);
  }
  void set_item(Interp& in, const Value& index, Value value) override {
    set_environment(checked(in, index), checked_text(in, in.to_text(value, "an environment variable")));
  }
  void delete_item(Interp& in, const Value& index) override { set_environment(checked(in, index), std::nullopt); }
  std::optional<bool> contains(Interp& in, const Value& item) override {
    return environment(in.to_text(item, "the variable's name").c_str()).has_value();
  }
  std::string repr(Interp&) override { return "<os.environ>"; }
  /// As they are now: the list is no view.
  static Ref<Dict> all() {
    auto out = make<Dict>();
    for (const std::string& one : environment_list()) {
      const size_t equals = one.find('=');
      out->table.set(one.substr(0, equals), Value::str(equals == std::string::npos ? "" : one.substr(equals + 1)));
    }
    return out;
  }
  Value iterate(Interp& in) override { return all()->iterate(in); }
  std::optional<int64_t> length(Interp&) override { return static_cast<int64_t>(environment_list().size()); }

  static std::string checked_text(Interp& in, std::string text) {
    if (text.find('\0') != std::string::npos)
      in.fail(ErrorKind::kValue, "an environment variable has no character of code 0");
    return text;
  }
  static std::string checked(Interp& in, const Value& index) {
    std::string name = checked_text(in, in.to_text(index, "the variable's name"));
    if (name.empty() || name.find('=') != std::string::npos)
      in.fail(ErrorKind::kValue, "{} is no name of an environment variable", in.repr(index));
    return name;
  }
};

Value of_environment(Interp& in, const char* method) { return in.call(in.attribute(Environment::all(), method), {}); }
Value environment_copy(Interp&, NativeArgs&) { return Environment::all(); }
Value environment_keys(Interp& in, NativeArgs&) { return of_environment(in, "keys"); }
Value environment_values(Interp& in, NativeArgs&) { return of_environment(in, "values"); }
Value environment_items(Interp& in, NativeArgs&) { return of_environment(in, "items"); }
Value pop_environment(Interp& in, NativeArgs& a) {
  const std::string name = Environment::checked(in, a[0]);
  const auto old = environment(name.c_str());
  if (!old && a[1].missing()) in.fail_key(a[0], "there is no environment variable {}");
  set_environment(name, std::nullopt);
  return old ? Value::str(*old) : a[1];
}
Value default_environment(Interp& in, NativeArgs& a) {
  const std::string name = Environment::checked(in, a[0]);
  if (const auto old = environment(name.c_str())) return Value::str(*old);
  set_environment(name, Environment::checked_text(in, in.to_text(a[1], "an environment variable")));
  return a[1];
}
Value update_environment(Interp& in, NativeArgs& a) {
  auto* dict = a[0].get<Dict>();
  if (!dict) in.fail(ErrorKind::kType, "update() needs a dict, got '{}'", in.type_name(a[0]));
  for (const auto& e : dict->table.live())
    set_environment(Environment::checked(in, e.key),
                    Environment::checked_text(in, in.to_text(e.value, "an environment variable")));
  return Value::none();
}

void fill_os(Interp& in, ModuleObject& m) {
  add_functions(m, os_functions());
  m.members.set("sep", Value::str("/"));
  m.members.set("linesep", Value::str("\n"));
  m.members.set("pathsep", Value::str(":"));
  m.members.set("devnull", Value::str("/dev/null"));
  m.members.set("name", Value::str("posix"));
  m.members.set("PathLike", in.type_of(Kind::kStr));
  m.members.set("environ", make<Environment>());
  m.members.set("path", in.import_module("os.path"));
  m.members.set("walk", in.attribute(in.import_module("_walk"), "walk"));
}
void fill_os_path(Interp&, ModuleObject& m) {
  add_functions(m, os_path_functions());
  m.members.set("sep", Value::str("/"));
}

Value sys_exit(Interp& in, NativeArgs& a) {
  CallArgs code;
  if (!a[0].missing()) code.args.push_back(a[0]);
  in.raise(in.call(in.exception_type("SystemExit"), code), in.where());
}
Value exc_info(Interp& in, NativeArgs&) {
  const Value e = in.handled();
  // Without a traceback, which is None: errors name their lines themselves.
  if (e.missing()) return make<Tuple>(std::vector<Value>{Value::none(), Value::none(), Value::none()});
  return make<Tuple>(std::vector<Value>{Value(in.type_of(e)), e, Value::none()});
}
/// Where a caught exception came from: (file, line, function, the line's text), outermost first.
Value exception_places(Interp&, NativeArgs& a) {
  auto out = make<List>();
  const auto* exception = a[0].get<Instance>();
  if (!exception || !exception->caught) return out;
  const Diagnostic& report = exception->caught->report;
  constexpr std::string_view kIn = "in ", kCalled = ", called from here";  // as stack_notes() says it
  std::vector<std::pair<Place, std::string>> places = {{report.place, "<module>"}};
  for (const Note& note : report.notes) {
    if (!note.message.starts_with(kIn) || !note.message.ends_with(kCalled)) continue;
    // The note names the function that its call led into.
    places.back().second = note.message.substr(kIn.size(), note.message.size() - kIn.size() - kCalled.size());
    places.emplace_back(note.place, "<module>");
  }
  for (size_t i = places.size(); i-- > 0;) {
    const auto& [place, function] = places[i];
    if (place.line == 0) continue;
    out->items.push_back(make<Tuple>(std::vector<Value>{Value::str(place.file), Value::integer(place.line),
                                                        Value::str(function), Value::str(place.text)}));
  }
  return out;
}
Value nothing(Interp&, NativeArgs&) { return Value::none(); }
Value recursion_limit(Interp&, NativeArgs&) { return Value::integer(1000); }
Value intern(Interp& in, NativeArgs& a) { return Value::str(in.to_text(a[0], "intern()'s text")); }
constexpr NativeDef kSys[] = {
    {"_places(exception)", exception_places, "where a caught exception came from, for traceback"},
    {"exc_info()", exc_info, "the exception whose handler runs: (type, exception, None)"},
    {"exit(code=0)", sys_exit, "ends the script"},
    {"getrecursionlimit()", recursion_limit, "calls end where the stack does, not at this number"},
    {"intern(text)", intern, "the text: equal texts need no one object here"},
    {"setrecursionlimit(limit)", nothing, "accepted without effect: calls end where the stack does"},
};
constexpr NativeDef kExits[] = {{"exit(code=0)", sys_exit, "ends kiln; so does Ctrl-D at the prompt"},
                                {"quit(code=0)", sys_exit, "the same as exit()"}};

Value write(Interp& in, NativeArgs& a) {
  in.print(in.to_text(a[0], "write()'s text"));
  return Value::integer(in.length(a[0]));
}
Value write_each(Interp& in, NativeArgs& a, NativeFunction write_one) {
  in.for_each(a[0], [&](Value line) {
    Value slots[] = {std::move(line)};
    NativeArgs one{slots, a.self};
    write_one(in, one);
    return true;
  });
  return Value::none();
}
Value write_lines(Interp& in, NativeArgs& a) { return write_each(in, a, write); }
Value out_number(Interp&, NativeArgs&) { return Value::integer(STDOUT_FILENO); }
Value flush(Interp&, NativeArgs&) {
  std::fflush(stdout);
  return Value::none();
}
Value out_is_terminal(Interp&, NativeArgs&) { return Value::boolean(isatty(STDOUT_FILENO) != 0); }
constexpr NativeDef kStdout[] = {{"write(text)", write, "writes a text"},
                                 {"writelines(lines)", write_lines, "writes each text"},
                                 {"flush()", flush, "writes out buffered text"},
                                 {"fileno()", out_number, "the number that the system knows it by"},
                                 {"isatty()", out_is_terminal, "does it go to a terminal?"}};

Value write_error(Interp& in, NativeArgs& a) {
  in.error_output(in.to_text(a[0], "write()'s text"));
  return Value::integer(in.length(a[0]));
}
Value write_error_lines(Interp& in, NativeArgs& a) { return write_each(in, a, write_error); }
Value error_number(Interp&, NativeArgs&) { return Value::integer(STDERR_FILENO); }
Value flush_error(Interp&, NativeArgs&) { return Value::none(); }
Value error_is_terminal(Interp&, NativeArgs&) { return Value::boolean(isatty(STDERR_FILENO) != 0); }
constexpr NativeDef kStderr[] = {{"write(text)", write_error, "writes a text"},
                                 {"writelines(lines)", write_error_lines, "writes each text"},
                                 {"flush()", flush_error, "does nothing: errors are not buffered"},
                                 {"fileno()", error_number, "the number that the system knows it by"},
                                 {"isatty()", error_is_terminal, "does it go to a terminal?"}};

void add_stream(ModuleObject& m, const char* name, std::span<const NativeDef> functions) {
  auto stream = make<Opaque>(std::string("sys.") + name);
  for (const NativeDef& d : functions) {
    auto native = make<Native>(d);
    stream->members.set(native->name, native);
  }
  stream->members.set("encoding", Value::str("utf-8"));
  stream->members.set("errors", Value::str("strict"));
  stream->members.set("name", Value::str("<" + std::string(name) + ">"));
  stream->members.set("closed", Value::boolean(false));
  m.members.set(name, stream);
  m.members.set("__" + std::string(name) + "__", stream);  // where a script puts another one in its place
}

class VersionInfo : public Tuple {
 public:
  VersionInfo()
      : Tuple({Value::integer(3), Value::integer(11), Value::integer(0), Value::str("final"), Value::integer(0)}) {}
  std::optional<Value> attribute(Interp&, std::string_view name) override {
    constexpr std::string_view kNames[] = {"major", "minor", "micro", "releaselevel", "serial"};
    const auto* found = std::find(std::begin(kNames), std::end(kNames), name);
    if (found == std::end(kNames)) return std::nullopt;
    return items[static_cast<size_t>(found - kNames)];
  }
};

/// The limits of floats, which are doubles.
Value float_info() {
  using Limits = std::numeric_limits<double>;
  auto out = make<Opaque>("sys.float_info");
  out->members.set("max", Value::real(Limits::max()));
  out->members.set("min", Value::real(Limits::min()));
  out->members.set("epsilon", Value::real(Limits::epsilon()));
  out->members.set("dig", Value::integer(Limits::digits10));
  out->members.set("mant_dig", Value::integer(Limits::digits));
  out->members.set("max_exp", Value::integer(Limits::max_exponent));
  out->members.set("min_exp", Value::integer(Limits::min_exponent));
  out->members.set("max_10_exp", Value::integer(Limits::max_exponent10));
  out->members.set("min_10_exp", Value::integer(Limits::min_exponent10));
  out->members.set("radix", Value::integer(Limits::radix));
  out->members.set("rounds", Value::integer(1));
  return out;
}

void fill_sys(Interp& in, ModuleObject& m) {
  add_functions(m, kSys);
  auto argv = make<List>();
  for (const std::string& s : in.argv) argv->items.push_back(Value::str(s));
  m.members.set("argv", argv);
  m.members.set("path", search_path(in));
  m.members.set("platform", Value::str("linux"));
  m.members.set("maxsize", Value::integer(INT64_MAX));
  // The version whose language this is a part of: files ask for it.
  m.members.set("version_info", make<VersionInfo>());
  m.members.set("version", Value::str("3.11.0 (Kiln)"));
  m.members.set("executable", Value::str("kiln"));
  m.members.set("byteorder", Value::str("little"));
  m.members.set("modules", Value(loaded_modules(in)));
  m.members.set("stdin", standard_input(in));
  m.members.set("__stdin__", standard_input(in));
  m.members.set("float_info", float_info());
  m.members.set("hexversion", Value::integer(0x030B00F0));
  m.members.set("prefix", Value::str(""));
  auto implementation = make<Opaque>("sys.implementation");
  implementation->members.set("name", Value::str("kiln"));
  implementation->members.set("version", make<VersionInfo>());
  m.members.set("implementation", implementation);
  add_stream(m, "stdout", kStdout);
  add_stream(m, "stderr", kStderr);
}

// --- random

/// The Mersenne twister, seeded as CPython seeds it, so that its numbers are the same.
class Twister {
 public:
  explicit Twister(const std::vector<uint32_t>& key) { seed(key); }

  void seed(const std::vector<uint32_t>& key) {
    // init_by_array() of MT19937, with CPython's constants.
    state_[0] = 19650218;
    for (uint32_t i = 1; i < kSize; ++i) state_[i] = 1812433253u * (state_[i - 1] ^ state_[i - 1] >> 30) + i;
    uint32_t i = 1, j = 0;
    auto step = [&] {
      if (++i < kSize) return;
      state_[0] = state_[kSize - 1];
      i = 1;
    };
    for (size_t k = std::max<size_t>(kSize, key.size()); k > 0; --k) {
      state_[i] = (state_[i] ^ (state_[i - 1] ^ state_[i - 1] >> 30) * 1664525u) + key[j] + j;
      step();
      if (++j == key.size()) j = 0;
    }
    for (size_t k = kSize - 1; k > 0; --k) {
      state_[i] = (state_[i] ^ (state_[i - 1] ^ state_[i - 1] >> 30) * 1566083941u) - i;
      step();
    }
    state_[0] = 0x80000000u;
    at_ = kSize;
  }
  uint32_t next() {
    if (at_ == kSize) refill();
    uint32_t y = state_[at_++];
    y ^= y >> 11;
    y ^= y << 7 & 0x9D2C5680u;
    y ^= y << 15 & 0xEFC60000u;
    return y ^ y >> 18;
  }
  double unit() {
    const uint32_t high = next() >> 5, low = next() >> 6;
    // 53 random bits, as CPython's random() takes them from two words.
    return (high * 67108864.0 + low) / 9007199254740992.0;
  }
  std::vector<Value> numbers() const {
    std::vector<Value> out;
    for (uint32_t word : state_) out.push_back(Value::integer(word));
    out.push_back(Value::integer(at_));
    return out;
  }
  bool set_numbers(Interp& in, const std::vector<Value>& numbers) {
    if (numbers.size() != kSize + 1) return false;
    for (size_t i = 0; i < kSize; ++i) state_[i] = static_cast<uint32_t>(in.to_int(numbers[i], "a word of the state"));
    at_ = static_cast<uint32_t>(std::clamp<int64_t>(in.to_int(numbers[kSize], "the place in the state"), 0, kSize));
    return true;
  }

 private:
  static constexpr uint32_t kSize = 624, kShift = 397;
  void refill() {
    for (uint32_t i = 0; i < kSize; ++i) {
      const uint32_t y = (state_[i] & 0x80000000u) | (state_[(i + 1) % kSize] & 0x7FFFFFFFu);
      state_[i] = state_[(i + kShift) % kSize] ^ y >> 1 ^ (y & 1 ? 0x9908B0DFu : 0u);
    }
    at_ = 0;
  }
  uint32_t state_[kSize], at_ = kSize;
};

/// What a seed gives: the words of an int's magnitude, else of a hash; none: from the system.
std::vector<uint32_t> seed_key(Interp& in, const Value& seed) {
  std::vector<uint32_t> key;
  if (seed.missing() || seed.is_none()) {
    std::random_device device;
    for (int i = 0; i < 8; ++i) key.push_back(device());
    return key;
  }
  unsigned __int128 words = 0;
  const auto constant = seed.constant();
  const auto* wide = constant ? std::get_if<ast::Int>(&*constant) : nullptr;
  if (wide)
    // Negated as unsigned: the smallest int has no positive counterpart.
    words = *wide < 0 ? -static_cast<unsigned __int128>(*wide) : static_cast<unsigned __int128>(*wide);
  else
    words = seed.is_bool() ? seed.boolean() : in.hash(seed);
  do {
    key.push_back(static_cast<uint32_t>(words));
    words >>= 32;
  } while (words);
  return key;
}

Value twister_bits(Interp& in, Twister& twister, const Value& count) {
  int64_t bits = in.to_int(count, "getrandbits()'s number of bits");
  if (bits < 0) in.fail(ErrorKind::kValue, "number of bits must be non-negative");
  if (bits > 127) in.fail(ErrorKind::kValue, "getrandbits({}) needs more than the 128 bits of Kiln's ints", bits);
  ast::Int out = 0;
  // The last word gives its upper bits, as in CPython.
  for (int at = 0; bits > 0; at += 32, bits -= 32) out |= ast::Int{twister.next() >> (bits < 32 ? 32 - bits : 0)} << at;
  return Value::wide(out);
}

/// (random, getrandbits, seed, getstate, setstate) of a new generator: library/random.py makes a class of them.
Value twister(Interp& in, NativeArgs& a) {
  auto shared = std::make_shared<Twister>(seed_key(in, a[0]));
  auto method = [&](const char* name, size_t parameters, auto body) {
    auto o = make<Opaque>(name);
    o->on_call = [=](Interp& interp, CallArgs& args) -> Value {
      if (args.args.size() != parameters || !args.keywords.empty())
        interp.fail(ErrorKind::kType, "{}() takes {} argument{}", name, parameters, parameters == 1 ? "" : "s");
      return body(interp, *shared, args);
    };
    return Value(o);
  };
  return make<Tuple>(std::vector<Value>{
      method("random", 0, [](Interp&, Twister& t, CallArgs&) { return Value::real(t.unit()); }),
      method("getrandbits", 1, [](Interp& i, Twister& t, CallArgs& args) { return twister_bits(i, t, args.args[0]); }),
      method("seed", 1,
             [](Interp& i, Twister& t, CallArgs& args) {
               t.seed(seed_key(i, args.args[0]));
               return Value::none();
             }),
      method("getstate", 0, [](Interp&, Twister& t, CallArgs&) -> Value { return make<Tuple>(t.numbers()); }),
      method("setstate", 1, [](Interp& i, Twister& t, CallArgs& args) {
        if (!t.set_numbers(i, i.to_vector(args.args[0]))) i.fail(ErrorKind::kValue, "this is no state of a generator");
        return Value::none();
      })});
}
constexpr NativeDef kRandom[] = {{"generator(seed=None)", twister, "the functions of a new generator"}};
void fill_random(Interp&, ModuleObject& m) { add_functions(m, kRandom); }

constexpr ModuleDef kStdModules[] = {
    {"_kiln", fill_kiln}, {"_random", fill_random}, {"_re", fill_re},  {"_time", fill_time},      {"_json", fill_json},
    {"math", fill_math},  {"os", fill_os},          {"sys", fill_sys}, {"os.path", fill_os_path},
};

}  // namespace

std::span<const ModuleDef> std_modules() { return kStdModules; }

void install_exits(Interp& in) { in.add_builtins(kExits); }

}  // namespace kiln::script
