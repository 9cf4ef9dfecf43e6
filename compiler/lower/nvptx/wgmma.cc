// wgmma: a product of a warp group as instructions m64nNk32B over slices of its operands. Accumulators are tied
// operands of inline assembly, so that each instruction and the wait that ends it redefine the registers.
#include <fmt/format.h>
#include <llvm/IR/InlineAsm.h>
#include <llvm/IR/IntrinsicsNVPTX.h>

#include <algorithm>
#include <bit>
#include <iterator>
#include <unordered_map>

#include "compiler/layout/algebra.h"
#include "compiler/layout/shared_forms.h"
#include "compiler/lower/nvptx/lowering.h"
#include "support/diag.h"

namespace kiln::lower {

using ir::AttrName;
using layout::Coord;
using layout::In;
using layout::LinearLayout;
using llvm::Value;

namespace {

constexpr int kRows = 64, kMaxColumns = 256, kDepthBytes = 32, kGroupWarpBits = 2, kOperandWords = 4;

Diagnostic unsupported(const ir::Op& op, std::string_view what, const LinearLayout& layout) {
  return with_note(error_at(op.range, ErrorKind::kUnsupported, "wgmma does not take {}", what),
                   "the layout is " + layout::to_string(layout));
}

bool starts_with(std::span<const Coord> bases, std::initializer_list<Coord> wanted) {
  return bases.size() >= wanted.size() && std::equal(wanted.begin(), wanted.end(), bases.begin());
}

/// How an accumulator's registers fall into instructions: the low bits are one instruction's registers, each
/// combination of the others is another slice of the tile.
struct AccumulatorForm {
  int columns = 8;             // N of the instruction
  int registers = 4;           // of one instruction
  std::vector<Coord> slices;   // first element of each
  std::vector<Coord> by_warp;  // what bits 2… of the warp add to it
};

std::optional<AccumulatorForm> accumulator_form(const LinearLayout& l) {
  const auto reg = l.bases(In::kRegister), warp = l.bases(In::kWarp);
  if (!starts_with(reg, {Coord{{0, 1}}, Coord{{8, 0}}}) || !starts_with(warp, {Coord{{16, 0}}, Coord{{32, 0}}}) ||
      !starts_with(l.bases(In::kLane), {Coord{{0, 2}}, Coord{{0, 4}}, Coord{{1, 0}}, Coord{{2, 0}}, Coord{{4, 0}}}))
    return std::nullopt;
  AccumulatorForm form;
  size_t bit = 2;
  for (; bit < reg.size() && form.columns < kMaxColumns && reg[bit] == Coord{{0, form.columns}}; ++bit)
    form.columns *= 2;
  form.registers = form.columns / 2;
  auto whole = [&](const Coord& c) { return c[0] % kRows == 0 && c[1] % form.columns == 0; };
  for (uint32_t slice = 0; slice < 1u << (reg.size() - bit); ++slice)
    form.slices.push_back(l.apply(In::kRegister, slice << bit));
  form.by_warp.assign(warp.begin() + kGroupWarpBits, warp.end());
  if (!std::all_of(form.slices.begin(), form.slices.end(), whole) ||
      !std::all_of(form.by_warp.begin(), form.by_warp.end(), whole))
    return std::nullopt;
  return form;
}

/// The registers of an operand a[M, K] that one instruction takes: four words.
class RegisterOperand {
 public:
  static std::optional<RegisterOperand> of(const LinearLayout& l, const AccumulatorForm& form, int bytes) {
    const int packed = 4 / bytes;
    RegisterOperand a;
    a.packed_ = packed;
    const auto warp = l.bases(In::kWarp);
    if (!starts_with(l.bases(In::kLane),
                     {Coord{{0, packed}}, Coord{{0, 2 * packed}}, Coord{{1, 0}}, Coord{{2, 0}}, Coord{{4, 0}}}) ||
        !starts_with(warp, {Coord{{16, 0}}, Coord{{32, 0}}}))
      return std::nullopt;
    for (size_t i = 0; i < form.by_warp.size(); ++i)
      if (warp[kGroupWarpBits + i] != Coord{{form.by_warp[i][0], 0}}) return std::nullopt;
    for (int r = l.num_registers() - 1; r >= 0; --r) {
      const Coord c = l.apply(In::kRegister, static_cast<uint32_t>(r));
      a.at_[key(c[0], c[1])] = static_cast<size_t>(r);
    }
    return a;
  }

