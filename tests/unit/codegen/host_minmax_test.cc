// The minimum and maximum of scalars, as this machine's CPU computes them.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <llvm/AsmParser/Parser.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/Support/SourceMgr.h>

#include <cmath>
#include <limits>

#include "compiler/codegen/host.h"
#include "compiler/compile.h"

namespace kiln {
namespace {

/// out = op(max(x, 0), y): LLVM knows of the first operand that it is not NaN. {0}: the type; {1}: the op.
constexpr const char* kText = R"(
define void @kiln_entry(ptr %args, ptr %grid, i64 %first, i64 %last, ptr %scratch) {{
  %px = load ptr, ptr %args
  %ay = getelementptr ptr, ptr %args, i64 1
  %py = load ptr, ptr %ay
  %ao = getelementptr ptr, ptr %args, i64 2
  %po = load ptr, ptr %ao
  %x = load {0}, ptr %px
  %y = load {0}, ptr %py
  %number = call {0} @llvm.maximumnum({0} %x, {0} 0.0)
  %r = call {0} @llvm.{1}({0} %number, {0} %y)
  store {0} %r, ptr %po
  ret void
}}
declare {0} @llvm.maximumnum({0}, {0})
{2}
)";

template <class T>
void expect_numbers(const char* type, const std::string& op) {
  const std::string declaration = op == "maximumnum" ? "" : fmt::format("declare {0} @llvm.{1}({0}, {0})", type, op);
  llvm::LLVMContext context;
  llvm::SMDiagnostic problem;
  auto module = llvm::parseAssemblyString(fmt::format(fmt::runtime(kText), type, op, declaration), problem, context);
  ASSERT_TRUE(module) << problem.getMessage().str();
  auto object = codegen::emit_object(*module);
  ASSERT_TRUE(object.ok()) << object.error().message;
  CompiledKernel kernel;
  kernel.name = "minmax";
  kernel.object = object->object;
  auto code = load_host_object(kernel);
  ASSERT_TRUE(code.ok()) << code.error().message;
  const T nan = std::numeric_limits<T>::quiet_NaN();
  for (T x : {T{3}, T{-2}, nan})
    for (T y : {T{2}, T{5}, T{-1}, nan, -nan}) {
      T result = 99;
      const uint64_t args[] = {reinterpret_cast<uint64_t>(&x), reinterpret_cast<uint64_t>(&y),
                               reinterpret_cast<uint64_t>(&result)};
      const int32_t grid[] = {1, 1, 1};
      (*code)->entry()(args, grid, 0, 1, nullptr);
      const T number = std::fmax(x, T{0});
      EXPECT_EQ(result, op == "maximumnum" ? std::fmax(number, y) : std::fmin(number, y))
          << op << " of " << x << ", " << y;
    }
}

TEST(HostMinMax, OfScalarsLeavesNaNOut) {
  for (const char* op : {"maximumnum", "minimumnum"}) {
    expect_numbers<float>("float", op);
    expect_numbers<double>("double", op);
  }
}

}  // namespace
}  // namespace kiln
