// Row kernels: reductions and running sums, in one piece or in loops over columns.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <utility>

#include "compiler/fusion/join_totals.h"
#include "compiler/fusion/look_back.h"
#include "compiler/fusion/row_facts.h"
#include "compiler/fusion/split.h"
#include "support/diag.h"

namespace kiln::fusion {

namespace {

constexpr int64_t kMostEarlyOfRows = 48;  // registers of a thread for what is loaded ahead, beside a reduction's

// What a row's columns are read for once more should still be in a cache then, and what all rows share always.
const Evictions kReadAgain = {"evict_last", "evict_last", ""}, kReadLast = {"evict_first", "evict_last", "evict_first"};

class RowWriter : RowFacts {
 public:
  using RowFacts::RowFacts;

  Status write() {
    collect();
    order();
    if (c_.form == Form::kScan)
      scan();
    else
      rows();
    if (c_.reduces() && c_.splits == 1) note_in_place();
    return e_.problem();
  }

 private:
  /// A row's value may go where the row's value of another tensor was (running statistics), if nothing else that is
  /// stored needs what was there: each thread reads it before it stores its own result, and another warp may read it
  /// later.
  void note_in_place() {
    for (size_t i = 0; i < stores_.size(); ++i) {
      if (e_.stored_along_columns(stores_[i])) continue;
      const Access& to = writes_[i];
      const auto rows = to.strides.begin(), columns = rows + c_.kept;
      if (std::find(rows, columns, 0) != columns) continue;
      for (const Access& a : std::set<Access>(loads_.begin(), loads_.end()))
        if (a.strides == to.strides && a.offset == to.offset && !looked_up_.contains(a.node) && is_read_once(a) &&
            dag_.nodes[at(a.node)].dtype == dag_.nodes[at(to.node)].dtype && is_for(stores_[i], a.node))
          group_.in_place.emplace_back(r_.value_of[at(stores_[i])], r_.value_of[at(a.node)]);
    }
  }

