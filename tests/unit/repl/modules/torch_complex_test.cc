// Complex tensors and transforms, as PyTorch has them (torch_complex.py).
#include <gtest/gtest.h>

#include <fmt/format.h>
#include <fstream>
#include <string>
#include <vector>

#include "repl/session/session.h"
#include "tests/unit/open_device.h"

namespace kiln::script {
namespace {

constexpr const char* kChecks = R"(
def check_tensor(value, dtype, shape, wanted):
    assert str(value.dtype) == "torch." + dtype, value.dtype
    assert tuple(value.shape) == shape, value.shape
    got = value.flatten().tolist()
    most = max([abs(w) for w in wanted if abs(w) < inf] + [1])
    bound = most * (2e-6 if dtype in ("float32", "complex64") else 1e-13)
    for g, w in zip(got, wanted):
        assert g == w or abs(g - w) <= bound or (g != g and w != w), (got, wanted)
def check_value(value, wanted):
    value = str(value) if isinstance(value, (torch.dtype, torch.Size)) else value
    assert value == wanted, value
def check_error(make):
    try:
        make()
    except Exception as e:
        return
    assert False, "no error"
)";

void check_rows(bool lazy) {
  std::ifstream in(std::string(KILN_SOURCE_DIR) + "/tests/unit/repl/modules/torch_complex.txt");
  Options options;
  options.device = *open_device("cpu");
  Session session(std::move(options));
  std::string helpers = kChecks;
  std::vector<std::string> checks;
  for (std::string line; std::getline(in, line);) {
    const size_t tab = line.find('\t');
    if (tab == std::string::npos) {
      helpers += line + "\n";
      continue;
    }
    const std::string text = line.substr(0, tab), wanted = line.substr(tab + 1);
    const size_t shape = wanted.find(" ("), elements = wanted.find(") [");
    if (wanted == "error")
      checks.push_back(fmt::format("check_error(lambda: {})", text));
    else if (shape != std::string::npos && elements != std::string::npos && wanted[0] != '\'')
      checks.push_back(fmt::format("check_tensor({}, '{}', {}, {})", text, wanted.substr(0, shape),
                                   wanted.substr(shape + 1, elements - shape), wanted.substr(elements + 2)));
    else
      checks.push_back(fmt::format("check_value({}, {})", text, wanted));
  }
  ASSERT_TRUE(session.run(helpers, "helpers.py", Mode::kFile).ok());
  if (lazy) {
    ASSERT_TRUE(session.run("from torch import _kiln\n_kiln.stay_lazy(True)\n", "lazy.py", Mode::kFile).ok());
  }
  EXPECT_GT(checks.size(), 150u);
  for (const std::string& check : checks) {
    const auto value = session.evaluate(check);
    EXPECT_TRUE(value.ok()) << check << "\n" << (value.ok() ? "" : render(value.error()));
  }
}

TEST(TorchComplex, AsPyTorch) { check_rows(false); }

/// Each row is a kernel or several.
TEST(TorchComplex, AsPyTorchByKernels) { check_rows(true); }

/// Methods of complex tensors, and their forms of functions that real ones have, are no functions of torch.
TEST(TorchComplex, ShowsWhatServesAllTensors) {
  Options options;
  options.device = *open_device("cpu");
  Session session(std::move(options));
  const char* text = R"(
import torch
assert not [n for n in ("to", "type", "view", "pad", "add_") if hasattr(torch, n)]
x = torch.tensor([1.0, -2.0])
assert torch.equal(torch.real(x), x) and torch.equal(torch.conj(x), x) and torch.angle(x)[0] == 0
assert not torch.is_conj(x) and torch.isreal(x).all()
)";
  const auto ran = session.run(text, "names.py", Mode::kFile);
  EXPECT_TRUE(ran.ok()) << (ran.ok() ? "" : render(ran.error()));
}

}  // namespace
}  // namespace kiln::script
