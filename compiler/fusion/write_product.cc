// Kernels of products: blocks through tensor descriptors by programs that stay where the hardware has that, else
// pointers and a program per tile. What follows the product is computed on its sum before it is rounded.
#include <fmt/format.h>

#include <algorithm>

#include "compiler/fusion/emitter.h"
#include "compiler/fusion/writer.h"
#include "compiler/target/matmul_tile.h"
#include "compiler/target/target.h"
#include "support/diag.h"

namespace kiln::fusion {

namespace {

/// A matrix whose rows or columns are contiguous and start at multiples of 16 bytes, as descriptors need.
struct Block {
  int64_t stride;   // of the other dimension
  bool transposed;  // the first dimension is the contiguous one
};

class ProductWriter {
 public:
  ProductWriter(const WriteRequest& r, Group& group)
      : r_(r), dag_(r.dag), c_(r.cluster), group_(group), e_(r.dag, r.grouping, r.cluster, r.value_of) {
    group.kernel = e_.names.fresh(group.name + "_kernel");
    for (int m : c_.members)
      if (dag_.nodes[at(m)].kind == DagKind::kProduct) product_ = m;
    const DagNode& p = node();
    n_ = p.shape.back();
    k_ = p.operands[0].shape.back();
    for (size_t d = 0; d + 1 < p.shape.size(); ++d) (static_cast<int>(d) < p.batch_dims ? batch_ : m_) *= p.shape[d];
    sum_ = p.operand_type == DType::kF64 ? DType::kF64 : is_int(p.operand_type) ? DType::kI32 : DType::kF32;
  }

  Status write() {
    for (int m : c_.members)
      if (r_.grouping.stored[at(m)]) stores_.push_back(m);
    const auto a = block(0), b = block(1);
    const bool blocks = a && b && persistent();
    if (blocks)
      by_blocks(*a, *b);
    else
      by_pointers();
    write_source(e_, cluster_comment(r_), group_);
    group_.arguments = e_.arguments();
    group_.shape = (batch_ > 1 ? fmt::format("{} of ", batch_) : "") + fmt::format("{} x {} x {}", m_, n_, k_);
    return e_.problem();
  }

 private:
  const DagNode& node() const { return dag_.nodes[at(product_)]; }

  /// Whether this machine multiplies blocks of this type through descriptors.
  bool persistent() const {
    const target::Target* t = target::find(r_.machine.target);
    const DType d = node().operand_type;
    const bool type = is_half(d) || is_fp8(d) || d == DType::kI8 || (d == DType::kF32 && node().tf32);
    // wgmma reads 32-bit and 8-bit operands only with k contiguous.
    return t && t->has(target::kTma) && t->has(target::kWgmma) && type && m_ > 0 && n_ > 0;
  }

  std::optional<Block> block(size_t i) const {
    const Operand& o = node().operands[i];
    const DagNode& from = dag_.nodes[at(o.node)];
    const size_t r = o.shape.size();
    const int bytes = size_of(from.dtype);
    const int alignment = from.kind == DagKind::kLeaf ? from.alignment : 16;
    if (r != 2 || node().batch_dims > 0 || alignment % 16 || o.offset * bytes % 16) return std::nullopt;
    for (bool transposed : {false, true}) {
      const size_t outer = transposed ? 1 : 0, inner = 1 - outer;
      if (o.strides[inner] != 1 && o.shape[inner] != 1) continue;
      const int64_t stride = o.shape[outer] == 1 ? 16 : o.strides[outer];
      const bool k_contiguous = (i == 0) != transposed;
      if (stride * bytes % 16 || stride <= 0 || (bytes != 2 && !k_contiguous)) continue;
      return Block{stride, transposed};
    }
    return std::nullopt;
  }

  std::string sum_name() const { return fmt::format("tl.{}", info(sum_).triton); }

