#include "compiler/analysis/axis_info.h"

#include <algorithm>
#include <unordered_map>

#include "compiler/analysis/axis_facts.h"
#include "compiler/layout/algebra.h"
#include "support/diag.h"

namespace kiln::analysis {

using ir::AttrName;
using ir::Block;
using ir::Op;
using ir::OpKind;
using ir::Predicate;
using ir::Value;

using namespace axis_facts;

namespace {

constexpr int64_t kAccessBytes = 16;

}  // namespace

struct AxisAnalysis::State {
  bool takes_hints = true;
  bool has_hints = false;
  std::unordered_map<const Value*, AxisInfo> infos;

  const AxisInfo& of(const Value* v) {
    auto it = infos.find(v);
    if (it == infos.end()) it = infos.emplace(v, unknown(v->type)).first;
    return it->second;
  }

  /// What tl.assume tells about a value: assumptions of the kernel's own block hold whenever it runs.
  struct Assumed {
    int64_t divisibility = 1;
    bool non_negative = false;
  };
  std::unordered_map<const Value*, Assumed> assumed;

  void assume(const Value* condition) {
    const Op* op = condition->op;
    if (!op || op->operands.size() != 2) return;
    if (op->kind == OpKind::kAnd) {
      assume(op->operand(0));
      assume(op->operand(1));
    }
    if (op->kind != OpKind::kCmp || !op->operand(0)->type.is_int()) return;
    const auto predicate = op->word<Predicate>();
    auto constant = [](const Value* v) -> std::optional<int64_t> {
      if (!v->op || v->op->kind != OpKind::kConstant) return std::nullopt;
      return v->op->int_attr(AttrName::kValue);
    };
    const Value *left = op->operand(0), *right = op->operand(1);
    if ((predicate == Predicate::kGe && constant(right) >= 0) || (predicate == Predicate::kGt && constant(right) >= -1))
      assumed[left].non_negative = true;
    if ((predicate == Predicate::kLe && constant(left) >= 0) || (predicate == Predicate::kLt && constant(left) >= -1))
      assumed[right].non_negative = true;
    if (predicate == Predicate::kEq && constant(right) == 0 && left->op && left->op->kind == OpKind::kRem)
      if (auto divisor = constant(left->op->operand(1)); divisor && *divisor != 0)
        assumed[left->op->operand(0)].divisibility = divisor_of(*divisor);
  }

  void set(const Value* v, AxisInfo info) {
    if (auto it = assumed.find(v); it != assumed.end() && v->type.is_scalar()) {
      info.divisibility[0] = std::max(info.divisibility[0], it->second.divisibility);
      info.non_negative |= it->second.non_negative;
    }
    for (int d = 0; d < dims(info); ++d) {
      const int64_t known = std::max(info.contiguity[d], info.constancy[d]);
      if (info.run[d] <= known) info.run[d] = known, info.step[d] = 1;
      if (info.constancy[d] >= size_along(v->type, d)) info.usual_step[d] = 0;
      if (info.contiguity[d] >= kUsualRun) info.usual_step[d] = 1;
    }
    infos[v] = info;
  }

  void visit_block(const Block* block) {
    for (const Op* op : *block) visit(op);
  }

  void visit(const Op* op) {
    switch (op->kind) {
      case OpKind::kFor:
        return visit_for(op);
      case OpKind::kWhile:
        return visit_while(op);
      case OpKind::kIf:
        for (const Block* region : op->regions) visit_block(region);
        for (const Value* r : op->results)
          infos[r] = join(of(op->region(0)->terminator()->operand(static_cast<int>(r->index))),
                          of(op->region(1)->terminator()->operand(static_cast<int>(r->index))));
        return;
      case OpKind::kWarpSpecialize:  // what its warps load and store themselves, an epilogue above all
        for (const Block* region : op->regions) visit_block(region);
        return;
      default:  // Every other op: its results from its operands; combine regions hold no addresses.
        for (const Value* r : op->results) set(r, r->type.is_float() ? unknown(r->type) : transfer(op, r));
    }
  }

  /// Joins `incoming` into `v`; true when v's facts became weaker.
  bool weaken(const Value* v, const AxisInfo& incoming) {
    AxisInfo joined = join(of(v), incoming);
    if (joined == of(v)) return false;
    infos[v] = joined;
    return true;
  }

