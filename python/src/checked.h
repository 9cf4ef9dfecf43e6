#pragma once
#include "kiln/function_table.h"
#include "python/src/object.h"

namespace kiln::python {

/// A function of the table, which must not change any more, as a kernel whose launches are checked.
Ref checked_kernel(const FunctionTable& table, FunctionId function);

}  // namespace kiln::python
