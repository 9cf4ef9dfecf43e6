// Memory of objects of one type that are made and freed all the time, as the nodes of expressions.
#pragma once
#include <cstddef>
#include <new>
#include <vector>

namespace kiln {

/// Keeps the memory of what was freed on this thread for what is made next. malloc keeps seven blocks of a size at hand
/// and looks for others, or joins and splits them, when an expression of many nodes ends and the next one begins.
template <class T>
class FreeListAllocator {
 public:
  using value_type = T;
  FreeListAllocator() = default;
  template <class U>
  FreeListAllocator(const FreeListAllocator<U>&) {}

  T* allocate(size_t n) {
    if (n == 1 && !kept().blocks.empty()) {
      void* block = kept().blocks.back();
      kept().blocks.pop_back();
      return static_cast<T*>(block);
    }
    return static_cast<T*>(::operator new(n * sizeof(T)));
  }
  void deallocate(T* p, size_t n) {
    constexpr size_t kMostBytes = size_t{1} << 20;
    if (n == 1 && !kept().ended && kept().blocks.size() < kMostBytes / sizeof(T))
      kept().blocks.push_back(p);
    else
      ::operator delete(p);
  }
  bool operator==(const FreeListAllocator&) const { return true; }

 private:
  struct Kept {
    std::vector<void*> blocks;
    bool ended = false;  // objects may be freed by the thread's other variables, which end later
    ~Kept() {
      for (void* block : blocks) ::operator delete(block);
      blocks = {};
      ended = true;
    }
  };
  static Kept& kept() {
    thread_local Kept kept;
    return kept;
  }
};

}  // namespace kiln
