#include "compiler/passes/distributed/choose_layouts.h"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <unordered_map>
#include <unordered_set>

#include "compiler/analysis/axis_info.h"
#include "compiler/analysis/coalesce.h"
#include "compiler/analysis/dot_layouts.h"
#include "compiler/analysis/layout_ops.h"
#include "compiler/layout/algebra.h"
#include "compiler/layout/reduce_plan.h"
#include "compiler/layout/tensor_core.h"
#include "compiler/passes/distributed/pipeline_loads.h"
#include "compiler/passes/hopper/select_wgmma.h"
#include "compiler/target/occupancy.h"
#include "compiler/target/target.h"
#include "support/diag.h"

namespace kiln::passes {

using analysis::CheapValues;
using analysis::is_shape_op;
using ir::Block;
using ir::Op;
using ir::OpKind;
using ir::Value;
using layout::LinearLayout;

namespace {

constexpr double kLoopWeight = 8;  // how much more often the body of a loop runs, for weighing costs
constexpr int64_t kDefaultWidth = 4;
constexpr double kCyclesOfLatency = 500;  // of a load that is waited for where it stands
// Of H200: a mixture of experts in float8 (64 x 128 x 128) is 1.5 to 2.4 % faster by copies of 16 bytes than of 8.
constexpr double kCyclesPerShortCopy = 12;
constexpr int64_t kMostCopyBytes = 16;
constexpr size_t kMostSeen = 64;  // nodes looked through for layouts

bool is_memory(const Op* op) { return ir::op_class(op->kind) == ir::OpClass::kMemory; }

int64_t bytes_of(const Value* v) { return v->type.shape.numel() * (v->type.pointer ? 8 : size_of(v->type.dtype)); }

double loop_weight(const Op* op) {
  double weight = 1;
  for (const Block* b = op->parent; b && b->parent; b = b->parent->parent)
    if (b->parent->kind == OpKind::kFor || b->parent->kind == OpKind::kWhile) weight *= kLoopWeight;
  return weight;
}

/// Whether the value gets into a dot of its block.
bool reaches_dot(const Value* v, const Block* block, std::set<const Value*>& seen) {
  if (!seen.insert(v).second) return false;
  return std::any_of(v->uses.begin(), v->uses.end(), [&](const ir::Use& use) {
    if (use.op->parent != block) return false;
    if (use.op->kind == OpKind::kDot) return use.index < 2;
    return ir::is_pure(use.op) && use.op->regions.empty() &&
           std::any_of(use.op->results.begin(), use.op->results.end(),
                       [&](const Value* r) { return reaches_dot(r, block, seen); });
  });
}

/// Of so many consecutive elements for each thread, or its share of all if that is less.
LinearLayout contiguous_layout(const ir::Shape& shape, int num_warps, int64_t width) {
  std::array<int, ir::kMaxRank> order{};
  for (int d = 0; d < shape.rank; ++d) order[static_cast<size_t>(d)] = shape.rank - 1 - d;
  const int64_t share = std::max<int64_t>(1, shape.numel() / (32 * num_warps));
  return analysis::blocked_layout(shape, {order.data(), shape.rank}, std::min(width, share), num_warps, true);
}

}  // namespace

LinearLayout default_layout(const ir::Shape& shape, int num_warps) {
  return contiguous_layout(shape, num_warps, kDefaultWidth);
}

bool is_forward(const Op* op) { return op->kind == OpKind::kReduce || op->kind == OpKind::kJoin; }

/// On a graph of nodes and edges.
class LayoutChoice::Chooser {
 public:
  Chooser(ir::Module& module, const CheapValues& cheap) : module_(module), axis_(module), cheap_(cheap) {}

  void run() {
    collect(module_.body());
    build_nodes();
    connect_operands();
    choose();
  }

  const LinearLayout* of(const Value* v) { return module_.intern(*nodes_[node_at(slot(v))].layout); }
  /// The layout that an op which needs one of its own (a memory op, a print, a reduction's input) works in.
  const LinearLayout* of(const Op* op) { return module_.intern(*nodes_[node_at(slot(op))].layout); }

 private:
  /// A set of values and ops that have one layout.
  struct Node {
    ir::Shape shape;
    std::vector<const Op*> accesses, reduces, scans;
    std::vector<const Op*> numbers;  // integer operations that give this layout: indices, addresses, masks
    std::vector<int> edges;
    std::optional<LinearLayout> layout;
  };

  /// Two nodes that meet in an op (op == nullptr: the same value); a mismatch costs a conversion.
  struct Edge {
    int operand, result;  // nodes
    const Op* op = nullptr;
    int index = 0;  // which operand
    double cost = 0;

