// The jit functions of a file, and the module-level names that they see. Nothing of the file is run: imports bind
// paths, and values are computed where they are asked for, as in constexpr functions (host.cc).
#include <algorithm>
#include <deque>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "compiler/ast/annotation.h"
#include "compiler/ast/walk.h"
#include "compiler/frontend/aggregate.h"
#include "compiler/frontend/changes.h"
#include "compiler/frontend/codegen.h"
#include "compiler/frontend/collect.h"
#include "compiler/frontend/dtype_limits.h"
#include "compiler/frontend/named_tuple.h"
#include "support/diag.h"

namespace kiln::frontend {

namespace {

class Collector {
 public:
  Collector(Program& program, FileNames& file, std::shared_ptr<const ast::Module> module)
      : module_(std::move(module)), program_(&program), file_(&file) {}

  void run() {
    bind(file_->context, file_->frame);
    find_changing(module_->body);
    visit(module_->body);
  }

  /// The jit functions that the functions and methods of a file make, as tests and factories of kernels do. They see
  /// the names of the function around them as far as these are known, once the file's are.
  void visit_functions(const ast::Body& body) {
    for (const ast::StmtPtr& s : body) {
      if (const auto* c = ast::dyn_as<ast::ClassDef>(s.get())) visit_functions(c->body);
      if (const auto* c = ast::dyn_as<ast::If>(s.get())) visit_functions(c->body), visit_functions(c->else_body);
      if (const auto* w = ast::dyn_as<ast::With>(s.get())) visit_functions(w->body);
      if (const auto* l = ast::dyn_as<ast::For>(s.get())) visit_functions(l->body);
      if (const auto* t = ast::dyn_as<ast::Try>(s.get())) {
        visit_functions(t->body);
        visit_functions(t->else_body);
        for (const ast::Try::Handler& h : t->handlers) visit_functions(h.body);
        visit_functions(t->finally_body);
      }
      if (const auto* f = ast::dyn_as<ast::FunctionDef>(s.get()); f && makes_functions(*f)) {
        FileNames& inner = file_->inner.emplace_back();
        inner.names = file_->names, inner.plain = file_->plain, inner.changing = file_->changing;
        inner.classes = file_->classes;
        inner.locals = file_->locals;
        inner.around = f;
        inner.locals.merge(assigned_names(f->body));
        for (const ast::Param& p : f->params) inner.locals.insert(p.name);
        for (const std::string& name : inner.locals) inner.names.erase(name), inner.plain.erase(name);
        Collector made(*program_, inner, module_);
        made.bind(inner.context, inner.frame);
        made.find_changing(f->body);
        made.visit(f->body);
        made.visit_functions(f->body);
      }
    }
  }

 private:
  /// Whether decorated functions are below it: those that are jit functions are found when their decorators are read.
  static bool makes_functions(const ast::FunctionDef& def) {
    bool found = false;
    ast::walk(
        def.body,
        [&](const ast::Stmt& s) {
          const auto* f = ast::dyn_as<ast::FunctionDef>(&s);
          found = found || (f && !f->decorators.empty());
        },
        [](const ast::Expr&) {});
    return found;
  }

  void visit(const ast::Body& body) {
    for (const ast::StmtPtr& s : body) {
      if (const auto* i = ast::dyn_as<ast::Import>(s.get())) import(*i);
      if (const auto* f = ast::dyn_as<ast::FunctionDef>(s.get());
          f && !(unreached_ && file_->names.contains(f->name))) {
        JitFunction* made = function(*f);
        if (made)
          set(f->name, FunctionPtr(FunctionPtr{}, made));
        else if (!keep_)
          file_->names.erase(f->name);
      }
      if (const auto* c = ast::dyn_as<ast::ClassDef>(s.get()))
        if (!named_tuple_class(*c) && !aggregate_class(*c)) namespace_class(*c);
      if (const auto* a = ast::dyn_as<ast::Assign>(s.get()))
        for (const ast::ExprPtr& target : a->targets) assign(*target, *a->value);
      if (const auto* w = ast::dyn_as<ast::With>(s.get())) visit(w->body);
      if (const auto* l = ast::dyn_as<ast::For>(s.get())) visit_branch(l->body);
      if (const auto* a = ast::dyn_as<ast::AnnAssign>(s.get())) annotated(*a);
      if (const auto* t = ast::dyn_as<ast::Try>(s.get())) {
        const bool all_found = imports_triton(t->body);
        for (const ast::Body* reached : {&t->body, &t->else_body}) all_found ? visit(*reached) : visit_branch(*reached);
        for (const ast::Try::Handler& h : t->handlers) all_found ? visit_unreached(h.body) : visit_other(h.body);
        visit(t->finally_body);
      }
      if (const auto* c = ast::dyn_as<ast::If>(s.get())) {
        const std::optional<bool> holds = condition(*c->condition);
        if (holds) {
          visit(*holds ? c->body : c->else_body);
          // What is for another vendor's GPU has kernels too, which may compile for this one.
          if (asks_for_vendor(*c->condition)) visit_unreached(*holds ? c->else_body : c->body);
        } else {
          visit_branch(c->body), visit_other(c->else_body);
        }
      }
    }
  }

