#include "kiln/function_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <limits>
#include <map>
#include <set>

#include "compiler/ast/walk.h"
#include "compiler/frontend/aggregate.h"
#include "compiler/frontend/builtins.h"
#include "compiler/frontend/named_tuple.h"
#include "compiler/parse/parser.h"
#include "runtime/jit/closure.h"
#include "runtime/jit/image.h"
#include "support/diag.h"
#include "support/escape.h"

namespace kiln {

using frontend::JitFunction;

namespace runtime {

/// It owns the functions. The values in it refer to them without owning, so that functions that call each other do not
/// keep themselves alive; what leaves it shares ownership of all of it.
struct FunctionTableImpl : std::enable_shared_from_this<FunctionTableImpl> {
  using NameTable = std::map<std::string, frontend::Global, std::less<>>;
  struct Entry {
    JitFunction function;
    NameTable names, defaults;
    std::map<std::string, frontend::HiddenName, std::less<>> hidden;
    std::vector<Entry*> members = {};  // of an aggregate's constructor: the methods, which see the same names
  };
  // A deque, since lookups keep references to entries while others are added.
  std::deque<Entry> entries;
  std::deque<Entry> methods;                              // of aggregates
  std::map<std::string, NameTable, std::less<>> modules;  // their members

  Entry& at(FunctionId id) {
    const auto i = static_cast<size_t>(id);
    KILN_ASSERT(i < entries.size(), "the table has {} functions, and {} is none of them", entries.size(), i);
    return entries[i];
  }
  std::shared_ptr<const JitFunction> function(FunctionId id) { return {shared_from_this(), &at(id).function}; }

  std::optional<frontend::Global> find(const NameTable& names, std::string_view name) const {
    auto it = names.find(name);
    if (it == names.end()) return std::nullopt;
    if (const auto* f = std::get_if<std::shared_ptr<const JitFunction>>(&it->second))
      return frontend::Global(std::shared_ptr<const JitFunction>(shared_from_this(), f->get()));
    return it->second;
  }

  Entry& add(const std::shared_ptr<const ast::Module>& module, const ast::FunctionDef* def) {
    return add(module, def, entries);
  }
  Entry& add(const std::shared_ptr<const ast::Module>& module, const ast::FunctionDef* def, std::deque<Entry>& to) {
    Entry& e = to.emplace_back();
    e.function.module = module;
    e.function.def = def;
    e.function.lookup = [this, &e](std::string_view name) { return find(e.names, name); };
    e.function.hidden = [&e](std::string_view name) {
      auto it = e.hidden.find(name);
      return it == e.hidden.end() ? std::nullopt : std::optional(it->second);
    };
    e.function.default_of = [this, &e](std::string_view parameter) { return find(e.defaults, parameter); };
    e.function.member = [this](std::string_view path, std::string_view name) -> std::optional<frontend::Global> {
      auto it = modules.find(path);
      return it == modules.end() ? std::nullopt : find(it->second, name);
    };
    return e;
  }
  /// The constructor of a class under @_aggregate, by which kernels make its objects.
  Status add_aggregate(const std::shared_ptr<const ast::Module>& module, const ast::ClassDef& c) {
    const std::shared_ptr<frontend::AggregateClass> made = frontend::aggregate_of(c);
    std::vector<Entry*> members;
    const ast::FunctionDef* init = nullptr;
    for (const ast::StmtPtr& s : c.body) {
      const auto* def = ast::dyn_as<ast::FunctionDef>(s.get());
      if (!def) continue;
      const auto decorated = [&](std::string_view by) {
        return std::ranges::any_of(def->decorators, [&](const ast::ExprPtr& d) {
          const auto* call = ast::dyn_as<ast::Call>(d.get());
          const std::string_view text = (call ? *call->callee : *d).range.str();
          return text == by || text.ends_with("." + std::string(by));
        });
      };
      if (def->name == "__init__") init = def;
      Entry& e = *members.emplace_back(&add(module, def, methods));
      frontend::make_member(e.function, *made, decorated("jit"));
      const std::shared_ptr<const JitFunction> unowned(std::shared_ptr<const void>(), &e.function);
      made->members.insert_or_assign(def->name, frontend::AggregateClass::Member{unowned, decorated("staticmethod")});
    }
    std::optional<JitFunction> implicit;
    if (!init) {
      KILN_TRY(implicit, frontend::implicit_constructor(*made, c));
    }
    Entry& constructor = init ? add(module, init) : add(implicit->module, implicit->def);
    constructor.members = std::move(members);
    frontend::make_constructor(constructor.function, made);
    return {};
  }
  /// Of the function, and of the methods of what it makes.
  template <class Do>
  void each(FunctionId id, Do&& what) {
    what(at(id));
    for (Entry* member : at(id).members) what(*member);
  }
  FunctionId last() const { return static_cast<FunctionId>(entries.size() - 1); }

