#include "repl/commands/doctor.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>

#include "kiln/blas.h"
#include "kiln/device.h"
#include "kiln/interrupt.h"
#include "profiler/cupti/range_profiler.h"
#include "profiler/measure/nvml.h"
#include "repl/magics/settings.h"
#include "repl/shell/files.h"
#include "support/aside.h"
#include "support/diag.h"
#include "support/dynlib.h"
#include "support/environment.h"
#include "support/files.h"
#include "support/knobs.h"
#include "support/process.h"
#include "support/trusted_folder.h"

namespace kiln::repl {

namespace {

using report::Align;
using report::Table;

/// Rows of the table. `cost` is what a user does without; it is shown for what is missing.
class Findings {
 public:
  void ok(std::string what, std::string found) { add(std::move(what), "ok", std::move(found), ""); }
  void missing(std::string what, std::string why, std::string cost) {
    ++missing_;
    add(std::move(what), "missing", std::move(why), std::move(cost));
  }
  /// Of no harm here, or as the user wants it.
  void note(std::string what, std::string found, std::string cost = {}) {
    add(std::move(what), "–", std::move(found), std::move(cost));
  }
  void say(std::string what, const Result<std::string>& found, std::string cost) {
    if (found.ok())
      ok(std::move(what), *found);
    else
      missing(std::move(what), found.error().message, std::move(cost));
  }
  Table table() && {
    table_.add_note(missing_ ? fmt::format("{} missing; 'without it' tells what that costs", missing_)
                             : std::string("nothing is missing"));
    return std::move(table_);
  }

