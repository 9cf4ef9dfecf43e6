// Pointwise and row kernels: which index runs over which dimensions, and the tile sizes.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "compiler/fusion/emitter.h"
#include "compiler/fusion/tile_choice.h"
#include "compiler/fusion/writer.h"
#include "support/diag.h"

namespace kiln::fusion {

namespace {

/// Dimensions that one index can walk as one, outermost first.
struct Run {
  std::vector<int> dims;
  int64_t size = 1;
};

constexpr int64_t kInt32 = int64_t{1} << 31;
constexpr int64_t kShortRun = 32;  // inner dimensions shorter than this do not fill a tile's columns
constexpr int64_t kShortRunOfACpu = 8;
// Registers of a thread for what is loaded ahead; of rows, beside what a reduction needs.
constexpr int64_t kMostEarly = 64, kMostEarlyOfRows = 48;

// What a row's columns are read for once more should still be in a cache then, and what all rows share always.
const Evictions kReadAgain = {"evict_last", "evict_last", ""}, kReadLast = {"evict_first", "evict_last", "evict_first"};

class LoopWriter {
 public:
  LoopWriter(const WriteRequest& r, Group& group)
      : r_(r), dag_(r.dag), c_(r.cluster), group_(group), e_(r.dag, r.grouping, r.cluster, r.value_of) {
    group.kernel = e_.names.fresh(group.name + "_kernel");
    e_.factors_sizes = r.machine.gpu();
  }

  Status write() {
    collect();
    order();
    if (c_.form == Form::kScan)
      scan();
    else if (c_.reduces())
      rows();
    else if (kept_.empty())
      single();
    else
      elements();
    if (c_.form == Form::kPointwise) note_in_place();
    return e_.problem();
  }

 private:
  /// Loads are made once, before the first store that needs them. An element that goes where one of its own operands is
  /// is stored when that one has been read, by whichever thread.
  void note_in_place() {
    std::set<int> seen;
    std::set<Access> made;
    for (size_t i = 0; i < stores_.size(); ++i) {
      note_loads_of(stores_[i], seen, made);
      const Access& to = writes_[i];
      for (const Access& a : made)
        if (a.strides == to.strides && a.offset == to.offset && full(a) && !looked_up_.contains(a.node) &&
            dag_.nodes[at(a.node)].dtype == dag_.nodes[at(to.node)].dtype && is_read_once(a))
          group_.in_place.emplace_back(r_.value_of[at(stores_[i])], r_.value_of[at(a.node)]);
    }
  }

  bool is_read_once(const Access& a) const {
    return std::ranges::all_of(loads_, [&](const Access& other) { return other.node != a.node || other == a; });
  }

  void note_loads_of(int m, std::set<int>& seen, std::set<Access>& made) {
    if (!seen.insert(m).second) return;
    const DagNode& n = dag_.nodes[at(m)];
    for (size_t i = 0; i < n.operands.size(); ++i) {
      if (n.operands[i].is_number()) continue;
      if (c_.contains(n.operands[i].node))
        note_loads_of(n.operands[i].node, seen, made);
      else if (Access a = e_.access(m, i); !dag_.nodes[at(a.node)].counts)
        made.insert(std::move(a));
    }
  }

  void collect() {
    for (int m : c_.members) {
      const DagNode& n = dag_.nodes[at(m)];
      for (size_t i = 0; i < n.operands.size(); ++i)
        if (!n.operands[i].is_number() && !c_.contains(n.operands[i].node)) {
          const Access a = e_.access(m, i);
          (dag_.nodes[at(a.node)].counts ? all_ : loads_).push_back(a);
          if (!dag_.nodes[at(a.node)].counts && (n.op != ExprOp::kTake || i > 0)) early_.push_back(a);
          if (n.op == ExprOp::kTake && i == 0) looked_up_.insert(a.node);
        }
      if (r_.grouping.stored[at(m)]) {
        stores_.push_back(m);
        Access a = e_.store_access(m);
        a.strides.resize(c_.dims.size());
        writes_.push_back(std::move(a));
      }
    }
    for (const auto* list : {&loads_, &writes_}) {
      all_.insert(all_.end(), list->begin(), list->end());
      // Of pointwise kernels: along the innermost dimension; the places of rows are read once for many elements.
      for (const Access& a : *list)
        if (c_.reduces() || a.strides.empty() || a.strides.back() != 0)
          widest_ = std::max(widest_, size_of(dag_.nodes[at(a.node)].dtype));
    }
  }

  static bool full(const Access& a) { return std::find(a.strides.begin(), a.strides.end(), 0) == a.strides.end(); }

  /// The access whose order of memory the loops follow: what elements write, what rows read, but for rows that are
  /// looked up.
  const Access& main() const {
    const auto& first = c_.reduces() ? loads_ : writes_;
    const auto& second = c_.reduces() ? writes_ : loads_;
    for (const auto* list : {&first, &second})
      for (const Access& a : *list)
        if (full(a)) return a;
    const bool looks_up = c_.reduces() && !looked_up_.empty() && !writes_.empty();
    return first.empty() || looks_up ? second.front() : first.front();
  }

