// %compare, %sweep and `kiln compare`, from their arguments to what stands in the session and in files. Verdicts are
// not looked at: they depend on the machine.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "repl/commands/compare_command.h"
#include "repl/magics/magic_arguments.h"
#include "repl/shell/shell.h"
#include "support/diag.h"
#include "support/files.h"

namespace kiln::repl {
namespace {

using Form = MagicOption::Form;
constexpr MagicOption kSome[] = {{Form::kFlag, "-v"}, {Form::kDashed, "--json"}, {Form::kValue, "base"}};

TEST(MagicArguments, ExpressionsAndOptions) {
  auto a = parse_magic_arguments("-v f(a, b=[1, 2]), 'x, y' + g(c) base=2 --json 'a b.json'", kSome);
  ASSERT_TRUE(a.ok()) << a.error().message;
  EXPECT_EQ(a->expressions, (std::vector<std::string>{"f(a, b=[1, 2])", "'x, y' + g(c)"}));
  EXPECT_TRUE(a->has("-v"));
  EXPECT_EQ(a->text("base"), "2");
  EXPECT_EQ(a->text("--json"), "a b.json");
}

TEST(MagicArguments, ComparisonsAndDifferencesAreNoOptions) {
  auto a = parse_magic_arguments("a == b, c - d, -e", kSome);
  ASSERT_TRUE(a.ok()) << a.error().message;
  EXPECT_EQ(a->expressions, (std::vector<std::string>{"a == b", "c - d", "-e"}));
}

TEST(MagicArguments, OtherNamesWhenAsked) {
  EXPECT_EQ(parse_magic_arguments("f(n) n=[1, 2]", kSome).error().kind, ErrorKind::kName);
  auto a = parse_magic_arguments("f(n) n=[1, 2]", kSome, {.other_names = true});
  ASSERT_TRUE(a.ok());
  EXPECT_EQ(a->text("n"), "[1, 2]");
}

TEST(MagicArguments, DashedOptionsAreAlsoNamed) {
  auto a = parse_magic_arguments("x json=a.json base=2", kSome);
  ASSERT_TRUE(a.ok()) << a.error().message;
  EXPECT_EQ(a->text("--json", ""), "a.json");
  EXPECT_EQ(a->text("base", ""), "2");
  EXPECT_EQ(parse_magic_arguments("x v=1", kSome).error().kind, ErrorKind::kName);  // a flag has no value
  const std::string message = parse_magic_arguments("x jsn=1", kSome).error().message;
  EXPECT_NE(message.find("--json"), std::string::npos) << message;
}

TEST(LineParts, KeepsBracketsAndStringsTogether) {
  auto words = [](std::string_view text) { return parts_of(text, Between::kBlanks).words(); };
  using Words = std::vector<std::string_view>;
  EXPECT_EQ(words(" f(a, b) 'c d' \"e\\\" f\"  [g h]x "), (Words{"f(a, b)", "'c d'", "\"e\\\" f\"", "[g h]x"}));
  // What is open goes on to the end, and what closes nothing opens nothing.
  EXPECT_EQ(words("a 'b c"), (Words{"a", "'b c"}));
  EXPECT_EQ(words("a [b) c"), (Words{"a", "[b) c"}));
  EXPECT_EQ(words("a) b"), (Words{"a)", "b"}));
  EXPECT_EQ(words("'"), (Words{"'"}));
  EXPECT_EQ(words("'\\"), (Words{"'\\"}));
  EXPECT_EQ(parts_of("a ", Between::kBlanks).parts, (Words{"a", ""}));
  EXPECT_EQ(parts_of("", Between::kCommas).parts, (Words{""}));
  EXPECT_EQ(*split_words("a\\ 'b  c'd \"it's\""), (std::vector<std::string>{"a\\", "b  cd", "it's"}));
  EXPECT_EQ(split_words("'a").error().message, "a quote is not closed: 'a");
}

TEST(MagicArguments, Mistakes) {
  for (const char* text :
       {"f() -v -v", "f(a", "f(a]", "'open", "f() --json", "", "base=2", "f() base=1 base=2", "f() base="})
    EXPECT_EQ(parse_magic_arguments(text, kSome).error().kind, ErrorKind::kSyntax) << text;
  EXPECT_EQ(parse_magic_arguments("f() --jsn x", kSome).error().notes[0].message, "help: did you mean '--json'?");
}

TEST(ShortNames, KeepWhatDiffers) {
  EXPECT_EQ(short_names({"a", "b"}), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(short_names({"add_kernel[(98,)](x, y, out, n, BLOCK=256, num_warps=4)",
                         "add_kernel[(98,)](x, y, out, n, BLOCK=2048, num_warps=4)"}),
            (std::vector<std::string>{"…BLOCK=256…", "…BLOCK=2048…"}));
  // One that is a prefix of the other has nothing of its own.
  std::vector<std::string> nested = {"add_kernel[(98,)](x, y, out, number_of_elements)",
                                     "add_kernel[(98,)](x, y, out, number_of_elements)"};
  EXPECT_EQ(short_names(nested), nested);
}

class CompareMagic : public testing::Test {
 protected:
  CompareMagic() : shell(options(), [this](std::string_view s) { out += s; }) {
    std::string pattern = (std::filesystem::temp_directory_path() / "kiln_compare_XXXXXX").string();
    folder = mkdtemp(pattern.data());
    EXPECT_TRUE(shell.session()
                    .run("import torch\na = torch.ones(64)\nb = torch.ones(64)\n"
                         "def f(): return a + b\ndef g(): return b + a\n"
                         "def bad(): return a - b\ndef broken(): return a + nothing\n",
                         "t.py")
                    .ok());
  }
  ~CompareMagic() override { std::filesystem::remove_all(folder); }
  static Options options() {
    Options o;
    o.device = "cpu";
    return o;
  }
  Status entry(const std::string& text) {
    out.clear();
    return shell.entry(text);
  }
  std::string shown(const std::string& expression) {
    auto value = shell.session().evaluate(expression);
    return value.ok() ? *value : value.error().message;
  }

  std::string out, folder;
  Shell shell;
};

TEST_F(CompareMagic, PrintsATableAndKeepsTheResult) {
  Status s = entry("%compare f, g pairs=12 cache=hot budget=20s -v");
  ASSERT_TRUE(s.ok()) << render(s.error());
  EXPECT_NE(out.find("baseline"), std::string::npos) << out;
  EXPECT_NE(out.find("0 ok"), std::string::npos);
  EXPECT_EQ(shown("[r['name'] for r in _]"), "['f', 'g']");
  EXPECT_EQ(shown("_[0]['verdict'], _[1]['pairs'], _[1]['right'], len(_[1]['samples'])"), "('baseline', 12, True, 12)");
  EXPECT_EQ(shown("_[1]['us'] > 0 and _[1]['interval'][0] <= _[1]['speedup'] <= _[1]['interval'][1]"), "True");
}

TEST_F(CompareMagic, WrongResultsAreAMismatch) {
  Status s = entry("%compare f, bad pairs=12 cache=hot budget=20s");
  ASSERT_FALSE(s.ok());
  EXPECT_EQ(s.error().kind, ErrorKind::kMismatch);
  EXPECT_EQ(s.error().message, "1 of 2 contenders give a wrong result: bad");
  EXPECT_NE(out.find("WRONG"), std::string::npos) << out;
}

TEST_F(CompareMagic, AProblemKeepsItsRow) {
  Status s = entry("%compare f, broken, g pairs=12 cache=hot budget=20s");
  ASSERT_TRUE(s.ok()) << render(s.error());
  EXPECT_NE(out.find("broken: the name 'nothing' is not defined"), std::string::npos) << out;
  EXPECT_EQ(shown("_[1]['us'], _[2]['pairs']"), "(None, 12)");
  s = entry("%compare f, broken, g base=2 pairs=12 cache=hot");
  ASSERT_FALSE(s.ok());
  EXPECT_EQ(s.error().kind, ErrorKind::kName);
}

TEST_F(CompareMagic, KernelsShowWhatTheyAre) {
  ASSERT_TRUE(shell.session()
                  .run("import triton\nimport triton.language as tl\n@triton.jit\ndef twice(x, o, B: tl.constexpr):\n"
                       "    i = tl.program_id(0) * B + tl.arange(0, B)\n    tl.store(o + i, tl.load(x + i) * 2)\n"
                       "o = torch.zeros(64)\n",
                       "t.py")
                  .ok());
  Status s = entry("%compare twice[(4,)](a, o, B=16), twice[(1,)](a, o, B=64) out=o pairs=12 cache=hot budget=20s -v");
  ASSERT_TRUE(s.ok()) << render(s.error());
  EXPECT_NE(out.find("twice"), std::string::npos) << out;
  EXPECT_NE(out.find("512 B"), std::string::npos) << out;  // two tensors of 64 f32
  EXPECT_NE(out.find("0 ok"), std::string::npos) << out;
  // The second computes half: what it leaves must not be taken from the first.
  s = entry("%compare twice[(4,)](a, o, B=16), twice[(2,)](a, o, B=16) out=o pairs=12 cache=hot budget=20s");
  ASSERT_FALSE(s.ok());
  EXPECT_NE(out.find("NaN at 32"), std::string::npos) << out;
}

TEST_F(CompareMagic, Mistakes) {
  EXPECT_EQ(entry("%compare f").error().kind, ErrorKind::kValue);
  EXPECT_EQ(entry("%compare f, g base=3").error().message, "base= counts from 1 to 2, got 3");
  EXPECT_EQ(entry("%compare f, g pairs=5").error().kind, ErrorKind::kValue);
  EXPECT_EQ(entry("%compare f, g budget=soon").error().kind, ErrorKind::kValue);
  EXPECT_EQ(entry("%compare f, g cache=warm").error().kind, ErrorKind::kValue);
  EXPECT_EQ(entry("%compare f, g out=zzz").error().kind, ErrorKind::kName);
  EXPECT_EQ(entry("%compare f, g( pairs=12").error().kind, ErrorKind::kSyntax);
  EXPECT_EQ(entry("%sweep f()").error().kind, ErrorKind::kValue);
  EXPECT_EQ(entry("%sweep f() n=[]").error().kind, ErrorKind::kValue);
  EXPECT_EQ(entry("%sweep f() n=3").error().kind, ErrorKind::kType);
  EXPECT_EQ(entry("%sweep f() n=[3] lock=yes").error().message, "lock= is on or off, not 'yes'");
}

TEST_F(CompareMagic, SavedRunsAreCompared) {
  const std::string first = folder + "/old.json", second = folder + "/new.json";
  ASSERT_TRUE(entry("%compare f, g pairs=12 cache=hot budget=20s --json " + first).ok());
  auto text = read_file(first);
  ASSERT_TRUE(text.ok());
  // Another run, twice as slow in g.
  auto doc = nlohmann::json::parse(*text);
  for (auto& us : doc["rows"][1]["samples"]["us"]) us = us.get<double>() * 20 + 1e4;
  ASSERT_TRUE(write_file_atomic(second, doc.dump()).ok());
  testing::internal::CaptureStdout();
  EXPECT_EQ(compare_command({first, first, 50}, false), kExitOk);
  EXPECT_EQ(compare_command({first, second, 2}, true), kExitSlower);
  doc["rows"][0]["check"]["first_bad"] = 3;
  ASSERT_TRUE(write_file_atomic(second, doc.dump()).ok());
  EXPECT_EQ(compare_command({first, second, 2}, false), kExitMismatch);
  doc = nlohmann::json::parse(*text);
  doc["rows"].erase(1);
  ASSERT_TRUE(write_file_atomic(second, doc.dump()).ok());
  EXPECT_EQ(compare_command({first, second, 50}, false), kExitError);
  std::string printed = testing::internal::GetCapturedStdout();
  EXPECT_NE(printed.find("g: not in the new run"), std::string::npos) << printed;
  testing::internal::CaptureStderr();
  EXPECT_EQ(compare_command({first, folder + "/none.json", 2}, false), kExitUsage);
  doc["device"]["hardware"] = "another";
  ASSERT_TRUE(write_file_atomic(second, doc.dump()).ok());
  EXPECT_EQ(compare_command({first, second, 2}, false), kExitUsage);
  EXPECT_NE(testing::internal::GetCapturedStderr().find("times of two machines do not compare"), std::string::npos);
}

TEST_F(CompareMagic, SweepsSetAndRestoreTheirVariables) {
  ASSERT_TRUE(shell.session()
                  .run("n = 'kept'\ndef work(): return sum(range(n))\ndef other(): return sum(range(m))\n", "t.py")
                  .ok());
  Status s = entry("%sweep work(), other() n=[10, 200, 3000] setup='m = 2 * n' pairs=12 cache=hot budget=5s --svg " +
                   folder + "/s.svg");
  ASSERT_TRUE(s.ok()) << render(s.error());
  EXPECT_EQ(shown("n, m"), "('kept', 6000)");
  EXPECT_EQ(shown("[(r['n'], r['variant']) for r in _][:3]"), "[(10, 'work()'), (10, 'other()'), (200, 'work()')]");
  EXPECT_NE(out.find("  a work()"), std::string::npos) << out;  // the legend of a plain plot
  EXPECT_EQ(out.find('\033'), std::string::npos);
  auto svg = read_file(folder + "/s.svg");
  ASSERT_TRUE(svg.ok());
  EXPECT_NE(svg->find("other()"), std::string::npos);
  ASSERT_TRUE(entry("%sweep work() n=[10, 1000] budget=200ms lock=on").ok());
  EXPECT_EQ(shown("len(_), _[0]['us'] > 0"), "(2, True)");
  // A point that fails keeps its row.
  ASSERT_TRUE(entry("%sweep work() n=[10, 'x'] budget=200ms").ok());
  EXPECT_EQ(shown("_[0]['problem'], _[1]['us']"), "(None, None)");
}

TEST_F(CompareMagic, BenchTakesRates) {
  ASSERT_TRUE(entry("%bench f bytes=3*4*64 flop=64 budget=200ms").ok());
  EXPECT_NE(out.find("GB/s"), std::string::npos) << out;
  EXPECT_NE(out.find("TFLOP/s"), std::string::npos);
  EXPECT_EQ(entry("%bench f, g").error().kind, ErrorKind::kValue);
  EXPECT_EQ(entry("%bench nothing()").error().kind, ErrorKind::kName);
}

TEST_F(CompareMagic, VariantsComeFromWhoeverKnowsThem) {
  shell.set_variants([](script::Session& session, const std::string& text) -> Result<std::optional<ContenderSet>> {
    if (text != "x") return std::optional<ContenderSet>();
    ContenderSet set;
    for (const char* name : {"f", "g"}) {
      KILN_TRY(profiler::Contender c, statement_contender(session, name, {}));
      c.name = std::string("variant ") + name;
      set.contenders.push_back(std::move(c));
    }
    set.baseline = 1;
    return std::optional<ContenderSet>(std::move(set));
  });
  ASSERT_TRUE(entry("%compare x pairs=12 cache=hot budget=20s").ok());
  EXPECT_EQ(shown("[(r['name'], r['verdict'] == 'baseline') for r in _]"),
            "[('variant f', False), ('variant g', True)]");
  EXPECT_EQ(entry("%compare y").error().kind, ErrorKind::kName);
}

}  // namespace
}  // namespace kiln::repl
