// Tensor expressions: operations on tensors that are not computed yet. An expression is planned as a whole, so that
// operations share kernels; it runs when its result is needed (docs/expressions.md).
#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kiln/blas.h"
#include "kiln/device.h"
#include "kiln/expr_op.h"
#include "kiln/graph.h"
#include "kiln/kernel.h"
#include "kiln/tensor.h"

namespace kiln {

namespace runtime {
struct ExprNode;
struct Recording;
class PlannedExpr;
}  // namespace runtime

/// A handle; copies share the expression. The memory of its tensors is read when it runs, so before changing a tensor
/// in place, run the expressions that read it.
class Expr {
 public:
  Expr() = default;
  /// A leaf.
  Expr(Tensor tensor);
  /// A Python number, which takes the dtype of the tensors that it meets.
  static Expr scalar(std::variant<bool, int64_t, double> value);
  /// 0, 1, … n - 1, of an integer dtype. No memory is read for it.
  static Expr iota(const Device& device, int64_t n, DType dtype = DType::kI64);
  /// A tensor of one value, rounded to the dtype. What is made of it reads no memory either.
  static Expr full(const Device& device, std::vector<int64_t> shape, std::variant<bool, int64_t, double> value,
                   DType dtype);

  explicit operator bool() const { return node_ != nullptr; }
  /// The name of its last operation, or "input".
  std::string_view operation() const;
  DType dtype() const;
  std::span<const int64_t> shape() const;
  int rank() const { return static_cast<int>(shape().size()); }
  int64_t numel() const;
  /// Where it is computed; empty for a number.
  const Device& device() const;
  bool is_scalar() const;
  /// Its last operations move no data, and others have what it is a view of: the result shares memory with that.
  bool is_view() const;
  /// Whether it is made of variables of a GradScope that has not ended: it then keeps its operands when it is run.
  bool records() const;
  /// What GradScope::variable() made.
  bool is_variable() const;
  /// While it records: somebody else may look at it as long as what this gives lives.
  std::shared_ptr<const void> hold() const;
  /// Whether one who looks at it shares elements with another: of views of it, or of what it is a view of.
  bool shares_elements() const;
  /// Of a value that gradients() was asked of, a gradient, and what is made of them: the operations that are pending in
  /// all of them together. They are best run together. 0 of others.
  int gradient_operations() const;
  /// Its elements will lie in row-major order: it is no view, or a reshape of what lies so.
  bool is_row_major() const;
  /// It is that expression, or what is in that memory, seen through operations that move no data.
  bool is_view_of(const Expr& other) const;
  bool is_view_of(const runtime::Storage* storage) const;
  /// The tensor of a leaf, or the result after it was run; nullptr before.
  const Tensor* tensor() const;
  /// The operations that are not computed yet.
  int operations() const;
  /// Whether there are so many; mostly known without a walk.
  bool has_operations(int at_least) const;
  /// Whether one of its tensors, operations and operands has so many elements; of a view on a GPU, its memory counts.
  bool has_elements(int64_t at_least) const;
  /// Whether others that were computed were made of it while it was pending.
  bool was_part() const;
  /// Whether its pending operations read memory of one of these storages.
  bool reads(std::span<const runtime::Storage* const> storages) const;
  bool reads(const runtime::Storage* storage) const { return reads({&storage, 1}); }
  /// Whether to compute it again beside others costs next to nothing: a few pointwise operations, which read no more
  /// than the result has.
  bool is_cheap_again() const;
  /// Whether it reads no tensor: a table of a few operations on numbers and on where its elements are.
  bool is_of_counts() const;
  /// What is pending in it: each operation that is not computed yet, itself too, and whether it is an operand of a
  /// product there, of which a kernel reads each element many times.
  struct Part {
    const runtime::ExprNode* node;
    bool is_factor;
  };
  std::vector<Part> pending_parts() const;
  /// The memory of the tensors that it is computed from with as many elements as the result, or as the largest of what
  /// is computed for it.
  std::vector<const runtime::Storage*> read_in_full() const;
  /// The memory of all that it is computed from.
  std::vector<const runtime::Storage*> all_read() const;
  runtime::ExprNode* node() const { return node_.get(); }
  const std::shared_ptr<runtime::ExprNode>& shared() const { return node_; }
  explicit Expr(std::shared_ptr<runtime::ExprNode> node) : node_(std::move(node)) {}

