// LLVM IR text → the passes of ours → PTX, and PTX → cubin.
#include "compiler/codegen/nvptx.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <llvm/AsmParser/Parser.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Support/SourceMgr.h>
#include <llvm/Support/raw_ostream.h>

#include <ctime>
#include <thread>

#include "compiler/codegen/nvptx_address.h"
#include "compiler/codegen/nvptx_flush.h"
#include "compiler/codegen/nvptx_narrow.h"
#include "compiler/codegen/nvptx_order.h"
#include "compiler/codegen/nvptx_pairs.h"
#include "support/diag.h"

namespace kiln::codegen {
namespace {

const target::Target& sm_90a() { return *target::find("sm_90a"); }

std::unique_ptr<llvm::Module> parse(llvm::LLVMContext& context, const std::string& text) {
  llvm::SMDiagnostic error;
  auto module = llvm::parseAssemblyString(text, error, context);
  EXPECT_TRUE(module) << error.getMessage().str() << text;
  return module;
}

int count(const std::string& text, std::string_view what) {
  int n = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + what.size())) ++n;
  return n;
}

Result<std::string> ptx_of(const std::string& text) {
  llvm::LLVMContext context;
  auto module = parse(context, text);
  return emit_ptx(*module, sm_90a());
}

TEST(NvptxAddress, TakesConstantsOutOfDisjointBitsAndExactSumsOnly) {
  struct Row {
    const char *index, *extension;
    bool splits;
  };
  const Row rows[] = {{"or disjoint i32 %x, 512", "sext", true},  {"or i32 %x, 512", "sext", false},
                      {"add nsw i32 %x, -512", "sext", true},     {"add nuw i32 %x, 512", "sext", false},
                      {"add nuw i32 %x, 512", "zext", true},      {"add nsw i32 %x, 512", "zext", false},
                      {"or disjoint i32 %x, -512", "sext", false}};
  for (const Row& row : rows) {
    llvm::LLVMContext context;
    auto module =
        parse(context, fmt::format("define ptr addrspace(1) @f(ptr addrspace(1) %p, i32 %x) {{\n  %i = {}\n"
                                   "  %e = {} i32 %i to i64\n  %g = getelementptr i32, ptr addrspace(1) %p, i64 %e\n"
                                   "  ret ptr addrspace(1) %g\n}}\n",
                                   row.index, row.extension));
    EXPECT_EQ(split_addresses(*module->getFunction("f")), row.splits) << row.index << " " << row.extension;
    EXPECT_FALSE(llvm::verifyModule(*module));
    EXPECT_EQ(count(print_llvm(*module), "getelementptr"), row.splits ? 2 : 1);
  }
}

/// Of numbers of 64 bits, as program numbers times sizes are: addresses wrap as they do.
TEST(NvptxAddress, TakesConstantsOutOfSumsOf64Bits) {
  struct Row {
    const char* index;
    int64_t constant;  // in elements; 0: none is taken out
  };
  const Row rows[] = {{"%i = shl i64 %b, 7", 8 << 7},
                      {"%i = mul i64 %b, 100", 800},
                      {"%s = shl i64 %b, 3\n  %i = add i64 %s, %a", 64},
                      {"%s = mul i64 %b, %a\n  %i = add i64 %s, %a", 0}};
  for (const Row& row : rows) {
    llvm::LLVMContext context;
    auto module = parse(context, fmt::format("define ptr addrspace(1) @f(ptr addrspace(1) %p, i32 %x, i64 %a) {{\n"
                                             "  %n = or disjoint i32 %x, 8\n  %e = zext i32 %n to i64\n"
                                             "  %b = or disjoint i64 %a, %e\n  {}\n"
                                             "  %g = getelementptr i8, ptr addrspace(1) %p, i64 %i\n"
                                             "  ret ptr addrspace(1) %g\n}}\n",
                                             row.index));
    EXPECT_EQ(split_addresses(*module->getFunction("f")), row.constant != 0) << row.index;
    EXPECT_FALSE(llvm::verifyModule(*module));
    EXPECT_EQ(count(print_llvm(*module), fmt::format("i64 {}\n", row.constant)), row.constant != 0);
  }
}

/// Indices that masks compare: LICM keeps each x | c in a register, where x is enough.
TEST(NvptxAddress, MovesConstantsOutOfSharedSums) {
  for (const bool shares : {true, false}) {
    llvm::LLVMContext context;
    auto module = parse(context, fmt::format(R"(
define void @f(ptr addrspace(1) %p, i64 %a, i32 %x, i32 %y) {{
  %n = or disjoint i32 %x, 8
  %m = or disjoint i32 {}, 16
  %en = zext i32 %n to i64
  %em = zext i32 %m to i64
  %i = or disjoint i64 %a, %en
  %j = or disjoint i64 %a, %em
  store i64 %i, ptr addrspace(1) %p
  store i64 %j, ptr addrspace(1) %p
  ret void
}})",
                                             shares ? "%x" : "%y"));
    move_constants_out(*module->getFunction("f"));
    EXPECT_FALSE(llvm::verifyModule(*module));
    const std::string text = print_llvm(*module);
    EXPECT_EQ(count(text, ", 8\n") + count(text, ", 16\n"), shares ? 4 : 2) << text;
    EXPECT_EQ(count(text, "or disjoint i64"), shares ? 3 : 2) << text;
  }
}

