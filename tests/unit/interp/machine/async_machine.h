// Hand-written kernels of the distributed stage, run for many seeds, and with planted errors.
#pragma once
#include <gtest/gtest.h>

#include <random>
#include <regex>
#include <string>
#include <vector>

#include "compiler/interp/machine/distributed.h"
#include "support/float_bits.h"

namespace kiln::interp {

/// The lines that name `layouts` L0, L1, … before a kernel.
inline std::string layout_lines(const std::vector<layout::LinearLayout>& layouts) {
  ir::Module module("none");
  module.stage = ir::Stage::kDistributed;
  for (const layout::LinearLayout& l : layouts) module.intern(l);
  EXPECT_EQ(module.layouts().size(), layouts.size()) << "two layouts are equal";
  const std::string text = ir::print(module);
  return text.substr(0, text.find("kernel"));
}

inline std::unique_ptr<ir::Module> parse_kernel(const std::string& text) {
  auto m = ir::parse_module(SourceText::make("test.ir", text));
  EXPECT_TRUE(m.ok()) << (m.ok() ? "" : render(m.error())) << text;
  if (!m.ok()) return nullptr;
  Status ok = ir::verify(**m);
  EXPECT_TRUE(ok.ok()) << (ok.ok() ? "" : render(ok.error())) << text;
  return ok.ok() ? std::move(*m) : nullptr;
}

inline uint32_t fresh_seed() {
  static std::random_device device;
  return device();
}

/// A change of a kernel's text that is a bug, and what must be said of it.
struct Planted {
  const char* name;
  const char* find;     // each occurrence of this
  const char* replace;  // becomes this
  const char* message;  // a regular expression that the error's message has, whatever the order of the warps
};

inline std::string plant(std::string text, const Planted& p) {
  const std::string find = p.find, by = p.replace;
  EXPECT_NE(text.find(find), std::string::npos) << p.name;
  for (size_t at = text.find(find); at != std::string::npos; at = text.find(find, at + by.size()))
    text.replace(at, find.size(), by);
  return text;
}

/// `run(module, seed)` must fail so for each of many seeds.
template <class Run>
void expect_found(const std::string& text, const Planted& p, Run&& run) {
  SCOPED_TRACE(p.name);
  auto m = parse_kernel(plant(text, p));
  ASSERT_NE(m, nullptr);
  for (int i = 0; i < 6; ++i) {
    const uint32_t seed = fresh_seed();
    Status s = run(*m, seed);
    ASSERT_FALSE(s.ok()) << "seed " << seed << ": not found";
    EXPECT_TRUE(std::regex_search(s.error().message, std::regex(p.message)))
        << "seed " << seed << ": " << s.error().message;
    EXPECT_EQ(s.error().kind, ErrorKind::kInternal);
    EXPECT_NE(s.error().message.find("seed " + std::to_string(seed)), std::string::npos);
  }
}

}  // namespace kiln::interp
