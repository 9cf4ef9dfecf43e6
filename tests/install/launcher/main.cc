// The launcher that `kiln compile --emit c` wrote for examples/aot/product.py, on the fake driver.
#define product_DECLARATIONS_ONLY
#include "product.c"

#include <cstdio>
#include <cstdlib>

#include "tests/unit/runtime/cuda/fake/fake_cuda.h"

extern "C" FakeCuda* fake_cuda();

#define CHECK(condition)                                                    \
  do {                                                                      \
    if (!(condition)) {                                                     \
      std::fprintf(stderr, "line %d: %s is false\n", __LINE__, #condition); \
      std::exit(1);                                                         \
    }                                                                       \
  } while (0)

int main() {
  FakeCuda& fake = *fake_cuda();
  fake.param_bytes = {8, 8, 8, 4, 4, 4};
  fake.takes_null_stream = true;
  CUcontext context = nullptr;
  CHECK(cuInit(0) == CUDA_SUCCESS);
  CHECK(cuDevicePrimaryCtxRetain(&context, 0) == CUDA_SUCCESS && cuCtxSetCurrent(context) == CUDA_SUCCESS);
  product_kernel kernel;

  // The GPU's own code, with tensor maps.
  CHECK(product_load(&kernel) == CUDA_SUCCESS && kernel.empty != 0);
  CHECK(product_launch(&kernel, 4, 2, 1, nullptr, 0x10000, 0x20000, 0x30000, 512, 256, 1024) == CUDA_SUCCESS);
  const FakeCuda::Launch& hopper = fake.launches.at(0);
  CHECK(hopper.kernel == "product" && hopper.threads == 384 && hopper.grid[0] == 4 && hopper.shared > 49152);
  CHECK((hopper.params == std::vector<uint64_t>{0x10000, 0x20000, 0x30000, 512, 256, 1024}));
  CHECK(fake.tensor_maps.size() == 3);
  const FakeCuda::TensorMap& a = fake.tensor_maps[1];
  CHECK(a.address == 0x10000 && a.dtype == CU_TENSOR_MAP_DATA_TYPE_FLOAT16 && a.swizzle == CU_TENSOR_MAP_SWIZZLE_128B);
  CHECK((a.sizes == std::vector<uint64_t>{1024, 512} && a.strides == std::vector<uint64_t>{2048}));
  CHECK((a.box == std::vector<uint32_t>{64, 128}));
  CHECK(product_launch(&kernel, 0, 2, 1, nullptr, 0, 0, 0, 0, 0, 0) == CUDA_SUCCESS && fake.launches.size() == 1);
  CHECK(product_launch(&kernel, 4, 2, 1, nullptr, 0x10008, 0x20000, 0x30000, 512, 256, 1024) ==
        CUDA_ERROR_INVALID_VALUE);
  CHECK(product_launch(&kernel, 4, 2, 1, nullptr, 0x10000, 0x20000, 0x30000, 512, 252, 1024) ==
        CUDA_ERROR_INVALID_VALUE);
  // Without elements along K: a sum of nothing, whose tensors have no address.
  fake.tensor_maps.clear();
  CHECK(product_launch(&kernel, 4, 2, 1, nullptr, 0, 0, 0x30000, 512, 256, 0) == CUDA_SUCCESS);
  CHECK(fake.tensor_maps.at(1).address == kernel.empty && fake.tensor_maps.at(0).address == 0x30000);
  CHECK(product_unload(&kernel) == CUDA_SUCCESS && fake.live_modules == 0 && fake.memory_used == 0);

  // Older generations take the code of theirs, others none.
  fake.major = 8, fake.minor = 9;
  CHECK(product_load(&kernel) == CUDA_SUCCESS && kernel.empty == 0);
  fake.launches.clear(), fake.tensor_maps.clear();
  CHECK(product_launch(&kernel, 4, 2, 1, nullptr, 0x10000, 0x20000, 0x30000, 512, 256, 1024) == CUDA_SUCCESS);
  CHECK(fake.launches.at(0).threads == 256 && fake.tensor_maps.empty());
  CHECK(product_unload(&kernel) == CUDA_SUCCESS && fake.live_modules == 0);
  fake.major = 7, fake.minor = 5;
  CHECK(product_load(&kernel) == CUDA_ERROR_NO_BINARY_FOR_GPU);
  std::puts("launched");
}