  std::vector<Value*> words(llvm::IRBuilderBase& b, const Registers& registers, int row, int k) const {
    std::vector<Value*> words;
    for (int word = 0; word < kOperandWords; ++word) {
      std::vector<Value*> parts;
      for (int i = 0; i < packed_; ++i)
        parts.push_back(registers[at_.at(key(row + 8 * (word & 1), k + 4 * packed_ * (word >> 1) + i))]);
      Value* v = parts[0];
      if (packed_ > 1) {
        v = llvm::PoisonValue::get(llvm::FixedVectorType::get(parts[0]->getType(), static_cast<unsigned>(packed_)));
        for (size_t i = 0; i < parts.size(); ++i) v = b.CreateInsertElement(v, parts[i], i);
      }
      words.push_back(b.CreateBitCast(v, b.getInt32Ty()));
    }
    return words;
  }

 private:
  static int64_t key(int row, int k) { return int64_t{row} << 32 | k; }
  int packed_ = 1;
  std::unordered_map<int64_t, size_t> at_;
};

/// Registers as assembly takes them: f32 and i32 as they are, f16 in pairs.
using Words = std::vector<Value*>;

Words to_words(llvm::IRBuilderBase& b, std::span<Value* const> registers) {
  if (registers[0]->getType()->getScalarSizeInBits() == 32) return {registers.begin(), registers.end()};
  Words words;
  for (size_t i = 0; i < registers.size(); i += 2) {
    Value* pair = llvm::PoisonValue::get(llvm::FixedVectorType::get(registers[0]->getType(), 2));
    pair = b.CreateInsertElement(pair, registers[i], uint64_t{0});
    words.push_back(b.CreateBitCast(b.CreateInsertElement(pair, registers[i + 1], uint64_t{1}), b.getInt32Ty()));
  }
  return words;
}

void from_words(llvm::IRBuilderBase& b, std::span<Value* const> words, std::span<Value*> registers) {
  if (words.size() == registers.size()) {
    std::copy(words.begin(), words.end(), registers.begin());
    return;
  }
  auto* pair = llvm::FixedVectorType::get(registers[0]->getType(), 2);
  for (size_t i = 0; i < words.size(); ++i) {
    Value* v = b.CreateBitCast(words[i], pair);
    registers[2 * i] = b.CreateExtractElement(v, uint64_t{0});
    registers[2 * i + 1] = b.CreateExtractElement(v, uint64_t{1});
  }
}

/// Runs `text` with `tied` as operands $0… that it writes and, if it `reads` them, begins with, which takes as many
/// operands again, and `inputs` behind them; gives what it wrote. The
/// first instruction writes before the last one has read: no input may share a register with one of `tied`, not even
/// where both start as the same zero.
Words tied_asm(llvm::IRBuilderBase& b, const std::string& text, const Words& tied, std::span<Value* const> inputs,
               bool reads = true) {
  std::string constraints;
  std::vector<llvm::Type*> results, types;
  Words args;
  for (Value* v : tied) {
    constraints += fmt::format("{}=&{}", constraints.empty() ? "" : ",", v->getType()->isFloatTy() ? 'f' : 'r');
    results.push_back(v->getType());
  }
  for (size_t i = 0; reads && i < tied.size(); ++i) {
    constraints += fmt::format(",{}", i);
    args.push_back(tied[i]);
  }
  for (Value* v : inputs) {
    constraints += v->getType()->isIntegerTy(64) ? ",l" : ",r";
    args.push_back(v);
  }
  for (Value* v : args) types.push_back(v->getType());
  llvm::Type* result = results.size() == 1 ? results[0] : llvm::StructType::get(b.getContext(), results);
  auto* type = llvm::FunctionType::get(result, types, false);
  llvm::CallInst* call = b.CreateCall(type, llvm::InlineAsm::get(type, text, constraints, true), args);
  call->setConvergent();
  call->setDoesNotThrow();
  Words out;
  for (unsigned i = 0; i < results.size(); ++i)
    out.push_back(results.size() == 1 ? static_cast<Value*>(call) : b.CreateExtractValue(call, i));
  return out;
}

/// The instruction's name for an element type; empty where it has none.
std::string_view ptx_element(DType t) {
  switch (t) {
    case DType::kF16:
      return "f16";
    case DType::kBF16:
      return "bf16";
    case DType::kF32:
      return "tf32";
    case DType::kF8E4M3:
      return "e4m3";
    case DType::kF8E5M2:
      return "e5m2";
    case DType::kI8:
      return "s8";
    case DType::kU8:
      return "u8";
    case DType::kI1:
    case DType::kI16:
    case DType::kI32:
    case DType::kI64:
    case DType::kU16:
    case DType::kU32:
    case DType::kU64:
    case DType::kF64:
    case DType::kF8E4B15:
      return "";
  }
  KILN_UNREACHABLE("element type");
}

/// Accumulators: f32 for all floats, f16 for those of 8 bits and itself, i32 for integers.
std::string_view ptx_accumulator(DType operand, DType accumulator) {
  if (is_int(operand)) return accumulator == DType::kI32 ? "s32" : "";
  if (accumulator == DType::kF32) return "f32";
  return accumulator == DType::kF16 && (operand == DType::kF16 || is_fp8(operand)) ? "f16" : "";
}

/// Descriptors of the slices of an operand in shared memory, from one word, in the assembly that they are for. As
/// values of LLVM IR those of a buffer that stays would be moved out of loops: two registers for each slice of each
/// operand, where the assembler adds a constant in uniform registers.
class Descriptors {
 public:
  /// `by_warp`: the address that bits 2… of the warp add.
  Descriptors(Lowering& l, Value* handle, const layout::WgmmaMatrix& m, std::vector<uint32_t> by_warp) : m_(m) {
    llvm::IRBuilder<>& b = l.b;
    by_warp.insert(by_warp.begin(), kGroupWarpBits, 0);
    Value* tile = b.CreateAdd(handle, l.thread.uniform_share(by_warp));
    Value* address = b.CreateAdd(b.CreatePtrToInt(l.shared_memory(), b.getInt32Ty()), tile);
    // In a cluster the upper bits hold the CTA's rank.
    low_ = b.CreateAnd(b.CreateLShr(address, 4), 0x3fff);
    low_ = b.CreateOr(low_, b.getInt32(m.leading >> 4 << 16), "", /*IsDisjoint=*/true);
    const uint32_t mode = m.swizzle == 128 ? 1 : m.swizzle == 64 ? 2 : m.swizzle == 32 ? 3 : 0;
    high_ = m.stride >> 4 | mode << 30;
  }

