// Types of IR values: a scalar or tile of numbers or of pointers, or a handle to memory that has a layout of its own.
// Small value types, compared by value.
#pragma once
#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

#include "kiln/dtype.h"

namespace kiln::layout {
class LinearLayout;
}

namespace kiln::ir {

/// Triton has no limit: with dimensions of 2, kMaxNumel elements have 20, and a few of 1 may be added to them.
inline constexpr int kMaxRank = 24;
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

/// Leading dimensions of a descriptor's blocks that a tile of one lacks: each is 1. -1 where the tile is no such block.
inline int dropped_dims(const Shape& descriptor, const Shape& tile) {
  const int dropped = descriptor.rank - tile.rank;
  if (dropped < 0) return -1;
  for (int d = 0; d < descriptor.rank; ++d)
    if (descriptor[d] != (d < dropped ? 1 : tile[d - dropped])) return -1;
  return dropped;
}

/// What a value of the type is. Handles are uniform over the program, and neither scalars nor tiles.
enum class Form : uint8_t {
  kValue,       // numbers or pointers
  kDescriptor,  // a tensor in global memory that is read and written in blocks of `shape`
  kShared,   // `copies` tiles of shared memory, each of `shape` and held as `layout` (input group: offset, in elements)
  kBarrier,  // `copies` mbarriers in shared memory
};

struct Type {
  DType dtype = DType::kI32;  // of the element, or of what the element points to
  bool pointer = false;       // elements are global-memory pointers to dtype
  Shape shape;
  const layout::LinearLayout* layout = nullptr;  // set on every tile in the distributed stage; interned by the Module
  Form form = Form::kValue;
  int32_t copies = 1;  // of shared memory and barriers; they lie one after the other

  bool is_value() const { return form == Form::kValue; }
  bool is_tile() const { return is_value() && shape.rank > 0; }
  bool is_scalar() const { return is_value() && shape.rank == 0; }
  bool is_int() const { return is_value() && !pointer && kiln::is_int(dtype); }
  bool is_float() const { return is_value() && !pointer && kiln::is_float(dtype); }
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
  bool same_tile(const Type& o) const {
    return dtype == o.dtype && pointer == o.pointer && shape == o.shape && form == o.form && copies == o.copies;
  }
};

inline Type scalar_type(DType d) { return Type{d, false, {}, nullptr}; }
inline Type pointer_type(DType pointee) { return Type{pointee, true, {}, nullptr}; }
inline Type tile_type(DType d, const Shape& s) { return Type{d, false, s, nullptr}; }
inline Type descriptor_type(DType d, const Shape& block) { return Type{d, false, block, nullptr, Form::kDescriptor}; }
inline Type shared_type(DType d, const Shape& s, const layout::LinearLayout* layout, int32_t copies = 1) {
  return Type{d, false, s, layout, Form::kShared, copies};
}
inline Type barrier_type(int32_t copies) { return Type{DType::kI64, false, {}, nullptr, Form::kBarrier, copies}; }

/// "f32", "*bf16", "f32[128, 64]", "*f16[64]", "desc f16[128, 64]", "shared f16[128, 64] x 3", "barrier x 3".
/// `layout_name` ("{L2}") stands behind the shape.
std::string to_string(const Type& type, std::string_view layout_name = {});

}  // namespace kiln::ir
