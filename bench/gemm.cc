// The benchmark of matrix products. Burst: one product at a time with cold caches after an idle gap, so that the clock
// is at its highest. Sustained: back to back for as long as it takes the power limit to bite. The two are never mixed.
#include "bench/gemm.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>
#include <random>
#include <thread>

#include "support/diag.h"

namespace kiln::bench {

namespace {

using report::Cell;

constexpr GemmType kTypes[] = {
    {"bf16", DType::kBF16, DType::kBF16},
    {"f16", DType::kF16, DType::kF16},
    {"tf32", DType::kF32, DType::kF32, true},
    {"f32", DType::kF32, DType::kF32},
    {"f64", DType::kF64, DType::kF64},
    {"fp8", DType::kF8E4M3, DType::kBF16, false, false, true},
    {"fp8-fast", DType::kF8E4M3, DType::kBF16, false, true, true},
    {"i8", DType::kI8, DType::kI32, false, false, true},
    {"bf16-gelu", DType::kBF16, DType::kBF16, false, false, false, true},
    {"f16-gelu", DType::kF16, DType::kF16, false, false, false, true},
    {"f32-gelu", DType::kF32, DType::kF32, false, false, false, true},
};

// The ten shapes of BASELINES: squares, two of a transformer, three skinny ones.
const std::vector<GemmShape> kTenShapes = {
    {512, 512, 512},     {1024, 1024, 1024},  {2048, 2048, 2048}, {4096, 4096, 4096}, {8192, 8192, 8192},
    {4096, 4096, 14336}, {8192, 28672, 8192}, {16, 8192, 8192},   {64, 8192, 8192},   {1, 8192, 8192}};
const std::vector<GemmShape> kEpilogueShapes = {
    {512, 512, 512}, {4096, 4096, 4096}, {8192, 8192, 8192}, {8192, 28672, 8192}};
const std::vector<GemmShape> kTwoShapes = {{4096, 4096, 4096}, {8192, 8192, 8192}};
const std::vector<GemmShape> kHostShapes = {{256, 256, 256}, {512, 512, 512}, {1024, 1024, 1024}};

// Long enough for the clock to come back up after a product of the highest power.
constexpr auto kIdleGap = std::chrono::milliseconds(40);
constexpr int kLeastRounds = 7, kMostRounds = 60;
constexpr int kSustainedRounds = 4;
constexpr double kLeastSlice_s = 0.1;  // of back-to-back products
constexpr uint64_t kSeed = 1;

std::string text_of(const GemmShape& s) { return fmt::format("{}x{}x{}", s.m, s.n, s.k); }

Result<GemmProblem> make_problem(const Device& device, const GemmType& type, const GemmShape& s) {
  GemmProblem p{device, type, s, {}, {}, {}, {}};
  // Another seed than a's: a matrix times its own transpose has a large diagonal.
  KILN_TRY(p.a, random_matrix(device, type.operand, s.m, s.k, kSeed));
  if (type.b_transposed) {
    KILN_TRY(Tensor w, random_matrix(device, type.operand, s.n, s.k, kSeed + 1));
    const int64_t shape[] = {s.k, s.n}, strides[] = {1, s.k};
    KILN_TRY(p.b, w.as_strided(shape, strides, 0));
  } else {
    KILN_TRY(p.b, random_matrix(device, type.operand, s.k, s.n, kSeed + 1));
  }
  const int64_t shape[] = {s.m, s.n};
  KILN_TRY(p.out, Tensor::empty(device, type.out, shape));
  const int64_t columns[] = {s.n};
  if (type.bias_gelu) {
    KILN_TRY(p.bias, randn(device, type.out, columns, kSeed + 2));
  }
  return p;
}

// Relative to the sum of the absolute products: what a correct product in that type can be off by.
double allowed(const GemmProblem& p) {
  double k = static_cast<double>(p.shape.k);
  if (p.type.out == DType::kI32) return 0;
  // 53 bits of mantissa.
  if (p.type.operand == DType::kF64) return (k + 1) * std::ldexp(1, -52);
  // Tensor cores add 32 products of fp8 at a time, in sums of about 14 bits.
  if (is_fp8(p.type.operand)) return (k / 32 + 1) * std::ldexp(1, -13);
  // 24 bits of mantissa, and the 10 of tf32 for the operands.
  return (k + 1) * std::ldexp(1, -23) + (p.type.tf32 ? std::ldexp(1, -9) : 0);
}
double roundoff(DType t) {
  switch (t) {
    case DType::kBF16:
      return std::ldexp(1, -8);
    case DType::kF16:
      return std::ldexp(1, -11);
    case DType::kF32:
      return std::ldexp(1, -24);
    default:
      return 0;
  }
}

// The last rows and columns against float64: a fast product that is wrong is no figure.
Status check_corner(const GemmProblem& p) {
  const GemmShape& s = p.shape;
  // Eight rows are enough to see a tile at the edge; the sums are made on the host.
  int64_t rows = std::min<int64_t>(s.m, 8), element = size_of(p.type.operand);
  // Wide enough that the copy of the columns is made on the device.
  int64_t columns = std::min(s.n, std::max<int64_t>(8, (int64_t{1} << 20) / (s.k * element) + 1));
  auto corner = [](const Tensor& t, int64_t r, int64_t c) {
    const int64_t shape[] = {r, c};
    int64_t at = t.offset() + (t.shape()[0] - r) * t.strides()[0] + (t.shape()[1] - c) * t.strides()[1];
    return t.as_strided(shape, t.strides(), at);
  };
  KILN_TRY(Tensor a_view, corner(p.a, rows, s.k));
  KILN_TRY(Tensor b_view, corner(p.b, s.k, columns));
  KILN_TRY(Tensor out_view, corner(p.out, rows, columns));
  KILN_TRY(Tensor b_copy, b_view.contiguous());
  KILN_TRY(std::vector<double> a, a_view.to_doubles());
  KILN_TRY(std::vector<double> b, b_copy.to_doubles());
  KILN_TRY(std::vector<double> out, out_view.to_doubles());
  std::vector<double> bias(static_cast<size_t>(s.n));
  if (p.bias) {
    KILN_TRY(bias, p.bias.to_doubles());
  }
  double factor = allowed(p), u = roundoff(p.type.out);
  // A product that is split along k may add its parts in the output's dtype.
  if (is_half(p.type.out)) factor += u;
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < columns; ++c) {
      double sum = 0, magnitude = 0;
      for (int64_t q = 0; q < s.k; ++q) {
        double x = a[static_cast<size_t>(r * s.k + q)] * b[static_cast<size_t>(q * columns + c)];
        sum += x, magnitude += std::abs(x);
      }
      double got = out[static_cast<size_t>(r * columns + c)];
      double error_allowed = factor * magnitude + u * std::abs(sum);
      if (p.type.bias_gelu) {
        sum += bias[static_cast<size_t>(s.n - columns + c)];
        sum = sum / 2 * (1 + std::tanh(0.7978845608028654 * (sum + 0.044715 * sum * sum * sum)));
        // A separate kernel rounds the product first; the slope of gelu is at most 1.13, and cublasLt's tanh has 11
        // bits.
        error_allowed = 1.13 * error_allowed + u * std::abs(sum) + std::ldexp(std::abs(sum), -10);
      }
      // In the negated form NaN fails too.
      if (!(std::abs(got - sum) <= error_allowed))
        return error(ErrorKind::kMismatch, "[{}, {}] is {} and should be {}", s.m - rows + r, s.n - columns + c, got,
                     sum);
    }
  return {};
}

struct Runner {
  const GemmContender* contender;
  PreparedGemm prepared;
  std::vector<double> burst = {}, sustained = {};  // microseconds
};

Status run_burst(const GemmProblem& p, std::vector<Runner>& runners, double seconds) {
  KILN_TRY(profiler::Timer timer, profiler::Timer::make(p.device));
  std::vector<profiler::Sampler> samplers;
  for (const Runner& r : runners)
    samplers.push_back(
        timer.sampler({std::string(r.contender->name), p.device, r.prepared.enqueue}, profiler::Cache::kCold));
  std::vector<size_t> turn(runners.size());
  for (size_t i = 0; i < turn.size(); ++i) turn[i] = i;
  // The same seed for each problem: the turns are the same in two runs.
  std::mt19937_64 random(kSeed);
  double start = profiler::steady_seconds();
  for (int round = -1; round < kMostRounds; ++round) {
    if (round >= kLeastRounds && profiler::steady_seconds() - start > seconds) break;
    // In another order each round, so that no contender always follows the same one.
    std::shuffle(turn.begin(), turn.end(), random);
    for (size_t i : turn) {
      if (p.device.is_cuda()) std::this_thread::sleep_for(kIdleGap);
      KILN_TRY(double us, samplers[i]());
      if (round >= 0) runners[i].burst.push_back(us);  // the first round warms up
    }
  }
  return {};
}

Status run_sustained(const GemmProblem& p, std::vector<Runner>& runners, double seconds) {
  std::vector<size_t> turn(runners.size());
  for (size_t i = 0; i < turn.size(); ++i) turn[i] = i;
  std::mt19937_64 random(kSeed);
  // One more round than is counted, for warming up.
  double slice_s = std::max(kLeastSlice_s, seconds / static_cast<double>(runners.size() * (kSustainedRounds + 1)));
  for (int round = -1; round < kSustainedRounds; ++round) {
    std::shuffle(turn.begin(), turn.end(), random);
    for (size_t i : turn) {
      Runner& r = runners[i];
      double once_us = profiler::median(r.burst);
      // By the time of a burst, so that slices of all contenders are equally long.
      int count = std::max(1, static_cast<int>(slice_s * 1e6 / once_us));
      KILN_TRY(Event from, p.device.record());
      for (int n = 0; n < count; ++n) KILN_CHECK_OK(r.prepared.enqueue());
      KILN_TRY(Event to, p.device.record());
      KILN_TRY(double ms, p.device.elapsed_ms(from, to));
      if (round >= 0) r.sustained.push_back(ms * 1e3 / count);  // the first round brings it to the power limit
    }
  }
  return {};
}

double tflops(const GemmShape& s, double us) {
  return 2.0 * static_cast<double>(s.m) * static_cast<double>(s.n) * static_cast<double>(s.k) / us / 1e6;
}

// The rows of one type and mode, and the mean of what ours make of the peers.
class Rows {
 public:
  Rows(const Context& context, const std::vector<const GemmContender*>& contenders, const GemmType& type,
       std::string mode)
      : context_(context), contenders_(contenders), type_(type), mode_(std::move(mode)), table_(columns()) {}

