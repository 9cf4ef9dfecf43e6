// A device of each test's own on the CUDA backend, with the fake driver as it is at first.
#pragma once
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <utility>

#include "runtime/cuda/cuda_backend.h"
#include "runtime/device/device.h"
#include "runtime/device/runtime.h"
#include "tests/unit/open_device.h"
#include "tests/unit/runtime/cuda/fake/fake_cuda.h"

namespace kiln::runtime {

class FakeDeviceTest : public testing::Test {
 protected:
  void SetUp() override {
    setenv("KILN_CUDA_LIBRARY", FAKE_CUDA, 1);
    void* library = dlopen(FAKE_CUDA, RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(library, nullptr) << dlerror();
    fake = reinterpret_cast<FakeCuda* (*)()>(dlsym(library, "fake_cuda"))();
    *fake = FakeCuda();
    auto backend = make_cuda_backend(0);
    ASSERT_TRUE(backend.ok());
    impl = std::make_shared<DeviceImpl>("cuda:0", std::move(*backend), test_runtime().impl().shared_from_this());
  }

  FakeCuda* fake = nullptr;
  std::shared_ptr<DeviceImpl> impl;
};

}  // namespace kiln::runtime
