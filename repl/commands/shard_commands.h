// `kiln sweep`, `kiln tune` and `kiln merge`: lists of measurements in shards (docs/sharding.md).
#pragma once
#include "repl/shell/options.h"

namespace kiln::repl {

/// Prints the points of the shard; the exit code.
int sweep_command(const Options& options);
/// The same for the configurations of a launch.
int tune_command(const Options& options);
/// Prints the lists that the shards of a folder are of. kExitError when some of their numbers are missing.
int merge_command(const std::string& folder, bool json);

}  // namespace kiln::repl
