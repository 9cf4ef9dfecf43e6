// include/kiln/kiln.h over the C++ API. Out of memory is the one exception that can come up here; it becomes an error
// too.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "kiln/image.h"
#include "kiln/interop.h"
#include "kiln/kiln.h"
#include "kiln/log.h"
#include "support/diag.h"
#include "support/launch_options.h"

using kiln::Diagnostic;
using kiln::ErrorKind;
using kiln::Status;

struct kiln_error {
  Diagnostic diagnostic;
  std::string text;
};
struct kiln_device {
  kiln::Device device;
  std::string target;
};
struct kiln_kernel {
  kiln::Kernel kernel;
};
struct kiln_image {
  kiln::Image image;
  std::string json;
};
struct kiln_function {
  kiln::LoadedImage loaded;
  // The streams that it was launched on, kept so that a launch makes none. None is taken out, and the map keeps its
  // elements where they are, so a launch on the last one takes no lock.
  using Streams = std::unordered_map<void*, kiln::Stream>;
  mutable std::mutex mutex;
  mutable Streams streams;
  mutable std::atomic<const Streams::value_type*> last_stream{nullptr};
};

namespace {

static_assert(static_cast<int>(ErrorKind::kSyntax) == KILN_ERROR_SYNTAX &&
              static_cast<int>(ErrorKind::kUnsupported) == KILN_ERROR_UNSUPPORTED &&
              static_cast<int>(ErrorKind::kLaunch) == KILN_ERROR_LAUNCH &&
              static_cast<int>(ErrorKind::kDevice) == KILN_ERROR_DEVICE &&
              static_cast<int>(ErrorKind::kInternal) == KILN_ERROR_INTERNAL);

kiln_error* make_error(Diagnostic d) {
  std::string text = render(d);
  return new kiln_error{std::move(d), std::move(text)};
}

// What is returned when there is no memory for an error: nobody frees it.
kiln_error* no_memory() noexcept {
  static kiln_error error{{ErrorKind::kMemory, "out of memory", {}, {}}, "error: out of memory\n"};
  return &error;
}

/// Runs `work`, a function that gives a Status, at the border to C.
template <class Work>
kiln_error* guarded(const Work& work) noexcept {
  try {
    Status status = work();
    return status.ok() ? nullptr : make_error(std::move(status.error()));
  } catch (const std::bad_alloc&) {
    return no_memory();
  } catch (const std::exception& e) {
    try {
      return make_error(kiln::error(ErrorKind::kInternal, "{}", e.what()));
    } catch (...) {
      return no_memory();
    }
  }
}

Diagnostic missing(const char* what) { return kiln::error(ErrorKind::kValue, "{} is NULL", what); }

/// The same for work that gives a handle: `*out` is NULL where it fails, so that callers may free it in any case.
template <class Handle, class Work>
kiln_error* guarded(Handle** out, const Work& work) noexcept {
  if (out) *out = nullptr;
  return guarded(work);
}

/// As much of a caller's structure as it has; the rest is 0.
template <class T>
kiln::Result<T> read_sized(const T* given, const char* name) {
  T out{};
  if (!given) return missing(name);
  // A size of 0 or of rubbish means that KILN_INIT was left out; no structure is near 4096 bytes.
  if (given->size < sizeof(size_t) || given->size > 4096)
    return kiln::error(ErrorKind::kValue, "{}.size is {}: set it with KILN_INIT", name, given->size);
  std::memcpy(&out, given, std::min(given->size, sizeof out));
  return out;
}
template <class T>
Status write_sized(T* target, const T& value, const char* name) {
  KILN_TRY([[maybe_unused]] T checked, read_sized(target, name));
  // The caller's own size stays: its structure may be older and shorter.
  const size_t size = target->size;
  std::memcpy(target, &value, std::min(size, sizeof value));
  target->size = size;
  return {};
}

/// "enable_fp_fusion=False": any row of launch_option.def, so that the structure need not grow with the table.
Status read_option(std::string_view text, kiln::CodeOptions& options) {
  const size_t equals = std::min(text.find('='), text.size());
  const kiln::LaunchOption* option = kiln::find_launch_option(text.substr(0, equals));
  if (!option) return kiln::error(ErrorKind::kName, "there is no launch option '{}'", text.substr(0, equals));
  return option->read(text.substr(std::min(equals + 1, text.size())), options);
}

Status read_texts(const char* const* texts, size_t count, const char* name, std::vector<std::string>& out) {
  if (count && !texts) return missing(name);
  for (size_t i = 0; i < count; ++i) {
    if (!texts[i]) return kiln::error(ErrorKind::kValue, "{}[{}] is NULL", name, i);
    out.emplace_back(texts[i]);
  }
  return {};
}

kiln::Result<kiln::ImageRequest> read_request(const kiln_compile_options* options) {
  KILN_TRY(const kiln_compile_options given, read_sized(options, "kiln_compile_options"));
  kiln::ImageRequest request;
  if (given.signature) request.signature = given.signature;
  KILN_CHECK_OK(read_texts(given.constexprs, given.num_constexprs, "constexprs", request.constexprs));
  if (given.target) request.target = given.target;
  if (given.device) request.device = given.device->device;
  if (given.num_warps) request.options.num_warps = given.num_warps;
  if (given.num_stages) request.options.num_stages = given.num_stages;
  if (given.num_ctas) request.options.num_ctas = given.num_ctas;
  if (given.maxnreg) request.options.maxnreg = given.maxnreg;
  std::vector<std::string> launch_options;
  KILN_CHECK_OK(read_texts(given.options, given.num_options, "options", launch_options));
  for (const std::string& option : launch_options) KILN_CHECK_OK(read_option(option, request.options));
  return request;
}

kiln_image* make_image(kiln::Image image) {
  std::string json = image.json();
  return new kiln_image{std::move(image), std::move(json)};
}

/// What the functions of C open devices of, which have no handle for it. Never destroyed: at exit the driver may be
/// gone before our statics are.
const kiln::Runtime& runtime_of_c() {
  static const auto* const made = new kiln::Runtime;
  return *made;
}

}  // namespace

