#include "repl/files.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "support/diag.h"
#include "support/files.h"

namespace kiln::repl {

Result<std::string> read_text(const std::string& path) {
  if (path != "-") return read_file(path);
  std::string text;
  char buffer[1 << 16];
  while (size_t n = std::fread(buffer, 1, sizeof buffer, stdin)) text.append(buffer, n);
  if (std::ferror(stdin)) return error(ErrorKind::kIo, "cannot read standard input: {}", std::strerror(errno));
  return text;
}

std::string state_folder() {
  const char *state = std::getenv("XDG_STATE_HOME"), *home = std::getenv("HOME");
  std::string folder;
  if (state && *state)
    folder = std::string(state) + "/kiln";
  else if (home && *home)
    folder = std::string(home) + "/.local/state/kiln";
  else
    return {};
  return make_directories(folder).ok() ? folder : std::string();
}

}  // namespace kiln::repl
