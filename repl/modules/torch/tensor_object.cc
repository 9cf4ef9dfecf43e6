#include "repl/modules/torch/tensor_object.h"
#include "repl/modules/torch/torch_complex.h"
#include "repl/modules/torch/torch_formats.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "support/float_bits.h"

namespace kiln::script {

using ast::BinaryOp;
using ast::CompareOp;
using ast::UnaryOp;

Value wrap(Tensor t) { return make<TensorObject>(std::move(t)); }

TensorObject::TensorObject(Interp& in, Expr expr) : Object(kKind), expr_(std::move(expr)) {
  if (expr_.records()) held_ = expr_.hold();
  if (const Tensor* t = expr_.tensor()) {
    tensor_ = *t;
    history_ = std::move(expr_);
    expr_ = {};
    return;
  }
  pending_ = torch_state(in).pending();
  pending_->limit_dropped(in);
  pending_->add(*this);
}

TensorObject::TensorObject(std::shared_ptr<LatePair> late, int half)
    : Object(kKind), late_(std::move(late)), half_(half) {
  late_->set_reader(half, this);
}

TensorObject::~TensorObject() {
  if (late_) late_->set_reader(half_, nullptr);
  if (tape_) tape_->remove(*this);
  if (!pending_) return;
  pending_->remove(*this);
  // Also of what is stored in place already.
  const bool is_part_of_another = expr_.shared().use_count() > 1 || times_computed_ > 0 || expr_.was_part();
  if (!is_part_of_another) pending_->drop(expr_.shared(), siblings_);
}

bool TensorObject::records() const {
  if (is_leaf_) return !tape_->is_paused;
  if (expr_) return expr_.records();
  if (history_ && !history_.records()) history_ = {};  // its scope has ended
  return static_cast<bool>(history_);
}

void TensorObject::record(Interp& in) {
  if (is_leaf_ || records()) return;
  tensor(in);
  tape_ = torch_state(in).tape;
  is_leaf_ = true;
}

Expr TensorObject::variable() const {
  if (!variable_) variable_ = tape_->variable(*this, tensor_);
  return variable_;
}

const Expr& TensorObject::leaf() const {
  const Tensor* known = leaf_ ? leaf_.tensor() : nullptr;
  const bool is_current = known && known->storage() == tensor_.storage() && known->offset() == tensor_.offset() &&
                          known->dtype() == tensor_.dtype() && std::ranges::equal(known->shape(), tensor_.shape()) &&
                          std::ranges::equal(known->strides(), tensor_.strides());
  if (!is_current) leaf_ = Expr(tensor_);
  return leaf_;
}

void TensorObject::forget_variable() {
  if (variable_) tape_->note_change(variable_);
  variable_ = {};
}

void TensorObject::retain_grad(Interp& in) {
  if (is_leaf_) return;  // backward() keeps those of leaves
  if (!records()) in.fail_as("RuntimeError", "can't retain_grad on Tensor that has requires_grad=False");
  tape_ = torch_state(in).tape;
  tape_->retain(*this);
  retains_grad = true;
}

const Tensor& TensorObject::launched_with(Interp& in, std::string_view kernel) {
  if (!records()) return changing(in);
  if (torch_state(in).gradient_scopes > 0) return constant(in, "the kernel " + std::string(kernel));
  const Tensor& t = tensor(in);
  if (PendingTensors& pending = *torch_state(in).pending(); !pending.empty())
    pending.run_readers(in, t.storage().get());
  return t;
}

const Tensor& TensorObject::constant(Interp& in, std::string_view what) {
  if (!records()) return tensor(in);
  const std::string name = !what.empty() ? std::string(what) : in.running ? in.running->name + "()" : "this";
  in.fail(with_note(error(ErrorKind::kUnsupported, "no gradient of {}: it is computed at once", name),
                    "help: detach() its arguments, if they are constants here"));
}

void TensorObject::have_shared_memory(Interp& in) {
  // One whose value is there already may share it with a view that asked for it.
  if (is_pending() && (expr_.tensor() || expr_.is_view() || pending_->has_view_of(*this))) tensor(in);
}

void TensorObject::assign(Interp& in, const Expr& result) {
  need();
  if (is_leaf_) forget_variable();
  const PendingTensors& pending = *torch_state(in).pending();
  const bool has_memory = static_cast<bool>(tensor_), was_pending = is_pending();
  leaf_ = {};  // it holds the memory as well, and is no other's unless something pending has it
  // Nobody has its memory but this object and the leaves of what is pending, of which the result is one.
  const bool alone = !has_memory || was_pending ||
                     (pending.only_leaves_hold(tensor_, result) && !pending.has_view_of(tensor_.storage().get()));
  expr_ = result;
  times_computed_ = 0;
  if (!was_pending) {
    pending_ = torch_state(in).pending();
    pending_->add(*this);
  }
  if (!alone || expr_.has_operations(kMostPendingOperations)) tensor(in);
}

namespace {

[[noreturn]] void fail_as_leaf(Interp& in) {
  in.fail_as_type("RuntimeError", "a leaf Variable that requires grad is being used in an in-place operation.",
                  "help: with torch.no_grad(): changes it without being recorded");
}

}  // namespace

void TensorObject::become(Interp& in, const std::function<Expr()>& make) {
  Expr own;
  if (records()) {
    own = this->expr();
    if (is_leaf_) fail_as_leaf(in);
    if (own.is_variable())
      in.fail_as_type("RuntimeError", "an argument of a function under grad() is changed in place",
                      "help: x = x + y makes a new tensor");
    if (own.shares_elements())
      in.fail_as_type("RuntimeError", "a tensor that has views, or is one, is changed in place while it has a gradient",
                      "help: x = x + y makes a new tensor");
  } else if (leaf_ = {}; changing(in).storage().use_count() > 1) {
    in.fail_as_type("RuntimeError", "a tensor whose memory others share gets elements that have a gradient in place",
                    "help: x = x + y makes a new tensor; inside of torch.no_grad() nothing has a gradient");
  }
  Expr expr = make();
  if (own && torch_state(in).no_grad()) {
    // The elements change, and the gradient that reaches them goes on to what they were.
    const Expr operands[] = {own};
    auto pass = [](const Expr& gradient, std::span<const Expr>) -> Result<std::vector<Expr>> { return {{gradient}}; };
    expr = taken(in, with_gradient(taken(in, run(expr)), operands, pass));
  }
  take_over(in, expr);
}

void TensorObject::become(Interp& in, TensorObject& view) {
  if (records() && is_leaf_) fail_as_leaf(in);
  if (records() && !torch_state(in).no_grad()) return take_over(in, view.expr());
  share(in, view.tensor(in));
}

void TensorObject::share(Interp& in, Tensor memory) {
  if (is_leaf_)
    forget_variable();
  else
    constant(in);
  leaf_ = {};
  tensor_ = std::move(memory);
}

void TensorObject::take_over(Interp& in, const Expr& expr) {
  if (pending_) pending_->remove(*this);
  pending_ = nullptr;
  tensor_ = {};
  history_ = expr_ = leaf_ = {};
  times_computed_ = 0;
  held_ = expr.hold();
  if (const Tensor* t = expr.tensor()) {
    tensor_ = *t;
    history_ = expr;
    return;
  }
  expr_ = expr;
  pending_ = torch_state(in).pending();
  pending_->add(*this);
}

const Tensor& TensorObject::changing(Interp& in) {
  if (records() && is_leaf_) fail_as_leaf(in);
  if (records())
    in.fail(with_note(error(ErrorKind::kUnsupported, "no gradient of {}: it changes a tensor in place",
                            in.running ? in.running->name + "()" : "this"),
                      "help: make a new tensor instead"));
  const Tensor& t = tensor(in);
  PendingTensors& pending = *torch_state(in).pending();
  if (!pending.empty()) pending.run_readers(in, t.storage().get());
  if (is_leaf_) forget_variable();
  return t;
}

const Tensor& seen_tensor(Interp& in, const Value& v, std::string_view what) {
  auto* t = v.missing() ? nullptr : v.get<TensorObject>();
  if (!t) in.fail(ErrorKind::kType, "{} needs a tensor, got '{}'", what, in.type_name(v));
  return t->tensor(in);
}

const Tensor& tensor_of(Interp& in, const Value& v, std::string_view what) {
  if (auto* t = v.missing() ? nullptr : v.get<TensorObject>()) return t->constant(in, what);
  return seen_tensor(in, v, what);
}

DType dtype_of(Interp& in, const Value& v, DType otherwise) {
  if (v.missing() || v.is_none()) return otherwise;
  if (v.is_dtype()) return v.dtype();
  auto* type = v.get<TypeObject>();
  if (type && type->of_kind == Kind::kFloat) return DType::kF64;
  if (type && type->of_kind == Kind::kInt) return DType::kI64;
  if (type && type->of_kind == Kind::kBool) return DType::kI1;
  in.fail(ErrorKind::kType, "expected a dtype such as torch.float32, got '{}'", in.type_name(v));
}

FillValue fill_value(Interp& in, const Value& v, DType dtype, std::string_view what) {
  const double x = in.to_double(v, what);
  const DTypeInfo& type = info(dtype);
  bool fits = true;
  if (is_float(dtype)) {
    fits = !std::isfinite(x) || is_fp8(dtype) || std::abs(x) <= float_from_bits(dtype, max_finite_bits(dtype));
  } else if (bits(dtype) == 64 && !v.is_float()) {
    fits = v.small_int_or_bool();  // a double has not all of its bits
  } else if (dtype != DType::kI1) {
    const double past = std::ldexp(1.0, is_signed(dtype) ? type.bits - 1 : type.bits);
    const double least = is_signed(dtype) ? -past : v.is_float() ? 0 : 1 - past;
    fits = x >= least && x < past;  // of NaN neither
  }
  if (!fits) in.fail_as("RuntimeError", "{} {} does not fit into {}", what, in.repr(v), type.torch);
  if (v.small_int_or_bool()) return v.integer();
  return x;
}

Device device_of(Interp& in, const Value& v) {
  const auto default_device = [&]() -> const Device& { return torch_state(in).device(); };
  if (v.missing() || v.is_none()) return default_device();
  if (auto* d = v.get<DeviceObject>()) return d->device;
  if (v.small_int_or_bool()) return taken(in, torch_state(in).runtime().open("cuda:" + std::to_string(v.integer())));
  const std::string& name = in.to_text(v, "a device");
  if (name == "cuda" && default_device().is_cuda()) return default_device();
  auto device = torch_state(in).runtime().open(name);
  if (device.ok()) return *device;
  Diagnostic d = std::move(device.error());
  if (name.rfind("cuda", 0) == 0 && !default_device().is_cuda())
    d = with_note(std::move(d), fmt::format("help: this session runs on '{}'; leave device= out, or use "
                                            "triton.runtime.driver.active.get_active_torch_device()",
                                            default_device().name()));
  in.fail(std::move(d));
}

Device described_device(Interp& in, const Value& v) {
  const Device& own = torch_state(in).device();
  return own.is_cuda() || v.get<DeviceObject>() ? device_of(in, v) : own;
}

Shape shape_of(Interp& in, const std::vector<Value>& args) {
  const std::vector<Value>* dims = &args;
  std::vector<Value> inner;
  auto* tuple = args.size() == 1 ? args[0].get<Tuple>() : nullptr;
  if (tuple && !Interp::has_own_iterator(args[0])) {
    dims = &tuple->items;
  } else if (args.size() == 1 && (tuple || args[0].get<List>())) {
    inner = in.to_vector(args[0]);
    dims = &inner;
  }
  Shape shape;
  shape.reserve(dims->size());
  for (const Value& v : *dims) shape.push_back(in.to_int(v, "a dimension"));
  return shape;
}

// --- DeviceObject
// ---------------------------------------------------------------------------------------------------------

std::optional<Value> DeviceObject::attribute(Interp&, std::string_view name) {
  size_t colon = device.name().find(':');
  if (name == "type") return Value::str(device.name().substr(0, colon));
  // On the CPU torch has no index; Kiln says 0, so that get_device_properties(device.index) works there too.
  if (name == "index")
    return Value::integer(colon == std::string::npos ? 0 : std::atoi(device.name().c_str() + colon + 1));
  return std::nullopt;
}

void DeviceObject::attribute_names(std::vector<std::string>& out) const { out.insert(out.end(), {"type", "index"}); }

std::string DeviceObject::repr(Interp&) {
  size_t colon = device.name().find(':');
  if (colon == std::string::npos) return fmt::format("device(type='{}')", device.name());
  return fmt::format("device(type='{}', index={})", device.name().substr(0, colon), device.name().substr(colon + 1));
}

std::optional<Value> DeviceObject::compare(Interp&, CompareOp op, const Value& other) {
  if (op != CompareOp::kEq && op != CompareOp::kNe) return std::nullopt;
  auto* d = other.get<DeviceObject>();
  return Value::boolean((d && d->device == device) == (op == CompareOp::kEq));
}

// --- attributes
// -----------------------------------------------------------------------------------------------------------

namespace {

/// What a tensor with a gradient was made by, for scripts that print it.
class GradientFunction : public Object {
 public:
  static inline const KindOf<GradientFunction> kKind{"torch.autograd.Node"};
  explicit GradientFunction(const Expr& of) : Object(kKind), name_(name_of(of)) {}
  /// As torch calls the gradient of an operation: "LogSoftmaxBackward0".
  static std::string name_of(const Expr& of) {
    std::string out;
    for (const char c : "_" + std::string(of.operation())) {
      const bool starts = !out.empty() && out.back() == '_';
      if (starts) out.pop_back();
      out += starts ? static_cast<char>(std::toupper(static_cast<unsigned char>(c))) : c;
    }
    return out + "Backward0";
  }
  std::string repr(Interp&) override { return "<" + name_ + " object>"; }

