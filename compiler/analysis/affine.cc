#include "compiler/analysis/affine.h"

#include <algorithm>

namespace kiln::analysis {

using ir::AttrName;
using ir::Op;
using ir::OpKind;
using ir::Value;

// --- polynomials

void Polynomial::add(int64_t factor, Product product) {
  if (factor == 0) return;
  std::sort(product.begin(), product.end());
  auto [it, is_new] = terms_.try_emplace(std::move(product), factor);
  if (!is_new && (it->second += factor) == 0) terms_.erase(it);
}

std::optional<int64_t> Polynomial::constant() const {
  if (terms_.empty()) return 0;
  if (terms_.size() == 1 && terms_.begin()->first.empty()) return terms_.begin()->second;
  return std::nullopt;
}

Polynomial& Polynomial::operator+=(const Polynomial& o) {
  for (const auto& [product, factor] : o.terms_) add(factor, product);
  return *this;
}

Polynomial Polynomial::operator*(const Polynomial& o) const {
  Polynomial out;
  for (const auto& [p, f] : terms_)
    for (const auto& [q, g] : o.terms_) {
      Product both = p;
      both.insert(both.end(), q.begin(), q.end());
      out.add(f * g, std::move(both));
    }
  return out;
}

std::pair<Polynomial, Polynomial> Polynomial::divide(const Polynomial& divisor) const {
  std::pair<Polynomial, Polynomial> out;
  if (divisor.terms_.size() != 1) {
    out.second = *this;
    return out;
  }
  const auto& [by, factor] = *divisor.terms_.begin();
  for (const auto& [product, f] : terms_) {
    Product rest;
    std::set_difference(product.begin(), product.end(), by.begin(), by.end(), std::back_inserter(rest));
    if (f % factor == 0 && rest.size() + by.size() == product.size())
      out.first.add(f / factor, std::move(rest));
    else
      out.second.add(f, product);
  }
  return out;
}

namespace {

/// Ops that keep the number: conversions between integer types, facts.
const Value* without_identities(const Value* v) {
  while (v->op && v->op->operands.size() == 1 && v->type.is_int() && !v->type.is_bool() &&
         v->op->operand(0)->type.is_int() && !v->op->operand(0)->type.is_bool() &&
         (v->op->kind == OpKind::kHint || (v->op->kind == OpKind::kCast && v->type.element_bits() >= 32)))
    v = v->op->operand(0);
  return v;
}

}  // namespace

Polynomial polynomial(const Value* scalar) {
  scalar = without_identities(scalar);
  const Op* op = scalar->op;
  if (!op || !scalar->type.is_int()) return Polynomial(scalar);
  switch (op->kind) {
    case OpKind::kConstant:
      return Polynomial(op->int_attr(AttrName::kValue));
    case OpKind::kAdd:
      return polynomial(op->operand(0)) + polynomial(op->operand(1));
    case OpKind::kSub:
      return polynomial(op->operand(0)) - polynomial(op->operand(1));
    case OpKind::kMul:
      return polynomial(op->operand(0)) * polynomial(op->operand(1));
    case OpKind::kNeg:
      return Polynomial() - polynomial(op->operand(0));
    default:  // anything else is a scalar of its own
      return Polynomial(scalar);
  }
}

// --- tiles

bool AffineTile::is_uniform() const {
  return std::all_of(steps.begin(), steps.end(), [](const Polynomial& p) { return p.is_zero(); });
}

namespace {

using Tile = std::optional<AffineTile>;

AffineTile uniform(const ir::Type& type, Polynomial start) {
  const size_t rank = type.shape.rank;
  return {nullptr, std::move(start), std::vector<Polynomial>(rank), std::vector<std::optional<Polynomial>>(rank)};
}

/// Of two tiles' wraps in one dimension at most one may count, and only where the other does not move.
bool merge_wraps(AffineTile& into, const AffineTile& from) {
  for (size_t d = 0; d < into.steps.size(); ++d) {
    if (!from.wraps[d] && !into.wraps[d]) continue;
    if (into.wraps[d] ? !from.steps[d].is_zero() : !into.steps[d].is_zero()) return false;
    if (!into.wraps[d]) into.wraps[d] = from.wraps[d];
  }
  return true;
}

Tile sum(Tile a, const Tile& b, int64_t sign = 1) {
  if (!a || !b || (a->base && b->base) || (b->base && sign < 0)) return std::nullopt;
  if (!merge_wraps(*a, *b)) return std::nullopt;
  if (b->base) a->base = b->base;
  a->start += b->start * Polynomial(sign);
  for (size_t d = 0; d < a->steps.size(); ++d) a->steps[d] += b->steps[d] * Polynomial(sign);
  return a;
}

Tile product(Tile a, Tile b) {
  if (!a || !b || a->base || b->base) return std::nullopt;
  if (!b->is_uniform()) std::swap(a, b);
  if (!b->is_uniform()) return std::nullopt;
  a->start = a->start * b->start;
  for (Polynomial& step : a->steps) step = step * b->start;
  return a;
}

/// The one dimension along which the tile counts up by one, and does not wrap.
std::optional<size_t> counting_dim(const AffineTile& tile) {
  std::optional<size_t> counting;
  for (size_t d = 0; d < tile.steps.size(); ++d) {
    if (tile.steps[d].is_zero()) continue;
    if (counting || tile.steps[d] != Polynomial(1) || tile.wraps[d]) return std::nullopt;
    counting = d;
  }
  return counting;
}

/// x % n where one dimension counts up by one.
Tile wrapped(Tile x, const Tile& n) {
  if (!x || !n || !n->is_uniform() || x->base) return std::nullopt;
  const auto dim = counting_dim(*x);
  if (!dim) return std::nullopt;
  x->wraps[*dim] = n->start;
  return x;
}

Tile tile_of(const Value* v);

/// An argument that a for loop carries: init + n · increment, where n counts iterations.
Tile carried(const Value* arg) {
  const Op* loop = arg->block->parent;
  if (!loop || loop->kind != OpKind::kFor || arg->index == 0) return std::nullopt;
  const Value* next = loop->region()->terminator()->operands[arg->index - 1];
  if (!next->op || (next->op->kind != OpKind::kAddPtr && next->op->kind != OpKind::kAdd)) return std::nullopt;
  const int own = next->op->operand(0) == arg ? 0 : next->op->operand(1) == arg ? 1 : -1;
  if (own < 0) return std::nullopt;
  const Tile increment = tile_of(next->op->operand(1 - own));
  if (!increment || !increment->is_uniform() || increment->base) return std::nullopt;
  for (const auto& [factors, number] : increment->start.terms())
    for (const Value* factor : factors)
      if (const ir::Block* home = factor->block ? factor->block : factor->op->parent; home == loop->region())
        return std::nullopt;
  // n = (variable - lower) / step, which must come out even.
  const auto step = polynomial(loop->operand(2)).constant();
  if (!step || *step == 0) return std::nullopt;
  auto [per_index, rest] = increment->start.divide(Polynomial(*step));
  if (!rest.is_zero()) return std::nullopt;
  Tile out = tile_of(loop->operands[arg->index + 2]);
  if (!out) return out;
  out->start += (Polynomial(loop->region()->args[0]) - polynomial(loop->operand(0))) * per_index;
  return out;
}

Tile shape_changed(const Op& op, Tile x) {
  if (!x) return x;
  AffineTile out = uniform(op.result()->type, x->start);
  out.base = x->base;
  size_t from = 0;
  for (size_t d = 0; d < out.steps.size(); ++d) {
    size_t source = d;
    if (op.kind == OpKind::kTrans) {
      source = static_cast<size_t>(std::get<std::vector<int64_t>>(*op.find(AttrName::kOrder))[d]);
    } else if (op.kind == OpKind::kExpandDims) {
      if (static_cast<int64_t>(d) == op.int_attr(AttrName::kAxis)) continue;
      source = from++;
    }
    out.steps[d] = x->steps[source];
    out.wraps[d] = x->wraps[source];
  }
  return out;
}

Tile tile_of(const Value* v) {
  v = without_identities(v);
  if (v->type.is_scalar()) {
    if (v->type.is_int()) return uniform(v->type, polynomial(v));
    if (!v->type.pointer) return std::nullopt;
    if (v->op && v->op->kind == OpKind::kAddPtr) return sum(tile_of(v->op->operand(0)), tile_of(v->op->operand(1)));
    AffineTile out = uniform(v->type, {});
    out.base = v;
    return out;
  }
  if (v->block) return carried(v);
  const Op& op = *v->op;
  switch (op.kind) {
    case OpKind::kConstant:
      if (!v->type.is_int()) return std::nullopt;
      return uniform(v->type, Polynomial(op.int_attr(AttrName::kValue)));
    case OpKind::kArange: {
      AffineTile out = uniform(v->type, Polynomial(op.int_attr(AttrName::kStart)));
      out.steps[0] = Polynomial(1);
      return out;
    }
    case OpKind::kSplat: {
      Tile scalar = tile_of(op.operand(0));
      if (!scalar) return scalar;
      AffineTile out = uniform(v->type, scalar->start);
      out.base = scalar->base;
      return out;
    }
    case OpKind::kExpandDims:
    case OpKind::kTrans:
    case OpKind::kBroadcast:  // a dimension of size 1 does not move
      return shape_changed(op, tile_of(op.operand(0)));
    case OpKind::kAdd:
    case OpKind::kAddPtr:
      return sum(tile_of(op.operand(0)), tile_of(op.operand(1)));
    case OpKind::kSub:
      return sum(tile_of(op.operand(0)), tile_of(op.operand(1)), -1);
    case OpKind::kMul:
      return product(tile_of(op.operand(0)), tile_of(op.operand(1)));
    case OpKind::kRem:
      return wrapped(tile_of(op.operand(0)), tile_of(op.operand(1)));
    case OpKind::kHint:
      return tile_of(op.operand(0));
    default:  // not affine
      return std::nullopt;
  }
}

bool add_bounds(const Value* mask, std::vector<IndexBound>& bounds) {
  const Op* op = mask->op;
  if (!op) return false;
  switch (op->kind) {
    case OpKind::kAnd:
      return add_bounds(op->operand(0), bounds) && add_bounds(op->operand(1), bounds);
    case OpKind::kExpandDims:
    case OpKind::kBroadcast: {
      std::vector<IndexBound> inner;
      if (!add_bounds(op->operand(0), inner)) return false;
      for (IndexBound& b : inner) {
        if (op->kind == OpKind::kExpandDims && b.dim >= op->int_attr(AttrName::kAxis)) ++b.dim;
        bounds.push_back(std::move(b));
      }
      return true;
    }
    case OpKind::kCmp: {
      using ir::Predicate;
      const auto predicate = op->word<Predicate>();
      const bool is_upper = predicate == Predicate::kLt || predicate == Predicate::kGt;
      if (!is_upper && predicate != Predicate::kGe && predicate != Predicate::kLe) return false;
      Tile index = tile_of(op->operand(0)), limit = tile_of(op->operand(1));
      if (predicate == Predicate::kGt || predicate == Predicate::kLe) std::swap(index, limit);
      if (!index || !limit || index->base || limit->base || !limit->is_uniform()) return false;
      const auto dim = counting_dim(*index);
      if (!dim || (!is_upper && limit->start != Polynomial())) return false;
      bounds.push_back({static_cast<int>(*dim), index->start, is_upper ? std::optional(limit->start) : std::nullopt});
      return true;
    }
    default:  // a condition that is no bound
      return false;
  }
}

}  // namespace

std::optional<AffineTile> affine_tile(const Value* tile) { return tile_of(tile); }

std::optional<std::vector<IndexBound>> index_bounds(const Value* mask) {
  std::vector<IndexBound> bounds;
  if (!add_bounds(mask, bounds)) return std::nullopt;
  return bounds;
}

}  // namespace kiln::analysis
