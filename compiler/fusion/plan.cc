#include "compiler/fusion/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "compiler/fusion/copy_operands.h"
#include "compiler/fusion/grouping.h"
#include "compiler/fusion/join_totals.h"
#include "compiler/fusion/library.h"
#include "compiler/fusion/recompute.h"
#include "compiler/fusion/split.h"
#include "compiler/fusion/writer.h"
#include "compiler/target/target.h"
#include "support/diag.h"

namespace kiln::fusion {

namespace {

class Planner {
 public:
  Planner(const Graph& graph, const PlanOptions& options) : graph_(graph), options_(options) {}

  Result<Plan> run() {
    plan_.variant = options_.variant;
    const bool unfused = options_.variant == Variant::kUnfused;
    KILN_TRY(dag_, make_dag(graph_, !unfused, library(), options_.machine.gpu()));
    dag_.exact = options_.exact;
    KILN_CHECK_OK(use_library());
    // Here too, so that a sum has the same bits in each variant.
    reduce_ends(dag_);
    unroll_reductions(dag_);
    follow_memory(dag_);
    part_variances(dag_, options_.machine);
    part_softmaxes(dag_, options_.machine);
    if (!unfused) {
      reverse_scans(dag_, options_.machine);
      push_views(dag_);
      push_takes(dag_);
      view_takes(dag_);
      pull_selects(dag_);
      refine_shapes(dag_);
      separate_counts(dag_);
      separate_constants(dag_);
      nest_reductions(dag_);
    }
    if (!library()) {
      if (!unfused) copy_operands(dag_, options_.machine);
      if (!unfused) note_made_operands(dag_, options_);
      split_products(dag_, options_);
    }
    split_scans(dag_, options_.machine);
    split_reductions(dag_, options_.machine);
    grouping_ = group(dag_, options_);
    if (!unfused) recompute_cheap(dag_, grouping_, options_.machine);
    if (!unfused && options_.machine.gpu()) store_parts(dag_, grouping_);
    KILN_CHECK_OK(check_sizes());
    values();
    const target::Target* target = target::find(options_.machine.target);
    plan_.overlaps = grouping_.clusters.size() > 1 && target && target->has(target::kTma);
    for (size_t c = 0; c < grouping_.clusters.size(); ++c) KILN_CHECK_OK(write(c));
    plan_.overlaps &= plan_.groups.size() > 1;
    plan_.begins_early =
        plan_.groups.size() == 1 && target && target->has(target::kTma) && grouping_.clusters[0].form != Form::kProduct;
    outputs();
    lives();
    boundaries();
    return std::move(plan_);
  }

 private:
  bool library() const {
    return options_.variant == Variant::kLibrary || options_.variant == Variant::kLibraryEpilogue;
  }

  Status use_library() {
    const bool only = options_.variant == Variant::kLibrary, epilogue = options_.variant == Variant::kLibraryEpilogue;
    if (!only && !epilogue) return {};
    const bool product =
        std::any_of(dag_.nodes.begin(), dag_.nodes.end(), [](const DagNode& n) { return n.kind == DagKind::kProduct; });
    if (!product)
      return error(ErrorKind::kUnsupported, "there is no product in the expression that a library could compute");
    if (epilogue && !absorb_epilogues(dag_))
      return error(ErrorKind::kUnsupported,
                   "no product is followed by a library's epilogue: a bias of its columns, then relu or gelu");
    return {};
  }

  Status check_sizes() const {
    for (const DagNode& n : dag_.nodes) {
      double elements = 1;
      for (int64_t d : n.shape) elements *= static_cast<double>(d);
      if (elements * size_of(n.dtype) > 1e15)
        return error(ErrorKind::kMemory, "a tensor of {} {} has {:.3g} elements, which no memory holds",
                     to_string(n.shape), kiln::name(n.dtype), elements);
    }
    return {};
  }

