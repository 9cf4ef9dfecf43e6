#include "support/lru.h"

#include <gtest/gtest.h>

namespace kiln {
namespace {

TEST(LruMap, TheLeastRecentlyFoundGoFirst) {
  LruMap<int> map;
  map.add("a", 1, 3), map.add("b", 2, 3), map.add("c", 3, 3);
  ASSERT_TRUE(map.find("a"));
  map.add("d", 4, 3);
  EXPECT_EQ(map.size(), 3u);
  EXPECT_EQ(map.dropped(), 1u);
  EXPECT_FALSE(map.find("b"));
  EXPECT_EQ(*map.find("a"), 1);
  EXPECT_EQ(*map.find("d"), 4);
  EXPECT_EQ(map.add("c", 5, 3), 3) << "what is there stays";
}

TEST(LruMap, ManyKeysStayWithinTheBound) {
  LruMap<size_t> map;
  for (size_t i = 0; i < 1000; ++i) {
    map.add(std::to_string(i), i, 10);
    for (size_t k = i < 9 ? 0 : i - 9; k <= i; ++k) ASSERT_EQ(*map.find(std::to_string(k)), k);
  }
  EXPECT_EQ(map.size(), 10u);
  EXPECT_EQ(map.dropped(), 990u);
}

TEST(LruMap, OneEntryAlwaysFits) {
  LruMap<int> map;
  EXPECT_EQ(map.add("a", 1, 0), 1);
  EXPECT_EQ(map.add("b", 2, 0), 2);
  EXPECT_EQ(map.size(), 1u);
}

}  // namespace
}  // namespace kiln