/// Sums of sums: columns in runs, say, of which rows and what is in a run both have constants. Both levels are
/// replaced, and each number stays what it was: the bits of all of an element's constants, however they are joined.
TEST(NvptxAddress, MovesConstantsOutOfSumsOfSums) {
  constexpr int kRows = 16, kInRow = 4;
  std::string text =
      "define void @f(ptr addrspace(1) %p, i32 %a, i32 %x, i32 %y) {\n"
      "  %y1 = or disjoint i32 %y, 1\n  %y2 = or disjoint i32 %y, 2\n  %y3 = or disjoint i32 %y, 3\n";
  for (int r = 0; r < kRows; ++r) {
    if (r > 0) text += fmt::format("  %x{0} = or disjoint i32 %x, {1}\n", r, 128 * r);
    text += fmt::format("  %s{0} = or disjoint i32 %a, %x{1}\n", r, r > 0 ? fmt::to_string(r) : "");
    for (int i = 0; i < kInRow; ++i) {
      text += fmt::format("  %n{0}_{1} = or disjoint i32 %s{0}, %y{2}\n", r, i, i > 0 ? fmt::to_string(i) : "");
      text += fmt::format("  store volatile i32 %n{0}_{1}, ptr addrspace(1) %p\n", r, i);
    }
  }
  text += "  ret void\n}\n";
  llvm::LLVMContext context;
  auto module = parse(context, text);
  llvm::Function& f = *module->getFunction("f");
  move_constants_out(f);
  EXPECT_FALSE(llvm::verifyModule(*module, &llvm::errs()));
  auto constants = [](auto& self, const llvm::Value* v) -> int64_t {
    if (const auto* c = llvm::dyn_cast<llvm::ConstantInt>(v)) return c->getSExtValue();
    const auto* sum = llvm::dyn_cast<llvm::BinaryOperator>(v);
    return sum ? self(self, sum->getOperand(0)) | self(self, sum->getOperand(1)) : 0;
  };
  int at = 0;
  for (const llvm::Instruction& i : f.getEntryBlock())
    if (const auto* store = llvm::dyn_cast<llvm::StoreInst>(&i)) {
      const int row = at / kInRow, in_row = at % kInRow;
      ++at;
      EXPECT_EQ(constants(constants, store->getValueOperand()), 128 * row + in_row) << row << " " << in_row;
    }
  EXPECT_EQ(at, kRows * kInRow);
}

/// A thread's columns against one number, such as a row's label: one difference is compared with constants.
TEST(NvptxAddress, ComparesOneDifferenceWithConstants) {
  for (const bool many : {true, false}) {
    llvm::LLVMContext context;
    std::string compares;
    for (int i = 1; i <= (many ? 4 : 3); ++i)
      compares += fmt::format(R"(
  %c{0} = or disjoint i64 %x, {0}
  %e{0} = icmp eq i64 {1}
  store i1 %e{0}, ptr addrspace(1) %p)",
                              i, i % 2 ? fmt::format("%c{}, %a", i) : fmt::format("%a, %c{}", i));
    auto module = parse(context, fmt::format(R"(
define void @f(ptr addrspace(1) %p, i64 %a, i64 %x) {{{}
  ret void
}})",
                                             compares));
    compare_differences(*module->getFunction("f"));
    EXPECT_FALSE(llvm::verifyModule(*module));
    const std::string text = print_llvm(*module);
    EXPECT_EQ(count(text, "sub i64 %a, %x"), many ? 1 : 0) << text;
    for (int i = 1; i <= 4; ++i) EXPECT_EQ(count(text, fmt::format(", {}\n  store", i)), many ? 1 : 0) << text;
  }
}

/// Two elements of a row that 64-bit numbers find: what they have in common becomes a base of the tensor, of which each
/// has its own. One address alone, or two that are equal, stay as they are.
TEST(NvptxAddress, ElementsShareABase) {
  for (const bool shares : {true, false}) {
    llvm::LLVMContext context;
    auto module = parse(context, fmt::format(R"(
define void @f(ptr addrspace(1) %p, ptr addrspace(1) %q, i64 %row, i64 %n, i32 %x, i32 %y, i64 %k) {{
  %a = mul i64 %row, %n
  %sx = sext i32 %x to i64
  %sy = sext i32 %y to i64
  %a1 = add i64 %a, %sx
  %i1 = add i64 %a1, %k
  %a2 = add i64 %a, {}
  %i2 = add i64 %a2, %k
  %g1 = getelementptr i16, ptr addrspace(1) %p, i64 %i1
  %g2 = getelementptr i16, ptr addrspace(1) %p, i64 %i2
  %g3 = getelementptr i16, ptr addrspace(1) %q, i64 %i1
  store i16 1, ptr addrspace(1) %g1
  store i16 2, ptr addrspace(1) %g2
  store i16 3, ptr addrspace(1) %g3
  ret void
}}
)",
                                             shares ? "%sy" : "%sx"));
    EXPECT_EQ(share_bases(*module->getFunction("f")), shares);
    EXPECT_FALSE(llvm::verifyModule(*module, &llvm::errs()));
    EXPECT_EQ(count(print_llvm(*module), "getelementptr"), shares ? 5 : 3) << print_llvm(*module);
    auto ptx = emit_ptx(*module, sm_90a());
    ASSERT_TRUE(ptx.ok());
    // What is an element's own is multiplied and added to the base in one instruction.
    EXPECT_EQ(count(*ptx, "mul.wide.s32"), shares ? 2 : 0) << *ptx;
  }
}

