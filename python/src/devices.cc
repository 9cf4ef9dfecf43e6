#include "python/src/devices.h"

#include <map>

#include "kiln/faults.h"
#include "kiln/interop.h"
#include "python/src/torch_abi.h"

namespace kiln::python {

const Runtime& runtime_of_module() {
  static const auto* const made = new Runtime;  // the driver may be gone when destructors run
  return *made;
}

KnownDevice& device_at(int index) {
  static auto& known = *new std::map<int, KnownDevice>();  // as the runtime
  auto it = known.find(index);
  if (it != known.end()) return it->second;
  // A wild access of a kernel should cost its launch, not the notebook.
  if (index < 0) catch_kernel_faults();
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

/// How torch says what its current stream on a GPU is.
struct StreamFunctions {
  PyObject* by_python = nullptr;
  TorchStreamFunction by_c = nullptr;  // null: torch is not asked this way
};

/// Without by_python while torch is not imported or has no CUDA.
const StreamFunctions& stream_functions() {
  static StreamFunctions found;
  if (found.by_python) return found;
  PyObject* modules = PyImport_GetModuleDict();  // borrowed
  PyObject* torch = PyDict_GetItemString(modules, "torch._C");
  if (!torch) return found;
  found.by_python = PyObject_GetAttrString(torch, "_cuda_getCurrentRawStream");
  if (found.by_python)
    found.by_c = torch_stream_function();
  else
    PyErr_Clear();
  return found;
}

void* raw_stream_of_torch(int index) {
  const StreamFunctions& ask = stream_functions();
  void* raw = nullptr;
  if (!ask.by_python || (ask.by_c && ask.by_c(index, &raw) == 0)) return raw;
  // Python's function has an exception to say what failed.
  const Ref stream = Ref::take(PyObject_CallFunctionObjArgs(ask.by_python, number(index).get(), nullptr));
  raw = PyLong_AsVoidPtr(stream.get());
  if (!raw && PyErr_Occurred()) throw Raised();
  return raw;
}

}  // namespace

Stream stream_at(KnownDevice& known, int index) {
  if (index < 0) return {};
  void* const raw = raw_stream_of_torch(index);
  for (const auto& [handle, stream] : known.streams)
    if (handle == raw) return stream;
  constexpr size_t kMost = 64;
  if (known.streams.size() == kMost) known.streams.clear();
  known.streams.emplace_back(raw, value_of(stream_from_cuda(known.device, raw)));
  return known.streams.back().second;
}

}  // namespace kiln::python
