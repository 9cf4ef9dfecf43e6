#include "repl/modules/results/results.h"

#include <fmt/format.h>

#include <algorithm>

#include "repl/modules/results/table_object.h"
#include "repl/modules/torch/tensor_object.h"

namespace kiln::script {

namespace {

constexpr size_t kMostKept = 100;
/// Tensors hold memory of a device: as many as have names without a number.
constexpr size_t kMostTensors = 3;
constexpr std::string_view kLast[] = {"_", "__", "___"};

}  // namespace

Results::Results(Interp& in) : in_(in) {
  in.add_builtin("Out", make<Dict>());
  in.add_builtin("In", make<List>());
}

void Results::begin(int entry, std::string_view text) {
  entry_ = entry;
  Globals& globals = in_.globals();
  // As long as the entry's number says, whatever the user did to the list.
  auto& texts = globals[globals.index("In")].builtin.get<List>()->items;
  texts.resize(static_cast<size_t>(entry), Value::str(""));
  texts.push_back(Value::str(std::string(text.substr(0, text.find_last_not_of('\n') + 1))));
  if (texts.size() > kMostKept + 1) texts[texts.size() - kMostKept - 2] = Value::str("");  // %history has it
}

// The variables hold it, so that it goes with them: before what its tensors need.
Dict& Results::out() {
  Globals& globals = in_.globals();
  return *globals[globals.index("Out")].builtin.get<Dict>();
}

void Results::drop(int entry) {
  out().table.erase(in_, Value::integer(entry));
  in_.add_builtin(fmt::format("_{}", entry), {});
}

void Results::keep(const Value& v) {
  if (v.object() == &out()) return;  // a list of results is none
  Globals& globals = in_.globals();
  for (size_t i = std::size(kLast); i-- > 1;) in_.add_builtin(kLast[i], globals[globals.index(kLast[i - 1])].builtin);
  in_.add_builtin(kLast[0], v);
  if (entry_ == 0) return;
  in_.add_builtin(fmt::format("_{}", entry_), v);
  out().table.set(in_, Value::integer(entry_), v);
  std::erase_if(kept_, [&](const Kept& k) { return k.entry == entry_; });
  kept_.push_back({entry_, v.get<TensorObject>() != nullptr});
  auto tensors = static_cast<size_t>(std::ranges::count_if(kept_, &Kept::is_tensor));
  if (kept_.size() <= kMostKept && tensors <= kMostTensors) return;
  auto oldest = tensors > kMostTensors ? std::ranges::find_if(kept_, &Kept::is_tensor) : kept_.begin();
  drop(oldest->entry);
  kept_.erase(oldest);
}

void show_result(Interp& in, const Value& v) {
  auto* table = v.get<TableObject>();
  const std::string text = table ? table->text(in, true) : in.repr(v) + "\n";
  const auto& show = in.state<Results>().show;
  show ? show(text) : in.print(text);
}

}  // namespace kiln::script
