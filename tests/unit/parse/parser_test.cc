#include "compiler/parse/parser.h"

#include <gtest/gtest.h>

#include <random>

#include "tests/golden/cases.h"

namespace kiln::parse {
namespace {

Result<std::shared_ptr<const ast::Module>> parse(std::string text) {
  return parse_module(SourceText::make("t.py", std::move(text)));
}

std::string repeat(std::string_view piece, int n) {
  std::string out;
  for (int i = 0; i < n; ++i) out += piece;
  return out;
}

class ParseGolden : public ::testing::TestWithParam<std::filesystem::path> {};

TEST_P(ParseGolden, Matches) {
  bool bad = GetParam().filename().string().rfind("bad_", 0) == 0;
  kiln::testing::check_golden(GetParam(), [&](const kiln::testing::GoldenCase& c) {
    auto module = parse(c.input);
    EXPECT_EQ(module.ok(), !bad) << c.name;
    return module.ok() ? ast::dump(**module) : render(module.error());
  });
}

INSTANTIATE_TEST_SUITE_P(Files, ParseGolden, ::testing::ValuesIn(kiln::testing::golden_files("parse")),
                         [](const auto& file) {
                           std::string name = file.param.stem().string();
                           std::replace_if(
                               name.begin(), name.end(),
                               [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); }, '_');
                           return name;
                         });

TEST(Parser, RefusesDeepNestingInsteadOfOverflowing) {
  const int n = 100000;
  for (const std::string& text :
       {repeat("(", n), repeat("[", n) + repeat("]", n), repeat("a+", n) + "a", "a" + repeat(".b", n),
        "a" + repeat("[0]", n), repeat("-", n) + "1", repeat("not ", n) + "1", repeat("2**", n) + "2",
        repeat("lambda:", n) + "1", "x" + repeat(" if y else x", n), repeat("[*", n),
        "if x: pass\n" + repeat("elif x: pass\n", n), "f'" + repeat("{x:", n) + repeat("}", n) + "'", repeat("a(", n),
        repeat("{1:", n), repeat("f'{", n)}) {
    auto module = parse(text);
    ASSERT_FALSE(module.ok()) << text.substr(0, 30);
    EXPECT_EQ(module.error().kind, ErrorKind::kSyntax) << text.substr(0, 30);
  }
}

TEST(Parser, TakesLongFlatPrograms) {
  EXPECT_TRUE(parse("x = " + repeat("a or ", 5000) + "a").ok());
  EXPECT_TRUE(parse("x = [" + repeat("a.b[0](1+2+3), ", 20000) + "]").ok());
  EXPECT_TRUE(parse(repeat("x = 1\n", 50000)).ok());
  EXPECT_TRUE(parse("x = " + repeat("(", 80) + "1" + repeat(")", 80)).ok());
  EXPECT_TRUE(parse("if x: pass\n" + repeat("elif x: pass\n", 1000) + "else: pass\n").ok());
}

TEST(Parser, KeepsRanges) {
  auto module = parse("@jit\ndef f(a):\n    return a + foo( b )\n\nx = 1\n");
  ASSERT_TRUE(module.ok());
  const auto* f = (*module)->function("f");
  ASSERT_NE(f, nullptr);
  EXPECT_EQ(f->range.str(), "def f(a)");
  EXPECT_EQ(f->full_range.str(), "@jit\ndef f(a):\n    return a + foo( b )");
  const auto& ret = ast::as<ast::Return>(*f->body[0]);
  EXPECT_EQ(ret.range.str(), "return a + foo( b )");
  const auto& sum = ast::as<ast::Binary>(*ret.value);
  EXPECT_EQ(sum.op_range.str(), "+");
  EXPECT_EQ(sum.right->range.str(), "foo( b )");
}

TEST(Parser, TheLastDefinitionOfANameCounts) {
  auto module = parse("def f(): return 1\ndef f(): return 2\n");
  ASSERT_TRUE(module.ok());
  EXPECT_EQ((*module)->function("f")->range.begin, 18u);
  EXPECT_EQ((*module)->function("g"), nullptr);
}

TEST(Parser, TakesUtf8AloneInStringsAndCommentsToo) {
  EXPECT_TRUE(parse("é = 'ü日本' + f'{é}ß'  # œ\n").ok());
  for (const auto& [text, column] : {std::pair{"x = '\xff'\n", 6},
                                     {"x = 1  # caf\xe9\n", 13},
                                     {"x = f'{1}\xc3'\n", 10},
                                     {"'''\xed\xa0\x80'''\n", 4},
                                     {"\xc0\xaf = 1\n", 1}}) {
    const auto module = parse(text);
    ASSERT_FALSE(module.ok()) << text;
    EXPECT_EQ(module.error().message, "the text is not valid UTF-8");
    EXPECT_EQ(module.error().place.column, column) << text;
  }
}

TEST(Parser, AnyTextGivesATreeOrAnError) {
  unsigned seed = std::random_device{}();
  RecordProperty("seed", static_cast<int>(seed));
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 rng(seed);
  constexpr std::string_view kPieces[] = {
      "x",      " ",        "\n",   "\n  ",    "\n    ", "(",   ")",     "[",      "]",      "{",   "}",
      ":",      ",",        "=",    "==",      "'",      "\"",  "f'",    "\"\"\"", "\\",     "\t",  "1",
      "0x",     "1e",       ".",    "*",       "**",     "->",  "not",   "is",     "lambda", "if ", "else ",
      "for ",   "in ",      "def ", "class ",  "@",      "try", "with ", "as ",    ":=",     "#",   ";",
      "return", "\xc3\xa9", "\xff", "import ", "from ",  "...", "!",     "!r",     "\x01x"};
  for (int i = 0; i < 4000; ++i) {
    std::string text;
    for (size_t n = rng() % 24; n > 0; --n) text += kPieces[rng() % std::size(kPieces)];
    auto module = parse(text);
    if (module.ok()) {
      EXPECT_NO_FATAL_FAILURE(ast::dump(**module));
    } else {
      EXPECT_GE(module.error().place.line, 1) << text;
      EXPECT_FALSE(render(module.error()).empty());
    }
    is_incomplete(text);
    parse_expression(SourceText::make("e", text)).ok();
  }
}

TEST(IsIncomplete, AsksForFurtherLines) {
  for (const char* text :
       {"f(1,", "x = [", "s = '''abc", "x = 1 + \\", "if x:", "if x:\n", "def f():\n    return 1",
        "def f():\n    return 1\n", "@jit", "@jit\n", "for i in y:\n  a(1,\n", "try:\n  x\n", "if x: y", "else_ = (",
        "x = {'a': 1,\n", "def g(n):\n    for i in range(n):\n", "def g(n):\n    for i in n:\n        if i:\n",
        "class A:\n  def f(self):\n    try:\n      a\n"})
    EXPECT_TRUE(is_incomplete(text)) << text;
  for (const char* text : {"", "x = 1", "x = 1\n", "f(1)", "def f():\n    return 1\n\n", "if x: y\n\n", "x = ", "x = )",
                           "f(1 2", "s = 'abc", "return 1", "if x = 1:\n", "# note", "x = 1 2\n"})
    EXPECT_FALSE(is_incomplete(text)) << text;
}

TEST(ParseExpression, TakesOneExpressionOnly) {
  EXPECT_TRUE(parse_expression(SourceText::make("e", "  a + 1")).ok());
  EXPECT_TRUE(parse_expression(SourceText::make("e", "a, b")).ok());
  EXPECT_FALSE(parse_expression(SourceText::make("e", "a = 1")).ok());
  EXPECT_FALSE(parse_expression(SourceText::make("e", "")).ok());
}

}  // namespace
}  // namespace kiln::parse