    bool agree(const LinearLayout& of_operand, const LinearLayout& of_result) const {
      if (!op) return of_operand == of_result;
      if (is_forward(op)) return analysis::result_layout(*op, of_operand) == of_result;
      return analysis::operand_layout(*op, index, of_result) == of_operand;
    }
    /// The layout at the end `node` that agrees with `other` at the other end; nothing when that would multiply
    /// registers.
    std::optional<LinearLayout> derive(int node, const LinearLayout& other) const {
      if (!op) return other;
      if (node == operand) return is_forward(op) ? std::nullopt : analysis::operand_layout(*op, index, other);
      if (op->kind == OpKind::kBroadcast) return std::nullopt;
      return analysis::result_layout(*op, other);
    }
  };

  // --- slots: values and ops, joined by union-find

  int slot(const void* key, const ir::Shape* shape = nullptr) {
    auto [it, is_new] = slots_.try_emplace(key, static_cast<int>(parent_.size()));
    if (is_new) {
      KILN_ASSERT(shape, "no layout was chosen");
      parent_.push_back(it->second);
      shapes_.push_back(*shape);
    }
    return it->second;
  }
  int slot_of(const Value* v) { return slot(v, &v->type.shape); }
  int root(int s) {
    while (parent_[static_cast<size_t>(s)] != s)
      s = parent_[static_cast<size_t>(s)] = parent_[static_cast<size_t>(parent_[static_cast<size_t>(s)])];
    return s;
  }
  void tie(int a, int b) { parent_[static_cast<size_t>(root(a))] = root(b); }
  void tie(const Value* a, const Value* b) {
    if (!is_tile(a)) return;
    if (cheap_.has(a))
      slot_of(b);
    else if (cheap_.has(b))
      slot_of(a);
    else
      tie(slot_of(a), slot_of(b));
  }
  size_t node_at(int s) { return static_cast<size_t>(node_of_root_.at(root(s))); }

  struct PendingEdge {
    int operand, result;
    const Op* op;
    int index;
    double cost;
  };
  void connect(const Value* operand, int result, const Op* op, int index, const Op* where, const Value* moved) {
    if (cheap_.has(operand)) return;
    pending_.push_back(
        {slot_of(operand), result, op, index, loop_weight(where) * analysis::conversion_cost(bytes_of(moved))});
  }

  /// Whether pipeline_loads is going to copy ahead what this loads: any layout can read it from shared memory then.
  bool comes_by_ring(const Op* op) const {
    if (op->kind != OpKind::kLoad || op->result()->type.pointer || op->flag(ir::AttrName::kVolatile)) return false;
    const Op* loop = op->parent->parent;
    if (!loop || loop->kind != OpKind::kFor) return false;
    const auto stages = static_cast<int>(loop->int_or(ir::AttrName::kNumStages, module_.num_stages));
    const Value* pointer = op->operand(0);
    const int64_t width = axis_.alignment_width(pointer, analysis::mask_of(op), axis_.order_of(pointer)[0]);
    std::set<const Value*> seen;
    if (stages < 2 || width * size_of(pointer->type.dtype) < kLeastCopyBytes ||
        !reaches_dot(op->result(), op->parent, seen))
      return false;
    auto is_tile_by_ring = [&](const Op* other) {
      return other->kind == OpKind::kLoad && other->result()->type.shape.rank > 1 && comes_by_ring(other);
    };
    return op->result()->type.shape.rank > 1 ||
           (vector_runs_ahead(op, loop, stages, axis_) && ir::any_nested(loop, is_tile_by_ring));
  }

  void collect(Block* block) {
    for (Op* op : *block) {
      collect_op(op);
      for (Block* b : op->regions)
        if (op->kind != OpKind::kReduce && op->kind != OpKind::kScan) collect(b);
    }
  }

