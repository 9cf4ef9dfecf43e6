#include "kiln/tensor.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "kiln/interop.h"
#include "runtime/device/device.h"
#include "runtime/device/device_kernels.h"
#include "runtime/device/native.h"
#include "runtime/tensor/convert.h"
#include "support/diag.h"
#include "support/pieces.h"

namespace kiln {

using namespace runtime;

namespace {

std::string shape_text(std::span<const int64_t> shape) { return fmt::format("[{}]", fmt::join(shape, ", ")); }

Dims row_major(std::span<const int64_t> shape) {
  Dims strides(shape.size());
  int64_t step = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    strides[i] = step;
    // As PyTorch: an empty dimension counts as 1, so that no stride is 0.
    step *= std::max<int64_t>(shape[i], 1);
  }
  return strides;
}

// Product of the sizes; kValue for a negative size or more bytes than an address can count.
Result<int64_t> checked_numel(std::span<const int64_t> shape, DType dtype) {
  int64_t n = 1;
  bool empty = false;
  for (int64_t size : shape) {
    if (size < 0)
      return error(ErrorKind::kValue, "a tensor's sizes must not be negative, got shape {}", shape_text(shape));
    // A 0 does not excuse an overflow of the others: the strides are their products.
    if (size == 0)
      empty = true;
    else if (__builtin_mul_overflow(n, size, &n))
      return error(ErrorKind::kValue, "shape {} has too many elements", shape_text(shape));
  }
  if (n > INT64_MAX / size_of(dtype))
    return error(ErrorKind::kValue, "shape {} has too many elements", shape_text(shape));
  return empty ? 0 : n;
}

// Elements from the first to one past the last that a strided view touches.
// Strides are not negative (as_strided), so the last element lies highest.
int64_t span_elements(std::span<const int64_t> shape, std::span<const int64_t> strides) {
  int64_t last = 0;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == 0) return 0;
    last += (shape[i] - 1) * strides[i];
  }
  return last + 1;
}

// args: target, its dtype, source, its dtype, count.
void native_convert(const uint64_t* args, const int32_t*, int64_t first, int64_t last, void*) {
  auto to = static_cast<DType>(args[1]), from = static_cast<DType>(args[3]);
  int64_t begin = first * kNativeBlock, end = std::min(static_cast<int64_t>(args[4]), last * kNativeBlock);
  convert_elements(from, reinterpret_cast<const char*>(args[2]) + begin * size_of(from), to,
                   reinterpret_cast<char*>(args[0]) + begin * size_of(to), end - begin);
}

// The unsigned integers of an element size: what a copy needs to know of a dtype.
DType bits_dtype(DType t) {
  switch (size_of(t)) {
    case 1:
      return DType::kU8;
    case 2:
      return DType::kU16;
    case 4:
      return DType::kU32;
    default:
      return DType::kU64;
  }
}

Backend& backend_of(const Storage& storage) { return storage.device->backend(); }

/// The thread's stream of the storage's device, which the storage knows of then.
StreamImpl& stream_of(Storage& storage) {
  Backend& backend = backend_of(storage);
  StreamImpl& stream = backend.current_stream();
  if (&stream != &backend.default_stream()) storage.used_on(stream);
  return stream;
}

/// Whether a kernel does it rather than the host: it is large, or is being recorded, which the host's work cannot be.
bool is_work_for_device(Storage& storage, int64_t bytes) {
  return storage.device->is_cuda() && (bytes >= kDeviceKernelBytes || stream_of(storage).is_capturing());
}

}  // namespace

Result<Tensor> Tensor::empty(const Device& device, DType dtype, std::span<const int64_t> shape) {
  if (!device) return error(ErrorKind::kDevice, "a tensor needs a device");
  KILN_TRY(int64_t n, checked_numel(shape, dtype));
  KILN_TRY(std::shared_ptr<Storage> storage, allocate_storage(device, n * size_of(dtype)));
  return all_of(std::move(storage), dtype, shape);
}

Tensor Tensor::all_of(std::shared_ptr<Storage> storage, DType dtype, std::span<const int64_t> shape) {
  Tensor t;
  t.storage_ = std::move(storage);
  t.dtype_ = dtype;
  t.shape_ = shape;
  t.strides_ = row_major(shape);
  return t;
}

Result<Tensor> Tensor::zeros(const Device& device, DType dtype, std::span<const int64_t> shape) {
  return full(device, dtype, shape, 0.0);
}

Result<Tensor> Tensor::full(const Device& device, DType dtype, std::span<const int64_t> shape, FillValue value) {
  KILN_TRY(Tensor t, empty(device, dtype, shape));
  KILN_CHECK_OK(t.fill(value));
  return t;
}

