#include "compiler/analysis/pointer_origins.h"

#include <gtest/gtest.h>

#include "support/source.h"

namespace kiln::analysis {
namespace {

std::unique_ptr<ir::Module> parse(const std::string& body) {
  auto m = ir::parse_module(SourceText::make(
      "test.ir",
      "kernel @t(%x: *f32, %y: *f32, %z: *i64, %n: i32, %c: i1) attributes {num_warps = 4, num_stages = 3, num_ctas = "
      "1} {\n" +
          body + "  return\n}\n"));
  EXPECT_TRUE(m.ok()) << (m.ok() ? "" : m.error().message);
  return m.ok() ? std::move(*m) : nullptr;
}

/// Of what the only store of the body stores to.
PointerOrigins of_store(const std::string& body) {
  auto module = parse(body);
  return module ? written_origins(*module) : PointerOrigins();
}

/// Of %p.
PointerOrigins of_address(const std::string& body) {
  return of_store(body + "  %v = constant 1.0 : f32\n  store %p, %v\n");
}

TEST(PointerOrigins, ArithmeticKeepsTheParameter) {
  const PointerOrigins o = of_address("  %p = addptr %y, %n : *f32\n");
  EXPECT_EQ(o.params, (std::set{1}));
  EXPECT_FALSE(o.unknown);
}

TEST(PointerOrigins, SelectGivesBoth) {
  const PointerOrigins o = of_address("  %p = select %c, %x, %y : *f32\n");
  EXPECT_EQ(o.params, (std::set{0, 1}));
  EXPECT_FALSE(o.unknown);
}

TEST(PointerOrigins, LoopsCarryThem) {
  const PointerOrigins o = of_store(
      "  %zero = constant 0 : i32\n"
      "  %one = constant 1 : i32\n"
      "  %v = constant 1.0 : f32\n"
      "  %last = for %i = %zero to %n step %one iter (%p = %x) : i32 -> (*f32) {\n"
      "    store %p, %v\n"
      "    %next = select %c, %p, %y : *f32\n"
      "    yield %next\n"
      "  }\n");
  EXPECT_EQ(o.params, (std::set{0, 1}));
  EXPECT_FALSE(o.unknown);
}

TEST(PointerOrigins, DescriptorsAreOfTheirTensor) {
  const PointerOrigins o = of_store(
      "  %zero = constant 0 : i32\n"
      "  %one = constant 1 : i64\n"
      "  %v = constant 1.0 : f32[16]\n"
      "  %d = make_descriptor %y, %n, %one : desc f32[16]\n"
      "  descriptor_store %d, %v, %zero\n");
  EXPECT_EQ(o.params, (std::set{1}));
  EXPECT_FALSE(o.unknown);
}

TEST(PointerOrigins, LoadedAddressesAreUnknown) {
  const PointerOrigins o = of_address(
      "  %a = load %z : i64\n"
      "  %p = int_to_ptr %a : *f32\n");
  EXPECT_TRUE(o.params.empty());
  EXPECT_TRUE(o.unknown);
}

TEST(PointerOrigins, MeetWhereTheyShareAParameterOrOneIsUnknown) {
  const PointerOrigins none, x{{0}, false}, xy{{0, 1}, false}, y{{1}, false}, anywhere{{}, true};
  EXPECT_TRUE(x.meets(xy));
  EXPECT_TRUE(xy.meets(y));
  EXPECT_FALSE(x.meets(y));
  EXPECT_TRUE(x.meets(anywhere));
  EXPECT_TRUE(anywhere.meets(x));
  EXPECT_TRUE(anywhere.meets(anywhere));
  EXPECT_FALSE(none.meets(anywhere));
  EXPECT_FALSE(anywhere.meets(none));
  PointerOrigins joined = x;
  joined.join(y);
  EXPECT_EQ(joined.params, (std::set{0, 1}));
}

}  // namespace
}  // namespace kiln::analysis
