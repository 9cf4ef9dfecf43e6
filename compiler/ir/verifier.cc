// The invariants that every pass may rely on. Each has a test that breaks it (tests/unit/ir/verifier_test.cc).
//
//  1. A block ends with a terminator and has no other: return in the kernel's body, condition in while's first region,
//     yield in every other region.
//  2. A value is defined before its use: an argument of an enclosing block, or a result of an op that comes earlier in
//     the same or an enclosing block.
//  3. Uses, parents and neighbours are consistent: each operand knows its use, each op and block its parent.
//  4. Operand, result and region counts are those of ops.def.
//  5. Required attributes are there, no other than those of ops.def, each of attrs.def's kind.
//  6. Attribute values are legal (axis in range, a word that may stand on the op, a permutation…).
//  7. Dimensions of tiles are powers of two, and a tile has at most kMaxNumel elements.
//  8. Operand, result and region argument types obey the op's type rule (verify_types.cc).
//  9. Terminators yield the types that their op's results, or its next region's arguments, have.
// 10. The combine region of reduce and scan is closed: it uses its own values only, and holds scalars and ops that
//     stand at `c` in ops.def.
// 11. fp8 numbers are only moved, selected, compared for bits and cast: no arithmetic.
// 12. Tile stage: no value has a layout, and all ops stand at `t` in ops.def. Distributed stage: they stand at `d`,
//     every tile has a layout onto its shape, no scalar has one, and an elementwise op's tiles share one layout.
// 13. A kernel has one ParamInfo per parameter; parameters are scalars; a divisibility is positive.
// 14. num_warps is a power of two from 1 to 32; num_stages and num_ctas are positive.
// 15. Handles (Type::form other than kValue) are operands and results of ops with trait H alone, never loop-carried; a
//     handle of shared memory has a layout from offset bits onto its shape, the others have none.
// 16. Warps that do a barrier, tma_store or tma_store_wait by themselves are a power of two, at most num_warps; the
//     first dimension of what they store has a row for each of their groups.
// 17. num_ctas is more than 1 where an op concerns all blocks of the program; the rows of what they load together can
//     be split across them.
// 18. warp_specialize stands once, in the kernel's own block. Ahead of it, in code that all warps run, ops stand at `r`
//     in ops.def; in its further regions, each of which one thread runs, they stand at `s`, have no tiles and join no
//     warps.
#include "compiler/ir/verifier.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <unordered_set>

#include "support/diag.h"

namespace kiln::ir {

namespace {

/// Calls fn(name, required) for each word of an ops.def attrs column.
template <class Fn>
void each_spec(std::string_view spec, Fn&& fn) {
  while (!spec.empty()) {
    const size_t space = std::min(spec.find(' '), spec.size());
    std::string_view word = spec.substr(0, space);
    const bool required = !word.ends_with('?');
    if (!required) word.remove_suffix(1);
    if (!word.empty()) fn(word, required);
    spec.remove_prefix(std::min(space + 1, spec.size()));
  }
}

bool is_tile(const Value* v) { return v->type.is_tile(); }
bool is_combine(const Op* op) { return op && (op->kind == OpKind::kReduce || op->kind == OpKind::kScan); }

bool moves_fp8(OpKind kind) {
  return !has_trait(kind, 'E') || op_class(kind) == OpClass::kMemory
             ? kind != OpKind::kAtomicRmw && kind != OpKind::kAtomicCas
             : (op_class(kind) == OpClass::kMixed || op_class(kind) == OpClass::kAsm) && kind != OpKind::kCmp;
}

class Verifier {
 public:
  explicit Verifier(const Module& module) : module_(module) {}

