// Buffers made by hand, read through NVIDIA's own cuptiActivityGetNextRecord: no GPU is needed.
#include "profiler/cupti/decode.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "profiler/cupti/activity.h"
#include "support/diag.h"

namespace kiln::profiler::cupti {
namespace {

#if KILN_HAS_CUPTI

// Records back to back, as CUPTI packs them.
class Buffer {
 public:
  template <class Record>
  Buffer& add(const Record& record) {
    // CUPTI packs them without gaps, and reads them at their alignment.
    static_assert(sizeof(Record) % 8 == 0, "records keep the alignment of the next one");
    size_t at = words_.size();
    words_.resize(at + sizeof record / 8);
    std::memcpy(&words_[at], &record, sizeof record);
    return *this;
  }
  uint8_t* data() { return reinterpret_cast<uint8_t*>(words_.data()); }
  size_t size() const { return words_.size() * 8; }

 private:
  std::vector<uint64_t> words_;
};

CUpti_ActivityKernel10 kernel(const char* name, uint64_t start, uint64_t end, uint32_t correlation) {
  CUpti_ActivityKernel10 r = {};
  r.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
  r.name = name, r.start = start, r.end = end, r.correlationId = correlation;
  // Before the start, as a command buffer's times are.
  r.queued = start - 500, r.submitted = start - 100;
  r.deviceId = 1, r.contextId = 2, r.streamId = 13;
  r.gridX = 7, r.gridY = 3, r.gridZ = 2, r.blockX = 128, r.blockY = r.blockZ = 1;
  r.clusterX = 2, r.clusterY = r.clusterZ = 1;
  r.registersPerThread = 40, r.staticSharedMemory = 1024, r.dynamicSharedMemory = 98304;
  r.sharedMemoryExecuted = 102400, r.localMemoryPerThread = 16;
  return r;
}

CUpti_ActivityAPI call(uint32_t id, uint64_t start, uint64_t end, uint32_t correlation) {
  // The driver's calls are told by their number.
  CUpti_ActivityAPI r = {};
  r.kind = CUPTI_ACTIVITY_KIND_DRIVER;
  r.cbid = id, r.start = start, r.end = end, r.correlationId = correlation, r.threadId = 77;
  return r;
}

CUpti_ActivityMemcpy6 copy(uint8_t kind, uint64_t bytes, uint64_t start, uint64_t end) {
  CUpti_ActivityMemcpy6 r = {};
  r.kind = CUPTI_ACTIVITY_KIND_MEMCPY;
  r.copyKind = kind, r.bytes = bytes, r.start = start, r.end = end, r.correlationId = 5, r.streamId = 13;
  return r;
}

CUpti_ActivityMarker2 marker(uint32_t flags, uint32_t id, uint64_t at, const char* name, const char* domain = nullptr) {
  CUpti_ActivityMarker2 r = {};
  r.kind = CUPTI_ACTIVITY_KIND_MARKER;
  r.flags = static_cast<CUpti_ActivityFlag>(flags), r.id = id, r.timestamp = at, r.name = name, r.domain = domain;
  r.objectKind = CUPTI_ACTIVITY_OBJECT_THREAD, r.objectId.pt.processId = 1, r.objectId.pt.threadId = 77;
  return r;
}

class Decode : public ::testing::Test {
 protected:
  void SetUp() override {
    auto opened = Library::open();
    // Without the library there is nothing that could read the buffers.
    if (!opened.ok()) GTEST_SKIP() << opened.error().message;
    library_ = *opened;
  }
  Timeline decode(std::vector<Buffer> buffers, Ns end = 10'000) {
    Decoder decoder(*library_);
    for (Buffer& b : buffers) decoder.read(b.data(), b.size());
    Timeline t;
    decoder.finish(end, t);
    return t;
  }
  std::shared_ptr<const Library> library_;
};

TEST_F(Decode, AKernelWithAllThatCuptiKnows) {
  Timeline t = decode({Buffer().add(kernel("add_kernel", 2000, 3500, 9))});
  ASSERT_EQ(t.work.size(), 1u);
  const Work& w = t.work[0];
  EXPECT_EQ(w.kind, WorkKind::kKernel);
  EXPECT_EQ(w.name, "add_kernel");
  EXPECT_EQ(w.queued, 1500);
  EXPECT_EQ(w.submitted, 1900);
  EXPECT_EQ(w.start, 2000);
  EXPECT_EQ(w.end, 3500);
  EXPECT_EQ(w.correlation, 9u);
  EXPECT_EQ(w.device, 1u);
  EXPECT_EQ(w.context, 2u);
  EXPECT_EQ(w.stream, 13u);
  EXPECT_EQ(w.grid, (std::array<uint32_t, 3>{7, 3, 2}));
  EXPECT_EQ(w.block, (std::array<uint32_t, 3>{128, 1, 1}));
  EXPECT_EQ(w.cluster, (std::array<uint32_t, 3>{2, 1, 1}));
  EXPECT_EQ(w.registers, 40);
  EXPECT_EQ(w.static_shared, 1024);
  EXPECT_EQ(w.dynamic_shared, 98304);
  EXPECT_EQ(w.executed_shared, 102400);
  EXPECT_EQ(w.local_bytes, 16);
  EXPECT_EQ(w.graph, 0u);
  EXPECT_TRUE(t.unknown.empty());
}

// One record of each kind, spread over buffers with an empty one between.
TEST_F(Decode, EveryKindBackToBackInSeveralBuffers) {
  CUpti_ActivityMemset4 fill = {};
  fill.kind = CUPTI_ACTIVITY_KIND_MEMSET;
  fill.bytes = 4096, fill.start = 700, fill.end = 800, fill.correlationId = 6;
  CUpti_ActivityMemcpyPtoP4 peer = {};
  peer.kind = CUPTI_ACTIVITY_KIND_MEMCPY2;
  peer.copyKind = CUPTI_ACTIVITY_MEMCPY_KIND_PTOP, peer.bytes = 64, peer.start = 900, peer.end = 950;
  CUpti_ActivitySynchronization2 wait = {};
  wait.kind = CUPTI_ACTIVITY_KIND_SYNCHRONIZATION;
  wait.type = CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE;
  wait.start = 1000, wait.end = 1100, wait.correlationId = 8, wait.contextId = 1, wait.streamId = 13;
  CUpti_ActivitySynchronization2 all = wait;
  all.type = CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_CONTEXT_SYNCHRONIZE;
  // CUPTI's mark for "no stream": all of them are waited for.
  all.streamId = CUPTI_SYNCHRONIZATION_INVALID_VALUE;
  CUpti_ActivityOverhead3 overhead = {};
  overhead.kind = CUPTI_ACTIVITY_KIND_OVERHEAD;
  overhead.overheadKind = CUPTI_ACTIVITY_OVERHEAD_LAZY_FUNCTION_LOADING;
  overhead.objectKind = CUPTI_ACTIVITY_OBJECT_THREAD, overhead.objectId.pt.threadId = 77;
  overhead.start = 1200, overhead.end = 1300;
  overhead.overheadData = std::malloc(sizeof(CUpti_ActivityOverheadCommandBufferFullData));  // the decoder frees it
  CUpti_ActivityJit2 jit = {};
  jit.kind = CUPTI_ACTIVITY_KIND_JIT;
  // A compilation of the driver is an overhead too.
  jit.jitOperationType = CUPTI_ACTIVITY_JIT_OPERATION_COMPILE;
  jit.start = 1400, jit.end = 1500, jit.threadId = 77;
  Timeline t =
      decode({Buffer().add(call(CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, 10, 20, 4)).add(kernel("k", 600, 650, 4)),
              Buffer().add(copy(CUPTI_ACTIVITY_MEMCPY_KIND_HTOD, 1024, 30, 40)).add(fill).add(peer), Buffer(),
              Buffer().add(wait).add(overhead).add(jit).add(all).add(call(277, 50, 60, 5))});
  ASSERT_EQ(t.calls.size(), 2u);
  EXPECT_EQ(t.calls[0].name, "cuLaunchKernel");
  EXPECT_EQ(t.calls[0].thread, 77u);
  // The number without a name in the header is looked up.
  EXPECT_EQ(t.calls[0].start, 10);
  EXPECT_EQ(t.calls[0].end, 20);
  EXPECT_EQ(t.calls[1].name, "cuMemcpyHtoDAsync");
  ASSERT_EQ(t.work.size(), 4u);
  EXPECT_EQ(t.work[1].name, "copy HtoD");
  EXPECT_EQ(t.work[1].bytes, 1024);
  EXPECT_EQ(t.work[1].kind, WorkKind::kCopy);
  EXPECT_EQ(t.work[2].name, "fill");
  EXPECT_EQ(t.work[2].bytes, 4096);
  EXPECT_EQ(t.work[2].kind, WorkKind::kFill);
  EXPECT_EQ(t.work[3].name, "copy PtoP");
  EXPECT_EQ(t.work[3].bytes, 64);
  // A copy has no registers, which is not the same as 0.
  EXPECT_EQ(t.work[3].registers, -1);
  ASSERT_EQ(t.waits.size(), 2u);
  EXPECT_EQ(t.waits[0].kind, "stream");
  EXPECT_EQ(t.waits[0].stream, 13u);
  EXPECT_EQ(t.waits[0].correlation, 8u);
  EXPECT_EQ(t.waits[1].kind, "context");
  EXPECT_EQ(t.waits[1].stream, 0u);
  ASSERT_EQ(t.overheads.size(), 2u);
  EXPECT_EQ(t.overheads[0].kind, "lazy loading");
  EXPECT_EQ(t.overheads[0].thread, 77u);
  EXPECT_EQ(t.overheads[1].kind, "driver compiler");
  EXPECT_EQ(t.overheads[1].start, 1400);
  EXPECT_TRUE(t.unknown.empty());
}

TEST_F(Decode, ZeroTimesAreUnknownAndNeverNumbers) {
  CUpti_ActivityKernel10 lost = kernel("lost", 0, 0, 1);
  // The command buffer's times alone are no times of a kernel.
  lost.queued = lost.submitted = 900;
  CUpti_ActivityKernel10 not_queued = kernel("plain", 100, 200, 2);
  // Only where latency timestamps were asked for are they given.
  not_queued.queued = not_queued.submitted = CUPTI_TIMESTAMP_UNKNOWN;
  CUpti_ActivityKernel10 no_config = kernel("no_config", 300, 400, 3);
  no_config.sharedMemoryExecuted = 0;
  Timeline t = decode({Buffer().add(lost).add(not_queued).add(no_config).add(call(307, 0, 0, 4))});
  ASSERT_EQ(t.work.size(), 3u);
  EXPECT_TRUE(t.work[0].is_lost());
  EXPECT_EQ(t.work[1].queued, 0);
  EXPECT_EQ(t.work[1].submitted, 0);
  EXPECT_EQ(t.work[2].executed_shared, -1);
  // A call without times is none.
  EXPECT_TRUE(t.calls.empty());
  ASSERT_EQ(t.unknown.size(), 3u);
  // Each kind of loss with its number.
  EXPECT_EQ(t.unknown[0].what, "when 1 kernels, copies or fills ran");
  EXPECT_EQ(t.unknown[1].what, "1 calls, waits, ranges or overheads");
  EXPECT_EQ(t.unknown[2].what, "when 1 launches were queued and submitted");
}

TEST_F(Decode, AQueryIsNoWait) {
  CUpti_ActivitySynchronization2 query = {};
  query.kind = CUPTI_ACTIVITY_KIND_SYNCHRONIZATION;
  query.type = CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE;
  // A query gives the record of a wait, though it does not wait; the call tells them apart.
  query.start = 11, query.end = 19, query.correlationId = 7;
  CUpti_ActivitySynchronization2 wait = query;
  wait.correlationId = 8;
  Timeline t =
      decode({Buffer().add(query).add(wait), Buffer()
                                                 .add(call(CUPTI_DRIVER_TRACE_CBID_cuStreamQuery, 10, 20, 7))
                                                 .add(call(CUPTI_DRIVER_TRACE_CBID_cuStreamSynchronize, 10, 20, 8))});
  EXPECT_EQ(t.calls.size(), 2u);
  ASSERT_EQ(t.waits.size(), 1u);
  EXPECT_EQ(t.waits[0].correlation, 8u);
}

TEST_F(Decode, CallsOfTheRuntimeHaveTheirNames) {
  CUpti_ActivityAPI r = call(CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000, 10, 20, 7);
  r.kind = CUPTI_ACTIVITY_KIND_RUNTIME;
  Timeline t = decode({Buffer().add(r)});
  ASSERT_EQ(t.calls.size(), 1u);
  EXPECT_EQ(t.calls[0].name, "cudaLaunchKernel");
}

TEST_F(Decode, AGraphsNodesShareItsLaunch) {
  CUpti_ActivityKernel10 first = kernel("a", 1000, 1100, 22), second = kernel("b", 1200, 1300, 22);
  first.graphId = second.graphId = 11;
  first.graphNodeId = (uint64_t{11} << 32) + 0, second.graphNodeId = (uint64_t{11} << 32) + 1;
  // Times of an earlier launch are no times of this one.
  first.queued = 17, second.queued = 17, first.submitted = second.submitted = 0;  // of an earlier launch, as on an H200
  Timeline t = decode({Buffer().add(call(CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch, 900, 950, 22)).add(first).add(second)});
  ASSERT_EQ(t.work.size(), 2u);
  for (const Work& w : t.work) {
    EXPECT_EQ(w.correlation, 22u);
    EXPECT_EQ(w.graph, 11u);
    EXPECT_EQ(w.queued, 0);
    EXPECT_EQ(w.submitted, 0);
  }
  EXPECT_EQ(t.work[1].graph_node, (uint64_t{11} << 32) + 1);
  EXPECT_TRUE(t.unknown.empty());
}

TEST_F(Decode, RangesOfLibrariesArePaired) {
  constexpr uint32_t kStart = CUPTI_ACTIVITY_FLAG_MARKER_START, kEnd = CUPTI_ACTIVITY_FLAG_MARKER_END;
  CUpti_ActivityMarkerData2 data = {};
  data.kind = CUPTI_ACTIVITY_KIND_MARKER_DATA;
  // The end of `late` comes in a buffer before its start; 99 began before the profile; `open` lasts to its end.
  Timeline t = decode({Buffer().add(marker(kEnd, 4, 900, nullptr)).add(marker(kEnd, 99, 50, nullptr)),
                       Buffer()
                           .add(marker(kStart, 1, 100, "outer", "cublas"))
                           .add(data)
                           .add(marker(kStart, 2, 200, "inner"))
                           .add(marker(kEnd, 2, 300, nullptr))
                           .add(marker(CUPTI_ACTIVITY_FLAG_MARKER_INSTANTANEOUS, 3, 350, "mark"))
                           .add(marker(kEnd, 1, 400, nullptr))
                           .add(marker(kStart, 4, 500, "late"))
                           .add(marker(kStart, 5, 600, "open"))
                           // Kiln's own ranges are in the host's trace already.
                           .add(marker(kStart, 6, 700, "of the host's trace", kOwnDomain))
                           .add(marker(kEnd, 6, 710, nullptr, kOwnDomain))
                           // A marker of another meaning is no range.
                           .add(marker(CUPTI_ACTIVITY_FLAG_MARKER_SYNC_ACQUIRE, 7, 720, "a lock"))},
                      10'000);
  ASSERT_EQ(t.spans.size(), 5u);
  auto expect = [&](size_t i, const char* name, Ns start, Ns end) {
    EXPECT_EQ(t.spans[i].name, name);
    EXPECT_EQ(t.spans[i].start, start);
    EXPECT_EQ(t.spans[i].end, end);
    EXPECT_EQ(t.spans[i].step, trace::Step::kRange);
    EXPECT_EQ(t.spans[i].thread, 77u);
  };
  expect(0, "cublas: outer", 100, 400);
  expect(1, "inner", 200, 300);
  expect(2, "mark", 350, 350);
  expect(3, "late", 500, 900);
  expect(4, "open", 600, 10'000);
  EXPECT_TRUE(t.unknown.empty());
}

TEST_F(Decode, KindsThatNobodyReadsAreCounted) {
  CUpti_ActivityStream stream = {};
  stream.kind = CUPTI_ACTIVITY_KIND_STREAM;
  // Told with its number, so that somebody may look it up.
  Timeline t = decode({Buffer().add(stream).add(kernel("after", 1, 2, 3)).add(stream)});
  EXPECT_EQ(t.work.size(), 1u);
  ASSERT_EQ(t.unknown.size(), 1u);
  EXPECT_EQ(t.unknown[0].what, "2 records of CUPTI's activity kind 37");
}

TEST_F(Decode, AKindThatCuptiDoesNotKnowEndsItsBuffer) {
  CUpti_ActivityAPI strange = call(307, 1, 2, 3);
  strange.kind = static_cast<CUpti_ActivityKind>(7777);
  Timeline t = decode({Buffer().add(kernel("seen", 1, 2, 3)).add(strange).add(kernel("unseen", 3, 4, 5)),
                       Buffer().add(kernel("next", 5, 6, 7))});
  // The buffer behind it is read again from its beginning.
  ASSERT_EQ(t.work.size(), 2u);
  EXPECT_EQ(t.work[1].name, "next");
  ASSERT_EQ(t.unknown.size(), 1u);
  EXPECT_EQ(t.unknown[0].what, "the last records of 1 of CUPTI's buffers");
}

TEST_F(Decode, NamesOfCppKernelsAreReadable) {
  Timeline t = decode({Buffer()
                           .add(kernel("_ZN3foo3barILi4EEEvPf", 1, 2, 3))
                           // The same symbol twice, as names are kept.
                           .add(kernel("_ZN3foo3barILi4EEEvPf", 3, 4, 4))
                           .add(kernel("_Znot_a_mangled_name", 5, 6, 5))
                           .add(kernel(nullptr, 7, 8, 6))
                           // A name of Kiln's that PTX does not have, and one of the CUDA compiler.
                           .add(kernel("$6838$_add", 9, 10, 7))
                           .add(kernel("$__internal_0_$f", 11, 12, 8))});
  ASSERT_EQ(t.work.size(), 6u);
  EXPECT_EQ(t.work[0].name, "void foo::bar<4>(float*)");
  EXPECT_EQ(t.work[1].name, "void foo::bar<4>(float*)");
  EXPECT_EQ(t.work[2].name, "_Znot_a_mangled_name");
  EXPECT_EQ(t.work[3].name, "(unnamed)");
  EXPECT_EQ(t.work[4].name, "核_add");
  EXPECT_EQ(t.work[5].name, "$__internal_0_$f");
}

TEST_F(Decode, NothingIsNothing) {
  Timeline t = decode({});
  EXPECT_TRUE(t.work.empty());
  EXPECT_TRUE(t.unknown.empty());
  t = decode({Buffer()});
  EXPECT_TRUE(t.unknown.empty());
}

// Any bytes at all: never a crash, and what is not read is said.
TEST_F(Decode, CutBuffersDoNotCrash) {
  // A fixed seed: the same cuts each time.
  std::mt19937 random(20261121);
  for (int round = 0; round < 200; ++round) {
    Buffer whole;
    for (int i = 0; i < 5; ++i) {
      const auto which = random() % 3;
      if (which == 0) whole.add(kernel("k", 10, 20, 1));
      if (which == 1) whole.add(call(307, 1, 2, 1));
      if (which == 2) whole.add(copy(static_cast<uint8_t>(random() % 14), 8, 1, 2));
    }
    Decoder decoder(*library_);
    // At whole words, as buffers are given.
    size_t size = random() % (whole.size() / 8 + 1) * 8;
    decoder.read(whole.data(), size);
    Timeline t;
    decoder.finish(100, t);
    EXPECT_LE(t.work.size() + t.calls.size(), 5u);
  }
}

TEST(CallNames, WithoutTheirVersions) {
  EXPECT_EQ(plain_call_name("cuLaunchKernel"), "cuLaunchKernel");
  EXPECT_EQ(plain_call_name("cuMemcpyHtoDAsync_v2"), "cuMemcpyHtoDAsync");
  EXPECT_EQ(plain_call_name("cuMemcpyHtoDAsync_v2_ptsz"), "cuMemcpyHtoDAsync");
  EXPECT_EQ(plain_call_name("cuLaunchKernel_ptsz"), "cuLaunchKernel");
  EXPECT_EQ(plain_call_name("cuMemsetD8_v2_ptds"), "cuMemsetD8");
  EXPECT_EQ(plain_call_name("cuLaunchKernelEx"), "cuLaunchKernelEx");
  EXPECT_EQ(plain_call_name("cudaLaunchKernel_v7000"), "cudaLaunchKernel");
  // _value is no version.
  EXPECT_EQ(plain_call_name("cudaStream_value"), "cudaStream_value");
  EXPECT_EQ(plain_call_name("_v2"), "");
}

#endif

TEST(ActivityCollector, SaysWhatIsMissing) {
  auto made = make_activity_collector();
  // With a driver another test has more to say.
  if (made.ok()) GTEST_SKIP() << "here is a driver: tests/gpu/profile_test.cc takes profiles";
  EXPECT_EQ(made.error().kind, ErrorKind::kDevice);
  EXPECT_FALSE(made.error().message.empty());
#if !KILN_HAS_CUPTI
  EXPECT_NE(made.error().message.find("built without CUPTI's headers"), std::string::npos) << made.error().message;
#endif
}

}  // namespace
}  // namespace kiln::profiler::cupti
