#include "compiler/lower/shared/launch_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <span>
#include <unordered_set>
#include <vector>

#include "compiler/analysis/host_expression.h"
#include "compiler/layout/algebra.h"
#include "compiler/lower/shared/math.h"
#include "compiler/target/occupancy.h"
#include "support/diag.h"

namespace kiln::lower {

using ir::AttrName;
using ir::Op;
using ir::OpKind;

namespace {

constexpr int kMaxWarps = 32, kWarpGroup = 4, kLanes = 32;
constexpr int kMostGroups = kHardwareBarriers - kFirstGroupBarrier;

class Planner {
 public:
  Planner(const ir::Module& module, const target::Target& target) : module_(module), target_(target) {}

  Result<LaunchPlan> run() {
    KILN_CHECK_OK(block(*module_.body()));
    return std::move(plan_);
  }

 private:
  Status block(const ir::Block& b) {
    std::vector<int> in_flight;  // registers of the products that are not waited for yet
    for (const Op* op : b) {
      KILN_CHECK_OK(visit(*op));
      if (op->kind == OpKind::kWgmma) in_flight.push_back(registers_of_product(*op));
      const int around = carried_;
      if (op->kind == OpKind::kFor || op->kind == OpKind::kWhile) carried_ += registers_carried(*op);
      if (op->kind == OpKind::kWgmmaWait && op->int_attr(AttrName::kCount) < std::ssize(in_flight))
        in_flight.erase(in_flight.begin(), in_flight.end() - op->int_attr(AttrName::kCount));
      if (!in_flight.empty())
        plan_.wgmma_registers =
            std::max(plan_.wgmma_registers, std::accumulate(in_flight.begin(), in_flight.end(), carried_));
      for (const ir::Block* region : op->regions) KILN_CHECK_OK(block(*region));
      carried_ = around;
    }
    return {};
  }

  Status needs(const Op& op, target::Feature feature, std::string_view what) const {
    if (target_.has(feature)) return {};
    return with_note(error_at(op.range, ErrorKind::kUnsupported, "{} has no {}", target_.name, what),
                     fmt::format("help: compile for {}", target::example_with(feature)));
  }

  Status visit(const Op& op) {
    switch (op.kind) {
      case OpKind::kWarpSpecialize:
        return warp_specialize(op);
      case OpKind::kTmaLoad:
        return copies(op, op.operand(2), op.operand(0)->type);
      case OpKind::kTmaStore:
        return copies(op, op.operand(0), op.operand(1)->type);
      case OpKind::kMbarrierInit:
      case OpKind::kFenceAsync:
        return needs(op, target::kTma, "mbarriers with transactions");
      case OpKind::kWgmma: {
        KILN_CHECK_OK(needs(op, target::kWgmma, "wgmma"));
        plan_.uses_wgmma = true;
        plan_.instruction_registers =
            std::max(plan_.instruction_registers, registers_of_instruction(op.result()->type));
        return {};
      }
      default:  // needs nothing of the launch
        if (is_math_op(op.kind) && op.result()->type.is_tile()) plan_.has_math = true;
        return {};
    }
  }

  static int registers_of(const ir::Type& t) {
    return t.is_tile() ? t.layout->num_registers() * t.element_bits() / 32 : 0;
  }
  /// Accumulators and a first operand in registers are live at the same time, beside what the loops around them carry;
  /// they decide whether setmaxnreg pays off.
  static int registers_of_product(const Op& op) {
    const ir::Value* a = op.operand(0);
    return (a->op ? registers_of(a->type) : 0) + (is_counted(op.operand(2)) ? 0 : registers_of(op.result()->type));
  }
  /// Whether a sum's registers are those of a value that a loop carries, or of a product before.
  static bool is_counted(const ir::Value* sum) {
    std::vector<const ir::Value*> work = {sum};
    std::unordered_set<const ir::Value*> seen;
    while (!work.empty()) {
      const ir::Value* v = work.back();
      work.pop_back();
      if (v->type.shape.rank < 2 || !seen.insert(v).second) continue;
      if (!v->op || v->op->kind == OpKind::kWgmma || v->op->kind == OpKind::kWgmmaWait) return true;
      if (ir::is_pure(v->op) && ir::is_elementwise(v->op))
        work.insert(work.end(), v->op->operands.begin(), v->op->operands.end());
    }
    return false;
  }
  /// Of tiles, beside those that a loop around carries.
  static int registers_carried(const Op& loop) {
    int registers = 0;
    for (const ir::Value* first : std::span(loop.operands).subspan(loop.kind == OpKind::kFor ? 3 : 0))
      if (first->op && first->type.shape.rank > 1) registers += registers_of(first->type);
    return registers;
  }

