// %tune in a shell on the CPU. What is asserted does not depend on what is fast.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "repl/session/tune_launch.h"
#include "repl/shell/shell.h"
#include "support/files.h"
#include "tests/golden/cases.h"
#include "tests/unit/open_device.h"

namespace kiln::repl {
namespace {

constexpr const char* kPrelude = R"(import torch, triton
import triton.language as tl
@triton.jit
def add_kernel(x, y, o, n, BLOCK: tl.constexpr, CUT: tl.constexpr = 0):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n - CUT
    tl.store(o + i, tl.load(x + i, mask=mask) + tl.load(y + i, mask=mask), mask=mask)
@triton.jit
def flagged(x, FLAG: tl.constexpr):
    tl.store(x, FLAG)
@triton.autotune(configs=[triton.Config({"BLOCK": b}, num_warps=2) for b in [64, 256]], key=["n"])
@triton.jit
def tuned(x, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + i, tl.load(x + i, mask=i < n) * 2, mask=i < n)
n = 1337
x, y, o = torch.ones(n), torch.ones(n), torch.full((n,), 7.0)
grid = lambda meta: (triton.cdiv(n, meta["BLOCK"]),)
)";

class TuneShell : public ::testing::Test {
 protected:
  TuneShell() {
    char name[] = "/tmp/kiln_shell_XXXXXX";
    root = mkdtemp(name);
    setenv("KILN_CACHE_DIR", root.c_str(), 1);
    Options options;
    options.device = "cpu";
    shell = std::make_unique<Shell>(options, [this](std::string_view s) { out += s; });
    EXPECT_EQ(shell->run_program(kPrelude, "prelude.py"), 0);
  }
  ~TuneShell() override {
    unsetenv("KILN_CACHE_DIR");
    std::filesystem::remove_all(root);
  }
  /// What an entry prints; its error, when there is one.
  std::string enter(const std::string& text) {
    out.clear();
    ::testing::internal::CaptureStderr();
    Status status = shell->entry(text);
    progress = ::testing::internal::GetCapturedStderr();
    return status.ok() ? out : render(status.error());
  }
  std::string value(const std::string& expression) {
    auto v = shell->session().evaluate(expression);
    return v.ok() ? *v : render(v.error());
  }

