// The toolkit's assembler as a child process, for machines with ptxas but no nvJitLink.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "kiln/result.h"
#include "support/assembler.h"

namespace kiln::codegen {

struct Ptxas {
  std::string path;
  std::string version;  // "ptxas V13.0.88"
};

/// In bin/ of the toolkit roots, then along PATH.
std::optional<Ptxas> find_ptxas(std::span<const std::string> toolkit_roots);

/// kInternal when ptxas rejects the text, with its log; kIo when it cannot be run.
Result<Assembled> run_ptxas(const Ptxas& tool, std::string_view ptx, std::string_view arch);

}  // namespace kiln::codegen
