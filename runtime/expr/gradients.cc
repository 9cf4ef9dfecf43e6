// Reverse mode over expressions: one walk from the values back to the inputs, a rule for each operation on the way.
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "runtime/expr/gradient_terms.h"
#include "runtime/expr/kept.h"
#include "support/diag.h"

namespace kiln {

using namespace runtime;

namespace {

enum class Rule : uint8_t {
  kPointwise,
  kView,
  kPlace,
  kReduce,
  kRow,
  kProduct,
  kNotFloat,  // the result is no float: nothing flows back
  kConstant,  // steps: the gradient is zero
  kNone,
};

/// Every operation says here what becomes of gradients that reach it.
Rule rule_of(ExprOp op) {
  switch (op) {
    case ExprOp::kAdd:
    case ExprOp::kSub:
    case ExprOp::kMul:
    case ExprOp::kDiv:
    case ExprOp::kMod:
    case ExprOp::kPow:
    case ExprOp::kNeg:
    case ExprOp::kAbs:
    case ExprOp::kReciprocal:
    case ExprOp::kMaximum:
    case ExprOp::kMinimum:
    case ExprOp::kClamp:
    case ExprOp::kWhere:
    case ExprOp::kExp:
    case ExprOp::kExp2:
    case ExprOp::kExpm1:
    case ExprOp::kLog:
    case ExprOp::kLog2:
    case ExprOp::kLog1p:
    case ExprOp::kSqrt:
    case ExprOp::kRsqrt:
    case ExprOp::kSin:
    case ExprOp::kCos:
    case ExprOp::kTanh:
    case ExprOp::kErf:
    case ExprOp::kSigmoid:
    case ExprOp::kRelu:
    case ExprOp::kSilu:
    case ExprOp::kGelu:
    case ExprOp::kGeluTanh:
    case ExprOp::kCast:
      return Rule::kPointwise;
    case ExprOp::kFloor:
    case ExprOp::kCeil:
    case ExprOp::kRound:
    case ExprOp::kTrunc:
    case ExprOp::kPut:  // changes a tensor in place: none is made of one that has gradients
      return Rule::kConstant;
    case ExprOp::kExpand:
    case ExprOp::kPermute:
    case ExprOp::kReshape:
    case ExprOp::kSlice:
      return Rule::kView;
    case ExprOp::kTake:
    case ExprOp::kScatterAdd:
      return Rule::kPlace;
    case ExprOp::kSum:
    case ExprOp::kMax:
    case ExprOp::kMin:
    case ExprOp::kMean:
    case ExprOp::kVar:
      return Rule::kReduce;
    case ExprOp::kCumSum:
    case ExprOp::kCumProd:
    case ExprOp::kSoftmax:
    case ExprOp::kLogSoftmax:
    case ExprOp::kLayerNorm:
    case ExprOp::kRmsNorm:
      return Rule::kRow;
    case ExprOp::kMatMul:
      return Rule::kProduct;
    case ExprOp::kInput:
    case ExprOp::kScalar:
    case ExprOp::kIota:
    case ExprOp::kFull:
    case ExprOp::kEq:
    case ExprOp::kNe:
    case ExprOp::kLt:
    case ExprOp::kLe:
    case ExprOp::kGt:
    case ExprOp::kGe:
    case ExprOp::kLogicalAnd:
    case ExprOp::kLogicalOr:
    case ExprOp::kLogicalNot:
    case ExprOp::kRandomWord:
    case ExprOp::kBitAnd:
    case ExprOp::kBitOr:
    case ExprOp::kBitXor:
    case ExprOp::kBitNot:
    case ExprOp::kShl:
    case ExprOp::kShr:
    case ExprOp::kIsNan:
    case ExprOp::kArgMax:
    case ExprOp::kArgMin:
      return Rule::kNotFloat;
    case ExprOp::kFloorDiv:
    case ExprOp::kCumMax:
    case ExprOp::kCumMin:
    case ExprOp::kCall:
      return Rule::kNone;
  }
  KILN_UNREACHABLE("an operation outside of the table");
}

/// Whether the rule reads nothing but shapes: what lets go of values can keep such an operation's operands. The same
/// operations as those for which torch saves no tensor.
bool reads_shapes_alone(const ExprNode& n) {
  if (n.gradient || n.operands.empty()) return false;
  switch (n.node.op) {
    case ExprOp::kMul:  // by a number, which torch saves
    case ExprOp::kDiv:
      return false;
    case ExprOp::kTake:
      return std::all_of(n.operands.begin() + 1, n.operands.end(), [](const auto& place) { return is_known(*place); });
    case ExprOp::kWhere:
      return is_known(*n.operands[0]);
    case ExprOp::kCumSum:
      return true;
    default:
      return rule_of(n.node.op) == Rule::kConstant || gradient_reads(n, *n.operands[0]) == Reads::kNothing;
  }
}

Diagnostic refused(const ExprNode& n) {
  const ExprOp op = n.node.op;
  if (op == ExprOp::kCall)
    return with_note(
        error(ErrorKind::kUnsupported, "no gradient of the jit function {}", n.node.attributes.function->name),
        "help: write it with operations of tensors, or detach() its arguments");
  return with_note(error(ErrorKind::kUnsupported, "no gradient of {}: {}", name(op), *no_gradient_of(op)),
                   "help: detach() its operands, if it is a constant here");
}

/// What is pending in the roots, but what the visit has seen before and is behind that; users before their operands, in
/// an order that the structure alone decides, as plans are kept by it.
Nodes pending_in(const Nodes& roots, uint64_t visit) {
  Nodes found, work(roots.rbegin(), roots.rend());
  while (!work.empty()) {
    std::shared_ptr<ExprNode> n = std::move(work.back());
    work.pop_back();
    if (!n->is_pending() || n->visit == visit) continue;
    n->visit = visit;
    work.insert(work.end(), n->operands.rbegin(), n->operands.rend());
    found.push_back(std::move(n));
  }
  return found;
}

class Sweep {
 public:
  Sweep(std::span<const Expr> values, std::span<const Expr> seeds, std::span<const Expr> inputs,
        const SettleGradients& settle, bool are_constant)
      : values_(values), seeds_(seeds), inputs_(inputs), settle_(settle), are_constant_(are_constant) {
    for (size_t k = 0; k < inputs.size(); ++k) {
      if (!inputs[k]) continue;
      const ExprNode& n = *inputs[k].node();
      inputs_at_[&n].push_back(k);
      if (is_plain_leaf(n)) plain_inputs_.push_back(k);
    }
  }

