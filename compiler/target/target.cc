#include "compiler/target/target.h"

#include "compiler/target/usual_size.h"

namespace kiln::target {

namespace {
constexpr Target kTargets[] = {
#define KILN_ARCH(name, kind, sm, ptx, chip, sms, block_smem, sm_smem, regs, threads, blocks, features) \
  {name, Kind::kind, sm, ptx, chip, block_smem, sm_smem, regs, threads, blocks, features},
#include "compiler/target/arch.def"
#undef KILN_ARCH
};

constexpr int kUsualMultiprocessors[] = {
#define KILN_ARCH(name, kind, sm, ptx, chip, sms, block_smem, sm_smem, regs, threads, blocks, features) sms,
#include "compiler/target/arch.def"
#undef KILN_ARCH
};
}  // namespace

const Target* find(std::string_view name) {
  for (const Target& t : kTargets)
    if (t.name == name) return &t;
  return nullptr;
}

int usual_multiprocessors(const Target& target) { return kUsualMultiprocessors[&target - kTargets]; }

std::span<const Target> all() { return kTargets; }

std::string_view example_with(Feature feature) {
  if (find(kDefaultGpu)->has(feature)) return kDefaultGpu;
  for (const Target& t : kTargets)
    if (t.has(feature)) return t.name;
  return {};
}

const Target* for_capability(int capability) {
  const Target* best = nullptr;
  for (const Target& row : kTargets) {
    if (!row.is_cuda() || row.sm > capability) continue;
    if (row.name.ends_with('a') && row.sm != capability) continue;  // code for an "a" row runs on that generation alone
    if (!best || row.sm >= best->sm) best = &row;
  }
  return best;
}

}  // namespace kiln::target
