#include "support/faults.h"

#include <fmt/format.h>
#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <ucontext.h>
#include <unistd.h>

#include <atomic>
#include <exception>
#include <mutex>
#include <new>

#include "kiln/faults.h"

namespace kiln::faults {
namespace {

constexpr int kSignals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL};
constexpr size_t kStackBytes = 64 << 10;  // a frame with AVX-512 and AMX state takes 12 KiB

/// Where a fault of this thread goes on.
struct Landing {
  sigjmp_buf buffer;
  Fault fault;
};

thread_local Landing* landing = nullptr;
thread_local int unguarded = 0;
std::atomic<bool> installed{false};
std::atomic<void (*)()> last_act{nullptr};

/// A handler needs a stack when the thread's own has run out.
class OwnStack {
 public:
  OwnStack() {
    void* memory = mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return;  // the handler runs on the thread's stack then
    memory_ = memory;
    stack_t stack{};
    stack.ss_sp = memory;
    stack.ss_size = kStackBytes;
    sigaltstack(&stack, nullptr);
  }
  ~OwnStack() {
    if (!memory_) return;
    stack_t none{};
    none.ss_flags = SS_DISABLE;
    sigaltstack(&none, nullptr);
    munmap(memory_, kStackBytes);
  }

 private:
  void* memory_ = nullptr;
};

void give_own_stack() { thread_local OwnStack stack; }

Fault read_fault(int signal, const siginfo_t& info, const ucontext_t& context) {
  Fault fault;
  fault.signal = signal;
#if defined(__x86_64__)
  fault.code_at = static_cast<uintptr_t>(context.uc_mcontext.gregs[REG_RIP]);
  if (signal == SIGSEGV && info.si_code != SI_KERNEL)  // SI_KERNEL: no canonical address, and nothing is said of it
    fault.access = context.uc_mcontext.gregs[REG_ERR] & 2 ? Fault::Access::kWrite : Fault::Access::kRead;
#elif defined(__aarch64__)
  fault.code_at = context.uc_mcontext.pc;
#endif
  if (signal == SIGSEGV || signal == SIGBUS) fault.address = reinterpret_cast<uintptr_t>(info.si_addr);
  return fault;
}

void put(const char* text) { [[maybe_unused]] ssize_t n = write(STDERR_FILENO, text, strlen(text)); }

void put_hex(uintptr_t value) {
  char text[2 + 2 * sizeof value + 1];
  char* at = text + sizeof text;
  *--at = 0;
  do *--at = "0123456789abcdef"[value % 16];
  while (value /= 16);
  *--at = 'x', *--at = '0';
  put(at);
}

const char* what_of(int signal) {
  switch (signal) {
    case SIGSEGV:
      return "an access to memory that is not there (SIGSEGV)";
    case SIGBUS:
      return "an access to memory that has gone (SIGBUS)";
    case SIGFPE:
      return "an integer division that has no result (SIGFPE)";
    default:
      return "an instruction that this CPU does not have (SIGILL)";
  }
}

/// Only calls that a signal handler may make.
[[noreturn]] void end_by_signal(const Fault& fault, const ucontext_t& context) {
  if (auto act = last_act.load()) act();
  put("\nkiln: ended by ");
  put(what_of(fault.signal));
#if defined(__x86_64__)
  const auto stack = static_cast<uintptr_t>(context.uc_mcontext.gregs[REG_RSP]);
  constexpr uintptr_t kNear = 64 << 10;
  if (fault.signal == SIGSEGV && fault.address + kNear > stack && fault.address < stack + kNear)
    put(": the stack has run out");
#else
  (void)context;
#endif
  if (fault.address) put(" at "), put_hex(fault.address);
  put(", in code at "), put_hex(fault.code_at);
  put(".\nThis is a bug of Kiln, or a kernel wrote into its memory earlier: --check, or a launch with check=True, "
      "finds "
      "such a write.\n");
  signal(fault.signal, SIG_DFL);
  raise(fault.signal);
  _exit(128 + fault.signal);
}

void on_fault(int signal, siginfo_t* info, void* context) {
  const auto& machine = *static_cast<ucontext_t*>(context);
  const Fault fault = read_fault(signal, *info, machine);
  if (!landing || unguarded > 0) end_by_signal(fault, machine);
  landing->fault = fault;
  siglongjmp(landing->buffer, 1);
}

/// What handled the signals before catch_kernel_faults().
struct sigaction handlers_before[std::size(kSignals)];

/// A fault of code that is not ours, or of ours: as if we were not here.
void hand_on(int signal, siginfo_t* info, void* context) {
  size_t at = 0;
  while (kSignals[at] != signal) ++at;
  const struct sigaction& before = handlers_before[at];
  if (before.sa_flags & SA_SIGINFO) return before.sa_sigaction(signal, info, context);
  if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) return before.sa_handler(signal);
  sigaction(signal, &before, nullptr);
  // The instruction runs again and ends the process, with its own place in the core dump. What another process sent
  // does not come again by itself.
  if (info->si_code <= 0) raise(signal);
}

