#include "compiler/ir/type.h"

#include <fmt/format.h>

namespace kiln::ir {

std::string to_string(const Shape& shape) {
  std::string s = "[";
  for (int i = 0; i < shape.rank; ++i) s += fmt::format("{}{}", i ? ", " : "", shape[i]);
  return s + "]";
}

std::string to_string(const Type& type, std::string_view layout_name) {
  std::string s;
  switch (type.form) {
    case Form::kValue:
      break;
    case Form::kDescriptor:
      s = "desc ";
      break;
    case Form::kShared:
      s = "shared ";
      break;
    case Form::kBarrier:
      s = "barrier";
      break;
  }
  if (type.form != Form::kBarrier) {
    if (type.pointer) s += '*';
    s += kiln::name(type.dtype);
    if (type.shape.rank > 0) s += to_string(type.shape);
    s += layout_name;
  }
  if (type.copies != 1) s += " x " + std::to_string(type.copies);
  return s;
}

}  // namespace kiln::ir
