#include "repl/shell/options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <sstream>

#include "repl/shell/files.h"
#include "support/diag.h"
#include "support/launch_options.h"
#include "support/text_width.h"

namespace kiln::repl {

namespace {

constexpr const char* kFooter =
    R"(`kiln file.py …` is `kiln run file.py …`; behind `-c TEXT` too stand the program's own arguments.
With no command: the prompt, or the program on standard input when that is not a terminal.

exit codes: 0 ok, 1 an error in the program, 2 usage, 3 a result is wrong, 4 slower than the baseline)";

void add_launch_options(CLI::App& command, CodeOptions& options) {
  for (const LaunchOption& o : kLaunchOptions) {
    std::string flag = "--" + std::string(o.name), help(o.help);
    std::replace(flag.begin(), flag.end(), '_', '-');
    // What is on can only be turned off by its value.
    if (o.flag)
      command.add_flag(flag, options.*o.flag,
                       o.get(options) ? fmt::format("{}; on, {}=false turns it off", help, flag) : help);
    else
      command.add_option(flag, options.*o.number, help)->check([&o](const std::string& text) {
        int value = 0;
        const bool fits = CLI::detail::lexical_cast(text, value) && o.allows(value);
        return fits ? std::string() : fmt::format("must be {}, got {}", o.allowed(), text);
      });
  }
}

void add_kernel_options(CLI::App& command, CompileArgs& a) {
  command.add_option("file", a.file, "kernel file (Triton language)")->required();
  command.add_option("--kernel", a.kernel, "the function's name");
  command.add_option(
      "--signature", a.signature,
      "types of the parameters in order, as '*fp32:16,*fp32,i32'; ':16' promises divisibility; constexpr "
      "parameters may be left out or given as 'constexpr'");
  command.add_option("--constexpr", a.constexprs, "NAME=VALUE, for each constexpr parameter")->take_all();
  command.add_option("--target", a.target, "sm_80, sm_90a, host, …; default: the device's");
  // As Triton's compiler: what is compiled for others checks nothing unless asked to. A launch of Kiln's does.
  a.options.debug = false;
  add_launch_options(command, a.options);
  command.add_flag("--verify-each", a.verify_each, "verify the IR after every pass");
}

void add_shard_options(CLI::App& command, ShardArgs& a, const char* name, const char* what) {
  command.add_option(name, a.words, what)->required();
  command.add_option("--file", a.file, "run this script first");
  command.add_option("--shard", a.shard,
                     "I/N, I from 0 to N-1: only those of the list whose number divided by N leaves I (default: 0/1)");
  command.add_option("--out", a.out,
                     "keep each measurement in this folder, and leave out what it holds (docs/sharding.md)");
}

}  // namespace

namespace {

/// `kiln file.py` is `kiln run file.py`. What is wrong with a first word that is neither a command nor a script; empty:
/// nothing, or the command line says it.
std::string run_script_named(std::vector<const char*>& words, const std::vector<std::string>& commands) {
  for (size_t i = 1; i < words.size(); ++i) {
    const std::string_view word = words[i];
    if (word == "-" || word == "-c") return {};
    if (word == "--device") ++i;  // its value
    if (word.starts_with('-')) continue;
    std::error_code none;
    // A pipe too: kiln <(make_program).
    const bool is_script = word.ends_with(".py") || std::filesystem::exists(word, none);
    if (std::ranges::find(commands, word) != commands.end()) return {};
    if (std::filesystem::is_directory(word, none))
      return fmt::format("{} is a folder: kiln runs a script of it (kiln {}/FILE.py), kiln check its kernels", word,
                         word.substr(0, word.find_last_not_of('/') + 1));
    if (is_script)
      words.insert(words.begin() + static_cast<ptrdiff_t>(i), "run");
    else if (word.find('/') != std::string_view::npos)
      return fmt::format("there is no file {}", word);
    else if (const std::string near = nearest_name(word, commands); !near.empty())
      return fmt::format("{} is neither a command nor a file; did you mean {}?", word, near);
    else
      return fmt::format("{} is neither a command nor a file: kiln --help lists the commands", word);
    return {};
  }
  return {};
}

}  // namespace

