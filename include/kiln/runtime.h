// What a program makes first: its devices, and the compiler for them.
#pragma once
#include <memory>
#include <string_view>

#include "kiln/device.h"

namespace kiln {

namespace runtime {
class OpenDevices;
class RuntimeImpl;
}  // namespace runtime

/// Devices with a compiler. A cheap handle: copies share both. Two runtimes that were made apart share nothing but the
/// cache on disk: "cpu" of one is another device than "cpu" of the other, with its own threads, memory, plans and
/// kernels.
///
/// Devices that were opened stay open while a handle of their runtime is left, and after that as long as a tensor,
/// stream or event of them is.
class Runtime {
 public:
  Runtime();
  explicit Runtime(std::shared_ptr<runtime::OpenDevices> devices) : devices_(std::move(devices)) {}

  /// "cuda", "cuda:1", "cpu"; the same name gives the same device. ErrorKind::kDevice names what is missing ("no CUDA
  /// driver: libcuda.so.1 not found").
  Result<Device> open(std::string_view name) const;
  /// The first GPU, else the CPU; KILN_DEVICE overrides. Without a GPU this does not fail.
  Result<Device> open_default() const;
  runtime::RuntimeImpl& impl() const;

 private:
  std::shared_ptr<runtime::OpenDevices> devices_;
};

}  // namespace kiln