 private:
  void add(std::string what, std::string state, std::string found, std::string cost) {
    table_.add_row({std::move(what), std::move(state), std::move(found), std::move(cost)});
  }
  Table table_{{{"what", "", Align::kLeft},
                {"state", "", Align::kLeft},
                {"found", "", Align::kLeft},
                {"without it", "", Align::kLeft, "cost"}}};
  int missing_ = 0;
};

void look_at_devices(const Runtime& runtime, Findings& f) {
  auto gpu = runtime.open("cuda");
  if (gpu.ok()) {
    const DeviceInfo info = gpu->info();
    f.ok("GPU",
         fmt::format("{} {}, {}", info.name, info.target, report::human_bytes(static_cast<double>(info.memory_bytes))));
    f.ok("CUDA driver", info.driver);
    f.say(
        // NVML comes with the driver, but not in every container.
        "clock and throttling",
        [&]() -> Result<std::string> {
          KILN_TRY(profiler::Nvml nvml, profiler::Nvml::open(info.pci_bus));
          KILN_TRY(int clock, nvml.sm_clock());
          return fmt::format("NVML, {} MHz now", clock);
        }(),
        "measurements do not tell when the clock was throttled");
  } else {
    f.missing("GPU", gpu.error().message, "kernels run on the CPU; GPU code is compiled and shown, not run");
  }
  if (auto cpu = runtime.open("cpu"); cpu.ok())
    f.ok("CPU", cpu->info().name);
  else
    f.missing("CPU", cpu.error().message, "no kernel runs on this machine's processor");
  f.ok("default device", [&] {
    auto device = runtime.open_default();
    return device.ok() ? device->name() : device.error().message;
  }());
}

void look_at_counters(Findings& f) {
  namespace cupti = profiler::cupti;
  auto found = std::make_shared<Result<std::string>>(std::string("counters, traces and line samples"));
  // It loads libraries of its own, of which one takes its time.
  // On a thread that Ctrl-C can leave behind.
  const bool asked = run_aside([found] {
    const cupti::Metric* wanted[] = {&cupti::metric(cupti::MetricId::kOccupancy)};
    // Any chip that every CUPTI knows: only the library is asked.
    if (auto resolved = cupti::resolve("GH100", wanted); !resolved) *found = std::move(resolved.error());
  });
  if (!asked) return;
  f.say("CUPTI", *found, "profiles have no GPU times of kernels; no %counters and no samples in %lines");
  // What the module was loaded with; only an administrator can change it.
  auto params = read_file("/proc/driver/nvidia/params");
  const auto restricted = params.ok() ? counters_for_root_alone(*params) : std::nullopt;
  if (!restricted) {
    f.note("counters permission", "no NVIDIA driver to ask");
  } else if (*restricted && ::geteuid() != 0) {
    f.missing("counters permission", "NVreg_RestrictProfilingToAdminUsers=1: for root alone",
              "no %counters; an administrator can set it to 0, as a module option of nvidia");
  } else {
    f.ok("counters permission", *restricted ? "as root" : "for every user");
  }
}

Result<std::string> find_program(std::string_view name) {
  const auto found = find_programs(name, toolkit_roots());
  if (found.empty()) return Diagnostic{ErrorKind::kDevice, "not in CUDA_HOME, /usr/local/cuda or PATH", {}, {}};
  return found[0];
}

void look_at_libraries(Findings& f) {
  std::vector<std::string> names;
  // The newest first, as the compiler looks for them.
  for (const char* file : {"libnvJitLink.so.13", "libnvJitLink.so.12", "libnvJitLink.so"}) {
    for (const std::string& root : toolkit_roots()) names.push_back(root + "/lib64/" + file);
    names.push_back(file);
  }
  auto linker = DynLib::open(names, "nvJitLink", DynLib::Absent::kNameFirst, DynLib::Wait::kUntilInterrupt);
  const auto ptxas = find_program("ptxas");
  if (linker.ok() || ptxas.ok())
    f.ok("assembler", linker.ok() ? linker->path() : *ptxas);
  else
    f.missing("assembler", "neither nvJitLink nor ptxas",
              "without a GPU's driver: no cubin, so no registers, spills, occupancy and SASS");
  f.say("nvdisasm", find_program("nvdisasm"), "no %sass, and %lines without machine code; NVIDIA's cuda-nvdisasm");
  for (const BlasLibrary& lib : blas_libraries()) {
    if (lib.available())
      f.ok(std::string(lib.name), fmt::format("{}, {}", lib.version, lib.detail));
    else
      f.missing(std::string(lib.name), lib.detail,
                fmt::format("no matmul impl {}, and no such rows in %compare", lib.impls));
  }
}

void look_at_folders(Findings& f) {
  constexpr const char* kCacheCost = "kernels are compiled again by every process";
  if (!knob_on(Knob::kCache)) {
    f.note("kernel cache", "off: KILN_CACHE=0", kCacheCost);
  } else {
    f.say(
        "kernel cache",
        []() -> Result<std::string> {
          KILN_TRY(const std::string root, cache_directory());
          KILN_TRY(TrustedFolder folder, TrustedFolder::open(root + "/kernels", /*create=*/true));
          KILN_TRY(std::vector<FileEntry> files, folder.list());
          int64_t bytes = 0;
          for (const FileEntry& e : files) bytes += e.bytes;
          // Asked by writing: permissions do not tell of read-only mounts and full disks.
          KILN_CHECK_OK(check_writable(root + "/kernels/.doctor"));
          return fmt::format("{}/kernels: {} files, {}", root, files.size(),
                             report::human_bytes(static_cast<double>(bytes)));
        }(),
        kCacheCost);
  }
  const std::string state = state_folder();
  f.say(
      "history",
      [&]() -> Result<std::string> {
        if (state.empty())
          return Diagnostic{ErrorKind::kIo, "neither XDG_STATE_HOME nor HOME names a folder to write in", {}, {}};
        KILN_CHECK_OK(check_writable(state + "/prompt_history"));
        return state + "/prompt_history";
      }(),
      "the prompt forgets its entries when it ends");
  const std::string config = config_file();
  if (config.empty()) f.missing("settings", "neither XDG_CONFIG_HOME nor HOME is set", "%set --save has no place");
  // No file is what most have.
  else if (::access(config.c_str(), F_OK) != 0)
    f.note("settings", config + ": not there, the defaults hold");
  else
    f.ok("settings", config);
}

void look_at_terminal(Findings& f) {
  const std::string term = environment("TERM").value_or("");
  if (!isatty(STDOUT_FILENO)) {
    f.note("terminal", "the output goes elsewhere", "no editor, colour and progress");
  } else if (term.empty() || term == "dumb") {
    f.missing("terminal", term.empty() ? "TERM is not set" : "TERM=dumb",
              "the prompt reads plain lines, without colour");
  } else {
    winsize size{};
    ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
    f.ok("terminal", fmt::format("{}, {} × {}{}", term, size.ws_col, size.ws_row,
                                 report::wants_color(STDOUT_FILENO) ? "" : ", without colour (NO_COLOR)"));
  }
  const auto editor = environment("VISUAL") ? environment("VISUAL") : environment("EDITOR");
  if (editor && !editor->empty())
    f.ok("$EDITOR", *editor);
  else
    f.missing("$EDITOR", "neither VISUAL nor EDITOR is set", "%edit needs one");
}

}  // namespace

std::optional<bool> counters_for_root_alone(std::string_view params) {
  constexpr std::string_view kName = "RmProfilingAdminOnly: ";
  const size_t at = params.find(kName);
  if (at == std::string_view::npos || at + kName.size() >= params.size()) return std::nullopt;
  return params[at + kName.size()] != '0';
}

Result<Table> doctor_table(const Runtime& runtime) {
  Findings f;
  look_at_devices(runtime, f);
  for (void (*look)(Findings&) : {look_at_counters, look_at_libraries, look_at_folders, look_at_terminal})
    // Each of them may take seconds.
    if (!interrupt_requested()) look(f);
  // A library that was waited for when it came would be called missing.
  if (interrupt_requested()) return error(ErrorKind::kInterrupted, "interrupted");
  return std::move(f).table();
}

}  // namespace kiln::repl
