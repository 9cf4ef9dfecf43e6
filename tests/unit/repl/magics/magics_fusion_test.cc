// %source, %plan, %why (of kernels too) and %edit at a made-up prompt.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "repl/commands/demo.h"
#include "repl/magics/kernel_target.h"
#include "repl/views/static_table.h"
#include "support/files.h"
#include "tests/unit/open_device.h"
#include "tests/unit/repl/run_prompt.h"

namespace kiln::repl {
namespace {

TEST(MagicsFusion, SourceIsAWholeFileWithTheNamesOfTheVariables) {
  Said s = run("rows = randn(100, 100)\n%source exp(rows) * 2\n");
  EXPECT_EQ(s.code, 0) << s.err;
  for (const char* part : {"import triton", "@triton.jit", "tl.exp(", "rows"})
    EXPECT_NE(s.out.find(part), std::string::npos) << part << " in\n" << s.out;
  // Small tensors make expressions too when it is asked for one.
  EXPECT_EQ(run("x = randn(4)\n%source exp(x)\n").code, 0);
  EXPECT_NE(run("x = randn(99, 99)\nz = exp(x)\ny = z.T\nz.run()\n%source y\n").out.find("a view"), std::string::npos);
}

// What is only looked at leaves variables as they are: the session of docs/prompt.md goes on with them.
TEST(MagicsFusion, PlansLeaveWhatTheyReadPending) {
  const std::string setup = "a, b, bias = randn(96, 96), randn(96, 96), randn(96)\nc = gelu(a @ b + bias)\n";
  const Said s =
      run(setup +
          "%why softmax(c @ b, 1)\n%plan exp(c)\n%source c + 1\n%static c * 2 target=sm_90a\nprint(c.is_lazy())\n"
          "%plan c\n%static c target=sm_90a\n%why c\n%profile c rows=1\nprint(c.is_lazy(), c.sum().item() == gelu(a @ "
          "b + bias).sum().item())\n");
  EXPECT_EQ(s.code, 0) << s.err;
  EXPECT_NE(s.out.find("c + 1"), std::string::npos) << s.out;  // by its name
  EXPECT_NE(s.out.find("\nTrue\n"), std::string::npos) << s.out;
  EXPECT_NE(s.out.find("\nTrue True\n"), std::string::npos) << s.out;
}

TEST(MagicsFusion, SeveralResultsHaveOnePlan) {
  const std::string setup =
      "import torch\nx = randn(100, 100)\ndef f(x):\n    y = x.exp()\n    return y, {'loss': [(y - x).sum()]}\n\n";
  const Said both = run(setup + "%plan f(x) target=sm_90a\n");
  EXPECT_NE(both.out.find("writes out0 f32[100, 100] (result)"), std::string::npos) << both.err << both.out;
  EXPECT_NE(both.out.find("f32[] (result)"), std::string::npos) << both.out;
  EXPECT_EQ(run(setup + "%static f(x) target=sm_90a\n").code, 0);
  const Said source = run(setup + "%source f(x)\n");
  EXPECT_NE(source.out.find("tl.exp(x)"), std::string::npos) << source.err << source.out;
  EXPECT_NE(run(setup + "L = []\nL.append(L)\n%plan L\n").err.find("'L' gives no tensor"), std::string::npos);
  EXPECT_NE(run(setup + "%edit f(x)\n").err.find("%edit takes one tensor; 'f(x)' gives 2"), std::string::npos);
}

TEST(MagicsFusion, ProductsOfFloat32UseTf32WhereTheyMay) {
  const std::string setup =
      "import torch\nimport torch.nn.functional as F\nx, w = randn(2, 16, 20, 20), randn(32, 16, 3, 3)\n"
      "a, b = randn(80, 70), randn(70, 90)\n";
  const std::string convolution = "%source F.conv2d(x, w) target=sm_90a\n", product = "%source a @ b target=sm_90a\n";
  const std::string exact = "input_precision=\"ieee\"";
  for (const std::string& line : {convolution, product}) {
    const Said ieee = run(setup + line);
    EXPECT_NE(ieee.out.find(exact), std::string::npos) << ieee.err << ieee.out;
    for (const char* module : {"cuda.matmul", "cudnn"}) {
      const Said said = run(setup + "torch.backends." + module + ".allow_tf32 = True\n" + line);
      const bool rounds = line == convolution || module == std::string("cuda.matmul");
      EXPECT_EQ(said.out.find(exact) == std::string::npos, rounds) << module << said.err << said.out;
    }
  }
}

// The file's functions, called with tensors of our own, give what the expression does.
TEST(MagicsFusion, SourceAsAProgramComputesTheExpression) {
  const std::string setup = "import torch\nx, w, b, n = randn(130, 70), randn(70, 50), randn(50), torch.arange(130)\n";
  struct {
    std::string expression, options, call;
  } cases[] = {
      {"gelu(x @ w + b)", "", "run(x, w, b)"},
      {"gelu(x @ w + b)", " --variant unfused", "run(x, w, b)"},
      {"softmax(x, 1) * 2 + n[:, None]", "", "run(x, n)"},
      {"layer_norm(x @ w, (50,), b, b)", "", "run(x, w, b)"},
      {"x.sum(0) - x.mean()", "", "run(x)"},
      {"where(x > 0, exp(x), 0.25).max(1)[0]", "", ""},
      {"(x.T + 1)[3:60, ::2] * 1e30", "", ""},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.expression + c.options);
    const std::string file = testing::TempDir() + "program.py";
    Said written = run(setup + "%source " + c.expression + c.options + " --script " + file + "\n");
    if (written.code != 0 && c.call.empty()) continue;  // no expression on this device
    ASSERT_EQ(written.code, 0) << written.err;
    std::string program = *read_file(file);
    Said alone = run(program);
    ASSERT_EQ(alone.code, 0) << alone.err << program;
    EXPECT_NE(alone.out.find("tensor("), std::string::npos) << alone.out;
    if (c.call.empty()) continue;
    program.resize(program.find("\n\nif __name__"));
    // The program's functions have names that the prompt's would hide behind.
    Said compared = run(setup + "want = " + c.expression + "\n" + program + "\nprint(torch.allclose(" + c.call +
                        ", want, atol=1e-4))\n");
    EXPECT_EQ(compared.out, "True\n") << compared.err << program;
  }
}

TEST(MagicsFusion, StaticOfAnExpressionIsOfAGpuThatIsNotThere) {
  const std::string setup = "x, w, b = randn(256, 64), randn(64, 256), randn(256)\nc = gelu(x @ w + b)\n";
  auto rows = [&](const std::string& arguments) {
    Said s = run(setup + "r = %static " + arguments + "\nprint(r.kernel, r.target, [n > 0 for n in r.warps])\n");
    EXPECT_EQ(s.code, 0) << s.err;
    return s.out.substr(s.out.rfind('\n', s.out.size() - 2) + 1);
  };
  EXPECT_EQ(rows("c"), "kernel: ['matmul_add_gelu_kernel'] target: ['sm_90a'] [True]\n");
  EXPECT_EQ(rows("c target=sm_80"), "kernel: ['matmul_add_gelu_kernel'] target: ['sm_80'] [True]\n");
  EXPECT_EQ(rows("x @ w + b --variant unfused target=sm_89"),
            "kernel: ['matmul_kernel', 'add_kernel'] target: ['sm_89', 'sm_89'] [True, True]\n");
  EXPECT_NE(run(setup + "%target sm_86\n%static exp(x)\n").out.find("planned and compiled for sm_86 in "),
            std::string::npos);
  EXPECT_NE(run(setup + "%static c target=host\n").err.find("target= is a GPU target, as sm_90a is, not 'host'"),
            std::string::npos);
  EXPECT_NE(run(setup + "%static x\n").err.find("'x' is computed already"), std::string::npos);
  EXPECT_NE(run("y = 3\n%static y\n").err.find("'y' is no kernel but 'int'"), std::string::npos);
}

TEST(MagicsFusion, TheDemoEndsWithAGpuThatIsNotThere) {
  Result<Device> cpu = open_device("cpu");
  ASSERT_TRUE(cpu.ok());
  Result<report::Table> table = demo_static_figures(*cpu);
  ASSERT_TRUE(table.ok()) << table.error().message;
  ASSERT_EQ(table->rows().size(), 3u) << "a kernel for each expression";
  for (const auto& row : table->rows()) EXPECT_EQ(row[1].text, "sm_90a");
  EXPECT_NE(report::to_text(*table).find("matmul_add_gelu_kernel"), std::string::npos);
}

TEST(MagicsFusion, WithoutAnAssemblerATableSaysWhatToInstall) {
  report::Table table = static_table();
  KernelInfo info;
  info.target = kDefaultGpuTarget;
  info.num_warps = 4;
  info.ptx = "add.f32 %f1, %f2, %f3;\n";
  add_static_row(table, "add", info);
  const report::Table known = without_assembler(table);
  EXPECT_EQ(known.columns().size(), 5u);
  ASSERT_EQ(known.notes().size(), 1u);
  EXPECT_NE(known.notes()[0].find("install ptxas"), std::string::npos);
}

TEST(MagicsFusion, PlanAndWhyNameTheKernels) {
  const std::string setup = "x = randn(300, 300)\n";
  Said one = run(setup + "%why exp(x) + 1\n");
  EXPECT_EQ(one.out, "all of it is one kernel\n") << one.err;
  Said two = run(setup + "%plan exp(x) + 1 --variant unfused\n");
  EXPECT_EQ(two.code, 0) << two.err;
  EXPECT_NE(two.out.find("exp"), std::string::npos);
  Said apart = run(setup + "%why exp(x).sum(1) @ x\n");
  EXPECT_EQ(apart.code, 0) << apart.err;
  EXPECT_NE(apart.out.find("because"), std::string::npos) << apart.out;
  const std::string file = testing::TempDir() + "plan.svg";
  Said svg = run(setup + "%plan exp(x) + 1 --svg " + file + "\n");
  EXPECT_EQ(svg.code, 0) << svg.err;
  EXPECT_NE(read_file(file)->find("<svg"), std::string::npos);
}

TEST(MagicsFusion, WhyOfAKernelNamesOperandAndLine) {
  const std::string setup =
      "@triton.jit\ndef product(a, b, c, BM: tl.constexpr):\n    m, n = tl.arange(0, BM), tl.arange(0, 64)\n"
      "    x = tl.load(a + m[:, None] * 64 + n[None, :], mask=m[:, None] >= n[None, :], other=0.0)\n"
      "    y = tl.load(b + n[:, None] * 64 + n[None, :])\n"
      "    tl.store(c + m[:, None] * 64 + n[None, :], tl.dot(x, y))\n\n";
  const std::string shape = " BM=64 signature=*fp16:16,*fp16:16,*fp32:16 target=sm_90a";
  Said why = run(setup + "%why product" + shape + "\n");
  EXPECT_EQ(why.code, 0) << why.err;
  for (const char* part : {"no TMA: the mask of A (line 4) is more than bounds", "select_wgmma", "compiled for sm_90a"})
    EXPECT_NE(why.out.find(part), std::string::npos) << part << " in\n" << why.out;
  Said rows = run(setup + "r = %why product" + shape + " pass=select_wgmma\nprint(r.line, r.remark)\n");
  EXPECT_NE(rows.out.find("[6]"), std::string::npos) << rows.out << rows.err;
  EXPECT_EQ(rows.out.find("recognize_blocks"), std::string::npos) << rows.out;
  Said few = run(setup + "%why product BM=32 signature=*fp16:16,*fp16:16,*fp32:16 target=sm_90a\n");
  EXPECT_NE(few.out.find("no wgmma: M of the tile is 32; it needs 64"), std::string::npos) << few.out << few.err;
  EXPECT_NE(run(setup + "%why product target=host\n").err.find("target= is a GPU target"), std::string::npos);
  EXPECT_NE(run(setup + "%why product --variant fused\n").err.find("--variant is for expressions"), std::string::npos);
  EXPECT_NE(run("x = randn(9)\n%why x + 1 pass=cse\n").err.find("pass= is for kernels"), std::string::npos);
}

TEST(MagicsFusion, ErrorsSayWhatWouldWork) {
  EXPECT_NE(run("%plan 3\n").err.find("takes a tensor expression"), std::string::npos);
  EXPECT_NE(run("x = randn(9)\n%plan x\n").err.find("'x' is computed already"), std::string::npos);
  EXPECT_NE(run("x = randn(9)\n%plan x + 1 --variant best\n").err.find("there is no variant 'best'"),
            std::string::npos);
  EXPECT_NE(run("x = randn(9)\n%source x + randn(4)\n").err.find("do not broadcast"), std::string::npos);
  EXPECT_NE(run("x = randn(9)\n%source x + 1 --variant openblas\n").err.find("product"), std::string::npos);
}

TEST(MagicsFusion, TheNameOfALazyTensorStandsForItsExpression) {
  Said s =
      run("x = randn(100, 100)\ny = tanh(x) + 1\n%source y\nprint(y.is_lazy())\n%source y * 2\nprint(y.is_lazy())\n");
  EXPECT_EQ(s.code, 0) << s.err;
  EXPECT_NE(s.out.find("tanh("), std::string::npos) << s.out;
  EXPECT_NE(s.out.find("True\n"), std::string::npos);
  EXPECT_EQ(s.out.find("False\n"), std::string::npos) << "an input of an expression stays pending";
}

TEST(MagicsFusion, AnEditedSourceIsCompiledAndItsKernelIsAVariable) {
  unsetenv("VISUAL");
  unsetenv("EDITOR");
  const std::string setup = "x = randn(100, 100)\n";
  Said none = run(setup + "%edit exp(x) * 2\n");
  EXPECT_NE(none.err.find("no editor is set"), std::string::npos) << none.err;
  setenv("EDITOR", "false", 1);
  EXPECT_NE(run(setup + "%edit exp(x) * 2\n").err.find("the editor 'false' failed"), std::string::npos);
  setenv("EDITOR", "sed -i s/num_warps=[0-9]*/num_warps=3/", 1);
  EXPECT_NE(run(setup + "%edit exp(x) * 2\n").err.find("num_warps must be a power of two"), std::string::npos);
  setenv("EDITOR", "sed -i s/^def.*$/def\\ wrong:/", 1);
  EXPECT_NE(run(setup + "%edit exp(x) * 2\n").err.find("error"), std::string::npos);
  setenv("EDITOR", "sed -i s/tl.exp/tl.sin/", 1);
  Said edited = run(setup + "%edit exp(x) * 2 --budget 1s\n");
  EXPECT_EQ(edited.code, 3) << "the sine is no exponential: " << edited.err;
  EXPECT_NE(edited.out.find("'edited 1'"), std::string::npos) << edited.out;
  EXPECT_NE(edited.out.find("WRONG"), std::string::npos) << edited.out;
  // The file's helpers take no names from the session: the expression is still the same one, and the kernel runs.
  setenv("EDITOR", "sed -i s/num_warps=[0-9]*/num_warps=8/", 1);
  Said helped = run(
      setup +
      "%edit gelu(x) * 0.3 --budget 1s\n%compare gelu(x) * 0.3 budget=1s\nout = empty(100, 100)\n"
      "gelu_mul_kernel[(5,)](x, out, 10000, 0.3, BLOCK=2048)\nprint(torch.allclose(out, gelu(x) * 0.3, atol=1e-6))\n");
  EXPECT_EQ(helped.code, 0) << helped.err;
  EXPECT_EQ(helped.out.find("failed"), std::string::npos) << helped.out;
  EXPECT_NE(helped.out.find("True"), std::string::npos) << helped.out;
  unsetenv("EDITOR");
}

TEST(MagicsFusion, AnEditTakesNoVariableOfTheUser) {
  unsetenv("VISUAL");
  setenv("EDITOR", "sed -i s/num_warps=[0-9]*/num_warps=8/", 1);
  Said said = run("x = randn(100, 100)\nexp_mul_kernel = 'mine'\n%edit exp(x) * 2 --budget 1s\n");
  EXPECT_EQ(said.code, 1);
  EXPECT_NE(said.err.find("'exp_mul_kernel' is a variable of the session"), std::string::npos) << said.err;
  EXPECT_NE(said.err.find("--file "), std::string::npos) << said.err;
  // A kernel of that name, of an earlier edit, is replaced.
  Said twice = run("x = randn(100, 100)\n%edit exp(x) * 2 --budget 1s\n%edit exp(x) * 2 --budget 1s\n");
  EXPECT_EQ(twice.code, 0) << twice.err;
  unsetenv("EDITOR");
}

TEST(MagicsFusion, AnEditThatReachesOutsideIsRefusedWithItsLine) {
  const std::string setup = "x = randn(128, 128)\n";
  unsetenv("VISUAL");
  setenv("EDITOR", "sed -i 's/tl.store(out_ptr + i/tl.store(out_ptr + 5 + i/'", 1);
  Said outside = run(setup + "%edit exp(x) * 2 --budget 1s\n");
  EXPECT_EQ(outside.code, 1) << outside.out;
  EXPECT_NE(outside.err.find("writes element 16384 of 'out_ptr', which has 16384 elements, in program"),
            std::string::npos)
      << outside.err;
  EXPECT_NE(outside.err.find("_kernel.py:"), std::string::npos) << outside.err;
  EXPECT_NE(outside.err.find("tl.store(out_ptr + 5 + i"), std::string::npos) << outside.err;
  EXPECT_NE(outside.err.find("--file"), std::string::npos) << outside.err;
  // Twice the programs, by the launch line alone.
  setenv("EDITOR", "sed -i 's/grid=([0-9]*/grid=(9999/'", 1);
  Said twice = run(setup + "%edit exp(x) * 2 --budget 1s\n");
  EXPECT_NE(twice.err.find("reads element 16384 of 'x_ptr', which has 16384 elements"), std::string::npos) << twice.err;
  // An edit that was right once: with other tensors its row says why, and the others stand.
  setenv("EDITOR", "true", 1);
  Said later = run(setup + "%edit exp(x) * 2 --budget 1s\nx = randn(64, 64)\n%compare exp(x) * 2 budget=1s\n");
  EXPECT_EQ(later.code, 0) << later.err;
  EXPECT_NE(later.out.find("edited 1: line "), std::string::npos) << later.out;
  unsetenv("EDITOR");
}

TEST(MagicsFusion, AnEmptyFileOrAnotherNameIsNoEdit) {
  const std::string setup = "x = randn(128, 128)\n";
  setenv("EDITOR", "truncate -s 0", 1);
  EXPECT_NE(run(setup + "%edit exp(x) * 2\n").err.find("the file is empty"), std::string::npos);
  setenv("EDITOR", "sed -i s/exp_mul_kernel/other_kernel/", 1);
  EXPECT_NE(run(setup + "%edit exp(x) * 2\n").err.find("exp_mul_kernel"), std::string::npos);
  setenv("EDITOR", "sed -i s/x_ptr/y_ptr/", 1);
  EXPECT_NE(run(setup + "%edit exp(x) * 2\n").err.find("must keep its parameters"), std::string::npos);
  unsetenv("EDITOR");
}

// The fused variant of x * 1 launches nothing but a copy, and a comparison overwrites results before they are written.
TEST(MagicsFusion, ComparingLeavesTheInputsAlone) {
  Said s =
      run("x = randn(128, 128)\nbefore = x.sum().item()\n%compare x * 1 budget=200ms\nprint(x.sum().item() == before)\n"
          "y = x * 1\ny.zero_()\nprint(x.sum().item() == before)\nv = (exp(x) - 0).T\n%compare v budget=200ms\n"
          "z = (x - 0).T\n%compare z budget=200ms\nprint(x.sum().item() == before)\n");
  EXPECT_EQ(s.code, 0) << s.err << s.out;
  EXPECT_EQ(s.out.find("False"), std::string::npos) << s.out;
  EXPECT_EQ(s.out.find("WRONG"), std::string::npos) << s.out;
}

TEST(MagicsFusion, OptionsWithoutAValueOrWithAWrongNameSaySo) {
  const std::string setup = "x = randn(128, 128)\n";
  EXPECT_NE(run(setup + "%plan exp(x) --svg\n").err.find("--svg needs a value"), std::string::npos);
  EXPECT_NE(run(setup + "%plan exp(x) --varant fused\n").err.find("did you mean '--variant'?"), std::string::npos);
}

}  // namespace
}  // namespace kiln::repl
