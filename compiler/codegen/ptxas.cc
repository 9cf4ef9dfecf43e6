#include "compiler/codegen/ptxas.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "support/diag.h"
#include "support/files.h"

extern char** environ;

namespace kiln::codegen {

namespace {

struct Output {
  int status = -1;
  std::string text;
};

/// Runs a program without a shell; its stdout and stderr together.
Result<Output> run(const std::vector<std::string>& command) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return error(ErrorKind::kIo, "cannot run {}: {}", command[0], std::strerror(errno));
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
  std::vector<char*> argv;
  for (const std::string& word : command) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  pid_t child = 0;
  const int rc = posix_spawn(&child, command[0].c_str(), &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  Output out;
  if (rc == 0) {
    char buffer[4096];
    for (;;) {
      const ssize_t n = read(ends[0], buffer, sizeof buffer);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) break;
      out.text.append(buffer, static_cast<size_t>(n));
    }
    while (waitpid(child, &out.status, 0) < 0 && errno == EINTR) {
    }
  }
  close(ends[0]);
  if (rc != 0) return error(ErrorKind::kIo, "cannot run {}: {}", command[0], std::strerror(rc));
  return out;
}

/// A fresh folder, removed with its files at the end.
struct ScratchFolder {
  std::string path;
  ScratchFolder() {
    std::error_code ignored;
    std::string pattern = (std::filesystem::temp_directory_path(ignored) / "kiln-ptxas-XXXXXX").string();
    if (mkdtemp(pattern.data())) path = pattern;
  }
  ~ScratchFolder() {
    std::error_code ignored;
    if (!path.empty()) std::filesystem::remove_all(path, ignored);
  }
};

bool executable(const std::string& path) { return access(path.c_str(), X_OK) == 0; }

}  // namespace

std::optional<Ptxas> find_ptxas(std::span<const std::string> toolkit_roots) {
  std::vector<std::string> folders;
  for (const std::string& root : toolkit_roots) folders.push_back(root + "/bin");
  if (const char* path = std::getenv("PATH"))
    for (std::string_view rest = path; !rest.empty();) {
      const size_t end = std::min(rest.find(':'), rest.size());
      if (end > 0) folders.emplace_back(rest.substr(0, end));
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
  for (const std::string& folder : folders) {
    const std::string path = folder + "/ptxas";
    if (!executable(path)) continue;
    auto out = run({path, "--version"});
    if (!out || out->status != 0) continue;
    const size_t at = out->text.rfind(" V");
    const std::string version =
        at == std::string::npos ? "" : out->text.substr(at, out->text.find_first_of(" \n", at + 1) - at);
    return Ptxas{path, "ptxas" + version};
  }
  return std::nullopt;
}

Result<Assembled> run_ptxas(const Ptxas& tool, std::string_view ptx, std::string_view arch) {
  ScratchFolder folder;
  if (folder.path.empty()) return error(ErrorKind::kIo, "cannot make a temporary folder: {}", std::strerror(errno));
  const std::string input = folder.path + "/kernel.ptx", output = folder.path + "/kernel.cubin";
  KILN_CHECK_OK(write_file_atomic(input, ptx));
  KILN_TRY(Output out, run({tool.path, "-v", "-O3", "-lineinfo", fmt::format("-arch={}", arch), input, "-o", output}));
  if (out.status != 0) return error(ErrorKind::kInternal, "ptxas rejects the generated PTX: {}", out.text);
  KILN_TRY(std::string image, read_file(output));
  return Assembled{std::move(image), std::move(out.text)};
}

}  // namespace kiln::codegen
