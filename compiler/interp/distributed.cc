#include "compiler/interp/distributed.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <random>
#include <unordered_map>

#include "compiler/analysis/axis_info.h"
#include "compiler/analysis/layout_ops.h"
#include "compiler/interp/element.h"
#include "compiler/interp/eval.h"
#include "compiler/interp/shared_memory.h"
#include "compiler/interp/warp_code.h"
#include "compiler/layout/algebra.h"
#include "support/diag.h"

namespace kiln::interp {

using ir::AttrName;
using ir::Op;
using ir::OpKind;
using ir::Value;
using layout::In;
using layout::LinearLayout;

namespace {

constexpr size_t kLanes = 32;
/// Steps that a warp takes in one turn, at most.
constexpr uint32_t kLongestTurn = 6;

/// A warp's share of a tile: element reg * 32 + lane. A scalar is one element: the same in every thread.
using Elements = std::vector<uint64_t>;
using Tuple = std::vector<Elements>;

size_t share_of(const ir::Type& t) {
  return t.is_scalar() ? 1 : static_cast<size_t>(t.layout->num_registers()) * kLanes;
}

int bytes_of(const ir::Type& t) { return t.pointer ? 8 : size_of(t.dtype); }

struct Warp {
  int number = 0;
  size_t at = 0;  // the next step
  bool waits = false, ended = false;
  int64_t steps = 0;
  std::unordered_map<const Value*, Elements> values;
  std::unordered_map<const Op*, __int128> induction;
  std::unordered_map<const Op*, int64_t> stores;  // how often this warp came by each store
  Tuple partial;                                  // of the reduce or scan that is under way

