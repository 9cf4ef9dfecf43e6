// Checks every include of the tree against the table of allowed includes below.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <regex>
#include <string>
#include <vector>

namespace {

namespace fs = std::filesystem;

// A folder and what its files may include from this project (prefixes). The longest matching folder counts.
struct Room {
  const char* folder;
  std::vector<std::string> may_include;
};

const std::vector<Room>& rooms() {
  static const std::vector<Room> kRooms = {
      {"include/kiln", {"kiln/"}},
      {"support", {"kiln/", "support/"}},
      {"compiler", {"kiln/", "support/", "compiler/"}},
      {"compiler/ast", {"kiln/", "support/", "compiler/ast/"}},
      {"compiler/parse", {"kiln/", "support/", "compiler/ast/", "compiler/parse/"}},
      {"compiler/layout", {"kiln/", "support/", "compiler/layout/"}},
      {"compiler/target", {"kiln/", "support/", "compiler/target/"}},
      {"compiler/ir", {"kiln/", "support/", "compiler/layout/", "compiler/ir/"}},
      {"compiler/frontend",
       {"kiln/", "support/", "compiler/ast/", "compiler/parse/", "compiler/ir/", "compiler/interp/",
        "compiler/frontend/"}},
      {"compiler/codegen",
       {"kiln/", "support/", "compiler/target/", "compiler/ir/", "compiler/lower/", "compiler/codegen/",
        "compiler/compile.h"}},
      {"compiler/fusion", {"kiln/", "support/", "compiler/target/", "compiler/fusion/"}},
      {"runtime", {"kiln/", "support/", "runtime/"}},
      {"profiler", {"kiln/", "support/", "runtime/", "profiler/", "compiler/target/"}},
      {"profiler/measure",
       {"kiln/", "support/", "runtime/", "compiler/target/", "profiler/measure/", "profiler/report/"}},
      {"profiler/profile",
       {"kiln/", "support/", "runtime/", "compiler/target/", "profiler/profile/", "profiler/report/",
        "profiler/measure/", "profiler/roofline/", "profiler/lines/"}},
      {"kernels", {"kiln/", "support/", "compiler/target/", "kernels/"}},
      {"repl/editor", {"kiln/", "support/", "repl/editor/"}},
      // The Python subset: no tensors, no devices, none of the modules that scripts import.
      {"repl/script",
       {"kiln/result.h", "kiln/dtype.h", "kiln/interrupt.h", "support/", "compiler/ast/", "compiler/parse/",
        "repl/script/"}},
      {"repl/modules",
       {"kiln/", "support/", "runtime/", "profiler/", "compiler/ast/", "compiler/parse/", "repl/script/",
        "repl/modules/"}},
      {"repl", {"kiln/", "support/", "runtime/", "profiler/", "kernels/", "compiler/ast/", "compiler/parse/", "repl/"}},
  };
  return kRooms;
}

// A single file that may include more than its room: the bridges.
const std::vector<std::pair<std::string, std::string>>& bridges() {
  static const std::vector<std::pair<std::string, std::string>> kBridges = {
      {"compiler/codegen/host_load", "compiler/compile.h"},  // defines load_host_object
      {"runtime/jit/", "compiler/"},                         // the one way from the runtime to the compiler
      {"runtime/expr", "compiler/fusion/"},                  // plans expressions and runs the plans
      {"runtime/launch/", "compiler/"},                      // makes jit functions for jit.cc
      {"repl/commands/assumed_", "compiler/"},               // values that `kiln check` assumes for a JitFunction
      {"repl/commands/compile_", "compiler/"},  // `kiln compile` and `kiln check` show the compiler's own stages
      {"repl/commands/version", "compiler/compile.h"},  // what the program was built with
      {"repl/magics/compile_", "compiler/"},            // their stages, at the prompt
      {"repl/views/static_table", "compiler/target/"},  // a target's limits, for occupancy
      {"repl/magics/kernel", "compiler/target/"},       // the targets that %target knows
      {"repl/magics/diff", "compiler/target/"},         // whether both sides are for GPUs
      {"repl/modules/triton/", "compiler/frontend/"},   // @triton.jit makes a JitFunction
  };
  return kBridges;
}

// Headers of libraries that only some rooms may see.
struct Guarded {
  const char* header;  // regular expression over the include's text
  std::vector<std::string> folders;
};

const std::vector<Guarded>& guarded() {
  static const std::vector<Guarded> kGuarded = {
      {"^llvm/.*", {"compiler/lower", "compiler/codegen"}},
      {"^cuda\\.h$", {"runtime/cuda", "profiler/cupti"}},
      {"^(cupti|nvperf).*\\.h$", {"profiler/cupti"}},
      {"^nvtx3/.*", {"profiler/cupti"}},
      {"^nvJitLink\\.h$", {"compiler/codegen"}},
  };
  return kGuarded;
}

bool starts_with(const std::string& s, const std::string& prefix) { return s.rfind(prefix, 0) == 0; }

template <class Fn>
void for_each_include(Fn fn) {
  const fs::path root = KILN_SOURCE_DIR;
  const std::regex include(R"re(^\s*#\s*include\s*[<"]([^>"]+)[>"])re");
  for (const char* top : {"include", "support", "compiler", "runtime", "profiler", "kernels", "repl"})
    for (const auto& entry : fs::recursive_directory_iterator(root / top)) {
      std::string ext = entry.path().extension();
      if (ext != ".h" && ext != ".cc" && ext != ".def") continue;
      std::string file = fs::relative(entry.path(), root);
      std::ifstream in(entry.path());
      std::string line;
      std::smatch m;
      while (std::getline(in, line))
        if (std::regex_search(line, m, include)) fn(file, m[1].str());
    }
}

TEST(Layering, IncludesFollowTheTable) {
  const fs::path root = KILN_SOURCE_DIR;
  int seen = 0;
  for_each_include([&](const std::string& file, const std::string& header) {
    bool ours = fs::exists(root / header) || fs::exists(root / "include" / header);
    if (!ours) return;
    ++seen;
    const Room* best = nullptr;
    for (const Room& r : rooms())
      if (starts_with(file, std::string(r.folder) + "/") &&
          (!best || std::string(r.folder).size() > std::string(best->folder).size()))
        best = &r;
    ASSERT_NE(best, nullptr) << file << " is in no room";
    bool allowed = std::any_of(best->may_include.begin(), best->may_include.end(),
                               [&](auto& p) { return starts_with(header, p); });
    for (const auto& [f, p] : bridges()) allowed = allowed || (starts_with(file, f) && starts_with(header, p));
    EXPECT_TRUE(allowed) << file << " may not include " << header << ": the table in tests/layering_test.cc says why";
  });
  EXPECT_GT(seen, 30);
}

TEST(Layering, LibraryHeadersStayInTheirRooms) {
  for_each_include([&](const std::string& file, const std::string& header) {
    for (const Guarded& g : guarded()) {
      if (!std::regex_search(header, std::regex(g.header))) continue;
      bool allowed =
          std::any_of(g.folders.begin(), g.folders.end(), [&](auto& f) { return starts_with(file, f + "/"); });
      EXPECT_TRUE(allowed) << file << " may not include " << header;
    }
  });
}

TEST(Layering, NoFileGrowsPast800Lines) {
  const fs::path root = KILN_SOURCE_DIR;
  for (const char* top : {"include", "support", "compiler", "runtime", "profiler", "kernels", "repl", "tests"})
    for (const auto& entry : fs::recursive_directory_iterator(root / top)) {
      std::string ext = entry.path().extension();
      if (ext != ".h" && ext != ".cc") continue;
      std::ifstream in(entry.path());
      auto lines = std::count(std::istreambuf_iterator<char>(in), {}, '\n');
      EXPECT_LE(lines, 850) << entry.path() << ": split it";
    }
}

// Passes and lowerings ask target.has(Feature); only the target tables know SM numbers.
TEST(Layering, NoSmNumbersOutsideTheTargetTables) {
  const fs::path root = KILN_SOURCE_DIR;
  const std::regex sm(R"((\.|->)sm\s*[<>=!]=?|>=\s*(80|86|89|90|100)\b)");
  for (const char* top : {"compiler/passes", "compiler/lower", "compiler/analysis", "compiler/layout", "runtime"})
    for (const auto& entry : fs::recursive_directory_iterator(root / top)) {
      if (!entry.is_regular_file()) continue;
      std::ifstream in(entry.path());
      std::string line;
      for (int n = 1; std::getline(in, line); ++n)
        EXPECT_FALSE(std::regex_search(line, sm)) << entry.path() << ":" << n << ": " << line;
    }
}

// Nor do they know what a kernel costs on one of them: the models of plans ask target::rates_of.
TEST(Layering, NoRatesOutsideTheTargetTables) {
  const fs::path root = KILN_SOURCE_DIR;
  const std::regex rate(R"(\bk\w*Us\b)");
  for (const auto& entry : fs::recursive_directory_iterator(root / "compiler/fusion")) {
    std::ifstream in(entry.path());
    std::string line;
    for (int n = 1; std::getline(in, line); ++n)
      EXPECT_FALSE(std::regex_search(line, rate)) << entry.path() << ":" << n << ": " << line;
  }
}

// Nor do texts name a generation: a help text asks for target::example_with, a default is target::kDefaultGpu.
TEST(Layering, NoTargetNamesInStrings) {
  const std::vector<std::string> allowed = {
      "repl/shell/options.cc",         // the help of --target
      "repl/magics/magics.cc",         // the help of %target and %ptx
      "repl/magics/magic_option.def",  // an example of %target
  };
  const fs::path root = KILN_SOURCE_DIR;
  const std::regex comment(R"(//.*$|/\*.*?\*/)"), name(R"re("[^"]*sm_[0-9]+[^"]*")re");
  for (const char* top : {"include", "support", "compiler", "runtime", "profiler", "kernels", "repl"})
    for (const auto& entry : fs::recursive_directory_iterator(root / top)) {
      const std::string file = fs::relative(entry.path(), root), ext = entry.path().extension();
      if ((ext != ".h" && ext != ".cc" && ext != ".def") || starts_with(file, "compiler/target/")) continue;
      if (std::find(allowed.begin(), allowed.end(), file) != allowed.end()) continue;
      std::ifstream in(entry.path());
      std::string line;
      for (int n = 1; std::getline(in, line); ++n)
        EXPECT_FALSE(std::regex_search(std::regex_replace(line, comment, ""), name))
            << file << ":" << n << ": " << line;
    }
}

}  // namespace
