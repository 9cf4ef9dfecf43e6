#include "profiler/report/ticks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>

namespace kiln::report {

namespace {

std::string superscript(int n) {
  static constexpr const char* kDigits[] = {"⁰", "¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸", "⁹"};
  std::string out = n < 0 ? "⁻" : "";
  for (char c : std::to_string(std::abs(n))) out += kDigits[c - '0'];
  return out;
}

/// A step of a linear axis: mantissa × 10^power.
struct Step {
  double mantissa;
  int power;
  double size() const { return mantissa * std::pow(10.0, power); }
};

// Rounding of low / step must not cost a tick at the very end.
constexpr double kSlack = 1e-9;
constexpr int kEnoughDecades = 4;  // that need no ticks between them
double first_multiple(double low, double step) { return std::ceil(low / step - kSlack); }
double last_multiple(double high, double step) { return std::floor(high / step + kSlack); }

/// The smallest step that gives no more ticks than that.
Step step_of(double low, double high, int most, bool whole) {
  Step step{1, static_cast<int>(std::floor(std::log10((high - low) / most)))};
  if (whole) step.power = std::max(step.power, 0);
  for (;; ++step.power)
    for (double mantissa : {1.0, 2.0, 2.5, 5.0}) {
      step.mantissa = mantissa;
      if (whole && step.power == 0 && mantissa == 2.5) continue;
      const double size = step.size();
      if (last_multiple(high, size) - first_multiple(low, size) < most) return step;
    }
}

/// 1, 10, 100 are easier to read than powers, up to some length.
bool reads_plain(double low, double high) { return low >= 0.9e-3 && high < 1e6; }

std::string plain(double value) {
  const int digits = value >= 1 ? 0 : static_cast<int>(std::ceil(-std::log10(value) - kSlack));
  return fmt::format("{:.{}f}", value, digits);
}

std::string scaled(int mantissa, int power, bool as_plain) {
  if (as_plain) return plain(mantissa * std::pow(10.0, power));
  return (mantissa == 1 ? "10" : fmt::format("{}×10", mantissa)) + superscript(power);
}

struct PowerRange {
  int first, last;
};
PowerRange powers_within(double low, double high) {
  return {static_cast<int>(std::ceil(low - kSlack)), static_cast<int>(std::floor(high + kSlack))};
}

/// Every how many of them are no more than that.
int stride(PowerRange p, int most) { return std::max(1, (p.last - p.first) / most + 1); }

/// The first multiple of the stride, so that ticks stay at 10⁰, 10³, 10⁶… whatever the range.
int first_of(PowerRange p, int every) {
  return static_cast<int>(std::ceil(static_cast<double>(p.first) / every)) * every;
}

}  // namespace

Ticks linear_ticks(double low, double high, int most, bool whole) {
  most = std::max(most, 2);
  const Step step = step_of(low, high, most, whole);
  Ticks ticks;
  const double size = step.size();
  const double largest = std::max(std::abs(low), std::abs(high));
  int factor = 0;
  if (largest >= 1e6 || largest < 1e-3) factor = static_cast<int>(std::floor(std::log10(largest) / 3 + kSlack)) * 3;
  if (factor) ticks.factor = "×10" + superscript(factor);
  const int power = step.power - factor, digits = std::max(0, -power + (step.mantissa == 2.5 ? 1 : 0));
  const double first = first_multiple(low, size), last = last_multiple(high, size);
  for (double i = first; i <= last; ++i) {
    const double mantissa = i == 0 ? 0 : i * step.mantissa;  // no "-0"
    ticks.major.push_back({mantissa * std::pow(10.0, step.power),
                           fmt::format("{:.{}f}", mantissa * std::pow(10.0, power), std::min(digits, 15))});
  }
  return ticks;
}

Ticks log_ticks(double low, double high, int most) {
  const double low_log = std::log10(low), high_log = std::log10(high);
  const PowerRange p = powers_within(low_log, high_log);
  const bool as_plain = reads_plain(low, high);
  Ticks ticks;
  auto within = [&](double v) { return v >= low * (1 - kSlack) && v <= high * (1 + kSlack); };
  const int decades = p.last - p.first + 1;
  for (std::initializer_list<int> mantissas : {std::initializer_list<int>{1, 2, 5}, {1, 3}}) {
    ticks.major.clear();
    for (int power = p.first - 1; power <= p.last; ++power)
      for (int m : mantissas)
        if (within(m * std::pow(10.0, power)))
          ticks.major.push_back({m * std::pow(10.0, power), scaled(m, power, as_plain)});
    if (ticks.major.size() < 3) return linear_ticks(low, high, most);
    if (decades < kEnoughDecades && ticks.major.size() <= static_cast<size_t>(most)) break;
    ticks.major.clear();
  }
  const int every = stride(p, most);
  if (ticks.major.empty())
    for (int power = first_of(p, every); power <= p.last; power += every)
      ticks.major.push_back({std::pow(10.0, power), scaled(1, power, as_plain)});
  for (int power = p.first - 1; power <= p.last && every <= 3; ++power)
    for (int m = 1; m < (every == 1 ? 10 : 2); ++m) {
      const double v = m * std::pow(10.0, power);
      const bool has_text = std::any_of(ticks.major.begin(), ticks.major.end(),
                                        [&](const Tick& t) { return std::abs(t.value - v) < kSlack * v; });
      if (within(v) && !has_text) ticks.minor.push_back(v);
    }
  return ticks;
}

Ticks binary_ticks(double low, double high, int most) {
  const PowerRange p = powers_within(std::log2(low), std::log2(high));
  if (p.last <= p.first) return linear_ticks(low, high, most);
  const int every = stride(p, most);
  const bool as_plain = p.first >= 0 && high < 1e6;
  Ticks ticks;
  for (int power = p.first; power <= p.last; ++power) {
    const double v = std::exp2(power);
    if ((power - first_of(p, every)) % every == 0)
      ticks.major.push_back({v, as_plain ? fmt::format("{:.0f}", v) : "2" + superscript(power)});
    else
      ticks.minor.push_back(v);
  }
  return ticks;
}

}  // namespace kiln::report
