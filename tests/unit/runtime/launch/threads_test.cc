// Many threads in the public API at once. With the preset tsan ThreadSanitizer looks on.
#include <gtest/gtest.h>
#include <kiln/image.h>
#include <kiln/interop.h>
#include <kiln/kernel.h>
#include <kiln/log.h>
#include <kiln/runtime.h>
#include <kiln/tensor.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace {

constexpr const char* kScaled = R"(
import triton
import triton.language as tl

@triton.jit
def scaled(x, out, n, scale, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n) * scale, mask=i < n)

@triton.jit
def broken(x, BLOCK: tl.constexpr):
    tl.store(x + tl.arange(0, BLOCK), nothing)
)";

using Args = std::vector<std::optional<kiln::Arg>>;

void on_threads(int count, const std::function<void(int)>& work) {
  std::vector<std::thread> threads;
  for (int t = 0; t < count; ++t) threads.emplace_back([&, t] { work(t); });
  for (std::thread& t : threads) t.join();
}

class Threads : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "kiln_threads_XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder = name;
    setenv("KILN_CACHE_DIR", folder.c_str(), 1);
    setenv("KILN_KERNEL_LIMIT", "3", 1);  // variants go while others are launched
  }
  void TearDown() override {
    unsetenv("KILN_CACHE_DIR"), unsetenv("KILN_KERNEL_LIMIT");
    std::filesystem::remove_all(folder);
  }

  std::string folder;
};

TEST_F(Threads, ShareARuntimeAKernelAndTheCacheOnDisk) {
  std::atomic<int> wrong = 0;
  // Two runtimes at a time, which meet in the cache's folder.
  on_threads(2, [&](int) {
    const kiln::Runtime runtime;
    const kiln::Kernel kernel = *kiln::Kernel::from_source(kScaled, "scaled.py", "scaled");
    on_threads(6, [&](int t) {
      const int64_t n = 1000 + t, shape[] = {n};
      for (int i = 0; i < 12; ++i) {
        const kiln::Device device = *runtime.open("cpu");
        const kiln::Tensor x = *kiln::Tensor::full(device, kiln::DType::kF32, shape, t + 1);
        kiln::Tensor out = *kiln::Tensor::zeros(device, kiln::DType::kF32, shape);
        const int64_t block = 64 << ((t + i) % 4);
        const Args args = {x, out, n, 2.0, block};
        if (!kernel.launch({(n + block - 1) / block, 1, 1}, args).ok()) ++wrong;
        // Through another library's hands and back.
        out = *kiln::from_dlpack(*kiln::to_dlpack(out), device);
        const auto got = out.to_doubles();
        if (!got.ok() || got->front() != 2 * (t + 1) || got->back() != 2 * (t + 1)) ++wrong;
      }
    });
  });
  EXPECT_EQ(wrong, 0);
}

TEST_F(Threads, CompileLogAndFail) {
  std::atomic<int> wrong = 0, said = 0;
  const kiln::Runtime runtime;
  on_threads(6, [&](int t) {
    for (int i = 0; i < 6; ++i) {
      kiln::set_log([&](kiln::LogLevel, std::string_view) { ++said; });
      const kiln::Kernel good = *kiln::Kernel::from_source(kScaled, "scaled.py", "scaled"),
                         bad = *kiln::Kernel::from_source(kScaled, "scaled.py", "broken");
      kiln::ImageRequest request;
      request.signature = "*fp32, *fp32, i32, fp32";
      request.constexprs = {"BLOCK=" + std::to_string(32 << (i % 3))};
      request.target = t % 2 ? "sm_90a" : "host";
      const auto image = compile_image(runtime, good, request);
      if (!image.ok() || image->params().size() != 4 || image->params()[0].written || !image->params()[1].written)
        ++wrong;
      request.signature = "*fp32";
      const auto failed = compile_image(runtime, bad, request);
      if (failed.ok() || failed.error().place.line != 12) ++wrong;
    }
  });
  kiln::set_log({});
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(said, 0);
}

}  // namespace
