#include "repl/session/session.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <thread>

#include "support/faults.h"
#include "tests/unit/open_device.h"

namespace kiln::script {
namespace {

class SessionTest : public ::testing::Test {
 protected:
  SessionTest() {
    Options options;
    options.output = [this](std::string_view s) { out += s; };
    options.error_output = [this](std::string_view s) { err += s; };
    options.argv = {"script.py", "a"};
    auto cpu = open_device("cpu");
    EXPECT_TRUE(cpu.ok());
    options.device = *cpu;
    session = std::make_unique<Session>(std::move(options));
  }
  void run(std::string text, Mode mode = Mode::kFile) {
    Status s = session->run(std::move(text), "t.py", mode);
    ASSERT_TRUE(s.ok()) << render(s.error());
  }

  std::string out, err;
  std::unique_ptr<Session> session;
};

TEST_F(SessionTest, PrintsWhereItIsTold) {
  run("import sys\n"
      "class Log:\n    def __init__(self): self.text = \"\"\n    def write(self, s): self.text += s\n"
      "log = Log()\nprint(1, 2, file=log, end=\"!\")\n"
      "print(3, file=sys.stderr, flush=True)\nsys.stderr.write(\"4\")\nprint(log.text, file=sys.stdout)\nprint(5, "
      "file=None)\n");
  EXPECT_EQ(out, "1 2!\n5\n");
  EXPECT_EQ(err, "3\n4");
  EXPECT_FALSE(session->run("print(1, file=3)", "t.py", Mode::kFile).ok());
}

TEST_F(SessionTest, AClassGoesWithItsLastName) {
  const Device cpu = *open_device("cpu");
  // Of the device and not of the process: a test of this binary may hold memory elsewhere.
  const int64_t before = cpu.memory().allocated;
  run("class A:\n    def f(self): return 1\n"
      "class B(A):\n    x = torch.zeros(1 << 16)\n    def f(self): return super().f()\n"
      "g = B.f\nprint(B().f(), g(B()))\n");
  EXPECT_EQ(out, "1 1\n");
  EXPECT_GE(cpu.memory().allocated, before + (4 << 16));
  run("del B");
  // Its methods refer to the class for super(), which must not keep it alive.
  EXPECT_EQ(cpu.memory().allocated, before) << "its methods do not keep it";
  Status without = session->run("g(A())", "t.py", Mode::kFile);
  ASSERT_FALSE(without.ok());
  // The class of super() is gone, as in Python when its cell is empty.
  EXPECT_EQ(without.error().message, "super() stands outside of a method");
}

TEST_F(SessionTest, AListOfAHugeRangeDoesNotTakeTheMachinesMemory) {
  for (const char* text : {"list(range(1 << 40))", "tuple(range(1 << 62))", "sorted(range(1 << 40))"}) {
    const Status huge = session->run(text, "t.py", Mode::kFile);
    ASSERT_FALSE(huge.ok()) << text;
    EXPECT_EQ(huge.error().kind, ErrorKind::kMemory) << text;
  }
}

TEST_F(SessionTest, KeepsVariablesBetweenEntries) {
  run("x = 3\ndef f(a): return a + x\n", Mode::kInteractive);
  run("x = 4", Mode::kInteractive);
  run("f(1)", Mode::kInteractive);
  EXPECT_EQ(out, "5\n");
  // What ran before the error stays, as at Python's prompt.
  EXPECT_FALSE(session->run("y = 1\nundefined\n", "t.py", Mode::kInteractive).ok());
  run("print(y, x)");
  EXPECT_EQ(out, "5\n1 4\n");
}

TEST_F(SessionTest, FlushedOutputHasLeft) {
  // A pipe in the place of stdout shows what has left the buffers of C.
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  std::fflush(stdout);
  const int before = dup(STDOUT_FILENO);
  dup2(ends[1], STDOUT_FILENO);
  // Reading must not wait where nothing was written.
  fcntl(ends[0], F_SETFL, O_NONBLOCK);
  Options options;
  options.output = [](std::string_view text) { std::fwrite(text.data(), 1, text.size(), stdout); };
  options.device = *open_device("cpu");
  std::string got[2];
  for (int i = 0; i < 2; ++i) {
    Session writer(options);
    const Status s = writer.run(
        i ? "import sys\nsys.stdout.write('two')\nsys.stdout.flush()\n" : "print('one', flush=True)", "t.py");
    char text[16];
    const ssize_t n = read(ends[0], text, sizeof text);
    if (s.ok() && n > 0) got[i].assign(text, static_cast<size_t>(n));
  }
  // Before the checks, whose texts would go into the pipe.
  dup2(before, STDOUT_FILENO);
  for (int fd : {ends[0], ends[1], before}) close(fd);
  EXPECT_EQ(got[0], "one\n");
  EXPECT_EQ(got[1], "two");
}

TEST_F(SessionTest, ErrorsCarryTheirKind) {
  for (auto [text, kind] : {std::pair("1 / 0", ErrorKind::kValue),
                            {"nope", ErrorKind::kName},
                            {"'a' + 1", ErrorKind::kType},
                            {"assert 0", ErrorKind::kMismatch},
                            {"x = ", ErrorKind::kSyntax},
                            {"import nope", ErrorKind::kName},
                            {"raise KeyError('k')", ErrorKind::kValue},
                            {"raise NotImplementedError", ErrorKind::kUnsupported}}) {
    Status s = session->run(text, "t.py");
    ASSERT_FALSE(s.ok()) << text;
    EXPECT_EQ(s.error().kind, kind) << text;
    EXPECT_EQ(s.error().place.file, "t.py") << text;
    EXPECT_EQ(s.error().place.line, 1) << text;
  }
}

TEST_F(SessionTest, PreparedExpressionsKeepTheirValue) {
  run("import torch\nx = torch.ones(4)\n");
  auto p = session->prepare_value("x + x");
  ASSERT_TRUE(p.ok());
  // Preparing runs nothing.
  EXPECT_TRUE(p->value->missing());
  ASSERT_TRUE(p->run().ok());
  auto tensor = session->tensor_of(*p->value);
  ASSERT_TRUE(tensor.ok() && *tensor);
  EXPECT_EQ((*tensor)->to_doubles().ok() ? (*(*tensor)->to_doubles())[3] : 0, 2);
  auto number = session->prepare_value("len(x)");
  ASSERT_TRUE(number.ok() && number->run().ok());
  EXPECT_EQ(*session->text_of(*number->value), "4");
  // A number is no tensor, and no error either.
  EXPECT_FALSE(*session->tensor_of(*number->value));
}

TEST_F(SessionTest, TellsWhatWasLaunched) {
  run("import torch, triton\nimport triton.language as tl\n"
      "@triton.jit\ndef twice(x, o, B: tl.constexpr):\n    i = tl.arange(0, B)\n"
      "    tl.store(o + i, tl.load(x + i) * 2)\n"
      "x = torch.ones(64)\no = torch.zeros(64)\n");
  auto p = session->prepare_value("twice[(1,)](x, o, B=64)");
  ASSERT_TRUE(p.ok());
  auto launches = session->launches_of(p->run);
  ASSERT_TRUE(launches.ok());
  ASSERT_EQ(launches->size(), 1u);
  EXPECT_EQ((*launches)[0].info.name, "twice");
  EXPECT_EQ((*launches)[0].tensors.size(), 2u);
  // A launch that is refused is the run's error, not an empty list.
  EXPECT_FALSE(session->launches_of([&] { return session->run("twice[(1,)](x)", "t.py"); }).ok());
  EXPECT_TRUE(session->launches_of([] { return Status{}; })->empty());
}

TEST_F(SessionTest, VariablesFromOutside) {
  auto items = session->items("range(3, 9, 3)");
  ASSERT_TRUE(items.ok());
  ASSERT_EQ(items->size(), 2u);
  session->set_variable("n", (*items)[1]);
  run("print(n + 1)");
  EXPECT_EQ(out, "7\n");
  // An empty value takes the variable away.
  session->set_variable("n", {});
  EXPECT_FALSE(session->run("n", "t.py").ok());
  EXPECT_TRUE(session->variable("n").missing());
  EXPECT_EQ(session->items("7").error().kind, ErrorKind::kType);
}

TEST_F(SessionTest, ExitStopsTheScript) {
  run("import sys\nprint(sys.argv)\nsys.exit(3)\nprint('never')\n");
  EXPECT_EQ(session->exit_code(), 3);
  EXPECT_EQ(out, "['script.py', 'a']\n");
}

TEST_F(SessionTest, SystemExitSaysHowItEnds) {
  struct {
    const char* text;
    int code;
    const char* said;
  } const kExits[] = {{"raise SystemExit(7)", 7, ""},
                      {"raise SystemExit()", 0, ""},
                      {"raise SystemExit", 0, ""},
                      {"raise SystemExit(None)", 0, ""},
                      // The low eight bits, as an exit status has them.
                      {"raise SystemExit(-1)", 255, ""},
                      {"raise SystemExit('no such file')", 1, "no such file\n"},
                      {"import sys\nsys.exit('gone')", 1, "gone\n"},
                      {"class Stop(SystemExit): pass\nraise Stop(4)", 4, ""}};
  for (const auto& e : kExits) {
    err.clear();
    run(e.text);
    EXPECT_EQ(session->exit_code(), e.code) << e.text;
    EXPECT_EQ(err, e.said) << e.text;
    EXPECT_EQ(out, "");
  }
}

TEST_F(SessionTest, AnExitThatIsCaughtIsNone) {
  run("import sys\ntry:\n    sys.exit(3)\nexcept SystemExit:\n    print('on')\n");
  EXPECT_FALSE(session->exit_code());
  EXPECT_EQ(out, "on\n");
}

TEST_F(SessionTest, ManyParametersAndArguments) {
  // What a generated program may have, and a script never.
  constexpr int kMany = 100'000;
  std::string parameters, positional, named;
  for (int i = 0; i < kMany; ++i) {
    parameters += fmt::format("a{}, ", i);
    positional += "1, ";
    named += fmt::format("a{}=1, ", i);
  }
  // In linear time: the program's own time limit is far below what a quadratic search would take.
  run("def f(" + parameters + "): return a" + std::to_string(kMany - 1) + "\nprint(f(" + positional + "), f(" + named +
      "), f(**{f'a{i}': 2 for i in range(100000)}))\n");
  EXPECT_EQ(out, "1 1 2\n");
  EXPECT_FALSE(session->run("f(" + named + "b=1)", "t.py").ok());
  EXPECT_FALSE(session->run("f(a3=1)", "t.py").ok());
}

// As under `ulimit -s unlimited`: calls end long before the memory does.
TEST_F(SessionTest, AStackWithoutALimitIsNotUsedUp) {
  pthread_attr_t attr;
  pthread_attr_init(&attr);
  // A gibibyte: far more than calls should ever take.
  ASSERT_EQ(pthread_attr_setstacksize(&attr, size_t{1} << 30), 0);
  pthread_t thread;
  auto recurse = [](void* of) -> void* {
    const Status s = static_cast<Session*>(of)->run(
        "depth = 0\ndef f():\n    global depth\n    depth += 1\n    f()\n"
        // Between what any program needs and what would fill the memory.
        "try:\n    f()\nexcept RecursionError:\n    print(100 < depth < 100000)\n",
        "t.py");
    EXPECT_TRUE(s.ok());
    return nullptr;
  };
  ASSERT_EQ(pthread_create(&thread, &attr, recurse, session.get()), 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attr);
  EXPECT_EQ(out, "True\n");
}

TEST_F(SessionTest, CanBeInterrupted) {
  for (const char* text :
       // In the interpreter, in a builtin, in a comprehension, in a generator that a builtin reads, in tensors'
       // numbers.
       {"while True: pass", "sum(range(10**12))", "[i for i in range(10**12)]", "any(x < 0 for x in range(1 << 62))",
        "import torch\nwhile True: torch.arange(5 * 10**8)", "import torch\nwhile True: torch.arange(5e8)"}) {
    std::thread other([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      session->interrupt();
    });
    Status s = session->run(text, "t.py");
    other.join();
    // The interrupt ends the text, which would not end by itself.
    ASSERT_FALSE(s.ok()) << text;
    EXPECT_EQ(s.error().kind, ErrorKind::kInterrupted) << text;
  }
  session->interrupt();
  // An interrupt that came between two texts is not the next one's.
  session->forget_interrupt();
  run("print('goes on')");
  EXPECT_EQ(out, "goes on\n");
}

// A kernel for each way to run for ever, or as good as.
constexpr const char* kEndlessKernels = R"(
import torch, triton, triton.language as tl
@triton.jit
def spin(x):
    while tl.load(x) >= 0:
        tl.store(x + 1, tl.load(x + 1) + 1)
@triton.jit
def lock(x):
    while tl.atomic_cas(x, 0, 1) != 5:
        pass
@triton.jit
def wait(x):
    while tl.load(x, volatile=True) == 0:
        pass
@triton.jit
def count(x, n):
    total = n
    for i in range(n):
        for k in range(1000):
            total += (i * k) ^ total
    tl.store(x, total.to(tl.int32))
@triton.jit
def tiles(x, n, B: tl.constexpr):
    for i in range(n):
        at = x + tl.arange(0, B)
        tl.store(at, tl.load(at) * 3)
@triton.jit
def empty(x):
    pass
@triton.jit
def tiny(x):
    tl.atomic_add(x, 1)
x = torch.zeros(1 << 12, dtype=torch.int32)
y = torch.arange(4)
)";

TEST_F(SessionTest, KernelsOnTheCpuCanBeStopped) {
  run(kEndlessKernels);
  for (const char* launch :
       {"spin[(1,)](x)", "spin[(64,)](x)", "lock[(2,)](x)", "wait[(8,)](x)", "count[(4,)](x, 1 << 40)",
        // An empty program and a tiny one: the check must not stand in the programs alone.
        "tiles[(3,)](x, 1 << 40, B=4096)", "empty[(2**31 - 1, 1000)](x)", "tiny[(2**31 - 1, 1000)](x)"}) {
    run("x = torch.zeros(1 << 12, dtype=torch.int32)\n");
    std::chrono::steady_clock::time_point pressed;
    std::thread other([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(300));
      pressed = std::chrono::steady_clock::now();
      session->interrupt();
    });
    Status s = session->run(launch, "t.py");
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - pressed;
    other.join();
    session->forget_interrupt();
    ASSERT_FALSE(s.ok()) << launch;
    EXPECT_EQ(s.error().kind, ErrorKind::kInterrupted) << render(s.error());
    // A tenth of a second is what a user takes for at once.
    EXPECT_LT(took.count(), 0.1) << launch;
    // The device and its threads go on.
    run("assert y.tolist() == [0, 1, 2, 3]\nz = (torch.zeros(1 << 20) + 1).sum()\nassert z == 1 << 20");
  }
}

