// The host target's products of matrices against OpenBLAS on the same cores: f32, row-major, interleaved, both on the
// same threads of this program (OpenBLAS multiplies a share of the rows on each). host_gemm [size] [threads] [rounds]
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "bench/argument.h"
#include "bench/thread_time.h"
#include "compiler/compile.h"
#include "compiler/parse/parser.h"
#include "runtime/blas/library.h"
#include "support/diag.h"

namespace {

using namespace kiln;
using bench::on_threads;

constexpr const char* kText = R"(
import triton
import triton.language as tl

@triton.jit
def blocks(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    a_desc = tl.make_tensor_descriptor(a, [M, K], [K, 1], [BM, BK])
    b_desc = tl.make_tensor_descriptor(b, [K, N], [N, 1], [BK, BN])
    c_desc = tl.make_tensor_descriptor(c, [M, N], [N, 1], [BM, BN])
    m = tl.program_id(1) * BM
    n = tl.program_id(0) * BN
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        acc = tl.dot(a_desc.load([m, k]), b_desc.load([k, n]), acc)
    c_desc.store([m, n], acc)

@triton.jit
def pointers(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = tl.program_id(1) * BM + tl.arange(0, BM)
    columns = tl.program_id(0) * BN + tl.arange(0, BN)
    depth = tl.arange(0, BK)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        left = tl.load(a + rows[:, None] * K + (k + depth)[None, :], mask=(rows < M)[:, None] & (k + depth < K)[None, :],
                       other=0.0)
        right = tl.load(b + (k + depth)[:, None] * N + columns[None, :],
                        mask=(k + depth < K)[:, None] & (columns < N)[None, :], other=0.0)
        acc = tl.dot(left, right, acc)
    tl.store(c + rows[:, None] * N + columns[None, :], acc, mask=(rows < M)[:, None] & (columns < N)[None, :])

@triton.jit
def advancing(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = tl.program_id(1) * BM + tl.arange(0, BM)
    columns = tl.program_id(0) * BN + tl.arange(0, BN)
    depth = tl.arange(0, BK)
    a_ptrs = a + rows[:, None] * K + depth[None, :]
    b_ptrs = b + depth[:, None] * N + columns[None, :]
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BK)):
        rest = K - k * BK
        left = tl.load(a_ptrs, mask=(rows[:, None] < M) & (depth[None, :] < rest), other=0.0)
        right = tl.load(b_ptrs, mask=(depth[:, None] < rest) & (columns[None, :] < N), other=0.0)
        acc = tl.dot(left, right, acc)
        a_ptrs += BK
        b_ptrs += BK * N
    tl.store(c + rows[:, None] * N + columns[None, :], acc, mask=(rows[:, None] < M) & (columns[None, :] < N))
)";

template <class T>
T take(Result<T> result) {
  if (result.ok()) return std::move(*result);
  fmt::print(stderr, "{}", render(result.error()));
  std::exit(1);
}

struct Tile {
  int64_t m, n, k;
};

struct Contender {
  std::string name;
  std::function<double(float* c)> run;  // gives seconds
  std::vector<double> seconds = {};
};

Contender kiln_kernel(const std::string& function, const Tile& tile, int64_t size, int64_t threads, const float* a,
                      const float* b) {
  auto functions = take(frontend::jit_functions(take(parse::parse_module(SourceText::make("gemm.py", kText)))));
  auto found =
      std::find_if(functions.begin(), functions.end(), [&](const auto& f) { return f->def->name == function; });
  const std::pair<std::string, frontend::Global> constants[] = {{"BM", ast::Constant(ast::Int{tile.m})},
                                                                {"BN", ast::Constant(ast::Int{tile.n})},
                                                                {"BK", ast::Constant(ast::Int{tile.k})}};
  // Sizes divisible by 16 and pointers aligned to 16, as the specialisation of a real launch has them.
  auto specs = take(frontend::parse_signature(
      **found, "*fp32:16, *fp32:16, *fp32:16, i32:16, i32:16, i32:16, constexpr, constexpr, constexpr", constants));
  CompileOptions options;
  options.want_asm = std::getenv("KILN_BENCH_ASM") != nullptr;
  auto kernel = std::make_shared<CompiledKernel>(take(compile(**found, specs, options)));
  if (options.want_asm) fmt::print("{}\n", kernel->text);
  auto code = take(load_host_object(*kernel));
  auto run = [=](float* c) {
    const auto n = static_cast<uint64_t>(size);
    const uint64_t args[] = {
        // One slot of eight bytes for each argument, as a host kernel's entry reads them; constants have none.
        reinterpret_cast<uint64_t>(a), reinterpret_cast<uint64_t>(b), reinterpret_cast<uint64_t>(c), n, n, n};
    const int32_t grid[] = {static_cast<int32_t>((size + tile.n - 1) / tile.n),
                            static_cast<int32_t>((size + tile.m - 1) / tile.m), 1};
    return on_threads(threads, int64_t{grid[0]} * grid[1], [&](int64_t first, int64_t last) {
      std::unique_ptr<void, decltype(&std::free)> scratch(
          // Scratch for each share, as two threads must not write to the same; aligned_alloc() takes whole multiples of
          // 64.
          std::aligned_alloc(64, static_cast<size_t>(kernel->scratch_bytes + 64) / 64 * 64), &std::free);
      code->entry()(args, grid, first, last, scratch.get());
    });
  };
  return {fmt::format("kiln {} {}x{}x{}", function, tile.m, tile.n, tile.k), run};
}

Contender openblas(int64_t size, int64_t threads, const float* a, const float* b) {
  auto library = take(runtime::blas::OpenBlas::open());
  // Our threads divide the rows, so OpenBLAS must not start its own beneath them.
  library->set_num_threads(1);
  auto run = [=](float* c) {
    // The numbers of CBLAS's enums, since no header of it is included.
    constexpr int kRowMajor = 101, kNoTrans = 111;
    const int n = static_cast<int>(size);
    return on_threads(threads, size, [&](int64_t first, int64_t last) {
      library->sgemm(kRowMajor, kNoTrans, kNoTrans, static_cast<int>(last - first), n, n, 1.0f, a + first * size, n, b,
                     n, 0.0f, c + first * size, n);
    });
  };
  return {"openblas " + library->version, run};
}

}  // namespace

