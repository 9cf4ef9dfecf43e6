// The order of passes, and the loop that runs them.
#include <fmt/format.h>

#include <chrono>
#include <type_traits>

#include "compiler/analysis/verify_layouts.h"
#include "compiler/passes/canonicalize/canonicalize.h"
#include "compiler/passes/distributed/allocate_shared.h"
#include "compiler/passes/distributed/assign_layouts.h"
#include "compiler/passes/distributed/choose_mma.h"
#include "compiler/passes/distributed/copy_operands.h"
#include "compiler/passes/distributed/hold_in_shared.h"
#include "compiler/passes/distributed/load_early.h"
#include "compiler/passes/distributed/pipeline_loads.h"
#include "compiler/passes/distributed/prefetch_loads.h"
#include "compiler/passes/distributed/read_operands.h"
#include "compiler/passes/distributed/remove_conversions.h"
#include "compiler/passes/distributed/sink_conversions.h"
#include "compiler/passes/hopper/delay_waits.h"
#include "compiler/passes/hopper/limit_products.h"
#include "compiler/passes/hopper/recognize_blocks.h"
#include "compiler/passes/hopper/select_block_loads.h"
#include "compiler/passes/hopper/select_wgmma.h"
#include "compiler/passes/hopper/skew_products.h"
#include "compiler/passes/hopper/specialize_warps.h"
#include "compiler/passes/hopper/split_ctas.h"
#include "compiler/passes/hopper/stage_block_stores.h"
#include "compiler/passes/hopper/stage_operands.h"
#include "compiler/passes/pass.h"
#include "compiler/passes/tile/cse.h"
#include "compiler/passes/tile/dce.h"
#include "compiler/passes/tile/drop_unit_dims.h"
#include "compiler/passes/tile/expand_descriptors.h"
#include "compiler/passes/tile/fuse_fma.h"
#include "compiler/passes/tile/if_conversion.h"
#include "compiler/passes/tile/index_pointers.h"
#include "compiler/passes/tile/leave_loops.h"
#include "compiler/passes/tile/licm.h"
#include "compiler/passes/tile/loop_over_pieces.h"
#include "compiler/passes/tile/narrow_halves.h"
#include "compiler/passes/tile/place_grid_dependencies.h"
#include "compiler/passes/tile/prefetch_lines.h"
#include "support/diag.h"

