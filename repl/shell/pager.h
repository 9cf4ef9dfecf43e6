// Long output at the prompt, a screen at a time.
#pragma once
#include <string_view>

namespace kiln::repl {

/// Whether standard input and output are a terminal on which a pager can run, and KILN_PAGER does not turn it off.
bool can_page();

/// Lines that a text takes on a terminal of so many columns; 0: none are wrapped.
int lines_on_screen(std::string_view text, int columns);

/// Shows the text by $KILN_PAGER, $PAGER or less, and waits for its end, when it is longer than the terminal. Unless it
/// may run a shell, only less is started, and in its secure mode, without commands, an editor or other files. False:
/// nothing was shown, because it fits or there is no pager.
bool page(std::string_view text, bool may_run_shell);
/// Whether a pager's command is less with options, and nothing that a shell would do beside.
bool is_less_alone(std::string_view command);

}  // namespace kiln::repl
