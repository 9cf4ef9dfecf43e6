// The points of a sweep, numbered: the last axis runs fastest. What %sweep and `kiln sweep` measure.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "profiler/compare/sweep.h"
#include "repl/magics/magic_arguments.h"
#include "repl/magics/magics.h"

namespace kiln::repl {

struct SweepAxis {
  std::string name;
  std::vector<script::Value> values;
  std::vector<std::string> texts;
  script::Value before;  // what the variable was
};

/// Sets the variables of the axes while it lives; then they are what they were.
class SweepPoints {
 public:
  /// `arguments` are those of %sweep. kValue: there is no axis, an empty one, or too many points.
  static Result<SweepPoints> make(MagicContext& context, MagicArguments arguments);
  SweepPoints(SweepPoints&& other) noexcept = default;
  SweepPoints& operator=(SweepPoints&&) = delete;
  ~SweepPoints();

  size_t size() const;
  const std::vector<SweepAxis>& axes() const { return axes_; }
  /// Of each axis, which of its values the point has; and that value as a text.
  std::vector<size_t> index(size_t number) const;
  std::vector<std::string> texts(size_t number) const;

  /// A cell per contender; a contender's own problem is in its cell. kInterrupted, from the first Ctrl-C on, and errors
  /// of the arguments. `tick` is called now and then; empty: nobody asks.
  Result<std::vector<profiler::SweepCell>> measure(size_t number, const std::function<void()>& tick = {});
  /// What a point may take.
  Result<double> seconds_per_point() const;

 private:
  SweepPoints(MagicContext& context, MagicArguments arguments, std::vector<SweepAxis> axes)
      : context_(context),
        interrupted_(context.session.interrupt_watch()),
        arguments_(std::move(arguments)),
        axes_(std::move(axes)) {}

  MagicContext& context_;
  std::function<bool()> interrupted_;  // since it was made: one between two points counts for both
  MagicArguments arguments_;
  std::vector<SweepAxis> axes_;  // empty once moved from
};

}  // namespace kiln::repl
