// A kernel that shows how often it ran.
#pragma once

namespace kiln {

inline constexpr const char* kAddOneSource = R"(
import triton
import triton.language as tl

@triton.jit
def add_one(x, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + i, tl.load(x + i, mask=i < n) + 1, mask=i < n)
)";

}  // namespace kiln
