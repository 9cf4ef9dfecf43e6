#include "profiler/compare/contender.h"

#include <algorithm>

#include "compiler/target/target.h"
#include "profiler/roofline/occupancy.h"

namespace kiln::profiler {

void add_kernel(Facts& facts, const KernelInfo& info) {
  facts.kernels.push_back(info.name);
  const target::Target* target = target::find(info.target);
  if (info.registers < 0 || !target || !target->is_cuda()) return;
  facts.registers = std::max(facts.registers, info.registers);
  if (info.spill_bytes >= 0) facts.spill_bytes = std::max<int64_t>(facts.spill_bytes, 0) + info.spill_bytes;
  const Occupancy o = occupancy(*target, {.threads = (info.num_warps + info.extra_warps) * 32,
                                          .registers_per_thread = info.registers,
                                          .shared_bytes = info.shared_bytes});
  if (facts.occupancy >= 0 && facts.occupancy <= o.fraction) return;
  facts.occupancy = o.fraction;
  facts.limiter = name(o.limiter);
}

}  // namespace kiln::profiler
