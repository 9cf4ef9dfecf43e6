// Environment variables: one table (knobs.def), read only here.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kiln/result.h"

namespace kiln {

enum class Knob : uint8_t {
#define KILN_KNOB(e, variable, default_value, form, meaning) k##e,
#include "support/knobs.def"
#undef KILN_KNOB
};

enum class KnobForm : uint8_t { kText, kFlag, kLimit };

struct KnobInfo {
  std::string_view variable, default_value, meaning;
  KnobForm form = KnobForm::kText;
};

/// All rows, in the order of the table and of the enum.
std::span<const KnobInfo> knobs();
const KnobInfo& info(Knob k);

/// The variable's text, or its default when unset or empty.
std::string knob(Knob k);
/// False for "", "0", "off", "no", "false".
bool knob_on(Knob k);
/// An integer; kValue: "KILN_THREADS=x is not an integer of at least 1". nullopt when there is no text.
Result<std::optional<int64_t>> knob_int(Knob k, int64_t at_least);
/// A row whose form is Limit; where its text is no integer of at least 1 (knob_problems() tells), its default.
int64_t knob_limit(Knob k);
/// Bytes with an optional suffix K, M or G (powers of 1024); kValue otherwise. nullopt when there is no text.
Result<std::optional<int64_t>> knob_bytes(Knob k);
/// Seconds, with a fraction or not; 0 when there is no text. kValue otherwise.
Result<double> knob_seconds(Knob k);

/// A sentence for each flag and limit that has a value it cannot have, and so counts as its default or as on.
std::vector<std::string> knob_problems();

/// Turns the CUDA driver's own cache of compiled code off (CUDA_CACHE_DISABLE), unless the environment has a choice:
/// Kiln keeps its code itself, and keeping it twice made compilations 1 to 6 ms longer (H200, driver 580). For programs
/// that are Kiln's own, before their first thread; the driver asks when it is opened.
void leave_drivers_code_cache_off();

}  // namespace kiln
