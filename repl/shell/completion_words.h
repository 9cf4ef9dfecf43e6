// The parts that completion is made of: the candidates of one kind of value, and where the word at the cursor begins.
#pragma once
#include <string>
#include <string_view>

#include "repl/editor/completion_menu.h"
#include "repl/magics/magic_options.h"
#include "repl/session/session.h"

namespace kiln::repl {

/// Adds a candidate that begins with `typed`; `note` is the line about it.
void offer(editor::Completion& to, std::string_view typed, std::string candidate, std::string note = {});

/// Names of files and folders that begin as typed; a folder ends in a slash.
void offer_paths(editor::Completion& to, std::string_view typed);
/// Programs of $PATH, each once.
void offer_programs(editor::Completion& to, std::string_view typed);

/// Values of one kind, each behind `before` ("budget="), which `typed` begins with.
void offer_values(script::Session& session, editor::Completion& to, std::string_view typed, std::string_view before,
                  Legal legal, std::string_view words);

/// The names that a launch of this kernel takes, as "NAME=".
void offer_launch_keywords(editor::Completion& to, std::string_view typed, const Kernel& kernel);
/// The values of a launch option, behind "name="; none for another name.
void offer_launch_values(editor::Completion& to, std::string_view typed, std::string_view before,
                         std::string_view option);

/// What is open at the end of a text; npos: nothing is. Strings end with their line, but for triple quotes.
struct CursorPlace {
  size_t string = std::string_view::npos;   // behind the quote of a string
  size_t bracket = std::string_view::npos;  // the innermost bracket outside of strings and comments
};
CursorPlace cursor_place(std::string_view text);

/// "a.b" at the end of a text; empty when it ends otherwise.
std::string_view path_before(std::string_view text);
bool is_name_character(char c);

/// What may stand behind "%name ", outside of brackets and strings. False: the word is one of an expression, whose
/// names are still to be offered.
bool complete_magic(script::Session& session, std::string_view line, editor::Completion& to);

}  // namespace kiln::repl
