// `match`: which case a value matches, and what its pattern binds.
#include <algorithm>

#include "repl/script/interp/interp.h"
#include "repl/script/value/bytes.h"
#include "repl/script/value/classes.h"

namespace kiln::script {

using namespace ast;

namespace {

class Matcher {
 public:
  Matcher(Interp& in, Frame& frame) : in_(in), frame_(frame) {}

  bool matches(const Pattern& p, const Value& v) {
    in_.check_stack();
    if (!fits(p, v)) return false;
    if (!p.name.empty() && p.kind != Pattern::Kind::kStar) bound_.emplace_back(&p.name, v);
    return true;
  }

  /// What names are bound to once all of the pattern has matched.
  std::vector<std::pair<const std::string*, Value>>& bound() { return bound_; }

 private:
  bool fits(const Pattern& p, const Value& v) {
    switch (p.kind) {
      case Pattern::Kind::kAny:
        return true;
      case Pattern::Kind::kValue: {
        const Value wanted = in_.eval(*p.value, frame_);
        in_.set_where(p.range);
        return in_.equal(v, wanted);
      }
      case Pattern::Kind::kSingleton:
        return v.same(in_.eval(*p.value, frame_));
      case Pattern::Kind::kSequence:
        return sequence(p, v);
      case Pattern::Kind::kMapping:
        return mapping(p, v);
      case Pattern::Kind::kClass:
        return instance(p, v);
      case Pattern::Kind::kOr:
        return std::any_of(p.parts.begin(), p.parts.end(), [&](const Pattern& part) {
          const size_t before = bound_.size();
          if (matches(part, v)) return true;
          bound_.resize(before);  // of an alternative that matched in part
          return false;
        });
      case Pattern::Kind::kStar:
        break;
    }
    KILN_UNREACHABLE("a pattern by itself");
  }

  /// A class of the library or of the script says that it is one; texts and bytes are none, as in Python.
  bool is_marked(const Value& v, const char* mark) const {
    auto* o = v.object();
    return o && o->own_type() && (*o->own_type())->find(mark);
  }

  bool sequence(const Pattern& p, const Value& v) {
    if (!v.get<List>() && !v.get<Tuple>() && !v.get<Range>() && !is_marked(v, "__sequence_pattern__")) return false;
    in_.set_where(p.range);
    const auto n = static_cast<size_t>(in_.length(v));
    const auto star = std::find_if(p.parts.begin(), p.parts.end(),
                                   [](const Pattern& part) { return part.kind == Pattern::Kind::kStar; });
    const bool open = star != p.parts.end();
    if (open ? n + 1 < p.parts.size() : n != p.parts.size()) return false;
    const auto before = static_cast<size_t>(star - p.parts.begin());
    auto at = [&](size_t i) {
      in_.set_where(p.range);
      return in_.item(v, Value::integer(static_cast<int64_t>(i)));
    };
    for (size_t i = 0; i < before; ++i)
      if (!matches(p.parts[i], at(i))) return false;
    if (!open) return true;
    const size_t behind = p.parts.size() - before - 1;
    if (!star->name.empty()) {
      std::vector<Value> rest;
      for (size_t i = before; i < n - behind; ++i) rest.push_back(at(i));
      bound_.emplace_back(&star->name, make<List>(std::move(rest)));
    }
    for (size_t i = 0; i < behind; ++i)
      if (!matches(p.parts[before + 1 + i], at(n - behind + i))) return false;
    return true;
  }

  bool mapping(const Pattern& p, const Value& v) {
    auto* dict = v.get<Dict>();
    if (!dict && !is_marked(v, "__mapping_pattern__")) return false;
    std::vector<Value> keys;
    for (size_t i = 0; i < p.keys.size(); ++i) {
      keys.push_back(in_.eval(*p.keys[i], frame_));
      in_.set_where(p.keys[i]->range);
      // Not by an element: a defaultdict would make one.
      std::optional<Value> found;
      if (Value* held = dict ? dict->table.find(in_, keys.back()) : nullptr)
        found = *held;
      else if (!dict && in_.truth(in_.compare(CompareOp::kIn, keys.back(), v)))
        found = in_.item(v, keys.back());
      if (!found || !matches(p.parts[i], *found)) return false;
    }
    if (p.rest.empty()) return true;
    auto rest = make<Dict>();
    in_.set_where(p.range);
    in_.for_each(v, [&](const Value& key) {
      if (std::none_of(keys.begin(), keys.end(), [&](const Value& k) { return in_.equal(k, key); }))
        rest->table.set(in_, key, in_.item(v, key));
      return true;
    });
    bound_.emplace_back(&p.rest, rest);
    return true;
  }

