// _time: the clocks of library/time.py, and times as fields and texts.
#include <algorithm>
#include <chrono>
#include <ctime>
#include <limits>
#include <thread>

#include "repl/modules/modules.h"
#include "repl/modules/std/std.h"
#include "repl/modules/torch/pending.h"
#include "repl/modules/torch/torch_state.h"

namespace kiln::script {

namespace {

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
  const double seconds = in.to_double(a[0], "sleep()'s seconds");
  // NaN too, which would end at once.
  if (!(seconds >= 0)) in.fail(ErrorKind::kValue, "sleep length must be non-negative, got {}", in.repr(a[0]));
  const double end = seconds_now() + seconds;
  for (double left; (left = end - seconds_now()) > 0; in.check_interrupt())
    std::this_thread::sleep_for(std::chrono::duration<double>(std::min(left, 0.02)));
  return Value::none();
}
Value time_ns(Interp& in, NativeArgs&) {
  torch_state(in).pending()->before_clock(in);
  return Value::integer(
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch())
          .count());
}
Value process_time(Interp&, NativeArgs&) { return Value::real(static_cast<double>(std::clock()) / CLOCKS_PER_SEC); }

/// As a struct_time has them: months and days of the year from 1, Monday is 0; behind them its zone.
Value fields(Interp& in, NativeArgs& a) {
  const std::time_t when = in.to_int(a[0], "the seconds");
  std::tm t{};
  if (!(in.truth(a[1]) ? localtime_r(&when, &t) : gmtime_r(&when, &t)))
    in.fail_as("OverflowError", "{} seconds are out of the range of years", in.repr(a[0]));
  std::vector<Value> out;
  for (const int field : {t.tm_year + 1900, t.tm_mon + 1, t.tm_mday, t.tm_hour, t.tm_min, t.tm_sec, (t.tm_wday + 6) % 7,
                          t.tm_yday + 1, t.tm_isdst})
    out.push_back(Value::integer(field));
  out.push_back(Value::integer(t.tm_gmtoff));
  out.push_back(Value::str(t.tm_zone ? t.tm_zone : ""));
  return make<Tuple>(std::move(out));
}

/// The first nine of what fields() gives.
std::tm tm_of(Interp& in, const Value& v) {
  struct Range {
    const char* what;
    int64_t least, most;
  };
  // As wide as strftime() takes them: 0 for the first month and the first day, a leap second.
  constexpr int64_t kYears = std::numeric_limits<int>::max();
  constexpr Range kRanges[] = {{"year", -kYears, kYears}, {"month", 0, 12},        {"day of month", 0, 31},
                               {"hour", 0, 23},           {"minute", 0, 59},       {"seconds", 0, 61},
                               {"day of week", -1, 6},    {"day of year", 0, 366}, {"daylight saving", -1, 1}};
  const std::vector<Value> given = in.to_vector(v);
  if (given.size() < std::size(kRanges)) in.fail(ErrorKind::kType, "a time has 9 fields, got {}", given.size());
  int64_t n[std::size(kRanges)];
  for (size_t i = 0; i < std::size(kRanges); ++i) {
    n[i] = in.to_int(given[i], kRanges[i].what);
    if (n[i] < kRanges[i].least || n[i] > kRanges[i].most)
      in.fail(ErrorKind::kValue, "{} out of range", kRanges[i].what);
  }
  auto part = [&](size_t i) { return static_cast<int>(n[i]); };
  std::tm t{};
  t.tm_year = part(0) - 1900, t.tm_mon = std::max(part(1), 1) - 1, t.tm_mday = std::max(part(2), 1);
  t.tm_hour = part(3), t.tm_min = part(4), t.tm_sec = part(5);
  t.tm_wday = (part(6) + 1) % 7, t.tm_yday = std::max(part(7), 1) - 1, t.tm_isdst = part(8);
  return t;
}

Value seconds_of(Interp& in, NativeArgs& a) {
  std::tm t = tm_of(in, a[0]);
  t.tm_wday = -1;  // mktime() sets it where it succeeds: -1 is a second like any other
  const std::time_t seconds = std::mktime(&t);
  if (t.tm_wday < 0) in.fail_as("OverflowError", "the time is out of the range of mktime()");
  return Value::integer(seconds);
}

Value text(Interp& in, NativeArgs& a) {
  std::string format = in.to_text(a[0], "strftime()'s format");
  std::tm t = tm_of(in, a[1]);
  const std::string zone = given(a[2]) ? in.to_text(a[2], "the zone") : std::string();
  std::tm with_zone = t;
  with_zone.tm_wday = -1;
  // A tuple of one's own has no zone: it is this machine's at that time.
  if (!given(a[2]) && (std::mktime(&with_zone), with_zone.tm_wday >= 0))
    t.tm_gmtoff = with_zone.tm_gmtoff, t.tm_zone = with_zone.tm_zone;
  else
    t.tm_gmtoff = given(a[3]) ? in.to_int(a[3], "the offset") : 0, t.tm_zone = zone.c_str();
  // The result of an empty format cannot be told from one that has no room: a character more makes it longer.
  format += ' ';
  constexpr size_t kMost = size_t{1} << 20;
  for (size_t room = 16 * format.size() + 64; room <= std::max(kMost, 64 * format.size()); room *= 4) {
    std::string out(room, 0);
    out.resize(std::strftime(out.data(), out.size(), format.c_str(), &t));
    if (out.empty()) continue;
    out.pop_back();
    return Value::str(std::move(out));
  }
  in.fail(ErrorKind::kValue, "the text of strftime() would be longer than {} characters", kMost);
}

constexpr NativeDef kTime[] = {
    {"time()", wall_time, "seconds since 1970"},
    {"perf_counter()", perf_counter, "seconds of a clock that never jumps"},
    {"perf_counter_ns()", perf_counter_ns, "the same in nanoseconds"},
    {"monotonic()", perf_counter, "the same as perf_counter()"},
    {"time_ns()", time_ns, "nanoseconds since 1970"},
    {"monotonic_ns()", perf_counter_ns, "the same as perf_counter_ns()"},
    {"process_time()", process_time, "seconds of CPU time"},
    {"sleep(seconds)", sleep, "waits; Ctrl-C ends it"},
    {"fields(seconds, local)", fields, "year … daylight saving, offset, zone"},
    {"seconds(fields)", seconds_of, "since 1970, of a local time"},
    {"text(format, fields, zone=None, offset=None)", text, "as strftime() writes it"},
};

}  // namespace

void fill_time(Interp&, ModuleObject& m) { add_functions(m, kTime); }

}  // namespace kiln::script