  /// The dimensions of the cluster that are the product's batch, rows and columns.
  void bind(const std::string& batch, const std::string& rows, const std::string& columns) {
    e_.index.resize(c_.dims.size());
    e_.two_ranges = true;
    e_.row_index = rows;
    e_.column_index = columns;
    const std::vector<int>& map = c_.map_of(product_);
    const size_t batches = at(node().batch_dims), last = map.size() - 1;
    if (map[last] >= 0) e_.index[at(map[last])] = {columns, kAlongColumns};
    if (batches > 0) walk(0, batches, batch, kUniform);
    walk(batches, last, rows, kAlongRows);
  }

  /// Strides of what the epilogue reads and writes.
  std::vector<Access> accesses() const {
    std::vector<Access> out;
    for (int m : c_.members) {
      const DagNode& n = dag_.nodes[at(m)];
      for (size_t i = 0; m != product_ && i < n.operands.size(); ++i)
        if (!n.operands[i].is_number() && !c_.contains(n.operands[i].node)) out.push_back(e_.access(m, i));
      if (r_.grouping.stored[at(m)]) out.push_back(e_.store_access(m));
    }
    return out;
  }

  /// Dimensions [first, last) of the product, walked by one index: as one where memory runs on, else taken apart.
  void walk(size_t first, size_t last, const std::string& var, unsigned level) {
    const std::vector<int>& map = c_.map_of(product_);
    const std::vector<Access> all = accesses();
    int64_t inner = 1;
    int joined = -1;
    int64_t size = 1;
    auto close = [&](bool outermost) {
      if (joined < 0) return;
      std::string text = inner == 1 ? var : fmt::format("{} // {}", var, inner);
      if (!outermost) text += fmt::format(" % {}", size);
      if (text != var) {
        const std::string name = fresh(var + "_at");
        e_.line(fmt::format("{} = {}", name, text));
        text = name;
      }
      e_.index[at(joined)] = {text, level};
      inner *= size;
      joined = -1;
      size = 1;
    };
    int previous = -1;
    for (size_t d = last; d-- > first;) {
      if (map[d] < 0) continue;
      const bool runs_on = joined >= 0 && std::all_of(all.begin(), all.end(), [&](const Access& a) {
                             return a.strides[at(map[d])] == a.strides[at(previous)] * c_.dims[at(previous)];
                           });
      if (!runs_on || level == kUniform) {  // operands of a batch have strides of their own
        close(false);
        joined = map[d];
      }
      size *= c_.dims[at(map[d])];
      previous = map[d];
    }
    close(true);
  }

  Text accumulated(const std::string& acc) const {
    Text t;
    t.text = acc;
    t.level = kWhole;
    t.type = sum_;
    return t;
  }

  std::string dot(const std::string& a, const std::string& b, const std::string& acc) const {
    const bool ieee = node().operand_type == DType::kF32 && !node().tf32;
    const std::string precision = ieee ? ", input_precision=\"ieee\"" : "";
    const std::string type = sum_ == DType::kF32 ? "" : fmt::format(", out_dtype={}", sum_name());
    return fmt::format("{} = tl.dot({}, {}, {}{}{})", acc, a, b, acc, precision, type);
  }

  /// Offsets beyond 32 bits: of operands, and of what the epilogue reads and writes.
  bool wide() const {
    int64_t reach = batch_ * std::max(m_ * n_, std::max(m_ * k_, k_ * n_));
    for (int m : c_.members)
      for (const Operand& o : dag_.nodes[at(m)].operands) {
        int64_t last = 0;
        for (size_t d = 0; !o.is_number() && d < o.shape.size(); ++d) last += o.shape[d] * std::abs(o.strides[d]);
        reach = std::max(reach, last);
      }
    return reach + (1 << 20) >= int64_t{1} << 31;
  }

  std::string fresh(const std::string& hint) { return e_.names.fresh(hint); }

  // --- programs that stay, blocks through descriptors

  /// Outputs that rows of blocks can be written to.
  bool by_descriptor(int m) const {
    const DagNode& n = dag_.nodes[at(m)];
    return n.shape == node().shape && n_ * size_of(n.dtype) % 16 == 0 && n.dtype != DType::kI1;
  }

