#include "profiler/lines/disassemble.h"

#include <cerrno>
#include <cstring>

#include "support/diag.h"
#include "support/files.h"
#include "support/process.h"

namespace kiln::profiler {

Result<LineTable> disassemble(std::string_view cubin, const std::string& function) {
  const std::vector<std::string> tools = find_programs("nvdisasm", toolkit_roots());
  if (tools.empty())
    return with_note(error(ErrorKind::kDevice, "nvdisasm was not found (CUDA_HOME, /usr/local/cuda, PATH)"),
                     "help: it is NVIDIA's package cuda-nvdisasm of the toolkit's version, for apt, dnf and conda");
  ScratchFolder folder;
  if (folder.path.empty()) return error(ErrorKind::kIo, "cannot make a temporary folder: {}", std::strerror(errno));
  const std::string file = folder.path + "/kernel.cubin";
  KILN_CHECK_OK(write_file_atomic(file, cubin));
  // -c leaves the data out, -g puts a comment with file and line before the instructions of each line.
  KILN_TRY(ProcessOutput run, run_process({tools[0], "-c", "-g", file}, Streams::kSeparate));
  std::optional<LineTable> table;
  if (run.status == 0) table = read_disassembly(run.out, function);
  if (table) return *std::move(table);
  // nvdisasm says what is wrong in the first line, and how it is used in the rest.
  std::string_view reason = run.errors;
  reason = reason.substr(0, reason.find('\n'));
  return error(ErrorKind::kInternal, "{} does not disassemble '{}'{}{}", tools[0], function, reason.empty() ? "" : ": ",
               reason);
}

}  // namespace kiln::profiler
