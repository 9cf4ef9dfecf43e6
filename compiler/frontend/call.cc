// Calls: of builtins, of jit functions (inlined), of types (casts) and of methods.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "compiler/frontend/aggregate.h"
#include "compiler/frontend/codegen.h"

namespace kiln::frontend {

namespace {

// Calls are inlined, and the frontend recurses on the host's stack for each level.
constexpr int kMaxCallDepth = 48;

}  // namespace

namespace {

/// Whether a decorator says that calls stay calls, which Triton does for scalars alone.
bool is_noinline(const ast::FunctionDef& def) {
  return std::ranges::any_of(def.decorators, [](const ast::ExprPtr& d) {
    const auto* call = ast::dyn_as<ast::Call>(d.get());
    return call && std::ranges::any_of(call->keywords, [](const ast::Keyword& k) {
             return k.name == "noinline" && k.value->range.str() == "True";
           });
  });
}

/// Why the result of a call must be used; nullopt: it need not.
std::optional<std::string> reason_to_use(const Value& callee) {
  const MethodValue* method = callee.method();
  if (const Builtin* builtin = method ? method->builtin : callee.builtin(); builtin && builtin->name == "advance")
    return "it moves no block pointer, it gives one that is moved";
  const FunctionPtr* function = method ? &method->function : callee.function();
  if (!function || !*function) return std::nullopt;
  for (const ast::ExprPtr& d : (*function)->def->decorators) {
    const auto* call = ast::dyn_as<ast::Call>(d.get());
    if (!(call ? call->callee : d)->range.str().ends_with("must_use_result")) continue;
    const auto* text = call && !call->args.empty() ? ast::dyn_as<ast::ConstantExpr>(call->args[0].get()) : nullptr;
    const auto* words = text ? std::get_if<std::string>(&text->value) : nullptr;
    return words ? *words : "";
  }
  return std::nullopt;
}

}  // namespace

Result<Value> Codegen::call_expr(const ast::Call& e) {
  const bool is_unused = std::exchange(unused_, nullptr) == &e;
  Value callee;
  KILN_TRY(callee, expr(*e.callee));
  if (is_unused)
    if (const std::optional<std::string> why = reason_to_use(callee)) {
      Diagnostic d = fail(e.range, ErrorKind::kValue, "the result of {} is not used", e.callee->range.str());
      return why->empty() ? d : with_note(std::move(d), *why);
    }
  std::vector<Arg> positional;
  for (const ast::ExprPtr& a : e.args) {
    if (const auto* star = ast::dyn_as<ast::Starred>(a.get())) {
      KILN_TRY(Value t, expr(*star->value));
      if (!t.as_tuple())
        return fail(a->range, ErrorKind::kType, "only a tuple can be spread with *, got {}", describe(t));
      for (const Value& v : t.as_tuple()->items) positional.push_back({v, a->range});
      continue;
    }
    KILN_TRY(Value v, expr(*a));
    positional.push_back({std::move(v), a->range});
  }
  std::vector<std::pair<std::string, Arg>> keywords;
  for (const ast::Keyword& k : e.keywords) {
    if (k.name.empty())
      return fail(k.range, ErrorKind::kUnsupported, "** in a call is not supported in kernels; name each argument");
    if (computing() && is_hidden_parameter(k.name)) continue;  // `_semantic=_semantic`, which Triton needs
    KILN_TRY(Value v, expr(*k.value));
    for (const auto& [other, value] : keywords)
      if (other == k.name) return fail(k.range, ErrorKind::kType, "the argument {} is given twice", k.name);
    keywords.emplace_back(k.name, Arg{std::move(v), k.value->range});
  }
  return call(callee, std::move(positional), std::move(keywords), e.range, e.callee->range);
}

Result<Value> Codegen::call(const Value& callee, std::vector<Arg> positional,
                            std::vector<std::pair<std::string, Arg>> keywords, SourceRange range,
                            SourceRange callee_range) {
  if (const MethodValue* m = callee.method()) {
    if (m->of_host) return host_call(m->name, &m->self, positional, keywords, range);
    if (!m->builtin && !m->function) {
      if (!positional.empty() || !keywords.empty())
        return fail(range, ErrorKind::kType, "{} takes no arguments", m->name);
      return m->self.value;
    }
    // A method is the function of that name with the object as its first argument.
    positional.insert(positional.begin(), m->self);
    Value function = m->builtin ? Value(m->builtin) : Value(m->function);
    return call(function, std::move(positional), std::move(keywords), range, callee_range);
  }
  if (const Builtin* builtin = callee.builtin()) {
    if (builtin->in_library()) {
      FunctionPtr function = library_function(*builtin);
      return inline_call(function, std::move(positional), std::move(keywords), range);
    }
    KILN_TRY(BoundArgs args, bind_builtin(*this, *builtin, std::move(positional), std::move(keywords), range));
    return builtin->fn(*this, args);
  }
  if (const FunctionPtr* f = callee.function()) {
    FunctionPtr keep = *f;
    return inline_call(keep, std::move(positional), std::move(keywords), range);
  }
  // tl.float16(2) stays a constant; anything else is a cast at run time.
  if (const TypeValue* t = callee.type()) {
    if (positional.size() != 1 || !keywords.empty())
      return fail(range, ErrorKind::kType, "{} as a function casts one value", describe(t->type));
    if (positional[0].value.is_number() && !t->type.pointer)
      return Value(constant(*positional[0].value.constant(), t->type.dtype));
    KILN_TRY(ir::Value * v, tensor(positional[0]));
    KILN_TRY(ir::Value * out, cast(v, t->type.scalar(), range));
    return Value(out);
  }
  const ModulePath* m = callee.module();
  if (m && (computing() || m->path.starts_with("math.")))
    return host_call(m->path, nullptr, positional, keywords, range);
  if (m && !is_known_module(m->path))
    return with_note(
        fail(callee_range, ErrorKind::kName, "{} is not part of Triton, so a kernel cannot call it", m->path),
        "help: a helper of another file must be defined in this file, under @triton.jit");
  return fail(callee_range, ErrorKind::kType, "{} is not a function", describe(callee));
}

Result<std::vector<Arg>> Codegen::bind_function(const FunctionPtr& function, std::vector<Arg> positional,
                                                std::vector<std::pair<std::string, Arg>> keywords, SourceRange range) {
  const ast::FunctionDef& def = *function->def;
  std::vector<Arg> bound(def.params.size());
  std::vector<bool> given(def.params.size());
  size_t next = 0;
  for (size_t i = 0; i < def.params.size(); ++i) {
    const ast::Param& p = def.params[i];
    switch (p.kind) {
      case ast::Param::Kind::kPlain:
        if (next < positional.size()) bound[i] = std::move(positional[next++]), given[i] = true;
        break;
      case ast::Param::Kind::kArgs: {
        std::vector<Value> rest;
        while (next < positional.size()) rest.push_back(positional[next++].value);
        bound[i] = {Value::tuple(std::move(rest)), range};
        given[i] = true;
        break;
      }
      case ast::Param::Kind::kKwargs:
        return fail(range, ErrorKind::kUnsupported, "{} takes **{}, which is not supported in kernels", def.name,
                    p.name);
      case ast::Param::Kind::kKeywordOnly:
        break;
    }
  }
  // Notes about library functions would point into text that the user has not written.
  auto signature = [&](Diagnostic d) {
    return is_library(*function) ? d : with_note(std::move(d), "defined here", def.name_range);
  };
  if (next < positional.size())
    return signature(fail(positional[next].range, ErrorKind::kType, "{} takes {} argument{}, got {}", def.name,
                          def.params.size(), def.params.size() == 1 ? "" : "s", positional.size()));
  for (auto& [key, arg] : keywords) {
    auto p = std::find_if(def.params.begin(), def.params.end(), [&](const ast::Param& x) { return x.name == key; });
    if (p == def.params.end()) {
      std::vector<std::string> names;
      for (const ast::Param& x : def.params) names.push_back(x.name);
      Diagnostic d = fail(arg.range, ErrorKind::kName, "{} has no parameter {}", def.name, key);
      if (is_library(*function) && nearest_name(key, names).empty())
        return with_note(std::move(d), fmt::format("help: its parameters are {}", fmt::join(names, ", ")));
      if (std::string near = nearest_name(key, names); !near.empty())
        d = with_note(std::move(d), fmt::format("help: did you mean {}?", near));
      return signature(std::move(d));
    }
    size_t i = static_cast<size_t>(p - def.params.begin());
    if (given[i])
      return signature(fail(arg.range, ErrorKind::kType, "the argument {} of {} is given twice", key, def.name));
    bound[i] = std::move(arg);
    given[i] = true;
  }
  for (size_t i = 0; i < def.params.size(); ++i) {
    if (given[i]) continue;
    if (!def.params[i].default_value && function->in_aggregate && is_hidden_parameter(def.params[i].name))
      bound[i] = {Value(), range}, given[i] = true;
    else if (!def.params[i].default_value)
      return signature(fail(range, ErrorKind::kType, "{} needs the argument {}", def.name, def.params[i].name));
  }
  for (size_t i = 0; i < def.params.size(); ++i)
    // An empty range marks the parameters whose default must be evaluated, in the callee's frame, where it was written.
    if (!given[i]) bound[i].range = {};
  return bound;
}

Result<Global> Codegen::evaluated_argument(const ast::FunctionDef& def, const Arg& arg) {
  if (std::optional<Global> g = to_global(arg.value)) return *std::move(g);
  return with_note(
      fail(arg.range, ErrorKind::kType, "{} is a constexpr_function and runs at compile time, but this argument is {}",
           def.name, describe(arg.value)),
      "help: pass constexprs, or put the function under @triton.jit");
}

/// A constexpr function that the host computes.
Result<Value> Codegen::evaluate_call(const JitFunction& function, const std::vector<Arg>& positional,
                                     const std::vector<std::pair<std::string, Arg>>& keywords, SourceRange range) {
  std::vector<Global> args;
  std::vector<std::pair<std::string, Global>> named;
  for (const Arg& a : positional) {
    KILN_TRY(args.emplace_back(), evaluated_argument(*function.def, a));
  }
  for (const auto& [name, a] : keywords) {
    KILN_TRY(Global g, evaluated_argument(*function.def, a));
    named.emplace_back(name, std::move(g));
  }
  Result<Global> result = function.evaluate(args, named);
  if (result.ok()) return from_global(*result);
  return fail(range, result.error().kind, "{}: {}", function.def->name, result.error().message);
}

Result<Value> Codegen::inline_call(const FunctionPtr& function, std::vector<Arg> positional,
                                   std::vector<std::pair<std::string, Arg>> keywords, SourceRange range) {
  KILN_CHECK_OK(step(range));
  KILN_CHECK_OK(check_language(*function));
  if (function->evaluate) return evaluate_call(*function, positional, keywords, range);
  if (function->aggregate) return construct(function, std::move(positional), std::move(keywords), range);
  if (!function->interpret || !function->constexpr_function)
    return inlined(function, std::move(positional), std::move(keywords), range);
  Result<Value> own = inlined(function, positional, keywords, range);
  if (own.ok() || steps_ > kMaxSteps || own.error().kind == ErrorKind::kMemory) return own;
  return interpreted(function, positional, keywords, range, std::move(own.error()));
}

Result<Value> Codegen::interpreted(const FunctionPtr& function, const std::vector<Arg>& positional,
                                   const std::vector<std::pair<std::string, Arg>>& keywords, SourceRange range,
                                   Diagnostic own) {
  std::vector<Global> args;
  std::vector<std::pair<std::string, Global>> named;
  for (const Arg& a : positional) {
    std::optional<Global> g = to_global(a.value);
    if (!g) return own;
    args.push_back(*std::move(g));
  }
  for (const auto& [name, a] : keywords) {
    std::optional<Global> g = to_global(a.value);
    if (!g) return own;
    named.emplace_back(name, *std::move(g));
  }
  Result<Global> result = function->interpret(function, args, named);
  if (result.ok()) return from_global(*result);
  // Of a name that is not there the frontend knows why.
  const ErrorKind kind = result.error().kind;
  if (kind == ErrorKind::kUnsupported || (kind == ErrorKind::kName && own.kind == kind)) return own;
  Diagnostic d = std::move(result.error());
  return d.place.line ? with_note(std::move(d), fmt::format("in {}, called from here", function->def->name), range)
                      : placed(range, d.kind, std::move(d.message));
}

Result<Value> Codegen::inlined(const FunctionPtr& function, std::vector<Arg> positional,
                               std::vector<std::pair<std::string, Arg>> keywords, SourceRange range,
                               std::optional<Value>* self) {
  const ast::FunctionDef& def = *function->def;
  KILN_TRY(std::vector<Arg> bound, bind_function(function, std::move(positional), std::move(keywords), range));
  if (options.as_triton && is_noinline(def))
    for (size_t i = 0; i < bound.size(); ++i)
      if (const ir::Value* v = bound[i].value.tensor(); v && v->type.is_tile() && v->type.shape.numel() != 1)
        return fail(bound[i].range, ErrorKind::kType, "{} is under jit(noinline=True), and its argument {} is {}",
                    def.name, def.params[i].name, describe(v->type));
  // Recursion is allowed as long as a constexpr argument changes. The same function with the same constexprs and types
  // would never end.
  for (const Frame& f : frames_) {
    if (f.function->def != &def || f.arguments.size() != bound.size()) continue;
    bool repeated = true;
    for (size_t i = 0; repeated && i < bound.size(); ++i) {
      const Value &x = f.arguments[i], &y = bound[i].value;
      repeated = x.tensor() && y.tensor() ? x.tensor()->type == y.tensor()->type : same(x, y);
    }
    if (repeated)
      return with_note(
          fail(range, ErrorKind::kUnsupported,
               "{} calls itself, and functions of a kernel are inlined, so recursion cannot end", def.name),
          "help: write it as a loop");
  }
  if (frames_.size() >= kMaxCallDepth)
    return fail(range, ErrorKind::kUnsupported, "calls are nested more than {} deep; write the recursion as a loop",
                kMaxCallDepth);
  // Diagnostics and line tables refer to the text of a helper's file after this compilation.
  if (function->module && !is_library(*function)) {
    const auto& kept = module.sources();
    if (std::find(kept.begin(), kept.end(), function->module->source) == kept.end())
      module.keep_alive(function->module->source);
  }
  if (function->constexpr_function && !function->in_aggregate)
    for (const Arg& a : bound)
      if (a.value.tensor())
        return with_note(fail(a.range, ErrorKind::kType,
                              "{} is a constexpr_function and runs at compile time, but this argument is {}", def.name,
                              describe(a.value)),
                         "help: pass constexprs, or put the function under @triton.jit");
  Frame f;
  f.function = function;
  f.call_site = range;
  f.uses = &uses_of(def);
  for (const Arg& a : bound) f.arguments.push_back(a.value);
  frames_.push_back(std::move(f));
  struct Pop {
    std::deque<Frame>& frames;
    ~Pop() { frames.pop_back(); }
  } pop{frames_};
  RangeScope scope(*this, def.name_range);
  for (size_t i = 0; i < bound.size(); ++i) {
    const ast::Param& p = def.params[i];
    if (!bound[i].range.text && p.default_value) {
      if (std::optional<Global> known = function->default_of ? function->default_of(p.name) : std::nullopt) {
        bound[i].value = from_global(*known);
      } else {
        KILN_TRY(bound[i].value, expr(*p.default_value));
      }
      bound[i].range = p.default_value->range;
    }
    // The annotation of a helper's parameter promises a constexpr, but a value of the running program passes: as in
    // Triton it is refused only where the helper needs to know it.
    const bool declared = is_constexpr(p) && !bound[i].value.tensor();
    KILN_CHECK_OK(bind(p.name, std::move(bound[i].value), p.range, declared));
  }
  KILN_CHECK_OK(body(pointers(def.body), true));
  Frame& done = frame();
  if (self) *self = done.env.find(def.params.at(0).name)->second.value;
  if (done.flow.kind == Flow::Kind::kFalls) return Value();
  if (done.flow.kind == Flow::Kind::kMaybe && done.result && !done.result->is_none())
    return with_note(
        fail(done.result_at, ErrorKind::kType, "{} returns {} here, but on other paths it ends without a value",
             def.name, describe(*done.result)),
        "help: end the function with a return");
  if (function->named_tuple && done.result && done.result->as_tuple()) {
    std::vector<std::string> fields;
    for (const ast::Param& p : def.params) fields.push_back(p.name);
    return Value::tuple(done.result->as_tuple()->items, std::move(fields));
  }
  return done.result.value_or(Value());
}

}  // namespace kiln::frontend
