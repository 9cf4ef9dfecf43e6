#include "support/trusted_folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>

#include "support/diag.h"
#include "support/fd.h"

namespace kiln {
namespace {

int64_t nanoseconds(const timespec& t) { return t.tv_sec * 1'000'000'000LL + t.tv_nsec; }

/// Why others may have written there; empty: they cannot.
std::string distrust(const struct stat& st) {
  if (st.st_uid != ::geteuid() && st.st_uid != 0) return fmt::format("it belongs to another user ({})", st.st_uid);
  if (st.st_mode & (S_IWGRP | S_IWOTH))
    return fmt::format("others may write there (mode {:o}; chmod go-w takes that away)", st.st_mode & 07777);
  return {};
}

/// Makes what is missing of the path, for this user alone.
int make_private(const std::string& path) {
  for (size_t slash = path.find('/', 1);; slash = path.find('/', slash + 1)) {
    if (::mkdir(path.substr(0, slash).c_str(), 0700) != 0 && errno != EEXIST && slash == std::string::npos)
      return errno;
    if (slash == std::string::npos) return 0;
  }
}

/// nullopt: there is none of that name. `path` is for messages.
Result<std::optional<std::string>> read_checked(int folder, const std::string& name, const std::string& path) {
  // Opening a pipe would wait for whoever writes to it.
  const Fd fd(::openat(folder, name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (fd.get() < 0 && errno == ENOENT) return std::optional<std::string>();
  if (fd.get() < 0) return io_error("open", path, errno);
  struct stat st {};
  if (::fstat(fd.get(), &st) != 0) return io_error("read", path, errno);
  if (!S_ISREG(st.st_mode)) return error(ErrorKind::kIo, "'{}' is not trusted: it is no regular file", path);
  if (std::string why = distrust(st); !why.empty()) return error(ErrorKind::kIo, "'{}' is not trusted: {}", path, why);
  if (static_cast<uint64_t>(st.st_size) > kLargestFile) return io_error("read", path, EFBIG);
  std::string text(static_cast<size_t>(st.st_size), '\0');
  size_t got = 0;
  while (got < text.size()) {
    const ssize_t n = ::read(fd.get(), text.data() + got, text.size() - got);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return io_error("read", path, errno);
    if (n == 0) break;  // it has become shorter
    got += static_cast<size_t>(n);
  }
  text.resize(got);
  return std::optional(std::move(text));
}

}  // namespace

Result<TrustedFolder> TrustedFolder::open(const std::string& path, bool create) {
  constexpr int kFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
  int fd = ::open(path.c_str(), kFlags);
  if (fd < 0 && errno == ENOENT && create) {
    if (int code = make_private(path)) return io_error("create folder", path, code);
    fd = ::open(path.c_str(), kFlags);
  }
  if (fd < 0) return io_error("open folder", path, errno);
  TrustedFolder folder(path, fd);
  struct stat st {};
  if (::fstat(fd, &st) != 0) return io_error("open folder", path, errno);
  if (std::string why = distrust(st); !why.empty())
    return error(ErrorKind::kIo, "the folder '{}' is not trusted: {}", path, why);
  return folder;
}

TrustedFolder::TrustedFolder(TrustedFolder&& other) noexcept
    : path_(std::move(other.path_)), fd_(std::exchange(other.fd_, -1)) {}

TrustedFolder::~TrustedFolder() {
  if (fd_ >= 0) ::close(fd_);
}

Result<std::optional<std::string>> TrustedFolder::read(const std::string& name) const {
  return read_checked(fd_, name, path_ + "/" + name);
}

Result<std::string> read_trusted_file(const std::string& path) {
  KILN_TRY(std::optional<std::string> text, read_checked(AT_FDCWD, path, path));
  if (!text) return io_error("open", path, ENOENT);
  return *std::move(text);
}

Status TrustedFolder::write(const std::string& name, std::string_view content) const {
  const std::string path = path_ + "/" + name;
  static std::atomic<unsigned> counter{0};  // with the process id, makes the temporary name unique
  const std::string temporary = fmt::format("{}.{}.{}.tmp", name, ::getpid(), counter.fetch_add(1));
  const int fd = ::openat(fd_, temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (fd < 0) return io_error("write", path, errno);
  int code = 0;
  while (!content.empty() && !code) {
    const ssize_t n = ::write(fd, content.data(), content.size());
    if (n >= 0)
      content.remove_prefix(static_cast<size_t>(n));
    else if (errno != EINTR)
      code = errno;
  }
  // A full disk may be reported only by close.
  if (::close(fd) != 0 && !code) code = errno;
  if (!code && ::renameat(fd_, temporary.c_str(), fd_, name.c_str()) != 0) code = errno;
  if (!code) return {};
  ::unlinkat(fd_, temporary.c_str(), 0);
  return io_error("write", path, code);
}

Result<std::vector<FileEntry>> TrustedFolder::list() const {
  const int own = ::openat(fd_, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);  // a DIR closes its descriptor
  DIR* dir = own < 0 ? nullptr : ::fdopendir(own);
  if (!dir) {
    const int code = errno;
    if (own >= 0) ::close(own);
    return io_error("list", path_, code);
  }
  std::vector<FileEntry> files;
  while (dirent* entry = ::readdir(dir)) {
    struct stat st {};
    if (::fstatat(fd_, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(st.st_mode)) continue;
    files.push_back({entry->d_name, st.st_size, nanoseconds(st.st_mtim)});
  }
  ::closedir(dir);
  return files;
}

std::optional<int64_t> TrustedFolder::modified_ns(const std::string& name) const {
  struct stat st {};
  if (::fstatat(fd_, name.c_str(), &st, AT_SYMLINK_NOFOLLOW) != 0) return std::nullopt;
  return nanoseconds(st.st_mtim);
}

void TrustedFolder::touch(const std::string& name) const {
  (void)::utimensat(fd_, name.c_str(), nullptr, AT_SYMLINK_NOFOLLOW);
}

Status TrustedFolder::remove(const std::string& name) const {
  if (::unlinkat(fd_, name.c_str(), 0) != 0) return io_error("remove", path_ + "/" + name, errno);
  return {};
}

}  // namespace kiln
