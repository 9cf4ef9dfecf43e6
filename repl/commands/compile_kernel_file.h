// A file of kernels as `kiln compile` and `kiln check` read it, and what they compile its kernels for.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "compiler/compile.h"
#include "repl/commands/compile_signature.h"
#include "repl/shell/options.h"

namespace kiln::repl {

using Function = std::shared_ptr<const frontend::JitFunction>;

struct KernelFile {
  std::shared_ptr<const ast::Module> module;
  std::vector<Function> functions;
  std::vector<KernelFile> texts = {};  // strings of the file that are files of kernels themselves
};

Result<std::shared_ptr<const ast::Module>> parse_file(const std::string& path);
/// Of a file's text: there may be no function in it.
Result<KernelFile> read_functions(const std::string& path, std::string text);
/// The same of a file; kName where there is none.
Result<KernelFile> load(const std::string& path);
/// Functions that no other function calls and that return nothing: what a host would launch.
std::vector<Function> kernels_of(const KernelFile& file);
std::string names_of(const std::vector<Function>& functions);
/// "": the only one that a host would launch.
Result<Function> find(const KernelFile& file, const std::string& name);

/// What a kernel is compiled for: the signature given, or assumed.
struct Specialisation {
  std::vector<frontend::ArgSpec> args;
  AssumedSignature assumed;
};
Result<Specialisation> specialise(const frontend::JitFunction& function, const CompileArgs& args, Evidence evidence,
                                  const Revision& revision = {});
/// --target, else the device's.
Result<std::string> target_name(const CompileArgs& args, const std::string& device);
CompileOptions options_for(const CompileArgs& args, std::string target);

}  // namespace kiln::repl
