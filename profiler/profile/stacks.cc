#include "profiler/profile/stacks.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "profiler/profile/intervals.h"
#include "profiler/profile/lanes.h"
#include "support/files.h"

namespace kiln::profiler {

namespace {

/// A semicolon separates the frames, and a blank the stack from its time.
std::string frame(std::string text) {
  for (char& c : text)
    if (c == ';' || c == '\n') c = ',';
  return text;
}

}  // namespace

std::string folded_stacks(const Timeline& t, bool device) {
  std::vector<std::string> stack_of(t.spans.size());
  std::map<std::string, Ns> own;
  for (size_t i = 0; i < t.spans.size(); ++i) {  // parents come first
    const Span& s = t.spans[i];
    if (s.parent >= 0) stack_of[i] = stack_of[static_cast<size_t>(s.parent)] + ";";
    stack_of[i] += frame(title(s));
    if (device) continue;
    own[stack_of[i]] += s.duration();
    if (s.parent >= 0) own[stack_of[static_cast<size_t>(s.parent)]] -= s.duration();
  }
  auto under = [&](int span, const std::string& name) {
    return (span >= 0 ? stack_of[static_cast<size_t>(span)] + ";" : "") + frame(name);
  };
  if (device) {
    for (const Work& w : t.work)
      if (!w.is_lost())
        own[t.is_cuda() ? under(w.span, w.name) : stack_of[static_cast<size_t>(w.span)]] += w.duration();
  } else {
    for (const ApiCall& c : t.calls) {
      own[under(c.span, c.name)] += c.end - c.start;
      if (c.span >= 0) own[stack_of[static_cast<size_t>(c.span)]] -= c.end - c.start;
    }
  }
  std::string out;
  for (const auto& [stack, time] : own)
    if (time >= 500) out += fmt::format("{} {}\n", stack, (time + 500) / 1000);
  return out;
}

Status write_stacks(const Timeline& timeline, bool device, const std::string& path) {
  return write_file_atomic(path, folded_stacks(timeline, device));
}

}  // namespace kiln::profiler
