// Compilations on threads of Kiln's, and what becomes of handles meanwhile.
#include <gtest/gtest.h>
#include <kiln/image.h>
#include <kiln/log.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstring>
#include <functional>
#include <map>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

using kiln::Image;
using kiln::ImageRequest;
using kiln::Kernel;
using kiln::Result;
using kiln::Runtime;

constexpr const char* kSource = R"(
import triton
import triton.language as tl

@triton.jit
def fill(out, value, BLOCK: tl.constexpr):
    tl.store(out + tl.arange(0, BLOCK), value)
)";

ImageRequest request_of(int block, const char* target = "host") {
  ImageRequest request;
  request.signature = "*fp32, fp32";
  request.constexprs = {"BLOCK=" + std::to_string(block)};
  request.target = target;
  return request;
}

/// What came back, by a number; threads give, one takes.
class Answers {
 public:
  std::function<void(Result<Image>)> of(int number) {
    return [this, number](Result<Image> image) { give(number, std::move(image)); };
  }
  void give(int number, Result<Image> image) {
    std::lock_guard lock(mutex_);
    EXPECT_TRUE(answers_.emplace(number, std::move(image)).second) << number << " is answered twice";
    threads_.push_back(std::this_thread::get_id());
    more_.notify_all();
  }
  const std::map<int, Result<Image>>& wait_for(size_t count) {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(more_.wait_for(lock, std::chrono::seconds(120), [&] { return answers_.size() >= count; }));
    return answers_;
  }
  const std::vector<std::thread::id>& threads() const { return threads_; }

 private:
  std::mutex mutex_;
  std::condition_variable more_;
  std::map<int, Result<Image>> answers_;
  std::vector<std::thread::id> threads_;
};

Kernel parsed() { return *Kernel::from_source(kSource, "fill.py"); }

class CompileAsync : public testing::Test {
 protected:
  void SetUp() override { setenv("KILN_CACHE", "0", 1); }
  void TearDown() override { unsetenv("KILN_CACHE"); }
};

TEST_F(CompileAsync, GivesWhatCompilingGives) {
  Answers answers;
  const Runtime runtime;
  compile_image_async(runtime, parsed(), request_of(64, "sm_90a"), answers.of(0));
  compile_image_async(runtime, parsed(), request_of(100), answers.of(1));  // no power of two
  compile_image_async(runtime, parsed(), request_of(64, "sm_9000"), answers.of(2));
  compile_image_async(runtime, Kernel(), request_of(64), answers.of(3));
  const auto& got = answers.wait_for(4);
  ASSERT_TRUE(got.at(0).ok()) << render(got.at(0).error());
  EXPECT_EQ(got.at(0)->info().ptx, compile_image(runtime, parsed(), request_of(64, "sm_90a"))->info().ptx);
  ASSERT_FALSE(got.at(1).ok());
  EXPECT_EQ(got.at(1).error().place.file, "fill.py");
  EXPECT_EQ(got.at(1).error().place.line, 7);
  EXPECT_FALSE(got.at(2).ok());
  EXPECT_FALSE(got.at(3).ok());
  for (const std::thread::id id : answers.threads()) EXPECT_NE(id, std::this_thread::get_id());
}

TEST_F(CompileAsync, ManyThreadsAskAndAnswersAskForMore) {
  Answers answers;
  const Runtime runtime;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 4; ++i)
        compile_image_async(runtime, parsed(), request_of(1 << (4 + i)), [&, n = 4 * t + i](Result<Image> image) {
          compile_image_async(runtime, parsed(), request_of(8), answers.of(100 + n));
          answers.give(n, std::move(image));
        });
    });
  for (std::thread& t : threads) t.join();
  for (const auto& [number, image] : answers.wait_for(32)) EXPECT_TRUE(image.ok()) << number;
}

TEST_F(CompileAsync, HandlesMayGoMeanwhile) {
  Answers answers;
  for (int i = 0; i < 3; ++i) compile_image_async(Runtime(), parsed(), request_of(32 << i), answers.of(i));
  const auto& got = answers.wait_for(3);
  const Runtime runtime;
  const kiln::Device cpu = *runtime.open("cpu");
  float memory[128] = {};
  const float value = 1.5f;
  uint64_t slots[2] = {reinterpret_cast<uintptr_t>(memory), 0};
  std::memcpy(&slots[1], &value, sizeof value);
  ASSERT_TRUE(kiln::LoadedImage::load(*got.at(2), cpu)->launch({1, 1, 1}, slots).ok());
  EXPECT_EQ(memory[127], 1.5f);
}

TEST_F(CompileAsync, LogsWhatAnAnswerThrows) {
  std::mutex mutex;
  std::vector<std::string> said;
  kiln::set_log([&](kiln::LogLevel, std::string_view text) {
    std::lock_guard lock(mutex);
    said.emplace_back(text);
  });
  Answers answers;
  const Runtime runtime;
  compile_image_async(runtime, parsed(), request_of(16),
                      [&](const Result<Image>&) { throw std::runtime_error("a wrong turn"); });
  compile_image_async(runtime, parsed(), request_of(16), answers.of(0));
  answers.wait_for(1);
  for (int i = 0; i < 1000; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    std::lock_guard lock(mutex);
    if (!said.empty()) break;
  }
  kiln::set_log({});
  EXPECT_EQ(said, std::vector<std::string>{"a function given to compile_image_async threw: a wrong turn"});
}

// ThreadSanitizer's own threads do not survive a fork.
#if !defined(__SANITIZE_THREAD__)
TEST_F(CompileAsync, ChildrenHaveThreadsOfTheirOwn) {
  Answers before;
  const Runtime runtime;
  compile_image_async(runtime, parsed(), request_of(16), before.of(0));
  before.wait_for(1);
  const pid_t child = fork();
  if (child == 0) {
    Answers answers;
    compile_image_async(runtime, parsed(), request_of(32), answers.of(0));
    const bool ok = answers.wait_for(1).at(0).ok();
    exit(ok ? 0 : 1);  // with what is registered for the end of the process
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}
#endif

}  // namespace