  /// What reductions take of columns outside: -inf for those that feed a maximum directly, else 0; but 1 for divisors,
  /// as a quotient by 0 takes a path of its own.
  void fill() {
    e_.other = 0.0;
    std::set<int> reduced;
    for (int m : c_.members) {
      const DagNode& n = dag_.nodes[at(m)];
      if (n.kind != DagKind::kReduce || c_.contains(n.operands[0].node)) continue;
      reduced.insert(n.operands[0].node);
      if (n.op == ExprOp::kMax && n.plain_max) e_.other_low.insert(n.operands[0].node);
    }
    for (int m : c_.members) {
      const DagNode& n = dag_.nodes[at(m)];
      if (n.op != ExprOp::kDiv || n.kind != DagKind::kPointwise || n.operands[1].is_number()) continue;
      const int divisor = n.operands[1].node;
      if (!c_.contains(divisor) && !reduced.contains(divisor)) e_.other_one.insert(divisor);
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
      rows_range_ = row;
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
    std::string block, part, parts;
    std::string row;  // of a part: which program of its row
    std::string count;
    int64_t chunk;  // of columns in each part
    bool unrolled;  // the loop over columns
  };

  /// The lines before any column: which rows and which part of them a program has. From here on columns_of_ has the
  /// lines for a tile of columns.
  RowNames begin_rows(const RowTile& t, int64_t n_rows, int64_t n_cols) {
    const std::string block = e_.constant(t.block, "BLOCK");
    const bool wide_rows = wide(kept_, t.rows), wide_columns = wide(reduced_, t.block);
    std::string pid = program(wide_rows || wide_columns);
    std::string part, parts;
    if (c_.splits > 1) {
      const std::string p = e_.names.fresh("pid");
      part = e_.names.fresh("part");
      e_.split = part;
      e_.line(fmt::format("{} = {}", p, pid));
      if (r_.totals < 0) {
        parts = e_.constant(c_.splits, "PARTS");
      } else {  // the longer a row, the more: one kernel for all lengths
        parts = e_.names.fresh("parts");
        const int64_t slack = t.run > 1 ? columns_of_parts(n_rows, n_cols) - n_cols : 0;
        const std::string columns = e_.size(n_cols, "n_cols") + (slack > 0 ? fmt::format(" + {}", slack) : "");
        e_.line(fmt::format("{} = tl.cdiv({}, {})", parts, columns, block));
      }
      if (r_.totals < 0 || n_rows == 1) {
        e_.line(fmt::format("{} = {} % {}", part, p, parts));
        pid = fmt::format("{} // {}", p, parts);
      } else {  // the first parts of all rows first, so that who waits for parts before its own finds them told
        tiles_ = t.rows > 1 ? e_.size(cdiv(n_rows, t.rows), "tiles") : "";
        const std::string rows = t.rows > 1 ? tiles_ : e_.size(n_rows, "n_rows");
        e_.line(fmt::format("{} = {} // {}", part, p, rows));
        pid = fmt::format("{} % {}", p, rows);
      }
    }
    if (!kept_.empty()) begin_kept(pid, t, n_rows);
    if (t.known) e_.known_size = {n_cols, e_.constant(n_cols, "N_COLS")};
    const std::string col = e_.names.fresh("cols"), count = e_.size(n_cols, "n_cols");
    const int64_t chunk = c_.chunk > 0 ? c_.chunk : cdiv(cdiv(n_cols, c_.splits), t.block) * t.block;
    KILN_ASSERT(chunk % t.block == 0, "a part of {} columns ends inside a tile of {}", chunk, t.block);
    const bool shifted = t.run > 1 && begins_anywhere(t.run, n_rows, n_cols);
    if (n_cols == 0 || n_cols % t.block || shifted || (c_.splits > 1 && chunk * c_.splits != n_cols))
      e_.column_mask = e_.names.fresh("inside");
    e_.column_test = fmt::format("{} < {}", col, count);
    e_.tile_shape = t.rows > 1 ? fmt::format("[{}, {}]", rows_name_, block) : fmt::format("[{}]", block);
    std::string tile = fmt::format("tl.arange(0, {})", block), run;
    if (t.run > 1) {
      run = e_.constant(t.run, "RUN");
      e_.in_runs = true;
      runs_ = fmt::format("[{} // {}]", block, run);
      e_.tile_shape = fmt::format("[{} // {}, {}]", block, run, run);
      tile = fmt::format("(tl.arange(0, {0} // {1}) * {1})[:, None] + tl.arange(0, {1})[None, :]", block, run);
    }
    if (shifted) begin_runs(run, t.run, n_rows, n_cols);
    const std::string inside = t.held > 0
                                   ? fmt::format("({} < {}) & ({} < {})", col, count, col, e_.constant(t.held, "HELD"))
                                   : fmt::format("{} < {}", col, count);
    columns_of_ = [this, col, tile, wide_columns, inside, block, shifted](const std::string& start) {
      std::vector<std::string> out;
      if (shifted) {
        out = columns_in_runs(col, start, inside, block);
      } else {
        std::string range = (start.empty() ? "" : start + " + ") + tile;
        if (wide_columns) range = start.empty() ? range + ".to(tl.int64)" : "(" + range + ").to(tl.int64)";
        out = {fmt::format("{} = {}", col, range)};
        if (!e_.column_mask.empty()) out.push_back(fmt::format("{} = {}", e_.column_mask, inside));
      }
      if (!decomposed_) column_lines_ = decompose(reduced_, col, kAlongColumns);
      decomposed_ = true;
      out.insert(out.end(), column_lines_.begin(), column_lines_.end());
      return out;
    };
    return {block, part, parts, pid, count, chunk, t.unrolled};
  }

  /// Whether a scan's whole rows are taken in runs: those that are long, or begin anywhere.
  bool takes_runs(const RowWork& w) const {
    const int64_t run = 16 / w.widest;
    if (columns_of_parts(w.n_rows, w.n_cols) > kMostWholeScan) return false;
    return r_.machine.gpu() && w.along && w.splits == 1 && w.depth == 0 && !c_.reverse && run > 1 &&
           (w.widest <= 4 || w.read >= 4) &&
           (w.shifted ? w.n_cols > kShortRow : w.n_cols % run == 0 && w.n_cols > kSplitUnit);
  }

  /// What a scan carries into the first of its program's columns: of a part, the totals of those before it. They are
  /// loaded under a mask and never subtracted, so that no infinity or NaN goes back.
  std::string first_carry(int m, const std::string& part) {
    const DagNode& n = dag_.nodes[at(m)];
    const std::string neutral = Emitter::identity(reduction_of(n));
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
    return reduced_text(n, load);
  }

  /// Running sums: a loop along the row, or its part, carries the sum of all columns before.
  void scan() {
    const int64_t n_rows = size_of_runs(kept_), n_cols = size_of_runs(reduced_);
    RowWork work = row_work(n_rows, n_cols);
    work.chunk = c_.chunk;
    work.along = work.along || work.depth > 0;  // what is reduced beside it needs whole rows
    work.looks_back = r_.totals >= 0;
    for (int m : c_.members)  // running values of eight bytes take a thread's registers, whatever is stored
      if (const DagNode& n = dag_.nodes[at(m)];
          (work.looks_back || work.along) && n.kind == DagKind::kScan && size_of(n.operand_type) > 4)
        work.widest = size_of(n.operand_type);
    for (int m : c_.members)
      if (const DagNode& n = dag_.nodes[at(m)]; looks_back(n) && lies_across(n))
        work.across = true, work.odd_words = are_odd_words(beside_of(n), work.read),
        work.within_words = work.read == 2 && beside_of(n) % 2 != 0;
    work.shifted = begins_anywhere(16 / work.widest, n_rows, n_cols);
    work.in_runs = takes_runs(work);
    const RowTile t = scan_tile(r_.machine, work);
    loads_ahead_ = t.ahead && looked_up_.empty();
    KILN_ASSERT(!t.loop || work.depth == 0, "reductions beside a scan in a loop");
    if (c_.reverse) fill();  // columns outside come first
    const RowNames names = begin_rows(t, n_rows, n_cols);
    LookBack look(e_, dag_);
    LookBack::Part part = {names.part, names.parts, kept_.empty() ? "" : names.row};
    if (work.across) {
      KILN_ASSERT(e_.two_ranges, "parts that look back across have one row each");
      part.rows = rows_range_, part.n_rows = e_.size(n_rows, "n_rows"), part.tile = names.row;
    }
    if (work.looks_back) look.begin(c_.members, r_.totals, part);
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
      lines(columns_of_(work.looks_back ? fmt::format("{} * {}", names.part, names.block) : ""));
    }
    std::vector<std::string> after;  // in a loop
    for (int m : c_.members) {
      const DagNode& n = dag_.nodes[at(m)];
      if (n.kind != DagKind::kScan) continue;
      const Text tile = e_.scanned(m);
      Text sums = e_.running(m, tile);
      std::string all, before;
      if (work.looks_back) {
        const LookBack::Joint joint = {joint_of(n), reduction_text(n)};
        if (work.across)
          before = look.before_columns(m, tile.text, part, joint) + "[:, None]";
        else
          before = e_.in_runs ? look.before_runs(m, tile.text, runs_, part, joint)
                              : look.before_tile(m, tile.text, sums, part, joint);
      } else if (e_.in_runs) {
        before = look.before_runs_of_row(m, tile.text, runs_, {joint_of(n), reduction_text(n)});
      } else if (t.loop) {
        before = carries[m] + (e_.two_ranges ? "[:, None]" : "");
        all = reduced_text(n, tile.text);
      }
      if (!before.empty()) {
        const std::string& carry = carries[m];
        if (n.op == ExprOp::kCumSum) {
          sums.text = fmt::format("{} + {}", sums.text, before);
          sums.binds = 6;
          after.push_back(fmt::format("{} += {}", carry, all));
        } else if (n.op == ExprOp::kCumProd) {
          // A product of its own, which no addition makes an fma of.
          const bool floats = is_float(n.operand_type);
          sums.text = floats ? fmt::format("libdevice.mul_rn({}, {})", sums.text, before)
                             : fmt::format("{} * {}", sums.text, before);
          sums.binds = floats ? 10 : 7;
          if (floats) e_.use_libdevice();
          after.push_back(fmt::format("{} *= {}", carry, all));
        } else {
          const std::string joint = joint_of(n);
          sums.text = fmt::format("{}({}, {})", joint, sums.text, before);
          sums.binds = 10;
          after.push_back(fmt::format("{0} = {1}({0}, {2})", carry, joint, all));
        }
      }
      e_.set(m, e_.named(e_.settled(m, std::move(sums)), n.name.empty() ? "running" : n.name));
    }
    store_all();
    if (t.loop) {
      lines(after);
      e_.end_loop();
    }
    const int64_t programs = cdiv(n_rows, t.rows) * c_.splits;
    finish(programs, t.warps);
    group_.maxnreg = t.registers;
    group_.shape = fmt::format("{} rows x {}", n_rows, n_cols);
    for (int w : {t.warps / 2, t.warps * 2})
      if (w >= 1 && w <= 16) configuration({}, programs, w);
  }

