#include <bit>
#include <cmath>
#include <optional>
#include <utility>

#include "kiln/tensor.h"
#include "python/src/dispatcher.h"
#include "python/src/foreign.h"
#include "python/src/torch_abi.h"
#include "runtime/tensor/dlpack_abi.h"

namespace kiln::python {

namespace {

double real_of(PyObject* object) {
  const double v = PyFloat_AsDouble(object);
  if (v == -1 && PyErr_Occurred()) throw Raised();
  return v;
}

std::string device_text(int device) { return device < 0 ? "the CPU" : "cuda:" + std::to_string(device); }

/// __index__ and not __int__: a float must not lose its fraction.
Ref whole_of(PyObject* object) {
  if (receiver_of(object) == Receiver::kBool) return Ref::take(PyLong_FromLong(PyObject_IsTrue(object)));
  return Ref::take(PyNumber_Index(object));
}

std::string type_of(PyObject* object) {
  const Ref name = Ref::take(PyObject_GetAttrString(reinterpret_cast<PyObject*>(Py_TYPE(object)), "__qualname__"));
  return std::string(text_of(name.get()));
}

/// The names of a NamedTuple, or None of another tuple.
Ref fields_of(PyObject* tuple) {
  PyObject* found = PyObject_GetAttrString(tuple, "_fields");
  if (found) return Ref::take(found);
  PyErr_Clear();
  return none();
}

}  // namespace

void DispatchArguments::refuse(const DispatchParam& param, PyObject* type, const std::string& problem) const {
  raise(type, "kernel '%s': argument '%U' %s", std::string(kernel_).c_str(), param.name.get(), problem.c_str());
}

void DispatchArguments::add(const DispatchParam& param, PyObject* object) {
  value_ = nullptr;
  if (param.is_constexpr) return constant(param, object);
  if (object == Py_None) return constant(param, object);
  if (param.is_annotated) return annotated(param, object);
  // Exactly these types, which are comparisons of pointers: subclasses are found by what they have, like foreign types.
  if (PyBool_Check(object)) return scalar(DType::kI1, object == Py_True, false);
  if (PyLong_CheckExact(object)) return integer(param, object);
  if (PyFloat_CheckExact(object))
    return scalar(DType::kF32, std::bit_cast<uint32_t>(static_cast<float>(PyFloat_AsDouble(object))), false);
  if (PyTuple_Check(object)) return items(param, object);
  foreign(param, object);
}

void DispatchArguments::identity(const DispatchParam& param, PyObject* object) {
  // Equal objects of one type are one key: the dictionary keeps the first of them alive, and its address stands in the
  // key. Of other types they may mean something else, as numpy's 2 and 2.0.
  const Ref typed = Ref::take(PyTuple_Pack(2, Py_TYPE(object), object));
  PyObject* known = PyDict_GetItemWithError(objects_, typed.get());
  if (!known) {
    if (PyErr_Occurred()) {
      PyErr_Clear();
      refuse(param, PyExc_TypeError,
             (in_tuple_ ? "holds an unhashable " : "is a tl.constexpr and got an unhashable ") + type_of(object));
    }
    check(PyDict_SetItem(objects_, typed.get(), object));
    known = object;
  }
  raw(known);
}

void DispatchArguments::named_fields(const DispatchParam& param, PyObject* tuple) {
  // A NamedTuple's type stands for its names.
  if (PyTuple_CheckExact(tuple)) return tag(DispatchTag::kNone);
  tag(DispatchTag::kObject), identity(param, reinterpret_cast<PyObject*>(Py_TYPE(tuple)));
}

void DispatchArguments::items(const DispatchParam& param, PyObject* tuple) {
  const Deeper deeper(" in a tuple of arguments");
  const Py_ssize_t n = length(tuple);
  tag(DispatchTag::kItems), raw(n), named_fields(param, tuple);
  const bool outer = std::exchange(in_tuple_, true);
  for (Py_ssize_t i = 0; i < n; ++i) add(param, item(tuple, i));
  in_tuple_ = outer;
}

void DispatchArguments::constant(const DispatchParam& param, PyObject* object) {
  value_ = object;
  if (object == Py_None) return tag(DispatchTag::kNone);
  if (PyBool_Check(object)) return tag(object == Py_True ? DispatchTag::kTrue : DispatchTag::kFalse);
  // Exactly int: subclasses (IntEnum, numpy's) may compare and print in their own way, and go by identity below.
  if (PyLong_CheckExact(object)) {
    int overflow = 0;
    const long long v = PyLong_AsLongLongAndOverflow(object, &overflow);
    if (!overflow) return tag(DispatchTag::kInt), raw(v);
  } else if (PyFloat_CheckExact(object)) {
    return tag(DispatchTag::kDouble), raw(PyFloat_AsDouble(object));
  } else if (PyUnicode_CheckExact(object)) {
    const std::string_view text = text_of(object);
    tag(DispatchTag::kText), raw(text.size()), raw(text.data(), text.size());
    return;
  } else if (PyTuple_Check(object)) {
    const Deeper deeper(" in a tuple of constants");
    const Py_ssize_t n = length(object);
    tag(DispatchTag::kTuple), raw(n), named_fields(param, object);
    for (Py_ssize_t i = 0; i < n; ++i) constant(param, item(object, i));
    value_ = object;
    return;
  }
  tag(DispatchTag::kObject), identity(param, object);
  // 0.0 and -0.0 are equal.
  if (receiver_of(object) == Receiver::kReal || PyFloat_Check(object)) raw(std::signbit(real_of(object)));
}

void DispatchArguments::scalar(DType dtype, uint64_t slot, bool divisible) {
  specialized(DispatchTag::kScalar, dtype, divisible);
  slots_.push_back(slot);
  dtype_ = dtype, is_pointer_ = false, divisible_ = divisible;
}

void DispatchArguments::integer(const DispatchParam& param, PyObject* object) {
  int overflow = 0;
  const long long v = PyLong_AsLongLongAndOverflow(object, &overflow);
  if (v == -1 && !overflow && PyErr_Occurred()) throw Raised();
  if (overflow) {
    const unsigned long long large = overflow > 0 ? PyLong_AsUnsignedLongLong(object) : 0;
    if (overflow < 0 || PyErr_Occurred()) {
      PyErr_Clear();
      refuse(param, PyExc_OverflowError, "does not fit into 64 bits");
    }
    return scalar(DType::kU64, large, param.specialize && large % 16 == 0);
  }
  if (v == 1 && param.specialize) {
    // 1 is a constant to Triton, so that strides of 1 leave addresses.
    static PyObject* const one = PyLong_FromLong(1);
    return constant(param, one);
  }
  scalar(v == static_cast<int32_t>(v) ? DType::kI32 : DType::kI64, static_cast<uint64_t>(v),
         param.specialize && v % 16 == 0);
}

void DispatchArguments::annotated(const DispatchParam& param, PyObject* object) {
  const DType dtype = param.annotation;
  const Receiver receiver = receiver_of(object);
  const bool is_whole = PyLong_Check(object) || receiver == Receiver::kInteger || receiver == Receiver::kBool;
  const bool is_real = PyFloat_Check(object) || receiver == Receiver::kReal, is_number = is_whole || is_real;
  if (!is_number || (is_real && is_int(dtype)))
    refuse(param, PyExc_TypeError, "is annotated " + std::string(name(dtype)) + " and got a " + type_of(object));
  if (is_float(dtype)) {
    uint64_t slot = 0;
    from_double(dtype, real_of(object), &slot);
    return scalar(dtype, slot, false);
  }
  const Ref whole = whole_of(object);
  if (dtype == DType::kI1) return scalar(dtype, PyObject_IsTrue(whole.get()) == 1, false);
  int overflow = 0;
  const long long v = PyLong_AsLongLongAndOverflow(whole.get(), &overflow);
  uint64_t low = static_cast<uint64_t>(v);
  bool fits = !overflow;
  if (overflow > 0 && dtype == DType::kU64) {
    low = PyLong_AsUnsignedLongLong(whole.get());
    fits = !PyErr_Occurred();
    PyErr_Clear();
  } else if (fits && !is_signed(dtype)) {
    fits = v >= 0 && (bits(dtype) == 64 || low < (uint64_t{1} << bits(dtype)));
  } else if (fits && bits(dtype) < 64) {
    fits = v >= -(int64_t{1} << (bits(dtype) - 1)) && v < (int64_t{1} << (bits(dtype) - 1));
  }
  if (!fits) refuse(param, PyExc_OverflowError, "does not fit its annotation " + std::string(name(dtype)));
  scalar(dtype, low, param.specialize && low % 16 == 0);
}

void DispatchArguments::refuse_device(const DispatchParam& param, int device) const {
  refuse(param, PyExc_ValueError,
         "is on " + device_text(device) + ", and '" + std::string(text_of(first_->name.get())) + "' is on " +
             device_text(device_));
}

void DispatchArguments::pointer(const DispatchParam& param, DType dtype, uint64_t address, int device, bool read_only) {
  if (!first_)
    first_ = &param, device_ = device;
  else if (device != device_)
    refuse_device(param, device);
  // Triton specialises pointers and integers by multiples of 16.
  const bool divisible = param.specialize && address % 16 == 0;
  specialized(DispatchTag::kPointer, dtype, divisible);
  if (read_only) read_only_.push_back({&param, slots_.size()});
  slots_.push_back(address);
  dtype_ = dtype, is_pointer_ = true, divisible_ = divisible;
}

void DispatchArguments::foreign(const DispatchParam& param, PyObject* object) {
  switch (receiver_of(object)) {
    case Receiver::kExchange:
      if (const std::optional<TorchTensor> t = read_torch(object))
        return pointer(param, t->dtype, t->address, t->device);
      [[fallthrough]];  // which says what is wrong with it
    case Receiver::kTorch:
      return torch_tensor(param, object);
    case Receiver::kNumpy:
      if (numpy_array(param, object)) return;
      return array(param, object, foreign_words().array, false);
    case Receiver::kMasked:
      refuse(param, PyExc_TypeError, std::string("is ") + kMaskedArray);
    case Receiver::kCudaArray:
      return array(param, object, foreign_words().cuda_array, true);
    case Receiver::kDlpack:
      return dlpack(param, object);
    case Receiver::kBool:
    case Receiver::kInteger:
      return integer(param, whole_of(object).get());
    case Receiver::kReal:
      return scalar(DType::kF32, std::bit_cast<uint32_t>(static_cast<float>(real_of(object))), false);
    case Receiver::kOther:
      // What a parameter would have to be annotated for: a tuple's items say by what they are that they are constants.
      if (in_tuple_ && !PyList_Check(object) && !PyDict_Check(object)) return constant(param, object);
      break;
  }
  refuse(param, PyExc_TypeError,
         "got a " + type_of(object) +
             "; a kernel takes tensors, arrays (DLPack, __cuda_array_interface__), numbers, bools, None and tuples "
             "of these, and others as tl.constexpr");
}

void DispatchArguments::torch_tensor(const DispatchParam& param, PyObject* object) {
  const ForeignWords& w = foreign_words();
  const Ref dtype = Ref::take(PyObject_GetAttr(object, w.dtype));
  const std::optional<DType> known = torch_dtype(dtype.get());
  if (!known)
    refuse(param, PyExc_TypeError,
           "is a tensor of " + std::string(text_of(Ref::take(PyObject_Str(dtype.get())).get())) +
               ", which kernels do not have");
  if (is_negated(object))
    refuse(param, PyExc_ValueError,
           "has torch's negative bit, which a kernel would not see: x.resolve_neg() is a tensor without");
  // -1 is every device without a number; such a tensor's data_ptr() is none of the CPU's, unless it is on the CPU.
  const auto device =
      static_cast<int>(integer_of(Ref::take(PyObject_CallMethodObjArgs(object, w.get_device, nullptr)).get()));
  const TorchMemory memory = torch_memory(object);
  if (!memory.problem.empty()) refuse(param, PyExc_ValueError, "is " + memory.problem);
  const uint64_t v = memory.address;
  if (v == 0) {
    const Ref place = Ref::take(PyObject_GetAttr(object, w.device));
    const Ref kind = Ref::take(PyObject_GetAttr(place.get(), w.type));
    if (device < 0 && text_of(kind.get()) != "cpu")
      refuse(param, PyExc_ValueError, "is a tensor on " + std::string(text_of(kind.get())) + ", which has no memory");
    const Ref elements = Ref::take(PyObject_CallMethod(object, "numel", nullptr));
    if (integer_of(elements.get()) != 0)
      refuse(param, PyExc_ValueError,
             "is a tensor without memory: of a FakeTensorMode, as while torch.compile traces, or one whose storage was "
             "freed");
  }
  pointer(param, *known, v, device);
}

bool DispatchArguments::numpy_array(const DispatchParam& param, PyObject* object) {
  PyObject* found = PyObject_GetAttr(object, foreign_words().array_struct);
  if (!found) return PyErr_Clear(), false;
  const Ref capsule = Ref::take(found);
  const auto* a = static_cast<const ArrayStruct*>(PyCapsule_GetPointer(found, nullptr));
  if (!a) return PyErr_Clear(), false;
  constexpr int kNativeOrder = 0x200, kWriteable = 0x400;
  const std::optional<DType> dtype = array_dtype(a->kind, a->bytes);
  if (a->two != 2 || !dtype || !(a->flags & kNativeOrder)) return false;
  pointer(param, *dtype, reinterpret_cast<uint64_t>(a->data), -1, !(a->flags & kWriteable));
  return true;
}

void DispatchArguments::array(const DispatchParam& param, PyObject* object, PyObject* interface_name, bool is_cuda) {
  const Ref fields = Ref::take(PyObject_GetAttr(object, interface_name));
  PyObject* data = PyDict_Check(fields.get()) ? PyDict_GetItemString(fields.get(), "data") : nullptr;
  PyObject* typestr = PyDict_Check(fields.get()) ? PyDict_GetItemString(fields.get(), "typestr") : nullptr;
  // numpy's PyArrayInterface: NPY_ARRAY_NOTSWAPPED, and a version of 2 in its first field.
  if (!data || !typestr || !PyTuple_Check(data)) refuse(param, PyExc_TypeError, "has no usable array interface");
  const std::optional<DType> dtype = typestr_dtype(text_of(typestr));
  if (!dtype)
    refuse(param, PyExc_TypeError, "is an array of '" + std::string(text_of(typestr)) + "', which kernels do not have");
  const uint64_t address = PyLong_AsUnsignedLongLong(item(data, 0));
  if (PyErr_Occurred()) throw Raised();
  const bool read_only = length(data) > 1 && PyObject_IsTrue(item(data, 1)) == 1;
  // The interface does not name its GPU. With others it is theirs, else the first.
  pointer(param, *dtype, address, !is_cuda ? -1 : first_ && device_ >= 0 ? device_ : 0, read_only);
}

void DispatchArguments::dlpack(const DispatchParam& param, PyObject* object) {
  const ForeignWords& w = foreign_words();
  const Ref capsule = Ref::take(PyObject_CallMethodObjArgs(object, w.dlpack, nullptr));
  // It stays the capsule's: its destructor lets go of it, and the caller keeps the object for the launch.
  const auto* managed = static_cast<const DLManagedTensor*>(PyCapsule_GetPointer(capsule.get(), "dltensor"));
  if (!managed) {
    PyErr_Clear();
    refuse(param, PyExc_TypeError, "has a __dlpack__() that gives no capsule 'dltensor', or one that was used before");
  }
  const auto& t = managed->tensor;
  const std::optional<DType> dtype = t.dtype.lanes == 1 ? dlpack_dtype(t.dtype.code, t.dtype.bits) : std::nullopt;
  if (!dtype) refuse(param, PyExc_TypeError, "is a DLPack tensor of elements that kernels do not have");
  const int kind = t.device.type;
  using runtime::dlpack::kCpu, runtime::dlpack::kCuda, runtime::dlpack::kCudaHost;
  if (kind != kCpu && kind != kCuda && kind != kCudaHost)
    refuse(param, PyExc_ValueError, "is a DLPack tensor on a device of kind " + std::to_string(kind));
  pointer(param, *dtype, reinterpret_cast<uint64_t>(t.data) + t.byte_offset, kind == kCuda ? t.device.id : -1);
}

void DispatchArguments::finish(const CodeOptions& options, uint32_t generation) {
// The options as bytes: each is a number of fixed size, so no two keys run together.
#define KILN_LAUNCH_OPTION(NAME, ...) raw(options.NAME);
#include "kiln/launch_option.def"
  raw(device_);
  raw(generation);
}

template <class Each>
Ref DispatchArguments::tuple_of(PyObject* object, const Each& each) {
  const Ref list = Ref::take(PyList_New(0));
  in_tuple_ = true;
  for (Py_ssize_t i = 0; i < length(object); ++i) check(PyList_Append(list.get(), each(item(object, i)).get()));
  return Ref::take(PyTuple_Pack(3, text("tuple").get(), list.get(), fields_of(object).get()));
}

Ref DispatchArguments::described(const DispatchParam& param, PyObject* object) {
  if (PyTuple_Check(object) && !param.is_constexpr && !param.is_annotated)
    return tuple_of(object, [&](PyObject* item) { return described(param, item); });
  add(param, object);
  if (value_) return Ref::take(PyTuple_Pack(2, text("constexpr").get(), value_));
  std::string type = (is_pointer_ ? "*" : "") + std::string(name(dtype_)) + (divisible_ ? ":16" : "");
  return Ref::take(PyTuple_Pack(2, text("type").get(), text(type).get()));
}

Ref DispatchArguments::told(const DispatchParam& param, PyObject* object) {
  if (PyTuple_Check(object) && !param.is_constexpr && !param.is_annotated)
    return tuple_of(object, [&](PyObject* item) { return told(param, item); });
  add(param, object);
  if (value_ || !is_pointer_) return Ref::take(PyTuple_Pack(2, text("value").get(), object));
  // The address is the last slot, since items of a tuple come one after another.
  return Ref::take(PyTuple_Pack(4, text("tensor").get(), object, text(name(dtype_)).get(),
                                Ref::take(PyLong_FromUnsignedLongLong(slots().back())).get()));
}

}  // namespace kiln::python