  Result<std::vector<Expr>> run() {
    KILN_CHECK_OK(check());
    for (const Expr& v : values_) visit(v.shared());
    if (released_)
      return with_note(
          error(ErrorKind::kValue, "what the gradient of {} is made of was released: it was asked for before",
                name(released_->node.op)),
          "help: backward(retain_graph=True) keeps it for another time");
    if (forgotten_)
      return with_note(
          error(ErrorKind::kValue, "{} was computed before its gradient was asked for", name(forgotten_->node.op)),
          "help: make the inputs by GradScope::variable()");
    Nodes seeds;
    for (const Expr& seed : seeds_) seeds.push_back(seed.shared());
    for (const auto& n : pending_in(seeds, next_visit())) of_seeds_.insert(n.get());
    for (size_t i = 0; i < values_.size(); ++i) KILN_CHECK_OK(add(values_[i].node(), seeds_[i]));
    std::vector<Expr> out(inputs_.size());
    for (size_t i = order_.size(); i-- > 0;) {
      const std::shared_ptr<ExprNode>& n = order_[i];
      auto found = gradients_.find(n.get());
      if (found == gradients_.end()) continue;
      // It is complete: what reads n comes behind it in the order, and has given its share.
      const Expr g = std::move(found->second);
      gradients_.erase(found);
      if (settle_) {
        KILN_CHECK_OK(settle_(g, [&] {
          std::vector<Expr> all = {g};
          for (const Expr& e : out)
            if (e) all.push_back(e);
          // In the order of the nodes, not of their addresses: plans are kept by it.
          for (size_t k = i; k-- > 0;)
            if (const auto later = gradients_.find(order_[k].get()); later != gradients_.end())
              all.push_back(later->second);
          return all;
        }));
      }
      for (const size_t k : inputs_that_are(*n)) out[k] = g;
      if (n->gradient) KILN_CHECK_OK(compute(g, out));
      KILN_CHECK_OK(step(n, g));
    }
    count_operations(out);
    return out;
  }

