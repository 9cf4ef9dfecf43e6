// out= of torch's functions: what a function gives is put into the tensors that the caller has for it.
#include <algorithm>

#include "repl/modules/modules.h"
#include "repl/modules/torch/tensor_object.h"
#include "repl/modules/torch/torch_complex.h"
#include "repl/script/builtins/builtins.h"

namespace kiln::script {

namespace {

/// Functions with out= in torch whose own text, here, knows nothing of it.
constexpr std::string_view kWithOut[] = {"absolute",
                                         "acos",
                                         "acosh",
                                         "addbmm",
                                         "addcdiv",
                                         "addcmul",
                                         "addmm",
                                         "addmv",
                                         "addr",
                                         "aminmax",
                                         "argsort",
                                         "asin",
                                         "asinh",
                                         "atan",
                                         "atan2",
                                         "atanh",
                                         "baddbmm",
                                         "bernoulli",
                                         "bitwise_and",
                                         "bitwise_left_shift",
                                         "bitwise_not",
                                         "bitwise_or",
                                         "bitwise_right_shift",
                                         "bitwise_xor",
                                         "bucketize",
                                         "cholesky",
                                         "cholesky_inverse",
                                         "cholesky_solve",
                                         "clamp_max",
                                         "clamp_min",
                                         "column_stack",
                                         "concat",
                                         "concatenate",
                                         "copysign",
                                         "cosh",
                                         "cross",
                                         "cummax",
                                         "cummin",
                                         "deg2rad",
                                         "diag",
                                         "diff",
                                         "digamma",
                                         "divide",
                                         "dot",
                                         "dstack",
                                         "erfc",
                                         "erfinv",
                                         "fix",
                                         "float_power",
                                         "floor_divide",
                                         "fmax",
                                         "fmin",
                                         "fmod",
                                         "frac",
                                         "frexp",
                                         "gather",
                                         "gcd",
                                         "ger",
                                         "greater",
                                         "greater_equal",
                                         "heaviside",
                                         "histc",
                                         "histogram",
                                         "hstack",
                                         "hypot",
                                         "i0",
                                         "igamma",
                                         "igammac",
                                         "index_add",
                                         "index_copy",
                                         "index_reduce",
                                         "index_select",
                                         "inner",
                                         "isin",
                                         "isneginf",
                                         "isposinf",
                                         "kron",
                                         "kthvalue",
                                         "lcm",
                                         "ldexp",
                                         "lerp",
                                         "less",
                                         "less_equal",
                                         "lgamma",
                                         "log10",
                                         "logaddexp",
                                         "logaddexp2",
                                         "logcumsumexp",
                                         "logical_xor",
                                         "logit",
                                         "lu_solve",
                                         "lu_unpack",
                                         "masked_select",
                                         "median",
                                         "mode",
                                         "msort",
                                         "multinomial",
                                         "multiply",
                                         "mv",
                                         "mvlgamma",
                                         "nan_to_num",
                                         "nanmean",
                                         "nanmedian",
                                         "nanquantile",
                                         "nansum",
                                         "narrow_copy",
                                         "negative",
                                         "nextafter",
                                         "nonzero",
                                         "norm",
                                         "not_equal",
                                         "ormqr",
                                         "outer",
                                         "polygamma",
                                         "qr",
                                         "quantile",
                                         "rad2deg",
                                         "remainder",
                                         "renorm",
                                         "scatter",
                                         "scatter_add",
                                         "scatter_reduce",
                                         "searchsorted",
                                         "sgn",
                                         "signbit",
                                         "sinc",
                                         "sinh",
                                         "sort",
                                         "subtract",
                                         "svd",
                                         "take",
                                         "take_along_dim",
                                         "tan",
                                         "tensordot",
                                         "topk",
                                         "triangular_solve",
                                         "tril",
                                         "triu",
                                         "true_divide",
                                         "vdot",
                                         "vstack",
                                         "xlogy"};

/// Those that add up in the dtype of out=.
constexpr std::string_view kSums[] = {"cumprod", "cumsum", "mean", "nanmean", "nansum", "prod", "sum"};

bool is_in(std::span<const std::string_view> names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

void put_one(Interp& in, std::string_view function, const Value& result, const Value& out) {
  auto* to = out.get<TensorObject>();
  auto* from = result.get<TensorObject>();
  if (!to) in.fail(ErrorKind::kType, "torch.{}(): out= must be a tensor, got '{}'", function, in.type_name(out));
  if (!from) in.fail(ErrorKind::kType, "torch.{}() with several results takes a tuple as out=", function);
  auto rank_of = [](DType t) { return is_float(t) ? 2 : t == DType::kI1 ? 0 : 1; };
  if (rank_of(from->dtype()) > rank_of(to->dtype()))
    in.fail_as("RuntimeError", "torch.{}(): a result of {} cannot be put into out= of {}", function,
               info(from->dtype()).torch, info(to->dtype()).torch);
  if (!std::ranges::equal(from->shape(), to->shape())) {
    if (to->numel() != 0)
      in.fail_as("RuntimeError", "torch.{}(): the result has shape {}, and out= has {}", function,
                 in.repr(size_value(from->shape())), in.repr(size_value(to->shape())));
    to->share(in, taken(in, Tensor::empty(to->device(), to->dtype(), from->shape())));
  }
  in.call(in.attribute(out, "copy_"), {result});
}

/// A function that has out= beside its own arguments.
class OutFunction : public Opaque {
 public:
  static inline const KindOf<OutFunction> kKind{"builtin_function_or_method"};
  /// Of a text of the library, which is imported when it is first called.
  OutFunction(std::string_view function, std::string path)
      : Opaque("built-in function torch." + std::string(function), kKind), name_(function), path_(std::move(path)) {}
  Value call(Interp& in, CallArgs& args) override {
    const Value function = known(in);
    if (auto v = of_complex(in, name_, nullptr, args)) return *std::move(v);
    if (std::none_of(args.keywords.begin(), args.keywords.end(), [](const KeywordArg& k) { return k.name == "out"; }))
      return in.call(function, args);
    Value out;
    CallArgs others;
    for (Value& v : args.args) others.args.push_back(std::move(v));
    for (KeywordArg& k : args.keywords) {
      if (k.name == "out")
        out = std::move(k.value);
      else
        others.keywords.push_back(std::move(k));
    }
    sum_into(name_, out, others);
    return put_out(in, name_, in.call(function, others), out);
  }
  std::optional<Value> attribute(Interp& in, std::string_view of) override { return in.find_attribute(known(in), of); }

 private:
  Value known(Interp& in) {
    if (function_.missing()) function_ = *in.import_module(path_)->attribute(in, name_);
    return function_;
  }
  const std::string name_, path_;
  Value function_;
};

}  // namespace

void sum_into(std::string_view function, const Value& out, CallArgs& args) {
  auto* to = out.get<TensorObject>();
  auto is_dtype = [](const KeywordArg& k) { return k.name == "dtype"; };
  if (!to || !is_in(kSums, function) || std::any_of(args.keywords.begin(), args.keywords.end(), is_dtype)) return;
  args.keywords.push_back({"dtype", Value::dtype(to->dtype()), {}});
}

Value put_out(Interp& in, std::string_view function, const Value& result, const Value& out) {
  if (!given(out)) return result;
  if (!result.get<Tuple>()) {
    put_one(in, function, result, out);
    return out;
  }
  const std::vector<Value> results = in.to_vector(result);
  const bool several = out.get<Tuple>() || out.get<List>();
  const std::vector<Value> places = several ? in.to_vector(out) : std::vector<Value>{};
  if (places.size() != results.size())
    in.fail(ErrorKind::kType, "torch.{}(): out= takes a tuple of {} tensors", function, results.size());
  for (size_t i = 0; i < results.size(); ++i) put_one(in, function, results[i], places[i]);
  return out;
}

void add_out(ModuleObject& torch) {
  for (std::string_view name : kWithOut)
    for (const ModuleObject::Text& text : torch.texts)
      if (std::ranges::find(text.names, name) != text.names.end())
        torch.members.set(name, make<OutFunction>(name, text.path));
}

}  // namespace kiln::script
