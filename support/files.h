// Files: whole-file reads, atomic writes, folders. Errors are kIo and carry the path and the system's words.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kiln/result.h"

namespace kiln {

/// What is larger is no program, kernel or list of ours; ranges in texts count in 32 bits.
inline constexpr size_t kLargestFile = size_t{256} << 20;

/// The whole file, of kLargestFile bytes at most.
Result<std::string> read_file(const std::string& path);

/// Writes a temporary file in the same folder and renames it: a reader sees the old content or the new, never a part.
/// Not synced to the disk: after a power loss the file may be missing or torn, so contents that matter carry a
/// checksum. What is there and no regular file, such as a pipe or /dev/stdout, is written in place.
Status write_file_atomic(const std::string& path, std::string_view content);

/// The same for a content that comes in pieces: there when finish() says so, and else as if nothing had been written.
class FileWriter {
 public:
  static Result<FileWriter> open(const std::string& path);
  FileWriter(FileWriter&& other) noexcept;
  FileWriter& operator=(FileWriter&&) = delete;
  ~FileWriter();

  Status write(std::string_view content);
  Status finish();

 private:
  FileWriter(std::string path, std::string temporary, int fd)
      : path_(std::move(path)), temporary_(std::move(temporary)), fd_(fd) {}

  std::string path_, temporary_;  // temporary_ is empty where it is written in place
  int fd_ = -1;
};

/// Whether a file could be written there now; nothing is left behind. kIo as FileWriter gives it.
Status check_writable(const std::string& path);

/// `mkdir -p`.
Status make_directories(const std::string& path);

struct FileEntry {
  std::string path;
  int64_t bytes = 0;
  int64_t modified_ns = 0;  // since the epoch
};
/// The regular files of a folder (not of its subfolders); an absent folder is empty.
Result<std::vector<FileEntry>> list_files(const std::string& folder);

/// Sets the modification time to now; used as "last used". Failures do not matter.
void touch_file(const std::string& path);

/// KILN_CACHE_DIR, else $XDG_CACHE_HOME/kiln, else $HOME/.cache/kiln; kIo when none of them is set. Not created.
Result<std::string> cache_directory();

}  // namespace kiln
