#include "compiler/analysis/host_expression.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <random>

#include "compiler/interp/eval.h"
#include "support/diag.h"

namespace kiln::analysis {
namespace {

std::unique_ptr<ir::Module> parse(const std::string& body) {
  auto text = SourceText::make("test.ir",
                               "kernel @t(%p: *f16, %n: i32, %s: i64, %u: u8, %f: f32) attributes {num_warps = 4, "
                               "num_stages = 3, num_ctas = 1} {\n" +
                                   body + "  return\n}\n");
  auto m = ir::parse_module(text);
  EXPECT_TRUE(m.ok()) << render(m.error());
  return m.ok() ? std::move(*m) : nullptr;
}

const ir::Value* named(const ir::Module& m, std::string_view name) {
  const ir::Value* found = nullptr;
  ir::walk(m.body(), [&](ir::Op* op) {
    for (const ir::Value* v : op->results)
      if (v->name == name) found = v;
    for (const ir::Block* b : op->regions)
      for (const ir::Value* v : b->args)
        if (v->name == name) found = v;
  });
  EXPECT_NE(found, nullptr) << name;
  return found;
}

TEST(HostExpression, FollowsArithmeticOfParameters) {
  auto m = parse(R"(
  %c = constant 15 : i32
  %d = constant 16 : i32
  %a = add %n, %c : i32
  %q = div %a, %d : i32
  %w = cast %q : i64
  %r = mul %w, %s : i64
  %at = addptr %p, %n : *f16
)");
  ASSERT_NE(m, nullptr);
  const uint64_t slots[] = {0x7000'0000'1000, 100, 3, 0, 0};
  auto rows = host_expression(named(*m, "r"));
  ASSERT_TRUE(rows);
  EXPECT_EQ(evaluate(*rows, slots), 7 * 3);
  EXPECT_EQ(to_string(*rows), "p1 15 Add.i32 16 Div.i32 Cast.i64 p2 Mul.i64");
  EXPECT_FALSE(rows->constant());
  auto at = host_expression(named(*m, "at"));
  ASSERT_TRUE(at);
  EXPECT_EQ(evaluate(*at, slots), 0x7000'0000'1000 + 200);
  const uint64_t below[] = {0x1000, 0xffff'ffff, 0, 0, 0};  // n = -1; what is above the low 4 bytes does not count
  EXPECT_EQ(evaluate(*at, below), 0x1000 - 2);
  EXPECT_EQ(host_expression(named(*m, "d"))->constant(), 16);
}

TEST(HostExpression, StopsAtWhatTheHostCannotKnow) {
  auto m = parse(R"(
  %pid = program_id {axis = 0} : i32
  %x = add %pid, %n : i32
  %h = load %p : f16
  %i = cast %h : i32
  %g = cast %f : i32
  %zero = constant 0 : i32
  %one = constant 1 : i32
  for %k = %zero to %n step %one : i32 {
    %y = add %k, %one : i32
    yield
  }
)");
  ASSERT_NE(m, nullptr);
  for (const char* name : {"pid", "x", "h", "i", "g", "y"}) EXPECT_FALSE(host_expression(named(*m, name))) << name;
}

TEST(HostExpression, RefusesExplosions) {
  std::string body = "  %x0 = mul %n, %n : i32\n";
  for (int i = 1; i < 40; ++i) body += fmt::format("  %x{} = mul %x{}, %x{} : i32\n", i, i - 1, i - 1);
  auto m = parse(body);
  ASSERT_NE(m, nullptr);
  EXPECT_TRUE(host_expression(named(*m, "x3")));
  EXPECT_FALSE(host_expression(named(*m, "x39")));
}

TEST(HostExpression, WellFormedness) {
  using Step = HostExpression::Step;
  const Step one{HostOp::kConstant, DType::kI32, 1}, add{HostOp::kAdd, DType::kI32, 0};
  EXPECT_TRUE(is_well_formed({{one, one, add}}, 0));
  EXPECT_FALSE(is_well_formed({{}}, 0));
  EXPECT_FALSE(is_well_formed({{one, add}}, 0));
  EXPECT_FALSE(is_well_formed({{one, one}}, 0));
  EXPECT_FALSE(is_well_formed({{{HostOp::kParam, DType::kI32, 2}}}, 2));
  EXPECT_FALSE(is_well_formed({{{HostOp::kConstant, DType::kF32, 2}}}, 2));
  EXPECT_FALSE(is_well_formed({{{static_cast<HostOp>(99), DType::kI32, 2}}}, 2));
  EXPECT_FALSE(is_well_formed({std::vector<Step>(100, one)}, 0));
}

/// The same meaning as interp::eval, on random expressions over random arguments.
TEST(HostExpression, AgreesWithTheInterpreter) {
  const uint64_t seed = std::random_device{}();
  std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
  std::mt19937_64 rng(seed);
  constexpr const char* kOps[] = {"add", "sub", "mul", "div", "rem", "min", "max", "and", "or", "xor", "shl", "shr"};
  constexpr const char* kTypes[] = {"i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"};
  constexpr const char* kPredicates[] = {"eq", "ne", "lt", "le", "gt", "ge"};
  auto any = [&](auto& list) { return list[rng() % std::size(list)]; };
  for (int round = 0; round < 400; ++round) {
    const std::string type = any(kTypes);
    const std::string body = fmt::format(
        "  %a = cast %n : {0}\n  %b = cast %s : {0}\n  %c = {1} %a, %b : {0}\n  %d = {2} %b, %c : {0}\n"
        "  %m = cmp %c, %d {{predicate = \"{3}\"}} : i1\n  %e = select %m, %c, %a : {0}\n  %g = neg %e : {0}\n"
        "  %r = cast %g : {4}\n",
        type, any(kOps), any(kOps), any(kPredicates), any(kTypes));
    auto m = parse(body);
    ASSERT_NE(m, nullptr) << body;
    auto e = host_expression(named(*m, "r"));
    ASSERT_TRUE(e) << body;
    auto draw = [&] { return rng() % 2 ? rng() : rng() % 70; };
    const uint64_t slots[] = {0, draw(), draw(), 0, 0};
    std::unordered_map<const ir::Value*, uint64_t> bits;
    for (const ir::Value* v : m->body()->args) bits[v] = slots[v->index] & interp::element_mask(v->type.element_bits());
    const ir::Value* last = nullptr;
    for (const ir::Op* op : *m->body()) {
      if (ir::is_terminator(op)) break;
      std::vector<uint64_t> operands;
      for (const ir::Value* v : op->operands) operands.push_back(bits.at(v));
      last = op->result();
      bits[last] = interp::eval(*op, operands);
    }
    EXPECT_EQ(evaluate(*e, slots), interp::int_value(last->type.dtype, bits.at(last)))
        << body << to_string(*e) << " of " << slots[1] << ", " << slots[2];
  }
}

}  // namespace
}  // namespace kiln::analysis
