// Matrix products of tiles. The operands are in scratch; blocks of c stay in registers while k runs:
//
//   for each matrix of the batch, each pass over `depth` of k, each panel of columns:
//     pack the panel of b, k-major and converted to the numbers that are computed with
//     for each block of rows: load c, for each k: c += splat(a[row, k]) * b[k, panel], store c
//
// Elements of a are splat as they are loaded, so a is read as it lies, by rows or by columns.
#include <llvm/TargetParser/Host.h>
#include <llvm/TargetParser/Triple.h>

#include <algorithm>
#include <cmath>

#include "compiler/lower/host/host.h"
#include "compiler/lower/host/lowering.h"
#include "compiler/lower/shared/float_convert.h"
#include "support/diag.h"

namespace kiln::lower::host {

using ir::AttrName;
using ir::OpKind;

struct ProductOperand {
  const ir::Value* tile = nullptr;
  bool transposed = false;  // the product takes the transpose of the tile
  DType dtype{};            // in memory
  llvm::Value* address = nullptr;
};

/// One dot: sizes in elements; addresses are of its first matrix, and then of the one being computed.
struct Product {
  ProductOperand a, b;
  ir::Type c;  // of the result
  DType computed{};
  bool exact_integers = false;  // computed as floats that hold them exactly
  bool from_zero = false;
  llvm::Value *c_in = nullptr, *c_out = nullptr;

