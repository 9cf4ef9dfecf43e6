#include "repl/modules/torch/tensor_object.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "support/float_bits.h"

namespace kiln::script {

using ast::BinaryOp;
using ast::CompareOp;
using ast::UnaryOp;

Value wrap(Tensor t) { return make<TensorObject>(std::move(t)); }

// --- pending tensors
// ------------------------------------------------------------------------------------------------------

void PendingTensors::add(TensorObject& t) { tensors_.push_back(&t); }
void PendingTensors::remove(TensorObject& t) { std::erase(tensors_, &t); }

void PendingTensors::run_readers(Interp& in, const runtime::Storage* storage) {
  if (std::any_of(dropped_.begin(), dropped_.end(), [&](const auto& e) { return Expr(e).reads(storage); }))
    run_dropped(in);
  // Computing one takes it out of the list, and may make others leaves of what is left.
  for (size_t i = 0; i < tensors_.size();) {
    Ref<TensorObject> t(tensors_[i]);
    if (!t->expr().reads(storage)) {
      ++i;
      continue;
    }
    t->tensor(in);
    i = 0;
  }
}

namespace {

Tensor computed(Interp& in, const Expr& expr) {
  auto result = run(expr);
  // What no kernel is written for is computed as small tensors are.
  if (!result.ok() && result.error().kind == ErrorKind::kUnsupported) result = run_on_host(expr);
  return in.take(std::move(result));
}

}  // namespace

void PendingTensors::before_clock(Interp& in) {
  run_dropped(in);
  clock_was_read_ = true;
}

void PendingTensors::drop(std::shared_ptr<runtime::ExprNode> result) {
  if (clock_was_read_) dropped_.push_back(std::move(result));
}

void PendingTensors::limit_dropped(Interp& in) {
  constexpr size_t kMost = 16;
  if (dropped_.size() >= kMost) run_dropped(in);
}

void PendingTensors::run_dropped(Interp& in) {
  for (auto& result : std::exchange(dropped_, {})) computed(in, Expr(std::move(result)));
}

void PendingTensors::run_all(Interp& in) {
  before_clock(in);
  for (const std::vector<Ref<TensorObject>>& together : related()) {
    std::vector<Expr> exprs;
    for (const auto& t : together)
      if (t->is_pending()) exprs.push_back(t->expr());
    if (exprs.size() > 1 && run_together(exprs).ok())
      for (const auto& t : together) t->settle();
    else
      for (const auto& t : together) t->tensor(in);  // alone: with its own error, or on the host
  }
}

std::vector<std::vector<Ref<TensorObject>>> PendingTensors::related() const {
  constexpr size_t kMostTogether = 8;  // outputs of a plan
  std::vector<std::vector<Ref<TensorObject>>> groups;
  std::unordered_map<const runtime::ExprNode*, size_t> group_of;
  for (TensorObject* t : tensors_) {
    const std::vector<Expr::Part> parts = t->expr().pending_parts();
    size_t group = groups.size();
    for (const Expr::Part& part : parts) {
      const auto known = group_of.find(part.node);
      if (known == group_of.end() || groups[known->second].size() == kMostTogether) continue;
      group = known->second;
      break;
    }
    if (group == groups.size()) groups.emplace_back();
    groups[group].emplace_back(t);
    for (const Expr::Part& part : parts) group_of[part.node] = group;
  }
  return groups;
}

void PendingTensors::keep_parts(Interp& in, const TensorObject& whole) {
  if (tensors_.size() < 2) return;
  const std::vector<Expr::Part> parts = whole.expr().pending_parts();
  if (parts.size() < 2) return;  // itself
  std::unordered_map<const runtime::ExprNode*, bool> is_factor;
  for (const Expr::Part& part : parts) is_factor.emplace(part.node, part.is_factor);
  // In the order in which they were made, operands before what is made of them. Computing one changes the list.
  std::vector<std::pair<Ref<TensorObject>, bool>> held;
  for (TensorObject* t : tensors_)
    if (const auto part = is_factor.find(t->expr().node()); t != &whole && part != is_factor.end())
      held.emplace_back(Ref<TensorObject>(t), part->second);
  for (const auto& [t, factor] : held) t->keep_as_part(in, factor);
}

TensorObject::TensorObject(Interp& in, Expr expr)
    : Object(kKind), expr_(std::move(expr)), pending_(torch_state(in).pending()) {
  pending_->limit_dropped(in);
  pending_->add(*this);
}

TensorObject::~TensorObject() {
  if (!pending_) return;
  pending_->remove(*this);
  const bool is_part_of_another = expr_.shared().use_count() > 1;
  if (!is_part_of_another) pending_->drop(expr_.shared());
}

void TensorObject::keep_as_part(Interp& in, bool is_factor) {
  if (!is_pending()) return;  // an earlier part needed it
  if (is_factor || (times_computed_++ > 0 && !expr_.is_cheap_again())) compute(in);
}

void TensorObject::compute(Interp& in) {
  pending_->keep_parts(in, *this);
  computed(in, expr_);
  settle();
}

void TensorObject::settle() {
  if (!is_pending()) return;
  tensor_ = *expr_.tensor();
  expr_ = {};
  pending_->remove(*this);
  pending_ = nullptr;
}

const Tensor& TensorObject::changing(Interp& in) {
  const Tensor& t = tensor(in);
  PendingTensors& pending = *torch_state(in).pending();
  if (!pending.empty()) pending.run_readers(in, t.storage().get());
  return t;
}

const Tensor& tensor_of(Interp& in, const Value& v, std::string_view what) {
  auto* t = v.missing() ? nullptr : v.get<TensorObject>();
  if (!t) in.fail(ErrorKind::kType, "{} needs a tensor, got '{}'", what, in.type_name(v));
  return t->tensor(in);
}

DType dtype_of(Interp& in, const Value& v, DType otherwise) {
  if (v.missing() || v.is_none()) return otherwise;
  if (v.is_dtype()) return v.dtype();
  auto* type = v.get<TypeObject>();
  if (type && type->of_kind == Kind::kFloat) return DType::kF32;
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
  if (!fits) in.fail(ErrorKind::kValue, "{} {} does not fit into {}", what, in.repr(v), type.torch);
  if (v.small_int_or_bool()) return v.integer();
  return x;
}

Device device_of(Interp& in, const Value& v) {
  const auto default_device = [&]() -> const Device& { return torch_state(in).device(); };
  if (v.missing() || v.is_none()) return default_device();
  if (auto* d = v.get<DeviceObject>()) return d->device;
  if (v.small_int_or_bool()) return in.take(Device::open("cuda:" + std::to_string(v.integer())));
  const std::string& name = in.to_text(v, "a device");
  if (name == "cuda" && default_device().is_cuda()) return default_device();
  auto device = Device::open(name);
  if (device.ok()) return *device;
  Diagnostic d = std::move(device.error());
  if (name.rfind("cuda", 0) == 0 && !default_device().is_cuda())
    d = with_note(std::move(d), fmt::format("help: this session runs on '{}'; leave device= out, or use "
                                            "triton.runtime.driver.active.get_active_torch_device()",
                                            default_device().name()));
  in.fail(std::move(d));
}

Shape shape_of(Interp& in, const std::vector<Value>& args) {
  const std::vector<Value>* dims = &args;
  std::vector<Value> inner;
  if (args.size() == 1 && (args[0].get<Tuple>() || args[0].get<List>())) {
    inner = in.to_vector(args[0]);
    dims = &inner;
  }
  Shape shape;
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

constexpr std::string_view kAttributes[] = {"shape",   "dtype",         "device", "ndim", "T",        "mT",
                                            "is_cuda", "requires_grad", "data",   "grad", "itemsize", "nbytes"};

}  // namespace

std::optional<Value> TensorObject::attribute(Interp& in, std::string_view name) {
  if (name == "shape") return size_value(shape());
  if (name == "dtype") return Value::dtype(dtype());
  if (name == "device") return Value(make<DeviceObject>(device()));
  if (name == "ndim") return Value::integer(rank());
  if (name == "is_cuda") return Value::boolean(device().is_cuda());
  if (name == "requires_grad") return Value::boolean(requires_grad);
  if (name == "data") return Value(this);
  if (name == "grad") return Value::none();
  if (name == "itemsize") return Value::integer(size_of(dtype()));
  if (name == "nbytes") return Value::integer(numel() * size_of(dtype()));
  if (name == "T" || name == "mT") {
    if (name == "mT" && rank() < 2)
      in.fail(ErrorKind::kType, ".mT is for matrices and batches of them, this tensor has {} dimensions", rank());
    if (rank() < 2) return Value(this);
    std::vector<int> order;
    for (int d = 0; d < rank(); ++d) order.push_back(d);
    if (name == "T")
      std::reverse(order.begin(), order.end());
    else
      std::swap(order[order.size() - 1], order[order.size() - 2]);
    return permuted(in, Value(this), std::move(order));
  }
  return std::nullopt;
}

void TensorObject::set_attribute(Interp& in, std::string_view name, Value value) {
  if (name == "grad" && value.is_none()) return;
  if (name == "requires_grad") {
    requires_grad = in.truth(value);
    return;
  }
  Object::set_attribute(in, name, std::move(value));
}

void TensorObject::attribute_names(std::vector<std::string>& out) const {
  out.insert(out.end(), std::begin(kAttributes), std::end(kAttributes));
}

std::string TensorObject::summary() const {
  if (!expr_ && tensor_.is_freed()) return "(freed)";
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

std::string TensorObject::repr(Interp& in) { return tensor_text(in, tensor(in)); }

bool TensorObject::truth(Interp& in) {
  if (numel() != 1)
    in.fail(with_note(error(ErrorKind::kValue, "the truth of a tensor of {} elements is ambiguous", numel()),
                      "help: use .all() or .any()"));
  return in.truth(item_of(in, tensor(in)));
}

std::optional<Value> TensorObject::binary(Interp& in, BinaryOp op, const Value& other, bool reflected) {
  if (!operand_of(other)) return std::nullopt;
  return reflected ? tensor_binary(in, op, other, Value(this)) : tensor_binary(in, op, Value(this), other);
}

std::optional<Value> TensorObject::unary(Interp& in, UnaryOp op) {
  switch (op) {
    case UnaryOp::kNegate:
      return script::compute(in, ExprOp::kNeg, {Value(this)});
    case UnaryOp::kPlus:
      return Value(this);
    case UnaryOp::kInvert:
      return script::compute(in, ExprOp::kBitNot, {Value(this)});
    case UnaryOp::kNot:
      break;
  }
  return std::nullopt;
}

std::optional<Value> TensorObject::compare(Interp& in, CompareOp op, const Value& other) {
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

// --- elements
// -------------------------------------------------------------------------------------------------------------

namespace {

/// x[mask], x[indices]: along the first dimension (a mask may cover several), copied.
Tensor picked(Interp& in, const Tensor& t, const Tensor& by) {
  if (!is_int(by.dtype()))
    in.fail(ErrorKind::kType, "a tensor is indexed by bool or integer tensors, not by {}", info(by.dtype()).torch);
  Shape by_shape = shape_vector(by);
  std::vector<int64_t> index = load_ints(in, by, by_shape);
  Shape shape = shape_vector(t), out_shape;
  std::vector<int64_t> rows;
  size_t covered = 1;
  if (by.dtype() == DType::kI1) {
    covered = by_shape.size();
    if (covered > shape.size() || !std::equal(by_shape.begin(), by_shape.end(), shape.begin()))
      in.fail(ErrorKind::kType, "the mask of shape {} does not fit the tensor of shape {}",
              in.repr(size_value(by_shape)), in.repr(size_value(shape)));
    for (size_t i = 0; i < index.size(); ++i)
      if (index[i]) rows.push_back(static_cast<int64_t>(i));
    out_shape = {static_cast<int64_t>(rows.size())};
  } else {
    if (shape.empty()) in.fail(ErrorKind::kType, "a tensor without dimensions cannot be indexed by a tensor");
    for (int64_t i : index) rows.push_back(in.index_in(Value::integer(i), shape[0], "dimension"));
    out_shape = by_shape;
  }
  int64_t row = 1;
  for (size_t d = covered; d < shape.size(); ++d) {
    row *= shape[d];
    out_shape.push_back(shape[d]);
  }
  std::vector<std::byte> bytes = in.take(t.to_bytes());
  size_t size = static_cast<size_t>(row * size_of(t.dtype()));
  std::vector<std::byte> out(rows.size() * size);
  for (size_t i = 0; i < rows.size(); ++i)
    std::copy_n(bytes.begin() + static_cast<ptrdiff_t>(static_cast<size_t>(rows[i]) * size), size,
                out.begin() + static_cast<ptrdiff_t>(i * size));
  return in.take(Tensor::from_host(t.device(), t.dtype(), out_shape, out.data(), out.size()));
}

}  // namespace

Tensor indexed(Interp& in, const Tensor& t, const Value& index) {
  std::vector<Value> parts;
  if (auto* tuple = index.get<Tuple>())
    parts = tuple->items;
  else
    parts = {index};
  if (parts.size() == 1 && parts[0].get<TensorObject>() && parts[0].get<TensorObject>()->rank() > 0)
    return picked(in, t, parts[0].get<TensorObject>()->tensor(in));
  size_t taken = static_cast<size_t>(std::count_if(
      parts.begin(), parts.end(), [](const Value& v) { return !v.is_none() && v.kind() != Kind::kEllipsis; }));
  if (taken > t.shape().size()) in.fail_as("IndexError", "{} indices for a tensor of {} dimensions", taken, t.rank());
  if (std::none_of(parts.begin(), parts.end(), [](const Value& v) { return v.kind() == Kind::kEllipsis; }))
    parts.push_back(make<EllipsisObject>());
  Shape shape, strides;
  int64_t offset = t.offset();
  size_t dim = 0;
  bool seen_ellipsis = false;
  for (const Value& p : parts) {
    if (p.is_none()) {
      shape.push_back(1);
      strides.push_back(0);
    } else if (p.kind() == Kind::kEllipsis) {
      if (seen_ellipsis) in.fail_as("IndexError", "only one '...' can stand in an index");
      seen_ellipsis = true;
      for (size_t n = t.shape().size() - taken; n > 0; --n, ++dim) {
        shape.push_back(t.shape()[dim]);
        strides.push_back(t.strides()[dim]);
      }
    } else if (auto* s = p.get<SliceObject>()) {
      auto span = in.slice_span(*s, t.shape()[dim]);
      if (span.step < 0) in.fail(ErrorKind::kValue, "a tensor's slice needs a step above 0");
      offset += span.count > 0 ? span.start * t.strides()[dim] : 0;
      shape.push_back(span.count);
      strides.push_back(t.strides()[dim++] * span.step);
    } else {
      Value i = p;
      if (auto* scalar = p.get<TensorObject>()) {
        if (scalar->rank() > 0)
          in.fail(ErrorKind::kUnsupported, "a tensor among several indices is not supported: index in two steps");
        i = item_of(in, scalar->tensor(in));
      }
      offset += in.index_in(i, t.shape()[dim], "dimension") * t.strides()[dim];
      ++dim;
    }
  }
  return in.take(t.as_strided(shape, strides, offset));
}

Value TensorObject::item(Interp& in, const Value& index) { return wrap(indexed(in, tensor(in), index)); }

void TensorObject::set_item(Interp& in, const Value& index, Value value) {
  auto* by = index.get<TensorObject>();
  auto* source = value.get<TensorObject>();
  if (source) source->tensor(in);  // it may be an expression of this tensor
  const Tensor& self = changing(in);
  auto is_view_itself = [&](const Tensor& view) {  // x[i] += 1 puts back what changed in place
    const Tensor* s = source ? &source->tensor(in) : nullptr;
    return s && s->storage() == view.storage() && s->offset() == view.offset() && s->dtype() == view.dtype() &&
           std::ranges::equal(s->shape(), view.shape()) && std::ranges::equal(s->strides(), view.strides());
  };
  if (by && by->dtype() == DType::kI1 && by->rank() > 0) {
    // x[mask] = v: choose element by element.
    Shape shape = shape_vector(self);
    const Tensor& named = by->tensor(in);
    Shape mask_shape = shape_vector(named), mask_strides(named.strides().begin(), named.strides().end());
    if (mask_shape.size() > shape.size() || !std::equal(mask_shape.begin(), mask_shape.end(), shape.begin()))
      in.fail(ErrorKind::kType, "the mask of shape {} does not fit the tensor of shape {}",
              in.repr(size_value(mask_shape)), in.repr(size_value(shape)));
    mask_shape.resize(shape.size(), 1), mask_strides.resize(shape.size(), 0);  // a mask of rows is for all of each
    std::vector<int64_t> mask =
        load_ints(in, in.take(named.as_strided(mask_shape, mask_strides, named.offset())), shape);
    std::vector<double> old = load_floats(in, self, shape), values;
    const auto places = std::count_if(mask.begin(), mask.end(), [](int64_t m) { return m != 0; });
    if (source && source->numel() != 1 && source->numel() != places)
      in.fail(ErrorKind::kType,
              "x[mask] = v takes one number or a tensor of the {} elements that the mask names, got {}", places,
              in.repr(size_value(source->shape())));
    if (source)
      values = load_floats(in, source->tensor(in), shape_vector(source->tensor(in)));
    else
      values = {in.to_double(value, "the value")};
    for (size_t i = 0, next = 0; i < old.size(); ++i)
      if (mask[i]) old[i] = values[values.size() == 1 ? 0 : next++];
    return in.check(self.copy_from(store_floats(in, self.device(), self.dtype(), shape, old)));
  }
  if (by && by->rank() > 0)
    in.fail(ErrorKind::kUnsupported, "assigning through an index tensor is not supported: assign row by row");
  Tensor view = indexed(in, self, index);
  if (is_view_itself(view)) return;
  if (!source) return in.check(view.fill(fill_value(in, value, view.dtype(), "the value")));
  Tensor from = in.take(in.take(source->tensor(in).to(self.device())).to(self.dtype()));
  Shape shape = shape_vector(view);
  if (auto both = broadcast_shapes(shape, from.shape()); !both.ok() || *both != shape)
    in.fail(ErrorKind::kType, "a value of shape {} does not fit into {}", in.repr(size_value(from.shape())),
            in.repr(size_value(shape)));
  in.check(view.copy_from(expanded(in, from, shape)));
}

}  // namespace kiln::script
