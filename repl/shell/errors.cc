#include "repl/shell/errors.h"

#include <unistd.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "profiler/report/table.h"
#include "repl/shell/options.h"
#include "support/notebook.h"

namespace kiln::repl {

std::string error_json(const Diagnostic& d) {
  using nlohmann::ordered_json;
  auto with_place = [](ordered_json j, const Place& p) {
    if (p.line <= 0) return j;
    const CellPlace at = cell_place(p);
    j["file"] = at.file;
    if (at.cell) j["cell"] = at.cell;
    j["line"] = p.line, j["column"] = p.column;
    return j;
  };
  ordered_json j = with_place({{"kind", name(d.kind)}, {"message", d.message}}, d.place);
  for (const Note& n : d.notes) j["notes"].push_back(with_place({{"message", n.message}}, n.place));
  return j.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

void print_error(const Diagnostic& d, bool json, std::optional<bool> color) {
  // What was printed before the error stands before it also where both go to one place.
  std::fflush(stdout);
  const int columns = isatty(STDERR_FILENO) ? report::terminal_columns(STDERR_FILENO) : 0;
  std::string text = json ? "{\"error\":" + error_json(d) + "}\n"
                          : render(d, color.value_or(report::wants_color(STDERR_FILENO)), columns);
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

// Results that differ are the one failure that scripts of others ask for by its number.
int exit_code_of(const Diagnostic& d) { return d.kind == ErrorKind::kMismatch ? kExitMismatch : kExitError; }

}  // namespace kiln::repl
