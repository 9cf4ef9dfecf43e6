#include "repl/shell/shell.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "repl/commands/info_commands.h"
#include "repl/magics/compile_stages.h"
#include "repl/magics/expr_contenders.h"
#include "repl/shell/completion.h"
#include "repl/shell/entry_text.h"
#include "repl/shell/errors.h"
#include "repl/shell/interrupts.h"
#include "repl/shell/last_expression.h"
#include "repl/shell/pager.h"
#include "repl/shell/question.h"
#include "support/diag.h"
#include "support/text.h"
#include "support/text_width.h"

namespace kiln::repl {

namespace {

/// A command where none can stand: in a block, or in an expression.
void add_command_help(Diagnostic& d) {
  if (d.place.column < 1 || static_cast<size_t>(d.place.column) > d.place.text.size()) return;
  const std::string_view rest = std::string_view(d.place.text).substr(static_cast<size_t>(d.place.column) - 1);
  const std::string_view word = rest.substr(0, rest.find_first_of(" \t()=,:", 1));
  if (std::ranges::any_of(magics(), [&](const Magic& m) { return word == "%" + std::string(m.name); }))
    d = with_note(std::move(d),
                  "help: a command stands outside of blocks, alone on its line or behind `NAME =`: r = %bench x");
}

void to_stdout(std::string_view text) { std::fwrite(text.data(), 1, text.size(), stdout); }

}  // namespace

Shell::Shell(const Options& options, const std::function<void(std::string_view)>& output)
    : options_(options),
      session_({.output = watched(output ? output : to_stdout),
                .error_output = output,  // null: stderr
                .argv = options.args,
                .device = {}}),
      context_{.session = session_,
               .output = watched(output ? output : to_stdout),
               .format = options.json ? report::Format::kJson : report::Format::kText,
               .color = !output && report::wants_color(STDOUT_FILENO),
               .run_program = [this](const std::string& text,
                                     const std::string& file) { return program(text, file, false); },
               .may_run_shell = !options.no_shell} {
  if (options.runtime) session_.set_runtime(*options.runtime);
  if (options.check_accesses) session_.check_accesses(script::AccessChecks::kAlways);
  if (!output) context_.columns = [] { return report::terminal_columns(STDOUT_FILENO); };
  context_.variants = [this](script::Session& session, const std::string& text) {
    return expression_contenders(session, text, context_.edits);
  };
  session_.show_tables_by(
      [this](const report::Table& table, bool colored) {
        report::TextStyle style = context_.style();
        style.color = style.color && colored;
        return report::format(table, context_.format, style);
      },
      [this] { return context_.style().width; });
}

std::function<void(std::string_view)> Shell::watched(std::function<void(std::string_view)> output) {
  return [this, output = std::move(output)](std::string_view text) {
    // A terminal takes a long text for minutes: Ctrl-C cuts it.
    constexpr size_t kAtOnce = size_t{1} << 16;
    for (; text.size() > kAtOnce; text.remove_prefix(kAtOnce)) {
      output(text.substr(0, kAtOnce));
      if (!session_.is_interrupted()) continue;
      at_line_start_ = false;
      return;
    }
    if (!text.empty()) at_line_start_ = text.back() == '\n';
    output(text);
  };
}

// Only once something runs: starting must not wait for a driver.
Status Shell::open_device() {
  if (device_chosen_ || options_.device.empty()) return {};
  KILN_TRY(Device device, session_.runtime().open(options_.device));
  session_.set_device(device);
  device_chosen_ = true;
  return {};
}

Status Shell::code(const std::string& text, const std::string& file_name, script::Mode mode) {
  KILN_CHECK_OK(open_device());
  InterruptGuard guard(session_, options_.interrupts);
  Status status = session_.run(text, file_name, mode);
  if (!status.ok() && status.error().kind == ErrorKind::kSyntax) add_command_help(status.error());
  // A loop without a call is stopped at no place of its own; an earlier entry's would mislead.
  if (!status.ok() && status.error().kind == ErrorKind::kInterrupted && status.error().place.file != file_name) {
    status.error().place = {};
    status.error().notes.clear();
  }
  if (!status.ok() && status.error().kind == ErrorKind::kInterrupted && session_.is_stopped())
    status.error().message = fmt::format("stopped; {} variables kept", session_.variables().size());
  return status;
}

// Code keeps its line numbers by blank lines in front.
Status Shell::program(const std::string& text, const std::string& file_name, bool gives_value) {
  const std::vector<Piece> pieces = split_program(text, Commands::kPercent);
  for (const Piece& piece : pieces) {
    std::string source = std::string(piece.first_line, '\n') + piece.text, last;
    if (gives_value && !piece.is_command && &piece == &pieces.back()) last = take_last_expression(source);
    KILN_CHECK_OK(piece.is_command ? command(piece.text) : code(source, file_name, script::Mode::kFile));
    if (session_.exit_code()) break;
    if (!last.empty()) KILN_CHECK_OK(print_value(last, file_name));
  }
  return {};
}

Status Shell::print_value(const std::string& expression, const std::string& file_name) {
  InterruptGuard guard(session_, options_.interrupts);
  KILN_TRY(script::Prepared prepared, session_.prepare_value(expression, file_name));
  KILN_CHECK_OK(prepared.run());
  if (prepared.value->missing() || prepared.value->is_none()) return {};
  KILN_TRY(const std::string text, session_.json_of(*prepared.value));
  context_.output(text + "\n");
  return {};
}

int Shell::run_program(const std::string& text, const std::string& file_name) {
  ended_by_.reset();
  const bool is_file = !file_name.starts_with('<');
  if (Status s = program(text, file_name, options_.json && !is_file); !s.ok()) {
    print_error(s.error(), options_.json);
    ended_by_ = s.error().kind;
    return exit_code_of(s.error());
  }
  return session_.exit_code().value_or(kExitOk);
}

Status Shell::entry(const std::string& text) {
  const int number = entry_number_++;
  const std::string name = fmt::format("[{}]", number);
  session_.begin_entry(number, text);
  const std::vector<Piece> pieces = split_program(text, Commands::kPrompt);
  for (const Piece& piece : pieces) {
    // Of all that an entry computes its last value is shown, as in IPython; commands print for themselves.
    const script::Mode mode = &piece == &pieces.back() ? script::Mode::kInteractive : script::Mode::kLeading;
    KILN_CHECK_OK(piece.is_command ? command(piece.text)
                                   : code(std::string(piece.first_line, '\n') + piece.text, name, mode));
    if (session_.exit_code()) break;
    // A command gives what it has found by then. At the prompt what follows was typed after it.
    if (piece.is_command && was_interrupted_ && options_.interrupts != Interrupts::kOfPrompt)
      return error(ErrorKind::kInterrupted, "interrupted");
  }
  return {};
}

Status Shell::command(std::string_view line) {
  if (line == "exit" || line == "quit") return code("exit()", "<exit>", script::Mode::kInteractive);
  if (const auto question = question_of(line)) {
    KILN_CHECK_OK(open_device());
    InterruptGuard guard(session_, options_.interrupts);
    return answer(context_, *question);
  }
  const auto percent = percent_command(line);
  KILN_ASSERT(percent, "no command: {}", line);
  return magic(percent->target, percent->command);
}

Status Shell::magic(std::string_view target, std::string_view line) {
  KILN_CHECK_OK(open_device());
  // Before the work, not behind it.
  if (!target.empty()) KILN_CHECK_OK(session_.check_target(std::string(target)));
  was_interrupted_ = false;
  InterruptGuard guard(session_, options_.interrupts, &was_interrupted_);
  // What a command prints before its tables may announce them: it does not wait for the pager.
  std::string held;
  MagicResult result;
  {
    std::optional<Redirected> paged;
    if (pages_ && context_.may_page && target.empty())
      paged.emplace(context_, [&](std::string_view text) {
        const bool holds = !held.empty() || !context_.yield.tables.empty() || lines_on_screen(text, 0) > 1;
        holds ? void(held += text) : paged->print(text);
      });
    result = run_magic_for_value(context_, line, !target.empty());
  }
  show(held);
  if (result.value.missing()) return std::move(result.status);
  if (target.empty()) {
    session_.keep_result(result.value);
    return std::move(result.status);
  }
  Status assigned = session_.assign(std::string(target), result.value);
  if (assigned.ok()) return std::move(result.status);
  session_.keep_result(result.value);
  return with_note(std::move(assigned.error()), "help: the value is `_`");
}

Result<script::Value> Shell::value(const std::string& expression) {
  KILN_CHECK_OK(open_device());
  InterruptGuard guard(session_, options_.interrupts);
  return session_.value(expression);
}

MagicResult Shell::command_for_value(std::string_view line) {
  was_interrupted_ = false;
  if (Status opened = open_device(); !opened.ok()) return {std::move(opened), {}, {}};
  InterruptGuard guard(session_, options_.interrupts, &was_interrupted_);
  return run_magic_for_value(context_, line, true);
}

void Shell::show(std::string_view text) {
  if (text.empty() || (pages_ && context_.may_page && page(text, !options_.no_shell))) return;
  context_.output(text);
}

int Shell::prompt(EntrySource& entries) {
  pages_ = context_.columns && can_page();
  session_.show_results_by([this](std::string_view text) { show(text); });
  session_.check_first_launches();
  IdleInterrupts idle;
  while (!session_.exit_code()) {
    if (!std::exchange(at_line_start_, true)) context_.output("\n");
    const std::string first = fmt::format("[{}] ", entry_number_);
    const std::string next = std::string(first.size() - 4, ' ') + "... ";
    entries.set_color(context_.wants_color(STDOUT_FILENO));
    const EntrySource::Input input = entries.read(first, next);
    if (input.event == EntrySource::Event::kEnd) break;
    if (trimmed(input.text).empty()) continue;
    context_.history.emplace_back(trimmed(input.text));
    Status status;
    for (const std::string& text : input.entries)
      if (status.ok() && !session_.exit_code()) status = entry(text);
    std::fflush(stdout);
    if (!status.ok()) print_error(status.error(), options_.json, context_.wants_color(STDERR_FILENO));
  }
  const int code = session_.exit_code().value_or(kExitOk);
  idle.end_with(code);
  return code;
}

editor::Completion Shell::complete(std::string_view before_cursor) { return complete_line(session_, before_cursor); }

std::string Shell::preview(const std::string& candidate) { return describe_candidate(session_, candidate); }

}  // namespace kiln::repl
