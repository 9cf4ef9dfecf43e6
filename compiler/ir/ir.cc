#include "compiler/ir/ir.h"

#include <algorithm>

#include "support/diag.h"

namespace kiln::ir {

namespace {

constexpr OpInfo row(OpClass op_class, std::string_view mnemonic, int min_operands, int max_operands, int results,
                     int regions, std::string_view traits, std::string_view stands, std::string_view attrs) {
  return {op_class, mnemonic, min_operands, max_operands, results, regions, traits, stands, attrs};
}

constexpr OpInfo kOps[] = {
#define KILN_INDEX_OP(e, ...) row(OpClass::kIndex, __VA_ARGS__),
#define KILN_SHAPE_OP(e, ...) row(OpClass::kShape, __VA_ARGS__),
#define KILN_NUMBER_OP(e, ...) row(OpClass::kNumber, __VA_ARGS__),
#define KILN_FLOAT_OP(e, ...) row(OpClass::kFloat, __VA_ARGS__),
#define KILN_BITS_OP(e, ...) row(OpClass::kBits, __VA_ARGS__),
#define KILN_MATH_OP(e, ...) row(OpClass::kMath, __VA_ARGS__),
#define KILN_MIXED_OP(e, ...) row(OpClass::kMixed, __VA_ARGS__),
#define KILN_ASM_OP(e, ...) row(OpClass::kAsm, __VA_ARGS__),
#define KILN_MEMORY_OP(e, ...) row(OpClass::kMemory, __VA_ARGS__),
#define KILN_ACROSS_OP(e, ...) row(OpClass::kAcross, __VA_ARGS__),
#define KILN_GATHER_OP(e, ...) row(OpClass::kGather, __VA_ARGS__),
#define KILN_DESCRIPTOR_OP(e, ...) row(OpClass::kDescriptor, __VA_ARGS__),
#define KILN_CONTROL_OP(e, ...) row(OpClass::kControl, __VA_ARGS__),
#define KILN_TERMINATOR_OP(e, ...) row(OpClass::kTerminator, __VA_ARGS__),
#define KILN_EFFECT_OP(e, ...) row(OpClass::kEffect, __VA_ARGS__),
#define KILN_MACHINE_OP(e, ...) row(OpClass::kMachine, __VA_ARGS__),
#include "compiler/ir/ops.def"
};

void drop_use(Value* v, Op* op, uint32_t index) {
  auto it = std::find(v->uses.begin(), v->uses.end(), Use{op, index});
  KILN_ASSERT(it != v->uses.end());
  // The order of uses means nothing, so the last one fills the gap.
  *it = v->uses.back();
  v->uses.pop_back();
}

}  // namespace

const OpInfo& info(OpKind kind) { return kOps[static_cast<size_t>(kind)]; }
int num_op_kinds() { return static_cast<int>(std::size(kOps)); }

std::optional<OpKind> parse_op_kind(std::string_view mnemonic) {
  for (size_t i = 0; i < std::size(kOps); ++i)
    if (kOps[i].mnemonic == mnemonic) return static_cast<OpKind>(i);
  return std::nullopt;
}

bool has_trait(OpKind kind, char trait) { return info(kind).traits.find(trait) != std::string_view::npos; }

const Attr* Op::find(AttrName name) const {
  for (const auto& [key, value] : attrs)
    if (key == name) return &value;
  return nullptr;
}

int64_t Op::int_attr(AttrName name) const {
  const Attr* a = find(name);
  KILN_ASSERT(a && std::holds_alternative<int64_t>(*a), "{} without {}", info(kind).mnemonic, ir::name(name));
  return std::get<int64_t>(*a);
}

int64_t Op::int_or(AttrName name, int64_t otherwise) const { return has(name) ? int_attr(name) : otherwise; }

const std::string& Op::text_attr(AttrName name) const {
  const Attr* a = find(name);
  KILN_ASSERT(a && std::holds_alternative<std::string>(*a), "{} without {}", info(kind).mnemonic, ir::name(name));
  return std::get<std::string>(*a);
}

std::string_view Op::text_or(AttrName name, std::string_view otherwise) const {
  return has(name) ? std::string_view(text_attr(name)) : otherwise;
}

bool Op::flag(AttrName name) const {
  const Attr* a = find(name);
  return a && std::holds_alternative<bool>(*a) && std::get<bool>(*a);
}

void Op::set(AttrName name, Attr value) {
  for (auto& [key, old] : attrs)
    if (key == name) {
      old = std::move(value);
      return;
    }
  attrs.emplace_back(name, std::move(value));
}

void Op::remove(AttrName name) {
  std::erase_if(attrs, [&](const auto& a) { return a.first == name; });
}

void Op::set_operand(int i, Value* v) {
  uint32_t index = static_cast<uint32_t>(i);
  drop_use(operands[index], this, index);
  operands[index] = v;
  v->uses.push_back({this, index});
}

void Op::append_operand(Value* v) {
  v->uses.push_back({this, static_cast<uint32_t>(operands.size())});
  operands.push_back(v);
}

// Uses record operand numbers, so those behind the erased one are entered again.
void Op::erase_operand(int i) {
  for (size_t k = static_cast<size_t>(i); k < operands.size(); ++k)
    drop_use(operands[k], this, static_cast<uint32_t>(k));
  operands.erase(operands.begin() + i);
  for (size_t k = static_cast<size_t>(i); k < operands.size(); ++k)
    operands[k]->uses.push_back({this, static_cast<uint32_t>(k)});
}

void Op::unlink() {
  if (!parent) return;
  (prev ? prev->next : parent->first) = next;
  (next ? next->prev : parent->last) = prev;
  parent = nullptr;
  prev = next = nullptr;
}

void Op::erase() {
  for (Value* r : results) KILN_ASSERT(r->uses.empty(), "erasing a used {}", info(kind).mnemonic);
  unlink();
  for (Block* b : regions) {
    // Operands first, so that values defined in the block have no uses left when their op goes.
    walk(b, [](Op* op) {
      for (size_t k = 0; k < op->operands.size(); ++k) drop_use(op->operands[k], op, static_cast<uint32_t>(k));
      op->operands.clear();
    });
  }
  for (size_t k = 0; k < operands.size(); ++k) drop_use(operands[k], this, static_cast<uint32_t>(k));
  operands.clear();
  regions.clear();
}

bool Op::is_before(const Op* other) const {
  KILN_ASSERT(parent == other->parent);
  for (const Op* op = next; op; op = op->next)
    if (op == other) return true;
  return false;
}

void Block::insert_before(Op* where, Op* op) {
  KILN_ASSERT(!op->parent, "the op is in a block already");
  op->parent = this;
  op->next = where;
  op->prev = where ? where->prev : last;
  (op->prev ? op->prev->next : first) = op;
  (where ? where->prev : last) = op;
}

Module::Module(std::string n) : name(std::move(n)) { body_ = new_block(nullptr); }
Module::~Module() = default;

Op* Module::new_op(OpKind kind, SourceRange range) {
  Op& op = ops_.emplace_back();
  op.kind = kind;
  op.range = range;
  return &op;
}

Block* Module::new_block(Op* parent) {
  Block& block = blocks_.emplace_back();
  block.module = this;
  block.parent = parent;
  if (parent) parent->regions.push_back(&block);
  return &block;
}

Value* Module::add_result(Op* op, const Type& type) {
  Value& v = values_.emplace_back();
  v.type = type;
  v.op = op;
  v.index = static_cast<uint32_t>(op->results.size());
  op->results.push_back(&v);
  return &v;
}

Value* Module::add_arg(Block* block, const Type& type, std::string_view arg_name) {
  Value& v = values_.emplace_back();
  v.type = type;
  v.block = block;
  v.index = static_cast<uint32_t>(block->args.size());
  v.name = intern(arg_name);
  block->args.push_back(&v);
  return &v;
}

void Module::erase_arg(Block* block, int index) {
  KILN_ASSERT(block->args[index]->uses.empty());
  block->args.erase(block->args.begin() + index);
  for (size_t i = static_cast<size_t>(index); i < block->args.size(); ++i)
    block->args[i]->index = static_cast<uint32_t>(i);
}

// Kernels have few distinct names and layouts; a linear search is faster than hashing them.
std::string_view Module::intern(std::string_view text) {
  if (text.empty()) return {};
  for (const std::string& s : strings_)
    if (s == text) return s;
  return strings_.emplace_back(text);
}

const layout::LinearLayout* Module::intern(const layout::LinearLayout& layout) {
  for (const layout::LinearLayout* l : layouts_)
    if (*l == layout) return l;
  layouts_.push_back(&layout_storage_.emplace_back(layout));
  return layouts_.back();
}

bool is_float_sum(const Op& reduce) {
  if (reduce.kind != OpKind::kReduce || reduce.operands.size() != 1) return false;
  const DType dtype = reduce.operand(0)->type.dtype;
  const Op *add = reduce.region()->first, *end = reduce.region()->terminator();
  return (dtype == DType::kF32 || dtype == DType::kF64) && add && add->kind == OpKind::kAdd && add->next == end &&
         end->operands.size() == 1 && end->operand(0) == add->result() && add->operand(0) != add->operand(1);
}

const Op* contracted_product(const Op& reduce) {
  if (!reduce.flag(AttrName::kContract)) return nullptr;
  const Op* product = reduce.operand(0)->op;
  return product && product->kind == OpKind::kMul && product->parent == reduce.parent ? product : nullptr;
}

void replace_all_uses(Value* from, Value* to) {
  if (from == to) return;
  for (const Use& use : from->uses) {
    use.op->operands[use.index] = to;
    to->uses.push_back(use);
  }
  from->uses.clear();
}

Op* OpCopier::copy(const Op& from, Block* block, Op* before) {
  Op* op = to_.new_op(from.kind, from.range);
  for (Value* v : from.operands) op->append_operand((*this)(v));
  for (const Value* v : from.results) {
    Value* result = to_.add_result(op, copy_type(v->type));
    result->name = to_.intern(v->name);
    substitute(v, result);
  }
  op->attrs = from.attrs;
  block->insert_before(before, op);
  for (const Block* region : from.regions) copy(*region, to_.new_block(op));
  return op;
}

void OpCopier::copy(const Block& from, Block* block) {
  for (const Value* arg : from.args) substitute(arg, to_.add_arg(block, copy_type(arg->type), arg->name));
  for (const Op* op : from) copy(*op, block);
}

std::unique_ptr<Module> clone(const Module& module) {
  auto copy = std::make_unique<Module>(module.name);
  copy->stage = module.stage;
  copy->params = module.params;
  copy->num_warps = module.num_warps;
  copy->num_stages = module.num_stages;
  copy->num_ctas = module.num_ctas;
  copy->shared_bytes = module.shared_bytes;
  for (const auto& text : module.sources()) copy->keep_alive(text);
  // Interned first and in order, so that the clone prints the same layout numbers.
  for (const layout::LinearLayout* l : module.layouts()) copy->intern(*l);
  OpCopier(*copy).copy(*module.body(), copy->body());
  return copy;
}

}  // namespace kiln::ir