  Status run() {
    if (module_.params.size() != module_.body()->args.size())
      return fail(
          nullptr, 13,
          fmt::format("{} parameters with {} descriptions", module_.body()->args.size(), module_.params.size()));
    for (size_t i = 0; i < module_.params.size(); ++i)
      if (module_.params[i].divisibility < 1 || module_.body()->args[i]->type.is_tile())
        return fail(nullptr, 13, fmt::format("parameter {} is a tile or has a divisibility below 1", i));
    if (module_.num_warps < 1 || module_.num_warps > 32 ||
        !std::has_single_bit(static_cast<unsigned>(module_.num_warps)) || module_.num_stages < 1 ||
        module_.num_ctas < 1)
      return fail(nullptr, 14,
                  fmt::format("num_warps = {}, num_stages = {}, num_ctas = {}", module_.num_warps, module_.num_stages,
                              module_.num_ctas));
    for (const Op* op : *module_.body()) ahead_of_roles_ |= op->kind == OpKind::kWarpSpecialize;
    return check_block(*module_.body());
  }

 private:
  Diagnostic fail(const Op* op, int invariant, std::string_view what) const {
    SourceRange range = op ? op->range : SourceRange{};
    Diagnostic d = error_at(range, ErrorKind::kInternal, "the IR breaks invariant {}: {}", invariant, what);
    return op ? with_note(std::move(d), "in: " + print(*op)) : d;
  }

  OpKind wanted_terminator(const Block& block) const {
    if (!block.parent) return OpKind::kReturn;
    return block.parent->kind == OpKind::kWhile && block.parent->region(0) == &block ? OpKind::kCondition
                                                                                     : OpKind::kYield;
  }

  Status check_block(const Block& block) {
    for (const Value* arg : block.args) {
      if (arg->block != &block || arg->op) return fail(block.parent, 3, "a block argument does not know its block");
      KILN_CHECK_OK(check_value(block.parent, *arg));
      defined_.insert(arg);
    }
    if (!block.last || !is_terminator(block.last))
      return fail(block.parent, 1, "a block does not end with a terminator");
    const OpKind wanted = wanted_terminator(block);
    if (block.last->kind != wanted)
      return fail(
          block.last, 1,
          fmt::format("this block ends with {}, not {}", info(wanted).mnemonic, info(block.last->kind).mnemonic));
    const Op* previous = nullptr;
    for (const Op* op = block.first; op; previous = op, op = op->next) {
      if (op->parent != &block || op->prev != previous) return fail(op, 3, "the op's parent or neighbours are wrong");
      if (op != block.last && is_terminator(op)) return fail(op, 1, "a terminator stands inside a block");
      KILN_CHECK_OK(check_op(*op));
    }
    // Values of this block are out of scope after it.
    for (const Value* arg : block.args) defined_.erase(arg);
    for (const Op* op = block.first; op; op = op->next)
      for (const Value* r : op->results) defined_.erase(r);
    return {};
  }

  Status check_value(const Op* at, const Value& v) {
    const Type& t = v.type;
    for (int d : t.shape.span())
      if (d < 1 || !std::has_single_bit(static_cast<unsigned>(d)))
        return fail(at, 7, fmt::format("the dimension {} is no power of two", d));
    if (t.shape.numel() > kMaxNumel)
      return fail(at, 7, fmt::format("{} has more than {} elements", to_string(t), kMaxNumel));
    if (!t.is_value() && (!at || !has_trait(at->kind, 'H')))
      return fail(at, 15, fmt::format("{} is no operand, result or argument here", to_string(t)));
    if (t.copies < 1 || (t.copies > 1 && t.form != Form::kShared && t.form != Form::kBarrier))
      return fail(at, 15, fmt::format("{} with {} copies", to_string(t), t.copies));
    const bool wants_layout = t.form == Form::kShared || (module_.stage == Stage::kDistributed && t.is_tile());
    if (!wants_layout) {
      if (t.layout) return fail(at, 12, fmt::format("{} has a layout", to_string(t)));
    } else if (!t.layout) {
      return fail(at, 12, fmt::format("{} has no layout", to_string(t)));
    } else if (!std::ranges::equal(t.layout->shape(), t.shape.span())) {
      return fail(at, 12, fmt::format("the layout of {} is for another shape", to_string(t)));
    }
    for (const Use& use : v.uses)
      if (use.index >= use.op->operands.size() || use.op->operands[use.index] != &v)
        return fail(at, 3, "a use names an operand that is another value");
    return {};
  }