Result<Tensor> Tensor::empty_pinned(const Device& gpu, DType dtype, std::span<const int64_t> shape) {
  if (!gpu) return error(ErrorKind::kDevice, "pinned memory needs the GPU that will copy from it");
  KILN_TRY(int64_t n, checked_numel(shape, dtype));
  KILN_TRY(std::shared_ptr<Storage> storage, allocate_pinned(gpu, n * size_of(dtype)));
  return all_of(std::move(storage), dtype, shape);
}

Result<Tensor> Tensor::from_host(const Device& device, DType dtype, std::span<const int64_t> shape, const void* data,
                                 size_t bytes) {
  KILN_TRY(Tensor t, empty(device, dtype, shape));
  auto needed = static_cast<size_t>(t.numel() * size_of(dtype));
  if (bytes != needed)
    return error(ErrorKind::kValue, "a tensor of shape {} and dtype {} has {} bytes, got {}", shape_text(shape),
                 kiln::name(dtype), needed, bytes);
  // In pieces, so that Ctrl-C can come in between.
  KILN_CHECK_OK(in_pieces_of(bytes, [&](size_t first, size_t last) {
    return backend_of(*t.storage_)
        .copy_in(t.address() + first, static_cast<const std::byte*>(data) + first, last - first,
                 stream_of(*t.storage_));
  }));
  return t;
}

Result<Tensor> tensor_from_memory(const Device& device, DType dtype, std::span<const int64_t> shape,
                                  std::span<const int64_t> strides, const ForeignMemory& memory) {
  if (!device) return error(ErrorKind::kDevice, "a tensor needs a device");
  KILN_TRY(int64_t n, checked_numel(shape, dtype));
  if (memory.bytes < 0 || (n > 0 && memory.address == 0))
    return error(ErrorKind::kValue, "a tensor of shape {} cannot have {} bytes at address {:#x}", shape_text(shape),
                 memory.bytes, memory.address);
  if (memory.address % static_cast<uint64_t>(size_of(dtype)))
    return error(ErrorKind::kValue, "the address {:#x} is no multiple of the {} bytes of {}", memory.address,
                 size_of(dtype), kiln::name(dtype));
  auto storage = std::make_shared<Storage>(device.impl()->shared_from_this(),
                                           memory.address ? memory.address : kNowhere, memory.bytes, memory.owner);
  const Tensor all = Tensor::all_of(std::move(storage), dtype, shape);
  return all.as_strided(shape, strides.empty() ? all.strides() : strides, 0);
}

int64_t Tensor::numel() const {
  int64_t n = 1;
  for (int64_t size : shape_) n *= size;
  return n;
}

bool Tensor::is_contiguous() const {
  int64_t step = 1;
  for (size_t i = shape_.size(); i-- > 0;) {
    if (shape_[i] == 0) return true;
    // A dimension of size 1 may have any stride, as in PyTorch.
    if (shape_[i] != 1 && strides_[i] != step) return false;
    step *= shape_[i];
  }
  return true;
}

Device Tensor::device() const { return storage_ ? Device(storage_->device) : Device(); }

uint64_t Tensor::address() const {
  return storage_ ? storage_->address() + static_cast<uint64_t>(offset_ * size_of(dtype_)) : 0;
}

int64_t Tensor::bytes_available() const {
  return storage_ && !storage_->is_freed() ? storage_->bytes - offset_ * size_of(dtype_) : 0;
}

bool Tensor::is_freed() const { return storage_ && storage_->is_freed(); }
bool Tensor::is_pinned() const { return storage_ && storage_->is_pinned(); }
int64_t Tensor::holders() const {
  // Of memory that others own nobody here knows who else reads it.
  return storage_->is_foreign() || storage_->is_pinned() ? INT64_MAX : storage_.use_count();
}
void Tensor::used_on(const Stream& stream) const {
  if (storage_ && stream) storage_->used_on(*stream.impl());
}

void Tensor::free() {
  if (storage_) storage_->free();
}

