// The caller's own contexts, streams and memory, and tensors of other libraries (DLPack). Nothing here copies, waits or
// allocates memory of a device.
#pragma once
#include <cstdint>
#include <memory>
#include <span>

#include "kiln/device.h"
#include "kiln/dtype.h"
#include "kiln/result.h"
#include "kiln/runtime.h"
#include "kiln/tensor.h"

struct DLManagedTensor;           // of dlpack.h, which the caller includes
struct DLManagedTensorVersioned;  // of dlpack.h since 1.0

namespace kiln {

/// The GPU of a CUcontext that the caller made, and keeps until this device and the kernels, tensors and streams of it
/// are gone. Kiln loads code and queues work in that context, and makes it current on the threads that call. The same
/// context gives the same device; a GPU's primary context is runtime.open("cuda:N").
Result<Device> device_from_cuda(const Runtime& runtime, void* context);

/// A CUstream of the caller's, in the device's context; null is the legacy default stream. It is neither destroyed nor
/// waited for, but when the last handle goes while memory of Kiln's allocator was used on it. The same CUstream gives
/// the same stream as long as a handle is kept, so keep one: what a launch on it costs is then the launch.
/// kUnsupported on the CPU.
Result<Stream> stream_from_cuda(const Device& device, void* stream);
/// The other way: the CUstream, which lives as long as the handle. kUnsupported on the CPU.
Result<void*> cuda_stream(const Device& device, const Stream& stream = {});

/// Memory that somebody else owns, as the storage of a tensor: `bytes` from `address` on are what views and checked
/// launches may use. `owner` is kept until the last view of it is gone; work on the device may not have ended then, as
/// when any library's tensor goes.
struct ForeignMemory {
  uint64_t address = 0;  // a CUdeviceptr, or on the CPU a pointer
  int64_t bytes = 0;
  std::shared_ptr<void> owner = {};
};
/// `strides` in elements; empty: row-major. kValue: the shape exceeds the memory, negative strides, or an address that
/// is no multiple of the element's size.
Result<Tensor> tensor_from_memory(const Device& device, DType dtype, std::span<const int64_t> shape,
                                  std::span<const int64_t> strides, const ForeignMemory& memory);

/// Takes over `tensor`: its deleter is called with the last view. On an error it stays the caller's. With a runtime it
/// is on its "cpu" or its device of the GPU's primary context; kUnsupported for other kinds of devices and for element
/// types that Kiln has not. The producer's work on it must be ordered before the stream that uses it, as DLPack says.
Result<Tensor> from_dlpack(DLManagedTensor* tensor, const Runtime& runtime);
Result<Tensor> from_dlpack(DLManagedTensorVersioned* tensor, const Runtime& runtime);
/// kDevice: it is on another one.
Result<Tensor> from_dlpack(DLManagedTensor* tensor, const Device& device);
Result<Tensor> from_dlpack(DLManagedTensorVersioned* tensor, const Device& device);
/// The consumer calls its deleter, on any thread; the tensor's memory lives until then.
Result<DLManagedTensor*> to_dlpack(const Tensor& tensor);
Result<DLManagedTensorVersioned*> to_dlpack_versioned(const Tensor& tensor);

}  // namespace kiln