TEST_F(SessionTest, AStoppedKernelIsAnExceptionOfItsStatement) {
  run(kEndlessKernels);
  std::thread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    session->interrupt();
  });
  run("try:\n    spin[(1,)](x)\nexcept KeyboardInterrupt as e:\n    print(e)\nempty[(100,)](x)\n");
  other.join();
  EXPECT_EQ(out, "kernel 'spin' was stopped; what it wrote is incomplete\n");
}

TEST_F(SessionTest, ALaunchMayHaveATimeout) {
  run(kEndlessKernels);
  const auto start = std::chrono::steady_clock::now();
  Status s = session->run("spin[(2,)](x, timeout=0.05)", "t.py");
  EXPECT_LT(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(), 5);
  // The whole launch, with its compilation, lies between the two.
  ASSERT_FALSE(s.ok());
  EXPECT_EQ(s.error().kind, ErrorKind::kLaunch);
  EXPECT_EQ(s.error().message, "kernel 'spin' was stopped after 0.05 s, its timeout; what it wrote is incomplete");
  run("empty[(100,)](x, timeout=10)\nempty[(100,)](x, timeout=None)");
  EXPECT_FALSE(session->run("empty[(1,)](x, timeout=-1)", "t.py").ok());
  EXPECT_FALSE(session->run("empty[(1,)](x, timeout='long')", "t.py").ok());
}

