#include "kiln/graph.h"

#include <algorithm>

#include "runtime/device.h"
#include "support/diag.h"
#include "support/trace.h"

namespace kiln {
namespace runtime {

class GraphImpl {
 public:
  GraphImpl(std::shared_ptr<DeviceImpl> d, Stream s, std::function<Status()> w)
      : device(std::move(d)), stream(std::move(s)), work(std::move(w)) {}

  std::shared_ptr<DeviceImpl> device;
  Stream stream;
  std::function<Status()> work;  // for what it holds
  std::unique_ptr<CapturedWork> captured;
  std::vector<std::shared_ptr<Storage>> storages;  // that the recorded work uses
};

}  // namespace runtime

using namespace runtime;

Result<Graph> Graph::capture(const Device& device, std::function<Status()> work, const Stream& stream) {
  if (!device) return error(ErrorKind::kDevice, "a graph needs a device to be captured on");
  DeviceImpl& impl = *device.impl();
  Backend& backend = impl.backend();
  StreamImpl& queue = impl.stream_or_current(stream);
  if (&queue.backend() != &backend)
    return error(ErrorKind::kValue, "the stream belongs to another device than {}", device.name());
  auto graph = std::make_shared<GraphImpl>(impl.shared_from_this(), stream, std::move(work));
  KILN_CHECK_OK(backend.begin_capture(queue));
  Status done;
  std::exception_ptr thrown;  // of a script
  try {
    const StreamGuard guard(stream);
    done = graph->work();
  } catch (...) {
    thrown = std::current_exception();
  }
  Result<std::unique_ptr<CapturedWork>> captured = backend.end_capture(queue);
  graph->storages = queue.take_graph_storages();
  std::sort(graph->storages.begin(), graph->storages.end());
  graph->storages.erase(std::unique(graph->storages.begin(), graph->storages.end()), graph->storages.end());
  if (thrown) std::rethrow_exception(thrown);
  if (!done.ok()) return std::move(done.error());
  if (!captured.ok()) return std::move(captured.error());
  graph->captured = *std::move(captured);
  return Graph(std::move(graph));
}

Status Graph::launch(const Stream& stream) const {
  if (!impl_) return error(ErrorKind::kValue, "launch of a graph that was never captured");
  const Stream& chosen = stream ? stream : impl_->stream;
  StreamImpl& queue = impl_->device->stream_or_current(chosen);
  if (&queue.backend() != &impl_->device->backend())
    return error(ErrorKind::kValue, "the stream belongs to another device than {}", impl_->device->name());
  for (const auto& storage : impl_->storages)
    if (storage->is_freed()) return freed_error("a tensor that the graph uses");
  trace::Scope span(trace::kSpans, trace::Step::kGraphLaunch, "graph", 0, queue.id());
  return impl_->captured->launch(queue);
}

int64_t Graph::size() const { return impl_ ? impl_->captured->size() : 0; }

}  // namespace kiln