  void visit_for(const Op* op) {
    const Block* body = op->region();
    AxisInfo iv = unknown(body->args[0]->type);
    iv.divisibility[0] = std::min(of(op->operand(0)).divisibility[0], of(op->operand(2)).divisibility[0]);
    iv.non_negative = of(op->operand(0)).non_negative;
    infos[body->args[0]] = iv;
    for (size_t i = 0; i < op->results.size(); ++i) infos[body->args[i + 1]] = of(op->operands[i + 3]);
    for (bool changed = true; changed;) {
      visit_block(body);
      changed = false;
      for (size_t i = 0; i < op->results.size(); ++i)
        changed |= weaken(body->args[i + 1], of(body->terminator()->operands[i]));
    }
    for (size_t i = 0; i < op->results.size(); ++i) infos[op->results[i]] = of(body->args[i + 1]);
  }

  void visit_while(const Op* op) {
    const Block *before = op->region(0), *after = op->region(1);
    for (size_t i = 0; i < before->args.size(); ++i) infos[before->args[i]] = of(op->operands[i]);
    for (bool changed = true; changed;) {
      visit_block(before);
      for (size_t i = 0; i < after->args.size(); ++i) infos[after->args[i]] = of(before->terminator()->operands[i + 1]);
      visit_block(after);
      changed = false;
      for (size_t i = 0; i < before->args.size(); ++i)
        changed |= weaken(before->args[i], of(after->terminator()->operands[i]));
    }
    for (size_t i = 0; i < op->results.size(); ++i) infos[op->results[i]] = of(after->args[i]);
  }

  AxisInfo transfer(const Op* op, const Value* r) {
    const ir::Type& type = r->type;
    switch (op->kind) {
      case OpKind::kConstant:
        return constant_info(type, op->int_attr(AttrName::kValue));
      case OpKind::kProgramId:
      case OpKind::kNumPrograms:
      case OpKind::kCtaRank: {
        AxisInfo info = unknown(type);
        info.non_negative = true;
        return info;
      }
      case OpKind::kArange: {
        AxisInfo info = unknown(type);
        info.contiguity[0] = type.shape[0];
        info.usual_step[0] = 1;
        info.divisibility[0] = divisor_of(op->int_attr(AttrName::kStart));
        info.non_negative = op->int_attr(AttrName::kStart) >= 0;
        return info;
      }
      case OpKind::kSplat: {
        AxisInfo info = unknown(type);
        const AxisInfo& from = of(op->operand(0));
        for (int d = 0; d < info.rank; ++d) {
          info.divisibility[d] = from.divisibility[0];
          info.constancy[d] = info.prefix[d] = type.shape[d];
          info.usual_step[d] = 0;
        }
        info.constant = from.constant;
        info.non_negative = from.non_negative;
        return info;
      }
      case OpKind::kExpandDims:
        return expand_dims(op, type);
      case OpKind::kBroadcast: {
        AxisInfo info = of(op->operand(0));
        for (int d = 0; d < info.rank; ++d)
          if (op->operand(0)->type.shape[d] != type.shape[d]) {
            info.constancy[d] = info.prefix[d] = type.shape[d];
            info.usual_step[d] = 0;
          }
        return info;
      }
      case OpKind::kTrans: {
        AxisInfo info = unknown(type), from = of(op->operand(0));
        const auto& order = std::get<std::vector<int64_t>>(*op->find(AttrName::kOrder));
        for (int d = 0; d < info.rank; ++d)
          copy_along(info, d, from, static_cast<size_t>(order[static_cast<size_t>(d)]));
        info.constant = from.constant;
        info.non_negative = from.non_negative;
        return info;
      }
      case OpKind::kReshape:
        return reshape(op, type);
      case OpKind::kConvertLayout:
        return of(op->operand(0));
      case OpKind::kHint:
        return hint(op);
      case OpKind::kCast:
      case OpKind::kBitcast:
      case OpKind::kIntToPtr:
      case OpKind::kPtrToInt:
        return cast(op, type);
      case OpKind::kAdd:
      case OpKind::kAddPtr:
        return add(op, type);
      case OpKind::kSub:
        return sub(op, type);
      case OpKind::kMul:
        return mul(type, op->kind, of(op->operand(0)), of(op->operand(1)));
      case OpKind::kShl:
        if (auto k = of(op->operand(1)).constant; k && *k >= 0 && *k < std::min(31, type.element_bits()))
          return mul(type, OpKind::kMul, of(op->operand(0)), constant_info(type, int64_t{1} << *k));
        return combined(op, type);
      case OpKind::kShr:
        if (auto k = of(op->operand(1)).constant; k && *k >= 0 && *k < std::min(31, type.element_bits()))
          return divided(type, of(op->operand(0)), constant_info(type, int64_t{1} << *k), /*rounds_down=*/true);
        return combined(op, type);
      case OpKind::kDiv:
        return div(op, type);
      case OpKind::kRem:
        return rem(op, type);
      case OpKind::kAnd:
        return and_mask(op, type);
      case OpKind::kCmp:
        return cmp(op, type);
      case OpKind::kSelect:
        return select(op, type);
      case OpKind::kMin:
      case OpKind::kMax: {
        AxisInfo info = combined(op, type);
        const AxisInfo &a = of(op->operand(0)), &b = of(op->operand(1));
        for (int d = 0; d < dims(info); ++d) {
          info.divisibility[d] = std::min(element_divisor(a), element_divisor(b));
          set_run(info, d, a, b);
          if (b.run[d] > a.run[d]) set_run(info, d, b, a);
          info.usual_step[d] = std::max(a.usual_step[d], b.usual_step[d]);
        }
        info.non_negative =
            op->kind == OpKind::kMin ? a.non_negative && b.non_negative : a.non_negative || b.non_negative;
        return folded(op, type, info);
      }
      default:
        return ir::is_elementwise(op) && ir::is_pure(op) ? combined(op, type) : loaded(op, type);
    }
  }