  /// A condition that is computed, or that asks for another vendor's GPU: `IS_HIP`, `platform.is_rocm()`.
  std::optional<bool> condition(const ast::Expr& e) const {
    if (std::optional<Global> v = program_->value_of(e, *file_))
      if (const ast::Constant* c = constant(v)) return ast::truth(*c);
    if (const auto* u = ast::dyn_as<ast::Unary>(&e); u && u->op == ast::UnaryOp::kNot) {
      std::optional<bool> inner = condition(*u->operand);
      return inner ? std::optional<bool>(!*inner) : std::nullopt;
    }
    return asks_for_vendor(e);
  }

  /// Whether all imports of a `try` are Triton's or torch's, and found; its other statements are taken not to fail, so
  /// no handler runs.
  bool imports_triton(const ast::Body& body) {
    bool any = false;
    for (const ast::StmtPtr& s : body) {
      const auto* i = ast::dyn_as<ast::Import>(s.get());
      if (!i) continue;
      for (const ast::Import::Alias& n : i->names) {
        const bool member = !i->from_module.empty() && n.name != "*";
        const std::string path = i->from_module.empty() ? n.name
                                 : member               ? i->from_module + "." + n.name
                                                        : i->from_module;
        if (path == "torch" || path.starts_with("torch.")) continue;
        if (!path.starts_with("triton") || !resolve_path(path)) return false;
        any = true;
      }
    }
    return any;
  }

  /// Which branch runs is not known (it tests versions), nor whether an import fails; the first keeps what it names.
  void visit_other(const ast::Body& body) {
    bool outer = std::exchange(keep_, true);
    visit_branch(body);
    keep_ = outer;
  }
  /// A branch that does not run: names that are known stay.
  void visit_unreached(const ast::Body& body) {
    const bool outer = std::exchange(unreached_, true);
    visit_other(body);
    unreached_ = outer;
  }
  void visit_branch(const ast::Body& body) {
    ++branches_;
    visit(body);
    --branches_;
  }

  void bind(JitFunction& f, const ast::FunctionDef& def) {
    f.module = module_;
    f.def = &def;
    f.around = file_->around;
    f.constexpr_function = true;
    f.lookup = [program = program_, file = file_](std::string_view n) { return program->lookup_plain(*file, n); };
    f.member = [program = program_](std::string_view path, std::string_view name) -> std::optional<Global> {
      const FileNames* file = program->find(path);
      return file ? program->lookup_plain(*file, name) : std::nullopt;
    };
    if (program_->interpret)
      f.interpret = [program = program_](const FunctionPtr& function, std::span<const Global> positional,
                                         std::span<const std::pair<std::string, Global>> keywords) {
        return program->interpret(function, positional, keywords);
      };
  }

  /// `body` is the file's or a function's.
  void find_changing(const ast::Body& body) {
    Changes found = changes_of(module_->body, body);
    file_->changing.merge(found.changing);
    handed_on_ = std::move(found.handed_on);
  }

  void set_plain(const std::string& name, const ast::Expr& value) {
    if (unreached_ && file_->plain.contains(name)) return;
    const bool again = branches_ > 0 && file_->plain.contains(name);
    if (again || (handed_on_.contains(name) && makes_list(value))) file_->changing.insert(name);
    if (keep_ && file_->plain.contains(name)) return;
    file_->plain.insert_or_assign(name, Plain{&value, file_});
  }

  void set(std::string_view name, Global value) {
    auto it = file_->names.find(name);
    if (keep_ && it != file_->names.end() && !leads_nowhere(it->second)) return;
    // A path that Triton no longer has does not hide one that it has.
    if (it != file_->names.end() && leads_nowhere(value) && !leads_nowhere(it->second)) return;
    file_->plain.erase(std::string(name));
    file_->names.insert_or_assign(std::string(name), std::move(value));
  }

  static bool leads_nowhere(const Global& g) {
    const auto* m = std::get_if<ModulePath>(&g);
    return m && m->path.starts_with("triton") && !resolve_path(m->path);
  }
  static bool leads_into_triton(const Global& g) {
    const auto* m = std::get_if<ModulePath>(&g);
    return m && m->path.starts_with("triton") && resolve_path(m->path);
  }
  /// A value, not a module or a member of one that is not known.
  static bool is_value(const Global& g) {
    const auto* m = std::get_if<ModulePath>(&g);
    const std::optional<Value> found = m ? resolve_path(m->path) : std::nullopt;
    return !m || (found && !found->module());
  }

