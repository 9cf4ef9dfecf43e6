#include "runtime/tensor/convert.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "kiln/tensor.h"
#include "support/diag.h"
#include "support/float_bits.h"

namespace kiln {
namespace runtime {
namespace {

// The C++ type of each element in memory; the formats without one are handled as their bits.
template <class T>
struct Element {
  using type = T;
};

// Calls fn with Element<T> of the integer type, or of the unsigned type of the format's bits for floats.
template <class Fn>
void with_storage_type(DType t, Fn fn) {
  switch (t) {
    case DType::kI1:
      return fn(Element<uint8_t>{});
    case DType::kI8:
      return fn(Element<int8_t>{});
    case DType::kI16:
      return fn(Element<int16_t>{});
    case DType::kI32:
      return fn(Element<int32_t>{});
    case DType::kI64:
      return fn(Element<int64_t>{});
    case DType::kU8:
      return fn(Element<uint8_t>{});
    case DType::kU16:
      return fn(Element<uint16_t>{});
    case DType::kU32:
      return fn(Element<uint32_t>{});
    case DType::kU64:
      return fn(Element<uint64_t>{});
    case DType::kF8E4M3:
      return fn(Element<uint8_t>{});
    case DType::kF8E5M2:
      return fn(Element<uint8_t>{});
    case DType::kF8E4B15:
      return fn(Element<uint8_t>{});
    case DType::kF16:
      return fn(Element<uint16_t>{});
    case DType::kBF16:
      return fn(Element<uint16_t>{});
    case DType::kF32:
      return fn(Element<uint32_t>{});
    case DType::kF64:
      return fn(Element<uint64_t>{});
  }
}

template <class T>
T load(const void* array, int64_t i) {
  T value;
  std::memcpy(&value, static_cast<const char*>(array) + i * static_cast<int64_t>(sizeof(T)), sizeof(T));
  return value;
}

template <class T>
void store(void* array, int64_t i, T value) {
  std::memcpy(static_cast<char*>(array) + i * static_cast<int64_t>(sizeof(T)), &value, sizeof(T));
}

void floats_to_doubles(DType from, const void* source, double* out, int64_t n) {
  if (from == DType::kF64) {
    std::memcpy(out, source, static_cast<size_t>(n) * 8);
  } else if (from == DType::kF32) {
    for (int64_t i = 0; i < n; ++i) out[i] = load<float>(source, i);
  } else {
    with_storage_type(from, [&](auto element) {
      using T = decltype(element)::type;
      for (int64_t i = 0; i < n; ++i) out[i] = float_from_bits(from, static_cast<uint64_t>(load<T>(source, i)));
    });
  }
}

// The integers of `source` as 64-bit patterns, sign- or zero-extended.
void ints_to_words(DType from, const void* source, uint64_t* out, int64_t n) {
  with_storage_type(from, [&](auto element) {
    using T = decltype(element)::type;
    for (int64_t i = 0; i < n; ++i) out[i] = static_cast<uint64_t>(static_cast<int64_t>(load<T>(source, i)));
  });
  // Memory may hold other bytes than 0 and 1 for a bool; all but 0 are true.
  if (from == DType::kI1)
    for (int64_t i = 0; i < n; ++i) out[i] = out[i] != 0;
}

/// The integer that a float is cut to, saturating.
template <class T>
T saturate(double v) {
  if (std::isnan(v)) return 0;
  // Both limits as doubles: the upper one may round up to 2^63 or 2^64, hence >=.
  constexpr auto low = static_cast<double>(std::numeric_limits<T>::min()),
                 high = static_cast<double>(std::numeric_limits<T>::max());
  if (v <= low) return std::numeric_limits<T>::min();
  if (v >= high) return std::numeric_limits<T>::max();
  return static_cast<T>(v);
}

/// As kernels convert: by way of an integer of 32 bits (64 for unsigned types, where negative numbers wrap), of which
/// the low bits stay.
template <class T>
T truncate(double v) {
  if constexpr (sizeof(T) == 8)
    return saturate<T>(v);
  else if constexpr (std::is_signed_v<T>)
    return static_cast<T>(saturate<int32_t>(v));
  else
    return static_cast<T>(saturate<int64_t>(v));
}

void doubles_to(DType to, const double* in, void* target, int64_t n) {
  if (to == DType::kF64) {
    std::memcpy(target, in, static_cast<size_t>(n) * 8);
  } else if (to == DType::kF32) {
    for (int64_t i = 0; i < n; ++i) store(target, i, static_cast<float>(in[i]));
  } else if (to == DType::kI1) {
    for (int64_t i = 0; i < n; ++i) store<uint8_t>(target, i, in[i] != 0);
  } else {
    with_storage_type(to, [&](auto element) {
      using T = decltype(element)::type;
      for (int64_t i = 0; i < n; ++i)
        store(
            target, i,
            is_float(to) ? static_cast<T>(unsaturated_float_bits(to, static_cast<float>(in[i]))) : truncate<T>(in[i]));
    });
  }
}

void words_to(DType to, const uint64_t* in, bool from_signed, void* target, int64_t n) {
  if (to == DType::kI1) {
    for (int64_t i = 0; i < n; ++i) store<uint8_t>(target, i, in[i] != 0);
    return;
  }
  with_storage_type(to, [&](auto element) {
    using T = decltype(element)::type;
    for (int64_t i = 0; i < n; ++i) {
      uint64_t word = in[i];
      if (is_float(to) && bits(to) < 32)
        word = unsaturated_float_bits(
            to, from_signed ? static_cast<float>(static_cast<int64_t>(word)) : static_cast<float>(word));
      else if (is_float(to))
        word = from_signed ? float_bits_from_int(to, static_cast<int64_t>(word)) : float_bits_from_uint(to, word);
      store(target, i, static_cast<T>(word));
    }
  });
}

}  // namespace

void convert_elements(DType from, const void* source, DType to, void* target, int64_t count) {
  if (count == 0) return;  // of no elements there may be no memory either
  if (from == to) {
    std::memcpy(target, source, static_cast<size_t>(count * size_of(to)));
    return;
  }
  // 4 KB on the stack, which stay in the first-level cache. Floats go by way of doubles, in which every format is
  // exact; integers by way of 64-bit words, which a double could not hold. To halves and fp8 both round to float32
  // first, as torch does.
  constexpr int64_t kChunk = 512;
  auto* in = static_cast<const char*>(source);
  auto* out = static_cast<char*>(target);
  for (int64_t done = 0; done < count; done += kChunk) {
    int64_t n = std::min(kChunk, count - done);
    if (is_float(from)) {
      double values[kChunk];
      floats_to_doubles(from, in + done * size_of(from), values, n);
      doubles_to(to, values, out + done * size_of(to), n);
    } else {
      uint64_t words[kChunk];
      ints_to_words(from, in + done * size_of(from), words, n);
      words_to(to, words, is_signed(from), out + done * size_of(to), n);
    }
  }
}

void copy_strided(void* target, std::span<const int64_t> target_strides, const void* source,
                  std::span<const int64_t> source_strides, std::span<const int64_t> shape, int element_bytes) {
  auto* out = static_cast<char*>(target);
  auto* in = static_cast<const char*>(source);
  if (shape.empty()) {
    std::memcpy(out, in, static_cast<size_t>(element_bytes));
    return;
  }
  if (shape.size() == 1) {
    int64_t out_step = target_strides[0] * element_bytes, in_step = source_strides[0] * element_bytes;
    if (out_step == element_bytes && in_step == element_bytes) {
      std::memcpy(out, in, static_cast<size_t>(shape[0] * element_bytes));
      return;
    }
    for (int64_t i = 0; i < shape[0]; ++i)
      std::memcpy(out + i * out_step, in + i * in_step, static_cast<size_t>(element_bytes));
    return;
  }
  for (int64_t i = 0; i < shape[0]; ++i)
    copy_strided(out + i * target_strides[0] * element_bytes, target_strides.subspan(1),
                 in + i * source_strides[0] * element_bytes, source_strides.subspan(1), shape.subspan(1),
                 element_bytes);
}

}  // namespace runtime

double to_double(DType dtype, const void* element) {
  double value = 0;
  runtime::convert_elements(dtype, element, DType::kF64, &value, 1);
  return value;
}

void from_double(DType dtype, double value, void* element) {
  runtime::convert_elements(DType::kF64, &value, dtype, element, 1);
}

}  // namespace kiln
