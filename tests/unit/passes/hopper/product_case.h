// Kernels that multiply, as tests run them in tile IR and, distributed for Hopper, on the machine that the interpreter
// plays.
#pragma once
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "compiler/frontend/frontend.h"
#include "compiler/interp/machine/distributed.h"
#include "compiler/interp/tile/interp.h"
#include "compiler/parse/parser.h"
#include "support/float_bits.h"

namespace kiln::passes {

inline constexpr int64_t kRows = 100, kColumns = 80, kDepth = 144;  // of the product: none is a multiple of its tile

/// A launch of `product(a, b, c, q, index, M, N, K, L, BM, BN, BK)`, which computes the M x N elements of c: a (M x K)
/// and b (K x N) are of `dtype`, q has whole numbers of 8 bits from 0 to 4, index has rows of a, L is `depth`.
struct ProductCase {
  DType dtype = DType::kF16, out = DType::kF32;
  int64_t block_m = 64, block_n = 32, block_k = 32;
  int64_t depth = kDepth;  // of the part that is multiplied: ends within 16 bytes of a row
  int warps = 4, stages = 3;
};

inline Result<std::unique_ptr<ir::Module>> lower(const ProductCase& c, const std::string& source) {
  KILN_TRY(auto module, parse::parse_module(SourceText::make("product.py", source)));
  KILN_TRY(auto functions, frontend::jit_functions(module));
  auto one = [](int64_t v) { return ast::Constant(ast::Int{v}); };
  const std::vector<std::pair<std::string, frontend::Global>> constants = {
      {"BM", one(c.block_m)}, {"BN", one(c.block_n)}, {"BK", one(c.block_k)}};
  const std::string_view type = kiln::info(c.dtype).triton;
  KILN_TRY(auto args,
           frontend::parse_signature(*functions.back(),
                                     fmt::format("*{}:16, *{}:16, *{}:16, *i8:16, *i32:16, i32, i32:16, i32:16, i32",
                                                 type, type, kiln::info(c.out).triton),
                                     constants));
  frontend::Options options;
  options.num_warps = c.warps;
  options.num_stages = c.stages;
  return frontend::lower_kernel(*functions.back(), args, options);
}

/// Memory and arguments of one run.
class Problem {
 public:
  Problem(DType dtype, std::mt19937& rng) {
    std::normal_distribution<double> normal;
    const int64_t whole = 256;  // rows that tiles may reach beyond the tensor
    fill(dtype, kRows * kDepth, [&](int64_t) { return float_to_bits(dtype, normal(rng)); });
    fill(dtype, kDepth * kColumns, [&](int64_t) { return float_to_bits(dtype, normal(rng)); });
    fill(DType::kF32, kRows * kColumns, [&](int64_t) { return nan_bits(DType::kF32); });
    fill(DType::kI8, std::max(kRows, kColumns) * kDepth, [&](int64_t) { return static_cast<uint64_t>(rng() % 5); });
    fill(DType::kI32, whole, [&](int64_t) { return static_cast<uint64_t>(rng() % kRows); });
  }

  Status operator()(const ProductCase& c, const ir::Module& m, const interp::DistributedOptions& options = {}) {
    interp::Memory memory;
    for (size_t i = 0; i < buffers_.size(); ++i) memory.allow(reinterpret_cast<void*>(addresses_[i]), bytes_[i]);
    for (int64_t e = 0; e < kRows * kColumns; ++e)
      interp::Memory::write(addresses_[2] + static_cast<uint64_t>(4 * e), DType::kF32, nan_bits(DType::kF32));
    std::vector<uint64_t> args = addresses_;
    for (int64_t v : {kRows, kColumns, kDepth, c.depth}) args.push_back(static_cast<uint64_t>(v));
    const std::array<int32_t, 3> grid = {static_cast<int32_t>((kRows + c.block_m - 1) / c.block_m),
                                         static_cast<int32_t>((kColumns + c.block_n - 1) / c.block_n), 1};
    return m.stage == ir::Stage::kTile ? interp::run(m, grid, args, memory)
                                       : interp::run_distributed(m, grid, args, memory, options);
  }

  std::vector<double> result() const {
    std::vector<double> out;
    for (int64_t i = 0; i < kRows * kColumns; ++i)
      out.push_back(float_from_bits(DType::kF32,
                                    interp::Memory::read(addresses_[2] + static_cast<uint64_t>(4 * i), DType::kF32)));
    return out;
  }

 private:
  template <class Fn>
  void fill(DType t, int64_t count, Fn&& bits) {
    auto& buffer = buffers_.emplace_back(static_cast<size_t>(count * size_of(t) / 8 + 4));
    const uint64_t begin = (reinterpret_cast<uint64_t>(buffer.data()) + 15) & ~uint64_t{15};
    addresses_.push_back(begin);
    bytes_.push_back(static_cast<size_t>(count * size_of(t)));
    for (int64_t i = 0; i < count; ++i)
      interp::Memory::write(begin + static_cast<uint64_t>(i * size_of(t)), t, bits(i));
  }

  std::vector<std::vector<uint64_t>> buffers_;
  std::vector<uint64_t> addresses_;
  std::vector<size_t> bytes_;
};

/// What the tile IR and the distributed IR of a case compute. `seed` is of the machine's order of warps.
inline void run_both(const ProductCase& c, const ir::Module& tile, const ir::Module& distributed, std::mt19937& rng,
                     uint64_t seed, std::vector<double>* expected, std::vector<double>* got) {
  Problem launch(c.dtype, rng);
  Status ran = launch(c, tile);
  ASSERT_TRUE(ran.ok()) << render(ran.error());
  *expected = launch.result();
  interp::DistributedOptions options;
  options.seed = seed;
  ran = launch(c, distributed, options);
  ASSERT_TRUE(ran.ok()) << render(ran.error()) << ir::print(distributed);
  *got = launch.result();
}

}  // namespace kiln::passes
