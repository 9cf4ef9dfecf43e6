#include "kiln/kernel.h"

#include <fmt/format.h>

#include <atomic>
#include <bit>
#include <chrono>
#include <condition_variable>
#include <random>
#include <set>
#include <thread>

#include "kiln/check.h"
#include "kiln/image.h"
#include "runtime/host/host_backend.h"
#include "runtime/launch/args.h"
#include "runtime/launch/kernel_launched.h"
#include "tests/unit/runtime/launch/kernel_fixture.h"

namespace kiln::runtime {
namespace {

TEST_F(KernelTest, LaunchPacksSlotsAndCountsPrograms) {
  Program program(kAdd);
  Kernel add = kernel(program, "add");
  ASSERT_EQ(add.params().size(), 4u);
  EXPECT_TRUE(add.params()[3].is_constexpr && add.params()[3].has_default);
  EXPECT_OK(add.launch({7, 3, 2}, Args{x, y, int64_t{100}, std::nullopt}));
  EXPECT_EQ(recorder.programs, 42);
  EXPECT_EQ(recorder.grid, (std::array<int32_t, 3>{7, 3, 2}));
  // The constexpr takes no slot.
  EXPECT_EQ(recorder.slots, (std::vector<uint64_t>{x.address(), y.address(), 100}));
  EXPECT_EQ(recorder.targets.back(), "host");
  EXPECT_EQ(spec(0).type, ir::pointer_type(DType::kF32));
  EXPECT_EQ(spec(0).divisibility, 16);
  EXPECT_EQ(spec(1).type, ir::pointer_type(DType::kBF16));
  EXPECT_EQ(spec(2).type, ir::scalar_type(DType::kI32));
  // 100 is divisible by 4, which is what an alignment of 16 bytes needs of an f32.
  EXPECT_EQ(spec(2).divisibility, 4);
  EXPECT_TRUE(spec(3).is_constexpr);
  EXPECT_EQ(std::get<ast::Int>(std::get<ast::Constant>(spec(3).value)), 1024);
}

TEST_F(KernelTest, SpecialisesAsTritonDoes) {
  Program program("@triton.jit\ndef f(p, a, b, c, d, e, g, h):\n    pass\n");
  Kernel f = kernel(program, "f");
  auto unaligned = *x.as_strided(Shape{10}, Shape{1}, 1);
  EXPECT_OK(f.launch({1, 1, 1}, Args{unaligned, int64_t{1}, int64_t{32}, int64_t{1} << 40, uint64_t{1} << 63, 2.5, true,
                                     std::monostate{}}));
  EXPECT_EQ(spec(0).divisibility, 1);
  EXPECT_TRUE(spec(1).is_constexpr) << "1 is a constexpr";
  EXPECT_EQ(spec(2).type, ir::scalar_type(DType::kI32));
  EXPECT_EQ(spec(2).divisibility, 16);
  EXPECT_EQ(spec(3).type, ir::scalar_type(DType::kI64));
  EXPECT_EQ(spec(3).divisibility, 16);
  EXPECT_EQ(spec(4).type, ir::scalar_type(DType::kU64));
  EXPECT_EQ(spec(5).type, ir::scalar_type(DType::kF32));
  EXPECT_EQ(spec(6).type, ir::scalar_type(DType::kI1));
  EXPECT_TRUE(spec(7).is_constexpr);
  EXPECT_TRUE(std::holds_alternative<ast::None>(std::get<ast::Constant>(spec(7).value)));
  EXPECT_EQ(recorder.slots, (std::vector<uint64_t>{unaligned.address(), 32, uint64_t{1} << 40, uint64_t{1} << 63,
                                                   std::bit_cast<uint32_t>(2.5f), 1}));
}

TEST_F(KernelTest, IntegerWidthFollowsTheValue) {
  Program program("@triton.jit\ndef f(n):\n    pass\n");
  Kernel f = kernel(program, "f");
  struct Case {
    int64_t value;
    DType type;
    int divisibility;
  };
  for (auto [value, type, divisibility] : {Case{0, DType::kI32, 16},
                                           {2, DType::kI32, 1},
                                           {-1, DType::kI32, 1},
                                           {-32, DType::kI32, 16},
                                           {-24, DType::kI32, 8},
                                           {1000, DType::kI32, 8},
                                           {1004, DType::kI32, 4},
                                           {1L << 33 | 4, DType::kI64, 4},
                                           {1002, DType::kI32, 1},
                                           {INT32_MAX, DType::kI32, 1},
                                           {INT32_MIN, DType::kI32, 16},
                                           {INT32_MAX + 1L, DType::kI64, 16},
                                           {INT32_MIN - 1L, DType::kI64, 1},
                                           {INT64_MAX, DType::kI64, 1}}) {
    ASSERT_TRUE(f.compile(Args{Arg(value)}, here()).ok());
    EXPECT_EQ(arg_specs(read_params(*program.functions["f"], {}), Args{Arg(value)})[0].type, ir::scalar_type(type))
        << value;
    EXPECT_EQ(arg_specs(read_params(*program.functions["f"], {}), Args{Arg(value)})[0].divisibility, divisibility)
        << value;
  }
}

TEST_F(KernelTest, EqualSpecialisationsCompileOnce) {
  Program program(kAdd);
  Kernel add = kernel(program, "add");
  for (int64_t n : {102, 101, 7, 32, 64, 1, 1, 33, 100, 24, 12, 8})
    EXPECT_OK(add.launch({1, 1, 1}, Args{x, y, Arg(n), int64_t{64}}));
  EXPECT_EQ(compilations(), 5u) << "plain, divisible by 16, by 8 and by 4, equal to 1";
  EXPECT_OK(add.launch({1, 1, 1}, Args{x, y, int64_t{101}, int64_t{128}}));
  EXPECT_OK(add.launch({1, 1, 1}, Args{y, y, int64_t{101}, int64_t{128}}));
  LaunchOptions eight;
  eight.num_warps = 8;
  EXPECT_OK(add.launch({1, 1, 1}, Args{y, y, int64_t{101}, int64_t{128}}, eight));
  EXPECT_EQ(compilations(), 8u);
  EXPECT_EQ(recorder.options.back().num_warps, 8);
  EXPECT_OK(add.launch({1, 1, 1}, Args{x, y, int64_t{5}, int64_t{64}}));
  EXPECT_EQ(compilations(), 8u);
}

TEST_F(KernelTest, DoNotSpecializeAndAnnotations) {
  Program program("@triton.jit\ndef f(a, b: tl.int64, c: tl.float64, d: \"u8\", e: int, g: \"bf16\"):\n    pass\n");
  program.functions["f"]->do_not_specialize = {"a"};
  Kernel f = kernel(program, "f");
  EXPECT_OK(f.launch({1, 1, 1}, Args{int64_t{1}, int64_t{1}, int64_t{3}, int64_t{255}, int64_t{1}, 1.5}, here()));
  EXPECT_EQ(spec(0).type, ir::scalar_type(DType::kI32)) << "1 is not a constexpr under do_not_specialize";
  EXPECT_EQ(spec(1).type, ir::scalar_type(DType::kI64)) << "nor with an annotation";
  EXPECT_EQ(spec(2).type, ir::scalar_type(DType::kF64));
  EXPECT_EQ(spec(3).type, ir::scalar_type(DType::kU8));
  EXPECT_TRUE(spec(4).is_constexpr) << "Python's int fixes nothing";
  EXPECT_EQ(recorder.slots, (std::vector<uint64_t>{1, 1, std::bit_cast<uint64_t>(3.0), 255, 0x3fc0}));
  EXPECT_OK(f.launch({1, 1, 1}, Args{int64_t{16}, int64_t{48}, 3.0, int64_t{16}, int64_t{16}, int64_t{2}}, here()));
  EXPECT_EQ(spec(0).divisibility, 1);
  EXPECT_EQ(spec(1).divisibility, 16) << "an annotation keeps divisibility";
  auto status = f.launch({1, 1, 1}, Args{int64_t{1}, int64_t{1}, 1.0, int64_t{256}, int64_t{1}, 1.0}, here());
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().message, "kernel 'f': argument 'd' is annotated u8, which 256 does not fit");
  status = f.launch({1, 1, 1}, Args{int64_t{1}, 1.5, 1.0, int64_t{1}, int64_t{1}, 1.0}, here());
  EXPECT_EQ(status.error().message, "kernel 'f': argument 'b' is annotated i64 and got a float");
  status = f.launch({1, 1, 1}, Args{int64_t{1}, x, 1.0, int64_t{1}, int64_t{1}, 1.0});
  EXPECT_EQ(status.error().message, "kernel 'f': argument 'b' is annotated i64 and got a tensor");
}

TEST_F(KernelTest, ConstexprsOfEveryKind) {
  Program program("@triton.jit\ndef helper(a):\n    pass\n@triton.jit\ndef f(x, K: tl.constexpr):\n    pass\n");
  Kernel f = kernel(program, "f"), helper = kernel(program, "helper");
  // Values that are equal for C++ or look alike as text, and must be told apart in a key.
  const Arg values[] = {Arg(true),
                        Arg(false),
                        Arg(int64_t{1}),
                        Arg(int64_t{0}),
                        Arg(1.0),
                        Arg(0.0),
                        Arg(-0.0),
                        Arg(std::string("relu")),
                        Arg(std::string("")),
                        Arg(DType::kF16),
                        Arg(std::monostate{}),
                        Arg(helper),
                        Arg(uint64_t{1} << 63),
                        Arg(std::string(5000, 'a'))};
  size_t count = 0;
  for (int round = 0; round < 2; ++round)
    for (const Arg& value : values) {
      EXPECT_OK(f.launch({1, 1, 1}, Args{x, value}));
      if (round == 0) ++count;
      EXPECT_EQ(compilations(), count) << "each is a specialisation of its own, found again";
      EXPECT_EQ(recorder.num_params, 1u);
    }
  EXPECT_TRUE(std::holds_alternative<DType>(recorder.compiled[9][1].value));
  auto status = f.launch({1, 1, 1}, Args{x, y});
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().message, "kernel 'f': argument 'K' is a tl.constexpr parameter and got a tensor");
}