  std::vector<Run> runs(int begin, int end) const {
    std::vector<int> dims(at(end - begin));
    std::iota(dims.begin(), dims.end(), begin);
    const Access& by = main();
    std::stable_sort(dims.begin(), dims.end(), [&](int a, int b) { return by.strides[at(a)] > by.strides[at(b)]; });
    std::vector<Run> out;
    for (int d : dims) {
      const bool joins = !out.empty() && std::all_of(all_.begin(), all_.end(), [&](const Access& a) {
        return a.strides[at(out.back().dims.back())] == a.strides[at(d)] * c_.dims[at(d)];
      });
      if (!joins) out.emplace_back();
      out.back().dims.push_back(d);
      out.back().size *= c_.dims[at(d)];
    }
    return out;
  }

  void order() {
    e_.index.resize(c_.dims.size());
    kept_ = runs(0, c_.kept);
    reduced_ = runs(c_.kept, static_cast<int>(c_.dims.size()));
  }

  static int64_t size_of_runs(const std::vector<Run>& runs) {
    int64_t n = 1;
    for (const Run& r : runs) n *= r.size;
    return n;
  }

  /// Whether offsets along these dimensions, or the index itself, need 64 bits.
  bool wide(const std::vector<Run>& runs, int64_t slack) const {
    if (size_of_runs(runs) + slack >= kInt32) return true;
    for (const Access& a : all_)
      for (const Run& r : runs) {
        const int inner = r.dims.back();
        if (std::abs(a.strides[at(inner)]) > 0 && r.size * std::abs(a.strides[at(inner)]) >= kInt32) return true;
      }
    return false;
  }

  /// Lines that take the index `var` over `runs` apart, and the texts of the dimensions.
  std::vector<std::string> decompose(const std::vector<Run>& runs, const std::string& var, unsigned level) {
    std::vector<std::string> lines;
    int64_t inner = 1;
    if (runs.size() > 1) {
      Walk w{var, level, {}};
      for (const Run& r : runs) w.dims.emplace_back(r.dims.back(), r.size);
      e_.walks.push_back(std::move(w));
    }
    for (size_t i = runs.size(); i-- > 0;) {
      std::string text = var;
      if (runs.size() > 1) {
        text = e_.names.fresh(fmt::format("{}_{}", var, i));
        std::string from = inner == 1 ? var : fmt::format("{} // {}", var, inner);
        lines.push_back(fmt::format("{} = {}", text, i > 0 ? fmt::format("{} % {}", from, runs[i].size) : from));
      }
      e_.index[at(runs[i].dims.back())] = {text, level};
      inner *= runs[i].size;
    }
    return lines;
  }

  void lines(const std::vector<std::string>& list) {
    for (const std::string& l : list) e_.line(l);
  }

  void finish(int64_t programs, int warps) {
    write_source(e_, cluster_comment(r_), group_);
    group_.arguments = e_.arguments();
    group_.grid = {programs, 1, 1};
    group_.num_warps = warps;
    group_.num_stages = 3;
  }

  /// Another choice; the grid when each program covers `elements` of what it now covers `now`.
  void configuration(std::vector<std::pair<std::string, int64_t>> constants, int64_t programs, int warps) {
    group_.configurations.push_back({std::move(constants), {programs, 1, 1}, warps, 3});
  }

  void store_all() {
    for (int m : stores_) e_.store(m);
  }

  /// Starts all loads of a program at once, so that none waits behind a computation or a reduction, as long as their
  /// registers leave room: `each` of a thread for a tensor that varies along columns.
  void load_early(int64_t each, int64_t most) {
    if (!r_.machine.gpu()) return;
    for (const Access& a : early_) {
      bool along_columns = false;
      for (size_t d = 0; d < a.strides.size() && d < e_.index.size(); ++d)
        along_columns = along_columns || (a.strides[d] != 0 && (e_.index[d].level & kAlongColumns));
      if (along_columns && (most -= each) < 0) return;
      e_.preload(a);
    }
  }

  void single() {
    store_all();
    finish(1, 1);
    group_.shape = "1 element";
  }

  void elements() {
    const int64_t n = size_of_runs(kept_);
    const int64_t least = r_.machine.gpu() ? kShortRun : kShortRunOfACpu;
    if (kept_.size() > 1 && (crossing() >= 0 || (kept_.back().size >= least && !is_ragged())))
      tiles();
    else
      flat(n);
    group_.shape = fmt::format("{} elements", n);
  }

  /// Whether tiles of rows by columns would cut memory into short pieces, and one index over all elements would not: no
  /// tile of columns divides a row well, or rows begin inside of wide words. Divisions by the length of a row then find
  /// where an element is; where rows are whole words, so are all accesses.
  bool is_ragged() const {
    constexpr int64_t kWord = 16, kLeastPiece = 64;  // bytes
    const int64_t n_cols = kept_.back().size;
    if (!r_.machine.gpu() || wide(kept_, kWord)) return false;
    int64_t narrowest = kWord;
    bool walks = true;  // each tensor is read in one go, or one value of it per row
    for (const Access& a : all_) {
      const int64_t inner = a.strides[at(kept_.back().dims.back())];
      if (inner == 0) continue;
      if (inner != 1) return false;
      int64_t step = 1;
      for (size_t i = kept_.size(); i-- > 0; step *= kept_[i].size)
        walks = walks && a.strides[at(kept_[i].dims.back())] == step;
      const DagNode& n = dag_.nodes[at(a.node)];
      if (!n.counts) narrowest = std::min<int64_t>(narrowest, size_of(n.dtype));
    }
    if (n_cols * narrowest % kWord != 0) return walks;
    return column_block(r_.machine, n_cols) * narrowest < kLeastPiece;
  }