TEST_F(SessionTest, AWildAccessFailsItsStatement) {
  faults::install();
  run("import torch, triton, triton.language as tl\n"
      "@triton.jit\ndef wild(x, far, BLOCK: tl.constexpr):\n"
      "    i = far + tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)\n    tl.store(x + i, "
      "i.to(tl.float32))\n"
      "@triton.jit\ndef divide(x, y):\n    tl.store(x, tl.load(x) // tl.load(y))\n"
      "x = torch.zeros(64)\ny = torch.arange(4)\n");
  // Three times, since the handler of a fault must be in place again after each.
  for (int turn = 0; turn < 3; ++turn) {
    Status s = session->run("wild[(100,)](x, 1 << 46, BLOCK=64)", "t.py");
    ASSERT_FALSE(s.ok());
    EXPECT_EQ(s.error().kind, ErrorKind::kLaunch);
    EXPECT_TRUE(s.error().message.starts_with("kernel 'wild' ")) << s.error().message;
    ASSERT_EQ(s.error().notes.size(), 2u);
    const Place& place = s.error().notes[0].place;
    EXPECT_EQ(place.file, "t.py");
    // The line of the store within the script.
    EXPECT_EQ(place.line, 5);
    EXPECT_EQ(place.text, "    tl.store(x + i, i.to(tl.float32))");
    EXPECT_NE(s.error().notes[1].message.find("check=True"), std::string::npos);
    run("assert y.tolist() == [0, 1, 2, 3]\nz = (torch.zeros(1 << 20) + 1).sum()\nassert z == 1 << 20");
  }
}

