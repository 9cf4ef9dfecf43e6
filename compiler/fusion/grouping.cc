#include "compiler/fusion/grouping.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <numeric>

#include "compiler/fusion/heavy_epilogue.h"
#include "compiler/fusion/product_form.h"
#include "compiler/fusion/split.h"
#include "support/diag.h"

namespace kiln::fusion {

namespace {

/// Work that a small tensor repeats in every row that reads it, per element; more is worth a kernel of its own.
constexpr int kMostRepeatedFlop = 24;
/// Tensors that one kernel reads and writes. More of them where elements alone go from one operation to the next, as
/// the steps of a recurrence that is written out: cut, each part would be a launch, and what it leaves a tensor more.
constexpr size_t kMostOperands = 24, kMostOfElements = 96;
/// Elements of kernels whose launches are a good part of their time: two of them with the same loops are one.
constexpr int64_t kMostOfSmall = int64_t{1} << 21;
/// Operations of one kernel: what compiles in a moment.
constexpr size_t kMostMembers = 192;
/// Instructions for an element of kernels that have nothing in common but their loops, of which one kernel is made: it
/// saves launches, and a compiler takes longer than in proportion (7 steps of AdamW in bfloat16: 2 s of ptxas).
constexpr int kMostOfSiblings = 128;
/// Rows or columns of a product that one program has all of, or two have, which then compute an operand of few
/// operations twice; and elements of an operand that are worth it.
constexpr int64_t kMostOfOneProgram = 64, kMostOfTwoPrograms = 128, kLeastOfOperand = int64_t{1} << 16;
constexpr int kMostTwiceFlop = 3;
/// Operations that the kernel of rows does beside them, for what reads the same tensor.
constexpr size_t kMostOnTheWay = 16;

int64_t product(Shape::const_iterator first, Shape::const_iterator last) {
  return std::accumulate(first, last, int64_t{1}, std::multiplies<>());
}

int product_of(const Dag& dag, const Cluster& c) { return products_of(dag, c).first; }

/// Rows or columns of the result for which a product reads each element of an operand.
int64_t readers_of_operand(const DagNode& product, size_t i) {
  const ProductSize size = size_of_product(product);
  return i == 0 ? size.n : size.m;
}

struct Edge {
  int from, to;
  size_t operand;
};

using Verdict = std::variant<Cluster, Reason>;

class Grouper {
 public:
  Grouper(const Dag& dag, const PlanOptions& options) : dag_(dag), options_(options) {
    users_.resize(dag.nodes.size());
    output_.resize(dag.nodes.size());
    for (size_t n = 0; n < dag.nodes.size(); ++n)
      for (size_t i = 0; i < dag.nodes[n].operands.size(); ++i)
        if (const Operand& o = dag.nodes[n].operands[i]; !o.is_number())
          users_[at(o.node)].push_back({o.node, static_cast<int>(n), i});
    for (const Operand& o : dag.outputs) output_[at(o.node)] = true;
  }

  Grouping run() {
    cluster_of_.assign(dag_.nodes.size(), -1);
    for (size_t n = 0; n < dag_.nodes.size(); ++n) {
      if (dag_.nodes[n].kind == DagKind::kLeaf) continue;
      cluster_of_[n] = static_cast<int>(clusters_.size());
      clusters_.push_back(alone(static_cast<int>(n)));
      join_operands(n);
    }
    if (options_.variant != Variant::kUnfused) {
      // What stood between two of them may have joined one meanwhile.
      join_all();
      if (unload_epilogues()) join_all();
      join_siblings();
      join_readers_of_rows();
      // What two of those read is stored for neither now.
      join_all();
      if (options_.variant == Variant::kFused && options_.machine.gpu()) pair_products();
      if (options_.variant == Variant::kFused && options_.machine.gpu())
        for (size_t c = 0; c < clusters_.size(); ++c)
          for (size_t i : {0, 1}) join_operand(static_cast<int>(c), i);
    }
    return ordered();
  }

  void adopt(const Grouping& grouping) {
    clusters_ = grouping.clusters;
    cluster_of_ = grouping.cluster_of;
  }

  Verdict merged(int a, int b) const;

 private:
  Cluster alone(int node) const {
    const DagNode& n = dag_.nodes[at(node)];
    Cluster c;
    c.members = {node};
    c.maps.emplace_back();
    auto add_dim = [&](int64_t size) {
      if (size == 1) return -1;
      c.dims.push_back(size);
      return static_cast<int>(c.dims.size()) - 1;
    };
    const int last = n.kind == DagKind::kScan ? n.axes[0] : -1;
    const bool has_parts = n.kind == DagKind::kReduce && n.splits > 1;
    const size_t own = n.shape.size() - (has_parts ? 1 : 0);
    for (size_t d = 0; d < own; ++d) c.maps[0].push_back(static_cast<int>(d) == last ? -1 : add_dim(n.shape[d]));
    c.kept = static_cast<int>(c.dims.size());
    if (last >= 0) {
      c.form = Form::kScan;
      c.maps[0][at(last)] = add_dim(n.shape[at(last)]);
    }
    if (has_parts) c.maps[0].push_back(kSplitDim);
    c.splits = n.splits;
    c.chunk = n.chunk;
    c.reverse = n.reverse;
    if (n.kind == DagKind::kReduce) {
      c.form = Form::kRows;
      for (int d : n.axes) add_dim(n.operands[0].shape[at(d)]);
    }
    if (n.kind == DagKind::kProduct) c.form = Form::kProduct;
    return c;
  }

