#include "repl/magics/contenders.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <random>
#include <set>

#include "profiler/report/table.h"
#include "repl/magics/expr_contenders.h"
#include "repl/script/interp/interp.h"
#include "repl/shell/files.h"
#include "support/diag.h"
#include "support/text.h"
#include "support/text_width.h"

namespace kiln::repl {

namespace {

using profiler::Contender;
using profiler::Facts;

bool is_callable(const script::Value& v) {
  return v.get<script::Function>() || v.get<script::BoundMethod>() || v.get<script::Native>();
}

// Every tensor once, as if each were read or written whole: a model that bytes= replaces.
double tensor_bytes(const std::vector<script::Launched>& launches) {
  double bytes = 0;
  for (const script::Launched& l : launches) {
    std::set<std::pair<uint64_t, int64_t>> seen;
    // By address and size: two views of the same memory of different sizes are two, as a kernel reads both.
    for (const Tensor& t : l.tensors)
      if (seen.insert({t.address(), t.numel()}).second)
        bytes += static_cast<double>(t.numel()) * static_cast<double>(size_of(t.dtype()));
  }
  return bytes;
}

Facts facts_of(const std::vector<script::Launched>& launches, const Declared& declared) {
  Facts facts;
  for (const script::Launched& l : launches) add_kernel(facts, l.info);
  // -1: nothing is known. Without a launch there is no argument to count.
  facts.bytes = declared.bytes >= 0 ? declared.bytes : launches.empty() ? -1 : tensor_bytes(launches);
  facts.flop = declared.flop;
  facts.product = declared.product;
  return facts;
}

Contender failed(const std::string& text, const Device& device, Diagnostic why) {
  Contender c;
  c.name = text;
  c.device = device;
  c.problem = std::move(why);
  return c;
}

Result<int> pairs_of(const std::string& text) {
  // A verdict needs 6 pairs at the least, and a few more to find a small difference; 200 is what a contest takes by
  // itself.
  constexpr int kLeast = 12, kMost = 200;
  int n = 0;
  // Anything but a digit, or a number too long for int, becomes one that the range below refuses.
  for (char c : text) n = c >= '0' && c <= '9' && n < 10000 ? 10 * n + (c - '0') : 100000;
  if (n < kLeast || n > kMost)
    return error(ErrorKind::kValue, "pairs= is a number from {} to {}, got {}", kLeast, kMost, text);
  return n;
}

constexpr int kLongName = 36;  // columns; longer ones are shortened to their differences

// A syntax error would come again in each contender, and Ctrl-C means all of them.
bool ends_all(ErrorKind kind) { return kind == ErrorKind::kSyntax || kind == ErrorKind::kInterrupted; }

}  // namespace

Result<double> number_of(script::Session& session, const std::string& text, std::string_view what) {
  KILN_TRY(std::string value, session.evaluate(text));
  double number = 0;
  auto [end, code] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (code != std::errc{} || end != value.data() + value.size())
    return error(ErrorKind::kType, "{} is a number, got {}", what, value);
  return number;
}

Result<double> seconds_of(const std::string& text) {
  double number = 0;
  auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
  std::string_view unit(end, static_cast<size_t>(text.data() + text.size() - end));
  if (code == std::errc{} && number > 0 && std::isfinite(number)) {
    if (unit.empty() || unit == "s") return number;
    // No unit is seconds.
    if (unit == "ms") return number / 1000;
    if (unit == "min" || unit == "m") return number * 60;
  }
  return error(ErrorKind::kValue, "a budget is a time like 10s or 500ms, not '{}'", text);
}

Result<double> amount_of(script::Session& session, const std::string& text, std::string_view what) {
  KILN_TRY(const double number, number_of(session, text, what));
  if (std::isfinite(number) && number >= 0) return number;
  return error(ErrorKind::kValue, "{} takes a number of at least 0, got {}", what, number);
}

Result<Declared> declared_by(script::Session& session, const MagicArguments& arguments) {
  Declared d;
  if (const std::string* names = arguments.find("out")) {
    std::string list = *names;
    // The brackets of out=(y) and out=[y] mean nothing; they are a habit from Python.
    if (list.size() > 1 && (list.front() == '(' || list.front() == '[')) list = list.substr(1, list.size() - 2);
    for (size_t at = 0; at <= list.size();) {
      size_t end = std::min(list.find(',', at), list.size());
      std::string one = list.substr(at, end - at);
      at = end + 1;
      if (one.empty()) continue;
      // Asked now, before anything is measured, so that a wrong name costs no time.
      KILN_TRY([[maybe_unused]] Tensor exists, session.tensor(one));
      d.outputs.push_back(one);
    }
    if (d.outputs.size() != 1)
      return error(ErrorKind::kValue, "out= names the one tensor that is looked at, got {}", d.outputs.size());
  }
  if (const std::string* bytes = arguments.find("bytes")) {
    KILN_TRY(d.bytes, amount_of(session, *bytes, "bytes="));
  }
  if (const std::string* flop = arguments.find("flop")) {
    KILN_TRY(d.flop, amount_of(session, *flop, "flop="));
  }
  if (const std::string* type = arguments.find("dtype")) {
    d.product = parse_dtype(*type);
    if (!d.product) return error(ErrorKind::kValue, "dtype= names the operands of products, as bf16, not '{}'", *type);
  }
  return d;
}

namespace {

bool is_name(const std::string& text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; });
}

