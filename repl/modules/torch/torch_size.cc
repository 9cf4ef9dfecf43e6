// torch.Size: a tuple of dimensions that prints as what it is and knows how many elements they make.
#include "repl/modules/torch/tensor_object.h"

namespace kiln::script {

namespace {

constexpr std::string_view kSizeName = "torch.Size";

Value size_numel(Interp& in, NativeArgs& a) {
  int64_t n = 1;
  for (const Value& v : in.to_vector(*a.self))
    if (__builtin_mul_overflow(n, in.to_int(v, "a dimension"), &n))
      in.fail_as("OverflowError", "the number of elements does not fit into 64 bits");
  return Value::integer(n);
}

/// torch.Size(sizes)
Value make_size(Interp& in, NativeArgs& a) {
  Shape shape;
  if (!a[0].missing())
    for (const Value& v : in.to_vector(a[0])) {
      if (v.is_float()) in.fail(ErrorKind::kType, "torch.Size() takes ints, got '{}'", in.type_name(v));
      shape.push_back(in.to_int(v, "a size"));
    }
  return size_value(shape);
}
constexpr NativeDef kMakeSize{"Size(sizes=)", make_size, "a shape: a tuple of ints"};

constexpr NativeDef kSizeMethods[] = {
    {"numel()", size_numel, "of a torch.Size: the product of the dimensions"},
};

}  // namespace

Value size_value(std::span<const int64_t> shape) {
  std::vector<Value> items;
  for (int64_t d : shape) items.push_back(Value::integer(d));
  return make<Tuple>(std::move(items), kSizeName);
}

void install_size_methods(Interp& in) { in.add_methods({Kind::kTuple, kSizeMethods}); }

Value size_type(Interp& in) { return in.add_tuple_type(kSizeName, make<Native>(kMakeSize)); }

}  // namespace kiln::script
