// The command line of the kiln program, as plain data.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kiln/launch_options.h"
#include "kiln/runtime.h"

namespace kiln::repl {

/// Why the program ends; scripts and CI read these.
enum ExitCode { kExitOk = 0, kExitError = 1, kExitUsage = 2, kExitMismatch = 3, kExitSlower = 4 };

enum class Command {
  kPrompt,
  kFile,
  kCode,
  kStdin,
  kCompile,
  kCheck,
  kEnv,
  kDoctor,
  kDevices,
  kVersion,
  kDemo,
  kCompare,
  kProfile,
  kSweep,
  kTune,
  kMerge,
  kCache
};

struct CompileArgs {
  std::string file;
  std::string kernel;                   // "": the file's only one (compile), every one (check)
  std::string signature;                // "": inferred, and said so
  std::vector<std::string> constexprs;  // "NAME=VALUE"
  std::string target;                   // "": that of the default device
  CodeOptions options;
  std::string emit;         // "": the target's code, ptx or asm
  std::string print_after;  // a pass's name, "all" or "changed"
  std::string remarks;      // a regular expression over PASS/REASON; "": none are shown
  bool time_passes = false;
  bool verify_each = false;
  std::string output;  // "": stdout
};

struct DemoArgs {
  std::vector<std::string> kernels;  // empty: all
  double timeout_s = 6;              // of each comparison
};

struct CompareArgs {
  std::string old_file, new_file;
  double threshold_percent = 2;  // changes up to this do not count
};

struct ProfileArgs {
  std::string file;
  std::string html, trace, json;  // files to write; empty: not
  std::string csv;                // a folder
  bool markdown = false;          // how the tables are printed
  std::string sort;               // empty: the default
  int64_t rows = 20;              // 0: all
  bool lines = false, shapes = false, memory = false, streams = false;
};

/// Of `kiln sweep` and `kiln tune`.
struct ShardArgs {
  std::string file;                // the script; "": none
  std::string shard;               // "I/N"; "": all of it
  std::string out;                 // a folder; "": nothing is kept
  std::vector<std::string> words;  // expressions and NAME=VALUE
};

/// What SIGINT does while something runs.
enum class Interrupts {
  kOfPrompt,      // interrupts it; the third press ends the program
  kOfStatements,  // interrupts it
  kNone,          // what the program has it do
};

struct Options {
  Command command = Command::kPrompt;
  std::optional<Runtime> runtime;  // what devices are opened of; missing: a session's own
  std::string device;              // "": the default one
  bool json = false;
  bool no_shell = false;        // ! and %sh are errors
  bool check_accesses = false;  // kFile: of every launch
  Interrupts interrupts = Interrupts::kOfPrompt;
  std::string file, code;         // kFile, kCode
  std::vector<std::string> args;  // the script's own
  CompileArgs compile;
  DemoArgs demo;
  CompareArgs compare;
  ProfileArgs profile;
  ShardArgs shard;
  std::string merge_folder;
  std::string cache_action, cache_file;  // "export" or "import"
};

/// Either options, or the exit code of what was said instead (help, version, a usage error: already printed).
struct ParsedOptions {
  std::optional<Options> options;
  int exit_code = kExitOk;
};
ParsedOptions parse_options(int argc, const char* const* argv);

}  // namespace kiln::repl