  /// Of elements that are computed from values of rows and of columns, each has a register for its sum: as few columns
  /// as are one to a lane at least, where that leaves fewer of the last block idle.
  static int64_t block_of_lanes(int64_t most, int64_t n_cols) {
    constexpr int64_t kLanes = 32;
    int64_t best = most;
    for (int64_t b = most; b >= kLanes; b /= 2)
      if (cdiv(n_cols, b) * b < cdiv(n_cols, best) * best) best = b;
    return best;
  }

  void rows() {
    const int64_t n_rows = size_of_runs(kept_), n_cols = size_of_runs(reduced_);
    RowTile t;
    if (r_.rows_of_total > 0)
      t.rows = r_.rows_of_total, t.block = power_of_two(n_cols);
    else
      t = row_tile(r_.machine, row_work(n_rows, n_cols));
    while (c_.chunk > 0 && c_.chunk % t.block != 0) t.block /= 2;  // the parts of a scan end where tiles do
    outer_is_shared_ = r_.rows_of_total == 0 && shares_outer_rows(t);
    if (!outer_is_shared_) note_rows(t);
    if (outer_is_shared_) {
      // Threads have all columns of their rows, so that none waits for another, where programs are many enough.
      constexpr int64_t kMostPerThread = 64, kMostComputed = 16;
      t.rows = std::min(t.rows, power_of_two(kept_.back().size));
      const int most = t.warps;
      const bool computes = t.loop && c_.splits == 1 && !reads_elements();
      if (computes) t.block = block_of_lanes(t.block, n_cols);
      const int64_t each = computes ? kMostComputed : kMostPerThread;
      t.warps = static_cast<int>(std::clamp<int64_t>(t.rows * t.block / (32 * each), 1, most));
      while (t.warps < most && programs_of_rows(t, n_rows) * t.warps < kWarpsPerProcessor * r_.machine.multiprocessors)
        t.warps *= 2;
    }
    fill();
    const RowNames names = begin_rows(t, n_rows, n_cols);
    const std::string& block = names.block;
    if (!t.again && !(t.loop && (deepest() > 1 || names.unrolled))) note_read_once();
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

  /// What another kernel needs to know of the rows of a program to reduce their parts.
  void note_rows(const RowTile& t) {
    if (c_.splits > 1) group_.rows_of_part = t.rows;
    for (const Run& r : kept_) group_.row_order.insert(group_.row_order.end(), r.dims.begin(), r.dims.end());
  }

  /// Lines of an input that only this kernel reads, once, need not stay: the L2 then keeps what earlier kernels wrote,
  /// which takes as long to write back as to read (a sum over two tensors of 57 MB on an H200: 36.8 us, 33.5 with
  /// evict_first; of 18 MB 16.4 and 14.9). Rows that are stored again gain nothing by it, nor do tensors that push
  /// everything out or next to nothing.
  void note_read_once() {
    constexpr int64_t kLeastBytes = 4 << 20, kMostBytes = 100 << 20;
    if (!r_.machine.gpu() || stores_rows()) return;
    for (const Access& a : loads_) {
      const DagNode& n = dag_.nodes[at(a.node)];
      const int64_t elements = numel(n.shape), bytes = elements * size_of(n.dtype);
      const bool all_once = numel(c_.dims) == elements * repeats(a);
      if (n.kind == DagKind::kLeaf && all_once && bytes >= kLeastBytes && bytes <= kMostBytes &&
          !is_read_elsewhere(a.node))
        e_.read_once.insert(a.node);
    }
  }

  bool is_read_elsewhere(int node) const {
    for (size_t i = 0; i < dag_.nodes.size(); ++i)
      if (!c_.contains(static_cast<int>(i)) && std::ranges::any_of(dag_.nodes[i].operands, [&](const Operand& o) {
            return !o.is_number() && o.node == node;
          }))
        return true;
    return std::ranges::any_of(dag_.outputs, [&](const Operand& o) { return o.node == node; });
  }

  std::vector<int> reductions_of(const std::map<int, int>& depth, int d) const {
    std::vector<int> out;
    for (int m : c_.members)
      if (dag_.nodes[at(m)].kind == DagKind::kReduce && depth.at(m) == d) out.push_back(m);
    return out;
  }

  /// Of what is stored along columns, that with so many reductions behind it: the loop of the next ones can store it.
  std::vector<int> stored_behind(const std::map<int, int>& depth, int d) const {
    std::vector<int> out;
    for (int m : stores_)
      if (e_.stored_along_columns(m) && depth.at(m) == d) out.push_back(m);
    return out;
  }

  /// Of what a loop stores along columns, what the loops behind it load instead of computing it again from several
  /// tensors: these come from the L2, whose bandwidth rows that are read three times use up (the sum of two tensors and
  /// its layer norm).
  std::vector<int> to_read_back(std::vector<int> stored) const {
    std::erase_if(stored, [&](int m) {
      std::set<int> seen;
      std::set<Access> loads;
      add_loads(m, seen, loads);
      return loads.size() < 2;
    });
    return stored;
  }
  void read_back(const std::vector<int>& stored) {
    e_.read_back.insert(stored.begin(), stored.end());
    // Each thread reads what it stored, if loads and stores have one layout, which nothing promises.
    if (!stored.empty()) e_.line("tl.debug_barrier()");
  }

  /// The tensors that a member is computed from, read along the row, but for those behind a reduction.
  void add_loads(int m, std::set<int>& seen, std::set<Access>& loads) const {
    const DagNode& n = dag_.nodes[at(m)];
    if (!seen.insert(m).second || n.kind == DagKind::kReduce) return;
    for (size_t i = 0; i < n.operands.size(); ++i) {
      if (n.operands[i].is_number()) continue;
      if (c_.contains(n.operands[i].node)) {
        add_loads(n.operands[i].node, seen, loads);
      } else if (const Access a = e_.access(m, i); !dag_.nodes[at(a.node)].counts && full(a)) {
        loads.insert(a);
      }
    }
  }

  /// A part of the program for each depth of reductions, and one that stores what is left; each reads the row.
  void parts() {
    const auto depth = depths();
    e_.evictions = kReadAgain;
    for (int d = 1; d <= deepest(); ++d) {
      std::vector<std::pair<int, Text>> tiles;
      e_.begin_part();
      for (int m : reductions_of(depth, d)) tiles.emplace_back(m, e_.reduced(m));
      const std::vector<int> stored = stored_behind(depth, d - 1);
      for (int m : stored) e_.store(m);
      e_.end_loop();
      read_back(to_read_back(stored));
      for (const auto& [m, tile] : tiles) e_.set(m, e_.named(e_.combine(m, tile), dag_.nodes[at(m)].name));
    }
    e_.evictions = kReadLast;
    e_.begin_part();
    for (int m : stores_)
      if (!e_.stored_along_columns(m) || depth.at(m) == deepest()) e_.store(m);
    e_.end_loop();
    e_.evictions = {};
  }

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
    const std::string& block = names.block;
    auto over = [&](const std::string& from, const std::string& to, const std::string& step) {
      return fmt::format("for {} in {}({}, {}, {}{}):", loop.start,
                         names.unrolled ? "tl.static_range"
                         : loads_ahead_ ? "tl.range"
                                        : "range",
                         from, to, step, loads_ahead_ ? ", num_stages=2" : "");
    };
    if (c_.reverse) {
      const std::string last = e_.names.fresh("last");
      e_.line(fmt::format("{0} = ({1} - 1) // {2} * {2}", last, end, block));
      loop.head = over(last, "-1", "-" + block);
      return loop;
    }
    // Each access to an odd row tests its elements one by one, whatever the mask says (a binary cross entropy of 1542 x
    // 12835 on an H200: 174 us, 52 with whole tiles).
    const bool odd = !names.part.empty() && kept_.empty() && c_.form != Form::kScan && is_odd(size_of_runs(reduced_));
    loop.head = over(first, end, block);
    if (odd) {
      loop.whole = over(first, fmt::format("{} - {} + 1", end, block), block);
      loop.rest = over(fmt::format("{0} - ({0} - {1}) % {2}", end, first, block), end, block);
    }
    return loop;
  }

