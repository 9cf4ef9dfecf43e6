// Runs the kiln program: the command's words are its arguments, `input.py` holds the text, `<` gives it on standard
// input. The expectation is what it prints on both streams, and its exit code.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "tests/golden/golden.h"

namespace {

std::string run_kiln(const kiln::golden::Input& in) {
  namespace fs = std::filesystem;
  std::string pattern = (fs::temp_directory_path() / "kiln_cli_XXXXXX").string();
  fs::path folder = mkdtemp(pattern.data());
  std::ofstream(folder / "input.py") << in.text;
  std::string arguments = in.command;
  bool from_stdin = arguments.ends_with(" <") || arguments == "<";
  if (from_stdin) arguments.pop_back();
  std::string command =
      "cd '" + folder.string() +
      "' && env -i HOME=. PATH=\"$PATH\" CUDA_HOME=\"$CUDA_HOME\" KILN_DEVICE=cpu KILN_CACHE=0 NO_COLOR=1 " +
      std::string(KILN_BINARY) + " " + arguments + (from_stdin ? " < input.py" : " < /dev/null") + " 2>&1";
  std::string out;
  std::FILE* pipe = popen(command.c_str(), "r");
  if (!pipe) return "cannot run " + command;
  char buffer[4096];
  while (size_t n = std::fread(buffer, 1, sizeof buffer, pipe)) out.append(buffer, n);
  int status = pclose(pipe);
  fs::remove_all(folder);
  if (!out.empty() && out.back() != '\n') out += '\n';
  return out + "exit " + std::to_string(WIFEXITED(status) ? WEXITSTATUS(status) : -1) + "\n";
}

const bool kRegistered = kiln::golden::register_folder("cli", run_kiln);

}  // namespace
