// The loop that runs passes: hooks, order, and who is blamed.
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

Status nothing(ir::Module&, const target::Target&) { return {}; }
Status breaks_a_terminator(ir::Module& m, const target::Target&) {
  m.body()->terminator()->erase();
  return {};
}
Status refuses(ir::Module&, const target::Target&) { return error(ErrorKind::kUnsupported, "not today"); }

constexpr ir::Stage kTile = ir::Stage::kTile;

TEST(Pipeline, HooksSeeEachPassInOrder) {
  const Pass list[] = {{"one", kTile, kTile, nothing}, {"two", kTile, kTile, nothing}};
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
  const Pass list[] = {
      {"good", kTile, kTile, nothing}, {"bad", kTile, kTile, breaks_a_terminator}, {"later", kTile, kTile, nothing}};
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
  const Pass list[] = {{"refuses", kTile, kTile, refuses}, {"later", kTile, kTile, nothing}};
  RunOptions options;
  options.after_pass = [&](std::string_view, const ir::Module&) { ran = true; };
  auto m = small();
  EXPECT_EQ(run(list, *m, host(), options).error().message, "not today");
  EXPECT_FALSE(ran);
}

TEST(Pipeline, EachTargetsStagesFit) {
  for (target::Kind kind : {target::Kind::kHost, target::Kind::kCuda}) {
    ir::Stage stage = kTile;
    for (const Pass& pass : pipeline(kind)) {
      EXPECT_EQ(pass.requires_stage, stage) << pass.name;
      stage = pass.gives_stage;
    }
    EXPECT_EQ(stage, kind == target::Kind::kHost ? kTile : ir::Stage::kDistributed);
  }
}

}  // namespace
}  // namespace kiln::passes
