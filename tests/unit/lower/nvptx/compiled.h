// Texts of distributed IR through the NVPTX lowering, as LLVM IR, PTX and machine code.
#pragma once
#include <gtest/gtest.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Support/raw_ostream.h>

#include <cstdio>

#include "compiler/codegen/nvptx.h"
#include "compiler/lower/nvptx/nvptx.h"
#include "support/diag.h"

namespace kiln::nvptx_tests {

inline constexpr std::string_view kTargets[] = {"sm_80", "sm_90a"};

inline std::unique_ptr<ir::Module> parse(const std::string& text) {
  auto module = ir::parse_module(SourceText::make("test.kir", text));
  EXPECT_TRUE(module.ok()) << render(module.error()) << text;
  if (!module.ok()) return nullptr;
  auto valid = ir::verify(**module);
  EXPECT_TRUE(valid.ok()) << render(valid.error()) << text;
  return valid.ok() ? std::move(*module) : nullptr;
}

struct Compiled {
  std::string llvm, ptx;
  codegen::Cubin cubin;
};

/// IR text → PTX and, where a linker is found, a cubin; any failure is a test failure.
inline Compiled compile(const std::string& text, std::string_view target_name) {
  Compiled out;
  auto module = parse(text);
  if (!module) return out;
  const target::Target& target = *target::find(target_name);
  llvm::LLVMContext context;
  auto lowered = lower::lower_nvptx(*module, target, context);
  EXPECT_TRUE(lowered.ok()) << render(lowered.error()) << text;
  if (!lowered.ok()) return out;
  out.llvm = codegen::print_llvm(**lowered);
  std::string complaint;
  llvm::raw_string_ostream stream(complaint);
  EXPECT_FALSE(llvm::verifyModule(**lowered, &stream)) << complaint << out.llvm;
  auto ptx = codegen::emit_ptx(**lowered, target);
  EXPECT_TRUE(ptx.ok()) << render(ptx.error()) << text;
  if (!ptx.ok()) return out;
  out.ptx = *ptx;
  auto cubin = codegen::link_cubin(*ptx, target);
  EXPECT_TRUE(cubin.ok()) << render(cubin.error()) << text << out.ptx;
  if (!cubin.ok()) return out;
  out.cubin = std::move(*cubin);
  if (out.cubin.image.empty()) {
    static bool said = false;
    if (!std::exchange(said, true))
      std::printf("[   NOTE   ] neither nvJitLink nor ptxas is here: no cubins are made\n");
  } else {
    EXPECT_GT(out.cubin.registers, 0);
    EXPECT_GE(out.cubin.spill_bytes, 0);
  }
  return out;
}

/// How many lines of `text` hold `what`.
inline int count(const std::string& text, std::string_view what) {
  int n = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + what.size())) ++n;
  return n;
}

inline constexpr std::string_view kLayout =
    "layout L0 = [1024] {register = [(1), (2), (512)], lane = [(4), (8), (16), (32), (64)], warp = [(128), (256)]}\n";

inline std::string kernel(const std::string& layouts, const std::string& params, const std::string& body,
                          int num_warps = 4, int shared = 0) {
  return fmt::format(
      "{}kernel @k({}) attributes {{num_warps = {}, num_stages = 3, num_ctas = 1, stage = \"distributed\", "
      "shared_bytes = {}}} "
      "{{\n{}  return\n}}\n",
      layouts, params, num_warps, shared, body);
}

inline constexpr std::string_view kSmall =
    "layout L0 = [128] {register = [(1), (2)], lane = [(4), (8), (16), (32), (64)]}\n";

}  // namespace kiln::nvptx_tests
