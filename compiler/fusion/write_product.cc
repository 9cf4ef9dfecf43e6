// Kernels of products: blocks through tensor descriptors by programs that stay where the hardware has that, else
// pointers and a program per tile. What follows the product is computed on its sum before it is rounded.
#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "compiler/fusion/emitter.h"
#include "compiler/fusion/pointer_product.h"
#include "compiler/fusion/writer.h"
#include "support/diag.h"
#include "support/tensor_map.h"

namespace kiln::fusion {

namespace {

class ProductWriter {
 public:
  ProductWriter(const WriteRequest& r, Group& group)
      : r_(r), dag_(r.dag), c_(r.cluster), group_(group), e_(r.dag, r.grouping, r.cluster, r.value_of) {
    group.kernel = e_.names.fresh(group.name + "_kernel");
    std::tie(product_, twin_) = products_of(dag_, c_);
    const DagNode& p = node();
    const ProductSize size = size_of_product(p);
    m_ = size.m, n_ = size.n, k_ = size.k, batch_ = size.batch;
    sum_ = sum_type(p);
  }

  Status write() {
    for (int m : c_.members)
      if (r_.grouping.stored[at(m)]) stores_.push_back(m);
    const auto blocks = blocks_of(dag_, node(), r_.machine);
    if (blocks && c_.for_operands.empty())
      by_blocks(*blocks);
    else
      by_pointers();
    write_source(e_, cluster_comment(r_), group_);
    group_.shape = (batch_ > 1 ? fmt::format("{} of ", batch_) : "") + fmt::format("{} x {} x {}", m_, n_, k_);
    return e_.problem();
  }

 private:
  const DagNode& node() const { return dag_.nodes[at(product_)]; }

  std::string sum_name() const { return fmt::format("tl.{}", info(sum_).triton); }

  /// The dimensions of the cluster that are the product's batch. Operands are read with them.
  void bind_batch(const std::string& batch) {
    e_.index.resize(c_.dims.size());
    if (node().batch_dims > 0) walk(0, at(node().batch_dims), batch, kUniform);
  }

  /// Those that are its rows and columns.
  void bind(const std::string& rows, const std::string& columns) {
    e_.two_ranges = true;
    e_.row_index = rows;
    bind_columns(columns);
    walk(at(node().batch_dims), c_.map_of(product_).size() - 1, rows, kAlongRows);
  }

  void bind_columns(const std::string& columns) {
    e_.column_index = columns;
    const int last = c_.map_of(product_).back();
    if (last >= 0) e_.index[at(last)] = {columns, kAlongColumns};
  }

  /// The index along a dimension of the batch.
  const std::string& batch_index(size_t d) const { return e_.index[at(c_.map_of(product_)[d])].text; }

  /// The range of steps along k of the loop. Programs that share a sum have equal parts of them, the last maybe less.
  std::string steps(const std::string& k, const std::string& block_k, std::string* first = nullptr) {
    std::string all = fmt::format("tl.cdiv({}, {})", k, block_k);
    if (node().splits == 1) return all;
    const std::string total = fresh("steps"), share = fresh("share"), from = fresh("first");
    e_.line(fmt::format("{} = {}", total, all));
    e_.line(fmt::format("{} = tl.cdiv({}, {})", share, total, e_.constant(node().splits, "SPLITS")));
    e_.line(fmt::format("{} = {} * {}", from, batch_index(0), share));
    // Where a computed operand's elements lie side by side, remainders of places along k show.
    if (!c_.for_operands.empty()) e_.line(fmt::format("tl.assume({} >= 0)", from));
    if (first) *first = from;
    return fmt::format("{}, min({} + {}, {})", from, from, share, total);
  }

  /// What the epilogue reads from elsewhere; `is_looked_up`: at places that an index tensor says.
  struct Read {
    Access access;
    bool is_looked_up;
  };
  std::vector<Read> reads() const {
    std::vector<Read> out;
    for (int m : c_.members) {
      const DagNode& n = dag_.nodes[at(m)];
      if (m == product_ || m == twin_ || c_.is_for_operands(m)) continue;
      for (size_t i = 0; i < n.operands.size(); ++i)
        if (!n.operands[i].is_number() && !c_.contains(n.operands[i].node))
          out.push_back({e_.access(m, i), n.op == ExprOp::kTake && i == 0});
    }
    return out;
  }

