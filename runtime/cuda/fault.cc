#if KILN_HAS_CUDA

#include "runtime/cuda/fault.h"

namespace kiln::runtime {
namespace {

struct Fault {
  CUresult code;
  std::string_view text;
};

constexpr Fault kFaults[] = {
    {CUDA_ERROR_ILLEGAL_ADDRESS, "read or wrote an illegal address"},
    {CUDA_ERROR_MISALIGNED_ADDRESS, "read or wrote a misaligned address"},
    {CUDA_ERROR_INVALID_ADDRESS_SPACE, "used an address of the wrong memory space"},
    {CUDA_ERROR_INVALID_PC, "jumped to an invalid instruction address"},
    {CUDA_ERROR_ILLEGAL_INSTRUCTION, "ran an illegal instruction"},
    {CUDA_ERROR_HARDWARE_STACK_ERROR, "corrupted its call stack"},
    {CUDA_ERROR_ASSERT, "failed a device-side assert"},
    {CUDA_ERROR_LAUNCH_TIMEOUT, "ran longer than the display driver allows"},
    {CUDA_ERROR_LAUNCH_FAILED, "failed while running"},
    {CUDA_ERROR_ECC_UNCORRECTABLE, "met an uncorrectable memory (ECC) error"},
    {CUDA_ERROR_CONTEXT_IS_DESTROYED, "lost its context"},
};

}  // namespace

std::string_view fault_text(CUresult code) {
  for (const Fault& fault : kFaults)
    if (fault.code == code) return fault.text;
  return {};
}

}  // namespace kiln::runtime

#endif