  void flat(int64_t n) {
    auto [block, warps] = element_tile(r_.machine, n, widest_);
    block = std::min(block, power_of_two(n));
    const std::string var = e_.names.fresh("i"), inside = n % block ? e_.names.fresh("inside") : "";
    const std::string block_name = e_.constant(block, "BLOCK");
    const std::string pid = wide(kept_, block) ? "tl.program_id(0).to(tl.int64)" : "tl.program_id(0)";
    e_.line(fmt::format("{} = {} * {} + tl.arange(0, {})", var, pid, block_name, block_name));
    lines(decompose(kept_, var, kAlongColumns));
    const std::string size = inside.empty() ? "" : e_.size(n, "n");
    const std::string test = fmt::format("{} = {} < {}", inside, var, size);
    constexpr int64_t kLeast = int64_t{1} << 17;  // small tensors gain nothing
    const int64_t each = block / (32 * warps);
    if (!inside.empty() && is_odd(n) && n >= kLeast) {
      // All programs but the last have whole tiles, and access them in wide words.
      e_.begin_loop(fmt::format("if {} * {} + {} <= {}:", pid, block_name, block_name, size), {});
      load_early(each, kMostEarly);
      store_all();
      e_.end_loop();
      e_.begin_loop("else:", {test});
      e_.column_mask = inside;
      load_early(each, kMostEarly);
      store_all();
      e_.end_loop();
    } else {
      if (!inside.empty()) e_.line(test);
      e_.column_mask = inside;
      load_early(each, kMostEarly);
      store_all();
    }
    finish(cdiv(n, block), warps);
    for (auto [other, w] : {std::pair<int64_t, int>{1024, 4}, {2048, 2}, {2048, 4}, {4096, 4}, {4096, 8}})
      if (std::pair(other, w) != std::pair(block, warps) && other <= power_of_two(n) &&
          (!inside.empty() || n % other == 0))
        configuration({{block_name, other}}, cdiv(n, other), w);
  }

  /// A run other than the last along which a large tensor lies contiguously, or -1.
  int crossing() const {
    const int inner = kept_.back().dims.back();
    for (const Access& a : all_)
      for (size_t i = 0; i + 1 < kept_.size(); ++i)
        if (kept_[i].size >= kShortCrossing && a.strides[at(kept_[i].dims.back())] == 1 && a.strides[at(inner)] != 1 &&
            a.strides[at(inner)] != 0)
          return static_cast<int>(i);
    return -1;
  }

  /// Rows by columns, the columns along the last run.
  void tiles() {
    const int cross = crossing();
    if (cross >= 0) {  // that run becomes the innermost of the rows
      Run r = kept_[at(cross)];
      kept_.erase(kept_.begin() + cross);
      kept_.insert(kept_.end() - 1, std::move(r));
    }
    const std::vector<Run> outer(kept_.begin(), kept_.end() - 1), inner(kept_.end() - 1, kept_.end());
    const int64_t n_rows = size_of_runs(outer), n_cols = inner[0].size;
    const bool gpu = r_.machine.gpu();
    auto [elements, warps] = element_tile(r_.machine, n_rows * n_cols, widest_);
    int64_t block = 1;
    if (cross >= 0) {
      const CrossingTile t = crossing_tile(r_.machine, n_rows, n_cols, outer.back().size);
      block = t.columns, elements = t.rows * t.columns, warps = t.warps;
    } else {
      block = column_block(r_.machine, n_cols);
      if (!gpu) elements = block;  // measured on a CPU: loops over one row at a time beat tiles of several
    }
    const int64_t rows = std::min(std::max<int64_t>(1, elements / block), power_of_two(n_rows));
    const int64_t tiles_n = cdiv(n_cols, block), programs = cdiv(n_rows, rows) * tiles_n;
    const std::string columns = e_.constant(block, "BLOCK");
    std::string pid = wide(outer, rows) || wide(inner, block) ? "tl.program_id(0).to(tl.int64)" : "tl.program_id(0)";
    std::string row_pid = pid, column_pid;
    if (tiles_n > 1) {
      const std::string p = e_.names.fresh("pid"), per_row = e_.names.fresh("tiles");
      e_.line(fmt::format("{} = {}", p, pid));
      e_.line(fmt::format("{} = tl.cdiv({}, {})", per_row, e_.size(n_cols, "n_cols"), columns));
      row_pid = fmt::format("{} // {}", p, per_row);
      column_pid = fmt::format("{} % {} * {} + ", p, per_row, columns);
    }
    const std::string row = row_range(row_pid, rows, n_rows);
    const std::string col = e_.names.fresh("cols");
    e_.line(fmt::format("{} = {}tl.arange(0, {})", col, column_pid, columns));
    if (n_cols % block) {
      e_.column_mask = e_.names.fresh("in_cols");
      e_.line(fmt::format("{} = {} < {}", e_.column_mask, col, e_.size(n_cols, "n_cols")));
    }
    lines(decompose(outer, row, rows > 1 ? kAlongRows : kUniform));
    lines(decompose(inner, col, kAlongColumns));
    load_early(rows * block / (32 * warps), kMostEarly);
    store_all();
    finish(programs, warps);
    for (auto [b, elems, w] :
         {std::tuple<int64_t, int64_t, int>{128, 2048, 4}, {256, 2048, 4}, {512, 4096, 4}, {1024, 4096, 8}}) {
      const int64_t r = elems / b;
      if (rows == 1 || b > power_of_two(n_cols) || r > power_of_two(n_rows) || (r == rows && b == block) || r < 2 ||
          (n_cols % block == 0 && n_cols % b) || (n_rows % rows == 0 && n_rows % r) || (tiles_n == 1) != (b >= n_cols))
        continue;
      configuration({{rows_name_, r}, {columns, b}}, cdiv(n_rows, r) * cdiv(n_cols, b), w);
    }
  }

