// Programs that Kiln runs (ptxas, nvdisasm): found in the CUDA toolkit or along PATH, run without a shell.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kiln/result.h"

namespace kiln {

struct ProcessOutput {
  int status = -1;     // as waitpid gives it: 0 is success
  std::string out;     // what it wrote to stdout, and to stderr too when they were merged
  std::string errors;  // what it wrote to stderr, when they were not
};
enum class Streams { kMerged, kSeparate };

/// Runs a program by its path and waits for it. kIo when it cannot be started.
Result<ProcessOutput> run_process(const std::vector<std::string>& command, Streams streams = Streams::kMerged);

/// Folders of the CUDA toolkit, without a trailing slash: $CUDA_HOME, /usr/local/cuda.
std::vector<std::string> toolkit_roots();

/// Paths of the executables of that name: in bin/ of the toolkit's folders, then along PATH.
std::vector<std::string> find_programs(std::string_view name, std::span<const std::string> roots);

/// A fresh folder, removed with its files at the end; its path is empty when none could be made (errno says why).
struct ScratchFolder {
  std::string path;
  ScratchFolder();
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
};

}  // namespace kiln
