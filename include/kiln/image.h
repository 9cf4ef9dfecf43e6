// Compiled code as data: PTX or a cubin, with everything that a launcher must know, for callers with one of their own.
// And the launch of such code with plain argument slots.
#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kiln/code_warning.h"
#include "kiln/device.h"
#include "kiln/kernel.h"
#include "kiln/kernel_info.h"
#include "kiln/launch_options.h"
#include "kiln/result.h"
#include "kiln/runtime.h"

namespace kiln {

namespace runtime {
struct ImageImpl;
class LoadedKernel;
}  // namespace runtime

/// What to compile a kernel for, without arguments.
struct ImageRequest {
  /// A type for each parameter that is no constexpr, as `kiln compile --signature` takes them: "*fp16:16, i32, i64:16".
  /// `:16` promises that the address or integer is a multiple of 16.
  std::string signature = {};
  std::vector<std::string> constexprs = {};  // "BLOCK=1024", "DTYPE=tl.float16"
  std::string target = {};                   // "sm_90a", "host"; empty: of `device`
  Device device = {};                        // empty: the runtime's default one, unless there is a target
  CodeOptions options = {};
  /// What tl.dot takes for an input_precision that a call does not give, before its allow_tf32: "ieee"; "": tf32.
  /// Unset: TRITON_F32_DEFAULT.
  std::optional<std::string> dot_precision = {};
  bool as_triton = false;  // what Triton refuses is an error, though Kiln has a meaning for it
  bool line_info = true;   // on a GPU: the code leads back to lines of the source
  /// Gets each line of tl.static_print, on the thread that compiles; null: standard error. Code from a cache has none;
  /// what was said to a listener is not kept in one.
  std::function<void(const std::string&)> on_static_print = {};
  /// The same for warnings, of which one place may have several; null: they are dropped.
  std::function<void(const CodeWarning&)> on_warning = {};
};

/// One parameter of the code, constexprs being gone: a slot of 8 bytes, of which the low `bytes` count.
struct ImageParam {
  std::string name;
  std::string type;  // "*f16", "i32"
  int bytes = 0;
  bool written = false;  // a pointer that the code stores to, or may
};

/// The arguments of cuTensorMapEncodeTiled for one tensor map; the others are CU_TENSOR_MAP_INTERLEAVE_NONE, element
/// strides of 1, CU_TENSOR_MAP_L2_PROMOTION_L2_256B and CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE. Innermost dimension first.
struct TensorMapArguments {
  int data_type = 0;  // a CUtensorMapDataType
  int rank = 0;
  uint64_t address = 0;
  std::array<uint64_t, 5> sizes = {};    // in elements
  std::array<uint64_t, 5> strides = {};  // in bytes, of the second dimension on
  std::array<uint32_t, 5> box = {};      // in elements
  int swizzle = 0;                       // a CUtensorMapSwizzle
  bool stored = false;                   // written, not read
  /// The tensor has no elements: `address` must be replaced by that of 256 bytes on the device.
  bool empty = false;
};

/// Code of one specialisation. On a GPU it is launched with
///   grid     {x · num_ctas, y, z} blocks; the size of the cluster is part of the code
///   block    {threads(), 1, 1}
///   shared   info().shared_bytes, also as CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
///   params   params(), then tensor_maps() maps of 128 bytes each
class Image {
 public:
  Image() = default;
  explicit Image(std::shared_ptr<const runtime::ImageImpl> impl) : impl_(std::move(impl)) {}
  explicit operator bool() const { return impl_ != nullptr; }

  const KernelInfo& info() const;
  std::span<const ImageParam> params() const;
  /// The name of the code's entry: info().name, whose letters outside of ASCII PTX does not have.
  const std::string& symbol() const;
  int threads() const;
  int tensor_maps() const;
  /// For a launch with these slots, one per parameter. kLaunch, naming the tensor: TMA cannot reach it.
  Result<TensorMapArguments> tensor_map(int index, std::span<const uint64_t> slots) const;
  /// All of it but the code, as JSON (docs/embedding.md).
  std::string json() const;
  /// The same as bytes, from which the same version of Kiln makes an image again, without code: for launchers that keep
  /// the code themselves.
  std::string plan() const;
  /// kValue: the bytes are none of plan()'s.
  static Result<Image> from_plan(std::string_view plan);
  const std::shared_ptr<const runtime::ImageImpl>& impl() const { return impl_; }

 private:
  std::shared_ptr<const runtime::ImageImpl> impl_;
};

/// Errors of the source have their place in it. Where no assembler is found (the driver of the same GPU, nvJitLink,
/// ptxas) the image has PTX and no cubin, and the driver compiles that when it is loaded.
Result<Image> compile_image(const Runtime& runtime, const Kernel& kernel, const ImageRequest& request);

/// The same on a thread of Kiln's, as many at a time as the machine has threads. `done` is called there once, with what
/// compile_image() gives, and may call Kiln; what it throws is logged. The kernel's and the runtime's handles may go
/// meanwhile. A program that ends before waits for what has begun, and drops the others.
void compile_image_async(const Runtime& runtime, Kernel kernel, ImageRequest request,
                         std::function<void(Result<Image>)> done);

/// Names Kiln, its compiler and the assembler that compile_image uses for a target when it is given no device: images
/// of other names may differ, so caches of images have it in their keys.
std::string image_fingerprint(const Runtime& runtime, std::string_view target);

/// An image on a device. Where it has a second code, for grids that fit on the GPU at once, launches choose.
class LoadedImage {
 public:
  LoadedImage() = default;
  /// kValue when the device runs another target.
  static Result<LoadedImage> load(const Image& image, const Device& device);
  explicit operator bool() const { return loaded_ != nullptr; }

  /// One slot per parameter: a pointer, or the low bytes of a number. What the signature promised is not checked.
  /// Neither waits nor allocates on a GPU; memory of Kiln's tensors must be kept until the work is done. An empty
  /// stream is the thread's current one.
  Status launch(std::array<int64_t, 3> grid, std::span<const uint64_t> slots, const Stream& stream = {}) const;
  const Image& image() const { return image_; }
  const Device& device() const { return device_; }

 private:
  Image image_;
  Device device_;  // outlives `loaded_`
  std::shared_ptr<runtime::LoadedKernel> loaded_;
};

}  // namespace kiln