/// Elements of a loop that add an offset of their own first, and then, one by one, what is common to all: the common
/// steps are added to the tensor once, and each element has one sum, which reads its offset of 32 bits.
// Loads and stores of the same rows: a thread holds no product from the one to the other.
TEST(NvptxAddress, RowsOfSeveralTensorsShareAProduct) {
  for (const bool loops : {false, true})
    for (const bool uniform : {true, false})
      for (const bool stores : {true, false}) {
        llvm::LLVMContext context;
        std::string text = "define void @f(ptr addrspace(1) %p, ptr addrspace(1) %q, i32 %n, i32 %m) {\n";
        text += fmt::format("  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()\n  %s = sext i32 {} to i64\n",
                            uniform ? "%n" : "%t");
        text += "  %x = shl i32 %t, 6\n  br label %b\nb:\n";
        for (const int row : {0, 8, 16, 24}) {
          if (row) text += fmt::format("  %r{0} = or disjoint i32 %x, {0}\n", row);
          text += fmt::format(
              "  %e{0} = sext i32 %{1} to i64\n  %m{0} = mul i64 %e{0}, %s\n"
              "  %a{0} = getelementptr i8, ptr addrspace(1) %p, i64 %m{0}\n  %v{0} = load i8, ptr addrspace(1) %a{0}\n",
              row, row ? fmt::format("r{}", row) : "x");
        }
        for (const int row : {0, 8, 16, 24})
          text += fmt::format(
              "  %z{0} = getelementptr i16, ptr addrspace(1) %{1}, i64 %m{0}\n"
              "  store i8 %v{0}, ptr addrspace(1) %z{0}\n",
              row, stores ? "q" : "p");
        text += loops ? "  %c = icmp eq i32 %t, %m\n  br i1 %c, label %b, label %end\nend:\n  ret void\n}\n"
                      : "  ret void\n}\n";
        text += "declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()\n";
        auto module = parse(context, text);
        llvm::Function& f = *module->getFunction("f");
        share_products(f);
        EXPECT_FALSE(llvm::verifyModule(*module, &llvm::errs()));
        std::string out;
        llvm::raw_string_ostream(out) << f;
        // Of each row in each tensor one base, and its multiple of the size.
        EXPECT_EQ(count(out, "getelementptr"), !loops && uniform && stores ? 14 : 8) << out;
        EXPECT_EQ(count(out, "mul i64 %s, 8"), !loops && uniform && stores ? 2 : 0) << out;
      }
}

/// The function @f of this text after narrow_masked().
std::string narrowed(const char* text) {
  llvm::LLVMContext context;
  auto module = parse(context, text);
  llvm::Function& f = *module->getFunction("f");
  narrow_masked(f);
  EXPECT_FALSE(llvm::verifyModule(*module, &llvm::errs()));
  std::string out;
  llvm::raw_string_ostream(out) << f;
  return out;
}

// A hash that masks what it computes in 64 bits.
TEST(NvptxNarrow, WhatAMaskKeepsIsComputedIn32Bits) {
  const std::string out = narrowed(R"(
define i64 @f(i64 %x, i64 %wide) {
  %p = mul i64 %x, 3432918353
  %m = and i64 %p, 4294967295
  %l = shl nuw nsw i64 %m, 15
  %r = lshr i64 %m, 17
  %o = or disjoint i64 %l, %r
  %q = mul i64 %o, 5
  %k = and i64 %q, 4294967295
  %s = add i64 %wide, 7
  %t = and i64 %s, 255
  %u = xor i64 %k, %t
  %v = add i64 %u, %s
  ret i64 %v
})");
  EXPECT_EQ(count(out, "mul i32"), 2) << out;
  EXPECT_EQ(count(out, "shl i32"), 1) << out;
  EXPECT_EQ(count(out, "lshr i32"), 1) << out;
  EXPECT_EQ(count(out, "mul i64"), 0) << out;
  EXPECT_EQ(count(out, "add i64"), 2) << out;  // of which one is needed as it is, and the mask takes it from there
}

// What shifts down from above is not among the low bits.
TEST(NvptxNarrow, ShiftsOfHighBitsStay) {
  const std::string out = narrowed(R"(
define i64 @f(i64 %x) {
  %p = mul i64 %x, %x
  %r = lshr i64 %p, 17
  %a = add i64 %r, 1
  %k = and i64 %a, 4294967295
  ret i64 %k
})");
  EXPECT_EQ(count(out, "mul i64"), 1) << out;
  EXPECT_EQ(count(out, "lshr i64"), 1) << out;
  EXPECT_EQ(count(out, "add i32"), 1) << out;
}

TEST(NvptxAddress, ElementsOfALoopShareTheirSteps) {
  for (const int elements : {12, 3}) {
    std::string own, body;
    for (int i = 0; i < elements; ++i) {
      own += fmt::format(
          "  %x{0} = mul i32 %x, {1}\n  %e{0} = sext i32 %x{0} to i64\n"
          "  %p{0} = getelementptr i16, ptr addrspace(1) %p, i64 %e{0}\n",
          i, 3 + 2 * i);
      body += fmt::format(
          "  %a{0} = getelementptr i16, ptr addrspace(1) %p{0}, i64 %h\n"
          "  %b{0} = getelementptr i16, ptr addrspace(1) %a{0}, i64 %w\n"
          "  %c{0} = getelementptr i16, ptr addrspace(1) %b{0}, i64 %d\n  store i16 1, ptr addrspace(1) %c{0}\n",
          i);
    }
    llvm::LLVMContext context;
    auto module = parse(context, fmt::format(R"(
define void @f(ptr addrspace(1) %p, ptr addrspace(1) %q, i32 %x, i32 %n) {{
entry:
{}  br label %loop
loop:
  %k = phi i32 [ 0, %entry ], [ %k1, %loop ]
  %y = load volatile i32, ptr addrspace(1) %q
  %z = load volatile i32, ptr addrspace(1) %q
  %t = load volatile i32, ptr addrspace(1) %q
  %h = sext i32 %y to i64
  %w = sext i32 %z to i64
  %d = sext i32 %t to i64
{}  %k1 = add i32 %k, 1
  %more = icmp slt i32 %k1, %n
  br i1 %more, label %loop, label %done
done:
  ret void
}}
)",
                                             own, body));
    // Few are left in the order that they have.
    const bool shares = elements > 8;
    EXPECT_EQ(share_steps(*module->getFunction("f")), shares);
    EXPECT_EQ(widen_in_loops(*module->getFunction("f")), shares);
    EXPECT_FALSE(llvm::verifyModule(*module, &llvm::errs()));
    auto ptx = emit_ptx(*module, sm_90a());
    ASSERT_TRUE(ptx.ok());
    const std::string loop = ptx->substr(ptx->find("$L__BB0_1:"));
    EXPECT_EQ(count(loop, "add.s64"), shares ? 3 : 3 * elements) << loop;
    EXPECT_EQ(count(loop, "mad.wide.s32"), shares ? elements : 0) << loop;
  }
}

