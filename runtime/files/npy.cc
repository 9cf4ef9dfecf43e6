#include "runtime/files/npy.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>

namespace kiln::runtime {

namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
// NumPy pads headers to this so that files can be mapped into memory.
constexpr size_t kAlignment = 64;           // of the first element in the file
constexpr size_t kLongestHeader = 1 << 16;  // dtypes of structures can be long; those are none of ours

struct NpyType {
  DType dtype;
  std::string_view descr;
};
constexpr NpyType kTypes[] = {
    {DType::kI1, "|b1"},  {DType::kI8, "|i1"},  {DType::kU8, "|u1"},  {DType::kI16, "<i2"},
    {DType::kU16, "<u2"}, {DType::kI32, "<i4"}, {DType::kU32, "<u4"}, {DType::kI64, "<i8"},
    {DType::kU64, "<u8"}, {DType::kF16, "<f2"}, {DType::kF32, "<f4"}, {DType::kF64, "<f8"},
};

struct Header {
  DType dtype = DType::kF32;
  bool columns_first = false;
  bool swapped = false;  // its elements are big-endian
  std::vector<int64_t> shape;
};

/// What stands behind 'key': in the header's dictionary.
std::string_view entry(std::string_view header, std::string_view key) {
  const size_t at = header.find("'" + std::string(key) + "':");
  if (at == std::string_view::npos) return {};
  std::string_view rest = header.substr(at + key.size() + 3);
  while (rest.starts_with(' ')) rest.remove_prefix(1);
  return rest;
}

Result<Header> parse_header(std::string_view text, const InputFile& file) {
  auto broken = [&](std::string_view what) {
    return file.error(ErrorKind::kIo, "the header of the .npy file has no {}", what);
  };
  Header out;
  std::string_view descr = entry(text, "descr");
  if (!descr.starts_with('\'') || descr.find('\'', 1) == std::string_view::npos) {
    if (descr.starts_with('['))
      return file.error(ErrorKind::kUnsupported, "its elements are structures, which are no elements of a tensor");
    return broken("dtype");
  }
  descr = descr.substr(1, descr.find('\'', 1) - 1);
  const auto type = std::find_if(std::begin(kTypes), std::end(kTypes), [&](const NpyType& t) {
    // "<i1" is "|i1": one byte has no order.
    return descr.size() == 3 && t.descr.substr(1) == descr.substr(1) &&
           (t.descr[0] == '|' || descr[0] == '<' || descr[0] == '>');
  });
  if (descr == "|O")
    return file.error(ErrorKind::kUnsupported, "its elements are Python objects, which Kiln does not read");
  if (type == std::end(kTypes))
    return with_note(file.error(ErrorKind::kUnsupported, "tensors have no dtype '{}'", descr),
                     descr.ends_with("V2") || descr.ends_with("V1")
                         ? "help: NumPy has no bf16 and fp8: save them as .safetensors"
                         : "help: convert it in NumPy, as with a.astype('<f4')");
  out.dtype = type->dtype;
  out.swapped = descr[0] == '>' && size_of(out.dtype) > 1;
  const std::string_view order = entry(text, "fortran_order");
  if (!order.starts_with("True") && !order.starts_with("False")) return broken("order");
  out.columns_first = order.starts_with("True");
  std::string_view shape = entry(text, "shape");
  const size_t end = shape.find(')');
  if (!shape.starts_with('(') || end == std::string_view::npos) return broken("shape");
  shape = shape.substr(1, end - 1);
  while (!shape.empty()) {
    if (shape[0] == ' ' || shape[0] == ',') {
      shape.remove_prefix(1);
      continue;
    }
    int64_t size = -1;
    const auto [stop, code] = std::from_chars(shape.data(), shape.data() + shape.size(), size);
    if (code != std::errc{} || size < 0) return broken("shape");
    out.shape.push_back(size);
    shape.remove_prefix(static_cast<size_t>(stop - shape.data()));
  }
  if (out.shape.size() > kMostDimensions)
    return file.error(ErrorKind::kUnsupported, "it has {} dimensions", out.shape.size());
  return out;
}

}  // namespace

