// Scripts as the tests of a real GPU run them.
#pragma once
#include <string>

#include "repl/session/session.h"
#include "tests/gpu/gpu_test_util.h"

namespace kiln::runtime {

/// Runs the script in a session of its own, whose device is the GPU; its errors are failures.
inline void run_script(const Device& device, const std::string& text) {
  script::Options options;
  options.device = device;
  script::Session session(std::move(options));
  ASSERT_OK(session.run(text, "test.py", script::Mode::kFile));
}

}  // namespace kiln::runtime