  /// The rows of a program: one number, or a range. Sets the mask. `pid` is empty where there is one such range.
  std::string row_range(const std::string& pid, int64_t rows, int64_t n_rows) {
    if (rows == 1) {
      std::string row = e_.names.fresh("row");
      e_.line(fmt::format("{} = {}", row, pid));
      return row;
    }
    e_.two_ranges = true;
    rows_name_ = e_.constant(rows, "ROWS");
    std::string row = e_.names.fresh("rows");
    const std::string first = pid.empty() ? "" : fmt::format("{} * {} + ", pid, rows_name_);
    e_.line(fmt::format("{} = {}tl.arange(0, {})", row, first, rows_name_));
    if (n_rows % rows) {
      e_.row_mask = e_.names.fresh("in_rows");
      e_.line(fmt::format("{} = {} < {}", e_.row_mask, row, e_.size(n_rows, "n_rows")));
    }
    return row;
  }

  /// Whether memory runs on along the columns of a row; else rows lie side by side.
  bool runs_along_columns() const {
    if (reduced_.empty() || kept_.empty()) return true;
    const Access& by = main();
    return by.strides[at(reduced_.back().dims.back())] == 1 || by.strides[at(kept_.back().dims.back())] != 1;
  }

  RowWork row_work(int64_t n_rows, int64_t n_cols) const {
    RowWork w;
    w.n_rows = n_rows, w.n_cols = n_cols, w.splits = c_.splits, w.widest = widest_, w.depth = deepest();
    w.along = runs_along_columns();
    for (const Access& a : std::set<Access>(loads_.begin(), loads_.end()))
      w.tensors += std::any_of(a.strides.begin() + c_.kept, a.strides.end(), [](int64_t s) { return s != 0; });
    w.exponentials = std::any_of(c_.members.begin(), c_.members.end(), [&](int m) { return exponentials_of(m) >= 0; });
    constexpr int kCostlyFlop = 16;
    w.costly = std::ranges::any_of(c_.members, [&](int m) {
      const DagNode& n = dag_.nodes[at(m)];
      return n.kind == DagKind::kPointwise && info(n.op).flop >= kCostlyFlop;
    });
    w.stores_rows = std::any_of(stores_.begin(), stores_.end(), [&](int m) { return e_.stored_along_columns(m); });
    return w;
  }

  /// What reductions take of columns outside: -inf for those that feed a maximum directly, else 0.
  void fill() {
    e_.other = 0.0;
    for (int m : c_.members) {
      const DagNode& n = dag_.nodes[at(m)];
      if (n.kind == DagKind::kReduce && n.op == ExprOp::kMax && n.plain_max && !c_.contains(n.operands[0].node))
        e_.other_low.insert(n.operands[0].node);
    }
  }

  /// Whether the rows of a program are of the last run alone, so that what varies along columns and the other runs (the
  /// places of rows that are added up, their weights) is read once for all of them.
  bool shares_outer_rows(const RowTile& t) const {
    if (!r_.machine.gpu() || t.rows == 1 || kept_.size() < 2 || runs_along_columns()) return false;
    const int inner = kept_.back().dims.back();
    const int64_t size = kept_.back().size, tile = std::min(t.rows, power_of_two(size));
    if (size < kShortRun || cdiv(size, tile) * tile * 4 > size * 5) return false;
    return std::ranges::any_of(loads_, [&](const Access& a) {
      const auto columns = a.strides.begin() + c_.kept;
      auto varies = [](int64_t stride) { return stride != 0; };
      return a.strides[at(inner)] == 0 && std::any_of(a.strides.begin(), columns, varies) &&
             std::any_of(columns, a.strides.end(), varies);
    });
  }

