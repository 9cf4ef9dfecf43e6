// Making diagnostics, and stopping on our own bugs.
#pragma once
#include <fmt/core.h>  // not format.h: most headers read this one

#include <algorithm>
#include <limits>
#include <string>

#include "kiln/result.h"
#include "support/source.h"

namespace kiln {

/// A diagnostic at a place: `return error_at(range, ErrorKind::kType, "expected {}, got {}", a, b);`
template <class... Args>
Diagnostic error_at(SourceRange range, ErrorKind kind, fmt::format_string<Args...> f, Args&&... args) {
  return Diagnostic{kind, fmt::format(f, std::forward<Args>(args)...), place_of(range), {}};
}

/// A diagnostic without a place.
template <class... Args>
Diagnostic error(ErrorKind kind, fmt::format_string<Args...> f, Args&&... args) {
  return Diagnostic{kind, fmt::format(f, std::forward<Args>(args)...), {}, {}};
}

/// Adds "help: …" or another remark and hands the diagnostic on: `return with_note(error_at(…), "help: …");`
Diagnostic with_note(Diagnostic d, std::string message, SourceRange range = {});

/// A bug of ours: prints the place and the message and aborts. Never reachable from user input.
[[noreturn]] void internal_error(const char* file, int line, const std::string& message);

#define KILN_ASSERT(cond, ...)                                                                                       \
  do {                                                                                                               \
    if (!(cond)) ::kiln::internal_error(__FILE__, __LINE__, #cond __VA_OPT__(": ") + ::fmt::format("" __VA_ARGS__)); \
  } while (0)
#define KILN_UNREACHABLE(...) ::kiln::internal_error(__FILE__, __LINE__, ::fmt::format("unreachable: " __VA_ARGS__))

/// The candidate nearest to `name` by edit distance, if it is near enough to be a misspelling: one edit for every three
/// characters of the longer of both, which may be shortened (elem_ty for element_ty). Else "".
template <class Range>
std::string nearest_name(std::string_view name, const Range& candidates);

/// Characters added, dropped, replaced, or exchanged with their neighbour.
int edit_distance(std::string_view a, std::string_view b);

template <class Range>
std::string nearest_name(std::string_view name, const Range& candidates) {
  std::string best;
  int best_distance = std::numeric_limits<int>::max();
  for (const auto& c : candidates) {
    const std::string_view candidate(c);
    const int d = edit_distance(name, candidate), most = static_cast<int>(std::max(name.size(), candidate.size())) / 3;
    if (d <= most && d < best_distance) best = std::string(candidate), best_distance = d;
  }
  return best;
}

}  // namespace kiln