  /// Of a sum: each step of 64 rows that a thread's registers take is an instruction of its own.
  static int registers_of_instruction(const ir::Type& sum) {
    constexpr int kRows = 64;
    int registers = sum.layout->num_registers() * sum.element_bits() / 32;
    for (const layout::Coord& step : sum.layout->bases(layout::In::kRegister))
      if (step[0] >= kRows) registers /= 2;
    return registers;
  }

  Status warp_specialize(const Op& op) {
    KILN_CHECK_OK(needs(op, target::kTma, "mbarriers with transactions"));
    if (plan_.extra_warps || op.parent != module_.body())
      return error_at(op.range, ErrorKind::kUnsupported,
                      "warp_specialize must stand once, in the kernel's own block, on {}", target_.name);
    plan_.extra_warps = static_cast<int>(op.int_attr(AttrName::kWarps));
    if (plan_.extra_warps < 1 || module_.num_warps + plan_.extra_warps > kMaxWarps)
      return error_at(op.range, ErrorKind::kUnsupported, "{} warps and {} more, when a program has {} at most",
                      module_.num_warps, plan_.extra_warps, kMaxWarps);
    return {};
  }

  Diagnostic not_boxed(const Op& op, const ir::Type& shared) const {
    return with_note(error_at(op.range, ErrorKind::kUnsupported,
                              "no TMA box fills {}: its last dimension must lie side by side, in rows of 16 bytes or "
                              "of one swizzle",
                              ir::to_string(shared)),
                     "the layout is " + layout::to_string(*shared.layout));
  }

  Status copies(const Op& op, const ir::Value* descriptor, const ir::Type& shared) {
    KILN_CHECK_OK(needs(op, target::kTma, "tensor memory accelerator"));
    if (descriptor->type.shape.rank > kTensorMapDims)
      return error_at(op.range, ErrorKind::kUnsupported, "TMA copies blocks of up to {} dimensions, not {}",
                      kTensorMapDims, int{descriptor->type.shape.rank});
    LaunchPlan::Copies copies;
    copies.groups =
        op.flag(AttrName::kCluster) ? module_.num_ctas : module_.num_warps / ir::joined_warps(op, module_.num_warps);
    copies.group_rows = static_cast<int>(shared.shape[0]) / copies.groups;
    auto boxes =
        layout::plan_tma(*shared.layout, size_of(shared.dtype), std::min(copies.group_rows, layout::kMaxTmaBox));
    if (!boxes) return not_boxed(op, shared);
    copies.boxes = std::move(*boxes);
    if (copies.groups > 1) KILN_CHECK_OK(keep_first_group(op, shared, copies));
    // Dimensions of 1 that the block lacks.
    std::vector<int32_t> box(static_cast<size_t>(descriptor->type.shape.rank - shared.shape.rank), 1);
    box.insert(box.end(), copies.boxes.box.begin(), copies.boxes.box.end());
    const Op& maker = descriptor_of(descriptor);
    copies.on_device = maker.flag(AttrName::kOnDevice) && op.kind == OpKind::kTmaLoad;
    if (copies.on_device) {
      copies.tensor_map = number_of(plan_.device_maps, {&maker, std::move(box), copies.boxes.swizzle});
    } else {
      KILN_TRY(TensorMapRecipe recipe, describe(op, maker));
      recipe.box = std::move(box);
      recipe.swizzle = copies.boxes.swizzle;
      recipe.stored = op.kind == OpKind::kTmaStore;
      copies.tensor_map = number_of(plan_.tensor_maps, std::move(recipe));
    }
    plan_.copies.emplace(&op, std::move(copies));
    return {};
  }

  /// Equal maps are one: loads of one tensor with one box need no second hidden parameter.
  template <class Map>
  static int number_of(std::vector<Map>& maps, Map map) {
    const auto known = std::find(maps.begin(), maps.end(), map);
    const auto number = static_cast<int>(known - maps.begin());
    if (known == maps.end()) maps.push_back(std::move(map));
    return number;
  }

