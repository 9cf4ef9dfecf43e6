#include "repl/shell/entry_text.h"

#include <algorithm>

#include "compiler/parse/lexer.h"
#include "compiler/parse/parser.h"
#include "repl/magics/magic_options.h"
#include "repl/shell/question.h"
#include "support/text.h"

namespace kiln::repl {

namespace {

using editor::Style;
using editor::Styled;
using parse::Tok;

bool is_command_line(std::string_view line, Commands commands) {
  if (percent_command(line)) return true;
  return commands != Commands::kPercent && question_of(line).has_value();
}

/// Where the command in a line ends: at a `;` outside of brackets and strings, unless it is one of its statements.
size_t end_of_command(std::string_view line) {
  const auto command = percent_command(line);
  if (!command || !command->command.starts_with('%') || line.size() > UINT32_MAX) return line.size();
  if (takes_statements(command->command.substr(1, command->command.find_first_of(" \t;") - 1))) return line.size();
  auto source = SourceText::make("", std::string(line));
  int depth = 0;
  for (const parse::Token& t : parse::lex(*source, 0, static_cast<uint32_t>(line.size()), true).tokens) {
    const std::string_view mark = parse::spelling(t.kind);
    depth += (mark == "(" || mark == "[" || mark == "{") - (mark == ")" || mark == "]" || mark == "}");
    if (t.kind == Tok::kSemicolon && depth == 0) return t.begin;
  }
  return line.size();
}

/// Where a command begins in a line: at its start, or behind statements: x = 3; r = %bench x. npos: it has none. What
/// stands behind the colon of a block belongs to the block.
size_t start_of_command(std::string_view line, Commands commands) {
  if (is_command_line(line, commands)) return 0;
  if (line.find_first_of("%!?") == std::string_view::npos || line.size() > UINT32_MAX) return std::string_view::npos;
  auto source = SourceText::make("", std::string(line));
  size_t begin = 0;  // of a statement
  const auto is_command = [&](size_t end) {
    return begin > 0 && is_command_line(trimmed(line.substr(begin, end - begin)), commands);
  };
  int depth = 0;
  for (const parse::Token& t : parse::lex(*source, 0, static_cast<uint32_t>(line.size()), true).tokens) {
    const std::string_view mark = parse::spelling(t.kind);
    depth += (mark == "(" || mark == "[" || mark == "{") - (mark == ")" || mark == "]" || mark == "}");
    if (depth != 0) continue;
    if (t.kind == Tok::kColon) return std::string_view::npos;
    if (t.kind != Tok::kSemicolon) continue;
    if (is_command(t.begin)) return begin;
    begin = t.end;
  }
  return is_command(line.size()) ? begin : std::string_view::npos;
}

/// Words that are commands when they are all that is entered.
bool is_command_word(std::string_view text) {
  text = trimmed(text);
  return text == "exit" || text == "quit";
}

}  // namespace

// Behind the '=' of an assignment no expression begins with % or !, so that it needs no other sign.
std::optional<CommandLine> percent_command(std::string_view line) {
  line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
  if (line.starts_with('%') || line.starts_with('!')) return CommandLine{{}, line};
  if (line.empty() || line.find_first_of("%!") == std::string_view::npos || line.size() > UINT32_MAX)
    return std::nullopt;
  auto source = SourceText::make("", std::string(line));
  const std::vector<parse::Token> tokens = parse::lex(*source, 0, static_cast<uint32_t>(line.size())).tokens;
  int depth = 0;
  for (size_t i = 1; i + 1 < tokens.size(); ++i) {
    const std::string_view mark = parse::spelling(tokens[i].kind);
    depth += (mark == "(" || mark == "[" || mark == "{") - (mark == ")" || mark == "]" || mark == "}");
    // No token begins with '!' but !=, so that it is an error's.
    const bool is_shell = tokens[i + 1].kind == Tok::kError && line[tokens[i + 1].begin] == '!';
    if (tokens[i].kind == Tok::kSemicolon && depth == 0) return std::nullopt;
    if (tokens[i].kind != Tok::kAssign || (tokens[i + 1].kind != Tok::kPercent && !is_shell) || depth != 0) continue;
    return CommandLine{trimmed(line.substr(0, tokens[i].begin)), line.substr(tokens[i + 1].begin)};
  }
  return std::nullopt;
}

std::vector<Piece> split_program(std::string_view text, Commands commands) {
  if (commands == Commands::kPrompt && is_command_word(text)) return {{std::string(trimmed(text)), true, 0}};
  std::vector<Piece> pieces;
  Piece code;
  auto flush = [&] {
    if (!trimmed(code.text).empty()) pieces.push_back(std::move(code));
    code = {};
  };
  size_t number = 0;
  for (size_t at = 0; at < text.size(); ++number) {
    const size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line = text.substr(at, end - at);
    at = end + 1;
    // Behind other code, an indented line belongs to its last block.
    auto ends_code = [&] {
      return trimmed(code.text).empty() || !(is_blank(line[0]) || parse::is_incomplete(code.text + "\n"));
    };
    bool is_done = false;
    while (!is_done) {
      const size_t start = start_of_command(line, commands);
      if (start == std::string_view::npos || !ends_code()) break;
      if (start > 0) {
        if (code.text.empty()) code.first_line = number;
        (code.text += line.substr(0, start)) += '\n';
        line = trimmed(line.substr(start));
      }
      flush();
      const size_t stop = end_of_command(line);
      pieces.push_back({std::string(trimmed(line.substr(0, stop))), true, number});
      line = trimmed(line.substr(std::min(stop + 1, line.size())));
      is_done = line.empty();
    }
    if (is_done) continue;
    if (code.text.empty()) code.first_line = number;
    code.text += line;
    code.text += '\n';
  }
  flush();
  return pieces;
}

bool entry_is_incomplete(std::string_view text) {
  const std::vector<Piece> pieces = split_program(text, Commands::kPrompt);
  return !pieces.empty() && !pieces.back().is_command && parse::is_incomplete(pieces.back().text);
}

namespace {

Style style_of(Tok kind) {
  if (parse::is_keyword(kind)) return Style::kKeyword;
  if (kind == Tok::kString) return Style::kString;
  return kind == Tok::kInt || kind == Tok::kFloat ? Style::kNumber : Style::kPlain;
}

/// What stands between tokens is blank or a comment.
void add_comments(std::string_view text, size_t begin, size_t end, std::vector<Styled>& out) {
  for (size_t at = text.find('#', begin); at < end; at = text.find('#', at)) {
    const size_t stop = std::min(text.find('\n', at), end);
    out.push_back({at, stop, Style::kComment});
    at = stop;
  }
}

}  // namespace

std::vector<Styled> highlight(std::string_view text) {
  std::vector<Styled> out;
  if (text.size() >= UINT32_MAX) return out;
  auto source = SourceText::make("", std::string(text));
  const uint32_t size = static_cast<uint32_t>(text.size());
  for (uint32_t from = 0; from < size;) {
    const parse::TokenStream stream = parse::lex(*source, from, size, true);
    uint32_t seen = from, next = size;
    for (const parse::Token& t : stream.tokens) {
      add_comments(text, seen, t.kind == Tok::kEnd ? size : t.begin, out);
      seen = std::max(seen, t.end);
      if (t.kind == Tok::kError) {
        // From here to the end of the line nothing is known, but that an open quote begins a string.
        const size_t at = std::max(t.begin, from);
        const bool whole = stream.open == parse::Open::kTripleString;
        const size_t stop = whole ? size : std::min<size_t>(text.find('\n', at), size);
        const size_t quote = text.find_first_of("\"'", at);
        if (quote < stop) out.push_back({at, stop, Style::kString});
        next = static_cast<uint32_t>(std::min<size_t>(stop + 1, size));
        break;
      }
      if (const Style style = style_of(t.kind); style != Style::kPlain) out.push_back({t.begin, t.end, style});
    }
    from = std::max(next, from + 1);
  }
  // Commands and decorators, at the start of their lines.
  for (size_t at = 0; at < text.size();) {
    const size_t content = text.find_first_not_of(' ', at);
    if (content == std::string_view::npos) break;
    const std::string_view line = text.substr(at, text.find('\n', at) - at);
    const auto command = percent_command(line);
    const size_t begin = command ? static_cast<size_t>(command->command.data() - text.data()) : content;
    if (command || text[content] == '@') {
      const size_t end = std::min(text.find_first_of(" \n([", begin), text.size());
      if (end > begin + 1) out.push_back({begin, end, command ? Style::kCommand : Style::kDecorator});
    }
    at = std::min(text.find('\n', content), text.size() - 1) + 1;
  }
  return out;
}

}  // namespace kiln::repl
