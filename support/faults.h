// Faults of the CPU (SIGSEGV, SIGBUS, SIGFPE, SIGILL) as values, where code that is not ours runs, and a last word
// elsewhere, as for exceptions that nobody catches. A process has one handler of each, so the program installs them,
// not the library; programs that are not ours ask for theirs by kiln/faults.h.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

namespace kiln::faults {

struct Fault {
  int signal = 0;
  uintptr_t address = 0;  // that was accessed; 0 when the CPU does not say
  uintptr_t code_at = 0;  // of the instruction
  enum class Access : uint8_t { kUnknown, kRead, kWrite } access = Access::kUnknown;
};

/// "wrote to address 0x10, where it has no memory"
std::string describe(const Fault& fault);

/// From now on a fault outside of run_guarded prints what happened and ends the process by that signal, and an
/// exception that nobody catches (no memory, no thread) or an abort() ends it with one line and exit code 1.
void install();

/// "kiln: error: …" on standard error, exit code 1. Takes no memory, and runs no destructors.
[[noreturn]] void end_process(const char* reason);

/// Called before a fault or end_process() ends the process, perhaps from a signal handler: puts the terminal back as it
/// was. May be null.
void set_last_act(void (*act)());

/// Calls fn(context); a fault on this thread ends the call and is returned. Only for code that owns nothing, holds no
/// lock and changes no state of ours that must stay whole: nothing is unwound. Without install() faults are not caught.
std::optional<Fault> run_guarded(void (*fn)(void* context), void* context);

/// While one lives, this thread runs code of ours inside run_guarded: a fault there is not survived.
class Unguarded {
 public:
  Unguarded();
  ~Unguarded();
};

}  // namespace kiln::faults
