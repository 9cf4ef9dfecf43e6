// The host target's two figures: the fused six-op chain against memcpy on the same threads, and against one kernel per
// op; and what a kernel costs to compile. host_chain [log2 elements] [threads]
#include <fmt/format.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <thread>

#include "bench/argument.h"
#include "bench/thread_time.h"
#include "compiler/codegen/host.h"
#include "compiler/compile.h"
#include "compiler/lower/host/host.h"
#include "compiler/passes/pass.h"
#include "support/diag.h"

namespace {

using namespace kiln;
using bench::cpu_seconds;
using bench::on_threads;

// Elements of one program: 16 KiB of f32, which stay in a core's first cache.
constexpr int kBlock = 4096;

struct Kernel {
  std::shared_ptr<HostCode> code;
  int64_t scratch_bytes = 0;
};

[[noreturn]] void stop(const Diagnostic& d) {
  fmt::print(stderr, "{}", render(d));
  std::exit(1);
}

// out = body(x, y), masked, over blocks of kBlock f32.
Kernel compile_kernel(const std::string& body, bool print_phases = false) {
  std::string text = fmt::format(R"(kernel @k(%x: *f32, %y: *f32, %out: *f32, %n: i32) {{
  %pid = program_id {{axis = 0}} : i32
  %size = constant {0} : i32
  %start = mul %pid, %size : i32
  %starts = splat %start : i32[{0}]
  %r = arange {{start = 0, end = {0}}} : i32[{0}]
  %o = add %starts, %r : i32[{0}]
  %nn = splat %n : i32[{0}]
  %m = cmp %o, %nn {{predicate = "lt"}} : i1[{0}]
  %xs = splat %x : *f32[{0}]
  %px = addptr %xs, %o : *f32[{0}]
  %a = load %px, %m : f32[{0}]
  %ys = splat %y : *f32[{0}]
  %py = addptr %ys, %o : *f32[{0}]
  %b = load %py, %m : f32[{0}]
{1}
  %os = splat %out : *f32[{0}]
  %po = addptr %os, %o : *f32[{0}]
  store %po, %result, %m
  return
}}
)",
                                 kBlock, body);
  // A placeholder, since the type of a tile occurs in the bodies as well.
  for (size_t at; (at = text.find("TILE")) != std::string::npos;) text.replace(at, 4, fmt::format("f32[{}]", kBlock));
  auto module = ir::parse_module(SourceText::make("bench.ir", text));
  if (!module.ok()) stop(module.error());
  const target::Target& host = *target::find("host");
  const double passes_start = cpu_seconds();
  // The host's own passes, from text of the IR: the frontend is no part of these figures.
  if (Status s = passes::run(passes::pipeline(host.kind), **module, host, {}); !s.ok()) stop(s.error());
  const double passes_ms = (cpu_seconds() - passes_start) * 1e3;
  llvm::LLVMContext context;
  const double lower_start = cpu_seconds();
  auto lowered = lower::lower_host(**module, context);
  if (!lowered.ok()) stop(lowered.error());
  const double lower_ms = (cpu_seconds() - lower_start) * 1e3;
  const double emit_start = cpu_seconds();
  auto object = codegen::emit_object(*lowered->module, std::getenv("KILN_BENCH_ASM") != nullptr);
  if (!object.ok()) stop(object.error());
  const double emit_ms = (cpu_seconds() - emit_start) * 1e3;
  if (std::getenv("KILN_BENCH_ASM")) fmt::print("{}\n", object->assembly);
  CompiledKernel kernel;
  kernel.name = "k";
  kernel.object = object->object;
  const double load_start = cpu_seconds();
  auto code = load_host_object(kernel);
  if (!code.ok()) stop(code.error());
  if (print_phases)
    fmt::print("  passes {:.2f} ms, lowering {:.2f} ms, LLVM {:.2f} ms, loading {:.2f} ms; {} bytes\n", passes_ms,
               lower_ms, emit_ms, (cpu_seconds() - load_start) * 1e3, kernel.object.size());
  return {*code, lowered->scratch_bytes};
}

double launch(const Kernel& k, int threads, const float* x, const float* y, float* out, int64_t n) {
  const uint64_t args[] = {reinterpret_cast<uint64_t>(x), reinterpret_cast<uint64_t>(y),
                           reinterpret_cast<uint64_t>(out), static_cast<uint64_t>(n)};
  const int64_t programs = (n + kBlock - 1) / kBlock;
  // Rounded up; the mask takes what is too much.
  const int32_t grid[] = {static_cast<int32_t>(programs), 1, 1};
  return on_threads(threads, programs, [&](int64_t first, int64_t last) {
    std::unique_ptr<void, decltype(&std::free)> scratch(
        std::aligned_alloc(64, static_cast<size_t>(k.scratch_bytes + 64) / 64 * 64), &std::free);
    k.code->entry()(args, grid, first, last, scratch.get());
  });
}

// Median seconds of several runs, after one that is not counted. `run` gives the time of one.
double measure(const std::function<double()>& run) {
  // Once for the pages and caches.
  run();
  std::vector<double> times;
  for (int i = 0; i < 7; ++i) times.push_back(run());
  std::nth_element(times.begin(), times.begin() + 3, times.end());
  return times[3];
}

