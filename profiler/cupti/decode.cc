#include "profiler/cupti/decode.h"

#if KILN_HAS_CUPTI

#include <cxxabi.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <unordered_set>

#include "support/ptx_name.h"

namespace kiln::profiler::cupti {

namespace {

struct KindName {
  int kind;
  const char* name;
};

constexpr KindName kCopyNames[] = {
    {CUPTI_ACTIVITY_MEMCPY_KIND_HTOD, "copy HtoD"}, {CUPTI_ACTIVITY_MEMCPY_KIND_DTOH, "copy DtoH"},
    {CUPTI_ACTIVITY_MEMCPY_KIND_HTOA, "copy HtoA"}, {CUPTI_ACTIVITY_MEMCPY_KIND_ATOH, "copy AtoH"},
    {CUPTI_ACTIVITY_MEMCPY_KIND_ATOA, "copy AtoA"}, {CUPTI_ACTIVITY_MEMCPY_KIND_ATOD, "copy AtoD"},
    {CUPTI_ACTIVITY_MEMCPY_KIND_DTOA, "copy DtoA"}, {CUPTI_ACTIVITY_MEMCPY_KIND_DTOD, "copy DtoD"},
    {CUPTI_ACTIVITY_MEMCPY_KIND_HTOH, "copy HtoH"}, {CUPTI_ACTIVITY_MEMCPY_KIND_PTOP, "copy PtoP"},
};

constexpr KindName kWaitNames[] = {
    {CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_EVENT_SYNCHRONIZE, "event"},
    {CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_WAIT_EVENT, "stream on event"},
    {CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE, "stream"},
    {CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_CONTEXT_SYNCHRONIZE, "context"},
};

constexpr KindName kOverheadNames[] = {
    {CUPTI_ACTIVITY_OVERHEAD_DRIVER_COMPILER, "driver compiler"},
    {CUPTI_ACTIVITY_OVERHEAD_CUPTI_BUFFER_FLUSH, "activity buffer flush"},
    {CUPTI_ACTIVITY_OVERHEAD_CUPTI_INSTRUMENTATION, "profiler instrumentation"},
    {CUPTI_ACTIVITY_OVERHEAD_CUPTI_RESOURCE, "profiler resources"},
    {CUPTI_ACTIVITY_OVERHEAD_RUNTIME_TRIGGERED_MODULE_LOADING, "module loading"},
    {CUPTI_ACTIVITY_OVERHEAD_LAZY_FUNCTION_LOADING, "lazy loading"},
    {CUPTI_ACTIVITY_OVERHEAD_COMMAND_BUFFER_FULL, "command buffer full"},
    {CUPTI_ACTIVITY_OVERHEAD_ACTIVITY_BUFFER_REQUEST, "activity buffer request"},
    {CUPTI_ACTIVITY_OVERHEAD_UVM_ACTIVITY_INIT, "unified memory set-up"},
};

constexpr KindName kJitNames[] = {
    {CUPTI_ACTIVITY_JIT_OPERATION_CACHE_LOAD, "driver cache load"},
    {CUPTI_ACTIVITY_JIT_OPERATION_CACHE_STORE, "driver cache store"},
    {CUPTI_ACTIVITY_JIT_OPERATION_COMPILE, "driver compiler"},
};

template <size_t n>
std::string name_of(const KindName (&names)[n], int kind, const char* what) {
  for (const KindName& k : names)
    if (k.kind == kind) return k.name;
  return fmt::format("{} of kind {}", what, kind);
}

Ns ns(uint64_t t) { return static_cast<Ns>(t); }

// Records about a process or a device have no thread.
uint32_t thread_of(CUpti_ActivityObjectKind kind, const CUpti_ActivityObjectKindId& id) {
  return kind == CUPTI_ACTIVITY_OBJECT_THREAD ? id.pt.threadId : 0;
}

uint32_t extent(int32_t n) { return static_cast<uint32_t>(n); }

template <class T>
// A million records are moved, not copied: the timeline usually has none of its own yet.
void move_to(std::vector<T>& from, std::vector<T>& to) {
  if (to.empty()) {
    to = std::move(from);
  } else {
    to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
  }
  from.clear();
}

}  // namespace

// The ABI's suffixes are dropped: the version (_v2) and the per-thread default stream (_ptsz, _ptds).
std::string plain_call_name(std::string_view name) {
  for (std::string_view suffix : {"_ptsz", "_ptds"})
    if (name.ends_with(suffix)) name.remove_suffix(suffix.size());
  if (size_t at = name.rfind("_v"); at != std::string_view::npos && at + 2 < name.size() &&
                                    name.find_first_not_of("0123456789", at + 2) == std::string_view::npos)
    name = name.substr(0, at);
  return std::string(name);
}

void Decoder::read(uint8_t* buffer, size_t size) {
  CUpti_Activity* at = nullptr;
  while (size > 0) {
    CUptiResult code = library_.cuptiActivityGetNextRecord(buffer, size, &at);
    if (code == CUPTI_SUCCESS) {
      record(*at);
      continue;
    }
    // Without the size of a record nobody finds the next one.
    if (code != CUPTI_ERROR_MAX_LIMIT_REACHED) ++cut_buffers_;
    return;
  }
}

void Decoder::record(const CUpti_Activity& r) {
  switch (static_cast<int>(r.kind)) {
    case CUPTI_ACTIVITY_KIND_KERNEL:
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
      return kernel(reinterpret_cast<const CUpti_ActivityKernel10&>(r));
    case CUPTI_ACTIVITY_KIND_MEMCPY:
      return copy(reinterpret_cast<const CUpti_ActivityMemcpy6&>(r));
    case CUPTI_ACTIVITY_KIND_MEMCPY2:
      return peer_copy(reinterpret_cast<const CUpti_ActivityMemcpyPtoP4&>(r));
    case CUPTI_ACTIVITY_KIND_MEMSET:
      return fill(reinterpret_cast<const CUpti_ActivityMemset4&>(r));
    case CUPTI_ACTIVITY_KIND_DRIVER:
    case CUPTI_ACTIVITY_KIND_RUNTIME:
      return call(reinterpret_cast<const CUpti_ActivityAPI&>(r));
    case CUPTI_ACTIVITY_KIND_SYNCHRONIZATION:
      return wait(reinterpret_cast<const CUpti_ActivitySynchronization2&>(r));
    case CUPTI_ACTIVITY_KIND_OVERHEAD:
      return overhead(reinterpret_cast<const CUpti_ActivityOverhead3&>(r));
    case CUPTI_ACTIVITY_KIND_JIT:
      return jit(reinterpret_cast<const CUpti_ActivityJit2&>(r));
    case CUPTI_ACTIVITY_KIND_MARKER:
      return marker(reinterpret_cast<const CUpti_ActivityMarker2&>(r));
    case CUPTI_ACTIVITY_KIND_MARKER_DATA:  // colours and payloads
      return;
  }
  ++other_kinds_[r.kind];
}

template <class Record>
Work& Decoder::add_work(WorkKind kind, const Record& r) {
  Work& w = seen_.work.emplace_back();
  w.kind = kind;
  w.start = ns(r.start), w.end = ns(r.end);
  w.correlation = r.correlationId;
  w.device = r.deviceId, w.context = r.contextId, w.stream = r.streamId;
  w.graph = r.graphId, w.graph_node = r.graphNodeId;
  // Counted here, and said once in finish().
  lost_work_ += w.is_lost();
  return w;
}

std::string_view Decoder::kernel_name(const char* name) {
  if (!name) return "(unnamed)";
  std::string_view plain = name;
  // Triton kernels have plain names, but for letters outside of ASCII; libraries' C++ kernels are demangled once per
  // name.
  const bool is_cpp = plain.starts_with("_Z");
  if (!is_cpp && plain.find('$') == std::string_view::npos) return plain;
  auto [at, made] = demangled_.try_emplace(std::string(plain));
  if (made && !is_cpp) {
    at->second = source_name(plain);
  } else if (made) {
    int failed = 0;
    std::unique_ptr<char, decltype(&std::free)> text(abi::__cxa_demangle(name, nullptr, nullptr, &failed), &std::free);
    at->second = failed == 0 && text ? text.get() : name;
  }
  return at->second;
}

void Decoder::kernel(const CUpti_ActivityKernel10& r) {
  Work& w = add_work(WorkKind::kKernel, r);
  w.name = kernel_name(r.name);
  // A graph's nodes are queued with the graph; what their records hold is left over from an earlier launch.
  if (w.graph == 0) {
    w.queued = ns(r.queued), w.submitted = ns(r.submitted);
    without_queued_ += w.queued == 0;
  }
  w.grid = {extent(r.gridX), extent(r.gridY), extent(r.gridZ)};
  w.block = {extent(r.blockX), extent(r.blockY), extent(r.blockZ)};
  w.cluster = {r.clusterX, r.clusterY, r.clusterZ};
  w.registers = r.registersPerThread;
  w.static_shared = r.staticSharedMemory, w.dynamic_shared = r.dynamicSharedMemory;
  if (r.sharedMemoryExecuted) w.executed_shared = r.sharedMemoryExecuted;  // 0: unknown to CUPTI
  w.local_bytes = r.localMemoryPerThread;
}

void Decoder::copy(const CUpti_ActivityMemcpy6& r) {
  Work& w = add_work(WorkKind::kCopy, r);
  w.name = name_of(kCopyNames, r.copyKind, "copy");
  w.bytes = static_cast<int64_t>(r.bytes);
}

void Decoder::peer_copy(const CUpti_ActivityMemcpyPtoP4& r) {
  Work& w = add_work(WorkKind::kCopy, r);
  w.name = name_of(kCopyNames, CUPTI_ACTIVITY_MEMCPY_KIND_PTOP, "copy");
  w.bytes = static_cast<int64_t>(r.bytes);
}

void Decoder::fill(const CUpti_ActivityMemset4& r) {
  Work& w = add_work(WorkKind::kFill, r);
  w.name = "fill";
  w.bytes = static_cast<int64_t>(r.bytes);
}

const std::string& Decoder::call_name(CUpti_CallbackDomain domain, CUpti_CallbackId id) {
  auto [at, made] = call_names_.try_emplace({domain, id});
  if (made) {
    const char* name = nullptr;
    bool known = library_.cuptiGetCallbackName(domain, id, &name) == CUPTI_SUCCESS && name;
    at->second = known ? plain_call_name(name) : fmt::format("call {} of CUPTI's domain {}", id, int{domain});
  }
  return at->second;
}

void Decoder::call(const CUpti_ActivityAPI& r) {
  if (r.start == 0 || r.end == 0) {
    ++lost_others_;
    return;
  }
  ApiCall& c = seen_.calls.emplace_back();
  c.name = call_name(r.kind == CUPTI_ACTIVITY_KIND_DRIVER ? CUPTI_CB_DOMAIN_DRIVER_API : CUPTI_CB_DOMAIN_RUNTIME_API,
                     r.cbid);
  c.start = ns(r.start), c.end = ns(r.end);
  c.thread = r.threadId, c.correlation = r.correlationId, c.result = r.returnValue;
}

void Decoder::wait(const CUpti_ActivitySynchronization2& r) {
  if (r.start == 0 || r.end == 0) {
    ++lost_others_;
    return;
  }
  Wait& w = seen_.waits.emplace_back();
  w.kind = name_of(kWaitNames, r.type, "wait");
  w.start = ns(r.start), w.end = ns(r.end);
  w.context = r.contextId, w.correlation = r.correlationId;
  w.stream = r.streamId == CUPTI_SYNCHRONIZATION_INVALID_VALUE ? 0 : r.streamId;
}

void Decoder::overhead(const CUpti_ActivityOverhead3& r) {
  std::free(r.overheadData);  // the reader's to free, and says only which channel's command buffer was full
  if (r.start == 0 || r.end == 0) {
    ++lost_others_;
    return;
  }
  Overhead& o = seen_.overheads.emplace_back();
  o.kind = name_of(kOverheadNames, r.overheadKind, "overhead");
  o.start = ns(r.start), o.end = ns(r.end);
  o.thread = thread_of(r.objectKind, r.objectId);
}

void Decoder::jit(const CUpti_ActivityJit2& r) {
  if (r.start == 0 || r.end == 0) {
    ++lost_others_;
    return;
  }
  Overhead& o = seen_.overheads.emplace_back();
  o.kind = name_of(kJitNames, r.jitOperationType, "compilation by the driver");
  o.start = ns(r.start), o.end = ns(r.end);
  o.thread = r.threadId;
}

void Decoder::marker(const CUpti_ActivityMarker2& r) {
  // Our own annotations are host spans already; CUPTI only echoes them.
  if (r.domain && std::string_view(r.domain) == kOwnDomain) return;
  if (r.timestamp == 0) {
    ++lost_others_;
    return;
  }
  Marker& m = markers_.emplace_back();
  m.at = ns(r.timestamp), m.id = r.id, m.flags = r.flags;
  m.thread = thread_of(r.objectKind, r.objectId);
  if (r.name) m.name = r.domain ? fmt::format("{}: {}", r.domain, r.name) : r.name;
}

void Decoder::add_ranges(Ns end) {
  std::stable_sort(markers_.begin(), markers_.end(), [](const Marker& a, const Marker& b) { return a.at < b.at; });
  std::unordered_map<uint32_t, size_t> open;  // from the marker's id to its span
  for (Marker& m : markers_) {
    if (m.flags & CUPTI_ACTIVITY_FLAG_MARKER_END) {
      auto found = open.find(m.id);
      if (found == open.end()) continue;  // began before the profile
      seen_.spans[found->second].end = m.at;
      open.erase(found);
      continue;
    }
    bool lasts = m.flags & CUPTI_ACTIVITY_FLAG_MARKER_START;
    if (!lasts && !(m.flags & CUPTI_ACTIVITY_FLAG_MARKER_INSTANTANEOUS)) continue;  // locks of the user's
    Span& s = seen_.spans.emplace_back();
    s.name = std::move(m.name), s.thread = m.thread, s.start = m.at;
    // An end that never comes lies behind the profile's own end.
    s.end = lasts ? std::max(end, m.at) : m.at;
    if (lasts) open[m.id] = seen_.spans.size() - 1;
  }
  markers_.clear();
}

// A query whether work is done has a record like a wait's, and only its call tells them apart.
void Decoder::drop_queries() {
  std::unordered_set<uint32_t> queries;
  for (const ApiCall& c : seen_.calls)
    if (c.name.ends_with("Query")) queries.insert(c.correlation);
  std::erase_if(seen_.waits, [&](const Wait& w) { return queries.contains(w.correlation); });
}

void Decoder::finish(Ns end, Timeline& into) {
  add_ranges(end);
  drop_queries();
  auto unknown = [&](std::string what, std::string why) { into.unknown.push_back({std::move(what), std::move(why)}); };
  if (lost_work_)
    unknown(fmt::format("when {} kernels, copies or fills ran", lost_work_), "CUPTI could not collect their times");
  if (lost_others_)
    unknown(fmt::format("{} calls, waits, ranges or overheads", lost_others_), "CUPTI could not collect their times");
  if (without_queued_)
    unknown(fmt::format("when {} launches were queued and submitted", without_queued_),
            "CUPTI did not collect the times");
  for (auto [kind, count] : other_kinds_)
    unknown(fmt::format("{} records of CUPTI's activity kind {}", count, kind), "Kiln does not read that kind");
  if (cut_buffers_)
    unknown(fmt::format("the last records of {} of CUPTI's buffers", cut_buffers_),
            "they follow a record of a kind that CUPTI itself does not know");
  move_to(seen_.spans, into.spans), move_to(seen_.calls, into.calls), move_to(seen_.work, into.work);
  move_to(seen_.waits, into.waits), move_to(seen_.overheads, into.overheads);
  other_kinds_.clear();
  cut_buffers_ = lost_work_ = lost_others_ = without_queued_ = 0;
}

}  // namespace kiln::profiler::cupti

#endif