  /// The lines that say which rows a program has.
  void begin_kept(const std::string& pid, const RowTile& t, int64_t n_rows) {
    if (!outer_is_shared_) {
      const std::string row = row_range(pid, t.rows, n_rows);
      return lines(decompose(kept_, row, t.rows > 1 ? kAlongRows : kUniform));
    }
    const std::vector<Run> outer(kept_.begin(), kept_.end() - 1), inner(kept_.end() - 1, kept_.end());
    const int64_t tiles = cdiv(inner[0].size, t.rows);
    std::string group = e_.names.fresh("group"), of_group;
    if (tiles == 1) {
      e_.line(fmt::format("{} = {}", group, pid));
    } else {
      const std::string p = e_.names.fresh("pid"), count = e_.constant(tiles, "TILES");
      e_.line(fmt::format("{} = {}", p, pid));
      e_.line(fmt::format("{} = {} // {}", group, p, count));
      of_group = fmt::format("{} % {}", p, count);
    }
    const std::string row = row_range(of_group, t.rows, inner[0].size);
    lines(decompose(outer, group, kUniform));
    lines(decompose(inner, row, kAlongRows));
  }

  int64_t programs_of_rows(const RowTile& t, int64_t n_rows) const {
    if (!outer_is_shared_) return cdiv(n_rows, t.rows) * c_.splits;
    const int64_t inner = kept_.back().size;
    return n_rows / inner * cdiv(inner, t.rows) * c_.splits;
  }

  struct RowNames {
    std::string block, part, count;
    int64_t chunk;  // of columns in each part
  };

  /// The lines before any column: which rows and which part of them a program has. From here on columns_of_ has the
  /// lines for a tile of columns.
  RowNames begin_rows(const RowTile& t, int64_t n_rows, int64_t n_cols) {
    const std::string block = e_.constant(t.block, "BLOCK");
    const bool wide_rows = wide(kept_, t.rows), wide_columns = wide(reduced_, t.block);
    std::string pid = wide_rows || wide_columns ? "tl.program_id(0).to(tl.int64)" : "tl.program_id(0)";
    std::string part;
    if (c_.splits > 1) {
      const std::string p = e_.names.fresh("pid");
      part = e_.names.fresh("part");
      e_.split = part;
      const std::string parts = e_.constant(c_.splits, "PARTS");
      e_.line(fmt::format("{} = {}", p, pid));
      e_.line(fmt::format("{} = {} % {}", part, p, parts));
      pid = fmt::format("{} // {}", p, parts);
    }
    if (!kept_.empty()) begin_kept(pid, t, n_rows);
    if (t.known) e_.known_size = {n_cols, e_.constant(n_cols, "N_COLS")};
    const std::string col = e_.names.fresh("cols"), count = e_.size(n_cols, "n_cols");
    const int64_t chunk = c_.chunk > 0 ? c_.chunk : cdiv(cdiv(n_cols, c_.splits), t.block) * t.block;
    KILN_ASSERT(chunk % t.block == 0, "a part of {} columns ends inside a tile of {}", chunk, t.block);
    if (n_cols == 0 || n_cols % t.block || (c_.splits > 1 && chunk * c_.splits != n_cols))
      e_.column_mask = e_.names.fresh("inside");
    e_.column_test = fmt::format("{} < {}", col, count);
    e_.tile_shape = t.rows > 1 ? fmt::format("[{}, {}]", rows_name_, block) : fmt::format("[{}]", block);
    const std::string inside = t.held > 0
                                   ? fmt::format("({} < {}) & ({} < {})", col, count, col, e_.constant(t.held, "HELD"))
                                   : fmt::format("{} < {}", col, count);
    columns_of_ = [this, col, block, wide_columns, inside](const std::string& start) {
      std::string range = fmt::format("{}tl.arange(0, {})", start.empty() ? "" : start + " + ", block);
      if (wide_columns) range = start.empty() ? range + ".to(tl.int64)" : "(" + range + ").to(tl.int64)";
      std::vector<std::string> out = {fmt::format("{} = {}", col, range)};
      if (!e_.column_mask.empty()) out.push_back(fmt::format("{} = {}", e_.column_mask, inside));
      if (!decomposed_) column_lines_ = decompose(reduced_, col, kAlongColumns);
      decomposed_ = true;
      out.insert(out.end(), column_lines_.begin(), column_lines_.end());
      return out;
    };
    return {block, part, count, chunk};
  }

  /// What a scan carries into the first of its program's columns: of a part, the totals of those before it. They are
  /// loaded under a mask and never subtracted, so that no infinity or NaN goes back.
  std::string first_carry(int m, const std::string& part) {
    const DagNode& n = dag_.nodes[at(m)];
    const bool adds = n.op == ExprOp::kCumSum;
    const std::string neutral = Emitter::literal(adds ? 0.0 : 1.0, n.operand_type);
    if (part.empty())
      return fmt::format("tl.full([{}], {}, tl.{})", e_.two_ranges ? rows_name_ : "", neutral,
                         info(n.operand_type).triton);
    if (before_.empty()) {
      before_ = e_.names.fresh("before");
      e_.line(fmt::format("{} = tl.arange(0, {})", before_, e_.constant(power_of_two(c_.splits), "MOST_PARTS")));
    }
    const Access totals = e_.access(m, 1);
    unsigned level = e_.two_ranges ? kAlongRows : kUniform;
    std::string place = e_.address(totals, e_.pointer(totals.node, totals.offset, false), &level), along = before_,
                inside = fmt::format("{} < {}", before_, part);
    if (e_.two_ranges) {
      place = fmt::format("({})[:, None]", place);
      along += "[None, :]";
      inside = fmt::format("({})[None, :]", inside);
      if (!e_.row_mask.empty()) inside += fmt::format(" & {}[:, None]", e_.row_mask);
    }
    const std::string load = fmt::format("tl.load({} + {}, mask={}, other={})", place, along, inside, neutral);
    const int axis = e_.two_ranges ? 1 : 0;
    return adds ? fmt::format("tl.sum({}, axis={})", load, axis)
                : fmt::format("tl.reduce({}, {}, multiply)", load, axis);
  }

