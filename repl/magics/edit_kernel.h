// %edit of a kernel that the script defined.
#pragma once
#include <string>

#include "repl/magics/magics.h"

namespace kiln::repl {

/// Opens the source in $EDITOR (or takes `file` as it is), defines the kernel again from it, and keeps the one before
/// as NAME_before. If it was launched, that launch is checked and compared with the one before. An error of the new
/// source leaves the kernel as it was. `options` are those of %compare ("out=y budget=2s").
Status edit_kernel(MagicContext& context, const std::string& name, std::string file, const std::string& options);

}  // namespace kiln::repl
