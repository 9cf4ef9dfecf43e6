// Types of IR values: a scalar or tile of numbers or of pointers. Small value types, compared by value.
#pragma once
#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

#include "kiln/dtype.h"

namespace kiln::layout {
class LinearLayout;
}

namespace kiln::ir {

inline constexpr int kMaxRank = 6;
/// Triton's limit on the number of elements of a tile.
inline constexpr int64_t kMaxNumel = 1 << 20;

/// Dimensions of a tile, each a power of two. Rank 0 is a scalar.
struct Shape {
  std::array<int32_t, kMaxRank> dims{};
  uint8_t rank = 0;

  Shape() = default;
  Shape(std::initializer_list<int32_t> list) {
    for (int32_t d : list) dims[rank++] = d;
  }
  explicit Shape(std::span<const int32_t> list) {
    for (int32_t d : list) dims[rank++] = d;
  }

  int32_t operator[](int i) const { return dims[i]; }
  int32_t& operator[](int i) { return dims[i]; }
  int64_t numel() const {
    int64_t n = 1;
    for (int i = 0; i < rank; ++i) n *= dims[i];
    return n;
  }
  std::span<const int32_t> span() const { return {dims.data(), rank}; }
  bool operator==(const Shape&) const = default;
};

/// "[128, 64]", "[]" for a scalar.
std::string to_string(const Shape& shape);

struct Type {
  DType dtype = DType::kI32;  // of the element, or of what the element points to
  bool pointer = false;       // elements are global-memory pointers to dtype
  Shape shape;
  const layout::LinearLayout* layout = nullptr;  // set on every tile in the distributed stage; interned by the Module

  bool is_tile() const { return shape.rank > 0; }
  bool is_scalar() const { return shape.rank == 0; }
  bool is_int() const { return !pointer && kiln::is_int(dtype); }
  bool is_float() const { return !pointer && kiln::is_float(dtype); }
  bool is_bool() const { return !pointer && dtype == DType::kI1; }
  int element_bits() const { return pointer ? 64 : bits(dtype); }
  Type with_shape(const Shape& s) const {
    Type t = *this;
    t.shape = s;
    t.layout = nullptr;
    return t;
  }
  Type with_dtype(DType d) const {
    Type t = *this;
    t.dtype = d;
    t.pointer = false;
    return t;
  }
  Type with_layout(const layout::LinearLayout* l) const {
    Type t = *this;
    t.layout = l;
    return t;
  }
  Type scalar() const { return with_shape({}); }
  bool operator==(const Type&) const = default;
  /// Equal but for the layout.
  bool same_tile(const Type& o) const { return dtype == o.dtype && pointer == o.pointer && shape == o.shape; }
};

inline Type scalar_type(DType d) { return Type{d, false, {}, nullptr}; }
inline Type pointer_type(DType pointee) { return Type{pointee, true, {}, nullptr}; }
inline Type tile_type(DType d, const Shape& s) { return Type{d, false, s, nullptr}; }

/// "f32", "*bf16", "f32[128, 64]", "*f16[64]"; the printer adds the layout's name: "f32[128, 64]{L2}".
std::string to_string(const Type& type);

}  // namespace kiln::ir