TEST(NvptxOrder, ChainsRunToTheirEndAndMemoryKeepsItsOrder) {
  llvm::LLVMContext context;
  auto module = parse(context, R"(define void @f(ptr %p, float %a, float %b) {
  %a1 = fadd float %a, 1.0
  %b1 = fadd float %b, 1.0
  %l = load volatile float, ptr %p
  %a2 = fmul float %a1, %l
  %b2 = fmul float %b1, %l
  store float %a2, ptr %p
  store float %b2, ptr %p
  ret void
})");
  llvm::Function& fn = *module->getFunction("f");
  order_by_need(fn);
  ASSERT_FALSE(llvm::verifyModule(*module));
  std::string order;
  for (llvm::Instruction& i : fn.getEntryBlock())
    order += (i.getName().empty() ? std::string(i.getOpcodeName()) : i.getName().str()) + " ";
  EXPECT_EQ(order, "l a1 a2 store b1 b2 store ret ");
}

// ptxas takes abs for no negative number: the least one must not meet it.
TEST(NvptxSigns, AbsoluteValuesAreMaximaWhereTheLeastNumberMayCome) {
  const char* form =
      "declare i{0} @llvm.abs.i{0}(i{0}, i1)\ndefine ptx_kernel void @f(ptr addrspace(1) %p) {{\n"
      "  %x = load i{0}, ptr addrspace(1) %p\n  %a = call i{0} @llvm.abs.i{0}(i{0} %x, i1 {1})\n"
      "  store i{0} %a, ptr addrspace(1) %p\n  ret void\n}}\n";
  for (int bits : {32, 64}) {
    const std::string abs = fmt::format("abs.s{}", bits), max = fmt::format("max.s{}", bits);
    const std::string safe = *ptx_of(fmt::format(fmt::runtime(form), bits, "false")),
                      plain = *ptx_of(fmt::format(fmt::runtime(form), bits, "true"));
    EXPECT_EQ(count(safe, abs), 0) << safe;
    EXPECT_EQ(count(safe, max), 1) << safe;
    EXPECT_EQ(count(plain, abs), 1) << plain;
  }
}

// Beside accumulators there are registers for few loads: what is made of them comes before the next ones.
TEST(NvptxOrder, LoadsBesideAccumulatorsComeInParts) {
  constexpr int kLoads = 40;
  for (const char* product : {"wgmma.mma_async.sync.aligned;", "nop;"}) {
    std::string text = fmt::format(
        "define void @f(ptr addrspace(1) %p, ptr %q) {{\n  call void asm sideeffect \"{}\", \"\"()\n", product);
    for (int i = 0; i < kLoads; ++i) text += fmt::format("  %l{} = load volatile float, ptr addrspace(1) %p\n", i);
    for (int i = 0; i < kLoads; ++i) text += fmt::format("  %a{0} = fadd float %l{0}, 1.0\n", i);
    for (int i = 0; i < kLoads; ++i) text += fmt::format("  store float %a{}, ptr %q\n", i);
    llvm::LLVMContext context;
    auto module = parse(context, text + "  ret void\n}\n");
    llvm::Function& fn = *module->getFunction("f");
    order_by_need(fn);
    ASSERT_FALSE(llvm::verifyModule(*module));
    int loads = 0;
    for (llvm::Instruction& i : fn.getEntryBlock()) {
      if (i.getName() == "a0") break;
      loads += i.getName().starts_with("l");
    }
    EXPECT_EQ(loads, product[0] == 'w' ? 8 : kLoads) << product;
  }
}

// A loop's phi takes a value that this very block computes for the next iteration, from a load that stays in its place.
TEST(NvptxOrder, LoopCarriedValuesStayBehindWhatTheyAreMadeOf) {
  llvm::LLVMContext context;
  auto module = parse(context, R"(
define float @f(ptr addrspace(1) %p, i32 %n) {
entry:
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %next, %loop ]
  %x = phi float [ 0.0, %entry ], [ %y, %loop ]
  store float %x, ptr addrspace(1) %p
  %v = load float, ptr addrspace(1) %p
  %y = fadd float %v, 1.0
  %next = add i32 %i, 1
  %more = icmp slt i32 %next, %n
  br i1 %more, label %loop, label %done
done:
  ret float %y
}
)");
  order_by_need(*module->getFunction("f"));
  EXPECT_FALSE(llvm::verifyModule(*module, &llvm::errs())) << print_llvm(*module);
}