  Elements& of(const Value* v) { return values[v]; }
};

/// One program at a time.
class Machine {
 public:
  Machine(const ir::Module& module, std::array<int32_t, 3> grid, const Memory& memory,
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

  Status run_program(std::array<int32_t, 3> id, std::span<const uint64_t> args) {
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

 private:
  template <class... Args>
  Diagnostic fail(const Op* op, ErrorKind kind, fmt::format_string<Args...> f, Args&&... args) const {
    Diagnostic d =
        error_at(op ? op->range : SourceRange{}, kind, "{} in program ({}, {}, {}), seed {}",
                 fmt::format(f, std::forward<Args>(args)...), program_[0], program_[1], program_[2], options_.seed);
    return op && kind == ErrorKind::kInternal ? with_note(std::move(d), "in: " + ir::print(*op)) : d;
  }

  // --- scheduling

  Status schedule() {
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

  /// Every warp that has not ended waits: at one barrier all of them, or never again.
  Status release() {
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

  Status step(Warp& warp) {
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

  __int128 bound(Warp& warp, const Op& op, int i) {
    const DType dtype = op.operand(i)->type.dtype;
    const uint64_t bits = warp.of(op.operand(i))[0];
    return is_signed(dtype) ? static_cast<__int128>(int_value(dtype, bits)) : static_cast<__int128>(bits);
  }

  void pass(Warp& warp, const Op& from, size_t first, std::span<Value* const> to) {
    Tuple copies;
    for (size_t i = first; i < from.operands.size(); ++i) copies.push_back(warp.of(from.operands[i]));
    for (size_t i = 0; i < copies.size(); ++i) warp.of(to[i]) = std::move(copies[i]);
  }

  // --- ops that need no other warp

  Status execute(Warp& warp, const Op& op) {
    if (has_scalar_meaning(op.kind)) {
      elementwise(warp, op, share_of(op.result()->type));
      return {};
    }
    switch (op.kind) {
      case OpKind::kConstant:
        fill(warp, op, constant_bits(op));
        return {};
      case OpKind::kProgramId:
        fill(warp, op, static_cast<uint32_t>(program_[static_cast<size_t>(op.int_attr(AttrName::kAxis))]));
        return {};
      case OpKind::kNumPrograms:
        fill(warp, op, static_cast<uint32_t>(grid_[static_cast<size_t>(op.int_attr(AttrName::kAxis))]));
        return {};
      case OpKind::kSplat:
        fill(warp, op, warp.of(op.operand(0))[0]);
        return {};
      case OpKind::kArange: {
        Elements& out = warp.of(op.result());
        out.resize(share_of(op.result()->type));
        for (size_t i = 0; i < out.size(); ++i)
          out[i] = static_cast<uint32_t>(op.int_attr(AttrName::kStart) + element(warp, op.result()->type, i));
        return {};
      }
      case OpKind::kExpandDims:
      case OpKind::kReshape:
      case OpKind::kBroadcast:
      case OpKind::kTrans:
      case OpKind::kJoin:
      case OpKind::kSplit:
        take_registers(warp, op);
        return {};
      case OpKind::kConvertLayout:
        convert_own(warp, op);
        return {};
      case OpKind::kLoad:
        return load(warp, op);
      case OpKind::kStore:
        return store(warp, op);
      case OpKind::kAtomicRmw:
      case OpKind::kAtomicCas:
        return atomic(warp, op);
      case OpKind::kPrint:
        return print_values(warp, op);
      case OpKind::kAssert:
        return check_assert(warp, op);
      case OpKind::kAssume:
        return {};
      default:
        KILN_UNREACHABLE("{} in the distributed interpreter", ir::info(op.kind).mnemonic);
    }
  }

  void fill(Warp& warp, const Op& op, uint64_t bits) { warp.of(op.result()).assign(share_of(op.result()->type), bits); }

  /// Number of the tile's element that a warp's element i is.
  static int64_t element(const Warp& warp, const ir::Type& type, size_t i) {
    if (type.is_scalar()) return 0;
    return static_cast<int64_t>(layout::index_at(*type.layout, static_cast<uint32_t>(i / kLanes),
                                                 static_cast<uint32_t>(i % kLanes),
                                                 static_cast<uint32_t>(warp.number)));
  }

  /// Of several threads and registers that hold an element, one acts; of a scalar, the first thread.
  static bool acts(const Warp& warp, const ir::Type& type, const layout::FreeBits& free, size_t i) {
    if (type.is_scalar()) return warp.number == 0;
    return !(i / kLanes & free.reg) && !(i % kLanes & free.lane) && !(static_cast<uint32_t>(warp.number) & free.warp);
  }
  static layout::FreeBits free_bits(const ir::Type& type) {
    return type.is_scalar() ? layout::FreeBits{} : layout::free_variables(*type.layout);
  }

  void elementwise(Warp& warp, const Op& op, size_t n) {
    const uint64_t* in[3] = {};
    for (size_t i = 0; i < op.operands.size(); ++i) in[i] = warp.of(op.operands[i]).data();
    Elements& out = warp.of(op.result());
    out.resize(n);
    eval_lanes(op, std::span<const uint64_t* const>(in, op.operands.size()), static_cast<int64_t>(n), out.data());
  }

  void take_registers(Warp& warp, const Op& op) {
    for (size_t r = 0; r < op.results.size(); ++r) {
      auto sources = analysis::source_registers(op, static_cast<int>(r));
      KILN_ASSERT(!sources.empty(), "{}", ir::print(op));
      Elements out;
      for (const analysis::OperandRegister& s : sources) {
        const Elements& in = warp.of(op.operand(s.operand));
        auto begin = in.begin() + static_cast<std::ptrdiff_t>(static_cast<size_t>(s.reg) * kLanes);
        out.insert(out.end(), begin, begin + kLanes);
      }
      warp.of(op.results[r]) = std::move(out);
    }
  }

  void convert_own(Warp& warp, const Op& op) {
    const auto& plan = std::get<layout::ConvertPlan>(code_.plans.at(&op));
    const Elements& in = warp.of(op.operand(0));
    Elements out(share_of(op.result()->type));
    uint32_t w = static_cast<uint32_t>(warp.number);
    for (size_t i = 0; i < out.size(); ++i) {
      uint32_t r = static_cast<uint32_t>(i / kLanes), l = static_cast<uint32_t>(i % kLanes), from = l;
      if (plan.kind == layout::ConvertKind::kShuffle) {
        uint32_t slot = plan.take.apply(r, l, w);
        from = plan.ask.apply(slot, l, w);
        r = plan.send.apply(slot, from, w);
      } else {
        r = plan.source.apply(r, l, w);
      }
      out[i] = in[r * kLanes + from];
    }
    warp.of(op.result()) = std::move(out);
  }

  // --- memory

  /// What a lowering makes of axis info: registers that one access moves have neighbouring, aligned addresses and one
  /// mask.
  Status check_vectors(Warp& warp, const Op& op) {
    const size_t width = static_cast<size_t>(axis_.vector_width(&op));
    if (width == 1) return {};
    const ir::Type& type = op.operand(0)->type;
    const Elements& pointers = warp.of(op.operand(0));
    const Value* mask = analysis::mask_of(&op);
    const uint64_t size = static_cast<uint64_t>(size_of(type.dtype));
    auto on = [&](size_t i) { return !mask || warp.of(mask)[i]; };
    for (size_t i = 0; i < pointers.size(); ++i) {
      const size_t r = i / kLanes, first = r / width * width * kLanes + i % kLanes;
      const bool neighbours =
          pointers[i] == pointers[first] + (r % width) * size && pointers[first] % (width * size) == 0;
      if (on(i) != on(first) || (on(i) && !neighbours))
        return fail(&op, ErrorKind::kInternal,
                    "axis info promises {} elements at a time, and element {} is not one of them", width,
                    index_text(type.shape, element(warp, type, i)));
    }
    return {};
  }

  Status load(Warp& warp, const Op& op) {
    KILN_CHECK_OK(check_vectors(warp, op));
    const Elements& pointers = warp.of(op.operand(0));
    const Elements* mask = op.operands.size() > 1 ? &warp.of(op.operand(1)) : nullptr;
    const Elements* other = op.operands.size() > 2 ? &warp.of(op.operand(2)) : nullptr;
    Elements out(pointers.size());
    for (size_t i = 0; i < pointers.size(); ++i) {
      if (mask && !(*mask)[i]) {
        out[i] = other ? (*other)[i] : 0;
        continue;
      }
      if (std::string wrong = access_fault(op, memory_, pointers[i], element(warp, op.operand(0)->type, i));
          !wrong.empty())
        return fail(&op, ErrorKind::kLaunch, "{}", wrong);
      out[i] = Memory::read(pointers[i], op.result()->type.dtype);
    }
    warp.of(op.result()) = std::move(out);
    return {};
  }

  Status store(Warp& warp, const Op& op) {
    KILN_CHECK_OK(check_vectors(warp, op));
    const ir::Type& type = op.operand(0)->type;
    const Elements &pointers = warp.of(op.operand(0)), &value = warp.of(op.operand(1));
    const Elements* mask = op.operands.size() > 2 ? &warp.of(op.operand(2)) : nullptr;
    const layout::FreeBits free = free_bits(type);
    std::vector<bool>& written = stored_[{&op, warp.stores[&op]++}];
    written.resize(static_cast<size_t>(type.shape.numel()));
    for (size_t i = 0; i < pointers.size(); ++i) {
      if (!acts(warp, type, free, i)) continue;
      int64_t e = element(warp, type, i);
      if (written[static_cast<size_t>(e)])
        return fail(&op, ErrorKind::kInternal, "element {} is stored twice, by warp {} lane {} the second time",
                    index_text(type.shape, e), warp.number, i % kLanes);
      written[static_cast<size_t>(e)] = true;
      if (mask && !(*mask)[i]) continue;
      if (std::string wrong = access_fault(op, memory_, pointers[i], e); !wrong.empty())
        return fail(&op, ErrorKind::kLaunch, "{}", wrong);
      Memory::write(pointers[i], op.operand(1)->type.dtype, value[i]);
    }
    return {};
  }

  Status check_stores() const {
    for (const auto& [store, written] : stored_) {
      auto missing = std::find(written.begin(), written.end(), false);
      if (missing != written.end())
        return fail(store.first, ErrorKind::kInternal, "nobody stores element {}",
                    index_text(store.first->operand(0)->type.shape, missing - written.begin()));
    }
    return {};
  }

  Status atomic(Warp& warp, const Op& op) {
    const ir::Type& type = op.operand(0)->type;
    const layout::FreeBits free = free_bits(type);
    const bool cas = op.kind == OpKind::kAtomicCas;
    const Elements &pointers = warp.of(op.operand(0)), &first = warp.of(op.operand(1));
    const Elements* mask = !cas && op.operands.size() > 2 ? &warp.of(op.operand(2)) : nullptr;
    Elements out(pointers.size());
    const ir::Type& result = op.result()->type;
    Elements& got = atomics_[&op];
    got.resize(static_cast<size_t>(type.shape.numel()));
    for (size_t i = 0; i < pointers.size(); ++i) {
      if (!acts(warp, type, free, i)) continue;
      got[static_cast<size_t>(element(warp, type, i))] = 0;
      if (mask && !(*mask)[i]) continue;
      if (std::string wrong = access_fault(op, memory_, pointers[i], element(warp, type, i)); !wrong.empty())
        return fail(&op, ErrorKind::kLaunch, "{}", wrong);
      out[i] = Memory::read(pointers[i], result.dtype);
      got[static_cast<size_t>(element(warp, type, i))] = out[i];
      uint64_t next = cas ? (out[i] == first[i] ? warp.of(op.operand(2))[i] : out[i])
                          : combine_rmw(op.text_attr(AttrName::kRmw), result, out[i], first[i]);
      Memory::write(pointers[i], result.dtype, next);
    }
    warp.of(op.result()) = std::move(out);
    return {};
  }

  // --- reductions and scans

  const layout::ReducePlan& reduce_plan(const Op& op) const {
    return std::get<layout::ReducePlan>(code_.plans.at(&op));
  }
  const layout::ScanPlan& scan_plan(const Op& op) const { return std::get<layout::ScanPlan>(code_.plans.at(&op)); }

  /// As in the tile interpreter: the region's scalars hold n elements each; both branches of an `if` are pure.
  void combine_block(Warp& warp, const ir::Block& b, size_t n) {
    for (const Op* op : b) {
      if (op->kind == OpKind::kConstant) {
        warp.of(op->result()).assign(n, constant_bits(*op));
      } else if (op->kind == OpKind::kIf) {
        combine_block(warp, *op->region(0), n);
        combine_block(warp, *op->region(1), n);
        const Elements condition = warp.of(op->operand(0));
        for (size_t r = 0; r < op->results.size(); ++r) {
          const Elements yes = warp.of(op->region(0)->terminator()->operands[r]);
          const Elements no = warp.of(op->region(1)->terminator()->operands[r]);
          Elements& out = warp.of(op->results[r]);
          out.resize(n);
          for (size_t i = 0; i < n; ++i) out[i] = condition[i] ? yes[i] : no[i];
        }
      } else if (!ir::is_terminator(op)) {
        elementwise(warp, *op, n);
      }
    }
  }

  Tuple combine(Warp& warp, const Op& op, const Tuple& a, const Tuple& b) {
    const ir::Block& region = *op.region();
    for (size_t i = 0; i < a.size(); ++i) {
      warp.of(region.args[i]) = a[i];
      warp.of(region.args[a.size() + i]) = b[i];
    }
    combine_block(warp, region, a[0].size());
    Tuple out;
    for (const Value* v : region.terminator()->operands) out.push_back(warp.of(v));
    return out;
  }

  static Tuple from_lane(const Tuple& t, uint32_t mask) {
    Tuple r = t;
    for (size_t k = 0; k < t.size(); ++k)
      for (size_t i = 0; i < t[k].size(); ++i) r[k][i] = t[k][i ^ mask];
    return r;
  }

  void reduce_own(Warp& warp, const Op& op) {
    const layout::ReducePlan& plan = reduce_plan(op);
    Tuple partial(op.operands.size());
    for (size_t i = 0; i < plan.registers.size(); ++i) {
      auto registers = [&](size_t k) {
        Tuple r;
        for (const Value* v : op.operands) {
          auto begin =
              warp.of(v).begin() + static_cast<std::ptrdiff_t>(static_cast<size_t>(plan.registers[i][k]) * kLanes);
          r.emplace_back(begin, begin + kLanes);
        }
        return r;
      };
      Tuple sum = registers(0);
      for (size_t k = 1; k < plan.registers[i].size(); ++k) sum = combine(warp, op, sum, registers(k));
      for (size_t t = 0; t < sum.size(); ++t) partial[t].insert(partial[t].end(), sum[t].begin(), sum[t].end());
    }
    for (uint32_t mask : plan.lane_masks) partial = combine(warp, op, partial, from_lane(partial, mask));
    warp.partial = std::move(partial);
    if (!plan.crosses_warps) give_partial(warp, op);
  }

  /// A scalar result is in every lane; the first speaks for the warp.
  void give_partial(Warp& warp, const Op& op) {
    for (size_t t = 0; t < op.results.size(); ++t) {
      warp.of(op.results[t]) = warp.partial[t];
      if (op.results[t]->type.is_scalar()) warp.of(op.results[t]).resize(1);
    }
  }

  void scan_own(Warp& warp, const Op& op, const layout::ScanStep& s) {
    Tuple source = warp.partial;
    for (size_t t = 0; t < source.size(); ++t)
      for (size_t i = 0; i < source[t].size(); ++i) {
        size_t r = (i / kLanes & ~size_t{s.sources.reg_mask}) | s.sources.reg_value;
        size_t l = (i % kLanes & ~size_t{s.sources.lane_mask}) | s.sources.lane_value;
        source[t][i] = warp.partial[t][r * kLanes + l];
      }
    take_scanned(warp, op, s, source);
  }

  void take_scanned(Warp& warp, const Op& op, const layout::ScanStep& s, const Tuple& source) {
    Tuple sum = combine(warp, op, source, warp.partial);
    for (size_t t = 0; t < sum.size(); ++t)
      for (size_t i = 0; i < sum[t].size(); ++i)
        if (s.active.has(static_cast<uint32_t>(i / kLanes), static_cast<uint32_t>(i % kLanes),
                         static_cast<uint32_t>(warp.number)))
          warp.partial[t][i] = sum[t][i];
    give_partial(warp, op);
  }

  // --- through shared memory

  std::vector<int64_t> shares(const Op& op, int64_t elements) const {
    std::vector<int> bytes;
    for (const Value* v : op.operands) bytes.push_back(bytes_of(v->type));
    std::vector<int64_t> r = layout::scratch_shares(elements, bytes);
    for (int64_t& at : r) at += op.int_attr(AttrName::kSharedOffset);
    return r;
  }

  Status put(Warp& warp, const Op& op, size_t lane, int64_t at, int bytes, uint64_t bits) {
    std::string wrong = shared_.write({&op, warp.number, static_cast<int>(lane)}, at, bytes, bits);
    if (!wrong.empty()) return fail(&op, ErrorKind::kInternal, "{}", wrong);
    return {};
  }
  Status get(Warp& warp, const Op& op, size_t lane, int64_t at, int bytes, uint64_t& bits) {
    std::string wrong = shared_.read({&op, warp.number, static_cast<int>(lane)}, at, bytes, bits);
    if (!wrong.empty()) return fail(&op, ErrorKind::kInternal, "{}", wrong);
    return {};
  }

  Status write_shared(Warp& warp, const Op& op, int part) {
    const uint32_t w = static_cast<uint32_t>(warp.number);
    if (op.kind == OpKind::kConvertLayout) {
      const auto& access = std::get<layout::ConvertPlan>(code_.plans.at(&op)).write;
      if (w & access.warp_mask) return {};
      const Elements& in = warp.of(op.operand(0));
      const int bytes = bytes_of(op.operand(0)->type);
      for (uint32_t l = 0; l < kLanes; ++l) {
        if (l & access.lane_mask) continue;
        for (const auto& group : access.groups)
          for (size_t k = 0; k < group.size(); ++k) {
            int64_t at = access.offset.apply(static_cast<uint32_t>(group[0]), l, w) + static_cast<int64_t>(k);
            KILN_CHECK_OK(put(warp, op, l, op.int_attr(AttrName::kSharedOffset) + at * bytes, bytes,
                              in[static_cast<size_t>(group[k]) * kLanes + l]));
          }
      }
      return {};
    }
    const bool reduce = op.kind == OpKind::kReduce;
    std::vector<int64_t> base = shares(op, reduce ? reduce_plan(op).scratch_elements : scan_plan(op).scratch_elements);
    for (size_t t = 0; t < op.operands.size(); ++t) {
      const int bytes = bytes_of(op.operands[t]->type);
      for (size_t i = 0; i < warp.partial[t].size(); ++i) {
        const uint32_t r = static_cast<uint32_t>(i / kLanes), l = static_cast<uint32_t>(i % kLanes);
        int64_t at = 0;
        if (reduce) {
          const layout::ReducePlan& plan = reduce_plan(op);
          if ((l & plan.write_lane_mask) || (w & plan.write_warp_mask)) continue;
          at = plan.write.apply(r, l, w);
        } else {
          const layout::ScanStep& s = scan_plan(op).steps[static_cast<size_t>(part)];
          if (!s.writers.has(r, l, w)) continue;
          at = s.first_element + s.offset.apply(r, l, w);
        }
        KILN_CHECK_OK(put(warp, op, l, base[t] + at * bytes, bytes, warp.partial[t][i]));
      }
    }
    return {};
  }

  Status read_shared(Warp& warp, const Op& op, int part) {
    if (op.kind == OpKind::kConvertLayout) return read_converted(warp, op);
    if (op.kind == OpKind::kReduce) return read_reduced(warp, op);
    if (op.kind != OpKind::kScan) {  // an atomic, which one thread per element performed
      Elements& out = warp.of(op.result());
      for (size_t i = 0; i < out.size(); ++i)
        out[i] = atomics_[&op][static_cast<size_t>(element(warp, op.result()->type, i))];
      return {};
    }
    const layout::ScanStep& s = scan_plan(op).steps[static_cast<size_t>(part)];
    std::vector<int64_t> base = shares(op, scan_plan(op).scratch_elements);
    const uint32_t w = static_cast<uint32_t>(warp.number);
    Tuple source = warp.partial;
    for (size_t t = 0; t < source.size(); ++t) {
      const int bytes = bytes_of(op.operands[t]->type);
      for (size_t i = 0; i < source[t].size(); ++i) {
        const uint32_t r = static_cast<uint32_t>(i / kLanes), l = static_cast<uint32_t>(i % kLanes);
        if (!s.active.has(r, l, w)) continue;
        KILN_CHECK_OK(
            get(warp, op, l, base[t] + (s.first_element + s.offset.apply(r, l, w)) * bytes, bytes, source[t][i]));
      }
    }
    take_scanned(warp, op, s, source);
    return {};
  }

  Status read_converted(Warp& warp, const Op& op) {
    const auto& plan = std::get<layout::ConvertPlan>(code_.plans.at(&op));
    const int bytes = bytes_of(op.operand(0)->type);
    Elements out(share_of(op.result()->type));
    for (uint32_t l = 0; l < kLanes; ++l)
      for (const auto& group : plan.read.groups)
        for (size_t k = 0; k < group.size(); ++k) {
          int64_t at = plan.read.offset.apply(static_cast<uint32_t>(group[0]), l, static_cast<uint32_t>(warp.number)) +
                       static_cast<int64_t>(k);
          KILN_CHECK_OK(get(warp, op, l, op.int_attr(AttrName::kSharedOffset) + at * bytes, bytes,
                            out[static_cast<size_t>(group[k]) * kLanes + l]));
        }
    for (size_t r = 0; r < plan.copy_of.size(); ++r)
      for (size_t l = 0; l < kLanes; ++l) out[r * kLanes + l] = out[static_cast<size_t>(plan.copy_of[r]) * kLanes + l];
    warp.of(op.result()) = std::move(out);
    return {};
  }

  Status read_reduced(Warp& warp, const Op& op) {
    const layout::ReducePlan& plan = reduce_plan(op);
    std::vector<int64_t> base = shares(op, plan.scratch_elements);
    Tuple sum;
    for (size_t k = 0; k < plan.serial.size(); ++k) {
      Tuple next = warp.partial;
      for (size_t t = 0; t < next.size(); ++t) {
        const int bytes = bytes_of(op.operands[t]->type);
        for (size_t i = 0; i < next[t].size(); ++i) {
          const uint32_t l = static_cast<uint32_t>(i % kLanes);
          int64_t at = plan.read.apply(static_cast<uint32_t>(i / kLanes), l, static_cast<uint32_t>(warp.number)) ^
                       plan.serial[k];
          KILN_CHECK_OK(get(warp, op, l, base[t] + at * bytes, bytes, next[t][i]));
        }
      }
      sum = k == 0 ? std::move(next) : combine(warp, op, sum, next);
    }
    for (uint32_t mask : plan.shared_lane_masks) sum = combine(warp, op, sum, from_lane(sum, mask));
    warp.partial = std::move(sum);
    give_partial(warp, op);
    return {};
  }

  // --- effects

  Status print_values(Warp& warp, const Op& op) {
    const std::string program = fmt::format("pid ({}, {}, {})", program_[0], program_[1], program_[2]);
    const std::string& text = op.text_attr(AttrName::kText);
    auto emit = [&](const std::string& line) {
      if (options_.on_print)
        options_.on_print(line);
      else
        std::fputs((line + "\n").c_str(), stdout);
    };
    if (op.operands.empty() && warp.number == 0) emit(fmt::format("{} {}", program, text));
    for (size_t k = 0; k < op.operands.size(); ++k) {
      const ir::Type& type = op.operands[k]->type;
      const Elements& elements = warp.of(op.operands[k]);
      const layout::FreeBits free = free_bits(type);
      for (size_t i = 0; i < elements.size(); ++i)
        if (acts(warp, type, free, i))
          emit(fmt::format("{} idx {} {}{}{}", program,
                           type.is_tile() ? index_text(type.shape, element(warp, type, i)) : "()", text,
                           op.operands.size() > 1 ? fmt::format("(operand {}) ", k) : "",
                           element_text(type, elements[i], op.flag(AttrName::kHex))));
    }
    return {};
  }

  Status check_assert(Warp& warp, const Op& op) {
    const ir::Type& type = op.operand(0)->type;
    const Elements& condition = warp.of(op.operand(0));
    const Elements* mask = op.operands.size() > 1 ? &warp.of(op.operand(1)) : nullptr;
    for (size_t i = 0; i < condition.size(); ++i)
      if (!condition[i] && (!mask || (*mask)[i]))
        return fail(&op, ErrorKind::kMismatch, "assertion failed: {}{}", op.text_attr(AttrName::kText),
                    type.is_tile() ? " at element " + index_text(type.shape, element(warp, type, i)) : "");
    return {};
  }

  const ir::Module& module_;
  WarpCode code_;
  analysis::AxisAnalysis axis_;
  const Memory& memory_;
  const DistributedOptions& options_;
  std::array<int32_t, 3> grid_, program_{};
  std::mt19937_64 random_;
  size_t dropped_ = ~size_t{0};
  SharedMemory shared_{0};
  std::vector<Warp> warps_;
  std::unordered_map<const Op*, Elements> atomics_;                    // per element, what the last round got
  std::map<std::pair<const Op*, int64_t>, std::vector<bool>> stored_;  // which elements each store has done
};

}  // namespace

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