  Status check_joined_warps(const Op& op) const {
    const int64_t warps = op.int_attr(AttrName::kWarps);
    if (warps < 1 || warps > module_.num_warps || !std::has_single_bit(static_cast<uint64_t>(warps)))
      return fail(&op, 16, fmt::format("{} of {} warps", warps, module_.num_warps));
    if (op.kind == OpKind::kTmaStore && op.operand(1)->type.shape[0] * warps < module_.num_warps)
      return fail(
          &op, 16,
          fmt::format("{} rows for {} groups of warps", op.operand(1)->type.shape[0], module_.num_warps / warps));
    return {};
  }

  Status check_cluster(const Op& op) const {
    if (op.kind != OpKind::kClusterBarrier && !op.flag(AttrName::kCluster)) return {};
    if (module_.num_ctas == 1) return fail(&op, 17, "a program of one block has no cluster");
    if (op.kind == OpKind::kTmaLoad && op.operand(0)->type.shape[0] % module_.num_ctas)
      return fail(&op, 17, fmt::format("{} rows for {} blocks", op.operand(0)->type.shape[0], module_.num_ctas));
    return {};
  }

  Status check_op(const Op& op) {
    const OpInfo& row = info(op.kind);
    const int operands = static_cast<int>(op.operands.size()), results = static_cast<int>(op.results.size());
    if ((row.min_operands >= 0 && (operands < row.min_operands || operands > row.max_operands)) ||
        (row.results >= 0 && results != row.results) ||
        (row.regions >= 0 && static_cast<int>(op.regions.size()) != row.regions))
      return fail(&op, 4,
                  fmt::format("{} with {} operands, {} results and {} regions", row.mnemonic, operands, results,
                              op.regions.size()));
    for (uint32_t i = 0; i < op.operands.size(); ++i) {
      const Value* v = op.operands[i];
      if (std::find(v->uses.begin(), v->uses.end(), Use{const_cast<Op*>(&op), i}) == v->uses.end())
        return fail(&op, 3, fmt::format("operand {} does not know this use", i));
      if (!defined_.contains(v)) return fail(&op, 2, fmt::format("operand {} is not defined here", i));
      if (!v->type.is_value() && !has_trait(op.kind, 'H'))
        return fail(&op, 15, fmt::format("operand {} is {}", i, to_string(v->type)));
      if (combine_ && !in_combine(v))
        return fail(&op, 10, fmt::format("operand {} comes from outside of the combine region", i));
    }
    KILN_CHECK_OK(check_attrs(op));
    for (const Value* r : op.results) {
      if (r->op != &op || r->block) return fail(&op, 3, "a result does not know its op");
      KILN_CHECK_OK(check_value(&op, *r));
    }
    if (std::string wrong = check_op_types(op); !wrong.empty())
      return fail(&op, wrong.starts_with("attribute") ? 6 : 8, wrong);
    KILN_CHECK_OK(check_cluster(op));
    if (op.has(AttrName::kWarps) && op.kind != OpKind::kWarpSpecialize) KILN_CHECK_OK(check_joined_warps(op));
    KILN_CHECK_OK(check_fp8(op));
    KILN_CHECK_OK(check_place(op));
    KILN_CHECK_OK(check_layouts(op));
    const Op* outer = combine_;
    if (is_combine(&op)) combine_ = &op;
    for (const Block* region : op.regions) {
      if (region->parent != &op) return fail(&op, 3, "a region does not know its op");
      one_thread_ |= op.kind == OpKind::kWarpSpecialize && region != op.region(0);
      KILN_CHECK_OK(check_block(*region));
    }
    one_thread_ &= op.kind != OpKind::kWarpSpecialize;
    combine_ = outer;
    if (std::string wrong = check_region_results(op); !wrong.empty()) return fail(&op, 9, wrong);
    for (const Value* r : op.results) defined_.insert(r);
    return {};
  }

