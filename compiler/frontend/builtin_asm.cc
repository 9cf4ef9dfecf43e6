// tl.inline_asm_elementwise.
#include <fmt/format.h>

#include "compiler/frontend/builtin_impl.h"
#include "compiler/ir/inline_asm.h"

namespace kiln::frontend::impl {

using ir::AttrName;
using ir::OpKind;

namespace {

std::vector<Value> items_of(const Value& v) { return v.as_tuple() ? v.as_tuple()->items : std::vector<Value>{v}; }

/// The arguments as tensors of one shape; their types stay as they are.
Result<std::vector<ir::Value*>> asm_inputs(Codegen& g, const BoundArgs& a) {
  std::vector<ir::Value*> out;
  for (const Value& item : items_of(a[2])) {
    KILN_TRY(ir::Value * v, g.tensor({item, a.at(2)}));
    out.push_back(v);
  }
  // The first ends with the shape of all, which the others then take.
  for (int round = 0; round < 2; ++round)
    for (ir::Value*& v : out) {
      KILN_TRY(Codegen::Pair both, g.broadcast_pair(out[0], v, a.at(2)));
      v = both.b;
      out[0] = both.a;
    }
  return out;
}

/// An address comes in a register of 64 bits. Code that has no use for it writes `=r` for its result all the same: then
/// it is the lower half.
DType integer_of_address(const std::vector<char>& letters, size_t next) {
  return next < letters.size() && ir::asm_register_bits(letters[next]) == 32 ? DType::kU32 : DType::kU64;
}

}  // namespace

// Pure assembly is one op for each result: the lowering gives each the same instructions, which LLVM makes one of.
Result<Value> inline_asm(Codegen& g, const BoundArgs& a) {
  KILN_TRY(std::string text, g.const_text(a, 0));
  KILN_TRY(std::string constraints, g.const_text(a, 1));
  KILN_TRY(std::vector<ir::Value*> inputs, asm_inputs(g, a));
  KILN_TRY(bool pure, g.const_bool(a, 4));
  KILN_TRY(ast::Int pack, g.const_int(a, 5));
  // What has no arguments reads a register of the machine.
  const bool in_place = !pure || inputs.empty();
  const ir::Shape shape = inputs.empty() ? ir::Shape() : inputs[0]->type.shape;
  if (pack < 1 || pack > 32 || (pack & (pack - 1)) != 0)
    return g.fail(a.at(5), ErrorKind::kValue, "pack is a power of two up to 32, got {}", static_cast<int64_t>(pack));
  std::vector<ir::Type> declared, outputs, types;
  std::string names;
  for (const ir::Value* v : inputs) types.push_back(v->type.scalar());
  std::string wrong;
  const std::vector<char> letters = ir::match_asm(constraints, {}, types, static_cast<int>(pack), &wrong).outputs;
  size_t next = 0;  // register
  for (const Value& item : items_of(a[3])) {
    const TypeValue* t = item.type();
    if (!t) return g.not_constexpr(a, 3, item, "a dtype such as tl.float32");
    declared.push_back(t->type.scalar());
    ir::Type output = t->type.scalar();
    if (output.pointer) output = ir::scalar_type(integer_of_address(letters, next));
    next += static_cast<size_t>(pack / ir::elements_per_register(output, static_cast<int>(pack)));
    outputs.push_back(output);
    names += fmt::format("{}{}", names.empty() ? "" : " ", name(output.dtype));
  }
  wrong.clear();
  ir::match_asm(constraints, outputs, types, static_cast<int>(pack), &wrong);
  if (!wrong.empty()) return g.fail(a.at(1), ErrorKind::kValue, "{}", wrong);
  std::vector<ir::Type> results;
  for (const ir::Type& t : outputs) results.push_back(t.with_shape(shape));
  using Attributes = std::vector<std::pair<AttrName, ir::Attr>>;
  const Attributes shared = {{AttrName::kText, text},
                             {AttrName::kConstraints, constraints},
                             {AttrName::kOutputs, names},
                             {AttrName::kPack, static_cast<int64_t>(pack)}};
  std::vector<Value> out;
  if (in_place) {
    for (ir::Value* v : g.b.create(OpKind::kAsmEffect, inputs, results, shared)->results) out.push_back(Value(v));
  } else {
    for (size_t i = 0; i < results.size(); ++i) {
      Attributes own = shared;
      own.insert(own.end() - 1, {AttrName::kOutput, static_cast<int64_t>(i)});
      out.push_back(Value(g.b.create(OpKind::kInlineAsm, inputs, std::span(&results[i], 1), own)->result()));
    }
  }
  for (size_t i = 0; i < out.size(); ++i) {
    if (!declared[i].pointer) continue;
    KILN_TRY(ir::Value * address, g.cast(out[i].tensor(), declared[i], a.at(3)));
    out[i] = Value(address);
  }
  return a[3].as_tuple() ? Value::tuple(std::move(out)) : out[0];
}

}  // namespace kiln::frontend::impl
