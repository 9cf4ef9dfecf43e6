// Compiles a kernel text and runs it on the interpreter.
#pragma once
#include <gtest/gtest.h>

#include <bit>
#include <cstring>

#include "compiler/interp/tile/interp.h"
#include "support/diag.h"
#include "tests/unit/frontend/kernel_file.h"

namespace kiln::frontend::testing {

inline constexpr std::string_view kPrelude =
    "import triton\nimport triton.language as tl\nfrom triton.language.extra import libdevice\n\n";

/// The bits of an argument slot.
template <class T>
uint64_t slot(T value) {
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(T));
  return bits;
}

/// The arguments of one launch: buffers are passed as pointers, everything else as its bits.
class Launch {
 public:
  explicit Launch(std::string text, std::string command)
      : text_(std::string(kPrelude) + std::move(text)), command_(std::move(command)) {}

  template <class T>
  Launch& buffer(std::vector<T>& data) {
    memory_.allow(data.data(), data.size() * sizeof(T));
    slots_.push_back(reinterpret_cast<uint64_t>(data.data()));
    return *this;
  }
  template <class T>
  Launch& value(T v) {
    slots_.push_back(slot(v));
    return *this;
  }
  void run(std::array<int32_t, 3> grid = {1, 1, 1}) {
    auto module = lower_text("test.py", text_, parse_command(command_));
    ASSERT_TRUE(module.ok()) << render(module.error());
    Status done = interp::run(**module, grid, slots_, memory_);
    ASSERT_TRUE(done.ok()) << render(done.error()) << ir::print(**module);
  }

 private:
  std::string text_, command_;
  interp::Memory memory_;
  std::vector<uint64_t> slots_;
};

}  // namespace kiln::frontend::testing