 private:
  Status check() const {
    if (values_.size() != seeds_.size())
      return error(ErrorKind::kValue, "gradients of {} values by {} seeds", values_.size(), seeds_.size());
    for (size_t i = 0; i < values_.size(); ++i) {
      if (!values_[i] || !values_[i].device() || !is_float(values_[i].dtype()))
        return error(ErrorKind::kType, "only a tensor of floats has gradients");
      if (!seeds_[i] || seeds_[i].dtype() != values_[i].dtype() ||
          !std::ranges::equal(seeds_[i].shape(), values_[i].shape()))
        return error(ErrorKind::kType, "the seed of a gradient has the value's dtype and shape");
    }
    for (const Expr& in : inputs_)
      if (!in || !in.device() || !is_float(in.dtype()))
        return error(ErrorKind::kType, "only tensors of floats have gradients");
    return {};
  }

  /// A variable is itself alone; a leaf without a scope is every leaf of the same tensor.
  std::vector<size_t> inputs_that_are(const ExprNode& n) const {
    std::vector<size_t> found;
    if (const auto known = inputs_at_.find(&n); known != inputs_at_.end()) found = known->second;
    if (is_plain_leaf(n))
      for (const size_t k : plain_inputs_)
        if (const ExprNode& in = *inputs_[k].node(); &in != &n && same_tensor(n.value, in.value)) found.push_back(k);
    return found;
  }
  static bool is_plain_leaf(const ExprNode& n) { return n.value && n.recordings.empty(); }

  /// Post-order, by an explicit stack: histories are long. Only what depends on an input is in the order.
  void visit(const std::shared_ptr<ExprNode>& root) {
    std::vector<std::pair<std::shared_ptr<ExprNode>, size_t>> stack = {{root, 0}};
    while (!stack.empty()) {
      auto& [n, next] = stack.back();
      if (next == 0 && depends_.contains(n.get())) {
        stack.pop_back();
        continue;
      }
      if (!n->constant && is_float(n->node.dtype) && next < n->operands.size()) {
        stack.emplace_back(n->operands[next++], 0);  // which ends the life of the reference n
        continue;
      }
      bool here = false;
      const bool is_one = !inputs_that_are(*n).empty();
      if (!n->constant && is_float(n->node.dtype)) {
        for (const auto& operand : n->operands) here = here || depends_[operand.get()];
        if (n->released) released_ = n.get();
        // Where all inputs record, so does what is made of them: what forgot its operands depends on none.
        if (n->forgot && !is_one && !all_record()) forgotten_ = n.get();
      }
      depends_[n.get()] = here || is_one;
      if (here || is_one) order_.push_back(n);
      stack.pop_back();
    }
  }
  bool all_record() const {
    return std::ranges::all_of(inputs_, [](const Expr& e) { return !e.node()->recordings.empty(); });
  }

  Status add(const ExprNode* n, const Expr& gradient) {
    if (!depends_[n]) return {};
    auto [it, first] = gradients_.try_emplace(n, gradient);
    if (first) return {};
    KILN_TRY(it->second, apply(ExprOp::kAdd, {it->second, gradient}));
    note_made(it->second);
    return {};
  }

  /// A gradient that was made here. It records, as it is made of values that do, and would hold all that it was made
  /// of.
  void note_made(const Expr& gradient) const {
    if (are_constant_) gradient.node()->released = true;
  }

