#include "repl/magics/compile_stages.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <sstream>

#include "compiler/compile.h"
#include "compiler/passes/pass.h"
#include "compiler/target/target.h"
#include "repl/commands/compile_signature.h"
#include "repl/magics/compile_code.h"
#include "runtime/jit/jit.h"
#include "runtime/launch/kernel_launched.h"
#include "support/diag.h"
#include "support/launch_options.h"

namespace kiln::repl {

namespace {

struct Prepared {
  std::shared_ptr<const frontend::JitFunction> function;
  std::vector<frontend::ArgSpec> args;
  CompileOptions options;
  std::string assumptions;
};

Result<Prepared> prepare(const ShowRequest& request) {
  if (!target::find(request.target)) return error(ErrorKind::kValue, "unknown target '{}'", request.target);
  Prepared p;
  p.function = runtime::function_of(request.kernel);
  p.options.target = request.target;
  std::shared_ptr<const runtime::LaunchedAs> launched = runtime::launched_as(request.kernel);
  // What was launched, exactly: the same specialisation, with divisibility and constants.
  if (request.overrides.empty() && launched) {
    p.args = launched->args;
    p.options.frontend = launched->options;
    return p;
  }
  if (launched) p.options.frontend = launched->options;
  std::string signature;
  std::vector<std::pair<std::string, frontend::Global>> constexprs;
  std::istringstream words(request.overrides);
  for (std::string word; words >> word;) {
    size_t equals = word.find('=');
    std::string name = word.substr(0, equals), value = equals == std::string::npos ? "" : word.substr(equals + 1);
    if (name == "signature") {
      signature = value;
    } else if (const LaunchOption* option = find_launch_option(name)) {
      KILN_CHECK_OK(option->read(value, p.options.frontend));
    } else {
      KILN_TRY(constexprs.emplace_back(), parse_constexpr(word));
    }
  }
  if (signature.empty() && launched) {
    // Only the named constexprs change.
    p.args = launched->args;
    for (const auto& [name, value] : constexprs) {
      size_t i = 0;
      while (i < p.function->def->params.size() && p.function->def->params[i].name != name) ++i;
      if (i == p.args.size())
        return error(ErrorKind::kName, "kernel '{}' has no parameter '{}'", request.kernel.name(), name);
      p.args[i] = frontend::ArgSpec{};
      // A constexpr may have been an argument at the launch.
      p.args[i].is_constexpr = true;
      p.args[i].value = value;
    }
    return p;
  }
  if (signature.empty()) {
    AssumedSignature assumed = assume_signature(*p.function, constexprs, Evidence::kUse);
    signature = assumed.signature;
    constexprs = std::move(assumed.constexprs);
    p.assumptions = fmt::format("not launched yet: assumed {}", fmt::join(assumed.assumptions, ", "));
  }
  KILN_TRY(p.args, frontend::parse_signature(*p.function, signature, constexprs));
  return p;
}

}  // namespace

std::string launched_target(const Kernel& kernel) {
  auto launched = runtime::launched_as(kernel);
  return launched ? launched->target : std::string();
}

// Names of both pipelines, each once, in their order.
std::vector<std::string_view> pass_names() {
  std::vector<std::string_view> names;
  for (target::Kind kind : {target::Kind::kCuda, target::Kind::kHost})
    for (const passes::Pass& pass : passes::pipeline(kind))
      if (std::ranges::find(names, pass.name) == names.end()) names.push_back(pass.name);
  return names;
}

std::vector<std::string_view> target_names() {
  std::vector<std::string_view> names;
  for (const target::Target& t : target::all()) names.push_back(t.name);
  return names;
}

std::string target_summary(std::string_view name) {
  const target::Target* t = target::find(name);
  if (!t || !t->is_cuda()) return "the CPU";
  return fmt::format("{} KB of shared memory per block; {} registers, {} threads and {} blocks per SM",
                     t->shared_per_block / 1024, t->registers_per_sm, t->threads_per_sm, t->blocks_per_sm);
}

bool is_gpu_target(std::string_view name) {
  const target::Target* t = target::find(name);
  return t && t->is_cuda();
}

Result<Shown> show_stage(const ShowRequest& request, std::string_view stage) {
  if (stage == "ast") return Shown{ast::dump(*runtime::function_of(request.kernel)->def), {}};
  KILN_TRY(Prepared p, prepare(request));
  std::map<std::string, std::string, std::less<>> stages;
  p.options.want_cubin = stage == "cubin";
  p.options.want_asm = stage == "asm";
  p.options.on_stage = [&](std::string_view name, const std::string& text) { stages[std::string(name)] = text; };
  Result<CompiledKernel> compiled = compile(*p.function, p.args, p.options);
  // Also when compiling failed further on: a stage that was reached is shown.
  if (auto it = stages.find(stage); it != stages.end()) return Shown{it->second, p.assumptions};
  if (!compiled.ok()) return compiled.error();
  std::string text = stage == "ptx"     ? compiled->ptx
                     : stage == "cubin" ? compiled->cubin
                     : stage == "asm"   ? compiled->text
                                        : "";
  if (!text.empty()) return Shown{std::move(text), p.assumptions};
  // A cubin needs an assembler; the rest is made by what is linked in.
  if (stage == "cubin" && request.target != "host")
    return error(ErrorKind::kDevice,
                 "there is no cubin: neither nvJitLink nor ptxas was found (CUDA_HOME, /usr/local/cuda, PATH)");
  std::vector<std::string> known;
  for (const auto& [name, unused] : stages) known.push_back(name);
  return error(ErrorKind::kValue, "there is no {} for target {}; there are {}", stage, request.target,
               fmt::join(known, ", "));
}

Result<std::pair<KernelInfo, std::string>> show_info(const ShowRequest& request) {
  KILN_TRY(Prepared p, prepare(request));
  KILN_TRY(CompiledKernel compiled, compile(*p.function, p.args, p.options));
  return std::pair(KernelInfo(std::move(compiled)), std::move(p.assumptions));
}

Result<ShownRemarks> show_remarks(const ShowRequest& request) {
  KILN_TRY(Prepared p, prepare(request));
  passes::Remarks remarks;
  p.options.remarks = &remarks;
  const Result<CompiledKernel> compiled = compile(*p.function, p.args, p.options);
  // Remarks until the failure are worth showing, with the failure.
  ShownRemarks shown{{}, std::move(p.assumptions), compiled.ok() ? Status() : Status(compiled.error())};
  for (const passes::Remark& r : remarks.by_place()) {
    const passes::RemarkRow& row = passes::row_of(r.reason);
    shown.remarks.push_back({std::string(passes::name(row.kind)), std::string(row.pass), std::string(row.name),
                             r.operand, r.text, r.place});
  }
  return shown;
}

Result<ShownCode> show_code(const ShowRequest& request) {
  KILN_TRY(Prepared p, prepare(request));
  KILN_TRY(CompiledKernel compiled, compile(*p.function, p.args, p.options));
  return ShownCode{compiled.name,
                   request.target,
                   std::move(compiled.ptx),
                   std::move(compiled.cubin),
                   runtime::make_closure(p.function).sources,
                   std::move(p.assumptions)};
}

}  // namespace kiln::repl
