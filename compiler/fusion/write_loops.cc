// Pointwise kernels: which index runs over which dimensions, and the tile sizes.
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "compiler/fusion/loop_writer.h"

namespace kiln::fusion {

namespace {

constexpr int64_t kShortRunOfACpu = 8;
constexpr int64_t kMostEarly = 64;  // registers of a thread for what is loaded ahead
constexpr int64_t kFewColumns = 8;
constexpr int64_t kLeastOfTwoParts = int64_t{1} << 17;  // small tensors gain nothing
constexpr int64_t kBlocksOfLongRuns = 2;

class ElementWriter : LoopWriter {
 public:
  using LoopWriter::LoopWriter;

  Status write() {
    collect();
    order();
    if (kept_.empty())
      single();
    else
      elements();
    note_in_place();
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
            dag_.nodes[at(to.node)].op != ExprOp::kPut && dag_.nodes[at(to.node)].part_of < 0 &&
            dag_.nodes[at(a.node)].dtype == dag_.nodes[at(to.node)].dtype && is_read_once(a))
          group_.in_place.emplace_back(r_.value_of[at(stores_[i])], r_.value_of[at(a.node)]);
    }
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
    constexpr int64_t kWord = 16, kLeastPiece = 64, kMostSharedRow = 64 << 10;  // bytes
    const int64_t n_cols = kept_.back().size;
    if (!r_.machine.gpu() || wide(kept_, kWord)) return false;
    // Padded rows: one index would put what neighbouring threads store 16 bytes apart.
    if (std::ranges::any_of(stores_, [&](int m) { return dag_.nodes[at(m)].row_stride > 0; })) return false;
    int64_t narrowest = kWord;
    bool walks = true;  // each tensor is read in one go, or one value of it per row, or one row of it for all
    for (const Access& a : all_) {
      const DagNode& n = dag_.nodes[at(a.node)];
      const int64_t inner = a.strides[at(kept_.back().dims.back())];
      if (inner == 0 || n.counts) continue;
      if (inner != 1) return false;
      const bool is_row =
          std::all_of(kept_.begin(), kept_.end() - 1, [&](const Run& r) { return a.strides[at(r.dims.back())] == 0; });
      if (is_row && n_cols * size_of(n.dtype) <= kMostSharedRow) continue;
      int64_t step = 1;
      for (size_t i = kept_.size(); i-- > 0; step *= kept_[i].size)
        walks = walks && a.strides[at(kept_[i].dims.back())] == step;
      narrowest = std::min<int64_t>(narrowest, size_of(n.dtype));
    }
    // Long rows that are read out of longer ones, such as halves, are at least stored in wide words (silu(a) * b of
    // 2575 x 3109 float32 on an H100: 52 us by tiles, 38 so).
    constexpr int64_t kLeastOfParts = 256;
    if (n_cols * narrowest % kWord != 0) return walks || n_cols >= kLeastOfParts;
    return column_block(r_.machine, n_cols) * narrowest < kLeastPiece;
  }

  /// How many loads fetch an element at a time: their elements are looked up, or lie apart or at odd addresses.
  int64_t scattered() const {
    const int inner = kept_.back().dims.back();
    auto is_looked_up = [&](const Access& a) { return looked_up_.contains(a.node); };
    auto is_apart = [&](const Access& a) {
      if (is_looked_up(a) || a.strides[at(inner)] == 0) return false;
      const int64_t per_word = 16 / size_of(dag_.nodes[at(a.node)].dtype);
      bool odd = a.strides[at(inner)] != 1 || a.offset % per_word != 0;
      for (size_t d = 0; d < a.strides.size(); ++d)
        odd = odd || (static_cast<int>(d) != inner && a.strides[d] % per_word != 0);
      return odd;
    };
    const std::set<Access> loads(loads_.begin(), loads_.end());
    return std::ranges::count_if(loads_, is_looked_up) + std::ranges::count_if(loads, is_apart);
  }

  /// Elements of a thread that lie within 16 bytes of the loads which skip some, as windows two apart do, where most
  /// loads are such; else none. A warp loads one element of each thread at a time: the further threads are apart, the
  /// more lines of the L1 it asks for.
  std::optional<int64_t> elements_of_skipping_loads() const {
    constexpr int64_t kWord = 16, kFewest = 2;
    const int inner = kept_.back().dims.back();
    const std::set<Access> loads(loads_.begin(), loads_.end());
    int64_t skipping = 0, most = kWord;
    for (const Access& a : loads) {
      const int64_t bytes = std::abs(a.strides[at(inner)]) * size_of(dag_.nodes[at(a.node)].dtype);
      if (looked_up_.contains(a.node) || std::abs(a.strides[at(inner)]) < 2 || bytes > kWord) continue;
      ++skipping;
      most = std::min(most, power_of_two(kWord / bytes + 1) / 2);
    }
    if (!r_.machine.gpu() || 2 * skipping <= std::ssize(loads)) return std::nullopt;
    return std::max(most, kFewest);
  }

