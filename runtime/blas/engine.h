// The libraries behind one interface: each runs a checked problem. They are companions of a device and may be called
// from several threads at once.
#pragma once
#include <functional>

#include "runtime/blas/problem.h"
#include "runtime/device/device.h"

namespace kiln::runtime::blas {

struct Operands {
  uint64_t a = 0, b = 0, d = 0, bias = 0;  // addresses
};

class Engine : public Companion {
 public:
  /// Queues the product on `stream`; on the CPU it is done on return.
  virtual Status run(const GemmProblem& problem, const Operands& operands, StreamImpl& stream) = 0;
  /// Makes what run() will use. Timing writes to operands.d.
  virtual Result<MatmulPlan> plan(const GemmProblem& problem, const Operands& operands, StreamImpl& stream) = 0;
};

/// The workspace that every algorithm of every library may use, so that none is favoured.
inline constexpr int64_t kWorkspaceBytes = int64_t{32} << 20;
/// How many algorithms cublasLt's heuristics are asked for.
inline constexpr int kMaxAlgorithms = 32;

/// Calls use(address) with a workspace of kWorkspaceBytes that is the stream's until its present work has passed; of a
/// graph that is being captured, as long as the graph lives.
Status with_workspace(DeviceImpl& device, StreamImpl& stream, const std::function<Status(uint64_t)>& use);

Result<Engine*> cublas_engine(DeviceImpl& device);
/// `best`: run with the fastest of what the heuristics name, not with the first.
Result<Engine*> cublaslt_engine(DeviceImpl& device, bool best);
Result<Engine*> openblas_engine(DeviceImpl& device);

}  // namespace kiln::runtime::blas
