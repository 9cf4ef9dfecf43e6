// The loop that runs passes: hooks, order, and who is blamed.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "compiler/passes/pass.h"
#include "support/diag.h"

namespace kiln::passes {
namespace {

std::unique_ptr<ir::Module> small() {
  auto m = ir::parse_module(SourceText::make("t.ir", "kernel @k(%n: i32) {\n  %a = add %n, %n : i32\n  return\n}\n"));
  EXPECT_TRUE(m.ok());
  return std::move(*m);
}

const target::Target& host() { return *target::find("host"); }

Status nothing(ir::Module&, Context&) { return {}; }
Status breaks_a_terminator(ir::Module& m, Context&) {
  m.body()->terminator()->erase();
  return {};
}
Status refuses(ir::Module&, Context&) { return error(ErrorKind::kUnsupported, "not today"); }

/// A row that asks for nothing and gives nothing.
constexpr Pass plain(std::string_view name, Status (*run)(ir::Module&, Context&)) {
  return {name, kNothing, kNothing, kNothing, kNothing, run};
}

TEST(Pipeline, HooksSeeEachPassInOrder) {
  const Pass list[] = {plain("one", nothing), plain("two", nothing)};
  std::string order;
  RunOptions options;
  options.on_time = [&](std::string_view pass, double ms) {
    EXPECT_GE(ms, 0);
    order += fmt::format("time {} ", pass);
  };
  options.after_pass = [&](std::string_view pass, const ir::Module& m) {
    order += fmt::format("after {} {} ", pass, m.name);
  };
  auto m = small();
  ASSERT_TRUE(run(list, *m, host(), options).ok());
  EXPECT_EQ(order, "time one after one k time two after two k ");
}

TEST(Pipeline, NamesThePassThatBrokeTheIr) {
  const Pass list[] = {plain("good", nothing), plain("bad", breaks_a_terminator), plain("later", nothing)};
  RunOptions options;
  options.verify_each = true;
  auto m = small();
  const Status s = run(list, *m, host(), options);
  ASSERT_FALSE(s.ok());
  EXPECT_EQ(s.error().kind, ErrorKind::kInternal);
  ASSERT_FALSE(s.error().notes.empty());
  EXPECT_EQ(s.error().notes.back().message, "after the pass bad");
}

TEST(Pipeline, ChecksTheInputToo) {
  RunOptions options;
  options.verify_each = true;
  auto m = small();
  m->body()->terminator()->erase();
  const Status s = run({}, *m, host(), options);
  ASSERT_FALSE(s.ok());
  EXPECT_EQ(s.error().notes.back().message, "before the first pass");
}

TEST(Pipeline, StopsAtAnError) {
  bool ran = false;
  const Pass list[] = {plain("refuses", refuses), plain("later", nothing)};
  RunOptions options;
  options.after_pass = [&](std::string_view, const ir::Module&) { ran = true; };
  auto m = small();
  EXPECT_EQ(run(list, *m, host(), options).error().message, "not today");
  EXPECT_FALSE(ran);
}

TEST(Pipeline, APassFindsWhatItNeeds) {
  auto m = small();
  const Pass giver{"giver", kNothing, kNothing, kFmaFused, kNothing, nothing},
      user{"user", kFmaFused, kNothing, kNothing, kNothing, nothing},
      taker{"taker", kNothing, kNothing, kNothing, kFmaFused, nothing};
  const Pass fits[] = {giver, user};
  EXPECT_TRUE(run(fits, *m, host(), {}).ok());
  const Pass turned[] = {user, giver}, taken[] = {giver, taker, user};
  for (std::span<const Pass> list : {std::span<const Pass>(turned), std::span<const Pass>(taken)}) {
    const Status s = run(list, *m, host(), {});
    ASSERT_FALSE(s.ok());
    EXPECT_EQ(s.error().message, "the pass user needs what no pass before it gives: multiply-adds are contracted");
  }
  const Pass late[] = {giver, {"early", kNothing, kFmaFused, kNothing, kNothing, nothing}};
  EXPECT_EQ(run(late, *m, host(), {}).error().message, "the pass early comes too late: multiply-adds are contracted");
}

TEST(Pipeline, APassGivesWhatItSays) {
  auto m = small();  // its sum is used by nothing
  const Pass idle[] = {{"idle", kNothing, kNothing, kDeadRemoved, kNothing, nothing}};
  EXPECT_EQ(run(idle, *m, host(), {}).error().message, "after the pass idle this does not hold: there are no dead ops");
  const Pass stays[] = {{"stays", kNothing, kNothing, kLayouts, kNothing, nothing}};
  EXPECT_EQ(run(stays, *m, host(), {}).error().message, "after the pass stays this does not hold: tiles have layouts");
}

TEST(Pipeline, RowsWithAConditionRunWhereItHolds) {
  const Pass list[] = {
      {"refuses", kNothing, kNothing, kNothing, kNothing, refuses, [](const Context& c) { return c.launch_pdl; }}};
  auto m = small();
  Context context{host()};
  EXPECT_TRUE(run(list, *m, context, {}).ok());
  context.launch_pdl = true;
  EXPECT_FALSE(run(list, *m, context, {}).ok());
}

/// Every order that rows ask for is one that the lists have, whatever the conditions say.
TEST(Pipeline, EachTargetsListFits) {
  for (target::Kind kind : {target::Kind::kHost, target::Kind::kCuda})
    for (bool conditional : {false, true}) {
      Properties holds = kNothing;
      for (const Pass& pass : pipeline(kind)) {
        if (pass.when && !conditional) continue;
        EXPECT_EQ(to_string(pass.needs & ~holds), "") << pass.name;
        EXPECT_EQ(to_string(pass.forbids & holds), "") << pass.name;
        holds = (holds & ~pass.destroys) | pass.gives;
      }
      EXPECT_EQ(to_string(lowering_needs(kind) & ~holds), "");
      EXPECT_EQ((holds & kLayouts) != 0, kind == target::Kind::kCuda);
    }
}

}  // namespace
}  // namespace kiln::passes