  /// The low word of the first slice, which the assembly takes as its operand number `number`.
  Value* low() const { return low_; }
  /// Assembly that makes the register `name` a slice's.
  std::string make(std::string_view name, size_t number, int own, int k) const {
    const uint32_t step = m_.at(static_cast<uint32_t>(own), static_cast<uint32_t>(k)) >> 4;
    return fmt::format("\tadd.s32 low, ${}, {};\n\tmov.b64 {}, {{low, {}}};\n", number, step, name,
                       static_cast<int32_t>(high_));
  }

 private:
  layout::WgmmaMatrix m_;
  Value* low_ = nullptr;
  uint32_t high_ = 0;
};

}  // namespace

template <>
Status lower<ir::OpKind::kWgmma>(Lowering& l, const ir::Op& op) {
  llvm::IRBuilder<>& b = l.b;
  const ir::Type &a_type = op.operand(0)->type, &b_type = op.operand(1)->type, &c_type = op.result()->type;
  const int bytes = size_of(a_type.dtype), depth = kDepthBytes / bytes;
  const std::string_view accumulator = ptx_accumulator(a_type.dtype, c_type.dtype);
  if (ptx_element(a_type.dtype).empty() || accumulator.empty())
    return error_at(op.range, ErrorKind::kUnsupported, "wgmma has no product of {} and {} in {}", ir::to_string(a_type),
                    ir::to_string(b_type), ir::to_string(c_type));
  const auto form = accumulator_form(*c_type.layout);
  if (!form) return unsupported(op, "this accumulator", *c_type.layout);
  const auto of_b = layout::plan_wgmma_matrix(*b_type.layout, 0, form->columns, bytes);
  if (!of_b) return unsupported(op, "this second operand", *b_type.layout);

  std::vector<uint32_t> rows_by_warp, columns_by_warp;
  const bool a_in_shared = !a_type.is_tile();
  std::optional<layout::WgmmaMatrix> of_a;
  std::optional<RegisterOperand> a_registers;
  if (a_in_shared) {
    of_a = layout::plan_wgmma_matrix(*a_type.layout, 1, kRows, bytes);
    if (!of_a) return unsupported(op, "this first operand", *a_type.layout);
  } else {
    a_registers = RegisterOperand::of(*a_type.layout, *form, bytes);
    if (!a_registers) return unsupported(op, "this first operand", *a_type.layout);
  }
  for (const Coord& c : form->by_warp) {
    rows_by_warp.push_back(of_a ? of_a->at(static_cast<uint32_t>(c[0]), 0) : 0);
    columns_by_warp.push_back(of_b->at(static_cast<uint32_t>(c[1]), 0));
  }
  std::optional<Descriptors> a_descriptors;
  if (of_a) a_descriptors.emplace(l, l.of(op.operand(0))[0], *of_a, rows_by_warp);
  const Descriptors b_descriptors(l, l.of(op.operand(1))[0], *of_b, columns_by_warp);

  // Behind "scale-d", 1 to add to the accumulator: floats may be negated (1: not), 16-bit operands transposed.
  std::string flags;
  if (is_float(a_type.dtype)) flags += ", 1, 1";
  if (bytes == 2)
    flags += fmt::format("{}, {}", of_a ? fmt::format(", {}", int{of_a->transposed}) : "", int{of_b->transposed});
  auto opcode = [&](int columns) {
    return fmt::format("wgmma.mma_async.sync.aligned.m{}n{}k{}.{}.{}.{}", kRows, columns, depth, accumulator,
                       ptx_element(a_type.dtype), ptx_element(b_type.dtype));
  };
  // Columns that nobody reads are left out where warp groups do not share them: no instruction differs from warp to
  // warp.
  const bool share_columns = std::ranges::any_of(form->by_warp, [](const Coord& c) { return c[1] != 0; });
  const auto most = static_cast<int>(share_columns ? c_type.shape[1] : op.int_or(AttrName::kColumns, c_type.shape[1]));
  auto columns_of = [&](const Coord& at) { return std::clamp(most - static_cast<int>(at[1]), 0, form->columns); };

  // From the fence to the commit in one piece of assembly: what computes the registers that the instructions read
  // cannot move behind the fence, where the assembler would have to fence again (C7519), and LLVM moves each register
  // through one operand rather than through one for each instruction.
  const Registers& all = l.of(op.operand(2));
  Registers addend;
  for (size_t i = 0; i < form->slices.size(); ++i) {
    const auto first = all.begin() + static_cast<std::ptrdiff_t>(i) * form->registers;
    addend.insert(addend.end(), first, first + columns_of(form->slices[i]) / 2);
  }
  // What is added to zero need not be zero: the first instruction of a slice leaves it out.
  const bool adds = !std::ranges::all_of(addend, [](const Value* v) {
    const auto* c = llvm::dyn_cast<llvm::Constant>(v);
    return c && c->isNullValue();
  });
  const Words sums = to_words(b, addend);
  const size_t num_outputs = (adds ? 2 : 1) * sums.size();
  const size_t registers_of_word = addend.size() / sums.size();
  Words inputs;
  auto input = [&](Value* v) { return inputs.push_back(v), num_outputs + inputs.size() - 1; };
  const size_t a_low = a_in_shared ? input(a_descriptors->low()) : 0, b_low = input(b_descriptors.low());
  std::string text = "{\n\t.reg .b32 low;\n\t.reg .b64 a, b;\n\twgmma.fence.sync.aligned;\n";
  for (int k = 0; k < op.int_or(AttrName::kDepth, a_type.shape[1]); k += depth) {
    size_t first_sum = 0;
    for (const Coord& at : form->slices) {
      const int columns = columns_of(at);
      if (columns == 0) continue;
      const size_t count = static_cast<size_t>(columns) / 2 / registers_of_word;
      std::string first = "a";
      if (a_in_shared) {
        text += a_descriptors->make(first, a_low, at[0], k);
      } else {
        const size_t first_word = num_outputs + inputs.size();
        for (Value* word : a_registers->words(b, l.of(op.operand(0)), at[0], k)) input(word);
        first = operand_list(first_word, kOperandWords);
      }
      text += b_descriptors.make("b", b_low, at[1], k);
      text += fmt::format("\t{} {}, {}, b, {}{};\n", opcode(columns), operand_list(first_sum, count), first,
                          int{adds || k > 0}, flags);
      first_sum += count;
    }
  }
  const Words added = tied_asm(b, text + "\twgmma.commit_group.sync.aligned;\n\t}", sums, inputs, adds);
  from_words(b, added, addend);
  // The others are anything.
  Registers out(all.size(), llvm::PoisonValue::get(all[0]->getType()));
  auto made = addend.begin();
  for (size_t i = 0; i < form->slices.size(); ++i) {
    const int count = columns_of(form->slices[i]) / 2;
    std::copy_n(made, count, out.begin() + static_cast<std::ptrdiff_t>(i) * form->registers);
    made += count;
  }
  l.values[op.result()] = std::move(out);
  return {};
}

template <>
Status lower<ir::OpKind::kWgmmaWait>(Lowering& l, const ir::Op& op) {
  llvm::IRBuilder<>& b = l.b;
  const std::string text = fmt::format("wgmma.wait_group.sync.aligned {};", op.int_attr(AttrName::kCount));
  if (op.operands.empty()) {
    b.CreateIntrinsic(llvm::Intrinsic::nvvm_wgmma_wait_group_sync_aligned,
                      {b.getInt64(static_cast<uint64_t>(op.int_attr(AttrName::kCount)))});
    return {};
  }
  // The wait hands on what was in flight: nothing that uses it can move before.
  Words all;
  std::vector<Registers> made;  // of each operand, without columns that nobody reads
  for (const ir::Value* v : op.operands) {
    if (v->type.element_bits() != 32 && v->type.dtype != DType::kF16)
      return error_at(op.range, ErrorKind::kUnsupported, "wgmma_wait of {}", ir::to_string(v->type));
    Registers& registers = made.emplace_back();
    std::ranges::copy_if(l.of(v), std::back_inserter(registers),
                         [](const Value* r) { return !llvm::isa<llvm::PoisonValue>(r); });
    const Words words = to_words(b, registers);
    all.insert(all.end(), words.begin(), words.end());
  }
  all = tied_asm(b, text, all, {});
  size_t next = 0;
  for (size_t i = 0; i < op.operands.size(); ++i) {
    const size_t n = made[i].size() * static_cast<size_t>(op.operands[i]->type.element_bits()) / 32;
    from_words(b, std::span(all).subspan(next, n), made[i]);
    next += n;
    Registers registers = l.of(op.operands[i]);
    auto value = made[i].begin();
    for (Value*& r : registers)
      if (!llvm::isa<llvm::PoisonValue>(r)) r = *value++;
    l.values[op.results[i]] = std::move(registers);
  }
  return {};
}

}  // namespace kiln::lower