/// The facts of an expression's plan, where nothing better is declared.
Facts planned_facts(Facts facts, const Declared& declared) {
  if (declared.bytes >= 0) facts.bytes = declared.bytes;
  if (declared.flop >= 0) facts.flop = declared.flop;
  if (declared.product) facts.product = declared.product;
  return facts;
}

int64_t plans_run(const Device& device) {
  const ExprCacheStats s = expr_cache_stats(device);
  // Found ones count: a plan from the cache runs all the same.
  return s.planned + s.found;
}

}  // namespace

Result<Contender> statement_contender(script::Session& session, const std::string& text, const Declared& declared) {
  KILN_TRY(Device device, session.device());
  if (is_name(text)) {
    // The name of a tensor that is computed already: there is nothing to measure.
    if (auto expr = session.expression(text); !expr.ok() && expr.error().kind == ErrorKind::kValue)
      return failed(text, device, std::move(expr.error()));
    // A pending expression is planned and not run, so it needs none of the checks below.
    KILN_TRY(std::optional<Contender> planned, fused_contender(session, text));
    if (planned) {
      planned->facts = planned_facts(planned->facts, declared);
      return *std::move(planned);
    }
  }
  auto prepared = session.prepare_value(text);
  if (!prepared.ok()) return std::move(prepared.error());
  auto stop_or_row = [&](Diagnostic d) -> Result<Contender> {
    // A contender that fails is a row of the table with its problem; the others are measured all the same.
    if (ends_all(d.kind)) return d;
    return failed(text, device, std::move(d));
  };
  // Compiles, lets an autotuner choose, and looks at each access before one can end the device.
  const auto wanted = script::AccessChecks::kWherePossible;
  auto looked = session.checked(prepared->run, wanted);
  if (!looked.ok()) return stop_or_row(std::move(looked.error()));
  const bool is_function = is_callable(*prepared->value);
  if (is_function) {
    // `%compare f g` of functions without arguments: their calls are meant, not their names.
    prepared = session.prepare_value("(" + text + ")()");
    if (!prepared.ok()) return std::move(prepared.error());
    looked = session.checked(prepared->run, wanted);
    if (!looked.ok()) return stop_or_row(std::move(looked.error()));
  }
  const auto first = session.tensor_of(*prepared->value);
  // Of the result's device: a script may compute on another than its current one.
  const Device planned_on = first.ok() && *first ? (*first)->device() : device;
  const int64_t plans = plans_run(planned_on);
  auto launches = session.launches_of(prepared->run);
  // Of several plans the facts would have to be added up, and this text is not all of them.
  const bool one_plan = plans_run(planned_on) - plans == 1;
  if (!launches.ok()) return stop_or_row(std::move(launches.error()));
  // The last launch's fault shows here, as this contender's and not as the next one's.
  if (Status s = device.synchronize(); !s.ok()) return stop_or_row(std::move(s.error()));

  Contender c;
  c.name = text;
  c.device = device;
  c.launch = prepared->run;
  c.facts = facts_of(*launches, declared);
  // Of several accesses that were refused the first is enough: the note is one cell of a table.
  if (!looked->refused.empty()) c.facts.note = looked->refused[0];
  if (one_plan && launches->empty()) {
    auto planned = fused_contender(session, is_function ? "(" + text + ")()" : text);
    if (planned.ok() && *planned && (*planned)->problem.ok()) c.facts = planned_facts((*planned)->facts, declared);
  }
  auto result = session.tensor_of(*prepared->value);
  if (!result.ok()) return stop_or_row(std::move(result.error()));
  if (*result) c.device = (*result)->device();
  // The launch's device comes before the result's, which may be a copy on the host.
  if (!launches->empty() && !launches->front().tensors.empty()) c.device = launches->front().tensors.front().device();
  if (*result) {
    // Each time anew: a call may give another tensor than the one before.
    c.output = [&session, value = prepared->value]() -> Result<Tensor> {
      KILN_TRY(std::optional<Tensor> tensor, session.tensor_of(*value));
      if (!tensor) return error(ErrorKind::kType, "it gives a tensor at one time and none at another");
      return *std::move(tensor);
    };
  } else if (!declared.outputs.empty()) {
    KILN_TRY(Tensor out, session.tensor(declared.outputs[0]));
    c.output = [out]() -> Result<Tensor> { return out; };
    // What the launch does not write must not be there from another contender.
    // 85 is 0x55 in a byte: no float's NaN, but a value that a kernel hardly writes by chance.
    const double poison = is_float(out.dtype()) ? std::numeric_limits<double>::quiet_NaN() : 85;
    c.poison = [out, poison] { return out.fill(poison); };
  }
  return c;
}

