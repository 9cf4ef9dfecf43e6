#include "compiler/passes/tile/cse.h"

#include <algorithm>
#include <string>
#include <unordered_map>

#include "compiler/passes/util/rewrite.h"

namespace kiln::passes {

namespace {

using ir::Op;
using ir::Value;

/// Everything that tells two ops apart, as bytes.
class Key {
 public:
  Key(const Op* op, uint64_t memory_epoch) {
    add(static_cast<uint64_t>(op->kind));
    add(memory_epoch);
    std::vector<const Value*> operands(op->operands.begin(), op->operands.end());
    if (ir::is_commutative(op)) std::sort(operands.begin(), operands.end());
    for (const Value* v : operands) add(reinterpret_cast<uint64_t>(v));
    for (const Value* r : op->results) add(r->type);
    std::vector<std::string> attrs;
    for (const auto& [name, value] : op->attrs) attrs.push_back(attr_bytes(name, value));
    std::sort(attrs.begin(), attrs.end());
    for (const std::string& a : attrs) bytes_ += a;
  }
  std::string take() { return std::move(bytes_); }

 private:
  template <class T>
  static void append(std::string& to, const T& v) {
    to.append(reinterpret_cast<const char*>(&v), sizeof v);
  }
  void add(uint64_t v) { append(bytes_, v); }
  void add(const ir::Type& t) {
    add(static_cast<uint64_t>(t.dtype) | static_cast<uint64_t>(t.pointer) << 8 |
        static_cast<uint64_t>(t.shape.rank) << 16);
    for (int32_t d : t.shape.span()) append(bytes_, d);
    add(reinterpret_cast<uint64_t>(t.layout));
  }

  static std::string attr_bytes(ir::AttrName name, const ir::Attr& value) {
    std::string s;
    append(s, name);
    append(s, value.index());
    std::visit(
        [&]<class T>(const T& v) {
          if constexpr (std::is_same_v<T, std::string>) {
            append(s, v.size()), s += v;
          } else if constexpr (std::is_same_v<T, std::vector<int64_t>>) {
            append(s, v.size());
            for (int64_t i : v) append(s, i);
          } else {
            append(s, v);  // floats by their bits: 0 and -0 differ
          }
        },
        value);
    return s;
  }

  std::string bytes_;
};

class Cse {
 public:
  void run(ir::Block* body) { visit(body, nullptr); }

 private:
  struct Scope {
    const Scope* outer;
    std::unordered_map<std::string, Op*> ops;

    Op* find(const std::string& key) const {
      for (const Scope* s = this; s; s = s->outer)
        if (auto it = s->ops.find(key); it != s->ops.end()) return it->second;
      return nullptr;
    }
  };

  static bool candidate(const Op* op) {
    if (!op->regions.empty() || op->results.empty()) return false;
    return ir::is_pure(op) || (ir::reads_memory(op) && !ir::writes_memory(op) && !op->flag(ir::AttrName::kVolatile));
  }

  void visit(ir::Block* block, const Scope* outer) {
    Scope scope{outer, {}};
    for (Op* op : *block) {
      if (candidate(op)) {
        std::string key = Key(op, ir::is_pure(op) ? 0 : epoch_).take();
        if (Op* earlier = scope.find(key)) {
          for (size_t i = 0; i < op->results.size(); ++i) {
            if (earlier->results[i]->name.empty()) earlier->results[i]->name = op->results[i]->name;
            ir::replace_all_uses(op->results[i], earlier->results[i]);
          }
          op->erase();
        } else {
          scope.ops.emplace(std::move(key), op);
        }
        continue;
      }
      // Memory changes at a write, and anywhere around or inside an op that holds one: a loop's body also sees the
      // writes of its earlier iterations.
      const bool writes = changes_memory(op);
      for (ir::Block* region : op->regions) {
        if (writes) epoch_ = ++last_epoch_;
        // The region of a reduce or scan is closed: it gets nothing from outside.
        visit(region, has_combine_region(op) ? nullptr : &scope);
      }
      if (writes) epoch_ = ++last_epoch_;
    }
  }

  uint64_t epoch_ = 1, last_epoch_ = 1;  // 0 stands for pure ops
};

}  // namespace

Status cse(ir::Module& module, const CseOptions&) {
  Cse().run(module.body());
  return {};
}

}  // namespace kiln::passes
