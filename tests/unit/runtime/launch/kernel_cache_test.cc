// Kernels that other processes find on disk, and how many stay in memory.
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <thread>

#include "runtime/launch/kernel_launched.h"
#include "support/files.h"
#include "tests/unit/runtime/launch/kernel_fixture.h"

namespace kiln::runtime {
namespace {

TEST_F(KernelTest, AnotherProcessFindsTheKernelOnDisk) {
  Program program(kAdd);
  EXPECT_OK(kernel(program, "add").launch({1, 1, 1}, add_args()));
  EXPECT_EQ(kept().size(), 1u);
  begin();
  auto info = kernel(program, "add").compile(add_args());
  ASSERT_TRUE(info.ok());
  EXPECT_TRUE(info->from_cache);
  EXPECT_EQ(info->phases[0].name, "cache");
  EXPECT_EQ(compilations(), 1u);
  EXPECT_OK(kernel(program, "add").launch({4, 1, 1}, add_args()));
  EXPECT_EQ(recorder.programs, 5);
}

TEST_F(KernelTest, WhateverChangesTheCodeChangesTheKey) {
  auto compile = [&](const std::string& text, std::map<std::string, frontend::Global> globals = {},
                     const LaunchOptions& options = {}) {
    Program program(text, std::move(globals));
    begin();
    size_t before = compilations();
    EXPECT_TRUE(kernel(program, "f").compile(Args{x}, options).ok());
    return compilations() - before;
  };
  const std::string base = "@triton.jit\ndef g():\n    pass\n@triton.jit\ndef f(x):\n    g()\n    a = N\n";
  EXPECT_EQ(compile(base, {{"N", ast::Constant(ast::Int{1})}}), 1u);
  EXPECT_EQ(compile(base, {{"N", ast::Constant(ast::Int{1})}}), 0u);
  EXPECT_EQ(compile(base, {{"N", ast::Constant(ast::Int{2})}}), 1u);
  EXPECT_EQ(compile(base, {{"N", ast::Constant(1.0)}}), 1u) << "1.0 is not 1";
  EXPECT_EQ(compile(base, {{"N", ast::Constant(true)}}), 1u) << "nor is True";
  EXPECT_EQ(compile("@triton.jit\ndef g():\n    return 1\n@triton.jit\ndef f(x):\n    g()\n    a = N\n",
                    {{"N", ast::Constant(ast::Int{1})}}),
            1u)
      << "a helper's body";
  // A line of an error or a profile is a line of the file, so the same text elsewhere is other code.
  EXPECT_EQ(compile("\n# moved down by two lines\n" + base, {{"N", ast::Constant(ast::Int{1})}}), 1u)
      << "lines in the code are lines of the file";
  for (const LaunchOption& o : kLaunchOptions) {
    LaunchOptions other;
    o.set(other, o.get(other) == o.most ? o.least : o.most);
    EXPECT_EQ(compile(base, {{"N", ast::Constant(ast::Int{1})}}, other), 1u) << o.name;
  }
  recorder.fingerprint = "fake 2";
  EXPECT_EQ(compile(base, {{"N", ast::Constant(ast::Int{1})}}), 1u) << "another compiler";
  recorder.fingerprint = "fake 1";
  EXPECT_EQ(compile(base, {{"N", ast::Constant(ast::Int{1})}}), 0u);
}

TEST_F(KernelTest, DamagedEntriesAreRecompiled) {
  Program program(kAdd);
  ASSERT_TRUE(kernel(program, "add").compile(add_args()).ok());
  std::string path = kept().front().path, good = *read_file(path);
  std::vector<std::string> damaged = {"", "kiln", good.substr(0, good.size() / 2), good + "x",
                                      std::string(good.size(), '\0')};
  for (size_t at : {size_t{3}, size_t{20}, size_t{60}, good.size() / 2, good.size() - 1}) {
    damaged.push_back(good);
    damaged.back()[at] = static_cast<char>(damaged.back()[at] ^ 1);
  }
  size_t expected = 1;
  for (const std::string& content : damaged) {
    ASSERT_TRUE(write_file_atomic(path, content).ok());
    begin();
    auto info = kernel(program, "add").compile(add_args());
    ASSERT_TRUE(info.ok());
    EXPECT_FALSE(info->from_cache);
    EXPECT_EQ(compilations(), ++expected);
    EXPECT_EQ(*read_file(path), good) << "repaired";
  }
  EXPECT_TRUE(recorder.warnings.empty());
}

TEST_F(KernelTest, UnwritableCacheIsOneWarning) {
  // Root may write anywhere, so the folder's place is taken by a file.
  ASSERT_TRUE(write_file_atomic(folder + "/file", "").ok());
  setenv("KILN_CACHE_DIR", (folder + "/file").c_str(), 1);
  Program program(kAdd);
  Kernel add = kernel(program, "add");
  for (int64_t block : {64, 128, 256}) EXPECT_OK(add.launch({1, 1, 1}, Args{x, y, int64_t{2}, Arg(block)}));
  ASSERT_EQ(recorder.warnings.size(), 1u);
  EXPECT_EQ(recorder.warnings[0],
            "cannot open folder '" + folder +
                "/file/kernels': Not a directory; compiled kernels are not kept (KILN_CACHE_DIR names another folder, "
                "KILN_CACHE=0 turns the cache off)");
}

TEST_F(KernelTest, ACacheThatOthersMayWriteIsNotRead) {
  Program program(kAdd);
  ASSERT_TRUE(kernel(program, "add").compile(add_args()).ok());
  begin();
  ASSERT_TRUE(kernel(program, "add").compile(add_args())->from_cache);
  // What others may write is code that they would run as this user.
  chmod((folder + "/kernels").c_str(), 0777);
  begin();
  EXPECT_FALSE(kernel(program, "add").compile(add_args())->from_cache);
  ASSERT_EQ(recorder.warnings.size(), 1u);
  EXPECT_EQ(recorder.warnings[0],
            "the folder '" + folder +
                "/kernels' is not trusted: others may write there (mode 777; chmod go-w takes that away); compiled "
                "kernels are not kept (KILN_CACHE_DIR names another folder, KILN_CACHE=0 turns the cache off)");
  chmod((folder + "/kernels").c_str(), 0700);
  recorder.warnings.clear();
  // A pipe in the place of an entry is neither waited for nor kept from being replaced.
  const std::string entry = kept()[0].path;
  unlink(entry.c_str());
  ASSERT_EQ(mkfifo(entry.c_str(), 0600), 0);
  begin();
  EXPECT_FALSE(kernel(program, "add").compile(add_args())->from_cache);
  EXPECT_EQ(recorder.warnings.size(), 1u);
  begin();
  EXPECT_TRUE(kernel(program, "add").compile(add_args())->from_cache);
}

TEST_F(KernelTest, CacheCanBeOff) {
  setenv("KILN_CACHE", "0", 1);
  Program program(kAdd);
  EXPECT_OK(kernel(program, "add").launch({1, 1, 1}, Args{x, y, int64_t{2}, std::nullopt}));
  EXPECT_TRUE(kept().empty());
  unsetenv("KILN_CACHE");
}

TEST_F(KernelTest, LeastRecentlyUsedKernelsGoFirst) {
  setenv("KILN_CACHE_LIMIT", "2K", 1);
  Program program(kAdd);
  Kernel add = kernel(program, "add");
  auto compile = [&](int64_t block) { ASSERT_TRUE(add.compile(Args{x, y, int64_t{2}, Arg(block)}).ok()); };
  for (int64_t block = 2; block < 272; ++block) compile(block);  // the 257th store sweeps
  auto files = kept();
  int64_t bytes = 0;
  for (const FileEntry& f : files) bytes += f.bytes;
  EXPECT_LT(files.size(), 30u);
  EXPECT_LT(bytes, 20'000);
  unsetenv("KILN_CACHE_LIMIT");
}

TEST_F(KernelTest, ProcessesThatFollowOneAnotherDoNotAllLookForOldKernels) {
  Program program(kAdd);
  Kernel add = kernel(program, "add");
  const std::string kernels = folder + "/kernels";
  const std::string left = kernels + "/1.tmp";  // of a writer that died: the next look removes it
  auto first_store = [&](int64_t block) {
    EXPECT_OK(write_file_atomic(left, "x"));
    std::filesystem::last_write_time(left, std::filesystem::file_time_type::clock::now() - std::chrono::hours(2));
    begin();
    ASSERT_TRUE(kernel(program, "add").compile(Args{x, y, int64_t{2}, Arg(block)}).ok());
  };
  ASSERT_TRUE(add.compile(add_args()).ok());
  auto looked = [&](std::chrono::minutes ago, int64_t block) {
    std::filesystem::last_write_time(kernels + "/swept", std::filesystem::file_time_type::clock::now() - ago);
    first_store(block);
    return !std::filesystem::exists(left);
  };
  EXPECT_FALSE(looked(std::chrono::minutes(5), 32));
  EXPECT_TRUE(looked(std::chrono::minutes(15), 64));
  EXPECT_TRUE(looked(std::chrono::minutes(-15), 128)) << "a time to come";
}

TEST_F(KernelTest, NoMoreVariantsStayLoadedThanTheLimit) {
  setenv("KILN_KERNEL_LIMIT", "8", 1);
  Program program(kAdd);
  Kernel add = kernel(program, "add");
  auto launch = [&](int64_t block) { EXPECT_OK(add.launch({1, 1, 1}, Args{x, y, int64_t{2}, Arg(block)})); };
  auto loaded = [&] { return Recorder::loaded().load(); };
  const int before = loaded();
  for (int64_t block = 2; block < 66; ++block) {
    launch(block);
    launch(2);  // the one that is used all the time stays
    EXPECT_LE(loaded() - before, 8 + 1) << block;
    ASSERT_TRUE(add.launched());
  }
  EXPECT_GE(loaded() - before, 6);
  const size_t compiled = compilations();
  EXPECT_EQ(compiled, 64u);
  launch(2), launch(65);
  EXPECT_EQ(compilations(), compiled) << "recent ones are there";
  launch(3);  // from the disk
  EXPECT_EQ(recorder.programs, 64 * 2 + 3);
  unsetenv("KILN_KERNEL_LIMIT");
}

TEST_F(KernelTest, VariantsAreDroppedWhileOthersAreLaunched) {
  setenv("KILN_KERNEL_LIMIT", "4", 1);
  Program program(kAdd);
  Kernel add = kernel(program, "add");
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&, t] {
      for (int64_t i = 0; !stop; ++i)
        EXPECT_TRUE(add.launch({1, 1, 1}, Args{x, y, int64_t{2}, Arg(2 + (i / 7 + t) % 6)}).ok());
    });
  for (int64_t block = 2; block < 130; ++block)
    EXPECT_TRUE(add.launch({1, 1, 1}, Args{x, y, int64_t{2}, Arg(block)}).ok());
  stop = true;
  for (std::thread& t : threads) t.join();
  unsetenv("KILN_KERNEL_LIMIT");
}

TEST_F(KernelTest, TwoProcessesAtOnce) {
  std::vector<pid_t> children;
  for (int c = 0; c < 3; ++c) {
    pid_t pid = fork();
    ASSERT_GE(pid, 0);
    if (pid == 0) {
      // The pool's threads stay with the parent, so the child only compiles and reads the cache.
      DiskCache cache([](const std::string&) { _exit(3); });
      CompiledKernel k;
      k.name = "shared";
      k.ptx = std::string(20'000, 'p');
      for (int i = 0; i < 200; ++i) {
        std::string key = "key " + std::to_string(i % 10);
        if (auto found = cache.find(key); found && (found->ptx != k.ptx || found->name != "shared")) _exit(2);
        cache.store(key, k);
        if (!cache.find(key)) _exit(1);
      }
      _exit(0);
    }
    children.push_back(pid);
  }
  for (pid_t pid : children) {
    int status = 0;
    waitpid(pid, &status, 0);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(kept().size(), 10u);
}

TEST_F(KernelTest, DumpFolderGetsTheStages) {
  setenv("KILN_DUMP_DIR", (folder + "/dump").c_str(), 1);
  Program program(kAdd);
  ASSERT_TRUE(kernel(program, "add").compile(Args{x, y, int64_t{2}, std::nullopt}).ok());
  unsetenv("KILN_DUMP_DIR");
  auto files = *list_files(folder + "/dump");
  ASSERT_EQ(files.size(), 1u);
  EXPECT_NE(files[0].path.find("/add.host."), std::string::npos) << files[0].path;
  EXPECT_TRUE(files[0].path.ends_with(".00-ir-fake.txt")) << files[0].path;
  EXPECT_EQ(*read_file(files[0].path), "text of the stage");
}

TEST(KernelCache, SerialisesEveryField) {
  CompiledKernel k;
  struct Fill {
    void operator()(bool& v) const { v = true; }
    void operator()(int& v) const { v = 123; }
    void operator()(int64_t& v) const { v = 123; }
    // A zero byte inside, as code has.
    void operator()(std::string& v) const { v = std::string("a\0b", 3); }
    void operator()(std::vector<std::string>& v) const { v = {"(C7510) slow", ""}; }
    void operator()(std::vector<PhaseTime>& v) const { v = {{"frontend", 0.25}, {"cubin", 5}}; }
  };
  for_each_field(k, [&](const KernelField& field, auto& value) {
    const std::string before = serialize(k), code = code_hash(k);
    Fill{}(value);
    // The table says which fields are part of the key and which of the code's hash.
    EXPECT_EQ(serialize(k) != before, field.has('K')) << field.name;
    EXPECT_EQ(code_hash(k) != code, field.has('C')) << field.name;
  });
  k.params = {{"p", ir::pointer_type(DType::kBF16)}, {"n", ir::scalar_type(DType::kU64)}};
  const HostExpression size{
      {{HostOp::kParam, DType::kU64, 1}, {HostOp::kConstant, DType::kI32, -3}, {HostOp::kAdd, DType::kI32}}};
  k.tensor_maps = {
      {"p", DType::kBF16, {{{HostOp::kParam, DType::kU64, 0}}}, {size, size}, {size, size}, {64, 32}, 128, true}};
  const std::string code = code_hash(k);
  k.roomy = RoomyCode{std::string("b\0c", 3), 80, 2};
  EXPECT_NE(code_hash(k), code);
  auto read = deserialize(serialize(k));
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->roomy, k.roomy);
  EXPECT_EQ(serialize(*read), serialize(k));
  EXPECT_EQ(read->params[0].type, k.params[0].type);
  EXPECT_EQ(read->params[1].name, "n");
  EXPECT_EQ(read->ptx, k.ptx);
  EXPECT_EQ(read->spill_bytes, 123);
  EXPECT_EQ(read->phases[1].ms, 5);
  EXPECT_EQ(read->tensor_maps, k.tensor_maps);
  EXPECT_TRUE(read->has_dot);
  EXPECT_EQ(read->warnings, k.warnings);
  CompiledKernel damaged = k;
  damaged.tensor_maps[0].sizes[0].steps[0].number = 2;  // a parameter that the kernel does not have
  EXPECT_FALSE(deserialize(serialize(damaged)).has_value());
  std::string bytes = serialize(k);
  for (size_t n = 0; n < bytes.size(); ++n) EXPECT_FALSE(deserialize(bytes.substr(0, n)).has_value()) << n;
}

}  // namespace
}  // namespace kiln::runtime
