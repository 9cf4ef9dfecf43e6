// Every native of every module and every method table is called with what it is not made for: nothing, too much, other
// types, foreign receivers, huge numbers. An exception is fine; a crash or a call that does not end is not.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>
#include <csignal>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <set>
#include <stdexcept>
#include <tuple>

#include "repl/modules/modules.h"
#include "repl/script/builtins/builtins.h"
#include "repl/session/session.h"
#include "tests/unit/open_device.h"

namespace kiln::script {
namespace {

/// What they are for is to end the process, to take as long as they are told, or to begin a capture, which refuses the
/// test's own statements until it ends.
constexpr std::string_view kLeftOut[] = {"exit",
                                         "quit",
                                         "sys.exit",
                                         "_time.sleep",
                                         "triton.testing.do_bench",
                                         "torch._kiln.stay_lazy",
                                         "JITFunction.run",
                                         "Autotuner.run",
                                         "Heuristics.run",
                                         "torch.cuda.CUDAGraph.capture_begin",
                                         "torch.cuda.graph.__enter__"};

constexpr std::string_view kSetup = R"(
import math, os, random, sys, time
import torch, triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

class Empty: pass
class Full:
    def __init__(self, *args): self.args = args
    def __len__(self): return 1 << 62
    def __getitem__(self, i): raise IndexError(i)
    def __iter__(self): return iter([1])
    def __index__(self): return -1
    def __eq__(self, other): return True
    def __lt__(self, other): raise KeyError('lt')

# Changes the containers that a native is going through while it asks about an element.
victims = []
def strike(*args):
    for v in victims: v.clear()
    return 0
class Nasty:
    def __eq__(self, other): return strike() == 1
    __hash__ = object.__hash__
    def __lt__(self, other): return strike() == 1
    def __repr__(self): return 'nasty' * (1 + strike())
    def __add__(self, other): return strike()
    def __radd__(self, other): return strike()
    def __bool__(self): return strike() == 1
    def __index__(self): return strike()
    def __len__(self): return strike()
    def __iter__(self): return iter([strike()])
class MyDict(dict): extra = 1
class MyList(list): extra = 1
class MyTuple(tuple): extra = 1
class MyStr(str): extra = 1
class MyInt(int): extra = 1
class MySet(set): extra = 1
def generate(n=2):
    for i in range(n): yield i
def started():
    g = generate()
    next(g)
    return g
def nasty_list():
    victims.append([Nasty() for i in range(9)] + [1, 'a'])
    return victims[-1]
def nasty_dict():
    victims.append({i: Nasty() for i in range(9)})
    victims[-1][Nasty()] = 1
    return victims[-1]
def nasty_set():
    victims.append({Nasty(), Nasty(), 1, 2})
    return victims[-1]

@triton.jit
def kernel(x, B: tl.constexpr): tl.static_assert(B > 0)
tuned = triton.autotune([triton.Config({'B': 8}), triton.Config({'B': 16})], key=['x'])(kernel)
guessed = triton.heuristics({'B': lambda named: 8})(kernel)
)";

// More elements than there is memory for. AddressSanitizer ends the process that asks for so much.
#ifdef __SANITIZE_ADDRESS__
#define TOO_MANY "1 << 20"
#else
#define TOO_MANY "1 << 40"
#endif

/// The values that natives are called with; each time made anew, as natives change them.
/// Numbers at the ends of what fits, texts with other encodings and formats, containers of every kind, objects that
/// lie.
constexpr std::string_view kPool[] = {"None",
                                      "True",
                                      "0",
                                      "1",
                                      "-1",
                                      "3",
                                      TOO_MANY,
                                      "(1 << 63) - 1",
                                      "-(1 << 63)",
                                      "1 << 100",
                                      "0.5",
                                      "-0.0",
                                      "1e308",
                                      "float('nan')",
                                      "float('inf')",
                                      "''",
                                      "'a'",
                                      "'é日'",
                                      "'float32'",
                                      "'cpu'",
                                      "'{0.x[1]!r:>{1}}'",
                                      "'sum'",
                                      "()",
                                      "(2, 3)",
                                      "(1 << 62, 4)",
                                      "(1 << 32, 1 << 32)",
                                      "(-1, -1)",
                                      "(0, 1 << 62)",
                                      "[]",
                                      "[1, 2]",
                                      "[[1], [2]]",
                                      "[-(1 << 63)]",
                                      "[None]",
                                      "{}",
                                      "{'a': 1}",
                                      "{3: 'x', None: 2}",
                                      "set()",
                                      "{1, 'b'}",
                                      "slice(None, None, -1)",
                                      "range(3)",
                                      "...",
                                      "lambda *args, **named: 1",
                                      "lambda: None",
                                      "len",
                                      "[].append",
                                      "str.upper",
                                      "int",
                                      "type",
                                      "KeyError",
                                      "object()",
                                      "Empty()",
                                      "Empty",
                                      "Full()",
                                      "Full",
                                      "math",
                                      "iter([1, 2])",
                                      "zip([1], 'a')",
                                      "(i for i in range(3))",
                                      "torch.float32",
                                      "torch.bool",
                                      "torch.int8",
                                      "torch.device('cpu')",
                                      "torch.cuda.Stream()",
                                      "torch.cuda.Event()",
                                      "torch.cuda.CUDAGraph()",
                                      "torch.cuda.graph(torch.cuda.CUDAGraph())",
                                      "torch.ones(2, 3)",
                                      "torch.ones(2, 3).T",
                                      "torch.arange(3)",
                                      "torch.tensor([True, False])",
                                      "torch.tensor(2.5)",
                                      "torch.tensor(-7)",
                                      "torch.zeros(0)",
                                      "torch.zeros(3, 0, 2)",
                                      "torch.ones(2, 2, 3, dtype=torch.float16)",
                                      "torch.ones(1).expand(4)",
                                      "torch.ones(64, 80) + 1",
                                      "TensorDescriptor.from_tensor(torch.ones(16, 16), [8, 8])",
                                      "kernel",
                                      "tuned",
                                      "guessed",
                                      "kernel[(1,)]",
                                      "triton.Config({'B': 8})",
                                      "tl.constexpr(3)",
                                      "tl.exp",
                                      "tl",
                                      "os.environ",
                                      "sys.stdout",
                                      "torch.profiler.profile()",
                                      "torch.profiler.schedule(wait=1, warmup=1, active=1)",
                                      "torch.profiler.record_function('x')",
                                      "torch.no_grad()",
                                      "strike",
                                      "Nasty()",
                                      "nasty_list()",
                                      "generate()",
                                      "started()",
                                      "MyDict(a=1)",
                                      "MyList([1, 2])",
                                      "MyTuple((1, 2))",
                                      "MyStr('a')",
                                      "MyInt(3)",
                                      "MySet([1])",
                                      "open('pool.txt', 'a+')",
                                      "property(strike)",
                                      "staticmethod(strike)",
                                      "classmethod(strike)",
                                      "KeyError('k')",
                                      "nasty_dict()",
                                      "nasty_set()",
                                      "triton.testing.Benchmark(['n'], [1], 'p', [1], ['a'], 'name', {})"};
constexpr size_t kPoolSize = std::size(kPool);

// Static memory: a handler of signals may read it.
char g_doing[512];

extern "C" void tell_and_leave(int signal) {
  const char* what = signal == SIGALRM ? "does not end: " : "crashes: ";
  (void)!write(STDERR_FILENO, what, std::strlen(what));
  (void)!write(STDERR_FILENO, g_doing, std::strlen(g_doing));
  (void)!write(STDERR_FILENO, "\n", 1);
  // _exit(), since after a crash nothing of the process can be relied on.
  _exit(3);
}

/// Memory that a call asks for must not be the machine's.
class MemoryLimit {
 public:
  MemoryLimit() {
// The sanitizer's shadow memory would not fit into any limit.
#if !defined(__SANITIZE_ADDRESS__)
    getrlimit(RLIMIT_AS, &before_);
    size_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    rlimit limit = before_;
    // 2 GiB more than there are.
    limit.rlim_cur = std::min<rlim_t>(before_.rlim_max, pages * 4096 + (rlim_t{1} << 31));
    setrlimit(RLIMIT_AS, &limit);
#endif
  }
  ~MemoryLimit() {
#if !defined(__SANITIZE_ADDRESS__)
    setrlimit(RLIMIT_AS, &before_);
#endif
  }