  void collect_op(Op* op) {
    switch (op->kind) {
      case OpKind::kFor:
        for (size_t i = 0; i < op->results.size(); ++i) {
          tie(op->results[i], op->region()->args[i + 1]);
          tie(op->operands[i + 3], op->results[i]);
          tie(op->region()->terminator()->operands[i], op->results[i]);
        }
        return;
      case OpKind::kWhile: {
        const Block *before = op->region(0), *after = op->region(1);
        for (size_t i = 0; i < before->args.size(); ++i) {
          tie(op->operands[i], before->args[i]);
          tie(after->terminator()->operands[i], before->args[i]);
        }
        for (size_t i = 0; i < op->results.size(); ++i) {
          tie(op->results[i], after->args[i]);
          tie(before->terminator()->operands[i + 1], after->args[i]);
        }
        return;
      }
      case OpKind::kIf:
        for (size_t i = 0; i < op->results.size(); ++i)
          for (Block* b : op->regions) tie(b->terminator()->operands[i], op->results[i]);
        return;
      default:  // the rest is distinguished by traits
        break;
    }
    if (ir::is_terminator(op)) return;
    const Value* tile = nullptr;
    for (const Value* v : op->operands)
      if (!tile && is_tile(v)) tile = v;
    for (const Value* v : op->results)
      if (!tile && is_tile(v)) tile = v;
    if (!tile || (op->results.size() == 1 && cheap_.has(op->result()))) return;

    if (op->kind == OpKind::kDot) (loop_weight(op) > 1 ? multiplies_in_loop_ : multiplies_once_) = true;
    if (op->kind == OpKind::kDot &&
        !is_wgmma(op)) {  // it dictates layouts: where an operand differs, the rewriter converts
      int own = slot_of(op->result());
      if (!cheap_.has(op->operand(2))) tie(slot_of(op->operand(2)), own);
      dots_.emplace_back(op, own);
    } else if (op->kind == OpKind::kReduce) {
      int input = slot(op, &tile->type.shape);
      ops_.emplace_back(op, input);
      for (const Value* v : op->operands)
        if (!cheap_.has(v)) tie(slot_of(v), input);
      for (const Value* r : op->results)
        if (is_tile(r))
          pending_.push_back({input, slot_of(r), op, 0, loop_weight(op) * analysis::conversion_cost(bytes_of(r))});
    } else if (op->kind == OpKind::kJoin) {
      for (int i = 0; i < 2; ++i) connect(op->operand(i), slot_of(op->result()), op, i, op, op->result());
      // One operand may be cheap: the op's own layout decides for both.
      int input = slot(op, &tile->type.shape);
      ops_.emplace_back(op, input);
      for (const Value* v : op->operands)
        if (!cheap_.has(v)) tie(slot_of(v), input);
    } else if (op->kind == OpKind::kSplit) {
      tie(op->result(0), op->result(1));
      connect(op->operand(0), slot_of(op->result(0)), op, 0, op, op->operand(0));
    } else if (is_shape_op(op)) {
      connect(op->operand(0), slot_of(op->result()), op, 0, op, op->operand(0));
    } else if (is_wgmma(op)) {  // blocks come through shared memory in any layout; the rewriter converts the others
      int own = slot_of(op->result());
      tie(op->operand(2), op->result());
      anchors_.emplace_back(own, layout::wgmma_accumulator(op->result()->type.shape.span(), module_.num_warps));
      if (takes_registers(op)) of_registers_.push_back(op);
    } else if (ir::is_gather(op->kind)) {  // any thread reads any element of operand 0
      int source = slot(op, &op->operand(0)->type.shape), own = slot_of(op->result());
      ops_.emplace_back(op, source);
      if (!cheap_.has(op->operand(0))) tie(slot_of(op->operand(0)), source);
      for (size_t i = 1; i < op->operands.size(); ++i)
        if (const Value* v = op->operands[i]; is_tile(v) && !cheap_.has(v)) tie(slot_of(v), own);
    } else if (op->kind == OpKind::kBucketPlace) {
      tie(op->operand(0), op->result(0));
      anchors_.emplace_back(slot_of(op->result(0)), layout::stretches(op->result(0)->type.shape[0], module_.num_warps));
      tie(op->result(1), op->result(2));
    } else if (ir::is_pure(op)) {  // elementwise, scan and scatter
      int own = slot_of(op->result());
      for (const Value* v : op->results) tie(slot_of(v), own);
      for (const Value* v : op->operands)
        if (is_tile(v) && !cheap_.has(v)) tie(slot_of(v), own);
      if (ir::is_elementwise(op)) numbers_.emplace_back(op, own);
      if (op->kind == OpKind::kScan) ops_.emplace_back(op, own), scans_ = true;
    } else {  // memory, and effects such as print
      int own = slot(op, &tile->type.shape);
      ops_.emplace_back(op, own);
      numbers_.emplace_back(op, own);
      for (const Value* v : op->operands)
        if (is_tile(v)) connect(v, own, nullptr, 0, op, v);
      const bool by_ring = comes_by_ring(op);
      if (by_ring) by_ring_.insert(op);
      for (const Value* v : op->results)
        pending_.push_back(
            {own, slot_of(v), nullptr, 0, by_ring ? 0 : loop_weight(op) * analysis::conversion_cost(bytes_of(v))});
    }
  }

  // --- nodes

  /// Whether dimension `dim` of a tile is the contiguous one of the memory that it is loaded from.
  bool lies_along(const Value* tile, int dim) const {
    const Op* op = tile->op;
    while (op && (op->kind == OpKind::kTrans || op->kind == OpKind::kCast)) {
      if (op->kind == OpKind::kTrans)
        dim =
            static_cast<int>(std::get<std::vector<int64_t>>(*op->find(ir::AttrName::kOrder))[static_cast<size_t>(dim)]);
      op = op->operand(0)->op;
    }
    return op && op->kind == OpKind::kLoad && axis_.order_of(op->operand(0))[0] == dim;
  }
  analysis::AlongK along_k(const Op& dot) const {
    const int rank = dot.result()->type.shape.rank;
    return {lies_along(dot.operand(0), rank - 1), lies_along(dot.operand(1), rank - 2)};
  }