  /// One loop over the columns for each depth of reductions, and one that stores what is left.
  void passes(const RowNames& names) {
    const auto depth = depths();
    const Loop loop = loop_over(names);
    const std::string &start = loop.start, &head = loop.head;
    std::map<int, int> online;  // maxima, and the sums of exponentials below them that one loop finds with them
    std::set<int> found;
    for (int m : c_.members)
      if (const int sum = exponentials_of(m); sum >= 0) online[m] = sum, found.insert(sum);
    const std::vector<int> inner = stored_behind(depth, deepest());
    const bool again = r_.machine.gpu() && names.part.empty() && !inner.empty();
    if (again) e_.evictions = kReadAgain;
    for (int d = 1; d <= deepest(); ++d) {
      std::vector<int> here = reductions_of(depth, d);
      std::erase_if(here, [&](int m) { return found.count(m) > 0; });
      const std::vector<int> stored = stored_behind(depth, d - 1);
      if (here.empty() && stored.empty()) continue;
      const std::vector<int> back = again ? to_read_back(stored) : std::vector<int>();
      if (!back.empty()) e_.evictions.own = {};
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
        for (int m : stored) e_.store(m);
        e_.end_loop();
      };
      if (!loop.whole.empty()) {
        const std::string mask = std::exchange(e_.column_mask, "");
        sum(loop.whole);
        e_.column_mask = mask;
      }
      sum(loop.whole.empty() ? head : loop.rest);
      read_back(back);
      if (again) e_.evictions = kReadAgain;
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
    for (int m : stores_)
      if (!e_.stored_along_columns(m)) e_.store(m);
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

  std::string before_;
  std::string rows_range_, tiles_;  // of a program's rows, and how many programs have some
  std::string runs_;                // "[BLOCK // RUN]" of a part that looks back
  std::function<std::vector<std::string>(const std::string&)> columns_of_;
  std::vector<std::string> column_lines_;
  bool decomposed_ = false;
  bool loads_ahead_ = false;      // a loop loads a block while it works on the one before
  bool outer_is_shared_ = false;  // the rows of a program are of the last run alone
};

}  // namespace

Status write_rows(const WriteRequest& request, Group& group) { return RowWriter(request, group).write(); }

}  // namespace kiln::fusion
