// Programs and the IR they become; bad_*.txt are programs that must not compile, and their rendered errors.
// Command: "frontend kernel=NAME signature=*fp32,i32 BLOCK=128", see kernel_file.h.
#include <fmt/format.h>

#include "compiler/ir/ir.h"
#include "tests/golden/golden.h"
#include "tests/unit/frontend/kernel_file.h"

namespace kiln::frontend {
namespace {

const bool kRegistered = golden::register_folder("frontend", [](const golden::Input& in) -> std::string {
  std::vector<std::string> printed;
  std::string words = in.command.substr(std::min(in.command.size(), std::string_view("frontend").size()));
  auto module = testing::lower_text(in.file, in.text, testing::parse_command(words), &printed);
  std::string out;
  for (const std::string& line : printed) out += "printed: " + line + "\n";
  bool bad = in.file.starts_with("bad_");
  if (module.ok())
    return bad ? "a program that must fail has compiled\n" + ir::print(**module) : out + ir::print(**module);
  if (module.error().kind == ErrorKind::kInternal) return "INTERNAL ERROR\n" + render(module.error());
  return bad ? out + render(module.error()) : "a program that must compile has failed\n" + render(module.error());
});

}  // namespace
}  // namespace kiln::frontend
