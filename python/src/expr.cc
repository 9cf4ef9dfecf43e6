#include "python/src/expr.h"

#include "kiln/interop.h"
#include "python/src/devices.h"
#include "python/src/foreign.h"

namespace kiln::python {

namespace {

PyTypeObject* expr_type = nullptr;

Ref wrapped(Expr expr) { return boxed(expr_type, std::move(expr)); }

DType named_dtype(std::string_view name) {
  if (std::optional<DType> dtype = parse_dtype(name)) return *dtype;
  raise(PyExc_ValueError, "Kiln has no element type '%s'", std::string(name).c_str());
}

/// Keeps a Python object until the last view of its memory is gone, on whatever thread that is.
std::shared_ptr<void> keeper_of(PyObject* object) {
  Py_INCREF(object);
  return std::shared_ptr<void>(object, [](void* kept) {
    // At exit, memory may be let go when there is no interpreter to count references; it leaks then.
    if (!Py_IsInitialized()) return;
    const WithGil held;
    Py_DECREF(static_cast<PyObject*>(kept));
  });
}

/// leaf(tensor)
PyObject* leaf(PyObject*, PyObject* object) {
  return guarded([&] {
    const ForeignTensor t = read_foreign(object);
    // Views have no negative strides in Kiln, as in torch.
    for (int64_t step : t.steps())
      if (step < 0) raise(PyExc_ValueError, "an array with negative strides; copy it first");
    const ForeignMemory memory = {t.address, t.bytes(), keeper_of(object)};
    return wrapped(value_of(tensor_from_memory(device_at(t.device).device, t.dtype, t.sizes(), t.steps(), memory)));
  });
}

/// placeholder(dtype, shape, device): a leaf to infer dtypes and shapes from, which cannot be run
PyObject* placeholder(PyObject*, PyObject* args) {
  return guarded([&] {
    const char* dtype = nullptr;
    PyObject* shape = nullptr;
    int device = -1;
    if (!PyArg_ParseTuple(args, "sOi", &dtype, &shape, &device)) throw Raised();
    const DType element = named_dtype(dtype);
    const std::vector<int64_t> sizes = ints_of(shape);
    int64_t bytes = size_of(element);
    for (int64_t n : sizes)
      if (n < 0 || __builtin_mul_overflow(bytes, n, &bytes))
        raise(PyExc_ValueError, "a tensor of shape %R has no number of bytes", shape);
    // An address that no device gives out; nothing reads it.
    constexpr uint64_t kNobodysAddress = uint64_t{1} << 40;
    return wrapped(
        value_of(tensor_from_memory(device_at(device).device, element, sizes, {}, {kNobodysAddress, bytes})));
  });
}

PyObject* number_expr(PyObject*, PyObject* value) {
  return guarded([&] {
    if (PyBool_Check(value)) return wrapped(Expr::scalar(value == Py_True));
    if (PyLong_Check(value)) return wrapped(Expr::scalar(static_cast<int64_t>(integer_of(value))));
    const double v = PyFloat_AsDouble(value);
    if (v == -1 && PyErr_Occurred()) throw Raised();
    return wrapped(Expr::scalar(v));
  });
}

/// iota(n, dtype, device)
PyObject* iota(PyObject*, PyObject* args) {
  return guarded([&] {
    long long n = 0;
    const char* dtype = nullptr;
    int device = -1;
    if (!PyArg_ParseTuple(args, "Lsi", &n, &dtype, &device)) throw Raised();
    const DType element = named_dtype(dtype);
    if (n < 0 || !is_int(element) || element == DType::kI1)
      raise(PyExc_ValueError, "iota of %lld %s", n, std::string(info(element).torch).c_str());
    return wrapped(Expr::iota(device_at(device).device, n, element));
  });
}

void set_attribute(ExprAttributes& out, std::string_view name, PyObject* value) {
  auto real = [&] {
    const double v = PyFloat_AsDouble(value);
    if (v == -1 && PyErr_Occurred()) throw Raised();
    return v;
  };
  if (name == "shape")
    out.shape = ints_of(value);
  else if (name == "starts")
    out.starts = ints_of(value);
  else if (name == "steps")
    out.steps = ints_of(value);
  else if (name == "axes")
    for (int64_t d : ints_of(value)) out.axes.push_back(static_cast<int>(d));
  else if (name == "dtype")
    out.dtype = named_dtype(text_of(value));
  else if (name == "any_outside")
    out.any_outside = PyObject_IsTrue(value) == 1;
  else if (name == "adds")
    out.adds = PyObject_IsTrue(value) == 1;
  else if (name == "keepdim")
    out.keepdim = PyObject_IsTrue(value) == 1;
  else if (name == "tf32")
    out.tf32 = PyObject_IsTrue(value) == 1;
  else if (name == "correction")
    out.correction = real();
  else if (name == "eps")
    out.eps = real();
  else
    raise(PyExc_TypeError, "an expression has no attribute '%s'", std::string(name).c_str());
}

/// apply(op, operands, attributes)
PyObject* apply_op(PyObject*, PyObject* args) {
  return guarded([&] {
    const char* op_name = nullptr;
    PyObject *operands = nullptr, *given = nullptr;
    if (!PyArg_ParseTuple(args, "sOO!", &op_name, &operands, &PyDict_Type, &given)) throw Raised();
    const std::optional<ExprOp> op = parse_expr_op(op_name);
    // Leaves have their own functions, and a jit function comes with its source.
    if (!op || *op == ExprOp::kInput || *op == ExprOp::kScalar || *op == ExprOp::kCall)
      raise(PyExc_ValueError, "expressions have no operation '%s'", op_name);
    ExprAttributes attributes;
    PyObject *key = nullptr, *value = nullptr;
    for (Py_ssize_t at = 0; PyDict_Next(given, &at, &key, &value);) set_attribute(attributes, text_of(key), value);
    return wrapped(value_of(apply(*op, exprs_of(operands), std::move(attributes))));
  });
}

ExprVariant variant_of(PyObject* name) {
  if (std::optional<ExprVariant> variant = parse_expr_variant(text_of(name))) return *variant;
  raise(PyExc_ValueError, "expressions have no variant %R", name);
}

/// plan(variant) -> (text, script, svg, kernels), a kernel being (name, source)
PyObject* plan_of(PyObject* self, PyObject* variant) {
  return guarded([&] {
    const Expr& expr = expr_of(self);
    const ExprVariant which = variant_of(variant);
    Result<ExprPlan> made = [&] {
      // Planning takes milliseconds and no Python object: other threads may run.
      const WithoutGil free;
      return plan(expr, which);
    }();
    const ExprPlan found = value_of(std::move(made));
    const Ref kernels = Ref::take(PyList_New(0));
    for (const ExprGroup& g : found.groups) {
      const Ref kernel = Ref::take(PyTuple_Pack(2, text(g.name).get(), text(g.source).get()));
      check(PyList_Append(kernels.get(), kernel.get()));
    }
    return Ref::take(
        PyTuple_Pack(4, text(found.text).get(), text(found.script).get(), text(found.svg).get(), kernels.get()));
  });
}

template <auto Get>
PyObject* expr_get(PyObject* self, void*) {
  return guarded([&] { return Get(unboxed<Expr>(self)); });
}

Ref device_name(const Expr& e) { return e.is_scalar() ? none() : text(e.device().name()); }

PyGetSetDef expr_getters[] = {
    {"dtype", expr_get<[](const Expr& e) { return text(info(e.dtype()).torch); }>, nullptr, "as torch names it",
     nullptr},
    {"shape", expr_get<[](const Expr& e) { return int_tuple(e.shape()); }>, nullptr, "a tuple", nullptr},
    {"device", expr_get<device_name>, nullptr, "'cpu', 'cuda:0'; None of a number", nullptr},
    {"is_view", expr_get<[](const Expr& e) { return Ref::share(e.is_view() ? Py_True : Py_False); }>, nullptr,
     "whether its last operation moves no data", nullptr},
    {"operations", expr_get<[](const Expr& e) { return number(e.operations()); }>, nullptr, "how many it has", nullptr},
    {}};

PyMethodDef expr_methods[] = {
    {"leaf", leaf, METH_O | METH_STATIC, "leaf(tensor): its memory, which the expression keeps alive."},
    {"placeholder", placeholder, METH_VARARGS | METH_STATIC, "placeholder(dtype, shape, device): of no memory."},
    {"number", number_expr, METH_O | METH_STATIC, "number(value): it takes the dtype of the tensors that it meets."},
    {"iota", iota, METH_VARARGS | METH_STATIC, "iota(n, dtype, device): 0, 1, … n - 1."},
    {"apply", apply_op, METH_VARARGS | METH_STATIC, "apply(op, operands, attributes): one operation."},
    {"plan", plan_of, METH_O, "plan(variant): (text, script, svg, [(name, source) of kernels])."},
    {}};

PyType_Slot expr_slots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(destroy<Expr>)},
                            {Py_tp_methods, expr_methods},
                            {Py_tp_getset, expr_getters},
                            {Py_tp_doc, const_cast<char*>("A tensor expression (kiln/expr.h).")},
                            {}};
