#include "profiler/shard/merge.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

namespace kiln::profiler {

namespace {

using report::Align;
using report::Cell;

const SweepCell* present_of(const ShardRecord& r) {
  for (const SweepCell& c : r.cells)
    if (c.is_baseline && c.us > 0) return &c;
  return nullptr;
}

/// How many times as fast as the launch as it stands; 0: not known.
double speedup_of(const ShardRecord& r) {
  const SweepCell* present = present_of(r);
  return present && r.cells[0].us > 0 ? present->us / r.cells[0].us : 0;
}

/// From the fastest on. GPUs of one name differ, and so do hours of one GPU: ratios to what was timed beside it decide,
/// and times only where a ratio is not known.
std::vector<const ShardRecord*> by_speed(const std::vector<ShardRecord>& records) {
  std::vector<const ShardRecord*> order;
  for (const ShardRecord& r : records) order.push_back(&r);
  const bool ratios =
      std::ranges::all_of(records, [](const ShardRecord& r) { return r.cells[0].us <= 0 || speedup_of(r) > 0; });
  auto rank = [&](const ShardRecord* r) {
    const double us = r->cells[0].us;
    // What failed comes last, whatever decides among the others.
    return std::tuple(us <= 0, ratios ? -speedup_of(*r) : us);
  };
  std::ranges::stable_sort(order, {}, rank);
  return order;
}

report::Table tune_table(const MergedList& list) {
  report::Table table({{"number", ""},
                       {"configuration", "", Align::kLeft, "config"},
                       {"median", "us"},
                       {"±", "%", Align::kRight, "spread"},
                       {"against now", "x", Align::kRight, "speedup"},
                       {"problem", "", Align::kLeft}});
  for (const ShardRecord* r : by_speed(list.records)) {
    const SweepCell& c = r->cells[0];
    const double speedup = speedup_of(*r);
    table.add_row({Cell::of(static_cast<int64_t>(r->number)), r->at[0].second + (c.is_baseline ? " (now)" : ""),
                   c.us > 0 ? Cell::of(c.us, c.us < 100 ? 2 : 1) : Cell(""),
                   c.us > 0 ? Cell::of(c.spread * 100, 1) : Cell(""), speedup > 0 ? Cell::of(speedup, 2) : Cell(""),
                   c.problem});
  }
  return table;
}

}  // namespace

const ShardRecord* MergedList::best() const {
  const ShardRecord* first = by_speed(records).front();
  return first->cells[0].us > 0 ? first : nullptr;
}

std::vector<MergedList> merge_shards(const ShardRecords& all) {
  std::vector<MergedList> lists;
  std::map<std::pair<std::string, std::string>, size_t> places;
  for (const ShardRecord& r : all.records) {
    const auto [place, is_new] = places.emplace(std::pair(r.list, r.device), lists.size());
    if (is_new) lists.emplace_back();
    lists[place->second].records.push_back(r);
  }
  for (MergedList& list : lists) {
    // Records of one number by time, so that the last that was measured counts.
    std::ranges::stable_sort(list.records, {}, [](const ShardRecord& r) { return std::tie(r.number, r.time); });
    // The last of each number.
    const auto again = std::ranges::unique(list.records.rbegin(), list.records.rend(), {}, &ShardRecord::number);
    list.records.erase(list.records.begin(), again.begin().base());
    size_t next = 0;
    for (const ShardRecord& r : list.records) {
      for (; next < r.number; ++next) list.missing.push_back(next);
      next = r.number + 1;
    }
    for (; next < list.records[0].total; ++next) list.missing.push_back(next);
  }
  return lists;
}

std::string number_ranges(const std::vector<size_t>& numbers) {
  std::string out;
  for (size_t i = 0; i < numbers.size();) {
    size_t end = i + 1;
    while (end < numbers.size() && numbers[end] == numbers[end - 1] + 1) ++end;
    out += fmt::format("{}{}", out.empty() ? "" : ", ", numbers[i]);
    // "3–7", but "3, 4": a range of two saves nothing.
    if (end - i > 1) out += fmt::format("{}{}", end - i > 2 ? "–" : ", ", numbers[end - 1]);
    i = end;
  }
  return out;
}

Sweep sweep_of(const MergedList& list) {
  Sweep sweep;
  for (const auto& [axis, value] : list.records[0].at) sweep.axes.push_back(axis);
  for (const ShardRecord& r : list.records) {
    SweepPoint point;
    for (const auto& [axis, value] : r.at) point.values.push_back(value);
    point.cells = r.cells;
    sweep.points.push_back(std::move(point));
  }
  return sweep;
}

report::Table merged_table(const MergedList& list) {
  const ShardRecord& first = list.records[0];
  const bool is_sweep = first.kind == ShardedKind::kSweep;
  report::Table table = is_sweep ? sweep_table(sweep_of(list)) : tune_table(list);
  table.set_title(fmt::format("{} {}{}{} on {}", name(first.kind), first.expression, first.options.empty() ? "" : " ",
                              first.options, first.device));
  if (is_sweep) {
    for (std::string& line : crossovers(sweep_of(list))) table.add_note(std::move(line));
  } else if (const ShardRecord* best = list.best()) {
    const double speedup = speedup_of(*best);
    table.add_note(fmt::format("best: {}{}", best->cells[0].variant,
                               best->cells[0].is_baseline ? " (the launch as it stands)"
                               : speedup > 0 ? fmt::format(", {:.2f} times as fast as the launch as it stands", speedup)
                                             : ""));
  }
  std::set<std::string> versions, drivers;
  for (const ShardRecord& r : list.records) versions.insert(r.version), drivers.insert(r.driver);
  if (versions.size() > 1) table.add_note(fmt::format("measured by several versions: {}", fmt::join(versions, ", ")));
  if (drivers.size() > 1) table.add_note(fmt::format("measured with several drivers: {}", fmt::join(drivers, ", ")));
  return table;
}

std::string missing_note(const MergedList& list) {
  const size_t total = list.records[0].total;
  if (list.missing.empty()) return fmt::format("all {} are there", total);
  return fmt::format("{} of {} missing: {}", list.missing.size(), total, number_ranges(list.missing));
}

}  // namespace kiln::profiler
