#include "tests/fuzz/generator.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <random>

#include "compiler/interp/eval.h"
#include "compiler/ir/builder.h"
#include "support/diag.h"

namespace kiln::fuzz {

namespace {

using ir::AttrName;
using ir::Block;
using ir::Op;
using ir::OpKind;
using ir::Shape;
using ir::Type;
using ir::Value;

class Random {
 public:
  explicit Random(uint64_t seed) : engine_(seed) {}
  uint64_t bits() { return engine_(); }
  /// In [0, n).
  int below(int n) { return static_cast<int>(engine_() % static_cast<uint64_t>(n)); }
  bool chance(int percent) { return below(100) < percent; }
  template <class Range>
  auto& pick(Range& range) {
    return range[static_cast<size_t>(below(static_cast<int>(std::size(range))))];
  }

 private:
  std::mt19937_64 engine_;
};

/// Bits of an element: small numbers, ends of the range, special floats, anything.
uint64_t random_element(Random& rng, DType t) {
  const int kind = rng.below(10);
  const uint64_t mask = interp::element_mask(bits(t));
  if (is_int(t)) {
    if (kind < 5) return static_cast<uint64_t>(static_cast<int64_t>(rng.below(17)) - 8) & mask;
    if (kind < 7) return (uint64_t{1} << rng.below(bits(t))) & mask;
    if (kind == 7) return mask >> rng.below(2);
    return rng.bits() & mask;
  }
  if (kind < 5) return float_to_bits(t, (rng.below(65) - 32) / 4.0);
  if (kind < 7) return float_to_bits(t, static_cast<double>(static_cast<int64_t>(rng.bits())) * 0x1p-62);
  if (kind < 9) {
    static constexpr double kSpecial[] = {0.0, -0.0, -0.0, 0.0, 1.0, -1.0, 1e-40, 65504.0, 1e30, -1e-7, 0.5, 3.0};
    return float_to_bits(t, rng.pick(kSpecial));
  }
  const uint64_t bits = rng.bits() & mask;
  // NaNs are quiet: a GPU's min and max of f64 make NaN of a signalling one and a number, where others give the number.
  return rng.chance(30) || is_nan_bits(t, bits) ? nan_bits(t) : bits;
}

/// Ops by what they take. All are exact on every executor.
constexpr OpKind kIntBinary[] = {OpKind::kAdd, OpKind::kSub, OpKind::kMul,  OpKind::kDiv, OpKind::kRem,
                                 OpKind::kMin, OpKind::kMax, OpKind::kAnd,  OpKind::kOr,  OpKind::kXor,
                                 OpKind::kShl, OpKind::kShr, OpKind::kMulHi};
constexpr OpKind kFloatBinary[] = {OpKind::kAdd, OpKind::kSub, OpKind::kMul, OpKind::kDivRn,
                                   OpKind::kRem, OpKind::kMin, OpKind::kMax};
constexpr OpKind kAnyUnary[] = {OpKind::kNeg, OpKind::kAbs};
constexpr OpKind kWideUnary[] = {OpKind::kNeg,   OpKind::kAbs,  OpKind::kFloor, OpKind::kCeil,
                                 OpKind::kTrunc, OpKind::kRint, OpKind::kSqrtRn};
constexpr OpKind kApproximate[] = {
    OpKind::kDiv,
#define KILN_MATH_OP(e, ...) OpKind::k##e,
#include "compiler/ir/ops.def"
};
constexpr ir::Predicate kPredicates[] = {ir::Predicate::kEq, ir::Predicate::kNe, ir::Predicate::kLt,
                                         ir::Predicate::kLe, ir::Predicate::kGt, ir::Predicate::kGe};

class Generator {
 public:
  Generator(uint64_t seed, const GeneratorOptions& options)
      : rng_(seed), options_(options), statements_(1 + rng_.below(options.max_statements)) {
    program_.seed = seed;
    program_.module = std::make_unique<ir::Module>("fuzz");
    b_.emplace(*program_.module);
    dtypes_ = options.dtypes;
    if (dtypes_.empty())
      for (int i = 0; i < kNumDTypes; ++i) dtypes_.push_back(static_cast<DType>(i));
    // A few shapes per program, so that values meet; each a refinement of one number of elements.
    int numel = 1;
    while (numel < options.max_numel && rng_.chance(80)) numel *= 2;
    for (int i = 0; i < 3; ++i) shapes_.push_back(random_shape(numel));
    shapes_.push_back(Shape{numel});
  }

