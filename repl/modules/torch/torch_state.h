// What the module torch keeps for its session: the device, streams, the seed, and tensors that are not computed yet.
#pragma once
#include <memory>
#include <optional>
#include <vector>

#include "kiln/runtime.h"
#include "repl/modules/torch/pending.h"
#include "repl/modules/torch/tape.h"
#include "repl/script/interp/interp.h"
#include "support/knobs.h"

namespace kiln::script {

/// Where random numbers come from: each draw gets a stream of its own.
struct SeedStream {
  uint64_t seed = 0, draws = 0;
  uint64_t next();
};

/// torch.Generator
class GeneratorObject : public Object {
 public:
  static inline const KindOf<GeneratorObject> kKind{"torch.Generator"};
  GeneratorObject() : Object(kKind) {}
  SeedStream seeds;
};

/// torch.set_printoptions()
struct PrintOptions {
  int precision = 4;
  int64_t threshold = 1000;  // more elements are summarised
  int64_t edge = 3;          // elements shown at each end then
  int line_width = 80;
  std::optional<bool> scientific;  // else as the elements need
};

class TorchState {
 public:
  explicit TorchState(Interp& in) : in_(in) {}

  /// The device that tensors are made on; opened when first needed.
  Device& device();
  void set_device(Device d);
  /// What the session's devices are opened of: its own, unless one was set before or came with the device.
  const Runtime& runtime();
  void set_runtime(Runtime r) { runtime_ = std::move(r); }

  /// Makes a stream the one that work goes to. What is pending is computed before, where it was written. `scoped`:
  /// until leave_stream() or the end of the script; else for good, as a `with` inside of it ends.
  void enter_stream(const Stream& stream, bool scoped);
  void leave_stream();
  /// Leaves all streams that a script entered, as when it was stopped inside of a `with`.
  void forget_entered();

  uint64_t next_seed() { return seeds_.next(); }
  void set_seed(uint64_t seed) { seeds_ = {seed}; }
  SeedStream& seeds() { return seeds_; }

  const std::shared_ptr<PendingTensors>& pending() const { return pending_; }
  /// Operations stay pending however small their tensors are, because the caller needs the expression.
  bool always_lazy = false;
  /// A graph is being captured: what waits for the GPU, or copies from the host, cannot be recorded.
  bool captures = false;
  /// Tensors that require gradients.
  const std::shared_ptr<Tape> tape = std::make_shared<Tape>();
  /// Results are constants for gradients: inside of torch.no_grad().
  bool no_grad() const { return tape->is_paused; }
  /// The scopes of torch.func that have not ended.
  int gradient_scopes = 0;
  /// Whether results keep what gradients read again.
  bool expects_gradients() const { return gradient_scopes > 0 || tape->expects_gradients; }
  /// For tests: what is no expression runs as kernels on the CPU too, as it does on a GPU.
  bool always_kernels = false;
  /// How often tensors were read element by element on the host, for the table of docs/torch.md.
  int64_t host_reads = 0;
  /// How often functions of torch._device ran, for the same table.
  int64_t kernel_runs = 0;
  /// Inside of torch.autocast(): the dtype that products have on the CPU and on GPUs.
  struct Autocast {
    std::optional<DType> cpu, cuda;
    std::optional<DType> of(const Device& d) const { return d.is_cuda() ? cuda : cpu; }
  } autocast;
  /// Products of float32 may round their operands to tf32.
  bool tf32 = false;
  /// Of the GPU that was asked about last.
  struct Processors {
    Device device;
    int count = 0;
  } processors;
  PrintOptions print;
  /// Of what is made of Python's floats, and of integers where a result is a float: torch.set_default_dtype().
  DType default_dtype = DType::kF32;
  /// Sums have one order in every run.
  bool deterministic = knob_on(Knob::kDeterministic);

 private:
  Interp& in_;
  std::optional<Runtime> runtime_;
  Device device_;
  std::unique_ptr<StreamGuard> chosen_stream_;                 // by set_stream
  std::vector<std::unique_ptr<StreamGuard>> entered_streams_;  // by with
  SeedStream seeds_;
  std::shared_ptr<PendingTensors> pending_ = std::make_shared<PendingTensors>();
};
inline TorchState& torch_state(Interp& in) { return in.state<TorchState>(); }
inline DType default_dtype(Interp& in) { return torch_state(in).default_dtype; }

/// The next draw of a generator (an argument, which may be left out), or of the session's.
uint64_t seed_of(Interp& in, const Value& generator);

}  // namespace kiln::script
