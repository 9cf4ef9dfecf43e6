// Activity records of CUPTI to a timeline's calls, work, waits, overheads and ranges.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "profiler/cupti/library.h"
#include "profiler/profile/timeline.h"

namespace kiln::profiler::cupti {

/// Ranges of this NVTX domain are Kiln's own: the host's trace has them already (nvtx.h).
inline constexpr const char* kOwnDomain = "kiln";

#if KILN_HAS_CUPTI

/// Reads buffers as they come, in any order; then finish() adds what takes all of them.
class Decoder {
 public:
  explicit Decoder(const Library& library) : library_(library) {}

  /// The records that lie back to back in the first `size` bytes.
  void read(uint8_t* buffer, size_t size);

  /// Pairs the ends of NVTX ranges (one that is still open ends at `end`), and moves everything to `into`. What was
  /// lost, zero or not understood goes to `into.unknown`.
  void finish(Ns end, Timeline& into);

 private:
  struct Marker {
    std::string name;
    Ns at = 0;
    uint32_t id = 0, thread = 0, flags = 0;
  };

  void record(const CUpti_Activity& record);
  void kernel(const CUpti_ActivityKernel10& r);
  void copy(const CUpti_ActivityMemcpy6& r);
  void peer_copy(const CUpti_ActivityMemcpyPtoP4& r);
  void fill(const CUpti_ActivityMemset4& r);
  void call(const CUpti_ActivityAPI& r);
  void wait(const CUpti_ActivitySynchronization2& r);
  void overhead(const CUpti_ActivityOverhead3& r);
  void jit(const CUpti_ActivityJit2& r);
  void marker(const CUpti_ActivityMarker2& r);

  template <class Record>
  Work& add_work(WorkKind kind, const Record& r);
  const std::string& call_name(CUpti_CallbackDomain domain, CUpti_CallbackId id);
  std::string_view kernel_name(const char* name);
  void add_ranges(Ns end);
  void drop_queries();

  const Library& library_;
  Timeline seen_;
  std::vector<Marker> markers_;
  std::map<std::pair<CUpti_CallbackDomain, CUpti_CallbackId>, std::string> call_names_;
  std::unordered_map<std::string, std::string> demangled_;  // of C++ kernels: libraries'
  std::map<int, int64_t> other_kinds_;
  int64_t cut_buffers_ = 0;
  int64_t lost_work_ = 0, lost_others_ = 0, without_queued_ = 0;
};

/// "cuMemcpyHtoDAsync" for "cuMemcpyHtoDAsync_v2_ptsz", "cudaLaunchKernel" for "cudaLaunchKernel_v7000".
std::string plain_call_name(std::string_view name);

#endif

}  // namespace kiln::profiler::cupti