void on_kernel_fault(int signal, siginfo_t* info, void* context) {
  if (!landing || unguarded > 0) return hand_on(signal, info, context);
  landing->fault = read_fault(signal, *info, *static_cast<ucontext_t*>(context));
  siglongjmp(landing->buffer, 1);
}

/// Of an assertion that fails, and of the C library where it gets no memory; both have said why.
void on_abort(int) {
  if (auto act = last_act.load()) act();
  put("kiln: error: the process cannot go on\n");
  _exit(1);
}

void on_uncaught() {
  try {
    if (std::current_exception()) std::rethrow_exception(std::current_exception());
  } catch (const std::bad_alloc&) {
    end_process("there is no more memory");
  } catch (const std::exception& e) {
    end_process(e.what());
  } catch (...) {
    end_process("an exception that nobody caught");
  }
  end_process("std::terminate() was called");
}

}  // namespace

std::string describe(const Fault& fault) {
  if (fault.signal == SIGFPE) return "divided integers where there is no result";
  if (fault.signal == SIGILL) return "ran an instruction that this CPU does not have";
  if (!fault.address) return "used an address that no memory can have";
  const char* verb = fault.access == Fault::Access::kWrite  ? "wrote to"
                     : fault.access == Fault::Access::kRead ? "read from"
                                                            : "accessed";
  return fmt::format("{} address {:#x}, where {}", verb, fault.address,
                     fault.signal == SIGBUS                  ? "memory has gone"
                     : fault.access == Fault::Access::kWrite ? "it has no memory to write"
                                                             : "it has no memory");
}

void install() {
  give_own_stack();
  struct sigaction action {};
  action.sa_sigaction = on_fault;
  // Not blocked meanwhile: a landing leaves the handler without returning from it.
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  sigemptyset(&action.sa_mask);
  for (int signal : kSignals) sigaction(signal, &action, nullptr);
  signal(SIGABRT, on_abort);
  std::set_terminate(on_uncaught);
  installed.store(true);
}

void end_process(const char* reason) {
  if (auto act = last_act.load()) act();
  put("kiln: error: ");
  put(reason);
  put("\n");
  _exit(1);
}

void set_last_act(void (*act)()) { last_act.store(act); }

std::optional<Fault> run_guarded(void (*fn)(void* context), void* context) {
  if (!installed.load(std::memory_order_relaxed)) {
    fn(context);
    return std::nullopt;
  }
  give_own_stack();
  Landing here;
  Landing* const outer = landing;
  const int outer_unguarded = unguarded;
  if (sigsetjmp(here.buffer, /*savemask=*/0) != 0) {
    landing = outer;
    unguarded = outer_unguarded;
    return here.fault;
  }
  landing = &here;
  unguarded = 0;
  fn(context);
  landing = outer;
  unguarded = outer_unguarded;
  return std::nullopt;
}

Unguarded::Unguarded() { ++unguarded; }
Unguarded::~Unguarded() { --unguarded; }

}  // namespace kiln::faults

namespace kiln {

void catch_kernel_faults() {
  static std::once_flag once;
  std::call_once(once, [] {
    if (faults::installed.load()) return;  // the program's own, which catches them too
    struct sigaction action {};
    action.sa_sigaction = faults::on_kernel_fault;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < std::size(faults::kSignals); ++i)
      sigaction(faults::kSignals[i], &action, &faults::handlers_before[i]);
    faults::installed.store(true);
  });
}

}  // namespace kiln
