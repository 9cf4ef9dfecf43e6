#include "compiler/passes/hopper/recognize_blocks.h"

#include <algorithm>
#include <array>
#include <limits>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "compiler/analysis/affine.h"
#include "compiler/analysis/axis_info.h"
#include "compiler/analysis/pointer_origins.h"
#include "compiler/analysis/tensor_map.h"
#include "compiler/ir/builder.h"
#include "compiler/passes/hopper/select_block_loads.h"
#include "compiler/passes/hopper/select_wgmma.h"
#include "compiler/passes/util/rewrite.h"
#include "compiler/target/occupancy.h"
#include "support/tensor_map.h"

namespace kiln::passes {

using analysis::AffineTile;
using analysis::IndexBound;
using analysis::Polynomial;
using ir::AttrName;
using ir::Op;
using ir::OpKind;
using ir::Value;

namespace {

constexpr int kRows = 0, kColumns = 1;
constexpr int64_t kWidestLoad = 16;  // bytes
/// Bytes of operands that a thread loads at once: half of its registers, which no sum takes yet.
constexpr int64_t kMostOfOneTrip = 512;
constexpr int64_t kMostBlock = 4096;  // elements that a program or an iteration goes on by
/// The size of a dimension that no mask bounds: what lies beyond the tensor is read all the same, as asked.
constexpr int64_t kUnbounded = std::numeric_limits<int32_t>::max();

/// A 2-D access as a block of a strided tensor. `outer` is the dimension with the stride, 1 - outer is contiguous.
struct BlockAccess {
  Op* op = nullptr;
  const Value* base = nullptr;
  int outer = kRows;
  Polynomial stride;
  std::array<Polynomial, 2> starts, sizes;  // by dimension of the tile
  std::array<bool, 2> wraps{};
  /// Further dimensions of the tensor, in which the block is at one place: batches, heads.
  struct Batch {
    Polynomial stride, start;
  };
  std::vector<Batch> batches;
};

class Recognizer {
 public:
  Recognizer(ir::Module& module, const target::Target& target, Remarks* remarks)
      : module_(module), target_(target), remarks_(remarks), axis_(module), b_(module) {
    number(*module.body());
    waits_ = waiting_loops(module);
  }

  void run() {
    std::vector<Op*> dots, stores;
    ir::walk(module_.body(), [&](Op* op) {
      if (op->kind == OpKind::kDot) dots.push_back(op);
      if (op->kind == OpKind::kStore) stores.push_back(op);
    });
    // What is stored may be a block wherever warp groups multiply, also what is staged for them.
    std::erase_if(dots, [&](Op* dot) { return !fits_group(*dot); });
    if (dots.empty()) return;
    if (is_one_trip(dots)) {
      for (const Op* dot : dots) remark(remarks_, dot->range, Reason::kOneTrip);
      dots.clear();
    }
    std::erase_if(dots, [&](Op* dot) { return !recognize(dot); });
    for (Op* store : stores)
      if (auto access = block_access(store);
          access && writes_once(store, stores) && access->outer == kRows && is_bounded(*access) &&
          fills_units(access->sizes[kColumns], size_of(store->operand(0)->type.dtype)) && !is_told(*store))
        rewrite(*access);
    if (!dots.empty()) recognize_beside(dots);
  }

 private:
  /// The loads of what meets the sums of these dots, as far as shared memory has room for the tiles.
  void recognize_beside(const std::vector<Op*>& dots) {
    std::vector<Op*> loads;
    ir::walk(module_.body(), [&](Op* op) {
      if (op->kind == OpKind::kLoad) loads.push_back(op);
    });
    if (loads.empty()) return;
    LoadsBesideProducts beside(module_, dots, target_);
    for (Op* load : loads)
      if (auto access = block_access(load); access && access->outer == kRows && !access->wraps[kRows] &&
                                            !access->wraps[kColumns] &&
                                            beside.take(*load) == LoadsBesideProducts::kTaken)
        rewrite(*access);
  }

