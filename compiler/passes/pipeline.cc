// The order of passes, and the loop that runs them.
#include <chrono>

#include "compiler/analysis/verify_layouts.h"
#include "compiler/passes/canonicalize/canonicalize.h"
#include "compiler/passes/distributed/allocate_shared.h"
#include "compiler/passes/distributed/assign_layouts.h"
#include "compiler/passes/distributed/choose_mma.h"
#include "compiler/passes/distributed/hold_in_shared.h"
#include "compiler/passes/distributed/pipeline_loads.h"
#include "compiler/passes/distributed/remove_conversions.h"
#include "compiler/passes/hopper/recognize_blocks.h"
#include "compiler/passes/hopper/select_wgmma.h"
#include "compiler/passes/hopper/specialize_warps.h"
#include "compiler/passes/hopper/split_ctas.h"
#include "compiler/passes/hopper/stage_block_stores.h"
#include "compiler/passes/pass.h"
#include "compiler/passes/tile/cse.h"
#include "compiler/passes/tile/dce.h"
#include "compiler/passes/tile/expand_descriptors.h"
#include "compiler/passes/tile/fuse_fma.h"
#include "compiler/passes/tile/index_pointers.h"
#include "compiler/passes/tile/licm.h"
#include "support/diag.h"

namespace kiln::passes {

namespace {

using ir::Stage;
using target::Target;

/// A pass that does not ask about the target.
template <auto fn>
Status on_tiles(ir::Module& module, const Target&) {
  return fn(module, {});
}

// name, stage that it requires, stage that it gives, function
#define KILN_TILE_PASSES                                                                  \
  {"expand_descriptors", Stage::kTile, Stage::kTile, expand_descriptors},                 \
      {"canonicalize", Stage::kTile, Stage::kTile, on_tiles<canonicalize>},               \
      {"cse", Stage::kTile, Stage::kTile, on_tiles<cse>},                                 \
      {"licm", Stage::kTile, Stage::kTile,                                                \
       on_tiles<licm>}, /* what cse and licm brought together simplifies further */       \
      {"canonicalize", Stage::kTile, Stage::kTile, on_tiles<canonicalize>},               \
      {"cse", Stage::kTile, Stage::kTile,                                                 \
       on_tiles<cse>}, /* before fuse_fma: a dead use would keep a product from fusing */ \
      {"dce", Stage::kTile, Stage::kTile, on_tiles<dce>}, {                               \
    "fuse_fma", Stage::kTile, Stage::kTile, on_tiles<fuse_fma>                            \
  }

constexpr Pass kHost[] = {
    KILN_TILE_PASSES,
    {"index_pointers", Stage::kTile, Stage::kTile, on_tiles<index_pointers>},
    {"canonicalize", Stage::kTile, Stage::kTile, on_tiles<canonicalize>},
    {"dce", Stage::kTile, Stage::kTile, on_tiles<dce>},
};

constexpr Pass kCuda[] = {
    {"split_ctas", Stage::kTile, Stage::kTile, split_ctas},
    {"recognize_blocks", Stage::kTile, Stage::kTile, recognize_blocks},
    {"select_wgmma", Stage::kTile, Stage::kTile, select_wgmma},
    KILN_TILE_PASSES,
    {"choose_mma", Stage::kTile, Stage::kTile, choose_mma},
    {"assign_layouts", Stage::kTile, Stage::kDistributed, assign_layouts},
    {"remove_conversions", Stage::kDistributed, Stage::kDistributed, remove_conversions},
    {"pipeline_loads", Stage::kDistributed, Stage::kDistributed, pipeline_loads},
    {"hold_in_shared", Stage::kDistributed, Stage::kDistributed, hold_in_shared},
    {"specialize_warps", Stage::kDistributed, Stage::kDistributed, specialize_warps},
    {"stage_block_stores", Stage::kDistributed, Stage::kDistributed, stage_block_stores},
    {"allocate_shared", Stage::kDistributed, Stage::kDistributed, allocate_shared},
};
#undef KILN_TILE_PASSES

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

Status run(std::span<const Pass> pipeline, ir::Module& module, const Target& target, const RunOptions& options) {
  if (options.verify_each) KILN_CHECK_OK(verified(module, ""));
  for (const Pass& pass : pipeline) {
    KILN_ASSERT(module.stage == pass.requires_stage, "{} on a module of the wrong stage", pass.name);
    const auto start = std::chrono::steady_clock::now();
    KILN_CHECK_OK(pass.run(module, target));
    const std::chrono::duration<double, std::milli> elapsed = std::chrono::steady_clock::now() - start;
    KILN_ASSERT(module.stage == pass.gives_stage, "{} left the module in the wrong stage", pass.name);
    if (options.on_time) options.on_time(pass.name, elapsed.count());
    if (options.after_pass) options.after_pass(pass.name, module);
    if (options.verify_each) KILN_CHECK_OK(verified(module, pass.name));
  }
  return {};
}

}  // namespace kiln::passes
