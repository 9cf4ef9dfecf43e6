#include "repl/magics/edit_file.h"

#include <fmt/format.h>
#include <stdlib.h>
#include <sys/wait.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <set>

#include "compiler/ast/walk.h"
#include "compiler/parse/parser.h"
#include "runtime/jit/closure.h"
#include "support/diag.h"
#include "support/environment.h"
#include "support/launch_options.h"

namespace kiln::repl {

namespace {

constexpr std::string_view kLaunchLine = "# launch: ";

std::string launch_line(const ExprGroup& g) {
  std::string line = fmt::format("{}grid=({}, {}, {})", kLaunchLine, g.grid[0], g.grid[1], g.grid[2]);
  for (const LaunchOption& o : kLaunchOptions)
    if (o.has('W') || o.get(g) != o.get({})) line += " " + o.text(g);
  for (const auto& [constant, value] : g.constants) line += fmt::format(" {}={}", constant, value);
  return line;
}

Result<int64_t> integer(std::string_view text, std::string_view what) {
  int64_t v = 0;
  auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), v);
  if (code != std::errc{} || end != text.data() + text.size())
    return error(ErrorKind::kValue, "the launch line's {} is a whole number, not '{}'", what, text);
  return v;
}

Status read_launch_line(std::string_view text, ExprGroup& g) {
  // Without the line the launch stays as it was, so a file may consist of the kernel alone.
  if (!text.starts_with(kLaunchLine)) return {};
  std::string_view line = text.substr(kLaunchLine.size(), text.find('\n') - kLaunchLine.size());
  if (line.ends_with('\r')) line.remove_suffix(1);
  while (!line.empty()) {
    const size_t start = line.find_first_not_of(' ');
    if (start == std::string_view::npos) break;
    line.remove_prefix(start);
    const size_t equals = line.find('=');
    if (equals == std::string_view::npos)
      return error(ErrorKind::kValue, "the launch line has NAME=VALUE items, not '{}'", line);
    std::string key(line.substr(0, equals));
    line.remove_prefix(equals + 1);
    const bool tuple = line.starts_with('(');
    size_t end = tuple ? line.find(')') : line.find(' ');
    std::string_view value = line.substr(tuple ? 1 : 0, end == std::string_view::npos ? end : end - (tuple ? 1 : 0));
    line.remove_prefix(std::min(line.size(), end == std::string_view::npos ? line.size() : end + 1));
    if (key == "grid") {
      g.grid = {1, 1, 1};  // as in a script, (7,) leaves out what is 1
      for (int64_t& dim : g.grid) {
        if (&dim != &g.grid[0] && value.find_first_not_of(' ') == std::string_view::npos) break;
        const size_t comma = std::min(value.find(','), value.size());
        std::string_view one = value.substr(0, comma);
        while (one.starts_with(' ')) one.remove_prefix(1);
        KILN_TRY(dim, integer(one, "grid"));
        value.remove_prefix(std::min(value.size(), comma + 1));
      }
      continue;
    }
    if (const LaunchOption* option = find_launch_option(key)) {
      KILN_CHECK_OK(option->read(value, g));
      continue;
    }
    KILN_TRY(int64_t number, integer(value, key));
    auto found = std::find_if(g.constants.begin(), g.constants.end(), [&](const auto& c) { return c.first == key; });
    if (found == g.constants.end()) return error(ErrorKind::kName, "the kernel {} has no constant '{}'", g.kernel, key);
    found->second = number;
  }
  return {};
}

}  // namespace

std::string edit_text(const ExprGroup& group) { return launch_line(group) + "\n" + group.source; }

Status read_edit(const std::string& text, ExprGroup& group) {
  if (text.find_first_not_of(" \t\r\n") == std::string::npos)
    return error(ErrorKind::kValue, "the file is empty: nothing was compiled");
  KILN_CHECK_OK(read_launch_line(text, group));
  group.source = text;
  return {};
}

Result<std::string> new_edit_file(const std::string& kernel) {
  std::string folder = environment("TMPDIR").value_or("/tmp") + "/kiln-edit-XXXXXX";
  if (!mkdtemp(folder.data())) return error(ErrorKind::kIo, "no folder could be made for the file to edit: {}", folder);
  return folder + "/" + kernel + ".py";
}

Status open_editor(const std::string& file) {
  auto editor = environment("VISUAL");
  if (!editor) editor = environment("EDITOR");
  if (!editor || editor->empty())
    return with_note(error(ErrorKind::kValue, "no editor is set"),
                     fmt::format("help: set EDITOR, or change {} yourself and give --file {}", file, file));
  // The editor's setting may have arguments ("code --wait"), so the shell splits it; only the file name is quoted.
  std::string quoted = "'";
  for (char c : file) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  const int status = std::system((*editor + " " + quoted + "'").c_str());
  if (status == -1 || !WIFEXITED(status) || WEXITSTATUS(status) != 0)
    return error(ErrorKind::kIo, "the editor '{}' failed: nothing was compiled", *editor);
  return {};
}

// Edited helpers get the kernel's name as a prefix, because the other kernels of the plan keep the original ones. The
// syntax tree says where a name means the helper: a parameter or a variable of that name is something else.
std::string with_own_helpers(const std::string& text, const std::string& kernel) {
  const auto module = parse::parse_module(SourceText::make("<edit>", text));
  if (!module.ok()) return text;  // running it says why
  std::set<std::string> helpers;
  std::vector<const ast::FunctionDef*> functions;
  for (const ast::StmtPtr& s : (*module)->body)
    if (const auto* def = ast::dyn_as<ast::FunctionDef>(s.get())) {
      functions.push_back(def);
      if (def->name != kernel) helpers.insert(def->name);
    }

  std::set<uint32_t> places;  // where such a name begins
  ast::walk((*module)->body, [](const ast::Stmt&) {},
            [&](const ast::Expr& e) {
              if (const auto* name = ast::dyn_as<ast::Name>(&e); name && helpers.contains(name->id))
                places.insert(e.range.begin);
            });
  for (const ast::FunctionDef* def : functions) {
    const std::vector<std::string> free = runtime::free_names(*def);
    ast::walk(
        def->body, [](const ast::Stmt&) {},
        [&](const ast::Expr& e) {
          if (const auto* name = ast::dyn_as<ast::Name>(&e); name && !std::ranges::binary_search(free, name->id))
            places.erase(e.range.begin);
        });
    if (def->name != kernel) places.insert(def->name_range.begin);
  }

  std::string out;
  size_t copied = 0;
  for (const uint32_t at : places) {
    out += text.substr(copied, at - copied) + kernel + "_";
    copied = at;
  }
  return out + text.substr(copied);
}

}  // namespace kiln::repl
