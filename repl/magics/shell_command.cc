// %sh and !: commands of the system's shell.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "repl/magics/magics.h"
#include "support/diag.h"
#include "support/environment.h"

namespace kiln::repl {

namespace {

constexpr const char* kShell = "/bin/sh";
constexpr int kLook_ms = 50;
constexpr size_t kMostOutput = size_t{256} << 20;

/// Starts `command`; its standard output is `output`, or Kiln's when that is negative.
Result<pid_t> start_shell(const std::string& command, int output) {
  char* argv[] = {const_cast<char*>(kShell), const_cast<char*>("-c"), const_cast<char*>(command.c_str()), nullptr};
  std::vector<std::string> variables = environment_list();
  std::vector<char*> given;
  for (std::string& v : variables) given.push_back(v.data());
  given.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  if (output >= 0) posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t defaults;
  sigemptyset(&defaults);
  for (int signal : {SIGINT, SIGQUIT, SIGXFSZ, SIGPIPE}) sigaddset(&defaults, signal);
  posix_spawnattr_setsigdefault(&attributes, &defaults);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
  pid_t child = 0;
  const int problem = posix_spawn(&child, kShell, &actions, &attributes, argv, given.data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (problem != 0) return error(ErrorKind::kIo, "cannot run {}: {}", kShell, std::strerror(problem));
  return child;
}

int wait_for(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

Status ended_well(int status) {
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGINT) return error(ErrorKind::kInterrupted, "interrupted");
  if (WIFSIGNALED(status))
    return error(ErrorKind::kIo, "the command was ended by signal {} ({})", WTERMSIG(status),
                 strsignal(WTERMSIG(status)));
  return {};
}

/// While one lives, Ctrl-C is the command's alone, as with system().
class CommandSignals {
 public:
  CommandSignals() {
    struct sigaction ignore {};
    ignore.sa_handler = SIG_IGN;
    sigemptyset(&ignore.sa_mask);
    sigaction(SIGINT, &ignore, &interrupt_);
    sigaction(SIGQUIT, &ignore, &quit_);
  }
  ~CommandSignals() {
    sigaction(SIGINT, &interrupt_, nullptr);
    sigaction(SIGQUIT, &quit_, nullptr);
  }
  CommandSignals(const CommandSignals&) = delete;
  CommandSignals& operator=(const CommandSignals&) = delete;

 private:
  struct sigaction interrupt_ {
  }, quit_{};
};

/// What the command writes to standard output. Ctrl-C ends the wait, also for what it left running behind.
Result<std::string> output_of(script::Session& session, const std::string& command, int& status) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return error(ErrorKind::kIo, "cannot open a pipe: {}", std::strerror(errno));
  auto child = start_shell(command, ends[1]);
  close(ends[1]);
  std::string text;
  bool stopped = !child.ok();
  while (!stopped) {
    // Another thread may take the signal: the wait looks for it by itself.
    pollfd reading{ends[0], POLLIN, 0};
    if (poll(&reading, 1, kLook_ms) <= 0) {
      stopped = session.is_interrupted();
      continue;
    }
    char bytes[1 << 14];
    const ssize_t n = read(ends[0], bytes, sizeof bytes);
    if (n > 0) text.append(bytes, static_cast<size_t>(n));
    if (n == 0 || (n < 0 && errno != EINTR)) break;
    stopped = session.is_interrupted() || text.size() > kMostOutput;
  }
  close(ends[0]);
  KILN_TRY(const pid_t pid, std::move(child));
  if (stopped) kill(pid, SIGINT);
  status = wait_for(pid);
  if (session.is_interrupted()) {
    session.forget_interrupt();
    return error(ErrorKind::kInterrupted, "interrupted");
  }
  if (stopped) return error(ErrorKind::kMemory, "the command wrote more than {} MB", kMostOutput >> 20);
  return text;
}

script::Value lines_of(std::string_view text) {
  auto lines = script::make<script::List>();
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    lines->items.push_back(script::Value::str(std::string(line)));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

}  // namespace

Status magic_sh(MagicContext& context, std::string_view arguments) {
  if (!context.may_run_shell)
    return error(ErrorKind::kUnsupported, "shell commands are off: Kiln was started with --no-shell");
  std::fflush(stdout);
  const std::string command(arguments);
  int status = 0;
  if (context.is_assigned) {
    KILN_TRY(const std::string text, output_of(context.session, command, status));
    KILN_CHECK_OK(ended_well(status));
    // As IPython has it: no error, for a grep that finds nothing is none.
    context.session.set_variable("_exit_code", script::Value::integer(WEXITSTATUS(status)));
    context.yield.value = lines_of(text);
    return {};
  }
  {
    CommandSignals signals;
    KILN_TRY(const pid_t child, start_shell(command, -1));
    status = wait_for(child);
  }
  KILN_CHECK_OK(ended_well(status));
  if (WEXITSTATUS(status) != 0)
    return error(ErrorKind::kIo, "the command ended with exit code {}", WEXITSTATUS(status));
  return {};
}

}  // namespace kiln::repl
