#include "runtime/jit/image.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "compiler/frontend/constexpr_text.h"
#include "compiler/target/target.h"
#include "runtime/cuda/tensor_map_arguments.h"
#include "runtime/device/runtime.h"
#include "runtime/jit/cache.h"
#include "runtime/jit/compile_queue.h"
#include "runtime/jit/jit.h"
#include "runtime/launch/kernel_impl.h"
#include "runtime/launch/kernel_options.h"
#include "support/diag.h"
#include "support/log.h"
#include "support/ptx_name.h"

namespace kiln {

using namespace runtime;

namespace {

nlohmann::ordered_json recipe_json(const TensorMapRecipe& recipe) {
  auto texts = [](const std::vector<HostExpression>& all) {
    std::vector<std::string> out;
    for (const HostExpression& e : all) out.push_back(to_string(e));
    return out;
  };
  return {{"name", recipe.name},          {"dtype", name(recipe.dtype)},      {"base", to_string(recipe.base)},
          {"sizes", texts(recipe.sizes)}, {"strides", texts(recipe.strides)}, {"box", recipe.box},
          {"swizzle", recipe.swizzle},    {"stored", recipe.stored}};
}

Image image_of_code(std::shared_ptr<ImageImpl> impl) {
  impl->symbol = ptx_name(impl->kernel.name);
  for (const KernelParam& p : impl->kernel.params) {
    const bool pointer = p.type.pointer;
    impl->params.push_back({p.name, ir::to_string(p.type), pointer ? 8 : size_of(p.type.dtype), p.written});
  }
  return Image(std::move(impl));
}

std::vector<std::string_view> names_of_targets() {
  std::vector<std::string_view> names;
  for (const target::Target& t : target::all()) names.push_back(t.name);
  return names;
}

}  // namespace

const KernelInfo& Image::info() const { return impl_->kernel; }
std::span<const ImageParam> Image::params() const { return impl_->params; }
const std::string& Image::symbol() const { return impl_->symbol; }
int Image::threads() const { return 32 * (impl_->kernel.num_warps + impl_->kernel.extra_warps); }
int Image::tensor_maps() const { return static_cast<int>(impl_->kernel.tensor_maps.size()); }

Result<TensorMapArguments> Image::tensor_map(int index, std::span<const uint64_t> slots) const {
  if (index < 0 || index >= tensor_maps())
    return error(ErrorKind::kValue, "kernel '{}' has {} tensor maps, and {} is none of them", info().name,
                 tensor_maps(), index);
  if (slots.size() != params().size())
    return error(ErrorKind::kValue, "kernel '{}' has {} parameters, got {} slots", info().name, params().size(),
                 slots.size());
  return tensor_map_arguments(info().name, impl_->kernel.tensor_maps[static_cast<size_t>(index)], slots);
}

std::string Image::json() const {
  const CompiledKernel& k = impl_->kernel;
  nlohmann::ordered_json out = {{"kiln", KILN_VERSION}};
  for_each_field(k, [&](const KernelField& field, const auto& value) {
    // Texts are shown by themselves, times are of one compilation.
    if constexpr (!std::is_same_v<std::decay_t<decltype(value)>, std::vector<PhaseTime>>)
      if (!field.has('T')) out[std::string(field.name)] = value;
  });
  // It says how the kernel came about, not what it is.
  out.erase("from_cache");
  for (const char* unknown : {"registers", "spill_bytes"})
    if (out[unknown] == -1) out[unknown] = nullptr;
  out["symbol"] = symbol();
  out["threads"] = threads();
  out["params"] = nlohmann::ordered_json::array();
  for (const ImageParam& p : params())
    out["params"].push_back({{"name", p.name}, {"type", p.type}, {"bytes", p.bytes}, {"written", p.written}});
  out["tensor_maps"] = nlohmann::ordered_json::array();
  for (const TensorMapRecipe& recipe : k.tensor_maps) out["tensor_maps"].push_back(recipe_json(recipe));
  return out.dump();
}

Result<Image> compile_image(const Runtime& runtime, const Kernel& kernel, const ImageRequest& request) {
  if (!kernel) return error(ErrorKind::kValue, "compile_image needs a kernel, got an empty handle");
  const std::shared_ptr<const frontend::JitFunction>& function = kernel.impl()->function();
  std::vector<std::pair<std::string, frontend::Global>> constexprs;
  for (const std::string& text : request.constexprs) {
    KILN_TRY(constexprs.emplace_back(), frontend::parse_constexpr(text));
  }
  KILN_TRY(std::vector<frontend::ArgSpec> args, frontend::parse_signature(*function, request.signature, constexprs));
  return compile_specs(runtime, function, args, request);
}

void compile_image_async(const Runtime& runtime, Kernel kernel, ImageRequest request,
                         std::function<void(Result<Image>)> done) {
  runtime.impl().compilations().add(
      [runtime, kernel = std::move(kernel), request = std::move(request), done = std::move(done)] {
        try {
          done(compile_image(runtime, kernel, request));
        } catch (const std::exception& e) {
          write_log(LogLevel::kWarning, fmt::format("a function given to compile_image_async threw: {}", e.what()));
        } catch (...) {
          write_log(LogLevel::kWarning, "a function given to compile_image_async threw");
        }
      });
}

Result<Image> runtime::compile_specs(const Runtime& runtime,
                                     const std::shared_ptr<const frontend::JitFunction>& function,
                                     std::span<const frontend::ArgSpec> args, const ImageRequest& request) {
  LaunchOptions options;
  static_cast<CodeOptions&>(options) = request.options;
  KILN_CHECK_OK(check_options(function->def->name, options));
  std::string target = request.target;
  Device device = request.device;
  if (!device && target.empty()) {
    KILN_TRY(device, runtime.open_default());
  }
  if (target.empty()) target = device.impl()->target();
  if (!target::find(target))
    return error(ErrorKind::kValue, "unknown target '{}'; the targets are {}", target,
                 fmt::join(names_of_targets(), ", "));
  // The GPU's own driver assembles for it alone.
  const Assembler* assembler =
      device && device.impl()->target() == target ? device.impl()->backend().assembler() : nullptr;
  auto impl = std::make_shared<ImageImpl>();
  impl->closure = make_closure(function);
  frontend::Options seen = frontend_options(options);
  if (request.dot_precision) seen.dot_precision = *request.dot_precision;
  seen.on_static_print = request.on_static_print;
  seen.on_warning = request.on_warning;
  seen.as_triton = request.as_triton;
  JitRequest wanted{function.get(), &impl->closure, args, std::move(seen), std::move(target), assembler};
  wanted.line_info = request.line_info;
  KILN_TRY(impl->kernel, runtime.impl().jit().compile(wanted));
  return image_of_code(std::move(impl));
}

std::string image_fingerprint(const Runtime& runtime, std::string_view target) {
  return fmt::format("kiln {} {}", KILN_VERSION, runtime.impl().jit().fingerprint(std::string(target), nullptr));
}

std::string Image::plan() const {
  CompiledKernel kernel = impl_->kernel;
  kernel.ptx.clear(), kernel.cubin.clear(), kernel.object.clear(), kernel.text.clear(), kernel.phases.clear();
  kernel.roomy.reset();
  return serialize(kernel);
}

Result<Image> Image::from_plan(std::string_view plan) {
  std::optional<CompiledKernel> kernel = deserialize(plan);
  if (!kernel) return error(ErrorKind::kValue, "these bytes are no plan of this version of Kiln");
  auto impl = std::make_shared<ImageImpl>();
  impl->kernel = *std::move(kernel);
  return image_of_code(std::move(impl));
}

Result<LoadedImage> LoadedImage::load(const Image& image, const Device& device) {
  if (!image || !device) return error(ErrorKind::kValue, "an image and a device are needed, got an empty handle");
  if (image.info().target != device.impl()->target())
    return error(ErrorKind::kValue, "kernel '{}' was compiled for {}, and {} runs {}", image.info().name,
                 image.info().target, device.name(), device.impl()->target());
  LoadedImage out;
  CompiledKernel kernel = image.impl()->kernel;  // what is loaded gives up its object
  KILN_TRY(out.loaded_, device.impl()->runtime().jit().load(kernel, image.impl()->closure, *device.impl()));
  out.image_ = image;
  out.device_ = device;
  return out;
}

Status LoadedImage::launch(std::array<int64_t, 3> grid, std::span<const uint64_t> slots, const Stream& stream) const {
  if (!loaded_) return error(ErrorKind::kValue, "launch of an empty handle of a loaded image");
  const std::string& name = image_.info().name;
  if (slots.size() != image_.params().size())
    return error(ErrorKind::kLaunch, "kernel '{}' has {} parameters, got {} slots", name, image_.params().size(),
                 slots.size());
  if (!is_launchable(grid)) {
    KILN_CHECK_OK(check_grid(name, grid));
    return {};  // it has a 0
  }
  StreamImpl& queue = device_.impl()->stream_or_current(stream);
  if (&queue.backend() != &device_.impl()->backend())
    return error(ErrorKind::kDevice, "kernel '{}': the stream belongs to another device than the code, which is on {}",
                 name, device_.name());
  return device_.impl()->backend().launch(*loaded_, programs_of(grid), slots.data(), queue);
}

}  // namespace kiln
