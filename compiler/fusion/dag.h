// The form of an expression for grouping and code generation: few kinds of nodes, views folded into strides, every
// operand of a pointwise node in one type, norms and softmax taken apart.
#pragma once
#include <array>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "compiler/fusion/graph.h"
#include "compiler/fusion/plan.h"
#include "kiln/result.h"

namespace kiln::fusion {

/// Elements of a node as a strided tensor. A node's own elements are row-major, but for an input's, which lie as its
/// tensor does. node -1: a number.
struct Operand {
  int node = -1;
  Shape shape, strides;
  int64_t offset = 0;
  Number number = false;
  int argument = -1;  // of a number that each launch gives: the node of the graph; `number` is the present one
  bool is_number() const { return node < 0; }
  bool is_literal() const { return is_number() && argument < 0; }
};

/// Along one dimension of its first operand, where a take looks at the places that another operand says.
struct Taken {
  int64_t stride, size;
  bool any_outside;  // as ExprAttributes
  bool operator==(const Taken&) const = default;
};

enum class DagKind : uint8_t { kLeaf, kPointwise, kReduce, kScan, kProduct };

struct DagNode {
  DagKind kind = DagKind::kLeaf;
  ExprOp op = ExprOp::kInput;  // kPointwise: also kCast and kCall; kScan: kCumSum, kCumProd, kCumMax, kCumMin; kReduce:
                               // kSum, kMax, kMin, and kCumProd for a product
  std::vector<Operand> operands;  // kPointwise: of this node's shape; kProduct: [batches.., m, k] and [batches.., k, n]
  DType dtype = DType::kF32;      // of the result in memory
  DType operand_type = DType::kF32;  // in registers, of all operands (where: of the last two)
  DType number_type = DType::kF32;   // what numbers among the operands are rounded to
  Shape shape;
  std::vector<int> axes;     // kReduce: those of the operand's dimensions that vanish; kScan: the one it goes along
  bool reverse = false;      // kScan: from the end
  bool plain_max = false;    // kMax of a softmax: the result is NaN anyway when an element is
  int64_t splits = 1;        // kReduce: >1 sums in so many parts, which are a last dimension of the result; kScan: >1
                             // runs in so many, and the second operand, if any, has the total of each: [kept..,
                             // splits]; else each part waits for the totals of those before it (looks_back());
                             // kProduct: >1 sums over k in so many parts, the first dimension of the batch, along which
                             // both operands have a stride of 0
  int64_t chunk = 0;         // columns of each part; 0: what suits its tiles
  int batch_dims = 0;        // kProduct: leading dimensions of the result and of both operands; other leading
                             // ones of the result are rows, of which the left operand has one dimension
  std::vector<Taken> taken;  // kTake: of each operand but the first, which is read from memory at their places and
                             // whose own strides are 0 there
  std::array<int, 2> made{};  // kProduct: FLOP for each element of an operand that the product's own kernel computes;
                              // 0: it is read
  bool tf32 = false;
  Activation activation = Activation::kNone;  // kProduct, with a third operand for the bias: of a library
  std::shared_ptr<const ExprFunction> function;
  int origin = -1;            // the node of the user's graph that it is (part of)
  std::vector<int> absorbed;  // others of the graph that it also does: a library's epilogue
  std::string name;           // for variables; may be empty
  int alignment = 16;         // kLeaf
  int64_t row_stride = 0;     // kPointwise: of the last dimension but one in memory, where rows are padded; else 0
  int part_of = -1;           // kPointwise: the node in whose memory it is stored, as part_strides and part_offset say
  Shape part_strides;
  int64_t part_offset = 0;
  bool counts = false;  // kLeaf: no tensor, but the numbers 0, 1, 2, … of its elements
  bool adds = false;    // kPut, as ExprAttributes
};

/// Whether the parts of a scan tell each other their totals while they run.
inline bool looks_back(const DagNode& n) { return n.kind == DagKind::kScan && n.splits > 1 && n.operands.size() == 1; }

/// Of a pointwise node's element, as far as its operation tells. Quotients of floats are rounded correctly, and angles
/// brought near zero.
inline int instructions_of(const DagNode& n) {
  constexpr int kOfQuotient = 8, kOfAngle = 24;
  if (n.op == ExprOp::kSin || n.op == ExprOp::kCos) return kOfAngle;
  return n.op == ExprOp::kDiv ? kOfQuotient : std::max(1, info(n.op).flop);
}

struct Dag {
  std::vector<DagNode> nodes;  // operands before their users
  std::vector<Operand> outputs;
  std::vector<bool> any_order;  // as Graph::any_order
  std::vector<DType> output_dtypes;
  bool exact = true;  // PlanOptions::exact
};

/// Of a node's elements in memory: row-major, but for padded rows.
Shape stored_strides(const DagNode& node);

/// Registers hold halves and fp8 as f32.
DType register_type(DType t);

/// Takes the graph apart: views folded, dead and common nodes dropped (common ones only when `share`), exact identities
/// applied. With `library`, products have at most three dimensions; else those with vectors may be sums, more of them
/// on a GPU. kUnsupported names an operation without a kernel.
Result<Dag> make_dag(const Graph& graph, bool share, bool library, bool gpu);

/// Writes reductions of a few elements out as additions (maxima, …) where what they reduce is computed for them alone.
void unroll_reductions(Dag& dag);

/// Makes reductions of scans of which only the ends of rows are read.
void reduce_ends(Dag& dag);

/// Has what reductions are computed from count along dimensions in the order of memory.
void follow_memory(Dag& dag);

/// Takes reductions of all that rows' reductions went into apart, so that the rows' kernel reduces each row.
void nest_reductions(Dag& dag);

/// Moves views past pointwise nodes that only they use, so that these join the kernel of what reads the view.
void push_views(Dag& dag);

/// Moves takes past the pointwise nodes that they read, so that these are computed for what is taken, where that is
/// less work than to store them.
void push_takes(Dag& dag);

/// Makes strided views of takes at places that are counted evenly and inside of what is in memory.
void view_takes(Dag& dag);

/// Makes one scan from the end of a flip of a scan of a flip.
void reverse_scans(Dag& dag, const Machine& machine);

/// Moves selects past what both of their sides do alike, so that it is done once.
void pull_selects(Dag& dag);

/// Takes dimensions apart, so that operations on both sides of a reshape count along the same ones.
void refine_shapes(Dag& dag);

/// Copies what is computed from counts alone for each dimension along which it is read.
void separate_counts(Dag& dag);

/// Copies what is computed from numbers alone for each node that reads it.
void separate_constants(Dag& dag);

/// How often each node is read; two times more where it is a result.
std::vector<int> uses_of_nodes(const Dag& dag);

/// Of each node, whether it is computed from counts and numbers alone: nothing is read from memory for it.
std::vector<bool> nodes_of_counts(const Dag& dag);

/// The reduction of all that a scan goes along.
DagNode reduction_of(DagNode scan);

/// Adds a node; the operand that reads all of it.
Operand append(Dag& dag, DagNode n);

/// Dimension `d` becomes two, the inner one of so many elements.
void split_dimension(Operand& o, size_t d, int64_t inner);

/// Orders nodes so that operands come first, and drops those that no output needs.
void tidy(Dag& dag);

/// The strided tensor that reads `operand` (a tensor of shape `inner`, in row-major order) at the places of a strided
/// tensor over its row-major index, if there is one.
std::optional<Operand> compose(const Operand& view, const Operand& operand);

/// `operand` with another shape of as many elements, if strides can say it.
std::optional<Operand> reshape(const Operand& operand, const Shape& shape);

/// Whether both read the same elements at the same places, or are the same number, of the same bits.
bool is_same(const Operand& a, const Operand& b);

/// Whether an operand is all of a node of that shape as it lies.
bool is_whole(const Operand& o, const Shape& shape);

/// Elements of its node that an operand reads, each counted once.
int64_t touched(const Operand& operand);

/// For each dimension of a view of a node that lies row-major with `shape`: that dimension of the node, or -1 where the
/// view repeats or has one element. Nullopt when the view takes a part, or splits or merges dimensions.
std::optional<std::vector<int>> axis_map(const Operand& view, const Shape& shape);

}  // namespace kiln::fusion
