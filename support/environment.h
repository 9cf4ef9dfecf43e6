// Environment variables as this process has changed them. setenv() is a data race with any getenv() of another thread,
// in whatever library, so changes are kept here and given to programs that are started. While the process has one
// thread they are made in its own environment too, where libraries that are opened later look.
#pragma once
#include <optional>
#include <string>
#include <vector>

namespace kiln {

/// nullopt when it is not set. Thread-safe, as are the others.
std::optional<std::string> environment(const char* name);
/// nullopt unsets it. The name is not empty and has no '='; neither has a zero byte.
void set_environment(const std::string& name, std::optional<std::string> value);
/// "NAME=value" of every variable.
std::vector<std::string> environment_list();

}  // namespace kiln
