#include "repl/modules/torch/tensor_object.h"
#include "repl/modules/torch/torch_complex.h"
#include "repl/modules/torch/torch_formats.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <ranges>
#include <unordered_map>
#include <unordered_set>

#include "support/float_bits.h"

namespace kiln::script {

using ast::BinaryOp;
using ast::CompareOp;
using ast::UnaryOp;

Value wrap(Tensor t) { return make<TensorObject>(std::move(t)); }

// --- pending tensors
// ------------------------------------------------------------------------------------------------------

void PendingTensors::add(TensorObject& t) { tensors_.push_back(&t); }
void PendingTensors::remove(TensorObject& t) { std::erase(tensors_, &t); }

void PendingTensors::run_late_readers(const runtime::Storage* storage) {
  if (storage == read_only_) return;
  if (std::ranges::any_of(dropped_late_, [&](const auto& p) { return p->reads(storage); }))
    for (const auto& p : std::exchange(dropped_late_, {})) p->run();
  // Running one takes it out of the list, and may have others run.
  for (size_t i = 0; i < late_.size();) {
    const std::shared_ptr<LatePair> p = late_[i]->shared_from_this();
    if (!p->reads(storage)) {
      ++i;
      continue;
    }
    p->run();
    i = 0;
  }
}

void PendingTensors::run_readers(Interp& in, const runtime::Storage* storage) {
  run_late_readers(storage);
  if (std::any_of(dropped_.begin(), dropped_.end(), [&](const Dropped& d) { return Expr(d.result).reads(storage); }))
    run_dropped(in);
  // Computing one takes it out of the list, and may make others leaves of what is left.
  for (;;) {
    std::vector<Expr> exprs;
    for (const TensorObject* t : tensors_) exprs.push_back(t->pending_expr());
    const std::vector<bool> reads = which_read(exprs, {&storage, 1});
    const auto first = std::ranges::find(reads, true);
    if (first == reads.end()) return;
    Ref<TensorObject>(tensors_[static_cast<size_t>(first - reads.begin())])->tensor(in);
  }
}

namespace {

Tensor computed(Interp& in, const Expr& expr, bool is_read = true) {
  // Of what a GPU made and nobody reads, nothing comes to the host, which would wait for it.
  const bool on_host = is_for_host(in, expr) && (is_read || !expr.device().is_cuda());
  // A block of a model reads again what the one before it added to, and gradients read operands of products again.
  if (!on_host && run_and_keep({&expr, 1}, torch_state(in).expects_gradients()).ok() && expr.tensor())
    return *expr.tensor();
  auto result = on_host ? run_on_host(expr) : run(expr);
  // What no kernel is written for is computed as small tensors are.
  if (!result.ok() && result.error().kind == ErrorKind::kUnsupported) result = run_on_host(expr);
  return taken(in, std::move(result));
}

}  // namespace

void PendingTensors::before_clock(Interp& in) {
  run_dropped(in);
  clock_was_read_ = true;
}

void PendingTensors::drop(std::shared_ptr<runtime::ExprNode> result,
                          std::optional<std::weak_ptr<runtime::ExprNode>> other_half) {
  if (clock_was_read_) dropped_.push_back({std::move(result), std::move(other_half)});
}

void PendingTensors::limit_dropped(Interp& in) {
  constexpr size_t kMost = 16;
  if (dropped_.size() + dropped_late_.size() >= kMost) run_dropped(in);
}

void PendingTensors::run_dropped(Interp& in) {
  for (const auto& p : std::exchange(dropped_late_, {})) p->run();
  const std::vector<Dropped> all = std::exchange(dropped_, {});
  auto is_dropped = [&](const std::weak_ptr<runtime::ExprNode>& node) {
    return std::ranges::find(all, node.lock(), &Dropped::result) != all.end();
  };
  for (const Dropped& d : all)
    if (!d.other_half || is_dropped(*d.other_half)) computed(in, Expr(d.result), /*is_read=*/false);
}

bool PendingTensors::has_view_of(const TensorObject& t) const {
  const Expr& whole = t.pending_expr();
  return std::ranges::any_of(tensors_, [&](const TensorObject* o) { return o->pending_expr().is_view_of(whole); });
}

bool PendingTensors::has_view_of(const runtime::Storage* storage) const {
  return std::ranges::any_of(tensors_, [&](const TensorObject* o) { return o->pending_expr().is_view_of(storage); });
}

bool PendingTensors::only_leaves_hold(const Tensor& t, const Expr& result) const {
  const int64_t others = t.holders() - 1;
  if (others == 0) return true;
  // Mostly it is the result's operand, and that of a loss: the oldest are looked at next.
  std::vector<Expr> exprs;
  for (const Dropped& d : dropped_) exprs.emplace_back(d.result);
  for (const TensorObject* other : std::views::reverse(tensors_)) exprs.push_back(other->pending_expr());
  exprs.push_back(result);
  return count_leaves(exprs, t.storage().get(), others) >= others;
}

void PendingTensors::store(Interp& in, std::vector<Ref<TensorObject>> together,
                           std::vector<const runtime::Storage*> homes) {
  run_dropped(in);
  std::unordered_set<const TensorObject*> known;
  auto note = [&](const TensorObject& t) {
    known.insert(&t);
    if (t.is_store()) homes.push_back(t.home().storage().get());
  };
  const bool is_step = !homes.empty();
  for (const auto& t : together) note(*t);
  // Beside an optimizer's step: running statistics and sums of losses. They would wait for a reader, longer by an
  // operation and what that reads with each step, and each length is a plan of its own.
  for (TensorObject* t : tensors_) {
    if (!is_step || known.contains(t) || !t->is_store()) continue;
    if (!together.empty() && t->device() != together[0]->device()) continue;
    together.emplace_back(t);
    note(*t);
  }
  for (const runtime::Storage* home : homes) run_late_readers(home);
  // One that reads what another one overwrites belongs in the same plan, in which all reading comes first. It may
  // overwrite something itself.
  for (size_t homes_before = homes.size() + 1; homes_before != homes.size();) {
    homes_before = homes.size();
    std::vector<TensorObject*> others;
    std::vector<Expr> exprs;
    for (TensorObject* t : tensors_) {
      if (known.contains(t)) continue;
      others.push_back(t);
      exprs.push_back(t->pending_expr());
    }
    const std::vector<bool> reads = which_read(exprs, homes);
    for (size_t i = 0; i < others.size(); ++i) {
      if (!reads[i]) continue;
      together.emplace_back(others[i]);
      note(*others[i]);
    }
  }
  // What they are made of and somebody holds is stored as well: pending, as the sums of an optimizer that began with
  // zeros, it would grow with each step, and keep all that it is made of.
  std::vector<Expr> whole;
  for (const auto& t : together) whole.push_back(t->expr());
  const std::vector<const runtime::ExprNode*> operations = pending_operations(whole);
  const std::unordered_set<const runtime::ExprNode*> parts(operations.begin(), operations.end());
  for (TensorObject* t : tensors_)
    if (!known.contains(t) && parts.contains(t->expr().node()) && !t->expr().is_cheap_again()) together.emplace_back(t);
  if (together.empty()) return;
  std::vector<ExprStore> stores;
  for (const auto& t : together) stores.push_back({t->expr(), t->is_store() ? t->home() : Tensor()});
  // A part of a large tensor on a GPU is written there: the host would wait for what else writes to it.
  auto is_part_of_large = [](const Tensor& to) {
    return to && to.device().is_cuda() && Expr(to).has_elements(kLazyElements);
  };
  // A program that trains does the same in each step: the kernel is compiled once, and the host, of which nobody asks
  // the elements, would wait each time for what the GPU makes of the batch, as for means of batch norm.
  const bool repeats = torch_state(in).expects_gradients() && stores[0].value.device().is_cuda();
  const bool on_host = !repeats && std::ranges::all_of(stores, [&](const ExprStore& s) {
    return is_for_host(in, s.value) && !is_part_of_large(s.to);
  });
  const Status done = on_host ? Status() : run_into(stores);
  if (on_host || !done.ok()) {
    if (!on_host && done.error().kind != ErrorKind::kUnsupported) checked(in, done);
    // What is small, or no kernel is written for, is computed one by one, before any is stored.
    for (const ExprStore& s : stores) computed(in, s.value);
    for (const ExprStore& s : stores)
      if (s.to) checked(in, s.to.copy_from(*s.value.tensor()));
  }
  for (const auto& t : together) t->settle();
}

void PendingTensors::store_leaves(Interp& in) {
  if (std::ranges::none_of(tensors_, [](const TensorObject* t) { return t->is_leaf() && t->is_store(); })) return;
  std::vector<Ref<TensorObject>> together;
  for (TensorObject* t : tensors_)
    if (t->is_store()) together.emplace_back(t);
  store(in, std::move(together));
}

void PendingTensors::run_all(Interp& in) {
  before_clock(in);
  while (!late_.empty()) late_.front()->shared_from_this()->run();
  for (std::vector<Ref<TensorObject>>& together : related()) {
    std::erase_if(together, [](const auto& t) { return !t->is_pending(); });  // an earlier one needed it
    if (std::ranges::any_of(together, [](const auto& t) { return t->is_store(); })) {
      store(in, together);
      continue;
    }
    std::vector<Expr> exprs;
    for (const auto& t : together) exprs.push_back(t->expr());
    const bool on_host = std::ranges::all_of(exprs, [&](const Expr& e) { return is_for_host(in, e); });
    if (exprs.size() > 1 && !on_host && run_together(exprs).ok())
      for (const auto& t : together) t->settle();
    else
      for (const auto& t : together) t->tensor(in);  // alone: with its own error, or on the host
  }
}

std::vector<std::vector<Ref<TensorObject>>> PendingTensors::related() const {
  constexpr size_t kMostTogether = 8;  // outputs of a plan, but of gradients: all have most operations in common
  std::vector<std::vector<TensorObject*>> groups;
  std::vector<size_t> joined;                        // for each group itself, or one that it became part of
  std::unordered_map<const void*, size_t> group_of;  // of an operation, and of memory
  auto last = [&](size_t group) {
    while (joined[group] != group) group = joined[group] = joined[joined[group]];
    return group;
  };
  // Results of one shape that read the same, however small it is (keys and values of the same beams), share a loop.
  std::map<std::pair<const void*, Shape>, const TensorObject*> first_of;
  for (TensorObject* t : tensors_) {
    std::vector<const void*> parts;
    for (const Expr::Part& part : t->expr().pending_parts()) parts.push_back(part.node);
    for (const runtime::Storage* storage : t->expr().read_in_full()) parts.push_back(storage);
    for (const runtime::Storage* storage : t->expr().all_read()) {
      const Shape shape(t->shape().begin(), t->shape().end());
      parts.push_back(first_of.emplace(std::pair(storage, shape), t).first->second);
    }
    const size_t own = groups.size();
    groups.push_back({t}), joined.push_back(own);
    for (const void* part : parts) {
      const auto known = group_of.find(part);
      if (known == group_of.end()) continue;
      // What is made of two of them brings their groups together.
      const size_t mine = last(own), theirs = last(known->second);
      if (mine == theirs ||
          (groups[mine].size() + groups[theirs].size() > kMostTogether && t->expr().gradient_operations() == 0))
        continue;
      const size_t into = std::min(mine, theirs), from = std::max(mine, theirs);
      groups[into].insert(groups[into].end(), groups[from].begin(), groups[from].end());
      groups[from].clear();
      joined[from] = into;
    }
    for (const void* part : parts) group_of[part] = own;
  }
  std::vector<std::vector<Ref<TensorObject>>> out;
  for (const auto& g : groups)
    if (!g.empty()) out.emplace_back(g.begin(), g.end());
  return out;
}

bool PendingTensors::run_with_gradients(Interp& in, const TensorObject& t) {
  if (t.expr().gradient_operations() == 0) return false;
  std::unordered_set<const runtime::ExprNode*> shared;
  for (const Expr::Part& part : t.expr().pending_parts()) shared.insert(part.node);
  std::vector<Ref<TensorObject>> together;
  std::vector<Expr> exprs;
  for (TensorObject* other : tensors_) {
    const Expr e = other->expr();
    if (e.gradient_operations() == 0) continue;
    const std::vector<Expr::Part> parts = e.pending_parts();
    if (std::ranges::none_of(parts, [&](const Expr::Part& p) { return shared.contains(p.node); })) continue;
    together.emplace_back(other);
    exprs.push_back(e);
  }
  if (exprs.size() < 2) return false;
  if (std::ranges::any_of(together, [](const auto& each) { return each->is_store(); })) {
    store(in, std::move(together));
    return true;
  }
  if (!run_together(exprs).ok()) return false;  // alone: with its own error, or on the host
  for (const auto& each : together) each->settle();
  return true;
}

void PendingTensors::keep_parts(Interp& in, const Expr& whole) {
  if (tensors_.empty()) return;
  const std::vector<Expr::Part> parts = whole.pending_parts();
  if (parts.size() < 2) return;  // itself
  std::unordered_map<const runtime::ExprNode*, bool> is_factor;
  for (const Expr::Part& part : parts) is_factor.emplace(part.node, part.is_factor);
  // In the order in which they were made, operands before what is made of them. Computing one changes the list.
  std::vector<std::pair<Ref<TensorObject>, bool>> held;
  for (TensorObject* t : tensors_)
    if (const auto part = is_factor.find(t->expr().node()); t->expr().node() != whole.node() && part != is_factor.end())
      held.emplace_back(Ref<TensorObject>(t), part->second);
  constexpr size_t kMostTogether = 8;  // outputs of a plan
  std::vector<Ref<TensorObject>> kept;
  auto compute_kept = [&] {
    std::erase_if(kept, [](const auto& t) { return !t->is_pending(); });  // another one needed it
    std::vector<Expr> exprs;
    for (const auto& t : kept) exprs.push_back(t->expr());
    const bool together = exprs.size() > 1 && std::ranges::none_of(kept, [&](const auto& t) {
                            return t->is_store() || t->expr().gradient_operations() > 0 || is_for_host(in, t->expr());
                          });
    if (together && run_together(exprs).ok())
      for (const auto& t : kept) t->settle();
    else
      for (const auto& t : kept) t->tensor(in);
    kept.clear();
  };
  // Steps of a loop that all are read once more share a plan.
  for (const auto& [t, factor] : held) {
    if (t->is_kept_as_part(factor)) kept.push_back(t);
    if (kept.size() == kMostTogether) compute_kept();
  }
  compute_kept();
}

TensorObject::TensorObject(Interp& in, Expr expr) : Object(kKind), expr_(std::move(expr)) {
  if (expr_.records()) held_ = expr_.hold();
  if (const Tensor* t = expr_.tensor()) {
    tensor_ = *t;
    history_ = std::move(expr_);
    expr_ = {};
    return;
  }
  pending_ = torch_state(in).pending();
  pending_->limit_dropped(in);
  pending_->add(*this);
}

TensorObject::TensorObject(std::shared_ptr<LatePair> late, int half)
    : Object(kKind), late_(std::move(late)), half_(half) {
  late_->set_reader(half, this);
}

TensorObject::~TensorObject() {
  if (late_) late_->set_reader(half_, nullptr);
  if (tape_) tape_->remove(*this);
  if (!pending_) return;
  pending_->remove(*this);
  // Also of what is stored in place already.
  const bool is_part_of_another = expr_.shared().use_count() > 1 || times_computed_ > 0 || expr_.was_part();
  if (!is_part_of_another) pending_->drop(expr_.shared(), other_half_);
}

void TensorObject::make_pair(TensorObject& a, TensorObject& b) {
  if (!a.is_pending() || !b.is_pending()) return;
  a.other_half_ = b.expr_.shared();
  b.other_half_ = a.expr_.shared();
}

bool TensorObject::is_kept_as_part(bool is_factor) {
  return is_pending() && (is_factor || (times_computed_++ > 0 && !expr_.is_cheap_again()));
}

void TensorObject::compute(Interp& in) {
  if (is_store()) return pending_->store(in, {Ref<TensorObject>(this)});
  if (pending_->run_with_gradients(in, *this)) return;
  pending_->keep_parts(in, expr_);
  if (!is_pending()) return;  // a part overwrites what it reads, and took it along
  computed(in, expr_);
  settle();
}

void TensorObject::settle() {
  if (!is_pending()) return;
  if (!is_store()) tensor_ = *expr_.tensor();
  history_ = expr_.records() ? expr_ : Expr();
  expr_ = {};
  pending_->remove(*this);
  pending_ = nullptr;
}

bool TensorObject::records() const {
  if (is_leaf_) return !tape_->is_paused;
  if (expr_) return expr_.records();
  if (history_ && !history_.records()) history_ = {};  // its scope has ended
  return static_cast<bool>(history_);
}

void TensorObject::record(Interp& in) {
  if (is_leaf_ || records()) return;
  tensor(in);
  tape_ = torch_state(in).tape;
  is_leaf_ = true;
}

Expr TensorObject::variable() const {
  if (!variable_) variable_ = tape_->variable(*this, tensor_);
  return variable_;
}

const Expr& TensorObject::leaf() const {
  const Tensor* known = leaf_ ? leaf_.tensor() : nullptr;
  const bool is_current = known && known->storage() == tensor_.storage() && known->offset() == tensor_.offset() &&
                          known->dtype() == tensor_.dtype() && std::ranges::equal(known->shape(), tensor_.shape()) &&
                          std::ranges::equal(known->strides(), tensor_.strides());
  if (!is_current) leaf_ = Expr(tensor_);
  return leaf_;
}

void TensorObject::forget_variable() {
  if (variable_) tape_->note_change(variable_);
  variable_ = {};
}

void TensorObject::retain_grad(Interp& in) {
  if (is_leaf_) return;  // backward() keeps those of leaves
  if (!records()) in.fail_as("RuntimeError", "can't retain_grad on Tensor that has requires_grad=False");
  tape_ = torch_state(in).tape;
  tape_->retain(*this);
  retains_grad = true;
}

const Tensor& TensorObject::launched_with(Interp& in, std::string_view kernel) {
  if (!records()) return changing(in);
  if (torch_state(in).gradient_scopes > 0) return constant(in, "the kernel " + std::string(kernel));
  const Tensor& t = tensor(in);
  if (PendingTensors& pending = *torch_state(in).pending(); !pending.empty())
    pending.run_readers(in, t.storage().get());
  return t;
}

const Tensor& TensorObject::constant(Interp& in, std::string_view what) {
  if (!records()) return tensor(in);
  const std::string name = !what.empty() ? std::string(what) : in.running ? in.running->name + "()" : "this";
  in.fail(with_note(error(ErrorKind::kUnsupported, "no gradient of {}: it is computed at once", name),
                    "help: detach() its arguments, if they are constants here"));
}

void TensorObject::have_shared_memory(Interp& in) {
  // One whose value is there already may share it with a view that asked for it.
  if (is_pending() && (expr_.tensor() || expr_.is_view() || pending_->has_view_of(*this))) tensor(in);
}

void TensorObject::assign(Interp& in, const Expr& result) {
  need();
  if (is_leaf_) forget_variable();
  const PendingTensors& pending = *torch_state(in).pending();
  const bool has_memory = static_cast<bool>(tensor_), was_pending = is_pending();
  leaf_ = {};  // it holds the memory as well, and is no other's unless something pending has it
  // Nobody has its memory but this object and the leaves of what is pending, of which the result is one.
  const bool alone = !has_memory || was_pending ||
                     (pending.only_leaves_hold(tensor_, result) && !pending.has_view_of(tensor_.storage().get()));
  expr_ = result;
  times_computed_ = 0;
  if (!was_pending) {
    pending_ = torch_state(in).pending();
    pending_->add(*this);
  }
  if (!alone || expr_.has_operations(kMostPendingOperations)) tensor(in);
}

namespace {

[[noreturn]] void fail_as_leaf(Interp& in) {
  in.fail_as_type("RuntimeError", "a leaf Variable that requires grad is being used in an in-place operation.",
                  "help: with torch.no_grad(): changes it without being recorded");
}

}  // namespace

void TensorObject::become(Interp& in, const std::function<Expr()>& make) {
  Expr own;
  if (records()) {
    own = this->expr();
    if (is_leaf_) fail_as_leaf(in);
    if (own.is_variable())
      in.fail_as_type("RuntimeError", "an argument of a function under grad() is changed in place",
                      "help: x = x + y makes a new tensor");
    if (own.shares_elements())
      in.fail_as_type("RuntimeError", "a tensor that has views, or is one, is changed in place while it has a gradient",
                      "help: x = x + y makes a new tensor");
  } else if (leaf_ = {}; changing(in).storage().use_count() > 1) {
    in.fail_as_type("RuntimeError", "a tensor whose memory others share gets elements that have a gradient in place",
                    "help: x = x + y makes a new tensor; inside of torch.no_grad() nothing has a gradient");
  }
  Expr expr = make();
  if (own && torch_state(in).no_grad()) {
    // The elements change, and the gradient that reaches them goes on to what they were.
    const Expr operands[] = {own};
    auto pass = [](const Expr& gradient, std::span<const Expr>) -> Result<std::vector<Expr>> { return {{gradient}}; };
    expr = taken(in, with_gradient(taken(in, run(expr)), operands, pass));
  }
  take_over(in, expr);
}

void TensorObject::become(Interp& in, TensorObject& view) {
  if (records() && is_leaf_) fail_as_leaf(in);
  if (records() && !torch_state(in).no_grad()) return take_over(in, view.expr());
  share(in, view.tensor(in));
}

void TensorObject::share(Interp& in, Tensor memory) {
  if (is_leaf_)
    forget_variable();
  else
    constant(in);
  leaf_ = {};
  tensor_ = std::move(memory);
}

void TensorObject::take_over(Interp& in, const Expr& expr) {
  if (pending_) pending_->remove(*this);
  pending_ = nullptr;
  tensor_ = {};
  history_ = expr_ = leaf_ = {};
  times_computed_ = 0;
  held_ = expr.hold();
  if (const Tensor* t = expr.tensor()) {
    tensor_ = *t;
    history_ = expr;
    return;
  }
  expr_ = expr;
  pending_ = torch_state(in).pending();
  pending_->add(*this);
}

const Tensor& TensorObject::changing(Interp& in) {
  if (records() && is_leaf_) fail_as_leaf(in);
  if (records())
    in.fail(with_note(error(ErrorKind::kUnsupported, "no gradient of {}: it changes a tensor in place",
                            in.running ? in.running->name + "()" : "this"),
                      "help: make a new tensor instead"));
  const Tensor& t = tensor(in);
  PendingTensors& pending = *torch_state(in).pending();
  if (!pending.empty()) pending.run_readers(in, t.storage().get());
  if (is_leaf_) forget_variable();
  return t;
}

const Tensor& seen_tensor(Interp& in, const Value& v, std::string_view what) {
  auto* t = v.missing() ? nullptr : v.get<TensorObject>();
  if (!t) in.fail(ErrorKind::kType, "{} needs a tensor, got '{}'", what, in.type_name(v));
  return t->tensor(in);
}

const Tensor& tensor_of(Interp& in, const Value& v, std::string_view what) {
  if (auto* t = v.missing() ? nullptr : v.get<TensorObject>()) return t->constant(in, what);
  return seen_tensor(in, v, what);
}

DType dtype_of(Interp& in, const Value& v, DType otherwise) {
  if (v.missing() || v.is_none()) return otherwise;
  if (v.is_dtype()) return v.dtype();
  auto* type = v.get<TypeObject>();
  if (type && type->of_kind == Kind::kFloat) return DType::kF64;
  if (type && type->of_kind == Kind::kInt) return DType::kI64;
  if (type && type->of_kind == Kind::kBool) return DType::kI1;
  in.fail(ErrorKind::kType, "expected a dtype such as torch.float32, got '{}'", in.type_name(v));
}

FillValue fill_value(Interp& in, const Value& v, DType dtype, std::string_view what) {
  const double x = in.to_double(v, what);
  const DTypeInfo& type = info(dtype);
  bool fits = true;
  if (is_float(dtype)) {
    fits = !std::isfinite(x) || is_fp8(dtype) || std::abs(x) <= float_from_bits(dtype, max_finite_bits(dtype));
  } else if (bits(dtype) == 64 && !v.is_float()) {
    fits = v.small_int_or_bool();  // a double has not all of its bits
  } else if (dtype != DType::kI1) {
    const double past = std::ldexp(1.0, is_signed(dtype) ? type.bits - 1 : type.bits);
    const double least = is_signed(dtype) ? -past : v.is_float() ? 0 : 1 - past;
    fits = x >= least && x < past;  // of NaN neither
  }
  if (!fits) in.fail_as("RuntimeError", "{} {} does not fit into {}", what, in.repr(v), type.torch);
  if (v.small_int_or_bool()) return v.integer();
  return x;
}

Device device_of(Interp& in, const Value& v) {
  const auto default_device = [&]() -> const Device& { return torch_state(in).device(); };
  if (v.missing() || v.is_none()) return default_device();
  if (auto* d = v.get<DeviceObject>()) return d->device;
  if (v.small_int_or_bool()) return taken(in, torch_state(in).runtime().open("cuda:" + std::to_string(v.integer())));
  const std::string& name = in.to_text(v, "a device");
  if (name == "cuda" && default_device().is_cuda()) return default_device();
  auto device = torch_state(in).runtime().open(name);
  if (device.ok()) return *device;
  Diagnostic d = std::move(device.error());
  if (name.rfind("cuda", 0) == 0 && !default_device().is_cuda())
    d = with_note(std::move(d), fmt::format("help: this session runs on '{}'; leave device= out, or use "
                                            "triton.runtime.driver.active.get_active_torch_device()",
                                            default_device().name()));
  in.fail(std::move(d));
}

Device described_device(Interp& in, const Value& v) {
  const Device& own = torch_state(in).device();
  return own.is_cuda() || v.get<DeviceObject>() ? device_of(in, v) : own;
}

Shape shape_of(Interp& in, const std::vector<Value>& args) {
  const std::vector<Value>* dims = &args;
  std::vector<Value> inner;
  auto* tuple = args.size() == 1 ? args[0].get<Tuple>() : nullptr;
  if (tuple && !Interp::has_own_iterator(args[0])) {
    dims = &tuple->items;
  } else if (args.size() == 1 && (tuple || args[0].get<List>())) {
    inner = in.to_vector(args[0]);
    dims = &inner;
  }
  Shape shape;
  shape.reserve(dims->size());
  for (const Value& v : *dims) shape.push_back(in.to_int(v, "a dimension"));
  return shape;
}

// --- DeviceObject
// ---------------------------------------------------------------------------------------------------------

std::optional<Value> DeviceObject::attribute(Interp&, std::string_view name) {
  size_t colon = device.name().find(':');
  if (name == "type") return Value::str(device.name().substr(0, colon));
  // On the CPU torch has no index; Kiln says 0, so that get_device_properties(device.index) works there too.
  if (name == "index")
    return Value::integer(colon == std::string::npos ? 0 : std::atoi(device.name().c_str() + colon + 1));
  return std::nullopt;
}

void DeviceObject::attribute_names(std::vector<std::string>& out) const { out.insert(out.end(), {"type", "index"}); }

std::string DeviceObject::repr(Interp&) {
  size_t colon = device.name().find(':');
  if (colon == std::string::npos) return fmt::format("device(type='{}')", device.name());
  return fmt::format("device(type='{}', index={})", device.name().substr(0, colon), device.name().substr(colon + 1));
}

std::optional<Value> DeviceObject::compare(Interp&, CompareOp op, const Value& other) {
  if (op != CompareOp::kEq && op != CompareOp::kNe) return std::nullopt;
  auto* d = other.get<DeviceObject>();
  return Value::boolean((d && d->device == device) == (op == CompareOp::kEq));
}

// --- attributes
// -----------------------------------------------------------------------------------------------------------

namespace {

/// What a tensor with a gradient was made by, for scripts that print it.
class GradientFunction : public Object {
 public:
  static inline const KindOf<GradientFunction> kKind{"torch.autograd.Node"};
  explicit GradientFunction(const Expr& of) : Object(kKind), name_(name_of(of)) {}
  /// As torch calls the gradient of an operation: "LogSoftmaxBackward0".
  static std::string name_of(const Expr& of) {
    std::string out;
    for (const char c : "_" + std::string(of.operation())) {
      const bool starts = !out.empty() && out.back() == '_';
      if (starts) out.pop_back();
      out += starts ? static_cast<char>(std::toupper(static_cast<unsigned char>(c))) : c;
    }
    return out + "Backward0";
  }
  std::string repr(Interp&) override { return "<" + name_ + " object>"; }

