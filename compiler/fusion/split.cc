#include "compiler/fusion/split.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <set>
#include <tuple>
#include <vector>

#include "compiler/fusion/grouping.h"
#include "compiler/fusion/pointer_product.h"
#include "compiler/fusion/writer.h"

namespace kiln::fusion {

namespace {

/// How many programs share the sum over k of each tile of a product that is read in blocks: what takes the least time.
SplitTime best_split(const DagNode& n, const BlockPair& blocks, const Machine& machine) {
  ProductSize size = size_of_product(n, &blocks);
  size.result_bytes = size_of(n.dtype);
  const int64_t steps = size.k * size.operand_bytes / 128;  // of the widest tiles
  TileLimits limits = tile_limits(n, machine);
  double least = least_us(size, machine.multiprocessors, limits);
  limits.most_ctas = 1;  // who shares a sum counts who has come, block by block
  int64_t best = 1;
  const int64_t batch = size.batch;
  const target::Rates& rates = machine.rates();
  size.result_bytes = size_of(DType::kF32);
  for (int64_t splits : {2, 3, 4, 5, 6, 8, 10, 12, 16, 24, 32}) {
    if (steps < 2 * splits) break;
    size.splits = static_cast<int>(splits);
    size.batch = batch * splits;
    const double parts_bytes = static_cast<double>(splits) * size.result_bytes * static_cast<double>(numel(n.shape));
    const double us =
        least_us(size, machine.multiprocessors, limits) + rates.kernel_us + parts_bytes / rates.part_bytes_per_us;
    if (us < least * 0.97) least = us, best = splits;  // what is about the same is not split
  }
  return {best, least};
}

int64_t splits_of(const Dag& dag, const DagNode& n, const Machine& machine) {
  if (numel(n.shape) == 0) return 1;
  const bool makes = n.made[0] + n.made[1] > 0;  // which is not read in blocks
  const auto blocks = makes ? std::nullopt : blocks_of(dag, n, machine);
  return blocks ? best_split(n, *blocks, machine).splits : best_pointer_split(n, machine).splits;
}

/// Completes a node that makes parts and comes next: the operand that reads them all.
Operand parts_of(const Dag& dag, DagNode& parts, DType dtype, Shape shape) {
  parts.name = "parts";
  parts.dtype = dtype;
  parts.shape = std::move(shape);
  Operand from;
  from.node = static_cast<int>(dag.nodes.size());
  from.shape = parts.shape;
  from.strides = row_major(parts.shape);
  return from;
}
/// The same of one that reduces, whose parts are a last dimension.
Operand parts_of(const Dag& dag, Shape kept, DagNode& parts) {
  kept.push_back(parts.splits);
  return parts_of(dag, parts, parts.operand_type, std::move(kept));
}

/// Which reductions of long rows another one waits for, or is waited for by: parts of both take twice as many kernels.
std::vector<bool> chained_reductions(const Dag& dag) {
  std::vector<int> last(dag.nodes.size(), -1);  // such a reduction that a node is computed from
  std::vector<bool> out(dag.nodes.size());
  for (size_t i = 0; i < dag.nodes.size(); ++i) {
    const DagNode& n = dag.nodes[i];
    for (const Operand& o : n.operands)
      if (!o.is_number()) last[i] = std::max(last[i], last[at(o.node)]);
    if (n.kind != DagKind::kReduce || numel(n.operands[0].shape) < kSplitUnit * std::max<int64_t>(1, numel(n.shape)))
      continue;
    if (last[i] >= 0) out[i] = out[at(last[i])] = true;
    last[i] = static_cast<int>(i);
  }
  return out;
}

/// What an element of a reduction's operand takes in the kernel that reduces it: its loads, and its instructions.
struct Work {
  int64_t loads = 0, instructions = 0;
};

Work work_of(const Dag& dag, const Operand& x) {
  std::set<std::tuple<int, Shape, int64_t>> loads;
  std::set<int> seen;
  Work work;
  const std::function<void(const Operand&)> look = [&](const Operand& o) {
    if (o.is_number()) return;
    const DagNode& n = dag.nodes[at(o.node)];
    if (n.counts) return;
    if (n.kind != DagKind::kPointwise) {
      loads.emplace(o.node, o.strides, o.offset);
    } else if (seen.insert(o.node).second) {
      work.instructions += instructions_of(n);
      for (const Operand& operand : n.operands) look(operand);
    }
  };
  look(x);
  work.loads = static_cast<int64_t>(loads.size());
  return work;
}

/// The instructions of an element of any reduction of so many rows: those that read the same tensors share a kernel,
/// and have as many parts.
int64_t instructions_of_rows(const Dag& dag, int64_t rows, int64_t columns) {
  int64_t most = 0;
  for (const DagNode& n : dag.nodes)
    if (n.kind == DagKind::kReduce && numel(n.shape) == rows * n.splits && numel(n.operands[0].shape) == rows * columns)
      most = std::max(most, work_of(dag, n.operands[0]).instructions);
  return most;
}

/// What two products of one left operand take by the model of their tiles: with one kernel for both sums, with a kernel
/// for each, and with the sums over k of each in parts as well, where that is less, which one kernel adds.
struct PairTimes {
  double together, apart, in_parts;
};

/// Nullopt where one is not read in blocks.
std::optional<PairTimes> times_of_pair(const Dag& dag, const DagNode& first, const DagNode& second,
                                       const Machine& machine) {
  const auto a = blocks_of(dag, first, machine), b = blocks_of(dag, second, machine);
  if (!a || !b) return std::nullopt;
  const TileLimits limits = tile_limits(first, machine);
  auto us = [&](ProductSize size, const DagNode& stored, int read_bytes) {
    size.result_bytes = size_of(stored.dtype);
    size.read_bytes = read_bytes;
    return least_us(size, machine.multiprocessors, limits);
  };
  const ProductSize one = size_of_product(first, &*a), two = size_of_product(second, &*b);
  const SplitTime one_split = best_split(first, *a, machine), two_split = best_split(second, *b, machine);
  const bool both = one_split.splits > 1 && two_split.splits > 1;
  return PairTimes{us(size_of_twins(one, two), second, 0), us(one, first, 0) + us(two, second, size_of(first.dtype)),
                   one_split.us + two_split.us - (both ? machine.rates().kernel_us : 0)};
}

/// Products in pairs that take less with one kernel for both than each in parts. Grouped as they are, to see which
/// pairs have a kernel.
std::set<int> pairs_kept_whole(const Dag& dag, const PlanOptions& options) {
  // Tiles of 64 rows take up to 1.16 times as long as by the model where they leave processors idle, as those of such
  // pairs do: 256 x 2816 x 2240 on an H200 12.0 us, 208 x 3648 x 1792 11.8.
  constexpr double kLonger = 1.16;
  std::set<int> whole;
  std::vector<const DagNode*> products;
  for (const DagNode& n : dag.nodes)
    if (n.kind == DagKind::kProduct && n.splits == 1) products.push_back(&n);
  auto has_twin = [&](const DagNode* n) {
    return std::ranges::any_of(products, [&](const DagNode* o) {
      return o != n && o->shape == n->shape && is_same(o->operands[0], n->operands[0]);
    });
  };
  if (options.variant != Variant::kFused || std::ranges::none_of(products, has_twin)) return whole;
  for (const Cluster& c : group(dag, options).clusters) {
    if (c.form != Form::kProduct) continue;
    const auto [first, second] = products_of(dag, c);
    if (second < 0) continue;
    const auto us = times_of_pair(dag, dag.nodes[at(first)], dag.nodes[at(second)], options.machine);
    if (us && us->together * kLonger < us->in_parts) whole.insert({first, second});
  }
  return whole;
}

}  // namespace

double product_us(const DagNode& product, const BlockPair& blocks, const Machine& machine) {
  return best_split(product, blocks, machine).us;
}

bool pair_pays(const Dag& dag, const DagNode& first, const DagNode& second, const Machine& machine) {
  const auto us = times_of_pair(dag, first, second, machine);
  return us && us->together < us->apart;
}

void split_products(Dag& dag, const PlanOptions& options) {
  const Machine& machine = options.machine;
  if (!machine.gpu()) return;
  const std::set<int> whole = pairs_kept_whole(dag, options);
  const size_t count = dag.nodes.size();
  for (size_t i = 0; i < count; ++i) {
    DagNode& n = dag.nodes[i];
    if (n.kind != DagKind::kProduct || n.splits > 1 || whole.contains(static_cast<int>(i))) continue;
    const int64_t splits = splits_of(dag, n, machine);
    if (splits < 2) continue;
    DagNode parts = n;
    parts.splits = splits;
    parts.batch_dims = n.batch_dims + 1;
    for (Operand& o : parts.operands) {
      o.shape.insert(o.shape.begin(), splits);
      o.strides.insert(o.strides.begin(), 0);
    }
    Shape shape = n.shape;
    shape.insert(shape.begin(), splits);
    Operand from = parts_of(dag, parts, sum_type(n), std::move(shape));
    n.kind = DagKind::kReduce;
    n.op = ExprOp::kSum;
    n.axes = {0};
    n.operand_type = parts.dtype;
    n.number_type = parts.dtype;
    n.batch_dims = 0;
    n.operands = {std::move(from)};
    dag.nodes.push_back(std::move(parts));
  }
  tidy(dag);
}

bool keeps_last(const DagNode& n) {
  return !std::binary_search(n.axes.begin(), n.axes.end(), static_cast<int>(n.operands[0].shape.size()) - 1);
}

/// Whether what reads the reduction's result beside each of its elements stores these in another order than they are
/// read in, as a transposition behind a maximum: a processor stores a sector for each.
bool is_stored_across(const Dag& dag, const DagNode& n) {
  const int64_t elements = numel(n.operands[0].shape);
  std::vector<bool> behind(dag.nodes.size());
  for (size_t i = 0; i < dag.nodes.size(); ++i) {
    const DagNode& user = dag.nodes[i];
    const int64_t size = numel(user.shape);
    behind[i] = &user == &n;
    if (user.kind != DagKind::kPointwise || (size != elements && size != numel(n.shape))) continue;
    bool crosses = false;
    for (const Operand& o : user.operands) {
      if (o.is_number()) continue;
      behind[i] = behind[i] || behind[at(o.node)];
      crosses = crosses || (touched(o) == elements && o.strides.back() > 1);
    }
    if (behind[i] && crosses) return true;
  }
  return false;
}

int64_t splits_of_reduction(const Dag& dag, const DagNode& n, const Machine& machine, bool chained) {
  const Operand& x = n.operands[0];
  const int64_t rows = numel(n.shape), columns = rows == 0 ? 0 : numel(x.shape) / rows;
  if (rows == 0 || columns == 0) return 0;
  const int64_t programs = (!machine.gpu() ? 2 : rows == 1 ? 8 : 4) * int64_t{machine.multiprocessors};
  const bool across = keeps_last(n);
  const int64_t now = across ? cdiv(rows, machine.gpu() ? 64 : 256) : rows;
  // What a part has to do at least, and a row for its parts to be worth a second kernel. On a GPU that kernel takes
  // 2 us, in which one processor reads some 60 kB; several rows lose more, the kernel that they share with what reads
  // their sums, so that only few of them gain, or those that are read element by element (on an H100 sums of 16 x
  // 33000 take 9 and 7 us, of 130 x 65025 26 and 21; a softmax of 40 x 33000 12 and 17, of 40 x 65025 30 and 24).
  struct Limits {
    int64_t idle;          // of so many places for programs, one is taken
    int64_t least, worth;  // of a part and of a row, in units
  };
  int64_t unit = !across ? kSplitUnit : machine.gpu() ? 128 : 256;
  // Elements that many loads make, such as those of windows, take as long as so many others.
  constexpr int64_t kUsualLoads = 4, kLeastUnit = 256;
  const int64_t loads = machine.gpu() && !across ? work_of(dag, x).loads : 0;
  while (unit > kLeastUnit && unit * loads > kSplitUnit * kUsualLoads) unit /= 2;
  // One row: short parts, of which eight fit on a multiprocessor at once, load as much as memory takes (860,000 pairs
  // of halves on an H200: 8.7 us in 168 parts, 7.3 in 420).
  constexpr int64_t kLeastPart = 1024;
  if (machine.gpu() && !across && rows == 1) unit = std::min(unit, kLeastPart);
  const bool slow = !x.shape.empty() && x.shape.back() % 16 != 0;
  const Limits limits = !machine.gpu()                               ? Limits{2, 16, 32}
                        : across                                     ? Limits{3, 1, 4}
                        : rows == 1                                  ? Limits{3, 1, 8}
                        : slow || (now * 24 <= programs && !chained) ? Limits{8, 1, 8}
                                                                     : Limits{8, 4, 16};
  if (now * limits.idle > programs) return 0;
  // One processor computes 7 instructions of all its lanes in the time of a byte: logarithms of a row take longer than
  // the row's memory (decibels of 3 x 32000 floats below their largest).
  constexpr int64_t kInstructionsOfElement = 28;
  const int64_t computed = machine.gpu() && !across && rows > 1 ? instructions_of_rows(dag, rows, columns) : 0;
  // A sector that it stores takes a few of its cycles (decibels of 7 x 128 x 101 floats, transposed).
  constexpr int64_t kSectorOfElement = 4;
  const bool across_store = machine.gpu() && !across && rows > 1 && is_stored_across(dag, n);
  if (columns * (across_store ? 1 + kSectorOfElement : 1) + columns * computed / kInstructionsOfElement <
      limits.worth * unit)
    return 0;
  // Shorter parts of them where there are fewer than processors.
  constexpr int64_t kComputed = 4;
  auto idles = [&] { return now * (columns / (limits.least * unit)) < machine.multiprocessors; };
  while (computed >= kComputed && unit > kLeastPart && idles()) unit /= 2;
  const int64_t least = limits.least * unit;
  const int64_t wanted = std::min(cdiv(programs, now), columns / least);
  return cdiv(columns, cdiv(cdiv(columns, wanted), unit) * unit);
}

void split_reductions(Dag& dag, const Machine& machine) {
  const std::vector<bool> chained = chained_reductions(dag);
  const size_t count = dag.nodes.size();
  for (size_t i = 0; i < count; ++i) {
    DagNode& n = dag.nodes[i];
    if (n.kind != DagKind::kReduce || n.splits > 1) continue;
    const int64_t splits = splits_of_reduction(dag, n, machine, chained[i]);
    if (splits < 2) continue;
    DagNode parts = n;
    parts.splits = splits;
    n.axes = {static_cast<int>(n.shape.size())};
    n.operands = {parts_of(dag, n.shape, parts)};
    dag.nodes.push_back(std::move(parts));
  }
  tidy(dag);
}

namespace {

/// How a scan is split: its parts and the columns of each; one part where it is not.
struct ScanParts {
  int64_t splits = 1, chunk = 0;
  bool look_back = false;  // Merrill and Garland's single pass, with totals added up in a fixed order
};

/// Bytes of an element that a scan reads, which conversions widen.
int bytes_read(const Dag& dag, const DagNode& scan) {
  const Operand* o = &scan.operands[0];
  while (!o->is_number() && dag.nodes[at(o->node)].op == ExprOp::kCast) o = &dag.nodes[at(o->node)].operands[0];
  return size_of(o->is_number() ? scan.operand_type : dag.nodes[at(o->node)].dtype);
}

/// Elements of a part that waits for the totals of those before it: what four or eight warps hold, several programs to
/// a multiprocessor. On an H200, of 2^26 elements: halves in 77.5 us (tiles of 8192: 80.3), int64 in 279 (4096: 291),
/// int64 sums of int32 in 219 (4096: 238), and of bools in 205 by 4096 (8192: 213). Rows that begin where no vector
/// does have fewer, for the registers that their ends take: 1000 rows of 65537 floats in 144 us (8192: 150).
int64_t looking_chunk(const DagNode& n, int read, int64_t rows, int64_t columns) {
  const int size = size_of(n.operand_type);
  constexpr int64_t kVector = 16;  // bytes
  const bool odd = rows > 1 && columns * std::max(size, read) % kVector != 0;
  if (odd || (size > 4 && read < 4)) return 4096;
  if (size > 4) return 8192;
  return read == 2 && size_of(n.dtype) == 2 ? 16384 : 8192;
}

/// Columns of a row that a program takes at once. Rows that begin where no vector does have shorter parts, but are
/// whole as far as others: 3000 x 5001 halves take 23.1 us on an H200 (24.5 in parts), as many int64 65.7 (76.0).
int64_t whole_columns(const DagNode& n, int read, int64_t rows, int64_t columns) {
  constexpr int64_t kWhole = 8192;
  const int64_t chunk = looking_chunk(n, read, rows, columns);
  return size_of(n.operand_type) > 4 && read < 4 ? chunk : std::max(chunk, kWhole);
}

/// Of few rows, shorter parts where their programs leave processors idle, or where much of the last one is empty.
int64_t looking_part(const DagNode& n, int read, int64_t rows, int64_t length, const Machine& machine) {
  constexpr int64_t kLeastPart = 2048;
  const int64_t columns = columns_of_parts(rows, length);
  int64_t chunk = looking_chunk(n, read, rows, length);
  auto elements = [&](int64_t part) { return cdiv(columns, part) * part; };
  while (chunk > kLeastPart && (rows * cdiv(columns, chunk) < 2 * int64_t{machine.multiprocessors} ||
                                elements(chunk) * 8 > elements(chunk / 2) * 9))
    chunk /= 2;
  return chunk;
}

/// Columns of a part of rows that lie side by side: as few parts as tell each other little beside what they read. Of
/// words whose rows begin where no vector does half as many, of twice the rows (scan_tile): 3000 x 7001 floats on an
/// H200 in 57 us, 72 by lines.
int64_t looking_rows(int64_t length, bool odd) {
  constexpr int64_t kLeast = 128, kMost = 256, kMostParts = 64;
  int64_t chunk = odd ? kLeast / 2 : kLeast;
  while (chunk < (odd ? kMost / 2 : kMost) && cdiv(length, chunk) > kMostParts) chunk *= 2;
  return chunk;
}

/// Whether parts of rows that lie side by side look back: long ones, so many of them that a tile has whole lines. Held
/// whole by programs, 16 x 1000 x 333 floats took 26.9 us on an H200, and 22.9 so; 1300 x 3000 int64 29.2 and 26.4.
bool looks_across(const DagNode& n, int64_t length, int read) {
  constexpr int64_t kLeastRows = 32, kLeastLength = 1000, kMostParts = 1024;
  const int64_t beside = beside_of(n);
  return beside >= kLeastRows && length >= kLeastLength &&
         cdiv(length, looking_rows(length, are_odd_words(beside, read))) <= kMostParts;
}

/// Whether what a scan reads by whole rows lies in memory as its result does: along the same dimension.
bool follows_result(const Dag& dag, const DagNode& scan) {
  size_t last = scan.shape.size();
  while (last > 0 && scan.shape[last - 1] == 1) --last;
  std::set<int> seen;
  const std::function<bool(const DagNode&)> follows = [&](const DagNode& n) {
    return std::ranges::all_of(n.operands, [&](const Operand& o) {
      if (o.is_number() || o.shape.size() != scan.shape.size() || std::ranges::find(o.strides, 0) != o.strides.end())
        return true;
      const DagNode& from = dag.nodes[at(o.node)];
      if (last > 0 && o.strides[last - 1] != 1) return false;
      return from.kind != DagKind::kPointwise || from.counts || !seen.insert(o.node).second || follows(from);
    });
  };
  return follows(scan);
}

/// `read`: bytes_read(). `whole`: no row that a program can have by itself, in whatever time.
ScanParts parts_of_scan(const Dag& dag, const DagNode& n, const Machine& machine, int read, bool whole) {
  constexpr int64_t kFewestBlocks = 16;  // of a row, for its parts to be worth a second kernel
  constexpr int64_t kMostParts = 4096;   // a program reads the totals of all parts before its own at once
  const int64_t programs = 4 * int64_t{machine.multiprocessors};
  const auto axis = n.shape.begin() + n.axes[0];
  const int64_t length = *axis, rows = length == 0 ? 0 : numel(n.shape) / length;
  if (!machine.gpu() || rows == 0 || n.reverse) return {};
  // Rows that lie side by side: a program takes many of them, and reads all their totals.
  const bool across = lies_across(n);
  const int64_t unit = across ? kScanRows : kSplitUnit, now = across ? cdiv(rows, kScanRows) : rows;
  // Totals are told in words of 32 bits.
  const bool tells = size_of(n.operand_type) >= 4;
  const bool follows = !whole && tells && follows_result(dag, n);
  if (across && follows && looks_across(n, length, read)) {
    const int64_t chunk = looking_rows(length, are_odd_words(beside_of(n), read));
    return {cdiv(length, chunk), chunk, true};
  }
  // Few long rows are read once, in one launch (65536 floats on an H200 in 5.4 us, 7.4 by two kernels; 2^20 halves
  // in 7.5 and 9.3), and so are rows of several blocks whose loop would wait for memory at each.
  const bool few = length >= kFewestBlocks * unit && now * 2 < machine.multiprocessors;
  const bool looks = few ? tells
                         : follows && !is_whole_scan(rows, length, whole_columns(n, read, rows, length),
                                                     size_of(n.operand_type), machine);
  if (!across && looks) {
    const int64_t chunk = looking_part(n, read, rows, length, machine);
    return {cdiv(columns_of_parts(rows, length), chunk), chunk, true};
  }
  if (length < kFewestBlocks * unit || now * 2 >= machine.multiprocessors) return {};
  if (across && length <= kWholeScan) return {};
  // Of rows that lie side by side, those of a tile each have so many totals.
  const int64_t most = across ? kMostParts / std::min(kScanRows, power_of_two(rows)) : kMostParts;
  const int64_t wanted = std::min({cdiv(programs, now), cdiv(length, unit), most});
  int64_t chunk = cdiv(cdiv(length, wanted), unit) * unit;
  constexpr int64_t kMostAtOnce = 512;  // columns of a tile
  if (across) chunk = chunk <= kMostAtOnce ? power_of_two(chunk) : cdiv(chunk, kMostAtOnce) * kMostAtOnce;
  return {cdiv(length, chunk), chunk, false};
}

}  // namespace

int64_t beside_of(const DagNode& scan) {
  int64_t beside = 1;
  for (size_t d = at(scan.axes[0]) + 1; d < scan.shape.size(); ++d) beside *= scan.shape[d];
  return beside;
}

bool lies_across(const DagNode& scan) {
  return std::any_of(scan.shape.begin() + scan.axes[0] + 1, scan.shape.end(), [](int64_t d) { return d != 1; });
}

bool are_odd_words(int64_t beside, int read) {
  constexpr int64_t kVector = 16;  // bytes
  return read >= 4 && beside * read % kVector != 0;
}

int64_t columns_of_parts(int64_t rows, int64_t columns) {
  constexpr int64_t kVector = 16;  // elements of the narrowest type
  return rows == 1 || columns % kVector == 0 ? columns : columns + kVector - 1;
}

bool is_whole_scan(int64_t rows, int64_t columns, int64_t chunk, int size, const Machine& machine) {
  // Words of 64 bits have no registers left in a program of 1,024 threads: those of 7 x 9003 spilled.
  return columns_of_parts(rows, columns) <= (rows <= machine.multiprocessors && size <= 4 ? kMostWholeScan : chunk);
}

int64_t parts_of_group(const DagNode& scan) {
  // An H200: 2^24 float32 sums in 42.3 us by 128, 43.4 by 256, 44.5 by 512.
  constexpr int64_t kFew = 1 << 15;
  // Of rows side by side, which are many words at once, about as many as there are groups.
  if (lies_across(scan)) {
    int64_t group = 8;
    while (group * group < scan.splits) group *= 2;
    return group;
  }
  return scan.splits <= kFew ? 128 : 256;
}
int64_t groups_of_parts(const DagNode& scan) { return cdiv(scan.splits, parts_of_group(scan)); }

int64_t words_of_row(const DagNode& scan) {
  return 1 + (scan.splits + groups_of_parts(scan)) * (size_of(scan.operand_type) / 4);
}

int64_t words_of_scan(const DagNode& node) {
  if (!looks_back(node)) return 0;
  return numel(node.shape) / node.shape[at(node.axes[0])] * words_of_row(node);
}

bool is_split_scan(const Dag& dag, const DagNode& scan, const Machine& machine) {
  return parts_of_scan(dag, scan, machine, size_of(scan.dtype), true).splits > 1;
}

void split_scans(Dag& dag, const Machine& machine) {
  const size_t count = dag.nodes.size();
  for (size_t i = 0; i < count; ++i) {
    DagNode& n = dag.nodes[i];
    if (n.kind != DagKind::kScan || n.splits > 1) continue;
    const auto [splits, chunk, look_back] = parts_of_scan(dag, n, machine, bytes_read(dag, n), false);
    if (chunk == 0) continue;
    n.chunk = chunk;
    n.splits = splits;
    if (look_back) continue;
    DagNode parts = reduction_of(n);
    Shape kept = n.shape;
    kept.erase(kept.begin() + n.axes[0]);
    n.operands.push_back(parts_of(dag, kept, parts));
    dag.nodes.push_back(std::move(parts));
  }
  tidy(dag);
}

}  // namespace kiln::fusion
