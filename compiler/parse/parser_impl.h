// The recursive-descent parser; private to this folder. A failure is thrown as SyntaxFailure and caught where parsing
// was asked for, so that the grammar's functions read as the grammar does.
#pragma once
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "compiler/ast/ast.h"
#include "compiler/parse/lexer.h"

namespace kiln::parse {

struct SyntaxFailure {
  Diagnostic diagnostic;
  bool at_end = false;  // the text ended too early
};

class Parser {
 public:
  Parser(const SourceText& source, TokenStream stream) : source_(source), stream_(std::move(stream)) {}

  ast::Body file();
  ast::ExprPtr whole_expression();

  bool keep_unsupported = false;  // as statements of their own

 private:
  static constexpr int kMaxDepth = 200;   // of recursion in this parser
  static constexpr int kMaxElifs = 1000;  // of one `if`: levels of the tree without recursion here
  static constexpr int kMaxHeight =
      1000;  // of an expression's tree, which chains such as a+a+a… grow without recursion

  /// One level of recursion; leaves when the scope does.
  class Level {
   public:
    explicit Level(Parser& p);
    ~Level() { --parser_.depth_; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;

   private:
    Parser& parser_;
  };

  // --- tokens (parser.cc) ---
  const Token& now() const { return stream_.tokens[at_]; }
  const Token& ahead(size_t n) const { return stream_.tokens[std::min(at_ + n, stream_.tokens.size() - 1)]; }
  bool at(Tok kind);
  bool take(Tok kind);
  Token advance();
  SourceRange range(const Token& t) const { return {&source_, t.begin, t.end}; }
  SourceRange since(uint32_t begin) const { return {&source_, begin, last_end_}; }
  std::string describe(const Token& t) const;
  SourceRange here() const;  // the current token, or just behind the last one at the end of a line
  [[noreturn]] void fail(Diagnostic d);
  [[noreturn]] void fail_expected(std::string what);
  Token expect_identifier(std::string_view what);
  /// The name that an identifier means: in a class `__x` is `_Class__x`.
  std::string name_of(SourceRange identifier) const;
  void expect_close(Tok close, const Token& open);
  void check_token();
  /// Marks that the expression around grows by a level without recursion.
  void grow_chain();

  // --- statements (parse_stmt.cc) ---
  void statement(ast::Body& out);
  void supported_statement(ast::Body& out);
  /// Behind a statement that cannot be parsed: its line, its block, and the clauses that belong to it.
  void skip_statement();
  void simple_line(ast::Body& out);
  ast::StmtPtr simple();
  ast::StmtPtr expression_statement();
  ast::StmtPtr import_statement();
  ast::StmtPtr from_statement();
  std::string dotted_name(std::string_view what);
  ast::StmtPtr if_statement();
  ast::StmtPtr while_statement();
  ast::StmtPtr for_statement();
  ast::StmtPtr try_statement();
  ast::StmtPtr with_statement();
  ast::StmtPtr function(std::vector<ast::ExprPtr> decorators, uint32_t begin);
  ast::StmtPtr class_def(std::vector<ast::ExprPtr> decorators);
  ast::StmtPtr decorated();
  /// ':' and the block behind it. `owner` is the keyword's token, for messages.
  ast::Body block(const Token& owner);
  ast::Body loop_block(const Token& owner);
  void expect_colon(const Token& owner);

  // --- match (parse_match.cc) ---
  /// `match` and `case` are names wherever no such statement begins.
  bool at_match() const;
  ast::StmtPtr match_statement();
  ast::Match::Case match_case();
  ast::Pattern open_pattern();   // `a, *b` without brackets
  ast::Pattern whole_pattern();  // with `as`
  ast::Pattern or_pattern();
  ast::Pattern closed_pattern();
  ast::Pattern value_pattern();
  ast::Pattern sequence_part();
  ast::Pattern bracketed_pattern();
  ast::Pattern mapping_pattern();
  ast::Pattern class_pattern(ast::ExprPtr type);
  ast::ExprPtr pattern_constant();
  std::string captured_name(const Token& name);
  void check_case(const ast::Match::Case& c, bool last);

  // --- expressions (parse_expr.cc) ---
  ast::ExprPtr expression();               // no tuple, no walrus
  ast::ExprPtr named_expression();         // with walrus
  ast::ExprPtr expressions(bool starred);  // `a, b`: a Tuple when there is a comma
  ast::ExprPtr target_list();              // of for: stops before `in`
  std::vector<ast::Param> parameters(Tok close, bool annotations);
  void check_target(const ast::Expr& e, bool in_list = false);
  ast::ExprPtr disjunction();
  ast::ExprPtr conjunction();
  ast::ExprPtr inversion();
  ast::ExprPtr comparison();
  ast::ExprPtr binary(int min_precedence);
  ast::ExprPtr unary();
  ast::ExprPtr power();
  ast::ExprPtr postfix();
  ast::ExprPtr atom();
  ast::ExprPtr call(ast::ExprPtr callee);
  ast::ExprPtr subscript(ast::ExprPtr base);
  ast::ExprPtr subscript_item();
  ast::ExprPtr parenthesised();
  ast::ExprPtr yield();
  ast::ExprPtr list_display();
  ast::ExprPtr brace_display();
  ast::ExprPtr lambda();
  ast::ExprPtr star_or_named();
  std::vector<ast::ForClause> for_clauses();
  ast::ExprPtr comprehension(ast::Comprehension::Form form, ast::ExprPtr element, ast::ExprPtr value, uint32_t begin);

  // --- strings (parse_string.cc) ---
  ast::ExprPtr strings();
  ast::ExprPtr bytes(uint32_t begin);
  void format_pieces(uint32_t begin, uint32_t end, const StringHead& head, ast::JoinedStr& out, int level);
  ast::JoinedStr::Piece field(const FieldLayout& f, const StringHead& head, int level);
  ast::ExprPtr piece_expression(uint32_t begin, uint32_t end);

  const SourceText& source_;
  TokenStream stream_;
  size_t at_ = 0;
  uint32_t last_end_ = 0;  // end of the last token that was more than layout
  int depth_ = 0;
  int height_ = 0;  // an upper bound on the height of the expressions read since the innermost expression() began
  bool in_function_ = false, yields_ = false;
  int loops_ = 0;
  std::string class_;  // the class whose body this is, without leading underscores; empty: none, or nothing but those
};

}  // namespace kiln::parse
