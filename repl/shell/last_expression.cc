#include "repl/shell/last_expression.h"

#include <algorithm>

#include "compiler/parse/parser.h"

namespace kiln::repl {

std::string take_last_expression(std::string& program) {
  auto module = parse::parse_module(SourceText::make("<program>", program));
  if (!module.ok() || (*module)->body.empty()) return {};
  const auto* last = ast::dyn_as<ast::ExprStmt>((*module)->body.back().get());
  if (!last) return {};
  const size_t begin = last->range.begin;
  std::string out(
      static_cast<size_t>(std::count(program.begin(), program.begin() + static_cast<ptrdiff_t>(begin), '\n')), '\n');
  out += program.substr(begin, last->range.end - begin);
  program.resize(begin);
  return out;
}

}  // namespace kiln::repl