 private:
  std::shared_ptr<runtime::ExprNode> node_;
};

/// Which of them has reads(storages), in one walk through all of them.
std::vector<bool> which_read(std::span<const Expr> exprs, std::span<const runtime::Storage* const> storages);
/// What is pending in any of them, operands before their users, each once. Its position (ExprNode::position) is that in
/// the list until the next walk on this thread.
std::vector<const runtime::ExprNode*> pending_operations(std::span<const Expr> exprs);

/// The expression of one operation, with torch's rules for dtypes and shapes. kType: shapes, dtypes or devices that do
/// not match (both are named); kValue: an axis outside of the range.
Result<Expr> apply(ExprOp op, std::span<const Expr> operands, ExprAttributes attributes = {});
Result<Expr> apply(ExprOp op, std::initializer_list<Expr> operands, ExprAttributes attributes = {});

/// The dtype of an operation on two tensors with dimensions, by torch's promotion.
DType promote(DType a, DType b);
/// The shape of an operation on two tensors; kType names both when they do not broadcast.
Result<std::vector<int64_t>> broadcast_shapes(std::span<const int64_t> a, std::span<const int64_t> b);

/// How an expression can be computed.
enum class ExprVariant : uint8_t {
  kUnfused,  // a kernel for each operation
  kFused,    // as few kernels as pay off
// Products by a library, with the epilogue where it has one; the rest fused.
#define KILN_MATMUL_IMPL(ENUM, ...) k##ENUM,
#include "kiln/matmul_impl.def"
};
inline constexpr ExprVariant kExprVariants[] = {
    ExprVariant::kUnfused,
    ExprVariant::kFused,
#define KILN_MATMUL_IMPL(ENUM, ...) ExprVariant::k##ENUM,
#include "kiln/matmul_impl.def"
};
/// "unfused", "fused", or the library's in matmul_impl.def.
std::string_view name(ExprVariant variant);
std::optional<ExprVariant> parse_expr_variant(std::string_view text);

/// Computes it on its device, without waiting; the expression keeps the result. Plans are kept by the structure of the
/// expression (operations, dtypes, shapes, strides, alignment), their kernels by their source.
Result<Tensor> run(const Expr& expr, ExprVariant variant = ExprVariant::kFused);
/// Computes several on one device, in one plan: operations that they share are computed once.
Status run_together(std::span<const Expr> exprs, ExprVariant variant = ExprVariant::kFused);
/// A value and the tensor that takes it; without one the expression keeps it.
struct ExprStore {
  Expr value;
  Tensor to;
};
/// As run_together(), and puts each value into its tensor, a row-major one of the value's dtype and shape; no two share
/// memory. All reading is done first: a kernel writes to the tensor itself where what it and later kernels read of that
/// memory are at most the elements that it writes; else the value is copied there at the end.
Status run_into(std::span<const ExprStore> stores, ExprVariant variant = ExprVariant::kFused);
/// Runs the stores, which are made of the first tuple's tensors, for each of the tuples: with its tensors in their
/// places, in one launch. False where it does not, and nothing was done: the stores are no computation on elements of
/// tensors of one shape and on tensors of no dimension that all tuples share, or the tuples' tensors differ in more
/// than their shapes, are not row-major or share memory.
Result<bool> run_each_into(std::span<const ExprStore> stores, std::span<const std::vector<Tensor>> tuples);
/// Runs an operation kPut: each element of its first operand where that of the second says in `to`, counted in elements
/// from its first, for whichever the third is true. Places lie in the memory of `to`; which of two elements with one
/// place stays, or the order in which they are added, is open. All reading is done first. kType: another dtype or
/// device.
Status run_put(const Expr& put, const Tensor& to);
/// How many leaves of the expressions hold memory of this storage, equal ones too; no more than `most` are looked for,
/// in the last expression first.
int64_t count_leaves(std::span<const Expr> exprs, const runtime::Storage* storage, int64_t most);
/// Computes it on the host, operation by operation, with the bits that kernels give (of sums and products: in float64,
/// rounded once): for small tensors, which are not worth a kernel. The result is on the expression's device, and the
/// expression keeps it.
Result<Tensor> run_on_host(const Expr& expr);

/// Plans that run() made for a device, found again and dropped (KILN_PLAN_LIMIT) since the device was opened.
struct ExprCacheStats {
  int64_t planned = 0, found = 0, dropped = 0;
};
ExprCacheStats expr_cache_stats(const Device& device);

// --- gradients ------------------------------------------------------------------------------------------------------

/// Gets each gradient that is complete; `all` gives it and all others that are found or under way.
using SettleGradients = std::function<Status(const Expr& gradient, const std::function<std::vector<Expr>()>& all)>;

/// The gradients of Σ seeds[i] · values[i] to each input: expressions of its dtype and shape, which share operations
/// with the values, and so a plan with them. An input is a leaf or an operation of the values; one that they do not
/// depend on has an empty expression. Operations whose results are integers end the way to an input, as in torch.
/// kUnsupported names an operation that has no gradient. kValue: an operation was computed before, and has let go of
/// its operands: make inputs by GradScope::variable().
/// `settle` may compute what it gets, so that long chains do not stay pending. `are_constant`: their own gradients are
/// not asked for, so that what is computed on the way lets go of what it was made of.
Result<std::vector<Expr>> gradients(std::span<const Expr> values, std::span<const Expr> seeds,
                                    std::span<const Expr> inputs, const SettleGradients& settle = {},
                                    bool are_constant = false);
/// Of one value with one element, by a seed of 1.
Result<std::vector<Expr>> gradients(const Expr& value, std::span<const Expr> inputs);
/// Why gradients() refuses an operation that lies on its way; nullopt when it does not.
std::optional<std::string_view> no_gradient_of(ExprOp op);

/// While it lives, what is made of its variables keeps its operands also when it is computed: a program may look at
/// values in between.
class GradScope {
 public:
  GradScope();
  ~GradScope();
  GradScope(const GradScope&) = delete;
  GradScope& operator=(const GradScope&) = delete;
  /// The same elements, as an input for gradients(). kType unless they are floats.
  Result<Expr> variable(const Expr& of) const;

