// The tensors of a session that are not computed yet, so that none of them sees a later change of what it reads.
#pragma once
#include <memory>
#include <utility>
#include <vector>

#include "repl/script/value/value.h"

namespace kiln {
class Expr;
class Tensor;
namespace runtime {
struct ExprNode;
struct Storage;
}  // namespace runtime

namespace script {

class Interp;
class LatePair;
class TensorObject;

class PendingTensors {
 public:
  void add(TensorObject& t);
  void remove(TensorObject& t);
  bool empty() const { return tensors_.empty() && dropped_.empty() && late_.empty() && dropped_late_.empty(); }
  void add(LatePair& p) { late_.push_back(&p); }
  void remove(LatePair& p) { std::erase(late_, &p); }
  /// While a late pair runs, which changes nothing of what it reads: others that read it may go on waiting. Gives what
  /// was read so before.
  const runtime::Storage* read_only(const runtime::Storage* storage) { return std::exchange(read_only_, storage); }
  /// Takes over a pair of which nobody has read a result, nor can any more, when clocks are being read.
  void drop(std::shared_ptr<LatePair> p) {
    if (clock_was_read_) dropped_late_.push_back(std::move(p));
  }
  /// Before `whole` is computed: of the tensors that are parts of it, those worth keeping are computed first.
  void keep_parts(Interp& in, const Expr& whole);
  /// Of a value that has gradients, a gradient, or what is made of one: computes it with all others that share
  /// operations with it, in one plan. False when there are none.
  bool run_with_gradients(Interp& in, const TensorObject& t);
  /// Computes these, of which some go into tensors in place, with those that read the memory that is overwritten;
  /// `homes`: what will be overwritten next, too.
  void store(Interp& in, std::vector<Ref<TensorObject>> together, std::vector<const runtime::Storage*> homes = {});
  /// Computes what is to be stored in leaves of the tape, in one plan with all other stores: an optimizer's step.
  void store_leaves(Interp& in);
  bool has_view_of(const TensorObject& t) const;
  bool has_view_of(const runtime::Storage* storage) const;
  /// Whether all who share the tensor's memory, but itself, are leaves of what is pending, or of `result`.
  bool only_leaves_hold(const Tensor& t, const Expr& result) const;
  /// Computes those that read the memory of `storage`, which is about to change.
  void run_readers(Interp& in, const runtime::Storage* storage);
  /// Computes all, also what was dropped.
  void run_all(Interp& in);

  /// The script is about to read a clock. From the first reading on, a result that is dropped unread is computed before
  /// the next one: a script that times f() and ignores what it gives would else time nothing.
  void before_clock(Interp& in);
  /// All results of one call, each of them among them; null: there is one.
  using Siblings = std::shared_ptr<const std::vector<std::weak_ptr<runtime::ExprNode>>>;
  /// Takes over a result that nobody can read any more, when clocks are being read. One of several of a call is
  /// computed if all of them are dropped: who takes the values of max(dim) has no use for the indices, nor who takes
  /// the output of an LSTM for its states.
  void drop(std::shared_ptr<runtime::ExprNode> result, Siblings siblings);
  /// Computes what was dropped once it is so much that it holds memory.
  void limit_dropped(Interp& in);

 private:
  void run_late_readers(const runtime::Storage* storage);
  struct Dropped {
    std::shared_ptr<runtime::ExprNode> result;
    Siblings siblings;
  };
  void run_dropped(Interp& in);
  /// All, those together that have operations in common, or are as large as a tensor that both read, and so share a
  /// plan.
  std::vector<std::vector<Ref<TensorObject>>> related() const;

  std::vector<TensorObject*> tensors_;
  std::vector<Dropped> dropped_;
  std::vector<LatePair*> late_;
  std::vector<std::shared_ptr<LatePair>> dropped_late_;
  const runtime::Storage* read_only_ = nullptr;
  bool clock_was_read_ = false;
};

}  // namespace script
}  // namespace kiln
