// A folder of files that are executed or believed, such as compiled kernels: nobody but this user and root may have
// written there.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kiln/result.h"
#include "support/files.h"

namespace kiln {

/// The folder and its files are reached through one descriptor, so that what was checked is what is read. A folder or a
/// file is trusted that belongs to this user or to root and that its group and others cannot write; a file also is a
/// regular one, not a link, a pipe or a device. Errors are kIo and say what is wrong and what to do.
class TrustedFolder {
 public:
  /// `create`: made when it is not there, for this user alone, with its parents.
  static Result<TrustedFolder> open(const std::string& path, bool create);
  TrustedFolder(TrustedFolder&& other) noexcept;
  TrustedFolder& operator=(TrustedFolder&&) = delete;
  ~TrustedFolder();

  /// nullopt: there is none of that name.
  Result<std::optional<std::string>> read(const std::string& name) const;
  /// As write_file_atomic does, readable by this user alone.
  Status write(const std::string& name, std::string_view content) const;
  /// The regular files; `path` is the name alone.
  Result<std::vector<FileEntry>> list() const;
  /// When the file of that name was last modified, since the epoch; nullopt: there is none.
  std::optional<int64_t> modified_ns(const std::string& name) const;
  /// Sets the modification time to now. Failures do not matter.
  void touch(const std::string& name) const;
  Status remove(const std::string& name) const;

 private:
  TrustedFolder(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}

  std::string path_;
  int fd_ = -1;
};

/// A file by its path, under the rules of a file in such a folder; where it lies is not asked.
Result<std::string> read_trusted_file(const std::string& path);

}  // namespace kiln
