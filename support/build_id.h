// Identity of the running program's code: changes with every build that changes a byte of it.
#pragma once
#include <string>

namespace kiln {

/// The linker's build id of the program or library that holds this function, in hex; "" when it was linked without one.
const std::string& build_id();

}  // namespace kiln
