// check(expression): what %compare checks of results, for scripts.
#include <fmt/ranges.h>

#include "repl/modules/torch/lazy_scope.h"
#include "repl/modules/torch/tensor_object.h"

namespace kiln::script {

namespace {

/// The indices of an element by its place in row-major order.
std::vector<int64_t> indices_of(int64_t element, std::span<const int64_t> shape) {
  std::vector<int64_t> out(shape.size());
  for (size_t d = shape.size(); d-- > 0;) {
    out[d] = element % shape[d];
    element /= shape[d];
  }
  return out;
}

/// How far off the unfused variant is; nothing when it cannot run.
std::optional<ExprError> error_of_unfused(Interp& in, const Expr& expr, const ExprReference& expected) {
  auto plain = variant(expr, ExprVariant::kUnfused);
  if (!plain.ok() || !plain->problem.ok()) return std::nullopt;
  return in.take(compare(expected, in.take(plain->output())));
}

Value check(Interp& in, NativeArgs& a) {
  auto* t = a[0].get<TensorObject>();
  if (!t) in.fail(ErrorKind::kType, "check() takes a tensor expression, got '{}'", in.type_name(a[0]));
  if (!t->is_pending())
    in.fail(
        with_note(error(ErrorKind::kValue, "the argument of check() is computed already: there is no expression left"),
                  "help: give the expression itself, as in check(gelu(x @ w + b))"));
  const std::string which = a[1].missing() ? "fused" : in.to_text(a[1], "variant");
  const auto known = parse_expr_variant(which);
  if (!known) {
    std::vector<std::string_view> names;
    for (ExprVariant v : kExprVariants) names.push_back(name(v));
    in.fail(ErrorKind::kValue, "there is no variant '{}': they are {}", which, fmt::join(names, ", "));
  }
  const Expr expr = t->expr();
  const ExprReference expected = in.take(reference(expr));
  VariantPlan v = in.take(variant(expr, *known));
  in.check(std::move(v.problem));
  const std::optional<ExprError> allowed =
      *known == ExprVariant::kUnfused ? std::nullopt : error_of_unfused(in, expr, expected);
  const ExprError e = in.take(compare(expected, in.take(v.output()), allowed ? &*allowed : nullptr));
  if (!e.ok())
    in.fail(
        ErrorKind::kMismatch,
        "{} is wrong at [{}]: {} where float64 gives {}; the largest relative error is {:.2g}, and {:.2g} is allowed",
        which, fmt::join(indices_of(e.first_bad, expr.shape()), ", "), e.got, e.expected, e.max_rel, e.tolerance);
  auto d = make<Dict>();
  auto set = [&](std::string_view key, Value value) { d->table.set(key, std::move(value)); };
  set("variant", Value::str(which));
  set("max_abs", Value::real(e.max_abs));
  set("max_rel", Value::real(e.max_rel));
  set("tolerance", Value::real(e.tolerance));
  set("checked", Value::integer(expected.checked()));
  set("elements", Value::integer(expr.numel()));
  return d;
}

/// The argument is wanted as an expression, however small its tensors are.
std::shared_ptr<void> keep_lazy(Interp& in) { return std::make_shared<LazyScope>(in); }

constexpr NativeDef kCheckFunctions[] = {
    {"check(expression, variant='fused')", check,
     "compares a variant of an expression with float64; AssertionError with the first wrong element", keep_lazy},
};

}  // namespace

void install_check(Interp& in) { in.add_builtins(kCheckFunctions); }

}  // namespace kiln::script
