// Where the host side of CUPTI's profiler cannot be asked, a test of it says why and is skipped.
#pragma once
#include <gtest/gtest.h>

#include "profiler/cupti/range_profiler.h"

#ifdef __SANITIZE_ADDRESS__
#define SKIP_WHERE_CUPTI_ENDS_THE_PROCESS() \
  GTEST_SKIP() << "AddressSanitizer refuses how libcupti opens its libraries (RTLD_DEEPBIND)"
#define CUPTI_OR_SKIP() SKIP_WHERE_CUPTI_ENDS_THE_PROCESS()
#else
#define SKIP_WHERE_CUPTI_ENDS_THE_PROCESS() static_cast<void>(0)
#define CUPTI_OR_SKIP() \
  if (auto known = profiler::cupti::chips(); !known.ok()) GTEST_SKIP() << known.error().message
#endif
