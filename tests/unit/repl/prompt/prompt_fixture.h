// The kiln program on a pseudo-terminal.
#pragma once
#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>

#include "support/process.h"
#include "tests/unit/repl/editor/pseudo_terminal.h"

namespace kiln {

class Prompt : public testing::Test {
 protected:
  std::unique_ptr<editor::PseudoTerminal> start(int rows = 40, int columns = 100, const char* term = "xterm",
                                                const char* pager = "", const char* option = nullptr) {
    auto t = std::make_unique<editor::PseudoTerminal>(rows, columns, [&] {
      setenv("XDG_STATE_HOME", state_.path.c_str(), 1);
      setenv("XDG_CONFIG_HOME", state_.path.c_str(), 1);
      setenv("KILN_TUNE_RECORDS", "0", 1);  // each run tunes anew
      setenv("TERM", term, 1);
      setenv("NO_COLOR", "1", 1);
      setenv("KILN_PAGER", pager, 1);
      setenv("LC_ALL", "C", 1);  // what is typed is UTF-8 whatever the locale says
      execl(KILN_PROGRAM, "kiln", "--device", "cpu", option, static_cast<char*>(nullptr));
      return 127;
    });
    EXPECT_TRUE(t->wait_for("\n[1]", 60)) << t->screen().text();
    return t;
  }
  ScratchFolder state_;
};

}  // namespace kiln
