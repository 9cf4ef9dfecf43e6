// How Kiln reports errors: plain data with the place, the message and a suggestion.
#pragma once
#include <cassert>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace kiln {

/// The category of an error; it decides a script's exit code, and tests check it.
enum class ErrorKind {
  kSyntax,       // the text does not parse
  kName,         // an unknown name, attribute or keyword
  kType,         // wrong type, shape or number of arguments
  kValue,        // a value outside what is allowed
  kUnsupported,  // valid Triton that Kiln does not compile yet
  kMismatch,     // a failed assert or comparison
  kLaunch,       // the launch was refused or the kernel faulted
  kMemory,       // an allocation failed, or a kernel needs more than a block can have
  kDevice,       // no device, driver missing or too old, a driver call failed
  kIo,           // files and caches
  kInterrupted,  // Ctrl-C
  kInternal,     // a bug of ours
};

/// The kind as JSON and Python show it: "syntax", "name", …
std::string_view name(ErrorKind kind);

/// A place in a source text, already resolved. line and column count from 1; line 0 means "no place".
struct Place {
  std::string file;
  int line = 0;
  int column = 0;
  int end_column = 0;  // one past the last character, on the same line
  std::string text;    // the whole line
};

/// A further remark on a diagnostic: "called from here", "help: add mask=i<n".
struct Note {
  std::string message;
  Place place;
};

/// What a kernel needs more of than a block can have: another configuration of it may fit.
struct Shortage {
  enum class Of { kSharedMemory, kRegisters };
  Of what = Of::kSharedMemory;
  int64_t needed = 0, available = 0;  // bytes; 0 of registers, which the assembler counts
};

/// One error. `message` is one sentence, lower case, without a full stop.
struct Diagnostic {
  ErrorKind kind = ErrorKind::kInternal;
  std::string message;
  Place place;
  std::vector<Note> notes;
  std::optional<Shortage> shortage = {};
};

/// "file:line:col: error: message", the line with a caret under the range, and the notes. Ends with a newline.
/// `columns` is the width of the terminal that it has to fit; 0: as wide as it is.
std::string render(const Diagnostic& d, bool color = false, int columns = 0);

/// A value or a Diagnostic. `Result<void>` (alias Status) carries only success.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Diagnostic error) : state_(std::in_place_index<1>, std::move(error)) {}

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }
  T& operator*() & {
    assert(ok());
    return std::get<0>(state_);
  }
  const T& operator*() const& {
    assert(ok());
    return std::get<0>(state_);
  }
  T&& operator*() && {
    assert(ok());
    return std::get<0>(std::move(state_));
  }
  T* operator->() {
    assert(ok());
    return &std::get<0>(state_);
  }
  const T* operator->() const {
    assert(ok());
    return &std::get<0>(state_);
  }
  Diagnostic& error() {
    assert(!ok());
    return std::get<1>(state_);
  }
  const Diagnostic& error() const {
    assert(!ok());
    return std::get<1>(state_);
  }

 private:
  std::variant<T, Diagnostic> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() {}  // were it defaulted, `return {}` would write zeros over the room of a Diagnostic first
  Result(Diagnostic error) : error_(std::in_place_index<1>, std::move(error)) {}
  bool ok() const { return error_.index() == 0; }
  explicit operator bool() const { return ok(); }
  Diagnostic& error() {
    assert(!ok());
    return std::get<1>(error_);
  }
  const Diagnostic& error() const {
    assert(!ok());
    return std::get<1>(error_);
  }

 private:
  std::variant<std::monostate, Diagnostic> error_;
};
using Status = Result<void>;

/// Evaluates an expression that gives a Result; returns its error from the enclosing function, or binds its value.
#define KILN_TRY(decl, expr) KILN_TRY_IMPL(KILN_CONCAT(kiln_result_, __COUNTER__), decl, expr)
#define KILN_TRY_IMPL(tmp, decl, expr)          \
  auto tmp = (expr);                            \
  if (!tmp.ok()) return std::move(tmp.error()); \
  decl = *std::move(tmp)
#define KILN_CHECK_OK(expr) KILN_CHECK_OK_IMPL(KILN_CONCAT(kiln_status_, __COUNTER__), expr)
#define KILN_CHECK_OK_IMPL(tmp, expr)                                \
  do {                                                               \
    if (auto tmp = (expr); !tmp.ok()) return std::move(tmp.error()); \
  } while (0)
#define KILN_CONCAT(a, b) KILN_CONCAT_IMPL(a, b)
#define KILN_CONCAT_IMPL(a, b) a##b

}  // namespace kiln