Result<Tensor> Tensor::as_strided(std::span<const int64_t> shape, std::span<const int64_t> strides,
                                  int64_t offset) const {
  if (!storage_) return error(ErrorKind::kValue, "as_strided of an empty tensor handle");
  if (is_freed()) return freed_error("the tensor");
  if (shape.size() != strides.size())
    return error(ErrorKind::kValue, "as_strided needs a stride per dimension: {} sizes, {} strides", shape.size(),
                 strides.size());
  KILN_TRY(int64_t n, checked_numel(shape, dtype_));
  if (offset < 0 || std::any_of(strides.begin(), strides.end(), [](int64_t s) { return s < 0; }))
    return error(ErrorKind::kValue, "strides and offset must not be negative, got strides {} and offset {}",
                 shape_text(strides), offset);
  int64_t capacity = storage_->bytes / size_of(dtype_);
  // In 128 bits: sizes times strides may overflow 64.
  __int128 end = offset;
  for (size_t i = 0; i < shape.size(); ++i)
    end += static_cast<__int128>(std::max<int64_t>(shape[i] - 1, 0)) * strides[i];
  if (n > 0 && end >= capacity)
    return error(ErrorKind::kValue,
                 "a view with shape {}, strides {} and offset {} reaches outside of its storage of {} elements",
                 shape_text(shape), shape_text(strides), offset, capacity);
  Tensor t = *this;
  t.shape_ = shape;
  t.strides_ = strides;
  t.offset_ = n > 0 ? offset : std::min(offset, capacity);  // the last row of a [2, 0] begins behind the storage
  return t;
}

Result<Tensor> Tensor::view(std::span<const int64_t> shape) const {
  if (!storage_) return error(ErrorKind::kValue, "view of an empty tensor handle");
  if (is_freed()) return freed_error("the tensor");
  Dims sizes(shape);
  int64_t known = 1;
  int open = -1;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] == -1 && open < 0)
      open = static_cast<int>(i);
    else if (sizes[i] < 0)
      return error(ErrorKind::kValue, "a view's shape takes one -1 and no other negative size, got {}",
                   shape_text(shape));
    else if (__builtin_mul_overflow(known, sizes[i], &known))
      return error(ErrorKind::kValue, "shape {} has too many elements", shape_text(shape));
  }
  int64_t n = numel();
  if (open >= 0) {
    // With a 0 among the sizes every value would fit the -1; PyTorch refuses that too.
    if (known == 0 || n % known != 0)
      return error(ErrorKind::kValue, "shape {} cannot view {} elements of shape {}", shape_text(shape), n,
                   shape_text(shape_));
    sizes[static_cast<size_t>(open)] = n / known;
  } else if (known != n) {
    return error(ErrorKind::kValue, "shape {} cannot view {} elements of shape {}", shape_text(shape), n,
                 shape_text(shape_));
  }
  Tensor t = *this;
  t.shape_ = sizes;
  t.strides_ = row_major(sizes);
  if (n == 0 || is_contiguous()) return t;
  // Each maximal group of old dimensions that is contiguous in itself is cut into new dimensions, from the innermost
  // on.
  auto cannot = [&] {
    return with_note(error(ErrorKind::kValue, "a view of shape {} is not possible: shape {} has strides {}",
                           shape_text(shape), shape_text(shape_), shape_text(strides_)),
                     "help: use reshape or contiguous(), which copy");
  };
  size_t next = sizes.size();
  for (size_t i = shape_.size(); i-- > 0;) {
    int64_t group = shape_[i], stride = strides_[i];
    // A dimension of size 1 belongs to any group, whatever its stride says.
    while (i > 0 && (shape_[i - 1] == 1 || strides_[i - 1] == group * stride || group == 1)) {
      --i;
      if (group == 1) stride = strides_[i];
      group *= shape_[i];
    }
    int64_t covered = 1;
    while (next > 0 && (covered < group || sizes[next - 1] == 1)) {
      --next;
      t.strides_[next] = stride * covered;
      covered *= sizes[next];
    }
    if (covered != group) return cannot();
  }
  return t;
}

Result<Tensor> Tensor::bits_as(DType dtype, std::span<const int64_t> shape) const {
  if (!storage_) return error(ErrorKind::kValue, "bits of an empty tensor handle");
  if (is_freed()) return freed_error("the tensor");
  int64_t elements = 1;
  for (int64_t d : shape)
    if (d < 0 || __builtin_mul_overflow(elements, d, &elements))
      return error(ErrorKind::kValue, "the shape {} is not possible", shape_text(shape));
  const int64_t skipped = offset_ * size_of(dtype_);
  if (!is_contiguous() || skipped % size_of(dtype) || elements > numel() * size_of(dtype_) / size_of(dtype))
    return error(ErrorKind::kValue, "{} bytes of {} cannot be seen as {}{}", numel() * size_of(dtype_),
                 kiln::name(dtype_), kiln::name(dtype), shape_text(shape));
  Tensor t = *this;
  t.dtype_ = dtype;
  t.offset_ = skipped / size_of(dtype);
  t.shape_ = shape;
  t.strides_ = row_major(shape);
  return t;
}

