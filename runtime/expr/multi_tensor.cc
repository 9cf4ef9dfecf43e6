// The same computation of many tuples of tensors, as an optimizer's step of each parameter, in one launch.
#include <algorithm>
#include <mutex>

#include "compiler/fusion/multi_tensor.h"
#include "runtime/device/device.h"
#include "runtime/expr/plan.h"
#include "runtime/expr/scatter.h"
#include "support/diag.h"
#include "support/knobs.h"
#include "support/lru.h"

namespace kiln {

using namespace runtime;

namespace {

constexpr uint64_t kAlignment = 16;  // of all addresses: fusion::MultiTensor

/// A table in a device's memory. What a stream reads of it was copied there on that stream.
struct DeviceTable {
  std::vector<int64_t> words;
  uint64_t stream = 0;
  Tensor tensor;
};

/// The last tables with which a kernel was launched: an optimizer's tensors mostly lie where they lay before.
class DeviceTables {
 public:
  Result<Tensor> of(const Device& device, std::vector<int64_t> words) {
    constexpr size_t kMostKept = 4;
    DeviceImpl& impl = *device.impl();
    StreamImpl& stream = impl.backend().current_stream();
    if (stream.is_capturing()) return for_graph(device, words);
    const auto known =
        std::ranges::find_if(kept_, [&](const DeviceTable& t) { return t.stream == stream.id() && t.words == words; });
    if (known != kept_.end()) {
      std::rotate(kept_.begin(), known, known + 1);
      return kept_.front().tensor;
    }
    const int64_t shape[] = {std::ssize(words)};
    KILN_TRY(Tensor tensor, Tensor::empty(device, DType::kI64, shape));
    // From memory that is not pinned: its words are read when the call returns, before the copy is done.
    KILN_CHECK_OK(impl.backend().copy_in(tensor.address(), words.data(), words.size() * sizeof(int64_t), stream,
                                         Backend::CopyReturns::kQueued));
    if (kept_.size() == kMostKept) kept_.pop_back();
    kept_.insert(kept_.begin(), {std::move(words), stream.id(), tensor});
    return tensor;
  }

 private:
  /// The launch keeps it for the graph. It is there before the first replay, on whichever stream: copied on one that
  /// nobody captures, and waited for.
  static Result<Tensor> for_graph(const Device& device, std::span<const int64_t> words) {
    KILN_TRY(const Stream copies, device.new_stream());
    const StreamGuard guard(copies);
    const int64_t shape[] = {std::ssize(words)};
    KILN_TRY(Tensor tensor, Tensor::empty(device, DType::kI64, shape));
    KILN_CHECK_OK(device.impl()->backend().copy_in(tensor.address(), words.data(), words.size_bytes(), *copies.impl()));
    return tensor;
  }

