// math, os, sys, time and random; and the tables of all modules put together.
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <thread>

#include "repl/modules/modules.h"
#include "repl/modules/torch/pending.h"
#include "repl/modules/torch/torch_state.h"
#include "repl/script/builtins/builtins.h"
#include "support/environment.h"

namespace kiln::script {

namespace {

// --- math
// ---------------------------------------------------------------------------------------------------------------

template <double (*F)(double)>
Value real_function(Interp& in, NativeArgs& a) {
  double x = in.to_double(a[0], "the argument"), y = F(x);
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
  if (a[0].kind() == Kind::kInt || a[0].kind() == Kind::kBool) return in.unary(ast::UnaryOp::kPlus, a[0]);
  double x = F(in.to_double(a[0], "the argument"));
  if (!std::isfinite(x)) in.fail(ErrorKind::kValue, "{} cannot be an int", ast::float_repr(x));
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
  double r = std::pow(in.to_double(a[0], "pow()'s base"), in.to_double(a[1], "pow()'s exponent"));
  if (std::isnan(r) && !std::isnan(in.to_double(a[0], "")))
    in.fail(ErrorKind::kValue, "pow({}, {}) is not a real number", in.repr(a[0]), in.repr(a[1]));
  return Value::real(r);
}
Value atan2(Interp& in, NativeArgs& a) {
  return Value::real(std::atan2(in.to_double(a[0], "y"), in.to_double(a[1], "x")));
}
Value fmod(Interp& in, NativeArgs& a) {
  double y = in.to_double(a[1], "fmod()'s divisor");
  if (y == 0) in.fail(ErrorKind::kValue, "fmod() by zero");
  return Value::real(std::fmod(in.to_double(a[0], "fmod()'s argument"), y));
}
Value hypot(Interp& in, NativeArgs& a) {
  return Value::real(std::hypot(in.to_double(a[0], "x"), in.to_double(a[1], "y")));
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
  return Value::boolean(x == y || (std::isfinite(x) && std::isfinite(y) &&
                                   std::fabs(x - y) <= std::max(rel * std::max(std::fabs(x), std::fabs(y)), abs)));
}
Value gcd(Interp& in, NativeArgs& a) {
  int64_t g = 0;
  for (const Value& v : a[0].get<Tuple>()->items) g = std::__gcd(g, in.to_int(v, "gcd()'s argument"));
  return Value::integer(g < 0 ? -g : g);
}
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
    {"asin(x)", real_function<asin_of>, ""},
    {"atan(x)", real_function<atan_of>, ""},
    {"atan2(y, x)", atan2, ""},
    {"ceil(x)", whole_function<ceil_of>, "the least int not below"},
    {"copysign(x, y)", copysign, ""},
    {"cos(x)", real_function<cos_of>, ""},
    {"cosh(x)", real_function<cosh_of>, ""},
    {"erf(x)", real_function<erf_of>, ""},
    {"exp(x)", real_function<exp_of>, ""},
    {"exp2(x)", real_function<exp2_of>, ""},
    {"expm1(x)", real_function<expm1_of>, ""},
    {"fabs(x)", real_function<fabs_of>, ""},
    {"floor(x)", whole_function<floor_of>, "the largest int not above"},
    {"fmod(x, y)", fmod, ""},
    {"gcd(*ints)", gcd, ""},
    {"hypot(x, y)", hypot, ""},
    {"isclose(a, b, *, rel_tol=1e-9, abs_tol=0.0)", isclose, ""},
    {"isfinite(x)", isfinite, ""},
    {"isinf(x)", isinf, ""},
    {"isnan(x)", isnan, ""},
    {"log(x, base=)", log, "natural, or to a base"},
    {"log10(x)", real_function<log10_of>, ""},
    {"log1p(x)", real_function<log1p_of>, ""},
    {"log2(x)", real_function<log2_of>, ""},
    {"pow(x, y)", math_pow, ""},
    {"prod(iterable, start=1)", prod, ""},
    {"sin(x)", real_function<sin_of>, ""},
    {"sinh(x)", real_function<sinh_of>, ""},
    {"sqrt(x)", real_function<sqrt_of>, ""},
    {"tan(x)", real_function<tan_of>, ""},
    {"tanh(x)", real_function<tanh_of>, ""},
    {"trunc(x)", whole_function<trunc_of>, "the int towards zero"},
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

/// os.environ: a dict of strings. Its changes reach Kiln, the programs that it starts and, as long as the process has
/// one thread, the libraries that it opens (support/environment.h).
class Environment : public Object {
 public:
  static inline const KindOf<Environment> kKind{"os._Environ"};
  Environment() : Object(kKind) {}
  std::optional<Value> attribute(Interp&, std::string_view name) override {
    static constexpr NativeDef kGet{"get(key, default=None)", getenv, "an environment variable, or the default"};
    if (name == "get") return Value(make<Native>(kGet));
    return std::nullopt;
  }
  Value item(Interp& in, const Value& index) override {
    const auto v = environment(in.to_text(index, "the variable's name").c_str());
    if (!v) in.fail_as("KeyError", "there is no environment variable {}", in.repr(index));
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

 private:
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

Value path_exists(Interp& in, NativeArgs& a) {
  struct stat s;
  return Value::boolean(stat(in.to_text(a[0], "the path").c_str(), &s) == 0);
}
Value path_join(Interp& in, NativeArgs& a) {
  std::string out;
  for (const Value& v : a[0].get<Tuple>()->items) {
    const std::string& part = in.to_text(v, "a path");
    if (!part.empty() && part[0] == '/') out.clear();
    if (!out.empty() && out.back() != '/') out += '/';
    out += part;
  }
  return Value::str(std::move(out));
}
Value path_basename(Interp& in, NativeArgs& a) {
  const std::string& p = in.to_text(a[0], "the path");
  return Value::str(p.substr(p.rfind('/') + 1));
}
Value cpu_count(Interp&, NativeArgs&) { return Value::integer(std::thread::hardware_concurrency()); }
Value getpid(Interp&, NativeArgs&) { return Value::integer(::getpid()); }

constexpr NativeDef kOs[] = {
    {"getenv(key, default=None)", getenv, "an environment variable, or the default"},
    {"cpu_count()", cpu_count, "how many processors there are"},
    {"getpid()", getpid, "this process's number"},
};
constexpr NativeDef kOsPath[] = {
    {"exists(path)", path_exists, "is there such a file?"},
    {"join(*parts)", path_join, "the parts as one path"},
    {"basename(path)", path_basename, "the last part of a path"},
};
void fill_os(Interp& in, ModuleObject& m) {
  add_functions(m, kOs);
  m.members.set("environ", make<Environment>());
  m.members.set("path", in.import_module("os.path"));
}
void fill_os_path(Interp&, ModuleObject& m) { add_functions(m, kOsPath); }

Value sys_exit(Interp& in, NativeArgs& a) {
  CallArgs code;
  if (!a[0].missing()) code.args.push_back(a[0]);
  in.raise(in.call(in.exception_type("SystemExit"), code), in.where());
}
constexpr NativeDef kSys[] = {{"exit(code=0)", sys_exit, "ends the script"}};
constexpr NativeDef kExits[] = {{"exit(code=0)", sys_exit, "ends kiln; so does Ctrl-D at the prompt"},
                                {"quit(code=0)", sys_exit, "the same as exit()"}};

Value write(Interp& in, NativeArgs& a) {
  in.print(in.to_text(a[0], "write()'s text"));
  return Value::integer(in.length(a[0]));
}
Value flush(Interp&, NativeArgs&) {
  std::fflush(stdout);
  return Value::none();
}
constexpr NativeDef kStdout[] = {{"write(text)", write, "writes a text"},
                                 {"flush()", flush, "writes out buffered text"}};

Value write_error(Interp& in, NativeArgs& a) {
  in.error_output(in.to_text(a[0], "write()'s text"));
  return Value::integer(in.length(a[0]));
}
Value flush_error(Interp&, NativeArgs&) { return Value::none(); }
constexpr NativeDef kStderr[] = {{"write(text)", write_error, "writes a text"},
                                 {"flush()", flush_error, "does nothing: errors are not buffered"}};

void add_stream(ModuleObject& m, const char* name, std::span<const NativeDef> functions) {
  auto stream = make<Opaque>(std::string("sys.") + name);
  for (const NativeDef& d : functions) {
    auto native = make<Native>(d);
    stream->members.set(native->name, native);
  }
  m.members.set(name, stream);
}

void fill_sys(Interp& in, ModuleObject& m) {
  add_functions(m, kSys);
  auto argv = make<List>();
  for (const std::string& s : in.argv) argv->items.push_back(Value::str(s));
  m.members.set("argv", argv);
  m.members.set("platform", Value::str("linux"));
  m.members.set("maxsize", Value::integer(INT64_MAX));
  add_stream(m, "stdout", kStdout);
  add_stream(m, "stderr", kStderr);
}

// --- time and random
// ----------------------------------------------------------------------------------------------------

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}
Value perf_counter(Interp& in, NativeArgs&) {
  torch_state(in).pending()->before_clock(in);
  return Value::real(seconds_now());
}
Value perf_counter_ns(Interp& in, NativeArgs&) {
  torch_state(in).pending()->before_clock(in);
  return Value::integer(
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
          .count());
}
Value wall_time(Interp& in, NativeArgs&) {
  torch_state(in).pending()->before_clock(in);
  return Value::real(std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count());
}
Value sleep(Interp& in, NativeArgs& a) {
  double end = seconds_now() + in.to_double(a[0], "sleep()'s seconds");
  for (double left; (left = end - seconds_now()) > 0; in.check_interrupt())
    std::this_thread::sleep_for(std::chrono::duration<double>(std::min(left, 0.02)));
  return Value::none();
}
constexpr NativeDef kTime[] = {
    {"time()", wall_time, "seconds since 1970"},
    {"perf_counter()", perf_counter, "seconds of a clock that never jumps"},
    {"perf_counter_ns()", perf_counter_ns, "the same in nanoseconds"},
    {"monotonic()", perf_counter, "the same as perf_counter()"},
    {"sleep(seconds)", sleep, "waits; Ctrl-C ends it"},
};
void fill_time(Interp&, ModuleObject& m) { add_functions(m, kTime); }

/// One generator per session; its numbers are not CPython's.
struct Generator {
  explicit Generator(Interp&) {}
  std::mt19937_64 engine{std::random_device{}()};
};
std::mt19937_64& engine(Interp& in) { return in.state<Generator>().engine; }
double unit(Interp& in) { return static_cast<double>(engine(in)() >> 11) * 0x1p-53; }
int64_t below(Interp& in, int64_t n) { return std::uniform_int_distribution<int64_t>(0, n - 1)(engine(in)); }

Value random_seed(Interp& in, NativeArgs& a) {
  engine(in).seed(a[0].missing() || a[0].is_none() ? std::random_device{}() : in.hash(a[0]));
  return Value::none();
}
Value random_random(Interp& in, NativeArgs&) { return Value::real(unit(in)); }
Value uniform(Interp& in, NativeArgs& a) {
  double low = in.to_double(a[0], "a"), high = in.to_double(a[1], "b");
  return Value::real(low + (high - low) * unit(in));
}
Value gauss(Interp& in, NativeArgs& a) {
  double mean = a[0].missing() ? 0 : in.to_double(a[0], "mu"), sigma = a[1].missing() ? 1 : in.to_double(a[1], "sigma");
  return Value::real(mean + sigma * std::sqrt(-2 * std::log(1 - unit(in))) * std::cos(2 * M_PI * unit(in)));
}
Value randint(Interp& in, NativeArgs& a) {
  int64_t low = in.to_int(a[0], "a"), high = in.to_int(a[1], "b");
  if (low > high) in.fail(ErrorKind::kValue, "randint({}, {}): the range is empty", low, high);
  return Value::integer(std::uniform_int_distribution<int64_t>(low, high)(engine(in)));
}
Value randrange(Interp& in, NativeArgs& a) {
  int64_t low = a[1].missing() ? 0 : in.to_int(a[0], "start"), high = in.to_int(a[1].missing() ? a[0] : a[1], "stop");
  if (low >= high) in.fail(ErrorKind::kValue, "randrange(): the range is empty");
  return Value::integer(low + below(in, high - low));
}
Value choice(Interp& in, NativeArgs& a) {
  int64_t n = in.length(a[0]);
  if (n == 0) in.fail_as("IndexError", "choice() from nothing");
  return in.item(a[0], Value::integer(below(in, n)));
}
Value shuffle(Interp& in, NativeArgs& a) {
  auto* list = a[0].get<List>();
  if (!list) in.fail(ErrorKind::kType, "shuffle() needs a list, got '{}'", in.type_name(a[0]));
  for (size_t i = list->items.size(); i > 1; --i)
    std::swap(list->items[i - 1], list->items[static_cast<size_t>(below(in, static_cast<int64_t>(i)))]);
  return Value::none();
}
constexpr NativeDef kRandom[] = {
    {"seed(value=None)", random_seed, "restarts the sequence"},
    {"random()", random_random, "a float in [0, 1)"},
    {"uniform(a, b)", uniform, "a float in [a, b)"},
    {"gauss(mu=0.0, sigma=1.0)", gauss, "a normally distributed float"},
    {"randint(a, b)", randint, "an int from a to b, both included"},
    {"randrange(start, stop=)", randrange, "an int from start to below stop"},
    {"choice(sequence)", choice, "one of the elements"},
    {"shuffle(list)", shuffle, "puts a list into a random order"},
};
void fill_random(Interp&, ModuleObject& m) { add_functions(m, kRandom); }

/// Modules that scripts import for annotations and the like; what they offer works or is accepted without effect.
void fill_empty(Interp&, ModuleObject&) {}
void fill_typing(Interp& in, ModuleObject& m) {
  for (std::string_view name : {"Any", "Optional", "Union", "List", "Dict", "Tuple", "Callable"})
    m.members.set(name, in.type_of(Kind::kInstance));
}

constexpr ModuleDef kStdModules[] = {
    {"__future__", fill_empty}, {"math", fill_math}, {"os", fill_os},     {"os.path", fill_os_path},
    {"random", fill_random},    {"sys", fill_sys},   {"time", fill_time}, {"typing", fill_typing},
};

}  // namespace

std::span<const ModuleDef> std_modules() { return kStdModules; }

void install_exits(Interp& in) { in.add_builtins(kExits); }

}  // namespace kiln::script
