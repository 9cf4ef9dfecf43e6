// Parts of the std modules that have files of their own.
#pragma once
#include <span>

#include "repl/script/builtins/builtins.h"

namespace kiln::script {

std::span<const NativeDef> os_functions();
std::span<const NativeDef> os_path_functions();
/// A path: a str, or an object with __fspath__.
std::string path_text(Interp& in, const Value& v);
void fill_json(Interp& in, ModuleObject& m);
/// Functions that make the values of a text of JSON; a missing one leaves its values as they are.
struct JsonHooks {
  Value object, real, integer, constant, pairs;
};
/// The value that a JSON text is; ValueError says where it is none.
Value parse_json(Interp& in, const std::string& text, const JsonHooks& hooks = {});
/// _kiln: what Kiln's own modules that are written in the language need of the interpreter.
void fill_kiln(Interp& in, ModuleObject& m);
/// _re: what library/re.py is made of.
void fill_re(Interp& in, ModuleObject& m);
/// _time: what library/time.py is made of.
void fill_time(Interp& in, ModuleObject& m);
void install_open(Interp& in);
/// Makes an empty file that only its owner reads and writes; FileExistsError where something stands already.
Value create_private(Interp& in, NativeArgs& a);
/// sys.stdin: None where the process has no standard input.
Value standard_input(Interp& in);

}  // namespace kiln::script
