#include "profiler/profile/html.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "profiler/profile/lanes.h"
#include "profiler/profile/places.h"
#include "profiler/profile/work_facts.h"
#include "support/escape.h"
#include "support/files.h"

namespace kiln::embedded {
std::string_view page_text(std::string_view path);
}

namespace kiln::profiler {

namespace {

// What the page has colours for.
constexpr std::string_view kCategories[] = {"statement", "range", "operation", "launch",   "compile", "driver",
                                            "wait",      "copy",  "fill",      "overhead", "kernel"};

std::string_view colour_of(trace::Step step) {
  switch (step) {
    case trace::Step::kRange:
      return "range";
    case trace::Step::kStatement:
      return "statement";
    case trace::Step::kOperation:
    case trace::Step::kLibrary:
      return "operation";
    case trace::Step::kPlan:
    case trace::Step::kBind:
    case trace::Step::kLaunch:
    case trace::Step::kKey:
    case trace::Step::kLookup:
    case trace::Step::kTensorMap:
    case trace::Step::kGraphLaunch:
      return "launch";
    case trace::Step::kCompile:
    case trace::Step::kPhase:
    case trace::Step::kLoad:
    case trace::Step::kContext:
      return "compile";
    case trace::Step::kDriver:
      return "driver";
    case trace::Step::kCopyIn:
    case trace::Step::kCopyOut:
    case trace::Step::kCopy:
      return "copy";
    case trace::Step::kFill:
      return "fill";
    case trace::Step::kWait:
      return "wait";
    case trace::Step::kHostKernel:
      return "kernel";
    case trace::Step::kMemory:
    case trace::Step::kReserve:
      return "overhead";
  }
  return "";
}

std::string_view colour_of(const Timeline& t, const Slice& s) {
  return s.kind == SliceKind::kSpan ? colour_of(t.spans[static_cast<size_t>(s.index)].step) : category(t, s);
}

/// What a slice's tooltip says beside its times, as lines "key\tvalue": what is the same for many slices, so that the
/// page holds it once.
std::string facts_of(const Timeline& t, const target::Target* target, const Slice& slice) {
  std::string facts;
  auto add = [&](std::string_view key, std::string_view value) { facts += fmt::format("{}\t{}\n", key, value); };
  auto line = [&](int span) {
    if (const Span* s = statement_of(t, span)) add("line", line_and_text(*s));
  };
  auto triple = [&](const char* key, const std::array<uint32_t, 3>& v) {
    if (v[0]) add(key, fmt::format("{} × {} × {}", v[0], v[1], v[2]));
  };
  const auto i = static_cast<size_t>(slice.index);
  switch (slice.kind) {
    case SliceKind::kSpan: {
      const Span& s = t.spans[i];
      add("step", trace::name(s.step));
      line(slice.index);
      if (!s.detail.empty()) add("detail", s.detail);
      if (s.bytes) add("bytes", report::human_bytes(static_cast<double>(s.bytes)));
      triple("grid", s.grid);
      break;
    }
    case SliceKind::kCall:
      line(t.calls[i].span);
      if (t.calls[i].result) add("CUresult", std::to_string(t.calls[i].result));
      break;
    case SliceKind::kWait:
      line(t.waits[i].span);
      break;
    case SliceKind::kWork: {
      const Work& w = t.work[i];
      line(w.span);
      triple("grid", w.grid), triple("block", w.block), triple("cluster", w.cluster);
      if (w.kind != WorkKind::kKernel) add("bytes", report::human_bytes(static_cast<double>(w.bytes)));
      if (w.registers >= 0) add("registers", fmt::format("{} per thread", w.registers));
      if (w.static_shared >= 0 && w.dynamic_shared >= 0)
        add("shared", fmt::format("{} + {} bytes", w.static_shared, w.dynamic_shared));
      if (w.local_bytes > 0) add("local", fmt::format("{} bytes per thread", w.local_bytes));
      if (auto o = theoretical_occupancy(target, w))
        add("occupancy", fmt::format("{:.1f} % in theory, limited by {}", o->fraction * 100, name(o->limiter)));
      if (w.graph) add("graph", std::to_string(w.graph));
      break;
    }
    case SliceKind::kOverhead:
      line(t.overheads[i].span);
      break;
  }
  return facts;
}

/// The timeline as page/report.js reads it: rows of slices that do not overlap, starts as differences.
class Data {
 public:
  explicit Data(const Timeline& t) : t_(t), target_(target::find(t.target)), extent_(extent(t)) {}