  Status step(const std::shared_ptr<ExprNode>& n, const Expr& g) {
    std::vector<bool> wanted;
    for (const auto& operand : n->operands) wanted.push_back(depends_[operand.get()] && !n->constant);
    if (std::ranges::none_of(wanted, [](bool w) { return w; })) return {};
    if (n->gradient) return by_rule(*n, wanted, g);
    GradientTerms terms;
    GradientStep s(terms, n, std::move(wanted), g);
    switch (rule_of(n->node.op)) {
      case Rule::kPointwise:
        pointwise_gradient(s);
        break;
      case Rule::kView:
        view_gradient(s);
        break;
      case Rule::kPlace:
        place_gradient(s);
        break;
      case Rule::kReduce:
        reduce_gradient(s);
        break;
      case Rule::kRow:
        row_gradient(s);
        break;
      case Rule::kProduct:
        product_gradient(s);
        break;
      case Rule::kConstant:
        for (size_t i = 0; i < s.operands(); ++i)
          if (s.wants(i)) s.give(i, terms.zeros(n->device, n->operands[i]->node.dtype, s.shape(i)));
        break;
      case Rule::kNotFloat:
        break;
      case Rule::kNone:
        return refused(*n);
    }
    KILN_CHECK_OK(terms.problem);
    for (size_t i = 0; i < s.given().size(); ++i) {
      const Expr& given = s.given()[i];
      if (!given) continue;
      // It may be the gradient of before, or a value.
      if (given.node() != g.node() && !depends_.contains(given.node())) note_made(given);
      KILN_CHECK_OK(add(n->operands[i].get(), given));
    }
    return {};
  }

  /// Computes the gradient that a rule reads, those of inputs that are complete, and of what the first is made of the
  /// operations that others are made of too: they would else be done again with those, which stay pending and share
  /// kernels with what is made of them.
  Status compute(const Expr& g, const std::vector<Expr>& out) const {
    const uint64_t visit = next_visit();
    const Nodes own = pending_in({g.shared()}, visit);
    if (own.empty()) return {};
    Nodes others;
    for (const auto& exprs : {std::span<const Expr>(out), values_})
      for (const Expr& e : exprs)
        if (e) others.push_back(e.shared());
    for (const auto& [node, e] : gradients_) others.push_back(e.shared());
    constexpr int kNotRead = 0, kRead = 1;
    for (const auto& n : own) n->position = kNotRead;
    for (const auto& n : others) n->position = kRead;
    for (const auto& n : pending_in(others, visit))
      for (const auto& operand : n->operands) operand->position = kRead;
    Nodes shared;
    for (const auto& n : own)
      if (n->position == kRead) shared.push_back(n);
    std::vector<Expr> wanted = {g};
    // Gradients of inputs that are complete: until they are asked for, they would hold all that they are made of.
    for (const Expr& e : out)
      if (e && !e.tensor()) wanted.push_back(e);
    append_costly(shared, wanted);
    for (const Expr& e : wanted)
      if (!depends_.contains(e.node()) && !of_seeds_.contains(e.node())) note_made(e);
    return run_together(wanted);
  }

  Status by_rule(const ExprNode& n, const std::vector<bool>& wanted, const Expr& g) {
    const std::vector<Expr> operands(n.operands.begin(), n.operands.end());
    KILN_TRY(const std::vector<Expr> found, n.gradient(g, operands));
    if (found.size() != operands.size())
      return error(ErrorKind::kType, "a rule gives {} gradients of {} operands", found.size(), operands.size());
    for (size_t i = 0; i < found.size(); ++i) {
      if (!wanted[i] || !found[i]) continue;
      if (found[i].dtype() != operands[i].dtype() || !std::ranges::equal(found[i].shape(), operands[i].shape()))
        return error(ErrorKind::kType, "the gradient of an operand {}[{}] by its rule is {}[{}]",
                     kiln::name(operands[i].dtype()), fmt::join(operands[i].shape(), ", "),
                     kiln::name(found[i].dtype()), fmt::join(found[i].shape(), ", "));
      KILN_CHECK_OK(add(n.operands[i].get(), found[i]));
    }
    return {};
  }

