// Expressions.
#include <fmt/format.h>

#include "repl/script/builtins/builtins.h"
#include "repl/script/interp/generator.h"
#include "repl/script/interp/interp.h"
#include "repl/script/value/text.h"

namespace kiln::script {

using namespace ast;

namespace {

/// Builtins of Python that are left out, and what to use.
struct OtherWay {
  std::string_view name, way;
};
constexpr OtherWay kOtherWays[] = {
    {"BaseExceptionGroup", "raise one exception, with the others as its arguments"},
    {"ExceptionGroup", "raise one exception, with the others as its arguments"},
    {"__import__", "import, also within functions"},
    {"breakpoint", "print(), or %run FILE at the prompt, which leaves the variables"},
    {"compile", "import a file"},
    {"eval", "a dict of functions, getattr(), or json.loads()"},
    {"exec", "import a file"},
    {"memoryview", "slices of bytes, or a tensor"},
};

/// What other languages, Python 2 and the shell have, as it is written here.
constexpr OtherWay kWrittenHere[] = {
    {"NULL", "None"},   {"cat", "!cat FILE"},  {"clear", "Ctrl-L"}, {"false", "False"},       {"ls", "!ls"},
    {"nil", "None"},    {"null", "None"},      {"pwd", "!pwd"},     {"raw_input", "input()"}, {"true", "True"},
    {"unicode", "str"}, {"xrange", "range()"},
};

/// Names that nearly every script imports under these names, with the import that gives them.
constexpr OtherWay kImported[] = {
    {"ABC", "from abc import ABC"},
    {"Any", "from typing import Any"},
    {"Callable", "from typing import Callable"},
    {"Counter", "from collections import Counter"},
    {"Dict", "from typing import Dict"},
    {"Enum", "from enum import Enum"},
    {"F", "import torch.nn.functional as F"},
    {"List", "from typing import List"},
    {"NamedTuple", "from typing import NamedTuple"},
    {"Optional", "from typing import Optional"},
    {"Path", "from pathlib import Path"},
    {"Tuple", "from typing import Tuple"},
    {"Union", "from typing import Union"},
    {"contextmanager", "from contextlib import contextmanager"},
    {"dataclass", "from dataclasses import dataclass"},
    {"defaultdict", "from collections import defaultdict"},
    {"deque", "from collections import deque"},
    {"libdevice", "from triton.language.extra import libdevice"},
    {"lru_cache", "from functools import lru_cache"},
    {"namedtuple", "from collections import namedtuple"},
    {"nn", "from torch import nn"},
    {"partial", "from functools import partial"},
    {"reduce", "from functools import reduce"},
    {"tl", "import triton.language as tl"},
    {"wraps", "from functools import wraps"},
};

/// Names that modules go by which Kiln does not have: their help says what there is instead.
constexpr OtherWay kAbsent[] = {{"np", "numpy"}, {"pd", "pandas"}, {"plt", "matplotlib"}};

}  // namespace

Value Interp::load(const void* node, std::string_view name, SourceRange range, Frame& f) {
  NameRef ref = f.program.names.find(node);
  const Value* v = nullptr;
  switch (ref.where) {
    case NameRef::Where::kLocal:
      v = &f.slots[ref.index];
      break;
    case NameRef::Where::kCell:
      v = &f.slots[ref.index].get<Cell>()->value;
      break;
    case NameRef::Where::kFree:
      v = &(*f.free)[ref.index]->value;
      break;
    case NameRef::Where::kGlobal: {
      Globals::Slot& slot = (*f.program.globals)[ref.index];
      // A global hides a builtin of its name until it is deleted.
      v = slot.value.missing() ? &slot.builtin : &slot.value;
      break;
    }
    case NameRef::Where::kConstant:
    case NameRef::Where::kNone:
      KILN_UNREACHABLE("a name that was not resolved");
  }
  if (!v->missing()) return *v;
  where_ = range;
  // Names of a class that are not bound there are looked for outside.
  if (f.code.is_class)
    if (Globals::Slot* slot = f.program.globals->find(name);
        slot && !(slot->value.missing() && slot->builtin.missing()))
      return slot->value.missing() ? slot->builtin : slot->value;
  if (ref.where != NameRef::Where::kGlobal)
    fail_as(ref.where == NameRef::Where::kFree ? "NameError" : "UnboundLocalError",
            "the variable '{}' has no value yet", name);
  std::vector<std::string> names;
  for (const auto& slot : f.program.globals->slots())
    if (!slot.value.missing() || !slot.builtin.missing()) names.push_back(slot.name);
  // '#' marks slots of the interpreter's own, which no source can name.
  for (const std::string& local : f.code.slot_names)
    if (local.find('#') == std::string::npos) names.push_back(local);
  Diagnostic d = error(ErrorKind::kName, "the name '{}' is not defined", name);
  for (const OtherWay& w : kOtherWays)
    if (w.name == name) fail(with_note(std::move(d), fmt::format("help: Kiln has no {}: {}", name, w.way)));
  for (const OtherWay& w : kWrittenHere)
    if (w.name == name) fail(with_note(std::move(d), fmt::format("help: it is written {} here", w.way)));
  for (const OtherWay& w : kImported)
    if (w.name == name) fail(with_note(std::move(d), fmt::format("help: {}", w.way)));
  for (const OtherWay& w : kAbsent)
    if (w.name == name && module_help_)
      if (std::string help = module_help_(w.way, true); !help.empty()) fail(with_note(std::move(d), std::move(help)));
  if (name.find('.') == std::string_view::npos &&
      (is_library_module(name) || (find_source_ && find_source_(*this, name))))
    fail(with_note(std::move(d), fmt::format("help: import {}", name)));
  // Only by now: comparing all names costs more than the look-up.
  std::string near = nearest_name(name, names);
  fail(near.empty() ? std::move(d) : with_note(std::move(d), fmt::format("help: did you mean '{}'?", near)));
}

Value Interp::eval(const Expr& e, Frame& f) {
  switch (e.kind) {
    case ExprKind::kConstant:
      return f.program.constants[f.program.names.find(&e).index];
    case ExprKind::kName:
      return load(&e, as<Name>(e).id, e.range, f);
    case ExprKind::kTuple: {
      std::vector<Value> items;
      eval_items(as<ast::Tuple>(e).items, items, f);
      return make<Tuple>(std::move(items));
    }
    case ExprKind::kList: {
      std::vector<Value> items;
      eval_items(as<ast::List>(e).items, items, f);
      return make<List>(std::move(items));
    }
    case ExprKind::kSet: {
      std::vector<Value> items;
      eval_items(as<ast::Set>(e).items, items, f);
      where_ = e.range;
      auto set = make<Set>();
      for (Value& v : items) set->table.set(*this, std::move(v), Value::none());
      return set;
    }
    case ExprKind::kDict:
      return eval_dict(as<ast::Dict>(e), f);
    case ExprKind::kUnary: {
      const auto& n = as<Unary>(e);
      Value v = eval(*n.operand, f);
      where_ = e.range;
      return unary(n.op, v);
    }
    case ExprKind::kBinary: {
      const auto& n = as<Binary>(e);
      Value a = eval(*n.left, f);
      Value b = eval(*n.right, f);
      where_ = e.range;
      return binary(n.op, a, b);
    }
    case ExprKind::kBoolOp: {
      const auto& n = as<BoolOp>(e);
      Value v;
      for (const ExprPtr& operand : n.values) {
        v = eval(*operand, f);
        // The value of `and` and `or` is an operand, not a bool.
        where_ = operand->range;
        if (truth(v) != n.is_and) return v;
      }
      return v;
    }
    case ExprKind::kCompare:
      return eval_compare(as<Compare>(e), f);
    case ExprKind::kIfExp: {
      const auto& n = as<IfExp>(e);
      return eval(truth(eval(*n.condition, f)) ? *n.then_value : *n.else_value, f);
    }
    case ExprKind::kCall:
      return eval_call(as<ast::Call>(e), f);
    case ExprKind::kAttribute: {
      const auto& n = as<Attribute>(e);
      Value base = eval(*n.base, f);
      where_ = n.name_range;
      return attribute(base, n.name);
    }
    case ExprKind::kSubscript: {
      const auto& n = as<Subscript>(e);
      Value base = eval(*n.base, f);
      Value index = eval(*n.index, f);
      where_ = e.range;
      return item(base, index);
    }
    case ExprKind::kSlice:
      return eval_slice(as<Slice>(e), f);
    case ExprKind::kLambda: {
      // A lambda may be made many times; its code is resolved once, with the program.
      const auto& n = as<Lambda>(e);
      Value fn = make_function(*f.program.codes.at(&e), n.params, f, "<lambda>");
      fn.get<Function>()->body = n.body.get();
      return fn;
    }
    case ExprKind::kComprehension:
      return eval_comprehension(as<Comprehension>(e), f);
    case ExprKind::kStarred:
    case ExprKind::kYield:  // a statement's whole value, which FunctionGenerator evaluates
      break;
    case ExprKind::kJoinedStr:
      return eval_joined(as<JoinedStr>(e), f);
    case ExprKind::kNamedExpr: {
      const auto& n = as<NamedExpr>(e);
      Value v = eval(*n.value, f);
      store(binding_key(n.target), v, f);
      return v;
    }
    case ExprKind::kEllipsis:
      return ellipsis_;
  }
  KILN_UNREACHABLE("expression");
}

void Interp::eval_items(const std::vector<ExprPtr>& items, std::vector<Value>& out, Frame& f) {
  out.reserve(items.size());
  for (const ExprPtr& e : items) {
    const auto* star = dyn_as<Starred>(e.get());
    if (!star) {
      out.push_back(eval(*e, f));
      continue;
    }
    Value many = eval(*star->value, f);
    where_ = e->range;
    for (Value& v : to_vector(many)) out.push_back(std::move(v));
  }
}

Value Interp::eval_dict(const ast::Dict& e, Frame& f) {
  auto dict = make<Dict>();
  for (size_t i = 0; i < e.keys.size(); ++i) {
    if (e.keys[i]) {
      Value key = eval(*e.keys[i], f);
      Value value = eval(*e.values[i], f);
      where_ = e.keys[i]->range;
      dict->table.set(*this, std::move(key), std::move(value));
      continue;
    }
    Value more = eval(*e.values[i], f);
    where_ = e.values[i]->range;
    if (!visit_mapping(*this, more, [&](const Value& k, Value v) { dict->table.set(*this, k, std::move(v)); }))
      fail(ErrorKind::kType, "'**' needs a dict, got '{}'", type_name(more));
  }
  return dict;
}

Value Interp::eval_compare(const Compare& e, Frame& f) {
  Value left = eval(*e.left, f);
  for (size_t i = 0; i < e.ops.size(); ++i) {
    Value right = eval(*e.rights[i], f);
    where_ = e.range;
    // Each operand is evaluated once, also those between two comparisons.
    Value v = compare(e.ops[i], left, right);
    if (i + 1 == e.ops.size() || !truth(v)) return v;
    left = std::move(right);
  }
  KILN_UNREACHABLE("a comparison without operators");
}

Value Interp::eval_slice(const Slice& e, Frame& f) {
  auto part = [&](const ExprPtr& p) { return p ? eval(*p, f) : Value::none(); };
  Value lower = part(e.lower);
  Value upper = part(e.upper);
  return make<SliceObject>(std::move(lower), std::move(upper), part(e.step));
}

Value Interp::eval_joined(const JoinedStr& e, Frame& f) {
  std::string out;
  for (const JoinedStr::Piece& p : e.pieces) {
    out += p.literal;
    if (!p.value) continue;
    // "f'{x=}'": the text of the expression, with its equals sign.
    out += p.debug_text;
    Value v = eval(*p.value, f);
    std::string spec = p.spec ? eval(*p.spec, f).get<Str>()->text : "";
    where_ = p.value->range;
    if (p.conversion == 'a') v = Value::str(ascii_of(repr(v)));
    if (p.conversion == 's' || p.conversion == 'r') v = Value::str(p.conversion == 's' ? str(v) : repr(v));
    out += format(v, spec);
  }
  return Value::str(std::move(out));
}

template <class Visit>
void Interp::run_clauses(const Comprehension& e, size_t clause, Frame& f, Visit&& visit) {
  if (clause == e.clauses.size()) return visit();
  const ForClause& c = e.clauses[clause];
  Value items = eval(*c.iterable, f);
  where_ = c.iterable->range;
  for_each(items, [&](Value item) {
    check_interrupt();
    assign(*c.target, std::move(item), f);
    for (const ExprPtr& condition : c.conditions)
      if (!truth(eval(*condition, f))) return true;
    run_clauses(e, clause + 1, f, visit);
    return true;
  });
}

namespace {
/// The names of a comprehension that a lambda inside it captures get new cells each time it runs.
void renew_cells(const Expr& target, Frame& f) {
  if (target.kind == ExprKind::kName) {
    NameRef ref = f.program.names.find(&target);
    if (ref.where == NameRef::Where::kCell) f.slots[ref.index] = make<Cell>();
  } else if (const auto* t = dyn_as<ast::Tuple>(&target)) {
    for (const ExprPtr& i : t->items) renew_cells(*i, f);
  } else if (const auto* l = dyn_as<ast::List>(&target)) {
    for (const ExprPtr& i : l->items) renew_cells(*i, f);
  } else if (const auto* s = dyn_as<Starred>(&target)) {
    renew_cells(*s->value, f);
  }
}
}  // namespace

Value Interp::eval_comprehension(const Comprehension& e, Frame& f) {
  if (e.form != Comprehension::Form::kGenerator)
    // So a lambda keeps the value of its own run (see renew_cells).
    for (const ForClause& c : e.clauses) renew_cells(*c.target, f);
  switch (e.form) {
    case Comprehension::Form::kList: {
      auto list = make<List>();
      run_clauses(e, 0, f, [&] {
        list->items.push_back(eval(*e.element, f));
        check_items(list->items.size());
      });
      return list;
    }
    case Comprehension::Form::kGenerator: {
      // Python evaluates the first iterable at once, where the generator is made.
      const Expr& first = *e.clauses[0].iterable;
      const Value items = eval(first, f);
      where_ = first.range;
      return make<Generator>(f, *f.program.codes.at(&e), e, iterator(items));
    }
    case Comprehension::Form::kSet: {
      auto set = make<Set>();
      run_clauses(e, 0, f, [&] {
        Value v = eval(*e.element, f);
        where_ = e.element->range;
        set->table.set(*this, std::move(v), Value::none());
        check_items(set->table.size());
      });
      return set;
    }
    case Comprehension::Form::kDict: {
      auto dict = make<Dict>();
      run_clauses(e, 0, f, [&] {
        Value key = eval(*e.element, f);
        Value value = eval(*e.value, f);
        where_ = e.element->range;
        dict->table.set(*this, std::move(key), std::move(value));
        check_items(dict->table.size());
      });
      return dict;
    }
  }
  KILN_UNREACHABLE("comprehension");
}

}  // namespace kiln::script
