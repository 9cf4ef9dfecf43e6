// %source, %plan, %why and %edit: what becomes of a tensor expression.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <stdlib.h>
#include <sys/wait.h>

#include <charconv>
#include <cstdlib>
#include <set>

#include "kiln/expr.h"
#include "repl/files.h"
#include "repl/magics.h"
#include "support/diag.h"
#include "support/files.h"

namespace kiln::repl {

namespace {

using report::Align;
using report::Cell;
using report::Table;

struct Operand {
  std::string text;
  Expr expr;
  std::vector<ExprName> names;
  ExprVariant variant = ExprVariant::kFused;
};

/// Takes "--name VALUE" out of the arguments; empty when it is not there.
std::string take_option(std::string& arguments, std::string_view name) {
  const std::string flag = fmt::format("--{} ", name);
  size_t at = arguments.find(flag);
  if (at == std::string::npos || (at > 0 && arguments[at - 1] != ' ')) return {};
  size_t start = at + flag.size(), end = std::min(arguments.find(' ', start), arguments.size());
  std::string value = arguments.substr(start, end - start);
  arguments.erase(at, end - at);
  return value;
}

Result<Operand> operand(MagicContext& context, std::string arguments, std::string_view magic) {
  Operand out;
  if (std::string variant = take_option(arguments, "variant"); !variant.empty()) {
    auto parsed = parse_expr_variant(variant);
    if (!parsed) {
      std::vector<std::string_view> all;
      for (ExprVariant v : kExprVariants) all.push_back(name(v));
      return error(ErrorKind::kValue, "there is no variant '{}': they are {}", variant, fmt::join(all, ", "));
    }
    out.variant = *parsed;
  }
  while (arguments.ends_with(' ')) arguments.pop_back();
  while (arguments.starts_with(' ')) arguments.erase(0, 1);
  out.text = arguments;  // as %compare will see it: edits are found by it
  KILN_TRY(std::optional<Expr> expr, context.session.expression(arguments));
  if (!expr)
    return error(ErrorKind::kType, "%{} takes a tensor expression, as in gelu(x @ w + b); '{}' gives no tensor", magic,
                 arguments);
  out.expr = *std::move(expr);
  out.names = context.session.tensor_names();
  return out;
}

Result<ExprPlan> plan_of(MagicContext& context, std::string_view arguments, std::string_view magic) {
  KILN_TRY(Operand o, operand(context, std::string(arguments), magic));
  return plan(o.expr, o.variant, o.names);
}

}  // namespace

Status magic_source(MagicContext& context, std::string_view text) {
  std::string arguments(text);
  const std::string file = take_option(arguments, "script");
  KILN_TRY(ExprPlan p, plan_of(context, arguments, "source"));
  if (!file.empty()) {
    KILN_CHECK_OK(write_file_atomic(file, p.script));
    context.output(fmt::format("{}: python3 {} runs it under Triton, kiln run {} here\n", file, file, file));
    return {};
  }
  if (p.groups.empty()) context.output("# nothing is launched: the result is a view of what is there\n");
  for (const ExprGroup& g : p.groups) {
    if (&g != &p.groups.front()) context.output("\n");
    if (g.source.empty())
      context.output(fmt::format("# {}: a product by the library\n", g.name));
    else
      context.output(g.source + (g.source.ends_with('\n') ? "" : "\n"));
  }
  return {};
}

Status magic_plan(MagicContext& context, std::string_view arguments) {
  std::string rest(arguments);
  const std::string svg = take_option(rest, "svg");
  KILN_TRY(ExprPlan p, plan_of(context, rest, "plan"));
  if (!svg.empty()) {
    KILN_CHECK_OK(write_file_atomic(svg, p.svg));
    context.output(fmt::format("{}: {} bytes\n", svg, p.svg.size()));
    return {};
  }
  context.output(p.text + (p.text.ends_with('\n') ? "" : "\n"));
  return {};
}

Status magic_why(MagicContext& context, std::string_view arguments) {
  KILN_TRY(ExprPlan p, plan_of(context, arguments, "why"));
  if (p.boundaries.empty()) {
    context.output(p.groups.size() == 1 ? "all of it is one kernel\n" : "nothing keeps its operations apart\n");
    return {};
  }
  Table table({{"from", "", Align::kLeft},
               {"to", "", Align::kLeft},
               {"bytes", ""},
               {"because", "", Align::kLeft},
               {"what would help", "", Align::kLeft}});
  for (const ExprBoundary& b : p.boundaries) {
    Cell bytes = report::human_bytes(b.bytes);
    bytes.number = b.bytes;
    table.add_row({b.from, b.to, bytes, b.cause, b.help.empty() ? "nothing: it is so" : b.help});
  }
  table.add_note("bytes: written by the one and read back by the other");
  context.print(table);
  return {};
}

// --- %edit
// ----------------------------------------------------------------------------------------------------------------

namespace {

constexpr std::string_view kLaunchLine = "# launch: ";

std::string launch_line(const ExprGroup& g) {
  std::string line = fmt::format("{}grid=({}, {}, {}) num_warps={} num_stages={}", kLaunchLine, g.grid[0], g.grid[1],
                                 g.grid[2], g.num_warps, g.num_stages);
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

/// The first line of the file may have been changed too: grid, warps, stages and constants.
Status read_launch_line(std::string_view text, ExprGroup& g) {
  if (!text.starts_with(kLaunchLine)) return {};
  std::string_view line = text.substr(kLaunchLine.size(), text.find('\n') - kLaunchLine.size());
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
      for (int64_t& dim : g.grid) {
        const size_t comma = std::min(value.find(','), value.size());
        std::string_view one = value.substr(0, comma);
        while (one.starts_with(' ')) one.remove_prefix(1);
        KILN_TRY(dim, integer(one, "grid"));
        value.remove_prefix(std::min(value.size(), comma + 1));
      }
      continue;
    }
    KILN_TRY(int64_t number, integer(value, key));
    if (key == "num_warps") {
      g.num_warps = static_cast<int>(number);
    } else if (key == "num_stages") {
      g.num_stages = static_cast<int>(number);
    } else {
      auto found = std::find_if(g.constants.begin(), g.constants.end(), [&](const auto& c) { return c.first == key; });
      if (found == g.constants.end())
        return error(ErrorKind::kName, "the kernel {} has no constant '{}'", g.kernel, key);
      found->second = number;
    }
  }
  return {};
}

Result<size_t> kernel_to_edit(const VariantPlan& v, const std::string& wanted) {
  std::vector<std::string> names;
  std::vector<size_t> kernels;
  for (size_t i = 0; i < v.groups.size(); ++i) {
    if (v.groups[i].source.empty()) continue;
    if (v.groups[i].kernel == wanted) return i;
    names.push_back(v.groups[i].kernel);
    kernels.push_back(i);
  }
  if (kernels.empty()) return error(ErrorKind::kValue, "there is no kernel of Kiln's in it to edit");
  if (!wanted.empty())
    return error(ErrorKind::kName, "there is no kernel '{}' in it: there are {}", wanted, fmt::join(names, ", "));
  if (kernels.size() > 1)
    return error(ErrorKind::kValue, "which of its kernels? --kernel {}", fmt::join(names, ", --kernel "));
  return kernels[0];
}

Result<std::string> new_edit_file(const std::string& kernel) {
  std::string folder = (getenv("TMPDIR") ? std::string(getenv("TMPDIR")) : "/tmp") + "/kiln-edit-XXXXXX";
  if (!mkdtemp(folder.data())) return error(ErrorKind::kIo, "no folder could be made for the file to edit: {}", folder);
  return folder + "/" + kernel + ".py";
}

Status open_editor(const std::string& file) {
  const char* editor = getenv("VISUAL") ? getenv("VISUAL") : getenv("EDITOR");
  if (!editor || !*editor)
    return with_note(error(ErrorKind::kValue, "no editor is set"),
                     fmt::format("help: set EDITOR, or change {} yourself and give --file {}", file, file));
  std::string quoted = "'";
  for (char c : file) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  const int status = std::system((std::string(editor) + " " + quoted + "'").c_str());
  if (status == -1 || !WIFEXITED(status) || WEXITSTATUS(status) != 0)
    return error(ErrorKind::kIo, "the editor '{}' failed: nothing was compiled", editor);
  return {};
}

/// The file as the session runs it: its helpers have names of their own, so that `gelu` stays what it was.
std::string with_own_helpers(const std::string& text, const std::string& kernel) {
  auto is_word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; };
  constexpr std::string_view kDef = "\ndef ";
  std::set<std::string> helpers;
  for (size_t at = text.find(kDef); at != std::string::npos; at = text.find(kDef, at + 1)) {
    const size_t start = at + kDef.size();
    helpers.insert(text.substr(start, text.find('(', start) - start));
  }
  helpers.erase(kernel);
  std::string out;
  for (size_t i = 0; i < text.size();) {
    size_t end = i;
    while (end < text.size() && is_word(text[end])) ++end;
    if (end == i) {
      out += text[i++];
      continue;
    }
    const std::string word = text.substr(i, end - i);
    const bool attribute = i > 0 && text[i - 1] == '.';
    out += helpers.count(word) && !attribute ? kernel + "_" + word : word;
    i = end;
  }
  return out;
}

}  // namespace

