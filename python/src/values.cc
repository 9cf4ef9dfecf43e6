#include "python/src/values.h"

namespace kiln::python {

namespace {

DType dtype_of(std::string_view name) {
  if (std::optional<DType> dtype = parse_dtype(name)) return *dtype;
  raise(PyExc_ValueError, "Kiln has no element type '%s'", std::string(name).c_str());
}

Ref tagged(const char* tag, const Ref& payload) { return Ref::take(PyTuple_Pack(2, text(tag).get(), payload.get())); }

}  // namespace

std::vector<std::string> to_texts(PyObject* sequence) {
  std::vector<std::string> out;
  if (sequence == Py_None) return out;
  for (Py_ssize_t i = 0; i < length(sequence); ++i) out.emplace_back(text_of(item(sequence, i)));
  return out;
}

NameValue to_value(PyObject* object) {
  if (object == Py_None) return std::monostate();
  if (PyBool_Check(object)) return object == Py_True;
  if (PyLong_Check(object)) {
    int overflow = 0;
    // A Python int has any size: what int64 cannot hold may still be a uint64, as hashes and seeds are.
    const long long v = PyLong_AsLongLongAndOverflow(object, &overflow);
    if (!overflow) return static_cast<int64_t>(v);
    const unsigned long long large = PyLong_AsUnsignedLongLong(object);
    if (PyErr_Occurred()) throw Raised();
    return static_cast<uint64_t>(large);
  }
  if (PyFloat_Check(object)) return PyFloat_AsDouble(object);
  if (PyUnicode_Check(object)) return std::string(text_of(object));
  // What Python has no type for comes tagged: ("dtype", "fp16"), ("function", 3), ("tuple", items, fields).
  if (!PyTuple_Check(object) || length(object) < 2) raise(PyExc_TypeError, "no value of a kernel's name: %R", object);
  const std::string_view tag = text_of(item(object, 0));
  PyObject* payload = item(object, 1);
  if (tag == "dtype") return dtype_of(text_of(payload));
  if (tag == "pointer") return PointerType{dtype_of(text_of(payload))};
  if (tag == "module") return ModuleName{std::string(text_of(payload))};
  if (tag == "function") return static_cast<FunctionId>(integer_of(payload));
  if (tag != "tuple") raise(PyExc_TypeError, "no value of a kernel's name: %R", object);
  auto out = std::make_shared<TupleValue>();
  for (Py_ssize_t i = 0; i < length(payload); ++i) out->items.push_back(to_value(item(payload, i)));
  if (length(object) > 2) out->fields = to_texts(item(object, 2));
  return std::shared_ptr<const TupleValue>(std::move(out));
}

Ref from_value(const NameValue& value) {
  struct Visitor {
    Ref operator()(std::monostate) const { return none(); }
    Ref operator()(bool v) const { return Ref::share(v ? Py_True : Py_False); }
    Ref operator()(int64_t v) const { return number(v); }
    Ref operator()(uint64_t v) const { return Ref::take(PyLong_FromUnsignedLongLong(v)); }
    Ref operator()(double v) const { return Ref::take(PyFloat_FromDouble(v)); }
    Ref operator()(const std::string& v) const { return text(v); }
    Ref operator()(DType v) const { return tagged("dtype", text(info(v).triton)); }
    Ref operator()(PointerType v) const { return tagged("pointer", text(info(v.element).triton)); }
    Ref operator()(const ModuleName& v) const { return tagged("module", text(v.path)); }
    Ref operator()(FunctionId v) const { return tagged("function", number(static_cast<int>(v))); }
    Ref operator()(const std::shared_ptr<const TupleValue>& v) const {
      const Ref items = Ref::take(PyList_New(0)), fields = text_list(v->fields);
      for (const NameValue& i : v->items) check(PyList_Append(items.get(), from_value(i).get()));
      return Ref::take(PyTuple_Pack(3, text("tuple").get(), items.get(), v->fields.empty() ? Py_None : fields.get()));
    }
  };
  return std::visit(Visitor{}, value);
}

ImageArgument to_argument(PyObject* object) {
  // "type" is an argument at run time, "value" a constexpr, "tuple" one of both.
  if (!PyTuple_Check(object) || length(object) < 2) raise(PyExc_TypeError, "no argument of a compilation: %R", object);
  const std::string_view tag = text_of(item(object, 0));
  PyObject* payload = item(object, 1);
  ImageArgument out;
  if (tag == "type") {
    out.type = text_of(payload);
  } else if (tag == "value") {
    out.value = to_value(payload);
  } else if (tag == "tuple") {
    out.is_tuple = true;
    for (Py_ssize_t i = 0; i < length(payload); ++i) out.items.push_back(to_argument(item(payload, i)));
    if (length(object) > 2) out.fields = to_texts(item(object, 2));
  } else {
    raise(PyExc_TypeError, "no argument of a compilation: %R", object);
  }
  return out;
}

}  // namespace kiln::python