  /// The file of a module, or its name where there is no file.
  std::string path_of_module(const std::string& name) {
    std::string path;
    return program_->imported(name, module_->source->file_name(), &path) ? path : name;
  }

  /// The module that a call imports: `importlib.import_module("a.b")`, and pytest's importorskip, which skips the file
  /// where there is none; Triton and its modules also by a function whose name says so: `OptionalImport("triton")`.
  const std::string* imported_by(const ast::Call& call) const {
    const std::string path = path_of(*call.callee);
    const auto* name = call.args.empty() ? nullptr : ast::dyn_as<ast::ConstantExpr>(call.args[0].get());
    const auto* module = name ? std::get_if<std::string>(&name->value) : nullptr;
    if (!module || path == "importlib.import_module" || path == "pytest.importorskip") return module;
    const std::string_view callee = std::string_view(path).substr(path.rfind('.') + 1);
    const bool imports = callee.find("import") != callee.npos || callee.find("Import") != callee.npos;
    return imports && module->starts_with("triton") && is_known_module(*module) ? module : nullptr;
  }

  /// The module that a package which is not installed hands on, as plugins of vLLM import it: `from vllm.triton_utils
  /// import tl, triton`. Its usual name says which.
  /// So does the name that an old Triton under another one is given: `import triton_pre_mlir as triton`.
  static std::string handed_on(const std::string& path, std::string_view name) {
    if (is_known_module(path.substr(0, path.find('.')))) return path;
    return name == "triton" ? "triton" : name == "tl" ? "triton.language" : path;
  }

  /// The module that `from .. import jit` is of: in Triton's own text, which is beside the file, `triton`.
  std::string from_module(const std::string& name) const {
    const size_t dots = std::min(name.find_first_not_of('.'), name.size());
    if (dots == 0 || !program_->load) return name;
    const std::string folder = name.substr(0, dots), &here = module_->source->file_name();
    for (const char* own : {"runtime.jit", "language.core"})
      if (!program_->load(folder + own, here)) return name;
    return dots == name.size() ? "triton" : "triton." + name.substr(dots);
  }

  void import(const ast::Import& s) {
    const std::string& here = module_->source->file_name();
    const std::string whole_module = from_module(s.from_module);
    std::string path;
    for (const ast::Import::Alias& n : s.names) {
      if (s.from_module.empty()) {
        // `import a.b.c` binds a; with `as`, the whole path.
        const std::string bound = n.as.empty() ? n.name.substr(0, n.name.find('.')) : n.as;
        const std::string& whole = n.as.empty() ? bound : n.name;
        set(bound, ModulePath{program_->imported(whole, here, &path) ? path : handed_on(whole, bound)});
        continue;
      }
      const FileNames* from = program_->imported(whole_module, here, &path);
      if (n.name == "*") {
        for (const std::string& member : member_names(whole_module))
          set(member, ModulePath{whole_module + "." + member});
        if (from && from != file_)
          for (const auto& [name, value] : from->names)
            if (!name.starts_with("_")) set(name, value);
        continue;
      }
      const std::string& bound = n.as.empty() ? n.name : n.as;
      const std::string submodule = whole_module + (whole_module.ends_with(".") ? "" : ".") + n.name;
      if (auto it = from ? from->names.find(n.name) : decltype(from->names.find(n.name)){};
          from && it != from->names.end())
        set(bound, it->second);
      else
        set(bound, ModulePath{program_->imported(submodule, here, &path) ? path : handed_on(submodule, n.name)});
      if (auto it = from ? from->plain.find(n.name) : decltype(from->plain.find(n.name)){};
          from && it != from->plain.end()) {
        file_->plain.insert_or_assign(bound, it->second);
        if (from->changing.contains(n.name)) file_->changing.insert(bound);
      }
    }
  }

  /// Whether a dotted name starts with an imported one.
  bool imported(const ast::Expr& e) const {
    const ast::Expr* root = &e;
    while (const auto* a = ast::dyn_as<ast::Attribute>(root)) root = a->base.get();
    const auto* n = ast::dyn_as<ast::Name>(root);
    auto it = n ? file_->names.find(n->id) : file_->names.end();
    return it != file_->names.end() && std::holds_alternative<ModulePath>(it->second);
  }

  /// "triton.jit" for `jit` after `from triton import jit`; empty when it is no dotted name.
  std::string path_of(const ast::Expr& e) const {
    if (const auto* n = ast::dyn_as<ast::Name>(&e)) {
      auto it = file_->names.find(n->id);
      if (it == file_->names.end()) return n->id;
      const auto* m = std::get_if<ModulePath>(&it->second);
      return m ? m->path : std::string();
    }
    if (const auto* a = ast::dyn_as<ast::Attribute>(&e)) {
      std::string base = path_of(*a->base);
      return base.empty() ? base : base + "." + a->name;
    }
    return {};
  }

