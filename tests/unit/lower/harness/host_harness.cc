#include "tests/unit/lower/harness/host_harness.h"

#include <gtest/gtest.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Support/raw_ostream.h>

#include <cmath>
#include <cstring>

#include "compiler/codegen/host.h"
#include "compiler/interp/tile/interp.h"
#include "compiler/lower/host/host.h"
#include "support/diag.h"
#include "support/float_bits.h"

namespace kiln::test {

Result<HostKernel> compile_host(const ir::Module& module, bool want_llvm) {
  llvm::LLVMContext context;
  KILN_TRY(lower::HostLowered lowered, lower::lower_host(module, context));
  std::string text;
  llvm::raw_string_ostream out(text);
  if (llvm::verifyModule(*lowered.module, &out)) {
    lowered.module->print(out, nullptr);
    return error(ErrorKind::kInternal, "broken LLVM IR: {}", text);
  }
  HostKernel result;
  if (want_llvm) {
    lowered.module->print(out, nullptr);
    result.llvm = text;
  }
  KILN_TRY(codegen::HostObject object, codegen::emit_object(*lowered.module, want_llvm));
  if (want_llvm) result.llvm += object.assembly;
  CompiledKernel kernel;
  kernel.name = module.name;
  kernel.object = std::move(object.object);
  KILN_TRY(result.code, load_host_object(kernel));
  result.scratch.resize(static_cast<size_t>(lowered.scratch_bytes) + 128);
  return result;
}

void HostKernel::run(const std::vector<uint64_t>& args, std::array<int32_t, 3> grid) {
  run(args, grid, 0, int64_t{grid[0]} * grid[1] * grid[2]);
}

void HostKernel::run(const std::vector<uint64_t>& args, std::array<int32_t, 3> grid, int64_t first, int64_t last) {
  auto aligned = (reinterpret_cast<uintptr_t>(scratch.data()) + 63) / 64 * 64;
  code->entry()(args.data(), grid.data(), first, last, reinterpret_cast<void*>(aligned));
}

namespace {

// Random contents: floats of ordinary size with some odd ones, small and large integers, bools of 0 and 1.
void fill(std::mt19937_64& random, DType dtype, std::vector<std::byte>* bytes) {
  const auto size = static_cast<size_t>(size_of(dtype));
  for (size_t i = 0; i + size <= bytes->size(); i += size) {
    uint64_t bits = random();
    if (dtype == DType::kI1)
      bits &= 1;
    else if (is_float(dtype)) {
      double value = static_cast<double>(static_cast<int64_t>(random())) * 0x1p-61;
      if (random() % 50 == 0) value *= 0x1p40;
      if (random() % 100 == 0) value = 0;
      bits = float_to_bits(dtype, value);
    } else if (random() % 4) {
      bits = random() % 100;
      if (is_signed(dtype) && random() % 2) bits = ~bits;
    }
    std::memcpy(bytes->data() + i, &bits, size);
  }
}

bool close(DType dtype, uint64_t want, uint64_t got, const Tolerance& t) {
  if (want == got) return true;
  if (!is_float(dtype)) return false;
  const double x = float_from_bits(dtype, want), y = float_from_bits(dtype, got);
  if (std::isnan(x) || std::isnan(y)) return std::isnan(x) && std::isnan(y);
  if (std::isinf(x) || std::isinf(y)) return x == y;
  return std::abs(x - y) <= t.absolute + t.relative * std::abs(x) && (t.absolute > 0 || t.relative > 0);
}

}  // namespace

void expect_same(const ir::Module& module, const HostCase& c, uint64_t seed, const std::string& what) {
  if (!seed) seed = std::random_device{}() | 1;
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  auto host = compile_host(module);
  ASSERT_TRUE(host.ok()) << host.error().message << "\n" << what;

  struct Memory {
    DType dtype;
    std::vector<std::byte> oracle, host;
  };
  std::map<std::string, Memory> buffers;
  std::vector<uint64_t> oracle_args, host_args;
  interp::Memory allowed;
  const auto& params = module.body()->args;
  for (const ir::Value* p : params) {
    const std::string name(p->name);
    if (!p->type.pointer || c.aliases.contains(name)) continue;
    Memory& m = buffers[name];
    m.dtype = p->type.dtype;
    m.oracle.resize(static_cast<size_t>(c.elements * size_of(m.dtype)));
    fill(random, m.dtype, &m.oracle);
    m.host = m.oracle;
    allowed.allow(m.oracle.data(), m.oracle.size());
  }
  for (const ir::Value* p : params) {
    const std::string name(p->name);
    uint64_t bits = random() % 7 + 1;
    if (p->type.pointer) {
      auto alias = c.aliases.find(name);
      Memory& m = buffers.at(alias == c.aliases.end() ? name : alias->second.first);
      const int64_t offset = alias == c.aliases.end() ? 0 : alias->second.second * size_of(p->type.dtype);
      oracle_args.push_back(reinterpret_cast<uint64_t>(m.oracle.data()) + static_cast<uint64_t>(offset));
      host_args.push_back(reinterpret_cast<uint64_t>(m.host.data()) + static_cast<uint64_t>(offset));
      continue;
    }
    if (p->type.is_float()) {
      auto given = c.floats.find(name);
      bits = float_to_bits(p->type.dtype,
                           given != c.floats.end() ? given->second : static_cast<double>(random() % 1000) / 300 + 0.1);
    } else if (auto given = c.scalars.find(name); given != c.scalars.end()) {
      bits = static_cast<uint64_t>(given->second);
    }
    if (p->type.is_bool()) bits &= 1;
    oracle_args.push_back(bits);
    host_args.push_back(bits);
  }
  // The interpreter takes exactly the bits of the type.
  for (size_t i = 0; i < params.size(); ++i)
    if (!params[i]->type.pointer && params[i]->type.element_bits() < 64)
      oracle_args[i] &= (uint64_t{1} << params[i]->type.element_bits()) - 1;

  Status oracle = interp::run(module, c.grid, oracle_args, allowed);
  ASSERT_TRUE(oracle.ok()) << render(oracle.error()) << what;
  if (c.in_order_chunks) {
    const int64_t programs = int64_t{c.grid[0]} * c.grid[1] * c.grid[2];
    host->run(host_args, c.grid, 0, programs / 2);
    host->run(host_args, c.grid, programs / 2, programs);
  } else {
    host->run(host_args, c.grid);
  }
  Status fault = host->code->take_failure();
  ASSERT_TRUE(fault.ok()) << fault.error().message;
  for (const auto& [name, m] : buffers) {
    const auto size = static_cast<size_t>(size_of(m.dtype));
    for (size_t i = 0; i < m.oracle.size() / size; ++i) {
      uint64_t want = 0, got = 0;
      std::memcpy(&want, m.oracle.data() + i * size, size);
      std::memcpy(&got, m.host.data() + i * size, size);
      ASSERT_TRUE(close(m.dtype, want, got, c.tolerance))
          << name << "[" << i << "]: the interpreter gives " << std::hex << "0x" << want << ", the host 0x" << got
          << std::dec
          << (is_float(m.dtype) ? " (" + std::to_string(float_from_bits(m.dtype, want)) + ", " +
                                      std::to_string(float_from_bits(m.dtype, got)) + ")"
                                : "")
          << "\n"
          << what;
    }
  }
}

void expect_same(const std::string& ir_text, const HostCase& c, uint64_t seed) {
  auto module = ir::parse_module(SourceText::make("test.ir", ir_text));
  ASSERT_TRUE(module.ok()) << render(module.error());
  Status verified = ir::verify(**module);
  ASSERT_TRUE(verified.ok()) << render(verified.error());
  expect_same(**module, c, seed, ir_text);
}

}  // namespace kiln::test
