// How much one call of a builtin makes at most.
#pragma once
#include <cstddef>

namespace kiln::script {

/// Of a text or bytes: known before they are written, which would take the machine's memory first.
constexpr size_t kMostBytes = size_t{1} << 30;

}  // namespace kiln::script