  int64_t batch = 1, m = 1, n = 1, k = 1;
  int64_t depth = 1;      // of k in one pass: divides it
  unsigned lanes = 1;     // of a vector of columns
  unsigned vectors = 1;   // in a panel
  int64_t most_rows = 1;  // in a block of c
  bool packs = false;     // panels of b
  int64_t b_step = 0;     // from one k of a panel to the next
  Buffer panel{};         // when it packs
  int64_t columns() const { return int64_t{lanes} * vectors; }
};

namespace {

constexpr int64_t kDeepestPass = 256;  // a panel stays in the L1 cache, and sums of products of bytes exact in f32
constexpr int64_t kFewRows = 16;       // that do not pay for packing
constexpr int64_t kUnroll = 4;

struct Cpu {
  int64_t vector_registers;
  bool fma;
};

const Cpu& cpu() {
  static const Cpu found = [] {
    const auto features = llvm::sys::getHostCPUFeatures();
    if (!llvm::Triple(llvm::sys::getProcessTriple()).isX86()) return Cpu{32, true};
    return Cpu{features.lookup("avx512vl") ? 32 : 16, features.lookup("fma")};
  }();
  return found;
}

bool swaps_last_two(const ir::Op& op) {
  const auto& order = std::get<std::vector<int64_t>>(*op.find(AttrName::kOrder));
  const auto rank = static_cast<int64_t>(order.size());
  for (int64_t d = 0; d < rank; ++d) {
    const int64_t from = d < rank - 2 ? d : 2 * rank - 3 - d;
    if (order[static_cast<size_t>(d)] != from) return false;
  }
  return rank >= 2;
}

bool is_zero(const ir::Value* v) {
  if (!v->op) return false;
  if (v->op->kind == OpKind::kSplat) return is_zero(v->op->operand(0));
  if (v->op->kind != OpKind::kConstant) return false;
  const ir::Attr& value = *v->op->find(AttrName::kValue);
  if (const auto* real = std::get_if<double>(&value)) return *real == 0 && !std::signbit(*real);
  const auto* integer = std::get_if<int64_t>(&value);
  return integer && *integer == 0;
}

struct RowBlocks {
  int64_t first, count, rows;
};

/// Covers m rows, a power of two, by blocks of at most `most` (even), of which none is much smaller than the others.
std::vector<RowBlocks> row_blocks(int64_t m, int64_t most) {
  if (m <= most) return {{0, 1, m}};
  const int64_t whole = m / most, rest = m % most;
  if (rest == 0) return {{0, whole, most}};
  std::vector<RowBlocks> blocks;
  if (whole > 1) blocks.push_back({0, whole - 1, most});
  blocks.push_back({(whole - 1) * most, 2, (most + rest) / 2});
  return blocks;
}

/// Accumulators, one column of vectors of b and one splat of a share the registers; a block should have enough
/// independent sums to hide the latency of one.
void choose_block(Product& p, int64_t vector_bytes) {
  const int64_t registers = cpu().vector_registers, lanes = vector_bytes / size_of(p.computed);
  p.lanes = static_cast<unsigned>(std::min(lanes, p.n));
  auto rows = [&](int64_t vectors) { return std::max<int64_t>(1, (registers - 1 - vectors) / vectors / 2 * 2); };
  int64_t vectors = std::min<int64_t>(2, p.n / p.lanes);
  while (vectors < 8 && vectors * p.lanes < p.n && std::min(p.m, rows(vectors)) * vectors < registers / 2) vectors *= 2;
  p.vectors = static_cast<unsigned>(vectors);
  p.most_rows = rows(vectors);
}

DType computed_with(const ir::Type& a, const ir::Type& c) {
  if (c.is_int()) return a.element_bits() <= 8 ? DType::kF32 : DType::kI32;
  return a.dtype == DType::kF64 || c.dtype == DType::kF64 ? DType::kF64 : DType::kF32;
}

llvm::Type* lanes_of(llvm::Type* type, unsigned lanes) {
  return lanes == 1 ? type : llvm::FixedVectorType::get(type, lanes);
}

/// Rows of a square become its columns, in place.
void transpose(llvm::IRBuilderBase& b, std::vector<llvm::Value*>& rows) {
  const size_t n = rows.size();
  std::vector<int> low, high;
  for (size_t i = 0; i < n; ++i) {
    const size_t at = i / 2 + (i % 2) * n;
    low.push_back(static_cast<int>(at));
    high.push_back(static_cast<int>(at + n / 2));
  }
  for (size_t done = 1; done < n; done *= 2) {
    std::vector<llvm::Value*> next;
    for (size_t i = 0; i < n / 2; ++i) {
      next.push_back(b.CreateShuffleVector(rows[i], rows[i + n / 2], low));
      next.push_back(b.CreateShuffleVector(rows[i], rows[i + n / 2], high));
    }
    rows = std::move(next);
  }
}

}  // namespace

llvm::Value* Lowering::element_address(DType dtype, V base, V index) {
  return b.CreateInBoundsGEP(memory_type(ir::scalar_type(dtype)), base, index);
}

llvm::Value* Lowering::load_number(DType dtype, DType as, V at, unsigned lanes) {
  const ir::Type type = ir::scalar_type(dtype);
  const llvm::Align align(static_cast<uint64_t>(size_of(dtype)));
  V loaded = from_memory(b.CreateAlignedLoad(lanes_of(memory_type(type), lanes), at, align), type);
  return dtype == as ? loaded : convert_number(b, loaded, dtype, as, false, target_);
}

void Lowering::store_number(DType dtype, V at, V value) {
  b.CreateAlignedStore(to_memory(value, ir::scalar_type(dtype)), at,
                       llvm::Align(static_cast<uint64_t>(size_of(dtype))));
}

// The tile as the numbers that are computed with, as it lies.
Buffer Lowering::convert_tile(ProductOperand& tile, DType to) {
  const int64_t elements = tile.tile->type.shape.numel();
  Buffer buffer = allocate(elements * size_of(to));
  const auto lanes = static_cast<unsigned>(std::min<int64_t>(elements, 2 * native_bytes_ / size_of(to)));
  V into = address(buffer);
  Loop loop = begin_loop(elements, lanes, {});
  V value = load_number(tile.dtype, to, element_address(tile.dtype, tile.address, loop.iv), lanes);
  store_number(to, element_address(to, into, loop.iv), value);
  end_loop(loop, {});
  tile.address = into;
  tile.dtype = to;
  return buffer;
}

Buffer Lowering::accumulate_in_place(const ir::Op& op) {
  const ir::Value *c = op.operand(2), *result = op.result();
  Scope& scope = scopes_.back();
  auto own = std::find(scope.buffers.begin(), scope.buffers.end(), c);
  const bool is_own = own != scope.buffers.end();
  bool is_carried = false;
  if (c->block)
    for (const ir::Op* inner : *c->block) is_carried |= inner == &op;
  needed_.clear();
  if (!(is_own || is_carried) || needed(c)) return keep_buffer(result);
  Buffer buffer = buffers_.at(c);
  buffers_.erase(c);
  buffers_[result] = buffer;
  if (is_own)
    *own = result;
  else
    scope.borrowed.push_back(result);
  return buffer;
}

template <>
Status Lowering::run<OpKind::kDot>(const ir::Op& op) {
  entry_->addFnAttr(kProductsAttribute);
  flush();
  hold_ = true;
  Product p;
  auto operand = [&](int i) {
    ProductOperand x{op.operand(i)};
    while (!is_stored(x.tile) && x.tile->op && x.tile->op->kind == OpKind::kTrans && swaps_last_two(*x.tile->op)) {
      x.tile = x.tile->op->operand(0);
      x.transposed = !x.transposed;
    }
    x.dtype = x.tile->type.dtype;
    keep(x.tile);
    return x;
  };
  p.a = operand(0);
  p.b = operand(1);
  const ir::Value *c = op.operand(2), *result = op.result();
  const ir::Shape &shape = result->type.shape, &left = op.operand(0)->type.shape;
  p.c = result->type.scalar();
  p.computed = computed_with(op.operand(0)->type, p.c);
  p.exact_integers = p.c.is_int() && p.computed != p.c.dtype;
  p.m = shape[shape.rank - 2];
  p.n = shape[shape.rank - 1];
  p.k = left[left.rank - 1];
  p.batch = shape.numel() / (p.m * p.n);
  // Between passes a narrower c would round.
  const bool rounds = p.c.is_float() && p.c.dtype != p.computed;
  p.depth = rounds ? p.k : std::min(p.k, kDeepestPass);
  choose_block(p, native_bytes_);
  p.from_zero = is_zero(c) && !is_stored(c) && p.depth == p.k;

  done_.insert(&op);
  Buffer before, into;
  if (is_stored(c)) {
    before = buffers_.at(c);
    const bool reads_c = c == p.a.tile || c == p.b.tile;
    into = reads_c ? keep_buffer(result) : accumulate_in_place(op);
  } else {
    before = into = keep_buffer(result);
    const ir::Value* needs[] = {c};
    if (!p.from_zero) add_root({Root::Kind::kKeep, nullptr, c, into}, needs, c->type.shape);
    flush();
  }
  p.c_out = address(into);
  p.c_in = before.offset == into.offset ? p.c_out : address(before);
  p.a.address = address(buffers_.at(p.a.tile));
  p.b.address = address(buffers_.at(p.b.tile));
  std::vector<Buffer> temporary;
  if (p.a.dtype != p.computed) temporary.push_back(convert_tile(p.a, p.computed));
  const bool one_panel = p.columns() == p.n;
  p.packs = p.b.transposed || p.b.dtype != p.computed || (!one_panel && p.m >= kFewRows);
  p.b_step = p.packs ? p.columns() : p.n;
  if (p.packs) temporary.push_back(p.panel = allocate(p.depth * p.columns() * size_of(p.computed)));
  emit_product(p);
  for (Buffer buffer : temporary) release(buffer);
  hold_ = false;
  release_unneeded();
  return {};
}

void Lowering::emit_product(const Product& whole) {
  auto number = [&](int64_t v) { return b.getInt32(static_cast<uint32_t>(v)); };
  auto times = [&](V v, int64_t factor) { return b.CreateMul(v, number(factor)); };
  Loop batch = begin_loop(whole.batch, 1, {});
  Product p = whole;
  p.a.address = element_address(p.a.dtype, p.a.address, times(batch.iv, p.m * p.k));
  p.b.address = element_address(p.b.dtype, p.b.address, times(batch.iv, p.k * p.n));
  p.c_in = element_address(p.c.dtype, p.c_in, times(batch.iv, p.m * p.n));
  p.c_out = element_address(p.c.dtype, p.c_out, times(batch.iv, p.m * p.n));
  Loop pass = begin_loop(p.k, p.depth, {});
  V c_in = p.c_in == p.c_out ? p.c_in : b.CreateSelect(b.CreateICmpEQ(pass.iv, number(0)), p.c_in, p.c_out);
  Loop panel = begin_loop(p.n, p.columns(), {});
  V from_b = nullptr;
  if (p.packs) {
    from_b = address(p.panel);
    pack_panel(p, pass.iv, panel.iv);
  } else {
    from_b = element_address(p.b.dtype, p.b.address, b.CreateAdd(times(pass.iv, p.n), panel.iv));
  }
  for (const RowBlocks& blocks : row_blocks(p.m, p.most_rows)) {
    Loop loop = begin_loop(blocks.count * blocks.rows, blocks.rows, {});
    V row = b.CreateAdd(loop.iv, number(blocks.first));
    V at_a = p.a.transposed ? b.CreateAdd(times(pass.iv, p.m), row) : b.CreateAdd(times(row, p.k), pass.iv);
    V at_c = b.CreateAdd(times(row, p.n), panel.iv);
    multiply_block(p, blocks.rows, element_address(p.a.dtype, p.a.address, at_a), from_b,
                   element_address(p.c.dtype, c_in, at_c), element_address(p.c.dtype, p.c_out, at_c));
    end_loop(loop, {});
  }
  end_loop(panel, {});
  end_loop(pass, {});
  end_loop(batch, {});
}

// b[first_k …, first_column …] → the panel, rows of its columns. A transposed b is read by squares.
void Lowering::pack_panel(const Product& p, V first_k, V first_column) {
  auto number = [&](int64_t v) { return b.getInt32(static_cast<uint32_t>(v)); };
  V into = address(p.panel);
  if (!p.b.transposed) {
    const int64_t unroll = std::min(kUnroll, p.depth);
    Loop loop = begin_loop(p.depth, unroll, {});
    V from = b.CreateAdd(b.CreateMul(b.CreateAdd(first_k, loop.iv), number(p.n)), first_column);
    V source = element_address(p.b.dtype, p.b.address, from);
    V target = element_address(p.computed, into, b.CreateMul(loop.iv, number(p.columns())));
    for (int64_t u = 0; u < unroll; ++u)
      for (unsigned v = 0; v < p.vectors; ++v) {
        const int64_t column = int64_t{v} * p.lanes;
        V at = element_address(p.b.dtype, source, b.getInt64(static_cast<uint64_t>(u * p.n + column)));
        V value = load_number(p.b.dtype, p.computed, at, p.lanes);
        V to = b.getInt64(static_cast<uint64_t>(u * p.columns() + column));
        store_number(p.computed, element_address(p.computed, target, to), value);
      }
    end_loop(loop, {});
    return;
  }
  const auto side = static_cast<unsigned>(std::min<int64_t>(p.lanes, p.depth));
  Loop across = begin_loop(p.columns(), side, {});
  Loop down = begin_loop(p.depth, side, {});
  V from = b.CreateMul(b.CreateAdd(first_column, across.iv), number(p.k));
  V source = element_address(p.b.dtype, p.b.address, b.CreateAdd(from, b.CreateAdd(first_k, down.iv)));
  V to = b.CreateAdd(b.CreateMul(down.iv, number(p.columns())), across.iv);
  V target = element_address(p.computed, into, to);
  std::vector<V> square;
  for (unsigned i = 0; i < side; ++i) {
    V at = element_address(p.b.dtype, source, b.getInt64(static_cast<uint64_t>(i * p.k)));
    square.push_back(load_number(p.b.dtype, p.computed, at, side));
  }
  transpose(b, square);
  for (unsigned i = 0; i < side; ++i)
    store_number(p.computed, element_address(p.computed, target, b.getInt64(static_cast<uint64_t>(i * p.columns()))),
                 square[i]);
  end_loop(down, {});
  end_loop(across, {});
}

// The inner loop: `rows` x p.vectors accumulators. Addresses are of the block's first elements.
void Lowering::multiply_block(const Product& p, int64_t rows, V a, V from_b, V c_in, V c_out) {
  const ir::Type computed = ir::scalar_type(p.computed);
  llvm::Type* vector = lanes_of(element(computed), p.lanes);
  auto constant = [&](int64_t v) { return b.getInt64(static_cast<uint64_t>(v)); };
  auto c_at = [&](V base, int64_t row, unsigned v) {
    return element_address(p.c.dtype, base, constant(row * p.n + int64_t{v} * p.lanes));
  };
  const bool starts_at_zero = p.from_zero || p.exact_integers;
  std::vector<V> carried;
  for (int64_t r = 0; r < rows; ++r)
    for (unsigned v = 0; v < p.vectors; ++v)
      carried.push_back(starts_at_zero ? llvm::Constant::getNullValue(vector)
                                       : load_number(p.c.dtype, p.computed, c_at(c_in, r, v), p.lanes));
  carried.push_back(a);
  carried.push_back(from_b);

  const int64_t unroll = std::min(kUnroll, p.depth);
  const int64_t a_row = p.a.transposed ? 1 : p.k, a_step = p.a.transposed ? p.m : 1;
  Loop loop = begin_loop(p.depth, unroll, carried);
  std::vector<V> sums(loop.carried.begin(), loop.carried.end() - 2);
  V at_a = loop.carried[sums.size()], at_b = loop.carried[sums.size() + 1];
  for (int64_t u = 0; u < unroll; ++u) {
    std::vector<V> right;
    for (unsigned v = 0; v < p.vectors; ++v) {
      V at = element_address(p.computed, at_b, constant(u * p.b_step + int64_t{v} * p.lanes));
      right.push_back(load_number(p.computed, p.computed, at, p.lanes));
    }
    for (int64_t r = 0; r < rows; ++r) {
      V at = element_address(p.computed, at_a, constant(r * a_row + u * a_step));
      V left = load_number(p.computed, p.computed, at, 1);
      if (p.lanes > 1) left = b.CreateVectorSplat(p.lanes, left);
      for (unsigned v = 0; v < p.vectors; ++v) {
        V& sum = sums[static_cast<size_t>(r) * p.vectors + v];
        if (computed.is_int())
          sum = b.CreateAdd(sum, b.CreateMul(left, right[v]));
        else if (cpu().fma)
          sum = b.CreateIntrinsic(llvm::Intrinsic::fma, {vector}, {left, right[v], sum});
        else
          sum = b.CreateFAdd(sum, b.CreateFMul(left, right[v]));
      }
    }
  }
  std::vector<V> next = sums;
  next.push_back(element_address(p.computed, at_a, constant(unroll * a_step)));
  next.push_back(element_address(p.computed, at_b, constant(unroll * p.b_step)));
  end_loop(loop, next);

  for (int64_t r = 0; r < rows; ++r)
    for (unsigned v = 0; v < p.vectors; ++v) {
      V sum = loop.carried[static_cast<size_t>(r) * p.vectors + v];
      if (p.exact_integers) {
        sum = b.CreateFPToSI(sum, lanes_of(b.getInt32Ty(), p.lanes));
        if (!p.from_zero) sum = b.CreateAdd(sum, load_number(p.c.dtype, p.c.dtype, c_at(c_in, r, v), p.lanes));
      } else if (p.c.dtype != p.computed) {
        sum = convert_number(b, sum, p.computed, p.c.dtype, false, target_);
      }
      store_number(p.c.dtype, c_at(c_out, r, v), sum);
    }
}

}  // namespace kiln::lower::host