Result<std::string> npy_header(const Tensor& tensor) {
  const auto type =
      std::find_if(std::begin(kTypes), std::end(kTypes), [&](const NpyType& t) { return t.dtype == tensor.dtype(); });
  if (type == std::end(kTypes))
    return with_note(error(ErrorKind::kUnsupported, ".npy files have no {}", info(tensor.dtype()).torch),
                     "help: convert first, with .float(), or save it as .safetensors");
  std::string shape;
  // The header is a Python literal, in which a tuple of one element is written (3,).
  for (int64_t d : tensor.shape()) shape += fmt::format("{}{}", d, tensor.rank() == 1 ? "," : ", ");
  if (tensor.rank() > 1) shape.resize(shape.size() - 2);
  std::string text = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", type->descr, shape);
  const size_t before = kMagic.size() + 4;
  // The format wants spaces and a final newline, which count to the header's length.
  text.resize((before + text.size() + 1 + kAlignment - 1) / kAlignment * kAlignment - before - 1, ' ');
  text += '\n';
  std::string head(kMagic);
  head += {'\x01', '\x00', static_cast<char>(text.size() & 0xff), static_cast<char>(text.size() >> 8)};
  return head + text;
}

Status save_npy(const Tensor& tensor, const std::string& path) {
  KILN_TRY(std::string header, npy_header(tensor));
  KILN_TRY(FileWriter file, FileWriter::open(path));
  KILN_CHECK_OK(file.write(header));
  KILN_CHECK_OK(write_elements(file, tensor));
  return file.finish();
}

Result<Tensor> read_npy(const Device& device, const InputFile& file, uint64_t begin, uint64_t end) {
  unsigned char head[12] = {};
  if (end - begin < 10) return file.error(ErrorKind::kIo, "it is no .npy file");
  KILN_CHECK_OK(file.read(begin, head, std::min<size_t>(sizeof head, end - begin)));
  if (std::memcmp(head, kMagic.data(), kMagic.size()) != 0) return file.error(ErrorKind::kIo, "it is no .npy file");
  size_t length = head[8] | static_cast<size_t>(head[9]) << 8;
  const bool is_long = head[6] >= 2;  // its length has four bytes
  if (is_long) length |= static_cast<size_t>(head[10]) << 16 | static_cast<size_t>(head[11]) << 24;
  if (length > kLongestHeader) return file.error(ErrorKind::kUnsupported, "a header of {} bytes", length);
  begin += is_long ? 12 : 10;
  if (begin > end || length > end - begin) return file.error(ErrorKind::kIo, "the file ends too early");
  KILN_TRY(std::string text, file.text(begin, length));
  begin += length;
  KILN_TRY(Header header, parse_header(text, file));
  std::vector<int64_t> stored = header.shape;
  if (header.columns_first) std::reverse(stored.begin(), stored.end());
  // The file says how much there is before memory is taken for what the header says.
  const auto bytes = bytes_of(header.dtype, stored);
  if (!bytes) return file.error(ErrorKind::kMemory, "no memory holds shape [{}]", fmt::join(header.shape, ", "));
  if (*bytes > end - begin)
    return file.error(ErrorKind::kIo, "the file ends too early: its header says {} bytes of elements, there are {}",
                      *bytes, end - begin);
  KILN_TRY(Tensor t, file.tensor(device, header.dtype, stored, begin, header.swapped));
  if (!header.columns_first) return t;
  const std::vector<int64_t> strides(t.strides().rbegin(), t.strides().rend());
  return t.as_strided(header.shape, strides, 0);
}

Result<Tensor> load_npy(const Device& device, const std::string& path) {
  KILN_TRY(InputFile file, InputFile::open(path));
  return read_npy(device, file, 0, file.size());
}

}  // namespace kiln::runtime