  void join(int a, int b) {
    if (a == b) return;
    Verdict v = merged(a, b);
    if (Cluster* c = std::get_if<Cluster>(&v)) replace(a, b, std::move(*c));
  }

  /// With the clusters that make what node n reads.
  void join_operands(size_t n) {
    for (const Operand& o : dag_.nodes[n].operands)
      if (!o.is_number() && cluster_of_[at(o.node)] >= 0) join(cluster_of_[at(o.node)], cluster_of_[n]);
  }

  void join_all() {
    for (size_t n = 0; n < dag_.nodes.size(); ++n) join_operands(n);
  }

  void replace(int a, int b, Cluster c) {
    for (int m : c.members) cluster_of_[at(m)] = b;
    clusters_[at(b)] = std::move(c);
    clusters_[at(a)].members.clear();
  }

  /// Why what makes a product's operand is not computed where the product reads it, with the edit for the ways to make
  /// one.
  Reason operand_reason(const Cluster& x, const Cluster& product) const {
    const DagNode& p = dag_.nodes[at(product.members[0])];
    const std::string cause =
        "a product reads each element of its operands many times, so they are computed once and stored";
    const DagNode& made = dag_.nodes[at(x.members.back())];
    if (made.row_stride > 0)
      return {
          "the operand is copied, since blocks of rows that begin at odd addresses, or not along k, are slow to read",
          "keep it in rows of whole 128 bytes"};
    if (x.form == Form::kProduct)
      return {cause, "nothing, as long as the first has no narrow dimension: (a @ b) @ c may cost less as a @ (b @ c)"};
    if (x.reduces()) return {cause, ""};
    const bool only_casts =
        std::all_of(x.members.begin(), x.members.end(), [&](int m) { return dag_.nodes[at(m)].op == ExprOp::kCast; });
    if (only_casts)
      return {cause,
              fmt::format("keep the operand in {}, converted once where it is made", kiln::name(p.operand_type))};
    // What scales by one number, or along a dimension that the product keeps, can be done to its result.
    const bool scales =
        x.members.size() <= 2 && std::all_of(x.members.begin(), x.members.end(), [&](int m) {
          const DagNode& n = dag_.nodes[at(m)];
          return n.op == ExprOp::kCast || ((n.op == ExprOp::kMul || n.op == ExprOp::kDiv) && scale_is_outside(n, p));
        });
    if (scales)
      return {cause, "scale the product instead, as in (x @ w) * s: that is part of its kernel, and rounds once less"};
    return {cause, "apply it where the operand is made, in the kernel that writes it"};
  }

  /// Whether one operand of a multiplication is one number for all, or varies along dimensions that the product keeps.
  static bool scale_is_outside(const DagNode& n, const DagNode& p) {
    for (const Operand& o : n.operands) {
      if (o.is_number()) return true;
      const bool left =
          !p.operands.empty() && p.operands[0].shape.size() == o.shape.size() && p.operands[0].shape == n.shape;
      const size_t rank = o.strides.size();
      if (rank < 2) continue;
      const size_t depth = left ? rank - 1 : rank - 2;  // the dimension that the product sums over
      const bool along_depth = o.strides[depth] != 0 && o.shape[depth] != 1;
      if (!along_depth && p.operands[left ? 0 : 1].shape == n.shape) return true;
    }
    return false;
  }

  /// Tensors outside of both that they read, and those of them that others read.
  size_t operands(const Cluster& a, const Cluster& b) const {
    std::vector<int> seen;
    for (const Cluster* c : {&a, &b})
      for (int m : c->members) {
        for (const Operand& o : dag_.nodes[at(m)].operands)
          if (!o.is_number() && !a.contains(o.node) && !b.contains(o.node)) seen.push_back(o.node);
        if (leaves(a, b, m)) seen.push_back(m);
      }
    std::sort(seen.begin(), seen.end());
    return static_cast<size_t>(std::unique(seen.begin(), seen.end()) - seen.begin());
  }

  bool leaves(const Cluster& a, const Cluster& b, int node) const {
    return output_[at(node)] || std::any_of(users_[at(node)].begin(), users_[at(node)].end(),
                                            [&](const Edge& e) { return !a.contains(e.to) && !b.contains(e.to); });
  }

  /// The members that are reductions, or are computed from one.
  std::vector<int> behind_reductions(const Cluster& c) const {
    std::vector<int> out;
    auto is_behind = [&](const Operand& o) { return !o.is_number() && std::ranges::find(out, o.node) != out.end(); };
    for (int m : c.members)
      if (const DagNode& n = dag_.nodes[at(m)];
          n.kind == DagKind::kReduce || std::ranges::any_of(n.operands, is_behind))
        out.push_back(m);
    return out;
  }