  void flat(int64_t n) {
    auto [block, warps] = element_tile(r_.machine, n, widest_, scattered());
    if (!has_long_runs(block))  // what is the same along a run is loaded for each element
      block = element_tile(r_.machine, n, widest_, scattered() + values_of_runs()).elements;
    if (const auto most = elements_of_skipping_loads()) block = std::min(block, *most * 32 * warps);
    block = std::min(block, power_of_two(n));
    // Elements of many loads, such as those of a recurrence that is written out, are few warps' time where they are
    // few.
    constexpr size_t kManyLoads = 16;
    constexpr int64_t kLane = 32;
    while (r_.machine.gpu() && loads_.size() >= kManyLoads && block > kLane &&
           cdiv(n, block) < r_.machine.multiprocessors) {
      block /= 2;
      warps = static_cast<int>(std::clamp<int64_t>(block / kLane, 1, warps));
    }
    // Not where a thread has no more than one wide store: programs twice as many cost more than their values.
    constexpr int64_t kWideStore = 4;
    if (!has_long_runs(block) && has_long_runs(block / 2) && values_of_runs() > 0 &&
        block / 2 >= kWideStore * 32 * warps)
      block /= 2;
    const std::string var = e_.names.fresh("i"), inside = n % block ? e_.names.fresh("inside") : "";
    const std::string block_name = e_.constant(block, "BLOCK");
    const std::string pid = program(wide(kept_, block));
    e_.line(fmt::format("{} = {} * {} + tl.arange(0, {})", var, pid, block_name, block_name));
    const int64_t each = block / (32 * warps);
    if (has_long_runs(block))
      by_runs(pid, var, block_name, inside, n, each);
    else
      by_elements(pid, var, block_name, inside, n, each);
    finish(cdiv(n, block), warps);
    for (auto [other, w] : {std::pair<int64_t, int>{1024, 4}, {2048, 2}, {2048, 4}, {4096, 4}, {4096, 8}})
      if (std::pair(other, w) != std::pair(block, warps) && other <= power_of_two(n) &&
          (!inside.empty() || n % other == 0))
        configuration({{block_name, other}}, cdiv(n, other), w);
  }

  /// All results, behind their loads, of `each` elements of a thread.
  void store_loaded(int64_t each) {
    load_early(each, kMostEarly);
    store_all();
  }

  /// Every program takes apart where each of its elements is.
  void by_elements(const std::string& pid, const std::string& var, const std::string& block, const std::string& inside,
                   int64_t n, int64_t each) {
    lines(decompose(kept_, var, kAlongColumns));
    const std::string size = inside.empty() ? "" : e_.size(n, "n");
    const std::string test = fmt::format("{} = {} < {}", inside, var, size);
    if (!inside.empty() && is_odd(n) && n >= kLeastOfTwoParts) {
      // All programs but the last have whole tiles, and access them in wide words.
      e_.begin_loop(fmt::format("if {} * {} + {} <= {}:", pid, block, block, size), {});
      store_loaded(each);
      e_.end_loop();
      e_.begin_loop("else:", {test}, false);  // a line hoisted from here would stand between the two
      e_.column_mask = inside;
      store_loaded(each);
      e_.end_loop();
      return;
    }
    if (!inside.empty()) e_.line(test);
    e_.column_mask = inside;
    store_loaded(each);
  }

  /// Whether most programs' elements lie in one run along the last dimensions, so that where it lies, and what varies
  /// from run to run alone, is one number for all of them.
  bool has_long_runs(int64_t block) const {
    return r_.machine.gpu() && kept_.size() > 1 && kept_.back().size >= kBlocksOfLongRuns * block &&
           size_of_runs(kept_) >= kLeastOfTwoParts;
  }

  /// Loads of what is the same along a run: one for a program that lies in one.
  int64_t values_of_runs() const {
    const int inner = kept_.back().dims.back();
    return std::ranges::count_if(loads_, [&](const Access& a) {
      return a.strides[at(inner)] == 0 && std::ranges::any_of(a.strides, [](int64_t s) { return s != 0; });
    });
  }

  /// Programs within a run take its place apart once; those where a run ends do so for each element.
  void by_runs(const std::string& pid, const std::string& var, const std::string& block, const std::string& inside,
               int64_t n, int64_t each) {
    const int64_t size = kept_.back().size;
    const std::string start = e_.names.fresh("start"), first = e_.names.fresh("first"), run = e_.names.fresh("run");
    e_.line(fmt::format("{} = {} * {}", start, pid, block));
    e_.line(fmt::format("{} = {} % {}", first, start, size));
    const std::string along = e_.names.fresh(fmt::format("{}_{}", var, kept_.size() - 1));
    const std::vector<Run> outer(kept_.begin(), kept_.end() - 1);
    const std::vector<Index> none = e_.index;
    e_.begin_loop(fmt::format("if {} + {} <= {}:", first, block, size),
                  {fmt::format("{} = {} // {}", run, start, size),
                   fmt::format("{} = {} + tl.arange(0, {})", along, first, block)},
                  false);
    Walk whole{var, kAlongColumns, {}};
    for (const Run& r : kept_) whole.dims.emplace_back(r.dims.back(), r.size);
    e_.walks.push_back(std::move(whole));
    lines(decompose(outer, run, kUniform));
    e_.index[at(kept_.back().dims.back())] = {along, kAlongColumns};
    store_loaded(each);
    e_.end_loop();
    e_.index = none;
    e_.walks.clear();
    std::vector<std::string> head = decompose(kept_, var, kAlongColumns);
    if (!inside.empty()) head.push_back(fmt::format("{} = {} < {}", inside, var, e_.size(n, "n")));
    e_.begin_loop("else:", head, false);
    e_.column_mask = inside;
    store_loaded(each);
    e_.end_loop();
  }

