// The runtime on a real GPU: memory, streams, events, launches, and what happens when each of them fails.
#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <cstdio>
#include <numeric>
#include <random>

#include "kiln/tensor.h"
#include "runtime/device/device_kernels.h"
#include "tests/gpu/gpu_test_util.h"
#include "tests/unit/open_device.h"

#include <unistd.h>

namespace kiln::runtime {
namespace {

using Shape = std::vector<int64_t>;

uint64_t fresh_seed() {
  uint64_t seed = std::random_device{}();
  // Printed, so that a failure can be repeated.
  std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
  return seed;
}

TEST(GpuDevice, SaysWhatItIs) {
  GPU_OR_SKIP(device);
  DeviceInfo info = device.info();
  std::printf("%s, %s, driver %s, %d SMs, %lld bytes\n", info.name.c_str(), info.target.c_str(), info.driver.c_str(),
              info.compute_units, static_cast<long long>(info.memory_bytes));
  EXPECT_TRUE(info.target.starts_with("sm_")) << info.target;
  EXPECT_GT(info.compute_units, 0);
  EXPECT_GT(info.memory_bytes, int64_t{1} << 30);
  EXPECT_GT(info.l2_bytes, 0);
  EXPECT_GE(info.shared_bytes, 48 * 1024);
  EXPECT_FALSE(info.driver.empty());
  EXPECT_EQ(Device::list().front(), "cuda:0");
  EXPECT_EQ(*open_device("cuda"), device);
  auto none = open_device("cuda:99");
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().message.find("no device cuda:99: there "), 0u);
}

TEST(GpuDevice, TensorsOfEveryDtypeGoThereAndBack) {
  GPU_OR_SKIP(device);
  Device cpu = *open_device("cpu");
  uint64_t seed = fresh_seed();
  for (int i = 0; i < kNumDTypes; ++i) {
    auto dtype = static_cast<DType>(i);
    // One, an odd few, one block, several blocks with a rest.
    for (int64_t n : {1, 3, 1000, 300'007}) {
      Tensor host = is_float(dtype) ? *randn(cpu, dtype, Shape{n}, seed) : *randint(cpu, dtype, Shape{n}, 0, 2, seed);
      Tensor there = *host.to(device);
      EXPECT_EQ(*there.to_bytes(), *host.to_bytes()) << name(dtype) << " " << n;
      Tensor copy = *Tensor::zeros(device, dtype, Shape{n});
      // On the device itself.
      ASSERT_OK(copy.copy_from(there));
      EXPECT_EQ(*copy.to(cpu)->to_bytes(), *host.to_bytes());
      ASSERT_OK(copy.fill(1));
      EXPECT_EQ(*copy.to_doubles(), std::vector<double>(static_cast<size_t>(n), 1.0)) << name(dtype);
    }
  }
}

TEST(GpuDevice, RandomNumbersAreTheCpus) {
  GPU_OR_SKIP(device);
  Device cpu = *open_device("cpu");
  uint64_t seed = fresh_seed();
  for (DType dtype : {DType::kF32, DType::kBF16, DType::kF16, DType::kF64, DType::kF8E4M3})
    for (int64_t n : {1001, 3'000'001}) {
      EXPECT_EQ(*randn(device, dtype, Shape{n}, seed)->to_bytes(), *randn(cpu, dtype, Shape{n}, seed)->to_bytes())
          << name(dtype) << " " << n;
      EXPECT_EQ(*rand(device, dtype, Shape{n}, seed)->to_bytes(), *rand(cpu, dtype, Shape{n}, seed)->to_bytes())
          << name(dtype) << " " << n;
    }
  for (DType dtype : {DType::kI8, DType::kI32, DType::kU64})
    EXPECT_EQ(*randint(device, dtype, Shape{2'000'003}, 0, 100, seed)->to_bytes(),
              *randint(cpu, dtype, Shape{2'000'003}, 0, 100, seed)->to_bytes());
}

TEST(GpuDevice, ConversionsAreTheCpus) {
  GPU_OR_SKIP(device);
  Device cpu = *open_device("cpu");
  uint64_t seed = fresh_seed();
  const int64_t n = 1'200'003;
  for (DType from :
       {DType::kF64, DType::kF32, DType::kF16, DType::kBF16, DType::kF8E4M3, DType::kI32, DType::kI64, DType::kU8})
    for (DType to : {DType::kF64, DType::kF32, DType::kF16, DType::kBF16, DType::kF8E5M2, DType::kI32, DType::kI16,
                     DType::kU64, DType::kU8, DType::kI1}) {
      Tensor host = is_float(from) ? *randn(cpu, from, Shape{n}, seed) : *randint(cpu, from, Shape{n}, 0, 128, seed);
      EXPECT_EQ(*host.to(device)->to(to)->to_bytes(), *host.to(to)->to_bytes()) << name(from) << " to " << name(to);
    }
}

TEST(GpuDevice, StridedViews) {
  GPU_OR_SKIP(device);
  Device cpu = *open_device("cpu");
  uint64_t seed = fresh_seed();
  for (int64_t rows : {5, 1031}) {
    const int64_t columns = 517;
    Tensor host = *randn(cpu, DType::kF32, Shape{rows, columns}, seed), there = *host.to(device);
    auto transposed = [&](const Tensor& t) { return *t.as_strided(Shape{columns, rows}, Shape{1, columns}, 0); };
    EXPECT_EQ(*transposed(there).contiguous()->to_bytes(), *transposed(host).to_bytes());
    Tensor target = *Tensor::zeros(device, DType::kF32, Shape{columns, rows * 2}),
           expected = *Tensor::zeros(cpu, DType::kF32, Shape{columns, rows * 2});
    // Gaps in the target, which must stay as they were.
    auto every_second = [&](const Tensor& t) { return *t.as_strided(Shape{columns, rows}, Shape{rows * 2, 2}, 1); };
    ASSERT_OK(every_second(target).copy_from(transposed(there)));
    ASSERT_OK(every_second(expected).copy_from(transposed(host)));
    EXPECT_EQ(*target.to_bytes(), *expected.to_bytes());
  }
}

TEST(GpuDevice, CopiesWithinOneTensor) {
  GPU_OR_SKIP(device);
  Device cpu = *open_device("cpu");
  Tensor expected = *randn(cpu, DType::kF32, Shape{70'001}, fresh_seed()), t = *expected.to(device);
  for (const Tensor& x : {expected, t}) {
    ASSERT_OK(x.as_strided(Shape{60'000}, Shape{1}, 3)->copy_from(*x.as_strided(Shape{60'000}, Shape{1}, 0)));
    ASSERT_OK(x.as_strided(Shape{7, 5, 3, 4, 5, 6}, Shape{1, 7, 35, 105, 420, 2100}, 9)
                  ->copy_from(*x.as_strided(Shape{7, 5, 3, 4, 5, 6}, Shape{1800, 360, 120, 30, 6, 1}, 0)));
  }
  EXPECT_EQ(*t.to_bytes(), *expected.to_bytes());
}

TEST(GpuLaunch, PtxByHand) {
  GPU_OR_SKIP(device);
  auto kernel = load_ptx(device, "affine", affine_ptx(), 5);
  ASSERT_TRUE(kernel.ok()) << render(kernel.error());
  EXPECT_GT((*kernel)->registers(), 0);
  uint64_t seed = fresh_seed();
  // Around the 128 threads of a block.
  for (int64_t n : {1, 127, 128, 129, 1'000'003}) {
    Tensor x = *randn(device, DType::kF32, Shape{n}, seed), out = *Tensor::full(device, DType::kF32, Shape{n + 1}, 7);
    ASSERT_OK(launch_ptx(device, **kernel, {static_cast<uint32_t>((n + 127) / 128), 1, 1},
                         {out.address(), x.address(), static_cast<uint64_t>(n), std::bit_cast<uint32_t>(2.5f),
                          std::bit_cast<uint32_t>(-1.0f)}));
    auto in = *x.to_doubles(), got = *out.to_doubles();
    for (size_t i = 0; i < static_cast<size_t>(n); ++i)
      ASSERT_EQ(got[i], std::fma(static_cast<float>(in[i]), 2.5f, -1.0f)) << i;
    EXPECT_EQ(got.back(), 7) << "nothing past the end";
  }
}

TEST(GpuLaunch, DynamicSharedMemoryUpToTheOptInLimit) {
  GPU_OR_SKIP(device);
  int64_t most = device.info().shared_bytes;
  ASSERT_GT(most, 64 * 1024);
  // Without asking, above what needs asking, and all that there is.
  for (int64_t bytes : {int64_t{1024}, int64_t{64 * 1024}, most}) {
    auto kernel = load_ptx(device, "through_shared", shared_ptx(), 2, bytes);
    ASSERT_TRUE(kernel.ok()) << render(kernel.error());
    Tensor out = *Tensor::zeros(device, DType::kI32, Shape{128});
    // At the end of the memory that was asked for.
    ASSERT_OK(launch_ptx(device, **kernel, {1, 1, 1}, {out.address(), static_cast<uint64_t>(bytes - 512)}));
    auto got = *out.to_doubles();
    for (size_t i = 0; i < 128; ++i) ASSERT_EQ(got[i], static_cast<double>(i ^ 1)) << bytes;
  }
  auto too_much = load_ptx(device, "through_shared", shared_ptx(), 2, most + 1);
  ASSERT_FALSE(too_much.ok());
  EXPECT_EQ(too_much.error().message,
            fmt::format("kernel 'through_shared' needs {} bytes of shared memory per program, and cuda:0 has {}",
                        most + 1, most));
}

TEST(GpuLaunch, BadPtxCarriesTheDriversLog) {
  GPU_OR_SKIP(device);
  // A register that nobody has declared.
  auto kernel = load_ptx(device, "broken",
                         std::string(kPtxHeader) + ".visible .entry broken() { add.f32 %nothing, 1, 2; ret; }", 0);
  ASSERT_FALSE(kernel.ok());
  EXPECT_EQ(kernel.error().message.find("kernel 'broken' does not load: "), 0u);
  ASSERT_FALSE(kernel.error().notes.empty());
  EXPECT_NE(kernel.error().notes[0].message.find("nothing"), std::string::npos) << kernel.error().notes[0].message;
  EXPECT_TRUE(load_ptx(device, "affine", affine_ptx(), 5).ok()) << "the device is still usable";
}

TEST(GpuLaunch, RefusedLaunchKeepsTheDevice) {
  GPU_OR_SKIP(device);
  auto kernel = *load_ptx(device, "affine", affine_ptx(), 5, 0, 64);  // 2048 threads
  auto status = launch_ptx(device, *kernel, {1, 1, 1}, {0, 0, 0, 0, 0});
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().kind, ErrorKind::kLaunch);
  EXPECT_EQ(status.error().message.find("kernel 'affine' over a grid of 1x1x1 with 2048 threads"), 0u)
      << status.error().message;
  EXPECT_TRUE(Tensor::full(device, DType::kF32, Shape{4}, 1)->to_doubles().ok());
}

TEST(GpuStream, EventsMeasureAKernel) {
  GPU_OR_SKIP(device);
  auto spin = *load_ptx(device, "spin", spin_ptx(), 2, 0, 1);
  Tensor flag = *Tensor::zeros(device, DType::kI32, Shape{1});
  ASSERT_OK(device.synchronize());
  double last = 0;
  for (uint64_t cycles : {2'000'000, 8'000'000}) {
    // On one stream, so that nothing lies between the two.
    Event from = *device.record();
    ASSERT_OK(launch_ptx(device, *spin, {1, 1, 1}, {flag.address(), cycles}));
    Event to = *device.record();
    auto ms = device.elapsed_ms(from, to);
    ASSERT_TRUE(ms.ok()) << render(ms.error());
    // Clocks are known by their limits only.
    EXPECT_GT(*ms, static_cast<double>(cycles) / 4e6) << "faster than 4 GHz";
    EXPECT_LT(*ms, static_cast<double>(cycles) / 1e5) << "slower than 100 MHz";
    EXPECT_GT(*ms, last);
    last = *ms;
  }
}

TEST(GpuStream, WaitOrdersTwoStreams) {
  GPU_OR_SKIP(device);
  auto spin = *load_ptx(device, "spin", spin_ptx(), 2, 0, 1);
  auto affine = *load_ptx(device, "affine", affine_ptx(), 5);
  Stream a = *device.new_stream(), b = *device.new_stream();
  Tensor flag = *Tensor::zeros(device, DType::kI32, Shape{1}), copy = *Tensor::zeros(device, DType::kI32, Shape{1});
  ASSERT_OK(device.synchronize());
  for (int round = 0; round < 5; ++round) {
    ASSERT_OK(flag.fill(0));
    ASSERT_OK(device.synchronize());
    // Long enough that the second stream would be early.
    ASSERT_OK(launch_ptx(device, *spin, {1, 1, 1}, {flag.address(), 20'000'000}, a));
    ASSERT_OK(b.wait(*device.record(a)));
    // The bits of 1 as f32 are a denormal; times 1 plus 0 they stay.
    ASSERT_OK(launch_ptx(device, *affine, {1, 1, 1},
                         {copy.address(), flag.address(), 1, std::bit_cast<uint32_t>(1.0f), 0}, b));
    ASSERT_OK(b.synchronize());
    EXPECT_EQ(copy.to_doubles()->at(0), 1);
  }
}

TEST(GpuStream, AFreedTensorIsNotReusedWhileAnotherStreamReadsIt) {
  GPU_OR_SKIP(device);
  auto spin = *load_ptx(device, "spin", spin_ptx(), 2, 0, 1);
  Stream side = *device.new_stream();
  device.impl()->allocator().trim();  // other tests' segments would offer other blocks
  Tensor t = *Tensor::zeros(device, DType::kI32, Shape{1 << 20});
  ASSERT_OK(device.synchronize());
  uint64_t address = t.address();
  ASSERT_OK(launch_ptx(device, *spin, {1, 1, 1}, {address, 100'000'000}, side));
  t.storage()->used_on(*side.impl());
  t.free();
  Tensor early = *Tensor::empty(device, DType::kI32, Shape{1 << 20});
  // The kernel still reads it.
  EXPECT_NE(early.address(), address);
  ASSERT_OK(side.synchronize());
  // Now nobody does.
  Tensor late = *Tensor::empty(device, DType::kI32, Shape{1 << 20});
  EXPECT_EQ(late.address(), address);
}

TEST(GpuMemory, ExhaustionIsASentenceAndTheDeviceGoesOn) {
  GPU_OR_SKIP(device);
  ASSERT_TRUE(Tensor::zeros(device, DType::kI8, Shape{1}).ok());
  // A pebibyte, which no device has.
  auto absurd = Tensor::empty(device, DType::kF32, Shape{int64_t{1} << 50});
  ASSERT_FALSE(absurd.ok());
  EXPECT_EQ(absurd.error().kind, ErrorKind::kMemory);
  EXPECT_EQ(absurd.error().message.find("out of memory on cuda:0: asked for 4.00 PiB, "), 0u) << absurd.error().message;
  // More than half, twice: the second succeeds because the first's memory, cached after its end, is given back.
  int64_t bytes = device.free_bytes() / 5 * 3;
  for (int i = 0; i < 2; ++i) {
    auto large = Tensor::empty(device, DType::kI8, Shape{bytes + (int64_t{i} << 22)});
    ASSERT_TRUE(large.ok()) << render(large.error());
    auto second = Tensor::empty(device, DType::kI8, Shape{bytes});
    ASSERT_FALSE(second.ok());
    EXPECT_EQ(second.error().kind, ErrorKind::kMemory);
  }
  // Nothing is left in the cache for the tests that follow.
  device.impl()->allocator().trim();
  EXPECT_TRUE(Tensor::full(device, DType::kF32, Shape{1000}, 2)->to_doubles().ok());
}

// --- faults: each in a process of its own, since CUDA gives a context up after one
// --------------------------------------

// The children print what they see; DISABLED_ keeps them out of a normal run.
std::string run_child(const std::string& name) {
  char self[4096] = {};
  if (readlink("/proc/self/exe", self, sizeof self - 1) < 0) return "no /proc/self/exe";
  std::string command = fmt::format(
      // A shard of a test run would leave the child's test out.
      "env -u GTEST_TOTAL_SHARDS -u GTEST_SHARD_INDEX '{}' --gtest_also_run_disabled_tests "
      "--gtest_filter=GpuFaultChild.DISABLED_{} 2>&1",
      self, name);
  FILE* pipe = popen(command.c_str(), "r");
  if (!pipe) return "no pipe";
  std::string output;
  char buffer[4096];
  while (size_t n = fread(buffer, 1, sizeof buffer, pipe)) output.append(buffer, n);
  pclose(pipe);
  return output;
}

// Run by the test below, in a process of its own.
TEST(GpuFaultChild, DISABLED_IllegalAddress) {
  GPU_OR_SKIP(device);
  auto kernel = *load_ptx(device, "affine", affine_ptx(), 5);
  Tensor t = *Tensor::zeros(device, DType::kF32, Shape{4});
  ASSERT_OK(device.synchronize());
  // An address that was never allocated, and is canonical all the same.
  ASSERT_OK(launch_ptx(device, *kernel, {1, 1, 1}, {uint64_t{1} << 45, uint64_t{1} << 45, 4, 0, 0}));
  Status status = device.default_stream().synchronize();
  std::printf("first: %s\n", status.ok() ? "ok" : status.error().message.c_str());
  status = t.fill(1);
  std::printf("then: %s\n", status.ok() ? "ok" : status.error().message.c_str());
  Tensor on_cpu = *Tensor::full(*open_device("cpu"), DType::kF32, Shape{4}, 3);
  std::printf("cpu: %g\n", on_cpu.to_doubles()->at(0));
}

TEST(GpuFaultChild, DISABLED_FaultSeenByACopy) {
  GPU_OR_SKIP(device);
  auto kernel = *load_ptx(device, "affine", affine_ptx(), 5);
  Tensor t = *Tensor::zeros(device, DType::kF32, Shape{4});
  // Two bytes off an address of four.
  ASSERT_OK(launch_ptx(device, *kernel, {1, 1, 1}, {t.address() + 2, t.address(), 4, 0, 0}));
  auto bytes = t.to_bytes();
  std::printf("copy: %s\n", bytes.ok() ? "ok" : bytes.error().message.c_str());
}

TEST(GpuFault, NamesTheKernelAndTheProcessGoesOn) {
  GPU_OR_SKIP(device);
  std::string output = run_child("IllegalAddress");
  EXPECT_NE(
      output.find("first: kernel 'affine' on cuda:0 read or wrote an illegal address (CUDA_ERROR_ILLEGAL_ADDRESS)\n"),
      std::string::npos)
      << output;
  EXPECT_NE(output.find("then: the context of cuda:0 is lost since kernel 'affine' failed"), std::string::npos)
      << output;
  EXPECT_NE(output.find("cpu: 3\n"), std::string::npos) << output;
  // A context that is lost must not end in a crash.
  EXPECT_NE(output.find("[  PASSED  ] 1 test."), std::string::npos) << "a clean exit after the fault\n" << output;
}

TEST(GpuFault, SeenByACopyIsTheKernels) {
  GPU_OR_SKIP(device);
  std::string output = run_child("FaultSeenByACopy");
  EXPECT_NE(output.find(
                "copy: kernel 'affine' on cuda:0 read or wrote a misaligned address (CUDA_ERROR_MISALIGNED_ADDRESS)\n"),
            std::string::npos)
      << output;
}

}  // namespace
}  // namespace kiln::runtime