TEST_F(SessionTest, AFaultNamesItsStatement) {
  faults::install();
  run("import torch, triton, triton.language as tl\n"
      "@triton.jit\ndef put(at, value, mask):\n    tl.store(at, value, mask=mask)\n"
      "@triton.jit\ndef wild(x, y, far, WHERE: tl.constexpr):\n"
      "    i = tl.arange(0, 64)\n    v = tl.load(x + i)\n"
      "    if WHERE == 'gather':\n"
      "        for j in range(2):\n"
      "            v += tl.load(x + i * 5 + far + j)\n"
      "    elif WHERE == 'helper':\n        put(y + i + far, v, i > 3)\n"
      "    elif WHERE == 'scalar':\n        v += tl.load(x + far)\n"
      "    elif WHERE == 'atomic':\n        tl.atomic_add(y + i + far, v)\n"
      "    tl.store(y + i, v)\n"
      "x = torch.zeros(64)\n");
  // Lines of the script above: within a loop, in a function that was inlined, of one element, and of an atomic.
  const std::pair<const char*, int> cases[] = {{"gather", 11}, {"helper", 4}, {"scalar", 15}, {"atomic", 17}};
  for (const auto& [where, line] : cases) {
    // 46 bits: far outside of what the process has mapped, and a canonical address all the same.
    Status s = session->run(std::string("wild[(3,)](x, x, 1 << 46, WHERE='") + where + "')", "t.py");
    ASSERT_FALSE(s.ok());
    ASSERT_FALSE(s.error().notes.empty());
    EXPECT_EQ(s.error().notes[0].place.line, line) << where << "\n" << render(s.error());
  }
}

