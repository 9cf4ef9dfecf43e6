// Lines of a kernel in the Triton language: a cluster's nodes over the index variables of one program.
#pragma once
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "compiler/fusion/grouping.h"
#include "compiler/fusion/plan.h"
#include "kiln/result.h"

namespace kiln::fusion {

/// Which of a program's two index ranges a value varies along.
enum Level : unsigned { kUniform = 0, kAlongRows = 1, kAlongColumns = 2, kWhole = 3 };

/// The text of a value.
struct Text {
  std::string text;
  int binds = 10;
  unsigned level = kUniform;
  DType type = DType::kF32;       // in registers
  bool number = false;            // a literal
  bool finite = false;            // it is no infinity and no NaN
  std::optional<double> outside;  // what it is in columns outside of the tensor, when known
};

/// How a program counts along one dimension of its cluster.
struct Index {
  std::string text;  // a name
  unsigned level = kUniform;
};

/// A read or write of a node's elements, strides per dimension of the cluster.
struct Access {
  int node = -1;
  Shape strides;
  int64_t offset = 0;
  bool as_stored = false;  // in the type of memory, where registers hold another
  bool operator<(const Access& o) const {
    return std::tie(node, offset, strides, as_stored) < std::tie(o.node, o.offset, o.strides, o.as_stored);
  }
  bool operator==(const Access&) const = default;
};

/// An index that was taken apart, and what of it each dimension is: where memory runs on, the index itself will do.
struct Walk {
  std::string index;
  unsigned level = kUniform;
  std::vector<std::pair<int, int64_t>> dims;  // of the cluster, with how many elements each stands for; outermost first
};

/// What caches are to do with loads of a row's own columns, with loads that all rows share and with stores; empty:
/// nothing.
struct Evictions {
  std::string own, shared, stores;
};

/// Names that a source already uses.
class Names {
 public:
  Names();
  /// `hint`, or with a number behind it when that is taken.
  std::string fresh(std::string_view hint);
  void release(const std::string& name) { taken_.erase(name); }

 private:
  std::set<std::string> taken_;
};

class Emitter {
 public:
  Emitter(const Dag& dag, const Grouping& grouping, const Cluster& cluster, const std::vector<int>& value_of);

  // --- set before the first line
  std::vector<Index> index;  // per dimension of the cluster
  std::vector<Walk> walks;
  std::string row_mask, column_mask;    // names; empty where nothing lies outside
  std::string column_test;              // "cols < n_cols", to make a mask where a value does not vary along columns
  Evictions evictions;                  // of what lies along columns
  std::set<int> read_back;              // members that are stored by now, to be loaded where they are needed again
  std::set<int> read_once;              // nodes of which no line is wanted again: evict_first, where evictions say none
  bool two_ranges = false;              // rows and columns are both tiles
  bool in_runs = false;                 // columns are a tile of two dimensions, whose rows are runs of neighbours
  std::string tile_shape;               // "[BLOCK]", "[ROWS, BLOCK]" or "[BLOCK // RUN, RUN]"
  std::string row_index, column_index;  // of products: the ranges, also where a dimension has one element
  std::optional<std::string> split;     // the part of a split reduction
  Names names;
  std::pair<int64_t, std::string> known_size = {-1, ""};  // a number that is a constexpr of this name, also as a size

  /// Rows that begin anywhere in memory, in runs that begin where vectors do, so that a row's first and last run may
  /// have elements of other rows. Accesses with these strides go through helpers.
  struct Runs {
    std::string first, start;  // the place of each run, and of the program's first
    std::string begin, end;    // of the row's places
    std::string total;         // so many places a tensor has
    std::string run;           // elements of one
    std::string ahead;         // a mask: of the program's first run, what is of the row before
    bool whole = false;        // the tensor ends where a run does
    Shape strides;
    bool is_of(const Access& a) const { return a.strides == strides; }
  };
  std::optional<Runs> runs;

  /// A size that is no multiple of 16, which the launch tells the compiler, but one of 8, 4 or 2 is passed without that
  /// factor: masks and strides are then known to be multiples of it, and accesses as wide.
  bool factors_sizes = false;

