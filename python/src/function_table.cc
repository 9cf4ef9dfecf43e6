#include "kiln/function_table.h"

#include "python/src/checked.h"
#include "python/src/devices.h"
#include "python/src/image.h"
#include "python/src/values.h"

namespace kiln::python {

namespace {

FunctionTable& table(PyObject* self) { return unboxed<FunctionTable>(self); }

PyObject* make(PyTypeObject* type, PyObject*, PyObject*) {
  return guarded([&] { return boxed(type, FunctionTable()); });
}

PyObject* add(PyObject* self, PyObject* args) {
  return guarded([&] {
    PyObject *source = nullptr, *file = nullptr;
    int line = 1;
    if (!PyArg_ParseTuple(args, "UUi", &source, &file, &line)) throw Raised();
    return number(static_cast<int>(value_of(table(self).add(text_of(source), std::string(text_of(file)), line))));
  });
}

/// What a Python function says to the arguments of a call; its exception is the error.
Result<NameValue> ask(PyObject* function, std::span<const NameValue> positional,
                      std::span<const std::pair<std::string, NameValue>> keywords) {
  // The compiler calls from a thread without the GIL.
  WithGil gil;
  try {
    const Ref args = Ref::take(PyList_New(0)), named = Ref::take(PyDict_New());
    for (const NameValue& v : positional) check(PyList_Append(args.get(), from_value(v).get()));
    for (const auto& [name, v] : keywords) check(PyDict_SetItemString(named.get(), name.c_str(), from_value(v).get()));
    return to_value(Ref::take(PyObject_CallFunctionObjArgs(function, args.get(), named.get(), nullptr)).get());
  } catch (const Raised&) {
    PyObject *type = nullptr, *value = nullptr, *trace = nullptr;
    PyErr_Fetch(&type, &value, &trace);
    PyErr_NormalizeException(&type, &value, &trace);
    // With the limited API of 3.10 an exception comes in three references, of which each is owned.
    const Ref owned_type = Ref::share(type);
    Py_XDECREF(type);
    Py_XDECREF(trace);
    std::string said = "it raised an exception";
    if (value) {
      PyObject* shown = PyObject_Str(value);
      if (shown && PyUnicode_AsUTF8AndSize(shown, nullptr)) said = PyUnicode_AsUTF8AndSize(shown, nullptr);
      Py_XDECREF(shown);
      Py_DECREF(value);
    }
    PyErr_Clear();
    return Diagnostic{ErrorKind::kValue, std::move(said), {}, {}};
  }
}

PyObject* add_evaluated(PyObject* self, PyObject* args) {
  return guarded([&] {
    PyObject *name = nullptr, *identity = nullptr, *function = nullptr;
    if (!PyArg_ParseTuple(args, "UUO", &name, &identity, &function)) throw Raised();
    // Dropped with the table, on any thread.
    Py_INCREF(function);
    std::shared_ptr<PyObject> kept(function, [](PyObject* f) {
      // At exit there may be no interpreter to count references; it leaks then.
      if (!Py_IsInitialized()) return;
      const WithGil gil;
      Py_DECREF(f);
    });
    const FunctionId id = table(self).add_evaluated(
        std::string(text_of(name)), text_of(identity),
        [kept](std::span<const NameValue> positional, std::span<const std::pair<std::string, NameValue>> keywords) {
          return ask(kept.get(), positional, keywords);
        });
    return number(static_cast<int>(id));
  });
}

PyObject* names(PyObject* self, PyObject* id) {
  return guarded([&] { return text_list(table(self).names(static_cast<FunctionId>(integer_of(id)))); });
}

template <void (FunctionTable::*Bind)(FunctionId, std::string_view, const NameValue&)>
PyObject* bind(PyObject* self, PyObject* args) {
  return guarded([&] {
    int id = 0;
    PyObject *name = nullptr, *value = nullptr;
    if (!PyArg_ParseTuple(args, "iUO", &id, &name, &value)) throw Raised();
    (table(self).*Bind)(static_cast<FunctionId>(id), text_of(name), to_value(value));
    return none();
  });
}

PyObject* hide(PyObject* self, PyObject* args) {
  return guarded([&] {
    int id = 0, captured = 0;
    PyObject *name = nullptr, *type = nullptr;
    if (!PyArg_ParseTuple(args, "iUUp", &id, &name, &type, &captured)) throw Raised();
    table(self).hide(static_cast<FunctionId>(id), text_of(name), std::string(text_of(type)), captured != 0);
    return none();
  });
}

PyObject* bind_member(PyObject* self, PyObject* args) {
  return guarded([&] {
    PyObject *module = nullptr, *name = nullptr, *value = nullptr;
    if (!PyArg_ParseTuple(args, "UUO", &module, &name, &value)) throw Raised();
    table(self).bind_member(text_of(module), text_of(name), to_value(value));
    return none();
  });
}

/// Raises what Python's filters make an error.
void warn(const CodeWarning& warning) {
  // Where Python keeps which places it has told.
  static PyObject* const registry = PyDict_New();
  if (PyErr_WarnExplicit(PyExc_UserWarning, warning.message.c_str(), warning.place.file.c_str(), warning.place.line,
                         nullptr, registry) < 0)
    throw Raised();
}

/// compile(function, arguments, target, options, device): `options` has names of kiln::CodeOptions, dot_precision,
/// line_info, as_triton and falls_back (nothing is printed of what is refused); `device` may be "".
PyObject* compile(PyObject* self, PyObject* args) {
  return guarded([&] {
    int id = 0;
    PyObject *arguments = nullptr, *target = nullptr, *options = nullptr, *device = nullptr;
    if (!PyArg_ParseTuple(args, "iOUOU", &id, &arguments, &target, &options, &device)) throw Raised();
    std::vector<ImageArgument> list;
    for (Py_ssize_t i = 0; i < length(arguments); ++i) list.push_back(to_argument(item(arguments, i)));
    ImageRequest request;
    request.target = text_of(target);
    if (const std::string_view name = text_of(device); !name.empty())
      request.device = value_of(runtime_of_module().open(name));
    bool falls_back = false;
    PyObject *key = nullptr, *value = nullptr;
    for (Py_ssize_t at = 0; PyDict_Next(options, &at, &key, &value);) {
      const std::string_view name = text_of(key);
      bool known = name == "dot_precision";
      if (known) request.dot_precision = text_of(value);
      if (name == "falls_back") known = true, falls_back = PyObject_IsTrue(value) == 1;
      if (name == "as_triton") known = true, request.as_triton = PyObject_IsTrue(value) == 1;
      if (name == "line_info") known = true, request.line_info = PyObject_IsTrue(value) == 1;
#define KILN_LAUNCH_OPTION(NAME, TYPE, ...)                      \
  if (name == #NAME) {                                           \
    request.options.NAME = static_cast<TYPE>(integer_of(value)); \
    known = true;                                                \
  }
#include "kiln/launch_option.def"
      if (!known) raise(PyExc_KeyError, "Kiln has no launch option %R", key);
    }
    // A copy shares the functions: the Python object may go while other threads run.
    const FunctionTable kept = table(self);
    std::vector<std::string> printed;
    std::vector<CodeWarning> warnings;
    // Kept, since to tell them needs the GIL, which the compiler's thread does not have.
    request.on_static_print = [&](const std::string& line) { printed.push_back(line); };
    request.on_warning = [&](const CodeWarning& warning) { warnings.push_back(warning); };
    auto compiled = [&] {
      WithoutGil without;
      return kept.compile(runtime_of_module(), static_cast<FunctionId>(id), list, request);
    }();
    // As Triton prints it: where Python has redirected its output.
    // Another compiler tells them.
    if (falls_back && !compiled.ok()) printed.clear(), warnings.clear();
    for (const std::string& line : printed) PySys_FormatStdout("%s\n", line.c_str());
    for (const CodeWarning& warning : warnings) warn(warning);
    return image_object(value_of(std::move(compiled)));
  });
}

PyObject* checked(PyObject* self, PyObject* id) {
  return guarded([&] { return checked_kernel(table(self), static_cast<FunctionId>(integer_of(id))); });
}

PyObject* knows(PyObject*, PyObject* path) {
  return guarded([&] { return Ref::share(FunctionTable::knows(text_of(path)) ? Py_True : Py_False); });
}

PyMethodDef methods[] = {
    {"add", add, METH_VARARGS, "add(text, file, line) -> id of a jit function"},
    {"add_evaluated", add_evaluated, METH_VARARGS,
     "add_evaluated(name, identity, f) -> id of a constexpr function that f(args, keywords) computes"},
    {"names", names, METH_O, "names(id) -> the names and chains of attributes that a function takes from outside"},
    {"bind", bind<&FunctionTable::bind>, METH_VARARGS, "bind(id, name, value)"},
    {"hide", hide, METH_VARARGS, "hide(id, name, type, captured): of a variable that kernels do not see, for errors"},
    {"bind_default", bind<&FunctionTable::bind_default>, METH_VARARGS, "bind_default(id, parameter, value)"},
    {"bind_member", bind_member, METH_VARARGS, "bind_member(module, name, value)"},
    {"compile", compile, METH_VARARGS,
     "compile(id, arguments, target, options, device) -> Image; the device's driver assembles where one is named"},
    {"checked", checked, METH_O, "checked(id) -> CheckedKernel; the table must not change any more"},
    {"knows", knows, METH_O | METH_STATIC, "knows(path) -> whether Kiln has that name of triton"},
    {}};

PyType_Slot slots[] = {{Py_tp_new, reinterpret_cast<void*>(make)},
                       {Py_tp_dealloc, reinterpret_cast<void*>(destroy<FunctionTable>)},
                       {Py_tp_methods, methods},
                       {Py_tp_doc, const_cast<char*>("Functions with what their names mean (kiln/function_table.h).")},
                       {}};
PyType_Spec spec = {"kiln._kiln.FunctionTable", sizeof(Boxed<FunctionTable>), 0, Py_TPFLAGS_DEFAULT, slots};

}  // namespace

void add_function_table(PyObject* module) { add_type(module, spec, "FunctionTable"); }

}  // namespace kiln::python