TEST_F(SessionTest, AnAccessThroughNullIsAFaultToo) {
  faults::install();
  // The optimizer sees that the pointer is null, and may not take the access for one that never happens.
  run("import torch, triton, triton.language as tl\n"
      "@triton.jit\ndef null(o, WHERE: tl.constexpr):\n"
      "    v = tl.load(o)\n"
      "    p = tl.cast(v * 0, tl.int64).to(tl.pointer_type(tl.int32))\n"
      "    if WHERE == 'store':\n        tl.store(p, 1)\n"
      "    elif WHERE == 'load':\n        v += tl.load(p)\n"
      "    elif WHERE == 'tile':\n        tl.store(p + tl.arange(0, 64), 1)\n"
      "    elif WHERE == 'later':\n        v += tl.load(p + 3)\n"
      "    elif WHERE == 'atomic':\n        tl.atomic_add(p, 1)\n"
      "    elif v == 0:\n        tl.store(p, 1)\n"
      "    tl.store(o + 1, v + 7)\n"
      "o = torch.zeros(8, dtype=torch.int32)\n");
  const std::pair<const char*, int> cases[] = {{"store", 7},  {"load", 9},    {"tile", 11},
                                               {"later", 13}, {"atomic", 15}, {"branch", 17}};
  for (const auto& [where, line] : cases) {
    // Each access must be made where the script has it, or the fault would be another line's.
    Status s = session->run(std::string("null[(1,)](o, WHERE='") + where + "')", "t.py");
    ASSERT_FALSE(s.ok()) << where;
    ASSERT_FALSE(s.error().notes.empty());
    EXPECT_EQ(s.error().notes[0].place.line, line) << where << "\n" << render(s.error());
  }
  // Without the access the same kernel runs on: nothing of the fault stays.
  run("o[0] = 1\nnull[(1,)](o, WHERE='branch')\nassert o[1] == 8");
}

