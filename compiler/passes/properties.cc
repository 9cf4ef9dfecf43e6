#include "compiler/passes/properties.h"

#include <algorithm>

#include "compiler/passes/hopper/select_wgmma.h"

namespace kiln::passes {

namespace {

using ir::AttrName;
using ir::Op;
using ir::OpKind;

template <class Fn>
bool no_op(const ir::Module& module, Fn&& wrong) {
  for (const Op* op : *module.body())
    if (ir::any_nested(op, wrong)) return false;
  return true;
}

bool has_no_dead_ops(const ir::Module& module) {
  return no_op(module, [](const Op* op) {
    return ir::is_pure(op) && std::ranges::all_of(op->results, [](const ir::Value* v) { return v->uses.empty(); });
  });
}

bool products_are_chosen(const ir::Module& module) {
  return no_op(module, [](const Op* op) { return op->kind == OpKind::kDot && !op->has(AttrName::kMma); });
}

bool is_distributed(const ir::Module& module) { return module.stage == ir::Stage::kDistributed; }

bool warps_are_specialized(const ir::Module& module) {
  return no_op(module, [](const Op* op) { return is_wgmma(op) || op->kind == OpKind::kDescriptorLoad; });
}

bool stores_are_staged(const ir::Module& module) {
  return no_op(module, [](const Op* op) { return op->kind == OpKind::kDescriptorStore; });
}

bool shared_is_placed(const ir::Module& module) {
  return no_op(module,
               [](const Op* op) { return op->kind == OpKind::kSharedAlloc && !op->has(AttrName::kSharedOffset); });
}

struct Row {
  Property property;
  std::string_view text;
  bool (*check)(const ir::Module&);
};
constexpr Row kRows[] = {
#define KILN_PROPERTY(e, text, check) {k##e, text, check},
#include "compiler/passes/properties.def"
};

}  // namespace

std::string to_string(Properties set) {
  std::string text;
  for (const Row& row : kRows)
    if (set & row.property) text += (text.empty() ? "" : "; ") + std::string(row.text);
  return text;
}

Properties contradicted(const ir::Module& module, Properties set) {
  Properties wrong = kNothing;
  for (const Row& row : kRows)
    if ((set & row.property) && row.check && !row.check(module)) wrong |= row.property;
  return wrong;
}

}  // namespace kiln::passes
