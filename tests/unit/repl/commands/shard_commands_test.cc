// `kiln sweep`, `kiln tune` and `kiln merge` on the CPU. What is asserted does not depend on what is fast.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <thread>

#include "profiler/measure/device_lock.h"
#include "profiler/shard/records.h"
#include "support/files.h"
#include "support/process.h"
#include "tests/unit/open_device.h"

namespace kiln::repl {
namespace {

constexpr const char* kAddScript = R"(import torch, triton
import triton.language as tl
@triton.jit
def add_kernel(x, y, o, n, BLOCK: tl.constexpr, CUT: tl.constexpr = 0):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n - CUT
    tl.store(o + i, tl.load(x + i, mask=mask) + tl.load(y + i, mask=mask), mask=mask)
n = 1337
x, y, o = torch.ones(n), torch.ones(n), torch.full((n,), 7.0)
grid = lambda meta: (triton.cdiv(n, meta["BLOCK"]),)
)";

class ShardCommands : public ::testing::Test {
 protected:
  ShardCommands() {
    // Locks and records of this test alone.
    for (const char* name : {"XDG_RUNTIME_DIR", "KILN_CACHE_DIR"}) {
      const char* before = std::getenv(name);
      before_[name] = before ? std::optional<std::string>(before) : std::nullopt;
      setenv(name, scratch_.path.c_str(), 1);
    }
  }
  ~ShardCommands() override {
    for (const auto& [name, before] : before_)
      before ? setenv(name.c_str(), before->c_str(), 1) : unsetenv(name.c_str());
  }

  struct Said {
    std::string out, err;
    int code = -1;
  };
  static std::vector<std::string> command(const std::vector<std::string>& words) {
    std::vector<std::string> all = {KILN_BINARY, "--device", "cpu"};
    all.insert(all.end(), words.begin(), words.end());
    return all;
  }
  static Said kiln(const std::vector<std::string>& words) {
    auto ran = run_process(command(words), Streams::kSeparate);
    if (!ran.ok()) return {"", render(ran.error()), -1};
    return {ran->out, ran->errors, WIFEXITED(ran->status) ? WEXITSTATUS(ran->status) : -1};
  }
  /// Goes on beside the test.
  static pid_t start(const std::vector<std::string>& words, const std::string& errors = "/dev/null") {
    const pid_t child = fork();
    // 126 and 127 as a shell's: the program could not be started.
    if (child != 0) return child;
    std::vector<std::string> all = command(words);
    std::vector<char*> argv;
    for (std::string& word : all) argv.push_back(word.data());
    argv.push_back(nullptr);
    if (!std::freopen("/dev/null", "w", stdout) || !std::freopen(errors.c_str(), "w", stderr)) _exit(126);
    execv(argv[0], argv.data());
    _exit(127);
  }
  static int end_of(pid_t child) {
    int status = 0;
    waitpid(child, &status, 0);
    return status;
  }

