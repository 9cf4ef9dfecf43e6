// Controls of the fake driver; tests get it through the symbol "fake_cuda".
#pragma once
#include <cuda.h>

#include <cstdint>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

struct FakeCuda {
  // What the "machine" has.
  int driver_version = 13000;
  int devices = 2;
  int major = 9, minor = 0;
  size_t memory = 1 << 30;
  int max_shared = 232448;

  // Failures: the call of that name returns the code, after `skip` good ones, `times` times.
  struct Failure {
    CUresult code;
    int skip = 0, times = 1;
  };
  std::map<std::string, Failure> failures;
  CUresult sticky = CUDA_SUCCESS;  // once a fault happened, what every call returns

  // Not recording makes calls as cheap as calls are; FAKE_CUDA_QUIET=1 in the environment sets it.
  bool recording = std::getenv("FAKE_CUDA_QUIET") == nullptr;

  bool takes_null_stream = false;  // the legacy default stream: Kiln launches there for callers alone

  // What happened.
  std::vector<std::string> calls;  // names, in order
  struct Launch {
    std::string kernel;
    unsigned grid[3], threads, shared;
    CUstream stream;
    std::vector<uint64_t> params;  // as many as `param_bytes` of the module has
    bool early = false;            // may begin before the launch that it follows has ended
    std::string code = {};         // of its module
  };
  std::vector<Launch> launches;
  struct TensorMap {
    int dtype, rank, swizzle;
    uint64_t address;
    std::vector<uint64_t> sizes, strides;  // innermost first; strides in bytes, one less
    std::vector<uint32_t> box;
  };
  std::vector<TensorMap> tensor_maps;  // as they were encoded; a map holds its number
  size_t memory_used = 0;
  int live_streams = 0, live_events = 0, live_host_blocks = 0, live_modules = 0, live_graphs = 0, live_links = 0,
      contexts = 0;
  std::string jit_log;  // what the PTX compiler says when it fails
  std::string info_log = "ptxas info    : Compiling entry function 'kernel_a' for 'sm_90a'\n";  // when it does not
  bool jit_cache = false;                    // whether code that was linked once comes without a log
  std::vector<std::string> linked;           // PTX that was linked
  std::vector<int> param_bytes = {8, 8, 4};  // of every kernel

  CUcontext made_context = nullptr;  // one that no device has as its primary context

  int count(const std::string& name) const {
    int n = 0;
    for (const std::string& c : calls) n += c == name;
    return n;
  }
};
