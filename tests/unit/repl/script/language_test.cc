// The language alone (this program links no tensors, no devices and no modules), what it tells its host, and what a
// host adds.
#include <gtest/gtest.h>

#include "compiler/parse/parser.h"
#include "repl/script/builtins/builtins.h"
#include "repl/script/interp/interp.h"
#include "support/trace.h"

namespace kiln::script {
namespace {

/// Runs a text in an interpreter with this host and gives what it printed.
class Language : public ::testing::Test {
 protected:
  void start(std::unique_ptr<Host> host) {
    in_ = std::make_unique<Interp>(std::move(host));
    in_->output = [this](std::string_view text) { printed_ += text; };
  }
  std::string run(const std::string& text, bool interactive = false) {
    if (!in_) start(std::make_unique<Host>());
    printed_.clear();
    auto module = parse::parse_module(SourceText::make("test.py", text));
    if (!module.ok()) return module.error().message;
    auto program = resolve(std::move(*module), in_->globals());
    if (!program.ok()) return program.error().message;
    try {
      in_->run(*program, interactive ? Shown::kLast : Shown::kNothing);
    } catch (const ScriptError& e) {
      return e.diagnostic.message;
    }
    return printed_;
  }

  std::unique_ptr<Interp> in_;
  std::string printed_;
};

TEST_F(Language, RunsWithoutAHost) {
  EXPECT_EQ(run("class A:\n  def __init__(self, n): self.n = n\n"
                "print(sorted({A(i).n ** 2 for i in range(4)}), f'{1 / 3:.2f}')\n"),
            "[0, 1, 4, 9] 0.33\n");
  EXPECT_EQ(run("try:\n  [][1]\nexcept IndexError as e:\n  print(type(e).__name__)\n"), "IndexError\n");
}

TEST_F(Language, KnowsNoModulesOfItsOwn) {
  for (const char* name : {"torch", "triton", "math", "os", "time"})
    EXPECT_NE(run(std::string("import ") + name), "") << name;
  for (const char* name : {"torch", "tl", "randn", "exit"}) EXPECT_NE(run(std::string(name)), "") << name;
}

struct Count {
  explicit Count(Interp&) {}
  int64_t calls = 0;
};

Value next_count(Interp& in, NativeArgs&) { return Value::integer(++in.state<Count>().calls); }
constexpr NativeDef kCounterFunctions[] = {{"next()", next_count, "counts its calls"}};
void fill_counter(Interp& in, ModuleObject& m) {
  m.members.set("inner", Value(in.import_module("counter.inner")));
  add_functions(m, kCounterFunctions);
}
void fill_inner(Interp&, ModuleObject& m) { m.members.set("answer", Value::integer(42)); }
constexpr ModuleDef kCounterModules[] = {{"counter", fill_counter}, {"counter.inner", fill_inner}};

Ref<ModuleObject> find_made(std::string_view path) {
  if (path != "made") return {};
  auto m = make<ModuleObject>(std::string(path));
  m->members.set("where", Value::str("by the finder"));
  return m;
}

TEST_F(Language, ImportsWhatTheHostAdds) {
  start(std::make_unique<Host>());
  in_->add_modules(kCounterModules);
  in_->set_module_finder(find_made);
  EXPECT_EQ(run("import counter\ncounter.next()\nprint(counter.next(), counter.inner.answer)"), "2 42\n");
  EXPECT_EQ(run("import made\nprint(made.where)"), "by the finder\n");
  // What a module keeps belongs to one interpreter.
  Interp other;
  EXPECT_EQ(other.state<Count>().calls, 0);
  EXPECT_EQ(in_->state<Count>().calls, 2);
}

TEST_F(Language, ATupleOfAClassPrintsItsName) {
  start(std::make_unique<Host>());
  in_->add_builtin("p", make<Tuple>(std::vector<Value>{Value::integer(1), Value::integer(2)}, "Point"));
  EXPECT_EQ(run("print(p, p[:1], tuple(p), p == (1, 2), p + (3,))"),
            "Point([1, 2]) Point([1]) (1, 2) True Point([1, 2, 3])\n");
}

struct Told {
  std::string text;
};
class Listener : public Host {
 public:
  explicit Listener(Told& told) : told_(told) {}
  void begin(Interp&) override { told_.text += "begin;"; }
  void assigned(Interp& in, std::string_view name, const Value& v) override {
    told_.text += std::string(name) + "=" + in.repr(v) + ";";
  }
  Value traced(Interp& in, const Native& native, NativeArgs& args) override {
    told_.text += native.name + "();";
    return native.run(in, args);
  }

 private:
  Told& told_;
};

TEST_F(Language, TellsItsHost) {
  Told told;
  start(std::make_unique<Listener>(told));
  run("a = 3");
  EXPECT_EQ(told.text, "begin;");
  told.text.clear();
  run("a = b = abs(-3)", true);
  EXPECT_EQ(told.text, "begin;b=3;");
  told.text.clear();
  ASSERT_TRUE(trace::start(trace::kSpans));
  EXPECT_EQ(run("print(abs(-3))"), "3\n");
  trace::stop();
  EXPECT_EQ(told.text, "begin;abs();print();");
}

int scopes = 0;
std::shared_ptr<void> count_scope(Interp&) {
  return {++scopes ? &scopes : nullptr, [](int*) { --scopes; }};
}
Value scopes_now(Interp&, NativeArgs&) { return Value::integer(scopes); }
Value with_scope(Interp&, NativeArgs& a) { return make<Tuple>(std::vector<Value>{a[0], Value::integer(scopes)}); }
constexpr NativeDef kScopeFunctions[] = {
    {"scopes()", scopes_now, "how many live"},
    {"scoped(value)", with_scope, "its value and how many live when it is called", count_scope},
};

TEST_F(Language, AScopeLivesWhileArgumentsAreEvaluated) {
  start(std::make_unique<Host>());
  in_->add_builtins(kScopeFunctions);
  EXPECT_EQ(run("print(scopes(), scoped(scopes()), scopes())"), "0 (1, 0) 0\n");
  run("scoped(1 / 0)");
  EXPECT_EQ(scopes, 0);
}

}  // namespace
}  // namespace kiln::script
