// The BLAS libraries, opened at run time: their entry points and how their errors read.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>

#include "runtime/blas/cublas_abi.h"
#include "support/dynlib.h"

namespace kiln::runtime::blas {

/// What the three have in common. open() of each gives kDevice in one sentence: absent (with every name that was
/// tried), older than what Kiln needs, or without an entry point. A library that opened is kept for the process.
struct Library {
  DynLib library;
  std::string version;  // "13.1.0"
};

struct Cublas : Library {
  /// KILN_CUBLAS_LIBRARY names another library.
  static Result<std::shared_ptr<const Cublas>> open();
  /// kDevice (kMemory for ALLOC_FAILED, kUnsupported for NOT_SUPPORTED): "cublasGemmEx failed: CUBLAS_STATUS_… (…)".
  Diagnostic failure(CublasStatus status, std::string_view call) const;

#define KILN_CUBLAS(member, symbol, ...) std::add_pointer_t<__VA_ARGS__> member = nullptr;
#include "runtime/blas/blas.def"
};

struct CublasLt : Library {
  /// KILN_CUBLASLT_LIBRARY names another library.
  static Result<std::shared_ptr<const CublasLt>> open();
  Diagnostic failure(CublasStatus status, std::string_view call) const;

#define KILN_CUBLASLT(member, symbol, ...) std::add_pointer_t<__VA_ARGS__> member = nullptr;
#include "runtime/blas/blas.def"
};

struct OpenBlas : Library {
  /// KILN_OPENBLAS_LIBRARY names another library.
  static Result<std::shared_ptr<const OpenBlas>> open();

#define KILN_OPENBLAS(member, symbol, ...) std::add_pointer_t<__VA_ARGS__> member = nullptr;
#include "runtime/blas/blas.def"
};

/// Returns the failure of a call from the enclosing function. `lib` is a pointer to Cublas or CublasLt.
#define KILN_BLAS_TRY(lib, call, symbol)                                                              \
  do {                                                                                                \
    if (auto kiln_status = (lib)->call; kiln_status != ::kiln::runtime::blas::CublasStatus::kSuccess) \
      return (lib)->failure(kiln_status, symbol);                                                     \
  } while (0)

}  // namespace kiln::runtime::blas
