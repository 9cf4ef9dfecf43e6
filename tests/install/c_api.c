/* The C API as C11: what include/kiln/kiln.h promises. */
#include <kiln/kiln.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <threads.h>

#define CHECK(condition)                                               \
  do {                                                                 \
    if (!(condition)) {                                                \
      fprintf(stderr, "line %d: %s is false\n", __LINE__, #condition); \
      exit(1);                                                         \
    }                                                                  \
  } while (0)
#define OK(call)                                                                           \
  do {                                                                                     \
    kiln_error* ok_error = (call);                                                         \
    if (ok_error) {                                                                        \
      fprintf(stderr, "line %d: %s gives %s", __LINE__, #call, kiln_error_text(ok_error)); \
      exit(1);                                                                             \
    }                                                                                      \
  } while (0)
#define FAILS(kind, call)                                  \
  do {                                                     \
    kiln_error* failed = (call);                           \
    CHECK(failed&& kiln_error_get_kind(failed) == (kind)); \
    CHECK(strlen(kiln_error_message(failed)) > 0);         \
    kiln_error_free(failed);                               \
  } while (0)

static const char* const kSource =
    "import triton\n"
    "import triton.language as tl\n"
    "\n"
    "@triton.jit\n"
    "def fill(out, n, value, BLOCK: tl.constexpr):\n"
    "    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n"
    "    tl.store(out + i, value, mask=i < n)\n"
    "\n"
    "@triton.jit\n"
    "def product(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):\n"
    "    x = tl.make_tensor_descriptor(a, [M, K], [K, 1], [BM, BK])\n"
    "    y = tl.make_tensor_descriptor(b, [K, N], [N, 1], [BK, BN])\n"
    "    z = tl.make_tensor_descriptor(c, [M, N], [N, 1], [BM, BN])\n"
    "    i = tl.program_id(0) * BM\n"
    "    j = tl.program_id(1) * BN\n"
    "    sums = tl.zeros((BM, BN), dtype=tl.float32)\n"
    "    for k in range(0, K, BK):\n"
    "        sums = tl.dot(x.load([i, k]), y.load([k, j]), sums)\n"
    "    z.store([i, j], sums.to(tl.float16))\n";

static kiln_kernel* parse(const char* function) {
  kiln_kernel* kernel = NULL;
  OK(kiln_kernel_parse(kSource, "kernels.py", function, &kernel));
  CHECK(!strcmp(kiln_kernel_name(kernel), function));
  return kernel;
}

static void nulls_are_told(void) {
  /* A handle that was not given is NULL, whatever stood there, so that a caller may free it in any case. */
  kiln_device* device = (kiln_device*)&kSource;
  kiln_kernel* kernel = (kiln_kernel*)&kSource;
  kiln_image* image = (kiln_image*)&kSource;
  kiln_function* function = (kiln_function*)&kSource;
  kiln_compile_options options = KILN_INIT(kiln_compile_options);
  FAILS(KILN_ERROR_DEVICE, kiln_device_open("gpu", &device));
  FAILS(KILN_ERROR_SYNTAX, kiln_kernel_parse("def", NULL, NULL, &kernel));
  FAILS(KILN_ERROR_VALUE, kiln_compile(NULL, &options, &image));
  FAILS(KILN_ERROR_VALUE, kiln_load(NULL, NULL, &function));
  CHECK(!device && !kernel && !image && !function);
  /* What is told of NULL. */
  size_t size = 7;
  CHECK(!*kiln_error_message(NULL) && !*kiln_error_text(NULL) && !*kiln_error_file(NULL));
  CHECK(kiln_error_line(NULL) == 0 && kiln_error_column(NULL) == 0);
  CHECK(!*kiln_device_name(NULL) && !*kiln_device_target(NULL) && !*kiln_kernel_name(NULL));
  CHECK(!*kiln_image_ptx(NULL) && !*kiln_image_json(NULL) && !kiln_image_cubin(NULL, &size) && size == 0);
}

static void errors_have_a_place(void) {
  kiln_kernel* kernel = NULL;
  kiln_error* error = kiln_kernel_parse("@triton.jit\ndef f(x:\n    pass\n", "broken.py", NULL, &kernel);
  CHECK(error && !kernel && kiln_error_get_kind(error) == KILN_ERROR_SYNTAX);
  CHECK(!strcmp(kiln_error_file(error), "broken.py"));
  CHECK(kiln_error_line(error) > 0 && kiln_error_column(error) > 0);
  CHECK(strstr(kiln_error_text(error), "broken.py:"));
  kiln_error_free(error);
  kiln_error_free(NULL);
  FAILS(KILN_ERROR_NAME, kiln_kernel_parse(kSource, NULL, "fil", &kernel));
  FAILS(KILN_ERROR_NAME, kiln_kernel_parse(kSource, NULL, NULL, &kernel));
  FAILS(KILN_ERROR_VALUE, kiln_kernel_parse(NULL, NULL, NULL, &kernel));

  kernel = parse("fill");
  kiln_image* image = NULL;
  kiln_compile_options options = KILN_INIT(kiln_compile_options);
  options.target = "host";
  FAILS(KILN_ERROR_TYPE, kiln_compile(kernel, &options, &image)); /* no signature */
  const char* const constexprs[] = {"BLOCK=100"};
  options.signature = "*fp32, i32, fp32";
  options.constexprs = constexprs;
  options.num_constexprs = 1;
  error = kiln_compile(kernel, &options, &image); /* arange needs a power of two */
  CHECK(error && !strcmp(kiln_error_file(error), "kernels.py") && kiln_error_line(error) == 6);
  kiln_error_free(error);
  const char* const unknown[] = {"num_warp=4"};
  options.options = unknown;
  options.num_options = 1;
  FAILS(KILN_ERROR_NAME, kiln_compile(kernel, &options, &image));
  const char* const not_allowed[] = {"debug=maybe"};
  options.options = not_allowed;
  FAILS(KILN_ERROR_VALUE, kiln_compile(kernel, &options, &image));
  const char* const nothing[] = {NULL};
  options.options = nothing;
  FAILS(KILN_ERROR_VALUE, kiln_compile(kernel, &options, &image));
  options.options = NULL;
  FAILS(KILN_ERROR_VALUE, kiln_compile(kernel, &options, &image));
  options.num_options = 0;
  options.num_constexprs = 2;
  options.constexprs = NULL;
  FAILS(KILN_ERROR_VALUE, kiln_compile(kernel, &options, &image));
  options.num_constexprs = 0;
  options.size = 0;
  FAILS(KILN_ERROR_VALUE, kiln_compile(kernel, &options, &image));
  FAILS(KILN_ERROR_VALUE, kiln_compile(kernel, NULL, &image));
  CHECK(!image);
  kiln_kernel_free(kernel);

  kiln_device* device = NULL;
  FAILS(KILN_ERROR_DEVICE, kiln_device_open("tpu", &device));
  FAILS(KILN_ERROR_VALUE, kiln_device_from_cuda(NULL, &device));
  CHECK(!device);
}

static void launches_on_the_cpu(void) {
  kiln_device* device = NULL;
  OK(kiln_device_open("cpu", &device));
  CHECK(!strcmp(kiln_device_name(device), "cpu") && !strcmp(kiln_device_target(device), "host"));
  kiln_kernel* kernel = parse("fill");
  const char* const constexprs[] = {"BLOCK=64"};
  kiln_compile_options options = KILN_INIT(kiln_compile_options);
  options.signature = "*fp32, i32, fp32";
  options.constexprs = constexprs;
  options.num_constexprs = 1;
  options.device = device;
  const char* const launch_options[] = {"enable_fp_fusion=False", "maxnreg=None", "num_warps=8"};
  options.options = launch_options;
  options.num_options = 3;
  kiln_image* image = NULL;
  kiln_function* function = NULL;
  OK(kiln_compile(kernel, &options, &image));
  kiln_kernel_free(kernel); /* the image does not need it */
  OK(kiln_load(image, device, &function));

  float memory[100] = {0};
  const float value = 2.5f;
  uint64_t slots[3] = {(uint64_t)(uintptr_t)memory, 99, 0};
  memcpy(&slots[2], &value, sizeof value);
  OK(kiln_launch(function, 2, 1, 1, slots, 3, NULL));
  CHECK(memory[0] == 2.5f && memory[98] == 2.5f && memory[99] == 0);
  OK(kiln_launch(function, 0, 1, 1, slots, 3, NULL)); /* no program */
  FAILS(KILN_ERROR_LAUNCH, kiln_launch(function, 1, 1, 1, slots, 2, NULL));
  FAILS(KILN_ERROR_LAUNCH, kiln_launch(function, 1, 65536, 1, slots, 3, NULL));
  FAILS(KILN_ERROR_VALUE, kiln_launch(function, 1, 1, 1, slots, 3, memory));
  FAILS(KILN_ERROR_VALUE, kiln_launch(function, 1, 1, 1, NULL, 3, NULL));
  kiln_image_free(image); /* nor the function the image */
  OK(kiln_launch(function, 1, 1, 1, slots, 3, NULL));
  kiln_function_free(function);
  kiln_device_free(device);
}

static void tells_a_launcher_all(void) {
  kiln_kernel* kernel = parse("product");
  const char* const constexprs[] = {"BM=128", "BN=128", "BK=64"};
  kiln_compile_options options = KILN_INIT(kiln_compile_options);
  options.signature = "*fp16:16, *fp16:16, *fp16:16, i32:16, i32:16, i32:16";
  options.constexprs = constexprs;
  options.num_constexprs = 3;
  options.target = "sm_90a";
  options.num_warps = 8;
  kiln_image* image = NULL;
  OK(kiln_compile(kernel, &options, &image));
  CHECK(strstr(kiln_image_ptx(image), ".entry product"));
  size_t bytes = 1;
  const void* cubin = kiln_image_cubin(image, &bytes);
  CHECK(!cubin == !bytes);
  CHECK(strstr(kiln_image_json(image), "{\"name\":\"a\",\"dtype\":\"f16\",\"base\":\"p0\""));

  kiln_launch_info info = KILN_INIT(kiln_launch_info);
  OK(kiln_image_launch_info(image, &info));
  CHECK(!strcmp(info.name, "product") && !strcmp(info.symbol, info.name) && info.num_params == 6 && info.num_tensor_maps >= 2);
  CHECK(info.threads % 32 == 0 && info.threads >= 256 && info.num_ctas == 1 && info.shared_bytes > 32768);

  const uint64_t slots[] = {0x10000, 0x20000, 0x30000, 512, 256, 1024}; /* a [512, 1024], after c */
  kiln_tensor_map map = KILN_INIT(kiln_tensor_map);
  OK(kiln_image_tensor_map(image, 1, slots, 6, &map));
  CHECK(map.address == 0x10000 && map.rank == 2 && map.data_type == 6 && !map.stored && !map.empty);
  CHECK(map.sizes[0] == 1024 && map.sizes[1] == 512 && map.strides[0] == 2048 && map.box[0] == 64);
  const uint64_t odd[] = {0x10008, 0x20000, 0x30000, 512, 256, 1024};
  FAILS(KILN_ERROR_LAUNCH, kiln_image_tensor_map(image, 1, odd, 6, &map));
  FAILS(KILN_ERROR_VALUE, kiln_image_tensor_map(image, 9, slots, 6, &map));
  FAILS(KILN_ERROR_VALUE, kiln_image_tensor_map(image, 0, slots, 5, &map));

  kiln_device* cpu = NULL;
  kiln_function* function = NULL;
  OK(kiln_device_open("cpu", &cpu));
  FAILS(KILN_ERROR_VALUE, kiln_load(image, cpu, &function));
  kiln_device_free(cpu);
  kiln_image_free(image);
  kiln_kernel_free(kernel);
}

typedef struct answer {
  atomic_int came;
  kiln_error* error;
  kiln_image* image;
} answer;

static void take_answer(void* context, kiln_error* error, kiln_image* image) {
  answer* to = context;
  to->error = error;
  to->image = image;
  atomic_store(&to->came, 1);
}

static void wait_for(answer* from) {
  while (!atomic_load(&from->came)) thrd_yield();
}

static void compiles_beside(void) {
  kiln_kernel* kernel = parse("fill");
  char block[] = "BLOCK=32";
  const char* constexprs[] = {block};
  kiln_compile_options options = KILN_INIT(kiln_compile_options);
  options.signature = "*fp32, i32, fp32";
  options.constexprs = constexprs;
  options.num_constexprs = 1;
  options.target = "host";
  answer good = {0}, bad = {0};
  OK(kiln_compile_async(kernel, &options, take_answer, &good));
  strcpy(block, "BLOCK=33"); /* the options were copied */
  OK(kiln_compile_async(kernel, &options, take_answer, &bad));
  FAILS(KILN_ERROR_VALUE, kiln_compile_async(kernel, &options, NULL, NULL));
  FAILS(KILN_ERROR_VALUE, kiln_compile_async(kernel, NULL, take_answer, &bad));
  FAILS(KILN_ERROR_VALUE, kiln_compile_async(NULL, &options, take_answer, &bad));
  kiln_kernel_free(kernel);
  wait_for(&good);
  OK(good.error);
  CHECK(good.image && strstr(kiln_image_json(good.image), "\"fill\""));
  kiln_image_free(good.image);
  wait_for(&bad);
  CHECK(bad.error && !bad.image && kiln_error_line(bad.error) == 6);
  kiln_error_free(bad.error);
}

static void count_warnings(void* context, int level, const char* text) {
  if (level == 1 && strlen(text) > 0) ++*(int*)context;
}

/* Run with KILN_CACHE_DIR naming no folder: the only remark is that nothing is cached. */
static int tells_the_log(void) {
  int warnings = 0;
  kiln_set_log(count_warnings, &warnings);
  launches_on_the_cpu();
  kiln_set_log(NULL, NULL);
  return warnings;
}

int main(int argc, char** argv) {
  if (argc > 1 && !strcmp(argv[1], "log")) {
    printf("%d warnings\n", tells_the_log());
    return 0;
  }
  CHECK(kiln_api_version() == KILN_API_VERSION && strlen(kiln_version()) > 0);
  nulls_are_told();
  errors_have_a_place();
  launches_on_the_cpu();
  tells_a_launcher_all();
  compiles_beside();
  puts("the C API is as promised");
  return 0;
}
