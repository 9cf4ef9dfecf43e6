// The class statement, and type() with three arguments.
#include <algorithm>

#include "repl/script/interp/docstring.h"
#include "repl/script/interp/interp.h"
#include "repl/script/value/classes.h"

namespace kiln::script {

using namespace ast;

namespace {

/// The types of the language that classes can derive from.
bool can_be_base(Kind k) {
  return k == Kind::kDict || k == Kind::kList || k == Kind::kTuple || k == Kind::kStr || k == Kind::kInt ||
         k == Kind::kSet || k == FrozenSet::kKind;
}

/// Python's order of the classes behind one (C3): each before its bases, bases as they are listed. False: there is
/// none.
bool linearize(TypeObject& type) {
  std::vector<std::vector<TypeObject*>> lists;
  std::vector<TypeObject*> direct;
  // Each base's own order, and the order of the bases themselves, must all be kept.
  for (const auto& b : type.bases) {
    lists.push_back({b.get()});
    lists.back().insert(lists.back().end(), b->order.begin(), b->order.end());
    direct.push_back(b.get());
  }
  lists.push_back(std::move(direct));
  while (true) {
    TypeObject* next = nullptr;
    bool left = false;
    for (const auto& list : lists) {
      if (list.empty()) continue;
      left = true;
      // It must stand in no list behind another: that one comes first.
      const bool behind = std::any_of(lists.begin(), lists.end(), [&](const auto& other) {
        return std::find(other.begin() + (other.empty() ? 0 : 1), other.end(), list[0]) != other.end();
      });
      if (behind) continue;
      next = list[0];
      break;
    }
    if (!next) return !left;
    type.order.push_back(next);
    for (auto& list : lists) std::erase(list, next);
  }
}

bool is_abstract(Interp& in, const Value& member) {
  if (member.get<Property>()) {
    const Value& getter = member.get<Property>()->getter;
    return !getter.is_none() && is_abstract(in, getter);
  }
  const bool can_be = member.get<Function>() || member.get<ClassMethod>() || member.get<StaticMethod>();
  const auto mark = can_be ? in.find_attribute(member, "__isabstractmethod__") : std::nullopt;
  return mark && in.truth(*mark);
}

Ref<Dict> annotations_of(const Body& body) {
  auto out = make<Dict>();
  for (const StmtPtr& s : body) {
    const auto* a = dyn_as<AnnAssign>(s.get());
    const auto* name = a ? dyn_as<Name>(a->target.get()) : nullptr;
    if (!name) continue;
    const auto* quoted = dyn_as<ConstantExpr>(a->annotation.get());
    const auto* text = quoted ? std::get_if<std::string>(&quoted->value) : nullptr;
    // As text, which is what annotations are to scripts here (PEP 563).
    out->table.set(name->id, Value::str(text ? *text : std::string(a->annotation->range.str())));
  }
  return out;
}

}  // namespace

Ref<TypeObject> Interp::make_class(std::string name, const std::vector<Value>& bases, const Table& members,
                                   std::vector<KeywordArg> keywords) {
  auto type = make<TypeObject>(std::move(name));
  for (const Value& base : bases) {
    auto* t = base.get<TypeObject>();
    if (!t) fail(ErrorKind::kType, "a base class must be a class, got '{}'", type_name(base));
    // Every class derives from it; it adds nothing.
    if (t->of_kind == Kind::kInstance) continue;  // object
    if (t->of_kind && !can_be_base(*t->of_kind))
      fail(ErrorKind::kUnsupported, "deriving from the built-in type '{}' is not supported", t->name);
    const auto kind = t->of_kind ? t->of_kind : t->base_kind;
    // A value has one form of memory: that of its built-in base.
    if (kind && type->base_kind && kind != type->base_kind)
      fail(ErrorKind::kType, "a class cannot derive from both '{}' and '{}'", kind_name(*type->base_kind),
           kind_name(*kind));
    if (kind) type->base_kind = kind;
    // An error of the language keeps its kind in subclasses.
    if (t->error) type->error = t->error;
    type->bases.emplace_back(t);
  }
  if (!linearize(*type))
    fail(ErrorKind::kType, "the bases of '{}' are in an order that contradicts the order of their own bases",
         type->name);
  for (const auto& base : type->bases) {
    std::erase_if(base->derived, [](const auto& weak) { return !weak.lock() || !*weak.lock(); });
    base->derived.push_back(type->self);
  }
  type->members = members;
  if (Value* qualified = type->members.find("__qualname__"); qualified && qualified->get<Str>()) {
    type->qualified_name = qualified->get<Str>()->text;
    type->members.erase("__qualname__");
  }
  // Python: objects that compare by value have no hash unless they say so.
  if (type->members.find("__eq__") && !type->members.find("__hash__")) type->members.set("__hash__", Value::none());
  for (const auto& e : type->members.live()) {
    // For super() without arguments.
    if (auto* fn = e.value.get<Function>(); fn && !fn->owner) fn->owner = type->self;
    for (const Value* inner : {e.value.get<ClassMethod>() ? &e.value.get<ClassMethod>()->function : nullptr,
                               e.value.get<StaticMethod>() ? &e.value.get<StaticMethod>()->function : nullptr,
                               e.value.get<Property>() ? &e.value.get<Property>()->getter : nullptr,
                               e.value.get<Property>() ? &e.value.get<Property>()->setter : nullptr})
      if (auto* fn = inner ? inner->get<Function>() : nullptr; fn && !fn->owner) fn->owner = type->self;
  }
  if (Value* given = type->members.find("__slots__")) {
    std::vector<std::string> slots;
    if (given->get<Str>())
      slots.push_back(given->get<Str>()->text);
    else
      for (const Value& v : to_vector(*given)) slots.push_back(to_text(v, "a name of __slots__"));
    for (std::string& slot : slots)
      if (slot.starts_with("__") && !slot.ends_with("__"))
        slot = "_" + type->name.substr(std::min(type->name.find_first_not_of('_'), type->name.size())) + slot;
    // Instances have a dict as soon as one class on the way has one.
    bool closed = std::find(slots.begin(), slots.end(), "__dict__") == slots.end();
    for (const auto& b : type->bases) {
      closed = closed && b->slots;
      if (b->slots) slots.insert(slots.end(), b->slots->begin(), b->slots->end());
    }
    if (closed) type->slots = std::move(slots);
  }
  // Metaclasses that change nothing (ABCMeta) are taken.
  std::erase_if(keywords, [&](const KeywordArg& k) {
    if (k.name != "metaclass") return false;
    auto* meta = k.value.get<TypeObject>();
    if (!meta || (meta->of_kind != Kind::kType && !meta->find("__accepted_as_metaclass__")))
      fail(with_note(error(ErrorKind::kUnsupported, "metaclasses are not supported"),
                     "help: use __init_subclass__ in a base class, or a decorator of the class"));
    return true;
  });
  for (TypeObject* t : type->order)
    for (const std::string& method : t->abstract)
      if (std::find(type->abstract.begin(), type->abstract.end(), method) == type->abstract.end() &&
          is_abstract(*this, *type->find(method)))
        type->abstract.push_back(method);
  for (const auto& e : type->members.live())
    if (auto* key = e.key.get<Str>(); key && is_abstract(*this, e.value)) type->abstract.push_back(key->text);
  for (const auto& e : type->members.live())
    if (auto* i = e.value.get<Instance>(); i && i->type->find("__set_name__"))
      special(*this, i, "__set_name__", {Value(type), e.key});
  // The nearest base's hook alone: it calls super() itself.
  for (TypeObject* t : type->order) {
    Value* hook = t->members.find("__init_subclass__");
    if (!hook) continue;
    CallArgs args;
    args.args.push_back(type);
    for (KeywordArg& k : keywords) args.keywords.push_back(std::move(k));
    auto* wrapped = hook->get<ClassMethod>();
    call(wrapped ? wrapped->function : Value(*hook), args);
    return type;
  }
  if (!keywords.empty()) fail(ErrorKind::kType, "the class '{}' takes no keyword '{}'", type->name, keywords[0].name);
  return type;
}

void Interp::exec_class(const ClassDef& s, Frame& f) {
  std::vector<Value> decorators, bases;
  for (const ExprPtr& d : s.decorators) decorators.push_back(eval(*d, f));
  // Decorators and bases before the body, in the order of the text.
  for (const ExprPtr& b : s.bases) bases.push_back(eval(*b, f));
  std::vector<KeywordArg> keywords;
  for (const Keyword& k : s.keywords) keywords.push_back({k.name, eval(*k.value, f), {}});
  Frame body(f.program, *f.program.codes.at(&s));
  const std::vector<Ref<Cell>> free = f.captured(body.code);
  body.free = &free;
  body.make_cells();
  exec(s.body, body);
  Table members;
  members.set("__module__", Value::str(f.program.globals->module));
  members.set("__qualname__", Value::str(body.code.qualified_name));
  if (Value doc = docstring_of(s.body); !doc.is_none()) members.set("__doc__", std::move(doc));
  for (size_t i = 0; i < body.code.slot_names.size(); ++i) {
    Value v = body.slots[i];
    if (auto* c = v.get<Cell>()) v = c->value;
    // Slots of the interpreter's own (their names have a '#') are no members.
    if (v.missing() || body.code.slot_names[i].find('#') != std::string::npos) continue;
    members.set(body.code.slot_names[i], std::move(v));
  }
  if (Ref<Dict> annotations = annotations_of(s.body); annotations->table.size() != 0)
    members.set("__annotations__", annotations);
  where_ = s.range;
  Ref<TypeObject> made = make_class(s.name, bases, members, std::move(keywords));
  made->def = &s;
  made->program = f.program.shared_from_this();
  Value result = made;
  // From the innermost on.
  for (size_t i = decorators.size(); i-- > 0;) {
    where_ = s.decorators[i]->range;
    result = call(decorators[i], {result});
  }
  store(binding_key(s.name), std::move(result), f);
}

}  // namespace kiln::script