  static bool marks_jit(std::string_view path) {
    return path == "triton.jit" || path == "triton.runtime.jit" || path == "triton.runtime.jit.jit";
  }
  static bool marks_constexpr(std::string_view path) {
    return path == "triton.constexpr_function" || path == "triton.language.constexpr_function" ||
           path == "triton.language.core.constexpr_function" || path == "triton.runtime.jit.constexpr_function";
  }

  /// What leaves a function's values what they are: it remembers them, or keeps them from other compilers.
  static bool keeps_values(std::string_view path) {
    constexpr std::string_view kPaths[] = {"functools.lru_cache",    "functools.cache",
                                           "torch.compiler.disable", "torch.compiler.assume_constant_result",
                                           "torch._dynamo.disable",  "torch._dynamo.assume_constant_result"};
    return std::ranges::find(kPaths, path) != std::end(kPaths);
  }

  /// A decorator of the file's own, or of a file that it imports, which returns `triton.jit(function)`.
  bool makes_jit(const ast::Expr& decorator) const {
    std::optional<Global> value = evaluate(decorator);
    const auto* function = value ? std::get_if<FunctionPtr>(&*value) : nullptr;
    if (!function || !(*function)->plain) return false;
    bool found = false;
    ast::walk((*function)->def->body, [](const ast::Stmt&) {},
              [&](const ast::Expr& e) {
                const auto* call = ast::dyn_as<ast::Call>(&e);
                if (!call) return;
                found = found || call->callee->range.str() == "triton.jit" ||
                        ((*function)->module == module_ && marks_jit(path_of(*call->callee)));
              });
    return found;
  }

  /// Of `from vendor.jit import jit`, a package that is not installed. Those of other languages (numba's, jax's) have
  /// functions without a parameter that is tl.constexpr.
  bool is_unknown_jit(std::string_view path) const {
    return (path == "jit" || path.ends_with(".jit")) && !path.starts_with("triton.") && !program_->find(path);
  }
  bool has_constexpr_parameter(const ast::FunctionDef& def) const {
    return std::ranges::any_of(def.params, [&](const ast::Param& p) {
      return p.annotation && path_of(*p.annotation) == "triton.language.constexpr";
    });
  }

  /// The function, which no name has yet; null: what another decorator makes of it is not known.
  /// `of_aggregate`: it runs as Python's in what has it, whatever else decorates it.
  JitFunction* function(const ast::FunctionDef& def, bool of_aggregate = false) {
    bool jit = false, constexpr_function = false, gluon = false, keeps = true;
    std::vector<std::string> do_not_specialize;
    for (const ast::ExprPtr& d : def.decorators) {
      const auto* call = ast::dyn_as<ast::Call>(d.get());
      std::string path = path_of(call ? *call->callee : *d);
      gluon = gluon || path == "triton.experimental.gluon.jit" || path == "triton.experimental.gluon._runtime.jit";
      if (gluon || marks_jit(path)) {
        jit = true;
        for (size_t i = 0; call && i < call->keywords.size(); ++i)
          if (call->keywords[i].name == "do_not_specialize") do_not_specialize = listed(*call->keywords[i].value, def);
      }
      jit = jit || makes_jit(call ? *call->callee : *d) || (is_unknown_jit(path) && has_constexpr_parameter(def));
      constexpr_function = constexpr_function || path == "triton.language.constexpr" || marks_constexpr(path);
      keeps = keeps && keeps_values(path);
    }
    const bool plain = !jit && !constexpr_function;
    if (plain && !keeps && !of_aggregate) return nullptr;
    JitFunction& f = file_->functions.emplace_back();
    bind(f, def);
    f.plain = plain;
    f.gluon = gluon;
    if (jit) {
      f.constexpr_function = false;
      f.do_not_specialize = std::move(do_not_specialize);
      show_to_kernels(f);
    }
    return &f;
  }

  /// A class of NamedTuple: kernels make tuples by it.
  bool named_tuple_class(const ast::ClassDef& c) {
    Result<std::optional<JitFunction>> made = named_tuple(c);
    if (!made.ok() || !*made) return false;
    JitFunction& f = file_->functions.emplace_back(**std::move(made));
    show_to_kernels(f);
    set(c.name, FunctionPtr(FunctionPtr{}, &f));
    return true;
  }

