// Generator expressions: an element is computed when it is asked for.
#pragma once
#include <memory>
#include <vector>

#include "repl/script/interp/interp.h"

namespace kiln::script {

/// `(element for target in iterable if condition …)`. It has variables of its own, as a function would.
class Generator : public IteratorObject {
 public:
  /// `outermost`: of the first iterable, which is evaluated where the expression stands.
  Generator(const Frame& around, const Code& code, const ast::Comprehension& e, Ref<IteratorObject> outermost);
  bool next(Interp& in, Value& out) override;
  bool is_generator() const override { return true; }
  bool has_started() const { return started_; }
  bool has_ended() const { return loops_.empty(); }
  /// It has no further values; an error while it runs.
  void end(Interp& in);
  std::string repr(Interp&) override { return "<generator object <genexpr>>"; }

 private:
  bool advance(Interp& in, Value& out);

  const std::shared_ptr<const Program> program_;
  const ast::Comprehension& expression_;
  std::vector<Ref<Cell>> free_;
  Frame frame_;
  std::vector<Ref<IteratorObject>> loops_;  // one per clause that is entered; empty: it has ended
  bool running_ = false, started_ = false;
};

}  // namespace kiln::script
