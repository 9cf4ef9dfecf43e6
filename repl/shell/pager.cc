#include "repl/shell/pager.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdio>
#include <string>
#include <vector>

#include "support/environment.h"
#include "support/knobs.h"
#include "support/text.h"
#include "support/text_width.h"

namespace kiln::repl {

namespace {

constexpr int kNotFound = 127;  // a shell's exit code when it knows no such program
constexpr const char* kLess = "command -v less >/dev/null || exit 127; exec less -FRX";

std::string pager_command() {
  if (std::string own = knob(Knob::kPager); !own.empty()) return own;
  if (auto common = environment("PAGER"); common && !common->empty()) return *common;
  return kLess;
}

/// While one lives, Ctrl-C and a pager that ends early are the pager's affair.
class PagerSignals {
 public:
  PagerSignals() {
    struct sigaction ignore {};
    ignore.sa_handler = SIG_IGN;
    sigemptyset(&ignore.sa_mask);
    sigaction(SIGINT, &ignore, &interrupt_);
    sigaction(SIGPIPE, &ignore, &pipe_);
  }
  ~PagerSignals() {
    sigaction(SIGINT, &interrupt_, nullptr);
    sigaction(SIGPIPE, &pipe_, nullptr);
  }
  PagerSignals(const PagerSignals&) = delete;
  PagerSignals& operator=(const PagerSignals&) = delete;

 private:
  struct sigaction interrupt_ {
  }, pipe_{};
};

/// Its standard input is the reading end; -1 when it cannot be started.
pid_t start(const std::string& command, int reading, bool may_run_shell) {
  std::vector<std::string> variables = environment_list();
  if (!may_run_shell) {
    std::erase_if(variables, [](const std::string& v) { return v.starts_with("LESSSECURE"); });
    variables.emplace_back("LESSSECURE=1");
  }
  if (!environment("LESS")) variables.emplace_back("LESS=FRX");  // for a PAGER=less
  std::vector<char*> env;
  for (std::string& v : variables) env.push_back(v.data());
  env.push_back(nullptr);
  std::string shell = "sh", option = "-c", text = command;
  char* argv[] = {shell.data(), option.data(), text.data(), nullptr};
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&actions);
  posix_spawnattr_init(&attributes);
  posix_spawn_file_actions_adddup2(&actions, reading, STDIN_FILENO);
  sigset_t defaults;
  sigemptyset(&defaults);
  sigaddset(&defaults, SIGINT);
  sigaddset(&defaults, SIGPIPE);
  posix_spawnattr_setsigdefault(&attributes, &defaults);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
  pid_t pid = -1;
  const int failed = posix_spawn(&pid, "/bin/sh", &actions, &attributes, argv, env.data());
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  return failed ? -1 : pid;
}

void write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = write(fd, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return;  // the user has seen enough
    text.remove_prefix(static_cast<size_t>(n));
  }
}

/// The text without its escape sequences, which take no room.
std::string without_escapes(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\033' && i + 1 < text.size() && text[i + 1] == '[')
      i = std::min(text.find_first_not_of("0123456789;", i + 2), text.size());
    else
      out += text[i];
  }
  return out;
}

}  // namespace

bool can_page() {
  const std::string term = environment("TERM").value_or("");
  return isatty(STDIN_FILENO) && isatty(STDOUT_FILENO) && !term.empty() && term != "dumb" && knob(Knob::kPager) != "0";
}

int lines_on_screen(std::string_view text, int columns) {
  const std::string plain = without_escapes(text);
  int lines = 0;
  for (size_t at = 0; at < plain.size(); ++lines) {
    const size_t end = std::min(plain.find('\n', at), plain.size());
    const int width = text_width(std::string_view(plain).substr(at, end - at));
    if (columns > 0 && width > columns) lines += (width - 1) / columns;
    at = end + 1;
  }
  return lines;
}

bool is_less_alone(std::string_view command) {
  if (command == kLess) return true;
  command = trimmed(command);
  const std::string_view program = command.substr(0, command.find(' '));
  const bool is_less = program == "less" || program == "/usr/bin/less" || program == "/bin/less";
  return is_less && std::ranges::all_of(command, [](char c) {
           return std::isalnum(static_cast<unsigned char>(c)) ||
                  std::string_view(" -+/.,_=%").find(c) != std::string_view::npos;
         });
}

bool page(std::string_view text, bool may_run_shell) {
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_row == 0) return false;
  // The prompt takes a line too.
  if (lines_on_screen(text, size.ws_col) < size.ws_row) return false;
  const std::string command = pager_command();
  if (!may_run_shell && !is_less_alone(command)) return false;
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return false;
  std::fflush(stdout);
  PagerSignals signals;
  const pid_t pid = start(command, ends[0], may_run_shell);
  close(ends[0]);
  if (pid > 0) write_all(ends[1], text);
  close(ends[1]);
  if (pid < 0) return false;
  int status = 0;
  while (waitpid(pid, &status, 0) < 0)
    if (errno != EINTR) return true;
  return !(WIFEXITED(status) && WEXITSTATUS(status) == kNotFound);
}

}  // namespace kiln::repl
