#include "python/src/torch_abi.h"

#include <dlfcn.h>

#include <array>
#include <cstring>

namespace kiln::python {

namespace {

/// Of a library that Python has loaded; null where it has not, or lacks it.
template <class Function>
Function find_function(const char* library, const std::string& name) {
  void* const loaded = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
  return loaded ? reinterpret_cast<Function>(dlsym(loaded, name.c_str())) : nullptr;
}

struct TensorFunctions {
  // Each gives 0, or what failed.
  int (*dtype)(void* tensor, int32_t* out);
  int (*device_type)(void* tensor, int32_t* out);
  int (*device_index)(void* tensor, int32_t* out);
  int (*layout)(void* tensor, int32_t* out);
  int (*data_ptr)(void* tensor, void** out);
  int32_t cpu, cuda, strided;                       // two types of devices, and a layout
  std::array<std::optional<DType>, 64> kiln_dtype;  // by torch's number
};

/// The functions take the address of an at::Tensor, which is one pointer. Since 2.10 it stands behind the head of the
/// Python object; a torch where it does not is not read this way.
void* handle_of(PyObject* tensor) { return &unboxed<void*>(tensor); }

bool has_handle(PyObject* tensor) {
  PyObject* found = PyObject_GetAttrString(tensor, "_cdata");
  if (!found) return PyErr_Clear(), false;
  const Ref address = Ref::take(found);
  void* const impl = PyLong_AsVoidPtr(found);
  if (PyErr_Occurred()) PyErr_Clear();
  return impl && *static_cast<void**>(handle_of(tensor)) == impl;
}

/// Where a tensor says that it is negated: a bit of its dispatch keys, of which torch has no C function.
struct NegativeBit {
  size_t offset;  // of the keys, in the tensor's own memory
  uint64_t mask;
};

uint64_t raw_keys(PyObject* keys) {
  const Ref raw = Ref::take(PyObject_CallMethod(keys, "raw_repr", nullptr));
  const uint64_t v = PyLong_AsUnsignedLongLong(raw.get());
  if (PyErr_Occurred()) throw Raised();
  return v;
}

/// Looked for where two tensors, one of them negated, have what torch gives as their keys: the first such place, as the
/// keys are the last word of a tensor and nothing behind them is its own.
NegativeBit find_negative_bit(PyObject* tensor) {
  const Ref torch = Ref::take(PyImport_ImportModule("torch")), c = Ref::take(PyObject_GetAttrString(torch.get(), "_C"));
  const Ref kinds = Ref::take(PyObject_GetAttrString(c.get(), "DispatchKey"));
  const Ref negative = Ref::take(PyObject_GetAttrString(kinds.get(), "Negative"));
  const Ref set = Ref::take(PyObject_CallMethod(c.get(), "DispatchKeySet", "O", negative.get()));
  const Ref plain = Ref::take(PyObject_CallMethod(torch.get(), "zeros", "i", 1));
  const Ref negated = Ref::take(PyObject_CallMethod(torch.get(), "_neg_view", "O", plain.get()));
  constexpr size_t kWords = 24;  // the keys stand behind sizes and strides, at 176 in torch 2.11 and at 168 in 2.15
  for (size_t at = sizeof(uint64_t); at < kWords * sizeof(uint64_t); at += sizeof(uint64_t)) {
    bool matches = true;
    for (PyObject* one : {tensor, plain.get(), negated.get()}) {
      const Ref keys = Ref::take(PyObject_CallMethod(c.get(), "_dispatch_keys", "O", one));
      uint64_t word = 0;
      std::memcpy(&word, static_cast<const char*>(*static_cast<void**>(handle_of(one))) + at, sizeof word);
      matches &= word == raw_keys(keys.get());
    }
    if (matches) return {at, raw_keys(set.get())};
  }
  return {0, 0};
}

std::optional<TensorFunctions> find_tensor_functions(PyObject* tensor) {
  if (!has_handle(tensor)) return std::nullopt;
  bool is_whole = true;
  auto find = [&]<class Function>(const std::string& name, Function& out) {
    out = find_function<Function>("libtorch_cpu.so", "aoti_torch_" + name);
    is_whole &= out != nullptr;
  };
  TensorFunctions out{};
  find("get_dtype", out.dtype);
  find("get_device_type", out.device_type);
  find("get_device_index", out.device_index);
  find("get_layout", out.layout);
  find("get_data_ptr", out.data_ptr);
  auto number_of = [&](const std::string& name) -> int32_t {
    int32_t (*number)() = nullptr;
    find(name, number);
    return number ? number() : -1;
  };
  out.cpu = number_of("device_type_cpu"), out.cuda = number_of("device_type_cuda");
  out.strided = number_of("layout_strided");
  for (int i = 0; i < kNumDTypes; ++i) {
    const auto dtype = static_cast<DType>(i);
    if (!is_in_torch(dtype)) continue;
    const auto number = static_cast<size_t>(number_of("dtype_" + std::string(info(dtype).torch)));
    if (number < out.kiln_dtype.size()) out.kiln_dtype[number] = dtype;
  }
  if (!is_whole) return std::nullopt;
  return out;
}

}  // namespace

bool is_negated(PyObject* tensor) {
  PyObject* found = PyObject_CallMethod(tensor, "is_neg", nullptr);
  if (!found) return PyErr_Clear(), false;
  return PyObject_IsTrue(Ref::take(found).get()) == 1;
}

bool is_torch_negated(PyObject* tensor) {
  static std::optional<NegativeBit> bit;
  if (!bit) [[unlikely]] {
    NegativeBit found{0, 0};
    try {
      if (has_handle(tensor)) found = find_negative_bit(tensor);
    } catch (const Raised&) {
      PyErr_Clear();
    }
    bit = found;
  }
  if (bit->mask == 0) return is_negated(tensor);
  uint64_t keys = 0;
  std::memcpy(&keys, static_cast<const char*>(*static_cast<void**>(handle_of(tensor))) + bit->offset, sizeof keys);
  return (keys & bit->mask) != 0;
}

std::optional<TorchTensor> read_torch(PyObject* tensor) {
  static std::optional<TensorFunctions> torch;
  static bool is_asked = false;
  if (!is_asked) [[unlikely]] {
    // Not as the static's initialiser: Python may run within, and another thread would wait for it with the GIL.
    torch = find_tensor_functions(tensor);
    is_asked = true;
  }
  if (!torch) return std::nullopt;
  if (is_torch_negated(tensor)) return std::nullopt;
  void *const handle = handle_of(tensor), *address = nullptr;
  int32_t dtype = -1, layout = -1, device_type = -1, device_index = -1;
  if (torch->dtype(handle, &dtype) != 0 || torch->device_type(handle, &device_type) != 0) return std::nullopt;
  // Asked for the address of a sparse tensor, torch 2.11 logs its own stack.
  if (torch->layout(handle, &layout) != 0 || layout != torch->strided) return std::nullopt;
  const auto number = static_cast<size_t>(dtype);
  if (number >= torch->kiln_dtype.size() || !torch->kiln_dtype[number]) return std::nullopt;
  if (device_type == torch->cuda) {
    if (torch->device_index(handle, &device_index) != 0) return std::nullopt;
  } else if (device_type != torch->cpu) {
    return std::nullopt;
  }
  // Without memory it is empty, or no tensor for a kernel: its methods tell.
  if (torch->data_ptr(handle, &address) != 0 || !address) return std::nullopt;
  return TorchTensor{*torch->kiln_dtype[number], device_index, reinterpret_cast<uint64_t>(address)};
}

TorchStreamFunction torch_stream_function() {
  return find_function<TorchStreamFunction>("libtorch_cuda.so", "aoti_torch_get_current_cuda_stream");
}

}  // namespace kiln::python