TEST_F(KernelTest, DefaultsAreEvaluated) {
  Program program(
      "@triton.jit\ndef f(x, a=3, b=-2.5, D: tl.constexpr = tl.float16, N: tl.constexpr = SIZE, M: tl.constexpr = 2 * "
      "8, U=unknown()):\n    pass\n",
      {{"SIZE", ast::Constant(ast::Int{77})}});
  Kernel f = kernel(program, "f");
  EXPECT_OK(
      f.launch({1, 1, 1}, Args{x, std::nullopt, std::nullopt, std::nullopt, std::nullopt, std::nullopt, int64_t{5}}));
  EXPECT_EQ(recorder.slots, (std::vector<uint64_t>{x.address(), 3, std::bit_cast<uint32_t>(-2.5f), 5}));
  EXPECT_EQ(std::get<DType>(spec(3).value), DType::kF16);
  EXPECT_EQ(std::get<ast::Int>(std::get<ast::Constant>(spec(4).value)), 77);
  EXPECT_EQ(std::get<ast::Int>(std::get<ast::Constant>(spec(5).value)), 16);
  auto status =
      f.launch({1, 1, 1}, Args{x, std::nullopt, std::nullopt, std::nullopt, std::nullopt, std::nullopt, std::nullopt});
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().kind, ErrorKind::kUnsupported);
  EXPECT_EQ(status.error().place.line, 2) << "the default's own place";
}

