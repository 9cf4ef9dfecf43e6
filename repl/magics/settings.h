// %set: what a session can be told to do otherwise, one table of settings. A setting's value lies where it is used; the
// table knows how it is read and changed.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kiln/result.h"
#include "repl/magics/magic_options.h"

namespace kiln::repl {

struct MagicArguments;
struct MagicContext;

struct Setting {
  std::string_view name, initial;
  Legal legal;
  std::string_view allowed;  // what values there are: of words, "on|off"
  std::string_view help;
  std::string (*get)(const MagicContext&);
  Status (*set)(MagicContext&, std::string_view value);  // kValue
};
std::span<const Setting> settings();

/// Gives arguments without budget= the one that is set.
void add_budget(const MagicContext& context, MagicArguments& arguments);

/// $XDG_CONFIG_HOME/kiln/config.toml, else ~/.config/kiln/config.toml; empty when there is neither variable.
std::string config_file();
/// Takes over the `NAME = VALUE` lines of a file; one that is not there is empty. What a line gets wrong is told, as
/// "FILE:LINE: …", and the line left out.
std::vector<Diagnostic> read_config(MagicContext& context, const std::string& file);
/// Writes the values that differ from the initial ones, and those that the file names already. Its other lines stay.
Status write_config(const MagicContext& context, const std::string& file);

}  // namespace kiln::repl
