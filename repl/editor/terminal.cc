#include "repl/editor/terminal.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>

#include "support/diag.h"

namespace kiln::editor {

namespace {

// Bracketed paste: the terminal marks what is pasted.
constexpr std::string_view kEnter = "\033[?2004h";
constexpr std::string_view kLeave = "\033[?2004l\033[0m";

// Signal handlers reach nothing else. Written before g_raw is set, and read only while it is.
termios g_before;
int g_input = -1, g_output = -1;
std::atomic<bool> g_raw{false};
std::atomic<bool> g_quiet{false};  // standard input does not echo
int g_wake[2] = {-1, -1};          // a byte per signal that wakes the wait; never closed

// A process that is not in front must leave the terminal to the one that is (and would be stopped if it did not).
bool is_in_front(int fd) {
  const pid_t front = tcgetpgrp(fd);
  return front < 0 || front == getpgrp();
}

enum class SignalKind { kWakes, kEnds, kFault };
struct Handled {
  int number;
  SignalKind kind;
  Terminal::Wake wake;
};
constexpr Handled kHandled[] = {
    {SIGWINCH, SignalKind::kWakes, Terminal::Wake::kResize}, {SIGCONT, SignalKind::kWakes, Terminal::Wake::kResume},
    {SIGTSTP, SignalKind::kWakes, Terminal::Wake::kSuspend}, {SIGINT, SignalKind::kWakes, Terminal::Wake::kInterrupt},
    {SIGTERM, SignalKind::kEnds, Terminal::Wake::kClosed},   {SIGHUP, SignalKind::kEnds, Terminal::Wake::kClosed},
    {SIGQUIT, SignalKind::kEnds, Terminal::Wake::kClosed},   {SIGABRT, SignalKind::kEnds, Terminal::Wake::kClosed},
    {SIGSEGV, SignalKind::kFault, Terminal::Wake::kClosed},  {SIGBUS, SignalKind::kFault, Terminal::Wake::kClosed},
    {SIGFPE, SignalKind::kFault, Terminal::Wake::kClosed},   {SIGILL, SignalKind::kFault, Terminal::Wake::kClosed},
};
struct sigaction g_previous[std::size(kHandled)];

void on_signal(int number, siginfo_t* info, void*) {
  const int saved_errno = errno;
  for (size_t i = 0; i < std::size(kHandled); ++i) {
    const Handled& handled = kHandled[i];
    if (handled.number != number) continue;
    if (handled.kind == SignalKind::kWakes) {
      const char wake = static_cast<char>(handled.wake);
      [[maybe_unused]] const ssize_t n = write(g_wake[1], &wake, 1);  // full: the reader is woken anyway
      break;
    }
    restore_terminal();
    // What was there before acts next: on return a fault happens again, and others are sent again.
    sigaction(number, &g_previous[i], nullptr);
    const bool faulted = handled.kind == SignalKind::kFault && info->si_code > 0;
    if (!faulted) raise(number);
    break;
  }
  errno = saved_errno;
}

Status terminal_error(const char* what) {
  return error(ErrorKind::kIo, "cannot {} the terminal: {}", what, std::strerror(errno));
}

/// To the whole group, as the terminal does it: what was started together stops together. Goes on here when it goes on.
void stop_group(int signal) {
  constexpr int kUntilStoppedMs = 20;  // another thread may be the one that takes the signal
  kill(0, signal);
  poll(nullptr, 0, kUntilStoppedMs);
}

Status set_up_wakes() {
  if (g_wake[0] >= 0) return {};
  return pipe2(g_wake, O_CLOEXEC | O_NONBLOCK) == 0 ? Status{} : terminal_error("watch");
}

void install_handlers() {
  for (size_t i = 0; i < std::size(kHandled); ++i) {
    struct sigaction action {};
    action.sa_sigaction = on_signal;
    sigfillset(&action.sa_mask);
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigaction(kHandled[i].number, nullptr, &g_previous[i]);
    // What whoever started us chose to ignore (nohup) stays ignored.
    const bool ends = kHandled[i].kind == SignalKind::kEnds;
    if (ends && !(g_previous[i].sa_flags & SA_SIGINFO) && g_previous[i].sa_handler == SIG_IGN) continue;
    sigaction(kHandled[i].number, &action, nullptr);
  }
}

void remove_handlers() {
  for (size_t i = 0; i < std::size(kHandled); ++i) sigaction(kHandled[i].number, &g_previous[i], nullptr);
  char drained[64];
  while (read(g_wake[0], drained, sizeof drained) > 0) {
  }
}

}  // namespace

namespace {

/// Changes whether standard input echoes; false: it did not need to, or it cannot be known.
bool set_echo(bool wanted) {
  termios modes;
  if (!is_in_front(STDIN_FILENO) || tcgetattr(STDIN_FILENO, &modes) != 0) return false;
  if (((modes.c_lflag & ECHO) != 0) == wanted) return false;
  modes.c_lflag ^= static_cast<tcflag_t>(ECHO);
  return tcsetattr(STDIN_FILENO, TCSANOW, &modes) == 0;
}

}  // namespace

QuietKeys::QuietKeys() {
  if (g_quiet || !isatty(STDIN_FILENO) || !set_echo(false)) return;
  g_quiet = is_outermost_ = true;
}

QuietKeys::~QuietKeys() {
  if (is_outermost_ && g_quiet.exchange(false)) set_echo(true);
}

void restore_terminal() {
  if (g_quiet.exchange(false)) set_echo(true);
  if (!g_raw.exchange(false) || !is_in_front(g_input)) return;
  [[maybe_unused]] const ssize_t n = write(g_output, kLeave.data(), kLeave.size());
  tcsetattr(g_input, TCSANOW, &g_before);
}

Status Terminal::enter() {
  if (entered_) return {};
  KILN_CHECK_OK(set_up_wakes());
  // In the background these would be another program's modes: stop until this one is in front.
  if (!is_in_front(input_)) stop_group(SIGTTIN);
  if (tcgetattr(input_, &g_before) != 0) return terminal_error("read the modes of");
  termios raw = g_before;
  // Keys come at once and unchanged, Ctrl-C and Ctrl-Z too; what is written passes as before.
  raw.c_iflag &= ~static_cast<tcflag_t>(BRKINT | ICRNL | INLCR | IGNCR | INPCK | ISTRIP | IXON);
  raw.c_lflag &= ~static_cast<tcflag_t>(ECHO | ICANON | IEXTEN | ISIG);
  raw.c_cflag |= CS8;
  raw.c_cc[VMIN] = 1;
  raw.c_cc[VTIME] = 0;
  g_input = input_, g_output = output_;
  install_handlers();
  entered_ = true;
  g_raw = true;
  if (tcsetattr(input_, TCSADRAIN, &raw) != 0) {
    Status failed = terminal_error("set the modes of");
    leave();
    return failed;
  }
  write(kEnter);
  return {};
}

void Terminal::leave() {
  if (!entered_) return;
  entered_ = false;
  if (g_raw && is_in_front(input_)) {
    write(kLeave);
    tcsetattr(input_, TCSADRAIN, &g_before);
  }
  g_raw = false;  // only now: a signal in between restores once more, which is better than not at all
  remove_handlers();
}

Terminal::Wake Terminal::wait(int timeout_ms, std::string& bytes) {
  for (;;) {
    pollfd watched[] = {{input_, POLLIN, 0}, {g_wake[0], POLLIN, 0}};
    const int ready = poll(watched, 2, timeout_ms);
    if (ready < 0 && errno == EINTR) continue;
    if (ready < 0) return Wake::kClosed;
    if (ready == 0) return Wake::kTimeout;
    if (watched[1].revents) {
      char wake = 0;
      if (read(g_wake[0], &wake, 1) == 1) return static_cast<Wake>(wake);
      continue;
    }
    char buffer[4096];
    const ssize_t n = read(input_, buffer, sizeof buffer);
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (n <= 0) return Wake::kClosed;
    bytes.assign(buffer, static_cast<size_t>(n));
    return Wake::kInput;
  }
}

bool Terminal::has_input() const {
  pollfd watched{input_, POLLIN, 0};
  return poll(&watched, 1, 0) == 1 && (watched.revents & POLLIN);
}

Status Terminal::suspend() {
  leave();
  stop_group(SIGTSTP);
  return enter();
}

bool Terminal::write(std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = ::write(output_, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) {
      pollfd watched{output_, POLLOUT, 0};
      poll(&watched, 1, -1);
      continue;
    }
    if (n <= 0) return false;
    text.remove_prefix(static_cast<size_t>(n));
  }
  return true;
}

TerminalSize Terminal::size() const {
  winsize given{};
  TerminalSize size;
  if (ioctl(output_, TIOCGWINSZ, &given) != 0) return size;
  if (given.ws_row > 0) size.rows = given.ws_row;
  if (given.ws_col > 0) size.columns = given.ws_col;
  return size;
}

}  // namespace kiln::editor