  // --- parameters
  /// The name of a runtime number; one per value.
  std::string size(int64_t value, const std::string& hint);
  /// A constexpr number.
  std::string constant(int64_t value, const std::string& hint);
  /// A runtime number of its own, even when another has the value.
  std::string dimension(int64_t value, const std::string& hint);
  std::string pointer(int node, int64_t offset, bool output);
  /// Of a value of the plan that no node is: what programs tell each other.
  std::string pointer_to_value(int value, int64_t offset, const std::string& hint);
  std::vector<Argument> arguments() const;
  /// Integers, which would otherwise be specialised when they are multiples of 16.
  std::vector<std::string> unspecialized() const;
  /// The texts of the jit functions that the kernel calls.
  std::vector<std::string> functions() const;
  bool uses_libdevice() const;  // of those or the kernel
  Status problem() const { return problem_; }

  // --- lines
  void line(const std::string& text) { (loop_ ? inner_lines_ : lines_).push_back(indent_ + text); }
  /// The same where values of `level` are computed: in front of a loop that does not change them.
  void line_of(unsigned level, const std::string& text);
  /// The text as a tile of `shape`, also where it is repeated along a dimension of it.
  Text filled(Text t, unsigned level, const std::string& shape);
  /// From here on, values along columns belong to a loop; its head is `head` followed by `first`.
  /// With `hoist` false, everything does.
  void begin_loop(const std::string& head, const std::vector<std::string>& first, bool hoist = true);
  /// The same without a loop: a part of the program that reads again what it needs of the columns.
  void begin_part();
  void end_loop();
  /// From here on, values along columns are those of other columns.
  void change_columns();
  /// From here on, what varies along this dimension is elsewhere: its index was changed, in a loop that has all of it.
  void change_index(int dim);
  /// As another dtype, as torch converts.
  Text converted(Text t, DType to);
  /// Makes a helper (helpers.def) part of the source, or the import of libdevice.
  void use_helper(std::string_view name);
  void use_libdevice() { libdevice_ = true; }
  /// The same for what the text of a row of expr_op.def calls.
  void use_pattern(std::string_view pattern);
  /// Loads what `value` will ask for: ahead of everything that would make it wait.
  void preload(const Access& a) { load(a); }
  /// The value of a member or of an operand that the kernel reads.
  const Text& value(int node);
  Text operand(int consumer, size_t i);
  /// The text as a name (or number), assigning it when it is more than that.
  Text named(Text t, const std::string& hint);
  /// A line of the loop that assigns `text`; the name.
  std::string named_inside(const std::string& text, const std::string& hint);
  /// `t` with the [None, :] that it needs beside values of `level`.
  std::string spread(Text t, unsigned level, int needed);
  /// The operand of a reduction with its identity in columns outside, always a tile.
  Text reduced(int reduction);
  /// What is reduced so, with the identity in columns outside, always a tile.
  Text neutral_outside(Text operand, const DagNode& reduction);
  /// The same in what lies ahead of a row in its first run. Nothing that is stored comes after what is behind its end.
  Text neutral_ahead(const Text& operand, const DagNode& scan);
  /// The operand of a scan as a whole tile, by name; with the identity outside where that comes first.
  Text scanned(int scan);
  /// The result of a member's operation as its users in the kernel get it: what they would find in memory.
  Text settled(int node, Text t);
  /// The value of a product of matrices, from the text of its sum.
  Text product(int node, Text sum);
  /// The running sums of a tile of its operand, in the type that they accumulate in.
  Text running(int scan, const Text& tile);
  /// The reduction of a tile of its operand, in the result's type.
  Text combine(int reduction, const Text& tile);
  /// The type in which it accumulates, and the text of what leaves a sum or extreme as it is.
  static DType reduction_type(const DagNode& n);
  static std::string identity(const DagNode& n);
  /// The function of two numbers that a maximum or minimum takes.
  std::string extreme(const DagNode& n);
  void set(int node, Text t) { (outside_loop(t.level) ? outer_ : inner_)[node] = std::move(t); }
  void store(int node);
  bool stored_along_columns(int node) const;
  const std::vector<std::string>& lines() const { return lines_; }
  /// What comes before them.
  std::vector<std::string> prologue() const;
  static std::string literal(const Number& n, DType type);
  /// A pointer that varies along *level and the dimensions of `a`, which are added to *level.
  std::string address(const Access& a, const std::string& pointer, unsigned* level);
  /// An address with its terms added up first.
  static std::string widened_once(const std::string& base, const std::string& place);
  /// Whether 32 bits hold how far apart elements of an access lie.
  bool fits(const Access& a) const;
  std::string mask(unsigned level) const;
  Access access(int consumer, size_t i) const;
  Access store_access(int node) const;
  std::optional<double> other = {};      // of loads along columns that lie partly outside
  std::set<int> other_low;               // leaves whose `other` is -inf
  std::set<int> other_one;               // those whose `other` is 1
  std::map<Access, std::string> blocks;  // texts that load a whole tile through a descriptor

