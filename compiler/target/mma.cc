#include "compiler/target/mma.h"

namespace kiln::target {

namespace {
constexpr MmaRow kRows[] = {
#define KILN_MMA(shape, types, a, b, accumulator, features) \
  {shape "." types, shape, types, DType::a, DType::b, DType::accumulator, features},
#include "compiler/target/mma.def"
#undef KILN_MMA
};
}  // namespace

const MmaRow* find_mma(const Target& target, DType a, DType b, DType accumulator) {
  for (const MmaRow& row : kRows)
    if (row.a == a && row.b == b && row.accumulator == accumulator && (target.features & row.features) == row.features)
      return &row;
  return nullptr;
}

const MmaRow* mma_row(std::string_view name) {
  for (const MmaRow& row : kRows)
    if (row.name == name) return &row;
  return nullptr;
}

}  // namespace kiln::target