  /// A run other than the last along which a large tensor lies contiguously, or -1. Next to a few columns it needs no
  /// tile: consecutive elements then read as many pieces as there are columns, each of whole sectors.
  int crossing() const {
    const int inner = kept_.back().dims.back();
    const size_t last = kept_.size() - (r_.machine.gpu() && kept_.back().size <= kFewColumns ? 2 : 1);
    for (const Access& a : all_)
      for (size_t i = 0; i < last; ++i)
        if (kept_[i].size >= kShortCrossing && a.strides[at(kept_[i].dims.back())] == 1 && a.strides[at(inner)] != 1 &&
            a.strides[at(inner)] != 0)
          return static_cast<int>(i);
    return -1;
  }

  /// How many of the last runs are columns next to a run that crosses them: as many as results lie in memory without a
  /// gap, until a warp stores whole cache lines.
  size_t runs_of_columns(int cross) const {
    size_t first = kept_.size() - 1;
    int64_t columns = kept_[first].size;
    auto goes_on = [&](const Access& a) {
      const Run &run = kept_[first], &before = kept_[first - 1];
      return a.strides[at(before.dims.back())] == a.strides[at(run.dims.back())] * run.size;
    };
    while (r_.machine.gpu() && columns < kShortRun && at(cross) + 1 < first && std::ranges::all_of(writes_, goes_on))
      columns *= kept_[--first].size;
    return kept_.size() - first;
  }

  /// Rows by columns, the columns along the last run.
  void tiles() {
    const int cross = crossing();
    const auto columns_of = static_cast<std::ptrdiff_t>(cross >= 0 ? runs_of_columns(cross) : 1);
    if (cross >= 0) {  // that run becomes the innermost of the rows
      Run r = kept_[at(cross)];
      kept_.erase(kept_.begin() + cross);
      kept_.insert(kept_.end() - columns_of, std::move(r));
    }
    const std::vector<Run> outer(kept_.begin(), kept_.end() - columns_of), inner(kept_.end() - columns_of, kept_.end());
    const int64_t n_rows = size_of_runs(outer), n_cols = size_of_runs(inner);
    const bool gpu = r_.machine.gpu();
    auto [elements, warps] = element_tile(r_.machine, n_rows * n_cols, widest_, scattered());
    int64_t block = 1;
    if (cross >= 0) {
      const CrossingTile t = crossing_tile(r_.machine, n_rows, n_cols, outer.back().size);
      block = t.columns, elements = t.rows * t.columns, warps = t.warps;
    } else {
      block = column_block(r_.machine, n_cols);
      // Pieces of less than a line, which several programs store, cost more than columns that are left out (an H200: 32
      // x 3 x 224 x 224 halves in pieces of 32 columns take 10.0 us, in rows of 256 9.5).
      constexpr int64_t kLineBytes = 128, kWidestBlock = 256;
      if (gpu && block < n_cols && block * widest_ < kLineBytes) block = std::min(power_of_two(n_cols), kWidestBlock);
      // What a row has one of is a number for a program that lies in one.
      if (gpu && values_of_runs() > 0 && n_cols >= kBlocksOfLongRuns * elements && n_cols % elements == 0)
        block = std::max(block, elements);
      // Rows share what is read of columns where nothing is read of elements (the overlaps of 684 x 1232 boxes on an
      // H100: 14.1 us with two rows of 256, 6.6 with four of 128).
      constexpr int64_t kMostOfPairs = 128;
      if (gpu && looked_up_.empty() && std::ranges::none_of(loads_, full)) block = std::min(block, kMostOfPairs);
      if (!gpu) elements = block;  // measured on a CPU: loops over one row at a time beat tiles of several
    }
    const int64_t rows = std::min(std::max<int64_t>(1, elements / block), power_of_two(n_rows));
    const int64_t tiles_n = cdiv(n_cols, block), programs = cdiv(n_rows, rows) * tiles_n;
    const std::string columns = e_.constant(block, "BLOCK");
    std::string pid = program(wide(outer, rows) || wide(inner, block));
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
    store_loaded(rows * block / (32 * warps));
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
};

}  // namespace

Status write_loops(const WriteRequest& request, Group& group) {
  const bool rows = request.cluster.form == Form::kScan || request.cluster.reduces();
  return rows ? write_rows(request, group) : ElementWriter(request, group).write();
}

}  // namespace kiln::fusion
