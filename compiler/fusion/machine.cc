#include "compiler/fusion/plan.h"
#include "compiler/target/target.h"
#include "compiler/target/usual_size.h"

namespace kiln::fusion {

const target::Rates& Machine::rates() const { return target::rates_of(target); }

std::optional<Machine> usual_machine(std::string_view target) {
  const target::Target* gpu = target::find(target);
  if (!gpu || !gpu->is_cuda()) return std::nullopt;
  return Machine{std::string(target), target::usual_multiprocessors(*gpu), gpu->shared_per_block};
}

}  // namespace kiln::fusion
