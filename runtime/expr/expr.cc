#include "kiln/expr.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <unordered_map>

#include "compiler/fusion/infer.h"
#include "runtime/device/device.h"
#include "runtime/expr/node.h"
#include "support/diag.h"
#include "support/free_list.h"
#include "support/hash.h"

namespace kiln {
namespace runtime {

namespace {

// In bytes. No access is wider, and each alignment that is told apart is another plan.
constexpr int kMostAlignment = 16;

int alignment_of(uint64_t address) {
  if (address == 0) return kMostAlignment;
  return 1 << std::min(std::countr_zero(address), std::countr_zero(unsigned{kMostAlignment}));
}

// By bits: 0.0 and -0.0 are two numbers here, and a NaN equals itself.
int64_t bits_of(const fusion::Number& number) {
  if (const double* d = std::get_if<double>(&number)) return std::bit_cast<int64_t>(*d);
  const bool* b = std::get_if<bool>(&number);
  return b ? int64_t{*b} : std::get<int64_t>(number);
}

bool same_number(const fusion::Number& a, const fusion::Number& b) {
  return a.index() == b.index() && bits_of(a) == bits_of(b);
}

/// The leaves of a walk by their memory. While they are few, comparing with each costs less than hashing.
class LeavesByMemory {
 public:
  /// The leaf with the same tensor, or null: then `n` is it from now on.
  const ExprNode* find_or_add(const ExprNode& n, std::vector<const ExprNode*>& leaves) {
    constexpr size_t kFew = 16;
    const auto is_same = [&](const ExprNode* leaf) { return same_tensor(leaf->value, n.value); };
    const ExprNode* found = nullptr;
    if (leaves.size() <= kFew) {
      if (const auto known = std::ranges::find_if(leaves, is_same); known != leaves.end()) found = *known;
    } else {
      if (by_memory_.empty())
        for (const ExprNode* leaf : leaves) by_memory_.emplace(leaf->value.storage().get(), leaf);
      const auto [first, last] = by_memory_.equal_range(n.value.storage().get());
      for (auto it = first; it != last && !found; ++it)
        if (is_same(it->second)) found = it->second;
      if (!found) by_memory_.emplace(n.value.storage().get(), &n);
    }
    if (!found) leaves.push_back(&n);
    return found;
  }

 private:
  std::unordered_multimap<const Storage*, const ExprNode*> by_memory_;
};

void collect(const ExprNode& n, uint64_t visit, LeavesByMemory& leaves, ExprWalk& out) {
  if (n.visit == visit) return;
  n.visit = visit;
  if (n.is_pending())
    for (const auto& operand : n.operands) collect(*operand, visit, leaves, out);
  if (n.value)
    if (const ExprNode* leaf = leaves.find_or_add(n, out.leaves)) {
      n.position = leaf->position;
      return;
    }
  if (n.is_scalar()) {
    for (const ExprNode* known : out.scalars)
      if (same_number(known->node.attributes.value, n.node.attributes.value)) {
        n.position = known->position;
        return;
      }
    out.scalars.push_back(&n);
  }
  n.position = static_cast<int>(out.order.size());
  out.order.push_back(&n);
  out.is_argument.push_back(n.is_scalar() && fusion::is_ordinary(n.node.attributes.value));
  // What is computed of places alone follows from shapes: its numbers are known, for accesses to be wide and conditions
  // to be constants.
  auto is_of_places = [&](const auto& operand) { return out.is_of_places[static_cast<size_t>(operand->position)]; };
  const bool of_places =
      n.is_pending() && n.node.op != ExprOp::kRandomWord &&  // whose key is another one each time
      (n.node.op == ExprOp::kIota ||
       (std::ranges::any_of(n.operands, is_of_places) &&
        std::ranges::all_of(n.operands, [&](const auto& o) { return o->is_scalar() || is_of_places(o); })));
  out.is_of_places.push_back(of_places);
  // Where a number decides what is planned, it is part of the code and of the key. Elsewhere kernels take it as an
  // argument, and one plan serves all its values.
  if (n.is_pending() && (!fusion::takes_argument(n.node.op) || of_places))
    for (const auto& operand : n.operands)
      if (operand->is_scalar()) out.is_argument[static_cast<size_t>(operand->position)] = false;
}

/// The bytes are equal only where one plan fits both graphs: lists have their lengths in front, so none runs into the
/// next. `room` is asked for in front of what is written, once for a node: keys are made for each launch.
class KeyText {
 public:
  explicit KeyText(std::string& text) : text_(text), at_(text.data()), end_(at_ + text.size()) {}
  void room(size_t bytes) {
    if (static_cast<size_t>(end_ - at_) >= bytes) return;
    const size_t used = this->used();
    text_.resize(2 * (used + bytes));
    at_ = text_.data() + used;
    end_ = text_.data() + text_.size();
  }
  void byte(int v) { *at_++ = static_cast<char>(v); }
  void number(int v) { put(v); }
  void word(int64_t v) { put(v); }
  template <class Range>
  void words(const Range& values) {
    byte(static_cast<int>(values.size()));
    for (auto v : values) word(static_cast<int64_t>(v));
  }
  void text(std::string_view v) {
    std::memcpy(at_, v.data(), v.size());
    at_ += v.size();
  }
  size_t used() const { return static_cast<size_t>(at_ - text_.data()); }
  /// Bytes of words().
  static size_t room_of(size_t values) { return 1 + values * sizeof(int64_t); }

