// The kernel's own frame, names, and the placing of diagnostics.
#include "compiler/frontend/codegen.h"

#include <fmt/format.h>

#include "compiler/ast/annotation.h"
#include "support/environment.h"
#include "support/launch_options.h"
#include "support/tensor_map.h"

#include <algorithm>

namespace kiln::frontend {

Codegen::Codegen(ir::Module& m, const Options& o) : module(m), b(m), options(o) {}

Diagnostic Codegen::placed(SourceRange range, ErrorKind kind, std::string message) {
  // Inside the standard library the mistake is in the user's call of it.
  size_t i = frames_.size();
  std::string_view library;
  for (; i > 1 && is_library(*frames_[i - 1].function); --i) {
    range = frames_[i - 1].call_site;
    library = frames_[i - 1].function->def->name;
  }
  for (const Builtin& row : builtins())
    if (row.in_library() && row.name == library) message = fmt::format("{}: {}", row.display_name(), message);
  Diagnostic d{kind, std::move(message), place_of(range), {}};
  constexpr int kMaxCalls = 6;
  int shown = 0, hidden = 0;
  for (; i > 1; --i) {
    const Frame& f = frames_[i - 1];
    if (is_library(*f.function)) continue;
    if (++shown >= kMaxCalls && i > 2) {
      ++hidden;
      continue;
    }
    if (hidden) d = with_note(std::move(d), fmt::format("… {} calls between", hidden));
    d = with_note(std::move(d), fmt::format("in {}, called from here", f.function->def->name), f.call_site);
  }
  return d;
}

Status Codegen::step(SourceRange range) {
  if (++steps_ <= kMaxSteps) return {};
  if (computing())
    return with_note(
        fail(range, ErrorKind::kValue,
             "the kernel is not compiled after {} statements, the last of them of the constexpr function {}", kMaxSteps,
             frame().function->def->name),
        "help: it runs while the kernel is compiled; one of its loops may never end");
  return fail(range, ErrorKind::kValue,
              "the kernel unrolls to more than {} statements; use tl.range instead of tl.static_range", kMaxSteps);
}

Status Codegen::spend(size_t bytes, SourceRange range) {
  constexpr size_t kMostBytes = size_t{64} << 20;
  if (bytes > kMostBytes || (constexpr_bytes_ += bytes) > kMostBytes)
    return fail(range, ErrorKind::kMemory, "the constexprs of the kernel need more than {} MiB", kMostBytes >> 20);
  return {};
}

bool NameUses::any(std::string_view name, uint32_t from, uint32_t to) const {
  auto it = reads.find(name);
  if (it == reads.end()) return false;
  auto first = std::lower_bound(it->second.begin(), it->second.end(), from);
  return first != it->second.end() && *first < to;
}

const NameUses& Codegen::uses_of(const ast::FunctionDef& def) {
  auto [it, fresh] = uses_.try_emplace(&def);
  if (fresh) it->second = collect_uses(def);
  return it->second;
}

Result<Value> Codegen::name(std::string_view id, SourceRange range) {
  Env& env = frame().env;
  if (auto it = env.find(id); it != env.end()) {
    const Binding& binding = it->second;
    switch (binding.state) {
      case Binding::State::kLive:
        return binding.value;
      case Binding::State::kOneBranch: {
        Diagnostic d = fail(range, ErrorKind::kName,
                            "{} is bound in only one branch of an if on a runtime value, so it has no value here", id);
        d = with_note(std::move(d), "bound here", binding.at);
        return with_note(std::move(d), fmt::format("help: give {} a value before the if, or in both branches", id));
      }
      case Binding::State::kLoopOnly: {
        Diagnostic d =
            fail(range, ErrorKind::kName, "{} is first bound inside a loop, so it has no value after it", id);
        d = with_note(std::move(d), "bound here", binding.at);
        return with_note(std::move(d), fmt::format("help: give {} a value before the loop", id));
      }
    }
  }
  return global(id, range);
}

Result<Value> Codegen::global(std::string_view id, SourceRange range) {
  const JitFunction& function = *frame().function;
  auto key = std::pair(&function, std::string(id));
  // Cached per function: functions of other files have other globals.
  if (auto it = globals_.find(key); it != globals_.end()) return it->second;
  std::optional<Value> found;
  if (function.lookup)
    if (std::optional<Global> g = function.lookup(id)) found = from_global(*g);
  // A constexpr function calls any function of its file; a kernel only those that are decorated.
  if (found && found->function() && (*found->function())->plain && !function.constexpr_function) found.reset();
  if (!found)
    if (const Builtin* python = find_builtin(id, kIsPython)) found = Value(python);
  if (!found) found = host_name(id);
  if (!found) return unknown_name(id, range);
  globals_.emplace(std::move(key), *found);
  return *found;
}

Diagnostic Codegen::unknown_name(std::string_view id, SourceRange range) {
  const JitFunction& function = *frame().function;
  std::vector<std::string> candidates;
  const std::optional<HiddenName> hidden = function.hidden ? function.hidden(id) : std::nullopt;
  auto not_constexpr = [&](std::string_view what) {
    return fail(range, ErrorKind::kName, "{} is {}, and a kernel sees only those that are constexpr", id, what);
  };
  const std::string to_see_it =
      hidden && hidden->type.ends_with("Tensor")
          ? "help: pass it as an argument of the kernel"
          : fmt::format("help: write {} = tl.constexpr(…), or pass it as a tl.constexpr parameter", id);
  constexpr std::string_view kOnlyKernels =
      "{} is not a kernel function; only functions under @triton.jit or @triton.constexpr_function can be called from "
      "a kernel";
  if (hidden && hidden->unknown)
    return with_note(
        fail(range, ErrorKind::kName, "the value of {} is not known without running {}, which makes this function", id,
             function.around->name),
        "help: pass it as a tl.constexpr parameter; a launch from Python or from a script knows it");
  if (hidden && hidden->captured && hidden->type != "function")
    return with_note(not_constexpr("a variable of the function around the kernel"), to_see_it);
  if (function.module) {
    for (const ast::StmtPtr& s : function.module->body) {
      if (const auto* def = ast::dyn_as<ast::FunctionDef>(s.get())) {
        if (def->name == id)
          return with_note(fail(range, ErrorKind::kName, kOnlyKernels, id), "defined here", def->name_range);
        candidates.push_back(def->name);
      }
      if (const auto* c = ast::dyn_as<ast::ClassDef>(s.get()); c && c->name == id)
        return with_note(
            with_note(fail(range, ErrorKind::kUnsupported,
                           "{} is a class, and kernels make objects of aggregates and NamedTuples only", id),
                      "defined here", c->range),
            "help: derive the class from NamedTuple alone, or decorate it with "
            "triton.language.core._aggregate");
      const auto unknown = [&](SourceRange defined) {
        return with_note(
            with_note(fail(range, ErrorKind::kName, "the value of {} is not known without running the file", id),
                      "defined here", defined),
            "help: write the value there, or pass it as a tl.constexpr parameter");
      };
      if (const auto* a = ast::dyn_as<ast::AnnAssign>(s.get()); a && a->value)
        if (const auto* n = ast::dyn_as<ast::Name>(a->target.get()); n && n->id == id) {
          if (ast::is_constexpr_annotation(*a->annotation)) return unknown(a->value->range);
          return with_note(with_note(not_constexpr("a global variable"), "defined here", n->range), to_see_it);
        }
      const ast::Assign* a = ast::dyn_as<ast::Assign>(s.get());
      for (size_t i = 0; a && i < a->targets.size(); ++i)
        if (const auto* n = ast::dyn_as<ast::Name>(a->targets[i].get()); n && n->id == id) {
          const auto* made = ast::dyn_as<ast::Call>(a->value.get());
          if (made && made->callee->range.str().ends_with("constexpr")) return unknown(a->value->range);
          return with_note(with_note(not_constexpr("a global variable"), "defined here", n->range), to_see_it);
        }
      if (const auto* import = ast::dyn_as<ast::Import>(s.get()))
        for (const ast::Import::Alias& n : import->names) candidates.push_back(n.as.empty() ? n.name : n.as);
    }
  }
  // Of another entry of the prompt, or of a loop or an import.
  if (hidden && hidden->type == "function") return fail(range, ErrorKind::kName, kOnlyKernels, id);
  if (hidden && !hidden->builtin) return with_note(not_constexpr("a global variable"), to_see_it);
  for (const auto& [n, binding] : frame().env)
    if (binding.state == Binding::State::kLive) candidates.push_back(n);
  for (std::string& n : builtin_names(kIsPython)) candidates.push_back(std::move(n));
  if (id == ast::kImaginary) return fail(range, ErrorKind::kUnsupported, "kernels have no complex numbers");
  Diagnostic d = fail(range, ErrorKind::kName, "the name {} is not defined", id);
  if (id == "tl") return with_note(std::move(d), "help: add `import triton.language as tl`");
  if (id == "inf" || id == "nan") return with_note(std::move(d), fmt::format("help: write float(\"{}\")", id));
  if (id == "math")
    return with_note(std::move(d),
                     "help: functions of tensors are in tl, as tl.exp(x); those of numbers need `import math`");
  if (const std::optional<Value> ours = module_member("triton.language", id); ours && ours->type())
    return with_note(std::move(d), fmt::format("help: did you mean tl.{}?", id));
  if (id == "enumerate" || id == "zip")
    return with_note(std::move(d), "help: loops of a kernel count, `for i in range(n)`, or go through one tuple");
  if (std::string near = nearest_name(id, candidates); !near.empty())
    d = with_note(std::move(d), fmt::format("help: did you mean {}?", near));
  else if (const Builtin* builtin = find_builtin(id, kInLanguage | kInMath))
    d = with_note(std::move(d), fmt::format("help: did you mean {}?", builtin->display_name()));
  else if (hidden)
    d = with_note(std::move(d), fmt::format("help: of Python's own functions a kernel has {}",
                                            fmt::join(builtin_names(kIsPython), ", ")));
  return d;
}

Value Codegen::host_descriptor(const ast::Param& param, const ArgSpec& spec, const std::string& name) {
  const auto rank = spec.block.size();
  auto add = [&](const std::string& part, const ir::Type& type, int divisibility) {
    module.params.push_back({part, divisibility});
    return module.add_arg(module.body(), type, part);
  };
  // The launcher checks these alignments for TMA anyway, so the compiler may rely on them.
  const int aligned = kTensorMapAlignment / size_of(spec.type.dtype);
  auto descriptor = std::make_shared<DescriptorValue>();
  std::vector<ir::Value*> operands = {add(name, spec.type, kTensorMapAlignment)};
  for (size_t d = 0; d < rank; ++d)
    operands.push_back(add(fmt::format("{}.shape.{}", name, d), ir::scalar_type(DType::kI32),
                           d + 1 == rank && spec.divisibility == kTensorMapAlignment ? aligned : 1));
  for (size_t d = 0; d + 1 < rank; ++d)
    operands.push_back(add(fmt::format("{}.stride.{}", name, d), ir::scalar_type(DType::kI64), aligned));
  b.set_range(param.range);
  operands.push_back(b.constant_int(ir::scalar_type(DType::kI64), 1));
  const ir::Type type = ir::descriptor_type(spec.type.dtype, ir::Shape(spec.block));
  descriptor->handle = b.create(ir::OpKind::kMakeDescriptor, operands, std::span(&type, 1))->result();
  descriptor->type = type;
  descriptor->nan_outside = spec.nan_outside;
  for (size_t i = 0; i + 1 < operands.size(); ++i) descriptor->parts.push_back(Value(operands[i]));
  descriptor->parts.push_back(Value::integer(1));
  return Value(std::shared_ptr<const DescriptorValue>(std::move(descriptor)));
}

Value Codegen::argument(const ast::Param& param, const ArgSpec& spec, const std::string& name) {
  if (spec.is_tuple) {
    std::vector<Value> items;
    for (size_t i = 0; i < spec.items.size(); ++i)
      items.push_back(argument(param, spec.items[i], fmt::format("{}.{}", name, i)));
    return Value::tuple(std::move(items), spec.fields);
  }
  if (spec.is_constexpr) return from_global(spec.value);
  if (!spec.block.empty()) return host_descriptor(param, spec, name);
  const bool is_const =
      spec.type.pointer && (spec.is_const || (param.annotation && ast::is_const_annotation(*param.annotation)));
  module.params.push_back({name, spec.divisibility, is_const});
  return Value(module.add_arg(module.body(), spec.type, name));
}

Result<Value> Codegen::run_kernel(const JitFunction& function, std::span<const ArgSpec> args) {
  const ast::FunctionDef& def = *function.def;
  Frame f;
  // The caller keeps the function alive while the kernel is compiled.
  f.function = FunctionPtr(FunctionPtr{}, &function);
  f.uses = &uses_of(def);
  for (size_t i = 0; i < args.size(); ++i) {
    const ast::Param& p = def.params[i];
    bool declared = is_constexpr(p);
    if (declared && !args[i].is_constexpr && !args[i].is_tuple)
      return error_at(p.range, ErrorKind::kType,
                      "{} is a tl.constexpr parameter, so it needs a compile-time value, not {}", p.name,
                      describe(args[i].type));
    Value value = argument(p, args[i], p.name);
    f.arguments.push_back(value);
    f.env.insert_or_assign(p.name, Binding{std::move(value), p.range, declared});
  }
  frames_.push_back(std::move(f));
  KILN_CHECK_OK(body(pointers(def.body), true));
  if (frame().flow.kind != Flow::Kind::kFalls && frame().result && !frame().result->is_none())
    return fail(frame().result_at, ErrorKind::kType,
                "a kernel cannot return a value, got {}; store it through a pointer", describe(*frame().result));
  b.set_range(def.name_range);
  b.ret();
  frames_.pop_back();
  return Value();
}

bool is_constexpr(const ast::Param& param) {
  return param.annotation && ast::is_constexpr_annotation(*param.annotation);
}

Status check_language(const JitFunction& function) {
  if (!function.gluon) return {};
  return with_note(error_at(function.def->name_range, ErrorKind::kUnsupported,
                            "this is a Gluon function, and Kiln compiles Triton's language only"),
                   "help: write it with triton.language under @triton.jit; layouts, shared memory and the "
                   "instructions of a GPU follow from the program there (docs/language.md)");
}

Options options_of(const CodeOptions& code) {
  Options options = {code};
  options.dot_precision = environment("TRITON_F32_DEFAULT").value_or("");
  return options;
}

Result<std::unique_ptr<ir::Module>> lower_kernel(const JitFunction& function, std::span<const ArgSpec> args,
                                                 const Options& options) {
  const ast::FunctionDef& def = *function.def;
  KILN_CHECK_OK(check_language(function));
  if (function.constexpr_function)
    return error_at(def.name_range, ErrorKind::kType,
                    "{} is a constexpr_function, which runs at compile time and cannot be launched", def.name);
  for (size_t i = 0; i < def.params.size(); ++i) {
    const ast::Param& p = def.params[i];
    const bool given = p.kind == ast::Param::Kind::kArgs && i < args.size() && args[i].is_tuple;
    if ((p.kind == ast::Param::Kind::kArgs && !given) || p.kind == ast::Param::Kind::kKwargs)
      return error_at(p.range, ErrorKind::kUnsupported, "a kernel with *{} is not supported; name each parameter",
                      p.name);
  }
  for (const ast::Param& p : def.params)
    if (is_constexpr(p) && std::ranges::find(function.do_not_specialize, p.name) != function.do_not_specialize.end())
      return error_at(p.range, ErrorKind::kType, "{} is a constexpr and is listed in do_not_specialize", p.name);
  if (args.size() != def.params.size())
    return error_at(def.name_range, ErrorKind::kType, "{} has {} parameters, got {} arguments", def.name,
                    def.params.size(), args.size());
  if (std::string wrong = wrong_option(options); !wrong.empty())
    return error_at(def.name_range, ErrorKind::kValue, "{}", wrong);
  auto module = std::make_unique<ir::Module>(def.name);
  module->num_warps = options.num_warps;
  module->num_stages = options.num_stages;
  module->num_ctas = options.num_ctas;
  if (function.module) module->keep_alive(function.module->source);
  Codegen g(*module, options);
  auto done = g.run_kernel(function, args);
  if (!done.ok()) return std::move(done.error());
  if (Status s = ir::verify(*module); !s.ok()) return std::move(s.error());
  return module;
}

}  // namespace kiln::frontend
