// Contenders for a comparison, made from what a session can evaluate.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "profiler/compare/compare.h"
#include "profiler/compare/contender.h"
#include "repl/magics/magic_arguments.h"
#include "repl/session/session.h"

namespace kiln::repl {

/// A set of contenders with what only their maker knows.
struct ContenderSet {
  std::vector<profiler::Contender> contenders;
  size_t baseline = 0;
  /// As in ContestOptions; empty: results are compared with the baseline's.
  std::function<Result<profiler::ResultCheck>(size_t i, const Tensor& result)> check = {};
  std::string reference = "float64";
};

/// Makes the variants of one expression; nullopt when it has none (a launch, a number). Set by the shell.
using ExpandVariants =
    std::function<Result<std::optional<ContenderSet>>(script::Session& session, const std::string& expression)>;

/// What the options out=, bytes=, flop= and dtype= declare of statements.
struct Declared {
  std::vector<std::string> outputs;  // tensors that a launch writes whole
  double bytes = -1, flop = -1;
  std::optional<DType> product;
};
Result<Declared> declared_by(script::Session& session, const MagicArguments& arguments);

/// An expression of the script: a launch, or something that gives a tensor or a function to call. It is run twice: to
/// compile it, with the accesses of its launches checked, and to see what it launches. What goes wrong is the
/// contender's problem; kSyntax and kInterrupted are errors.
Result<profiler::Contender> statement_contender(script::Session& session, const std::string& text,
                                                const Declared& declared);

/// Session::prepare_statements, where a kernel's name stands for its last launch, and a pending tensor's for its
/// expression, computed anew by each run. kValue for a kernel that was not launched yet and a tensor that is computed.
/// `label` takes the place of a file's name.
Result<std::function<Status()>> statement_runner(script::Session& session, std::string statement,
                                                 const std::string& label);

/// What the expressions of a command stand for: several statements, or one expression's variants; one contender when it
/// has none.
Result<ContenderSet> make_contenders(script::Session& session, const ExpandVariants& variants,
                                     const MagicArguments& arguments);
/// From tol=, cache=, budget= and pairs=; shows its progress on a terminal. When to stop is the caller's.
Result<profiler::ContestOptions> contest_options(script::Session& session, const MagicArguments& arguments);

/// A line on the terminal that the next one replaces, cut to its width; empty: none. Nothing where stderr is none.
void show_progress(std::string_view what);
/// The same where the session has nobody who shows it otherwise.
void tell_progress(const script::Session& session, std::string_view what);
/// Whether anybody sees it.
bool shows_progress(const script::Session& session);

/// Names that differ where the texts differ: "…BLOCK=256…" of long launches; short texts stay as they are.
std::vector<std::string> short_names(const std::vector<std::string>& texts);

/// A number from an expression of the session: "3*n*4".
Result<double> number_of(script::Session& session, const std::string& text, std::string_view what);
/// The same, where it cannot be below 0, nor infinite.
Result<double> amount_of(script::Session& session, const std::string& text, std::string_view what);
/// Seconds from "10", "10s" or "500ms".
Result<double> seconds_of(const std::string& text);

}  // namespace kiln::repl