  /// Strides of what the epilogue reads and writes.
  std::vector<Access> accesses() const {
    std::vector<Access> out;
    for (const Read& r : reads()) out.push_back(r.access);
    for (int m : c_.members)
      if (!c_.is_for_operands(m) && r_.grouping.stored[at(m)]) out.push_back(e_.store_access(m));
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

  /// Columns of a tile that have a sum of their own: names in the source.
  struct ColumnPart {
    std::string width, column;
    std::vector<std::string> b_desc, acc;  // of each product
    std::vector<std::string> out_desc;     // of each result; empty: it is stored by threads
    std::vector<std::string> beside_desc;
  };

  /// Outputs that rows of blocks can be written to.
  bool by_descriptor(int m) const {
    const DagNode& n = dag_.nodes[at(m)];
    return n.shape == node().shape && n_ * size_of(n.dtype) % 16 == 0 && n.dtype != DType::kI1;
  }

  void by_blocks(const BlockPair& blocks) {
    const Block& a = blocks.a;
    std::vector<int> products = {product_};
    std::vector<Block> right_blocks = {blocks.b};
    ProductSize size = size_of_product(node(), &blocks);
    if (twin_ >= 0) {
      products.push_back(twin_);
      const auto theirs = blocks_of(dag_, dag_.nodes[at(twin_)], r_.machine);
      KILN_ASSERT(theirs, "a twin of a product by blocks is none itself");
      right_blocks.push_back(theirs->b);
      size = size_of_twins(size, size_of_product(dag_.nodes[at(twin_)], &*theirs));
    }
    for (int m : stores_) {
      const int bytes = size_of(dag_.nodes[at(m)].dtype);
      if (by_descriptor(m))
        size.result_bytes += bytes;
      else
        size.scattered_bytes = std::max(size.scattered_bytes, bytes);
    }
    const std::vector<BesideBlock> beside = node().splits == 1 ? blocks_beside() : std::vector<BesideBlock>();
    for (const BesideBlock& read : beside) size.read_bytes += size_of(dag_.nodes[at(read.access.node)].dtype);
    const std::vector<MatmulTile> tiles = rank_tiles(size, r_.machine.multiprocessors, tile_limits(node(), r_.machine));
    const MatmulTile t = tiles.at(0);
    auto tiles_of = [&](const MatmulTile& tile) { return cdiv(m_, tile.m) * cdiv(n_, tile.n) * batch_; };
    // Programs stay, but where each would have one tile.
    const bool stay = node().splits == 1 && tiles_of(t) * t.ctas > r_.machine.multiprocessors;
    auto programs = [&](const MatmulTile& tile) {
      return std::min<int64_t>(tiles_of(tile), r_.machine.multiprocessors / tile.ctas);
    };
    const std::string m = e_.dimension(m_, "M"), n = e_.dimension(n_, "N"), k = e_.dimension(k_, "K");
    const std::string block_m = e_.constant(t.m, "BLOCK_M");
    // The tile's columns: those of its first sum, and of a second where it has one.
    std::vector<ColumnPart> parts(t.tail ? 2 : 1);
    parts[0].width = e_.constant(t.n - t.tail, "BLOCK_N");
    if (t.tail) parts[1].width = e_.constant(t.tail, "TAIL_N");
    const std::string block_k = e_.constant(t.k, "BLOCK_K"), group_m = stay ? e_.constant(t.group_m, "GROUP_M") : "",
                      num_programs = stay ? e_.constant(programs(t), "NUM_PROGRAMS") : "";
    const std::string width = t.tail ? parts[0].width + " + " + parts[1].width : parts[0].width,
                      tile_n = t.tail ? "(" + width + ")" : width;
    const std::string count = batch_ > 1 ? e_.dimension(batch_, "B") : "";
    group_.descriptors = true;
    // What descriptors of a tensor share; sizes and strides of the batch's dimensions stand in front of the matrix's.
    struct Matrix {
      std::string pointer;
      std::vector<std::string> sizes = {}, strides = {};
      bool transposed = false;
    };
    auto matrix = [&](const std::string& hint, const Operand& o, const Block& as, const std::string& rows,
                      const std::string& columns) {
      Matrix out{.pointer = e_.pointer(o.node, o.offset, false), .transposed = as.transposed};
      for (size_t d : as.batch) {
        out.sizes.push_back(o.shape[d] == batch_ ? count : e_.dimension(o.shape[d], "B"));
        out.strides.push_back(e_.dimension(o.strides[d], "stride_batch_" + hint));
      }
      out.strides.insert(out.strides.end(), {e_.dimension(as.stride, "stride_" + hint), "1"});
      out.sizes.insert(out.sizes.end(), {as.transposed ? columns : rows, as.transposed ? rows : columns});
      return out;
    };
    auto descriptor = [&](const std::string& hint, const Matrix& of, std::string rows, std::string columns) {
      if (of.transposed) std::swap(rows, columns);
      std::vector<std::string> block(of.sizes.size() - 2, "1");
      block.insert(block.end(), {rows, columns});
      std::string name = fresh(hint + "_desc");
      e_.line(fmt::format("{} = tl.make_tensor_descriptor({}, [{}], [{}], [{}])", name, of.pointer,
                          fmt::join(of.sizes, ", "), fmt::join(of.strides, ", "), fmt::join(block, ", ")));
      return name;
    };
    const std::string a_desc = descriptor("a", matrix("a", node().operands[0], a, m, k), block_m, block_k);
    for (size_t p = 0; p < products.size(); ++p) {
      const Matrix right = matrix("b", dag_.nodes[at(products[p])].operands[1], right_blocks[p], k, n);
      for (ColumnPart& part : parts) part.b_desc.push_back(descriptor("b", right, block_k, part.width));
    }
    for (int stored : stores_) {
      if (!by_descriptor(stored)) {
        for (ColumnPart& part : parts) part.out_desc.emplace_back();
        continue;
      }
      Matrix out{.pointer = e_.pointer(stored, 0, true), .sizes = {m, n}, .strides = {n, "1"}};
      if (batch_ > 1) {
        out.sizes.insert(out.sizes.begin(), count);
        out.strides.insert(out.strides.begin(), e_.dimension(m_ * n_, "stride_batch_out"));
      }
      for (ColumnPart& part : parts) part.out_desc.push_back(descriptor("out", out, block_m, part.width));
    }
    for (const BesideBlock& read : beside) {
      const std::string hint =
          dag_.nodes[at(read.access.node)].name.empty() ? "x" : dag_.nodes[at(read.access.node)].name;
      Matrix in{.pointer = e_.pointer(read.access.node, read.access.offset, false)};
      for (size_t d : read.batch) {
        const size_t dim = at(c_.map_of(product_)[d]);
        in.sizes.push_back(c_.dims[dim] == batch_ ? count : e_.dimension(c_.dims[dim], "B"));
        in.strides.push_back(e_.dimension(read.access.strides[dim], "stride_batch_" + hint));
      }
      in.sizes.insert(in.sizes.end(), {m, n});
      in.strides.insert(in.strides.end(), {read.stride == n_ ? n : e_.dimension(read.stride, "stride_" + hint), "1"});
      for (ColumnPart& part : parts) part.beside_desc.push_back(descriptor(hint, in, block_m, part.width));
    }
    const std::string row = fresh("row"), step = fresh("step"), batch = batch_ > 1 ? fresh("batch") : "";
    parts[0].column = fresh("column");
    for (size_t p = 0; p < products.size(); ++p)
      for (ColumnPart& part : parts) part.acc.push_back(fresh("acc"));
    std::string range;
    if (stay) {
      const std::string tiles_m = fresh("tiles_m"), tiles_n = fresh("tiles_n"), tile = fresh("tile"),
                        at_m = fresh("tile_m"), at_n = fresh("tile_n");
      e_.line(fmt::format("{} = tl.cdiv({}, {})", tiles_m, m, block_m));
      e_.line(fmt::format("{} = tl.cdiv({}, {})", tiles_n, n, width));
      range = fresh("steps");
      e_.line(fmt::format("{} = tl.cdiv({}, {})", range, k, block_k));
      e_.use_helper("tile_of");
      std::string all = fmt::format("{} * {}", tiles_m, tiles_n), in_matrix = tile;
      std::vector<std::string> head;
      if (batch_ > 1) {
        const std::string per_matrix = fresh("per_matrix");
        e_.line(fmt::format("{} = {}", per_matrix, all));
        all = fmt::format("{} * {}", count, per_matrix);
        head.push_back(fmt::format("{} = {} // {}", batch, tile, per_matrix));
        in_matrix = fmt::format("{} % {}", tile, per_matrix);
      }
      head.push_back(fmt::format("{}, {} = tile_of({}, {}, {}, {})", at_m, at_n, in_matrix, tiles_m, tiles_n, group_m));
      head.push_back(fmt::format("{} = {} * {}", row, at_m, block_m));
      head.push_back(fmt::format("{} = {} * {}", parts[0].column, at_n, tile_n));
      e_.begin_loop(fmt::format("for {} in tl.range(tl.program_id(0), {}, {}):", tile, all, num_programs), head, false);
    } else {
      e_.line(fmt::format("{} = tl.program_id(0) * {}", row, block_m));
      e_.line(fmt::format("{} = tl.program_id(1) * {}", parts[0].column, tile_n));
      if (batch_ > 1) e_.line(fmt::format("{} = tl.program_id(2)", batch));
    }
    if (t.tail) {
      parts[1].column = fresh("tail");
      e_.line(fmt::format("{} = {} + {}", parts[1].column, parts[0].column, parts[0].width));
    }
    bind_batch(batch);
    if (!stay) range = steps(k, block_k);
    for (size_t p = 0; p < products.size(); ++p)
      for (const ColumnPart& part : parts)
        e_.line(fmt::format("{} = tl.zeros(({}, {}), dtype={})", part.acc[p], block_m, part.width, sum_name()));
    e_.line(fmt::format("for {} in range({}):", step, range));
    auto loaded = [&](const std::string& hint, const std::string& desc, const Block& as, std::vector<std::string> from,
                      std::vector<std::string> block) {
      if (as.transposed) std::swap(from[0], from[1]), std::swap(block[0], block[1]);
      std::vector<std::string> place;
      for (size_t d : as.batch) place.push_back(batch_index(d));
      place.insert(place.end(), from.begin(), from.end());
      const std::string name = fresh(hint);
      const std::string flat = as.batch.empty() ? "" : fmt::format(".reshape({}, {})", block[0], block[1]);
      e_.line(fmt::format("    {} = {}.load([{}]){}{}", name, desc, fmt::join(place, ", "), flat,
                          as.transposed ? ".T" : ""));
      return name;
    };
    const std::string depth = fmt::format("{} * {}", step, block_k);
    const std::string a_block = loaded("a", a_desc, a, {row, depth}, {block_m, block_k});
    std::vector<std::string> sums;
    for (size_t p = 0; p < products.size(); ++p)
      for (const ColumnPart& part : parts) {
        const std::string right =
            loaded("b", part.b_desc[p], right_blocks[p], {depth, part.column}, {block_k, part.width});
        sums.push_back("    " + dot(a_block, right, part.acc[p]));
      }
    for (const std::string& sum : sums) e_.line(sum);
    // Ranges of rows and columns, for tensors that are not accessed in blocks.
    const auto& by_block = parts[0].out_desc;
    const bool only_blocks = std::all_of(by_block.begin(), by_block.end(), [](const auto& d) { return !d.empty(); });
    const bool ranges = reads_other_than(beside) || !only_blocks;
    const std::string to = wide() ? ".to(tl.int64)" : "";
    std::string rows;
    if (ranges) {
      rows = fresh("rows");
      e_.line(fmt::format("{} = {} + tl.arange(0, {}){}", rows, row, block_m, to));
      if (m_ % t.m || differs(tiles, t, m_, &MatmulTile::m)) e_.row_mask = "(" + rows + " < " + m + ")";
    }
    for (const ColumnPart& part : parts) {
      std::string columns;
      if (ranges) {
        columns = fresh("columns");
        e_.line(fmt::format("{} = {} + tl.arange(0, {}){}", columns, part.column, part.width, to));
        if (n_ % t.n || differs(tiles, t, n_, &MatmulTile::n)) e_.column_mask = "(" + columns + " < " + n + ")";
      }
      if (&part == &parts[0]) {
        bind(rows, columns);
      } else {
        e_.change_columns();
        bind_columns(columns);
      }
      for (size_t i = 0; i < beside.size(); ++i) {
        std::vector<std::string> place;
        for (size_t d : beside[i].batch) place.push_back(batch_index(d));
        place.insert(place.end(), {row, part.column});
        const std::string flat = place.size() > 2 ? fmt::format(".reshape({}, {})", block_m, part.width) : "";
        e_.blocks[beside[i].access] = fmt::format("{}.load([{}]){}", part.beside_desc[i], fmt::join(place, ", "), flat);
      }
      for (size_t p = 0; p < products.size(); ++p)
        e_.set(products[p], e_.product(products[p], accumulated(part.acc[p])));
      for (size_t i = 0; i < stores_.size(); ++i) store(stores_[i], part.out_desc[i], block_m, part, row, batch);
    }
    if (stay) e_.end_loop();
    auto grid = [&](const MatmulTile& tile) -> std::array<int64_t, 3> {
      if (!stay) return {cdiv(m_, tile.m), cdiv(n_, tile.n), batch_};
      return {programs(tile), 1, 1};
    };
    group_.grid = grid(t);
    group_.num_warps = t.warps;
    group_.num_stages = t.stages;
    group_.num_ctas = t.ctas;
    for (const MatmulTile& other : tiles) {
      if (other == t || !is_choice(other, t)) continue;
      group_.configurations.push_back({{.num_warps = other.warps, .num_stages = other.stages, .num_ctas = other.ctas},
                                       {{block_m, other.m}, {parts[0].width, other.n - other.tail}, {block_k, other.k}},
                                       grid(other)});
      auto& constants = group_.configurations.back().constants;
      if (t.tail) constants.emplace_back(parts[1].width, other.tail);
      if (stay) constants.emplace_back(num_programs, programs(other));
    }
  }

  /// Stores a part of the tile, through the descriptor if there is one.
  void store(int stored, const std::string& desc, const std::string& block_m, const ColumnPart& part,
             const std::string& row, const std::string& batch) {
    if (desc.empty()) return e_.store(stored);
    Text value = e_.value(stored);
    const DType type = dag_.nodes[at(stored)].dtype;
    std::string text = e_.spread(value, kWhole, value.type == type ? 0 : 10);
    if (value.type != type && is_fp8(type)) {
      Text whole = value;
      whole.text = e_.spread(value, kWhole, 0);
      text = e_.converted(std::move(whole), type).text;
    } else if (value.type != type) {
      text += fmt::format(".to(tl.{})", info(type).triton);
    }
    if (batch_ > 1)
      e_.line(fmt::format("{}.store([{}, {}, {}], {}.reshape(1, {}, {}))", desc, batch, row, part.column,
                          value.type == type ? e_.spread(value, kWhole, 10) : text, block_m, part.width));
    else
      e_.line(fmt::format("{}.store([{}, {}], {})", desc, row, part.column, text));
  }

  /// Whether the kernel that is written with `tile` takes the numbers of another.
  static bool is_choice(const MatmulTile& other, const MatmulTile& tile) {
    return (other.tail != 0) == (tile.tail != 0);
  }

  /// Whether some tile that the kernel may have leaves part of a block outside.
  static bool differs(const std::vector<MatmulTile>& tiles, const MatmulTile& tile, int64_t size,
                      int MatmulTile::*side) {
    return std::any_of(tiles.begin(), tiles.end(),
                       [&](const MatmulTile& other) { return is_choice(other, tile) && size % (other.*side) != 0; });
  }

  /// A tensor as large as the product that its epilogue reads, where its rows lie as those of blocks do.
  struct BesideBlock {
    Access access = {};
    int64_t stride = 0;              // of rows
    std::vector<size_t> batch = {};  // the product's dimensions in front that move it
  };

  std::optional<BesideBlock> beside_block(const Access& a) const {
    const DagNode& n = dag_.nodes[at(a.node)];
    const std::vector<int>& map = c_.map_of(product_);
    const size_t batches = at(node().batch_dims);
    const int bytes = size_of(n.dtype);
    auto fills_units = [&](int64_t elements) { return elements > 0 && elements * bytes % kTensorMapAlignment == 0; };
    if (n.dtype == DType::kI1 || n.counts || map.back() < 0 || a.strides[at(map.back())] != 1) return std::nullopt;
    if (!begins_at_unit(n, a.offset)) return std::nullopt;
    BesideBlock out{.access = a};
    int64_t inner = 0;  // the stride of the next dimension of rows outwards, where they run on
    for (size_t d = map.size() - 1; d-- > batches;) {
      if (map[d] < 0) continue;
      const int64_t stride = a.strides[at(map[d])];
      if (out.stride == 0) out.stride = stride;
      if (!fills_units(stride) || (inner != 0 && stride != inner)) return std::nullopt;
      inner = stride * c_.dims[at(map[d])];
    }
    for (size_t d = 0; d < batches; ++d) {
      if (map[d] < 0 || a.strides[at(map[d])] == 0) continue;
      if (!fills_units(a.strides[at(map[d])])) return std::nullopt;
      out.batch.push_back(d);
    }
    if (out.stride == 0 || out.batch.size() + 2 > kTensorMapDims) return std::nullopt;
    return out;
  }

  static bool has(const std::vector<BesideBlock>& blocks, const Access& access) {
    return std::any_of(blocks.begin(), blocks.end(), [&](const BesideBlock& b) { return b.access == access; });
  }

  std::vector<BesideBlock> blocks_beside() const {
    std::vector<BesideBlock> out;
    for (const Read& r : reads())
      if (auto block = beside_block(r.access); block && !r.is_looked_up && !has(out, r.access))
        out.push_back(*std::move(block));
    return out;
  }

  /// Whether its epilogue reads anything but these.
  bool reads_other_than(const std::vector<BesideBlock>& blocks) const {
    const std::vector<Read> all = reads();
    return std::any_of(all.begin(), all.end(), [&](const Read& r) { return r.is_looked_up || !has(blocks, r.access); });
  }

  // --- a program per tile, pointers

  bool is_made(const Operand& o) const { return c_.contains(o.node); }

  /// One side of a tile of an operand: the range along it, which of it is inside (empty: all), and its length.
  struct Side {
    std::string range, mask, size;
  };

  /// As much of the operand that is computed as the model says: nothing is loaded ahead of it, so that programs which
  /// compute fill the waits of others, and less of it in each makes more programs.
  MatmulTile with_room_to_make(MatmulTile t) const {
    constexpr int kLeastSide = 32;
    const bool makes_b = is_made(node().operands[1]);
    MatmulTile best = with_stages(t, node(), r_.machine);
    double least = pointer_product_us(node(), best, r_.machine);
    for (int side = (makes_b ? t.n : t.m) / 2; side >= kLeastSide; side /= 2) {
      (makes_b ? t.n : t.m) = side;
      const MatmulTile tile = with_stages(t, node(), r_.machine);
      if (const double us = pointer_product_us(node(), tile, r_.machine); us < least) least = us, best = tile;
    }
    return best;
  }

  /// The innermost dimension of the loops along k of an operand that is computed, where it is that of a stack of few
  /// tensors, as of the halves of bytes, and no tensor lies along it: they are computed apart, each from elements that
  /// lie side by side, and interleaved in registers. Nullopt: there is none.
  std::optional<size_t> stacked(size_t i) const {
    const Operand& o = node().operands[i];
    const Shape& shape = dag_.nodes[at(o.node)].shape;
    const std::vector<int> dims = *operand_dims(node(), i, shape);
    const int deep = static_cast<int>(o.shape.size()) - (i == 0 ? 1 : 2);
    const auto innermost = std::find(dims.rbegin(), dims.rend(), deep);
    if (innermost == dims.rend()) return std::nullopt;
    const auto e = static_cast<size_t>(dims.rend() - innermost - 1);
    if (shape[e] != 2 && shape[e] != 4) return std::nullopt;
    const auto dim = at(c_.map_of(o.node)[e]);
    for (int m : c_.for_operands)
      for (size_t j = 0; j < dag_.nodes[at(m)].operands.size(); ++j) {
        const Operand& read = dag_.nodes[at(m)].operands[j];
        if (read.is_number() || c_.contains(read.node) || dag_.nodes[at(read.node)].counts) continue;
        if (e_.access(m, j).strides[dim] != 0) return std::nullopt;
      }
    return e;
  }

  /// The places along k of one step of the loop: which step it is, of how many, and how many are left.
  struct Depth {
    std::string step, block, rest, type, range;  // range: within a step
    int64_t size;                                // of a step
  };

  /// The text of a tile of an operand that is computed where it is read; `depth`: the places along k, of which those of
  /// the side are as many.
  std::string made(size_t i, Side rows, Side columns, const Depth& depth) {
    const std::optional<size_t> stack = stacked(i);
    if (!stack) {
      bind_made(i, rows, columns, depth);
      return made_tile(i, rows, columns);
    }
    const int dim = c_.map_of(node().operands[i].node)[*stack];
    const int64_t count = c_.dims[at(dim)];
    const std::string shape = fmt::format("{}, {}", rows.size, columns.size);
    Side& deep = i == 0 ? columns : rows;
    deep.size = fmt::format("{} // {}", depth.block, count);
    const std::string range = fmt::format("tl.arange(0, {}){}", deep.size, depth.type);
    deep.range = e_.named_inside(fmt::format("{} * ({}) + {}", depth.step, deep.size, range), "k");
    if (!depth.rest.empty())
      deep.mask = e_.named_inside(fmt::format("{} < {} // {}", range, depth.rest, count), "in_k");
    bind_made(i, rows, columns, depth, stack);
    std::vector<std::string> parts;
    for (int64_t k = 0; k < count; ++k) {
      e_.index[at(dim)] = {std::to_string(k), kUniform};
      e_.change_index(dim);
      parts.push_back(e_.named_inside(made_tile(i, rows, columns), "part"));
    }
    // tl.join() makes the parts a last dimension; of four, those of the outer call count by one.
    const std::string joined =
        count == 2 ? fmt::format("tl.join({}, {})", parts[0], parts[1])
                   : fmt::format("tl.join(tl.join({}, {}), tl.join({}, {}))", parts[0], parts[2], parts[1], parts[3]);
    const std::string turned = i == 0 ? "" : count == 2 ? ".permute(0, 2, 1)" : ".permute(0, 2, 3, 1)";
    return fmt::format("{}{}.reshape({})", joined, turned, shape);
  }

  /// Says how a tile of an operand that is computed counts along its dimensions, but for `stack`.
  void bind_made(size_t i, const Side& rows, const Side& columns, const Depth& depth,
                 std::optional<size_t> stack = {}) {
    const Operand& o = node().operands[i];
    const std::vector<int>& map = c_.map_of(o.node);
    const std::vector<int> dims = *operand_dims(node(), i, dag_.nodes[at(o.node)].shape);
    const size_t last = o.shape.size() - 1;
    // Its dimensions from the innermost one outwards, each a part of the range along its side, or of the batch.
    Shape inner(o.shape.size(), 1), all = o.shape;
    if (stack) all[at(dims[*stack])] /= c_.dims[at(map[*stack])];
    const size_t deep = i == 0 ? last : last - 1;
    const std::string first = fmt::format("{} * {}", depth.step, depth.block);  // along k
    for (size_t e = dims.size(); e-- > 0;) {
      if (dims[e] < 0 || e == stack) continue;
      const size_t side = at(dims[e]);
      const std::string& range = side == last ? columns.range : side + 1 == last ? rows.range : batch_index(side);
      const int64_t size = c_.dims[at(map[e])];
      // A step lies within one element of the dimensions outside of one that steps divide.
      if (side == deep && !stack && inner[side] % depth.size == 0) {
        std::string text = fmt::format("{} // {}", first, inner[side]);
        inner[side] *= size;
        if (inner[side] != all[side]) text += fmt::format(" % {}", size);
        e_.index[at(map[e])] = {e_.named_inside(text, "k_at"), kUniform};
        continue;
      }
      if (side == deep && !stack && inner[side] == 1 && size % depth.size == 0 && size != all[side]) {
        inner[side] = size;
        const std::string text = fmt::format("{} % {} + {}", first, size, depth.range);
        e_.index[at(map[e])] = {e_.named_inside(text, "k_at"), side == last ? kAlongColumns : kAlongRows};
        continue;
      }
      std::string text = inner[side] == 1 ? range : fmt::format("{} // {}", range, inner[side]);
      inner[side] *= size;
      if (inner[side] != all[side]) text += fmt::format(" % {}", size);
      if (text != range) text = e_.named_inside(text, range + "_at");
      e_.index[at(map[e])] = {text, side == last ? kAlongColumns : side + 1 == last ? kAlongRows : kUniform};
    }
  }

  std::string made_tile(size_t i, const Side& rows, const Side& columns) {
    const DagNode& p = node();
    const std::string row_mask = std::exchange(e_.row_mask, rows.mask),
                      column_mask = std::exchange(e_.column_mask, columns.mask);
    e_.two_ranges = true;
    Text tile = e_.filled(e_.converted(e_.operand(product_, i), p.operand_type), kWhole,
                          fmt::format("[{}, {}]", rows.size, columns.size));
    // Beyond k both factors are 0: what is computed from nothing there may be no number.
    const Side& deep = i == 0 ? columns : rows;
    if (!deep.mask.empty())
      tile.text = fmt::format("tl.where({}{}, {}, {})", deep.mask, i == 0 ? "[None, :]" : "[:, None]",
                              e_.spread(tile, kWhole, 0), is_int(p.operand_type) ? "0" : "0.0");
    e_.row_mask = row_mask;
    e_.column_mask = column_mask;
    return tile.text;
  }

  void by_pointers() {
    e_.factors_sizes = r_.machine.gpu();
    MatmulTile t = pointer_tile(node(), r_.machine);
    if (!c_.for_operands.empty()) t = with_room_to_make(t);
    const int64_t bm = t.m, bn = t.n, bk = t.k;
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
    bind_batch(batch);
    std::string first;
    const std::string all_steps = steps(k, block_k, &first);
    // Where along k the pointers begin, as a factor in front of a stride.
    const std::string from = first.empty() ? "" : fmt::format("({}{} * {} + {})", first, to, block_k, depth);
    const std::vector<int>& map = c_.map_of(product_);
    auto base = [&](const Operand& o, const std::string& hint) {
      std::string p = e_.pointer(o.node, o.offset, false);
      for (size_t d = 0; d < at(node().batch_dims); ++d)
        if (map[d] >= 0 && o.strides[d] != 0)
          p += fmt::format(" + {}{}", e_.index[at(map[d])].text, stride(o.strides[d], hint));
      return p;
    };
    const bool makes_a = is_made(left), makes_b = is_made(right);
    const std::string a_ptrs = makes_a ? "" : fresh("a_ptrs"), b_ptrs = makes_b ? "" : fresh("b_ptrs"),
                      acc = fresh("acc"), step = fresh("step"), a = fresh("a"), b = fresh("b");
    const std::string a_deep = makes_a ? "" : stride(left.strides[r - 1], "stride_ak"),
                      b_deep = makes_b ? "" : stride(right.strides[r - 2], "stride_bk");
    // Of sums in registers, rows that lie along k and are none of the result's are read from the last one: a mask of
    // rows takes an instruction or two of each copy, and registers.
    auto last_instead = [&](const Operand& o, bool is_made_here, int64_t own_stride, std::string& mask,
                            const std::string& places, const std::string& size) {
      if (mask.empty() || is_made_here || own_stride == 1 || !sums_elements(node()) || !r_.machine.gpu()) return places;
      mask.clear();
      const std::string inside = fresh(&o == &left ? "a_rows" : "b_columns");
      e_.line(fmt::format("{} = tl.minimum({}, {} - 1)", inside, places, size));
      return inside;
    };
    std::string a_mask = e_.row_mask, b_mask = e_.column_mask;
    const std::string a_rows = last_instead(left, makes_a, left.strides[r - 2], a_mask, rows, m),
                      b_columns = last_instead(right, makes_b, right.strides[r - 1], b_mask, columns, n);
    if (!makes_a)
      e_.line(fmt::format("{} = {} + {}[:, None]{} + {}[None, :]{}", a_ptrs, base(left, "stride_ab"), a_rows,
                          stride(left.strides[r - 2], "stride_am"), from.empty() ? depth : from, a_deep));
    if (!makes_b)
      e_.line(fmt::format("{} = {} + {}[:, None]{} + {}[None, :]{}", b_ptrs, base(right, "stride_bb"),
                          from.empty() ? depth : from, b_deep, b_columns, stride(right.strides[r - 1], "stride_bn")));
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
    e_.begin_loop(fmt::format("for {} in range({}):", step, all_steps), {}, false);
    if (ragged) e_.line(fmt::format("{} = {} - {} * {}", rest, k, step, block_k));
    std::string deep, in_depth;  // of operands that are made here: the places along k, and which are inside
    const Depth along_k = {step, block_k, rest, to, depth, bk};
    if ((makes_a && !stacked(0)) || (makes_b && !stacked(1))) {
      deep = fresh("k");
      e_.line(fmt::format("{} = {} * {} + {}", deep, step, block_k, depth));
      if (ragged) in_depth = fresh("in_k"), e_.line(fmt::format("{} = {} < {}", in_depth, depth, rest));
    }
    e_.line(fmt::format("{} = {}", a,
                        makes_a ? made(0, {rows, e_.row_mask, block_m}, {deep, in_depth, block_k}, along_k)
                                : loaded(a_ptrs, a_mask.empty() ? "" : a_mask + "[:, None]",
                                         fmt::format("({}[None, :] < {})", depth, rest))));
    e_.line(fmt::format("{} = {}", b,
                        makes_b ? made(1, {deep, in_depth, block_k}, {columns, e_.column_mask, block_n}, along_k)
                                : loaded(b_ptrs, b_mask.empty() ? "" : b_mask + "[None, :]",
                                         fmt::format("({}[:, None] < {})", depth, rest))));
    e_.line(dot(a, b, acc));
    if (!makes_a) e_.line(fmt::format("{} += {}{}", a_ptrs, block_k, a_deep));
    if (!makes_b) e_.line(fmt::format("{} += {}{}", b_ptrs, block_k, b_deep));
    e_.end_loop();
    bind(rows, columns);
    e_.set(product_, e_.product(product_, accumulated(acc)));
    for (int s : stores_) e_.store(s);
    group_.grid = {batch_ * cdiv(m_, bm) * cdiv(n_, bn), 1, 1};
    group_.num_stages = t.stages;
    group_.num_warps = t.warps;
    group_.maxnreg = most_registers(node(), t);
    for (const MatmulTile& other : other_pointer_tiles(node(), t, r_.machine)) {
      const bool masks_fit = (m_ % bm || m_ % other.m == 0) && (n_ % bn || n_ % other.n == 0);
      // What is computed along k may count on steps of so many (bind_made), so that others have to divide them.
      const bool steps_fit = (ragged || k_ % other.k == 0) && (!(makes_a || makes_b) || bk % other.k == 0);
      if (!masks_fit || !steps_fit) continue;
      group_.configurations.push_back({{.num_warps = other.warps, .num_stages = other.stages},
                                       {{block_m, other.m}, {block_n, other.n}, {block_k, other.k}},
                                       {batch_ * cdiv(m_, other.m) * cdiv(n_, other.n), 1, 1}});
      group_.configurations.back().maxnreg = most_registers(node(), other);
    }
  }

  const WriteRequest& r_;
  const Dag& dag_;
  const Cluster& c_;
  Group& group_;
  Emitter e_;
  int product_ = -1, twin_ = -1;
  int64_t m_ = 1, n_ = 0, k_ = 0, batch_ = 1;
  DType sum_ = DType::kF32;
  std::vector<int> stores_;
};

}  // namespace

Status write_product(const WriteRequest& request, Group& group) { return ProductWriter(request, group).write(); }

}  // namespace kiln::fusion