constexpr const char* kScale = "  %two = constant 2.0 : TILE\n  %t1 = mul %a, %two : TILE\n";
constexpr const char* kGelu = R"(  %c1 = constant 0.7071067811865476 : TILE
  %h1 = mul %t2, %c1 : TILE
  %h2 = erf %h1 : TILE
  %one = constant 1.0 : TILE
  %h3 = add %one, %h2 : TILE
  %half = constant 0.5 : TILE
  %h4 = mul %half, %t2 : TILE
  %g = mul %h4, %h3 : TILE
)";
constexpr const char* kSigmoid = R"(  %neg = neg %b : TILE
  %e = exp %neg : TILE
  %one2 = constant 1.0 : TILE
  %d = add %one2, %e : TILE
  %s = div %one2, %d : TILE
)";

}  // namespace

int main(int argc, char** argv) {
  const int64_t exponent = bench::whole_argument(argc, argv, 1, 26);
  const auto threads = static_cast<int>(bench::whole_argument(argc, argv, 2, std::thread::hardware_concurrency()));
  if (exponent <= 0 || exponent > 40 || threads <= 0) {
    fmt::print(stderr, "usage: host_chain [log2 of the elements, at most 40] [threads]\n");
    return 2;
  }
  const int64_t n = int64_t{1} << exponent;
  auto tensor = [&] {
    // On huge pages, as the runtime allocates.
    constexpr size_t kHugePage = 2 << 20;
    const size_t bytes = (static_cast<size_t>(n) * 4 + kHugePage - 1) / kHugePage * kHugePage;
    auto p = static_cast<float*>(std::aligned_alloc(kHugePage, bytes));
    (void)madvise(p, bytes, MADV_HUGEPAGE);
    // 2003 is a prime: the pattern has no period that a cache would like.
    for (int64_t i = 0; i < n; ++i) p[i] = static_cast<float>(i % 2003) * 0.003f - 3;
    return p;
  };
  float *x = tensor(), *y = tensor(), *out = tensor(), *t = tensor();

  fmt::print("{} elements of f32, {} threads, {}\n", n, threads, codegen::host_cpu_description().substr(0, 40));
  const std::string chain = std::string(kScale) + "  %t2 = add %t1, %b : TILE\n" + kGelu + kSigmoid +
                            "  %p = mul %g, %s : TILE\n  %result = sub %p, %a : TILE\n";
  // Its first use sets LLVM up, which no later kernel pays for.
  compile_kernel("  %result = add %a, %b : TILE\n");  // LLVM's own initialisation
  fmt::print("compile add:\n");
  Kernel add = compile_kernel("  %result = add %a, %b : TILE\n", true);
  fmt::print("compile chain:\n");
  Kernel fused = compile_kernel(chain, true);

  const double copy = measure([&] {
    return on_threads(threads, n, [&](int64_t first, int64_t last) {
      std::memcpy(out + first, x + first, static_cast<size_t>(last - first) * 4);
    });
  });
  // Read and written: eight bytes an element.
  const double copy_rate = 8.0 * static_cast<double>(n) / copy / 1e9;
  auto report = [&](const char* name, double seconds, double bytes) {
    const double rate = bytes * static_cast<double>(n) / seconds / 1e9;
    fmt::print("{:<22} {:8.2f} ms  {:6.2f} GB/s  {:.2f} of memcpy\n", name, seconds * 1e3, rate, rate / copy_rate);
  };
  report("memcpy", copy, 8);
  report("add", measure([&] { return launch(add, threads, x, y, out, n); }), 12);
  const double fused_time = measure([&] { return launch(fused, threads, x, y, out, n); });
  report("chain, fused", fused_time, 12);

  std::string gelu = kGelu, sigmoid = kSigmoid;
  // The bodies name their operands of the chain; alone they read the first one.
  for (size_t at; (at = gelu.find("%t2")) != std::string::npos;) gelu.replace(at, 3, "%a");
  gelu.replace(gelu.find("%g ="), 2, "%result");
  for (size_t at; (at = sigmoid.find("%b")) != std::string::npos;) sigmoid.replace(at, 2, "%a");
  sigmoid.replace(sigmoid.find("%s ="), 2, "%result");
  Kernel scale = compile_kernel("  %two = constant 2.0 : TILE\n  %result = mul %a, %two : TILE\n"),
         g = compile_kernel(gelu), s = compile_kernel(sigmoid),
         multiply = compile_kernel("  %result = mul %a, %b : TILE\n"),
         subtract = compile_kernel("  %result = sub %a, %b : TILE\n");
  // Each step reads what the last one stored, as separate kernels must.
  const double unfused = measure([&] {
    return launch(scale, threads, x, x, t, n) + launch(add, threads, t, y, t, n) + launch(g, threads, t, t, t, n) +
           launch(s, threads, y, y, out, n) + launch(multiply, threads, t, out, t, n) +
           launch(subtract, threads, t, x, out, n);
  });
  report("chain, a kernel per op", unfused, 12);
  fmt::print("fused is {:.2f} times as fast\n", unfused / fused_time);
  for (float* p : {x, y, out, t}) std::free(p);
  return 0;
}
