#include "runtime/blas/engine.h"

namespace kiln::runtime::blas {

Status with_workspace(DeviceImpl& device, StreamImpl& stream, const std::function<Status(uint64_t)>& use) {
  if (!stream.is_capturing()) {
    // Given back as soon as the work is queued: the stream's order keeps the next user of it behind this product.
    KILN_TRY(Block * block, device.allocator().allocate(kWorkspaceBytes, stream));
    Status status = use(block->address);
    device.allocator().free(block);
    return status;
  }
  std::shared_ptr<Storage>& shared = stream.graph_workspace();
  if (!shared) {
    KILN_TRY(Block * block, device.allocator().allocate(kWorkspaceBytes, stream));
    shared = std::make_shared<Storage>(device.shared_from_this(), block, kWorkspaceBytes);
    stream.keep_for_graph(shared);
  }
  return use(shared->address());
}

}  // namespace kiln::runtime::blas
