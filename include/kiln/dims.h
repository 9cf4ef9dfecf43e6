// The sizes of a tensor, or its strides.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace kiln {

/// A list of integers that lies in the object itself up to the rank of most tensors: handles are copied with every
/// operation, and memory of the heap for each would cost more than the rest of the copy.
class Dims {
 public:
  static constexpr size_t kInPlace = 6;

  Dims() = default;
  explicit Dims(size_t n) : size_(n) {
    if (n > kInPlace) many_ = std::make_unique<int64_t[]>(n);
  }
  Dims(std::span<const int64_t> values) : Dims(values.size()) { std::ranges::copy(values, own()); }
  Dims(const Dims& o) : Dims(std::span<const int64_t>(o)) {}
  Dims(Dims&& o) noexcept : size_(o.size_), many_(std::move(o.many_)) {
    std::ranges::copy(o.few_, few_);
    o.size_ = 0;
  }
  Dims& operator=(const Dims& o) {
    if (this != &o) *this = Dims(o);
    return *this;
  }
  Dims& operator=(Dims&& o) noexcept {
    size_ = o.size_;
    many_ = std::move(o.many_);
    std::ranges::copy(o.few_, few_);
    if (this != &o) o.size_ = 0;
    return *this;
  }

  size_t size() const { return size_; }
  const int64_t* data() const { return many_ ? many_.get() : few_; }
  const int64_t* begin() const { return data(); }
  const int64_t* end() const { return data() + size_; }
  int64_t& operator[](size_t i) { return own()[i]; }
  int64_t operator[](size_t i) const { return data()[i]; }
  bool operator==(const Dims& o) const { return std::ranges::equal(*this, o); }

 private:
  int64_t* own() { return many_ ? many_.get() : few_; }

  size_t size_ = 0;
  int64_t few_[kInPlace] = {};
  std::unique_ptr<int64_t[]> many_;
};

}  // namespace kiln
