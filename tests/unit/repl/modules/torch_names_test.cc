// The names of torch against what PyTorch gave for them (torch_names.py, torch_library.py), on the host and as kernels.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <fstream>
#include <sstream>

#include "repl/session/session.h"
#include "tests/docs_table.h"
#include "tests/unit/open_device.h"

namespace kiln::script {
namespace {

const std::string kFolder = std::string(KILN_SOURCE_DIR) + "/tests/unit/repl/modules/";

std::string quoted(const std::string& text) {
  std::string out = "'";
  for (char c : text) out += c == '\'' ? "\\'" : std::string(1, c);
  return out + "'";
}

/// Runs a script on the CPU; what it prints is added to `out`.
Status run(std::string_view script, const char* file, std::string* out) {
  Options options;
  options.output = [out](std::string_view s) { *out += s; };
  options.device = *open_device("cpu");
  Session session(std::move(options));
  return session.run(std::string(script), file, Mode::kFile);
}

/// What differs: a line each.
std::string differences(const char* rows_file, size_t least, bool lazy, size_t step) {
  std::stringstream check;
  check << std::ifstream(kFolder + "torch_names_check.py").rdbuf();
  std::string variables, script = check.str();
  if (lazy) script += "torch._kiln.stay_lazy(True)\n";
  std::ifstream file(kFolder + rows_file);
  size_t rows = 0;
  for (std::string line; std::getline(file, line);) {
    const size_t tab = line.find('\t');
    if (tab == std::string::npos) {
      if (line[0] != '#') variables += "    " + line + "\n";
      continue;
    }
    if (rows++ % step != 0) continue;
    const std::string text = line.substr(0, tab), wanted = line.substr(tab + 1);
    script +=
        fmt::format("def one():\n{}    return {}\ncheck({}, one, (lambda inf, nan: {})(float('inf'), float('nan')))\n",
                    variables, text, quoted(text), wanted == "error" ? "'error'" : wanted);
  }
  EXPECT_GT(rows, least);
  std::string out;
  Status status = run(script, "names.py", &out);
  if (!status.ok()) out += render(status.error());
  return out;
}

TEST(TorchNames, OnTheHost) { EXPECT_EQ(differences("torch_names.txt", 1000, false, 1), ""); }
TEST(TorchNames, AsKernels) { EXPECT_EQ(differences("torch_names.txt", 1000, true, 3), ""); }
TEST(TorchLibrary, OnTheHost) { EXPECT_EQ(differences("torch_library.txt", 30, false, 1), ""); }
TEST(TorchLibrary, AsKernels) { EXPECT_EQ(differences("torch_library.txt", 30, true, 5), ""); }

/// Where each name is computed, as its rows show it: part of an expression, in memory at once, by kernels of its own,
/// or on the host. One row that is on the host, or else one that runs kernels, decides for a name.
TEST(TorchNames, DocsTable) {
  std::string variables, script = R"(
import torch
import torch.nn.functional as F
from torch import nn
torch._kiln.stay_lazy(True)
found = {}
def flat(v):
    return [v] if isinstance(v, torch.Tensor) else [t for each in v for t in flat(each)] if isinstance(v, (list, tuple)) else []
def note(name, make):
    reads, runs = torch._kiln.host_reads(), torch._kiln.kernel_runs()
    v = flat(make())
    rank = 0 if torch._kiln.host_reads() > reads else 1 if torch._kiln.kernel_runs() > runs else 2 if any(t.is_lazy() for t in v) else 3
    if v:
        found[name] = min(rank, found.get(name, 3))
)";
  auto is_word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; };
  for (const char* rows_file : {"torch_names.txt", "torch_library.txt"}) {
    variables.clear();
    std::ifstream file(kFolder + rows_file);
    for (std::string line; std::getline(file, line);) {
      const size_t tab = line.find('\t');
      if (tab == std::string::npos) {
        if (line[0] != '#') variables += "    " + line + "\n";
        continue;
      }
      const std::string text = line.substr(0, tab);
      // One call alone, whose arguments are no calls that sort, and where() with its two cases.
      auto has = [&](std::string_view part) { return text.find(part) != std::string::npos; };
      const size_t open = text.find('(');
      size_t close = open;
      for (int depth = 0; close < text.size(); ++close) {
        depth += (text[close] == '(') - (text[close] == ')');
        if (depth == 0) break;
      }
      if (line.substr(tab + 1) == "error" || open == std::string::npos || open == 0 || close + 1 != text.size() ||
          text.starts_with("put(") || text.starts_with("D.") || text.starts_with("nn.") || has(".argsort(") ||
          text.find(".sort(", open) != std::string::npos || (text.starts_with("torch.where(") && !has(",")))
        continue;
      // torch.NAME(…), F.NAME(…) or x.NAME(…)
      const bool module = text.starts_with("torch.") || text.starts_with("F.");
      const size_t dot = module ? text.find('.') : text.find_last_of('.', text.find('('));
      if (dot == std::string::npos || !is_word(text[dot + 1]) ||
          std::isdigit(static_cast<unsigned char>(text[dot + 1])))
        continue;
      size_t end = dot + 1;
      while (end < text.size() && is_word(text[end])) ++end;
      if (end == text.size() || text[end] != '(') continue;
      const std::string name = (text.starts_with("F.") ? "F."
                                : module               ? "torch."
                                                       : "Tensor.") +
                               text.substr(dot + 1, end - dot - 1);
      script += fmt::format("def one():\n{}    return {}\nnote({}, one)\n", variables, text, quoted(name));
    }
  }
  script += R"(
for title, kind in (("part of the expression", 2), ("at once, in memory or as a view", 3), ("at once, by kernels", 1), ("on the host", 0)):
    for module in ("torch", "Tensor", "F"):
        names = sorted(name.split(".")[1] for name, k in found.items() if k == kind and name.split(".")[0] == module)
        print(f"| {title} | `{module}` | " + " ".join(names) + " |")
)";
  std::string out = "| computed | of | names |\n|---|---|---|\n";
  Status status = run(script, "names.py", &out);
  ASSERT_TRUE(status.ok()) << render(status.error());
  kiln::testing::check_docs_table("torch.md", "names", out);
}