  Program run() {
    static constexpr int kWarps[] = {1, 2, 4, 8};
    program_.module->num_warps = rng_.pick(kWarps);
    for (int32_t& g : program_.grid) g = 1 + rng_.below(rng_.chance(50) ? 3 : 1);
    programs_ = int64_t{program_.grid[0]} * program_.grid[1] * program_.grid[2];
    linear_id_ = linear_program_id();
    for (int i = 0; i < 3; ++i) scalar_param();
    for (int i = 0; i < 2 + rng_.below(3); ++i) load();
    statements(statements_, 0);
    // What is left at the end is the result: a few values of the outermost scope.
    for (int i = 0; i < 8; ++i)
      if (Value* v = any_value([](const Value*) { return true; })) store(v, std::nullopt);
    b_->ret();
    return std::move(program_);
  }

 private:
  // --- choosing

  Shape random_shape(int numel) {
    Shape s;
    int left = numel;
    const int rank = 1 + rng_.below(3);
    for (int d = 0; d + 1 < rank; ++d) {
      int size = 1;
      while (size < left && rng_.chance(60)) size *= 2;
      s.dims[s.rank++] = size;
      left /= size;
    }
    s.dims[s.rank++] = left;
    return s;
  }

  DType random_dtype() { return rng_.pick(dtypes_); }

  template <class Fn>
  Value* any_value(Fn&& accepts) {
    std::vector<Value*> found;
    for (Value* v : pool_)
      if (accepts(v)) found.push_back(v);
    if (found.empty()) return nullptr;
    // Later values are likelier: chains get longer.
    return found[static_cast<size_t>(
        std::max(rng_.below(static_cast<int>(found.size())), rng_.below(static_cast<int>(found.size()))))];
  }

  Value* number() {
    return any_value([](const Value* v) { return !v->type.pointer; });
  }
  Value* computable() {
    return any_value([](const Value* v) { return !(v->type.is_float() && is_fp8(v->type.dtype)); });
  }

  Value* constant(const Type& type) {
    const uint64_t bits = random_element(rng_, type.dtype);
    if (!type.is_float()) return b_->constant_int(type, interp::int_value(type.dtype, bits));
    // Of bits that a number has: the largest pattern of fp8e4b15 is none's.
    const uint64_t of_number = float_to_bits(type.dtype, float_from_bits(type.dtype, bits));
    return b_->constant_float(type, float_from_bits(type.dtype, of_number));
  }

  /// A value of exactly that type: from the pool, by a cast, by a splat, or a constant.
  Value* like(const Type& type) {
    if (rng_.chance(75))
      if (Value* v = any_value([&](const Value* x) { return x->type == type; })) return v;
    if (rng_.chance(60))
      if (Value* v = any_value([&](const Value* x) { return x->type.shape == type.shape && x->type != type; }))
        return b_->cast(v, type.dtype);
    if (type.is_tile() && rng_.chance(60)) return b_->splat(like(type.scalar()), type.shape);
    return constant(type);
  }

  /// A constant that identities ask for.
  Value* neutral(const Type& type) {
    static constexpr double kNumbers[] = {0.0, -0.0, 1.0, -1.0};
    const double v = rng_.pick(kNumbers);
    return type.is_float() ? b_->constant_float(type, v) : b_->constant_int(type, static_cast<int64_t>(v));
  }

  void add(Value* v) { pool_.push_back(v); }

  // --- parameters and memory

  Value* new_param(const Type& type, Param param, int divisibility) {
    Value* v = program_.module->add_arg(program_.module->body(), type, fmt::format("p{}", program_.params.size()));
    program_.module->params.push_back({std::string(v->name), divisibility});
    program_.params.push_back(param);
    return v;
  }

  void scalar_param() {
    const DType t = rng_.chance(40) ? DType::kI32 : random_dtype();
    add(new_param(ir::scalar_type(t), {-1, random_element(rng_, t)}, 1));
  }

  Value* new_buffer(DType dtype, int64_t count, bool output, std::optional<Approximation> approximation) {
    Buffer buffer{dtype, std::vector<std::byte>(static_cast<size_t>(count * size_of(dtype))), output, approximation};
    if (!output || options_.reread)
      for (int64_t i = 0; i < count; ++i) {
        const uint64_t bits = random_element(rng_, dtype);
        std::memcpy(buffer.bytes.data() + i * size_of(dtype), &bits, static_cast<size_t>(size_of(dtype)));
      }
    program_.buffers.push_back(std::move(buffer));
    return new_param(ir::pointer_type(dtype), {static_cast<int>(program_.buffers.size()) - 1, 0},
                     rng_.chance(70) ? 16 : 1);
  }

