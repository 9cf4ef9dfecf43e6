// A map of at most so many entries: the least recently found go first.
#pragma once
#include <cstddef>
#include <list>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace kiln {

template <class T>
class LruMap {
 public:
  /// Null when it is not there; else it is the most recent now, and stays until the next add().
  T* find(std::string_view key) {
    auto it = index_.find(key);
    if (it == index_.end()) return nullptr;
    entries_.splice(entries_.begin(), entries_, it->second);
    return &it->second->second;
  }
  /// The value that is kept: another's, where one was added meanwhile. `most`: entries from now on, at least this one.
  T& add(std::string key, T value, size_t most) {
    if (T* there = find(key)) return *there;
    entries_.emplace_front(std::move(key), std::move(value));
    index_.emplace(entries_.front().first, entries_.begin());
    while (entries_.size() > most && entries_.size() > 1) {
      index_.erase(entries_.back().first);
      entries_.pop_back();
      ++dropped_;
    }
    return entries_.front().second;
  }
  size_t size() const { return entries_.size(); }
  size_t dropped() const { return dropped_; }

 private:
  size_t dropped_ = 0;
  std::list<std::pair<std::string, T>> entries_;  // the most recent first
  std::unordered_map<std::string_view, typename std::list<std::pair<std::string, T>>::iterator> index_;
};

}  // namespace kiln
