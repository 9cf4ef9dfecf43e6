#include "runtime/tensor/npy.h"

#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <fstream>
#include <numeric>

#include "support/diag.h"
#include "support/files.h"

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

Result<Header> parse_header(std::string_view text, const std::string& path) {
  auto broken = [&](std::string_view what) {
    return error(ErrorKind::kIo, "{}: the header of the .npy file has no {}", path, what);
  };
  Header out;
  std::string_view descr = entry(text, "descr");
  if (!descr.starts_with('\'') || descr.find('\'', 1) == std::string_view::npos) {
    if (descr.starts_with('['))
      return error(ErrorKind::kUnsupported, "{}: its elements are structures, which are no elements of a tensor", path);
    return broken("dtype");
  }
  descr = descr.substr(1, descr.find('\'', 1) - 1);
  const auto type = std::find_if(std::begin(kTypes), std::end(kTypes), [&](const NpyType& t) {
    // "<i1" is "|i1": one byte has no order.
    return t.descr == descr || (t.descr[0] == '|' && descr.size() == 3 && t.descr.substr(1) == descr.substr(1));
  });
  if (type == std::end(kTypes))
    return with_note(error(ErrorKind::kUnsupported, "{}: tensors have no dtype '{}'", path, descr),
                     "help: convert it in NumPy, as with a.astype('<f4')");
  out.dtype = type->dtype;
  const std::string_view order = entry(text, "fortran_order");
  if (!order.starts_with("True") && !order.starts_with("False")) return broken("order");
  out.columns_first = order.starts_with("True");
  std::string_view shape = entry(text, "shape");
  const size_t end = shape.find(')');
  if (!shape.starts_with('(') || end == std::string_view::npos) return broken("shape");
  shape = shape.substr(1, end - 1);
  double elements = 1;
  while (!shape.empty()) {
    if (shape[0] == ' ' || shape[0] == ',') {
      shape.remove_prefix(1);
      continue;
    }
    int64_t size = -1;
    const auto [stop, code] = std::from_chars(shape.data(), shape.data() + shape.size(), size);
    if (code != std::errc{} || size < 0) return broken("shape");
    elements *= static_cast<double>(std::max<int64_t>(size, 1));  // strides count them where a dimension is empty too
    out.shape.push_back(size);
    shape.remove_prefix(static_cast<size_t>(stop - shape.data()));
  }
  if (elements * size_of(out.dtype) > 0x1p60)
    return error(ErrorKind::kMemory, "{}: no memory holds {:.3g} elements", path, elements);
  return out;
}

}  // namespace

Status save_npy(const Tensor& tensor, const std::string& path) {
  const auto type =
      std::find_if(std::begin(kTypes), std::end(kTypes), [&](const NpyType& t) { return t.dtype == tensor.dtype(); });
  if (type == std::end(kTypes))
    return with_note(error(ErrorKind::kUnsupported, ".npy files have no {}", info(tensor.dtype()).torch),
                     "help: convert first, with .float()");
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
  KILN_TRY(std::vector<std::byte> bytes, tensor.to_bytes());
  KILN_TRY(FileWriter file, FileWriter::open(path));
  KILN_CHECK_OK(file.write(head + text));
  KILN_CHECK_OK(file.write({reinterpret_cast<const char*>(bytes.data()), bytes.size()}));
  return file.finish();
}

Result<Tensor> load_npy(const Device& device, const std::string& path) {
  struct stat st {};
  if (::stat(path.c_str(), &st) == 0 && !S_ISREG(st.st_mode))  // opening a pipe would wait for whoever writes to it
    return error(ErrorKind::kIo, "{}: it is no regular file", path);
  std::ifstream file(path, std::ios::binary);
  if (!file) return error(ErrorKind::kIo, "{}: {}", path, std::strerror(errno));
  auto ends = [&] { return error(ErrorKind::kIo, "{} ends too early for a .npy file", path); };
  unsigned char head[12] = {};
  file.read(reinterpret_cast<char*>(head), 10);
  if (!file || std::memcmp(head, kMagic.data(), kMagic.size()) != 0)
    return error(ErrorKind::kIo, "{} is no .npy file", path);
  size_t length = head[8] | static_cast<size_t>(head[9]) << 8;
  if (head[6] >= 2) {  // its length has four bytes
    file.read(reinterpret_cast<char*>(head + 10), 2);
    length |= static_cast<size_t>(head[10]) << 16 | static_cast<size_t>(head[11]) << 24;
  }
  if (length > kLongestHeader) return error(ErrorKind::kUnsupported, "{}: a header of {} bytes", path, length);
  std::string text(length, ' ');
  file.read(text.data(), static_cast<std::streamsize>(length));
  if (!file) return ends();
  KILN_TRY(Header header, parse_header(text, path));
  std::vector<int64_t> stored = header.shape;
  if (header.columns_first) std::reverse(stored.begin(), stored.end());
  const int64_t elements = std::accumulate(stored.begin(), stored.end(), int64_t{1}, std::multiplies<>());
  // The file says how much there is before memory is taken for what the header says.
  const auto here = file.tellg();
  file.seekg(0, std::ios::end);
  const int64_t bytes = elements * size_of(header.dtype);
  if (file.tellg() - here < bytes) return ends();
  file.seekg(here);
  std::vector<std::byte> data(static_cast<size_t>(bytes));
  file.read(reinterpret_cast<char*>(data.data()), bytes);
  if (!file) return ends();
  KILN_TRY(Tensor t, Tensor::from_host(device, header.dtype, stored, data.data(), data.size()));
  if (!header.columns_first) return t;
  const std::vector<int64_t> strides(t.strides().rbegin(), t.strides().rend());
  return t.as_strided(header.shape, strides, 0);
}

}  // namespace kiln::runtime
