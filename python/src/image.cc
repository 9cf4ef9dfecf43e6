#include "python/src/image.h"

#include "python/src/devices.h"

namespace kiln::python {

namespace {

PyTypeObject* image_type = nullptr;

template <auto Get>
PyObject* get(PyObject* self, void*) {
  return guarded([&] { return Get(unboxed<Image>(self)); });
}

PyObject* plan(PyObject* self, PyObject*) {
  return guarded([&] { return bytes(unboxed<Image>(self).plan()); });
}
PyObject* json(PyObject* self, PyObject*) {
  return guarded([&] { return text(unboxed<Image>(self).json()); });
}
PyObject* from_plan(PyObject*, PyObject* argument) {
  return guarded([&] {
    char* data = nullptr;
    Py_ssize_t size = 0;
    check(PyBytes_AsStringAndSize(argument, &data, &size));
    return image_object(value_of(Image::from_plan({data, static_cast<size_t>(size)})));
  });
}

Ref params(const Image& image) {
  Ref out = Ref::take(PyList_New(0));
  for (const ImageParam& p : image.params())
    check(PyList_Append(out.get(), Ref::take(PyTuple_Pack(2, text(p.name).get(), text(p.type).get())).get()));
  return out;
}

PyMethodDef methods[] = {{"plan", plan, METH_NOARGS, "All but the code, as bytes for from_plan()."},
                         {"json", json, METH_NOARGS, "All but the code, as JSON."},
                         {"from_plan", from_plan, METH_O | METH_STATIC, "An image without code, of what plan() gave."},
                         {}};

#define KILN_GETTER(NAME, EXPRESSION, DOC)                                             \
  {                                                                                    \
    NAME, get<[](const Image& i) -> Ref { return EXPRESSION; }>, nullptr, DOC, nullptr \
  }
PyGetSetDef getters[] = {
    KILN_GETTER("name", text(i.info().name), "of the kernel"),
    KILN_GETTER("symbol", text(i.symbol()), "the name of the code's entry, which is ASCII"),
    KILN_GETTER("target", text(i.info().target), "'sm_90a'"),
    KILN_GETTER("ptx", text(i.info().ptx), "PTX as text"),
    KILN_GETTER("cubin", bytes(i.info().cubin), "machine code; empty when no assembler was found"),
    KILN_GETTER("num_warps", number(i.threads() / 32), "warps of a block, producers included"),
    KILN_GETTER("num_ctas", number(i.info().num_ctas), "blocks of a program"),
    KILN_GETTER("shared", number(i.info().shared_bytes), "bytes of dynamic shared memory"),
    KILN_GETTER("registers", number(i.info().registers), "of a thread; -1: unknown"),
    KILN_GETTER("spill_bytes", number(i.info().spill_bytes), "-1: unknown"),
    KILN_GETTER("tensor_maps", number(i.tensor_maps()), "parameters behind params that the launcher encodes"),
    KILN_GETTER("params", params(i), "(name, type) of each parameter"),
    KILN_GETTER("warnings", text_list(i.info().warnings), "of the assembler"),
    KILN_GETTER("from_cache", Ref::share(i.info().from_cache ? Py_True : Py_False), "read from Kiln's disk cache"),
    {}};

PyType_Slot slots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(destroy<Image>)},
                       {Py_tp_methods, methods},
                       {Py_tp_getset, getters},
                       {Py_tp_doc, const_cast<char*>("Compiled code with what its launch needs (kiln/image.h).")},
                       {}};
PyType_Spec spec = {"kiln._kiln.Image", sizeof(Boxed<Image>), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                    slots};

}  // namespace

Ref image_object(Image image) { return boxed(image_type, std::move(image)); }

const Image& image_of(PyObject* object) {
  // An image has no subclasses, so comparing types is enough.
  if (Py_TYPE(object) != image_type) raise(PyExc_TypeError, "expected an image, got %R", object);
  return unboxed<Image>(object);
}

namespace {

PyObject* fingerprint(PyObject*, PyObject* target) {
  return guarded([&] { return text(image_fingerprint(runtime_of_module(), text_of(target))); });
}
PyMethodDef functions[] = {
    {"fingerprint", fingerprint, METH_O, "fingerprint(target) -> a name of the compiler, for keys of caches"}, {}};

}  // namespace

void add_image(PyObject* module) {
  check(PyModule_AddFunctions(module, functions));
  image_type = add_type(module, spec, "Image");
}

}  // namespace kiln::python