  void by_blocks(const Block& a, const Block& b) {
    int result_bytes = 0;
    for (int m : stores_)
      if (by_descriptor(m)) result_bytes += size_of(dag_.nodes[at(m)].dtype);
    const int operand_bytes = size_of(node().operand_type);
    const std::vector<MatmulTile> tiles =
        rank_tiles(m_, n_, operand_bytes, std::max(result_bytes, 1), r_.machine.multiprocessors);
    const MatmulTile t = tiles.at(0);
    auto tiles_of = [&](const MatmulTile& tile) { return cdiv(m_, tile.m) * cdiv(n_, tile.n); };
    // Programs stay, but where each would have one tile.
    const bool stay = tiles_of(t) > r_.machine.multiprocessors;
    auto programs = [&](const MatmulTile& tile) {
      return std::min<int64_t>(tiles_of(tile), r_.machine.multiprocessors);
    };
    const std::string m = e_.dimension(m_, "M"), n = e_.dimension(n_, "N"), k = e_.dimension(k_, "K");
    const std::string block_m = e_.constant(t.m, "BLOCK_M"), block_n = e_.constant(t.n, "BLOCK_N"),
                      block_k = e_.constant(t.k, "BLOCK_K"), group_m = stay ? e_.constant(t.group_m, "GROUP_M") : "",
                      num_programs = stay ? e_.constant(programs(t), "NUM_PROGRAMS") : "";
    group_.descriptors = true;
    auto descriptor = [&](const std::string& hint, const std::string& pointer, bool transposed, const std::string& rows,
                          const std::string& columns, const std::string& stride, const std::string& block_rows,
                          const std::string& block_columns) {
      const std::string name = fresh(hint);
      e_.line(transposed ? fmt::format("{} = tl.make_tensor_descriptor({}, [{}, {}], [{}, 1], [{}, {}])", name, pointer,
                                       columns, rows, stride, block_columns, block_rows)
                         : fmt::format("{} = tl.make_tensor_descriptor({}, [{}, {}], [{}, 1], [{}, {}])", name, pointer,
                                       rows, columns, stride, block_rows, block_columns));
      return name;
    };
    const Operand &left = node().operands[0], &right = node().operands[1];
    const std::string a_desc = descriptor("a_desc", e_.pointer(left.node, left.offset, false), a.transposed, m, k,
                                          e_.dimension(a.stride, "stride_a"), block_m, block_k);
    const std::string b_desc = descriptor("b_desc", e_.pointer(right.node, right.offset, false), b.transposed, k, n,
                                          e_.dimension(b.stride, "stride_b"), block_k, block_n);
    std::vector<std::string> out_desc(stores_.size());
    for (size_t i = 0; i < stores_.size(); ++i)
      if (by_descriptor(stores_[i]))
        out_desc[i] = descriptor("out_desc", e_.pointer(stores_[i], 0, true), false, m, n, n, block_m, block_n);
    const std::string row = fresh("row"), column = fresh("column"), acc = fresh("acc"), step = fresh("step");
    const std::string zeros = fmt::format("{} = tl.zeros(({}, {}), dtype={})", acc, block_m, block_n, sum_name());
    if (stay) {
      const std::string tiles_m = fresh("tiles_m"), tiles_n = fresh("tiles_n"), steps = fresh("steps"),
                        tile = fresh("tile"), tile_m = fresh("tile_m"), tile_n = fresh("tile_n");
      e_.line(fmt::format("{} = tl.cdiv({}, {})", tiles_m, m, block_m));
      e_.line(fmt::format("{} = tl.cdiv({}, {})", tiles_n, n, block_n));
      e_.line(fmt::format("{} = tl.cdiv({}, {})", steps, k, block_k));
      e_.use_helper("tile_of");
      e_.begin_loop(
          fmt::format("for {} in tl.range(tl.program_id(0), {} * {}, {}):", tile, tiles_m, tiles_n, num_programs),
          {fmt::format("{}, {} = tile_of({}, {}, {}, {})", tile_m, tile_n, tile, tiles_m, tiles_n, group_m),
           fmt::format("{} = {} * {}", row, tile_m, block_m), fmt::format("{} = {} * {}", column, tile_n, block_n),
           zeros, fmt::format("for {} in range({}):", step, steps)},
          false);
    } else {
      e_.line(fmt::format("{} = tl.program_id(0) * {}", row, block_m));
      e_.line(fmt::format("{} = tl.program_id(1) * {}", column, block_n));
      e_.line(zeros);
      e_.line(fmt::format("for {} in range(tl.cdiv({}, {})):", step, k, block_k));
    }
    auto loaded = [&](const std::string& hint, const std::string& desc, bool transposed, std::string first,
                      std::string second) {
      if (transposed) std::swap(first, second);
      const std::string name = fresh(hint);
      e_.line(fmt::format("    {} = {}.load([{}, {}]){}", name, desc, first, second, transposed ? ".T" : ""));
      return name;
    };
    const std::string depth = fmt::format("{} * {}", step, block_k);
    const std::string a_block = loaded("a", a_desc, a.transposed, row, depth);
    const std::string b_block = loaded("b", b_desc, b.transposed, depth, column);
    e_.line("    " + dot(a_block, b_block, acc));
    // Ranges of rows and columns, for tensors that are not accessed in blocks.
    const bool only_blocks = std::all_of(out_desc.begin(), out_desc.end(), [](const auto& d) { return !d.empty(); });
    const bool reads = external_reads();
    std::string rows, columns;
    if (reads || !only_blocks) {
      rows = fresh("rows");
      columns = fresh("columns");
      const std::string to = wide() ? ".to(tl.int64)" : "";
      e_.line(fmt::format("{} = {} + tl.arange(0, {}){}", rows, row, block_m, to));
      e_.line(fmt::format("{} = {} + tl.arange(0, {}){}", columns, column, block_n, to));
      if (m_ % t.m || differs(tiles, m_, &MatmulTile::m)) e_.row_mask = "(" + rows + " < " + m + ")";
      if (n_ % t.n || differs(tiles, n_, &MatmulTile::n)) e_.column_mask = "(" + columns + " < " + n + ")";
    }
    bind("", rows, columns);
    e_.set(product_, e_.product(product_, accumulated(acc)));
    for (size_t i = 0; i < stores_.size(); ++i) {
      if (out_desc[i].empty()) {
        e_.store(stores_[i]);
        continue;
      }
      Text value = e_.value(stores_[i]);
      const DType type = dag_.nodes[at(stores_[i])].dtype;
      std::string text = e_.spread(value, kWhole, value.type == type ? 0 : 10);
      if (value.type != type) text += fmt::format(".to(tl.{})", info(type).triton);
      e_.line(fmt::format("{}.store([{}, {}], {})", out_desc[i], row, column, text));
    }
    if (stay) e_.end_loop();
    auto grid = [&](const MatmulTile& tile) -> std::array<int64_t, 3> {
      if (!stay) return {cdiv(m_, tile.m), cdiv(n_, tile.n), 1};
      return {programs(tile), 1, 1};
    };
    group_.grid = grid(t);
    group_.num_warps = t.warps;
    group_.num_stages = t.stages;
    for (const MatmulTile& other : tiles) {
      if (other == t) continue;
      group_.configurations.push_back(
          {{{block_m, other.m}, {block_n, other.n}, {block_k, other.k}}, grid(other), other.warps, other.stages});
      if (stay) group_.configurations.back().constants.emplace_back(num_programs, programs(other));
    }
  }

