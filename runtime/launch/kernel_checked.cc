#include "runtime/launch/kernel_checked.h"

#include <fmt/format.h>

#include "runtime/device/runtime.h"
#include "runtime/jit/jit.h"
#include "runtime/launch/kernel_impl.h"
#include "runtime/launch/kernel_options.h"
#include "support/diag.h"
#include "support/launch_options.h"
#include "support/trace.h"

namespace kiln::runtime {
namespace {

using passes::Guard;
using passes::GuardFinding;
using passes::GuardKind;

/// Memory that an address may lie in, and the tensor that the kernel got of it.
struct Extent {
  DeviceAddress begin = 0, end = 0, first = 0;  // first: of the tensor's own elements
  bool is_whole = false;                        // the tensor is all of it
};

Extent extent_of(const Tensor& tensor) {
  const Storage& storage = *tensor.storage();
  Extent e;
  e.begin = storage.address();
  e.end = e.begin + static_cast<DeviceAddress>(storage.bytes);
  e.first = tensor.address();
  e.is_whole = e.first == e.begin && tensor.numel() * size_of(tensor.dtype()) == storage.bytes;
  return e;
}

/// Of the memory that a pointer argument points into; a null pointer has none.
Extent extent_at(DeviceAddress address, std::span<const std::optional<Arg>> args) {
  Extent found = {address, address, address, false};
  bool is_found = false;
  for (const auto& arg : args)
    each_tensor(arg, [&](const Tensor& t) {
      if (!is_found && t && !t.is_freed() && t.address() == address) found = extent_of(t), is_found = true;
    });
  return found;
}

std::string_view verb(GuardKind kind) {
  switch (kind) {
    case GuardKind::kRead:
      return "reads";
    case GuardKind::kWrite:
      return "writes";
    case GuardKind::kAtomic:
      return "updates";
    case GuardKind::kAssert:
      return "fails";
  }
  KILN_UNREACHABLE("guard kind");
}

std::string program_text(int64_t number, const std::array<int64_t, 3>& grid) {
  // A guard's word has 31 bits for the program; the last number stands for all above it.
  if (number == INT32_MAX) return fmt::format("program {} or a later one", number);
  if (grid[1] == 1 && grid[2] == 1) return fmt::format("program {}", number);
  return fmt::format("program ({}, {}, {})", number % grid[0], number / grid[0] % grid[1], number / grid[0] / grid[1]);
}

/// "element 100000 of 'out', which has 100000 elements"
std::string place_text(const Guard& guard, int32_t distance, const Extent& extent, std::string_view param) {
  const int64_t size = size_of(guard.element);
  if (distance == INT32_MAX || distance == INT32_MIN)
    return fmt::format("2 GiB or more {} '{}'", distance > 0 ? "behind" : "before", param);
  const auto signed_address = [](DeviceAddress a) { return static_cast<int64_t>(a); };
  const int64_t at =
      distance > 0 ? signed_address(extent.end) - size + distance : signed_address(extent.begin) + distance;
  auto element = [&](int64_t address) {
    const int64_t bytes = address - signed_address(extent.first);
    return bytes >= 0 ? bytes / size : -((-bytes + size - 1) / size);
  };
  std::string text = fmt::format("element {} of '{}'", element(at), param);
  const int64_t end = element(signed_address(extent.end));
  if (extent.is_whole || distance > 0)
    text += fmt::format(", {} {} element{}", extent.is_whole ? "which has" : "whose memory ends after", end,
                        end == 1 ? "" : "s");
  else
    text += fmt::format(", whose memory begins at {}", element(signed_address(extent.begin)));
  return text;
}

Diagnostic finding_error(std::string_view kernel, const Guard& guard, const GuardFinding& finding,
                         const std::array<int64_t, 3>& grid, const Extent& extent, const CheckedCode& code) {
  const std::string program = program_text(finding.program, grid);
  Diagnostic d{ErrorKind::kLaunch, "", guard.place, {}};
  if (guard.kind == GuardKind::kAssert) {
    d.message = fmt::format("kernel '{}': an assert failed in {}{}", kernel, program,
                            guard.text.empty() ? "" : ": " + guard.text);
    return d;
  }
  d.message = fmt::format(
      "kernel '{}' {} {}, in {}", kernel, verb(guard.kind),
      place_text(guard, finding.distance, extent, code.param_names[static_cast<size_t>(guard.param)]), program);
  if (guard.kind == GuardKind::kAtomic) return d;
  return with_note(std::move(d), guard.has_mask ? "help: its mask lets this element through"
                                                : "help: give it a mask that leaves such elements out");
}

/// What guarded code is compiled and launched with: one block of threads, loops that do not run ahead, after all that
/// came before. The other options count as ever, so that a checked launch computes and asserts what an unchecked one
/// does, and ends in its time.
LaunchOptions plain_options(LaunchOptions options) {
  for (const LaunchOption& o : kLaunchOptions)
    if (o.has('C')) o.set(options, o.least);
  return options;
}

}  // namespace

Result<std::shared_ptr<const CheckedCode>> KernelImpl::checked_code(std::span<const std::optional<Arg>> args,
                                                                    const BoundArgs& bound,
                                                                    const std::shared_ptr<DeviceImpl>& device,
                                                                    const LaunchOptions& options) {
  const std::string key(bound.key.view());
  std::shared_ptr<const Closure> closure;
  {
    std::lock_guard lock(mutex_);
    refresh_closure();
    if (auto found = checked_.find(key); found != checked_.end()) return found->second;
    closure = closure_;
  }
  const std::vector<frontend::ArgSpec> specs = arg_specs(params_, args);
  JitRequest request{function_.get(),           closure.get(),    specs,
                     frontend_options(options), device->target(), device->backend().assembler()};
  request.guard_accesses = true;
  auto code = std::make_shared<CheckedCode>();
  Jit& jit = device->runtime().jit();
  auto make = [&]() -> Status {
    KILN_TRY(CompiledKernel compiled, jit.compile(request));
    KILN_ASSERT(compiled.guards, "the compiler put no guards into {}", name_);
    code->guards = *std::move(compiled.guards);
    for (const KernelParam& p : compiled.params) code->param_names.push_back(p.name);
    KILN_TRY(code->loaded, jit.load(compiled, *closure, *device));
    return {};
  };
  if (Status made = make(); !made.ok()) {
    // The kernel's own errors are reported as usual; remaining ones are due to the guards.
    KILN_TRY(KernelInfo info, compile(args, options, ""));
    return with_note(error(ErrorKind::kUnsupported, "kernel '{}' cannot be launched with its accesses checked", name_),
                     std::move(made.error().message));
  }
  code->backend = device->share_backend();
  std::lock_guard lock(mutex_);
  if (closure == closure_) checked_.emplace(key, code);
  return std::shared_ptr<const CheckedCode>(std::move(code));
}

Status KernelImpl::compile_checked(std::span<const std::optional<Arg>> args, const LaunchOptions& asked) {
  KILN_CHECK_OK(check_options(name_, asked));
  BoundArgs bound;
  KILN_CHECK_OK(bind(args, bound));
  const LaunchOptions options = plain_options(asked);
  KILN_TRY(std::shared_ptr<DeviceImpl> device, device_of(bound, options));
  append(key_end(device->backend(), options), bound.key);
  auto code = checked_code(args, bound, device, options);
  return code.ok() ? Status() : Status(std::move(code.error()));
}

Result<CheckedLaunch> KernelImpl::launch_checked(const std::array<int64_t, 3>& grid,
                                                 std::span<const std::optional<Arg>> args, const LaunchOptions& asked) {
  trace::Scope span(trace::kSpans, trace::Step::kLaunch, name_);
  KILN_CHECK_OK(check_grid(name_, grid));
  KILN_CHECK_OK(check_options(name_, asked));
  BoundArgs bound;
  KILN_CHECK_OK(bind(args, bound));
  const LaunchOptions options = plain_options(asked);
  KILN_TRY(std::shared_ptr<DeviceImpl> device, device_of(bound, options));
  StreamImpl& stream = device->stream_or_current(options.stream);
  if (stream.is_capturing()) return not_in_graph("a checked launch");
  append(key_end(device->backend(), options), bound.key);
  KILN_TRY(std::shared_ptr<const CheckedCode> code, checked_code(args, bound, device, options));
  const passes::GuardedAccesses& g = code->guards;
  CheckedLaunch looked{g.accesses, g.unknown};
  if (!is_launchable(grid)) return looked;  // it has a 0

  std::vector<uint64_t> slots(bound.slots(), bound.slots() + bound.num_slots);
  std::vector<Extent> extents(slots.size());
  for (int p : g.pointers) {
    const auto i = static_cast<size_t>(p);
    extents[i] = extent_at(slots[i], args);
    slots.push_back(extents[i].begin);
    slots.push_back(extents[i].end);
  }
  const auto words = static_cast<int64_t>(g.guards.size()) + passes::kFirstGuardWord;
  KILN_TRY(Tensor report, Tensor::empty(Device(device), DType::kI64, std::span(&words, 1)));
  Backend& backend = device->backend();
  KILN_CHECK_OK(backend.fill(report.address(), static_cast<uint64_t>(passes::kNothingFound), 8, words, stream));
  slots.push_back(report.address());
  KILN_CHECK_OK(backend.launch(*code->loaded, programs_of(grid), slots.data(), stream, options.timeout_s));
  std::vector<int64_t> found(static_cast<size_t>(words));
  KILN_CHECK_OK(backend.copy_out(found.data(), report.address(), found.size() * 8, stream));

  std::optional<GuardFinding> first;
  size_t at = 0;
  for (size_t i = 0; i < g.guards.size(); ++i)
    if (auto finding = passes::read_guard(found[i + passes::kFirstGuardWord]);
        finding && (!first || finding->program < first->program))
      first = finding, at = i;
  if (!first) return looked;
  const Guard& guard = g.guards[at];
  const Extent extent = guard.param < 0 ? Extent() : extents[static_cast<size_t>(guard.param)];
  return finding_error(name_, guard, *first, grid, extent, *code);
}

}  // namespace kiln::runtime

namespace kiln {

Result<CheckedLaunch> launch_checked(const Kernel& kernel, std::array<int64_t, 3> grid,
                                     std::span<const std::optional<Arg>> args, const LaunchOptions& options) {
  if (!kernel) return error(ErrorKind::kValue, "launch_checked of an empty kernel handle");
  return kernel.impl()->launch_checked(grid, args, options);
}

Status compile_checked(const Kernel& kernel, std::span<const std::optional<Arg>> args, const LaunchOptions& options) {
  if (!kernel) return error(ErrorKind::kValue, "compile_checked of an empty kernel handle");
  return kernel.impl()->compile_checked(args, options);
}

std::string why_unchecked(const Diagnostic& refusal) {
  return refusal.notes.empty() ? refusal.message : refusal.notes[0].message;
}

}  // namespace kiln