Result<std::function<Status()>> statement_runner(script::Session& session, std::string statement,
                                                 const std::string& label) {
  // A call is no kernel's name, and to ask would run it.
  if (statement.find('(') == std::string::npos && session.kernel(statement).ok()) {
    auto launch = session.last_launch(statement);
    if (!launch)
      return with_note(error(ErrorKind::kValue, "{} has not been launched yet, so there is nothing to run", statement),
                       fmt::format("help: {}[grid](…)", statement));
    statement = *launch;
  }
  // At its name alone the last launch is repeated: the kernel needs its grid and arguments.
  // As a statement the first run would compute it, and there would be nothing left for the others.
  if (const std::string name(trimmed(statement)); is_name(name)) {
    if (auto expr = session.expression(name); !expr.ok() && expr.error().kind == ErrorKind::kValue)
      return std::move(expr.error());
    KILN_TRY(const std::optional<Contender> pending, fused_contender(session, name));
    if (pending && !pending->problem.ok()) return pending->problem.error();
    // The plan's own launch, which leaves the tensor pending.
    if (pending) return pending->launch;
  }
  return session.prepare_statements(std::move(statement), label);
}

Result<ContenderSet> make_contenders(script::Session& session, const ExpandVariants& variants,
                                     const MagicArguments& arguments) {
  if (arguments.expressions.size() == 1 && variants) {
    KILN_TRY(std::optional<ContenderSet> set, variants(session, arguments.expressions[0]));
    if (set) return *std::move(set);
  }
  KILN_TRY(Declared declared, declared_by(session, arguments));
  ContenderSet set;
  for (const std::string& text : arguments.expressions) {
    KILN_TRY(Contender contender, statement_contender(session, text, declared));
    set.contenders.push_back(std::move(contender));
  }
  std::vector<std::string> names = short_names(arguments.expressions);
  // Shortened after all are made: a problem names the whole text.
  for (size_t i = 0; i < names.size(); ++i) set.contenders[i].name = names[i];
  return set;
}

