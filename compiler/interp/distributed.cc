#include "compiler/interp/distributed.h"

#include <algorithm>

#include "compiler/interp/eval.h"
#include "compiler/interp/machine.h"

namespace kiln::interp {

using ir::AttrName;
using ir::Op;
using ir::OpKind;
using ir::Value;

namespace {

/// Steps that a warp takes in one turn, at most.
constexpr uint32_t kLongestTurn = 6;

}  // namespace

Machine::Machine(const ir::Module& module, std::array<int32_t, 3> grid, const Memory& memory,
                 const DistributedOptions& options)
    : module_(module),
      code_(flatten(module)),
      axis_(module),
      memory_(memory),
      options_(options),
      grid_(grid),
      random_(options.seed) {
  int barriers = 0;
  for (size_t i = 0; i < code_.steps.size(); ++i)
    if (code_.steps[i].kind == StepKind::kBarrier && barriers++ == options.drop_barrier) dropped_ = i;
}

Status Machine::run_program(std::array<int32_t, 3> id, std::span<const uint64_t> args) {
  program_ = id;
  shared_ = SharedMemory(module_.shared_bytes);
  stored_.clear();
  warps_.assign(static_cast<size_t>(module_.num_warps), {});
  const auto& params = module_.body()->args;
  for (size_t w = 0; w < warps_.size(); ++w) {
    warps_[w].number = static_cast<int>(w);
    for (size_t i = 0; i < params.size(); ++i)
      warps_[w].of(params[i]).assign(1, args[i] & element_mask(params[i]->type.element_bits()));
  }
  KILN_CHECK_OK(schedule());
  return check_stores();
}
Status Machine::schedule() {
  for (;;) {
    std::vector<Warp*> ready;
    for (Warp& w : warps_)
      if (!w.waits && !w.ended) ready.push_back(&w);
    if (ready.empty()) {
      if (std::all_of(warps_.begin(), warps_.end(), [](const Warp& w) { return w.ended; })) return {};
      KILN_CHECK_OK(release());
      continue;
    }
    Warp& warp = *ready[random_() % ready.size()];
    for (uint64_t turn = 1 + random_() % kLongestTurn; turn > 0 && !warp.waits && !warp.ended; --turn)
      KILN_CHECK_OK(step(warp));
  }
}

Status Machine::release() {
  const Warp* first = nullptr;
  std::string elsewhere;
  for (const Warp& w : warps_) {
    if (w.ended)
      elsewhere += fmt::format("; warp {} has ended", w.number);
    else if (!first)
      first = &w;
    else if (w.at != first->at)
      elsewhere += fmt::format("; warp {} waits in: {}", w.number, ir::print(*code_.steps[w.at].op));
  }
  const Op* op = code_.steps[first->at].op;
  if (!elsewhere.empty())
    return fail(op, ErrorKind::kInternal, "deadlock: warp {} waits at a barrier where others never come{}",
                first->number, elsewhere);
  shared_.barrier();
  for (Warp& w : warps_) w.waits = false, ++w.at;
  return {};
}

Status Machine::step(Warp& warp) {
  const WarpStep& s = code_.steps[warp.at];
  if (++warp.steps > options_.step_limit)
    return fail(s.op, ErrorKind::kLaunch, "no end after {} steps: an endless loop", options_.step_limit);
  size_t next = warp.at + 1;
  switch (s.kind) {
    case StepKind::kOp:
      KILN_CHECK_OK(execute(warp, *s.op));
      break;
    case StepKind::kBarrier:
      if (warp.at == dropped_ && (options_.drop_in_warp < 0 || options_.drop_in_warp == warp.number)) break;
      warp.waits = true;
      return {};
    case StepKind::kReduceOwn:
      reduce_own(warp, *s.op);
      break;
    case StepKind::kWrite:
      KILN_CHECK_OK(write_shared(warp, *s.op, s.part));
      break;
    case StepKind::kRead:
      KILN_CHECK_OK(read_shared(warp, *s.op, s.part));
      break;
    case StepKind::kScanBegin:
      warp.partial.clear();
      for (const Value* v : s.op->operands) warp.partial.push_back(warp.of(v));
      give_partial(warp, *s.op);
      break;
    case StepKind::kScanOwn:
      scan_own(warp, *s.op, scan_plan(*s.op).steps[static_cast<size_t>(s.part)]);
      break;
    case StepKind::kForBegin:
      warp.induction[s.op] = bound(warp, *s.op, 0);
      if (bound(warp, *s.op, 2) <= 0) return fail(s.op, ErrorKind::kLaunch, "a loop step that is not positive");
      for (size_t i = 3; i < s.op->operands.size(); ++i)
        warp.of(s.op->region()->args[i - 2]) = warp.of(s.op->operands[i]);
      break;
    case StepKind::kForTest: {
      const __int128 iv = warp.induction[s.op];
      if (iv >= bound(warp, *s.op, 1)) next = static_cast<size_t>(s.target);
      warp.of(s.op->region()->args[0])
          .assign(1, static_cast<uint64_t>(iv) & element_mask(s.op->operand(0)->type.element_bits()));
      break;
    }
    case StepKind::kForNext:
      pass(warp, *s.op->region()->terminator(), 0, std::span(s.op->region()->args).subspan(1));
      warp.induction[s.op] += bound(warp, *s.op, 2);
      break;
    case StepKind::kForEnd:
      for (size_t i = 0; i < s.op->results.size(); ++i)
        warp.of(s.op->results[i]) = warp.of(s.op->region()->args[i + 1]);
      break;
    case StepKind::kPass:
      pass(warp, *s.op, s.op->kind == OpKind::kCondition ? 1 : 0, s.to ? s.to->args : s.op->parent->parent->results);
      break;
    case StepKind::kBranch:
      if (!warp.of(s.op->operand(0))[0]) next = static_cast<size_t>(s.target);
      break;
    case StepKind::kJump:
      next = static_cast<size_t>(s.target);
      break;
    case StepKind::kEnd:
      warp.ended = true;
      return {};
  }
  warp.at = next;
  return {};
}

__int128 Machine::bound(Warp& warp, const Op& op, int i) {
  const DType dtype = op.operand(i)->type.dtype;
  const uint64_t bits = warp.of(op.operand(i))[0];
  return is_signed(dtype) ? static_cast<__int128>(int_value(dtype, bits)) : static_cast<__int128>(bits);
}

void Machine::pass(Warp& warp, const Op& from, size_t first, std::span<Value* const> to) {
  Tuple copies;
  for (size_t i = first; i < from.operands.size(); ++i) copies.push_back(warp.of(from.operands[i]));
  for (size_t i = 0; i < copies.size(); ++i) warp.of(to[i]) = std::move(copies[i]);
}

Status run_distributed(const ir::Module& module, std::array<int32_t, 3> grid, std::span<const uint64_t> args,
                       const Memory& memory, const DistributedOptions& options) {
  if (module.stage != ir::Stage::kDistributed)
    return error(ErrorKind::kUnsupported, "@{} is in the tile stage; interp::run runs that", module.name);
  if (args.size() != module.body()->args.size())
    return error(ErrorKind::kType, "@{} takes {} arguments, got {}", module.name, module.body()->args.size(),
                 args.size());
  std::vector<std::array<int32_t, 3>> programs;
  for (int32_t z = 0; z < grid[2]; ++z)
    for (int32_t y = 0; y < grid[1]; ++y)
      for (int32_t x = 0; x < grid[0]; ++x) programs.push_back({x, y, z});
  std::shuffle(programs.begin(), programs.end(), std::mt19937_64(options.seed));
  Machine machine(module, grid, memory, options);
  for (const auto& id : programs) KILN_CHECK_OK(machine.run_program(id, args));
  return {};
}

}  // namespace kiln::interp