  /// Any elementwise function: equal operands give equal results.
  AxisInfo combined(const Op* op, const ir::Type& type) {
    AxisInfo info = unknown(type);
    for (int d = 0; d < dims(info); ++d) {
      info.constancy[d] = size_along(type, d);
      bool changes = false;
      for (const Value* v : op->operands) {
        info.constancy[d] = std::min(info.constancy[d], of(v).constancy[d]);
        changes |= of(v).usual_step[d] != 0;
      }
      info.prefix[d] = info.constancy[d];
      if (!changes) info.usual_step[d] = 0;
    }
    return info;
  }

  /// A load gives equal values for equal addresses under equal masks; anything else is unknown.
  AxisInfo loaded(const Op* op, const ir::Type& type) {
    return op->kind == OpKind::kLoad && !op->flag(AttrName::kVolatile) ? combined(op, type) : unknown(type);
  }

  AxisInfo folded(const Op* op, const ir::Type& type, AxisInfo info) {
    const AxisInfo &a = of(op->operand(0)), &b = of(op->operand(1));
    if (!a.constant || !b.constant || op->kind == OpKind::kAddPtr) return info;
    auto value = fold(op->kind, type, *a.constant, *b.constant);
    return value ? constant_info(type, *value) : info;
  }

  AxisInfo expand_dims(const Op* op, const ir::Type& type) {
    AxisInfo info = unknown(type);
    const AxisInfo& from = of(op->operand(0));
    int axis = static_cast<int>(op->int_attr(AttrName::kAxis));
    for (int d = 0, source = 0; d < info.rank; ++d) {
      if (d == axis) {
        info.divisibility[d] = element_divisor(from);
        info.usual_step[d] = 0;
        continue;
      }
      copy_along(info, d, from, static_cast<size_t>(source++));
    }
    info.constant = from.constant;
    info.non_negative = from.non_negative;
    return info;
  }

