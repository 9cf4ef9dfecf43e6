// What names mean and constexprs are (kiln::NameValue), as Python objects: None, bool, int, float and str stand for
// themselves; ("dtype", "fp16"), ("pointer", "fp16"), ("module", path), ("function", id) and ("tuple", items, fields)
// for the rest, where fields is None or a sequence of names.
#pragma once
#include <vector>

#include "kiln/function_table.h"
#include "python/src/object.h"

namespace kiln::python {

NameValue to_value(PyObject* object);
Ref from_value(const NameValue& value);
/// As ("type", "*fp16:16"), ("value", a value as above), or ("tuple", arguments, fields).
ImageArgument to_argument(PyObject* object);
std::vector<std::string> to_texts(PyObject* sequence_or_none);

}  // namespace kiln::python
