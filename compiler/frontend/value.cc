#include "compiler/frontend/value.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "compiler/frontend/aggregate.h"
#include "compiler/frontend/builtins.h"
#include "support/diag.h"

namespace kiln::frontend {

namespace {

int depth_around(const std::vector<Value>& items) {
  int depth = 0;
  for (const Value& v : items)
    if (const TupleValue* t = v.as_tuple() ? v.as_tuple() : v.as_dict()) depth = std::max(depth, t->depth);
  return depth + 1;
}

}  // namespace

Value Value::tuple(std::vector<Value> items, std::vector<std::string> fields) {
  const int depth = depth_around(items);
  return Value(std::make_shared<const TupleValue>(TupleValue{std::move(items), std::move(fields), false, {}, depth}));
}

Value Value::dict(std::vector<Value> keys, std::vector<Value> items) {
  const int depth = depth_around(items);
  return Value(std::make_shared<const TupleValue>(TupleValue{std::move(items), {}, true, std::move(keys), depth}));
}

const TupleValue* Value::as_tuple() const {
  auto* p = std::get_if<std::shared_ptr<const TupleValue>>(&data);
  return p && !(*p)->is_dict ? p->get() : nullptr;
}

const TupleValue* Value::as_dict() const {
  auto* p = std::get_if<std::shared_ptr<const TupleValue>>(&data);
  return p && (*p)->is_dict ? p->get() : nullptr;
}

const Value* TupleValue::find(const Value& key) const {
  for (size_t i = 0; i < keys.size(); ++i)
    if (same(keys[i], key)) return &items[i];
  return nullptr;
}

Value Value::type_of_constexpr(Value v) {
  return Value(std::make_shared<const ConstexprTypeValue>(ConstexprTypeValue{std::move(v)}));
}

bool Value::is_number() const { return constant_as<bool>() || constant_as<ast::Int>() || constant_as<double>(); }

const std::vector<Value>* parts_of(const Value& value) {
  if (const TupleValue* t = value.as_tuple()) return &t->items;
  if (const BlockPointerValue* b = value.block_pointer()) return &b->parts;
  if (const DescriptorValue* d = value.descriptor()) return &d->parts;
  if (const AggregateValue* a = value.aggregate()) return &a->parts;
  return nullptr;
}

Value with_parts(const Value& like, std::vector<Value> parts) {
  if (const DescriptorValue* d = like.descriptor())
    return Value(std::make_shared<const DescriptorValue>(DescriptorValue{d->type, std::move(parts), d->nan_outside}));
  if (const AggregateValue* a = like.aggregate())
    return Value(std::make_shared<const AggregateValue>(AggregateValue{a->of, std::move(parts), a->given}));
  const BlockPointerValue* b = like.block_pointer();
  if (!b) return Value::tuple(std::move(parts), like.as_tuple() ? like.as_tuple()->fields : std::vector<std::string>());
  return Value(std::make_shared<const BlockPointerValue>(BlockPointerValue{b->block, std::move(parts)}));
}

// Tuples and block pointers pass through control flow part by part; both sides must have the same parts.
bool same_kind_of_parts(const Value& a, const Value& b) {
  const std::vector<Value>*x = parts_of(a), *y = parts_of(b);
  if (!x || !y || x->size() != y->size() || a.data.index() != b.data.index()) return false;
  if (const DescriptorValue* d = a.descriptor(), *e = b.descriptor(); d)
    return d->type == e->type && d->nan_outside == e->nan_outside;
  if (a.aggregate()) return a.aggregate()->of == b.aggregate()->of;
  return !a.block_pointer() || a.block_pointer()->block == b.block_pointer()->block;
}

Value from_global(const Global& global) {
  if (auto* c = std::get_if<ast::Constant>(&global)) return Value(*c);
  if (auto* d = std::get_if<DType>(&global)) return Value(TypeValue{ir::scalar_type(*d)});
  if (auto* f = std::get_if<FunctionPtr>(&global)) return Value(*f);
  if (auto* m = std::get_if<ModulePath>(&global)) return resolve_path(m->path).value_or(Value(*m));
  if (auto* p = std::get_if<PointerTo>(&global)) return Value(TypeValue{ir::pointer_type(p->element)});
  const GlobalTuple& tuple = *std::get<std::shared_ptr<const GlobalTuple>>(global);
  std::vector<Value> items;
  for (const Global& g : tuple.items) items.push_back(from_global(g));
  if (tuple.is_dict) {
    std::vector<Value> keys;
    for (const Global& g : tuple.keys) keys.push_back(from_global(g));
    return Value::dict(std::move(keys), std::move(items));
  }
  return Value::tuple(std::move(items), tuple.fields);
}

std::optional<Global> to_global(const Value& value) {
  if (const ast::Constant* c = value.constant()) return Global(*c);
  if (const FunctionPtr* f = value.function()) return Global(*f);
  if (const ModulePath* m = value.module()) return Global(*m);
  if (const TypeValue* t = value.type()) {
    if (t->type.is_tile()) return std::nullopt;
    return t->type.pointer ? Global(PointerTo{t->type.dtype}) : Global(t->type.dtype);
  }
  const TupleValue* tuple = value.as_dict() ? value.as_dict() : value.as_tuple();
  if (!tuple) return std::nullopt;
  auto out = std::make_shared<GlobalTuple>();
  out->fields = tuple->fields;
  out->is_dict = tuple->is_dict;
  auto add = [](const std::vector<Value>& from, std::vector<Global>& to) {
    for (const Value& v : from) {
      std::optional<Global> g = to_global(v);
      if (!g) return false;
      to.push_back(*std::move(g));
    }
    return true;
  };
  if (!add(tuple->items, out->items) || !add(tuple->keys, out->keys)) return std::nullopt;
  return Global(std::shared_ptr<const GlobalTuple>(std::move(out)));
}

std::string describe(const ir::Type& type) {
  std::string out = type.pointer ? "*" : "";
  out += info(type.dtype).triton;
  if (type.is_tile()) out += ir::to_string(type.shape);
  return out;
}

std::string describe(const Value& value) {
  if (const ast::Constant* c = value.constant()) {
    if (value.is_none()) return "None";
    return fmt::format("the constexpr {}", ast::repr(*c));
  }
  if (ir::Value* v = value.tensor()) return describe(v->type);
  if (const TypeValue* t = value.type()) return fmt::format("the type {}", describe(t->type));
  if (const TupleValue* t = value.as_tuple()) {
    std::string out = "the tuple (";
    for (size_t i = 0; i < t->items.size(); ++i) {
      // Long tuples are shortened: the text is part of a one-line message.
      if (i == 4) return out + ", …)";
      out += (i ? ", " : "") + (t->items[i].constant() ? to_text(t->items[i]) : describe(t->items[i]));
    }
    return out + ")";
  }
  if (value.as_dict()) return fmt::format("the dict {}", to_text(value));
  if (const FunctionPtr* f = value.function())
    return fmt::format("the {} {}", (*f)->aggregate ? "class" : "function", (*f)->own_name());
  if (const Builtin* b = value.builtin()) return fmt::format("the function {}", b->display_name());
  if (const ModulePath* m = value.module()) return fmt::format("the module {}", m->path);
  if (const MethodValue* m = value.method()) return fmt::format("the method {}", m->name);
  if (const DescriptorValue* d = value.descriptor())
    return fmt::format("a tensor descriptor of {} blocks {}", info(d->type.dtype).triton, ir::to_string(d->type.shape));
  if (const BlockPointerValue* b = value.block_pointer())
    return fmt::format("a block pointer to {} blocks {}", info(b->base()->type.dtype).triton, ir::to_string(b->block));
  if (value.constexpr_type()) return fmt::format("the type {}", to_text(value));
  if (const AggregateValue* a = value.aggregate()) return fmt::format("a {}", a->of->name);
  return "a range";
}

std::string to_text(const Value& value) {
  if (const ast::Constant* c = value.constant()) {
    if (auto* s = std::get_if<std::string>(c)) return *s;
    return ast::repr(*c);
  }
  if (const TypeValue* t = value.type()) return describe(t->type);
  if (const ConstexprTypeValue* t = value.constexpr_type()) return fmt::format("constexpr_type[{}]", to_text(t->value));
  if (const TupleValue* d = value.as_dict()) {
    std::string out = "{";
    auto put = [&](const Value& v) { out += v.constant() ? ast::repr(*v.constant()) : to_text(v); };
    for (size_t i = 0; i < d->items.size(); ++i) {
      out += i ? ", " : "";
      put(d->keys[i]), out += ": ", put(d->items[i]);
    }
    return out + "}";
  }
  if (const TupleValue* t = value.as_tuple()) {
    std::string out = "(";
    for (size_t i = 0; i < t->items.size(); ++i) {
      const ast::Constant* c = t->items[i].constant();
      out += (i ? ", " : "") + (c ? ast::repr(*c) : to_text(t->items[i]));
    }
    return out + (t->items.size() == 1 ? ",)" : ")");
  }
  return describe(value);
}

bool same(const Value& a, const Value& b) {
  if (a.data.index() != b.data.index()) return false;
  if (const ast::Constant* x = a.constant()) {
    const ast::Constant* y = b.constant();
    if (auto* d = std::get_if<double>(x)) {
      auto* e = std::get_if<double>(y);
      // A NaN equals itself here: the question is whether two calls would specialise to the same code.
      return e && (*d == *e || (std::isnan(*d) && std::isnan(*e)));
    }
    return *x == *y;
  }
  if (a.tensor()) return a.tensor() == b.tensor();
  if (a.type()) return a.type()->type == b.type()->type;
  if (const std::vector<Value>* x = parts_of(a)) {
    if (!same_kind_of_parts(a, b)) return false;
    const std::vector<Value>& y = *parts_of(b);
    for (size_t i = 0; i < x->size(); ++i)
      if (!same((*x)[i], y[i])) return false;
    return true;
  }
  if (const TupleValue* x = a.as_dict(), *y = b.as_dict(); x || y) {
    if (!x || !y || x->items.size() != y->items.size()) return false;
    for (size_t i = 0; i < x->items.size(); ++i)
      if (const Value* other = y->find(x->keys[i]); !other || !same(x->items[i], *other)) return false;
    return true;
  }
  if (a.function()) return *a.function() == *b.function();
  if (a.builtin()) return a.builtin() == b.builtin();
  if (a.module()) return *a.module() == *b.module();
  if (a.method()) return a.method() == b.method();
  if (const ConstexprTypeValue* t = a.constexpr_type()) return same(t->value, b.constexpr_type()->value);
  return a.range() == b.range();
}

}  // namespace kiln::frontend