  void build_nodes() {
    for (int s = 0; s < static_cast<int>(parent_.size()); ++s) {
      auto [it, is_new] = node_of_root_.try_emplace(root(s), static_cast<int>(nodes_.size()));
      if (is_new) nodes_.push_back({shapes_[static_cast<size_t>(s)], {}, {}, {}, {}, {}, {}});
    }
    for (const auto& [op, s] : numbers_) add_numbers(op, nodes_[node_at(s)]);
    for (Node& node : nodes_) {
      std::sort(node.numbers.begin(), node.numbers.end());
      node.numbers.erase(std::unique(node.numbers.begin(), node.numbers.end()), node.numbers.end());
    }
    for (const auto& [op, s] : ops_) {
      Node& node = nodes_[node_at(s)];
      if (is_memory(op)) node.accesses.push_back(op);
      if (op->kind == OpKind::kReduce) node.reduces.push_back(op);
      if (op->kind == OpKind::kScan) node.scans.push_back(op);
    }
    for (const auto& [s, layout] : anchors_) nodes_[node_at(s)].layout = layout;
    for (bool mma : {true, false})  // of several dots in one node, one on tensor cores decides
      for (const auto& [dot, s] : dots_) {
        Node& node = nodes_[node_at(s)];
        if (!node.layout && analysis::uses_mma(*dot) == mma)
          node.layout = analysis::dot_result_layout(*dot, module_.num_warps, along_k(*dot));
      }
    for (const PendingEdge& p : pending_) {
      int operand = static_cast<int>(node_at(p.operand)), result = static_cast<int>(node_at(p.result));
      int number = static_cast<int>(edges_.size());
      edges_.push_back({operand, result, p.op, p.index, p.cost});
      nodes_[static_cast<size_t>(operand)].edges.push_back(number);
      if (result != operand) nodes_[static_cast<size_t>(result)].edges.push_back(number);
    }
  }

  /// What an op of the node computes itself, and what is computed again for it.
  void add_numbers(const Op* op, Node& node) const {
    const Value* result = op->results.size() == 1 ? op->result() : nullptr;
    const bool is_number = result && is_tile(result) && !result->type.is_float() && ir::is_elementwise(op);
    if (is_number && result->type.shape == node.shape) node.numbers.push_back(op);
    for (const Value* v : op->operands)
      if (is_tile(v) && v->op && cheap_.has(v) && v->type.shape == node.shape &&
          std::ranges::find(node.numbers, v->op) == node.numbers.end())
        add_numbers(v->op, node);
  }

  /// Whether it is widened from halves that come by a ring, and nothing else. Each warp then reads the ring for itself,
  /// as it would read what another had widened and stored: that each widens its copy takes less than the stores.
  bool is_widened_from_ring(const Value* v) const {
    const Op* op = v->op;
    bool widens = false;
    for (; op && (op->kind == OpKind::kCast || op->kind == OpKind::kTrans); op = op->operand(0)->op)
      if (op->kind == OpKind::kCast) {
        if (!is_half(op->operand(0)->type.dtype) || op->result()->type.dtype != DType::kF32) return false;
        widens = true;
      }
    return widens && op && by_ring_.contains(op);
  }

  /// What dots take from registers may be computed as they take it, unless several warps hold copies, which each would
  /// compute.
  void connect_operands() {
    for (const auto& [dot, s] : dots_)
      for (int i : {0, 1})
        if (analysis::uses_mma(*dot))
          connect_operand(*dot, i, analysis::dot_operand_layout(*dot, i, *nodes_[node_at(s)].layout));
    for (const Op* dot : of_registers_) {
      const ir::Type& a = dot->operand(0)->type;
      connect_operand(*dot, 0,
                      layout::mma_operand(layout::DotSide::kA, a.shape.span(), a.element_bits(),
                                          *nodes_[node_at(slot(dot->result()))].layout));
    }
  }
  void connect_operand(const Op& dot, int index, const LinearLayout& layout) {
    const Value* operand = dot.operand(index);
    if (cheap_.has(operand) || !analysis::is_computed(operand)) return;
    if (layout::free_variables(layout).warp != 0 && !is_widened_from_ring(operand)) return;
    const int from = static_cast<int>(node_at(slot(operand))), to = static_cast<int>(nodes_.size());
    const int number = static_cast<int>(edges_.size());
    nodes_.push_back({operand->type.shape, {}, {}, {}, {}, {number}, layout});
    edges_.push_back({from, to, nullptr, 0, loop_weight(&dot) * analysis::conversion_cost(bytes_of(operand))});
    nodes_[static_cast<size_t>(from)].edges.push_back(number);
  }

