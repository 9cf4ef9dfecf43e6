/* Kiln in C: kernels of the Triton language, compiled at run time and launched on a GPU or on the CPU
 * (docs/embedding.md).
 *
 * Every function that can fail returns NULL, or an error that the caller frees with kiln_error_free(); the handle that
 * it gives is NULL then. No C++ exception leaves the library. Handles are opaque; each is freed by its own function,
 * and may be used from several threads at once. Texts that are returned live as long as the handle they came from.
 * Functions that free a handle or tell something of it take NULL too, of which they tell "", 0 or NULL
 * (kiln_error_get_kind: KILN_ERROR_INTERNAL, as 0 is a kind).
 *
 * Structures begin with their size, which the caller sets (KILN_INIT does): a later library reads no further, and fills
 * in defaults. What is declared here stays as it is while KILN_API_VERSION is the same. */
#ifndef KILN_KILN_H
#define KILN_KILN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
template <class T>
T KilnSized() {
  T value = T();
  value.size = sizeof(T);
  return value;
}

extern "C" {
#endif

#define KILN_API_VERSION 1

/* The library's KILN_API_VERSION, and its release: "0.1.0". */
int kiln_api_version(void);
const char* kiln_version(void);

/* Where the library's remarks go, one sentence each, from any thread, one at a time; it must not call Kiln. A level is
 * 0 for a note and 1 for a warning. NULL: to standard error. */
typedef void (*kiln_log_function)(void* context, int level, const char* text);
void kiln_set_log(kiln_log_function function, void* context);

/* --- errors ------------------------------------------------------------------------------------------------------- */

typedef struct kiln_error kiln_error;

typedef enum kiln_error_kind {
  KILN_ERROR_SYNTAX = 0,      /* the text does not parse */
  KILN_ERROR_NAME = 1,        /* an unknown name */
  KILN_ERROR_TYPE = 2,        /* a wrong type, shape or number of arguments */
  KILN_ERROR_VALUE = 3,       /* a value outside what is allowed */
  KILN_ERROR_UNSUPPORTED = 4, /* valid Triton that Kiln does not compile yet */
  KILN_ERROR_MISMATCH = 5,
  KILN_ERROR_LAUNCH = 6, /* the launch was refused or the kernel faulted */
  KILN_ERROR_MEMORY = 7,
  KILN_ERROR_DEVICE = 8, /* no device, a driver that is missing or too old, a driver call that failed */
  KILN_ERROR_IO = 9,
  KILN_ERROR_INTERRUPTED = 10,
  KILN_ERROR_INTERNAL = 11 /* a bug of Kiln's */
} kiln_error_kind;

kiln_error_kind kiln_error_get_kind(const kiln_error* error);
/* One sentence. */
const char* kiln_error_message(const kiln_error* error);
/* The message with its place, the line with a caret, and notes; ends with a newline. */
const char* kiln_error_text(const kiln_error* error);
/* The place in the kernel's source: the file as it was named, and line and column from 1; "" and 0 for errors without.
 */
const char* kiln_error_file(const kiln_error* error);
int kiln_error_line(const kiln_error* error);
int kiln_error_column(const kiln_error* error);
void kiln_error_free(kiln_error* error);

/* --- devices ------------------------------------------------------------------------------------------------------ */

typedef struct kiln_device kiln_device;

/* "cuda:0", "cpu"; NULL: the first GPU, else the CPU. A GPU's primary context is made at the first use. */
kiln_error* kiln_device_open(const char* name, kiln_device** device);
/* The GPU of a CUcontext of the caller's, which outlives the device and the functions that are loaded on it. */
kiln_error* kiln_device_from_cuda(void* cu_context, kiln_device** device);
const char* kiln_device_name(const kiln_device* device);
/* What it runs: "sm_90a", "host". */
const char* kiln_device_target(const kiln_device* device);
void kiln_device_free(kiln_device* device);

/* --- compiling ---------------------------------------------------------------------------------------------------- */

/* A function under @triton.jit. */
typedef struct kiln_kernel kiln_kernel;

/* Parses a file's text. `file_name` is for messages; `function` may be NULL when there is only one. */
kiln_error* kiln_kernel_parse(const char* source, const char* file_name, const char* function, kiln_kernel** kernel);
const char* kiln_kernel_name(const kiln_kernel* kernel);
void kiln_kernel_free(kiln_kernel* kernel);

typedef struct kiln_compile_options {
  size_t size; /* sizeof(kiln_compile_options) */
  /* A type for each parameter that is no constexpr: "*fp32:16, *fp32:16, i32". `:16` promises a multiple of 16. */
  const char* signature;
  /* "BLOCK=1024", "DTYPE=tl.float16". */
  const char* const* constexprs;
  size_t num_constexprs;
  /* "sm_90a", "host"; NULL: of `device`, which may be NULL then too, for the one that kiln_device_open(NULL) opens. */
  const char* target;
  const kiln_device* device;
  /* 0: Triton's default (4, 3, 1, none). */
  int num_warps, num_stages, num_ctas, maxnreg;
  /* "enable_fp_fusion=False", "debug=False": the launch options by their names in scripts (docs/language.md). */
  const char* const* options;
  size_t num_options;
} kiln_compile_options;

#ifdef __cplusplus /* all versions of it, without a warning */
#define KILN_INIT(type) (KilnSized<type>())
#else
#define KILN_INIT(type) \
  { .size = sizeof(type) }
#endif

/* Code of one specialisation. */
typedef struct kiln_image kiln_image;

/* Kernels that were compiled before come from the cache on disk (KILN_CACHE). */
kiln_error* kiln_compile(const kiln_kernel* kernel, const kiln_compile_options* options, kiln_image** image);
/* The same on a thread of Kiln's, as many at a time as the machine has threads. `done` is called there once: with an
 * error that it frees, or with an image. It may call Kiln. The options are copied, and the kernel may be freed
 * meanwhile; but for NULLs, what is wrong with them comes to `done` too. A program that ends before waits for what has
 * begun, and drops the others. */
typedef void (*kiln_compiled_function)(void* context, kiln_error* error, kiln_image* image);
kiln_error* kiln_compile_async(const kiln_kernel* kernel, const kiln_compile_options* options,
                               kiln_compiled_function done, void* context);
/* PTX, and "" for the CPU. */
const char* kiln_image_ptx(const kiln_image* image);
/* Of `*size` bytes; NULL when no assembler was found, and for the CPU. */
const void* kiln_image_cubin(const kiln_image* image, size_t* size);
/* How it is launched, as JSON: name, symbol (the entry), threads, num_ctas, shared_bytes, params and more. */
const char* kiln_image_json(const kiln_image* image);
void kiln_image_free(kiln_image* image);

/* What a launcher of the caller's own passes to cuLaunchKernel: a grid of {x * num_ctas, y, z} blocks, blocks of
 * {threads, 1, 1}, and the parameters, followed by num_tensor_maps CUtensorMaps. */
typedef struct kiln_launch_info {
  size_t size; /* sizeof(kiln_launch_info) */
  const char* name;
  int threads, num_ctas, num_params, num_tensor_maps;
  int64_t shared_bytes; /* dynamic; also for CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES */
  int registers;        /* -1: unknown */
  int64_t spill_bytes;  /* -1: unknown */
  int launch_pdl;       /* may be launched with programmatic stream serialization */
  const char* symbol;   /* the name of the code's entry: `name`, whose letters outside of ASCII PTX does not have */
} kiln_launch_info;

kiln_error* kiln_image_launch_info(const kiln_image* image, kiln_launch_info* info);

/* The arguments of cuTensorMapEncodeTiled for one tensor map; the others are no interleaving, element strides of 1, L2
 * promotion of 256 bytes and no NaN fill. Innermost dimension first. */
typedef struct kiln_tensor_map {
  size_t size;   /* sizeof(kiln_tensor_map) */
  int data_type; /* CUtensorMapDataType */
  int rank;
  uint64_t address;
  uint64_t sizes[5];   /* in elements */
  uint64_t strides[5]; /* in bytes, of the second dimension on */
  uint32_t box[5];
  int swizzle; /* CUtensorMapSwizzle */
  int stored;  /* written, not read */
  int empty;   /* the tensor has no elements: put the address of 256 bytes on the device in place of `address` */
} kiln_tensor_map;

/* For a launch with these slots (see kiln_launch). */
kiln_error* kiln_image_tensor_map(const kiln_image* image, int index, const uint64_t* slots, size_t num_slots,
                                  kiln_tensor_map* map);

/* --- launching ---------------------------------------------------------------------------------------------------- */

/* An image on a device. */
typedef struct kiln_function kiln_function;

kiln_error* kiln_load(const kiln_image* image, const kiln_device* device, kiln_function** function);
/* Over x * y * z programs. A slot of 8 bytes for each parameter: a pointer, or a number in the low bytes (a float as
 * its bits). On a GPU the launch is queued on `cu_stream`, a CUstream of the device's context (NULL: the legacy default
 * stream); nothing is waited for. On the CPU it is done when the call returns, and `cu_stream` is NULL. */
kiln_error* kiln_launch(const kiln_function* function, uint32_t x, uint32_t y, uint32_t z, const uint64_t* slots,
                        size_t num_slots, void* cu_stream);
/* Not before the work is done. */
void kiln_function_free(kiln_function* function);

#ifdef __cplusplus
}
#endif

#endif
