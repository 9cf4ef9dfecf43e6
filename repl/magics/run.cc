// %run, %history, %cd, %save and %load: the prompt's dealings with files.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>

#include "repl/editor/history.h"
#include "repl/magics/magics.h"
#include "repl/session/session_file.h"
#include "repl/shell/files.h"
#include "support/diag.h"
#include "support/environment.h"
#include "support/files.h"
#include "support/text.h"
#include "support/text_width.h"

namespace kiln::repl {

namespace {

constexpr int kDeepestRun = 16;  // files that %run one another

/// "~/x" with the home folder.
std::string expanded_home(const std::string& path) {
  if (path != "~" && !path.starts_with("~/")) return path;
  const auto home = environment("HOME");
  return home && !home->empty() ? *home + path.substr(1) : path;
}

std::string current_folder() {
  std::error_code failed;
  const std::string path = std::filesystem::current_path(failed).string();
  return failed ? "(a folder that is gone)" : path;
}

}  // namespace

Status magic_run(MagicContext& context, std::string_view arguments) {
  KILN_TRY(std::vector<std::string> words, split_words(arguments));
  words[0] = expanded_home(words[0]);
  const std::string file = words[0];
  KILN_TRY(std::string text, read_text(file));
  if (context.run_depth == kDeepestRun)
    return error(ErrorKind::kValue, "%run {}: files that run each other {} deep", file, kDeepestRun);
  struct Depth {
    int& depth;
    explicit Depth(int& d) : depth(d) { ++depth; }
    ~Depth() { --depth; }
  } depth(context.run_depth);
  const std::vector<std::string> before = context.session.set_arguments(std::move(words));
  Status status = context.run_program(text, file);
  context.session.set_arguments(before);
  KILN_CHECK_OK(std::move(status));
  // exit() ends the file, not the prompt.
  if (const auto code = context.session.take_exit_code(); code && *code != 0)
    return error(ErrorKind::kValue, "{} ended with exit code {}", file, *code);
  return {};
}

Status magic_history(MagicContext& context, std::string_view arguments) {
  KILN_TRY(std::vector<std::string> words, split_words(arguments));
  size_t most = SIZE_MAX;
  std::optional<std::string> pattern;
  for (size_t i = 0; i < words.size(); ++i) {
    if (words[i] == "-g") {
      if (++i == words.size()) return error(ErrorKind::kSyntax, "-g needs a text to look for");
      pattern = words[i];
      continue;
    }
    const auto [end, code] = std::from_chars(words[i].data(), words[i].data() + words[i].size(), most);
    if (code != std::errc{} || end != words[i].data() + words[i].size())
      return error(ErrorKind::kValue, "%history takes a number of entries and -g TEXT, not '{}'", words[i]);
  }
  struct Row {
    size_t number;  // 0: of an earlier session
    std::string text;
  };
  std::vector<Row> rows;
  auto add = [&](size_t number, const std::string& text) {
    if (!pattern || text.find(*pattern) != std::string::npos) rows.push_back({number, text});
  };
  if (const std::string folder = pattern ? state_folder() : ""; !folder.empty()) {
    const std::string file = folder + "/prompt_history";
    if (::access(file.c_str(), F_OK) == 0) {
      KILN_TRY(const std::string kept, read_file(file));
      std::vector<std::string> entries = editor::parse_history(kept);
      // This session's own are there too.
      for (const std::string& own : context.history)
        if (const auto at = std::find(entries.rbegin(), entries.rend(), own); at != entries.rend())
          entries.erase(std::next(at).base());
      for (const std::string& entry : entries) add(0, entry);
    }
  }
  for (size_t i = 0; i < context.history.size(); ++i) add(i + 1, context.history[i]);
  if (rows.size() > most) rows.erase(rows.begin(), rows.end() - static_cast<ptrdiff_t>(most));
  std::string out;
  for (const Row& row : rows) {
    const std::string first = row.number ? fmt::format("[{}] ", row.number) : "    ";
    const std::string next = std::string(first.size() - 4, ' ') + (row.number ? "... " : "    ");
    std::string_view rest = row.text;
    for (bool is_first = true; is_first || !rest.empty(); is_first = false) {
      const size_t end = std::min(rest.find('\n'), rest.size());
      out += (is_first ? first : next) + printable(rest.substr(0, end)) + "\n";
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
  }
  if (rows.empty()) out = pattern ? fmt::format("no entry contains '{}'\n", *pattern) : "nothing was entered\n";
  context.output(out);
  return {};
}

Status magic_cd(MagicContext& context, std::string_view arguments) {
  KILN_TRY(std::vector<std::string> words, split_words(arguments));
  if (words.size() > 1) return error(ErrorKind::kValue, "%cd takes one folder; quote a name with blanks");
  std::string folder = words.empty() ? "~" : words[0];
  if (folder == "-") {
    if (context.last_folder.empty()) return error(ErrorKind::kValue, "%cd -: no folder was left yet");
    folder = context.last_folder;
  }
  folder = expanded_home(folder);
  if (folder == "~") return error(ErrorKind::kValue, "there is no home folder: HOME is not set");
  const std::string before = current_folder();
  if (::chdir(folder.c_str()) != 0) return error(ErrorKind::kIo, "{}: {}", folder, std::strerror(errno));
  context.last_folder = before;
  context.output(printable(current_folder()) + "\n");
  return {};
}

namespace {

/// Of "%save FILE": a name without an extension gets .kiln.
Result<std::string> session_path(std::string_view arguments, std::string_view magic) {
  KILN_TRY(std::vector<std::string> words, split_words(arguments));
  if (words.size() != 1) return error(ErrorKind::kValue, "%{} takes one file; quote a name with blanks", magic);
  const std::filesystem::path path(expanded_home(words[0]));
  const std::string extension = path.extension().string();
  if (extension.empty()) return path.string() + ".kiln";
  if (extension != ".kiln" && extension != ".safetensors")
    return error(ErrorKind::kValue, "a session's file ends with .kiln or .safetensors, not '{}'", extension);
  return path.string();
}

void tell(MagicContext& context, const script::SessionFileReport& report, std::string_view did,
          const std::string& path) {
  context.say(fmt::format("{}: {} {} values, {} tensors, {} definitions, {} imports\n", path, did, report.values,
                          report.tensors, report.definitions, report.imports));
  if (report.left_out.empty()) return;
  report::Table table({{"left out", "", report::Align::kLeft, "name"}, {"because", "", report::Align::kLeft}});
  for (const auto& [name, reason] : report.left_out) table.add_row({name, reason});
  context.print(table);
}

}  // namespace

Status magic_save(MagicContext& context, std::string_view arguments) {
  KILN_TRY(const std::string path, session_path(arguments, "save"));
  KILN_TRY(script::SessionFileReport report, script::save_session(context.session, path));
  tell(context, report, "saved", path);
  return {};
}

Status magic_load(MagicContext& context, std::string_view arguments) {
  KILN_TRY(const std::string path, session_path(arguments, "load"));
  KILN_TRY(script::SessionFileReport report, script::load_session(context.session, path));
  tell(context, report, "loaded", path);
  return {};
}

}  // namespace kiln::repl
