// What `kiln compile --emit c` writes for an expression gives the value that launches compute.
#include "repl/commands/compile_launcher.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>

namespace kiln::repl {
namespace {

constexpr DType kLauncherTypes[] = {DType::kI1, DType::kI8,  DType::kI16, DType::kI32, DType::kI64,
                                    DType::kU8, DType::kU16, DType::kU32, DType::kU64};
constexpr const char* kLauncherCTypes[] = {"uint8_t", "int8_t",   "int16_t",  "int32_t", "int64_t",
                                           "uint8_t", "uint16_t", "uint32_t", "uint64_t"};
constexpr int kLauncherParams = static_cast<int>(std::size(kLauncherTypes));

class RandomExpression {
 public:
  explicit RandomExpression(uint64_t seed) : random_(seed) {}
  HostExpression make() {
    expression_ = {};
    add(pick_type(), 4);
    return expression_;
  }
  uint64_t number() {
    constexpr uint64_t kEdges[] = {0,
                                   1,
                                   2,
                                   7,
                                   8,
                                   31,
                                   32,
                                   63,
                                   64,
                                   127,
                                   128,
                                   255,
                                   0x7fffffff,
                                   0x80000000,
                                   0xffffffff,
                                   uint64_t(INT64_MAX),
                                   uint64_t(INT64_MIN),
                                   ~uint64_t{0}};
    return below(3) ? kEdges[below(std::size(kEdges))] : random_();
  }

 private:
  size_t below(size_t n) { return random_() % n; }
  DType pick_type() { return kLauncherTypes[below(std::size(kLauncherTypes))]; }
  void step(HostOp op, DType type, int64_t value = 0) { expression_.steps.push_back({op, type, value}); }
  // Constants stand as the compiler writes them: within their type.
  int64_t constant(DType type) {
    HostExpression e;
    e.steps = {{HostOp::kParam, type, 0}};
    const uint64_t slot = number();
    return evaluate(e, {&slot, 1});
  }
  void add(DType type, int depth) {
    if (depth == 0 || below(6) == 0) {
      if (below(2)) return step(HostOp::kConstant, type, constant(type));
      for (int i = 0; i < kLauncherParams; ++i)
        if (kLauncherTypes[i] == type) return step(HostOp::kParam, type, i);
    }
    switch (below(4)) {
      case 0:
        add(pick_type(), depth - 1);
        return step(HostOp::kCast, type);
      case 1:
        add(DType::kI1, depth - 1), add(type, depth - 1), add(type, depth - 1);
        return step(HostOp::kSelect, type);
      case 2:
        if (type == DType::kI1) {
          const DType of = pick_type();
          add(of, depth - 1), add(of, depth - 1);
          constexpr HostOp kCompare[] = {HostOp::kEq, HostOp::kNe, HostOp::kLt, HostOp::kLe, HostOp::kGt, HostOp::kGe};
          return step(kCompare[below(std::size(kCompare))], of);
        }
        [[fallthrough]];
      default:
        add(type, depth - 1), add(type, depth - 1);
        constexpr HostOp kBinary[] = {HostOp::kAdd, HostOp::kSub, HostOp::kMul, HostOp::kDiv,
                                      HostOp::kRem, HostOp::kMin, HostOp::kMax, HostOp::kAnd,
                                      HostOp::kOr,  HostOp::kXor, HostOp::kShl, HostOp::kShr};
        return step(kBinary[below(std::size(kBinary))], type);
    }
  }

