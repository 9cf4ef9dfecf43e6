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

/// In what a path is typed: what it needs where it has a blank.
enum class PathPlace {
  kString,  // a string of code: nothing
  kWord,    // a word of a command: quotes around it
  kQuoted,  // a quoted word of a command: the quote at its end
};
struct PathForm {
  PathPlace place = PathPlace::kString;
  char quote = 0;  // of kQuoted
  bool folders_only = false;
};
/// Names of files and folders that begin as typed; a folder ends in a slash.
void offer_paths(editor::Completion& to, std::string_view typed, PathForm form);
/// Programs of $PATH, each once.
void offer_programs(editor::Completion& to, std::string_view typed);

/// Values of one kind, each behind `before` ("budget="), which `typed` begins with. `about` is the line about those
/// that have none of their own.
void offer_values(script::Session& session, editor::Completion& to, std::string_view typed, std::string_view before,
                  Legal legal, std::string_view words, const std::string& about = {});

/// The names that a launch of this kernel takes, as "NAME=".
void offer_launch_keywords(editor::Completion& to, std::string_view typed, const Kernel& kernel);
/// The values of a launch option; none for another name.
std::vector<std::string> launch_values(std::string_view option);

/// What is open at the end of a text; npos: nothing is. Strings end with their line, but for triple quotes.
struct CursorPlace {
  size_t string = std::string_view::npos;   // behind the quote of a string
  size_t bracket = std::string_view::npos;  // the innermost bracket outside of strings and comments
};
CursorPlace cursor_place(std::string_view text);

/// "a.b" at the end of a text; empty when it ends otherwise.
std::string_view path_before(std::string_view text);
/// The same with indices: "d['a'][0].b".
std::string_view chain_before(std::string_view text);
/// The word that names complete: a path, which indices may come before where it has a dot.
std::string_view word_before(std::string_view text);
bool is_name_character(char c);

/// A string that is a key, as in `d['`, or the value of an argument whose values are known: offered with its closing
/// quote. False where it is neither.
bool complete_string(script::Session& session, std::string_view before, std::string_view typed, editor::Completion& to);
/// The keys of an index and the keywords of a call, at a word without dots, and the values of `keyword=`. True: there
/// are such values.
bool complete_in_brackets(script::Session& session, std::string_view before, std::string_view word,
                          editor::Completion& to);
/// Modules behind `import`, names behind `from … import`. False: the text does not end in such a statement.
bool complete_import(script::Session& session, std::string_view before, editor::Completion& to);
/// Adds what a text binds, which no variable may have yet: parameters, targets of assignments and loops.
void add_bound_names(std::string_view text, std::vector<std::string>& names);

/// Paths within the quotes of a command's word.
void complete_quoted_path(std::string_view line, std::string_view typed, char quote, editor::Completion& to);
/// What may stand behind "%name ", outside of brackets and strings. False: the word is one of an expression, whose
/// names are still to be offered.
bool complete_magic(script::Session& session, std::string_view line, editor::Completion& to);

}  // namespace kiln::repl