// What loops carry of halves, and hand on behind an exit, is in pairs. %c is read by itself, too.
TEST(NvptxPairs, LoopsCarryHalvesInPairs) {
  llvm::LLVMContext context;
  auto module = parse(context, R"(
define void @f(ptr %p, float %x, i1 %any) {
entry:
  br i1 %any, label %loop, label %exit
loop:
  %a = phi half [0.0, %entry], [%a2, %loop]
  %b = phi half [1.0, %entry], [%b2, %loop]
  %c = phi half [0.0, %entry], [%a2, %loop]
  %d = phi half [0.0, %entry], [%b2, %loop]
  %ab1 = insertelement <2 x half> poison, half %a, i64 0
  %ab = insertelement <2 x half> %ab1, half %b, i64 1
  store volatile <2 x half> %ab, ptr %p
  %cd1 = insertelement <2 x half> poison, half %c, i64 0
  %cd = insertelement <2 x half> %cd1, half %d, i64 1
  store volatile <2 x half> %cd, ptr %p
  store volatile half %c, ptr %p
  %a2 = fptrunc float %x to half
  %y = load volatile float, ptr %p
  %b2 = fptrunc float %y to half
  %more = load volatile i1, ptr %p
  br i1 %more, label %loop, label %exit
exit:
  %a3 = phi half [0.0, %entry], [%a2, %loop]
  %b3 = phi half [2.0, %entry], [%b2, %loop]
  br label %second
second:
  %a4 = phi half [%a3, %exit], [%a2x, %second]
  %b4 = phi half [%b3, %exit], [%b2x, %second]
  %abx1 = insertelement <2 x half> poison, half %a4, i64 0
  %abx = insertelement <2 x half> %abx1, half %b4, i64 1
  store volatile <2 x half> %abx, ptr %p
  %a2x = load volatile half, ptr %p
  %b2x = load volatile half, ptr %p
  br label %second
}
)");
  ASSERT_TRUE(module);
  llvm::Function& f = *module->getFunction("f");
  carry_halves_in_pairs(f);
  ASSERT_FALSE(llvm::verifyModule(*module, &llvm::errs()));
  std::string text;
  llvm::raw_string_ostream(text) << f;
  EXPECT_EQ(count(text, "phi <2 x half>"), 3) << text;
  EXPECT_EQ(count(text, "phi half"), 2) << text;
  EXPECT_EQ(count(text, "[ <half 0xH0000, half 0xH3C00>, %entry ]"), 1) << text;
}

TEST(NvptxFlush, OnlyWhereNoDenormalIsSeen) {
  const char* form =  // ex2 by LLVM 21's name, which 22 reads too
      "declare float @llvm.nvvm.ex2.approx.f(float)\ndeclare float @llvm.maximumnum.f32(float, float)\n"
      "declare float @llvm.minimumnum.f32(float, float)\ndeclare float @llvm.minimum.f32(float, float)\n"
      "declare float @llvm.fabs.f32(float)\ndeclare float @llvm.fma.f32(float, float, float)\n"
      "define float @f(float %%y, float %%z) {{\n  %%x = {}\n"
      "  %%e = call float @llvm.nvvm.ex2.approx.f(float {})\n  %%r = {}\n  ret float %%r\n}}\n";
  auto flushed = [&](const char* use, const char* argument = "fadd float %z, 1.0", const char* exponent = "%x") {
    llvm::LLVMContext context;
    std::string text = fmt::format(fmt::runtime(form), argument, exponent, use);
    for (size_t at; (at = text.find("%%")) != std::string::npos;) text.erase(at, 1);
    auto module = parse(context, text);
    flush_where_unseen(*module->getFunction("f"));
    EXPECT_FALSE(llvm::verifyModule(*module));
    return count(print_llvm(*module), "call float @llvm.nvvm.ex2.approx.ftz") == 1;
  };
  EXPECT_TRUE(flushed("fadd float %e, 1.0"));
  EXPECT_FALSE(flushed("fadd float %e, 0.0"));
  EXPECT_FALSE(flushed("fadd float %e, %y"));
  EXPECT_FALSE(flushed("fmul float %e, 2.0"));
  EXPECT_TRUE(flushed("fmul float %e, 2.0", "call float @llvm.maximumnum.f32(float %z, float -126.0)"));
  EXPECT_FALSE(flushed("fmul float %e, 2.0", "call float @llvm.maximumnum.f32(float %z, float -127.0)"));
  EXPECT_FALSE(flushed("fmul float %e, 2.0", "call float @llvm.maximumnum.f32(float %z, float %y)"));
  // A polynomial of |z| up to 8: -2 |z|^2 + 2 reaches -126, -2.125 |z|^2 + 2 goes below.
  auto polynomial = [&](const char* bound, const char* factor) {
    return flushed(
        "fmul float %e, 2.0",
        fmt::format("call float @llvm.fabs.f32(float %z)\n  %a = call float @llvm.{}.f32(float {}, float {})\n"
                    "  %p = fmul float %a, {}\n  %q = call float @llvm.fma.f32(float %p, float %a, float 2.0)\n"
                    "  %m = fneg float %q\n  %x2 = fsub float 0.0, %m\n  %x3 = fadd float %x2, 0.0",
                    bound, "%x", "8.0", factor)
            .c_str(),
        "%x3");
  };
  EXPECT_TRUE(polynomial("minimumnum", "-2.0"));
  EXPECT_FALSE(polynomial("minimumnum", "-2.125"));
  EXPECT_FALSE(polynomial("maximumnum", "-2.0"));
  EXPECT_TRUE(polynomial("maximumnum", "2.0"));
}

