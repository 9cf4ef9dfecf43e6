#include "compiler/interp/machine/distributed.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/interp/eval.h"
#include "compiler/interp/machine/machine.h"

namespace kiln::interp {

using ir::Op;
using ir::OpKind;
using ir::Value;

namespace {

/// Steps that a warp takes in one turn, at most.
constexpr uint32_t kLongestTurn = 6;
/// In the program where they are slowest, asynchronous engines get one of so many turns.
constexpr uint64_t kMostReluctant = 24;

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
  place_handles();
}

Status Machine::run_program(std::array<int32_t, 3> id, std::span<const uint64_t> args) {
  program_ = id;
  const auto blocks = static_cast<size_t>(agents_.blocks);
  shared_.assign(blocks, SharedMemory(shared_bytes_));
  mbarriers_.assign(blocks, {});
  reached_.assign(blocks, {});
  ended_.assign(blocks, false);
  transfers_.clear();
  bulk_stored_.clear();
  stored_.clear();
  whole_.assign(blocks, Knowledge(agents_.count()));
  reluctance_ = 1 + random_() % kMostReluctant;
  warps_.clear();
  warps_.reserve(static_cast<size_t>(agents_.warps()));  // what a warp knows is pointed to
  const auto& params = module_.body()->args;
  for (size_t block = 0; block < blocks; ++block)
    for (int w = 0; w < module_.num_warps; ++w) {
      Warp& warp = warps_.emplace_back();
      warp.number = w;
      warp.block = block;
      warp.id = agents_.warp_of(block, w);
      warp.knows = whole_[block];
      advance(warp);
      for (size_t i = 0; i < params.size(); ++i)
        warp.of(params[i]).assign(1, args[i] & element_mask(params[i]->type.element_bits()));
    }
  KILN_CHECK_OK(schedule());
  KILN_CHECK_OK(check_end());
  return check_stores();
}

bool Machine::can_step(const Warp& w) const {
  return !w.waits && !w.ended && (!w.awaits || w.awaits->passed(w.parity));
}

Diagnostic Machine::in_program(const Op* op, Diagnostic d) const {
  d.message += fmt::format(" in program ({}, {}, {}), seed {}", program_[0], program_[1], program_[2], options_.seed);
  return op && d.kind == ErrorKind::kInternal ? with_note(std::move(d), "in: " + ir::print(*op)) : d;
}

Status Machine::schedule() {
  for (;;) {
    std::vector<Warp*> ready;
    for (Warp& w : warps_)
      if (can_step(w)) ready.push_back(&w);
    if (!transfers_.empty() && (ready.empty() || random_() % reluctance_ == 0)) {
      KILN_CHECK_OK(perform_any());
      continue;
    }
    if (ready.empty()) {
      if (std::all_of(warps_.begin(), warps_.end(), [](const Warp& w) { return w.ended; })) return {};
      if (!release()) return deadlock();
      continue;
    }
    Warp& warp = *ready[random_() % ready.size()];
    for (uint64_t turn = 1 + random_() % kLongestTurn; turn > 0 && can_step(warp); --turn) KILN_CHECK_OK(step(warp));
  }
}

bool Machine::release() {
  bool any = release_cluster();
  for (size_t block = 0; block < shared_.size(); ++block) any = release_block(block) || any;
  return any;
}

bool Machine::release_block(size_t block) {
  const auto count = static_cast<size_t>(module_.num_warps);
  const std::span<Warp> own(warps_.data() + block * count, count);
  bool any = false;
  for (size_t first = 0, step; first < own.size(); first += step) {
    step = 1;
    if (!own[first].waits) continue;
    const Op& op = *code_.steps[own[first].at].op;
    if (op.kind == OpKind::kClusterBarrier) continue;
    const auto joined = static_cast<size_t>(ir::joined_warps(op, module_.num_warps));
    if (first % joined) continue;
    const std::span<Warp> group = own.subspan(first, joined);
    if (!std::all_of(group.begin(), group.end(), [&](const Warp& w) { return w.waits && w.at == group[0].at; }))
      continue;
    std::vector<Warp*> all;
    for (Warp& w : group) all.push_back(&w);
    pass_barrier(all);
    if (joined == own.size()) whole_[block] = group[0].knows;
    for (Warp& w : group) advance(w);
    step = joined;
    any = true;
  }
  return any;
}

bool Machine::release_cluster() {
  const size_t count = static_cast<size_t>(module_.num_warps) * shared_.size();
  std::vector<Warp*> all;
  for (size_t i = 0; i < count; ++i) {
    if (!warps_[i].waits || warps_[i].at != warps_[0].at) return false;
    all.push_back(&warps_[i]);
  }
  if (code_.steps[warps_[0].at].op->kind != OpKind::kClusterBarrier) return false;
  pass_barrier(all);
  for (Knowledge& whole : whole_) whole = warps_[0].knows;
  for (Warp* w : all) advance(*w);
  return true;
}

void Machine::pass_barrier(std::span<Warp* const> warps) {
  Knowledge all(agents_.count());
  for (const Warp* w : warps) all.join(w->knows);
  all.synced = all.seen;
  for (Warp* w : warps) {
    w->waits = false, ++w->at;
    w->knows = all;
  }
}

Status Machine::deadlock() const {
  const Op* op = nullptr;
  std::string text;
  for (const Warp& w : warps_) {
    if (!text.empty()) text += "; ";
    const std::string name = agents_.name_warp(w.id);
    if (w.ended) {
      text += name + " has ended";
      continue;
    }
    const Op* at = code_.steps[w.at].op;
    if (!op) op = at;
    if (w.awaits)
      text += fmt::format("{} waits for parity {} of an mbarrier where {}, in: {}", name, w.parity,
                          w.awaits->describe(), ir::print(*at));
    else
      text += fmt::format("{} waits at a barrier where others never come, in: {}", name, ir::print(*at));
  }
  return fail(op, ErrorKind::kInternal, "deadlock: {}", text);
}

void Machine::sync_lanes(Warp& warp) { warp.knows.synced = warp.knows.seen; }

void Machine::start_role(Warp& from, const WarpStep& step) {
  Warp thread;
  thread.number = module_.num_warps + step.part - 1;
  thread.block = from.block;
  thread.id = agents_.warp_of(from.block, thread.number);
  if (std::any_of(warps_.begin(), warps_.end(), [&](const Warp& w) { return w.id == thread.id; }))
    return;  // another warp came by first
  thread.at = static_cast<size_t>(step.target);
  thread.knows = whole_[from.block];
  for (const auto& [value, elements] : from.values)
    if (!value->type.is_tile()) thread.values.emplace(value, elements);
  advance(thread);
  warps_.push_back(std::move(thread));
}

Status Machine::end_block(size_t block) {
  Knowledge all(agents_.count());
  for (const Warp& w : warps_) {
    if (w.block != block) continue;
    if (!w.ended) return {};
    all.join(w.knows);
  }
  ended_[block] = true;
  for (const auto& [agent, last] : reached_[block])
    if (all.seen[agent] <= last.epoch)
      return fail(last.op, ErrorKind::kInternal, "block {} may end before {} reaches into it: nothing orders the two",
                  block, agents_.name(agent, kWholeWarp));
  return {};
}

Status Machine::check_end() {
  while (!transfers_.empty()) KILN_CHECK_OK(perform_any());
  std::vector<Knowledge> all(shared_.size(), Knowledge(agents_.count()));
  for (const Warp& w : warps_) {
    all[w.block].join(w.knows);
    if (w.products > w.knows.seen[agents_.of(w.id, Engine::kProducts)])
      return fail(nullptr, ErrorKind::kInternal, "{} ends before a wgmma that it started", agents_.name_warp(w.id));
    if (w.bulk_stores > w.knows.seen[agents_.of(w.id, Engine::kStores)])
      return fail(nullptr, ErrorKind::kInternal, "{} ends while its tma_store may read shared memory",
                  agents_.name_warp(w.id));
  }
  for (size_t block = 0; block < shared_.size(); ++block)
    for (const auto& [at, barrier] : mbarriers_[block])
      if (barrier.loads_started() > all[block].seen[barrier.loads()])
        return fail(barrier.init().op, ErrorKind::kInternal,
                    "the program ends, and nobody waited for a tma_load in phase {} of the mbarrier at byte {}",
                    barrier.loads_started() - 1, at);
  return {};
}

Status Machine::step(Warp& warp) {
  const WarpStep& s = code_.steps[warp.at];
  if (++warp.steps > options_.step_limit)
    return fail(s.op, ErrorKind::kLaunch, "no end after {} steps: an endless loop", options_.step_limit);
  size_t next = warp.at + 1;
  switch (s.kind) {
    case StepKind::kOp:
      KILN_CHECK_OK(check_in_flight(warp, *s.op));
      KILN_CHECK_OK(execute(warp, *s.op));
      break;
    case StepKind::kBarrier:
      if (warp.at == dropped_ && (options_.drop_in_warp < 0 || options_.drop_in_warp == warp.number)) break;
      if (is_alone(warp)) break;
      warp.waits = true;
      return {};
    case StepKind::kReduceOwn:
      KILN_CHECK_OK(check_in_flight(warp, *s.op));
      reduce_own(warp, *s.op);
      break;
    case StepKind::kWrite:
      if (s.op->kind == OpKind::kConvertLayout) KILN_CHECK_OK(check_in_flight(warp, *s.op));
      KILN_CHECK_OK(write_shared(warp, *s.op, s.part));
      break;
    case StepKind::kRead:
      KILN_CHECK_OK(read_shared(warp, *s.op, s.part));
      break;
    case StepKind::kScanBegin:
      KILN_CHECK_OK(check_in_flight(warp, *s.op));
      warp.partial.clear();
      warp.prefix.clear();
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
        give(warp, s.op->region()->args[i - 2], take(warp, s.op->operands[i]));
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
        give(warp, s.op->results[i], take(warp, s.op->region()->args[i + 1]));
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
    case StepKind::kSpecialize:
      start_role(warp, s);
      break;
    case StepKind::kMbarrierWait: {
      auto passed = mbarrier_wait(warp, *s.op);
      KILN_CHECK_OK(passed);
      if (!*passed) return {};
      break;
    }
    case StepKind::kEnd:
      warp.ended = true;
      return end_block(warp.block);
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
  std::vector<Moved> values;
  for (size_t i = first; i < from.operands.size(); ++i) values.push_back(take(warp, from.operands[i]));
  for (size_t i = 0; i < values.size(); ++i) give(warp, to[i], std::move(values[i]));
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