  std::vector<DeviceTable> kept_;  // the last one first
};

struct MultiTensorPlan {
  std::optional<fusion::MultiTensor> planned;  // nullopt: it is no kernel of elements
  Kernel kernel;
  std::vector<int> leaf_of_node;
  std::mutex mutex;  // of what follows
  DeviceTables programs, rows;
};

/// What a device keeps of them, by the structure of their expressions.
struct MultiTensorPlans : Companion {
  std::mutex mutex;
  LruMap<std::shared_ptr<MultiTensorPlan>> plans;
};

Result<std::shared_ptr<MultiTensorPlan>> plan_of(const ExprWalk& walk, const Device& device) {
  KILN_TRY(Companion * companion,
           device.impl()->companion("multi-tensor plans", [](DeviceImpl&) -> Result<std::unique_ptr<Companion>> {
             return std::unique_ptr<Companion>(std::make_unique<MultiTensorPlans>());
           }));
  auto& plans = *static_cast<MultiTensorPlans*>(companion);
  std::string memory;
  const std::string_view key = walk.key(memory, knob_on(Knob::kExact) ? "1" : "0");
  {
    std::lock_guard lock(plans.mutex);
    if (auto* found = plans.plans.find(key)) return *found;
  }
  auto made = std::make_shared<MultiTensorPlan>();
  fusion::PlanOptions options;
  options.machine = machine_of(device);
  options.exact = knob_on(Knob::kExact);
  KILN_TRY(made->planned, fusion::multi_tensor(walk.graph(), options));
  if (made->planned) {
    KILN_TRY(made->kernel, kernel_of(device, made->planned->source, made->planned->kernel));
  }
  for (const ExprNode* n : walk.order) {
    const auto leaf = std::ranges::find(walk.leaves, n);
    made->leaf_of_node.push_back(leaf == walk.leaves.end() ? -1 : static_cast<int>(leaf - walk.leaves.begin()));
  }
  std::lock_guard lock(plans.mutex);
  return plans.plans.add(std::string(key), std::move(made), static_cast<size_t>(knob_limit(Knob::kPlanLimit)));
}

int position_of(const Tensor& t, std::span<const Tensor> among) {
  const auto found = std::ranges::find_if(among, [&](const Tensor& other) { return same_tensor(t, other); });
  return found == among.end() ? -1 : static_cast<int>(found - among.begin());
}

/// For each column of the plan's rows, which tensor of a tuple it is. Nullopt where one is none of them, or is written
/// before all of it that lies there was read.
std::optional<std::vector<size_t>> tensors_of_columns(const MultiTensorPlan& prepared, const ExprWalk& walk,
                                                      std::span<const Tensor> homes, std::span<const Tensor> tuple) {
  const fusion::Plan& plan = prepared.planned->of_one;
  auto leaf_of = [&](const fusion::Value& v) -> const Tensor& {
    return walk.leaves[static_cast<size_t>(prepared.leaf_of_node[static_cast<size_t>(v.input)])]->value;
  };
  std::vector<size_t> found;
  for (const fusion::TensorArg& column : prepared.planned->columns) {
    const fusion::Value& v = plan.values[static_cast<size_t>(column.value)];
    int position = -1;
    if (v.input >= 0) {
      position = position_of(leaf_of(v), tuple);
    } else {
      const auto output = std::ranges::find(plan.outputs, column.value, &fusion::View::value);
      if (output == plan.outputs.end()) return std::nullopt;
      position = position_of(homes[static_cast<size_t>(output - plan.outputs.begin())], tuple);
      for (size_t read = 0; read < plan.values.size(); ++read)
        if (const fusion::Value& from = plan.values[read];
            from.input >= 0 && position >= 0 && same_tensor(leaf_of(from), tuple[static_cast<size_t>(position)]) &&
            !fusion::is_read_in_time(plan, static_cast<int>(read), column.value, /*same_place=*/true))
          return std::nullopt;
    }
    if (position < 0) return std::nullopt;
    found.push_back(static_cast<size_t>(position));
  }
  return found;
}

/// Whether a tuple's tensors are as those of the first, but for their shape, which all have in common.
bool is_alike(std::span<const Tensor> tuple, std::span<const Tensor> first) {
  constexpr int64_t kMostElements = int64_t{1} << 30;
  if (tuple.size() != first.size() || tuple.empty()) return false;
  for (size_t i = 0; i < tuple.size(); ++i) {
    const Tensor& t = tuple[i];
    if (!t || t.is_freed() || t.dtype() != first[i].dtype() || !t.is_contiguous() || t.address() % kAlignment != 0 ||
        t.device() != first[0].device() || !std::ranges::equal(t.shape(), tuple[0].shape()) || t.numel() == 0 ||
        t.numel() > kMostElements)
      return false;
  }
  return true;
}

/// The tensor of no dimension behind an argument of the kernel; null: it is a number.
const Tensor* shared_tensor(const MultiTensorPlan& prepared, const ExprWalk& walk, const fusion::Argument& a) {
  const auto* tensor = std::get_if<fusion::TensorArg>(&a.value);
  if (!tensor) return nullptr;
  const int node = prepared.planned->of_one.values[static_cast<size_t>(tensor->value)].input;
  return &walk.leaves[static_cast<size_t>(prepared.leaf_of_node[static_cast<size_t>(node)])]->value;
}

/// Whether what is written shares no memory with anything else of the tuples.
bool are_apart(std::span<const std::vector<Tensor>> tuples, std::span<const size_t> written) {
  std::vector<const Storage*> targets, all;
  for (const std::vector<Tensor>& tuple : tuples) {
    for (const size_t i : written) targets.push_back(tuple[i].storage().get());
    for (const Tensor& t : tuple) all.push_back(t.storage().get());
  }
  std::ranges::sort(all);
  std::ranges::sort(targets);
  if (std::ranges::adjacent_find(targets) != targets.end()) return false;
  for (const Storage* target : targets)
    if (std::ranges::equal_range(all, target).size() != 1) return false;
  return true;
}

Status launch(MultiTensorPlan& prepared, const ExprWalk& walk, std::span<const std::vector<Tensor>> tuples,
              std::span<const size_t> columns, const Device& device) {
  const fusion::MultiTensor& planned = *prepared.planned;
  std::vector<int64_t> programs, rows;
  for (const std::vector<Tensor>& tuple : tuples) {
    const int64_t n = tuple[0].numel(), row = std::ssize(rows);
    for (int64_t block = 0; block * planned.block < n; ++block) programs.push_back((block << 32) | row);
    rows.push_back(n);
    for (const size_t i : columns) rows.push_back(static_cast<int64_t>(tuple[i].address()));
  }
  const int64_t count = std::ssize(programs);
  std::lock_guard lock(prepared.mutex);
  KILN_TRY(Tensor of_programs, prepared.programs.of(device, std::move(programs)));
  KILN_TRY(Tensor of_rows, prepared.rows.of(device, std::move(rows)));
  std::vector<std::optional<Arg>> args = {Arg(std::move(of_programs)), Arg(std::move(of_rows))};
  for (const fusion::Argument& a : planned.arguments) {
    const Tensor* shared = shared_tensor(prepared, walk, a);
    args.emplace_back(shared ? Arg(shared) : number_argument(a, &walk));
  }
  return prepared.kernel.launch({count, 1, 1}, args, launch_options(planned.options, false));
}

}  // namespace

Result<bool> run_each_into(std::span<const ExprStore> stores, std::span<const std::vector<Tensor>> tuples) {
  if (stores.empty() || tuples.empty()) return false;
  std::vector<const ExprNode*> roots;
  std::vector<Tensor> homes;
  for (const ExprStore& s : stores) {
    if (!s.value || !s.to || !s.value.node()->is_pending()) return false;
    roots.push_back(s.value.node());
    homes.push_back(s.to);
  }
  const std::vector<Tensor>& first = tuples[0];
  const Device& device = roots[0]->device;
  if (!std::ranges::all_of(tuples, [&](const auto& tuple) { return is_alike(tuple, first); })) return false;
  const ExprWalk walk(roots);
  if (has_scatters(walk)) return false;
  KILN_CHECK_OK(check_leaves(walk));
  KILN_TRY(const std::shared_ptr<MultiTensorPlan> prepared, plan_of(walk, device));
  if (!prepared->planned) return false;
  const auto columns = tensors_of_columns(*prepared, walk, homes, first);
  if (!columns) return false;
  std::vector<size_t> written;
  for (const Tensor& home : homes) written.push_back(static_cast<size_t>(position_of(home, first)));
  if (!are_apart(tuples, written)) return false;
  for (const fusion::Argument& a : prepared->planned->arguments)
    if (const Tensor* shared = shared_tensor(*prepared, walk, a))
      for (const std::vector<Tensor>& tuple : tuples)
        for (const size_t i : written)
          if (tuple[i].storage() == shared->storage()) return false;
  KILN_CHECK_OK(launch(*prepared, walk, tuples, *columns, device));
  for (size_t i = 0; i < stores.size(); ++i) stores[i].value.node()->set_value(homes[i]);
  return true;
}

}  // namespace kiln