  bool fits_group(const Op& dot) const {
    return fitting_group(dot, module_.num_warps, target_) || fitting_group(dot, module_.num_warps, target_, true);
  }

  /// Whether the warps have what these dots multiply as soon as TMA would bring it, without tensor maps and barriers to
  /// wait at: no loop is around them, so that a producer has nothing to run ahead of, and all their loads are under way
  /// at once, ahead of the first of them.
  bool is_one_trip(const std::vector<Op*>& dots) {
    std::vector<const Op*> loads;
    for (const Op* dot : dots) {
      if (is_in_loop(dot->parent) || module_.num_ctas > 1 || !multiplies_without_tma(*dot)) return false;
      for (int side : {0, 1})
        if (const Op* load = load_of(dot->operand(side)); load && std::ranges::find(loads, load) == loads.end())
          loads.push_back(load);
    }
    if (loads.empty()) return false;
    int64_t bytes = 0;
    for (const Op* load : loads) {
      if (load->kind != OpKind::kLoad || is_in_loop(load->parent) || !loads_widely(*load)) return false;
      bytes += load->result()->type.shape.numel() * size_of(load->result()->type.dtype);
    }
    bool waits = false;
    ir::walk(module_.body(), [&](const Op* op) {
      waits |=
          op->kind == OpKind::kDot && std::ranges::any_of(loads, [&](auto* load) { return may_follow(*load, *op); });
    });
    return !waits && bytes <= kMostOfOneTrip * module_.num_warps * target::kWarpSize && has_room_to_stage(dots);
  }

  bool loads_widely(const Op& load) const {
    const Value *pointers = load.operand(0), *mask = analysis::mask_of(&load);
    const int along = axis_.order_of(pointers)[0];
    int64_t width = axis_.alignment_width(pointers, mask, along);
    if (mask) width = std::min(width, axis_.of(mask).constancy[static_cast<size_t>(along)]);
    return width * size_of(pointers->type.dtype) >= kWidestLoad;
  }

  /// Where only the transposed product fits wgmma, mma.sync of so few rows is as good: one trip waits for memory.
  bool multiplies_without_tma(const Op& dot) const {
    if (fitting_group(dot, module_.num_warps, target_)) return operands_to_stage(dot, axis_, target_) > 0;
    return target::find_mma(target_, dot.operand(0)->type.dtype, dot.operand(1)->type.dtype, dot.result()->type.dtype);
  }

  bool has_room_to_stage(const std::vector<Op*>& dots) const {
    std::unordered_set<const Value*> operands;
    int64_t bytes = 0;
    for (const Op* dot : dots)
      for (int side : {0, 1})
        if (const ir::Type& t = dot->operand(side)->type; operands.insert(dot->operand(side)).second)
          bytes += t.shape.numel() * size_of(t.dtype);
    return bytes <= room_to_stage(target_);
  }

  bool recognize(Op* dot) {
    std::vector<BlockAccess> found;
    for (int side : {0, 1}) {
      const Value* operand = dot->operand(side);
      if (block_operand(operand).load) continue;
      // Rows of a and columns of b are the dimensions that the product keeps.
      int kept = side;
      while (operand->op && operand->op->kind == OpKind::kTrans) {
        operand = operand->op->operand(0);
        kept = 1 - kept;
      }
      if (side == 0 && is_made_of_product(operand, recognized_)) continue;  // it will be in registers
      if (!operand->op || operand->op->kind != OpKind::kLoad || !only_feeds_dots(operand))
        return refuse_computed(*dot, side, operand);
      if (const Op* wait = wait_before(*operand->op, waits_))
        return refuse(*dot, side, because(Reason::kBehindWait, place_of(wait->range).line));
      auto access = block_access(operand->op);
      if (!access) return refuse(*dot, side, why_);
      if (access->wraps[static_cast<size_t>(1 - kept)]) return refuse(*dot, side, because(Reason::kWrapsAlongK));
      if (access->wraps[static_cast<size_t>(kept)]) {
        const auto d = static_cast<size_t>(kept);
        if (!left_out_by_stores(dot->result(), side, access->starts[d], access->sizes[d]))
          return refuse(*dot, side, because(Reason::kWrapsIntoResult));
      }
      // A tile times its own transpose is one block.
      if (found.empty() || found[0].op != access->op) found.push_back(std::move(*access));
    }
    for (const BlockAccess& access : found) rewrite(access);
    recognized_.insert(dot);
    return true;
  }

