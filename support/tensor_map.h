// What a compiled kernel asks of its launcher: tensor maps (descriptors of the tensor memory accelerator), described as
// recipes over the kernel's arguments. Plain data between the compiler, the kernel cache and the CUDA backend.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kiln/dtype.h"

namespace kiln {

/// What the tensor memory accelerator asks of a tensor: that its first element and its rows start at multiples of so
/// many bytes, which are also the least that a block's row has, and at most so many dimensions.
inline constexpr int kTensorMapAlignment = 16;
inline constexpr int kTensorMapDims = 5;

/// The values of CUtensorMapDataType and CUtensorMapSwizzle, which cuda.h numbers so for good.
int tensor_map_data_type(DType dtype);
int tensor_map_swizzle(int bytes);

/// The operations of a HostExpression, each with the number of values that it takes.
//           enum      values
// clang-format off
#define KILN_HOST_OPS(X)                                                                                               \
  X(Constant, 0)                                                                                                       \
  X(Param, 0)                                                                                                          \
  X(Cast, 1)                                                                                                           \
  X(Add, 2)                                                                                                            \
  X(Sub, 2)                                                                                                            \
  X(Mul, 2) X(Div, 2) X(Rem, 2) X(Min, 2) X(Max, 2) X(And, 2) X(Or, 2) X(Xor, 2) X(Shl, 2) X(Shr, 2) X(Eq, 2) X(Ne, 2) \
      X(Lt, 2) X(Le, 2) X(Gt, 2) X(Ge, 2) X(Select, 3)
// clang-format on

enum class HostOp : uint8_t {
#define KILN_HOST_OP(e, values) k##e,
  KILN_HOST_OPS(KILN_HOST_OP)
#undef KILN_HOST_OP
};
inline constexpr int kHostOpValues[] = {
#define KILN_HOST_OP(e, values) values,
    KILN_HOST_OPS(KILN_HOST_OP)
#undef KILN_HOST_OP
};
inline constexpr int kNumHostOps = static_cast<int>(std::size(kHostOpValues));

/// An integer function of a kernel's arguments, in postfix order. A value is the int64_t whose low bits are those of
/// `type` (u64 as its bits); pointers are u64. Arithmetic wraps and means what the tile IR's ops mean.
struct HostExpression {
  struct Step {
    HostOp op{};
    DType type{};        // of the result; of comparisons: of the operands
    int64_t number = 0;  // kConstant: the value; kParam: which parameter
    bool operator==(const Step&) const = default;
  };
  std::vector<Step> steps;

  bool operator==(const HostExpression&) const = default;
  /// The value, when no argument decides it.
  std::optional<int64_t> constant() const;
};

/// One value from steps in order, each with the values that it takes; parameters below `num_params`. Anything else must
/// not be evaluated.
bool is_well_formed(const HostExpression& e, int num_params);
/// `slots` has 8 bytes per parameter, as launches pass them. The expression is well-formed.
int64_t evaluate(const HostExpression& e, std::span<const uint64_t> slots);
/// As the steps stand: "p0 16 mul".
std::string to_string(const HostExpression& e);

/// A tensor in global memory, and the box of it that one copy moves. Dimensions as in make_descriptor: outermost first.
struct TensorMapRecipe {
  std::string name;  // the kernel's parameter that holds the tensor, for messages
  DType dtype{};
  HostExpression base;                         // address in bytes
  std::vector<HostExpression> sizes, strides;  // in elements; the last stride is 1
  std::vector<int32_t> box;                    // in elements
  int32_t swizzle = 0;                         // bytes of a row of the swizzle: 0 (none), 32, 64 or 128
  bool stored = false;                         // written, not read
  bool operator==(const TensorMapRecipe&) const = default;
};

}  // namespace kiln
