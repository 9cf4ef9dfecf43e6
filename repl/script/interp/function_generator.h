// Generators: functions that yield. A generator's statements run one after another on a stack of its own blocks, so
// that it can stop at a yield and go on later; statements without a yield run as in other functions.
#pragma once
#include <memory>
#include <optional>
#include <vector>

#include "repl/script/interp/interp.h"

namespace kiln::script {

class FunctionGenerator : public IteratorObject {
 public:
  FunctionGenerator(Interp& in, const Function& function);
  ~FunctionGenerator() override;
  Frame& frame() { return frame_; }
  bool is_generator() const override { return true; }
  bool next(Interp& in, Value& out) override { return resume(in, Value::none(), nullptr, out); }
  /// Goes on with `sent` as the value of the yield at which it stands, or with an exception raised there.
  bool resume(Interp& in, const Value& sent, const ScriptError* thrown, Value& out);
  /// Runs what its `finally` and `with` still have to do.
  void close(Interp& in);
  /// Of its `return`, once it has ended.
  const Value& result() const { return result_; }
  std::string repr(Interp&) override;

 private:
  enum class Form : uint8_t { kBlock, kFor, kWhile, kWith, kTry, kElse, kHandler, kFinally, kDelegate };
  /// An open block: of its statements, those before `at` are done.
  struct Block {
    Form form;
    const ast::Body* body;
    size_t at = 0;
    const ast::Stmt* stmt = nullptr;  // that it belongs to
    Ref<IteratorObject> items = {};   // of a for, of a yield from
    std::vector<Value> exits = {};    // of a with
    // What a finally goes on with.
    Flow flow = Flow::kNormal;
    std::optional<ScriptError> error = {};
    Value result = {};
  };
  enum class Step : uint8_t { kGoOn, kYielded, kEnded };

  Step go_on(Interp& in, const Value& sent, const ScriptError* thrown, Value& out);
  Step advance(Interp& in, Value& out);
  Step start(Interp& in, const ast::Stmt& s, Value& out);
  Step yield(Interp& in, const ast::Stmt& s, const ast::Yield& y, Value& out);
  Step delegate(Interp& in, const Value& sent, const ScriptError* thrown, Value& out);
  /// A yield has its value: what its statement does with it.
  Flow complete(Interp& in, const ast::Stmt& s, Value v);
  /// The last statement of the innermost block is done.
  void end_block(Interp& in);
  /// An exception, or a break, continue or return, leaves blocks until one takes it. True: the function has ended.
  void unwind(Interp& in, ScriptError error);
  void leave_handler(Interp& in, const Block& b);
  void leave(Interp& in, Flow flow);
  void push(Form form, const ast::Body& body, const ast::Stmt& s, bool enter = true);
  bool has_finally(const Block& b) const;

  const Ref<Function> function_;
  const std::weak_ptr<Interp*> interp_;
  Frame frame_;
  std::vector<Block> blocks_;      // innermost last
  std::vector<Value> handled_;     // the exceptions whose handlers it stands in
  const ast::Stmt* at_ = nullptr;  // the statement whose yield it stands at
  Value augmented_;                // the target's old value, of `x += yield`
  Value result_ = Value::none();
  size_t depth_ = 0;  // of the interpreter's calls while it runs
  bool started_ = false, running_ = false;
};

/// What left a generator, thrown again. As PEP 479 has it, a StopIteration is a RuntimeError: it would end the caller's
/// loop in silence.
[[noreturn]] void throw_out_of_generator(Interp& in, const ScriptError& e);
/// Raises the StopIteration of an iterator that has ended.
[[noreturn]] void stop_iteration(Interp& in, const Value& result);
/// send(), throw(), close().
void install_iterator_methods(Interp& in);

}  // namespace kiln::script
