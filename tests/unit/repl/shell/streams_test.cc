// The program's standard streams when they are full, closed or odd. Each case is a process of its own.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "repl/shell/cli.h"
#include "repl/shell/files.h"
#include "support/files.h"

namespace kiln::repl {
namespace {

template <class... Words>
[[noreturn]] void exec(Words... words) {
  const char* argv[] = {"kiln", words...};
  std::exit(run(static_cast<int>(std::size(argv)), argv));
}

std::string scratch_folder() {
  char name[] = "/tmp/kiln_streams_XXXXXX";
  return mkdtemp(name);
}

TEST(Streams, LostOutputIsAnError) {
  for (const char* code : {"print(1)", "for i in range(20000): print(i)"})
    EXPECT_EXIT(
        {
          std::freopen("/dev/full", "w", stdout);
          exec("-c", code);
        },
        testing::ExitedWithCode(1), "error: cannot write to standard output: No space left on device")
        << code;
  EXPECT_EXIT(
      {
        std::freopen("/dev/full", "w", stdout);
        exec("env");
      },
      testing::ExitedWithCode(1), "error: cannot write to standard output: No space left on device");
}

TEST(Streams, AnotherErrorKeepsItsExitCode) {
  EXPECT_EXIT(
      {
        std::freopen("/dev/full", "w", stdout);
        exec("-c", "print(1)\nimport sys\nsys.exit(7)");
      },
      testing::ExitedWithCode(7), "cannot write to standard output");
}

// Without care the next file that is opened would be number 1, and print would write into it.
TEST(Streams, AClosedOutputIsNoFileOfOurs) {
  EXPECT_EXIT(
      {
        close(STDOUT_FILENO);
        keep_standard_streams();
        if (open("/dev/null", O_WRONLY) == STDOUT_FILENO) std::exit(100);
        exec("-c", "print(1)");
      },
      testing::ExitedWithCode(1), "error: cannot write to standard output: Bad file descriptor");
}

TEST(Streams, AClosedInputIsAnError) {
  EXPECT_EXIT(
      {
        close(STDIN_FILENO);
        exec();
      },
      testing::ExitedWithCode(2), "error: cannot read standard input: Bad file descriptor");
}

TEST(Streams, ScriptsReadStandardInput) {
  const std::string path = scratch_folder() + "/numbers";
  ASSERT_TRUE(write_file_atomic(path, "first line\n1\n2\r\nend").ok());
  constexpr const char* kProgram = R"(
import sys
first = input("? ")
lines = [next(sys.stdin)] + list(sys.stdin)
try:
    input()
except EOFError as e:
    ended = sys.stdin.read() == "" and sys.stdin.readline() == ""
print([first] + lines, ended, sys.stdin.isatty(), file=sys.stderr)
sys.exit(0 if [first] + lines == ["first line", "1\n", "2\n", "end"] and ended else 1)
)";
  EXPECT_EXIT(
      {
        if (!std::freopen(path.c_str(), "r", stdin)) std::exit(100);
        exec("-c", kProgram);
      },
      testing::ExitedWithCode(0), "True False");
  // The program itself was all of it.
  ASSERT_TRUE(write_file_atomic(path, "import sys\nprint(repr(sys.stdin.read()), file=sys.stderr)\n").ok());
  EXPECT_EXIT(
      {
        if (!std::freopen(path.c_str(), "r", stdin)) std::exit(100);
        exec("-");
      },
      testing::ExitedWithCode(0), "''");
}

TEST(ReadText, LeavesTheByteOrderMarkOut) {
  std::string path = scratch_folder() + "/bom.py";
  ASSERT_TRUE(write_file_atomic(path, "\xef\xbb\xbfprint(1)\r\n").ok());
  auto text = read_text(path);
  ASSERT_TRUE(text.ok());
  EXPECT_EQ(*text, "print(1)\r\n");
}

}  // namespace
}  // namespace kiln::repl
