// The tensors of a session that are not computed yet, so that none of them sees a later change of what it reads.
#pragma once
#include <vector>

namespace kiln {
namespace runtime {
struct Storage;
}

namespace script {

class Interp;
class TensorObject;

class PendingTensors {
 public:
  void add(TensorObject& t);
  void remove(TensorObject& t);
  bool empty() const { return tensors_.empty(); }
  /// Computes those that read the memory of `storage`, which is about to change.
  void run_readers(Interp& in, const runtime::Storage* storage);
  /// Computes all.
  void run_all(Interp& in);

 private:
  std::vector<TensorObject*> tensors_;
};

}  // namespace script
}  // namespace kiln
