// Rows taken apart: what passes share that give each part of a row statistics of its own and join them.
#pragma once
#include <optional>

#include "compiler/fusion/dag.h"
#include "compiler/fusion/plan.h"

namespace kiln::fusion {

class RowParts {
 public:
  RowParts(Dag& dag, const Machine& machine) : dag_(dag), machine_(machine) {}

 protected:
  /// Axis `axis` as `parts` parts of equal length; what they do not divide is left behind them.
  struct Cut {
    int axis;
    int64_t parts;
  };

  /// The pointwise node that an operand is the whole result of, if it is one of `op`.
  const DagNode* pointwise(const Operand& o, ExprOp op) const;
  /// A sum of floats that is not in parts yet.
  static bool is_sum(const DagNode& n);

  /// Parts of the rows of `x` that reduction `n` sums which a program holds, about `wanted`; of equal length, so that
  /// one axis is cut evenly where that gives about as many. Else what is left of it is a small part of its own.
  std::optional<Cut> cut_of(const DagNode& n, const Operand& x, int64_t wanted) const;

  /// Its elements from `begin` on along dimension `d`. What is computed is computed anew, for these alone: a slice of
  /// a tensor that others read as well would have to be stored.
  Operand slice(Operand x, size_t d, int64_t begin, int64_t count);

  /// `x` as its parts and, where they are not all of it, what is left. `sum`, a reduction of x, becomes one of the
  /// parts, which are dimension `place` of its result.
  struct Parts {
    Operand even;
    std::optional<Operand> rest;
    DagNode sum;
    size_t place;
  };
  Parts take_apart(Operand x, const DagNode& sum, const Cut& cut);
  /// Makes reduction `node` one of the statistics of its parts and of what is left.
  void join(size_t node, const Operand& parts, size_t place, const std::optional<Operand>& rest, ExprOp op);

  Operand computed(ExprOp op, std::vector<Operand> operands, const DagNode& like, const Shape& shape,
                   std::string name = {});
  static Operand number(double value, const Shape& shape);
  /// A tensor with a dimension more, along which it repeats.
  static Operand repeated(Operand o, size_t d, int64_t size);
  /// A tensor that repeats along `axes`, without them.
  static Operand without_axes(const Operand& o, const std::vector<int>& axes);
  /// With them, for a tensor of shape `whole`.
  static Operand with_axes(Operand o, const std::vector<int>& axes, const Shape& whole);

  Dag& dag_;
  const Machine& machine_;

 private:
  bool is_sliced(const Operand& x, size_t d) const;
  bool is_sliced(const Operand& x, size_t d, int& nodes) const;
};

}  // namespace kiln::fusion
