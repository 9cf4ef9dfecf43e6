// What Python's str knows of characters: classes of letters and digits, and their capital and small forms.
#pragma once
#include <string>
#include <string_view>

namespace kiln::unicode {

bool is_alpha(char32_t c);
bool is_decimal(char32_t c);
/// Of a decimal digit of any script.
int decimal_value(char32_t c);
bool is_digit(char32_t c);    // also ², ①
bool is_numeric(char32_t c);  // also ½, Ⅷ, 三
bool is_space(char32_t c);
/// What repr() shows as it is.
bool is_printable(char32_t c);
bool is_lower(char32_t c);
bool is_upper(char32_t c);
bool is_title(char32_t c);  // ǅ
bool is_identifier_start(char32_t c);
bool is_identifier_part(char32_t c);
/// With capital and small forms: what follows in its word is small in a title.
bool is_cased(char32_t c);

/// Append the form of a character, which may be several characters: ß becomes SS.
void append_upper(std::string& out, char32_t c);
void append_lower(std::string& out, char32_t c);
void append_title(std::string& out, char32_t c);
void append_fold(std::string& out, char32_t c);

/// Whether a Σ, which stands at those bytes of the text, ends its word and so becomes ς.
bool is_final_sigma(std::string_view text, size_t at, size_t bytes);

/// Bytes of the end of a line that the text starts with; 0: it starts with none.
size_t line_end(std::string_view text);

}  // namespace kiln::unicode