TEST_F(SessionTest, AResultThatNobodyReadsIsTimedToo) {
  run("import time\nx = torch.rand(1 << 22)\n"
      "def f(): return (x * 2 + 1).exp().sin().sum()\n"
      "f().item()\n"  // compiled
      "def timed(work):\n"
      "    start = time.perf_counter()\n    for _ in range(5): work()\n    return time.perf_counter() - start\n"
      // What nobody reads is still timed: a fraction would say that it was dropped.
      "read, dropped = timed(lambda: f().item()), timed(f)\nassert dropped > read / 4, (read, dropped)\n"
      "start = time.time()\ny = x * 3\nz = y + 1\ndel y\nassert z[0] == x[0] * 3 + 1\n"
      "w = torch.ones(1 << 20)\nw + 1\nw.fill_(5)\nassert time.time() >= start\n");
}

TEST_F(SessionTest, OneOfTwoResultsIsNotComputedForTheOther) {
  run("import time, torch\nfrom torch.profiler import profile\nx = torch.rand(512, 64)\nstart = time.time()\n"
      "with profile() as p:\n    y = (x.max(1).values + 1).sum().item()\n"
      "assert 'max_add_kernel' in str(p) and 'argmax' not in str(p), str(p)\n"
      "with profile() as p:\n    y = (x.max(1)[1] + 1).sum().item()\n"
      "assert ' max_' not in str(p) and 'argmax_add_kernel' in str(p), str(p)\n"
      "with profile() as p:\n    x.min(1)\n    torch.cuda.synchronize()\n"
      "assert 'argmin_kernel' in str(p), str(p)\n");
}

TEST_F(SessionTest, ContainersThatHoldThemselvesAreShownOnce) {
  run("a = [1]\na.append(a)\na.append(a)\nd = {}\nd['a'] = d\nd['b'] = (d, a)\nprint(a, d)\n"
      "b = []\nprint([b, b])\n");
  EXPECT_EQ(out, "[1, [...], [...]] {'a': {...}, 'b': ({...}, [1, [...], [...]])}\n[[], []]\n");
}

TEST_F(SessionTest, ExitNeedsNoImport) {
  run("exit(4)\nprint('never')\n");
  EXPECT_EQ(session->exit_code(), 4);
  EXPECT_EQ(out, "");
}

