// Mutated scripts and kernels: parsing, checking and compiling a text for the host ends with a result or an error,
// whatever the text. Nothing of it is run. KILN_FUZZ_SEED=n repeats one mutant, KILN_FUZZ_COUNT=n makes so many,
// however long it takes.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <random>

#include "compiler/compile.h"
#include "compiler/parse/parser.h"
#include "repl/commands/compile_signature.h"
#include "repl/script/interp/scope.h"
#include "tests/golden/cases.h"

namespace kiln {
namespace {

constexpr double kSeconds = 30;           // for all mutants, unless their number is given
constexpr int kMost_cpu_s = 20;           // of one mutant
constexpr rlim_t kMostMemory = 6u << 30;  // of the process
constexpr int kMostFindings = 3;

/// The texts that are mutated: golden scripts and kernels, and kernels/.
std::vector<std::string> corpus() {
  namespace fs = std::filesystem;
  const fs::path root = KILN_SOURCE_DIR;
  std::vector<fs::path> files;
  for (const char* folder : {"tests/golden/script", "tests/golden/parse", "tests/golden/frontend", "kernels"})
    for (const auto& e : fs::recursive_directory_iterator(root / folder)) files.push_back(e.path());
  std::sort(files.begin(), files.end());  // a seed means the same text everywhere
  std::vector<std::string> texts;
  for (const fs::path& file : files) {
    const std::string text = testing::read_text(file), kind = file.extension().string();
    if (kind == ".py") texts.push_back(text);
    if (kind == ".test")
      for (const testing::GoldenCase& c : testing::read_golden(file)) texts.push_back(c.input);
    if (kind == ".txt" && text.starts_with("---- ")) {
      const size_t begin = text.find('\n') + 1;
      texts.push_back(text.substr(begin, text.find("\n---- expect") - begin));
    }
  }
  return texts;
}

class Mutator {
 public:
  explicit Mutator(uint64_t seed) : random_(seed) {}

  size_t below(size_t n) { return n ? random_() % n : 0; }

  std::string mutant(const std::vector<std::string>& texts) {
    std::string text = texts[below(texts.size())];
    for (size_t n = 1 + below(4); n > 0; --n) mutate(text, texts[below(texts.size())]);
    return text;
  }

 private:
  static constexpr std::string_view kTokens[] = {"0",
                                                 "-1",
                                                 "2147483648",
                                                 "1 << 62",
                                                 "1e999",
                                                 "None",
                                                 "True",
                                                 "''",
                                                 "[]",
                                                 "()",
                                                 "{}",
                                                 "lambda",
                                                 "tl.constexpr",
                                                 "**",
                                                 "*",
                                                 "@",
                                                 "->",
                                                 ":=",
                                                 "\\\n",
                                                 "\t",
                                                 "\"\"\"",
                                                 "if",
                                                 "for",
                                                 "while",
                                                 "def",
                                                 "in",
                                                 "is",
                                                 "not",
                                                 "class",
                                                 "return",
                                                 "yield",
                                                 "else",
                                                 "tl.arange(0, 65536)",
                                                 "tl.zeros([1, 1, 1], tl.float16)",
                                                 "[None, :]",
                                                 "[::-1]",
                                                 "x",
                                                 "tl.dot"};

  struct Span {
    size_t begin, end;
  };
  Span line(const std::string& text) {
    const size_t at = below(text.size()), before = at ? text.rfind('\n', at - 1) : std::string::npos;
    const size_t begin = before == std::string::npos ? 0 : before + 1;
    const size_t end = std::min(text.find('\n', begin), text.size());
    return {begin, std::min(end + 1, text.size())};
  }
  static bool in_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.'; }
  /// A word or number, or one other character.
  Span token(const std::string& text) {
    size_t begin = below(text.size());
    size_t end = std::min(begin + 1, text.size());
    if (end == 0 || !in_word(text[begin])) return {begin, end};
    while (begin > 0 && in_word(text[begin - 1])) --begin;
    while (end < text.size() && in_word(text[end])) ++end;
    return {begin, end};
  }
  static std::string part(const std::string& text, Span s) { return text.substr(s.begin, s.end - s.begin); }

  void mutate(std::string& text, const std::string& other) {
    const size_t at = below(text.size() + 1);
    const Span one = token(text), row = line(text);
    switch (below(11)) {
      case 0:
        if (at < text.size()) text[at] = static_cast<char>(text[at] ^ 1 << below(8));
        break;
      case 1:
        text.insert(at, 1, static_cast<char>(below(256)));
        break;
      case 2:
        text.erase(at, 1 + below(20));
        break;
      case 3:
        text.replace(one.begin, one.end - one.begin, kTokens[below(std::size(kTokens))]);
        break;
      case 4:
        text.replace(one.begin, one.end - one.begin, part(text, token(text)));
        break;
      case 5:
        text.replace(one.begin, one.end - one.begin, part(other, token(other)));
        break;
      case 6:
        text.erase(row.begin, row.end - row.begin);
        break;
      case 7:
        text.insert(row.begin, part(text, line(text)));
        break;
      case 8:
        text.insert(row.begin, part(other, line(other)));
        break;
      case 9:
        text.insert(row.begin, std::string(1 + below(6), ' '));
        break;
      case 10:
        text.insert(one.end, " " + std::string(kTokens[below(std::size(kTokens))]) + " ");
        break;
    }
  }