  /// What dots dictate first; then largest tiles first; of one size, those next to decided ones, so that layouts spread
  /// along the edges; then values before memory ops, which can look at all their neighbours then.
  void choose() {
    std::vector<bool> reached(nodes_.size()), anchored(nodes_.size());  // anchored: decided by what an op demands
    for (size_t i = 0; i < nodes_.size(); ++i) anchored[i] = nodes_[i].layout.has_value();
    auto rank_of = [&](size_t i) {
      return std::tuple(anchored[i] ? INT64_MIN : -nodes_[i].shape.numel(), !reached[i], !nodes_[i].accesses.empty(),
                        i);
    };
    std::set<std::tuple<int64_t, bool, bool, size_t>> queue;
    for (size_t i = 0; i < nodes_.size(); ++i) queue.insert(rank_of(i));
    while (!queue.empty()) {
      size_t next = std::get<3>(*queue.begin());
      queue.erase(queue.begin());
      if (!nodes_[next].layout) choose_for(static_cast<int>(next));
      for (int e : nodes_[next].edges)
        for (int end : {edges_[static_cast<size_t>(e)].operand, edges_[static_cast<size_t>(e)].result}) {
          size_t i = static_cast<size_t>(end);
          if (reached[i] || nodes_[i].layout) continue;
          queue.erase(rank_of(i));
          reached[i] = true;
          queue.insert(rank_of(i));
        }
    }
    choose_together(anchored);
    follow(anchored);
  }

  /// Where two neighbours differ, the one and all that agrees with it follow the other, if the whole costs less so: a
  /// load of packed numbers, far from the store behind joins and reshapes, may take fewer of them at once and spare the
  /// conversion of all that becomes of them. Of as many elements on both sides, as in a transpose, wide accesses are
  /// worth the conversion.
  void follow(const std::vector<bool>& anchored) {
    for (const Edge& edge : edges_)
      for (const auto& [leader, follower] : {std::pair(edge.result, edge.operand), {edge.operand, edge.result}}) {
        const LinearLayout &of_operand = *nodes_[static_cast<size_t>(edge.operand)].layout,
                           &of_result = *nodes_[static_cast<size_t>(edge.result)].layout;
        if (leader == follower || edge.agree(of_operand, of_result) || anchored[static_cast<size_t>(follower)])
          continue;
        std::map<int, LinearLayout> layouts = followers(edge, leader, follower, anchored);
        std::vector<int> group;
        for (const auto& [n, l] : layouts) group.push_back(n);
        const int64_t converted = nodes_[static_cast<size_t>(follower)].shape.numel();
        if (group.empty() || std::ranges::any_of(group, [&](int n) {
              const Node& node = nodes_[static_cast<size_t>(n)];
              return !node.accesses.empty() && 2 * node.shape.numel() > converted;
            }))
          continue;
        const double before = cost_of_group(group);
        for (auto& [n, l] : layouts) std::swap(*nodes_[static_cast<size_t>(n)].layout, l);
        if (cost_of_group(group) >= before)
          for (auto& [n, l] : layouts) std::swap(*nodes_[static_cast<size_t>(n)].layout, l);
      }
  }

  /// What follows `leader` across the edge, with the layouts that it takes; nothing where `follower` cannot.
  std::map<int, LinearLayout> followers(const Edge& edge, int leader, int follower, const std::vector<bool>& anchored) {
    const auto derive = [](const Edge& e, int node, const LinearLayout& other) {
      // Both operands of a join have the layout that its result asks for.
      return e.op && e.op->kind == OpKind::kJoin && node == e.operand ? analysis::operand_layout(*e.op, e.index, other)
                                                                      : e.derive(node, other);
    };
    std::map<int, LinearLayout> found;
    const auto first = derive(edge, follower, *nodes_[static_cast<size_t>(leader)].layout);
    if (!first) return found;
    found.emplace(follower, *first);
    std::vector<int> work = {follower};
    for (size_t i = 0; i < work.size() && found.size() < kMostSeen; ++i)
      for (int number : nodes_[static_cast<size_t>(work[i])].edges) {
        const Edge& e = edges_[static_cast<size_t>(number)];
        const int other = e.operand == work[i] ? e.result : e.operand;
        if (other == leader || found.contains(other) || anchored[static_cast<size_t>(other)] ||
            !e.agree(*nodes_[static_cast<size_t>(e.operand)].layout, *nodes_[static_cast<size_t>(e.result)].layout))
          continue;
        if (const auto layout = derive(e, other, found.at(work[i])))
          found.emplace(other, *layout), work.push_back(other);
      }
    return found;
  }

