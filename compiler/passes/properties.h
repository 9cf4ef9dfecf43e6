// Named properties of a module (properties.def), as a set.
#pragma once
#include <cstdint>
#include <string>

#include "compiler/ir/ir.h"

namespace kiln::passes {

using Properties = uint32_t;

namespace property {
enum Index : uint8_t {
#define KILN_PROPERTY(e, text, check) k##e##Index,
#include "compiler/passes/properties.def"
};
}  // namespace property

enum Property : Properties {
  kNothing = 0,
#define KILN_PROPERTY(e, text, check) k##e = 1u << property::k##e##Index,
#include "compiler/passes/properties.def"
};

/// "tiles have layouts; shared memory is placed".
std::string to_string(Properties set);
/// Those of `set` that the IR contradicts.
Properties contradicted(const ir::Module& module, Properties set);

}  // namespace kiln::passes
