#include "kiln/expr_program.h"

#include <algorithm>

#include "kiln/interop.h"
#include "runtime/expr/plan.h"
#include "runtime/jit/at_once.h"
#include "runtime/launch/prepared_launch.h"
#include "support/diag.h"

namespace kiln {
namespace runtime {

struct ProgramImpl {
  /// Where the memory of a plan's value comes from.
  struct Origin {
    enum class Kind : uint8_t { kInput, kBuffer, kWorkspace } kind = Kind::kInput;
    int index = 0;      // of the input or the buffer
    int64_t start = 0;  // in the workspace
  };
  /// A slot that gets an address at each launch.
  struct Patch {
    int slot = 0, value = 0;
    int64_t offset = 0;  // bytes
  };
  struct Step {
    PreparedLaunch launch;
    std::vector<Patch> patches;
  };

  Device device;
  std::shared_ptr<const PreparedPlan> plan;
  std::vector<Origin> origins;  // per value of the plan
  std::vector<int64_t> buffer_bytes;
  std::vector<ExprProgram::Output> outputs;
  int64_t workspace = 0;
  /// Parts of the workspace that each launch sets to 0 first: what programs of a kernel tell each other there counts
  /// launches otherwise, and the memory is the caller's, another one each time.
  struct Zeros {
    int64_t start = 0, bytes = 0;
  };
  std::vector<Zeros> zeros;
  size_t inputs = 0;
  std::vector<Step> steps;
};

namespace {

using Origin = ProgramImpl::Origin;

/// Of parts of the workspace: what the widest loads and TMA want.
constexpr int64_t kSlotAlignment = 128;

/// The input that is each leaf of the walk.
Result<std::vector<int>> inputs_of_leaves(const ExprWalk& walk, std::span<const Expr> inputs) {
  std::vector<int> found;
  for (const ExprNode* leaf : walk.leaves) {
    auto is_leaf = [&](const Expr& e) { return e.node() == leaf; };
    const auto at = std::ranges::find_if(inputs, is_leaf);
    if (at == inputs.end()) return error(ErrorKind::kValue, "a tensor of the expressions is not among the inputs");
    if (std::find_if(at + 1, inputs.end(), is_leaf) != inputs.end())
      return error(ErrorKind::kValue, "an input is given twice");
    found.push_back(static_cast<int>(at - inputs.begin()));
  }
  return found;
}

/// A tensor to specialise kernels for, which nobody reads or writes.
Result<Tensor> stand_in(const Device& device, const fusion::Value& value, int64_t bytes) {
  // Aligned to more than the 16 bytes that callers promise for theirs, so kernels are compiled for aligned addresses.
  constexpr uint64_t kNobodysAddress = uint64_t{1} << 40;
  return tensor_from_memory(device, value.dtype, value.shape, value.strides, {kNobodysAddress, bytes});
}

/// Where so many bytes more begin in the workspace.
int64_t reserved(ProgramImpl& out, int64_t bytes) {
  const int64_t start = out.workspace;
  out.workspace += (bytes + kSlotAlignment - 1) / kSlotAlignment * kSlotAlignment;
  return start;
}

/// The values' memory: inputs are bound as they are, the rest as tensors that stand for the caller's.
Result<std::vector<Tensor>> place_values(const ExprWalk& walk, std::span<const int> input_of_leaf, ProgramImpl& out) {
  std::vector<int64_t> slot_starts;
  for (int64_t bytes : out.plan->slot_bytes) slot_starts.push_back(reserved(out, bytes));
  std::vector<Tensor> values;
  for (const fusion::Value& v : out.plan->plan.values) {
    Origin origin;
    if (v.input >= 0) {
      const auto leaf = static_cast<size_t>(out.plan->leaf_of_node[static_cast<size_t>(v.input)]);
      origin.index = input_of_leaf[leaf];
      values.push_back(walk.leaves[leaf]->value);
    } else {
      KILN_TRY(Tensor t, stand_in(out.device, v, v.bytes()));
      values.push_back(std::move(t));
      if (v.zeros) {
        origin.kind = Origin::Kind::kWorkspace;
        origin.start = reserved(out, v.bytes());
        out.zeros.push_back({origin.start, v.bytes()});
      } else if (!v.output && v.slot >= 0) {
        origin.kind = Origin::Kind::kWorkspace;
        origin.start = slot_starts[static_cast<size_t>(v.slot)];
      } else {
        origin.kind = Origin::Kind::kBuffer;
        origin.index = static_cast<int>(out.buffer_bytes.size());
        out.buffer_bytes.push_back(v.bytes());
      }
    }
    out.origins.push_back(origin);
  }
  return values;
}

/// The inputs that a value may be written over: what reads them is over then, or reads in step.
std::vector<int> may_overwrite(const ProgramImpl& p, int written) {
  const fusion::Plan& plan = p.plan->plan;
  const fusion::Value& to = plan.values[static_cast<size_t>(written)];
  std::vector<int> inputs;
  for (size_t i = 0; i < plan.values.size(); ++i) {
    const fusion::Value& from = plan.values[i];
    if (from.input < 0 || from.dtype != to.dtype || fusion::numel(from.shape) != fusion::numel(to.shape) ||
        from.strides != fusion::row_major(from.shape) || to.strides != fusion::row_major(to.shape))
      continue;
    if (fusion::is_read_in_time(plan, static_cast<int>(i), written, true)) inputs.push_back(p.origins[i].index);
  }
  return inputs;
}

Status place_outputs(ProgramImpl& out) {
  for (const fusion::View& view : out.plan->plan.outputs) {
    const Origin& origin = out.origins[static_cast<size_t>(view.value)];
    if (origin.kind == Origin::Kind::kInput)
      return error(ErrorKind::kValue, "output {} is a view of an input: there is nothing to compute",
                   out.outputs.size());
    const fusion::Value& value = out.plan->plan.values[static_cast<size_t>(view.value)];
    out.outputs.push_back(
        {origin.index, value.dtype, view.shape, view.strides, view.offset, may_overwrite(out, view.value)});
  }
  return {};
}

Result<ProgramImpl::Step> prepare_step(const BoundStep& bound, const fusion::Group& group) {
  ProgramImpl::Step step;
  KILN_TRY(step.launch, prepare_launch(bound.kernel, bound.grid, bound.args, bound.options));
  for (size_t i = 0; i < group.arguments.size(); ++i)
    if (const auto* t = std::get_if<fusion::TensorArg>(&group.arguments[i].value)) {
      const auto* tensor = std::get_if<const Tensor*>(&*bound.args[i]);
      step.patches.push_back({step.launch.slot_of_param[i], t->value, t->offset * size_of((*tensor)->dtype())});
    }
  return step;
}

Status prepare_steps(const Binding& binding, ProgramImpl& out) {
  out.steps.resize(binding.steps.size());
  return at_once(out.steps.size(), [&](size_t i) -> Status {
    KILN_TRY(out.steps[i], prepare_step(binding.steps[i], out.plan->plan.groups[i]));
    return {};
  });
}

}  // namespace
}  // namespace runtime

using namespace runtime;

Result<ExprProgram> ExprProgram::make(std::span<const Expr> inputs, std::span<const Expr> outputs,
                                      ExprVariant variant) {
  if (outputs.empty()) return error(ErrorKind::kValue, "a program needs an output");
  if (product_impl(variant))
    return error(ErrorKind::kUnsupported, "a program has kernels of Kiln's alone, no product of {}", name(variant));
  std::vector<const ExprNode*> roots;
  for (const Expr& e : outputs) {
    if (!e || e.is_scalar()) return error(ErrorKind::kValue, "only an expression with a tensor in it can be run");
    roots.push_back(e.node());
  }
  for (const Expr& e : inputs)
    if (!e || !e.tensor()) return error(ErrorKind::kValue, "an input of a program is a tensor");
  const ExprWalk walk(roots);
  KILN_CHECK_OK(check_leaves(walk));
  for (const ExprNode* n : walk.order)
    if (fusion::numel(n->node.shape) == 0)
      return error(ErrorKind::kUnsupported, "{} of a tensor without elements has no kernel", name(n->node.op));
  auto impl = std::make_shared<ProgramImpl>();
  impl->device = outputs[0].device();
  impl->inputs = inputs.size();
  KILN_TRY(std::vector<int> input_of_leaf, inputs_of_leaves(walk, inputs));
  KILN_TRY(impl->plan, cached_plan(walk, impl->device, variant, false));
  KILN_TRY(std::vector<Tensor> values, place_values(walk, input_of_leaf, *impl));
  KILN_CHECK_OK(place_outputs(*impl));
  KILN_TRY(Binding binding, bind_values(impl->plan, std::move(values), &walk));
  KILN_CHECK_OK(prepare_steps(binding, *impl));
  ExprProgram program;
  program.impl_ = std::move(impl);
  return program;
}

std::span<const int64_t> ExprProgram::buffer_bytes() const { return impl_->buffer_bytes; }
std::span<const ExprProgram::Output> ExprProgram::outputs() const { return impl_->outputs; }
int64_t ExprProgram::workspace_bytes() const { return impl_->workspace; }
const Device& ExprProgram::device() const { return impl_->device; }
int ExprProgram::kernels() const { return static_cast<int>(impl_->steps.size()); }
ExprPlan ExprProgram::plan() const { return describe_plan(impl_->plan->plan); }

Status ExprProgram::launch(std::span<const uint64_t> inputs, std::span<const uint64_t> buffers, uint64_t workspace,
                           const Stream& stream) const {
  const ProgramImpl& p = *impl_;
  if (inputs.size() != p.inputs || buffers.size() != p.buffer_bytes.size())
    return error(ErrorKind::kValue, "a program got {} inputs and {} buffers, and has {} and {}", inputs.size(),
                 buffers.size(), p.inputs, p.buffer_bytes.size());
  StreamImpl& queue = p.device.impl()->stream_or_current(stream);
  if (&queue.backend() != &p.device.impl()->backend())
    return error(ErrorKind::kDevice, "the stream belongs to another device than the program, which is on {}",
                 p.device.name());
  auto address = [&](int value) {
    const Origin& origin = p.origins[static_cast<size_t>(value)];
    switch (origin.kind) {
      case Origin::Kind::kInput:
        return inputs[static_cast<size_t>(origin.index)];
      case Origin::Kind::kBuffer:
        return buffers[static_cast<size_t>(origin.index)];
      case Origin::Kind::kWorkspace:
        break;
    }
    return workspace + static_cast<uint64_t>(origin.start);
  };
  for (const ProgramImpl::Zeros& z : p.zeros)
    KILN_CHECK_OK(queue.backend().fill(workspace + static_cast<uint64_t>(z.start), 0, 1, z.bytes, queue));
  // On the stack, so that a launch of usual size allocates nothing.
  constexpr size_t kInline = 96;
  uint64_t few[kInline];
  std::vector<uint64_t> many;
  for (const ProgramImpl::Step& step : p.steps) {
    const std::vector<uint64_t>& prepared = step.launch.slots;
    if (prepared.size() > kInline) many.resize(prepared.size());
    uint64_t* slots = prepared.size() > kInline ? many.data() : few;
    std::ranges::copy(prepared, slots);
    for (const ProgramImpl::Patch& patch : step.patches)
      slots[patch.slot] = address(patch.value) + static_cast<uint64_t>(patch.offset);
    KILN_CHECK_OK(step.launch.launch(slots, queue));
  }
  return {};
}

}  // namespace kiln
