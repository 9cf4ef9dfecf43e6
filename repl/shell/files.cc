#include "repl/shell/files.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "support/diag.h"
#include "support/files.h"

namespace kiln::repl {

namespace {

Result<std::string> read_stdin() {
  if (::isatty(STDIN_FILENO))
    std::fputs("the program, line by line: Ctrl-D behind its end runs it, Ctrl-C gives it up\n", stderr);
  std::string text;
  char buffer[1 << 16];
  while (size_t n = std::fread(buffer, 1, sizeof buffer, stdin)) {
    text.append(buffer, n);
    // A pipe has no end that could be asked for.
    if (text.size() > kLargestFile)
      return error(ErrorKind::kIo, "cannot read standard input: {}", std::strerror(EFBIG));
    if (std::feof(stdin)) break;  // a terminal would be read again
  }
  const int failed = std::ferror(stdin) ? errno : 0;
  std::clearerr(stdin);  // on a terminal, what is read next is there all the same
  if (failed == EINTR) return error(ErrorKind::kInterrupted, "interrupted");
  if (failed) return error(ErrorKind::kIo, "cannot read standard input: {}", std::strerror(failed));
  return text;
}

}  // namespace

Result<std::string> read_text(const std::string& path) {
  KILN_TRY(std::string text, path == "-" ? read_stdin() : read_file(path));
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
  // As some editors write it; Python skips it, too.
  if (text.starts_with(kByteOrderMark)) text.erase(0, kByteOrderMark.size());
  return text;
}

void keep_standard_streams() {
  for (int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (fcntl(fd, F_GETFD) < 0 && errno == EBADF) [[maybe_unused]]
      // The other direction: reading a closed stdin and writing to a closed stdout fail as before.
      int taken = open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

void put(std::FILE* stream, std::string_view text) { std::fwrite(text.data(), 1, text.size(), stream); }

Status finish_output() {
  // A stream knows that it failed, and not why.
  errno = 0;
  const bool flushed = std::fflush(stdout) == 0;
  if (flushed && !std::ferror(stdout)) return {};
  return error(ErrorKind::kIo, "cannot write to standard output: {}",
               errno ? std::strerror(errno) : "some text was lost");
}

std::string state_folder() {
  const char *state = std::getenv("XDG_STATE_HOME"), *home = std::getenv("HOME");
  std::string folder;
  if (state && *state)
    folder = std::string(state) + "/kiln";
  else if (home && *home)
    folder = std::string(home) + "/.local/state/kiln";
  else
    return {};
  // A failure is told by who writes into it, with its reason.
  [[maybe_unused]] const Status made = make_directories(folder);
  return folder;
}

}  // namespace kiln::repl