  /// One layout for all nodes that have values in common, where that costs less than what each chose for itself and its
  /// neighbours: an address follows its load, which may be the one that would rather follow the others.
  void choose_together(const std::vector<bool>& anchored) {
    std::vector<bool> seen = anchored;
    for (size_t start = 0; start < nodes_.size(); ++start) {
      if (seen[start]) continue;
      std::vector<int> group = {static_cast<int>(start)};
      seen[start] = true;
      for (size_t i = 0; i < group.size(); ++i)
        for (int e : nodes_[static_cast<size_t>(group[i])].edges) {
          const Edge& edge = edges_[static_cast<size_t>(e)];
          for (int end : {edge.operand, edge.result})
            if (!edge.op && !seen[static_cast<size_t>(end)])
              seen[static_cast<size_t>(end)] = true, group.push_back(end);
        }
      std::vector<LinearLayout> candidates;
      for (int n : group)
        for (const LinearLayout& l : wishes(nodes_[static_cast<size_t>(n)]))
          if (std::ranges::find(candidates, l) == candidates.end()) candidates.push_back(l);
      if (group.size() < 2 || candidates.size() < 2) continue;
      double least = cost_of_group(group);
      std::vector<LinearLayout> best;
      for (int n : group) best.push_back(*nodes_[static_cast<size_t>(n)].layout);
      for (const LinearLayout& candidate : candidates) {
        for (int n : group) nodes_[static_cast<size_t>(n)].layout = candidate;
        if (const double cost = cost_of_group(group); cost < least) least = cost, best.assign(group.size(), candidate);
      }
      for (size_t i = 0; i < group.size(); ++i) nodes_[static_cast<size_t>(group[i])].layout = best[i];
    }
  }

  /// Of nodes that have layouts, with the conversions between them and to their neighbours.
  double cost_of_group(const std::vector<int>& group) const {
    double cost = 0;
    std::set<int> edges;
    for (int n : group) {
      const Node& node = nodes_[static_cast<size_t>(n)];
      cost += cost_within(node, *node.layout);
      edges.insert(node.edges.begin(), node.edges.end());
    }
    for (int e : edges) {
      const Edge& edge = edges_[static_cast<size_t>(e)];
      const Node &from = nodes_[static_cast<size_t>(edge.operand)], &to = nodes_[static_cast<size_t>(edge.result)];
      if (!edge.agree(*from.layout, *to.layout)) cost += edge.cost;
    }
    return cost;
  }

  void choose_for(int number) {
    Node& node = nodes_[static_cast<size_t>(number)];
    std::vector<LinearLayout> candidates;
    auto add = [&](const std::optional<LinearLayout>& l) {
      if (l && std::find(candidates.begin(), candidates.end(), *l) == candidates.end()) candidates.push_back(*l);
    };
    std::set<int> seen = {number};
    add_hopes(number, seen, add);
    for (const LinearLayout& l : wishes(node)) add(l);
    // Exchanges of a sort take several dimensions apart, of which those of neighbours are exchanged most.
    if (std::ranges::count_if(node.edges,
                              [&](int e) { return reduced_behind(edges_[static_cast<size_t>(e)], number); }) > 1)
      add(contiguous_layout(node.shape, module_.num_warps, node.shape.numel()));
    if (candidates.empty()) add(default_layout(node.shape, module_.num_warps));
    if (!std::ranges::any_of(candidates, [&](const LinearLayout& l) { return reductions_fit(node, l); }))
      candidates = {layout_within_warps(node)};
    // A thread scans neighbours by itself.
    const size_t others = candidates.size();
    for (const Op* scan : node.scans)
      for (size_t i = 0; i < others; ++i)
        add(layout::neighbours_along(candidates[i], static_cast<int>(scan->int_attr(ir::AttrName::kAxis))));
    // Of sums that are scanned, warps that have stretches of their own tell each other one total.
    for (int e : node.edges)
      if (const Node* scanned = scanned_behind(edges_[static_cast<size_t>(e)], number))
        for (size_t i = 0; i < others; ++i) {
          const auto axis = static_cast<int>(scanned->scans[0]->int_attr(ir::AttrName::kAxis));
          const auto reduced = static_cast<int>(edges_[static_cast<size_t>(e)].op->int_attr(ir::AttrName::kAxis));
          add(layout::stretches_along(candidates[i], axis + (reduced <= axis)));
        }
    double best = 0;
    for (const LinearLayout& candidate : candidates) {
      double cost = cost_of(number, candidate);
      if (node.layout && cost >= best) continue;
      best = cost;
      node.layout = candidate;
    }
  }

  /// Between warps a reduction brings all of its result through shared memory, once for each warp along the axis. Of
  /// large tiles with small axes that is more than any GPU has.
  static bool reductions_fit(const Node& node, const LinearLayout& layout) {
    if (!layout::has_unit_bases(layout)) return true;
    const int64_t most = std::ranges::max(target::all(), {}, &target::Target::shared_per_block).shared_per_block;
    return std::ranges::all_of(node.reduces, [&](const Op* reduce) {
      const auto axis = static_cast<int>(reduce->int_attr(ir::AttrName::kAxis));
      int64_t bytes = 0;
      for (const Value* result : reduce->results) bytes += size_of(result->type.dtype);
      return bytes * layout::plan_reduce(layout, axis).scratch_elements <= most;
    });
  }

