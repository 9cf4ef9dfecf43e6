// The order of long blocks; errors of LLVM that end a compile and nothing else.
#include <gtest/gtest.h>
#include <llvm/AsmParser/Parser.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Support/SourceMgr.h>

#include "compiler/codegen/host.h"
#include "compiler/codegen/host_schedule.h"

namespace kiln::codegen {
namespace {

std::unique_ptr<llvm::Module> parse(llvm::LLVMContext& context, const std::string& text) {
  llvm::SMDiagnostic problem;
  auto module = llvm::parseAssemblyString(text, problem, context);
  EXPECT_TRUE(module) << problem.getMessage().str() << "\n" << text;
  return module;
}

/// Two chains of `length` additions each, the second after the first, that a store ends.
std::string two_chains(int length) {
  std::string text = "define void @f(ptr %p, <8 x float> %a) {\nentry:\n";
  for (const char* chain : {"x", "y"})
    for (int i = 0; i < length; ++i) {
      const std::string name = std::string("  %") + chain;
      const std::string before = i == 0 ? "%a" : std::string("%") + chain + std::to_string(i - 1);
      text += name + std::to_string(i) + " = fadd <8 x float> " + before + ", %a\n";
    }
  const std::string last = std::to_string(length - 1);
  return text + "  %s = fmul <8 x float> %x" + last + ", %y" + last +
         "\n  store <8 x float> %s, ptr %p\n  ret void\n}\n";
}

std::vector<std::string> names(const llvm::Module& module) {
  std::vector<std::string> result;
  for (const llvm::Instruction& i : module.getFunction("f")->front()) result.push_back(i.getName().str());
  return result;
}

TEST(HostSchedule, IndependentChainsAlternate) {
  llvm::LLVMContext context;
  auto module = parse(context, two_chains(20));
  schedule_long_blocks(*module, 256, 14);
  EXPECT_FALSE(llvm::verifyModule(*module));
  const std::vector<std::string> order = names(*module);
  for (size_t i = 0; i < 20; ++i) {
    EXPECT_EQ(order[2 * i], "x" + std::to_string(i));
    EXPECT_EQ(order[2 * i + 1], "y" + std::to_string(i));
  }
}

TEST(HostSchedule, ChainsWaitForRegisters) {
  llvm::LLVMContext context;
  auto module = parse(context, two_chains(20));
  schedule_long_blocks(*module, 256, 1);
  EXPECT_FALSE(llvm::verifyModule(*module));
  const std::vector<std::string> order = names(*module);
  for (size_t i = 0; i < 20; ++i) EXPECT_EQ(order[i], "x" + std::to_string(i));
}

TEST(HostSchedule, ShortBlocksStay) {
  llvm::LLVMContext context;
  auto module = parse(context, two_chains(8));
  const std::vector<std::string> before = names(*module);
  schedule_long_blocks(*module, 256, 14);
  EXPECT_EQ(names(*module), before);
}

// Sums that a loop carries take registers from its start on: the loads do not come all at once.
TEST(HostSchedule, CarriedValuesTakeRegisters) {
  std::string phis, body;
  for (int i = 0; i < 12; ++i) {
    const std::string n = std::to_string(i);
    phis += "  %c" + n + " = phi <8 x float> [ zeroinitializer, %entry ], [ %d" + n + ", %loop ]\n";
    body += "  %p" + n + " = getelementptr <8 x float>, ptr %p, i64 " + n + "\n  %l" + n +
            " = load <8 x float>, ptr %p" + n + "\n  %d" + n + " = fadd <8 x float> %c" + n + ", %l" + n + "\n";
  }
  llvm::LLVMContext context;
  auto module = parse(context, "define void @f(ptr %p, i1 %more) {\nentry:\n  br label %loop\nloop:\n" + phis + body +
                                   "  br i1 %more, label %loop, label %exit\nexit:\n  store <8 x float> %d0, ptr %p\n" +
                                   "  ret void\n}\n");
  schedule_long_blocks(*module, 256, 14);
  EXPECT_FALSE(llvm::verifyModule(*module));
  int loaded = 0, most = 0;
  for (const llvm::Instruction& i : *std::next(module->getFunction("f")->begin())) {
    loaded += llvm::isa<llvm::LoadInst>(i) ? 1 : i.getOpcode() == llvm::Instruction::FAdd ? -1 : 0;
    most = std::max(most, loaded);
  }
  EXPECT_EQ(loaded, 0);
  EXPECT_LE(most, 2) << "besides twelve sums";
}

TEST(HostSchedule, MemoryKeepsItsOrder) {
  std::string text = "define void @f(ptr %p, ptr %q, <8 x float> %a) {\nentry:\n  %before = load <8 x float>, ptr %q\n";
  for (int i = 0; i < 30; ++i)
    text += "  %v" + std::to_string(i) + " = fmul <8 x float> " +
            (i == 0 ? std::string("%before") : "%v" + std::to_string(i - 1)) + ", %a\n";
  text +=
      "  store <8 x float> %v29, ptr %p\n  %after = load <8 x float>, ptr %q\n"
      "  %sum = fadd <8 x float> %after, %a\n  store <8 x float> %sum, ptr %p\n  ret void\n}\n";
  llvm::LLVMContext context;
  auto module = parse(context, text);
  schedule_long_blocks(*module, 256, 14);
  std::string memory;
  for (const llvm::Instruction& i : module->getFunction("f")->front())
    if (i.mayReadOrWriteMemory()) memory += llvm::isa<llvm::StoreInst>(i) ? "store " : i.getName().str() + " ";
  EXPECT_EQ(memory, "before store after store ");
}

// A GPU's intrinsic is nothing that a CPU has: LLVM's fatal error, which would end the process.
TEST(LlvmErrors, AFatalErrorEndsOnlyThisCompile) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "what LLVM's abandoned frames own is leaked";
#endif
  auto* context = new llvm::LLVMContext;  // given up with the module, as after any failed compile
  static std::unique_ptr<llvm::Module>* const given_up = new std::unique_ptr<llvm::Module>(parse(*context, R"(
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
define void @f(ptr %p) {
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  store i32 %t, ptr %p
  ret void
}
)"));
  for (int round = 0; round < 2; ++round) {
    auto object = emit_object(**given_up);
    ASSERT_FALSE(object.ok());
    EXPECT_EQ(object.error().kind, ErrorKind::kInternal);
    EXPECT_EQ(object.error().message.find("LLVM cannot compile this kernel: Cannot select"), 0u)
        << object.error().message;
    llvm::LLVMContext good;
    auto module = parse(good, "define void @f(ptr %p) {\n  store i32 7, ptr %p\n  ret void\n}\n");
    EXPECT_TRUE(emit_object(*module).ok());
  }
}

}  // namespace
}  // namespace kiln::codegen
