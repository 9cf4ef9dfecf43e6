// The cpu device: kernels run on a pool of threads; every call returns when its work is done.
#pragma once
#include <memory>

#include "runtime/device/backend.h"

namespace kiln::runtime {

/// kValue when KILN_THREADS is not a number of at least 1.
Result<std::unique_ptr<Backend>> make_host_backend();

}  // namespace kiln::runtime
