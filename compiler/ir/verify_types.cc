// The type rule of each op. A rule returns what is wrong, or "".
#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "compiler/ir/builder.h"
#include "compiler/ir/inline_asm.h"
#include "compiler/ir/verifier.h"
#include "support/diag.h"

namespace kiln::ir {

namespace {

using Wrong = std::string;

bool is_i1(const Type& t) { return t.is_bool(); }
bool is_number(const Type& t) { return t.is_value() && !t.pointer; }
bool same_shape(const Type& a, const Type& b) { return a.shape == b.shape; }
Type operand_type(const Op& op, int i) { return op.operand(i)->type; }

Wrong wrong_type(std::string_view what, const Type& t, std::string_view wanted) {
  return fmt::format("{} is {}, not {}", what, to_string(t), wanted);
}

/// Operands and results all of one type, which is a number that `allowed` accepts.
Wrong one_type(const Op& op, bool (*allowed)(const Type&), std::string_view wanted) {
  const Type t = op.result()->type;
  for (const Value* v : op.operands)
    if (v->type != t) return fmt::format("an operand is {} and the result {}", to_string(v->type), to_string(t));
  return allowed(t) ? "" : wrong_type("the result", t, wanted);
}

bool any_number(const Type& t) { return is_number(t); }
bool any_int(const Type& t) { return t.is_int(); }
bool any_float(const Type& t) { return t.is_float(); }
bool wide_int(const Type& t) { return t.is_int() && t.element_bits() >= 32; }
bool math_float(const Type& t) { return t.is_float() && t.element_bits() >= 32; }

Wrong axis_in(const Op& op, int64_t count) {
  const int64_t axis = op.int_attr(AttrName::kAxis);
  return axis >= 0 && axis < count ? "" : fmt::format("attribute axis = {} is outside of 0 … {}", axis, count - 1);
}

Wrong result_is(const Op& op, const Type& wanted, int i = 0) {
  const Type& t = op.result(i)->type;
  return t.same_tile(wanted) ? "" : wrong_type("the result", t, to_string(wanted));
}

Wrong check_constant(const Op& op) {
  const Type& t = op.result()->type;
  const bool is_double = std::holds_alternative<double>(*op.find(AttrName::kValue));
  return is_double == t.is_float() ? "" : wrong_type("the result", t, "of the value's kind");
}

Wrong check_arange(const Op& op) {
  const int64_t start = op.int_attr(AttrName::kStart), end = op.int_attr(AttrName::kEnd);
  if (start >= end || start < INT32_MIN || end > INT32_MAX) return fmt::format("attribute range {} … {}", start, end);
  return result_is(op, tile_type(DType::kI32, {static_cast<int32_t>(end - start)}));
}

Wrong check_splat(const Op& op) {
  if (operand_type(op, 0).is_tile() || op.result()->type.is_scalar()) return "splat makes a tile of a scalar";
  return result_is(op, operand_type(op, 0).with_shape(op.result()->type.shape));
}

Wrong check_expand_dims(const Op& op) {
  const Type t = operand_type(op, 0);
  if (t.is_scalar() || t.shape.rank == kMaxRank) return wrong_type("the operand", t, "a tile that may get a dimension");
  if (Wrong w = axis_in(op, t.shape.rank + 1); !w.empty()) return w;
  Shape s;
  const int64_t axis = op.int_attr(AttrName::kAxis);
  for (int i = 0; i <= t.shape.rank; ++i) {
    if (i == axis) s.dims[s.rank++] = 1;
    if (i < t.shape.rank) s.dims[s.rank++] = t.shape[i];
  }
  return result_is(op, t.with_shape(s));
}

Wrong check_broadcast(const Op& op) {
  const Type from = operand_type(op, 0), to = op.result()->type;
  bool fits = from.is_tile() && from.shape.rank == to.shape.rank;
  for (int i = 0; fits && i < from.shape.rank; ++i) fits = from.shape[i] == to.shape[i] || from.shape[i] == 1;
  if (!fits) return fmt::format("{} does not broadcast to {}", to_string(from), to_string(to));
  return result_is(op, from.with_shape(to.shape));
}

Wrong check_reshape(const Op& op) {
  const Type from = operand_type(op, 0), to = op.result()->type;
  if (from.is_scalar() || to.is_scalar() || from.shape.numel() != to.shape.numel())
    return fmt::format("{} does not reshape to {}", to_string(from), to_string(to));
  return result_is(op, from.with_shape(to.shape));
}

Wrong check_trans(const Op& op) {
  const Type from = operand_type(op, 0);
  const auto& order = std::get<std::vector<int64_t>>(*op.find(AttrName::kOrder));
  std::vector<int64_t> sorted = order;
  std::sort(sorted.begin(), sorted.end());
  bool permutation = sorted.size() == from.shape.rank;
  for (size_t i = 0; permutation && i < sorted.size(); ++i) permutation = sorted[i] == static_cast<int64_t>(i);
  if (!permutation || from.is_scalar()) return "attribute order is no permutation of the dimensions";
  Shape s;
  for (int64_t d : order) s.dims[s.rank++] = from.shape[static_cast<int>(d)];
  return result_is(op, from.with_shape(s));
}

Shape with_last_two(Shape s) {
  s.dims[s.rank++] = 2;
  return s;
}

Wrong check_join(const Op& op) {
  const Type a = operand_type(op, 0);
  if (a != operand_type(op, 1) || a.is_scalar() || a.shape.rank == kMaxRank) return "join takes two tiles of one type";
  return result_is(op, a.with_shape(with_last_two(a.shape)));
}

Wrong check_split(const Op& op) {
  const Type a = op.result(0)->type;
  if (a != op.result(1)->type || a.is_scalar() || a.shape.rank == kMaxRank) return "split gives two tiles of one type";
  return operand_type(op, 0).same_tile(a.with_shape(with_last_two(a.shape)))
             ? ""
             : wrong_type("the operand", operand_type(op, 0), "the results with a last dimension of 2");
}

Wrong check_cmp(const Op& op) {
  if (operand_type(op, 0) != operand_type(op, 1)) return "cmp takes two operands of one type";
  return result_is(op, operand_type(op, 0).with_dtype(DType::kI1));
}

Wrong check_select(const Op& op) {
  const Type t = op.result()->type;
  if (operand_type(op, 1) != t || operand_type(op, 2) != t) return "select's values and result have one type";
  if (!is_i1(operand_type(op, 0)) || !same_shape(operand_type(op, 0), t))
    return wrong_type("the condition", operand_type(op, 0), "i1 of the result's shape");
  return "";
}

Wrong check_cast(const Op& op) {
  const Type from = operand_type(op, 0), to = op.result()->type;
  if (from.pointer || to.pointer || !same_shape(from, to))
    return fmt::format("{} does not cast to {}", to_string(from), to_string(to));
  const bool narrows = from.is_float() && to.is_float() && from.element_bits() > to.element_bits();
  return op.has(AttrName::kRounding) && !narrows ? "attribute rounding on a cast that does not narrow a float" : "";
}

Wrong check_bitcast(const Op& op) {
  const Type from = operand_type(op, 0), to = op.result()->type;
  if (from.pointer != to.pointer || !same_shape(from, to) || from.element_bits() != to.element_bits())
    return fmt::format("{} does not bitcast to {}", to_string(from), to_string(to));
  return "";
}

Wrong check_pointer_cast(const Op& op) {
  const bool to_pointer = op.kind == OpKind::kIntToPtr;
  const Type pointer = to_pointer ? op.result()->type : operand_type(op, 0);
  const Type integer = to_pointer ? operand_type(op, 0) : op.result()->type;
  const bool int_ok = integer.is_int() && (to_pointer ? integer.element_bits() == 64 : integer.dtype == DType::kI64);
  return pointer.pointer && int_ok && same_shape(pointer, integer)
             ? ""
             : fmt::format("{} of {} to {}", info(op.kind).mnemonic, to_string(operand_type(op, 0)),
                           to_string(op.result()->type));
}

Wrong check_addptr(const Op& op) {
  const Type p = operand_type(op, 0), offset = operand_type(op, 1);
  if (!p.pointer || !offset.is_int() || offset.is_bool() || !same_shape(p, offset))
    return fmt::format("addptr of {} and {}", to_string(p), to_string(offset));
  return result_is(op, p);
}

Type pointee(const Type& pointer) { return scalar_type(pointer.dtype).with_shape(pointer.shape); }

Wrong check_mask(const Op& op, int i) {
  if (i >= static_cast<int>(op.operands.size())) return "";
  const Type mask = operand_type(op, i);
  return is_i1(mask) && same_shape(mask, operand_type(op, 0))
             ? ""
             : wrong_type("the mask", mask, "i1 of the first operand's shape");
}

Wrong check_load(const Op& op) {
  const Type p = operand_type(op, 0);
  if (!p.pointer) return wrong_type("the operand", p, "a pointer");
  if (Wrong w = check_mask(op, 1); !w.empty()) return w;
  if (op.operands.size() == 3 && !operand_type(op, 2).same_tile(pointee(p)))
    return wrong_type("`other`", operand_type(op, 2), to_string(pointee(p)));
  return result_is(op, pointee(p));
}

Wrong check_store(const Op& op) {
  const Type p = operand_type(op, 0);
  if (!p.pointer) return wrong_type("the operand", p, "a pointer");
  if (!operand_type(op, 1).same_tile(pointee(p)))
    return wrong_type("the value", operand_type(op, 1), to_string(pointee(p)));
  return check_mask(op, 2);
}

bool fits_rmw(Rmw rmw, const Type& element) {
  switch (rmw) {
    case Rmw::kFAdd:
      return element.is_float() && element.element_bits() >= 16;
    case Rmw::kExchange:
      return element.element_bits() >= 32;
    case Rmw::kMin:
    case Rmw::kMax:
      return wide_int(element) || (element.is_float() && element.element_bits() == 16);
    case Rmw::kAdd:
    case Rmw::kAnd:
    case Rmw::kOr:
    case Rmw::kXor:
      return wide_int(element);
  }
  KILN_UNREACHABLE("rmw");
}

Wrong check_atomic(const Op& op) {
  const Type p = operand_type(op, 0);
  if (!p.pointer) return wrong_type("the operand", p, "a pointer");
  const Type element = pointee(p);
  for (int i = 1; i < (op.kind == OpKind::kAtomicCas ? 3 : 2); ++i)
    if (!operand_type(op, i).same_tile(element))
      return wrong_type("the value", operand_type(op, i), to_string(element));
  if (op.kind == OpKind::kAtomicCas) {
    if (element.element_bits() < 16) return wrong_type("the element", element, "of 16, 32 or 64 bits");
    return result_is(op, element);
  }
  if (!fits_rmw(op.word<Rmw>(), element))
    return fmt::format("atomic {} on {}", spelling(op.word<Rmw>()), to_string(element));
  if (Wrong w = check_mask(op, 2); !w.empty()) return w;
  return result_is(op, element);
}

Wrong check_combine(const Op& op) {
  const size_t n = op.operands.size();
  if (n == 0 || op.results.size() != n) return fmt::format("{} tiles give {} results", n, op.results.size());
  const Shape shape = operand_type(op, 0).shape;
  if (Wrong w = axis_in(op, shape.rank); !w.empty()) return w;
  const int axis = static_cast<int>(op.int_attr(AttrName::kAxis));
  const auto& args = op.region()->args;
  if (args.size() != 2 * n) return fmt::format("the combine region has {} arguments for {} tiles", args.size(), n);
  for (size_t i = 0; i < n; ++i) {
    const Type t = op.operands[i]->type;
    if (t.shape != shape || t.pointer) return wrong_type("an operand", t, "a tile of numbers of the common shape");
    const Type wanted = op.kind == OpKind::kReduce ? reduced_type(t, axis) : t;
    if (Wrong w = result_is(op, wanted, static_cast<int>(i)); !w.empty()) return w;
    if (args[i]->type != t.scalar() || args[n + i]->type != t.scalar())
      return wrong_type("an argument of the combine region", args[i]->type, to_string(t.scalar()));
  }
  if (op.flag(AttrName::kContract) && !is_float_sum(op)) return "contract on what is no sum of one tile of f32 or f64";
  return "";
}

Wrong check_gather(const Op& op) {
  const Type from = operand_type(op, 0), index = operand_type(op, 1);
  if (!from.is_tile() || !is_number(from)) return wrong_type("the operand", from, "a tile of numbers");
  if (!index.is_int() || index.is_bool()) return wrong_type("the index", index, "a tile of integers");
  if (Wrong w = axis_in(op, from.shape.rank); !w.empty()) return w;
  bool fits = index.shape.rank == from.shape.rank;
  for (int d = 0; fits && d < from.shape.rank; ++d)
    fits = d == op.int_attr(AttrName::kAxis) || index.shape[d] == from.shape[d];
  if (!fits) return wrong_type("the index", index, "of the operand's shape but along the axis");
  return result_is(op, from.with_shape(index.shape));
}

Wrong check_bucket_place(const Op& op) {
  const Type digits = operand_type(op, 0);
  if (!digits.is_tile() || digits.shape.rank != 1 || digits.dtype != DType::kI32)
    return wrong_type("the operand", digits, "a tile of i32 in one dimension");
  const int64_t bins = op.int_attr(AttrName::kBins);
  if (bins < 1 || bins > INT32_MAX || (bins & (bins - 1)) != 0) return fmt::format("{} bins, no power of two", bins);
  if (Wrong w = result_is(op, digits); !w.empty()) return w;
  const Type counts = digits.with_shape({static_cast<int32_t>(bins)});
  if (Wrong w = result_is(op, counts, 1); !w.empty()) return w;
  return result_is(op, counts, 2);
}

Wrong check_scatter(const Op& op) {
  const Type from = operand_type(op, 0), index = operand_type(op, 1);
  if (!from.is_tile() || !is_number(from)) return wrong_type("the operand", from, "a tile of numbers");
  if (!index.is_int() || index.is_bool()) return wrong_type("the index", index, "a tile of integers");
  if (Wrong w = axis_in(op, from.shape.rank); !w.empty()) return w;
  if (index.shape != from.shape) return wrong_type("the index", index, "of the operand's shape");
  return result_is(op, from);
}

Wrong check_for(const Op& op) {
  if (op.operands.size() < 3 || op.operands.size() - 3 != op.results.size())
    return fmt::format("{} operands and {} results", op.operands.size(), op.results.size());
  const Type iv = operand_type(op, 0);
  if (!iv.is_int() || iv.is_tile() || iv.is_bool()) return wrong_type("the lower bound", iv, "an integer scalar");
  if (operand_type(op, 1) != iv || operand_type(op, 2) != iv) return "the bounds and the step have different types";
  const Op* step = op.operand(2)->op;
  if (step && step->kind == OpKind::kConstant && step->int_attr(AttrName::kValue) <= 0)
    return "the step is not positive";
  const auto& args = op.region()->args;
  if (args.size() != op.results.size() + 1) return fmt::format("the body has {} arguments", args.size());
  if (args[0]->type != iv) return wrong_type("the induction variable", args[0]->type, to_string(iv));
  for (size_t i = 0; i < op.results.size(); ++i)
    if (op.operands[i + 3]->type != op.results[i]->type || args[i + 1]->type != op.results[i]->type)
      return wrong_type("an initial value", op.operands[i + 3]->type, to_string(op.results[i]->type));
  return "";
}

Wrong same_types(const std::vector<Value*>& got, const std::vector<Value*>& wanted, std::string_view what,
                 size_t skip = 0) {
  if (got.size() - skip != wanted.size())
    return fmt::format("{}: {} values for {}", what, got.size() - skip, wanted.size());
  for (size_t i = 0; i < wanted.size(); ++i)
    if (got[i + skip]->type != wanted[i]->type)
      return fmt::format("{}: {} for {}", what, to_string(got[i + skip]->type), to_string(wanted[i]->type));
  return "";
}

Wrong check_while(const Op& op) {
  if (Wrong w = same_types(op.operands, op.region(0)->args, "initial values"); !w.empty()) return w;
  return same_types(op.results, op.region(1)->args, "results");
}

Wrong check_if(const Op& op) {
  const Type c = operand_type(op, 0);
  if (!is_i1(c) || c.is_tile()) return wrong_type("the condition", c, "i1");
  for (const Block* region : op.regions)
    if (!region->args.empty()) return "a branch has no arguments";
  return "";
}

Wrong check_condition(const Op& op) {
  if (op.operands.empty()) return "condition needs an i1";
  const Type c = operand_type(op, 0);
  return is_i1(c) && c.is_scalar() ? "" : wrong_type("the condition", c, "i1");
}

Wrong check_hint(const Op& op) {
  const size_t wanted = static_cast<size_t>(std::max<int>(1, op.result()->type.shape.rank));
  for (AttrName a : {AttrName::kMultipleOf, AttrName::kMaxContiguous, AttrName::kMaxConstancy}) {
    const Attr* list = op.find(a);
    if (!list) continue;
    const auto& numbers = std::get<std::vector<int64_t>>(*list);
    if (numbers.size() != wanted || std::any_of(numbers.begin(), numbers.end(), [](int64_t n) { return n < 1; }))
      return fmt::format("attribute {} needs {} positive numbers", name(a), wanted);
  }
  return result_is(op, operand_type(op, 0));
}

/// Operands [first, …) are `count` scalars of type `dtype`.
Wrong check_scalars(const Op& op, size_t first, size_t count, DType dtype, std::string_view what) {
  if (op.operands.size() < first + count) return fmt::format("{} {} are missing", count, what);
  for (size_t i = first; i < first + count; ++i)
    if (op.operands[i]->type != scalar_type(dtype)) return wrong_type(what, op.operands[i]->type, kiln::name(dtype));
  return "";
}

Wrong operand_count(const Op& op, size_t wanted) {
  return op.operands.size() == wanted ? "" : fmt::format("{} operands, not {}", op.operands.size(), wanted);
}

Wrong is_form(const Type& t, Form form, std::string_view what) {
  return t.form == form ? "" : wrong_type("an operand", t, what);
}

/// a[…, M, K] · b[…, K, N] → [..., M, N] of the third operand's type. Operands may be handles of shared memory.
Wrong check_product(const Op& op) {
  const Type a = operand_type(op, 0), b = operand_type(op, 1), c = op.result()->type;
  const int rank = a.shape.rank;
  if (rank < 2 || b.shape.rank != rank || c.shape.rank != rank) return "a product of tiles that are no matrices";
  bool fits = a.shape[rank - 1] == b.shape[rank - 2] && a.shape[rank - 2] == c.shape[rank - 2] &&
              b.shape[rank - 1] == c.shape[rank - 1];
  for (int i = 0; i < rank - 2; ++i) fits = fits && a.shape[i] == c.shape[i] && b.shape[i] == c.shape[i];
  if (!fits || a.pointer || b.pointer || !c.is_tile() || !is_number(c))
    return fmt::format("{} times {} gives no {}", to_string(a), to_string(b), to_string(c));
  if (operand_type(op, 2) != c) return wrong_type("the addend", operand_type(op, 2), to_string(c));
  const bool ints = kiln::is_int(a.dtype);
  const bool same = a.dtype == b.dtype || (is_fp8(a.dtype) && is_fp8(b.dtype));
  if (!same || ints != c.is_int() || (ints && c.dtype != DType::kI32))
    return fmt::format("{} times {} in {}", to_string(a), to_string(b), to_string(c));
  return "";
}

Wrong check_dot(const Op& op) {
  for (int i = 0; i < 2; ++i)
    if (!operand_type(op, i).is_tile()) return wrong_type("an operand", operand_type(op, i), "a tile");
  if (Wrong w = check_product(op); !w.empty()) return w;
  if (!op.has(AttrName::kKWidth)) return "";
  constexpr int64_t kLanesAlongK = 4;
  const Shape& a = operand_type(op, 0).shape;
  const int64_t width = op.int_attr(AttrName::kKWidth);
  if (width > 0 && std::has_single_bit(static_cast<uint64_t>(width)) && width <= a[a.rank - 1] / kLanesAlongK)
    return "";
  return fmt::format("has k_width {}, which is no power of two up to {}, a quarter of its elements along k", width,
                     a[a.rank - 1] / kLanesAlongK);
}

Wrong check_wgmma(const Op& op) {
  if (!operand_type(op, 0).is_tile())
    if (Wrong w = is_form(operand_type(op, 0), Form::kShared, "a tile or shared memory"); !w.empty()) return w;
  if (Wrong w = is_form(operand_type(op, 1), Form::kShared, "shared memory"); !w.empty()) return w;
  return check_product(op);
}

Wrong check_make_descriptor(const Op& op) {
  const Type t = op.result()->type;
  const size_t rank = t.shape.rank;
  if (t.form != Form::kDescriptor || rank == 0) return wrong_type("the result", t, "a descriptor");
  if (op.operands.size() == 2 + 2 * rank) {
    if (Wrong w = is_form(operand_type(op, static_cast<int>(1 + 2 * rank)), Form::kShared, "shared memory"); !w.empty())
      return w;
  } else if (Wrong w = operand_count(op, 1 + 2 * rank); !w.empty()) {
    return w;
  }
  if (operand_type(op, 0) != pointer_type(t.dtype))
    return wrong_type("the base", operand_type(op, 0), "a pointer to " + std::string(kiln::name(t.dtype)));
  if (Wrong w = check_scalars(op, 1, rank, DType::kI32, "sizes"); !w.empty()) return w;
  return check_scalars(op, 1 + rank, rank, DType::kI64, "strides");
}

/// Operand `first` is a descriptor, and operands [offsets, …) say where in its tensor the block starts.
Wrong check_block_access(const Op& op, int descriptor, const Type& block, size_t offsets) {
  const Type d = operand_type(op, descriptor);
  if (Wrong w = is_form(d, Form::kDescriptor, "a descriptor"); !w.empty()) return w;
  if (block.dtype != d.dtype || dropped_dims(d.shape, block.shape) < 0 || block.pointer)
    return fmt::format("a block {} of {}", to_string(block), to_string(d));
  if (Wrong w = operand_count(op, offsets + d.shape.rank); !w.empty()) return w;
  return check_scalars(op, offsets, d.shape.rank, DType::kI32, "offsets");
}

/// Shared memory and a tile of its elements.
Wrong check_shared_access(const Op& op, const Type& shared, const Type& tile) {
  if (Wrong w = is_form(shared, Form::kShared, "shared memory"); !w.empty()) return w;
  const bool fits = tile.is_tile() && !tile.pointer && tile.dtype == shared.dtype && tile.shape == shared.shape;
  return fits && shared.copies == 1
             ? ""
             : fmt::format("{} of {} in {}", info(op.kind).mnemonic, to_string(tile), to_string(shared));
}

Wrong check_shared_view(const Op& op) {
  Type one = operand_type(op, 0);
  if (one.form != Form::kShared && one.form != Form::kBarrier)
    return wrong_type("the operand", one, "shared memory or barriers");
  one.copies = 1;
  if (op.result()->type != one) return wrong_type("the result", op.result()->type, to_string(one));
  return check_scalars(op, 1, 1, DType::kI32, "numbers of a copy");
}

Wrong check_shared_trans(const Op& op) {
  if (Wrong w = is_form(op.result()->type, Form::kShared, "shared memory"); !w.empty()) return w;
  return check_trans(op);
}

Wrong check_async_copy(const Op& op) {
  const Type p = operand_type(op, 1);
  if (!p.pointer || !p.is_tile()) return wrong_type("the source", p, "a tile of pointers");
  if (op.operands.size() == 3 && (!is_i1(operand_type(op, 2)) || !same_shape(operand_type(op, 2), p)))
    return wrong_type("the mask", operand_type(op, 2), "i1 of the pointers' shape");
  return check_shared_access(op, operand_type(op, 0), pointee(p));
}

Wrong check_wgmma_wait(const Op& op) {
  if (op.operands.size() != op.results.size())
    return fmt::format("{} operands and {} results", op.operands.size(), op.results.size());
  for (size_t i = 0; i < op.results.size(); ++i)
    if (op.results[i]->type != op.operands[i]->type)
      return wrong_type("the result", op.results[i]->type, to_string(op.operands[i]->type));
  return "";
}

/// Each region but the first is that of one thread, in a warp of its own.
Wrong check_roles(const Op& op) {
  const int64_t warps = op.int_attr(AttrName::kWarps);
  if (op.regions.size() < 2 || std::ssize(op.regions) - 1 > warps)
    return fmt::format("{} regions, and {} warps beside the kernel's own", op.regions.size(), warps);
  return "";
}

Wrong check_mbarrier(const Op& op) {
  if (Wrong w = is_form(operand_type(op, 0), Form::kBarrier, "a barrier"); !w.empty()) return w;
  if (op.kind != OpKind::kMbarrierInit && operand_type(op, 0).copies != 1)
    return wrong_type("the operand", operand_type(op, 0), "one barrier");
  return op.kind == OpKind::kMbarrierWait ? check_scalars(op, 1, 1, DType::kI32, "parities") : "";
}

Wrong check_tma_load(const Op& op) {
  if (op.operands.size() < 4) return "tma_load takes shared memory, a barrier, a descriptor and offsets";
  const Type block = operand_type(op, 0);
  if (Wrong w = is_form(block, Form::kShared, "shared memory"); !w.empty()) return w;
  if (Wrong w = is_form(operand_type(op, 1), Form::kBarrier, "a barrier"); !w.empty()) return w;
  if (block.copies != 1 || operand_type(op, 1).copies != 1) return "tma_load takes one copy and one barrier";
  return check_block_access(op, 2, block, 3);
}

Wrong check_tma_store(const Op& op) {
  if (op.operands.size() < 3) return "tma_store takes a descriptor, shared memory and offsets";
  const Type block = operand_type(op, 1);
  if (Wrong w = is_form(block, Form::kShared, "shared memory"); !w.empty()) return w;
  return check_block_access(op, 0, block, 2);
}

/// Of both ops of assembly: the group, and constraints that fit the operands and the outputs.
Wrong check_asm(const Op& op, const std::vector<Type>& outputs) {
  const int64_t pack = op.int_attr(AttrName::kPack);
  if (pack < 1 || pack > 32 || (pack & (pack - 1)) != 0)
    return fmt::format("{} packs a power of two of elements", info(op.kind).mnemonic);
  std::vector<Type> inputs;
  for (const Value* v : op.operands) inputs.push_back(v->type.scalar());
  Wrong wrong;
  match_asm(std::get<std::string>(*op.find(AttrName::kConstraints)), outputs, inputs, static_cast<int>(pack), &wrong);
  return wrong;
}

Wrong check_inline_asm(const Op& op) {
  const std::vector<Type> outputs = asm_outputs(op);
  const int64_t output = op.int_attr(AttrName::kOutput);
  if (output < 0 || output >= static_cast<int64_t>(outputs.size())) return "inline_asm has no output of that number";
  if (op.operands.empty()) return "inline_asm takes values";
  if (Wrong w = check_asm(op, outputs); !w.empty()) return w;
  return result_is(op, outputs[static_cast<size_t>(output)].with_shape(operand_type(op, 0).shape));
}

Wrong check_asm_effect(const Op& op) {
  const std::vector<Type> outputs = asm_outputs(op);
  const Shape shape = op.operands.empty() ? Shape() : operand_type(op, 0).shape;
  for (const Value* v : op.operands)
    if (v->type.shape != shape) return "asm_effect takes values of one shape";
  if (Wrong w = check_asm(op, outputs); !w.empty()) return w;
  if (op.results.size() != outputs.size()) return "asm_effect has a result for each output";
  for (size_t i = 0; i < outputs.size(); ++i)
    if (Wrong w = result_is(op, outputs[i].with_shape(shape), static_cast<int>(i)); !w.empty()) return w;
  return {};
}

}  // namespace

std::string check_op_types(const Op& op) {
  switch (op.kind) {
    case OpKind::kConstant:
      return check_constant(op);
    case OpKind::kProgramId:
    case OpKind::kNumPrograms:
      if (Wrong w = axis_in(op, 3); !w.empty()) return w;
      return result_is(op, scalar_type(DType::kI32));
    case OpKind::kCtaRank:
      return result_is(op, scalar_type(DType::kI32));
    case OpKind::kArange:
      return check_arange(op);
    case OpKind::kSplat:
      return check_splat(op);
    case OpKind::kExpandDims:
      return check_expand_dims(op);
    case OpKind::kBroadcast:
      return check_broadcast(op);
    case OpKind::kReshape:
      return check_reshape(op);
    case OpKind::kTrans:
      return check_trans(op);
    case OpKind::kJoin:
      return check_join(op);
    case OpKind::kSplit:
      return check_split(op);
#define KILN_NUMBER_OP(e, ...) \
  case OpKind::k##e:           \
    return one_type(op, any_number, "a number");
#define KILN_FLOAT_OP(e, ...) \
  case OpKind::k##e:          \
    return one_type(op, any_float, "a float");
#define KILN_MATH_OP(e, ...) \
  case OpKind::k##e:         \
    return one_type(op, math_float, "f32 or f64");
#define KILN_BITS_OP(e, ...)                                                                 \
  case OpKind::k##e:                                                                         \
    return op.kind == OpKind::kMulHi ? one_type(op, wide_int, "an integer of 32 or 64 bits") \
                                     : one_type(op, any_int, "an integer");
#include "compiler/ir/ops.def"
    case OpKind::kCmp:
      return check_cmp(op);
    case OpKind::kSelect:
      return check_select(op);
    case OpKind::kCast:
      return check_cast(op);
    case OpKind::kBitcast:
      return check_bitcast(op);
    case OpKind::kIntToPtr:
    case OpKind::kPtrToInt:
      return check_pointer_cast(op);
    case OpKind::kAddPtr:
      return check_addptr(op);
    case OpKind::kLoad:
      return check_load(op);
    case OpKind::kStore:
      return check_store(op);
    case OpKind::kPrefetch:
      if (!operand_type(op, 0).pointer) return wrong_type("the operand", operand_type(op, 0), "a pointer");
      return check_mask(op, 1);
    case OpKind::kAtomicRmw:
    case OpKind::kAtomicCas:
      return check_atomic(op);
    case OpKind::kReduce:
    case OpKind::kScan:
      return check_combine(op);
    case OpKind::kGather:
      return check_gather(op);
    case OpKind::kBucketPlace:
      return check_bucket_place(op);
    case OpKind::kScatter:
      return check_scatter(op);
    case OpKind::kFor:
      return check_for(op);
    case OpKind::kWhile:
      return check_while(op);
    case OpKind::kIf:
      return check_if(op);
    case OpKind::kCondition:
      return check_condition(op);
    case OpKind::kAssert:
      if (!is_i1(operand_type(op, 0))) return wrong_type("the condition", operand_type(op, 0), "i1");
      return check_mask(op, 1);
    case OpKind::kAssume:
      return is_i1(operand_type(op, 0)) ? "" : wrong_type("the fact", operand_type(op, 0), "i1");
    case OpKind::kHint:
      return check_hint(op);
    case OpKind::kInlineAsm:
      return check_inline_asm(op);
    case OpKind::kAsmEffect:
      return check_asm_effect(op);
    case OpKind::kConvertLayout:
      return result_is(op, operand_type(op, 0));
    case OpKind::kDot:
      return check_dot(op);
    case OpKind::kMakeDescriptor:
      return check_make_descriptor(op);
    case OpKind::kDescriptorLoad:
      if (op.operands.empty()) return "descriptor_load takes a descriptor and offsets";
      return check_block_access(op, 0, op.result()->type, 1);
    case OpKind::kDescriptorStore:
      if (op.operands.size() < 2) return "descriptor_store takes a descriptor, a value and offsets";
      return check_block_access(op, 0, operand_type(op, 1), 2);
    case OpKind::kSharedAlloc: {
      const Form form = op.result()->type.form;
      return form == Form::kShared || form == Form::kBarrier ? "" : "shared_alloc gives shared memory or barriers";
    }
    case OpKind::kSharedView:
      return check_shared_view(op);
    case OpKind::kSharedTrans:
      return check_shared_trans(op);
    case OpKind::kSharedLoad:
      return check_shared_access(op, operand_type(op, 0), op.result()->type);
    case OpKind::kSharedStore:
      return check_shared_access(op, operand_type(op, 0), operand_type(op, 1));
    case OpKind::kAsyncCopy:
      return check_async_copy(op);
    case OpKind::kMbarrierInit:
    case OpKind::kMbarrierExpect:
    case OpKind::kMbarrierArrive:
    case OpKind::kMbarrierWait:
      return check_mbarrier(op);
    case OpKind::kTmaLoad:
      return check_tma_load(op);
    case OpKind::kTmaStore:
      return check_tma_store(op);
    case OpKind::kWgmma:
      return check_wgmma(op);
    case OpKind::kWgmmaWait:
      return check_wgmma_wait(op);
    case OpKind::kWarpSpecialize:
      return check_roles(op);
    case OpKind::kAsyncCommit:
    case OpKind::kAsyncWait:
    case OpKind::kTmaStoreWait:
    case OpKind::kFenceAsync:
    case OpKind::kBarrier:
    case OpKind::kClusterBarrier:
    case OpKind::kGdcWait:
    case OpKind::kGdcLaunchDependents:
    case OpKind::kPrint:
    case OpKind::kYield:
    case OpKind::kReturn:
      return "";
  }
  KILN_UNREACHABLE("op kind");
}

std::string check_region_results(const Op& op) {
  if (op.regions.empty()) return "";
  const std::vector<Value*>& yielded = op.region(0)->terminator()->operands;
  if (op.kind == OpKind::kReduce || op.kind == OpKind::kScan) {
    const auto& args = op.region()->args;
    return same_types(yielded, {args.begin(), args.begin() + static_cast<long>(op.operands.size())}, "yield");
  }
  if (op.kind == OpKind::kWhile) {
    if (Wrong w = same_types(yielded, op.region(1)->args, "condition", 1); !w.empty()) return w;
    return same_types(op.region(1)->terminator()->operands, op.region(0)->args, "yield");
  }
  for (const Block* region : op.regions)
    if (Wrong w = same_types(region->terminator()->operands, op.results, "yield"); !w.empty()) return w;
  return "";
}

}  // namespace kiln::ir
