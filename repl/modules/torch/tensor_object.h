// Tensors as values of the host language, with torch's names. Operations make expressions, which run as kernels when
// their elements are asked for (docs/expressions.md); between small tensors, and where there is no kernel for it, they
// are computed on the host, with the same values.
#pragma once
#include "kiln/expr.h"
#include "kiln/tensor.h"
#include "kiln/tensor_descriptor.h"
#include "repl/modules/torch/late_pair.h"
#include "repl/modules/torch/torch_state.h"
#include "repl/script/builtins/builtins.h"
#include "repl/script/interp/interp.h"

namespace kiln::script {

using Shape = std::vector<int64_t>;

/// A tensor, or an expression that gives one and is computed when its elements are asked for.
class TensorObject : public Object {
 public:
  static inline const KindOf<TensorObject> kKind{"torch.Tensor"};
  explicit TensorObject(Tensor t) : Object(kKind), tensor_(std::move(t)) {}
  TensorObject(Interp& in, Expr expr);
  /// One of two results of a function that has not run: its form is known, all else has the function run first.
  TensorObject(std::shared_ptr<LatePair> late, int half);
  ~TensorObject() override;
  std::optional<Value> attribute(Interp& in, std::string_view name) override;
  void set_attribute(Interp& in, std::string_view name, Value value) override;
  void attribute_names(std::vector<std::string>& out) const override;
  Value item(Interp& in, const Value& index) override;
  void set_item(Interp& in, const Value& index, Value value) override;
  std::optional<int64_t> length(Interp& in) override;
  Value iterate(Interp& in) override;
  std::string repr(Interp& in) override;
  bool truth(Interp& in) override;
  std::optional<Value> binary(Interp& in, ast::BinaryOp op, const Value& other, bool reflected) override;
  std::optional<Value> in_place(Interp& in, ast::BinaryOp op, const Value& other) override;
  bool change_item(Interp& in, const Value& index, ast::BinaryOp op, const std::function<Value()>& right) override;
  std::optional<Value> unary(Interp& in, ast::UnaryOp op) override;
  std::optional<Value> compare(Interp& in, ast::CompareOp op, const Value& other) override;
  std::optional<bool> contains(Interp& in, const Value& item) override;
  std::optional<std::string> format(Interp& in, std::string_view spec) override;
  /// "f32[4096, 4096] cuda:0"
  std::string summary() const;
  /// The same with what computing it will take when it is pending: "… · lazy · 1 kernel when fused".
  std::string description() const;

  bool is_pending() const {
    need();
    return static_cast<bool>(expr_);
  }
  /// Whether its gradient may be asked for: it depends on tensors that require gradients, or on the arguments of a
  /// function under torch.func.grad.
  bool records() const;
  /// What is made of it is recorded from now on, for backward(), outside of torch.no_grad().
  void record(Interp& in);
  /// It was asked to record, and is no result of an operation that does.
  bool is_leaf() const { return is_leaf_; }
  /// As an argument of a kernel, which may write to it and is no operation of the tape.
  const Tensor& launched_with(Interp& in, std::string_view kernel);
  /// Whether what is made of it is an expression, views too.
  bool is_node() const { return (is_pending() && !is_store()) || records(); }
  /// Computed now when it is pending. What is made of the elements is a constant for gradients: see constant().
  const Tensor& tensor(Interp& in) {
    need();
    if (expr_) compute(in);
    return tensor_;
  }
  /// The same for functions that compute at once: an error when it records, for its gradient would be lost.
  const Tensor& constant(Interp& in, std::string_view what = {});
  /// To be called before its elements change: pending expressions that read its memory are computed first. An error
  /// when it records.
  const Tensor& changing(Interp& in);
  Expr expr() const {
    need();
    if (is_leaf_ && !tape_->is_paused) return variable();
    return expr_ ? expr_ : records() ? history_ : leaf();
  }
  /// While it is pending: what is computed for it.
  const Expr& pending_expr() const { return expr_; }
  /// Computes it where it is a view, or has views: they share memory from now on, and see each other's changes.
  void have_shared_memory(Interp& in);
  /// Takes the elements of a result of its shape and dtype, in its own memory, which is row-major. While nobody else
  /// can look at the memory, that is left to when they are asked for, so that several changes are one kernel.
  void assign(Interp& in, const Expr& result);
  /// Other elements were written to its memory, which nothing that is pending reads.
  void note_overwritten() {
    if (is_leaf_) forget_variable();
  }
  /// Its memory waits for a value.
  bool is_store() const { return is_pending() && tensor_; }
  const Tensor& home() const {
    need();
    return tensor_;
  }
  /// Becomes what `make` makes of it: a change in place that gradients see. An error where others share its elements.
  void become(Interp& in, const std::function<Expr()>& make);
  /// From now on this view of it: its shape changed in place.
  void become(Interp& in, TensorObject& view);
  /// From now on these elements, in the memory of others.
  void share(Interp& in, Tensor memory);
  // Known without computing it.
  DType dtype() const { return late_ ? late_->half(half_).dtype : expr_ ? expr_.dtype() : tensor_.dtype(); }
  std::span<const int64_t> shape() const {
    return late_ ? late_->half(half_).shape : expr_ ? expr_.shape() : tensor_.shape();
  }
  int rank() const { return static_cast<int>(shape().size()); }
  /// The pair whose places these are, while it waits.
  const LatePair* late_places() const { return late_ && half_ == 1 ? late_.get() : nullptr; }
  int64_t numel() const { return late_ ? late_->half(half_).numel() : expr_ ? expr_.numel() : tensor_.numel(); }
  Device device() const { return late_ ? late_->input().device() : expr_ ? expr_.device() : tensor_.device(); }

