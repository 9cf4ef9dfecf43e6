/* Compiles a kernel written in the Triton language for the CPU and launches it there, and for a GPU that need not
 * exist. */
#include <kiln/kiln.h>
#include <stdio.h>
#include <string.h>

static const char* const kSource =
    "import triton\n"
    "import triton.language as tl\n"
    "\n"
    "@triton.jit\n"
    "def scaled_add(x, y, out, n, scale, BLOCK: tl.constexpr):\n"
    "    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n"
    "    mask = i < n\n"
    "    tl.store(out + i, tl.load(x + i, mask=mask) * scale + tl.load(y + i, mask=mask), mask=mask)\n";

static int failed(kiln_error* error) {
  if (!error) return 0;
  fputs(kiln_error_text(error), stderr);
  kiln_error_free(error);
  return 1;
}

int main(void) {
  enum { N = 1000, BLOCK = 256 };
  static float x[N], y[N], out[N];
  for (int i = 0; i < N; ++i) x[i] = 3, y[i] = 0.5f;

  kiln_device* device = NULL;
  kiln_kernel* kernel = NULL;
  kiln_image *image = NULL, *gpu = NULL;
  kiln_function* function = NULL;
  const char* const constexprs[] = {"BLOCK=256"};
  kiln_compile_options options = KILN_INIT(kiln_compile_options);
  options.signature = "*fp32, *fp32, *fp32, i32, fp32";
  options.constexprs = constexprs;
  options.num_constexprs = 1;

  if (failed(kiln_device_open("cpu", &device)) || failed(kiln_kernel_parse(kSource, "scaled_add.py", NULL, &kernel)))
    return 1;
  options.device = device;
  if (failed(kiln_compile(kernel, &options, &image)) || failed(kiln_load(image, device, &function))) return 1;

  const float scale = 2;
  uint64_t slots[5] = {(uint64_t)(uintptr_t)x, (uint64_t)(uintptr_t)y, (uint64_t)(uintptr_t)out, N, 0};
  memcpy(&slots[4], &scale, sizeof scale);
  if (failed(kiln_launch(function, (N + BLOCK - 1) / BLOCK, 1, 1, slots, 5, NULL))) return 1;
  printf("%s: 3 * 2 + 0.5 = %g\n", kiln_device_name(device), out[N - 1]);

  options.target = "sm_90a";
  if (failed(kiln_compile(kernel, &options, &gpu))) return 1;
  printf("for %s: %zu bytes of PTX\n", options.target, strlen(kiln_image_ptx(gpu)));

  kiln_function_free(function);
  kiln_image_free(image);
  kiln_image_free(gpu);
  kiln_kernel_free(kernel);
  kiln_device_free(device);
  return 0;
}