 private:
  [[maybe_unused]] rlimit before_{};
};

struct Target {
  std::string name;
  Native* method = nullptr;  // else the value is called
  Value function;
};

class NativesTest : public ::testing::Test {
 protected:
  NativesTest() {
    folder_ = std::filesystem::temp_directory_path() / ("kiln_natives_" + std::to_string(getpid()));
    std::filesystem::create_directories(folder_);
    before_ = std::filesystem::current_path();
    // Opened for each target, as natives change what they find.
    std::filesystem::current_path(folder_);  // for what is written under a name from the pool
    for (int signal : kSignals) std::signal(signal, tell_and_leave);
  }
  ~NativesTest() override {
    alarm(0);
    for (int signal : kSignals) std::signal(signal, SIG_DFL);
    std::filesystem::current_path(before_);
    std::filesystem::remove_all(folder_);
  }

  void open() {
    session_.reset();
    Options options;
    options.output = options.error_output = [](std::string_view) {};
    options.device = *open_device("cpu");
    session_ = std::make_unique<Session>(std::move(options));
    std::string text(kSetup);
    // A function, so that every call has values of its own.
    text += "def pool():\n    del victims[0:]\n    return [";
    for (std::string_view v : kPool) text += std::string(v) + ",\n        ";
    const Status s = session_->run(text + "]\n", "setup.py");
    ASSERT_TRUE(s.ok()) << render(s.error());
  }
  Interp& in() { return session_->interp(); }

