// A script session: one set of global variables, fed with texts. What the prompt, `kiln run` and embedders of the
// script language use; nothing else of this folder needs to be included.
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kiln/expr.h"
#include "kiln/kernel.h"
#include "kiln/result.h"
#include "kiln/runtime.h"
#include "kiln/tensor.h"
#include "profiler/report/table.h"
#include "repl/modules/triton/access_checks.h"
#include "repl/script/value/value.h"

namespace kiln::script {

class Interp;

enum class Mode {
  kFile,         // a whole program: only print() shows anything
  kInteractive,  // an entry at the prompt: what its last statement gives is shown, unless it is None
  kLeading,      // code of an entry that has more behind it
};

struct Options {
  /// Where print() and shown values go; null: stdout.
  std::function<void(std::string_view)> output;
  /// Where sys.stderr goes; null: stderr.
  std::function<void(std::string_view)> error_output = {};
  /// sys.argv.
  std::vector<std::string> argv;
  /// Where tensors are made; empty: the default device, when the first one is needed.
  Device device;
};

struct Variable {
  std::string name;
  std::string type;     // "int", "torch.Tensor", "JITFunction"
  std::string summary;  // one line: a value's repr, "f32[4096, 4096] cuda:0", a kernel's parameters
};

/// An expression to run again and again, and what came of it.
struct Prepared {
  /// Evaluates it; a tensor that comes out is computed. Valid while the session lives.
  std::function<Status()> run;
  /// What the last run gave; missing before.
  std::shared_ptr<const Value> value;
};

/// A kernel as it was launched, with the tensors among its arguments.
struct Launched {
  KernelInfo info;
  std::vector<Tensor> tensors;
};

class Session {
 public:
  explicit Session(Options options = {});
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  /// Parses and runs a text. An error carries the script's line and the call stack as notes; variables that were set
  /// before it stay. After a SystemExit the result is success and exit_code() is set.
  Status run(std::string text, std::string file_name, Mode mode = Mode::kFile);

  /// Parses one expression once, so that it can be run again and again (%bench, %time): each call evaluates it.
  Result<std::function<Status()>> prepare(std::string expression, std::string file_name = "<expression>");
  Result<Prepared> prepare_value(std::string expression, std::string file_name = "<expression>");
  /// The same for one or more statements. Tensors that they leave pending are computed at their end.
  Result<std::function<Status()>> prepare_statements(std::string text, std::string file_name);
  /// Runs it and tells which kernels of the script were launched meanwhile.
  Result<std::vector<Launched>> launches_of(const std::function<Status()>& run);
  /// Runs it with the accesses of its launches checked: the first that reaches outside of its tensor is the error, and
  /// is not done.
  Result<AccessLog> checked(const std::function<Status()>& run, AccessChecks checks);
  /// So does everything from here on.
  void check_accesses(AccessChecks checks);
  /// On the CPU the first launch of each form (LaunchState::checks_first).
  void check_first_launches();
  bool checks_accesses() const;
  /// The tensor that a value is, computed when it was not; nullopt when it is none.
  Result<std::optional<Tensor>> tensor_of(const Value& value);
  /// The items of an expression's value: of a list, a tuple, a range…
  Result<std::vector<Value>> items(std::string expression);
  /// str(value).
  Result<std::string> text_of(const Value& value);
  Result<std::string> repr_of(const Value& value);
  /// A value as JSON, with repr() of what JSON has not; of a table as --json has it.
  Result<std::string> json_of(const Value& value);
  /// A global variable; missing when it is not set, and setting the missing value deletes it.
  Value variable(std::string_view name) const;
  void set_variable(std::string_view name, Value value);
  /// What the entry of that number gives from here on is `_`, `_N` and Out[N]; 0: `_` alone.
  /// `text` becomes In[N].
  void begin_entry(int number, std::string_view text);
  /// The same for the value of a command.
  void keep_result(const Value& v);
  /// Gets how far a command is, and "" when it has ended; null: a terminal that stderr is shows it.
  std::function<void(std::string_view)> on_progress = {};
  /// How tables are shown: repl/modules/results/results.h.
  void show_tables_by(std::function<std::string(const report::Table&, bool colored)> text,
                      std::function<int()> columns);
  void show_results_by(std::function<void(std::string_view text)> show);
  /// Checks what stands before the '=' of an assignment: "r", "a.b", "x, y".
  Status check_target(const std::string& target);
  /// `target = value`
  Status assign(const std::string& target, const Value& value);
  Result<Value> value(std::string expression);
  /// The repr of an expression's value.
  Result<std::string> evaluate(std::string expression);
  /// The value of an expression as the type that a magic needs; kType names its actual type.
  Result<Kernel> kernel(std::string expression);
  Result<Tensor> tensor(std::string expression);
  /// The tensor expression that a text gives, however small, not computed. Variables in the text are computed first:
  /// they are its inputs; but when the text is just the name of a variable that is pending, the expression is what it
  /// stands for. nullopt when the text gives no tensor or one that it computed itself; kValue for the name of one that
  /// is computed already.
  Result<std::optional<Expr>> expression(std::string text);
  /// The same of a text that may give several tensors, in a tuple, list or dict, of which those that are computed
  /// already are left out. Empty where expression() gives none.
  Result<std::vector<Expr>> expressions(std::string text);
  struct ToPlan {
    std::vector<Expr> exprs;
    std::vector<ExprName> names;
  };
  /// The same for what is planned and not run: variables in it that are pending are inputs, and stay pending.
  Result<ToPlan> expressions_to_plan(const std::string& text);
  /// The variables that are computed tensors, for names in plans and sources.
  std::vector<ExprName> tensor_names() const;

