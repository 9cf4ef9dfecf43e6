// A file of tensors, read at places that its header names. Nothing of a header is believed: memory is taken only for
// what the file is long enough to hold, and each error begins with the file's path.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "kiln/tensor.h"
#include "support/diag.h"
#include "support/files.h"

namespace kiln::runtime {

inline constexpr size_t kMostDimensions = 64;  // of a tensor in a file, as in NumPy

/// A tensor under its name in a file.
struct NamedTensor {
  std::string name;
  Tensor tensor;
};

/// Reads go to the destination directly. Not mapped: that copies as often, pays for a fault per page, and ends the
/// process by SIGBUS when somebody shortens the file.
class InputFile {
 public:
  /// kIo for what is no regular file: opening a pipe would wait for whoever writes to it.
  static Result<InputFile> open(const std::string& path);
  /// A file of that many bytes that is open already; its errors name `path`.
  static InputFile of(std::string path, int fd, uint64_t size) { return {std::move(path), fd, size}; }
  InputFile(InputFile&& other) noexcept
      : path_(std::move(other.path_)), fd_(std::exchange(other.fd_, -1)), size_(other.size_) {}
  InputFile& operator=(InputFile&&) = delete;
  ~InputFile();

  const std::string& path() const { return path_; }
  uint64_t size() const { return size_; }
  /// kIo when the file does not reach that far.
  Status read(uint64_t offset, void* into, size_t bytes) const;
  Result<std::string> text(uint64_t offset, size_t bytes) const;
  /// Row-major elements. `swapped`: in the other byte order than this machine's.
  Result<Tensor> tensor(const Device& device, DType dtype, std::span<const int64_t> shape, uint64_t offset,
                        bool swapped = false) const;
  /// "PATH: what is wrong"
  template <class... Args>
  Diagnostic error(ErrorKind kind, fmt::format_string<Args...> f, Args&&... args) const {
    return Diagnostic{kind, path_ + ": " + fmt::format(f, std::forward<Args>(args)...), {}, {}};
  }

 private:
  InputFile(std::string path, int fd, uint64_t size) : path_(std::move(path)), fd_(fd), size_(size) {}

  std::string path_;
  int fd_ = -1;
  uint64_t size_ = 0;
};

/// Bytes of that many elements; nullopt when they, or the strides of such a tensor, are beyond 2^60.
std::optional<uint64_t> bytes_of(DType dtype, std::span<const int64_t> shape);

/// Appends a tensor's row-major bytes.
Status write_elements(FileWriter& file, const Tensor& tensor);

}  // namespace kiln::runtime
