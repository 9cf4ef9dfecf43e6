// From an expression to the kernels that compute it: which operations share a kernel, and each kernel's source in the
// Triton language. Pure text and numbers: the runtime makes buffers and launches of it.
#pragma once
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "compiler/fusion/graph.h"
#include "compiler/target/rates.h"
#include "kiln/launch_options.h"
#include "kiln/result.h"

namespace kiln::fusion {

enum class Variant : uint8_t {
  kUnfused,          // a kernel for each operation of the graph
  kFused,            // as few kernels as pay
  kLibrary,          // products by the BLAS, everything else fused
  kLibraryEpilogue,  // products by the BLAS with the epilogue that cublasLt has, everything else fused
};
inline constexpr Variant kVariants[] = {Variant::kUnfused, Variant::kFused, Variant::kLibrary,
                                        Variant::kLibraryEpilogue};
/// "unfused", "fused", "library", "library+epilogue".
std::string_view name(Variant variant);

/// The machine that the plan is for.
struct Machine {
  std::string target = "host";      // a row of compiler/target: "sm_90a", "host"
  int multiprocessors = 1;          // or cores
  int64_t shared_bytes = 48 << 10;  // of a block
  bool gpu() const { return target != "host"; }
  const target::Rates& rates() const;
};

/// A GPU of that target with as many SMs as are usual, where there is none to ask; nullopt when the target is no GPU.
std::optional<Machine> usual_machine(std::string_view target);

struct PlanOptions {
  Variant variant = Variant::kFused;
  Machine machine;
  /// Every operation is rounded to its dtype. False: inside of a kernel, halves and fp8 stay float32 from one pointwise
  /// operation to the next, and are rounded where they are converted, reduced, multiplied or stored.
  bool exact = true;
  /// Small kernels are run by the last program of the one before, which needs a counter (Value::turns).
  bool joins_totals = true;
  /// Kernels are given the number of their program as a parameter that no argument stands for, kGivenProgram: they
  /// become functions of another kernel (multi_tensor.h).
  bool gives_program = false;
};
/// What a kernel that becomes part of another one calls the number of its program.
inline constexpr std::string_view kGivenProgram = "given_program";

/// A tensor that kernels read or write: an input of the graph, or a buffer that the caller allocates, row-major.
struct Value {
  int input = -1;  // the node of the given graph, or -1 for a buffer
  DType dtype = DType::kF32;
  Shape shape, strides;
  std::string name;
  bool output = false;  // holds (part of) a result: lives on after the last group
  bool put = false;     // a tensor that the caller has, of any shape: elements of this one go to places in it
  bool turns = false;   // counts the programs of one kernel at a time: 0 before and after each (join_totals)
  bool zeros = false;   // what programs tell each other: all 0 before the first launch, and left as it is after each
  int first_group = 0;  // that writes it (buffers)
  int last_group = 0;   // that reads or writes it
  int slot = -1;        // temporaries with one slot may share memory: their lives do not overlap
  int64_t bytes() const;
};

/// Part of a value, as a strided tensor. `offset` in elements from its first.
struct View {
  int value = -1;
  Shape shape, strides;
  int64_t offset = 0;
};

/// A value's tensor as a pointer argument; the offset in elements is part of the address.
struct TensorArg {
  int value = -1;
  int64_t offset = 0;
};
struct Argument {
  std::string name;
  std::variant<std::monostate, TensorArg, int64_t, double, bool, DType> value;  // monostate: None
  bool is_constexpr = false;
  int scalar = -1;            // the node of the given graph whose number it is: another one serves as well
  DType dtype = DType::kF32;  // of that number
};

/// One choice of numbers for a kernel: overrides arguments of these names.
struct Configuration : CodeOptions {
  std::vector<std::pair<std::string, int64_t>> constants;
  std::array<int64_t, 3> grid = {1, 1, 1};
};

enum class Activation : uint8_t { kNone, kRelu, kGeluTanh };

/// A product that is left to the BLAS: out = activation(a · b + bias). Operands have 2 or 3 dimensions.
struct LibraryProduct {
  View a, b, out;
  View bias;  // value -1: none
  Activation activation = Activation::kNone;
  bool tf32 = false;
};

enum class GroupKind : uint8_t { kKernel, kProduct };

/// One launch, with its options.
struct Group : CodeOptions {
  GroupKind kind = GroupKind::kKernel;
  std::string name;                        // "add_gelu"; also names the kernel
  std::string source;                      // a complete file (kKernel)
  std::string kernel;                      // the function of it to launch
  std::vector<std::string> functions;      // the jit functions of the source, callees first, the kernel last
  std::string comment, body;               // of the source; of its kernel
  std::vector<std::string> unspecialized;  // parameters whose divisibility is nothing to compile for
  bool libdevice = false;                  // it imports that module
  bool descriptors = false;                // it makes tensor descriptors, which take memory from an allocator
  int totals = 0;  // so many kernels that were behind it are run by whichever of its programs ends last (join_totals)
  int64_t rows_of_part = 0;         // of each program that makes parts of rows; 0: none does
  std::vector<int> row_order;       // in which order such a kernel counts along the dimensions of rows
  bool ends_by_rows = false;        // whichever program ends last of those that share rows adds their parts up
  bool precedes_product = false;    // with Plan::overlaps: its source waits itself, and lets nothing begin early
  std::vector<Argument> arguments;  // one per parameter, in order
  std::array<int64_t, 3> grid = {1, 1, 1};
  std::vector<Configuration> configurations;  // others worth trying; the one above is not among them
  LibraryProduct product;                     // kProduct
  std::vector<int> nodes;                     // of the given graph that it computes, in order
  std::vector<int> reads, writes;             // values
  /// (written, read): the program that writes an element has read the same one before, and nobody else reads it. Both
  /// may be one tensor.
  std::vector<std::pair<int, int>> in_place;
  double bytes = 0;  // moved when each operand is read and each result written once
  double flop = 0;
  std::string shape;  // of the work: "rows 8192 x 8192", for tables
};

/// Why two operations are in two kernels.
struct Boundary {
  int from = -1, to = -1;  // nodes of the given graph
  int from_group = -1, to_group = -1;
  double bytes = 0;   // written and read back because of it
  std::string cause;  // "the sum needs all columns of a product before any element of it is used"
  std::string help;   // the edit that would help; empty when none does
};

struct Plan {
  Variant variant = Variant::kFused;
  std::vector<Value> values;
  /// Its kernels are launched while the one before still runs, and wait for its end themselves (launch_pdl): that hides
  /// the time between two kernels, which is most of what a small one takes. GPUs can since the generation with TMA.
  /// A product begins when all programs of the kernel before have ended, rather than among those that still run (a cast
  /// of 3072 x 4096 and its product with 660 rows on an H100: 47 us, 62 else; docs/hopper.md).
  bool overlaps = false;
  /// A kernel alone, no product: it is launched so behind whatever is ahead of it in its stream.
  bool begins_early = false;
  std::vector<View> outputs;  // one per Graph::outputs: views of values (an input's own when nothing is computed)
  std::vector<Group> groups;  // in the order of launches
  std::vector<Boundary> boundaries;
  double bytes() const;
  double flop() const;
};

/// kUnsupported when the variant says nothing new about this graph (kLibrary without a product), or no kernel is
/// written for an operation; kType or kValue as infer().
Result<Plan> plan(const Graph& graph, const PlanOptions& options);

/// Whether value `read` is read no later than `written` begins to be written, or, when they lie in the same place, by
/// the kernel that writes it, each element before the one that goes there (Group::in_place).
bool is_read_in_time(const Plan& plan, int read, int written, bool same_place);

/// A table of the groups, the buffers between them and the boundaries.
std::string plan_text(const Plan& plan);
/// The same as a program in Python, which makes inputs, launches and prints; it runs under Triton too.
std::string plan_script(const Plan& plan);
/// The same as a drawing: a box per group, arrows for the buffers.
std::string plan_svg(const Plan& plan);

}  // namespace kiln::fusion
