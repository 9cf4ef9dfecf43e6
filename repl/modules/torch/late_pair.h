// Two results of one function that wait until one is needed: only those that somebody can read then are computed.
#pragma once
#include <array>
#include <memory>
#include <vector>

#include "kiln/tensor.h"
#include "repl/script/value/value.h"

namespace kiln::script {

class Interp;
class PendingTensors;
class TensorObject;

/// The function is called with a tensor and, for each result, whether it is asked for. It gives a tuple of tensors,
/// with anything for what is not asked for.
class LatePair : public std::enable_shared_from_this<LatePair> {
 public:
  struct Half {
    DType dtype = DType::kF32;
    std::vector<int64_t> shape;
    int64_t numel() const;
    TensorObject* reader = nullptr;  // while it lives and has no value
  };

  LatePair(Interp& in, Value function, Tensor input, std::array<Half, 2> halves);
  ~LatePair();
  LatePair(const LatePair&) = delete;
  LatePair& operator=(const LatePair&) = delete;

  const Half& half(int i) const { return halves_[static_cast<size_t>(i)]; }
  const Tensor& input() const { return input_; }
  /// The dimension along which the places of the second half are an order of all elements; -1: they are none.
  int64_t orders = -1;
  bool reads(const runtime::Storage* storage) const { return input_.storage().get() == storage; }
  /// Of a tensor that ends, null. A pair that ends without readers and unread is dropped: see PendingTensors::drop().
  void set_reader(int i, TensorObject* reader);
  /// Gives its readers their values; both results are computed when nobody is there any more.
  void run();

 private:
  Interp& in_;
  Value function_;
  Tensor input_;
  std::array<Half, 2> halves_;
  std::shared_ptr<PendingTensors> pending_;
  bool is_done_ = false, is_running_ = false;
};

}  // namespace kiln::script
