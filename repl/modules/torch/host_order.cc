#include "repl/modules/torch/host_order.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "runtime/tensor/convert.h"

namespace kiln::script {

namespace {

// An element that is sorted: its key in the upper half and its place in the lower one. No two are equal, so that any
// sort is stable. Lines that are longer than a half of 32 bits counts, and keys of 64 bits, take the wide one.
using Narrow = uint64_t;
__extension__ using Wide = unsigned __int128;

template <class Word>
constexpr int kHalf = sizeof(Word) * 4;  // bits

constexpr size_t kPiece = 4096;          // elements that are converted at a time
constexpr size_t kPause = 1 << 18;       // elements between two pauses
constexpr size_t kFewest = 1024;         // elements that are sorted by digits; comparisons sort fewer in less time
constexpr int kDigit = 11;               // bits: three digits of keys of 32 bits, counted in 8 KiB each
constexpr size_t kDigits = 1 << kDigit;  // values of one

/// Unsigned numbers in the order of the values.
template <class Bits, class Float>
Bits key_of_float(Float x) {
  constexpr Bits kTop = Bits{1} << (8 * sizeof(Bits) - 1);
  const Bits bits = std::bit_cast<Bits>(x == 0 ? Float{0} : x);  // of -0.0 as of 0.0
  const Bits key = bits & kTop ? ~bits : bits | kTop;
  return std::isnan(x) ? ~Bits{0} : key;
}

/// What the keys of integers count from: the least of their dtype.
uint64_t least_of(DType dtype) {
  if (!is_signed(dtype)) return 0;
  return static_cast<uint64_t>(size_of(dtype) == 8 ? INT64_MIN : INT32_MIN);
}

/// Calls each(number of the first, keys) for pieces of a line. Bits holds all keys; those of integers count from
/// `least`.
template <class Bits, class Each>
void keys(DType dtype, uint64_t least, const std::byte* line, size_t length, bool descending, Each&& each) {
  const auto width = static_cast<size_t>(size_of(dtype));
  const Bits flip = descending ? ~Bits{0} : Bits{0};
  // What each piece is converted to: the values of narrower dtypes are exact there.
  using Float = std::conditional_t<sizeof(Bits) == 4, float, double>;
  const DType as = !is_float(dtype) ? DType::kI64 : sizeof(Bits) == 4 ? DType::kF32 : DType::kF64;
  std::array<Float, kPiece> floats;
  std::array<int64_t, kPiece> ints;
  std::array<Bits, kPiece> out;
  for (size_t first = 0; first < length; first += kPiece) {
    const size_t n = std::min(kPiece, length - first);
    void* values = is_float(dtype) ? static_cast<void*>(floats.data()) : static_cast<void*>(ints.data());
    runtime::convert_elements(dtype, line + first * width, as, values, static_cast<int64_t>(n));
    if (is_float(dtype))
      for (size_t i = 0; i < n; ++i) out[i] = key_of_float<Bits>(floats[i]) ^ flip;
    else
      for (size_t i = 0; i < n; ++i) out[i] = static_cast<Bits>(static_cast<uint64_t>(ints[i]) - least) ^ flip;
    each(first, std::span<const Bits>(out.data(), n));
  }
}

/// The elements of one line as words, and as many again.
template <class Word>
using Words = std::pair<std::vector<Word>, std::vector<Word>>;

template <class Word>
class Sorter {
 public:
  Sorter(DType dtype, uint64_t least, bool descending, const std::function<void()>& pause, Words<Word>& words)
      : dtype_(dtype),
        least_(least),
        descending_(descending),
        pause_(pause),
        words_(words.first),
        next_(words.second) {}

  void first(const std::byte* line, size_t length, std::span<int64_t> places) {
    // Few enough to be sorted between two pauses.
    if (places.size() < std::min(length / 4, kPause)) {
      select(line, length, places.size());
      std::sort(words_.begin(), words_.end());
    } else {
      load(line, length);
      sort();
    }
    for (size_t i = 0; i < places.size(); ++i) places[i] = place(words_[i]);
  }

  int64_t ranked(const std::byte* line, size_t length, size_t rank, bool nan_first) {
    load(line, length);
    if (nan_first && is_float(dtype_)) {
      const Word nan = word(~Bits{0}, 0);  // no other number has that key
      const auto found = std::find_if(words_.begin(), words_.end(), [&](Word w) { return w >= nan; });
      if (found != words_.end()) return place(*found);
    }
    // By one digit after another, the highest first, of which those stay that have the value at that rank.
    for (int shift = 2 * kHalf<Word> - kDigit; words_.size() > kFewest && shift >= kHalf<Word>; shift -= kDigit) {
      std::array<size_t, kDigits> count{};
      in_pieces(words_.size(), [&](size_t i) { ++count[digit(words_[i], shift)]; });
      size_t wanted = 0;
      while (rank >= count[wanted]) rank -= count[wanted++];
      if (count[wanted] == words_.size()) continue;
      size_t kept = 0;
      in_pieces(words_.size(), [&](size_t i) {
        words_[kept] = words_[i];
        kept += digit(words_[i], shift) == wanted;
      });
      words_.resize(kept);
    }
    std::nth_element(words_.begin(), words_.begin() + static_cast<ptrdiff_t>(rank), words_.end());
    return place(words_[rank]);
  }