  /// Facts along the last dimension survive as far as its groups stay whole.
  AxisInfo reshape(const Op* op, const ir::Type& type) {
    const AxisInfo& from = of(op->operand(0));
    if (from.constant) return constant_info(type, *from.constant);
    AxisInfo info = unknown(type);
    int last = info.rank - 1, from_last = from.rank - 1;
    info.contiguity[last] = std::min<int64_t>(from.contiguity[from_last], type.shape[last]);
    info.constancy[last] = std::min<int64_t>(from.constancy[from_last], type.shape[last]);
    info.prefix[last] = std::min<int64_t>(from.prefix[from_last], type.shape[last]);
    info.divisibility[last] = divisor_at(from, from_last, info.contiguity[last]);
    info.usual_step[last] = from.usual_step[from_last];
    for (int d = 0; d < last; ++d) info.divisibility[d] = element_divisor(from);
    info.non_negative = from.non_negative;
    return info;
  }

  AxisInfo hint(const Op* op) {
    AxisInfo info = of(op->operand(0));
    const bool is_assured = op->flag(AttrName::kAssured);
    has_hints |= !is_assured;
    if (!takes_hints && !is_assured) return info;
    auto raise = [&](AttrName attr, std::array<int64_t, ir::kMaxRank>& facts, bool capped) {
      const ir::Attr* list = op->find(attr);
      if (!list) return;
      const auto& numbers = std::get<std::vector<int64_t>>(*list);
      for (int d = 0; d < dims(info) && d < static_cast<int>(numbers.size()); ++d) {
        int64_t fact = divisor_of(numbers[static_cast<size_t>(d)]);
        facts[d] = std::max(facts[d], capped ? std::min(fact, size_along(op->result()->type, d)) : fact);
      }
    };
    raise(AttrName::kMultipleOf, info.divisibility, false);
    raise(AttrName::kMaxContiguous, info.contiguity, true);
    raise(AttrName::kMaxConstancy, info.constancy, true);
    return info;
  }

  AxisInfo cast(const Op* op, const ir::Type& type) {
    const ir::Type& source = op->operand(0)->type;
    const AxisInfo& from = of(op->operand(0));
    AxisInfo info = combined(op, type);
    if (source.is_float() || type.is_bool()) return info;
    bool same_step = source.pointer && type.pointer   ? size_of(source.dtype) == size_of(type.dtype)
                     : source.pointer != type.pointer ? size_of((source.pointer ? source : type).dtype) == 1
                                                      : true;
    for (int d = 0; d < dims(info); ++d) {
      // A narrow type wraps; whole aligned groups of at most half its range do not.
      const bool wraps = type.element_bits() < source.element_bits() && type.element_bits() < 32;
      if (same_step) info.contiguity[d] = from.contiguity[d];
      if (same_step && !wraps) info.run[d] = from.run[d], info.step[d] = from.step[d];
      if (same_step) info.usual_step[d] = from.usual_step[d];
      if (wraps)
        info.contiguity[d] =
            std::min({info.contiguity[d], from.divisibility[d], int64_t{1} << (type.element_bits() - 1)});
      info.divisibility[d] = same_step ? divisor_at(from, d, info.contiguity[d]) : element_divisor(from);
    }
    bool keeps_value =
        type.element_bits() >= source.element_bits() && (source.pointer || type.pointer || fits_all(source, type));
    info.non_negative = from.non_negative && keeps_value;
    if (from.constant && !type.pointer && fits(type, *from.constant)) info = constant_info(type, *from.constant);
    return info;
  }
  static bool fits_all(const ir::Type& from, const ir::Type& to) {
    return is_signed(from.dtype) == is_signed(to.dtype) || to.element_bits() > from.element_bits() ||
           is_signed(from.dtype);
  }

  /// The run of x beside what is equal for all of it: x + n, x - n, min(x, n).
  static void set_run(AxisInfo& info, int d, const AxisInfo& x, const AxisInfo& n) {
    info.run[d] = std::min(x.run[d], n.constancy[d]);
    info.step[d] = x.step[d];
  }

