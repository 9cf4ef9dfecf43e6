#include "kiln/graph.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <set>

#include "runtime/device/device.h"
#include "runtime/device/graph_refusal.h"
#include "support/diag.h"
#include "support/trace.h"

namespace kiln {
namespace runtime {

class GraphImpl {
 public:
  /// Once its capture has begun on `queue`.
  GraphImpl(std::shared_ptr<DeviceImpl> d, Stream s, const StreamImpl& queue)
      : device(std::move(d)), stream(std::move(s)), order(queue.order()) {
    device->allocator().open_graph(order);
  }
  ~GraphImpl() {
    captured.reset();
    device->allocator().close_graph(order);
  }
  GraphImpl(const GraphImpl&) = delete;
  GraphImpl& operator=(const GraphImpl&) = delete;

  /// The queue is about to work on the graph's memory.
  void note_launch(StreamImpl& queue) {
    std::lock_guard lock(mutex_);
    if (!launched_on_.insert(queue.id()).second) return;
    device->allocator().graph_launched(order, queue);
    for (const auto& storage : storages) storage->used_on(queue);
  }

  std::shared_ptr<DeviceImpl> device;
  Stream stream;
  const uint64_t order;          // of its memory
  std::function<Status()> work;  // of Graph::capture: for what it holds
  std::unique_ptr<CapturedWork> captured;
  std::vector<std::shared_ptr<Storage>> storages;  // that the recorded work uses, beside its own memory

 private:
  std::mutex mutex_;
  std::set<uint64_t> launched_on_;
};

namespace {
std::atomic<int> refusals{0};
}
GraphRefusal::GraphRefusal() { ++refusals; }
GraphRefusal::~GraphRefusal() { --refusals; }
bool GraphRefusal::is_on() { return refusals > 0; }

}  // namespace runtime

using namespace runtime;

GraphCapture::GraphCapture(std::shared_ptr<GraphImpl> impl, Stream queue)
    : impl_(std::move(impl)), queue_(std::move(queue)), guard_(std::make_unique<StreamGuard>(impl_->stream)) {}
GraphCapture::GraphCapture(GraphCapture&&) noexcept = default;

Result<GraphCapture> GraphCapture::begin(const Device& device, const Stream& stream) {
  if (!device) return error(ErrorKind::kDevice, "a graph needs a device to be captured on");
  DeviceImpl& impl = *device.impl();
  if (stream && &stream.impl()->backend() != &impl.backend())
    return error(ErrorKind::kValue, "the stream belongs to another device than {}", device.name());
  Stream queue = stream ? stream : device.current_stream();
  KILN_CHECK_OK(impl.backend().begin_capture(*queue.impl()));
  auto graph = std::make_shared<GraphImpl>(impl.shared_from_this(), stream, *queue.impl());
  return GraphCapture(std::move(graph), std::move(queue));
}

GraphCapture::~GraphCapture() {
  if (impl_) (void)end().ok();  // nobody asks for it any more
}

Result<Graph> GraphCapture::end() {
  KILN_ASSERT(impl_, "a capture is ended once");
  std::shared_ptr<GraphImpl> graph = std::move(impl_);
  StreamImpl& queue = *queue_.impl();
  guard_.reset();
  Result<std::unique_ptr<CapturedWork>> captured = graph->device->backend().end_capture(queue);
  graph->storages = queue.take_graph_storages();
  std::sort(graph->storages.begin(), graph->storages.end());
  graph->storages.erase(std::unique(graph->storages.begin(), graph->storages.end()), graph->storages.end());
  KILN_TRY(graph->captured, std::move(captured));
  return Graph(std::move(graph));
}

Result<Graph> Graph::capture(const Device& device, std::function<Status()> work, const Stream& stream) {
  KILN_TRY(GraphCapture capture, GraphCapture::begin(device, stream));
  Status done = work();  // a script may throw: the capture is thrown away then
  Result<Graph> graph = capture.end();
  if (!done.ok()) return std::move(done.error());
  if (graph.ok()) graph->impl_->work = std::move(work);
  return graph;
}

Status Graph::launch(const Stream& stream) const {
  if (!impl_) return error(ErrorKind::kValue, "launch of a graph that was never captured");
  const Stream& chosen = stream ? stream : impl_->stream;
  StreamImpl& queue = impl_->device->stream_or_current(chosen);
  if (&queue.backend() != &impl_->device->backend())
    return error(ErrorKind::kValue, "the stream belongs to another device than {}", impl_->device->name());
  for (const auto& storage : impl_->storages)
    if (storage->is_freed()) return freed_error("a tensor that the graph uses");
  if (GraphRefusal::is_on() && impl_->device->is_cuda())
    return with_note(error(ErrorKind::kUnsupported, "a graph cannot be launched while hardware counters are read"),
                     "help: count the statements that it was captured from");
  impl_->note_launch(queue);
  trace::Scope span(trace::kSpans, trace::Step::kGraphLaunch, "graph", 0, queue.id());
  return impl_->captured->launch(queue);
}

int64_t Graph::size() const { return impl_ ? impl_->captured->size() : 0; }

}  // namespace kiln
