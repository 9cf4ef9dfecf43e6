// What an Expr stands for.
#pragma once
#include <algorithm>
#include <array>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/fusion/graph.h"
#include "kiln/expr.h"

namespace kiln::runtime {

/// What a GradScope shares with its variables and what is made of them.
struct Recording {
  bool open = true;  // until the scope ends
};

struct ExprNode {
  fusion::Node node;  // `inputs` count the operands; positions are those of a walk
  std::vector<std::shared_ptr<ExprNode>> operands;
  Device device;
  Tensor value;  // of a leaf, or the result once it is there; the operands are let go then, unless it records
  std::vector<std::shared_ptr<const Recording>> recordings;  // of the scopes whose variables it depends on
  bool constant = false;                                     // gradients() stops here
  bool variable = false;                                     // of a scope
  GradientRule gradient;                                     // of with_gradient(): what gradients() does here
  std::vector<std::weak_ptr<ExprNode>> views;                // of it, while it records
  std::weak_ptr<const void> holder;                          // of Expr::hold()
  bool forgot = false;                                       // its operands were let go
  bool released = false;                                     // by release(): they go once it is computed
  mutable bool was_part = false;                             // of what was computed
  mutable int most_operations = 1;                           // that are pending in it: a bound, or as counted last
  bool may_scatter = false;                                  // something pending in it was kScatterAdd when it was made
  int gradient_operations = 0;                               // of what gradients() made in it, or it is part of

  // Of the walk that visited it last.
  mutable uint64_t visit = 0;
  mutable int position = -1;

  ExprNode() = default;
  ~ExprNode();  // without recursing as deep as the expression is
  /// From a list of free ones.
  static std::shared_ptr<ExprNode> make();
  ExprNode(const ExprNode&) = delete;
  ExprNode& operator=(const ExprNode&) = delete;
  bool is_scalar() const { return node.op == ExprOp::kScalar; }
  bool is_pending() const { return !value && !is_scalar(); }
  bool records() const {
    return std::ranges::any_of(recordings, [](const auto& r) { return r->open; });
  }
  /// Depends on the variables of an operand from now on.
  void record_with(const ExprNode& operand);
  void set_value(Tensor v);
};

/// One operation on what has its value: most are asked about as such, and need no walk.
bool is_first_operation(const ExprNode& n);

/// For ExprNode::visit, which marks what a walk has visited in place of a set. No walk is 0.
uint64_t next_visit();

/// An expression in the order of its evaluation. Nodes with a value are leaves; equal tensors are one leaf.
struct ExprWalk {
  std::vector<const ExprNode*> order;  // operands before their users; a leaf that equals an earlier one is not in it
  std::vector<const ExprNode*> leaves;
  std::vector<const ExprNode*> scalars;  // equal ones once, too
  std::vector<bool> is_argument;         // per node of the order: a number that plans leave open
  std::vector<bool> is_of_places;        // per node: computed from iota and numbers
  std::vector<int> roots;                // positions of what was asked for
  std::vector<bool> any_order;           // per root, or empty: fusion::Graph::any_order

  /// The order is valid for positions (ExprNode::position) until the next walk on this thread.
  explicit ExprWalk(const ExprNode& root) : ExprWalk(std::array{&root}) {}
  explicit ExprWalk(std::span<const ExprNode* const> roots, std::vector<bool> any_order = {});
  /// Graph::nodes in the walk's order; names are those of `names`.
  fusion::Graph graph(std::span<const ExprName> names = {}) const;
  /// What plans are kept by: everything but the numbers that are arguments of their kernels. Behind it is `end`.
  /// It lies in `memory`, whose length is not the key's.
  std::string_view key(std::string& memory, std::string_view end) const;
};

/// The same elements of the same memory.
bool same_tensor(const Tensor& a, const Tensor& b);

/// The value of a kFull.
Result<Tensor> fill(ExprNode& n);

/// A leaf's strided view under one operation of kind kView; nullopt when the operation has to copy.
std::optional<Tensor> view_of(const Tensor& base, const fusion::Node& node);

}  // namespace kiln::runtime
