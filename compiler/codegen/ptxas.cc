#include "compiler/codegen/ptxas.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>

#include "support/diag.h"
#include "support/files.h"
#include "support/process.h"

namespace kiln::codegen {

std::optional<Ptxas> find_ptxas(std::span<const std::string> toolkit_roots) {
  for (const std::string& path : find_programs("ptxas", toolkit_roots)) {
    auto run = run_process({path, "--version"});
    if (!run || run->status != 0) continue;
    const size_t at = run->out.rfind(" V");
    const std::string version =
        at == std::string::npos ? "" : run->out.substr(at, run->out.find_first_of(" \n", at + 1) - at);
    return Ptxas{path, "ptxas" + version};
  }
  return std::nullopt;
}

Result<Assembled> run_ptxas(const Ptxas& tool, std::string_view ptx, std::string_view arch) {
  ScratchFolder folder;
  if (folder.path.empty()) return error(ErrorKind::kIo, "cannot make a temporary folder: {}", std::strerror(errno));
  const std::string input = folder.path + "/kernel.ptx", output = folder.path + "/kernel.cubin";
  KILN_CHECK_OK(write_file_atomic(input, ptx));
  std::vector<std::string> command = {tool.path, "-v", "-O3", fmt::format("-arch={}", arch), input, "-o", output};
  if (has_lines(ptx)) command.emplace_back("-lineinfo");
  KILN_TRY(ProcessOutput run, run_process(command));
  if (run.status != 0) return rejected_ptx("ptxas", run.out);
  KILN_TRY(std::string image, read_file(output));
  return Assembled{std::move(image), std::move(run.out)};
}

}  // namespace kiln::codegen