  frontend::Global to_global(const NameValue& value) {
    struct Visitor {
      FunctionTableImpl& table;
      frontend::Global operator()(std::monostate) const { return ast::Constant(ast::None{}); }
      frontend::Global operator()(bool v) const { return ast::Constant(v); }
      frontend::Global operator()(int64_t v) const { return ast::Constant(ast::Int{v}); }
      frontend::Global operator()(uint64_t v) const { return ast::Constant(ast::Int{v}); }
      frontend::Global operator()(double v) const { return ast::Constant(v); }
      frontend::Global operator()(const std::string& v) const { return ast::Constant(v); }
      frontend::Global operator()(DType v) const { return v; }
      frontend::Global operator()(PointerType v) const { return frontend::PointerTo{v.element}; }
      frontend::Global operator()(const ModuleName& v) const { return frontend::ModulePath{v.path}; }
      frontend::Global operator()(FunctionId v) const {
        return std::shared_ptr<const JitFunction>(std::shared_ptr<const void>(), &table.at(v).function);
      }
      frontend::Global operator()(const std::shared_ptr<const TupleValue>& v) const {
        auto out = std::make_shared<frontend::GlobalTuple>();
        for (const NameValue& item : v->items) out->items.push_back(table.to_global(item));
        out->fields = v->fields;
        return std::shared_ptr<const frontend::GlobalTuple>(std::move(out));
      }
    };
    return std::visit(Visitor{*this}, value);
  }

  Result<NameValue> from_global(const frontend::Global& value) const {
    if (const auto* c = std::get_if<ast::Constant>(&value)) {
      if (const auto* v = std::get_if<bool>(c)) return NameValue(*v);
      if (const auto* v = std::get_if<double>(c)) return NameValue(*v);
      if (const auto* v = std::get_if<std::string>(c)) return NameValue(*v);
      const auto* v = std::get_if<ast::Int>(c);
      if (!v) return NameValue();
      if (*v >= INT64_MIN && *v <= INT64_MAX) return NameValue(static_cast<int64_t>(*v));
      if (*v > 0 && *v <= UINT64_MAX) return NameValue(static_cast<uint64_t>(*v));
      return error(ErrorKind::kValue, "an integer of more than 64 bits");
    }
    if (const auto* t = std::get_if<DType>(&value)) return NameValue(*t);
    if (const auto* t = std::get_if<frontend::PointerTo>(&value)) return NameValue(PointerType{t->element});
    if (const auto* m = std::get_if<frontend::ModulePath>(&value)) return NameValue(ModuleName{m->path});
    if (const auto* t = std::get_if<std::shared_ptr<const frontend::GlobalTuple>>(&value)) {
      auto out = std::make_shared<TupleValue>();
      for (const frontend::Global& item : (*t)->items) {
        KILN_TRY(out->items.emplace_back(), from_global(item));
      }
      out->fields = (*t)->fields;
      return NameValue(std::shared_ptr<const TupleValue>(std::move(out)));
    }
    const JitFunction* f = std::get<std::shared_ptr<const JitFunction>>(value).get();
    for (size_t i = 0; i < entries.size(); ++i)
      if (&entries[i].function == f) return NameValue(static_cast<FunctionId>(i));
    return error(ErrorKind::kUnsupported, "a function of Kiln's own cannot be an argument here");
  }

