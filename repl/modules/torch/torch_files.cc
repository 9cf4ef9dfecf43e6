// torch.save and torch.load: files of tensors, whose extension decides the format.
#include <fmt/format.h>

#include <algorithm>

#include "repl/modules/torch/tensor_object.h"
#include "repl/script/value/bytes.h"
#include "runtime/files/npy.h"
#include "runtime/files/safetensors.h"
#include "runtime/files/zip.h"

namespace kiln::script {

namespace {

enum class TensorFormat { kNpy, kNpz, kSafetensors };

/// nullopt: PyTorch's own format, which torch._pickles reads and writes.
std::optional<TensorFormat> format_of(const std::string& path) {
  if (path.ends_with(".npy")) return TensorFormat::kNpy;
  if (path.ends_with(".npz")) return TensorFormat::kNpz;
  if (path.ends_with(".safetensors")) return TensorFormat::kSafetensors;
  return std::nullopt;
}

/// An object with write() or read(), as open() and io.BytesIO() give one.
bool is_stream(Interp& in, const Value& v, std::string_view method) {
  return v.object() && !v.get<Str>() && in.find_attribute(v, method).has_value();
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
  auto pickled = [&](const Value& f) {
    return in.call(*in.import_module("torch._pickles")->attribute(in, "save"), {a[0], f});
  };
  if (is_stream(in, a[1], "write")) return pickled(a[1]);
  const std::string path = path_of(in, a[1]);
  const std::optional<TensorFormat> format = format_of(path);
  if (!format) return pickled(Value::str(path));
  switch (*format) {
    case TensorFormat::kNpy:
      if (a[0].get<Dict>() || a[0].get<List>() || a[0].get<Tuple>())
        in.fail(with_note(error(ErrorKind::kType, "a .npy file holds one tensor, not '{}'", in.type_name(a[0])),
                          "help: save it as .npz or .safetensors"));
      in.check(runtime::save_npy(seen_tensor(in, a[0], "save()"), path));
      break;
    case TensorFormat::kNpz:
      in.check(runtime::save_npz(named_tensors(in, a[0], *format), path));
      break;
    case TensorFormat::kSafetensors:
      in.check(runtime::save_safetensors({named_tensors(in, a[0], *format), {}}, path));
      break;
  }
  return Value::none();
}

Value load(Interp& in, NativeArgs& a) {
  if (given(a[3]) && in.truth(a[3]))
    in.fail(with_note(error(ErrorKind::kUnsupported,
                            "load() maps no files: one that is cut short while a tensor lies in it ends the process"),
                      "help: leave mmap=True out; elements are read straight into the tensor's memory"));
  auto pickled = [&](const Value& f) {
    return in.call(*in.import_module("torch._pickles")->attribute(in, "load"), {f, given(a[1]) ? a[1] : Value::none()});
  };
  if (is_stream(in, a[0], "read")) return pickled(a[0]);
  const std::string path = path_of(in, a[0]);
  const std::optional<TensorFormat> format = format_of(path);
  if (!format) return pickled(Value::str(path));
  const Device device = given(a[1]) ? device_of(in, a[1]) : torch_state(in).device();
  std::vector<runtime::NamedTensor> tensors;
  switch (*format) {
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
     "what save() wrote; of a .npy file a tensor, of a .npz or .safetensors file a dict of tensors"},
    {"save(obj, f)", save,
     "writes tensors, numbers, texts and collections of them as PyTorch does; by the name, a .npy, .npz or "
     ".safetensors file of tensors"},
};

// --- what torch._pickles needs: archives of texts and of elements

/// save_zip(path, entries): pairs of a name and bytes, or the tensor whose elements they are.
Value save_zip(Interp& in, NativeArgs& a) {
  runtime::ZipWriter archive = in.take(runtime::ZipWriter::open(in.to_text(a[0], "the file")));
  for (const Value& pair : in.to_vector(a[1])) {
    const std::vector<Value> parts = in.to_vector(pair);
    const std::string name = in.to_text(parts[0], "a name");
    if (auto* bytes = parts[1].get<Bytes>()) {
      in.check(archive.add(name, {}, bytes->data));
    } else {
      const std::vector<std::byte> elements = taken(in, seen_tensor(in, parts[1], "save()").to_bytes());
      in.check(archive.add(name, {}, {reinterpret_cast<const char*>(elements.data()), elements.size()}));
    }
  }
  in.check(archive.finish());
  return Value::none();
}

/// load_zip(path, is_text): a dict of names to bytes where is_text(name), else to tensors of uint8.
Value load_zip(Interp& in, NativeArgs& a) {
  const runtime::InputFile file = in.take(runtime::InputFile::open(in.to_text(a[0], "the file")));
  auto out = make<Dict>();
  for (const runtime::ZipEntry& e : in.take(runtime::read_zip(file, "file of PyTorch's"))) {
    const runtime::ZipContent content = in.take(runtime::ZipContent::open(file, e));
    if (in.truth(in.call(a[1], {Value::str(e.name)}))) {
      out->table.set(e.name, make<Bytes>(in.take(content.file().text(content.begin(), content.bytes()))));
    } else {
      const int64_t shape[] = {static_cast<int64_t>(content.bytes())};
      const Device host = described_device(in, Value::str("cpu"));
      out->table.set(e.name, wrap(in.take(content.file().tensor(host, DType::kU8, shape, content.begin()))));
    }
  }
  return out;
}

constexpr NativeDef kArchives[] = {
    {"load_zip(path, is_text)", load_zip, "the entries of an archive: bytes, or tensors of uint8"},
    {"save_zip(path, entries)", save_zip, "writes an archive of bytes and of tensors' elements"},
};

}  // namespace

std::span<const NativeDef> file_functions() { return kFileFunctions; }
std::span<const NativeDef> archive_functions() { return kArchives; }

}  // namespace kiln::script
