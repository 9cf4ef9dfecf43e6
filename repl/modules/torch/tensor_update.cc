// One update of many parameters: an optimizer's step is the same computation on elements for each of them.
#include <algorithm>
#include <bit>
#include <map>

#include "repl/modules/torch/tensor_grad.h"
#include "repl/modules/torch/tensor_sort.h"

namespace kiln::script {

namespace {

/// A parameter with what an optimizer keeps of it.
struct Updated {
  TensorObject* parameter = nullptr;
  Dict* state = nullptr;
};

Updated updated(Interp& in, const Value& row) {
  auto* pair = row.get<Tuple>();
  Updated u;
  if (pair && pair->items.size() == 2) u = {pair->items[0].get<TensorObject>(), pair->items[1].get<Dict>()};
  if (!u.parameter || !u.state)
    in.fail(ErrorKind::kType, "an update is of parameters with their states, not of '{}'", in.type_name(row));
  return u;
}

/// A number of several parameters, as that of their step where it is a tensor.
bool is_shared(const Updated& u, const TensorObject& t) { return t.shape().empty() && !u.parameter->shape().empty(); }

/// The tensors of an update: the parameter, its gradient, and what is kept of it alone.
std::vector<TensorObject*> tensors_of(const Updated& u) {
  std::vector<TensorObject*> out = {u.parameter, u.parameter->grad.get<TensorObject>()};
  for (const Table::Entry& e : u.state->table.entries())
    if (!e.key.missing())
      if (auto* t = e.value.get<TensorObject>(); t && !is_shared(u, *t)) out.push_back(t);
  return out;
}

/// What two updates have in common where one computation will do for both; nullopt where it will for none.
std::optional<std::string> form_of(Interp& in, const Updated& u) {
  if (!u.parameter->grad.get<TensorObject>() || !runs_kernels(in, u.parameter->device())) return std::nullopt;
  std::string form = u.parameter->device().name();
  for (TensorObject* t : tensors_of(u)) {
    if (t->records() || t->device() != u.parameter->device() || !std::ranges::equal(t->shape(), u.parameter->shape()))
      return std::nullopt;
    form += static_cast<char>(t->dtype());
  }
  auto add_bits = [&](char kind, uint64_t bits) {
    form += kind;
    form.append(reinterpret_cast<const char*>(&bits), sizeof bits);
  };
  for (const Table::Entry& e : u.state->table.entries()) {
    if (e.key.missing()) continue;
    form += in.repr(e.key);
    if (auto* t = e.value.get<TensorObject>()) {
      if (is_shared(u, *t)) add_bits('t', reinterpret_cast<uintptr_t>(t));
      continue;
    }
    if (e.value.is_float())
      add_bits('f', std::bit_cast<uint64_t>(e.value.real()));
    else if (e.value.small_int_or_bool())
      add_bits(e.value.is_bool() ? 'b' : 'i', static_cast<uint64_t>(e.value.integer()));
    else if (!e.value.is_none())
      return std::nullopt;
  }
  return form;
}

/// Computes their gradients, and what reads the memory that will change, in one plan.
void prepare(Interp& in, std::span<const Updated> updates) {
  std::vector<Ref<TensorObject>> pending;
  std::vector<const runtime::Storage*> homes;
  for (const Updated& u : updates)
    for (TensorObject* t : tensors_of(u)) {
      const bool is_gradient = t == u.parameter->grad.get<TensorObject>();
      if (t->is_pending()) pending.emplace_back(t);
      if (!is_gradient && t->home()) homes.push_back(t->home().storage().get());
    }
  torch_state(in).pending()->store(in, std::move(pending), std::move(homes));
}

/// alike(groups): each group's rows of a parameter and its state, in lists of those that one update serves.
Value alike(Interp& in, NativeArgs& a) {
  std::vector<Value> groups;
  std::vector<Updated> together;
  for (const Value& rows : in.to_vector(a[0])) {
    std::vector<std::vector<Value>> lists;
    std::map<std::string, size_t> list_of;
    for (const Value& row : in.to_vector(rows)) {
      const auto form = form_of(in, updated(in, row));
      const auto known = form ? list_of.find(*form) : list_of.end();
      if (known != list_of.end()) {
        lists[known->second].push_back(row);
        continue;
      }
      if (form) list_of.emplace(*form, lists.size());
      lists.push_back({row});
    }
    std::vector<Value> out;
    for (std::vector<Value>& list : lists) {
      if (list.size() > 1)
        for (const Value& row : list) together.push_back(updated(in, row));
      out.push_back(make<List>(std::move(list)));
    }
    groups.push_back(make<List>(std::move(out)));
  }
  if (!together.empty()) prepare(in, together);
  return make<List>(std::move(groups));
}

/// update_alike(rows): the others get what waits to be stored in the first one's tensors, of their own. False where
/// they have to be updated one by one.
Value update_alike(Interp& in, NativeArgs& a) {
  std::vector<Updated> updates;
  for (const Value& row : in.to_vector(a[0])) updates.push_back(updated(in, row));
  if (updates.empty()) in.fail(ErrorKind::kValue, "update_alike() needs the rows of some parameters");
  const std::vector<TensorObject*> first = tensors_of(updates[0]);
  // A step changes every parameter: where that is not to be stored any more, something had it computed in between.
  if (!first[0]->is_store()) return Value::boolean(false);
  std::vector<ExprStore> stores;
  std::vector<size_t> written;
  for (size_t i = 0; i < first.size(); ++i) {
    if (!first[i]->is_pending()) continue;
    if (!first[i]->is_store()) return Value::boolean(false);
    stores.push_back({first[i]->expr(), first[i]->home()});
    written.push_back(i);
  }
  std::vector<std::vector<TensorObject*>> objects;
  std::vector<std::vector<Tensor>> tuples;
  for (const Updated& u : updates) {
    objects.push_back(tensors_of(u));
    if (objects.back().size() != first.size()) return Value::boolean(false);
    std::vector<Tensor>& tuple = tuples.emplace_back();
    for (TensorObject* t : objects.back()) tuple.push_back(t->is_store() ? t->home() : t->tensor(in));
  }
  if (!taken(in, run_each_into(stores, tuples))) return Value::boolean(false);
  for (TensorObject* t : first) t->settle();
  const std::vector<Table::Entry> kept = updates[0].state->table.live();
  for (size_t u = 1; u < updates.size(); ++u) {
    for (const size_t i : written) objects[u][i]->note_overwritten();
    for (const Table::Entry& e : kept)
      if (!e.value.get<TensorObject>()) updates[u].state->table.set(in, e.key, e.value);
  }
  return Value::boolean(true);
}

constexpr NativeDef kUpdateFunctions[] = {
    {"alike(groups)", alike, "rows of parameters and states, in lists of those that one update serves"},
    {"update_alike(rows)", update_alike,
     "what waits to be stored in the first row's tensors, for all rows in one kernel"},
};

}  // namespace

std::span<const NativeDef> update_functions() { return kUpdateFunctions; }

}  // namespace kiln::script