TEST_F(SessionTest, PreparesExpressions) {
  run("n = 0\ndef inc():\n    global n\n    n += 1\n");
  auto call = session->prepare("inc()");
  // Five runs of what was parsed once.
  ASSERT_TRUE(call.ok());
  for (int i = 0; i < 5; ++i) ASSERT_TRUE((*call)().ok());
  EXPECT_EQ(*session->evaluate("n"), "5");
  // A statement has no value to prepare.
  EXPECT_FALSE(session->prepare("n = 1").ok());
  EXPECT_FALSE(session->evaluate("nope").ok());
}

TEST_F(SessionTest, CompletesNamesAndAttributes) {
  run("import math\nlong_name = 'text'\n");
  EXPECT_EQ(session->complete("long_n"), std::vector<std::string>{"long_name"});
  EXPECT_EQ(session->complete("math.sq"), std::vector<std::string>{"math.sqrt"});
  EXPECT_EQ(session->complete("long_name.uppe"), std::vector<std::string>{"long_name.upper"});
  EXPECT_EQ(session->complete("tl.aran"), std::vector<std::string>{"tl.arange"});
  // A name that is unknown has no attributes, and completion is no place for an error.
  EXPECT_TRUE(session->complete("nope.x").empty());
  EXPECT_FALSE(session->complete("torch.rand").empty());
}

TEST_F(SessionTest, AskingForAnExpressionLeavesTheModeAsItWas) {
  run("import torch\ntorch._kiln.stay_lazy(True)\nx = torch.ones(2)\n");
  ASSERT_TRUE(session->expression("x + 1").ok());
  run("print((x + 2).is_lazy())\ntorch._kiln.stay_lazy(False)\n");
  ASSERT_TRUE(session->expression("x + 1").ok());
  run("print((x + 2).is_lazy())\n");
  EXPECT_EQ(out, "True\nFalse\n");
}

TEST_F(SessionTest, ListsVariables) {
  run("import torch\nx = torch.ones(2, 3)\nn = 5\ns = 'a' * 200\n@triton.jit\ndef k(p, N: tl.constexpr): pass\n");
  std::vector<Variable> v = session->variables();
  ASSERT_EQ(v.size(), 4u);
  EXPECT_EQ(v[0].name, "x");
  EXPECT_EQ(v[0].summary, "f32[2, 3] cpu");
  EXPECT_EQ(v[1].summary, "5");
  // Long values are cut, so that a list of variables stays one line for each.
  EXPECT_LE(v[2].summary.size(), 70u);
  EXPECT_EQ(v[3].summary, "k(p, N: tl.constexpr)");
  // By whole characters, and by the cells that they take.
  run("e = 'é' * 200\nw = '核' * 200\n");
  v = session->variables();
  std::string e = "'", w = "'";
  for (int i = 0; i < 58; ++i) e += "é";
  for (int i = 0; i < 29; ++i) w += "核";
  EXPECT_EQ(v[4].summary, e + "…");
  EXPECT_EQ(v[5].summary, w + "…");
  EXPECT_EQ(session->tensor("x")->numel(), 6);
  EXPECT_EQ(session->kernel("k")->name(), "k");
  EXPECT_EQ(session->kernel("n").error().kind, ErrorKind::kType);
  EXPECT_EQ(*session->source_of("k"), "@triton.jit\ndef k(p, N: tl.constexpr): pass");
  EXPECT_TRUE(session->describe("torch.randn").ok());
  EXPECT_FALSE(session->describe("nope").ok());
}

TEST_F(SessionTest, KernelsOutliveTheSession) {
  run("@triton.jit\ndef k(p): tl.store(p, 3)\n");
  auto kernel = session->kernel("k");
  ASSERT_TRUE(kernel.ok());
  // A kernel keeps its function and what that refers to.
  session.reset();
  auto cpu = open_device("cpu");
  int64_t shape[] = {1};
  auto t = Tensor::zeros(*cpu, DType::kF32, shape);
  ASSERT_TRUE(t.ok());
  std::optional<Arg> args[] = {Arg(*t)};
  // The module tl is gone with the session: an error, not a crash.
  EXPECT_FALSE(kernel->launch({1, 1, 1}, args).ok());
}

}  // namespace
}  // namespace kiln::script
