#include "repl/commands/compare_command.h"

#include <unistd.h>

#include "profiler/compare/compare.h"
#include "repl/shell/errors.h"
#include "repl/shell/files.h"

namespace kiln::repl {

namespace {

Result<profiler::Contest> read_contest(const std::string& path) {
  KILN_TRY(std::string text, read_text(path));
  return profiler::parse_contest(text, path);
}

Result<profiler::Changes> changes_of(const CompareArgs& args) {
  KILN_TRY(profiler::Contest before, read_contest(args.old_file));
  KILN_TRY(profiler::Contest after, read_contest(args.new_file));
  return profiler::compare_contests(before, after, args.threshold_percent / 100);
}

}  // namespace

int compare_command(const CompareArgs& args, bool json) {
  auto changes = changes_of(args);
  if (!changes.ok()) {
    print_error(changes.error(), json);
    return kExitUsage;
  }
  report::Table table = profiler::changes_table(*changes);
  put(stdout, json ? report::to_json(table) : report::to_text(table, report::style_of(STDOUT_FILENO)));
  if (changes->any_wrong()) return kExitMismatch;
  if (changes->any_slower()) return kExitSlower;
  return changes->any_missing() ? kExitError : kExitOk;
}

}  // namespace kiln::repl
