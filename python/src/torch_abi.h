// torch through its C functions for compiled models (torch/csrc/inductor/aoti_torch/c/shim.h), an ABI that torch keeps
// from version to version: without Python objects for a dtype, a device, an address and a stream.
#pragma once
#include <optional>

#include "kiln/dtype.h"
#include "python/src/object.h"

namespace kiln::python {

struct TorchTensor {
  DType dtype;
  int device;  // of CUDA; -1: the CPU
  uint64_t address;
};

/// Of a tensor whose type is torch's own. Empty: it is none that kernels take, or this torch is not read this way.
std::optional<TorchTensor> read_torch(PyObject* tensor);
/// Whether torch negates the tensor's elements where it reads them (is_neg(), as of x.conj().imag): its memory alone
/// has the opposite of its values. Of any object; false of what has no such method.
bool is_negated(PyObject* tensor);
/// The same of a tensor whose type is torch's own, without a call where this torch's tensors are laid out as expected.
bool is_torch_negated(PyObject* tensor);

/// Gives the current stream of a GPU. Others than 0: it failed, and torch's Python function says why.
using TorchStreamFunction = int (*)(int32_t device, void** stream);
/// Null: torch is not loaded or has no CUDA.
TorchStreamFunction torch_stream_function();

}  // namespace kiln::python
