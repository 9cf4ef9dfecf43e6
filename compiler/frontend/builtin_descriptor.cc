// Tensor descriptors: a strided tensor in memory that is accessed in blocks. Loads and stores of whole blocks are ops
// of their own, which become TMA instructions or pointers; rows that are gathered or scattered, and atomics, are
// pointers from the start.
#include <limits>

#include "compiler/frontend/builtin_impl.h"
#include "compiler/ir/block_elements.h"
#include "support/tensor_map.h"

namespace kiln::frontend::impl {

using ir::OpKind;
using ir::Shape;
using ir::Type;

Result<std::vector<ir::Value*>> scalars_arg(Codegen& g, const BoundArgs& a, int i, DType dtype) {
  std::vector<Value> items = {a[i]};
  if (const TupleValue* list = a[i].as_tuple()) items = list->items;
  std::vector<ir::Value*> out;
  for (const Value& item : items) {
    KILN_TRY(ir::Value * v, g.tensor({item, a.at(i)}));
    if (!v->type.is_scalar() || !v->type.is_int())
      return g.fail(a.at(i), ErrorKind::kType, "{} of {} takes integer scalars, got {}", a.name(i),
                    a.builtin->display_name(), describe(item));
    KILN_TRY(v, g.cast(v, ir::scalar_type(dtype), a.at(i)));
    out.push_back(v);
  }
  return out;
}

namespace {

ir::Value* make_handle(Codegen& g, const DescriptorValue& d) {
  std::vector<ir::Value*> operands;
  for (const Value& part : d.parts)
    operands.push_back(part.tensor() ? part.tensor() : g.b.constant_int(ir::scalar_type(DType::kI64), 1));
  return g.b.create(OpKind::kMakeDescriptor, operands, std::span(&d.type, 1))->result();
}

/// The handle, made here where there is none: after a branch or in a loop that carries the descriptor.
Result<ir::Value*> descriptor_arg(Codegen& g, const BoundArgs& a, int i) {
  const DescriptorValue* d = a[i].descriptor();
  if (!d)
    return with_note(g.fail(a.at(i), ErrorKind::kType, "{} takes a tensor descriptor, got {}",
                            a.builtin->display_name(), describe(a[i])),
                     "help: tl.make_tensor_descriptor(pointer, shape, strides, block_shape) makes one");
  auto is_around = [](const ir::Block* outer, const ir::Block* block) {
    while (block != outer && block->parent) block = block->parent->parent;
    return block == outer;
  };
  return d->handle && is_around(d->handle->op->parent, g.b.block()) ? d->handle : make_handle(g, *d);
}

/// The elements, with what the descriptor gives outside of the tensor.
ir::Value* load_elements(Codegen& g, const BoundArgs& a, const ir::BlockElements& at) {
  ir::Value* other = nullptr;
  if (a[0].descriptor()->nan_outside) {
    const Type type = at.pointers->type;
    const ast::Constant nan(std::numeric_limits<double>::quiet_NaN());
    other = g.b.splat(g.constant(nan, type.dtype), type.shape);
  }
  return g.b.load(at.pointers, at.inside, other);
}

Result<std::vector<ir::Value*>> offsets_arg(Codegen& g, const BoundArgs& a, int i, const Type& descriptor) {
  KILN_TRY(std::vector<ir::Value*> offsets, scalars_arg(g, a, i, DType::kI32));
  if (offsets.size() != descriptor.shape.rank)
    return g.fail(a.at(i), ErrorKind::kType, "{} offsets for a descriptor of {} dimensions", offsets.size(),
                  descriptor.shape.rank);
  return offsets;
}

}  // namespace

Result<Value> make_tensor_descriptor(Codegen& g, const BoundArgs& a) {
  enum { kBase, kShape, kStrides, kBlock, kPadding };
  ir::Value* base = a[kBase].tensor();
  if (!base || !base->type.pointer || base->type.is_tile())
    return g.fail(a.at(kBase), ErrorKind::kType, "base of {} must be a scalar pointer, got {}",
                  a.builtin->display_name(), describe(a[kBase]));
  KILN_TRY(std::vector<ir::Value*> sizes, scalars_arg(g, a, kShape, DType::kI32));
  KILN_TRY(std::vector<ir::Value*> strides, scalars_arg(g, a, kStrides, DType::kI64));
  KILN_TRY(Shape block, g.shape_arg(a, kBlock));
  const size_t rank = block.rank;
  if (rank < 1 || rank > static_cast<size_t>(kTensorMapDims) || sizes.size() != rank || strides.size() != rank)
    return with_note(
        g.fail(a.range, ErrorKind::kType, "a descriptor of {} sizes, {} strides and a block of {} dimensions",
               sizes.size(), strides.size(), rank),
        "help: shape, strides and block_shape have one entry for each of 1 to 5 dimensions");
  const TupleValue* stride_list = a[kStrides].as_tuple();
  const Value& last = stride_list ? stride_list->items.back() : a[kStrides];
  const auto* one = last.constant_as<ast::Int>();
  if (!one || *one != 1)
    return with_note(g.fail(a.at(kStrides), ErrorKind::kType,
                            "the last stride of a descriptor must be the constant 1, got {}", describe(last)),
                     "help: describe the transposed tensor, and transpose the loaded block with .T");
  const int row_bytes = block[static_cast<int>(rank) - 1] * size_of(base->type.dtype);
  if (row_bytes < kTensorMapAlignment)
    return g.fail(a.at(kBlock), ErrorKind::kValue,
                  "the last dimension of a descriptor's block must have at least {} bytes, got {}", kTensorMapAlignment,
                  row_bytes);
  bool nan_outside = false;
  if (a.has(kPadding)) {
    KILN_TRY(const auto padding, word_arg<ir::Padding>(g, a, kPadding));
    nan_outside = padding == ir::Padding::kNan;
    if (nan_outside && !is_float(base->type.dtype))
      return g.fail(a.at(kPadding), ErrorKind::kType, "padding_option 'nan' is for floats, and this is {}",
                    describe(base->type));
  }
  auto descriptor = std::make_shared<DescriptorValue>();
  descriptor->type = ir::descriptor_type(base->type.dtype, block);
  descriptor->nan_outside = nan_outside;
  descriptor->parts.push_back(Value(base));
  for (ir::Value* size : sizes) descriptor->parts.push_back(Value(size));
  for (size_t d = 0; d + 1 < rank; ++d) descriptor->parts.push_back(Value(strides[d]));
  descriptor->parts.push_back(Value::integer(1));
  std::vector<ir::Value*> operands = {base};
  operands.insert(operands.end(), sizes.begin(), sizes.end());
  operands.insert(operands.end(), strides.begin(), strides.end());
  descriptor->handle = g.b.create(OpKind::kMakeDescriptor, operands, std::span(&descriptor->type, 1))->result();
  return Value(std::shared_ptr<const DescriptorValue>(std::move(descriptor)));
}

Result<Value> descriptor_load(Codegen& g, const BoundArgs& a) {
  KILN_TRY(ir::Value * d, descriptor_arg(g, a, 0));
  KILN_TRY(std::vector<ir::Value*> operands, offsets_arg(g, a, 1, d->type));
  std::optional<ir::Eviction> eviction;
  if (constexpr int kEvictionArg = 3; a.args.size() > kEvictionArg) {
    KILN_TRY(eviction, word_arg<ir::Eviction>(g, a, kEvictionArg));
  }
  // Loads by TMA are made where 0 is outside.
  if (a[0].descriptor()->nan_outside) {
    ir::Value* loaded = load_elements(g, a, ir::block_elements(g.b, *d->op, d->type.shape, operands));
    if (eviction) loaded->op->set(*eviction);
    return Value(loaded);
  }
  operands.insert(operands.begin(), d);
  const Type block = ir::tile_type(d->type.dtype, d->type.shape);
  ir::Op* load = g.b.create(OpKind::kDescriptorLoad, operands, std::span(&block, 1));
  if (eviction) load->set(*eviction);
  return Value(load->result());
}

namespace {

/// The value of a store through a descriptor, in the type of its elements; its shape is `block`.
Result<ir::Value*> stored_value(Codegen& g, const BoundArgs& a, int i, const Type& descriptor, const Shape& block) {
  KILN_TRY(ir::Value * v, g.tensor(a.args[static_cast<size_t>(i)]));
  if (v->type.shape != block)
    return g.fail(a.at(i), ErrorKind::kType, "the value is {}, but the descriptor's block is {}", describe(v->type),
                  ir::to_string(block));
  return g.cast(v, ir::scalar_type(descriptor.dtype), a.at(i));
}

/// The rows `x_offsets` of a matrix, from column `y_offset` on.
Result<ir::BlockElements> rows_of(Codegen& g, const BoundArgs& a, const ir::Value* d, int i) {
  const Shape& block = d->type.shape;
  if (block.rank != 2 || block[0] != 1)
    return with_note(g.fail(a.at(0), ErrorKind::kType, "{} takes a descriptor whose block is one row, got {}",
                            a.builtin->display_name(), ir::to_string(block)),
                     "help: make it with block_shape=[1, columns]");
  KILN_TRY(ir::Value * rows, g.tensor(a.args[static_cast<size_t>(i)]));
  if (rows->type.shape.rank != 1 || !rows->type.is_int() || rows->type.is_bool())
    return g.fail(a.at(i), ErrorKind::kType, "the rows of {} are a vector of integers, got {}",
                  a.builtin->display_name(), describe(rows->type));
  KILN_TRY(rows, g.cast(rows, ir::scalar_type(DType::kI32), a.at(i)));
  KILN_TRY(std::vector<ir::Value*> column, scalars_arg(g, a, i + 1, DType::kI32));
  if (column.size() != 1)
    return g.fail(a.at(i + 1), ErrorKind::kType, "the first column of {} is one integer", a.builtin->display_name());
  const Shape shape = {rows->type.shape[0], block[1]};
  KILN_CHECK_OK(g.check_shape(shape, a.range));
  ir::Value* const offsets[] = {rows, column[0]};
  return ir::block_elements(g.b, *d->op, shape, offsets);
}

}  // namespace

Result<Value> descriptor_store(Codegen& g, const BoundArgs& a) {
  KILN_TRY(ir::Value * d, descriptor_arg(g, a, 0));
  KILN_TRY(std::vector<ir::Value*> operands, offsets_arg(g, a, 1, d->type));
  KILN_TRY(ir::Value * v, stored_value(g, a, 2, d->type, d->type.shape));
  operands.insert(operands.begin(), {d, v});
  g.b.create(OpKind::kDescriptorStore, operands, {});
  return Value();
}

Result<Value> descriptor_gather(Codegen& g, const BoundArgs& a) {
  KILN_TRY(ir::Value * d, descriptor_arg(g, a, 0));
  KILN_TRY(const ir::BlockElements at, rows_of(g, a, d, 1));
  return Value(load_elements(g, a, at));
}

Result<Value> descriptor_scatter(Codegen& g, const BoundArgs& a) {
  KILN_TRY(ir::Value * d, descriptor_arg(g, a, 0));
  KILN_TRY(const ir::BlockElements at, rows_of(g, a, d, 2));
  KILN_TRY(ir::Value * v, stored_value(g, a, 1, d->type, at.pointers->type.shape));
  g.b.store(at.pointers, v, at.inside);
  return Value();
}

namespace {

bool is_reduced_by_tma(std::string_view atomic, DType dtype) {
  const bool is_half = dtype == DType::kF16 || dtype == DType::kBF16;
  const bool is_int = dtype == DType::kU32 || dtype == DType::kI32 || dtype == DType::kU64;
  if (atomic == "atomic_add") return is_int || is_half || dtype == DType::kF32;
  if (atomic == "atomic_min" || atomic == "atomic_max") return is_int || is_half || dtype == DType::kI64;
  return is_int || dtype == DType::kI64;
}

}  // namespace

Result<Value> descriptor_atomic(Codegen& g, const BoundArgs& a) {
  KILN_TRY(ir::Value * d, descriptor_arg(g, a, 0));
  KILN_TRY(std::vector<ir::Value*> offsets, offsets_arg(g, a, 1, d->type));
  KILN_TRY(ir::Value * v, stored_value(g, a, 2, d->type, d->type.shape));
  const std::string_view name = a.builtin->name;
  if (g.options.as_triton && !is_reduced_by_tma(name, d->type.dtype))
    return g.fail(a.at(0), ErrorKind::kType, "{} of a descriptor of {} is not Triton's", name,
                  describe(ir::scalar_type(d->type.dtype)));
  // What TMA adds as the instruction does: numbers of which it flushes none.
  if (name == "atomic_add" && d->type.dtype == DType::kF32) {
    offsets.insert(offsets.begin(), {d, v});
    g.b.create(OpKind::kDescriptorStore, offsets, {})->set(ir::Rmw::kFAdd);
    return Value();
  }
  const ir::BlockElements at = ir::block_elements(g.b, *d->op, d->type.shape, offsets);
  // Reductions by TMA are relaxed, and give nothing back.
  KILN_CHECK_OK(emit_rmw(g, a, {ir::Sem::kRelaxed, ir::Scope::kGpu}, at.pointers, v, at.inside));
  return Value();
}

}  // namespace kiln::frontend::impl