  AxisInfo add(const Op* op, const ir::Type& type) {
    const AxisInfo &a = of(op->operand(0)), &b = of(op->operand(1));
    AxisInfo info = combined(op, type);
    int64_t step = op->kind == OpKind::kAddPtr ? size_of(type.dtype) : 1;
    for (int d = 0; d < dims(info); ++d) {
      info.contiguity[d] =
          std::max(std::min(a.contiguity[d], b.constancy[d]), std::min(a.constancy[d], b.contiguity[d]));
      set_run(info, d, a, b);
      if (const int64_t turned = std::min(a.constancy[d], b.run[d]); turned > info.run[d])
        info.run[d] = turned, info.step[d] = b.step[d];
      info.usual_step[d] = std::min(kFar, a.usual_step[d] + b.usual_step[d]);
      int64_t da = divisor_at(a, d, info.contiguity[d]), db = divisor_at(b, d, info.contiguity[d]);
      // A pointer's contiguity counts elements, its divisibility bytes.
      if (op->kind == OpKind::kAddPtr && info.contiguity[d] < a.contiguity[d])
        da = std::min(a.divisibility[d], times(info.contiguity[d], step));
      info.divisibility[d] = std::min(da, times(db, step));
    }
    info.non_negative = a.non_negative && b.non_negative && op->kind == OpKind::kAdd;
    return folded(op, type, info);
  }

  AxisInfo sub(const Op* op, const ir::Type& type) {
    const AxisInfo &a = of(op->operand(0)), &b = of(op->operand(1));
    AxisInfo info = combined(op, type);
    for (int d = 0; d < dims(info); ++d) {
      set_run(info, d, a, b);
      info.usual_step[d] = std::min(kFar, a.usual_step[d] + b.usual_step[d]);
      info.contiguity[d] = std::min(a.contiguity[d], b.constancy[d]);
      int64_t c = info.contiguity[d];
      info.divisibility[d] =
          std::min(divisor_at(a, d, c), b.contiguity[d] > 1 && b.constancy[d] < c ? 1 : divisor_at(b, d, c));
    }
    return folded(op, type, info);
  }

  AxisInfo mul(const ir::Type& type, OpKind kind, const AxisInfo& a, const AxisInfo& b) {
    if (a.constant == 1) return b;
    if (b.constant == 1) return a;
    AxisInfo info = unknown(type);
    for (int d = 0; d < dims(info); ++d) {
      info.constancy[d] = std::min(a.constancy[d], b.constancy[d]);
      int64_t da = a.contiguity[d] == 1 ? a.divisibility[d] : element_divisor(a);
      int64_t db = b.contiguity[d] == 1 ? b.divisibility[d] : element_divisor(b);
      info.divisibility[d] = times(da, db);
      info.usual_step[d] = b.usual_step[d] == 0 ? usual_product(a, b, d) : usual_product(b, a, d);
      for (const auto& [x, factor] : {std::pair(&a, &b), std::pair(&b, &a)})
        if (factor->constant && *factor->constant > 0 && *factor->constant <= kMostStep / x->step[d])
          info.run[d] = x->run[d], info.step[d] = x->step[d] * *factor->constant;
    }
    info.non_negative = a.non_negative && b.non_negative;
    if (a.constant && b.constant) {
      if (auto value = fold(kind, type, *a.constant, *b.constant)) return constant_info(type, *value);
      info.non_negative = false;
    }
    return info;
  }

  /// Division by a number with a known factor: groups that lie between two multiples of it give equal results.
  /// Truncation spoils that below zero.
  AxisInfo divided(const ir::Type& type, const AxisInfo& a, const AxisInfo& b, bool rounds_down) {
    AxisInfo info = unknown(type);
    for (int d = 0; d < dims(info); ++d) {
      info.constancy[d] = std::min(a.constancy[d], b.constancy[d]);
      if (rounds_down || a.non_negative)
        info.constancy[d] = std::max(info.constancy[d],
                                     std::min({a.contiguity[d], a.divisibility[d], b.divisibility[d], b.constancy[d]}));
      if (b.constant && *b.constant > 0 && (rounds_down || a.non_negative))
        info.run[d] = a.run[d], info.step[d] = (a.step[d] - 1) / *b.constant + 1;
      if (b.usual_step[d] == 0 && a.usual_step[d] < kFar) {
        const bool is_small = b.constant && *b.constant > 0 && *b.constant < kLeastRun;
        info.usual_step[d] = is_small ? a.usual_step[d] / static_cast<double>(*b.constant) : 0;
      }
      // An exact division by a constant power of two leaves the rest of the divisor.
      if (b.constant && *b.constant > 0 && *b.constant == divisor_of(*b.constant) && a.contiguity[d] == 1)
        info.divisibility[d] = std::max<int64_t>(1, a.divisibility[d] / *b.constant);
    }
    info.non_negative = a.non_negative && b.non_negative;
    return info;
  }