  bool refuse(const Op& dot, int side, const Cause& cause) {
    if (remarks_) remarks_->add(cause, dot.range, dot_operand(dot, side));
    return false;
  }
  /// Of an operand that is no load for this dot alone.
  bool refuse_computed(const Op& dot, int side, const Value* operand) {
    // What select_wgmma looks at itself: a block that others read too, or a block beside what is computed.
    const bool is_told_later = (operand->op && operand->op->kind == OpKind::kDescriptorLoad) ||
                               (block_operand(dot.operand(1 - side)).load &&
                                (side == 0 || target::lies_either_way(target_, operand->type.dtype)));
    if (is_told_later) return false;
    if (operand->op && operand->op->kind == OpKind::kLoad)
      return refuse(dot, side, because(Reason::kOperandUsedElsewhere));
    const std::string_view by = operand->op ? ir::info(operand->op->kind).mnemonic : "the loop around it";
    return refuse(dot, side, because(Reason::kOperandComputed, by));
  }

  template <class... T>
  std::nullopt_t no(Reason reason, const T&... values) {
    why_ = because(reason, values...);
    return std::nullopt;
  }

  /// Whether no element is stored a second time, as far as can be told: TMA would not keep the order of the two.
  static bool writes_once(const Op* store, const std::vector<Op*>& stores) {
    const auto origins = analysis::pointer_origins(store->operand(0));
    for (const Op* other : stores)
      if (other != store && origins.meets(analysis::pointer_origins(other->operand(0)))) return false;
    const Op* loop = store->parent->parent;
    while (loop && loop->kind == OpKind::kIf) loop = loop->parent->parent;
    return !loop || depends_on(store->operand(0), *loop);
  }
  /// Whether the kernel may tell other programs that the tensor is there, or read it again itself. A copy by TMA may
  /// not have ended then: it is waited for at the end.
  bool is_told(const Op& store) {
    std::vector<const Op*> told, barriers, readers;
    const auto origins = analysis::pointer_origins(store.operand(0));
    ir::walk(module_.body(), [&](const Op* op) {
      const auto sem = op->find_word<ir::Sem>();
      if (op->kind == OpKind::kAsmEffect || (sem && *sem != ir::Sem::kRelaxed && *sem != ir::Sem::kAcquire))
        told.push_back(op);
      if (op->kind == OpKind::kBarrier) barriers.push_back(op);
      const bool is_flag = op->kind == OpKind::kStore && !op->operand(0)->type.is_tile();
      if (is_flag || (op->kind == OpKind::kLoad && origins.meets(analysis::pointer_origins(op->operand(0)))))
        readers.push_back(op);
    });
    // Behind a barrier all threads see the tensor, and may say so by an ordinary store.
    for (const Op* barrier : barriers)
      if (std::ranges::any_of(readers, [&](const Op* op) { return may_follow(*op, *barrier); }))
        told.push_back(barrier);
    const auto found = std::ranges::find_if(told, [&](const Op* op) { return may_follow(*op, store); });
    if (found == told.end()) return false;
    if (remarks_)
      remarks_->add(because(Reason::kStoreIsTold, ir::info((*found)->kind).mnemonic, place_of((*found)->range).line),
                    store.range);
    return true;
  }
  /// Whether the value is computed inside of the loop, from what changes in it.
  static bool depends_on(const Value* value, const Op& loop) {
    std::unordered_set<const Value*> seen;
    std::vector<const Value*> work = {value};
    while (!work.empty()) {
      const Value* v = work.back();
      work.pop_back();
      if (!seen.insert(v).second) continue;
      if (v->block && encloses(&loop, v->block)) return true;
      if (v->op && encloses(&loop, v->op->parent))
        work.insert(work.end(), v->op->operands.begin(), v->op->operands.end());
    }
    return false;
  }

