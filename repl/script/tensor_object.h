// Tensors as values of the host language, with torch's names. What is computed here is computed on the host in float64
// or int64 and rounded once: right rather than fast. Speed is what kernels are for.
#pragma once
#include "kiln/tensor.h"
#include "kiln/tensor_descriptor.h"
#include "repl/script/interp.h"

namespace kiln::script {

using Shape = std::vector<int64_t>;

class TensorObject : public Object {
 public:
  static constexpr Kind kKind = Kind::kTensor;
  explicit TensorObject(Tensor t) : Object(kKind), tensor(std::move(t)) {}
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
  std::optional<Value> unary(Interp& in, ast::UnaryOp op) override;
  std::optional<Value> compare(Interp& in, ast::CompareOp op, const Value& other) override;
  std::optional<bool> contains(Interp& in, const Value& item) override;
  std::optional<std::string> format(Interp& in, std::string_view spec) override;
  /// "f32[4096, 4096] cuda:0"
  std::string summary() const;

  Tensor tensor;
  bool requires_grad = false;
};

class TensorDescriptorObject : public Object {
 public:
  static constexpr Kind kKind = Kind::kTensorDescriptor;
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
  static constexpr Kind kKind = Kind::kDevice;
  explicit DeviceObject(Device d) : Object(kKind), device(std::move(d)) {}
  std::optional<Value> attribute(Interp& in, std::string_view name) override;
  void attribute_names(std::vector<std::string>& out) const override;
  std::string repr(Interp&) override;
  std::string str(Interp&) override { return device.name(); }
  std::optional<Value> compare(Interp& in, ast::CompareOp op, const Value& other) override;
  const Device device;
};

Value wrap(Tensor t);
/// The tensor of a value, or an error that says what it was wanted for.
const Tensor& tensor_of(Interp& in, const Value& v, std::string_view what);
/// A dtype from a dtype; `otherwise` when the value is missing or None.
DType dtype_of(Interp& in, const Value& v, DType otherwise);
/// A device from a device, its name or a GPU's number; the session's when the value is missing or None.
Device device_of(Interp& in, const Value& v);
/// Dimensions from ints, or from one tuple or list of them.
Shape shape_of(Interp& in, const std::vector<Value>& args);
Value size_value(std::span<const int64_t> shape);

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
Shape broadcast_shapes(Interp& in, const Shape& a, const Shape& b);
Tensor expanded(Interp& in, const Tensor& t, const Shape& shape);
/// What torch gives for two tensors' dtypes.
DType promote(DType a, DType b);

Value tensor_binary(Interp& in, ast::BinaryOp op, const Value& a, const Value& b);
Value tensor_compare(Interp& in, ast::CompareOp op, const Value& a, const Value& b);

// --- matrix products (tensor_matmul.cc)
// -----------------------------------------------------------------------------

/// What `@` does: torch's shapes, by cuBLAS on a GPU and OpenBLAS on the CPU.
Tensor matmul(Interp& in, const Tensor& a, const Tensor& b);
void install_tensor_matmul(Interp& in);

/// Applies a function of float64; integers become float32 first, as in torch.
Tensor map_floats(Interp& in, const Tensor& t, double (*f)(double));
/// |a - b| <= atol + rtol · |b| for each element, both broadcast; NaN equals NaN only when `equal_nan`.
std::vector<bool> close_elements(Interp& in, const Tensor& a, const Tensor& b, double rtol, double atol,
                                 bool equal_nan);
/// The element of a tensor that has just one.
Value item_of(Interp& in, const Tensor& t);
Value element_value(DType dtype, const void* element);

/// Where `index` leads in `t`: a view for ints, slices, None and `...`; a copy for masks and index tensors.
Tensor indexed(Interp& in, const Tensor& t, const Value& index);

/// torch's text of a tensor.
std::string tensor_text(Interp& in, const Tensor& t);

void install_tensor_methods(Interp& in);
void install_tensor_reductions(Interp& in);

}  // namespace kiln::script
