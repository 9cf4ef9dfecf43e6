#include "support/assembler.h"

#include "support/diag.h"

namespace kiln {

Diagnostic rejected_ptx(std::string_view assembler, std::string_view log) {
  Diagnostic e = error(ErrorKind::kInternal, "{} rejects the generated PTX: {}", assembler, log);
  if (log.find("Insufficient registers") != std::string_view::npos) {  // C7602
    e.kind = ErrorKind::kMemory;
    e.shortage = {Shortage::Of::kRegisters};
  }
  return e;
}

}  // namespace kiln
