// Loads, stores and atomics.
#include <algorithm>
#include <limits>

#include "compiler/frontend/builtin_impl.h"

namespace kiln::frontend::impl {

using ir::AttrName;
using ir::OpKind;
using ir::Rmw;
using ir::Type;

namespace {

Result<ir::Value*> pointer_arg(Codegen& g, const BoundArgs& a, int i) {
  ir::Value* v = a[i].tensor();
  if (v && v->type.pointer) return v;
  Diagnostic d = g.fail(a.at(i), ErrorKind::kType, "{} of {} must be a pointer, got {}", a.name(i),
                        a.builtin->display_name(), describe(a[i]));
  if (v)
    d = with_note(std::move(d),
                  "help: an address is a pointer argument plus an offset; an int64 address converts with "
                  ".to(tl.pointer_type(tl.float32))");
  return d;
}

/// Pointers to bool read and write bytes.
ir::Value* byte_pointer(Codegen& g, ir::Value* p) {
  if (p->type.dtype != DType::kI1) return p;
  Type bytes = p->type;
  bytes.dtype = DType::kI8;
  return g.b.create1(OpKind::kBitcast, {p}, bytes);
}

Status scalar_rules(Codegen& g, const BoundArgs& a, int i, ir::Value* p, ir::Value* v) {
  if (p->type.is_scalar() && v && v->type.is_tile())
    return with_note(
        g.fail(a.at(i), ErrorKind::kType, "{} is {}, but the pointer is the scalar {}", a.name(i), describe(v->type),
               describe(p->type)),
        "help: elements have a pointer each, such as pointer + tl.arange(0, n); tl.sum(x) makes one number "
        "of them");
  return {};
}

Result<ir::Value*> mask_arg(Codegen& g, const BoundArgs& a, int i) {
  if (!a.has(i)) return static_cast<ir::Value*>(nullptr);
  KILN_TRY(ir::Value * v, g.tensor(a.args[i]));
  if (!v->type.is_bool())
    return with_note(g.fail(a.at(i), ErrorKind::kType, "the mask of {} must be int1, got {}", a.builtin->display_name(),
                            describe(a[i])),
                     "help: make it a comparison, such as offsets < n or x != 0");
  return v;
}

/// Nothing, or what Python takes for false: `boundary_check=(0)` is the number 0.
bool is_empty(const BoundArgs& a, int i) {
  return !a.has(i) || (a[i].as_tuple() && a[i].as_tuple()->items.empty()) ||
         (a[i].constant() && !ast::truth(*a[i].constant()));
}

Status only_for_block_pointers(Codegen& g, const BoundArgs& a, int i) {
  if (is_empty(a, i)) return {};
  return with_note(
      g.fail(a.at(i), ErrorKind::kType, "{} belongs to block pointers, and this is {}", a.name(i), describe(a[0])),
      "help: use a mask");
}

Status not_for_block_pointers(Codegen& g, const BoundArgs& a, int i) {
  if (!a.has(i)) return {};
  return with_note(
      g.fail(a.at(i), ErrorKind::kType, "{} of a block pointer takes no {}", a.builtin->display_name(), a.name(i)),
      "help: boundary_check names the dimensions that may reach over the tensor's edge");
}

/// With leading dimensions of one, as many as the pointer has: stores broadcast as operators do, loads and atomics not.
ir::Value* with_rank_of(Codegen& g, ir::Value* p, ir::Value* v) {
  while (!v->type.is_scalar() && v->type.shape.rank < p->type.shape.rank) v = g.b.expand_dims(v, 0);
  return v;
}

/// An operand that has to take the pointer's shape and element type.
Result<ir::Value*> value_for(Codegen& g, const BoundArgs& a, int i, ir::Value* p, DType element) {
  KILN_TRY(ir::Value * v, g.tensor(a.args[i]));
  KILN_CHECK_OK(scalar_rules(g, a, i, p, v));
  KILN_TRY(v, g.cast(v, ir::scalar_type(element), a.at(i)));
  return g.broadcast_to(v, p->type.shape, a.name(i), a.at(i));
}

}  // namespace

Result<std::optional<size_t>> word_index(Codegen& g, const BoundArgs& a, int i, std::span<const ir::Word> words,
                                         std::string_view mnemonic) {
  if (a[i].is_none()) return std::optional<size_t>();
  KILN_TRY(const std::string text, g.const_text(a, i));
  if (text.empty()) return std::optional<size_t>();
  for (size_t k = 0; k < words.size(); ++k)
    if (words[k].text == text && words[k].stands_on(mnemonic)) return std::optional(k);
  return g.fail(a.at(i), ErrorKind::kValue, "{} of {} must be one of {}, got '{}'", a.name(i),
                a.builtin->display_name(), ir::list_words(words, mnemonic), text);
}

namespace {

Result<Value> finish_load(Codegen& g, const BoundArgs& a, ir::Value* p, ir::Value* mask, ir::Value* other) {
  KILN_TRY(const auto cache, word_arg<ir::Cache>(g, a, 5, "load"));
  KILN_TRY(const auto eviction, word_arg<ir::Eviction>(g, a, 6));
  KILN_TRY(bool is_volatile, g.const_bool(a, 7));
  const bool is_bool = p->type.dtype == DType::kI1;
  p = byte_pointer(g, p);
  ir::Value* out = g.b.load(p, mask, other);
  if (cache) out->op->set(*cache);
  if (eviction) out->op->set(*eviction);
  if (is_volatile) out->op->set(AttrName::kVolatile, true);
  return Value(is_bool ? g.b.cast(out, DType::kI1) : out);
}

Result<Value> load_block(Codegen& g, const BoundArgs& a, const BlockPointerValue& pointer) {
  enum { kMask = 1, kOther, kBoundaryCheck, kPadding };
  KILN_CHECK_OK(not_for_block_pointers(g, a, kMask));
  KILN_CHECK_OK(not_for_block_pointers(g, a, kOther));
  KILN_TRY(const auto padding, word_arg<ir::Padding>(g, a, kPadding));
  KILN_TRY(BlockAccess block, access_block(g, a, pointer, kBoundaryCheck));
  ir::Value* other = nullptr;
  if (padding == ir::Padding::kNan) {
    const DType element = pointer.base()->type.dtype;
    if (!is_float(element))
      return g.fail(a.at(kPadding), ErrorKind::kType, "padding_option 'nan' is for floats, and this is {}",
                    describe(a[0]));
    if (block.mask)
      other = g.b.splat(g.constant(ast::Constant(std::numeric_limits<double>::quiet_NaN()), element), pointer.block);
  }
  return finish_load(g, a, block.pointers, block.mask, other);
}

}  // namespace

Result<Value> load(Codegen& g, const BoundArgs& a) {
  if (const BlockPointerValue* block = a[0].block_pointer()) return load_block(g, a, *block);
  KILN_TRY(ir::Value * p, pointer_arg(g, a, 0));
  if (a.has(2) && !a.has(1))
    return with_note(g.fail(a.at(2), ErrorKind::kValue,
                            "other of tl.load needs a mask: it replaces the elements that the mask leaves out"),
                     "help: add mask=offsets < n");
  KILN_CHECK_OK(only_for_block_pointers(g, a, 3));
  KILN_CHECK_OK(only_for_block_pointers(g, a, 4));
  KILN_TRY(ir::Value * mask, mask_arg(g, a, 1));
  KILN_CHECK_OK(scalar_rules(g, a, 1, p, mask));
  ir::Value* other = nullptr;
  if (a.has(2)) {
    KILN_TRY(other, g.tensor(a.args[2]));
    KILN_CHECK_OK(scalar_rules(g, a, 2, p, other));
    DType element = p->type.dtype == DType::kI1 ? DType::kI8 : p->type.dtype;
    KILN_TRY(other, g.cast(other, ir::scalar_type(element), a.at(2)));
  }
  // A load's operands take their common shape: the mask may widen the pointer.
  if (mask) {
    KILN_TRY(Codegen::Pair pair, g.broadcast_pair(p, mask, a.range));
    p = pair.a, mask = pair.b;
  }
  if (other) {
    KILN_TRY(Codegen::Pair pair, g.broadcast_pair(p, other, a.range));
    p = pair.a, other = pair.b;
    KILN_TRY(mask, g.broadcast_to(mask, p->type.shape, "mask", a.at(1)));
  }
  return finish_load(g, a, p, mask, other);
}

Result<Value> store(Codegen& g, const BoundArgs& a) {
  ir::Value *p = nullptr, *mask = nullptr;
  if (const BlockPointerValue* block = a[0].block_pointer()) {
    KILN_CHECK_OK(not_for_block_pointers(g, a, 2));
    KILN_TRY(BlockAccess access, access_block(g, a, *block, 3));
    p = access.pointers, mask = access.mask;
  } else {
    KILN_TRY(p, pointer_arg(g, a, 0));
    KILN_CHECK_OK(only_for_block_pointers(g, a, 3));
    KILN_TRY(mask, mask_arg(g, a, 2));
    KILN_CHECK_OK(scalar_rules(g, a, 2, p, mask));
  }
  KILN_TRY(const auto cache, word_arg<ir::Cache>(g, a, 4, "store"));
  KILN_TRY(const auto eviction, word_arg<ir::Eviction>(g, a, 5));
  // The low byte of whatever is stored goes through a pointer to bool.
  p = byte_pointer(g, p);
  KILN_TRY(ir::Value * v, g.tensor(a.args[1]));
  KILN_CHECK_OK(scalar_rules(g, a, 1, p, v));
  KILN_TRY(v, g.cast(v, ir::scalar_type(p->type.dtype), a.at(1)));
  KILN_TRY(v, g.broadcast_to(with_rank_of(g, p, v), p->type.shape, "the value to store", a.at(1)));
  if (mask) {
    KILN_TRY(mask, g.broadcast_to(with_rank_of(g, p, mask), p->type.shape, "the mask", a.at(2)));
  }
  ir::Op* op = g.b.store(p, v, mask);
  if (cache) op->set(*cache);
  if (eviction) op->set(*eviction);
  return Value();
}

namespace {

Result<Ordering> ordering(Codegen& g, const BoundArgs& a, int sem, int scope) {
  KILN_TRY(const auto s, word_arg<ir::Sem>(g, a, sem));
  KILN_TRY(const auto c, word_arg<ir::Scope>(g, a, scope));
  return Ordering{s.value_or(ir::Sem::kAcqRel), c.value_or(ir::Scope::kGpu)};
}

std::vector<std::pair<AttrName, ir::Attr>> attrs_of(const Ordering& order, std::optional<Rmw> rmw = std::nullopt) {
  std::vector<std::pair<AttrName, ir::Attr>> out;
  if (rmw) out.emplace_back(AttrName::kRmw, *rmw);
  out.emplace_back(AttrName::kSem, order.sem);
  out.emplace_back(AttrName::kScope, order.scope);
  return out;
}

ir::Value* make_rmw(Codegen& g, const Ordering& order, Rmw rmw, ir::Value* p, ir::Value* v, ir::Value* mask) {
  std::vector<ir::Value*> operands = {p, v};
  if (mask) operands.push_back(mask);
  Type result = v->type;
  return g.b.create(OpKind::kAtomicRmw, operands, std::span(&result, 1), attrs_of(order, rmw))->result();
}

/// max and min of floats as atomics on their bits: those without a sign bit order like signed ints, those with one
/// (-0.0 is among them) like unsigned ints the other way round.
ir::Value* float_min_max(Codegen& g, const Ordering& order, bool is_max, ir::Value* p, ir::Value* v, ir::Value* mask) {
  bool wide = bits(v->type.dtype) == 64;
  DType s = wide ? DType::kI64 : DType::kI32, u = wide ? DType::kU64 : DType::kU32;
  auto retype = [&](ir::Value* x, DType t) {
    Type type = x->type;
    type.dtype = t;
    return g.b.create1(OpKind::kBitcast, {x}, type);
  };
  ir::Value* number = retype(v, s);
  ir::Value* zero = g.b.splat(g.b.zero(number->type.scalar()), v->type.shape);
  ir::Value* positive = g.b.cmp(ir::Predicate::kGe, number, zero);
  ir::Value* one = g.b.splat(g.b.constant_int(ir::scalar_type(DType::kI1), 1), v->type.shape);
  ir::Value* negative = g.b.binary(OpKind::kXor, positive, one);
  ir::Value* mask_p = mask ? g.b.binary(OpKind::kAnd, mask, positive) : positive;
  ir::Value* mask_n = mask ? g.b.binary(OpKind::kAnd, mask, negative) : negative;
  ir::Value* up = make_rmw(g, order, is_max ? Rmw::kMax : Rmw::kMin, retype(p, s), number, mask_p);
  ir::Value* down = make_rmw(g, order, is_max ? Rmw::kMin : Rmw::kMax, retype(p, u), retype(v, u), mask_n);
  return g.b.select(positive, retype(up, v->type.dtype), retype(down, v->type.dtype));
}

Status check_rmw(Codegen& g, const BoundArgs& a, Rmw kind, const ir::Type& pointer) {
  const DType t = pointer.dtype;
  const bool is_bits = kind == Rmw::kAnd || kind == Rmw::kOr || kind == Rmw::kXor;
  const bool fine = kind == Rmw::kAdd ? is_half(t) || bits(t) >= 32
                    : is_bits         ? is_int(t) && bits(t) >= 32
                                      : bits(t) >= 32;
  if (fine) return {};
  return with_note(
      g.fail(a.range, ErrorKind::kType, "{} does not work on {}", a.builtin->display_name(), describe(pointer)),
      is_bits ? "help: it takes pointers to 32- and 64-bit integers"
              : "help: it takes pointers to 32- and 64-bit numbers");
}

Rmw rmw_of(const BoundArgs& a) {
  return *ir::parse_word<Rmw>(a.builtin->name.substr(std::string_view("atomic_").size()));
}

}  // namespace

Result<ir::Value*> emit_rmw(Codegen& g, const BoundArgs& a, const Ordering& order, ir::Value* p, ir::Value* v,
                            ir::Value* mask) {
  const Rmw kind = rmw_of(a);
  const DType t = p->type.dtype;
  const bool picks = kind == Rmw::kMax || kind == Rmw::kMin;
  // TMA has what atomics on pointers have not.
  if (a.builtin->where == std::string_view("B") && picks && is_half(t)) return make_rmw(g, order, kind, p, v, mask);
  KILN_CHECK_OK(check_rmw(g, a, kind, p->type));
  if (picks && is_float(t)) return float_min_max(g, order, kind == Rmw::kMax, p, v, mask);
  return make_rmw(g, order, kind == Rmw::kAdd && is_float(t) ? Rmw::kFAdd : kind, p, v, mask);
}

Result<Value> atomic_rmw(Codegen& g, const BoundArgs& a) {
  KILN_TRY(ir::Value * p, pointer_arg(g, a, 0));
  KILN_TRY(ir::Value * mask, mask_arg(g, a, 2));
  KILN_TRY(Ordering order, ordering(g, a, 3, 4));
  KILN_CHECK_OK(check_rmw(g, a, rmw_of(a), p->type));
  KILN_CHECK_OK(scalar_rules(g, a, 2, p, mask));
  KILN_TRY(ir::Value * v, value_for(g, a, 1, p, p->type.dtype));
  if (mask) {
    KILN_TRY(mask, g.broadcast_to(mask, p->type.shape, "the mask", a.at(2)));
  }
  KILN_TRY(ir::Value * old, emit_rmw(g, a, order, p, v, mask));
  return Value(old);
}

Result<Value> atomic_cas(Codegen& g, const BoundArgs& a) {
  KILN_TRY(ir::Value * p, pointer_arg(g, a, 0));
  KILN_TRY(Ordering order, ordering(g, a, 3, 4));
  if (bits(p->type.dtype) < 16)
    return g.fail(a.range, ErrorKind::kType, "tl.atomic_cas works on elements of 16, 32 or 64 bits, got {}",
                  describe(p->type));
  KILN_TRY(ir::Value * expected, value_for(g, a, 1, p, p->type.dtype));
  KILN_TRY(ir::Value * v, value_for(g, a, 2, p, p->type.dtype));
  ir::Value* operands[] = {p, expected, v};
  Type result = v->type;
  return Value(g.b.create(OpKind::kAtomicCas, operands, std::span(&result, 1), attrs_of(order))->result());
}

}  // namespace kiln::frontend::impl
