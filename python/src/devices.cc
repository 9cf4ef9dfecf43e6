#include "python/src/devices.h"

#include <map>

#include "kiln/interop.h"

namespace kiln::python {

const Runtime& runtime_of_module() {
  static const auto* const made = new Runtime;  // the driver may be gone when destructors run
  return *made;
}

KnownDevice& device_at(int index) {
  static auto& known = *new std::map<int, KnownDevice>();  // as the runtime
  auto it = known.find(index);
  if (it != known.end()) return it->second;
  Result<Device> opened = [&] {
    WithoutGil without;
    return runtime_of_module().open(index < 0 ? "cpu" : "cuda:" + std::to_string(index));
  }();
  KnownDevice made;
  made.device = value_of(std::move(opened));
  made.target = made.device.info().target;
  return known.emplace(index, std::move(made)).first->second;
}

namespace {

/// torch's function of a device's current stream; null while torch is not imported or has no CUDA.
PyObject* torch_stream_function() {
  static PyObject* found = nullptr;
  if (found) return found;
  PyObject* modules = PyImport_GetModuleDict();  // borrowed
  PyObject* torch = PyDict_GetItemString(modules, "torch._C");
  if (!torch) return nullptr;
  found = PyObject_GetAttrString(torch, "_cuda_getCurrentRawStream");
  if (!found) PyErr_Clear();
  return found;
}

}  // namespace

Stream stream_at(KnownDevice& known, int index) {
  if (index < 0) return {};
  void* raw = nullptr;
  if (PyObject* ask = torch_stream_function()) {
    const Ref at = number(index);
    const Ref stream = Ref::take(PyObject_CallFunctionObjArgs(ask, at.get(), nullptr));
    raw = PyLong_AsVoidPtr(stream.get());
    if (!raw && PyErr_Occurred()) throw Raised();
  }
  for (const auto& [handle, stream] : known.streams)
    if (handle == raw) return stream;
  constexpr size_t kMost = 64;
  if (known.streams.size() == kMost) known.streams.clear();
  known.streams.emplace_back(raw, value_of(stream_from_cuda(known.device, raw)));
  return known.streams.back().second;
}

}  // namespace kiln::python
