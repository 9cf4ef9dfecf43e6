#if KILN_HAS_CUDA

#include "runtime/cuda/driver_assembler.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <iterator>

#include "support/diag.h"

namespace kiln::runtime {

std::string DriverAssembler::name() const { return fmt::format("driver {}", driver_->version_text()); }

int DriverAssembler::ptx_version() const {
  // PTX 8.0 came with CUDA 12.0, 8.1 with 12.1, and so on; but 12.6 brought none (PTX ISA, release history).
  const int major = driver_->cuda_version / 1000, minor = driver_->cuda_version % 1000 / 10;
  return (major - 4) * 10 + minor - (major == 12 && minor >= 6);
}

Result<Assembled> DriverAssembler::assemble(std::string_view ptx) const {
  KILN_CHECK_OK(activate_());
  KILN_TRY(Assembled done, link(std::string(ptx)));
  // Code that the driver finds in a cache of its own comes without a log: no remarks, no spills. What an assembler says
  // belongs to the result, so the text is made new to it.
  if (done.log.find("Compiling entry function") == std::string::npos) {
    const auto now = std::chrono::steady_clock::now().time_since_epoch().count();
    KILN_TRY(done, link(fmt::format("{}\n// asked again at {}\n", ptx, now)));
  }
  return done;
}

Result<Assembled> DriverAssembler::link(const std::string& ptx) const {
  std::string log(size_t{64} << 10, '\0'), errors(size_t{16} << 10, '\0');
  CUjit_option options[] = {CU_JIT_INFO_LOG_BUFFER,  CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES,
                            CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
                            CU_JIT_LOG_VERBOSE,      CU_JIT_GENERATE_LINE_INFO};
  auto number = [](size_t n) { return reinterpret_cast<void*>(n); };
  void* values[] = {log.data(), number(log.size()),    errors.data(), number(errors.size()),
                    number(1),  number(has_lines(ptx))};
  CUlinkState state = nullptr;
  KILN_CU_TRY(driver_, cuLinkCreate(std::size(options), options, values, &state));
  struct Closer {
    const Driver& driver;
    CUlinkState state;
    ~Closer() { driver.cuLinkDestroy(state); }
  } closer{*driver_, state};
  void* image = nullptr;
  size_t size = 0;
  CUresult code = driver_->cuLinkAddData(state, CU_JIT_INPUT_PTX, const_cast<char*>(ptx.c_str()), ptx.size() + 1,
                                         "kernel.ptx", 0, nullptr, nullptr);  // the text is only read
  if (code == CUDA_SUCCESS) code = driver_->cuLinkComplete(state, &image, &size);
  if (code == CUDA_ERROR_INVALID_PTX) {
    errors.resize(std::min(errors.find('\0'), errors.size()));
    return rejected_ptx("the driver", errors);
  }
  if (code != CUDA_SUCCESS) return driver_->failure(code, "cuLinkComplete(state, &image, &size)");
  return Assembled{
      std::string(static_cast<const char*>(image), size),
      log.c_str()};  // NOLINT(readability-redundant-string-cstr): up to its first zero; the image is the state's own
}

}  // namespace kiln::runtime

#endif