  std::vector<Value> pool() {
    Value list;
    try {
      list = in().call(session_->variable("pool"), {});
    } catch (const ScriptError& e) {
      // A broken session is the failure of what ran last.
      ADD_FAILURE() << g_doing << " leaves the session broken: " << render(e.diagnostic);
      return std::vector<Value>(kPoolSize, Value::none());
    }
    return list.get<List>()->items;
  }

  template <class Run>
  void guarded(Run&& run) {
    try {
      run();
      // An error is what a native may end with.
    } catch (const ScriptError&) {        // NOLINT(bugprone-empty-catch)
    } catch (const std::bad_alloc&) {     // NOLINT(bugprone-empty-catch)
    } catch (const std::length_error&) {  // NOLINT(bugprone-empty-catch)
    }
  }

  /// Looks at what came out as scripts do.
  void look_at(const Value& v) {
    guarded([&] { in().repr(v); });
    guarded([&] { in().str(v); });
    guarded([&] { in().truth(v); });
    guarded([&] { in().hash(v); });
    guarded([&] { in().length(v); });
    guarded([&] { in().equal(v, v); });
    guarded([&] { in().item(v, Value::integer(0)); });
    guarded([&] {
      Ref<IteratorObject> it = in().iterator(v);
      Value item;
      // Three elements are enough: an iterator may have no end.
      for (int i = 0; i < 3 && it->next(in(), item); ++i) in().repr(item);
    });
    std::vector<std::string> names;
    if (v.object()) v.object()->attribute_names(names);
    for (size_t i = 0; i < std::min<size_t>(names.size(), 12); ++i) guarded([&] { in().attribute(v, names[i]); });
  }

