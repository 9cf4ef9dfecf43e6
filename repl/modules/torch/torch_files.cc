// torch.save and torch.load: files of tensors, whose extension decides the format.
#include <fmt/format.h>

#include <algorithm>

#include "repl/modules/torch/tensor_object.h"
#include "runtime/files/npy.h"
#include "runtime/files/safetensors.h"

namespace kiln::script {

namespace {

enum class TensorFormat { kNpy, kNpz, kSafetensors };

TensorFormat format_of(Interp& in, const std::string& path) {
  if (path.ends_with(".npy")) return TensorFormat::kNpy;
  if (path.ends_with(".npz")) return TensorFormat::kNpz;
  if (path.ends_with(".safetensors")) return TensorFormat::kSafetensors;
  const bool pickled = path.ends_with(".pt") || path.ends_with(".pth") || path.ends_with(".bin");
  in.fail(with_note(
      pickled ? error(ErrorKind::kUnsupported, "'{}': Kiln neither reads nor writes pickles, which are programs", path)
              : error(ErrorKind::kUnsupported,
                      "'{}' is none of .npy, .npz and .safetensors, which Kiln saves and loads", path),
      "help: torch.save(x, 'x.npy'), or torch.save({'x': x}, 'x.safetensors')"));
}

std::string path_of(Interp& in, const Value& v) {
  if (auto fspath = v.object() ? in.find_attribute(v, "__fspath__") : std::nullopt)
    return in.to_text(in.call(*fspath, {}), "the file");
  return in.to_text(v, "the file");
}

std::vector<runtime::NamedTensor> named_tensors(Interp& in, const Value& v, TensorFormat format) {
  std::vector<runtime::NamedTensor> out;
  auto add = [&](std::string name, const Value& value) {
    auto* t = value.get<TensorObject>();
    if (!t) in.fail(ErrorKind::kType, "save() writes tensors; '{}' is '{}'", name, in.type_name(value));
    out.push_back({std::move(name), t->tensor(in)});
  };
  if (auto* dict = v.get<Dict>()) {
    for (const Table::Entry& e : dict->table.live()) add(in.to_text(e.key, "a tensor's name"), e.value);
    return out;
  }
  if (format == TensorFormat::kSafetensors)
    in.fail(with_note(
        error(ErrorKind::kType, "a .safetensors file holds named tensors, a dict of them, not '{}'", in.type_name(v)),
        "help: torch.save({'x': x}, 'x.safetensors')"));
  // As numpy.savez names those that come without.
  if (v.get<List>() || v.get<Tuple>()) {
    for (const Value& item : in.to_vector(v)) add(fmt::format("arr_{}", out.size()), item);
  } else {
    add("arr_0", v);
  }
  return out;
}

Value save(Interp& in, NativeArgs& a) {
  const std::string path = path_of(in, a[1]);
  switch (const TensorFormat format = format_of(in, path)) {
    case TensorFormat::kNpy:
      if (a[0].get<Dict>() || a[0].get<List>() || a[0].get<Tuple>())
        in.fail(with_note(error(ErrorKind::kType, "a .npy file holds one tensor, not '{}'", in.type_name(a[0])),
                          "help: save it as .npz or .safetensors"));
      in.check(runtime::save_npy(seen_tensor(in, a[0], "save()"), path));
      break;
    case TensorFormat::kNpz:
      in.check(runtime::save_npz(named_tensors(in, a[0], format), path));
      break;
    case TensorFormat::kSafetensors:
      in.check(runtime::save_safetensors({named_tensors(in, a[0], format), {}}, path));
      break;
  }
  return Value::none();
}

Value load(Interp& in, NativeArgs& a) {
  if (given(a[3]) && in.truth(a[3]))
    in.fail(with_note(error(ErrorKind::kUnsupported,
                            "load() maps no files: one that is cut short while a tensor lies in it ends the process"),
                      "help: leave mmap=True out; elements are read straight into the tensor's memory"));
  const Device device = given(a[1]) ? device_of(in, a[1]) : torch_state(in).device();
  const std::string path = path_of(in, a[0]);
  std::vector<runtime::NamedTensor> tensors;
  switch (format_of(in, path)) {
    case TensorFormat::kNpy:
      return wrap(in.take(runtime::load_npy(device, path)));
    case TensorFormat::kNpz:
      tensors = in.take(runtime::load_npz(device, path));
      break;
    case TensorFormat::kSafetensors:
      tensors = in.take(runtime::load_safetensors(device, path)).tensors;
      break;
  }
  auto dict = make<Dict>();
  for (runtime::NamedTensor& t : tensors) dict->table.set(t.name, wrap(std::move(t.tensor)));
  return dict;
}

constexpr NativeDef kFileFunctions[] = {
    {"load(f, map_location=None, *, weights_only=True, mmap=None)", load,
     "the tensor of a .npy file, or a dict of those of a .npz or .safetensors file"},
    {"save(obj, f)", save, "writes a tensor to a .npy file, or a dict of tensors to a .npz or .safetensors file"},
};

}  // namespace

std::span<const NativeDef> file_functions() { return kFileFunctions; }

}  // namespace kiln::script
