// `kiln check`: which kernels of a file or a folder compile.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>

#include "profiler/report/table.h"
#include "repl/commands/compile_command.h"
#include "repl/commands/compile_kernel_file.h"
#include "repl/commands/compile_texts.h"
#include "repl/shell/errors.h"
#include "repl/shell/files.h"
#include "support/diag.h"
#include "support/files.h"
#include "support/notebook.h"

namespace kiln::repl {

namespace fs = std::filesystem;

namespace {

/// What was found so far, over the files of a folder.
struct Tally {
  size_t files = 0, kernels = 0, compiled = 0, unread = 0;
  std::map<std::string, size_t> reasons;  // of kernels that do not compile
};

/// Kernels that fail for one reason differ in their numbers; those in names as int32 stay.
std::string reason_of(const Diagnostic& error) {
  static const std::regex number(R"(\b\d+)");
  return std::regex_replace(error.message.substr(0, error.message.find('\n')), number, "N");
}

struct Checked {
  std::string kernel;
  int line = 0;  // of its def
  int cell = 0;  // of a notebook
  AssumedSignature assumed;
  Status status;
};

Checked attempt(const Function& f, const CompileArgs& args, const std::string& target, const Revision& revision) {
  const Place place = place_of(f->def->range);
  Checked out{f->name(), place.line, cell_place(place).cell, {}, {}};
  out.status = [&]() -> Status {
    KILN_TRY(Specialisation special, specialise(*f, args, Evidence::kNamesToo, revision));
    out.assumed = std::move(special.assumed);
    CompileOptions options = options_for(args, target);
    options.want_cubin = false;
    KILN_TRY([[maybe_unused]] CompiledKernel kernel, compile(*f, special.args, options));
    return {};
  }();
  return out;
}

/// Whether other types or sizes may help: the language refused these.
bool may_depend_on_guesses(const Diagnostic& error) {
  return error.kind == ErrorKind::kType || error.kind == ErrorKind::kValue || error.kind == ErrorKind::kMismatch ||
         error.kind == ErrorKind::kName || error.kind == ErrorKind::kMemory;
}

bool same_error(const Diagnostic& a, const Diagnostic& b) {
  return a.message == b.message && a.place.line == b.place.line;
}

/// A kernel that does not compile for the first guess is tried for others: with larger tiles, wider integers, without
/// what a launch tells, with truths for integers, halves for floats, with flags set; each also with pointers to
/// integers, one after another, of which those stay that give another error. What is reported is the guess that
/// compiles, else the first.
Checked check_kernel(const Function& f, const CompileArgs& args, const std::string& target) {
  Checked first = attempt(f, args, target, {});
  if (first.status.ok() || !args.signature.empty() || !may_depend_on_guesses(first.status.error())) return first;
  std::vector<Revision> starts(1);
  if (first.assumed.guessed_sizes) starts.push_back({.size = 4});
  if (first.assumed.guessed_integers) starts.push_back({.wide = true});
  if (first.assumed.used_launch) starts.push_back({.launch = false});
  if (first.assumed.guessed_integers) starts.push_back({.truths = true});
  if (!first.assumed.guessed_pointers.empty()) starts.push_back({.halves = true});
  if (first.assumed.guessed_flags) starts.push_back({.flags = true});
  constexpr size_t kMostPointers = 24;  // of kernels that have more the first are tried
  for (const Revision& start : starts) {
    Revision revision = start;
    Checked at = attempt(f, args, target, revision);
    const std::vector<std::string> pointers = at.assumed.guessed_pointers;
    for (const std::string& pointer : pointers) {
      if (at.status.ok() || revision.integers.size() == kMostPointers) break;
      revision.integers.insert(pointer);
      Checked next = attempt(f, args, target, revision);
      if (next.status.ok() || !same_error(next.status.error(), at.status.error()))
        at = std::move(next);
      else
        revision.integers.erase(pointer);
    }
    if (at.status.ok()) return at;
  }
  return first;
}

/// A line of JSON. Names of files need not be UTF-8, which dump() refuses by an exception unless told otherwise.
void put_json(const nlohmann::ordered_json& line) {
  put(stdout, line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n");
}

void print_json(const Checked& c, const std::string& target, const std::string& file) {
  nlohmann::ordered_json line = {{"kernel", c.kernel}};
  if (c.cell) line["cell"] = c.cell;
  line.update({{"line", c.line}, {"target", target}, {"ok", c.status.ok()}});
  if (!file.empty()) line["file"] = file;
  if (!c.assumed.assumptions.empty()) line["assumed"] = c.assumed.assumptions;
  if (!c.status.ok()) line["error"] = nlohmann::ordered_json::parse(error_json(c.status.error()));
  put_json(line);
}

void print_text(const Checked& c, const std::string& target) {
  put(stdout,
      fmt::format(
          "{} {} for {}{}\n", c.kernel, c.status.ok() ? "compiles" : "does not compile", target,
          c.assumed.assumptions.empty() ? "" : fmt::format(" (assumed {})", fmt::join(c.assumed.assumptions, ", "))));
  if (!c.status.ok()) put(stdout, render(c.status.error(), report::wants_color(STDOUT_FILENO)));
}

Result<int> check_file(const CompileArgs& args, const std::string& target, bool json) {
  KILN_TRY(KernelFile file, load(args.file));
  std::vector<Function> kernels;
  if (args.kernel.empty()) {
    kernels = kernels_of(file);
  } else {
    KILN_TRY(kernels.emplace_back(), find(file, args.kernel));
  }
  if (!args.signature.empty() && kernels.size() != 1)
    return error(ErrorKind::kValue, "--signature needs --kernel: the file has {}", names_of(kernels));
  size_t compiled = 0;
  for (const Function& f : kernels) {
    const Checked c = check_kernel(f, args, target);
    compiled += c.status.ok();
    json ? print_json(c, target, {}) : print_text(c, target);
  }
  if (!json) put(stdout, fmt::format("{} of {} kernels compile\n", compiled, kernels.size()));
  return compiled == kernels.size() ? kExitOk : kExitError;
}

/// The .py files and the notebooks below it, in the order of their paths; hidden folders are left out.
Result<std::vector<std::string>> python_files(const std::string& folder) {
  std::vector<std::string> out;
  std::error_code problem;
  fs::recursive_directory_iterator at(folder, fs::directory_options::skip_permission_denied, problem), end;
  for (; !problem && at != end; at.increment(problem)) {
    const std::string name = at->path().filename().string();
    std::error_code ignored;
    if (name.starts_with('.') && at->is_directory(ignored)) at.disable_recursion_pending();
    if ((name.ends_with(".py") || name.ends_with(".ipynb")) && at->is_regular_file(ignored))
      out.push_back(at->path().string());
  }
  if (problem) return error(ErrorKind::kIo, "cannot list '{}': {}", folder, problem.message());
  std::ranges::sort(out);
  return out;
}

void print_tally(const Tally& t, const std::string& target) {
  if (!t.reasons.empty()) {
    std::vector<std::pair<size_t, std::string>> rows;
    for (const auto& [reason, count] : t.reasons) rows.emplace_back(count, reason);
    std::ranges::stable_sort(rows, std::greater<>(), &std::pair<size_t, std::string>::first);
    report::Table table({{"kernels", ""}, {"reason", "", report::Align::kLeft}});
    for (const auto& [count, reason] : rows) table.add_row({report::Cell::of(static_cast<int64_t>(count)), reason});
    put(stdout, "\n" + report::to_text(table, report::style_of(STDOUT_FILENO)));
  }
  const double percent = t.kernels ? 100.0 * static_cast<double>(t.compiled) / static_cast<double>(t.kernels) : 0;
  put(stdout, fmt::format("{} of {} kernels in {} file{} compile for {}{}{}\n", t.compiled, t.kernels, t.files,
                          t.files == 1 ? "" : "s", target, t.kernels ? fmt::format(" ({:.1f} %)", percent) : "",
                          t.unread ? fmt::format("; files that cannot be read: {}", t.unread) : ""));
}

/// Only what does not compile is told kernel by kernel.
Result<int> check_folder(const CompileArgs& args, const std::string& target, bool json) {
  for (const auto& [name, given] : {std::pair("--kernel", &args.kernel), std::pair("--signature", &args.signature)})
    if (!given->empty()) return error(ErrorKind::kValue, "{} needs a file, and '{}' is a folder", name, args.file);
  KILN_TRY(const std::vector<std::string> paths, python_files(args.file));
  Tally tally;
  for (const std::string& path : paths) {
    auto text = read_source(path);
    if (text.ok() && text->find("jit") == std::string::npos) continue;  // most of a folder; it need not be parsed
    auto file = text.ok() ? read_functions(path, *std::move(text)) : Result<KernelFile>(std::move(text.error()));
    if (!file.ok()) {
      ++tally.unread;
      if (json)
        put_json({{"file", path}, {"ok", false}, {"error", nlohmann::ordered_json::parse(error_json(file.error()))}});
      else
        put(stdout, render(file.error(), report::wants_color(STDOUT_FILENO)));
      continue;
    }
    const std::vector<Function> kernels = kernels_of(*file);
    tally.files += !kernels.empty();
    for (const Function& f : kernels) {
      const Checked c = check_kernel(f, args, target);
      ++tally.kernels;
      tally.compiled += c.status.ok();
      if (!c.status.ok()) ++tally.reasons[reason_of(c.status.error())];
      if (json)
        print_json(c, target, path);
      else if (!c.status.ok())
        print_text(c, target);
    }
  }
  if (!json) print_tally(tally, target);
  return tally.compiled == tally.kernels && !tally.unread ? kExitOk : kExitError;
}

}  // namespace

Result<int> check_command(const CompileArgs& args, const std::string& device, bool json) {
  KILN_TRY(const std::string target, target_name(args, device));
  std::error_code ignored;
  return fs::is_directory(args.file, ignored) ? check_folder(args, target, json) : check_file(args, target, json);
}

}  // namespace kiln::repl
