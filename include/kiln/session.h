// A prompt without a terminal: variables, kernels and % commands, for a program that holds one (a notebook, an editor).
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kiln/result.h"
#include "kiln/runtime.h"
#include "kiln/tensor.h"

namespace kiln {

/// A table that a command gave, in the forms in which it can be written (docs/results.md).
struct SessionTable {
  std::string name;  // "" for the one that the command is about
  std::string text, html, markdown, csv, json;
  std::vector<std::string> columns;  // their keys
};

/// A value of a session.
struct SessionValue {
  enum class Kind { kNone, kPlain, kTensor, kTable, kOther };
  Kind kind = Kind::kNone;
  std::string type;  // "int", "list", "torch.Tensor"
  std::string repr;  // as the prompt shows it
  std::string json;  // kPlain: numbers, texts, lists, tuples and dicts of those with texts as keys. NaN, Infinity
  Tensor tensor;     // kTensor, computed
  std::vector<SessionTable> tables;         // kTable; the first is the one to index
  std::shared_ptr<const void> handle = {};  // for Session::set of the same session
};

/// What a % command said and gave. An error may come with a value, of what was done before it.
struct SessionCommandResult {
  Status status;
  std::string text;              // what it printed, tables left out
  SessionValue value;            // its tables, a text without any, or nothing
  bool was_interrupted = false;  // also where the command gave what it had by then
};

/// A row of the table of % commands.
struct SessionCommand {
  std::string name;  // without the %
  std::string synopsis, help;
  std::string description;  // what `%help NAME` prints
};

/// Candidates for the end of a text, and how many bytes before the cursor they replace.
struct SessionCompletion {
  std::vector<std::string> candidates;
  size_t replaced = 0;
};

/// For one thread at a time; interrupt() may come from any thread or a signal handler.
class Session {
 public:
  struct Options {
    std::function<void(std::string_view)> output = {};  // what is printed; null: stdout
    std::optional<Runtime> runtime = {};                // whose devices it uses; missing: its own
    std::string device = {};                            // "cpu", "cuda:1"; empty: the default one
    bool may_run_shell = false;                         // ! and %sh
    bool takes_sigint = false;                          // SIGINT interrupts what runs, while it runs
    /// Gets how far a command is, a line in place of the last, and "" when it has ended; null: none is told.
    std::function<void(std::string_view)> progress = {};
  };
  explicit Session(const Options& options);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  /// Code and % commands as at the prompt: values of expressions are printed, `_` is the last one. An error carries the
  /// line; what was set before it stays. After exit() the result is success.
  Status run(std::string_view text);
  /// The same for definitions that come from a file: errors name its lines, counted from `first_line`.
  Status define(std::string_view text, std::string_view file, int first_line);
  /// The value of one expression.
  Result<SessionValue> evaluate(std::string_view expression);
  /// A % command ("bench f(x)", with or without the %); its tables are not printed.
  SessionCommandResult command(std::string_view line);

  /// Sets a variable. The tensor shares its memory.
  Status set(std::string_view name, const Tensor& tensor);
  Status set(std::string_view name, const SessionValue& value);
  void remove(std::string_view name);
  /// A handle of what a variable is now, without its forms; kNone when there is no such variable.
  SessionValue variable(std::string_view name);
  /// Whether the variable is still that very value: the same object, or an equal number.
  bool holds(std::string_view name, const SessionValue& value);

  SessionCompletion complete(std::string_view before_cursor);
  /// What runs ends with kInterrupted.
  void interrupt();

  static std::span<const SessionCommand> commands();

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace kiln
