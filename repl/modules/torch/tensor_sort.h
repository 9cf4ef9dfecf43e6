// Sorting and what follows from it, and other operations along one dimension: on the host, or by kernels of the
// library.
#pragma once
#include <span>
#include <string_view>
#include <vector>

#include "kiln/device.h"
#include "repl/script/interp/interp.h"

namespace kiln::script {

/// Whether operations that are no expressions run as the kernels of torch._device: on a GPU. On the CPU the host is
/// faster; tests ask for kernels there (`stay_lazy`).
bool runs_kernels(Interp& in, const Device& device);
/// A function of torch._device, torch._sort or torch._select.
Value by_kernels(Interp& in, std::string_view module, std::string_view function, std::span<const Value> arguments);

std::span<const NativeDef> sorting_functions();

}  // namespace kiln::script
