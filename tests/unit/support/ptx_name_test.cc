#include "support/ptx_name.h"

#include <gtest/gtest.h>

namespace kiln {
namespace {

TEST(PtxName, IsAsciiAndLeadsBack) {
  EXPECT_EQ(ptx_name("add_2"), "add_2");
  EXPECT_EQ(ptx_name("核é"), "$6838$$e9$");
  EXPECT_EQ(ptx_name("f𝑥"), "f$1d465$");
  for (const char* name : {"add_2", "核é", "f𝑥_加2", ""}) EXPECT_EQ(source_name(ptx_name(name)), name);
}

TEST(PtxName, OfOtherCompilersStays) {
  for (const char* name : {"$__internal_0_$__cuda_sm20_div_u64", "$", "a$", "$$", "$41$", "$110000$", "$fffffffff$x"})
    EXPECT_EQ(source_name(name), name);
}

}  // namespace
}  // namespace kiln
