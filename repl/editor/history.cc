#include "repl/editor/history.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>

#include "support/diag.h"
#include "support/files.h"
#include "support/text.h"

namespace kiln::editor {

namespace {

constexpr std::string_view kLibeditHead = "_HiStOrY_V2_";

/// An open file under a lock, both released at the end. O_NONBLOCK, so that a pipe in its place stops nothing.
class LockedFile {
 public:
  LockedFile(const std::string& path, int flags) : path_(path), flags_(flags) {}
  ~LockedFile() {
    if (fd_ >= 0) close(fd_);
  }
  LockedFile(const LockedFile&) = delete;
  LockedFile& operator=(const LockedFile&) = delete;

  /// The lock is of the file that has the name when it is there: one that another session replaced meanwhile is let go.
  Status open_locked() {
    constexpr int kTries = 10;
    for (int i = 0; i < kTries; ++i) {
      fd_ = open(path_.c_str(), flags_ | O_CLOEXEC | O_NONBLOCK, 0600);
      if (fd_ < 0) return failed("open");
      struct stat named {};
      if (fstat(fd_, &info_) != 0) return failed("read");
      if (!S_ISREG(info_.st_mode)) return error(ErrorKind::kIo, "{} is no regular file", path_);
      while (flock(fd_, LOCK_EX) != 0)
        if (errno != EINTR) return failed("lock");
      if (stat(path_.c_str(), &named) == 0 && named.st_ino == info_.st_ino && named.st_dev == info_.st_dev)
        return fstat(fd_, &info_) == 0 ? Status{} : failed("read");
      close(fd_);
      fd_ = -1;
    }
    return error(ErrorKind::kIo, "cannot lock {}: it is replaced again and again", path_);
  }

  Result<std::string> read_from(uint64_t offset) {
    std::string text;
    char buffer[1 << 16];
    while (text.size() < kLargestFile) {
      const ssize_t n = pread(fd_, buffer, sizeof buffer, static_cast<off_t>(offset + text.size()));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return failed("read").error();
      if (n == 0) break;
      text.append(buffer, static_cast<size_t>(n));
    }
    return text;
  }

  Status append(std::string_view text) {
    while (!text.empty()) {
      const ssize_t n = write(fd_, text.data(), text.size());
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return failed("write");
      text.remove_prefix(static_cast<size_t>(n));
    }
    return {};
  }

  uint64_t size() const { return static_cast<uint64_t>(info_.st_size); }
  uint64_t inode() const { return info_.st_ino; }

 private:
  Status failed(const char* what) const {
    return error(ErrorKind::kIo, "cannot {} {}: {}", what, path_, std::strerror(errno));
  }

