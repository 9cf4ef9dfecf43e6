#include "compiler/target/mma.h"

namespace kiln::target {

namespace {
constexpr MmaRow kRows[] = {
#define KILN_MMA(shape, types, a, b, accumulator, features) \
  {shape "." types, shape, types, DType::a, DType::b, DType::accumulator, features},
#include "compiler/target/mma.def"
};

constexpr GroupMma kGroups[] = {
#define KILN_GROUP_MMA(...) {__VA_ARGS__},
#include "compiler/target/mma.def"
};

enum class Order : uint8_t { kAlongK, kEitherWay };
struct GroupTypes {
  std::string_view name;
  DType a, b, accumulator;
  Order order;
};
constexpr GroupTypes kGroupTypes[] = {
#define KILN_GROUP_MMA_TYPES(name, a, b, accumulator, order) \
  {name, DType::a, DType::b, DType::accumulator, Order::order},
#include "compiler/target/mma.def"
};

bool runs(const Target& target, const GroupMma& group) { return (target.features & group.features) == group.features; }

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

const GroupMma* find_group_mma(const Target& target, DType a, DType b, DType accumulator) {
  for (const GroupTypes& row : kGroupTypes)
    if (row.a == a && row.b == b && row.accumulator == accumulator)
      if (const GroupMma* group = group_mma(row.name); runs(target, *group)) return group;
  return nullptr;
}

bool has_group_mma(const Target& target) {
  for (const GroupMma& group : kGroups)
    if (runs(target, group)) return true;
  return false;
}

bool lies_either_way(const Target& target, DType operand) {
  for (const GroupTypes& row : kGroupTypes)
    if ((row.a == operand || row.b == operand) && row.order == Order::kEitherWay && runs(target, *group_mma(row.name)))
      return true;
  return false;
}

const GroupMma* group_mma(std::string_view name) {
  for (const GroupMma& group : kGroups)
    if (group.name == name) return &group;
  return nullptr;
}

}  // namespace kiln::target