TEST_F(KernelTest, WrongArgumentsNameTheParameter) {
  Program program(kAdd);
  Kernel add = kernel(program, "add");
  EXPECT_EQ(add.launch({1, 1, 1}, Args{x, y}).error().message, "kernel 'add' has 4 parameters, got 2 arguments");
  EXPECT_EQ(add.launch({1, 1, 1}, Args{x, std::nullopt, int64_t{2}, std::nullopt}).error().message,
            "kernel 'add': argument 'y' is missing");
  // An empty handle by value and by pointer.
  for (const Arg& empty : {Arg(Tensor()), Arg(static_cast<const Tensor*>(nullptr))})
    EXPECT_EQ(add.launch({1, 1, 1}, Args{x, empty, int64_t{2}, std::nullopt}).error().message,
              "kernel 'add': argument 'y' is an empty tensor handle");
  // A view shares the memory that is freed under it.
  Tensor gone = *Tensor::zeros(device, DType::kF32, Shape{4}), view = *gone.view(Shape{2, 2});
  gone.free();
  auto status = add.launch({1, 1, 1}, Args{x, view, int64_t{2}, std::nullopt});
  EXPECT_EQ(status.error().kind, ErrorKind::kValue);
  EXPECT_EQ(status.error().message, "kernel 'add': argument 'y' was freed: free() released its memory");
  EXPECT_EQ(compilations(), 0u);
}

