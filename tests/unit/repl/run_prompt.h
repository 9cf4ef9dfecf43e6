// A program at a made-up prompt on the cpu, and what was said.
#pragma once
#include <gtest/gtest.h>

#include <string>

#include "repl/shell/shell.h"

namespace kiln::repl {

struct Said {
  std::string out, err;
  int code = -1;
};

inline Said run(const std::string& text) {
  Options options;
  options.device = "cpu";
  Said said;
  Shell shell(options, [&](std::string_view s) { said.out += s; });
  testing::internal::CaptureStderr();
  said.code = shell.run_program(text, "script.py");
  said.err = testing::internal::GetCapturedStderr();
  return said;
}

}  // namespace kiln::repl
