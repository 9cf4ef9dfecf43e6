// The table of cases.
#include "kernels/registry.h"

namespace kiln::kernels {

std::span<const Case* const> all_cases() {
  static constexpr const Case* kCases[] = {
#define KILN_CASE(symbol) &symbol,
      KILN_CASES(KILN_CASE)
#undef KILN_CASE
  };
  return kCases;
}

const Case* find_case(std::string_view name) {
  for (const Case* c : all_cases())
    if (c->name == name) return c;
  return nullptr;
}

}  // namespace kiln::kernels
