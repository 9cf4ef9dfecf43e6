#pragma once
#include "kiln/image.h"
#include "python/src/object.h"

namespace kiln::python {

Ref image_object(Image image);
/// TypeError when it is none.
const Image& image_of(PyObject* object);

}  // namespace kiln::python