  /// The access as a block whose tensor has a tensor map.
  std::optional<BlockAccess> block_access(Op* op) {
    const bool is_load = op->kind == OpKind::kLoad;
    const Value* pointers = op->operand(0);
    if (pointers->type.shape.rank != 2) return std::nullopt;
    if (op->flag(AttrName::kVolatile)) return no(Reason::kOperandVolatile);
    if (is_load && op->operands.size() == 3 && constant_of_splat(op->operand(2)) != 0u)
      return no(Reason::kOperandFilled);
    const std::optional<AffineTile> tile = analysis::affine_tile(pointers);
    if (!tile) return no(Reason::kGathered);
    if (!tile->base || tile->base->op || tile->base->block->parent) return no(Reason::kBaseVaries);
    if (axis_.of(tile->base).divisibility[0] % kTensorMapAlignment != 0)
      return no(Reason::kBaseUnaligned, kTensorMapAlignment);

    BlockAccess out;
    out.op = op;
    out.base = tile->base;
    if (tile->steps[kColumns] == Polynomial(1))
      out.outer = kRows;
    else if (tile->steps[kRows] == Polynomial(1))
      out.outer = kColumns;
    else
      return no(Reason::kNotContiguous);
    const auto outer = static_cast<size_t>(out.outer), inner = 1 - outer;
    out.stride = tile->steps[outer];
    const int element = size_of(pointers->type.dtype);
    if (out.stride == Polynomial(1) || out.stride.is_zero()) return no(Reason::kNotContiguous);
    if (!from_parameters(out.stride)) return no(Reason::kStrideVaries);
    if (!fills_units(out.stride, element)) return no(Reason::kStrideUnaligned, kTensorMapAlignment);
    std::tie(out.starts[outer], out.starts[inner]) = tile->start.divide(out.stride);
    take_batches(out, out.starts[inner], element);
    if (!take_bounds(out, *tile)) return std::nullopt;
    return out;
  }

  /// Takes what a start has of strides of its own, such as `batch * stride_batch`, as dimensions of the tensor. What it
  /// cannot take stays in the start.
  void take_batches(BlockAccess& out, Polynomial& start, int element) const {
    Polynomial rest;
    std::vector<BlockAccess::Batch> found;
    for (const auto& [factors, number] : start.terms()) {
      Polynomial stride(number), index(1);
      for (const Value* v : factors)
        (is_parameter(v) ? stride : index) = (is_parameter(v) ? stride : index) * Polynomial(v);
      const bool is_far = !stride.constant() || *stride.constant() > kMostBlock;
      if (number > 0 && is_far && !index.constant() && from_parameters(stride) && fills_units(stride, element) &&
          is_non_negative(index) && fits_coordinate(index)) {
        auto at = std::ranges::find(found, stride, &BlockAccess::Batch::stride);
        if (at == found.end())
          found.push_back({stride, index});
        else
          at->start += index;
      } else {
        rest += term_of(factors, number);
      }
    }
    if (found.empty() || found.size() + 2 > kTensorMapDims) return;
    // In the order of the text: that of the polynomial is the order of addresses.
    std::ranges::sort(found, {}, [&](const BlockAccess::Batch& b) { return first_number(b.start); });
    out.batches = std::move(found);
    start = std::move(rest);
  }
  static bool is_parameter(const Value* v) { return !v->op && !v->block->parent; }
  static Polynomial term_of(const Polynomial::Product& factors, int64_t number) {
    Polynomial term(number);
    for (const Value* v : factors) term = term * Polynomial(v);
    return term;
  }
  size_t first_number(const Polynomial& p) const {
    size_t first = std::numeric_limits<size_t>::max();
    for (const auto& [factors, number] : p.terms())
      for (const Value* v : factors) first = std::min(first, numbers_.at(v));
    return first;
  }

