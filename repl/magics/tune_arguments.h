// The arguments of %tune and `kiln tune`.
#pragma once
#include <string>

#include "repl/magics/magic_arguments.h"
#include "repl/session/tune_launch.h"

namespace kiln::repl {

struct TuneArguments {
  script::TuneRequest request;
  bool verbose = false, forget = false;
  std::string json_file;
};

/// kSyntax and kValue, for options and launches that cannot be.
Result<TuneArguments> read_tune_arguments(const MagicArguments& given);

}  // namespace kiln::repl
