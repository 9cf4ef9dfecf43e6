// Which nodes share a kernel, and along which loops each of them runs.
#pragma once
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "compiler/fusion/dag.h"

namespace kiln::fusion {

enum class Form : uint8_t {
  kPointwise,  // every element of the dimensions alone
  kRows,       // the last dimensions are reduced; nodes are full, a row's (kept dimensions only), or neither
  kScan,       // running sums along the last dimension; every node is full, or a small tensor repeated
  kProduct,    // a product and what follows it element by element
};

/// Nodes that one kernel computes. Its dimensions are loops: those kept, then those reduced (or scanned); none has one
/// element.
struct Cluster {
  Form form = Form::kPointwise;
  std::vector<int> members;  // operands first
  Shape dims;
  int kept = 0;                        // the first so many dimensions are not reduced or scanned
  int64_t splits = 1;                  // kRows, kScan: parts in which each row is reduced or scanned
  int64_t chunk = 0;                   // columns of each part; 0: what suits its tiles
  bool reverse = false;                // kScan: from the end
  bool alone = false;                  // kProduct: what follows it moves too much memory for its programs
  std::vector<int> for_operands;       // kProduct: members that compute its operands where they are read, along
                                       // dimensions of their own, the last ones
  std::vector<std::vector<int>> maps;  // per member: for each dimension of its shape the cluster's, or -1 (one element)

  const std::vector<int>& map_of(int node) const;
  bool contains(int node) const;
  bool is_for_operands(int node) const { return std::ranges::find(for_operands, node) != for_operands.end(); }
  bool reduces() const { return form == Form::kRows; }
  int64_t rows() const;     // elements of the kept dimensions
  int64_t columns() const;  // of the reduced ones
};
/// In place of a dimension: the part of a split reduction.
inline constexpr int kSplitDim = -2;

/// The product that a kProduct cluster is about (others may make its operands), and the one that shares its loop, whose
/// left operand is the same; -1: there is none.
std::pair<int, int> products_of(const Dag& dag, const Cluster& cluster);

/// For each dimension of a node whose elements a product's operand reads, each once: that dimension of the operand of
/// which it is a part; -1 where it has one element. Nullopt where the operand repeats elements, but for the parts of a
/// split sum, or leaves some out.
std::optional<std::vector<int>> operand_dims(const DagNode& product, size_t operand, const Shape& shape);

/// For each dimension of an operand of `consumer` the cluster's dimension along which it is read.
std::vector<int> operand_map(const Dag& dag, const Cluster& cluster, int consumer, size_t operand);

/// Says of each product what its kernel will compute of its operands (DagNode::made).
void note_made_operands(Dag& dag, const PlanOptions& options);

struct Reason {
  std::string cause, help;
};

struct Grouping {
  std::vector<Cluster> clusters;  // in an order in which they can run
  std::vector<int> cluster_of;    // per node; -1 for leaves
  std::vector<bool> stored;       // per node: its elements go to memory
};

/// `fuse` false: only the parts of one operation share a kernel. Products are then clusters of their own; with fuse
/// they take what follows them, unless `library_products`.
Grouping group(const Dag& dag, const PlanOptions& options);

/// Has the parts of results that are put together of them stored where they belong, and removes the kernels that did
/// so.
void store_parts(Dag& dag, Grouping& grouping);

/// For each (from, to): why `from`, which is in another cluster, is not computed where `to` reads it.
std::vector<Reason> why_apart(const Dag& dag, const Grouping& grouping, const PlanOptions& options,
                              const std::vector<std::pair<int, int>>& edges);

int64_t cdiv(int64_t a, int64_t b);

}  // namespace kiln::fusion
