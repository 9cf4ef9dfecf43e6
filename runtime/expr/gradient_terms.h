// Formulas of gradients in few words: operators on expressions, of which the first that fails keeps its error.
#pragma once
#include <initializer_list>
#include <span>
#include <vector>

#include "runtime/expr/node.h"

namespace kiln::runtime {

class GradientTerms;

/// An expression or number in a formula.
class Term {
 public:
  Term(GradientTerms& in, Expr e) : terms(&in), expr(std::move(e)) {}
  GradientTerms* terms;
  Expr expr;

  DType dtype() const { return expr.dtype(); }
  std::span<const int64_t> shape() const { return expr.shape(); }
};

/// Makes terms. After an error all are empty, and `problem` says what it was.
class GradientTerms {
 public:
  Status problem;

  Term term(Expr e) { return Term(*this, std::move(e)); }
  Term number(double v) { return term(Expr::scalar(v)); }
  Term op(ExprOp op, std::initializer_list<Term> operands, ExprAttributes attributes = {});
  Term op(ExprOp op, std::span<const Term> operands, ExprAttributes attributes = {});

  Term cast(const Term& x, DType dtype);
  /// Halves in float32, in which their gradients are computed.
  Term widened(const Term& x);
  Term reshaped(const Term& x, std::span<const int64_t> shape);
  Term expanded(const Term& x, std::span<const int64_t> shape);
  Term permuted(const Term& x, std::vector<int> order);
  Term swapped(const Term& x);                     // the last two dimensions
  Term sum(const Term& x, std::vector<int> axes);  // which stay, with one element
  Term mean(const Term& x, std::vector<int> axes);
  /// Undoes a broadcast from `shape`: sums along the dimensions that it repeated. Those that x does not repeat either
  /// keep their one element.
  Term summed_to(const Term& x, std::span<const int64_t> shape);
  Term zeros(const Device& device, DType dtype, std::span<const int64_t> shape);
  /// 0, 1, 2… along one of `rank` dimensions.
  Term places(const Device& device, int64_t n, size_t dim, size_t rank);

  // clang-format off
  Term exp(const Term& x) { return op(ExprOp::kExp, {x}); }
  Term sigmoid(const Term& x) { return op(ExprOp::kSigmoid, {x}); }
  Term where(const Term& test, const Term& x, const Term& y) { return op(ExprOp::kWhere, {test, x, y}); }
  Term or_zero(const Term& test, const Term& x) { return where(test, x, number(0)); }
  // clang-format on
};

inline Term operator+(const Term& a, const Term& b) { return a.terms->op(ExprOp::kAdd, {a, b}); }
inline Term operator-(const Term& a, const Term& b) { return a.terms->op(ExprOp::kSub, {a, b}); }
inline Term operator*(const Term& a, const Term& b) { return a.terms->op(ExprOp::kMul, {a, b}); }
inline Term operator/(const Term& a, const Term& b) { return a.terms->op(ExprOp::kDiv, {a, b}); }
inline Term operator+(const Term& a, double b) { return a + a.terms->number(b); }
inline Term operator-(const Term& a, double b) { return a - a.terms->number(b); }
inline Term operator-(double a, const Term& b) { return b.terms->number(a) - b; }
inline Term operator*(const Term& a, double b) { return a * a.terms->number(b); }
inline Term operator/(const Term& a, double b) { return a / a.terms->number(b); }
inline Term operator-(const Term& a) { return a.terms->op(ExprOp::kNeg, {a}); }
inline Term operator<(const Term& a, const Term& b) { return a.terms->op(ExprOp::kLt, {a, b}); }
inline Term operator<=(const Term& a, const Term& b) { return a.terms->op(ExprOp::kLe, {a, b}); }
inline Term operator>(const Term& a, const Term& b) { return a.terms->op(ExprOp::kGt, {a, b}); }
inline Term operator>=(const Term& a, const Term& b) { return a.terms->op(ExprOp::kGe, {a, b}); }
inline Term operator==(const Term& a, const Term& b) { return a.terms->op(ExprOp::kEq, {a, b}); }
inline Term operator&(const Term& a, const Term& b) { return a.terms->op(ExprOp::kLogicalAnd, {a, b}); }
inline Term operator|(const Term& a, const Term& b) { return a.terms->op(ExprOp::kLogicalOr, {a, b}); }

/// One operation on the way back: what its rule knows, and what it gives.
class GradientStep {
 public:
  GradientStep(GradientTerms& terms, const std::shared_ptr<ExprNode>& node, std::vector<bool> wanted, Expr gradient)
      : terms_(terms),
        node_(node),
        wanted_(std::move(wanted)),
        gradient_(std::move(gradient)),
        given_(wanted_.size()) {}

  GradientTerms& terms() { return terms_; }
  const ExprNode& node() const { return *node_; }
  const ExprAttributes& attributes() const { return node_->node.attributes; }
  size_t operands() const { return wanted_.size(); }
  bool wants(size_t i) const { return i < wanted_.size() && wanted_[i]; }
  bool is_number(size_t i) const { return node_->operands[i]->is_scalar(); }
  std::span<const int64_t> shape(size_t i) const { return node_->operands[i]->node.shape; }
  Term operand(size_t i) const { return terms_.term(Expr(node_->operands[i])); }

  // Wide: halves as float32.
  Term g() { return terms_.widened(terms_.term(gradient_)); }    // to the operation's result
  Term x(size_t i = 0) { return terms_.widened(operand(i)); }    // an operand
  Term y() { return terms_.widened(terms_.term(Expr(node_))); }  // the result
  Term narrow_g() { return terms_.term(gradient_); }
  Term result() { return terms_.term(Expr(node_)); }

  /// The gradient to an operand: of the result's shape or the operand's, in any float dtype.
  void give(size_t i, const Term& gradient);
  const std::vector<Expr>& given() const { return given_; }

 private:
  GradientTerms& terms_;
  const std::shared_ptr<ExprNode>& node_;
  std::vector<bool> wanted_;
  Expr gradient_;
  std::vector<Expr> given_;
};

/// Which of its elements the gradient of an operation to one operand reads.
enum class Reads : uint8_t { kNothing, kResult, kOperand };
Reads gradient_reads(const ExprNode& n, const ExprNode& operand);

/// Whether places follow from iota and numbers alone, so that they are known.
bool is_known(const ExprNode& n);

// The rules, by what kind of operation it is. A rule gives to the operands that are wanted, or leaves out a zero.
void pointwise_gradient(GradientStep& s);
void view_gradient(GradientStep& s);
void place_gradient(GradientStep& s);
void reduce_gradient(GradientStep& s);
void row_gradient(GradientStep& s);
void product_gradient(GradientStep& s);

}  // namespace kiln::runtime