  /// Whether something between them would have to run after a and before b.
  bool path_outside(int a, int b) const {
    std::vector<bool> seen(clusters_.size());
    std::vector<int> work;
    auto follow = [&](int cluster) {
      for (int m : clusters_[at(cluster)].members)
        for (const Edge& e : users_[at(m)]) {
          const int next = cluster_of_[at(e.to)];
          if (next < 0 || next == cluster || seen[at(next)] || (cluster == a && next == b)) continue;
          seen[at(next)] = true;
          work.push_back(next);
        }
    };
    follow(a);
    while (!work.empty()) {
      const int c = work.back();
      work.pop_back();
      if (c == b) return true;
      follow(c);
    }
    return false;
  }

  int instructions(const Cluster& c) const {
    return std::accumulate(c.members.begin(), c.members.end(), 0,
                           [&](int sum, int m) { return sum + instructions_of(dag_.nodes[at(m)]); });
  }

  void join_siblings() {
    for (size_t b = 0; b < clusters_.size(); ++b)
      for (size_t a = 0; a < b; ++a) {
        Cluster &x = clusters_[a], &y = clusters_[b];
        if (x.members.empty() || y.members.empty() || x.form == Form::kProduct || x.form != y.form ||
            x.dims != y.dims || x.kept != y.kept || x.splits != y.splits || x.chunk != y.chunk ||
            x.reverse != y.reverse || numel(x.dims) == 0 || (numel(x.dims) > kMostOfSmall && !share_read(x, y)))
          continue;
        if (x.members.size() + y.members.size() > kMostMembers || operands(x, y) > kMostOperands ||
            instructions(x) + instructions(y) > kMostOfSiblings ||
            path_outside(static_cast<int>(a), static_cast<int>(b)) ||
            path_outside(static_cast<int>(b), static_cast<int>(a)) || adjacent(x, y))
          continue;
        Cluster c = y;
        add_members(c, x, [](int d) { return d; });
        replace(static_cast<int>(a), static_cast<int>(b), std::move(c));
      }
  }

  /// Takes from products on a GPU the epilogues that are faster in a kernel of their own. Gives whether there was one.
  bool unload_epilogues() {
    if (options_.variant != Variant::kFused || !options_.machine.gpu()) return false;
    const size_t count = clusters_.size();
    for (size_t c = 0; c < count; ++c) {
      if (clusters_[c].form != Form::kProduct || clusters_[c].members.size() < 2) continue;
      const Cluster all = clusters_[c];
      const int node = product_of(dag_, all);
      std::vector<bool> leaving;
      for (int m : all.members) leaving.push_back(leaves(all, all, m));
      const std::vector<int> stay = members_beside_product(dag_, options_.machine, all, node, leaving);
      if (stay.size() == all.members.size()) continue;
      Cluster head = all, rest = all;
      head.alone = true;
      rest.form = Form::kPointwise;
      for (Cluster* part : {&head, &rest}) part->members.clear(), part->maps.clear();
      for (size_t i = 0; i < all.members.size(); ++i) {
        Cluster& of = std::ranges::find(stay, all.members[i]) != stay.end() ? head : rest;
        of.members.push_back(all.members[i]);
        of.maps.push_back(all.maps[i]);
      }
      for (int m : rest.members) cluster_of_[at(m)] = static_cast<int>(clusters_.size());
      clusters_[c] = std::move(head);
      clusters_.push_back(std::move(rest));
    }
    return clusters_.size() > count;
  }

  bool adjacent(const Cluster& x, const Cluster& y) const {
    for (auto [p, q] : {std::pair(&x, &y), std::pair(&y, &x)})
      for (int m : p->members)
        for (const Edge& e : users_[at(m)])
          if (q->contains(e.to)) return true;
    return false;
  }

  /// A tensor outside of a cluster that it reads in full, each element once: strides along the cluster's dimensions.
  struct FullRead {
    int node;
    int64_t offset;
    Shape strides;
    bool operator==(const FullRead&) const = default;
  };
  std::vector<FullRead> full_reads(const Cluster& c) const {
    std::vector<FullRead> out;
    for (int m : c.members)
      for (size_t i = 0; i < dag_.nodes[at(m)].operands.size(); ++i) {
        const Operand& o = dag_.nodes[at(m)].operands[i];
        if (o.is_number() || dag_.nodes[at(o.node)].counts || c.contains(o.node)) continue;
        Shape strides(c.dims.size(), 0);
        const std::vector<int> map = operand_map(dag_, c, m, i);
        for (size_t d = 0; d < map.size(); ++d)
          if (map[d] >= 0) strides[at(map[d])] = o.strides[d];
        if (std::find(strides.begin(), strides.end(), 0) != strides.end()) continue;
        out.push_back({o.node, o.offset, std::move(strides)});
      }
    return out;
  }

  /// Whether it reads a tensor that has fewer elements than its loops.
  bool repeats_a_tensor(const Cluster& c) const {
    return std::ranges::any_of(c.members, [&](int m) {
      return std::ranges::any_of(dag_.nodes[at(m)].operands, [&](const Operand& o) {
        return !o.is_number() && !c.contains(o.node) && numel(dag_.nodes[at(o.node)].shape) < numel(c.dims);
      });
    });
  }

  /// A tensor of full size that both read along the same loops.
  bool share_read(const Cluster& x, const Cluster& y) const {
    const std::vector<FullRead> left = full_reads(x), right = full_reads(y);
    return std::ranges::any_of(left, [&](const FullRead& r) { return std::ranges::find(right, r) != right.end(); });
  }

