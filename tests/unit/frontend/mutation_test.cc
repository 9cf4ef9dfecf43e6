// Broken programs never reach an internal error: tokens of valid kernels are deleted, doubled, exchanged and replaced,
// and the result must compile or give a diagnostic with a place.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

#include "compiler/ir/ir.h"
#include "support/diag.h"
#include "tests/unit/frontend/kernel_file.h"

namespace kiln::frontend::testing {
namespace {

struct Program {
  std::string name, command, text;
};

/// The golden programs: valid ones and those that fail for one reason.
std::vector<Program> corpus() {
  std::vector<Program> out;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::filesystem::path(KILN_SOURCE_DIR) / "tests/golden/frontend")) {
    if (entry.path().filename() == "CMakeLists.txt" || entry.path().extension() != ".txt") continue;
    if (entry.path().stem() == "bad_static_range_endless") continue;  // takes its time to give up
    std::ifstream in(entry.path());
    Program p{entry.path().stem(), {}, {}};
    std::getline(in, p.command);
    p.command = p.command.substr(std::string_view("---- frontend").size());
    for (std::string line; std::getline(in, line) && line != "---- expect";) p.text += line + "\n";
    out.push_back(std::move(p));
  }
  std::sort(out.begin(), out.end(), [](const Program& a, const Program& b) { return a.name < b.name; });
  return out;
}

/// Words, numbers, strings, runs of spaces, and single characters.
std::vector<std::string> split_tokens(const std::string& text) {
  std::vector<std::string> out;
  for (size_t i = 0; i < text.size();) {
    auto is_word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; };
    size_t end = i + 1;
    if (is_word(text[i]))
      while (end < text.size() && is_word(text[end])) ++end;
    else if (text[i] == ' ')
      while (end < text.size() && text[end] == ' ') ++end;
    out.push_back(text.substr(i, end - i));
    i = end;
  }
  return out;
}

const char* const kReplacements[] = {"0",
                                     "1",
                                     "-1",
                                     "3",
                                     "64",
                                     "1.5",
                                     "None",
                                     "True",
                                     "tl",
                                     "x",
                                     "n",
                                     "+",
                                     "//",
                                     "@",
                                     "**",
                                     "and",
                                     "not ",
                                     "is",
                                     ":",
                                     ",",
                                     "(",
                                     ")",
                                     "[",
                                     "]",
                                     "[None]",
                                     "tl.float8e5",
                                     "tl.int1",
                                     "tl.uint64",
                                     "tl.load",
                                     "tl.sum",
                                     "tl.arange(0, 8)",
                                     "range",
                                     "return",
                                     "if ",
                                     "while ",
                                     "for ",
                                     "BLOCK",
                                     "2**70",
                                     "1e400",
                                     "float('nan')",
                                     "'s'",
                                     ".dtype",
                                     ".to(tl.int64)",
                                     ".T",
                                     "(1, 2)",
                                     "[]",
                                     "p",
                                     "1 << 40",
                                     "tl.static_range(3)",
                                     "\n",
                                     "    "};

TEST(Mutation, EveryProgramCompilesOrSaysWhy) {
  uint64_t seed = std::random_device{}();
  if (const char* fixed = std::getenv("KILN_FUZZ_SEED")) seed = std::strtoull(fixed, nullptr, 10);
  int rounds = 48;
  if (const char* more = std::getenv("KILN_FUZZ_ROUNDS")) rounds = std::atoi(more);
  std::printf("KILN_FUZZ_SEED=%llu\n", static_cast<unsigned long long>(seed));
  std::mt19937_64 rng(seed);
  auto below = [&](size_t n) { return std::uniform_int_distribution<size_t>(0, n - 1)(rng); };
  std::vector<Program> programs = corpus();
  ASSERT_GT(programs.size(), 100u);
  std::vector<std::vector<std::string>> tokens;
  for (const Program& p : programs) tokens.push_back(split_tokens(p.text));
  int compiled = 0, refused = 0;
  for (int round = 0; round < rounds; ++round) {
    for (size_t k = 0; k < programs.size(); ++k) {
      // Valid programs have more to break.
      if (programs[k].name.starts_with("bad_") && round % 8 != 0) continue;
      std::vector<std::string> mutated = tokens[k];
      auto word = [&](const std::vector<std::string>& list) {
        size_t at = below(list.size());
        for (int tries = 0; tries < 20 && !std::isalnum(static_cast<unsigned char>(list[at][0])); ++tries)
          at = below(list.size());
        return at;
      };
      for (size_t edits = below(4) == 0 ? 3 : 1; edits-- > 0 && !mutated.empty();) {
        size_t at = below(mutated.size());
        switch (below(8)) {
          case 0:
            mutated.erase(mutated.begin() + static_cast<long>(at));
            break;
          case 1:
            mutated.insert(mutated.begin() + static_cast<long>(at), std::string(mutated[at]));
            break;
          case 2:
            std::swap(mutated[at], mutated[below(mutated.size())]);
            break;
          case 3:
            mutated[at] = kReplacements[below(std::size(kReplacements))];
            break;
          case 4: {
            const std::vector<std::string>& other = tokens[below(tokens.size())];
            mutated[at] = other[below(other.size())];
            break;
          }
          // A word for a word parses more often, and gets further.
          case 5:
            mutated[word(mutated)] = mutated[word(mutated)];
            break;
          case 6:
            std::swap(mutated[word(mutated)], mutated[word(mutated)]);
            break;
          case 7:
            mutated[word(mutated)] = kReplacements[below(std::size(kReplacements))];
            break;
        }
      }
      std::string text;
      for (const std::string& t : mutated) text += t;
      // A process that dies leaves the text that killed it.
      if (const char* dump = std::getenv("KILN_FUZZ_DUMP")) std::ofstream(dump) << programs[k].command << "\n" << text;
      auto module = lower_text(programs[k].name + ".py", text, parse_command(programs[k].command));
      if (module.ok()) {
        ++compiled;
        continue;
      }
      ++refused;
      const Diagnostic& d = module.error();
      ASSERT_NE(d.kind, ErrorKind::kInternal) << render(d) << programs[k].command << "\n" << text;
      EXPECT_FALSE(d.message.empty());
      // The text of an assertion is the user's own.
      if (d.kind != ErrorKind::kMismatch) {
        EXPECT_FALSE(d.message.ends_with('.')) << d.message;
      }
    }
  }
  std::printf("%d compiled, %d refused\n", compiled, refused);
  EXPECT_GT(compiled, 0);
  EXPECT_GT(refused, 0);
}

}  // namespace
}  // namespace kiln::frontend::testing