  std::vector<std::string> sweep(std::vector<std::string> more = {}) const {
    std::vector<std::string> words = {
        // Six points of a few microseconds each.
        "sweep", "sum(range(n * m))", "n=[1, 2, 3]", "m=range(10, 12)", "budget=50ms", "--out", out_};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  std::vector<size_t> numbers() const {
    std::vector<size_t> all;
    auto read = profiler::read_shards(out_);
    for (const auto& r : read->records) all.push_back(r.number);
    std::ranges::sort(all);
    return all;
  }
  static std::vector<size_t> up_to(size_t end) {
    std::vector<size_t> all(end);
    // The numbers of all points from 0 on.
    for (size_t i = 0; i < end; ++i) all[i] = i;
    return all;
  }

  ScratchFolder scratch_;
  std::string out_ = scratch_.path + "/out";
  std::map<std::string, std::optional<std::string>> before_;
};

TEST_F(ShardCommands, ShardsPartitionThePointsAndMergeIntoOneTable) {
  // In any order.
  for (const char* shard : {"2/3", "0/3", "1/3"}) {
    const Said said = kiln(sweep({"--shard", shard}));
    ASSERT_EQ(said.code, 0) << said.err;
    EXPECT_NE(said.out.find("shard " + std::string(shard) + ": 2 of its 2 points, of 6 in all"), std::string::npos)
        << said.out;
  }
  EXPECT_EQ(numbers(), up_to(6));
  const Said merged = kiln({"merge", out_, "--json"});
  EXPECT_EQ(merged.code, 0) << merged.err;
  const auto table = nlohmann::json::parse(merged.out);
  ASSERT_EQ(table["rows"].size(), 6u);
  // The last axis runs fastest.
  EXPECT_EQ(table["rows"][0]["n"], "1");
  EXPECT_EQ(table["rows"][1]["m"], "11");
  EXPECT_EQ(table["rows"][2]["n"], "2");
  EXPECT_GT(table["rows"][5]["time"], 0);
  EXPECT_EQ(table["notes"].back(), "all 6 are there");
}

TEST_F(ShardCommands, WhatIsThereIsNotMeasuredAgain) {
  ASSERT_EQ(kiln(sweep({"--shard", "0/2"})).code, 0);
  // Another number of shards, and other effort.
  const Said rest =
      kiln({"sweep", "sum(range(n * m))", "n=[1, 2, 3]", "m=range(10, 12)", "budget=40ms", "--out", out_});
  // Half of them had been measured, with other effort, which does not matter.
  ASSERT_EQ(rest.code, 0) << rest.err;
  EXPECT_NE(rest.out.find("shard 0/1: 6 of its 6 points; 3 were in " + out_ + " already"), std::string::npos)
      << rest.out;
  EXPECT_EQ(numbers(), up_to(6));
  // Another list is another list.
  ASSERT_EQ(kiln({"sweep", "sum(range(n * m))", "n=[1]", "m=[10]", "budget=50ms", "--out", out_}).code, 0);
  ASSERT_EQ(kiln(sweep({"cache=hot", "--shard", "0/6"})).code, 0);
  // Two more lists, of which one point each was measured.
  EXPECT_EQ(numbers().size(), 8u);
  const Said merged = kiln({"merge", out_});
  // Not all there: a script that waits for the whole can see it.
  EXPECT_EQ(merged.code, 1);
  EXPECT_NE(merged.out.find("all 1 are there"), std::string::npos) << merged.out;
  EXPECT_NE(merged.out.find("5 of 6 missing: 1–5"), std::string::npos) << merged.out;
}

TEST_F(ShardCommands, AShardThatMeasuredNothingIsAnError) {
  const Said none = kiln({"sweep", "undefined_name + n", "n=[1, 2]", "budget=50ms", "--out", out_});
  EXPECT_EQ(none.code, 1);
  EXPECT_NE(none.err.find("none of the points could be measured"), std::string::npos) << none.err;
  // The table is there none the less, with the reason of each.
  EXPECT_NE(none.out.find("undefined_name"), std::string::npos) << none.out;
  EXPECT_EQ(numbers(), up_to(2));
  // One of two is what a sweep that reaches for the limits of a device looks like.
  const Said some = kiln({"sweep", "1 // (n - 1)", "n=[1, 2]", "budget=50ms"});
  EXPECT_EQ(some.code, 0) << some.err;
}

TEST_F(ShardCommands, AnotherScriptIsAnotherList) {
  const std::string script = scratch_.path + "/s.py";
  for (const char* text : {"def f(): return 1\n", "def f(): return 2\n"}) {
    ASSERT_TRUE(write_file_atomic(script, text).ok());
    ASSERT_EQ(kiln({"sweep", "--file", script, "f()", "n=[1, 2]", "budget=50ms", "--out", out_}).code, 0);
  }
  EXPECT_EQ(numbers(), (std::vector<size_t>{0, 0, 1, 1}));
}

TEST_F(ShardCommands, ALineThatWasCutIsMeasuredAgain) {
  ASSERT_EQ(kiln(sweep()).code, 0);
  const std::string file = out_ + "/shard-0-of-1.jsonl";
  // As a process leaves it that was killed while it wrote.
  std::filesystem::resize_file(file, std::filesystem::file_size(file) - 20);
  EXPECT_EQ(numbers(), up_to(5));
  const Said said = kiln(sweep());
  EXPECT_NE(said.out.find("5 were in"), std::string::npos) << said.out;
  EXPECT_EQ(numbers(), up_to(6));
  const Said merged = kiln({"merge", out_});
  EXPECT_EQ(merged.code, 0);
  EXPECT_NE(merged.out.find("1 line of the folder is no record: a process may have died while it wrote"),
            std::string::npos)
      << merged.out;
}

TEST_F(ShardCommands, AProcessThatIsKilledLosesOnlyItsPoint) {
  std::vector<std::string> words = {"sweep", "sum(range(n))", "n=range(1000, 1016)", "budget=50ms", "--out", out_};
  const pid_t child = start(words);
  while (numbers().size() < 3 && waitpid(child, nullptr, WNOHANG) == 0)
    // Polling: a record is a line of the file at some moment.
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  kill(child, SIGKILL);
  ASSERT_TRUE(WIFSIGNALED(end_of(child)));
  const size_t kept = numbers().size();
  ASSERT_GE(kept, 3u);
  // If all sixteen had been done in time, nothing would have been tested.
  ASSERT_LT(kept, 16u);
  EXPECT_EQ(numbers(), up_to(kept));
  const Said said = kiln(words);
  EXPECT_EQ(said.code, 0) << said.err;
  EXPECT_NE(said.out.find(std::to_string(kept) + " were in"), std::string::npos);
  EXPECT_EQ(numbers(), up_to(16));
}

TEST_F(ShardCommands, CtrlCKeepsWhatWasMeasured) {
  std::vector<std::string> words = {"sweep", "sum(range(n))", "n=range(1000, 1016)", "budget=50ms", "--out", out_};
  const pid_t child = start(words);
  while (numbers().size() < 3 && waitpid(child, nullptr, WNOHANG) == 0)
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  kill(child, SIGINT);
  const int status = end_of(child);
  ASSERT_TRUE(WIFEXITED(status));
  // An ordinary end with a code, and not by the signal.
  EXPECT_EQ(WEXITSTATUS(status), 1);
  EXPECT_EQ(numbers(), up_to(numbers().size()));
}

TEST_F(ShardCommands, AShardOfNothingIsDone) {
  // Of twenty shards only six have a point.
  const Said said = kiln(sweep({"--shard", "13/20"}));
  EXPECT_EQ(said.code, 0) << said.err;
  EXPECT_EQ(said.err, "shard 13/20: 0 of its 0 points, of 6 in all\n");
}

TEST_F(ShardCommands, WithoutAFolderNothingIsKept) {
  const Said said = kiln({"sweep", "n + 1", "n=[1, 2]", "budget=50ms"});
  EXPECT_EQ(said.code, 0) << said.err;
  EXPECT_NE(said.out.find("shard 0/1: 2 of its 2 points"), std::string::npos) << said.out;
}

TEST_F(ShardCommands, TwoProcessesTakeTheDeviceInTurns) {
  // A point is measured under the lock of the device.
  std::optional<profiler::DeviceLock> lock;
  lock.emplace(*profiler::DeviceLock::take(
      *open_device("cpu"), [] { return false; }, [] {}));
  const std::string errors = scratch_.path + "/errors";
  pid_t child = start(sweep(), errors);
  auto said = [&] { return read_file(errors).ok() ? *read_file(errors) : std::string(); };
  while (said().empty() && waitpid(child, nullptr, WNOHANG) == 0)
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  // Told once, not for every try.
  EXPECT_EQ(said(), "waiting for cpu: another process measures on it\n");
  EXPECT_TRUE(numbers().empty());
  // Ctrl-C ends the wait.
  kill(child, SIGINT);
  int status = end_of(child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 1);
  // Its message would be taken for the second process's.
  std::filesystem::remove(errors);
  child = start(sweep(), errors);
  while (said().empty() && waitpid(child, nullptr, WNOHANG) == 0)
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  lock.reset();
  status = end_of(child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  EXPECT_EQ(numbers(), up_to(6));
}

TEST_F(ShardCommands, ShardsSideBySide) {
  std::vector<pid_t> children;
  for (const char* shard : {"0/3", "1/3", "2/3"}) children.push_back(start(sweep({"--shard", shard})));
  for (pid_t child : children) EXPECT_EQ(end_of(child), 0);
  EXPECT_EQ(numbers(), up_to(6));
}

TEST_F(ShardCommands, TuningShardsAgreeOnTheNumbers) {
  const std::string script = scratch_.path + "/add.py";
  ASSERT_TRUE(write_file_atomic(script, kAddScript).ok());
  auto tune = [&](std::vector<std::string> more) {
    // Four block sizes of which one is not allowed, each with and without an element left out.
    std::vector<std::string> words = {"tune",
                                      "--file",
                                      script,
                                      "add_kernel[grid](x, y, o, n, BLOCK=64)",
                                      "BLOCK=[64, 128, 256, 48]",
                                      "CUT=[0, 1]",
                                      "cache=hot",
                                      "--out",
                                      out_};
    words.insert(words.end(), more.begin(), more.end());
    return kiln(words);
  };
  const Said first = tune({"--shard", "1/2"});
  ASSERT_EQ(first.code, 0) << first.err;
  // Every second of the eight.
  EXPECT_EQ(numbers(), (std::vector<size_t>{1, 3, 5, 7}));
  // The launch as it stands is not of this shard, and its ratio is known.
  EXPECT_EQ(first.out.find("(now)"), std::string::npos) << first.out;
  ASSERT_EQ(tune({"--shard", "0/2"}).code, 0);
  EXPECT_EQ(numbers(), up_to(8));
  const Said merged = kiln({"merge", out_});
  EXPECT_EQ(merged.code, 0) << merged.out;
  EXPECT_NE(merged.out.find("BLOCK: 64, CUT: 0 (now)"), std::string::npos) << merged.out;
  // 1336 is the element that CUT leaves out; NaN is the check's poison.
  EXPECT_NE(merged.out.find("wrong: tensor 2 at 1336: nan instead of 2"), std::string::npos) << merged.out;
  EXPECT_NE(merged.out.find("failed: the size of tl.arange must be a power of two, got 48"), std::string::npos);
  EXPECT_NE(merged.out.find("best: triton.Config({'BLOCK': "), std::string::npos) << merged.out;
  EXPECT_EQ(merged.out.find("best: triton.Config({'BLOCK': 64, 'CUT': 1}"), std::string::npos) << merged.out;
  EXPECT_NE(merged.out.find("all 8 are there"), std::string::npos) << merged.out;
  const Said again = tune({});
  EXPECT_NE(again.out.find("8 were in"), std::string::npos) << again.out;
}

TEST_F(ShardCommands, TheExamplesForClustersRun) {
  const std::string folder = KILN_SOURCE_DIR "/examples/cluster/", kiln = "KILN=" KILN_BINARY;
  auto ran =
      // As MPI starts it: the rank and the size come by the environment.
      run_process({"/usr/bin/env", kiln, "OMPI_COMM_WORLD_RANK=1", "OMPI_COMM_WORLD_SIZE=4", folder + "rank.sh", out_});
  ASSERT_TRUE(ran.ok());
  EXPECT_EQ(ran->status, 0) << ran->out;
  EXPECT_EQ(numbers(), (std::vector<size_t>{1, 5, 9, 13}));
  // As SLURM starts one task of an array.
  ran = run_process({"/usr/bin/env", "-C", scratch_.path, kiln, "KILN_DEVICE=cpu", "SLURM_ARRAY_TASK_ID=0",
                     "SLURM_ARRAY_TASK_COUNT=12", folder + "sweep.slurm"});
  ASSERT_TRUE(ran.ok());
  EXPECT_EQ(ran->status, 0) << ran->out;
  const auto shards = profiler::read_shards(scratch_.path + "/results");
  ASSERT_EQ(shards->records.size(), 1u);
  EXPECT_FALSE(shards->records[0].cells.empty());
  for (const profiler::SweepCell& c : shards->records[0].cells) EXPECT_GT(c.us, 0) << c.problem;
}

TEST_F(ShardCommands, Mistakes) {
  auto message = [&](const std::vector<std::string>& words, int code) {
    const Said said = kiln(words);
    EXPECT_EQ(said.code, code) << said.out;
    // An error prints no result.
    EXPECT_EQ(said.out, "");
    return said.err.substr(0, said.err.find('\n'));
  };
  EXPECT_EQ(message({"sweep", "n", "n=[1]", "--shard", "2/2"}, 2),
            "error: shards are counted from 0: of 2 the last is 1/2, got 2/2");
  EXPECT_EQ(message({"tune", "k[g](x)", "--shard", "one"}, 2), "error: a shard is I/N, got 'one'");
  EXPECT_EQ(message({"sweep", "n=[1]"}, 2), "error: an expression is missing");
  EXPECT_EQ(message({"sweep", "n", "n=[1]", "n=[2]"}, 2), "error: n= is given twice");
  EXPECT_EQ(message({"sweep", "n", "n="}, 2), "error: n= needs a value");
  EXPECT_EQ(message({"sweep", "n"}, 1), "error: %sweep needs an axis");
  EXPECT_EQ(message({"tune", "k[g](x)"}, 1), "<%tune>:1:1: error: the name 'k' is not defined");
  EXPECT_EQ(message({"sweep", "--file", scratch_.path + "/none.py", "n", "n=[1]"}, 2).find("error: cannot open"), 0u);
  EXPECT_EQ(message({"sweep", "n", "n=[1]", "--out", "/dev/null/x"}, 1).find("error: cannot"), 0u);
  EXPECT_EQ(message({"merge", out_}, 2), "error: there are no records in " + out_);
  // A script that fails ends it with its own code.
  const std::string script = scratch_.path + "/exit.py";
  ASSERT_TRUE(write_file_atomic(script, "exit(7)\n").ok());
  EXPECT_EQ(message({"sweep", "--file", script, "n", "n=[1]"}, 7), "");
}

}  // namespace
}  // namespace kiln::repl