  std::string text() {
    lanes_ = lanes(t_);
    split_into_rows();
    put("{{\"span\":{},\"categories\":[", extent_.end - extent_.start);
    list(kCategories, [&](std::string_view c) { append_json(out_, c); });
    put("],\"lanes\":[");
    size_t row = 0, lane_index = 0;
    list(lanes_, [&](const Lane& lane) {
      put("{{\"name\":");
      append_json(out_, lane.name);
      put(",\"group\":");
      append_json(out_, group(lane));
      put(",\"rows\":[");
      for (size_t i = 0; i < rows_of_[lane_index]; ++i) put("{}{}", i ? "," : "", row++);
      put("]}}");
      ++lane_index;
    });
    put("],\"rows\":[");
    list(rows_, [&](const std::vector<const Slice*>& slices) { write_row(slices); });
    put("],\"arrows\":[");
    write_arrows();
    put("],\"memory\":[");
    write_memory();
    // Last, since writing the rows has collected them.
    put("],\"strings\":[");
    list(strings_, [&](const std::string* s) { append_json(out_, *s); });
    put("]}}");
    return std::move(out_);
  }

 private:
  template <class... T>
  void put(fmt::format_string<T...> format, T&&... values) {
    fmt::format_to(std::back_inserter(out_), format, std::forward<T>(values)...);
  }
  template <class Items, class Fn>
  void list(const Items& items, Fn each) {
    bool first = true;
    for (const auto& item : items) {
      if (!std::exchange(first, false)) put(",");
      each(item);
    }
  }

  std::string group(const Lane& lane) const {
    switch (lane.kind) {
      case LaneKind::kThread:
      case LaneKind::kWaits:
      case LaneKind::kOverhead:
        return "host";
      case LaneKind::kStream:
        return fmt::format("cuda:{}", lane.device);
      case LaneKind::kProfiler:
        return "profiler";
    }
    return "";
  }

  size_t intern(std::string text) {
    auto [found, is_new] = index_.try_emplace(std::move(text), strings_.size());
    if (is_new) strings_.push_back(&found->first);
    return found->second;
  }

  void split_into_rows() {
    call_at_.assign(t_.calls.size(), {-1, -1});
    work_at_.assign(t_.work.size(), {-1, -1});
    for (const Lane& lane : lanes_) {
      const size_t first = rows_.size();
      for (const Slice& s : lane.slices) {
        // Slices of a lane nest: the page has a row for each depth.
        const size_t r = first + static_cast<size_t>(s.depth);
        if (rows_.size() <= r) rows_.resize(r + 1);
        const std::pair<int, int> place{static_cast<int>(r), static_cast<int>(rows_[r].size())};
        if (s.kind == SliceKind::kCall) call_at_[static_cast<size_t>(s.index)] = place;
        if (s.kind == SliceKind::kWork) work_at_[static_cast<size_t>(s.index)] = place;
        rows_[r].push_back(&s);
      }
      rows_of_.push_back(rows_.size() - first);
    }
  }

  void write_row(const std::vector<const Slice*>& slices) {
    // Differences of starts are shorter numbers than times since the beginning, and a page has many.
    Ns before = extent_.start;
    put("{{\"s\":[");
    list(slices, [&](const Slice* s) { put("{}", s->start - std::exchange(before, s->start)); });
    put("],\"d\":[");
    list(slices, [&](const Slice* s) { put("{}", s->end - s->start); });
    put("],\"n\":[");
    list(slices, [&](const Slice* s) { put("{}", intern(title(t_, *s))); });
    put("],\"i\":[");
    list(slices, [&](const Slice* s) { put("{}", intern(facts_of(t_, target_, *s))); });
    put("],\"c\":[");
    list(slices, [&](const Slice* s) {
      put("{}", std::find(std::begin(kCategories), std::end(kCategories), colour_of(t_, *s)) - std::begin(kCategories));
    });
    put("]}}");
  }