  void values() {
    value_of_.assign(dag_.nodes.size(), -1);
    for (size_t i = 0; i < dag_.nodes.size(); ++i) {
      const DagNode& n = dag_.nodes[i];
      if (n.counts || (n.kind != DagKind::kLeaf && !grouping_.stored[i]) || n.part_of >= 0) continue;
      Value v;
      v.dtype = n.dtype;
      v.shape = n.shape;
      v.name = n.name;
      v.put = n.op == ExprOp::kPut;
      if (n.kind == DagKind::kLeaf) {
        v.input = n.origin;
        v.strides = graph_.nodes[at(n.origin)].strides;
      } else {
        // In the words of the user, where its dimensions were taken apart.
        if (n.row_stride == 0)
          for (const Operand& o : dag_.outputs)
            if (o.node == static_cast<int>(i) && o.offset == 0 && o.strides == row_major(o.shape) &&
                numel(o.shape) == numel(n.shape))
              v.shape = o.shape;
        v.strides = n.row_stride == 0 ? row_major(v.shape) : stored_strides(n);
      }
      value_of_[i] = static_cast<int>(plan_.values.size());
      plan_.values.push_back(std::move(v));
    }
    for (size_t i = 0; i < dag_.nodes.size(); ++i)
      if (dag_.nodes[i].part_of >= 0) value_of_[i] = value_of_[at(dag_.nodes[i].part_of)];
  }

  View view_of(const Operand& o) const { return {value_of_[at(o.node)], o.shape, o.strides, o.offset}; }

  /// The kernel of a cluster, or a part of the one before it.
  Status write(size_t c) {
    const Cluster& cluster = grouping_.clusters[c];
    KILN_TRY(Group g, written(c, options_.gives_program ? kGivenProgram : kOwnProgram, totals_of(cluster)));
    const bool may = options_.variant != Variant::kUnfused && options_.machine.gpu() && options_.joins_totals && last_;
    if (may && may_join(plan_.groups.back(), *last_, g, cluster)) {
      use_turns(1);
      if (asks_for_program(cluster)) {
        KILN_TRY(g, written(c, kProgramOfTotal));
      }
      plan_.groups.back() = joined(plan_.groups.back(), g, cluster, turns_);
    } else if (may && may_join_rows(dag_, plan_.groups.back(), *last_, g, cluster)) {
      const Group& parts = plan_.groups.back();
      use_turns(cdiv(last_->rows(), parts.rows_of_part));
      KILN_TRY(g, written(c, kProgramOfTotal, /*totals=*/-1, parts.rows_of_part));
      plan_.groups.back() = joined_rows(parts, g, last_->splits, turns_);
    } else {
      plan_.groups.push_back(std::move(g));
      last_ = &cluster;
    }
    group_of_.push_back(static_cast<int>(plan_.groups.size()) - 1);
    return {};
  }

  /// Has the plan a value with so many words in which programs count.
  void use_turns(int64_t words) {
    if (turns_ < 0) {
      turns_ = static_cast<int>(plan_.values.size());
      plan_.values.push_back({.dtype = DType::kI32, .shape = {1}, .strides = {1}, .name = "turns", .turns = true});
    }
    Shape& shape = plan_.values[at(turns_)].shape;
    shape[0] = std::max(shape[0], words);
  }

  /// The value in which the parts of the cluster's scans tell their totals, if they do; -1: none.
  int totals_of(const Cluster& cluster) {
    int64_t words = 0;
    for (int m : cluster.members) words += words_of_scan(dag_.nodes[at(m)]);
    if (words == 0) return -1;
    plan_.values.push_back({.dtype = DType::kI64, .shape = {words}, .strides = {1}, .name = "totals", .zeros = true});
    return static_cast<int>(plan_.values.size()) - 1;
  }

