// TensorDescriptor of triton.tools.tensor_descriptor.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "repl/modules/torch/tensor_object.h"
#include "repl/script/builtins/builtins.h"
#include "repl/script/interp/call.h"

namespace kiln::script {

namespace {

constexpr std::string_view kAttributes[] = {"base", "shape", "strides", "block_shape"};

std::vector<int64_t> ints_of(Interp& in, const Value& list, std::string_view what) {
  std::vector<int64_t> out;
  in.for_each(list, [&](const Value& v) {
    out.push_back(in.to_int(v, what));
    return true;
  });
  return out;
}

Value finish(Interp& in, Result<TensorDescriptor> made) {
  if (!made.ok()) in.fail(std::move(made.error()));
  return make<TensorDescriptorObject>(std::move(*made));
}

Value construct(Interp& in, NativeArgs& a) {
  const Tensor& base = tensor_of(in, a[0], "TensorDescriptor's base");
  if (!a[4].missing() && !(a[4].get<Str>() && a[4].get<Str>()->text == "zero"))
    in.fail(ErrorKind::kUnsupported, "TensorDescriptor pads with zeros only");
  return finish(in, TensorDescriptor::make(base, ints_of(in, a[1], "a size"), ints_of(in, a[2], "a stride"),
                                           ints_of(in, a[3], "a block's size")));
}

Value from_tensor(Interp& in, NativeArgs& a) {
  const Tensor& tensor = tensor_of(in, a[0], "from_tensor()'s tensor");
  return finish(in, TensorDescriptor::from_tensor(tensor, ints_of(in, a[1], "a block's size")));
}

constexpr NativeDef kConstruct = {"TensorDescriptor(base, shape, strides, block_shape, padding='zero')", construct,
                                  "a tensor that kernels read and write in blocks"};
constexpr NativeDef kFromTensor = {"from_tensor(tensor, block_shape)", from_tensor, "the descriptor of a whole tensor"};

}  // namespace

std::optional<Value> TensorDescriptorObject::attribute(Interp&, std::string_view name) {
  const TensorDescriptor& d = *descriptor;
  auto list = [](const auto& numbers) {
    std::vector<int64_t> wide(numbers.begin(), numbers.end());
    return size_value(wide);
  };
  if (name == "base") return wrap(d.tensor);
  if (name == "shape") return list(d.shape);
  if (name == "strides") return list(d.strides);
  if (name == "block_shape") return list(d.block_shape);
  return std::nullopt;
}

void TensorDescriptorObject::attribute_names(std::vector<std::string>& out) const {
  out.insert(out.end(), std::begin(kAttributes), std::end(kAttributes));
}

std::string TensorDescriptorObject::repr(Interp&) {
  return fmt::format("TensorDescriptor({}[{}], block_shape=[{}])", name(descriptor->tensor.dtype()),
                     fmt::join(descriptor->shape, ", "), fmt::join(descriptor->block_shape, ", "));
}

Value tensor_descriptor_class() {
  auto type = make<Opaque>("class 'TensorDescriptor'");
  auto native = make<Native>(kConstruct);
  type->on_call = [native](Interp& in, CallArgs& args) { return native->call(in, args); };
  type->members.set("from_tensor", make<Native>(kFromTensor));
  return type;
}

}  // namespace kiln::script
