#include "repl/commands/info_commands.h"

#include <fmt/format.h>

#include <cstdlib>

#include "kiln/blas.h"
#include "kiln/runtime.h"
#include "support/knobs.h"

namespace kiln::repl {

using report::Align;
using report::Cell;
using report::Table;

Table env_table() {
  Table table({{"variable", "", Align::kLeft},
               {"value", "", Align::kLeft},
               {"default", "", Align::kLeft},
               {"meaning", "", Align::kLeft}});
  for (size_t i = 0; i < knobs().size(); ++i) {
    const KnobInfo& k = knobs()[i];
    table.add_row(
        {std::string(k.variable), knob(static_cast<Knob>(i)), std::string(k.default_value), std::string(k.meaning)});
  }
  return table;
}

Table devices_table(const Device& current) {
  Table table({{"", "", Align::kLeft, "current"},
               {"device", "", Align::kLeft},
               {"name", "", Align::kLeft},
               {"target", "", Align::kLeft},
               {"units", ""},
               {"memory", ""},
               {"free", ""},
               {"cache", ""},
               {"shared", ""},
               {"driver", "", Align::kLeft}});
  auto bytes = [](int64_t n, const char* why) {
    if (n < 0 || (n == 0 && *why)) return Cell::unknown(why);
    return Cell::shown(report::human_bytes(static_cast<double>(n)), n);
  };
  for (const std::string& name : Device::list()) {
    // A GPU that cannot be opened is named with its reason; the others are still listed.
    auto device = current.runtime().open(name);
    if (!device.ok()) {
      table.add_note(fmt::format("{}: {}", name, device.error().message));
      continue;
    }
    DeviceInfo info = device->info();
    table.add_row({*device == current ? "*" : "", name, info.name, info.target, Cell::of(int64_t{info.compute_units}),
                   bytes(info.memory_bytes, ""), bytes(device->free_bytes(), "not in use yet"),
                   bytes(info.l2_bytes, "unknown to the system"),
                   info.shared_bytes ? bytes(info.shared_bytes, "") : Cell("no limit"), info.driver});
  }
  // Also where the driver listed none, which is what people want to know the reason of.
  if (auto gpu = current.runtime().open("cuda"); !gpu.ok()) table.add_note("no GPU: " + gpu.error().message);
  for (const BlasLibrary& lib : blas_libraries())
    table.add_note(lib.available()
                       ? fmt::format("matmul impl {}: {} {}, {}", lib.impls, lib.name, lib.version, lib.detail)
                       : fmt::format("matmul impl {}: {}", lib.impls, lib.detail));
  return table;
}

std::string banner(const Device& device, int width) {
  DeviceInfo info = device.info();
  std::string where = fmt::format("{} {}", info.name, info.target);
  if (device.is_cuda()) return fmt::format("kiln {} · {} · driver {} · ? for help", KILN_VERSION, where, info.driver);
  std::string why = "chosen";
  if (auto gpu = device.runtime().open("cuda"); !gpu.ok()) why = gpu.error().message;
  auto line = [&](std::string_view reason) {
    return fmt::format("kiln {} · CPU: {} ({}) · ? for help", KILN_VERSION, info.name, reason);
  };
  std::string whole = line(why);
  // In one line, where it fits: the reason up to its first colon says what is missing.
  if (width == 0 || report::display_width(whole) <= width) return whole;
  return line(std::string_view(why).substr(0, why.find(':')));  // %doctor tells the rest
}

}  // namespace kiln::repl