TEST_F(KernelTest, EmptyHandlesAreErrors) {
  Program program(kAdd);
  Kernel add = kernel(program, "add");
  const std::shared_ptr<const ArgTuple> none, around = std::make_shared<ArgTuple>(ArgTuple{{int64_t{1}, none}, {}});
  for (const Arg& empty : {Arg(none), Arg(around)})
    for (const Status& status : {add.launch({1, 1, 1}, Args{x, empty, int64_t{2}, std::nullopt}),
                                 add.launch({1, 1, 1}, Args{empty, x, int64_t{2}, std::nullopt}),
                                 add.launch({1, 1, 1}, Args{x, x, int64_t{2}, empty})})
      EXPECT_TRUE(status.error().message.ends_with("is an empty tuple handle")) << status.error().message;
  const Args args{x, x, int64_t{2}, std::nullopt};
  EXPECT_EQ(Kernel().launch({1, 1, 1}, args).error().message, "launch of an empty kernel handle");
  EXPECT_EQ(Kernel().compile(args).error().message, "compile of an empty kernel handle");
  EXPECT_EQ(launch_checked(Kernel(), {1, 1, 1}, args).error().message, "launch_checked of an empty kernel handle");
  EXPECT_EQ(compile_checked(Kernel(), args).error().message, "compile_checked of an empty kernel handle");
  EXPECT_EQ(Kernel().name(), "");
  EXPECT_TRUE(Kernel().params().empty() && !Kernel().launched() && !Kernel().was_launched_as(nullptr));
  EXPECT_EQ(LoadedImage().launch({1, 1, 1}, {}).error().message, "launch of an empty handle of a loaded image");
  EXPECT_EQ(Device().new_stream().error().message, "a stream needs a device");
  EXPECT_EQ(Device().record().error().message, "an event needs a device");
  EXPECT_TRUE(Device().synchronize().ok());
}

TEST_F(KernelTest, GridsAreChecked) {
  Program program(kAdd);
  Kernel add = kernel(program, "add");
  Args args{x, y, int64_t{2}, std::nullopt};
  // An empty grid launches nothing, and so needs no compilation.
  for (std::array<int64_t, 3> empty : {std::array<int64_t, 3>{0, 1, 1}, {1, 0, 1}, {5, 5, 0}})
    EXPECT_OK(add.launch(empty, args));
  EXPECT_EQ(recorder.programs, 0);
  EXPECT_EQ(compilations(), 0u);
  EXPECT_EQ(add.launch({-1, 1, 1}, args).error().message,
            "kernel 'add': grid (-1, 1, 1): axis 0 must be from 0 to 2147483647");
  EXPECT_EQ(add.launch({1, 65536, 1}, args).error().message,
            "kernel 'add': grid (1, 65536, 1): axis 1 must be from 0 to 65535");
  EXPECT_EQ(add.launch({int64_t{1} << 31, 1, 1}, args).error().kind, ErrorKind::kLaunch);
  EXPECT_OK(add.launch({1, 65535, 1}, args));
}

