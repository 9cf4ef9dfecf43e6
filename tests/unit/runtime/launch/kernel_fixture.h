// A kernel of a fake compiler that notes what is compiled, and a cache on disk of each test's own.
#pragma once
#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kiln/kernel.h"
#include "runtime/device/runtime.h"
#include "support/files.h"
#include "support/launch_options.h"
#include "tests/unit/runtime/fake_compiler.h"

namespace kiln::runtime {

using Args = std::vector<std::optional<Arg>>;
using Shape = std::vector<int64_t>;

inline constexpr const char* kAdd = R"(
@triton.jit
def add(x, y, n, BLOCK: tl.constexpr = 1024):
    pass
)";

class KernelTest : public testing::Test {
 protected:
  void SetUp() override {
    // A cache of each test's own: what one compiled must not be found by another.
    char name[] = "/tmp/kiln_cache_XXXXXX";
    folder = mkdtemp(name);
    setenv("KILN_CACHE_DIR", folder.c_str(), 1);
    begin();
  }
  void TearDown() override { unsetenv("KILN_CACHE_DIR"); }

  /// As another process would, with the same cache on disk.
  void begin() {
    auto warn = [this](const std::string& text) { recorder.warnings.push_back(text); };
    device = *make_runtime(std::make_unique<Jit>(fake_compiler(recorder), warn)).open("cpu");
    x = *Tensor::zeros(device, DType::kF32, Shape{100});
    y = *Tensor::zeros(device, DType::kBF16, Shape{100});
  }
  /// Of kAdd.
  Args add_args() const { return {x, y, int64_t{2}, std::nullopt}; }
  /// For launches without a tensor.
  LaunchOptions here() const {
    LaunchOptions options;
    options.device = device;
    return options;
  }
  static Kernel kernel(Program& program, const std::string& name) {
    return Kernel::from_function(program.functions.at(name));
  }
  const frontend::ArgSpec& spec(size_t i) { return recorder.compiled.back().at(i); }
  size_t compilations() const { return recorder.compiled.size(); }

  Recorder recorder;
  /// The kernels in the cache; beside them lies when their sizes were last looked at.
  std::vector<FileEntry> kept() const {
    auto files = *list_files(folder + "/kernels");
    std::erase_if(files, [](const FileEntry& f) { return f.path.ends_with("/swept"); });
    return files;
  }

  std::string folder;
  Device device;
  Tensor x, y;
};

#define EXPECT_OK(expr)                                       \
  do {                                                        \
    auto s = (expr);                                          \
    EXPECT_TRUE(s.ok()) << (s.ok() ? "" : render(s.error())); \
  } while (0)

}  // namespace kiln::runtime
