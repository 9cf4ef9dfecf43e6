#include "repl/script/interp/generator.h"

#include "repl/script/interp/function_generator.h"

namespace kiln::script {

Generator::Generator(const Frame& around, const Code& code, const ast::Comprehension& e, Ref<IteratorObject> outermost)
    : program_(around.program.shared_from_this()),
      expression_(e),
      free_(around.captured(code)),
      frame_(*program_, code) {
  frame_.free = &free_;
  frame_.make_cells();
  loops_.push_back(std::move(outermost));
}

void Generator::end(Interp& in) {
  if (running_) in.fail(ErrorKind::kValue, "generator already executing");
  loops_.clear();
}

bool Generator::next(Interp& in, Value& out) {
  // A generator whose element asks for its own next element would reuse the frame that is being evaluated.
  if (running_) in.fail(ErrorKind::kValue, "generator already executing");
  struct Run {
    Interp& in;
    Generator& generator;
    SourceRange site = in.where();
    bool ended = true;  // also by an exception
    ~Run() {
      generator.running_ = false;
      if (ended) generator.loops_.clear();
    }
  } run{in, *this};
  running_ = started_ = true;
  in.check_stack();
  try {
    run.ended = !advance(in, out);
  } catch (const ScriptError& e) {
    throw_out_of_generator(in, e);
  }
  in.set_where(run.site);
  return !run.ended;
}

bool Generator::advance(Interp& in, Value& out) {
  while (!loops_.empty()) {
    in.check_interrupt();
    const ast::ForClause& clause = expression_.clauses[loops_.size() - 1];
    Value item;
    if (!loops_.back()->next(in, item)) {
      loops_.pop_back();
      continue;
    }
    in.assign(*clause.target, std::move(item), frame_);
    bool wanted = true;
    for (size_t i = 0; wanted && i < clause.conditions.size(); ++i)
      wanted = in.truth(in.eval(*clause.conditions[i], frame_));
    if (!wanted) continue;
    if (loops_.size() == expression_.clauses.size()) {
      out = in.eval(*expression_.element, frame_);
      return true;
    }
    const ast::Expr& inner = *expression_.clauses[loops_.size()].iterable;
    const Value items = in.eval(inner, frame_);
    in.set_where(inner.range);
    // One open iterator per clause, innermost last: the stack is the whole state between two elements.
    loops_.push_back(in.iterator(items));
  }
  return false;
}

}  // namespace kiln::script
