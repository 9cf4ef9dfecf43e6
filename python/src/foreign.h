// Tensors and arrays of other libraries, as Python objects: what their memory is. Nothing is copied.
#pragma once
#include <array>
#include <optional>
#include <span>
#include <string>

#include "kiln/dtype.h"
#include "python/src/object.h"

namespace kiln::python {

struct ForeignWords {
  PyObject *data_ptr, *dtype, *get_device, *device, *type, *array, *array_struct, *cuda_array, *dlpack, *dlpack_device;
};
const ForeignWords& foreign_words();

/// How objects of a type are read. Asked for once for each type. kExchange is torch's own tensors, kTorch what else has
/// their methods, kMasked numpy's arrays whose mask nobody would see, kBool numpy's bools.
enum class Receiver : uint8_t {
  kExchange,
  kTorch,
  kNumpy,
  kMasked,
  kCudaArray,
  kDlpack,
  kBool,
  kInteger,
  kReal,
  kOther
};
Receiver receiver_of(PyObject* object);

/// What __array_struct__ points to (numpy's PyArrayInterface): the same as __array_interface__, without a dict.
struct ArrayStruct {
  int two, rank;
  char kind;
  int bytes, flags;
  intptr_t *shape, *strides;
  void* data;
};

/// Of torch's dtype objects, of which there is one for each type.
std::optional<DType> torch_dtype(PyObject* dtype);
/// By numpy's letter of a kind and bytes.
std::optional<DType> array_dtype(char kind, int bytes);
/// "<f4" of array interfaces.
std::optional<DType> typestr_dtype(std::string_view text);
std::optional<DType> dlpack_dtype(uint8_t code, uint8_t bits);

/// What is wrong with a masked array, behind "argument 'x' is ".
inline constexpr const char* kMaskedArray =
    "a masked array, whose mask would be lost: x.filled(value) is an array without, x.data the one beneath it";
/// The address of a tensor's memory by torch's methods; behind "argument 'x' is " what it is instead where it has none.
struct TorchMemory {
  uint64_t address = 0;
  std::string problem;
};
TorchMemory torch_memory(PyObject* tensor);

/// A tensor's memory.
struct ForeignTensor {
  static constexpr int kMostRank = 16;
  DType dtype{};
  int device = -1;  // of CUDA; -1: the CPU
  int rank = 0;
  uint64_t address = 0;
  std::array<int64_t, kMostRank> shape, strides;  // in elements
  std::span<const int64_t> sizes() const { return {shape.data(), static_cast<size_t>(rank)}; }
  std::span<const int64_t> steps() const { return {strides.data(), static_cast<size_t>(rank)}; }
  /// Bytes from the address to the end of the last element.
  int64_t bytes() const;
};
/// TypeError or ValueError says why an object is none that an expression can read.
ForeignTensor read_foreign(PyObject* object);

}  // namespace kiln::python