  /// A class under @_aggregate: kernels make objects by it, which have its methods.
  bool aggregate_class(const ast::ClassDef& c) {
    if (std::ranges::none_of(c.decorators, [&](const ast::ExprPtr& d) { return marks_aggregate(path_of(*d)); }))
      return false;
    const std::shared_ptr<AggregateClass> made = aggregate_of(c);
    JitFunction* constructor = nullptr;
    for (const ast::StmtPtr& s : c.body) {
      const auto* def = ast::dyn_as<ast::FunctionDef>(s.get());
      JitFunction* f = def ? function(*def, true) : nullptr;
      if (!f) continue;
      make_member(*f, *made, !f->constexpr_function);
      if (def->name == "__init__") constructor = f;
      const bool is_static =
          std::ranges::any_of(def->decorators, [&](const ast::ExprPtr& d) { return path_of(*d) == "staticmethod"; });
      made->members.insert_or_assign(def->name, AggregateClass::Member{FunctionPtr(FunctionPtr{}, f), is_static});
    }
    if (!constructor) {
      Result<JitFunction> implicit = implicit_constructor(*made, c);
      if (!implicit.ok()) return false;
      constructor = &file_->functions.emplace_back(*std::move(implicit));
      show_to_kernels(*constructor);
    }
    make_constructor(*constructor, made);
    set(c.name, FunctionPtr(FunctionPtr{}, constructor));
    return true;
  }

  /// `T = namedtuple("T", ["a", "b"])` or `"a b"`: the same as a class.
  std::optional<Global> named_tuple_call(const ast::Call& call) {
    if (path_of(*call.callee) != "collections.namedtuple" || call.args.size() != 2 || !call.keywords.empty())
      return std::nullopt;
    const std::string* name = text_of(*call.args[0]);
    const std::vector<NamedTupleField> fields = named_tuple_fields(*call.args[1]);
    if (!name || fields.empty()) return std::nullopt;
    Result<JitFunction> made = named_tuple(*name, fields, call.range.text->file_name(), place_of(call.range).line);
    if (!made.ok()) return std::nullopt;
    JitFunction& f = file_->functions.emplace_back(*std::move(made));
    show_to_kernels(f);
    return Global(FunctionPtr(FunctionPtr{}, &f));
  }
  /// The values that a class gives names: `class Mode(enum.IntEnum): A = 1`. Constants of the file are made of them, as
  /// `A = tl.constexpr(Mode.A.value)`; kernels do not see them.
  void class_of_values(const ast::ClassDef& c) {
    GlobalTuple members;
    ast::Int next = 1;
    for (const ast::StmtPtr& s : c.body) {
      const auto* a = ast::dyn_as<ast::Assign>(s.get());
      const auto* typed = ast::dyn_as<ast::AnnAssign>(s.get());
      const ast::Expr* target = a && a->targets.size() == 1 ? a->targets[0].get()
                                : typed                     ? typed->target.get()
                                                            : nullptr;
      const ast::Expr* value = a ? a->value.get() : typed ? typed->value.get() : nullptr;
      const auto* name = target ? ast::dyn_as<ast::Name>(target) : nullptr;
      if (!name || !value) continue;
      const auto* call = ast::dyn_as<ast::Call>(value);
      std::optional<Global> known;
      if (call && path_of(*call->callee) == "enum.auto")
        known = ast::Constant(next);
      else
        known = computed(*value);
      if (!known) continue;
      if (const ast::Constant* v = constant(known))
        if (const auto* n = std::get_if<ast::Int>(v)) next = *n + 1;
      members.items.push_back(*std::move(known));
      members.fields.push_back(name->id);
    }
    if (members.items.empty() || file_->changing.contains(c.name)) return;
    file_->classes.insert_or_assign(c.name, std::make_shared<const GlobalTuple>(std::move(members)));
  }

  /// A class that holds jit functions, as `ReLU.forward`: a tuple whose items have names. Decorators (aggregates) make
  /// other classes.
  void namespace_class(const ast::ClassDef& c) {
    if (!c.decorators.empty()) return;
    GlobalTuple members;
    for (const ast::StmtPtr& s : c.body) {
      const auto* def = ast::dyn_as<ast::FunctionDef>(s.get());
      JitFunction* f = def && !def->decorators.empty() ? function(*def) : nullptr;
      if (!f) continue;
      f->class_name = c.name;
      members.items.emplace_back(FunctionPtr(FunctionPtr{}, f));
      members.fields.push_back(def->name);
    }
    if (members.items.empty()) return class_of_values(c);
    set(c.name, std::make_shared<const GlobalTuple>(std::move(members)));
  }

  /// What a jit function of this file finds under a name, and its defaults.
  void show_to_kernels(JitFunction& f) {
    if (file_->around)
      f.hidden = [file = file_](std::string_view name) -> std::optional<HiddenName> {
        if (!file->locals.contains(name)) return std::nullopt;
        return HiddenName{.type = {}, .captured = true, .unknown = true};
      };
    f.lookup = [program = program_, file = file_](std::string_view name) { return program->lookup(*file, name); };
    f.member = [program = program_](std::string_view path, std::string_view name) -> std::optional<Global> {
      const FileNames* file = program->find(path);
      return file ? program->lookup(*file, name) : std::nullopt;
    };
    f.default_of = [program = program_, file = file_, def = f.def](std::string_view name) -> std::optional<Global> {
      for (const ast::Param& p : def->params)
        if (p.name == name && p.default_value && p.default_value->kind != ast::ExprKind::kConstant)
          if (std::optional<Global> v = program->value_of(*p.default_value, *file); v && is_value(*v)) return v;
      return std::nullopt;
    };
  }

