// A CUDA driver for tests. Streams run at once, device memory is host memory, kernels do nothing but are recorded.
#include "tests/unit/runtime/cuda/fake/fake_cuda.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <tuple>

// The runtime looks this one up unversioned.
#undef cuEventElapsedTime

struct CUctx_st {};
struct CUgraph_st {
  std::vector<std::function<void()>> nodes;
};
struct CUgraphExec_st : CUgraph_st {};
struct Capture : CUgraph_st {
  CUstreamCaptureMode mode;
  std::thread::id thread;  // that began it
  bool invalid = false;    // by a call that a capture does not allow
};
struct CUstream_st {
  std::shared_ptr<Capture> capture = {};  // while capturing
};
struct CUevent_st {
  std::chrono::steady_clock::time_point time = {};
  bool is_captured = false;  // it was last recorded in a stream that captured
  std::weak_ptr<Capture> capture = {};
};
struct CUmod_st {
  std::string image;
};
struct CUlinkState_st {
  char *info = nullptr, *errors = nullptr;
  std::string image;
};
struct CUfunc_st {
  std::string name;
  CUcontext context = nullptr;
  std::string code = {};
  int max_shared = 49152;
};

namespace {

FakeCuda fake;
// Two contexts: the one of Kiln, and another that a program around it has made current.
CUctx_st context, other_context;
// As in the driver, each thread has a current context of its own.
thread_local CUcontext current = nullptr;
// As with a real GPU, the end of the process frees what a broken context could not.
struct Blocks : std::map<CUdeviceptr, size_t> {
  ~Blocks() {
    for (auto& [address, size] : *this) std::free(reinterpret_cast<void*>(address));
  }
};
Blocks blocks;
template <class T>
struct Handles {
  T* make(T value) {
    auto owned = std::make_unique<T>(std::move(value));
    T* handle = owned.get();
    live[handle] = std::move(owned);
    return handle;
  }
  std::map<T*, std::unique_ptr<T>> live;
};
Handles<CUstream_st> streams;
Handles<CUevent_st> events;
Handles<CUmod_st> modules;
Handles<CUgraph_st> graphs;
Handles<CUlinkState_st> links;
Handles<CUgraphExec_st> executables;
bool initialised = false;
// Recursive, as a graph's launch runs nodes that are calls too.
std::recursive_mutex driver_mutex;

/// One call at a time.
std::unique_lock<std::recursive_mutex> alone(bool is_launch = false) {
  // Of launches nothing is shared unless they are recorded, and a benchmark of them must not measure this lock.
  return fake.recording || !is_launch ? std::unique_lock(driver_mutex) : std::unique_lock<std::recursive_mutex>();
}

CUresult begin(const char* name) {
  if (!fake.recording) return CUDA_SUCCESS;
  fake.calls.emplace_back(name);
  // A fault of a context stays: every later call gives it, as with a real GPU.
  if (fake.sticky != CUDA_SUCCESS) return fake.sticky;
  auto it = fake.failures.find(name);
  if (it == fake.failures.end() || it->second.times == 0) return CUDA_SUCCESS;
  if (it->second.skip-- > 0) return CUDA_SUCCESS;
  --it->second.times;
  CUresult code = it->second.code;
  // The codes of faults lie in a row, but for one of them, which is an error of a launch alone.
  if (code >= CUDA_ERROR_ILLEGAL_ADDRESS && code <= CUDA_ERROR_LAUNCH_FAILED &&
      code != CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES)
    fake.sticky = code;
  return code;
}

// --- What a driver refuses during captures. The call says so, and the capture is of no use from there on.

thread_local CUstreamCaptureMode thread_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;

CUresult refuse(const std::shared_ptr<Capture>& capture, CUresult code) {
  if (capture) capture->invalid = true;
  return code;
}
/// Of a stream that is waited for, asked, or copied to from the host.
CUresult outside_of_captures(CUstream s) {
  return s && s->capture ? refuse(s->capture, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED) : CUDA_SUCCESS;
}
/// Of an event that is waited for or asked.
CUresult outside_of_captures(CUevent e) {
  return e->is_captured ? refuse(e->capture.lock(), CUDA_ERROR_CAPTURED_EVENT) : CUDA_SUCCESS;
}
CUresult no_capture_at_all() {
  CUresult code = CUDA_SUCCESS;
  for (auto& [s, owned] : streams.live)
    if (s->capture) code = refuse(s->capture, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  return code;
}
/// Of calls that may wait for work of other streams: the modes of captures and of the thread say whether they may.
CUresult unsafe() {
  if (thread_mode == CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_SUCCESS;
  CUresult code = CUDA_SUCCESS;
  for (auto& [s, owned] : streams.live) {
    if (!s->capture || s->capture->mode == CU_STREAM_CAPTURE_MODE_RELAXED) continue;
    const bool own = s->capture->thread == std::this_thread::get_id();
    const bool any = thread_mode == CU_STREAM_CAPTURE_MODE_GLOBAL && s->capture->mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
    if (own || any) code = refuse(s->capture, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  }
  return code;
}
bool is_invalid(CUstream s) { return s && s->capture && s->capture->invalid; }

// Runs the work, or keeps it while the stream captures.
CUresult submit(CUstream stream, std::function<void()> work) {
  if (is_invalid(stream)) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  if (stream && stream->capture)
    stream->capture->nodes.push_back(std::move(work));
  else
    work();
  return CUDA_SUCCESS;
}

// Of the block that begins at or before the address, as the driver looks an address up.
bool inside(CUdeviceptr p, size_t n) {
  auto it = blocks.upper_bound(p);
  if (it == blocks.begin()) return false;
  --it;
  return p + n <= it->first + it->second;
}

}  // namespace

#define BEGIN(name, ...)                                              \
  const auto lock = alone(__VA_ARGS__);                               \
  if (CUresult code = begin(name); code != CUDA_SUCCESS) return code; \
  if (!initialised) return CUDA_ERROR_NOT_INITIALIZED
#define ALLOWED(call) \
  if (CUresult refused = call; refused != CUDA_SUCCESS) return refused
#define NEED_CONTEXT \
  if (!current) return CUDA_ERROR_INVALID_CONTEXT

CUresult launch(FakeCuda::Launch launch, const CUfunc_st* function, void** params) {
  NEED_CONTEXT;
  // A function belongs to the context in which its module was loaded.
  if (current != function->context) return CUDA_ERROR_INVALID_HANDLE;
  if ((!launch.stream && !fake.takes_null_stream) || static_cast<int>(launch.shared) > function->max_shared)
    return CUDA_ERROR_INVALID_VALUE;
  if (is_invalid(launch.stream)) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  if (!fake.recording) return CUDA_SUCCESS;
  launch.code = function->code;
  // The parameters are copied now: the caller may change them once the call is over.
  for (size_t i = 0; i < fake.param_bytes.size(); ++i) {
    uint64_t value = 0;
    std::memcpy(&value, params[i], static_cast<size_t>(fake.param_bytes[i]));
    launch.params.push_back(value);
  }
  return submit(launch.stream, [launch] { fake.launches.push_back(launch); });
}

extern "C" {

FakeCuda* fake_cuda() {
  fake.made_context = &other_context;
  return &fake;
}

CUresult cuInit(unsigned) {
  const auto lock = alone();
  if (CUresult code = begin("cuInit"); code != CUDA_SUCCESS) return code;
  initialised = true;
  return fake.devices == 0 ? CUDA_ERROR_NO_DEVICE : CUDA_SUCCESS;
}
CUresult cuDriverGetVersion(int* v) {
  *v = fake.driver_version;
  return CUDA_SUCCESS;
}
CUresult cuGetErrorName(CUresult code, const char** text) {
  switch (code) {
    case CUDA_ERROR_OUT_OF_MEMORY:
      *text = "CUDA_ERROR_OUT_OF_MEMORY";
      break;
    case CUDA_ERROR_ILLEGAL_ADDRESS:
      *text = "CUDA_ERROR_ILLEGAL_ADDRESS";
      break;
    case CUDA_ERROR_LAUNCH_FAILED:
      *text = "CUDA_ERROR_LAUNCH_FAILED";
      break;
    case CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES:
      *text = "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES";
      break;
    case CUDA_ERROR_INVALID_PTX:
      *text = "CUDA_ERROR_INVALID_PTX";
      break;
    case CUDA_ERROR_UNKNOWN:
      *text = "CUDA_ERROR_UNKNOWN";
      break;
    case CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED:
      *text = "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED";
      break;
    case CUDA_ERROR_STREAM_CAPTURE_INVALIDATED:
      *text = "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED";
      break;
    case CUDA_ERROR_STREAM_CAPTURE_ISOLATION:
      *text = "CUDA_ERROR_STREAM_CAPTURE_ISOLATION";
      break;
    case CUDA_ERROR_CAPTURED_EVENT:
      *text = "CUDA_ERROR_CAPTURED_EVENT";
      break;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}
CUresult cuGetErrorString(CUresult, const char** text) {
  *text = "the fake driver says so";
  return CUDA_SUCCESS;
}
CUresult cuDeviceGet(CUdevice* d, int ordinal) {
  BEGIN("cuDeviceGet");
  if (ordinal >= fake.devices) return CUDA_ERROR_INVALID_DEVICE;
  *d = ordinal;
  return CUDA_SUCCESS;
}
CUresult cuDeviceGetCount(int* n) {
  BEGIN("cuDeviceGetCount");
  *n = fake.devices;
  return CUDA_SUCCESS;
}
CUresult cuDeviceGetName(char* name, int n, CUdevice) {
  BEGIN("cuDeviceGetName");
  std::strncpy(name, "Fake GPU", static_cast<size_t>(n));
  return CUDA_SUCCESS;
}
CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute which, CUdevice) {
  BEGIN("cuDeviceGetAttribute");
  // By number: the enum of an old header lacks some of the names.
  switch (static_cast<int>(which)) {
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
      *value = fake.major;
      break;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
      *value = fake.minor;
      break;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
      *value = fake.max_shared;
      break;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
      *value = 132;
      break;
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
      *value = 1024;
      break;
    default:
      // Any other attribute is 1, so that what divides by one goes on.
      *value = 1;
  }
  return CUDA_SUCCESS;
}
CUresult cuDeviceTotalMem(size_t* n, CUdevice) {
  BEGIN("cuDeviceTotalMem");
  *n = fake.memory;
  return CUDA_SUCCESS;
}
CUresult cuDevicePrimaryCtxRetain(CUcontext* c, CUdevice) {
  BEGIN("cuDevicePrimaryCtxRetain");
  *c = &context;
  ++fake.contexts;
  return CUDA_SUCCESS;
}
CUresult cuDevicePrimaryCtxRelease(CUdevice) {
  --fake.contexts;
  return CUDA_SUCCESS;
}
CUresult cuDevicePrimaryCtxGetState(CUdevice, unsigned* flags, int* active) {
  BEGIN("cuDevicePrimaryCtxGetState");
  *flags = 0, *active = fake.contexts > 0;
  return CUDA_SUCCESS;
}
CUresult cuCtxGetDevice(CUdevice* d) {
  BEGIN("cuCtxGetDevice");
  NEED_CONTEXT;
  *d = 0;
  return CUDA_SUCCESS;
}
CUresult cuCtxGetCurrent(CUcontext* c) {
  // No BEGIN: it is asked before there is a context, and never fails.
  const auto lock = alone();
  if (fake.recording) fake.calls.emplace_back("cuCtxGetCurrent");
  *c = current;
  return CUDA_SUCCESS;
}
CUresult cuCtxSetCurrent(CUcontext c) {
  BEGIN("cuCtxSetCurrent");
  current = c;
  return CUDA_SUCCESS;
}
CUresult cuCtxSynchronize() {
  BEGIN("cuCtxSynchronize");
  NEED_CONTEXT;
  ALLOWED(no_capture_at_all());
  return CUDA_SUCCESS;
}
CUresult cuMemGetInfo(size_t* free, size_t* total) {
  BEGIN("cuMemGetInfo");
  NEED_CONTEXT;
  *free = fake.memory - fake.memory_used, *total = fake.memory;
  return CUDA_SUCCESS;
}
CUresult cuMemAlloc(CUdeviceptr* p, size_t n) {
  BEGIN("cuMemAlloc");
  NEED_CONTEXT;
  ALLOWED(unsafe());
  if (fake.memory_used + n > fake.memory) return CUDA_ERROR_OUT_OF_MEMORY;
  // The alignment of the real allocator.
  void* memory = std::aligned_alloc(512, (n + 511) / 512 * 512);
  if (!memory) return CUDA_ERROR_OUT_OF_MEMORY;
  // Kernels write nothing here: what is read of their results is the same in each run, whatever lay there before.
  std::memset(memory, 0, n);
  *p = reinterpret_cast<CUdeviceptr>(memory);
  blocks[*p] = n;
  fake.memory_used += n;
  return CUDA_SUCCESS;
}
CUresult cuMemFree(CUdeviceptr p) {
  BEGIN("cuMemFree");
  NEED_CONTEXT;
  ALLOWED(unsafe());
  auto it = blocks.find(p);
  if (it == blocks.end()) return CUDA_ERROR_INVALID_VALUE;
  fake.memory_used -= it->second;
  std::free(reinterpret_cast<void*>(p));
  blocks.erase(it);
  return CUDA_SUCCESS;
}
CUresult cuDeviceGetPCIBusId(char* text, int n, CUdevice d) {
  BEGIN("cuDeviceGetPCIBusId");
  std::snprintf(text, static_cast<size_t>(n), "0000:%02x:00.0", 24 + d);
  return CUDA_SUCCESS;
}
CUresult cuMemHostAlloc(void** p, size_t n, unsigned flags) {
  BEGIN("cuMemHostAlloc");
  NEED_CONTEXT;
  ALLOWED(unsafe());
  // The only way in which the runtime asks for it; any other is a mistake.
  if (flags != CU_MEMHOSTALLOC_DEVICEMAP) return CUDA_ERROR_INVALID_VALUE;
  *p = std::malloc(n);
  fake.live_host_blocks += *p != nullptr;
  return *p ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}
CUresult cuMemFreeHost(void* p) {
  --fake.live_host_blocks;
  std::free(p);
  return CUDA_SUCCESS;
}
CUresult cuMemcpyHtoDAsync(CUdeviceptr to, const void* from, size_t n, CUstream s) {
  BEGIN("cuMemcpyHtoDAsync");
  NEED_CONTEXT;
  ALLOWED(outside_of_captures(s));
  if (!inside(to, n)) return CUDA_ERROR_INVALID_VALUE;
  std::memcpy(reinterpret_cast<void*>(to), from, n);
  return CUDA_SUCCESS;
}
CUresult cuMemcpyDtoHAsync(void* to, CUdeviceptr from, size_t n, CUstream s) {
  BEGIN("cuMemcpyDtoHAsync");
  // The runtime copies to and from the host outside of graphs.
  NEED_CONTEXT;
  ALLOWED(outside_of_captures(s));
  if (!inside(from, n)) return CUDA_ERROR_INVALID_VALUE;
  std::memcpy(to, reinterpret_cast<void*>(from), n);
  return CUDA_SUCCESS;
}
CUresult cuMemcpyDtoDAsync(CUdeviceptr to, CUdeviceptr from, size_t n, CUstream s) {
  BEGIN("cuMemcpyDtoDAsync");
  NEED_CONTEXT;
  if (!inside(to, n) || !inside(from, n)) return CUDA_ERROR_INVALID_VALUE;
  return submit(s, [=] { std::memmove(reinterpret_cast<void*>(to), reinterpret_cast<void*>(from), n); });
}
CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char v, size_t n, CUstream s) {
  BEGIN("cuMemsetD8Async");
  if (!inside(to, n)) return CUDA_ERROR_INVALID_VALUE;
  return submit(s, [=] { std::memset(reinterpret_cast<void*>(to), v, n); });
}
CUresult cuMemsetD16Async(CUdeviceptr to, unsigned short v, size_t n, CUstream s) {
  BEGIN("cuMemsetD16Async");
  if (!inside(to, 2 * n)) return CUDA_ERROR_INVALID_VALUE;
  return submit(s, [=] {
    for (size_t i = 0; i < n; ++i) reinterpret_cast<unsigned short*>(to)[i] = v;
  });
}
CUresult cuMemsetD32Async(CUdeviceptr to, unsigned v, size_t n, CUstream s) {
  BEGIN("cuMemsetD32Async");
  if (!inside(to, 4 * n)) return CUDA_ERROR_INVALID_VALUE;
  return submit(s, [=] {
    for (size_t i = 0; i < n; ++i) reinterpret_cast<unsigned*>(to)[i] = v;
  });
}
CUresult cuMemsetD2D32Async(CUdeviceptr to, size_t pitch, unsigned v, size_t width, size_t height, CUstream s) {
  BEGIN("cuMemsetD2D32Async");
  if (!inside(to, (height - 1) * pitch + 4 * width)) return CUDA_ERROR_INVALID_VALUE;
  return submit(s, [=] {
    for (size_t y = 0; y < height; ++y)
      for (size_t x = 0; x < width; ++x) reinterpret_cast<unsigned*>(to + y * pitch)[x] = v;
  });
}
CUresult cuStreamCreate(CUstream* s, unsigned flags) {
  BEGIN("cuStreamCreate");
  NEED_CONTEXT;
  // A blocking stream would wait for the default one, which the runtime never wants.
  if (flags != CU_STREAM_NON_BLOCKING) return CUDA_ERROR_INVALID_VALUE;
  *s = streams.make({});
  ++fake.live_streams;
  return CUDA_SUCCESS;
}
CUresult cuStreamDestroy(CUstream s) {
  --fake.live_streams;
  streams.live.erase(s);
  return CUDA_SUCCESS;
}
CUresult cuStreamSynchronize(CUstream s) {
  BEGIN("cuStreamSynchronize");
  NEED_CONTEXT;
  ALLOWED(outside_of_captures(s));
  // The null stream is an error in most tests: the runtime has a stream of its own.
  return s || fake.takes_null_stream ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}
CUresult cuStreamWaitEvent(CUstream s, CUevent e, unsigned) {
  BEGIN("cuStreamWaitEvent");
  const std::shared_ptr<Capture> other = e->capture.lock();
  // Recorded work waits for recorded work alone; a stream that waits for such work is recorded from there on.
  if (s && s->capture && s->capture != other) return refuse(s->capture, CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
  if (s && other) s->capture = other;
  return CUDA_SUCCESS;
}
CUresult cuStreamBeginCapture(CUstream s, CUstreamCaptureMode mode) {
  BEGIN("cuStreamBeginCapture");
  NEED_CONTEXT;
  if (!s || s->capture) return CUDA_ERROR_INVALID_VALUE;
  s->capture = std::make_shared<Capture>();
  s->capture->mode = mode, s->capture->thread = std::this_thread::get_id();
  return CUDA_SUCCESS;
}
CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
  BEGIN("cuThreadExchangeStreamCaptureMode");
  std::swap(thread_mode, *mode);
  return CUDA_SUCCESS;
}
CUresult cuStreamEndCapture(CUstream s, CUgraph* graph) {
  BEGIN("cuStreamEndCapture");
  if (!s->capture) return CUDA_ERROR_INVALID_VALUE;
  // The graph is taken out of its streams, which can capture again.
  const std::shared_ptr<Capture> done = s->capture;
  for (auto& [stream, owned] : streams.live)
    if (stream->capture == done) stream->capture = nullptr;
  *graph = nullptr;
  if (done->invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  *graph = graphs.make(CUgraph_st{std::move(done->nodes)});
  ++fake.live_graphs;
  return CUDA_SUCCESS;
}
CUresult cuGraphInstantiate(CUgraphExec* exec, CUgraph graph, unsigned long long) {
  BEGIN("cuGraphInstantiate");
  // A copy, since a graph may be destroyed before what was made of it.
  *exec = executables.make({*graph});
  ++fake.live_graphs;
  return CUDA_SUCCESS;
}
CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode*, size_t* n) {
  BEGIN("cuGraphGetNodes");
  *n = graph->nodes.size();
  return CUDA_SUCCESS;
}
CUresult cuGraphDestroy(CUgraph graph) {
  --fake.live_graphs;
  graphs.live.erase(graph);
  return CUDA_SUCCESS;
}
CUresult cuGraphExecDestroy(CUgraphExec exec) {
  --fake.live_graphs;
  executables.live.erase(exec);
  return CUDA_SUCCESS;
}
CUresult cuGraphLaunch(CUgraphExec exec, CUstream s) {
  BEGIN("cuGraphLaunch");
  if (!s) return CUDA_ERROR_INVALID_HANDLE;
  for (auto& node : exec->nodes) node();
  return CUDA_SUCCESS;
}
CUresult cuEventCreate(CUevent* e, unsigned) {
  BEGIN("cuEventCreate");
  NEED_CONTEXT;
  *e = events.make({});
  ++fake.live_events;
  return CUDA_SUCCESS;
}
CUresult cuEventDestroy(CUevent e) {
  --fake.live_events;
  events.live.erase(e);
  return CUDA_SUCCESS;
}
CUresult cuEventRecord(CUevent e, CUstream s) {
  BEGIN("cuEventRecord");
  if (!s) return CUDA_ERROR_INVALID_HANDLE;
  if (is_invalid(s)) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  e->is_captured = s->capture != nullptr, e->capture = s->capture;
  e->time = std::chrono::steady_clock::now();
  return CUDA_SUCCESS;
}
CUresult cuEventQuery(CUevent e) {
  // No BEGIN: the code that a test has set is the answer, and CUDA_ERROR_NOT_READY is no failure.
  const auto lock = alone();
  if (CUresult code = begin("cuEventQuery"); code != CUDA_SUCCESS) return code;
  ALLOWED(outside_of_captures(e));
  return unsafe();
}
CUresult cuStreamQuery(CUstream s) {
  const auto lock = alone();
  if (CUresult code = begin("cuStreamQuery"); code != CUDA_SUCCESS) return code;
  ALLOWED(outside_of_captures(s));
  return unsafe();
}
CUresult cuEventSynchronize(CUevent e) {
  BEGIN("cuEventSynchronize");
  ALLOWED(outside_of_captures(e));
  ALLOWED(unsafe());
  return CUDA_SUCCESS;
}
CUresult cuEventElapsedTime(float* ms, CUevent a, CUevent b) {
  BEGIN("cuEventElapsedTime");
  ALLOWED(outside_of_captures(a));
  ALLOWED(outside_of_captures(b));
  *ms = std::chrono::duration<float, std::milli>(b->time - a->time).count();
  return CUDA_SUCCESS;
}
CUresult cuModuleLoadDataEx(CUmodule* m, const void* image, unsigned n, CUjit_option* options, void** values) {
  // Only for the name of the failing call: a cubin and PTX fail apart.
  std::string text(static_cast<const char*>(image));
  bool ptx = text.find(".version") != std::string::npos;
  const auto lock = alone();
  CUresult code = begin(ptx ? "cuModuleLoadDataEx(ptx)" : "cuModuleLoadDataEx(cubin)");
  if (code != CUDA_SUCCESS) {
    for (unsigned i = 0; i < n; ++i)
      if (options[i] == CU_JIT_ERROR_LOG_BUFFER) std::strcpy(static_cast<char*>(values[i]), fake.jit_log.c_str());
    return code;
  }
  NEED_CONTEXT;
  ALLOWED(unsafe());
  *m = modules.make({text});
  ++fake.live_modules;
  return CUDA_SUCCESS;
}
CUresult cuLinkCreate(unsigned n, CUjit_option* options, void** values, CUlinkState* state) {
  BEGIN("cuLinkCreate");
  CUlinkState_st made;
  for (unsigned i = 0; i < n; ++i) {
    if (options[i] == CU_JIT_INFO_LOG_BUFFER) made.info = static_cast<char*>(values[i]);
    if (options[i] == CU_JIT_ERROR_LOG_BUFFER) made.errors = static_cast<char*>(values[i]);
  }
  *state = links.make(made);
  ++fake.live_links;
  return CUDA_SUCCESS;
}
CUresult cuLinkAddData(CUlinkState state, CUjitInputType, void* data, size_t, const char*, unsigned, CUjit_option*,
                       void**) {
  const auto lock = alone();
  CUresult code = begin("cuLinkAddData");
  if (code != CUDA_SUCCESS) {
    std::strcpy(state->errors, fake.jit_log.c_str());
    return code;
  }
  const std::string text = static_cast<const char*>(data);
  // The driver's own cache gives the code without a log, which the runtime has to notice.
  const bool cached = fake.jit_cache && std::count(fake.linked.begin(), fake.linked.end(), text) > 0;
  fake.linked.push_back(text);
  std::strcpy(state->info, cached ? "" : fake.info_log.c_str());
  state->image = "code of " + text;
  return CUDA_SUCCESS;
}
CUresult cuLinkComplete(CUlinkState state, void** image, size_t* size) {
  BEGIN("cuLinkComplete");
  *image = state->image.data();
  *size = state->image.size();
  return CUDA_SUCCESS;
}
CUresult cuLinkDestroy(CUlinkState state) {
  --fake.live_links;
  links.live.erase(state);
  return CUDA_SUCCESS;
}
CUresult cuModuleUnload(CUmodule m) {
  --fake.live_modules;
  modules.live.erase(m);
  return CUDA_SUCCESS;
}
CUresult cuModuleGetFunction(CUfunction* f, CUmodule m, const char* name) {
  BEGIN("cuModuleGetFunction");
  const bool is_text = !m->image.starts_with("\177ELF");
  // Of PTX the name can be looked for; a cubin is taken at its word.
  if (fake.recording && is_text && m->image.find(name) == std::string::npos) return CUDA_ERROR_NOT_FOUND;
  // For the life of the process: handles of two loads of the same are the same.
  // Of a cubin only the head is known, which is that of any other one too.
  static std::map<std::tuple<std::string, std::string, CUmodule>, CUfunc_st> functions;
  CUfunc_st& function = functions[{name, m->image, is_text ? nullptr : m}];
  function = {name, current, m->image};
  *f = &function;
  return CUDA_SUCCESS;
}
CUresult cuPointerGetAttribute(void* data, CUpointer_attribute which, CUdeviceptr pointer) {
  BEGIN("cuPointerGetAttribute");
  if (which != CU_POINTER_ATTRIBUTE_DEVICE_POINTER) return CUDA_ERROR_INVALID_VALUE;
  std::memcpy(data, &pointer, sizeof pointer);
  return CUDA_SUCCESS;
}
CUresult cuFuncGetAttribute(int* value, CUfunction_attribute which, CUfunction) {
  BEGIN("cuFuncGetAttribute");
  *value = which == CU_FUNC_ATTRIBUTE_NUM_REGS ? 24 : 0;
  return CUDA_SUCCESS;
}
CUresult cuFuncSetAttribute(CUfunction f, CUfunction_attribute which, int value) {
  BEGIN("cuFuncSetAttribute");
  if (which != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES || value > fake.max_shared)
    return CUDA_ERROR_INVALID_VALUE;
  f->max_shared = value;
  return CUDA_SUCCESS;
}
CUresult cuTensorMapEncodeTiled(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank, void* address,
                                const cuuint64_t* sizes, const cuuint64_t* strides, const cuuint32_t* box,
                                const cuuint32_t* element_strides, CUtensorMapInterleave interleave,
                                CUtensorMapSwizzle swizzle, CUtensorMapL2promotion, CUtensorMapFloatOOBfill fill) {
  BEGIN("cuTensorMapEncodeTiled");
  const auto base = reinterpret_cast<uint64_t>(address);
  // The limits of the real call, so that the runtime's own checks are tested against them.
  if (rank < 1 || rank > 5 || base % 16 || interleave != CU_TENSOR_MAP_INTERLEAVE_NONE ||
      fill != CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE)
    return CUDA_ERROR_INVALID_VALUE;
  FakeCuda::TensorMap t{type, static_cast<int>(rank), swizzle, base, {}, {}, {}};
  for (cuuint32_t d = 0; d < rank; ++d) {
    if (sizes[d] == 0 || sizes[d] > uint64_t{1} << 32 || box[d] == 0 || box[d] > 256 || element_strides[d] != 1)
      return CUDA_ERROR_INVALID_VALUE;
    t.sizes.push_back(sizes[d]), t.box.push_back(box[d]);
    if (d + 1 == rank) continue;
    if (strides[d] % 16 || strides[d] >= uint64_t{1} << 40) return CUDA_ERROR_INVALID_VALUE;
    t.strides.push_back(strides[d]);
  }
  const uint64_t number = fake.tensor_maps.size();
  fake.tensor_maps.push_back(std::move(t));
  std::memset(map, 0, sizeof *map);
  // The number of the map stands in it, so that a test finds which one a launch was given.
  std::memcpy(map, &number, sizeof number);
  return CUDA_SUCCESS;
}

CUresult cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction f, void** params, void** extra) {
  BEGIN("cuLaunchKernelEx", true);
  const CUlaunchConfig& c = *config;
  bool early = false;
  for (unsigned i = 0; i < c.numAttrs; ++i)
    if (c.attrs[i].id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION)
      early = c.attrs[i].value.programmaticStreamSerializationAllowed;
  // Kiln's kernels are one-dimensional in threads, and their parameters are never packed.
  if (c.blockDimY != 1 || c.blockDimZ != 1 || extra) return CUDA_ERROR_INVALID_VALUE;
  return launch({f->name, {c.gridDimX, c.gridDimY, c.gridDimZ}, c.blockDimX, c.sharedMemBytes, c.hStream, {}, early}, f,
                params);
}
// Left out to make a driver that is too old.
#ifndef FAKE_CUDA_WITHOUT_LAUNCH
CUresult cuLaunchKernel(CUfunction f, unsigned x, unsigned y, unsigned z, unsigned bx, unsigned by, unsigned bz,
                        unsigned shared, CUstream s, void** params, void** extra) {
  BEGIN("cuLaunchKernel", true);
  if (extra || by != 1 || bz != 1) return CUDA_ERROR_INVALID_VALUE;
  return launch({f->name, {x, y, z}, bx, shared, s, {}}, f, params);
}
#endif

}  // extern "C"
