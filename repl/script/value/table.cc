#include <algorithm>
#include <functional>
#include <iterator>

#include "repl/script/interp/interp.h"
#include "repl/script/value/value.h"

namespace kiln::script {

namespace {
constexpr size_t kLinear = 8;  // so few entries are searched one after the other
uint64_t text_hash(std::string_view s) { return std::hash<std::string_view>{}(s); }
}  // namespace

template <class Equal>
size_t Table::find_index(uint64_t hash, Equal&& equal) const {
  if (slots_.empty()) {
    for (size_t i = 0; i < entries_.size(); ++i)
      if (entries_[i].hash == hash && !entries_[i].key.missing() && equal(entries_[i].key)) return i;
    return entries_.size();
  }
  for (size_t s = hash;; ++s) {
    uint32_t slot = slots_[s & (slots_.size() - 1)];
    if (slot == 0) return entries_.size();
    const Entry& e = entries_[slot - 1];
    if (e.hash == hash && !e.key.missing() && equal(e.key)) return slot - 1;
  }
}

size_t Table::find_index(Interp& in, const Value& key) const {
  return find_index(in.hash(key), [&](const Value& k) {
    if (k.same(key)) return true;
    const Value held = k;
    // A script's `__eq__` may insert into this table and move the entries that the search walks over.
    const uint32_t before = changes_;
    const bool equal = in.equal(held, key);
    if (changes_ != before) in.fail(ErrorKind::kValue, "a table changed while a key of it was looked for");
    return equal;
  });
}

std::vector<Table::Entry> Table::live() const {
  std::vector<Entry> out;
  out.reserve(live_);
  std::copy_if(entries_.begin(), entries_.end(), std::back_inserter(out),
               [](const Entry& e) { return !e.key.missing(); });
  return out;
}

void Table::rebuild() {
  std::vector<Entry> old = std::move(entries_);
  entries_.clear();
  for (Entry& e : old)
    if (!e.key.missing()) entries_.push_back(std::move(e));
  slots_.clear();
  if (entries_.size() < kLinear) return;
  size_t size = 16;
  // At most a third full after a rebuild and two thirds before the next one, so that inserts are O(1) on average.
  while (size < entries_.size() * 3) size *= 2;
  slots_.assign(size, 0);
  for (size_t i = 0; i < entries_.size(); ++i) {
    size_t s = entries_[i].hash;
    while (slots_[s & (size - 1)]) ++s;
    slots_[s & (size - 1)] = static_cast<uint32_t>(i + 1);
  }
}

void Table::insert(Entry e) {
  ++live_;
  ++changes_;
  bool full = slots_.empty() ? entries_.size() + 1 > kLinear : (entries_.size() + 1) * 3 / 2 > slots_.size();
  uint64_t hash = e.hash;
  entries_.push_back(std::move(e));
  if (full) return rebuild();
  if (slots_.empty()) return;
  size_t s = hash;
  while (slots_[s & (slots_.size() - 1)]) ++s;
  slots_[s & (slots_.size() - 1)] = static_cast<uint32_t>(entries_.size());
}

void Table::drop(size_t index) {
  // The slot keeps pointing at the dead entry, so that probing goes on past it.
  entries_[index].key = Value();
  entries_[index].value = Value();
  --live_;
  ++changes_;
  // Dead entries are dropped once they are three quarters: a queue that is filled and emptied stays small, at O(1)
  // each.
  if (slots_.empty() || live_ * 4 < entries_.size()) rebuild();
}

Value* Table::find(Interp& in, const Value& key) {
  if (auto* s = key.get<Str>()) return find(s->text);
  size_t i = find_index(in, key);
  return i < entries_.size() ? &entries_[i].value : nullptr;
}

Value* Table::find(std::string_view key) {
  size_t i = find_index(text_hash(key), [&](const Value& k) {
    auto* s = k.get<Str>();
    return s && s->text == key;
  });
  return i < entries_.size() ? &entries_[i].value : nullptr;
}

void Table::set(Interp& in, Value key, Value value) {
  if (Value* v = find(in, key)) {
    *v = std::move(value);
    return;
  }
  uint64_t h = in.hash(key);
  insert({std::move(key), std::move(value), h});
}

void Table::set(std::string_view key, Value value) {
  if (Value* v = find(key)) {
    *v = std::move(value);
    return;
  }
  insert({Value::str(std::string(key)), std::move(value), text_hash(key)});
}

bool Table::erase(Interp& in, const Value& key) {
  size_t i = find_index(in, key);
  if (i == entries_.size()) return false;
  drop(i);
  return true;
}

bool Table::erase(std::string_view key) {
  size_t i = find_index(text_hash(key), [&](const Value& k) {
    auto* s = k.get<Str>();
    return s && s->text == key;
  });
  if (i == entries_.size()) return false;
  drop(i);
  return true;
}

void Table::clear() {
  // What goes may have a script's code run on: not before the table is empty.
  const std::vector<Entry> gone = std::exchange(entries_, {});
  slots_.clear();
  live_ = 0;
  ++changes_;
}

}  // namespace kiln::script
