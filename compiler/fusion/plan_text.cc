// Plans as text: a table, and a drawing.
#include <fmt/format.h>

#include <algorithm>

#include "compiler/fusion/plan.h"

namespace kiln::fusion {

namespace {

std::string amount(double v, std::string_view unit) {
  constexpr std::string_view kPrefix[] = {"", "k", "M", "G", "T", "P"};
  size_t p = 0;
  while (v >= 1000 && p + 1 < std::size(kPrefix)) v /= 1000, ++p;
  return v < 10 && p > 0 ? fmt::format("{:.2f} {}{}", v, kPrefix[p], unit)
                         : fmt::format("{:.0f} {}{}", v, kPrefix[p], unit);
}

std::string value_text(const Plan& plan, int v) {
  const Value& value = plan.values[at(v)];
  return fmt::format("{} {}{}", value.name.empty() ? "x" : value.name, name(value.dtype), to_string(value.shape));
}

std::string_view kind_text(const Group& g) { return g.kind == GroupKind::kProduct ? "library product" : "kernel"; }

std::string escaped(std::string_view text) {
  std::string out;
  for (char c : text) {
    if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '&')
      out += "&amp;";
    else
      out += c;
  }
  return out;
}

}  // namespace

std::string plan_text(const Plan& plan) {
  std::string out = fmt::format("{}: {} {}, {}, {}\n", name(plan.variant), plan.groups.size(),
                                plan.groups.size() == 1 ? "launch" : "launches", amount(plan.bytes(), "B"),
                                amount(plan.flop(), "FLOP"));
  for (size_t g = 0; g < plan.groups.size(); ++g) {
    const Group& group = plan.groups[g];
    out += fmt::format("{:>3}  {}  {}, {}", g, group.name, kind_text(group), group.shape);
    if (group.kind == GroupKind::kKernel)
      out +=
          fmt::format(", grid {} x {} x {}, {} warps{}", group.grid[0], group.grid[1], group.grid[2], group.num_warps,
                      group.num_ctas > 1 ? fmt::format(" in each of {} blocks", group.num_ctas) : "");
    out += fmt::format(", {}, {}\n", amount(group.bytes, "B"), amount(group.flop, "FLOP"));
    for (int v : group.reads) out += "       reads  " + value_text(plan, v) + "\n";
    for (int v : group.writes) {
      const Value& value = plan.values[at(v)];
      out += "       writes " + value_text(plan, v) +
             (value.output ? " (result)" : fmt::format(" (temporary, slot {})", value.slot)) + "\n";
    }
  }
  for (const Boundary& b : plan.boundaries) {
    out += fmt::format("{} | {}: {}, {} more\n", b.from_group, b.to_group, b.cause, amount(b.bytes, "B"));
    if (!b.help.empty()) out += "     help: " + b.help + "\n";
  }
  return out;
}