 private:
  using Bits = std::conditional_t<sizeof(Word) == 8, uint32_t, uint64_t>;

  static int64_t place(Word w) { return static_cast<int64_t>(static_cast<Bits>(w)); }
  static size_t digit(Word w, int shift) { return static_cast<size_t>(w >> shift) & (kDigits - 1); }
  static Word word(Bits key, size_t place) { return Word{key} << kHalf<Word> | place; }

  template <class Each>
  void in_pieces(size_t n, Each&& each) {
    for (size_t first = 0; first < n; first += kPause) {
      pause_();
      for (size_t i = first; i < std::min(n, first + kPause); ++i) each(i);
    }
  }

  /// Keys of pieces; it pauses as in_pieces() does.
  template <class Each>
  void each_key(const std::byte* line, size_t length, Each&& each) {
    keys<Bits>(dtype_, least_, line, length, descending_, [&](size_t first, std::span<const Bits> piece) {
      if (first % kPause == 0) pause_();
      each(first, piece);
    });
  }

  void load(const std::byte* line, size_t length) {
    words_.resize(length);
    each_key(line, length, [&](size_t first, std::span<const Bits> piece) {
      for (size_t i = 0; i < piece.size(); ++i) words_[first + i] = word(piece[i], first + i);
    });
  }

  /// The first `count` elements in any order. What comes behind `count` others is left out as it is met.
  void select(const std::byte* line, size_t length, size_t count) {
    words_.clear();
    if (count == 0) return;
    const size_t room = std::max(kFewest, 2 * count);
    Word limit = ~Word{0};
    auto shrink = [&] {
      const auto last = words_.begin() + static_cast<ptrdiff_t>(count) - 1;
      std::nth_element(words_.begin(), last, words_.end());
      limit = *last;
      words_.resize(count);
    };
    each_key(line, length, [&](size_t first, std::span<const Bits> piece) {
      for (size_t i = 0; i < piece.size(); ++i) {
        const Word w = word(piece[i], first + i);
        if (w >= limit) continue;
        words_.push_back(w);
        if (words_.size() == room) shrink();
      }
    });
    if (words_.size() > count) shrink();
  }

  /// Of words in the order of their places, which the digits of equal keys keep.
  void sort() {
    const size_t n = words_.size();
    if (n < kFewest) {
      std::sort(words_.begin(), words_.end());
      return;
    }
    next_.resize(n);
    // The last digit may reach past the key, where there is nothing.
    for (int shift = kHalf<Word>; shift < 2 * kHalf<Word>; shift += kDigit) {
      std::array<size_t, kDigits> at{};
      in_pieces(n, [&](size_t i) { ++at[digit(words_[i], shift)]; });
      if (at[digit(words_[0], shift)] == n) continue;
      size_t total = 0;
      for (size_t& a : at) total += std::exchange(a, total);
      in_pieces(n, [&](size_t i) { next_[at[digit(words_[i], shift)]++] = words_[i]; });
      words_.swap(next_);
    }
  }

  const DType dtype_;
  const uint64_t least_;
  const bool descending_;
  const std::function<void()>& pause_;
  std::vector<Word>&words_, &next_;
};

}  // namespace

struct LineOrder::Implementation {
  const DType dtype;
  const bool descending;
  const std::function<void()> pause;
  Words<Narrow> narrow;
  Words<Wide> wide;

  template <class Use>
  auto with_sorter(const std::byte* line, size_t length, Use&& use) {
    const bool few = length <= kMostNarrow;
    if (few && size_of(dtype) <= 4) return use(Sorter<Narrow>(dtype, least_of(dtype), descending, pause, narrow));
    // Wide integers are mostly places and identifiers, all near each other.
    const auto [least, most] = few && is_int(dtype) ? range_of(line, length) : std::pair(uint64_t{0}, ~uint64_t{0});
    if (most - least < kMostNarrow)
      return use(Sorter<Narrow>(dtype, least + least_of(dtype), descending, pause, narrow));
    return use(Sorter<Wide>(dtype, least_of(dtype), descending, pause, wide));
  }

 private:
  static constexpr size_t kMostNarrow = std::numeric_limits<uint32_t>::max();

  std::pair<uint64_t, uint64_t> range_of(const std::byte* line, size_t length) const {
    uint64_t least = ~uint64_t{0}, most = 0;
    keys<uint64_t>(dtype, least_of(dtype), line, length, false, [&](size_t first, std::span<const uint64_t> piece) {
      if (first % kPause == 0) pause();
      for (const uint64_t key : piece) least = std::min(least, key), most = std::max(most, key);
    });
    return {least, most};
  }
};

LineOrder::LineOrder(DType dtype, bool descending, std::function<void()> pause)
    : implementation_(new Implementation{dtype, descending, std::move(pause), {}, {}}) {}

LineOrder::~LineOrder() = default;

void LineOrder::first(const std::byte* line, size_t length, std::span<int64_t> places) {
  implementation_->with_sorter(line, length, [&](auto sorter) { sorter.first(line, length, places); });
}

int64_t LineOrder::ranked(const std::byte* line, size_t length, size_t rank, bool nan_first) {
  return implementation_->with_sorter(line, length,
                                      [&](auto sorter) { return sorter.ranked(line, length, rank, nan_first); });
}

}  // namespace kiln::script
