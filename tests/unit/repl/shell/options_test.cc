#include "repl/shell/options.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "support/process.h"

namespace kiln::repl {
namespace {

ParsedOptions parse(std::vector<const char*> words, std::string* said = nullptr) {
  words.insert(words.begin(), "kiln");
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  ParsedOptions p = parse_options(static_cast<int>(words.size()), words.data());
  const std::string out = testing::internal::GetCapturedStdout();
  testing::internal::GetCapturedStderr();
  if (said) *said = out;
  return p;
}

TEST(Options, NothingIsThePrompt) { EXPECT_EQ(parse({}).options->command, Command::kPrompt); }

TEST(Options, CodeAndDash) {
  auto code = parse({"-c", "print(1)"});
  ASSERT_TRUE(code.options);
  EXPECT_EQ(code.options->command, Command::kCode);
  EXPECT_EQ(code.options->code, "print(1)");
  EXPECT_EQ(parse({"-"}).options->command, Command::kStdin);
  auto dash = parse({"-", "--json", "--device", "cpu", "x", "--json"});
  ASSERT_TRUE(dash.options);
  EXPECT_EQ(dash.options->command, Command::kStdin);
  EXPECT_TRUE(dash.options->json);
  EXPECT_EQ(dash.options->device, "cpu");
  EXPECT_EQ(dash.options->args, (std::vector<std::string>{"x", "--json"}));
  EXPECT_EQ(parse({"-c", "1", "-"}).options->args, std::vector<std::string>{"-"});
  auto own = parse({"-c", "1", "--json", "--device", "cpu", "x", "--json", "-c"});
  ASSERT_TRUE(own.options);
  EXPECT_TRUE(own.options->json);
  EXPECT_EQ(own.options->device, "cpu");
  EXPECT_EQ(own.options->args, (std::vector<std::string>{"x", "--json", "-c"}));
  EXPECT_EQ(parse({"-c", "1", "--", "--json"}).options->args, std::vector<std::string>{"--json"});
}

TEST(Options, AScriptKeepsItsOwnArguments) {
  auto p = parse({"run", "--device", "cpu", "a.py", "--json", "-x", "file"});
  ASSERT_TRUE(p.options);
  EXPECT_EQ(p.options->command, Command::kFile);
  EXPECT_EQ(p.options->file, "a.py");
  EXPECT_EQ(p.options->device, "cpu");
  EXPECT_FALSE(p.options->json);
  EXPECT_EQ(p.options->args, (std::vector<std::string>{"--json", "-x", "file"}));
}

// kiln <(make_program) gives it a pipe.
TEST(Options, APipeIsAScript) {
  const ScratchFolder folder;
  const std::string pipe = folder.path + "/pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  auto p = parse({pipe.c_str(), "x"});
  ASSERT_TRUE(p.options);
  EXPECT_EQ(p.options->command, Command::kFile);
  EXPECT_EQ(p.options->file, pipe);
}

TEST(Options, AFolderIsNoScript) {
  const ScratchFolder folder;
  const std::string below = folder.path + "/nothing";
  const std::pair<std::string, std::string> cases[] = {{folder.path, "is a folder"},
                                                       {below, "there is no file"},
                                                       {"chekc", "neither a command nor a file; did you mean check?"}};
  for (const auto& [word, text] : cases) {
    const char* words[] = {"kiln", word.c_str()};
    testing::internal::CaptureStderr();
    const ParsedOptions p = parse_options(2, words);
    EXPECT_NE(testing::internal::GetCapturedStderr().find(text), std::string::npos);
    EXPECT_FALSE(p.options);
    EXPECT_EQ(p.exit_code, kExitUsage);
  }
}

TEST(Options, DoctorAndNoShell) {
  EXPECT_EQ(parse({"doctor"}).options->command, Command::kDoctor);
  EXPECT_TRUE(parse({"--no-shell"}).options->no_shell);
  EXPECT_TRUE(parse({"--no-shell", "run", "a.py"}).options->no_shell);
  EXPECT_FALSE(parse({}).options->no_shell);
}

TEST(Options, Compile) {
  auto p = parse({"compile", "k.py", "--kernel", "add", "--signature", "*fp32,i32", "--constexpr", "BLOCK=1024",
                  "--constexpr", "EVEN=True", "--target", "sm_80", "--emit", "ir:cse", "--num-warps", "8",
                  "--time-passes", "-o", "out.txt"});
  ASSERT_TRUE(p.options);
  const CompileArgs& c = p.options->compile;
  EXPECT_EQ(c.file, "k.py");
  EXPECT_EQ(c.kernel, "add");
  EXPECT_EQ(c.signature, "*fp32,i32");
  EXPECT_EQ(c.constexprs, (std::vector<std::string>{"BLOCK=1024", "EVEN=True"}));
  EXPECT_EQ(c.target, "sm_80");
  EXPECT_EQ(c.emit, "ir:cse");
  EXPECT_EQ(c.options.num_warps, 8);
  EXPECT_TRUE(c.time_passes);
  EXPECT_EQ(c.output, "out.txt");
}

TEST(Options, FlagsThatAreOnAreTurnedOffByTheirValue) {
  const auto options_of = [](std::vector<const char*> words) {
    words.insert(words.begin(), {"compile", "k.py"});
    return parse(words).options->compile.options;
  };
  EXPECT_TRUE(options_of({}).enable_fp_fusion);
  EXPECT_FALSE(options_of({"--enable-fp-fusion=false"}).enable_fp_fusion);
  EXPECT_FALSE(options_of({}).debug) << "as Triton's compiler";
  EXPECT_TRUE(options_of({"--debug"}).debug);
  std::string help;
  EXPECT_EQ(parse({"compile", "--help"}, &help).exit_code, kExitOk);
  EXPECT_NE(help.find("--enable-fp-fusion=false turns it off"), std::string::npos) << help;
}

TEST(Options, Shards) {
  auto p = parse({"sweep", "f(n)", "--device", "cpu", "n=[1, 2]", "--file", "s.py", "--shard", "1/4", "--out", "o",
                  "setup=x = torch.ones(n)", "--json"});
  ASSERT_TRUE(p.options);
  EXPECT_EQ(p.options->command, Command::kSweep);
  EXPECT_EQ(p.options->shard.words, (std::vector<std::string>{"f(n)", "n=[1, 2]", "setup=x = torch.ones(n)"}));
  EXPECT_EQ(p.options->shard.file, "s.py");
  EXPECT_EQ(p.options->shard.shard, "1/4");
  EXPECT_EQ(p.options->shard.out, "o");
  EXPECT_EQ(p.options->device, "cpu");
  EXPECT_TRUE(p.options->json);
  p = parse({"tune", "k[g](x)"});
  ASSERT_TRUE(p.options);
  EXPECT_EQ(p.options->command, Command::kTune);
  p = parse({"merge", "o"});
  ASSERT_TRUE(p.options);
  EXPECT_EQ(p.options->merge_folder, "o");
  p = parse({"cache", "import", "f"});
  ASSERT_TRUE(p.options);
  EXPECT_EQ(p.options->cache_action, "import");
  EXPECT_EQ(p.options->cache_file, "f");
}

TEST(Options, WrongUseIsExitCodeTwo) {
  for (const std::vector<const char*>& words :
       std::vector<std::vector<const char*>>{{"nonsense"},
                                             {"run"},
                                             {"compile"},
                                             {"compile", "k.py", "--num-warps", "33"},
                                             {"--bogus"},
                                             {"-c"},
                                             {"sweep"},
                                             {"tune", "--shard", "0/2"},
                                             {"merge"},
                                             {"cache", "export"},
                                             {"cache", "move", "f"},
                                             {"demo", "--timeout", "-1"}}) {
    auto p = parse(words);
    EXPECT_FALSE(p.options) << words[0];
    EXPECT_EQ(p.exit_code, kExitUsage) << words[0];
  }
}

TEST(Options, HelpAndVersionAreFine) {
  EXPECT_EQ(parse({"--help"}).exit_code, kExitOk);
  EXPECT_FALSE(parse({"--help"}).options);
  EXPECT_EQ(parse({"--version"}).exit_code, kExitOk);
  EXPECT_FALSE(parse({"--version"}).options);
  EXPECT_EQ(parse({"--version", "--verbose"}).options->command, Command::kVersion);
  EXPECT_EQ(parse({"--verbose", "-c", "1"}).exit_code, kExitUsage);
}

}  // namespace
}  // namespace kiln::repl
