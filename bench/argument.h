// Arguments of the small benchmark programs.
#pragma once
#include <charconv>
#include <cstdint>
#include <cstring>

namespace kiln::bench {

/// The program's i-th argument as a whole number, `otherwise` where it is not given; 0 where it is no such number.
inline int64_t whole_argument(int argc, char** argv, int i, int64_t otherwise) {
  if (i >= argc) return otherwise;
  int64_t value = 0;
  const char* end = argv[i] + std::strlen(argv[i]);
  const auto [stop, failed] = std::from_chars(argv[i], end, value);
  return failed == std::errc() && stop == end ? value : 0;
}

}  // namespace kiln::bench
