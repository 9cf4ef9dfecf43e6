// The table of a profile: what the host did (ranges, operations, launches, calls of the driver) with its own time and
// the time of what it launched, and what ran on the device.
//
// CPU time is counted where it was spent: a row's self time is its time without that of the rows inside it, so that the
// self times of all rows add up to the total of the outermost ones. A device's time belongs to the row that launched
// it, wherever it ran. The total of a row that contains itself counts once.
#pragma once
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kiln/dtype.h"
#include "kiln/result.h"
#include "profiler/profile/timeline.h"
#include "profiler/report/table.h"

namespace kiln::profiler {

enum class OpSort : uint8_t { kSelfCpu, kCpu, kSelfDevice, kDevice, kCalls, kAverage, kSelfMemory, kMemory, kName };
/// "self_cpu", "cpu", "self_gpu", "gpu", "calls", "average", "self_memory", "memory", "name", and torch's names for
/// them; kName lists them.
Result<OpSort> parse_op_sort(std::string_view text);

struct OpsOptions {
  /// The default is the device's time, or the CPU's where nothing ran on a device.
  std::optional<OpSort> sort = std::nullopt;
  int64_t rows = 20;      // 0: all
  bool by_shape = false;  // a row for each shape; needs trace::kShapes
  bool lines = false;     // statements of the script are rows too
  bool memory = false;    // columns for the bytes of tensors; needs trace::kMemory
  int64_t stack = 0;      // a row per stack of so many innermost lines of the script
  /// Of one step (one run of the statement); negative: not declared.
  double flop = -1, bytes = -1;
  std::optional<DType> product = std::nullopt;  // operands of the products that flop counts
  /// Achieved occupancy by kernel name, in percent, from a separate run under counters.
  std::vector<std::pair<std::string, double>> achieved = {};
};

/// What the host did, one row per name (and shape).
struct OpRow {
  std::string kind;  // "range", "operation", "driver call", …
  std::string name;
  std::string shapes;  // when by_shape
  std::string stack;   // when stack: "t.py:12 ← t.py:3"
  int64_t calls = 0;
  Ns self_cpu = 0, cpu = 0;             // cpu: not twice where a row contains itself
  Ns self_device = 0, device = 0;       // of what was launched in it
  int64_t self_memory = 0, memory = 0;  // bytes of tensors: allocated minus freed
  double flop = -1, bytes = -1;         // declared, of all calls together; negative: not declared
  std::string operands = {};            // declared of the products that flop counts: "bf16"
};

/// What ran on the device, one row per name (by_shape: and launch configuration).
struct WorkRow {
  WorkKind kind = WorkKind::kKernel;
  std::string name;
  int64_t calls = 0, lost = 0;  // lost: those whose times are not known
  Ns total = 0;
  std::vector<double> us;                                       // of each call
  std::array<uint32_t, 3> grid = {}, block = {}, cluster = {};  // of the first
  bool same_launch = true;                                      // the configuration was the same each time
  int registers = -1;
  int64_t static_shared = -1, dynamic_shared = -1, local_bytes = -1;
  int64_t copied = 0;            // bytes that copies and fills moved
  double flop = -1, bytes = -1;  // declared, of all calls together
};

struct Totals {
  Ns window = 0;
  Ns cpu = 0;           // of the outermost rows, all threads
  Ns device = 0;        // the sum over what ran
  Ns busy = 0;          // how long something ran: two at once count once
  Ns unattributed = 0;  // of `device`: launched outside of all rows
  int64_t kernels = 0, copies = 0, fills = 0, lost = 0;
  int64_t launches = 0;  // calls that put kernels on the device
  int64_t dropped = 0;
  double busy_fraction() const { return window > 0 ? static_cast<double>(busy) / static_cast<double>(window) : 0; }
};

struct Ops {
  std::vector<OpRow> ops;     // sorted; all of them
  std::vector<WorkRow> work;  // likewise
  Totals totals;
};
Ops ops(const Timeline& timeline, const OpsOptions& options = {});

/// Theoretical occupancy of a kernel's row; nullopt when its resources or the target are not known.
struct WorkOccupancy {
  double fraction = 0;
  std::string limiter;
};
std::optional<WorkOccupancy> occupancy_of(const Timeline& timeline, const WorkRow& row);

report::Table ops_table(const Timeline& timeline, const Ops& ops, const OpsOptions& options = {});
report::Table work_table(const Timeline& timeline, const Ops& ops, const OpsOptions& options = {});
/// One figure per row; unknown ones have their reason.
report::Table totals_table(const Timeline& timeline, const Ops& ops);
/// "GPU busy 96.2 % of 1.23 ms · …" on one line.
std::string totals_line(const Timeline& timeline, const Totals& totals);

}  // namespace kiln::profiler
