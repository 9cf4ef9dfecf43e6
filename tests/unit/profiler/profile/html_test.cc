// The page as text; what a browser makes of it is looked at by hand.
#include "profiler/profile/html.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <regex>

#include "made_timeline.h"
#include "profiler/profile/lanes.h"
#include "support/escape.h"
#include "support/files.h"

namespace kiln::profiler {
namespace {

using nlohmann::json;

HtmlReport made_report(const Timeline& t) {
  HtmlReport r;
  r.title = "train.py <step & more>", r.date = "2026-11-21 21:30";
  r.findings = advise(t);
  report::Table table({{"kernel", "", report::Align::kLeft}, {"time", "us"}, {"occupancy", "%"}});
  table.set_title("kernels");
  table.add_row({"<add>", report::Cell::of(1.25, 2), report::Cell::unknown("no \"counters\"")});
  table.add_note("a note");
  r.tables.push_back(std::move(table));
  r.plots.push_back({"roofline", "<?xml version=\"1.0\"?>\n<svg><circle/></svg>\n"});
  return r;
}

json data_of(const std::string& page) {
  const std::string open = "<script type=\"application/json\" id=\"data\">";
  const size_t begin = page.find(open) + open.size();
  return json::parse(page.substr(begin, page.find("</script>", begin) - begin));
}

TEST(Html, HoldsEverything) {
  Timeline t = made_gpu_timeline(5);
  std::string page = html_report(t, made_report(t));
  for (const char* part :
       {"<title>train.py &lt;step &amp; more&gt;</title>", "NVIDIA H200 (cuda:0)", "sm_90a", "580.00",
        "2026-11-21 21:30", "achieved occupancy: counters were not asked for", "class=\"rule\">cold-start",
        "<h2>kernels</h2>", "<th class=\"left\" scope=\"col\"><button type=\"button\">kernel</button></th>",
        "<td class=\"left\" title=\"&lt;add&gt;\"><button type=\"button\" class=\"more\" aria-expanded=\"false\" "
        "aria-label=\"more about &lt;add&gt;\"></button><span>&lt;add&gt;</span></td><td data-value=\"1.25\">1.25</td>",
        "title=\"no &quot;counters&quot;\">–</td>", "<li>a note</li>", "<h2>roofline</h2>", "<svg><circle/></svg>"})
    EXPECT_NE(page.find(part), std::string::npos) << part;
  EXPECT_EQ(page.find("{{"), std::string::npos) << "every place of the template is filled";
  EXPECT_EQ(page.find("<?xml"), std::string::npos);
}

TEST(Html, ATableWithoutRowsIsItsNotes) {
  Timeline t = made_gpu_timeline(1);
  HtmlReport report;
  report::Table table(std::vector<report::Column>{{"column", ""}});
  table.set_title("empty");
  table.add_note("nothing was counted");
  report.tables.push_back(table);
  const std::string page = html_report(t, report);
  EXPECT_NE(page.find("<h2>empty</h2>\n<ul class=\"notes\"><li>nothing was counted</li></ul>"), std::string::npos);
  EXPECT_EQ(page.find("<table"), std::string::npos);
}

TEST(Html, FetchesNothing) {
  Timeline t = made_gpu_timeline(1);
  std::string page = html_report(t, made_report(t));
  EXPECT_FALSE(std::regex_search(page, std::regex(R"((src|href)\s*=|@import|url\(|https?://)")));
  EXPECT_NE(page.find("default-src 'none'"), std::string::npos);
}

TEST(Html, TheDataAreTheTimeline) {
  Timeline t = made_gpu_timeline(5);
  json data = data_of(html_report(t, {}));
  const Ns base = extent(t).start;
  EXPECT_EQ(data["span"], extent(t).end - base);
  size_t slices = 0;
  for (const json& row : data["rows"]) {
    int64_t at = 0, end = 0;
    slices += row["s"].size();
    for (const char* list : {"d", "n", "i", "c"}) ASSERT_EQ(row[list].size(), row["s"].size());
    for (size_t i = 0; i < row["s"].size(); ++i) {
      at += row["s"][i].get<int64_t>();
      EXPECT_GE(at, end) << "slices of a row do not overlap";
      end = at + row["d"][i].get<int64_t>();
      EXPECT_LT(row["n"][i], data["strings"].size());
      EXPECT_LT(row["i"][i], data["strings"].size());
      EXPECT_LT(row["c"][i], data["categories"].size());
    }
  }
  EXPECT_EQ(slices, t.spans.size() + t.calls.size() + t.work.size() + t.waits.size() + t.overheads.size());
  EXPECT_EQ(data["arrows"].size(), 4 * t.work.size());
  for (size_t i = 0; i < data["arrows"].size(); i += 4) {
    EXPECT_LT(data["arrows"][i + 1], data["rows"][data["arrows"][i].get<size_t>()]["s"].size());
    EXPECT_LT(data["arrows"][i + 3], data["rows"][data["arrows"][i + 2].get<size_t>()]["s"].size());
  }
  size_t rows = 0;
  for (const json& lane : data["lanes"]) rows += lane["rows"].size();
  EXPECT_EQ(rows, data["rows"].size());
  EXPECT_EQ(data["memory"].size(), 2u);
}

/// The page after a script ran in it, from a browser that has no window.
std::string in_browser(const std::string& page, const std::string& script) {
  const std::string file = testing::TempDir() + "kiln_html_test.html", out = testing::TempDir() + "kiln_html_test.out";
  // The page's policy forbids nothing that this needs.
  EXPECT_TRUE(write_file_atomic(file, page + "<script>" + script + "</script>").ok());
  const std::string command =
      "timeout 60 chromium --headless --no-sandbox --disable-gpu --virtual-time-budget=2000 --dump-dom 'file://" +
      file + "' >'" + out + "' 2>/dev/null";
  EXPECT_EQ(std::system(command.c_str()), 0);
  Result<std::string> dom = read_file(out);
  return dom.ok() ? *dom : "";
}

TEST(Html, RowsSortAndOpenInABrowser) {
  if (std::system("command -v chromium >/dev/null") != 0) GTEST_SKIP() << "no chromium";
  TimelineMaker m;
  for (int i = 0; i < 3; ++i) m.launch("add_kernel");
  const Timeline t = m.finish();
  HtmlReport report;
  report::Table table({{"kernel", "", report::Align::kLeft}, {"time", "us"}});
  table.set_title("kernels");
  table.add_row({"add_kernel", report::Cell::of(2.0, 0)});
  table.add_row({"other", report::Cell::unknown("not seen")});
  table.add_row({"third", report::Cell::of(10.0, 0)});
  report.tables.push_back(std::move(table));
  const std::string page = html_report(t, report);
  const std::string dom = in_browser(page, R"js(
    const body = document.querySelector("table tbody"), names = () => [...body.rows].map((r) => r.cells[0].innerText.trim());
    const time = document.querySelectorAll("th button")[1], said = [];
    document.querySelector("button.more").click();
    said.push(body.rows[1].innerText.replace(/\s+/g, " "));
    for (let i = 0; i < 3; ++i) {
      time.click();
      said.push([...body.rows].map((r) => r.className || r.cells[0].textContent).join());
    }
    document.querySelector("button.more[aria-expanded=true]").click();
    said.push(body.rows.length);
    document.querySelector("button.more").focus();
    document.activeElement.dispatchEvent(new KeyboardEvent("keydown", {key: "ArrowDown", bubbles: true}));
    said.push(document.activeElement.getAttribute("aria-label"));
    document.title = said.join(" | ");
  )js");
  const size_t begin = dom.find("<title>") + 7;
  const std::string said = dom.substr(begin, dom.find("</title>", begin) - begin);
  EXPECT_TRUE(said.find("3 runs in their order") != std::string::npos) << said;
  EXPECT_TRUE(said.find("median") != std::string::npos) << said;
  EXPECT_TRUE(
      said.ends_with(" | third,add_kernel,opened,other | add_kernel,opened,third,other | add_kernel,opened,other,third"
                     " | 3 | more about other"))
      << said;
}

TEST(Html, NamesCannotEndTheData) {
  TimelineMaker m;
  m.launch("</script><script>alert(1)</script>");
  std::string page = html_report(m.finish(), {});
  EXPECT_EQ(page.find("</script><script>"), std::string::npos);
  json data = data_of(page);
  bool found = false;
  for (const json& s : data["strings"]) found = found || s == "</script><script>alert(1)</script>";
  EXPECT_TRUE(found);
}

TEST(Html, AnEmptyTimelineIsAPage) {
  std::string page = html_report({}, {});
  EXPECT_NE(page.find("Nothing stands out"), std::string::npos);
  EXPECT_TRUE(data_of(page)["rows"].empty());
}

TEST(Html, WhatCannotBeWrittenIsAnError) {
  Status written = write_html_report({}, {}, "/nowhere/at/all.html");
  ASSERT_FALSE(written.ok());
  EXPECT_EQ(written.error().message, "cannot write '/nowhere/at/all.html': No such file or directory");
}

TEST(Escape, HtmlKeepsTextAndReplacesWhatIsNone) {
  EXPECT_EQ(html_escaped("a<b>&\"c\" \xC3\xA9\n"), "a&lt;b&gt;&amp;&quot;c&quot; \xC3\xA9\n");
  EXPECT_EQ(html_escaped("\xFF\x01"), "\xEF\xBF\xBD\xEF\xBF\xBD");
}

}  // namespace
}  // namespace kiln::profiler