  void write_arrows() {
    bool first = true;
    for (size_t i = 0; i < t_.work.size(); ++i) {
      // What lies in no lane has no place for the end of an arrow.
      if (t_.work[i].call < 0 || work_at_[i].first < 0) continue;
      const auto& from = call_at_[static_cast<size_t>(t_.work[i].call)];
      if (from.first < 0) continue;
      if (!std::exchange(first, false)) put(",");
      put("{},{},{},{}", from.first, from.second, work_at_[i].first, work_at_[i].second);
    }
  }

  void write_memory() {
    std::map<std::string, std::vector<const MemoryChange*>> series;
    for (const MemoryChange& m : t_.memory)
      series[fmt::format("{} {}", m.reserve ? "taken from the driver of" : "tensors on", m.device)].push_back(&m);
    list(series, [&](const auto& one) {
      put("{{\"name\":");
      append_json(out_, one.first);
      Ns before = extent_.start;
      put(",\"t\":[");
      list(one.second, [&](const MemoryChange* m) { put("{}", m->at - std::exchange(before, m->at)); });
      put("],\"v\":[");
      list(one.second, [&](const MemoryChange* m) { put("{}", m->total); });
      put("]}}");
    });
  }

  const Timeline& t_;
  const target::Target* target_;
  Extent extent_;
  std::vector<Lane> lanes_;
  std::vector<size_t> rows_of_;  // of each lane
  std::vector<std::vector<const Slice*>> rows_;
  std::vector<std::pair<int, int>> call_at_, work_at_;  // row and place in it
  std::unordered_map<std::string, size_t> index_;
  std::vector<const std::string*> strings_;
  std::string out_;
};

std::string facts_html(const Timeline& t, const HtmlReport& r) {
  std::string out;
  auto add = [&](std::string_view key, const std::string& value) {
    if (!value.empty()) out += fmt::format("<div><dt>{}</dt><dd>{}</dd></div>\n", key, html_escaped(value));
  };
  add("device", t.hardware.empty() ? t.device : fmt::format("{} ({})", t.hardware, t.device));
  add("target", t.target);
  add("driver", t.driver);
  add("date", r.date);
  const Extent e = extent(t);
  add("length", report::human_time(static_cast<double>(e.end - e.start) / 1e3));
  add("host", fmt::format("{} spans, {} calls of the driver", t.spans.size(), t.calls.size()));
  add("device work", fmt::format("{} kernels, copies and fills", t.work.size()));
  if (t.plain_call_us >= 0) add("launch without the profiler", fmt::format("{:.2f} us", t.plain_call_us));
  return out;
}

std::string unknown_html(const Timeline& t) {
  std::string items;
  for (const Unknown& u : t.unknown)
    items += fmt::format("<li>{}: {}</li>\n", html_escaped(u.what), html_escaped(u.why));
  if (t.dropped) items += fmt::format("<li>{} records: the profiler's buffers were full</li>\n", t.dropped);
  const auto lost = std::count_if(t.work.begin(), t.work.end(), [](const Work& w) { return w.is_lost(); });
  if (lost) items += fmt::format("<li>the times of {} kernels and copies: the driver gave none</li>\n", lost);
  return items.empty() ? "" : fmt::format("<div class=\"unknown\"><b>Not known</b><ul>\n{}</ul></div>", items);
}

std::string findings_html(const std::vector<Finding>& findings) {
  if (findings.empty()) return "<p>Nothing stands out.</p>";
  std::string out = "<ul class=\"findings\">\n";
  for (const Finding& f : findings) {
    out += fmt::format("<li class=\"{}\"><span class=\"rule\">{}</span>: {}\n", name(f.severity), html_escaped(f.rule),
                       html_escaped(f.what));
    if (!f.evidence.empty()) out += fmt::format("<p class=\"where\">{}</p>\n", html_escaped(f.evidence));
    out += fmt::format("<p class=\"advice\">Try: {}</p></li>\n", html_escaped(f.advice));
  }
  return out + "</ul>";
}

/// Begins with the button that opens the row.
std::string first_cell(const report::Column& column, const report::Cell& c) {
  const std::string text = c.is_unknown ? "–" : html_escaped(c.text),
                    tip = c.is_unknown ? html_escaped(c.reason) : text;
  return fmt::format(
      "<td{}{} title=\"{}\"><button type=\"button\" class=\"more\" aria-expanded=\"false\" "
      "aria-label=\"more about {}\"></button><span>{}</span></td>",
      column.align == report::Align::kLeft ? " class=\"left\"" : "",
      c.number ? fmt::format(" data-value=\"{}\"", *c.number) : "", tip, text, text);
}

std::string rows_html(const report::Table& table) {
  std::string out = "<div class=\"scroll\"><table class=\"sortable\"><thead><tr>";
  const auto& columns = table.columns();
  auto side = [&](size_t i) { return columns[i].align == report::Align::kLeft ? " class=\"left\"" : ""; };
  for (size_t i = 0; i < columns.size(); ++i)
    out += fmt::format(
        "<th{} scope=\"col\"><button type=\"button\">{}{}</button></th>", side(i), html_escaped(columns[i].name),
        columns[i].unit.empty() ? "" : fmt::format(" <span class=\"unit\">{}</span>", html_escaped(columns[i].unit)));
  out += "</tr></thead><tbody>\n";
  for (const auto& row : table.rows()) {
    out += "<tr>";
    for (size_t i = 0; i < row.size(); ++i) {
      const report::Cell& c = row[i];
      if (i == 0) {
        out += first_cell(columns[0], c);
        continue;
      }
      if (c.is_unknown)
        out += fmt::format("<td class=\"unknown-cell\" title=\"{}\">–</td>", html_escaped(c.reason));
      else if (c.number)
        out += fmt::format("<td{} data-value=\"{}\">{}</td>", side(i), *c.number, html_escaped(c.text));
      else
        out += fmt::format("<td{0} title=\"{1}\">{1}</td>", side(i), html_escaped(c.text));
    }
    out += "</tr>\n";
  }
  return out + "</tbody></table></div>\n";
}

std::string table_html(const report::Table& table) {
  std::string out = fmt::format("<section>\n<h2>{}</h2>\n", html_escaped(table.title()));
  if (!table.rows().empty()) out += rows_html(table);
  if (const auto notes = table.notes(); !notes.empty()) {
    out += "<ul class=\"notes\">";
    for (const std::string& note : notes) out += fmt::format("<li>{}</li>", html_escaped(note));
    out += "</ul>\n";
  }
  return out + "</section>\n";
}

/// The template with each {{name}} replaced.
std::string filled(std::string_view page, const std::map<std::string_view, std::string_view>& values) {
  std::string out;
  while (true) {
    const size_t open = page.find("{{");
    out += page.substr(0, open);
    if (open == std::string_view::npos) return out;
    const size_t close = page.find("}}", open);
    // at() throws for a name that the page has and html_report() does not give: a bug of ours.
    out += values.at(page.substr(open + 2, close - open - 2));
    page.remove_prefix(close + 2);
  }
}

}  // namespace

std::string html_report(const Timeline& t, const HtmlReport& r) {
  std::string tables, plots;
  for (const report::Table& table : r.tables) tables += table_html(table);
  // Without the XML declaration in front, which HTML does not allow there.
  for (const HtmlPlot& plot : r.plots)
    plots += fmt::format("<section>\n<h2>{}</h2>\n<div class=\"plot\">{}</div>\n</section>\n", html_escaped(plot.title),
                         plot.svg.substr(std::min(plot.svg.find("<svg"), plot.svg.size())));
  const std::string title = html_escaped(r.title), facts = facts_html(t, r), unknown = unknown_html(t),
                    findings = findings_html(r.findings), data = Data(t).text();
  return filled(embedded::page_text("page/report.html"), {{"title", title},
                                                          {"style", embedded::page_text("page/report.css")},
                                                          {"facts", facts},
                                                          {"unknown", unknown},
                                                          {"findings", findings},
                                                          {"plots", plots},
                                                          {"tables", tables},
                                                          {"footer", "Made by Kiln " KILN_VERSION "."},
                                                          {"data", data},
                                                          {"script", embedded::page_text("page/report.js")}});
}

Status write_html_report(const Timeline& timeline, const HtmlReport& report, const std::string& path) {
  return write_file_atomic(path, html_report(timeline, report));
}

}  // namespace kiln::profiler
