// Products over the whole terrain: shapes, layouts, types, batches and epilogues drawn at random from a seed, each as
// an expression that is planned without tuning, against cuBLAS and cublasLt with what their heuristics choose. Nothing
// may be tuned to a draw: what a change is developed on and what is reported have different seeds.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cinttypes>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <sstream>
#include <thread>

#include "bench/gemm.h"
#include "kiln/expr.h"
#include "support/diag.h"

namespace kiln::bench {

namespace {

using report::Align;
using report::Cell;

enum class Epilogue : uint8_t { kNone, kBias, kBiasGelu };
constexpr std::string_view kEpilogueNames[] = {"", "+bias", "+bias+gelu"};

/// gelu(a · b + bias), or less of it: a [m, k] or [batch, m, k], b [k, n] or [batch, k, n].
struct Draw {
  const GemmType* type = nullptr;
  GemmShape shape;
  int64_t batch = 1;
  bool a_transposed = false, b_transposed = false;  // a view of the transposed matrix
  Epilogue epilogue = Epilogue::kNone;

  double flop() const {
    return 2.0 * static_cast<double>(shape.m) * static_cast<double>(shape.n) * static_cast<double>(shape.k) *
           static_cast<double>(batch);
  }
  /// Of the operands and the result.
  double bytes() const {
    const auto b = static_cast<double>(batch), m = static_cast<double>(shape.m), n = static_cast<double>(shape.n),
               k = static_cast<double>(shape.k);
    return b * (static_cast<double>(size_of(type->operand)) * (m * k + k * n) +
                // Each operand once and the result once: the least that any product moves.
                static_cast<double>(size_of(type->out)) * m * n);
  }
  std::string text() const {
    return fmt::format("{}{} {}x{}x{} {}{}{}", type->name, batch > 1 ? fmt::format(" {} of", batch) : "", shape.m,
                       shape.n, shape.k, a_transposed ? 'T' : 'N', b_transposed ? 'T' : 'N',
                       kEpilogueNames[static_cast<size_t>(epilogue)]);
  }
  /// What its rows' alignment allows: the largest power of two up to 16 that divides the bytes of every row.
  int64_t row_alignment() const {
    const int64_t size = size_of(type->operand);
    const int64_t a_row = (a_transposed ? shape.m : shape.k) * size, b_row = (b_transposed ? shape.k : shape.n) * size,
                  out_row = shape.n * size_of(type->out);
    int64_t align = 16;
    while (a_row % align || b_row % align || out_row % align) align /= 2;
    return align;
  }
};

constexpr int64_t kMostSize = 16384, kMostBatch = 256;
// Below what a GPU has room for, and short enough that one draw is a moment; plain f32 has a tenth of the rate.
constexpr double kMostBytes = 6e9, kMostFlop = 4e12, kMostF32Flop = 4e11;

/// Log-uniform from 1 to kMostSize; a third are multiples of 64, a third of 8 and a third anything.
int64_t draw_size(std::mt19937_64& random) {
  // Uniform in the logarithm: small sizes are as likely as large ones.
  const double exponent = std::uniform_real_distribution<>(0, std::log(static_cast<double>(kMostSize)))(random);
  const auto size = static_cast<int64_t>(std::exp(exponent));
  constexpr int64_t kMultiples[] = {64, 8, 1};
  const int64_t multiple = kMultiples[random() % 3];
  return std::clamp<int64_t>((size + multiple - 1) / multiple * multiple, 1, kMostSize);
}

Draw draw(std::mt19937_64& random) {
  // Each type as often as it is met: halves most of all.
  static constexpr std::string_view kNames[] = {"bf16", "bf16", "bf16", "f16", "f16", "fp8", "tf32", "f32", "i8"};
  // Until one fits the limits, which keeps the others' distribution as it is.
  for (;;) {
    Draw d;
    const std::string_view name = kNames[random() % std::size(kNames)];
    const auto types = gemm_types();
    d.type = &*std::find_if(types.begin(), types.end(), [&](const GemmType& t) { return t.name == name; });
    d.shape = {draw_size(random), draw_size(random), draw_size(random)};
    if (random() % 4 == 0)
      d.batch = static_cast<int64_t>(
          std::exp(std::uniform_real_distribution<>(0, std::log(static_cast<double>(kMostBatch)))(random)));
    d.a_transposed = !d.type->b_transposed && random() % 2;
    d.b_transposed = d.type->b_transposed || random() % 2;
    // Operands of one byte have no epilogue to compare with.
    if (size_of(d.type->operand) > 1) d.epilogue = static_cast<Epilogue>(random() % 3);
    const bool single = d.type->operand == DType::kF32 && !d.type->tf32;
    if (d.bytes() <= kMostBytes && d.flop() <= (single ? kMostF32Flop : kMostFlop)) return d;
  }
}

/// What text() gives.
Result<Draw> parse_draw(const std::string& text) {
  Draw d;
  std::istringstream in(text);
  std::string type, word, layout;
  in >> type >> word;
  for (const GemmType& t : gemm_types())
    if (t.name == type) d.type = &t;
  // "of" behind the first word says that it was the batch.
  if (in >> layout; layout == "of") {
    d.batch = std::atoll(word.c_str());
    in >> word >> layout;
  }
  const std::string named = layout.size() > 2 ? layout.substr(2) : "";
  for (Epilogue e : {Epilogue::kNone, Epilogue::kBias, Epilogue::kBiasGelu})
    if (kEpilogueNames[static_cast<size_t>(e)] == named) d.epilogue = e;
  const int read = std::sscanf(word.c_str(), "%" SCNd64 "x%" SCNd64 "x%" SCNd64, &d.shape.m, &d.shape.n, &d.shape.k);
  if (layout.size() >= 2) d.a_transposed = layout[0] == 'T', d.b_transposed = layout[1] == 'T';
  // What is read must give the same text again, so nothing is silently left out.
  if (!d.type || read != 3 || std::min({d.shape.m, d.shape.n, d.shape.k, d.batch}) < 1 || d.text() != text)
    return error(ErrorKind::kValue, "'{}' is no product; it is written as 'bf16 4 of 64x128x256 NT+bias'", text);
  return d;
}

/// [batch,] rows x columns, as a view of the transposed matrices where asked for.
Result<Tensor> operand(const Device& device, const Draw& d, int64_t rows, int64_t columns, bool transposed,
                       uint64_t seed) {
  const int64_t stored_rows = transposed ? columns : rows, stored_columns = transposed ? rows : columns;
  KILN_TRY(Tensor all, random_matrix(device, d.type->operand, d.batch * stored_rows, stored_columns, seed));
  const int64_t step = rows * columns, row = transposed ? 1 : columns, column = transposed ? rows : 1;
  if (d.batch == 1) {
    const int64_t shape[] = {rows, columns}, strides[] = {row, column};
    return all.as_strided(shape, strides, 0);
  }
  // All matrices of a batch behind each other.
  const int64_t shape[] = {d.batch, rows, columns}, strides[] = {step, row, column};
  return all.as_strided(shape, strides, 0);
}

Result<Expr> expression(const Device& device, const Draw& d, uint64_t seed) {
  KILN_TRY(Tensor a, operand(device, d, d.shape.m, d.shape.k, d.a_transposed, seed));
  KILN_TRY(Tensor b, operand(device, d, d.shape.k, d.shape.n, d.b_transposed, seed + 1));
  ExprAttributes attributes;
  attributes.tf32 = d.type->tf32;
  attributes.dtype = d.type->out;
  KILN_TRY(Expr e, apply(ExprOp::kMatMul, {a, b}, attributes));
  if (d.epilogue == Epilogue::kNone) return e;
  const int64_t columns[] = {d.shape.n};
  KILN_TRY(Tensor bias, randn(device, d.type->out, columns, seed + 2));
  KILN_TRY(e, apply(ExprOp::kAdd, {e, bias}));
  return d.epilogue == Epilogue::kBias ? Result<Expr>(e) : apply(ExprOp::kGeluTanh, {e});
}

struct ContestSide {
  ExprVariant which;
  std::string name;
  VariantPlan plan;
  std::vector<double> us = {};
};

constexpr int kRounds = 9;
constexpr auto kIdleGap = std::chrono::milliseconds(5);
constexpr double kReferenceBudget = 2e7;  // operations in float64 for the rows that are checked

/// Interleaved samples of each side, cold caches; the first round warms up.
Status sample(const Device& device, std::vector<ContestSide>& sides, std::mt19937_64& random) {
  KILN_TRY(profiler::Timer timer, profiler::Timer::make(device));
  std::vector<profiler::Sampler> samplers;
  for (ContestSide& s : sides)
    samplers.push_back(timer.sampler({s.name, device, [&s] { return s.plan.launch(); }}, profiler::Cache::kCold));
  std::vector<size_t> turn(sides.size());
  for (size_t i = 0; i < turn.size(); ++i) turn[i] = i;
  for (int round = -1; round < kRounds; ++round) {
    std::shuffle(turn.begin(), turn.end(), random);
    for (size_t i : turn) {
      if (device.is_cuda()) std::this_thread::sleep_for(kIdleGap);
      KILN_TRY(double us, samplers[i]());
      if (round >= 0) sides[i].us.push_back(us);
    }
  }
  return {};
}

/// A draw that was measured.
struct Outcome {
  Draw draw;
  double ours_us = 0, peer_us = 0, compile_ms = 0;
  std::string peer, kernel;
  std::vector<std::pair<std::string, double>> configurations = {};  // us of each other one of the product's kernel
  double ratio() const { return peer_us / ours_us; }
  double best_us() const {
    double best = ours_us;
    for (const auto& [text, us] : configurations) best = std::min(best, us);
    return best;
  }
};

std::string text_of(const ExprGroup& g) {
  std::string text;
  for (const auto& [constant, value] : g.constants) text += fmt::format("{}={} ", constant, value);
  return text + fmt::format("warps={} stages={}", g.num_warps, g.num_stages);
}

/// What else the planner would have its slowest kernel launched as, as further sides.
Status add_configurations(std::vector<ContestSide>& sides) {
  const VariantPlan chosen = sides[0].plan;
  for (size_t g = 0; g < chosen.groups.size(); ++g) {
    if (chosen.groups[g].flop * 2 < chosen.flop) continue;  // what is left of a product's kernel
    for (const ExprGroup& as : chosen.configurations(g)) {
      KILN_TRY(VariantPlan plan, chosen.edited(g, as, text_of(as)));
      std::string text = plan.name;
      if (plan.problem.ok()) sides.push_back({ExprVariant::kFused, std::move(text), std::move(plan)});
    }
  }
  return {};
}

/// Measures one draw; nullopt, and the reason goes to context.skip or context.wrong, when there is no ratio.
Result<std::optional<Outcome>> measure(const Context& context, const Draw& d, uint64_t seed) {
  const std::string where = "terrain " + d.text();
  KILN_TRY(Expr e, expression(context.device, d, seed));
  auto expected = reference(e, kReferenceBudget);
  std::vector<ContestSide> sides;
  double compile_ms = 0;
  for (ExprVariant which : {ExprVariant::kFused, ExprVariant::kCublas, ExprVariant::kCublasLt}) {
    const double start = profiler::steady_seconds();
    auto made = variant(e, which);
    if (which == ExprVariant::kFused) compile_ms = (profiler::steady_seconds() - start) * 1e3;
    if (made.ok() && !made->problem.ok()) made = made->problem.error();
    if (!made.ok()) {
      if (which == ExprVariant::kFused)
        context.wrong(fmt::format("{}: {}", where, made.error().message));
      else
        context.skip(fmt::format("{}: {}: {}", where, name(which), made.error().message));
      continue;
    }
    ContestSide side{which, std::string(name(which)), std::move(*made)};
    auto ran = [&]() -> Status {
      KILN_CHECK_OK(side.plan.poison());
      KILN_CHECK_OK(side.plan.launch());
      return context.device.synchronize();
    }();
    if (!ran.ok()) {
      context.skip(fmt::format("{}: {}: {}", where, side.name, ran.error().message));
      continue;
    }
    if (which == ExprVariant::kFused && expected.ok()) {
      KILN_TRY(Tensor out, side.plan.output());
      KILN_TRY(ExprError off, compare(*expected, out));
      if (!off.ok()) {
        context.wrong(
            fmt::format("{}: element {} is {} and should be {}", where, off.first_bad, off.got, off.expected));
        return std::optional<Outcome>();
      }
    }
    sides.push_back(std::move(side));
  }
  if (sides.size() < 2 || sides[0].which != ExprVariant::kFused) return std::optional<Outcome>();
  if (context.terrain.configurations) KILN_CHECK_OK(add_configurations(sides));
  std::mt19937_64 random(seed);
  KILN_CHECK_OK(sample(context.device, sides, random));
  Outcome out{d, profiler::median(sides[0].us), INFINITY, compile_ms, {}, {}};
  for (const ExprGroup& g : sides[0].plan.groups)
    out.kernel += (out.kernel.empty() ? "" : ", ") + g.name + " " + text_of(g);
  for (size_t i = 1; i < sides.size(); ++i) {
    const double us = profiler::median(sides[i].us);
    if (sides[i].which == ExprVariant::kFused)
      out.configurations.emplace_back(sides[i].name, us);
    else if (us < out.peer_us)
      out.peer_us = us, out.peer = sides[i].name;
  }
  return std::optional<Outcome>(out);
}

/// Geometric mean, 5th percentile and worst of the ratios of those that `fn` picks.
template <class Fn>
std::vector<Cell> summary(std::string what, const std::vector<Outcome>& outcomes, Fn fn) {
  std::vector<double> ratios, logs;
  for (const Outcome& o : outcomes)
    if (fn(o)) ratios.push_back(o.ratio()), logs.push_back(std::log(o.ratio()));
  if (ratios.empty()) return {};
  std::sort(ratios.begin(), ratios.end());
  const size_t fifth = ratios.size() / 20;
  return {std::move(what), Cell::of(static_cast<int64_t>(ratios.size())), Cell::of(std::exp(profiler::mean(logs)), 3),
          Cell::of(ratios[fifth], 3), Cell::of(ratios.front(), 3)};
}

void show(const Context& context, std::vector<Outcome> outcomes, int drawn) {
  report::Table classes({{fmt::format("terrain, seed {}", context.terrain.seed), "", Align::kLeft, "class"},
                         {"draws", ""},
                         {"geomean", "", Align::kRight},
                         {"5th percentile", "", Align::kRight},
                         {"worst", "", Align::kRight}});
  auto add = [&](std::vector<Cell> row) {
    if (!row.empty()) classes.add_row(std::move(row));
  };
  add(summary("all", outcomes, [](const Outcome&) { return true; }));
  for (const GemmType& t : gemm_types())
    add(summary(std::string(t.name), outcomes, [&](const Outcome& o) { return o.draw.type->name == t.name; }));
  for (int64_t align : {16, 8, 4, 2, 1})
    add(summary(fmt::format("rows of {} bytes", align), outcomes,
                [&](const Outcome& o) { return o.draw.row_alignment() == align; }));
  add(summary("batched", outcomes, [](const Outcome& o) { return o.draw.batch > 1; }));
  add(summary("m or n below 64", outcomes,
              [](const Outcome& o) { return std::min(o.draw.shape.m, o.draw.shape.n) < 64; }));
  add(summary("k below 64", outcomes, [](const Outcome& o) { return o.draw.shape.k < 64; }));
  add(summary("over 20 us by the peer", outcomes, [](const Outcome& o) { return o.peer_us > 20; }));
  if (context.terrain.configurations) {
    std::vector<double> lost;
    for (const Outcome& o : outcomes) lost.push_back(o.ours_us / o.best_us());
    classes.add_note(fmt::format("the chosen configuration takes {:.2f} of the best one's time at the median",
                                 profiler::median(lost)));
  }
  classes.add_note(
      fmt::format("{} of {} draws have a peer and were right; ratio: the faster library's time over the "
                  "fused plan's, cold caches, no tuning on either side",
                  outcomes.size(), drawn));
  context.show(classes);

  std::sort(outcomes.begin(), outcomes.end(), [](const Outcome& a, const Outcome& b) { return a.ratio() < b.ratio(); });
  report::Table worst({{"hardest draws", "", Align::kLeft, "draw"},
                       {"ratio", ""},
                       {"ours", ""},
                       {"peer", ""},
                       {"", "", Align::kLeft, "library"},
                       {"rows", "bytes"},
                       {"best", ""},
                       {"our kernels", "", Align::kLeft}});
  constexpr size_t kShown = 25;
  for (size_t i = 0; i < std::min(kShown, outcomes.size()); ++i) {
    const Outcome& o = outcomes[i];
    worst.add_row({o.draw.text(), Cell::of(o.ratio(), 3), Cell(report::human_time(o.ours_us)),
                   Cell(report::human_time(o.peer_us)), o.peer, Cell::of(o.draw.row_alignment()),
                   Cell(report::human_time(o.best_us())), o.kernel});
  }
  context.show(worst);
}

}  // namespace

Status bench_terrain(const Context& context) {
  if (!context.device.is_cuda()) {
    context.skip("terrain: it compares with libraries of a GPU");
    return {};
  }
  std::mt19937_64 random(context.terrain.seed);
  std::vector<Outcome> outcomes;
  const double start = profiler::steady_seconds();
  int drawn = 0;
  const int count =
      context.terrain.draws.empty() ? context.terrain.count : static_cast<int>(context.terrain.draws.size());
  for (; drawn < count; ++drawn) {
    if (profiler::steady_seconds() - start > context.terrain.seconds) break;
    Draw d;
    if (context.terrain.draws.empty()) {
      d = draw(random);
    } else {
      KILN_TRY(d, parse_draw(context.terrain.draws[static_cast<size_t>(drawn)]));
    }
    KILN_TRY(std::optional<Outcome> o, measure(context, d, context.terrain.seed + static_cast<uint64_t>(drawn)));
    if (!o) continue;
    context.add_json(nlohmann::ordered_json{{"group", "terrain"},
                                            {"seed", context.terrain.seed},
                                            {"draw", drawn},
                                            {"text", d.text()},
                                            {"type", d.type->name},
                                            {"batch", d.batch},
                                            {"m", d.shape.m},
                                            {"n", d.shape.n},
                                            {"k", d.shape.k},
                                            {"row_bytes", d.row_alignment()},
                                            {"ratio", o->ratio()},
                                            {"us", o->ours_us},
                                            {"peer_us", o->peer_us},
                                            {"peer", o->peer},
                                            {"compile_ms", o->compile_ms},
                                            {"kernels", o->kernel},
                                            {"configurations", o->configurations}}
                         .dump());
    outcomes.push_back(std::move(*o));
  }
  if (drawn < count)
    context.skip(
        fmt::format("terrain: {} of {} draws, for {} s were over", count - drawn, count, context.terrain.seconds));
  if (!outcomes.empty()) show(context, std::move(outcomes), drawn);
  return {};
}

}  // namespace kiln::bench
