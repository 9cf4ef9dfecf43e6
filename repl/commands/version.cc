#include "repl/commands/version.h"

#include <fmt/format.h>
#include <sys/utsname.h>

#include "compiler/compile.h"
#include "kiln/kiln.h"
#include "support/build_id.h"
#include "support/environment.h"
#include "support/files.h"
#include "support/knobs.h"
#ifdef __GLIBC__
#include <gnu/libc-version.h>
#endif

namespace kiln::repl {

using report::Align;

namespace {

std::string system_name() {
  utsname names{};
  if (uname(&names) != 0) return "unknown";
  std::string text = fmt::format("{} {} {}", names.sysname, names.release, names.machine);
#ifdef __GLIBC__
  text += fmt::format(", glibc {}", gnu_get_libc_version());
#endif
  constexpr std::string_view kKey = "PRETTY_NAME=";
  const auto release = read_file("/etc/os-release");
  const size_t at = release.ok() ? release->find(kKey) : std::string::npos;
  if (at == std::string::npos) return text;
  std::string name = release->substr(at + kKey.size(), release->find('\n', at) - at - kKey.size());
  std::erase(name, '"');
  return fmt::format("{}, {}", name, text);
}

std::string built_with() {
#ifdef __clang__
  std::string text = fmt::format("clang {}.{}.{}", __clang_major__, __clang_minor__, __clang_patchlevel__);
#else
  std::string text = fmt::format("g++ {}.{}.{}", __GNUC__, __GNUC_MINOR__, __GNUC_PATCHLEVEL__);
#endif
#ifndef __OPTIMIZE__
  text += ", not optimised";
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  text += ", with a sanitizer";
#endif
  return text;
}

}  // namespace

report::Table version_table() {
  report::Table table({{"what", "", Align::kLeft}, {"value", "", Align::kLeft}});
  table.add_row({"kiln", KILN_VERSION});
  const std::string& id = build_id();
  table.add_row({"build", id.empty() ? "without a build id" : id});
  table.add_row({"compiler", built_with()});
  table.add_row({"LLVM", llvm_version()});
  table.add_row({"C API", fmt::format("{}", KILN_API_VERSION)});
  table.add_row({"system", system_name()});
  const std::string cpu = host_cpu();  // with its features, of which there are a hundred
  table.add_row({"processor", cpu.substr(0, cpu.find(' ', cpu.find(' ') + 1))});
  for (const KnobInfo& k : knobs())
    if (const auto value = environment(std::string(k.variable).c_str()))
      table.add_row({std::string(k.variable), *value});
  return table;
}

}  // namespace kiln::repl