  /// Running sums: a loop along the row, or its part, carries the sum of all columns before.
  void scan() {
    const int64_t n_rows = size_of_runs(kept_), n_cols = size_of_runs(reduced_);
    const RowTile t = scan_tile(r_.machine, row_work(n_rows, n_cols));
    const RowNames names = begin_rows(t, n_rows, n_cols);
    std::map<int, std::string> carries;
    for (int m : c_.members) {
      const DagNode& n = dag_.nodes[at(m)];
      if (n.kind != DagKind::kScan || !t.loop) continue;
      carries[m] = e_.names.fresh("carry");
      const std::string first = first_carry(m, names.part);
      e_.line(fmt::format("{} = {}", carries[m], first));
    }
    if (t.loop) {
      const Loop loop = loop_over(names);
      e_.begin_loop(loop.head, columns_of_(loop.start));
    } else {
      lines(columns_of_(""));
    }
    std::vector<std::string> after;
    for (int m : c_.members) {
      const DagNode& n = dag_.nodes[at(m)];
      if (n.kind != DagKind::kScan) continue;
      const Text tile = e_.scanned(m);
      Text sums = e_.running(m, tile);
      if (t.loop) {
        const bool adds = n.op == ExprOp::kCumSum;
        const std::string& carry = carries[m];
        const std::string before = carry + (e_.two_ranges ? "[:, None]" : "");
        // A product of its own, which no addition makes an fma of.
        sums.text = adds                       ? fmt::format("{} + {}", sums.text, before)
                    : is_float(n.operand_type) ? fmt::format("libdevice.mul_rn({}, {})", sums.text, before)
                                               : fmt::format("{} * {}", sums.text, before);
        sums.binds = adds ? 6 : is_float(n.operand_type) ? 10 : 7;
        const int axis = e_.two_ranges ? 1 : 0;
        if (!adds) e_.use_helper("multiply");
        if (!adds && is_float(n.operand_type)) e_.use_libdevice();
        after.push_back(adds ? fmt::format("{} += tl.sum({}, axis={})", carry, tile.text, axis)
                             : fmt::format("{} *= tl.reduce({}, {}, multiply)", carry, tile.text, axis));
      }
      e_.set(m, e_.named(e_.settled(m, std::move(sums)), n.name.empty() ? "running" : n.name));
    }
    store_all();
    lines(after);
    if (t.loop) e_.end_loop();
    const int64_t programs = cdiv(n_rows, t.rows) * c_.splits;
    finish(programs, t.warps);
    group_.shape = fmt::format("{} rows x {}", n_rows, n_cols);
    for (int w : {t.warps / 2, t.warps * 2})
      if (w >= 1 && w <= 16) configuration({}, programs, w);
  }

  void rows() {
    const int64_t n_rows = size_of_runs(kept_), n_cols = size_of_runs(reduced_);
    RowTile t = row_tile(r_.machine, row_work(n_rows, n_cols));
    while (c_.chunk > 0 && c_.chunk % t.block != 0) t.block /= 2;  // the parts of a scan end where tiles do
    outer_is_shared_ = shares_outer_rows(t);
    if (outer_is_shared_) t.rows = std::min(t.rows, power_of_two(kept_.back().size));
    fill();
    const RowNames names = begin_rows(t, n_rows, n_cols);
    const std::string& block = names.block;
    if (t.loop)
      passes(names);
    else if (t.again) {
      lines(columns_of_(""));
      parts();
    } else {
      if (r_.machine.gpu()) e_.evictions.shared = kReadAgain.shared;
      lines(columns_of_(""));
      load_early(t.rows * (t.held > 0 ? t.held : t.block) / (32 * t.warps), kMostEarlyOfRows);
      store_all();
    }
    finish(programs_of_rows(t, n_rows), t.warps);
    group_.shape = fmt::format("{} rows x {}", n_rows, n_cols);
    if (t.loop && c_.splits == 1 && n_rows > 0) {
      for (auto [b, w] : {std::pair<int64_t, int>{2048, 4}, {4096, 16}, {8192, 8}, {8192, 16}})
        if (t.rows == 1 && b != t.block && b <= power_of_two(n_cols) && (!e_.column_mask.empty() || n_cols % b == 0))
          configuration({{block, b}}, n_rows, w);
    } else if (c_.splits == 1) {
      for (int w : {t.warps / 2, t.warps * 2})
        if (w >= 1 && w <= 32) configuration({}, programs_of_rows(t, n_rows), w);
    }
  }