  /// The values and their gradients know how many operations they are made of.
  void count_operations(const std::vector<Expr>& out) const {
    std::vector<const ExprNode*> roots;
    for (const auto& exprs : {std::span<const Expr>(out), values_})
      for (const Expr& e : exprs)
        if (e) roots.push_back(e.node());
    int operations = 0;
    for (const ExprNode* n : ExprWalk(roots).order) operations += n->is_pending();
    for (const auto& exprs : {std::span<const Expr>(out), values_})
      for (const Expr& e : exprs)
        if (e) {
          e.node()->gradient_operations = std::max(e.node()->gradient_operations, operations);
          e.node()->most_operations = std::min(e.node()->most_operations, operations);
        }
  }

  const std::span<const Expr> values_, seeds_, inputs_;
  const SettleGradients& settle_;
  const bool are_constant_;
  std::unordered_map<const ExprNode*, std::vector<size_t>> inputs_at_;
  std::vector<size_t> plain_inputs_;
  std::vector<std::shared_ptr<ExprNode>> order_;
  std::unordered_map<const ExprNode*, bool> depends_;
  std::unordered_set<const ExprNode*> of_seeds_;
  std::unordered_map<const ExprNode*, Expr> gradients_;
  const ExprNode *forgotten_ = nullptr, *released_ = nullptr;
};

}  // namespace

Reads runtime::gradient_reads(const ExprNode& n, const ExprNode& operand) {
  switch (n.node.op) {
    case ExprOp::kAdd:
    case ExprOp::kSub:
    case ExprOp::kNeg:
    case ExprOp::kCast:
    case ExprOp::kExpand:
    case ExprOp::kPermute:
    case ExprOp::kReshape:
    case ExprOp::kSlice:
    case ExprOp::kTake:
    case ExprOp::kWhere:
    case ExprOp::kSum:
    case ExprOp::kMean:
      return Reads::kNothing;
    // A product by a constant.
    case ExprOp::kMul:
    case ExprOp::kDiv: {
      const bool is_alone = n.operands[0] != n.operands[1];
      const ExprNode& other = *n.operands[n.operands[0].get() == &operand ? 1 : 0];
      return is_alone && !other.records() ? Reads::kNothing : Reads::kOperand;
    }
    case ExprOp::kReciprocal:
    case ExprOp::kExp:
    case ExprOp::kExp2:
    case ExprOp::kExpm1:
    case ExprOp::kSqrt:
    case ExprOp::kRsqrt:
    case ExprOp::kTanh:
    case ExprOp::kSigmoid:
    case ExprOp::kRelu:
    case ExprOp::kSoftmax:
    case ExprOp::kLogSoftmax:
      return Reads::kResult;
    default:
      return Reads::kOperand;
  }
}

std::optional<std::string_view> no_gradient_of(ExprOp op) {
  if (rule_of(op) != Rule::kNone) return std::nullopt;
  return op == ExprOp::kCall ? "it is code of its own" : "it is a step function, which torch refuses too";
}

Result<std::vector<Expr>> gradients(std::span<const Expr> values, std::span<const Expr> seeds,
                                    std::span<const Expr> inputs, const SettleGradients& settle, bool are_constant) {
  return Sweep(values, seeds, inputs, settle, are_constant).run();
}

Result<std::vector<Expr>> gradients(const Expr& value, std::span<const Expr> inputs) {
  if (!value || !value.device() || value.numel() != 1)
    return with_note(error(ErrorKind::kValue, "the gradient of a value of {} elements", value ? value.numel() : 0),
                     "help: sum it, or give a seed of its shape");
  KILN_TRY(Tensor one, Tensor::full(value.device(), value.dtype(), value.shape(), 1.0));
  const Expr seed(std::move(one));
  return gradients({&value, 1}, {&seed, 1}, inputs);
}

GradScope::GradScope() : recording_(std::make_shared<Recording>()) {}
// Nodes still point at the recording; closed, it makes nothing record.
GradScope::~GradScope() { recording_->open = false; }

Result<Expr> GradScope::variable(const Expr& of) const {
  if (!of || !of.device() || !is_float(of.dtype()))
    return error(ErrorKind::kType, "only tensors of floats have gradients{}",
                 of && of.device() ? fmt::format(", not of {}", info(of.dtype()).torch) : "");
  // A reshape to its own shape: another node of the same elements, which is no input of an enclosing scope by itself.
  ExprAttributes same;
  same.shape.assign(of.shape().begin(), of.shape().end());
  KILN_TRY(Expr v, apply(ExprOp::kReshape, {of}, std::move(same)));
  ExprNode& n = *v.node();
  n.value = of.node()->value;
  n.variable = true;
  // Of what an enclosing scope records it stays an operation, for gradients of gradients.
  if (n.value && !of.records()) n.operands.clear();
  n.recordings.push_back(recording_);
  return v;
}

std::vector<Expr> variables_of(std::span<const Expr> values) {
  std::vector<Expr> found;
  std::unordered_set<const ExprNode*> seen;
  Nodes work;
  for (const Expr& v : values) work.push_back(v.shared());
  while (!work.empty()) {
    const std::shared_ptr<ExprNode> n = std::move(work.back());
    work.pop_back();
    if (n->constant || !n->records() || !seen.insert(n.get()).second) continue;
    if (n->variable) found.emplace_back(n);
    work.insert(work.end(), n->operands.rbegin(), n->operands.rend());
  }
  return found;
}

void release(std::span<const Expr> values) {
  // Operands before their users, by an explicit stack. What leads to variables by operations that read shapes alone
  // holds no values but those of views and sums of variables: it stays, as w.t() may be behind other values as well.
  const uint64_t visit = next_visit();
  std::unordered_set<const ExprNode*> kept;
  std::vector<std::pair<std::shared_ptr<ExprNode>, size_t>> work;
  auto is_kept = [&](const std::shared_ptr<ExprNode>& n) {
    return n->variable || n->constant || !n->records() || kept.contains(n.get());
  };
  for (const Expr& v : values) work.emplace_back(v.shared(), 0);
  while (!work.empty()) {
    auto& [n, next] = work.back();
    if (next == 0) {
      if (n->variable || n->constant || n->released || !n->records() || n->visit == visit) {
        work.pop_back();
        continue;
      }
      n->visit = visit;
    }
    if (next < n->operands.size()) {
      work.emplace_back(n->operands[next++], 0);  // which ends the life of the reference n
      continue;
    }
    const std::shared_ptr<ExprNode> done = std::move(n);
    work.pop_back();
    if (reads_shapes_alone(*done) && std::ranges::all_of(done->operands, is_kept)) {
      kept.insert(done.get());
      continue;
    }
    done->released = true;
    if (!done->value) continue;
    done->forgot = true;
    done->operands.clear();
    done->gradient = nullptr;
  }
}

int count_scopes(std::span<const Expr> exprs) {
  std::set<std::shared_ptr<const Recording>> open;
  for (const Expr& e : exprs)
    for (const auto& r : e.node()->recordings)
      if (r->open) open.insert(r);
  return static_cast<int>(open.size());
}

Result<Expr> with_gradient(Tensor value, std::span<const Expr> operands, GradientRule rule) {
  if (!is_float(value.dtype()))
    return error(ErrorKind::kType, "only tensors of floats have gradients, not of {}", info(value.dtype()).torch);
  Expr leaf(std::move(value));
  if (std::ranges::none_of(operands, [](const Expr& e) { return e.records(); })) return leaf;
  ExprNode& n = *leaf.node();
  for (const Expr& e : operands) {
    n.operands.push_back(e.shared());
    n.record_with(*e.node());
  }
  n.gradient = std::move(rule);
  return leaf;
}

Expr detached(const Expr& of) {
  if (!of.node()->records()) return of;
  if (of.node()->value) return Expr(of.node()->value);
  auto n = ExprNode::make();
  n->node = of.node()->node;
  // A reshape to its own shape; a walk of gradients ends where it finds `constant`.
  n->node.op = ExprOp::kReshape;
  n->node.inputs = {0};
  n->node.attributes = {};
  n->node.attributes.shape = n->node.shape;
  n->operands = {of.shared()};
  n->device = of.device();
  n->constant = true;
  n->may_scatter = of.node()->may_scatter;
  n->gradient_operations = of.node()->gradient_operations;
  return Expr(std::move(n));
}

}  // namespace kiln