  static std::vector<std::string> listed(const ast::Expr& e, const ast::FunctionDef& def) {
    const std::vector<ast::ExprPtr>* items = ast::items_of(&e);
    std::vector<std::string> out;
    for (size_t i = 0; items && i < items->size(); ++i) {
      const auto* c = ast::dyn_as<ast::ConstantExpr>((*items)[i].get());
      if (!c) continue;
      if (const auto* s = std::get_if<std::string>(&c->value)) out.push_back(*s);
      const auto* n = std::get_if<ast::Int>(&c->value);
      if (n && *n >= 0 && *n < static_cast<ast::Int>(def.params.size()))
        out.push_back(def.params[static_cast<size_t>(*n)].name);
    }
    return out;
  }

  void assign(const ast::Expr& target, const ast::Expr& from) {
    const std::vector<ast::ExprPtr>*names = ast::items_of(&target), *items = ast::items_of(&from);
    if (names && items && names->size() == items->size())
      for (size_t i = 0; i < names->size(); ++i) assign(*(*names)[i], *(*items)[i]);
    const auto* call = ast::dyn_as<ast::Call>(&from);
    if (names && call && calls_function(*call)) return assign_modules(*names, from);
    const auto* name = ast::dyn_as<ast::Name>(&target);
    if (!name) return;
    std::optional<Global> value;
    const bool wrapped = is_wrapped(call);
    if (wrapped)
      value = computed(*call->args[0]);
    else if (call && call->args.size() == 1 && marks_constexpr(path_of(*call->callee)))
      value = constexpr_function_of(*call->args[0]);
    else if (std::optional<Global> made = call ? decorated(*call, name->id) : std::nullopt)
      value = std::move(made);
    // An alias (`exp = tl.exp`) is visible; a plain number is not, as in Triton.
    else if (from.kind == ast::ExprKind::kAttribute || from.kind == ast::ExprKind::kName)
      value = evaluate(from);
    else if (const std::string* module = call ? imported_by(*call) : nullptr)
      value = ModulePath{path_of_module(*module)};
    else if (std::optional<Global> tuple = call ? named_tuple_call(*call) : std::nullopt)
      value = std::move(tuple);
    else if (from.kind == ast::ExprKind::kIfExp || from.kind == ast::ExprKind::kSubscript ||
             (call && calls_function(*call)))
      value = alias_of(from);
    if (value) return set(name->id, *std::move(value));
    // `triton = None` of a handler does not hide what the import names, nor `tl = MagicMock()` of a branch that may
    // run.
    const auto known = file_->names.find(name->id);
    if (known != file_->names.end() && (keep_ || (branches_ > 0 && leads_into_triton(known->second)))) return;
    file_->names.erase(name->id);
    if (!wrapped)
      set_plain(name->id, from);
    else if (branches_ > 0 && file_->plain.contains(name->id))
      file_->changing.insert(name->id);  // of the other branch
  }

  /// `triton, tl = imports()` of a function of the file.
  void assign_modules(const std::vector<ast::ExprPtr>& names, const ast::Expr& from) {
    const std::optional<Global> value = program_->value_of(from, *file_);
    const auto* tuple = value ? std::get_if<std::shared_ptr<const GlobalTuple>>(&*value) : nullptr;
    if (!tuple || (*tuple)->is_dict || (*tuple)->items.size() != names.size()) return;
    for (size_t i = 0; i < names.size(); ++i)
      if (const auto* n = ast::dyn_as<ast::Name>(names[i].get()))
        if (const auto* m = std::get_if<ModulePath>(&(*tuple)->items[i])) set(n->id, *m);
  }

  bool is_wrapped(const ast::Call* call) const {
    return call && path_of(*call->callee) == "triton.language.constexpr" && call->args.size() == 1;
  }

  /// `f = triton.constexpr_function(g)`: kernels may call f, also where g is a plain function. What is a function of
  /// Triton's (`tl.core.get_int_dtype`) is one that they may call already.
  std::optional<Global> constexpr_function_of(const ast::Expr& e) {
    std::optional<Global> value = evaluate(e);
    const auto* function = value ? std::get_if<FunctionPtr>(&*value) : nullptr;
    if (!function || !(*function)->plain) return value;
    JitFunction& f = file_->functions.emplace_back(**function);
    f.plain = false;
    return Global(FunctionPtr(FunctionPtr{}, &f));
  }