 private:
  std::string name_;
};

constexpr std::string_view kAttributes[] = {"shape",    "dtype",  "device",    "ndim",          "T",      "mT",
                                            "H",        "mH",     "is_cuda",   "requires_grad", "data",   "grad",
                                            "itemsize", "nbytes", "is_leaf",   "grad_fn",       "layout", "is_cpu",
                                            "names",    "name",   "output_nr", "retains_grad"};

/// What no tensor here is.
constexpr std::string_view kNever[] = {"is_sparse", "is_sparse_csr", "is_quantized", "is_mkldnn", "is_nested",
                                       "is_meta",   "is_mps",        "is_xpu",       "is_xla",    "is_ipu",
                                       "is_vulkan", "is_maia",       "is_mtia"};

}  // namespace

std::optional<Value> TensorObject::attribute(Interp& in, std::string_view name) {
  if (name == "shape") return size_value(shape());
  if (name == "dtype") return Value::dtype(dtype());
  if (name == "device") return Value(make<DeviceObject>(device()));
  if (name == "ndim") return Value::integer(rank());
  if (name == "is_cuda") return Value::boolean(device().is_cuda());
  if (name == "requires_grad") return Value::boolean(requires_grad || records());
  if (name == "is_leaf") return Value::boolean(is_leaf_ || !records());
  if (name == "grad_fn") return is_leaf_ || !records() ? Value::none() : Value(make<GradientFunction>(expr()));
  if (name == "is_parameter") return Value::boolean(is_parameter);
  if (name == "real") return Value(this);
  if (name == "imag") in.fail_as("RuntimeError", "imag is of complex tensors, this one is of {}", info(dtype()).torch);
  if (name == "data") return detached_value(in, *this);
  if (name == "grad") return grad;
  if (name == "_backward_hooks") return hooks;
  if (name == "_post_accumulate_grad_hooks") return later_hooks;
  if (name == "layout") return strided_layout(in);
  if (name == "is_cpu") return Value::boolean(!device().is_cuda());
  if (name == "names") return Value(make<Tuple>(std::vector<Value>(static_cast<size_t>(rank()), Value::none())));
  if (name == "name") return Value::none();
  if (name == "output_nr") return Value::integer(0);
  if (name == "retains_grad") return Value::boolean(retains_grad);
  if (std::ranges::find(kNever, name) != std::end(kNever)) return Value::boolean(false);
  if (name == "itemsize") return Value::integer(size_of(dtype()));
  if (name == "nbytes") return Value::integer(numel() * size_of(dtype()));
  if (name == "T" || name == "mT" || name == "H" || name == "mH") {  // no tensor is complex
    if (name == "H" && rank() != 2 && rank() != 0)
      in.fail_as("RuntimeError", ".H is for matrices, this tensor has {} dimensions", rank());
    if (name.starts_with("m") && rank() < 2)
      in.fail_as("RuntimeError", ".{} is for matrices and batches of them, this tensor has {} dimensions", name,
                 rank());
    if (rank() < 2) return Value(this);
    std::vector<int> order;
    for (int d = 0; d < rank(); ++d) order.push_back(d);
    if (name == "T")
      std::reverse(order.begin(), order.end());
    else
      std::swap(order[order.size() - 1], order[order.size() - 2]);
    return permuted(in, Value(this), std::move(order));
  }
  return in.method(kKind, name) ? std::nullopt : tensor_library_method(in, Value(this), name);
}

void TensorObject::set_attribute(Interp& in, std::string_view name, Value value) {
  if (name == "grad") return set_grad(in, std::move(value));
  if (name == "_backward_hooks") return void(hooks = std::move(value));
  if (name == "_post_accumulate_grad_hooks") return void(later_hooks = std::move(value));
  if (name == "is_parameter") {
    is_parameter = in.truth(value);
    return;
  }
  if (name == "requires_grad") {
    set_requires_grad(in, in.truth(value));
    return;
  }
  if (name == "data") {  // both are the same memory from now on; views of the old one keep it
    auto* t = value.get<TensorObject>();
    if (!t) in.fail(ErrorKind::kType, "the data of a tensor is a tensor, got '{}'", in.type_name(value));
    share(in, t->tensor(in));
    return;
  }
  Object::set_attribute(in, name, std::move(value));
}

void TensorObject::set_requires_grad(Interp& in, bool on) {
  if (on && !is_float(dtype()))
    in.fail_as("RuntimeError", "only tensors of floats can require gradients, not of {}", info(dtype()).torch);
  if (!on && records() && !is_leaf_)
    in.fail_as_type("RuntimeError", "you can only change requires_grad flags of leaf variables.",
                    "help: x.detach() is a constant");
  requires_grad = on;
  if (on) {
    record(in);
    if (!is_parameter) torch_state(in).tape->expects_gradients = true;  // the tensor may be no leaf, and have no tape
    return;
  }
  if (!is_leaf_) return;
  tape_->remove(*this);
  variable_ = {};
  is_leaf_ = false;
}

void TensorObject::set_grad(Interp& in, Value value) {
  auto* t = value.get<TensorObject>();
  if (!value.is_none() && !t)
    in.fail(ErrorKind::kType, "a gradient is a tensor or None, got '{}'", in.type_name(value));
  if (t && (t->dtype() != dtype() || !std::ranges::equal(t->shape(), shape()) || t->device() != device()))
    in.fail_as("RuntimeError", "the gradient of {} is one of its shape, dtype and device, not {}", summary(),
               t->summary());
  grad = std::move(value);
}

void TensorObject::attribute_names(std::vector<std::string>& out) const {
  out.insert(out.end(), std::begin(kAttributes), std::end(kAttributes));
  tensor_library_names(out);
}

std::string TensorObject::summary() const {
  if (!late_ && !expr_ && tensor_.is_freed()) return "(freed)";
  return fmt::format("{}[{}] {}", kiln::name(dtype()), fmt::join(shape(), ", "), device().name());
}

std::string TensorObject::description() const {
  std::string text = summary();
  if (!expr_) return text;
  auto planned = plan(expr_);
  if (planned.ok()) {
    const size_t n = planned->groups.size();
    return fmt::format("{} · lazy · {} {} when fused", text, n, n == 1 ? "kernel" : "kernels");
  }
  if (planned.error().kind == ErrorKind::kUnsupported) return text + " · lazy · computed on the host";
  return fmt::format("{} · lazy · fails: {}", text, planned.error().message);
}

std::optional<int64_t> TensorObject::length(Interp& in) {
  if (rank() == 0) in.fail(ErrorKind::kType, "a tensor without dimensions has no len()");
  return shape()[0];
}

namespace {
class RowIterator : public IteratorObject {
 public:
  explicit RowIterator(Ref<TensorObject> t) : tensor_(std::move(t)) {}
  bool next(Interp& in, Value& out) override {
    if (at_ >= tensor_->shape()[0]) return false;
    out = tensor_->item(in, Value::integer(at_++));
    return true;
  }