  std::string root, out, progress;
  std::unique_ptr<Shell> shell;
};

TEST_F(TuneShell, TunesALaunchOverItsAxes) {
  const std::string text =
      enter("%tune add_kernel[grid](x, y, o, n, BLOCK=128) BLOCK=[64, 256, 48] num_warps=[2,4] cache=hot budget=60s");
  EXPECT_NE(text.find("add_kernel on cpu"), std::string::npos) << text;
  EXPECT_NE(text.find("BLOCK: 128, num_warps: 4 (now)"), std::string::npos) << text;
  EXPECT_NE(text.find("2 pruned: the same code as BLOCK: 256, num_warps: 2; "), std::string::npos) << text;
  EXPECT_NE(text.find("2 failed: the size of tl.arange must be a power of two, got 48 (2 times)"), std::string::npos);
  EXPECT_NE(text.find("best: triton.Config({'BLOCK': "), std::string::npos) << text;
  EXPECT_EQ(progress, "compiling 7 configurations\nchecking 3 configurations\nmeasuring 3 configurations\n");
  // Left as they were.
  EXPECT_EQ(value("o.min().item(), o.max().item()"), "(7.0, 7.0)");
  // As data.
  EXPECT_EQ(value("len(_['rows']), _['kernel'], _['best'].kwargs['BLOCK'] in (64, 128, 256)"),
            "(7, 'add_kernel', True)");
  EXPECT_EQ(value("sorted(set(r['state'] for r in _['rows']))"), "['failed', 'measured', 'pruned']");
  EXPECT_EQ(value("[len(r['samples_us']) > 0 for r in _['rows'] if r['state'] == 'measured']"), "[True, True, True]");
}

TEST_F(TuneShell, AKernelAloneIsTheLaunchBefore) {
  ASSERT_EQ(enter("if True:\n    try:\n        pass\n    except ValueError:\n        pass\n    else:\n"
                  "        add_kernel[grid](x, y, o, n, BLOCK=512)\n"),
            "");
  const std::string first = enter("%tune add_kernel cache=hot budget=60s");
  for (const char* row : {"BLOCK: 128 ", "BLOCK: 256 ", "BLOCK: 512 (now)", "BLOCK: 1024 ", "BLOCK: 2048 "})
    EXPECT_NE(first.find(row), std::string::npos) << first;
  // The second run knows; forgetting makes it measure again.
  const std::string second = enter("%tune add_kernel cache=hot budget=60s");
  EXPECT_NE(second.find("found by an earlier run; %tune --forget add_kernel removes it"), std::string::npos) << second;
  EXPECT_EQ(progress, "");
  EXPECT_EQ(enter("%tune --forget add_kernel"), "5 tuning records removed\n");
  enter("%tune add_kernel cache=hot budget=60s");
  EXPECT_NE(progress, "");
}

TEST_F(TuneShell, AnAutotunersConfigurationsAreItsOwn) {
  const std::string text = enter("%tune tuned[grid](x, n) cache=hot budget=60s -v");
  EXPECT_NE(text.find("BLOCK: 64, num_warps: 2, num_stages: 3, num_ctas: 1 (now)"), std::string::npos) << text;
  EXPECT_EQ(value("len(tuned.cache), tuned.best_config.kwargs == _['best'].kwargs"), "(1, True)");
  EXPECT_EQ(value("x.max().item()"), "1.0");
  // With axes it is tuned over these.
  const std::string other = enter("%tune tuned[grid](x, n) BLOCK=[32] cache=hot budget=60s");
  EXPECT_NE(other.find("BLOCK: 32"), std::string::npos) << other;
}

TEST_F(TuneShell, AWrongConfigurationIsShown) {
  const std::string line = "%tune add_kernel[grid](x, y, o, n, BLOCK=64) CUT=[0, 1] cache=hot budget=60s";
  const std::string text = enter(line);
  EXPECT_NE(text.find("1 wrong: tensor 2 at 1336: nan instead of 2"), std::string::npos) << text;
  EXPECT_NE(text.find("the launch as it stands (CUT: 0) is the best of these"), std::string::npos) << text;
  EXPECT_EQ(enter("%tune --forget add_kernel"), "2 tuning records removed\n");
  EXPECT_EQ(enter(line + " check=off").find("wrong"), std::string::npos);
}

TEST_F(TuneShell, WhatWasWrongWithOneGridIsTriedWithAnother) {
  // 21 programs of 64 cover x; of 16 they leave the rest out.
  const std::string options = " BLOCK=[64, 16] cache=hot budget=60s -v";
  const std::string first = enter("%tune add_kernel[(21,)](x, y, o, n, BLOCK=64)" + options);
  EXPECT_NE(first.find("wrong"), std::string::npos) << first;
  const std::string second = enter("%tune add_kernel[grid](x, y, o, n, BLOCK=64)" + options);
  EXPECT_EQ(second.find("wrong"), std::string::npos) << second;
  // An autotuner's records have no grid, but for those of failures. Here 6 programs are too few for the first.
  const std::string third = enter("%tune tuned[(6,)](x, n) cache=hot budget=60s -v");
  EXPECT_NE(third.find("wrong"), std::string::npos) << third;
  const std::string fourth = enter("%tune tuned[grid](x, n) cache=hot budget=60s -v");
  EXPECT_EQ(fourth.find("wrong"), std::string::npos) << fourth;
  enter("%tune tuned[grid](x, n) cache=hot budget=60s -v");
  EXPECT_EQ(progress, "");
}

TEST_F(TuneShell, JsonHoldsTheSamples) {
  const std::string file = root + "/tune.json";
  enter("%tune add_kernel[grid](x, y, o, n, BLOCK=64) BLOCK=[64,128] cache=hot budget=60s --json " + file);
  const auto j = nlohmann::json::parse(*read_file(file));
  EXPECT_EQ(j["kernel"], "add_kernel");
  ASSERT_EQ(j["configurations"].size(), 2u);
  EXPECT_EQ(j["configurations"][1]["source"], "triton.Config({'BLOCK': 128}, num_warps=4, num_stages=3)");
  EXPECT_FALSE(j["configurations"][0]["samples_us"].empty());
  EXPECT_EQ(j["present"], 0);
}

TEST_F(TuneShell, CtrlCKeepsTheBest) {
  script::Session& session = shell->session();
  script::TuneRequest request;
  request.launch = "add_kernel[grid](x, y, o, n, BLOCK=64)";
  request.axes = {{"BLOCK", "[64, 128, 256, 512]"}};
  request.budget_s = 600;
  request.cache = profiler::Cache::kHot;
  request.on_progress = [&](const profiler::TuneProgress& p, std::span<const profiler::TuneCandidate>) {
    if (p.phase == profiler::TunePhase::kMeasuring && p.best >= 0) session.interrupt();
  };
  auto tuned = tune_launch(session, request);
  ASSERT_TRUE(tuned.ok()) << tuned.error().message;
  EXPECT_TRUE(tuned->result.interrupted);
  EXPECT_GE(tuned->result.best, 0);
  EXPECT_FALSE(tuned->against.has_value());
  // The prompt goes on, with the tensors as they were.
  EXPECT_EQ(enter("o.max().item()"), "7.0\n");
  // Before anything was measured there is nothing to keep.
  request.on_progress = [&](const profiler::TuneProgress&, std::span<const profiler::TuneCandidate>) {
    session.interrupt();
  };
  tuned = tune_launch(session, request);
  ASSERT_FALSE(tuned.ok());
  EXPECT_EQ(tuned.error().message, "tuning of add_kernel was stopped before anything was measured");
  EXPECT_EQ(enter("1 + 1"), "2\n");
}

TEST(Autotune, CtrlCKeepsTheBestForTheSession) {
  script::Session* session = nullptr;
  int hooks = 0;
  std::string out;
  script::Options options;
  options.device = *open_device("cpu");
  options.output = [&](std::string_view s) {
    if (s == ".") {
      if (++hooks == 9) session->interrupt();
    } else {
      out += s;
    }
  };
  script::Session own(std::move(options));
  session = &own;
  ASSERT_TRUE(own.run(R"(import torch, triton
import triton.language as tl
@triton.autotune(configs=[triton.Config({"BLOCK": b}) for b in [64, 128, 256]], key=["n"], rep=10000,
                 restore_value=["x"], pre_hook=lambda args: print(".", end=""))
@triton.jit
def double(x, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + i, tl.load(x + i, mask=i < n) * 2, mask=i < n)
x = torch.ones(1000)
grid = lambda meta: (triton.cdiv(1000, meta["BLOCK"]),)
)",
                      "script.py")
                  .ok());
  Status stopped = own.run("double[grid](x, 1000)", "launch.py");
  ASSERT_FALSE(stopped.ok());
  EXPECT_EQ(stopped.error().kind, ErrorKind::kInterrupted);
  own.forget_interrupt();
  EXPECT_EQ(hooks, 9);
  EXPECT_TRUE(
      own.run("print(len(double.cache), x.max())\ndouble[grid](x, 1000)\nprint(x.min(), x.max())", "more.py").ok());
  EXPECT_EQ(hooks, 9);  // no second tuning
  EXPECT_EQ(out, "1 tensor(1.)\ntensor(2.) tensor(2.)\n");
}

