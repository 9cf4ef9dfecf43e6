#include "profiler/cupti/activity.h"

#include "profiler/cupti/library.h"
#include "runtime/cuda/driver.h"
#include "support/diag.h"

namespace kiln::profiler::cupti {

#if KILN_HAS_CUPTI

Result<std::unique_ptr<Collector>> make_activity_collector() {
  KILN_TRY([[maybe_unused]] auto driver, runtime::Driver::open());
  KILN_TRY(auto library, Library::open());
  return error(ErrorKind::kDevice, "activity records of CUPTI {} are not read yet", library->version);
}

#else

Result<std::unique_ptr<Collector>> make_activity_collector() { return built_without(); }

#endif

}  // namespace kiln::profiler::cupti
