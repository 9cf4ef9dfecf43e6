#include "repl/modules/torch/torch_state.h"

namespace kiln::script {

Device& TorchState::device() {
  if (!device_) device_ = in_.take(runtime().open_default());
  return device_;
}

void TorchState::set_device(Device d) {
  device_ = std::move(d);
  runtime_ = device_.runtime();
}

const Runtime& TorchState::runtime() {
  if (!runtime_) runtime_.emplace();
  return *runtime_;
}

void TorchState::enter_stream(const Stream& stream, bool scoped) {
  pending_->run_all(in_);
  if (scoped) {
    entered_streams_.push_back(std::make_unique<StreamGuard>(stream));
    return;
  }
  forget_entered();
  chosen_stream_.reset();  // before the next one looks what was before it
  chosen_stream_ = std::make_unique<StreamGuard>(stream);
}

void TorchState::leave_stream() {
  if (entered_streams_.empty()) return;  // set_stream() came in between
  std::unique_ptr<StreamGuard> last = std::move(entered_streams_.back());
  entered_streams_.pop_back();
  pending_->run_all(in_);  // still where it was written
}

uint64_t seed_of(Interp& in, const Value& generator) {
  if (!given(generator)) return torch_state(in).next_seed();
  auto* g = generator.get<GeneratorObject>();
  if (!g) in.fail(ErrorKind::kType, "generator= is a torch.Generator, got '{}'", in.type_name(generator));
  return g->seeds.next();
}

void TorchState::forget_entered() {
  while (!entered_streams_.empty()) entered_streams_.pop_back();
}

uint64_t SeedStream::next() {
  // It depends on the seed and on how many came before.
  uint64_t x = seed * 0x9E3779B97F4A7C15u + ++draws * 0xBF58476D1CE4E5B9u;
  x ^= x >> 31;
  x *= 0x94D049BB133111EBu;
  return x ^ (x >> 29);
}

}  // namespace kiln::script
