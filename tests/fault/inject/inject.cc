// Loaded before the program's libraries (LD_PRELOAD): the Nth call of one function since main() began fails, as
// FAULT_AT="read:12" says; "read:12+" is that call and all after it. With FAULT_COUNTS=FILE nothing fails, and
// the calls of each are written to the file.
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

extern "C" {
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);
}

namespace {

enum Function { kMalloc, kMmap, kOpen, kRead, kWrite, kRename, kThread, kFunctions };
constexpr const char* kNames[] = {"malloc", "mmap", "open", "read", "write", "rename", "pthread_create"};

std::atomic<bool> armed{false};
std::atomic<long> calls[kFunctions];
int failing = -1;
long failing_call = 0;
bool all_after = false;

/// Whether this call is one that fails.
bool fails(Function f) {
  if (!armed.load(std::memory_order_relaxed)) return false;
  const long call = ++calls[f];
  return f == failing && (call == failing_call || (all_after && call > failing_call));
}

template <class F>
F next(F, const char* name) {
  return reinterpret_cast<F>(dlsym(RTLD_NEXT, name));
}

void write_counts() {
  armed = false;
  const char* path = std::getenv("FAULT_COUNTS");
  std::FILE* out = path ? std::fopen(path, "w") : nullptr;
  if (!out) return;
  for (int f = 0; f < kFunctions; ++f) std::fprintf(out, "%s %ld\n", kNames[f], calls[f].load());
  std::fclose(out);
}

int (*real_main)(int, char**, char**);

int armed_main(int argc, char** argv, char** environment) {
  if (const char* fault = std::getenv("FAULT_AT"))
    if (const char* colon = std::strchr(fault, ':')) {
      for (int f = 0; f < kFunctions; ++f)
        if (std::strncmp(fault, kNames[f], static_cast<size_t>(colon - fault)) == 0) failing = f;
      failing_call = std::atol(colon + 1);
      all_after = std::strchr(colon, '+');
    }
  if (std::getenv("FAULT_COUNTS")) std::atexit(write_counts);
  armed = true;
  return real_main(argc, argv, environment);
}

template <class Call>
auto guarded(Function f, int error, decltype(std::declval<Call>()()) failure, Call call) {
  if (!fails(f)) return call();
  errno = error;
  return failure;
}

}  // namespace

extern "C" {

int __libc_start_main(int (*main)(int, char**, char**), int argc, char** argv, void (*init)(), void (*fini)(),
                      void (*rtld_fini)(), void* stack_end) {
  real_main = main;
  return next(&__libc_start_main, "__libc_start_main")(armed_main, argc, argv, init, fini, rtld_fini, stack_end);
}

void* malloc(size_t size) {
  return guarded(kMalloc, ENOMEM, nullptr, [&] { return __libc_malloc(size); });
}
void* calloc(size_t n, size_t size) {
  return guarded(kMalloc, ENOMEM, nullptr, [&] { return __libc_calloc(n, size); });
}
void* realloc(void* at, size_t size) {
  return guarded(kMalloc, ENOMEM, nullptr, [&] { return __libc_realloc(at, size); });
}
void* aligned_alloc(size_t alignment, size_t size) {
  return guarded(kMalloc, ENOMEM, nullptr, [&] { return __libc_memalign(alignment, size); });
}
int posix_memalign(void** to, size_t alignment, size_t size) {
  return guarded(kMalloc, ENOMEM, ENOMEM, [&] { return (*to = __libc_memalign(alignment, size)) ? 0 : ENOMEM; });
}

void* mmap(void* at, size_t length, int protection, int flags, int fd, off_t offset) {
  static const auto real = next(&mmap, "mmap");
  return guarded(kMmap, ENOMEM, MAP_FAILED, [&] { return real(at, length, protection, flags, fd, offset); });
}

int open(const char* path, int flags, ...) {
  static const auto real = next(&open, "open");
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, mode_t) : 0;
  va_end(rest);
  return guarded(kOpen, EMFILE, -1, [&] { return real(path, flags, mode); });
}

std::FILE* fopen(const char* path, const char* mode) {
  static const auto real = next(&fopen, "fopen");
  return guarded(kOpen, EMFILE, nullptr, [&] { return real(path, mode); });
}
std::FILE* fopen64(const char* path, const char* mode) { return fopen(path, mode); }

ssize_t read(int fd, void* to, size_t n) {
  static const auto real = next(&read, "read");
  return guarded(kRead, EIO, ssize_t{-1}, [&] { return real(fd, to, n); });
}

ssize_t write(int fd, const void* from, size_t n) {
  static const auto real = next(&write, "write");
  return guarded(kWrite, ENOSPC, ssize_t{-1}, [&] { return real(fd, from, n); });
}

int rename(const char* from, const char* to) {
  static const auto real = next(&rename, "rename");
  return guarded(kRename, ENOSPC, -1, [&] { return real(from, to); });
}

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*start)(void*), void* argument) {
  static const auto real = next(&pthread_create, "pthread_create");
  return guarded(kThread, EAGAIN, EAGAIN, [&] { return real(thread, attributes, start, argument); });
}

}  // extern "C"