Result<Tensor> Tensor::contiguous() const {
  if (!storage_) return error(ErrorKind::kValue, "contiguous of an empty tensor handle");
  if (is_freed()) return freed_error("the tensor");
  if (is_contiguous()) return *this;
  KILN_TRY(Tensor t, empty(device(), dtype_, shape_));
  KILN_CHECK_OK(t.copy_from(*this));
  return t;
}

Result<Tensor> Tensor::to(DType dtype) const {
  if (!storage_) return error(ErrorKind::kValue, "to of an empty tensor handle");
  if (is_freed()) return freed_error("the tensor");
  if (dtype == dtype_) return *this;
  int64_t n = numel();
  if (!storage_->device->is_cuda()) {
    KILN_TRY(Tensor source, contiguous());
    KILN_TRY(Tensor target, empty(device(), dtype, shape_));
    const uint64_t slots[] = {target.address(), static_cast<uint64_t>(dtype), source.address(),
                              static_cast<uint64_t>(dtype_), static_cast<uint64_t>(n)};
    if (n > 0) KILN_CHECK_OK(run_native(storage_->device->backend(), native_convert, "convert", slots, n));
    return target;
  }
  if (is_work_for_device(*storage_, storage_->bytes) && has_convert_kernel(dtype)) {
    KILN_TRY(Tensor source, contiguous());
    KILN_TRY(Tensor target, empty(device(), dtype, shape_));
    KILN_CHECK_OK(convert_on_device(target, source));
    return target;
  }
  KILN_TRY(std::vector<std::byte> source, to_bytes());
  std::vector<std::byte> target(static_cast<size_t>(n * size_of(dtype)));
  convert_elements(dtype_, source.data(), dtype, target.data(), n);
  return from_host(device(), dtype, shape_, target.data(), target.size());
}

Result<Tensor> Tensor::to(const Device& target) const {
  if (!storage_) return error(ErrorKind::kValue, "to of an empty tensor handle");
  if (is_freed()) return freed_error("the tensor");
  if (target == device()) return *this;
  KILN_TRY(Tensor t, empty(target, dtype_, shape_));
  KILN_CHECK_OK(t.copy_from(*this));
  return t;
}

Status Tensor::copy_from(const Tensor& other) const { return copy(other, false); }
Status Tensor::queue_copy_from(const Tensor& other) const { return copy(other, true); }

Status Tensor::copy(const Tensor& other, bool may_queue) const {
  if (!storage_ || !other.storage_) return error(ErrorKind::kValue, "copy of an empty tensor handle");
  if (is_freed()) return freed_error("the target of the copy");
  if (other.is_freed()) return freed_error("the source of the copy");
  if (dtype_ != other.dtype_ || shape_ != other.shape_)
    return error(ErrorKind::kType, "copy needs equal shapes and dtypes: {}{} from {}{}", kiln::name(dtype_),
                 shape_text(shape_), kiln::name(other.dtype_), shape_text(other.shape_));
  auto bytes = static_cast<size_t>(numel() * size_of(dtype_));
  if (bytes == 0) return {};
  Backend &to = backend_of(*storage_), &from = backend_of(*other.storage_);
  if (is_contiguous() && other.is_contiguous()) {
    StreamImpl &target_stream = stream_of(*storage_), &source_stream = stream_of(*other.storage_);
    if (target_stream.is_capturing())
      for (const auto& s : {storage_, other.storage_}) target_stream.keep_for_graph(s);
    // CUDA's copies must not overlap; what does is read first, further below.
    bool overlap = &to == &from && address() < other.address() + bytes && other.address() < address() + bytes;
    if (&to == &from && (!overlap || !storage_->device->is_cuda()))
      return to.copy(address(), other.address(), bytes, target_stream);
    if (&to != &from && !other.storage_->device->is_cuda()) {
      const bool queued = may_queue && other.is_pinned();
      KILN_CHECK_OK(to.copy_in(address(), reinterpret_cast<const void*>(other.address()), bytes, target_stream,
                               queued ? Backend::CopyReturns::kQueued : Backend::CopyReturns::kWhenDone));
      if (queued) storage_->device->keep_until_passed(other.storage_, target_stream);
      return {};
    }
    if (&to != &from && !storage_->device->is_cuda()) {
      const bool queued = may_queue && is_pinned();
      KILN_CHECK_OK(from.copy_out(reinterpret_cast<void*>(address()), other.address(), bytes, source_stream,
                                  queued ? Backend::CopyReturns::kQueued : Backend::CopyReturns::kWhenDone));
      if (queued) other.storage_->device->keep_until_passed(storage_, source_stream);
      return {};
    }
  }
  // However small it is: the host would wait for what made it.
  if (&to == &from && storage_->device->is_cuda()) {
    Tensor target = *this, source = other;
    if (storage_ == other.storage_) {
      KILN_TRY(source, empty(device(), dtype_, shape_));
      KILN_CHECK_OK(source.copy(other, false));
    }
    // A copy moves bits, so one kernel per element size serves all dtypes.
    target.dtype_ = source.dtype_ = bits_dtype(dtype_);
    return copy_on_device(target, source);
  }
  // To another device, or on the CPU.
  KILN_TRY(std::vector<std::byte> packed, other.to_bytes());
  if (is_contiguous()) return to.copy_in(address(), packed.data(), bytes, stream_of(*storage_));
  const Dims strides = row_major(shape_);
  if (!storage_->device->is_cuda()) {
    copy_strided(reinterpret_cast<void*>(address()), strides_, packed.data(), strides, shape_, size_of(dtype_));
    return {};
  }
  // The elements between those of the view keep their values.
  std::vector<std::byte> image(static_cast<size_t>(span_elements(shape_, strides_) * size_of(dtype_)));
  KILN_CHECK_OK(to.copy_out(image.data(), address(), image.size(), stream_of(*storage_)));
  copy_strided(image.data(), strides_, packed.data(), strides, shape_, size_of(dtype_));
  return to.copy_in(address(), image.data(), image.size(), stream_of(*storage_));
}