 private:
  Ref<TensorObject> tensor_;
  int64_t at_ = 0;
};
}  // namespace

Value TensorObject::iterate(Interp& in) {
  if (rank() == 0) in.fail(ErrorKind::kType, "a tensor without dimensions cannot be iterated");
  return make<RowIterator>(Ref<TensorObject>(this));
}

std::string TensorObject::repr(Interp& in) {
  const bool by_tape = records() && torch_state(in).gradient_scopes == 0;
  std::string gradient = is_leaf_ ? "requires_grad=True" : "";
  if (by_tape && !is_leaf_) gradient = "grad_fn=<" + GradientFunction::name_of(expr()) + ">";
  return tensor_text(in, tensor(in), nullptr, gradient);
}

bool TensorObject::truth(Interp& in) {
  if (numel() != 1)
    fail_as_torch(in, with_note(error(ErrorKind::kValue, "the truth of a tensor of {} elements is ambiguous", numel()),
                                "help: use .all() or .any()"));
  return in.truth(item_of(in, tensor(in)));
}

std::optional<Value> TensorObject::binary(Interp& in, BinaryOp op, const Value& other, bool reflected) {
  if (!is_operand(other)) return complex_binary(in, op, Value(this), other, reflected);
  return reflected ? tensor_binary(in, op, other, Value(this)) : tensor_binary(in, op, Value(this), other);
}

std::optional<Value> TensorObject::unary(Interp& in, UnaryOp op) {
  switch (op) {
    case UnaryOp::kNegate:
      return script::compute(in, ExprOp::kNeg, {Value(this)});
    case UnaryOp::kPlus:
      return Value(this);
    case UnaryOp::kInvert:
      if (is_float(dtype())) in.fail(ErrorKind::kType, "~ is of integers and bools, not of {}", info(dtype()).torch);
      return script::compute(in, ExprOp::kBitNot, {Value(this)});
    case UnaryOp::kNot:
      break;
  }
  return std::nullopt;
}

std::optional<Value> TensorObject::compare(Interp& in, CompareOp op, const Value& other) {
  if (!is_operand(other))
    if (auto v = complex_compare(in, op, Value(this), other)) return v;
  return tensor_compare(in, op, Value(this), other);
}

std::optional<bool> TensorObject::contains(Interp& in, const Value& item) {
  Value hits = tensor_compare(in, CompareOp::kEq, Value(this), item);
  auto* t = hits.get<TensorObject>();
  if (!t) return false;
  const Tensor& equal = t->tensor(in);
  std::vector<int64_t> found = load_ints(in, equal, shape_vector(equal));
  return std::any_of(found.begin(), found.end(), [](int64_t v) { return v != 0; });
}

std::optional<std::string> TensorObject::format(Interp& in, std::string_view spec) {
  if (rank() == 0) return in.format(item_of(in, tensor(in)), spec);
  if (spec.empty()) return repr(in);
  in.fail(ErrorKind::kType,
          "the format '{}' does not apply to a tensor with dimensions: format its .item() or elements", spec);
}

}  // namespace kiln::script
