#include "profiler/lines/line_profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>

namespace kiln::profiler {

namespace {

struct StallRow {
  std::string_view name, words, help;
};
constexpr StallRow kStalls[] = {
#define KILN_STALL(e, name, words, help) {name, words, help},
#include "profiler/lines/stall_reason.def"
#undef KILN_STALL
    {"other", "waits for a reason that has no name here", ""},
};
static_assert(std::size(kStalls) == kNumStalls);

const StallRow& row(Stall stall) { return kStalls[static_cast<size_t>(stall)]; }

// Not stalls: the warp issued, or was eligible while another one issued.
bool is_at_work(Stall stall) { return stall == Stall::kSelected || stall == Stall::kNotSelected; }

}  // namespace

std::string_view name(Stall stall) { return row(stall).name; }
std::string_view in_words(Stall stall) { return row(stall).words; }
std::string_view what_helps(Stall stall) { return row(stall).help; }

std::optional<StallCounter> parse_stall_counter(std::string_view text) {
  constexpr std::string_view kPrefix = "issue_stalled_", kIdle = "_not_issued";
  const size_t at = text.find(kPrefix);
  if (at == std::string_view::npos) return std::nullopt;
  text.remove_prefix(at + kPrefix.size());
  StallCounter counter;
  counter.idle = text.ends_with(kIdle);
  if (counter.idle) text.remove_suffix(kIdle.size());
  for (size_t i = 0; i + 1 < kNumStalls; ++i)
    if (kStalls[i].name == text) counter.stall = static_cast<Stall>(i);
  return counter;
}

int64_t StallCounts::total() const { return std::accumulate(all.begin(), all.end(), int64_t{0}); }
int64_t StallCounts::total_idle() const { return std::accumulate(idle.begin(), idle.end(), int64_t{0}); }

void StallCounts::add(const StallCounts& other) {
  for (size_t i = 0; i < kNumStalls; ++i) all[i] += other.all[i], idle[i] += other.idle[i];
}

int64_t total_samples(const SampledFunction& function) {
  int64_t total = 0;
  for (const SampledPc& s : function.pcs) total += s.counts.total();
  return total;
}

std::vector<Stall> StallCounts::by_weight() const {
  std::vector<Stall> order;
  for (size_t i = 0; i < kNumStalls; ++i)
    if (all[i] > 0) order.push_back(static_cast<Stall>(i));
  std::stable_sort(order.begin(), order.end(), [&](Stall a, Stall b) {
    // Real stalls come first, however few, because only they can be improved.
    if (is_at_work(a) != is_at_work(b)) return is_at_work(b);
    return all[static_cast<size_t>(a)] > all[static_cast<size_t>(b)];
  });
  return order;
}

LineProfile line_profile(const SampledFunction& samples, const LineTable& table) {
  LineProfile profile;
  profile.function = samples.name;
  profile.files = table.files;
  std::map<std::pair<int, int>, LineSamples> lines;
  auto line_at = [&](int file, int line) -> LineSamples& {
    LineSamples& l = lines[{file, line}];
    l.file = file, l.line = line;
    return l;
  };
  // Lines without samples are listed too, so that the source view has the instruction count of every line.
  for (const Instruction& i : table.code)
    if (i.file >= 0) ++line_at(i.file, i.line).instructions;
  std::map<std::pair<int, int>, int64_t> most;
  for (const SampledPc& s : samples.pcs) {
    const Instruction* i = table.find(s.pc);
    const int file = i ? i->file : -1, line = i && i->file >= 0 ? i->line : 0;
    LineSamples& l = line_at(file, line);
    const int64_t n = s.counts.total();
    if (int64_t& top = most[{file, line}]; n > top) top = n, l.hottest = s.pc;
    l.counts.add(s.counts);
    profile.counts.add(s.counts);
    if (file < 0) profile.unplaced += n;
  }
  for (auto& [at, l] : lines) profile.lines.push_back(l);
  return profile;
}

std::vector<const LineSamples*> hottest_first(const LineProfile& profile) {
  std::vector<const LineSamples*> order;
  for (const LineSamples& l : profile.lines)
    if (l.counts.total() > 0) order.push_back(&l);
  std::stable_sort(order.begin(), order.end(),
                   [](const auto* a, const auto* b) { return a->counts.total() > b->counts.total(); });
  return order;
}

std::string describe(const StallCounts& counts, double least) {
  const auto total = static_cast<double>(counts.total());
  std::string text;
  int named = 0;
  for (Stall s : counts.by_weight()) {
    const double part = static_cast<double>(counts.all[static_cast<size_t>(s)]) / total;
    // Three reasons fit a table row.
    if (part < least || named == 3) continue;
    text += fmt::format("{}{} {:.0f}%", text.empty() ? "" : ", ", in_words(s), 100 * part);
    ++named;
  }
  return text;
}

}  // namespace kiln::profiler
