#include "runtime/files/input_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "support/pieces.h"

namespace kiln::runtime {

Result<InputFile> InputFile::open(const std::string& path) {
  // Without O_NONBLOCK the open of a pipe waits, and what it is can be asked only afterwards.
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return kiln::error(ErrorKind::kIo, "{}: {}", path, std::strerror(errno));
  InputFile file(path, fd, 0);
  struct stat st {};
  if (::fstat(fd, &st) != 0) return file.error(ErrorKind::kIo, "{}", std::strerror(errno));
  if (!S_ISREG(st.st_mode))
    return file.error(ErrorKind::kIo, "it is {}, no file", S_ISDIR(st.st_mode) ? "a folder" : "a pipe or a device");
  file.size_ = static_cast<uint64_t>(st.st_size);
  return file;
}

InputFile::~InputFile() {
  if (fd_ >= 0) ::close(fd_);
}

Status InputFile::read(uint64_t offset, void* into, size_t bytes) const {
  char* to = static_cast<char*>(into);
  while (bytes > 0) {
    // pread has no position in the file, so pieces may be read by several threads. A file that was cut meanwhile gives
    // 0 bytes.
    const ssize_t n = offset > INT64_MAX ? 0 : ::pread(fd_, to, bytes, static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return error(ErrorKind::kIo, "{}", std::strerror(errno));
    if (n == 0) return error(ErrorKind::kIo, "the file ends too early");
    to += n, offset += static_cast<uint64_t>(n), bytes -= static_cast<size_t>(n);
  }
  return {};
}

Result<std::string> InputFile::text(uint64_t offset, size_t bytes) const {
  std::string out(bytes, '\0');
  KILN_CHECK_OK(read(offset, out.data(), bytes));
  return out;
}

namespace {

void swap_bytes(std::byte* data, size_t bytes, size_t width) {
  for (size_t i = 0; i < bytes; i += width) std::reverse(data + i, data + i + width);
}

}  // namespace

Result<Tensor> InputFile::tensor(const Device& device, DType dtype, std::span<const int64_t> shape, uint64_t offset,
                                 bool swapped) const {
  const auto bytes = bytes_of(dtype, shape);
  if (!bytes) return error(ErrorKind::kMemory, "no memory holds shape [{}]", fmt::join(shape, ", "));
  if (offset > size_ || *bytes > size_ - offset) return error(ErrorKind::kIo, "the file ends too early");
  const auto width = static_cast<size_t>(size_of(dtype));
  if (device.is_cuda()) {
    std::vector<std::byte> data(*bytes);
    KILN_CHECK_OK(read(offset, data.data(), data.size()));
    if (swapped) swap_bytes(data.data(), data.size(), width);
    return Tensor::from_host(device, dtype, shape, data.data(), data.size());
  }
  KILN_TRY(Tensor t, Tensor::empty(device, dtype, shape));
  auto* data = reinterpret_cast<std::byte*>(t.address());
  KILN_CHECK_OK(in_pieces_of(
      *bytes, [&](size_t first, size_t last) { return read(offset + first, data + first, last - first); }));
  if (swapped) swap_bytes(data, *bytes, width);
  return t;
}

std::optional<uint64_t> bytes_of(DType dtype, std::span<const int64_t> shape) {
  // In floating point first: sizes of a file's header may have a product of more than 64 bits.
  double reach = size_of(dtype);
  uint64_t bytes = static_cast<uint64_t>(size_of(dtype));
  // A 0 among them does not make the others small: strides are products of sizes, too.
  for (int64_t d : shape) reach *= static_cast<double>(std::max<int64_t>(d, 1));
  if (reach > 0x1p60) return std::nullopt;
  for (int64_t d : shape) bytes *= static_cast<uint64_t>(d);
  return bytes;
}

Status write_elements(FileWriter& file, const Tensor& tensor) {
  if (tensor.numel() == 0) return {};
  KILN_TRY(Tensor t, tensor.contiguous());
  if (!t.device().is_cuda()) {
    // Elements on the host are read in place, once what writes them is done.
    KILN_CHECK_OK(t.device().synchronize());
    const auto* data = reinterpret_cast<const char*>(t.address());
    return in_pieces_of(static_cast<size_t>(t.numel() * size_of(t.dtype())), [&](size_t first, size_t last) {
      return file.write({data + first, last - first});
    });
  }
  KILN_TRY(std::vector<std::byte> bytes, t.to_bytes());
  return in_pieces_of(bytes.size(), [&](size_t first, size_t last) {
    return file.write({reinterpret_cast<const char*>(bytes.data()) + first, last - first});
  });
}

}  // namespace kiln::runtime