  Value* i32(int64_t v) { return b_->constant_int(ir::scalar_type(DType::kI32), v); }
  Value* i32(Value* like_this, int64_t v) { return b_->constant_int(like_this->type.with_dtype(DType::kI32), v); }

  Value* linear_program_id() {
    Value* id = b_->program_id(2);
    for (int axis : {1, 0}) {
      Value* scaled = b_->binary(OpKind::kMul, id, b_->num_programs(axis));
      id = b_->binary(OpKind::kAdd, scaled, b_->program_id(axis));
    }
    return id;
  }

  /// What is true of 0, 1, … n-1.
  Value* hint(Value* range) {
    const std::vector<int64_t> n = {range->type.shape[0]};
    const std::pair<AttrName, ir::Attr> facts[] = {{AttrName::kMultipleOf, n}, {AttrName::kMaxContiguous, n}};
    return b_->create1(OpKind::kHint, {range}, range->type, {facts[rng_.below(2)]});
  }

  /// 0, 1, … in row-major order: by reshaping a range, or as rows * width + columns the way kernels write it.
  Value* row_major(const Shape& shape) {
    if (shape.rank != 2 || rng_.chance(50)) {
      Value* range = b_->arange(0, static_cast<int>(shape.numel()));
      if (rng_.chance(20)) range = hint(range);
      return b_->reshape(range, shape);
    }
    Value* rows = b_->broadcast(b_->expand_dims(b_->arange(0, shape[0]), 1), shape);
    Value* columns = b_->broadcast(b_->expand_dims(b_->arange(0, shape[1]), 0), shape);
    return b_->binary(OpKind::kAdd, b_->binary(OpKind::kMul, rows, i32(rows, shape[1])), columns);
  }

  /// Pointers to this program's own part of a buffer of programs · numel elements.
  Value* own_part(Value* base, const Shape& shape) {
    if (rng_.chance(10)) {  // through an integer
      Value* address = b_->create1(OpKind::kPtrToInt, {base}, ir::scalar_type(DType::kI64));
      base = b_->create1(OpKind::kIntToPtr, {address}, base->type);
    }
    Value* p = b_->addptr(base, b_->binary(OpKind::kMul, linear_id_, i32(shape.numel())));
    return shape.rank == 0 ? p : b_->addptr(b_->splat(p, shape), row_major(shape));
  }

  /// On for the first few elements in row-major order, as what guards the end of a tensor is, or for any.
  Value* mask_of(const Type& type) {
    if (type.is_scalar() || rng_.chance(50)) return like(type.with_dtype(DType::kI1));
    Value* index = row_major(type.shape);
    Value* end = rng_.chance(50)
                     ? i32(index, static_cast<int64_t>(rng_.below(static_cast<int>(type.shape.numel()) + 2)))
                     : b_->splat(like(ir::scalar_type(DType::kI32)), type.shape);
    return b_->cmp(ir::Predicate::kLt, index, end);
  }

  Value* load_from(Value* pointers) {
    Type type = ir::scalar_type(pointers->type.dtype).with_shape(pointers->type.shape);
    if (rng_.chance(40)) return b_->load(pointers);
    Value* mask = mask_of(type);
    return rng_.chance(50) ? b_->load(pointers, mask) : b_->load(pointers, mask, like(type));
  }

  void barrier() {
    if (options_.barriers) b_->create(OpKind::kBarrier, {}, {});
  }

  /// Elements of one program in an output.
  int64_t part_size(const Value* base) const {
    return program_.buffers[static_cast<size_t>(program_.params[base->index].buffer)].count() / programs_;
  }

  void load() {
    const Shape shape = rng_.chance(85) ? rng_.pick(shapes_) : Shape{};
    const DType dtype = random_dtype();
    if (options_.reread && !stored_.empty() && rng_.chance(40)) {
      Value* base = rng_.pick(stored_);
      const int64_t part = part_size(base);
      barrier();
      return add(load_from(own_part(base, part == 1 ? Shape{} : Shape{static_cast<int32_t>(part)})));
    }
    if (shape.rank == 0 || rng_.chance(60)) {
      Value* base = new_buffer(dtype, programs_ * shape.numel(), false, std::nullopt);
      return add(load_from(own_part(base, shape)));
    }
    // Gathered: any integers, cut to the buffer's size.
    constexpr int kCount = 64;
    Value* base = new_buffer(dtype, kCount, false, std::nullopt);
    const DType index = rng_.chance(70) ? DType::kI32 : rng_.chance(50) ? DType::kI64 : DType::kU32;
    const Type type = ir::tile_type(index, shape);
    Value* offsets = b_->binary(OpKind::kAnd, like(type), b_->constant_int(type, kCount - 1));
    add(load_from(b_->addptr(b_->splat(base, shape), offsets)));
  }