 private:
  template <class T>
  void put(T v) {
    std::memcpy(at_, &v, sizeof v);
    at_ += sizeof v;
  }

  std::string& text_;
  char *at_, *end_;
};

void append_attributes(const fusion::Node& n, bool is_argument, KeyText& key) {
  const ExprAttributes& a = n.attributes;
  if (n.op == ExprOp::kScalar) {
    key.room(9);
    key.byte(static_cast<int>(a.value.index()) + (is_argument ? 8 : 0));
    if (!is_argument) key.word(bits_of(a.value));
    return;
  }
  // What most operations do not say takes a bit each.
  static const ExprAttributes kUsual;
  const bool has_places = !a.starts.empty() || !a.steps.empty(), has_axes = !a.axes.empty();
  const bool has_numbers = a.correction != kUsual.correction || a.eps != kUsual.eps;
  key.room(1 + 3 * KeyText::room_of(std::max({a.starts.size(), a.steps.size(), a.axes.size()})) + 25);
  key.byte(a.keepdim + 2 * a.tf32 + 4 * a.any_outside + 8 * a.adds + 16 * has_places + 32 * has_axes +
           64 * has_numbers);
  if (has_places) key.words(a.starts), key.words(a.steps);
  if (has_axes) key.words(a.axes);
  if (n.op == ExprOp::kFull) {
    key.byte(static_cast<int>(a.value.index()));
    key.word(bits_of(a.value));
  }
  if (has_numbers) {
    key.word(std::bit_cast<int64_t>(a.correction));
    key.word(std::bit_cast<int64_t>(a.eps));
  }
  if (!a.function) return;
  const std::string &name = a.function->name, &text = a.function->text;
  key.room(9 + name.size() + text.size());
  key.word(static_cast<int64_t>(text.size()));
  key.text(name);
  key.byte('\n');
  key.text(text);
}

}  // namespace

ExprNode::~ExprNode() {
  // The last owner of a long chain takes it apart in a loop.
  std::vector<std::shared_ptr<ExprNode>> left = std::move(operands);
  while (!left.empty()) {
    std::shared_ptr<ExprNode> n = std::move(left.back());
    left.pop_back();
    if (n.use_count() == 1)
      for (auto& operand : n->operands) left.push_back(std::move(operand));
    if (n.use_count() == 1) n->operands.clear();
  }
}

std::shared_ptr<ExprNode> ExprNode::make() { return std::allocate_shared<ExprNode>(FreeListAllocator<ExprNode>()); }

bool is_first_operation(const ExprNode& n) {
  return n.is_pending() && std::ranges::none_of(n.operands, [](const auto& o) { return o->is_pending(); });
}

uint64_t next_visit() {
  static std::atomic<uint64_t> visits{0};
  return ++visits;
}

void ExprNode::record_with(const ExprNode& operand) {
  for (const auto& r : operand.recordings)
    if (r->open && std::ranges::find(recordings, r) == recordings.end()) recordings.push_back(r);
}

void ExprNode::set_value(Tensor v) {
  value = std::move(v);
  if (records() && !released) return;
  // Only what records keeps what it was computed of; `forgot` tells gradients() that it is missing.
  forgot = forgot || !operands.empty();
  operands.clear();
}

bool same_tensor(const Tensor& a, const Tensor& b) {
  return a.storage() == b.storage() && a.offset() == b.offset() && a.dtype() == b.dtype() &&
         std::ranges::equal(a.shape(), b.shape()) && std::ranges::equal(a.strides(), b.strides());
}

ExprWalk::ExprWalk(std::span<const ExprNode* const> wanted, std::vector<bool> orders) : any_order(std::move(orders)) {
  const uint64_t visit = next_visit();
  constexpr size_t kFew = 8;  // nodes of most expressions
  order.reserve(kFew), leaves.reserve(kFew), is_argument.reserve(kFew), is_of_places.reserve(kFew);
  LeavesByMemory by_memory;
  for (const ExprNode* root : wanted) collect(*root, visit, by_memory, *this);
  for (const ExprNode* root : wanted) roots.push_back(root->position);
}

fusion::Graph ExprWalk::graph(std::span<const ExprName> names) const {
  fusion::Graph g;
  for (const ExprNode* n : order) {
    if (n->value) {
      const Tensor& t = n->value;
      std::string name;
      for (const ExprName& known : names)
        if (same_tensor(known.tensor, t)) name = known.name;
      g.nodes.push_back(fusion::input(t.dtype(), {t.shape().begin(), t.shape().end()},
                                      {t.strides().begin(), t.strides().end()}, alignment_of(t.address()),
                                      std::move(name)));
      continue;
    }
    g.nodes.push_back(n->node);
    fusion::Node& copy = g.nodes.back();
    copy.is_argument = is_argument[static_cast<size_t>(n->position)];
    for (size_t i = 0; i < n->operands.size(); ++i) copy.inputs[i] = n->operands[i]->position;
  }
  g.outputs = roots;
  g.any_order = any_order;
  return g;
}

std::string_view ExprWalk::key(std::string& memory, std::string_view end) const {
  KeyText key(memory);
  for (const ExprNode* n : order) {
    if (n->value) {
      const Tensor& t = n->value;
      key.room(3 + 2 * KeyText::room_of(t.shape().size()));
      key.byte(static_cast<int>(ExprOp::kInput));
      key.byte(static_cast<int>(t.dtype()));
      // The alignment, not the address: a plan serves tensors wherever they lie.
      key.byte(alignment_of(t.address()));
      key.words(t.shape());
      key.words(t.strides());
      continue;
    }
    key.room(7 + KeyText::room_of(n->node.shape.size()) + n->operands.size() * sizeof(int));
    key.byte(static_cast<int>(n->node.op));
    key.byte(static_cast<int>(n->node.dtype));
    key.words(n->node.shape);
    key.number(static_cast<int>(n->operands.size()));
    for (const auto& operand : n->operands) key.number(operand->position);
    append_attributes(n->node, is_argument[static_cast<size_t>(n->position)], key);
  }
  key.room(sizeof(int64_t) + roots.size() * sizeof(int) + any_order.size() + end.size());
  if (roots.size() > 1) {
    key.word(static_cast<int64_t>(roots.size()));
    for (const int root : roots) key.number(root);
  }
  if (std::ranges::find(any_order, true) != any_order.end())
    for (const bool any : any_order) key.byte(any);
  key.text(end);
  return {memory.data(), key.used()};
}

Result<Tensor> fill(ExprNode& n) {
  const fusion::Number& number = n.node.attributes.value;
  const FillValue value = std::visit([](auto v) { return FillValue(v); }, number);
  KILN_TRY(Tensor filled, Tensor::full(n.device, n.node.dtype, n.node.shape, value));
  n.set_value(filled);
  return filled;
}

std::optional<Tensor> view_of(const Tensor& base, const fusion::Node& node) {
  const ExprAttributes& a = node.attributes;
  std::vector<int64_t> shape = node.shape, strides;
  int64_t offset = base.offset();
  auto base_strides = base.strides();
  if (node.op == ExprOp::kReshape) {
    auto viewed = base.view(shape);
    return viewed.ok() ? std::optional<Tensor>(*viewed) : std::nullopt;
  }
  if (node.op == ExprOp::kExpand) {
    // As torch has them: what is not repeated keeps its stride, and a new dimension of one element is a contiguous one.
    const size_t lead = shape.size() - base.shape().size();
    strides.assign(shape.size(), 1);
    for (size_t d = shape.size(); d-- > 0;) {
      if (d >= lead)
        strides[d] = base_strides[d - lead];
      else if (d + 1 < shape.size())
        strides[d] = shape[d + 1] * strides[d + 1];
      if (shape[d] != (d < lead ? 1 : base.shape()[d - lead])) strides[d] = 0;
    }
  } else if (node.op == ExprOp::kPermute) {
    for (int d : a.axes) strides.push_back(base_strides[static_cast<size_t>(d)]);
  } else {
    KILN_ASSERT(node.op == ExprOp::kSlice, "{} is no view", name(node.op));
    for (size_t d = 0; d < shape.size(); ++d) {
      // A slice of nothing may begin at the end, where the tensor has no element.
      if (shape[d] > 0) offset += a.starts[d] * base_strides[d];
      strides.push_back(base_strides[d] * a.steps[d]);
    }
  }
  auto viewed = base.as_strided(shape, strides, offset);
  return viewed.ok() ? std::optional<Tensor>(*viewed) : std::nullopt;
}

}  // namespace runtime

using namespace runtime;

Expr::Expr(Tensor tensor) : node_(ExprNode::make()) {
  // Strides and alignment are the tensor's own.
  node_->node.dtype = tensor.dtype();
  node_->node.shape.assign(tensor.shape().begin(), tensor.shape().end());
  node_->device = tensor.device();
  node_->value = std::move(tensor);
}

Expr Expr::scalar(std::variant<bool, int64_t, double> value) {
  auto node = ExprNode::make();
  node->node = fusion::scalar(value);
  return Expr(std::move(node));
}

Expr Expr::iota(const Device& device, int64_t n, DType dtype) {
  KILN_ASSERT(n >= 0 && is_int(dtype) && dtype != DType::kI1, "iota of {} {}", n, name(dtype));
  auto node = ExprNode::make();
  node->node.op = ExprOp::kIota;
  node->node.dtype = dtype;
  node->node.shape = node->node.attributes.shape = {n};
  node->device = device;
  return Expr(std::move(node));
}

Expr Expr::full(const Device& device, std::vector<int64_t> shape, std::variant<bool, int64_t, double> value,
                DType dtype) {
  auto node = ExprNode::make();
  node->node.op = ExprOp::kFull;
  node->node.dtype = dtype;
  node->node.attributes.value = value;
  node->node.shape = node->node.attributes.shape = std::move(shape);
  node->device = device;
  return Expr(std::move(node));
}

DType Expr::dtype() const { return node_->node.dtype; }
std::span<const int64_t> Expr::shape() const { return node_->node.shape; }
int64_t Expr::numel() const { return fusion::numel(node_->node.shape); }
const Device& Expr::device() const { return node_->device; }
bool Expr::is_scalar() const { return node_->is_scalar(); }
std::string_view Expr::operation() const { return name(node_->node.op); }
bool Expr::records() const { return node_ && node_->records(); }
bool Expr::is_variable() const { return node_ && node_->variable; }
std::shared_ptr<const void> Expr::hold() const {
  std::shared_ptr<const void> holder = node_->holder.lock();
  if (!holder) node_->holder = holder = std::make_shared<char>();
  return holder;
}

namespace {

bool has_held_view(const ExprNode& n, const ExprNode* but) {
  return std::ranges::any_of(n.views, [&](const std::weak_ptr<ExprNode>& weak) {
    const std::shared_ptr<ExprNode> view = weak.lock();
    return view && view.get() != but && (!view->holder.expired() || has_held_view(*view, nullptr));
  });
}

}  // namespace

bool Expr::shares_elements() const {
  if (has_held_view(*node_, nullptr)) return true;
  for (const ExprNode* n = node_.get(); info(n->node.op).kind == ExprKind::kView && !n->operands.empty();) {
    const ExprNode* base = n->operands[0].get();
    if (!base->holder.expired() || has_held_view(*base, n)) return true;
    n = base;
  }
  return false;
}
int Expr::gradient_operations() const { return node_->is_pending() ? node_->gradient_operations : 0; }
bool Expr::is_view() const {
  for (const ExprNode* n = node_.get();;) {
    if (n->value) return n != node_.get();
    if (info(n->node.op).kind != ExprKind::kView || n->operands.empty()) return false;
    const std::shared_ptr<ExprNode>& base = n->operands[0];
    if (base.use_count() > 1) return true;
    n = base.get();
  }
}
const Tensor* Expr::tensor() const { return node_->value ? &node_->value : nullptr; }

namespace {

/// Whether something that is pending in it, or a leaf of that, is so; the walk goes no further than the first.
template <class Test>
bool has_node(const ExprNode& root, Test&& is_so) {
  const uint64_t visit = next_visit();
  std::vector<const ExprNode*> left = {&root};
  while (!left.empty()) {
    const ExprNode& n = *left.back();
    left.pop_back();
    if (is_so(n)) return true;
    if (!n.is_pending()) continue;
    for (const auto& operand : n.operands)
      if (operand->visit != visit) {
        operand->visit = visit;
        left.push_back(operand.get());
      }
  }
  return false;
}

}  // namespace

int Expr::operations() const {
  if (is_first_operation(*node_)) return 1;
  return node_->most_operations = static_cast<int>(pending_operations({this, 1}).size());
}

bool Expr::has_operations(int at_least) const { return node_->most_operations >= at_least && operations() >= at_least; }

bool Expr::has_elements(int64_t at_least) const {
  return has_node(*node_, [&](const ExprNode& n) {
    if (fusion::numel(n.node.shape) >= at_least) return true;
    // A few elements of a large tensor on a GPU: the host would read all between them, and wait for what made it.
    return n.value && n.device.is_cuda() && n.value.storage()->bytes / size_of(n.node.dtype) >= at_least;
  });
}

bool Expr::was_part() const { return node_->was_part; }

bool Expr::is_row_major() const {
  const ExprNode* n = node_.get();
  while (n->is_pending() && n->node.op == ExprOp::kReshape) n = n->operands[0].get();
  return n->is_pending() ? info(n->node.op).kind != ExprKind::kView : !n->value || n->value.is_contiguous();
}

bool Expr::is_view_of(const Expr& other) const {
  const ExprNode* n = node_.get();
  while (n != other.node() && n->is_pending() && info(n->node.op).kind == ExprKind::kView) n = n->operands[0].get();
  return n == other.node() && n != node_.get();
}

bool Expr::is_view_of(const Storage* storage) const {
  const ExprNode* n = node_.get();
  while (n->is_pending() && info(n->node.op).kind == ExprKind::kView) n = n->operands[0].get();
  return n->value && n->value.storage().get() == storage;
}

bool Expr::reads(std::span<const Storage* const> storages) const {
  return node_->is_pending() && has_node(*node_, [&](const ExprNode& n) {
           return n.value && std::ranges::find(storages, n.value.storage().get()) != storages.end();
         });
}

bool Expr::is_cheap_again() const {
  constexpr int kCheapFlop = 16;  // per element: no kernel notices them beside its memory
  const auto is_costly = [](const ExprNode& n) {
    const ExprOp op = n.node.op;
    const ExprKind kind = info(op).kind;
    return n.is_pending() && kind != ExprKind::kPointwise && kind != ExprKind::kView && op != ExprOp::kIota &&
           op != ExprOp::kFull;
  };
  if (has_node(*node_, is_costly)) return false;
  ExprWalk walk(*node_);
  int64_t bytes = 0;
  int flop = 0;
  for (const ExprNode* n : walk.order) flop += n->is_pending() ? info(n->node.op).flop : 0;
  for (const ExprNode* leaf : walk.leaves) bytes += leaf->value.numel() * size_of(leaf->value.dtype());
  return flop <= kCheapFlop && bytes <= numel() * size_of(dtype());
}

bool Expr::is_of_counts() const {
  constexpr int kMostFlop = 64;  // per element
  const ExprWalk walk(*node_);
  int flop = 0;
  for (const ExprNode* n : walk.order) {
    if (!n->is_pending()) continue;
    const ExprOp op = n->node.op;
    const ExprKind kind = info(op).kind;
    const bool is_place = op == ExprOp::kIota || op == ExprOp::kFull || op == ExprOp::kTake;
    if (kind != ExprKind::kPointwise && kind != ExprKind::kView && !is_place) return false;
    flop += info(op).flop;
  }
  return walk.leaves.empty() && flop <= kMostFlop;
}

std::vector<Expr::Part> Expr::pending_parts() const {
  if (is_first_operation(*node_)) return {{node_.get(), false}};
  std::vector<Part> parts;
  for (const ExprNode* n : pending_operations({this, 1})) parts.push_back({n, false});
  // Users come after their operands: what a product reads through views is a factor too.
  for (size_t i = parts.size(); i-- > 0;) {
    const ExprNode* n = parts[i].node;
    const bool passes =
        n->node.op == ExprOp::kMatMul || (parts[i].is_factor && info(n->node.op).kind == ExprKind::kView);
    if (!passes) continue;
    for (const auto& operand : n->operands)
      if (operand->is_pending()) parts[static_cast<size_t>(operand->position)].is_factor = true;
  }
  return parts;
}

std::vector<bool> which_read(std::span<const Expr> exprs, std::span<const Storage* const> storages) {
  std::vector<bool> found;
  const uint64_t visit = next_visit();
  // Post-order by a stack: a node knows of its operands whether they read.
  constexpr int kReads = 1, kReadsNot = 0;
  std::vector<std::pair<const ExprNode*, size_t>> stack;
  auto enter = [&](const ExprNode& n) {
    if (n.visit == visit) return;
    n.visit = visit;
    n.position = n.value && std::ranges::find(storages, n.value.storage().get()) != storages.end() ? kReads : kReadsNot;
    if (n.is_pending()) stack.emplace_back(&n, 0);
  };
  for (const Expr& e : exprs) {
    enter(*e.node());
    while (!stack.empty()) {
      auto& [n, next] = stack.back();
      if (next > 0 && n->operands[next - 1]->position == kReads) n->position = kReads;
      if (next == n->operands.size() || n->position == kReads)
        stack.pop_back();
      else
        enter(*n->operands[next++]);  // which ends the life of the references
    }
    found.push_back(e.node()->is_pending() && e.node()->position == kReads);
  }
  return found;
}

std::vector<const ExprNode*> pending_operations(std::span<const Expr> exprs) {
  std::vector<const ExprNode*> order;
  const uint64_t visit = next_visit();
  std::vector<std::pair<const ExprNode*, size_t>> stack;
  auto enter = [&](const ExprNode& n) {
    if (n.visit == visit || !n.is_pending()) return;
    n.visit = visit;
    stack.emplace_back(&n, 0);
  };
  for (const Expr& e : exprs) {
    enter(*e.node());
    while (!stack.empty()) {
      auto& [n, next] = stack.back();
      if (next < n->operands.size()) {
        enter(*n->operands[next++]);
        continue;
      }
      n->position = static_cast<int>(order.size());
      order.push_back(n);
      stack.pop_back();
    }
  }
  return order;
}

std::vector<const Storage*> Expr::all_read() const {
  std::vector<const Storage*> out;
  for (const ExprNode* leaf : ExprWalk(*node_).leaves) out.push_back(leaf->value.storage().get());
  return out;
}

std::vector<const Storage*> Expr::read_in_full() const {
  ExprWalk walk(*node_);
  int64_t largest = 0;
  for (const ExprNode* n : walk.order) largest = std::max(largest, fusion::numel(n->node.shape));
  std::vector<const Storage*> out;
  for (const ExprNode* leaf : walk.leaves)
    if (const int64_t size = leaf->value.numel(); size == numel() || size == largest)
      out.push_back(leaf->value.storage().get());
  return out;
}

Result<Expr> apply(ExprOp op, std::span<const Expr> operands, ExprAttributes attributes) {
  auto node = ExprNode::make();
  constexpr size_t kFew = 4;  // operands of most
  std::array<const fusion::Node*, kFew> few_nodes;
  std::array<int, kFew> few_positions;
  std::vector<const fusion::Node*> many_nodes(operands.size() > kFew ? operands.size() : 0);
  std::vector<int> many_positions(many_nodes.size());
  const bool are_few = many_nodes.empty();
  const std::span nodes(are_few ? few_nodes.data() : many_nodes.data(), operands.size());
  const std::span positions(are_few ? few_positions.data() : many_positions.data(), operands.size());
  node->operands.reserve(operands.size());
  const ExprNode* first = nullptr;
  for (const Expr& e : operands) {
    if (!e) return error(ErrorKind::kValue, "{} of an empty expression", name(op));
    const ExprNode& n = *e.node();
    if (n.value && n.value.is_freed()) return freed_error("a tensor of the expression");
    const size_t at = node->operands.size();
    positions[at] = static_cast<int>(at);
    nodes[at] = &n.node;
    node->operands.push_back(e.shared());
    node->record_with(n);
    if (n.is_pending()) {
      node->may_scatter = node->may_scatter || n.may_scatter;
      node->gradient_operations = std::max(node->gradient_operations, n.gradient_operations);
      // What several operands have in common is counted for each, twice as many with each operation x + x: no overflow.
      constexpr int kCountless = 1 << 24;
      node->most_operations = std::min(node->most_operations + n.most_operations, kCountless);
    }
    if (!n.device) continue;
    if (!first) first = &n;
    if (n.device == first->device) continue;
    return with_note(error(ErrorKind::kType, "{} of tensors on two devices, {} and {}", name(op), first->device.name(),
                           n.device.name()),
                     "help: move one with .to(device)");
  }
  if (!first) return error(ErrorKind::kType, "{} needs a tensor among its operands", name(op));
  node->device = first->device;
  node->may_scatter = node->may_scatter || op == ExprOp::kScatterAdd;
  KILN_CHECK_OK(fusion::infer_into(node->node, op, nodes, positions, std::move(attributes)));
  if (!is_float(node->node.dtype)) node->recordings.clear();  // integers have no gradient
  if (info(op).kind == ExprKind::kView && node->operands[0]->records()) node->operands[0]->views.push_back(node);
  return Expr(std::move(node));
}

DType promote(DType a, DType b) { return fusion::promote(a, b); }

Result<std::vector<int64_t>> broadcast_shapes(std::span<const int64_t> a, std::span<const int64_t> b) {
  const fusion::Node x = fusion::input(DType::kF32, {a.begin(), a.end()}, {}, 1),
                     y = fusion::input(DType::kF32, {b.begin(), b.end()}, {}, 1);
  const fusion::Node* nodes[] = {&x, &y};
  const int positions[] = {0, 1};
  auto both = fusion::infer(ExprOp::kAdd, nodes, positions);
  if (both.ok()) return std::move(both->shape);
  Diagnostic d = std::move(both.error());
  if (size_t end = d.message.find(": "); end != std::string::npos) d.message.erase(0, end + 2);  // "add"
  return d;
}

Result<Expr> apply(ExprOp op, std::initializer_list<Expr> operands, ExprAttributes attributes) {
  return apply(op, std::span<const Expr>(operands.begin(), operands.size()), std::move(attributes));
}

}  // namespace kiln
