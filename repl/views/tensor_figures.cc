#include "repl/views/tensor_figures.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "support/diag.h"
#include "support/text_width.h"

namespace kiln::repl {

namespace {

using report::Align;
using report::Cell;
using report::Table;

constexpr int64_t kPiece = 1 << 20;          // elements on the host at a time
constexpr int64_t kLargestSample = 1 << 20;  // for quantiles; sorting it takes less than 100 ms
constexpr int kBins = 16;
constexpr int kMostBar = 32;
constexpr int kLeastDecade = -12, kMostDecade = 12;
constexpr int64_t kMapRows = 24, kMapColumns = 64;  // most characters of a heat map
constexpr int64_t kMapMargin = 9;                   // of each row, for its number
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

/// Calls `visit(values, index of the first)` for pieces of a tensor, in row-major order.
template <class Visit>
Status for_each_piece(const Tensor& tensor, const Stop& stop, Visit&& visit) {
  KILN_TRY(Tensor flat, tensor.contiguous());
  const int64_t count = flat.numel();
  for (int64_t at = 0; at < count; at += kPiece) {
    if (stop && stop()) return error(ErrorKind::kInterrupted, "interrupted");
    const int64_t size[] = {std::min(kPiece, count - at)}, step[] = {1};
    KILN_TRY(Tensor piece, flat.as_strided(size, step, flat.offset() + at));
    KILN_TRY(std::vector<double> values, piece.to_doubles());
    visit(values, at);
  }
  return {};
}

std::string bar(int64_t part, int64_t most) {
  static constexpr std::string_view kEighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  const auto eighths =
      most ? static_cast<int64_t>(std::ceil(8.0 * kMostBar * static_cast<double>(part) / static_cast<double>(most)))
           : 0;
  std::string out;
  for (int64_t i = 0; i < eighths / 8; ++i) out += "█";
  return out + std::string(kEighths[eighths % 8]);
}

Cell figure(double v) { return std::isnan(v) ? Cell::none() : Cell::shown(fmt::format("{:.5g}", v), v); }

Cell share(int64_t part, int64_t whole) {
  if (!whole) return Cell::none();
  const double percent = 100.0 * static_cast<double>(part) / static_cast<double>(whole);
  // 1 of a million is not 0 %.
  return Cell::shown(percent > 0 && percent < 0.01 ? std::string("< 0.01") : fmt::format("{:.2f}", percent), percent);
}

std::string index_text(int64_t element, std::span<const int64_t> shape) {
  std::vector<int64_t> index(shape.size());
  for (size_t d = shape.size(); d-- > 0; element /= shape[d]) index[d] = element % shape[d];
  return fmt::format("[{}]", fmt::join(index, ", "));
}

}  // namespace

Result<TensorFigures> tensor_figures(const Tensor& tensor, const Stop& stop) {
  TensorFigures f;
  f.count = tensor.numel();
  f.min = f.max = f.mean = f.std = kNaN;
  f.quantiles.assign(std::size(kQuantiles), kNaN);
  double sum = 0;
  KILN_CHECK_OK(for_each_piece(tensor, stop, [&](const std::vector<double>& values, int64_t) {
    double piece_sum = 0;
    for (double v : values) {
      f.nan += std::isnan(v);
      f.positive_inf += v == INFINITY;
      f.negative_inf += v == -INFINITY;
      f.zeros += v == 0;
      if (!std::isfinite(v)) continue;
      piece_sum += v;
      f.min = std::fmin(f.min, v);
      f.max = std::fmax(f.max, v);
    }
    sum += piece_sum;
  }));
  if (f.finite() == 0) return f;
  const auto finite = static_cast<double>(f.finite());
  // The sum of float64's largest values overflows.
  f.mean = sum / finite;
  const double width = (f.max / kBins - f.min / kBins);
  f.bins.assign(width > 0 ? kBins : 1, 0);
  const int64_t stride = (f.count + kLargestSample - 1) / kLargestSample;
  std::vector<double> sample;
  double squares = 0;
  KILN_CHECK_OK(for_each_piece(tensor, stop, [&](const std::vector<double>& values, int64_t first) {
    double piece_squares = 0;
    for (size_t i = 0; i < values.size(); ++i) {
      const double v = values[i];
      if (!std::isfinite(v)) continue;
      piece_squares += (v - f.mean) * (v - f.mean);
      const auto bin = width > 0 ? static_cast<int64_t>((v / width) - (f.min / width)) : 0;
      ++f.bins[static_cast<size_t>(std::clamp<int64_t>(bin, 0, static_cast<int64_t>(f.bins.size()) - 1))];
      if ((first + static_cast<int64_t>(i)) % stride == 0) sample.push_back(v);
    }
    squares += piece_squares;
  }));
  f.std = f.finite() > 1 ? std::sqrt(squares / (finite - 1)) : kNaN;
  f.sampled = static_cast<int64_t>(sample.size());
  std::sort(sample.begin(), sample.end());
  for (size_t i = 0; i < std::size(kQuantiles) && !sample.empty(); ++i) {
    // Between neighbours, as numpy.quantile does.
    const double at = kQuantiles[i] * static_cast<double>(sample.size() - 1);
    const auto below = static_cast<size_t>(at);
    const double above = sample[std::min(below + 1, sample.size() - 1)];
    const double part = at - static_cast<double>(below);
    f.quantiles[i] = sample[below] * (1 - part) + above * part;
  }
  return f;
}

Table count_table(const TensorFigures& f) {
  Table table({{"elements", ""},
               {"NaN", "", Align::kRight, "nan"},
               {"+inf", "", Align::kRight, "positive_inf"},
               {"-inf", "", Align::kRight, "negative_inf"},
               {"zeros", ""},
               {"zeros", "%", Align::kRight, "zeros_share"},
               {"mean", ""},
               {"std", ""}});
  table.add_row({Cell::of(f.count), Cell::of(f.nan), Cell::of(f.positive_inf), Cell::of(f.negative_inf),
                 Cell::of(f.zeros), share(f.zeros, f.count), figure(f.mean), figure(f.std)});
  return table;
}

Table value_table(const TensorFigures& f) {
  Table table({{"min", ""},
               {"1%", "", Align::kRight, "q01"},
               {"25%", "", Align::kRight, "q25"},
               {"median", ""},
               {"75%", "", Align::kRight, "q75"},
               {"99%", "", Align::kRight, "q99"},
               {"max", ""}});
  std::vector<Cell> row = {figure(f.min)};
  for (double q : f.quantiles) row.push_back(figure(q));
  row.push_back(figure(f.max));
  table.add_row(std::move(row));
  if (f.finite() < f.count) table.add_note("mean, std and these are of the finite elements");
  if (f.sampled && f.sampled < f.finite())
    table.add_note(fmt::format("the quantiles are of {} evenly spaced elements", f.sampled));
  return table;
}

Table bin_table(const TensorFigures& f) {
  Table table({{"from", ""}, {"to", ""}, {"elements", ""}, {"share", "%"}, {"", "", Align::kLeft, "bar"}});
  const auto most = f.bins.empty() ? 0 : *std::max_element(f.bins.begin(), f.bins.end());
  const auto bins = static_cast<double>(f.bins.size());
  auto edge = [&](size_t i) {
    const double part = static_cast<double>(i) / bins;
    return f.min * (1 - part) + f.max * part;
  };
  for (size_t i = 0; i < f.bins.size(); ++i)
    table.add_row({figure(edge(i)), figure(edge(i + 1)), Cell::of(f.bins[i]), share(f.bins[i], f.finite()),
                   bar(f.bins[i], most)});
  return table;
}

namespace {

/// Characters that a row of the heat map has room for.
int64_t map_columns(const DiffOptions& options) {
  const int64_t room = options.columns - kMapMargin;
  return options.columns > 0 ? std::clamp<int64_t>(room, 1, kMapColumns) : kMapColumns;
}

/// The smallest power of two at which so many tiles cover a size.
int64_t tile_for(int64_t size, int64_t most) {
  int64_t tile = 1;
  while ((size + tile - 1) / tile > most) tile *= 2;
  return tile;
}

/// Elements of the error's table of decades: exact, then by power of ten.
size_t decade_of(double e) {
  if (std::isnan(e)) return static_cast<size_t>(kMostDecade - kLeastDecade + 3);
  if (e == 0) return 0;
  const int power = std::clamp(static_cast<int>(std::floor(std::log10(e))), kLeastDecade - 1, kMostDecade);
  return static_cast<size_t>(power - kLeastDecade + 2);
}

}  // namespace

Result<TensorDiff> tensor_diff(const Tensor& got, const Tensor& wanted, DiffOptions options, const Stop& stop) {
  if (!std::ranges::equal(got.shape(), wanted.shape()))
    return error(ErrorKind::kType, "the shapes differ: [{}] and [{}]", fmt::join(got.shape(), ", "),
                 fmt::join(wanted.shape(), ", "));
  TensorDiff d;
  d.options = options;
  d.shape.assign(got.shape().begin(), got.shape().end());
  d.count = got.numel();
  d.decades.assign(static_cast<size_t>(kMostDecade - kLeastDecade + 4), 0);
  const int64_t columns = d.shape.empty() ? 1 : d.shape.back(),
                rows = d.shape.size() < 2 ? 1 : d.shape[d.shape.size() - 2];
  if (d.count == 0) return d;
  d.tile_rows = options.tile_rows ? options.tile_rows : tile_for(rows, kMapRows);
  d.tile_columns = options.tile_columns ? options.tile_columns : tile_for(columns, map_columns(options));
  d.map_rows = (rows + d.tile_rows - 1) / d.tile_rows;
  d.map_columns = (columns + d.tile_columns - 1) / d.tile_columns;
  constexpr int64_t kLargestMap = 1 << 20;
  if (d.map_rows > kLargestMap / d.map_columns)
    return error(ErrorKind::kValue, "tile= gives a map of {} × {} tiles: take larger ones", d.map_rows, d.map_columns);
  d.map_bad.assign(static_cast<size_t>(d.map_rows * d.map_columns), 0);
  d.map_count = d.map_bad;
  KILN_TRY(Tensor other, wanted.contiguous());
  Status status;
  double worst = -1;
  KILN_CHECK_OK(for_each_piece(got, stop, [&](const std::vector<double>& values, int64_t first) {
    if (!status.ok()) return;
    const int64_t size[] = {static_cast<int64_t>(values.size())}, step[] = {1};
    auto piece = other.as_strided(size, step, other.offset() + first);
    auto expected = piece.ok() ? piece->to_doubles() : Result<std::vector<double>>(std::move(piece.error()));
    if (!expected.ok()) {
      status = std::move(expected.error());
      return;
    }
    for (size_t i = 0; i < values.size(); ++i) {
      const double a = values[i], b = (*expected)[i];
      const int64_t at = first + static_cast<int64_t>(i);
      const bool same = a == b || (std::isnan(a) && std::isnan(b));
      const double e = same ? 0 : std::isfinite(a) && std::isfinite(b) ? std::fabs(a - b) : kNaN;
      const bool bad = !same && !(e <= options.atol + options.rtol * std::fabs(b));
      ++d.decades[decade_of(e)];
      d.differing += !same;
      if (e > 0) {
        d.sum_abs += e;
        d.max_abs = std::max(d.max_abs, e);
        if (b != 0) d.max_rel = std::max(d.max_rel, e / std::fabs(b));
      }
      // Where one side alone is NaN or inf, nothing is worse.
      const double rank = std::isnan(e) ? INFINITY : e;
      if (!same && rank > worst) worst = rank, d.worst = at, d.worst_got = a, d.worst_wanted = b;
      const size_t tile =
          static_cast<size_t>((at / columns % rows) / d.tile_rows * d.map_columns + at % columns / d.tile_columns);
      ++d.map_count[tile];
      if (!bad) continue;
      ++d.map_bad[tile];
      if (d.bad++ == 0) d.first_bad = at, d.first_got = a, d.first_wanted = b;
    }
  }));
  KILN_CHECK_OK(std::move(status));
  return d;
}

Table diff_table(const TensorDiff& d) {
  Table table({{"elements", ""},
               {"differ", ""},
               {"bad", ""},
               {"bad", "%", Align::kRight, "bad_share"},
               {"max |error|", "", Align::kRight, "max_abs"},
               {"mean |error|", "", Align::kRight, "mean_abs"},
               {"max relative", "", Align::kRight, "max_rel"},
               {"worst at", "", Align::kLeft}});
  table.add_row({Cell::of(d.count), Cell::of(d.differing), Cell::of(d.bad), share(d.bad, d.count), figure(d.max_abs),
                 d.count ? figure(d.sum_abs / static_cast<double>(d.count)) : Cell::none(), figure(d.max_rel),
                 d.worst < 0 ? Cell::none() : Cell(index_text(d.worst, d.shape))});
  table.add_note(
      fmt::format("bad: |a - b| > {:g} + {:g} · |b|, or NaN or inf on one side alone; change it with rtol= "
                  "and atol=",
                  d.options.atol, d.options.rtol));
  if (d.worst >= 0) table.add_note(fmt::format("worst: {:.9g} where {:.9g} is expected", d.worst_got, d.worst_wanted));
  if (d.first_bad >= 0)
    table.add_note(fmt::format("first bad: {} is {:.9g}, expected {:.9g}", index_text(d.first_bad, d.shape),
                               d.first_got, d.first_wanted));
  return table;
}

Table decade_table(const TensorDiff& d) {
  Table table(
      {{"|error|", "", Align::kLeft, "error"}, {"elements", ""}, {"share", "%"}, {"", "", Align::kLeft, "bar"}});
  const auto most = *std::max_element(d.decades.begin(), d.decades.end());
  // Only the decades between the first and the last that have any.
  size_t first = 1, last = d.decades.size() - 2;
  while (first <= last && !d.decades[first]) ++first;
  while (last >= first && !d.decades[last]) --last;
  auto add = [&](std::string name, size_t i) {
    table.add_row({std::move(name), Cell::of(d.decades[i]), share(d.decades[i], d.count), bar(d.decades[i], most)});
  };
  add("0", 0);
  for (size_t i = first; i <= last; ++i) {
    const int power = static_cast<int>(i) - 2 + kLeastDecade;
    add(power < kLeastDecade   ? fmt::format("below 1e{}", kLeastDecade)
        : power == kMostDecade ? fmt::format("from 1e{} on", kMostDecade)
                               : fmt::format("1e{} to 1e{}", power, power + 1),
        i);
  }
  if (d.decades.back()) add("NaN or inf", d.decades.size() - 1);
  return table;
}

std::string heat_map(const TensorDiff& d) {
  if (!d.bad) return {};
  static constexpr std::string_view kShades[] = {"·", "░", "▒", "▓", "█"};  // none, and by quarters
  std::string out = wrap_lines(
      fmt::format("bad elements by tile of {} × {}, rows down, columns right\n", d.tile_rows, d.tile_columns),
      d.options.columns);
  const int64_t room = d.options.columns > 0 ? std::max<int64_t>(1, d.options.columns - kMapMargin) : d.map_columns;
  for (int64_t first = 0; first < d.map_columns; first += room) {
    if (d.map_columns > room) out += fmt::format("from column {}:\n", first * d.tile_columns);
    for (int64_t row = 0; row < d.map_rows; ++row) {
      out += fmt::format("{:>{}} ", row * d.tile_rows, kMapMargin - 1);
      for (int64_t column = first; column < std::min(first + room, d.map_columns); ++column) {
        const auto i = static_cast<size_t>(row * d.map_columns + column);
        const int64_t quarter = d.map_bad[i] ? (4 * d.map_bad[i] + d.map_count[i] - 1) / d.map_count[i] : 0;
        out += kShades[quarter];
      }
      out += "\n";
    }
  }
  return out + wrap_lines("· none  ░ to 25%  ▒ to 50%  ▓ to 75%  █ more\n", d.options.columns);
}

}  // namespace kiln::repl
