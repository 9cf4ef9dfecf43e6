#include "profiler/cupti/nvtx.h"

#if KILN_HAS_NVTX
#include <nvtx3/nvToolsExt.h>

#include "profiler/cupti/decode.h"
#endif

namespace kiln::profiler::nvtx {

#if KILN_HAS_NVTX

namespace {

nvtxDomainHandle_t domain() {
  // Null while no tool listens, and then NVTX's calls return at once.
  static nvtxDomainHandle_t made = nvtxDomainCreateA(cupti::kOwnDomain);
  return made;
}

}  // namespace

void initialize() { domain(); }

void push(const std::string& name) {
  nvtxEventAttributes_t event = {};
  event.version = NVTX_VERSION;
  event.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  event.messageType = NVTX_MESSAGE_TYPE_ASCII;
  event.message.ascii = name.c_str();
  nvtxDomainRangePushEx(domain(), &event);
}

void pop() { nvtxDomainRangePop(domain()); }

const char* absent_because() { return nullptr; }

#else

void initialize() {}
void push(const std::string&) {}
void pop() {}

const char* absent_because() {
  return "this build emits no NVTX ranges: it was built without NVTX's headers (set CUDA_HOME and build again)";
}

#endif

}  // namespace kiln::profiler::nvtx
