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

// SIGINT is taken at the first launch, and stays so until the program sets a handler of its own. Whether it has would
// take a system call for each launch, which costs as much as half of one; so a thread looks now and then, while a
// launch runs. Only a signal in between, in the first milliseconds of a launch, finds Python's handler alone.
constexpr std::chrono::milliseconds kPoll{10};
constexpr int kPollsToSleep = 100;

// The launch of the main thread: its number, and these bits.
constexpr uint64_t kRuns = 1, kLocked = 2, kNext = 4;

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
  if (w.launch.load() & kRuns) {
    request_interrupt();
    w.interrupted.store(true);
  }
  if (w.before.sa_flags & SA_SIGINFO)
    w.before.sa_sigaction(signal, info, context);
  else
    w.before.sa_handler(signal);
}

/// Where nobody handles SIGINT, it ends the process as ever.
void take(Watch& w) {
  struct sigaction now {};
  if (sigaction(SIGINT, nullptr, &now) != 0 || (now.sa_flags & static_cast<int>(SA_RESETHAND))) return;
  const bool has_info = now.sa_flags & SA_SIGINFO;
  if (has_info && now.sa_sigaction == on_sigint) return;
  if (!has_info && (now.sa_handler == SIG_DFL || now.sa_handler == SIG_IGN)) return;
  w.before = now;
  struct sigaction ours = now;
  ours.sa_sigaction = on_sigint;
  ours.sa_flags |= SA_SIGINFO;
  sigaction(SIGINT, &ours, nullptr);
}

/// take(), unless the launch ends meanwhile: then the program may be setting a handler.
void take_while(Watch& w, uint64_t launch) {
  std::lock_guard lock(w.taking);
  if (!w.launch.compare_exchange_strong(launch, launch | kLocked)) return;
  take(w);
}

void poll_launches(Watch& w) {
  uint64_t seen = 0;
  for (int idle = 0;;) {
    std::this_thread::sleep_for(kPoll);
    const uint64_t now = w.launch.load();
    if ((now & kRuns) && !(now & kLocked)) take_while(w, now);
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
      child.launch.store(0);
      child.started.store(false);
      child.sleeps.store(false);
      new (&child.taking) std::mutex;
    });
  });
  w.started.store(true);
  take(w);
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
  const uint64_t launch = (w.launch.load(std::memory_order_relaxed) & ~(kRuns | kLocked)) + kNext + kRuns;
  // What came before that ended no launch. The handler may set another, and launch.
  w.launch.store(launch | kLocked);
  const bool raised = PyErr_CheckSignals() < 0;
  w.launch.store(launch);
  if (raised) {
    end();
    throw Raised();
  }
  if (w.sleeps.load()) w.sleeps.store(false), w.sleeps.notify_one();
}

SigintScope::~SigintScope() {
  if (on_main_thread_) end();
}

void SigintScope::end() {
  Watch& w = watch();
  uint64_t launch = w.launch.load(std::memory_order_relaxed);
  if ((launch & kLocked) || !w.launch.compare_exchange_strong(launch, launch & ~kRuns)) {
    std::lock_guard lock(w.taking);
    w.launch.store(w.launch.load() & ~(kRuns | kLocked));
  }
  if (w.interrupted.load(std::memory_order_relaxed) && w.interrupted.exchange(false)) clear_interrupt();
}

void check_launch(const Status& status) {
  if (status.ok()) return;
  if (status.error().kind != ErrorKind::kInterrupted) raise(status.error());
  if (PyErr_CheckSignals() == 0) PyErr_SetString(PyExc_KeyboardInterrupt, status.error().message.c_str());
  throw Raised();
}

}  // namespace kiln::python