  void store(Value* v, std::optional<Approximation> approximation) {
    const Shape& shape = v->type.shape;
    Value* base = nullptr;
    if (options_.reread && !approximation && rng_.chance(60))
      for (Value* old : stored_)
        if (old->type.dtype == v->type.dtype && part_size(old) == shape.numel()) base = old;
    if (!base) base = new_buffer(v->type.dtype, programs_ * shape.numel(), true, approximation);
    Value* mask = !approximation && rng_.chance(30) ? mask_of(v->type) : nullptr;
    if (options_.reread) barrier();  // others may still read what an earlier turn of a loop stored
    b_->store(own_part(base, shape), v, mask);
    if (!approximation) stored_.push_back(base);
  }

  void atomic() {
    const DType dtype = rng_.chance(50) ? DType::kI32 : rng_.chance(50) ? DType::kU64 : DType::kU32;
    if (std::find(dtypes_.begin(), dtypes_.end(), dtype) == dtypes_.end()) return;
    using ir::Rmw;
    static constexpr Rmw kRmw[] = {Rmw::kAdd, Rmw::kMin, Rmw::kMax, Rmw::kAnd, Rmw::kOr, Rmw::kXor};
    const Shape shape = rng_.chance(85) ? rng_.pick(shapes_) : Shape{};
    constexpr int kCount = 8;
    Value* base = new_buffer(dtype, kCount, true, std::nullopt);
    const Type type = scalar_or_tile(DType::kI32, shape);
    Value* offsets = b_->binary(OpKind::kAnd, like(type), b_->constant_int(type, kCount - 1));
    std::vector<Value*> operands = {b_->addptr(b_->splat(base, shape), offsets), like(type.with_dtype(dtype))};
    if (rng_.chance(50)) operands.push_back(like(type.with_dtype(DType::kI1)));
    const Type result = type.with_dtype(dtype);
    b_->create(
        OpKind::kAtomicRmw, operands, std::span(&result, 1),
        {{AttrName::kRmw, rng_.pick(kRmw)}, {AttrName::kSem, ir::Sem::kRelaxed}, {AttrName::kScope, ir::Scope::kGpu}});
  }
  static Type scalar_or_tile(DType t, const Shape& s) { return ir::scalar_type(t).with_shape(s); }

  // --- elementwise

  void arithmetic() {
    Value* x = computable();
    if (!x) return;
    const Type type = x->type;
    const bool wide = type.element_bits() >= 32;
    if (rng_.chance(25)) {
      if (type.is_float() && wide) return add(b_->unary(rng_.pick(kWideUnary), x));
      return add(b_->unary(rng_.pick(kAnyUnary), x));
    }
    if (type.is_float() && rng_.chance(15)) return add(b_->create1(OpKind::kFma, {x, like(type), like(type)}, type));
    OpKind kind = type.is_float() ? rng_.pick(kFloatBinary) : rng_.pick(kIntBinary);
    if (kind == OpKind::kMulHi && !wide) kind = OpKind::kMul;
    Value* y = rng_.chance(25) ? neutral(type) : rng_.chance(10) ? x : like(type);
    if (!type.is_float() && (kind == OpKind::kDiv || kind == OpKind::kRem))
      y = b_->binary(OpKind::kOr, y, b_->constant_int(type, 1));
    if (!type.is_float() && (kind == OpKind::kShl || kind == OpKind::kShr) && rng_.chance(70))
      y = b_->binary(OpKind::kAnd, y, b_->constant_int(type, 7));
    if (rng_.chance(30)) std::swap(x, y);
    if (!type.is_float() && (kind == OpKind::kDiv || kind == OpKind::kRem)) {
      y = b_->binary(OpKind::kOr, y, b_->constant_int(type, 1));  // also after the swap
    }
    Value* result = b_->binary(kind, x, y);
    if ((kind == OpKind::kMin || kind == OpKind::kMax) && type.is_float() && rng_.chance(40))
      result->op->set(ir::Nan::kPropagate);
    add(result);
  }

  void comparison() {
    if (Value* x = computable()) add(b_->cmp(rng_.pick(kPredicates), x, like(x->type)));
  }

  void select() {
    if (Value* x = number()) add(b_->select(like(x->type.with_dtype(DType::kI1)), x, like(x->type)));
  }

