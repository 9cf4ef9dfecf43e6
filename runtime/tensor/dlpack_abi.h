// The structures of DLPack (dmlc/dlpack, include/dlpack/dlpack.h, ABI 0.x and 1.x), as far as Kiln exchanges them: the
// library is a header that callers bring.
#pragma once
#include <cstdint>

namespace kiln::runtime::dlpack {

enum DeviceType : int32_t { kCpu = 1, kCuda = 2, kCudaHost = 3, kCudaManaged = 13 };
enum Code : uint8_t { kInt = 0, kUInt = 1, kFloat = 2, kBfloat = 4, kBool = 6, kFloat8E4M3FN = 10, kFloat8E5M2 = 12 };

struct Device {
  int32_t type, id;
};
struct DataType {
  uint8_t code, bits;
  uint16_t lanes;
};
struct Tensor {
  void* data;
  Device device;
  int32_t ndim;
  DataType dtype;
  int64_t *shape, *strides;  // in elements; no strides: row-major
  uint64_t byte_offset;
};
struct Version {
  uint32_t major, minor;
};
inline constexpr Version kVersion = {1, 0};

}  // namespace kiln::runtime::dlpack

struct DLManagedTensor {
  kiln::runtime::dlpack::Tensor tensor;
  void* context;
  void (*deleter)(DLManagedTensor*);
};
struct DLManagedTensorVersioned {
  kiln::runtime::dlpack::Version version;
  void* context;
  void (*deleter)(DLManagedTensorVersioned*);
  uint64_t flags;
  kiln::runtime::dlpack::Tensor tensor;
};
