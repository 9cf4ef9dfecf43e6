// Every kernel of kernels/ through the CUDA pipeline, played by the distributed interpreter against the tile
// interpreter.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <random>
#include <sstream>

#include "compiler/interp/machine/distributed.h"
#include "compiler/passes/pass.h"
#include "tests/unit/frontend/kernel_file.h"

namespace kiln {
namespace {

struct KernelRun {
  const char* name;
  const char* file;
  const char* command;
  int programs;
};

void PrintTo(const KernelRun& run, std::ostream* out) { *out << run.name; }

constexpr int kElements = 4 * 1024;

class KernelsDistributed : public testing::TestWithParam<KernelRun> {};

/// Pointers get a buffer of their own, integers 1000 (or a multiple of 16), floats 0.25.
struct Arguments {
  std::vector<std::vector<uint8_t>> buffers;
  std::vector<uint64_t> slots;

  Arguments(const ir::Module& m, std::mt19937& rng) {
    std::normal_distribution<float> normal;
    for (size_t i = 0; i < m.params.size(); ++i) {
      const ir::Type& type = m.body()->args[i]->type;
      slots.push_back(type.pointer                     ? 0
                      : type.is_float()                ? std::bit_cast<uint32_t>(0.25f)
                      : m.params[i].divisibility == 16 ? 992
                                                       : 1000);
      std::vector<uint8_t>& buffer = buffers.emplace_back();
      if (!type.pointer) continue;
      buffer.resize(static_cast<size_t>(kElements * size_of(type.dtype)));
      for (int k = 0; k < kElements; ++k) {
        uint32_t bits = std::bit_cast<uint32_t>(normal(rng));
        if (type.dtype == DType::kBF16) bits >>= 16;
        std::memcpy(buffer.data() + k * size_of(type.dtype), &bits, static_cast<size_t>(size_of(type.dtype)));
      }
    }
  }

  std::vector<uint64_t> bind(interp::Memory& memory) {
    std::vector<uint64_t> r = slots;
    for (size_t i = 0; i < buffers.size(); ++i) {
      if (buffers[i].empty()) continue;
      memory.allow(buffers[i].data(), buffers[i].size());
      r[i] = reinterpret_cast<uint64_t>(buffers[i].data());
    }
    return r;
  }
};

double element(const std::vector<uint8_t>& buffer, DType dtype, size_t i) {
  uint32_t bits = 0;
  std::memcpy(&bits, buffer.data() + i * static_cast<size_t>(size_of(dtype)), static_cast<size_t>(size_of(dtype)));
  return static_cast<double>(std::bit_cast<float>(dtype == DType::kBF16 ? bits << 16 : bits));
}

TEST_P(KernelsDistributed, MatchesTheTileInterpreter) {
  const KernelRun& kernel = GetParam();
  std::ifstream file(std::string(KILN_SOURCE_DIR "/kernels/") + kernel.file + "/kernel.py");
  std::stringstream text;
  text << file.rdbuf();
  auto module =
      frontend::testing::lower_text(kernel.file, text.str(), frontend::testing::parse_command(kernel.command));
  ASSERT_TRUE(module.ok()) << render(module.error());
  auto distributed = ir::clone(**module);
  passes::RunOptions options;
  options.verify_each = true;
  Status s = passes::run(passes::pipeline(target::Kind::kCuda), *distributed, *target::find("sm_90a"), options);
  ASSERT_TRUE(s.ok()) << render(s.error());

  uint32_t seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 rng(seed);
  Arguments want(**module, rng), got = want;
  interp::Memory want_memory, got_memory;
  std::vector<uint64_t> want_slots = want.bind(want_memory), got_slots = got.bind(got_memory);
  s = interp::run(**module, {kernel.programs, 1, 1}, want_slots, want_memory);
  ASSERT_TRUE(s.ok()) << render(s.error());
  interp::DistributedOptions machine;
  machine.seed = seed;
  s = interp::run_distributed(*distributed, {kernel.programs, 1, 1}, got_slots, got_memory, machine);
  ASSERT_TRUE(s.ok()) << render(s.error());
  for (size_t i = 0; i < want.buffers.size(); ++i) {
    if (want.buffers[i].empty()) continue;
    const DType dtype = (*module)->body()->args[i]->type.dtype;
    const double tolerance = dtype == DType::kBF16 ? 1.0 / 128 : 1e-5;
    for (size_t k = 0; k < kElements; ++k) {
      double w = element(want.buffers[i], dtype, k), g = element(got.buffers[i], dtype, k);
      ASSERT_NEAR(g, w, tolerance * std::max(1.0, std::abs(w))) << "parameter " << i << " element " << k;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Kernels, KernelsDistributed,
    testing::Values(
        KernelRun{"vector_add", "vector_add", "signature=*fp32:16,*fp32:16,*fp32:16,i32:16 BLOCK=256", 4},
        KernelRun{"vector_add_odd", "vector_add", "signature=*bf16:16,*bf16:16,*bf16:16,i32 BLOCK=512 num_warps=8", 2},
        KernelRun{"chain", "pointwise_chain",
                  "kernel=chain_kernel signature=*bf16:16,*bf16:16,*fp32:16,i32:16 BLOCK=1024", 1},
        KernelRun{"softmax", "softmax",
                  "kernel=softmax_kernel signature=*bf16:16,*fp32:16,i32:16 BLOCK=1024 num_warps=8", 3},
        KernelRun{"softmax_odd", "softmax",
                  "kernel=softmax_kernel signature=*fp32:16,*fp32:16,i32 BLOCK=1024 num_warps=1", 2},
        KernelRun{"layernorm", "layernorm",
                  "kernel=layernorm_kernel signature=*bf16:16,*bf16:16,*bf16:16,*bf16:16,*fp32:16,*fp32:16,i32:16,fp32 "
                  "BLOCK=1024 num_warps=16",
                  2},
        KernelRun{"layernorm_wide", "layernorm",
                  "kernel=layernorm_wide_kernel signature=*bf16:16,*bf16:16,*bf16:16,*bf16:16,*fp32:16,*fp32:16,fp32 "
                  "BLOCK=512 N_COLS=992 num_warps=4",
                  2},
        KernelRun{"softmax_wide", "softmax",
                  "kernel=softmax_wide_kernel signature=*bf16:16,*bf16:16 N_COLS=4000 BLOCK=4096 num_warps=2", 1},
        KernelRun{"rmsnorm_wide", "rmsnorm",
                  "kernel=rmsnorm_wide_kernel signature=*bf16:16,*bf16:16,*bf16:16,fp32 N_COLS=992 BLOCK=512 "
                  "num_warps=4",
                  2},
        KernelRun{"rmsnorm", "rmsnorm",
                  "kernel=rmsnorm_kernel signature=*fp32:16,*fp32:16,*fp32:16,i32:16,fp32 BLOCK=1024 num_warps=2", 2},
        KernelRun{"dropout", "dropout", "signature=*fp32:16,*fp32:16,i32:16,fp32,i32 BLOCK=512", 2}),
    [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace kiln