  void cast() {
    Value* x = number();
    if (!x) return;
    const DType to = random_dtype();
    Value* result = b_->cast(x, to);
    const bool narrows = x->type.is_float() && is_float(to) && x->type.element_bits() > bits(to);
    if (narrows && rng_.chance(30))
      result->op->set(rng_.chance(80) ? ir::Rounding::kTowardZero : ir::Rounding::kNearestEven);
    add(result);
    if (rng_.chance(40)) add(b_->cast(result, random_dtype()));
  }

  void bitcast() {
    Value* x = number();
    if (!x) return;
    std::vector<DType> same;
    for (DType t : dtypes_)
      if (bits(t) == x->type.element_bits()) same.push_back(t);
    if (same.empty()) return;
    const Type to = x->type.with_dtype(rng_.pick(same));
    Value* bits = b_->create1(OpKind::kBitcast, {x}, to);
    if (x->type.is_float() && to.dtype != x->type.dtype) {
      // Which bits a NaN has is nobody's promise, and another format may take them for a number. fp8 is compared as
      // f32.
      Value* f = is_fp8(x->type.dtype) ? b_->cast(x, DType::kF32) : x;
      bits = b_->select(b_->cmp(ir::Predicate::kEq, f, f), bits, b_->zero(to));
    }
    add(bits);
  }

  /// An assertion or assumption that holds, and that no pass sees through.
  void fact() {
    Value* x = any_value([](const Value* v) { return v->type.is_int() && v->type.element_bits() > 4; });
    if (!x) return;
    Value* low = b_->binary(OpKind::kAnd, x, b_->constant_int(x->type, 7));
    Value* holds = b_->cmp(ir::Predicate::kLt, low, b_->constant_int(x->type, 8));
    if (rng_.chance(50)) return void(b_->create(OpKind::kAssume, std::span(&holds, 1), {}));
    Value* operands[] = {holds, like(holds->type)};
    b_->create(OpKind::kAssert, std::span(operands, rng_.chance(50) ? 2 : 1), {},
               {{AttrName::kText, std::string("low bits")}});
  }

  void approximate() {
    Value* x = any_value([](const Value* v) { return v->type.dtype == DType::kF32 || v->type.dtype == DType::kF64; });
    if (!x) return;
    const OpKind kind = rng_.pick(kApproximate);
    Value* result = ir::info(kind).min_operands == 1 ? b_->unary(kind, x) : b_->binary(kind, x, like(x->type));
    store(result, Approximation{kind, 1});
  }

  // --- shapes

  void shape() {
    Value* x = number();
    if (!x) return;
    const Shape& s = x->type.shape;
    if (s.rank == 0) return add(b_->splat(x, rng_.pick(shapes_)));
    switch (rng_.below(6)) {
      case 0:
        if (s.rank < 4) add(b_->expand_dims(x, rng_.below(s.rank + 1)));
        return;
      case 1: {
        Shape to = s;
        for (int d = 0; d < s.rank; ++d)
          if (s[d] == 1 && to.numel() < options_.max_numel && rng_.chance(60)) to[d] = 2 << rng_.below(2);
        return add(b_->broadcast(x, to));
      }
      case 2:
        return add(b_->reshape(x, random_shape(static_cast<int>(s.numel()))));
      case 3: {
        std::vector<int64_t> order;
        for (int d = 0; d < s.rank; ++d) order.insert(order.begin() + rng_.below(d + 1), d);
        return add(b_->trans(x, order));
      }
      case 4: {
        if (s.rank >= 4 || 2 * s.numel() > options_.max_numel) return;
        Shape joined = s;
        joined.dims[joined.rank++] = 2;
        return add(b_->create1(OpKind::kJoin, {x, like(x->type)}, x->type.with_shape(joined)));
      }
      default: {
        if (s.rank < 2 || s[s.rank - 1] != 2) return;
        Shape half = s;
        half.dims[--half.rank] = 0;
        const Type types[] = {x->type.with_shape(half), x->type.with_shape(half)};
        Op* op = b_->create(OpKind::kSplit, std::span(&x, 1), types);
        add(op->result(0));
        return add(op->result(1));
      }
    }
  }

  // --- across elements: combines whose result does not depend on the order

