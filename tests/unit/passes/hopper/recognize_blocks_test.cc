// The pointer form of a product and the block form that recognize_blocks makes of it leave the same memory, bit for
// bit, at sizes that fill no tile.
#include "compiler/passes/hopper/recognize_blocks.h"

#include <gtest/gtest.h>

#include <fstream>
#include <random>
#include <sstream>

#include "compiler/interp/tile/interp.h"
#include "support/diag.h"
#include "support/float_bits.h"

namespace kiln::passes {
namespace {

/// The IR of a golden test, up to what it expects.
std::unique_ptr<ir::Module> golden_input(const std::string& name) {
  std::stringstream text;
  text << std::ifstream(KILN_SOURCE_DIR "/tests/golden/passes/" + name).rdbuf();
  std::string ir = text.str();
  ir = ir.substr(ir.find('\n') + 1);
  ir.resize(ir.find("---- expect"));
  auto m = ir::parse_module(SourceText::make(name, ir));
  EXPECT_TRUE(m.ok()) << (m.ok() ? "" : render(m.error()));
  return std::move(*m);
}

struct Matrix {
  Matrix(int rows, int columns) : stride((columns + 15) / 16 * 16), bits(static_cast<size_t>(rows * stride)) {}
  int stride;
  std::vector<uint16_t> bits;
};

void fill(Matrix& m, std::mt19937& rng) {
  std::uniform_int_distribution<int> small(-8, 8);
  for (uint16_t& v : m.bits) v = static_cast<uint16_t>(float_to_bits(DType::kF16, small(rng)));
}

Status run(const ir::Module& module, int m, int n, int k, Matrix& a, Matrix& b, Matrix& c) {
  interp::Memory memory;
  for (Matrix* x : {&a, &b, &c}) memory.allow(x->bits.data(), x->bits.size() * 2);
  const uint64_t args[] = {reinterpret_cast<uint64_t>(a.bits.data()),
                           reinterpret_cast<uint64_t>(b.bits.data()),
                           reinterpret_cast<uint64_t>(c.bits.data()),
                           static_cast<uint64_t>(m),
                           static_cast<uint64_t>(n),
                           static_cast<uint64_t>(k),
                           static_cast<uint64_t>(a.stride),
                           static_cast<uint64_t>(b.stride),
                           static_cast<uint64_t>(c.stride)};
  const int tiles = (m + 63) / 64 * ((n + 31) / 32);
  return interp::run(module, {tiles, 1, 1}, args, memory, {});
}

TEST(RecognizeBlocks, KeepsTheMeaningOfTheTutorialsProduct) {
  const std::unique_ptr<ir::Module> pointers = golden_input("recognize_blocks.txt");
  const std::unique_ptr<ir::Module> blocks = ir::clone(*pointers);
  ASSERT_TRUE(recognize_blocks(*blocks, *target::find("sm_90a")).ok());
  ASSERT_NE(ir::print(*blocks).find("descriptor_load"), std::string::npos);
  ASSERT_TRUE(ir::verify(*blocks).ok());
  const uint32_t seed = std::random_device{}();
  SCOPED_TRACE(seed);
  std::mt19937 rng(seed);
  for (auto [m, n, k] : {std::array{1, 1, 1}, {65, 33, 17}}) {
    Matrix a(m, k), b(k, n), c(m, n);
    fill(a, rng), fill(b, rng);
    std::fill(c.bits.begin(), c.bits.end(), uint16_t{0x7e01});
    Matrix again = c;
    const Status first = run(*pointers, m, n, k, a, b, c), second = run(*blocks, m, n, k, a, b, again);
    ASSERT_TRUE(first.ok()) << render(first.error());
    ASSERT_TRUE(second.ok()) << render(second.error());
    EXPECT_EQ(c.bits, again.bits) << m << " " << n << " " << k;
  }
}

}  // namespace
}  // namespace kiln::passes