  void set_requires_grad(Interp& in, bool on);
  void set_grad(Interp& in, Value value);
  /// backward() keeps its gradient too, though it is no leaf.
  void retain_grad(Interp& in);
  bool requires_grad = false, is_parameter = false;  // what a script set
  /// What backward() has added up; none before.
  Value grad = Value::none();
  Value hooks = Value::none();        // of a leaf: what register_hook() was given
  Value later_hooks = Value::none();  // of a leaf: called once its gradient is added up
  bool retains_grad = false;          // of what is no leaf
  /// Of what is computed and records: backward() gives its gradient to this expression of the same elements.
  void pass_gradient_to(const Expr& with);

  /// Asked when another tensor that it is a part of is computed: whether it is computed first, so that its value is
  /// kept. It is if it is an operand of a product, or was computed as a part before and that costs more than to read
  /// it.
  bool is_kept_as_part(bool is_factor);
  /// Of all results of one call: see PendingTensors::drop().
  static void make_siblings(std::span<TensorObject* const> results);
  /// Notes that a small part of it is asked for; whether it is the first.
  bool is_first_part() { return !std::exchange(was_parted_, true); }
  /// Takes over the value of its expression, which was computed.
  void settle();
  /// The same, where a view of it has had it computed: its next view must be of the memory that the first one shares.
  void settle_if_known() {
    if (is_pending() && !is_store() && expr_.tensor()) settle();
  }

 private:
  friend class LatePair;
  void compute(Interp& in);
  void take_over(Interp& in, const Expr& expr);
  Expr variable() const;
  /// Of what is computed; one for all that is made of it.
  const Expr& leaf() const;
  /// Of a leaf, before its elements change.
  void forget_variable();
  void need() const {
    if (late_) late_->run();
  }

