// %profile and `with profile()` on the CPU, from text to tables. Times are not looked at: they depend on the machine.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "repl/magics/statement_arguments.h"
#include "repl/shell/shell.h"
#include "support/files.h"
#include "tests/unit/open_device.h"

namespace kiln::repl {
namespace {

using Form = MagicOption::Form;
constexpr MagicOption kSome[] = {{Form::kFlag, "shapes"}, {Form::kDashed, "--json"}, {Form::kValue, "rows"}};

TEST(StatementArguments, OptionsStandAroundTheStatement) {
  auto a = parse_statement_arguments("shapes y=f(x, rows=3) + 'a b' rows=5 --json 'o p.json'", kSome);
  ASSERT_TRUE(a.ok()) << a.error().message;
  EXPECT_EQ(a->expressions[0], "y=f(x, rows=3) + 'a b'");
  EXPECT_TRUE(a->has("shapes"));
  EXPECT_EQ(a->text("rows"), "5");
  EXPECT_EQ(a->text("--json"), "o p.json");
  EXPECT_EQ(parse_statement_arguments("for i in range(3): f(i)", kSome)->expressions[0], "for i in range(3): f(i)");
}

TEST(StatementArguments, OperandsStandBehindTheStatement) {
  constexpr MagicOption kBundles[] = {{Form::kFlag, "-v"}, {Form::kValue, "bundle", Legal::kBundle}};
  StatementForm form{[](std::string_view word) { return word.starts_with("m_"); }, false};
  auto a = parse_statement_arguments("f(x, m_1) bundle=a m_2 -v m_3 bundle=b", kBundles, form);
  ASSERT_TRUE(a.ok()) << a.error().message;
  EXPECT_EQ(a->expressions, (std::vector<std::string>{"f(x, m_1)"}));
  EXPECT_EQ(a->operands, (std::vector<std::string>{"m_2", "m_3"}));
  EXPECT_EQ(a->values.size(), 3u);
  EXPECT_TRUE(parse_statement_arguments("-v", kBundles, form)->expressions.empty());
}

TEST(StatementArguments, Mistakes) {
  for (const char* text : {"", "rows=5", "f() rows= ", "f() --json", "f() rows=1 rows=2"})
    EXPECT_EQ(parse_statement_arguments(text, kSome).error().kind, ErrorKind::kSyntax) << text;
  Diagnostic d = explain_statement({ErrorKind::kSyntax, "odd", {}, {}}, "f() row=5", kSome);
  EXPECT_EQ(d.kind, ErrorKind::kName);
  EXPECT_EQ(d.notes[0].message, "help: did you mean 'rows'?");
  EXPECT_EQ(explain_statement({ErrorKind::kSyntax, "odd", {}, {}}, "f( + g", kSome).message, "odd");
  EXPECT_EQ(explain_statement({ErrorKind::kSyntax, "odd", {}, {}}, "x =", kSome).message, "odd");
  d = explain_statement({ErrorKind::kSyntax, "odd", {}, {}}, "f() --jsn o.json", kSome);
  EXPECT_TRUE(d.message.starts_with("there is no option '--jsn'")) << d.message;
}

class ProfileMagic : public testing::Test {
 protected:
  ProfileMagic() : shell(options(), [this](std::string_view s) { out += s; }) {
    std::string pattern = (std::filesystem::temp_directory_path() / "kiln_profile_XXXXXX").string();
    folder = mkdtemp(pattern.data());
    auto cpu = open_device("cpu");
    EXPECT_TRUE(cpu.ok());
    shell.session().set_device(*cpu);
    run("import torch, triton\nimport triton.language as tl\n"
        "@triton.jit\ndef twice(x, o, B: tl.constexpr):\n    i = tl.arange(0, B)\n"
        "    tl.store(o + i, tl.load(x + i) * 2)\n"
        "x = torch.ones(64)\no = torch.zeros(64)\n"
        "def step():\n    twice[(1,)](x, o, B=64)\n    twice[(1,)](x, o, B=64)\n");
  }
  ~ProfileMagic() override { std::filesystem::remove_all(folder); }
  static Options options() {
    Options o;
    o.device = "cpu";
    return o;
  }
  void run(const std::string& text) {
    Status s = shell.session().run(text, "t.py");
    ASSERT_TRUE(s.ok()) << s.error().message;
  }
  std::string error_of(const std::string& text) {
    Status s = shell.session().run(text, "t.py");
    return s.ok() ? "" : s.error().message;
  }
  std::string value(const std::string& expression) {
    auto v = shell.session().evaluate(expression);
    return v.ok() ? *v : v.error().message;
  }
  std::string out, folder;
  Shell shell;
};

TEST_F(ProfileMagic, DispatchTellsTheStepsAndTheOtherWays) {
  Status s = shell.entry("%dispatch step() runs=5");
  ASSERT_TRUE(s.ok()) << s.error().message;
  for (const char* text : {"interpret", "specialisation key", "kernels on the CPU", "medians of 5 runs", "as it is",
                           "as one graph", "% of a run is dispatch"})
    EXPECT_NE(out.find(text), std::string::npos) << text << " in\n" << out;
  out.clear();
  ASSERT_TRUE(shell.entry("%dispatch (x * 2 + o).sum().item() runs=2").ok());
  EXPECT_NE(out.find("– as one graph: a copy to the host cannot be part"), std::string::npos) << out;
  out.clear();
  ASSERT_TRUE(shell.entry("%dispatch exp(x) * 2 + o runs=2").ok());
  EXPECT_NE(out.find("its plan, unfused: 3 launches"), std::string::npos) << out;
  EXPECT_EQ(shell.entry("%dispatch step() runs=0").error().message, "runs= is a whole number from 1, got 0");
  EXPECT_NE(shell.entry("%dispatch nothing(x)").error().message.find("nothing"), std::string::npos);
}

TEST_F(ProfileMagic, CountersThatCannotBeReadSayWhy) {
  ASSERT_TRUE(shell.entry("%profile step() counters").ok());
  EXPECT_NE(out.find("not counted: "), std::string::npos) << out;
  EXPECT_NE(out.find("kernels on the CPU"), std::string::npos) << out;
}

TEST_F(ProfileMagic, BundlesOfCounters) {
  EXPECT_NE(shell.entry("%profile step() bundle=nothing").error().message.find("there is no bundle 'nothing'"),
            std::string::npos);
  ASSERT_TRUE(shell.entry("%profile step() bundle=memory").ok());
  EXPECT_NE(out.find("not counted: "), std::string::npos) << out;
}

TEST_F(ProfileMagic, CtrlCShowsWhatWasSeenAndEndsTheScript) {
  run("n = [0]\ndef stopped():\n    step()\n    n[0] += 1\n    if n[0] == 3:\n        raise KeyboardInterrupt\n");
  Status s = shell.entry("%profile stopped() counters");
  ASSERT_FALSE(s.ok());
  EXPECT_EQ(s.error().kind, ErrorKind::kInterrupted);
  EXPECT_NE(out.find("4 kernels in 4 launches"), std::string::npos) << out;
  EXPECT_NE(out.find("interrupted by Ctrl-C: the profile ends there"), std::string::npos) << out;
  EXPECT_EQ(out.find("not counted"), std::string::npos) << "nothing more is run";
  out.clear();
  const std::string file = folder + "/cut.html";
  ASSERT_TRUE(shell.entry("%report " + file).ok()) << "and it is the profile that %report shows";
  EXPECT_NE(read_file(file)->find("interrupted by Ctrl-C"), std::string::npos);
}

TEST_F(ProfileMagic, AReportHasTheRooflineOfWhatWasDeclared) {
  const std::string file = folder + "/r.html";
  ASSERT_TRUE(shell.entry("%report " + file + " step() bytes=1024 flop=128").ok());
  const std::string page = *read_file(file);
  EXPECT_NE(page.find("<h2>Roofline of cpu, ceilings measured here</h2>"), std::string::npos);
  EXPECT_NE(page.find("class=\"plot\""), std::string::npos);
  EXPECT_NE(page.find("ceilings measured here: "), std::string::npos);
  EXPECT_NE(page.find("1.02 kB declared"), std::string::npos);

  ASSERT_TRUE(shell.entry("%profile step() bytes=1024").ok());
  ASSERT_TRUE(shell.entry("%report " + file).ok());
  EXPECT_EQ(read_file(file)->find("class=\"plot\""), std::string::npos) << "no FLOP, no point";
  EXPECT_NE(read_file(file)->find("1.02 kB declared"), std::string::npos) << "but its share of the memory's rate";
  ASSERT_TRUE(shell.entry("%profile step()").ok());
  ASSERT_TRUE(shell.entry("%report " + file).ok());
  EXPECT_EQ(read_file(file)->find("oofline"), std::string::npos) << "nothing was declared";
  EXPECT_NE(shell.entry("%report " + file + " step() dtype=nope").error().message.find("dtype="), std::string::npos);
}

TEST_F(ProfileMagic, AReportsFileMayHaveBlanks) {
  const std::string file = folder + "/of one step.html";
  ASSERT_TRUE(shell.entry("%report '" + file + "' step()").ok());
  EXPECT_NE(read_file(file)->find("step()"), std::string::npos);
  EXPECT_NE(shell.entry("%report 'of one step'").error().message.find("'of one step' is no FILE.html"),
            std::string::npos);
}

// Nothing reads the tensors of a tuple, nor those that a function puts aside: they are what is to be measured.
TEST_F(ProfileMagic, ComputesAllThatIsLeftPending) {
  const std::string file = folder + "/p.json";
  ASSERT_TRUE(shell.entry("import torch").ok());
  ASSERT_TRUE(shell.entry("x, kept = torch.ones(300, 300), []").ok());
  ASSERT_TRUE(shell.entry("def aside():\n    kept.append(x.sin())\n").ok());
  ASSERT_TRUE(shell.entry("def pair():\n    return x.exp(), [x.cos() * 2]\n").ok());
  for (std::string_view statement : {"pair()", "a, b = pair()", "aside()"}) {
    ASSERT_TRUE(shell.entry(fmt::format("%profile {} active=2 --json {}", statement, file)).ok());
    const std::string json = *read_file(file);
    EXPECT_NE(json.find(statement == "aside()" ? "sin_kernel" : "cos"), std::string::npos) << statement << json;
    EXPECT_NE(json.find("_kernel"), std::string::npos) << statement << json;
  }
}

TEST_F(ProfileMagic, TablesOfAStatement) {
  const std::string file = folder + "/p.json";
  Status s = shell.entry("%profile step() active=4 memory streams bytes=512 flop=128 --json " + file);
  ASSERT_TRUE(s.ok()) << s.error().message;
  for (const char* text : {"ranges and operations", "kernels on the CPU", "launch latency", "memory of tensors",
                           "streams", "8 kernels in 8 launches"})
    EXPECT_NE(out.find(text), std::string::npos) << text << " in\n" << out;
  auto text = read_file(file);
  ASSERT_TRUE(text.ok());
  auto doc = nlohmann::json::parse(*text);
  EXPECT_EQ(doc["device"], "cpu");
  double self = 0, total = 0;
  for (const auto& row : doc["tables"]["operations"]["rows"]) {
    self += row["self_cpu_us"].get<double>();
    if (row["name"] == "step") {
      EXPECT_EQ(row["calls"], 4);
      total += row["cpu_us"].get<double>();
    }
    if (row["kind"] == "launch") {
      EXPECT_EQ(row["calls"], 8);
    }
  }
  EXPECT_NEAR(self, total, 0.01);  // the steps are the only roots
  EXPECT_EQ(doc["tables"]["kernels"]["rows"][0]["calls"], 8);
}

TEST_F(ProfileMagic, HonoursTheFormat) {
  ASSERT_TRUE(shell.entry("%format json").ok());
  ASSERT_TRUE(shell.entry("%profile step()").ok());
  for (size_t at = 0; at < out.size();) {
    const size_t end = out.find('\n', at);
    EXPECT_TRUE(nlohmann::json::accept(out.substr(at, end - at))) << out.substr(at, end - at);
    at = end + 1;
  }
}

TEST_F(ProfileMagic, EveryFormatOfTheTables) {
  ASSERT_TRUE(shell.entry("%format csv").ok());
  ASSERT_TRUE(shell.entry("%profile step()").ok());
  EXPECT_NE(out.find("name,kind,calls,self_cpu_us,self_cpu_percent"), std::string::npos) << out;
  EXPECT_NE(out.find("\ntwice,launch,6,"), std::string::npos) << out;
  out.clear();
  ASSERT_TRUE(shell.entry("%format markdown").ok());
  ASSERT_TRUE(shell.entry("%profile step()").ok());
  EXPECT_NE(out.find("| name | kind | calls |"), std::string::npos) << out;
  EXPECT_NE(out.find("\n| twice | launch | 6 |"), std::string::npos) << out;
}

TEST_F(ProfileMagic, Mistakes) {
  EXPECT_EQ(shell.entry("%profile step() sort=tiem").error().kind, ErrorKind::kName);
  EXPECT_EQ(shell.entry("%profile step() active=0").error().kind, ErrorKind::kValue);
  EXPECT_EQ(shell.entry("%profile step() rows=many").error().kind, ErrorKind::kValue);
  EXPECT_EQ(shell.entry("%profile nothing()").error().kind, ErrorKind::kName);
  EXPECT_EQ(shell.entry("%profile").error().kind, ErrorKind::kValue);
  // A file that cannot be written is said before anything runs.
  run("runs = []\n");
  EXPECT_EQ(shell.entry("%profile runs.append(1) --json " + folder + "/none/p.json").error().kind, ErrorKind::kIo);
  EXPECT_EQ(value("len(runs)"), "0");
}

TEST_F(ProfileMagic, ABlockWithSteps) {
  run("ready = []\n"
      "with profile(wait=1, warmup=1, active=3, repeat=1) as p:\n"
      "    for i in range(8):\n        step()\n        p.step()\n"
      "rows = {r.key + ' ' + r.kind: r for r in p.key_averages()}\n");
  EXPECT_EQ(value("rows['step range'].count"), "3");
  EXPECT_EQ(value("rows['twice launch'].count"), "6");
  EXPECT_EQ(value("'6 kernels in 6 launches' in str(p)"), "True");
  EXPECT_EQ(value("'twice' in p.table(sort_by='cpu', row_limit=3)"), "True");
  EXPECT_EQ(value("len([e for e in p.events() if e.kind == 'launch'])"), "6");
  EXPECT_EQ(value("p.table(sort_by='nope')").find("a profile has no column 'nope' to sort by; it has self_cpu"), 0u);
}

TEST_F(ProfileMagic, TorchSnippetsPasteIn) {
  run("from torch.profiler import profile, record_function, ProfilerActivity, schedule\n"
      "cycles = []\n"
      "def ready(prof):\n    cycles.append(prof.key_averages().table(sort_by='cuda_time_total', row_limit=10))\n"
      "with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], record_shapes=True, "
      "profile_memory=True,\n"
      "             schedule=schedule(wait=1, warmup=1, active=2, repeat=2), on_trace_ready=ready) as prof:\n"
      "    for i in range(10):\n        with record_function('forward'):\n            step()\n        prof.step()\n"
      "prof.export_chrome_trace('" +
      folder + "/t.json')\n");
  EXPECT_EQ(value("len(cycles)"), "2");
  EXPECT_EQ(value("'forward' in cycles[0]"), "True");
  EXPECT_TRUE(std::filesystem::exists(folder + "/t.json"));
}

TEST_F(ProfileMagic, WhatProfileIsAskedForItsTablesShow) {
  run("with profile() as plain:\n    step()\n"
      "with profile(profile_memory=True, with_stack=True, record_shapes=True) as p:\n    z = (x + 1).sum().item()\n"
      "    step()\n");
  for (const char* text : {"'memory of tensors'", "'self memory'", "'t.py:4 '", "'f32[64]'"}) {
    EXPECT_EQ(value(std::string(text) + " in str(p)"), "True") << value("str(p)");
    EXPECT_EQ(value(std::string(text) + " in str(plain)"), "False") << text;
  }
  EXPECT_EQ(value("'memory of tensors' in plain.table(memory=True)"), "True");
  EXPECT_EQ(value("'memory of tensors' in p.table(memory=False)"), "False");
  EXPECT_EQ(value("'self memory' in p.key_averages().table(sort_by='self_cpu_memory_usage')"), "True");
  run("rows = [r for r in p.key_averages(group_by_stack_n=2) if r.key == 'twice' and r.kind == 'launch']\n"
      "rows.sort(key=lambda r: r.stack)\n"
      "p.export_stacks('" +
      folder + "/stacks.txt', 'self_cuda_time_total')\np.export_stacks('" + folder + "/cpu.txt')\n");
  EXPECT_EQ(value("[r.stack.split(' ← ')[0] for r in rows]"), "['t.py:10', 't.py:11']");
  EXPECT_EQ(value("[r.count for r in rows]"), "[1, 1]");
  EXPECT_NE(read_file(folder + "/cpu.txt")->find("t.py:5 step()"), std::string::npos)
      << *read_file(folder + "/cpu.txt");
  EXPECT_NE(error_of("p.export_stacks('x', 'time')").find("metric is self_cpu_time_total"), std::string::npos);
}

TEST_F(ProfileMagic, WhatHasNoEffectIsSaidAtTheCall) {
  run("with profile(with_flops=True, with_modules=True, use_cuda=False) as p:\n    step()\n");
  EXPECT_NE(out.find("# profile(with_flops=) has no effect: record_function(name, flop=) declares them"),
            std::string::npos)
      << out;
  EXPECT_NE(out.find("# profile(with_modules=) has no effect: "), std::string::npos) << out;
  out.clear();
  run("with profile(with_flops=False, record_shapes=True, experimental_config=None) as p:\n    step()\n");
  EXPECT_EQ(out, "");
}

TEST_F(ProfileMagic, RangesDecorateNestAndDeclare) {
  run("@record_function('inner')\ndef f(a, b=1):\n    step()\n    return a + b\n"
      "with profile() as p:\n    with record_function('outer', flop=1e9, bytes=1e6):\n        r = f(1, b=2)\n"
      "    torch.cuda.nvtx.range_push('pushed')\n    f(1)\n    torch.cuda.nvtx.range_pop()\n"
      "rows = {r.key: r for r in p.key_averages()}\n");
  EXPECT_EQ(value("r"), "3");
  EXPECT_EQ(value("rows['inner'].count"), "2");
  EXPECT_EQ(value("rows['outer'].cpu_time_total >= rows['inner'].cpu_time_total / 2"), "True");
  EXPECT_EQ(value("'pushed' in rows"), "True");
  EXPECT_EQ(value("'TFLOP/s' in p.table()"), "True");
}

TEST_F(ProfileMagic, ABlockThatRaisesKeepsItsProfile) {
  EXPECT_NE(error_of("with profile() as p:\n    step()\n    1 / 0\n").find("division"), std::string::npos);
  EXPECT_EQ(value("'2 kernels in 2 launches' in p.table()"), "True");
  EXPECT_EQ(value("'interrupted by ZeroDivisionError: the profile ends there' in p.table()"), "True");
}

TEST_F(ProfileMagic, FailuresOfProfiles) {
  EXPECT_EQ(error_of("with profile() as p:\n    with profile() as q:\n        step()\n"),
            "a profile is being taken already");
  EXPECT_EQ(error_of("profile().table()"), "nothing is profiled yet: it is of a block, `with profile() as p:`");
  EXPECT_EQ(error_of("with profile() as p:\n    p.table()\n"),
            "the profile is still running: its tables are available after its `with` block");
  EXPECT_NE(error_of("with profile(wait=5) as p:\n    step()\nprint(p.table())\n").find("nothing was kept"),
            std::string::npos);
  EXPECT_NE(error_of("with profile(schedule=3) as p:\n    step()\n").find("schedule= is made by"), std::string::npos);
  EXPECT_NE(error_of("torch.cuda.nvtx.range_pop()").find("without a range_push"), std::string::npos);
  // Nobody is left watching.
  run("with profile() as p:\n    step()\n");
}

TEST_F(ProfileMagic, AnInterruptKeepsTheProfile) {
  run("import time\n");
  EXPECT_EQ(error_of("with profile() as p:\n    step()\n    raise KeyboardInterrupt\n").empty(), false);
  EXPECT_EQ(value("'2 kernels' in p.table()"), "True");
}

}  // namespace
}  // namespace kiln::repl