  /// What a word may become: names, and after a dot attributes ("torch.ra" → "torch.rand", …). Evaluates
  /// names and attributes of modules and values only, never calls.
  std::vector<std::string> complete(std::string_view word) const;
  /// Whether it names a kernel, and whether a function that only kernels call.
  bool is_kernel(std::string_view path) const;
  bool is_of_kernels(std::string_view path) const;
  /// What an import could name: modules ("torch.n" → torch.nn), and names of one. Runs nothing of the user's.
  std::vector<std::string> modules(std::string_view typed) const;
  std::vector<std::string> names_of_module(std::string_view path) const;
  struct Parameter {
    std::string name;
    bool by_position = true, by_name = true;
    std::string initial = {};  // its default, as it is written; empty: none
  };
  /// The parameters of a call of it, in their order, without those that collect the rest; of "a.b" and its like, which
  /// runs nothing of a script. Empty when there is no such name or it takes none.
  std::vector<Parameter> parameters(std::string_view path) const;
  /// What an argument of such a call may be, as code: the words of a closed set, both bools, or the default and what
  /// the last launch gave.
  std::vector<std::string> argument_values(std::string_view path, std::string_view parameter) const;
  struct Key {
    std::string text;  // of a string as it is, of others as code
    bool is_string = false;
  };
  /// The keys of a dict or table: strings, numbers and None. The path may have indices that are literals: d['a'][0].
  std::vector<Key> keys(std::string_view path) const;
  /// Whether it names a tensor that is not pending.
  bool computed_tensor(std::string_view path) const;
  /// The kernels among the variables.
  std::vector<std::string> kernel_names() const;
  /// The text of the last `name[…](…)` that stood in a text outside of functions, whether or not it was reached.
  std::optional<std::string> last_launch(std::string_view name) const;
  /// Names that were set by the script, in order of first use, without modules that it imported.
  std::vector<Variable> variables() const;
  /// What a value is, over several lines, for `name?`: of a function or kernel its form, docstring and place, of a
  /// tensor its shape and memory. An expression is evaluated.
  Result<std::string> describe(std::string expression) const;
  /// One line about a name or attribute, for completion: like describe, but of values that a script's own code would
  /// have to show, or that hold such values, the type alone. Empty when there is no such name.
  std::string preview(std::string_view expression) const;
  /// The source of a function, kernel or class that a script defined, or of an instance's class, for `name??`. kName:
  /// there is no such name; kType: it has no source.
  Result<std::string> source_of(std::string expression) const;

  /// From a signal handler or another thread: the running script stops at its next loop turn or call with kInterrupted.
  void interrupt();
  /// The same for a script that has caught an interrupt: this one stays until forget_interrupt(), so that what catches
  /// it does not run on. `finally` and `__exit__` still run.
  void stop_statement();
  bool is_stopped() const;
  /// Takes back an interrupt that no script has met yet.
  void forget_interrupt();
  bool is_interrupted() const;
  /// True from the next interrupt on, also when a script has met and caught it. For what runs a statement many times:
  /// the end of one run does not say that the next may begin.
  std::function<bool()> interrupt_watch() const;

  Result<Device> device();
  void set_device(Device device);
  /// What its devices are opened of; its own where none is set before the first is needed.
  Runtime runtime();
  void set_runtime(Runtime runtime);
  /// What sys.exit() or a SystemExit asked for.
  std::optional<int> exit_code() const;
  /// The same, and the session goes on.
  std::optional<int> take_exit_code();
  /// sys.argv from now on; gives what it was.
  std::vector<std::string> set_arguments(std::vector<std::string> arguments);

  Interp& interp() { return *interp_; }

 private:
  std::unique_ptr<Interp> interp_;
  std::atomic<uint64_t> interrupts_{0};  // how many came
  std::map<std::string, std::string, std::less<>> launches_;
};

}  // namespace kiln::script
