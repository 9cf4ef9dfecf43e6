// triton.testing: do_bench, and perf_report with its tables.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <tuple>
#include <utility>

#include "kiln/graph.h"
#include "profiler/measure/timer.h"
#include "profiler/report/plot.h"
#include "repl/modules/results/results.h"
#include "repl/modules/std/std.h"
#include "repl/modules/torch/lazy_scope.h"
#include "repl/modules/torch/pending.h"
#include "repl/modules/torch/tensor_object.h"
#include "repl/modules/triton/kernel.h"
#include "support/escape.h"
#include "support/files.h"

namespace kiln::script {

int64_t bytes_over_caches(const DeviceInfo& info) {
  // On a GPU as much as Triton's do_bench fills: that takes long enough for most launches to be queued behind it.
  const int64_t least = int64_t{info.target == "host" ? 1 : 256} << 20;
  return std::max(2 * info.l2_bytes, least);
}

int fills_ahead(double queue_ms, double fill_ms) {
  constexpr double kMost = 16, kMargin = 1.5;
  return fill_ms > 0 ? static_cast<int>(std::clamp(std::ceil(kMargin * queue_ms / fill_ms), 1.0, kMost)) : 1;
}

std::vector<double> bench_samples(Interp& in, const std::function<void()>& run, double warmup_ms, double rep_ms) {
  constexpr int kProbe = 3, kLeast = 5, kMost = 10000;
  Device& device = torch_state(in).device();
  int64_t cache_bytes[] = {bytes_over_caches(device.info())};
  Tensor cache = in.take(Tensor::empty(device, DType::kI8, cache_bytes));
  // Each run starts with caches full of something else, as do_bench of Triton does.
  auto fill = [&] {
    in.check_interrupt();
    in.check(cache.fill(0));
  };
  run();
  in.check(device.synchronize());
  // What a run costs with the caches' filling: where caches are large, that is nearly all of it.
  Event first = in.take(device.record());
  double fill_ms = HUGE_VAL, queue_ms = HUGE_VAL;
  for (int i = 0; i < kProbe; ++i) {
    Event before = in.take(device.record());
    fill();
    Event filled = in.take(device.record());
    const double start = profiler::steady_seconds();
    run();
    queue_ms = std::min(queue_ms, (profiler::steady_seconds() - start) * 1e3);
    fill_ms = std::min<double>(fill_ms, in.take(device.elapsed_ms(before, filled)));
  }
  Event last = in.take(device.record());
  double estimate = std::max<double>(in.take(device.elapsed_ms(first, last)) / kProbe, 1e-4);
  const int fills = device.is_cuda() ? fills_ahead(queue_ms, fill_ms) : 1;
  estimate += (fills - 1) * fill_ms;
  int warm = static_cast<int>(std::clamp(warmup_ms / estimate, 1.0, double{kMost})),
      rep = static_cast<int>(std::clamp(rep_ms / estimate, double{kLeast}, double{kMost}));
  for (int i = 0; i < warm; ++i) {
    in.check_interrupt();
    run();
  }
  // All are submitted before the first is waited for: on an idle GPU a launch between two events takes 0.3 us longer.
  std::vector<std::pair<Event, Event>> runs;
  for (int i = 0; i < rep; ++i) {
    for (int k = 0; k < fills; ++k) fill();
    Event start = in.take(device.record());
    run();
    runs.emplace_back(std::move(start), in.take(device.record()));
  }
  std::vector<double> samples;
  for (const auto& [start, stop] : runs) samples.push_back(in.take(device.elapsed_ms(start, stop)));
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

/// What do_bench gives for its samples: quantiles, or one figure.
Value figures(Interp& in, std::vector<double> ms, const Value& quantiles, const Value& return_mode) {
  std::sort(ms.begin(), ms.end());
  if (!quantiles.missing() && !quantiles.is_none()) {
    std::vector<Value> out;
    for (const Value& q : in.to_vector(quantiles)) {
      double p = in.to_double(q, "a quantile");
      if (!(p >= 0 && p <= 1)) in.fail(ErrorKind::kValue, "a quantile is from 0 to 1, got {}", in.repr(q));
      out.push_back(Value::real(quantile(ms, p)));
    }
    return out.size() == 1 ? out[0] : Value(make<Tuple>(std::move(out)));
  }
  std::string mode = return_mode.missing() ? "mean" : in.to_text(return_mode, "return_mode");
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
  return figures(in, std::move(ms), a[4], a[5]);
}

/// (fn, rep, grad_to_none, quantiles, return_mode). As Triton does it: warm caches, and as many calls in one graph as
/// fit into a tenth of `rep`.
Value do_bench_cudagraph(Interp& in, NativeArgs& a) {
  constexpr int kSamples = 10, kProbe = 5, kMost = 10000;
  const Value& fn = a[0];
  const double rep = a[1].missing() ? 20 : in.to_double(a[1], "rep");
  const LazyScope kernels(in);  // also of small tensors: what the host computes cannot be recorded
  Device& device = torch_state(in).device();
  auto call = [&] {
    in.check_interrupt();
    in.call(fn, {});
    torch_state(in).pending()->run_all(in);
  };
  call();  // compiles
  in.check(device.synchronize());
  Event first = in.take(device.record());
  for (int i = 0; i < kProbe; ++i) call();
  Event last = in.take(device.record());
  const double estimate = std::max<double>(in.take(device.elapsed_ms(first, last)) / kProbe, 1e-4);
  const int calls = static_cast<int>(std::clamp(rep / kSamples / estimate, 1.0, double{kMost}));
  GraphCapture capture = in.take(GraphCapture::begin(device));
  for (int i = 0; i < calls; ++i) call();
  const Graph graph = in.take(capture.end());
  std::vector<double> ms;
  for (int i = 0; i < kSamples; ++i) {
    in.check_interrupt();
    Event start = in.take(device.record());
    in.check(graph.launch());
    Event stop = in.take(device.record());
    ms.push_back(in.take(device.elapsed_ms(start, stop)) / calls);
  }
  return figures(in, std::move(ms), a[3], a[4]);
}

/// A Benchmark is its arguments.
class Benchmark : public Object {
 public:
  static inline const KindOf<Benchmark> kKind{"triton.testing.Benchmark"};
  Benchmark() : Object(kKind) {}
  std::vector<std::string> x_names, line_names;
  std::vector<Value> x_values, line_values;
  std::string line_arg, plot_name, x_label, y_label;
  bool x_log = false, y_log = false;
  Ref<Dict> args;
  std::vector<Value> given;  // in the order of kBenchmarkFields
  std::string repr(Interp&) override { return "<triton.testing.Benchmark " + plot_name + ">"; }
  std::optional<Value> attribute(Interp&, std::string_view name) override;
};

constexpr std::string_view kBenchmarkFields[] = {"x_names",    "x_vals",    "line_arg", "line_vals",
                                                 "line_names", "plot_name", "args",     "styles",
                                                 "ylabel",     "xlabel",    "x_log",    "y_log"};

std::optional<Value> Benchmark::attribute(Interp&, std::string_view name) {
  const auto* field = std::find(std::begin(kBenchmarkFields), std::end(kBenchmarkFields), name);
  if (field == std::end(kBenchmarkFields)) return std::nullopt;
  return given[static_cast<size_t>(field - kBenchmarkFields)];
}

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
  b->y_label = a[8].missing() ? "" : in.to_text(a[8], "ylabel");
  b->x_label = a[9].missing() ? "" : in.to_text(a[9], "xlabel");
  if (b->x_label.empty() && !b->x_names.empty()) b->x_label = b->x_names[0];
  b->x_log = !a[10].missing() && in.truth(a[10]);
  b->y_log = !a[11].missing() && in.truth(a[11]);
  if (b->line_names.size() != b->line_values.size())
    in.fail(ErrorKind::kValue, "Benchmark has {} line_vals and {} line_names", b->line_values.size(),
            b->line_names.size());
  const Value defaults[] = {Value::none(), Value::str(""), Value::str(""), Value::boolean(false),
                            Value::boolean(false)};
  constexpr size_t kRequired = 7;  // then come styles, ylabel, xlabel, x_log, y_log
  for (size_t i = 0; i < std::size(kBenchmarkFields); ++i)
    b->given.push_back(a[i].missing() ? defaults[i - kRequired] : a[i]);
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

/// What a call of the function gave: one figure, or (median, low, high).
struct Figure {
  double y = NAN, low = NAN, high = NAN;  // y NaN: None
};

Figure figure_of(Interp& in, const Value& v) {
  auto number = [&](const Value& n) { return in.to_double(n, "a benchmark's result"); };
  const auto* parts = v.get<Tuple>();
  if (!parts || parts->items.empty()) return v.is_none() ? Figure{} : Figure{number(v)};
  if (parts->items[0].is_none()) return {};
  Figure f{number(parts->items[0])};
  if (parts->items.size() < 3 || parts->items[1].is_none() || parts->items[2].is_none()) return f;
  // Rates of quantiles of times come in the other order.
  std::tie(f.low, f.high) = std::minmax({number(parts->items[1]), number(parts->items[2])});
  return f;
}

/// One row of results: the values of x, and a figure per line, also as the function gave it.
struct Row {
  std::vector<Value> xs, values;
  std::vector<Figure> figures;
};

report::Plot plot_of(Interp& in, const Benchmark& b, const std::vector<Row>& rows) {
  report::Plot plot;
  plot.title = b.plot_name;
  plot.x_label = b.x_label;
  plot.y_label = b.y_label;
  plot.x_log = b.x_log;
  plot.y_log = b.y_log;
  plot.bars = "the quantiles that the function gave";
  const bool is_number =
      std::ranges::all_of(rows, [](const Row& r) { return r.xs[0].is_float() || r.xs[0].is_small_int(); });
  if (!is_number) {
    plot.x_log = false;
    for (const Row& r : rows) plot.x_names.push_back(in.str(r.xs[0]));
  }
  for (size_t line = 0; line < b.line_names.size(); ++line) {
    plot.lines.push_back({b.line_names[line], {}, report::PlotForm::kMarked});
    for (size_t i = 0; i < rows.size(); ++i) {
      const Figure& f = rows[i].figures[line];
      plot.lines.back().points.push_back(
          {is_number ? in.to_double(rows[i].xs[0], "x") : static_cast<double>(i), f.y, f.low, f.high});
    }
    std::ranges::stable_sort(plot.lines.back().points, {}, &report::PlotPoint::x);
  }
  return plot;
}

/// Where the results of run() go besides what it gives.
struct Shown {
  bool print = false, plots = false, difference = false;
  int digits = 6;      // behind the point, in the file
  std::string folder;  // empty: no files
};

using Cells = std::vector<std::vector<std::string>>;

/// The table's texts. With two lines and `difference`, what the second has more than the first.
Cells cells_of(Interp& in, const Benchmark& b, const std::vector<Row>& rows, bool difference, int digits) {
  auto text = [&](double v) { return std::isnan(v) ? "-" : fmt::format("{:.{}f}", v, digits); };
  difference = difference && b.line_names.size() == 2;
  Cells cells(1);
  cells[0] = {""};
  cells[0].insert(cells[0].end(), b.x_names.begin(), b.x_names.end());
  cells[0].insert(cells[0].end(), b.line_names.begin(), b.line_names.end());
  if (difference) cells[0].push_back("Diff");
  for (size_t i = 0; i < rows.size(); ++i) {
    std::vector<std::string>& row = cells.emplace_back(1, std::to_string(i));
    for (const Value& x : rows[i].xs) row.push_back(in.str(x));
    for (const Figure& f : rows[i].figures) row.push_back(text(f.y));
    if (difference) row.push_back(text(rows[i].figures[1].y - rows[i].figures[0].y));
  }
  return cells;
}

/// Where a benchmark's files go, less the ending.
std::string file_of(const Benchmark& b, const std::string& folder) {
  std::string name = b.plot_name;  // no folder of its own
  std::replace(name.begin(), name.end(), '/', '_');
  return folder + "/" + name;
}

void save_csv(Interp& in, const Cells& rows, const std::string& file) {
  auto quoted = [](const std::string& cell) {
    if (cell.find_first_of(",\"\n") == std::string::npos) return cell;
    std::string out = "\"";
    for (char c : cell) out += c == '"' ? "\"\"" : std::string(1, c);
    return out + "\"";
  };
  std::string csv;
  for (const auto& row : rows) {
    for (size_t i = 1; i < row.size(); ++i) csv += (i > 1 ? "," : "") + quoted(row[i]);
    csv += "\n";
  }
  in.check(write_file_atomic(file, csv));
}

/// All plots on one page, as Triton writes it.
void save_page(Interp& in, const std::vector<Ref<Benchmark>>& all, const std::string& folder) {
  std::string page =
      "<!doctype html>\n<meta charset=\"utf-8\">\n<meta name=\"color-scheme\" content=\"light dark\">\n"
      "<title>perf_report</title>\n<body>\n";
  for (const auto& b : all) {
    const std::string file = file_of(*b, ".");
    page += fmt::format("<p><img src=\"{}.svg\" alt=\"{}\"></p>\n", html_escaped(file), html_escaped(b->plot_name));
  }
  in.check(write_file_atomic(folder + "/results.html", page));
}

void run_benchmark(Interp& in, const Value& fn, Benchmark& b, const Shown& shown, std::vector<Value>& out) {
  std::vector<Row> rows;
  for (const Value& value : b.x_values) {
    Row row;
    row.xs =
        value.get<Tuple>() || value.get<List>() ? in.to_vector(value) : std::vector<Value>(b.x_names.size(), value);
    if (row.xs.size() != b.x_names.size())
      in.fail(ErrorKind::kValue, "Benchmark has {} x_names, but a value of {} parts", b.x_names.size(), row.xs.size());
    for (const Value& line : b.line_values) {
      CallArgs call;
      for (size_t k = 0; k < row.xs.size(); ++k) call.keywords.push_back({b.x_names[k], row.xs[k], {}});
      call.keywords.push_back({b.line_arg, line, {}});
      for (const auto& e : b.args->table.live())
        call.keywords.push_back({in.to_text(e.key, "a key of args"), e.value, e.key});
      const Value v = in.call(fn, call);
      const auto* parts = v.get<Tuple>();
      row.values.push_back(parts && !parts->items.empty() ? parts->items[0] : v);
      row.figures.push_back(figure_of(in, v));
    }
    rows.push_back(std::move(row));
  }
  auto result = make<List>();
  for (const Row& row : rows) {
    std::vector<Value> numbers = row.xs;
    numbers.insert(numbers.end(), row.values.begin(), row.values.end());
    result->items.push_back(make<Tuple>(std::move(numbers)));
  }
  out.push_back(result);
  if (shown.print) {
    in.print(b.plot_name + ":\n");
    print_table(in, cells_of(in, b, rows, shown.difference, 6));
  }
  if (!shown.folder.empty())
    save_csv(in, cells_of(in, b, rows, shown.difference, shown.digits), file_of(b, shown.folder) + ".csv");
  if (b.x_names.empty() || (!shown.plots && shown.folder.empty())) return;
  const report::Plot plot = plot_of(in, b, rows);
  if (shown.plots) in.print(report::to_terminal(plot, report::PlotStyle::kBraille, in.state<Results>().width()));
  if (!shown.folder.empty()) in.check(write_file_atomic(file_of(b, shown.folder) + ".svg", report::to_svg(plot)));
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
      Shown shown;
      bool data = false;
      for (const KeywordArg& k : call.keywords) {
        if (k.name == "print_data")
          shown.print = i2.truth(k.value);
        else if (k.name == "show_plots")
          shown.plots = i2.truth(k.value);
        else if (k.name == "return_df")
          data = i2.truth(k.value);
        else if (k.name == "save_path" && !k.value.is_none())
          shown.folder = path_text(i2, k.value);
        else if (k.name == "diff_col")
          shown.difference = i2.truth(k.value);
        else if (k.name == "save_precision")
          shown.digits = static_cast<int>(std::clamp<int64_t>(i2.to_int(k.value, "save_precision"), 0, 17));
        else if (k.name != "save_path")
          i2.fail(ErrorKind::kName, "run() has no argument '{}'", k.name);
      }
      // Without any of them there would be nothing to see.
      shown.print |= !data && !shown.plots && shown.folder.empty();
      if (!shown.folder.empty()) i2.check(make_directories(shown.folder));
      std::vector<Value> out;
      for (const auto& b : all) run_benchmark(i2, fn, *b, shown, out);
      if (!shown.folder.empty()) save_page(i2, all, shown.folder);
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
    {"do_bench_cudagraph(fn, rep=20, grad_to_none=None, quantiles=None, return_mode='mean')", do_bench_cudagraph,
     "milliseconds of a call in a graph of many calls, with warm caches"},
    {"perf_report(benchmarks)", perf_report,
     "runs a function over a Benchmark's values: .run(print_data=True, show_plots=True, save_path='folder')"},
    {"Benchmark(x_names, x_vals, line_arg, line_vals, line_names, plot_name, args, styles=None, ylabel='', xlabel='', "
     "x_log=False, y_log=False)",
     benchmark, "the axes and lines of a perf_report"},
    {"assert_close(x, y, atol=None, rtol=None, err_msg='')", assert_close, "an error unless all elements are close"},
};

}  // namespace

void fill_testing(Interp&, ModuleObject& m) { add_functions(m, kTesting); }

}  // namespace kiln::script
