// Matrix products.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "compiler/frontend/builtin_impl.h"
#include "support/unicode.h"

namespace kiln::frontend::impl {

using ir::AttrName;
using ir::OpKind;
using ir::Precision;
using ir::Shape;
using ir::Type;

namespace {

/// The smallest K that tensor cores take, by the operands' width: 16 halves, 8 words, 32 bytes.
int smallest_k(const Type& operand) { return operand.element_bits() >= 32 ? 8 : 256 / operand.element_bits(); }

Diagnostic shapes_do_not_fit(Codegen& g, const BoundArgs& a, const Type& x, const Type& y, std::string_view why,
                             std::string_view help) {
  return with_note(g.fail(a.range, ErrorKind::kType, "tl.dot of {} and {}: {}", describe(x), describe(y), why),
                   fmt::format("help: {}", help));
}

Status check_operands(Codegen& g, const BoundArgs& a, const Type& x, const Type& y) {
  const int rank = x.shape.rank;
  if (x.is_scalar() || y.is_scalar() || rank != y.shape.rank || rank < 2)
    return shapes_do_not_fit(g, a, x, y, "both must have 2 dimensions, or more with batches in front",
                             "a vector becomes a matrix with v[None, :]");
  if (x.shape[rank - 1] != y.shape[rank - 2])
    return shapes_do_not_fit(g, a, x, y,
                             fmt::format("the inner dimensions are {} and {}", x.shape[rank - 1], y.shape[rank - 2]),
                             "the operands are [M, K] and [K, N]; transpose one with tl.trans(x) or x.T");
  for (int d = 0; d < rank - 2; ++d)
    if (x.shape[d] != y.shape[d])
      return shapes_do_not_fit(g, a, x, y, fmt::format("the batches are {} and {}", x.shape[d], y.shape[d]),
                               "a batched product multiplies matrix i of both");
  const bool both_fp8 = !x.pointer && !y.pointer && is_fp8(x.dtype) && is_fp8(y.dtype);
  if (x.pointer || y.pointer || (x.dtype != y.dtype && !both_fp8))
    return with_note(
        g.fail(a.range, ErrorKind::kType, "tl.dot of {} and {}: the element types differ", describe(x), describe(y)),
        "help: convert one of them with .to(…)");
  if (x.is_int() && x.element_bits() != 8)
    return with_note(g.fail(a.range, ErrorKind::kType, "tl.dot takes integers of 8 bits only, got {}", describe(x)),
                     "help: convert to a float type, or write tl.sum(a[:, :, None] * b[None, :, :], axis=1)");
  if (const int k = x.shape[rank - 1]; k < smallest_k(x))
    return with_note(g.fail(a.range, ErrorKind::kValue, "tl.dot of {} and {}: K is {}, and must be at least {}",
                            describe(x), describe(y), k, smallest_k(x)),
                     "help: make the block along K larger, and mask what is beyond the matrix with 0");
  return {};
}

Result<DType> result_dtype(Codegen& g, const BoundArgs& a, const Type& x, int out_dtype) {
  if (x.is_int()) return DType::kI32;
  if (x.dtype == DType::kF64) return DType::kF64;
  if (!a.has(out_dtype)) return DType::kF32;
  KILN_TRY(Type wanted, g.dtype_arg(a, out_dtype));
  // Of bfloat16 and float32 the sums are float32, whatever else is asked for, as in Triton.
  const bool is_wide = x.dtype == DType::kF32 || x.dtype == DType::kBF16;
  if (wanted.dtype == DType::kF32 || (is_wide && wanted.dtype != DType::kBF16)) return DType::kF32;
  if (wanted.dtype == DType::kF16) return DType::kF16;
  return with_note(g.fail(a.at(out_dtype), ErrorKind::kType, "tl.dot of {} cannot accumulate in {}",
                          describe(x.scalar()), describe(wanted)),
                   "help: leave out_dtype out, and convert the result with .to(…)");
}

/// How floats of 32 bits are multiplied: by an instruction, or as so many products of bf16.
struct DotPrecision {
  std::optional<Precision> word;
  int bf16_products = 0;
};

/// Of how many products of bf16 parts a word speaks; 0: of none.
int bf16_products_of(std::string_view word) { return word == "bf16x3" ? 3 : word == "bf16x6" ? 6 : 0; }

/// Of a word that stands for all calls without an input_precision, in any case, as Triton takes it.
Result<DotPrecision> precision_of_environment(Codegen& g, const BoundArgs& a, const Type& x) {
  if (x.dtype != DType::kF32) return DotPrecision{};
  std::string word;
  for (const char c : g.options.dot_precision) unicode::append_lower(word, static_cast<unsigned char>(c));
  if (const int products = bf16_products_of(word)) return DotPrecision{std::nullopt, products};
  const std::span<const ir::Word> words = ir::kWords<Precision>;
  for (size_t k = 0; k < words.size(); ++k)
    if (words[k].text == word) return DotPrecision{static_cast<Precision>(k)};
  return g.fail(a.range, ErrorKind::kValue,
                "TRITON_F32_DEFAULT, which tl.dot has for input_precision, must be one of {}, 'bf16x3', 'bf16x6', "
                "got '{}'",
                ir::list_words(words, ""), g.options.dot_precision);
}

/// input_precision and its older spelling allow_tf32, which counts where no word of the environment does.
Result<DotPrecision> precision_arg(Codegen& g, const BoundArgs& a, const Type& x, int precision, int allow_tf32) {
  if (a.has(precision) && a.has(allow_tf32))
    return g.fail(a.at(allow_tf32), ErrorKind::kType, "tl.dot takes input_precision or allow_tf32, not both");
  if (!a.has(precision) && !g.options.dot_precision.empty()) return precision_of_environment(g, a, x);
  std::optional<Precision> chosen;
  const auto* text = a[precision].constant_as<std::string>();
  if (const int products = text ? bf16_products_of(*text) : 0)
    return DotPrecision{std::nullopt, x.dtype == DType::kF32 ? products : 0};
  if (a.has(allow_tf32)) {
    KILN_TRY(bool allow, g.const_bool(a, allow_tf32));
    if (!allow) chosen = Precision::kIeee;
  } else {
    Result<std::optional<Precision>> word = word_arg<Precision>(g, a, precision);
    if (!word.ok()) return with_note(std::move(word.error()), "help: or 'bf16x3', 'bf16x6': products of bf16 parts");
    chosen = *word;
  }
  // Other types have one precision only.
  return DotPrecision{x.dtype == DType::kF32 ? std::optional(chosen.value_or(Precision::kTf32)) : std::nullopt};
}

/// x @ y + acc in f32 of floats that are split into bf16 parts, the largest first: of the products of parts, the three
/// or six largest, the smallest added up first.
ir::Value* dot_of_parts(Codegen& g, ir::Value* x, ir::Value* y, ir::Value* acc, int products) {
  auto parts_of = [&](ir::Value* v) {
    std::vector<ir::Value*> parts;
    for (const int count = products == 3 ? 2 : 3; static_cast<int>(parts.size()) < count;) {
      parts.push_back(g.b.cast(v, DType::kBF16));
      v = g.b.binary(OpKind::kSub, v, g.b.cast(parts.back(), DType::kF32));
    }
    return parts;
  };
  const std::vector<ir::Value*> p = parts_of(x), q = parts_of(y);
  ir::Value* sum = g.b.zero(acc->type);
  auto add = [&](size_t i, size_t j) { sum = g.b.create1(OpKind::kDot, {p[i], q[j], sum}, acc->type); };
  if (products == 6) add(1, 1), add(2, 0), add(0, 2);
  add(1, 0), add(0, 1);
  // What is left of an infinity is NaN, which must not reach the result.
  ir::Value* none = g.b.zero(acc->type);
  sum = g.b.select(g.b.cmp(ir::Predicate::kEq, sum, sum), sum, none);
  add(0, 0);
  return g.b.binary(OpKind::kAdd, sum, acc);
}

}  // namespace

Result<Value> dot(Codegen& g, const BoundArgs& a) {
  enum { kInput, kOther, kAcc, kPrecision, kAllowTf32, kImprecise, kOutDtype, kTransA, kTransB };
  KILN_TRY(ir::Value * x, g.tensor(a.args[kInput]));
  KILN_TRY(ir::Value * y, g.tensor(a.args[kOther]));
  auto is_e4b15 = [](const ir::Value* v) { return v->type.is_float() && v->type.dtype == DType::kF8E4B15; };
  if (g.options.drops_fp8e4b15 && (is_e4b15(x) || is_e4b15(y)))
    g.warn(a.range,
           "the use of fp8e4b15 is deprecated on Hopper and later architectures and can cause significant slow down. "
           "It will be removed in a future triton release");
  for (ir::Value** v : {&x, &y})  // no instruction takes it
    if (is_e4b15(*v)) *v = g.b.cast(*v, DType::kF16);
  for (auto [v, flag] : {std::pair(&x, kTransA), std::pair(&y, kTransB)}) {  // as Triton 2.0 had them
    KILN_TRY(const bool transposed, g.const_bool(a, flag));
    const int64_t rank = (*v)->type.shape.rank;
    if (!transposed || rank < 2) continue;
    std::vector<int64_t> order(static_cast<size_t>(rank));
    std::iota(order.begin(), order.end(), 0);
    std::swap(order[order.size() - 1], order[order.size() - 2]);
    *v = g.b.trans(*v, order);
  }
  KILN_CHECK_OK(check_operands(g, a, x->type, y->type));
  KILN_TRY(DType dtype, result_dtype(g, a, x->type, kOutDtype));
  KILN_TRY(const auto precision, precision_arg(g, a, x->type, kPrecision, kAllowTf32));
  // Limits of imprecise fp8 accumulation are promises of more precision than asked for when they are ignored.
  if (a.has(kImprecise)) {
    KILN_TRY(const ast::Int terms, g.const_int(a, kImprecise));
    const int64_t k = x->type.shape[x->type.shape.rank - 1];
    if (is_fp8(x->type.dtype) && is_fp8(y->type.dtype) && terms > k)
      return g.fail(a.at(kImprecise), ErrorKind::kValue, "max_num_imprecise_acc of tl.dot is {}, and K is {}", terms,
                    k);
  }
  Shape shape = x->type.shape;
  shape[shape.rank - 1] = y->type.shape[shape.rank - 1];
  KILN_CHECK_OK(g.check_shape(shape, a.range));
  const Type result = ir::tile_type(dtype, shape);
  ir::Value* acc = nullptr;
  if (a.has(kAcc)) {
    KILN_TRY(acc, g.tensor(a.args[kAcc]));
    if (!acc->type.same_tile(result))
      return with_note(
          g.fail(a.at(kAcc), ErrorKind::kType, "acc of tl.dot is {}, but the product is {}", describe(acc->type),
                 describe(result)),
          fmt::format("help: make it with tl.zeros({}, dtype=tl.{})", ir::to_string(shape), describe(result.scalar())));
  } else {
    acc = g.b.zero(result);
  }
  // One dimension holds all batches.
  auto with_one_batch = [&](ir::Value* v) {
    const Shape& s = v->type.shape;
    if (s.rank <= 3) return v;
    const auto matrix = s[s.rank - 2] * s[s.rank - 1];
    return g.b.reshape(v, {static_cast<int32_t>(s.numel() / matrix), s[s.rank - 2], s[s.rank - 1]});
  };
  x = with_one_batch(x), y = with_one_batch(y), acc = with_one_batch(acc);
  ir::Value* out = nullptr;
  if (precision.bf16_products != 0) {
    out = dot_of_parts(g, x, y, acc, precision.bf16_products);
  } else {
    std::vector<std::pair<AttrName, ir::Attr>> attrs;
    if (precision.word) attrs.emplace_back(AttrName::kPrecision, *precision.word);
    out = g.b.create1(OpKind::kDot, {x, y, acc}, acc->type, std::move(attrs));
  }
  return Value(shape.rank > 3 ? g.b.reshape(out, shape) : out);
}

}  // namespace kiln::frontend::impl
