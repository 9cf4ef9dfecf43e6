// ---- run [grid=N]     what each op does: runs the kernel in the interpreter and, through the CUDA pipeline, on the
// distributed interpreter, which must agree; shows the buffers named out* and what was printed. Buffers have 16
// elements: zeros in out*, else -8, -7, … (floats: -6, -5.25, …); scalars are 5 (floats: 1.5).
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "compiler/interp/eval.h"
#include "compiler/interp/machine/distributed.h"
#include "compiler/passes/pass.h"
#include "support/diag.h"
#include "tests/golden/golden.h"

namespace kiln {
namespace {

constexpr int kCount = 16;

uint64_t element(DType t, double integer, double real) {
  return is_float(t) ? float_to_bits(t, real)
                     : interp::convert(DType::kI64, t, static_cast<uint64_t>(static_cast<int64_t>(integer)));
}

/// The outputs and sorted prints of a run, or its diagnostic.
std::string execute(const ir::Module& m, int grid) {
  std::vector<std::vector<uint64_t>> storage;  // 8 bytes for each element are enough and aligned
  std::vector<uint64_t> slots;
  interp::Memory memory;
  for (size_t p = 0; p < m.params.size(); ++p) {
    const ir::Type& type = m.body()->args[p]->type;
    if (!type.pointer) {
      slots.push_back(element(type.dtype, 5, 1.5));
      continue;
    }
    auto& buffer = storage.emplace_back(kCount);
    slots.push_back(reinterpret_cast<uint64_t>(buffer.data()));
    memory.allow(buffer.data(), static_cast<size_t>(kCount * size_of(type.dtype)));
    if (m.params[p].name.starts_with("out")) continue;
    for (int i = 0; i < kCount; ++i)
      interp::Memory::write(slots.back() + static_cast<uint64_t>(i * size_of(type.dtype)), type.dtype,
                            element(type.dtype, i - 8, (i - 8) * 0.75));
  }
  std::vector<std::string> prints;
  auto on_print = [&](const std::string& line) { prints.push_back(line); };
  interp::Options tile;
  tile.on_print = on_print;
  interp::DistributedOptions distributed;
  distributed.on_print = on_print;
  const Status s = m.stage == ir::Stage::kTile ? interp::run(m, {grid, 1, 1}, slots, memory, tile)
                                               : interp::run_distributed(m, {grid, 1, 1}, slots, memory, distributed);
  if (!s.ok()) return render(s.error());
  std::string out;
  for (size_t p = 0; p < m.params.size(); ++p) {
    const ir::Type& type = m.body()->args[p]->type;
    if (!type.pointer || !m.params[p].name.starts_with("out")) continue;
    out += fmt::format("{}:", m.params[p].name);
    for (int i = 0; i < kCount; ++i) {
      const uint64_t bits = interp::Memory::read(slots[p] + static_cast<uint64_t>(i * size_of(type.dtype)), type.dtype);
      out += is_float(type.dtype) ? fmt::format(" {:.9g}", float_from_bits(type.dtype, bits))
                                  : fmt::format(" {}", interp::int_value(type.dtype, bits));
    }
    out += "\n";
  }
  std::sort(prints.begin(), prints.end());
  for (const std::string& line : prints) out += line + "\n";
  return out;
}

std::string run_op(const golden::Input& in) {
  auto m = ir::parse_module(SourceText::make(in.file, in.text));
  if (!m) return render(m.error());
  if (const Status s = ir::verify(**m); !s.ok()) return render(s.error());
  const size_t at = in.command.find("grid=");
  const int grid = at == std::string::npos ? 1 : std::atoi(in.command.c_str() + at + 5);
  std::string out = execute(**m, grid);
  if ((*m)->stage == ir::Stage::kDistributed) return out;
  const target::Target& target = *target::find("sm_90a");
  passes::RunOptions options;
  options.verify_each = true;
  if (const Status s = passes::run(passes::pipeline(target.kind), **m, target, options); !s.ok())
    return render(s.error());
  const std::string again = execute(**m, grid);
  // Both fail: the distributed interpreter's message also names its seed.
  const bool both_fail = out.find("error:") != std::string::npos && again.find("error:") != std::string::npos;
  return again == out || both_fail ? out : out + "but distributed:\n" + again;
}

const bool kRegistered = golden::register_folder("ops", run_op);

// Adding an op asks for a golden run: this names the row that lacks one. Ops of the distributed stage alone are run by
// the tests of the passes that make them, and assembly by GPUs.
TEST(OpsGolden, EveryOpHasARun) {
  std::string all;
  for (const auto& entry : std::filesystem::directory_iterator(KILN_SOURCE_DIR "/tests/golden/ops"))
    if (entry.path().extension() == ".txt" && entry.path().filename() != "CMakeLists.txt") {
      std::stringstream text;
      text << std::ifstream(entry.path()).rdbuf();
      all += text.str();
    }
  for (int k = 0; k < ir::num_op_kinds(); ++k) {
    const auto kind = static_cast<ir::OpKind>(k);
    if (ir::op_class(kind) == ir::OpClass::kMachine || ir::op_class(kind) == ir::OpClass::kAsm) continue;
    const std::string mnemonic(ir::info(kind).mnemonic);
    bool used = false;
    for (const char* form : {" = {} ", "  {} ", "  {}\n"})
      used = used || all.find(fmt::format(fmt::runtime(form), mnemonic)) != std::string::npos;
    EXPECT_TRUE(used) << "no file of tests/golden/ops runs the op " << mnemonic;
  }
}

}  // namespace
}  // namespace kiln
