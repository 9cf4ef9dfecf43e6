// Tensors: typed, strided views of storage on a device. A Tensor is a handle; copies share storage.
#pragma once
#include <concepts>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kiln/device.h"
#include "kiln/dims.h"
#include "kiln/dtype.h"
#include "kiln/result.h"

namespace kiln {

namespace runtime {
struct Storage;
}

/// A number that fills a tensor. An integer keeps its 64 bits, of which a double has 53.
struct FillValue {
  constexpr FillValue(std::integral auto v) : integer(static_cast<int64_t>(v)), is_integer(true) {}
  constexpr FillValue(std::floating_point auto v) : real(static_cast<double>(v)) {}
  constexpr double as_double() const { return is_integer ? static_cast<double>(integer) : real; }

  double real = 0;
  int64_t integer = 0;
  bool is_integer = false;
};

struct ForeignMemory;

class Tensor {
 public:
  Tensor() = default;

  /// Uninitialised, row-major. kMemory gives the requested and the free bytes.
  static Result<Tensor> empty(const Device& device, DType dtype, std::span<const int64_t> shape);
  static Result<Tensor> zeros(const Device& device, DType dtype, std::span<const int64_t> shape);
  /// Every element equal to `value`, converted to dtype as kernels convert.
  static Result<Tensor> full(const Device& device, DType dtype, std::span<const int64_t> shape, FillValue value);
  /// Uninitialised, row-major, on the cpu, in memory pinned for `gpu`, as queued copies need.
  /// kUnsupported when that is the CPU.
  static Result<Tensor> empty_pinned(const Device& gpu, DType dtype, std::span<const int64_t> shape);
  /// Copies `bytes` (numel · element size, row-major) to the device.
  static Result<Tensor> from_host(const Device& device, DType dtype, std::span<const int64_t> shape, const void* data,
                                  size_t bytes);

  explicit operator bool() const { return storage_ != nullptr; }
  DType dtype() const { return dtype_; }
  std::span<const int64_t> shape() const { return shape_; }
  std::span<const int64_t> strides() const { return strides_; }  // in elements
  int rank() const { return static_cast<int>(shape_.size()); }
  int64_t numel() const;
  int64_t offset() const { return offset_; }  // elements from the start of the storage
  bool is_contiguous() const;
  Device device() const;
  /// Address that a kernel gets: storage start + offset. Not dereferenceable by the host on a GPU.
  uint64_t address() const;
  /// Bytes from address() to the end of the storage: the range of a checked access.
  int64_t bytes_available() const;
  bool is_freed() const;
  bool is_pinned() const;
  /// Tensors that share its memory, itself too; of memory that is somebody else's or pinned, INT64_MAX.
  int64_t holders() const;
  /// Declares work on it that Kiln did not queue (a library's own): its memory is not reused before that work is
  /// done.
  void used_on(const Stream& stream) const;
  /// Frees the storage now; every view of it is freed too, and using one is an error.
  void free();

  /// Another view of the same storage; ErrorKind::kValue when it would exceed it.
  Result<Tensor> as_strided(std::span<const int64_t> shape, std::span<const int64_t> strides, int64_t offset) const;
  /// A row-major tensor of that shape (one -1 allowed): a view when strides allow, else kValue.
  Result<Tensor> view(std::span<const int64_t> shape) const;
  /// The same bytes as row-major elements of another dtype; kValue when they do not suffice, or this has gaps.
  Result<Tensor> bits_as(DType dtype, std::span<const int64_t> shape) const;
  Result<Tensor> contiguous() const;  // itself when it is already
  Result<Tensor> to(DType dtype) const;
  Result<Tensor> to(const Device& device) const;
  /// Same shape and dtype.
  Status copy_from(const Tensor& other) const;
  /// As copy_from(), but between a GPU and pinned memory, both contiguous, the copy is only queued on the current
  /// stream: neither side may be changed, nor the target read, before the stream has passed. Other copies are done at
  /// once.
  Status queue_copy_from(const Tensor& other) const;
  Status fill(FillValue value) const;

  /// Row-major bytes on the host (waits for the device).
  Result<std::vector<std::byte>> to_bytes() const;
  /// Elements as float64 (integers above 2^53 lose low bits).
  Result<std::vector<double>> to_doubles() const;
  const std::shared_ptr<runtime::Storage>& storage() const { return storage_; }

 private:
  friend Result<Tensor> tensor_from_memory(const Device&, DType, std::span<const int64_t>, std::span<const int64_t>,
                                           const ForeignMemory&);
  /// Row-major.
  static Tensor all_of(std::shared_ptr<runtime::Storage> storage, DType dtype, std::span<const int64_t> shape);
  Status copy(const Tensor& other, bool may_queue) const;

  std::shared_ptr<runtime::Storage> storage_;
  DType dtype_ = DType::kF32;
  int64_t offset_ = 0;
  Dims shape_, strides_;
};

/// Deterministic normals and uniforms: the same seed gives the same numbers on every device.
Result<Tensor> randn(const Device& device, DType dtype, std::span<const int64_t> shape, uint64_t seed);
Result<Tensor> rand(const Device& device, DType dtype, std::span<const int64_t> shape, uint64_t seed);
/// Integers in [low, high).
Result<Tensor> randint(const Device& device, DType dtype, std::span<const int64_t> shape, int64_t low, int64_t high,
                       uint64_t seed);

/// Conversions between an element's bits and double, rounding as kernels do (nearest even; fp8 saturates; → bool is !=
/// 0).
double to_double(DType dtype, const void* element);
void from_double(DType dtype, double value, void* element);

}  // namespace kiln