  Result<frontend::ArgSpec> spec(const ast::Param& param, const ImageArgument& argument) {
    if (!argument.type.empty()) return frontend::parse_argument_type(param, argument.type);
    frontend::ArgSpec out;
    out.is_tuple = argument.is_tuple;
    out.is_constexpr = !argument.is_tuple;
    if (out.is_constexpr) out.value = to_global(argument.value);
    for (const ImageArgument& item : argument.items) {
      KILN_TRY(out.items.emplace_back(), spec(param, item));
    }
    out.fields = argument.fields;
    return out;
  }
};

}  // namespace runtime

FunctionTable::FunctionTable() : impl_(std::make_shared<runtime::FunctionTableImpl>()) {}

Result<FunctionId> FunctionTable::add(std::string_view text, std::string file, int line) {
  // The lines above the function, empty: places count from the beginning of the text.
  std::string padded(static_cast<size_t>(std::max(line, 1) - 1), '\n');
  padded += text;
  KILN_TRY(auto module, parse::parse_module(SourceText::make(std::move(file), std::move(padded))));
  if (module->body.size() == 1) {
    if (const auto* def = ast::dyn_as<ast::FunctionDef>(module->body[0].get())) {
      impl_->add(module, def);
      return impl_->last();
    }
    const auto* c = ast::dyn_as<ast::ClassDef>(module->body[0].get());
    if (c && std::ranges::any_of(c->decorators,
                                 [](const ast::ExprPtr& d) { return d->range.str().ends_with("aggregate"); })) {
      KILN_CHECK_OK(impl_->add_aggregate(module, *c));
      return impl_->last();
    }
    KILN_TRY(std::optional<JitFunction> made, c ? frontend::named_tuple(*c) : std::optional<JitFunction>());
    if (made) {
      impl_->add(made->module, made->def).function.named_tuple = true;
      return impl_->last();
    }
  }
  return error(ErrorKind::kValue, "expected the text of one function, or of one NamedTuple or aggregate");
}

FunctionId FunctionTable::add_evaluated(std::string name, std::string_view identity, Evaluate evaluate) {
  auto module = std::make_shared<ast::Module>();
  // The identity stands in the text, since keys of caches are made of texts.
  auto source = SourceText::make(name, fmt::format("{} {}", name, identity));
  const auto end = static_cast<uint32_t>(source->text().size());
  auto def = std::make_unique<ast::FunctionDef>(SourceRange{source.get(), 0, end});
  def->full_range = def->range;
  def->name_range = {source.get(), 0, static_cast<uint32_t>(name.size())};
  def->name = std::move(name);
  const ast::FunctionDef* kept = def.get();
  module->source = std::move(source);
  module->body.push_back(std::move(def));
  auto& entry = impl_->add(module, kept);
  entry.function.constexpr_function = true;
  entry.function.evaluate =
      [table = impl_.get(), evaluate = std::move(evaluate)](
          std::span<const frontend::Global> positional,
          std::span<const std::pair<std::string, frontend::Global>> keywords) -> Result<frontend::Global> {
    std::vector<NameValue> values;
    std::vector<std::pair<std::string, NameValue>> named;
    for (const frontend::Global& g : positional) {
      KILN_TRY(values.emplace_back(), table->from_global(g));
    }
    for (const auto& [key, g] : keywords) {
      KILN_TRY(NameValue value, table->from_global(g));
      named.emplace_back(key, std::move(value));
    }
    KILN_TRY(NameValue result, evaluate(values, named));
    return table->to_global(result);
  };
  return impl_->last();
}

std::vector<std::string> FunctionTable::names(FunctionId function) const {
  if (impl_->at(function).function.evaluate) return {};
  std::set<std::string> names;
  impl_->each(function, [&](const auto& e) {
    for (std::string& name : runtime::reads(*e.function.def)) names.insert(std::move(name));
  });
  if (const auto& of = impl_->at(function).function.aggregate)
    for (const auto& field : of->fields)
      ast::walk(field.annotation, [&](const ast::Expr& e) {
        if (const auto* n = ast::dyn_as<ast::Name>(&e)) names.insert(n->id);
      });
  std::vector<std::string> out(names.begin(), names.end());
  // Names before the chains that begin with one.
  std::ranges::stable_partition(out, [](const std::string& n) { return n.find('.') == std::string::npos; });
  return out;
}

void FunctionTable::bind(FunctionId function, std::string_view name, const NameValue& value) {
  impl_->each(function, [&](auto& e) { e.names.insert_or_assign(std::string(name), impl_->to_global(value)); });
}
void FunctionTable::hide(FunctionId function, std::string_view name, std::string type, bool captured) {
  impl_->each(function, [&](auto& e) {
    e.hidden.insert_or_assign(std::string(name), frontend::HiddenName{type, captured});
  });
}
void FunctionTable::bind_default(FunctionId function, std::string_view parameter, const NameValue& value) {
  impl_->at(function).defaults.insert_or_assign(std::string(parameter), impl_->to_global(value));
}
void FunctionTable::bind_member(std::string_view module, std::string_view name, const NameValue& value) {
  impl_->modules[std::string(module)].insert_or_assign(std::string(name), impl_->to_global(value));
}

Result<Image> FunctionTable::compile(const Runtime& runtime, FunctionId kernel,
                                     std::span<const ImageArgument> arguments, const ImageRequest& request) const {
  const std::shared_ptr<const JitFunction> function = impl_->function(kernel);
  const auto& params = function->def->params;
  if (arguments.size() != params.size())
    return error(ErrorKind::kType, "{} has {} parameters, got {} arguments", function->def->name, params.size(),
                 arguments.size());
  std::vector<frontend::ArgSpec> specs;
  for (size_t i = 0; i < params.size(); ++i) {
    KILN_TRY(specs.emplace_back(), impl_->spec(params[i], arguments[i]));
  }
  return runtime::compile_specs(runtime, function, specs, request);
}

Kernel FunctionTable::kernel(FunctionId function) const { return Kernel::from_function(impl_->function(function)); }

bool FunctionTable::knows(std::string_view path) { return frontend::resolve_path(path).has_value(); }

}  // namespace kiln