  void add(const GemmShape& s, const std::vector<Runner>& runners, std::vector<double> Runner::*samples) {
    std::vector<Cell> cells = {fmt::format("{},{},{}", s.m, s.n, s.k)};
    double best = INFINITY, ours = INFINITY, peer = INFINITY;
    for (const GemmContender* c : contenders_) {
      auto r = std::find_if(runners.begin(), runners.end(), [&](const Runner& x) { return x.contender == c; });
      if (r == runners.end() || ((*r).*samples).empty()) {
        cells.push_back("");
        continue;
      }
      profiler::Summary us = profiler::summarize((*r).*samples);
      double rate = tflops(s, us.median) * (context_.device.is_cuda() ? 1 : 1e3);
      cells.push_back(Cell::of(rate, rate < 10 ? 2 : 1));
      best = std::min(best, us.median);
      (c->ours ? ours : peer) = std::min(c->ours ? ours : peer, us.median);
      nlohmann::ordered_json j = {{"group", "gemm"},
                                  {"type", type_.name},
                                  {"mode", mode_},
                                  {"m", s.m},
                                  {"n", s.n},
                                  {"k", s.k},
                                  {"contender", c->name},
                                  {"ours", c->ours},
                                  {"us", us.median},
                                  {"min_us", us.min},
                                  {"q1_us", us.q1},
                                  {"q3_us", us.q3},
                                  {"samples", us.n},
                                  {"tflops", tflops(s, us.median)}};
      if (!r->prepared.note.empty()) j["note"] = r->prepared.note;
      context_.add_json(j.dump());
    }
    cells.push_back(Cell(report::human_time(best)));
    bool has_ratio = std::isfinite(ours) && std::isfinite(peer);
    if (has_ratio) log_ratios_.push_back(std::log(peer / ours)), worst_ = std::min(worst_, peer / ours);
    if (any_ours()) cells.push_back(has_ratio ? Cell::of(peer / ours, 3) : Cell(""));
    table_.add_row(std::move(cells));
  }
  void show() {
    if (table_.rows().empty()) return;
    table_.add_note(mode_ == "burst" ? "one at a time, cold caches" +
                                           std::string(context_.device.is_cuda() ? ", after 40 ms of idling" : "")
                                     : "back to back, warm caches");
    if (!log_ratios_.empty())
      table_.add_note(fmt::format("ours over the best peer: geometric mean {:.3f}, worst {:.3f}",
                                  std::exp(profiler::mean(log_ratios_)), worst_));
    context_.show(table_);
  }

