#include <algorithm>
#include <map>
#include <ranges>
#include <span>
#include <unordered_map>
#include <unordered_set>

#include "repl/modules/torch/tensor_object.h"

namespace kiln::script {

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

void PendingTensors::drop(std::shared_ptr<runtime::ExprNode> result, Siblings siblings) {
  if (clock_was_read_) dropped_.push_back({std::move(result), std::move(siblings)});
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
  // Each by itself: a script that times calls counts them, also where they make the same of the same.
  for (const Dropped& d : all)
    if (!d.siblings || std::ranges::all_of(*d.siblings, is_dropped)) computed(in, Expr(d.result), /*is_read=*/false);
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
    if (together && run_and_keep(exprs, torch_state(in).expects_gradients()).ok())
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

void TensorObject::make_siblings(std::span<TensorObject* const> results) {
  if (!std::ranges::all_of(results, [](const TensorObject* t) { return t->is_pending(); })) return;
  auto all = std::make_shared<std::vector<std::weak_ptr<runtime::ExprNode>>>();
  for (const TensorObject* t : results) all->push_back(t->expr_.shared());
  for (TensorObject* t : results) t->siblings_ = all;
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

}  // namespace kiln::script
