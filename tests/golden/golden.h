// Golden tests: input, command and expectation in one file, one gtest per file.
//
//   ---- passes canonicalize        the command: any words, given to the runner
//   kernel @k() { … }               the input
//   ---- expect
//   kernel @k() { … }               what the runner must return, compared byte for byte after a final newline
//
// Files live in tests/golden/FOLDER/NAME.txt; a test of FOLDER registers its runner once:
//
//   const bool kRegistered = golden::register_folder("passes", [](const golden::Input& in) -> std::string { … });
//
// KILN_BLESS=1 rewrites the expectations with what the runners return (and still fails a runner's own failures).
#pragma once
#include <functional>
#include <string>

namespace kiln::golden {

struct Input {
  std::string file;     // "NAME.txt", for diagnostics: results must not depend on where the tree lies
  std::string command;  // the words after "---- "
  std::string text;
};

using Runner = std::function<std::string(const Input&)>;
/// What is compared of an expectation, and of what a runner returned.
using Compared = std::function<std::string(const std::string& text)>;

/// Registers test Golden_FOLDER.NAME for each file; an empty or missing folder registers a test that fails. `compared`:
/// where a text depends on what is installed, for what the files were not blessed with. That cannot be blessed.
bool register_folder(const std::string& folder, const Runner& runner, const Compared& compared = {});

}  // namespace kiln::golden