  /// What decorators of Triton give that are called: `f = triton.jit(g)`, `f = triton.autotune(…)(triton.jit(g))`, and
  /// those that are made first: `jit = functools.partial(triton.jit, debug=True)`.
  std::optional<Global> decorated(const ast::Call& call, const std::string& name) {
    const std::string path = path_of(*call.callee);
    if (path == "functools.partial" && call.args.size() == 1 && marks_jit(path_of(*call.args[0])))
      return ModulePath{"triton.jit"};
    if (marks_jit(path) && call.args.empty()) return ModulePath{"triton.jit"};
    const auto* maker = ast::dyn_as<ast::Call>(call.callee.get());
    const std::string made_by = maker ? path_of(*maker->callee) : path;
    const bool jit = marks_jit(made_by);
    constexpr std::string_view kOthers[] = {"triton.autotune", "triton.heuristics", "triton.runtime.autotuner.autotune",
                                            "triton.runtime.autotuner.heuristics"};
    const bool other = maker && std::ranges::find(kOthers, made_by) != std::end(kOthers);
    if (call.args.size() != 1 || (!jit && !other)) return std::nullopt;
    const auto* inner = ast::dyn_as<ast::Call>(call.args[0].get());
    std::optional<Global> of = inner ? decorated(*inner, name) : evaluate(*call.args[0]);
    const auto* function = of ? std::get_if<FunctionPtr>(&*of) : nullptr;
    if (!function || !(*function)->plain) return function ? of : std::nullopt;
    if (!jit) return std::nullopt;
    JitFunction& f = file_->functions.emplace_back(**function);
    f.plain = f.constexpr_function = false;
    f.bound_name = name;
    show_to_kernels(f);
    return Global(FunctionPtr(FunctionPtr{}, &f));
  }

  /// Functions of Python that give functions of Triton: `rsqrt = libdevice_find("rsqrt")`.
  bool calls_function(const ast::Call& call) const {
    if (const std::string path = path_of(*call.callee); path == "importlib.import_module" || path == "getattr")
      return true;
    std::optional<Global> callee = evaluate(*call.callee);
    const auto* f = callee ? std::get_if<FunctionPtr>(&*callee) : nullptr;
    return f && (*f)->constexpr_function;
  }

  /// Of `jit = triton.jit if HAS_TRITON else …` the first counts whose value is known, as of a statement's branches.
  std::optional<Global> alias_of(const ast::Expr& e) {
    std::optional<Global> v = program_->value_of(e, *file_);
    if (const auto* choice = ast::dyn_as<ast::IfExp>(&e); choice && !v)
      for (const ast::ExprPtr* side : {&choice->then_value, &choice->else_value}) {
        const bool names = (*side)->kind == ast::ExprKind::kAttribute || (*side)->kind == ast::ExprKind::kName;
        if (std::optional<Global> known = names ? evaluate(**side) : std::nullopt; known && !constant(known))
          return known;
      }
    if (!v || std::holds_alternative<ast::Constant>(*v)) return std::nullopt;
    return std::holds_alternative<std::shared_ptr<const GlobalTuple>>(*v) ? std::nullopt : unowned(*std::move(v));
  }

  /// A value for a kernel to see.
  std::optional<Global> computed(const ast::Expr& e) {
    if (std::optional<Global> v = program_->value_of(e, *file_)) return unowned(*std::move(v));
    return evaluate(e);
  }

  /// Functions in the tables do not own the program that owns them.
  static std::optional<Global> unowned(Global g) {
    if (const auto* f = std::get_if<FunctionPtr>(&g)) return Global(FunctionPtr(FunctionPtr{}, f->get()));
    const auto* tuple = std::get_if<std::shared_ptr<const GlobalTuple>>(&g);
    if (!tuple) return g;
    auto out = std::make_shared<GlobalTuple>(**tuple);
    for (Global& item : out->items) item = *unowned(std::move(item));
    return Global(std::shared_ptr<const GlobalTuple>(std::move(out)));
  }

  void annotated(const ast::AnnAssign& a) {
    const auto* name = ast::dyn_as<ast::Name>(a.target.get());
    if (!name || !a.value) return;
    const auto* call = ast::dyn_as<ast::Call>(a.value.get());
    const bool wrapped = is_wrapped(call);
    if (!wrapped && !ast::is_constexpr_annotation(*a.annotation)) return assign(*a.target, *a.value);
    if (std::optional<Global> value = computed(wrapped ? *call->args[0] : *a.value)) set(name->id, *std::move(value));
  }

