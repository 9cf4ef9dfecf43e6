#include "profiler/tune/prune.h"

#include <gtest/gtest.h>

namespace kiln::profiler {
namespace {

Compiled compiled(int registers, int warps, int64_t shared, int64_t spills, std::string code) {
  Compiled c;
  c.info.registers = registers;
  c.info.num_warps = warps;
  c.info.shared_bytes = shared;
  c.info.spill_bytes = spills;
  c.config = "config " + code;
  c.info.code = std::move(code);
  return c;
}

std::vector<std::string> prune_all(const std::vector<Compiled>& list, const PruneLimits& limits) {
  std::vector<const Compiled*> pointers;
  for (const Compiled& c : list) pointers.push_back(&c);
  return prune(pointers, limits);
}

PruneLimits hopper() { return {target::find("sm_90a"), 232448, 1024}; }

TEST(Prune, EachReasonIsSaid) {
  const auto r = prune_all({compiled(64, 4, 1000, 0, "a"),    //
                            compiled(255, 16, 0, 0, "b"),     // 255 · 512 registers
                            compiled(32, 4, 300000, 0, "c"),  //
                            compiled(32, 64, 0, 0, "d"),      //
                            compiled(255, 4, 0, 40000, "e"),  //
                            compiled(255, 4, 0, 600, "f"),    // spills a little
                            compiled(64, 4, 1000, 0, "a"),    //
                            compiled(-1, 4, 1000, -1, "g")},  // no linker: nothing is known
                           hopper());
  EXPECT_EQ(r[0], "");
  EXPECT_EQ(r[1], "255 registers x 512 threads, and the file has 65536");
  EXPECT_EQ(r[2], "300000 bytes of shared memory, and a block may have 232448");
  EXPECT_EQ(r[3], "2048 threads, and a block may have 1024");
  EXPECT_EQ(r[4], "40000 bytes of spills, where another has 0");
  EXPECT_EQ(r[5], "");
  EXPECT_EQ(r[6], "the same code as config a");
  EXPECT_EQ(r[7], "");
}

TEST(Prune, SpillsThatAllHavePruneNone) {
  const auto r = prune_all({compiled(255, 4, 0, 40000, "a"), compiled(255, 4, 0, 90000, "b")}, hopper());
  EXPECT_EQ(r, (std::vector<std::string>{"", ""}));
}

TEST(Prune, RegistersThatTheSmRoundsUpMayNotFitEither) {
  // 170 registers · 384 threads are within the file, which is handed out in units of 8 registers for each warp.
  const auto r = prune_all({compiled(170, 12, 0, 0, "a")}, hopper());
  EXPECT_EQ(r[0], "no block fits an SM, for its registers");
}

TEST(Prune, TheHostKnowsDuplicatesOnly) {
  std::vector<Compiled> list = {compiled(-1, 4, 0, -1, "a"), compiled(-1, 8, 0, -1, "a"), compiled(-1, 8, 0, -1, "b")};
  EXPECT_EQ(prune_all(list, {target::find("host"), 0, 0}),
            (std::vector<std::string>{"", "the same code as config a", ""}));
  list[1].launch = "another grid";
  EXPECT_EQ(prune_all(list, {target::find("host"), 0, 0}), (std::vector<std::string>{"", "", ""}));
}

TEST(Prune, WhatDidNotCompileIsPassedOver) {
  Compiled one = compiled(64, 4, 0, 0, "a");
  const Compiled* list[] = {nullptr, &one, nullptr};
  EXPECT_EQ(prune(list, hopper()), (std::vector<std::string>{"", "", ""}));
}

}  // namespace
}  // namespace kiln::profiler
