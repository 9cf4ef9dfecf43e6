#include "profiler/profile/places.h"

#include <fmt/format.h>

namespace kiln::profiler {

namespace {

const Span& at(const Timeline& t, int i) { return t.spans[static_cast<size_t>(i)]; }

}  // namespace

const Span* statement_of(const Timeline& t, int span) {
  for (int i = span; i >= 0; i = at(t, i).parent)
    if (at(t, i).step == trace::Step::kStatement && !at(t, i).file.empty()) return &at(t, i);
  return nullptr;
}

std::string line_of(const Timeline& t, int span) {
  const Span* s = statement_of(t, span);
  return s ? fmt::format("{}:{}", s->file, s->line) : std::string();
}

std::string line_and_text(const Span& s) {
  return fmt::format("{}:{}{}", s.file, s.line, s.name.empty() ? "" : fmt::format(" `{}`", s.name));
}

bool is_within(const Timeline& t, int span, trace::Step step) {
  for (int i = span; i >= 0; i = at(t, i).parent)
    if (at(t, i).step == step) return true;
  return false;
}

}  // namespace kiln::profiler
