#pragma once
#include "repl/script/interp/interp.h"

namespace kiln::script {

/// sys.modules: the modules that have been imported, by their paths, and the program itself as __main__.
Ref<Dict> loaded_modules(Interp& in);

}  // namespace kiln::script