  /// For each dimension of the first cluster the second's along which a tensor lies that both read in full; nullopt
  /// where there is none, or one reads it in another way.
  std::optional<std::vector<int>> shared_dims(const Cluster& x, const Cluster& y) const {
    if (x.dims.size() != y.dims.size()) return std::nullopt;
    const std::vector<FullRead> theirs = full_reads(y);
    for (const FullRead& a : full_reads(x))
      for (const FullRead& b : theirs) {
        if (a.node != b.node || a.offset != b.offset) continue;
        std::vector<int> to(x.dims.size(), -1);
        for (size_t d = 0; d < x.dims.size(); ++d)
          for (int e = 0; at(e) < y.dims.size(); ++e)
            if (a.strides[d] == b.strides[at(e)] && x.dims[d] == y.dims[at(e)] && to[d] < 0 &&
                std::ranges::find(to, e) == to.end())  // windows have two dimensions of one stride
              to[d] = e;
        if (std::ranges::find(to, -1) == to.end()) return to;
      }
    return std::nullopt;
  }

  /// Whether a program has whole rows of both, so that it can reduce what it scans, or scan what it reduced.
  bool share_tiles(const Cluster& scan, const Cluster& rows) const {
    if (scan.splits > 1 || rows.splits > 1 || (rows.form == Form::kScan && rows.reverse != scan.reverse) ||
        static_cast<int>(rows.dims.size()) != rows.kept + 1 || scan.dims.back() != rows.dims.back() ||
        scan.dims.back() > kSplitUnit)
      return false;
    auto runs_along = [&](const Cluster& c) {
      return std::ranges::all_of(full_reads(c), [](const FullRead& r) { return r.strides.back() == 1; });
    };
    return runs_along(scan) && runs_along(rows);
  }

  /// Whether one loop scans both along their dimension, or the parts of a row tell the totals of both.
  bool share_loop(const Cluster& a, const Cluster& b) const {
    if (a.form != Form::kScan || b.form != Form::kScan || a.reverse != b.reverse || a.splits != b.splits ||
        a.chunk != b.chunk)
      return false;
    auto scans_alone = [&](int m) {
      const DagNode& n = dag_.nodes[at(m)];
      return n.kind == DagKind::kPointwise || (n.kind == DagKind::kScan && (n.splits == 1 || looks_back(n)));
    };
    return std::ranges::all_of(a.members, scans_alone) && std::ranges::all_of(b.members, scans_alone);
  }

  /// Pointwise clusters that read what rows are reduced from: the rows' kernel stores their results on its way.
  void join_readers_of_rows() {
    for (size_t r = 0; r < clusters_.size(); ++r)
      for (size_t p = 0; p < clusters_.size(); ++p) {
        const Cluster &rows = clusters_[r], &pointwise = clusters_[p];
        if (!rows.reduces() || pointwise.form != Form::kPointwise || rows.members.empty() ||
            pointwise.members.empty() || pointwise.members.size() > kMostOnTheWay ||
            rows.members.size() + pointwise.members.size() > kMostMembers || operands(rows, pointwise) > kMostOperands)
          continue;
        const auto to = shared_dims(pointwise, rows);
        // Where each element divides its place for what it shares with others, a CPU is three times as slow.
        if (!to || (!options_.machine.gpu() && repeats_a_tensor(pointwise)) || adjacent(rows, pointwise) ||
            path_outside(static_cast<int>(p), static_cast<int>(r)) ||
            path_outside(static_cast<int>(r), static_cast<int>(p)))
          continue;
        Cluster c = rows;
        add_members(c, pointwise, [&](int d) { return (*to)[at(d)]; });
        replace(static_cast<int>(p), static_cast<int>(r), std::move(c));
      }
  }

  /// Products of one left operand, of which one is read by what follows the other alone, as a gate and what it gates:
  /// one kernel has both sums. The left operand is read once, the first result is not stored, and there are twice as
  /// many tiles to fill the last round with.
  void pair_products() {
    for (size_t b = 0; b < clusters_.size(); ++b) {
      if (clusters_[b].members.empty() || clusters_[b].form != Form::kProduct) continue;
      for (size_t a = 0; a < clusters_.size(); ++a)
        if (a != b && is_twin(static_cast<int>(a), static_cast<int>(b))) {
          Cluster c = clusters_[b];
          add_members(c, clusters_[a], [](int d) { return d; });
          replace(static_cast<int>(a), static_cast<int>(b), std::move(c));
          break;
        }
    }
  }

  bool is_twin(int a, int b) const {
    const Cluster &x = clusters_[at(a)], &y = clusters_[at(b)];
    if (x.members.empty() || x.form != Form::kProduct || x.dims != y.dims || x.alone || y.alone ||
        x.members.size() + y.members.size() > kMostEpilogue || operands(x, y) > kMostOperands)
      return false;
    const auto [p, second_p] = products_of(dag_, x);
    const auto [q, second_q] = products_of(dag_, y);
    const DagNode &first = dag_.nodes[at(p)], &second = dag_.nodes[at(q)];
    if (second_p >= 0 || second_q >= 0 || !is_same(first.operands[0], second.operands[0]) ||
        first.operand_type != second.operand_type || first.tf32 != second.tf32 ||
        first.batch_dims != second.batch_dims || first.shape != second.shape || first.splits > 1 || second.splits > 1)
      return false;
    bool meets = false;
    for (int m : x.members) {
      if (leaves(x, y, m)) return false;
      for (const Edge& e : users_[at(m)]) {
        if (!y.contains(e.to)) continue;
        meets = true;
        if (!is_whole(dag_.nodes[at(e.to)].operands[e.operand], dag_.nodes[at(m)].shape) ||
            operand_map(dag_, y, e.to, e.operand) != x.map_of(m))
          return false;
      }
    }
    return meets && !path_outside(a, b) && pair_pays(dag_, first, second, options_.machine);
  }

