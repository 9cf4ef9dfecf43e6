#include "support/files.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "support/diag.h"
#include "support/environment.h"
#include "support/fd.h"
#include "support/knobs.h"

namespace kiln {

Diagnostic io_error(std::string_view verb, const std::string& path, int code) {
  return error(ErrorKind::kIo, "cannot {} '{}': {}", verb, path, std::strerror(code));
}

Result<std::string> read_file(const std::string& path) {
  Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (fd.get() < 0) return io_error("open", path, errno);
  struct stat st {};
  if (::fstat(fd.get(), &st) != 0) return io_error("read", path, errno);
  if (S_ISDIR(st.st_mode)) return io_error("read", path, EISDIR);
  if (static_cast<uint64_t>(st.st_size) > kLargestFile) return io_error("read", path, EFBIG);
  std::string text;
  text.reserve(static_cast<size_t>(st.st_size));
  char buffer[1 << 16];
  while (true) {
    ssize_t n = ::read(fd.get(), buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return io_error("read", path, errno);
    if (n == 0) return text;
    if (text.size() + static_cast<size_t>(n) > kLargestFile) return io_error("read", path, EFBIG);
    text.append(buffer, static_cast<size_t>(n));
  }
}

namespace {

/// 0, or errno.
int write_all(int fd, std::string_view content) {
  while (!content.empty()) {
    ssize_t n = ::write(fd, content.data(), content.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno;
    content.remove_prefix(static_cast<size_t>(n));
  }
  return 0;
}

}  // namespace

Result<FileWriter> FileWriter::open(const std::string& path) {
  struct stat st {};
  if (::stat(path.c_str(), &st) == 0 && !S_ISREG(st.st_mode)) {
    int special = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
    if (special < 0) return io_error("write", path, errno);
    return FileWriter(path, "", special);
  }
  static std::atomic<unsigned> counter{0};  // with the process id, makes the temporary name unique
  std::string temporary = fmt::format("{}.{}.{}.tmp", path, ::getpid(), counter.fetch_add(1));
  int fd = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (fd < 0) return io_error("write", path, errno);
  return FileWriter(path, std::move(temporary), fd);
}

FileWriter::FileWriter(FileWriter&& other) noexcept
    : path_(std::move(other.path_)),
      temporary_(std::exchange(other.temporary_, {})),
      fd_(std::exchange(other.fd_, -1)) {}

FileWriter::~FileWriter() {
  if (fd_ >= 0) ::close(fd_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

Status FileWriter::write(std::string_view content) {
  if (int code = write_all(fd_, content)) return io_error("write", path_, code);
  return {};
}

Status FileWriter::finish() {
  // A full disk may be reported only by close.
  if (::close(std::exchange(fd_, -1)) != 0) return io_error("write", path_, errno);
  if (temporary_.empty()) return {};
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) return io_error("write", path_, errno);
  temporary_.clear();
  return {};
}

Status write_file_atomic(const std::string& path, std::string_view content) {
  KILN_TRY(FileWriter file, FileWriter::open(path));
  KILN_CHECK_OK(file.write(content));
  return file.finish();
}

Status check_writable(const std::string& path) {
  struct stat st {};
  if (::stat(path.c_str(), &st) == 0 && !S_ISREG(st.st_mode)) {
    const int code = S_ISDIR(st.st_mode) ? EISDIR : ::access(path.c_str(), W_OK) == 0 ? 0 : errno;
    return code ? Status(io_error("write", path, code)) : Status();
  }
  auto file = FileWriter::open(path);  // given up at once
  return file.ok() ? Status() : Status(std::move(file.error()));
}

Status make_directories(const std::string& path) {
  for (size_t slash = path.find('/', 1);; slash = path.find('/', slash + 1)) {
    std::string part = path.substr(0, slash);
    if (::mkdir(part.c_str(), 0755) != 0 && errno != EEXIST) {
      int code = errno;
      struct stat st {};
      // A parent that exists but is not ours to create in (EROFS, EACCES on "/home") is no obstacle.
      if (::stat(part.c_str(), &st) != 0 || !S_ISDIR(st.st_mode)) return io_error("create folder", path, code);
    }
    if (slash == std::string::npos) break;
  }
  struct stat st {};
  if (::stat(path.c_str(), &st) != 0) return io_error("create folder", path, errno);
  if (!S_ISDIR(st.st_mode)) return io_error("create folder", path, ENOTDIR);
  return {};
}

Result<std::vector<FileEntry>> list_files(const std::string& folder) {
  std::vector<FileEntry> files;
  DIR* dir = ::opendir(folder.c_str());
  if (!dir) {
    if (errno == ENOENT) return files;
    return io_error("list", folder, errno);
  }
  while (dirent* entry = ::readdir(dir)) {
    std::string path = folder + "/" + entry->d_name;
    struct stat st {};
    if (::stat(path.c_str(), &st) != 0 || !S_ISREG(st.st_mode)) continue;
    files.push_back({path, st.st_size, st.st_mtim.tv_sec * 1'000'000'000LL + st.st_mtim.tv_nsec});
  }
  ::closedir(dir);
  return files;
}

void touch_file(const std::string& path) { (void)::utimensat(AT_FDCWD, path.c_str(), nullptr, 0); }

Result<std::string> cache_directory() {
  if (auto dir = knob(Knob::kCacheDir); !dir.empty()) return dir;
  if (auto xdg = environment("XDG_CACHE_HOME"); xdg && !xdg->empty()) return *xdg + "/kiln";
  if (auto home = environment("HOME"); home && !home->empty()) return *home + "/.cache/kiln";
  return error(ErrorKind::kIo,
               "no folder for the kernel cache: none of KILN_CACHE_DIR, XDG_CACHE_HOME and HOME is set");
}

}  // namespace kiln