  /// A loop over pairs (value, index) of integers: the largest value, the lowest index among equals.
  void arg_max() {
    Value* x = any_value([](const Value* v) { return v->type.is_tile() && v->type.is_int() && !v->type.is_bool(); });
    if (!x) return;
    Value* tiles[] = {x, row_major(x->type.shape)};
    Op* op = b_->reduce(tiles, rng_.below(x->type.shape.rank));
    const auto& a = op->region()->args;
    b_->set_to_end(op->region());
    Value* greater = b_->cmp(ir::Predicate::kGt, a[0], a[2]);
    Value* first =
        b_->binary(OpKind::kAnd, b_->cmp(ir::Predicate::kEq, a[0], a[2]), b_->cmp(ir::Predicate::kLt, a[1], a[3]));
    Value* take = b_->binary(OpKind::kOr, greater, first);
    Value* out[] = {b_->select(take, a[0], a[2]), b_->select(take, a[1], a[3])};
    b_->yield(out);
    b_->set_after(op);
    add(op->result(0));
    add(op->result(1));
  }

  /// Indices of any size and along any axis, most of them outside.
  void gather() {
    Value* x = any_value([](const Value* v) { return v->type.is_tile() && !v->type.pointer; });
    if (!x) return;
    const int axis = rng_.below(x->type.shape.rank);
    Shape shape = x->type.shape;
    if (rng_.chance(30)) shape.dims[static_cast<size_t>(axis)] = 1 << rng_.below(3);
    if (shape.numel() > options_.max_numel) return;
    static constexpr DType kIndices[] = {DType::kI32, DType::kI64, DType::kI8, DType::kU16, DType::kU32};
    Value* index = like(ir::tile_type(rng_.pick(kIndices), shape));
    if (rng_.chance(70)) {
      Value* last = b_->constant_int(index->type, std::min(x->type.shape[axis] - 1, 127));
      index = b_->binary(OpKind::kAnd, index, last);
    }
    add(b_->create1(OpKind::kGather, {x, index}, x->type.with_shape(shape), {{AttrName::kAxis, int64_t{axis}}}));
  }

  /// Places and counts of what a vector holds, part of it in no bin; then the vector in another order.
  void bucket_place() {
    Value* x = any_value([](const Value* v) { return v->type.is_int() && v->type.shape.rank == 1; });
    if (!x) return;
    const Type digit = ir::tile_type(DType::kI32, x->type.shape);
    Value* digits = x->type == digit ? x : b_->create1(OpKind::kCast, {x}, digit);
    const int bins = 1 << rng_.below(9);
    if (rng_.chance(80)) digits = b_->binary(OpKind::kAnd, digits, b_->constant_int(digit, 2 * bins - 1));
    const std::array<Type, 3> types = {digit, digit.with_shape({bins}), digit.with_shape({bins})};
    Op* op = b_->create(OpKind::kBucketPlace, std::span(&digits, 1), types, {{AttrName::kBins, int64_t{bins}}});
    if (rng_.chance(80)) add(op->result(0));
    if (bins > 1) add(op->result(1));
    if (bins > 1 && rng_.chance(50)) add(op->result(2));
    const int32_t size = x->type.shape[0];
    Value* places = b_->binary(OpKind::kXor, b_->arange(0, size), b_->constant_int(digit, rng_.below(size)));
    add(b_->create1(OpKind::kScatter, {x, places}, x->type, {{AttrName::kAxis, int64_t{0}}}));
  }

  void across() {
    if (rng_.chance(20)) return arg_max();
    if (rng_.chance(20)) return gather();
    if (rng_.chance(15)) return bucket_place();
    Value* x =
        any_value([](const Value* v) { return v->type.is_tile() && !(v->type.is_float() && is_fp8(v->type.dtype)); });
    if (!x) return;
    const Type type = x->type;
    const int axis = rng_.below(type.shape.rank);
    static constexpr OpKind kInts[] = {OpKind::kAdd, OpKind::kMin, OpKind::kMax, OpKind::kAnd,
                                       OpKind::kOr,  OpKind::kXor, OpKind::kMul};
    static constexpr OpKind kFloats[] = {OpKind::kMin, OpKind::kMax};
    OpKind kind = type.is_float() ? rng_.pick(kFloats) : rng_.pick(kInts);
    const bool sum = type.is_float() && options_.approximate && rng_.chance(40);
    if (sum) {
      // Terms of one sign and of moderate size: the error is then bounded by their number. (min drops a NaN.)
      kind = OpKind::kAdd;
      x = b_->binary(OpKind::kMin, b_->unary(OpKind::kAbs, x), b_->constant_float(type, 16.0));
    }
    Op* op;
    if (rng_.chance(60)) {
      op = b_->reduce(std::span(&x, 1), axis);
    } else {
      op = b_->create(OpKind::kScan, std::span(&x, 1), std::span(&type, 1), {{AttrName::kAxis, int64_t{axis}}});
      if (rng_.chance(50)) op->set(AttrName::kReverse, true);
      for (int side = 0; side < 2; ++side) program_.module->add_arg(op->region(), type.scalar());
    }
    b_->set_to_end(op->region());
    Value* combined = b_->binary(kind, op->region()->args[0], op->region()->args[1]);
    b_->yield(std::span(&combined, 1));
    b_->set_after(op);
    if (sum)
      store(op->result(), Approximation{op->kind, type.shape[axis]});
    else
      add(op->result());
  }

