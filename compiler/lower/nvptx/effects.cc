// device_print and device_assert, through the vprintf and __assertfail that the driver provides.
#include <fmt/format.h>
#include <llvm/IR/IntrinsicsNVPTX.h>

#include "compiler/layout/algebra.h"
#include "compiler/lower/nvptx/lowering.h"
#include "compiler/lower/shared/float_convert.h"
#include "support/diag.h"

namespace kiln::lower {

using ir::AttrName;
using llvm::Value;

namespace {

Value* block_index(Lowering& l, int axis) {
  static constexpr llvm::Intrinsic::ID kIds[] = {llvm::Intrinsic::nvvm_read_ptx_sreg_ctaid_x,
                                                 llvm::Intrinsic::nvvm_read_ptx_sreg_ctaid_y,
                                                 llvm::Intrinsic::nvvm_read_ptx_sreg_ctaid_z};
  return l.b.CreateIntrinsic(kIds[axis], {});
}

/// A generic pointer to a zero-terminated string in constant data.
Value* text_pointer(Lowering& l, std::string_view text) {
  llvm::IRBuilder<>& b = l.b;
  llvm::Constant* data = llvm::ConstantDataArray::getString(l.context(), text, /*AddNull=*/true);
  auto* global = new llvm::GlobalVariable(l.module, data->getType(), true, llvm::GlobalValue::PrivateLinkage, data,
                                          "kiln_text", nullptr, llvm::GlobalValue::NotThreadLocal, 1);
  return b.CreateAddrSpaceCast(global, b.getPtrTy());
}

/// vprintf(format, arguments): C's promotions are done by the caller, each argument at its own alignment.
void call_vprintf(Lowering& l, const std::string& format, std::span<Value* const> args) {
  llvm::IRBuilder<>& b = l.b;
  std::vector<llvm::Type*> types;
  for (Value* a : args) types.push_back(a->getType());
  auto* buffer_type = llvm::StructType::get(l.context(), types);
  llvm::IRBuilder<> entry(&l.function->getEntryBlock(), l.function->getEntryBlock().begin());
  Value* buffer = entry.CreateAlloca(buffer_type);
  for (unsigned i = 0; i < args.size(); ++i) b.CreateStore(args[i], b.CreateStructGEP(buffer_type, buffer, i));
  llvm::FunctionCallee vprintf = l.module.getOrInsertFunction(
      "vprintf", llvm::FunctionType::get(b.getInt32Ty(), {b.getPtrTy(), b.getPtrTy()}, false));
  b.CreateCall(vprintf, {text_pointer(l, format), buffer});
}

/// Coordinates in the tile of register r in this thread.
std::vector<Value*> coordinates(Lowering& l, const layout::LinearLayout& layout, uint32_t r) {
  std::vector<Value*> out;
  for (int dim = 0; dim < layout.rank(); ++dim) {
    auto bases = [&](layout::In in) {
      std::vector<uint32_t> v;
      for (const layout::Coord& c : layout.bases(in)) v.push_back(static_cast<uint32_t>(c[dim]));
      return v;
    };
    const layout::XorMap map{bases(layout::In::kRegister), bases(layout::In::kLane), bases(layout::In::kWarp)};
    out.push_back(l.b.CreateXor(l.thread.share(map), map.of_register(r)));
  }
  return out;
}

std::string escape_percent(std::string_view text) {
  std::string s;
  for (char c : text) s += c == '%' ? "%%" : std::string(1, c);
  return s;
}

/// One operand as printf takes it: the format's part and the promoted value.
std::pair<std::string, Value*> printf_argument(Lowering& l, Value* v, const ir::Type& type, bool hex) {
  llvm::IRBuilder<>& b = l.b;
  if (type.pointer) return {"%p", b.CreatePtrToInt(v, b.getInt64Ty())};
  if (hex) {
    Value* bits = to_bits(b, v);
    const unsigned digits = std::max(1u, bits->getType()->getIntegerBitWidth() / 4);
    return {fmt::format("0x%0{}llx", digits), b.CreateZExt(bits, b.getInt64Ty())};
  }
  if (type.is_float()) return {"%f", convert_number(b, v, type.dtype, DType::kF64, false, l.target)};
  return is_signed(type.dtype) ? std::pair<std::string, Value*>{"%lld", b.CreateSExt(v, b.getInt64Ty())}
                               : std::pair<std::string, Value*>{"%llu", b.CreateZExt(v, b.getInt64Ty())};
}

}  // namespace

template <>
Status lower<ir::OpKind::kPrint>(Lowering& l, const ir::Op& op) {
  const std::string text = escape_percent(op.text_attr(AttrName::kText));
  const bool hex = op.flag(AttrName::kHex);
  const uint32_t all_warps = static_cast<uint32_t>(l.thread.num_warps() - 1);
  // Triton's lines, which programs that read them expect.
  auto line = [&](const ir::Value* v, size_t r, size_t operand) {
    std::string format = "pid (%u, %u, %u)";
    std::vector<Value*> args{block_index(l, 0), block_index(l, 1), block_index(l, 2)};
    if (v) format += " idx (";
    if (v && v->type.is_tile())
      for (int d = 0; Value * c : coordinates(l, *v->type.layout, static_cast<uint32_t>(r))) {
        const size_t digits = std::to_string(v->type.shape[d++] - 1).size();
        format += fmt::format("{}%{}u", format.back() == '(' ? "" : ", ", digits);
        args.push_back(c);
      }
    if (v) format += ")";
    format += " " + text;
    if (v) {
      if (op.operands.size() > 1) format += fmt::format("(operand {}) ", operand);
      auto [piece, value] = printf_argument(l, l.of(v)[r], v->type, hex);
      format += piece;
      args.push_back(value);
    }
    call_vprintf(l, format + "\n", args);
  };
  if (op.operands.empty())
    return l.when(l.thread.is_zero(kLanes - 1, all_warps), [&] { line(nullptr, 0, 0); }), Status{};
  for (size_t i = 0; i < op.operands.size(); ++i) {
    const ir::Value* v = op.operands[i];
    layout::FreeBits copies;
    if (v->type.is_tile())
      copies = layout::free_variables(*v->type.layout);
    else
      copies.lane = kLanes - 1, copies.warp = all_warps;
    l.when(l.thread.is_zero(copies.lane, copies.warp), [&] {
      for (size_t r = 0; r < l.of(v).size(); ++r)
        if (!(r & copies.reg)) line(v, r, i);
    });
  }
  return {};
}

template <>
Status lower<ir::OpKind::kAssert>(Lowering& l, const ir::Op& op) {
  llvm::IRBuilder<>& b = l.b;
  Value* failed = b.getFalse();
  const Registers& conditions = l.of(op.operand(0));
  for (size_t r = 0; r < conditions.size(); ++r) {
    Value* bad = b.CreateNot(conditions[r]);
    if (op.operands.size() > 1) bad = b.CreateAnd(bad, l.of(op.operand(1))[r]);
    failed = b.CreateOr(failed, bad);
  }
  const Place place = place_of(op.range);
  l.when(failed, [&] {
    llvm::Type* pointer = b.getPtrTy();
    auto* type =
        llvm::FunctionType::get(b.getVoidTy(), {pointer, pointer, b.getInt32Ty(), pointer, b.getInt64Ty()}, false);
    llvm::FunctionCallee fail = l.module.getOrInsertFunction("__assertfail", type);
    b.CreateCall(
        fail, {text_pointer(l, op.text_attr(AttrName::kText)), text_pointer(l, place.file.empty() ? "?" : place.file),
               b.getInt32(static_cast<uint32_t>(place.line)), text_pointer(l, l.source.name), b.getInt64(1)});
  });
  return {};
}

template <>
Status lower<ir::OpKind::kAssume>(Lowering& l, const ir::Op& op) {
  if (op.operand(0)->type.is_scalar()) l.b.CreateAssumption(l.of(op.operand(0))[0]);
  return {};
}

}  // namespace kiln::lower
