// kiln._kiln.ExprProgram, and Piece: a function of tensors that runs a program for each of their layouts.
#include "kiln/expr_program.h"

#include <bit>
#include <unordered_map>

#include "python/src/devices.h"
#include "python/src/expr.h"
#include "python/src/foreign.h"
#include "python/src/sigint.h"

namespace kiln::python {

namespace {

PyTypeObject *program_type = nullptr, *piece_type = nullptr;

const ExprProgram& program_of(PyObject* object) {
  if (Py_TYPE(object) != program_type) raise(PyExc_TypeError, "a program was expected, got %R", object);
  return unboxed<ExprProgram>(object);
}

int device_number(const Device& device) {
  const std::string& name = device.name();
  return device.is_cuda() ? std::stoi(name.substr(name.find(':') + 1)) : -1;
}

/// ExprProgram(inputs, outputs, variant)
PyObject* make_program(PyTypeObject* type, PyObject* args, PyObject*) {
  return guarded([&] {
    PyObject *inputs = nullptr, *outputs = nullptr;
    const char* variant = "fused";
    if (!PyArg_ParseTuple(args, "OO|s", &inputs, &outputs, &variant)) throw Raised();
    const std::optional<ExprVariant> which = parse_expr_variant(variant);
    if (!which) raise(PyExc_ValueError, "expressions have no variant '%s'", variant);
    const std::vector<Expr> in = exprs_of(inputs), out = exprs_of(outputs);
    Result<ExprProgram> made = [&] {
      const WithoutGil free;
      return ExprProgram::make(in, out, *which);
    }();
    return boxed(type, value_of(std::move(made)));
  });
}

template <auto Get>
PyObject* program_get(PyObject* self, void*) {
  return guarded([&] { return Get(unboxed<ExprProgram>(self)); });
}

Ref outputs_of(const ExprProgram& p) {
  Ref list = Ref::take(PyList_New(0));
  for (const ExprProgram::Output& o : p.outputs()) {
    const std::vector<int64_t> over(o.may_overwrite.begin(), o.may_overwrite.end());
    const Ref row =
        Ref::take(PyTuple_Pack(6, number(o.buffer).get(), text(info(o.dtype).torch).get(), int_tuple(o.shape).get(),
                               int_tuple(o.strides).get(), number(o.offset).get(), int_tuple(over).get()));
    check(PyList_Append(list.get(), row.get()));
  }
  return list;
}

PyGetSetDef program_getters[] = {
    {"buffers", program_get<[](const ExprProgram& p) { return int_tuple(p.buffer_bytes()); }>, nullptr,
     "bytes of each buffer that the caller allocates", nullptr},
    {"outputs", program_get<outputs_of>, nullptr,
     "(buffer, dtype, shape, strides, offset, inputs that it may overwrite) of each", nullptr},
    {"workspace", program_get<[](const ExprProgram& p) { return number(p.workspace_bytes()); }>, nullptr,
     "bytes of memory between kernels", nullptr},
    {"kernels", program_get<[](const ExprProgram& p) { return number(p.kernels()); }>, nullptr, "launches of a run",
     nullptr},
    {"plan", program_get<[](const ExprProgram& p) { return text(p.plan().text); }>, nullptr, "as %plan shows it",
     nullptr},
    {}};

void launch_program(const ExprProgram& program, int device, std::span<const uint64_t> inputs,
                    std::span<const uint64_t> buffers, uint64_t workspace) {
  const Stream stream = stream_at(device_at(device), device);
  launch_without_gil(device, [&] { return program.launch(inputs, buffers, workspace, stream); });
}

/// launch(inputs, buffers, workspace): tensors of the framework's
PyObject* launch(PyObject* self, PyObject* args) {
  return guarded([&] {
    PyObject *inputs = nullptr, *buffers = nullptr, *workspace = nullptr;
    if (!PyArg_ParseTuple(args, "OOO", &inputs, &buffers, &workspace)) throw Raised();
    const ExprProgram& program = unboxed<ExprProgram>(self);
    std::vector<uint64_t> in, out;
    for (Py_ssize_t i = 0; i < length(inputs); ++i) in.push_back(read_foreign(item(inputs, i)).address);
    for (Py_ssize_t i = 0; i < length(buffers); ++i) out.push_back(read_foreign(item(buffers, i)).address);
    const uint64_t between = workspace == Py_None ? 0 : read_foreign(workspace).address;
    launch_program(program, device_number(program.device()), in, out, between);
    return none();
  });
}
PyMethodDef program_methods[] = {
    {"launch", launch, METH_VARARGS, "launch(inputs, buffers, workspace): on torch's current stream."}, {}};

PyType_Slot program_slots[] = {{Py_tp_new, reinterpret_cast<void*>(make_program)},
                               {Py_tp_dealloc, reinterpret_cast<void*>(destroy<ExprProgram>)},
                               {Py_tp_methods, program_methods},
                               {Py_tp_getset, program_getters},
                               {Py_tp_doc, const_cast<char*>("ExprProgram(inputs, outputs, variant='fused')")},
                               {}};
PyType_Spec program_spec = {"kiln._kiln.ExprProgram", sizeof(Boxed<ExprProgram>), 0, Py_TPFLAGS_DEFAULT, program_slots};

// --- pieces ----------------------------------------------------------------------------------------------------------

/// What to do with arguments of one layout.
struct Recipe {
  Ref instead;  // a callable, where there is no program
  ExprProgram program;
  int device = -1;
  struct Allocation {
    Ref function, arguments;
    size_t argument = 0;  // whose memory it is, where there is no function
  };
  std::vector<Allocation> buffers;
  Allocation workspace;  // empty: none
  struct Returned {
    size_t buffer = 0;
    Ref function;  // of the buffer, which gives the result; empty: the buffer itself
  };
  std::vector<Returned> results;
};

struct Piece {
  Ref build;  // build(arguments) -> a callable, or (program, buffers, workspace, results)
  std::unordered_map<std::string, std::shared_ptr<const Recipe>> recipes;
  std::string last_key;
  std::shared_ptr<const Recipe> last;
};

Piece& piece_of(PyObject* self) { return *unboxed<std::unique_ptr<Piece>>(self); }

Recipe::Allocation allocation_of(PyObject* pair) {
  if (PyLong_Check(pair)) return {{}, {}, static_cast<size_t>(integer_of(pair))};
  return {Ref::share(item(pair, 0)), Ref::share(item(pair, 1))};
}

std::shared_ptr<const Recipe> built(const Piece& piece, PyObject* const* args, Py_ssize_t count) {
  const Ref given = Ref::take(PyTuple_New(count));
  for (Py_ssize_t i = 0; i < count; ++i) check(PyTuple_SetItem(given.get(), i, Ref::share(args[i]).release()));
  const Ref made = Ref::take(PyObject_CallFunctionObjArgs(piece.build.get(), given.get(), nullptr));
  auto recipe = std::make_shared<Recipe>();
  if (!PyTuple_Check(made.get())) {
    recipe->instead = made;
    return recipe;
  }
  PyObject *buffers = item(made.get(), 1), *workspace = item(made.get(), 2), *results = item(made.get(), 3);
  recipe->program = program_of(item(made.get(), 0));
  recipe->device = device_number(recipe->program.device());
  for (Py_ssize_t i = 0; i < length(buffers); ++i) recipe->buffers.push_back(allocation_of(item(buffers, i)));
  if (workspace != Py_None) recipe->workspace = allocation_of(workspace);
  for (Py_ssize_t i = 0; i < length(results); ++i) {
    PyObject *row = item(results, i), *function = item(row, 1);
    recipe->results.push_back(
        {static_cast<size_t>(integer_of(item(row, 0))), function == Py_None ? Ref() : Ref::share(function)});
  }
  return recipe;
}

Ref allocated(const Recipe::Allocation& a) {
  return Ref::take(PyObject_Call(a.function.get(), a.arguments.get(), nullptr));
}

Ref run_recipe(const Recipe& recipe, PyObject* const* args, std::span<const uint64_t> addresses) {
  std::vector<Ref> buffers;
  std::vector<uint64_t> out;
  buffers.reserve(recipe.buffers.size()), out.reserve(recipe.buffers.size());
  for (const Recipe::Allocation& a : recipe.buffers) {
    buffers.push_back(a.function ? allocated(a) : Ref::share(args[a.argument]));
    out.push_back(read_foreign(buffers.back().get()).address);
  }
  Ref workspace;
  if (recipe.workspace.function) workspace = allocated(recipe.workspace);
  launch_program(recipe.program, recipe.device, addresses, out, workspace ? read_foreign(workspace.get()).address : 0);
  Ref results = Ref::take(PyTuple_New(static_cast<Py_ssize_t>(recipe.results.size())));
  for (size_t i = 0; i < recipe.results.size(); ++i) {
    const Recipe::Returned& r = recipe.results[i];
    Ref value = buffers[r.buffer];
    if (r.function) value = Ref::take(PyObject_CallFunctionObjArgs(r.function.get(), value.get(), nullptr));
    check(PyTuple_SetItem(results.get(), static_cast<Py_ssize_t>(i), value.release()));
  }
  return results;
}

/// What a recipe holds for: all of a tensor but where it is, beyond its alignment.
void append_layout(std::string& key, const ForeignTensor& t) {
  const auto rank = static_cast<size_t>(t.rank);
  const char head[4] = {static_cast<char>(t.dtype), static_cast<char>(t.device), static_cast<char>(t.rank),
                        static_cast<char>(t.address ? std::min(std::countr_zero(t.address), 4) : 4)};
  key.append(head, sizeof head);
  key.append(reinterpret_cast<const char*>(t.shape.data()), 8 * rank);
  key.append(reinterpret_cast<const char*>(t.strides.data()), 8 * rank);
}

PyObject* call_piece(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  return guarded([&] {
    Piece& piece = piece_of(self);
    constexpr char kInteger = 127;  // no dtype
    std::string key;
    key.reserve(128);
    std::vector<uint64_t> addresses;
    addresses.reserve(static_cast<size_t>(count));
    for (Py_ssize_t i = 0; i < count; ++i) {
      if (PyLong_Check(args[i])) {
        const long long v = integer_of(args[i]);
        key.push_back(kInteger);
        key.append(reinterpret_cast<const char*>(&v), sizeof v);
        continue;
      }
      const ForeignTensor t = read_foreign(args[i]);
      append_layout(key, t);
      addresses.push_back(t.address);
    }
    std::shared_ptr<const Recipe> recipe;
    if (piece.last && piece.last_key == key) {
      recipe = piece.last;
    } else {
      auto found = piece.recipes.find(key);
      if (found == piece.recipes.end()) {
        std::shared_ptr<const Recipe> made = built(piece, args, count);
        constexpr size_t kMost = 256;  // layouts; a program that makes more of them begins anew
        if (piece.recipes.size() >= kMost) piece.recipes.clear();
        found = piece.recipes.try_emplace(key, std::move(made)).first;
      }
      recipe = found->second;
      piece.last_key = std::move(key), piece.last = recipe;
    }
    if (!recipe->instead) return run_recipe(*recipe, args, addresses);
    const Ref given = Ref::take(PyTuple_New(count));
    for (Py_ssize_t i = 0; i < count; ++i) check(PyTuple_SetItem(given.get(), i, Ref::share(args[i]).release()));
    return Ref::take(PyObject_Call(recipe->instead.get(), given.get(), nullptr));
  });
}

PyMethodDef call_method = {"piece", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(call_piece)),
                           METH_FASTCALL, "Runs the program for tensors of these layouts."};

/// piece(build) -> a function
PyObject* make_piece(PyObject*, PyObject* build) {
  return guarded([&] {
    auto piece = std::make_unique<Piece>();
    piece->build = Ref::share(build);
    const Ref self = boxed(piece_type, std::move(piece));
    return Ref::take(PyCFunction_NewEx(&call_method, self.get(), nullptr));
  });
}
PyMethodDef piece_functions[] = {
    {"piece", make_piece, METH_O,
     "piece(build): a function of tensors and ints. build(arguments) is called for each layout of them, and gives a "
     "callable, or (program, buffers, workspace, results): for each buffer (function, arguments) that allocate it, or "
     "the position of the argument that it is; the same for the workspace, or None; for each result its buffer and a "
     "function of that or None."},
    {}};

PyType_Slot piece_slots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(destroy<std::unique_ptr<Piece>>)}, {}};
PyType_Spec piece_spec = {"kiln._kiln.Piece", sizeof(Boxed<std::unique_ptr<Piece>>), 0,
                          Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, piece_slots};

}  // namespace

void add_expr_program(PyObject* module) {
  program_type = add_type(module, program_spec, "ExprProgram");
  piece_type = add_type(module, piece_spec, "Piece");
  check(PyModule_AddFunctions(module, piece_functions));
}

}  // namespace kiln::python