  /// How many reductions lie between each member and the tensors.
  std::map<int, int> depths() const {
    std::map<int, int> depth;
    for (int m : c_.members) {
      int d = 0;
      for (const Operand& o : dag_.nodes[at(m)].operands)
        if (!o.is_number() && c_.contains(o.node)) d = std::max(d, depth[o.node]);
      depth[m] = d + (dag_.nodes[at(m)].kind == DagKind::kReduce ? 1 : 0);
    }
    return depth;
  }

  int deepest() const {
    int most = 0;
    for (const auto& [m, d] : depths()) most = std::max(most, d);
    return most;
  }

  std::vector<int> reductions_of(const std::map<int, int>& depth, int d) const {
    std::vector<int> out;
    for (int m : c_.members)
      if (dag_.nodes[at(m)].kind == DagKind::kReduce && depth.at(m) == d) out.push_back(m);
    return out;
  }

  /// A part of the program for each depth of reductions, and one that stores; each reads the row.
  void parts() {
    const auto depth = depths();
    e_.evictions = kReadAgain;
    for (int d = 1; d <= deepest(); ++d) {
      std::vector<std::pair<int, Text>> tiles;
      e_.begin_part();
      for (int m : reductions_of(depth, d)) tiles.emplace_back(m, e_.reduced(m));
      e_.end_loop();
      for (const auto& [m, tile] : tiles) e_.set(m, e_.named(e_.combine(m, tile), dag_.nodes[at(m)].name));
    }
    e_.evictions = kReadLast;
    e_.begin_part();
    store_all();
    e_.end_loop();
    e_.evictions = {};
  }

  /// Whether a mask at this size would test elements one by one: no wide access ends with it.
  bool is_odd(int64_t size) const { return r_.machine.gpu() && size % 16 != 0; }

  /// A loop over the columns that a program has.
  struct Loop {
    std::string start, head;
    std::string whole, rest;  // of an odd part: heads of two loops instead, of which the first has whole tiles
  };
  Loop loop_over(const RowNames& names) {
    std::string first = "0", end = names.count;
    if (!names.part.empty()) {
      first = e_.names.fresh("first");
      const std::string length = e_.constant(names.chunk, "CHUNK");
      e_.line(fmt::format("{} = {} * {}", first, names.part, length));
      end = e_.names.fresh("end");
      e_.line(fmt::format("{} = tl.minimum({} + {}, {})", end, first, length, names.count));
    }
    Loop loop;
    loop.start = e_.names.fresh("start");
    // Each access to an odd row tests its elements one by one, whatever the mask says (a binary cross entropy of 1542 x
    // 12835 on an H200: 174 us, 52 with whole tiles).
    const bool odd = !names.part.empty() && kept_.empty() && c_.form != Form::kScan && is_odd(size_of_runs(reduced_));
    const std::string& block = names.block;
    auto over = [&](const std::string& from, const std::string& to) {
      return fmt::format("for {} in range({}, {}, {}):", loop.start, from, to, block);
    };
    loop.head = over(first, end);
    if (odd) {
      loop.whole = over(first, fmt::format("{} - {} + 1", end, block));
      loop.rest = over(fmt::format("{0} - ({0} - {1}) % {2}", end, first, block), end);
    }
    return loop;
  }

  /// One loop over the columns for each depth of reductions, and one that stores.
  void passes(const RowNames& names) {
    const auto depth = depths();
    const Loop loop = loop_over(names);
    const std::string &start = loop.start, &head = loop.head;
    std::map<int, int> online;  // maxima, and the sums of exponentials below them that one loop finds with them
    std::set<int> found;
    for (int m : c_.members)
      if (const int sum = exponentials_of(m); sum >= 0) online[m] = sum, found.insert(sum);
    std::vector<int> inner, outer;
    for (int m : stores_) (e_.stored_along_columns(m) ? inner : outer).push_back(m);
    const bool again = r_.machine.gpu() && names.part.empty() && !inner.empty();
    if (again) e_.evictions = kReadAgain;
    for (int d = 1; d <= deepest(); ++d) {
      std::vector<int> here = reductions_of(depth, d);
      std::erase_if(here, [&](int m) { return found.count(m) > 0; });
      if (here.empty()) continue;
      // What each accumulates is a tile, reduced once at the end.
      std::vector<std::string> sums;
      while (sums.size() < here.size()) sums.push_back(e_.names.fresh("acc"));
      std::map<int, std::string> scaled;  // the accumulators of online sums
      for (int m : here)
        if (online.count(m)) scaled[m] = e_.names.fresh("acc");
      for (size_t i = 0; i < here.size(); ++i) {
        e_.line(fmt::format("{} = {}", sums[i], initial(here[i], online.count(here[i]) > 0)));
        if (online.count(here[i])) e_.line(fmt::format("{} = {}", scaled[here[i]], initial(online[here[i]], false)));
      }
      auto sum = [&](const std::string& over) {
        e_.begin_loop(over, columns_of_(start));
        for (size_t i = 0; i < here.size(); ++i)
          accumulate(here[i], sums[i], online.count(here[i]) ? scaled[here[i]] : "");
        e_.end_loop();
      };
      if (!loop.whole.empty()) {
        const std::string mask = std::exchange(e_.column_mask, "");
        sum(loop.whole);
        e_.column_mask = mask;
      }
      sum(loop.whole.empty() ? head : loop.rest);
      for (size_t i = 0; i < here.size(); ++i) {
        const int m = here[i];
        e_.set(m, e_.named(total(m, sums[i]), dag_.nodes[at(m)].name));
        if (!online.count(m)) continue;
        const std::string top = e_.two_ranges ? e_.value(m).text + "[:, None]" : e_.value(m).text;
        const std::string rescaled = fmt::format("{} * tl.exp({} - {})", scaled[m], sums[i], top);
        e_.set(online[m], e_.named(total(online[m], rescaled), dag_.nodes[at(online[m])].name));
      }
    }
    if (again) e_.evictions = kReadLast;
    if (!inner.empty()) {
      e_.begin_loop(head, columns_of_(start));
      for (int m : inner) e_.store(m);
      e_.end_loop();
    }
    e_.evictions = {};
    for (int m : outer) e_.store(m);
  }

