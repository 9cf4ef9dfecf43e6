// `kiln profile`, %trace and %report on the CPU: what is printed, which files there are, how it ends.
#include "repl/commands/profile_command.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "repl/shell/options.h"
#include "repl/shell/shell.h"
#include "repl/views/profile_roofline.h"
#include "support/files.h"

namespace kiln::repl {
namespace {

using nlohmann::json;

struct Said {
  std::string out, err;
  int code = -1;
};

class ProfileCommand : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/kiln_profile_XXXXXX";
    folder_ = mkdtemp(name);
  }

  std::string file(const std::string& name) { return folder_ + "/" + name; }

  Said profile(const std::string& script, const std::vector<std::string>& words = {}) {
    EXPECT_TRUE(write_file_atomic(file("s.py"), script).ok());
    std::vector<const char*> argv = {"kiln", "--device", "cpu", "profile"};
    const std::string path = file("s.py");
    argv.push_back(path.c_str());
    for (const std::string& w : words) argv.push_back(w.c_str());
    ParsedOptions parsed = parse_options(static_cast<int>(argv.size()), argv.data());
    Said said;
    if (!parsed.options) return said.code = parsed.exit_code, said;
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    said.code = profile_command(*parsed.options);
    said.out = testing::internal::GetCapturedStdout();
    said.err = testing::internal::GetCapturedStderr();
    return said;
  }

  Said prompt(const std::string& text) {
    Options options;
    options.device = "cpu";
    Said said;
    Shell shell(options, [&](std::string_view s) { said.out += s; });
    testing::internal::CaptureStderr();
    said.code = shell.run_program(text, "script.py");
    said.err = testing::internal::GetCapturedStderr();
    return said;
  }

  std::string folder_;
};

const char* kScript = "import torch\nx = torch.ones(1000)\nfor i in range(3):\n    x = x + 1\nprint(x[0].item())\n";

TEST_F(ProfileCommand, AScriptThatDoesNothingHasNoTables) {
  Said s = profile("print(1)\n");
  EXPECT_EQ(s.code, 0) << s.err;
  EXPECT_EQ(s.out, "1\n\nnothing was seen: no kernel, no operation on tensors, no copy\n");
  s = profile("print(1)\n", {"--lines"});
  EXPECT_NE(s.out.find("statement"), std::string::npos) << s.out;
  s = profile("print(1\n");
  EXPECT_EQ(s.code, 1);
  EXPECT_EQ(s.out.find("ranges and operations"), std::string::npos) << s.out;
}

TEST_F(ProfileCommand, OptionsThatCannotBe) {
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
           {"--rows", "-1"}, {"--html", ""}, {"--trace", ""}, {"--json", ""}, {"--csv", ""}, {"--html"}})
    EXPECT_EQ(profile(kScript, words).code, kExitUsage) << words.front();
}

TEST_F(ProfileCommand, PrintsTablesAndWritesWhatIsAskedFor) {
  Said s = profile(kScript, {"--html", file("p.html"), "--trace", file("t.json"), "--json", file("all.json"), "--csv",
                             file("csv"), "--memory"});
  EXPECT_EQ(s.code, 0) << s.err;
  EXPECT_TRUE(s.out.starts_with("4.0\n")) << "the script's own output comes first: " << s.out;
  EXPECT_NE(s.out.find("findings"), std::string::npos) << s.out;
  json trace = json::parse(*read_file(file("t.json")));
  bool found = false, parsed = false;
  for (const json& e : trace["traceEvents"]) {
    found = found || (e["ph"] == "X" && e["args"].value("line", "") == file("s.py") + ":4");
    parsed = parsed || (e["ph"] == "X" && e["name"] == "parse");
  }
  EXPECT_TRUE(found) << "statements are in the trace, with their lines";
  EXPECT_TRUE(parsed) << "and what it took to parse the script";
  EXPECT_NE(read_file(file("p.html"))->find("<h2>ranges and operations</h2>"), std::string::npos);
  json all = json::parse(*read_file(file("all.json")));
  EXPECT_EQ(all["device"], "cpu");
  EXPECT_TRUE(all["tables"].contains("operations"));
  EXPECT_TRUE(all["tables"].contains("findings"));
  for (const char* name : {"/operations.csv", "/totals.csv", "/memory.csv", "/findings.csv"})
    EXPECT_TRUE(read_file(file("csv") + name).ok()) << name;
}

