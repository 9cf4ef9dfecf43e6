#include "runtime/jit/jit.h"

#include <fmt/format.h>

#include <chrono>

#include "support/diag.h"
#include "support/files.h"
#include "support/hash.h"
#include "support/knobs.h"
#include "support/launch_options.h"
#include "support/trace.h"

namespace kiln::runtime {
namespace {

using Clock = std::chrono::steady_clock;

double ms_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

std::string describe_arg(const frontend::ArgSpec& arg) {
  // A function passed as a constexpr argument adds its own text and globals to the code.
  if (auto* f = std::get_if<std::shared_ptr<const frontend::JitFunction>>(&arg.value); f && arg.is_constexpr)
    return "constexpr " + make_closure(*f).text;
  if (arg.is_constexpr) return "constexpr " + describe(arg.value);
  if (arg.is_tuple) {
    std::string text = "(";
    for (const frontend::ArgSpec& item : arg.items) text += describe_arg(item) + ",";
    return fmt::format("{}) {}", text, fmt::join(arg.fields, " "));
  }
  if (!arg.block.empty())
    return fmt::format("blocks {} of {}:{}{}", fmt::join(arg.block, "x"), ir::to_string(arg.type), arg.divisibility,
                       arg.nan_outside ? " nan" : "");
  return fmt::format("{}:{}", ir::to_string(arg.type), arg.divisibility);
}

// Writes each stage of a kernel to KILN_DUMP_DIR; the names sort in the order of the stages.
class Dumper {
 public:
  Dumper(std::string folder, std::string prefix, std::function<void(const std::string&)> warn)
      : folder_(std::move(folder)), prefix_(std::move(prefix)), warn_(std::move(warn)) {}
  void operator()(std::string_view stage, const std::string& text) {
    Status made = make_directories(folder_);
    std::string file_stage(stage);
    for (char& c : file_stage)
      if (c == ':' || c == '/') c = '-';
    if (made.ok())
      made = write_file_atomic(fmt::format("{}/{}.{:02}-{}.txt", folder_, prefix_, number_++, file_stage), text);
    if (!made.ok() && !warned_) warn_("KILN_DUMP_DIR: " + made.error().message), warned_ = true;
  }