namespace kiln::passes {

namespace {

using target::Target;

template <auto fn>
Status on_target(ir::Module& module, Context& context) {
  if constexpr (std::is_invocable_v<decltype(fn), ir::Module&, const Target&, std::span<const Role>, Remarks*>)
    return fn(module, context.target, context.roles, context.remarks);
  else if constexpr (std::is_invocable_v<decltype(fn), ir::Module&, const Target&, Remarks*>)
    return fn(module, context.target, context.remarks);
  else
    return fn(module, context.target);
}

/// A pass that does not ask about the target.
template <auto fn>
Status on_tiles(ir::Module& module, Context&) {
  return fn(module, {});
}

Status guard(ir::Module& module, Context& context) {
  context.guards = guard_accesses(module);
  return {};
}
Status fuse(ir::Module& module, Context& context) { return context.enable_fp_fusion ? fuse_fma(module) : Status(); }
Status wait_for_launches(ir::Module& module, Context&) {
  place_grid_dependencies(module);
  return {};
}
Status convert_ifs(ir::Module& module, Context&) { return if_conversion(module); }
Status convert_late(ir::Module& module, Context&) { return sink_conversions(module); }
Status load_before_loops(ir::Module& module, Context&) { return load_early(module); }
Status lay_out(ir::Module& module, Context& context) { return assign_layouts(module, context.remarks); }
bool guards_accesses(const Context& context) { return context.guard_accesses; }
bool launches_early(const Context& context) { return context.launch_pdl; }

// clang-format off
//   name                   needs, forbids, gives, destroys, function [, condition]
#define KILN_TILE_PASSES                                                                                            \
  {"canonicalize",          kNothing, kLayouts, kNothing, kDeadRemoved, on_tiles<canonicalize>},                   \
  {"cse",                   kNothing, kLayouts, kNothing, kDeadRemoved, on_tiles<cse>},                            \
  {"licm",                  kNothing, kLayouts, kNothing, kNothing, on_tiles<licm>},                               \
  {"leave_loops",           kNothing, kLayouts, kNothing, kDeadRemoved, on_tiles<leave_loops>},                    \
  /* what cse and licm brought together simplifies further */                                                       \
  {"canonicalize",          kNothing, kLayouts, kNothing, kDeadRemoved, on_tiles<canonicalize>},                   \
  {"cse",                   kNothing, kLayouts, kNothing, kDeadRemoved, on_tiles<cse>},                            \
  {"dce",                   kNothing, kLayouts, kDeadRemoved, kNothing, on_tiles<dce>},                            \
  /* a dead use would keep a product from fusing */                                                                 \
  {"fuse_fma",              kDeadRemoved, kLayouts, kFmaFused, kDeadRemoved, fuse}
#define KILN_FIRST_PASSES                                                                                           \
  {"guard_accesses",        kNothing, kLayouts | kBlocksRecognized | kDescriptorsExpanded, kGuarded, kNothing,      \
                            guard, guards_accesses}

constexpr Pass kHost[] = {
  KILN_FIRST_PASSES,
  {"expand_descriptors",    kNothing, kLayouts, kDescriptorsExpanded, kDeadRemoved, on_target<expand_descriptors>},
  KILN_TILE_PASSES,
  {"index_pointers",        kDescriptorsExpanded, kLayouts, kNothing, kDeadRemoved, on_tiles<index_pointers>},
  {"canonicalize",          kNothing, kLayouts, kNothing, kDeadRemoved, on_tiles<canonicalize>},
  {"dce",                   kNothing, kLayouts, kDeadRemoved, kNothing, on_tiles<dce>},
};

constexpr Pass kCuda[] = {
  KILN_FIRST_PASSES,
  {"place_grid_dependencies", kNothing, kLayouts | kWgmmaSelected, kGridDependencies, kNothing, wait_for_launches,
                            launches_early},
  {"drop_unit_dims",        kNothing, kLayouts | kBlocksRecognized, kNothing, kNothing, on_tiles<drop_unit_dims>},
  /* how scalars are made decides which pointers are blocks */
  {"simplify_scalars",      kNothing, kLayouts, kNothing, kDeadRemoved, on_tiles<simplify_scalars>},
  {"split_ctas",            kNothing, kLayouts | kBlocksRecognized, kCtasSplit, kDeadRemoved, on_target<split_ctas>},
  {"recognize_blocks",      kCtasSplit, kLayouts | kWgmmaSelected, kBlocksRecognized, kDeadRemoved,
                            on_target<recognize_blocks>},
  {"select_wgmma",          kBlocksRecognized, kLayouts | kDescriptorsExpanded, kWgmmaSelected, kDeadRemoved,
                            on_target<select_wgmma>},
  {"select_block_loads",    kWgmmaSelected, kLayouts | kDescriptorsExpanded, kNothing, kNothing,
                            on_target<select_block_loads>},
  {"limit_products",        kWgmmaSelected, kLayouts | kDescriptorsExpanded, kNothing, kNothing,
                            on_target<limit_products>},
  {"expand_descriptors",    kWgmmaSelected, kLayouts, kDescriptorsExpanded, kDeadRemoved,
                            on_target<expand_descriptors>},
  KILN_TILE_PASSES,
  {"narrow_halves",         kFmaFused, kLayouts, kNothing, kDeadRemoved, on_target<narrow_halves>},
  {"index_integers",        kDescriptorsExpanded, kLayouts, kNothing, kDeadRemoved, on_tiles<index_integers>},
  {"dce",                   kNothing, kLayouts, kDeadRemoved, kNothing, on_tiles<dce>},
  {"loop_over_pieces",      kDescriptorsExpanded, kLayouts, kNothing, kDeadRemoved, on_target<loop_over_pieces>},
  {"dce",                   kNothing, kLayouts, kDeadRemoved, kNothing, on_tiles<dce>},
  {"if_conversion",         kNothing, kLayouts, kNothing, kDeadRemoved, convert_ifs},
  {"prefetch_lines",        kDescriptorsExpanded, kLayouts, kNothing, kNothing, on_target<prefetch_lines>},
  {"choose_mma",            kWgmmaSelected, kLayouts, kMmaChosen, kDeadRemoved, on_target<choose_mma>},
  {"assign_layouts",        kMmaChosen | kDescriptorsExpanded, kLayouts, kLayouts, kDeadRemoved,
                            lay_out},
  {"remove_conversions",    kLayouts, kLoadsPipelined, kNothing, kNothing, on_target<remove_conversions>},
  {"sink_conversions",      kLayouts, kLoadsPipelined, kNothing, kNothing, convert_late},
  {"load_early",            kLayouts, kLoadsPipelined | kWarpsSpecialized, kNothing, kDeadRemoved, load_before_loops},
  {"pipeline_loads",        kLayouts | kMmaChosen, kWarpsSpecialized, kLoadsPipelined, kSharedPlaced,
                            on_target<pipeline_loads>},
  {"prefetch_loads",        kLayouts | kLoadsPipelined, kWarpsSpecialized, kNothing, kNothing,
                            on_target<prefetch_loads>},
  {"read_operands",         kLayouts | kLoadsPipelined, kWarpsSpecialized, kNothing, kSharedPlaced,
                            on_target<read_operands>},
  {"copy_operands",         kLayouts | kLoadsPipelined, kWarpsSpecialized, kNothing, kSharedPlaced,
                            on_target<copy_operands>},
  // What is held takes of shared memory what the rings leave.
  {"hold_in_shared",        kLayouts | kLoadsPipelined, kWarpsSpecialized, kNothing, kSharedPlaced,
                            on_target<hold_in_shared>},
  {"stage_operands",        kLayouts | kLoadsPipelined, kWarpsSpecialized, kDeadRemoved, kSharedPlaced,
                            on_target<stage_operands>},
  {"skew_products",         kLayouts | kWgmmaSelected, kWarpsSpecialized, kNothing, kSharedPlaced,
                            on_target<skew_products>},
  {"specialize_warps",      kLayouts | kWgmmaSelected | kCtasSplit, kNothing, kWarpsSpecialized, kSharedPlaced,
                            on_target<specialize_warps>},
  {"delay_waits",           kLayouts | kWarpsSpecialized, kStoresStaged, kNothing, kSharedPlaced,
                            on_target<delay_waits>},
  {"stage_block_stores",    kLayouts | kWarpsSpecialized, kNothing, kStoresStaged, kSharedPlaced,
                            on_target<stage_block_stores>},
  {"allocate_shared",       kLayouts, kNothing, kSharedPlaced, kNothing, on_target<allocate_shared>},
};
// clang-format on
#undef KILN_TILE_PASSES
#undef KILN_FIRST_PASSES

Status verified(const ir::Module& module, std::string_view after) {
  Status s = ir::verify(module);
  if (s.ok()) s = analysis::verify_layouts(module);
  if (s.ok()) return s;
  return with_note(std::move(s.error()),
                   after.empty() ? "before the first pass" : fmt::format("after the pass {}", after));
}

}  // namespace

std::span<const Pass> pipeline(target::Kind kind) {
  switch (kind) {
    case target::Kind::kHost:
      return kHost;
    case target::Kind::kCuda:
      return kCuda;
  }
  KILN_UNREACHABLE("target kind");
}

Properties lowering_needs(target::Kind kind) {
  switch (kind) {
    case target::Kind::kHost:
      return kDescriptorsExpanded;
    case target::Kind::kCuda:
      return kLayouts | kMmaChosen | kDescriptorsExpanded | kWarpsSpecialized | kStoresStaged | kSharedPlaced;
  }
  KILN_UNREACHABLE("target kind");
}

Status run(std::span<const Pass> pipeline, ir::Module& module, Context& context, const RunOptions& options) {
  if (options.verify_each) KILN_CHECK_OK(verified(module, ""));
  if (module.stage == ir::Stage::kDistributed) context.holds |= kLayouts;
  for (const Pass& pass : pipeline) {
    if (pass.when && !pass.when(context)) continue;
    if (const Properties missing = pass.needs & ~context.holds)
      return error(ErrorKind::kInternal, "the pass {} needs what no pass before it gives: {}", pass.name,
                   to_string(missing));
    if (const Properties late = pass.forbids & context.holds)
      return error(ErrorKind::kInternal, "the pass {} comes too late: {}", pass.name, to_string(late));
    const auto start = std::chrono::steady_clock::now();
    KILN_CHECK_OK(pass.run(module, context));
    const std::chrono::duration<double, std::milli> elapsed = std::chrono::steady_clock::now() - start;
    context.holds = (context.holds & ~pass.destroys) | pass.gives;
    if (options.on_time) options.on_time(pass.name, elapsed.count());
    if (options.after_pass) options.after_pass(pass.name, module);
    if (options.verify_each) KILN_CHECK_OK(verified(module, pass.name));
    const Properties layouts = module.stage == ir::Stage::kDistributed ? kLayouts : kNothing;
    if (const Properties wrong = contradicted(module, pass.gives) | ((context.holds & kLayouts) ^ layouts))
      return error(ErrorKind::kInternal, "after the pass {} this does not hold: {}", pass.name, to_string(wrong));
  }
  return {};
}

Status run(std::span<const Pass> pipeline, ir::Module& module, const Target& target, const RunOptions& options) {
  Context context{target};
  return run(pipeline, module, context, options);
}

}  // namespace kiln::passes