  // --- control flow

  /// Fills a block: the pool is what it was afterwards.
  template <class Fn>
  void in_block(Block* block, std::span<Value* const> args, Fn&& fill) {
    const size_t scope = pool_.size();
    const std::vector<Value*> stored = stored_;
    for (Value* a : args) add(a);
    b_->set_to_end(block);
    fill();
    pool_.resize(scope);
    stored_ = stored;  // what a branch stored may not have been stored
  }

  std::vector<Value*> some_values(int most) {
    std::vector<Value*> values;
    for (int i = rng_.below(most + 1); i > 0; --i)
      if (Value* v = number()) values.push_back(v);
    return values;
  }

  void yield_like(std::span<Value* const> values) {
    std::vector<Value*> out;
    for (Value* v : values) out.push_back(like(v->type));
    b_->yield(out);
  }

  void for_loop(int budget, int depth) {
    Value* lb = i32(rng_.below(3) - 1);
    Value* step = i32(1 + rng_.below(2));
    // A bound that is not a constant: some integer's low bits.
    Value* ub = i32(rng_.below(6) - 1);
    if (rng_.chance(60)) ub = b_->binary(OpKind::kAnd, like(ir::scalar_type(DType::kI32)), i32(3));
    const std::vector<Value*> inits = some_values(3);
    Op* op = b_->for_loop(lb, ub, step, inits);
    in_block(op->region(), op->region()->args, [&] {
      statements(budget, depth + 1);
      yield_like(inits);
    });
    finish(op);
  }

  void while_loop(int budget, int depth) {
    std::vector<Value*> inits = {i32(0)};
    for (Value* v : some_values(2)) inits.push_back(v);
    Op* op = b_->while_loop(inits);
    in_block(op->region(0), op->region(0)->args, [&] {
      statements(budget / 2, depth + 1);
      Value* counter = op->region(0)->args[0];
      Value* more = b_->cmp(ir::Predicate::kLt, counter, i32(1 + rng_.below(4)));
      if (rng_.chance(50)) more = b_->binary(OpKind::kAnd, more, like(ir::scalar_type(DType::kI1)));
      std::vector<Value*> out = {more, counter};
      for (size_t i = 1; i < inits.size(); ++i) out.push_back(like(inits[i]->type));
      b_->create(OpKind::kCondition, out, {});
    });
    in_block(op->region(1), std::span(op->region(1)->args).subspan(1), [&] {
      statements(budget / 2, depth + 1);
      std::vector<Value*> out = {b_->binary(OpKind::kAdd, op->region(1)->args[0], i32(1))};
      for (size_t i = 1; i < inits.size(); ++i) out.push_back(like(inits[i]->type));
      b_->yield(out);
    });
    finish(op);
  }

  void branch(int budget, int depth) {
    const std::vector<Value*> models = some_values(3);
    std::vector<Type> types;
    for (Value* v : models) types.push_back(v->type);
    Op* op = b_->if_op(like(ir::scalar_type(DType::kI1)), types);
    for (Block* region : op->regions)
      in_block(region, {}, [&] {
        if (region == op->region(0) || rng_.chance(70)) statements(budget / 2, depth + 1);
        yield_like(models);
      });
    finish(op);
  }

  /// x & 7 as `to`, for any integers x.
  Value* small_numbers(const Shape& shape, DType to) {
    const Type type = ir::tile_type(DType::kI32, shape);
    Value* cut = b_->binary(OpKind::kAnd, like(type), b_->constant_int(type, 7));
    return b_->cast(cut, to);
  }

