#include "runtime/tensor/dlpack_abi.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <variant>

#include "kiln/interop.h"
#include "runtime/device/device.h"
#include "support/diag.h"

namespace kiln {

using namespace runtime;

namespace {

std::optional<DType> dtype_of(dlpack::DataType t) {
  if (t.lanes != 1) return {};
  for (int i = 0; i < kNumDTypes; ++i) {
    const auto dtype = static_cast<DType>(i);
    // DLPack counts bits of storage: a bool has 8.
    const auto bits_of = static_cast<uint8_t>(8 * size_of(dtype));
    if (bits_of != t.bits) continue;
    switch (t.code) {
      case dlpack::kInt:
        if (is_int(dtype) && is_signed(dtype) && dtype != DType::kI1) return dtype;
        break;
      case dlpack::kUInt:
        if (is_int(dtype) && !is_signed(dtype) && dtype != DType::kI1) return dtype;
        break;
      case dlpack::kFloat:
        if (is_float(dtype) && !is_fp8(dtype) && dtype != DType::kBF16) return dtype;
        break;
      case dlpack::kBfloat:
        if (dtype == DType::kBF16) return dtype;
        break;
      case dlpack::kBool:
        if (dtype == DType::kI1) return dtype;
        break;
      case dlpack::kFloat8E4M3FN:
        if (dtype == DType::kF8E4M3) return dtype;
        break;
      case dlpack::kFloat8E5M2:
        if (dtype == DType::kF8E5M2) return dtype;
        break;
      default:
        return {};
    }
  }
  return {};
}

dlpack::DataType data_type_of(DType t) {
  const auto bits_of = static_cast<uint8_t>(8 * size_of(t));
  auto code = dlpack::kFloat;
  if (t == DType::kI1)
    code = dlpack::kBool;
  else if (t == DType::kBF16)
    code = dlpack::kBfloat;
  else if (t == DType::kF8E4M3)
    code = dlpack::kFloat8E4M3FN;
  else if (t == DType::kF8E5M2)
    code = dlpack::kFloat8E5M2;
  else if (is_int(t))
    code = is_signed(t) ? dlpack::kInt : dlpack::kUInt;
  return {code, bits_of, 1};
}

Result<Device> device_of(dlpack::Device d, const Runtime& runtime) {
  switch (d.type) {
    // Pinned memory is the host's, managed memory a GPU's.
    case dlpack::kCpu:
    case dlpack::kCudaHost:
      return runtime.open("cpu");
    case dlpack::kCuda:
    case dlpack::kCudaManaged:
      return runtime.open(fmt::format("cuda:{}", d.id));
    default:
      return error(ErrorKind::kUnsupported, "a DLPack tensor of device type {}: Kiln knows 1 (CPU) and 2 (CUDA)",
                   d.type);
  }
}

int ordinal_of(const Device& device) {
  const std::string& name = device.name();
  int ordinal = 0;
  if (const size_t colon = name.find(':'); colon != std::string::npos)
    std::from_chars(name.data() + colon + 1, name.data() + name.size(), ordinal);
  return ordinal;
}

/// `where`: the device, or the runtime that has it.
template <class Managed>
Result<Tensor> take_over(Managed* managed, const std::variant<Device, Runtime>& where) {
  if (!managed) return error(ErrorKind::kValue, "from_dlpack needs a tensor, got null");
  const dlpack::Tensor& t = managed->tensor;
  const std::optional<DType> dtype = dtype_of(t.dtype);
  if (!dtype)
    return error(ErrorKind::kUnsupported, "a DLPack tensor of type code {} with {} bits and {} lanes", t.dtype.code,
                 t.dtype.bits, t.dtype.lanes);
  const Device* wanted = std::get_if<Device>(&where);
  KILN_TRY(Device device, device_of(t.device, wanted ? wanted->runtime() : std::get<Runtime>(where)));
  if (wanted) {
    if (wanted->is_cuda() != device.is_cuda() || (wanted->is_cuda() && ordinal_of(*wanted) != ordinal_of(device)))
      return error(ErrorKind::kDevice, "the DLPack tensor is on {}, not on {}", device.name(), wanted->name());
    device = *wanted;
  }
  const auto rank = static_cast<size_t>(std::max(t.ndim, 0));
  const std::span<const int64_t> shape(t.shape, rank);
  const std::span<const int64_t> strides =
      t.strides ? std::span<const int64_t>(t.strides, rank) : std::span<const int64_t>();
  // DLPack gives no size: what the elements span.
  int64_t elements = 1, packed = 1;
  for (size_t i = 0; i < rank; ++i) {
    int64_t reach = 0;
    if (shape[i] < 0 || __builtin_mul_overflow(packed, shape[i], &packed) ||
        (t.strides &&
         __builtin_mul_overflow(std::max<int64_t>(shape[i] - 1, 0), std::max<int64_t>(strides[i], 0), &reach)) ||
        __builtin_add_overflow(elements, reach, &elements))
      return error(ErrorKind::kValue, "a DLPack tensor of shape [{}] has too many elements", fmt::join(shape, ", "));
  }
  if (packed == 0)
    elements = 0;
  else if (!t.strides)
    elements = packed;
  ForeignMemory memory;
  memory.address = t.data ? reinterpret_cast<uint64_t>(t.data) + t.byte_offset : 0;
  if (__builtin_mul_overflow(elements, int64_t{size_of(*dtype)}, &memory.bytes))
    return error(ErrorKind::kValue, "a DLPack tensor of shape [{}] has too many elements", fmt::join(shape, ", "));
  // The owner is armed once nothing can fail any more.
  struct Owner {
    ~Owner() {
      if (armed && managed->deleter) managed->deleter(managed);
    }
    Managed* managed;
    bool armed = false;
  };
  auto owner = std::make_shared<Owner>();
  owner->managed = managed;
  memory.owner = owner;
  KILN_TRY(Tensor tensor, tensor_from_memory(device, *dtype, shape, strides, memory));
  owner->armed = true;
  return tensor;
}

template <class Managed>
struct Exported {
  Managed managed = {};
  Tensor tensor;
  std::vector<int64_t> shape, strides;
};

template <class Managed>
Result<Managed*> export_tensor(const Tensor& tensor) {
  if (!tensor || tensor.is_freed()) return freed_error("the tensor");
  if (!is_in_torch(tensor.dtype()))
    return error(ErrorKind::kUnsupported, "DLPack has no type for {}", name(tensor.dtype()));
  auto exported = std::make_unique<Exported<Managed>>();
  exported->tensor = tensor;
  exported->shape.assign(tensor.shape().begin(), tensor.shape().end());
  exported->strides.assign(tensor.strides().begin(), tensor.strides().end());
  Managed& managed = exported->managed;
  const Device device = tensor.device();
  managed.tensor.data = reinterpret_cast<void*>(tensor.address());
  managed.tensor.device = {device.is_cuda()     ? dlpack::kCuda
                           : tensor.is_pinned() ? dlpack::kCudaHost
                                                : dlpack::kCpu,
                           ordinal_of(device)};
  managed.tensor.ndim = tensor.rank();
  managed.tensor.dtype = data_type_of(tensor.dtype());
  managed.tensor.shape = exported->shape.data();
  managed.tensor.strides = exported->strides.data();
  // The consumer calls it once, on any thread; until then the tensor in `context` keeps the memory.
  managed.deleter = [](Managed* m) { delete static_cast<Exported<Managed>*>(m->context); };
  managed.context = exported.get();
  return &exported.release()->managed;
}

Result<Tensor> take_over_versioned(DLManagedTensorVersioned* tensor, const std::variant<Device, Runtime>& where) {
  // A major version may change the structure behind the first fields.
  if (tensor && tensor->version.major != dlpack::kVersion.major)
    return error(ErrorKind::kUnsupported, "a DLPack tensor of version {}.{}; Kiln reads version 1",
                 tensor->version.major, tensor->version.minor);
  return take_over(tensor, where);
}

}  // namespace

Result<Tensor> from_dlpack(DLManagedTensor* tensor, const Runtime& runtime) { return take_over(tensor, runtime); }
Result<Tensor> from_dlpack(DLManagedTensorVersioned* tensor, const Runtime& runtime) {
  return take_over_versioned(tensor, runtime);
}
Result<Tensor> from_dlpack(DLManagedTensor* tensor, const Device& device) { return take_over(tensor, device); }
Result<Tensor> from_dlpack(DLManagedTensorVersioned* tensor, const Device& device) {
  return take_over_versioned(tensor, device);
}

Result<DLManagedTensor*> to_dlpack(const Tensor& tensor) { return export_tensor<DLManagedTensor>(tensor); }

Result<DLManagedTensorVersioned*> to_dlpack_versioned(const Tensor& tensor) {
  KILN_TRY(DLManagedTensorVersioned * managed, export_tensor<DLManagedTensorVersioned>(tensor));
  managed->version = dlpack::kVersion;
  return managed;
}

}  // namespace kiln
