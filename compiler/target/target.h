// What passes and lowerings may query about a GPU generation: features and limits. They never compare SM
// numbers.
#pragma once
#include <cstdint>
#include <span>
#include <string_view>

namespace kiln::target {

enum class Kind : uint8_t { kHost, kCuda };

enum Feature : uint32_t {
  kCpAsync = 1 << 0,  // cp.async (global → shared)
  kLdMatrix = 1 << 1,
  kMmaSync = 1 << 2,
  kBf16 = 1 << 3,        // bf16 fma and conversions
  kFp8Convert = 1 << 4,  // cvt to and from e4m3 and e5m2
  kBf16Arith = 1 << 5,   // add, sub, mul, min, max on bf16
  kTma = 1 << 6,         // cp.async.bulk.tensor, mbarrier transactions, clusters
  kWgmma = 1 << 7,
  kFp8Mma = 1 << 8,  // mma.sync of e4m3 and e5m2
  kStMatrix = 1 << 9,
  kFp8MmaByF16 = 1 << 10,    // … which the assembler emulates by conversions to f16 and f16 products
  kVectorAtomics = 1 << 11,  // atomic additions of 16 bytes of f32, f16 or bf16
  kXorSign = 1 << 12,        // min and max of magnitudes with the sign of both (min.xorsign.abs)
};

struct Target {
  std::string_view name;
  Kind kind;
  int sm, ptx;               // compute capability ×10 and PTX ISA ×10
  std::string_view chip;     // CUPTI's name of one of them: counters differ between generations, hardly within one
  int64_t shared_per_block;  // opt-in maximum, bytes
  int64_t shared_per_sm;     // bytes
  int registers_per_sm, threads_per_sm, blocks_per_sm;
  uint32_t features;

  bool has(Feature f) const { return features & f; }
  bool is_cuda() const { return kind == Kind::kCuda; }
};

/// The row of that name, or nullptr.
const Target* find(std::string_view name);
std::span<const Target> all();
/// What is shown and compiled for where nothing else says which GPU.
inline constexpr std::string_view kDefaultGpu = "sm_90a";
/// A target to name in "help: compile for …": kDefaultGpu if it has the feature.
std::string_view example_with(Feature feature);
/// The row for a GPU of this compute capability × 10: that very generation with the most features ("sm_90a"), else the
/// newest older row whose code runs there; nullptr when every row is newer.
const Target* for_capability(int capability);

}  // namespace kiln::target
