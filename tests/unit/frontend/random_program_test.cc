// Kernels grown at random, a statement at a time: a statement that compiles stays, one that does not must give a
// diagnostic. So the operators, builtins and control flow meet types and shapes that nobody would write.
#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

#include "compiler/frontend/builtins.h"
#include "compiler/ir/ir.h"
#include "support/diag.h"
#include "tests/unit/frontend/kernel_file.h"

namespace kiln::frontend::testing {
namespace {

constexpr char kHead[] = R"(import triton
import triton.language as tl
from triton.language.extra import libdevice

@triton.jit
def add(a, b):
    return a + b

@triton.jit
def pick(a, b):
    if a > b:
        return a
    return b

@triton.jit
def pair(a, b, c=1):
    return b, a

@triton.jit
def kernel(p, q, flags, n, m, u, f, d, h, one, N: tl.constexpr, MODE: tl.constexpr):
    x = tl.load(p + tl.arange(0, 8))
    y = tl.arange(0, 8)[:, None] + tl.arange(0, 4)[None, :]
    z = tl.zeros([8], tl.float16)
    t = (n, x)
)";
constexpr char kCommand[] = "kernel=kernel signature=*fp32,*i32,*i1,i32,i64,u32,fp32,fp64,bf16,i32:1 N=8 MODE='sum'";

class Grower {
 public:
  explicit Grower(uint64_t seed) : rng_(seed) {}

  std::string statement(int depth, const std::string& indent) {
    switch (below(depth > 0 ? 12 : 6)) {
      case 0:
      case 1:
      case 2:
      case 3:
        return indent + target() + " = " + expr(3) + "\n";
      case 4:
        return indent + name() + " " + one({"+", "-", "*", "/", "//", "%", "&", "|", "<<", ">>"}) + "= " + expr(2) +
               "\n";
      case 5:
        return indent + one({"tl.store(p + ", "tl.store(q + ", "tl.store(flags + ", "tl.atomic_add(p + "}) + expr(1) +
               ", " + expr(2) + ")\n";
      case 6:
      case 7:
        return indent + "if " + expr(2) + ":\n" + block(depth, indent) +
               (below(2) ? indent + "else:\n" + block(depth, indent) : "");
      case 8:
      case 9:
        return indent + "for " + name() + " in " + one({"range", "tl.range", "tl.static_range"}) + "(" + expr(1) +
               (below(2) ? ", " + expr(1) : "") + "):\n" + block(depth, indent);
      case 10:
        return indent + "while " + expr(2) + ":\n" + block(depth, indent);
      default:
        // On a runtime condition, or everything after it would be dead.
        return indent + "if tl.load(q) > " + expr(1) + ":\n" + indent + "    return\n";
    }
  }