/// A script beside this file that compares two ways to compute the same, over random shapes and dtypes.
void expect_end(const char* file, std::string_view end) {
  std::stringstream script;
  script << std::ifstream(kFolder + file).rdbuf();
  std::string out;
  Status status = run(script.str(), file, &out);
  ASSERT_TRUE(status.ok()) << out << render(status.error());
  EXPECT_TRUE(out.ends_with(end)) << out;
}

TEST(TorchPending, WhatIsMadeOfTwoTensorsIsComputedWithBoth) {
  std::string out;
  Status status = run(R"(
import torch
from torch.profiler import profile
a, b = torch.randn(9000), torch.randn(9000)
with profile() as p:
    x = a * 2
    y = b * 3
    sum = x + y
    torch.cpu.synchronize()
print(p.key_averages().table().split(" · ")[-1])
)",
                      "together.py", &out);
  ASSERT_TRUE(status.ok()) << render(status.error());
  EXPECT_EQ(out, "1 kernel in 1 launch\n");
}

/// Results of one shape that read the same small tensor share a launch; others, and those of two shapes, do not.
TEST(TorchPending, ResultsOfTheSamePlacesAreComputedTogether) {
  std::string out;
  Status status = run(R"(
import torch
from torch.profiler import profile
k, v, w = torch.randn(5, 3000), torch.randn(5, 3000), torch.randn(5, 4000)
beam = torch.tensor([0, 2, 2, 4, 1])
def launches(f):
    with profile() as p:
        results = f()
        torch.cpu.synchronize()
    print(p.key_averages().table().split(" · ")[-1].strip())
launches(lambda: (k[beam], v[beam]))
launches(lambda: (k[beam], w[beam]))
launches(lambda: (k[beam], v * 2))
)",
                      "places.py", &out);
  ASSERT_TRUE(status.ok()) << render(status.error());
  EXPECT_EQ(out, "1 kernel in 1 launch\n2 kernels in 2 launches\n2 kernels in 2 launches\n");
}

TEST(TorchInPlace, WaitingGivesWhatLookingGives) { expect_end("torch_in_place.py", "same\n"); }

TEST(TorchPuts, ElementsAreThoseOfOneByOne) { expect_end("torch_puts.py", "same\n"); }
TEST(TorchDevice, KernelsGiveWhatTheHostGives) { expect_end("torch_device.py", "same\n"); }
TEST(TorchLate, HalvesOfSortsAreOfWhatWasSorted) { expect_end("torch_late.py", "same\n"); }
TEST(TorchTakes, CountedPlacesAreViews) { expect_end("torch_takes.py", "same\n"); }
TEST(TorchCaptured, NothingWaitsForTheHost) { expect_end("torch_captured.py", "same\n"); }
TEST(TorchTables, PartsOfCountsAreChosenWhereTheyAreRead) { expect_end("torch_tables.py", "same\n"); }
TEST(TorchRules, AreThoseOfPyTorch) { expect_end("torch_rules.py", "ok\n"); }
TEST(TorchUpdates, OfManyParametersAreThoseOfEach) { expect_end("torch_updates.py", "same\n"); }
TEST(TorchUpdates, RecordedInAGraphGoOn) { expect_end("torch_captured_steps.py", "same\n"); }
TEST(TorchAutograd, WhatHasAGradientIsChangedInPlace) { expect_end("torch_changed.py", "changed\n"); }
TEST(TorchAutograd, GradientsLetGoOfTheirOwn) { expect_end("torch_released.py", "released\n"); }
TEST(TorchAutograd, BackwardIsWhatGradientsAsk) { expect_end("torch_autograd.py", "ok\n"); }

TEST(TorchAttention, KernelGivesWhatTheScoresGive) { expect_end("torch_attention.py", "ok\n"); }

/// A row that is wrong is seen.
TEST(TorchNames, DifferencesAreTold) {
  std::stringstream check;
  check << std::ifstream(kFolder + "torch_names_check.py").rdbuf();
  std::string out;
  const std::string text = check.str() +
                           "check('a', lambda: torch.ones(2), ('float32', (2,), [1.0, 1.1]))\n"
                           "check('b', lambda: torch.ones(2), ('float64', (2,), [1.0, 1.0]))\n"
                           "check('c', lambda: torch.ones(2), 'error')\n"
                           "check('d', lambda: [1 / 0], [1.0])\n";
  ASSERT_TRUE(run(text, "names.py", &out).ok());
  EXPECT_EQ(std::count(out.begin(), out.end(), '\n'), 4) << out;
}

}  // namespace
}  // namespace kiln::script
