// What tensors need of the language: the prompt announces those that are not computed, a profile records operations.
#include <fmt/format.h>

#include "repl/modules/modules.h"
#include "repl/modules/results/results.h"
#include "repl/modules/torch/tensor_object.h"
#include "support/trace.h"

namespace kiln::script {

namespace {

TensorObject* tensor_in(const Value& v) { return v.missing() ? nullptr : v.get<TensorObject>(); }

class TensorHost : public Host {
 public:
  void begin(Interp& in) override { torch_state(in).forget_entered(); }

  /// Says what was assigned but not computed.
  void assigned(Interp& in, std::string_view name, const Value& v) override {
    if (auto* t = v.get<TensorObject>(); t && t->is_pending())
      in.print(fmt::format("{}: {}\n", name, t->description()));
  }

  void show(Interp& in, const Value& v) override {
    in.state<Results>().keep(v);
    show_result(in, v);
  }

  /// A function on tensors is an operation: of its own, or a method's, first tensor, unless it gives one.
  Value traced(Interp& in, const Native& native, NativeArgs& args) override {
    TensorObject* operand = args.self ? tensor_in(*args.self) : nullptr;
    for (const Value& v : args.slots)
      if (!operand) operand = tensor_in(v);
    const Ref<TensorObject> about(operand);
    trace::Event event;
    event.step = trace::Step::kOperation;
    event.start_ns = trace::now_ns();
    Value result = native.run(in, args);
    TensorObject* made = tensor_in(result);
    if (made || operand) {
      event.end_ns = trace::now_ns();
      event.name = native.name;
      if (trace::on(trace::kShapes)) event.detail = (made ? made : operand)->summary();
      trace::add(std::move(event));
    }
    return result;
  }
};

}  // namespace

std::unique_ptr<Host> tensor_host() { return std::make_unique<TensorHost>(); }

}  // namespace kiln::script
