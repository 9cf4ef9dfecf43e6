#include "python/src/foreign.h"

#include <vector>

#include "python/src/torch_abi.h"
#include "runtime/tensor/dlpack_abi.h"

namespace kiln::python {

const ForeignWords& foreign_words() {
  auto word = PyUnicode_InternFromString;
  static const ForeignWords kWords = {word("data_ptr"),
                                      word("dtype"),
                                      word("get_device"),
                                      word("device"),
                                      word("type"),
                                      word("__array_interface__"),
                                      word("__array_struct__"),
                                      word("__cuda_array_interface__"),
                                      word("__dlpack__"),
                                      word("__dlpack_device__")};
  return kWords;
}

namespace {

/// DLPack 1.3's table of C functions, which torch has since 2.10 (dlpack.h, DLPackExchangeAPI): all of a tensor in one
/// call, without Python objects for its dtype, its device and its address.
struct ExchangeApi {
  uint32_t major, minor;
  const ExchangeApi* previous;
  void *allocate, *from_object, *to_object;
  int (*read)(void* object, runtime::dlpack::Tensor* out);  // borrows; may be null
};

/// Of torch's own tensors alone, which is one table: what subclasses do in Python must be asked of them.
const ExchangeApi* exchange_api = nullptr;

bool finds_exchange_api(PyTypeObject* type) {
  const Ref module = Ref::take(PyObject_GetAttrString(reinterpret_cast<PyObject*>(type), "__module__"));
  const Ref name = Ref::take(PyObject_GetAttrString(reinterpret_cast<PyObject*>(type), "__name__"));
  const std::string_view in = PyUnicode_Check(module.get()) ? text_of(module.get()) : "", called = text_of(name.get());
  if (!(in == "torch" && called == "Tensor") && !(in == "torch.nn.parameter" && called == "Parameter")) return false;
  if (exchange_api) return true;
  PyObject* found = PyObject_GetAttrString(reinterpret_cast<PyObject*>(type), "__dlpack_c_exchange_api__");
  if (!found) return PyErr_Clear(), false;
  const Ref capsule = Ref::take(found);
  const auto* api = static_cast<const ExchangeApi*>(PyCapsule_GetPointer(found, "dlpack_exchange_api"));
  if (!api) return PyErr_Clear(), false;
  // A table of another major version has other fields.
  if (api->major != 1 || !api->read) return false;
  exchange_api = api;
  return true;
}

bool type_has(PyTypeObject* type, PyObject* name) {
  return PyObject_HasAttr(reinterpret_cast<PyObject*>(type), name) != 0;
}

/// Whether a type is one of numpy's of this name, or is made of it.
bool is_of_numpy(PyTypeObject* type, std::string_view name) {
  const Ref order = Ref::take(PyObject_GetAttrString(reinterpret_cast<PyObject*>(type), "__mro__"));
  for (Py_ssize_t i = 0; i < length(order.get()); ++i) {
    const Ref module = Ref::take(PyObject_GetAttrString(item(order.get(), i), "__module__"));
    const Ref called = Ref::take(PyObject_GetAttrString(item(order.get(), i), "__name__"));
    if (text_of(called.get()) == name && PyUnicode_Check(module.get()) && text_of(module.get()).starts_with("numpy"))
      return true;
  }
  return false;
}

Receiver find_receiver(PyTypeObject* type) {
  const ForeignWords& w = foreign_words();
  if (finds_exchange_api(type)) return Receiver::kExchange;
  // Storages of torch have an address and a device too, and no shape.
  static PyObject* const shape = PyUnicode_InternFromString("shape");
  if (type_has(type, w.data_ptr) && type_has(type, w.get_device) && type_has(type, shape)) return Receiver::kTorch;
  // Scalars of numpy have an array interface too, but no DLPack.
  if (type_has(type, w.array) && type_has(type, w.dlpack))
    return is_of_numpy(type, "MaskedArray") ? Receiver::kMasked : Receiver::kNumpy;
  if (type_has(type, w.cuda_array)) return Receiver::kCudaArray;
  if (type_has(type, w.dlpack)) return Receiver::kDlpack;
  static PyObject* const index = PyUnicode_InternFromString("__index__");
  static PyObject* const real = PyUnicode_InternFromString("__float__");
  if (is_of_numpy(type, "bool") || is_of_numpy(type, "bool_")) return Receiver::kBool;  // whose __index__ will go
  if (type_has(type, index)) return Receiver::kInteger;
  // All scalars of numpy have a __float__: that of complex ones gives their real part, that of dates and texts fails.
  for (const char* name : {"complexfloating", "datetime64", "timedelta64", "flexible"})
    if (is_of_numpy(type, name)) return Receiver::kOther;
  return type_has(type, real) ? Receiver::kReal : Receiver::kOther;
}

}  // namespace

Receiver receiver_of(PyObject* object) {
  struct Row {
    PyTypeObject* type;  // kept alive, so that no other type gets its address
    Receiver receiver;
  };
  static std::vector<Row> rows;
  PyTypeObject* type = Py_TYPE(object);
  for (const Row& row : rows)
    if (row.type == type) return row.receiver;
  const Receiver found = find_receiver(type);
  // A program with more types than this asks anew each time, and keeps none of them alive.
  constexpr size_t kMost = 64;
  if (rows.size() < kMost) {
    Py_INCREF(reinterpret_cast<PyObject*>(type));
    rows.push_back({type, found});
  }
  return found;
}

std::optional<DType> torch_dtype(PyObject* dtype) {
  struct Row {
    PyObject* object;
    std::optional<DType> dtype;
  };
  static std::vector<Row> rows;
  for (const Row& row : rows)
    // dtypes of torch are singletons, so their addresses say which they are.
    if (row.object == dtype) return row.dtype;
  const Ref shown = Ref::take(PyObject_Str(dtype));
  std::string_view name = text_of(shown.get());
  if (const size_t dot = name.rfind('.'); dot != name.npos) name.remove_prefix(dot + 1);
  const std::optional<DType> found = parse_dtype(name);
  Py_INCREF(dtype);
  rows.push_back({dtype, found});
  return found;
}

std::optional<DType> array_dtype(char kind, int bytes) {
  if (kind == 'b') return DType::kI1;
  for (int i = 0; i < kNumDTypes; ++i) {
    const auto dtype = static_cast<DType>(i);
    const DTypeInfo& row = info(dtype);
    if (row.bits != 8 * bytes || is_fp8(dtype) || dtype == DType::kBF16) continue;
    if (kind == (row.cls == DTypeClass::kFloat ? 'f' : row.cls == DTypeClass::kSigned ? 'i' : 'u')) return dtype;
  }
  return std::nullopt;
}

std::optional<DType> typestr_dtype(std::string_view text) {
  // "<f4", "|u1": '>' is the byte order that kernels do not read.
  if (text.size() != 3 || text[0] == '>') return std::nullopt;
  return array_dtype(text[1], text[2] - '0');
}

std::optional<DType> dlpack_dtype(uint8_t code, uint8_t bits) {
  // Codes of DLPack: 0 int, 1 uint, 2 float, 4 bfloat, 6 bool.
  if (code == 6 && bits == 8) return DType::kI1;
  if (code == 2 && bits == 32) return DType::kF32;
  if (code == 4 && bits == 16) return DType::kBF16;
  if (code == runtime::dlpack::kFloat8E4M3FN && bits == 8) return DType::kF8E4M3;
  if (code == runtime::dlpack::kFloat8E5M2 && bits == 8) return DType::kF8E5M2;
  if (code > 2) return std::nullopt;
  for (int i = 0; i < kNumDTypes; ++i) {
    const auto dtype = static_cast<DType>(i);
    const DTypeInfo& row = info(dtype);
    constexpr DTypeClass kClasses[] = {DTypeClass::kSigned, DTypeClass::kUnsigned, DTypeClass::kFloat};
    if (row.bits == bits && row.cls == kClasses[code] && !is_fp8(dtype) && dtype != DType::kBF16) return dtype;
  }
  return std::nullopt;
}

namespace {
/// What is wrong with a tensor whose layout has no strides; empty: it has them.
std::string other_layout(PyObject* tensor) {
  PyObject* layout = PyObject_GetAttrString(tensor, "layout");
  if (!layout) return PyErr_Clear(), "";
  const Ref shown = Ref::take(PyObject_Str(Ref::take(layout).get()));
  const std::string_view name = text_of(shown.get());
  if (name == "torch.strided") return "";
  return "a tensor of the layout " + std::string(name) + ", which is no memory with strides: x.to_dense() is one";
}
}  // namespace

TorchMemory torch_memory(PyObject* tensor) {
  TorchMemory out;
  PyObject* found = PyObject_CallMethodObjArgs(tensor, foreign_words().data_ptr, nullptr);
  if (found) {
    out.address = PyLong_AsUnsignedLongLong(Ref::take(found).get());
    if (PyErr_Occurred()) throw Raised();
    // Only where there is no memory is the reason asked for: each launch comes by here.
    if (out.address == 0) out.problem = other_layout(tensor);
    return out;
  }
  // Tensors that stand for others, as torch.vmap makes them.
  if (!PyErr_ExceptionMatches(PyExc_RuntimeError)) throw Raised();
  PyObject *type = nullptr, *error = nullptr, *trace = nullptr;
  PyErr_Fetch(&type, &error, &trace);
  const Ref kept[] = {Ref::take(type), error ? Ref::take(error) : none(), trace ? Ref::take(trace) : none()};
  out.problem = other_layout(tensor);
  if (!out.problem.empty()) return out;
  const Ref said = Ref::take(PyObject_Str(kept[1].get()));
  out.problem =
      "a tensor without memory, as within torch.vmap or while torch traces: " + std::string(text_of(said.get()));
  return out;
}

namespace {

/// Of an object of Receiver::kExchange, whose memory it borrows. Empty: it says nothing.
std::optional<runtime::dlpack::Tensor> read_exchanged(PyObject* object) {
  runtime::dlpack::Tensor t{};
  if (exchange_api->read(object, &t) != 0) return PyErr_Clear(), std::nullopt;
  return t;
}

std::string type_name_of(PyObject* object) {
  const Ref name = Ref::take(PyObject_GetAttrString(reinterpret_cast<PyObject*>(Py_TYPE(object)), "__qualname__"));
  return std::string(text_of(name.get()));
}

void set_rank(ForeignTensor& out, Py_ssize_t rank) {
  if (rank > ForeignTensor::kMostRank)
    raise(PyExc_ValueError, "a tensor of %d dimensions; expressions take at most %d", static_cast<int>(rank),
          ForeignTensor::kMostRank);
  out.rank = static_cast<int>(rank);
}

void set_row_major(ForeignTensor& out) {
  int64_t step = 1;
  for (int d = out.rank; d-- > 0; step *= out.shape[static_cast<size_t>(d)]) out.strides[static_cast<size_t>(d)] = step;
}

/// Strides in bytes, as arrays have them.
void set_byte_stride(ForeignTensor& out, size_t d, int64_t bytes) {
  const int64_t size = size_of(out.dtype);
  if (bytes % size)
    raise(PyExc_ValueError, "an array whose stride of %lld bytes is no multiple of its elements",
          static_cast<long long>(bytes));
  out.strides[d] = bytes / size;
}

bool read_dlpack(const runtime::dlpack::Tensor& t, ForeignTensor& out) {
  using runtime::dlpack::kCpu, runtime::dlpack::kCuda, runtime::dlpack::kCudaHost;
  const std::optional<DType> dtype = t.dtype.lanes == 1 ? dlpack_dtype(t.dtype.code, t.dtype.bits) : std::nullopt;
  if (!dtype || (t.device.type != kCpu && t.device.type != kCuda && t.device.type != kCudaHost)) return false;
  out.dtype = *dtype;
  out.device = t.device.type == kCuda ? t.device.id : -1;
  out.address = reinterpret_cast<uint64_t>(t.data) + t.byte_offset;
  set_rank(out, t.ndim);
  std::copy(t.shape, t.shape + t.ndim, out.shape.begin());
  if (t.strides)
    std::copy(t.strides, t.strides + t.ndim, out.strides.begin());
  else
    set_row_major(out);
  return true;
}

/// A tensor of torch by its methods: of subclasses, and before torch has the exchange's table.
void read_torch(PyObject* object, ForeignTensor& out) {
  const ForeignWords& w = foreign_words();
  const Ref dtype = Ref::take(PyObject_GetAttr(object, w.dtype));
  const std::optional<DType> known = torch_dtype(dtype.get());
  if (!known) raise(PyExc_TypeError, "a tensor of %S, which expressions do not have", dtype.get());
  if (is_negated(object))
    raise(PyExc_ValueError,
          "a tensor with torch's negative bit, which its memory does not have: x.resolve_neg() is one without");
  const Ref place = Ref::take(PyObject_GetAttr(object, w.device));
  const Ref kind = Ref::take(PyObject_GetAttr(place.get(), w.type));
  const std::string_view on = text_of(kind.get());
  if (on != "cpu" && on != "cuda")
    raise(PyExc_ValueError, "a tensor on %S; expressions are computed on the CPU and on CUDA", place.get());
  out.dtype = *known;
  out.device =
      on == "cpu"
          ? -1
          : static_cast<int>(integer_of(Ref::take(PyObject_CallMethodObjArgs(object, w.get_device, nullptr)).get()));
  const TorchMemory memory = torch_memory(object);
  if (!memory.problem.empty()) raise(PyExc_ValueError, "%s", memory.problem.c_str());
  out.address = memory.address;
  PyObject* nested = PyObject_GetAttrString(object, "is_nested");
  if (!nested) PyErr_Clear();
  if (nested && PyObject_IsTrue(Ref::take(nested).get()) == 1)
    raise(PyExc_ValueError,
          "a nested tensor, whose rows have lengths of their own: x.to_padded_tensor(0) is one of strides");
  const Ref shape = Ref::take(PyObject_GetAttrString(object, "shape"));
  const Ref strides = Ref::take(PyObject_CallMethod(object, "stride", nullptr));
  set_rank(out, length(shape.get()));
  for (int d = 0; d < out.rank; ++d) {
    out.shape[static_cast<size_t>(d)] = integer_of(item(shape.get(), d));
    out.strides[static_cast<size_t>(d)] = integer_of(item(strides.get(), d));
  }
}

void read_numpy(PyObject* object, ForeignTensor& out) {
  const Ref capsule = Ref::take(PyObject_GetAttr(object, foreign_words().array_struct));
  const auto* a = static_cast<const ArrayStruct*>(PyCapsule_GetPointer(capsule.get(), nullptr));
  if (!a) throw Raised();
  constexpr int kNativeOrder = 0x200;
  const std::optional<DType> dtype = a->flags & kNativeOrder ? array_dtype(a->kind, a->bytes) : std::nullopt;
  if (!dtype) {
    const Ref shown = Ref::take(PyObject_GetAttr(object, foreign_words().dtype));
    raise(PyExc_TypeError, "an array of %S, which expressions do not have", shown.get());
  }
  out.dtype = *dtype;
  out.address = reinterpret_cast<uint64_t>(a->data);
  set_rank(out, a->rank);
  for (int d = 0; d < a->rank; ++d) {
    out.shape[static_cast<size_t>(d)] = a->shape[d];
    set_byte_stride(out, static_cast<size_t>(d), a->strides[d]);
  }
}

/// The interface does not name its GPU: the first.
void read_cuda_array(PyObject* object, ForeignTensor& out) {
  const Ref fields = Ref::take(PyObject_GetAttr(object, foreign_words().cuda_array));
  auto field = [&](const char* name) {
    return PyDict_Check(fields.get()) ? PyDict_GetItemString(fields.get(), name) : nullptr;
  };
  PyObject *data = field("data"), *type = field("typestr"), *shape = field("shape"), *strides = field("strides");
  if (!data || !type || !shape || !PyTuple_Check(data) || !PyTuple_Check(shape))
    raise(PyExc_TypeError, "a %s without a usable __cuda_array_interface__", type_name_of(object).c_str());
  const std::optional<DType> dtype = typestr_dtype(text_of(type));
  if (!dtype) raise(PyExc_TypeError, "an array of %R, which expressions do not have", type);
  out.dtype = *dtype;
  out.device = 0;
  out.address = PyLong_AsUnsignedLongLong(item(data, 0));
  if (PyErr_Occurred()) throw Raised();
  set_rank(out, length(shape));
  for (int d = 0; d < out.rank; ++d) out.shape[static_cast<size_t>(d)] = integer_of(item(shape, d));
  // None stands for row-major, as in numpy's interface.
  if (!strides || strides == Py_None) return set_row_major(out);
  for (int d = 0; d < out.rank; ++d) set_byte_stride(out, static_cast<size_t>(d), integer_of(item(strides, d)));
}

void read_capsule(PyObject* object, ForeignTensor& out) {
  const Ref capsule = Ref::take(PyObject_CallMethodObjArgs(object, foreign_words().dlpack, nullptr));
  // It stays the capsule's: its destructor lets go of it, and the caller keeps the object.
  const auto* managed = static_cast<const DLManagedTensor*>(PyCapsule_GetPointer(capsule.get(), "dltensor"));
  if (!managed)
    raise(PyExc_TypeError, "an %s whose __dlpack__() gives no capsule 'dltensor', or one that was used before",
          type_name_of(object).c_str());
  if (!read_dlpack(managed->tensor, out))
    raise(PyExc_TypeError, "a DLPack tensor of elements or on a device that expressions do not have");
}

}  // namespace

int64_t ForeignTensor::bytes() const {
  int64_t last = 0;
  for (size_t d = 0; d < static_cast<size_t>(rank); ++d) {
    if (shape[d] == 0) return 0;
    last += (shape[d] - 1) * strides[d];
  }
  return (last + 1) * size_of(dtype);
}

ForeignTensor read_foreign(PyObject* object) {
  ForeignTensor out;
  switch (receiver_of(object)) {
    case Receiver::kExchange:
      if (!is_torch_negated(object))
        if (auto t = read_exchanged(object); t && read_dlpack(*t, out)) return out;
      [[fallthrough]];  // which says what is wrong with it
    case Receiver::kTorch:
      return read_torch(object, out), out;
    case Receiver::kNumpy:
      return read_numpy(object, out), out;
    case Receiver::kMasked:
      raise(PyExc_TypeError, "%s", kMaskedArray);
    case Receiver::kCudaArray:
      return read_cuda_array(object, out), out;
    case Receiver::kDlpack:
      return read_capsule(object, out), out;
    case Receiver::kBool:
    case Receiver::kInteger:
    case Receiver::kReal:
    case Receiver::kOther:
      break;
  }
  raise(PyExc_TypeError,
        "a %s is no tensor: an expression takes those of torch and numpy, and what has __dlpack__ or "
        "__cuda_array_interface__",
        type_name_of(object).c_str());
}

}  // namespace kiln::python
