// Ctrl-C at the prompt: what SIGINT does while a statement runs, and between statements.
#pragma once
#include <atomic>
#include <optional>

#include "repl/session/session.h"
#include "repl/shell/options.h"
#include "support/stop.h"

namespace kiln::repl {

/// While one lives, Ctrl-C interrupts the session's running statement. At a prompt the second press stops also one that
/// has caught the first, and the fourth ends the program (a key that is held is one press for 0.3 s). What SIGINT did
/// before comes back with its end. One inside of another, as of a file that %run runs, changes nothing.
class InterruptGuard {
 public:
  /// `came` becomes true when SIGINT came meanwhile; null: nobody asks.
  InterruptGuard(script::Session& session, Interrupts interrupts, std::atomic<bool>* came = nullptr);
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

  /// SIGINT has come since it began, whoever has taken the session's interrupt meanwhile.
  bool has_come() const;

 private:
  const bool is_active_;
  std::atomic<bool>* const came_;
  std::optional<InterruptListener> listener_;
};

/// While one lives, a Ctrl-C that comes between statements ends nothing; whoever waits for a line sees it.
class IdleInterrupts {
 public:
  IdleInterrupts();
  /// From here on, also behind its end, Ctrl-C ends the program at once, with this code: it frees what it holds, which
  /// may wait for a kernel.
  void end_with(int exit_code);
  ~IdleInterrupts();
  IdleInterrupts(const IdleInterrupts&) = delete;
  IdleInterrupts& operator=(const IdleInterrupts&) = delete;

  /// Readable once SIGINT came; -1 where the system has no descriptors left.
  static int descriptor();
  /// Forgets those that came so far.
  static void forget();

 private:
  bool ends_ = false;
};

}  // namespace kiln::repl
