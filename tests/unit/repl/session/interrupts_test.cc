// Ctrl-C while a script runs, as another thread sends it.
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "repl/session/session.h"
#include "tests/unit/open_device.h"

namespace kiln::script {
namespace {

using Clock = std::chrono::steady_clock;

class Interrupts : public ::testing::Test {
 protected:
  Interrupts() {
    Options options;
    options.output = [this](std::string_view s) { out += s; };
    options.device = *open_device("cpu");
    session = std::make_unique<Session>(std::move(options));
  }
  void run(std::string text) {
    Status s = session->run(std::move(text), "t.py");
    ASSERT_TRUE(s.ok()) << render(s.error());
  }
  /// What the script says after `press`, 20 ms from its beginning on, and how long that took.
  Status interrupted(const std::string& text, const std::function<void()>& press, double* ms = nullptr) {
    Clock::time_point pressed;
    std::thread other([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      pressed = Clock::now();
      press();
    });
    Status status = session->run(text, "t.py");
    const Clock::time_point ended = Clock::now();
    other.join();
    if (ms) *ms = std::chrono::duration<double, std::milli>(ended - pressed).count();
    session->forget_interrupt();
    return status;
  }

  std::string out;
  std::unique_ptr<Session> session;
};

TEST_F(Interrupts, EndLongFunctions) {
  run("import torch\nx = torch.rand(20_000_000)\nn = torch.arange(20_000_000)\nq = [0] * 20_000_000\ns = 'a' * "
      "300_000_000\n");
  for (const char* text :
       {"torch.sort(x)", "torch.sort(n, descending=True)", "torch.unique(n)", "x.tolist()",
        "torch.randperm(50_000_000)", "torch.bincount(n)", "q.sort(key=str)", "q.sort()", "sorted(q, key=str)",
        "q.count([1])", "str(q)", "f'{q}'", "print(s)", "all(i == 0 for i in q)", "y = x.tolist(); z = y"}) {
    double ms = 0;
    const Status s = interrupted(
        text, [&] { session->interrupt(); }, &ms);
    ASSERT_FALSE(s.ok()) << text;
    EXPECT_EQ(s.error().kind, ErrorKind::kInterrupted) << text;
    EXPECT_LT(ms, 2000) << text;  // 100 on a machine that does nothing else
  }
}

TEST_F(Interrupts, EndStatementsThatCatchThem) {
  constexpr const char* kDeaf =
      "stopped = []\n"
      "def cleaned_up(): stopped.append('finally')\n"
      "while True:\n"
      "    try:\n"
      "        try:\n"
      "            while True: pass\n"
      "        finally:\n"
      "            cleaned_up()\n"
      "    except KeyboardInterrupt:\n"
      "        stopped.append('caught')\n";
  const Status s = interrupted(kDeaf, [&] {
    session->interrupt();
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    session->stop_statement();
  });
  ASSERT_FALSE(s.ok());
  EXPECT_EQ(s.error().kind, ErrorKind::kInterrupted);
  run("print(stopped)");
  EXPECT_EQ(out, "['finally', 'caught', 'finally', 'caught']\n");
}

TEST_F(Interrupts, LetContextsBeLeft) {
  const Status s = interrupted(
      "import contextlib, io\n"
      "text = io.StringIO()\n"
      "with contextlib.redirect_stdout(text):\n"
      "    while True: pass\n",
      [&] { session->stop_statement(); });
  ASSERT_FALSE(s.ok());
  run("print('seen')");
  EXPECT_EQ(out, "seen\n");
}

}  // namespace
}  // namespace kiln::script