 private:
  std::string name_;
};

constexpr std::string_view kAttributes[] = {"shape",    "dtype",  "device",    "ndim",          "T",      "mT",
                                            "H",        "mH",     "is_cuda",   "requires_grad", "data",   "grad",
                                            "itemsize", "nbytes", "is_leaf",   "grad_fn",       "layout", "is_cpu",
                                            "names",    "name",   "output_nr", "retains_grad"};

/// What no tensor here is.
constexpr std::string_view kNever[] = {"is_sparse", "is_sparse_csr", "is_quantized", "is_mkldnn", "is_nested",
                                       "is_meta",   "is_mps",        "is_xpu",       "is_xla",    "is_ipu",
                                       "is_vulkan", "is_maia",       "is_mtia"};

}  // namespace

std::optional<Value> TensorObject::attribute(Interp& in, std::string_view name) {
  if (name == "shape") return size_value(shape());
  if (name == "dtype") return Value::dtype(dtype());
  if (name == "device") return Value(make<DeviceObject>(device()));
  if (name == "ndim") return Value::integer(rank());
  if (name == "is_cuda") return Value::boolean(device().is_cuda());
  if (name == "requires_grad") return Value::boolean(requires_grad || records());
  if (name == "is_leaf") return Value::boolean(is_leaf_ || !records());
  if (name == "grad_fn") return is_leaf_ || !records() ? Value::none() : Value(make<GradientFunction>(expr()));
  if (name == "is_parameter") return Value::boolean(is_parameter);
  if (name == "real") return Value(this);
  if (name == "imag") in.fail_as("RuntimeError", "imag is of complex tensors, this one is of {}", info(dtype()).torch);
  if (name == "data") return detached_value(in, *this);
  if (name == "grad") return grad;
  if (name == "_backward_hooks") return hooks;
  if (name == "_post_accumulate_grad_hooks") return later_hooks;
  if (name == "layout") return strided_layout(in);
  if (name == "is_cpu") return Value::boolean(!device().is_cuda());
  if (name == "names") return Value(make<Tuple>(std::vector<Value>(static_cast<size_t>(rank()), Value::none())));
  if (name == "name") return Value::none();
  if (name == "output_nr") return Value::integer(0);
  if (name == "retains_grad") return Value::boolean(retains_grad);
  if (std::ranges::find(kNever, name) != std::end(kNever)) return Value::boolean(false);
  if (name == "itemsize") return Value::integer(size_of(dtype()));
  if (name == "nbytes") return Value::integer(numel() * size_of(dtype()));
  if (name == "T" || name == "mT" || name == "H" || name == "mH") {  // no tensor is complex
    if (name == "H" && rank() != 2 && rank() != 0)
      in.fail_as("RuntimeError", ".H is for matrices, this tensor has {} dimensions", rank());
    if (name.starts_with("m") && rank() < 2)
      in.fail_as("RuntimeError", ".{} is for matrices and batches of them, this tensor has {} dimensions", name,
                 rank());
    if (rank() < 2) return Value(this);
    std::vector<int> order;
    for (int d = 0; d < rank(); ++d) order.push_back(d);
    if (name == "T")
      std::reverse(order.begin(), order.end());
    else
      std::swap(order[order.size() - 1], order[order.size() - 2]);
    return permuted(in, Value(this), std::move(order));
  }
  return in.method(kKind, name) ? std::nullopt : tensor_library_method(in, Value(this), name);
}

void TensorObject::set_attribute(Interp& in, std::string_view name, Value value) {
  if (name == "grad") return set_grad(in, std::move(value));
  if (name == "_backward_hooks") return void(hooks = std::move(value));
  if (name == "_post_accumulate_grad_hooks") return void(later_hooks = std::move(value));
  if (name == "is_parameter") {
    is_parameter = in.truth(value);
    return;
  }
  if (name == "requires_grad") {
    set_requires_grad(in, in.truth(value));
    return;
  }
  if (name == "data") {  // both are the same memory from now on; views of the old one keep it
    auto* t = value.get<TensorObject>();
    if (!t) in.fail(ErrorKind::kType, "the data of a tensor is a tensor, got '{}'", in.type_name(value));
    share(in, t->tensor(in));
    return;
  }
  Object::set_attribute(in, name, std::move(value));
}

void TensorObject::set_requires_grad(Interp& in, bool on) {
  if (on && !is_float(dtype()))
    in.fail_as("RuntimeError", "only tensors of floats can require gradients, not of {}", info(dtype()).torch);
  if (!on && records() && !is_leaf_)
    in.fail_as_type("RuntimeError", "you can only change requires_grad flags of leaf variables.",
                    "help: x.detach() is a constant");
  requires_grad = on;
  if (on) {
    record(in);
    if (!is_parameter) torch_state(in).tape->expects_gradients = true;  // the tensor may be no leaf, and have no tape
    return;
  }
  if (!is_leaf_) return;
  tape_->remove(*this);
  variable_ = {};
  is_leaf_ = false;
}

void TensorObject::set_grad(Interp& in, Value value) {
  auto* t = value.get<TensorObject>();
  if (!value.is_none() && !t)
    in.fail(ErrorKind::kType, "a gradient is a tensor or None, got '{}'", in.type_name(value));
  if (t && (t->dtype() != dtype() || !std::ranges::equal(t->shape(), shape()) || t->device() != device()))
    in.fail_as("RuntimeError", "the gradient of {} is one of its shape, dtype and device, not {}", summary(),
               t->summary());
  grad = std::move(value);
}

void TensorObject::attribute_names(std::vector<std::string>& out) const {
  out.insert(out.end(), std::begin(kAttributes), std::end(kAttributes));
  tensor_library_names(out);
}

std::string TensorObject::summary() const {
  if (!late_ && !expr_ && tensor_.is_freed()) return "(freed)";
  return fmt::format("{}[{}] {}", kiln::name(dtype()), fmt::join(shape(), ", "), device().name());
}

std::string TensorObject::description() const {
  std::string text = summary();
  if (!expr_) return text;
  auto planned = plan(expr_);
  if (planned.ok()) {
    const size_t n = planned->groups.size();
    return fmt::format("{} · lazy · {} {} when fused", text, n, n == 1 ? "kernel" : "kernels");
  }
  if (planned.error().kind == ErrorKind::kUnsupported) return text + " · lazy · computed on the host";
  return fmt::format("{} · lazy · fails: {}", text, planned.error().message);
}

std::optional<int64_t> TensorObject::length(Interp& in) {
  if (rank() == 0) in.fail(ErrorKind::kType, "a tensor without dimensions has no len()");
  return shape()[0];
}

namespace {
class RowIterator : public IteratorObject {
 public:
  explicit RowIterator(Ref<TensorObject> t) : tensor_(std::move(t)) {}
  bool next(Interp& in, Value& out) override {
    if (at_ >= tensor_->shape()[0]) return false;
    out = tensor_->item(in, Value::integer(at_++));
    return true;
  }