 private:
  bool any_ours() const {
    return std::any_of(contenders_.begin(), contenders_.end(), [](const GemmContender* c) { return c->ours; });
  }
  std::vector<report::Column> columns() const {
    std::vector<report::Column> out = {
        {fmt::format("gemm {} {}, M,N,K", type_.name, mode_), "", report::Align::kLeft, "shape"}};
    for (const GemmContender* c : contenders_)
      out.push_back({std::string(c->name), context_.device.is_cuda() ? "TFLOP/s" : "GFLOP/s"});
    out.push_back({"best", ""});
    if (any_ours()) out.push_back({"ours/peer", "", report::Align::kRight, "ratio"});
    return out;
  }

  const Context& context_;
  const std::vector<const GemmContender*>& contenders_;
  const GemmType& type_;
  std::string mode_;
  report::Table table_;
  std::vector<double> log_ratios_;
  double worst_ = INFINITY;
};

// Those that take part, each checked.
std::vector<Runner> prepare(const Context& context, const std::vector<const GemmContender*>& contenders,
                            const GemmProblem& p) {
  std::vector<Runner> runners;
  auto where = [&](const GemmContender& c) {
    return fmt::format("gemm {} {}: {}", p.type.name, text_of(p.shape), c.name);
  };
  for (const GemmContender* c : contenders) {
    auto prepared = c->prepare(p);
    if (!prepared.ok()) {
      context.skip(fmt::format("{}: {}", where(*c), prepared.error().message));
      continue;
    }
    auto checked = [&]() -> Status {
      KILN_CHECK_OK(p.out.fill(0));
      KILN_CHECK_OK(prepared->enqueue());
      KILN_CHECK_OK(p.device.synchronize());
      return check_corner(p);
    }();
    if (!checked.ok()) {
      context.wrong(fmt::format("{}: {}", where(*c), checked.error().message));
      continue;
    }
    runners.push_back({c, std::move(*prepared)});
  }
  return runners;
}

bool listed(const std::vector<std::string>& names, std::string_view name) {
  return names.empty() || std::find(names.begin(), names.end(), name) != names.end();
}

template <class Range>
Status check_names(const std::vector<std::string>& wanted, const Range& known, std::string_view what) {
  for (const std::string& w : wanted)
    if (std::none_of(known.begin(), known.end(), [&](const auto& k) { return k.name == w; })) {
      std::string all;
      for (const auto& k : known) all += fmt::format(" {}", k.name);
      return error(ErrorKind::kValue, "gemm: there is no {} '{}': they are{}", what, w, all);
    }
  return {};
}

}  // namespace