TEST_F(ProfileCommand, KeepsTheScriptsExitCodeAndItsProfile) {
  EXPECT_EQ(profile("import sys\nsys.exit(7)\n").code, 7);
  Said wrong = profile("x = 1\nassert x == 2, 'no'\n", {"--trace", file("t.json")});
  EXPECT_EQ(wrong.code, kExitMismatch);
  EXPECT_NE(wrong.err.find("no"), std::string::npos) << wrong.err;
  EXPECT_TRUE(read_file(file("t.json")).ok()) << "the profile up to the error";
}

TEST_F(ProfileCommand, RefusesBeforeTheScriptRuns) {
  const std::string says = "print('it ran')\n";
  Said s = profile(says, {"--html", file("no/p.html")});
  EXPECT_EQ(s.code, kExitUsage);
  EXPECT_EQ(s.out, "");
  EXPECT_NE(s.err.find("cannot write '" + file("no/p.html") + "': No such file or directory"), std::string::npos)
      << s.err;
  s = profile(says, {"--csv", file("s.py")});
  EXPECT_EQ(s.code, kExitUsage);
  EXPECT_EQ(s.out, "");
  s = profile(says, {"--sort", "color"});
  EXPECT_EQ(s.code, kExitUsage);
  EXPECT_EQ(s.out, "");
  Options missing;
  missing.profile.file = file("missing.py");
  testing::internal::CaptureStderr();
  EXPECT_EQ(profile_command(missing), kExitUsage);
  EXPECT_NE(testing::internal::GetCapturedStderr().find("missing.py"), std::string::npos);
}

TEST_F(ProfileCommand, WordsBehindTheScriptAreItsOwn) {
  EXPECT_TRUE(profile("import sys\nprint(sys.argv[1:])\n", {"a", "--rows", "5", "--", "--html"})
                  .out.starts_with("['a', '--html']\n"));
}

TEST_F(ProfileCommand, MarkdownIsMarkdown) {
  Said s = profile(kScript, {"--markdown"});
  EXPECT_NE(s.out.find("|---|"), std::string::npos) << s.out;
}

TEST_F(ProfileCommand, TraceOfAStatement) {
  const std::string setup = "import torch\nx = torch.ones(1000)\n";
  Said s = prompt(setup + "%trace y = x + 1 > " + file("t.json") + "\n");
  EXPECT_EQ(s.code, 0) << s.err;
  EXPECT_NE(s.out.find("open it in ui.perfetto.dev"), std::string::npos) << s.out;
  EXPECT_FALSE(json::parse(*read_file(file("t.json")))["traceEvents"].empty());
  s = prompt(setup + "%trace warmup=0 active=2 z = x > 0 --out " + file("u.json") + "\n");
  EXPECT_EQ(s.code, 0) << s.err;
  int64_t steps = 0;
  const json trace = json::parse(*read_file(file("u.json")));
  for (const json& e : trace["traceEvents"]) steps += e["ph"] == "X" && e["cat"] == "range";
  EXPECT_EQ(steps, 2);
  EXPECT_NE(prompt(setup + "%trace x + 1\n").err.find("%trace STATEMENT > FILE.json"), std::string::npos);
  for (const std::string& line :
       {"%trace x > " + file("x.json"), std::string("%profile x"), std::string("%dispatch x")})
    EXPECT_NE(prompt(setup + line + "\n").err.find("'x' is computed already: nothing would run"), std::string::npos)
        << line;
  EXPECT_NE(prompt(setup + "%trace x + 1 > /nowhere/t.json\n").err.find("cannot write '/nowhere/t.json'"),
            std::string::npos);
  EXPECT_NE(prompt(setup + "%trace nothing + 1 > " + file("v.json") + "\n").err.find("nothing"), std::string::npos);
  EXPECT_FALSE(read_file(file("v.json")).ok()) << "no file of a statement that failed";
}

