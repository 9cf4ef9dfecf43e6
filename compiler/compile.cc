#include "compiler/compile.h"

#include <fmt/format.h>

#include <set>

#include "compiler/analysis/const_pointers.h"
#include "compiler/analysis/layout_report.h"
#include "compiler/analysis/pointer_origins.h"
#include "compiler/codegen/backend.h"
#include "compiler/codegen/host.h"
#include "compiler/passes/pass.h"
#include "compiler/target/target.h"
#include "support/build_id.h"
#include "support/diag.h"
#include "support/timer.h"
#include "support/trace.h"

namespace kiln {

namespace {

Result<const target::Target*> find_target(const std::string& name) {
  if (const target::Target* t = target::find(name)) return t;
  std::string known;
  for (const target::Target& t : target::all()) known += fmt::format("{}{}", known.empty() ? "" : ", ", t.name);
  return with_note(error(ErrorKind::kValue, "unknown target '{}'", name), "help: targets are " + known);
}

// A phase that ends now.
void add_phase(CompiledKernel& out, std::string_view name, double ms) {
  out.phases.push_back({std::string(name), ms});
  if (!trace::on(trace::kSpans)) return;
  trace::Event event;
  event.step = trace::Step::kPhase;
  event.name = name;
  event.end_ns = trace::now_ns();
  event.start_ns = event.end_ns - static_cast<int64_t>(ms * 1e6);
  trace::add(std::move(event));
}

passes::RunOptions pass_options(const CompileOptions& options, CompiledKernel& out) {
  passes::RunOptions run;
  run.verify_each = options.verify_each;
  run.on_time = [&out](std::string_view pass, double ms) { add_phase(out, pass, ms); };
  if (options.on_stage)
    run.after_pass = [&options](std::string_view pass, const ir::Module& m) {
      options.on_stage(fmt::format("ir:{}", pass), ir::print(m));
    };
  return run;
}

codegen::BackendOptions backend_options(const CompileOptions& options, CompiledKernel& out) {
  codegen::BackendOptions backend;
  backend.want_cubin = options.want_cubin;
  backend.assembler = options.assembler;
  backend.want_asm = options.want_asm;
  backend.line_info = options.line_info;
  backend.launch = options.frontend;
  backend.on_stage = options.on_stage;
  backend.on_time = [&out](std::string_view phase, double ms) { add_phase(out, phase, ms); };
  return backend;
}

Status generate(const ir::Module& module, const target::Target& target, const CompileOptions& options,
                CompiledKernel& out) {
  codegen::BackendOptions backend = backend_options(options, out);
  if (!target.is_cuda()) {
    KILN_TRY(auto code, codegen::build_host(module, backend));
    out.object = std::move(code.object);
    out.text = std::move(code.assembly);
    out.scratch_bytes = code.scratch_bytes;
    out.shared_bytes = -1;  // the CPU has none to know of
    return {};
  }
  KILN_TRY(auto code, codegen::build_cuda(module, target, backend));
  out.extra_warps = code.extra_warps;
  out.num_ctas = module.num_ctas;
  out.tensor_maps = std::move(code.tensor_maps);
  out.warnings = std::move(code.cubin.messages);
  out.ptx = std::move(code.ptx);
  out.cubin = std::move(code.cubin.image);
  out.roomy = std::move(code.cubin.roomy);
  out.registers = code.cubin.registers;
  out.spill_bytes = code.cubin.spill_bytes;
  return {};
}

Status run_passes(ir::Module& module, const target::Target& target, const CodeOptions& code,
                  const CompileOptions& options, CompiledKernel& out) {
  passes::Context context{target, options.guard_accesses, code.launch_pdl && target.is_cuda(), code.enable_fp_fusion};
  context.remarks = options.remarks;
  KILN_CHECK_OK(passes::run(passes::pipeline(target.kind), module, context, pass_options(options, out)));
  const passes::Properties missing = passes::lowering_needs(target.kind) & ~context.holds;
  KILN_ASSERT(!missing, "the lowering needs: {}", passes::to_string(missing));
  out.guards = std::move(context.guards);
  out.launch_pdl = context.launch_pdl;
  return {};
}

/// What the assembler says of the code, at the place of the kernel.
void tell_resources(const CompiledKernel& kernel, SourceRange place, passes::Remarks* remarks) {
  using passes::Reason;
  for (const std::string& message : kernel.warnings) passes::remark(remarks, place, Reason::kAssembler, message);
  if (kernel.spill_bytes > 0) passes::remark(remarks, place, Reason::kSpills, kernel.spill_bytes, kernel.registers);
  if (kernel.registers >= 0)
    passes::remark(remarks, place, Reason::kResources, kernel.registers, kernel.shared_bytes,
                   kernel.num_warps + kernel.extra_warps);
}

/// `place`: of the kernel, for remarks.
Result<CompiledKernel> finish(std::unique_ptr<ir::Module> module, SourceRange place, const CodeOptions& code,
                              const CompileOptions& options, CompiledKernel out) {
  KILN_TRY(const target::Target* target, find_target(options.target));
  out.name = module->name;
  out.target = options.target;
  ir::walk(module->body(), [&](const ir::Op* op) { out.has_dot |= op->kind == ir::OpKind::kDot; });
  if (options.on_stage) options.on_stage("ir", ir::print(*module));
  const bool distributed = module->stage == ir::Stage::kDistributed;
  if (distributed && !target->is_cuda())
    return error(ErrorKind::kUnsupported, "IR of the distributed stage is for GPUs, not for {}", target->name);
  const std::set<int> written = analysis::written_origins(*module).params;
  if (!distributed) KILN_CHECK_OK(run_passes(*module, *target, code, options, out));
  if (options.on_stage && module->stage == ir::Stage::kDistributed)
    options.on_stage("layout", analysis::layout_report(*module));
  for (size_t i = 0; i < module->params.size(); ++i)
    out.params.push_back(
        {module->params[i].name, module->body()->args[i]->type, written.contains(static_cast<int>(i))});
  out.num_warps = module->num_warps;
  out.shared_bytes = module->shared_bytes;
  KILN_CHECK_OK(generate(*module, *target, options, out));
  tell_resources(out, place, options.remarks);
  return out;
}

}  // namespace

Result<CompiledKernel> compile(const frontend::JitFunction& function, std::span<const frontend::ArgSpec> args,
                               const CompileOptions& options) {
  StopWatch watch;
  frontend::Options seen = options.frontend;
  if (const target::Target* target = target::find(options.target); target && target->is_cuda()) {
    seen.capability = target->sm;
    seen.drops_fp8e4b15 = target->has(target::kTma);
  }
  KILN_TRY(auto module, frontend::lower_kernel(function, args, seen));
  KILN_CHECK_OK(analysis::check_const_pointers(*module));
  CompiledKernel out;
  add_phase(out, "frontend", watch.ms());
  return finish(std::move(module), function.def->name_range, options.frontend, options, std::move(out));
}

Result<CompiledKernel> compile_ir(std::unique_ptr<ir::Module> module, const CompileOptions& options) {
  KILN_CHECK_OK(ir::verify(*module));
  return finish(std::move(module), {}, CodeOptions{}, options, {});
}

std::string llvm_version() { return codegen::llvm_version(); }
std::string host_cpu() { return codegen::host_cpu_description(); }

std::string compiler_fingerprint(std::string_view name, const Assembler* device) {
  const target::Target* target = target::find(name);
  const bool on_gpu = target && target->is_cuda();
  std::string backend = on_gpu ? codegen::assembler_name(*target, device) : codegen::host_cpu_description();
  return fmt::format("kiln {} {}; {}", KILN_VERSION, build_id(), backend);
}

}  // namespace kiln
