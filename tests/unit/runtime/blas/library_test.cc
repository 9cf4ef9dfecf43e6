// What is said when a library is absent, too old or lacks an entry point.
#include "runtime/blas/library.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "kiln/blas.h"
#include "support/diag.h"

namespace kiln::runtime::blas {
namespace {

template <class T>
std::string open_error() {
  auto lib = T::open();
  EXPECT_FALSE(lib.ok());
  if (lib.ok()) return {};
  EXPECT_EQ(lib.error().kind, ErrorKind::kDevice);
  EXPECT_TRUE(lib.error().notes.empty());
  EXPECT_EQ(lib.error().message.find('\n'), std::string::npos) << "one line";
  return lib.error().message;
}

struct BlasLibraryTest : ::testing::Test {
  void TearDown() override {
    for (const char* v : {"KILN_CUBLAS_LIBRARY", "KILN_CUBLASLT_LIBRARY", "KILN_OPENBLAS_LIBRARY"}) unsetenv(v);
  }
};

TEST_F(BlasLibraryTest, Absent) {
  setenv("KILN_CUBLAS_LIBRARY", "/no/such/libcublas.so", 1);
  EXPECT_EQ(open_error<Cublas>(), "no cuBLAS: tried /no/such/libcublas.so");
  setenv("KILN_CUBLASLT_LIBRARY", "/no/such/libcublasLt.so", 1);
  EXPECT_EQ(open_error<CublasLt>(), "no cublasLt: tried /no/such/libcublasLt.so");
  setenv("KILN_OPENBLAS_LIBRARY", "/no/such/libopenblas.so", 1);
  EXPECT_EQ(open_error<OpenBlas>(), "no OpenBLAS: tried /no/such/libopenblas.so");
}

TEST_F(BlasLibraryTest, TooOld) {
  setenv("KILN_CUBLAS_LIBRARY", FAKE_CUBLAS_OLD, 1);
  EXPECT_EQ(open_error<Cublas>(),
            "cuBLAS " FAKE_CUBLAS_OLD " is too old: it is version 11.4.2, and Kiln needs 12.0 or newer");
  setenv("KILN_CUBLASLT_LIBRARY", FAKE_CUBLAS_OLD, 1);
  EXPECT_EQ(open_error<CublasLt>(),
            "cublasLt " FAKE_CUBLAS_OLD " is too old: it is version 11.4.2, and Kiln needs 12.0 or newer");
}

TEST_F(BlasLibraryTest, WithoutAnEntryPoint) {
  setenv("KILN_CUBLAS_LIBRARY", FAKE_CUBLAS_INCOMPLETE, 1);
  EXPECT_EQ(open_error<Cublas>(),
            "cuBLAS " FAKE_CUBLAS_INCOMPLETE " lacks cublasGemmEx_64: install the libraries of CUDA 12 or newer");
  setenv("KILN_CUBLASLT_LIBRARY", FAKE_CUBLAS_INCOMPLETE, 1);
  EXPECT_EQ(open_error<CublasLt>(),
            "cublasLt " FAKE_CUBLAS_INCOMPLETE " lacks cublasLtMatmul: install the libraries of CUDA 12 or newer");
  setenv("KILN_OPENBLAS_LIBRARY", FAKE_OPENBLAS_INCOMPLETE, 1);
  EXPECT_EQ(open_error<OpenBlas>(),
            "OpenBLAS " FAKE_OPENBLAS_INCOMPLETE " lacks cblas_sgemm: install libopenblas0-pthread");
}

TEST_F(BlasLibraryTest, DoesNotLoad) {
  std::string path = ::testing::TempDir() + "/broken_blas.so";
  std::ofstream(path) << "no ELF file at all, and long enough that the loader reads what it takes for a header";
  setenv("KILN_OPENBLAS_LIBRARY", path.c_str(), 1);
  EXPECT_EQ(open_error<OpenBlas>().find("OpenBLAS does not load: " + path), 0u);
}

TEST_F(BlasLibraryTest, ListOfLibraries) {
  setenv("KILN_CUBLAS_LIBRARY", FAKE_CUBLAS, 1);
  setenv("KILN_CUBLASLT_LIBRARY", "/no/such/libcublasLt.so", 1);
  setenv("KILN_OPENBLAS_LIBRARY", "/no/such/libopenblas.so", 1);
  std::vector<BlasLibrary> all = blas_libraries();
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[0].name, "cuBLAS");
  EXPECT_EQ(all[0].impls, "cublas");
  EXPECT_EQ(all[0].version, "13.4.2");
  EXPECT_EQ(all[0].detail, FAKE_CUBLAS);
  EXPECT_FALSE(all[1].available());
  EXPECT_EQ(all[1].detail, "no cublasLt: tried /no/such/libcublasLt.so");
  EXPECT_FALSE(all[2].available());
}

// Where the toolkit's libraries are, they open and say their version without a GPU. In a process of its own: unloading
// NVIDIA's at exit without a driver has crashed.
TEST_F(BlasLibraryTest, TheRealOnesOpen) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  auto open_all = [] {
    bool right = true;
    for (const BlasLibrary& lib : blas_libraries()) {
      std::fprintf(stderr, "%s: %s %s\n", std::string(lib.name).c_str(), lib.version.c_str(), lib.detail.c_str());
      right = right && (lib.available() || lib.detail.starts_with(fmt::format("no {}: tried ", lib.name)));
    }
    _exit(right ? 0 : 1);
  };
  EXPECT_EXIT(open_all(), ::testing::ExitedWithCode(0), "OpenBLAS");
}

}  // namespace
}  // namespace kiln::runtime::blas