  /// With the warps along the other dimensions.
  LinearLayout layout_within_warps(const Node& node) const {
    const auto axis = static_cast<int>(node.reduces[0]->int_attr(ir::AttrName::kAxis));
    std::vector<int> order;
    for (int d = node.shape.rank - 1; d >= 0; --d)
      if (d != axis) order.push_back(d);
    order.push_back(axis);
    constexpr int64_t kWidth = 4;
    return analysis::blocked_layout(node.shape, order, kWidth, module_.num_warps, false);
  }

  /// The node behind a reshape of this one which is reduced and will follow it, or null.
  const Node* reduced_behind(const Edge& edge, int number) const {
    if (edge.operand != number || !edge.op || !is_shape_op(edge.op)) return nullptr;
    const Node& node = nodes_[static_cast<size_t>(edge.result)];
    return node.layout || node.reduces.empty() || !node.accesses.empty() ? nullptr : &node;
  }

  /// The node of what a reduction makes of this one, if it is scanned and will follow it, or null.
  const Node* scanned_behind(const Edge& edge, int number) const {
    if (edge.operand != number || !edge.op || edge.op->kind != OpKind::kReduce) return nullptr;
    const Node& node = nodes_[static_cast<size_t>(edge.result)];
    return node.layout || node.scans.empty() || !node.accesses.empty() ? nullptr : &node;
  }

  /// Of what a reduction leaves of a candidate, or of what it is converted to where that is cheaper.
  double cost_of_scanned(const Node& scanned, const Edge& edge, const LinearLayout& candidate) const {
    const auto left = analysis::result_layout(*edge.op, candidate);
    if (!left) return 0;
    const auto axis = static_cast<int>(scanned.scans[0]->int_attr(ir::AttrName::kAxis));
    double converted = cost_within(scanned, layout::neighbours_along(*left, axis));
    for (int e : scanned.edges) converted += edges_[static_cast<size_t>(e)].cost;  // what becomes of it goes back
    return std::min(cost_within(scanned, *left), converted);
  }

  std::vector<LinearLayout> wishes(const Node& node) const {
    std::vector<LinearLayout> r;
    for (const Op* access : node.accesses)
      for (const LinearLayout& l :
           analysis::coalesced_layouts(axis_, access, module_.num_warps, least_width(access), most_lanes(access)))
        r.push_back(l);
    return r;
  }

  /// Of words that are copied ahead one by one, rows of less than a line are copied a sector at a time: a thread has
  /// several of each row then, at one address and constants, where it would have an address for each.
  int most_lanes(const Op* access) const {
    constexpr int kSectorBytes = 32, kLineBytes = 128;
    const ir::Type& type = access->operand(0)->type;
    const int bytes = size_of(type.dtype);
    const int64_t row = type.shape.rank > 0 ? type.shape[axis_.order_of(access->operand(0))[0]] : 1;
    const bool is_short = by_ring_.contains(access) && bytes >= kLeastCopyBytes && row * bytes < kLineBytes;
    return is_short ? kSectorBytes / bytes : target::kWarpSize;
  }

  /// An operand of a dot that comes element by element, of rows that begin at odd addresses: a thread that has four
  /// neighbours holds one address for them, and stores them into shared memory at once (H200: 5380 x 64 x 5059 halves
  /// along k take 105 us with one, since the addresses of 96 loads spill, 46 with four and 50 with eight; 71 x 159 x
  /// 5867, whose B lies across k, 15.5, 10.7 and 12.3).
  int64_t least_width(const Op* access) const {
    constexpr int64_t kNeighbours = 4, kMostBytes = 2;  // of an element
    const Value* pointer = access->operand(0);
    std::set<const Value*> seen;
    const bool is_operand = access->kind == OpKind::kLoad && pointer->type.shape.rank > 1 &&
                            size_of(pointer->type.dtype) <= kMostBytes &&
                            reaches_dot(access->result(), access->parent, seen);
    return is_operand ? kNeighbours : 1;
  }

  /// The layouts that a node would have if its neighbours decided: theirs, those that their memory ops wish for or, of
  /// a neighbour that has neither, what its own neighbours would have. So a load's layout reaches what becomes of it
  /// through several joins and reshapes.
  void add_hopes(int number, std::set<int>& seen, const std::function<void(std::optional<LinearLayout>)>& add) const {
    for (int e : nodes_[static_cast<size_t>(number)].edges) {
      const Edge& edge = edges_[static_cast<size_t>(e)];
      const int other = edge.operand == number ? edge.result : edge.operand;
      const Node& neighbour = nodes_[static_cast<size_t>(other)];
      const std::vector<LinearLayout> own = wishes(neighbour);
      if (neighbour.layout)
        add(edge.derive(number, *neighbour.layout));
      else if (!own.empty())
        for (const LinearLayout& l : own) add(edge.derive(number, l));
      else if (seen.size() < kMostSeen && seen.insert(other).second)
        add_hopes(other, seen, [&](const std::optional<LinearLayout>& l) {
          if (l) add(edge.derive(number, *l));
        });
    }
  }