// ptxas forgets that neg.s16 wraps.
TEST(NvptxPtx, NegatesSixteenBitsInThirtyTwo) {
  for (const char* negated : {"sub i16 0, %x", "mul i16 %x, -1", "sub i16 7, %seven"}) {
    auto ptx = ptx_of(
        fmt::format("define ptx_kernel void @k(ptr addrspace(1) %p, i16 %x, i16 %y) {{\n  %seven = add i16 %x, 7\n"
                    "  %n = {}\n  %c = icmp sge i16 %n, %y\n  %b = zext i1 %c to i8\n"
                    "  store i8 %b, ptr addrspace(1) %p\n  ret void\n}}\n",
                    negated));
    ASSERT_TRUE(ptx.ok()) << render(ptx.error());
    EXPECT_EQ(count(*ptx, "neg.s16"), 0) << *ptx;
    EXPECT_EQ(count(*ptx, "neg.s32"), 1) << *ptx;
  }
}

// ptxas makes the slow F2F of a single conversion, and the fast F2FP of a packed one.
TEST(NvptxPtx, RoundsToBf16AndBackInOneInstruction) {
  auto ptx = ptx_of(
      "define ptx_kernel void @k(ptr addrspace(1) %p, float %x) {\n  %n = fptrunc float %x to bfloat\n"
      "  %w = fpext bfloat %n to float\n  %s = fadd float %w, 1.0\n  store float %s, ptr addrspace(1) %p\n"
      "  ret void\n}\n");
  ASSERT_TRUE(ptx.ok()) << render(ptx.error());
  EXPECT_EQ(count(*ptx, "cvt.rn.bf16.f32"), 0) << *ptx;
  EXPECT_EQ(count(*ptx, "cvt.rn.bf16x2.f32"), 1) << *ptx;
  EXPECT_EQ(count(*ptx, "cvt.f32.bf16"), 0) << *ptx;
}

/// Quotient and remainder, signed and not, `times` of each, beside a wgmma if `multiplies`.
std::string divisions(int times, bool multiplies) {
  std::string text = "define ptx_kernel void @k(ptr addrspace(1) %p, i64 %x, i64 %y) {\n";
  if (multiplies)
    text +=
        "  call void asm sideeffect \"wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {$0, $1, $2, $3}, $4, $5, 0, "
        "1, "
        "1, 0, 0;\", \"f,f,f,f,l,l\"(float 0.0, float 0.0, float 0.0, float 0.0, i64 %x, i64 %y)\n";
  int n = 0;
  for (int time = 0; time < times; ++time) {
    text += fmt::format("  %x{0} = add i64 %x, {0}\n", time);
    for (const char* op : {"sdiv", "srem", "udiv", "urem"}) {
      text += fmt::format(
          "  %v{0} = {1} i64 %x{2}, %y\n  %p{0} = getelementptr i64, ptr addrspace(1) %p, i64 {0}\n"
          "  store i64 %v{0}, ptr addrspace(1) %p{0}\n",
          n, op, time);
      ++n;
    }
  }
  return text + "  %c = sdiv i64 %x, 7\n  store i64 %c, ptr addrspace(1) %p\n  ret void\n}\n";
}

// For a call, as a division of 64 bits is to ptxas, it waits for every wgmma (C7509), and compiling for linking, as the
// driver does, it has the descriptors of accesses in no uniform registers.
TEST(NvptxPtx, DividesWithoutCalls) {
  for (const auto& [times, multiplies] : {std::pair(1, true), std::pair(1, false), std::pair(9, true)}) {
    auto ptx = ptx_of(divisions(times, multiplies));
    ASSERT_TRUE(ptx.ok()) << render(ptx.error());
    for (const char* op : {"div.s64", "rem.s64", "div.u64", "rem.u64"}) EXPECT_EQ(count(*ptx, op), 0) << *ptx;
    EXPECT_GT(count(*ptx, "rcp.approx.ftz.f64"), 0) << *ptx;
  }
  auto many = ptx_of(divisions(9, false));
  ASSERT_TRUE(many.ok()) << render(many.error());
  EXPECT_GT(count(*many, "div.s64") + count(*many, "div.u64"), 0) << *many;
}

TEST(NvptxPtx, RefusesCallsThatNobodyProvides) {
  auto ptx = ptx_of(
      "declare float @llvm.nvvm.misspelt(float)\ndeclare float @sinf(float)\n"
      "define ptx_kernel void @k(ptr addrspace(1) %p) {\n  %v = load float, ptr addrspace(1) %p\n"
      "  %s = call float @sinf(float %v)\n  store float %s, ptr addrspace(1) %p\n  ret void\n}\n");
  ASSERT_FALSE(ptx.ok());
  EXPECT_EQ(ptx.error().kind, ErrorKind::kInternal);
  EXPECT_EQ(ptx.error().message, "the generated PTX calls 'sinf', which no GPU provides");
}

constexpr const char* kCopy =
    "define ptx_kernel void @k(ptr addrspace(1) %p) \"nvvm.reqntid\"=\"128\" {\n  %v = load float, ptr addrspace(1) "
    "%p\n"
    "  %s = fadd float %v, 1.0\n  store float %s, ptr addrspace(1) %p\n  ret void\n}\n";

TEST(NvptxPtx, ThreadsCompileAtOnce) {
  const auto alone = ptx_of(kCopy);
  ASSERT_TRUE(alone.ok());
  std::vector<std::string> texts(4);
  std::vector<std::thread> threads;
  for (std::string& text : texts)
    threads.emplace_back([&text] {
      for (int i = 0; i < 5; ++i)
        if (auto ptx = ptx_of(kCopy); ptx.ok()) text = *ptx;
    });
  for (std::thread& t : threads) t.join();
  for (const std::string& text : texts) EXPECT_EQ(text, *alone);
}

