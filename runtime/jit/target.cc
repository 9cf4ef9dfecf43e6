#include "runtime/jit/target.h"

#include "compiler/target/target.h"

namespace kiln::runtime {

std::string target_for_capability(int capability) {
  const target::Target* row = target::for_capability(capability);
  return row ? std::string(row->name) : std::string();
}

}  // namespace kiln::runtime