// Normals (small integers for i8). Types that the device makes no random numbers of repeat a block of four million.
Result<Tensor> random_matrix(const Device& device, DType dtype, int64_t rows, int64_t columns, uint64_t seed) {
  const int64_t shape[] = {rows, columns};
  if (dtype == DType::kI8) return randint(device, dtype, shape, -9, 10, seed);
  if (!is_fp8(dtype)) return randn(device, dtype, shape, seed);
  KILN_TRY(Tensor out, Tensor::empty(device, dtype, shape));
  const int64_t block[] = {std::min<int64_t>(out.numel(), 1 << 22)}, step[] = {1};
  KILN_TRY(Tensor normals, randn(device, dtype, block, seed));
  for (int64_t at = 0; at < out.numel(); at += block[0]) {
    const int64_t length[] = {std::min(block[0], out.numel() - at)};
    KILN_TRY(Tensor to, out.as_strided(length, step, at));
    KILN_TRY(Tensor from, normals.as_strided(length, step, 0));
    KILN_CHECK_OK(to.copy_from(from));
  }
  return out;
}

std::span<const GemmType> gemm_types() { return kTypes; }

std::optional<GemmShape> parse_gemm_shape(std::string_view text) {
  int64_t sizes[3] = {};
  const char *at = text.data(), *end = text.data() + text.size();
  for (int i = 0; i < 3; ++i) {
    auto [next, code] = std::from_chars(at, end, sizes[i]);
    if (code != std::errc{} || sizes[i] < 1 || (i < 2 ? next == end || *next != 'x' : next != end)) return std::nullopt;
    at = next + 1;
  }
  return GemmShape{sizes[0], sizes[1], sizes[2]};
}