 private:
  std::string folder_, prefix_;
  std::function<void(const std::string&)> warn_;
  int number_ = 0;
  bool warned_ = false;
};

}  // namespace

KernelImage image_of(const CompiledKernel& k) {
  KernelImage image;
  static_cast<KernelInfo&>(image) = k;
  image.num_params = static_cast<int>(k.params.size());
  image.tensor_maps = k.tensor_maps;
  image.roomy = k.roomy ? &*k.roomy : nullptr;
  return image;
}

Jit::Jit(Compiler compiler, std::function<void(const std::string&)> warn)
    : compiler_(std::move(compiler)), warn_(warn), cache_(std::move(warn)) {}

std::string Jit::fingerprint(const std::string& target, const Assembler* assembler) {
  std::lock_guard lock(mutex_);
  const std::pair key(target, assembler);
  // Code with guards is compiled for one checked launch; it would fill the cache.
  auto it = fingerprints_.find(key);
  if (it == fingerprints_.end()) {
    // For a GPU it may open the assembler's library, and the first kernel of a process waits for that.
    trace::Scope phase(trace::kSpans, trace::Step::kPhase, "toolchain");
    it = fingerprints_.emplace(key, compiler_.fingerprint(target, assembler)).first;
  }
  return it->second;
}

std::string Jit::cache_key(const JitRequest& request) {
  std::string key = fmt::format("compiler {}\ntarget {}\n{}\n", fingerprint(request.target, request.assembler),
                                request.target, key_text(request.options));
  if (const std::string& word = request.options.dot_precision; !word.empty()) key += "tl.dot " + word + "\n";
  if (request.options.as_triton) key += "as Triton\n";
  if (!request.line_info) key += "no lines\n";
  for (const frontend::ArgSpec& arg : request.args) key += "arg " + describe_arg(arg) + "\n";
  return key + request.closure->text;
}

Result<CompiledKernel> Jit::compile(const JitRequest& request) {
  trace::Scope span(trace::kSpans, trace::Step::kCompile, request.function->def->name);
  auto start = Clock::now();
  std::string key = cache_key(request);
  std::string dump = knob(Knob::kDumpDir);
  if (dump.empty() && !request.guard_accesses) {  // a dump shows every stage, so it compiles
    trace::Scope phase(trace::kSpans, trace::Step::kPhase, "disk cache");
    // The key is the text of the kernel and of its globals, so nothing is left to compare with the sources.
    if (auto found = cache_.find(key)) {
      found->code = code_hash(*found);
      found->from_cache = true;
      found->phases = {{"cache", ms_since(start)}};
      return *std::move(found);
    }
  }
  CompileOptions options;
  options.target = request.target;
  options.frontend = request.options;
  options.line_info = request.line_info;
  bool speaks = false;
  if (const auto& print = request.options.on_static_print)
    options.frontend.on_static_print = [&](const std::string& line) { speaks = true, print(line); };
  if (const auto& warn = request.options.on_warning)
    options.frontend.on_warning = [&](const CodeWarning& warning) { speaks = true, warn(warning); };
  options.assembler = request.assembler;
  options.guard_accesses = request.guard_accesses;
  if (!dump.empty())
    options.on_stage = Dumper(
        // A part of the key, since a kernel may be dumped once for each specialisation.
        dump, fmt::format("{}.{}.{}", request.function->def->name, request.target, hash128(key).hex().substr(0, 8)),
        warn_);
  KILN_TRY(CompiledKernel kernel, compiler_.compile(*request.function, request.args, options));
  // A listener hears of a kernel whenever it asks for it: its own cache says when.
  if (!request.guard_accesses && !speaks) {
    trace::Scope phase(trace::kSpans, trace::Step::kPhase, "disk cache, store");
    cache_.store(key, kernel);
  }
  kernel.code = code_hash(kernel);
  return kernel;
}

Result<std::shared_ptr<LoadedKernel>> Jit::load(CompiledKernel& k, const Closure& closure, DeviceImpl& device) {
  trace::Scope span(trace::kSpans, trace::Step::kLoad, k.name);
  auto start = Clock::now();
  KernelImage image = image_of(k);
  if (!device.is_cuda()) {
    KILN_TRY(std::shared_ptr<HostCode> code, compiler_.load_host_object(k));
    image.entry = code->entry();
    image.take_failure = [code] { return code->take_failure(); };
    image.place_at = [code, sources = closure.sources](uintptr_t address) {
      Place place = code->place_at(address);
      for (const auto& source : sources)
        if (source->file_name() == place.file && place.line >= 1 && place.line <= source->num_lines())
          // A statement's text is shown of those sources alone that this kernel was made of.
          place.text = source->line(place.line);
      return place;
    };
    image.keep = code;
  }
  KILN_TRY(std::shared_ptr<LoadedKernel> loaded, device.backend().load(image));
  if (k.registers < 0) k.registers = loaded->registers();
  k.object = {};  // what is loaded holds its own
  k.phases.push_back({"load", ms_since(start)});
  return loaded;
}

std::shared_ptr<const LoadedCode> Jit::remember(KernelInfo&& k, const Closure& closure) {
  auto code = std::make_shared<const LoadedCode>(LoadedCode{std::move(k), closure.sources});
  if (code->ptx.empty()) return code;
  std::lock_guard lock(mutex_);
  // Weak: the code goes with the specialisation that a kernel drops.
  std::erase_if(loaded_, [](const auto& kept) { return kept.expired(); });
  loaded_.push_back(code);
  return code;
}

std::vector<std::shared_ptr<const LoadedCode>> Jit::loaded_code() {
  std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<const LoadedCode>> all;
  for (const auto& kept : loaded_)
    if (auto code = kept.lock()) all.push_back(std::move(code));
  return all;
}

}  // namespace kiln::runtime