  /// Makes what computes an operand of a product part of its kernel, where no element is needed by two programs, or
  /// little is computed twice: stored, it would be written and read once more.
  void join_operand(int product, size_t i) {
    const Cluster& p = clusters_[at(product)];
    if (p.form != Form::kProduct || p.members.empty() || products_of(dag_, p).second >= 0) return;
    const int node = product_of(dag_, p);
    const DagNode& n = dag_.nodes[at(node)];
    const Operand& o = n.operands[i];
    const int maker = cluster_of_[at(o.node)];
    const int64_t others = readers_of_operand(n, i);
    if (maker < 0 || maker == product || others > kMostOfTwoPrograms) return;
    const Cluster& x = clusters_[at(maker)];
    if (others > kMostOfOneProgram && !is_quick_twice(x)) return;
    if (x.form != Form::kPointwise || x.members.size() + p.members.size() > kMostMembers ||
        operands(x, p) > kMostOperands || dag_.nodes[at(o.node)].row_stride > 0 ||
        !operand_dims(n, i, dag_.nodes[at(o.node)].shape) || numel(dag_.nodes[at(o.node)].shape) < kLeastOfOperand)
      return;
    for (int m : x.members) {
      const bool is_read_once = users_[at(m)].size() == 1 && users_[at(m)][0].to == node;
      if (m == o.node ? !is_read_once || output_[at(m)] : leaves(x, x, m)) return;
    }
    Cluster c = p;
    const int first = static_cast<int>(c.dims.size());
    c.dims.insert(c.dims.end(), x.dims.begin(), x.dims.end());
    add_members(c, x, [&](int d) { return d + first; });
    c.for_operands.insert(c.for_operands.end(), x.members.begin(), x.members.end());
    replace(maker, product, std::move(c));
  }

  /// Whether so many operations for each element of a cluster take less than a kernel of their own.
  bool is_repeated_sooner(const Cluster& of, int flop) const {
    if (!options_.machine.gpu()) return false;
    const target::Rates& rates = options_.machine.rates();
    return static_cast<double>(of.rows()) * static_cast<double>(of.columns()) * flop <
           rates.kernel_us / 2 * rates.pointwise_flop_per_us;
  }

  /// Whether a small cluster's instructions for each element of another one take longer than a kernel of their own and
  /// what it stores (the buckets of a table of distances, which each head and each sequence repeats). Of fewer
  /// instructions an element's memory takes as long, and of few repetitions (four boxes' sides that lie side by side) a
  /// thread does all. `along_rows`: the last dimension repeats them, along which a thread has several elements.
  bool is_repeated_dearly(const Cluster& x, const Cluster& y, bool along_rows) const {
    constexpr int kLeastInstructions = 24, kOfThread = 8, kOften = 8;
    const int each = instructions(x) / (along_rows ? kOfThread : 1);
    if (!options_.machine.gpu() || each < kLeastInstructions) return false;
    auto elements = [](const Cluster& c) { return static_cast<double>(c.rows()) * static_cast<double>(c.columns()); };
    if (elements(y) < kOften * elements(x)) return false;
    double stored = 0;
    for (int m : x.members)
      if (std::ranges::any_of(users_[at(m)], [&](const Edge& e) { return y.contains(e.to); }))
        stored += static_cast<double>(numel(dag_.nodes[at(m)].shape)) * size_of(dag_.nodes[at(m)].dtype);
    const target::Rates& rates = options_.machine.rates();
    return (elements(y) - elements(x)) * each / rates.pointwise_flop_per_us >
           rates.kernel_us + 2 * stored / rates.pointwise_bytes_per_us;
  }

  /// Whether two programs may compute an operand: of few operations, or windows, of which more are stored than read
  /// (int4 weights of 4096 x 1024 for 112 rows on an H100: 50 us so, 12 stored).
  bool is_quick_twice(const Cluster& operand) const {
    int flop = 0;
    for (int m : operand.members) {
      if (dag_.nodes[at(m)].op == ExprOp::kTake) return true;
      flop += info(dag_.nodes[at(m)].op).flop;
    }
    return flop <= kMostTwiceFlop;
  }

  /// Those of another cluster too, each of whose dimensions is that of `c` which `dim_of` says.
  template <class DimOf>
  static void add_members(Cluster& c, const Cluster& other, DimOf&& dim_of) {
    for (size_t i = 0; i < other.members.size(); ++i) {
      std::vector<int> map = other.maps[i];
      for (int& d : map)
        if (d >= 0) d = dim_of(d);
      c.members.push_back(other.members[i]);
      c.maps.push_back(std::move(map));
    }
    sort_members(c);
  }

