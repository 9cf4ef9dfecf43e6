#include "repl/commands/compile_kernel_file.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "compiler/ast/walk.h"
#include "compiler/parse/parser.h"
#include "compiler/target/target.h"
#include "kiln/runtime.h"
#include "repl/commands/compile_imports.h"
#include "repl/commands/compile_texts.h"
#include "repl/magics/compile_stages.h"
#include "repl/modules/triton/constexpr_interp.h"
#include "support/diag.h"
#include "support/files.h"

namespace kiln::repl {

namespace {

bool returns_value(const ast::FunctionDef& def) {
  bool found = false;
  ast::walk(
      def.body,
      [&](const ast::Stmt& s) {
        const auto* r = ast::dyn_as<ast::Return>(&s);
        const auto* c = r ? ast::dyn_as<ast::ConstantExpr>(r->value.get()) : nullptr;
        found = found || (r && r->value && !(c && std::holds_alternative<ast::None>(c->value)));
      },
      [](const ast::Expr&) {});
  return found;
}

/// The same function, named as of a class of that name.
Function named(const Function& f, const std::string& holder) {
  struct Named {
    Function of;  // its file
    frontend::JitFunction function;
  };
  auto out = std::make_shared<Named>(Named{f, *f});
  std::string& name = out->function.class_name;
  name = name.empty() ? holder : holder + "." + name;
  return Function(out, &out->function);
}

/// Strings that are no Python, or in which no function is a kernel, are not texts of kernels.
std::vector<KernelFile> read_texts(const std::string& path, const ast::Module& module, const frontend::LoadModule& load,
                                   const frontend::Interpret& interpret) {
  std::vector<KernelFile> out;
  for (KernelText& t : kernel_texts(module)) {
    KernelFile file;
    auto parsed = parse::parse_kernel_file(SourceText::make(path, std::move(t.text)));
    if (!parsed.ok()) continue;
    file.module = *std::move(parsed);
    // `add = async_compile.triton("add", …)` names it as the function in it is named.
    const bool same_name = std::ranges::any_of(file.module->body, [&](const ast::StmtPtr& s) {
      const auto* f = ast::dyn_as<ast::FunctionDef>(s.get());
      return f && f->name == t.name;
    });
    auto functions = frontend::jit_functions(file.module, load, interpret);
    if (!functions.ok() || functions->empty()) continue;
    for (const Function& f : *functions) file.functions.push_back(same_name || t.name.empty() ? f : named(f, t.name));
    out.push_back(std::move(file));
  }
  return out;
}

std::vector<Function> functions_of(const KernelFile& file) {
  std::vector<Function> out = file.functions;
  for (const KernelFile& text : file.texts) out.insert(out.end(), text.functions.begin(), text.functions.end());
  return out;
}

}  // namespace

Result<std::shared_ptr<const ast::Module>> parse_file(const std::string& path) {
  KILN_TRY(std::string text, read_source(path));
  return parse::parse_kernel_file(SourceText::make(path, std::move(text)));
}

Result<KernelFile> read_functions(const std::string& path, std::string text) {
  KernelFile file;
  KILN_TRY(file.module, parse::parse_kernel_file(SourceText::make(path, std::move(text))));
  const frontend::LoadModule load = follow_imports();
  const frontend::Interpret interpret = script::interpret_constexpr();
  KILN_TRY(file.functions, frontend::jit_functions(file.module, load, interpret));
  file.texts = read_texts(path, *file.module, load, interpret);
  return file;
}

Result<KernelFile> load(const std::string& path) {
  KILN_TRY(std::string text, read_source(path));
  KILN_TRY(KernelFile file, read_functions(path, std::move(text)));
  if (file.functions.empty() && file.texts.empty())
    return with_note(error(ErrorKind::kName, "{} has no @triton.jit function", path),
                     "help: put @triton.jit before the kernel's def");
  return file;
}

std::vector<Function> kernels_of(const KernelFile& file) {
  std::set<std::string> called;
  for (const Function& f : file.functions)
    for (std::string& name : called_names(*f->def)) called.insert(std::move(name));
  std::vector<Function> kernels;
  for (const Function& f : file.functions)
    if (!f->constexpr_function && !called.contains(f->class_name.empty() ? f->own_name() : f->name()) &&
        !returns_value(*f->def))
      kernels.push_back(f);
  for (const KernelFile& text : file.texts)
    for (Function& f : kernels_of(text)) kernels.push_back(std::move(f));
  return kernels;
}

std::string names_of(const std::vector<Function>& functions) {
  std::string out;
  for (const Function& f : functions) out += (out.empty() ? "" : ", ") + f->name();
  return out;
}

Result<Function> find(const KernelFile& file, const std::string& name) {
  const std::vector<Function> functions = functions_of(file);
  if (name.empty()) {
    std::vector<Function> kernels = kernels_of(file);
    if (kernels.size() == 1) return kernels[0];
    // Beside those that functions make, as tests do, and those in strings, it is the file's kernel.
    const auto of_the_file = [&](const Function& f) {
      return !f->around && std::ranges::find(file.functions, f) != file.functions.end();
    };
    if (std::ranges::count_if(kernels, of_the_file) == 1) return *std::ranges::find_if(kernels, of_the_file);
    return error(ErrorKind::kName, "--kernel is needed: the file has {}",
                 kernels.empty() ? names_of(functions) : names_of(kernels));
  }
  std::vector<std::string> names;
  Function found;
  for (const Function& f : functions) {
    names.push_back(f->name());
    if (f->name() != name) continue;
    // Of several the one that has the name when the file has run.
    const auto last = f->class_name.empty() && !f->around ? f->lookup(name) : std::nullopt;
    const auto* bound = last ? std::get_if<Function>(&*last) : nullptr;
    if (!found || (bound && (*bound)->def == f->def)) found = f;
  }
  if (found) return found;
  for (const Function& f : functions)  // the first that a function makes
    if (f->around && f->own_name() == name) return f;
  Diagnostic d = error(ErrorKind::kName, "there is no kernel '{}'; the file has {}", name, names_of(functions));
  if (std::string near = nearest_name(name, names); !near.empty())
    return with_note(std::move(d), "help: did you mean '" + near + "'?");
  return d;
}

Result<Specialisation> specialise(const frontend::JitFunction& function, const CompileArgs& args, Evidence evidence,
                                  const Revision& revision) {
  KILN_CHECK_OK(frontend::check_language(function));  // before anybody asks for types
  std::vector<std::pair<std::string, frontend::Global>> constexprs;
  for (const std::string& text : args.constexprs) {
    KILN_TRY(constexprs.emplace_back(), parse_constexpr(text, &function));
  }
  // What this function has no parameter for belongs to another kernel of the file, unless only one is meant.
  std::erase_if(constexprs, [&](const auto& c) {
    return args.kernel.empty() && std::none_of(function.def->params.begin(), function.def->params.end(),
                                               [&](const ast::Param& p) { return p.name == c.first; });
  });
  Specialisation s;
  std::string signature = args.signature;
  if (signature.empty()) {
    s.assumed = assume_signature(function, constexprs, evidence, revision);
    signature = s.assumed.signature;
    constexprs = s.assumed.constexprs;
  }
  KILN_TRY(s.args, frontend::parse_signature(function, signature, constexprs));
  return s;
}

Result<std::string> target_name(const CompileArgs& args, const std::string& device) {
  if (!args.target.empty()) {
    if (target::find(args.target)) return args.target;
    return error(ErrorKind::kValue, "unknown target '{}'; the targets are {}", args.target,
                 fmt::join(target_names(), ", "));
  }
  const Runtime runtime;  // only asked what it has
  auto opened = device.empty() ? runtime.open_default() : runtime.open(device);
  if (!opened.ok()) return opened.error();
  return opened->info().target;
}

CompileOptions options_for(const CompileArgs& args, std::string target) {
  CompileOptions o;
  o.target = std::move(target);
  o.frontend = frontend::options_of(args.options);
  o.verify_each = args.verify_each;
  return o;
}

}  // namespace kiln::repl
