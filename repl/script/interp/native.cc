#include <fmt/format.h>

#include <algorithm>
#include <new>
#include <stdexcept>
#include <utility>

#include "repl/script/interp/interp.h"
#include "support/trace.h"

namespace kiln::script {

Native::Native(const NativeDef& d, std::optional<Kind> of) : Object(kKind), def(d), receiver(of) {
  std::string_view text = d.signature;
  size_t open = text.find('(');
  KILN_ASSERT(open != std::string_view::npos && text.back() == ')', "signature {}", text);
  name = text.substr(0, open);
  text = text.substr(open + 1, text.size() - open - 2);
  bool keyword_only = false;
  while (!text.empty()) {
    // Defaults hold no commas, except in brackets.
    size_t end = 0;
    for (int depth = 0; end < text.size() && (text[end] != ',' || depth > 0); ++end)
      depth += text[end] == '(' ? 1 : text[end] == ')' ? -1 : 0;
    std::string_view piece = text.substr(0, end);
    text.remove_prefix(std::min(text.size(), end + 1));
    while (!piece.empty() && piece.front() == ' ') piece.remove_prefix(1);
    if (piece == "*") {
      keyword_only = true;
      continue;
    }
    Parameter p;
    size_t stars = piece.find_first_not_of('*');
    p.rest = stars == 1 ? Parameter::Rest::kArgs : stars == 2 ? Parameter::Rest::kKeywords : Parameter::Rest::kNo;
    piece.remove_prefix(stars);
    const size_t equals = piece.find('=');
    p.optional = equals != std::string_view::npos;
    p.name = piece.substr(0, equals);
    if (p.optional) p.initial = piece.substr(equals + 1);
    p.keyword_only = keyword_only;
    if (p.rest == Parameter::Rest::kArgs) {
      rest_args_ = static_cast<int>(params_.size());
      keyword_only = true;
    } else if (p.rest == Parameter::Rest::kKeywords) {
      rest_keywords_ = static_cast<int>(params_.size());
    } else if (!keyword_only) {
      ++positional_;
    }
    params_.push_back(p);
  }
}

Value Native::call(Interp& in, CallArgs& args) {
  if (!receiver) return call_on(in, nullptr, args);
  const std::string_view type = kind_name(*receiver);
  if (args.args.empty()) in.fail(ErrorKind::kType, "unbound method {}.{}() needs an argument", type, name);
  const Value self = args.args.take_front();
  if (self.kind() != *receiver && !(self.is_bool() && *receiver == Kind::kInt))
    in.fail(ErrorKind::kType, "descriptor '{}' for '{}' objects doesn't apply to a '{}' object", name, type,
            in.type_name(self));
  return call_on(in, &self, args);
}

namespace {
/// A method with its type: torch.softmax(x) calls torch.Tensor.softmax(dim).
std::string shown_signature(const Native& n) {
  return (n.receiver ? std::string(kind_name(*n.receiver)) + "." : "") + std::string(n.def.signature);
}

/// torch takes numpy's names of these arguments too.
std::string_view torch_name(std::string_view numpy) {
  return numpy == "axis" ? "dim" : numpy == "keepdims" ? "keepdim" : numpy;
}

}  // namespace

Value Native::call_on(Interp& in, const Value* self, CallArgs& call) {
  if (elsewhere)
    if (auto v = elsewhere(in, name, self, call)) return *std::move(v);
  SmallVector<Value, 16> values;
  values.fill(params_.size());
  const std::span<Value> slots(values.begin(), values.size());
  size_t given = call.args.size();
  if (given > positional_ && rest_args_ < 0)
    in.fail(ErrorKind::kType, "{}() takes {}{} positional argument{}, got {}", name,
            positional_ < params_.size() ? "at most " : "", positional_, positional_ == 1 ? "" : "s", given);
  for (size_t i = 0; i < std::min(given, positional_); ++i) slots[i] = std::move(call.args[i]);
  if (rest_args_ >= 0) {
    std::vector<Value> rest;
    for (size_t i = positional_; i < given; ++i) rest.push_back(std::move(call.args[i]));
    slots[static_cast<size_t>(rest_args_)] = make<Tuple>(std::move(rest));
  }
  Ref<Dict> rest_keywords;
  if (rest_keywords_ >= 0) {
    rest_keywords = make<Dict>();
    slots[static_cast<size_t>(rest_keywords_)] = rest_keywords;
  }
  for (KeywordArg& k : call.keywords) {
    auto place_of = [&](std::string_view keyword) {
      size_t at = 0;
      while (at < params_.size() && (params_[at].name != keyword || params_[at].rest != Parameter::Rest::kNo)) ++at;
      return at;
    };
    size_t i = place_of(k.name);
    if (i == params_.size()) i = place_of(torch_name(k.name));
    // Of a method of tensors `*dims` is an argument of torch's too: permute(dims=(1, 0)).
    auto* rest = rest_args_ >= 0 ? slots[static_cast<size_t>(rest_args_)].get<Tuple>() : nullptr;
    const bool names_rest =
        receiver && rest && !rest_keywords && k.name == params_[static_cast<size_t>(rest_args_)].name;
    if (i == params_.size() && names_rest) {
      if (!rest->items.empty()) in.fail(ErrorKind::kType, "{}() got the argument '{}' twice", name, k.name);
      rest->items.push_back(std::move(k.value));
      continue;
    }
    if (i < params_.size()) {
      if (!slots[i].missing()) in.fail(ErrorKind::kType, "{}() got the argument '{}' twice", name, k.name);
      slots[i] = std::move(k.value);
    } else if (rest_keywords) {
      rest_keywords->table.set(k.name, std::move(k.value));
    } else {
      std::vector<std::string> names;
      for (const Parameter& p : params_)
        if (p.rest == Parameter::Rest::kNo) names.emplace_back(p.name);
      std::string near = nearest_name(k.name, names);
      Diagnostic d = error(ErrorKind::kType, "{}() has no argument '{}'", name, k.name);
      in.fail(with_note(std::move(d), near.empty() ? fmt::format("help: it is {}", shown_signature(*this))
                                                   : fmt::format("help: did you mean '{}'?", near)));
    }
  }
  for (size_t i = 0; i < params_.size(); ++i) {
    const Parameter& p = params_[i];
    if (slots[i].missing() && !p.optional && p.rest == Parameter::Rest::kNo)
      in.fail(with_note(error(ErrorKind::kType, "{}() needs the argument '{}'", name, p.name),
                        fmt::format("help: it is {}", shown_signature(*this))));
  }
  NativeArgs args{slots, self};
  if (!trace::on(trace::kSpans)) return run(in, args);
  return in.host().traced(in, *this, args);
}

Value Native::run(Interp& in, NativeArgs& args) const {
  struct Running {
    explicit Running(Interp& i, const Native* n) : in(i), before(std::exchange(i.running, n)) {}
    ~Running() { in.running = before; }
    Interp& in;
    const Native* const before;
  } running(in, this);
  try {
    Value result = def.function(in, args);
    in.check_interrupt();  // one that came late in a function without a loop of values
    return result;
  } catch (const std::exception& e) {
    // length_error: of a container that cannot grow so far.
    if (!dynamic_cast<const std::bad_alloc*>(&e) && !dynamic_cast<const std::length_error*>(&e)) throw;
    in.fail(ErrorKind::kMemory, "{}() needs more memory than there is", name);
  }
}

std::optional<Value> Native::attribute(Interp&, std::string_view attribute) {
  if (attribute == "__name__") return Value::str(name);
  if (attribute == "__doc__") return Value::str(std::string(def.help));
  return std::nullopt;
}

std::string Native::repr(Interp&) { return fmt::format("<built-in function {}>", name); }

}  // namespace kiln::script