  bool take_bounds(BlockAccess& out, const AffineTile& tile) {
    const Value* mask = analysis::mask_of(out.op);
    std::vector<IndexBound> bounds;
    why_ = because(Reason::kMaskIsNoBound);
    if (mask) {
      auto found = analysis::index_bounds(mask);
      if (!found) return false;
      bounds = std::move(*found);
    }
    std::array<bool, 2> bounded{};
    auto bound = [&](size_t d, const Polynomial& size) {
      if (bounded[d] && out.sizes[d] != size) return false;
      bounded[d] = true;
      out.sizes[d] = size;
      if (from_parameters(size)) return true;
      why_ = because(Reason::kBoundVaries);
      return false;
    };
    for (const IndexBound& b : bounds) {
      const auto d = static_cast<size_t>(b.dim);
      if (b.bound ? !bound(d, *b.bound - b.start + out.starts[d]) : b.start != out.starts[d]) return false;
    }
    for (size_t d = 0; d < 2; ++d) {
      if (tile.wraps[d]) {
        out.wraps[d] = !bounded[d];
        if (!bound(d, *tile.wraps[d])) return false;
      }
      if (bounded[d]) continue;
      if (!is_non_negative(out.starts[d])) {
        why_ = because(Reason::kMayBeNegative, d);
        return false;
      }
      if (has_wide_offsets(out.op->operand(0)) && !fits_coordinate(out.starts[d])) {
        why_ = because(Reason::kMayBeLarge, d);
        return false;
      }
      out.sizes[d] = Polynomial(kUnbounded);
    }
    return true;
  }

  static bool is_bounded(const BlockAccess& access) {
    return std::none_of(access.sizes.begin(), access.sizes.end(),
                        [](const Polynomial& size) { return size == Polynomial(kUnbounded); });
  }

  /// Known when the kernel is launched, and small enough for a tensor map.
  static bool from_parameters(const Polynomial& p) {
    for (const auto& [factors, number] : p.terms())
      for (const Value* v : factors)
        if (v->op || v->block->parent || v->type.element_bits() > 32) return false;
    return true;
  }

  bool fills_units(const Polynomial& elements, int element_bytes) const {
    return divisor(elements) * element_bytes % kTensorMapAlignment == 0;
  }

  /// A power of two that divides it.
  int64_t divisor(const Polynomial& p) const {
    int64_t all = int64_t{1} << 30;
    for (const auto& [factors, number] : p.terms()) {
      int64_t of_term = number & -number;
      for (const Value* v : factors) of_term *= axis_.of(v).divisibility[0] & -axis_.of(v).divisibility[0];
      all = std::min(all, of_term);
    }
    return all;
  }

  bool is_non_negative(const Polynomial& p) const {
    for (const auto& [factors, number] : p.terms()) {
      if (number < 0) return false;
      for (const Value* v : factors)
        if (!axis_.of(v).non_negative) return false;
    }
    return true;
  }

  /// Whether an address is computed with numbers of 64 bits. Those of 32 bits are assumed not to overflow.
  static bool has_wide_offsets(const Value* pointers) {
    std::unordered_set<const Value*> seen;
    std::vector<const Value*> work = {pointers};
    while (!work.empty()) {
      const Value* v = work.back();
      work.pop_back();
      if (!v->type.pointer || !seen.insert(v).second) continue;
      if (v->block && v->block->parent && v->block->parent->kind == OpKind::kFor) {
        const Op* loop = v->block->parent;
        work.insert(work.end(), {loop->operands[v->index + 2], loop->region()->terminator()->operands[v->index - 1]});
      }
      if (!v->op) continue;
      if (v->op->kind == OpKind::kAddPtr && v->op->operand(1)->type.element_bits() > 32 &&
          !constant_of(v->op->operand(1)))
        return true;
      work.insert(work.end(), v->op->operands.begin(), v->op->operands.end());
    }
    return false;
  }

