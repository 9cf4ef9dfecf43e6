#include "python/src/dispatcher.h"

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <unordered_map>

#include "kiln/image.h"
#include "python/src/devices.h"
#include "python/src/image.h"
#include "python/src/sigint.h"

namespace kiln::python {

namespace {

/// A kernel that Python launches: parameters, and code by key.
struct Dispatcher {
  std::string name;
  std::vector<DispatchParam> params;
  Ref compile;  // compile(descriptions, options, target, device) -> Image
  Ref objects;  // of constexprs
  Ref launch;   // what kernel[grid] gave last, for the next one
  std::unordered_map<std::string, LoadedImage> code;
  /// What a name outside of a function meant to the code, of the kernel or of a function that it calls.
  struct Seen {
    Ref names, name, value;  // names: the module's dict, or the cell of a closure
  };
  std::vector<Seen> seen;
  uint32_t generation = 0;  // counts what changed of them: a part of the keys, as code of before may still be launched
  const std::string* last_key = nullptr;  // keys and values of the map stay where they are
  const LoadedImage* last = nullptr;
};

Dispatcher& dispatcher_of(PyObject* self) { return *unboxed<std::unique_ptr<Dispatcher>>(self); }

/// Empty where it means nothing now.
Ref meaning_of(const Dispatcher::Seen& seen) {
  if (PyDict_Check(seen.names.get())) {
    PyObject* found = PyDict_GetItemWithError(seen.names.get(), seen.name.get());
    if (!found) PyErr_Clear();
    return Ref::share(found);
  }
  static PyObject* const contents = PyUnicode_InternFromString("cell_contents");
  PyObject* found = PyObject_GetAttr(seen.names.get(), contents);
  if (!found) return PyErr_Clear(), Ref();
  return Ref::take(found);
}

/// Whether a name means what it did. 2 for the constant 2 is no change.
bool is_unchanged(std::vector<Dispatcher::Seen>& all, size_t at) {
  const Ref now = meaning_of(all[at]);
  if (now.get() == all[at].value.get()) return true;
  if (!now || Py_TYPE(now.get()) != Py_TYPE(all[at].value.get())) return false;
  // __eq__ may be Python code, while which all of this may change.
  const Ref before = all[at].value;
  const int is_equal = PyObject_RichCompareBool(now.get(), before.get(), Py_EQ);
  if (is_equal < 0) PyErr_Clear();
  if (is_equal == 1 && at < all.size() && all[at].value.get() == before.get()) all[at].value = now;
  return is_equal == 1;
}

/// Code whose names mean something else by now is not launched again: a cell of a notebook may have run again.
void notice_changes(Dispatcher& kernel) {
  for (size_t i = 0; i < kernel.seen.size(); ++i) {
    if (is_unchanged(kernel.seen, i)) continue;
    const std::vector<Dispatcher::Seen> gone = std::move(kernel.seen);  // what ends may run Python code
    kernel.seen.clear();
    ++kernel.generation;
    kernel.last = nullptr;
    return;
  }
}

/// saw([(dict or cell, name, value)])
PyObject* saw(PyObject* self, PyObject* list) {
  return guarded([&] {
    Dispatcher& kernel = dispatcher_of(self);
    for (Py_ssize_t i = 0; i < length(list); ++i) {
      PyObject *row = item(list, i), *names = item(row, 0), *name = item(row, 1);
      const bool known = std::ranges::any_of(kernel.seen, [&](const Dispatcher::Seen& s) {
        return s.names.get() == names && PyUnicode_Compare(s.name.get(), name) == 0;
      });
      if (!known) kernel.seen.push_back({Ref::share(names), Ref::share(name), Ref::share(item(row, 2))});
    }
    return none();
  });
}

/// What kernel[grid] launches.
struct Bound {
  Ref kernel, grid;
};
PyTypeObject* bound_type = nullptr;

void set_option(CodeOptions& options, const Dispatcher& kernel, PyObject* keyword, PyObject* value) {
  const std::string_view name = text_of(keyword);
  // What an int has no room for is refused here, the rest with its reason by the compiler.
  auto chosen = [&](int least, int most) {
    if (!PyLong_Check(value))
      raise(PyExc_TypeError, "kernel '%s': the option %U is an int or a bool, got %R", kernel.name.c_str(), keyword,
            value);
    int overflow = 0;
    const long long v = PyLong_AsLongLongAndOverflow(value, &overflow);
    if (overflow || v != static_cast<int>(v))
      raise(PyExc_OverflowError, "kernel '%s': the option %U must be from %d to %d, got %R", kernel.name.c_str(),
            keyword, least, most, value);
    return static_cast<int>(v);
  };
#define KILN_LAUNCH_OPTION(NAME, TYPE, DEFAULT, PYTHON, LEAST, MOST, ...)        \
  if (name == #NAME) {                                                           \
    if (value != Py_None) options.NAME = static_cast<TYPE>(chosen(LEAST, MOST)); \
    return;                                                                      \
  }
#include "kiln/launch_option.def"
  std::string known;
  for (const DispatchParam& p : kernel.params)
    known += (known.empty() ? "" : ", ") + std::string(text_of(p.name.get()));
  raise(PyExc_TypeError, "kernel '%s' has no parameter and no option '%U'; its parameters are %s", kernel.name.c_str(),
        keyword, known.c_str());
}

int64_t grid_size(const Dispatcher& kernel, PyObject* object) {
  if (PyLong_CheckExact(object)) {
    int overflow = 0;
    const long long v = PyLong_AsLongLongAndOverflow(object, &overflow);
    if (overflow)
      raise(PyExc_OverflowError, "kernel '%s': a grid has at most 2147483647 programs along an axis, got %R",
            kernel.name.c_str(), object);
    return v;
  }
  if (!PyIndex_Check(object) || PyBool_Check(object))
    raise(PyExc_TypeError, "kernel '%s': a grid is an int, a tuple of 1 to 3 ints or a function that gives one, got %R",
          kernel.name.c_str(), object);
  return integer_of(PyLong_Check(object) ? object : Ref::take(PyNumber_Index(object)).get());
}

std::array<int64_t, 3> grid_of(const Dispatcher& kernel, PyObject* grid, std::span<PyObject* const> values) {
  Ref computed;
  if (!PyTuple_CheckExact(grid) && PyCallable_Check(grid)) {
    const Ref meta = Ref::take(PyDict_New());
    for (size_t i = 0; i < values.size(); ++i)
      // As Triton's grid functions get them: by name, constexprs and others.
      check(PyDict_SetItem(meta.get(), kernel.params[i].name.get(), values[i]));
    computed = Ref::take(PyObject_CallFunctionObjArgs(grid, meta.get(), nullptr));
    grid = computed.get();
  }
  std::array<int64_t, 3> out = {1, 1, 1};
  if (!PyTuple_Check(grid) && !PyList_Check(grid)) {
    out[0] = grid_size(kernel, grid);
    return out;
  }
  const Py_ssize_t n = length(grid);
  if (n < 1 || n > 3) raise(PyExc_TypeError, "kernel '%s': a grid has 1 to 3 sizes, got %R", kernel.name.c_str(), grid);
  for (Py_ssize_t i = 0; i < n; ++i) out[static_cast<size_t>(i)] = grid_size(kernel, item(grid, i));
  return out;
}

Ref options_dict(const CodeOptions& options) {
  Ref chosen = Ref::take(PyDict_New());
#define KILN_LAUNCH_OPTION(NAME, ...) \
  check(PyDict_SetItemString(chosen.get(), #NAME, number(static_cast<long long>(options.NAME)).get()));
#include "kiln/launch_option.def"
  return chosen;
}

LoadedImage compiled(Dispatcher& kernel, PyObject* compile, std::span<PyObject* const> values,
                     const CodeOptions& options, const KnownDevice& known) {
  const Ref descriptions = Ref::take(PyList_New(0)), chosen = options_dict(options);
  for (size_t i = 0; i < values.size(); ++i) {
    // One by one, since a key does not say which argument its bytes belong to.
    DispatchArguments one(kernel.name, kernel.objects.get());
    check(PyList_Append(descriptions.get(), one.described(kernel.params[i], values[i]).get()));
  }
  const Ref target = text(known.target), device = text(known.device.name());
  const Ref image = Ref::take(
      PyObject_CallFunctionObjArgs(compile, descriptions.get(), chosen.get(), target.get(), device.get(), nullptr));
  const Image code = image_of(image.get());
  Result<LoadedImage> loaded = [&] {
    WithoutGil without;
    return LoadedImage::load(code, known.device);
  }();
  return value_of(std::move(loaded));
}

/// The launch by the kernel's method in Python: _launch_checked(arguments, grid, options, device). Arguments are what
/// told() gives.
void launch_checked(Dispatcher& kernel, PyObject* self, std::span<PyObject* const> values,
                    const std::array<int64_t, 3>& grid, const CodeOptions& options, int device) {
  const Ref arguments = Ref::take(PyList_New(0)), chosen = options_dict(options);
  for (size_t i = 0; i < values.size(); ++i) {
    DispatchArguments one(kernel.name, kernel.objects.get());
    check(PyList_Append(arguments.get(), one.told(kernel.params[i], values[i]).get()));
  }
  Ref::take(PyObject_CallMethod(self, "_launch_checked", "O(LLL)Oi", arguments.get(), static_cast<long long>(grid[0]),
                                static_cast<long long>(grid[1]), static_cast<long long>(grid[2]), chosen.get(),
                                device));
}

PyObject* run(PyObject* object, PyObject* const* args, Py_ssize_t given, PyObject* names) {
  return guarded([&] {
    // The code stays while the lock is given back, and the grid while its function makes other launches.
    const Bound bound = unboxed<Bound>(object);
    Dispatcher& kernel = dispatcher_of(bound.kernel.get());
    const size_t count = kernel.params.size();
    if (static_cast<size_t>(given) > count)
      raise(PyExc_TypeError, "kernel '%s' has %d parameters, got %d arguments", kernel.name.c_str(),
            static_cast<int>(count), static_cast<int>(given));
    InlineVector<PyObject*, 64> values;
    values.extend(count);
    std::fill(std::copy(args, args + given, values.begin()), values.end(), nullptr);
    CodeOptions options;
    // Asserts of the source are off unless debug=True asks, as in Triton.
    options.debug = false;
    bool is_checked = false;
    const Py_ssize_t named = names ? length(names) : 0;
    for (Py_ssize_t k = 0; k < named; ++k) {
      PyObject *keyword = item(names, k), *value = args[given + k];
      size_t at = 0;
      // Names of calls are interned by Python, and those of parameters here: pointers compare in nearly all calls.
      while (at < count && kernel.params[at].name.get() != keyword) ++at;
      if (at == count)  // not interned: **{"a" + "b": …}
        for (at = 0; at < count && PyUnicode_Compare(kernel.params[at].name.get(), keyword) != 0;) ++at;
      if (at == count) {
        if (text_of(keyword) != "check") {
          set_option(options, kernel, keyword, value);
        } else if (const int truth = PyObject_IsTrue(value); truth < 0) {
          throw Raised();
        } else {
          is_checked = truth == 1;
        }
      } else if (values[at]) {
        raise(PyExc_TypeError, "kernel '%s' got two values for argument '%U'", kernel.name.c_str(), keyword);
      } else {
        values[at] = value;
      }
    }
    DispatchArguments arguments(kernel.name, kernel.objects.get());
    for (size_t i = 0; i < count; ++i) {
      const DispatchParam& param = kernel.params[i];
      if (!values[i]) values[i] = param.default_value.get();
      if (!values[i])
        raise(PyExc_TypeError, "kernel '%s': argument '%U' is missing", kernel.name.c_str(), param.name.get());
      arguments.add(param, values[i]);
    }
    const std::array<int64_t, 3> grid = grid_of(kernel, bound.grid.get(), values);
    if (!arguments.has_tensor())
      raise(PyExc_TypeError, "kernel '%s' got no tensor, which would say on what device it runs", kernel.name.c_str());
    notice_changes(kernel);
    arguments.finish(options, kernel.generation);
    const int index = arguments.device();
    KnownDevice& known = device_at(index);
    const LoadedImage* code = kernel.last;
    if (!code || *kernel.last_key != arguments.key()) {
      // Python's own code may run in between, and launch this kernel: the map keeps its elements where they are.
      std::string key(arguments.key());
      auto found = kernel.code.find(key);
      if (found == kernel.code.end())
        found =
            kernel.code.emplace(std::move(key), compiled(kernel, kernel.compile.get(), values, options, known)).first;
      kernel.last_key = &found->first, kernel.last = code = &found->second;
    }
    for (const auto& [param, slot] : arguments.read_only())
      if (code->image().params()[slot].written)
        raise(PyExc_ValueError,
              "kernel '%s': argument '%U' is an array that may not be written to, and the kernel does",
              kernel.name.c_str(), param->name.get());
    if (is_checked) {
      launch_checked(kernel, bound.kernel.get(), {values.begin(), count}, grid, options, index);
      return none();
    }
    const Stream stream = stream_at(known, index);
    launch_without_gil(index, [&] { return code->launch(grid, arguments.slots(), stream); });
    return none();
  });
}

PyMethodDef run_method = {"launch", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(run)),
                          METH_FASTCALL | METH_KEYWORDS, "Launches the kernel with these arguments."};

PyObject* subscript(PyObject* self, PyObject* grid) {
  return guarded([&] {
    Dispatcher& kernel = dispatcher_of(self);
    // A function may hold on to tensors: as a grid it goes with its launch.
    const bool is_kept = PyTuple_CheckExact(grid);
    // When nobody else has it any more, the last one is of use again: a launch then makes no objects.
    if (is_kept && kernel.launch && Py_REFCNT(kernel.launch.get()) == 1) {
      Ref launch = kernel.launch;  // taken first: what was the grid may make launches where it ends
      unboxed<Bound>(PyCFunction_GetSelf(launch.get())).grid = Ref::share(grid);
      return launch;
    }
    const Ref bound = boxed(bound_type, Bound{Ref::share(self), Ref::share(grid)});
    Ref launch = Ref::take(PyCFunction_NewEx(&run_method, bound.get(), nullptr));
    if (is_kept) kernel.launch = launch;
    return launch;
  });
}

/// Dispatcher(name, parameters, compile): a parameter is (name, is constexpr, specialise, annotated dtype or None,
/// defaults), where defaults is () or (value,).
PyObject* make_dispatcher(PyTypeObject* type, PyObject* args, PyObject*) {
  return guarded([&] {
    PyObject *name = nullptr, *params = nullptr, *compile = nullptr;
    if (!PyArg_ParseTuple(args, "UOO", &name, &params, &compile)) throw Raised();
    auto out = std::make_unique<Dispatcher>();
    out->name = text_of(name);
    out->compile = Ref::share(compile);
    out->objects = Ref::take(PyDict_New());
    for (Py_ssize_t i = 0; i < length(params); ++i) {
      PyObject *row = item(params, i), *annotation = item(row, 3), *defaults = item(row, 4);
      DispatchParam param;
      PyObject* interned = Ref::share(item(row, 0)).release();
      PyUnicode_InternInPlace(&interned);
      param.name = Ref::take(interned);
      param.is_constexpr = item(row, 1) == Py_True;
      param.specialize = item(row, 2) == Py_True;
      if (annotation != Py_None) {
        const std::optional<DType> dtype = parse_dtype(text_of(annotation));
        param.is_annotated = dtype.has_value();
        if (dtype) param.annotation = *dtype;
      }
      if (length(defaults)) param.default_value = Ref::share(item(defaults, 0));
      out->params.push_back(std::move(param));
    }
    return boxed(type, std::move(out));
  });
}

// The function that compiles refers to the kernel's Python object, which has the dispatcher: the collector must see it.
int traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  const auto& kernel = unboxed<std::unique_ptr<Dispatcher>>(self);
  if (!kernel) return 0;
  Py_VISIT(kernel->compile.get());
  Py_VISIT(kernel->objects.get());
  Py_VISIT(kernel->launch.get());
  for (const DispatchParam& p : kernel->params) Py_VISIT(p.default_value.get());
  for (const Dispatcher::Seen& s : kernel->seen) {
    Py_VISIT(s.names.get());
    Py_VISIT(s.value.get());
  }
  return 0;
}
int clear(PyObject* self) {
  Dispatcher& kernel = dispatcher_of(self);
  kernel.compile = none();
  kernel.launch = Ref();
  const std::vector<Dispatcher::Seen> gone = std::move(kernel.seen);
  kernel.seen.clear();
  return 0;
}
int traverse_bound(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(unboxed<Bound>(self).kernel.get());
  Py_VISIT(unboxed<Bound>(self).grid.get());
  return 0;
}
template <class T>
void destroy_collected(PyObject* self) {
  PyObject_GC_UnTrack(self);
  destroy<T>(self);
}

PyObject* variants(PyObject* self, void*) {
  return guarded([&] { return number(static_cast<long long>(dispatcher_of(self).code.size())); });
}
PyMethodDef methods[] = {
    {"saw", saw, METH_O, "saw([(names, name, value)]): what names of modules and closures meant to the code"}, {}};
PyGetSetDef getters[] = {{"variants", variants, nullptr, "how many specialisations are loaded", nullptr}, {}};

PyType_Slot slots[] = {{Py_tp_new, reinterpret_cast<void*>(make_dispatcher)},
                       {Py_tp_dealloc, reinterpret_cast<void*>(destroy_collected<std::unique_ptr<Dispatcher>>)},
                       {Py_tp_traverse, reinterpret_cast<void*>(traverse)},
                       {Py_tp_clear, reinterpret_cast<void*>(clear)},
                       {Py_mp_subscript, reinterpret_cast<void*>(subscript)},
                       {Py_tp_getset, getters},
                       {Py_tp_methods, methods},
                       {Py_tp_doc, const_cast<char*>("Dispatcher(name, parameters, compile)")},
                       {}};
PyType_Spec spec = {"kiln._kiln.Dispatcher", sizeof(Boxed<std::unique_ptr<Dispatcher>>), 0,
                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, slots};

PyType_Slot bound_slots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(destroy_collected<Bound>)},
                             {Py_tp_traverse, reinterpret_cast<void*>(traverse_bound)},
                             {Py_tp_doc, const_cast<char*>("A kernel and a grid.")},
                             {}};
PyType_Spec bound_spec = {"kiln._kiln.Bound", sizeof(Boxed<Bound>), 0,
                          Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION, bound_slots};

}  // namespace

void add_dispatcher(PyObject* module) {
  add_type(module, spec, "Dispatcher");
  bound_type = add_type(module, bound_spec, "Bound");
}

}  // namespace kiln::python
