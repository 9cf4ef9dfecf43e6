#include "repl/shell/interrupts.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>

namespace kiln::repl {

namespace {

// Signal handlers can reach nothing else.
std::atomic<script::Session*> g_running{nullptr};
std::atomic<int> g_presses{0};
int g_idle[2] = {-1, -1};  // a byte per SIGINT between statements; never closed
struct sigaction g_before_running, g_before_idle;

void while_running(int) {
  script::Session* session = g_running.load();
  int presses = ++g_presses;
  if (presses >= 3) _exit(130);
  if (presses == 2) {
    constexpr char kText[] = "\nstill running; Ctrl-C once more ends kiln\n";
    [[maybe_unused]] ssize_t n = write(STDERR_FILENO, kText, sizeof kText - 1);
  }
  if (session) session->interrupt();
}

void while_idle(int) {
  const int saved_errno = errno;
  [[maybe_unused]] const ssize_t n = write(g_idle[1], "", 1);  // full: the reader is woken anyway
  errno = saved_errno;
}

void handle(void (*handler)(int), struct sigaction* before) {
  struct sigaction action {};
  action.sa_handler = handler;
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, before);
}

}  // namespace

InterruptGuard::InterruptGuard(script::Session& session) : is_outermost_(!g_running.load()) {
  if (!is_outermost_) return;
  g_presses = 0;
  g_running = &session;
  handle(while_running, &g_before_running);
}

InterruptGuard::~InterruptGuard() {
  if (!is_outermost_) return;
  sigaction(SIGINT, &g_before_running, nullptr);
  // One that came too late for this entry must not stop the next.
  g_running.exchange(nullptr)->forget_interrupt();
}

IdleInterrupts::IdleInterrupts() {
  if (g_idle[0] < 0 && pipe2(g_idle, O_CLOEXEC | O_NONBLOCK) != 0) g_idle[0] = g_idle[1] = -1;
  handle(while_idle, &g_before_idle);
}

IdleInterrupts::~IdleInterrupts() { sigaction(SIGINT, &g_before_idle, nullptr); }

int IdleInterrupts::descriptor() { return g_idle[0]; }

void IdleInterrupts::forget() {
  char drained[64];
  while (g_idle[0] >= 0 && read(g_idle[0], drained, sizeof drained) > 0) {
  }
}

}  // namespace kiln::repl
