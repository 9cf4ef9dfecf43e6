// .npz archives, written and read.
#include <gtest/gtest.h>

#include <functional>

#include "runtime/files/npy.h"
#include "support/process.h"
#include "tests/unit/open_device.h"

namespace kiln::runtime {
namespace {

// numpy.savez(file, w=array([[1, 2], [3, 4]], '<i2'), b=array([1.5], '<f4')) of NumPy 2.
const std::string kNumPy(
    "PK\003\004-\000\000\000\000\000\000\000!\000\000\312\334m\377\377\377\377\377\377\377\377\005\000"
    "\024\000w.npy\001\000\020\000\210\000\000\000\000\000\000\000\210\000\000\000\000\000\000\000\223NUM"
    "PY\001\000v\000{'descr': '<i2', 'fortran_order': False, 'shape': (2, 2), }                          "
    "                                \012\001\000\002\000\003\000\004\000PK\003\004-\000\000\000\000\000"
    "\000\000!\000Ty.\203\377\377\377\377\377\377\377\377\005\000\024\000b.npy\001\000\020\000\204\000"
    "\000\000\000\000\000\000\204\000\000\000\000\000\000\000\223NUMPY\001\000v\000{'descr': '<f4', 'fort"
    "ran_order': False, 'shape': (1,), }                                                            \012"
    "\000\000\300?PK\001\002-\003-\000\000\000\000\000\000\000!\000\000\312\334m\210\000\000\000\210\000"
    "\000\000\005\000\000\000\000\000\000\000\000\000\000\000\200\001\000\000\000\000w.npyPK\001\002-\003"
    "-\000\000\000\000\000\000\000!\000Ty.\203\204\000\000\000\204\000\000\000\005\000\000\000\000\000"
    "\000\000\000\000\000\000\200\001\277\000\000\000b.npyPK\005\006\000\000\000\000\002\000\002\000f\000"
    "\000\000z\001\000\000\000\000",
    502);

// As numpy.savez_compressed writes: zipfile's ZIP_DEFLATED with 64-bit fields; w as above, z = zeros(1000, '<f4').
const std::string kCompressed(
    "PK\003\004-\000\000\000\010\000\000\000!\000\000\312\334m\377\377\377\377\377\377\377\377\005\000\024\000w.npy"
    "\001\000\020\000\210\000\000\000\000\000\000\000N\000\000\000\000\000\000\000\233\354\027\352\033\020\311\310P"
    "\306P\255\236\222Z\234\134\244n\245\240n\223i\244\256\243\240\236\226_TR\224\230\027\237_\224\222\012\022wK"
    "\314)N\005\212\027g$\026\244\002\371\032F:\012F\232:\012\265\012d\003.F\006&\006f\006\026\006\000PK\003\004-"
    "\000\000\000\010\000\000\000!\000\245\300\224N\377\377\377\377\377\377\377\377\005\000\024\000z.npy\001\000"
    "\020\000 \020\000\000\000\000\000\000c\000\000\000\000\000\000\000\233\354\027\352\033\020\311\310P\306P\255"
    "\236\222Z\234\134\244n\245\240n\223f\242\256\243\240\236\226_TR\224\230\027\237_\224\222\012\022wK\314)N\005"
    "\212\027g$\026\244\002\371\032\206\006\006\006:\232:\012\265\012\344\002.\206Q0\012F\301(\030\005\243`\024\214"
    "\202Q0\012F\301(\030\005\243`\024\0148\000\000PK\001\002-\003-\000\000\000\010\000\000\000!\000\000\312\334mN"
    "\000\000\000\210\000\000\000\005\000\000\000\000\000\000\000\000\000\000\000\200\001\000\000\000\000w.npyPK"
    "\001\002-\003-\000\000\000\010\000\000\000!\000\245\300\224Nc\000\000\000 \020\000\000\005\000\000\000\000\000"
    "\000\000\000\000\000\000\200\001\205\000\000\000z.npyPK\005\006\000\000\000\000\002\000\002\000f\000\000\000"
    "\037\001\000\000\000\000",
    411);

class Npz : public testing::Test {
 protected:
  Result<std::vector<NamedTensor>> read(const std::string& content) const {
    KILN_ASSERT(write_file_atomic(path_, content).ok(), "{}", path_);
    return load_npz(cpu_, path_);
  }
  /// The message of what NumPy's file gives after a change, without the path.
  std::string after(const std::function<void(std::string&)>& change) const {
    std::string content = kNumPy;
    change(content);
    auto result = read(content);
    return result.ok() ? "read" : result.error().message.substr(path_.size() + 2);
  }

