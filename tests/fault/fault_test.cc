// Kiln compiles and runs while one call of malloc, mmap, open, read, write, rename or pthread_create fails, or all of
// them from one on: every run succeeds or ends with an error, never by a signal. KILN_FUZZ_SEED=n repeats the choice of
// calls, KILN_FUZZ_COUNT says how many of each function.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <set>

namespace kiln {
namespace {

namespace fs = std::filesystem;

constexpr int kOfEach = 6;     // calls that fail, of each function
constexpr int kMostLines = 8;  // of an error: the sentence, the line it points to, a note
constexpr int kMostCode = 4;   // repl/shell/errors.h

constexpr const char* kScript = R"(import torch, triton
import triton.language as tl

@triton.jit
def add(x, y, o, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o + i, tl.load(x + i, mask=i < n) + tl.load(y + i, mask=i < n), mask=i < n)

n = 5000
x, y, o = torch.ones(n), torch.ones(n), torch.zeros(n)
add[(triton.cdiv(n, 256),)](x, y, o, n, BLOCK=256)
print((o * 2).sum().item())
)";

struct Outcome {
  int status = 0;
  std::string out;
};

class Faults : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
#if defined(__SANITIZE_ADDRESS__)
    GTEST_SKIP() << "AddressSanitizer has a malloc of its own";
#endif
    std::string name = (fs::temp_directory_path() / "kiln_fault_XXXXXX").string();
    ASSERT_TRUE(mkdtemp(name.data()));
    root_ = name;
    std::ofstream(root_ / "script.py") << kScript;
  }
  void TearDown() override {
    if (!root_.empty()) fs::remove_all(root_);
  }

  /// With a cache that is empty, so that all of it happens.
  Outcome run(const std::string& setting) const {
    fs::remove_all(root_ / "cache");
    const std::string command =
        "cd '" + root_.string() + "' && exec timeout -s KILL 30 env -i HOME=. KILN_DEVICE=cpu NO_COLOR=1 " +
        "KILN_CACHE_DIR=cache LD_PRELOAD=" KILN_FAULT " " + setting + " " KILN_BINARY " " + GetParam() + " 2>&1";
    Outcome r;
    std::FILE* pipe = popen(command.c_str(), "r");
    if (!pipe) return {-1, "cannot run " + command};
    char buffer[4096];
    while (size_t n = std::fread(buffer, 1, sizeof buffer, pipe)) r.out.append(buffer, n);
    r.status = pclose(pipe);
    return r;
  }

  /// Whether the run said that it failed.
  bool check(const std::string& function, const std::string& setting) const {
    const Outcome r = run(setting);
    const int code = WIFEXITED(r.status) ? WEXITSTATUS(r.status) : -1;
    EXPECT_TRUE(code >= 0 && code <= kMostCode) << setting << " ends with status " << r.status << "\n" << r.out;
    EXPECT_EQ(r.out.find("internal error"), std::string::npos) << setting << "\n" << r.out;
    EXPECT_LE(std::count(r.out.begin(), r.out.end(), '\n'), kMostLines) << setting << "\n" << r.out;
    if (function != "write") {  // whose failure may take the message
      EXPECT_TRUE(code == 0 || r.out.find("error") != std::string::npos) << setting << " code " << code << "\n"
                                                                         << r.out;
    }
    return code != 0;
  }

  fs::path root_;
};

TEST_P(Faults, EndNoRunBySignal) {
  const Outcome sound = run("FAULT_COUNTS=counts");
  ASSERT_EQ(sound.status, 0) << sound.out;
  std::random_device device;
  uint64_t seed = device();
  if (const char* given = std::getenv("KILN_FUZZ_SEED")) seed = std::strtoull(given, nullptr, 0);
  int of_each = kOfEach;
  if (const char* given = std::getenv("KILN_FUZZ_COUNT")) of_each = std::atoi(given);
  std::printf("KILN_FUZZ_SEED=%#llx\n", static_cast<unsigned long long>(seed));
  std::mt19937_64 random(seed);
  std::ifstream counts(root_ / "counts");
  std::string function;
  for (long calls = 0; counts >> function >> calls;) {
    std::set<long> chosen;
    for (int i = 0; i < of_each && calls > 0; ++i)
      chosen.insert(1 + static_cast<long>(random() % static_cast<uint64_t>(calls)));
    int failed = 0;
    for (long call : chosen) {
      const std::string setting = "FAULT_AT=" + function + ":" + std::to_string(call);
      failed += check(function, setting);
      failed += check(function, setting + "+");
    }
    std::printf("%s: %ld calls, %zu of them failed, %d of %zu runs ended with an error\n", function.c_str(), calls,
                chosen.size(), failed, 2 * chosen.size());
  }
}

TEST_P(Faults, AFileThatMayNotGrowIsAnErrorOfItsWrite) {
  const Outcome r = run("sh -c 'ulimit -f 0; exec \"$@\"' sh");
  EXPECT_TRUE(WIFEXITED(r.status) && WEXITSTATUS(r.status) <= kMostCode) << r.status << "\n" << r.out;
}

INSTANTIATE_TEST_SUITE_P(
    Commands, Faults,
    ::testing::Values("run script.py < /dev/null",
                      "compile script.py --kernel add --signature '*fp32,*fp32,*fp32,i32' --constexpr "
                      "BLOCK=256 --target sm_90a --emit ptx -o out < /dev/null",
                      "< script.py"),
    [](const auto& command) {
      return std::string(std::array{"Script", "Compile", "Stdin"}[command.index]);
    });

}  // namespace
}  // namespace kiln
