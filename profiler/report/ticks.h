// Ticks of an axis: which values, and the texts that tell one from the next. Plain numbers in, texts out.
#pragma once
#include <string>
#include <vector>

namespace kiln::report {

struct Tick {
  double value;
  std::string text;
};

struct Ticks {
  std::vector<Tick> major;
  std::vector<double> minor;  // without texts; only on logarithmic axes
  std::string factor;         // "×10⁶" where the texts count those, for the axis's label
};

/// At most `most` (2 or more) round values within [low, high]: multiples of 1, 2, 2.5 or 5 × 10ⁿ, of 1 at least where
/// all values are `whole` numbers. All texts have as many digits behind the point.
Ticks linear_ticks(double low, double high, int most, bool whole = false);

/// Powers of ten within [low, high] (both > 0), or every second, third… of them; between few of them also their
/// multiples of 2 and 5. Within less than that, the ticks of a linear axis.
Ticks log_ticks(double low, double high, int most);

/// The same of powers of two: sizes of tensors.
Ticks binary_ticks(double low, double high, int most);

}  // namespace kiln::report