  ScratchFolder folder_;
  std::string path_ = folder_.path + "/t.npz";
  Device cpu_ = *open_device("cpu");
};

TEST_F(Npz, ReadsWhatNumPyWrites) {
  auto read_back = read(kNumPy);
  ASSERT_TRUE(read_back.ok()) << read_back.error().message;
  ASSERT_EQ(read_back->size(), 2u);
  const auto &w = (*read_back)[0], &b = (*read_back)[1];
  EXPECT_EQ(w.name, "w");
  EXPECT_EQ(w.tensor.dtype(), DType::kI16);
  EXPECT_TRUE(std::ranges::equal(w.tensor.shape(), std::vector<int64_t>{2, 2}));
  EXPECT_EQ(*w.tensor.to_doubles(), (std::vector<double>{1, 2, 3, 4}));
  EXPECT_EQ(b.name, "b");
  EXPECT_EQ(*b.tensor.to_doubles(), std::vector<double>{1.5});
}

TEST_F(Npz, WhatIsSavedIsLoaded) {
  const Tensor a = *randn(cpu_, DType::kF64, std::vector<int64_t>{3, 1000}, 1);
  const Tensor turned = *a.as_strided(std::vector<int64_t>{1000, 3}, std::vector<int64_t>{1, 1000}, 0);
  ASSERT_TRUE(save_npz(std::vector<NamedTensor>{{"a", a},
                                                {"é/turned", turned},
                                                {"none", *Tensor::zeros(cpu_, DType::kI1, std::vector<int64_t>{0})}},
                       path_)
                  .ok());
  auto back = load_npz(cpu_, path_);
  ASSERT_TRUE(back.ok()) << back.error().message;
  ASSERT_EQ(back->size(), 3u);
  EXPECT_EQ((*back)[1].name, "é/turned");
  EXPECT_EQ(*(*back)[1].tensor.to_bytes(), *turned.to_bytes());
  EXPECT_EQ((*back)[2].tensor.numel(), 0);
  ASSERT_TRUE(save_npz({}, path_).ok());
  EXPECT_TRUE(load_npz(cpu_, path_)->empty());
}

TEST_F(Npz, DamagedFilesAreErrors) {
  const size_t directory = kNumPy.find("PK\1\2");
  const std::string no_archive = "it is no .npz file: a zip archive ends otherwise";
  EXPECT_EQ(after([](auto& f) { f = ""; }), no_archive);
  EXPECT_EQ(after([](auto& f) { f.pop_back(); }), no_archive);
  EXPECT_EQ(after([](auto& f) { f[f.find("(2, 2)") - 30]++; }), "'w.npy' is damaged: its checksum differs");
  EXPECT_EQ(after([&](auto& f) { f[directory + 10] = 12; }),
            "its entry 'w.npy' is compressed by method 12, which Kiln does not read");
  EXPECT_EQ(after([&](auto& f) { f[directory + 10] = 8; }), "'w.npy' is damaged");
  EXPECT_EQ(after([&](auto& f) { f[directory + 8] = 1; }), "its entry 'w.npy' is encrypted");
  EXPECT_EQ(after([&](auto& f) { f[directory + 42] = 1; }), "the entry 'w.npy' lies outside of the archive");
  EXPECT_EQ(after([&](auto& f) { f[directory + 20]++; }), "the sizes of its entry 'w.npy' differ");
  EXPECT_EQ(after([&](auto& f) { f[f.size() - 22 + 10]++; }), "its directory is damaged at entry 3");
  EXPECT_EQ(after([&](auto& f) { f[f.size() - 22 + 19] = 127; }), "its directory is damaged");
  EXPECT_EQ(after([&](auto& f) { f[f.rfind("b.npy")] = 'w'; }), "it has two entries 'w.npy'");
  // Both entries at one place; only one has the right name there, which nobody reads.
  EXPECT_EQ(after([&](auto& f) { f[f.rfind("b.npy") - 4] = 0; }), "its entries 'w.npy' and 'b.npy' overlap");
  for (size_t end = 0; end < kNumPy.size(); ++end) EXPECT_EQ(after([&](auto& f) { f.resize(end); }), no_archive) << end;
  // Whatever byte is wrong, there is an answer.
  for (size_t at = 0; at < kNumPy.size(); ++at)
    for (char value : {'\0', '\1', '\x7f', '\xff'}) after([&](auto& f) { f[at] = value; });
}

TEST_F(Npz, CompressedEntriesAreRead) {
  auto back = read(kCompressed);
  ASSERT_TRUE(back.ok()) << back.error().message;
  ASSERT_EQ(back->size(), 2u);
  EXPECT_EQ((*back)[0].name, "w");
  EXPECT_EQ(*(*back)[0].tensor.to_bytes(), *(*read(kNumPy))[0].tensor.to_bytes());
  EXPECT_EQ(*(*back)[1].tensor.to_bytes(), std::vector<std::byte>(4000));
  // Whatever byte is wrong, there is an answer; a size that deflate cannot make is refused before it is.
  for (size_t at = 0; at < kCompressed.size(); ++at)
    for (char value : {'\0', '\1', '\x7f', '\xff'}) {
      std::string wrong = kCompressed;
      wrong[at] = value;
      if (auto r = read(wrong); r.ok() && r->size() == 2) {
        EXPECT_EQ(*(*r)[0].tensor.to_bytes(), *(*back)[0].tensor.to_bytes()) << at;
      }
    }
  std::string huge = kCompressed;
  huge[huge.find("PK\1\2") + 27] = 1;  // 16 MiB from a few bytes
  auto refused = read(huge);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message.find("the sizes of its entry 'w.npy' differ"), std::string::npos);
}

TEST_F(Npz, MistakesOfTheCaller) {
  const Tensor half = *Tensor::zeros(cpu_, DType::kBF16, std::vector<int64_t>{3});
  EXPECT_EQ(save_npz(std::vector<NamedTensor>{{"x", half}}, path_).error().message, "'x': .npy files have no bfloat16");
  const Tensor t = *half.to(DType::kF32);
  EXPECT_EQ(save_npz(std::vector<NamedTensor>{{"x", t}, {"x", t}}, path_).error().message,
            path_ + ": two tensors are named 'x'");
  EXPECT_EQ(save_npz(std::vector<NamedTensor>{{"", t}}, path_).error().kind, ErrorKind::kValue);
}

}  // namespace
}  // namespace kiln::runtime
