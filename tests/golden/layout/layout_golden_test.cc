// Kernels and what the layout passes decide for them: the text of --emit layout.
// Command: "layouts signature=*fp32:16,i32:16 BLOCK=1024 num_warps=4", as kernel_file.h; or "draw" with a layout's
// text.
#include "compiler/analysis/layout_report.h"
#include "compiler/layout/algebra.h"
#include "compiler/passes/pass.h"
#include "tests/golden/golden.h"
#include "tests/unit/frontend/kernel_file.h"

namespace kiln {
namespace {

std::string layouts_of(const golden::Input& in) {
  auto command = frontend::testing::parse_command(in.command.substr(std::string_view("layouts").size()));
  auto module = frontend::testing::lower_text(in.file, in.text, command);
  if (!module.ok()) return render(module.error());
  passes::RunOptions options;
  options.verify_each = true;
  Status s = passes::run(passes::pipeline(target::Kind::kCuda), **module, *target::find("sm_90a"), options);
  if (!s.ok()) return render(s.error());
  return analysis::layout_report(**module);
}

const bool kRegistered = golden::register_folder("layout", [](const golden::Input& in) -> std::string {
  if (in.command.starts_with("layouts")) return layouts_of(in);
  auto layout = layout::parse_layout(in.text);
  return layout.ok() ? layout::draw(*layout) : render(layout.error());
});

}  // namespace
}  // namespace kiln
