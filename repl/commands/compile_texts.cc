#include "repl/commands/compile_texts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string_view>

#include "compiler/ast/walk.h"
#include "repl/shell/files.h"
#include "support/notebook.h"

namespace kiln::repl {

namespace {

/// Most strings of a file are not parsed.
bool may_have_kernels(const std::string& text) {
  const size_t at = text.find('@');
  return at != text.npos && text.find("jit", at) != text.npos && text.find("def ", at) != text.npos;
}

constexpr std::string_view kImports = "import torch, triton; import triton.language as tl\n";

/// Cells under these magics run as Python.
constexpr std::array<std::string_view, 5> kRunning = {"%%time", "%%timeit", "%%capture", "%%writefile", "%%file"};

void add_cell(std::string& out, std::string_view cell, int number) {
  out += fmt::format("{}{}\n", kCellMark, number);
  bool other = false;
  if (cell.starts_with("%%")) {
    const std::string_view magic = cell.substr(0, cell.find_first_of(" \t\n"));
    other = std::ranges::find(kRunning, magic) == kRunning.end();
  }
  while (!cell.empty()) {
    const size_t end = std::min(cell.find('\n'), cell.size());
    const std::string_view line = cell.substr(0, end);
    const size_t begin = line.find_first_not_of(" \t");
    const bool magic = begin != line.npos && (line[begin] == '%' || line[begin] == '!');
    if (other)
      out.append("# ").append(line);
    else if (magic)  // it may be all that an `if` has
      out.append(line.substr(0, begin)).append("pass  # ").append(line.substr(begin));
    else
      out.append(line);
    out += '\n';
    cell.remove_prefix(std::min(end + 1, cell.size()));
  }
}

Result<std::string> notebook_text(const std::string& path, const std::string& json) {
  const nlohmann::json book = nlohmann::json::parse(json, nullptr, false);
  const auto cells = book.is_object() ? book.find("cells") : book.end();
  if (!book.is_object() || cells == book.end() || !cells->is_array())
    return with_note(error(ErrorKind::kSyntax, "{} is not a notebook: it has no cells", path),
                     "help: notebooks are read in the format of Jupyter, version 4");
  std::string out;
  int number = 0;
  for (const nlohmann::json& cell : *cells) {
    if (!cell.is_object()) continue;
    const auto type = cell.find("cell_type"), source = cell.find("source");
    if (type == cell.end() || source == cell.end() || !type->is_string() || type->get<std::string>() != "code")
      continue;
    std::string text;
    if (source->is_string()) text = source->get<std::string>();
    if (source->is_array())
      for (const nlohmann::json& line : *source)
        if (line.is_string()) text += line.get<std::string>();
    add_cell(out, text, ++number);
  }
  return out;
}

}  // namespace

std::vector<KernelText> kernel_texts(const ast::Module& module) {
  std::vector<KernelText> out;
  std::string name;
  const ast::Expr* docstring = nullptr;
  ast::walk(
      module.body,
      [&](const ast::Stmt& s) {
        const auto* a = ast::dyn_as<ast::Assign>(&s);
        const auto* target = a && a->targets.size() == 1 ? ast::dyn_as<ast::Name>(a->targets[0].get()) : nullptr;
        name = target ? target->id : "";
        if (const auto* e = ast::dyn_as<ast::ExprStmt>(&s)) docstring = e->value.get();
      },
      [&](const ast::Expr& e) {
        const auto* c = ast::dyn_as<ast::ConstantExpr>(&e);
        const auto* text = c && !c->is_bytes && &e != docstring ? std::get_if<std::string>(&c->value) : nullptr;
        if (!text || !may_have_kernels(*text)) return;
        const Place place = place_of(e.range);
        const int cell = cell_place(place).cell;
        std::string before = cell ? fmt::format("{}{}\n", kCellMark, cell) : "";
        auto lines = static_cast<size_t>(std::max(0, place.line - 1));
        // What is written behind other texts leaves their imports out.
        if (lines > 0 && text->find("import") == text->npos) --lines, before += kImports;
        before.append(lines, '\n');
        out.push_back({name, before + *text});
      });
  return out;
}

Result<std::string> read_source(const std::string& path) {
  KILN_TRY(std::string text, read_text(path));
  return path.ends_with(".ipynb") ? notebook_text(path, text) : text;
}

}  // namespace kiln::repl
