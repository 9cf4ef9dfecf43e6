// What %counters and %occupancy run again and again.
#include <gtest/gtest.h>

#include "repl/magics/contenders.h"
#include "tests/unit/open_device.h"

namespace kiln::repl {
namespace {

class StatementRunner : public testing::Test {
 protected:
  StatementRunner() : session({.output = [](std::string_view) {}, .argv = {}, .device = *open_device("cpu")}) {
    Status ready = session.run(
        "import triton\nimport triton.language as tl\n"
        "@triton.jit\ndef add_one(x, n, BLOCK: tl.constexpr):\n"
        "    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n"
        "    tl.store(x + i, tl.load(x + i, mask=i < n) + 1, mask=i < n)\n"
        "x = zeros(100)\ny = rand(300, 300)\n"
        "def twice():\n    add_one[(1,)](x, 100, BLOCK=128)\n    add_one[(1,)](x, 100, BLOCK=128)\n",
        "setup.py");
    EXPECT_TRUE(ready.ok()) << (ready.ok() ? "" : ready.error().message);
  }
  std::string first() { return *session.evaluate("x[0].item()"); }
  script::Session session;
};

TEST_F(StatementRunner, MakingOneRunsNothing) {
  auto run = statement_runner(session, "twice()", "<t>");
  ASSERT_TRUE(run.ok()) << run.error().message;
  EXPECT_EQ(first(), "0.0");
  ASSERT_TRUE((*run)().ok());
  EXPECT_EQ(first(), "2.0");
}

TEST_F(StatementRunner, AKernelsNameIsItsLastLaunch) {
  EXPECT_NE(statement_runner(session, "add_one", "<t>").error().message.find("has not been launched yet"),
            std::string::npos);
  ASSERT_TRUE(session.run("add_one[(1,)](x, 100, BLOCK=128)\n", "l.py").ok());
  ASSERT_TRUE((*statement_runner(session, "add_one", "<t>"))().ok());
  EXPECT_EQ(first(), "2.0");
}

TEST_F(StatementRunner, ATensorsNameIsItsExpression) {
  EXPECT_NE(statement_runner(session, "y", "<t>").error().message.find("'y' is computed already"), std::string::npos);
  ASSERT_TRUE(session.run("z = exp(y) * 2\n", "z.py").ok());
  auto run = statement_runner(session, " z ", "<t>");
  ASSERT_TRUE(run.ok()) << run.error().message;
  ASSERT_TRUE((*run)().ok());
  EXPECT_FALSE(session.computed_tensor("z"));
  EXPECT_TRUE(statement_runner(session, "twice", "<t>").ok());
  auto nobody = statement_runner(session, "nobody", "<t>");
  ASSERT_TRUE(nobody.ok()) << nobody.error().message;
  EXPECT_EQ((*nobody)().error().kind, ErrorKind::kName);
}

TEST_F(StatementRunner, WhatIsAssignedIsComputed) {
  auto run = statement_runner(session, "z = exp(y) * 2", "<t>");
  ASSERT_TRUE(run.ok()) << run.error().message;
  const ExprCacheStats before = expr_cache_stats(*session.device());
  ASSERT_TRUE((*run)().ok());
  EXPECT_EQ(expr_cache_stats(*session.device()).planned, before.planned + 1);
}

}  // namespace
}  // namespace kiln::repl
