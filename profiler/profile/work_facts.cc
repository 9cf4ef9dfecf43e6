#include "profiler/profile/work_facts.h"

namespace kiln::profiler {

int block_threads(const Work& w) { return static_cast<int>(w.block[0] * w.block[1] * w.block[2]); }

std::optional<Occupancy> theoretical_occupancy(const target::Target* target, const Work& w) {
  const int threads = block_threads(w);
  if (!target || !target->is_cuda() || w.kind != WorkKind::kKernel) return {};
  if (threads == 0 || w.registers < 0 || w.static_shared < 0 || w.dynamic_shared < 0) return {};
  return occupancy(*target, {threads, w.registers, w.static_shared + w.dynamic_shared});
}

}  // namespace kiln::profiler
