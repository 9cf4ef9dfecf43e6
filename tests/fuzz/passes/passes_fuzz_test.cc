// Properties of random programs: the text form round-trips, passes keep the IR valid and its meaning bit for bit.
#include <gtest/gtest.h>

#include <cstdlib>
#include <random>
#include <set>

#include "compiler/passes/pass.h"
#include "support/diag.h"
#include "tests/fuzz/generator.h"

namespace kiln::fuzz {
namespace {

std::string describe(const Program& p) { return ir::print(*p.module); }

/// What the interpreter makes of the module; a fault is a failure of the generator or of a pass.
std::vector<Buffer> meaning(const Program& p, const ir::Module& m) {
  auto out = interpret(p, m);
  if (out.ok()) return std::move(*out);
  ADD_FAILURE() << render(out.error()) << ir::print(m) << "\nfrom " << describe(p);
  return p.buffers;
}

void expect_valid(const ir::Module& m, const Program& p, std::string_view after) {
  const Status s = ir::verify(m);
  ASSERT_TRUE(s.ok()) << "after " << after << ": " << render(s.error()) << ir::print(m) << "\nfrom " << describe(p);
}

TEST(Fuzz, ProgramsAreValidAndTheirTextRoundTrips) {
  for_each_seed(400, [&](uint64_t seed) {
    const Program p = generate(seed);
    expect_valid(*p.module, p, "generate");
    const std::string text = ir::print(*p.module);
    auto parsed = ir::parse_module(SourceText::make("fuzz.ir", text));
    ASSERT_TRUE(parsed.ok()) << render(parsed.error()) << describe(p);
    ASSERT_EQ(ir::print(**parsed), text) << describe(p);
    expect_valid(**parsed, p, "parse");
    ASSERT_EQ(ir::print(*ir::clone(*p.module)), text) << describe(p);
    if (testing::Test::HasFailure()) return;
  });
}

TEST(Fuzz, ParsedTextMeansTheSame) {
  for_each_seed(50, [&](uint64_t seed) {
    const Program p = generate(seed);
    auto parsed = ir::parse_module(SourceText::make("fuzz.ir", ir::print(*p.module)));
    ASSERT_TRUE(parsed.ok()) << render(parsed.error());
    ASSERT_EQ(compare(meaning(p, *p.module), meaning(p, **parsed)), "") << describe(p);
  });
}

TEST(Fuzz, SameSeedSameProgram) {
  for_each_seed(
      20, [&](uint64_t seed) { EXPECT_EQ(ir::print(*generate(seed).module), ir::print(*generate(seed).module)); });
}

/// Every pass of the host pipeline in order. fuse_fma changes rounding: what follows it is compared with its result.
TEST(Fuzz, PassesKeepTheMeaning) {
  passes::Context host{*target::find("host")};
  for_each_seed(400, [&](uint64_t seed) {
    GeneratorOptions options;
    options.reread = seed & 1;
    options.dots = true;
    const Program p = generate(seed, options);
    auto m = ir::clone(*p.module);
    std::vector<Buffer> expected = meaning(p, *m);
    for (const passes::Pass& pass : passes::pipeline(target::Kind::kHost)) {
      if (pass.when) continue;
      const std::string before = ir::print(*m);
      ASSERT_TRUE(pass.run(*m, host).ok()) << describe(p);
      expect_valid(*m, p, pass.name);
      if (testing::Test::HasFatalFailure()) return;
      std::vector<Buffer> got = meaning(p, *m);
      if (pass.name == "fuse_fma") expected = got;
      ASSERT_EQ(compare(expected, got), "") << pass.name << " on\n"
                                            << before << "gave\n"
                                            << ir::print(*m) << "\nfrom " << describe(p);
    }
    // Each pass once more, on contracted code.
    for (const passes::Pass& pass : passes::pipeline(target::Kind::kHost)) {
      if (pass.when) continue;
      ASSERT_TRUE(pass.run(*m, host).ok());
      expect_valid(*m, p, pass.name);
      if (pass.name != "fuse_fma")
        ASSERT_EQ(compare(expected, meaning(p, *m)), "") << pass.name << " again\n" << describe(p);
      else
        expected = meaning(p, *m);
    }
  });
}

/// Each pass alone, straight on generated code.
TEST(Fuzz, EachPassAloneKeepsTheMeaning) {
  passes::Context host{*target::find("host")};
  std::set<std::string_view> done;
  for (const passes::Pass& pass : passes::pipeline(target::Kind::kHost)) {
    if (pass.when) continue;
    if (pass.name == "fuse_fma" || !done.insert(pass.name).second) continue;
    for_each_seed(100, [&](uint64_t seed) {
      GeneratorOptions options;
      options.reread = seed & 1;
      options.dots = true;
      options.dots = true;
      const Program p = generate(seed, options);
      auto m = ir::clone(*p.module);
      ASSERT_TRUE(pass.run(*m, host).ok());
      expect_valid(*m, p, pass.name);
      if (testing::Test::HasFatalFailure()) return;
      ASSERT_EQ(compare(meaning(p, *p.module), meaning(p, *m)), "") << pass.name << " gave\n"
                                                                    << ir::print(*m) << "\nfrom " << describe(p);
    });
  }
}

/// fuse_fma alone on integers changes nothing, and never leaves a product whose only use is an addition.
TEST(Fuzz, FuseFmaLeavesIntegersAlone) {
  passes::Context host{*target::find("host")};
  GeneratorOptions options;
  options.dtypes = {DType::kI1, DType::kI32, DType::kU8, DType::kI64};
  for (const passes::Pass& pass : passes::pipeline(target::Kind::kHost)) {
    if (pass.when) continue;
    if (pass.name != "fuse_fma") continue;
    for_each_seed(50, [&](uint64_t seed) {
      const Program p = generate(seed, options);
      auto m = ir::clone(*p.module);
      ASSERT_TRUE(pass.run(*m, host).ok());
      ASSERT_EQ(ir::print(*m), ir::print(*p.module)) << describe(p);
    });
  }
}

/// Damaged text is an error with a place, or a module that the verifier judges; what it accepts, passes survive.
TEST(Fuzz, DamagedTextNeverStopsTheProgram) {
  passes::Context host{*target::find("host")};
  int accepted = 0;
  for_each_seed(1500, [&](uint64_t seed) {
    std::mt19937_64 rng(seed);
    GeneratorOptions options;
    options.max_statements = 10;
    std::string text = ir::print(*generate(seed % 64, options).module);
    for (uint64_t i = 0; i <= rng() % 3; ++i) {
      const size_t at = rng() % text.size(), from = rng() % text.size();
      switch (rng() % 4) {
        case 0:
          text.erase(at, 1 + rng() % 4);
          break;
        case 1:
          text.insert(at, text.substr(from, 1 + rng() % 8));
          break;
        case 2:
          text[at] = text[from];
          break;
        default: {  // a digit, which changes names, shapes and constants
          const size_t digit = text.find_first_of("0123456789", at);
          if (digit != std::string::npos) text[digit] = static_cast<char>('0' + rng() % 10);
        }
      }
    }
    auto m = ir::parse_module(SourceText::make("damaged.ir", text));
    if (!m.ok()) {
      EXPECT_GT(m.error().place.line, 0) << text;
      return;
    }
    if (!ir::verify(**m).ok()) return;
    ++accepted;
    passes::RunOptions each;
    each.verify_each = true;
    const Status s = passes::run(passes::pipeline(target::Kind::kHost), **m, host, each);
    EXPECT_TRUE(s.ok()) << render(s.error()) << text;
  });
  if (std::getenv("KILN_FUZZ_SEED")) return;
  EXPECT_GT(accepted, 0);
}

// The generator reaches every op of the tile stage that it means to reach.
TEST(Fuzz, GeneratorReachesTheOps) {
  std::set<ir::OpKind> seen;
  GeneratorOptions options;
  options.barriers = options.dots = true;
  for (uint64_t seed = 0; seed < 400; ++seed)
    ir::walk(generate(seed, options).module->body(), [&](ir::Op* op) { seen.insert(op->kind); });
  using K = ir::OpKind;
  const std::set<K> left_out = {K::kAtomicCas,       K::kPrint,     K::kMakeDescriptor, K::kDescriptorLoad,
                                K::kDescriptorStore, K::kCtaRank,   K::kGdcWait,        K::kGdcLaunchDependents,
                                K::kInlineAsm,       K::kAsmEffect, K::kPrefetch};
  for (int k = 0; k < ir::num_op_kinds(); ++k) {
    const K kind = static_cast<K>(k);
    if (!ir::stands_at(kind, 't')) continue;
    EXPECT_NE(seen.contains(kind), left_out.contains(kind)) << ir::info(kind).mnemonic;
  }
}

}  // namespace
}  // namespace kiln::fuzz
