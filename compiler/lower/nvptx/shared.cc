// Tiles between registers and shared memory: ldmatrix and stmatrix where the layouts factor, else vectors of up to 16
// bytes.
#include <llvm/IR/IntrinsicsNVPTX.h>

#include <bit>
#include <unordered_map>

#include "compiler/layout/algebra.h"
#include "compiler/layout/convert_plan.h"
#include "compiler/layout/shared_forms.h"
#include "compiler/lower/nvptx/intrinsics.h"
#include "compiler/lower/nvptx/lowering.h"
#include "support/diag.h"

namespace kiln::lower {

using layout::XorMap;
using llvm::Value;

Value* place_of(Lowering& l, Value* handle, const XorMap& map, uint32_t r, uint32_t scale) {
  const uint32_t constant = map.of_register(r), varying = map.thread_bits();
  Value* number = join_share(l.b, l.thread.share(map), varying, constant & varying);
  Value* offset = l.b.CreateAdd(handle, l.b.CreateMul(number, l.b.getInt32(scale), "", true, true), "", true, true);
  return l.shared(offset, static_cast<int64_t>(constant & ~varying) * scale);
}

namespace {

/// Matrices move 16 bytes a lane; where vectors do too, they need no other lane's address.
std::optional<layout::MatrixAccess> matrices(Lowering& l, const ir::Type& tile, const layout::LinearLayout& shared,
                                             const layout::SharedAccess& vectors, target::Feature feature) {
  const int bytes = element_bytes(tile);
  if (!l.target.has(feature) || tile.dtype == DType::kI1 || vectors.vector * bytes >= 16) return std::nullopt;
  return layout::plan_matrix_access(*tile.layout, shared, bytes);
}

Value* join_word(llvm::IRBuilderBase& b, std::span<Value* const> parts) {
  Value* v = parts[0];
  if (parts.size() > 1) {
    v = llvm::PoisonValue::get(llvm::FixedVectorType::get(parts[0]->getType(), static_cast<unsigned>(parts.size())));
    for (size_t i = 0; i < parts.size(); ++i) v = b.CreateInsertElement(v, parts[i], i);
  }
  return b.CreateBitCast(v, b.getInt32Ty());
}

/// log2 of the number of matrices is the first index.
constexpr llvm::Intrinsic::ID kLdMatrix[3][2] = {{llvm::Intrinsic::nvvm_ldmatrix_sync_aligned_m8n8_x1_b16,
                                                  llvm::Intrinsic::nvvm_ldmatrix_sync_aligned_m8n8_x1_trans_b16},
                                                 {llvm::Intrinsic::nvvm_ldmatrix_sync_aligned_m8n8_x2_b16,
                                                  llvm::Intrinsic::nvvm_ldmatrix_sync_aligned_m8n8_x2_trans_b16},
                                                 {llvm::Intrinsic::nvvm_ldmatrix_sync_aligned_m8n8_x4_b16,
                                                  llvm::Intrinsic::nvvm_ldmatrix_sync_aligned_m8n8_x4_trans_b16}};

void store_matrices(Lowering& l, Value* handle, const Registers& from, const layout::MatrixAccess& access) {
  for (const std::vector<int>& group : access.groups) {
    Value* address = place_of(l, handle, access.address, static_cast<uint32_t>(group[0]), 1);
    std::vector<Value*> words, parts;
    for (int r : group) parts.push_back(from[static_cast<size_t>(r)]);
    const size_t per_word = group.size() / static_cast<size_t>(access.matrices);
    for (size_t at = 0; at < parts.size(); at += per_word)
      words.push_back(join_word(l.b, std::span(parts).subspan(at, per_word)));
    stmatrix(l.b, address, words, access.transposed);
  }
}

void load_matrices(Lowering& l, Value* handle, Registers& to, llvm::Type* element, const layout::MatrixAccess& access) {
  llvm::IRBuilder<>& b = l.b;
  const llvm::Intrinsic::ID id = kLdMatrix[std::countr_zero(static_cast<unsigned>(access.matrices))][access.transposed];
  for (const std::vector<int>& group : access.groups) {
    Value* address = place_of(l, handle, access.address, static_cast<uint32_t>(group[0]), 1);
    Value* words = b.CreateIntrinsic(id, {address->getType()}, {address});
    const size_t per_word = group.size() / static_cast<size_t>(access.matrices);
    for (size_t i = 0; i < group.size(); i += per_word) {
      Value* word = access.matrices == 1 ? words : b.CreateExtractValue(words, static_cast<unsigned>(i / per_word));
      if (per_word == 1) {
        to[static_cast<size_t>(group[i])] = b.CreateBitCast(word, element);
        continue;
      }
      Value* v = b.CreateBitCast(word, llvm::FixedVectorType::get(element, static_cast<unsigned>(per_word)));
      for (size_t k = 0; k < per_word; ++k) to[static_cast<size_t>(group[i + k])] = b.CreateExtractElement(v, k);
    }
  }
}

}  // namespace

void write_shared(Lowering& l, Value* handle, const Registers& from, const ir::Type& tile,
                  const layout::LinearLayout& shared, const layout::SharedAccess& access) {
  llvm::IRBuilder<>& b = l.b;
  const int bytes = element_bytes(tile);
  if (auto plan = matrices(l, tile, shared, access, target::kStMatrix)) return store_matrices(l, handle, from, *plan);
  l.when(l.thread.is_zero(access.lane_mask, access.warp_mask), [&] {
    for (const std::vector<int>& group : access.groups) {
      Value* v = to_memory(b, from[static_cast<size_t>(group[0])]);
      if (group.size() > 1) {
        llvm::Type* element = v->getType();
        v = llvm::PoisonValue::get(llvm::FixedVectorType::get(element, static_cast<unsigned>(group.size())));
        for (size_t i = 0; i < group.size(); ++i)
          v = b.CreateInsertElement(v, to_memory(b, from[static_cast<size_t>(group[i])]), i);
      }
      b.CreateAlignedStore(
          v, place_of(l, handle, access.offset, static_cast<uint32_t>(group[0]), static_cast<uint32_t>(bytes)),
          llvm::Align(static_cast<uint64_t>(access.vector * bytes)));
    }
  });
}

void read_group(Lowering& l, Value* handle, const ir::Type& tile, const layout::SharedAccess& access,
                const std::vector<int>& group, Registers& to) {
  llvm::IRBuilder<>& b = l.b;
  const int bytes = element_bytes(tile);
  llvm::Type *element = l.type_of(tile), *in_memory = memory_type(element);
  llvm::Type* type =
      group.size() == 1 ? in_memory : llvm::FixedVectorType::get(in_memory, static_cast<unsigned>(group.size()));
  Value* v = b.CreateAlignedLoad(
      type, place_of(l, handle, access.offset, static_cast<uint32_t>(group[0]), static_cast<uint32_t>(bytes)),
      llvm::Align(static_cast<uint64_t>(access.vector * bytes)));
  for (size_t i = 0; i < group.size(); ++i)
    to[static_cast<size_t>(group[i])] = from_memory(b, group.size() == 1 ? v : b.CreateExtractElement(v, i), element);
}

Registers read_shared(Lowering& l, Value* handle, const ir::Type& tile, const layout::LinearLayout& shared,
                      const layout::SharedAccess& access) {
  llvm::Type* element = l.type_of(tile);
  Registers to(static_cast<size_t>(num_registers(tile)));
  if (auto plan = matrices(l, tile, shared, access, target::kLdMatrix)) {
    load_matrices(l, handle, to, element, *plan);
    return to;
  }
  for (const std::vector<int>& group : access.groups) read_group(l, handle, tile, access, group, to);
  std::unordered_map<uint64_t, Value*> loaded;  // copies in registers are loaded once
  auto index = [&](size_t r) { return layout::index_at(*tile.layout, static_cast<uint32_t>(r), 0, 0); };
  for (size_t r = 0; r < to.size(); ++r)
    if (to[r]) loaded[index(r)] = to[r];
  for (size_t r = 0; r < to.size(); ++r)
    if (!to[r]) to[r] = loaded.at(index(r));
  return to;
}

template <>
Status lower<ir::OpKind::kSharedStore>(Lowering& l, const ir::Op& op) {
  const ir::Type &shared = op.operand(0)->type, &tile = op.operand(1)->type;
  write_shared(l, l.of(op.operand(0))[0], l.of(op.operand(1)), tile, *shared.layout,
               layout::plan_shared_access(*tile.layout, *shared.layout, size_of(tile.dtype)));
  return {};
}

template <>
Status lower<ir::OpKind::kSharedLoad>(Lowering& l, const ir::Op& op) {
  if (is_read_by_dot(op)) return {};
  const ir::Type &shared = op.operand(0)->type, &tile = op.result()->type;
  l.values[op.result()] = read_shared(l, l.of(op.operand(0))[0], tile, *shared.layout,
                                      layout::plan_shared_access(*tile.layout, *shared.layout, size_of(tile.dtype)));
  return {};
}

}  // namespace kiln::lower