void show_progress(std::string_view text) {
  // A log file would have one long line of carriage returns.
  if (!isatty(STDERR_FILENO)) return;
  const std::string shown = printable(text);
  const int columns = report::terminal_columns(STDERR_FILENO);
  const std::string_view line = columns > 0 ? beginning_of_width(shown, columns - 1) : shown;
  // One column less than the terminal has: at the last one some terminals wrap. \033[K erases the rest of the line.
  put(stderr, fmt::format("\r\033[K{}", line));
}

void tell_progress(const script::Session& session, std::string_view what) {
  session.on_progress ? session.on_progress(what) : show_progress(what);
}

bool shows_progress(const script::Session& session) { return session.on_progress || isatty(STDERR_FILENO); }

Result<profiler::ContestOptions> contest_options(script::Session& session, const MagicArguments& arguments) {
  profiler::ContestOptions o;
  // Another order of pairs at each run, so that a chance advantage of one order does not repeat.
  o.seed = std::random_device{}();
  if (const std::string* budget = arguments.find("budget")) {
    KILN_TRY(o.timeout_s, seconds_of(*budget));
  }
  if (const std::string* pairs = arguments.find("pairs")) {
    KILN_TRY(o.max_pairs, pairs_of(*pairs));
  }
  if (const std::string* tolerance = arguments.find("tol")) {
    KILN_TRY(o.tolerance, amount_of(session, *tolerance, "tol="));
  }
  if (const std::string* cache = arguments.find("cache")) {
    if (*cache != "cold" && *cache != "hot") return error(ErrorKind::kValue, "cache= is cold or hot, not '{}'", *cache);
    o.cache = *cache == "hot" ? profiler::Cache::kHot : profiler::Cache::kCold;
  }
  if (shows_progress(session)) o.progress = [&session](std::string_view what) { tell_progress(session, what); };
  return o;
}

std::vector<std::string> short_names(const std::vector<std::string>& texts) {
  const bool any_long =
      std::any_of(texts.begin(), texts.end(), [](const auto& t) { return report::display_width(t) > kLongName; });
  // One name alone has nothing to differ from.
  if (!any_long || texts.size() < 2) return texts;
  const std::string& first = texts[0];
  size_t prefix = first.size(), suffix = first.size(), shortest = first.size();
  for (const std::string& t : texts) {
    shortest = std::min(shortest, t.size());
    size_t i = 0;
    while (i < std::min(prefix, t.size()) && t[i] == first[i]) ++i;
    prefix = i;
    i = 0;
    while (i < std::min(suffix, t.size()) && t[t.size() - 1 - i] == first[first.size() - 1 - i]) ++i;
    suffix = i;
  }
  // To the next beginning of a word, so that names and numbers stay whole.
  auto in_word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '=' || c == '.'; };
  while (prefix > 0 && in_word(first[prefix - 1])) --prefix;
  while (suffix > 0 && in_word(first[first.size() - suffix])) --suffix;
  // The shortest text may be covered by both ends: `f(a)` and `f(a, a)`.
  if (prefix + suffix > shortest) suffix = shortest - std::min(prefix, shortest);
  // An ellipsis takes a column and the reader's attention, so fewer characters than this are not worth it.
  constexpr size_t kWorthIt = 4;
  if (prefix < kWorthIt) prefix = 0;
  if (suffix < kWorthIt) suffix = 0;
  std::vector<std::string> names;
  std::set<std::string> distinct;
  for (const std::string& t : texts) {
    std::string middle = t.substr(prefix, t.size() - prefix - suffix);
    while (!middle.empty() && (middle.back() == ' ' || middle.back() == ',')) middle.pop_back();
    names.push_back((prefix ? "…" : "") + middle + (suffix ? "…" : ""));
    // Where a name came out empty or twice, the whole texts are the better names.
    if (middle.empty() || !distinct.insert(names.back()).second) return texts;
  }
  return names;
}

}  // namespace kiln::repl