TEST(NvptxCubin, RegistersAndErrors) {
  if (toolkit_assembler_name().empty()) GTEST_SKIP() << "neither nvJitLink nor ptxas is here";
  const auto ptx = ptx_of(kCopy);
  ASSERT_TRUE(ptx.ok());
  const auto cubin = link_cubin(*ptx, sm_90a());
  ASSERT_TRUE(cubin.ok()) << render(cubin.error());
  EXPECT_GT(cubin->registers, 3);
  EXPECT_LT(cubin->registers, 32);
  EXPECT_EQ(cubin->spill_bytes, 0);
  EXPECT_EQ(cubin->stack_bytes, 0);
  EXPECT_EQ(registers_of_cubin(cubin->image), cubin->registers);
  EXPECT_EQ(registers_of_cubin(cubin->image.substr(0, 100)), -1);
  EXPECT_EQ(registers_of_cubin("not a cubin"), -1);

  const auto broken = link_cubin(".version 8.3\n.target sm_90a\n.address_size 64\nnonsense\n", sm_90a());
  ASSERT_FALSE(broken.ok());
  EXPECT_EQ(broken.error().kind, ErrorKind::kInternal);
  EXPECT_NE(broken.error().message.find("rejects the generated PTX"), std::string::npos) << broken.error().message;
}

TEST(NvptxCubin, OccupancyIsAskedForWhereRegistersLimitIt) {
  if (toolkit_assembler_name().empty()) GTEST_SKIP() << "neither nvJitLink nor ptxas is here";
  // 80 values from memory that are all needed before the first store: fewer registers would spill.
  std::string body, stores;
  for (int i = 0; i < 80; ++i) {
    body += fmt::format(
        "  %p{0} = getelementptr float, ptr addrspace(1) %p, i64 {0}\n  %v{0} = load volatile float, ptr addrspace(1) "
        "%p{0}\n",
        i);
    stores += fmt::format("  store volatile float %v{}, ptr addrspace(1) %p{}\n", 79 - i, i);
  }
  const std::string text = fmt::format(
      "define ptx_kernel void @k(ptr addrspace(1) %p) \"nvvm.reqntid\"=\"128\" {{\n{}{}  ret void\n}}\n", body, stores);
  auto wide = ptx_of(text);
  ASSERT_TRUE(wide.ok());
  std::string linked = *wide;
  auto cubin = link_for_occupancy(linked, sm_90a(), {.threads = 128});
  ASSERT_TRUE(cubin.ok()) << render(cubin.error());
  EXPECT_GT(cubin->registers, 64);
  EXPECT_EQ(cubin->spill_bytes, 0) << "what spills is not kept";
  EXPECT_FALSE(cubin->roomy);
  EXPECT_EQ(linked, *wide);

  auto narrow = ptx_of(kCopy);
  ASSERT_TRUE(narrow.ok());
  std::string same = *narrow;
  ASSERT_TRUE(link_for_occupancy(same, sm_90a(), {.threads = 128}).ok());
  EXPECT_EQ(same, *narrow) << "few registers already: nothing to ask for";
}

/// The assembler that is here, with a count of the programs that it was given.
class Counting : public Assembler {
 public:
  std::string name() const override { return "counting"; }
  int ptx_version() const override { return 1000; }
  Result<Assembled> assemble(std::string_view ptx) const override {
    ++programs;
    const size_t at = ptx.find(".minnctapersm");
    if (at != std::string_view::npos) asked = ptx.substr(at, ptx.find('\n', at) - at);
    KILN_TRY(Cubin cubin, link_cubin(ptx, sm_90a()));
    return Assembled{std::move(cubin.image),
                     fmt::format("{} bytes spill stores, 0 bytes spill loads", cubin.spill_bytes)};
  }
  mutable int programs = 0;
  mutable std::string asked;  // the last request for programs on an SM
};

// Each try for more programs on an SM is a compilation: none is made where all that was seen of its kind spilled.
TEST(NvptxCubin, HopelessTriesForOccupancyAreNotMade) {
  if (toolkit_assembler_name().empty()) GTEST_SKIP() << "neither nvJitLink nor ptxas is here";
  std::string asked;
  auto programs = [&](int values, int threads = 128, int halves = 0) {
    std::string text = fmt::format(
        ".version 8.4\n.target sm_90a\n.address_size 64\n.visible .entry k(.param .u64 p)\n.reqntid {0}\n{{\n"
        ".reg .b32 %r<{1}>;\n.reg .b16 %rs<{1}>;\n.reg .b64 %rd<2>;\nld.param.b64 %rd1, [p];\n",
        threads, values + halves);
    for (int i = values; i < values + halves; ++i)
      text += fmt::format("ld.volatile.global.b16 %rs{0}, [%rd1];\nst.volatile.global.b16 [%rd1], %rs{0};\n", i);
    for (int i = 0; i < values; ++i) text += fmt::format("ld.volatile.global.b32 %r{}, [%rd1+{}];\n", i, 4 * i);
    for (int i = 0; i < values; ++i)
      text += fmt::format("st.volatile.global.b32 [%rd1+{}], %r{};\n", 4 * i, values - 1 - i);
    for (int i = values; i < values + halves; ++i)
      text += fmt::format("ld.volatile.global.b32 %r{0}, [%rd1];\nst.volatile.global.b32 [%rd1], %r{0};\n", i);
    text += "ret;\n}\n";
    const Counting counting;
    auto cubin = link_for_occupancy(text, sm_90a(), {.threads = threads, .products = true}, &counting);
    EXPECT_TRUE(cubin.ok()) << render(cubin.error());
    asked = counting.asked;
    return counting.programs;
  };
  // Half of the threads that an SM may have leave each 64 registers.
  EXPECT_EQ(programs(40), 1) << "they have as many already";
  EXPECT_EQ(programs(80), 2) << "tried, as more of them than needed might have been taken";
  EXPECT_EQ(programs(80, 128, 140), 2) << "%rs80 is not live until %r80, which has its number, is";
  EXPECT_EQ(programs(150), 2) << "eight blocks are hopeless, four are tried";
  EXPECT_EQ(asked, ".minnctapersm 4");
  EXPECT_EQ(programs(110), 2);
  EXPECT_EQ(asked, ".minnctapersm 5") << "six blocks of 80 registers would spill";
  EXPECT_EQ(programs(220, 256), 1) << "two blocks of so many threads are hopeless";
  EXPECT_EQ(programs(190, 256), 1) << "as are those that take a third of the registers away";
}