  Result<Group> written(size_t c, std::string_view program = kOwnProgram, int totals = -1,
                        int64_t rows_of_total = 0) const {
    const Cluster& cluster = grouping_.clusters[c];
    Group g;
    g.precedes_product = plan_.overlaps && c + 1 < grouping_.clusters.size() &&
                         grouping_.clusters[c + 1].form == Form::kProduct && !library();
    const WriteRequest request{graph_,    dag_,    grouping_,     cluster, options_.machine,
                               value_of_, program, rows_of_total, totals};
    g.name = cluster_name(request);
    account(cluster, g);
    if (cluster.form == Form::kProduct && library()) {
      const DagNode& p = dag_.nodes[at(cluster.members[0])];
      g.kind = GroupKind::kProduct;
      g.product.a = view_of(p.operands[0]);
      g.product.b = view_of(p.operands[1]);
      if (p.operands.size() > 2) g.product.bias = view_of(p.operands[2]);
      Operand out;
      out.node = cluster.members[0];
      out.shape = p.shape;
      out.strides = row_major(p.shape);
      g.product.out = view_of(out);
      g.product.activation = p.activation;
      g.product.tf32 = p.tf32;
      const size_t r = p.shape.size();
      g.shape = fmt::format("{} x {} x {}", p.shape[r - 2], p.shape[r - 1], p.operands[0].shape.back());
    } else if (cluster.form == Form::kProduct) {
      KILN_CHECK_OK(write_product(request, g));
    } else {
      KILN_CHECK_OK(write_loops(request, g));
    }
    return g;
  }

  /// What the group computes, reads and writes.
  void account(const Cluster& cluster, Group& g) const {
    std::map<int, int64_t> reads;
    for (int m : cluster.members) {
      const DagNode& n = dag_.nodes[at(m)];
      if (std::find(g.nodes.begin(), g.nodes.end(), n.origin) == g.nodes.end()) g.nodes.push_back(n.origin);
      g.nodes.insert(g.nodes.end(), n.absorbed.begin(), n.absorbed.end());
      for (const Operand& o : n.operands)
        if (!o.is_number() && !cluster.contains(o.node) && !dag_.nodes[at(o.node)].counts)
          reads[o.node] = std::max(reads[o.node], touched(o));
      const auto elements =
          static_cast<double>(n.kind == DagKind::kReduce ? numel(n.operands[0].shape) : numel(n.shape));
      g.flop += elements * (n.kind == DagKind::kProduct
                                ? 2.0 * static_cast<double>(n.operands[0].shape.back()) / static_cast<double>(n.splits)
                                : info(n.op).flop);
      if (!grouping_.stored[at(m)]) continue;
      if (std::ranges::find(g.writes, value_of_[at(m)]) == g.writes.end()) g.writes.push_back(value_of_[at(m)]);
      g.bytes += static_cast<double>(numel(n.shape)) * size_of(n.dtype);
    }
    std::sort(g.nodes.begin(), g.nodes.end());
    for (auto [node, elements] : reads) {
      g.reads.push_back(value_of_[at(node)]);
      g.bytes += static_cast<double>(elements) * size_of(dag_.nodes[at(node)].dtype);
    }
  }

  void outputs() {
    for (const Operand& o : dag_.outputs) {
      plan_.outputs.push_back(view_of(o));
      plan_.values[at(value_of_[at(o.node)])].output = true;
    }
    int results = 0, temporaries = 0;
    for (Value& v : plan_.values)
      if (v.name.empty()) v.name = v.output ? fmt::format("out{}", results++) : fmt::format("t{}", temporaries++);
  }

  /// When each value is used, and slots of memory that temporaries can take turns in.
  void lives() {
    std::set<int> written;
    const int count = static_cast<int>(plan_.groups.size());
    for (int g = 0; g < count; ++g) {
      for (int v : plan_.groups[at(g)].reads) plan_.values[at(v)].last_group = g;
      for (int v : plan_.groups[at(g)].writes) {
        Value& value = plan_.values[at(v)];
        if (written.insert(v).second) value.first_group = g;  // parts of it may come later
        value.last_group = g;
      }
    }
    std::vector<int> busy_until;
    for (int g = 0; g < count; ++g)
      for (int v : plan_.groups[at(g)].writes) {
        Value& value = plan_.values[at(v)];
        if (value.output) continue;
        size_t slot = 0;
        while (slot < busy_until.size() && busy_until[slot] >= g) ++slot;
        if (slot == busy_until.size()) busy_until.push_back(0);
        busy_until[slot] = value.last_group;
        value.slot = static_cast<int>(slot);
      }
  }

