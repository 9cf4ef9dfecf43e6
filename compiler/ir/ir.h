// The tile IR: one Op struct, structured control flow, everything owned by the Module.
//
// A Module is one kernel: a body block whose arguments are the runtime parameters. A region is one Block. Values know
// their uses. `stage` says which IR is legal: tile (no layouts) or distributed (every tile has a layout).
#pragma once
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "compiler/ir/attrs.h"
#include "compiler/ir/type.h"
#include "compiler/layout/linear_layout.h"
#include "support/source.h"

namespace kiln::ir {

struct Op;
struct Block;
class Module;

enum class OpKind : uint8_t {
#define KILN_OP(e, ...) k##e,
#include "compiler/ir/ops.def"
};

/// The macro of an op's row in ops.def, where the classes are described.
enum class OpClass : uint8_t {
  kIndex,
  kShape,
  kNumber,
  kFloat,
  kBits,
  kMath,
  kMixed,
  kAsm,
  kMemory,
  kAcross,
  kGather,
  kDescriptor,
  kControl,
  kTerminator,
  kEffect,
  kMachine,
};

struct OpInfo {
  OpClass op_class;
  std::string_view mnemonic;
  int min_operands, max_operands, results, regions;  // -1: any number
  std::string_view traits, stands, attrs;
};
const OpInfo& info(OpKind kind);
std::optional<OpKind> parse_op_kind(std::string_view mnemonic);
int num_op_kinds();

/// Where a value is consumed: operand `index` of `op`.
struct Use {
  Op* op;
  uint32_t index;
  bool operator==(const Use&) const = default;
};

struct Value {
  Type type;
  Op* op = nullptr;        // the op it is a result of, or
  Block* block = nullptr;  // the block it is an argument of
  uint32_t index = 0;      // which result or argument
  std::string_view name;   // the user's name for it, or empty; interned by the Module
  std::vector<Use> uses;

  bool is_result() const { return op != nullptr; }
};

struct Op {
  OpKind kind{};
  SourceRange range;
  std::vector<Value*> operands;  // change through set_operand, append_operand, erase_operand: uses follow
  std::vector<Value*> results;
  std::vector<std::pair<AttrName, Attr>> attrs;
  std::vector<Block*> regions;
  Block* parent = nullptr;
  Op* prev = nullptr;
  Op* next = nullptr;

  Value* operand(int i) const { return operands[i]; }
  Value* result(int i = 0) const { return results[i]; }
  Block* region(int i = 0) const { return regions[i]; }
  const Attr* find(AttrName name) const;
  bool has(AttrName name) const { return find(name) != nullptr; }
  /// Typed reads; the attribute must be there with that type (int_or, text_or, flag: a default when absent).
  int64_t int_attr(AttrName name) const;
  int64_t int_or(AttrName name, int64_t otherwise) const;
  const std::string& text_attr(AttrName name) const;
  std::string_view text_or(AttrName name, std::string_view otherwise) const;
  bool flag(AttrName name) const;
  /// The word of a closed set: op.word<Sem>(); or, when the attribute may be absent, find_word<Nan>().
  template <WordSet E>
  std::optional<E> find_word() const {
    const Attr* a = find(attr_of<E>());
    return a ? std::optional(std::get<E>(*a)) : std::nullopt;
  }
  template <WordSet E>
  E word() const {
    return find_word<E>().value();
  }
  void set(AttrName name, Attr value);
  template <WordSet E>
  void set(E word) {
    set(attr_of<E>(), word);
  }
  void remove(AttrName name);

  void set_operand(int i, Value* v);
  void append_operand(Value* v);
  void erase_operand(int i);
  /// Unlinks from its block; operands stay. Used to move ops.
  void unlink();
  /// Unlinks, drops operands and everything nested. Results must have no uses.
  void erase();
  bool is_before(const Op* other) const;  // same block
};

struct Block {
  Module* module = nullptr;
  Op* parent = nullptr;  // the op whose region it is; nullptr for the kernel's body
  std::vector<Value*> args;
  Op* first = nullptr;
  Op* last = nullptr;

  Op* terminator() const { return last; }
  void insert_before(Op* where, Op* op);  // where == nullptr: at the end
  bool empty() const { return first == nullptr; }

