#include "python/src/sigint.h"

#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>

#include "kiln/interrupt.h"

namespace kiln::python {

namespace {

// How long a launch may run before SIGINT is taken. Taking it takes two system calls, which cost as much as a launch;
// so a thread looks at the launches of the main thread now and then, and does it for those that last.
constexpr std::chrono::milliseconds kPoll{10};
constexpr int kPollsToSleep = 100;

// The launch of the main thread: its number, and these bits.
constexpr uint64_t kRuns = 1, kTaken = 2, kNext = 4;

struct Watch {
  std::atomic<uint64_t> launch{0};
  std::atomic<bool> started{false}, sleeps{false};
  std::mutex taking;
  struct sigaction before {};
  std::atomic<bool> interrupted{false};
};
// Never destroyed, since its thread outlives main().
Watch& watch() {
  static auto& one = *new Watch;
  return one;
}

void on_sigint(int signal, siginfo_t* info, void* context) {
  Watch& w = watch();
  w.interrupted.store(true);
  request_interrupt();
  if (w.before.sa_flags & SA_SIGINFO)
    w.before.sa_sigaction(signal, info, context);
  else
    w.before.sa_handler(signal);
}

/// Takes SIGINT for a launch that still runs. Where nobody handles it, it ends the process as ever.
void take(Watch& w, uint64_t launch) {
  std::lock_guard lock(w.taking);
  struct sigaction now {};
  if (sigaction(SIGINT, nullptr, &now) != 0) return;
  if (!(now.sa_flags & SA_SIGINFO) && (now.sa_handler == SIG_DFL || now.sa_handler == SIG_IGN)) return;
  if (!w.launch.compare_exchange_strong(launch, launch | kTaken)) return;
  w.before = now;
  struct sigaction ours {};
  ours.sa_sigaction = on_sigint;
  ours.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigemptyset(&ours.sa_mask);
  sigaction(SIGINT, &ours, nullptr);
}

void poll_launches(Watch& w) {
  uint64_t seen = 0;
  for (int idle = 0;;) {
    std::this_thread::sleep_for(kPoll);
    const uint64_t now = w.launch.load();
    if (now == seen && (now & kRuns) && !(now & kTaken)) take(w, now);
    idle = now == seen && !(now & kRuns) ? idle + 1 : 0;
    seen = now;
    if (idle < kPollsToSleep) continue;
    w.sleeps.store(true);
    // A launch that began before that has not seen it.
    if (w.launch.load() != seen) w.sleeps.store(false);
    w.sleeps.wait(true);
    idle = 0;
  }
}

void start(Watch& w) {
  static std::once_flag once;
  std::call_once(once, [] {
    // A child has no such thread, and perhaps a launch that was another thread's.
    pthread_atfork(nullptr, nullptr, [] {
      Watch& child = watch();
      if (child.launch.exchange(0) & kTaken) sigaction(SIGINT, &child.before, nullptr);
      child.started.store(false);
      child.sleeps.store(false);
      new (&child.taking) std::mutex;
    });
  });
  w.started.store(true);
  // Signals of the process are for its other threads.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    std::thread([&w] { poll_launches(w); }).detach();
  } catch (const std::system_error&) {  // NOLINT(bugprone-empty-catch)
    // The system has no thread for it: launches run to their end.
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

bool is_main_thread() { return syscall(SYS_gettid) == getpid(); }

}  // namespace

SigintScope::SigintScope() {
  thread_local const bool is_main = is_main_thread();
  on_main_thread_ = is_main;
  if (!on_main_thread_) return;
  Watch& w = watch();
  if (!w.started.load(std::memory_order_relaxed)) start(w);
  w.launch.store((w.launch.load(std::memory_order_relaxed) & ~(kRuns | kTaken)) + kNext + kRuns);
  if (w.sleeps.load()) w.sleeps.store(false), w.sleeps.notify_one();
}

SigintScope::~SigintScope() {
  if (!on_main_thread_) return;
  Watch& w = watch();
  uint64_t launch = w.launch.load(std::memory_order_relaxed);
  if (!(launch & kTaken) && w.launch.compare_exchange_strong(launch, launch & ~kRuns)) return;
  std::lock_guard lock(w.taking);
  sigaction(SIGINT, &w.before, nullptr);
  w.launch.store(launch & ~(kRuns | kTaken));
  if (w.interrupted.exchange(false)) clear_interrupt();
}

void check_launch(const Status& status) {
  if (status.ok()) return;
  if (status.error().kind != ErrorKind::kInterrupted) raise(status.error());
  if (PyErr_CheckSignals() == 0) PyErr_SetString(PyExc_KeyboardInterrupt, status.error().message.c_str());
  throw Raised();
}

}  // namespace kiln::python
