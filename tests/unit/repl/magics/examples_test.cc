// The examples of `%help NAME` run as they stand there.
#include <gtest/gtest.h>

#include <filesystem>

#include "repl/magics/magic_options.h"
#include "repl/magics/magics.h"
#include "support/files.h"
#include "support/process.h"

namespace kiln::repl {
namespace {

// The names that the examples speak of.
constexpr const char* kSetup = R"(
import torch, triton, triton.language as tl

@triton.jit
def add_kernel(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n) + tl.load(y + i, mask=i < n), mask=i < n)

@triton.jit
def matmul_kernel(a, b, c, N, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    k = tl.arange(0, 32)
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for _ in range(0, N, 32):
        acc += tl.dot(tl.load(a + m[:, None] * N + k), tl.load(b + k[:, None] * N + n))
        k += 32
    tl.store(c + m[:, None] * N + n, acc)

x, y, out = torch.randn(320, 320), torch.randn(320, 320), torch.empty(320, 320)
w, b, bias, c = torch.randn(320, 320), torch.randn(320, 320), torch.randn(320), torch.empty(320, 320)
a = torch.randn(320, 320)
reference = torch.softmax(x, -1)
add_kernel[(98,)](x, y, out, 100_000, BLOCK=1024)
matmul_kernel[(5, 5)](a, b, c, 320, BLOCK_M=64, BLOCK_N=64)

def step(): return torch.softmax(x @ w, -1).sum().item()

%set budget 50ms
)";

TEST(Examples, Run) {
  const ScratchFolder scratch;
  std::filesystem::create_directory(scratch.path + "/kernels");  // for %cd ~/kernels
  const std::string bench = "import sys\nassert sys.argv[1:] == ['--size', '4096']\n";
  ASSERT_TRUE(write_file_atomic(scratch.path + "/bench.py", bench).ok());
  auto run = [&](const std::string& lines) {
    ASSERT_TRUE(write_file_atomic(scratch.path + "/example.py", kSetup + lines + "\n").ok());
    const auto ran =
        run_process({"/usr/bin/env", "-C", scratch.path, "HOME=" + scratch.path, "XDG_CONFIG_HOME=" + scratch.path,
                     "EDITOR=sed -i s/num_warps=[0-9]*/num_warps=8/", KILN_BINARY, "--device", "cpu", "example.py"});
    ASSERT_TRUE(ran.ok());
    EXPECT_EQ(ran->status, 0) << lines << "\n" << ran->out;
  };
  run("%save monday");
  for (const Magic& m : magics())
    for (const MagicExample& e : magic_examples(m.name)) {
      std::string line(e.line);
#ifdef __SANITIZE_ADDRESS__  // which refuses how CUPTI opens its libraries (RTLD_DEEPBIND)
      if (line.starts_with("%counters") || line.starts_with("%doctor")) continue;
#endif
      // How long they measure is not what they show.
      for (const std::string_view budget : {" budget=2", " budget=5s"})
        if (const size_t at = line.find(budget); at != std::string::npos) line.replace(at, budget.size(), "");
      run(line);
    }
}

}  // namespace
}  // namespace kiln::repl
