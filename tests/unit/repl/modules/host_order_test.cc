// Sorting on the host against std::stable_sort, for each dtype, with ties, NaN, infinities and both zeros.
#include "repl/modules/torch/host_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include "runtime/tensor/convert.h"

namespace kiln::script {
namespace {

struct Line {
  std::vector<std::byte> bytes;
  std::vector<double> floats;
  std::vector<int64_t> ints;
};

Line random_line(std::mt19937& random, DType dtype, size_t length) {
  Line line;
  line.bytes.resize(length * static_cast<size_t>(size_of(dtype)));
  line.floats.resize(length), line.ints.resize(length);
  const auto count = static_cast<int64_t>(length);
  if (!is_float(dtype)) {
    // All bits are used by some lines, and ties come from others.
    const int most_shift = random() % 2 ? 33 : 1;
    for (int64_t& x : line.ints)
      x = random() % 3 ? static_cast<int64_t>(random() % 64)
                       : static_cast<int64_t>(random()) << (random() % most_shift);
    runtime::convert_elements(DType::kI64, line.ints.data(), dtype, line.bytes.data(), count);
    runtime::convert_elements(dtype, line.bytes.data(), DType::kI64, line.ints.data(), count);
    return line;
  }
  constexpr double kSpecial[] = {0.0, -0.0, INFINITY, -INFINITY, NAN, -NAN, 1.0, -1.0, 1e-300, -3e-40};
  for (double& x : line.floats)
    x = random() % 4 ? std::normal_distribution<double>(0, 100)(random) : kSpecial[random() % std::size(kSpecial)];
  runtime::convert_elements(DType::kF64, line.floats.data(), dtype, line.bytes.data(), count);
  runtime::convert_elements(dtype, line.bytes.data(), DType::kF64, line.floats.data(), count);
  return line;
}

bool less(double a, double b) { return a < b || (std::isnan(b) && !std::isnan(a)); }

std::vector<int64_t> sorted_places(const Line& line, DType dtype, bool descending) {
  std::vector<int64_t> places(line.floats.size());
  std::iota(places.begin(), places.end(), int64_t{0});
  std::ranges::stable_sort(places, [&](int64_t a, int64_t b) {
    if (descending) std::swap(a, b);
    const auto i = static_cast<size_t>(a), j = static_cast<size_t>(b);
    if (is_float(dtype)) return less(line.floats[i], line.floats[j]);
    if (dtype == DType::kU64) return static_cast<uint64_t>(line.ints[i]) < static_cast<uint64_t>(line.ints[j]);
    return line.ints[i] < line.ints[j];
  });
  return places;
}

class HostOrder : public ::testing::TestWithParam<DType> {};

TEST_P(HostOrder, IsThatOfAStableSort) {
  std::random_device device;
  const unsigned seed = device();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  int pauses = 0;
  for (const bool descending : {false, true}) {
    LineOrder order(GetParam(), descending, [&] { ++pauses; });
    for (const size_t length : {0, 1, 2, 17, 1023, 1024, 4097, 300000}) {
      const Line line = random_line(random, GetParam(), length);
      const std::vector<int64_t> want = sorted_places(line, GetParam(), descending);
      for (const size_t count : {length, length / 2, length / 5, std::min<size_t>(length, 3), size_t{0}}) {
        std::vector<int64_t> places(count, -1);
        const int before = pauses;
        order.first(line.bytes.data(), length, places);
        EXPECT_TRUE(count == 0 || pauses > before || length < 1 << 18) << "Ctrl-C would wait for the end";
        EXPECT_TRUE(std::equal(places.begin(), places.end(), want.begin())) << count << " of " << length;
      }
      if (descending || length == 0) continue;
      for (const size_t rank : {size_t{0}, length / 3, (length - 1) / 2, length - 1})
        EXPECT_EQ(order.ranked(line.bytes.data(), length, rank, false), want[rank]) << rank << " of " << length;
      const auto nan = std::ranges::find_if(line.floats, [](double x) { return std::isnan(x); });
      const int64_t first = is_float(GetParam()) && nan != line.floats.end() ? nan - line.floats.begin() : want[0];
      EXPECT_EQ(order.ranked(line.bytes.data(), length, 0, true), first) << length;
    }
  }
  EXPECT_GT(pauses, 0) << "Ctrl-C would wait for the end";
}

TEST_P(HostOrder, OfEqualElementsIsTheirOwn) {
  LineOrder order(GetParam(), true, [] {});
  const std::vector<std::byte> zeros(5000 * static_cast<size_t>(size_of(GetParam())));
  std::vector<int64_t> places(5000), want(5000);
  std::iota(want.begin(), want.end(), int64_t{0});
  order.first(zeros.data(), 5000, places);
  EXPECT_EQ(places, want);
  LineOrder ascending(GetParam(), false, [] {});
  EXPECT_EQ(ascending.ranked(zeros.data(), 5000, 1234, true), 1234);
}

INSTANTIATE_TEST_SUITE_P(DTypes, HostOrder,
                         ::testing::Values(DType::kI1, DType::kI8, DType::kU8, DType::kI16, DType::kU16, DType::kI32,
                                           DType::kU32, DType::kI64, DType::kU64, DType::kF8E4M3, DType::kF8E5M2,
                                           DType::kF16, DType::kBF16, DType::kF32, DType::kF64),
                         [](const auto& p) { return std::string(kiln::info(p.param).name); });

}  // namespace
}  // namespace kiln::script
