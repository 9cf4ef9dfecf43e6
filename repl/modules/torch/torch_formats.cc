#include "repl/modules/torch/torch_formats.h"

#include <fmt/format.h>

#include <ranges>

#include "repl/modules/torch/torch_state.h"
#include "repl/script/builtins/builtins.h"

namespace kiln::script {

namespace {

/// A value that only has a name: torch.strided.
class Layout : public Object {
 public:
  static inline const KindOf<Layout> kKind{"torch.layout"};
  Layout() : Object(kKind) {}
  std::string repr(Interp&) override { return "torch.strided"; }
};

/// torch.channels_last and its like.
class MemoryFormat : public Object {
 public:
  static inline const KindOf<MemoryFormat> kKind{"torch.memory_format"};
  explicit MemoryFormat(std::string_view called) : Object(kKind), name(called) {}
  std::string repr(Interp&) override { return "torch." + name; }
  const std::string name;
};

/// Of a session, so that `is` finds them equal.
struct Constants {
  explicit Constants(Interp&) {}
  Ref<Layout> strided = make<Layout>();
  Ref<MemoryFormat> contiguous = make<MemoryFormat>("contiguous_format");
  Ref<MemoryFormat> preserve = make<MemoryFormat>("preserve_format");
  Ref<MemoryFormat> channels_last = make<MemoryFormat>("channels_last");
  Ref<MemoryFormat> channels_last_3d = make<MemoryFormat>("channels_last_3d");
};

/// The dimensions of a format in which channels lie side by side, and back; empty for the others.
struct ChannelsLast {
  std::vector<int> order, back;
};
ChannelsLast channels_last(Interp& in, const TensorObject& t, const MemoryFormat& format) {
  if (!format.name.starts_with("channels_last")) return {};
  const int rank = format.name.ends_with("3d") ? 5 : 4;
  if (t.rank() != rank) in.fail_as("RuntimeError", "required rank {} tensor to use {} format", rank, format.name);
  if (rank == 5) return {{0, 2, 3, 4, 1}, {0, 4, 1, 2, 3}};
  return {{0, 2, 3, 1}, {0, 3, 1, 2}};
}

const MemoryFormat* format_of(Interp& in, const Value& v) {
  if (v.missing() || v.is_none()) return nullptr;
  if (auto* f = v.get<MemoryFormat>()) return f;
  in.fail(ErrorKind::kType, "memory_format= is a torch.memory_format, got '{}'", in.type_name(v));
}

/// Methods in place that torch has as functions too.
constexpr std::string_view kInPlace[] = {
    "abs_",    "acos_",      "acosh_",      "addmv_",      "arccos_",  "arccosh_",  "arcsin_",  "arcsinh_",
    "arctan_", "arctanh_",   "as_strided_", "asin_",       "asinh_",   "atan_",     "atanh_",   "ceil_",
    "clamp_",  "clamp_max_", "clamp_min_",  "clip_",       "cos_",     "cosh_",     "deg2rad_", "detach_",
    "erf_",    "erfc_",      "exp2_",       "exp_",        "expm1_",   "fill_",     "fix_",     "floor_",
    "frac_",   "gcd_",       "i0_",         "index_put_",  "lcm_",     "ldexp_",    "log10_",   "log1p_",
    "log2_",   "log_",       "logit_",      "nan_to_num_", "neg_",     "negative_", "rad2deg_", "reciprocal_",
    "relu_",   "resize_as_", "round_",      "rsqrt_",      "sigmoid_", "sin_",      "sinc_",    "sinh_",
    "sqrt_",   "square_",    "tan_",        "tanh_",       "trunc_",   "xlogy_",    "zero_"};

}  // namespace

void add_constants(Interp& in, ModuleObject& m) {
  const Constants& all = in.state<Constants>();
  m.members.set("newaxis", Value::none());
  m.members.set("strided", Value(all.strided));
  m.members.set("contiguous_format", Value(all.contiguous));
  m.members.set("preserve_format", Value(all.preserve));
  m.members.set("channels_last", Value(all.channels_last));
  m.members.set("channels_last_3d", Value(all.channels_last_3d));
  m.members.set("layout", in.type_of(Layout::kKind));
  m.members.set("memory_format", in.type_of(MemoryFormat::kKind));
  for (std::string_view name : kInPlace) {
    auto f = make<Opaque>(fmt::format("built-in function torch.{}", name));
    f->on_call = [method = std::string(name)](Interp& of, CallArgs& args) -> Value {
      if (args.args.empty() || !args.args[0].get<TensorObject>())
        of.fail(ErrorKind::kType, "torch.{}() needs a tensor", method);
      CallArgs others;
      for (size_t i = 1; i < args.args.size(); ++i) others.args.push_back(std::move(args.args[i]));
      for (KeywordArg& k : args.keywords) others.keywords.push_back(std::move(k));
      return of.call(of.attribute(args.args[0], method), others);
    };
    m.members.set(name, Value(f));
  }
}

Value strided_layout(Interp& in) { return Value(in.state<Constants>().strided); }

Value in_memory_format(Interp& in, const Value& tensor, const Value& format) {
  const MemoryFormat* f = format_of(in, format);
  auto* t = tensor.get<TensorObject>();
  if (!f || f->name == "preserve_format") return tensor;
  ChannelsLast last = channels_last(in, *t, *f);
  if (last.order.empty()) return in.call(in.attribute(tensor, "contiguous"), {});
  if (t->records() || has_memory_format(in, tensor, format)) return tensor;
  const Value inner = in.call(in.attribute(permuted(in, tensor, std::move(last.order)), "contiguous"), {});
  inner.get<TensorObject>()->tensor(in);  // the view has its order in memory
  return permuted(in, inner, std::move(last.back));
}

bool has_memory_format(Interp& in, const Value& tensor, const Value& format) {
  const MemoryFormat* f = format_of(in, format);
  const Tensor& t = tensor.get<TensorObject>()->tensor(in);
  if (!f || !f->name.starts_with("channels_last")) return t.is_contiguous();
  if (t.rank() != (f->name.ends_with("3d") ? 5 : 4)) return false;
  int64_t stride = 1;
  for (int d : channels_last(in, *tensor.get<TensorObject>(), *f).order | std::views::reverse) {
    const auto i = static_cast<size_t>(d);
    if (t.shape()[i] != 1 && t.strides()[i] != stride) return false;
    stride *= t.shape()[i];
  }
  return true;
}

}  // namespace kiln::script