  std::shared_ptr<LatePair> late_;
  int half_ = 0;
  Tensor tensor_;
  Expr expr_;             // while it is pending
  mutable Expr history_;  // what it was made of, when it is computed and records
  mutable Expr leaf_;     // of tensor_, from when something was made of it
  bool is_leaf_ = false;
  std::shared_ptr<Tape> tape_;               // once that knows it
  mutable Expr variable_;                    // of a leaf, made when it is first part of something
  std::shared_ptr<const void> held_;         // Expr::hold(), of what records
  std::shared_ptr<PendingTensors> pending_;  // of the session, while it is pending
  int times_computed_ = 0;                   // as a part of others, while it is pending
  bool was_parted_ = false;                  // a small part of it was asked for, while it is pending
  PendingTensors::Siblings siblings_;
};

class TensorDescriptorObject : public Object {
 public:
  static inline const KindOf<TensorDescriptorObject> kKind{"TensorDescriptor"};
  explicit TensorDescriptorObject(TensorDescriptor d)
      : Object(kKind), descriptor(std::make_shared<const TensorDescriptor>(std::move(d))) {}
  std::optional<Value> attribute(Interp& in, std::string_view name) override;
  void attribute_names(std::vector<std::string>& out) const override;
  std::string repr(Interp&) override;
  const std::shared_ptr<const TensorDescriptor> descriptor;
};
/// TensorDescriptor, as triton.tools.tensor_descriptor has it.
Value tensor_descriptor_class();

class DeviceObject : public Object {
 public:
  static inline const KindOf<DeviceObject> kKind{"torch.device"};
  explicit DeviceObject(Device d) : Object(kKind), device(std::move(d)) {}
  std::optional<Value> attribute(Interp& in, std::string_view name) override;
  void attribute_names(std::vector<std::string>& out) const override;
  std::string repr(Interp&) override;
  std::string str(Interp&) override { return device.name(); }
  std::optional<Value> compare(Interp& in, ast::CompareOp op, const Value& other) override;
  std::optional<uint64_t> hash(Interp&) override { return std::hash<std::string>{}(device.name()); }
  const Device device;
};

Value wrap(Tensor t);
/// The tensor of a value, or an error that names the purpose; also where it records, as constant().
const Tensor& tensor_of(Interp& in, const Value& v, std::string_view what);
/// The same of functions that look at elements and make no tensor of them.
const Tensor& seen_tensor(Interp& in, const Value& v, std::string_view what);
/// A dtype from a dtype; `otherwise` when the value is missing or None.
DType dtype_of(Interp& in, const Value& v, DType otherwise);
/// A number that fills a tensor: an error where the dtype cannot hold it. As in torch an unsigned one takes negative
/// integers that its width can hold, and bool takes anything.
FillValue fill_value(Interp& in, const Value& v, DType dtype, std::string_view what);
/// A device from a device, its name or a GPU's number; the session's when the value is missing or None.
Device device_of(Interp& in, const Value& v);
/// The same for figures of it. In a session without a GPU, those of its device stand for what a GPU would have: scripts
/// ask get_device_properties(0) what a kernel may use.
Device described_device(Interp& in, const Value& v);
/// Dimensions from ints, or from one tuple or list of them.
Shape shape_of(Interp& in, const std::vector<Value>& args);
Value size_value(std::span<const int64_t> shape);
/// torch.Size itself.
Value size_type(Interp& in);

// --- numbers on the host (tensor_math.cc)
// -----------------------------------------------------------------------------

/// Row-major elements, broadcast to `shape`.
std::vector<double> load_floats(Interp& in, const Tensor& t, const Shape& shape);
std::vector<int64_t> load_ints(Interp& in, const Tensor& t, const Shape& shape);
Tensor store_floats(Interp& in, const Device& device, DType dtype, const Shape& shape,
                    const std::vector<double>& values);
Tensor store_ints(Interp& in, const Device& device, DType dtype, const Shape& shape,
                  const std::vector<int64_t>& values);
Shape shape_vector(const Tensor& t);
Tensor expanded(Interp& in, const Tensor& t, const Shape& shape);
// --- expressions (tensor_expr.cc)
// ------------------------------------------------------------------------------------

/// Below this many elements, of all that takes part, an operation is computed on the host: a kernel's compilation takes
/// some 10 ms, which a script of many small tensors would pay for each operation. On the CPU it is computed at once. On
/// a GPU it waits as others do, so that a chain of operations copies elements to the host and back once.
inline constexpr int64_t kLazyElements = 4096;
/// A pending tensor is computed when it has grown to this many operations: a loop that never looks at its tensors must
/// not make an expression without end. Loops that are written out, such as one over the steps of an episode or the
/// corners of a cell, have up to 350.
inline constexpr int kMostPendingOperations = 400;
/// The same of what has a gradient: it is planned with that, and a value in between would be stored.
inline constexpr int kMostRecordedOperations = 128;
/// And of one gradient, with those parts of the forward that it needs.
inline constexpr int kMostGradientOperations = 512;

/// What the layers below refuse of a tensor's shape, dtype or values is torch's RuntimeError.
[[noreturn]] inline void fail_as_torch(Interp& in, Diagnostic d) {
  const bool of_tensor = d.kind == ErrorKind::kType || d.kind == ErrorKind::kValue;
  in.fail(std::move(d), of_tensor ? "RuntimeError" : "");
}
template <class T>
T taken(Interp& in, Result<T> r) {
  if (!r.ok()) fail_as_torch(in, std::move(r.error()));
  return *std::move(r);
}
inline void checked(Interp& in, Status s) {
  if (!s.ok()) fail_as_torch(in, std::move(s.error()));
}

/// `t` takes the elements of a value of its shape, converted to its dtype.
void store_in_place(Interp& in, TensorObject& t, TensorObject& value);
/// The elements of a tensor that is changed must have places of their own, unlike those of an expanded one.
void fail_if_shared(Interp& in, const Tensor& to);
/// The same elements, as a constant for gradients.
Value detached_value(Interp& in, TensorObject& t);
/// The same of a tensor that records, inside of torch.no_grad(): what takes its elements does not record. Other values
/// as they are.
Value constant_if_paused(Interp& in, const Value& v);
/// Whether there is an operand_of() it.
bool is_operand(const Value& v);
/// A tensor or number as an operand.
std::optional<Expr> operand_of(const Value& v);
/// A tensor of one value; on a GPU, and while a graph is captured, part of what is made of it until someone needs its
/// memory.
Value filled_tensor(Interp& in, const Device& device, DType dtype, Shape shape, FillValue value);
/// Whether all that takes part is so small that the host computes it: kernels take longer to compile.
bool is_for_host(Interp& in, const Expr& expr);
/// The operation on tensors and numbers: computed at once when all is small and on the CPU, else pending. Errors show
/// both shapes.
Value compute(Interp& in, ExprOp op, std::span<const Value> operands, ExprAttributes attributes = {});
Value compute(Interp& in, ExprOp op, std::initializer_list<Value> operands, ExprAttributes attributes = {});
/// The dtypes that torch.autocast() changes: float64 stays.
bool is_autocast_operand(DType d);
/// For operations that are made of several: each step, and what becomes of the last.
Expr applied(Interp& in, ExprOp op, std::initializer_list<Expr> operands, ExprAttributes attributes = {});
/// Cast, where it has another dtype.
Expr in_dtype(Interp& in, const Expr& x, DType dtype);
Value settled(Interp& in, const Expr& expr);
/// Views: of a tensor they share its memory, of a pending one they are pending.
Value permuted(Interp& in, const Value& tensor, std::vector<int> order);
Value expanded_to(Interp& in, const Value& tensor, Shape shape);
Value tensor_binary(Interp& in, ast::BinaryOp op, const Value& a, const Value& b);
Value tensor_compare(Interp& in, ast::CompareOp op, const Value& a, const Value& b);
void install_tensor_elementwise(Interp& in);
/// layer_norm, rms_norm, where, maximum, minimum: functions that are no methods.
std::span<const NativeDef> expression_functions();
std::span<const NativeDef> norm_functions();
/// cat and stack (tensor_cat.cc).
std::span<const NativeDef> cat_functions();

/// save and load (torch_files.cc).
std::span<const NativeDef> file_functions();
std::span<const NativeDef> archive_functions();

// --- matrix products (tensor_matmul.cc)
// -----------------------------------------------------------------------------

void install_tensor_matmul(Interp& in);
void install_size_methods(Interp& in);

/// |a - b| <= atol + rtol · |b| for each element, both broadcast; NaN equals NaN only when `equal_nan`.
std::vector<bool> close_elements(Interp& in, const Tensor& a, const Tensor& b, double rtol, double atol,
                                 bool equal_nan);
/// The element of a tensor that has just one.
Value item_of(Interp& in, const Tensor& t);
Value element_value(DType dtype, const void* element);

/// A method of tensors that is written in the language (torch_library.cc), and the names of all.
std::optional<Value> tensor_library_method(Interp& in, const Value& self, std::string_view name);
void tensor_library_names(std::vector<std::string>& out);

/// torch's text of a tensor, or of a complex one by its parts. `gradient`: what it says of one that has a gradient.
std::string tensor_text(Interp& in, const Tensor& t, const Tensor* imag = nullptr, std::string_view gradient = {});

void install_tensor_methods(Interp& in);
void install_tensor_reductions(Interp& in);
/// Of the library: running extremes.
std::span<const NativeDef> scanning_functions();
/// Of nn.functional: those whose dimension torch chooses when it is not given.
std::span<const NativeDef> softmax_functions();

/// The tensor whose method runs.
inline TensorObject& self_object(NativeArgs& a) {
  auto& t = *a.self->get<TensorObject>();
  t.settle_if_known();
  return t;
}
inline const Tensor& self_tensor(Interp& in, NativeArgs& a) { return self_object(a).constant(in); }
/// Of methods that look at it and make no tensor of its elements.
inline const Tensor& seen_self(Interp& in, NativeArgs& a) { return self_object(a).tensor(in); }
/// What a `*rest` parameter holds.
inline const std::vector<Value>& rest_of(const Value& v) { return v.get<Tuple>()->items; }

/// out= of torch's functions (torch_out.cc): the result is put into a tensor, or several into a tuple of them. Without
/// `out` it stays what it is.
Value put_out(Interp& in, std::string_view function, const Value& result, const Value& out);
/// Sums are added up in the dtype of their out=.
void sum_into(std::string_view function, const Value& out, CallArgs& args);
/// Gives functions of the library, those that have out= in torch, this argument.
void add_out(ModuleObject& torch);

/// torch.softmax: a method of tensors as a function, with the tensor as its first argument, `input`.
class MethodFunction : public Opaque {
 public:
  static inline const KindOf<MethodFunction> kKind{"builtin_function_or_method"};
  explicit MethodFunction(std::string m) : Opaque("built-in function torch." + m, kKind), method(std::move(m)) {}
  const std::string method;
};

}  // namespace kiln::script
