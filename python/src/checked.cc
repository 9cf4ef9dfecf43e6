// Kernels under kiln.jit that are launched with their accesses checked (kiln/check.h).
#include "kiln/check.h"

#include "kiln/interop.h"
#include "python/src/checked.h"
#include "python/src/devices.h"
#include "python/src/sigint.h"
#include "python/src/values.h"

namespace kiln::python {

namespace {

struct Checked {
  FunctionTable table;
  Kernel kernel;
};
PyTypeObject* checked_type = nullptr;

/// Of a tensor whose memory is from `begin` to `end`: all that it may use, as a tensor whose views are checked so.
Arg tensor_argument(const Device& device, DType dtype, uint64_t address, uint64_t begin, uint64_t end) {
  const auto size = static_cast<uint64_t>(size_of(dtype));
  // Of elements that lie as those of the tensor.
  begin = address - (address - begin) / size * size;
  const auto before = static_cast<int64_t>((address - begin) / size),
             after = static_cast<int64_t>((end - address) / size);
  const int64_t all = before + after;
  const ForeignMemory memory = {begin, all * static_cast<int64_t>(size)};
  const Tensor whole = value_of(tensor_from_memory(device, dtype, {&all, 1}, {}, memory));
  const int64_t step = 1;
  return value_of(whole.as_strided({&after, 1}, {&step, 1}, before));
}

Arg to_arg(const FunctionTable& table, const NameValue& value) {
  struct Visitor {
    const FunctionTable& table;
    Arg operator()(std::monostate v) const { return v; }
    Arg operator()(bool v) const { return v; }
    Arg operator()(int64_t v) const { return v; }
    Arg operator()(uint64_t v) const { return v; }
    Arg operator()(double v) const { return v; }
    Arg operator()(const std::string& v) const { return v; }
    Arg operator()(DType v) const { return v; }
    Arg operator()(const ModuleName& v) const { return LanguageFunction{v.path}; }
    Arg operator()(FunctionId v) const { return table.kernel(v); }
    Arg operator()(PointerType) const { raise(PyExc_TypeError, "a pointer type is no argument of a checked launch"); }
    Arg operator()(const std::shared_ptr<const TupleValue>& v) const {
      auto tuple = std::make_shared<ArgTuple>();
      for (const NameValue& item : v->items) tuple->items.push_back(to_arg(table, item));
      tuple->fields = v->fields;
      return std::shared_ptr<const ArgTuple>(std::move(tuple));
    }
  };
  return std::visit(Visitor{table}, value);
}

/// ("tensor", dtype, address, begin, end), ("value", value) or ("tuple", these, names)
Arg argument(const FunctionTable& table, const Device& device, PyObject* row) {
  const std::string_view kind = text_of(item(row, 0));
  if (kind == "value") return to_arg(table, to_value(item(row, 1)));
  if (kind == "tuple") {
    auto tuple = std::make_shared<ArgTuple>();
    for (Py_ssize_t i = 0; i < length(item(row, 1)); ++i)
      tuple->items.push_back(argument(table, device, item(item(row, 1), i)));
    tuple->fields = to_texts(item(row, 2));
    return std::shared_ptr<const ArgTuple>(std::move(tuple));
  }
  PyObject* name = nullptr;
  const char* dtype = nullptr;
  unsigned long long address = 0, begin = 0, end = 0;
  if (!PyArg_ParseTuple(row, "OsKKK", &name, &dtype, &address, &begin, &end)) throw Raised();
  const std::optional<DType> element = parse_dtype(dtype);
  if (!element) raise(PyExc_ValueError, "Kiln has no element type '%s'", dtype);
  return tensor_argument(device, *element, address, begin, end);
}

/// launch(arguments, grid, options, device): see argument()
PyObject* launch(PyObject* self, PyObject* args) {
  return guarded([&] {
    PyObject *given = nullptr, *chosen = nullptr;
    long long x = 0, y = 0, z = 0;
    int index = 0;
    if (!PyArg_ParseTuple(args, "O(LLL)Oi", &given, &x, &y, &z, &chosen, &index)) throw Raised();
    const Checked checked = unboxed<Checked>(self);
    KnownDevice& known = device_at(index);
    std::vector<std::optional<Arg>> list;
    for (Py_ssize_t i = 0; i < length(given); ++i)
      list.emplace_back(argument(checked.table, known.device, item(given, i)));
    LaunchOptions options;
    PyObject *key = nullptr, *value = nullptr;
    for (Py_ssize_t at = 0; PyDict_Next(chosen, &at, &key, &value);) {
#define KILN_LAUNCH_OPTION(NAME, TYPE, ...) \
  if (text_of(key) == #NAME) options.NAME = static_cast<TYPE>(integer_of(value));
#include "kiln/launch_option.def"
    }
    options.device = known.device;
    options.stream = stream_at(known, index);
    launch_without_gil(index, [&] {
      Result<CheckedLaunch> done = kiln::launch_checked(checked.kernel, {x, y, z}, list, options);
      return done.ok() ? Status() : Status(std::move(done.error()));
    });
    return none();
  });
}

PyMethodDef methods[] = {{"launch", launch, METH_VARARGS, "launch(arguments, grid, options, device)"}, {}};
PyType_Slot slots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(destroy<Checked>)},
                       {Py_tp_methods, methods},
                       {Py_tp_doc, const_cast<char*>("A kernel whose launches are checked.")},
                       {}};
PyType_Spec spec = {"kiln._kiln.CheckedKernel", sizeof(Boxed<Checked>), 0,
                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};

}  // namespace

Ref checked_kernel(const FunctionTable& table, FunctionId function) {
  return boxed(checked_type, Checked{table, table.kernel(function)});
}

void add_checked(PyObject* module) { checked_type = add_type(module, spec, "CheckedKernel"); }

}  // namespace kiln::python
