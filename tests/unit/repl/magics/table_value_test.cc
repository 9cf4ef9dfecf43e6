// What commands give as values: tables, their rows and columns.
#include <gtest/gtest.h>

#include "support/files.h"
#include "support/process.h"
#include "tests/unit/repl/run_prompt.h"

namespace kiln::repl {
namespace {

/// Of "r = %env" and further lines.
std::string of_env(const std::string& lines) {
  Said s = run("r = %env\n" + lines);
  return s.out + s.err;
}

TEST(TableValue, IsIndexedByRowColumnAndCondition) {
  EXPECT_EQ(of_env("print(r.columns, r.title, len(r) > 20)"), "['variable', 'value', 'default', 'meaning']  True\n");
  EXPECT_EQ(of_env("print(r[0].variable, r[0]['variable'], r[-1][0] == r['variable'][-1])"),
            "KILN_DEVICE KILN_DEVICE True\n");
  EXPECT_EQ(of_env("print(r[r.variable == 'KILN_CACHE'][['variable', 'default']].to_csv())"),
            "variable,default\nKILN_CACHE,1\n\n");
  EXPECT_EQ(of_env("print([row.variable for row in r[:2]], r[[1, 0]].variable.to_list())"),
            "['KILN_DEVICE', 'KILN_THREADS'] ['KILN_THREADS', 'KILN_DEVICE']\n");
  EXPECT_EQ(of_env("print(r[(r.variable == 'KILN_CACHE') | (r.default == '512')].variable)"),
            "variable: ['KILN_CACHE', 'KILN_PLAN_LIMIT']\n");
  EXPECT_EQ(of_env("print(len(r[~(r.variable == 'KILN_CACHE')]) == len(r) - 1)"), "True\n");
  EXPECT_EQ(of_env("r = r[r.variable == 'x']\nprint(len(r), bool(r), r.variable, r.rows)\nprint(r)"),
            "0 False variable: [] []\nvariable  value  default  meaning\n");
}

TEST(TableValue, ColumnsHaveShortNamesAndHeadings) {
  const Said s =
      run("@triton.jit\ndef k(x):\n    tl.store(x, 1)\ns = %static k target=sm_90a\n"
          "print(s.regs.name, s['regs'].name, s['occupancy %'].name, s[0]['spills B'] == s[0].spills)\n"
          "print(s.sort('occ').columns == s.columns)\n");
  EXPECT_EQ(s.out + s.err, "registers registers occupancy True\nTrue\n");
}

TEST(TableValue, ErrorsTellTheWay) {
  EXPECT_NE(of_env("r.varable").find("did you mean 'variable'?"), std::string::npos);
  EXPECT_NE(of_env("r['varable']").find("help: did you mean 'variable'?"), std::string::npos);
  EXPECT_NE(of_env("r['x']").find("help: its columns are variable, value, default, meaning"), std::string::npos);
  EXPECT_NE(of_env("r.sort('defalt')").find("did you mean 'default'?"), std::string::npos);
  EXPECT_NE(of_env("r[99]").find("index 99 is outside of the table of length"), std::string::npos);
  EXPECT_NE(of_env("r[[True]]").find("a choice of rows needs one bool for each of the"), std::string::npos);
  EXPECT_NE(of_env("if r.value: pass").find("a column is neither true nor false"), std::string::npos);
  EXPECT_NE(of_env("r.plot()").find("no column of numbers to plot"), std::string::npos);
  EXPECT_NE(of_env("r - r").find("no column of numbers in common"), std::string::npos);
}

TEST(TableValue, CommandsAreAssignedAnywhereAtTheTopLevel) {
  EXPECT_EQ(run("d = {}\nd['k'] = a = %who\nprint(d['k'].columns == a.columns)").out, "True\n");
  EXPECT_EQ(run("x = 7\ns = 'r = %who'\nprint(s, 7 %x)").out, "r = %who 0\n");
  EXPECT_EQ(run("r = %format text\nprint(r)\nt = %target\nprint(t.columns[0])").out, "None\ncurrent\n");
  // The target is checked before the work.
  EXPECT_EQ(run("1 = %bench f()").err,
            "error: the value of a command cannot be assigned to '1': cannot assign to a literal\n");
  EXPECT_NE(run("f(1) = %who").err.find("cannot be assigned to 'f(1)'"), std::string::npos);
  Said few = run("x = 1\na, b = %who\n");
  EXPECT_NE(few.err.find("expected 2 values to unpack, got 1\n  help: the value is `_`"), std::string::npos) << few.err;
  for (const char* text : {"def f():\n    r = %bench x\n", "r += %who\n", "for i in [1]:\n    %who\n"})
    EXPECT_NE(run(text).err.find("help: a command stands outside of blocks"), std::string::npos) << text;
}

TEST(TableValue, NumbersSortAndCompare) {
  const std::string bench = "import torch\nx = torch.ones(10)\nr = %bench x + 1 budget=50ms\n";
  auto said = [&](const std::string& lines) {
    Said s = run(bench + lines);
    return s.out + s.err;
  };
  EXPECT_EQ(said("print(r.cache.to_list(), r.units['median'], r['±'].name)"), "['cold', 'hot'] us spread\n");
  EXPECT_EQ(said("print(r.sort('cache', reverse=True)[0].cache, r.sort('median')[0].median == r.median.min())"),
            "hot True\n");
  EXPECT_EQ(said("c, h = r\nprint(c.min <= c.median, (r.median * 2)[0] == 2 * c.median, len(r[r.n > 0]))"),
            "True True 2\n");
  EXPECT_EQ(said("d = r - r\nprint(d.columns, len(d), d.notes)"),
            "['row', 'figure', 'unit', 'before', 'now', 'change'] 0 ['no number differs']\n");
  EXPECT_NE(said("r.plot('median')").find("cold"), std::string::npos);
}

TEST(TableValue, IsWrittenToFiles) {
  ScratchFolder folder;
  const std::string path = folder.path + "/t";
  EXPECT_EQ(of_env("r[:1].to_csv('" + path + "')"), "");
  auto text = read_file(path);
  ASSERT_TRUE(text.ok());
  EXPECT_TRUE(text->starts_with("variable,value,default,meaning\nKILN_DEVICE,")) << *text;
  EXPECT_NE(of_env("r.to_json('/nonexistent/x')").find("/nonexistent/x"), std::string::npos);
  EXPECT_EQ(of_env("print(r[['variable']][:1].to_markdown())"), "| variable |\n|---|\n| KILN_DEVICE |\n\n");
  EXPECT_EQ(of_env("print(r[['variable']][:1].to_json())"), "{\"rows\":[{\"variable\":\"KILN_DEVICE\"}]}\n\n");
}

TEST(TableValue, ProfilesHaveSeveral) {
  Said s =
      run("import torch\nx = torch.ones(10)\np = %profile x + 1\nprint('totals' in p.tables, p.totals.columns)\n"
          "print(p.findings.columns[0])");
  EXPECT_EQ(s.out, "True ['figure', 'value', 'unit']\nrule\n") << s.err;
}

std::string at_prompt(const std::string& entries) {
  Options options;
  options.device = "cpu";
  std::string out;
  Shell shell(options, [&](std::string_view s) { out += s; });
  struct Lines : EntrySource {
    explicit Lines(std::string_view t) : text(t) {}
    Input read(const std::string&, const std::string&) override {
      if (text.empty()) return {};
      const size_t end = text.find('\n');
      Input input = Input::entry(std::string(text.substr(0, end + 1)));
      text.remove_prefix(end + 1);
      return input;
    }
    std::string_view text;
  } lines(entries);
  testing::internal::CaptureStderr();
  shell.prompt(lines);
  return out + testing::internal::GetCapturedStderr();
}

TEST(Results, HaveNamesAndNumbers) {
  EXPECT_EQ(at_prompt("1\n2\n3\n_, __, ___, _2, Out[1], sorted(Out)\n"), "1\n2\n3\n(3, 2, 1, 2, 1, [1, 2, 3])\n");
  EXPECT_EQ(at_prompt("x = 1\n%who\nlen(_), _2.columns == Out[2].columns, _[0].name\n"),
            "name  type  value\nx     int   1\n(1, True, 'x')\n");
  EXPECT_EQ(at_prompt("1\nOut\nOut\n_\n"), "1\n{1: 1}\n{1: 1}\n1\n");
  EXPECT_EQ(at_prompt("_ = 7\n1\n_\n"), "1\n7\n");
  EXPECT_NE(at_prompt("Out[5]\n").find("has no key 5"), std::string::npos);
  EXPECT_EQ(at_prompt("x = 1\n%who\nIn[1], In[2], In[-1], len(In)\n"),
            "name  type  value\nx     int   1\n('x = 1', '%who', 'In[1], In[2], In[-1], len(In)', 4)\n");
  EXPECT_EQ(at_prompt("In.clear()\nIn\n"), "['', '', 'In']\n");
  // Of both the last hundred.
  std::string many = "'first'\n";
  for (int i = 0; i < 100; ++i) many += "x = 1\n";
  EXPECT_EQ(at_prompt(many + "print(repr(In[1]), In[2], len(In))\n"), "'first'\n'' x = 1 103\n");
  // Tensors hold memory: the last three.
  EXPECT_EQ(
      at_prompt("torch.ones(1)\ntorch.ones(1)\ntorch.ones(1)\ntorch.ones(1)\nprint(sorted(Out))\n").substr(4 * 13),
      "[2, 3, 4]\n");
}

TEST(Results, ShowTablesInTheChosenFormat) {
  EXPECT_EQ(at_prompt("x = 1\nr = %who\n%format csv\nr[['name', 'type']]\n"), "name,type\nx,int\n");
}

}  // namespace
}  // namespace kiln::repl
