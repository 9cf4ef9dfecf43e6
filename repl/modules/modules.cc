#include "repl/modules/modules.h"

#include <vector>

#include "repl/modules/results/results.h"
#include "repl/modules/results/table_object.h"
#include "repl/modules/std/std.h"

namespace kiln::script {

std::span<const std::span<const ModuleDef>> module_tables() {
  static const std::vector<std::span<const ModuleDef>> tables = {
      std_modules(),        tabulate_modules(), torch_modules(), torch_library_modules(),
      torch_cuda_modules(), profiler_modules(), triton_modules()};
  return tables;
}

void install_modules(Interp& in) {
  for (auto table : module_tables()) in.add_modules(table);
  in.set_module_finder(language_module);
  in.set_source_finder(find_source);
  in.set_module_help(help_without);
  install_exits(in);
  install_table_methods(in);
  in.state<Results>();
  install_open(in);
  // A prompt is for typing kernels: these three need no import.
  in.add_builtin("torch", in.import_module("torch"));
  in.add_builtin("triton", in.import_module("triton"));
  in.add_builtin("tl", in.import_module("triton.language"));
  add_prompt_names(in);
}

}  // namespace kiln::script