Status bench_gemm(const Context& context) {
  const GemmOptions& o = context.gemm;
  KILN_CHECK_OK(check_names(o.types, gemm_types(), "type"));
  KILN_CHECK_OK(check_names(o.contenders, gemm_contenders(), "contender"));
  bool gpu = context.device.is_cuda();
  std::vector<const GemmContender*> contenders;
  for (const GemmContender& c : gemm_contenders())
    // By default, those of the device at hand: a library is for GPUs or for the CPU, the others for all.
    if (o.contenders.empty() ? c.ours || c.on_gpu == gpu : listed(o.contenders, c.name)) contenders.push_back(&c);
  std::vector<GemmContender> tiles;
  for (const std::string& text : o.tiles) {
    KILN_TRY(tiles.emplace_back(), tile_contender(text));
  }
  if (!tiles.empty()) std::erase_if(contenders, [](const GemmContender* c) { return c->ours; });
  for (const GemmContender& c : tiles) contenders.push_back(&c);
  std::vector<std::string> types = o.types;
  if (types.empty())
    types = gpu ? std::vector<std::string>{"bf16", "f16", "tf32", "fp8", "fp8-fast", "bf16-gelu"}
                : std::vector<std::string>{"f32"};
  for (const GemmType& type : gemm_types()) {
    if (!listed(types, type.name)) continue;
    const auto& usual = !gpu                    ? kHostShapes
                        : type.bias_gelu        ? kEpilogueShapes
                        : is_half(type.operand) ? kTenShapes
                                                : kTwoShapes;
    Rows burst(context, contenders, type, "burst"), sustained(context, contenders, type, "sustained");
    report::Table tuned = tune_table(context, type.name);
    for (const GemmShape& shape : o.shapes.empty() ? usual : o.shapes) {
      KILN_TRY(GemmProblem p, make_problem(context.device, type, shape));
      if (o.tune) {
        KILN_CHECK_OK(tune_gemm(
            context, p, [&] { return check_corner(p); }, tuned));
        continue;
      }
      std::vector<Runner> runners = prepare(context, contenders, p);
      if (runners.empty()) continue;
      KILN_CHECK_OK(run_burst(p, runners, o.seconds));
      burst.add(shape, runners, &Runner::burst);
      if (!gpu || !o.sustained) continue;  // a CPU has no such limit that a few seconds would show
      KILN_CHECK_OK(run_sustained(p, runners, o.seconds));
      sustained.add(shape, runners, &Runner::sustained);
    }
    burst.show();
    sustained.show();
    if (!tuned.rows().empty()) context.show(tuned);
  }
  return {};
}

}  // namespace kiln::bench
