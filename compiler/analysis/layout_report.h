// What `--emit layout` shows of a kernel.
#pragma once
#include <string>

#include "compiler/ir/ir.h"

namespace kiln::analysis {

/// For a module of the distributed stage: one line per memory access, conversion, reduction and scan in program order,
/// with its source line, tile, layout and implementation; then a picture of each of those layouts; then the shared
/// memory.
std::string layout_report(const ir::Module& module);

}  // namespace kiln::analysis
