#include "repl/shell/interrupts.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <ctime>

#include "repl/editor/terminal.h"

namespace kiln::repl {

namespace {

// Signal handlers can reach nothing else.
std::atomic<script::Session*> g_running{nullptr};
std::atomic<int> g_presses{0};
std::atomic<bool> g_ends_program{true};
std::atomic<int64_t> g_last_press_ms{0};
constexpr int64_t kOnePress_ms = 300;  // a key that is held repeats: what comes sooner is the same press
int g_idle[2] = {-1, -1};              // a byte per SIGINT between statements; never closed
std::atomic<int> g_exit_code{0};
struct sigaction g_before_running, g_before_idle;

void while_running(int) {
  script::Session* session = g_running.load();
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  const int64_t now_ms = int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000;
  const bool is_same = g_presses.load() > 0 && now_ms - g_last_press_ms.load() < kOnePress_ms;
  if (!is_same) g_last_press_ms = now_ms;
  const int presses = is_same ? g_presses.load() : ++g_presses;
  if (presses >= 4 && g_ends_program) {
    editor::restore_terminal();
    _exit(130);
  }
  if (presses == 3 && !is_same && g_ends_program) {
    constexpr char kText[] = "\nstill running; Ctrl-C once more ends kiln\n";
    [[maybe_unused]] ssize_t n = write(STDERR_FILENO, kText, sizeof kText - 1);
  }
  if (!session) return;
  if (presses >= 2 && g_ends_program)
    session->stop_statement();
  else
    session->interrupt();
}

/// Whether no other runs: one in a thread of its own, or the one around this.
bool claim(script::Session& session) {
  script::Session* none = nullptr;
  return g_running.compare_exchange_strong(none, &session);
}

void while_idle(int) {
  const int saved_errno = errno;
  [[maybe_unused]] const ssize_t n = write(g_idle[1], "", 1);  // full: the reader is woken anyway
  errno = saved_errno;
}

void while_ending(int) {
  editor::restore_terminal();
  _exit(g_exit_code);
}

void handle(void (*handler)(int), struct sigaction* before) {
  struct sigaction action {};
  action.sa_handler = handler;
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, before);
}

}  // namespace

InterruptGuard::InterruptGuard(script::Session& session, Interrupts interrupts, std::atomic<bool>* came)
    : is_active_(interrupts != Interrupts::kNone && claim(session)), came_(came) {
  if (!is_active_) return;
  listener_.emplace();
  g_presses = 0;
  g_ends_program = interrupts == Interrupts::kOfPrompt;
  handle(while_running, &g_before_running);
}

InterruptGuard::~InterruptGuard() {
  if (!is_active_) return;
  sigaction(SIGINT, &g_before_running, nullptr);
  if (came_ && g_presses > 0) *came_ = true;
  // One that came too late for this entry must not stop the next.
  g_running.exchange(nullptr)->forget_interrupt();
}

bool InterruptGuard::has_come() const { return is_active_ && g_presses > 0; }

IdleInterrupts::IdleInterrupts() {
  if (g_idle[0] < 0 && pipe2(g_idle, O_CLOEXEC | O_NONBLOCK) != 0) g_idle[0] = g_idle[1] = -1;
  handle(while_idle, &g_before_idle);
}

IdleInterrupts::~IdleInterrupts() {
  if (!ends_) sigaction(SIGINT, &g_before_idle, nullptr);
}

void IdleInterrupts::end_with(int exit_code) {
  g_exit_code = exit_code;
  handle(while_ending, nullptr);
  ends_ = true;
}

int IdleInterrupts::descriptor() { return g_idle[0]; }

void IdleInterrupts::forget() {
  char drained[64];
  while (g_idle[0] >= 0 && read(g_idle[0], drained, sizeof drained) > 0) {
  }
}

}  // namespace kiln::repl
