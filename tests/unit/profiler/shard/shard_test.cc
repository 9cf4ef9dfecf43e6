#include "profiler/shard/shard.h"

#include <gtest/gtest.h>

#include <vector>

namespace kiln::profiler {
namespace {

TEST(Shard, EachNumberIsOwnedOnce) {
  for (size_t count = 1; count < 9; ++count) {
    std::vector<int> owners(100), sizes(count);
    for (size_t index = 0; index < count; ++index)
      for (size_t n = 0; n < owners.size(); ++n)
        if (Shard{index, count}.owns(n)) ++owners[n], ++sizes[index];
    EXPECT_EQ(owners, std::vector<int>(100, 1));
    // No shard has two more than another.
    for (int size : sizes) EXPECT_LE(std::abs(size - 100 / static_cast<int>(count)), 1);
  }
}

TEST(Shard, IsReadAsItIsWritten) {
  const auto shard = parse_shard("3/16");
  ASSERT_TRUE(shard.ok());
  EXPECT_EQ(shard->index, 3u);
  EXPECT_EQ(shard->count, 16u);
  EXPECT_EQ(shard->text(), "3/16");
  EXPECT_EQ(shard->file_name(), "shard-3-of-16.jsonl");
}

TEST(Shard, WhatIsNone) {
  for (const char* text : {"", "1", "/", "1/", "/2", "a/b", "-1/2", "+1/2", "1/2/3", " 0/2", "0/2 ", "0x0/2", "1.0/2",
                           "99999999999999999999/2", "0/99999999999999999999"})
    EXPECT_EQ(parse_shard(text).error().message, "a shard is I/N, got '" + std::string(text) + "'");
  EXPECT_EQ(parse_shard("0/0").error().message, "there are 1 to 1000000 shards, got 0");
  EXPECT_EQ(parse_shard("2/2").error().message, "shards are counted from 0: of 2 the last is 1/2, got 2/2");
  EXPECT_EQ(parse_shard("1/1").error().kind, ErrorKind::kValue);
}

}  // namespace
}  // namespace kiln::profiler
