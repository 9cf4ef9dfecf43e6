// Compiles a kernel written in the Triton language and launches it on the device that is found: a GPU, else the CPU.
#include <kiln/kernel.h>
#include <kiln/runtime.h>

#include <cstdio>

constexpr const char* kSource = R"(
import triton
import triton.language as tl

@triton.jit
def scaled_add(x, y, out, n, scale, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    tl.store(out + i, tl.load(x + i, mask=mask) * scale + tl.load(y + i, mask=mask), mask=mask)
)";

kiln::Status run() {
  const kiln::Runtime runtime;
  KILN_TRY(kiln::Device device, runtime.open_default());
  KILN_TRY(kiln::Kernel kernel, kiln::Kernel::from_source(kSource, "scaled_add.py"));
  const int64_t n = 100'000, block = 1024, shape[] = {n};
  KILN_TRY(kiln::Tensor x, kiln::Tensor::full(device, kiln::DType::kF32, shape, 3));
  KILN_TRY(kiln::Tensor y, kiln::Tensor::full(device, kiln::DType::kF32, shape, 0.5));
  KILN_TRY(kiln::Tensor out, kiln::Tensor::empty(device, kiln::DType::kF32, shape));
  const std::optional<kiln::Arg> args[] = {x, y, out, n, 2.0, block};
  KILN_CHECK_OK(kernel.launch({(n + block - 1) / block, 1, 1}, args));
  KILN_TRY(std::vector<double> sums, out.to_doubles());  // waits for the device
  std::printf("%s: 3 * 2 + 0.5 = %g\n", device.name().c_str(), sums.back());
  return {};
}

int main() {
  if (kiln::Status status = run(); !status.ok()) return std::fputs(render(status.error()).c_str(), stderr), 1;
}
