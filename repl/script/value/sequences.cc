// Strings, tuples, lists, dicts, sets, ranges and slices: elements, slices and iteration.
#include <fmt/format.h>

#include <algorithm>

#include "repl/script/interp/interp.h"
#include "repl/script/value/text.h"

namespace kiln::script {

namespace {

/// Elements by position; keeps the sequence alive, and sees a list grow while it runs.
template <class Sequence>
class IndexIterator : public IteratorObject {
 public:
  explicit IndexIterator(Sequence* s) : sequence_(s) {}
  bool next(Interp&, Value& out) override {
    if (at_ >= sequence_->items.size()) return false;
    out = sequence_->items[at_++];
    return true;
  }

 private:
  Ref<Sequence> sequence_;
  size_t at_ = 0;
};

class RangeIterator : public IteratorObject {
 public:
  explicit RangeIterator(const Range& r) : at_(r.start), step_(r.step), left_(r.count()) {}
  bool next(Interp& in, Value& out) override {
    in.check_interrupt();
    if (left_-- <= 0) return false;
    out = Value::integer(at_);
    if (left_ > 0) at_ += step_;
    return true;
  }

 private:
  int64_t at_, step_, left_;
};

class KeyIterator : public IteratorObject {
 public:
  KeyIterator(Value owner, Table& table) : owner_(std::move(owner)), table_(table), size_(table.size()) {}
  bool next(Interp& in, Value& out) override {
    if (table_.size() != size_)
      in.fail_as("RuntimeError", "the {} changed its size while it was iterated", in.type_name(owner_));
    while (at_ < table_.entries().size() && table_.entries()[at_].key.missing()) ++at_;
    if (at_ >= table_.entries().size()) return false;
    out = table_.entries()[at_++].key;
    return true;
  }

 private:
  Value owner_;
  Table& table_;
  size_t size_, at_ = 0;
};

class StrIterator : public IteratorObject {
 public:
  explicit StrIterator(Str* s) : text_(s) {}
  bool next(Interp&, Value& out) override {
    if (at_ >= text_->text.size()) return false;
    size_t n = character_bytes(text_->text, at_);
    out = Value::str(text_->text.substr(at_, n));
    at_ += n;
    return true;
  }

 private:
  Ref<Str> text_;
  size_t at_ = 0;
};

/// Bounds may be a script's objects, whose __index__ may change the list.
Interp::SliceSpan span_of(Interp& in, const SliceObject& s, const std::vector<Value>& items) {
  const size_t size = items.size();
  auto span = in.slice_span(s, static_cast<int64_t>(size));
  if (items.size() != size) in.fail(ErrorKind::kValue, "the list changed its size while it was indexed");
  return span;
}

std::vector<Value> sliced(Interp& in, const std::vector<Value>& items, const SliceObject& s) {
  auto span = span_of(in, s, items);
  std::vector<Value> out;
  out.reserve(static_cast<size_t>(span.count));
  for (int64_t i = 0; i < span.count; ++i) {
    in.check_interrupt();
    out.push_back(items[static_cast<size_t>(span.start + i * span.step)]);
  }
  return out;
}

bool holds(Interp& in, const std::vector<Value>& items, const Value& item) {
  for (size_t i = 0; i < items.size(); ++i) {
    in.check_interrupt();
    const Value v = items[i];  // NOLINT(performance-unnecessary-copy-initialization): its == may change the list
    if (v.same(item) || in.equal(v, item)) return true;
  }
  return false;
}

/// Stops the repr of a container that holds itself: two such places in one would double the text at each turn.
class ReprGuard {
 public:
  ReprGuard(Interp& in, const Object* of) {
    stops_ = std::find(open().begin(), open().end(), of) != open().end();
    // Each level is looked up among those around it.
    constexpr size_t kMaxDepth = 5000;
    if (open().size() >= kMaxDepth) in.fail_as("RecursionError", "the value is nested more than {} deep", kMaxDepth);
    open().push_back(of);
  }
  ~ReprGuard() { open().pop_back(); }
  ReprGuard(const ReprGuard&) = delete;
  ReprGuard& operator=(const ReprGuard&) = delete;
  bool stops() const { return stops_; }