  const std::string& path_;
  int flags_;
  int fd_ = -1;
  struct stat info_ {};
};

/// libedit writes \ooo for blanks and control characters, and \\ for a backslash.
std::string unvis(std::string_view line) {
  std::string out;
  auto octal = [](char c) { return c >= '0' && c <= '7'; };
  for (size_t i = 0; i < line.size(); ++i) {
    if (line[i] != '\\' || i + 1 == line.size()) {
      out += line[i];
    } else if (i + 3 < line.size() && octal(line[i + 1]) && octal(line[i + 2]) && octal(line[i + 3])) {
      out += static_cast<char>((line[i + 1] - '0') * 64 + (line[i + 2] - '0') * 8 + (line[i + 3] - '0'));
      i += 3;
    } else {
      out += line[++i];
    }
  }
  return out;
}

bool holds_nothing(const std::string& entry) { return trimmed(entry).empty(); }

}  // namespace

std::vector<std::string> parse_history(std::string_view text) {
  std::vector<std::string> entries;
  const bool libedit = text.starts_with(kLibeditHead);
  bool open = false;  // the last entry may get further lines
  for (size_t at = 0; at < text.size();) {
    const size_t end = text.find('\n', at);
    if (end == std::string_view::npos && !libedit) break;  // torn: its writer did not get to its end
    const std::string_view line = text.substr(at, end == std::string_view::npos ? end : end - at);
    at = end == std::string_view::npos ? text.size() : end + 1;
    if (libedit) {
      if (line != kLibeditHead && !trimmed(line).empty()) entries.push_back(unvis(line));
    } else if (line.starts_with('#')) {
      entries.emplace_back();
      open = false;
    } else if (line.starts_with(' ') && !entries.empty()) {
      if (open) entries.back() += '\n';
      entries.back() += line.substr(1);
      open = true;
    }
  }
  std::erase_if(entries, holds_nothing);
  return entries;
}

std::string history_record(std::string_view entry, int64_t seconds) {
  std::string out = fmt::format("#{}\n", seconds);
  for (size_t at = 0; at <= entry.size();) {
    const size_t end = std::min(entry.find('\n', at), entry.size());
    out += ' ';
    out += entry.substr(at, end - at);
    out += '\n';
    at = end + 1;
  }
  return out;
}

History::History(Options options) : options_(std::move(options)) {}

Status History::refresh() {
  if (options_.file.empty()) return {};
  if (std::exchange(first_, false)) {
    KILN_CHECK_OK(import_old_file());
    KILN_CHECK_OK(cut_file());
  }
  struct stat info {};
  if (stat(options_.file.c_str(), &info) != 0) return {};  // nothing was added yet
  if (info.st_ino == inode_ && static_cast<uint64_t>(info.st_size) == read_to_) return {};
  LockedFile file(options_.file, O_RDONLY);
  KILN_CHECK_OK(file.open_locked());
  if (file.inode() != inode_ || file.size() < read_to_) {  // another session cut it
    read_to_ = 0;
    earlier_.clear();
    uses_.clear();
    counted_earlier_ = counted_own_ = 0;
  }
  KILN_TRY(std::string text, file.read_from(read_to_));
  inode_ = file.inode();
  read_to_ += text.size();
  for (std::string& entry : parse_history(text)) earlier_.push_back(std::move(entry));
  return {};
}

Status History::add(std::string entry) {
  while (!entry.empty() && (entry.back() == '\n' || entry.back() == ' ')) entry.pop_back();
  if (holds_nothing(entry) || (!own_.empty() && own_.back() == entry)) return {};
  own_.push_back(entry);
  if (options_.file.empty()) return {};
  KILN_CHECK_OK(refresh());
  LockedFile file(options_.file, O_RDWR | O_CREAT | O_APPEND);
  KILN_CHECK_OK(file.open_locked());
  std::string record = history_record(entry, static_cast<int64_t>(std::time(nullptr)));
  // What a writer that was stopped half-way left gets an end of its own.
  if (file.size() > 0) {
    KILN_TRY(std::string last, file.read_from(file.size() - 1));
    if (last != "\n") record.insert(0, "\n");
  }
  KILN_CHECK_OK(file.append(record));
  // What this session wrote is not read again, unless something else came between.
  if (file.inode() == inode_ && file.size() == read_to_) read_to_ += record.size();
  if (inode_ == 0) inode_ = file.inode(), read_to_ = file.size() == 0 ? record.size() : 0;
  return {};
}

Status History::import_old_file() {
  if (options_.old_file.empty() || access(options_.file.c_str(), F_OK) == 0) return {};
  auto text = read_file(options_.old_file);
  if (!text.ok() || !text->starts_with(kLibeditHead)) return {};  // none there: a fresh start
  std::string records;
  for (const std::string& entry : parse_history(*text)) records += history_record(entry, 0);
  LockedFile file(options_.file, O_RDWR | O_CREAT | O_APPEND);
  KILN_CHECK_OK(file.open_locked());
  return file.size() == 0 ? file.append(records) : Status{};
}

/// Leaves the newest entries of a file that has grown far beyond what is asked for.
Status History::cut_file() {
  if (access(options_.file.c_str(), F_OK) != 0) return {};
  LockedFile file(options_.file, O_RDONLY);
  KILN_CHECK_OK(file.open_locked());
  KILN_TRY(std::string text, file.read_from(0));
  std::vector<size_t> starts;
  for (size_t at = text.starts_with('#') ? 0 : text.find("\n#"); at != std::string::npos; at = text.find("\n#", at + 1))
    starts.push_back(text[at] == '\n' ? at + 1 : at);
  if (starts.size() <= options_.most + options_.most / 2) return {};
  // Renamed into place while the old file is locked: who waits for that lock sees that the name has moved on.
  const std::string temporary = fmt::format("{}.{}.tmp", options_.file, getpid());
  LockedFile fresh(temporary, O_WRONLY | O_CREAT | O_TRUNC);
  KILN_CHECK_OK(fresh.open_locked());
  KILN_CHECK_OK(fresh.append(std::string_view(text).substr(starts[starts.size() - options_.most])));
  if (rename(temporary.c_str(), options_.file.c_str()) == 0) return {};
  return error(ErrorKind::kIo, "cannot replace {}: {}", options_.file, std::strerror(errno));
}

namespace {

bool fits(const std::string& entry, std::string_view text, bool at_start, std::string_view but) {
  return entry != but && (at_start ? entry.starts_with(text) : entry.find(text) != std::string::npos);
}

}  // namespace

std::optional<size_t> History::find_before(size_t from, std::string_view text, bool at_start,
                                           std::string_view but) const {
  for (size_t i = std::min(from, size()); i-- > 0;)
    if (fits((*this)[i], text, at_start, but)) return i;
  return std::nullopt;
}

std::optional<size_t> History::find_after(size_t from, std::string_view text, bool at_start,
                                          std::string_view but) const {
  for (size_t i = from + 1; i < size(); ++i)
    if (fits((*this)[i], text, at_start, but)) return i;
  return std::nullopt;
}

int History::uses(std::string_view name) const {
  for (; counted_earlier_ < earlier_.size(); ++counted_earlier_) count_words(earlier_[counted_earlier_]);
  for (; counted_own_ < own_.size(); ++counted_own_) count_words(own_[counted_own_]);
  name = trimmed(name);
  if (name.ends_with('=')) name.remove_suffix(1);
  const auto it = uses_.find(std::string(name));
  return it == uses_.end() ? 0 : it->second;
}

void History::count_words(const std::string& entry) const {
  const auto of_word = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.' || c == '%' || c == '-';
  };
  for (size_t i = 0; i < entry.size();) {
    const size_t begin = i;
    while (i < entry.size() && of_word(entry[i])) ++i;
    if (i > begin) ++uses_[entry.substr(begin, i - begin)];
    i += i == begin;
  }
}

}  // namespace kiln::editor