TEST_F(TuneShell, CompletionKnowsAxes) {
  EXPECT_EQ(shell->complete("%tune add_kernel[grid](x, y, o, n) B").candidates, (std::vector<std::string>{"BLOCK="}));
  EXPECT_EQ(shell->complete("%tune add_kernel bu").candidates, (std::vector<std::string>{"budget="}));
  EXPECT_EQ(shell->complete("%tune add_kernel num_").candidates,
            (std::vector<std::string>{"num_warps=", "num_stages=", "num_ctas="}));
  EXPECT_EQ(shell->complete("%tun").candidates, (std::vector<std::string>{"%tune "}));
}

TEST_F(TuneShell, Errors) {
  for (const auto& path : kiln::testing::golden_files("magics"))
    kiln::testing::check_golden(path, [&](const kiln::testing::GoldenCase& c) {
      ::testing::internal::CaptureStderr();
      Options options;
      options.device = "cpu";
      std::string printed;
      Shell fresh(options, [&](std::string_view s) { printed += s; });
      EXPECT_EQ(fresh.run_program(kPrelude, "prelude.py"), 0);
      const int code = fresh.run_program(c.input, "input.py");
      std::string errors = ::testing::internal::GetCapturedStderr();
      return printed + errors + "exit " + std::to_string(code);
    });
}

}  // namespace
}  // namespace kiln::repl