TEST_F(KernelTest, OptionsAreChecked) {
  Program program(kAdd);
  Kernel add = kernel(program, "add");
  Args args{x, y, int64_t{2}, std::nullopt};
  for (int warps : {0, -1, 3, 64}) {
    LaunchOptions options;
    options.num_warps = warps;
    auto status = add.launch({1, 1, 1}, args, options);
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().message,
              fmt::format("kernel 'add': num_warps must be a power of two from 1 to 32, got {}", warps));
  }
  for (int ctas : {0, 3, 16}) {
    LaunchOptions options;
    options.num_ctas = ctas;
    auto status = add.launch({1, 1, 1}, args, options);
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().message,
              fmt::format("kernel 'add': num_ctas must be a power of two from 1 to 8, got {}", ctas));
  }
}

TEST_F(KernelTest, CompileErrorsComeThroughAndAreRetried) {
  Program program(kAdd);
  Kernel add = kernel(program, "add");
  Args args{x, y, int64_t{2}, std::nullopt};
  recorder.fail = true;
  // A failure is not kept: the cause may be gone at the next try.
  EXPECT_EQ(add.launch({1, 1, 1}, args).error().message, "the fake compiler refuses");
  recorder.fail = false;
  EXPECT_OK(add.launch({1, 1, 1}, args));
}

TEST_F(KernelTest, AFailedDeviceAssertionIsTheLaunchsError) {
  Program program(kAdd);
  Kernel add = kernel(program, "add");
  Args args{x, y, int64_t{2}, std::nullopt};
  recorder.assertion = true;
  EXPECT_EQ(add.launch({1, 1, 1}, args).error().kind, ErrorKind::kLaunch);
  recorder.assertion = false;
  EXPECT_OK(add.launch({1, 1, 1}, args));
}

TEST_F(KernelTest, CompilesForAnotherTargetWithoutLaunching) {
  Program program(kAdd);
  Kernel add = kernel(program, "add");
  auto info = add.compile(Args{x, y, int64_t{2}, std::nullopt}, {}, "sm_90a");
  ASSERT_TRUE(info.ok());
  EXPECT_EQ(info->target, "sm_90a");
  EXPECT_EQ(info->ptx, "// ptx of add");
  EXPECT_FALSE(info->from_cache);
  EXPECT_EQ(recorder.programs, 0);
  info = add.compile(Args{x, y, int64_t{2}, std::nullopt});
  EXPECT_EQ(info->target, "host");
  ASSERT_EQ(info->phases.size(), 2u);
  EXPECT_EQ(info->phases[0].name, "frontend");
  EXPECT_EQ(info->phases[1].name, "load");
}

TEST_F(KernelTest, AChangedGlobalIsSeen) {
  Program program("@triton.jit\ndef helper(a):\n    return a\n@triton.jit\ndef f(x):\n    n = N\n    y = helper(n)\n",
                  {{"N", ast::Constant(ast::Int{3})}, {"n", ast::Constant(ast::Int{1})}});
  Kernel f = kernel(program, "f");
  EXPECT_OK(f.launch({1, 1, 1}, Args{x}));
  EXPECT_OK(f.launch({1, 1, 1}, Args{x}));
  (*program.globals)["n"] = ast::Constant(ast::Int{2});
  EXPECT_OK(f.launch({1, 1, 1}, Args{x}));
  EXPECT_EQ(compilations(), 1u) << "n is the kernel's own name";
  (*program.globals)["N"] = ast::Constant(ast::Int{4});
  EXPECT_OK(f.launch({1, 1, 1}, Args{x}));
  EXPECT_EQ(compilations(), 2u);
  Program other("@triton.jit\ndef helper(a):\n    return a + 1\n");
  (*program.globals)["helper"] = std::shared_ptr<const frontend::JitFunction>(other.functions["helper"]);
  EXPECT_OK(f.launch({1, 1, 1}, Args{x}));
  EXPECT_EQ(compilations(), 3u);
  EXPECT_OK(f.launch({1, 1, 1}, Args{x}));
  EXPECT_EQ(compilations(), 3u);
}

