// Two saved contests against each other.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "profiler/compare/compare.h"
#include "support/diag.h"

namespace kiln::profiler {

namespace {

std::vector<double> logs(const ContestRow& row) {
  std::vector<double> out;
  for (const Sample& s : row.samples)
    if (s.us > 0) out.push_back(std::log(s.us));
  return out;
}

std::string clock_note(const ContestRow& before, const ContestRow& after) {
  // Times of compute-bound kernels scale with the clock, so 2 % of it may be the whole change.
  const double was = before.sm_mhz(), is = after.sm_mhz();
  constexpr double kSpan = 0.02;
  if (was <= 0 || is <= 0 || std::abs(is - was) <= kSpan * was) return {};
  return fmt::format("{}: the clock was {:.0f} MHz in the old run and {:.0f} in the new one", after.name, was, is);
}

Change change_of(const ContestRow& before, const ContestRow& after, double threshold) {
  Change c;
  c.name = after.name;
  c.wrong = after.check.known() && !after.check.ok();
  const std::vector<double> was = logs(before), is = logs(after);
  if (!was.empty()) c.old_us = std::exp(median(was));
  if (!is.empty()) c.new_us = std::exp(median(is));
  if (was.empty() || is.empty()) {
    const ContestRow& absent = is.empty() ? after : before;
    c.note = fmt::format("no times in the {} run{}", is.empty() ? "new" : "old",
                         absent.problem.ok() ? "" : ": " + absent.problem.error().message);
    return c;
  }
  // Each median lies in its interval with 97.5 %, so both do with 95 %.
  const Interval a = median_interval(was, 0.975), b = median_interval(is, 0.975);
  const double effect = median(was) - median(is), low = a.low - b.high, high = a.high - b.low;
  c.speedup = std::exp(effect);
  c.speedup_95 = {std::exp(low), std::exp(high)};
  if (!std::isfinite(low) || !std::isfinite(high))
    c.note = "too few samples";
  else if (std::abs(effect) > threshold && (low > 0 || high < 0))
    c.verdict = effect > 0 ? Verdict::kFaster : Verdict::kSlower;
  else if (-threshold <= low && high <= threshold)
    c.verdict = Verdict::kSame;
  return c;
}

}  // namespace

bool Changes::any_slower() const {
  return std::any_of(rows.begin(), rows.end(), [](const Change& c) { return c.verdict == Verdict::kSlower; });
}

bool Changes::any_missing() const { return !missing.empty(); }

bool Changes::any_wrong() const {
  return std::any_of(rows.begin(), rows.end(), [](const Change& c) { return c.wrong; });
}

Result<Changes> compare_contests(const Contest& before, const Contest& after, double threshold) {
  if (before.hardware != after.hardware || before.target != after.target)
    return error(ErrorKind::kValue,
                 "the old run is of {} ({}), the new one of {} ({}): times of two machines do not compare",
                 before.hardware, before.target, after.hardware, after.target);
  if (before.cache != after.cache)
    return error(ErrorKind::kValue, "the old run has {} caches, the new one {}: they do not compare",
                 name(before.cache), name(after.cache));
  Changes changes;
  int common = 0;
  for (const ContestRow& row : after.rows) {
    const ContestRow* old = before.find(row.name);
    if (!old) {
      changes.notes.push_back(fmt::format("{}: not in the old run", row.name));
      continue;
    }
    ++common;
    changes.rows.push_back(change_of(*old, row, threshold));
    if (old->is_measured() && !row.is_measured()) changes.missing.push_back(row.name);
    if (std::string note = clock_note(*old, row); !note.empty()) changes.notes.push_back(note);
  }
  for (const ContestRow& row : before.rows)
    if (!after.find(row.name)) {
      changes.missing.push_back(row.name);
      changes.notes.push_back(fmt::format("{}: not in the new run", row.name));
    }
  if (common == 0) return error(ErrorKind::kValue, "the two runs have no contender in common");
  if (before.driver != after.driver)
    changes.notes.push_back(fmt::format("the driver was {}, and is {}", before.driver, after.driver));
  changes.notes.push_back(fmt::format("{} caches; {} → {}; changes up to {:g} % do not count", name(after.cache),
                                      before.when, after.when, threshold * 100));
  return changes;
}

}  // namespace kiln::profiler