// ptxas spills down to 32 registers where not all values fit, unless it is told how many there are.
TEST(NvptxCubin, WhatSpillsHasAllRegisters) {
  if (toolkit_assembler_name().empty()) GTEST_SKIP() << "neither nvJitLink nor ptxas is here";
  for (int n : {300, 600}) {  // seen when it has spilled, and told at once
    std::string text = fmt::format(
        ".version 8.4\n.target sm_90a\n.address_size 64\n.visible .entry k(.param .u64 p)\n.reqntid 128\n{{\n"
        ".reg .b32 %r<{}>;\n.reg .b64 %rd<2>;\nld.param.b64 %rd1, [p];\n",
        n);
    for (int i = 0; i < n; ++i) text += fmt::format("ld.volatile.global.b32 %r{}, [%rd1+{}];\n", i, 4 * i);
    text += "bar.sync 0;\n";
    for (int i = 0; i < n; ++i) text += fmt::format("st.volatile.global.b32 [%rd1+{}], %r{};\n", 4 * i, n - 1 - i);
    text += "ret;\n}\n";
    std::string linked = text;
    // Of what shares registers ptxas is asked, where it is here.
    auto cubin = link_for_occupancy(linked, sm_90a(), {.threads = 128, .shares_registers = true});
    ASSERT_TRUE(cubin.ok()) << render(cubin.error());
    EXPECT_EQ(cubin->registers, 255) << cubin->assembler;
    EXPECT_GT(cubin->spill_bytes, 0);
    EXPECT_LT(cubin->spill_bytes, 8 * (n - 200)) << cubin->assembler;
    if (n == 600) {
      EXPECT_NE(linked.find(".reqntid 128\n.maxnreg 255\n"), std::string::npos);
    }
  }
}

/// `n` stores at multiples of a stride, so many of them in each block.
std::string strided_stores(int n, int in_block) {
  std::string body;
  for (int i = 0; i < n; ++i) {
    if (i > 0 && i % in_block == 0)
      body +=
          fmt::format("  %c{0} = load volatile i1, ptr addrspace(1) %p\n  br i1 %c{0}, label %l{1}, label %e\nl{1}:\n",
                      i, i / in_block);
    body += fmt::format(
        "  %n{0} = add nsw i64 %n, {1}\n  %a{0} = mul nsw i64 %n{0}, %s\n"
        "  %b{0} = getelementptr i8, ptr addrspace(1) %p, i64 %a{0}\n  store volatile i8 0, ptr addrspace(1) %b{0}\n",
        i, i + 1);
  }
  return fmt::format(
      "define ptx_kernel void @k(ptr addrspace(1) %p, i64 %s, i64 %n) {{\n{}  br label %e\ne:\n  ret void\n}}\n", body);
}

// The pass that does it takes time that is quadratic in the length of a block.
TEST(EmitPtx, ReducesProductsToSumsWhereBlocksAreNotLong) {
  auto products = [](int n, int in_block) {
    auto ptx = ptx_of(strided_stores(n, in_block));
    EXPECT_TRUE(ptx.ok()) << render(ptx.error());
    return ptx.ok() ? count(*ptx, "\tmad.lo.s64") + count(*ptx, "\tmul.lo.s64") : -1;
  };
  EXPECT_LT(products(8, 8), 4);
  EXPECT_LT(products(600, 20), 4) << "a long function of short blocks";
  EXPECT_GT(products(250, 250), 200) << "a long block";
}

/// `n` times one of two numbers, as a comparison and one bit of an index say: a sort's steps.
std::string chosen_by_one_bit(int n) {
  std::string body = "  %b = and i32 %lane, 16\n  %c = icmp ne i32 %b, 0\n";
  for (int i = 0; i < n; ++i)
    body += fmt::format(
        "  %p{0} = getelementptr i32, ptr addrspace(1) %p, i64 {0}\n"
        "  %v{0} = load volatile i32, ptr addrspace(1) %p{0}\n"
        "  %l{0} = icmp slt i32 %v{0}, %lane\n  %x{0} = icmp ne i1 %l{0}, %c\n"
        "  %s{0} = select i1 %x{0}, i32 %v{0}, i32 %lane\n"
        "  store volatile i32 %s{0}, ptr addrspace(1) %p{0}\n",
        i);
  return fmt::format("define ptx_kernel void @k(ptr addrspace(1) %p, i32 %lane) {{\n{}  ret void\n}}\n", body);
}

// Seconds of this process, the least of three.
double seconds_for(const std::string& text) {
  double least = 1e9;
  for (int i = 0; i < 3; ++i) {
    const std::clock_t start = std::clock();
    EXPECT_TRUE(ptx_of(text).ok());
    least = std::min(least, static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC);
  }
  return least;
}

TEST(EmitPtx, TimeIsLinearInTheUsersOfACondition) {
  const double few = seconds_for(chosen_by_one_bit(1000)), many = seconds_for(chosen_by_one_bit(8000));
  EXPECT_LT(many, 20 * few) << few << " s for 1000 users, " << many << " for 8000";
}

}  // namespace
}  // namespace kiln::codegen