  void call(const Target& target, const std::vector<size_t>& places, std::span<const std::string> keywords = {}) {
    std::vector<Value> values = pool();
    std::string doing = target.name + "(";
    CallArgs args;
    for (size_t i = 0; i < places.size(); ++i) {
      // The last values by name, where there are names for them.
      const bool named = places.size() - i <= keywords.size();
      const std::string* key = named ? &keywords[places.size() - i - 1] : nullptr;
      doing += (i ? ", " : "") + (key ? *key + "=" : "") + std::string(kPool[places[i]]);
      if (key)
        args.keywords.push_back({*key, values[places[i]], {}});
      else
        args.args.push_back(values[places[i]]);
    }
    doing += ")";
    doing.copy(g_doing, sizeof g_doing - 1);
    g_doing[std::min(doing.size(), sizeof g_doing - 1)] = 0;
    guarded([&] {
      const Value result = target.method ? target.method->call(in(), args) : in().call(target.function, args);
      if (result.missing()) return ADD_FAILURE() << doing << " gives a missing value";
      look_at(result);
      ++results_;
      // What went well is the best beginning for what nearly does.
      good_.emplace_back(places, std::vector<std::string>(keywords.begin(), keywords.end()));
      for (const Value& v : values)
        if (v.get<List>() || v.get<Dict>()) look_at(v);
    });
    ++calls_;
  }

  void attack(const Target& target) {
    // Two minutes for all calls of one target.
    alarm(120);
    // The same values each time, so that a failure comes again.
    std::mt19937 random(1);
    auto any = [&] { return random() % kPoolSize; };
    std::vector<size_t> receivers;
    if (target.method) {
      std::vector<Value> values = pool();
      for (size_t i = 0; i < kPoolSize; ++i)
        if (values[i].kind() == *target.method->receiver) receivers.push_back(i);
    }
    // Without anything, then every value alone and beside another.
    call(target, {});
    for (size_t v = 0; v < kPoolSize; ++v) {
      call(target, {v});
      // Methods need a receiver of their own kind to get past the first check.
      if (receivers.empty()) call(target, {v, any()});
      if (!receivers.empty()) call(target, {receivers[any() % receivers.size()], v});
      if (!receivers.empty()) call(target, {receivers[any() % receivers.size()], v, any()});
    }
    const std::vector<std::string> names = parameters(target);
    for (int i = 0; i < 120; ++i) {
      std::vector<size_t> places;
      std::vector<std::string> keywords;
      // Half of the calls vary one that went well.
      if (i % 2 && !good_.empty()) {  // what went well, but for one argument
        std::tie(places, keywords) = good_[random() % good_.size()];
        if (places.empty() || random() % 4 == 0)
          places.push_back(any());
        else
          places[random() % places.size()] = any();
      } else {
        if (!receivers.empty()) places.push_back(receivers[any() % receivers.size()]);
        for (size_t n = random() % 6; n > 0; --n) places.push_back(any());
        for (size_t n = random() % (places.size() + 1); n > 0 && !names.empty(); --n)
          keywords.push_back(names[random() % names.size()]);
        // A method's receiver cannot be named.
        if (!receivers.empty() && keywords.size() == places.size()) keywords.clear();
      }
      call(target, places, keywords);
    }
    good_.clear();
    alarm(0);
  }

  static std::vector<std::string> parameters(const Target& target) {
    const Native* native = target.method ? target.method : target.function.get<Native>();
    std::vector<std::string> names;
    std::string_view text = native ? native->def.signature : "";
    // Names of a signature: between commas, without stars and defaults.
    text = text.substr(std::min(text.size(), text.find('(') + 1));
    while (!text.empty()) {
      const size_t end = text.find_first_of(",)");
      std::string_view name = text.substr(0, std::min(end, text.find('=')));
      while (!name.empty() && (name[0] == ' ' || name[0] == '*')) name.remove_prefix(1);
      if (!name.empty()) names.emplace_back(name);
      text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    }
    return names;
  }

