// .npy files, written and read.
#include "runtime/files/npy.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>

#include "support/diag.h"
#include "support/files.h"
#include "tests/unit/open_device.h"

namespace kiln::runtime {
namespace {

class Npy : public testing::Test {
 protected:
  void SetUp() override {
    std::string folder = "/tmp/kiln-npy-XXXXXX";
    ASSERT_TRUE(mkdtemp(folder.data()));
    folder_ = folder;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string path(const std::string& name = "t.npy") const { return folder_ + "/" + name; }
  Result<Tensor> read(const std::string& content) const {
    KILN_ASSERT(write_file_atomic(path(), content).ok(), "{}", path());
    return load_npy(cpu_, path());
  }

  std::string folder_;
  Device cpu_ = *open_device("cpu");
};

TEST_F(Npy, WhatIsSavedIsLoaded) {
  for (DType dtype : {DType::kI1, DType::kI8, DType::kU8, DType::kI16, DType::kU16, DType::kI32, DType::kU32,
                      DType::kI64, DType::kU64, DType::kF16, DType::kF32, DType::kF64})
    for (const std::vector<int64_t>& shape : {std::vector<int64_t>{}, {7}, {3, 5}, {2, 1, 4}, {0, 3}}) {
      const Tensor t = *(*randn(cpu_, DType::kF32, shape, 3)).to(dtype);
      ASSERT_TRUE(save_npy(t, path()).ok());
      auto back = load_npy(cpu_, path());
      ASSERT_TRUE(back.ok()) << back.error().message;
      EXPECT_EQ(back->dtype(), dtype);
      EXPECT_TRUE(std::ranges::equal(back->shape(), shape));
      EXPECT_EQ(*back->to_bytes(), *t.to_bytes());
    }
}

TEST_F(Npy, IsWhatNumPyWrites) {
  const float values[] = {1, 2, 3, 4, 5, 6};
  const Tensor t = *Tensor::from_host(cpu_, DType::kF32, std::vector<int64_t>{2, 3}, values, sizeof values);
  // The transposed view: its elements in its own order.
  const Tensor turned = *t.as_strided(std::vector<int64_t>{3, 2}, std::vector<int64_t>{1, 3}, 0);
  ASSERT_TRUE(save_npy(turned, path()).ok());
  const std::string file = *read_file(path());
  ASSERT_EQ(file.size(), 128u + 24u);
  EXPECT_EQ(file.substr(0, 10), std::string("\x93NUMPY\x01\x00\x76\x00", 10));
  EXPECT_EQ(file.substr(10, 59), "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2), }");
  EXPECT_EQ(file[127], '\n');
  EXPECT_EQ(*load_npy(cpu_, path())->to_doubles(), (std::vector<double>{1, 4, 2, 5, 3, 6}));
}

TEST_F(Npy, ColumnsFirst) {
  const std::string text = "{'descr': '|i1', 'fortran_order': True, 'shape': (2, 3), }\n";
  auto t = read(std::string("\x93NUMPY\x01\x00", 8) + static_cast<char>(text.size()) + '\0' + text + "\1\2\3\4\5\6");
  ASSERT_TRUE(t.ok()) << t.error().message;
  EXPECT_EQ(*t->to_doubles(), (std::vector<double>{1, 3, 5, 2, 4, 6}));
}

TEST_F(Npy, BigEndian) {
  // numpy.save of array([1, -2], dtype='>i4').
  const std::string text = "{'descr': '>i4', 'fortran_order': False, 'shape': (2,), }\n";
  auto t = read(std::string("\x93NUMPY\x01\x00", 8) + static_cast<char>(text.size()) + '\0' + text +
                std::string("\0\0\0\1\xff\xff\xff\xfe", 8));
  ASSERT_TRUE(t.ok()) << t.error().message;
  EXPECT_EQ(t->dtype(), DType::kI32);
  EXPECT_EQ(*t->to_doubles(), (std::vector<double>{1, -2}));
}

TEST_F(Npy, Mistakes) {
  EXPECT_EQ(load_npy(cpu_, path("none.npy")).error().kind, ErrorKind::kIo);
  EXPECT_NE(read("PK\3\4 a zip file").error().message.find("it is no .npy file"), std::string::npos);
  EXPECT_EQ(read("").error().kind, ErrorKind::kIo);
  auto with = [&](const std::string& text, const std::string& data = "") {
    return read(std::string("\x93NUMPY\x01\x00", 8) + static_cast<char>(text.size()) + '\0' + text + data);
  };
  EXPECT_NE(
      with("{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }\n", "abcd").error().message.find("too early"),
      std::string::npos);
  EXPECT_EQ(with("{'descr': '>c8', 'fortran_order': False, 'shape': (3,), }\n").error().message,
            path() + ": tensors have no dtype '>c8'");
  EXPECT_EQ(with("{'descr': '|O', 'fortran_order': False, 'shape': (3,), }\n").error().message,
            path() + ": its elements are Python objects, which Kiln does not read");
  // As NumPy names ml_dtypes.bfloat16.
  EXPECT_EQ(with("{'descr': '<V2', 'fortran_order': False, 'shape': (3,), }\n").error().notes[0].message,
            "help: NumPy has no bf16 and fp8: save them as .safetensors");
  EXPECT_EQ(with("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (3,), }\n").error().kind,
            ErrorKind::kUnsupported);
  EXPECT_EQ(with("{'descr': '<f4', 'fortran_order': False, 'shape': (-3,), }\n").error().kind, ErrorKind::kIo);
  EXPECT_EQ(with("{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999, 99999999999), }\n").error().kind,
            ErrorKind::kMemory);
  // Sizes whose bytes, or whose strides, do not fit 64 bits.
  for (const char* shape : {"1152921504606846976,", "2305843009213693952, 4", "0, 4611686018427387904, 8"})
    EXPECT_EQ(with(fmt::format("{{'descr': '<f8', 'fortran_order': False, 'shape': ({}), }}\n", shape)).error().kind,
              ErrorKind::kMemory)
        << shape;
  ASSERT_EQ(mkfifo(path("pipe.npy").c_str(), 0600), 0);
  EXPECT_EQ(load_npy(cpu_, path("pipe.npy")).error().message, path("pipe.npy") + ": it is a pipe or a device, no file");
  EXPECT_EQ(load_npy(cpu_, folder_).error().message, folder_ + ": it is a folder, no file");
  EXPECT_EQ(with("{}").error().kind, ErrorKind::kIo);
  const Tensor half = *Tensor::zeros(cpu_, DType::kBF16, std::vector<int64_t>{3});
  EXPECT_EQ(save_npy(half, path()).error().message, ".npy files have no bfloat16");
  EXPECT_EQ(save_npy(*half.to(DType::kF32), folder_ + "/no/folder.npy").error().kind, ErrorKind::kIo);
}

}  // namespace
}  // namespace kiln::runtime
