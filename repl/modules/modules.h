// What scripts can import, and what a session has without importing.
#pragma once
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "repl/script/interp/interp.h"

namespace kiln::script {

std::span<const ModuleDef> std_modules();  // math, os, sys, time, random…
/// The text of a module: in a folder of sys.path, else one of Kiln's own that are written in the language.
std::optional<ModuleSource> find_source(Interp& in, std::string_view path);
/// One of the latter alone.
std::optional<ModuleSource> library_source(std::string_view path);
/// A module of Kiln's own that is written in the language, and the names that its text defines.
ModuleObject::Text library_module(std::string_view path);
/// The nearest way without a module that Kiln does not have (ModuleHelp).
std::string help_without(std::string_view path, bool in_general);
/// The modules that an import could name, as far as the dot behind what is typed ("torch.n" → torch.nn): Kiln's own,
/// and those in the folders of sys.path. Sorted, each once.
std::vector<std::string> importable(Interp& in, std::string_view typed);
/// What `from path import` could name, sorted. No text of the user's is run.
std::vector<std::string> importable_names(Interp& in, std::string_view path);
/// sys.path.
Ref<List> search_path(Interp& in);
std::span<const ModuleDef> tabulate_modules();       // tabulate
std::span<const ModuleDef> torch_modules();          // torch, torch.nn.functional…
std::span<const ModuleDef> torch_library_modules();  // torch._kiln
std::span<const ModuleDef> torch_cuda_modules();     // torch.cuda, torch.cpu
std::span<const ModuleDef> profiler_modules();       // torch.profiler, torch.cuda.nvtx
std::span<const ModuleDef> triton_modules();         // triton, triton.testing…
/// All of these tables.
std::span<const std::span<const ModuleDef>> module_tables();
/// triton.language or a module inside it, whose members the compiler knows; null for other paths.
Ref<ModuleObject> language_module(std::string_view path);
/// What the prompt has without "torch.": randn, gelu, softmax, bf16…
void add_prompt_names(Interp& in);
void install_exits(Interp& in);  // exit and quit

/// The language's host in a program that has tensors.
std::unique_ptr<Host> tensor_host();
/// Adds all modules to an interpreter, and the names that scripts have without importing. Once.
void install_modules(Interp& in);

}  // namespace kiln::script