 private:
  int64_t factor(int64_t size) const;
  bool outside_loop(unsigned level) const { return !loop_ || (hoist_ && !(level & kAlongColumns)); }
  Text load(const Access& a);
  /// The text of a load through pointers; the level that these vary along, and what lies outside, go to `t`.
  std::string load_of_pointers(const Access& a, Text* t);
  Text scalar(const Operand& o, DType type, bool is_stride);
  /// Whether a node of the cluster says where elements go, or are taken from.
  bool is_of_places(int node);
  Text compute(int node);
  Text apply(const DagNode& n, int node, std::vector<Text> in);
  /// Through a half or fp8 and back to float32.
  Text rounded(Text t, DType dtype);
  /// Whether an operation makes no digits that its half or fp8 does not hold: -x, max(x, y).
  bool makes_no_digits(const DagNode& n) const;
  /// Whether a user in the kernel adds the value, so that a product would become part of its fma.
  bool is_added(int node) const;
  Text call(const DagNode& n, int node, std::vector<Text> in);
  /// The elements at the places that a take's operands say.
  Text taken(int node);
  /// Stores elements where a put's operands say.
  void put(int node);
  std::optional<double> outside(const DagNode& n, const std::vector<Text>& in) const;
  int uses_in_cluster(int node) const;

  const Dag& dag_;
  const Grouping& grouping_;
  const Cluster& cluster_;
  const std::vector<int>& value_of_;
  std::vector<int> uses_;
  std::map<int, Text> outer_, inner_;
  std::map<Access, Text> outer_loads_, inner_loads_;
  std::vector<std::string> lines_, inner_lines_;
  std::string indent_ = "    ";
  std::vector<std::string> inner_names_;
  bool loop_ = false, hoist_ = true;
  struct Pointer {
    int node;
    int64_t offset;
    bool output;
    std::string name;
  };
  std::vector<Pointer> pointers_;
  std::vector<std::pair<std::string, TensorArg>> values_;  // pointers to values of the plan
  std::vector<std::pair<std::string, int64_t>> sizes_, constants_;
  struct Scalar {
    int node;  // of the graph
    DType type;
    Number number;
    std::string name;
    bool is_stride = false;  // of places: whether vectors can be moved depends on what divides it
  };
  std::set<int> places_;  // of is_of_places()
  std::vector<Scalar> scalars_;
  std::set<std::string, std::less<>> helpers_;
  std::vector<std::shared_ptr<const ExprFunction>> functions_;
  bool libdevice_ = false;
  Status problem_;
};

/// What a file of kernels imports.
std::string imports(bool libdevice);
/// Whether a row of helpers.def has that name.
bool is_helper(std::string_view name);

/// A call, or the head of a function, in lines of at most 120 columns: broken behind commas, below its first argument.
std::string broken(const std::string& text);
/// A jit function; `body` has its lines, each behind a line break.
std::string function_text(const std::string& name, std::span<const Argument> parameters,
                          std::span<const std::string> unspecialized, const std::string& body);
/// A file with what to import, helpers, and the kernel.
std::string source_of(const Group& group);
/// Fills source, arguments, functions and what else the group says of its source.
void write_source(const Emitter& e, const std::string& comment, Group& group);

}  // namespace kiln::fusion
