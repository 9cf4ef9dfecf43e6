#include "runtime/device/device.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <iterator>

#include "kiln/interop.h"
#include "runtime/cuda/cuda_backend.h"
#include "runtime/device/runtime.h"
#include "runtime/jit/target.h"
#include "support/diag.h"
#include "support/trace.h"

namespace kiln {
namespace runtime {

StreamImpl::StreamImpl(Backend& backend) : backend_(&backend), id_(new_order()) {}

// Counts over all devices, so that a profile tells streams apart by their ids alone.
uint64_t StreamImpl::new_order() {
  static std::atomic<uint64_t> next{1};
  return next.fetch_add(1);
}

void StreamImpl::keep_for_graph(std::shared_ptr<Storage> storage) {
  if (!storage->is_of(order())) graph_storages_.push_back(std::move(storage));
}

Diagnostic not_in_graph(std::string_view what) {
  return with_note(error(ErrorKind::kUnsupported, "{} cannot be part of a graph that is being captured", what),
                   "help: do it before the capture; launches, copies on the device and fills can be recorded");
}

DeviceImpl::DeviceImpl(std::string name, std::unique_ptr<Backend> backend, std::shared_ptr<RuntimeImpl> runtime)
    : runtime_(std::move(runtime)),
      name_(std::move(name)),
      target_(backend->capability() ? target_for_capability(backend->capability()) : "host"),
      backend_(std::move(backend)),
      allocator_(*backend_, name_) {}

DeviceImpl::~DeviceImpl() = default;

const DeviceInfo& DeviceImpl::info() {
  std::call_once(asked_, [this] {
    info_ = backend_->info();
    info_.target = target_;
  });
  return info_;
}

Result<Companion*> DeviceImpl::companion(const std::string& name, const MakeCompanion& make) {
  // Held while it is made: two threads that ask for the same companion get one.
  std::lock_guard lock(companion_mutex_);
  std::unique_ptr<Companion>& slot = companions_[name];
  if (!slot) {
    KILN_TRY(slot, make(*this));
  }
  return slot.get();
}

Result<std::shared_ptr<Storage>> allocate_storage(const Device& device, int64_t bytes) {
  DeviceImpl& impl = *device.impl();
  StreamImpl& stream = impl.backend().current_stream();
  KILN_TRY(Block * block, impl.allocator().allocate(bytes, stream));
  trace::add_memory(trace::Step::kMemory, impl.name(), bytes);
  return std::make_shared<Storage>(impl.shared_from_this(), block, bytes);
}

Result<std::shared_ptr<Storage>> allocate_pinned(const Device& gpu, int64_t bytes) {
  KILN_TRY(Device cpu, gpu.runtime().open("cpu"));
  // The driver refuses 0 bytes; a tensor without elements has an address all the same.
  KILN_TRY(std::shared_ptr<void> memory, gpu.impl()->backend().shared_memory(std::max<int64_t>(bytes, 1)));
  trace::add_memory(trace::Step::kMemory, cpu.name(), bytes);
  auto pinned = std::make_shared<Pinned>(gpu.impl()->shared_from_this(), std::move(memory));
  return std::make_shared<Storage>(cpu.impl()->shared_from_this(), std::move(pinned), bytes);
}

void DeviceImpl::keep_until_passed(std::shared_ptr<Storage> storage, StreamImpl& stream) {
  // Without an event the device answers no more, and nothing will be read.
  auto event = backend_->record(stream);
  if (!event.ok()) return;
  release_passed();
  std::lock_guard lock(in_flight_mutex_);
  in_flight_.push_back({*std::move(event), std::move(storage)});
}

void DeviceImpl::release_passed() {
  std::vector<InFlight> passed;  // given back outside of the lock
  std::lock_guard lock(in_flight_mutex_);
  auto first = std::partition(in_flight_.begin(), in_flight_.end(), [](auto& copy) { return !copy.passed->is_done(); });
  std::move(first, in_flight_.end(), std::back_inserter(passed));
  in_flight_.erase(first, in_flight_.end());
}

void DeviceImpl::finish_copies() {
  std::vector<InFlight> copies;
  {
    std::lock_guard lock(in_flight_mutex_);
    copies.swap(in_flight_);
  }
  // Errors are of no use here: a device that answers no more reads nothing.
  if (!copies.empty()) (void)backend_->synchronize();
}

Diagnostic freed_error(std::string_view what) {
  return error(ErrorKind::kValue, "{} was freed: free() released its memory", what);
}

namespace {

// Keeps the device alive while one of its streams exists.
struct OwnedStream {
  ~OwnedStream() {
    // A caller may have destroyed its own stream by now. Only where blocks of memory wait for it is it touched at all.
    if (is_callers && !device->allocator().knows(*stream)) return;
    (void)stream->synchronize().ok();
    device->allocator().stream_closed(*stream);
  }
  std::shared_ptr<DeviceImpl> device;
  std::unique_ptr<StreamImpl> stream;
  bool is_callers = false;
};

struct OwnedEvent {
  std::shared_ptr<DeviceImpl> device;
  std::unique_ptr<EventImpl> event;
};

}  // namespace

Result<std::shared_ptr<StreamImpl>> DeviceImpl::stream_of(void* native) {
  std::lock_guard lock(foreign_streams_mutex_);
  std::erase_if(foreign_streams_, [](const auto& entry) { return entry.second.expired(); });
  // One StreamImpl for each native stream: the allocator tells streams apart by their StreamImpl.
  if (auto found = foreign_streams_.find(native); found != foreign_streams_.end())
    if (auto stream = found->second.lock()) return stream;
  KILN_TRY(std::unique_ptr<StreamImpl> made, backend_->stream_of(native));
  auto owned = std::make_shared<OwnedStream>();
  owned->device = shared_from_this();
  owned->is_callers = true;
  owned->stream = std::move(made);
  std::shared_ptr<StreamImpl> stream(owned, owned->stream.get());
  foreign_streams_[native] = stream;
  return stream;
}

}  // namespace runtime

using namespace runtime;

Status Stream::synchronize() const {
  trace::Scope span(trace::kSpans, trace::Step::kWait, "stream", 0, impl_ ? impl_->id() : 0);
  return impl_ ? impl_->synchronize() : Status{};
}

Status Stream::wait(const Event& event) const {
  if (!impl_ || !event.impl()) return error(ErrorKind::kValue, "wait needs a stream and a recorded event");
  return impl_->wait(*event.impl());
}

Status Event::synchronize() const {
  trace::Scope span(trace::kSpans, trace::Step::kWait, "event");
  return impl_ ? impl_->synchronize() : Status{};
}

uint64_t Stream::id() const { return impl_ ? impl_->id() : 0; }
bool Stream::is_idle() const { return !impl_ || impl_->is_idle(); }
bool Event::is_done() const { return !impl_ || impl_->is_done(); }

namespace {
// The streams of this thread's guards, oldest first. Scripts leave them in any order, and a stream may live by its
// guard alone: what a guard goes back to must be one that another guard still holds.
thread_local std::vector<Stream> guarded_streams;

const Stream* guarded(const StreamImpl* stream) {
  for (const Stream& s : guarded_streams)
    if (s.impl() == stream) return &s;
  return nullptr;
}
}  // namespace

StreamGuard::StreamGuard(Stream stream) : stream_(std::move(stream)), before_(chosen_stream) {
  if (!stream_) return;
  guarded_streams.push_back(stream_);
  chosen_stream = stream_.impl();
}

StreamGuard::~StreamGuard() {
  if (stream_)
    guarded_streams.erase(std::find_if(guarded_streams.begin(), guarded_streams.end(),
                                       [this](const Stream& s) { return s.impl() == stream_.impl(); }));
  if (!before_ || guarded(before_))
    chosen_stream = before_;
  else
    chosen_stream = guarded_streams.empty() ? nullptr : guarded_streams.back().impl();
}

Result<Stream> stream_from_cuda(const Device& device, void* stream) {
  if (!device) return error(ErrorKind::kDevice, "a stream needs a device");
  KILN_TRY(std::shared_ptr<StreamImpl> impl, device.impl()->stream_of(stream));
  return Stream(std::move(impl));
}

Result<void*> cuda_stream(const Device& device, const Stream& stream) {
  if (!device) return error(ErrorKind::kDevice, "a stream needs a device");
  StreamImpl& queue = device.impl()->stream_or_current(stream);
  if (&queue.backend() != &device.impl()->backend())
    return error(ErrorKind::kValue, "the stream belongs to another device than {}", device.name());
  return device.impl()->backend().native_stream(queue);
}

std::vector<std::string> Device::list() {
  std::vector<std::string> names;
  if (auto count = cuda_device_count(); count.ok())
    for (int i = 0; i < *count; ++i) names.push_back(fmt::format("cuda:{}", i));
  names.push_back("cpu");
  return names;
}

const std::string& Device::name() const {
  static const std::string kNone = "no device";
  return impl_ ? impl_->name() : kNone;
}

Runtime Device::runtime() const { return impl_ ? Runtime(impl_->runtime().keeper()) : Runtime(); }

bool Device::is_cuda() const { return impl_ && impl_->is_cuda(); }

DeviceInfo Device::info() const { return impl_ ? impl_->info() : DeviceInfo{}; }

int64_t Device::free_bytes() const { return impl_ ? impl_->backend().free_bytes() : -1; }

MemoryStats Device::memory() const { return impl_ ? impl_->allocator().stats() : MemoryStats{}; }

Stream Device::default_stream() const {
  if (!impl_) return {};
  return Stream(std::shared_ptr<StreamImpl>(impl_, &impl_->backend().default_stream()));
}

Result<Stream> Device::new_stream() const {
  if (!impl_) return error(ErrorKind::kDevice, "a stream needs a device");
  KILN_TRY(std::unique_ptr<StreamImpl> stream, impl_->backend().new_stream());
  auto owned = std::make_shared<OwnedStream>();
  owned->device = impl_;
  owned->stream = std::move(stream);
  return Stream(std::shared_ptr<StreamImpl>(owned, owned->stream.get()));
}

Stream Device::current_stream() const {
  if (!impl_) return {};
  StreamImpl& current = impl_->backend().current_stream();
  // Of a guarded stream, its owner: what is returned may outlive the guard.
  if (const Stream* held = guarded(&current)) return *held;
  return Stream(std::shared_ptr<StreamImpl>(impl_, &current));
}

Result<Event> Device::record(const Stream& stream) const {
  if (!impl_) return error(ErrorKind::kDevice, "an event needs a device");
  StreamImpl& queue = impl_->stream_or_current(stream);
  if (&queue.backend() != &impl_->backend())
    return error(ErrorKind::kValue, "the stream belongs to another device than {}", name());
  auto owned = std::make_shared<OwnedEvent>();
  owned->device = impl_;
  KILN_TRY(owned->event, impl_->backend().record(queue));
  return Event(std::shared_ptr<EventImpl>(owned, owned->event.get()));
}

Result<double> Device::elapsed_ms(const Event& from, const Event& to) const {
  if (!from.impl() || !to.impl()) return error(ErrorKind::kValue, "elapsed_ms needs two recorded events");
  trace::Scope span(trace::kSpans, trace::Step::kWait, "event");
  return impl_->backend().elapsed_ms(*from.impl(), *to.impl());
}

Status Device::synchronize() const {
  trace::Scope span(trace::kSpans, trace::Step::kWait, "device");
  if (!impl_) return {};
  Status status = impl_->backend().synchronize();
  impl_->release_passed();
  return status;
}

}  // namespace kiln
