// launch_bench: the launch path alone. With KILN_CUDA_LIBRARY set to the tests' fake driver it measures Kiln's own
// share on any machine.
#include <cstdio>

#include "bench/launch/launch_bench.h"

int main() {
  auto status = kiln::bench::run_launch_bench();
  if (status.ok()) return 0;
  std::fputs(kiln::render(status.error()).c_str(), stderr);
  return 1;
}