  /// All that a script can call, under the name by which it gets there.
  std::vector<std::string> target_names() {
    std::vector<std::string> out;
    std::set<const Object*> seen;
    std::function<void(const std::string&, const Value&, int)> walk = [&](const std::string& name, const Value& v,
                                                                          int depth) {
      Object* o = v.missing() ? nullptr : v.object();
      // Each object once, whatever names it has.
      if (!o || !seen.insert(o).second) return;
      const bool callable = v.get<Native>() || v.get<Opaque>() || v.get<BoundMethod>() ||
                            (v.get<TypeObject>() && v.get<TypeObject>()->of_kind);
      if (callable) out.push_back(name);
      if (depth == 0 || (!v.get<ModuleObject>() && !v.get<Opaque>() && !v.get<TypeObject>())) return;
      std::vector<std::string> names;
      o->attribute_names(names);
      std::sort(names.begin(), names.end());
      for (const std::string& n : names) {
        std::optional<Value> member;
        guarded([&] { member = in().find_attribute(v, n); });
        if (member) walk(name + "." + n, *member, depth - 1);
      }
    };
    for (const Globals::Slot& slot : in().globals().slots()) walk(slot.name, slot.builtin, 4);
    for (auto table : module_tables())
      for (const ModuleDef& d : table) walk(std::string(d.path), in().import_module(d.path), 4);
    return out;
  }

  Value find(const std::string& name) {
    const size_t dot = name.rfind('.');
    if (dot == std::string::npos) return in().globals().find(name)->builtin;
    if (Ref<ModuleObject> m = in().import_module(name)) return m;
    if (Ref<ModuleObject> m = in().import_module(name.substr(0, dot)))
      return in().find_attribute(m, name.substr(dot + 1)).value_or(Value());
    return in().find_attribute(find(name.substr(0, dot)), name.substr(dot + 1)).value_or(Value());
  }

  static constexpr int kSignals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGALRM};
  std::filesystem::path folder_, before_;
  std::unique_ptr<Session> session_;
  std::vector<std::pair<std::vector<size_t>, std::vector<std::string>>> good_;  // calls that gave something
  int calls_ = 0, results_ = 0;
};

bool is_left_out(const std::string& name) {
  return std::find(std::begin(kLeftOut), std::end(kLeftOut), name) != std::end(kLeftOut);
}

TEST_F(NativesTest, FunctionsTakeNothingForGranted) {
  const MemoryLimit limit;
  open();
  const std::vector<std::string> names = target_names();
  // Fewer would say that the walk has lost a module.
  EXPECT_GT(names.size(), 250u);
  for (const std::string& name : names) {
    if (is_left_out(name)) continue;
    open();
    const Value function = find(name);
    ASSERT_FALSE(function.missing()) << name;
    attack({name, nullptr, function});
  }
  // Calls that never succeed would test nothing but the checks.
  EXPECT_GT(calls_, 50000);
  EXPECT_GT(results_, 5000);
}

TEST_F(NativesTest, MethodsCheckTheirReceiver) {
  const MemoryLimit limit;
  open();
  size_t methods = 0;
  for (size_t k = 0; k < count_kinds(); ++k) {
    std::vector<std::string> names;
    in().method_names(static_cast<Kind>(k), names);
    std::sort(names.begin(), names.end());
    for (const std::string& name : names) {
      const std::string full = std::string(kind_name(static_cast<Kind>(k))) + "." + name;
      ++methods;
      if (is_left_out(full)) continue;
      open();
      attack({full, in().method(static_cast<Kind>(k), name), {}});
    }
  }
  EXPECT_GT(methods, 200u);
  EXPECT_GT(calls_, 50000);
  EXPECT_GT(results_, 5000);
}

}  // namespace
}  // namespace kiln::script