Status magic_edit(MagicContext& context, std::string_view arguments) {
  std::string rest(arguments);
  const std::string wanted = take_option(rest, "kernel");
  std::string file = take_option(rest, "file");
  const std::string budget = take_option(rest, "budget");
  KILN_TRY(Operand o, operand(context, rest, "edit"));
  KILN_TRY(VariantPlan whole, variant(o.expr, o.variant, o.names));
  KILN_CHECK_OK(whole.problem);
  KILN_TRY(size_t index, kernel_to_edit(whole, wanted));
  ExprGroup as = whole.groups[index];
  if (file.empty()) {
    KILN_TRY(file, new_edit_file(as.kernel));
    KILN_CHECK_OK(write_file_atomic(file, launch_line(as) + "\n" + as.source));
    KILN_CHECK_OK(open_editor(file));
  }
  KILN_TRY(std::string text, read_file(file));
  KILN_CHECK_OK(read_launch_line(text, as));
  as.source = text;
  const std::string name = fmt::format("edited {}", context.edits[o.text].size() + 1);
  KILN_TRY(VariantPlan edited, whole.edited(index, as, name));
  // The kernel is a variable from now on.
  KILN_CHECK_OK(context.session.run(with_own_helpers(text, as.kernel), file));
  context.edits[o.text].push_back({o.variant, index, std::move(as), name});
  context.output(
      fmt::format("{}: kernel {} is '{}' of this expression from now on\n", file, whole.groups[index].kernel, name));
  return run_magic(context, "%compare " + o.text + (budget.empty() ? "" : " budget=" + budget));
}

}  // namespace kiln::repl