std::string plan_svg(const Plan& plan) {
  // One column in the order of launches; arcs at the right for what later groups read.
  constexpr int kWidth = 460, kHeight = 64, kGap = 46, kLeft = 20, kTop = 20, kLane = 18, kLabel = 36;
  struct Arc {
    int from, to, value;
    int begin = 0, end = 0, lane = 0, label = 0;  // y, and which line it runs along
    std::string text = {}, why = {};
  };
  std::vector<Arc> arcs;
  for (int to = 0; to < static_cast<int>(plan.groups.size()); ++to)
    for (int v : plan.groups[at(to)].reads)
      if (plan.values[at(v)].input < 0) arcs.push_back({plan.values[at(v)].first_group, to, v});
  auto top = [&](int g) { return kTop + g * (kHeight + kGap); };
  int lanes = 0;
  std::vector<int> free_from;  // per lane: the y where its last arc ends
  for (Arc& a : arcs) {
    a.begin = top(a.from) + kHeight - 14, a.end = top(a.to) + 14;
    const auto lane = std::ranges::find_if(free_from, [&](int y) { return y < a.begin; });
    a.lane = static_cast<int>(lane - free_from.begin());
    if (lane == free_from.end())
      free_from.push_back(a.end), ++lanes;
    else
      *lane = a.end;
  }
  // Labels stand in a column of their own behind the lanes, each below the one before.
  const int right = kLeft + kWidth, labels = right + 34 + kLane * lanes;
  int height = kTop * 2 + std::max(0, static_cast<int>(plan.groups.size()) * (kHeight + kGap) - kGap),
      width = labels + kTop;
  int below = 0;
  std::ranges::stable_sort(arcs, {}, [](const Arc& a) { return a.begin + a.end; });
  for (Arc& a : arcs) {
    a.text = value_text(plan, a.value);
    for (const Boundary& b : plan.boundaries)
      if (b.from_group == a.from && b.to_group == a.to) a.why = b.cause;
    a.label = std::max((a.begin + a.end) / 2, below);
    below = a.label + kLabel;
    height = std::max(height, below);
    width = std::max(width, labels + 8 * static_cast<int>(a.text.size()));
    width = std::max(width, labels + 7 * static_cast<int>(a.why.size()));
  }
  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\" "
      "class=\"kiln-plan\" font-family=\"monospace\" font-size=\"13\">\n"
      "<style>\n.kiln-plan .page {{ fill: #ffffff }}\n.kiln-plan text {{ fill: #1d2430 }}\n"
      ".kiln-plan .why {{ fill: #5b6675; font-size: 11px }}\n"
      ".kiln-plan .product {{ fill: #fde9c9; stroke: #a5772a }}\n.kiln-plan .loops {{ fill: #dbe9fb; stroke: #45668f "
      "}}\n"
      ".kiln-plan .read {{ fill: none; stroke: #a83232 }}\n.kiln-plan .end {{ fill: #a83232 }}\n"
      "@media (prefers-color-scheme: dark) {{\n.kiln-plan .page {{ fill: #14181f }}\n.kiln-plan text {{ fill: #e4e8ee "
      "}}\n"
      ".kiln-plan .why {{ fill: #9aa5b4 }}\n.kiln-plan .product {{ fill: #4a3510; stroke: #dcae4a }}\n"
      ".kiln-plan .loops {{ fill: #1c3354; stroke: #74a9ff }}\n.kiln-plan .read {{ stroke: #ff8a80 }}\n"
      ".kiln-plan .end {{ fill: #ff8a80 }}\n}}\n</style>\n"
      "<rect class=\"page\" width=\"100%\" height=\"100%\"/>\n",
      width, height);
  for (int g = 0; g < static_cast<int>(plan.groups.size()); ++g) {
    const Group& group = plan.groups[at(g)];
    out += fmt::format(
        "<g><title>{}</title><rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" rx=\"6\" "
        "class=\"{}\"/>\n",
        escaped(group.source), kLeft, top(g), kWidth, kHeight, group.kind == GroupKind::kProduct ? "product" : "loops");
    const std::string lines[] = {fmt::format("{} {}", g, group.name),
                                 fmt::format("{}, {}", kind_text(group), group.shape),
                                 fmt::format("{}, {}", amount(group.bytes, "B"), amount(group.flop, "FLOP"))};
    int y = top(g) + 18;
    for (const std::string& l : lines) {
      out += fmt::format("<text x=\"{}\" y=\"{}\">{}</text>\n", kLeft + 10, y, escaped(l));
      y += 18;
    }
    out += "</g>\n";
  }
  for (const Arc& a : arcs) {
    const int x = right + 20 + kLane * a.lane, middle = (a.begin + a.end) / 2;
    out += fmt::format("<path d=\"M {} {} H {} V {} H {}\" class=\"read\"/>\n", right, a.begin, x, a.end, right);
    out += fmt::format("<circle cx=\"{}\" cy=\"{}\" r=\"3\" class=\"end\"/>\n", right, a.end);
    out += fmt::format("<path d=\"M {} {} L {} {}\" class=\"read\" stroke-dasharray=\"2 2\"/>\n", x, middle, labels - 4,
                       a.label);
    out += fmt::format("<text x=\"{}\" y=\"{}\">{}</text>\n", labels, a.label + 4, escaped(a.text));
    if (!a.why.empty())
      out += fmt::format("<text x=\"{}\" y=\"{}\" class=\"why\">{}</text>\n", labels, a.label + 18, escaped(a.why));
  }
  return out + "</svg>\n";
}

}  // namespace kiln::fusion