TEST_F(KernelTest, ManyParametersAndSpecialisations) {
  std::string text = "@triton.jit\ndef f(x";
  for (int i = 0; i < 150; ++i) text += ", a" + std::to_string(i);
  Program program(text + ", K: tl.constexpr):\n    pass\n");
  Kernel f = kernel(program, "f");
  Args args{x};
  for (int i = 0; i < 150; ++i) args.push_back(int64_t{1000 + i});
  args.push_back(int64_t{0});
  for (int64_t k = 0; k < 100; ++k) {
    args.back() = Arg(k);
    EXPECT_OK(f.launch({1, 1, 1}, args));
  }
  EXPECT_EQ(compilations(), 100u);
  ASSERT_EQ(recorder.slots.size(), 151u);
  for (uint64_t i = 0; i < 150; ++i) EXPECT_EQ(recorder.slots[i + 1], 1000 + i);
  for (int64_t k = 0; k < 100; ++k) {
    args.back() = Arg(k);
    EXPECT_OK(f.launch({1, 1, 1}, args));
  }
  EXPECT_EQ(compilations(), 100u);
}

TEST_F(KernelTest, ThreadsShareOneKernel) {
  Program program(kAdd);
  Kernel add = kernel(program, "add");
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int64_t i = 0; i < 200; ++i) EXPECT_OK(add.launch({1, 1, 1}, Args{x, y, int64_t{2}, Arg((i + t) % 20)}));
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(compilations(), 20u);
  EXPECT_EQ(recorder.programs, 800);
}

