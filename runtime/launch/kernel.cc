#include "kiln/kernel.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <functional>

#include "runtime/device/runtime.h"
#include "runtime/jit/jit.h"
#include "runtime/jit/loaded_code.h"
#include "runtime/launch/args.h"
#include "runtime/launch/kernel_checked.h"
#include "runtime/launch/kernel_impl.h"
#include "runtime/launch/kernel_launched.h"
#include "runtime/launch/kernel_options.h"
#include "runtime/launch/launch_mark.h"
#include "runtime/launch/prepared_launch.h"
#include "support/diag.h"
#include "support/knobs.h"
#include "support/trace.h"

namespace kiln {
namespace runtime {
namespace {

// A power of two, as `mask` needs; half of a table stays empty, so that searches end soon.
constexpr size_t kFirstSlots = 16;
// "f32[4096, 4096], bf16[64]"
std::string describe_tensors(std::span<const std::optional<Arg>> args) {
  std::string out;
  for (const auto& arg : args)
    each_tensor(arg, [&](const Tensor& tensor) {
      fmt::format_to(std::back_inserter(out), "{}{}[{}]", out.empty() ? "" : ", ", name(tensor.dtype()),
                     fmt::join(tensor.shape(), ", "));
    });
  return out;
}

// Memory of the arguments is not reused before the stream's work is done.
void note_use(std::span<const std::optional<Arg>> args, StreamImpl& stream) {
  for (const auto& arg : args) each_tensor(arg, [&](const Tensor& tensor) { tensor.storage()->used_on(stream); });
}

}  // namespace

SpecTable::SpecTable() { publish(kFirstSlots); }

// Launches search without a lock. So a table is never moved under them: a larger one is filled first, then published,
// and the one before stays until reclaim() knows that nobody reads it.
void SpecTable::publish(size_t slots) {
  auto made = std::make_unique<Slots>(slots);
  for (const auto& spec : specs_) place(*made, spec.get());
  all_slots_.push_back(std::move(made));
  slots_.store(all_slots_.back().get(), std::memory_order_release);
}

void SpecTable::clear() { retire(0); }

void SpecTable::retire(size_t most) {
  std::vector<std::pair<uint64_t, size_t>> by_use;  // as of now: launches go on
  for (size_t i = 0; i < specs_.size(); ++i) by_use.emplace_back(specs_[i]->used.load(), i);
  std::ranges::sort(by_use, std::greater<>());
  std::vector<std::unique_ptr<Specialisation>> kept;
  for (size_t n = 0; n < by_use.size(); ++n)
    (n < most ? kept : retired_).push_back(std::move(specs_[by_use[n].second]));
  // Those that are retired are freed by reclaim(): a launch may be reading them.
  specs_ = std::move(kept);
  size_t slots = kFirstSlots;
  while (specs_.size() * 2 > slots) slots *= 2;
  publish(slots);
}

void SpecTable::reclaim(const Specialisation* kept) {
  std::erase_if(retired_, [&](const auto& spec) { return spec.get() != kept; });
  all_slots_.erase(all_slots_.begin(), all_slots_.end() - 1);
}

const Specialisation* SpecTable::find(uint64_t hash, std::string_view key) const {
  const Slots& slots = *slots_.load(std::memory_order_acquire);
  for (size_t i = hash & slots.mask;; i = (i + 1) & slots.mask) {
    const Specialisation* spec = slots.entries[i].load(std::memory_order_acquire);
    if (!spec) return nullptr;
    if (spec->hash == hash && spec->key == key) return spec;
  }
}

void SpecTable::place(Slots& slots, const Specialisation* spec) {
  size_t i = spec->hash & slots.mask;
  // Only the thread that holds the mutex writes. The release makes a Specialisation whole for who finds it.
  while (slots.entries[i].load(std::memory_order_relaxed)) i = (i + 1) & slots.mask;
  slots.entries[i].store(spec, std::memory_order_release);
}

const Specialisation* SpecTable::insert(std::unique_ptr<Specialisation> spec) {
  specs_.push_back(std::move(spec));
  Slots* slots = slots_.load(std::memory_order_relaxed);
  if (specs_.size() * 2 > slots->mask + 1)
    publish((slots->mask + 1) * 2);
  else
    place(*slots, specs_.back().get());
  return specs_.back().get();
}

KernelImpl::KernelImpl(std::shared_ptr<const frontend::JitFunction> function, bool globals_are_fixed)
    : function_(std::move(function)),
      name_(function_->def->name),
      globals_are_fixed_(globals_are_fixed),
      params_(read_params(*function_, [](auto f) { return Kernel::from_function(std::move(f)); })),
      rules_(rules_of(params_)) {
  for (const ParamInfo& p : params_) descriptions_.push_back({p.name, p.is_constexpr, p.has_default});
}

KernelImpl::~KernelImpl() = default;

Result<std::shared_ptr<DeviceImpl>> KernelImpl::device_of(const BoundArgs& bound, const LaunchOptions& options) const {
  std::shared_ptr<DeviceImpl> device;
  if (bound.first_tensor) {
    device = bound.first_tensor->storage()->device;
  } else if (options.device) {
    device = options.device.impl()->shared_from_this();
  } else {
    return with_note(
        error(ErrorKind::kValue, "kernel '{}' got no tensor, which would say on what device it runs", name_),
        "help: LaunchOptions::device says it, too");
  }
  if (options.stream && &options.stream.impl()->backend() != &device->backend())
    return error(ErrorKind::kDevice,
                 "kernel '{}': the stream belongs to another device than its tensors, which are on {}", name_,
                 device->name());
  return device;
}

void KernelImpl::refresh_closure() {
  if (closure_ && (globals_are_fixed_ || is_current(*closure_))) return;
  // Code of another meaning of the globals must not be found by the next launch.
  if (closure_) table_.clear(), checked_.clear(), guess_.store(nullptr);
  closure_ = std::make_shared<Closure>(make_closure(function_));
  watching_.store(!globals_are_fixed_ && !closure_->watches.empty());
}

void KernelImpl::drop_old() {
  const auto most = static_cast<size_t>(knob_limit(Knob::kKernelLimit));
  // A quarter at once, so that the next insertions need not look for one each.
  if (table_.size() > most) table_.retire(std::max<size_t>(1, most - most / 4));
  if (!table_.has_retired()) return;
  // It may point to a specialisation that reclaim() frees.
  guess_.store(nullptr);  // a launch sets it anew
  if (!others_may_read(this)) table_.reclaim(last_.load());
}

Result<const Specialisation*> KernelImpl::specialise(std::span<const std::optional<Arg>> args, BoundArgs& bound,
                                                     const std::shared_ptr<DeviceImpl>& device,
                                                     const LaunchOptions& options) {
  KILN_CHECK_OK(check_options(name_, options));
  if (device->target().empty())
    return error(ErrorKind::kUnsupported,
                 "kernel '{}': {} ({}) is older than every GPU that Kiln compiles for; use device cpu", name_,
                 device->name(), device->info().name);
  const std::string key(bound.key.view());
  const uint64_t hash = hash64(key);
  std::unique_lock lock(mutex_);
  for (;;) {
    refresh_closure();
    if (const Specialisation* made_meanwhile = table_.find(hash, key)) return made_meanwhile;
    // Compiling takes longer than a second at times, so it is done without the lock: launches of other specialisations
    // go on, and those of this one wait for the thread that came first, then look again.
    if (!compiling_.insert(key).second) {
      compiled_.wait(lock);
      continue;
    }
    struct Done {
      KernelImpl& kernel;
      std::unique_lock<std::mutex>& lock;
      const std::string& key;
      ~Done() {
        if (!lock.owns_lock()) lock.lock();
        kernel.compiling_.erase(key);
        kernel.compiled_.notify_all();
      }
    } done{*this, lock, key};
    const std::shared_ptr<const Closure> closure = closure_;
    lock.unlock();
    KILN_TRY(std::unique_ptr<Specialisation> spec, build(args, bound, device, options, *closure));
    spec->steps = KeySteps(rules_, key_end(device->backend(), options), key);
    spec->key = key;
    spec->closure = closure;
    spec->hash = hash;
    lock.lock();
    if (closure == closure_) {
      spec->used.store(++look_ups_);
      const Specialisation* made = table_.insert(std::move(spec));
      drop_old();
      return made;
    }
    // Another launch saw that a global had changed: this code is of the past.
  }
}

Result<std::unique_ptr<Specialisation>> KernelImpl::build(std::span<const std::optional<Arg>> args,
                                                          const BoundArgs& bound,
                                                          const std::shared_ptr<DeviceImpl>& device,
                                                          const LaunchOptions& options, const Closure& closure) {
  std::vector<frontend::ArgSpec> specs = arg_specs(params_, args);
  Jit& jit = device->runtime().jit();
  KILN_TRY(CompiledKernel compiled, jit.compile({function_.get(), &closure, specs, frontend_options(options),
                                                 device->target(), device->backend().assembler()}));
  KILN_ASSERT(static_cast<int>(compiled.params.size()) == bound.num_slots, "kernel {} has {} parameters for {} slots",
              name_, compiled.params.size(), bound.num_slots);
  auto spec = std::make_unique<Specialisation>();
  // Code is unloaded by its backend, which therefore has to outlive it.
  spec->backend = device->share_backend();
  spec->default_stream = &device->backend().default_stream();
  KILN_TRY(spec->loaded, jit.load(compiled, closure, *device));
  if (compiled.roomy) spec->roomy_code = jit.remember(roomy_info(compiled, *compiled.roomy), closure);
  spec->code = jit.remember(std::move(compiled), closure);
  spec->launched_as =
      std::make_shared<LaunchedAs>(LaunchedAs{std::move(specs), frontend_options(options), device->target()});
  return spec;
}

// Most launches repeat the specialisation of the one before. That is tried first, without a key, a hash or a lock.
Status KernelImpl::launch(const std::array<int64_t, 3>& grid, std::span<const std::optional<Arg>> args,
                          const LaunchOptions& options) {
  trace::Scope span(trace::kSpans, trace::Step::kLaunch, name_);
  if (trace::Event* event = span.event(); event && trace::on(trace::kShapes)) event->detail = describe_tensors(args);
  const LaunchMark mark(this);
  const Specialisation* guess = guess_.load(std::memory_order_acquire);
  if (guess && watching_.load(std::memory_order_relaxed)) {
    std::lock_guard lock(mutex_);
    if (guess->closure != closure_ || !is_current(*closure_)) guess = nullptr;
  }
  StreamImpl* stream = options.stream ? options.stream.impl() : chosen_stream;
  if (guess && !stream) stream = guess->default_stream;
  if (guess && &stream->backend() == guess->backend.get() && !stream->is_capturing() && is_launchable(grid)) {
    uint64_t slots[kMostFastSlots];
    auto matches = [&] {
      trace::Scope step(trace::kSteps, trace::Step::kKey);
      return guess->steps.match(params_, rules_, args, key_end(*guess->backend, options), slots);
    };
    if (matches()) {
      // Uses by the default stream are not noted: Allocator::free() reckons with them for every block.
      if (stream != guess->default_stream) note_use(args, *stream);
      return guess->backend->launch(*guess->loaded, programs_of(grid), slots, *stream, options.timeout_s);
    }
  }
  return launch_general(grid, args, options);
}

const Specialisation* KernelImpl::look_up(std::string_view key) {
  trace::Scope step(trace::kSteps, trace::Step::kLookup);
  if (watching_.load(std::memory_order_relaxed)) {
    std::lock_guard lock(mutex_);
    refresh_closure();
  }
  const Specialisation* found = table_.find(hash64(key), key);
  if (found) found->used.store(look_ups_.fetch_add(1, std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  return found;
}

// The key of the arguments; callers append that of the options and the device.
Status KernelImpl::bind(std::span<const std::optional<Arg>> args, BoundArgs& bound) const {
  trace::Scope step(trace::kSteps, trace::Step::kKey);
  return bind_args(name_, params_, args, bound);
}

Status KernelImpl::launch_general(const std::array<int64_t, 3>& grid, std::span<const std::optional<Arg>> args,
                                  const LaunchOptions& options) {
  KILN_CHECK_OK(check_grid(name_, grid));
  BoundArgs bound;
  KILN_CHECK_OK(bind(args, bound));
  if (!is_launchable(grid)) return {};  // it has a 0
  DeviceImpl* device = nullptr;
  std::shared_ptr<DeviceImpl> held;
  if (bound.first_tensor && !options.stream) {
    device = bound.first_tensor->storage()->device.get();
  } else {
    KILN_TRY(held, device_of(bound, options));
    device = held.get();
  }
  append(key_end(device->backend(), options), bound.key);
  std::string_view key = bound.key.view();
  const Specialisation* spec = look_up(key);
  StreamImpl& stream = device->stream_or_current(options.stream);
  if (!spec) {
    KILN_TRY(spec, specialise(args, bound, device->shared_from_this(), options));
  }
  last_.store(spec, std::memory_order_release);
  // Without a tensor the device may be another one next time.
  const bool may_guess = bound.first_tensor && bound.num_slots <= kMostFastSlots;
  guess_.store(may_guess ? spec : nullptr, std::memory_order_release);
  if (&stream != spec->default_stream) note_use(args, stream);
  if (stream.is_capturing())
    for (const auto& arg : args)
      each_tensor(arg, [&](const Tensor& tensor) { stream.keep_for_graph(tensor.storage()); });
  return spec->backend->launch(*spec->loaded, programs_of(grid), bound.slots(), stream, options.timeout_s);
}

Status KernelImpl::note_launch(std::span<const std::optional<Arg>> args, const LaunchOptions& options) {
  BoundArgs bound;
  KILN_CHECK_OK(bind(args, bound));
  KILN_TRY(const std::shared_ptr<DeviceImpl> device, device_of(bound, options));
  const LaunchMark mark(this);
  append(key_end(device->backend(), options), bound.key);
  const Specialisation* spec = look_up(bound.key.view());
  if (!spec) {
    KILN_TRY(spec, specialise(args, bound, device, options));
  }
  last_.store(spec, std::memory_order_release);
  return {};
}

Result<PreparedLaunch> KernelImpl::prepare(const std::array<int64_t, 3>& grid, std::span<const std::optional<Arg>> args,
                                           const LaunchOptions& options) {
  KILN_CHECK_OK(check_grid(name_, grid));
  if (!is_launchable(grid)) return error(ErrorKind::kValue, "kernel '{}': a grid without programs", name_);
  PreparedLaunch out;
  BoundArgs bound;
  bound.slot_of_param = &out.slot_of_param;
  KILN_CHECK_OK(bind(args, bound));
  KILN_TRY(out.device, device_of(bound, options));
  const LaunchMark mark(this);
  append(key_end(out.device->backend(), options), bound.key);
  const Specialisation* spec = look_up(bound.key.view());
  if (!spec) {
    KILN_TRY(spec, specialise(args, bound, out.device, options));
  }
  out.loaded = spec->loaded;
  out.launched_as = spec->launched_as;
  out.grid = programs_of(grid);
  out.slots.assign(bound.slots(), bound.slots() + bound.num_slots);
  return out;
}

std::shared_ptr<const LaunchedAs> KernelImpl::launched_as() const {
  const LaunchMark mark(this);
  const Specialisation* last = last_.load();
  return last ? last->launched_as : nullptr;
}

std::shared_ptr<const KernelInfo> KernelImpl::launched() const {
  const LaunchMark mark(this);
  const Specialisation* last = last_.load(std::memory_order_acquire);
  return last ? last->code_that_ran() : nullptr;
}

bool KernelImpl::was_launched_as(const KernelInfo* info) const {
  const LaunchMark mark(this);
  const Specialisation* last = last_.load(std::memory_order_acquire);
  return (last ? last->code_that_ran().get() : nullptr) == info;
}

Result<KernelInfo> KernelImpl::compile(std::span<const std::optional<Arg>> args, const LaunchOptions& options,
                                       std::string_view target) {
  BoundArgs bound;
  KILN_CHECK_OK(bind_args(name_, params_, args, bound));
  KILN_CHECK_OK(check_options(name_, options));
  KILN_TRY(std::shared_ptr<DeviceImpl> device, device_of(bound, options));
  if (target.empty() || target == device->target()) {
    const LaunchMark mark(this);
    append(key_end(device->backend(), options), bound.key);
    const Specialisation* spec = look_up(bound.key.view());
    if (!spec) {
      KILN_TRY(spec, specialise(args, bound, device, options));
    }
    return KernelInfo(*spec->code);
  }
  // For another machine: nothing here could load it, so it is no specialisation, and no driver of its GPU assembles it.
  const std::shared_ptr<const Closure> closure = current_closure();
  std::vector<frontend::ArgSpec> specs = arg_specs(params_, args);
  KILN_TRY(CompiledKernel compiled, device->runtime().jit().compile({function_.get(), closure.get(), specs,
                                                                     frontend_options(options), std::string(target)}));
  return KernelInfo(std::move(compiled));
}

std::shared_ptr<const Closure> KernelImpl::current_closure() {
  std::lock_guard lock(mutex_);
  refresh_closure();
  return closure_;
}

std::string KernelImpl::identity(DeviceImpl& device) {
  return hash128(device.runtime().jit().fingerprint(device.target(), device.backend().assembler()) + "\n" +
                 current_closure()->meaning)
      .hex();
}

Result<PreparedLaunch> prepare_launch(const Kernel& kernel, const std::array<int64_t, 3>& grid,
                                      std::span<const std::optional<Arg>> args, const LaunchOptions& options) {
  return kernel.impl()->prepare(grid, args, options);
}
Status note_launch(const Kernel& kernel, std::span<const std::optional<Arg>> args, const LaunchOptions& options) {
  return kernel.impl()->note_launch(args, options);
}
std::shared_ptr<const LaunchedAs> launched_as(const Kernel& kernel) { return kernel.impl()->launched_as(); }
const std::shared_ptr<const frontend::JitFunction>& function_of(const Kernel& kernel) {
  return kernel.impl()->function();
}
std::string identity_of(const Kernel& kernel, const Device& device) { return kernel.impl()->identity(*device.impl()); }

}  // namespace runtime

using namespace runtime;

namespace {

Diagnostic empty_handle(std::string_view call) {
  return error(ErrorKind::kValue, "{} of an empty kernel handle", call);
}

}  // namespace

const std::string& Kernel::name() const {
  static const std::string kNone;
  return impl_ ? impl_->name() : kNone;
}
std::span<const ParamDesc> Kernel::params() const { return impl_ ? impl_->params() : std::span<const ParamDesc>(); }

Status Kernel::launch(std::array<int64_t, 3> grid, std::span<const std::optional<Arg>> args,
                      const LaunchOptions& options) const {
  if (!impl_) return empty_handle("launch");
  return impl_->launch(grid, args, options);
}

Result<KernelInfo> Kernel::compile(std::span<const std::optional<Arg>> args, const LaunchOptions& options,
                                   std::string_view target) const {
  if (!impl_) return empty_handle("compile");
  return impl_->compile(args, options, target);
}

std::shared_ptr<const KernelInfo> Kernel::launched() const { return impl_ ? impl_->launched() : nullptr; }
bool Kernel::was_launched_as(const KernelInfo* info) const { return impl_ && impl_->was_launched_as(info); }

}  // namespace kiln