  /// A module-level constant, as far as it can be had without running the file.
  std::optional<Global> evaluate(const ast::Expr& e) const {
    if (const auto* c = ast::dyn_as<ast::ConstantExpr>(&e)) return Global(c->value);
    if (const auto* n = ast::dyn_as<ast::Name>(&e)) {
      auto it = file_->names.find(n->id);
      return it == file_->names.end() ? std::nullopt : std::optional<Global>(it->second);
    }
    if (e.kind == ast::ExprKind::kAttribute) {
      const auto& a = ast::as<ast::Attribute>(e);
      if (const auto* call = ast::dyn_as<ast::Call>(a.base.get())) {
        std::optional<ast::Constant> limit = limit_of_call(*call, path_of(*call->callee), a.name);
        return limit ? std::optional<Global>(*std::move(limit)) : std::nullopt;
      }
      if (const FileNames* file = program_->find(path_of(*a.base))) {
        auto it = file->names.find(a.name);
        return it == file->names.end() ? std::nullopt : std::optional<Global>(it->second);
      }
      std::string path = path_of(e);
      std::optional<Value> v = path.empty() ? std::nullopt : resolve_path(path);
      // Of a module that is not known here: an error where a kernel uses it.
      if (!v) return path.empty() || !imported(e) ? std::nullopt : std::optional<Global>(ModulePath{path});
      if (v->type() && !v->type()->type.pointer) return Global(v->type()->type.dtype);
      if (v->constant()) return Global(*v->constant());
      return Global(ModulePath{path});
    }
    if (const auto* u = ast::dyn_as<ast::Unary>(&e)) {
      std::optional<Global> operand = evaluate(*u->operand);
      const ast::Constant* x = constant(operand);
      if (!x) return std::nullopt;
      return folded(ast::apply(u->op, *x, e.range));
    }
    if (const auto* b = ast::dyn_as<ast::Binary>(&e)) {
      std::optional<Global> l = evaluate(*b->left), r = evaluate(*b->right);
      const ast::Constant *x = constant(l), *y = constant(r);
      if (!x || !y) return std::nullopt;
      return folded(ast::apply(b->op, *x, *y, e.range));
    }
    if (const auto* items = ast::items_of(&e)) return tuple(*items);
    if (const auto* c = ast::dyn_as<ast::Call>(&e)) {
      if (path_of(*c->callee) == "triton.language.constexpr" && c->args.size() == 1) return evaluate(*c->args[0]);
      const auto* text = c->args.size() == 1 ? ast::dyn_as<ast::ConstantExpr>(c->args[0].get()) : nullptr;
      const auto* s = text ? std::get_if<std::string>(&text->value) : nullptr;
      if (s && path_of(*c->callee) == "float") {
        constexpr double kInf = std::numeric_limits<double>::infinity();
        if (*s == "inf" || *s == "+inf" || *s == "-inf") return Global(ast::Constant(*s == "-inf" ? -kInf : kInf));
        if (*s == "nan") return Global(ast::Constant(std::numeric_limits<double>::quiet_NaN()));
      }
    }
    return std::nullopt;
  }

  static const ast::Constant* constant(const std::optional<Global>& g) {
    return g ? std::get_if<ast::Constant>(&*g) : nullptr;
  }

  static std::optional<Global> folded(Result<ast::Constant> r) {
    if (!r.ok()) return std::nullopt;
    return Global(*std::move(r));
  }

  std::optional<Global> tuple(const std::vector<ast::ExprPtr>& items) const {
    auto out = std::make_shared<GlobalTuple>();
    for (const ast::ExprPtr& item : items) {
      std::optional<Global> v = evaluate(*item);
      if (!v) return std::nullopt;
      out->items.push_back(*std::move(v));
    }
    return Global(std::shared_ptr<const GlobalTuple>(std::move(out)));
  }

  std::shared_ptr<const ast::Module> module_;
  Program* program_;
  FileNames* file_;
  std::set<std::string, std::less<>> handed_on_;  // names that something else may hold the value of
  int branches_ = 0;                              // of if and try around the statement
  bool unreached_ = false;                        // in a handler that does not run
  bool keep_ = false;                             // in an else branch or a handler: names that are known stay
};

}  // namespace

FileNames& Program::add(const std::shared_ptr<const ast::Module>& module) {
  FileNames& file = files.try_emplace(module->source->file_name()).first->second;
  Collector(*this, file, module).run();
  return file;
}

Result<std::vector<FunctionPtr>> jit_functions(const std::shared_ptr<const ast::Module>& module, LoadModule load,
                                               Interpret interpret) {
  auto program = std::make_shared<Program>();
  program->load = std::move(load);
  program->interpret = std::move(interpret);
  FileNames& file = program->add(module);
  Collector(*program, file, module).visit_functions(module->body);
  program->load = {};  // all imports are done
  std::vector<FunctionPtr> out;
  auto add = [&](auto& self, const FileNames& names) -> void {
    for (const JitFunction& f : names.functions)
      if (!f.plain && !f.in_aggregate) out.emplace_back(program, &f);
    for (const FileNames& inner : names.inner) self(self, inner);
  };
  add(add, file);
  return out;
}

}  // namespace kiln::frontend