int main(int argc, char** argv) {
  const int64_t size = bench::whole_argument(argc, argv, 1, 1024);
  const int64_t threads = bench::whole_argument(argc, argv, 2, std::thread::hardware_concurrency());
  const auto rounds = static_cast<int>(bench::whole_argument(argc, argv, 3, 7));
  if (size <= 0 || size % 16 != 0 || threads <= 0 || rounds <= 0) {
    fmt::print(stderr, "usage: host_gemm [size, a multiple of 16] [threads] [rounds]\n");
    return 2;
  }
  // A fixed seed: the values decide how far sums may be off.
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  auto matrix = [&] {
    std::vector<float> values(static_cast<size_t>(size * size));
    for (float& v : values) v = normal(random);
    return values;
  };
  const std::vector<float> a = matrix(), b = matrix();
  std::vector<float> expected(a.size()), got(a.size());

  std::vector<Contender> contenders = {openblas(size, threads, a.data(), b.data())};
  for (const Tile& tile : {Tile{128, 128, 32}, Tile{128, 128, 64}, Tile{128, 256, 64}, Tile{256, 128, 128}})
    contenders.push_back(kiln_kernel("blocks", tile, size, threads, a.data(), b.data()));
  for (const char* function : {"pointers", "advancing"})
    contenders.push_back(kiln_kernel(function, {128, 128, 64}, size, threads, a.data(), b.data()));

  contenders[0].run(expected.data());
  for (Contender& c : contenders) {  // which also warms up
    // NaN in every place shows what a kernel leaves out.
    std::fill(got.begin(), got.end(), std::nanf(""));
    c.run(got.data());
    double worst = 0;
    for (size_t i = 0; i < got.size(); ++i)
      worst = std::isnan(got[i]) ? INFINITY : std::max(worst, std::abs(static_cast<double>(got[i]) - expected[i]));
    // Both sums of n products of normals are off by some n roundings of their partial sums.
    const double allowed = 1e-6 * static_cast<double>(size);
    if (worst <= allowed) continue;
    fmt::print(stderr, "{} is wrong: off by {}, allowed {}\n", c.name, worst, allowed);
    return 1;
  }
  for (int round = 0; round < rounds; ++round)
    // In turns, so that a clock that falls slows all alike.
    for (Contender& c : contenders) c.seconds.push_back(c.run(got.data()));
  fmt::print("f32 {0}x{0}x{0} on {1} threads, {2} rounds\n", size, threads, rounds);
  auto best = [](const Contender& c) { return *std::min_element(c.seconds.begin(), c.seconds.end()); };
  auto median = [](Contender& c) {
    std::nth_element(c.seconds.begin(), c.seconds.begin() + c.seconds.size() / 2, c.seconds.end());
    return c.seconds[c.seconds.size() / 2];
  };
  const double flops = 2 * std::pow(static_cast<double>(size), 3);
  const double best_peer = best(contenders[0]), median_peer = median(contenders[0]);
  for (Contender& c : contenders)
    fmt::print("{:<28} median {:7.2f} ms  best {:7.2f} ms  {:6.1f} GFLOP/s  of openblas: best {:.2f}, median {:.2f}\n",
               c.name, median(c) * 1e3, best(c) * 1e3, flops / best(c) * 1e-9, best_peer / best(c),
               median_peer / median(c));
  return 0;
}