 private:
  size_t below(size_t n) { return std::uniform_int_distribution<size_t>(0, n - 1)(rng_); }
  std::string one(std::initializer_list<const char*> list) {
    return *(list.begin() + static_cast<long>(below(list.size())));
  }
  std::string name() { return one({"a", "b", "c", "x", "y", "z", "n", "m", "t", "i"}); }
  std::string target() {
    return below(8) == 0 ? name() + ", " + name() : below(10) == 0 ? name() + ": tl.constexpr" : name();
  }
  std::string block(int depth, const std::string& indent) {
    std::string out;
    for (size_t k = 1 + below(2); k-- > 0;) out += statement(depth - 1, indent + "    ");
    return out;
  }
  std::string dtype() {
    return one({"tl.int1", "tl.int8", "tl.uint8", "tl.int16", "tl.int32", "tl.uint32", "tl.int64", "tl.uint64",
                "tl.float8e5", "tl.float8e4nv", "tl.float16", "tl.bfloat16", "tl.float32", "tl.float64", "x.dtype",
                "p.dtype.element_ty", "p.dtype", "tl.pointer_type(tl.int8)"});
  }
  std::string atom() {
    switch (below(6)) {
      case 0:
      case 1:
        return name();
      case 2:
        return one({"p", "q", "flags", "u", "f", "d", "h", "one", "N", "MODE", "None", "True"});
      case 3:
        return one({"0", "1", "2", "-1", "3", "8", "0.5", "1e30", "2**31", "2**63", "255", "float('nan')", "'s'"});
      case 4:
        return "tl.arange(0, " + one({"4", "8", "N", "16"}) + ")";
      default:
        return "tl.full([" + one({"8", "4, 8", "8, 4", "1", "8, 1", ""}) + "], " + one({"0", "1", "2.5", "-3"}) + ", " +
               dtype() + ")";
    }
  }
  std::string call(int depth) {
    static const std::vector<const Builtin*> rows = [] {
      std::vector<const Builtin*> out;
      for (const Builtin& b : builtins())
        if (b.name != "static_print" && (b.exposure() & (kInLanguage | kInLibdevice | kIsPython))) out.push_back(&b);
      return out;
    }();
    const Builtin& row = *rows[below(rows.size())];
    size_t wanted = row.in_library() ? 1 + below(3) : std::min<size_t>(parse_params(row.params).size(), 1 + below(4));
    std::string args;
    for (size_t i = 0; i < wanted; ++i)
      args +=
          (i ? ", " : "") +
          (below(6) ? expr(depth - 1) : one({"0", "1", "(0, 1)", "[2, 4]", "add", "pick", "pair", "8", "tl.float32"}));
    return row.display_name() + "(" + args + ")";
  }
  std::string expr(int depth) {
    if (depth == 0) return atom();
    switch (below(12)) {
      case 0:
      case 1:
        return atom();
      case 2:
      case 3:
        return "(" + expr(depth - 1) + " " +
               one({"+", "-", "*", "/", "//", "%", "&", "|", "^", "<<", ">>", "<", ">=", "==", "!=", "and", "or", "is",
                    "**"}) +
               " " + expr(depth - 1) + ")";
      case 4:
        return one({"-", "~", "not ", "+"}) + expr(depth - 1);
      case 5:
      case 6:
        return call(depth);
      case 7:
        return expr(depth - 1) + ".to(" + dtype() + (below(4) ? "" : ", bitcast=True") + ")";
      case 8:
        return expr(depth - 1) + one({"[:, None]", "[None, :]", "[None]", "[0]", "[..., None]", ".T", ".dtype",
                                      ".shape", ".sum()", ".max(0)", ".numel", "[1]", "[-1]"});
      case 9:
        return "(" + expr(depth - 1) + " if " + expr(depth - 1) + " else " + expr(depth - 1) + ")";
      case 10:
        return one({"add", "pick", "pair"}) + "(" + expr(depth - 1) + ", " + expr(depth - 1) + ")";
      default:
        return "(" + expr(depth - 1) + ", " + expr(depth - 1) + ")";
    }
  }

  std::mt19937_64 rng_;
};

TEST(RandomProgram, GrowsOrSaysWhy) {
  uint64_t seed = std::random_device{}();
  if (const char* fixed = std::getenv("KILN_FUZZ_SEED")) seed = std::strtoull(fixed, nullptr, 10);
  int programs = 12;
  if (const char* more = std::getenv("KILN_FUZZ_ROUNDS")) programs = std::atoi(more);
  std::printf("KILN_FUZZ_SEED=%llu\n", static_cast<unsigned long long>(seed));
  Command command = parse_command(kCommand);
  int kept = 0, refused = 0;
  for (int k = 0; k < programs; ++k) {
    Grower grower(seed + static_cast<uint64_t>(k));
    std::string text = kHead;
    for (int attempt = 0; attempt < 200; ++attempt) {
      std::string next = text + grower.statement(2, "    ");
      if (const char* dump = std::getenv("KILN_FUZZ_DUMP")) {
        if (FILE* out = std::fopen(dump, "w")) std::fputs(next.c_str(), out), std::fclose(out);
      }
      auto module = lower_text("random.py", next, command);
      if (module.ok()) {
        text = ++kept % 30 == 0 ? kHead : std::move(next);
        continue;
      }
      ++refused;
      ASSERT_NE(module.error().kind, ErrorKind::kInternal) << render(module.error()) << next;
      ASSERT_GT(module.error().place.line, 0) << render(module.error()) << next;
    }
  }
  std::printf("%d statements kept, %d refused\n", kept, refused);
  EXPECT_GT(kept, programs);
  EXPECT_GT(refused, programs);
}

}  // namespace
}  // namespace kiln::frontend::testing
