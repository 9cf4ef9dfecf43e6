// Kernels and what the layout passes decide for them: one line per memory access, conversion and reduction.
// Command: "layouts signature=*fp32:16,i32:16 BLOCK=1024 num_warps=4", as kernel_file.h; or "draw" with a layout's
// text.
#include <fmt/format.h>

#include "compiler/analysis/axis_info.h"
#include "compiler/analysis/verify_layouts.h"
#include "compiler/layout/algebra.h"
#include "compiler/layout/convert_plan.h"
#include "compiler/layout/reduce_plan.h"
#include "compiler/passes/pass.h"
#include "tests/golden/golden.h"
#include "tests/unit/frontend/kernel_file.h"

namespace kiln {
namespace {

using ir::OpKind;

std::string describe(const ir::Op& op, const analysis::AxisAnalysis& axis) {
  std::string line = fmt::format("{:>3} {}", place_of(op.range).line, ir::info(op.kind).mnemonic);
  const ir::Type& type = op.operand(0)->type;
  line += " " + ir::to_string(type);
  if (!type.layout) return line + "\n";
  if (op.kind == OpKind::kLoad || op.kind == OpKind::kStore)
    line += fmt::format(", {} bytes at a time", axis.vector_width(&op) * size_of(type.dtype));
  if (op.kind == OpKind::kConvertLayout) {
    auto plan = layout::plan_convert(*type.layout, *op.result()->type.layout, type.pointer ? 8 : size_of(type.dtype));
    line += fmt::format(" by {}", layout::name(plan.kind));
  }
  if (op.kind == OpKind::kReduce) {
    auto plan = layout::plan_reduce(*type.layout, static_cast<int>(op.int_attr(ir::AttrName::kAxis)));
    line += fmt::format(", {} registers, {} lane steps{}", plan.registers[0].size(), plan.lane_masks.size(),
                        plan.crosses_warps ? ", across warps" : "");
  }
  if (op.has(ir::AttrName::kSharedOffset))
    line += fmt::format(", {} bytes of shared memory at {}{}", analysis::scratch_bytes(op),
                        op.int_attr(ir::AttrName::kSharedOffset),
                        op.flag(ir::AttrName::kSyncBefore) ? " after a barrier" : "");
  line += "\n      " + layout::to_string(*type.layout) + "\n";
  if (op.kind == OpKind::kConvertLayout) line += "   -> " + layout::to_string(*op.result()->type.layout) + "\n";
  return line;
}

std::string layouts_of(const golden::Input& in) {
  auto command = frontend::testing::parse_command(in.command.substr(std::string_view("layouts").size()));
  auto module = frontend::testing::lower_text(in.file, in.text, command);
  if (!module.ok()) return render(module.error());
  passes::RunOptions options;
  options.verify_each = true;
  Status s = passes::run(passes::pipeline(target::Kind::kCuda), **module, *target::find("sm_90a"), options);
  if (!s.ok()) return render(s.error());
  analysis::AxisAnalysis axis(**module);
  std::string out;
  walk((*module)->body(), [&](ir::Op* op) {
    if (op->kind == OpKind::kLoad || op->kind == OpKind::kStore || op->kind == OpKind::kConvertLayout ||
        op->kind == OpKind::kReduce || op->kind == OpKind::kScan)
      out += describe(*op, axis);
  });
  return out + fmt::format("shared memory: {} bytes\n", (*module)->shared_bytes);
}

const bool kRegistered = golden::register_folder("layout", [](const golden::Input& in) -> std::string {
  if (in.command.starts_with("layouts")) return layouts_of(in);
  auto layout = layout::parse_layout(in.text);
  return layout.ok() ? layout::draw(*layout) : render(layout.error());
});

}  // namespace
}  // namespace kiln