TEST_F(KernelTest, SpecialisationsCompileSideBySide) {
  Program program(kAdd);
  // Each compilation waits for another to be inside too.
  constexpr int kThreads = 4;
  std::mutex mutex;
  std::condition_variable met;
  int inside = 0, most = 0, compiled = 0;
  Compiler slow = fake_compiler(recorder);
  slow.compile = [&, real = slow.compile](const auto& function, auto args, const CompileOptions& options) {
    std::unique_lock lock(mutex);
    most = std::max(most, ++inside);
    met.notify_all();
    // Ends by itself if they did not meet, and fails below.
    met.wait_for(lock, std::chrono::seconds(60), [&] { return most == kThreads; });
    --inside, ++compiled;
    return real(function, args, options);
  };
  device = *make_runtime(std::make_unique<Jit>(slow, [](const std::string&) {})).open("cpu");
  x = *Tensor::zeros(device, DType::kF32, Shape{100}), y = *Tensor::zeros(device, DType::kBF16, Shape{100});
  Kernel add = kernel(program, "add");
  std::vector<std::thread> threads;
  for (int t = 0; t < 2 * kThreads; ++t)
    threads.emplace_back([&, t] {
      // Two threads for each block size: one compiles it, the other waits for that.
      auto info = add.compile(Args{x, y, int64_t{2}, Arg(int64_t{1} << (t % kThreads))});
      EXPECT_TRUE(info.ok());
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(most, kThreads);
  EXPECT_EQ(compiled, kThreads);
}

TEST_F(KernelTest, AThreadThatWaitedForAFailureTriesItself) {
  Program program(kAdd);
  recorder.fail = true;
  Kernel add = kernel(program, "add");
  std::atomic<int> failures{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] { failures += !add.compile(Args{x, y, int64_t{2}, int64_t{64}}).ok(); });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(failures, 4);
  recorder.fail = false;
  EXPECT_TRUE(add.compile(Args{x, y, int64_t{2}, int64_t{64}}).ok());
}

// A launch first tries the specialisation of the one before it. Here most launches change something: an alignment, a
// width, a divisibility, a type, a constexpr, a default, an option, an item of a tuple.
TEST_F(KernelTest, ARepeatedSpecialisationIsNeverMistaken) {
  const auto seed = static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
  SCOPED_TRACE(fmt::format("seed {}", seed));
  std::mt19937_64 random(seed);
  Program program(
      "@triton.jit\ndef f(p, n, q, s, b: tl.int64, u, K: tl.constexpr, d=7):\n    pass\n"
      "@triton.jit\ndef helper(a):\n    pass\n");
  program.functions["f"]->do_not_specialize = {"u"};
  Kernel f = kernel(program, "f"), helper = kernel(program, "helper");
  auto params = read_params(*program.functions["f"], {});
  auto pick = [&]<size_t N>(const Arg(&choices)[N]) { return choices[random() % N]; };
  Tensor unaligned = *x.as_strided(Shape{10}, Shape{1}, 1);
  const Arg tensors[] = {x, y, unaligned, &y, &unaligned};
  const Arg integers[] = {int64_t{1},       int64_t{2},        int64_t{32}, int64_t{48},
                          int64_t{1} << 40, uint64_t{1} << 63, int64_t{-16}};
  const Arg scalars[] = {int64_t{1}, int64_t{5}, 2.5, true, std::monostate{}, x};
  const Arg wide[] = {int64_t{1}, int64_t{16}, true};
  // "tanh" and "tan": one begins with the other.
  const Arg constants[] = {
      int64_t{1}, int64_t{64}, std::string("relu"), std::string("tanh"), std::string("tan"), 1.0, DType::kF16,
      true,       helper,      std::monostate{}};
  auto text_of = [](const auto& self, const frontend::ArgSpec& a) -> std::string {
    if (!a.is_tuple)
      return a.is_constexpr ? describe(a.value) : fmt::format("{}:{}", ir::to_string(a.type), a.divisibility);
    std::string items;
    for (const frontend::ArgSpec& item : a.items) items += self(self, item) + ", ";
    return fmt::format("({}) {}", items, fmt::join(a.fields, " "));
  };
  auto text = [&](const frontend::ArgSpec& a) { return text_of(text_of, a); };
  // With names or without, and others within.
  auto tuple = [&](const auto& self, const auto& choices, int depth) -> Arg {
    auto made = std::make_shared<ArgTuple>();
    for (size_t n = random() % 4; n > 0; --n)
      made->items.push_back(depth < 2 && random() % 4 == 0 ? self(self, choices, depth + 1) : pick(choices));
    if (random() % 2)
      for (size_t k = 0; k < made->items.size(); ++k)
        made->fields.push_back(fmt::format("{}{}", random() % 2 ? 'a' : 'b', k));
    return std::shared_ptr<const ArgTuple>(std::move(made));
  };
  std::set<std::string> seen;
  for (int i = 0; i < 1000; ++i) {
    Args args{pick(tensors), pick(integers), pick(tensors),   pick(scalars),
              pick(wide),    pick(integers), pick(constants), std::nullopt};
    if (random() % 3 == 0) args[7] = pick(integers);
    if (random() % 3 == 0) args[3] = tuple(tuple, scalars, 0);
    if (random() % 3 == 0) args[6] = tuple(tuple, constants, 0);
    LaunchOptions options;
    if (random() % 4 == 0) options.num_warps = 8;
    std::string expected = fmt::format("{} warps", options.num_warps), launched = expected;
    for (const auto& a : arg_specs(params, args)) expected += "; " + text(a);
    // The arguments bound on their own: what the launch must have passed.
    BoundArgs bound;
    ASSERT_TRUE(bind_args("f", params, args, bound).ok());
    // The same arguments again are the case of a loop.
    for (int repeat = 0; repeat < 2; ++repeat) {
      recorder.slots.clear();
      recorder.num_params = static_cast<size_t>(bound.num_slots);
      EXPECT_OK(f.launch({1, 2, 3}, args, options));
      EXPECT_EQ(recorder.slots, std::vector<uint64_t>(bound.slots(), bound.slots() + bound.num_slots));
      auto as = f.impl()->launched_as();
      launched = fmt::format("{} warps", as->options.num_warps);
      for (const auto& a : as->args) launched += "; " + text(a);
      ASSERT_EQ(launched, expected);
    }
    seen.insert(expected);
    ASSERT_EQ(compilations(), seen.size());
  }
}

TEST_F(KernelTest, ARepeatedLaunchIsCheckedLikeTheFirst) {
  Program program(kAdd);
  Kernel add = kernel(program, "add");
  Args args{x, y, int64_t{100}, std::nullopt};
  auto repeat = [&] { EXPECT_OK(add.launch({2, 1, 1}, args)); };
  repeat();
  EXPECT_EQ(recorder.programs, 2);
  EXPECT_OK(add.launch({0, 1, 1}, args));
  EXPECT_EQ(recorder.programs, 2);
  EXPECT_EQ(add.launch({2, 65536, 1}, args).error().kind, ErrorKind::kLaunch);
  repeat();
  EXPECT_EQ(add.launch({2, 1, 1}, Args{x, y, int64_t{100}}).error().message,
            "kernel 'add' has 4 parameters, got 3 arguments");
  repeat();
  EXPECT_EQ(add.launch({2, 1, 1}, Args{x, Tensor(), int64_t{100}, std::nullopt}).error().message,
            "kernel 'add': argument 'y' is an empty tensor handle");
  repeat();
  // A second device of the same kind: only its identity tells them apart.
  Device other(
      std::make_shared<DeviceImpl>("other", *make_host_backend(), device.impl()->runtime().shared_from_this()));
  Tensor far = *Tensor::zeros(other, DType::kBF16, Shape{100});
  EXPECT_EQ(add.launch({2, 1, 1}, Args{x, far, int64_t{100}, std::nullopt}).error().message,
            "kernel 'add': 'x' is on cpu and 'y' is on other");
  const Tensor nothing = *Tensor::zeros(other, DType::kBF16, Shape{0});
  EXPECT_OK(add.launch({0, 1, 1}, Args{x, nothing, int64_t{100}, std::nullopt}));
  EXPECT_OK(add.launch({0, 1, 1}, Args{nothing, y, int64_t{100}, std::nullopt}));
  repeat();
  EXPECT_EQ(compilations(), 1u);
  y.free();
  EXPECT_EQ(add.launch({2, 1, 1}, args).error().message,
            "kernel 'add': argument 'y' was freed: free() released its memory");
  EXPECT_EQ(recorder.programs, 10);
}

TEST(Closure, FreeNamesAreReadAndNotBoundBefore) {
  Program program(R"(
@triton.jit
def f(p, n: tl.constexpr = DEFAULT):
    acc = G1 + p
    a = acc
    late, G17 = G17, [z for z in q]
    for i in range(G2):
        acc += table[i]
    if G3 < n:
        b: G4 = helper(x=G5)[G6:, None]
    else:
        (c, d) = -G7, not G8
    e = G9 if G10 else [G11 for G12 in q]
    tl.store(p, a.G13, mask=G14 and G15)
    return G16
)");
  auto names = free_names(*program.functions["f"]->def);
  // Names that are read before they are bound; attributes and keyword names are none.
  std::vector<std::string> expected = {"DEFAULT", "G1", "G10",    "G11", "G14",   "G15",   "G16",
                                       "G17",     "G2", "G3",     "G4",  "G5",    "G6",    "G7",
                                       "G8",      "G9", "helper", "q",   "range", "table", "tl"};
  EXPECT_EQ(names, expected);
}

}  // namespace
}  // namespace kiln::runtime
