// What `x?`, help(x) and completion say about a value.
#pragma once
#include <string>

#include "repl/script/interp/interp.h"

namespace kiln::script {

/// Several lines: a call's form and docstring, what kind of value it is, and where it is from. Computes no tensor that
/// is pending, but runs the script's own __repr__.
std::string describe_value(Interp& in, const Value& v);

/// One line about a value: a tensor's shape, a function's form, else its repr, cut.
std::string summary_of(Interp& in, const Value& v);

/// help(x), as a function of scripts.
void add_help(Interp& in);

}  // namespace kiln::script
