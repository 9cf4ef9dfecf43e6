// The scalar meaning of every pure elementwise op: the oracle of all executors, and what constant folding uses.
//
// Elements are carried as bits: the low bits(dtype) bits of a uint64_t, the rest zero; a pointer is its 64-bit address.
// - Integers wrap; signedness comes from the type. x / 0 = 0 and x % 0 = 0; the smallest integer / -1 wraps. A shift by
// the
//   width or more (the amount read as unsigned) gives 0, or -1 for `shr` of a negative number.
// - add, sub, mul, div, rem and fma are rounded once in every float format. A NaN that arithmetic makes is nan_bits().
// - min and max order -0 below +0; a NaN loses against a number unless nan = "propagate".
// - Math functions are computed in double (f32) or long double (f64) and rounded: executors agree within docs/math.md.
// - cast: int → float rounds once. float → int truncates and saturates to the 32- or 64-bit integer that the conversion
//   goes through, of the target's signedness, then keeps the low bits of narrower targets (f32 300 → u8 gives 44); NaN
//   gives 0. → i1 is != 0 (NaN: true). float → float rounds to nearest even, or toward zero; fp8 saturates.
#pragma once
#include <cstdint>
#include <span>

#include "compiler/ir/ir.h"
#include "support/float_bits.h"

namespace kiln::interp {

/// True for the ops that eval() takes: pure elementwise ones, but for assembly.
inline bool has_scalar_meaning(ir::OpKind kind) {
  return ir::has_trait(kind, 'P') && ir::has_trait(kind, 'E') && ir::op_class(kind) != ir::OpClass::kAsm;
}

/// One element: operands[i] are the bits of operand i; gives the result's bits.
uint64_t eval(const ir::Op& op, std::span<const uint64_t> operands);

/// The same for n elements: operands[i] points to n of them. `out` may be one of the operands.
void eval_lanes(const ir::Op& op, std::span<const uint64_t* const> operands, int64_t n, uint64_t* out);

/// x·y + addend of n elements, rounded once, for the operands of a multiplication. `out` may be one of them.
void eval_fma(const ir::Op& product, const uint64_t* x, const uint64_t* y, const uint64_t* addend, int64_t n,
              uint64_t* out);

/// Of a gather op, whose result's element number `position` (row-major) is to be found: the number of operand 0's
/// element that it is. others[i] are the bits of operand 1 + i at that position.
int64_t source_element(const ir::Op& op, int64_t position, std::span<const uint64_t> others);
/// Of a scatter, where the element number `position` (row-major) goes; -1 where its index is outside.
int64_t target_element(const ir::Op& op, int64_t position, uint64_t index);

/// The bits of each element of a kConstant op.
uint64_t constant_bits(const ir::Op& op);

/// All bits of an element of that type set.
constexpr uint64_t element_mask(int bits) { return bits == 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1; }
/// The integer that the bits hold, extended by the type's signedness.
int64_t int_value(DType dtype, uint64_t bits);
/// Any element as a double (64-bit integers lose low bits).
double number_value(DType dtype, uint64_t bits);
/// A cast on bits.
uint64_t convert(DType from, DType to, uint64_t bits, Rounding rounding = Rounding::kNearestEven);

}  // namespace kiln::interp