PyType_Spec expr_spec = {"kiln._kiln.Expr", sizeof(Boxed<Expr>), 0,
                         Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, expr_slots};

std::string_view expr_kind_name(ExprKind kind) {
  switch (kind) {
    case ExprKind::kInput:
    case ExprKind::kScalar:
      return "leaf";
    case ExprKind::kView:
      return "view";
    case ExprKind::kPlace:
      return "place";
    case ExprKind::kPointwise:
      return "pointwise";
    case ExprKind::kReduce:
      return "reduce";
    case ExprKind::kRow:
      return "row";
    case ExprKind::kMatmul:
      return "matmul";
    case ExprKind::kCall:
      return "call";
  }
  return "";
}

/// expr_ops() -> [(name, arity, kind)]
PyObject* expr_ops(PyObject*, PyObject*) {
  return guarded([] {
    Ref rows = Ref::take(PyList_New(0));
    for (const ExprOpInfo& op : kExprOps) {
      const Ref row =
          Ref::take(PyTuple_Pack(3, text(op.name).get(), number(op.arity).get(), text(expr_kind_name(op.kind)).get()));
      check(PyList_Append(rows.get(), row.get()));
    }
    return rows;
  });
}

/// The addresses of a tensor's bytes, which begin below its first element where it goes backwards.
std::pair<uint64_t, uint64_t> extent_of(const ForeignTensor& t) {
  int64_t first = 0, last = 0;
  for (size_t d = 0; d < static_cast<size_t>(t.rank); ++d) {
    if (t.shape[d] == 0) return {t.address, t.address};
    (t.strides[d] < 0 ? first : last) += (t.shape[d] - 1) * t.strides[d];
  }
  const int64_t size = size_of(t.dtype);
  return {t.address + static_cast<uint64_t>(first * size), t.address + static_cast<uint64_t>((last + 1) * size)};
}
/// is_apart(out, tensors): out is row-major, aligned as kernels want what they write, and shares no memory with tensors
PyObject* is_apart(PyObject*, PyObject* args) {
  return guarded([&] {
    PyObject *given = nullptr, *tensors = nullptr;
    if (!PyArg_ParseTuple(args, "OO", &given, &tensors)) throw Raised();
    const ForeignTensor out = read_foreign(given);
    // As wide as the widest access, so that kernels are compiled for aligned addresses.
    bool apart = out.address % 16 == 0;
    int64_t step = 1;
    for (int d = out.rank; d-- > 0; step *= out.shape[static_cast<size_t>(d)])
      apart = apart && (out.shape[static_cast<size_t>(d)] == 1 || out.strides[static_cast<size_t>(d)] == step);
    const auto [first, last] = extent_of(out);
    for (Py_ssize_t i = 0; apart && i < length(tensors); ++i) {
      const ForeignTensor read = read_foreign(item(tensors, i));
      const auto [begin, end] = extent_of(read);
      apart = read.device != out.device || end <= first || last <= begin;
    }
    return Ref::share(apart ? Py_True : Py_False);
  });
}
/// extent(tensor) -> (begin, end), addresses
PyObject* extent(PyObject*, PyObject* object) {
  return guarded([&] {
    const auto [begin, end] = extent_of(read_foreign(object));
    return Ref::take(
        Py_BuildValue("(KK)", static_cast<unsigned long long>(begin), static_cast<unsigned long long>(end)));
  });
}
PyMethodDef expr_functions[] = {{"extent", extent, METH_O, "extent(tensor) -> (begin, end) of its elements"},
                                {"is_apart", is_apart, METH_VARARGS, "is_apart(out, tensors)"},
                                {"expr_ops", expr_ops, METH_NOARGS, "The table of operations: (name, arity, kind)."},
                                {}};

}  // namespace

const Expr& expr_of(PyObject* object) {
  if (Py_TYPE(object) != expr_type) raise(PyExc_TypeError, "an expression was expected, got %R", object);
  return unboxed<Expr>(object);
}
std::vector<Expr> exprs_of(PyObject* sequence) {
  std::vector<Expr> out;
  for (Py_ssize_t i = 0; i < length(sequence); ++i) out.push_back(expr_of(item(sequence, i)));
  return out;
}
Ref int_tuple(std::span<const int64_t> values) {
  Ref tuple = Ref::take(PyTuple_New(static_cast<Py_ssize_t>(values.size())));
  for (size_t i = 0; i < values.size(); ++i)
    check(PyTuple_SetItem(tuple.get(), static_cast<Py_ssize_t>(i), number(values[i]).release()));
  return tuple;
}
std::vector<int64_t> ints_of(PyObject* sequence) {
  std::vector<int64_t> out;
  for (Py_ssize_t i = 0; i < length(sequence); ++i) out.push_back(integer_of(item(sequence, i)));
  return out;
}

void add_expr(PyObject* module) {
  expr_type = add_type(module, expr_spec, "Expr");
  check(PyModule_AddFunctions(module, expr_functions));
}

}  // namespace kiln::python
