// Ranges as a tool would see them: the tool is this test, linked in as NVTX's static injection.
#include "profiler/cupti/nvtx.h"

#include <gtest/gtest.h>

#if KILN_HAS_NVTX

#include <nvtx3/nvToolsExt.h>

namespace {

std::string& seen() {
  static std::string text;
  return text;
}

nvtxDomainHandle_t NVTX_API create_domain(const char* name) {
  seen() += std::string("domain ") + name + "\n";
  return reinterpret_cast<nvtxDomainHandle_t>(&seen());
}

int NVTX_API push_range(nvtxDomainHandle_t domain, const nvtxEventAttributes_t* event) {
  EXPECT_EQ(domain, reinterpret_cast<nvtxDomainHandle_t>(&seen()));
  EXPECT_EQ(event->messageType, NVTX_MESSAGE_TYPE_ASCII);
  seen() += std::string("push ") + event->message.ascii + "\n";
  return 0;
}

int NVTX_API pop_range(nvtxDomainHandle_t) {
  seen() += "pop\n";
  return 0;
}

template <class F>
void set(NvtxFunctionTable table, int id, F function) {
  *table[id] = reinterpret_cast<NvtxFunctionPointer>(function);
}

int NVTX_API attach(NvtxGetExportTableFunc_t get_table) {
  auto* callbacks = static_cast<const NvtxExportTableCallbacks*>(get_table(NVTX_ETID_CALLBACKS));
  NvtxFunctionTable table = nullptr;
  unsigned size = 0;
  if (!callbacks || !callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE2, &table, &size)) return 0;
  set(table, NVTX_CBID_CORE2_DomainCreateA, create_domain);
  set(table, NVTX_CBID_CORE2_DomainRangePushEx, push_range);
  set(table, NVTX_CBID_CORE2_DomainRangePop, pop_range);
  return 1;
}

}  // namespace

namespace kiln::profiler {
namespace {

TEST(Nvtx, AToolSeesNestedRangesInOurDomain) {
  ASSERT_EQ(nvtx::absent_because(), nullptr);
  InitializeInjectionNvtx2_fnptr = attach;
  nvtx::push("step 1");
  nvtx::push("attention");
  nvtx::pop();
  nvtx::pop();
  EXPECT_EQ(seen(), "domain kiln\npush step 1\npush attention\npop\npop\n");
}

}  // namespace
}  // namespace kiln::profiler

#else

TEST(Nvtx, ABuildWithoutItsHeadersSaysSo) {
  ASSERT_NE(kiln::profiler::nvtx::absent_because(), nullptr);
  kiln::profiler::nvtx::push("nothing");
  kiln::profiler::nvtx::pop();
}

#endif
