// launch_bench: the launch path alone, of the GPU that is found and of the CPU.
#include <cstdio>

#include "bench/launch/launch_bench.h"

int main() {
  auto status = kiln::bench::run_launch_bench();
  if (status.ok()) return 0;
  std::fputs(kiln::render(status.error()).c_str(), stderr);
  return 1;
}
