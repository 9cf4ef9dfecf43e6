// What the compiler made of one specialisation of a kernel.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kiln {

/// A step of a compilation: "frontend", a pass, "lower", "llvm", "cubin", "load".
struct PhaseTime {
  std::string name;
  double ms = 0;
  bool operator==(const PhaseTime&) const = default;
};

/// The rows of kernel_field.def.
struct KernelInfo {
#define KILN_KERNEL_FIELD(NAME, TYPE, DEFAULT, TRAITS, SCRIPT, MEANING) TYPE NAME = DEFAULT;
#include "kiln/kernel_field.def"
};

struct KernelField {
  std::string_view name, traits, script, meaning;
  constexpr bool has(char trait) const { return traits.find(trait) != std::string_view::npos; }
};

/// Calls fn(KernelField, field) for each field of a KernelInfo.
template <class Info, class Fn>
void for_each_field(Info& info, Fn fn) {
#define KILN_KERNEL_FIELD(NAME, TYPE, DEFAULT, TRAITS, SCRIPT, MEANING) \
  fn(KernelField{#NAME, TRAITS, SCRIPT, MEANING}, info.NAME);
#include "kiln/kernel_field.def"
}

}  // namespace kiln
