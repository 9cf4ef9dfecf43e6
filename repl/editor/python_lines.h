// What an editor has to know of Python's lines: how far the next one is indented, and which texts carry prompts.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace kiln::editor {

/// Blanks for a new line after this text: as the line before, four more behind a colon or an open bracket, four less
/// behind return, pass, break, continue and raise.
int indent_after(std::string_view text);

/// For a line that was just made one of else, elif, except, finally or case: how many blanks it should have to belong
/// to the block above; -1: leave it.
int indent_of_clause(std::string_view text_before_cursor);

/// A pasted text without what is not code: the prompts of a transcript ([3], In [3]:, >>>, ...) with the output between
/// them, and the indentation that all lines share.
std::string cleaned_paste(std::string text);
/// What was entered at each prompt of a transcript, with ends of lines; empty: it is none.
std::vector<std::string> entries_of_transcript(std::string_view text);
std::string joined(const std::vector<std::string>& entries);

/// The bracket at the cursor, or just before it, and its other half; {npos, npos} when there is none. Brackets in
/// strings and comments do not count.
struct BracketPair {
  size_t open = std::string_view::npos, close = std::string_view::npos;
};
BracketPair matching_brackets(std::string_view text, size_t cursor);

}  // namespace kiln::editor
