#include "repl/modules/torch/late_pair.h"

#include "repl/modules/torch/tensor_object.h"

namespace kiln::script {

int64_t LatePair::Half::numel() const {
  int64_t n = 1;
  for (int64_t d : shape) n *= d;
  return n;
}

LatePair::LatePair(Interp& in, Value function, Tensor input, std::array<Half, 2> halves)
    : in_(in),
      function_(std::move(function)),
      input_(std::move(input)),
      halves_(std::move(halves)),
      pending_(torch_state(in).pending()) {
  pending_->limit_dropped(in);
  pending_->add(*this);
}

LatePair::~LatePair() { pending_->remove(*this); }

void LatePair::set_reader(int i, TensorObject* reader) {
  halves_[static_cast<size_t>(i)].reader = reader;
  if (reader || is_done_ || halves_[0].reader || halves_[1].reader) return;
  pending_->remove(*this);
  pending_->drop(shared_from_this());
}

void LatePair::run() {
  if (is_done_ || is_running_) return;
  const std::shared_ptr<LatePair> alive = shared_from_this();  // its readers let go of it
  const std::array<bool, 2> read = {halves_[0].reader != nullptr, halves_[1].reader != nullptr};
  const bool is_dropped = !read[0] && !read[1];
  TorchState& state = torch_state(in_);
  // Where it is needed is not where it was written: it runs as there. It waits no longer; it does again after an error.
  struct Running {
    Running(LatePair& p, TorchState& s)
        : pair(p),
          state(s),
          lazy(std::exchange(s.always_lazy, false)),
          read_only(p.pending_->read_only(p.input_.storage().get())) {
      pair.is_running_ = true;
      pair.pending_->remove(pair);
    }
    ~Running() {
      pair.is_running_ = false;
      pair.pending_->read_only(read_only);
      state.always_lazy = lazy;
      if (!pair.is_done_ && (pair.halves_[0].reader || pair.halves_[1].reader)) pair.pending_->add(pair);
    }
    LatePair& pair;
    TorchState& state;
    const bool lazy;
    const runtime::Storage* const read_only;
  };
  const Running running(*this, state);
  Value result;
  {
    CallArgs args;
    args.args.push_back(wrap(input_));
    for (const bool each : read) args.args.push_back(Value::boolean(is_dropped || each));
    result = in_.call(function_, args);
  }
  const auto* pair = result.get<Tuple>();
  std::array<Tensor, 2> values;
  for (size_t i = 0; i < 2; ++i)
    if (is_dropped || read[i]) values[i] = seen_tensor(in_, pair->items[i], "a result");
  is_done_ = true;
  for (size_t i = 0; i < 2; ++i) {
    TensorObject* reader = std::exchange(halves_[i].reader, nullptr);
    if (!reader) continue;
    reader->tensor_ = values[i];
    reader->late_ = nullptr;
  }
  function_ = Value::none();
  input_ = Tensor();
}

}  // namespace kiln::script