  /// Whether some tile of the list leaves part of a block outside.
  static bool differs(const std::vector<MatmulTile>& tiles, int64_t size, int MatmulTile::*side) {
    return std::any_of(tiles.begin(), tiles.end(), [&](const MatmulTile& t) { return size % (t.*side) != 0; });
  }

  bool external_reads() const {
    for (int m : c_.members)
      if (m != product_)
        for (const Operand& o : dag_.nodes[at(m)].operands)
          if (!o.is_number() && !c_.contains(o.node)) return true;
    return false;
  }

  // --- a program per tile, pointers

  void by_pointers() {
    const int bytes = size_of(node().operand_type);
    const bool gpu = r_.machine.gpu();
    auto side = [](int64_t n, int64_t most) { return std::clamp<int64_t>(power_of_two(n), 16, most); };
    // In full precision products are summed element by element, in registers: tiles are small.
    const bool by_element = gpu && ((node().operand_type == DType::kF32 && !node().tf32) || bytes == 8);
    const int64_t most = by_element ? 64 : 128, most_k = gpu ? (by_element ? 32 : 128 / bytes) : 64;
    const int64_t bm = side(m_, most), bn = side(n_, most),
                  bk = std::max<int64_t>(side(k_, most_k), bytes == 1 ? 32 : 16);
    const std::string m = e_.dimension(m_, "M"), n = e_.dimension(n_, "N"), k = e_.dimension(k_, "K");
    const std::string block_m = e_.constant(bm, "BLOCK_M"), block_n = e_.constant(bn, "BLOCK_N"),
                      block_k = e_.constant(bk, "BLOCK_K"), group_m = e_.constant(8, "GROUP_M");
    const std::string pid = fresh("pid"), tiles_m = fresh("tiles_m"), tiles_n = fresh("tiles_n");
    e_.line(fmt::format("{} = tl.program_id(0)", pid));
    e_.line(fmt::format("{} = tl.cdiv({}, {})", tiles_m, m, block_m));
    e_.line(fmt::format("{} = tl.cdiv({}, {})", tiles_n, n, block_n));
    std::string batch, tile = pid;
    const std::string to = wide() ? ".to(tl.int64)" : "";
    if (batch_ > 1) {
      batch = fresh("batch");
      tile = fmt::format("{} % ({} * {})", pid, tiles_m, tiles_n);
      e_.line(fmt::format("{} = ({} // ({} * {})){}", batch, pid, tiles_m, tiles_n, to));
    }
    const std::string tile_m = fresh("tile_m"), tile_n = fresh("tile_n"), rows = fresh("rows"),
                      columns = fresh("columns"), depth = fresh("depth");
    e_.use_helper("tile_of");
    e_.line(fmt::format("{}, {} = tile_of({}, {}, {}, {})", tile_m, tile_n, tile, tiles_m, tiles_n, group_m));
    auto range = [&](const std::string& name, const std::string& tile_index, const std::string& block) {
      const std::string text = fmt::format("{} * {} + tl.arange(0, {})", tile_index, block, block);
      e_.line(name + " = " + (to.empty() ? text : "(" + text + ")" + to));
    };
    range(rows, tile_m, block_m);
    range(columns, tile_n, block_n);
    e_.line(fmt::format("{} = tl.arange(0, {}){}", depth, block_k, to));
    if (m_ % bm) e_.row_mask = fresh("in_rows"), e_.line(fmt::format("{} = {} < {}", e_.row_mask, rows, m));
    if (n_ % bn) e_.column_mask = fresh("in_columns"), e_.line(fmt::format("{} = {} < {}", e_.column_mask, columns, n));
    const Operand &left = node().operands[0], &right = node().operands[1];
    auto stride = [&](int64_t s, const std::string& hint) { return s == 1 ? "" : " * " + e_.dimension(s, hint); };
    const size_t r = left.shape.size();
    if (batch_ > 1) {
      bind(batch, rows, columns);
      bound_ = true;
    }
    const std::vector<int>& map = c_.map_of(product_);
    auto base = [&](const Operand& o, const std::string& hint) {
      std::string p = e_.pointer(o.node, o.offset, false);
      for (size_t d = 0; d < at(node().batch_dims); ++d)
        if (map[d] >= 0 && o.strides[d] != 0)
          p += fmt::format(" + {}{}", e_.index[at(map[d])].text, stride(o.strides[d], hint));
      return p;
    };
    const std::string a_ptrs = fresh("a_ptrs"), b_ptrs = fresh("b_ptrs"), acc = fresh("acc"), step = fresh("step"),
                      a = fresh("a"), b = fresh("b");
    const std::string a_deep = stride(left.strides[r - 1], "stride_ak"),
                      b_deep = stride(right.strides[r - 2], "stride_bk");
    e_.line(fmt::format("{} = {} + {}[:, None]{} + {}[None, :]{}", a_ptrs, base(left, "stride_ab"), rows,
                        stride(left.strides[r - 2], "stride_am"), depth, a_deep));
    e_.line(fmt::format("{} = {} + {}[:, None]{} + {}[None, :]{}", b_ptrs, base(right, "stride_bb"), depth, b_deep,
                        columns, stride(right.strides[r - 1], "stride_bn")));
    e_.line(fmt::format("{} = tl.zeros(({}, {}), dtype={})", acc, block_m, block_n, sum_name()));
    const bool ragged = k_ % bk != 0;
    auto loaded = [&](const std::string& ptrs, const std::string& side_mask, const std::string& depth_mask) {
      std::string mask = side_mask;
      if (ragged) mask += (mask.empty() ? "" : " & ") + depth_mask;
      return mask.empty()
                 ? fmt::format("tl.load({})", ptrs)
                 : fmt::format("tl.load({}, mask={}, other={})", ptrs, mask, is_int(node().operand_type) ? "0" : "0.0");
    };
    const std::string rest = ragged ? fresh("rest") : "";
    e_.line(fmt::format("for {} in range(0, tl.cdiv({}, {})):", step, k, block_k));
    if (ragged) e_.line(fmt::format("    {} = {} - {} * {}", rest, k, step, block_k));
    e_.line(fmt::format("    {} = {}", a,
                        loaded(a_ptrs, e_.row_mask.empty() ? "" : e_.row_mask + "[:, None]",
                               fmt::format("({}[None, :] < {})", depth, rest))));
    e_.line(fmt::format("    {} = {}", b,
                        loaded(b_ptrs, e_.column_mask.empty() ? "" : e_.column_mask + "[None, :]",
                               fmt::format("({}[:, None] < {})", depth, rest))));
    e_.line("    " + dot(a, b, acc));
    e_.line(fmt::format("    {} += {}{}", a_ptrs, block_k, a_deep));
    e_.line(fmt::format("    {} += {}{}", b_ptrs, block_k, b_deep));
    if (!bound_) bind(batch, rows, columns);
    e_.set(product_, e_.product(product_, accumulated(acc)));
    for (int s : stores_) e_.store(s);
    group_.grid = {batch_ * cdiv(m_, bm) * cdiv(n_, bn), 1, 1};
    auto stages = [&](int64_t tile_m_size, int64_t tile_n_size) {
      const int64_t stage = (tile_m_size + tile_n_size) * bk * bytes;
      return static_cast<int>(std::clamp<int64_t>((r_.machine.shared_bytes - 4096) / stage, 2, 4));
    };
    auto warps = [](int64_t elements) { return elements >= 128 * 128 ? 8 : 4; };
    group_.num_stages = stages(bm, bn);
    group_.num_warps = warps(bm * bn);
    for (auto [other_m, other_n] : {std::pair<int64_t, int64_t>{128, 128}, {128, 64}, {64, 128}, {64, 64}, {32, 64}}) {
      const bool masks_fit = (m_ % bm || m_ % other_m == 0) && (n_ % bn || n_ % other_n == 0);
      if (std::pair(other_m, other_n) == std::pair(bm, bn) || other_m > 2 * bm || other_n > 2 * bn || !masks_fit ||
          other_m * other_n > most * most)
        continue;
      group_.configurations.push_back({{{block_m, other_m}, {block_n, other_n}},
                                       {batch_ * cdiv(m_, other_m) * cdiv(n_, other_n), 1, 1},
                                       warps(other_m * other_n),
                                       stages(other_m, other_n)});
    }
  }

  const WriteRequest& r_;
  const Dag& dag_;
  const Cluster& c_;
  Group& group_;
  Emitter e_;
  int product_ = -1;
  bool bound_ = false;  // the batch's indices are needed before the loop
  int64_t m_ = 1, n_ = 0, k_ = 0, batch_ = 1;
  DType sum_ = DType::kF32;
  std::vector<int> stores_;
};

}  // namespace

Status write_product(const WriteRequest& request, Group& group) { return ProductWriter(request, group).write(); }

}  // namespace kiln::fusion