  bool in_combine(const Value* v) const {
    const Block* block = v->block ? v->block : v->op->parent;
    while (block && block->parent && block->parent != combine_) block = block->parent->parent;
    return block && block->parent;
  }

  Status check_attrs(const Op& op) {
    std::string missing;
    std::vector<std::string_view> allowed;
    each_spec(info(op.kind).attrs, [&](std::string_view attr, bool required) {
      allowed.push_back(attr);
      if (required && !op.has(*parse_attr_name(attr))) missing = attr;
    });
    if (!missing.empty()) return fail(&op, 5, fmt::format("the attribute {} is missing", missing));
    for (const auto& [attr, value] : op.attrs) {
      if (std::find(allowed.begin(), allowed.end(), name(attr)) == allowed.end())
        return fail(&op, 5, fmt::format("{} has no attribute {}", info(op.kind).mnemonic, name(attr)));
      if (!is_of_kind(attr, value))
        return fail(&op, 5, fmt::format("the attribute {} is of the wrong kind", name(attr)));
      const std::string_view mnemonic = info(op.kind).mnemonic;
      if (const Word* word = word_in(value); word && !word->stands_on(mnemonic))
        return fail(&op, 6,
                    fmt::format("{} of {} is one of {}, not '{}'", name(attr), mnemonic,
                                list_words(words_of(attr), mnemonic), word->text));
    }
    return {};
  }

  Status check_fp8(const Op& op) {
    if (moves_fp8(op.kind)) return {};
    for (const Value* v : op.operands)
      if (v->type.is_float() && is_fp8(v->type.dtype)) return fail(&op, 11, "arithmetic on fp8");
    return {};
  }

  /// ops.def says where an op may stand: the places that hold here are gone through.
  Status check_place(const Op& op) {
    const bool tiles = std::ranges::any_of(op.operands, &is_tile) || std::ranges::any_of(op.results, &is_tile);
    const bool roles = op.kind == OpKind::kWarpSpecialize;
    if (roles && (op.parent != module_.body() || !ahead_of_roles_))
      return fail(&op, 18, "warp_specialize stands once, in the kernel's own block");
    if (roles) ahead_of_roles_ = false;
    const struct {
      bool here;
      char place;
      bool fits;  // what the table does not say
      int invariant;
      std::string_view text;
    } places[] = {
        {module_.stage == Stage::kTile, 't', true, 12, "in the tile stage"},
        {module_.stage == Stage::kDistributed, 'd', true, 12, "in the distributed stage"},
        {combine_ != nullptr, 'c', !tiles, 10, "in a combine region, which holds pure scalar ops alone"},
        {ahead_of_roles_, 'r', true, 18, "before warp_specialize, where all warps come by"},
        {one_thread_, 's', !tiles && !op.has(AttrName::kWarps), 18,
         "in a further region of warp_specialize, which one thread runs"},
    };
    for (const auto& p : places)
      if (p.here && !(p.fits && stands_at(op.kind, p.place)))
        return fail(&op, p.invariant, fmt::format("{} {}", info(op.kind).mnemonic, p.text));
    return {};
  }

  Status check_layouts(const Op& op) {
    if (module_.stage == Stage::kTile) return {};
    if (!is_elementwise(&op)) return {};
    const layout::LinearLayout* shared = nullptr;
    auto agrees = [&](const Value* v) {
      if (v->type.is_scalar()) return true;
      if (!shared) shared = v->type.layout;
      return shared == v->type.layout;
    };
    if (!std::all_of(op.operands.begin(), op.operands.end(), agrees) ||
        !std::all_of(op.results.begin(), op.results.end(), agrees))
      return fail(&op, 12, "an elementwise op whose tiles have different layouts");
    return {};
  }

  const Module& module_;
  std::unordered_set<const Value*> defined_;
  const Op* combine_ = nullptr;  // the reduce or scan whose region is being checked
  bool ahead_of_roles_ = false;  // warp_specialize is still to come
  bool one_thread_ = false;      // in one of its further regions
};

}  // namespace

Status verify(const Module& module) { return Verifier(module).run(); }

}  // namespace kiln::ir
