// Zip archives: entries of .npz files and of PyTorch's. The format is PKWARE's APPNOTE.TXT 6.3: stored entries, which
// Kiln writes, and deflated ones, with the 64-bit fields that NumPy always writes.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/files/input_file.h"

namespace kiln::runtime {

struct ZipEntry {
  std::string name;  // in the archive
  uint16_t flags = 0, method = 0;
  uint32_t crc = 0;
  uint64_t stored = 0, bytes = 0;  // compressed and not
  uint64_t header = 0, begin = 0;  // places in the file: of its header, and of its first byte
};

/// In the order of the directory. Names differ, entries lie inside of the file and do not overlap. `kind`: what the
/// file should be, for errors.
Result<std::vector<ZipEntry>> read_zip(const InputFile& file, std::string_view kind);

/// An entry's bytes: of the archive itself from `begin` on, or of a file in memory that was inflated from it. Their
/// checksum was compared.
class ZipContent {
 public:
  static Result<ZipContent> open(const InputFile& archive, const ZipEntry& entry);
  const InputFile& file() const { return inflated_ ? *inflated_ : *archive_; }
  uint64_t begin() const { return begin_; }
  uint64_t bytes() const { return bytes_; }

 private:
  const InputFile* archive_ = nullptr;
  std::optional<InputFile> inflated_;
  uint64_t begin_ = 0, bytes_ = 0;
};

/// Writes stored entries one after the other; the file appears at finish().
class ZipWriter {
 public:
  static Result<ZipWriter> open(const std::string& path);
  /// The content is `before` and then `bytes`.
  Status add(std::string name, std::string_view before, std::string_view bytes);
  Status finish();

 private:
  explicit ZipWriter(FileWriter file) : file_(std::move(file)) {}

  FileWriter file_;
  std::string directory_;
  uint64_t place_ = 0, count_ = 0;
};

}  // namespace kiln::runtime
