// The jit functions of a file, and the module-level names that they see. Nothing of the file is run: imports bind
// paths, and assignments are evaluated when they are constants, dtypes, names or tuples of these.
#include <deque>
#include <limits>
#include <map>
#include <memory>
#include <optional>

#include "compiler/ast/annotation.h"
#include "compiler/frontend/builtins.h"
#include "support/diag.h"

namespace kiln::frontend {

namespace {

/// What a file defines. It owns the functions; each FunctionPtr that leaves shares ownership of the whole file, and the
/// table holds plain references, so that nothing keeps itself alive.
struct FileNames : std::enable_shared_from_this<FileNames> {
  std::deque<JitFunction> functions;
  std::map<std::string, Global, std::less<>> names;

  std::optional<Global> lookup(std::string_view name) const {
    auto it = names.find(name);
    if (it == names.end()) return std::nullopt;
    if (const auto* f = std::get_if<FunctionPtr>(&it->second)) return Global(FunctionPtr(shared_from_this(), f->get()));
    return it->second;
  }
};

class Collector {
 public:
  explicit Collector(std::shared_ptr<const ast::Module> module)
      : module_(std::move(module)), file_(std::make_shared<FileNames>()) {}

  Result<std::vector<FunctionPtr>> run() {
    visit(module_->body);
    std::vector<FunctionPtr> out;
    for (const JitFunction& f : file_->functions) out.emplace_back(file_, &f);
    return out;
  }

 private:
  void visit(const ast::Body& body) {
    for (const ast::StmtPtr& s : body) {
      if (const auto* i = ast::dyn_as<ast::Import>(s.get())) import(*i);
      if (const auto* f = ast::dyn_as<ast::FunctionDef>(s.get())) function(*f);
      if (const auto* a = ast::dyn_as<ast::Assign>(s.get())) assign(*a);
      if (const auto* a = ast::dyn_as<ast::AnnAssign>(s.get())) annotated(*a);
      if (const auto* t = ast::dyn_as<ast::Try>(s.get())) visit(t->body);
      if (const auto* c = ast::dyn_as<ast::If>(s.get())) {
        // Which branch runs is not known (it tests versions); the first keeps what it names.
        visit(c->body);
        bool outer = keep_;
        keep_ = true;
        visit(c->else_body);
        keep_ = outer;
      }
    }
  }

  void set(std::string_view name, Global value) {
    auto it = file_->names.find(name);
    if (keep_ && it != file_->names.end() && !leads_nowhere(it->second)) return;
    // A path that Triton no longer has does not hide one that it has.
    if (it != file_->names.end() && leads_nowhere(value) && !leads_nowhere(it->second)) return;
    file_->names.insert_or_assign(std::string(name), std::move(value));
  }

  static bool leads_nowhere(const Global& g) {
    const auto* m = std::get_if<ModulePath>(&g);
    return m && m->path.starts_with("triton") && !resolve_path(m->path);
  }

  void import(const ast::Import& s) {
    for (const ast::Import::Alias& n : s.names) {
      if (s.from_module.empty()) {
        // `import a.b.c` binds a; with `as`, the whole path.
        std::string bound = n.as.empty() ? n.name.substr(0, n.name.find('.')) : n.as;
        set(bound, ModulePath{n.as.empty() ? bound : n.name});
      } else if (n.name == "*") {
        for (const std::string& member : member_names(s.from_module))
          set(member, ModulePath{s.from_module + "." + member});
      } else {
        set(n.as.empty() ? n.name : n.as, ModulePath{s.from_module + "." + n.name});
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

  void function(const ast::FunctionDef& def) {
    bool jit = false, constexpr_function = false;
    std::vector<std::string> do_not_specialize;
    for (const ast::ExprPtr& d : def.decorators) {
      const auto* call = ast::dyn_as<ast::Call>(d.get());
      std::string path = path_of(call ? *call->callee : *d);
      if (path == "triton.jit" || path == "triton.runtime.jit" || path == "triton.runtime.jit.jit") {
        jit = true;
        for (size_t i = 0; call && i < call->keywords.size(); ++i)
          if (call->keywords[i].name == "do_not_specialize") do_not_specialize = listed(*call->keywords[i].value, def);
      }
      constexpr_function = constexpr_function || path == "triton.constexpr_function" ||
                           path == "triton.language.constexpr_function" ||
                           path == "triton.language.core.constexpr_function" || path == "triton.language.constexpr";
    }
    if (!jit && !constexpr_function) {
      file_->names.erase(def.name);
      return;
    }
    JitFunction& f = file_->functions.emplace_back();
    f.module = module_;
    f.def = &def;
    f.constexpr_function = constexpr_function;
    f.do_not_specialize = std::move(do_not_specialize);
    f.lookup = [file = file_.get()](std::string_view name) { return file->lookup(name); };
    set(def.name, FunctionPtr(FunctionPtr{}, &f));
  }

  static std::vector<std::string> listed(const ast::Expr& e, const ast::FunctionDef& def) {
    const std::vector<ast::ExprPtr>* items = nullptr;
    if (const auto* l = ast::dyn_as<ast::List>(&e)) items = &l->items;
    if (const auto* t = ast::dyn_as<ast::Tuple>(&e)) items = &t->items;
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

  void assign(const ast::Assign& a) {
    for (const ast::ExprPtr& t : a.targets) {
      const auto* name = ast::dyn_as<ast::Name>(t.get());
      if (!name) continue;
      std::optional<Global> value;
      const auto* call = ast::dyn_as<ast::Call>(a.value.get());
      bool wrapped = call && path_of(*call->callee) == "triton.language.constexpr" && call->args.size() == 1;
      if (wrapped) value = evaluate(*call->args[0]);
      // An alias (`exp = tl.exp`) is visible; a plain number is not, as in Triton.
      else if (a.value->kind == ast::ExprKind::kAttribute || a.value->kind == ast::ExprKind::kName)
        value = evaluate(*a.value);
      if (value)
        set(name->id, *std::move(value));
      else
        file_->names.erase(name->id);
    }
  }

  void annotated(const ast::AnnAssign& a) {
    const auto* name = ast::dyn_as<ast::Name>(a.target.get());
    if (!name || !a.value || !ast::is_constexpr_annotation(*a.annotation)) return;
    const auto* call = ast::dyn_as<ast::Call>(a.value.get());
    bool wrapped = call && path_of(*call->callee) == "triton.language.constexpr" && call->args.size() == 1;
    if (std::optional<Global> value = evaluate(wrapped ? *call->args[0] : *a.value)) set(name->id, *std::move(value));
  }

  /// A module-level constant, as far as it can be had without running the file.
  std::optional<Global> evaluate(const ast::Expr& e) const {
    if (const auto* c = ast::dyn_as<ast::ConstantExpr>(&e)) return Global(c->value);
    if (const auto* n = ast::dyn_as<ast::Name>(&e)) {
      auto it = file_->names.find(n->id);
      return it == file_->names.end() ? std::nullopt : std::optional<Global>(it->second);
    }
    if (e.kind == ast::ExprKind::kAttribute) {
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
    if (const auto* t = ast::dyn_as<ast::Tuple>(&e)) return tuple(t->items);
    if (const auto* l = ast::dyn_as<ast::List>(&e)) return tuple(l->items);
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
  std::shared_ptr<FileNames> file_;
  bool keep_ = false;  // in an else branch: names that are known stay
};

}  // namespace

Result<std::vector<FunctionPtr>> jit_functions(std::shared_ptr<const ast::Module> module) {
  return Collector(std::move(module)).run();
}

}  // namespace kiln::frontend