  /// Whether a start surely is a number of 32 bits, which is what TMA takes: its terms are, or they are blocks that
  /// programs or iterations count.
  static bool fits_coordinate(const Polynomial& start) {
    constexpr double kMost = 2147483647.0;
    auto range = [](const Value* v) {
      // Quotients and remainders of numbers of 32 bits stay such.
      while (v->op && (v->op->kind == OpKind::kCast || v->op->kind == OpKind::kHint || v->op->kind == OpKind::kDiv ||
                       v->op->kind == OpKind::kRem))
        v = v->op->operand(0);
      const bool is_short = v->op && v->op->kind == OpKind::kProgramId && v->op->int_attr(AttrName::kAxis) != 0;
      return is_short ? 65535.0 : v->type.is_int() && v->type.element_bits() <= 32 ? kMost : 9.3e18;
    };
    return std::ranges::all_of(start.terms(), [&](const auto& term) {
      const auto& [factors, number] = term;
      if (factors.size() == 1 && std::abs(number) <= kMostBlock && range(factors[0]) <= kMost) return true;
      double most = std::abs(static_cast<double>(number));
      for (const Value* v : factors) most *= range(v);
      return most <= kMost;
    });
  }

  static std::optional<uint64_t> constant_of_splat(const Value* v) {
    if (v->op && v->op->kind == OpKind::kSplat) v = v->op->operand(0);
    return constant_of(v);
  }

  /// Whether what lies at start + i ≥ size of dimension `dim` of `v` reaches no memory: it goes element by element into
  /// stores alone, whose masks leave it out.
  static bool left_out_by_stores(const Value* v, int dim, const Polynomial& start, const Polynomial& size) {
    return ends_in(v, [&](const ir::Use& use) {
      return use.op->kind == OpKind::kStore && use.index == 1 && leaves_out(*use.op, dim, start, size);
    });
  }

  static bool leaves_out(const Op& store, int dim, const Polynomial& start, const Polynomial& size) {
    const Value* mask = analysis::mask_of(&store);
    const auto bounds = mask ? analysis::index_bounds(mask) : std::nullopt;
    return bounds && std::any_of(bounds->begin(), bounds->end(), [&](const IndexBound& b) {
             return b.bound && b.dim == dim && *b.bound - b.start == size - start;
           });
  }

  // --- rewriting

  void number(const ir::Block& block) {
    for (const Value* v : block.args) numbers_.emplace(v, numbers_.size());
    for (const Op* op : block) {
      for (const Value* v : op->results) numbers_.emplace(v, numbers_.size());
      for (const ir::Block* region : op->regions) number(*region);
    }
  }

  /// The polynomial as a value of `dtype` in front of the builder's place.
  Value* number(const Polynomial& p, DType dtype) {
    const DType wanted = dtype;
    for (const auto& [factors, constant] : p.terms())
      for (const Value* v : factors)
        if (v->type.element_bits() > 32) dtype = DType::kI64;
    const ir::Type type = ir::scalar_type(dtype);
    // In the order of the text: that of the polynomial is the order of addresses.
    auto earlier = [&](const Value* a, const Value* b) { return numbers_.at(a) < numbers_.at(b); };
    std::vector<std::pair<Polynomial::Product, int64_t>> terms(p.terms().begin(), p.terms().end());
    for (auto& [factors, constant] : terms) std::sort(factors.begin(), factors.end(), earlier);
    std::sort(terms.begin(), terms.end(), [&](const auto& a, const auto& b) {
      return std::lexicographical_compare(a.first.begin(), a.first.end(), b.first.begin(), b.first.end(), earlier);
    });
    Value* total = nullptr;
    for (const auto& [factors, constant] : terms) {
      Value* term = constant == 1 && !factors.empty() ? nullptr : b_.constant_int(type, constant);
      for (const Value* v : factors) {
        Value* factor = b_.cast(const_cast<Value*>(v), dtype);
        term = term ? b_.binary(OpKind::kMul, term, factor) : factor;
      }
      total = total ? b_.binary(OpKind::kAdd, total, term) : term;
    }
    return b_.cast(total ? total : b_.constant_int(type, 0), wanted);
  }