  bool instance(const Pattern& p, const Value& v) {
    const Value type = in_.eval(*p.value, frame_);
    in_.set_where(p.value->range);
    auto* t = type.get<TypeObject>();
    if (!t) in_.fail(ErrorKind::kType, "a pattern with brackets needs a class, got '{}'", in_.type_name(type));
    if (!in_.is_instance(v, type)) return false;
    const size_t positional = p.parts.size() - p.attributes.size();
    size_t first = 0;
    std::vector<std::string> names;  // of the attributes that the patterns are for
    // Of the types of the language the one pattern is for the value itself.
    if (positional > 0 && is_plain(*t)) {
      if (positional > 1) fail_positional(*t, 1, positional);
      if (!matches(p.parts[0], v)) return false;
      first = 1;
      names.emplace_back();
    } else if (positional > 0) {
      names = match_arguments(*t, positional);
    }
    names.insert(names.end(), p.attributes.begin(), p.attributes.end());
    for (size_t i = first; i < p.parts.size(); ++i) {
      in_.set_where(p.range);
      const auto member = in_.find_attribute(v, names[i]);
      if (!member || !matches(p.parts[i], *member)) return false;
    }
    return true;
  }

  bool is_plain(TypeObject& t) const {
    const auto kind = t.of_kind ? t.of_kind : t.base_kind;
    if (!kind || t.find("__match_args__")) return false;
    constexpr Kind kKinds[] = {Kind::kBool, Kind::kInt,   Kind::kFloat, Kind::kStr,
                               Kind::kList, Kind::kTuple, Kind::kDict,  Kind::kSet};
    return std::find(std::begin(kKinds), std::end(kKinds), *kind) != std::end(kKinds) || *kind == FrozenSet::kKind ||
           *kind == Bytes::kKind || *kind == ByteArray::kKind;
  }

  /// The attributes that so many patterns without a name are for; more than the class names fail before any is tried.
  std::vector<std::string> match_arguments(TypeObject& t, size_t positional) {
    const Value* given = t.find("__match_args__");
    auto* names = given ? given->get<Tuple>() : nullptr;
    if (given && !names)
      in_.fail(ErrorKind::kType, "{}.__match_args__ must be a tuple, got '{}'", t.name, in_.type_name(*given));
    const size_t most = names ? names->items.size() : 0;
    if (positional > most) fail_positional(t, most, positional);
    std::vector<std::string> out;
    for (size_t i = 0; i < positional; ++i) out.push_back(in_.to_text(names->items[i], "an element of __match_args__"));
    return out;
  }

  [[noreturn]] void fail_positional(TypeObject& t, size_t most, size_t given) {
    in_.fail(ErrorKind::kType, "{}() accepts {} positional sub-pattern{} ({} given)", t.name, most,
             most == 1 ? "" : "s", given);
  }

  Interp& in_;
  Frame& frame_;
  std::vector<std::pair<const std::string*, Value>> bound_;
};

}  // namespace

const Body* Interp::chosen_case(const Match& s, Frame& f) {
  const Value subject = eval(*s.subject, f);
  for (const Match::Case& c : s.cases) {
    Matcher matcher(*this, f);
    if (!matcher.matches(c.pattern, subject)) continue;
    for (auto& [name, value] : matcher.bound()) store(binding_key(*name), std::move(value), f);
    if (!c.guard || truth(eval(*c.guard, f))) return &c.body;
  }
  return nullptr;
}

}  // namespace kiln::script
