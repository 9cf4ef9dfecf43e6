#include "repl/commands/shard_work.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>

#include "profiler/report/plot.h"
#include "repl/magics/contenders.h"
#include "repl/shell/errors.h"
#include "repl/shell/files.h"
#include "support/diag.h"

namespace kiln::repl {

namespace {

using profiler::ShardRecord;

std::string time_now() {
  const std::time_t now = std::time(nullptr);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", std::gmtime(&now));
  return text;
}

/// Of a tuning the launch as it stands counts too: a shard may hold nothing but configurations that do not run.
bool is_measured(const ShardRecord& record) {
  return std::ranges::any_of(record.cells, [](const profiler::SweepCell& c) { return c.problem.empty(); });
}

}  // namespace

int ShardWork::failed(const Diagnostic& d, int code) const {
  print_error(d, options_.json);
  return code;
}

std::optional<int> ShardWork::open() {
  const ShardArgs& args = options_.shard;
  if (!args.shard.empty()) {
    auto shard = profiler::parse_shard(args.shard);
    if (!shard.ok()) return failed(shard.error(), kExitUsage);
    shard_ = *shard;
  }
  auto arguments = magic_arguments_of(args.words);
  if (!arguments.ok()) return failed(arguments.error(), kExitUsage);
  arguments_ = *std::move(arguments);
  if (Status s = shell_.open_device(); !s.ok()) return failed(s.error(), kExitError);
  if (!args.file.empty()) {
    auto text = read_text(args.file);
    if (!text.ok()) return failed(text.error(), kExitUsage);
    program_ = *std::move(text);
    if (const int code = shell_.run_program(program_, args.file)) return code;
    // exit() in the program ends the program, not the sweep.
    shell_.session().take_exit_code();
  }
  auto device = shell_.session().device();
  if (!device.ok()) return failed(device.error(), kExitError);
  device_ = *device;
  // From here on Ctrl-C ends the item that is measured, and what is done is kept.
  guard_.emplace(shell_.session(), options_.interrupts);
  return std::nullopt;
}

profiler::ShardedList ShardWork::list(profiler::ShardedKind kind, std::vector<std::string> items) const {
  // How long something is measured is not what is measured.
  constexpr std::string_view kEffort[] = {"budget", "pairs", "lock"};
  profiler::ShardedList list{
      kind, program_, fmt::format("{}", fmt::join(arguments_.expressions, ", ")), {}, std::move(items)};
  for (const MagicOption& o : magic_options(name(kind))) {
    const std::string* value = arguments_.find(o.name);
    if (!value || std::ranges::find(kEffort, o.name) != std::end(kEffort)) continue;
    const bool quoted = value->find(' ') != std::string::npos;
    list.options += fmt::format("{}{}={}{}{}", list.options.empty() ? "" : " ", o.name, quoted ? "'" : "", *value,
                                quoted ? "'" : "");
  }
  return list;
}

Result<std::vector<size_t>> ShardWork::begin(profiler::ShardedList list) {
  list_ = std::move(list);
  list_id_ = list_.id();
  std::vector<bool> known(list_.items.size());
  if (!options_.shard.out.empty()) {
    KILN_TRY(auto file, profiler::ShardFile::open(options_.shard.out, shard_));
    file_.emplace(std::move(file));
    KILN_TRY(profiler::ShardRecords there, profiler::read_shards(options_.shard.out));
    const std::string device = device_.info().name;
    // Records of this list on this GPU count, whoever wrote them.
    for (ShardRecord& r : there.records)
      if (r.list == list_id_ && r.device == device && r.number < known.size() && shard_.owns(r.number)) {
        known_ += known[r.number] ? 0 : 1;
        known[r.number] = true;
        records_.push_back(std::move(r));
      }
  }
  std::vector<size_t> open;
  for (size_t n = 0; n < known.size(); ++n) {
    if (!shard_.owns(n)) continue;
    ++owned_;
    if (!known[n]) open.push_back(n);
  }
  return open;
}

Result<profiler::DeviceLock> ShardWork::lock() {
  return profiler::DeviceLock::take(
      device_, [this] { return is_interrupted(); },
      // Said once, when the lock is not to be had at once: another process may hold it for minutes.
      [this] {
        if (shows_progress(shell_.session())) tell_progress(shell_.session(), "");
        put(stderr, fmt::format("waiting for {}: another process measures on it\n", device_.name()));
      });
}

Status ShardWork::keep(size_t number, std::vector<std::pair<std::string, std::string>> at,
                       std::vector<profiler::SweepCell> cells) {
  const DeviceInfo info = device_.info();
  ShardRecord r;
  r.list = list_id_, r.kind = list_.kind;
  r.number = number, r.total = list_.items.size();
  r.expression = list_.expression, r.options = list_.options;
  r.at = std::move(at);
  r.device = info.name, r.driver = info.driver, r.version = KILN_VERSION, r.time = time_now();
  r.shard = shard_.text();
  r.cells = std::move(cells);
  // Written at once, so that a process that ends loses nothing that was measured.
  if (file_) KILN_CHECK_OK(file_->append(r));
  records_.push_back(std::move(r));
  return {};
}

int ShardWork::finish(bool interrupted) {
  if (shows_progress(shell_.session())) tell_progress(shell_.session(), "");
  // A Ctrl-C that ended the work must not end the printing of what it made.
  shell_.session().forget_interrupt();
  std::vector<profiler::MergedList> lists = profiler::merge_shards({std::move(records_)});
  const std::string_view what = list_.kind == profiler::ShardedKind::kSweep ? "points" : "configurations";
  std::string note = fmt::format("shard {}: {} of its {} {}", shard_.text(),
                                 lists.empty() ? 0 : lists[0].records.size(), owned_, what);
  if (owned_ < list_.items.size()) note += fmt::format(", of {} in all", list_.items.size());
  if (known_ > 0) note += fmt::format("; {} were in {} already", known_, options_.shard.out);
  if (interrupted) note += "; interrupted";
  if (lists.empty()) {
    put(stderr, note + "\n");
  } else {
    report::Table table = profiler::merged_table(lists[0]);
    table.add_note(note);
    print_list(lists[0], table, options_.json);
  }
  // A job whose every measurement failed (no memory, a name that is missing) must not look like one that went well.
  const bool failed = !lists.empty() && std::ranges::none_of(lists[0].records, is_measured);
  if (failed) put(stderr, fmt::format("error: none of the {} could be measured\n", what));
  return interrupted || failed ? kExitError : kExitOk;
}

void print_list(const profiler::MergedList& list, const report::Table& table, bool json) {
  if (json) return put(stdout, report::to_json(table));
  const report::TextStyle style = report::style_of(STDOUT_FILENO);
  put(stdout, report::to_text(table, style));
  if (list.records[0].kind != profiler::ShardedKind::kSweep) return;
  const report::Plot plot = profiler::sweep_plot(profiler::sweep_of(list));
  put(stdout,
      report::to_terminal(plot, style.color ? report::PlotStyle::kColor : report::PlotStyle::kPlain, style.width));
}

}  // namespace kiln::repl
