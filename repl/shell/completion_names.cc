// Tab for names that no variable has: what imports could name, and what the text before the cursor binds.
#include <algorithm>
#include <set>

#include "compiler/parse/lexer.h"
#include "repl/shell/completion_words.h"
#include "support/text.h"

namespace kiln::repl {

namespace {

using editor::Completion;
using parse::Tok;
using parse::Token;

/// The statement that the text ends in, from its first word: behind the last line's beginning, or that of the line
/// whose bracket is open.
std::string_view statement_at_end(std::string_view before) {
  const size_t bracket = cursor_place(before).bracket;
  const size_t at = bracket == std::string_view::npos ? before.size() : bracket;
  const size_t line = before.substr(0, at).rfind('\n');
  std::string_view out = before.substr(line == std::string_view::npos ? 0 : line + 1);
  if (const size_t semicolon = out.substr(0, at).rfind(';'); semicolon != std::string_view::npos)
    out.remove_prefix(semicolon + 1);
  return out.substr(std::min(out.find_first_not_of(" \t"), out.size()));
}

/// "a.b.c" at the end.
std::string_view word_of(std::string_view text) { return path_before(text); }

}  // namespace

bool complete_import(script::Session& session, std::string_view before, Completion& to) {
  const std::string_view statement = statement_at_end(before);
  const bool is_from = statement.starts_with("from ");
  if (!is_from && !statement.starts_with("import ")) return false;
  const std::string_view rest = trimmed(statement.substr(is_from ? 5 : 7));
  const std::string_view word = word_of(before);
  to.replaced = word.size();
  const size_t blank = rest.find_first_of(" \t(");
  if (!is_from || (blank == std::string_view::npos && !statement.ends_with(' '))) {
    if (!word.starts_with('.'))
      for (std::string& path : session.modules(word)) offer(to, word, std::move(path));
    return true;
  }
  const std::string_view path = rest.substr(0, blank);
  const std::string_view behind = blank == std::string_view::npos ? "" : trimmed(rest.substr(blank));
  if (!behind.starts_with("import") || behind == word) {
    if (path != word) offer(to, word, "import ");
    return true;
  }
  for (std::string& name : session.names_of_module(path))
    if (name[0] != '_' || word.starts_with('_')) offer(to, word, std::move(name));
  return true;
}

namespace {

/// Goes through the tokens of a text that may be unfinished, and collects the names that it binds.
class BoundNames {
 public:
  explicit BoundNames(std::string_view text)
      : source_(SourceText::make("", std::string(text))),
        tokens_(parse::lex(*source_, 0, static_cast<uint32_t>(text.size()), true).tokens) {}

  std::set<std::string> find() {
    for (size_t i = 0; i < tokens_.size(); ++i) {
      switch (tokens_[i].kind) {
        case Tok::kDef:
        case Tok::kClass:
          add(i + 1);
          if (tokens_[i].kind == Tok::kDef && kind(i + 2) == Tok::kLParen) add_parameters(i + 3, Tok::kRParen);
          break;
        case Tok::kLambda:
          add_parameters(i + 1, Tok::kColon);
          break;
        case Tok::kFor:
          for (size_t k = i + 1; k < tokens_.size() && kind(k) != Tok::kIn; ++k) add(k);
          break;
        case Tok::kAs:
          add(i + 1);
          break;
        case Tok::kAssign:
          add_targets(i);
          break;
        default:
          break;
      }
    }
    return std::move(names_);
  }

 private:
  Tok kind(size_t i) const { return i < tokens_.size() ? tokens_[i].kind : Tok::kEnd; }
  std::string_view text(size_t i) const {
    return source_->text().substr(tokens_[i].begin, tokens_[i].end - tokens_[i].begin);
  }
  void add(size_t i) {
    if (kind(i) == Tok::kIdentifier) names_.emplace(text(i));
  }
  static int depth_of(Tok t) {
    if (t == Tok::kLParen || t == Tok::kLBracket || t == Tok::kLBrace) return 1;
    return t == Tok::kRParen || t == Tok::kRBracket || t == Tok::kRBrace ? -1 : 0;
  }

  /// A name at the begin, and behind each comma and star outside of brackets.
  void add_parameters(size_t begin, Tok close) {
    int depth = 0;
    bool is_name = true;
    for (size_t i = begin; i < tokens_.size() && !(depth == 0 && kind(i) == close); ++i) {
      if (depth == 0 && is_name) add(i);
      depth += depth_of(kind(i));
      is_name = kind(i) == Tok::kComma || kind(i) == Tok::kStar || kind(i) == Tok::kPow;
    }
  }

  /// What stands before the '=' on its line: `a, b = …`, `x: int = …`. In a call's bracket it is a keyword, which
  /// binds nothing.
  void add_targets(size_t equals) {
    size_t begin = equals;
    int depth = 0;
    while (begin > 0) {
      depth += depth_of(kind(begin - 1));
      if (depth > 0) return;  // within a bracket
      if (depth == 0 && begin < equals && is_line_start(begin)) break;
      --begin;
    }
    for (size_t i = begin; i < equals && kind(i) != Tok::kColon; ++i) {
      if (kind(i) == Tok::kLBracket) return;  // an element
      if (kind(i + 1) != Tok::kDot && (i == begin || kind(i - 1) != Tok::kDot)) add(i);
    }
  }

  /// Tokens are read as within a bracket, where an unfinished block is no error: ends of lines are looked up.
  bool is_line_start(size_t i) const {
    const std::string_view all = source_->text();
    return i == 0 || all.substr(tokens_[i - 1].end, tokens_[i].begin - tokens_[i - 1].end).find_first_of("\n;") !=
                         std::string_view::npos;
  }

  std::shared_ptr<const SourceText> source_;
  std::vector<Token> tokens_;
  std::set<std::string> names_;
};

}  // namespace

void add_bound_names(std::string_view text, std::vector<std::string>& names) {
  if (text.find('\n') == std::string_view::npos && text.find("lambda") == std::string_view::npos &&
      text.find("for ") == std::string_view::npos)
    return;
  std::set<std::string> all = BoundNames(text).find();
  all.insert(names.begin(), names.end());
  names.assign(all.begin(), all.end());
}

}  // namespace kiln::repl
