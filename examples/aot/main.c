/* c = a @ b by a kernel that was compiled ahead of time (README.md beside this file). */
#define product_DECLARATIONS_ONLY
#include "product.c"
#include <stdio.h>

static int failed(CUresult code, const char* what) {
  const char* name = "an unknown error";
  if (code == CUDA_SUCCESS) return 0;
  cuGetErrorName(code, &name);
  fprintf(stderr, "%s: %s\n", what, name);
  return 1;
}

int main(void) {
  enum { M = 512, N = 256, K = 1024 };
  static unsigned short ones[M * K], sums[M * N]; /* float16 */
  CUdevice device;
  CUcontext context;
  CUdeviceptr a, b, c;
  product_kernel kernel;
  int i;
  for (i = 0; i < M * K; ++i) ones[i] = 0x3c00;
  if (failed(cuInit(0), "cuInit") || failed(cuDeviceGet(&device, 0), "cuDeviceGet") ||
      failed(cuDevicePrimaryCtxRetain(&context, device), "cuDevicePrimaryCtxRetain") ||
      failed(cuCtxSetCurrent(context), "cuCtxSetCurrent") || failed(product_load(&kernel), "product_load"))
    return 1;
  if (failed(cuMemAlloc(&a, M * K * 2), "cuMemAlloc") || failed(cuMemAlloc(&b, K * N * 2), "cuMemAlloc") ||
      failed(cuMemAlloc(&c, M * N * 2), "cuMemAlloc") || failed(cuMemcpyHtoD(a, ones, M * K * 2), "cuMemcpyHtoD") ||
      failed(cuMemcpyHtoD(b, ones, K * N * 2), "cuMemcpyHtoD"))
    return 1;
  if (failed(product_launch(&kernel, M / 128, N / 128, 1, NULL, a, b, c, M, N, K), "product_launch") ||
      failed(cuMemcpyDtoH(sums, c, M * N * 2), "cuMemcpyDtoH"))
    return 1;
  printf("the last sum is %s\n", sums[M * N - 1] == 0x6400 ? "1024" : "wrong");
  return failed(product_unload(&kernel), "product_unload");
}