  /// `for (Op* op : *block)`: the next op is read before the body runs, so the current one may be erased.
  struct Iterator {
    Op* op;
    Op* following;
    Op* operator*() const { return op; }
    Iterator& operator++() {
      op = following;
      following = op ? op->next : nullptr;
      return *this;
    }
    bool operator!=(const Iterator& o) const { return op != o.op; }
  };
  Iterator begin() const { return {first, first ? first->next : nullptr}; }
  Iterator end() const { return {nullptr, nullptr}; }
};

inline OpClass op_class(OpKind kind) { return info(kind).op_class; }
/// Elements of the result depend on others of the operands: values move between threads.
inline bool is_across(OpKind kind) { return op_class(kind) == OpClass::kAcross || op_class(kind) == OpClass::kGather; }
/// Each element of the result is one of operand 0, which may have any layout.
inline bool is_gather(OpKind kind) { return op_class(kind) == OpClass::kGather; }
/// Whether the op is legal at the place of that letter in ops.def.
inline bool stands_at(OpKind kind, char place) { return info(kind).stands.find(place) != std::string_view::npos; }
/// Traits, asked by passes instead of naming ops.
bool has_trait(OpKind kind, char trait);
inline bool is_pure(const Op* op) { return has_trait(op->kind, 'P'); }
inline bool is_elementwise(const Op* op) { return has_trait(op->kind, 'E'); }
inline bool is_commutative(const Op* op) { return has_trait(op->kind, 'C'); }
inline bool is_terminator(const Op* op) { return has_trait(op->kind, 'T'); }
/// Reads or writes memory itself (ops with regions: see any_nested).
inline bool reads_memory(const Op* op) { return has_trait(op->kind, 'R'); }
inline bool writes_memory(const Op* op) { return has_trait(op->kind, 'W'); }
/// How many neighbouring warps, of the program's `num_warps`, do a barrier, tma_store or tma_store_wait together.
inline int joined_warps(const Op& op, int num_warps) {
  return op.has(AttrName::kWarps) ? static_cast<int>(op.int_attr(AttrName::kWarps)) : num_warps;
}

enum class Stage : uint8_t { kTile, kDistributed };

/// A runtime parameter of the kernel: facts that the launcher checked and that analyses may use.
struct ParamInfo {
  std::string name;
  int divisibility = 1;   // pointers: bytes of alignment; integers: a known factor (16 or 1)
  bool is_const = false;  // a pointer that nothing is written through
};

class Module {
 public:
  explicit Module(std::string name);
  ~Module();
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  std::string name;
  Stage stage = Stage::kTile;
  std::vector<ParamInfo> params;  // one per argument of body()
  int num_warps = 4;
  int num_stages = 3;
  int num_ctas = 1;
  int64_t shared_bytes = 0;  // set by allocate_shared

  Block* body() const { return body_; }

  Op* new_op(OpKind kind, SourceRange range);
  Block* new_block(Op* parent);
  Value* add_result(Op* op, const Type& type);
  Value* add_arg(Block* block, const Type& type, std::string_view name = {});
  void erase_arg(Block* block, int index);  // must have no uses
  std::string_view intern(std::string_view text);
  const layout::LinearLayout* intern(const layout::LinearLayout& layout);
  /// Layouts in the order they were interned; a layout prints as L<its index>.
  std::span<const layout::LinearLayout* const> layouts() const { return layouts_; }
  void keep_alive(std::shared_ptr<const SourceText> text) { sources_.push_back(std::move(text)); }
  std::span<const std::shared_ptr<const SourceText>> sources() const { return sources_; }

 private:
  std::deque<Op> ops_;
  std::deque<Block> blocks_;
  std::deque<Value> values_;
  std::deque<std::string> strings_;
  std::deque<layout::LinearLayout> layout_storage_;
  std::vector<const layout::LinearLayout*> layouts_;
  std::vector<std::shared_ptr<const SourceText>> sources_;
  Block* body_ = nullptr;
};

void replace_all_uses(Value* from, Value* to);
/// Every op of the block and of nested regions, outermost first. `fn` may erase the op it is given.
template <class Fn>
void walk(Block* block, Fn&& fn) {
  for (Op* op : *block) {
    std::vector<Block*> nested = op->regions;
    fn(op);
    for (Block* b : nested) walk(b, fn);
  }
}
/// Whether a reduce adds the elements of one tile of f32 or f64.
bool is_float_sum(const Op& reduce);
/// The multiplication beside a reduce with `contract` whose products it sums, or null: every executor asks here whether
/// it adds by fma.
const Op* contracted_product(const Op& reduce);
/// True when `op` or anything nested in it satisfies `predicate(const Op*)`.
template <class Fn>
bool any_nested(const Op* op, Fn&& predicate) {
  if (predicate(op)) return true;
  for (Block* b : op->regions)
    for (Op* inner : *b)
      if (any_nested(inner, predicate)) return true;
  return false;
}
/// A deep copy, with its own values; `num_*`, stage and parameters too.
std::unique_ptr<Module> clone(const Module& module);

/// Copies ops with their regions, within a module or from another one. An operand becomes what stands for it: a copy
/// that was made before, or what `substitute` names; any other stays as it is.
class OpCopier {
 public:
  explicit OpCopier(Module& to) : to_(to) {}

  void substitute(const Value* from, Value* to) { map_[from] = to; }
  Value* operator()(Value* v) const {
    const auto it = map_.find(v);
    return it == map_.end() ? v : it->second;
  }
  /// Before `before`, or at the block's end where that is null.
  Op* copy(const Op& op, Block* block, Op* before = nullptr);
  /// The arguments and ops of a block, into an empty one.
  void copy(const Block& from, Block* block);

 private:
  Type copy_type(const Type& t) { return t.layout ? t.with_layout(to_.intern(*t.layout)) : t; }

  Module& to_;
  std::unordered_map<const Value*, Value*> map_;
};

/// The text form, described in docs/ir.md.
std::string print(const Module& module);
std::string print(const Op& op);
/// Reads what print() wrote: `print(*parse(print(m))) == print(m)`.
Result<std::unique_ptr<Module>> parse_module(std::shared_ptr<const SourceText> text);
/// All invariants of verifier.cc; the first violation as an ErrorKind::kInternal diagnostic with the op's text.
Status verify(const Module& module);

}  // namespace kiln::ir
