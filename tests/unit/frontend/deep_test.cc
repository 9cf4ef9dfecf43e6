// Programs that are long or deep in one way: they compile or are refused, whatever the size of the stack.
#include <gtest/gtest.h>

#include "support/diag.h"
#include "tests/unit/frontend/kernel_file.h"

namespace kiln::frontend::testing {
namespace {

std::string repeat(std::string_view text, int times) {
  std::string out;
  for (int i = 0; i < times; ++i) out += text;
  return out;
}

std::string compile(std::string body) {
  std::string text = "import triton\nimport triton.language as tl\n@triton.jit\ndef k(p, n):\n" + std::move(body);
  auto module = lower_text("deep.py", std::move(text), parse_command("signature=*fp32,i32"));
  if (module.ok()) return "ok";
  EXPECT_NE(module.error().kind, ErrorKind::kInternal) << render(module.error());
  return module.error().message;
}

TEST(Deep, OrdinaryLengthsCompile) {
  EXPECT_EQ(compile("    x = n" + repeat(" + n", 150) + "\n"), "ok");
  EXPECT_EQ(compile("    x = n\n" + repeat("    x = x + n\n", 3000)), "ok");
  EXPECT_EQ(compile("    if n == 0:\n        return\n" + repeat("    elif n == 1:\n        return\n", 60) +
                    "    tl.store(p, 1)\n"),
            "ok");
  EXPECT_EQ(compile("    c: tl.constexpr = 7\n    if c == 0:\n        pass\n" +
                    repeat("    elif c == 1:\n        pass\n", 900) + "    else:\n        tl.store(p, 1)\n"),
            "ok");
}

TEST(Deep, LongChainsDoNotOverflow) {
  for (const char* link : {" + n", " and n", ".T", ".to(tl.int32)", "[None]", " if n else n"})
    compile("    x = n" + repeat(link, 30000) + "\n");
  compile("    x = " + repeat("-", 30000) + "n\n");
  compile("    x = " + repeat("(", 30000) + "n\n");
  compile("    if n == 0:\n        return\n" + repeat("    elif n == 1:\n        return\n", 5000) +
          "    tl.store(p, 1)\n");
  EXPECT_EQ(compile(repeat("    if n == 0:\n        return\n", 3000)),
            "branches and early returns are nested more than 256 deep");
  std::string nested;
  for (int i = 0; i < 3000; ++i) nested += std::string(static_cast<size_t>(i + 1) * 1 + 3, ' ') + "if n > 0:\n";
  compile(nested + std::string(3004, ' ') + "pass\n");
}

}  // namespace
}  // namespace kiln::frontend::testing
