#include "repl/commands/shard_commands.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>

#include "profiler/measure/stats.h"
#include "profiler/shard/merge.h"
#include "repl/commands/shard_work.h"
#include "repl/magics/sweep_points.h"
#include "repl/magics/tune_arguments.h"
#include "repl/shell/errors.h"
#include "repl/shell/files.h"
#include "support/diag.h"

namespace kiln::repl {

namespace {

using profiler::ShardedKind;
using profiler::SweepCell;
using profiler::TuneState;

/// Configurations that are compiled side by side and timed in turns; what is measured is kept after each group.
constexpr size_t kGroup = 8;

/// The values of one point, with their axes.
std::vector<std::pair<std::string, std::string>> values_at(const SweepPoints& points, size_t number) {
  std::vector<std::pair<std::string, std::string>> at;
  const std::vector<std::string> texts = points.texts(number);
  for (size_t a = 0; a < texts.size(); ++a) at.emplace_back(points.axes()[a].name, texts[a]);
  return at;
}

/// The cells of one point. That it does not fit into memory is a result too: the others may fit.
Result<std::vector<SweepCell>> measured(ShardWork& work, SweepPoints& points, size_t number) {
  KILN_TRY(const profiler::DeviceLock lock, work.lock());
  auto cells = points.measure(number);
  if (!cells.ok() && cells.error().kind == ErrorKind::kMemory) {
    SweepCell cell;
    cell.variant = work.arguments().expressions[0];
    cell.is_baseline = true;
    cell.problem = cells.error().message;
    return std::vector<SweepCell>{std::move(cell)};
  }
  return cells;
}

/// True when Ctrl-C ended it.
Result<bool> sweep_points(ShardWork& work) {
  KILN_TRY(SweepPoints points, SweepPoints::make(work.shell().context(), work.arguments()));
  std::vector<std::string> items;
  for (size_t n = 0; n < points.size(); ++n) {
    std::string item;
    for (const auto& [axis, value] : values_at(points, n))
      item += fmt::format("{}{}={}", item.empty() ? "" : ", ", axis, value);
    items.push_back(std::move(item));
  }
  KILN_TRY(const std::vector<size_t> open, work.begin(work.list(ShardedKind::kSweep, std::move(items))));
  const script::Session& session = work.shell().session();
  for (size_t i = 0; i < open.size(); ++i) {
    if (shows_progress(session)) tell_progress(session, fmt::format("{} of {}", i + 1, open.size()));
    auto cells = measured(work, points, open[i]);
    if (!cells.ok() && cells.error().kind == ErrorKind::kInterrupted) return true;
    if (!cells.ok()) return std::move(cells.error());
    KILN_CHECK_OK(work.keep(open[i], values_at(points, open[i]), *std::move(cells)));
  }
  return false;
}

/// A configuration as the shards keep it, and behind it the launch as it stands.
std::vector<SweepCell> cells_of(const script::TuneOutcome& part, size_t row) {
  auto cell = [&](size_t i) {
    const profiler::TuneRow& r = part.result.rows[i];
    SweepCell c;
    c.variant = part.configs[i];
    c.is_baseline = static_cast<int>(i) == part.present;
    if (r.state == TuneState::kMeasured) {
      const profiler::Summary us = profiler::summarize(r.us);
      c.us = us.median, c.spread = us.spread(), c.q1_us = us.q1, c.q3_us = us.q3;
    } else {
      c.problem = fmt::format("{}: {}", name(r.state), r.reason);
    }
    return c;
  };
  std::vector<SweepCell> cells = {cell(row)};
  if (!cells[0].is_baseline) cells.push_back(cell(static_cast<size_t>(part.present)));
  return cells;
}

Result<bool> tune_groups(ShardWork& work) {
  KILN_TRY(TuneArguments arguments, read_tune_arguments(work.arguments()));
  script::Session& session = work.shell().session();
  KILN_TRY(const std::vector<std::string> labels, script::tune_configurations(session, arguments.request));
  KILN_TRY(const std::vector<size_t> open, work.begin(work.list(ShardedKind::kTune, labels)));
  for (size_t first = 0; first < open.size(); first += kGroup) {
    const std::vector<size_t> group(open.begin() + static_cast<std::ptrdiff_t>(first),
                                    open.begin() + static_cast<std::ptrdiff_t>(std::min(first + kGroup, open.size())));
    if (shows_progress(session)) tell_progress(session, fmt::format("{} of {}", first, open.size()));
    std::optional<profiler::DeviceLock> lock;
    arguments.request.before_launches = [&]() -> Status {
      KILN_TRY(auto taken, work.lock());
      lock.emplace(std::move(taken));
      return {};
    };
    auto part = script::tune_part(session, arguments.request, group);
    if (!part.ok() && part.error().kind == ErrorKind::kInterrupted) return true;
    if (!part.ok()) return std::move(part.error());
    if (part->result.interrupted || work.is_interrupted()) return true;
    for (size_t i = 0; i < part->numbers.size(); ++i) {
      const size_t number = part->numbers[i];
      // Without its turn it is still to be measured.
      if (part->result.rows[i].state == TuneState::kSkipped || std::ranges::find(group, number) == group.end())
        continue;
      KILN_CHECK_OK(work.keep(number, {{"configuration", labels[number]}}, cells_of(*part, i)));
    }
  }
  return false;
}

int shard_command(const Options& options, Result<bool> (*measure)(ShardWork&)) {
  ShardWork work(options);
  if (const auto code = work.open()) return *code;
  auto interrupted = measure(work);
  if (!interrupted.ok()) return work.failed(interrupted.error(), kExitError);
  return work.finish(*interrupted);
}

}  // namespace

int sweep_command(const Options& options) { return shard_command(options, sweep_points); }
int tune_command(const Options& options) { return shard_command(options, tune_groups); }

int merge_command(const std::string& folder, bool json) {
  auto read = profiler::read_shards(folder);
  if (read.ok() && read->records.empty())
    read = with_note(error(ErrorKind::kValue, "there are no records in {}", folder),
                     "help: kiln sweep and kiln tune write them: --out FOLDER");
  if (!read.ok()) {
    print_error(read.error(), json);
    return kExitUsage;
  }
  const std::vector<profiler::MergedList> lists = profiler::merge_shards(*read);
  bool is_complete = true;
  for (const profiler::MergedList& list : lists) {
    report::Table table = profiler::merged_table(list);
    table.add_note(profiler::missing_note(list));
    if (read->torn > 0 && &list == &lists.back())
      table.add_note(fmt::format("{} line{} of the folder {} no record: a process may have died while it wrote",
                                 read->torn, read->torn == 1 ? "" : "s", read->torn == 1 ? "is" : "are"));
    if (!json && &list != &lists.front()) put(stdout, "\n");
    print_list(list, table, json);
    is_complete = is_complete && list.missing.empty();
  }
  return is_complete ? kExitOk : kExitError;
}

}  // namespace kiln::repl
