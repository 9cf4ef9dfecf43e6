#include "repl/shell/shell.h"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>

#include "compiler/parse/parser.h"
#include "repl/commands/info_commands.h"
#include "repl/magics/compile_stages.h"
#include "repl/magics/expr_contenders.h"
#include "repl/shell/completion.h"
#include "repl/shell/errors.h"
#include "support/diag.h"

namespace kiln::repl {

namespace {

// A signal handler can reach nothing else.
std::atomic<script::Session*> g_running{nullptr};
std::atomic<int> g_presses{0};

void on_sigint(int) {
  script::Session* session = g_running.load();
  int presses = ++g_presses;
  if (presses >= 3) _exit(130);
  if (presses == 2) {
    constexpr char kText[] = "\nstill running; Ctrl-C once more ends kiln\n";
    [[maybe_unused]] ssize_t n = write(STDERR_FILENO, kText, sizeof kText - 1);
  }
  if (session) session->interrupt();
}

void to_stdout(std::string_view text) { std::fwrite(text.data(), 1, text.size(), stdout); }

bool is_blank(std::string_view line) { return line.find_first_not_of(" \t\r\n") == std::string_view::npos; }

int indent_after(std::string_view line) {
  size_t blanks = line.find_first_not_of(' ');
  if (blanks == std::string_view::npos) return 0;
  size_t last = line.find_last_not_of(" \t");
  return static_cast<int>(blanks) + (line[last] == ':' ? 4 : 0);
}

}  // namespace

InterruptGuard::InterruptGuard(script::Session& session) {
  g_presses = 0;
  g_running = &session;
  struct sigaction action {};
  action.sa_handler = on_sigint;
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);
}

InterruptGuard::~InterruptGuard() {
  signal(SIGINT, SIG_DFL);
  // One that came too late for this entry must not stop the next.
  g_running.exchange(nullptr)->forget_interrupt();
}

Shell::Shell(const Options& options, const std::function<void(std::string_view)>& output)
    : options_(options),
      session_({.output = output ? output : to_stdout, .argv = options.args, .device = {}}),
      context_{.session = session_,
               .output = output ? output : to_stdout,
               .format = options.json ? report::Format::kJson : report::Format::kText,
               .color = !output && report::wants_color(STDOUT_FILENO)} {
  if (options.check_accesses) session_.check_accesses(script::AccessChecks::kAlways);
  context_.variants = [this](script::Session& session, const std::string& text) {
    return expression_contenders(session, text, context_.edits);
  };
}

// Only once something runs: starting must not wait for a driver.
Status Shell::open_device() {
  if (device_chosen_ || options_.device.empty()) return {};
  KILN_TRY(Device device, Device::open(options_.device));
  session_.set_device(device);
  device_chosen_ = true;
  return {};
}

Status Shell::code(const std::string& text, const std::string& file_name, script::Mode mode) {
  KILN_CHECK_OK(open_device());
  InterruptGuard guard(session_);
  Status status = session_.run(text, file_name, mode);
  // A loop without a call is stopped at no place of its own; an earlier entry's would mislead.
  if (!status.ok() && status.error().kind == ErrorKind::kInterrupted && status.error().place.file != file_name) {
    status.error().place = {};
    status.error().notes.clear();
  }
  return status;
}

int Shell::run_program(const std::string& text, const std::string& file_name) {
  ended_by_.reset();
  auto finish = [&](const Diagnostic& d) {
    print_error(d, options_.json);
    ended_by_ = d.kind;
    return exit_code_of(d);
  };
  // Runs of code between % lines; each keeps its line numbers by blank lines in front.
  std::string pending;
  size_t first_line = 0, line_number = 0;
  auto flush = [&]() -> Status {
    if (is_blank(pending)) return pending.clear(), Status{};
    std::string padded = std::string(first_line, '\n') + pending;
    pending.clear();
    return code(padded, file_name, script::Mode::kFile);
  };
  for (size_t at = 0; at < text.size(); ++line_number) {
    size_t end = std::min(text.find('\n', at), text.size());
    std::string line = text.substr(at, end - at);
    at = end + 1;
    bool starts_entry = line.starts_with('%') && (is_blank(pending) || !parse::is_incomplete(pending + "\n"));
    if (!starts_entry) {
      if (pending.empty()) first_line = line_number;
      pending += line + "\n";
      continue;
    }
    if (Status s = flush(); !s.ok()) return finish(s.error());
    if (session_.exit_code()) return *session_.exit_code();
    if (Status s = entry(line); !s.ok()) return finish(s.error());
  }
  if (Status s = flush(); !s.ok()) return finish(s.error());
  return session_.exit_code().value_or(kExitOk);
}

Status Shell::entry(const std::string& text) {
  std::string_view line = text;
  while (!line.empty() && std::string_view(" \t\r\n").find(line.back()) != std::string_view::npos)
    line.remove_suffix(1);
  if (line.empty()) return {};
  if (line == "?" || line == "help") line = "%help";
  if (line == "exit" || line == "quit") return code("exit()", "<exit>", script::Mode::kInteractive);
  if (line.starts_with('%')) {
    KILN_CHECK_OK(open_device());
    InterruptGuard guard(session_);
    return run_magic(context_, line);
  }
  if (line.find('\n') == std::string_view::npos && line.ends_with('?') &&
      line.find_first_of("\"'#") == std::string_view::npos) {
    bool source = line.ends_with("??");
    line.remove_suffix(source ? 2 : 1);
    KILN_TRY(std::string answer, source ? session_.source_of(std::string(line)) : session_.describe(std::string(line)));
    if (!answer.ends_with('\n')) answer += '\n';
    context_.output(answer);
    if (source) return {};
    auto kernel = session_.kernel(std::string(line));
    if (kernel.ok() && !launched_target(*kernel).empty()) return run_magic(context_, "%static " + std::string(line));
    return {};
  }
  return code(text, fmt::format("[{}]", entry_number_), script::Mode::kInteractive);
}

int Shell::prompt(LineSource& lines) {
  std::string text;
  int indent = 0;
  while (!session_.exit_code()) {
    std::string first = fmt::format("[{}] ", entry_number_);
    std::string next = std::string(first.size() - 4, ' ') + "... ";
    LineSource::Input input = lines.read(text.empty() ? first : next, indent);
    indent = 0;
    if (input.event == LineSource::Event::kInterrupted) {
      text.clear();
      continue;
    }
    if (input.event == LineSource::Event::kEnd) {
      if (text.empty()) break;
      text += "\n\n";  // the end of input also ends a block
    } else {
      text += (is_blank(input.text) ? std::string() : input.text) + "\n";
      if (is_blank(text)) {
        text.clear();
        continue;
      }
      bool command = text.starts_with('%') || text.starts_with('?') || text.ends_with("?\n");
      if (input.event == LineSource::Event::kPasted) text += "\n";  // a pasted block is whole
      if (!command && parse::is_incomplete(text)) {
        indent = is_blank(input.text) ? 0 : indent_after(input.text);
        continue;
      }
    }
    Status status = entry(text);
    std::fflush(stdout);
    if (!status.ok()) print_error(status.error(), options_.json);
    text.clear();
    ++entry_number_;
    if (input.event == LineSource::Event::kEnd) break;
  }
  return session_.exit_code().value_or(kExitOk);
}

Completion Shell::complete(std::string_view before_cursor) { return complete_line(session_, before_cursor); }

}  // namespace kiln::repl
