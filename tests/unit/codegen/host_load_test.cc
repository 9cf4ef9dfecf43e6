// Host objects: several copies in several threads, code that goes with its handle, broken objects.
#include <gtest/gtest.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <sys/resource.h>
#include <unistd.h>

#include <fstream>
#include <sstream>
#include <thread>

#include "compiler/codegen/host.h"
#include "compiler/codegen/host_hooks.h"
#include "compiler/lower/host/host.h"
#include "tests/unit/lower/harness/host_harness.h"

namespace kiln {
namespace {

std::unique_ptr<ir::Module> square_kernel() {
  auto m = ir::parse_module(SourceText::make("t.ir", R"(kernel @square(%x: *f32) {
  %pid = program_id {axis = 0} : i32
  %p = addptr %x, %pid : *f32
  %v = load %p : f32
  %w = mul %v, %v : f32
  store %p, %w
  return
}
)"));
  EXPECT_TRUE(m.ok());
  return std::move(*m);
}

CompiledKernel compiled(bool want_assembly, std::string* assembly) {
  auto module = square_kernel();
  llvm::LLVMContext context;
  auto lowered = lower::lower_host(*module, context);
  EXPECT_TRUE(lowered.ok());
  auto object = codegen::emit_object(*lowered->module, want_assembly);
  EXPECT_TRUE(object.ok());
  if (assembly) *assembly = object->assembly;
  CompiledKernel kernel;
  kernel.name = "square";
  kernel.object = object->object;
  return kernel;
}

TEST(HostLoadDeathTest, WithoutMemoryForCodeIsAnError) {
  auto try_it = [](const CompiledKernel& kernel) {
    long pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    rlimit limit{};
    limit.rlim_cur = limit.rlim_max = static_cast<rlim_t>(pages) * 4096;  // no mapping more
    setrlimit(RLIMIT_AS, &limit);
    auto code = load_host_object(kernel);
    _exit(!code.ok() && code.error().kind == ErrorKind::kMemory ? 0 : 1);
  };
  const CompiledKernel kernel = compiled(false, nullptr);
  EXPECT_EXIT(try_it(kernel), ::testing::ExitedWithCode(0), "");
}

TEST(HostLoad, CompilesAndRunsInSeveralThreads) {
  std::vector<std::thread> threads;
  std::vector<std::vector<float>> results(4, std::vector<float>(100, 3.0f));
  for (auto& x : results)
    threads.emplace_back([&x] {
      for (int round = 0; round < 5; ++round) {
        auto code = load_host_object(compiled(false, nullptr));
        ASSERT_TRUE(code.ok());
        const uint64_t args[] = {reinterpret_cast<uint64_t>(x.data())};
        const int32_t grid[] = {100, 1, 1};
        (*code)->entry()(args, grid, round * 20, round * 20 + 20, nullptr);
      }
    });
  for (std::thread& t : threads) t.join();
  for (const auto& x : results) EXPECT_EQ(x, std::vector<float>(100, 9.0f));
}

size_t mapped_bytes() {
  size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages * 4096;
}

TEST(HostLoad, CodeGoesWithItsHandle) {
  const CompiledKernel kernel = compiled(false, nullptr);
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(load_host_object(kernel).ok());
  const size_t before = mapped_bytes();
  for (int i = 0; i < 3000; ++i) ASSERT_TRUE(load_host_object(kernel).ok());
  EXPECT_LT(mapped_bytes(), before + (8u << 20)) << "3000 copies of at least two pages";
}

TEST(HostLoad, BrokenObjectsAreRefused) {
  CompiledKernel kernel = compiled(false, nullptr);
  const std::string whole = kernel.object;
  for (const std::string& object :
       {std::string(), std::string("not an object"), whole.substr(0, 40), whole.substr(0, whole.size() / 2)}) {
    kernel.object = object;
    auto code = load_host_object(kernel);
    ASSERT_FALSE(code.ok());
    EXPECT_NE(code.error().message.find("the object of host kernel 'square' cannot be loaded"), std::string::npos)
        << code.error().message;
  }
}

TEST(HostLoad, AssemblyWhenAskedFor) {
  std::string assembly;
  compiled(true, &assembly);
  EXPECT_NE(assembly.find("kiln_entry:"), std::string::npos);
  compiled(false, &assembly);
  EXPECT_EQ(assembly, "");
}

TEST(HostLoad, DescribesTheCpu) {
  EXPECT_EQ(codegen::host_cpu_description(), codegen::host_cpu_description());
  EXPECT_NE(codegen::host_cpu_description().find('+'), std::string::npos);
}

}  // namespace
}  // namespace kiln