 private:
  Ref<TensorObject> tensor_;
  int64_t at_ = 0;
};
}  // namespace

Value TensorObject::iterate(Interp& in) {
  if (rank() == 0) in.fail(ErrorKind::kType, "a tensor without dimensions cannot be iterated");
  return make<RowIterator>(Ref<TensorObject>(this));
}

std::string TensorObject::repr(Interp& in) {
  const bool by_tape = records() && torch_state(in).gradient_scopes == 0;
  std::string gradient = is_leaf_ ? "requires_grad=True" : "";
  if (by_tape && !is_leaf_) gradient = "grad_fn=<" + GradientFunction::name_of(expr()) + ">";
  return tensor_text(in, tensor(in), nullptr, gradient);
}

bool TensorObject::truth(Interp& in) {
  if (numel() != 1)
    fail_as_torch(in, with_note(error(ErrorKind::kValue, "the truth of a tensor of {} elements is ambiguous", numel()),
                                "help: use .all() or .any()"));
  return in.truth(item_of(in, tensor(in)));
}

std::optional<Value> TensorObject::binary(Interp& in, BinaryOp op, const Value& other, bool reflected) {
  if (!is_operand(other)) return complex_binary(in, op, Value(this), other, reflected);
  return reflected ? tensor_binary(in, op, other, Value(this)) : tensor_binary(in, op, Value(this), other);
}

std::optional<Value> TensorObject::unary(Interp& in, UnaryOp op) {
  switch (op) {
    case UnaryOp::kNegate:
      return script::compute(in, ExprOp::kNeg, {Value(this)});
    case UnaryOp::kPlus:
      return Value(this);
    case UnaryOp::kInvert:
      if (is_float(dtype())) in.fail(ErrorKind::kType, "~ is of integers and bools, not of {}", info(dtype()).torch);
      return script::compute(in, ExprOp::kBitNot, {Value(this)});
    case UnaryOp::kNot:
      break;
  }
  return std::nullopt;
}

std::optional<Value> TensorObject::compare(Interp& in, CompareOp op, const Value& other) {
  if (!is_operand(other))
    if (auto v = complex_compare(in, op, Value(this), other)) return v;
  return tensor_compare(in, op, Value(this), other);
}

std::optional<bool> TensorObject::contains(Interp& in, const Value& item) {
  Value hits = tensor_compare(in, CompareOp::kEq, Value(this), item);
  auto* t = hits.get<TensorObject>();
  if (!t) return false;
  const Tensor& equal = t->tensor(in);
  std::vector<int64_t> found = load_ints(in, equal, shape_vector(equal));
  return std::any_of(found.begin(), found.end(), [](int64_t v) { return v != 0; });
}

std::optional<std::string> TensorObject::format(Interp& in, std::string_view spec) {
  if (rank() == 0) return in.format(item_of(in, tensor(in)), spec);
  if (spec.empty()) return repr(in);
  in.fail(ErrorKind::kType,
          "the format '{}' does not apply to a tensor with dimensions: format its .item() or elements", spec);
}

}  // namespace kiln::script