  /// A minimum of a difference and a constant, as min(tiles - first, GROUP), the tiles of a group of programs. It is
  /// taken to be positive, which is not proved: there it is less only in programs beyond the last tile. So the
  /// column that follows from a program's number is not negative (docs/language.md). Triton takes the sign of every
  /// dividend of % for granted.
  bool is_capped_count(const Value* v) {
    if (!v->op || v->op->kind != OpKind::kMin) return false;
    for (int cap : {0, 1}) {
      const std::optional<int64_t> most = of(v->op->operand(cap)).constant;
      const Op* count = v->op->operand(1 - cap)->op;
      // What is left of a number that is given: a difference of constants may well be meant to be negative.
      if (most && *most > 0 && count && count->kind == OpKind::kSub && !of(count->operand(1)).constant) return true;
    }
    return false;
  }

  AxisInfo div(const Op* op, const ir::Type& type) {
    const AxisInfo &a = of(op->operand(0)), &b = of(op->operand(1));
    if (b.constant == 1) return a;
    AxisInfo info = divided(type, a, b, !is_signed(type.dtype));
    if (type.is_scalar() && a.non_negative && is_capped_count(op->operand(1))) info.non_negative = true;
    return folded(op, type, info);
  }

  AxisInfo rem(const Op* op, const ir::Type& type) {
    const AxisInfo &a = of(op->operand(0)), &b = of(op->operand(1));
    AxisInfo info = combined(op, type);
    for (int d = 0; d < dims(info); ++d) {
      if (a.non_negative || !is_signed(type.dtype))
        info.contiguity[d] = std::min({a.contiguity[d], a.divisibility[d], b.divisibility[d], b.constancy[d]});
      info.divisibility[d] = std::min(divisor_at(a, d, info.contiguity[d]), element_divisor(b));
      info.usual_step[d] = usual_remainder(a, b, d);
    }
    info.non_negative = a.non_negative;
    return folded(op, type, info);
  }

  /// x & (2^k - 1) is x % 2^k of any sign; masks of i1 keep what is constant in both.
  AxisInfo and_mask(const Op* op, const ir::Type& type) {
    AxisInfo info = combined(op, type);
    info.non_negative = of(op->operand(0)).non_negative || of(op->operand(1)).non_negative;
    for (int side = 0; side < 2; ++side) {
      const AxisInfo &x = of(op->operand(side)), &mask = of(op->operand(1 - side));
      for (int d = 0; d < dims(info); ++d) {
        info.divisibility[d] = std::max(info.divisibility[d], element_divisor(x));
        info.prefix[d] = std::max(info.prefix[d], std::min(x.prefix[d], mask.prefix[d]));
        if (!mask.constant || type.is_bool()) continue;
        if (auto m = static_cast<int64_t>(static_cast<uint64_t>(*mask.constant) + 1); m > 0 && m == divisor_of(m)) {
          info.contiguity[d] = std::min({x.contiguity[d], x.divisibility[d], m});
          info.usual_step[d] = usual_remainder(x, constant_info(type, m), d);
          info.divisibility[d] = divisor_at(x, d, info.contiguity[d]);
        } else if (int64_t low = divisor_of(*mask.constant); *mask.constant != 0) {
          info.constancy[d] = std::max(info.constancy[d], std::min({x.contiguity[d], x.divisibility[d], low}));
        }
      }
    }
    return info;
  }

