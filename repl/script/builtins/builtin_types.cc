// Types that can be called: int("3"), list(x), type(x)…
#include <cmath>
#include <cstdlib>
#include <optional>

#include "repl/script/builtins/builtins.h"
#include "repl/script/value/bytes.h"
#include "repl/script/value/classes.h"
#include "support/text_width.h"
#include "support/unicode.h"

namespace kiln::script {

namespace {

/// A text that is a number, without the spaces around it and with ASCII's digits in the place of others.
std::string stripped(std::string_view s) {
  std::string out;
  size_t end = 0;  // behind the last character that is no space
  for (size_t i = 0; i < s.size();) {
    const Character c = first_character(s.substr(i));
    const bool space = unicode::is_space(c.code);
    if (!space || !out.empty()) {
      // Digits of other scripts count as those of ASCII, as in Python.
      if (unicode::is_decimal(c.code))
        out += static_cast<char>('0' + unicode::decimal_value(c.code));
      else
        out.append(s, i, c.bytes);
    }
    if (!space) end = out.size();
    i += c.bytes;
  }
  out.resize(end);
  return out;
}

/// Without the underscores of a number, each of which stands between two digits; nullopt where one does not.
template <class IsDigit>
std::optional<std::string> without_underscores(std::string_view s, IsDigit is_digit) {
  std::string out;
  for (size_t i = 0; i < s.size(); ++i) {
    if (s[i] != '_') {
      out += s[i];
      continue;
    }
    if (i == 0 || i + 1 == s.size() || !is_digit(s[i - 1]) || !is_digit(s[i + 1])) return std::nullopt;
  }
  return out;
}

Value parse_int(Interp& in, const std::string& text, int64_t base) {
  std::string s = stripped(text);
  bool negative = !s.empty() && s[0] == '-';
  if (!s.empty() && (s[0] == '-' || s[0] == '+')) s.erase(0, 1);
  auto bad = [&] { in.fail(ErrorKind::kValue, "{} is no int of base {}", ast::repr(ast::Constant(text)), base); };
  const bool any_base = base == 0;
  if (s.size() > 2 && s[0] == '0') {
    int64_t prefix = s[1] == 'x' || s[1] == 'X'   ? 16
                     : s[1] == 'o' || s[1] == 'O' ? 8
                     : s[1] == 'b' || s[1] == 'B' ? 2
                                                  : 0;
    // A prefix is taken only where the base allows it: in base 16, "0b1" is 0xb1.
    if (prefix && (base == 0 || base == prefix)) {
      base = prefix;
      s.erase(0, 2);
      if (s[0] == '_') s.erase(0, 1);  // 0x_ff
    }
  }
  if (base == 0) base = 10;
  if (base < 2 || base > 36) in.fail(ErrorKind::kValue, "int()'s base must be 0 or from 2 to 36, got {}", base);
  auto digit_of = [](char c) {
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'z' ? c - 'a' + 10
           : c >= 'A' && c <= 'Z' ? c - 'A' + 10
                                  : 99;
  };
  const auto digits = without_underscores(s, [&](char c) { return digit_of(c) < base; });
  if (!digits || digits->empty()) bad();
  ast::Int value = 0;
  for (char c : *digits) {
    const int digit = digit_of(c);
    if (digit >= base) bad();
    // Towards the sign that it has: the least int has no positive counterpart.
    if (__builtin_mul_overflow(value, ast::Int{base}, &value) ||
        __builtin_add_overflow(value, ast::Int{negative ? -digit : digit}, &value))
      in.fail(ErrorKind::kValue, "the int needs more than 128 bits, which Kiln's integers have");
  }
  // As in source texts: 07 is no decimal number there.
  if (any_base && base == 10 && value != 0 && digits->front() == '0') bad();
  return Value::wide(value);
}

/// What a conversion of a script's class gave, which must be an int.
ast::Int whole(Interp& in, const Value& v, std::string_view from) {
  if (v.small_int_or_bool()) return v.integer();
  if (auto* w = v.get<WideInt>()) return w->value;
  in.fail(ErrorKind::kType, "{}() must give an int, got '{}'", from, in.type_name(v));
}

Value make_int(Interp& in, NativeArgs& a) {
  if (a[0].missing()) return Value::integer(0);
  if (auto* o = a[0].object(); o && o->own_type() && a[1].missing()) {
    // In Python's order.
    for (const char* name : {"__int__", "__index__", "__trunc__"})
      if (auto v = special(in, o, name, {})) return Value::wide(whole(in, *v, name));
    if (!a[0].get<Str>() && !a[0].get<WideInt>())
      in.fail(ErrorKind::kType, "int()'s argument must be a number or a text, got '{}'", in.type_name(a[0]));
  }
  if (auto* s = a[0].get<Str>()) return parse_int(in, s->text, a[1].missing() ? 10 : in.to_int(a[1], "int()'s base"));
  if (!a[1].missing()) in.fail(ErrorKind::kType, "int() takes a base only with a str");
  if (a[0].small_int_or_bool()) return Value::integer(a[0].integer());
  if (auto* w = a[0].get<WideInt>()) return Value::wide(w->value);
  // Tensors and arrays convert themselves.
  if (!a[0].is_float())
    if (auto f = in.find_attribute(a[0], "__int__"); f && a[0].kind() != Kind::kType) return in.call(*f, {});
  double v = in.to_double(a[0], "int()'s argument");
  if (std::isinf(v)) in.fail_as("OverflowError", "{} cannot be an int", ast::float_repr(v));
  if (std::isnan(v)) in.fail(ErrorKind::kValue, "nan cannot be an int");
  if (std::fabs(v) >= 0x1p127)
    in.fail(ErrorKind::kValue, "{} does not fit into Kiln's ints of 128 bits", ast::float_repr(v));
  return Value::wide(static_cast<ast::Int>(v));
}

Value make_float(Interp& in, NativeArgs& a) {
  if (a[0].missing()) return Value::real(0);
  if (auto* o = a[0].object(); o && o->own_type())
    if (auto v = special(in, o, "__float__", {})) {
      if (v->is_float()) return *v;
      in.fail(ErrorKind::kType, "__float__() must give a float, got '{}'", in.type_name(*v));
    }
  auto* s = a[0].get<Str>();
  if (!s) return Value::real(in.to_double(a[0], "float()'s argument"));
  const auto digits = without_underscores(stripped(s->text), [](char c) { return c >= '0' && c <= '9'; });
  char* end = nullptr;
  const double v = digits ? std::strtod(digits->c_str(), &end) : 0;
  // strtod also takes hexadecimal and nan(text), which Python does not.
  if (!digits || digits->empty() || end != digits->c_str() + digits->size() ||
      digits->find_first_of("xX(") != std::string::npos)
    in.fail(ErrorKind::kValue, "{} is no float", in.repr(a[0]));
  return Value::real(v);
}

Value make_bool(Interp& in, NativeArgs& a) { return Value::boolean(!a[0].missing() && in.truth(a[0])); }
Value make_str(Interp& in, NativeArgs& a) {
  if (a[1].missing() && a[2].missing()) return Value::str(a[0].missing() ? "" : in.str(a[0]));
  // With an encoding it is bytes.decode().
  const std::string* data = byte_data(a[0]);
  if (!data) in.fail(ErrorKind::kType, "str() with an encoding needs bytes, got '{}'", in.type_name(a[0]));
  const std::string encoding = a[1].missing() ? "utf-8" : in.to_text(a[1], "str()'s encoding");
  return Value::str(decode_bytes(in, *data, encoding, a[2].missing() ? "strict" : in.to_text(a[2], "str()'s errors")));
}
Value make_list(Interp& in, NativeArgs& a) {
  return make<List>(a[0].missing() ? std::vector<Value>() : in.to_vector(a[0]));
}

Value make_tuple(Interp& in, NativeArgs& a) {
  // A plain tuple does not change, so it is its own copy.
  if (auto* t = a[0].missing() ? nullptr : a[0].get<Tuple>(); t && t->class_name.empty() && !t->own_type()) return a[0];
  return make<Tuple>(a[0].missing() ? std::vector<Value>() : in.to_vector(a[0]));
}

Value make_set(Interp& in, NativeArgs& a) {
  auto set = make<Set>();
  if (!a[0].missing())
    in.for_each(a[0], [&](Value v) {
      set->table.set(in, std::move(v), Value::none());
      return true;
    });
  return set;
}

Value make_frozenset(Interp& in, NativeArgs& a) {
  if (!a[0].missing() && a[0].get<FrozenSet>() && !a[0].object()->own_type()) return a[0];
  auto set = make<FrozenSet>();
  if (!a[0].missing())
    in.for_each(a[0], [&](Value v) {
      set->table.set(in, std::move(v), Value::none());
      return true;
    });
  return set;
}

Value make_dict(Interp& in, NativeArgs& a) {
  auto dict = make<Dict>();
  if (!a[0].missing()) {
    if (!visit_mapping(in, a[0], [&](const Value& k, Value v) { dict->table.set(in, k, std::move(v)); })) {
      in.for_each(a[0], [&](const Value& pair) {
        std::vector<Value> items = in.to_vector(pair);
        if (items.size() != 2)
          in.fail(ErrorKind::kValue, "dict() needs pairs of key and value, got {} elements", items.size());
        dict->table.set(in, items[0], items[1]);
        return true;
      });
    }
  }
  // Keywords replace keys of the same name.
  for (const auto& e : a[1].get<Dict>()->table.live()) dict->table.set(in, e.key, e.value);
  return dict;
}

Value make_slice(Interp& in, NativeArgs& a) {
  const std::vector<Value>& v = a[0].get<Tuple>()->items;
  if (v.empty() || v.size() > 3) in.fail(ErrorKind::kType, "slice() takes 1 to 3 arguments, got {}", v.size());
  Value none = Value::none();
  return v.size() == 1 ? make<SliceObject>(none, v[0], none)
                       : make<SliceObject>(v[0], v[1], v.size() == 3 ? v[2] : none);
}

// With one argument type() asks, with three it makes a class.
Value make_type(Interp& in, NativeArgs& a) {
  if (a[1].missing() && a[2].missing()) return in.type_of(a[0]);
  auto* members = a[2].missing() ? nullptr : a[2].get<Dict>();
  if (a[1].missing() || !members) in.fail(ErrorKind::kType, "type() takes an object, or a name, bases and a dict");
  Table table;
  table.set("__module__", Value::str(in.current_globals().module));
  for (const auto& e : members->table.live()) table.set(in.to_text(e.key, "a member's name"), e.value);
  return in.make_class(in.to_text(a[0], "type()'s name"), in.to_vector(a[1]), table, {});
}
Value make_object(Interp& in, NativeArgs&) { return make<Instance>(in.type_of(Kind::kInstance)); }

struct TypeRow {
  Kind kind;
  NativeDef def;
};
constexpr TypeRow kTypes[] = {
    {Kind::kInt, {"int(value=0, base=10)", make_int, "an int from a number or a text"}},
    {Kind::kFloat, {"float(value=0.0)", make_float, "a float from a number or a text"}},
    {Kind::kBool, {"bool(value=False)", make_bool, "the truth of a value"}},
    {Kind::kStr, {"str(value='', encoding=, errors=)", make_str, "the value as text; bytes with their encoding"}},
    {Kind::kList, {"list(iterable=())", make_list, "a list of the elements"}},
    {Kind::kTuple, {"tuple(iterable=())", make_tuple, "a tuple of the elements"}},
    {Kind::kSet, {"set(iterable=())", make_set, "a set of the elements"}},
    {Kind::kDict, {"dict(items=(), **named)", make_dict, "a dict from pairs, another dict, or keywords"}},
    {Kind::kSlice, {"slice(*bounds)", make_slice, "a slice as an object"}},
    {Kind::kType, {"type(obj, bases=, members=)", make_type, "the type of a value, or a new class"}},
    {Kind::kInstance, {"object()", make_object, "an object without attributes"}},
};

}  // namespace

void install_types(Interp& in) {
  for (const TypeRow& r : kTypes) {
    auto native = make<Native>(r.def);
    in.type_of(r.kind)->constructor = native;
    in.add_builtin(native->name, in.type_of(r.kind));
  }
  static constexpr NativeDef kFrozenSet = {"frozenset(iterable=())", make_frozenset, "a set that does not change"};
  const Ref<TypeObject>& frozen = in.type_of(FrozenSet::kKind);
  frozen->constructor = make<Native>(kFrozenSet);
  in.add_builtin("frozenset", frozen);
}

}  // namespace kiln::script
