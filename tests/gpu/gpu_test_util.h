// What the tests of a real GPU share: the device or the reason to skip, and kernels written in PTX by hand.
#pragma once
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "runtime/device/device.h"
#include "support/diag.h"
#include "support/knobs.h"
#include "tests/unit/open_device.h"

namespace kiln::runtime {

/// Gives `device` the first GPU, or skips the test with the reason; KILN_REQUIRE_GPU=1 makes that a failure.
#define GPU_OR_SKIP(device)                                                           \
  Device device;                                                                      \
  {                                                                                   \
    auto opened = open_device("cuda:0");                                              \
    if (!opened.ok() && knob_on(Knob::kRequireGpu)) FAIL() << opened.error().message; \
    if (!opened.ok()) GTEST_SKIP() << opened.error().message;                         \
    device = *opened;                                                                 \
  }

#define ASSERT_OK(expr)                                                         \
  do {                                                                          \
    auto status_ = (expr);                                                      \
    ASSERT_TRUE(status_.ok()) << (status_.ok() ? "" : render(status_.error())); \
  } while (0)

/// Loads an entry of a PTX text.
inline Result<std::shared_ptr<LoadedKernel>> load_ptx(const Device& device, const std::string& name,
                                                      const std::string& ptx, int num_params, int64_t shared_bytes = 0,
                                                      int num_warps = 4) {
  KernelImage image;
  image.name = name;
  image.num_params = num_params;
  image.num_warps = num_warps;
  image.shared_bytes = shared_bytes;
  image.ptx = ptx;
  return device.impl()->backend().load(image);
}

inline Status launch_ptx(const Device& device, const LoadedKernel& kernel, Grid grid, std::vector<uint64_t> slots,
                         const Stream& stream = {}) {
  return device.impl()->backend().launch(kernel, grid, slots.data(), device.impl()->stream_or_current(stream));
}

inline constexpr const char* kPtxHeader = ".version 7.8\n.target sm_80\n.address_size 64\n";

/// out[i] = x[i] * scale + bias for i < n; parameters: out, x, n (32 bits), scale (f32), bias (f32).
inline const std::string& affine_ptx() {
  static const std::string kText = std::string(kPtxHeader) + R"(
.visible .entry affine(.param .u64 out, .param .u64 x, .param .u32 n, .param .f32 scale, .param .f32 bias)
{
  .reg .pred %p; .reg .b32 %r<5>; .reg .f32 %f<4>; .reg .b64 %d<6>;
  mov.u32 %r0, %ctaid.x; mov.u32 %r1, %ntid.x; mov.u32 %r2, %tid.x;
  mad.lo.u32 %r3, %r0, %r1, %r2;
  ld.param.u32 %r4, [n];
  setp.ge.u32 %p, %r3, %r4;
  @%p bra done;
  ld.param.u64 %d0, [out]; ld.param.u64 %d1, [x];
  cvta.to.global.u64 %d0, %d0; cvta.to.global.u64 %d1, %d1;
  mul.wide.u32 %d2, %r3, 4;
  add.u64 %d3, %d1, %d2; add.u64 %d4, %d0, %d2;
  ld.global.f32 %f0, [%d3];
  ld.param.f32 %f1, [scale]; ld.param.f32 %f2, [bias];
  fma.rn.f32 %f3, %f0, %f1, %f2;
  st.global.f32 [%d4], %f3;
done:
  ret;
}
)";
  return kText;
}

/// Spins for `cycles` clock cycles, then writes 1 to out[0]: a kernel of known length.
inline const std::string& spin_ptx() {
  static const std::string kText = std::string(kPtxHeader) + R"(
.visible .entry spin(.param .u64 out, .param .u64 cycles)
{
  .reg .pred %p; .reg .b32 %r; .reg .b64 %d<6>;
  ld.param.u64 %d0, [cycles]; ld.param.u64 %d1, [out];
  cvta.to.global.u64 %d1, %d1;
  mov.u64 %d2, %clock64;
again:
  mov.u64 %d3, %clock64;
  sub.u64 %d4, %d3, %d2;
  setp.lt.u64 %p, %d4, %d0;
  @%p bra again;
  mov.u32 %r, 1;
  st.global.u32 [%d1], %r;
  ret;
}
)";
  return kText;
}

/// Thread t of a block writes t to dynamic shared memory at the far end, and after a barrier its neighbour's to out[t].
inline const std::string& shared_ptx() {
  static const std::string kText = std::string(kPtxHeader) + R"(
.extern .shared .align 16 .b8 pool[];
.visible .entry through_shared(.param .u64 out, .param .u32 offset)
{
  .reg .b32 %r<8>; .reg .b64 %d<4>;
  mov.u32 %r0, %tid.x;
  mov.u32 %r1, pool;
  ld.param.u32 %r2, [offset];
  add.u32 %r1, %r1, %r2;
  shl.b32 %r3, %r0, 2;
  add.u32 %r4, %r1, %r3;
  st.shared.u32 [%r4], %r0;
  bar.sync 0;
  xor.b32 %r5, %r0, 1;
  shl.b32 %r5, %r5, 2;
  add.u32 %r5, %r1, %r5;
  ld.shared.u32 %r6, [%r5];
  ld.param.u64 %d0, [out];
  cvta.to.global.u64 %d0, %d0;
  mul.wide.u32 %d1, %r0, 4;
  add.u64 %d2, %d0, %d1;
  st.global.u32 [%d2], %r6;
  ret;
}
)";
  return kText;
}

}  // namespace kiln::runtime