  /// Leaves the boxes of the first group's rows, when those of each other group lie in equal steps behind them.
  Status keep_first_group(const Op& op, const ir::Type& shared, LaunchPlan::Copies& copies) const {
    if (op.kind == OpKind::kTmaStore && copies.groups > kMostGroups)
      return error_at(op.range, ErrorKind::kUnsupported, "{} groups of warps, and there are barriers for {}",
                      copies.groups, kMostGroups);
    std::vector<layout::TmaPlan::Copy> first;
    for (const layout::TmaPlan::Copy& c : copies.boxes.copies)
      if (c.at[0] < copies.group_rows) first.push_back(c);
    for (const layout::TmaPlan::Copy& c : copies.boxes.copies) {
      const int group = static_cast<int>(c.at[0]) / copies.group_rows;
      layout::Coord at = c.at;
      at[0] -= group * copies.group_rows;
      const auto same = std::find_if(first.begin(), first.end(), [&](const auto& f) { return f.at == at; });
      if (group == 1) copies.group_bytes = c.offset - same->offset;
      if (c.offset != same->offset + group * copies.group_bytes) return not_boxed(op, shared);
    }
    copies.boxes.copies = std::move(first);
    return {};
  }

  Result<TensorMapRecipe> describe(const Op& use, const Op& make) const {
    TensorMapRecipe recipe;
    const ir::Type& type = make.result()->type;
    recipe.dtype = type.dtype;
    const int rank = type.shape.rank;
    auto known = [&](int operand) -> Result<HostExpression> {
      if (auto e = analysis::host_expression(make.operand(operand))) return std::move(*e);
      return with_note(error_at(use.range, ErrorKind::kUnsupported,
                                "this tensor is known only while the kernel runs, and TMA takes what the host can "
                                "compute from the kernel's arguments"),
                       "operand " + std::to_string(operand) + " of: " + ir::print(make));
    };
    KILN_TRY(recipe.base, known(0));
    for (int i = 0; i < rank; ++i) {
      KILN_TRY(recipe.sizes.emplace_back(), known(1 + i));
      KILN_TRY(recipe.strides.emplace_back(), known(1 + rank + i));
    }
    // The name is used in launch errors, where a descriptor's address is not aligned.
    recipe.name = "the tensor";
    for (const HostExpression::Step& s : recipe.base.steps)
      if (s.op == HostOp::kParam && s.type == DType::kU64)
        recipe.name = module_.params[static_cast<size_t>(s.number)].name;
    return recipe;
  }

  const ir::Module& module_;
  const target::Target& target_;
  LaunchPlan plan_;
  int carried_ = 0;  // registers of what the loops around carry
};

RegisterShares register_shares(const LaunchPlan& plan, const ir::Module& module, const target::Target& target,
                               int most_blocks) {
  // ptxas refuses an instruction (C7602) whose registers and so many more are not in the even share.
  constexpr int kBesideInstruction = 32;
  const int extra = plan.extra_warps, own = module.num_warps;
  // setmaxnreg is for whole groups of four warps.
  if (!plan.uses_wgmma || extra == 0 || extra % kWarpGroup || own % kWarpGroup) return {};
  const target::BlockResources block{.threads = (own + extra) * kLanes, .shared_bytes = module.shared_bytes};
  auto even = [&](int blocks) {
    return target::registers_for(target, block, blocks) / target::kMovedRegisters * target::kMovedRegisters;
  };
  auto share = [&](int blocks, int given) { return target::registers_moved(target, block, own, given, blocks); };
  // What addresses, descriptors and an epilogue's temporaries take; of functions, those grow with what they are of
  // (attention with sums of 160 registers spills with 56 more, with sums of 80 not with 52).
  const int needed = plan.wgmma_registers + 40 + (plan.has_math ? plan.wgmma_registers * 3 / 20 : 0);
  const int fit = std::min(target::occupancy(target, block).by_shared, most_blocks);
  for (int blocks = fit; blocks > 1; --blocks) {
    if (even(blocks) < plan.instruction_registers + kBesideInstruction) continue;
    for (int given : {target::kLeft, target::kLeastLeft})
      if (share(blocks, given) >= needed) return {given, share(blocks, given), blocks};
  }
  // Up to 255 registers a thread has anyhow.
  if (most_blocks < 1 || even(1) + target::kMovedRegisters > 255 || needed <= even(1) || even(1) <= target::kLeft)
    return {};
  return {target::kLeft, share(1, target::kLeft), 1};
}

}  // namespace

Result<LaunchPlan> plan_launch(const ir::Module& module, const target::Target& target, int most_blocks) {
  KILN_TRY(LaunchPlan plan, Planner(module, target).run());
  plan.registers = register_shares(plan, module, target, most_blocks);
  return plan;
}

const ir::Op& descriptor_of(const ir::Value* descriptor) {
  KILN_ASSERT(descriptor->op && descriptor->op->kind == OpKind::kMakeDescriptor);
  return *descriptor->op;
}

}  // namespace kiln::lower