  std::mt19937_64 random_;
};

/// Shared by the processes.
struct Progress {
  size_t next = 0;  // seed
  size_t parsed = 0, compiled = 0;
};

/// What `kiln check` and the interpreter's front do with a text; errors are what they should be.
void attempt(const std::string& text, Mutator& random, Progress& progress) {
  auto module = parse::parse_module(SourceText::make("mutant.py", text));
  if (!module.ok()) return (void)render(module.error());
  ++progress.parsed;
  (void)ast::dump(**module);
  script::Globals globals;
  if (auto program = script::resolve(*module, globals); !program.ok()) (void)render(program.error());
  auto functions = frontend::jit_functions(*module);
  if (!functions.ok()) return (void)render(functions.error());
  if (functions->empty()) return;
  const frontend::JitFunction& f = *(*functions)[random.below(functions->size())];
  if (f.constexpr_function) return;
  repl::AssumedSignature assumed = repl::assume_signature(f, {}, repl::Evidence::kNamesToo);
  auto args = frontend::parse_signature(f, assumed.signature, assumed.constexprs);
  if (!args.ok()) return (void)render(args.error());
  CompileOptions options;
  options.frontend.on_static_print = [](const std::string&) {};
  auto compiled = compile(f, *args, options);
  if (!compiled.ok()) return (void)render(compiled.error());
  ++progress.compiled;
}

/// Runs seeds from progress.next on until one ends the process.
[[noreturn]] void run_in_child(const std::vector<uint64_t>& seeds, const std::vector<std::string>& texts,
                               Progress& progress, std::chrono::steady_clock::time_point deadline) {
#ifndef __SANITIZE_ADDRESS__  // which reserves more than there is
  const rlimit memory{kMostMemory, kMostMemory};
  setrlimit(RLIMIT_AS, &memory);
#endif
  for (; progress.next < seeds.size() && std::chrono::steady_clock::now() < deadline; ++progress.next) {
    const itimerval limit{{0, 0}, {kMost_cpu_s, 0}};
    setitimer(ITIMER_PROF, &limit, nullptr);
    Mutator random(seeds[progress.next]);
    attempt(random.mutant(texts), random, progress);
  }
  _exit(0);
}

TEST(TextFuzz, NoTextEndsTheProcess) {
  const std::vector<std::string> texts = corpus();
  ASSERT_GT(texts.size(), 300u);
  std::vector<uint64_t> seeds(100'000);
  std::random_device device;
  std::mt19937_64 engine(uint64_t{device()} << 32 | device());
  for (uint64_t& s : seeds) s = engine();
  double seconds = kSeconds;
  if (const char* count = std::getenv("KILN_FUZZ_COUNT")) {
    seeds.resize(std::min<size_t>(seeds.size(), std::strtoull(count, nullptr, 0)));
    seconds = 1e6;
  }
  if (const char* seed = std::getenv("KILN_FUZZ_SEED")) seeds = {std::strtoull(seed, nullptr, 0)};
  const auto deadline =
      std::chrono::steady_clock::now() + std::chrono::milliseconds(static_cast<int64_t>(seconds * 1e3));
  void* shared = mmap(nullptr, sizeof(Progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(shared, MAP_FAILED);
  Progress& progress = *new (shared) Progress;
  int findings = 0;
  for (;;) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) run_in_child(seeds, texts, progress, deadline);
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) break;
    const uint64_t seed = seeds[progress.next++];
    const int signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    ADD_FAILURE() << fmt::format("KILN_FUZZ_SEED={:#x} {}:\n{}", seed,
                                 signal == SIGPROF ? fmt::format("takes over {} s", kMost_cpu_s)
                                 : signal          ? fmt::format("ends with {}", strsignal(signal))
                                                   : "ends the process",
                                 Mutator(seed).mutant(texts));
    if (++findings == kMostFindings) break;
  }
  fmt::print("{} mutants of {} texts: {} parse, {} compile, {} findings; the first is KILN_FUZZ_SEED={:#x}\n",
             progress.next, texts.size(), progress.parsed, progress.compiled, findings, seeds[0]);
  munmap(shared, sizeof(Progress));
}

}  // namespace
}  // namespace kiln