 private:
  static std::vector<const Object*>& open() {
    static thread_local std::vector<const Object*> objects;
    return objects;
  }
  bool stops_ = false;
};

std::string joined(Interp& in, const Object* of, const std::vector<Value>& items) {
  ReprGuard guard(in, of);
  if (guard.stops()) return "...";
  std::string out;
  for (size_t i = 0; i < items.size(); ++i) {
    in.check_interrupt();
    if (i) out += ", ";
    const Value item = items[i];  // NOLINT(performance-unnecessary-copy-initialization): its repr may change the list
    out += in.repr(item);
  }
  return out;
}

}  // namespace

Interp::SliceSpan Interp::slice_span(const SliceObject& s, int64_t length) {
  // What does not fit into 64 bits is beyond the end, in its direction.
  auto clamped = [&](const Value& v, std::string_view what) {
    const auto* wide = v.get<WideInt>();
    if (wide && !wide->fits()) return wide->value < 0 ? INT64_MIN : INT64_MAX;
    return to_int(v, what);
  };
  int64_t step = s.step.is_none() ? 1 : clamped(s.step, "a slice's step");
  if (step == 0) fail(ErrorKind::kValue, "a slice's step cannot be 0");
  int64_t low = step > 0 ? 0 : -1, high = step > 0 ? length : length - 1;
  auto bound = [&](const Value& v, int64_t otherwise) {
    if (v.is_none()) return otherwise;
    const int64_t i = clamped(v, "a slice's bound");
    return std::clamp(i < 0 ? i + length : i, low, high);
  };
  int64_t start = bound(s.lower, step > 0 ? low : high), stop = bound(s.upper, step > 0 ? high : low);
  if (step == INT64_MIN) step = -INT64_MAX;
  int64_t distance = step > 0 ? stop - start : start - stop;
  int64_t size = step > 0 ? step : -step;
  return {start, step, distance > 0 ? (distance - 1) / size + 1 : 0};
}

int64_t Interp::index_in(const Value& index, int64_t length, std::string_view what) {
  auto* wide = index.get<WideInt>();  // of a class of its own, or too large
  if (!index.small_int_or_bool() && !wide)
    fail(ErrorKind::kType, "a {}'s index must be an int or a slice, got '{}'", what, type_name(index));
  const ast::Int i = wide ? wide->value : index.integer();
  if (i < -length || i >= length)
    fail_as("IndexError", "index {} is outside of the {} of length {}", ast::to_string(i), what, length);
  return static_cast<int64_t>(i < 0 ? i + length : i);
}

// --- str
// ----------------------------------------------------------------------------------------------------------------

std::optional<int64_t> Str::length(Interp&) { return static_cast<int64_t>(count_characters(text)); }

Value Str::item(Interp& in, const Value& index) {
  int64_t n = static_cast<int64_t>(count_characters(text));
  bool ascii = n == static_cast<int64_t>(text.size());
  auto at = [&](int64_t i) {
    if (ascii) return text.substr(static_cast<size_t>(i), 1);
    size_t byte = byte_of_character(text, static_cast<size_t>(i));
    return text.substr(byte, character_bytes(text, byte));
  };
  if (auto* s = index.get<SliceObject>()) {
    auto span = in.slice_span(*s, n);
    if (ascii && span.step == 1)
      return Value::str(text.substr(static_cast<size_t>(span.start), static_cast<size_t>(span.count)));
    std::string out;
    for (int64_t i = 0; i < span.count; ++i) out += at(span.start + i * span.step);
    return Value::str(std::move(out));
  }
  return Value::str(at(in.index_in(index, n, "str")));
}

Value Str::iterate(Interp&) { return make<StrIterator>(this); }
std::string Str::repr(Interp&) { return ast::repr(ast::Constant(text)); }

std::optional<bool> Str::contains(Interp& in, const Value& item) {
  auto* s = item.get<Str>();
  if (!s) in.fail(ErrorKind::kType, "'in' a str needs a str on its left, got '{}'", in.type_name(item));
  return text.find(s->text) != std::string::npos;
}

// --- tuple and list
// -----------------------------------------------------------------------------------------------------

Value Tuple::item(Interp& in, const Value& index) {
  if (auto* s = index.get<SliceObject>()) return make<Tuple>(sliced(in, items, *s), class_name);
  return items[static_cast<size_t>(in.index_in(index, static_cast<int64_t>(items.size()), "tuple"))];
}

Value Tuple::iterate(Interp&) { return make<IndexIterator<Tuple>>(this); }

std::string Tuple::repr(Interp& in) {
  std::string inner = joined(in, this, items);
  if (!class_name.empty()) return fmt::format("{}([{}])", class_name, inner);
  return "(" + inner + (items.size() == 1 ? ",)" : ")");
}

std::optional<bool> Tuple::contains(Interp& in, const Value& item) { return holds(in, items, item); }

Value List::item(Interp& in, const Value& index) {
  if (auto* s = index.get<SliceObject>()) return make<List>(sliced(in, items, *s));
  return items[static_cast<size_t>(in.index_in(index, static_cast<int64_t>(items.size()), "list"))];
}

void List::set_item(Interp& in, const Value& index, Value value) {
  if (auto* s = index.get<SliceObject>()) {
    std::vector<Value> values = in.to_vector(value);
    auto span = span_of(in, *s, items);
    if (span.step == 1) {
      auto first = items.begin() + span.start;
      first = items.erase(first, first + span.count);
      items.insert(first, values.begin(), values.end());
      return;
    }
    if (static_cast<int64_t>(values.size()) != span.count)
      in.fail(ErrorKind::kValue, "a slice of {} elements cannot take {} values", span.count, values.size());
    for (int64_t i = 0; i < span.count; ++i)
      items[static_cast<size_t>(span.start + i * span.step)] = std::move(values[static_cast<size_t>(i)]);
    return;
  }
  items[static_cast<size_t>(in.index_in(index, static_cast<int64_t>(items.size()), "list"))] = std::move(value);
}

void List::delete_item(Interp& in, const Value& index) {
  if (auto* s = index.get<SliceObject>()) {
    auto span = span_of(in, *s, items);
    std::vector<Value> left;
    std::vector<bool> gone(items.size());
    for (int64_t i = 0; i < span.count; ++i) gone[static_cast<size_t>(span.start + i * span.step)] = true;
    for (size_t i = 0; i < items.size(); ++i)
      if (!gone[i]) left.push_back(std::move(items[i]));
    items = std::move(left);
    return;
  }
  items.erase(items.begin() + in.index_in(index, static_cast<int64_t>(items.size()), "list"));
}

Value List::iterate(Interp&) { return make<IndexIterator<List>>(this); }
std::string List::repr(Interp& in) { return "[" + joined(in, this, items) + "]"; }
std::optional<bool> List::contains(Interp& in, const Value& item) { return holds(in, items, item); }

// --- dict and set
// -------------------------------------------------------------------------------------------------------

Value Dict::item(Interp& in, const Value& index) {
  Value* v = table.find(in, index);
  if (!v) in.fail_key(index, "the dict has no key {}");
  return *v;
}

void Dict::set_item(Interp& in, const Value& index, Value value) { table.set(in, index, std::move(value)); }

void Dict::delete_item(Interp& in, const Value& index) {
  if (!table.erase(in, index)) in.fail_key(index, "the dict has no key {}");
}

Value Dict::iterate(Interp&) { return make<KeyIterator>(Value(this), table); }

std::string Dict::repr(Interp& in) {
  ReprGuard guard(in, this);
  if (guard.stops()) return "{...}";
  std::string out = "{";
  for (const auto& e : table.live()) {
    in.check_interrupt();
    if (out.size() > 1) out += ", ";
    out += in.repr(e.key) + ": " + in.repr(e.value);
  }
  return out + "}";
}

std::optional<bool> Dict::contains(Interp& in, const Value& item) { return table.find(in, item) != nullptr; }

Value Set::iterate(Interp&) { return make<KeyIterator>(Value(this), table); }

std::string Set::repr(Interp& in) {
  if (table.size() == 0) return "set()";
  std::vector<Value> items;
  for (const auto& e : table.live()) items.push_back(e.key);
  return "{" + joined(in, this, items) + "}";
}

std::string FrozenSet::repr(Interp& in) {
  return table.size() == 0 ? "frozenset()" : "frozenset(" + Set::repr(in) + ")";
}

std::optional<uint64_t> FrozenSet::hash(Interp& in) {
  // The same for every order in which the elements came.
  uint64_t sum = 0x5E7;
  for (const auto& e : table.live()) sum += in.hash(e.key) * 0x9E3779B97F4A7C15u;
  return sum;
}

Set* any_set(const Value& v) {
  auto* frozen = v.get<FrozenSet>();
  return frozen ? frozen : v.get<Set>();
}

std::optional<bool> Set::contains(Interp& in, const Value& item) { return table.find(in, item) != nullptr; }

// --- range and slice
// ----------------------------------------------------------------------------------------------------

int64_t Range::count() const {
  // Unsigned distances: they always fit, the signed ones may not.
  if (step > 0 ? start >= stop : start <= stop) return 0;
  uint64_t distance = step > 0 ? static_cast<uint64_t>(stop) - static_cast<uint64_t>(start)
                               : static_cast<uint64_t>(start) - static_cast<uint64_t>(stop);
  uint64_t size = step > 0 ? static_cast<uint64_t>(step) : uint64_t{0} - static_cast<uint64_t>(step);
  uint64_t n = (distance - 1) / size + 1;
  return n > INT64_MAX ? INT64_MAX : static_cast<int64_t>(n);
}

std::optional<Value> Range::attribute(Interp&, std::string_view name) {
  if (name == "start") return Value::integer(start);
  if (name == "stop") return Value::integer(stop);
  if (name == "step") return Value::integer(step);
  return std::nullopt;
}

Value Range::item(Interp& in, const Value& index) {
  if (auto* s = index.get<SliceObject>()) {
    auto span = in.slice_span(*s, count());
    return make<Range>(start + span.start * step, start + (span.start + span.count * span.step) * step,
                       step * span.step);
  }
  return Value::integer(start + in.index_in(index, count(), "range") * step);
}

Value Range::iterate(Interp&) { return make<RangeIterator>(*this); }

std::string Range::repr(Interp&) {
  return step == 1 ? fmt::format("range({}, {})", start, stop) : fmt::format("range({}, {}, {})", start, stop, step);
}

std::optional<bool> Range::contains(Interp& in, const Value& item) {
  if (!item.small_int_or_bool()) {
    if (!item.is_float()) return false;
    double d = item.real();
    if (d != static_cast<double>(static_cast<int64_t>(d))) return false;
    return contains(in, Value::integer(static_cast<int64_t>(d)));
  }
  int64_t i = item.integer();
  bool inside = step > 0 ? i >= start && i < stop : i <= start && i > stop;
  return inside && (i - start) % step == 0;
}

std::optional<Value> SliceObject::attribute(Interp&, std::string_view name) {
  if (name == "start") return lower;
  if (name == "stop") return upper;
  if (name == "step") return step;
  return std::nullopt;
}

namespace {
/// slice.indices(): start, stop and step for a sequence of that length.
Value slice_indices(Interp& in, NativeArgs& a) {
  const auto& s = *a.self->get<SliceObject>();
  const int64_t length = in.to_int(a[0], "indices()'s length");
  if (length < 0) in.fail(ErrorKind::kValue, "indices() needs a length that is not negative, got {}", length);
  const auto span = in.slice_span(s, length);
  const bool up = span.step > 0;
  int64_t stop = up ? length : -1;
  if (!s.upper.is_none()) {
    stop = in.to_int(s.upper, "a slice's bound");
    stop = std::clamp(stop < 0 ? stop + length : stop, up ? 0 : int64_t{-1}, up ? length : length - 1);
  }
  return make<Tuple>(std::vector<Value>{Value::integer(span.start), Value::integer(stop), Value::integer(span.step)});
}
constexpr NativeDef kSliceMethods[] = {
    {"indices(length)", slice_indices, "(start, stop, step) for a sequence of that length"},
};
}  // namespace

void install_slice_methods(Interp& in) { in.add_methods({Kind::kSlice, kSliceMethods}); }

std::string SliceObject::repr(Interp& in) {
  return fmt::format("slice({}, {}, {})", in.repr(lower), in.repr(upper), in.repr(step));
}

}  // namespace kiln::script
