// Functions that generated host code calls: the complete table of symbols that an object may need, and their log.
#pragma once
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <string>

namespace kiln::codegen {

/// Belongs to one HostCode; hooks may be called from several threads at once.
class HostLog {
 public:
  void fail(std::string message);
  /// The first failure since the last call.
  std::optional<std::string> take_failure();

 private:
  std::mutex mutex_;
  std::optional<std::string> failure_;
};

struct HostSymbol {
  const char* name;
  void* address;
};
/// memcpy and the like that LLVM may call, libm's exact functions (fma, floor… on CPUs without the instructions), our
/// hooks.
std::span<const HostSymbol> host_symbols();

extern "C" {
/// A failed device assertion: the program's position, the element's (of `rank` coordinates) and the text.
void kiln_hook_assert(HostLog* log, const int32_t* program, const int32_t* index, int32_t rank, const char* text);
/// One line of device_print on standard output: "pid (x, y, z) idx (i, …) text value". `operand` is -1 when there is
/// only one; `kind` is a DType, -1 for a pointer, -2 for no value; `bits` holds the value.
void kiln_hook_print(const int32_t* program, const int32_t* index, int32_t rank, const char* text, int32_t operand,
                     int32_t kind, int32_t hex, uint64_t bits);
/// Whether the launch that this thread works for is to end; asked when the word kHostStopWord is not 0.
int32_t kiln_hook_stop();
/// Lanes whose bit in `mask` is set, of elements of `size` bytes: from or to `memory`, which has no others.
void kiln_hook_load_lanes(void* lanes, const void* memory, const uint64_t* mask, int32_t count, int32_t size);
void kiln_hook_store_lanes(void* memory, const void* lanes, const uint64_t* mask, int32_t count, int32_t size);
}

}  // namespace kiln::codegen
