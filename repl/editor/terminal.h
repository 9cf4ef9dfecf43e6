// The terminal while a line is edited: raw mode, its size, bytes in and out, and the signals that matter meanwhile.
#pragma once
#include <memory>
#include <string>
#include <string_view>

#include "kiln/result.h"

namespace kiln::editor {

/// Gives the terminal back as it was before editing or QuietKeys began; does nothing outside of both.
/// Async-signal-safe: for handlers of fatal signals, from any thread.
void restore_terminal();

/// While one lives, keys that are typed ahead are not shown (they are kept for the next line): for output that rewrites
/// its own line. Does nothing when standard input is no terminal, or not this process's.
class QuietKeys {
 public:
  QuietKeys();
  ~QuietKeys();
  QuietKeys(const QuietKeys&) = delete;
  QuietKeys& operator=(const QuietKeys&) = delete;

 private:
  bool is_outermost_ = false;
};

struct TerminalSize {
  int rows = 24, columns = 80;
  bool operator==(const TerminalSize&) const = default;
};

class Terminal {
 public:
  /// Input and output may be the same terminal by two descriptors; they are not closed.
  Terminal(int input, int output) : input_(input), output_(output) {}
  ~Terminal() { leave(); }
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  /// Raw mode and bracketed paste on, signal handlers in. At most one terminal is entered at a time. kIo when it is no
  /// terminal any more.
  Status enter();
  /// All of it back.
  void leave();
  bool is_entered() const { return entered_; }

  enum class Wake {
    kInput,      // `bytes` were read
    kTimeout,    // none within the time
    kResize,     // SIGWINCH
    kResume,     // SIGCONT: the process was stopped by others and goes on
    kSuspend,    // SIGTSTP from outside
    kInterrupt,  // SIGINT from outside
    kClosed,     // the terminal is gone, or its end of file
  };
  /// Waits for one of these; timeout_ms < 0: forever.
  Wake wait(int timeout_ms, std::string& bytes);
  /// Whether input can be read at once.
  bool has_input() const;

  /// Leaves, stops the process as Ctrl-Z does in any program, and enters again once it goes on.
  Status suspend();

  /// False when the terminal is gone.
  bool write(std::string_view text);
  TerminalSize size() const;

 private:
  int input_, output_;
  bool entered_ = false;
};

}  // namespace kiln::editor