  /// The sum of exp(x - max) that shares the operand x of a maximum, so that one loop can find both; -1 when there is
  /// none. It takes two exponentials per element to save a pass over memory: where memory is what rows wait for.
  int exponentials_of(int maximum) const {
    const DagNode& m = dag_.nodes[at(maximum)];
    if (m.kind != DagKind::kReduce || !m.plain_max || m.operand_type != DType::kF32 || c_.splits > 1 ||
        !r_.machine.gpu())
      return -1;
    const Operand& x = m.operands[0];
    for (int s : c_.members) {
      const DagNode& sum = dag_.nodes[at(s)];
      if (sum.kind != DagKind::kReduce || sum.op != ExprOp::kSum || !c_.contains(sum.operands[0].node)) continue;
      const DagNode& e = dag_.nodes[at(sum.operands[0].node)];
      if (e.op != ExprOp::kExp || !c_.contains(e.operands[0].node)) continue;
      const DagNode& below = dag_.nodes[at(e.operands[0].node)];
      if (below.op != ExprOp::kSub || below.operands[1].node != maximum) continue;
      const Operand& y = below.operands[0];
      if (y.node == x.node && y.shape == x.shape && y.strides == x.strides && y.offset == x.offset) return s;
    }
    return -1;
  }

  /// Where an accumulator begins. `finite`: at the least number, so that differences of two of them are numbers.
  std::string initial(int m, bool finite) {
    const DagNode& n = dag_.nodes[at(m)];
    return fmt::format("tl.full({}, {}, tl.{})", e_.tile_shape,
                       finite ? "-3.4028234663852886e+38" : Emitter::identity(n),
                       info(Emitter::reduction_type(n)).triton);
  }

  void accumulate(int m, const std::string& sum, const std::string& scaled) {
    const DagNode& n = dag_.nodes[at(m)];
    Text v = e_.reduced(m);
    if (!scaled.empty()) {
      // What was summed below a lower maximum is scaled down to the new one.
      v = e_.named(std::move(v), "");
      const std::string x = e_.spread(v, t_level(), 10),
                        higher = e_.named_inside(fmt::format("tl.maximum({}, {})", sum, x), "higher");
      e_.line(fmt::format("{0} = {0} * tl.exp({1} - {2}) + tl.exp({3} - {2})", scaled, sum, higher, x));
      e_.line(fmt::format("{} = {}", sum, higher));
      return;
    }
    const std::string text = e_.spread(v, t_level(), 7);
    if (n.op == ExprOp::kSum || n.op == ExprOp::kCumProd)
      e_.line(fmt::format("{} {}= {}", sum, n.op == ExprOp::kSum ? "+" : "*", text));
    else
      e_.line(fmt::format("{} = {}({}, {})", sum, e_.extreme(n), sum, text));
  }

  unsigned t_level() const { return e_.two_ranges ? kWhole : kAlongColumns; }

  Text total(int m, const std::string& sum) {
    Text acc;
    acc.text = sum;
    acc.type = Emitter::reduction_type(dag_.nodes[at(m)]);
    acc.level = t_level();
    return e_.combine(m, acc);
  }

  const WriteRequest& r_;
  const Dag& dag_;
  const Cluster& c_;
  Group& group_;
  Emitter e_;
  std::vector<Access> loads_, writes_, all_, early_;
  std::vector<int> stores_;
  std::set<int> looked_up_;  // whose elements are taken from where others say
  std::vector<Run> kept_, reduced_;
  int widest_ = 1;
  std::string rows_name_, before_;
  std::function<std::vector<std::string>(const std::string&)> columns_of_;
  std::vector<std::string> column_lines_;
  bool decomposed_ = false;
  bool outer_is_shared_ = false;  // the rows of a program are of the last run alone
};

}  // namespace

Status write_loops(const WriteRequest& request, Group& group) { return LoopWriter(request, group).write(); }

}  // namespace kiln::fusion