Status Tensor::fill(FillValue value) const {
  if (!storage_) return error(ErrorKind::kValue, "fill of an empty tensor handle");
  if (is_freed()) return freed_error("the tensor");
  uint64_t pattern = 0;
  if (value.is_integer && is_int(dtype_)) {
    const int64_t v = dtype_ == DType::kI1 ? value.integer != 0 : value.integer;
    std::memcpy(&pattern, &v, static_cast<size_t>(size_of(dtype_)));  // of narrower types the low bytes
  } else {
    from_double(dtype_, value.as_double(), &pattern);
  }
  Backend& backend = backend_of(*storage_);
  StreamImpl& stream = stream_of(*storage_);
  if (stream.is_capturing()) stream.keep_for_graph(storage_);
  if (is_contiguous()) return backend.fill(address(), pattern, size_of(dtype_), numel(), stream);
  // One element, read with strides of 0, so that only the view's own elements are written.
  std::vector<int64_t> zero(shape_.size(), 0);
  KILN_TRY(Tensor one, empty(device(), dtype_, std::span<const int64_t>()));
  KILN_CHECK_OK(backend.fill(one.address(), pattern, size_of(dtype_), 1, stream));
  KILN_TRY(Tensor spread, one.as_strided(shape_, zero, 0));
  return copy_from(spread);
}

Result<std::vector<std::byte>> Tensor::to_bytes() const {
  if (!storage_) return error(ErrorKind::kValue, "reading an empty tensor handle");
  if (is_freed()) return freed_error("the tensor");
  std::vector<std::byte> packed;
  const auto bytes = static_cast<size_t>(numel() * size_of(dtype_));
  if (bytes == 0) return packed;
  packed.reserve(bytes);
  Backend& backend = backend_of(*storage_);
  // What the host reads is finished, whichever stream made it.
  if (storage_->is_used_elsewhere(backend.current_stream())) KILN_CHECK_OK(backend.synchronize());
  if (is_contiguous()) {
    KILN_CHECK_OK(in_pieces_of(bytes, [&](size_t first, size_t last) {
      packed.resize(last);
      return backend.copy_out(packed.data() + first, address() + first, last - first, stream_of(*storage_));
    }));
    return packed;
  }
  packed.resize(bytes);
  std::vector<std::byte> image;
  const void* source = reinterpret_cast<const void*>(address());
  if (storage_->device->is_cuda()) {
    image.resize(static_cast<size_t>(span_elements(shape_, strides_) * size_of(dtype_)));
    KILN_CHECK_OK(backend.copy_out(image.data(), address(), image.size(), stream_of(*storage_)));
    source = image.data();
  }
  copy_strided(packed.data(), row_major(shape_), source, strides_, shape_, size_of(dtype_));
  return packed;
}

Result<std::vector<double>> Tensor::to_doubles() const {
  KILN_TRY(std::vector<std::byte> bytes, to_bytes());
  std::vector<double> values(static_cast<size_t>(numel()));
  convert_elements(dtype_, bytes.data(), DType::kF64, values.data(), numel());
  return values;
}

}  // namespace kiln