  /// A product of small whole numbers: exact in every type and order.
  void dot() {
    static constexpr DType kOperands[] = {DType::kI8,  DType::kU8,   DType::kF8E4M3, DType::kF8E5M2,
                                          DType::kF16, DType::kBF16, DType::kF32,    DType::kF64};
    using ir::Precision;
    static constexpr Precision kPrecisions[] = {Precision::kTf32, Precision::kTf32x3, Precision::kIeee};
    static constexpr int kLongestHalfSum = 32;  // 32 * 7 * 7 + 7 < 2048
    const DType from = rng_.pick(kOperands);
    Shape left, right, result;
    if (rng_.chance(25)) left.dims[left.rank++] = 1 << rng_.below(3);
    right = left, result = left;
    const int m = 1 << rng_.below(6), n = 1 << rng_.below(6), k = 1 << (2 + rng_.below(5));
    for (int d : {m, k}) left.dims[left.rank++] = d;
    for (int d : {k, n}) right.dims[right.rank++] = d;
    for (int d : {m, n}) result.dims[result.rank++] = d;
    DType to = is_int(from) ? DType::kI32 : from == DType::kF64 ? DType::kF64 : DType::kF32;
    if ((from == DType::kF16 || is_fp8(from)) && k <= kLongestHalfSum && rng_.chance(40)) to = DType::kF16;
    Value* a = small_numbers(left, from);
    Value* b = nullptr;
    if (rng_.chance(50)) {
      std::vector<int64_t> order;
      for (int64_t d = 0; d < right.rank; ++d) order.push_back(d);
      std::swap(order[order.size() - 1], order[order.size() - 2]);
      std::swap(right.dims[right.rank - 1], right.dims[right.rank - 2]);
      b = b_->trans(small_numbers(right, from), order);
    } else {
      b = small_numbers(right, from);
    }
    std::vector<std::pair<AttrName, ir::Attr>> attrs;
    if (from == DType::kF32) attrs.emplace_back(AttrName::kPrecision, rng_.pick(kPrecisions));
    const bool added = rng_.chance(40);
    Value* c = added ? b_->zero(ir::tile_type(to, result)) : small_numbers(result, to);
    Value* product = b_->create1(OpKind::kDot, {a, b, c}, c->type, std::move(attrs));
    if (added) product = b_->binary(OpKind::kAdd, product, small_numbers(result, to));
    store(product, std::nullopt);
  }

  void finish(Op* op) {
    b_->set_after(op);
    for (Value* r : op->results) add(r);
  }

  void statements(int budget, int depth) {
    for (int i = 0; i < budget; ++i) {
      const int kind = rng_.below(100);
      if (kind < 30)
        arithmetic();
      else if (kind < 37)
        comparison();
      else if (kind < 43)
        select();
      else if (kind < 52)
        cast();
      else if (kind < 55)
        bitcast();
      else if (kind < 70)
        shape();
      else if (kind < 77)
        load();
      else if (kind < 80)
        across();
      else if (kind < 81)
        (options_.dots && rng_.chance(50)) ? dot() : barrier();
      else if (kind < 84)
        add(constant(scalar_or_tile(random_dtype(), rng_.chance(50) ? rng_.pick(shapes_) : Shape{})));
      else if (kind < 85)
        fact();
      else if (kind < 88)
        store_something();
      else if (kind < 90)
        maybe(options_.atomics, [&] { atomic(); });
      else if (kind < 93)
        maybe(options_.approximate, [&] { approximate(); });
      else if (options_.control_flow && depth < 3 && budget > 2) {
        if (kind < 96)
          for_loop(budget / 2, depth);
        else if (kind < 99)
          branch(budget, depth);
        else
          while_loop(budget, depth);
        i += budget / 3;
      }
    }
  }
  template <class Fn>
  static void maybe(bool wanted, Fn&& fn) {
    if (wanted) fn();
  }
  void store_something() {
    if (options_.reread && !stored_.empty() && rng_.chance(60)) return update();
    if (Value* v = number()) store(v, std::nullopt);
  }

  /// Reads what this program stored, changes it and reads it again.
  void update() {
    Value* base = rng_.pick(stored_);
    const int64_t size = part_size(base);
    Value* pointers = own_part(base, size == 1 ? Shape{} : Shape{static_cast<int32_t>(size)});
    barrier();
    Value* old = b_->load(pointers);
    add(old);
    barrier();
    b_->store(pointers, like(old->type), rng_.chance(50) ? like(old->type.with_dtype(DType::kI1)) : nullptr);
    barrier();
    add(b_->load(pointers));
  }

  Random rng_;
  GeneratorOptions options_;
  int statements_;
  Program program_;
  std::optional<ir::Builder> b_;
  std::vector<DType> dtypes_;
  std::vector<Shape> shapes_;
  std::vector<Value*> pool_;    // numbers in scope
  std::vector<Value*> stored_;  // output buffers that this program has written and may read again
  Value* linear_id_ = nullptr;
  int64_t programs_ = 1;
};

}  // namespace

Program generate(uint64_t seed, const GeneratorOptions& options) { return Generator(seed, options).run(); }

}  // namespace kiln::fuzz