TEST_F(ProfileCommand, AScriptThatEndsEarlyLeavesItsProfile) {
  const std::string work = "import torch\nx = torch.ones(1000)\nx += 1\n";
  Said s = profile(work + "raise KeyboardInterrupt\n", {"--html", file("p.html")});
  EXPECT_EQ(s.code, 1);
  EXPECT_NE(s.out.find("interrupted by Ctrl-C: the profile ends there"), std::string::npos) << s.out;
  EXPECT_NE(s.out.find("ones "), std::string::npos) << s.out;
  EXPECT_NE(read_file(file("p.html"))->find("interrupted by Ctrl-C"), std::string::npos);
  EXPECT_NE(profile(work + "1 / 0\n").out.find("interrupted by the error that ended the script"), std::string::npos);
  EXPECT_EQ(profile(work).out.find("interrupted by"), std::string::npos);
}

TEST_F(ProfileCommand, DeclaredRangesHaveTheirRoofline) {
  Said s = profile(
      "import torch\nfrom torch.profiler import record_function\nx = torch.ones(1 << 16)\n"
      "with record_function('square', flop=1 << 16, bytes=1 << 18, dtype=torch.float16):\n    y = (x * "
      "x).sum().item()\n",
      {"--html", file("p.html")});
  EXPECT_EQ(s.code, 0) << s.err;
  EXPECT_NE(s.out.find("ceilings measured here: "), std::string::npos) << s.out;
  EXPECT_NE(s.out.find("65.5 k declared"), std::string::npos) << s.out;
  const std::string page = *read_file(file("p.html"));
  EXPECT_NE(page.find("<h2>Roofline of cpu, ceilings measured here</h2>"), std::string::npos);
  EXPECT_NE(page.find("<svg"), std::string::npos);
}

TEST(ProductInPtx, IsReadFromTheFirstProduct) {
  EXPECT_EQ(product_in_ptx("wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 {%f1"), DType::kBF16);
  EXPECT_EQ(product_in_ptx("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%f1"), DType::kF32);
  EXPECT_EQ(product_in_ptx("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 \t{%r1"), DType::kF16);
  EXPECT_EQ(product_in_ptx("wgmma.mma_async.sync.aligned.m64n64k32.f32.e4m3.e4m3\n{"), DType::kF8E4M3);
  EXPECT_EQ(product_in_ptx("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {"), DType::kI8);
  EXPECT_EQ(product_in_ptx("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {"), DType::kF64);
  EXPECT_EQ(product_in_ptx("wgmma.fence.sync.aligned; fma.rn.f32 %f1"), std::nullopt);
  EXPECT_EQ(product_in_ptx(""), std::nullopt);
}

TEST_F(ProfileCommand, ReportOfAStatementOrOfTheLastProfile) {
  const std::string setup = "import torch\nx = torch.ones(1000)\n";
  Said s = prompt(setup + "%report " + file("a.html") + " x + 1\n%report " + file("b.html") + "\n");
  EXPECT_EQ(s.code, 0) << s.err;
  EXPECT_NE(read_file(file("a.html"))->find("<title>x + 1</title>"), std::string::npos);
  EXPECT_NE(read_file(file("b.html"))->find("<title>x + 1</title>"), std::string::npos);
  EXPECT_NE(prompt("%report " + file("c.html") + "\n").err.find("there is no profile yet"), std::string::npos);
  EXPECT_NE(prompt("%report page.txt 1 + 1\n").err.find("'page.txt' is no FILE.html"), std::string::npos);
}

}  // namespace
}  // namespace kiln::repl
