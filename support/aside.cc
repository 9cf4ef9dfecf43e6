#include "support/aside.h"

#include <pthread.h>
#include <signal.h>

#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "kiln/interrupt.h"
#include "support/stop.h"

namespace kiln {
namespace {

using namespace std::chrono_literals;

constexpr auto kBetweenLooks = 5ms;  // for Ctrl-C

std::atomic<int> left{0};

struct Job {
  std::function<void()> work;
  std::mutex mutex;
  std::condition_variable ended;
  bool is_done = false, is_left = false;
  std::exception_ptr thrown;

  void run() {
    try {
      work();
    } catch (...) {
      thrown = std::current_exception();
    }
    work = {};  // what it owns goes before the process may end
    std::lock_guard lock(mutex);
    is_done = true;
    if (is_left) --left;
    ended.notify_all();
  }

  /// False: Ctrl-C came first.
  bool wait() {
    std::unique_lock lock(mutex);
    while (!ended.wait_for(lock, kBetweenLooks, [this] { return is_done; })) {
      if (!interrupt_requested()) continue;
      is_left = true;
      ++left;
      return false;
    }
    return true;
  }
};

void wait_at_exit() {
  while (left > 0) std::this_thread::sleep_for(kBetweenLooks);
}

}  // namespace

void run_on_thread(std::function<void()> work) {
  sigset_t of_others, before;
  sigfillset(&of_others);
  for (const int own : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) sigdelset(&of_others, own);
  pthread_sigmask(SIG_BLOCK, &of_others, &before);
  bool has_thread = true;
  try {
    std::thread(work).detach();
  } catch (const std::exception&) {  // no thread to be had, or no memory for one
    has_thread = false;
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (!has_thread) work();
}

bool run_aside(std::function<void()> work) {
  if (!InterruptListener::any()) {
    work();
    return true;
  }
  if (interrupt_requested()) return false;
  static const int registered = std::atexit(wait_at_exit);
  (void)registered;
  auto job = std::make_shared<Job>();
  job->work = std::move(work);
  run_on_thread([job] { job->run(); });
  if (!job->wait()) return false;
  if (job->thrown) std::rethrow_exception(job->thrown);
  return true;
}

int work_left_aside() { return left; }

}  // namespace kiln