  /// x < n and x >= n are equal over groups of x that start and end at divisors of n. x < n and x <= n hold for the
  /// first ones of a group; one that starts at a multiple of its size does not pass 0 on the way.
  AxisInfo cmp(const Op* op, const ir::Type& type) {
    AxisInfo info = combined(op, type);
    const auto predicate = op->word<Predicate>();
    if (!op->operand(0)->type.is_int()) return info;
    bool rising_left = predicate == Predicate::kLt || predicate == Predicate::kGe,
         rising_right = predicate == Predicate::kGt || predicate == Predicate::kLe;
    if (!rising_left && !rising_right) return info;
    const AxisInfo &x = of(op->operand(rising_left ? 0 : 1)), &n = of(op->operand(rising_left ? 1 : 0));
    for (int d = 0; d < dims(info); ++d)
      info.constancy[d] = std::max(info.constancy[d],
                                   std::min({x.contiguity[d], x.divisibility[d], n.divisibility[d], n.constancy[d]}));
    const bool left_is_less = predicate == Predicate::kLt || predicate == Predicate::kLe;
    const AxisInfo &less = of(op->operand(left_is_less ? 0 : 1)), &more = of(op->operand(left_is_less ? 1 : 0));
    for (int d = 0; d < dims(info); ++d)
      info.prefix[d] =
          std::max(info.constancy[d], std::min({less.contiguity[d], less.divisibility[d], more.constancy[d]}));
    return info;
  }

