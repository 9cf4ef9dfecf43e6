// A vector whose first elements are in itself, for what nearly always fits.
#pragma once
#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>

namespace kiln::python {

template <class T, size_t kInline>
class InlineVector {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  InlineVector() {}  // were it defaulted, `InlineVector v{}` would write zeros over all of it
  InlineVector(const InlineVector&) = delete;
  InlineVector& operator=(const InlineVector&) = delete;

  size_t size() const { return size_; }
  T* begin() { return data_; }
  T* end() { return data_ + size_; }
  T& operator[](size_t i) { return data_[i]; }
  operator std::span<const T>() const { return {data_, size_}; }

  void push_back(T v) { *extend(1) = v; }
  /// Room for `n` more, which the caller writes.
  T* extend(size_t n) {
    if (size_ + n > capacity_) [[unlikely]]
      grow(size_ + n);
    T* const added = data_ + size_;
    size_ += n;
    return added;
  }

 private:
  void grow(size_t least) {
    const size_t capacity = std::max(2 * capacity_, least);
    std::unique_ptr<T[]> larger(new T[capacity]);
    std::copy(begin(), end(), larger.get());
    many_ = std::move(larger), data_ = many_.get(), capacity_ = capacity;
  }

  T few_[kInline];
  std::unique_ptr<T[]> many_;
  T* data_ = few_;
  size_t size_ = 0, capacity_ = kInline;
};

}  // namespace kiln::python
