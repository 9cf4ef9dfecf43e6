#include "compiler/ir/type.h"

#include <fmt/format.h>

namespace kiln::ir {

std::string to_string(const Shape& shape) {
  std::string s = "[";
  for (int i = 0; i < shape.rank; ++i) s += fmt::format("{}{}", i ? ", " : "", shape[i]);
  return s + "]";
}

std::string to_string(const Type& type) {
  std::string s = type.pointer ? "*" : "";
  s += kiln::name(type.dtype);
  return type.is_tile() ? s + to_string(type.shape) : s;
}

}  // namespace kiln::ir