  void rewrite(const BlockAccess& access) {
    const bool is_load = access.op->kind == OpKind::kLoad;
    const auto outer = static_cast<size_t>(access.outer), inner = 1 - outer;
    const ir::Type& tile = access.op->operand(0)->type;
    const ir::Shape block = {tile.shape[static_cast<int>(outer)], tile.shape[static_cast<int>(inner)]};

    b_.set_range(access.op->range);
    b_.set_before(module_.body()->first);
    std::vector<Value*> operands = {const_cast<Value*>(access.base)};
    std::vector<int32_t> of_tensor(access.batches.size(), 1);
    for (size_t i = 0; i < access.batches.size(); ++i) operands.push_back(number(Polynomial(kUnbounded), DType::kI32));
    for (const size_t d : {outer, inner}) {
      operands.push_back(number(access.sizes[d], DType::kI32));
      of_tensor.push_back(tile.shape[static_cast<int>(d)]);
    }
    for (const BlockAccess::Batch& batch : access.batches) operands.push_back(number(batch.stride, DType::kI64));
    operands.push_back(number(access.stride, DType::kI64));
    operands.push_back(b_.constant_int(ir::scalar_type(DType::kI64), 1));
    const ir::Type type = ir::descriptor_type(tile.dtype, ir::Shape(std::span<const int32_t>(of_tensor)));
    Value* descriptor = b_.create(OpKind::kMakeDescriptor, operands, std::span(&type, 1))->result();

    b_.set_before(access.op);
    operands = {descriptor};
    if (!is_load) operands.push_back(access.op->operand(1));
    for (const BlockAccess::Batch& batch : access.batches) operands.push_back(number(batch.start, DType::kI32));
    operands.push_back(number(access.starts[outer], DType::kI32));
    operands.push_back(number(access.starts[inner], DType::kI32));
    if (!is_load) {
      b_.create(OpKind::kDescriptorStore, operands, {});
      access.op->erase();
      return;
    }
    const ir::Type loaded = ir::tile_type(tile.dtype, block);
    Value* v = b_.create(OpKind::kDescriptorLoad, operands, std::span(&loaded, 1))->result();
    if (const ir::Attr* eviction = access.op->find(ir::AttrName::kEviction))
      v->op->set(ir::AttrName::kEviction, *eviction);
    constexpr int64_t kSwapped[] = {1, 0};
    replace(access.op, access.outer == kRows ? v : b_.trans(v, kSwapped));
  }

  ir::Module& module_;
  const target::Target& target_;
  Remarks* remarks_;
  Cause why_;                                 // of the last refusal
  std::unordered_set<const Op*> recognized_;  // dots whose operands are blocks, or computed from such
  analysis::AxisAnalysis axis_;
  ir::Builder b_;
  std::vector<const Op*> waits_;                      // loops that wait for others
  std::unordered_map<const Value*, size_t> numbers_;  // of the values that were there from the start, in order
};

}  // namespace

Status recognize_blocks(ir::Module& module, const target::Target& target, Remarks* remarks) {
  if (target::has_group_mma(target) && has_op(module, OpKind::kDot)) Recognizer(module, target, remarks).run();
  return {};
}

}  // namespace kiln::passes
