#include "profiler/measure/gate.h"

#include <fmt/format.h>

#include <atomic>
#include <vector>

#include "compiler/target/target.h"
#include "profiler/measure/stats.h"
#include "runtime/device/device.h"
#include "support/diag.h"

namespace kiln::profiler {

// What one multiprocessor noted; `round` says for which stamp.
struct ClockNote {
  uint64_t round, cycles, ns;
};

struct Gate::Shared {
  uint32_t opened;   // the highest ticket that may pass
  uint32_t ran_out;  // the last ticket that passed by the limit
  ClockNote notes[1];

  // Two notes per SM: before and after the sample.
  static size_t bytes(int units) {
    return offsetof(Shared, notes) + 2 * sizeof(ClockNote) * static_cast<size_t>(units);
  }
};

namespace {

// Tickets are compared by their difference, so that they may wrap around. Polled over the bus: hence the sleep.
constexpr const char* kText = R"(.version {}.{}
.target {}
.address_size 64
.visible .entry kiln_gate(.param .u64 shared, .param .u32 ticket, .param .u64 limit_ns)
{{
  .reg .pred %p<3>; .reg .b32 %r<4>; .reg .b64 %d<6>;
  ld.param.u64 %d0, [shared];
  ld.param.u32 %r0, [ticket];
  ld.param.u64 %d1, [limit_ns];
  cvta.to.global.u64 %d0, %d0;
  mov.u64 %d2, %globaltimer;
again:
  ld.relaxed.sys.global.u32 %r1, [%d0];
  sub.s32 %r2, %r1, %r0;
  setp.ge.s32 %p0, %r2, 0;
  @%p0 bra done;
  nanosleep.u32 100;
  mov.u64 %d3, %globaltimer;
  sub.u64 %d4, %d3, %d2;
  setp.lt.u64 %p1, %d4, %d1;
  @%p1 bra again;
  st.relaxed.sys.global.u32 [%d0+4], %r0;
done:
  ret;
}}
.visible .entry kiln_clock(.param .u64 notes, .param .u32 units, .param .u64 round)
{{
  .reg .pred %p<3>; .reg .b32 %r<4>; .reg .b64 %d<8>;
  mov.u32 %r0, %tid.x;
  setp.ne.u32 %p0, %r0, 0;
  @%p0 bra end;
  ld.param.u64 %d0, [notes];
  ld.param.u32 %r1, [units];
  ld.param.u64 %d1, [round];
  mov.u32 %r2, %smid;
  setp.ge.u32 %p1, %r2, %r1;
  @%p1 bra end;
  cvta.to.global.u64 %d0, %d0;
  mul.wide.u32 %d2, %r2, 24;
  add.u64 %d3, %d0, %d2;
  mov.u64 %d4, %clock64;
  mov.u64 %d5, %globaltimer;
  st.relaxed.sys.global.u64 [%d3+8], %d4;
  st.relaxed.sys.global.u64 [%d3+16], %d5;
  st.relaxed.sys.global.u64 [%d3], %d1;
end:
  ret;
}}
)";

Result<std::shared_ptr<runtime::LoadedKernel>> load(const Device& device, const std::string& ptx, const char* name) {
  runtime::KernelImage image;
  image.name = name;
  image.num_params = 3;
  image.num_warps = 1;
  image.ptx = ptx;
  return device.impl()->backend().load(image);
}

}  // namespace

Result<std::unique_ptr<Gate>> Gate::make(const Device& device, double limit_ms) {
  if (!device.is_cuda())
    return error(ErrorKind::kUnsupported, "{} has no stream that could be held back", device.name());
  DeviceInfo info = device.info();
  const target::Target* target = target::find(info.target);
  if (!target)
    return error(ErrorKind::kUnsupported, "{} is older than every GPU that Kiln compiles for", device.name());
  std::unique_ptr<Gate> gate(new Gate);
  gate->device_ = device;
  gate->units_ = info.compute_units;
  gate->limit_ns_ = static_cast<uint64_t>(limit_ms * 1e6);
  KILN_TRY(gate->memory_, device.impl()->backend().shared_memory(static_cast<int64_t>(Shared::bytes(gate->units_))));
  std::string ptx = fmt::format(kText, target->ptx / 10, target->ptx % 10, target->name);
  KILN_TRY(gate->wait_, load(device, ptx, "kiln_gate"));
  KILN_TRY(gate->note_, load(device, ptx, "kiln_clock"));
  return gate;
}

Status Gate::close() {
  ++ticket_;
  const uint64_t slots[] = {reinterpret_cast<uint64_t>(memory_.get()), ticket_, limit_ns_};
  runtime::Backend& backend = device_.impl()->backend();
  return backend.launch(*wait_, {1, 1, 1}, slots, backend.current_stream());
}

void Gate::open() {
  std::atomic_ref<uint32_t>(static_cast<Shared*>(memory_.get())->opened).store(ticket_, std::memory_order_release);
}

bool Gate::ran_out() const {
  return std::atomic_ref<uint32_t>(static_cast<Shared*>(memory_.get())->ran_out).load() == ticket_ && ticket_ != 0;
}

Status Gate::stamp(Stamp which) {
  ++round_[which];
  const ClockNote* notes = static_cast<Shared*>(memory_.get())->notes + (which == kAfter ? units_ : 0);
  const uint64_t slots[] = {reinterpret_cast<uint64_t>(notes), static_cast<uint64_t>(units_), round_[which]};
  runtime::Backend& backend = device_.impl()->backend();
  return backend.launch(*note_, {static_cast<uint32_t>(units_), 1, 1}, slots, backend.current_stream());
}

double Gate::sm_mhz() const {
  const ClockNote* notes = static_cast<const Shared*>(memory_.get())->notes;
  std::vector<double> mhz;
  for (int i = 0; i < units_; ++i) {
    const ClockNote &from = notes[i], &to = notes[units_ + i];
    // A block may not have run on every SM; SMs without both notes of this round are left out.
    if (from.round != round_[kBefore] || to.round != round_[kAfter] || round_[kBefore] == 0) continue;
    if (to.ns <= from.ns || to.cycles <= from.cycles) continue;
    mhz.push_back(static_cast<double>(to.cycles - from.cycles) / static_cast<double>(to.ns - from.ns) * 1e3);
  }
  return mhz.empty() ? -1 : median(mhz);
}

}  // namespace kiln::profiler
