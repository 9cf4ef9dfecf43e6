// The module kiln._kiln: libkiln for the package's own Python code. It is no interface for users.
#include "python/src/object.h"

namespace kiln::python {

namespace {

PyObject* error_type = nullptr;

/// None, or (what, needed, available).
Ref shortage_of(const Diagnostic& error) {
  if (!error.shortage) return Ref::share(Py_None);
  const char* what = "";
  switch (error.shortage->what) {
    case Shortage::Of::kSharedMemory:
      what = "shared memory";
      break;
    case Shortage::Of::kRegisters:
      what = "registers";
      break;
  }
  return Ref::take(Py_BuildValue("(sLL)", what, static_cast<long long>(error.shortage->needed),
                                 static_cast<long long>(error.shortage->available)));
}

}  // namespace

void raise(const Diagnostic& error) {
  std::string rendered = render(error);
  // Python's tracebacks end the line themselves.
  while (rendered.ends_with('\n')) rendered.pop_back();
  const Ref raised = Ref::take(PyObject_CallFunctionObjArgs(error_type, text(rendered).get(), nullptr));
  auto set = [&](const char* name, const Ref& value) {
    check(PyObject_SetAttrString(raised.get(), name, value.get()));
  };
  set("kind", text(name(error.kind)));
  set("message", text(error.message));
  set("file", text(error.place.file));
  set("line", number(error.place.line));
  set("column", number(error.place.column));
  set("shortage", shortage_of(error));
  PyErr_SetObject(error_type, raised.get());
  throw Raised();
}

void add_errors(PyObject* module) {
  // Never given back: exceptions of this type may be in flight until Python ends.
  error_type = Ref::take(PyErr_NewExceptionWithDoc(
                             "kiln.Error",
                             "An error of Kiln: str() is its text with the place in the source.\n\n"
                             "Attributes: kind ('syntax', 'type', 'unsupported', …), message, file, line and column "
                             "(counted from 1; line 0: no place), shortage: None, or of a kernel that fits in no "
                             "block ('shared memory' or 'registers', needed, available).",
                             nullptr, nullptr))
                   .release();
  check(PyModule_AddObjectRef(module, "Error", error_type));
}

PyTypeObject* add_type(PyObject* module, PyType_Spec& spec, const char* name) {
  Ref type = Ref::take(PyType_FromSpec(&spec));
  check(PyModule_AddObjectRef(module, name, type.get()));
  return reinterpret_cast<PyTypeObject*>(type.release());
}

}  // namespace kiln::python

PyMODINIT_FUNC PyInit__kiln() {  // NOLINT(bugprone-reserved-identifier): the name that Python looks for
  using namespace kiln::python;
  // Without a state per interpreter (-1): types and caches are global, so a process has one such module.
  static PyModuleDef definition = {PyModuleDef_HEAD_INIT,
                                   "kiln._kiln",
                                   "libkiln for the package kiln.",
                                   -1,
                                   nullptr,
                                   nullptr,
                                   nullptr,
                                   nullptr,
                                   nullptr};
  return guarded([] {
    Ref module = Ref::take(PyModule_Create(&definition));
    add_errors(module.get());
    add_image(module.get());
    add_checked(module.get());
    add_dispatcher(module.get());
    add_expr(module.get());
    add_expr_program(module.get());
    add_function_table(module.get());
    add_launcher(module.get());
    add_session(module.get());
    check(PyModule_AddStringConstant(module.get(), "version", KILN_VERSION));
    return module;
  });
}