  std::mt19937_64 random_;
  HostExpression expression_;
};

TEST(CompileLauncher, ExpressionsInCHaveTheValuesOfALaunch) {
  const uint64_t seed = std::random_device{}();
  SCOPED_TRACE(fmt::format("seed {}", seed));
  RandomExpression random(seed);
  std::vector<KernelParam> params;
  for (int i = 0; i < kLauncherParams; ++i) {
    params.push_back({fmt::format("p{}", i), {}});
    params.back().type.dtype = kLauncherTypes[i];
  }
  constexpr int kExpressions = 200;
  std::vector<HostExpression> expressions;
  std::string functions;
  for (int i = 0; i < kExpressions; ++i) {
    expressions.push_back(random.make());
    ASSERT_TRUE(is_well_formed(expressions.back(), kLauncherParams));
    functions += fmt::format("int64_t f{}(const uint64_t* slots) {{\n", i);
    for (int p = 0; p < kLauncherParams; ++p)
      functions += fmt::format("  const {0} p{1} = ({0})slots[{1}];\n", kLauncherCTypes[p], p);
    for (int p = 0; p < kLauncherParams; ++p) functions += fmt::format("  (void)p{};\n", p);
    functions += fmt::format("  return {};\n}}\n", c_expression(expressions.back(), params));
  }
  std::string folder = (std::filesystem::temp_directory_path() / "kiln_launcher_XXXXXX").string();
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  std::ofstream(folder + "/f.c") << "#include <stdint.h>\n" << c_helpers(functions) << functions;
  const std::string command = fmt::format("cc -std=c11 -w -O0 -fPIC -shared {0}/f.c -o {0}/f.so", folder);
  ASSERT_EQ(std::system(command.c_str()), 0);
  void* library = dlopen((folder + "/f.so").c_str(), RTLD_NOW);
  ASSERT_NE(library, nullptr) << dlerror();
  for (int i = 0; i < kExpressions; ++i) {
    auto* function = reinterpret_cast<int64_t (*)(const uint64_t*)>(dlsym(library, fmt::format("f{}", i).c_str()));
    for (int draw = 0; draw < 50; ++draw) {
      std::vector<uint64_t> slots;
      for (int p = 0; p < kLauncherParams; ++p) slots.push_back(random.number());
      slots[0] &= 1;  // a bool is stored as 0 or 1
      const HostExpression& e = expressions[static_cast<size_t>(i)];
      ASSERT_EQ(function(slots.data()), evaluate(e, slots)) << to_string(e) << "\n" << c_expression(e, params);
    }
  }
  dlclose(library);
  std::filesystem::remove_all(folder);
}

TEST(CompileLauncher, ParametersHaveNamesOfC) {
  CompiledKernel kernel;
  kernel.name = "k", kernel.target = "sm_80", kernel.ptx = "x";
  for (const char* name : {"x", "double", "double_", "NULL", "int32_t", "CUstream", "cuLaunchKernelEx", "a.0", "a.1"}) {
    kernel.params.push_back({name, {}});
    kernel.params.back().type.dtype = DType::kF32;
  }
  auto text = c_launcher({&kernel, 1}, "k", "k.py");
  ASSERT_TRUE(text.ok());
  EXPECT_NE(text->find("float x, float double_, float double__, float NULL_, float int32_t_, float CUstream_, "
                       "float cuLaunchKernelEx_, float a_0_, float a_1_)"),
            std::string::npos)
      << *text;
}

// Programs link the kernels of several classes, which often have one name.
TEST(CompileLauncher, KernelsOfClassesAreNamedWithTheClass) {
  CompiledKernel kernel;
  kernel.name = "forward", kernel.target = "sm_80", kernel.ptx = "x";
  auto text = c_launcher({&kernel, 1}, "Relu.forward", "k.py");
  ASSERT_TRUE(text.ok());
  for (const char* part : {"kernel Relu.forward for sm_80", "CUresult Relu_forward_load(Relu_forward_kernel* kernel)",
                           "unsigned char Relu_forward_sm_80[]", "#ifndef Relu_forward_DECLARED",
                           "cuModuleGetFunction(&kernel->function, kernel->module, \"forward\")"})
    EXPECT_NE(text->find(part), std::string::npos) << part << "\n" << *text;
  EXPECT_EQ(text->find(" forward_"), std::string::npos) << *text;
}

}  // namespace
}  // namespace kiln::repl
