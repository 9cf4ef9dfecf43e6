// A session in a file: a .safetensors file of its tensors, whose metadata hold the other variables as JSON and
// functions and kernels as source.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "repl/session/session.h"

namespace kiln::script {

struct SessionFileReport {
  int values = 0, tensors = 0, definitions = 0, imports = 0;
  /// What stayed out, with the reason.
  std::vector<std::pair<std::string, std::string>> left_out;
};

/// Writes the variables, all but those whose names begin with '_'. Two names of one list become two lists. kIo; kValue
/// when a file of that name is there and is no session.
Result<SessionFileReport> save_session(Session& session, const std::string& path);
/// Sets what a file holds; other variables stay. Functions and kernels are run as the program that they are.
Result<SessionFileReport> load_session(Session& session, const std::string& path);

}  // namespace kiln::script