  AxisInfo select(const Op* op, const ir::Type& type) {
    const AxisInfo &c = of(op->operand(0)), &a = of(op->operand(1)), &b = of(op->operand(2));
    AxisInfo info = unknown(type);
    for (int d = 0; d < dims(info); ++d) {
      info.contiguity[d] = std::min({a.contiguity[d], b.contiguity[d], c.constancy[d]});
      info.constancy[d] = std::min({a.constancy[d], b.constancy[d], c.constancy[d]});
      info.usual_step[d] = std::max(a.usual_step[d], b.usual_step[d]);
      info.divisibility[d] = std::min(divisor_at(a, d, info.contiguity[d]), divisor_at(b, d, info.contiguity[d]));
    }
    info.non_negative = a.non_negative && b.non_negative;
    return info;
  }
};

const Value* pointer_of(const Op* access) { return access->operand(access->kind == OpKind::kAsyncCopy ? 1 : 0); }

Value* mask_of(const Op* access) {
  const int at = mask_index(*access);
  return at >= 0 && static_cast<int>(access->operands.size()) > at ? access->operand(at) : nullptr;
}

bool moves_vectors(const Op* access) {
  if (access->kind == OpKind::kAtomicCas) return false;
  return access->kind != OpKind::kAtomicRmw ||
         (access->word<ir::Rmw>() == ir::Rmw::kFAdd && access->result()->type.element_bits() <= 32);
}

int mask_index(const Op& op) {
  if (op.kind == OpKind::kAtomicCas) return -1;
  return op.kind == OpKind::kLoad || op.kind == OpKind::kPrefetch || op.kind == OpKind::kAssert ? 1 : 2;
}

AxisAnalysis::AxisAnalysis(const ir::Module& module) {
  auto analysed = [&](bool takes_hints) {
    auto state = std::make_unique<State>();
    state->takes_hints = takes_hints;
    for (const Op* op : *module.body())
      if (op->kind == OpKind::kAssume) state->assume(op->operand(0));
    for (size_t i = 0; i < module.params.size(); ++i) {
      const Value* arg = module.body()->args[i];
      AxisInfo info = unknown(arg->type);
      info.divisibility[0] = divisor_of(module.params[i].divisibility);
      state->set(arg, info);
    }
    state->visit_block(module.body());
    return state;
  };
  state_ = analysed(true);
  if (state_->has_hints) without_hints_ = analysed(false);
}

AxisAnalysis::~AxisAnalysis() = default;
AxisAnalysis::AxisAnalysis(AxisAnalysis&&) noexcept = default;

const AxisInfo& AxisAnalysis::of(const Value* value) const { return state_->of(value); }

namespace {

/// The index of the first element of the aligned group of `equal` ones along each dimension.
uint64_t first_of(const std::array<int64_t, ir::kMaxRank>& equal, const ir::Shape& shape, layout::Coord place) {
  for (int d = 0; d < shape.rank; ++d)
    place[d] = static_cast<int32_t>(place[d] & ~(static_cast<uint64_t>(equal[static_cast<size_t>(d)]) - 1));
  return layout::index_of(shape.span(), place);
}

}  // namespace

uint64_t AxisAnalysis::first_equal(const Value* value, layout::Coord place) const {
  return first_of(of(value).constancy, value->type.shape, place);
}

uint64_t AxisAnalysis::first_loaded(const Op* access, layout::Coord place) const {
  std::array<int64_t, ir::kMaxRank> equal;
  equal.fill(1);
  const Value* pointer = access->operand(0);
  if (access->kind == OpKind::kLoad && !access->flag(AttrName::kVolatile)) {
    equal = of(pointer).constancy;
    for (size_t i = 1; i < access->operands.size(); ++i) {
      const Value* v = access->operands[i];
      // Of floats, as what stands where the mask is off, no facts are kept.
      if (v->op && (v->op->kind == OpKind::kConstant || v->op->kind == OpKind::kSplat)) continue;
      for (size_t d = 0; d < equal.size(); ++d) equal[d] = std::min(equal[d], of(v).constancy[d]);
    }
  }
  return first_of(equal, pointer->type.shape, place);
}

std::array<int, ir::kMaxRank> AxisAnalysis::order_of(const Value* pointer) const {
  const AxisInfo& info = of(pointer);
  std::array<int, ir::kMaxRank> order{};
  for (int d = 0; d < info.rank; ++d) order[static_cast<size_t>(d)] = info.rank - 1 - d;
  std::stable_sort(order.begin(), order.begin() + info.rank, [&](int a, int b) {
    const int64_t ca = info.contiguity[a], cb = info.contiguity[b];
    const int64_t ra = info.run[a] / info.constancy[a], rb = info.run[b] / info.constancy[b];
    if (ca != cb || ra != rb) return ca != cb ? ca > cb : ra > rb;
    // Lanes along equal addresses bring nothing.
    auto step = [&](int d) { return info.usual_step[d] == 0 ? kFar : info.usual_step[d]; };
    return step(a) < step(b);
  });
  return order;
}

int64_t AxisAnalysis::alignment_width(const Value* pointer, const Value* mask, int dim) const {
  const int64_t size = size_of(pointer->type.dtype);
  auto width_in = [&](State& state) {
    const AxisInfo& info = state.of(pointer);
    return std::min({info.contiguity[dim], info.divisibility[dim] / size, kAccessBytes / size});
  };
  if (!mask) return std::max<int64_t>(width_in(*state_), 1);
  const int64_t whole = std::min(width_in(*state_), state_->of(mask).constancy[dim]);
  State& sure = without_hints_ ? *without_hints_ : *state_;
  return std::max({whole, std::min(width_in(sure), sure.of(mask).prefix[dim]), int64_t{1}});
}

namespace {

/// The dimension along which a thread's lowest registers lie; -1: none.
int lowest_dim(const layout::LinearLayout& layout) {
  const auto registers = layout.bases(layout::In::kRegister);
  if (registers.empty()) return -1;
  for (int dim = 0; dim < layout.rank(); ++dim)
    if (registers[0][dim] != 0) return dim;
  return -1;
}

}  // namespace

int AxisAnalysis::vector_width(const Op* access) const {
  const layout::LinearLayout* layout = pointer_of(access)->type.layout;
  return layout ? vector_width(access, *layout) : 1;
}

int AxisAnalysis::vector_width(const Op* access, const layout::LinearLayout& layout) const {
  if (!moves_vectors(access)) return 1;
  const int dim = lowest_dim(layout);
  if (dim < 0) return 1;
  const auto registers = layout.bases(layout::In::kRegister);
  const int64_t limit = alignment_width(pointer_of(access), mask_of(access), dim);
  int width = 1;
  for (size_t bit = 0; bit < registers.size() && 2 * width <= limit; ++bit) {
    layout::Coord next;
    next[dim] = width;
    if (registers[bit] != next) break;
    // A vector begins at a multiple of its width: nothing else may move it by less.
    bool alone = true;
    for (layout::In in : {layout::In::kRegister, layout::In::kLane, layout::In::kWarp})
      for (size_t i = 0; i < layout.bases(in).size(); ++i)
        if ((in != layout::In::kRegister || i != bit) && (layout.bases(in)[i][dim] & width)) alone = false;
    if (!alone) break;
    width *= 2;
  }
  return width;
}

bool AxisAnalysis::may_end_within_vector(const Op* access) const {
  const Value* mask = mask_of(access);
  const int width = vector_width(access);
  return mask && width > 1 && of(mask).constancy[lowest_dim(*pointer_of(access)->type.layout)] < width;
}

}  // namespace kiln::analysis
