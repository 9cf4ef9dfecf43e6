// The rows of kiln/launch_option.def, for those who read, check, write or describe options by name.
#pragma once
#include <string>
#include <string_view>

#include "kiln/launch_options.h"
#include "kiln/result.h"

namespace kiln {

struct LaunchOption {
  constexpr LaunchOption(std::string_view name_, std::string_view python, int least_, int most_,
                         std::string_view traits_, std::string_view help_, int CodeOptions::*number_)
      : name(name_),
        python_default(python),
        least(least_),
        most(most_),
        traits(traits_),
        help(help_),
        number(number_) {}
  constexpr LaunchOption(std::string_view name_, std::string_view python, int least_, int most_,
                         std::string_view traits_, std::string_view help_, bool CodeOptions::*flag_)
      : name(name_), python_default(python), least(least_), most(most_), traits(traits_), help(help_), flag(flag_) {}

  std::string_view name, python_default;
  int least, most;
  std::string_view traits, help;
  int CodeOptions::*number = nullptr;  // one of the two is set
  bool CodeOptions::*flag = nullptr;

  bool has(char trait) const { return traits.find(trait) != std::string_view::npos; }
  bool is_tuned() const { return has('T'); }
  bool takes_none() const { return python_default == "None"; }
  int get(const CodeOptions& options) const { return number ? options.*number : options.*flag; }
  void set(CodeOptions& options, int value) const {
    if (number)
      options.*number = value;
    else
      options.*flag = value != 0;
  }
  void set_default(CodeOptions& options) const { set(options, get(CodeOptions{})); }
  bool allows(int value) const;
  /// "a power of two from 1 to 32"
  std::string allowed() const;
  /// "num_warps=8", "maxnreg=None", "debug=False": the keyword of a launch.
  std::string text(const CodeOptions& options) const;
  /// Sets it to what follows the '=' of such a text, where 0 and 1 do for a flag, too. kValue: it is not allowed.
  Status read(std::string_view text, CodeOptions& options) const;
};

inline constexpr LaunchOption kLaunchOptions[] = {
#define KILN_LAUNCH_OPTION(NAME, TYPE, DEFAULT, PYTHON, LEAST, MOST, TRAITS, HELP) \
  LaunchOption(#NAME, PYTHON, LEAST, MOST, TRAITS, HELP, &CodeOptions::NAME),
#include "kiln/launch_option.def"
};
/// nullptr when there is none of that name.
const LaunchOption* find_launch_option(std::string_view name);

/// "num_warps must be a power of two from 1 to 32, got 3", of the first option that is; else empty.
std::string wrong_option(const CodeOptions& options);

/// What tells configurations apart: "num_warps: 4, num_stages: 3, num_ctas: 1". Options that are None are left out.
std::string tuned_text(const CodeOptions& options);
/// Every option, for cache keys: "num_warps 4 num_stages 3 …".
std::string key_text(const CodeOptions& options);

}  // namespace kiln
