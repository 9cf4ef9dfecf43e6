// triton.testing: do_bench, and perf_report with its tables.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "repl/modules/torch/pending.h"
#include "repl/modules/torch/tensor_object.h"
#include "repl/modules/triton/kernel.h"

namespace kiln::script {

std::vector<double> bench_samples(Interp& in, const std::function<void()>& run, double warmup_ms, double rep_ms) {
  constexpr int kProbe = 3, kLeast = 5, kMost = 10000;
  Device& device = torch_state(in).device();
  int64_t cache_bytes[] = {std::max<int64_t>(2 * device.info().l2_bytes, 1 << 20)};
  Tensor cache = in.take(Tensor::empty(device, DType::kI8, cache_bytes));
  // Each run starts with caches full of something else, as do_bench of Triton does.
  auto timed = [&] {
    in.check_interrupt();
    in.check(cache.fill(0));
    Event start = in.take(device.record());
    run();
    Event stop = in.take(device.record());
    return in.take(device.elapsed_ms(start, stop));
  };
  run();
  in.check(device.synchronize());
  // What a run costs with the caches' filling: where caches are large, that is nearly all of it.
  Event first = in.take(device.record());
  for (int i = 0; i < kProbe; ++i) timed();
  Event last = in.take(device.record());
  double estimate = std::max<double>(in.take(device.elapsed_ms(first, last)) / kProbe, 1e-4);
  int warm = static_cast<int>(std::clamp(warmup_ms / estimate, 1.0, double{kMost})),
      rep = static_cast<int>(std::clamp(rep_ms / estimate, double{kLeast}, double{kMost}));
  for (int i = 0; i < warm; ++i) {
    in.check_interrupt();
    run();
  }
  std::vector<double> samples;
  for (int i = 0; i < rep; ++i) samples.push_back(timed());
  return samples;
}

namespace {

/// Linear interpolation between order statistics, as torch.quantile.
double quantile(const std::vector<double>& sorted, double q) {
  double at = q * static_cast<double>(sorted.size() - 1);
  size_t i = static_cast<size_t>(at);
  double next = i + 1 < sorted.size() ? sorted[i + 1] : sorted[i];
  return sorted[i] + (next - sorted[i]) * (at - static_cast<double>(i));
}

/// (fn, warmup, rep, grad_to_none, quantiles, return_mode)
Value do_bench(Interp& in, NativeArgs& a) {
  Value fn = a[0];
  double warmup = a[1].missing() ? 25 : in.to_double(a[1], "warmup"),
         rep = a[2].missing() ? 100 : in.to_double(a[2], "rep");
  std::vector<double> ms = bench_samples(
      in,
      [&] {
        Value result = in.call(fn, {});
        torch_state(in).pending()->run_all(in);  // an expression that it gave is what is to be timed
      },
      warmup, rep);
  std::sort(ms.begin(), ms.end());
  if (!a[4].missing() && !a[4].is_none()) {
    std::vector<Value> out;
    for (const Value& q : in.to_vector(a[4])) {
      double p = in.to_double(q, "a quantile");
      if (!(p >= 0 && p <= 1)) in.fail(ErrorKind::kValue, "a quantile is from 0 to 1, got {}", in.repr(q));
      out.push_back(Value::real(quantile(ms, p)));
    }
    return out.size() == 1 ? out[0] : Value(make<Tuple>(std::move(out)));
  }
  std::string mode = a[5].missing() ? "mean" : in.to_text(a[5], "return_mode");
  if (mode == "all") {
    std::vector<Value> out;
    for (double v : ms) out.push_back(Value::real(v));
    return make<List>(std::move(out));
  }
  if (mode == "min") return Value::real(ms.front());
  if (mode == "max") return Value::real(ms.back());
  if (mode == "median") return Value::real(quantile(ms, 0.5));
  if (mode != "mean")
    in.fail(ErrorKind::kValue, "return_mode is 'min', 'max', 'mean', 'median' or 'all', got '{}'", mode);
  return Value::real(std::accumulate(ms.begin(), ms.end(), 0.0) / static_cast<double>(ms.size()));
}

/// A Benchmark is its arguments.
class Benchmark : public Object {
 public:
  static inline const KindOf<Benchmark> kKind{"triton.testing.Benchmark"};
  Benchmark() : Object(kKind) {}
  std::vector<std::string> x_names, line_names;
  std::vector<Value> x_values, line_values;
  std::string line_arg, plot_name;
  Ref<Dict> args;
  std::string repr(Interp&) override { return "<triton.testing.Benchmark " + plot_name + ">"; }
};

/// (x_names, x_vals, line_arg, line_vals, line_names, plot_name, args, styles…)
Value benchmark(Interp& in, NativeArgs& a) {
  auto b = make<Benchmark>();
  for (const Value& v : in.to_vector(a[0])) b->x_names.push_back(in.to_text(v, "an x_name"));
  b->x_values = in.to_vector(a[1]);
  b->line_arg = in.to_text(a[2], "line_arg");
  b->line_values = in.to_vector(a[3]);
  for (const Value& v : in.to_vector(a[4])) b->line_names.push_back(in.to_text(v, "a line_name"));
  b->plot_name = in.to_text(a[5], "plot_name");
  b->args = Ref<Dict>(a[6].get<Dict>());
  if (!b->args) in.fail(ErrorKind::kType, "Benchmark's args must be a dict, got '{}'", in.type_name(a[6]));
  if (b->line_names.size() != b->line_values.size())
    in.fail(ErrorKind::kValue, "Benchmark has {} line_vals and {} line_names", b->line_values.size(),
            b->line_names.size());
  return b;
}

void print_table(Interp& in, const std::vector<std::vector<std::string>>& rows) {
  std::vector<size_t> width(rows[0].size());
  for (const auto& row : rows)
    for (size_t i = 0; i < row.size(); ++i) width[i] = std::max(width[i], row[i].size());
  for (const auto& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i)
      line += (i ? "  " : "") + std::string(width[i] - row[i].size(), ' ') + row[i];
    in.print(line + "\n");
  }
}

void run_benchmark(Interp& in, const Value& fn, Benchmark& b, bool print, std::vector<Value>& out) {
  std::vector<std::vector<std::string>> rows(1);
  rows[0] = {""};
  rows[0].insert(rows[0].end(), b.x_names.begin(), b.x_names.end());
  rows[0].insert(rows[0].end(), b.line_names.begin(), b.line_names.end());
  auto result = make<List>();
  for (size_t i = 0; i < b.x_values.size(); ++i) {
    std::vector<Value> xs = b.x_values[i].get<Tuple>() || b.x_values[i].get<List>()
                                ? in.to_vector(b.x_values[i])
                                : std::vector<Value>(b.x_names.size(), b.x_values[i]);
    if (xs.size() != b.x_names.size())
      in.fail(ErrorKind::kValue, "Benchmark has {} x_names, but a value of {} parts", b.x_names.size(), xs.size());
    std::vector<std::string> row{std::to_string(i)};
    std::vector<Value> numbers = xs;
    for (const Value& x : xs) row.push_back(in.str(x));
    for (const Value& line : b.line_values) {
      CallArgs call;
      for (size_t k = 0; k < xs.size(); ++k) call.keywords.push_back({b.x_names[k], xs[k], {}});
      call.keywords.push_back({b.line_arg, line, {}});
      for (const auto& e : b.args->table.live())
        call.keywords.push_back({in.to_text(e.key, "a key of args"), e.value, e.key});
      Value v = in.call(fn, call);
      // (median, low, high), or one figure
      if (auto* t = v.get<Tuple>(); t && !t->items.empty()) v = t->items[0];
      row.push_back(v.is_none() ? "-" : fmt::format("{:.6f}", in.to_double(v, "a benchmark's result")));
      numbers.push_back(v);
    }
    rows.push_back(std::move(row));
    result->items.push_back(make<Tuple>(std::move(numbers)));
  }
  out.push_back(result);
  if (!print) return;
  in.print(b.plot_name + ":\n");
  print_table(in, rows);
}

Value perf_report(Interp& in, NativeArgs& a) {
  std::vector<Ref<Benchmark>> all;
  for (const Value& v : a[0].get<List>() || a[0].get<Tuple>() ? in.to_vector(a[0]) : std::vector<Value>{a[0]}) {
    auto* b = v.get<Benchmark>();
    if (!b) in.fail(ErrorKind::kType, "perf_report needs triton.testing.Benchmark(…), got '{}'", in.type_name(v));
    all.emplace_back(b);
  }
  auto decorator = make<Opaque>("triton.testing.perf_report(…)");
  decorator->on_call = [all](Interp& interp, CallArgs& args) -> Value {
    if (args.args.size() != 1) interp.fail(ErrorKind::kType, "@perf_report(…) decorates one function");
    auto mark = make<Opaque>("triton.testing.Mark");
    auto run = make<Opaque>("run");
    run->on_call = [all, fn = args.args[0]](Interp& i2, CallArgs& call) -> Value {
      // show_plots and save_path ask for pictures, which Kiln does not draw here: the table holds the same figures.
      bool print = false, data = false;
      for (const KeywordArg& k : call.keywords) {
        if (k.name == "print_data")
          print = i2.truth(k.value);
        else if (k.name == "return_df")
          data = i2.truth(k.value);
        else if (k.name != "show_plots" && k.name != "save_path" && k.name != "diff_col")
          i2.fail(ErrorKind::kName, "run() has no argument '{}'", k.name);
      }
      std::vector<Value> out;
      for (const auto& b : all) run_benchmark(i2, fn, *b, print || !data, out);
      if (!data) return Value::none();
      return out.size() == 1 ? out[0] : Value(make<List>(std::move(out)));
    };
    mark->members.set("run", run);
    return mark;
  };
  return decorator;
}

Value assert_close(Interp& in, NativeArgs& a) {
  CallArgs call;
  call.args.push_back(a[0]);
  call.args.push_back(a[1]);
  if (!a[2].missing() && !a[2].is_none()) call.keywords.push_back({"atol", a[2], {}});
  if (!a[3].missing() && !a[3].is_none()) call.keywords.push_back({"rtol", a[3], {}});
  if (call.keywords.size() == 1)
    call.keywords.push_back({call.keywords[0].name == "atol" ? "rtol" : "atol", Value::real(0), {}});
  return in.call(in.attribute(in.import_module("torch.testing"), "assert_close"), call);
}

constexpr NativeDef kTesting[] = {
    {"do_bench(fn, warmup=25, rep=100, grad_to_none=None, quantiles=None, return_mode='mean')", do_bench,
     "milliseconds of a call on the device"},
    {"perf_report(benchmarks)", perf_report, "runs a function over a Benchmark's values: .run(print_data=True)"},
    {"Benchmark(x_names, x_vals, line_arg, line_vals, line_names, plot_name, args, styles=None, ylabel='', xlabel='', "
     "x_log=False, y_log=False)",
     benchmark, "the axes and lines of a perf_report"},
    {"assert_close(x, y, atol=None, rtol=None, err_msg='')", assert_close, "an error unless all elements are close"},
};

}  // namespace

void fill_testing(Interp&, ModuleObject& m) { add_functions(m, kTesting); }

}  // namespace kiln::script