  void boundaries() {
    std::vector<std::pair<int, int>> edges;
    std::set<std::pair<int, int>> known;  // source and the group that reads it
    for (size_t i = 0; i < dag_.nodes.size(); ++i)
      for (const Operand& o : dag_.nodes[i].operands) {
        if (o.is_number() || grouping_.cluster_of[i] < 0) continue;
        const int from = grouping_.cluster_of[at(o.node)], to = grouping_.cluster_of[i];
        if (from >= 0 && from != to && known.emplace(o.node, to).second)
          edges.emplace_back(o.node, static_cast<int>(i));
      }
    const std::vector<Reason> reasons = why_apart(dag_, grouping_, options_, edges);
    for (size_t e = 0; e < edges.size(); ++e) {
      const auto [from, to] = edges[e];
      const DagNode& source = dag_.nodes[at(from)];
      const double bytes = 2.0 * static_cast<double>(numel(source.shape)) * size_of(source.dtype);
      const int from_group = group_of_[at(grouping_.cluster_of[at(from)])],
                to_group = group_of_[at(grouping_.cluster_of[at(to)])];
      if (from_group == to_group) continue;
      const auto same = std::ranges::find_if(plan_.boundaries, [&](const Boundary& b) {
        return b.from_group == from_group && b.to_group == to_group && b.cause == reasons[e].cause &&
               b.help == reasons[e].help;
      });
      if (same != plan_.boundaries.end())
        same->bytes += bytes;
      else
        plan_.boundaries.push_back(
            {source.origin, dag_.nodes[at(to)].origin, from_group, to_group, bytes, reasons[e].cause, reasons[e].help});
    }
  }

  const Graph& graph_;
  const PlanOptions& options_;
  Dag dag_;
  Grouping grouping_;
  Plan plan_;
  std::vector<int> value_of_;
  std::vector<int> group_of_;      // each cluster
  const Cluster* last_ = nullptr;  // of the last group, or the first of those in it
  int turns_ = -1;                 // the value that counts programs
};

}  // namespace

std::string_view name(Variant variant) {
  switch (variant) {
    case Variant::kUnfused:
      return "unfused";
    case Variant::kFused:
      return "fused";
    case Variant::kLibrary:
      return "library";
    case Variant::kLibraryEpilogue:
      return "library+epilogue";
  }
  return "";
}

int64_t Value::bytes() const {
  int64_t elements = numel(shape);
  // Of a buffer the rows may be padded.
  if (input < 0 && elements > 0 && shape.size() >= 2) elements = std::max(elements, shape[0] * strides[0]);
  return elements * size_of(dtype);
}

bool is_read_in_time(const Plan& plan, int read, int written, bool same_place) {
  const int first = plan.values[static_cast<size_t>(written)].first_group;
  for (size_t g = static_cast<size_t>(first); g < plan.groups.size(); ++g) {
    const Group& group = plan.groups[g];
    if (std::ranges::find(group.reads, read) == group.reads.end()) continue;
    const bool in_step = same_place && static_cast<int>(g) == first &&
                         std::ranges::find(group.in_place, std::pair(written, read)) != group.in_place.end();
    if (!in_step) return false;
  }
  return true;
}

double Plan::bytes() const {
  double sum = 0;
  for (const Group& g : groups) sum += g.bytes;
  return sum;
}

double Plan::flop() const {
  double sum = 0;
  for (const Group& g : groups) sum += g.flop;
  return sum;
}

Result<Plan> plan(const Graph& graph, const PlanOptions& options) { return Planner(graph, options).run(); }

}  // namespace kiln::fusion