 private:
  std::shared_ptr<runtime::Recording> recording_;
};
/// The same elements, as a constant for gradients(): nothing is recorded of what is made of it.
Expr detached(const Expr& of);
/// The variables that values are made of, each once.
std::vector<Expr> variables_of(std::span<const Expr> values);
/// Gradients of the values are asked for no more: operations that were recorded let go of their operands, those that
/// are pending once they are computed. gradients() through them is kValue from then on.
void release(std::span<const Expr> values);
/// As run_together(), and stores in the same plan what would be computed once more: products that somebody else holds,
/// and of what records, where gradients will be asked for, the operands of products and what gradients read of what is
/// made of them.
Status run_and_keep(std::span<const Expr> exprs, bool for_gradients = true);
/// Of how many scopes that have not ended variables are in what these were made of. Where it is more than one, somebody
/// may ask for the gradient of a gradient.
int count_scopes(std::span<const Expr> exprs);
/// Of a result's gradient, those of the operands that it was made of: one each, of its dtype and shape, or an empty one
/// where nothing flows back.
using GradientRule = std::function<Result<std::vector<Expr>>(const Expr& gradient, std::span<const Expr> operands)>;
/// A tensor that was computed of operands by other means than operations, as by a kernel, with the rule for its
/// gradient. A leaf unless one of the operands records. kType unless the tensor is of floats.
Result<Expr> with_gradient(Tensor value, std::span<const Expr> operands, GradientRule rule);

// --- looking at plans -----------------------------------------------------------------------------------------------

/// One launch of a plan, with its options.
struct ExprGroup : CodeOptions {
  std::string name;
  std::string source;  // a complete file in the Triton language; empty for a library's product
  std::string kernel;  // the function in it
  double bytes = 0;    // read and written by the model
  double flop = 0;
  std::array<int64_t, 3> grid = {1, 1, 1};
  std::vector<std::pair<std::string, int64_t>> constants;  // its constexpr integers
};

/// Why two operations are in two kernels.
struct ExprBoundary {
  std::string from, to;  // the launches
  double bytes = 0;      // written and read back because of it
  std::string cause, help;
};

struct ExprPlan {
  std::vector<ExprGroup> groups;  // in the order of launches
  std::vector<ExprBoundary> boundaries;
  std::string text, svg;  // the plan as a table and as a drawing
  std::string script;     // and as a Python program that runs under Kiln and under Triton
  double bytes = 0, flop = 0;
};

/// What a tensor is called in sources and tables.
struct ExprName {
  Tensor tensor;
  std::string name;
};

/// kUnsupported when the variant adds nothing for the expression or no kernel exists for it.
Result<ExprPlan> plan(const Expr& expr, ExprVariant variant = ExprVariant::kFused,
                      std::span<const ExprName> names = {});
/// Of several, as run_together() computes them. kValue where none of them is left to compute.
Result<ExprPlan> plan_together(std::span<const Expr> exprs, ExprVariant variant = ExprVariant::kFused,
                               std::span<const ExprName> names = {});

/// The plan of a GPU that is not there, and its kernels compiled for it.
struct TargetPlan {
  ExprPlan plan;
  std::vector<KernelInfo> kernels;  // of the groups that have a source
};
/// Compiled and not run. Planned for the expression's device where that is such a GPU, else for one with as many SMs as
/// are usual. kValue when the target ("sm_90a") is no GPU.
Result<TargetPlan> plan_for(const Expr& expr, std::string_view target, ExprVariant variant = ExprVariant::kFused,
                            std::span<const ExprName> names = {});
/// Of several, as run_together() computes them. kValue where none of them is left to compute.
Result<TargetPlan> plan_together_for(std::span<const Expr> exprs, std::string_view target,
                                     ExprVariant variant = ExprVariant::kFused, std::span<const ExprName> names = {});

// --- variants side by side ------------------------------------------------------------------------------------------

/// An expression planned in one way, compiled and bound to its tensors and to buffers of its own.
class VariantPlan {
 public:
  std::string name;                  // "fused", "cublaslt-best"
  std::vector<std::string> kernels;  // in the order of launches
  std::vector<KernelInfo> infos;     // of its own kernels
  std::vector<ExprGroup> groups;
  std::string note;              // a remark for tables: "gelu_tanh, not erf"
  double bytes = 0, flop = 0;    // by the model
  double first_run_s = 0;        // what its first run took, with the wait for it; output() is that run's until the next
  std::optional<DType> product;  // operands of its matrix products
  /// Why it cannot run: an absent library, an error of the compiler. Then there is only the name.
  Status problem;

