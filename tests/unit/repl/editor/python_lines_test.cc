#include "repl/editor/python_lines.h"

#include <gtest/gtest.h>

namespace kiln::editor {
namespace {

TEST(PythonLines, TheNextLinesIndentation) {
  struct Case {
    const char* text;
    int blanks;
  };
  for (const Case& c : {Case{"", 0},
                        {"x = 1", 0},
                        {"def g(n):", 4},
                        {"def g(n):\n    for i in range(n):", 8},
                        {"def g(n):\n    x = 1", 4},
                        {"def g(n):\n    x = 1\n    ", 4},
                        {"def g(n):  # a note: yes", 4},
                        {"# a note:", 0},
                        {"x = 'a:'", 0},
                        {"x = {'a':", 4},
                        {"f(a,", 4},
                        {"f(a,\n    b,", 4},
                        {"f(a,\n    b)", 0},
                        {"    f(a,\n      b)", 4},
                        {"if x:\n    return f(a,\n             b)", 0},
                        {"if x:\n    return", 0},
                        {"if x:\n    returned = 1", 4},
                        {"for i in x:\n    if i:\n        break", 4},
                        {"    pass", 0},
                        {"if a and \\\n        b:", 4},
                        {"s = '''abc:", 0},
                        {"def f():\n    s = \"it's\"", 4},
                        {"'", 0},
                        {"if x:\n    s = 'open:", 4}})
    EXPECT_EQ(indent_after(c.text), c.blanks) << c.text;
}

TEST(PythonLines, ClausesGoBackToTheirStatement) {
  EXPECT_EQ(indent_of_clause("if x:\n    y = 1\n    else"), 0);
  EXPECT_EQ(indent_of_clause("def f():\n    if x:\n        y = 1\n        elif y"), 4);
  EXPECT_EQ(indent_of_clause("if x:\n    if y:\n        z\n    else"), -1);  // belongs to the inner one
  EXPECT_EQ(indent_of_clause("if x:\n    y\nelse"), -1);
  EXPECT_EQ(indent_of_clause("try:\n    f()\n    except E as e"), 0);
  EXPECT_EQ(indent_of_clause("match x:\n    case 1:\n        y\n        case [2, z] if z"), 4);
  EXPECT_EQ(indent_of_clause("match x:\n    case 1"), -1);
  EXPECT_EQ(indent_of_clause("x = 1\nelse"), -1);
  EXPECT_EQ(indent_of_clause("d = {1: 2}\nx = lambda"), -1);
}

TEST(PythonLines, EntriesOfATranscriptAreKnown) {
  using Texts = std::vector<std::string>;
  EXPECT_EQ(entries_of_transcript("[1] x = 1\n[2] def f():\n...     return 1\n...\n[3] f()\n1\n"),
            (Texts{"x = 1\n", "def f():\n    return 1\n\n", "f()\n"}));
  EXPECT_EQ(entries_of_transcript("\n>>> a\n3\n>>> b"), (Texts{"a\n", "b\n"}));
  EXPECT_EQ(entries_of_transcript("x = 1\n>>> y"), Texts{});
}

TEST(PythonLines, PastesLoseTheirPrompts) {
  EXPECT_EQ(cleaned_paste("[1] x = 1\n[2] def f():\n...     return 1\n...\n[3] f()\n1\n"),
            "x = 1\ndef f():\n    return 1\n\nf()\n");
  EXPECT_EQ(cleaned_paste(">>> for i in x:\n...     print(i)\n... \n0\n1\n>>> y"), "for i in x:\n    print(i)\n\ny\n");
  EXPECT_EQ(cleaned_paste("In [1]: if x:\n   ...:     y\n   ...: \nIn [12]: z"), "if x:\n    y\n\nz\n");
  EXPECT_EQ(cleaned_paste("[1] + x"), "[1] + x");
  EXPECT_EQ(cleaned_paste("[1] if a else b"), "[1] if a else b");
  EXPECT_EQ(cleaned_paste("[10] if a:\n...     b"), "if a:\n    b\n");
  EXPECT_EQ(cleaned_paste("[7] %ptx add_kernel"), "%ptx add_kernel\n");
  EXPECT_EQ(cleaned_paste("x = [\n[1] + y]"), "x = [\n[1] + y]");
}

TEST(PythonLines, PastesLoseSharedIndentation) {
  EXPECT_EQ(cleaned_paste("    a = 1\n\n      b\n    c\n"), "a = 1\n\n  b\nc\n");
  EXPECT_EQ(cleaned_paste("    a\n  b"), "  a\nb");
  EXPECT_EQ(cleaned_paste("    a"), "    a");
  EXPECT_EQ(cleaned_paste("a\n    b\n"), "a\n    b\n");
  EXPECT_EQ(cleaned_paste("\n\n"), "\n\n");
}

TEST(PythonLines, Brackets) {
  const std::string text = "f(a[1], '(', # (\n b)";
  EXPECT_EQ(matching_brackets(text, 1).close, text.size() - 1);
  EXPECT_EQ(matching_brackets(text, 2).close, text.size() - 1);  // just behind it
  EXPECT_EQ(matching_brackets(text, text.size()).open, 1u);
  EXPECT_EQ(matching_brackets(text, 3).close, 5u);
  EXPECT_EQ(matching_brackets(text, 10).open, std::string::npos);
  EXPECT_EQ(matching_brackets("(]", 0).open, std::string::npos);
}

}  // namespace
}  // namespace kiln::editor