ParsedOptions parse_options(int argc, const char* const* argv) {
  Options o;
  CLI::App app{"Kiln: type, run, measure and read GPU kernels in the Triton language", "kiln"};
  app.footer(kFooter);
  bool version = false, verbose = false;
  CLI::Option* asked = app.add_flag("--version", version, "print the version");
  app.add_flag("--verbose", verbose, "with --version: all that a report of a bug needs")->needs(asked);
  app.fallthrough();
  app.add_option("--device", o.device, "cuda, cuda:N or cpu; default: the first GPU, else the CPU");
  app.add_flag("--json", o.json, "tables and errors as JSON lines");
  app.add_flag("--no-shell", o.no_shell, "no shell commands (!COMMAND) at the prompt and in scripts");
  app.require_subcommand(0, 1);

  app.add_option("-c", o.code, "run this program text");

  CLI::App* run = app.add_subcommand("run", "run a script");
  run->add_option("file", o.file, "the script")->required();
  run->add_flag("--check", o.check_accesses, "bounds-check every launch: an error instead of a fault");

  CLI::App* compile = app.add_subcommand("compile", "compile one kernel and show a stage of it");
  add_kernel_options(*compile, o.compile);
  compile->add_option(
      "--emit", o.compile.emit,
      "ast, ir, ir:PASS, layout, llvm, ptx, cubin, sass, asm, object, info: its figures, or c: a C file that "
      "launches it, with its code for each --target (sm_80,sm_90a)");
  compile->add_option(
      "--print-after", o.compile.print_after,
      "also print the IR after this pass to stderr ('all': every one; 'changed': those that changed it)");
  compile->add_flag("--remarks{.}", o.compile.remarks,
                    "what passes decided and why, by source line (docs/remarks.md); --remarks=REGEX: of what "
                    "PASS/REASON matches; without --emit nothing else is printed");
  compile->add_flag("--time-passes", o.compile.time_passes, "print the time of each phase to stderr");
  compile->add_option("-o", o.compile.output, "write to this file");

  CLI::App* check =
      app.add_subcommand("check", "compile every kernel of a file, or of the files of a folder, and report the errors");
  add_kernel_options(*check, o.compile);

  CLI::App* env = app.add_subcommand("env", "list the KILN_* variables with values and meanings");
  CLI::App* doctor = app.add_subcommand(
      "doctor", "what is found of drivers, libraries, permissions and folders, and what each that is missing costs");
  CLI::App* devices = app.add_subcommand("devices", "list the devices of this machine");
  CLI::App* demo = app.add_subcommand(
      "demo", "compare expressions in all variants; or the named kernels with one kernel per operation");
  demo->add_option("kernels", o.demo.kernels, "only these kernels");
  // Not CLI::PositiveNumber, which shows the largest float where a number does not fit.
  demo->add_option("--timeout", o.demo.timeout_s, "seconds for each comparison")->check([](const std::string& text) {
    double seconds = 0;
    const bool fits = CLI::detail::lexical_cast(text, seconds) && seconds > 0;
    return fits ? std::string() : fmt::format("must be a number of seconds above 0, got {}", text);
  });

  CLI::App* compare = app.add_subcommand("compare", "compare two runs saved by %compare --json");
  compare->add_option("old", o.compare.old_file, "the earlier run")->required();
  compare->add_option("new", o.compare.new_file, "the later run")->required();
  compare->add_option("--threshold", o.compare.threshold_percent, "percent of change to ignore (default: 2)")
      ->check(CLI::Range(0.0, 100.0));

  CLI::App* profile = app.add_subcommand("profile", "run a script and show where its time goes");
  profile->add_option("file", o.profile.file, "the script")->required();
  profile->add_option("args", o.args, "the script's own arguments; after -- they may begin with a dash");
  profile->add_option("--html", o.profile.html, "write an HTML page with timeline, tables and findings");
  profile->add_option("--trace", o.profile.trace, "write a trace for ui.perfetto.dev");
  profile->add_option("--json", o.profile.json, "write all tables and findings");
  profile->add_option("--csv", o.profile.csv, "write each table into this folder");
  profile->add_flag("--markdown", o.profile.markdown, "print the tables as markdown");
  profile->add_option("--sort", o.profile.sort,
                      "column: self_cpu, cpu, self_gpu, gpu, calls, average, self_memory, memory, name");
  profile->add_option("--rows", o.profile.rows, "rows of each table; 0: all (default: 20)")
      ->check(CLI::Range(0, 1'000'000'000));
  profile->add_flag("--lines", o.profile.lines, "make statements of the script rows too");
  profile->add_flag("--shapes", o.profile.shapes, "a row for each shape and launch configuration");
  profile->add_flag("--memory", o.profile.memory, "allocations by line and operation");
  profile->add_flag("--streams", o.profile.streams, "busy time of each stream, and overlaps");

  CLI::App* sweep =
      app.add_subcommand("sweep", "measure expressions over sizes, dtypes or constexprs, or a shard of it");
  add_shard_options(*sweep, o.shard, "expression",
                    "expressions, axes and options as of %sweep: 'f(x)' n='[256, 1024]' setup='…'");
  CLI::App* tune = app.add_subcommand("tune", "measure the configurations of a launch, or a shard of them");
  add_shard_options(*tune, o.shard, "launch",
                    "a launch, axes and options as of %tune: 'kernel[grid](x, y)' BLOCK='[128, 256]'");
  CLI::App* merge = app.add_subcommand("merge", "put the shards of sweeps and tunings together again");
  merge->add_option("folder", o.merge_folder, "the folder of their --out")->required();

  CLI::App* cache = app.add_subcommand("cache", "move compiled kernels and tuning records to another machine");
  cache->add_option("action", o.cache_action, "export: write the cache into a file; import: add a file to the cache")
      ->required()
      ->check(CLI::IsMember({"export", "import"}));
  cache->add_option("file", o.cache_file, "the file; import only what you would run")->required();

  for (const char* option : {"--html", "--trace", "--json", "--csv"})
    profile->get_option(option)->check(
        [](const std::string& name) { return std::string(name.empty() ? "the name of a file is missing" : ""); });

  std::vector<std::string> commands;
  for (const CLI::App* sub : app.get_subcommands([](CLI::App*) { return true; })) commands.push_back(sub->get_name());
  auto is_command = [&](std::string_view word) { return std::ranges::find(commands, word) != commands.end(); };
  std::vector<const char*> words(argv, argv + argc);
  if (const std::string problem = run_script_named(words, commands); !problem.empty()) {
    put(stderr, "kiln: " + printable(problem) + "\n");
    return {std::nullopt, kExitUsage};
  }
  argc = static_cast<int>(words.size()), argv = words.data();
  // As with Python, "-" and a script's name end the options: what follows is the program's own.
  bool from_stdin = false, running = false;
  std::vector<std::string> behind;
  int end = argc;
  auto behind_options = [&](int i) {
    for (; i < argc; ++i) {
      const std::string_view next = argv[i];
      if (next == "--device")
        ++i;
      else if (next != "--json" && next != "--no-shell" && !next.starts_with("--device="))
        break;
    }
    return std::min(i, argc);
  };
  for (int i = 1; i < end; ++i) {
    std::string_view word = argv[i];
    if (word == "-c") {
      // Behind the text stand options of ours, then what is the program's.
      i = behind_options(std::min(i + 2, argc));
      if (i < end) o.args.assign(argv + i + (std::string_view(argv[i]) == "--"), argv + argc);
      end = std::min(end, i);
    } else if (word == "--device") {
      ++i;  // its value
    } else if (running ? !word.starts_with('-') || word == "-" : word == "-") {
      from_stdin = !running;
      if (from_stdin) {  // behind "-" as behind -c TEXT
        const int own = behind_options(i + 1);
        std::rotate(words.begin() + i, words.begin() + i + 1, words.begin() + own);
        i = own - 1;
      }
      end = running ? i + 1 : i;
      o.args.assign(argv + i + 1, argv + argc);
    } else if (is_command(word)) {
      running = word == "run";
      if (running) continue;
      // A script under a profile may have options of ours behind it, and its own behind "--".
      for (int k = i + 1; k < argc && word == "profile" && behind.empty(); ++k)
        if (std::string_view(argv[k]) == "--") end = k, behind.assign(argv + k + 1, argv + argc);
      break;
    }
  }
  try {
    app.parse(end, argv);
  } catch (const CLI::ParseError& e) {
    std::ostringstream out, problems;
    int code = app.exit(e, out, problems);
    put(stdout, out.str());
    put(stderr, printable(problems.str()));  // it repeats words of the command line
    return {std::nullopt, code == 0 ? kExitOk : kExitUsage};
  }
  if (version) {
    o.command = Command::kVersion;
    if (verbose) return {std::move(o), kExitOk};
    put(stdout, std::string("kiln ") + KILN_VERSION + "\n");
    return {std::nullopt, kExitOk};
  }
  o.args.insert(o.args.end(), behind.begin(), behind.end());
  const std::pair<CLI::App*, Command> kCommands[] = {
      {run, Command::kFile},    {compile, Command::kCompile}, {check, Command::kCheck},
      {env, Command::kEnv},     {doctor, Command::kDoctor},   {devices, Command::kDevices},
      {demo, Command::kDemo},   {compare, Command::kCompare}, {profile, Command::kProfile},
      {sweep, Command::kSweep}, {tune, Command::kTune},       {merge, Command::kMerge},
      {cache, Command::kCache}};
  bool chosen = false;
  for (const auto& [sub, command] : kCommands)
    if (sub->parsed()) o.command = command, chosen = true;
  bool has_code = app.count("-c") > 0;
  if (int(chosen) + int(has_code) + int(from_stdin) > 1) {
    std::cerr << "kiln: a command, -c and - exclude each other\n";
    return {std::nullopt, kExitUsage};
  }
  if (has_code) o.command = Command::kCode;
  if (from_stdin) o.command = Command::kStdin;
  return {std::move(o), kExitOk};
}

}  // namespace kiln::repl