  /// Puts its work on the device's default stream; neither waits nor allocates.
  Status launch() const;
  /// The result of the last launch.
  Result<Tensor> output() const;
  /// Overwrites the result's memory.
  Status poison() const;
  /// The same work as one graph.
  Result<Graph> graph() const;
  /// How the kernel of groups[group] could be launched instead: its other tile sizes, warps and stages. Empty when the
  /// planner knows no others. Each is an argument of edited() and of launch_of().
  std::vector<ExprGroup> configurations(size_t group) const;
  /// One kernel's launch, by its plan or by one of its configurations.
  struct Launch {
    Kernel kernel;
    std::array<int64_t, 3> grid = {1, 1, 1};
    std::vector<std::optional<Arg>> args;  // they point into this variant
    LaunchOptions options;
  };
  Result<Launch> launch_of(size_t group, const ExprGroup& as) const;
  /// The same with another source, grid, warps, stages or constants for the kernel of groups[group], which must keep
  /// its name and its parameters. Compiler errors are returned immediately. Code that the planner did not write first
  /// runs bounds-checked (kiln/check.h): kLaunch names the access outside of its tensor.
  Result<VariantPlan> edited(size_t group, const ExprGroup& as, std::string new_name) const;

  std::shared_ptr<runtime::PlannedExpr> planned;
};

/// One variant; kUnsupported when it is none for this expression or device.
Result<VariantPlan> variant(const Expr& expr, ExprVariant which, std::span<const ExprName> names = {});
/// Every variant that is one for this expression and device: those that cannot run carry their `problem`. An error only
/// when the expression itself cannot be computed (its tensors were freed).
Result<std::vector<VariantPlan>> variants(const Expr& expr, std::span<const ExprName> names = {});

// --- what is right --------------------------------------------------------------------------------------------------

/// Rows of an expression's value, each operation computed on the host in float64 and rounded to its dtype.
struct ExprReference {
  struct Slab {
    int64_t start = 0;  // in elements of the row-major result
    std::vector<double> values;
    std::vector<double> slack = {};  // absolute: what rounding between operations may do to each; empty: nothing
  };
  DType dtype = DType::kF32;
  std::vector<int64_t> shape;
  std::vector<Slab> slabs;
  int64_t checked() const;  // elements
};
/// All of it, or when that takes more than `budget` operations, the first rows, the last ones and others in between.
/// Where a few rows cost as much as all (a sum over rows), all of it up to eight times the budget; kUnsupported beyond.
Result<ExprReference> reference(const Expr& expr, double budget = 1e9, uint64_t seed = 1);

struct ExprError {
  double max_abs = 0, max_rel = 0;  // rel: over max(|expected|, the least that counts for the dtype)
  int64_t nans = 0;                 // where there should be none
  int64_t first_bad = -1;           // element, row-major; -1: none
  double got = 0, expected = 0;     // of it
  double tolerance = 0;             // for `max_rel`, but of elements that rounding explains
  bool ok() const { return first_bad < 0; }
};
/// Elements are wrong when their error exceeds what the dtype's rounding of such values explains, is more than four
/// times the worst of `allowed` (the error of the unfused variant), and exceeds what the rounding of a kernel for each
/// operation explains for that element (operands that cancel, a norm of a nearly constant row).
Result<ExprError> compare(const ExprReference& expected, const Tensor& got, const ExprError* allowed = nullptr);

}  // namespace kiln