  /// Of a copy ahead, beside what any load costs: copies of 16 bytes pass by the first-level cache, and the fewer bytes
  /// one has, the more of them have an address and a mask each; what is too short for one is a load that is waited for.
  double copy_cost(const Op* access, const LinearLayout& layout) const {
    const int64_t bytes = axis_.vector_width(access, layout) * size_of(access->operand(0)->type.dtype);
    if (bytes < kLeastCopyBytes) return kCyclesOfLatency;
    if (bytes >= kMostCopyBytes) return 0;
    const int64_t copies = bytes_of(access->result()) / (bytes * target::kWarpSize);  // of warps
    return kCyclesPerShortCopy * static_cast<double>(copies);
  }

  /// Whether the kernel waits for such accesses, and for little else: it multiplies nothing beside a scan, or, of
  /// stores, what it multiplies it has loaded once.
  bool waits_for(const Op* access) const {
    if (access->kind == OpKind::kStore) return multiplies_once_ && !multiplies_in_loop_;
    return scans_ && !multiplies_once_ && !multiplies_in_loop_;
  }

  double cost_within(const Node& node, const LinearLayout& layout) const {
    double cost = 0;
    for (const Op* access : node.accesses) {
      cost += loop_weight(access) * analysis::access_cost(axis_, access, layout, waits_for(access));
      if (by_ring_.contains(access)) cost += loop_weight(access) * copy_cost(access, layout);
    }
    for (const Op* op : node.numbers) cost += loop_weight(op) * analysis::arithmetic_cost(axis_, op, layout);
    for (const Op* reduce : node.reduces)
      cost += loop_weight(reduce) * analysis::reduction_cost(*reduce, layout, module_.num_warps);
    for (const Op* scan : node.scans) cost += loop_weight(scan) * analysis::scan_cost(*scan, layout, module_.num_warps);
    return cost;
  }

  double cost_of(int number, const LinearLayout& candidate) const {
    const Node& node = nodes_[static_cast<size_t>(number)];
    double cost = cost_within(node, candidate);
    std::map<int, double>
        memory;  // accesses that are not decided, and what it takes to convert what they share with us
    for (int e : node.edges) {
      const Edge& edge = edges_[static_cast<size_t>(e)];
      bool is_operand = edge.operand == number;
      if (edge.operand == edge.result) {
        if (!edge.agree(candidate, candidate)) cost += edge.cost;
        continue;
      }
      const Node& neighbour = nodes_[static_cast<size_t>(is_operand ? edge.result : edge.operand)];
      if (neighbour.layout) {
        const LinearLayout& other = *neighbour.layout;
        if (!(is_operand ? edge.agree(candidate, other) : edge.agree(other, candidate))) cost += edge.cost;
      } else if (const Node* reduced = reduced_behind(edge, number)) {
        if (const auto derived = edge.derive(edge.result, candidate)) cost += cost_within(*reduced, *derived);
      } else if (const Node* scanned = scanned_behind(edge, number)) {
        cost += cost_of_scanned(*scanned, edge, candidate);
      } else if (!neighbour.accesses.empty()) {
        double& conversions = memory.try_emplace(is_operand ? edge.result : edge.operand, 0.0).first->second;
        conversions += edge.cost;
      }
    }
    for (const auto& [number_of_access, conversions] : memory) {
      // The memory op will follow us or convert what it shares with us, whichever is cheaper.
      const Node& access = nodes_[static_cast<size_t>(number_of_access)];
      double least = cost_within(access, candidate);
      for (const LinearLayout& l : wishes(access))
        least = std::min(least, cost_within(access, l) + (l == candidate ? 0 : conversions));
      cost += least;
    }
    return cost;
  }

  ir::Module& module_;
  analysis::AxisAnalysis axis_;
  const CheapValues& cheap_;
  std::unordered_map<const void*, int> slots_;
  std::vector<int> parent_;
  std::vector<ir::Shape> shapes_;
  std::vector<std::pair<const Op*, int>> ops_, dots_, numbers_;
  bool scans_ = false, multiplies_once_ = false, multiplies_in_loop_ = false;
  std::vector<const Op*> of_registers_;  // wgmma whose first operand is
  std::vector<PendingEdge> pending_;
  std::vector<std::pair<int, LinearLayout>> anchors_;  // slots whose layout an instruction dictates
  std::unordered_set<const Op*> by_ring_;              // loads that pipeline_loads is going to copy ahead
  std::unordered_map<int, int> node_of_root_;
  std::vector<Node> nodes_;
  std::vector<Edge> edges_;
};

LayoutChoice::LayoutChoice(ir::Module& module, const CheapValues& cheap)
    : chooser_(std::make_unique<Chooser>(module, cheap)) {
  chooser_->run();
}
LayoutChoice::~LayoutChoice() = default;

const LinearLayout* LayoutChoice::of(const Value* v) { return chooser_->of(v); }
const LinearLayout* LayoutChoice::of(const Op* op) { return chooser_->of(op); }

}  // namespace kiln::passes
