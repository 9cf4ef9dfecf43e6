// `@`, torch.mm and their like through OpenBLAS, against impl="reference".
#include <gtest/gtest.h>

#include <cstdlib>

#include "kiln/blas.h"
#include "repl/session/session.h"
#include "tests/unit/open_device.h"

namespace kiln::script {
namespace {

std::string run_script(const std::string& text) {
  std::string out;
  Options options;
  options.output = [&](std::string_view s) { out += s; };
  options.device = *open_device("cpu");
  Session session(std::move(options));
  Status status = session.run(text, "script.py", Mode::kFile);
  if (!status.ok()) out += render(status.error());
  return out;
}

TEST(ScriptMatmul, EveryWayToWriteIt) {
  if (!blas_libraries().back().available()) GTEST_SKIP() << blas_libraries().back().detail;
  EXPECT_EQ(run_script(R"(
import torch
def same(x, y):
    torch.testing.assert_close(x, y, rtol=1e-5, atol=1e-4)
for dtype in (torch.float32, torch.float64):
    a, b = torch.randn(17, 33, dtype=dtype), torch.randn(33, 9, dtype=dtype)
    want = matmul(a, b, impl="reference")
    same(a @ b, want); same(torch.mm(a, b), want); same(torch.matmul(a, b), want); same(a.matmul(b, impl="openblas"), want)
    same((b.T @ a.T).T, want)
    same(a[::2, ::3] @ b[::3], matmul(a[::2, ::3], b[::3], impl="reference"))
    same(a[0] @ b, want[0]); same(a @ b[:, 1], want[:, 1]); same(a[2] @ b[:, 3], want[2, 3])
    x, y = torch.randn(3, 17, 33, dtype=dtype), torch.randn(3, 33, 9, dtype=dtype)
    same(torch.bmm(x, y), matmul(x, y, impl="reference")); same(x @ b, matmul(x, b, impl="reference"))
    same(x.view(3, 1, 17, 33) @ b, matmul(x, b, impl="reference").view(3, 1, 17, 9))
    out = torch.zeros(17, 9, dtype=dtype)
    matmul(a, b, out=out); same(out, want)
print("ok")
)"),
            "ok\n");
}

TEST(ScriptMatmul, WithoutALibraryTheErrorSaysSo) {
  setenv("KILN_OPENBLAS_LIBRARY", "/no/such/libopenblas.so", 1);
  std::string out = run_script("import torch\nmatmul(torch.ones(2, 2), torch.ones(2, 2), impl=\"openblas\")\n");
  unsetenv("KILN_OPENBLAS_LIBRARY");
  EXPECT_EQ(out.find("script.py:2:1: error: no OpenBLAS: tried /no/such/libopenblas.so\n"), 0u) << out;
}

}  // namespace
}  // namespace kiln::script
