#include "repl/shell/cli.h"

#include <signal.h>
#include <unistd.h>

#include <cstdlib>

#include "profiler/cupti/nvtx_listener.h"
#include "profiler/report/table.h"
#include "repl/commands/cache_command.h"
#include "repl/commands/compare_command.h"
#include "repl/commands/compile_command.h"
#include "repl/commands/compile_texts.h"
#include "repl/commands/demo.h"
#include "repl/commands/doctor.h"
#include "repl/commands/info_commands.h"
#include "repl/commands/profile_command.h"
#include "repl/commands/shard_commands.h"
#include "repl/commands/version.h"
#include "repl/editor/terminal.h"
#include "repl/magics/settings.h"
#include "repl/shell/entry_source.h"
#include "repl/shell/entry_text.h"
#include "repl/shell/errors.h"
#include "repl/shell/files.h"
#include "repl/shell/options.h"
#include "repl/shell/shell.h"
#include "support/aside.h"
#include "support/faults.h"
#include "support/knobs.h"
#include "support/stop.h"
#include "support/text_width.h"

namespace kiln::repl {

namespace {

int failed(const Diagnostic& d, bool json) {
  print_error(d, json);
  return exit_code_of(d);
}

// A file that cannot be read is a mistake of the command line, not of the program in it.
int run_file(const Options& o, const std::string& path, const std::string& shown_name) {
  auto text = read_source(path);
  if (!text.ok()) {
    print_error(text.error(), o.json);
    return kExitUsage;
  }
  Shell shell(o, nullptr);
  return shell.run_program(*text, shown_name);
}

Result<Device> chosen_device(const Options& o) {
  return o.device.empty() ? o.runtime->open_default() : o.runtime->open(o.device);
}

int prompt(const Options& o) {
  auto device = chosen_device(o);
  if (!device.ok()) return failed(device.error(), o.json);
  put(stdout, banner(*device, report::terminal_columns(STDOUT_FILENO)) + "\n");
  Shell shell(o, nullptr);
  shell.session().set_device(*device);
  // What is wrong with the settings keeps nobody from the prompt.
  for (const Diagnostic& d : read_config(shell.context(), config_file())) print_error(d, o.json);
  const char* term = std::getenv("TERM");
  // Without a terminal, or with one that cannot move the cursor, lines are read as they come.
  const bool can_edit = isatty(STDOUT_FILENO) && std::string_view(term ? term : "") != "dumb";
  auto entries = can_edit
                     ? make_editor_source({.complete = [&](std::string_view before) { return shell.complete(before); },
                                           .preview = [&](const std::string& name) { return shell.preview(name); },
                                           .is_incomplete = entry_is_incomplete,
                                           .highlight = highlight},
                                          state_folder())
                     : make_plain_source();
  return shell.prompt(*entries);
}

int devices(const Options& o) {
  auto current = chosen_device(o);
  if (!current.ok()) return failed(current.error(), o.json);
  report::Table table = devices_table(*current);
  put(stdout, o.json ? report::to_json(table) : report::to_text(table, report::style_of(STDOUT_FILENO)));
  return kExitOk;
}

int exit_code(const Result<int>& result, bool json) { return result.ok() ? *result : failed(result.error(), json); }

int run_command(Options& o) {
  switch (o.command) {
    case Command::kPrompt:
      if (isatty(STDIN_FILENO)) return prompt(o);
      [[fallthrough]];
    case Command::kStdin:
      o.args.insert(o.args.begin(), "-");
      return run_file(o, "-", "<stdin>");
    case Command::kFile: {
      std::string file = o.file;
      o.args.insert(o.args.begin(), file);
      return run_file(o, file, file);
    }
    case Command::kCode: {
      o.args.insert(o.args.begin(), "-c");
      Shell shell(o, nullptr);
      return shell.run_program(o.code, "<-c>");
    }
    case Command::kCompile: {
      Status s = compile_command(o.compile, o.device, o.json);
      return s.ok() ? kExitOk : failed(s.error(), o.json);
    }
    case Command::kCheck:
      return exit_code(check_command(o.compile, o.device, o.json), o.json);
    case Command::kEnv: {
      report::Table table = env_table();
      put(stdout, o.json ? report::to_json(table) : report::to_text(table, report::style_of(STDOUT_FILENO)));
      return kExitOk;
    }
    case Command::kDoctor: {
      auto table = doctor_table(*o.runtime);
      if (!table) return failed(table.error(), o.json);
      put(stdout, o.json ? report::to_json(*table) : report::to_text(*table, report::style_of(STDOUT_FILENO)));
      return kExitOk;
    }
    case Command::kVersion: {
      auto found = doctor_table(*o.runtime);
      if (!found) return failed(found.error(), o.json);
      const report::TextStyle style = report::style_of(STDOUT_FILENO);
      for (const report::Table& table : {version_table(), *std::move(found)})
        put(stdout, o.json ? report::to_json(table) : report::to_text(table, style));
      return kExitOk;
    }
    case Command::kDevices:
      return devices(o);
    case Command::kCompare:
      return compare_command(o.compare, o.json);
    case Command::kProfile:
      // It changes the environment, which is safe only before there are threads.
      profiler::cupti::name_nvtx_listener();
      return profile_command(o);
    case Command::kDemo: {
      auto device = chosen_device(o);
      return device.ok() ? exit_code(demo_command(o.demo, *device, o.json), o.json) : failed(device.error(), o.json);
    }
    case Command::kSweep:
      return sweep_command(o);
    case Command::kTune:
      return tune_command(o);
    case Command::kMerge:
      return merge_command(o.merge_folder, o.json);
    case Command::kCache:
      return o.cache_action == "export" ? export_cache(o.cache_file, o.json) : import_cache(o.cache_file, o.json);
  }
  return kExitUsage;
}

}  // namespace

int run(int argc, const char* const* argv) {
  // First of all: a file that is opened must not get the number of a closed stdout.
  keep_standard_streams();
  faults::install();
  signal(SIGXFSZ, SIG_IGN);  // a file that `ulimit -f` lets grow no further is an error of that write
  // The terminal is put back also when a fault ends the process.
  faults::set_last_act(editor::restore_terminal);
  leave_drivers_code_cache_off();
  ParsedOptions parsed = parse_options(argc, argv);
  if (parsed.options)
    for (const std::string& problem : knob_problems()) put(stderr, "warning: " + printable(problem) + "\n");
  // Closed behind all that runs, and not where a device is hung: its driver would wait for it.
  const Runtime devices;
  if (parsed.options) parsed.options->runtime = devices;
  int code = parsed.options ? run_command(*parsed.options) : parsed.exit_code;
  // What is still buffered may not be writable any more: a full disk is an error of the program.
  if (Status s = finish_output(); !s.ok()) {
    print_error(s.error(), parsed.options && parsed.options->json);
    if (code == kExitOk) code = kExitError;
  }
  // Their threads hold locks that static destructors would wait for.
  if (hung_devices > 0 || work_left_aside() > 0) _exit(code);
  return code;
}

}  // namespace kiln::repl
