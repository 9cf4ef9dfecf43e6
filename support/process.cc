#include "support/process.h"

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
#include "support/environment.h"
#include "support/knobs.h"

namespace kiln {

namespace {

/// Both ends are closed in programs that are started, but for what the file actions name.
struct Pipe {
  int ends[2] = {-1, -1};
  bool open() { return pipe2(ends, O_CLOEXEC) == 0; }
  void close_end(int i) {
    if (ends[i] >= 0) close(ends[i]);
    ends[i] = -1;
  }
  ~Pipe() { close_end(0), close_end(1); }
};

/// Reads both pipes until the other ends are closed.
void drain(const Pipe& out, const Pipe& errors, ProcessOutput& output) {
  pollfd watched[] = {{out.ends[0], POLLIN, 0}, {errors.ends[0], POLLIN, 0}};
  std::string* texts[] = {&output.out, &output.errors};
  while (watched[0].fd >= 0 || watched[1].fd >= 0) {
    if (poll(watched, 2, -1) < 0 && errno != EINTR) return;
    for (int i = 0; i < 2; ++i) {
      if (watched[i].fd < 0 || !watched[i].revents) continue;
      char buffer[16384];
      const ssize_t n = read(watched[i].fd, buffer, sizeof buffer);
      if (n > 0) texts[i]->append(buffer, static_cast<size_t>(n));
      if (n == 0 || (n < 0 && errno != EINTR)) watched[i].fd = -1;
    }
  }
}

}  // namespace

Result<ProcessOutput> run_process(const std::vector<std::string>& command, Streams streams) {
  const bool merged = streams == Streams::kMerged;
  Pipe out, errors;
  if (!out.open() || (!merged && !errors.open()))
    return error(ErrorKind::kIo, "cannot run {}: {}", command[0], std::strerror(errno));
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, out.ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, merged ? out.ends[1] : errors.ends[1], STDERR_FILENO);
  std::vector<char*> argv;
  for (const std::string& word : command) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  std::vector<std::string> variables = environment_list();
  std::vector<char*> given;
  for (std::string& v : variables) given.push_back(v.data());
  given.push_back(nullptr);
  pid_t child = 0;
  const int rc = posix_spawn(&child, command[0].c_str(), &actions, nullptr, argv.data(), given.data());
  posix_spawn_file_actions_destroy(&actions);
  out.close_end(1), errors.close_end(1);
  if (rc != 0) return error(ErrorKind::kIo, "cannot run {}: {}", command[0], std::strerror(rc));
  ProcessOutput output;
  drain(out, errors, output);
  while (waitpid(child, &output.status, 0) < 0 && errno == EINTR) {
  }
  return output;
}

std::vector<std::string> toolkit_roots() {
  const std::string usual = "/usr/local/cuda";
  std::string home = knob(Knob::kCudaHome);
  while (home.ends_with('/')) home.pop_back();
  if (home.empty() || home == usual) return {usual};
  return {home, usual};
}

std::vector<std::string> find_programs(std::string_view name, std::span<const std::string> roots) {
  std::vector<std::string> folders;
  for (const std::string& root : roots) folders.push_back(root + "/bin");
  if (const auto path = environment("PATH"))
    for (std::string_view rest = *path; !rest.empty();) {
      const size_t end = std::min(rest.find(':'), rest.size());
      if (end > 0) folders.emplace_back(rest.substr(0, end));
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
  std::vector<std::string> found;
  for (const std::string& folder : folders)
    if (std::string file = folder + "/" + std::string(name); access(file.c_str(), X_OK) == 0) found.push_back(file);
  return found;
}

ScratchFolder::ScratchFolder() {
  std::error_code ignored;
  std::string pattern = (std::filesystem::temp_directory_path(ignored) / "kiln-scratch-XXXXXX").string();
  if (mkdtemp(pattern.data())) path = pattern;
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  if (!path.empty()) std::filesystem::remove_all(path, ignored);
}

}  // namespace kiln