  static void sort_members(Cluster& c) {
    std::vector<size_t> order(c.members.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::sort(order.begin(), order.end(), [&](size_t i, size_t j) { return c.members[i] < c.members[j]; });
    Cluster out = c;
    for (size_t i = 0; i < order.size(); ++i) {
      out.members[i] = c.members[order[i]];
      out.maps[i] = c.maps[order[i]];
    }
    c = std::move(out);
  }

  Grouping ordered() const {
    Grouping g;
    g.cluster_of.assign(dag_.nodes.size(), -1);
    g.stored.assign(dag_.nodes.size(), false);
    // Clusters whose operands are all there, the one with the earliest node first.
    std::vector<size_t> left;
    for (size_t c = 0; c < clusters_.size(); ++c)
      if (!clusters_[c].members.empty()) left.push_back(c);
    std::vector<bool> done(clusters_.size());
    while (!left.empty()) {
      auto ready = [&](size_t c) {
        for (int m : clusters_[c].members)
          for (const Operand& o : dag_.nodes[at(m)].operands)
            if (!o.is_number() && cluster_of_[at(o.node)] >= 0 && cluster_of_[at(o.node)] != static_cast<int>(c) &&
                !done[at(cluster_of_[at(o.node)])])
              return false;
        return true;
      };
      auto best = left.end();
      for (auto it = left.begin(); it != left.end(); ++it)
        if (ready(*it) && (best == left.end() || clusters_[*it].members[0] < clusters_[*best].members[0])) best = it;
      KILN_ASSERT(best != left.end(), "clusters wait for each other");
      for (int m : clusters_[*best].members) g.cluster_of[at(m)] = static_cast<int>(g.clusters.size());
      g.clusters.push_back(clusters_[*best]);
      done[*best] = true;
      left.erase(best);
    }
    for (const Cluster& c : g.clusters)
      for (int m : c.members) g.stored[at(m)] = leaves(c, c, m);
    return g;
  }

  const Dag& dag_;
  const PlanOptions& options_;
  std::vector<std::vector<Edge>> users_;
  std::vector<bool> output_;
  std::vector<Cluster> clusters_;
  std::vector<int> cluster_of_;
};

Verdict Grouper::merged(int a, int b) const {
  const Cluster &x = clusters_[at(a)], &y = clusters_[at(b)];
  const DagNode &first_x = dag_.nodes[at(x.members[0])], &first_y = dag_.nodes[at(y.members[0])];
  if (options_.variant == Variant::kUnfused && first_x.origin != first_y.origin)
    return Reason{"unfused: every operation has its own kernel", "run the fused variant"};
  if (y.form == Form::kProduct) return operand_reason(x, y);
  if (x.form == Form::kProduct) {
    if (options_.variant == Variant::kLibrary || options_.variant == Variant::kLibraryEpilogue)
      return Reason{"the library's product ends with its own result", "run the fused variant"};
    if (x.alone) return Reason{"what follows reads and writes so much that it is faster in a kernel of its own", ""};
    if (std::ranges::any_of(y.members, [&](int m) { return dag_.nodes[at(m)].op == ExprOp::kPut; }))
      return Reason{"a product stores tiles, and what is put goes to places of its own", ""};
    if (y.reduces() || y.form == Form::kScan)
      return Reason{"a reduction needs whole rows of the product, and a program has one tile of it", ""};
  }
  for (int m : y.members)
    if (const DagNode& n = dag_.nodes[at(m)];
        n.kind == DagKind::kScan && n.splits > 1 && !looks_back(n) && x.contains(n.operands[1].node))
      return Reason{"each part of a running sum begins with the sum of all parts before it", ""};
  for (auto [s, other] : {std::pair(&x, &y), std::pair(&y, &x)})
    if (s->form == Form::kScan && other->form != Form::kPointwise && !share_tiles(*s, *other) &&
        !share_loop(*s, *other))
      return Reason{"a running sum needs its own loop along its dimension", ""};
  std::vector<Edge> edges;
  for (int m : x.members)
    for (const Edge& e : users_[at(m)])
      if (y.contains(e.to)) edges.push_back(e);
  KILN_ASSERT(!edges.empty(), "clusters {} and {} do not meet", a, b);
  if (x.members.size() + y.members.size() > kMostMembers)
    return Reason{fmt::format("together they are more than {} operations", kMostMembers), ""};
  if (path_outside(a, b))
    return Reason{"another kernel must run between them, since it needs the first's result and the second needs its",
                  ""};
  const size_t most = x.form == Form::kPointwise && y.form == Form::kPointwise && options_.machine.gpu()
                          ? kMostOfElements
                          : kMostOperands;
  if (operands(x, y) > most) return Reason{fmt::format("together they read and write more than {} tensors", most), ""};

  // The dimension of y for each of x, from the first edge.
  std::vector<int> to_y(x.dims.size(), -1);
  auto related = [&](const Edge& e, auto&& visit) -> bool {
    const Operand& o = dag_.nodes[at(e.to)].operands[e.operand];
    const auto axes = axis_map(o, dag_.nodes[at(e.from)].shape);
    if (!axes) return false;
    const std::vector<int>&from = x.map_of(e.from), to = operand_map(dag_, y, e.to, e.operand);
    for (size_t d = 0; d < axes->size(); ++d)
      if ((*axes)[d] >= 0 && !visit(from[at((*axes)[d])], to[d])) return false;
    return true;
  };
  Reason reordered = {"the second reads a slice, or reads in another order than the first computes in",
                      "reshape or slice the inputs instead of the result"};
  if (!related(edges[0], [&](int from, int to) {
        if (from < 0 || to < 0) return false;
        to_y[at(from)] = to;
        return true;
      })) {
    if (x.reduces() && x.splits > 1) return Reason{"the parts of a reduction are all needed before their sum", ""};
    return reordered;
  }
  std::vector<int> free_x, free_y;
  for (size_t d = 0; d < x.dims.size(); ++d)
    if (to_y[d] < 0) free_x.push_back(static_cast<int>(d));
  for (size_t d = 0; d < y.dims.size(); ++d)
    if (std::find(to_y.begin(), to_y.end(), static_cast<int>(d)) == to_y.end()) free_y.push_back(static_cast<int>(d));
  const bool only_reduced = std::all_of(free_x.begin(), free_x.end(), [&](int d) { return d >= x.kept; });
  if (!free_x.empty()) {
    // A row's result, read by the row's own elements or by what goes on with one per row.
    const bool whole_rows = only_reduced && static_cast<int>(x.dims.size()) - x.kept == static_cast<int>(free_x.size());
    if (!(x.reduces() || x.form == Form::kScan) || !whole_rows) return reordered;
    if (!free_y.empty()) {
      if (free_x.size() != free_y.size())
        return Reason{"the second's rows have another shape than the first reduces", ""};
      for (size_t i = 0; i < free_x.size(); ++i) {
        if (x.dims[at(free_x[i])] != y.dims[at(free_y[i])])
          return Reason{"the second's rows have another length than the first reduces", ""};
        to_y[at(free_x[i])] = free_y[i];
      }
      free_y.clear();
    } else if (y.form != Form::kPointwise) {
      return Reason{"the second reduces over the first's results, which are computed one per program",
                    "reduce over both sets of dimensions at once"};
    }
  } else if (!free_y.empty()) {
    // A small tensor that the second repeats: computed again wherever it is read.
    if (x.form != Form::kPointwise)
      return Reason{"the first's result is repeated along dimensions that its own kernel does not have", ""};
    const bool per_row = y.reduces() && std::all_of(free_y.begin(), free_y.end(), [&](int d) { return d >= y.kept; });
    int flop = 0;
    for (int m : x.members) {
      constexpr int kOfLookedUp = 8;  // its place, whether that is inside, and a load
      const ExprOp op = dag_.nodes[at(m)].op;
      flop += op == ExprOp::kTake ? kOfLookedUp : info(op).flop;
      if (leaves(x, y, m) && !per_row)
        return Reason{"the first's result is stored, and the second's programs would each store it again", ""};
    }
    constexpr int64_t kLongRow = 64;
    const bool along_rows = free_y.back() + 1 == static_cast<int>(y.dims.size()) && y.dims.back() >= kLongRow;
    if (!per_row &&
        (is_repeated_dearly(x, y, along_rows) || (flop > kMostRepeatedFlop && !is_repeated_sooner(y, flop))))
      return Reason{"the first is small and costly, and every row of the second would compute it again", ""};
  }
  // Reductions must agree on what they reduce, and on the number of parts.
  auto has_columns = [](const Cluster& c) { return c.reduces() || c.form == Form::kScan; };
  if (has_columns(x) && has_columns(y)) {
    std::vector<int> image;
    for (size_t d = at(x.kept); d < x.dims.size(); ++d) image.push_back(to_y[d]);
    std::vector<int> theirs(y.dims.size() - at(y.kept));
    std::iota(theirs.begin(), theirs.end(), y.kept);
    if (image != theirs)
      return Reason{"the two reduce over different dimensions", "reduce over both sets of dimensions at once"};
  }
  if ((x.splits > 1 || y.splits > 1) && x.reduces() && (y.reduces() || x.splits > 1)) {
    // What both reduce may be computed by one of them, as long as their parts are the same.
    const std::vector<int> parts = behind_reductions(x);
    const bool beside =
        y.reduces() && x.splits == y.splits && x.chunk == y.chunk &&
        std::ranges::none_of(edges, [&](const Edge& e) { return std::ranges::find(parts, e.from) != parts.end(); });
    if (!beside) return Reason{"the parts of a reduction are all needed before their sum", ""};
  }

  // The loops are those of the reducing one, or of the larger.
  const bool as_x = x.form == Form::kProduct || x.form == Form::kScan ||
                    (x.reduces() && y.form != Form::kScan && (!y.reduces() || x.dims.size() > y.dims.size()));
  Cluster out = as_x ? x : y;
  std::vector<int> from_y(y.dims.size(), -1);
  for (size_t d = 0; d < to_y.size(); ++d)
    if (to_y[d] >= 0) from_y[at(to_y[d])] = static_cast<int>(d);
  const Cluster& other = as_x ? y : x;
  const std::vector<int>& rename = as_x ? from_y : to_y;
  add_members(out, other, [&](int d) { return rename[at(d)]; });
  for (const Edge& e : edges)
    if (!related(e, [&](int from, int to) { return from >= 0 && to >= 0 && to_y[at(from)] == to; })) return reordered;
  return out;
}

}  // namespace

const std::vector<int>& Cluster::map_of(int node) const {
  const auto it = std::find(members.begin(), members.end(), node);
  KILN_ASSERT(it != members.end(), "node {} is in another cluster", node);
  return maps[static_cast<size_t>(it - members.begin())];
}

bool Cluster::contains(int node) const { return std::find(members.begin(), members.end(), node) != members.end(); }

int64_t Cluster::rows() const { return product(dims.begin(), dims.begin() + kept); }
int64_t Cluster::columns() const { return product(dims.begin() + kept, dims.end()); }

std::pair<int, int> products_of(const Dag& dag, const Cluster& c) {
  std::pair<int, int> out = {-1, -1};
  for (int m : c.members)
    if (dag.nodes[at(m)].kind == DagKind::kProduct && !c.is_for_operands(m))
      (out.first < 0 ? out.first : out.second) = m;
  KILN_ASSERT(out.first >= 0, "a cluster of {} members without its product", c.members.size());
  return out;
}

std::optional<std::vector<int>> operand_dims(const DagNode& product, size_t i, const Shape& shape) {
  const Operand& operand = product.operands[i];
  std::vector<int> of(shape.size(), -1);
  if (operand.offset != 0) return std::nullopt;
  const Shape strides = row_major(shape);
  for (size_t d = 0; d < operand.shape.size(); ++d) {
    if (operand.shape[d] == 1) continue;
    if (d == 0 && product.splits > 1) continue;
    // The node's dimensions from the innermost one that it counts along outwards.
    int64_t left = operand.shape[d], stride = operand.strides[d];
    for (size_t e = shape.size(); e-- > 0 && left > 1;) {
      if (shape[e] < 2 || strides[e] != stride) continue;  // one of no elements has the stride of the next one
      if (of[e] >= 0 || left % shape[e] != 0) return std::nullopt;
      of[e] = static_cast<int>(d);
      left /= shape[e], stride *= shape[e];
    }
    if (left != 1) return std::nullopt;
  }
  for (size_t e = 0; e < shape.size(); ++e)
    if (of[e] < 0 && shape[e] != 1) return std::nullopt;
  return of;
}

std::vector<int> operand_map(const Dag& dag, const Cluster& cluster, int consumer, size_t operand) {
  const DagNode& n = dag.nodes[at(consumer)];
  const std::vector<int>& own = cluster.map_of(consumer);
  if (n.kind == DagKind::kPointwise || (n.kind == DagKind::kScan && operand == 0)) return own;
  const Operand& o = n.operands[operand];
  if (n.kind == DagKind::kScan) {  // the totals of parts: a program reads many of those along the last dimension
    std::vector<int> map = own;
    map.erase(map.begin() + n.axes[0]);
    map.push_back(-1);
    return map;
  }
  std::vector<int> map(o.shape.size(), -1);
  if (n.kind == DagKind::kProduct) return map;
  // The kept dimensions are the result's, the reduced ones the cluster's last, in order.
  size_t kept = 0;
  int reduced = cluster.kept;
  for (size_t d = 0; d < o.shape.size(); ++d) {
    if (!std::binary_search(n.axes.begin(), n.axes.end(), static_cast<int>(d)))
      map[d] = own[kept++];
    else if (o.shape[d] != 1)
      map[d] = reduced++;
  }
  return map;
}

Grouping group(const Dag& dag, const PlanOptions& options) { return Grouper(dag, options).run(); }

void note_made_operands(Dag& dag, const PlanOptions& options) {
  // Nodes are grouped for this alone, so not for products that surely read their operands.
  auto may_make = [&](const DagNode& n, size_t i) {
    const Operand& o = n.operands[i];
    return !o.is_number() && dag.nodes[at(o.node)].kind == DagKind::kPointwise &&
           readers_of_operand(n, i) <= kMostOfTwoPrograms;
  };
  const bool any = std::ranges::any_of(
      dag.nodes, [&](const DagNode& n) { return n.kind == DagKind::kProduct && (may_make(n, 0) || may_make(n, 1)); });
  if (!any || !options.machine.gpu()) return;
  for (const Cluster& c : group(dag, options).clusters) {
    if (c.for_operands.empty()) continue;
    DagNode& p = dag.nodes[at(product_of(dag, c))];
    int flop = 0;
    for (int m : c.for_operands) flop += std::max(1, info(dag.nodes[at(m)].op).flop);
    for (size_t i : {0, 1})
      if (c.is_for_operands(p.operands[i].node)) p.made[i] = flop;
  }
}

std::vector<Reason> why_apart(const Dag& dag, const Grouping& grouping, const PlanOptions& options,
                              const std::vector<std::pair<int, int>>& edges) {
  Grouper g(dag, options);
  g.adopt(grouping);
  std::vector<Reason> out;
  for (auto [from, to] : edges) {
    Verdict v = g.merged(grouping.cluster_of[at(from)], grouping.cluster_of[at(to)]);
    const Reason* r = std::get_if<Reason>(&v);
    out.push_back(r ? *r : Reason{"they met only after each had joined another kernel", ""});
  }
  return out;
}

int64_t cdiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

}  // namespace kiln::fusion
