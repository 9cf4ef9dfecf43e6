#include "repl/files.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <system_error>

#include "support/diag.h"

namespace kiln::repl {

namespace {
struct Close {
  void operator()(std::FILE* f) const { std::fclose(f); }
};
using File = std::unique_ptr<std::FILE, Close>;
}  // namespace

Result<std::string> read_text(const std::string& path) {
  std::error_code ignored;
  if (path != "-" && std::filesystem::is_directory(path, ignored))
    return error(ErrorKind::kIo, "cannot read {}: it is a directory", path);
  File owned(path == "-" ? nullptr : std::fopen(path.c_str(), "rb"));
  std::FILE* f = path == "-" ? stdin : owned.get();
  if (!f) return error(ErrorKind::kIo, "cannot read {}: {}", path, std::strerror(errno));
  std::string text;
  char buffer[1 << 16];
  while (size_t n = std::fread(buffer, 1, sizeof buffer, f)) text.append(buffer, n);
  if (std::ferror(f)) return error(ErrorKind::kIo, "cannot read {}: {}", path, std::strerror(errno));
  return text;
}

Status write_file(const std::string& path, const std::string& bytes) {
  File f(std::fopen(path.c_str(), "wb"));
  if (!f) return error(ErrorKind::kIo, "cannot write {}: {}", path, std::strerror(errno));
  bool written = std::fwrite(bytes.data(), 1, bytes.size(), f.get()) == bytes.size();
  if (std::fclose(f.release()) != 0 || !written)
    return error(ErrorKind::kIo, "cannot write {}: {}", path, std::strerror(errno));
  return {};
}

std::string state_folder() {
  namespace fs = std::filesystem;
  const char *state = std::getenv("XDG_STATE_HOME"), *home = std::getenv("HOME");
  fs::path folder;
  if (state && *state)
    folder = fs::path(state) / "kiln";
  else if (home && *home)
    folder = fs::path(home) / ".local" / "state" / "kiln";
  else
    return {};
  std::error_code failed;
  fs::create_directories(folder, failed);
  return failed ? std::string() : folder.string();
}

}  // namespace kiln::repl