extern "C" {

int kiln_api_version(void) { return KILN_API_VERSION; }
const char* kiln_version(void) { return KILN_VERSION; }

void kiln_set_log(kiln_log_function function, void* context) {
  // It is a small object, which std::function keeps within itself.
  if (!function) return kiln::set_log({});
  kiln::set_log([function, context](kiln::LogLevel level, std::string_view text) {
    function(context, static_cast<int>(level), std::string(text).c_str());
  });
}

// Of NULL, which is what success returns, they tell nothing.
kiln_error_kind kiln_error_get_kind(const kiln_error* error) {
  return error ? static_cast<kiln_error_kind>(error->diagnostic.kind) : KILN_ERROR_INTERNAL;
}
const char* kiln_error_message(const kiln_error* error) { return error ? error->diagnostic.message.c_str() : ""; }
const char* kiln_error_text(const kiln_error* error) { return error ? error->text.c_str() : ""; }
const char* kiln_error_file(const kiln_error* error) { return error ? error->diagnostic.place.file.c_str() : ""; }
int kiln_error_line(const kiln_error* error) { return error ? error->diagnostic.place.line : 0; }
int kiln_error_column(const kiln_error* error) { return error ? error->diagnostic.place.column : 0; }
void kiln_error_free(kiln_error* error) {
  if (error != no_memory()) delete error;
}

kiln_error* kiln_device_open(const char* name, kiln_device** device) {
  return guarded(device, [&]() -> Status {
    if (!device) return missing("device");
    KILN_TRY(kiln::Device opened, name ? runtime_of_c().open(name) : runtime_of_c().open_default());
    *device = new kiln_device{opened, opened.info().target};
    return {};
  });
}
kiln_error* kiln_device_from_cuda(void* cu_context, kiln_device** device) {
  return guarded(device, [&]() -> Status {
    if (!device) return missing("device");
    KILN_TRY(kiln::Device opened, kiln::device_from_cuda(runtime_of_c(), cu_context));
    *device = new kiln_device{opened, opened.info().target};
    return {};
  });
}
const char* kiln_device_name(const kiln_device* device) { return device ? device->device.name().c_str() : ""; }
const char* kiln_device_target(const kiln_device* device) { return device ? device->target.c_str() : ""; }
void kiln_device_free(kiln_device* device) { delete device; }

kiln_error* kiln_kernel_parse(const char* source, const char* file_name, const char* function, kiln_kernel** kernel) {
  return guarded(kernel, [&]() -> Status {
    if (!source || !kernel) return missing(source ? "kernel" : "source");
    KILN_TRY(kiln::Kernel parsed,
             kiln::Kernel::from_source(source, file_name ? file_name : "kernel.py", function ? function : ""));
    *kernel = new kiln_kernel{std::move(parsed)};
    return {};
  });
}
const char* kiln_kernel_name(const kiln_kernel* kernel) { return kernel ? kernel->kernel.name().c_str() : ""; }
void kiln_kernel_free(kiln_kernel* kernel) { delete kernel; }

kiln_error* kiln_compile(const kiln_kernel* kernel, const kiln_compile_options* options, kiln_image** image) {
  return guarded(image, [&]() -> Status {
    if (!kernel || !image) return missing(kernel ? "image" : "kernel");
    KILN_TRY(const kiln::ImageRequest request, read_request(options));
    KILN_TRY(kiln::Image made, kiln::compile_image(runtime_of_c(), kernel->kernel, request));
    *image = make_image(std::move(made));
    return {};
  });
}
kiln_error* kiln_compile_async(const kiln_kernel* kernel, const kiln_compile_options* options,
                               kiln_compiled_function done, void* context) {
  return guarded([&]() -> Status {
    if (!kernel || !done) return missing(kernel ? "done" : "kernel");
    KILN_TRY(kiln::ImageRequest request, read_request(options));
    kiln::compile_image_async(runtime_of_c(), kernel->kernel, std::move(request),
                              [done, context](kiln::Result<kiln::Image> made) {
                                kiln_image* image = nullptr;
                                kiln_error* error = guarded([&]() -> Status {
                                  KILN_TRY(kiln::Image given, std::move(made));
                                  image = make_image(std::move(given));
                                  return {};
                                });
                                done(context, error, image);
                              });
    return {};
  });
}
const char* kiln_image_ptx(const kiln_image* image) { return image ? image->image.info().ptx.c_str() : ""; }
const void* kiln_image_cubin(const kiln_image* image, size_t* size) {
  if (size) *size = 0;
  if (!image) return nullptr;
  const std::string& cubin = image->image.info().cubin;
  // A kernel for the CPU, or one that nothing assembled, has none.
  if (size) *size = cubin.size();
  return cubin.empty() ? nullptr : cubin.data();
}
const char* kiln_image_json(const kiln_image* image) { return image ? image->json.c_str() : ""; }
void kiln_image_free(kiln_image* image) { delete image; }

kiln_error* kiln_image_launch_info(const kiln_image* image, kiln_launch_info* info) {
  return guarded([&]() -> Status {
    if (!image) return missing("image");
    const kiln::KernelInfo& from = image->image.info();
    kiln_launch_info out{};
    out.name = from.name.c_str();
    out.threads = image->image.threads();
    out.num_ctas = from.num_ctas;
    out.num_params = static_cast<int>(image->image.params().size());
    out.num_tensor_maps = image->image.tensor_maps();
    out.shared_bytes = from.shared_bytes;
    out.registers = from.registers;
    out.spill_bytes = from.spill_bytes;
    out.launch_pdl = from.launch_pdl;
    out.symbol = image->image.symbol().c_str();
    return write_sized(info, out, "kiln_launch_info");
  });
}

kiln_error* kiln_image_tensor_map(const kiln_image* image, int index, const uint64_t* slots, size_t num_slots,
                                  kiln_tensor_map* map) {
  return guarded([&]() -> Status {
    if (!image || (num_slots && !slots)) return missing(image ? "slots" : "image");
    KILN_TRY(const kiln::TensorMapArguments from, image->image.tensor_map(index, {slots, num_slots}));
    kiln_tensor_map out{};
    out.data_type = from.data_type;
    out.rank = from.rank;
    out.address = from.address;
    std::memcpy(out.sizes, from.sizes.data(), sizeof out.sizes);
    std::memcpy(out.strides, from.strides.data(), sizeof out.strides);
    std::memcpy(out.box, from.box.data(), sizeof out.box);
    out.swizzle = from.swizzle;
    out.stored = from.stored;
    out.empty = from.empty;
    return write_sized(map, out, "kiln_tensor_map");
  });
}

kiln_error* kiln_load(const kiln_image* image, const kiln_device* device, kiln_function** function) {
  return guarded(function, [&]() -> Status {
    if (!image || !device || !function) return missing(!image ? "image" : !device ? "device" : "function");
    KILN_TRY(kiln::LoadedImage loaded, kiln::LoadedImage::load(image->image, device->device));
    auto made = std::make_unique<kiln_function>();
    made->loaded = std::move(loaded);
    *function = made.release();
    return {};
  });
}

kiln_error* kiln_launch(const kiln_function* function, uint32_t x, uint32_t y, uint32_t z, const uint64_t* slots,
                        size_t num_slots, void* cu_stream) {
  return guarded([&]() -> Status {
    if (!function || (num_slots && !slots)) return missing(function ? "slots" : "function");
    const kiln::LoadedImage& loaded = function->loaded;
    const std::array<int64_t, 3> grid = {x, y, z};
    if (const auto* last = function->last_stream.load(std::memory_order_acquire); last && last->first == cu_stream)
      return loaded.launch(grid, {slots, num_slots}, last->second);
    const kiln::Device& device = loaded.device();
    if (cu_stream && !device.is_cuda())
      return kiln::error(ErrorKind::kValue, "kernel '{}' is on the CPU, which has no CUstream",
                         loaded.image().info().name);
    std::unique_lock lock(function->mutex);
    auto& kept = *function->streams.try_emplace(cu_stream).first;
    if (!kept.second) {
      KILN_TRY(kept.second, device.is_cuda() ? kiln::stream_from_cuda(device, cu_stream) : device.default_stream());
    }
    function->last_stream.store(&kept, std::memory_order_release);
    lock.unlock();
    return loaded.launch(grid, {slots, num_slots}, kept.second);
  });
}
void kiln_function_free(kiln_function* function) { delete function; }

}  // extern "C"
