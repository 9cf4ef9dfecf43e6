// The shell around a script session: programs with % commands in them, and the prompt's loop.
#pragma once
#include <atomic>
#include <optional>
#include <string>
#include <string_view>

#include "repl/magics/magics.h"
#include "repl/session/session.h"
#include "repl/shell/entry_source.h"
#include "repl/shell/options.h"

namespace kiln::repl {

class Shell {
 public:
  /// `output` gets everything that is printed; null: stdout.
  Shell(const Options& options, const std::function<void(std::string_view)>& output);

  /// A whole program; lines that start with % between its statements are commands. Prints errors; gives the exit code.
  int run_program(const std::string& text, const std::string& file_name);
  /// The kind of error that ended the last program; nullopt: it came to its end, or exit() did.
  std::optional<ErrorKind> ended_by() const { return ended_by_; }

  /// Reads entries until the end of input or exit(). Errors are printed and the loop goes on.
  int prompt(EntrySource& entries);

  /// One prompt entry: code and commands (split_program), in any number and order.
  Status entry(const std::string& text);

  editor::Completion complete(std::string_view before_cursor);
  /// One line about a candidate of a completion; empty when there is nothing to say.
  std::string preview(const std::string& candidate);

  /// The value of one expression.
  Result<script::Value> value(const std::string& expression);
  /// A % command whose tables are not printed.
  MagicResult command_for_value(std::string_view line);
  /// From another thread: ends what runs.
  void interrupt() {
    was_interrupted_ = true;
    session_.interrupt();
  }
  /// Whether that, or SIGINT, came during the last command.
  bool was_interrupted() const { return was_interrupted_; }

  /// The device that the options name becomes the session's; programs and entries do this by themselves.
  Status open_device();

  script::Session& session() { return session_; }
  /// What %compare and %sweep make of one expression.
  void set_variants(ExpandVariants variants) { context_.variants = std::move(variants); }

  MagicContext& context() { return context_; }

 private:
  /// `gives_value`: what its last expression gives is printed as JSON.
  Status program(const std::string& text, const std::string& file_name, bool gives_value);
  Status print_value(const std::string& expression, const std::string& file_name);
  Status code(const std::string& text, const std::string& file_name, script::Mode mode);
  Status command(std::string_view line);
  /// A % command; its value goes to the target of an assignment, or is kept as a result.
  Status magic(std::string_view target, std::string_view line);
  /// What is longer than the screen goes to the pager, at a prompt on a terminal.
  void show(std::string_view text);
  std::function<void(std::string_view)> watched(std::function<void(std::string_view)> output);

  Options options_;
  bool at_line_start_ = true;  // of what is printed
  script::Session session_;
  MagicContext context_;
  int entry_number_ = 1;
  bool pages_ = false;  // there is a terminal for a pager
  bool device_chosen_ = false;
  std::atomic<bool> was_interrupted_{false};
  std::optional<ErrorKind> ended_by_;
};

}  // namespace kiln::repl
